// Scalar instructions against values that were worked out by hand or in C, a warp's collectives, and
// divergence.
#include "tests/simulator/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                                 \
    ".version 8.8\n.target sm_100a\n.address_size 64\n.shared .align 16 .b32 words[64];\n.const .b32 "       \
    "table[2] = {11, 22};\n"                                                                                 \
    ".visible .entry k(.param .u64 out)\n.maxntid 64\n{\n.reg .pred p, q; .reg .b16 h, h1, h2, h3; .reg "    \
    ".b32 r, r1, r2, r3, tid, lane;\n"                                                                       \
    ".reg .b64 d, d1, d2, d3, o, at; .local .align 8 .b8 stack[16];\n"                                       \
    "ld.param.u64 o, [out]; mov.u32 tid, %tid.x; mov.u32 lane, %laneid; mul.wide.u32 at, tid, 4; add.u64 "   \
    "at, at, o;\n"

typedef struct {
    const char *text; // from d1, d2, d3 (r1.., h1..: their low bits) to d, r or h
    char result;
    uint64_t in[3], out;
} Case;

// Floats stand as their bits.
static const Case CASES[] = {
    {"add.s32 r, r1, r2;", 'r', {0xFFFFFFFF, 2}, 1},
    {"add.sat.s32 r, r1, r2;", 'r', {0x7FFFFFFF, 1}, 0x7FFFFFFF},
    {"sub.s64 d, d1, d2;", 'd', {1, 2}, ~0ull},
    {"mul.lo.s32 r, r1, r2;", 'r', {0x10001, 0x10001}, 0x00020001},
    {"mul.hi.u32 r, r1, r2;", 'r', {0xFFFFFFFF, 0xFFFFFFFF}, 0xFFFFFFFE},
    {"mul.hi.s32 r, r1, r2;", 'r', {0xFFFFFFFF, 2}, 0xFFFFFFFF},
    {"mul.hi.u64 d, d1, d2;", 'd', {~0ull, 16}, 15},
    {"mul.wide.s32 d, r1, r2;", 'd', {0xFFFFFFFF, 3}, (uint64_t)-3},
    {"mul.wide.u32 d, r1, r2;", 'd', {0xFFFFFFFF, 3}, 0x2FFFFFFFDull},
    {"mul.wide.u16 r, h1, h2;", 'r', {0xFFFF, 0xFFFF}, 0xFFFE0001},
    {"mad.lo.s32 r, r1, r2, r3;", 'r', {5, 7, 1}, 36},
    {"mad.wide.s32 d, r1, r2, d3;", 'd', {0xFFFFFFFE, 3, 10}, 4},
    {"div.u32 r, r1, r2;", 'r', {0xFFFFFFFF, 16}, 0x0FFFFFFF},
    {"div.s32 r, r1, r2;", 'r', {(uint32_t)-7, 2}, (uint32_t)-3},
    {"rem.s32 r, r1, r2;", 'r', {(uint32_t)-7, 2}, (uint32_t)-1},
    {"rem.u64 d, d1, d2;", 'd', {1ull << 40, 1000}, (1ull << 40) % 1000},
    {"min.s32 r, r1, r2;", 'r', {(uint32_t)-7, 2}, (uint32_t)-7},
    {"min.u32 r, r1, r2;", 'r', {(uint32_t)-7, 2}, 2},
    {"min.relu.s32 r, r1, r2;", 'r', {(uint32_t)-7, 2}, 0},
    {"min.relu.s32 r, r1, r2;", 'r', {7, 2}, 2},
    {"max.relu.s32 r, r1, r2;", 'r', {(uint32_t)-7, (uint32_t)-2}, 0},
    {"max.relu.s32 r, r1, r2;", 'r', {(uint32_t)-7, 2}, 2},
    {"max.relu.s32 r, r1, 5;", 'r', {(uint32_t)-7}, 5},
    {"max.s64 d, d1, d2;", 'd', {(uint64_t)-7, 2}, 2},
    {"abs.s32 r, r1;", 'r', {(uint32_t)-7}, 7},
    {"neg.s64 d, d1;", 'd', {7}, (uint64_t)-7},
    {"and.b32 r, r1, r2;", 'r', {0xF0F0, 0xFF00}, 0xF000},
    {"or.b64 d, d1, d2;", 'd', {1ull << 40, 1}, (1ull << 40) | 1},
    {"xor.b32 r, r1, r2;", 'r', {0xF0F0, 0xFF00}, 0x0FF0},
    {"not.b32 r, r1;", 'r', {0xF0F0}, 0xFFFF0F0F},
    {"cnot.b32 r, r1;", 'r', {0}, 1},
    {"shl.b32 r, r1, r2;", 'r', {1, 32}, 0},
    {"shl.b64 d, d1, r2;", 'd', {1, 40}, 1ull << 40},
    {"shr.u32 r, r1, r2;", 'r', {0x80000000, 31}, 1},
    {"shr.s32 r, r1, r2;", 'r', {0x80000000, 40}, 0xFFFFFFFF},
    {"shf.l.wrap.b32 r, r1, r2, r3;", 'r', {0x80000000, 1, 33}, 3},
    {"shf.r.clamp.b32 r, r1, r2, r3;", 'r', {5, 7, 40}, 7},
    {"lop3.b32 r, r1, r2, r3, 0x96;", 'r', {0xFF00, 0xF0F0, 0xCCCC}, 0xFF00 ^ 0xF0F0 ^ 0xCCCC},
    {"lop3.b32 r, r1, r2, r3, 0xCA;", 'r', {0xFF00, 0x1234, 0x5678}, 0x1278},
    {"prmt.b32 r, r1, r2, 0x5410;", 'r', {0x33221100, 0x77665544}, 0x55441100},
    {"prmt.b32 r, r1, r2, 0xBA98;", 'r', {0x80FF017F, 0}, 0xFFFF0000},
    {"bfe.u32 r, r1, 8, 8;", 'r', {0x12345678}, 0x56},
    {"bfe.s32 r, r1, 8, 8;", 'r', {0x12348678}, 0xFFFFFF86},
    {"bfi.b32 r, r1, r2, 8, 4;", 'r', {0xF, 0x12345078}, 0x12345F78},
    {"bfind.u32 r, r1;", 'r', {0x00100000}, 20},
    {"bfind.u32 r, r1;", 'r', {0}, 0xFFFFFFFF},
    {"brev.b32 r, r1;", 'r', {1}, 0x80000000},
    {"clz.b32 r, r1;", 'r', {1}, 31},
    {"clz.b64 r, d1;", 'r', {1}, 63},
    {"popc.b32 r, r1;", 'r', {0xF0F0}, 8},
    {"sad.u32 r, r1, r2, r3;", 'r', {3, 10, 5}, 12},
    {"add.f32 r, r1, r2;", 'r', {0x3FC00000, 0x40100000}, 0x40700000},
    {"add.rm.f32 r, r1, r2;", 'r', {0x3F800000, 0xAB800000}, 0x3F7FFFFF},
    {"add.rp.f32 r, r1, r2;", 'r', {0x3F800000, 0x2B800000}, 0x3F800001},
    {"sub.ftz.f32 r, r1, r2;", 'r', {0x00400000, 0x00000000}, 0x00000000},
    {"mul.rz.f32 r, r1, r2;", 'r', {0x3F800001, 0x3FFFFFFF}, 0x40000000},
    {"fma.rn.f32 r, r1, r2, r3;", 'r', {0x3F800001, 0x3F800001, 0xBF800000}, 0x34800000},
    {"mul.sat.f32 r, r1, r2;", 'r', {0x40000000, 0x40400000}, 0x3F800000},
    {"max.f32 r, r1, r2;", 'r', {0x7FC00000, 0x40400000}, 0x40400000},
    {"max.NaN.f32 r, r1, r2;", 'r', {0x7FC00000, 0x40400000}, 0x7FFFFFFF},
    {"max.f32 r, r1, r2;", 'r', {0x80000000, 0x00000000}, 0x00000000},
    {"min.f32 r, r1, r2, r3;", 'r', {0x40400000, 0xC0000000, 0x3F800000}, 0xC0000000},
    {"abs.f32 r, r1;", 'r', {0xC0000000}, 0x40000000},
    {"ex2.approx.ftz.f32 r, r1;", 'r', {0xC0400000}, 0x3E000000},
    {"ex2.approx.ftz.f32 r, r1;", 'r', {0xFF800000}, 0x00000000},
    {"lg2.approx.f32 r, r1;", 'r', {0x41000000}, 0x40400000},
    {"rcp.approx.ftz.f32 r, r1;", 'r', {0x40800000}, 0x3E800000},
    {"sqrt.rn.f32 r, r1;", 'r', {0x40000000}, 0x3FB504F3},
    {"div.rn.f32 r, r1, r2;", 'r', {0x3F800000, 0x40400000}, 0x3EAAAAAB},
    {"fma.rn.f64 d, d1, d2, d3;",
     'd',
     {0x4008000000000000ull, 0x3FE0000000000000ull, 0x3FF0000000000000ull},
     0x4004000000000000ull},
    {"fma.rn.f32x2 d, d1, d2, d3;",
     'd',
     {0x4040000040000000ull, 0x40A0000040800000ull, 0xBF8000003F800000ull},
     0x4160000041100000ull},
    {"add.rn.ftz.f32x2 d, d1, d2;",
     'd',
     {0x4040000040000000ull, 0x40A0000040800000ull},
     0x4100000040C00000ull},
    {"cvt.rn.f32.s32 r, r1;", 'r', {(uint32_t)-3}, 0xC0400000},
    {"cvt.rn.f32.u32 r, r1;", 'r', {0x80000000}, 0x4F000000},
    {"cvt.rzi.s32.f32 r, r1;", 'r', {0xC0300000}, (uint32_t)-2},
    {"cvt.rmi.s32.f32 r, r1;", 'r', {0xC0100000}, (uint32_t)-3},
    {"cvt.rzi.u32.f32 r, r1;", 'r', {0xC0300000}, 0},
    {"cvt.rzi.s32.f32 r, r1;", 'r', {0x60AD78EC}, 0x7FFFFFFF},
    {"cvt.s64.s32 d, r1;", 'd', {(uint32_t)-3}, (uint64_t)-3},
    {"cvt.u64.u32 d, r1;", 'd', {(uint32_t)-3}, (uint32_t)-3},
    {"cvt.u32.u64 r, d1;", 'r', {0x123456789ull}, 0x23456789},
    {"cvt.s32.s8 r, r1;", 'r', {0x80}, 0xFFFFFF80},
    {"cvt.f64.f32 d, r1;", 'd', {0x3FC00000}, 0x3FF8000000000000ull},
    {"cvt.rn.f32.f64 r, d1;", 'r', {0x3FF8000000000000ull}, 0x3FC00000},
    {"cvt.rn.f16.f32 h, r1;", 'h', {0x3FC00000}, 0x3E00},
    {"cvt.f32.f16 r, h1;", 'r', {0x3E00}, 0x3FC00000},
    {"cvt.rn.bf16.f32 h, r1;", 'h', {0x3FC00000}, 0x3FC0},
    {"cvt.rn.bf16x2.f32 r, r1, r2;", 'r', {0x40000000, 0x3F800000}, 0x40003F80},
    {"cvt.rn.f16x2.f32 r, r1, r2;", 'r', {0x40000000, 0x3F800000}, 0x40003C00},
    {"cvt.rn.relu.bf16x2.f32 r, r1, r2;", 'r', {0xC0000000, 0x3F800000}, 0x00003F80},
    {"cvt.rn.satfinite.e4m3x2.f32 h, r1, r2;", 'h', {0x447A0000, 0x3F800000}, 0x7E38},
    {"cvt.rn.satfinite.e5m2x2.f32 h, r1, r2;", 'h', {0x3F800000, 0xC0000000}, 0x3CC0},
    {"cvt.rn.f16x2.e4m3x2 r, h1;", 'r', {0x3840}, 0x3C004000},
    {"cvt.rp.satfinite.ue8m0x2.f32 h, r1, r2;", 'h', {0x00000000, 0x40400000}, 0x0081},
    {"setp.lt.s32 p, r1, r2; selp.b32 r, 1, 0, p;", 'r', {(uint32_t)-1, 1}, 1},
    {"setp.lt.u32 p, r1, r2; selp.b32 r, 1, 0, p;", 'r', {(uint32_t)-1, 1}, 0},
    {"setp.lt.f32 p, r1, r2; selp.b32 r, 1, 0, p;", 'r', {0x7FC00000, 0x3F800000}, 0},
    {"setp.ltu.f32 p, r1, r2; selp.b32 r, 1, 0, p;", 'r', {0x7FC00000, 0x3F800000}, 1},
    {"setp.ne.b64 p, d1, d2; selp.b32 r, 1, 0, p;", 'r', {1ull << 40, 0}, 1},
    {"setp.eq.s32 q, r1, r1; setp.gt.and.s32 p, r1, r2, !q; selp.b32 r, 1, 0, p;", 'r', {5, 1}, 0},
    {"setp.gt.s32 p|q, r1, r2; selp.b32 r1, 1, 0, p; selp.b32 r2, 2, 0, q; or.b32 r, r1, r2;",
     'r',
     {5, 1},
     1},
    {"mov.b64 d, {r1, r2};", 'd', {1, 2}, 0x200000001ull},
    {"mov.b64 {r1, r2}, d3; sub.u32 r, r2, r1;", 'r', {0, 0, 0x500000002ull}, 3},
    {"mov.b32 r, {h1, h2};", 'r', {0x1111, 0x2222}, 0x22221111},
    {"add.cc.u32 r1, r1, r2; addc.u32 r, r3, 0;", 'r', {0xFFFFFFFF, 1, 7}, 8},
    {"mov.u32 r2, words; st.shared.v2.u32 [r2+8], {r1, r3}; ld.shared.u32 r, [r2+12];", 'r', {5, 0, 9}, 9},
    {"mov.u32 r2, words; st.shared.u16 [r2], h1; ld.shared.s16 r, [r2];", 'r', {0x8000}, 0xFFFF8000},
    {"mov.u64 d2, stack; st.local.u64 [d2+8], d1; ld.local.u32 r, [d2+12];", 'r', {0x700000000ull}, 7},
    {"mov.u64 d2, table; ld.const.u32 r, [d2+4];", 'r', {0}, 22},
    {"ld.const.u32 r, [table];", 'r', {0}, 11},
    {"mov.u32 r2, words; cvt.u64.u32 d2, r2; cvta.shared.u64 d2, d2; st.u32 [d2+4], r1; ld.shared.u32 r, "
     "[words+4];",
     'r',
     {77},
     77},
    {"mov.u64 d2, words; cvta.shared.u64 d2, d2; isspacep.shared p, d2; selp.b32 r, 1, 0, p;", 'r', {0}, 1},
    {"mov.u32 r2, words; st.shared.u32 [r2], 5; atom.shared.add.u32 r1, [r2], 3; ld.shared.u32 r3, [r2]; "
     "mad.lo.u32 r, r1, 100, r3;",
     'r',
     {0},
     508},
    {"mov.u32 r2, words; st.shared.u32 [r2], 5; atom.shared.cas.b32 r1, [r2], 5, 6; ld.shared.u32 r, [r2];",
     'r',
     {0},
     6},
};

