// stmt.c: the statements of a role.
#include "compiler/sema/internal.h"

#include <string.h>

Stmt *stmt_make(Sema *sema, StmtKind kind, Span span) {
    Stmt *stmt = arena_new_of(sema->arena, Stmt);
    stmt->kind = kind;
    stmt->span = span;
    stmt->tensor.map = -1;
    return stmt;
}

// ---------------------------------------------------------------- values

static bool fits_buffer(Sema *sema, const Expr *value, const Buffer *buffer, Span span) {
    bool rows = value->type.rows == 1 || value->type.rows == EXTENT_ANY || value->type.rows == buffer->rows;
    bool cols = value->type.cols == 1 || value->type.cols == buffer->cols ||
                (value->type.cols == EXTENT_ANY && buffer->rank == 2);
    if (rows && cols && value->type.elem != ELEM_BOOL)
        return true;
    Type want = {buffer->elem, buffer->rows, buffer->cols};
    DiagItem *item = diag_error(sema->diag, span, "shape-mismatch", "%s doesn't fit buffer '%s': %s",
                                type_text(sema, value->type), buffer->name, type_text(sema, want));
    diag_note(item, buffer->span, "declared here");
    return false;
}

// One thread holds one row: the tile must have as many rows as the role has threads.
static void check_rows(Sema *sema, int rows, Span span) {
    if (rows <= 1 || rows == 32 * sema->role->warps)
        return;
    DiagItem *item = diag_error(
        sema->diag, span, "role-size", "a tile of %d rows in role '%s' of %d warp%s (%d threads)", rows,
        sema->role->name, sema->role->warps, sema->role->warps == 1 ? "" : "s", 32 * sema->role->warps);
    diag_note(item, sema->role->warps_span, "the role's warps are stated here");
    diag_help(item, "each thread of a role that computes on tiles holds one row: %d rows need %d warps", rows,
              (rows + 31) / 32);
}

static void collect_uses(Sema *sema, Expr *expr, Span span) {
    if (!expr || expr->mark == sema->plan->marks)
        return;
    expr->mark = sema->plan->marks;
    if (expr->kind == X_SLOT) {
        slot_use(sema, expr->slot, ENGINE_THREADS, span);
        check_rows(sema, expr->slot->pipe->buffer->rows, expr->span);
        return;
    }
    collect_uses(sema, expr->a, span);
    collect_uses(sema, expr->b, span);
    collect_uses(sema, expr->c, span);
    for (int i = 0; i < expr->arg_count; i++)
        collect_uses(sema, expr->args[i], span);
}

Expr *stmt_value(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *value = sema_expr(sema, scope, ast);
    sema->plan->marks++;
    collect_uses(sema, value, ast->span);
    return value;
}

// ---------------------------------------------------------------- statements

