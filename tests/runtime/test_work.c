// test_work.c: the list of work against a second way of making it, and its limits.
#include "tests/runtime/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef enum { BY_OFFSETS, BY_LENGTHS, UNIFORM } Said;

typedef struct {
    const char *what;
    Said said;
    jfa_rows_kind q_rows, k_rows;
    int count;
    int32_t q[12], k[12];
} Case;

static const Case CASES[] = {
    {"no sequences", BY_OFFSETS, 0, 0, 0, {0}, {0}},
    {"one empty sequence", BY_OFFSETS, 0, 0, 1, {0}, {0}},
    {"queries without keys", BY_OFFSETS, 0, 0, 2, {5, 300}, {0, 0}},
    {"keys without queries", BY_OFFSETS, 0, 0, 2, {0, 0}, {5, 300}},
    {"one position", BY_OFFSETS, 0, 0, 1, {1}, {1}},
    {"around a tile", BY_OFFSETS, 0, 0, 5, {0, 1, 127, 128, 129}, {129, 128, 127, 1, 0}},
    {"around a block", BY_OFFSETS, 0, 0, 6, {255, 256, 257, 0, 511, 513}, {9, 8, 9, 10, 0, 9}},
    {"equal weights keep their order", BY_OFFSETS, 0, 0, 5, {300, 1, 600, 2, 3}, {7, 9, 7, 9, 7}},
    {"lengths instead of offsets", BY_LENGTHS, 0, 0, 4, {10, 0, 700, 3}, {1, 2, 0, 4}},
    {"a dense batch", UNIFORM, 0, 0, 3, {300, 300, 300}, {65, 65, 65}},
    {"shared queries", BY_OFFSETS, JFA_ROWS_SHARED, 0, 4, {257, 257, 0, 257}, {1, 0, 3, 2}},
    {"shared keys", BY_LENGTHS, 0, JFA_ROWS_SHARED, 3, {1, 2, 3}, {500, 20, 0}},
    {"padded both", BY_LENGTHS, JFA_ROWS_PADDED, JFA_ROWS_PADDED, 4, {0, 256, 1, 512}, {512, 0, 511, 1}},
    {"listed keys, two sequences on the same", BY_LENGTHS, 0, JFA_ROWS_LISTED, 3, {400, 2, 3}, {70, 60, 70}},
};
enum { CASE_COUNT = sizeof CASES / sizeof CASES[0], PITCH = 600 };
static const int32_t LIST[12] = {100, 0, 100};

static int32_t sum(const int32_t *values, int count) {
    int32_t total = 0;
    for (int i = 0; i < count; i++)
        total += values[i];
    return total;
}

typedef struct {
    Sample sample;
    int32_t q_offsets[13], k_offsets[13];
} Setting;

static void say(jfa_axis *axis, Said said, const int32_t *lengths, int32_t *offsets, int count) {
    offsets[0] = 0;
    for (int i = 0; i < count; i++)
        offsets[i + 1] = offsets[i] + lengths[i];
    axis->offsets = said == BY_OFFSETS ? offsets : NULL;
    axis->lengths = said == BY_LENGTHS ? lengths : NULL;
    axis->length = said == UNIFORM ? lengths[0] : 0;
}

static void set_rows(jfa_rows *rows, jfa_rows_kind kind) {
    *rows = (jfa_rows){.kind = kind};
    rows->pitch = kind == JFA_ROWS_PADDED ? PITCH : 0;
    rows->list = kind == JFA_ROWS_LISTED ? LIST : NULL;
}

static void set_case(Setting *s, const Case *c) {
    int64_t rows = 12 * PITCH;
    fixture_sample(&s->sample, c->count, rows, rows, 4, 2);
    say(&s->sample.axes[0], c->said, c->q, s->q_offsets, c->count);
    say(&s->sample.axes[1], c->said, c->k, s->k_offsets, c->count);
    set_rows(&s->sample.tensors[SAMPLE_Q].rows[0], c->q_rows);
    set_rows(&s->sample.tensors[SAMPLE_K].rows[0], c->k_rows);
}

static int32_t expected_base(jfa_rows_kind kind, const int32_t *lengths, int s) {
    const int32_t bases[] = {sum(lengths, s), 0, s * PITCH, LIST[s]};
    return lengths[s] ? bases[kind] : 0;
}

