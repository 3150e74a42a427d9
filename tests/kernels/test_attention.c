// Attention kernels over the matrix of types, head_dims, layouts and edge lengths, on the simulator, against
// float64.
#include "tests/kernels/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int32_t EDGES[] = {0, 1, 127, 128, 129, 300}, OTHERS[] = {70, 0, 128, 257, 1, 129},
                     EVEN[] = {130, 130}, ALL_EMPTY[] = {0, 0};

typedef struct {
    Layout layout;
    const int32_t *lens_q, *lens_k;
    int sequences, heads, kv_heads;
} Shape;

static const Shape SHAPES[] = {
    {LAYOUT_SELF, EDGES, NULL, 6, 2, 2},
    {LAYOUT_SELF, EDGES, NULL, 6, 4, 2},
    {LAYOUT_CROSS, EDGES, OTHERS, 6, 2, 1},
    {LAYOUT_CROSS, OTHERS, EDGES, 6, 2, 1},
    {LAYOUT_BROADCAST, EVEN, (const int32_t[]){0, 300}, 2, 2, 2},
    {LAYOUT_DENSE, EVEN, NULL, 2, 2, 2},
    {LAYOUT_PADDED, EDGES, OTHERS, 6, 2, 2},
    {LAYOUT_SELF, ALL_EMPTY, NULL, 2, 2, 2},
    {LAYOUT_CROSS, EVEN, ALL_EMPTY, 2, 2, 2},
};

static void run_matrix(const char *dtype, const char *head_dim_define, int head_dim) {
    enum { SEEDS = 2 };
    for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++)
        for (int seed = 0; seed < SEEDS; seed++) {
            const Shape *shape = &SHAPES[i];
            Case test = {.file = "examples/dense.jfa",
                         .defines = {dtype, head_dim_define},
                         .layout = shape->layout,
                         .lens_q = shape->lens_q,
                         .lens_k = shape->lens_k,
                         .sequences = shape->sequences,
                         .heads = shape->heads,
                         .kv_heads = shape->kv_heads,
                         .head_dim = head_dim,
                         .is_f16 = dtype[6] == 'f',
                         .seed = seed};
            Outcome outcome;
            bench_run_case(&test, &outcome);
            bench_expect_right(&test, &outcome);
        }
}

static void bf16_head_dim_128_is_right_over_all_layouts_and_edge_lengths(void **state) {
    (void)state, run_matrix("dtype=bf16", "head_dim=128", 128);
}
static void bf16_head_dim_64_is_right_over_all_layouts_and_edge_lengths(void **state) {
    (void)state, run_matrix("dtype=bf16", "head_dim=64", 64);
}
static void f16_head_dim_128_is_right_over_all_layouts_and_edge_lengths(void **state) {
    (void)state, run_matrix("dtype=f16", "head_dim=128", 128);
}
static void f16_head_dim_64_is_right_over_all_layouts_and_edge_lengths(void **state) {
    (void)state, run_matrix("dtype=f16", "head_dim=64", 64);
}

static void changes_of_the_schedule_change_the_code_and_stay_right(void **state) {
    (void)state;
    enum { MOST = 16, DEFINES = 6 };
    static const char *const ON_SM90[MOST][DEFINES] = {
        {"N=64"},
        {"STAGES=3", "N=64"},
        {"N=96"},
        {"STAGES=1"},
        {"GROUPS=1"},
        {"GROUPS=3", "N=80", "STAGES=1"},
        {"ATTEND_REGS=224", "OTHER_REGS=48"},
        {"CTAS=2", "GROUPS=1", "N=64"},
        {"CLUSTER=2"},
        {"CLUSTER=4", "N=64"},
    };
    static const char *const ON_SM100[MOST][DEFINES] = {
        {"N=64"},
        {"STAGES=4"},
        {"STAGES=2"},
        {"N=64", "STAGES=8"},
        {"PAIR=1", "CORRECT_REGS=184"},
        {"SOFTMAX_REGS=176", "CORRECT_REGS=96"},
        {"CLUSTER=2"},
        {"CLUSTER=4", "N=64"},
    };
    const char *const(*changes)[DEFINES] = bench_on_sm90() ? ON_SM90 : ON_SM100;
    for (int i = 0; changes[i][0]; i++) {
        Case test = {.file = "examples/dense.jfa",
                     .layout = LAYOUT_SELF,
                     .lens_q = EDGES,
                     .sequences = 6,
                     .heads = 2,
                     .kv_heads = 1,
                     .head_dim = 128,
                     .seed = 5};
        for (int k = 0; changes[i][k]; k++)
            test.defines[k] = changes[i][k];
        Outcome outcome;
        bench_run_case(&test, &outcome);
        bench_expect_right(&test, &outcome);
    }
}

