// soak.c: many launches of random jagged batches, one behind the other without waiting, as a training run
// makes them: a kernel that hangs at a rare shape, reads a plan that is gone or leaves memory behind shows
// here.
#include "bench/attention/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SEQUENCES = 128,
    MAX_LENGTH_BITS = 10,
    MAX_KV_HEADS = 4,
    MAX_GROUP = 4,
    POOL_ROWS = 16384, // of the largest batch, with the most heads
    IN_FLIGHT = 16,    // launches before the next wait
    CHECK_EVERY = 50,
    MASKS = 2,
    DIMS = 2,
};
static const int HEAD_DIMS[DIMS] = {64, 128};
// What drivers and allocators keep may grow a little; a leak of one plan a launch is far above it.
static const long MEMORY_SLACK_MIB = 32;

typedef struct {
    Session *session;
    jfa_module *modules[MASKS][DIMS];
    jfa_plan *plans[IN_FLIGHT];
    Shape shape; // of the latest launch
    uint64_t random;
    long launches, checks;
    double worst;
} Soak;

static uint64_t draw(Soak *soak, uint64_t below) {
    return values_mix(soak->random++) % below;
}

// ---------------------------------------------------------------- memory

// MiB of the GPU's memory that are in use, by nvidia-smi; -1: not known.
static long device_memory(const Soak *soak) {
    long used = -1;
    FILE *tool =
        soak->session->is_simulated
            ? NULL
            : popen("nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2> /dev/null", "r");
    if (tool) {
        if (fscanf(tool, "%ld", &used) != 1)
            used = -1;
        pclose(tool);
    }
    return used;
}

static long host_memory(void) {
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%ld %ld", &size, &resident) != 2)
            resident = 0;
        fclose(file);
    }
    return resident / 256; // pages of 4 KiB
}

// ---------------------------------------------------------------- shapes

static bool allocate_shape(Shape *shape, const char *name) {
    *shape = (Shape){.sequences = MAX_SEQUENCES};
    snprintf(shape->name, sizeof shape->name, "%s", name);
    shape->len_q = calloc(MAX_SEQUENCES, sizeof *shape->len_q);
    shape->len_k = calloc(MAX_SEQUENCES, sizeof *shape->len_k);
    shape->first_q = calloc(MAX_SEQUENCES, sizeof *shape->first_q);
    shape->first_k = calloc(MAX_SEQUENCES, sizeof *shape->first_k);
    return shape->len_q && shape->len_k && shape->first_q && shape->first_k;
}

static void free_shape(Shape *shape) {
    free(shape->len_q);
    free(shape->len_k);
    free(shape->first_q);
    free(shape->first_k);
}

// Most lengths are far below the longest one, as users' histories are; some are 0.
static int32_t draw_length(Soak *soak) {
    uint64_t below = 1u << draw(soak, MAX_LENGTH_BITS + 1);
    return draw(soak, 8) == 0 ? 0 : (int32_t)draw(soak, below + 1);
}

static void draw_shape(Soak *soak) {
    Shape *shape = &soak->shape;
    shape->is_causal = draw(soak, MASKS);
    shape->head_dim = HEAD_DIMS[draw(soak, DIMS)];
    shape->kv_heads = 1 + (int)draw(soak, MAX_KV_HEADS);
    shape->heads = shape->kv_heads * (1 + (int)draw(soak, MAX_GROUP));
    shape->shares_q = draw(soak, 4) == 0;
    shape->sequences = 1 + (int64_t)draw(soak, soak->session->is_simulated ? 4 : MAX_SEQUENCES);
    bool is_cross = draw(soak, 2);
    int32_t shared = draw_length(soak);
    int64_t rows = 0;
    for (int64_t s = 0; s < shape->sequences; s++) {
        shape->len_q[s] = shape->shares_q ? shared : draw_length(soak);
        shape->len_k[s] = is_cross || shape->shares_q ? draw_length(soak) : shape->len_q[s];
        rows += shape->len_q[s] > shape->len_k[s] ? shape->len_q[s] : shape->len_k[s];
        if (rows > POOL_ROWS)
            shape->sequences = s;
    }
    shape_sum_up(shape);
}

// The tensors that all batches lie in.
static jfa_status hold_pool(Soak *soak, Shape *pool, jfa_error *err) {
    pool->sequences = 1;
    pool->len_q[0] = pool->len_k[0] = POOL_ROWS;
    pool->head_dim = HEAD_DIMS[DIMS - 1];
    pool->kv_heads = MAX_KV_HEADS;
    pool->heads = MAX_KV_HEADS * MAX_GROUP;
    shape_sum_up(pool);
    return session_hold(soak->session, pool, err);
}

