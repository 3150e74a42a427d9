// stmt.c: the statements of a role. Slots are linear: each is given up exactly once on every path.
#include "compiler/sema/internal.h"

#include <string.h>

enum { MAX_UNROLLED = 4096 };

static Stmt *stmt_new(Sema *sema, StmtKind kind, Span span) {
    Stmt *stmt = arena_new_of(sema->arena, Stmt);
    stmt->kind = kind;
    stmt->span = span;
    stmt->tensor.map = -1;
    return stmt;
}

static Stmt *read_list(Sema *sema, Scope *scope, const Ast *list);

// ---------------------------------------------------------------- pipes and slots

// The pipe that `pipe` or `pipe[index]` names. *index: NULL, a constant or the replica number.
static Pipe *find_pipe(Sema *sema, Scope *scope, const Ast *ast, Expr **index) {
    const Ast *name = ast->kind == AST_INDEX ? ast->a : ast;
    Symbol *symbol = scope_find(scope, name->name);
    *index = NULL;
    if (!symbol || (symbol->kind == SYM_PIPE && !symbol->pipe) || symbol->kind != SYM_PIPE) {
        if (!symbol || symbol->kind != SYM_PIPE)
            scope_unknown(sema, sema->schedule, name->name, name->span, "pipe");
        return NULL;
    }
    Pipe *pipe = symbol->pipe;
    if (!pipe->is_array) {
        if (ast->kind == AST_INDEX) {
            diag_error(sema->diag, ast->span, "shape-mismatch", "'%s' is a single pipe; it takes no index", pipe->name);
            return NULL;
        }
        return pipe;
    }
    if (ast->kind != AST_INDEX || !ast->list || ast->list->next) {
        diag_error(sema->diag, ast->span, "shape-mismatch", "'%s' is an array of %d pipes; say which: %s[...]", pipe->name,
                   pipe->array, pipe->name);
        return NULL;
    }
    *index = sema_expr(sema, scope, ast->list);
    if (!*index)
        return NULL;
    if ((*index)->kind == X_REPLICA) {
        if (sema->role->replicas <= pipe->array)
            return pipe;
        diag_error(sema->diag, ast->span, "constant-range", "'%s' has %d pipes, but role '%s' has %d replicas", pipe->name,
                   pipe->array, sema->role->name, sema->role->replicas);
        return NULL;
    }
    if ((*index)->kind != X_INT) {
        diag_error(sema->diag, ast->list->span, "not-constant",
                   "which pipe of '%s' must be a constant or the number of the replica", pipe->name);
        return NULL;
    }
    if ((*index)->integer < 0 || (*index)->integer >= pipe->array) {
        diag_error(sema->diag, ast->list->span, "constant-range", "'%s' has %d pipes, numbered from 0; there is no %lld",
                   pipe->name, pipe->array, (long long)(*index)->integer);
        return NULL;
    }
    return pipe;
}

static bool in_tiles(Sema *sema, Span span) {
    if (sema->in_tiles)
        return true;
    DiagItem *item = diag_error(sema->diag, span, "outside-tiles", "this belongs inside the loop over tiles");
    diag_help(item, "for t in %s { ... }", sema->tiles ? sema->tiles->name : "tiles");
    return false;
}

static void note_wrong_role(Sema *sema, DiagItem *item, const Pipe *pipe) {
    const char *takers = "";
    for (int i = 0; i < pipe->to_count; i++)
        takers = arena_format(sema->arena, "%s%s%s", takers, i ? ", " : "", pipe->to[i]->name);
    diag_note(item, pipe->span, "pipe '%s' goes from '%s' to '%s'", pipe->name, pipe->from->name, takers);
}

static Slot *slot_new(Sema *sema, Pipe *pipe, Expr *index, const char *name, Span span) {
    Slot *slot = arena_new_of(sema->arena, Slot);
    slot->name = name;
    slot->number = sema->role->slot_count++;
    slot->pipe = pipe;
    slot->index = index;
    slot->span = span;
    return slot;
}

static void hold(Sema *sema, Slot *slot) {
    Held *held = arena_new_of(sema->arena, Held);
    held->slot = slot;
    held->next = sema->held;
    sema->held = held;
}

static Held *find_held(Sema *sema, const Slot *slot) {
    for (Held *held = sema->held; held; held = held->next)
        if (held->slot == slot)
            return held;
    return NULL;
}

static const Buffer *root_of(const Buffer *buffer) {
    while (buffer->over)
        buffer = buffer->over;
    return buffer;
}

static bool same_index(const Expr *a, const Expr *b) {
    if (!a || !b)
        return a == b;
    return a->kind == b->kind && (a->kind != X_INT || a->integer == b->integer);
}

// The slot over the same bytes that the role holds: a put hands it on.
static Held *held_bytes(Sema *sema, const Pipe *pipe, const Expr *index) {
    for (Held *held = sema->held; held; held = held->next)
        if (!held->gone && !held->slot->filling && held->slot->pipe != pipe &&
            root_of(held->slot->pipe->buffer) == root_of(pipe->buffer) && same_index(held->slot->index, index))
            return held;
    return NULL;
}

