// factors.c: positive factors that the elements of a row share, such as the scale of scores. rowmax(x * f) is
// rowmax(x) * f to the last bit, since rounding keeps the order; and (c ? x * f : -inf) is (c ? x : -inf) *
// f. What remains of the product is then added to, and the chip multiplies and adds in one instruction.
#include "compiler/lower/internal.h"

#include <float.h>
#include <math.h>

static bool is_product(Value value) {
    return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == LLVMFMul;
}

static bool is_positive_param(const Lower *l, Value value) {
    for (int i = 0; i < l->args->count; i++)
        if (l->arg_values[i] == value && l->args->args[i].kind == ARG_PARAM)
            return l->plan->params[l->args->args[i].index].is_positive;
    return false;
}

static bool is_constant_from(Value value, double least) {
    LLVMBool loses;
    if (!LLVMIsAConstantFP(value))
        return false;
    double number = LLVMConstRealGetDouble(value, &loses);
    return number >= least && isfinite(number);
}

// Products count only where they can't become 0, which would turn -inf into NaN.
static bool is_positive(const Lower *l, Value value) {
    if (!is_product(value))
        return is_constant_from(value, FLT_MIN) || is_positive_param(l, value);
    Value a = LLVMGetOperand(value, 0), b = LLVMGetOperand(value, 1);
    return (is_constant_from(a, 1) && is_positive(l, b)) || (is_constant_from(b, 1) && is_positive(l, a));
}

static Value split(const Lower *l, Value value, Value *rest) {
    if (!is_product(value))
        return NULL;
    for (unsigned i = 0; i < 2; i++) {
        Value factor = LLVMGetOperand(value, i);
        if (is_positive(l, factor)) {
            *rest = LLVMGetOperand(value, 1 - i);
            return factor;
        }
    }
    return NULL;
}

Value factor_take(const Lower *l, Value *values, int count) {
    Value common = NULL, rest;
    for (int i = 0; i < count; i++) {
        Value factor = split(l, values[i], &rest);
        if (!factor || (common && factor != common))
            return NULL;
        common = factor;
    }
    for (int i = 0; i < count; i++)
        split(l, values[i], &values[i]);
    return common;
}

static bool is_infinite(Value value) {
    LLVMBool loses;
    return LLVMIsAConstantFP(value) && isinf(LLVMConstRealGetDouble(value, &loses));
}

Value factor_select(Lower *l, Value condition, Value a, Value b) {
    Value rest, factor = is_infinite(b) ? split(l, a, &rest) : NULL;
    if (factor)
        return math_times(l, ir_select(l, condition, rest, b), factor);
    factor = is_infinite(a) ? split(l, b, &rest) : NULL;
    return factor ? math_times(l, ir_select(l, condition, a, rest), factor) : ir_select(l, condition, a, b);
}