static Stmt *read_put(Sema *sema, Scope *scope, const Ast *ast) {
    Slot *slot = slot_open(sema, scope, ast->a, arena_format(sema->arena, "put@%d", sema->role->slot_count),
                           ast->span);
    if (!slot)
        return NULL;
    const Ast *value = ast->b;
    if (value->kind == AST_BINARY && value->op == '@') {
        Stmt *product = product_read(sema, scope, slot, value, ast->c, ast->flag, ast->span);
        if (!product)
            return NULL;
        slot_hand_on(sema, slot, ast->span);
        Stmt *fill = stmt_make(sema, ST_FILL, ast->span);
        fill->slot = slot;
        fill->body = product;
        return fill;
    }
    if (ast->flag) {
        DiagItem *item =
            diag_error(sema->diag, ast->span, "product-place", "'put ... +=' needs a product: a @ b");
        diag_help(item, "to change what a slot holds, the taker writes 'update slot = value;'");
        return NULL;
    }
    if (tile_is_tensor(scope, value) && slot->pipe->buffer->space == SPACE_SMEM &&
        slot->pipe->buffer->rank == 2) {
        Stmt *stmt = stmt_make(sema, ST_PUT_LOAD, ast->span);
        stmt->slot = slot;
        if (!tile_read_ref(sema, scope, value, &stmt->tensor) ||
            !tile_check_direction(sema, &stmt->tensor, false))
            return NULL;
        stmt->tensor.map = tile_find_map(sema, &stmt->tensor, slot->pipe->buffer, false);
        slot_set_engine(sema, &slot->pipe->filled_by, ENGINE_LOAD, slot->pipe, ast->span, "filled");
        slot_hand_on(sema, slot, ast->span);
        return stmt->tensor.map < 0 ? NULL : stmt;
    }
    Stmt *stmt = stmt_make(sema, ST_PUT_VALUE, ast->span);
    stmt->slot = slot;
    stmt->value = stmt_value(sema, scope, value);
    sema->role->uses_values = true;
    sema->role->touches_tmem |= slot->pipe->buffer->space == SPACE_TMEM;
    slot_hand_on(sema, slot, ast->span);
    if (!stmt->value || !fits_buffer(sema, stmt->value, slot->pipe->buffer, value->span))
        return NULL;
    check_rows(sema, slot->pipe->buffer->rows, ast->span);
    slot_set_engine(sema, &slot->pipe->filled_by, ENGINE_THREADS, slot->pipe, ast->span, "filled");
    return stmt;
}

static Stmt *read_take(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *index;
    Pipe *pipe = slot_find_pipe(sema, scope, ast->b, &index);
    const char *name = sema_slot_name(sema, scope, ast->a);
    if (!pipe && name)
        scope_add(sema, scope, SYM_VALUE, name, ast->a->span); // stands for nothing; told already
    if (!pipe || !name || !slot_in_tiles(sema, ast->span))
        return NULL;
    bool owner = false;
    for (int i = 0; i < pipe->to_count; i++)
        owner |= pipe->to[i] == sema->role;
    if (!owner) {
        slot_note_wrong_role(sema,
                             diag_error(sema->diag, ast->b->span, "wrong-role",
                                        "role '%s' can't take from '%s'", sema->role->name, pipe->name),
                             pipe);
        return NULL;
    }
    pipe->to_span = ast->span;
    Stmt *stmt = stmt_make(sema, ST_TAKE, ast->span);
    stmt->slot = slot_make(sema, pipe, index, name, ast->span);
    Symbol *symbol = scope_add(sema, scope, SYM_SLOT, name, ast->a->span);
    if (!symbol)
        return NULL;
    symbol->slot = stmt->slot;
    slot_hold(sema, stmt->slot);
    return stmt;
}

static Stmt *read_free(Sema *sema, Scope *scope, const Ast *ast) {
    Slot *slot = sema_slot(sema, scope, ast->a);
    if (!slot)
        return NULL;
    if (slot->filling) {
        diag_error(sema->diag, ast->span, "slot-filling",
                   "slot '%s' is being filled; it is published at the end of 'fill'", slot->name);
        return NULL;
    }
    Held *held = slot_find_held(sema, slot);
    held->gone = true;
    held->gone_span = ast->span;
    Stmt *stmt = stmt_make(sema, ST_FREE, ast->span);
    stmt->slot = slot;
    return stmt;
}

static Stmt *read_update(Sema *sema, Scope *scope, const Ast *ast) {
    Slot *slot = sema_slot(sema, scope, ast->a);
    Expr *value = stmt_value(sema, scope, ast->b);
    if (!slot || !value)
        return NULL;
    if (!slot->pipe->in_place) {
        DiagItem *item =
            diag_error(sema->diag, ast->span, "not-in-place",
                       "pipe '%s' doesn't return its contents, so changing them is lost", slot->pipe->name);
        diag_note(item, slot->pipe->span, "declare it '... in place' to hand contents back with the slot");
        return NULL;
    }
    if (!fits_buffer(sema, value, slot->pipe->buffer, ast->b->span))
        return NULL;
    slot_use(sema, slot, ENGINE_THREADS, ast->span);
    sema->role->uses_values = true;
    sema->role->touches_tmem |= slot->pipe->buffer->space == SPACE_TMEM;
    Stmt *stmt = stmt_make(sema, ST_UPDATE, ast->span);
    stmt->slot = slot;
    stmt->value = value;
    return stmt;
}

