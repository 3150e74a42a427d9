// ir.c: short names for what the lowering builds most.
#include "compiler/lower/internal.h"

#include <string.h>

Value ir_int(Lower *l, int64_t value) {
    return LLVMConstInt(l->i32, (unsigned long long)value, true);
}
Value ir_long(Lower *l, int64_t value) {
    return LLVMConstInt(l->i64, (unsigned long long)value, true);
}
Value ir_float(Lower *l, double value) {
    return LLVMConstReal(l->f32, value);
}
Value ir_bool(Lower *l, bool value) {
    return LLVMConstInt(l->i1, value, false);
}
Value ir_add(Lower *l, Value a, Value b) {
    return LLVMBuildAdd(l->builder, a, b, "");
}
Value ir_sub(Lower *l, Value a, Value b) {
    return LLVMBuildSub(l->builder, a, b, "");
}
Value ir_mul(Lower *l, Value a, Value b) {
    return LLVMBuildMul(l->builder, a, b, "");
}
Value ir_udiv(Lower *l, Value a, Value b) {
    return LLVMBuildUDiv(l->builder, a, b, "");
}
Value ir_urem(Lower *l, Value a, Value b) {
    return LLVMBuildURem(l->builder, a, b, "");
}
Value ir_and(Lower *l, Value a, Value b) {
    return LLVMBuildAnd(l->builder, a, b, "");
}
Value ir_or(Lower *l, Value a, Value b) {
    return LLVMBuildOr(l->builder, a, b, "");
}
Value ir_xor(Lower *l, Value a, Value b) {
    return LLVMBuildXor(l->builder, a, b, "");
}
Value ir_less(Lower *l, Value a, Value b) {
    return LLVMBuildICmp(l->builder, LLVMIntSLT, a, b, "");
}
Value ir_equal(Lower *l, Value a, Value b) {
    return LLVMBuildICmp(l->builder, LLVMIntEQ, a, b, "");
}
Value ir_min(Lower *l, Value a, Value b) {
    return ir_select(l, ir_less(l, a, b), a, b);
}
Value ir_max(Lower *l, Value a, Value b) {
    return ir_select(l, ir_less(l, a, b), b, a);
}

static Value amount(Value like, int bits) {
    return LLVMConstInt(LLVMTypeOf(like), (unsigned long long)bits, false);
}
Value ir_shl(Lower *l, Value a, int bits) {
    return LLVMBuildShl(l->builder, a, amount(a, bits), "");
}
Value ir_shr(Lower *l, Value a, int bits) {
    return LLVMBuildLShr(l->builder, a, amount(a, bits), "");
}

Value ir_select(Lower *l, Value condition, Value a, Value b) {
    if (LLVMIsAConstantInt(condition))
        return LLVMConstIntGetZExtValue(condition) ? a : b;
    return LLVMBuildSelect(l->builder, condition, a, b, "");
}

Value ir_variable(Lower *l, LLVMTypeRef type, Value initial) {
    Value variable = LLVMBuildAlloca(l->entry_builder, type, "");
    if (initial)
        ir_set(l, variable, initial);
    return variable;
}

Value ir_get(Lower *l, LLVMTypeRef type, Value variable) {
    return LLVMBuildLoad2(l->builder, type, variable, "");
}
void ir_set(Lower *l, Value variable, Value value) {
    LLVMBuildStore(l->builder, value, variable);
}

LLVMBasicBlockRef ir_block(Lower *l, const char *name) {
    return LLVMAppendBasicBlockInContext(l->context, l->function, name);
}

void ir_at(Lower *l, LLVMBasicBlockRef block) {
    LLVMPositionBuilderAtEnd(l->builder, block);
}
void ir_jump(Lower *l, LLVMBasicBlockRef block) {
    LLVMBuildBr(l->builder, block);
}

void ir_branch(Lower *l, Value condition, LLVMBasicBlockRef yes, LLVMBasicBlockRef no) {
    LLVMBuildCondBr(l->builder, condition, yes, no);
}

Value ir_intrinsic(Lower *l, const char *name, LLVMTypeRef *types, int type_count, Value *args,
                   int arg_count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMTypeRef type = LLVMIntrinsicGetType(l->context, id, types, (size_t)type_count);
    Value declaration = LLVMGetIntrinsicDeclaration(l->module, id, types, (size_t)type_count);
    return LLVMBuildCall2(l->builder, type, declaration, args, (unsigned)arg_count, "");
}

// Everything with a side effect is also convergent: LLVM must not move it into or out of a branch.
Value ir_asm(Lower *l, LLVMTypeRef result, const char *text, const char *constraints, bool pure, Value *args,
             int count) {
    LLVMTypeRef types[MOST_ASM_ARGS];
    for (int i = 0; i < count; i++)
        types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, (unsigned)count, false);
    const char *full =
        pure ? constraints : arena_format(l->arena, "%s%s~{memory}", constraints, *constraints ? "," : "");
    Value code = LLVMGetInlineAsm(type, text, strlen(text), full, strlen(full), !pure, false,
                                  LLVMInlineAsmDialectATT, false);
    Value call = LLVMBuildCall2(l->builder, type, code, args, (unsigned)count, "");
    if (!pure) {
        unsigned kind = LLVMGetEnumAttributeKindForName("convergent", strlen("convergent"));
        LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
                                 LLVMCreateEnumAttribute(l->context, kind, 0));
    }
    return call;
}
