// math.c: typed expressions to IR, one element of a tile at a time. A value that doesn't vary along the
// columns is computed once. Functions map to the chip's fast instructions; all bodies of a role share this
// one lowering.
#include "compiler/lower/internal.h"

#include "grammar/ast.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- kernel arguments

int arg_find(const KernelArgs *args, ArgKind kind, int index, int dim) {
    for (int i = 0; i < args->count; i++)
        if (args->args[i].kind == kind && args->args[i].index == index && args->args[i].dim == dim)
            return i;
    return -1;
}

Value arg_value(Lower *l, ArgKind kind, int index, int dim) {
    int i = arg_find(l->args, kind, index, dim);
    return i < 0 ? LLVMGetUndef(l->i32) : l->arg_values[i];
}

// ---------------------------------------------------------------- the values of the current statement

static CacheEntry *cache_find(Lower *l, const Expr *expr) {
    size_t at = ((size_t)expr >> 4) % CACHE_SIZE;
    while (l->cache[at].expr && l->cache[at].expr != expr)
        at = (at + 1) % CACHE_SIZE;
    return &l->cache[at];
}

void math_cache_clear(Lower *l) {
    if (l->cache_used)
        memset(l->cache, 0, sizeof l->cache);
    l->cache_used = 0;
    l->column_load_count = 0;
}

static Value *cache_values(Lower *l, const Expr *expr) {
    CacheEntry *entry = cache_find(l, expr);
    if (!entry->expr) {
        if (l->cache_used > CACHE_SIZE / 2)
            return NULL; // full: computed again where it is used again
        entry->expr = expr;
        entry->values = arena_array(l->arena, Value, layout_count(l, expr->type));
        l->cache_used++;
    }
    return entry->values;
}

// ---------------------------------------------------------------- operators

static Value float_flags(Value value) {
    if (LLVMIsAInstruction(value) && LLVMCanValueUseFastMathFlags(value))
        LLVMSetFastMathFlags(value, LLVMFastMathAllowContract | LLVMFastMathNoSignedZeros);
    return value;
}

static Value divide(Lower *l, Value a, Value b) {
    // "div.full": at most 2 ulp over the full range; 1/x by rcp.approx.ftz: at most 1 ulp.
    if (LLVMIsAConstantFP(a)) {
        LLVMBool loses;
        if (LLVMConstRealGetDouble(a, &loses) == 1)
            return ptx_math(l, "rcp.approx.ftz.f32", b);
    }
    return ir_asm(l, l->f32, "div.full.f32 $0, $1, $2;", "=f,f,f", true, IR_ARGS(a, b));
}

// Quotient or remainder of integers. Both are 0 where the divisor is 0, and the most negative integer wraps
// when it is divided by -1; LLVM defines neither case, so that those divide by 1 instead. A constant divisor
// needs none of this.
static Value divide_whole(Lower *l, bool is_quotient, Value a, Value b) {
    LLVMBuilderRef builder = l->builder;
    Value one = ir_int(l, 1), minus_one = ir_int(l, -1), zero = ir_int(l, 0);
    if (LLVMIsAConstantInt(b) && LLVMConstIntGetSExtValue(b) > 0)
        return is_quotient ? LLVMBuildSDiv(builder, a, b, "") : LLVMBuildSRem(builder, a, b, "");
    Value is_zero = ir_equal(l, b, zero), is_minus_one = ir_equal(l, b, minus_one);
    Value divisor = ir_select(l, ir_or(l, is_zero, is_minus_one), one, b);
    if (!is_quotient)
        return LLVMBuildSRem(builder, a, divisor, "");
    Value quotient = LLVMBuildSDiv(builder, a, divisor, "");
    return ir_select(l, is_zero, zero, ir_select(l, is_minus_one, ir_sub(l, zero, a), quotient));
}

