// slots.c: pipes in motion. Which barrier a put, take or free waits for or signals follows from the plan: who
// fills a slot, who uses it, and whose free its bytes wait for.
#include "compiler/lower/internal.h"

#include "grammar/ast.h"

// The role's place in the ring of a pipe, made at first use: stage 0, phase 0.
RingState *ring_of(Lower *l, const Slot *slot) {
    int64_t index = slot->index && slot->index->kind == X_INT ? slot->index->integer : -1;
    for (int i = 0; i < l->ring_count; i++)
        if (l->rings[i].pipe == slot->pipe && l->rings[i].index == index &&
            l->rings[i].filling == slot->filling)
            return &l->rings[i];
    if (l->ring_count == MAX_RINGS) {
        l->out_of_rings = true;
        return &l->rings[0];
    }
    RingState *ring = &l->rings[l->ring_count++];
    ring->pipe = slot->pipe;
    ring->index = index;
    ring->filling = slot->filling;
    // The initial values go to the function's entry: the role may first meet the pipe inside a loop.
    ring->stage = LLVMBuildAlloca(l->entry_builder, l->i32, "");
    ring->phase = LLVMBuildAlloca(l->entry_builder, l->i32, "");
    LLVMBuildStore(l->entry_builder, ir_int(l, 0), ring->stage);
    LLVMBuildStore(l->entry_builder, ir_int(l, 0), ring->phase);
    return ring;
}

static void advance(Lower *l, RingState *ring) {
    Value stage = ir_get(l, l->i32, ring->stage), phase = ir_get(l, l->i32, ring->phase);
    if (ring->pipe->buffer->depth == 1) {
        ir_set(l, ring->phase, ir_xor(l, phase, ir_int(l, 1)));
        return;
    }
    Value next = ir_add(l, stage, ir_int(l, 1));
    Value wraps = ir_equal(l, next, ir_int(l, ring->pipe->buffer->depth));
    ir_set(l, ring->stage, ir_select(l, wraps, ir_int(l, 0), next));
    ir_set(l, ring->phase, ir_xor(l, phase, LLVMBuildZExt(l->builder, wraps, l->i32, "")));
}

Value slot_index(Lower *l, const Slot *slot) {
    return !slot->index                 ? ir_int(l, 0)
           : slot->index->kind == X_INT ? ir_int(l, slot->index->integer)
                                        : l->replica;
}

// Instance number of the slot's bytes and barriers: index * depth + stage.
static Value instance(Lower *l, const Slot *slot) {
    const SlotState *state = &l->slots[slot->number];
    Value index = ir_mul(l, state->index, ir_int(l, slot->pipe->buffer->depth));
    return ir_add(l, index, state->stage);
}

static Value barrier_at(Lower *l, int64_t offset, Value number) {
    Value place = ir_add(l, ir_int(l, offset), ir_shl(l, number, 3));
    return ir_add(l, l->shared_base, place);
}

Value slot_full_barrier(Lower *l, const Slot *slot) {
    return barrier_at(l, slot->pipe->full_barrier, instance(l, slot));
}

Value slot_address(Lower *l, const Slot *slot) {
    const Buffer *buffer = slot->pipe->buffer;
    Value offset =
        ir_add(l, ir_int(l, buffer->offset), ir_mul(l, instance(l, slot), ir_int(l, buffer->stride)));
    return ir_add(l, buffer->space == SPACE_TMEM ? l->tmem : l->shared_base, offset);
}

static bool in_tmem(const Slot *slot) {
    return slot->pipe->buffer->space == SPACE_TMEM;
}

// Waits until the bytes of the next slot are free. The first round of a ring finds them free: the barrier's
// phase "before the first" has parity 1. A later pipe of a round waits for a free that has to happen first:
// parity 0.
void slot_wait_free(Lower *l, const Slot *slot) {
    RingState *ring = ring_of(l, slot);
    SlotState *state = &l->slots[slot->number];
    state->stage = ir_get(l, l->i32, ring->stage);
    state->index = slot_index(l, slot);
    const Pipe *pipe = slot->pipe, *before = pipe->before;
    if (!pipe->hands_over && !before->free_is_ordered) {
        Value phase = ir_get(l, l->i32, ring->phase);
        Value parity = pipe->first_in_round ? ir_xor(l, phase, ir_int(l, 1)) : phase;
        ptx_wait(l, barrier_at(l, before->empty_barrier, instance(l, slot)), parity);
        if (in_tmem(slot))
            l->engines->after_wait(l);
    }
    advance(l, ring);
}

void slot_wait_full(Lower *l, const Slot *slot) {
    RingState *ring = ring_of(l, slot);
    SlotState *state = &l->slots[slot->number];
    state->stage = ir_get(l, l->i32, ring->stage);
    state->index = slot_index(l, slot);
    ptx_wait(l, slot_full_barrier(l, slot), ir_get(l, l->i32, ring->phase));
    if (in_tmem(slot))
        l->engines->after_wait(l);
    advance(l, ring);
}

