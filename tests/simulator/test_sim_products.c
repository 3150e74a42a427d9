// tcgen05.mma in its layouts, operand forms and groups, each against float64. The kernels leave all of the
// used tensor memory in `out` as [CTA][lane][column], so that a test sees where every element of D lies.
#include "tests/simulator/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 3, K = 64, COLUMNS = 256 };

#define HEAD                                                                                                 \
    ".version 8.8\n.target sm_100a\n.address_size 64\n.extern .shared .align 1024 .b8 dyn[];\n"              \
    ".shared .align 8 .b64 full;\n.shared .align 8 .b64 done;\n.shared .align 4 .b32 slot;\n"                \
    ".visible .entry k(.param .align 128 .b8 ta[128], .param .align 128 .b8 tb[128], .param .u64 out, "      \
    ".param .u64 in)\n"                                                                                      \
    ".maxntid 128, 1, 1\n%s\n{\n.reg .pred p, q, acc, lead, one; .reg .b16 both;\n"                          \
    ".reg .b32 tid, warp, rank, sa, sb, mf, md, first, t, ad, x, y, z, row, lo, k, id, v<8>;\n"              \
    ".reg .b64 pa, pb, o, oo, g, da, db; mov.u32 tid, %%tid.x; shr.u32 warp, tid, 5; mov.u32 sa, dyn; "      \
    "add.u32 sb, sa, 32768;\n"                                                                               \
    "mov.u32 rank, %%cluster_ctarank; setp.eq.u32 one, rank, 0; mov.u32 mf, full; mov.u32 md, done;\n"       \
    "mov.u64 pa, ta; cvta.param.u64 pa, pa; mov.u64 pb, tb; cvta.param.u64 pb, pb; ld.param.u64 o, [out]; "  \
    "ld.param.u64 g, [in];\n"                                                                                \
    "setp.eq.u32 lead, tid, 0; setp.ne.u32 q, warp, 0; mov.u32 z, 0; setp.ne.u32 acc, z, 0; mov.u16 both, "  \
    "3;\n"                                                                                                   \
    "@lead mbarrier.init.shared::cta.b64 [mf], 1; @lead mbarrier.init.shared::cta.b64 [md], 1; @lead "       \
    "fence.mbarrier_init.release.cluster;\n"                                                                 \
    "@q bra A0;\ntcgen05.alloc.cta_group::%d.sync.aligned.shared::cta.b32 [slot], 512;\n"                    \
    "tcgen05.relinquish_alloc_permit.cta_group::%d.sync.aligned;\nA0: tcgen05.fence::before_thread_sync;\n"  \
    "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"                        \
    "tcgen05.fence::after_thread_sync; ld.shared.u32 t, [slot]; shl.b32 ad, warp, 21; add.u32 ad, ad, t;\n"

// Zeroes 256 columns first, so that lanes and columns which the product must not touch are seen.
#define CLEAR                                                                                                \
    "mov.u32 k, 0;\nCL: add.u32 x, ad, k; tcgen05.st.sync.aligned.32x32b.x4.b32 [x], {z, z, z, z}; add.u32 " \
    "k, k, 4;\n"                                                                                             \
    "setp.lt.u32 p, k, 256; @p bra CL; tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;\n"  \
    "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; "                         \
    "tcgen05.fence::after_thread_sync;\n"

#define WAIT_FULL "WF: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [mf], 0; @!p bra WF;\n"

