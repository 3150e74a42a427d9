// session.c: a shape's tensors on the device, plans of its kernel's variants, and their times.
#include "bench/attention/bench.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_ELEMENTS = 1 << 22 };
static const int POISON = 0xFF; // NaN in bf16 and f32: what the kernel leaves out can't pass for a result

static jfa_status fail(jfa_error *err, jfa_status status, const char *message, const char *name) {
    err->status = status;
    snprintf(err->message, sizeof err->message, "%s %s", message, name);
    return status;
}

// ---------------------------------------------------------------- tensors

typedef struct {
    const char *name;
    int64_t extents[3];
    int rank;
    jfa_dtype dtype;
    bool is_output, shares_rows;
} TensorForm;

static TensorForm form_of(const Shape *shape, TensorId id) {
    int64_t heads = shape->heads, kv_heads = shape->kv_heads, dim = shape->head_dim;
    int64_t rows_q = shape->shares_q ? shape->len_q[0] : shape->total_q;
    switch (id) {
    case TENSOR_Q:
        return (TensorForm){"Q", {rows_q, heads, dim}, 3, JFA_BF16, false, shape->shares_q};
    case TENSOR_K:
        return (TensorForm){"K", {shape->total_k, kv_heads, dim}, 3, JFA_BF16, false, false};
    case TENSOR_V:
        return (TensorForm){"V", {shape->total_k, kv_heads, dim}, 3, JFA_BF16, false, false};
    case TENSOR_O:
        return (TensorForm){"O", {shape->total_q, heads, dim}, 3, JFA_BF16, true, false};
    default:
        return (TensorForm){"LSE", {heads, shape->total_q}, 2, JFA_F32, true, false};
    }
}

static int64_t element_count(const TensorForm *form) {
    int64_t count = 1;
    for (int d = 0; d < form->rank; d++)
        count *= form->extents[d];
    return count;
}

// Outputs are filled with poison, inputs with their values.
static jfa_status fill_tensor(const Session *session, const Shape *shape, TensorId id, uint16_t *chunk,
                              jfa_error *err) {
    TensorForm form = form_of(shape, id);
    int64_t halves = element_count(&form) * jfa_dtype_bytes(form.dtype) / (int64_t)sizeof *chunk;
    jfa_status status = JFA_OK;
    if (form.is_output)
        memset(chunk, POISON, CHUNK_ELEMENTS * sizeof *chunk);
    for (int64_t start = 0; !status && start < halves; start += CHUNK_ELEMENTS) {
        int64_t count = halves - start < CHUNK_ELEMENTS ? halves - start : CHUNK_ELEMENTS;
        if (!form.is_output)
            values_fill(id, start, count, chunk);
        status = jfa_copy_to_device(session->device, session->addresses[id] + (uint64_t)start * sizeof *chunk,
                                    chunk, (size_t)count * sizeof *chunk, err);
    }
    return status;
}

