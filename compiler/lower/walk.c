// walk.c: statements to IR, in order. Tiles move by one elected thread; values are computed by all threads of
// a role.
#include "compiler/lower/internal.h"

#include "grammar/ast.h"

#include <string.h>

void walk_place(Lower *l, Span span) {
    l->place = span;
    if (!l->debug || span.file < 0)
        return;
    Place place = source_place(l->sources, span.file, span.start);
    LLVMMetadataRef scope = l->debug_scope;
    if (l->debug_files && l->debug_files[span.file])
        scope = LLVMDIBuilderCreateLexicalBlockFile(l->debug, l->debug_scope, l->debug_files[span.file], 0);
    LLVMMetadataRef location = LLVMDIBuilderCreateDebugLocation(l->context, (unsigned)place.line,
                                                                (unsigned)place.column, scope, NULL);
    LLVMSetCurrentDebugLocation2(l->builder, location);
}

// ---------------------------------------------------------------- tiles of tensors

typedef struct {
    Value at[5];
    int rank;
    int chunk_place; // which coordinate steps from chunk to chunk when each is its own instruction, else -1
} Coordinates;

// Which slice of the tile this CTA moves.
static Value chunk_slice(Lower *l, const TensorMap *map) {
    return map->chunk_slices == 1 ? ir_int(l, 0) : ir_and(l, l->cta, ir_int(l, map->chunk_slices - 1));
}

static Value row_slice(Lower *l, const TensorMap *map) {
    return map->row_slices == 1 ? ir_int(l, 0) : ir_udiv(l, l->cta, ir_int(l, map->chunk_slices));
}

// Coordinates in a ragged map (see runtime/manifest.h): rows of the tile beyond the sequence's end fall
// outside the map's row dimension, so loads give zeros there and stores are clipped.
static Coordinates tile_coordinates(Lower *l, const TensorRef *ref, const TensorMap *map) {
    const Tensor *tensor = &l->plan->tensors[map->tensor];
    Plan *plan = (Plan *)l->plan;
    Coordinates c = {.chunk_place = -1};
    Value position =
        ir_add(l, math_uniform(l, ref->at[map->row_dim]), ir_mul(l, row_slice(l, map), ir_int(l, map->rows)));
    Value length = l->fields[plan_field(plan, FIELD_LEN, tensor->dims[map->row_dim].index, 0)];
    Value base = l->fields[plan_field(plan, FIELD_BASE, map->tensor, map->row_dim)];
    Value rows = ir_int(l, map->rows);
    Value valid = ir_max(l, ir_min(l, ir_sub(l, length, position), rows), ir_int(l, 0));
    Value column = math_uniform(l, ref->at[map->col_dim]);
    if (tensor->dims[map->col_dim].kind == DIM_AXIS) {
        column = ir_add(l, column, l->fields[plan_field(plan, FIELD_BASE, map->tensor, map->col_dim)]);
        c.chunk_place = 0;
    }
    c.at[c.rank++] = column;
    c.at[c.rank++] = ir_sub(l, rows, valid);
    if (map->chunks)
        c.at[c.rank++] = ir_mul(l, chunk_slice(l, map), ir_int(l, map->chunks));
    for (int i = tensor->rank - 1; i >= 0; i--)
        if (tensor->dims[i].kind == DIM_RUNTIME)
            c.at[c.rank++] = math_uniform(l, ref->at[i]);
    c.at[c.rank++] = ir_add(l, ir_add(l, base, position), valid);
    return c;
}

static void move_tile(Lower *l, const TensorRef *ref, const Slot *slot, Value barrier) {
    const TensorMap *map = &l->plan->maps[ref->map];
    Coordinates c = tile_coordinates(l, ref, map);
    Value pointer = LLVMBuildPtrToInt(l->builder, arg_value(l, ARG_MAP, ref->map, 0), l->i64, "");
    int64_t row_bytes = map->swizzle_bytes, chunk_bytes = slot->pipe->buffer->rows * row_bytes;
    Value chunk = ir_mul(l, chunk_slice(l, map), ir_int(l, map->chunks * chunk_bytes)),
          row = ir_mul(l, row_slice(l, map), ir_int(l, map->rows * row_bytes));
    Value shared = ir_add(l, slot_address(l, slot), ir_add(l, chunk, row));
    int pieces = map->chunks ? 1 : map->cols / map->chunk_cols;
    for (int i = 0; i < pieces; i++) {
        if (barrier)
            ptx_load_tile(l, shared, pointer, c.at, c.rank, barrier, map->chunk_slices * map->row_slices);
        else
            ptx_store_tile(l, pointer, c.at, c.rank, shared);
        c.at[0] = ir_add(l, c.at[0], ir_int(l, map->chunk_cols));
        shared = ir_add(l, shared, ir_int(l, chunk_bytes));
    }
}

