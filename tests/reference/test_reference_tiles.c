// The references that the project comes with, against plain loops in double and, rounded, in float.
#include "compiler/reference/number.h"
#include "tests/reference/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

// ---------------------------------------------------------------- matrix product

static void matmul_is_a_plain_triple_loop_for_each_sequence(void **state) {
    (void)state;
    static const int64_t M[] = {5, 0, 3}, N[] = {4, 2, 6}, K[] = {7, 3, 0}, M0[] = {0, 5, 6},
                         N0[] = {1, 5, 8};
    enum { ROWS_A = 9, ROWS_B = 14, DEPTH = 8, COLS_C = 14 };
    Bench bench;
    bench_open_file(&bench, "examples/matmul.jfa", "");
    bench.problem.sequences = 3;
    bench_axis(&bench, "m", M);
    bench_axis(&bench, "n", N);
    bench_axis(&bench, "k", K);
    bench_param(&bench, "alpha", 0.5);
    double *a = bench_noise(&bench, ROWS_A * DEPTH, 1), *b = bench_noise(&bench, ROWS_B * DEPTH, 2);
    bench_tensor2(&bench, "A", a, ROWS_A, DEPTH)->base[0] = M0;
    bench_tensor2(&bench, "B", b, ROWS_B, DEPTH)->base[0] = N0;
    ReferenceTensor *c = bench_tensor2(&bench, "C", NULL, ROWS_A, COLS_C);
    c->base[0] = M0;
    c->base[1] = N0;
    ReferenceResults results = bench_run(&bench, REFERENCE_EXACT);
    int64_t written = 0;
    for (int s = 0; s < 3; s++)
        for (int64_t i = 0; i < M[s]; i++)
            for (int64_t j = 0; j < N[s]; j++) {
                double sum = 0;
                for (int64_t p = 0; p < K[s]; p++)
                    sum += a[(M0[s] + i) * DEPTH + p] * b[(N0[s] + j) * DEPTH + p];
                int64_t at = (M0[s] + i) * COLS_C + N0[s] + j;
                assert_true(results.outputs[0].written[at]);
                assert_true(results.outputs[0].values[at] == 0.5 * sum);
                written++;
            }
    for (int64_t i = 0; i < results.outputs[0].count; i++)
        written -= results.outputs[0].written[i];
    assert_int_equal(written, 0);
    reference_results_free(&results);
    bench_close(&bench);
}

// ---------------------------------------------------------------- attention

enum { D = 64, MOST_KEYS = 64 };

typedef struct {
    const char *kernel; // its text
    int heads, kv_heads;
    bool shares_q;
    bool (*mask)(int64_t q, int64_t k, int64_t head, int64_t seq);
    double (*score)(double s, int64_t q, int64_t k, int64_t head);
} Variant;

static bool all(int64_t q, int64_t k, int64_t head, int64_t seq) {
    (void)q, (void)k, (void)head, (void)seq;
    return true;
}
static bool causal(int64_t q, int64_t k, int64_t head, int64_t seq) {
    (void)head, (void)seq;
    return k <= q;
}
static bool window(int64_t q, int64_t k, int64_t head, int64_t seq) {
    (void)seq;
    return k <= q && q - k < 3 + head;
}
static bool blocks(int64_t q, int64_t k, int64_t head, int64_t seq) {
    (void)head;
    return q / 4 == k / 4 && (seq != 2 || q % 2 == 1);
}
static double scaled(double s, int64_t q, int64_t k, int64_t head) {
    (void)q, (void)k, (void)head;
    return s * 0.125;
}
static double sloped(double s, int64_t q, int64_t k, int64_t head) {
    return s * 0.125 + 1.0 / (double)(2 << head) * (double)(k - q);
}
static double capped(double s, int64_t q, int64_t k, int64_t head) {
    (void)q, (void)k, (void)head;
    return 2 * tanh(s * 0.125 / 2);
}