static void each_scalar_instruction_gives_its_value(void **state) {
    (void)state;
    enum { COUNT = sizeof CASES / sizeof CASES[0] };
    static char text[1 << 17];
    uint64_t found[COUNT];
    size_t used = (size_t)snprintf(text, sizeof text, "%ssetp.ne.u32 p, tid, 0; @p bra END;\n", HEAD);
    for (int i = 0; i < COUNT; i++) {
        const Case *c = &CASES[i];
        for (int k = 0; k < 3; k++)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "mov.b64 d%d, 0x%llx; mov.b32 r%d, 0x%x; mov.b16 h%d, 0x%x;\n", k + 1,
                                     (unsigned long long)c->in[k], k + 1, (unsigned)(uint32_t)c->in[k], k + 1,
                                     (unsigned)(c->in[k] & 0xFFFF));
        const char *widen = c->result == 'd'   ? ""
                            : c->result == 'r' ? "cvt.u64.u32 d, r;"
                                               : "cvt.u64.u16 d, h;";
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s\nst.global.u64 [o+%d], d;\n",
                                 c->text, widen, 8 * i);
    }
    snprintf(text + used, sizeof text - used, "END: ret;\n}\n");
    Bench bench = bench_open("sm_100a");
    bench_load(&bench, text);
    uint64_t out = bench_alloc(&bench, sizeof found, NULL);
    bench_param_u64(&bench, out);
    bench_run_well(&bench, (BenchLaunch){"k", 1, 64, 1, 0});
    bench_read(&bench, found, out, sizeof found);
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        if (found[i] != CASES[i].out) {
            print_message("%s gives 0x%llx, not 0x%llx\n", CASES[i].text, (unsigned long long)found[i],
                          (unsigned long long)CASES[i].out);
            wrong++;
        }
    assert_int_equal(wrong, 0);
    bench_close(&bench);
}

