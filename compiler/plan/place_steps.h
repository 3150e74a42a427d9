// place_steps.h: the steps of place, private to this room.
#ifndef JFA_COMPILER_PLAN_PLACE_STEPS_H
#define JFA_COMPILER_PLAN_PLACE_STEPS_H

#include "compiler/plan/plan.h"

enum { BARRIER_BYTES = 8 }; // of one mbarrier object (PTX ISA, "mbarrier")

// memory.c: the bytes or columns of one instance of each buffer, and whether `over` is possible. False:
// reported, and the next two steps can't run.
bool memory_shapes(Plan *plan, Diag *diag);
// Offsets of shared-memory buffers, the barrier block and the tensor-memory pointer. Requires barriers_count.
void memory_shared(Plan *plan, Diag *diag);
void memory_tensor(Plan *plan, Diag *diag);

// barriers.c: which barriers each pipe needs, their counts and bytes.
void barriers_decide(Plan *plan, Diag *diag);
// How many barriers there are, with the buffers' depths as they are now.
int64_t barriers_count(const Plan *plan);
// Bytes of the barriers and of what lies with them.
int64_t barriers_bytes(const Plan *plan);
// Offsets within the block that starts at plan->barrier_offset.
void barriers_place(Plan *plan);

// queue.c: how many roles' threads give back an item of the queue.
void queue_decide(Plan *plan, Diag *diag);

// warps.c: warps of each role in the CTA, and registers.
void warps_place(Plan *plan, Diag *diag);

// tile_registers.c: whether variables that hold tiles fit into registers. Requires warps_place.
void tile_registers_check(const Plan *plan, Diag *diag);

#endif
