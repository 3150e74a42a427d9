// test_maps.c: ragged tensor maps by brute force: a walker follows the numbers of a map for every tile of
// every sequence and must meet exactly the sequence's elements. And what maps refuse.
#include "tests/runtime/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Where element `at` (innermost first, relative to the box's corner) of the box lies; false: outside the map.
static bool walk(const jfa_tensor_map *map, const int64_t *corner, const int64_t *at, uint64_t *address) {
    *address = map->address;
    for (int i = 0; i < map->rank; i++) {
        int64_t place = corner[i] + at[i];
        if (place < 0 || place >= (int64_t)map->dims[i])
            return false;
        *address += (uint64_t)place * (i ? map->strides[i] : (uint64_t)jfa_dtype_bytes(map->dtype));
    }
    return true;
}

// What the driver demands of a map (cuTensorMapEncodeTiled).
static void assert_encodable(const jfa_tensor_map *map) {
    assert_true(map->rank >= 1 && map->rank <= 5 && map->address % 16 == 0);
    assert_int_equal(map->box[0] * (uint32_t)jfa_dtype_bytes(map->dtype) % 16, 0);
    for (int i = 0; i < map->rank; i++) {
        assert_true(map->dims[i] >= 1 && map->dims[i] <= 1ull << 32);
        assert_true(map->box[i] >= 1 && map->box[i] <= 256);
        assert_true(i == 0 || (map->strides[i] % 16 == 0 && map->strides[i] < 1ull << 40));
    }
}

typedef struct {
    const jfa_bound *bound;
    const jfa_tensor *tensor;
    jfa_tensor_map map;
    int64_t row, end, head; // absolute row of the tile, the sequence's end, index of dim 1
    int tile_rows;
} Tile;

// The kernel's coordinates for columns [64 * chunk, ...), as the manifest's header states them.
static void corner_of(const Tile *t, int64_t chunk, int64_t corner[5]) {
    int64_t left = t->end - t->row > 0 ? t->end - t->row : 0, n = left < t->tile_rows ? left : t->tile_rows;
    const int64_t coordinates[5] = {0, t->tile_rows - n, chunk, t->head, t->row + n};
    memcpy(corner, coordinates, sizeof coordinates);
}

// Elements of one box: each is the tensor's element, or outside exactly when its row is behind the sequence's
// end.
static int64_t check_box(const Tile *t, int64_t chunk) {
    int64_t corner[5], inside = 0;
    corner_of(t, chunk, corner);
    for (int64_t c = 0; c < t->map.box[2]; c++)
        for (int64_t r = 0; r < t->map.box[1]; r++)
            for (int64_t w = 0; w < t->map.box[0]; w += t->map.box[0] - 1) { // the first and the last column
                const int64_t at[5] = {w, r, c, 0, 0};
                uint64_t address, expected = t->tensor->address;
                bool is_inside = walk(&t->map, corner, at, &address);
                assert_int_equal(is_inside, t->row + r < t->end);
                expected += 2 * (uint64_t)((t->row + r) * t->tensor->strides[0] +
                                           t->head * t->tensor->strides[1] + (chunk + c) * 64 + w);
                assert_true(!is_inside || address == expected);
                inside += is_inside;
            }
    return inside;
}

static void check_tensor(const jfa_bound *b, int number, int tensor, int axis) {
    Tile t = {.bound = b, .tensor = b->tensors[tensor]};
    jfa_error err = {0};
    if (jfa_map_fill(b, number, &t.map, &err))
        fail_msg("%s", err.message);
    assert_encodable(&t.map);
    t.tile_rows = (int)t.map.box[1];
    int64_t inside = 0, wanted = 0, heads = t.tensor->extents[1];
    for (int64_t s = 0; s < b->sequences; s++) {
        int64_t base = jfa_bound_base(b, tensor, 0, s), length = jfa_bound_length(b, axis, s);
        wanted += length * heads * 4; // two columns of two chunks
        // One tile more than there are: tiles behind the end are all outside.
        for (int64_t start = 0; start < length + 2 * t.tile_rows; start += t.tile_rows)
            for (t.head = 0; t.head < heads; t.head++)
                for (int64_t chunk = 0; chunk < 2; chunk += t.map.box[2]) {
                    t.row = base + start;
                    t.end = base + length;
                    inside += check_box(&t, chunk);
                }
    }
    assert_int_equal(inside, wanted);
}

