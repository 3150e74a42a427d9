// The data paths against definitions written out here: formats bit by bit, tile images through tensor maps
// and matrix descriptors, instruction descriptors, tensor-memory fragments, products.
#include "simulator/engines/instr_desc.h"
#include "simulator/engines/matrix_desc.h"
#include "simulator/engines/mma.h"
#include "simulator/engines/numbers.h"
#include "simulator/engines/tensor_map.h"
#include "simulator/engines/tmem_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A float of `e` exponent and `m` mantissa bits, by its definition.
static double decoded(uint32_t bits, int e, int m, bool has_infinity) {
    int bias = (1 << (e - 1)) - 1;
    uint32_t mantissa = bits & ((1u << m) - 1), exponent = bits >> m & ((1u << e) - 1);
    double sign = bits >> (e + m) & 1 ? -1 : 1;
    if (has_infinity && exponent == (1u << e) - 1)
        return mantissa ? NAN : sign * INFINITY;
    if (!has_infinity && exponent == (1u << e) - 1 && mantissa == (1u << m) - 1)
        return NAN;
    return exponent ? sign * ldexp(1 + ldexp(mantissa, -m), (int)exponent - bias)
                    : sign * ldexp(mantissa, 1 - bias - m);
}

static bool same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void every_code_of_every_format_means_what_its_definition_says(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        assert_true(same(sim_bf16_to_f32((uint16_t)bits), decoded(bits, 8, 7, true)));
        assert_true(same(sim_f16_to_f32((uint16_t)bits), decoded(bits, 5, 10, true)));
    }
    for (uint32_t bits = 0; bits < 256; bits++) {
        assert_true(same(sim_e4m3_to_f32((uint8_t)bits), decoded(bits, 4, 3, false)));
        assert_true(same(sim_e5m2_to_f32((uint8_t)bits), decoded(bits, 5, 2, true)));
        assert_true(same(sim_ue8m0_to_f32((uint8_t)bits), bits == 255 ? NAN : ldexp(1, (int)bits - 127)));
    }
}

static void narrowing_gives_the_nearest_code_and_keeps_codes(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x7F80; bits++) { // finite bf16 and the middle above each: ties go to even
        float low = sim_bf16_to_f32((uint16_t)bits), high = sim_bf16_to_f32((uint16_t)(bits + 1));
        assert_int_equal(sim_f32_to_bf16(low, SIM_RN, false, false), bits);
        assert_int_equal(sim_f32_to_bf16(-low, SIM_RN, false, false), bits | 0x8000);
        if (isinf(high))
            continue;
        float middle = low + (high - low) / 2;
        assert_int_equal(sim_f32_to_bf16(middle, SIM_RN, false, false), bits + (bits & 1));
        assert_int_equal(sim_f32_to_bf16(middle, SIM_RZ, false, false), bits);
        assert_int_equal(sim_f32_to_bf16(middle, SIM_RP, false, false), bits + 1);
    }
    for (uint32_t bits = 0; bits < 0x7C00; bits++)
        assert_int_equal(sim_f32_to_f16(sim_f16_to_f32((uint16_t)bits), SIM_RN, false, false), bits);
    for (uint32_t bits = 0; bits < 0x7F; bits++) {
        assert_int_equal(sim_f32_to_e4m3(sim_e4m3_to_f32((uint8_t)bits), false), bits);
        assert_int_equal(sim_f32_to_e4m3(1e9f, false), 0x7E); // saturates at 448
    }
    assert_int_equal(sim_f32_to_e4m3(NAN, false), 0x7F);
    assert_int_equal(sim_f32_to_bf16(NAN, SIM_RN, false, false), 0x7FFF);
}

