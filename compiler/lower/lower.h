// lower.h: the plan to LLVM IR. Takes a placed and checked plan, gives a module with one kernel and its
// manifest.
#ifndef JFA_COMPILER_LOWER_LOWER_H
#define JFA_COMPILER_LOWER_LOWER_H

#include "compiler/plan/plan.h"

#include <llvm-c/Core.h>

// One parameter of the kernel, in order; the manifest lists the same.
typedef enum {
    ARG_MAP,     // index: plan->maps
    ARG_POINTER, // index: plan->tensors
    ARG_STRIDE,  // index: plan->tensors, dim
    ARG_DIM,     // index: plan->dims
    ARG_PARAM,   // index: plan->params
    ARG_RECORDS,
    ARG_ITEMS,
    ARG_WATCHDOG,
    ARG_QUEUE,
} ArgKind;

typedef struct {
    ArgKind kind;
    int index, dim;
    int offset, bytes; // in the parameter block
} KernelArg;

typedef struct {
    KernelArg *args;
    int count, bytes;
} KernelArgs;

typedef struct { // one of the kernel's waits
    const char *role, *pipe;
    bool is_full;      // for a filled slot; otherwise for a free one
    int count, stages; // pipes of that name, and slots of each
    Span place;
} Wait;

// A time limit for waits; lower_kernel lists those that have it.
typedef struct {
    int64_t ms; // 0: none
    Wait *waits;
    int count;
} Watchdog;

// Which tensors are reached by pointers (and which strides), through maps, and which dims and params are
// read.
KernelArgs lower_arguments(Plan *plan, const Watchdog *watchdog);

// The kernel's symbol in the module.
const char *lower_entry_name(const Plan *plan);

// Builds the module in `context`. `sources` gives .loc lines; NULL: none.
LLVMModuleRef lower_kernel(const Plan *plan, const KernelArgs *args, const SourceSet *sources,
                           Watchdog *watchdog, LLVMContextRef context);

// Adds the manifest as the global byte array `jfa_manifest`.
void lower_add_manifest(LLVMModuleRef module, const char *text, size_t length);

#endif
