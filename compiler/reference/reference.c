// reference.c: prepares the tensors, runs the program on all cores, and compares.
#include "compiler/reference/number.h"
#include "compiler/reference/program.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---------------------------------------------------------------- tensors as the evaluation reads them

// A copy with dim `inner` adjacent, the others in their order.
static bool pack(const ReferenceTensor *given, Elem elem, int inner, ReferenceMode mode, Packed *packed) {
    int order[REFERENCE_MAX_DIMS], rank = given->rank, next = 0;
    for (int d = 0; d < rank; d++)
        if (d != inner)
            order[next++] = d;
    order[rank - 1] = inner;
    int64_t count = 1;
    for (int k = rank - 1; k >= 0; k--) {
        packed->stride[order[k]] = count;
        count *= given->extent[order[k]];
    }
    size_t bytes = elem == ELEM_I32          ? sizeof(int32_t)
                   : mode == REFERENCE_EXACT ? sizeof(double)
                                             : sizeof(float);
    packed->elements = malloc((size_t)count * bytes + 1);
    if (!packed->elements)
        return false;
    int64_t at[REFERENCE_MAX_DIMS] = {0};
    for (int64_t n = 0; n < count; n++) {
        int64_t from = 0, to = 0;
        for (int d = 0; d < rank; d++) {
            from += at[d] * given->stride[d];
            to += at[d] * packed->stride[d];
        }
        double value = number_read(elem, given->is_double, given->data, from);
        if (elem == ELEM_I32)
            ((int32_t *)packed->elements)[to] = (int32_t)value;
        else if (mode == REFERENCE_EXACT)
            ((double *)packed->elements)[to] = value;
        else
            ((float *)packed->elements)[to] = (float)value;
        for (int d = rank - 1; d >= 0 && ++at[d] == given->extent[d]; d--)
            at[d] = 0;
    }
    return true;
}

static bool pack_all(const Program *program, ReferenceMode mode, Packed (*packed)[REFERENCE_MAX_DIMS]) {
    for (int i = 0; i < program->problem->tensor_count; i++)
        for (int d = 0; d < program->tensors[i].given->rank; d++)
            if (program->tensors[i].inner[d] && program->tensors[i].given->data &&
                !pack(program->tensors[i].given, program->tensors[i].elem, d, mode, &packed[i][d]))
                return false;
    return true;
}

// ---------------------------------------------------------------- results

static bool make_outputs(const Program *program, ReferenceResults *results, ReferenceOutput **by_tensor) {
    int count = program->problem->tensor_count;
    results->outputs = calloc((size_t)count + 1, sizeof *results->outputs);
    if (!results->outputs)
        return false;
    for (int i = 0; i < count; i++) {
        const ProgramTensor *tensor = &program->tensors[i];
        if (!tensor->is_written)
            continue;
        ReferenceOutput *output = by_tensor[i] = &results->outputs[results->count++];
        *output = (ReferenceOutput){.name = tensor->given->name, .elem = tensor->elem, .count = 1};
        for (int d = 0; d < tensor->given->rank; d++)
            output->count *= tensor->given->extent[d];
        output->values = calloc((size_t)output->count + 1, sizeof *output->values);
        output->written = calloc((size_t)output->count + 1, sizeof *output->written);
        if (!output->values || !output->written)
            return false;
    }
    return true;
}

void reference_results_free(ReferenceResults *results) {
    for (int i = 0; i < results->count; i++) {
        free(results->outputs[i].values);
        free(results->outputs[i].written);
    }
    free(results->outputs);
    *results = (ReferenceResults){0};
}

// ---------------------------------------------------------------- the run

typedef struct {
    const Evaluation *evaluation;
    ReferenceMode mode;
    int part, parts;
    bool failed;
} Share;

static void *run_share(void *context) {
    Share *share = context;
    bool exact = share->mode == REFERENCE_EXACT;
    Worker *worker = exact ? exact_worker_new(share->evaluation) : rounded_worker_new(share->evaluation);
    share->failed = !worker;
    for (int64_t s = 0; worker && s < share->evaluation->program->problem->sequences; s++)
        (exact ? exact_worker_run : rounded_worker_run)(worker, s, share->part, share->parts);
    (exact ? exact_worker_free : rounded_worker_free)(worker);
    return NULL;
}