static void set_engine(Sema *sema, Engine *engine, Engine now, const Pipe *pipe, Span span, const char *verb) {
    static const char *const TEXT[] = {[ENGINE_LOAD] = "loads from tensors", [ENGINE_PRODUCT] = "the tensor core",
                                       [ENGINE_THREADS] = "the role's threads", [ENGINE_STORE] = "stores to tensors"};
    if (*engine == ENGINE_NONE || *engine == now) {
        *engine = now;
        return;
    }
    DiagItem *item = diag_error(sema->diag, span, "mixed-engines", "pipe '%s' is %s both by %s and by %s", pipe->name, verb,
                                TEXT[*engine], TEXT[now]);
    diag_note(item, pipe->span, "declared here");
    diag_help(item, "give each its own pipe");
}

static void use_slot(Sema *sema, const Slot *slot, Engine engine, Span span) {
    set_engine(sema, &slot->pipe->used_by, engine, slot->pipe, span, "used");
}

// A slot to fill: checks the role, and whether the put hands on bytes that the role holds.
static Slot *open_slot(Sema *sema, Scope *scope, const Ast *target, const char *name, Span span) {
    Expr *index;
    Pipe *pipe = find_pipe(sema, scope, target, &index);
    if (!pipe || !in_tiles(sema, span))
        return NULL;
    if (pipe->from != sema->role) {
        note_wrong_role(sema, diag_error(sema->diag, target->span, "wrong-role", "role '%s' can't put '%s'", sema->role->name,
                                         pipe->name), pipe);
        return NULL;
    }
    Slot *slot = slot_new(sema, pipe, index, name, span);
    slot->filling = true;
    Held *held = held_bytes(sema, pipe, index);
    bool first = !pipe->from_span.end;
    if (!first && pipe->hands_over != (held != NULL)) {
        DiagItem *item = diag_error(sema->diag, span, "round-order",
                                    "'%s' is put sometimes while holding the bytes that it shares, and sometimes not", pipe->name);
        diag_note(item, pipe->from_span, "the other put is here");
        return NULL;
    }
    pipe->from_span = span;
    pipe->hands_over = held != NULL;
    if (held) {
        if (pipe->before && pipe->before != held->slot->pipe) {
            diag_error(sema->diag, span, "round-order", "'%s' takes over bytes from two different pipes", pipe->name);
            return NULL;
        }
        pipe->before = held->slot->pipe;
        slot->handed_from = held->slot;
    }
    return slot;
}

static void hand_on(Sema *sema, const Slot *slot, Span span) {
    if (!slot->handed_from)
        return;
    Held *held = find_held(sema, slot->handed_from);
    held->gone = true;
    held->gone_span = span;
    if (slot->handed_from->pipe->used_by == ENGINE_NONE)
        slot->handed_from->pipe->used_by = ENGINE_THREADS;
}

// ---------------------------------------------------------------- tensor tiles

static const Ast *list_at(const Ast *list, int i) {
    while (list && i-- > 0)
        list = list->next;
    return list;
}

static Expr *position(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *expr = sema_expr(sema, scope, ast);
    if (expr && expr->type.elem != ELEM_I32) {
        diag_error(sema->diag, ast->span, "type-mismatch", "a position must be i32, not %s", type_text(sema, expr->type));
        return NULL;
    }
    return expr;
}

// T[...]: positions for the leading dims; constant dims at the end may be left out (the whole extent).
static bool read_tensor_ref(Sema *sema, Scope *scope, const Ast *ast, TensorRef *ref) {
    Symbol *symbol = scope_find(scope, ast->a->name);
    Tensor *tensor = &sema->plan->tensors[symbol->index];
    ref->tensor = symbol->index;
    ref->span = ast->span;
    ref->map = -1;
    int given = 0;
    for (const Ast *at = ast->list; at; at = at->next)
        given++;
    for (int i = 0; i < tensor->rank; i++) {
        const Ast *at = list_at(ast->list, i);
        if (at) {
            ref->at[i] = position(sema, scope, at);
        } else if (tensor->dims[i].kind == DIM_CONSTANT) {
            ref->at[i] = expr_int(sema, 0, ast->span);
        } else {
            DiagItem *item = diag_error(sema->diag, ast->span, "shape-mismatch", "tensor '%s' has %d dims, but %d are given",
                                        tensor->name, tensor->rank, given);
            diag_note(item, tensor->span, "declared here");
            return false;
        }
        if (!ref->at[i])
            return false;
        if (tensor->dims[i].kind == DIM_AXIS) {
            plan_field(sema->plan, FIELD_BASE, ref->tensor, i);
            plan_field(sema->plan, FIELD_LEN, tensor->dims[i].index, 0);
        }
    }
    if (given > tensor->rank) {
        diag_error(sema->diag, ast->span, "shape-mismatch", "tensor '%s' has %d dims, but %d are given", tensor->name,
                   tensor->rank, given);
        return false;
    }
    return true;
}

static bool is_tensor(Scope *scope, const Ast *ast) {
    if (ast->kind != AST_INDEX || ast->a->kind != AST_NAME)
        return false;
    Symbol *symbol = scope_find(scope, ast->a->name);
    return symbol && symbol->kind == SYM_TENSOR;
}