#define TAIL                                                                                                 \
    "bar.warp.sync 0xffffffff;\nWD: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [md], 0; "   \
    "@!p bra WD;\n"                                                                                          \
    "tcgen05.fence::after_thread_sync; mul.wide.u32 oo, rank, 131072; add.u64 o, o, oo; mul.wide.u32 oo, "   \
    "tid, 1024; add.u64 o, o, oo; mov.u32 k, 0;\n"                                                           \
    "RD: add.u32 x, ad, k; tcgen05.ld.sync.aligned.32x32b.x4.b32 {v0, v1, v2, v3}, [x]; "                    \
    "tcgen05.wait::ld.sync.aligned;\n"                                                                       \
    "st.global.v4.b32 [o], {v0, v1, v2, v3}; add.u64 o, o, 16; add.u32 k, k, 4; setp.lt.u32 p, k, 256; @p "  \
    "bra RD;\n"                                                                                              \
    "tcgen05.fence::before_thread_sync; barrier.cluster.arrive.release.aligned; "                            \
    "barrier.cluster.wait.acquire.aligned;\n"                                                                \
    "tcgen05.fence::after_thread_sync; @q bra Z0; tcgen05.dealloc.cta_group::%d.sync.aligned.b32 t, "        \
    "512;\nZ0: ret;\n}\n"

static float a[256 * K], b[256 * K], d[2 * 128 * COLUMNS];

static uint64_t random_matrix(Bench *bench, uint32_t *random, int rows, int columns, float *values) {
    uint16_t bits[256 * 256];
    for (int i = 0; i < rows * columns; i++)
        values[i] = bench_bf16(bench_uniform(random), &bits[i]);
    return bench_alloc(bench, sizeof *bits * (size_t)(rows * columns), bits);
}

static jfa_tensor_map map_of(uint64_t address, uint64_t columns, uint64_t rows, uint32_t box_rows) {
    return (jfa_tensor_map){.dtype = JFA_BF16,
                            .rank = 2,
                            .address = address,
                            .dims = {columns, rows},
                            .strides = {2, columns * 2},
                            .box = {64, box_rows},
                            .swizzle_bytes = 128};
}

// b as [n][k], or [k][n] when transposed.
static double expected(int m, int n, int n_total, bool transposed) {
    double sum = 0;
    for (int k = 0; k < K; k++)
        sum += (double)a[m * K + k] * b[transposed ? k * n_total + n : n * K + k];
    return sum;
}

static void expect_cell(int cta, int lane, int column, double value) {
    float found = d[(cta * 128 + lane) * COLUMNS + column];
    if (!(fabs(found - value) < 1e-4))
        fail_msg("CTA %d, lane %d, column %d holds %g, not %g", cta, lane, column, found, value);
}

// ---------------------------------------------------------------- one CTA

typedef struct {
    const char *name;
    int m, n;
    bool mn_major_b;
    uint32_t descriptor;
    const char *extra; // operands between the descriptor and the predicate
} Shape;

static const Shape SHAPES[] = {
    {"M 128, N 128", 128, 128, false, 0x08200490, ""},
    {"M 128, N 256", 128, 256, false, 0x08400490, ""},
    {"M 64, N 128", 64, 128, false, 0x04200490, ""},
    {"M 128, N 128, B along N", 128, 128, true, 0x08210490, ""},
    {"M 128, N 128, every second lane disabled", 128, 128, false, 0x08200490, "{v4, v4, v4, v4},"},
};

