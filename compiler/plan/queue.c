// queue.c: work that CTAs ask for. A warp of its own takes items from a counter in global memory and hands
// them to the roles through a ring in shared memory, an item for each of their rounds over tiles.
#include "compiler/plan/place_steps.h"

static int loops_over_tiles(const Stmt *stmt) {
    int count = 0;
    for (; stmt; stmt = stmt->next)
        count += (stmt->kind == ST_TILES) + loops_over_tiles(stmt->body) + loops_over_tiles(stmt->other);
    return count;
}

void queue_decide(Plan *plan, Diag *diag) {
    plan->queue_empty_count = 0;
    for (int i = 0; plan->queue_depth && i < plan->role_count; i++) {
        const Role *role = plan->roles[i];
        int loops = loops_over_tiles(role->body);
        if (loops > 1) {
            DiagItem *error = diag_error(diag, role->span, "bad-grid",
                                         "role '%s' has %d loops over tiles, but each would get other tiles",
                                         role->name, loops);
            diag_help(error, "with 'persistent via queue' a role has one loop over tiles");
        }
        // Threads that read an item together give it back once a warp.
        plan->queue_empty_count += loops * role->replicas * (role->uses_values ? role->warps : 1);
    }
}