// Each element of the value needs a place of its own, and their number must be known.
static bool store_has_places(Sema *sema, const Stmt *stmt, Type whole, Span span) {
    bool rows = false, cols = false;
    for (int i = 0; i < sema->plan->tensors[stmt->tensor.tensor].rank; i++) {
        rows |= stmt->tensor.at[i]->type.rows != 1;
        cols |= stmt->tensor.at[i]->type.cols != 1;
    }
    if ((stmt->value->type.rows != 1 && !rows) || (stmt->value->type.cols != 1 && !cols)) {
        const char *missing = stmt->value->type.rows != 1 && !rows ? "rows" : "cols";
        DiagItem *item =
            diag_error(sema->diag, span, "shape-mismatch", "all %s of %s would be stored to one element",
                       *missing == 'r' ? "rows" : "columns", type_text(sema, stmt->value->type));
        diag_help(item, "let a position depend on '%s'", missing);
        return false;
    }
    if (whole.cols != EXTENT_ANY)
        return true;
    DiagItem *item =
        diag_error(sema->diag, span, "shape-mismatch", "nothing says how many columns are stored here");
    diag_help(item, "the value must be a tile, or a variable: var x : f32[M, N] = ...;");
    return false;
}

static Stmt *read_store(Sema *sema, Scope *scope, const Ast *ast) {
    if (!tile_is_tensor(scope, ast->a)) {
        diag_error(sema->diag, ast->a->span, "unknown-name",
                   "'store' needs a tensor with its positions: T[...]");
        return NULL;
    }
    Stmt *stmt = stmt_make(sema, ST_STORE_VALUE, ast->span);
    if (!slot_in_tiles(sema, ast->span) || !tile_read_ref(sema, scope, ast->a, &stmt->tensor) ||
        !tile_check_direction(sema, &stmt->tensor, true))
        return NULL;
    const char *name =
        ast->b->kind == AST_NAME ? ast->b->name
        : ast->b->kind == AST_INDEX && ast->b->a->kind == AST_NAME && !tile_is_tensor(scope, ast->b)
            ? sema_slot_name(sema, scope, ast->b)
            : NULL;
    Symbol *source = name ? scope_find(scope, name) : NULL;
    if (source && source->kind == SYM_SLOT && source->slot->pipe->buffer->space == SPACE_SMEM &&
        source->slot->pipe->buffer->rank == 2) {
        const Tensor *tensor = &sema->plan->tensors[stmt->tensor.tensor];
        if (tensor->is_optional) {
            DiagItem *item =
                diag_error(sema->diag, ast->span, "optional-tile",
                           "whole tiles can't be stored to '%s', which may be left out", tensor->name);
            diag_note(item, tensor->span, "declared here");
            diag_help(item, "store its values from a role's threads: store T[..., rows, cols] = x;");
            return NULL;
        }
        stmt->kind = ST_STORE_TILE;
        stmt->source = sema_slot(sema, scope, ast->b);
        if (!stmt->source)
            return NULL;
        slot_use(sema, stmt->source, ENGINE_STORE, ast->span);
        stmt->tensor.map = tile_find_map(sema, &stmt->tensor, stmt->source->pipe->buffer, true);
        return stmt->tensor.map < 0 ? NULL : stmt;
    }
    stmt->value = stmt_value(sema, scope, ast->b);
    sema->role->uses_values = true;
    if (!stmt->value)
        return NULL;
    Type type = stmt->value->type;
    for (int i = 0; i < sema->plan->tensors[stmt->tensor.tensor].rank; i++)
        if (!type_join(sema, type, stmt->tensor.at[i]->type, ast->span, &type))
            return NULL;
    if (!store_has_places(sema, stmt, type, ast->span))
        return NULL;
    Elem elem = sema->plan->tensors[stmt->tensor.tensor].elem;
    stmt->value = expr_cast(sema, stmt->value, elem_is_float(elem) ? ELEM_F32 : elem, ast->b->span);
    return stmt->value ? stmt : NULL;
}