// All blocks in natural order; then, again and again, the first of the heaviest that is left.
static int expected_records(const Case *c, int32_t (*records)[7]) {
    int32_t natural[64][7];
    int count = 0, given = 0;
    for (int s = 0; s < c->count; s++)
        for (int32_t start = 0; start < c->q[s]; start += 256) {
            const int32_t record[7] = {s,
                                       start,
                                       c->q[s],
                                       c->k[s],
                                       expected_base(c->q_rows, c->q, s),
                                       expected_base(c->k_rows, c->k, s),
                                       expected_base(JFA_ROWS_PACKED, c->q, s)};
            memcpy(natural[count++], record, sizeof record);
        }
    bool taken[64] = {false};
    for (; given < count; given++) {
        int best = -1;
        for (int i = 0; i < count; i++)
            if (!taken[i] && (best < 0 || (natural[i][3] > 1 ? natural[i][3] : 1) >
                                              (natural[best][3] > 1 ? natural[best][3] : 1)))
                best = i;
        taken[best] = true;
        memcpy(records[given], natural[best], sizeof natural[best]);
    }
    return count;
}

static void records_are_the_blocks_with_positions_heaviest_first(void **state) {
    (void)state;
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    for (int i = 0; i < CASE_COUNT; i++) {
        Setting setting;
        jfa_bound bound;
        jfa_work work;
        jfa_error err = {0};
        int32_t expected[64][7];
        set_case(&setting, &CASES[i]);
        int count = expected_records(&CASES[i], expected);
        if (jfa_bind(&m, &setting.sample.problem, &bound, &err) || jfa_work_build(&bound, &work, &err))
            fail_msg("%s: %s", CASES[i].what, err.message);
        if (work.records != count || work.items != 4 * count)
            fail_msg("%s: %d records, not %d", CASES[i].what, (int)work.records, count);
        if (count && memcmp(work.words, expected, (size_t)count * sizeof expected[0]) != 0)
            fail_msg("%s: the records differ", CASES[i].what);
        assert_int_equal(work.words == NULL, count == 0);
        free(work.words);
        jfa_bound_release(&bound);
    }
}

static void without_heaviest_first_records_are_in_natural_order(void **state) {
    (void)state;
    char *text = fixture_edit(SAMPLE_MANIFEST, "heaviest_first\n", "");
    jfa_manifest m = fixture_manifest(text);
    Setting setting;
    jfa_bound bound;
    jfa_work work;
    set_case(&setting, &CASES[6]);
    assert_int_equal(jfa_bind(&m, &setting.sample.problem, &bound, NULL), JFA_OK);
    assert_int_equal(jfa_work_build(&bound, &work, NULL), JFA_OK);
    const int32_t sequences[] = {0, 1, 2, 2, 4, 4, 5, 5, 5};
    assert_int_equal(work.records, 9);
    for (int i = 0; i < 9; i++)
        assert_int_equal(work.words[i * 7], sequences[i]);
    free(work.words);
    jfa_bound_release(&bound);
    free(text);
}

static jfa_tensor matrix(const char *name, uint64_t address, int64_t rows, int64_t cols) {
    jfa_tensor tensor = {
        .name = name, .address = address, .dtype = JFA_BF16, .rank = 2, .extents = {rows, cols}};
    assert_true(jfa_tensor_set_dense(&tensor));
    return tensor;
}

