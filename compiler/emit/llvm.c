// llvm.c: takes a module, gives PTX text. Requires nothing of the module but that it was made for NVPTX.
#include "compiler/emit/emit.h"
#include "compiler/emit/internal.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_INTERNAL = 70 };

static const char TRIPLE[] = "nvptx64-nvidia-cuda";

// Light on purpose: loop passes move address arithmetic of thin roles over their loops and make them spill.
// instcombine's own check of having reached a fixpoint ends the process, so it is off.
static const char PASSES[] = "function(sroa,instcombine<no-verify-fixpoint>,early-cse,simplifycfg)";

// Options that LLVM has for the whole process only. Its machine CSE moves what both sides of a branch begin
// with in front of the branch: arithmetic that a schedule places after the start of a product then runs
// before it, while nothing overlaps.
static const char *const OPTIONS[] = {"jfac", "-disable-machine-cse"};

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void on_fatal_error(const char *reason) {
    fprintf(stderr, "jfac: internal error: LLVM: %s\n", reason);
    fflush(stderr);
    _exit(EXIT_INTERNAL);
}

static void initialize(void) {
    static bool is_done;
    if (is_done)
        return;
    is_done = true;
    LLVMInstallFatalErrorHandler(on_fatal_error);
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMParseCommandLineOptions(sizeof OPTIONS / sizeof OPTIONS[0], OPTIONS, NULL);
}

// ---------------------------------------------------------------- what LLVM reports through the context

typedef struct {
    Arena *arena;
    const char *first_error;
} Complaints;

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *context) {
    Complaints *complaints = context;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || complaints->first_error)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    complaints->first_error = arena_copy(complaints->arena, text, strlen(text));
    LLVMDisposeMessage(text);
}

// Copies a message of LLVM's into the arena and disposes of it.
static const char *keep_message(Arena *arena, const char *doing, char *text) {
    const char *kept = arena_format(arena, "LLVM, %s: %s", doing, text ? text : "no reason given");
    LLVMDisposeMessage(text);
    return kept;
}

// ---------------------------------------------------------------- the steps

static LLVMTargetMachineRef make_machine(const Target *target, Arena *arena, const char **message) {
    LLVMTargetRef backend;
    char *complaint = NULL;
    if (LLVMGetTargetFromTriple(TRIPLE, &backend, &complaint)) {
        *message = keep_message(arena, "looking for the NVPTX back end", complaint);
        return NULL;
    }
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(backend, TRIPLE, target->name, target->ptx, LLVMCodeGenLevelDefault,
                                LLVMRelocDefault, LLVMCodeModelDefault);
    if (!machine)
        *message = arena_format(arena, "LLVM has no back end for %s", target->name);
    return machine;
}

static void set_layout(LLVMModuleRef module, LLVMTargetMachineRef machine) {
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetTarget(module, TRIPLE);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);
}

static bool verify(LLVMModuleRef module, Arena *arena, const char **message) {
    char *complaint = NULL;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &complaint)) {
        *message = keep_message(arena, "verifying the module", complaint);
        return false;
    }
    LLVMDisposeMessage(complaint);
    return true;
}

static bool run_passes(LLVMModuleRef module, LLVMTargetMachineRef machine, Arena *arena,
                       const char **message) {
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, PASSES, machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return true;
    char *text = LLVMGetErrorMessage(error); // consumes the error
    *message = arena_format(arena, "LLVM, running its passes: %s", text);
    LLVMDisposeErrorMessage(text);
    return false;
}

static bool print_ptx(LLVMModuleRef module, LLVMTargetMachineRef machine, Arena *arena, char **ptx,
                      const char **message) {
    LLVMMemoryBufferRef buffer = NULL;
    char *complaint = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMAssemblyFile, &complaint, &buffer)) {
        *message = keep_message(arena, "printing PTX", complaint);
        return false;
    }
    *ptx = arena_copy(arena, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
    return true;
}

bool emit_ptx(LLVMModuleRef module, const Target *target, Arena *arena, EmitTimes *times, char **ptx,
              const char **message) {
    initialize();
    LLVMTargetMachineRef machine = make_machine(target, arena, message);
    if (!machine)
        return false;
    LLVMContextRef context = LLVMGetModuleContext(module);
    Complaints complaints = {arena, NULL};
    LLVMContextSetDiagnosticHandler(context, on_diagnostic, &complaints);

    double start = now_ms();
    set_layout(module, machine);
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    if (major < 21)
        emit_annotate(module, arena);
    bool good = verify(module, arena, message) && run_passes(module, machine, arena, message);
    double middle = now_ms();
    good = good && print_ptx(module, machine, arena, ptx, message);
    if (good && complaints.first_error) {
        *message = arena_format(arena, "LLVM: %s", complaints.first_error);
        good = false;
    }
    if (times)
        *times = (EmitTimes){middle - start, now_ms() - middle};

    LLVMContextSetDiagnosticHandler(context, NULL, NULL);
    LLVMDisposeTargetMachine(machine);
    return good;
}

char *emit_llvm_text(LLVMModuleRef module, Arena *arena) {
    char *text = LLVMPrintModuleToString(module);
    char *kept = arena_copy(arena, text, strlen(text));
    LLVMDisposeMessage(text);
    return kept;
}
