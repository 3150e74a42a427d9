// Edits of a good program that make it wrong: what is said, that it is said where it is wrong, and that what
// follows from it isn't told as well.
#include "tests/plan/sources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KERNEL "examples/dense.jfa"
#define FAMILY "templates/attention.jfa"
#define SCHEDULE "templates/attention_sm100.jfa"
#define MATH "  dtype    bf16;\n"

typedef struct {
    const char *name, *path, *from, *to;
    const char *says;
    int errors; // that are printed with their places
} Case;

static const Case CASES[] = {
    {"an input is not optional", KERNEL, MATH, MATH "tensor w : in f32[heads] optional;",
     "tensor 'w' is read, so it can't be left out", 1},
    {"names are not longer than a kernel can say", KERNEL, MATH,
     MATH "param a23456789012345678901234567890123456789012345678901234567890123 : i32;\n"
          "param a234567890123456789012345678901234567890123456789012345678901234 : i32;",
     "dense.jfa:9:7: error: a name has at most 63 characters", 1},
    {"a mask of the wrong type is told where it is written", KERNEL, MATH, MATH "mask (q, k) => !q >= k;",
     "examples/dense.jfa:8:16: error: this is a number, but a condition is needed", 1},
    {"so is a score", KERNEL, MATH, MATH "score (s) => s < 1;",
     "examples/dense.jfa:8:14: error: this is a condition, but a number is needed", 1},
    {"a default of a param must be of its type", KERNEL, MATH, MATH "param p : i32 = 0.5;",
     "param 'p' is i32; its default can't be 0.5", 1},
    {"a condition is no default", KERNEL, MATH, MATH "param p : f32 = true;", "its default can't be true", 1},
    {"an infinity is no integer", KERNEL, MATH, MATH "const X = i32(inf);", "inf does not fit in i32", 1},
    {"nor is a large float", KERNEL, MATH, MATH "const X = i32(-1e30);", "-1e+30 does not fit in i32", 1},
    {"an option is set once", KERNEL, MATH, MATH MATH, "'dtype' is said twice", 1},
    {"an integer option takes no float", KERNEL, "head_dim 128;", "head_dim 128.0;",
     "head_dim can't be 128.0", 1},
    {"a family has one reference", FAMILY, "  reference {", "  reference { }\n  reference {",
     "'reference' is defined twice", 1},
    {"a row reduction needs a number of columns", SCHEDULE, "rowmax(z)", "rowmax(cols)",
     "nothing says how many columns a row of this has: it is i32[1, cols]", 1},
    {"a grid is over a dim once", SCHEDULE, "head in heads,", "head in heads, other in heads,",
     "the grid is over dim 'heads' twice", 1},
    {"a grid is over an axis once", SCHEDULE, "blocks(q, CLUSTER * PAIR * M))",
     "blocks(q, CLUSTER * PAIR * M), j in blocks(q, M))", "the grid is over axis 'q' twice", 1},
    {"what a grid is over has names of its own", SCHEDULE, "head in heads,",
     "head in heads, head in kv_heads,", "a tile has a 'head' already", 1},
    {"seq is every tile's", SCHEDULE, "head in heads,", "head in heads, seq in kv_heads,",
     "a tile has a 'seq' already", 1},
    {"so are lengths", SCHEDULE, "head in heads,", "head in heads, len_k in kv_heads,",
     "a tile has a 'len_k' already", 1},
    {"a value worth trying is listed once", SCHEDULE, "tune (64, 96,", "tune (64, 64,", "64 is listed twice",
     1},
    {"the default is tried anyway", SCHEDULE, "tune (64, 96,", "tune (64, 128,", "128 is listed twice", 1},
    {"so are negative ones", SCHEDULE, "tune (64, 96,", "tune (-64, -64,", "-64 is listed twice", 1},
    {"values are of the default's type", SCHEDULE, "tune (64, 96,", "tune (64, 96.0,",
     "this is f32, but 'N' is i32", 1},
    {"a condition is not tried as a number", SCHEDULE, "tune (64, 96,", "tune (64, true,",
     "this is bool, but 'N' is i32", 1},
    {"floats are not tuned", SCHEDULE, "CLUSTER = 1 tune (2);", "CLUSTER = 1 tune (2), X = 0.5 tune (0.25);",
     "'X' is f32; integers are tuned, or true and false", 1},
    {"what is tried is constant", SCHEDULE, "tune (64, 96,", "tune (64, heads,",
     "what 'N' may be must be constants", 1},
    {"a constant isn't known to what it may be", SCHEDULE, "tune (64, 96,", "tune (64, N,",
     "there is no value named 'N' here", 1},
    {"what is tried is computed without a mistake", SCHEDULE, "tune (64, 96,", "tune (64, M / (M - 128),",
     "an integer is divided by the constant 0", 1},
    {"a constant may be few values", SCHEDULE, "tune (64, 96,",
     "tune (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 96,", "'N' may be at most 16 values", 1},
    {"a kernel's constants are not tuned", KERNEL, MATH, MATH "const CAP = 30 tune (40);",
     "'CAP' can't be tuned here", 1},
    {"nor are a family's", FAMILY, "axis q;", "const CAP = 30 tune (40); axis q;",
     "'CAP' can't be tuned here", 1},
    {"first is every block's", SCHEDULE, "walk kv over j in",
     "walk other over first in blocks(k, N);\n  walk kv over j in", "every block has a 'first' already", 1},
    {"a row is not stored to one element", SCHEDULE, "store LSE[t.head, row] = l",
     "store LSE[t.head, t.i] = l", "all rows of f32[128] would be stored to one element", 1},
    {"nor are columns", SCHEDULE, "        m = m1;", "        m = m1;\nstore LSE[t.head, row] = z;",
     "all columns of f32[128, 128] would be stored to one element", 1},
    {"a store needs a number of columns", SCHEDULE, "store LSE[t.head, row] = l",
     "store LSE[t.head, row + cols] = l", "nothing says how many columns are stored here", 1},
    {"a buffer doesn't lie over itself", SCHEDULE, "dtype[M, D] over qs", "dtype[M, D] over out",
     "buffer 'out' can't lie over itself", 1},
    {"a name of another kind is told as what it is", SCHEDULE, ": qs    load ", ": load  load ",
     "'load' is a role; a buffer is needed here", 1},
    {"a wrong buffer is told once, without its pipes and their slots", SCHEDULE, "smem kvs   [STAGES]",
     "smem kvs   [0]", "the depth of a buffer is 0", 1},
    {"constant loops that expand too far are told once", SCHEDULE, "        m = m1;",
     "        m = m1;\nfor a in 256 { for c in 256 { l = l + c; } }",
     "constant loops expand to more than 4096", 1},
    {"an empty fill is told", SCHEDULE, "put scores[g] = a[g] @ k^T;", "fill d = scores[g] { }",
     "nothing is written to 'd' in this 'fill'", 1},
    {"a tile has all columns", SCHEDULE, "K[b.j, kv_head]; }", "K[b.j, kv_head, 64]; }",
     "sm100.jfa:123:57: error: a tile of 'K' has all 128 columns: it begins at 0", 1},
    {"an index is not below 0", SCHEDULE, "K[b.j, kv_head]; }", "K[b.j, -1]; }",
     "error: '-1' is below 0: there is no such tile of 'K'", 1},
    {"nor is a position", SCHEDULE, "K[b.j, kv_head]; }", "K[-128, kv_head]; }", "error: '-128' is below 0",
     1},
    {"a wrong walk is told once", SCHEDULE, "blocks(k, N)", "blocks(k, scale)",
     "the size of a block must be an integer constant", 1},
    {"so is a wrong number of warps", SCHEDULE, "4 warps, SOFTMAX", "99 warps, SOFTMAX",
     "the number of warps is 99; it must be in 1..32", 1},
    {"a condition is no number to add to", KERNEL, MATH, MATH "score (s) => (s > 0) + 1;",
     "dense.jfa:8:14: error: '+' needs numbers, not conditions", 1},
    {"comparisons have no chains", KERNEL, MATH, MATH "mask (q, k) => q < k < 5;",
     "help: comparisons are joined by &&: a < b && b < c", 1},
    {"a wrong tensor is told once", KERNEL, MATH, MATH "tensor t : in f32[0]; score (s) => s + t[0];",
     "the extent of a dim is 0", 1},
    {"so is one of too many dims", KERNEL, MATH,
     MATH "tensor t : in f32[heads, heads, heads, heads, heads, heads]; score (s, head) => s + t[head];",
     "a tensor has at most 5 dims", 1},
    {"a family's tensor is not the kernel's", KERNEL, MATH, MATH "tensor Q : in f32[heads];",
     "dense.jfa:8:8: error: family 'attention' has a 'Q' already", 1},
    {"nor is its param", KERNEL, MATH, MATH "param scale : f32;", "family 'attention' has a 'scale' already",
     1},
    {"nor an option a constant", KERNEL, MATH, MATH "const head_dim = 64;",
     "help: to choose its value: head_dim VALUE;", 1},
    {"nor a hook a function", KERNEL, MATH, MATH "fn score(x) => x;",
     "help: to replace it: score (PARAMETERS) => VALUE;", 1},
    {"a tile of a few rows is told as it is", SCHEDULE, "const M = 128, N = 128", "const M = 128, N = 7",
     "sm_100a has no product of [128, 128] by [128, 7]", 4},
    {"a tile doesn't begin before its sequence", SCHEDULE, "Q[t.i + (cta", "Q[t.i - 5 + (cta",
     "sm100.jfa:122:39: error: a tile of 'Q' may begin before its sequence: 't.i - 5 + (cta * PAIR + g) * M' "
     "may be -5",
     1},
    {"nor where blocks are smaller than the step back", SCHEDULE, "blocks(k, N)", "blocks(k, N / 2)",
     "sm100.jfa:125:23: error: a tile of 'V' may begin before its sequence: 'b.j - N' may be -64", 1},
    {"nor where blocks are visited from the last", SCHEDULE, "blocks(k, N)", "blocks(k, N) last_first",
     "a tile of 'V' may begin before its sequence: 'b.j - N' may be -128", 1},
    {"nor where a run-time value says it", SCHEDULE, "K[b.j, kv_head]; }", "K[b.j + i32(scale), kv_head]; }",
     "nothing says how small 'b.j + i32(scale)' is", 1},
    {"nor where a position may wrap round", SCHEDULE, "K[b.j, kv_head]; }", "K[b.j * 64, kv_head]; }",
     "nothing says how small 'b.j * 64' is", 1},
    {"a tile is stored within its block", SCHEDULE, "O[t.i + (cta", "O[t.i + 1 + (cta",
     "error: positions 129 to 256 of the tile are stored to 'O', but those from 0 to 255 are its own", 1},
    {"so are values", SCHEDULE, "let row = t.i", "let row = 8 + t.i",
     "error: positions 8 to 263 of the tile are stored to 'LSE', but those from 0 to 255 are its own", 1},
    {"a tile is stored to its own rows", SCHEDULE, "O[t.i + (cta * PAIR + g) * M, t.head]", "O[0, t.head]",
     "error: tiles of the grid that differ in 'i' would store the same rows of 'O'", 1},
    {"and to its own index", SCHEDULE, "O[t.i + (cta * PAIR + g) * M, t.head]",
     "O[t.i + (cta * PAIR + g) * M, 0]",
     "error: tiles of the grid that differ in 'head' would store the same rows of 'O'", 1},
};