static void exp2_is_within_an_ulp_on_one_lane_and_on_all(void **state) {
    (void)state;
    float in[32], out[32];
    for (int block = 0; block < 4000; block++) {
        for (int i = 0; i < 32; i++)
            in[i] = -130 + (float)(block * 32 + i) * 0.002f;
        sim_ex2_x32(out, in, false);
        for (int i = 0; i < 32; i++) {
            double exact = exp2(in[i]), ulp = exact < 0x1p-126 ? 0x1p-149 : ldexp(1, ilogb(exact) - 23);
            assert_true(fabs(out[i] - exact) <= ulp);
            assert_true(fabs(sim_ex2(in[i], false) - exact) <= ulp);
        }
    }
    assert_true(sim_ex2(-INFINITY, true) == 0 && isinf(sim_ex2(INFINITY, true)) && isnan(sim_ex2(NAN, true)));
    assert_true(sim_ex2(-140, true) == 0); // flushed
}

// ---------------------------------------------------------------- tiles

enum { SHARED = 65536, BASE = 1024 };

typedef struct {
    uint8_t *shared;
    const uint8_t *global;
    uint64_t address;
} Image;

static bool copy_run(void *context, uint32_t shared, uint64_t global, int length, bool inside) {
    Image *image = context;
    assert_true(shared + (uint32_t)length <= SHARED);
    if (inside)
        memcpy(image->shared + shared, image->global + (global - image->address), (size_t)length);
    else
        memset(image->shared + shared, 0, (size_t)length);
    return true;
}

// A [rows][cols] bf16 matrix in tiles [chunk][row][swizzle bytes], written through a tensor map and read
// through descriptors.
static void tiles_written_by_tensor_maps_are_read_back_by_descriptors(void **state) {
    (void)state;
    enum { ROWS = 64, COLS = 128 };
    static uint16_t matrix[ROWS * COLS];
    static uint8_t shared[SHARED];
    for (int i = 0; i < ROWS * COLS; i++)
        matrix[i] = (uint16_t)(0x3F80 + i); // distinct, finite
    for (int swizzle = 32; swizzle <= 128; swizzle *= 2) {
        int wide = swizzle / 2, chunks = COLS / wide;
        SimTensorMap map = {.dtype_bytes = 2,
                            .kind = 9,
                            .rank = 3,
                            .address = 0x10000,
                            .dims = {(uint64_t)wide, ROWS, (uint64_t)chunks},
                            .strides = {2, COLS * 2, (uint64_t)swizzle},
                            .box = {(uint32_t)wide, ROWS, (uint32_t)chunks},
                            .swizzle_bytes = swizzle};
        char message[200];
        uint8_t encoded[128];
        SimTensorMap decoded_map;
        assert_true(sim_tensor_map_check(&map, message));
        sim_tensor_map_encode(&map, encoded);
        assert_true(sim_tensor_map_decode(encoded, &decoded_map));
        assert_int_equal(sim_tensor_map_box_bytes(&decoded_map), ROWS * COLS * 2);
        Image image = {shared, (const uint8_t *)matrix, map.address};
        assert_true(sim_tensor_map_walk(&decoded_map, (const int32_t[5]){0}, BASE, copy_run, &image));
        // PTX ISA, shared memory descriptor: start, leading and stride in units of 16 bytes; version bit 46;
        // swizzle code.
        uint64_t code = swizzle == 128  ? 2
                        : swizzle == 64 ? 4
                                        : 6,
                 chunk_bytes = (uint64_t)ROWS * (uint64_t)swizzle;
        uint64_t bits =
            BASE / 16 | chunk_bytes / 16 << 16 | (uint64_t)(8 * swizzle / 16) << 32 | 1ull << 46 | code << 61;
        SimMatrixDesc desc;
        assert_true(sim_matrix_desc_decode(bits, true, &desc, message));
        static float values[ROWS * COLS];
        // K-major: the rows are M or N, one chunk of K.
        assert_true(sim_matrix_read(&desc, true, SIM_ELEM_BF16, ROWS, 16, shared, SHARED, values));
        for (int row = 0; row < ROWS; row++)
            for (int k = 0; k < 16; k++)
                assert_true(values[row * 16 + k] == sim_bf16_to_f32(matrix[row * COLS + k]));
        // MN-major: the rows are K, chunks lead along M or N.
        assert_true(sim_matrix_read(&desc, false, SIM_ELEM_BF16, COLS, 16, shared, SHARED, values));
        for (int col = 0; col < COLS; col++)
            for (int k = 0; k < 16; k++)
                assert_true(values[col * 16 + k] == sim_bf16_to_f32(matrix[k * COLS + col]));
    }
}