static void blocks_of_several_axes_come_with_the_last_fastest(void **state) {
    (void)state;
    jfa_manifest m = fixture_manifest(MATMUL_MANIFEST);
    const int32_t m_offsets[] = {0, 129, 129, 258}, k_lengths[] = {64, 128, 192};
    const jfa_axis axes[] = {{.name = "k", .lengths = k_lengths},
                             {.name = "m", .offsets = m_offsets},
                             {.name = "n", .length = 256}};
    const jfa_tensor tensors[] = {matrix("C", 1 << 28, 258, 768), matrix("A", 1 << 29, 258, 384),
                                  matrix("B", 1 << 30, 768, 384)};
    const jfa_problem problem = {
        .sequences = 3, .axes = axes, .axis_count = 3, .tensors = tensors, .tensor_count = 3};
    jfa_bound bound;
    jfa_work work;
    jfa_error err = {0};
    if (jfa_bind(&m, &problem, &bound, &err) || jfa_work_build(&bound, &work, &err))
        fail_msg("%s", err.message);
    const int32_t expected[8][8] = {
        {0, 0, 0, 129, 256, 64, 0, 0},        {0, 0, 128, 129, 256, 64, 0, 0},
        {0, 128, 0, 129, 256, 64, 0, 0},      {0, 128, 128, 129, 256, 64, 0, 0},
        {2, 0, 0, 129, 256, 192, 129, 192},   {2, 0, 128, 129, 256, 192, 129, 192},
        {2, 128, 0, 129, 256, 192, 129, 192}, {2, 128, 128, 129, 256, 192, 129, 192},
    };
    assert_int_equal(work.records, 8);
    assert_int_equal(work.items, 8);
    assert_memory_equal(work.words, expected, sizeof expected);
    free(work.words);
    jfa_bound_release(&bound);
}

static void a_kernel_without_blocks_has_a_record_a_sequence(void **state) {
    (void)state;
    char *text = fixture_edit(SAMPLE_MANIFEST, "block q 256\n", "");
    char *again = fixture_edit(text, "field start q\n", "");
    jfa_manifest m = fixture_manifest(again);
    Setting setting;
    jfa_bound bound;
    jfa_work work;
    set_case(&setting, &CASES[5]);
    assert_int_equal(jfa_bind(&m, &setting.sample.problem, &bound, NULL), JFA_OK);
    assert_int_equal(jfa_work_build(&bound, &work, NULL), JFA_OK);
    assert_int_equal(work.records, 5);
    // The weights are q * k, at least 1 each: 129, 128, 127 * 127, 128, 129.
    const int32_t sequences[] = {2, 0, 4, 1, 3};
    for (int i = 0; i < 5; i++)
        assert_int_equal(work.words[i * 6], sequences[i]);
    free(work.words);
    jfa_bound_release(&bound);
    free(again);
    free(text);
}

static void a_hundred_thousand_sequences_are_planned(void **state) {
    (void)state;
    enum { SEQUENCES = 100000 };
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    int32_t *offsets = calloc(SEQUENCES + 1, sizeof *offsets);
    assert_non_null(offsets);
    int64_t records = 0;
    for (int s = 0; s < SEQUENCES; s++) {
        int32_t length = (int32_t)((uint32_t)s * 2654435761u >> 22); // 0 .. 1023
        offsets[s + 1] = offsets[s] + length;
        records += (length + 255) / 256;
    }
    Sample sample;
    fixture_sample(&sample, SEQUENCES, offsets[SEQUENCES], offsets[SEQUENCES], 4, 4);
    sample.axes[0].offsets = sample.axes[1].offsets = offsets;
    jfa_bound bound;
    jfa_work work;
    jfa_error err = {0};
    if (jfa_bind(&m, &sample.problem, &bound, &err) || jfa_work_build(&bound, &work, &err))
        fail_msg("%s", err.message);
    assert_int_equal(work.records, records);
    assert_int_equal(work.bytes, records * 28);
    for (int64_t i = 1; i < records; i++) {
        const int32_t *a = &work.words[(i - 1) * 7], *b = &work.words[i * 7];
        bool ordered = a[3] > b[3] || (a[3] == b[3] && (a[0] < b[0] || (a[0] == b[0] && a[1] < b[1])));
        assert_true(ordered && b[1] < b[2] && b[4] == offsets[b[0]]);
    }
    free(work.words);
    jfa_bound_release(&bound);
    free(offsets);
}

// What the kernel makes of the list: CTA c takes items in zig-zag.
static void deal(const jfa_work *work, int64_t heads, int64_t ctas, int64_t *loads) {
    memset(loads, 0, (size_t)ctas * sizeof *loads);
    for (int64_t round = 0; round * ctas < work->items; round++)
        for (int64_t c = 0; c < ctas; c++) {
            int64_t item = round * ctas + (round % 2 ? ctas - 1 - c : c);
            if (item < work->items)
                loads[c] += work->words[item / heads * 7 + 3];
        }
}