// Rows 2^24 elements apart: offsets pass 2^31 and 2^32 elements. The simulator keeps only what is touched.
static void offsets_beyond_two_to_the_32_elements_are_right(void **state) {
    (void)state;
    Case test = {.file = "examples/dense.jfa",
                 .layout = LAYOUT_SELF,
                 .lens_q = EDGES,
                 .sequences = 6,
                 .heads = 2,
                 .kv_heads = 1,
                 .head_dim = 128,
                 .seed = 9,
                 .row_stride = 1 << 24};
    Outcome outcome;
    bench_run_case(&test, &outcome);
    bench_expect_right(&test, &outcome);
}

// The template's text with one change; false: the text to change isn't there.
static bool replace_in(char *text, size_t capacity, const char *find, const char *replacement) {
    char *at = strstr(text, find);
    size_t length = strlen(text), found = strlen(find), put = strlen(replacement);
    if (!at || length - found + put >= capacity)
        return false;
    memmove(at + put, at + found, length - (size_t)(at - text) - found + 1);
    memcpy(at, replacement, put);
    return true;
}

// The text of the target's schedule, under the name `moved`.
static char *template_text(void) {
    enum { MOST = 32768 };
    static char text[MOST];
    FILE *in = fopen(bench_on_sm90() ? REPOSITORY "/templates/attention_sm90.jfa"
                                     : REPOSITORY "/templates/attention_sm100.jfa",
                     "r");
    assert_non_null(in);
    text[fread(text, 1, MOST - 1, in)] = '\0';
    fclose(in);
    assert_true(replace_in(text, MOST, "forward of attention", "moved of attention"));
    return text;
}
#define REPLACE(text, find, replacement) assert_true(replace_in(text, 32768, find, replacement))

static void expect_right_with(const char *schedule, int extra_launches) {
    char folder[] = "/tmp/jfa-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/moved.jfa", folder);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fprintf(out, "use attention;\nkernel moved : attention { head_dim 128; dtype bf16; schedule moved; }\n%s",
            schedule);
    fclose(out);
    Case test = {.file = path,
                 .layout = LAYOUT_SELF,
                 .lens_q = EDGES,
                 .sequences = 6,
                 .heads = 2,
                 .kv_heads = 1,
                 .head_dim = 128,
                 .seed = 4,
                 .extra_launches = extra_launches};
    Outcome outcome;
    bench_run_case(&test, &outcome);
    remove(path);
    rmdir(folder);
    bench_expect_right(&test, &outcome);
}

// One role moves all tiles, in and out, instead of two.
static void roles_split_in_another_way_are_right(void **state) {
    (void)state;
    char *text = template_text(), *store = strstr(text, "  role store :");
    assert_non_null(store);
    strcpy(store, "}\n"); // the last role goes; its work moves to the end of `load`
    if (bench_on_sm90())
        REPLACE(text, "attend -> store", "attend -> load");
    else
        REPLACE(text, "correct -> store", "correct -> load");
    REPLACE(text, "V[b.j, kv_head]; }\n",
            "V[b.j, kv_head]; }\n"
            "      for g in 2 { take y = result[g]; store O[t.i + g * M, t.head] = y; free y; }\n");
    expect_right_with(text, 0);
}

