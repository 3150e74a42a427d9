// The rule by which a kernel passes, and the number formats that it rests on.
#include "compiler/reference/number.h"
#include "tests/reference/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 4 };

typedef struct {
    const char *what;
    Elem elem;
    double exact[N], rounded[N], kernel[N];
    bool passes;
} Verdict;

static const Verdict VERDICTS[] = {
    {"all the same", ELEM_F32, {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, true},
    {"twice the rounded error", ELEM_F32, {1, 2, 3, 4}, {1, 2, 3, 4.01}, {1, 2, 3, 4.02}, true},
    {"a little more than twice", ELEM_F32, {1, 2, 3, 4}, {1, 2, 3, 4.01}, {1, 2, 3, 4.0201}, false},
    {"twice at most, but everywhere",
     ELEM_F32,
     {1, 2, 3, 4},
     {1, 2, 3, 4.01},
     {1.02, 2.02, 3.02, 4.02},
     false},
    {"rounded is exact: one ulp at the largest",
     ELEM_BF16,
     {0, 0, 0, 1},
     {0, 0, 0, 1},
     {0, 0, 0, 1 + 0x1p-7},
     true},
    {"rounded is exact: more than that", ELEM_BF16, {0, 0, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 1 + 0x1p-6}, false},
    {"zeros must be zero", ELEM_BF16, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 1e-30}, false},
    {"zeros that are", ELEM_BF16, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, -0.0, 0, 0}, true},
    {"NaN", ELEM_F32, {1, 2, 3, 4}, {1, 2, 3, 5}, {1, 2, 3, NAN}, false},
    {"NaN where all are", ELEM_F32, {1, 2, 3, NAN}, {1, 2, 3, NAN}, {1, 2, 3, NAN}, true},
    {"a number where all are NaN", ELEM_F32, {1, 2, 3, NAN}, {1, 2, 3, NAN}, {1, 2, 3, 4}, false},
    {"NaN beside one that is right", ELEM_F32, {1, 2, NAN, 4}, {1, 2, NAN, 4}, {1, NAN, NAN, 4}, false},
    {"equal infinities",
     ELEM_F32,
     {1, -INFINITY, 3, INFINITY},
     {1, -INFINITY, 3, INFINITY},
     {1, -INFINITY, 3, INFINITY},
     true},
    {"the other infinity", ELEM_F32, {1, 2, 3, INFINITY}, {1, 2, 3, INFINITY}, {1, 2, 3, -INFINITY}, false},
    {"infinite for finite", ELEM_F32, {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, INFINITY}, false},
    {"finite for infinite", ELEM_F32, {1, 2, 3, INFINITY}, {1, 2, 3, INFINITY}, {1, 2, 3, 3e38}, false},
    {"infinite where the type ends",
     ELEM_F16,
     {1, 2, 3, 65530},
     {1, 2, 3, INFINITY},
     {1, 2, 3, INFINITY},
     true},
    {"infinite before the type ends",
     ELEM_F16,
     {1, 2, 3, 65500},
     {1, 2, 3, 65504},
     {1, 2, 3, INFINITY},
     false},
    {"integers off by one", ELEM_I32, {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 5}, false},
};

static ReferenceComparison compare(const Verdict *verdict, bool written_last) {
    bool written[N] = {true, true, true, written_last};
    double exact[N], rounded[N];
    memcpy(exact, verdict->exact, sizeof exact);
    memcpy(rounded, verdict->rounded, sizeof rounded);
    const ReferenceOutput a = {"y", verdict->elem, N, exact, written, NULL},
                          b = {"y", verdict->elem, N, rounded, written, NULL};
    // As a 2 x 2 tensor stored by columns.
    const double stored[N] = {verdict->kernel[0], verdict->kernel[2], verdict->kernel[1], verdict->kernel[3]};
    const ReferenceTensor kernel = {
        .name = "y", .data = stored, .is_double = true, .rank = 2, .extent = {2, 2}, .stride = {1, 2}};
    return reference_compare(&kernel, &a, &b);
}

static void a_kernel_passes_within_twice_the_rounded_error_and_no_further(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof VERDICTS / sizeof VERDICTS[0]; i++)
        if (compare(&VERDICTS[i], true).passes != VERDICTS[i].passes)
            fail_msg("%s", VERDICTS[i].what);
}

static void only_written_elements_count_and_the_worst_is_named(void **state) {
    (void)state;
    static const Verdict CASE = {"", ELEM_F32, {1, 2, 3, 4}, {1, 2, 3.5, 4}, {1, 2.25, 3, NAN}, false};
    ReferenceComparison all = compare(&CASE, true), some = compare(&CASE, false);
    assert_int_equal(all.compared, 4);
    assert_int_equal(all.worst, 3);
    assert_true(isinf(all.kernel_maximum) && isinf(all.kernel_relative) && isnan(all.worst_kernel));
    assert_int_equal(some.compared, 3);
    assert_int_equal(some.worst, 1);
    assert_true(some.passes);
    assert_true(some.kernel_maximum == 0.25 && some.rounded_maximum == 0.5 && some.maximum_bound == 1);
    assert_true(fabs(some.kernel_relative - 0.25 / sqrt(14)) < 1e-15);
    assert_true(fabs(some.relative_bound - 1 / sqrt(14)) < 1e-15);
    assert_true(some.worst_kernel == 2.25 && some.worst_exact == 2);
}

