// PTX that another compiler made (triton/kernels.py tells from what), on both chips: layouts, descriptors and
// protocols that this project did not choose.
#include "simulator/engines/numbers.h"
#include "tests/simulator/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 2, SCRATCH = 1 << 16 };

typedef struct {
    const char *chip, *suffix;
} Chip;

static const Chip CHIPS[] = {{"sm_100a", "sm100"}, {"sm_90a", "sm90"}};

static Bench open_kernel(const Chip *chip, const char *kernel, int seed) {
    char name[100];
    Bench bench = bench_open(chip->chip);
    bench_option(&bench, "seed", seed);
    snprintf(name, sizeof name, "triton/%s_%s.ptx", kernel, chip->suffix);
    bench_load_file(&bench, name);
    return bench;
}

// Every kernel ends with two pointers to scratch memory.
static void scratch_params(Bench *bench) {
    bench_param_u64(bench, bench_alloc(bench, SCRATCH, NULL));
    bench_param_u64(bench, 0);
}

static void a_row_softmax_is_right(void **state) {
    const Chip *chip = *state;
    enum { ROWS = 3, N = 200 };
    static float x[ROWS * N], y[ROWS * N];
    uint32_t random = 7;
    for (int seed = 0; seed < SEEDS; seed++) {
        Bench bench = open_kernel(chip, "row_softmax", seed);
        for (int i = 0; i < ROWS * N; i++)
            x[i] = 4 * bench_uniform(&random);
        uint64_t out = bench_alloc(&bench, sizeof y, NULL);
        bench_param_u64(&bench, bench_alloc(&bench, sizeof x, x));
        bench_param_u64(&bench, out);
        bench_param_u32(&bench, N);
        scratch_params(&bench);
        bench_run_well(&bench, (BenchLaunch){"row_softmax", ROWS, 128, 1, 16});
        bench_read(&bench, y, out, sizeof y);
        for (int row = 0; row < ROWS; row++) {
            double sum = 0;
            for (int i = 0; i < N; i++)
                sum += exp(x[row * N + i]);
            for (int i = 0; i < N; i++)
                assert_true(fabs(y[row * N + i] - exp(x[row * N + i]) / sum) < 1e-6);
        }
        bench_close(&bench);
    }
}

static void column_sums_are_right(void **state) {
    const Chip *chip = *state;
    enum { ROWS = 37, N = 100 };
    static uint16_t x[ROWS * N];
    static float values[ROWS * N], y[N];
    uint32_t random = 8;
    for (int seed = 0; seed < SEEDS; seed++) {
        Bench bench = open_kernel(chip, "column_sums", seed);
        for (int i = 0; i < ROWS * N; i++)
            values[i] = bench_bf16(bench_uniform(&random), &x[i]);
        uint64_t out = bench_alloc(&bench, sizeof y, NULL);
        bench_param_u64(&bench, bench_alloc(&bench, sizeof x, x));
        bench_param_u64(&bench, out);
        bench_param_u32(&bench, ROWS);
        bench_param_u32(&bench, N);
        scratch_params(&bench);
        bench_run_well(&bench, (BenchLaunch){"column_sums", 2, 128, 1, 512});
        bench_read(&bench, y, out, sizeof y);
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int row = 0; row < ROWS; row++)
                sum += values[row * N + i];
            assert_true(fabs(y[i] - sum) < 1e-5);
        }
        bench_close(&bench);
    }
}

static int32_t mixed(int32_t v) {
    int32_t r = (int32_t)((uint32_t)v * 1640531527u) ^ (v >> 7);
    r = v % 3 == 0 ? r / 5 : (int32_t)(0u - (uint32_t)r);
    return (int32_t)((uint32_t)r + (uint32_t)abs(v) - (uint32_t)(v & 0xFF));
}

static void a_mix_of_integers_is_right(void **state) {
    const Chip *chip = *state;
    enum { N = 1000 };
    static int32_t x[N], y[N];
    uint32_t random = 9;
    Bench bench = open_kernel(chip, "integer_mix", 0);
    for (int i = 0; i < N; i++)
        x[i] = (int32_t)(bench_random(&random) << 8) >> (i % 24);
    uint64_t out = bench_alloc(&bench, sizeof y, NULL);
    bench_param_u64(&bench, bench_alloc(&bench, sizeof x, x));
    bench_param_u64(&bench, out);
    bench_param_u32(&bench, N);
    scratch_params(&bench);
    bench_run_well(&bench, (BenchLaunch){"integer_mix", 2, 128, 1, 0});
    bench_read(&bench, y, out, sizeof y);
    for (int i = 0; i < N; i++)
        assert_int_equal(y[i], mixed(x[i]));
    bench_close(&bench);
}

