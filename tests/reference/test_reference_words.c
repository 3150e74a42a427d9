// Each word of a reference on its own: arithmetic, indices, reductions, special values, and what is wrong.
#include "tests/reference/bench.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

// A family with an input x[4] = {1, 2, -3, 0.5} on axis n, an integer table t[3] = {7, -2, 5}, special values
// w[4] = {NaN, inf, -inf, 0}, and an output y[4].
static const char FAMILY[] =
    "family f { option size : int in (2, 4); option dtype : type in (bf16, f16); axis n; axis e; "
    "dim three; tensor x : in f32[n]; tensor t : in i32[three]; tensor w : in f32[4]; "
    "tensor y : out f32[n]; param p : f32 = 1.5; param k : i32; "
    "hook bend (v, i) : f32 => v; hook pick (i, j) : bool => i < j; fn twice(v) => v + v; "
    "const C = 1 / 4.0; reference { %s } } kernel g : f { size 4; dtype bf16; %s }";
static const double X[] = {1, 2, -3, 0.5}, T[] = {7, -2, 5}, W[] = {NAN, INFINITY, -INFINITY, 0};
static const int64_t LEN_N[] = {4}, LEN_E[] = {0};

static void open_words(Bench *bench, const char *reference, const char *kernel) {
    char text[4096];
    snprintf(text, sizeof text, FAMILY, reference, kernel);
    bench_open(bench, text);
    bench_axis(bench, "n", LEN_N);
    bench_axis(bench, "e", LEN_E);
    bench_dim(bench, "three", 3);
    bench_param(bench, "k", 6);
    bench_tensor1(bench, "x", X, 4);
    double *t = arena_array(bench->arena, double, 3), *w = arena_array(bench->arena, double, 4);
    memcpy(t, T, sizeof T);
    memcpy(w, W, sizeof W);
    bench_tensor1(bench, "t", t, 3);
    bench_tensor1(bench, "w", w, 4);
    bench_tensor1(bench, "y", NULL, 4);
}

typedef struct {
    const char *value, *kernel;
    double right[4]; // of y[i] for i in n
} Word;

#define ALL(v)                                                                                               \
    { v, v, v, v }
