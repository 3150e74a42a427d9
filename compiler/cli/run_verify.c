// run_verify.c: the family's reference beside what came back.
#include "compiler/cli/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- the problem in the reference's words

static ReferenceTensor describe_tensor(const RunTensor *tensor, const void *data) {
    const Tensor *declared = tensor->declared;
    ReferenceTensor out = {.name = declared->name, .data = data, .rank = declared->rank};
    for (int d = 0; d < declared->rank; d++) {
        out.extent[d] = tensor->extents[d];
        out.stride[d] = tensor->strides[d];
        out.base[d] = tensor->wide_bases[d];
    }
    return out;
}

static ReferenceProblem describe(const RunProblem *problem, const Session *session,
                                 const CliOptions *options) {
    const Plan *plan = problem->plan;
    Arena *arena = problem->arena;
    ReferenceConstant *constants = arena_array(arena, ReferenceConstant, options->defines.count);
    ReferenceDim *dims = arena_array(arena, ReferenceDim, plan->dim_count);
    ReferenceAxis *axes = arena_array(arena, ReferenceAxis, plan->axis_count);
    ReferenceParam *params = arena_array(arena, ReferenceParam, plan->param_count);
    ReferenceTensor *tensors = arena_array(arena, ReferenceTensor, plan->tensor_count);
    ReferenceProblem out = {.family = jfac_parts(session->jfac)->family,
                            .kernel = jfac_parts(session->jfac)->kernel,
                            .sequences = problem->sequences,
                            .constants = constants,
                            .constant_count = jfac_given_constants(plan, options->defines.items,
                                                                   options->defines.count, constants),
                            .dims = dims,
                            .dim_count = plan->dim_count,
                            .axes = axes,
                            .axis_count = plan->axis_count,
                            .params = params,
                            .tensors = tensors};
    for (int i = 0; i < plan->dim_count; i++)
        dims[i] = (ReferenceDim){plan->dims[i].name, problem->dims[i]};
    for (int i = 0; i < plan->axis_count; i++)
        axes[i] = (ReferenceAxis){plan->axes[i].name, problem->wide_lengths[i]};
    for (int i = 0; i < plan->param_count; i++)
        if (problem->is_param_given[i])
            params[out.param_count++] = (ReferenceParam){plan->params[i].name, problem->params[i]};
    for (int i = 0; i < plan->tensor_count; i++) {
        const RunTensor *tensor = &problem->tensors[i];
        const void *data =
            tensor->declared->direction == TENSOR_OUT ? NULL : tensor->before + RUN_GUARD_BYTES;
        if (tensor->is_given)
            tensors[out.tensor_count++] = describe_tensor(tensor, data);
    }
    return out;
}

// ---------------------------------------------------------------- the table

// Totals of the axes, "3560/5120", or one number when all are equal.
static const char *position_counts(const RunProblem *problem) {
    const char *text = "";
    bool is_same = true;
    for (int i = 0; i < problem->plan->axis_count; i++) {
        is_same = is_same && run_total(problem, i) == run_total(problem, 0);
        text = arena_format(problem->arena, "%s%s%lld", text, i ? "/" : "", (long long)run_total(problem, i));
    }
    return is_same && problem->plan->axis_count
               ? arena_format(problem->arena, "%lld", (long long)run_total(problem, 0))
               : text;
}

static void print_header(void) {
    printf("%-16s %-14s %5s %9s %14s %-8s %10s %10s %10s %10s %10s  %s\n", "kernel", "device", "seed",
           "sequences", "positions", "output", "max error", "bound", "rel error", "bound", "ms", "result");
    fflush(stdout);
}