static void every_tile_meets_exactly_its_sequences_elements(void **state) {
    (void)state;
    static const int32_t LENGTHS[][2] = {{0, 0},     {1, 1},   {127, 128}, {128, 129},
                                         {129, 127}, {0, 255}, {256, 1},   {257, 0}};
    enum { SEQUENCES = sizeof LENGTHS / sizeof LENGTHS[0] };
    static const jfa_rows ROWS[] = {
        {.kind = JFA_ROWS_PACKED}, {.kind = JFA_ROWS_SHARED}, {.kind = JFA_ROWS_PADDED, .pitch = 260}};
    static const int64_t GAPS[] = {0, 8, 1024}; // elements between rows: a slice of a fused tensor
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    for (size_t r = 0; r < sizeof ROWS / sizeof ROWS[0]; r++)
        for (size_t g = 0; g < sizeof GAPS / sizeof GAPS[0]; g++) {
            int32_t q[SEQUENCES], k[SEQUENCES];
            for (int s = 0; s < SEQUENCES; s++)
                q[s] = LENGTHS[s][0], k[s] = LENGTHS[s][1];
            Sample sample;
            fixture_sample(&sample, SEQUENCES, SEQUENCES * 260, SEQUENCES * 260, 4, 2);
            sample.axes[0].lengths = q;
            sample.axes[1].lengths = k;
            for (int t = 0; t < 3; t++)
                sample.tensors[t].strides[0] += GAPS[g];
            sample.tensors[SAMPLE_Q].rows[0] = sample.tensors[SAMPLE_K].rows[0] = ROWS[r];
            jfa_bound bound;
            jfa_error err = {0};
            if (jfa_bind(&m, &sample.problem, &bound, &err))
                fail_msg("%s", err.message);
            check_tensor(&bound, 0, SAMPLE_Q, 0);
            check_tensor(&bound, 1, SAMPLE_K, 1);
            check_tensor(&bound, 2, SAMPLE_O, 0); // one chunk a box
            jfa_bound_release(&bound);
        }
}

// The walker must see a map that is wrong by one row.
static void the_walker_sees_a_wrong_map(void **state) {
    (void)state;
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    Sample sample;
    fixture_sample(&sample, 1, 100, 100, 4, 2);
    sample.axes[0].length = sample.axes[1].length = 100;
    jfa_bound bound;
    jfa_tensor_map map;
    assert_int_equal(jfa_bind(&m, &sample.problem, &bound, NULL), JFA_OK);
    assert_int_equal(jfa_map_fill(&bound, 0, &map, NULL), JFA_OK);
    const int64_t corner[5] = {0, 28, 0, 0, 100}, first[5] = {0, 0, 0, 0, 0}, behind[5] = {0, 100, 0, 0, 0};
    uint64_t address;
    assert_true(walk(&map, corner, first, &address) && address == sample.tensors[0].address);
    assert_false(walk(&map, corner, behind, &address));
    map.dims[1]++;
    assert_true(walk(&map, corner, behind, &address));
    map.address += map.strides[1];
    assert_true(walk(&map, corner, first, &address) && address != sample.tensors[0].address);
    jfa_bound_release(&bound);
}

static void a_map_has_the_numbers_that_the_manifest_describes(void **state) {
    (void)state;
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    Sample sample;
    fixture_sample(&sample, 1, 100, 200, 4, 2);
    sample.axes[0].length = 100;
    sample.axes[1].length = 200;
    jfa_bound bound;
    jfa_tensor_map map;
    assert_int_equal(jfa_bind(&m, &sample.problem, &bound, NULL), JFA_OK);
    assert_int_equal(jfa_map_fill(&bound, 1, &map, NULL), JFA_OK);
    const uint64_t dims[5] = {64, 128, 2, 2, 201}, strides[5] = {0, 512, 128, 256, 512};
    const uint32_t box[5] = {64, 128, 2, 1, 1};
    assert_int_equal(map.rank, 5);
    assert_int_equal(map.swizzle_bytes, 128);
    assert_int_equal(map.address, 0x200000000000 - 128 * 512);
    assert_memory_equal(map.dims, dims, sizeof dims);
    assert_memory_equal(map.strides, strides, sizeof strides);
    assert_memory_equal(map.box, box, sizeof box);
    jfa_bound_release(&bound);
}

