// tiles.c: tiles of tensors, and the maps by which they move.
#include "compiler/sema/internal.h"

#include <string.h>

static const Ast *list_at(const Ast *list, int i) {
    while (list && i-- > 0)
        list = list->next;
    return list;
}

static Expr *position(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *expr = sema_expr(sema, scope, ast);
    if (expr && expr->type.elem != ELEM_I32) {
        diag_error(sema->diag, ast->span, "type-mismatch", "a position must be i32, not %s",
                   type_text(sema, expr->type));
        return NULL;
    }
    return expr;
}

void tile_wrong_rank(Sema *sema, const Tensor *tensor, Span span, int given) {
    if (tensor->is_broken)
        return;
    DiagItem *item = diag_error(sema->diag, span, "shape-mismatch",
                                "tensor '%s' has %d dim%s, but %d %s given", tensor->name, tensor->rank,
                                tensor->rank == 1 ? "" : "s", given, given == 1 ? "is" : "are");
    diag_note(item, tensor->span, "declared here");
    diag_help(item, "give a position for each, in that order; only constant dims at the end may be left out");
}

// T[...]: positions for the leading dims; constant dims at the end may be left out (the whole extent).
bool tile_read_ref(Sema *sema, Scope *scope, const Ast *ast, TensorRef *ref) {
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
        ref->at_span[i] = at ? at->span : ast->span;
        if (at) {
            ref->at[i] = position(sema, scope, at);
        } else if (tensor->dims[i].kind == DIM_CONSTANT) {
            ref->at[i] = expr_int(sema, 0, ast->span);
        } else {
            tile_wrong_rank(sema, tensor, ast->span, given);
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
        tile_wrong_rank(sema, tensor, ast->span, given);
        return false;
    }
    return true;
}

bool tile_is_tensor(Scope *scope, const Ast *ast) {
    if (ast->kind != AST_INDEX || ast->a->kind != AST_NAME)
        return false;
    Symbol *symbol = scope_find(scope, ast->a->name);
    return symbol && symbol->kind == SYM_TENSOR;
}

// Why a tile of that tensor can't be held by that buffer: only its type differs, its width, or more.
static void tile_does_not_fit(Sema *sema, const Tensor *tensor, const Buffer *buffer, Span span,
                              bool type_only) {
    const TensorDim *last = &tensor->dims[tensor->rank - 1];
    const char *elem = elem_name(tensor->elem), *own = elem_name(buffer->elem);
    DiagItem *item;
    if (type_only) {
        item = diag_error(sema->diag, span, "type-mismatch", "tensor '%s' holds %s, but buffer '%s' %s",
                          tensor->name, elem, buffer->name, own);
        diag_help(item, "a copy of a tile changes no types: declare '%s' as %s", buffer->name, elem);
    } else if (buffer->rank == 2 && last->kind == DIM_CONSTANT && last->extent != buffer->cols) {
        item = diag_error(sema->diag, span, "shape-mismatch",
                          "a tile of tensor '%s' has %lld columns, but buffer '%s' %d", tensor->name,
                          (long long)last->extent, buffer->name, buffer->cols);
        diag_help(item, "a tile holds whole rows: declare '%s' as %s[%d, %lld]", buffer->name, elem,
                  buffer->rows, (long long)last->extent);
    } else {
        item = diag_error(sema->diag, span, "shape-mismatch",
                          "tensor '%s' has no tiles that buffer '%s' can hold: %s", tensor->name,
                          buffer->name, buffer->rank == 2 ? "[rows, cols]" : "it is a vector");
        diag_help(item,
                  "a tile has two dims: the rows along an axis, the columns along the tensor's last dim");
    }
    diag_note(item, tensor->span, "'%s' is declared here", tensor->name);
    diag_note(item, buffer->span, "'%s' is declared here", buffer->name);
}

