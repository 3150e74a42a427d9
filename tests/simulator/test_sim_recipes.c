// The protocols that kernels are built on, as complete small kernels against float64, with several seeds.
#include "tests/simulator/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 5, M = 128, N = 128 };

// Rows x K in bf16 on the device, and the rounded values.
static uint64_t random_matrix(Bench *bench, uint32_t *random, int rows, int columns, float *values) {
    uint16_t *bits = malloc(sizeof *bits * (size_t)(rows * columns));
    assert_non_null(bits);
    for (int i = 0; i < rows * columns; i++)
        values[i] = bench_bf16(bench_uniform(random), &bits[i]);
    uint64_t address = bench_alloc(bench, sizeof *bits * (size_t)(rows * columns), bits);
    free(bits);
    return address;
}

static jfa_tensor_map plain_map(uint64_t address, uint64_t columns, uint64_t rows, uint32_t box_rows) {
    return (jfa_tensor_map){.dtype = JFA_BF16,
                            .rank = 2,
                            .address = address,
                            .dims = {columns, rows},
                            .strides = {2, columns * 2},
                            .box = {64, box_rows},
                            .swizzle_bytes = 128};
}

static void expect_product(const float *a, const float *b, const float *d, int m, int n, int k, int d_step) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int x = 0; x < k; x++)
                sum += (double)a[i * k + x] * b[j * k + x];
            if (!(fabs(sum - d[i * d_step + j]) < 1e-4))
                fail_msg("element (%d, %d) is %g, not %g", i, j, d[i * d_step + j], sum);
        }
}

static void a_product_of_two_loaded_tiles_is_right_with_every_seed(void **state) {
    (void)state;
    static float a[M * 64], b[N * 64], d[M * N];
    uint32_t random = 1;
    for (int seed = 0; seed < SEEDS; seed++) {
        Bench bench = bench_open("sm_100a");
        bench_option(&bench, "seed", seed);
        bench_load_file(&bench, "snippets/recipe_sm100_umma_bf16.ptx");
        jfa_tensor_map ta = plain_map(random_matrix(&bench, &random, M, 64, a), 64, M, M);
        jfa_tensor_map tb = plain_map(random_matrix(&bench, &random, N, 64, b), 64, N, N);
        uint64_t out = bench_alloc(&bench, sizeof d, NULL);
        bench_param_map(&bench, &ta);
        bench_param_map(&bench, &tb);
        bench_param_u64(&bench, out);
        bench_run_well(&bench, (BenchLaunch){"umma_bf16", 1, 128, 1, 32768});
        bench_read(&bench, d, out, sizeof d);
        expect_product(a, b, d, M, N, 64, N);
        bench_close(&bench);
    }
}

static void a_warpgroup_product_is_right_with_every_seed(void **state) {
    (void)state;
    static float a[64 * 64], b[64 * 64], d[64 * 64];
    uint32_t random = 2;
    for (int seed = 0; seed < SEEDS; seed++) {
        Bench bench = bench_open("sm_90a");
        bench_option(&bench, "seed", seed);
        bench_load_file(&bench, "snippets/recipe_sm90_wgmma_bf16.ptx");
        jfa_tensor_map ta = plain_map(random_matrix(&bench, &random, 64, 64, a), 64, 64, 64);
        jfa_tensor_map tb = plain_map(random_matrix(&bench, &random, 64, 64, b), 64, 64, 64);
        uint64_t out = bench_alloc(&bench, sizeof d, NULL);
        bench_param_map(&bench, &ta);
        bench_param_map(&bench, &tb);
        bench_param_u64(&bench, out);
        bench_run_well(&bench, (BenchLaunch){"wgmma_bf16", 1, 128, 1, 16384});
        bench_read(&bench, d, out, sizeof d);
        expect_product(a, b, d, 64, 64, 64, 64);
        bench_close(&bench);
    }
}

static void every_tile_of_a_queue_is_worked_on_once(void **state) {
    (void)state;
    enum { TILES = 41 };
    for (int seed = 0; seed < SEEDS; seed++) {
        Bench bench = bench_open("sm_100a,sms=3");
        uint32_t found[TILES];
        bench_option(&bench, "seed", seed);
        bench_load_file(&bench, "snippets/recipe_sm100_clc_loop.ptx");
        uint64_t out = bench_alloc(&bench, sizeof found, NULL);
        bench_param_u64(&bench, out);
        bench_run_well(&bench, (BenchLaunch){"clc_loop", TILES, 128, 1, 0});
        bench_read(&bench, found, out, sizeof found);
        for (uint32_t i = 0; i < TILES; i++)
            assert_int_equal(found[i], i);
        bench_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_of_two_loaded_tiles_is_right_with_every_seed),
        cmocka_unit_test(every_tile_of_a_queue_is_worked_on_once),
        cmocka_unit_test(a_warpgroup_product_is_right_with_every_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