static uint64_t random_f16(Bench *bench, uint32_t *random, int count, float *values) {
    uint16_t *bits = malloc(sizeof *bits * (size_t)count);
    assert_non_null(bits);
    for (int i = 0; i < count; i++) {
        bits[i] = sim_f32_to_f16(bench_uniform(random), SIM_RN, false, false);
        values[i] = sim_f16_to_f32(bits[i]);
    }
    uint64_t address = bench_alloc(bench, sizeof *bits * (size_t)count, bits);
    free(bits);
    return address;
}

// C = A B in f16 with f32 sums. On sm_100a this compiler orders tcgen05.st and tcgen05.mma by bar.sync alone,
// without the tcgen05 fences that the PTX ISA asks for, and lets conversions of loaded registers come before
// tcgen05.wait::ld, which the assembler mends: the first seed sees that reported, the others run without the
// checks of order.
static void run_matmul(const Chip *chip, const char *kernel, int block_n, uint32_t shared, int m, int n,
                       int k) {
    static float a[1 << 17], b[1 << 17];
    static uint16_t c[1 << 17];
    uint32_t random = 10;
    for (int seed = 0; seed < SEEDS; seed++) {
        Bench bench = open_kernel(chip, kernel, seed);
        bool lacks_fences = !strcmp(chip->chip, "sm_100a");
        bench_option(&bench, "race", !lacks_fences || seed == 0);
        uint64_t out = bench_alloc(&bench, sizeof *c * (size_t)(m * n), NULL);
        bench_param_u64(&bench, random_f16(&bench, &random, m * k, a));
        bench_param_u64(&bench, random_f16(&bench, &random, k * n, b));
        bench_param_u64(&bench, out);
        bench_param_u32(&bench, (uint32_t)m);
        bench_param_u32(&bench, (uint32_t)n);
        bench_param_u32(&bench, (uint32_t)k);
        scratch_params(&bench);
        bench.grid_y = (uint32_t)((n + block_n - 1) / block_n);
        BenchLaunch launch = {kernel, (uint32_t)(m + 127) / 128, 128, 1, shared};
        if (lacks_fences && seed == 0) {
            bench_run_fault(&bench, launch, SIM_FAULT_RACE, "fence::before_thread_sync");
            bench_close(&bench);
            continue;
        }
        bench_run_well(&bench, launch);
        bench_read(&bench, c, out, sizeof *c * (size_t)(m * n));
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                double sum = 0;
                for (int x = 0; x < k; x++)
                    sum += (double)a[i * k + x] * b[x * n + j];
                float found = sim_f16_to_f32(c[i * n + j]);
                if (!(fabs(found - sum) <= 0.001 * fabs(sum) + 0.001))
                    fail_msg("element (%d, %d) is %g, not %g", i, j, found, sum);
            }
        bench_close(&bench);
    }
}

static void a_product_by_tensor_descriptors_is_right(void **state) {
    const Chip *chip = *state;
    run_matmul(chip, "matmul", 128, 65568, 150, 136, 136);
}

static void a_product_by_pointers_is_right(void **state) {
    const Chip *chip = *state;
    run_matmul(chip, "matmul_pointers", 64, 49168, 130, 70, 100);
}

int main(void) {
    static const struct {
        const char *name;
        CMUnitTestFunction run;
    } TESTS[] = {
        {"a row softmax is right", a_row_softmax_is_right},
        {"column sums are right", column_sums_are_right},
        {"a mix of integers is right", a_mix_of_integers_is_right},
        {"a product by tensor descriptors is right", a_product_by_tensor_descriptors_is_right},
        {"a product by pointers is right", a_product_by_pointers_is_right},
    };
    enum { COUNT = sizeof TESTS / sizeof TESTS[0] };
    static char names[2 * COUNT][80];
    static struct CMUnitTest tests[2 * COUNT];
    for (int i = 0; i < 2 * COUNT; i++) {
        const Chip *chip = &CHIPS[i / COUNT];
        snprintf(names[i], sizeof names[i], "%s on %s", TESTS[i % COUNT].name, chip->chip);
        tests[i] = (struct CMUnitTest){names[i], TESTS[i % COUNT].run, NULL, NULL, (void *)chip};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