static void load_one(Bench *bench, const Shape *shape) {
    char text[16384], head[8192], tail[4096];
    int rows_b = shape->mn_major_b ? K : shape->n, chunks = shape->mn_major_b ? shape->n / 64 : 1;
    snprintf(head, sizeof head, HEAD, "", 1, 1);
    snprintf(tail, sizeof tail, TAIL, 1);
    snprintf(text, sizeof text,
             "%s%s@q bra E; elect.sync _|p, 0xffffffff; @!p bra E; mbarrier.arrive.expect_tx.shared::cta.b64 "
             "_, [mf], %d;\n"
             "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [sa], [pa, {z, "
             "z}], [mf];\n"
             "mov.u32 k, 0; mov.u32 x, sb;\nLB: shl.b32 y, k, 6;\n"
             "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [x], [pb, {y, "
             "z}], [mf];\n"
             "add.u32 x, x, %d; add.u32 k, k, 1; setp.lt.u32 p, k, %d; @p bra LB;\n" WAIT_FULL
             "mov.u32 v4, 0xAAAAAAAA;\n"
             "shr.u32 x, sa, 4; and.b32 x, x, 0x3FFF; or.b32 x, x, 0x10000; shr.u32 y, sb, 4; and.b32 y, y, "
             "0x3FFF; or.b32 y, y, 0x%x;\n"
             "mov.u32 k, 0;\nLK: mov.b64 da, {x, 0x40004040}; mov.b64 db, {y, 0x40004040};\n"
             "tcgen05.mma.cta_group::1.kind::f16 [t], da, db, 0x%08x, %s acc;\nsetp.eq.u32 acc, z, 0; "
             "add.u32 x, x, 2; add.u32 y, y, %d;\n"
             "add.u32 k, k, 1; setp.lt.u32 p, k, 4; @p bra LK;\n"
             "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [md];\nE:\n%s",
             head, CLEAR, (shape->m + shape->n) * K * 2, rows_b * 128, chunks,
             shape->mn_major_b ? (unsigned)(rows_b * 128 / 16) << 16 : 0x10000u, shape->descriptor,
             shape->extra, shape->mn_major_b ? 128 : 2, tail);
    bench_load(bench, text);
}

static void each_shape_of_one_cta_is_right(void **state) {
    const Shape *shape = *state;
    uint32_t random = 3;
    for (int seed = 0; seed < SEEDS; seed++) {
        Bench bench = bench_open("sm_100a");
        bench_option(&bench, "seed", seed);
        load_one(&bench, shape);
        int n = shape->n;
        jfa_tensor_map ta =
            map_of(random_matrix(&bench, &random, shape->m, K, a), K, (uint64_t)shape->m, (uint32_t)shape->m);
        jfa_tensor_map tb =
            shape->mn_major_b ? map_of(random_matrix(&bench, &random, K, n, b), (uint64_t)n, K, K)
                              : map_of(random_matrix(&bench, &random, n, K, b), K, (uint64_t)n, (uint32_t)n);
        uint64_t out = bench_alloc(&bench, sizeof d / 2, NULL);
        bench_param_map(&bench, &ta);
        bench_param_map(&bench, &tb);
        bench_param_u64(&bench, out);
        bench_param_u64(&bench, 0);
        bench_run_well(&bench, (BenchLaunch){"k", 1, 128, 1, 65536});
        bench_read(&bench, d, out, sizeof d / 2);
        bool masked = shape->extra[0];
        for (int lane = 0; lane < 128; lane++)
            for (int column = 0; column < COLUMNS; column++) {
                int m = shape->m == 64 ? (lane % 32 < 16 ? lane / 32 * 16 + lane % 32 : -1) : lane;
                bool written = m >= 0 && column < n && !(masked && lane % 2);
                expect_cell(0, lane, column, written ? expected(m, column, n, shape->mn_major_b) : 0);
            }
        bench_close(&bench);
    }
}

// ---------------------------------------------------------------- a pair of CTAs