// ---------------------------------------------------------------- 64 threads, one word each

typedef struct {
    const char *text; // leaves its result in r
    uint32_t (*expected)(uint32_t tid);
} Collective;

static uint32_t below_ten(uint32_t t) {
    return t % 32 < 10 ? 1000 + t : 2000 + t;
}
static uint32_t loop_count(uint32_t t) {
    return t % 32 * 3 + 1;
}
static uint32_t butterfly(uint32_t t) {
    return t ^ 1;
}
static uint32_t shifted_down(uint32_t t) {
    return t % 32 < 28 ? t + 4 : t;
}
static uint32_t broadcast(uint32_t t) {
    return t / 32 * 32 + 5;
}
static uint32_t even_ballot(uint32_t t) {
    return t % 2 ? 0xAAAAAAAA : 0x55555555;
}
static uint32_t sum_of_lanes(uint32_t t) {
    return t / 32 * 1024 + 496;
}
static uint32_t largest(uint32_t t) {
    return t / 32 * 32 + 31;
}
static uint32_t leader_only(uint32_t t) {
    return t % 32 == 0;
}
static uint32_t neighbour(uint32_t t) {
    return (t + 33) % 64;
}
static uint32_t reduced(uint32_t t) {
    (void)t;
    return 21;
}
static uint32_t nested(uint32_t t) {
    return (t & 1 ? 10 : 20) + (t & 2 ? 1 : 2) + 100;
}
static uint32_t jump(uint32_t t) {
    return t % 3 == 0 ? 7 : t % 3 == 1 ? 8 : 9;
}