// Dealt from the heaviest on, no CTA has more above another than one item.
static void work_is_balanced_over_the_processors(void **state) {
    (void)state;
    enum { SEQUENCES = 1000, CTAS = 148 };
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    int32_t q[SEQUENCES], k[SEQUENCES];
    uint32_t number = 3;
    int64_t records[2] = {0}, q_rows = 0, k_rows = 0;
    for (int s = 0; s < SEQUENCES; s++) {
        number = number * 1664525u + 1013904223u;
        q[s] = (int32_t)(number >> 8 & 1023) * (number >> 30 != 0);     // a quarter is empty
        k[s] = 1 + (int32_t)(number >> 12 & 255) * (s % 100 ? 1 : 100); // and some are long
        q_rows += q[s];
        k_rows += k[s];
    }
    for (int i = 0; i < 2; i++) {
        const int64_t heads = i ? 16 : 1;
        Sample sample;
        jfa_bound bound;
        jfa_work work;
        fixture_sample(&sample, SEQUENCES, q_rows, k_rows, heads, 1);
        sample.axes[0].lengths = q;
        sample.axes[1].lengths = k;
        assert_int_equal(jfa_bind(&m, &sample.problem, &bound, NULL), JFA_OK);
        assert_int_equal(jfa_work_build(&bound, &work, NULL), JFA_OK);
        int64_t loads[CTAS], most = 0, least = INT64_MAX;
        deal(&work, heads, CTAS, loads);
        for (int c = 0; c < CTAS; c++) {
            most = loads[c] > most ? loads[c] : most;
            least = loads[c] < least ? loads[c] : least;
        }
        assert_true(most - least <= work.words[3]);
        for (int64_t r = 0; r < work.records; r++)
            assert_true(work.words[r * 7 + 1] < work.words[r * 7 + 2]); // no empty block
        records[i] = work.records;
        assert_int_equal(work.items, work.records * heads);
        free(work.words);
        jfa_bound_release(&bound);
    }
    assert_int_equal(records[0], records[1]); // heads are a factor, not records
}

// Weights of one to four bytes, equal ones among them.
static void heavy_sequences_come_first_whatever_their_weights(void **state) {
    (void)state;
    static const int32_t K[] = {5, 70000, 1, 256, 65536, 255, 70000, 2000000000, 0, 16777216, 65535, 1};
    static const int32_t ORDER[] = {7, 9, 1, 6, 4, 10, 3, 5, 0, 2, 8, 11};
    enum { SEQUENCES = 12 };
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    Sample sample;
    jfa_bound bound;
    jfa_work work;
    jfa_error err = {0};
    fixture_sample(&sample, SEQUENCES, SEQUENCES, 2000000000, 1, 1);
    sample.axes[0].length = 1;
    sample.axes[1].lengths = K;
    sample.tensors[SAMPLE_K].rows[0].kind = JFA_ROWS_SHARED;
    if (jfa_bind(&m, &sample.problem, &bound, &err) || jfa_work_build(&bound, &work, &err))
        fail_msg("%s", err.message);
    assert_int_equal(work.records, SEQUENCES);
    for (int i = 0; i < SEQUENCES; i++)
        assert_int_equal(work.words[i * 7], ORDER[i]);
    free(work.words);
    jfa_bound_release(&bound);
}

// Bind and build; the sample's q length and block size, its sequences and heads.
static jfa_status plan_sizes(const char *block, int64_t sequences, int64_t length, int64_t heads,
                             jfa_work *work, jfa_error *err) {
    char *text = fixture_edit(SAMPLE_MANIFEST, "block q 256", block);
    jfa_manifest m = fixture_manifest(text);
    free(text);
    Sample sample;
    int64_t rows = length * sequences < INT32_MAX - (1 << 20) ? length * sequences : INT32_MAX - (1 << 20);
    fixture_sample(&sample, sequences, rows > 0 ? rows : 0, 1, heads, 1);
    sample.axes[0].length = length;
    jfa_bound bound;
    *work = (jfa_work){0};
    jfa_status status = jfa_bind(&m, &sample.problem, &bound, err);
    if (!status)
        status = jfa_work_build(&bound, work, err);
    free(work->words);
    jfa_bound_release(&bound);
    return status;
}