static jfa_status fill(const Sample *sample, const char *manifest, int number, jfa_tensor_map *map,
                       jfa_error *err) {
    jfa_manifest m = fixture_manifest(manifest);
    jfa_bound bound;
    jfa_status status = jfa_bind(&m, &sample->problem, &bound, err);
    if (!status)
        status = jfa_map_fill(&bound, number, map, err);
    jfa_bound_release(&bound);
    return status;
}

typedef void (*Change)(Sample *);
static void odd_row_stride(Sample *s) {
    s->tensors[SAMPLE_Q].strides[0] += 4;
}
static void odd_head_stride(Sample *s) {
    s->tensors[SAMPLE_Q].strides[1] = 132;
    s->tensors[SAMPLE_Q].strides[0] = 1024;
}
static void spread_columns(Sample *s) {
    s->tensors[SAMPLE_Q].strides[2] = 2;
}
static void odd_address(Sample *s) {
    s->tensors[SAMPLE_Q].address += 8;
}
static void low_address(Sample *s) {
    s->tensors[SAMPLE_Q].address = 128 * 1024;
}
static void huge_stride(Sample *s) {
    s->tensors[SAMPLE_Q].strides[0] = 1LL << 40;
}
static void just_too_large_stride(Sample *s) {
    s->tensors[SAMPLE_Q].strides[0] = 1LL << 39;
}

static void what_a_map_cannot_do_is_refused_with_the_numbers(void **state) {
    (void)state;
    static const struct {
        Change change;
        jfa_status status;
        const char *message;
    } REFUSALS[] = {
        {odd_row_stride, JFA_ERROR_PROBLEM, "tensor 'Q': the stride of dim 0 is 516 elements = 1032 bytes"},
        {odd_head_stride, JFA_ERROR_PROBLEM, "tensor 'Q': the stride of dim 1 is 132 elements = 264 bytes"},
        {spread_columns, JFA_ERROR_PROBLEM, "stride of the innermost dim is 2; tensor maps need 1"},
        {odd_address, JFA_ERROR_PROBLEM, "tensor 'Q': the address 0x100000000008 is no multiple of 16"},
        {low_address, JFA_ERROR_LIMIT, "the address 0x20000 has less than 131072 bytes before it"},
        {huge_stride, JFA_ERROR_LIMIT, "the stride 1099511627776 of dim 0 is beyond 2^40 bytes"},
        {just_too_large_stride, JFA_ERROR_LIMIT, "the stride 549755813888 of dim 0 is beyond 2^40 bytes"},
    };
    for (size_t i = 0; i < sizeof REFUSALS / sizeof REFUSALS[0]; i++) {
        Sample sample;
        jfa_tensor_map map;
        jfa_error err = {0};
        fixture_sample(&sample, 1, 2, 2, 4, 2);
        // Far apart, so that only the map minds the strides.
        for (int t = 0; t < 4; t++)
            sample.tensors[t].address = ((uint64_t)t + 1) << 55;
        sample.tensors[SAMPLE_Q].address = 0x100000000000;
        sample.axes[0].length = sample.axes[1].length = 2;
        assert_int_equal(fill(&sample, SAMPLE_MANIFEST, 0, &map, &err), JFA_OK);
        REFUSALS[i].change(&sample);
        jfa_status status = fill(&sample, SAMPLE_MANIFEST, 0, &map, &err);
        if (status != REFUSALS[i].status || !strstr(err.message, REFUSALS[i].message))
            fail_msg("case %zu: %d, '%s'", i, status, err.message);
    }
}

static void one_row_or_head_may_have_any_stride(void **state) {
    (void)state;
    Sample sample;
    jfa_tensor_map map;
    jfa_error err = {0};
    fixture_sample(&sample, 1, 1, 1, 1, 1);
    sample.axes[0].length = sample.axes[1].length = 1;
    for (int d = 0; d < 2; d++)
        sample.tensors[SAMPLE_Q].strides[d] = 3;
    if (fill(&sample, SAMPLE_MANIFEST, 0, &map, &err))
        fail_msg("%s", err.message);
    assert_encodable(&map);
    const int64_t corner[5] = {0, 127, 0, 0, 1}, at[5] = {0};
    uint64_t address;
    assert_true(walk(&map, corner, at, &address) && address == sample.tensors[SAMPLE_Q].address);
}

