// reference.c: prepares the tensors, shares sequences and outer iterations among threads, gives the results.
#include "compiler/reference/number.h"
#include "compiler/reference/program.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_THREADS = 64, FEWEST_TASKS = 64 };

// ---------------------------------------------------------------- tensors

typedef struct {
    const ProgramTensor *tensor;
    ReferenceMode mode;
    Packed *packed;
} Packing;

static void pack_row(const Packing *packing, int inner, int64_t from, int64_t to) {
    const ReferenceTensor *given = packing->tensor->given;
    Elem elem = packing->tensor->elem;
    for (int64_t i = 0; i < given->extent[inner]; i++) {
        double value = number_read(elem, given->is_double, given->data, from + i * given->stride[inner]);
        if (elem == ELEM_I32)
            ((int32_t *)packing->packed->elements)[to + i] = (int32_t)value;
        else if (packing->mode == REFERENCE_EXACT)
            ((double *)packing->packed->elements)[to + i] = value;
        else
            ((float *)packing->packed->elements)[to + i] = (float)value;
    }
}

// All rows along `inner`: the other dims counted like the wheels of an odometer.
static void pack_rows(const Packing *packing, int inner) {
    const ReferenceTensor *given = packing->tensor->given;
    int64_t position[REFERENCE_MAX_DIMS] = {0};
    for (int d = given->rank - 1; d >= 0;) {
        int64_t from = 0, to = 0;
        for (int k = 0; k < given->rank; k++) {
            from += position[k] * given->stride[k];
            to += position[k] * packing->packed->stride[k];
        }
        pack_row(packing, inner, from, to);
        for (d = given->rank - 1; d >= 0; d--) {
            if (d != inner && ++position[d] < given->extent[d])
                break;
            position[d] = 0;
        }
    }
}

static bool pack(const Packing *packing, int inner) {
    const ReferenceTensor *given = packing->tensor->given;
    // Rows start 8 elements beyond a multiple of 16: rows at powers of two would meet in the same cache
    // lines.
    int64_t total = (given->extent[inner] + 15) / 16 * 16 + 8;
    packing->packed->stride[inner] = 1;
    bool is_empty = given->extent[inner] == 0;
    for (int d = given->rank - 1; d >= 0; d--)
        if (d != inner) {
            packing->packed->stride[d] = total;
            is_empty = is_empty || given->extent[d] == 0;
            if (__builtin_mul_overflow(total, given->extent[d], &total))
                return false;
        }
    if (total > INT64_MAX / 16)
        return false;
    bool is_wide = packing->mode == REFERENCE_EXACT && packing->tensor->elem != ELEM_I32;
    packing->packed->elements =
        malloc((size_t)(total > 0 ? total : 1) * (is_wide ? sizeof(double) : sizeof(float)));
    if (!packing->packed->elements)
        return false;
    if (!is_empty)
        pack_rows(packing, inner);
    return true;
}

static bool pack_tensors(const Program *program, ReferenceMode mode, Packed (*packed)[REFERENCE_MAX_DIMS]) {
    for (int i = 0; i < program->problem->tensor_count; i++)
        for (int dim = 0; dim < REFERENCE_MAX_DIMS; dim++) {
            const Packing packing = {&program->tensors[i], mode, &packed[i][dim]};
            if (program->tensors[i].inner[dim] && !pack(&packing, dim))
                return false;
        }
    return true;
}

static void free_packed(const Program *program, Packed (*packed)[REFERENCE_MAX_DIMS]) {
    for (int i = 0; packed && i < program->problem->tensor_count; i++)
        for (int dim = 0; dim < REFERENCE_MAX_DIMS; dim++)
            free(packed[i][dim].elements);
    free(packed);
}

// ---------------------------------------------------------------- outputs

void reference_results_free(ReferenceResults *results) {
    for (int i = 0; i < results->count; i++) {
        free(results->outputs[i].values);
        free(results->outputs[i].written);
        free(results->outputs[i].slack);
    }
    free(results->outputs);
    *results = (ReferenceResults){0};
}

static bool make_output(const ProgramTensor *tensor, ReferenceOutput *output) {
    *output = (ReferenceOutput){.name = tensor->given->name, .elem = tensor->elem, .count = 1};
    for (int d = 0; d < tensor->given->rank; d++)
        output->count *= tensor->given->extent[d];
    size_t count = output->count > 0 ? (size_t)output->count : 1;
    output->values = calloc(count, sizeof *output->values);
    output->written = calloc(count, sizeof *output->written);
    if (tensor->has_slack)
        output->slack = calloc(count, sizeof *output->slack);
    return output->values && output->written && (output->slack || !tensor->has_slack);
}