static void boxes_beyond_the_tensor_are_zero_from_the_first_element_outside(void **state) {
    (void)state;
    static uint16_t matrix[10 * 24];
    static uint8_t shared[SHARED];
    for (int i = 0; i < 10 * 24; i++)
        matrix[i] = (uint16_t)(i + 1);
    SimTensorMap map = {.dtype_bytes = 2,
                        .kind = 9,
                        .rank = 2,
                        .address = 0x10000,
                        .dims = {20, 10},
                        .strides = {2, 48},
                        .box = {16, 8}};
    Image image = {shared, (const uint8_t *)matrix, map.address};
    for (int32_t x = -20; x <= 24; x++)
        for (int32_t y = -9; y <= 11; y++) {
            assert_true(sim_tensor_map_walk(&map, (const int32_t[5]){x, y}, BASE, copy_run, &image));
            for (int row = 0; row < 8; row++)
                for (int col = 0; col < 16; col++) {
                    bool inside = x + col >= 0 && x + col < 20 && y + row >= 0 && y + row < 10;
                    uint16_t value;
                    memcpy(&value, shared + BASE + row * 32 + col * 2, 2);
                    assert_int_equal(value, inside ? matrix[(y + row) * 24 + x + col] : 0);
                }
        }
}

static void wrong_descriptors_and_maps_are_refused(void **state) {
    (void)state;
    char message[200];
    SimMatrixDesc desc;
    assert_false(
        sim_matrix_desc_decode(64 | 64ull << 32 | 2ull << 61, true, &desc, message)); // no version bit
    assert_false(sim_matrix_desc_decode(64 | 64ull << 32 | 1ull << 46 | 3ull << 61, true, &desc, message));
    SimInstrDesc type;
    assert_false(
        sim_instr_desc_decode(0x08200490 | 1u << 23, SIM_KIND_F16, 1, &type, message)); // reserved bit
    assert_false(sim_instr_desc_decode(0x02200490, SIM_KIND_F16, 1, &type, message));   // M 32
    SimTensorMap good = {.dtype_bytes = 2,
                         .kind = 9,
                         .rank = 2,
                         .address = 0x10000,
                         .dims = {64, 10},
                         .strides = {2, 128},
                         .box = {64, 8},
                         .swizzle_bytes = 128};
    assert_true(sim_tensor_map_check(&good, message));
    SimTensorMap bad[] = {good, good, good, good, good};
    bad[0].address += 8;
    bad[1].strides[1] = 136;
    bad[2].box[1] = 257;
    bad[3].swizzle_bytes = 64; // narrower than the box
    bad[4].dims[1] = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(sim_tensor_map_check(&bad[i], message));
    uint8_t encoded[128];
    sim_tensor_map_encode(&good, encoded);
    encoded[40] ^= 1;
    assert_false(sim_tensor_map_decode(encoded, &bad[0])); // damaged
}

// PTX ISA, instruction descriptor: values of known products.
static void instruction_descriptors_are_decoded(void **state) {
    (void)state;
    static const struct {
        uint32_t bits;
        SimKind kind;
        int group, m, n;
        SimElem a, b;
        bool a_mn, b_mn;
    } KNOWN[] = {
        {0x08200490, SIM_KIND_F16, 1, 128, 128, SIM_ELEM_BF16, SIM_ELEM_BF16, false, false},
        {0x08210490, SIM_KIND_F16, 1, 128, 128, SIM_ELEM_BF16, SIM_ELEM_BF16, false, true},
        {0x08218490, SIM_KIND_F16, 1, 128, 128, SIM_ELEM_BF16, SIM_ELEM_BF16, true, true},
        {0x08200010, SIM_KIND_F16, 1, 128, 128, SIM_ELEM_F16, SIM_ELEM_F16, false, false},
        {0x04200490, SIM_KIND_F16, 1, 64, 128, SIM_ELEM_BF16, SIM_ELEM_BF16, false, false},
        {0x10400490, SIM_KIND_F16, 2, 256, 256, SIM_ELEM_BF16, SIM_ELEM_BF16, false, false},
        {0x08200090, SIM_KIND_F8F6F4, 1, 128, 128, SIM_ELEM_E5M2, SIM_ELEM_E4M3, false, false},
    };
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
        SimInstrDesc desc;
        char message[200] = "";
        if (!sim_instr_desc_decode(KNOWN[i].bits, KNOWN[i].kind, KNOWN[i].group, &desc, message))
            fail_msg("0x%08x: %s", KNOWN[i].bits, message);
        assert_int_equal(desc.m, KNOWN[i].m);
        assert_int_equal(desc.n, KNOWN[i].n);
        assert_int_equal(desc.a, KNOWN[i].a);
        assert_int_equal(desc.b, KNOWN[i].b);
        assert_int_equal(desc.a_mn_major, KNOWN[i].a_mn);
        assert_int_equal(desc.b_mn_major, KNOWN[i].b_mn);
    }
}