static Local *local_new(Sema *sema, const char *name, Type type, Span span) {
    Local *local = arena_new_of(sema->arena, Local);
    local->name = name;
    local->number = sema->role->local_count++;
    local->type = type;
    local->span = span;
    return local;
}

static Symbol *bind_local(Sema *sema, Scope *scope, const char *name, Span span, Local *local) {
    Symbol *symbol = scope_add(sema, scope, SYM_VALUE, name, span);
    if (symbol && local) {
        symbol->expr = expr_new(sema, X_LOCAL, local->type, span);
        symbol->expr->local = local;
    }
    return symbol;
}

static Stmt *read_let(Sema *sema, Scope *scope, const Ast *ast) {
    if (ast->list) {
        diag_error(sema->diag, ast->span, "reference-only",
                   "a family of values 'let x[i in axis]' can stand only in a reference");
        return NULL;
    }
    Expr *value = stmt_value(sema, scope, ast->a);
    if (!value || expr_is_constant(value)) {
        Symbol *symbol = bind_local(sema, scope, ast->name, ast->name_span, NULL);
        if (symbol)
            symbol->expr = value;
        return NULL;
    }
    Stmt *stmt = stmt_make(sema, ST_LET, ast->span);
    stmt->value = value;
    stmt->local = local_new(sema, ast->name, value->type, ast->name_span);
    return bind_local(sema, scope, ast->name, ast->name_span, stmt->local) ? stmt : NULL;
}

static Stmt *read_var(Sema *sema, Scope *scope, const Ast *ast) {
    Elem elem = !strcmp(ast->b->name, "f32")   ? ELEM_F32
                : !strcmp(ast->b->name, "i32") ? ELEM_I32
                                               : ELEM_COUNT;
    if (elem == ELEM_COUNT) {
        diag_error(sema->diag, ast->b->span, "unknown-type", "a variable is f32 or i32, not '%s'",
                   ast->b->name);
        return NULL;
    }
    int64_t extents[2] = {1, 1};
    int rank = 0;
    for (const Ast *extent = ast->b->list; extent && rank < 2; extent = extent->next)
        if (!sema_constant_int(sema, scope, extent, "the extent of a variable", 1, 4096, &extents[rank++]))
            return NULL;
    Expr *value = expr_cast(sema, stmt_value(sema, scope, ast->a), elem, ast->a->span);
    if (!value)
        return NULL;
    Type type = {elem, (int)extents[0], (int)extents[1]}, joined;
    check_rows(sema, type.rows, ast->span);
    if (!type_join(sema, type, value->type, ast->span, &joined))
        return NULL;
    if (joined.rows != type.rows || joined.cols != type.cols) {
        diag_error(sema->diag, ast->span, "shape-mismatch", "'%s' is %s, but its value is %s", ast->name,
                   type_text(sema, type), type_text(sema, value->type));
        return NULL;
    }
    sema->role->uses_values |= type.rows > 1;
    Stmt *stmt = stmt_make(sema, ST_LET, ast->span);
    stmt->value = value;
    stmt->local = local_new(sema, ast->name, type, ast->name_span);
    stmt->local->is_mutable = true;
    return bind_local(sema, scope, ast->name, ast->name_span, stmt->local) ? stmt : NULL;
}