static void load_pair(Bench *bench, int m, int n, uint32_t descriptor) {
    char text[16384], head[8192], tail[4096];
    snprintf(head, sizeof head, HEAD, ".reqnctapercluster 2, 1, 1", 2, 2);
    snprintf(tail, sizeof tail, TAIL, 2);
    snprintf(text, sizeof text,
             "%s%s@q bra E; elect.sync _|p, 0xffffffff; @!p bra E; mapa.shared::cluster.u32 first, mf, 0;\n"
             "@one mbarrier.arrive.expect_tx.shared::cta.b64 _, [mf], %d; mul.lo.u32 row, rank, %d;\n"
             "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 "
             "[sa], [pa, {z, row}], [first];\n"
             "mul.lo.u32 row, rank, %d;\n"
             "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 "
             "[sb], [pb, {z, row}], [first];\n"
             "@!one bra E;\n" WAIT_FULL "tcgen05.fence::after_thread_sync;\n"
             "shr.u32 x, sa, 4; and.b32 x, x, 0x3FFF; or.b32 x, x, 0x10000; shr.u32 y, sb, 4; and.b32 y, y, "
             "0x3FFF; or.b32 y, y, 0x10000;\n"
             "mov.u32 k, 0;\nLK: mov.b64 da, {x, 0x40004040}; mov.b64 db, {y, 0x40004040};\n"
             "tcgen05.mma.cta_group::2.kind::f16 [t], da, db, 0x%08x, acc;\nsetp.eq.u32 acc, z, 0; add.u32 "
             "x, x, 2; add.u32 y, y, 2;\n"
             "add.u32 k, k, 1; setp.lt.u32 p, k, 4; @p bra LK;\n"
             "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [md], "
             "both;\nE:\n%s",
             head, CLEAR, (m + n) * K * 2, m / 2, n / 2, descriptor, tail);
    bench_load(bench, text);
}

static void run_pair(int m, int n, uint32_t descriptor) {
    uint32_t random = 4;
    for (int seed = 0; seed < SEEDS; seed++) {
        Bench bench = bench_open("sm_100a");
        bench_option(&bench, "seed", seed);
        load_pair(&bench, m, n, descriptor);
        jfa_tensor_map ta = map_of(random_matrix(&bench, &random, m, K, a), K, (uint64_t)m, (uint32_t)m / 2);
        jfa_tensor_map tb = map_of(random_matrix(&bench, &random, n, K, b), K, (uint64_t)n, (uint32_t)n / 2);
        uint64_t out = bench_alloc(&bench, sizeof d, NULL);
        bench_param_map(&bench, &ta);
        bench_param_map(&bench, &tb);
        bench_param_u64(&bench, out);
        bench_param_u64(&bench, 0);
        bench_run_well(&bench, (BenchLaunch){"k", 2, 128, 2, 65536});
        bench_read(&bench, d, out, sizeof d);
        for (int cta = 0; cta < 2; cta++)
            for (int lane = 0; lane < 128; lane++)
                for (int column = 0; column < COLUMNS; column++) {
                    bool halves = m == 128; // the second half of the columns in the upper lanes
                    int row = halves ? 64 * cta + lane % 64 : 128 * cta + lane;
                    int of = halves ? column + lane / 64 * n / 2 : column;
                    expect_cell(cta, lane, column,
                                column < (halves ? n / 2 : n) ? expected(row, of, n, false) : 0);
                }
        bench_close(&bench);
    }
}

static void a_pair_with_256_rows_is_right(void **state) {
    (void)state;
    run_pair(256, 128, 0x10200490);
}

static void a_pair_with_128_rows_splits_the_columns_over_lanes(void **state) {
    (void)state;
    run_pair(128, 128, 0x08200490);
}

// ---------------------------------------------------------------- A in tensor memory