static const Collective COLLECTIVES[] = {
    {"setp.lt.u32 p, lane, 10; @p bra A; add.u32 r, tid, 2000; bra B; A: add.u32 r, tid, 1000; B:",
     below_ten},
    {"mov.u32 r, 1; mov.u32 r1, 0; L: setp.ge.u32 p, r1, lane; @p bra E; add.u32 r, r, 3; add.u32 r1, r1, 1; "
     "bra L; E:",
     loop_count},
    {"and.b32 r1, tid, 1; setp.eq.u32 p, r1, 1; and.b32 r1, tid, 2; setp.eq.u32 q, r1, 2; @p bra A; mov.u32 "
     "r, 20; bra B; A: mov.u32 r, 10; B:\n"
     "@q bra C; add.u32 r, r, 2; bra D; C: add.u32 r, r, 1; D: bar.warp.sync -1; add.u32 r, r, 100;",
     nested},
    {"T: .branchtargets A, B, C; rem.u32 r1, tid, 3; brx.idx r1, T; A: mov.u32 r, 7; bra E; B: mov.u32 r, 8; "
     "bra E; C: mov.u32 r, 9; E:",
     jump},
    {"shfl.sync.bfly.b32 r, tid, 1, 31, -1;", butterfly},
    {"shfl.sync.down.b32 r, tid, 4, 31, -1;", shifted_down},
    {"shfl.sync.idx.b32 r, tid, 5, 31, -1;", broadcast},
    {"and.b32 r1, tid, 1; setp.eq.u32 p, r1, 1; vote.sync.ballot.b32 r, p, -1; @p bra A; not.b32 r, r; A:",
     even_ballot},
    {"redux.sync.add.u32 r, tid, -1;", sum_of_lanes},
    {"redux.sync.max.s32 r, tid, -1;", largest},
    {"elect.sync _|p, -1; selp.b32 r, 1, 0, p;", leader_only},
    {"mul.lo.u32 r1, tid, 4; mov.u32 r2, words; add.u32 r1, r1, r2; st.shared.u32 [r1], tid; bar.sync 0; "
     "add.u32 r1, tid, 33; and.b32 r1, r1, 63;\n"
     "mul.lo.u32 r1, r1, 4; add.u32 r1, r1, r2; ld.shared.u32 r, [r1];",
     neighbour},
    {"setp.lt.u32 p, tid, 21; bar.red.popc.u32 r, 1, 64, p;", reduced},
};