static Stmt *read_assign(Sema *sema, Scope *scope, const Ast *ast) {
    Symbol *symbol = ast->a->kind == AST_NAME ? scope_find(scope, ast->a->name) : NULL;
    if (!symbol || symbol->kind != SYM_VALUE || !symbol->expr || symbol->expr->kind != X_LOCAL ||
        !symbol->expr->local->is_mutable) {
        DiagItem *item = diag_error(sema->diag, ast->a->span, "not-assignable", "'%s' can't be assigned",
                                    ast_text(sema->diag->sources, sema->arena, ast->a->span));
        diag_help(item, "only variables can: var name : f32[M] = value;");
        return NULL;
    }
    Local *local = symbol->expr->local;
    Expr *value = expr_cast(sema, stmt_value(sema, scope, ast->b), local->type.elem, ast->b->span);
    Type joined;
    if (!value || !type_join(sema, local->type, value->type, ast->span, &joined))
        return NULL;
    if (joined.rows != local->type.rows || joined.cols != local->type.cols) {
        diag_error(sema->diag, ast->span, "shape-mismatch", "'%s' is %s, but the value is %s", local->name,
                   type_text(sema, local->type), type_text(sema, value->type));
        return NULL;
    }
    Stmt *stmt = stmt_make(sema, ST_SET, ast->span);
    stmt->local = local;
    stmt->value = value;
    return stmt;
}

static Stmt *read_fill(Sema *sema, Scope *scope, const Ast *ast) {
    Slot *slot = slot_open(sema, scope, ast->a, ast->name, ast->span);
    if (!slot)
        return NULL;
    Scope *inner = scope_new(sema, scope);
    Symbol *symbol = scope_add(sema, inner, SYM_SLOT, ast->name, ast->name_span);
    symbol->slot = slot;
    slot_hand_on(sema, slot, ast->span);
    Stmt *stmt = stmt_make(sema, ST_FILL, ast->span);
    stmt->slot = slot;
    int errors = sema->diag->error_count;
    stmt->body = stmt_read_list(sema, inner, ast->list2);
    if (slot->pipe->filled_by == ENGINE_NONE && sema->diag->error_count == errors)
        diag_error(sema->diag, ast->span, "never-filled", "nothing is written to '%s' in this 'fill'",
                   ast->name);
    return stmt;
}

static Stmt *read_accumulate(Sema *sema, Scope *scope, const Ast *ast) {
    Slot *slot = sema_slot(sema, scope, ast->a);
    if (!slot)
        return NULL;
    if (!slot->filling || ast->b->kind != AST_BINARY || ast->b->op != '@') {
        DiagItem *item = diag_error(sema->diag, ast->span, "product-place",
                                    "'+=' adds a product to a slot that is being filled");
        diag_help(item, "fill d = pipe { d += a @ b fresh if first; }");
        return NULL;
    }
    return product_read(sema, scope, slot, ast->b, ast->c, true, ast->span);
}

Stmt *stmt_read(Sema *sema, Scope *scope, const Ast *ast) {
    switch (ast->kind) {
    case AST_LET:
        return read_let(sema, scope, ast);
    case AST_VAR:
        return read_var(sema, scope, ast);
    case AST_ASSIGN:
        return read_assign(sema, scope, ast);
    case AST_TAKE:
        return read_take(sema, scope, ast);
    case AST_PUT:
        return read_put(sema, scope, ast);
    case AST_FILL:
        return read_fill(sema, scope, ast);
    case AST_ACCUM:
        return read_accumulate(sema, scope, ast);
    case AST_FREE:
        return read_free(sema, scope, ast);
    case AST_UPDATE:
        return read_update(sema, scope, ast);
    case AST_STORE:
        return read_store(sema, scope, ast);
    case AST_FOR:
        return control_for(sema, scope, ast);
    case AST_IF:
        return control_if(sema, scope, ast);
    default:
        return NULL;
    }
}

Stmt *stmt_read_list(Sema *sema, Scope *scope, const Ast *list) {
    Stmt *first = NULL, **tail = &first;
    for (const Ast *ast = list; ast; ast = ast->next) {
        *tail = stmt_read(sema, scope, ast);
        while (*tail)
            tail = &(*tail)->next;
    }
    return first;
}