static void an_operand_in_tensor_memory_is_packed_along_columns(void **state) {
    (void)state;
    char text[16384], head[8192], tail[4096];
    uint32_t random = 5;
    snprintf(head, sizeof head, HEAD, "", 1, 1);
    snprintf(tail, sizeof tail, TAIL, 1);
    // Thread m stores row m of A, 32 words of two elements, into columns 256..287; then D += A B over four K
    // steps.
    snprintf(
        text, sizeof text,
        "%s%smul.wide.u32 oo, tid, 128; add.u64 g, g, oo; add.u32 x, ad, 256; mov.u32 k, 0;\n"
        "LA: ld.global.v4.u32 {v0, v1, v2, v3}, [g]; tcgen05.st.sync.aligned.32x32b.x4.b32 [x], {v0, v1, v2, "
        "v3};\n"
        "add.u64 g, g, 16; add.u32 x, x, 4; add.u32 k, k, 1; setp.lt.u32 p, k, 8; @p bra LA;\n"
        "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;\n"
        "@q bra E; elect.sync _|p, 0xffffffff; @!p bra E; tcgen05.fence::after_thread_sync; "
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [mf], 16384;\n"
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [sb], [pb, {z, z}], "
        "[mf];\n" WAIT_FULL
        "shr.u32 y, sb, 4; and.b32 y, y, 0x3FFF; or.b32 y, y, 0x10000; add.u32 x, t, 256; mov.u32 k, 0;\n"
        "LK: mov.b64 db, {y, 0x40004040};\ntcgen05.mma.cta_group::1.kind::f16 [t], [x], db, 0x08200490, "
        "acc;\nsetp.eq.u32 acc, z, 0;\n"
        "add.u32 x, x, 8; add.u32 y, y, 2; add.u32 k, k, 1; setp.lt.u32 p, k, 4; @p bra LK;\n"
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [md];\nE:\n%s",
        head, CLEAR, tail);
    for (int seed = 0; seed < SEEDS; seed++) {
        Bench bench = bench_open("sm_100a");
        bench_option(&bench, "seed", seed);
        bench_load(&bench, text);
        uint64_t in = random_matrix(&bench, &random, 128, K, a);
        jfa_tensor_map tb = map_of(random_matrix(&bench, &random, 128, K, b), K, 128, 128);
        uint64_t out = bench_alloc(&bench, sizeof d / 2, NULL);
        bench_param_map(&bench, &tb);
        bench_param_map(&bench, &tb);
        bench_param_u64(&bench, out);
        bench_param_u64(&bench, in);
        bench_run_well(&bench, (BenchLaunch){"k", 1, 128, 1, 65536});
        bench_read(&bench, d, out, sizeof d / 2);
        for (int lane = 0; lane < 128; lane++)
            for (int column = 0; column < 128; column++)
                expect_cell(0, lane, column, expected(lane, column, 128, false));
        bench_close(&bench);
    }
}

// ---------------------------------------------------------------- block scales

static float e4m3_of(uint8_t bits) {
    int exponent = bits >> 3 & 15, mantissa = bits & 7;
    float value = exponent ? ldexpf(1 + (float)mantissa / 8, exponent - 7) : ldexpf((float)mantissa, -9);
    return bits & 128 ? -value : value;
}

// One atom of 128 rows x 128 elements of K in e4m3, and 4 scales a row (PTX ISA, "Block scaling"; offset of a
// scale: row % 32 * 16 + row / 32 * 4 + block).
static void fill_scaled(uint32_t *random, uint8_t *bytes, uint8_t *scales, double *values) {
    for (int i = 0; i < 512; i++)
        scales[i] = (uint8_t)(120 + bench_random(random) % 12);
    for (int m = 0; m < 128; m++)
        for (int k = 0; k < 128; k++) {
            uint8_t code = (uint8_t)(bench_random(random) % 256);
            code = (code & 0x7F) > 0x50 ? code & 0xBF : code; // no NaN, moderate sizes
            bytes[m * 128 + k] = code;
            values[m * 128 + k] = e4m3_of(code) * ldexp(1, scales[m % 32 * 16 + m / 32 * 4 + k / 32] - 127);
        }
}