static void sizes_up_to_two_to_the_31_are_planned_or_refused(void **state) {
    (void)state;
    static const struct {
        const char *block;
        int64_t sequences, length, heads;
        jfa_status status;
        int64_t records;
    } LIMITS[] = {
        {"block q 1048576", 1, INT32_MAX - 1048576, 1, JFA_OK, 2047},
        {"block q 1048576", 1, INT32_MAX - 1048575, 1, JFA_ERROR_LIMIT, 0},
        {"block q 1048576", 1, INT32_MAX, 1, JFA_ERROR_LIMIT, 0},
        {"block q 1048576", 1, INT64_MAX, 1, JFA_ERROR_LIMIT, 0},
        {"block q 1048576", 1, -1, 1, JFA_ERROR_PROBLEM, 0},
        {"block q 1048576", 2, 1 << 30, 1, JFA_ERROR_PROBLEM, 0}, // more rows than a tensor may have
        {"block q 16", 1, 16, INT32_MAX, JFA_OK, 1},
        {"block q 16", 1, 17, INT32_MAX, JFA_ERROR_LIMIT, 0}, // 2 * heads items
        {"block q 1048576", -1, 1, 1, JFA_ERROR_ARGUMENT, 0},
        {"block q 1048576", (int64_t)INT32_MAX + 1, 0, 1, JFA_ERROR_LIMIT, 0},
        {"block q 2147483647", 1, 1, 1, JFA_ERROR_LIMIT, 0}, // a position behind the block doesn't fit
        {"block q 1", 1, 100000, 21474, JFA_OK, 100000},
        {"block q 1", 1, 100000, 21475, JFA_ERROR_LIMIT, 0},
    };
    for (size_t i = 0; i < sizeof LIMITS / sizeof LIMITS[0]; i++) {
        jfa_work work;
        jfa_error err = {0};
        jfa_status status =
            plan_sizes(LIMITS[i].block, LIMITS[i].sequences, LIMITS[i].length, LIMITS[i].heads, &work, &err);
        if (status != LIMITS[i].status || (status == JFA_OK && work.records != LIMITS[i].records))
            fail_msg("limit %zu: '%s' (%s), %lld records", i, jfa_status_string(status), err.message,
                     (long long)work.records);
    }
}

static void random_lengths_are_planned_or_refused_but_never_wrap(void **state) {
    (void)state;
    static const int64_t EDGES[] = {
        0, 1, 255, 256, 257, 65535, 1 << 20, INT32_MAX / 2, INT32_MAX - (1 << 20), INT32_MAX};
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    m.blocks[0].size = 1 << 18; // few records for large lengths
    uint32_t number = 7;
    for (int round = 0; round < 3000; round++) {
        int32_t q[6], k[6];
        for (int s = 0; s < 6; s++) {
            number = number * 1664525u + 1013904223u;
            q[s] = (int32_t)EDGES[(number >> 10) % 10];
            k[s] = (int32_t)EDGES[(number >> 20) % 10];
        }
        Sample sample;
        fixture_sample(&sample, 6, INT32_MAX - (1 << 20), INT32_MAX - (1 << 20), 8, 2);
        sample.axes[0].lengths = q;
        sample.axes[1].lengths = k;
        jfa_bound bound;
        jfa_work work = {0};
        jfa_error err = {0};
        jfa_status status = jfa_bind(&m, &sample.problem, &bound, &err);
        if (!status)
            status = jfa_work_build(&bound, &work, &err);
        assert_true(status == JFA_OK || err.message[0]);
        for (int64_t i = 0; i < (status ? 0 : work.records); i++)
            for (int f = 0; f < 7; f++)
                assert_true(work.words[i * 7 + f] >= 0);
        free(work.words);
        jfa_bound_release(&bound);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_the_blocks_with_positions_heaviest_first),
        cmocka_unit_test(without_heaviest_first_records_are_in_natural_order),
        cmocka_unit_test(blocks_of_several_axes_come_with_the_last_fastest),
        cmocka_unit_test(a_kernel_without_blocks_has_a_record_a_sequence),
        cmocka_unit_test(a_hundred_thousand_sequences_are_planned),
        cmocka_unit_test(work_is_balanced_over_the_processors),
        cmocka_unit_test(heavy_sequences_come_first_whatever_their_weights),
        cmocka_unit_test(sizes_up_to_two_to_the_31_are_planned_or_refused),
        cmocka_unit_test(random_lengths_are_planned_or_refused_but_never_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
