// Broken references, kernels and problems: a message at the right place, never a crash.
#include "tests/reference/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct {
    const char *reference, *kernel;
    const char *place;   // the text that the message points at
    const char *message; // part of it
} Mistake;

static const Mistake MISTAKES[] = {
    {"y[i in n] = z;", "", "z", "no value named 'z'"},
    {"y[i in n] = x[i] + lne_n;", "", "lne_n", "no value named"},
    {"y[i in n] = foo(1);", "", "foo", "no function or hook named 'foo'"},
    {"y[i in n] = zz[i];", "", "zz", "no tensor named 'zz'"},
    {"y[i in n] = x;", "", "x", "is a tensor, not a value"},
    {"y[i in n] = n;", "", "n", "is an axis, not a value"},
    {"y[i in n] = dtype;", "", "dtype", "is a type, not a value"},
    {"y[i in n] = x[i, i];", "", "x[i, i]", "has 1 dims, but 2 are given"},
    {"y[i in n, 0] = 1;", "", "y[i in n, 0]", "has 1 dims, but 2 are given"},
    {"y[i in n] = x[1.5];", "", "1.5", "must be an integer"},
    {"y[1.5] = 0;", "", "1.5", "must be an integer"},
    {"y[i in n] = y[i];", "", "y[i]", "is an output"},
    {"x[i in n] = 1;", "", "x[i in n]", "is an input"},
    {"q = 1;", "", "q", "only elements of a tensor"},
    {"y[i in n] = n[i];", "", "n", "'n' is an axis; a tensor is needed here"},
    {"y[i in n] = x(1);", "", "x", "'x' is a tensor; a function or hook is needed here"},
    {"bend[i in n] = 1;", "", "bend", "'bend' is a hook; an output tensor is needed here"},
    {"zz[i in n] = 1;", "", "zz", "no output tensor named"},
    {"z2[i in n, j in n] = 1;", "", "j in n", "one index of a store"},
    {"y[i in n] = exp(1, 2);", "", "exp(1, 2)", "takes 1 argument, not 2"},
    {"y[i in n] = twice();", "", "twice()", "takes 1 argument, not 0"},
    {"y[i in n] = bend(1);", "", "bend(1)", "takes 2 arguments, not 1"},
    {"y[i in n] = within(x[i]);", "", "within(x[i])", "takes two arguments"},
    {"y[i in n] = within(x[i], 1 < 2);", "", "1 < 2", "condition"},
    {"y[i in n] = 1 + within(x[i], 1);", "", "within(x[i], 1)", "is no value"},
    {"y[i in n] = bend(1, 2);", "bend (u) => u;", "u", "has no parameter 'u'"},
    {"y[i in n] = bend(1, 2);", "bend (v) => v < 1;", "bend(1, 2)", "condition"},
    {"y[i in n] = bend(1, 2);", "bend (v) => w;", "w", "no value named 'w'"},
    {"y[i in n] = loop(1);", "", NULL, "nested too deeply"},
    {"y[i in n] = D;", "", NULL, "nested too deeply"},
    {"y[i in n] = x[i] < 1;", "", "x[i] < 1", "condition"},
    {"y[i in n] = x[i] ? 1 : 0;", "", "x[i] ? 1 : 0", "condition"},
    {"y[i in n] = (x[i] < 1) + 1;", "", NULL, "condition"},
    {"y[i in n] = !x[i];", "", "!x[i]", "condition"},
    {"y[i in n] = max(j in n : j < 1);", "", "j < 1", "condition"},
    {"y[i in n] = 1 / 0;", "", "1 / 0", "divided by the constant 0"},
    {"y[i in n] = i % 0;", "", "i % 0", "divided by the constant 0"},
    {"y[i in n] = 3000000000;", "", "3000000000", "does not fit in i32"},
    {"y[i in n] = avg(j in n : 1);", "", "avg(j in n : 1)", "sum, max or min"},
    {"y[i in n] = sum(j in x[0] : 1);", "", "x[0]", "runs over an axis"},
    {"y[i in n] = sum(j in -1 : 1);", "", "-1", "runs over an axis"},
    {"y[i in n] = sum(j in 1.5 : 1);", "", "1.5", "runs over an axis"},
    {"for i in m { y[i] = 1; }", "", "m", "no value named 'm'"},
    {"let v[i in n] = x[i]; y[i in n] = v;", "", "v", "needs an index"},
    {"let v[i in n] = x[i]; y[i in n] = v[i, i];", "", "v[i, i]", "takes one index"},
    {"let v[i in n] = x[i]; y[i in n] = v[0.5];", "", "0.5", "must be an integer"},
    {"let v = 1; y[i in n] = v[i];", "", "v[i]", "takes no index"},
    {"let v[i in n, j in n] = 1;", "", "j in n", "a vector has one index"},
    {"y[i in n] = rounded(x[i], f8);", "", "f8", "no type named 'f8'"},
    {"y[i in n] = rounded(x[i], i32);", "", "i32", "floats"},
    {"y[i in n] = rounded(x[i]);", "", "rounded(x[i])", "takes 2 arguments"},
    {"y[i in n] = rounded(x[i], 1);", "", "1", "needs a type"},
    {"y[i in n] = x[i] @ x[i];", "", "x[i] @ x[i]", "sum("},
    {"y[i in n] = x[i]^T;", "", "x[i]^T", "can't stand in a reference"},
    {"y[i in n] = x[i].first;", "", "x[i].first", "can't stand in a reference"},
    {"y[i in n] = (1)[0];", "", NULL, "only tensors and vectors"},
    {"y[i in n] = (1)(2);", "", NULL, "can't be called"},
    {"take a = b;", "", "take a = b;", "let, for and"},
    {"var a : f32 = 1;", "", "var a : f32 = 1;", "let, for and"},
    {"y[i in n] += 1;", "", "y[i in n] += 1;", "let, for and"},
    {"y[i in n] = nodefault;", "", "nodefault", "has no value"},
    {"y[i in n] = unsaid;", "", "unsaid", "doesn't say its unsaid"},
    {"y[i in n] = lost;", "", "lost", "dim 'lost' has no value"},
    {"y[i in n] = absent[i];", "", "absent[i]", "was not given"},
    {"y[4] = 1;", "", "y[4]", "outside of 'y'"},
    {"for i in n { y[i - 1] = 1; }", "", "y[i - 1]", "outside of 'y'"},
    {"y[i in 9] = 1;", "", "y[i in 9]", "outside of 'y'"},
};

