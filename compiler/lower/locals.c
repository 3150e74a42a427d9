// locals.c: the values that a role binds to names. A name's value is a cell for each element that the thread
// holds of it, or for two of them where it is packed to 16 bits.
#include "compiler/lower/internal.h"

static bool is_packed(const Local *local) {
    return elem_bytes(local->stored) == 2;
}

static int cells_of(const Lower *l, const Local *local) {
    return layout_count(l, local->type) / (is_packed(local) ? 2 : 1);
}

static Element cell_place(const Lower *l, const Local *local, int cell) {
    int step = is_packed(local) ? 2 : 1, cols = layout_cols(l, local->type);
    return (Element){cell * step / cols, cell * step % cols};
}

static Value *new_cells(Lower *l, const Local *local) {
    return l->locals[local->number].cells = arena_array(l->arena, Value, cells_of(l, local));
}

void local_let(Lower *l, const Stmt *stmt) {
    const Local *local = stmt->local;
    LocalState *state = &l->locals[local->number];
    if (local->type.cols == EXTENT_ANY) { // as many columns as what it meets: computed there
        state->expr = stmt->value;
        return;
    }
    Value *cells = new_cells(l, local);
    for (int i = 0; i < cells_of(l, local); i++) {
        Element at = cell_place(l, local, i);
        Value value =
            is_packed(local) ? value_pack(l, local->stored, stmt->value, at) : math_value(l, stmt->value, at);
        cells[i] = local->is_mutable ? ir_variable(l, LLVMTypeOf(value), value) : value;
    }
    state->is_variable = local->is_mutable;
}

void local_set(Lower *l, const Stmt *stmt) {
    const Local *local = stmt->local;
    LocalState *state = &l->locals[local->number];
    if (state->is_row_sum) {
        row_sum_set(l, stmt);
        return;
    }
    // All is computed before the first cell changes.
    int count = layout_count(l, local->type), cells = cells_of(l, local), cols = layout_cols(l, local->type);
    for (int i = 0; i < count; i++)
        math_value(l, stmt->value, (Element){i / cols, i % cols});
    flight_settle_uses(l, local);
    Value *values = arena_array(l->arena, Value, cells);
    for (int i = 0; i < cells; i++) {
        Element at = cell_place(l, local, i);
        values[i] =
            is_packed(local) ? value_pack(l, local->stored, stmt->value, at) : math_value(l, stmt->value, at);
    }
    for (int i = 0; i < cells; i++)
        ir_set(l, state->cells[i], values[i]);
}

Value local_value(Lower *l, const Local *local, Element at) {
    const LocalState *state = &l->locals[local->number];
    if (state->expr)
        return math_value(l, state->expr, at);
    flight_settle_result(l, local);
    int index = layout_index(l, local->type, at);
    if (is_packed(local)) {
        Value pair[2];
        value_unpack(l, local->stored, ir_get(l, l->i32, state->cells[index / 2]), pair);
        return pair[index % 2];
    }
    Value value = state->cells[index];
    if (state->is_variable)
        value = ir_get(l, elem_is_float(local->type.elem) ? l->f32 : l->i32, value);
    return state->is_row_sum ? math_reduce_lanes(l, REDUCE_SUM, true, value) : value;
}

// ---------------------------------------------------------------- products in registers

// Of the registers of a result, 4 belong to each 8 columns: two of the thread's first row, two of its second
// (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", matrix D).
static Element accumulator_element(int number) {
    return (Element){number / 2 % 2, number / 4 * 2 + number % 2};
}

Value local_accumulator(Lower *l, const Local *local, int number) {
    return l->locals[local->number].cells[layout_index(l, local->type, accumulator_element(number))];
}

Value *local_accumulators(Lower *l, const Local *local, bool with_values) {
    LocalState *state = &l->locals[local->number];
    int count = cells_of(l, local);
    if (!local->is_mutable) { // this product binds it
        Value *cells = new_cells(l, local);
        for (int i = 0; i < count; i++)
            cells[i] = LLVMBuildAlloca(l->entry_builder, l->f32, "");
        state->is_variable = true;
    }
    if (!with_values) {
        flight_settle_uses(l, local);
        return NULL;
    }
    // Products into the same registers follow each other without a wait.
    Value *values = flight_take_over(l, local);
    if (values)
        return values;
    flight_settle_uses(l, local);
    values = arena_array(l->arena, Value, count);
    for (int i = 0; i < count; i++)
        values[i] = ir_get(l, l->f32, local_accumulator(l, local, i));
    return values;
}

// A k-step of 16 columns takes 4 words: of the first 8 columns those of both rows, then of the next 8 (PTX
// ISA, same section, matrix A).
Value *local_fragments(Lower *l, const Local *local, Elem elem, int *count) {
    const LocalState *state = &l->locals[local->number];
    *count = layout_count(l, local->type) / 2;
    flight_settle_result(l, local);
    Value *words = arena_array(l->arena, Value, *count);
    for (int i = 0; i < *count; i++) {
        Element at = {i % 2, i / 2 * 2};
        int index = layout_index(l, local->type, at);
        if (is_packed(local)) {
            words[i] = ir_get(l, l->i32, state->cells[index / 2]);
        } else {
            Value low = local_value(l, local, at),
                  high = local_value(l, local, (Element){at.row, at.col + 1});
            words[i] = ptx_pack(l, elem, low, high);
        }
    }
    return words;
}