static void print_row(const RunProblem *problem, const RunRow *row, const char *output,
                      const ReferenceComparison *found, bool passes) {
    static bool has_header;
    if (!has_header)
        print_header();
    has_header = true;
    printf("%-16s %-14s %5lld %9lld %14s %-8s %10.3g %10.3g %10.3g %10.3g %10.2f  %s\n",
           problem->plan->kernel_name, row->device, (long long)row->seed, (long long)problem->sequences,
           position_counts(problem), output, found->kernel_maximum, found->maximum_bound,
           found->kernel_relative, found->relative_bound, row->milliseconds, passes ? "pass" : "FAIL");
    fflush(stdout);
}

static void print_worst(const RunTensor *tensor, const ReferenceComparison *found) {
    if (found->passes || found->worst < 0)
        return;
    int64_t rest = found->worst, index[MAX_TENSOR_DIMS];
    for (int d = tensor->declared->rank - 1; d >= 0; d--) {
        index[d] = rest % tensor->extents[d];
        rest /= tensor->extents[d];
    }
    fprintf(stderr, "jfac: the worst element is %s[", tensor->declared->name);
    for (int d = 0; d < tensor->declared->rank; d++)
        fprintf(stderr, "%s%lld", d ? ", " : "", (long long)index[d]);
    fprintf(stderr, "] (rows count from the tensor's start): %.9g where the reference has %.9g\n",
            found->worst_kernel, found->worst_exact);
}

// ---------------------------------------------------------------- verdicts

static bool compare_output(const RunProblem *problem, const RunRow *row, RunTensor *tensor,
                           const ReferenceOutput *exact, const ReferenceOutput *rounded) {
    ReferenceTensor came = describe_tensor(tensor, tensor->after + RUN_GUARD_BYTES);
    ReferenceComparison found = reference_compare(&came, exact, rounded);
    tensor->bound = found.maximum_bound;
    int64_t strays = run_count_strays(tensor, exact->written);
    bool passes = found.passes && !strays;
    if (row)
        print_row(problem, row, tensor->declared->name, &found, passes);
    print_worst(tensor, &found);
    if (strays)
        fprintf(stderr, "jfac: %lld bytes of %s that belong to no sequence were written\n", (long long)strays,
                tensor->declared->name);
    return passes;
}

static const ReferenceOutput *find_output(const ReferenceResults *results, const char *name) {
    for (int i = 0; i < results->count; i++)
        if (!strcmp(results->outputs[i].name, name))
            return &results->outputs[i];
    return NULL;
}

bool run_compare(RunProblem *problem, const RunReference *reference, const RunRow *row) {
    bool passes = true;
    for (int i = 0; i < problem->plan->tensor_count; i++) {
        RunTensor *tensor = &problem->tensors[i];
        const char *name = tensor->declared->name;
        const ReferenceOutput *output = find_output(&reference->exact, name),
                              *narrow = find_output(&reference->rounded, name);
        if (!tensor->is_given)
            continue;
        if (output && narrow)
            passes = compare_output(problem, row, tensor, output, narrow) && passes;
        else if (run_count_strays(tensor, NULL)) {
            fprintf(stderr, "jfac: %s was written, which %s\n", name,
                    tensor->declared->direction == TENSOR_IN ? "is an input"
                                                             : "the family's reference says nothing of");
            passes = false;
        }
    }
    return passes;
}

int run_reference(const RunProblem *problem, Session *session, const CliOptions *options,
                  RunReference *reference) {
    ReferenceProblem described = describe(problem, session, options);
    Diag diag;
    diag_init(&diag, problem->arena, jfac_diag(session->jfac)->sources);
    *reference = (RunReference){0};
    bool good = reference_evaluate(problem->arena, &diag, &described, REFERENCE_EXACT, &reference->exact) &&
                reference_evaluate(problem->arena, &diag, &described, REFERENCE_ROUNDED, &reference->rounded);
    diag_print_text(&diag, stderr);
    if (!good && !diag.error_count)
        return internal_error("the reference can't be evaluated, for no reason given");
    return good ? STATUS_GOOD : STATUS_INPUT;
}

void run_free_reference(RunReference *reference) {
    reference_results_free(&reference->exact);
    reference_results_free(&reference->rounded);
}