static const Variant VARIANTS[] = {
    {"", 2, 2, false, all, scaled},
    {"", 4, 2, false, all, scaled},
    {"", 4, 1, true, all, scaled},
    {"mask (k, q) => k <= q;", 2, 1, false, causal, scaled},
    {"mask (head, k, q) => k <= q && q - k < reach + head; param reach : i32 = 3;", 4, 2, false, window,
     scaled},
    {"const B = 4; fn block(x) => x / B; mask (q, k, seq) => block(q) == block(k) && (seq != 2 || q % 2 == "
     "1);",
     2, 2, false, blocks, scaled},
    {"tensor slope : in f32[heads]; score (head, k, q, s) => s * scale + slope[head] * (k - q);", 4, 2, false,
     all, sloped},
    {"const cap = 2.0; score (s) => cap * tanh(s * scale / cap);", 2, 2, true, causal, capped},
};
static const int64_t LENS_Q[] = {9, 0, 13, 5, 1}, LENS_K[] = {9, 4, 19, 0, 33},
                     BASE_Q[] = {2, 11, 12, 25, 30}, BASE_K[] = {0, 9, 14, 31, 32}, ZEROS[] = {0, 0, 0, 0, 0};
enum { SEQUENCES = 5, ROWS_Q = 33, ROWS_K = 66 };

typedef struct {
    double *q, *k, *v;
} Inputs;

static void open_variant(Bench *bench, const Variant *variant, Inputs *inputs, const char *dtype) {
    static const double SLOPES[] = {0.5, 0.25, 0.125, 0.0625};
    char kernel[512];
    const char *mask = variant->mask == causal && variant->score == capped ? "mask (q, k) => k <= q;" : "";
    snprintf(kernel, sizeof kernel, "kernel test : attention { head_dim 64; dtype %s; %s %s }", dtype,
             variant->kernel, mask);
    bench_open_file(bench, "templates/attention.jfa", kernel);
    bench->problem.sequences = SEQUENCES;
    bench_axis(bench, "q", LENS_Q);
    bench_axis(bench, "k", LENS_K);
    bench_dim(bench, "heads", variant->heads);
    bench_dim(bench, "kv_heads", variant->kv_heads);
    inputs->q = bench_noise(bench, (int64_t)ROWS_Q * variant->heads * D, 3);
    inputs->k = bench_noise(bench, (int64_t)ROWS_K * variant->kv_heads * D, 4);
    inputs->v = bench_noise(bench, (int64_t)ROWS_K * variant->kv_heads * D, 5);
    bench_tensor3(bench, "Q", inputs->q, ROWS_Q, variant->heads, D)->base[0] =
        variant->shares_q ? ZEROS : BASE_Q;
    bench_tensor3(bench, "K", inputs->k, ROWS_K, variant->kv_heads, D)->base[0] = BASE_K;
    bench_tensor3(bench, "V", inputs->v, ROWS_K, variant->kv_heads, D)->base[0] = BASE_K;
    bench_tensor3(bench, "O", NULL, ROWS_Q, variant->heads, D)->base[0] = BASE_Q;
    bench_tensor2(bench, "LSE", NULL, variant->heads, ROWS_Q)->base[1] = BASE_Q;
    if (strstr(variant->kernel, "slope"))
        bench_tensor1(bench, "slope", SLOPES, variant->heads);
}

// One row of the output and its log-sum-exp, as the formula says.
static void plain_row(const Variant *variant, const Inputs *inputs, int s, int64_t i, int head, double *out,
                      double *lse) {
    double scores[MOST_KEYS], largest = -INFINITY, sum = 0;
    int64_t kv = head / (variant->heads / variant->kv_heads), row_q = (variant->shares_q ? 0 : BASE_Q[s]) + i;
    const double *q = inputs->q + (row_q * variant->heads + head) * D;
    for (int64_t j = 0; j < LENS_K[s]; j++) {
        const double *k = inputs->k + ((BASE_K[s] + j) * variant->kv_heads + kv) * D;
        double dot = 0;
        for (int d = 0; d < D; d++)
            dot += q[d] * k[d];
        scores[j] = variant->mask(i, j, head, s) ? variant->score(dot, i, j, head) : -INFINITY;
        largest = fmax(largest, scores[j]);
    }
    memset(out, 0, sizeof(double) * D);
    for (int64_t j = 0; j < LENS_K[s]; j++) {
        const double *v = inputs->v + ((BASE_K[s] + j) * variant->kv_heads + kv) * D;
        double e = largest == -INFINITY ? 0 : exp(scores[j] - largest);
        sum += e;
        for (int d = 0; d < D; d++)
            out[d] += e * v[d];
    }
    for (int d = 0; d < D && sum > 0; d++)
        out[d] /= sum;
    *lse = largest + log(sum);
}