static void each_collective_and_branch_gives_its_value(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof COLLECTIVES / sizeof COLLECTIVES[0]; i++)
        for (int seed = 0; seed < 3; seed++) {
            char text[4096];
            uint32_t found[64];
            snprintf(text, sizeof text, "%s%s\nst.global.u32 [at], r;\nret;\n}\n", HEAD, COLLECTIVES[i].text);
            Bench bench = bench_open("sm_100a");
            bench_option(&bench, "seed", seed);
            bench_load(&bench, text);
            uint64_t out = bench_alloc(&bench, sizeof found, NULL);
            bench_param_u64(&bench, out);
            bench_run_well(&bench, (BenchLaunch){"k", 1, 64, 1, 0});
            bench_read(&bench, found, out, sizeof found);
            for (uint32_t t = 0; t < 64; t++)
                if (found[t] != COLLECTIVES[i].expected(t))
                    fail_msg("%s: thread %u has %u, not %u", COLLECTIVES[i].text, t, found[t],
                             COLLECTIVES[i].expected(t));
            bench_close(&bench);
        }
}

// ---------------------------------------------------------------- what can't be loaded

static void an_instruction_that_is_not_known_is_named_with_its_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } MISTAKES[] = {
        {"frobnicate.u32 r, r1;", "line 12: unknown instruction frobnicate.u32"},
        {"add.frob.u32 r, r1, r2;", "add.frob.u32"},
        {"ld.global.frob.u32 r, [o];", "ld.global.frob.u32"},
        {"tcgen05.mma.cta_group::1.kind::f99 [r], d1, d2, r, p;", "kind::f99"},
        {"mov.u32 r, %nonsense;", "%nonsense"},
        {"wgmma.fence.sync.aligned;", "wgmma"},
        {"mma.sync.aligned.m16n8k999.row.col.f32.bf16.bf16.f32 {r, r, r, r}, {r, r, r, r}, {r, r}, {r, r, r, "
         "r};",
         "m16n8k999"},
    };
    for (size_t i = 0; i < sizeof MISTAKES / sizeof MISTAKES[0]; i++) {
        char text[4096];
        jfa_error err = {0};
        void *module = NULL;
        snprintf(text, sizeof text, "%s%s\nret;\n}\n", HEAD, MISTAKES[i].text);
        Bench bench = bench_open("sm_100a");
        jfa_status status = bench.backend->module_load(bench.device, text, strlen(text), &module, &err);
        if (status == JFA_OK || !strstr(err.message, MISTAKES[i].says))
            fail_msg("'%s' gives '%s'", MISTAKES[i].text, status == JFA_OK ? "success" : err.message);
        bench_close(&bench);
    }
}