static void put_load(Lower *l, const Stmt *stmt) {
    slot_wait_free(l, stmt->slot);
    Value barrier = slot_full_barrier(l, stmt->slot);
    ptx_expect(l, barrier, ir_int(l, stmt->slot->pipe->bytes));
    move_tile(l, &stmt->tensor, stmt->slot, barrier);
}

// NULL: the tensor is always there.
static Value tensor_is_there(Lower *l, int tensor) {
    if (!l->plan->tensors[tensor].is_optional)
        return NULL;
    return LLVMBuildIsNotNull(l->builder, arg_value(l, ARG_POINTER, tensor, 0), "");
}

// The map of a tensor that was left out is no map. The store's group is then empty, and complete at once.
static void store_tile(Lower *l, const Stmt *stmt) {
    Value there = tensor_is_there(l, stmt->tensor.tensor);
    if (there) {
        LLVMBasicBlockRef move = ir_block(l, "store_tile"), done = ir_block(l, "store_tile_done");
        ir_branch(l, there, move, done);
        ir_at(l, move);
        move_tile(l, &stmt->tensor, stmt->source, NULL);
        ir_jump(l, done);
        ir_at(l, done);
        math_cache_clear(l); // what was computed inside the branch isn't known after it
    } else {
        move_tile(l, &stmt->tensor, stmt->source, NULL);
    }
    ptx_store_commit(l);
}

// ---------------------------------------------------------------- values

// Rewrites a tile in tensor memory piece by piece, so that only a piece lives in registers.
static void update(Lower *l, const Stmt *stmt) {
    enum { COLUMNS_AT_ONCE = 16 };
    const Buffer *buffer = stmt->slot->pipe->buffer;
    if (buffer->space == SPACE_SMEM || elem_bytes(buffer->elem) != 4) {
        slot_write(l, stmt->slot, stmt->value);
        return;
    }
    for (int first = 0; first < buffer->cols; first += COLUMNS_AT_ONCE) {
        int count = buffer->cols - first < COLUMNS_AT_ONCE ? buffer->cols - first : COLUMNS_AT_ONCE;
        Value words[COLUMNS_AT_ONCE];
        l->window_first = first;
        l->window_count = count;
        for (int i = 0; i < count; i++)
            words[i] =
                LLVMBuildBitCast(l->builder, math_value(l, stmt->value, (Element){0, first + i}), l->i32, "");
        l->engines->write_columns(l, ir_add(l, slot_address(l, stmt->slot), ir_int(l, first)), count, words);
    }
    l->window_count = 0;
    l->engines->finish_writes(l);
}

static void store_element(Lower *l, const Stmt *stmt, Element at, Value allowed) {
    const Tensor *tensor = &l->plan->tensors[stmt->tensor.tensor];
    Value value = math_value(l, stmt->value, at), inside;
    if (tensor->elem == ELEM_BF16)
        value = LLVMBuildTrunc(l->builder, ptx_pack(l, ELEM_BF16, value, value), l->i16, "");
    else if (tensor->elem == ELEM_F16)
        value = LLVMBuildTrunc(l->builder, ptx_pack(l, ELEM_F16, value, value), l->i16, "");
    Value address = math_tensor_address(l, stmt->tensor.tensor, stmt->tensor.at, at, &inside);
    LLVMBasicBlockRef store = ir_block(l, "store"), done = ir_block(l, "stored");
    ir_branch(l, allowed ? ir_and(l, allowed, inside) : inside, store, done);
    ir_at(l, store);
    LLVMBuildStore(l->builder, value, address);
    ir_jump(l, done);
    ir_at(l, done);
}

// The extents along which what is stored, or where, varies.
static Type stored_type(const Lower *l, const Stmt *stmt) {
    Type type = stmt->value->type;
    for (int i = 0; i < l->plan->tensors[stmt->tensor.tensor].rank; i++) {
        const Type *at = &stmt->tensor.at[i]->type;
        type.cols = at->cols == 1 ? type.cols : at->cols;
        type.rows = at->rows == 1 ? type.rows : at->rows;
    }
    return type;
}