static void block_scales_multiply_each_32_of_k(void **state) {
    (void)state;
    static uint8_t bytes[2][128 * 128], scales[2][512], in[1024];
    static double values[2][128 * 128];
    char text[16384], head[8192], tail[4096];
    uint32_t random = 6;
    snprintf(head, sizeof head, HEAD, "", 1, 1);
    snprintf(tail, sizeof tail, TAIL, 1);
    snprintf(
        text, sizeof text,
        "%s%s@q bra E; elect.sync _|p, 0xffffffff; @!p bra E; mbarrier.arrive.expect_tx.shared::cta.b64 _, "
        "[mf], 33792; add.u32 row, sa, 65536;\n"
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [sa], [pa, {z, z}], "
        "[mf];\n"
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [sb], [pb, {z, z}], "
        "[mf];\n"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [row], [g], 1024, [mf];\n" WAIT_FULL
        "shr.u32 x, row, 4; and.b32 x, x, 0x3FFF; mov.b64 da, {x, 0x00004008}; add.u32 x, x, 32; mov.b64 db, "
        "{x, 0x00004008};\n"
        "add.u32 v5, t, 256; add.u32 v6, t, 260; tcgen05.cp.cta_group::1.32x128b.warpx4 [v5], da; "
        "tcgen05.cp.cta_group::1.32x128b.warpx4 [v6], db;\n"
        "shr.u32 x, sa, 4; and.b32 x, x, 0x3FFF; or.b32 x, x, 0x10000; shr.u32 y, sb, 4; and.b32 y, y, "
        "0x3FFF; or.b32 y, y, 0x10000;\n"
        "mov.u32 k, 0; mov.u32 id, 0x08A00000;\nLK: mov.b64 da, {x, 0x40004040}; mov.b64 db, {y, "
        "0x40004040};\n"
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [t], da, db, id, [v5], [v6], "
        "acc;\nsetp.eq.u32 acc, z, 0;\n"
        "add.u32 x, x, 2; add.u32 y, y, 2; add.u32 id, id, 0x20000010; add.u32 k, k, 1; setp.lt.u32 p, k, 4; "
        "@p bra LK;\n"
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [md];\nE:\n%s",
        head, CLEAR, tail);
    Bench bench = bench_open("sm_100a");
    bench_load(&bench, text);
    for (int i = 0; i < 2; i++) {
        fill_scaled(&random, bytes[i], scales[i], values[i]);
        memcpy(in + 512 * i, scales[i], 512);
        jfa_tensor_map map = {.dtype = JFA_U8,
                              .rank = 2,
                              .address = bench_alloc(&bench, sizeof bytes[i], bytes[i]),
                              .dims = {128, 128},
                              .strides = {1, 128},
                              .box = {128, 128},
                              .swizzle_bytes = 128};
        bench_param_map(&bench, &map);
    }
    uint64_t out = bench_alloc(&bench, sizeof d / 2, NULL);
    bench_param_u64(&bench, out);
    bench_param_u64(&bench, bench_alloc(&bench, sizeof in, in));
    bench_run_well(&bench, (BenchLaunch){"k", 1, 128, 1, 66560});
    bench_read(&bench, d, out, sizeof d / 2);
    for (int m = 0; m < 128; m++)
        for (int n = 0; n < 128; n++) {
            double sum = 0, size = 0;
            for (int k = 0; k < 128; k++) {
                sum += values[0][m * 128 + k] * values[1][n * 128 + k];
                size += fabs(values[0][m * 128 + k] * values[1][n * 128 + k]);
            }
            if (!(fabs(d[m * COLUMNS + n] - sum) <= 1e-6 * size))
                fail_msg("element (%d, %d) is %g, not %g", m, n, d[m * COLUMNS + n], sum);
        }
    bench_close(&bench);
}

int main(void) {
    enum { COUNT = sizeof SHAPES / sizeof SHAPES[0] };
    static struct CMUnitTest tests[COUNT + 4];
    static char names[COUNT][100];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "a product with %s is right", SHAPES[i].name);
        tests[i] =
            (struct CMUnitTest){names[i], each_shape_of_one_cta_is_right, NULL, NULL, (void *)&SHAPES[i]};
    }
    const struct CMUnitTest more[] = {
        cmocka_unit_test(a_pair_with_256_rows_is_right),
        cmocka_unit_test(a_pair_with_128_rows_splits_the_columns_over_lanes),
        cmocka_unit_test(an_operand_in_tensor_memory_is_packed_along_columns),
        cmocka_unit_test(block_scales_multiply_each_32_of_k),
    };
    memcpy(tests + COUNT, more, sizeof more);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