static Value arithmetic(Lower *l, int op, bool is_float, Value a, Value b) {
    LLVMBuilderRef builder = l->builder;
    switch (op) {
    case '+':
        return is_float ? float_flags(LLVMBuildFAdd(builder, a, b, "")) : ir_add(l, a, b);
    case '-':
        return is_float ? float_flags(LLVMBuildFSub(builder, a, b, "")) : ir_sub(l, a, b);
    case '*':
        return is_float ? float_flags(LLVMBuildFMul(builder, a, b, "")) : ir_mul(l, a, b);
    case '/':
        return is_float ? divide(l, a, b) : divide_whole(l, true, a, b);
    case '%':
        return is_float ? LLVMBuildFRem(builder, a, b, "") : divide_whole(l, false, a, b);
    case OP_AND:
        return ir_and(l, a, b);
    default:
        return ir_or(l, a, b);
    }
}

Value math_plus(Lower *l, Value a, Value b) {
    return arithmetic(l, '+', true, a, b);
}

Value math_times(Lower *l, Value a, Value b) {
    return arithmetic(l, '*', true, a, b);
}

static Value comparison(Lower *l, int op, bool is_float, Value a, Value b) {
    static const struct {
        int op;
        LLVMIntPredicate integer;
        LLVMRealPredicate real;
    } PREDICATES[] = {
        {'<', LLVMIntSLT, LLVMRealOLT},   {'>', LLVMIntSGT, LLVMRealOGT},  {OP_LE, LLVMIntSLE, LLVMRealOLE},
        {OP_GE, LLVMIntSGE, LLVMRealOGE}, {OP_EQ, LLVMIntEQ, LLVMRealOEQ}, {OP_NE, LLVMIntNE, LLVMRealUNE},
    };
    for (size_t i = 0; i < sizeof PREDICATES / sizeof PREDICATES[0]; i++)
        if (PREDICATES[i].op == op)
            return is_float ? LLVMBuildFCmp(l->builder, PREDICATES[i].real, a, b, "")
                            : LLVMBuildICmp(l->builder, PREDICATES[i].integer, a, b, "");
    return NULL;
}

static Value binary(Lower *l, const Expr *expr, Value a, Value b) {
    bool is_float = elem_is_float(expr->a->type.elem);
    Value compared = comparison(l, expr->op, is_float, a, b);
    return compared ? compared : arithmetic(l, expr->op, is_float, a, b);
}

static Value extreme(Lower *l, bool is_float, bool greatest, Value a, Value b) {
    if (!is_float)
        return greatest ? ir_max(l, a, b) : ir_min(l, a, b);
    LLVMTypeRef types[] = {l->f32};
    return ir_intrinsic(l, greatest ? "llvm.maxnum" : "llvm.minnum", types, 1, IR_ARGS(a, b));
}

static Value scaled(Lower *l, Value a, double factor) {
    return float_flags(LLVMBuildFMul(l->builder, a, ir_float(l, factor), ""));
}

// "ex2, lg2, rcp, sqrt, rsqrt, tanh, sin, cos .approx": errors as the PTX ISA states them; exp and log by a
// factor.
static Value call(Lower *l, const Expr *expr, Value a, Value b) {
    bool is_float = elem_is_float(expr->type.elem);
    LLVMTypeRef types[] = {is_float ? l->f32 : l->i32};
    switch ((MathOp)expr->op) {
    case MATH_EXP:
        return ptx_math(l, "ex2.approx.ftz.f32", scaled(l, a, 1.4426950408889634074));
    case MATH_EXP2:
        return ptx_math(l, "ex2.approx.ftz.f32", a);
    case MATH_LOG:
        return scaled(l, ptx_math(l, "lg2.approx.ftz.f32", a), 0.69314718055994530942);
    case MATH_LOG2:
        return ptx_math(l, "lg2.approx.ftz.f32", a);
    case MATH_SQRT:
        return ptx_math(l, "sqrt.approx.ftz.f32", a);
    case MATH_RSQRT:
        return ptx_math(l, "rsqrt.approx.ftz.f32", a);
    case MATH_TANH:
        return ptx_math(l, "tanh.approx.f32", a);
    case MATH_SIN:
        return ptx_math(l, "sin.approx.ftz.f32", a);
    case MATH_COS:
        return ptx_math(l, "cos.approx.ftz.f32", a);
    case MATH_FLOOR:
        return ir_intrinsic(l, "llvm.floor", types, 1, IR_ARGS(a));
    case MATH_ABS:
        if (is_float)
            return ir_intrinsic(l, "llvm.fabs", types, 1, IR_ARGS(a));
        return ir_max(l, a, ir_sub(l, ir_int(l, 0), a));
    case MATH_MIN:
    case MATH_MAX:
        return extreme(l, is_float, expr->op == MATH_MAX, a, b);
    default:
        return LLVMGetUndef(l->f32);
    }
}