static const Word WORDS[] = {
    {"i", "", {0, 1, 2, 3}},
    {"7 / 2 + (0 - 7) / 2 * 10", "", ALL(-27)},
    {"(i - 3) / 2", "", {-1, -1, 0, 0}},
    {"(i - 3) % 2", "", {-1, 0, -1, 0}},
    {"7 / 2.0", "", ALL(3.5)},
    {"i / 2.0", "", {0, 0.5, 1, 1.5}},
    {"x[i] % 2", "", {1, 0, -1, 0.5}},
    {"-x[i] * 2 - 1", "", {-3, -5, 5, -2}},
    {"i < 2 ? x[i] : 9", "", {1, 2, 9, 9}},
    {"i < 2 && i != 0 || i == 3 ? 1 : 0", "", {0, 1, 0, 1}},
    {"!(i >= 1) ? 1 : 0", "", {1, 0, 0, 0}},
    {"x[i] <= 1 ? 1 : 0", "", {1, 0, 1, 1}},
    {"min(x[i], 1) + max(i, 2)", "", {3, 3, -1, 3.5}},
    {"abs(x[i]) + abs(i - 2)", "", {3, 3, 3, 1.5}},
    {"floor(x[i] / 2)", "", {0, 1, -2, 0}},
    {"exp2(i)", "", {1, 2, 4, 8}},
    {"log2(exp2(x[i]))", "", {1, 2, -3, 0.5}},
    {"sqrt(4.0) + rsqrt(4.0) + exp(0) + log(1) + tanh(0) + sin(0) + cos(0)", "", ALL(4.5)},
    {"LOG2E * LN2", "", ALL(1)},
    {"f32(i) / 2", "", {0, 0.5, 1, 1.5}},
    {"i32(x[i] * 1.5)", "", {1, 3, -4, 0}},
    {"size + len_n * 10 + len_e + seq + three", "", ALL(47)},
    {"p + k + C", "", ALL(7.75)},
    {"t[i % 3]", "", {7, -2, 5, 7}},
    {"x[3 - i]", "", {0.5, -3, 2, 1}},
    {"twice(twice(i))", "", {0, 4, 8, 12}},
    {"bend(x[i], i)", "", {1, 2, -3, 0.5}},
    {"bend(x[i], i)", "bend (i, v) => v * 10 + i;", {10, 21, -28, 8}},
    {"bend(x[i], i)", "bend (i) => i;", {0, 1, 2, 3}},
    {"bend(x[i], i)",
     "param own : f32 = 4; const D = 3; fn half(v) => v / 2; bend (v) => half(v) * own + D;",
     {5, 7, -3, 4}},
    {"pick(i, 2) ? 1 : 0", "", {1, 1, 0, 0}},
    {"pick(i, 2) ? 1 : 0", "pick (j, i) => i >= j;", {0, 0, 1, 1}},
    {"sum(j in n : x[j])", "", ALL(0.5)},
    {"sum(j in n : j)", "", ALL(6)},
    {"sum(j in n : 2)", "", ALL(8)},
    {"sum(j in three : t[j])", "", ALL(10)},
    {"max(j in n : x[j]) - min(j in n : x[j])", "", ALL(5)},
    {"sum(j in n : j <= i ? x[j] : 0)", "", {1, 3, 0, 0.5}},
    {"sum(j in n : sum(h in 3 : x[j] * h))", "", ALL(1.5)},
    {"sum(j in n : max(h in n : x[h] * x[j]))", "", ALL(2 + 4 + 9 + 1)},
    {"sum(j in n : x[j] * x[i])", "", {0.5, 1, -1.5, 0.25}},
    {"sum(j in n : x[(i + j) % 4] * (j + 1))", "", {-2, 1.5, 9, -3.5}},
    {"sum(j in e : 1) + 1", "", ALL(1)},
    {"max(j in e : 1)", "", ALL(-INFINITY)},
    {"min(j in e : 1)", "", ALL(INFINITY)},
    {"log(0 * x[i])", "", ALL(-INFINITY)},
    {"-inf + x[i]", "", ALL(-INFINITY)},
    {"inf - inf", "", ALL(NAN)},
    {"1 / (x[i] - 1)", "", {INFINITY, 1, -0.25, -2}},
    {"w[i]", "", {NAN, INFINITY, -INFINITY, 0}},
    {"w[i] == w[i] ? 1 : 0", "", {0, 1, 1, 1}},
    {"max(w[i], 3)", "", {3, INFINITY, 3, 3}},
    {"max(j in n : w[j])", "", ALL(INFINITY)},
    {"sum(j in n : j < 2 ? 0 : w[j])", "", ALL(-INFINITY)},
    {"sum(j in n : w[j])", "", ALL(NAN)},
    {"x[i + 2]", "", {-3, 0.5, 0.5, 0.5}}, // outside: the nearest
    {"x[i - 2]", "", {1, 1, 1, 2}},
    {"i > 0 ? x[i - 1] : 5", "", {5, 1, 2, -3}},
};

static bool same(double a, double b, double tolerance) {
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance;
}

static void check_word(const Word *word, const char *statement, ReferenceMode mode) {
    Bench bench;
    char reference[512];
    snprintf(reference, sizeof reference, statement, word->value);
    open_words(&bench, reference, word->kernel);
    ReferenceResults results = bench_run(&bench, mode);
    const double *y = bench_values(&results, "y");
    for (int i = 0; i < 4; i++)
        if (!same(y[i], word->right[i], mode == REFERENCE_EXACT ? 1e-14 : 4e-7))
            fail_msg("'%s' with '%s' in '%s': y[%d] is %.17g, not %.17g", word->value, word->kernel,
                     statement, i, y[i], word->right[i]);
    reference_results_free(&results);
    bench_close(&bench);
}