// The tensor map by which tiles of that buffer's shape move: the tile's dims are the tensor's axes and constants.
static int find_map(Sema *sema, const TensorRef *ref, const Buffer *buffer, bool is_store) {
    Plan *plan = sema->plan;
    Tensor *tensor = &plan->tensors[ref->tensor];
    int tile_dims[MAX_TENSOR_DIMS], count = 0;
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->dims[i].kind != DIM_RUNTIME)
            tile_dims[count++] = i;
    bool fits = count == 2 && tile_dims[1] == tensor->rank - 1 && tensor->dims[tile_dims[0]].kind == DIM_AXIS && buffer->rank == 2;
    if (fits && tensor->dims[tile_dims[1]].kind == DIM_CONSTANT)
        fits = tensor->dims[tile_dims[1]].extent == buffer->cols;
    if (!fits || tensor->elem != buffer->elem) {
        DiagItem *item = diag_error(sema->diag, ref->span, fits ? "type-mismatch" : "shape-mismatch",
                                    "a tile of tensor '%s' doesn't fit buffer '%s': %s[%d, %d]", tensor->name, buffer->name,
                                    elem_name(buffer->elem), buffer->rows, buffer->cols);
        diag_note(item, tensor->span, "'%s' holds %s, and its last dim is %s", tensor->name, elem_name(tensor->elem),
                  tensor->dims[tensor->rank - 1].kind == DIM_CONSTANT
                      ? arena_format(sema->arena, "%lld wide", (long long)tensor->dims[tensor->rank - 1].extent)
                      : "an axis");
        diag_note(item, buffer->span, "'%s' is declared here", buffer->name);
        return -1;
    }
    TensorMap map = {.tensor = ref->tensor, .is_store = is_store, .rows = buffer->rows, .cols = buffer->cols,
                     .row_dim = tile_dims[0], .col_dim = tile_dims[1]};
    map.swizzle_bytes = swizzle_bytes_for(buffer->cols * elem_bytes(buffer->elem));
    map.chunk_cols = map.swizzle_bytes / elem_bytes(buffer->elem);
    // One instruction moves all chunks of a constant row; along an axis each chunk is its own.
    if (tensor->dims[map.col_dim].kind == DIM_CONSTANT && map.chunk_cols && buffer->cols > map.chunk_cols)
        map.chunks = buffer->cols / map.chunk_cols;
    if (count + (map.chunks > 0) + 1 + tensor->rank - count > 5) {
        diag_error(sema->diag, ref->span, "shape-mismatch", "tensor '%s' has too many dims to be moved as tiles", tensor->name);
        return -1;
    }
    for (int i = 0; i < plan->map_count; i++) {
        TensorMap *known = &plan->maps[i];
        if (known->tensor == map.tensor && known->rows == map.rows && known->cols == map.cols)
            return i;
    }
    if (plan->map_count == plan->map_capacity) {
        int capacity = plan->map_capacity ? 2 * plan->map_capacity : 8;
        TensorMap *maps = arena_array(sema->arena, TensorMap, capacity);
        if (plan->map_count)
            memcpy(maps, plan->maps, sizeof *maps * (size_t)plan->map_count);
        plan->maps = maps;
        plan->map_capacity = capacity;
    }
    plan->maps[plan->map_count] = map;
    return plan->map_count++;
}

static bool check_direction(Sema *sema, const TensorRef *ref, bool writes) {
    Tensor *tensor = &sema->plan->tensors[ref->tensor];
    if (tensor->direction == TENSOR_INOUT || tensor->direction == (writes ? TENSOR_OUT : TENSOR_IN))
        return true;
    DiagItem *item = diag_error(sema->diag, ref->span, writes ? "read-only" : "write-only", "tensor '%s' is an %s", tensor->name,
                                writes ? "input; it can't be stored to" : "output; it can't be read");
    diag_note(item, tensor->span, "declared here");
    return false;
}

// ---------------------------------------------------------------- products

typedef struct {
    Slot *slot;
    bool transposed;
    int rows, cols; // after transposing
} Operand;

static bool read_operand(Sema *sema, Scope *scope, const Ast *ast, Operand *operand) {
    operand->transposed = ast->kind == AST_TRANSPOSE;
    const Ast *inner = operand->transposed ? ast->a : ast;
    if (inner->kind != AST_NAME && inner->kind != AST_INDEX) {
        DiagItem *item = diag_error(sema->diag, ast->span, "product-place", "an operand of a product must be a slot, or a slot^T");
        diag_help(item, "products read tiles in shared or tensor memory; put a computed tile into a pipe first");
        return false;
    }
    operand->slot = sema_slot(sema, scope, inner);
    if (!operand->slot)
        return false;
    const Buffer *buffer = operand->slot->pipe->buffer;
    if (operand->slot->filling || buffer->rank != 2) {
        diag_error(sema->diag, ast->span, "shape-mismatch", "slot '%s' can't be an operand: %s", operand->slot->name,
                   operand->slot->filling ? "it is being filled" : "it is a vector");
        return false;
    }
    if (elem_bytes(buffer->elem) != 2) {
        diag_error(sema->diag, ast->span, "product-type", "the tensor core multiplies bf16 or f16, not %s", elem_name(buffer->elem));
        return false;
    }
    operand->rows = operand->transposed ? buffer->cols : buffer->rows;
    operand->cols = operand->transposed ? buffer->rows : buffer->cols;
    use_slot(sema, operand->slot, ENGINE_PRODUCT, ast->span);
    return true;
}