// Elements beyond the end of their sequence are not stored, and nothing is when the caller passed no tensor.
static void store_value(Lower *l, const Stmt *stmt) {
    Type type = stored_type(l, stmt);
    Value there = tensor_is_there(l, stmt->tensor.tensor);
    int rows = layout_rows(l, type), cols = layout_cols(l, type);
    for (int i = 0; i < rows * cols; i++) {
        Value allowed = layout_stores(l, type);
        allowed = allowed && there ? ir_and(l, allowed, there) : there ? there : allowed;
        store_element(l, stmt, (Element){i / cols, i % cols}, allowed);
        if (rows * cols > 1)
            math_cache_clear(l); // what was computed inside the branch isn't known after it
    }
    ptx_sync_warp(l); // what follows may need all lanes together
}

// ---------------------------------------------------------------- control

static void branch(Lower *l, const Stmt *stmt) {
    Value condition = math_uniform(l, stmt->value);
    if (LLVMIsAConstantInt(condition)) {
        walk_statements(l, LLVMConstIntGetZExtValue(condition) ? stmt->body : stmt->other);
        return;
    }
    LLVMBasicBlockRef yes = ir_block(l, "if_yes"), no = ir_block(l, "if_no"), done = ir_block(l, "if_done");
    ir_branch(l, condition, yes, no);
    Flights before = flight_part(l);
    FlightPath first;
    ir_at(l, yes);
    walk_statements(l, stmt->body);
    flight_swap(l, &before, &first);
    ir_at(l, no);
    walk_statements(l, stmt->other);
    flight_meet(l, &before, &first, done);
}

// A replica waits on its own barrier for the one before it, and lets the next one go on.
static void in_turn(Lower *l, const Stmt *stmt) {
    const Role *role = l->role;
    if (role->replicas == 1) {
        walk_statements(l, stmt->body);
        return;
    }
    int threads = 2 * 32 * role->warps;
    Value first = ir_int(l, stmt->turn->barrier), after = ir_add(l, l->replica, ir_int(l, 1));
    Value next = ir_select(l, ir_equal(l, after, ir_int(l, role->replicas)), ir_int(l, 0), after);
    ptx_named_barrier(l, ir_add(l, first, l->replica), threads, true);
    walk_statements(l, stmt->body);
    walk_place(l, stmt->span);
    ptx_named_barrier(l, ir_add(l, first, next), threads, false);
}

static void statement(Lower *l, const Stmt *stmt) {
    switch (stmt->kind) {
    case ST_TILES:
        tiles_loop(l, stmt);
        break;
    case ST_WALK:
        walk_loop(l, stmt);
        break;
    case ST_IF:
        branch(l, stmt);
        break;
    case ST_LET:
        local_let(l, stmt);
        break;
    case ST_SET:
        local_set(l, stmt);
        break;
    case ST_TAKE:
        slot_wait_full(l, stmt->slot);
        break;
    case ST_PUT_LOAD:
        put_load(l, stmt);
        break;
    case ST_PUT_VALUE:
        slot_wait_free(l, stmt->slot);
        slot_write(l, stmt->slot, stmt->value);
        slot_publish(l, stmt->slot);
        break;
    case ST_FILL:
        slot_wait_free(l, stmt->slot);
        walk_statements(l, stmt->body);
        walk_place(l, stmt->span);
        slot_publish(l, stmt->slot);
        break;
    case ST_PRODUCT:
        l->engines->product(l, stmt, stmt->fresh ? math_uniform(l, stmt->fresh) : ir_bool(l, false));
        break;
    case ST_TURN:
        in_turn(l, stmt);
        break;
    case ST_FREE:
        slot_release(l, stmt->slot);
        break;
    case ST_UPDATE:
        update(l, stmt);
        break;
    case ST_STORE_VALUE:
        store_value(l, stmt);
        break;
    case ST_STORE_TILE:
        store_tile(l, stmt);
        break;
    }
}

void walk_statements(Lower *l, const Stmt *stmt) {
    for (; stmt; stmt = stmt->next) {
        math_cache_clear(l);
        walk_place(l, stmt->span);
        statement(l, stmt);
    }
    math_cache_clear(l);
}