static Value combine(Lower *l, ReduceOp op, bool is_float, Value a, Value b) {
    return op == REDUCE_SUM ? arithmetic(l, '+', is_float, a, b)
                            : extreme(l, is_float, op == REDUCE_MAX, a, b);
}

// Four partial results, so that the operations don't wait for each other.
Value math_reduce_own(Lower *l, const Expr *expr, int row) {
    enum { CHAINS = 4 };
    bool is_float = elem_is_float(expr->type.elem);
    int count = layout_cols(l, expr->a->type);
    Value partial[CHAINS] = {0}, *values = arena_array(l->arena, Value, count);
    for (int c = 0; c < count; c++)
        values[c] = math_value(l, expr->a, (Element){row, c});
    Value factor = expr->op == REDUCE_SUM ? NULL : factor_take(l, values, count);
    for (int c = 0; c < count; c++) {
        Value *into = &partial[c % CHAINS];
        *into = *into ? combine(l, (ReduceOp)expr->op, is_float, *into, values[c]) : values[c];
    }
    for (int i = 1; i < CHAINS && partial[i]; i++)
        partial[0] = combine(l, (ReduceOp)expr->op, is_float, partial[0], partial[i]);
    return factor ? math_times(l, partial[0], factor) : partial[0];
}

Value math_reduce_lanes(Lower *l, ReduceOp op, bool is_float, Value own) {
    const char *shuffle = is_float ? "llvm.nvvm.shfl.sync.bfly.f32" : "llvm.nvvm.shfl.sync.bfly.i32";
    for (int distance = 1; distance < layout_lanes_a_row(l); distance *= 2) {
        Value other = ir_intrinsic(l, shuffle, NULL, 0,
                                   IR_ARGS(ir_int(l, -1), own, ir_int(l, distance), ir_int(l, 31)));
        own = combine(l, op, is_float, own, other);
    }
    return own;
}

static Value reduction(Lower *l, const Expr *expr, Element at) {
    return math_reduce_lanes(l, (ReduceOp)expr->op, elem_is_float(expr->type.elem),
                             math_reduce_own(l, expr, at.row));
}

// ---------------------------------------------------------------- leaves

static Value block_field(Lower *l, const Expr *expr) {
    const BlockState *block = &l->blocks[expr->block->number];
    switch ((BlockField)expr->op) {
    case BLOCK_START:
        return block->start;
    case BLOCK_INDEX:
        return block->index;
    case BLOCK_FIRST:
        return ir_equal(l, block->index, ir_int(l, 0));
    case BLOCK_LAST:
        return ir_equal(l, block->index, ir_sub(l, block->count, ir_int(l, 1)));
    default:
        return block->full;
    }
}

static int walk_index(const Lower *l, const Walk *walk) {
    for (int i = 0; i < l->plan->walk_count; i++)
        if (l->plan->walks[i] == walk)
            return i;
    return 0;
}