static const char FAMILY[] =
    "family f { option size : int in (2, 4); option unsaid : int in (1, 2); option dtype : type in (bf16, "
    "f16); axis n; "
    "dim lost; tensor x : in f32[n]; tensor absent : in f32[n] optional; tensor y : out f32[n]; "
    "tensor z2 : out f32[n, n]; param nodefault : f32; hook bend (v, i) : f32 => v; fn twice(v) => v + v; "
    "fn loop(v) => loop(v); const D = E; const E = D;\n";
static const double X[] = {1, 2, -3, 0.5};
static const int64_t LEN_N[] = {4};

static void open_broken(Bench *bench, const char *reference, const char *kernel) {
    char text[4096];
    snprintf(text, sizeof text, "%sreference { %s }\n} kernel g : f { size 4; dtype bf16; %s }", FAMILY,
             reference, kernel);
    bench_open(bench, text);
    bench_axis(bench, "n", LEN_N);
    bench_tensor1(bench, "x", X, 4);
    bench_tensor1(bench, "y", NULL, 4);
    bench_tensor2(bench, "z2", NULL, 4, 4);
}

static const DiagItem *must_fail(Bench *bench) {
    ReferenceResults results;
    for (int mode = REFERENCE_EXACT; mode <= REFERENCE_ROUNDED; mode++) {
        assert_false(
            reference_evaluate(bench->arena, &bench->diag, &bench->problem, (ReferenceMode)mode, &results));
        assert_int_equal(results.count, 0);
        assert_null(results.outputs);
    }
    assert_non_null(bench->diag.items);
    return bench->diag.items;
}

static void every_mistake_has_its_message_at_its_place(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof MISTAKES / sizeof MISTAKES[0]; i++) {
        Bench bench;
        open_broken(&bench, MISTAKES[i].reference, MISTAKES[i].kernel);
        const DiagItem *item = must_fail(&bench);
        const char *place = ast_text(&bench.sources, bench.arena, item->span);
        if (!strstr(item->text, MISTAKES[i].message) ||
            (MISTAKES[i].place && strcmp(MISTAKES[i].place, place)))
            fail_msg("%s %s: '%s' at '%s'", MISTAKES[i].reference, MISTAKES[i].kernel, item->text, place);
        bench_close(&bench);
    }
}