static void a_kernel_may_be_off_by_twice_what_the_family_says_beside_the_roundings(void **state) {
    (void)state;
    static const struct {
        double slack, kernel;
        bool passes;
    } CASES[] = {
        {0.1, 1.25, true}, {0.1, 1.35, false}, {0.25, 1.55, true}, {0, 1.12, false}, {0, 1.08, true}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        bool written = true;
        double exact = 1, rounded = 1.05, slack = CASES[i].slack;
        const ReferenceOutput a = {.name = "y",
                                   .elem = ELEM_F32,
                                   .count = 1,
                                   .values = &exact,
                                   .written = &written},
                              b = {"y", ELEM_F32, 1, &rounded, &written, &slack};
        const ReferenceTensor kernel = {.name = "y",
                                        .data = &CASES[i].kernel,
                                        .is_double = true,
                                        .rank = 1,
                                        .extent = {1},
                                        .stride = {1}};
        assert_int_equal(reference_compare(&kernel, &a, &b).passes, CASES[i].passes);
    }
}

// A correctly rounded result passes, however well the rounded computation did: the floor is a norm over all
// elements.
static void a_result_that_is_rounded_well_passes_beside_an_exact_one(void **state) {
    (void)state;
    enum { COUNT = 4096 };
    static bool written[COUNT];
    static double exact[COUNT], kernel[COUNT];
    for (int i = 0; i < COUNT; i++) {
        written[i] = true;
        exact[i] = 1 + (i + 0.5) / COUNT;
        kernel[i] = number_to_elem(ELEM_BF16, exact[i]);
    }
    const ReferenceOutput output = {
        .name = "y", .elem = ELEM_BF16, .count = COUNT, .values = exact, .written = written};
    const ReferenceTensor came = {
        .name = "y", .data = kernel, .is_double = true, .rank = 1, .extent = {COUNT}, .stride = {1}};
    assert_true(reference_compare(&came, &output, &output).passes);
    for (int i = 0; i < COUNT; i++)
        kernel[i] += exact[i] < kernel[i] ? 0x1p-8 : -0x1p-8; // another half ulp for each
    assert_false(reference_compare(&came, &output, &output).passes);
}

// ---------------------------------------------------------------- formats

// Rounding by definition: the nearest of the format's values, the even one of two.
static double nearest(Elem elem, double value) {
    double ulp = 2 * number_half_ulp(elem, value), below = floor(value / ulp) * ulp, above = below + ulp;
    if (value - below != above - value)
        return value - below < above - value ? below : above;
    return fmod(below / ulp, 2) == 0 ? below : above;
}

static void sixteen_bit_rounding_is_to_nearest_even_for_all_exponents_and_ties(void **state) {
    (void)state;
    static const Elem TYPES[] = {ELEM_BF16, ELEM_F16};
    for (int t = 0; t < 2; t++)
        for (uint32_t high = 0; high < 0x7f80; high += t ? 1 : 3)
            for (uint32_t low = 0; low < 0x10000; low += 0x0fff) {
                float value = number_from_bits(high << 16 | low);
                if (value == 0 || (TYPES[t] == ELEM_F16 && value >= 65504) || value > 3e38f)
                    continue;
                float right = (float)nearest(TYPES[t], value);
                assert_true(number_round(TYPES[t], value) == right);
                assert_true(number_round(TYPES[t], -value) == -right);
                assert_true(number_to_elem(TYPES[t], value) == right);
            }
}

static void special_values_keep_their_kind(void **state) {
    (void)state;
    static const Elem TYPES[] = {ELEM_F32, ELEM_BF16, ELEM_F16};
    for (int t = 0; t < 3; t++) {
        assert_true(isnan(number_round(TYPES[t], NAN)));
        assert_true(isnan(number_round(TYPES[t], number_from_bits(0x7f800001))));
        assert_true(number_round(TYPES[t], INFINITY) == INFINITY &&
                    number_round(TYPES[t], -INFINITY) == -INFINITY);
        assert_true(number_round(TYPES[t], -0.0f) == 0 && signbit(number_round(TYPES[t], -0.0f)));
        assert_true(number_half_ulp(TYPES[t], 0) == 0 && number_half_ulp(TYPES[t], INFINITY) == 0);
    }
    assert_true(number_round_f16(65519.99f) == 65504 && number_round_f16(65520) == INFINITY);
    assert_true(number_round_f16(-1e30f) == -INFINITY && number_round_f16(0x1p-25f) == 0);
    assert_true(number_round_f16(0x1.8p-25f) == 0x1p-24f);
    assert_true(number_round_bf16(3.4e38f) == INFINITY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_passes_within_twice_the_rounded_error_and_no_further),
        cmocka_unit_test(a_kernel_may_be_off_by_twice_what_the_family_says_beside_the_roundings),
        cmocka_unit_test(a_result_that_is_rounded_well_passes_beside_an_exact_one),
        cmocka_unit_test(only_written_elements_count_and_the_worst_is_named),
        cmocka_unit_test(sixteen_bit_rounding_is_to_nearest_even_for_all_exponents_and_ties),
        cmocka_unit_test(special_values_keep_their_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