// A whole tile is read at once, so that one wait covers it; or the window that the statement works on.
static Value slot_value(Lower *l, const Expr *expr, Element at, Value *values) {
    const Buffer *buffer = expr->slot->pipe->buffer;
    if (!values)
        values = arena_array(l->arena, Value, layout_count(l, expr->type));
    bool windowed = l->window_count && buffer->space == SPACE_TMEM && at.col >= l->window_first &&
                    at.col < l->window_first + l->window_count;
    int index = layout_index(l, expr->type, at);
    if (!values[index])
        slot_read(l, expr->slot, windowed ? l->window_first : 0, windowed ? l->window_count : buffer->cols,
                  values);
    return values[index];
}

static Value compute(Lower *l, const Expr *expr, Element at, Value *values) {
    switch (expr->kind) {
    case X_INT:
        return ir_int(l, expr->integer);
    case X_FLOAT:
        return ir_float(l, expr->real);
    case X_BOOL:
        return ir_bool(l, expr->integer != 0);
    case X_LOCAL:
        return local_value(l, expr->local, at);
    case X_DIM:
        return arg_value(l, ARG_DIM, expr->index, 0);
    case X_PARAM:
        return arg_value(l, ARG_PARAM, expr->index, 0);
    case X_FIELD:
        return l->fields[expr->index];
    case X_FACTOR:
        return l->factors[expr->index];
    case X_COUNT:
        return l->walks[walk_index(l, expr->walk)].count;
    case X_BLOCK:
        return block_field(l, expr);
    case X_REPLICA:
        return l->replica;
    case X_CTA:
        return l->cta;
    case X_ROWS:
        return layout_row(l, at.row);
    case X_COLS:
        return l->column ? l->column : layout_col(l, at.col);
    case X_UNARY: {
        Value a = math_value(l, expr->a, at);
        if (expr->op == '!')
            return LLVMBuildNot(l->builder, a, "");
        return elem_is_float(expr->type.elem) ? LLVMBuildFNeg(l->builder, a, "")
                                              : LLVMBuildNeg(l->builder, a, "");
    }
    case X_BINARY: {
        Value a = math_value(l, expr->a, at), b = math_value(l, expr->b, at);
        return binary(l, expr, a, b);
    }
    case X_SELECT: {
        Value condition = math_value(l, expr->a, at);
        if (LLVMIsAConstantInt(condition)) // known in this body: the other branch is not computed
            return math_value(l, LLVMConstIntGetZExtValue(condition) ? expr->b : expr->c, at);
        Value a = math_value(l, expr->b, at), b = math_value(l, expr->c, at);
        return factor_select(l, condition, a, b);
    }
    case X_CALL: {
        Value a = math_value(l, expr->a, at), b = expr->b ? math_value(l, expr->b, at) : NULL;
        return call(l, expr, a, b);
    }
    case X_REDUCE:
        return reduction(l, expr, at);
    case X_CAST:
        return expr->type.elem == ELEM_I32
                   ? ir_intrinsic(l, "llvm.nvvm.f2i.rz", NULL, 0, IR_ARGS(math_value(l, expr->a, at)))
                   : LLVMBuildSIToFP(l->builder, math_value(l, expr->a, at), l->f32, "");
    case X_SLOT:
        return slot_value(l, expr, at, values);
    case X_GATHER:
        return gather_value(l, expr, at);
    }
    return LLVMGetUndef(l->i32);
}

Value math_value(Lower *l, const Expr *expr, Element at) {
    int index = layout_index(l, expr->type, at);
    bool elsewhere = l->column && expr->type.cols != 1; // not the element that the cache is about
    Value *values = elsewhere ? NULL : cache_values(l, expr);
    if (values && values[index])
        return values[index];
    Value value = compute(l, expr, at, values);
    if (values)
        values[index] = value;
    return value;
}

Value math_uniform(Lower *l, const Expr *expr) {
    return math_value(l, expr, (Element){0, 0});
}
