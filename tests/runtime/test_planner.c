// test_planner.c: lists of work that the device makes from offsets of its own, on the simulator: the same
// records in the same order as the host makes from them, then empty ones; wrong offsets hurt nothing.
#include "simulator/sim.h"
#include "tests/runtime/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DO(call)                                                                                             \
    do {                                                                                                     \
        jfa_error failure = {0};                                                                             \
        jfa_error *err = &failure;                                                                           \
        if (call)                                                                                            \
            fail_msg("%s: %s", #call, failure.message);                                                      \
    } while (0)

static jfa_device *device;

static int open_device(void **state) {
    (void)state;
    DO(jfa_sim_register(err));
    DO(jfa_device_open("sim:sm_100a", &device, err));
    return 0;
}

static int close_device(void **state) {
    (void)state;
    DO(jfa_device_close(device, err));
    return 0;
}

static uint64_t send(const void *bytes, size_t size) {
    uint64_t address;
    DO(jfa_malloc(device, size, &address, err));
    DO(jfa_copy_to_device(device, address, bytes, size, err));
    return address;
}

static uint32_t number = 1;

static int32_t draw(int32_t below) {
    number = number * 1664525u + 1013904223u;
    return (int32_t)((uint64_t)(number >> 1) * (uint32_t)below >> 31);
}

// ---------------------------------------------------------------- one list

typedef struct {
    int64_t records;
    int32_t *words;
    uint64_t status;
} List;

enum { CANARY = 0x5a5a5a5a, CANARIES = 64 };

// Binds, plans on the device, and brings the list back. Nothing may be written behind it.
static List plan_on_device(const char *manifest, const jfa_problem *problem) {
    jfa_module *module;
    jfa_kernel *kernel;
    jfa_bound bound;
    jfa_work work;
    char *ptx = fixture_ptx(manifest, strlen(manifest));
    DO(jfa_module_load(device, ptx, strlen(ptx), &module, err));
    DO(jfa_kernel_get(module, NULL, &kernel, err));
    DO(jfa_bind(&kernel->manifest, problem, &bound, err));
    DO(jfa_work_build(&bound, &work, err));
    List list = {work.records, NULL, JFA_NOTHING_WRONG};
    if (work.records) {
        size_t bytes = work.bytes + CANARIES * sizeof(int32_t);
        int32_t *words = calloc(1, bytes);
        assert_non_null(words);
        memset(words, 0x5a, bytes);
        memcpy((uint8_t *)words + work.bytes - 8, &JFA_NOTHING_WRONG, 8);
        uint64_t address = send(words, bytes);
        uint8_t *block = calloc(1, jfa_planner_block_bytes(&kernel->manifest));
        assert_non_null(block);
        jfa_planner_fill(&bound, &work, address, block);
        DO(jfa_planner_load(kernel, err));
        DO(jfa_planner_launch(kernel, bound.sequences, block, NULL, err));
        DO(jfa_copy_from_device(device, words, address, bytes, err));
        DO(jfa_free(device, address, err));
        for (int i = 0; i < CANARIES; i++)
            assert_int_equal(words[work.bytes / 4 + (size_t)i], CANARY);
        memcpy(&list.status, (uint8_t *)words + work.bytes - 8, 8);
        list.words = words;
        free(block);
    }
    free(work.words);
    jfa_bound_release(&bound);
    DO(jfa_module_unload(module, err));
    free(ptx);
    return list;
}

// The list of the device must be the host's, filled up with zeros.
static void expect_same(const char *what, const char *manifest, const jfa_problem *on_host,
                        const List *list) {
    jfa_manifest m = fixture_manifest(manifest);
    jfa_bound bound;
    jfa_work work;
    DO(jfa_bind(&m, on_host, &bound, err));
    DO(jfa_work_build(&bound, &work, err));
    if (work.records > list->records)
        fail_msg("%s: %d records, but room for %d", what, (int)work.records, (int)list->records);
    size_t words = (size_t)(work.records * m.field_count), all = (size_t)(list->records * m.field_count);
    for (size_t i = 0; i < all; i++) {
        int32_t expected = i < words ? work.words[i] : 0;
        if (list->words[i] != expected)
            fail_msg("%s: field %d of record %d is %d, not %d", what, (int)i % m.field_count,
                     (int)i / m.field_count, list->words[i], expected);
    }
    assert_true(list->status == JFA_NOTHING_WRONG);
    free(work.words);
    jfa_bound_release(&bound);
}

// Plans with offsets on the host and on the device; the problem's axes are the caller's to change.
static List compare(const char *what, const char *manifest, jfa_problem *problem, jfa_axis *axes) {
    jfa_axis host[JFA_MAX_AXES];
    uint64_t addresses[JFA_MAX_AXES] = {0};
    memcpy(host, axes, (size_t)problem->axis_count * sizeof *axes);
    for (int i = 0; i < problem->axis_count; i++)
        if (axes[i].offsets) {
            addresses[i] = send(axes[i].offsets, (size_t)(problem->sequences + 1) * sizeof(int32_t));
            axes[i].device_offsets = addresses[i];
            axes[i].offsets = NULL;
        }
    problem->axes = axes;
    List list = plan_on_device(manifest, problem);
    problem->axes = host;
    expect_same(what, manifest, problem, &list);
    for (int i = 0; i < problem->axis_count; i++)
        DO(jfa_free(device, addresses[i], err));
    free(list.words);
    return list;
}

// ---------------------------------------------------------------- tests

enum { MOST_SEQUENCES = 300 };

static void draw_offsets(int32_t *offsets, int64_t sequences, int32_t most) {
    offsets[0] = 0;
    for (int64_t s = 0; s < sequences; s++)
        offsets[s + 1] = offsets[s] + (draw(4) ? draw(most) : 0);
}

static void the_device_makes_the_same_list_as_the_host(void **state) {
    (void)state;
    static const int64_t SEQUENCES[] = {0, 1, 2, 31, 127, 128, 129, MOST_SEQUENCES};
    static const char *const EDITS[][2] = {{"heaviest_first\n", "heaviest_first\n"},
                                           {"heaviest_first\n", ""},
                                           {"block q 256\n", "block q 100\n"},
                                           {"block q 256\n", "block k 64\n"}};
    for (size_t i = 0; i < sizeof SEQUENCES / sizeof SEQUENCES[0]; i++)
        for (size_t e = 0; e < sizeof EDITS / sizeof EDITS[0]; e++) {
            int32_t q[MOST_SEQUENCES + 1], k[MOST_SEQUENCES + 1];
            int64_t sequences = SEQUENCES[i];
            char what[64];
            draw_offsets(q, sequences, 600);
            draw_offsets(k, sequences, 900);
            Sample sample;
            fixture_sample(&sample, sequences, q[sequences], k[sequences], 4, 4);
            sample.axes[0].offsets = q;
            sample.axes[1].offsets = k;
            char *text = fixture_edit(SAMPLE_MANIFEST, EDITS[e][0], EDITS[e][1]);
            char *again = e == 3 ? fixture_edit(text, "field start q", "field start k") : text;
            snprintf(what, sizeof what, "%d sequences, edit %d", (int)sequences, (int)e);
            compare(what, again, &sample.problem, sample.axes);
            if (again != text)
                free(again);
            free(text);
        }
}

static void layouts_differ_in_first_rows_only(void **state) {
    (void)state;
    enum { SEQUENCES = 40 };
    int32_t q[SEQUENCES + 1], k[SEQUENCES + 1];
    Sample sample;
    draw_offsets(q, SEQUENCES, 400);
    draw_offsets(k, SEQUENCES, 500);
    fixture_sample(&sample, SEQUENCES, q[SEQUENCES], 500, 4, 4);
    sample.axes[0].offsets = q;
    sample.axes[1].offsets = k;
    sample.tensors[SAMPLE_K].rows[0].kind = JFA_ROWS_SHARED;
    compare("shared", SAMPLE_MANIFEST, &sample.problem, sample.axes);

    fixture_sample(&sample, SEQUENCES, q[SEQUENCES], 512 * SEQUENCES, 4, 4);
    sample.axes[0].offsets = q;
    sample.axes[1].offsets = k;
    sample.tensors[SAMPLE_K].rows[0] = (jfa_rows){.kind = JFA_ROWS_PADDED, .pitch = 512};
    compare("padded", SAMPLE_MANIFEST, &sample.problem, sample.axes);

    fixture_sample(&sample, SEQUENCES, 400 * SEQUENCES, k[SEQUENCES], 4, 4);
    sample.axes[0].offsets = q;
    sample.axes[1].offsets = k;
    sample.tensors[SAMPLE_Q].rows[0] = (jfa_rows){.kind = JFA_ROWS_PADDED, .pitch = 400};
    sample.tensors[SAMPLE_O].rows[0] = (jfa_rows){.kind = JFA_ROWS_PADDED, .pitch = 400};
    sample.problem.tensor_count = 3; // LSE is left out
    compare("padded output", SAMPLE_MANIFEST, &sample.problem, sample.axes);

    fixture_sample(&sample, SEQUENCES, q[SEQUENCES], 300 * SEQUENCES, 4, 4);
    sample.axes[0].offsets = q;
    sample.axes[1].length = 300;
    compare("one length for all", SAMPLE_MANIFEST, &sample.problem, sample.axes);

    fixture_sample(&sample, SEQUENCES, 300 * SEQUENCES, k[SEQUENCES], 4, 4);
    sample.axes[0].length = 300;
    sample.axes[1].offsets = k;
    List list =
        compare("one length for all of the blocked axis", SAMPLE_MANIFEST, &sample.problem, sample.axes);
    assert_int_equal(list.records, 2 * SEQUENCES);
}

static void several_axes_may_be_blocked_or_none(void **state) {
    (void)state;
    enum { SEQUENCES = 7 };
    int32_t m[SEQUENCES + 1], n[SEQUENCES + 1];
    draw_offsets(m, SEQUENCES, 400);
    draw_offsets(n, SEQUENCES, 2);
    for (int s = 0; s <= SEQUENCES; s++)
        n[s] *= 128;
    char *text = fixture_edit(MATMUL_MANIFEST, "entry matmul", "entry sample_entry"); // as in fixture_ptx
    jfa_tensor tensors[3] = {{.name = "A", .extents = {m[SEQUENCES], 64}, .address = 1 << 28},
                             {.name = "B", .extents = {n[SEQUENCES], 64}, .address = 1 << 29},
                             {.name = "C", .extents = {m[SEQUENCES], n[SEQUENCES]}, .address = 1 << 30}};
    for (int i = 0; i < 3; i++) {
        tensors[i].dtype = JFA_BF16;
        tensors[i].rank = 2;
        if (i < 2)
            tensors[i].rows[1].kind = JFA_ROWS_SHARED;
        assert_true(jfa_tensor_set_dense(&tensors[i]));
    }
    jfa_axis axes[] = {{.name = "m", .offsets = m}, {.name = "n", .offsets = n}, {.name = "k", .length = 64}};
    jfa_problem problem = {
        .sequences = SEQUENCES, .axes = axes, .axis_count = 3, .tensors = tensors, .tensor_count = 3};
    compare("two blocked axes", text, &problem, axes);
    free(text);

    int32_t q[131];
    draw_offsets(q, 130, 50);
    Sample sample;
    fixture_sample(&sample, 130, q[130], 10 * 130, 4, 4);
    sample.axes[0].offsets = q;
    sample.axes[1].length = 10;
    text = fixture_edit(SAMPLE_MANIFEST, "block q 256\n", "");
    char *again = fixture_edit(text, "field start q\n", "");
    List list = compare("no blocked axis", again, &sample.problem, sample.axes);
    assert_int_equal(list.records, 130);
    free(again);
    free(text);
}

static void wrong_offsets_are_told_and_hurt_nothing(void **state) {
    (void)state;
    static const struct {
        int32_t offsets[5], lengths[4]; // what remains of the sequences
        const char *message;
    } CASES[] = {
        {{0, 10, 20, 20, 600}, {10, 10, 0, 580}, NULL},
        {{1, 10, 20, 20, 600},
         {0, 10, 0, 580},
         "axis 'q': the offsets on the device of sequence 0 start with another number than 0"},
        {{0, 10, 5, 20, 30}, {10, 0, 15, 10}, "sequence 1 decrease or are negative"},
        {{0, 10, -5, 20, 30}, {10, 0, 0, 10}, "sequence 1 decrease or are negative"},
        {{0, 10, 20, 30, 601}, {10, 10, 10, 0}, "sequence 3 pass the rows that the tensors have"},
        {{0, 600, 0, 600, 0}, {600, 0, 600, 0}, "sequence 1 decrease or are negative"},
        {{0, INT32_MIN, 0, INT32_MAX, 600}, {0, 0, 0, 0}, "sequence 0 decrease or are negative"},
        {{0, 101, 301, 401, 402}, {101, 200, 100, 1}, NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Sample sample;
        fixture_sample(&sample, 4, 600, 4, 4, 4);
        sample.axes[0].device_offsets = send(CASES[i].offsets, sizeof CASES[i].offsets);
        sample.axes[1].length = 1;
        List list = plan_on_device(SAMPLE_MANIFEST, &sample.problem);
        assert_int_equal(list.records, 4 + (600 - 4) / 256);
        int64_t seen[4] = {0};
        for (int64_t r = 0; r < list.records; r++)
            if (list.words[r * 7 + 2])
                seen[list.words[r * 7]] = list.words[r * 7 + 2];
        for (int s = 0; s < 4; s++) // lists that would be too long lose their end
            assert_true(seen[s] == CASES[i].lengths[s]);
        if (!CASES[i].message) {
            assert_true(list.status == JFA_NOTHING_WRONG);
        } else {
            jfa_error err;
            jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
            assert_int_equal(jfa_planner_verdict(&m, list.status, &err), JFA_ERROR_PROBLEM);
            if (!strstr(err.message, CASES[i].message))
                fail_msg("case %zu: %s", i, err.message);
        }
        free(list.words);
        DO(jfa_free(device, sample.axes[0].device_offsets, err));
    }
}

static void a_sequence_longer_than_its_rows_is_told(void **state) {
    (void)state;
    static const int32_t OFFSETS[] = {0, 100, 301};
    Sample sample;
    fixture_sample(&sample, 2, 400, 2, 4, 4);
    sample.axes[0].device_offsets = send(OFFSETS, sizeof OFFSETS);
    sample.axes[1].length = 1;
    for (int i = 0; i < 3; i += 2)
        sample.tensors[i].rows[0] = (jfa_rows){.kind = JFA_ROWS_PADDED, .pitch = 200};
    sample.problem.tensor_count = 3;
    List list = plan_on_device(SAMPLE_MANIFEST, &sample.problem);
    jfa_error err;
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    assert_int_equal(jfa_planner_verdict(&m, list.status, &err), JFA_ERROR_PROBLEM);
    assert_non_null(strstr(err.message, "sequence 1 make it longer than the tensors' rows for a sequence"));
    free(list.words);
    DO(jfa_free(device, sample.axes[0].device_offsets, err));
}

static void what_the_device_cant_plan_is_refused(void **state) {
    (void)state;
    static const int32_t LIST[2] = {0, 4};
    const jfa_rows listed = {.kind = JFA_ROWS_LISTED, .list = LIST},
                   padded = {.kind = JFA_ROWS_PADDED, .pitch = 400}, shared = {.kind = JFA_ROWS_SHARED};
    const struct {
        jfa_axis q, k;
        jfa_rows rows; // of O
        jfa_status status;
        const char *message;
    } CASES[] = {
        {{.device_offsets = 256, .length = 3}, {.length = 2}, {0}, JFA_ERROR_PROBLEM, "beside them"},
        {{.device_offsets = 256, .lengths = LIST}, {.length = 2}, {0}, JFA_ERROR_PROBLEM, "beside them"},
        {{.device_offsets = 257},
         {.length = 2},
         {0},
         JFA_ERROR_PROBLEM,
         "the address 0x101 of its offsets is no multiple of 4 bytes"},
        {{.device_offsets = 256},
         {.lengths = LIST},
         {0},
         JFA_ERROR_UNSUPPORTED,
         "the lengths of axis 'k' are listed on the host"},
        {{.device_offsets = 256},
         {.length = 2},
         listed,
         JFA_ERROR_UNSUPPORTED,
         "the rows of dim 0 are listed on the host, but the lengths of axis 'q' are on the device"},
        {{.device_offsets = 256},
         {.length = 2},
         padded,
         JFA_ERROR_PROBLEM,
         "the last of 2 sequences starts at row 400, but dim 0 has 300 rows"},
        {{.device_offsets = 256},
         {.length = 2},
         shared,
         JFA_ERROR_PROBLEM,
         "tensor 'O' is written, but several sequences have the same rows of it"},
    };
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Sample sample;
        jfa_bound bound;
        jfa_error err = {0};
        fixture_sample(&sample, 2, 300, 600, 4, 4);
        sample.axes[0] = CASES[i].q;
        sample.axes[1] = CASES[i].k;
        sample.axes[0].name = "q";
        sample.axes[1].name = "k";
        sample.tensors[SAMPLE_O].rows[0] = CASES[i].rows;
        assert_int_equal(jfa_bind(&m, &sample.problem, &bound, &err), CASES[i].status);
        if (!strstr(err.message, CASES[i].message))
            fail_msg("case %zu: %s", i, err.message);
        jfa_bound_release(&bound);
    }
    // Columns of C are moved in tiles: where they end must be known.
    m = fixture_manifest(MATMUL_MANIFEST);
    jfa_tensor c = {.name = "C", .extents = {64, 256}, .address = 1 << 28, .dtype = JFA_BF16, .rank = 2},
               a = c, b = c;
    assert_true(jfa_tensor_set_dense(&c));
    a = b = c;
    a.name = "A", a.address = 2 << 28, b.name = "B", b.address = 3 << 28;
    b.extents[0] = 256;
    const jfa_tensor tensors[] = {a, b, c};
    const jfa_axis axes[] = {
        {.name = "m", .length = 64}, {.name = "n", .device_offsets = 256}, {.name = "k", .length = 256}};
    const jfa_problem problem = {
        .sequences = 1, .axes = axes, .axis_count = 3, .tensors = tensors, .tensor_count = 3};
    jfa_bound bound;
    jfa_tensor_map map;
    jfa_error err;
    DO(jfa_bind(&m, &problem, &bound, err));
    assert_int_equal(jfa_map_fill(&bound, 2, &map, &err), JFA_ERROR_UNSUPPORTED);
    assert_string_equal(err.message,
                        "tensor 'C' is moved in tiles of 128 along axis 'n': its lengths must be "
                        "known on the host");
    jfa_bound_release(&bound);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_makes_the_same_list_as_the_host),
        cmocka_unit_test(layouts_differ_in_first_rows_only),
        cmocka_unit_test(several_axes_may_be_blocked_or_none),
        cmocka_unit_test(wrong_offsets_are_told_and_hurt_nothing),
        cmocka_unit_test(a_sequence_longer_than_its_rows_is_told),
        cmocka_unit_test(what_the_device_cant_plan_is_refused),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
