// control.c: blocks, conditions, loops and whole roles. Slots are linear: each is given up exactly once on
// every path.
#include "compiler/sema/internal.h"

#include <string.h>

enum { MAX_UNROLLED = 4096 };

// Reads a body in its own scope; slots taken in it must be gone at its end.
Stmt *control_block(Sema *sema, Scope *scope, const Ast *list) {
    Held *outer = sema->held;
    Stmt *body = stmt_read_list(sema, scope, list);
    for (Held *held = sema->held; held != outer; held = held->next)
        if (!held->gone) {
            DiagItem *item = diag_error(sema->diag, held->slot->span, "slot-not-freed",
                                        "slot '%s' is taken but not freed", held->slot->name);
            diag_help(item, "add 'free %s;' after its last use, in this block", held->slot->name);
        }
    sema->held = outer;
    return body;
}

static int held_count(Sema *sema) {
    int count = 0;
    for (Held *held = sema->held; held; held = held->next)
        count++;
    return count;
}

static bool *snapshot(Sema *sema) {
    bool *gone = arena_array(sema->arena, bool, held_count(sema) + 1);
    int i = 0;
    for (Held *held = sema->held; held; held = held->next)
        gone[i++] = held->gone;
    return gone;
}

static void restore(Sema *sema, const bool *gone) {
    int i = 0;
    for (Held *held = sema->held; held; held = held->next)
        held->gone = gone[i++];
}

// A loop runs any number of times: it must leave the slots from outside as they were.
static void check_loop(Sema *sema, const bool *before) {
    int i = 0;
    for (Held *held = sema->held; held; held = held->next, i++)
        if (held->gone != before[i]) {
            DiagItem *item = diag_error(
                sema->diag, held->gone_span, "slot-in-loop",
                "slot '%s' is given up inside a loop, which may run any number of times", held->slot->name);
            diag_note(item, held->slot->span, "it was taken here, outside the loop");
            diag_help(item, "take it in the loop too, or give it up after the loop");
        }
}

Stmt *control_if(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *condition = expr_cast(sema, stmt_value(sema, scope, ast->a), ELEM_BOOL, ast->a->span);
    if (condition && condition->kind == X_BOOL) {
        Stmt *group = stmt_make(sema, ST_IF, ast->span);
        group->value = condition;
        Scope *inner = scope_new(sema, scope);
        *(condition->integer ? &group->body : &group->other) =
            control_block(sema, inner, condition->integer ? ast->list2 : ast->list);
        return group;
    }
    if (condition && !type_is_uniform(condition->type)) {
        DiagItem *item = diag_error(sema->diag, ast->a->span, "not-uniform",
                                    "a condition must be the same for the whole role");
        diag_help(item, "choose per element with: condition ? a : b");
        return NULL;
    }
    Stmt *stmt = stmt_make(sema, ST_IF, ast->span);
    stmt->value = condition;
    bool *before = snapshot(sema);
    stmt->body = control_block(sema, scope_new(sema, scope), ast->list2);
    bool *after = snapshot(sema);
    restore(sema, before);
    stmt->other = control_block(sema, scope_new(sema, scope), ast->list);
    int i = 0;
    for (Held *held = sema->held; held; held = held->next, i++)
        if (held->gone != after[i]) {
            DiagItem *item =
                diag_error(sema->diag, held->gone_span.end ? held->gone_span : ast->span, "slot-one-path",
                           "slot '%s' is given up on one path of this 'if' only", held->slot->name);
            diag_note(item, ast->span, "the other path keeps it");
            diag_help(item, "free it on both paths, or on neither and after the 'if'");
            held->gone = true;
        }
    return condition ? stmt : NULL;
}

static Stmt *unroll(Sema *sema, Scope *scope, const Ast *ast, const Ast *bind) {
    int64_t count;
    if (!sema_constant_int(sema, scope, bind->a, "the count of a constant loop", 0, 256, &count))
        return NULL;
    Stmt *first = NULL, **tail = &first;
    for (int64_t i = 0; i < count; i++) {
        if (++sema->unrolled > MAX_UNROLLED) {
            if (sema->unrolled == MAX_UNROLLED + 1)
                diag_error(sema->diag, ast->span, "too-many", "constant loops expand to more than %d bodies",
                           MAX_UNROLLED);
            return first;
        }
        // Slots taken in the body outlive one round under their indexed names, so they go into the outer
        // scope.
        Scope *inner = scope_new(sema, scope);
        Symbol *symbol = scope_add(sema, inner, SYM_VALUE, bind->name, bind->span);
        symbol->expr = expr_int(sema, i, bind->span);
        *tail = stmt_read_list(sema, inner, ast->list2);
        for (Symbol *own = inner->symbols, *next; own; own = next) {
            next = own->next;
            if (strchr(own->name, '[') && !scope_find(scope, own->name)) {
                own->next = scope->symbols;
                scope->symbols = own;
            }
        }
        while (*tail)
            tail = &(*tail)->next;
    }
    return first;
}

static Stmt *read_walk(Sema *sema, Scope *scope, const Ast *ast, Walk *walk, WalkPart part) {
    Stmt *stmt = stmt_make(sema, ST_WALK, ast->span);
    stmt->part = part;
    stmt->block = arena_new_of(sema->arena, Block);
    stmt->block->name = ast->list->name;
    stmt->block->walk = walk;
    stmt->block->number = sema->role->block_count++;
    Scope *inner = scope_new(sema, scope);
    Symbol *symbol = scope_add(sema, inner, SYM_BLOCK, ast->list->name, ast->list->name_span);
    symbol->block = stmt->block;
    bool *before = snapshot(sema);
    stmt->body = control_block(sema, inner, ast->list2);
    check_loop(sema, before);
    return stmt;
}