// Which shapes the tensor core has, in words.
static bool shape_supported(Sema *sema, const Product *product, Span span) {
    const Target *target = sema->plan->target;
    bool m_fits = false;
    const char *rows = "";
    for (int i = 0; i < target->product_m_count; i++) {
        m_fits |= product->m == target->product_m[i];
        rows = arena_format(sema->arena, "%s%s%d", rows, i ? " or " : "", target->product_m[i]);
    }
    bool n_fits = product->n % target->product_n_step == 0 && product->n > 0 && product->n <= target->product_n_max;
    if (m_fits && n_fits && product->k % target->product_k == 0)
        return true;
    DiagItem *item = diag_error(sema->diag, span, "product-shape", "%s has no product of [%d, %d] by [%d, %d]", target->name,
                                product->m, product->k, product->k, product->n);
    diag_help(item, "supported: %s rows; columns a multiple of %d up to %d; inner extent a multiple of %d", rows,
              target->product_n_step, target->product_n_max, target->product_k);
    return false;
}

static Stmt *read_product(Sema *sema, Scope *scope, Slot *into, const Ast *value, const Ast *fresh, bool accumulates,
                          Span span) {
    Operand a, b;
    if (!read_operand(sema, scope, value->a, &a) | !read_operand(sema, scope, value->b, &b))
        return NULL;
    const Buffer *result = into->pipe->buffer;
    Product product = {.a = a.slot, .b = b.slot, .a_transposed = a.transposed, .b_transposed = b.transposed,
                       .m = a.rows, .n = b.cols, .k = a.cols};
    if (a.cols != b.rows) {
        diag_error(sema->diag, value->span, "shape-mismatch", "[%d, %d] @ [%d, %d]: the inner extents differ", a.rows, a.cols,
                   b.rows, b.cols);
        return NULL;
    }
    if (a.slot->pipe->buffer->elem != b.slot->pipe->buffer->elem) {
        diag_error(sema->diag, value->span, "type-mismatch", "a product needs operands of one type, not %s and %s",
                   elem_name(a.slot->pipe->buffer->elem), elem_name(b.slot->pipe->buffer->elem));
        return NULL;
    }
    if (result->space != SPACE_TMEM || result->elem != ELEM_F32 || result->rows != product.m || result->cols != product.n) {
        DiagItem *item = diag_error(sema->diag, span, "shape-mismatch",
                                    "the product is f32[%d, %d] in tensor memory; buffer '%s' is %s[%d, %d] in %s memory",
                                    product.m, product.n, result->name, elem_name(result->elem), result->rows, result->cols,
                                    result->space == SPACE_TMEM ? "tensor" : "shared");
        diag_note(item, result->span, "declared here");
        return NULL;
    }
    if (b.slot->pipe->buffer->space == SPACE_TMEM || (a.transposed && a.slot->pipe->buffer->space == SPACE_TMEM)) {
        diag_error(sema->diag, value->span, "product-place",
                   b.slot->pipe->buffer->space == SPACE_TMEM ? "the right operand of a product must be in shared memory"
                                                             : "an operand in tensor memory can't be transposed");
        return NULL;
    }
    if (!shape_supported(sema, &product, value->span))
        return NULL;
    set_engine(sema, &into->pipe->filled_by, ENGINE_PRODUCT, into->pipe, span, "filled");
    sema->role->issues_products = true;
    Stmt *stmt = stmt_new(sema, ST_PRODUCT, span);
    stmt->slot = into;
    stmt->product = product;
    stmt->fresh = accumulates ? NULL : expr_bool(sema, true, span);
    if (fresh) {
        stmt->fresh = expr_cast(sema, sema_expr(sema, scope, fresh), ELEM_BOOL);
        if (!stmt->fresh)
            return NULL;
        if (!type_is_uniform(stmt->fresh->type)) {
            diag_error(sema->diag, fresh->span, "not-uniform", "'fresh if' needs one condition for the whole tile");
            return NULL;
        }
    }
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
    DiagItem *item = diag_error(sema->diag, span, "role-size", "a tile of %d rows in role '%s' of %d warp%s (%d threads)", rows,
                                sema->role->name, sema->role->warps, sema->role->warps == 1 ? "" : "s", 32 * sema->role->warps);
    diag_note(item, sema->role->warps_span, "the role's warps are stated here");
    diag_help(item, "each thread of a role that computes on tiles holds one row: %d rows need %d warps", rows, (rows + 31) / 32);
}

static void collect_uses(Sema *sema, Expr *expr, Span span) {
    if (!expr || expr->mark == sema->plan->marks)
        return;
    expr->mark = sema->plan->marks;
    if (expr->kind == X_SLOT) {
        use_slot(sema, expr->slot, ENGINE_THREADS, span);
        check_rows(sema, expr->slot->pipe->buffer->rows, expr->span);
        return;
    }
    collect_uses(sema, expr->a, span);
    collect_uses(sema, expr->b, span);
    collect_uses(sema, expr->c, span);
    for (int i = 0; i < expr->arg_count; i++)
        collect_uses(sema, expr->args[i], span);
}

static Expr *read_value(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *value = sema_expr(sema, scope, ast);
    sema->plan->marks++;
    collect_uses(sema, value, ast->span);
    return value;
}

// ---------------------------------------------------------------- statements

