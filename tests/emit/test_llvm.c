// LLVM modules to PTX: what comes out for each target, and that LLVM's complaints come back as messages.
#include "compiler/emit/emit.h"
#include "compiler/emit/internal.h"

#include <llvm-c/IRReader.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static const char GOOD[] = "define ptx_kernel void @scale(ptr addrspace(1) %p) {\n"
                           "  %slot = alloca float\n"
                           "  %x = load float, ptr addrspace(1) %p\n"
                           "  store float %x, ptr %slot\n"
                           "  %y = load float, ptr %slot\n"
                           "  %z = fmul float %y, 2.0\n"
                           "  store float %z, ptr addrspace(1) %p\n"
                           "  ret void\n}\n";

// An operand constraint that the back end doesn't know: it is reported during selection.
static const char BAD_ASM[] = "define ptx_kernel void @bad(i32 %x) {\n"
                              "  call void asm sideeffect \"mov.b32 $0, 1;\", \"{f99}\"(i32 %x)\n"
                              "  ret void\n}\n";

typedef struct {
    LLVMContextRef context;
    LLVMModuleRef module;
    Arena *arena;
} Fixture;

static Fixture open_module(const char *text) {
    Fixture fixture = {LLVMContextCreate(), NULL, arena_new()};
    assert_non_null(fixture.arena);
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "text");
    char *complaint = NULL;
    if (LLVMParseIRInContext(fixture.context, buffer, &fixture.module, &complaint))
        fail_msg("%s", complaint);
    return fixture;
}

static void close_module(Fixture *fixture) {
    LLVMDisposeModule(fixture->module);
    LLVMContextDispose(fixture->context);
    arena_free(fixture->arena);
}

static void ptx_is_printed_for_each_target(void **state) {
    (void)state;
    int count;
    const Target *const *targets = target_all(&count);
    for (int i = 0; i < count; i++) {
        Fixture fixture = open_module(GOOD);
        char *ptx = NULL;
        const char *message = NULL;
        EmitTimes times = {-1, -1};
        if (!emit_ptx(fixture.module, targets[i], fixture.arena, &times, &ptx, &message))
            fail_msg("%s: %s", targets[i]->name, message);
        assert_non_null(strstr(ptx, arena_format(fixture.arena, ".target %s", targets[i]->name)));
        assert_non_null(strstr(ptx, ".visible .entry scale("));
        assert_null(strstr(ptx, ".local")); // the alloca is gone: the passes ran
        assert_true(times.passes_ms >= 0 && times.codegen_ms >= 0);
        close_module(&fixture);
    }
}

static const char BOUNDED[] =
    "define ptx_kernel void @bounded(ptr byval([128 x i8]) align 64 \"nvvm.grid_constant\" %map, ptr "
    "addrspace(1) %p) #0 {\n"
    "  %x = load i32, ptr %map\n  store i32 %x, ptr addrspace(1) %p\n  ret void\n}\n"
    "attributes #0 = { \"nvvm.reqntid\"=\"384\" \"nvvm.minctasm\"=\"1\" \"nvvm.cluster_dim\"=\"2,1,1\" }\n";

static void check_bounds(const char *text) {
    static const char *const NEEDED[] = {".reqntid 384", ".minnctapersm 1", ".explicitcluster",
                                         ".reqnctapercluster 2, 1, 1"};
    Fixture fixture = open_module(text);
    char *ptx = NULL;
    const char *message = NULL;
    if (!emit_ptx(fixture.module, target_find("sm_90a"), fixture.arena, NULL, &ptx, &message))
        fail_msg("%s", message);
    for (size_t i = 0; i < sizeof NEEDED / sizeof NEEDED[0]; i++)
        if (!strstr(ptx, NEEDED[i]))
            fail_msg("no %s in %s", NEEDED[i], ptx);
    assert_null(strstr(ptx, "st.local")); // a grid constant isn't copied
    close_module(&fixture);
}

static void launch_bounds_and_grid_constants_reach_the_ptx(void **state) {
    (void)state;
    check_bounds(BOUNDED);
}

// LLVM 21 and later turn the old metadata into attributes when they read a module: so what is written for
// LLVM 20 can be tested with each of them, on a module whose attributes were cut away.
static void the_metadata_for_llvm_20_says_the_same(void **state) {
    (void)state;
    Fixture fixture = open_module(BOUNDED);
    LLVMSetTarget(fixture.module, "nvptx64-nvidia-cuda");
    emit_annotate(fixture.module, fixture.arena);
    char *text = emit_llvm_text(fixture.module, fixture.arena);
    char *attributes = strstr(text, "attributes #0");
    assert_non_null(attributes);
    for (char *at = attributes; *at && *at != '\n'; at++)
        *at = ' ';
    memset(strstr(text, " #0 {"), ' ', 3);
    char *constant = strstr(text, "\"nvvm.grid_constant\"");
    assert_non_null(constant);
    memset(constant, ' ', strlen("\"nvvm.grid_constant\""));
    check_bounds(text);
    close_module(&fixture);
}

static void llvm_text_is_the_module_as_it_stands(void **state) {
    (void)state;
    Fixture fixture = open_module(GOOD);
    assert_non_null(strstr(emit_llvm_text(fixture.module, fixture.arena), "alloca float"));
    close_module(&fixture);
}

static void a_broken_module_is_a_message_and_not_an_exit(void **state) {
    (void)state;
    LLVMContextRef context = LLVMContextCreate();
    Arena *arena = arena_new();
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("broken", context);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
    LLVMAppendBasicBlockInContext(context, LLVMAddFunction(module, "no_terminator", type), "entry");
    char *ptx = NULL;
    const char *message = NULL;
    assert_false(emit_ptx(module, target_find("sm_90a"), arena, NULL, &ptx, &message));
    assert_non_null(strstr(message, "verifying the module"));
    assert_null(ptx);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    arena_free(arena);
}

static void an_error_of_the_back_end_is_a_message(void **state) {
    (void)state;
    Fixture fixture = open_module(BAD_ASM);
    char *ptx = NULL;
    const char *message = NULL;
    assert_false(emit_ptx(fixture.module, target_find("sm_90a"), fixture.arena, NULL, &ptx, &message));
    assert_non_null(message);
    close_module(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ptx_is_printed_for_each_target),
        cmocka_unit_test(launch_bounds_and_grid_constants_reach_the_ptx),
        cmocka_unit_test(the_metadata_for_llvm_20_says_the_same),
        cmocka_unit_test(llvm_text_is_the_module_as_it_stands),
        cmocka_unit_test(a_broken_module_is_a_message_and_not_an_exit),
        cmocka_unit_test(an_error_of_the_back_end_is_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