// The tensor map by which tiles of that buffer's shape move: the tile's dims are the tensor's axes and
// constants.
// A slice is whole chunks, or rows of one chunk; 8 rows are the period of the swizzle.
static bool slice_map(Sema *sema, const TensorRef *ref, TensorMap *map, int slices) {
    enum { PERIOD = 8 };
    map->chunk_slices = map->row_slices = 1;
    if (slices == 1)
        return true;
    int chunks = map->chunks ? map->chunks : 1;
    map->chunk_slices = slices < chunks ? slices : chunks;
    map->row_slices = slices / map->chunk_slices;
    if (chunks % map->chunk_slices || slices % map->chunk_slices || map->rows % (PERIOD * map->row_slices)) {
        DiagItem *item = diag_error(sema->diag, ref->span, "bad-multicast",
                                    "a tile of %d rows and %d columns can't be loaded in %d slices",
                                    map->rows, map->cols, slices);
        diag_help(item, "its rows must be a multiple of %d for a cluster of %d", PERIOD * map->row_slices,
                  slices);
        return false;
    }
    if (map->chunks)
        map->chunks /= map->chunk_slices;
    map->rows /= map->row_slices;
    return true;
}

int tile_find_map(Sema *sema, const TensorRef *ref, const Buffer *buffer, bool is_store, int slices) {
    Plan *plan = sema->plan;
    Tensor *tensor = &plan->tensors[ref->tensor];
    int tile_dims[MAX_TENSOR_DIMS], count = 0;
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->dims[i].kind != DIM_RUNTIME)
            tile_dims[count++] = i;
    bool fits = count == 2 && tile_dims[1] == tensor->rank - 1 &&
                tensor->dims[tile_dims[0]].kind == DIM_AXIS && buffer->rank == 2;
    if (fits && tensor->dims[tile_dims[1]].kind == DIM_CONSTANT)
        fits = tensor->dims[tile_dims[1]].extent == buffer->cols;
    if (!fits || tensor->elem != buffer->elem) {
        tile_does_not_fit(sema, tensor, buffer, ref->span, fits);
        return -1;
    }
    TensorMap map = {.tensor = ref->tensor,
                     .is_store = is_store,
                     .rows = buffer->rows,
                     .cols = buffer->cols,
                     .row_dim = tile_dims[0],
                     .col_dim = tile_dims[1]};
    map.swizzle_bytes = swizzle_bytes_for(buffer->cols * elem_bytes(buffer->elem));
    map.chunk_cols = map.swizzle_bytes / elem_bytes(buffer->elem);
    // One instruction moves all chunks of a constant row; along an axis each chunk is its own.
    if (tensor->dims[map.col_dim].kind == DIM_CONSTANT && map.chunk_cols && buffer->cols > map.chunk_cols)
        map.chunks = buffer->cols / map.chunk_cols;
    if (count + (map.chunks > 0) + 1 + tensor->rank - count > 5) {
        diag_error(sema->diag, ref->span, "shape-mismatch",
                   "tensor '%s' has too many dims to be moved as tiles", tensor->name);
        return -1;
    }
    if (!slice_map(sema, ref, &map, slices))
        return -1;
    for (int i = 0; i < plan->map_count; i++) {
        TensorMap *known = &plan->maps[i];
        if (known->tensor == map.tensor && known->rows == map.rows && known->cols == map.cols &&
            known->chunk_slices == map.chunk_slices && known->row_slices == map.row_slices)
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

bool tile_check_direction(Sema *sema, const TensorRef *ref, bool writes) {
    Tensor *tensor = &sema->plan->tensors[ref->tensor];
    if (tensor->direction == TENSOR_INOUT || tensor->direction == (writes ? TENSOR_OUT : TENSOR_IN))
        return true;
    DiagItem *item =
        diag_error(sema->diag, ref->span, writes ? "read-only" : "write-only", "tensor '%s' is an %s",
                   tensor->name, writes ? "input; it can't be stored to" : "output; it can't be read");
    diag_note(item, tensor->span, "declared here");
    return false;
}
