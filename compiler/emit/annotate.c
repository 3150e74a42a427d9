// annotate.c: launch bounds for LLVM 20. From LLVM 21 on they are string attributes ("nvvm.reqntid"); LLVM 20
// knows nothing of those and reads the named metadata nvvm.annotations: {function, "reqntidx", i32}. Without
// a thread count ptxas drops setmaxnreg, so the loss would be silent. LLVM User Guide for NVPTX, "Kernel
// metadata".
#include "compiler/emit/internal.h"

#include <string.h>

typedef struct {
    const char *attribute;
    const char *annotations[3]; // of the first, second and third number in its value
} Bound;

static const Bound BOUNDS[] = {
    {"nvvm.reqntid", {"reqntidx", "reqntidy", "reqntidz"}},
    {"nvvm.maxntid", {"maxntidx", "maxntidy", "maxntidz"}},
    {"nvvm.cluster_dim", {"cluster_dim_x", "cluster_dim_y", "cluster_dim_z"}},
    {"nvvm.minctasm", {"minctasm"}},
    {"nvvm.maxnreg", {"maxnreg"}},
};

static LLVMMetadataRef number(LLVMContextRef context, unsigned value) {
    return LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(context), value, 0));
}

static void annotate(LLVMModuleRef module, LLVMValueRef function, const char *name, LLVMMetadataRef value) {
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMMetadataRef parts[] = {LLVMValueAsMetadata(function),
                               LLVMMDStringInContext2(context, name, strlen(name)), value};
    LLVMMetadataRef node = LLVMMDNodeInContext2(context, parts, 3);
    LLVMAddNamedMetadataOperand(module, "nvvm.annotations", LLVMMetadataAsValue(context, node));
}

static void annotate_bound(LLVMModuleRef module, LLVMValueRef function, const Bound *bound) {
    LLVMAttributeRef attribute = LLVMGetStringAttributeAtIndex(
        function, LLVMAttributeFunctionIndex, bound->attribute, (unsigned)strlen(bound->attribute));
    if (!attribute)
        return;
    unsigned length;
    const char *at = LLVMGetStringAttributeValue(attribute, &length), *end = at + length;
    for (int i = 0; i < 3 && bound->annotations[i] && at < end; i++) {
        unsigned value = 0;
        for (; at < end && *at >= '0' && *at <= '9'; at++)
            value = value * 10 + (unsigned)(*at - '0');
        annotate(module, function, bound->annotations[i], number(LLVMGetModuleContext(module), value));
        at += at < end; // the comma
    }
}

// Parameters are counted from 1 here.
static void annotate_grid_constants(LLVMModuleRef module, LLVMValueRef function, Arena *arena) {
    static const char NAME[] = "nvvm.grid_constant";
    LLVMContextRef context = LLVMGetModuleContext(module);
    unsigned count = LLVMCountParams(function), found = 0;
    LLVMMetadataRef *numbers = arena_array(arena, LLVMMetadataRef, count);
    for (unsigned i = 1; i <= count; i++)
        if (LLVMGetStringAttributeAtIndex(function, i, NAME, sizeof NAME - 1))
            numbers[found++] = number(context, i);
    if (found)
        annotate(module, function, "grid_constant", LLVMMDNodeInContext2(context, numbers, found));
}

void emit_annotate(LLVMModuleRef module, Arena *arena) {
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function;
         function = LLVMGetNextFunction(function)) {
        for (size_t i = 0; i < sizeof BOUNDS / sizeof BOUNDS[0]; i++)
            annotate_bound(module, function, &BOUNDS[i]);
        annotate_grid_constants(module, function, arena);
    }
}