static void several_mistakes_are_told_in_one_run_and_a_near_name_is_suggested(void **state) {
    (void)state;
    Bench bench;
    open_broken(&bench, "y[i in n] = twcie(1); for i in n { y[i] = nod; } y[i in n] = 1 / 0;", "");
    ReferenceResults results;
    assert_false(reference_evaluate(bench.arena, &bench.diag, &bench.problem, REFERENCE_EXACT, &results));
    assert_int_equal(bench.diag.error_count, 3);
    assert_string_equal(bench.diag.items->help, "did you mean 'twice'?");
    bench_close(&bench);
}

static void functions_that_expand_without_bound_are_refused(void **state) {
    (void)state;
    char text[8192] = "family f { axis n; tensor y : out f32[n]; fn f0(x) => x + 1;";
    for (int i = 1; i < 40; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "fn f%d(x) => f%d(x) + f%d(x * 2);", i,
                 i - 1, i - 1);
    strcat(text, "reference { for i in n { y[i] = f39(i); } } }");
    Bench bench;
    bench_open(&bench, text);
    bench_axis(&bench, "n", LEN_N);
    bench_tensor1(&bench, "y", NULL, 4);
    const DiagItem *item = must_fail(&bench);
    assert_string_equal(item->code, "reference-size");
    bench_close(&bench);
}

static void a_problem_that_does_not_fit_its_tensors_is_refused(void **state) {
    (void)state;
    static const int64_t TOO_LONG[] = {5}, NEGATIVE[] = {-1}, BASE[] = {1};
    static const struct {
        const int64_t *lengths, *base;
        int rank;
        int64_t extent;
        const char *message;
    } CASES[] = {
        {TOO_LONG, NULL, 1, 4, "outside of 'x'"}, {NEGATIVE, NULL, 1, 4, "has length -1"},
        {LEN_N, BASE, 1, 4, "outside of 'x'"},    {LEN_N, NULL, 2, 4, "has 1 dims, but 2"},
        {LEN_N, NULL, 1, -1, "can't be -1"},      {LEN_N, NULL, 1, INT64_MAX, "can't be"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Bench bench;
        open_broken(&bench, "y[i in n] = 1;", "");
        bench.axes[0].lengths = CASES[i].lengths;
        bench.tensors[0].base[0] = CASES[i].base;
        bench.tensors[0].rank = CASES[i].rank;
        bench.tensors[0].extent[0] = CASES[i].extent;
        const DiagItem *item = must_fail(&bench);
        if (!strstr(item->text, CASES[i].message))
            fail_msg("case %zu: %s", i, item->text);
        bench_close(&bench);
    }
}

static void a_family_without_a_reference_and_an_output_nobody_wants_are_told_apart(void **state) {
    (void)state;
    Bench bench;
    bench_open(&bench, "family f { axis n; }");
    assert_string_equal(must_fail(&bench)->code, "no-reference");
    bench_close(&bench);
    open_broken(&bench, "y[i in n] = x[i]; z2[0, 0] = 1;", "");
    bench.problem.tensor_count = 2; // z2 is left out
    ReferenceResults results = bench_run(&bench, REFERENCE_EXACT);
    assert_int_equal(results.count, 1);
    assert_true(results.outputs[0].values[2] == -3);
    reference_results_free(&results);
    bench.problem.sequences = 0;
    results = bench_run(&bench, REFERENCE_EXACT);
    for (int i = 0; i < 4; i++)
        assert_false(results.outputs[0].written[i]);
    reference_results_free(&results);
    bench_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake_has_its_message_at_its_place),
        cmocka_unit_test(several_mistakes_are_told_in_one_run_and_a_near_name_is_suggested),
        cmocka_unit_test(functions_that_expand_without_bound_are_refused),
        cmocka_unit_test(a_problem_that_does_not_fit_its_tensors_is_refused),
        cmocka_unit_test(a_family_without_a_reference_and_an_output_nobody_wants_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
