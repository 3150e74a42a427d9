// jfac.c: the steps of one compilation, in order.
#include "compiler/jfac.h"

#include "compiler/emit/emit.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/manifest.h"
#include "compiler/plan/place.h"
#include "compiler/plan/protocol.h"
#include "compiler/unread.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct Jfac {
    Arena *arena;
    SourceSet sources;
    Diag diag;
    Ast *tree;
    SemaParts parts;
    Plan *plan;
    char *ptx, *llvm;
    JfacTimes times;
    bool parsed, checked, lowered;
};

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

Jfac *jfac_new(void) {
    Jfac *jfac = calloc(1, sizeof *jfac);
    if (!jfac || !(jfac->arena = arena_new())) {
        free(jfac);
        return NULL;
    }
    jfac->sources.arena = jfac->arena;
    diag_init(&jfac->diag, jfac->arena, &jfac->sources);
    return jfac;
}

void jfac_free(Jfac *jfac) {
    if (jfac)
        arena_free(jfac->arena);
    free(jfac);
}

bool jfac_parse(Jfac *jfac, const JfacOptions *options) {
    if (!jfac->parsed) {
        double start = now_ms();
        jfac->tree = sema_load(jfac->arena, &jfac->diag, options->path, options->include_dirs,
                               options->include_dir_count);
        jfac->parsed = true;
        jfac->times.front_ms += now_ms() - start;
    }
    return !jfac->diag.error_count;
}

// ---------------------------------------------------------------- the reference

static bool find_elem(const char *name, Elem *elem) {
    for (int i = 0; i < ELEM_COUNT; i++)
        if (!strcmp(elem_name((Elem)i), name)) {
            *elem = (Elem)i;
            return true;
        }
    return false;
}

int jfac_given_constants(const Plan *plan, const char *const *defines, int define_count,
                         ReferenceConstant *out) {
    int count = 0;
    for (int i = 0; i < define_count; i++) {
        size_t length = strcspn(defines[i], "=");
        for (int j = 0; j < plan->constant_count; j++) {
            const Constant *constant = &plan->constants[j];
            if (strlen(constant->name) != length || strncmp(constant->name, defines[i], length))
                continue;
            ReferenceConstant *given = &out[count++];
            *given = (ReferenceConstant){.name = constant->name, .value = constant->value};
            given->is_type = constant->text && find_elem(constant->text, &given->type);
            break;
        }
    }
    return count;
}

static bool has_reference(const Ast *family) {
    const Ast *item = family->list;
    while (item && item->kind != AST_REFERENCE)
        item = item->next;
    return item;
}

// The reference in words of the plan. Nothing is evaluated, so lengths don't matter, and extents and params
// without default are what no reference has reason to compare with.
static bool check_reference(Jfac *jfac, const JfacOptions *options, const Plan *plan) {
    enum { SOME_EXTENT = 96, SOME_VALUE = 97 };
    Arena *arena = jfac->arena;
    ReferenceConstant *constants = arena_array(arena, ReferenceConstant, options->define_count);
    ReferenceDim *dims = arena_array(arena, ReferenceDim, plan->dim_count);
    ReferenceAxis *axes = arena_array(arena, ReferenceAxis, plan->axis_count);
    ReferenceParam *params = arena_array(arena, ReferenceParam, plan->param_count);
    ReferenceTensor *tensors = arena_array(arena, ReferenceTensor, plan->tensor_count);
    ReferenceProblem problem = {
        .family = jfac->parts.family,
        .kernel = jfac->parts.kernel,
        .constants = constants,
        .constant_count = jfac_given_constants(plan, options->defines, options->define_count, constants),
        .dims = dims,
        .dim_count = plan->dim_count,
        .axes = axes,
        .axis_count = plan->axis_count,
        .params = params,
        .tensors = tensors,
        .tensor_count = plan->tensor_count};
    for (int i = 0; i < plan->dim_count; i++)
        dims[i] = (ReferenceDim){plan->dims[i].name, SOME_EXTENT};
    for (int i = 0; i < plan->axis_count; i++)
        axes[i].name = plan->axes[i].name;
    for (int i = 0; i < plan->param_count; i++)
        if (!plan->params[i].has_default)
            params[problem.param_count++] = (ReferenceParam){plan->params[i].name, SOME_VALUE};
    for (int i = 0; i < plan->tensor_count; i++) {
        const Tensor *tensor = &plan->tensors[i];
        static const double NOTHING; // is given, but not read
        tensors[i] = (ReferenceTensor){.name = tensor->name, .data = &NOTHING, .rank = tensor->rank};
        for (int d = 0; d < tensor->rank; d++)
            tensors[i].extent[d] =
                tensor->dims[d].kind == DIM_CONSTANT ? tensor->dims[d].extent : SOME_EXTENT;
    }
    return !has_reference(jfac->parts.family) || reference_check(arena, &jfac->diag, &problem);
}

static bool read_tuned(Jfac *jfac, const char *path, const TunedEntry **entries) {
    TunedEntry *read = NULL;
    const char *reason;
    int file = source_read(&jfac->sources, path, &reason);
    if (file < 0)
        diag_error(&jfac->diag, (Span){-1, 0, 0}, "unreadable-file", "can't read %s: %s", path, reason);
    bool good = file >= 0 && tuned_parse(jfac->arena, &jfac->diag, file, &read);
    *entries = read;
    return good;
}