static bool make_outputs(const Program *program, ReferenceResults *results, ReferenceOutput **outputs) {
    results->outputs = calloc((size_t)program->problem->tensor_count + 1, sizeof *results->outputs);
    if (!results->outputs)
        return false;
    for (int i = 0; i < program->problem->tensor_count; i++)
        if (program->tensors[i].is_written) {
            outputs[i] = &results->outputs[results->count++];
            if (!make_output(&program->tensors[i], outputs[i]))
                return false;
        }
    return true;
}

// ---------------------------------------------------------------- threads

typedef struct {
    const Evaluation *evaluation;
    ReferenceMode mode;
    int parts; // of the outer loops of each sequence
    atomic_llong next;
} Tasks;

typedef struct {
    Tasks *tasks;
    WorkerFault fault;
} ThreadState;

static const struct {
    Worker *(*make)(const Evaluation *);
    void (*run)(Worker *, int64_t, int, int, WorkerFault *);
    void (*free)(Worker *);
} MODES[] = {
    [REFERENCE_EXACT] = {exact_worker_new, exact_worker_run, exact_worker_free},
    [REFERENCE_ROUNDED] = {rounded_worker_new, rounded_worker_run, rounded_worker_free},
};

static void *run_tasks(void *argument) {
    ThreadState *state = argument;
    Tasks *tasks = state->tasks;
    long long count = (long long)tasks->evaluation->program->problem->sequences * tasks->parts;
    Worker *worker = MODES[tasks->mode].make(tasks->evaluation);
    state->fault.out_of_memory = !worker;
    while (worker && !state->fault.bad_store) {
        long long task = atomic_fetch_add(&tasks->next, 1);
        if (task >= count)
            break;
        MODES[tasks->mode].run(worker, task / tasks->parts, (int)(task % tasks->parts), tasks->parts,
                               &state->fault);
    }
    MODES[tasks->mode].free(worker);
    return NULL;
}

// The caller is one of the threads; when others can't be started it does their share.
static WorkerFault run_threads(Tasks *tasks) {
    pthread_t threads[MOST_THREADS];
    ThreadState states[MOST_THREADS] = {{0}};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int wanted = cores < 1 ? 1 : cores > MOST_THREADS ? MOST_THREADS : (int)cores, started = 1;
    for (; started < wanted; started++) {
        states[started].tasks = tasks;
        if (pthread_create(&threads[started], NULL, run_tasks, &states[started]))
            break;
    }
    states[0].tasks = tasks;
    run_tasks(&states[0]);
    WorkerFault fault = states[0].fault;
    for (int i = 1; i < started; i++) {
        pthread_join(threads[i], NULL);
        fault.out_of_memory |= states[i].fault.out_of_memory;
        fault.bad_store = fault.bad_store ? fault.bad_store : states[i].fault.bad_store;
    }
    return fault;
}

static bool report(Diag *diag, const Program *program, const WorkerFault *fault) {
    if (fault->bad_store)
        diag_error(diag, fault->bad_store->span, "reference-target", "this sets an element outside of '%s'",
                   program->tensors[fault->bad_store->tensor].given->name);
    else if (fault->out_of_memory)
        diag_error(diag, program->problem->family->name_span, "reference-memory",
                   "there is not enough memory to evaluate the reference");
    return !fault->bad_store && !fault->out_of_memory;
}

bool reference_check(Arena *arena, Diag *diag, const ReferenceProblem *problem) {
    return program_compile(arena, diag, problem);
}

bool reference_evaluate(Arena *arena, Diag *diag, const ReferenceProblem *problem, ReferenceMode mode,
                        ReferenceResults *results) {
    *results = (ReferenceResults){0};
    const Program *program = program_compile(arena, diag, problem);
    if (!program)
        return false;
    Evaluation evaluation = {.program = program};
    evaluation.packed = calloc((size_t)problem->tensor_count + 1, sizeof *evaluation.packed);
    evaluation.outputs = arena_array(arena, ReferenceOutput *, problem->tensor_count);
    WorkerFault fault = {.out_of_memory = true};
    if (evaluation.packed && pack_tensors(program, mode, evaluation.packed) &&
        make_outputs(program, results, evaluation.outputs)) {
        Tasks tasks = {.evaluation = &evaluation, .mode = mode};
        tasks.parts =
            problem->sequences >= FEWEST_TASKS ? 1 : FEWEST_TASKS / (int)(problem->sequences + 1) + 1;
        atomic_init(&tasks.next, 0);
        fault = run_threads(&tasks);
    }
    free_packed(program, evaluation.packed);
    if (report(diag, program, &fault))
        return true;
    reference_results_free(results);
    return false;
}