static void every_word_means_what_it_says_as_scalar_as_vector_and_by_name(void **state) {
    (void)state;
    static const char *const STATEMENTS[] = {
        "for i in n { y[i] = %s; }",
        "y[i in n] = %s;",
        "for i in n { let v = %s; y[i] = v; }",
        "let v[i in n] = %s; y[i in n] = v[i];",
        "let v[i in n] = %s; for i in n { y[i] = v[i]; }",
        "let v[i in n] = %s; y[i in n] = sum(j in n : i == j ? v[j] : 0);", // special values: only where they
                                                                            // are alone
    };
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        for (size_t k = 0; k < sizeof STATEMENTS / sizeof STATEMENTS[0]; k++)
            for (int mode = REFERENCE_EXACT; mode <= REFERENCE_ROUNDED; mode++)
                check_word(&WORDS[i], STATEMENTS[k], (ReferenceMode)mode);
}

// ---------------------------------------------------------------- types

static void inputs_are_read_and_outputs_rounded_as_their_types(void **state) {
    (void)state;
    static const uint16_t BF16[] = {0x3f80, 0xc000, 0x7f80, 0x0001}, F16[] = {0x3c00, 0xfc00, 0x7bff, 0x0001};
    static const float F32[] = {1.5f, -0.0f, 3e38f, 1e-45f};
    static const int32_t I32[] = {-2147483647 - 1, 7, -1, 2147483647};
    static const struct {
        const char *type;
        const void *data;
        double right[4];
    } CASES[] = {
        {"bf16", BF16, {1, -2, INFINITY, 0x1p-133}},
        {"f16", F16, {1, -INFINITY, 65504, 0x1p-24}},
        {"f32", F32, {1.5, -0.0, (double)3e38f, 0x1p-149}},
        {"i32", I32, {-2147483648.0, 7, -1, 2147483647}},
    };
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++)
        for (int mode = REFERENCE_EXACT; mode <= REFERENCE_ROUNDED; mode++) {
            Bench bench;
            char text[256];
            snprintf(text, sizeof text,
                     "family f { axis n; tensor x : in %s[n]; tensor y : out %s[n]; "
                     "reference { y[i in n] = x[i]; } }",
                     CASES[c].type, CASES[c].type);
            bench_open(&bench, text);
            bench_axis(&bench, "n", LEN_N);
            bench_tensor1(&bench, "x", CASES[c].data, 4)->is_double = false;
            bench_tensor1(&bench, "y", NULL, 4);
            ReferenceResults results = bench_run(&bench, (ReferenceMode)mode);
            for (int i = 0; i < 4; i++)
                assert_true(bench_values(&results, "y")[i] == CASES[c].right[i]);
            reference_results_free(&results);
            bench_close(&bench);
        }
}

static void rounding_happens_only_in_rounded_mode_and_ties_go_to_even(void **state) {
    (void)state;
    static const double IN[] = {1 + 0x1p-8, 1 + 3 * 0x1p-8, 1 + 0x1p-11, 70000};
    static const struct {
        const char *type;
        double right[4];
    } CASES[] = {
        {"bf16", {1, 1 + 0x1p-6, 1, 70144}},
        {"f16", {1 + 0x1p-8, 1 + 3 * 0x1p-8, 1, INFINITY}},
        {"f32", {1 + 0x1p-8, 1 + 3 * 0x1p-8, 1 + 0x1p-11, 70000}},
    };
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++)
        for (int mode = REFERENCE_EXACT; mode <= REFERENCE_ROUNDED; mode++) {
            Bench bench;
            char text[256];
            snprintf(text, sizeof text,
                     "family f { axis n; tensor x : in f32[n]; tensor y : out f32[n]; "
                     "reference { y[i in n] = rounded(x[i], %s); } }",
                     CASES[c].type);
            bench_open(&bench, text);
            bench_axis(&bench, "n", LEN_N);
            bench_tensor1(&bench, "x", IN, 4);
            bench_tensor1(&bench, "y", NULL, 4);
            ReferenceResults results = bench_run(&bench, (ReferenceMode)mode);
            for (int i = 0; i < 4; i++)
                assert_true(bench_values(&results, "y")[i] ==
                            (mode == REFERENCE_EXACT ? IN[i] : CASES[c].right[i]));
            reference_results_free(&results);
            bench_close(&bench);
        }
}