static bool check_counts(Jfac *jfac, const JfacOptions *options, Plan *plan) {
    const Watchdog watchdog = {.ms = options->watchdog_ms};
    const KernelArgs args = lower_arguments(plan, &watchdog);
    const char *excess = lower_too_many(plan, &args, &watchdog);
    if (excess)
        diag_error(&jfac->diag, plan->kernel_span, "too-many", "%s", excess);
    return !excess;
}

static void check(Jfac *jfac, const JfacOptions *options) {
    const Target *target = target_find(options->target);
    if (!target) {
        int count;
        const Target *const *all = target_all(&count);
        const char *names[8];
        for (int i = 0; i < count; i++)
            names[i] = all[i]->name;
        DiagItem *item = diag_error(&jfac->diag, (Span){-1, 0, 0}, "unknown-target",
                                    "there is no target '%s'", options->target);
        const char *closest = diag_closest(options->target, names, count);
        diag_help(item, "the nearest is '%s'", closest ? closest : names[0]);
        return;
    }
    SemaOptions sema = {.target = target,
                        .kernel = options->kernel,
                        .defines = options->defines,
                        .define_count = options->define_count,
                        .device = options->tuned_device};
    if (options->tuned && !read_tuned(jfac, options->tuned, &sema.tuned))
        return;
    Plan *plan = sema_build(jfac->arena, &jfac->diag, jfac->tree, &sema, &jfac->parts);
    if (plan && place_plan(plan, &jfac->diag) && protocol_check(plan, &jfac->diag) &&
        check_reference(jfac, options, plan) && check_counts(jfac, options, plan))
        jfac->plan = plan;
}

static bool has_missing_file(const Diag *diag) {
    const DiagItem *item = diag->items;
    while (item && strcmp(item->code, "unknown-file"))
        item = item->next;
    return item;
}

// A file that can't be parsed whole is checked as far as it was read, so that one run reports more. What was
// not read may hold what is then missed, so nothing is said to be missing but names that nothing in the text
// can declare.
static bool may_be_in_what_was_not_read(const Diag *diag, const DiagItem *item) {
    static const char *const MISSING[] = {
        "no-kernel",      "no-schedule",    "unknown-name",      "unknown-type",   "unknown-member",
        "unknown-option", "option-missing", "unknown-parameter", "argument-count", "bad-grid",
        "unknown-slot",   "slot-not-freed", "slot-one-path",     "never-filled",   "role-size",
        "bad-define",     "not-assignable", "not-indexable",     "tuned-unknown",
    };
    bool is_missing = false;
    for (size_t i = 0; i < sizeof MISSING / sizeof MISSING[0]; i++)
        is_missing |= !strcmp(item->code, MISSING[i]);
    return is_missing && (strcmp(item->code, "unknown-name") || has_missing_file(diag) ||
                          unread_may_declare(diag->sources, item->span));
}

static void check_what_was_read(Jfac *jfac, const JfacOptions *options) {
    int read = 0;
    for (const DiagItem *item = jfac->diag.items; item; item = item->next)
        read++;
    check(jfac, options);
    if (read)
        diag_take_back(&jfac->diag, read, may_be_in_what_was_not_read);
}

bool jfac_check(Jfac *jfac, const JfacOptions *options) {
    jfac_parse(jfac, options);
    if (!jfac->checked && jfac->sources.count) {
        double start = now_ms();
        check_what_was_read(jfac, options);
        jfac->checked = true;
        jfac->times.front_ms += now_ms() - start;
    }
    return !jfac->diag.error_count && jfac->plan;
}

static bool lower(Jfac *jfac, const JfacOptions *options, const char **message) {
    LLVMContextRef context = LLVMContextCreate();
    Watchdog watchdog = {.ms = options->watchdog_ms};
    KernelArgs args = lower_arguments(jfac->plan, &watchdog);
    LLVMModuleRef module = lower_kernel(jfac->plan, &args, &jfac->sources, &watchdog, context);
    bool good = false;
    if (module) {
        size_t length;
        const char *manifest = lower_manifest(jfac->plan, &args, &watchdog, &jfac->sources, &length, message);
        if (manifest) {
            lower_add_manifest(module, manifest, length);
            jfac->llvm = emit_llvm_text(module, jfac->arena);
            good = emit_ptx(module, jfac->plan->target, jfac->arena, NULL, &jfac->ptx, message);
        }
        LLVMDisposeModule(module);
    } else {
        *message = "a role uses more pipes than the lowering can follow";
    }
    LLVMContextDispose(context);
    return good;
}

bool jfac_lower(Jfac *jfac, const JfacOptions *options, const char **message) {
    *message = NULL;
    if (!jfac_check(jfac, options))
        return false;
    if (!jfac->lowered) {
        double start = now_ms();
        jfac->lowered = lower(jfac, options, message);
        jfac->times.llvm_ms += now_ms() - start;
    }
    return jfac->lowered;
}

const Diag *jfac_diag(const Jfac *jfac) {
    return &jfac->diag;
}
const Ast *jfac_tree(const Jfac *jfac) {
    return jfac->tree;
}
const SemaParts *jfac_parts(const Jfac *jfac) {
    return &jfac->parts;
}
const Plan *jfac_plan(const Jfac *jfac) {
    return jfac->plan;
}
const char *jfac_ptx(const Jfac *jfac) {
    return jfac->ptx;
}
const char *jfac_llvm(const Jfac *jfac) {
    return jfac->llvm;
}
JfacTimes jfac_times(const Jfac *jfac) {
    return jfac->times;
}