static Stmt *read_put(Sema *sema, Scope *scope, const Ast *ast) {
    Slot *slot = open_slot(sema, scope, ast->a, arena_format(sema->arena, "put@%d", sema->role->slot_count), ast->span);
    if (!slot)
        return NULL;
    const Ast *value = ast->b;
    if (value->kind == AST_BINARY && value->op == '@') {
        Stmt *product = read_product(sema, scope, slot, value, ast->c, ast->flag, ast->span);
        if (!product)
            return NULL;
        hand_on(sema, slot, ast->span);
        Stmt *fill = stmt_new(sema, ST_FILL, ast->span);
        fill->slot = slot;
        fill->body = product;
        return fill;
    }
    if (ast->flag) {
        DiagItem *item = diag_error(sema->diag, ast->span, "product-place", "'put ... +=' needs a product: a @ b");
        diag_help(item, "to change what a slot holds, the taker writes 'update slot = value;'");
        return NULL;
    }
    if (is_tensor(scope, value) && slot->pipe->buffer->space == SPACE_SMEM && slot->pipe->buffer->rank == 2) {
        Stmt *stmt = stmt_new(sema, ST_PUT_LOAD, ast->span);
        stmt->slot = slot;
        if (!read_tensor_ref(sema, scope, value, &stmt->tensor) || !check_direction(sema, &stmt->tensor, false))
            return NULL;
        stmt->tensor.map = find_map(sema, &stmt->tensor, slot->pipe->buffer, false);
        set_engine(sema, &slot->pipe->filled_by, ENGINE_LOAD, slot->pipe, ast->span, "filled");
        hand_on(sema, slot, ast->span);
        return stmt->tensor.map < 0 ? NULL : stmt;
    }
    Stmt *stmt = stmt_new(sema, ST_PUT_VALUE, ast->span);
    stmt->slot = slot;
    stmt->value = read_value(sema, scope, value);
    sema->role->uses_values = true;
    sema->role->touches_tmem |= slot->pipe->buffer->space == SPACE_TMEM;
    hand_on(sema, slot, ast->span);
    if (!stmt->value || !fits_buffer(sema, stmt->value, slot->pipe->buffer, value->span))
        return NULL;
    check_rows(sema, slot->pipe->buffer->rows, ast->span);
    set_engine(sema, &slot->pipe->filled_by, ENGINE_THREADS, slot->pipe, ast->span, "filled");
    return stmt;
}

static Stmt *read_take(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *index;
    Pipe *pipe = find_pipe(sema, scope, ast->b, &index);
    const char *name = sema_slot_name(sema, scope, ast->a);
    if (!pipe || !name || !in_tiles(sema, ast->span))
        return NULL;
    bool owner = false;
    for (int i = 0; i < pipe->to_count; i++)
        owner |= pipe->to[i] == sema->role;
    if (!owner) {
        note_wrong_role(sema, diag_error(sema->diag, ast->b->span, "wrong-role", "role '%s' can't take from '%s'",
                                         sema->role->name, pipe->name), pipe);
        return NULL;
    }
    pipe->to_span = ast->span;
    Stmt *stmt = stmt_new(sema, ST_TAKE, ast->span);
    stmt->slot = slot_new(sema, pipe, index, name, ast->span);
    Symbol *symbol = scope_add(sema, scope, SYM_SLOT, name, ast->a->span);
    if (!symbol)
        return NULL;
    symbol->slot = stmt->slot;
    hold(sema, stmt->slot);
    return stmt;
}

static Stmt *read_free(Sema *sema, Scope *scope, const Ast *ast) {
    Slot *slot = sema_slot(sema, scope, ast->a);
    if (!slot)
        return NULL;
    if (slot->filling) {
        diag_error(sema->diag, ast->span, "slot-filling", "slot '%s' is being filled; it is published at the end of 'fill'", slot->name);
        return NULL;
    }
    Held *held = find_held(sema, slot);
    held->gone = true;
    held->gone_span = ast->span;
    if (slot->pipe->used_by == ENGINE_NONE)
        slot->pipe->used_by = ENGINE_THREADS;
    Stmt *stmt = stmt_new(sema, ST_FREE, ast->span);
    stmt->slot = slot;
    return stmt;
}

static Stmt *read_update(Sema *sema, Scope *scope, const Ast *ast) {
    Slot *slot = sema_slot(sema, scope, ast->a);
    Expr *value = read_value(sema, scope, ast->b);
    if (!slot || !value)
        return NULL;
    if (!slot->pipe->in_place) {
        DiagItem *item = diag_error(sema->diag, ast->span, "not-in-place", "pipe '%s' doesn't return its contents, so changing them is lost",
                                    slot->pipe->name);
        diag_note(item, slot->pipe->span, "declare it '... in place' to hand contents back with the slot");
        return NULL;
    }
    if (!fits_buffer(sema, value, slot->pipe->buffer, ast->b->span))
        return NULL;
    use_slot(sema, slot, ENGINE_THREADS, ast->span);
    sema->role->uses_values = true;
    sema->role->touches_tmem |= slot->pipe->buffer->space == SPACE_TMEM;
    Stmt *stmt = stmt_new(sema, ST_UPDATE, ast->span);
    stmt->slot = slot;
    stmt->value = value;
    return stmt;
}

