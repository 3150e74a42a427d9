#include "compiler/target.h"

#include <stddef.h>
#include <string.h>

int elem_bytes(Elem elem) {
    static const int BYTES[ELEM_COUNT] = {
        [ELEM_BOOL] = 1, [ELEM_I32] = 4, [ELEM_F32] = 4, [ELEM_BF16] = 2, [ELEM_F16] = 2};
    return BYTES[elem];
}

const char *elem_name(Elem elem) {
    static const char *const NAMES[ELEM_COUNT] = {"bool", "i32", "f32", "bf16", "f16"};
    return NAMES[elem];
}

bool elem_is_float(Elem elem) {
    return elem >= ELEM_F32;
}

// Compute capability 10.0: 227 KB of shared memory a CTA, 512 columns of tensor memory (PTX ISA, tcgen05).
// Product shapes: PTX ISA, tcgen05.mma kind::f16, cta_group::1; N in steps of 16 so that A may come from
// tensor memory.
static const Target SM_100A = {
    .name = "sm_100a",
    .family = "sm_100",
    .ptx = "+ptx86",
    .shared_bytes = 232448,
    .tmem_columns = 512,
    .tmem_lanes = 128,
    .warp_rows = 32,
    .registers = 65536,
    .max_threads = 1024,
    .sm_threads = 2048,
    .max_regs = 255,
    .max_mbarriers = 512,
    .product_m = {128},
    .product_m_count = 1,
    .product_n_step = 16,
    .product_n_max = 256,
    .product_k = 16,
};

// Compute capability 9.0; PTX ISA, wgmma.mma_async.
static const Target SM_90A = {
    .name = "sm_90a",
    .family = "sm_90",
    .ptx = "+ptx84",
    .shared_bytes = 232448,
    .tmem_columns = 0,
    .tmem_lanes = 0,
    .warp_rows = 16,
    .products_in_registers = true,
    .registers = 65536,
    .max_threads = 1024,
    .sm_threads = 2048,
    .max_regs = 255,
    .max_mbarriers = 512,
    .product_m = {64},
    .product_m_count = 1,
    .product_n_step = 8,
    .product_n_max = 256,
    .product_k = 16,
};

static const Target *const TARGETS[] = {&SM_100A, &SM_90A};

const Target *const *target_all(int *count) {
    *count = (int)(sizeof TARGETS / sizeof TARGETS[0]);
    return TARGETS;
}

const Target *target_find(const char *name) {
    for (size_t i = 0; i < sizeof TARGETS / sizeof TARGETS[0]; i++)
        if (!strcmp(TARGETS[i]->name, name))
            return TARGETS[i];
    return NULL;
}

int64_t target_shared_bytes(const Target *target, int ctas) {
    enum { RESERVED = 1024, GRANULE = 128 };
    return ((target->shared_bytes + RESERVED) / ctas - RESERVED) / GRANULE * GRANULE;
}

int target_launch_regs(const Target *target, int threads) {
    int regs = target->registers / threads / 8 * 8;
    return regs > target->max_regs ? target->max_regs : regs;
}

int swizzle_bytes_for(int row_bytes) {
    for (int bytes = 128; bytes >= 32; bytes /= 2)
        if (row_bytes % bytes == 0)
            return bytes;
    return 0;
}