static bool run_all(const Evaluation *evaluation, ReferenceMode mode) {
    enum { MOST_THREADS = 16 };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int parts = cores < 1 ? 1 : cores > MOST_THREADS ? MOST_THREADS : (int)cores;
    Share shares[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
    bool started[MOST_THREADS] = {false}, good = true;
    for (int i = 0; i < parts; i++)
        shares[i] = (Share){evaluation, mode, i, parts, false};
    for (int i = 1; i < parts; i++)
        started[i] = !pthread_create(&threads[i], NULL, run_share, &shares[i]);
    run_share(&shares[0]);
    for (int i = 1; i < parts; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
        else
            run_share(&shares[i]);
    }
    for (int i = 0; i < parts; i++)
        good &= !shares[i].failed;
    return good;
}

bool reference_evaluate(Arena *arena, Diag *diag, const ReferenceProblem *problem, ReferenceMode mode,
                        ReferenceResults *results) {
    *results = (ReferenceResults){0};
    Program *program = program_compile(arena, diag, problem);
    if (!program)
        return false;
    int count = problem->tensor_count;
    Packed(*packed)[REFERENCE_MAX_DIMS] = arena_alloc(arena, sizeof *packed * (size_t)(count + 1));
    ReferenceOutput **outputs = arena_array(arena, ReferenceOutput *, count + 1);
    Evaluation evaluation = {program, packed, outputs};
    bool good = pack_all(program, mode, packed) && make_outputs(program, results, outputs) &&
                run_all(&evaluation, mode);
    for (int i = 0; i < count; i++)
        for (int d = 0; d < REFERENCE_MAX_DIMS; d++)
            free(packed[i][d].elements);
    if (good)
        return true;
    reference_results_free(results);
    diag_error(diag, problem->family->name_span, "out-of-memory", "out of memory for the reference");
    return false;
}

// ---------------------------------------------------------------- errors

static double difference(double a, double b) {
    if (a == b)
        return 0;
    double off = fabs(a - b);
    return isnan(off) ? (isnan(a) && isnan(b) ? 0 : INFINITY) : off;
}

typedef struct {
    double maximum, squares;
    int64_t worst;
} Error;

static void add_error(Error *error, double off, int64_t at) {
    if (off > error->maximum || error->worst < 0) {
        error->maximum = off > error->maximum ? off : error->maximum;
        error->worst = at;
    }
    error->squares += off * off;
}

ReferenceComparison reference_compare(const ReferenceTensor *kernel, const ReferenceOutput *exact,
                                      const ReferenceOutput *rounded) {
    ReferenceComparison result = {.worst = -1};
    Error kernel_error = {.worst = -1}, rounded_error = {.worst = -1};
    double largest = 0, norm = 0;
    int64_t at[REFERENCE_MAX_DIMS] = {0};
    for (int64_t n = 0; n < exact->count; n++) {
        int64_t from = 0;
        for (int d = 0; d < kernel->rank; d++)
            from += at[d] * kernel->stride[d];
        for (int d = kernel->rank - 1; d >= 0 && ++at[d] == kernel->extent[d]; d--)
            at[d] = 0;
        if (!exact->written[n])
            continue;
        double value = number_read(exact->elem, kernel->is_double, kernel->data, from),
               truth = exact->values[n];
        // What the type can't hold better counts as equal: an infinity that the exact value rounds to.
        double held = number_to_elem(exact->elem, truth);
        result.compared++;
        add_error(&kernel_error, isinf(value) && value == held ? 0 : difference(value, truth), n);
        add_error(&rounded_error,
                  isinf(rounded->values[n]) && rounded->values[n] == held
                      ? 0
                      : difference(rounded->values[n], truth),
                  n);
        if (isfinite(truth)) {
            largest = fmax(largest, fabs(truth));
            norm += truth * truth;
        }
        if (kernel_error.worst == n) {
            result.worst_kernel = value;
            result.worst_exact = truth;
        }
    }
    norm = sqrt(norm);
    double half_ulp = number_half_ulp(exact->elem, largest);
    result.worst = kernel_error.worst;
    result.kernel_maximum = kernel_error.maximum;
    result.rounded_maximum = rounded_error.maximum;
    result.kernel_relative = kernel_error.squares == 0 ? 0 : sqrt(kernel_error.squares) / norm;
    result.rounded_relative = rounded_error.squares == 0 ? 0 : sqrt(rounded_error.squares) / norm;
    result.maximum_bound = 2 * fmax(result.rounded_maximum, half_ulp);
    result.relative_bound = norm > 0 ? 2 * fmax(result.rounded_relative, half_ulp / norm) : 0;
    bool finite = isfinite(result.kernel_maximum) && isfinite(result.rounded_maximum);
    result.passes = finite && result.kernel_maximum <= result.maximum_bound &&
                    result.kernel_relative <= result.relative_bound;
    return result;
}
