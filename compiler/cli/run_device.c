// run_device.c: the device's side of jfac run: memory, one launch, what comes back.
#include "compiler/cli/run.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// What a failure of the runtime means for jfac's exit status.
static const int STATUS_OF[JFA_STATUS_COUNT] = {
    [JFA_OK] = STATUS_GOOD,
    [JFA_ERROR_ARGUMENT] = STATUS_INTERNAL,
    [JFA_ERROR_OUT_OF_MEMORY] = STATUS_MEMORY,
    [JFA_ERROR_NOT_FOUND] = STATUS_ENVIRONMENT,
    [JFA_ERROR_IO] = STATUS_ENVIRONMENT,
    [JFA_ERROR_IMAGE] = STATUS_INPUT,
    [JFA_ERROR_MANIFEST] = STATUS_INTERNAL,
    [JFA_ERROR_TARGET] = STATUS_ENVIRONMENT,
    [JFA_ERROR_PROBLEM] = STATUS_USAGE,
    [JFA_ERROR_LIMIT] = STATUS_USAGE,
    [JFA_ERROR_UNSUPPORTED] = STATUS_ENVIRONMENT,
    [JFA_ERROR_BUSY] = STATUS_INTERNAL,
    [JFA_ERROR_DEVICE] = STATUS_ENVIRONMENT,
    [JFA_ERROR_LAUNCH] = STATUS_MISMATCH,
};

int run_status(jfa_status status, const jfa_error *error) {
    if (status == JFA_OK)
        return STATUS_GOOD;
    if (STATUS_OF[status] == STATUS_INTERNAL)
        return internal_error(error->message);
    fprintf(stderr, "jfac: %s\n", error->message);
    return STATUS_OF[status];
}

double run_now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

// ---------------------------------------------------------------- progress of a simulated launch

typedef struct {
    double last_ms;
    bool is_terminal, is_shown;
} Progress;

// On a terminal one line that is written over, elsewhere a line now and then: a long run shows that it lives,
// and a short one prints nothing.
static void show_progress(void *context, uint64_t done, uint64_t total) {
    enum { TERMINAL_MS = 200, LOG_MS = 10000 };
    Progress *progress = context;
    double now = run_now_ms();
    if (now - progress->last_ms < (progress->is_terminal ? TERMINAL_MS : LOG_MS))
        return;
    progress->last_ms = now;
    progress->is_shown = true;
    fprintf(stderr,
            progress->is_terminal ? "\rsimulating: %llu of %llu CTAs" : "simulating: %llu of %llu CTAs\n",
            (unsigned long long)done, (unsigned long long)total);
}

static void end_progress(const Progress *progress) {
    if (progress->is_terminal && progress->is_shown)
        fputs("\r\033[K", stderr);
}

// ---------------------------------------------------------------- device and module

int run_begin(void) {
    jfa_error error = {0};
    jfa_status status = jfa_sim_register(&error);
    return run_status(status, &error);
}

int run_open(RunDevice *device, const char *name) {
    jfa_error error = {0};
    device->is_simulated = !strncmp(name, "sim:", 4);
    jfa_status status = jfa_device_open(name, &device->device, &error);
    return run_status(status, &error);
}

jfa_status run_load(RunDevice *device, const void *image, size_t bytes, jfa_error *error) {
    jfa_status status = jfa_module_load(device->device, image, bytes, &device->module, error);
    return status ? status : jfa_kernel_get(device->module, NULL, &device->kernel, error);
}

void run_unload(RunDevice *device) {
    jfa_error error = {0};
    if (device->module && jfa_module_unload(device->module, &error) != JFA_OK)
        fprintf(stderr, "jfac: %s\n", error.message);
    device->module = NULL;
}

void run_close(RunDevice *device) {
    jfa_error error = {0};
    run_unload(device);
    if (device->device && jfa_device_close(device->device, &error) != JFA_OK)
        fprintf(stderr, "jfac: %s\n", error.message);
}

// ---------------------------------------------------------------- tensors on the device

static size_t whole_bytes(const RunTensor *tensor) {
    return tensor->bytes + 2 * RUN_GUARD_BYTES;
}

jfa_status run_send(RunDevice *device, RunProblem *problem, jfa_error *error) {
    jfa_status status = JFA_OK;
    for (int i = 0; status == JFA_OK && i < problem->plan->tensor_count; i++) {
        RunTensor *tensor = &problem->tensors[i];
        if (!tensor->is_given)
            continue;
        status = jfa_malloc(device->device, whole_bytes(tensor), &tensor->address, error);
        if (status == JFA_OK)
            status = jfa_copy_to_device(device->device, tensor->address, tensor->before, whole_bytes(tensor),
                                        error);
    }
    return status;
}

