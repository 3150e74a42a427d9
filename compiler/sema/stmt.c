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

// Each warp holds so many rows of a tile: the role must have as many warps as the tile has such groups.
static bool check_rows(Sema *sema, int rows, Span span) {
    const Role *role = sema->role;
    int warp_rows = sema->plan->target->warp_rows;
    if (rows <= 1 || rows == warp_rows * role->warps || !role->warps)
        return true;
    if (sema->told_rows)
        return false;
    sema->told_rows = true;
    DiagItem *item =
        diag_error(sema->diag, span, "role-size", "a tile of %d rows in role '%s' of %d warp%s (%d threads)",
                   rows, role->name, role->warps, role->warps == 1 ? "" : "s", 32 * role->warps);
    diag_note(item, role->warps_span, "the role's warps are stated here");
    int warps = (rows + warp_rows - 1) / warp_rows;
    if (warp_rows == 32)
        diag_help(item, "each thread of a role that computes on tiles holds one row: %d rows need %d warps",
                  rows, warps);
    else
        diag_help(item, "on %s each warp holds %d rows of a tile: %d rows need %d warps",
                  sema->plan->target->name, warp_rows, rows, warps);
    return false;
}

// Where the threads of a warp share its rows, they deal out columns in groups of 8.
static bool check_cols(Sema *sema, int cols, Span span) {
    enum { GROUP = 8 };
    if (cols <= 1 || sema->plan->target->warp_rows == 32 || cols % GROUP == 0)
        return true;
    DiagItem *item =
        diag_error(sema->diag, span, "shape-mismatch", "a tile of %d columns in registers", cols);
    diag_help(item, "on %s a tile that a role computes with has a multiple of %d columns: %d, for example",
              sema->plan->target->name, GROUP, (cols + GROUP - 1) / GROUP * GROUP);
    return false;
}

bool stmt_check_tile(Sema *sema, int rows, int cols, Span span) {
    return check_rows(sema, rows, span) && check_cols(sema, cols, span);
}