static Stmt *read_store(Sema *sema, Scope *scope, const Ast *ast) {
    if (!is_tensor(scope, ast->a)) {
        diag_error(sema->diag, ast->a->span, "unknown-name", "'store' needs a tensor with its positions: T[...]");
        return NULL;
    }
    Stmt *stmt = stmt_new(sema, ST_STORE_VALUE, ast->span);
    if (!in_tiles(sema, ast->span) || !read_tensor_ref(sema, scope, ast->a, &stmt->tensor) ||
        !check_direction(sema, &stmt->tensor, true))
        return NULL;
    const char *name = ast->b->kind == AST_NAME ? ast->b->name
                       : ast->b->kind == AST_INDEX && ast->b->a->kind == AST_NAME && !is_tensor(scope, ast->b)
                           ? sema_slot_name(sema, scope, ast->b)
                           : NULL;
    Symbol *source = name ? scope_find(scope, name) : NULL;
    if (source && source->kind == SYM_SLOT && source->slot->pipe->buffer->space == SPACE_SMEM &&
        source->slot->pipe->buffer->rank == 2) {
        stmt->kind = ST_STORE_TILE;
        stmt->source = sema_slot(sema, scope, ast->b);
        if (!stmt->source)
            return NULL;
        use_slot(sema, stmt->source, ENGINE_STORE, ast->span);
        stmt->tensor.map = find_map(sema, &stmt->tensor, stmt->source->pipe->buffer, true);
        return stmt->tensor.map < 0 ? NULL : stmt;
    }
    stmt->value = read_value(sema, scope, ast->b);
    sema->role->uses_values = true;
    if (!stmt->value)
        return NULL;
    Type type = stmt->value->type;
    for (int i = 0; i < sema->plan->tensors[stmt->tensor.tensor].rank; i++)
        if (!type_join(sema, type, stmt->tensor.at[i]->type, ast->span, &type))
            return NULL;
    Elem elem = sema->plan->tensors[stmt->tensor.tensor].elem;
    stmt->value = expr_cast(sema, stmt->value, elem_is_float(elem) ? ELEM_F32 : elem);
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
        diag_error(sema->diag, ast->span, "reference-only", "a family of values 'let x[i in axis]' can stand only in a reference");
        return NULL;
    }
    Expr *value = read_value(sema, scope, ast->a);
    if (!value || expr_is_constant(value)) {
        Symbol *symbol = bind_local(sema, scope, ast->name, ast->name_span, NULL);
        if (symbol)
            symbol->expr = value;
        return NULL;
    }
    Stmt *stmt = stmt_new(sema, ST_LET, ast->span);
    stmt->value = value;
    stmt->local = local_new(sema, ast->name, value->type, ast->name_span);
    return bind_local(sema, scope, ast->name, ast->name_span, stmt->local) ? stmt : NULL;
}

static Stmt *read_var(Sema *sema, Scope *scope, const Ast *ast) {
    Elem elem = !strcmp(ast->b->name, "f32") ? ELEM_F32 : !strcmp(ast->b->name, "i32") ? ELEM_I32 : ELEM_COUNT;
    if (elem == ELEM_COUNT) {
        diag_error(sema->diag, ast->b->span, "unknown-type", "a variable is f32 or i32, not '%s'", ast->b->name);
        return NULL;
    }
    int64_t extents[2] = {1, 1};
    int rank = 0;
    for (const Ast *extent = ast->b->list; extent && rank < 2; extent = extent->next)
        if (!sema_constant_int(sema, scope, extent, "the extent of a variable", 1, 4096, &extents[rank++]))
            return NULL;
    Expr *value = expr_cast(sema, read_value(sema, scope, ast->a), elem);
    if (!value)
        return NULL;
    Type type = {elem, (int)extents[0], (int)extents[1]}, joined;
    check_rows(sema, type.rows, ast->span);
    if (!type_join(sema, type, value->type, ast->span, &joined))
        return NULL;
    if (joined.rows != type.rows || joined.cols != type.cols) {
        diag_error(sema->diag, ast->span, "shape-mismatch", "'%s' is %s, but its value is %s", ast->name, type_text(sema, type),
                   type_text(sema, value->type));
        return NULL;
    }
    sema->role->uses_values |= type.rows > 1;
    Stmt *stmt = stmt_new(sema, ST_LET, ast->span);
    stmt->value = value;
    stmt->local = local_new(sema, ast->name, type, ast->name_span);
    stmt->local->is_mutable = true;
    return bind_local(sema, scope, ast->name, ast->name_span, stmt->local) ? stmt : NULL;
}

static Stmt *read_assign(Sema *sema, Scope *scope, const Ast *ast) {
    Symbol *symbol = ast->a->kind == AST_NAME ? scope_find(scope, ast->a->name) : NULL;
    if (!symbol || symbol->kind != SYM_VALUE || !symbol->expr || symbol->expr->kind != X_LOCAL || !symbol->expr->local->is_mutable) {
        DiagItem *item = diag_error(sema->diag, ast->a->span, "not-assignable", "'%s' can't be assigned",
                                    ast_text(sema->diag->sources, sema->arena, ast->a->span));
        diag_help(item, "only variables can: var name : f32[M] = value;");
        return NULL;
    }
    Local *local = symbol->expr->local;
    Expr *value = expr_cast(sema, read_value(sema, scope, ast->b), local->type.elem);
    Type joined;
    if (!value || !type_join(sema, local->type, value->type, ast->span, &joined))
        return NULL;
    if (joined.rows != local->type.rows || joined.cols != local->type.cols) {
        diag_error(sema->diag, ast->span, "shape-mismatch", "'%s' is %s, but the value is %s", local->name,
                   type_text(sema, local->type), type_text(sema, value->type));
        return NULL;
    }
    Stmt *stmt = stmt_new(sema, ST_SET, ast->span);
    stmt->local = local;
    stmt->value = value;
    return stmt;
}

