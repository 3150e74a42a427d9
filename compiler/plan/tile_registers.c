// tile_registers.c: whether the tiles that a role's variables keep fit into its threads' registers. A
// variable lives as long as its block; values that are computed and used up on the way come on top, so this
// finds only what ptxas can't mend: past the budget it spills and serialises every product of the kernel.
#include "compiler/plan/place_steps.h"

enum {
    THREADS_PER_WARP = 32,
    REGISTER_BYTES = 4,
    // Addresses, loop counters and temporaries: with 24 registers beside the tiles ptxas 13.0 serialised the
    // products of every kernel tried (tiles of 76 to 196 registers), with 28 of none.
    LEAST_BESIDE_TILES = 28,
};

static int registers_of(const Role *role, const Local *local) {
    if (local->type.rows <= 1 || local->type.cols <= 1)
        return 0;
    int64_t bytes = (int64_t)local->type.rows * local->type.cols * elem_bytes(local->stored);
    return (int)(bytes / REGISTER_BYTES / (role->warps * THREADS_PER_WARP));
}

static bool declares_tile(const Role *role, const Stmt *stmt) {
    return stmt->kind == ST_LET && stmt->local->is_mutable && registers_of(role, stmt->local) > 0;
}

// The most that variables of these statements and of those below hold at a time.
static int most_held(const Role *role, const Stmt *stmt) {
    int held = 0, most = 0;
    for (; stmt; stmt = stmt->next) {
        if (declares_tile(role, stmt))
            held += registers_of(role, stmt->local);
        int below = most_held(role, stmt->body), other = most_held(role, stmt->other);
        below = below > other ? below : other;
        most = held + below > most ? held + below : most;
    }
    return most;
}

static void note_tiles(const Role *role, const Stmt *stmt, DiagItem *error) {
    for (; stmt; stmt = stmt->next) {
        if (declares_tile(role, stmt))
            diag_note(error, stmt->local->span, "'%s' is a tile of %d x %d, %d registers a thread",
                      stmt->local->name, stmt->local->type.rows, stmt->local->type.cols,
                      registers_of(role, stmt->local));
        note_tiles(role, stmt->body, error);
        note_tiles(role, stmt->other, error);
    }
}

void tile_registers_check(const Plan *plan, Diag *diag) {
    if (!plan->target->products_in_registers)
        return;
    for (int i = 0; i < plan->role_count; i++) {
        const Role *role = plan->roles[i];
        int held = most_held(role, role->body);
        if (held == 0 || held + LEAST_BESIDE_TILES <= role->final_regs)
            continue;
        DiagItem *error =
            diag_error(diag, role->span, "register-budget",
                       "role '%s' keeps %d registers of tiles in each thread, which has %d; at least %d are "
                       "needed beside them",
                       role->name, held, role->final_regs, LEAST_BESIDE_TILES);
        note_tiles(role, role->body, error);
        diag_help(error, "give the role more registers or warps, or its tiles fewer rows or columns");
    }
}