// ---------------------------------------------------------------- launches

static jfa_status check(Soak *soak, jfa_error *err) {
    double worst = 0;
    jfa_status status = jfa_synchronise(soak->session->device, NULL, err);
    if (!status)
        status = check_outputs(soak->session->device, &soak->shape, soak->session->addresses, &worst, err);
    soak->worst = worst > soak->worst ? worst : soak->worst;
    soak->checks++;
    return status;
}

static jfa_status destroy_plans(Soak *soak, jfa_error *err) {
    jfa_status status = jfa_synchronise(soak->session->device, NULL, err);
    for (int i = 0; !status && i < IN_FLIGHT; i++) {
        status = jfa_plan_destroy(soak->plans[i], err);
        soak->plans[i] = NULL;
    }
    return status;
}

static jfa_status launch(Soak *soak, bool is_checked, jfa_error *err) {
    draw_shape(soak);
    const Shape *shape = &soak->shape;
    jfa_plan **plan = &soak->plans[soak->launches % IN_FLIGHT];
    jfa_status status = soak->launches % IN_FLIGHT ? JFA_OK : destroy_plans(soak, err);
    if (!status)
        status = session_plan(soak->session, shape,
                              soak->modules[shape->is_causal][shape->head_dim == HEAD_DIMS[1]], plan, err);
    if (!status && is_checked)
        status = session_fill(soak->session, shape, true, err);
    if (!status)
        status = jfa_launch(*plan, NULL, err);
    if (!status && is_checked)
        status = check(soak, err);
    soak->launches++;
    return status;
}

static jfa_status launch_all(Soak *soak, int launches, jfa_error *err) {
    long device = 0, host = 0;
    jfa_status status = JFA_OK;
    for (int i = 0; !status && i < launches; i++) {
        if (i == launches / 4) { // everything that is kept for good is there
            device = device_memory(soak);
            host = host_memory();
        }
        status = launch(soak, i % CHECK_EVERY == 0, err);
    }
    if (!status)
        status = check(soak, err);
    if (status)
        return status;
    long device_growth = device < 0 ? 0 : device_memory(soak) - device, host_growth = host_memory() - host;
    printf("%ld launches, %ld checked, worst error %.3f of what is allowed; memory grew by %ld MiB on the "
           "device, "
           "%ld MiB on the host\n",
           soak->launches, soak->checks, soak->worst, device_growth, host_growth);
    if (device_growth <= MEMORY_SLACK_MIB && host_growth <= MEMORY_SLACK_MIB)
        return JFA_OK;
    snprintf(err->message, sizeof err->message, "memory is left behind");
    return err->status = JFA_ERROR_OUT_OF_MEMORY;
}

static jfa_status open_soak(Soak *soak, Shape *pool, const char *variant, jfa_error *err) {
    if (!allocate_shape(&soak->shape, "soak") || !allocate_shape(pool, "pool")) {
        snprintf(err->message, sizeof err->message, "no host memory for shapes");
        return err->status = JFA_ERROR_OUT_OF_MEMORY;
    }
    jfa_status status = hold_pool(soak, pool, err);
    for (int i = 0; !status && i < MASKS * DIMS; i++)
        status = session_load(soak->session, i / DIMS, HEAD_DIMS[i % DIMS], variant,
                              &soak->modules[i / DIMS][i % DIMS], err);
    return status;
}

static void close_soak(Soak *soak, Shape *pool) {
    jfa_error ignored;
    destroy_plans(soak, &ignored);
    for (int i = 0; i < MASKS * DIMS; i++)
        if (soak->modules[i / DIMS][i % DIMS])
            jfa_module_unload(soak->modules[i / DIMS][i % DIMS], &ignored);
    session_release(soak->session);
    free_shape(&soak->shape);
    free_shape(pool);
}

bool soak_run(Session *session, const char *variant, int launches, uint64_t seed) {
    Soak soak = {.session = session, .random = seed << 32};
    Shape pool;
    jfa_error err = {0};
    jfa_status status = open_soak(&soak, &pool, variant, &err);
    if (!status)
        status = launch_all(&soak, launches, &err);
    if (status)
        fprintf(
            stderr,
            "bench_attention: launch %ld of seed %llu, %lld sequences, %d heads of %d, %d kv_heads%s%s: %s\n",
            soak.launches, (unsigned long long)seed, (long long)soak.shape.sequences, soak.shape.heads,
            soak.shape.head_dim, soak.shape.kv_heads, soak.shape.is_causal ? ", causal" : "",
            soak.shape.shares_q ? ", shared queries" : "", err.message);
    close_soak(&soak, &pool);
    return !status;
}
