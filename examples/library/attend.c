// attend.c: runs an attention kernel that jfac built on jagged sequences, with libjfa alone.
//
//     jfac build examples/dense.jfa --target sm_100a --emit ptx -o dense.ptx
//     attend dense.ptx                    # on the simulator
//     attend dense.cubin cuda:0
//
// The program owns the device, the module, the plan and the tensors' memory, and gives them back in the
// opposite order. The kernel is the module's. What describes the problem isn't needed once the plan is made.
#include <jfa/jfa.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = 4, TOKENS = 271, HEADS = 4, KV_HEADS = 2, D = 128 };
static const int32_t OFFSETS[SEQUENCES + 1] = {0, 70, 70, 270, TOKENS}; // lengths 70, 0, 200, 1

// bf16 is the upper half of f32. Our values have few digits: cutting off loses nothing.
static uint16_t to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}
static double from_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

typedef struct {
    const char *name;
    int heads;
    uint16_t *host;   // [TOKENS, heads, D]
    uint64_t address; // the same on the device
} Tensor;

// NULL and 0 until it is made.
typedef struct {
    jfa_device *device;
    jfa_module *module;
    jfa_plan *plan;
    Tensor tensors[4]; // Q, K, V, O
    uint64_t lse;      // f32 [HEADS, TOKENS] on the device
} Program;

static size_t bytes_of(const Tensor *t) {
    return (size_t)TOKENS * (size_t)t->heads * D * sizeof *t->host;
}

static jfa_status make_tensor(Program *p, Tensor *t, uint32_t seed, jfa_error *err) {
    t->host = malloc(bytes_of(t));
    for (size_t i = 0; t->host && i < bytes_of(t) / sizeof *t->host; i++) {
        seed = seed * 1664525u + 1013904223u;
        t->host[i] = to_bf16((float)(seed >> 27) / 8 - 2); // -2 to 1.875 in eighths
    }
    jfa_status status =
        t->host ? jfa_malloc(p->device, bytes_of(t), &t->address, err) : JFA_ERROR_OUT_OF_MEMORY;
    return status ? status : jfa_copy_to_device(p->device, t->address, t->host, bytes_of(t), err);
}

// The first call that fails says why, in *err; what was made until then is given back by the caller.
static jfa_status run(Program *p, const char *device, const char *image, jfa_error *err) {
    jfa_kernel *kernel;
    jfa_status status = jfa_device_open(device, &p->device, err);
    status = status ? status : jfa_module_load_file(p->device, image, &p->module, err);
    status = status ? status : jfa_kernel_get(p->module, NULL, &kernel, err);
    for (int i = 0; i < 4 && !status; i++)
        status = make_tensor(p, &p->tensors[i], (uint32_t)i, err);
    status = status ? status : jfa_malloc(p->device, HEADS * TOKENS * sizeof(float), &p->lse, err);
    if (status)
        return status;

    // Self-attention: queries and keys have the same lengths.
    jfa_axis axes[] = {{.name = "q", .offsets = OFFSETS}, {.name = "k", .offsets = OFFSETS}};
    jfa_tensor tensors[5] = {
        [4] = {.name = "LSE", .address = p->lse, .dtype = JFA_F32, .rank = 2, .extents = {HEADS, TOKENS}}};
    for (int i = 0; i < 4; i++)
        tensors[i] = (jfa_tensor){.name = p->tensors[i].name,
                                  .address = p->tensors[i].address,
                                  .dtype = JFA_BF16,
                                  .rank = 3,
                                  .extents = {TOKENS, p->tensors[i].heads, D}};
    for (int i = 0; i < 5; i++)
        jfa_tensor_set_dense(&tensors[i]);
    jfa_problem problem = {
        .sequences = SEQUENCES, .axes = axes, .axis_count = 2, .tensors = tensors, .tensor_count = 5};

    // The plan checks all of that; launches of it cost next to nothing and may be repeated.
    status = jfa_plan_create(kernel, &problem, &p->plan, err);
    status = status ? status : jfa_launch(p->plan, NULL, err);
    status = status ? status : jfa_synchronise(p->device, NULL, err);
    Tensor *o = &p->tensors[3];
    return status ? status : jfa_copy_from_device(p->device, o->host, o->address, bytes_of(o), err);
}

static void release(Program *p) {
    jfa_plan_destroy(p->plan, NULL); // NULL is allowed, as with free()
    jfa_module_unload(p->module, NULL);
    for (int i = 0; i < 4; i++) {
        jfa_free(p->device, p->tensors[i].address, NULL);
        free(p->tensors[i].host);
    }
    jfa_free(p->device, p->lse, NULL);
    jfa_device_close(p->device, NULL);
}

static const uint16_t *row(const Tensor *t, int token, int head) {
    return t->host + ((size_t)token * (size_t)t->heads + (size_t)head) * D;
}

// The greatest difference of a row of O from softmax(q K^T / sqrt(D)) V over its sequence's positions.
static double check_row(const Program *p, int sequence, int token, int head) {
    double sums[D] = {0}, total = 0, most = 0;
    const uint16_t *q = row(&p->tensors[0], token, head), *o = row(&p->tensors[3], token, head);
    for (int k = OFFSETS[sequence]; k < OFFSETS[sequence + 1]; k++) {
        double score = 0;
        for (int d = 0; d < D; d++)
            score += from_bf16(q[d]) * from_bf16(row(&p->tensors[1], k, head * KV_HEADS / HEADS)[d]);
        double weight = exp(score / sqrt(D)); // scores are small: no maximum needs to be taken off
        total += weight;
        for (int d = 0; d < D; d++)
            sums[d] += weight * from_bf16(row(&p->tensors[2], k, head * KV_HEADS / HEADS)[d]);
    }
    for (int d = 0; d < D; d++)
        most = fmax(most, fabs(sums[d] / total - from_bf16(o[d])));
    return most;
}

int main(int count, char **words) {
    if (count < 2 || count > 3)
        return fprintf(stderr, "usage: attend KERNEL [DEVICE]\n"), 2;
    Program p = {
        .tensors = {{"Q", HEADS, 0, 0}, {"K", KV_HEADS, 0, 0}, {"V", KV_HEADS, 0, 0}, {"O", HEADS, 0, 0}}};
    jfa_error err = {.message = "out of memory"};
    double difference = INFINITY;
    if (run(&p, count > 2 ? words[2] : "sim:sm_100a", words[1], &err)) {
        fprintf(stderr, "attend: %s\n", err.message);
    } else {
        enum { SEQUENCE = 2, TOKEN = 200, HEAD = 3 };
        const uint16_t *o = row(&p.tensors[3], TOKEN, HEAD);
        difference = check_row(&p, SEQUENCE, TOKEN, HEAD);
        printf("libjfa %s on '%s': O[%d, %d] = %.4f %.4f ..., within %.4f of plain C\n", jfa_version(),
               jfa_device_get_props(p.device)->name, TOKEN, HEAD, from_bf16(o[0]), from_bf16(o[1]),
               difference);
    }
    release(&p);
    return difference < 0.02 ? 0 : 1;
}