// One arrival a warp, after all its lanes are done with the bytes.
static void arrive_threads(Lower *l, const Slot *slot, Value barrier) {
    if (in_tmem(slot))
        l->engines->before_arrive(l);
    if (!l->role->uses_values) {
        ptx_arrive(l, barrier);
        return;
    }
    ptx_sync_warp(l);
    ptx_arrive_if(l, ir_equal(l, l->lane, ir_int(l, 0)), barrier);
}

void slot_publish(Lower *l, const Slot *slot) {
    Value barrier = slot_full_barrier(l, slot);
    switch (slot->pipe->filled_by) {
    case ENGINE_PRODUCT:
        l->engines->commit(l, barrier);
        break;
    case ENGINE_THREADS:
        // Generic writes become visible to the asynchronous readers of shared memory by this fence alone.
        if (!in_tmem(slot) && slot->pipe->used_by != ENGINE_THREADS)
            ptx_fence_async(l);
        arrive_threads(l, slot, barrier);
        break;
    default:
        break; // a load signals by its bytes
    }
}

void slot_release(Lower *l, const Slot *slot) {
    const Pipe *pipe = slot->pipe;
    if (pipe->free_is_ordered)
        return;
    Value barrier = barrier_at(l, pipe->empty_barrier, instance(l, slot));
    switch (pipe->used_by) {
    case ENGINE_PRODUCT:
        l->engines->commit(l, barrier);
        break;
    case ENGINE_STORE:
        ptx_store_wait(l, true);
        ptx_arrive(l, barrier);
        break;
    default:
        arrive_threads(l, slot, barrier);
        break;
    }
}

// Before the role ends: waits until the tensor core has returned every slot, since its arrivals come by
// themselves and must find the barrier alive.
void slot_drain(Lower *l) {
    for (int i = 0; i < l->ring_count; i++) {
        RingState *ring = &l->rings[i];
        const Pipe *pipe = ring->pipe;
        if (!ring->filling || pipe->before != pipe || pipe->used_by != ENGINE_PRODUCT ||
            pipe->free_is_ordered)
            continue;
        Value index = ring->index >= 0 ? ir_int(l, ring->index) : pipe->is_array ? l->replica : ir_int(l, 0);
        for (int k = 0; k < pipe->buffer->depth; k++) {
            Value stage = ir_get(l, l->i32, ring->stage), phase = ir_get(l, l->i32, ring->phase);
            Value number = ir_add(l, ir_mul(l, index, ir_int(l, pipe->buffer->depth)), stage);
            ptx_wait(l, barrier_at(l, pipe->empty_barrier, number), ir_xor(l, phase, ir_int(l, 1)));
            advance(l, ring);
        }
    }
}

// ---------------------------------------------------------------- tiles of values

static Value as_word(Lower *l, Value value) {
    return LLVMTypeOf(value) == l->f32 ? LLVMBuildBitCast(l->builder, value, l->i32, "") : value;
}

static Value from_word(Lower *l, Elem elem, Value word) {
    return elem_is_float(elem) ? LLVMBuildBitCast(l->builder, word, l->f32, "") : word;
}

// The two values of a packed word.
static void unpack(Lower *l, Elem elem, Value word, Value *values) {
    if (elem == ELEM_BF16) {
        values[0] = LLVMBuildBitCast(l->builder, ir_shl(l, word, 16), l->f32, "");
        values[1] = LLVMBuildBitCast(l->builder, ir_and(l, word, ir_int(l, (int32_t)0xFFFF0000)), l->f32, "");
        return;
    }
    LLVMTypeRef half = LLVMHalfTypeInContext(l->context);
    for (int i = 0; i < 2; i++) {
        Value bits = LLVMBuildTrunc(l->builder, i ? ir_shr(l, word, 16) : word, l->i16, "");
        values[i] = LLVMBuildFPExt(l->builder, LLVMBuildBitCast(l->builder, bits, half, ""), l->f32, "");
    }
}

// Byte address (and constant offset) of 16-byte piece `piece` of the thread's row in a swizzled tile:
// [chunk][row][chunk bytes], and within a row the pieces are permuted by the row's low bits (PTX ISA,
// "Tensors: swizzling modes").
static Value piece_address(Lower *l, const Buffer *buffer, Value base, int piece, int64_t *offset) {
    int pieces_a_row = buffer->swizzle_bytes / 16, chunk = piece / pieces_a_row,
        within = piece % pieces_a_row;
    Value row = ir_mul(l, l->row, ir_int(l, buffer->swizzle_bytes));
    // Address bits 7.. count 128-byte lines: a row of a 64-byte swizzle is half a line.
    int rows_a_line = 128 / buffer->swizzle_bytes;
    Value line = rows_a_line == 1 ? l->row : ir_shr(l, l->row, rows_a_line == 2 ? 1 : 2);
    Value mask = ir_and(l, line, ir_int(l, pieces_a_row - 1));
    Value place = ir_shl(l, ir_xor(l, mask, ir_int(l, within)), 4);
    *offset = (int64_t)chunk * buffer->rows * buffer->swizzle_bytes;
    return ir_add(l, base, ir_add(l, row, place));
}