static void collect_uses(Sema *sema, Expr *expr, Span span) {
    if (!expr || expr->mark == sema->plan->marks)
        return;
    expr->mark = sema->plan->marks;
    if (expr->kind == X_SLOT) {
        slot_use(sema, expr->slot, ENGINE_THREADS, span);
        stmt_check_tile(sema, expr->slot->pipe->buffer->rows, expr->slot->pipe->buffer->cols, expr->span);
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
    if (product_is(value)) {
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
        stmt->tensor.map = tile_find_map(sema, &stmt->tensor, slot->pipe->buffer, false,
                                         slot->pipe->multicast ? sema->plan->cluster : 1);
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
    stmt_check_tile(sema, slot->pipe->buffer->rows, slot->pipe->buffer->cols, ast->span);
    slot_set_engine(sema, &slot->pipe->filled_by, ENGINE_THREADS, slot->pipe, ast->span, "filled");
    return stmt;
}

static Stmt *read_take(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *index;
    Pipe *pipe = slot_find_pipe(sema, scope, ast->b, &index);
    const char *name = sema_slot_name(sema, scope, ast->a);
    // Also a take that is wrong binds its name, so that the mistake is told once.
    Symbol *symbol = name ? scope_add(sema, scope, SYM_SLOT, name, ast->a->span) : NULL;
    if (!pipe || !symbol || !slot_in_tiles(sema, ast->span))
        return NULL;
    bool owner = false;
    for (int i = 0; i < pipe->to_count; i++)
        owner |= pipe->to[i] == sema->role;
    if (!owner) {
        DiagItem *item = diag_error(sema->diag, ast->b->span, "wrong-role", "role '%s' can't take from '%s'",
                                    sema->role->name, pipe->name);
        slot_note_wrong_role(sema, item, pipe);
        diag_help(item, "only the roles behind the pipe's '->' take from it; there may be several: -> %s, %s",
                  pipe->to[0]->name, sema->role->name);
        return NULL;
    }
    pipe->to_span = ast->span;
    Stmt *stmt = stmt_make(sema, ST_TAKE, ast->span);
    stmt->slot = slot_make(sema, pipe, index, name, ast->span);
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
        const Ast *name = ast->a->kind == AST_INDEX ? ast->a->a : ast->a;
        const Symbol *symbol = scope_find(scope, name->name);
        if (!symbol)
            scope_unknown(sema, scope, name->name, name->span, "tensor");
        else if (symbol->kind == SYM_TENSOR)
            diag_error(sema->diag, ast->a->span, "shape-mismatch", "'store' needs the positions: %s[...]",
                       name->name);
        else
            diag_error(sema->diag, ast->a->span, "unknown-name", "'store' needs a tensor, but '%s' is %s",
                       name->name, symbol_kind_text(symbol->kind));
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
    if (source && source->kind == SYM_SLOT && source->slot &&
        source->slot->pipe->buffer->space == SPACE_SMEM && source->slot->pipe->buffer->rank == 2) {
        stmt->kind = ST_STORE_TILE;
        stmt->source = sema_slot(sema, scope, ast->b);
        if (!stmt->source)
            return NULL;
        slot_use(sema, stmt->source, ENGINE_STORE, ast->span);
        stmt->tensor.map = tile_find_map(sema, &stmt->tensor, stmt->source->pipe->buffer, true, 1);
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
    local->stored = type.elem;
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
    if (product_is(ast->a)) {
        Stmt *product = product_read(sema, scope, NULL, ast->a, NULL, false, ast->span);
        if (!product) {
            bind_local(sema, scope, ast->name, ast->name_span, NULL);
            return NULL;
        }
        Type type = {ELEM_F32, product->product.m, product->product.n};
        product->local = local_new(sema, ast->name, type, ast->name_span);
        return bind_local(sema, scope, ast->name, ast->name_span, product->local) ? product : NULL;
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

// NULL: reported.
static Stmt *declared_var(Sema *sema, Scope *scope, const Ast *ast) {
    Elem stored = declare_find_elem(sema, scope, ast->b->name, ast->b->span);
    if (stored == ELEM_COUNT)
        return NULL;
    if (stored == ELEM_BOOL) {
        diag_error(sema->diag, ast->b->span, "unknown-type", "a variable holds numbers, not '%s'",
                   ast->b->name);
        return NULL;
    }
    bool packed = elem_bytes(stored) == 2;
    Elem elem = packed ? ELEM_F32 : stored;
    int64_t extents[2] = {1, 1};
    int rank = 0;
    for (const Ast *extent = ast->b->list; extent && rank < 2; extent = extent->next)
        if (!sema_constant_int(sema, scope, extent, "the extent of a variable", 1, 4096, &extents[rank++]))
            return NULL;
    Expr *value = expr_cast(sema, stmt_value(sema, scope, ast->a), elem, ast->a->span);
    if (!value)
        return NULL;
    Type type = {elem, (int)extents[0], (int)extents[1]}, joined;
    if (!stmt_check_tile(sema, type.rows, type.cols, ast->span))
        return NULL;
    if (packed && type.cols % 2) {
        DiagItem *item = diag_error(sema->diag, ast->b->span, "shape-mismatch",
                                    "a variable of %s packs two columns into a register, but has %d",
                                    elem_name(stored), type.cols);
        diag_help(item, "use f32, or an even number of columns");
        return NULL;
    }
    if (!type_join(sema, type, value->type, ast->span, &joined))
        return NULL;
    if (joined.rows != type.rows || joined.cols != type.cols) {
        DiagItem *item =
            diag_error(sema->diag, ast->a->span, "shape-mismatch", "'%s' is %s, but its value is %s",
                       ast->name, type_text(sema, type), type_text(sema, value->type));
        diag_help(
            item,
            "a tile becomes a value a row by rowmax, rowmin or rowsum; 'let' names a value of any shape");
        return NULL;
    }
    sema->role->uses_values |= type.rows > 1;
    Stmt *stmt = stmt_make(sema, ST_LET, ast->span);
    stmt->value = value;
    stmt->local = local_new(sema, ast->name, type, ast->name_span);
    stmt->local->stored = stored;
    stmt->local->is_mutable = true;
    return stmt;
}

static Stmt *read_var(Sema *sema, Scope *scope, const Ast *ast) {
    Stmt *stmt = declared_var(sema, scope, ast);
    return bind_local(sema, scope, ast->name, ast->name_span, stmt ? stmt->local : NULL) ? stmt : NULL;
}

// The variable that a name stands for, or NULL.
static Local *variable_named(Scope *scope, const Ast *ast) {
    Symbol *symbol = ast->kind == AST_NAME ? scope_find(scope, ast->name) : NULL;
    if (!symbol || symbol->kind != SYM_VALUE || !symbol->expr || symbol->expr->kind != X_LOCAL ||
        !symbol->expr->local->is_mutable)
        return NULL;
    return symbol->expr->local;
}

static Stmt *product_into(Sema *sema, Scope *scope, Local *local, const Ast *ast, const Ast *fresh,
                          bool accumulates) {
    Stmt *stmt = product_read(sema, scope, NULL, ast->b, fresh, accumulates, ast->span);
    if (!stmt)
        return NULL;
    stmt->local = local;
    const Product *product = &stmt->product;
    if (local->stored == ELEM_F32 && local->type.rows == product->m && local->type.cols == product->n)
        return stmt;
    Type type = {ELEM_F32, product->m, product->n};
    DiagItem *item = diag_error(
        sema->diag, ast->span, "shape-mismatch", "the product is %s, but '%s' is %s%s", type_text(sema, type),
        local->name, local->stored == ELEM_F32 ? "" : "packed to 16 bits: ", type_text(sema, local->type));
    diag_note(item, local->span, "declared here");
    return NULL;
}

// Its declaration was wrong and has been reported.
static bool is_broken(Scope *scope, const Ast *ast) {
    Symbol *symbol = ast->kind == AST_NAME ? scope_find(scope, ast->name) : NULL;
    return symbol && symbol->kind == SYM_VALUE && !symbol->expr;
}

static Stmt *read_assign(Sema *sema, Scope *scope, const Ast *ast) {
    if (is_broken(scope, ast->a))
        return NULL;
    Local *local = variable_named(scope, ast->a);
    if (!local) {
        DiagItem *item = diag_error(sema->diag, ast->a->span, "not-assignable", "'%s' can't be assigned",
                                    ast_text(sema->diag->sources, sema->arena, ast->a->span));
        diag_help(item, "only variables can: var name : f32[M] = value;");
        return NULL;
    }
    if (product_is(ast->b))
        return product_into(sema, scope, local, ast, NULL, false);
    Expr *value = expr_cast(sema, stmt_value(sema, scope, ast->b), local->type.elem, ast->b->span);
    Type joined;
    if (!value || !type_join(sema, local->type, value->type, ast->span, &joined))
        return NULL;
    if (joined.rows != local->type.rows || joined.cols != local->type.cols) {
        DiagItem *item =
            diag_error(sema->diag, ast->b->span, "shape-mismatch", "'%s' is %s, but the value is %s",
                       local->name, type_text(sema, local->type), type_text(sema, value->type));
        diag_help(
            item,
            "a tile becomes a value a row by rowmax, rowmin or rowsum; 'let' names a value of any shape");
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
        diag_help(diag_error(sema->diag, ast->span, "never-filled",
                             "nothing is written to '%s' in this 'fill'", ast->name),
                  "write to it with: %s += a @ b;", ast->name);
    return stmt;
}

static Stmt *read_accumulate(Sema *sema, Scope *scope, const Ast *ast) {
    if (is_broken(scope, ast->a))
        return NULL;
    Local *local = variable_named(scope, ast->a);
    if (local && product_is(ast->b))
        return product_into(sema, scope, local, ast, ast->c, true);
    if (local) {
        DiagItem *item = diag_error(sema->diag, ast->span, "product-place", "'+=' adds a product: a @ b");
        diag_help(item, "other values are added with: %s = %s + ...;", local->name, local->name);
        return NULL;
    }
    Slot *slot = sema_slot(sema, scope, ast->a);
    if (!slot)
        return NULL;
    if (!slot->filling || !product_is(ast->b)) {
        DiagItem *item = diag_error(sema->diag, ast->span, "product-place",
                                    "'+=' adds a product to a variable, or to a slot that is being filled");
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
    case AST_IN_TURN:
        return control_turn(sema, scope, ast);
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
