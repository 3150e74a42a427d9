// place.h: where everything lies. Takes a plan from sema (pipes with their rounds and engines); gives offsets
// and swizzles of buffers, tensor-memory columns, barriers with their counts, warps and registers of roles.
#ifndef JFA_COMPILER_PLAN_PLACE_H
#define JFA_COMPILER_PLAN_PLACE_H

#include "compiler/plan/plan.h"

// Fills the fields of the plan marked `place:`. False when errors were reported: what doesn't fit, by how
// much, and what takes the most.
bool place_plan(Plan *plan, Diag *diag);

#endif