static Stmt *read_fill(Sema *sema, Scope *scope, const Ast *ast) {
    Slot *slot = open_slot(sema, scope, ast->a, ast->name, ast->span);
    if (!slot)
        return NULL;
    Scope *inner = scope_new(sema, scope);
    Symbol *symbol = scope_add(sema, inner, SYM_SLOT, ast->name, ast->name_span);
    symbol->slot = slot;
    hand_on(sema, slot, ast->span);
    Stmt *stmt = stmt_new(sema, ST_FILL, ast->span);
    stmt->slot = slot;
    stmt->body = read_list(sema, inner, ast->list2);
    if (slot->pipe->filled_by == ENGINE_NONE)
        diag_error(sema->diag, ast->span, "never-filled", "nothing is written to '%s' in this 'fill'", ast->name);
    return stmt;
}

static Stmt *read_accumulate(Sema *sema, Scope *scope, const Ast *ast) {
    Slot *slot = sema_slot(sema, scope, ast->a);
    if (!slot)
        return NULL;
    if (!slot->filling || ast->b->kind != AST_BINARY || ast->b->op != '@') {
        DiagItem *item = diag_error(sema->diag, ast->span, "product-place", "'+=' adds a product to a slot that is being filled");
        diag_help(item, "fill d = pipe { d += a @ b fresh if first; }");
        return NULL;
    }
    return read_product(sema, scope, slot, ast->b, ast->c, true, ast->span);
}

// ---------------------------------------------------------------- control

// Reads a body in its own scope; slots taken in it must be gone at its end.
static Stmt *read_block(Sema *sema, Scope *scope, const Ast *list) {
    Held *outer = sema->held;
    Stmt *body = read_list(sema, scope, list);
    for (Held *held = sema->held; held != outer; held = held->next)
        if (!held->gone) {
            DiagItem *item = diag_error(sema->diag, held->slot->span, "slot-not-freed", "slot '%s' is taken but not freed",
                                        held->slot->name);
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
            DiagItem *item = diag_error(sema->diag, held->gone_span, "slot-in-loop",
                                        "slot '%s' is given up inside a loop, which may run any number of times", held->slot->name);
            diag_note(item, held->slot->span, "it was taken here, outside the loop");
        }
}

