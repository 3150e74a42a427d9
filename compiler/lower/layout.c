// layout.c: which elements of a tile a thread holds. Where a warp has 32 rows (the tile lies in tensor
// memory), a thread has one of them, whole. Where it has 16 (the tile is a wgmma accumulator), a thread has
// two rows, 8 apart, and of each 8 columns the pair number lane % 4 (PTX ISA, "Register Fragments for
// wgmma.mma_async.m64nNk16", matrix D).
#include "compiler/lower/internal.h"

enum { GROUP = 8, LANES_A_ROW = 4, ROWS_APART = 8, MOST_COLUMNS = 4096 };

static bool is_spread(const Lower *l) {
    return l->plan->target->warp_rows == 2 * ROWS_APART;
}

int layout_rows(const Lower *l, Type type) {
    return type.rows == 1 || !is_spread(l) ? 1 : 2;
}

int layout_cols(const Lower *l, Type type) {
    if (type.cols == 1)
        return 1;
    int cols = type.cols == EXTENT_ANY ? MOST_COLUMNS : type.cols;
    return is_spread(l) ? cols / LANES_A_ROW : cols;
}

int layout_count(const Lower *l, Type type) {
    return layout_rows(l, type) * layout_cols(l, type);
}

int layout_index(const Lower *l, Type type, Element at) {
    int row = layout_rows(l, type) == 1 ? 0 : at.row, col = type.cols == 1 ? 0 : at.col;
    return row * layout_cols(l, type) + col;
}

Value layout_row(Lower *l, int row) {
    return row ? ir_add(l, l->row, ir_int(l, ROWS_APART * row)) : l->row;
}

Value layout_col(Lower *l, int col) {
    return is_spread(l) ? ir_add(l, l->first_col, ir_int(l, col / 2 * GROUP + col % 2)) : ir_int(l, col);
}

int layout_first_col(const Lower *l, int col) {
    return is_spread(l) ? col / 2 * GROUP : col;
}

int layout_lanes_a_row(const Lower *l) {
    return is_spread(l) ? LANES_A_ROW : 1;
}

void layout_begin_role(Lower *l) {
    if (!is_spread(l)) {
        l->row = ir_add(l, ir_shl(l, l->warp_of_role, 5), l->lane);
        l->first_col = ir_int(l, 0);
        return;
    }
    l->row = ir_add(l, ir_shl(l, l->warp_of_role, 4), ir_shr(l, l->lane, 2));
    l->first_col = ir_shl(l, ir_and(l, l->lane, ir_int(l, LANES_A_ROW - 1)), 1);
}

Value layout_stores(Lower *l, Type type) {
    Value first_row = type.rows == 1 ? ir_equal(l, l->row, ir_int(l, 0)) : NULL;
    Value first_col = type.cols == 1 && is_spread(l) ? ir_equal(l, l->first_col, ir_int(l, 0)) : NULL;
    return first_row && first_col ? ir_and(l, first_row, first_col) : first_row ? first_row : first_col;
}
