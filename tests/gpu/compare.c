// compare.c: the same PTX with the same inputs on a GPU and on the simulator of its chip, compared bit by
// bit. A tool for a machine with a GPU (no cmocka there): `compare FOLDER [cuda:0]`, FOLDER holding the PTX
// of tests/simulator/triton. Every kernel here orders its sums, so results must be equal; approximate
// functions may differ in the last place, and how often they do is printed.
#include "runtime/backend.h"
#include "simulator/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *file, *kernel;
    uint32_t grid, threads, shared;
    int sizes[4];       // bytes of the buffers in order; the last one is the output
    int kinds[4];       // 0: f32, 1: bf16, 2: f16, 3: i32
    int32_t scalars[4]; // after the buffers
    int scalar_count;
    // Differences that approximate functions and the tensor core's order of sums may make; 0: bits must be
    // equal.
    double relative, absolute;
    uint32_t grid_y, scratch; // CTAs along y (0: 1), and bytes of scratch memory for each CTA
} Job;

static const Job JOBS[] = {
    {"row_softmax_sm90.ptx",
     "row_softmax",
     37,
     128,
     16,
     {37 * 200 * 4, 37 * 200 * 4},
     {0, 0},
     {200},
     1,
     4e-7,
     0,
     0,
     0},
    {"column_sums_sm90.ptx",
     "column_sums",
     4,
     128,
     512,
     {100 * 200 * 2, 200 * 4},
     {1, 0},
     {100, 200},
     2,
     0,
     0,
     0,
     0},
    {"integer_mix_sm90.ptx", "integer_mix", 3, 128, 0, {1300 * 4, 1300 * 4}, {3, 3}, {1300}, 1, 0, 0, 0, 0},
    {"matmul_pointers_sm90.ptx",
     "matmul_pointers",
     2,
     128,
     24576,
     {200 * 150 * 2, 150 * 64 * 2, 200 * 64 * 2},
     {2, 2, 2},
     {200, 64, 150},
     3,
     0x1p-10,
     150 * 4 * 0x1p-24,
     0,
     0},
    {"matmul_sm90.ptx",
     "matmul",
     2,
     128,
     65552,
     {200 * 192 * 2, 192 * 256 * 2, 200 * 256 * 2},
     {2, 2, 2},
     {200, 256, 192},
     3,
     0x1p-10,
     192 * 4 * 0x1p-24,
     2,
     256},
};

static uint32_t next_random(uint32_t *state) {
    return *state = *state * 1664525u + 1013904223u;
}

static void fill(uint8_t *bytes, int size, int kind, uint32_t *state) {
    for (int i = 0; i < size / (kind == 1 || kind == 2 ? 2 : 4); i++) {
        uint32_t word = next_random(state);
        float value = (float)(int32_t)word / 1073741824.0f;
        if (kind == 0) {
            memcpy(bytes + 4 * i, &value, 4);
        } else if (kind == 1) {
            uint32_t bits;
            memcpy(&bits, &value, 4);
            ((uint16_t *)bytes)[i] = (uint16_t)(bits >> 16);
        } else if (kind == 2) {
            _Float16 half = (_Float16)value;
            memcpy(bytes + 2 * i, &half, 2);
        } else {
            memcpy(bytes + 4 * i, &word, 4);
        }
    }
}

static char *read_text(const char *folder, const char *name, size_t *length) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*length + 1);
    if (text && fread(text, 1, *length, file) == *length)
        text[*length] = '\0';
    fclose(file);
    // The driver at hand may know older versions of PTX only; these kernels use nothing new.
    char *version = text ? strstr(text, ".version 9.") : NULL;
    if (version)
        memcpy(version, ".version 8.6", 12);
    return text;
}

typedef struct {
    const jfa_backend *backend;
    void *device;
    jfa_device_props props;
} Side;