static void read_shared(Lower *l, const Slot *slot, Value *values) {
    const Buffer *buffer = slot->pipe->buffer;
    Value base = slot_address(l, slot), words[4];
    if (buffer->rank == 1) {
        ptx_load_shared(l, ir_add(l, base, ir_shl(l, l->row, 2)), 0, words, 1);
        values[0] = from_word(l, buffer->elem, words[0]);
        return;
    }
    int per_word = 4 / elem_bytes(buffer->elem);
    for (int c = 0; c < buffer->cols; c += 4 * per_word) {
        int64_t offset;
        Value address = piece_address(l, buffer, base, c / (4 * per_word), &offset);
        ptx_load_shared(l, address, offset, words, 4);
        for (int i = 0; i < 4; i++)
            if (per_word == 1)
                values[c + i] = from_word(l, buffer->elem, words[i]);
            else
                unpack(l, buffer->elem, words[i], &values[c + 2 * i]);
    }
}

void slot_read(Lower *l, const Slot *slot, int first, int count, Value *values) {
    const Buffer *buffer = slot->pipe->buffer;
    if (buffer->space == SPACE_SMEM) {
        read_shared(l, slot, values);
        return;
    }
    int per_word = 4 / elem_bytes(buffer->elem);
    Value *words = arena_array(l->arena, Value, count / per_word);
    l->engines->read_columns(l, ir_add(l, slot_address(l, slot), ir_int(l, first / per_word)),
                             count / per_word, words);
    for (int i = 0; i < count / per_word; i++)
        if (per_word == 1)
            values[first + i] = from_word(l, buffer->elem, words[i]);
        else
            unpack(l, buffer->elem, words[i], &values[first + 2 * i]);
}

// Word `word` of the thread's row: one value, or two packed.
static Value value_word(Lower *l, const Buffer *buffer, const Expr *value, int word) {
    if (elem_bytes(buffer->elem) == 4) {
        Value single = math_value(l, value, word);
        if (elem_is_float(buffer->elem) && LLVMTypeOf(single) == l->i32)
            single = LLVMBuildSIToFP(l->builder, single, l->f32, "");
        return as_word(l, single);
    }
    Value pair[2];
    for (int i = 0; i < 2; i++) {
        pair[i] = math_value(l, value, 2 * word + i);
        if (LLVMTypeOf(pair[i]) == l->i32)
            pair[i] = LLVMBuildSIToFP(l->builder, pair[i], l->f32, "");
    }
    return ptx_pack(l, buffer->elem, pair[0], pair[1]);
}

// The columns that the value is read in at once. Bytes that are handed on may be overwritten by the write
// itself: then the whole tile is read first.
static void set_window(Lower *l, const Slot *slot, int first, int count) {
    l->window_first = first;
    l->window_count = slot->handed_from ? 0 : count;
}

static void write_tmem(Lower *l, const Slot *slot, const Expr *value) {
    enum { WORDS_AT_ONCE = 32 };
    const Buffer *buffer = slot->pipe->buffer;
    int words = buffer->cols * elem_bytes(buffer->elem) / 4, per_word = 4 / elem_bytes(buffer->elem);
    for (int first = 0; first < words; first += WORDS_AT_ONCE) {
        int count = words - first < WORDS_AT_ONCE ? words - first : WORDS_AT_ONCE;
        Value group[WORDS_AT_ONCE];
        set_window(l, slot, first * per_word, count * per_word);
        for (int i = 0; i < count; i++)
            group[i] = value_word(l, buffer, value, first + i);
        l->engines->write_columns(l, ir_add(l, slot_address(l, slot), ir_int(l, first)), count, group);
    }
    l->window_count = 0;
    l->engines->finish_writes(l);
}

void slot_write(Lower *l, const Slot *slot, const Expr *value) {
    const Buffer *buffer = slot->pipe->buffer;
    if (buffer->space == SPACE_TMEM) {
        write_tmem(l, slot, value);
        return;
    }
    Value base = slot_address(l, slot), words[4];
    if (buffer->rank == 1) {
        words[0] = value_word(l, buffer, value, 0);
        ptx_store_shared(l, ir_add(l, base, ir_shl(l, l->row, 2)), 0, words, 1);
        return;
    }
    enum { WINDOW = 16 };
    int columns_a_piece = 16 / elem_bytes(buffer->elem);
    for (int piece = 0; piece < buffer->cols / columns_a_piece; piece++) {
        int first = piece * columns_a_piece / WINDOW * WINDOW;
        set_window(l, slot, first, buffer->cols - first < WINDOW ? buffer->cols - first : WINDOW);
        for (int i = 0; i < 4; i++)
            words[i] = value_word(l, buffer, value, 4 * piece + i);
        int64_t offset;
        Value address = piece_address(l, buffer, base, piece, &offset);
        ptx_store_shared(l, address, offset, words, 4);
    }
    l->window_count = 0;
}