// The forms of the snippets that the simulator refuses, each by the instruction that it names.
static void snippets_load_but_for_the_families_that_are_not_supported(void **state) {
    (void)state;
    static const struct {
        const char *file, *refused; // NULL: all of it loads
    } SNIPPET_FILES[] = {
        {"both_bulk_1d.ptx", NULL},
        {"both_cluster.ptx", NULL},
        {"both_fences.ptx", NULL},
        {"both_math.ptx", NULL},
        {"both_matrix_ldst.ptx", NULL},
        {"both_mbarrier.ptx", NULL},
        {"both_sync_misc.ptx", NULL},
        {"both_tensormap_edit.ptx", NULL},
        {"both_tma_load.ptx", NULL},
        {"both_tma_reduce.ptx", NULL},
        {"both_tma_store.ptx", NULL},
        {"recipe_sm100_clc_loop.ptx", NULL},
        {"recipe_sm100_exp2_poly.ptx", NULL},
        {"recipe_sm100_mxf8_mma.ptx", NULL},
        {"recipe_sm100_quant_e4m3.ptx", NULL},
        {"recipe_sm100_ts_mma.ptx", NULL},
        {"recipe_sm100_two_cta.ptx", NULL},
        {"recipe_sm100_umma_bf16.ptx", NULL},
        {"recipe_sm90_wgmma_bf16.ptx", NULL},
        {"sm100_clc.ptx", NULL},
        {"sm100_tcgen05_alloc.ptx", NULL},
        {"sm100_tcgen05_commit.ptx", NULL},
        {"sm100_tcgen05_ld.ptx", NULL},
        {"sm100_tcgen05_st.ptx", NULL},
        {"sm100_tcgen05_mma_mxf8f6f4.ptx", NULL},
        {"sm100_tcgen05_wait_fence.ptx", NULL},
        {"sm90_setmaxnreg.ptx", NULL},
        {"sm90_wgmma_rs.ptx", NULL},
        {"sm90_wgmma_ss.ptx", NULL},
        {"sm100_math.ptx", "cvt.rs"},
        {"sm100_tcgen05_cp.ptx", "b8x16"},
        {"sm100_tcgen05_mma.ptx", "ashift"},
        {"sm100_tcgen05_mma_ws.ptx", "mma.ws"},
        {"sm100_tcgen05_mma_block_scale_all.ptx", "kind::mxf4"},
        {"sm100_tma_cta_group.ptx", "gather4"},
    };
    for (size_t i = 0; i < sizeof SNIPPET_FILES / sizeof SNIPPET_FILES[0]; i++) {
        static char text[1 << 16];
        char path[600];
        snprintf(path, sizeof path, "%s/%s", SNIPPETS, SNIPPET_FILES[i].file);
        FILE *in = fopen(path, "rb");
        assert_non_null(in);
        size_t length = fread(text, 1, sizeof text - 1, in);
        fclose(in);
        text[length] = '\0';
        jfa_error err = {0};
        void *module = NULL;
        Bench bench = bench_open(strstr(text, ".target sm_90a") ? "sm_90a" : "sm_100a");
        jfa_status status = bench.backend->module_load(bench.device, text, length, &module, &err);
        const char *refused = SNIPPET_FILES[i].refused;
        if (refused ? status == JFA_OK || !strstr(err.message, refused) : status != JFA_OK)
            fail_msg("%s: %s", SNIPPET_FILES[i].file, status == JFA_OK ? "loads" : err.message);
        if (status == JFA_OK)
            bench.backend->module_unload(bench.device, module);
        bench_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_scalar_instruction_gives_its_value),
        cmocka_unit_test(each_collective_and_branch_gives_its_value),
        cmocka_unit_test(an_instruction_that_is_not_known_is_named_with_its_line),
        cmocka_unit_test(snippets_load_but_for_the_families_that_are_not_supported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
