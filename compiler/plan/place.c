// place.c: runs the steps of place in order. A step that fails reports; those that don't depend on it run all
// the same, so that all budgets are told at once.
#include "compiler/plan/place.h"
#include "compiler/plan/place_steps.h"

bool place_plan(Plan *plan, Diag *diag) {
    int errors = diag->error_count;
    queue_decide(plan, diag);
    barriers_decide(plan, diag);
    if (memory_shapes(plan, diag)) {
        memory_shared(plan, diag);
        memory_tensor(plan, diag);
    }
    int before = diag->error_count;
    warps_place(plan, diag);
    if (diag->error_count == before)
        tile_registers_check(plan, diag);
    return diag->error_count == errors;
}