jfa_status session_fill(const Session *session, const Shape *shape, bool outputs, jfa_error *err) {
    uint16_t *chunk = malloc(CHUNK_ELEMENTS * sizeof *chunk);
    if (!chunk)
        return fail(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory to fill", shape->name);
    jfa_status status = JFA_OK;
    for (TensorId id = 0; !status && id < TENSOR_COUNT; id++)
        if (form_of(shape, id).is_output == outputs)
            status = fill_tensor(session, shape, id, chunk, err);
    free(chunk);
    return status;
}

jfa_status session_hold(Session *session, const Shape *shape, jfa_error *err) {
    if (session->shape == shape)
        return JFA_OK;
    session_release(session);
    session->shape = shape;
    jfa_status status = JFA_OK;
    for (TensorId id = 0; !status && id < TENSOR_COUNT; id++) {
        TensorForm form = form_of(shape, id);
        status =
            jfa_malloc(session->device, (size_t)element_count(&form) * (size_t)jfa_dtype_bytes(form.dtype),
                       &session->addresses[id], err);
    }
    if (!status)
        status = session_fill(session, shape, false, err);
    if (status)
        session_release(session);
    return status;
}

// ---------------------------------------------------------------- plans

// Inputs and outputs where session->addresses says.
jfa_status session_plan(const Session *session, const Shape *shape, jfa_module *module, jfa_plan **plan,
                        jfa_error *err) {
    jfa_axis axes[] = {{.name = "q", .lengths = shape->len_q}, {.name = "k", .lengths = shape->len_k}};
    jfa_tensor tensors[TENSOR_COUNT];
    for (TensorId id = 0; id < TENSOR_COUNT; id++) {
        TensorForm form = form_of(shape, id);
        tensors[id] = (jfa_tensor){
            .name = form.name, .address = session->addresses[id], .dtype = form.dtype, .rank = form.rank};
        memcpy(tensors[id].extents, form.extents, sizeof form.extents);
        if (!jfa_tensor_set_dense(&tensors[id]))
            return fail(err, JFA_ERROR_LIMIT, "too large:", form.name);
        if (form.shares_rows)
            tensors[id].rows[0].kind = JFA_ROWS_SHARED;
    }
    jfa_problem problem = {.sequences = shape->sequences,
                           .axes = axes,
                           .axis_count = 2,
                           .tensors = tensors,
                           .tensor_count = TENSOR_COUNT};
    jfa_kernel *kernel;
    jfa_status status = jfa_kernel_get(module, NULL, &kernel, err);
    return status ? status : jfa_plan_create(kernel, &problem, plan, err);
}

jfa_status session_load(const Session *session, bool is_causal, int head_dim, const char *variant,
                        jfa_module **module, jfa_error *err) {
    bool is_base = !strcmp(variant, "base");
    char path[1024];
    snprintf(path, sizeof path, "%s/%s-%d%s%s.%s", session->folder, is_causal ? "causal" : "dense", head_dim,
             is_base ? "" : "-", is_base ? "" : variant, session->is_simulated ? "ptx" : "cubin");
    return jfa_module_load_file(session->device, path, module, err);
}

static jfa_status load(Session *session, Variant *variant, jfa_error *err) {
    const Shape *shape = session->shape;
    jfa_status status =
        session_load(session, shape->is_causal, shape->head_dim, variant->name, &variant->module, err);
    return status ? status : session_plan(session, shape, variant->module, &variant->plan, err);
}

static void unload(Variant *variant) {
    jfa_error ignored;
    if (variant->plan)
        jfa_plan_destroy(variant->plan, &ignored);
    if (variant->module)
        jfa_module_unload(variant->module, &ignored);
    *variant = (Variant){0};
}

// ---------------------------------------------------------------- launches

// One launch into poisoned outputs, compared with float64.
static jfa_status check(Session *session, Variant *variant, jfa_error *err) {
    jfa_status status = session_fill(session, session->shape, true, err);
    if (!status)
        status = jfa_launch(variant->plan, NULL, err);
    if (!status)
        status = jfa_synchronise(session->device, NULL, err);
    return status ? status
                  : check_outputs(session->device, session->shape, session->addresses, &variant->error, err);
}

// A simulated device has no clock to warm up.
static jfa_status warm_up(Session *session, Variant *variant, jfa_error *err) {
    variant->launches = 1;
    return session->is_simulated ? JFA_OK
                                 : timing_warm_up(&session->timing, variant->plan, &variant->launches, err);
}

// ---------------------------------------------------------------- the session

const Variant *session_find(const Session *session, const Shape *shape, const char *variant) {
    for (int i = 0; session->shape == shape && i < session->variant_count; i++)
        if (!strcmp(session->variants[i].name, variant))
            return &session->variants[i];
    return NULL;
}

jfa_status session_prepare(Session *session, const Shape *shape, const char *name, jfa_error *err) {
    if (session_find(session, shape, name))
        return JFA_OK;
    jfa_status status = session_hold(session, shape, err);
    if (status)
        return status;
    if (session->variant_count == BENCH_MAX_VARIANTS || strlen(name) >= BENCH_NAME_BYTES)
        return fail(err, JFA_ERROR_ARGUMENT, "too many variants, or too long a name:", name);
    Variant *variant = &session->variants[session->variant_count];
    *variant = (Variant){0};
    snprintf(variant->name, sizeof variant->name, "%s", name);
    status = load(session, variant, err);
    if (!status)
        status = check(session, variant, err);
    if (!status)
        status = warm_up(session, variant, err);
    if (status)
        unload(variant);
    else
        session->variant_count++;
    return status;
}

jfa_status session_time(Session *session, const Shape *shape, const char *name, double *milliseconds,
                        jfa_error *err) {
    const Variant *variant = session_find(session, shape, name);
    if (!variant)
        return fail(err, JFA_ERROR_ARGUMENT, "not prepared:", name);
    return session->is_simulated
               ? timing_launches(&session->timing, variant->plan, variant->launches, milliseconds, err)
               : timing_burst(&session->timing, variant->plan, variant->launches, milliseconds, err);
}

void session_release(Session *session) {
    jfa_error ignored;
    for (int i = 0; i < session->variant_count; i++)
        unload(&session->variants[i]);
    session->variant_count = 0;
    for (TensorId id = 0; id < TENSOR_COUNT; id++) {
        if (session->addresses[id])
            jfa_free(session->device, session->addresses[id], &ignored);
        session->addresses[id] = 0;
    }
    session->shape = NULL;
}

jfa_status session_open(Session *session, const char *device, const char *folder, jfa_error *err) {
    *session = (Session){.is_simulated = !strncmp(device, "sim:", 4), .folder = folder};
    jfa_status status = jfa_sim_register(err);
    if (!status)
        status = jfa_device_open(device, &session->device, err);
    if (!status)
        status = timing_open(&session->timing, session->device, err);
    if (status)
        session_close(session);
    return status;
}

void session_close(Session *session) {
    jfa_error err;
    session_release(session);
    timing_close(&session->timing);
    if (session->device && jfa_device_close(session->device, &err))
        fprintf(stderr, "bench_attention: %s\n", err.message);
    session->device = NULL;
}