// Each shape's registers and threads cover lanes x columns once.
static void fragments_of_tensor_memory_cover_their_rectangle_once(void **state) {
    (void)state;
    static const struct {
        SimTmemShape shape;
        int lanes, columns_a_step;
    } SHAPES[] = {{SIM_32X32B, 32, 1}, {SIM_16X64B, 16, 2}, {SIM_16X128B, 16, 4}, {SIM_16X256B, 16, 8}};
    for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++)
        for (int n = 1; n <= 32; n *= 2) {
            uint8_t seen[32][256] = {{0}};
            int registers = sim_tmem_registers(SHAPES[i].shape, n);
            assert_int_equal(registers * 32, SHAPES[i].lanes * SHAPES[i].columns_a_step * n);
            for (int reg = 0; reg < registers; reg++)
                for (int thread = 0; thread < 32; thread++) {
                    int lane, column;
                    sim_tmem_place(SHAPES[i].shape, reg, thread, &lane, &column);
                    assert_in_range(lane, 0, SHAPES[i].lanes - 1);
                    assert_in_range(column, 0, SHAPES[i].columns_a_step * n - 1);
                    assert_int_equal(seen[lane][column]++, 0);
                }
        }
}

static void products_are_sums_of_products_in_any_shape(void **state) {
    (void)state;
    static float a[128 * 64], b[256 * 64], d[128 * 300];
    for (int i = 0; i < 128 * 64; i++)
        a[i] = (float)(i % 13 - 6);
    for (int i = 0; i < 256 * 64; i++)
        b[i] = (float)(i % 11 - 5);
    static const int SHAPES[][3] = {{128, 128, 16}, {128, 256, 16}, {64, 8, 16},
                                    {128, 24, 32},  {16, 64, 8},    {1, 1, 1}};
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            int m = SHAPES[s][0], n = SHAPES[s][1], k = SHAPES[s][2], pitch = n + 7;
            for (int i = 0; i < m * pitch; i++)
                d[i] = 100;
            sim_mma_f32(d, pitch, a, b, m, n, k, accumulate);
            for (int i = 0; i < m; i++)
                for (int j = 0; j < pitch; j++) {
                    float sum = accumulate ? 100 : 0;
                    for (int c = 0; c < k && j < n; c++)
                        sum += a[i * k + c] * b[j * k + c];
                    assert_true(d[i * pitch + j] == (j < n ? sum : 100)); // whole numbers: exact in any order
                }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_of_every_format_means_what_its_definition_says),
        cmocka_unit_test(narrowing_gives_the_nearest_code_and_keeps_codes),
        cmocka_unit_test(exp2_is_within_an_ulp_on_one_lane_and_on_all),
        cmocka_unit_test(tiles_written_by_tensor_maps_are_read_back_by_descriptors),
        cmocka_unit_test(boxes_beyond_the_tensor_are_zero_from_the_first_element_outside),
        cmocka_unit_test(wrong_descriptors_and_maps_are_refused),
        cmocka_unit_test(instruction_descriptors_are_decoded),
        cmocka_unit_test(fragments_of_tensor_memory_cover_their_rectangle_once),
        cmocka_unit_test(products_are_sums_of_products_in_any_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
