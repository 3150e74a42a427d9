// tile_values.c: tiles between memory and the threads' registers.
#include "compiler/lower/internal.h"

#include "grammar/ast.h"

static Value as_word(Lower *l, Value value) {
    return LLVMTypeOf(value) == l->f32 ? LLVMBuildBitCast(l->builder, value, l->i32, "") : value;
}

static Value from_word(Lower *l, Elem elem, Value word) {
    return elem_is_float(elem) ? LLVMBuildBitCast(l->builder, word, l->f32, "") : word;
}

void value_unpack(Lower *l, Elem elem, Value word, Value *values) {
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

static Value as_float(Lower *l, Value value) {
    return LLVMTypeOf(value) == l->i32 ? LLVMBuildSIToFP(l->builder, value, l->f32, "") : value;
}

Value value_pack(Lower *l, Elem elem, const Expr *value, Element at) {
    Value low = as_float(l, math_value(l, value, at));
    Value high = as_float(l, math_value(l, value, (Element){at.row, at.col + 1}));
    return ptx_pack(l, elem, low, high);
}

// The 32-bit word that begins at `at`: one value, or two packed.
static Value value_word(Lower *l, const Buffer *buffer, const Expr *value, Element at) {
    if (elem_bytes(buffer->elem) == 2)
        return value_pack(l, buffer->elem, value, at);
    Value single = math_value(l, value, at);
    return as_word(l, elem_is_float(buffer->elem) ? as_float(l, single) : single);
}

static void word_values(Lower *l, const Buffer *buffer, Value word, Value *values) {
    if (elem_bytes(buffer->elem) == 2)
        value_unpack(l, buffer->elem, word, values);
    else
        values[0] = from_word(l, buffer->elem, word);
}

static int values_a_word(const Buffer *buffer) {
    return 4 / elem_bytes(buffer->elem);
}

// ---------------------------------------------------------------- shared memory

static Type type_of(const Buffer *buffer) {
    return (Type){buffer->elem, buffer->rows, buffer->cols};
}

// A tile lies as [chunk][row][chunk bytes], and within a row the pieces of 16 bytes are permuted by the row's
// low bits (PTX ISA, "Tensors: swizzling modes"). Address of piece `piece` (of its chunk) in the thread's
// first row; rows that are a multiple of 8 further on have the same permutation.
static Value piece_address(Lower *l, const Buffer *buffer, Value base, Value piece) {
    Value row = ir_mul(l, l->row, ir_int(l, buffer->swizzle_bytes));
    // Address bits 7.. count 128-byte lines: a row of a 64-byte swizzle is half a line.
    int rows_a_line = 128 / buffer->swizzle_bytes;
    Value line = rows_a_line == 1 ? l->row : ir_shr(l, l->row, rows_a_line == 2 ? 1 : 2);
    Value mask = ir_and(l, line, ir_int(l, buffer->swizzle_bytes / 16 - 1));
    return ir_add(l, base, ir_add(l, row, ir_shl(l, ir_xor(l, mask, piece), 4)));
}

// How many neighbouring words a thread moves at once: of a whole row 16 bytes; of a fragment the pair of
// columns, which is one word when packed.
static int words_at_once(const Lower *l, const Buffer *buffer) {
    return layout_lanes_a_row(l) == 1 ? 4 : 2 / values_a_word(buffer);
}

// Address, less a constant offset, of the words that begin at `at`.
static Value words_address(Lower *l, const Buffer *buffer, Value base, Element at, int64_t *offset) {
    enum { FRAGMENT_GROUP = 8, ROWS_APART = 8 };
    int bytes = elem_bytes(buffer->elem), pieces_a_row = buffer->swizzle_bytes / 16;
    bool whole_row = layout_lanes_a_row(l) == 1;
    int first_byte = whole_row ? at.col * bytes : at.col / 2 * FRAGMENT_GROUP * bytes;
    int piece = first_byte / 16 % pieces_a_row, chunk = first_byte / buffer->swizzle_bytes;
    *offset = (int64_t)chunk * buffer->rows * buffer->swizzle_bytes;
    if (whole_row)
        return piece_address(l, buffer, base, ir_int(l, piece));
    *offset += (int64_t)at.row * ROWS_APART * buffer->swizzle_bytes;
    Value byte = ir_mul(l, l->first_col, ir_int(l, bytes)); // within the group's 16 or 32 bytes
    Value address = piece_address(l, buffer, base, ir_add(l, ir_int(l, piece), ir_shr(l, byte, 4)));
    return ir_add(l, address, ir_and(l, byte, ir_int(l, 15)));
}

static Value vector_address(Lower *l, Value base, int row) {
    return ir_add(l, base, ir_shl(l, layout_row(l, row), 2));
}

static void read_shared(Lower *l, const Slot *slot, Value *values) {
    const Buffer *buffer = slot->pipe->buffer;
    Type type = type_of(buffer);
    Value base = slot_address(l, slot), words[4];
    int rows = layout_rows(l, type), cols = layout_cols(l, type);
    for (int row = 0; row < rows && buffer->rank == 1; row++) {
        ptx_load_shared(l, vector_address(l, base, row), 0, words, 1);
        values[row] = from_word(l, buffer->elem, words[0]);
    }
    int count = words_at_once(l, buffer), step = count * values_a_word(buffer);
    for (int i = 0; i < rows * cols && buffer->rank == 2; i += step) {
        int64_t offset;
        Value address = words_address(l, buffer, base, (Element){i / cols, i % cols}, &offset);
        ptx_load_shared(l, address, offset, words, count);
        for (int w = 0; w < count; w++)
            word_values(l, buffer, words[w], &values[i + w * values_a_word(buffer)]);
    }
}

// The columns that the value is read in at once. Bytes that are handed on may be overwritten by the write
// itself: then the whole tile is read first.
static void set_window(Lower *l, const Slot *slot, int first, int count) {
    l->window_first = first;
    l->window_count = slot->handed_from ? 0 : count;
}

static void write_shared(Lower *l, const Slot *slot, const Expr *value) {
    enum { WINDOW = 16 };
    const Buffer *buffer = slot->pipe->buffer;
    Type type = type_of(buffer);
    Value base = slot_address(l, slot), words[4];
    int rows = layout_rows(l, type), cols = layout_cols(l, type);
    for (int row = 0; row < rows && buffer->rank == 1; row++) {
        words[0] = value_word(l, buffer, value, (Element){row, 0});
        ptx_store_shared(l, vector_address(l, base, row), 0, words, 1);
    }
    int count = words_at_once(l, buffer), step = count * values_a_word(buffer);
    for (int i = 0; i < rows * cols && buffer->rank == 2; i += step) {
        Element at = {i / cols, i % cols};
        int first = at.col / WINDOW * WINDOW;
        set_window(l, slot, first, buffer->cols - first < WINDOW ? buffer->cols - first : WINDOW);
        for (int w = 0; w < count; w++)
            words[w] = value_word(l, buffer, value, (Element){at.row, at.col + w * values_a_word(buffer)});
        int64_t offset;
        Value address = words_address(l, buffer, base, at, &offset);
        ptx_store_shared(l, address, offset, words, count);
    }
    l->window_count = 0;
}

// ---------------------------------------------------------------- either memory

void slot_read(Lower *l, const Slot *slot, int first, int count, Value *values) {
    const Buffer *buffer = slot->pipe->buffer;
    if (buffer->space == SPACE_SMEM) {
        read_shared(l, slot, values);
        return;
    }
    int per_word = values_a_word(buffer);
    Value *words = arena_array(l->arena, Value, count / per_word);
    l->engines->read_columns(l, ir_add(l, slot_address(l, slot), ir_int(l, first / per_word)),
                             count / per_word, words);
    for (int i = 0; i < count / per_word; i++)
        word_values(l, buffer, words[i], &values[first + per_word * i]);
}

static void write_tmem(Lower *l, const Slot *slot, const Expr *value) {
    enum { WORDS_AT_ONCE = 32 };
    const Buffer *buffer = slot->pipe->buffer;
    int per_word = values_a_word(buffer), words = buffer->cols / per_word;
    for (int first = 0; first < words; first += WORDS_AT_ONCE) {
        int count = words - first < WORDS_AT_ONCE ? words - first : WORDS_AT_ONCE;
        Value group[WORDS_AT_ONCE];
        set_window(l, slot, first * per_word, count * per_word);
        for (int i = 0; i < count; i++)
            group[i] = value_word(l, buffer, value, (Element){0, (first + i) * per_word});
        l->engines->write_columns(l, ir_add(l, slot_address(l, slot), ir_int(l, first)), count, group);
    }
    l->window_count = 0;
    l->engines->finish_writes(l);
}

void slot_write(Lower *l, const Slot *slot, const Expr *value) {
    if (slot->pipe->buffer->space == SPACE_TMEM)
        write_tmem(l, slot, value);
    else
        write_shared(l, slot, value);
}