static Stmt *read_tiles(Sema *sema, Scope *scope, const Ast *ast) {
    if (sema->in_tiles) {
        diag_error(sema->diag, ast->span, "outside-tiles",
                   "a loop over tiles can't stand inside another loop");
        return NULL;
    }
    Stmt *stmt = stmt_make(sema, ST_TILES, ast->span);
    Scope *inner = scope_new(sema, scope);
    scope_add(sema, inner, SYM_TILE, ast->list->name, ast->list->name_span);
    sema->in_tiles = true;
    stmt->body = control_block(sema, inner, ast->list2);
    sema->in_tiles = false;
    return stmt;
}

Stmt *control_for(Sema *sema, Scope *scope, const Ast *ast) {
    const Ast *bind = ast->list;
    if (bind->next) {
        diag_error(sema->diag, ast->span, "reference-only",
                   "a loop over several indices can stand only in a reference");
        return NULL;
    }
    Symbol *range = bind->a->kind == AST_NAME ? scope_find(scope, bind->a->name) : NULL;
    if (range && range->kind == SYM_TILES)
        return read_tiles(sema, scope, ast);
    Walk *walk = sema_walk_of(sema, scope, bind->a);
    if (walk)
        return read_walk(sema, scope, ast, walk, PART_ALL);
    if (bind->a->kind == AST_MEMBER && (walk = sema_walk_of(sema, scope, bind->a->a))) {
        static const char *const PARTS[] = {
            [PART_FIRST] = "first", [PART_REST] = "rest", [PART_LAST] = "last"};
        for (int part = PART_FIRST; part <= PART_LAST; part++)
            if (!strcmp(PARTS[part], bind->a->name))
                return read_walk(sema, scope, ast, walk, (WalkPart)part);
        diag_error(sema->diag, bind->a->name_span, "unknown-member",
                   "a walk's parts are first, rest and last, not '%s'", bind->a->name);
        return NULL;
    }
    return unroll(sema, scope, ast, bind);
}

// The statements stand in the scope around them: the turn is about when they run, not about what they bind.
Stmt *control_turn(Sema *sema, Scope *scope, const Ast *ast) {
    Symbol *symbol = scope_find(scope, ast->name);
    if (!symbol || symbol->kind != SYM_TURN || !symbol->turn) {
        if (!symbol || symbol->kind != SYM_TURN)
            scope_unknown(sema, sema->schedule, ast->name, ast->name_span, "turn");
        return NULL;
    }
    Stmt *stmt = stmt_make(sema, ST_TURN, ast->span);
    stmt->turn = symbol->turn;
    if (symbol->turn->role != sema->role) {
        DiagItem *item = diag_error(sema->diag, ast->name_span, "wrong-role", "role '%s' has no turn '%s'",
                                    sema->role->name, ast->name);
        diag_note(item, symbol->turn->span, "the replicas of '%s' take turns in it",
                  symbol->turn->role->name);
        return NULL;
    }
    if (sema->turn) {
        DiagItem *item = diag_error(sema->diag, ast->span, "turn-in-turn",
                                    "a turn inside another one: the replicas would wait for each other");
        diag_note(item, sema->turn->span, "the outer turn is '%s'", sema->turn->name);
        return NULL;
    }
    sema->turn = symbol->turn;
    stmt->body = stmt_read_list(sema, scope, ast->list2);
    sema->turn = NULL;
    return stmt;
}

static bool runs_on_one_thread(const Sema *sema, const Stmt *stmt) {
    bool multiplies = stmt->kind == ST_PRODUCT && !sema->plan->target->products_in_registers;
    return stmt->kind == ST_PUT_LOAD || stmt->kind == ST_STORE_TILE || multiplies;
}

// A role either computes on tiles with all its threads, or moves (and, with tensor memory, multiplies) them
// from one thread.
static void check_kind(Sema *sema, Role *role, const Stmt *stmt) {
    for (; stmt; stmt = stmt->next) {
        bool single = runs_on_one_thread(sema, stmt);
        if (single) {
            DiagItem *item =
                diag_error(sema->diag, stmt->span, "mixed-role", "role '%s' computes on tiles and also %s",
                           role->name, stmt->kind == ST_PRODUCT ? "issues products" : "moves tiles");
            diag_help(item, "give loads%s and stores of tiles a role of 1 warp of their own",
                      sema->plan->target->products_in_registers ? "" : ", products");
            return;
        }
        check_kind(sema, role, stmt->body);
        check_kind(sema, role, stmt->other);
    }
}

void sema_role(Sema *sema, Role *role, const Ast *ast) {
    sema->role = role;
    sema->told_rows = false;
    sema->held = NULL;
    sema->in_tiles = false;
    Scope *scope = scope_new(sema, sema->schedule);
    if (role->replica_name) {
        static const Type REPLICA = {ELEM_I32, 1, 1};
        Symbol *symbol = scope_add(sema, scope, SYM_VALUE, role->replica_name, ast->list->span);
        if (symbol)
            symbol->expr = expr_new(sema, X_REPLICA, REPLICA, ast->list->span);
    }
    int errors = sema->diag->error_count;
    role->body = control_block(sema, scope, ast->list2);
    sema->role = NULL;
    if (sema->diag->error_count != errors || sema->unrolled > MAX_UNROLLED)
        return;
    if (role->uses_values)
        check_kind(sema, role, role->body);
    else if (role->warps != 1 && !sema->diag->error_count) {
        DiagItem *item =
            diag_error(sema->diag, role->warps_span, "role-size",
                       "role '%s' has %d warps but computes on no tile", role->name, role->warps);
        diag_help(item, "loads, stores and products are issued by one thread: 1 warp is enough");
    }
}
