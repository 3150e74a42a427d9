// protocol.h: whether the roles work together. All roles are run at once, without data, over small numbers of
// tiles and blocks; what each waits for follows from the plan. Takes a plan from sema (pipes with their
// rounds); changes nothing.
#ifndef JFA_COMPILER_PLAN_PROTOCOL_H
#define JFA_COMPILER_PLAN_PROTOCOL_H

#include "compiler/plan/plan.h"

// False when errors were reported: roles that wait for each other, slots that are put but not taken (or the
// other way round), bytes shared out of order, products that add to nothing.
bool protocol_check(Plan *plan, Diag *diag);

#endif