// Said of a result, and no part of its value; what isn't a number says nothing.
static void what_a_kernel_may_be_off_by_stands_beside_a_rounded_result(void **state) {
    (void)state;
    static const char *const STATEMENTS[] = {"y[i in n] = within(x[i], i == 3 ? w[i - 2] : x[i] * 0.5);",
                                             "for i in n { y[i] = within(x[i], i == 3 ? w[0] : x[i] / 2); }"};
    static const double SLACK[] = {0.5, 1, 1.5, 0};
    for (int i = 0; i < 2; i++)
        for (int mode = REFERENCE_EXACT; mode <= REFERENCE_ROUNDED; mode++) {
            Bench bench;
            open_words(&bench, STATEMENTS[i], "");
            ReferenceResults results = bench_run(&bench, (ReferenceMode)mode);
            assert_memory_equal(bench_values(&results, "y"), X, sizeof X);
            for (int k = 0; k < 4; k++)
                assert_true(results.outputs[0].slack[k] == (mode == REFERENCE_ROUNDED ? SLACK[k] : 0));
            reference_results_free(&results);
            bench_close(&bench);
        }
}

static void given_constants_params_and_strides_override_what_the_file_says(void **state) {
    (void)state;
    static const double DATA[] = {1, 9, 2, 9, 3, 9, 4, 9};
    Bench bench;
    open_words(&bench, "for i in n { y[i] = x[i] + size + D + p; }", "const D = 100; bend (v) => v * D;");
    bench.constants[0] = (ReferenceConstant){.name = "size", .value = 2};
    bench.problem.constant_count = 1;
    bench_param(&bench, "p", 0.1);
    bench.tensors[0].data = DATA;
    bench.tensors[0].stride[0] = 2;
    ReferenceResults results;
    assert_false(reference_evaluate(bench.arena, &bench.diag, &bench.problem, REFERENCE_EXACT,
                                    &results)); // D: the kernel's
    bench_close(&bench);
    open_words(&bench, "for i in n { y[i] = bend(x[i], i) + size + p; }",
               "const D = 100; bend (v) => v * D;");
    bench.constants[0] = (ReferenceConstant){.name = "size", .value = 2};
    bench.constants[1] = (ReferenceConstant){.name = "D", .value = 10};
    bench.problem.constant_count = 2;
    bench_param(&bench, "p", 0.1);
    bench.tensors[0].data = DATA;
    bench.tensors[0].stride[0] = 2;
    results = bench_run(&bench, REFERENCE_EXACT);
    for (int i = 0; i < 4; i++)
        assert_true(bench_values(&results, "y")[i] == (i + 1) * 10 + 2 + (double)0.1f);
    reference_results_free(&results);
    bench_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_means_what_it_says_as_scalar_as_vector_and_by_name),
        cmocka_unit_test(inputs_are_read_and_outputs_rounded_as_their_types),
        cmocka_unit_test(rounding_happens_only_in_rounded_mode_and_ties_go_to_even),
        cmocka_unit_test(what_a_kernel_may_be_off_by_stands_beside_a_rounded_result),
        cmocka_unit_test(given_constants_params_and_strides_override_what_the_file_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