static Stmt *read_if(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *condition = expr_cast(sema, read_value(sema, scope, ast->a), ELEM_BOOL);
    if (condition && condition->kind == X_BOOL) {
        Stmt *group = stmt_new(sema, ST_IF, ast->span);
        group->value = condition;
        Scope *inner = scope_new(sema, scope);
        *(condition->integer ? &group->body : &group->other) =
            read_block(sema, inner, condition->integer ? ast->list2 : ast->list);
        return group;
    }
    if (condition && !type_is_uniform(condition->type)) {
        DiagItem *item = diag_error(sema->diag, ast->a->span, "not-uniform", "a condition must be the same for the whole role");
        diag_help(item, "choose per element with: condition ? a : b");
        return NULL;
    }
    Stmt *stmt = stmt_new(sema, ST_IF, ast->span);
    stmt->value = condition;
    bool *before = snapshot(sema);
    stmt->body = read_block(sema, scope_new(sema, scope), ast->list2);
    bool *after = snapshot(sema);
    restore(sema, before);
    stmt->other = read_block(sema, scope_new(sema, scope), ast->list);
    int i = 0;
    for (Held *held = sema->held; held; held = held->next, i++)
        if (held->gone != after[i]) {
            DiagItem *item = diag_error(sema->diag, held->gone_span.end ? held->gone_span : ast->span, "slot-one-path",
                                        "slot '%s' is given up on one path of this 'if' only", held->slot->name);
            diag_note(item, ast->span, "the other path keeps it");
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
            diag_error(sema->diag, ast->span, "too-many", "constant loops expand to more than %d bodies", MAX_UNROLLED);
            return first;
        }
        // Slots taken in the body outlive one round under their indexed names, so they go into the outer scope.
        Scope *inner = scope_new(sema, scope);
        Symbol *symbol = scope_add(sema, inner, SYM_VALUE, bind->name, bind->span);
        symbol->expr = expr_int(sema, i, bind->span);
        *tail = read_list(sema, inner, ast->list2);
        for (Symbol *own = inner->symbols, *next; own; own = next) {
            next = own->next;
            if (own->kind == SYM_SLOT && strchr(own->name, '[') && !scope_find(scope, own->name)) {
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
    Stmt *stmt = stmt_new(sema, ST_WALK, ast->span);
    stmt->part = part;
    stmt->block = arena_new_of(sema->arena, Block);
    stmt->block->name = ast->list->name;
    stmt->block->walk = walk;
    stmt->block->number = sema->role->block_count++;
    Scope *inner = scope_new(sema, scope);
    Symbol *symbol = scope_add(sema, inner, SYM_BLOCK, ast->list->name, ast->list->name_span);
    symbol->block = stmt->block;
    bool *before = snapshot(sema);
    stmt->body = read_block(sema, inner, ast->list2);
    check_loop(sema, before);
    return stmt;
}

static Stmt *read_tiles(Sema *sema, Scope *scope, const Ast *ast) {
    if (sema->in_tiles) {
        diag_error(sema->diag, ast->span, "outside-tiles", "a loop over tiles can't stand inside another loop");
        return NULL;
    }
    Stmt *stmt = stmt_new(sema, ST_TILES, ast->span);
    Scope *inner = scope_new(sema, scope);
    scope_add(sema, inner, SYM_TILE, ast->list->name, ast->list->name_span);
    sema->in_tiles = true;
    stmt->body = read_block(sema, inner, ast->list2);
    sema->in_tiles = false;
    return stmt;
}

static Stmt *read_for(Sema *sema, Scope *scope, const Ast *ast) {
    const Ast *bind = ast->list;
    if (bind->next) {
        diag_error(sema->diag, ast->span, "reference-only", "a loop over several indices can stand only in a reference");
        return NULL;
    }
    Symbol *range = bind->a->kind == AST_NAME ? scope_find(scope, bind->a->name) : NULL;
    if (range && range->kind == SYM_TILES)
        return read_tiles(sema, scope, ast);
    Walk *walk = sema_walk_of(sema, scope, bind->a);
    if (walk)
        return read_walk(sema, scope, ast, walk, PART_ALL);
    if (bind->a->kind == AST_MEMBER && (walk = sema_walk_of(sema, scope, bind->a->a))) {
        static const char *const PARTS[] = {[PART_FIRST] = "first", [PART_REST] = "rest", [PART_LAST] = "last"};
        for (int part = PART_FIRST; part <= PART_LAST; part++)
            if (!strcmp(PARTS[part], bind->a->name))
                return read_walk(sema, scope, ast, walk, (WalkPart)part);
        diag_error(sema->diag, bind->a->name_span, "unknown-member", "a walk's parts are first, rest and last, not '%s'", bind->a->name);
        return NULL;
    }
    return unroll(sema, scope, ast, bind);
}

static Stmt *read_stmt(Sema *sema, Scope *scope, const Ast *ast) {
    switch (ast->kind) {
    case AST_LET: return read_let(sema, scope, ast);
    case AST_VAR: return read_var(sema, scope, ast);
    case AST_ASSIGN: return read_assign(sema, scope, ast);
    case AST_TAKE: return read_take(sema, scope, ast);
    case AST_PUT: return read_put(sema, scope, ast);
    case AST_FILL: return read_fill(sema, scope, ast);
    case AST_ACCUM: return read_accumulate(sema, scope, ast);
    case AST_FREE: return read_free(sema, scope, ast);
    case AST_UPDATE: return read_update(sema, scope, ast);
    case AST_STORE: return read_store(sema, scope, ast);
    case AST_FOR: return read_for(sema, scope, ast);
    case AST_IF: return read_if(sema, scope, ast);
    default: return NULL;
    }
}

static Stmt *read_list(Sema *sema, Scope *scope, const Ast *list) {
    Stmt *first = NULL, **tail = &first;
    for (const Ast *ast = list; ast; ast = ast->next) {
        *tail = read_stmt(sema, scope, ast);
        while (*tail)
            tail = &(*tail)->next;
    }
    return first;
}

// A role either computes on tiles with all its threads, or moves and multiplies them from one thread.
static void check_kind(Sema *sema, Role *role, const Stmt *stmt) {
    for (; stmt; stmt = stmt->next) {
        bool single = stmt->kind == ST_PUT_LOAD || stmt->kind == ST_PRODUCT || stmt->kind == ST_STORE_TILE;
        if (single) {
            DiagItem *item = diag_error(sema->diag, stmt->span, "mixed-role",
                                        "role '%s' computes on tiles and also %s", role->name,
                                        stmt->kind == ST_PRODUCT ? "issues products" : "moves tiles");
            diag_help(item, "give loads, stores of tiles and products a role of 1 warp of their own");
            return;
        }
        check_kind(sema, role, stmt->body);
        check_kind(sema, role, stmt->other);
    }
}

void sema_role(Sema *sema, Role *role, const Ast *ast) {
    sema->role = role;
    sema->held = NULL;
    sema->in_tiles = false;
    Scope *scope = scope_new(sema, sema->schedule);
    if (role->replica_name) {
        static const Type REPLICA = {ELEM_I32, 1, 1};
        Symbol *symbol = scope_add(sema, scope, SYM_VALUE, role->replica_name, ast->list->span);
        if (symbol)
            symbol->expr = expr_new(sema, X_REPLICA, REPLICA, ast->list->span);
    }
    role->body = read_block(sema, scope, ast->list2);
    if (role->uses_values)
        check_kind(sema, role, role->body);
    else if (role->warps != 1) {
        DiagItem *item = diag_error(sema->diag, role->warps_span, "role-size",
                                    "role '%s' has %d warps but computes on no tile", role->name, role->warps);
        diag_help(item, "loads, stores and products are issued by one thread: 1 warp is enough");
    }
    sema->role = NULL;
}
