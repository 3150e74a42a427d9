#include "tests/kernels/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *bench_target = "sm_100a";

void bench_set_target(int argc, char **argv) {
    if (argc > 1)
        bench_target = argv[1];
}

bool bench_on_sm90(void) {
    return !strcmp(bench_target, "sm_90a");
}

// ---------------------------------------------------------------- numbers

static uint32_t random_word(uint64_t *state) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*state >> 33);
}

// About normal: a sum of uniform numbers.
static float random_value(uint64_t *state) {
    float sum = 0;
    for (int i = 0; i < 6; i++)
        sum += (float)random_word(state) / 2147483648.0f - 0.5f;
    return 1.4f * sum;
}

static uint16_t narrow(float value, bool is_f16) {
    if (is_f16) {
        _Float16 half = (_Float16)value;
        uint16_t bits;
        memcpy(&bits, &half, sizeof bits);
        return bits;
    }
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static float widen(uint16_t bits, bool is_f16) {
    if (is_f16) {
        _Float16 half;
        memcpy(&half, &bits, sizeof half);
        return (float)half;
    }
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

enum { NAN_BITS = 0x7FFF }; // NaN in bf16 and f16

// ---------------------------------------------------------------- the problem in host memory

typedef struct {
    int64_t rows;  // of the whole tensor
    int32_t *base; // [sequences]
} Rows;

typedef struct {
    const Case *test;
    const int32_t *lens_q, *lens_k;
    Rows q, k, o; // Q's, K's and V's, O's and LSE's rows
    uint16_t *Q, *K, *V, *O;
    float *LSE;
    int64_t q_count, k_count, o_count, lse_count;
} Host;

static int32_t longest(const int32_t *lens, int count) {
    int32_t most = 0;
    for (int i = 0; i < count; i++)
        most = lens[i] > most ? lens[i] : most;
    return most;
}

// Rows with slack behind the last sequence, as a larger buffer would have.
static Rows make_rows(const int32_t *lens, int count, Layout layout, bool is_shared) {
    enum { SLACK = 3 };
    Rows rows = {.base = calloc((size_t)count + 1, sizeof(int32_t))};
    int32_t pitch = layout == LAYOUT_PADDED ? longest(lens, count) + 5 : 0;
    for (int i = 0; i < count; i++) {
        rows.base[i] = is_shared ? 0 : pitch ? i * pitch : (int32_t)rows.rows;
        rows.rows += is_shared ? 0 : pitch ? pitch : lens[i];
    }
    rows.rows = (is_shared ? longest(lens, count) : rows.rows) + SLACK;
    return rows;
}

// Rows that belong to no sequence hold NaN.
static void fill(uint16_t *to, const Rows *rows, const int32_t *lens, int count, int64_t width, bool is_f16,
                 uint64_t *state) {
    for (int64_t i = 0; i < rows->rows * width; i++)
        to[i] = NAN_BITS;
    for (int s = 0; s < count; s++)
        for (int64_t i = 0; i < lens[s] * width; i++)
            to[rows->base[s] * width + i] = narrow(random_value(state), is_f16);
}

static void make_host(const Case *test, Host *host) {
    host->test = test;
    host->lens_q = test->lens_q;
    host->lens_k = test->lens_k ? test->lens_k : test->lens_q;
    host->q = make_rows(host->lens_q, test->sequences, test->layout, test->layout == LAYOUT_BROADCAST);
    host->k = make_rows(host->lens_k, test->sequences, test->layout, false);
    host->o = make_rows(host->lens_q, test->sequences, test->layout, false);
    int64_t width = (int64_t)test->heads * test->head_dim,
            kv_width = (int64_t)test->kv_heads * test->head_dim;
    host->q_count = host->q.rows * width;
    host->k_count = host->k.rows * kv_width;
    host->o_count = host->o.rows * width;
    host->lse_count = host->o.rows * test->heads;
    host->Q = calloc((size_t)host->q_count, 2);
    host->K = calloc((size_t)host->k_count, 2);
    host->V = calloc((size_t)host->k_count, 2);
    host->O = malloc((size_t)host->o_count * 2);
    host->LSE = malloc((size_t)host->lse_count * 4);
    uint64_t state = (uint64_t)test->seed + 1;
    fill(host->Q, &host->q, host->lens_q, test->layout == LAYOUT_BROADCAST ? 1 : test->sequences, width,
         test->is_f16, &state);
    fill(host->K, &host->k, host->lens_k, test->sequences, kv_width, test->is_f16, &state);
    fill(host->V, &host->k, host->lens_k, test->sequences, kv_width, test->is_f16, &state);
    memset(host->O, 0xCD, (size_t)host->o_count * 2); // to see what is touched
    memset(host->LSE, 0xCD, (size_t)host->lse_count * 4);
}

static void free_host(Host *host) {
    free(host->q.base), free(host->k.base), free(host->o.base);
    free(host->Q), free(host->K), free(host->V), free(host->O), free(host->LSE);
}

// ---------------------------------------------------------------- the device's side

typedef struct {
    jfa_device *device;
    jfa_module *module;
    jfa_kernel *kernel;
    jfa_plan *plan;
    uint64_t Q, K, V, O, LSE;
} Device;

static jfa_tensor tensor(const char *name, uint64_t address, const Case *test, int64_t rows, int64_t heads,
                         const Rows *from) {
    jfa_tensor t = {.name = name,
                    .address = address,
                    .dtype = test->is_f16 ? JFA_F16 : JFA_BF16,
                    .rank = 3,
                    .extents = {rows, heads, test->head_dim}};
    jfa_tensor_set_dense(&t);
    if (test->row_stride)
        t.strides[0] = test->row_stride;
    t.rows[0] = (jfa_rows){.kind = JFA_ROWS_LISTED, .list = from->base};
    return t;
}

static jfa_status upload(Device *d, uint64_t *address, const void *data, size_t bytes, jfa_error *err) {
    jfa_status status = jfa_malloc(d->device, bytes, address, err);
    return status == JFA_OK ? jfa_copy_to_device(d->device, *address, data, bytes, err) : status;
}

// A tensor of 16-bit elements, dense on the host, row by row to where its rows lie on the device, or back.
static jfa_status move_rows(Device *d, uint64_t address, uint16_t *host, int64_t count, int64_t width,
                            int64_t stride, bool in, jfa_error *err) {
    jfa_status status = JFA_OK;
    for (int64_t row = 0; row < count / width && !status; row++) {
        uint64_t at = address + (uint64_t)(row * stride) * 2;
        size_t bytes = (size_t)width * 2;
        status = in ? jfa_copy_to_device(d->device, at, host + row * width, bytes, err)
                    : jfa_copy_from_device(d->device, host + row * width, at, bytes, err);
    }
    return status;
}

static jfa_status upload_rows(Device *d, const Case *test, uint64_t *address, uint16_t *host, int64_t count,
                              int64_t heads, jfa_error *err) {
    int64_t width = heads * test->head_dim, stride = test->row_stride ? test->row_stride : width;
    jfa_status status = jfa_malloc(d->device, (size_t)(count / width * stride) * 2, address, err);
    return status ? status : move_rows(d, *address, host, count, width, stride, true, err);
}

static jfa_status make_plan(Device *d, const Host *host, jfa_error *err) {
    const Case *test = host->test;
    jfa_axis axes[2] = {{.name = "q", .lengths = host->lens_q}, {.name = "k", .lengths = host->lens_k}};
    jfa_tensor tensors[5] = {
        tensor("Q", d->Q, test, host->q.rows, test->heads, &host->q),
        tensor("K", d->K, test, host->k.rows, test->kv_heads, &host->k),
        tensor("V", d->V, test, host->k.rows, test->kv_heads, &host->k),
        tensor("O", d->O, test, host->o.rows, test->heads, &host->o),
        {.name = "LSE",
         .address = d->LSE,
         .dtype = JFA_F32,
         .rank = 2,
         .extents = {test->heads, host->o.rows},
         .rows = {{0}, {.kind = JFA_ROWS_LISTED, .list = host->o.base}}},
    };
    jfa_tensor_set_dense(&tensors[4]);
    if (test->layout == LAYOUT_BROADCAST)
        tensors[0].rows[0] = (jfa_rows){.kind = JFA_ROWS_SHARED};
    jfa_problem problem = {
        .sequences = test->sequences, .axes = axes, .axis_count = 2, .tensors = tensors, .tensor_count = 5};
    return jfa_plan_create(d->kernel, &problem, &d->plan, err);
}

static jfa_status launch(Device *d, Host *host, const char *ptx, jfa_error *err) {
    static bool registered;
    char name[32];
    snprintf(name, sizeof name, "sim:%s", bench_target);
    jfa_status status = registered ? JFA_OK : jfa_sim_register(err);
    registered = status == JFA_OK;
    status = status ? status : jfa_device_open(name, &d->device, err);
    status = status ? status : jfa_device_set_option(d->device, "seed", host->test->seed, err);
    if (host->test->steps)
        status = status ? status : jfa_device_set_option(d->device, "steps", host->test->steps, err);
    status = status ? status : jfa_module_load(d->device, ptx, strlen(ptx), &d->module, err);
    status = status ? status : jfa_kernel_get(d->module, NULL, &d->kernel, err);
    status =
        status ? status : upload_rows(d, host->test, &d->Q, host->Q, host->q_count, host->test->heads, err);
    status = status ? status
                    : upload_rows(d, host->test, &d->K, host->K, host->k_count, host->test->kv_heads, err);
    status = status ? status
                    : upload_rows(d, host->test, &d->V, host->V, host->k_count, host->test->kv_heads, err);
    status =
        status ? status : upload_rows(d, host->test, &d->O, host->O, host->o_count, host->test->heads, err);
    status = status ? status : upload(d, &d->LSE, host->LSE, (size_t)host->lse_count * 4, err);
    status = status ? status : make_plan(d, host, err);
    int64_t width = (int64_t)host->test->heads * host->test->head_dim,
            stride = host->test->row_stride ? host->test->row_stride : width;
    for (int i = 0; !status && i <= host->test->extra_launches; i++) {
        if (i > 0) // what the launch before has written must not pass for this one's
            status = move_rows(d, d->O, host->O, host->o_count, width, stride, true, err);
        status = status ? status : jfa_launch(d->plan, NULL, err);
        status = status ? status : jfa_synchronise(d->device, NULL, err);
    }
    status = status ? status : move_rows(d, d->O, host->O, host->o_count, width, stride, false, err);
    return status ? status
                  : jfa_copy_from_device(d->device, host->LSE, d->LSE, (size_t)host->lse_count * 4, err);
}

static void close_device(Device *d) {
    jfa_error ignored;
    jfa_plan_destroy(d->plan, &ignored);
    if (d->device) {
        uint64_t memory[] = {d->Q, d->K, d->V, d->O, d->LSE};
        for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
            jfa_free(d->device, memory[i], &ignored);
    }
    jfa_module_unload(d->module, &ignored);
    jfa_device_close(d->device, &ignored);
}

// ---------------------------------------------------------------- attention in float64, and with the
// kernel's roundings

typedef struct {
    double *scores, *weights;
    double *exact, *rounded; // of one row of the output
} Scratch;

static void reference_row(const Host *host, int s, int h, int64_t i, Scratch *scratch, double *lse) {
    const Case *test = host->test;
    int64_t d = test->head_dim, n = host->lens_k[s], kv = h / (test->heads / test->kv_heads);
    const uint16_t *q = host->Q + ((host->q.base[s] + i) * test->heads + h) * d;
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        const uint16_t *k = host->K + ((host->k.base[s] + j) * test->kv_heads + kv) * d;
        double dot = 0;
        for (int64_t c = 0; c < d; c++)
            dot += (double)widen(q[c], test->is_f16) * widen(k[c], test->is_f16);
        scratch->scores[j] =
            test->mask && !test->mask(i, j, host->lens_q[s], n) ? -INFINITY : dot / sqrt((double)d);
        most = fmax(most, scratch->scores[j]);
    }
    for (int64_t j = 0; j < n; j++)
        sum += scratch->weights[j] = most == -INFINITY ? 0 : exp(scratch->scores[j] - most);
    *lse = sum > 0 ? most + log(sum) : -INFINITY;
    for (int64_t c = 0; c < d; c++) {
        double exact = 0;
        float rounded = 0;
        for (int64_t j = 0; j < n; j++) {
            double v = widen(host->V[((host->k.base[s] + j) * test->kv_heads + kv) * d + c], test->is_f16);
            exact += scratch->weights[j] * v;
            rounded += widen(narrow((float)scratch->weights[j], test->is_f16), test->is_f16) * (float)v;
        }
        scratch->exact[c] = sum > 0 ? exact / sum : 0;
        scratch->rounded[c] = sum > 0 ? widen(narrow(rounded / (float)sum, test->is_f16), test->is_f16) : 0;
    }
}

static void compare(const Host *host, Outcome *outcome) {
    const Case *test = host->test;
    int64_t d = test->head_dim, most = longest(host->lens_k, test->sequences) + 1;
    Scratch scratch = {malloc(sizeof(double) * (size_t)most), malloc(sizeof(double) * (size_t)most),
                       malloc(sizeof(double) * (size_t)d), malloc(sizeof(double) * (size_t)d)};
    bool *owned = calloc((size_t)host->o.rows, sizeof(bool));
    for (int s = 0; s < test->sequences; s++)
        for (int64_t i = 0; i < host->lens_q[s]; i++) {
            owned[host->o.base[s] + i] = true;
            for (int h = 0; h < test->heads; h++) {
                double lse;
                reference_row(host, s, h, i, &scratch, &lse);
                float got_lse = host->LSE[h * host->o.rows + host->o.base[s] + i];
                double off = got_lse == (float)lse ? 0 : fabs(got_lse - lse);
                outcome->lse_error = off <= outcome->lse_error ? outcome->lse_error : off; // NaN sticks
                for (int64_t c = 0; c < d; c++) {
                    double got =
                        widen(host->O[((host->o.base[s] + i) * test->heads + h) * d + c], test->is_f16);
                    outcome->nan_count += isnan(got);
                    outcome->error = fmax(outcome->error, fabs(got - scratch.exact[c]));
                    outcome->rounded_error =
                        fmax(outcome->rounded_error, fabs(scratch.rounded[c] - scratch.exact[c]));
                    outcome->largest = fmax(outcome->largest, fabs(scratch.exact[c]));
                }
            }
        }
    for (int64_t row = 0; row < host->o.rows; row++)
        for (int64_t c = 0; c < test->heads * d && !owned[row]; c++)
            outcome->touched += host->O[row * test->heads * d + c] != 0xCDCD;
    free(owned);
    free(scratch.scores), free(scratch.weights), free(scratch.exact), free(scratch.rounded);
}

// ---------------------------------------------------------------- one case

char *bench_build_case(const Case *test, Outcome *outcome) {
    Jfac *jfac = jfac_new();
    const char *includes[] = {REPOSITORY "/templates"}, *message = NULL;
    int defines = 0;
    while (test->defines[defines])
        defines++;
    char path[512];
    snprintf(path, sizeof path, "%s%s%s", test->file[0] == '/' ? "" : REPOSITORY,
             test->file[0] == '/' ? "" : "/", test->file);
    JfacOptions options = {.path = path,
                           .target = bench_target,
                           .include_dirs = includes,
                           .include_dir_count = 1,
                           .defines = test->defines,
                           .define_count = defines,
                           .watchdog_ms = test->watchdog_ms};
    char *ptx = NULL;
    if (jfac_lower(jfac, &options, &message))
        ptx = test->edit ? test->edit(jfac_ptx(jfac), test->context) : strdup(jfac_ptx(jfac));
    else
        snprintf(outcome->message, sizeof outcome->message, "%s",
                 message                  ? message
                 : jfac_diag(jfac)->items ? jfac_diag(jfac)->items->text
                                          : "it can't be built");
    jfac_free(jfac);
    return ptx;
}

void bench_run_text(const Case *test, const char *ptx, Outcome *outcome) {
    Host host = {0};
    Device device = {0};
    jfa_error error = {0};
    make_host(test, &host);
    if (launch(&device, &host, ptx, &error) == JFA_OK) {
        compare(&host, outcome);
    } else {
        if (device.device)
            outcome->fault = *jfa_sim_last_fault(jfa_device_native(device.device));
        snprintf(outcome->message, sizeof outcome->message, "%s", error.message);
    }
    close_device(&device);
    free_host(&host);
}

void bench_run_case(const Case *test, Outcome *outcome) {
    memset(outcome, 0, sizeof *outcome);
    char *ptx = bench_build_case(test, outcome);
    if (ptx)
        bench_run_text(test, ptx, outcome);
    free(ptx);
}

void bench_expect_right(const Case *test, const Outcome *outcome) {
    if (outcome->message[0])
        fail_msg("%s", outcome->message);
    double half_ulp = outcome->largest > 0 ? ldexp(1, ilogb(outcome->largest) - (test->is_f16 ? 11 : 8)) : 0;
    double bound = 2 * fmax(outcome->rounded_error, half_ulp);
    if (outcome->nan_count || outcome->touched || !(outcome->error <= bound) || !(outcome->lse_error <= 1e-5))
        fail_msg("error %g (bound %g), LSE error %g, %lld NaN, %lld elements touched outside", outcome->error,
                 bound, outcome->lse_error, (long long)outcome->nan_count, (long long)outcome->touched);
}