static void a_tensor_without_elements_makes_a_map_that_nothing_meets(void **state) {
    (void)state;
    Sample sample;
    jfa_tensor_map map;
    fixture_sample(&sample, 1, 5, 0, 4, 2);
    sample.tensors[SAMPLE_K].address = 0;
    sample.axes[0].length = 5;
    assert_int_equal(fill(&sample, SAMPLE_MANIFEST, 1, &map, NULL), JFA_OK);
    assert_int_equal(map.address, 0);
    assert_int_equal(map.dims[4], 1);
    assert_encodable(&map);
}

// ---------------------------------------------------------------- axes as innermost dims

static jfa_status fill_matmul(const int32_t *k_lengths, int64_t sequences, int64_t k_rows, int number,
                              jfa_tensor_map *map, jfa_error *err) {
    jfa_tensor tensors[3] = {
        {.name = "A", .address = 1 << 28, .dtype = JFA_BF16, .rank = 2, .extents = {64, k_rows}},
        {.name = "B", .address = 1 << 29, .dtype = JFA_BF16, .rank = 2, .extents = {64, k_rows}},
        {.name = "C", .address = 1 << 30, .dtype = JFA_BF16, .rank = 2, .extents = {64, 64 * sequences}},
    };
    for (int i = 0; i < 3; i++)
        assert_true(jfa_tensor_set_dense(&tensors[i]));
    tensors[2].strides[0] = (tensors[2].strides[0] + 7) / 8 * 8;
    tensors[0].strides[0] = tensors[1].strides[0] = (k_rows + 7) / 8 * 8;
    tensors[0].rows[0].kind = tensors[1].rows[0].kind = tensors[2].rows[0].kind = JFA_ROWS_SHARED;
    const jfa_axis axes[] = {
        {.name = "m", .length = 64}, {.name = "n", .length = 64}, {.name = "k", .lengths = k_lengths}};
    const Sample sample = {
        .problem = {
            .sequences = sequences, .axes = axes, .axis_count = 3, .tensors = tensors, .tensor_count = 3}};
    return fill(&sample, MATMUL_MANIFEST, number, map, err);
}

static void an_innermost_axis_ends_with_a_tile_or_with_the_tensor(void **state) {
    (void)state;
    static const struct {
        int32_t lengths[3];
        int64_t sequences, rows;
        bool good;
    } CASES[] = {
        {{50}, 1, 50, true},           {{50}, 1, 64, false},         {{64}, 1, 100, true},
        {{64, 128, 5}, 3, 197, true},  {{64, 5, 64}, 3, 133, false}, {{0, 64, 0}, 3, 64, true},
        {{64, 128, 5}, 3, 198, false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        jfa_tensor_map map;
        jfa_error err = {0};
        jfa_status status = fill_matmul(CASES[i].lengths, CASES[i].sequences, CASES[i].rows, 0, &map, &err);
        if ((status == JFA_OK) != CASES[i].good ||
            (status && !strstr(err.message, "axis 'k', dim 1; its tiles of 64")))
            fail_msg("case %zu: '%s'", i, err.message);
        if (CASES[i].good)
            assert_true(map.rank == 3 && map.dims[0] == (uint64_t)CASES[i].rows && map.box[0] == 64 &&
                        map.dims[2] == 65);
    }
}

// The tile of C has 128 columns, its boxes 64: a sequence of 64 would be overrun by the tile's second box.
static void the_whole_tile_counts_where_it_is_moved_in_several_boxes(void **state) {
    (void)state;
    const int32_t lengths[2] = {64, 64};
    jfa_tensor_map map;
    jfa_error err = {0};
    assert_int_equal(fill_matmul(lengths, 1, 64, 2, &map, &err), JFA_OK);
    assert_int_equal(fill_matmul(lengths, 2, 128, 2, &map, &err), JFA_ERROR_PROBLEM);
    assert_non_null(strstr(err.message, "tensor 'C': sequence 0 has 64 positions on axis 'n'"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_meets_exactly_its_sequences_elements),
        cmocka_unit_test(the_walker_sees_a_wrong_map),
        cmocka_unit_test(a_map_has_the_numbers_that_the_manifest_describes),
        cmocka_unit_test(what_a_map_cannot_do_is_refused_with_the_numbers),
        cmocka_unit_test(one_row_or_head_may_have_any_stride),
        cmocka_unit_test(a_tensor_without_elements_makes_a_map_that_nothing_meets),
        cmocka_unit_test(an_innermost_axis_ends_with_a_tile_or_with_the_tensor),
        cmocka_unit_test(the_whole_tile_counts_where_it_is_moved_in_several_boxes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