static void compare_variant(const Variant *variant) {
    Bench bench;
    Inputs inputs;
    open_variant(&bench, variant, &inputs, "bf16");
    ReferenceResults results = bench_run(&bench, REFERENCE_EXACT);
    const double *o = bench_values(&results, "O"), *lse = bench_values(&results, "LSE");
    for (int s = 0; s < SEQUENCES; s++)
        for (int64_t i = 0; i < LENS_Q[s]; i++)
            for (int head = 0; head < variant->heads; head++) {
                double right[D], right_lse;
                plain_row(variant, &inputs, s, i, head, right, &right_lse);
                int64_t row = BASE_Q[s] + i;
                for (int d = 0; d < D; d++)
                    assert_true(fabs(o[(row * variant->heads + head) * D + d] - right[d]) < 1e-13);
                double found = lse[head * ROWS_Q + row];
                assert_true(found == right_lse || fabs(found - right_lse) < 1e-13);
            }
    reference_results_free(&results);
    bench_close(&bench);
}

static void attention_is_its_formula_for_every_variant_of_mask_score_and_heads(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof VARIANTS / sizeof VARIANTS[0]; i++)
        compare_variant(&VARIANTS[i]);
}

// ---------------------------------------------------------------- rounded

static float as_float(double value) {
    return (float)value;
}

static void attention_rounded_is_the_same_computation_in_float_bit_for_bit(void **state) {
    (void)state;
    static const char *const TYPES[] = {"bf16", "f16"};
    const Variant *variant = &VARIANTS[3];
    for (int type = 0; type < 2; type++) {
        Bench bench;
        Inputs inputs;
        float (*round)(float) = type ? number_round_f16 : number_round_bf16;
        open_variant(&bench, variant, &inputs, TYPES[type]);
        ReferenceResults results = bench_run(&bench, REFERENCE_ROUNDED);
        const double *o = bench_values(&results, "O"), *lse = bench_values(&results, "LSE");
        for (int s = 0; s < SEQUENCES; s++)
            for (int64_t i = 0; i < LENS_Q[s] && LENS_K[s]; i++)
                for (int head = 0; head < 2; head++) {
                    int64_t row = BASE_Q[s] + i;
                    float e[MOST_KEYS], largest = -INFINITY, sum = 0;
                    for (int64_t j = 0; j < LENS_K[s]; j++) {
                        float dot = 0;
                        for (int d = 0; d < D; d++) {
                            float product = as_float(inputs.q[(row * 2 + head) * D + d]) *
                                            as_float(inputs.k[(BASE_K[s] + j) * D + d]);
                            dot += product;
                        }
                        e[j] = j <= i ? dot * 0.125f : -INFINITY;
                        largest = e[j] > largest ? e[j] : largest;
                    }
                    for (int64_t j = 0; j < LENS_K[s]; j++) {
                        e[j] = expf(e[j] - largest);
                        sum += e[j];
                    }
                    for (int d = 0; d < D; d++) {
                        float acc = 0;
                        for (int64_t j = 0; j < LENS_K[s]; j++) {
                            float product = round(e[j]) * as_float(inputs.v[(BASE_K[s] + j) * D + d]);
                            acc += product;
                        }
                        assert_true(o[(row * 2 + head) * D + d] == round(acc / sum));
                    }
                    assert_true(lse[head * ROWS_Q + row] == largest + logf(sum));
                }
        reference_results_free(&results);
        bench_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_is_a_plain_triple_loop_for_each_sequence),
        cmocka_unit_test(attention_is_its_formula_for_every_variant_of_mask_score_and_heads),
        cmocka_unit_test(attention_rounded_is_the_same_computation_in_float_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