// Each launch starts from the counters that the one before left.
static void work_that_is_asked_for_is_done_launch_after_launch(void **state) {
    (void)state;
    char *text = template_text();
    REPLACE(text, "persistent;", "persistent via queue;");
    expect_right_with(text, 2);
}

// The masks of examples/, with their defaults, written down once more.
static bool is_causal(int64_t q, int64_t k, int64_t len_q, int64_t len_k) {
    (void)len_q, (void)len_k;
    return k <= q;
}
static bool is_causal_from_the_end(int64_t q, int64_t k, int64_t len_q, int64_t len_k) {
    return len_k - k >= len_q - q;
}
static bool is_in_window(int64_t q, int64_t k, int64_t len_q, int64_t len_k) {
    (void)len_q, (void)len_k;
    return k >= q - 127 && k < q + 1;
}
static bool is_in_prefix(int64_t q, int64_t k, int64_t len_q, int64_t len_k) {
    (void)len_q, (void)len_k;
    return k < 64 || q >= k;
}
static bool is_in_block(int64_t q, int64_t k, int64_t len_q, int64_t len_k) {
    (void)len_q, (void)len_k;
    return (q ^ k) < 64;
}
static bool is_in_stride(int64_t q, int64_t k, int64_t len_q, int64_t len_k) {
    (void)len_q, (void)len_k;
    return q >= k && q < k + 512 && (q & 3) == (k & 3);
}
static bool is_global_or_local(int64_t q, int64_t k, int64_t len_q, int64_t len_k) {
    (void)len_q, (void)len_k;
    return q < 4 || k < 4 || (q <= k + 64 && k <= q + 64);
}

static void masks_of_kernels_are_right(void **state) {
    (void)state;
    static const struct {
        const char *file;
        bool (*mask)(int64_t, int64_t, int64_t, int64_t);
    } MASKS[] = {{"examples/causal.jfa", is_causal},
                 {"examples/causal_bottom_right.jfa", is_causal_from_the_end},
                 {"examples/sliding_window.jfa", is_in_window},
                 {"examples/prefix_lm.jfa", is_in_prefix},
                 {"examples/block_diagonal.jfa", is_in_block},
                 {"examples/dilated.jfa", is_in_stride},
                 {"examples/global_local.jfa", is_global_or_local}};
    for (size_t i = 0; i < sizeof MASKS / sizeof MASKS[0]; i++) {
        Case test = {.file = MASKS[i].file,
                     .layout = LAYOUT_CROSS,
                     .lens_q = (const int32_t[]){1, 300, 770, 90, 200},
                     .lens_k = (const int32_t[]){1, 300, 770, 300, 90},
                     .sequences = 5,
                     .heads = 2,
                     .kv_heads = 1,
                     .head_dim = 128,
                     .seed = 3,
                     .mask = MASKS[i].mask};
        Outcome outcome;
        bench_run_case(&test, &outcome);
        bench_expect_right(&test, &outcome);
    }
}

int main(int argc, char **argv) {
    bench_set_target(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_head_dim_128_is_right_over_all_layouts_and_edge_lengths),
        cmocka_unit_test(bf16_head_dim_64_is_right_over_all_layouts_and_edge_lengths),
        cmocka_unit_test(f16_head_dim_128_is_right_over_all_layouts_and_edge_lengths),
        cmocka_unit_test(f16_head_dim_64_is_right_over_all_layouts_and_edge_lengths),
        cmocka_unit_test(changes_of_the_schedule_change_the_code_and_stay_right),
        cmocka_unit_test(offsets_beyond_two_to_the_32_elements_are_right),
        cmocka_unit_test(roles_split_in_another_way_are_right),
        cmocka_unit_test(work_that_is_asked_for_is_done_launch_after_launch),
        cmocka_unit_test(masks_of_kernels_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