static jfa_status fetch(RunDevice *device, RunProblem *problem, jfa_error *error) {
    jfa_status status = JFA_OK;
    for (int i = 0; status == JFA_OK && i < problem->plan->tensor_count; i++) {
        RunTensor *tensor = &problem->tensors[i];
        if (tensor->is_given)
            status = jfa_copy_from_device(device->device, tensor->after, tensor->address, whole_bytes(tensor),
                                          error);
    }
    return status;
}

void run_release(RunDevice *device, RunProblem *problem) {
    jfa_error error;
    for (int i = 0; i < problem->plan->tensor_count; i++) {
        if (problem->tensors[i].address)
            jfa_free(device->device, problem->tensors[i].address, &error);
        problem->tensors[i].address = 0;
    }
}

// ---------------------------------------------------------------- the problem in the runtime's words

static const jfa_dtype DTYPES[ELEM_COUNT] = {[ELEM_BOOL] = JFA_U8,
                                             [ELEM_I32] = JFA_I32,
                                             [ELEM_F32] = JFA_F32,
                                             [ELEM_BF16] = JFA_BF16,
                                             [ELEM_F16] = JFA_F16};

static jfa_tensor describe_tensor(const RunTensor *tensor) {
    const Tensor *declared = tensor->declared;
    jfa_tensor out = {.name = declared->name,
                      .address = tensor->address + RUN_GUARD_BYTES,
                      .dtype = DTYPES[declared->elem],
                      .rank = declared->rank};
    for (int d = 0; d < declared->rank; d++) {
        out.extents[d] = tensor->extents[d];
        out.strides[d] = tensor->strides[d];
        if (tensor->bases[d])
            out.rows[d] = (jfa_rows){.kind = tensor->rows,
                                     .list = tensor->rows == JFA_ROWS_LISTED ? tensor->bases[d] : NULL};
    }
    return out;
}

static jfa_problem describe(const RunProblem *problem) {
    const Plan *plan = problem->plan;
    jfa_axis *axes = arena_array(problem->arena, jfa_axis, plan->axis_count);
    for (int i = 0; i < plan->axis_count; i++)
        axes[i] = (jfa_axis){.name = plan->axes[i].name, .lengths = problem->lengths[i]};
    jfa_dim *dims = arena_array(problem->arena, jfa_dim, plan->dim_count);
    for (int i = 0; i < plan->dim_count; i++)
        dims[i] = (jfa_dim){plan->dims[i].name, problem->dims[i]};
    jfa_problem out = {.sequences = problem->sequences,
                       .axes = axes,
                       .axis_count = plan->axis_count,
                       .tensors = arena_array(problem->arena, jfa_tensor, plan->tensor_count),
                       .dims = dims,
                       .dim_count = plan->dim_count,
                       .params = arena_array(problem->arena, jfa_param, plan->param_count)};
    for (int i = 0; i < plan->tensor_count; i++)
        if (problem->tensors[i].is_given)
            ((jfa_tensor *)out.tensors)[out.tensor_count++] = describe_tensor(&problem->tensors[i]);
    for (int i = 0; i < plan->param_count; i++)
        if (problem->is_param_given[i])
            ((jfa_param *)out.params)[out.param_count++] =
                (jfa_param){plan->params[i].name, problem->params[i]};
    return out;
}

// ---------------------------------------------------------------- one launch

jfa_status run_plan(RunDevice *device, const RunProblem *problem, jfa_plan **plan, jfa_error *error) {
    jfa_problem described = describe(problem);
    return jfa_plan_create(device->kernel, &described, plan, error);
}

static jfa_status launch(RunDevice *device, const RunProblem *problem, double *milliseconds,
                         jfa_error *error) {
    jfa_plan *plan;
    jfa_status status = run_plan(device, problem, &plan, error);
    if (status != JFA_OK)
        return status;
    double start = run_now_ms();
    status = jfa_launch(plan, NULL, error);
    if (status == JFA_OK)
        status = jfa_synchronise(device->device, NULL, error);
    *milliseconds = run_now_ms() - start;
    jfa_error ignored;
    jfa_plan_destroy(plan, &ignored);
    return status;
}

jfa_status run_on_device(RunDevice *device, RunProblem *problem, int64_t seed, double *milliseconds,
                         jfa_error *error) {
    // Devices other than simulated ones have no order of warps to choose.
    jfa_error ignored;
    jfa_device_set_option(device->device, "seed", seed, &ignored);
    Progress progress = {.last_ms = run_now_ms(), .is_terminal = isatty(STDERR_FILENO)};
    if (device->is_simulated)
        jfa_sim_on_progress(jfa_device_native(device->device), show_progress, &progress);
    jfa_status status = run_send(device, problem, error);
    if (status == JFA_OK)
        status = launch(device, problem, milliseconds, error);
    end_progress(&progress);
    if (device->is_simulated)
        jfa_sim_on_progress(jfa_device_native(device->device), NULL, NULL);
    if (status == JFA_OK)
        status = fetch(device, problem, error);
    run_release(device, problem);
    return status;
}
