// gather.c: elements of tensors that are read one by one. What is the same for all rows of a tile is loaded
// once a warp: each lane loads a column of 32, and hands it to the others.
#include "compiler/lower/internal.h"

#include "grammar/ast.h"

static Value to_long(Lower *l, Value value) {
    return LLVMBuildSExt(l->builder, value, l->i64, "");
}

// How many elements a dim has, i32: an axis has the sequence's length.
static Value dim_extent(Lower *l, const TensorDim *dim) {
    switch (dim->kind) {
    case DIM_AXIS:
        return l->fields[plan_field((Plan *)l->plan, FIELD_LEN, dim->index, 0)];
    case DIM_RUNTIME:
        return arg_value(l, ARG_DIM, dim->index, 0);
    default:
        return ir_int(l, dim->extent);
    }
}

// The positions that need no check: the tile's index along the same dim, and constants.
static bool is_inside_always(const Lower *l, const TensorDim *dim, const Expr *position) {
    if (dim->kind == DIM_RUNTIME)
        return position->kind == X_FACTOR && l->plan->factors[position->index].dim == dim->index;
    return dim->kind == DIM_CONSTANT && position->kind == X_INT && position->integer >= 0 &&
           position->integer < dim->extent;
}

static Value element_address(Lower *l, int index, Value offset) {
    Elem elem = l->plan->tensors[index].elem;
    LLVMTypeRef type = elem_bytes(elem) == 2 ? l->i16 : elem == ELEM_I32 ? l->i32 : l->f32;
    return LLVMBuildGEP2(l->builder, type, arg_value(l, ARG_POINTER, index, 0), &offset, 1, "");
}

static Value place_offset(Lower *l, int index, int dim, Value position) {
    Value place = to_long(l, position);
    if (l->plan->tensors[index].dims[dim].kind == DIM_AXIS)
        place = ir_add(l, to_long(l, l->fields[plan_field((Plan *)l->plan, FIELD_BASE, index, dim)]), place);
    return ir_mul(l, place, arg_value(l, ARG_STRIDE, index, dim));
}

// The address of one element, in 64 bits. *inside: i1, all positions are within their dims.
Value math_tensor_address(Lower *l, int index, Expr *const *positions, Element at, Value *inside) {
    const Tensor *tensor = &l->plan->tensors[index];
    Value offset = ir_long(l, 0);
    *inside = ir_bool(l, true);
    for (int i = 0; i < tensor->rank; i++) {
        Value position = math_value(l, positions[i], at);
        if (!is_inside_always(l, &tensor->dims[i], positions[i])) {
            Value extent = dim_extent(l, &tensor->dims[i]),
                  within = LLVMBuildICmp(l->builder, LLVMIntULT, position, extent, "");
            *inside = LLVMIsAConstantInt(*inside) ? within : ir_and(l, *inside, within);
        }
        offset = ir_add(l, offset, place_offset(l, index, i, position));
    }
    return element_address(l, index, offset);
}

// Whether sequences without positions on the axis can be met here: neither does the grid go over it, nor is
// this within one of its blocks.
static bool may_be_empty(const Lower *l, int axis) {
    for (int i = 0; i < l->plan->tile_axis_count; i++)
        if (l->plan->tile_axes[i].axis == axis)
            return false;
    return !(l->walked_axes >> axis & 1);
}

// A position outside of its dim reads the nearest element inside. Where there is none, the load goes to the
// list of records, which is there whenever a tile is, and its value is replaced by 0.
static Value load_element(Lower *l, const Expr *expr, Element at) {
    const Tensor *tensor = &l->plan->tensors[expr->index];
    Value offset = ir_long(l, 0), some = NULL, zero = ir_int(l, 0);
    for (int i = 0; i < tensor->rank; i++) {
        const TensorDim *dim = &tensor->dims[i];
        Value place = math_value(l, expr->args[i], at);
        if (!is_inside_always(l, dim, expr->args[i])) {
            Value extent = dim_extent(l, dim);
            place = ir_max(l, ir_min(l, place, ir_sub(l, extent, ir_int(l, 1))), zero);
            if (dim->kind == DIM_AXIS && may_be_empty(l, dim->index)) {
                Value has = ir_less(l, zero, extent);
                some = some ? ir_and(l, some, has) : has;
            }
        }
        offset = ir_add(l, offset, place_offset(l, expr->index, i, place));
    }
    LLVMTypeRef type = elem_bytes(tensor->elem) == 2 ? l->i16 : tensor->elem == ELEM_I32 ? l->i32 : l->f32;
    Value address = element_address(l, expr->index, offset);
    if (some)
        address = ir_select(l, some, address, arg_value(l, ARG_RECORDS, 0, 0));
    Value value = LLVMBuildLoad2(l->builder, type, address, "");
    LLVMSetMetadata(value, LLVMGetMDKindIDInContext(l->context, "invariant.load", 14),
                    LLVMMDNodeInContext(l->context, NULL, 0));
    if (some)
        value = ir_select(l, some, value, LLVMConstNull(type));
    if (tensor->elem == ELEM_BF16)
        return LLVMBuildBitCast(l->builder, ir_shl(l, LLVMBuildZExt(l->builder, value, l->i32, ""), 16),
                                l->f32, "");
    if (tensor->elem == ELEM_F16)
        return LLVMBuildFPExt(l->builder,
                              LLVMBuildBitCast(l->builder, value, LLVMHalfTypeInContext(l->context), ""),
                              l->f32, "");
    return value;
}

// ---------------------------------------------------------------- columns

// Whether a value can be computed for a column that the thread doesn't hold.
static bool is_of_any_column(const Expr *expr) {
    if (!expr || type_is_uniform(expr->type))
        return true;
    if (expr->type.rows != 1 || expr->kind == X_LOCAL || expr->kind == X_SLOT || expr->kind == X_REDUCE)
        return false;
    for (int i = 0; i < expr->arg_count; i++)
        if (!is_of_any_column(expr->args[i]))
            return false;
    return is_of_any_column(expr->a) && is_of_any_column(expr->b) && is_of_any_column(expr->c);
}

// What the lane loaded for its column of 32; loaded here unless that was done.
static Value column_load(Lower *l, const Expr *expr, int group) {
    for (int i = 0; i < l->column_load_count; i++)
        if (l->column_loads[i].expr == expr && l->column_loads[i].group == group)
            return l->column_loads[i].value;
    l->column = ir_add(l, l->lane, ir_int(l, LANES * group));
    Value value = load_element(l, expr, (Element){0, 0});
    l->column = NULL;
    value = LLVMBuildBitCast(l->builder, value, l->i32, "");
    if (l->column_load_count < MAX_COLUMN_LOADS)
        l->column_loads[l->column_load_count++] = (ColumnLoad){expr, group, value};
    return value;
}

Value gather_value(Lower *l, const Expr *expr, Element at) {
    if (l->column || !l->role->uses_values || expr->type.cols == 1 || !is_of_any_column(expr))
        return load_element(l, expr, at);
    Value loaded = column_load(l, expr, layout_first_col(l, at.col) / LANES);
    Value lane = ir_and(l, layout_col(l, at.col), ir_int(l, LANES - 1));
    Value value = ir_intrinsic(l, "llvm.nvvm.shfl.sync.idx.i32", NULL, 0,
                               IR_ARGS(ir_int(l, -1), loaded, lane, ir_int(l, LANES - 1)));
    return expr->type.elem == ELEM_F32 ? LLVMBuildBitCast(l->builder, value, l->f32, "") : value;
}