// Runs the job on one side; the output's bytes into `out`.
static bool run(const Side *side, const Job *job, const char *text, size_t length, uint8_t *out) {
    const jfa_backend *b = side->backend;
    jfa_error err = {0};
    void *module = NULL, *function = NULL;
    struct {
        uint8_t bytes[256];
        size_t used;
    } params = {.used = 0};
    uint64_t addresses[4] = {0};
    uint32_t state = 7;
    int buffers = 0;
    jfa_status status = b->module_load(side->device, text, length, &module, &err);
    status = status ? status : b->function_get(side->device, module, job->kernel, &function, &err);
    for (; !status && buffers < 4 && job->sizes[buffers]; buffers++) {
        uint8_t *bytes = malloc((size_t)job->sizes[buffers]);
        bool last = buffers == 3 || !job->sizes[buffers + 1];
        if (last)
            memset(bytes, 0, (size_t)job->sizes[buffers]);
        else
            fill(bytes, job->sizes[buffers], job->kinds[buffers], &state);
        status = b->alloc(side->device, (size_t)job->sizes[buffers], &addresses[buffers], &err);
        status = status
                     ? status
                     : b->copy_in(side->device, addresses[buffers], bytes, (size_t)job->sizes[buffers], &err);
        free(bytes);
        memcpy(params.bytes + params.used, &addresses[buffers], 8);
        params.used += 8;
    }
    memcpy(params.bytes + params.used, job->scalars, 4 * (size_t)job->scalar_count);
    params.used = (params.used + 4 * (size_t)job->scalar_count + 7) / 8 * 8;
    uint32_t grid_y = job->grid_y ? job->grid_y : 1;
    uint64_t scratch = 0; // two pointers that Triton appends: scratch memory, and none for profiles
    if (!status && job->scratch)
        status = b->alloc(side->device, (size_t)job->scratch * job->grid * grid_y, &scratch, &err);
    memcpy(params.bytes + params.used, &scratch, 8);
    params.used += 16;
    jfa_launch_desc desc = {.grid = {job->grid, grid_y, 1},
                            .block = {job->threads, 1, 1},
                            .cluster = {1, 1, 1},
                            .shared_bytes = job->shared,
                            .params = params.bytes,
                            .params_bytes = params.used};
    status = status ? status : b->launch(side->device, function, &desc, &err);
    status = status ? status : b->synchronise(side->device, NULL, &err);
    status = status ? status
                    : b->copy_out(side->device, out, addresses[buffers - 1], (size_t)job->sizes[buffers - 1],
                                  &err);
    for (int i = 0; i < buffers; i++)
        b->free(side->device, addresses[i], &(jfa_error){0});
    if (scratch)
        b->free(side->device, scratch, &(jfa_error){0});
    if (module)
        b->module_unload(side->device, module);
    if (status)
        printf("%s on %s: %s\n", job->kernel, side->props.name, err.message);
    return status == JFA_OK;
}

static double value_of(const uint8_t *bytes, int kind, int i) {
    float single;
    _Float16 half;
    switch (kind) {
    case 0:
        memcpy(&single, bytes + 4 * i, 4);
        return single;
    case 2:
        memcpy(&half, bytes + 2 * i, 2);
        return (double)half;
    default:
        return 0;
    }
}

static bool compare(const Job *job, const uint8_t *gpu, const uint8_t *sim, int size, int kind) {
    int bytes = kind == 1 || kind == 2 ? 2 : 4, count = size / bytes, different = 0;
    double worst = 0;
    for (int i = 0; i < count; i++) {
        if (!memcmp(gpu + bytes * i, sim + bytes * i, (size_t)bytes))
            continue;
        different++;
        double a = value_of(gpu, kind, i), b = value_of(sim, kind, i);
        double bound = job->relative * fmax(fabs(a), fabs(b)) + job->absolute;
        worst = (kind == 0 || kind == 2) && bound > 0 ? fmax(worst, fabs(a - b) / bound) : INFINITY;
    }
    bool good = worst <= 1;
    printf("%-24s %6d values, %5d not bit-equal, largest difference %.3g of what is allowed: %s\n",
           job->kernel, count, different, worst, good ? "pass" : "FAIL");
    return good;
}

int main(int count, char **arguments) {
    jfa_error err = {0};
    jfa_device *device;
    if (count < 2 || jfa_device_open(count > 2 ? arguments[2] : "cuda:0", &device, &err)) {
        printf("usage: compare FOLDER [cuda:N]: %s\n", err.message);
        return 2;
    }
    extern const jfa_backend jfa_cuda_backend;
    Side gpu = {&jfa_cuda_backend, jfa_device_native(device), *jfa_device_get_props(device)},
         sim = {jfa_sim_backend(), NULL, {.sm_count = 0}};
    if (sim.backend->open("sm_90a", &sim.device, &sim.props, &err))
        return 2;
    int bad = 0;
    for (size_t i = 0; i < sizeof JOBS / sizeof JOBS[0]; i++) {
        const Job *job = &JOBS[i];
        size_t length = 0;
        char *text = read_text(arguments[1], job->file, &length);
        int last = 0;
        while (last < 3 && job->sizes[last + 1])
            last++;
        uint8_t *on_gpu = calloc(1, (size_t)job->sizes[last]), *on_sim = calloc(1, (size_t)job->sizes[last]);
        bool good = text && run(&gpu, job, text, length, on_gpu) && run(&sim, job, text, length, on_sim);
        bad += !good || !compare(job, on_gpu, on_sim, job->sizes[last], job->kinds[last]);
        free(on_gpu);
        free(on_sim);
        free(text);
    }
    sim.backend->close(sim.device);
    jfa_device_close(device, &err);
    printf("%d failed\n", bad);
    return bad != 0;
}