static int count_of(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

static void check_case(void **state) {
    const Case *test = *state;
    Program *program = program_edited(test->path, test->from, test->to);
    const char *text = program_messages(program);
    if (!strstr(text, test->says) || !program->diag.error_count ||
        count_of(text, ": error: ") != test->errors || program->plan)
        fail_msg("%s: %d errors:\n%s", test->name, program->diag.error_count, text);
    program_free(program);
}

// fn f0(x) => x BODY; fn f1(x) => f0(x) BODY; ...: each in the one before, `depth` of them.
static Program *chain(int depth) {
    char *text = malloc((size_t)depth * 64 + 256), *end = text;
    assert_non_null(text);
    end += sprintf(end, "%sfn f0(x) => x + 1;\n", MATH);
    for (int i = 1; i < depth; i++)
        end += sprintf(end, "fn f%d(x) => 1 - (2 * f%d(x));\n", i, i - 1);
    sprintf(end, "score (s) => f%d(s);\n", depth - 1);
    Program *program = program_edited(KERNEL, MATH, text);
    free(text);
    return program;
}

static void functions_expand_to_a_depth_that_is_bounded(void **state) {
    (void)state;
    Program *program = chain(200);
    assert_string_equal(program_messages(program), "");
    program_free(program);
    program = chain(9000);
    const char *text = program_messages(program);
    if (count_of(text, ": error: ") != 1 || !strstr(text, "nested too deeply, with the functions"))
        fail_msg("%s", text);
    program_free(program);
}

// What a hook gives has a value for each element of the tile that it was called with, used or not: a row of
// it can be reduced.
static void a_hook_gives_a_tile_for_a_tile(void **state) {
    (void)state;
    static const char *const SCORES[] = {"score (q) => q;", "score (q, k) => q - k;", "score (s) => 0.5;"};
    for (size_t i = 0; i < sizeof SCORES / sizeof SCORES[0]; i++) {
        char text[256];
        strcpy(text, MATH);
        strcat(text, SCORES[i]);
        Program *program = program_edited(KERNEL, MATH, text);
        assert_string_equal(program_messages(program), "");
        assert_non_null(program->plan);
        program_free(program);
    }
}

static const Constant *find_constant(const Program *program, const char *name) {
    for (int i = 0; i < program->plan->constant_count; i++)
        if (!strcmp(program->plan->constants[i].name, name))
            return &program->plan->constants[i];
    return NULL;
}

// Values that depend on others are tried once where they coincide; a word of the language can be a name.
static void values_worth_trying_are_known_each_once(void **state) {
    (void)state;
    Program *program = program_edited(
        SCHEDULE, "CLUSTER = 1 tune (2);",
        "CLUSTER = 1, tune = 3 tune (M / 32, 3 + head_dim / 128, N - 123), FLAG = M > 1 tune (false);");
    assert_string_equal(program_messages(program), "");
    const Constant *constant = find_constant(program, "tune"), *flag = find_constant(program, "FLAG");
    assert_int_equal(constant->choice_count, 3);
    assert_true(constant->choices[0] == 3 && constant->choices[1] == 4 && constant->choices[2] == 5);
    assert_true(constant->value == 3 && flag->value == 1 && flag->choice_count == 2 && flag->choices[1] == 0);
    assert_int_equal(find_constant(program, "CLUSTER")->choice_count, 0);
    program_free(program);
}

// Which engine uses a pipe is what some take does with it, not what the first one does.
static void a_slot_may_be_freed_unused(void **state) {
    (void)state;
    Program *program = program_edited(SCHEDULE, "put scores[g] = a[g] @ k^T;",
                                      "fill d = scores[g] { d += a[g] @ k^T fresh if true; }");
    assert_string_equal(program_messages(program), "");
    program_free(program);
    program = program_edited(SCHEDULE, "        take k = kv_in;",
                             "        take n = kv_in; free n; take k = kv_in;");
    assert_string_equal(program_messages(program), "");
    assert_non_null(program->plan);
    program_free(program);
}

static void positions_that_are_inside_are_taken(void **state) {
    (void)state;
    static const char *const POSITIONS[] = {"max(b.j - 7, 0)",    "t.i / 4",           "abs(b.j - t.i)",
                                            "t.len_k % 64",       "min(b.j, t.len_k)", "t.i % 128",
                                            "(t.i + 64) / N * N", "b.first ? 0 : b.j"};
    for (size_t i = 0; i < sizeof POSITIONS / sizeof POSITIONS[0]; i++) {
        char load[64];
        snprintf(load, sizeof load, "K[%s, kv_head]; }", POSITIONS[i]);
        Program *program = program_edited(SCHEDULE, "K[b.j, kv_head]; }", load);
        assert_string_equal(program_messages(program), "");
        program_free(program);
    }
}

// That a block isn't the first is known from the loop, or from a condition; through names too.
static void a_step_back_is_taken_behind_the_first_block(void **state) {
    (void)state;
    static const char *const LOADS[] = {
        "let before = b.j - N; put kv_in = V[before, kv_head];",
        "if b.first { put kv_in = V[b.j, kv_head]; } else { put kv_in = V[b.j - N, kv_head]; }",
        "if !b.first { put kv_in = V[b.j - N, kv_head]; } else { put kv_in = V[b.j, kv_head]; }"};
    for (size_t i = 0; i < sizeof LOADS / sizeof LOADS[0]; i++) {
        Program *program = program_edited(SCHEDULE, "put kv_in = V[b.j - N, kv_head];", LOADS[i]);
        assert_string_equal(program_messages(program), "");
        program_free(program);
    }
}

int main(void) {
    enum { COUNT = sizeof CASES / sizeof CASES[0] };
    struct CMUnitTest tests[COUNT + 6] = {cmocka_unit_test(a_slot_may_be_freed_unused),
                                          cmocka_unit_test(values_worth_trying_are_known_each_once),
                                          cmocka_unit_test(functions_expand_to_a_depth_that_is_bounded),
                                          cmocka_unit_test(a_hook_gives_a_tile_for_a_tile),
                                          cmocka_unit_test(positions_that_are_inside_are_taken),
                                          cmocka_unit_test(a_step_back_is_taken_behind_the_first_block)};
    for (int i = 0; i < COUNT; i++)
        tests[i + 6] = (struct CMUnitTest){
            .name = CASES[i].name, .test_func = check_case, .initial_state = (void *)&CASES[i]};
    return _cmocka_run_group_tests("sema", tests, COUNT + 6, NULL, NULL);
}
