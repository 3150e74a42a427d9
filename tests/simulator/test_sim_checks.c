// Each check of the simulator with a small kernel that it must report, and the kernel's mended twin that must
// pass.
#include "tests/simulator/harness.h"

#include <stdio.h>
#include <string.h>

enum { BUFFER = 4096, SEEDS = 3 };

#define PROLOGUE                                                                                             \
    ".version 8.6\n.target sm_100a\n.address_size 64\n.file 1 \"check.jfa\"\n"                               \
    ".extern .shared .align 1024 .b8 dyn[];\n.shared .align 16 .b32 words[128];\n.shared .align 8 .b64 "     \
    "full;\n"                                                                                                \
    ".shared .align 8 .b64 done;\n.shared .align 4 .b32 slot;\n"                                             \
    ".visible .entry k(.param .u64 out, .param .u64 in)\n.maxntid 128, 1, 1\n.minnctapersm 1\n{\n"           \
    ".reg .pred p, q, acc, lead; .reg .b32 tid, warp, lane, v, w, x, y, sa, mf, md, t, ad, place, r<8>;\n"   \
    ".reg .b64 o, g, da, db, oo;\nmov.u32 tid, %tid.x; shr.u32 warp, tid, 5; and.b32 lane, tid, 31;\n"       \
    "mov.u32 sa, dyn; mov.u32 mf, full; mov.u32 md, done; mov.u32 place, words; shl.b32 x, tid, 2;\n"        \
    "add.u32 place, place, x; ld.param.u64 o, [out]; ld.param.u64 g, [in]; setp.eq.u32 lead, tid, 0;\n"      \
    "setp.ne.u32 q, warp, 0; setp.ne.u32 acc, 0, 0; mov.u32 v, 0;\n.loc 1 7 1\n"

#define BARRIERS                                                                                             \
    "@lead mbarrier.init.shared::cta.b64 [mf], 1; @lead mbarrier.init.shared::cta.b64 [md], 1;\n"            \
    "@lead fence.mbarrier_init.release.cluster; bar.sync 0;\n"

#define TENSOR_BEGIN                                                                                         \
    "@q bra A0;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 256;\n"                     \
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nA0:\ntcgen05.fence::before_thread_sync;\n"  \
    "bar.sync 0;\ntcgen05.fence::after_thread_sync; ld.shared.u32 t, [slot]; shl.b32 ad, warp, 21; add.u32 " \
    "ad, ad, t;\n"

#define TENSOR_END                                                                                           \
    "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n@q bra Z0;\n"         \
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 t, 256;\nZ0:\n"

// 32 KB of shared memory from the same 4 KB of `in`, eight times; thread 0 issues, all wait.
#define LOAD                                                                                                 \
    "@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [mf], 32768; mov.u32 y, sa; mov.u32 x, 0;\n"         \
    "LL: @lead cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [y], [g], 4096, [mf];\n"        \
    "add.u32 y, y, 4096; add.u32 x, x, 1; setp.lt.u32 p, x, 8; @p bra LL;\n"                                 \
    "LW: mbarrier.try_wait.parity.shared::cta.b64 p, [mf], 0; @!p bra LW;\n"

// One K step of M = N = 128 on the two tiles, thread 0 issues.
#define DESCRIPTORS                                                                                          \
    "shr.u32 x, sa, 4; or.b32 x, x, 0x10000; mov.b64 da, {x, 0x40004040};\n"                                 \
    "add.u32 x, x, 1024; mov.b64 db, {x, 0x40004040};\n"
#define PRODUCT                                                                                              \
    "@lead tcgen05.mma.cta_group::1.kind::f16 [t], da, db, 0x08200490, acc;\n"                               \
    "@lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [md];\n"
#define WAIT_PRODUCT "PW: mbarrier.try_wait.parity.shared::cta.b64 p, [md], 0; @!p bra PW;\n"
#define LOAD_RESULT "tcgen05.ld.sync.aligned.32x32b.x2.b32 {r0, r1}, [ad];\n"

typedef struct {
    const char *name;
    const char *before, *broken, *mended, *after;
    SimFaultKind kind; // SIM_FAULT_NONE: which one depends on the seed
    const char *says;
} Case;

static const Case CASES[] = {
    {"a read that nothing orders after another warp's write",
     "st.shared.u32 [place], tid; bar.sync 0; @lead st.shared.u32 [words+256], tid;\n", "", "bar.sync 0;\n",
     "setp.eq.u32 p, tid, 64; @p ld.shared.u32 v, [words+256];\n", SIM_FAULT_RACE, "PTX line"},
    {"a write that nothing orders after another warp's read",
     "st.shared.u32 [place], tid; bar.sync 0; setp.eq.u32 p, tid, 64; @p ld.shared.u32 v, [words];\n", "",
     "bar.sync 0;\n", "@lead st.shared.u32 [words], tid;\n", SIM_FAULT_RACE, "PTX line"},
    {"a bulk store of generic writes without a proxy fence", "add.u32 y, sa, x; st.shared.u32 [y], tid;\n",
     "bar.sync 0;\n", "fence.proxy.async.shared::cta; bar.sync 0;\n",
     "@lead cp.async.bulk.global.shared::cta.bulk_group [o], [sa], 512; cp.async.bulk.commit_group; "
     "cp.async.bulk.wait_group 0;\n",
     SIM_FAULT_PROXY, "fence.proxy.async"},
    {"a proxy fence after the barrier by the thread that issues",
     "add.u32 y, sa, x; st.shared.u32 [y], tid;\n", "bar.sync 0; fence.proxy.async.shared::cta;\n",
     "fence.proxy.async.shared::cta; bar.sync 0;\n",
     "@lead cp.async.bulk.global.shared::cta.bulk_group [o], [sa], 512; cp.async.bulk.commit_group; "
     "cp.async.bulk.wait_group 0;\n",
     SIM_FAULT_PROXY, "fence.proxy.async"},
    {"a source rewritten before its bulk store has read it",
     "add.u32 y, sa, x; st.shared.u32 [y], tid; fence.proxy.async.shared::cta; bar.sync 0;\n"
     "@lead cp.async.bulk.global.shared::cta.bulk_group [o], [sa], 512; cp.async.bulk.commit_group;\n",
     "", "cp.async.bulk.wait_group.read 0;\n",
     "bar.sync 0; st.shared.u32 [y], lane; cp.async.bulk.wait_group 0;\n", SIM_FAULT_RACE, ""},
    {"an exit while a bulk store is under way",
     "add.u32 y, sa, x; st.shared.u32 [y], tid; fence.proxy.async.shared::cta; bar.sync 0;\n"
     "@lead cp.async.bulk.global.shared::cta.bulk_group [o], [sa], 512; cp.async.bulk.commit_group;\n",
     "", "cp.async.bulk.wait_group 0;\n", "", SIM_FAULT_EXIT, "bulk store"},
    {"loaded bytes that the barrier was not told to expect",
     BARRIERS "@lead cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [sa], [g], 1024, [mf];\n",
     "@lead mbarrier.arrive.shared::cta.b64 _, [mf];\n",
     "@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [mf], 1024;\n",
     "W: mbarrier.try_wait.parity.shared::cta.b64 p, [mf], 0; @!p bra W; ld.shared.u32 v, [sa];\n",
     SIM_FAULT_NONE, ""},
    {"a wait for a load that is missing",
     BARRIERS "@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [mf], 1024;\n"
              "@lead cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [sa], [g], 1024, [mf];\n",
     "bar.sync 0;\n", "W: mbarrier.try_wait.parity.shared::cta.b64 p, [mf], 0; @!p bra W;\n",
     "ld.shared.u32 v, [sa]; X: mbarrier.try_wait.parity.shared::cta.b64 p, [mf], 0; @!p bra X;\n",
     SIM_FAULT_NONE, ""},
    {"a wait with the wrong parity", BARRIERS "@lead mbarrier.arrive.shared::cta.b64 _, [mf];\nW:\n",
     "mbarrier.try_wait.parity.shared::cta.b64 p, [mf+8], 0;\n",
     "mbarrier.try_wait.parity.shared::cta.b64 p, [mf], 0;\n", "@!p bra W;\n", SIM_FAULT_DEADLOCK,
     "parity 0"},
    {"a second phase that never completes", BARRIERS "@lead mbarrier.arrive.shared::cta.b64 _, [mf];\nW:\n",
     "mbarrier.try_wait.parity.shared::cta.b64 p, [mf], 0; @!p bra W; V: "
     "mbarrier.try_wait.parity.shared::cta.b64 p, [mf], 1; @!p bra V;\n",
     "mbarrier.try_wait.parity.shared::cta.b64 p, [mf], 0; @!p bra W;\n", "", SIM_FAULT_DEADLOCK,
     "check.jfa:7"},
    {"a named barrier that too few threads reach", "@q bra R;\n", "bar.sync 1, 64;\n", "bar.sync 1, 32;\n",
     "R:\n", SIM_FAULT_DEADLOCK, "barrier"},
    {"a read of shared memory that nobody wrote", "", "", "st.shared.u32 [place], tid;\n",
     "ld.shared.u32 v, [place];\n", SIM_FAULT_UNWRITTEN, "never written"},
    {"a read of global memory that nobody wrote", "", "ld.global.u32 v, [o];\n", "ld.global.u32 v, [g];\n",
     "", SIM_FAULT_UNWRITTEN, "never written"},
    {"a read beyond an allocation", "", "ld.global.u32 v, [g+4096];\n", "ld.global.u32 v, [g+4092];\n", "",
     SIM_FAULT_BOUNDS, "outside"},
    {"a write before an allocation", "", "st.global.u32 [o+-4], tid;\n", "@lead st.global.u32 [o], tid;\n",
     "", SIM_FAULT_BOUNDS, "outside"},
    {"a write beyond the CTA's shared memory", "", "@lead st.shared.u32 [sa+40960], tid;\n",
     "@lead st.shared.u32 [sa+40956], tid;\n", "", SIM_FAULT_BOUNDS, ""},
    {"a bulk load that ends beyond an allocation",
     BARRIERS "@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [mf], 1024;\n",
     "@lead cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [sa], [g+3584], 1024, [mf];\n",
     "@lead cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [sa], [g+3072], 1024, [mf];\n",
     "W: mbarrier.try_wait.parity.shared::cta.b64 p, [mf], 0; @!p bra W;\n", SIM_FAULT_BOUNDS, "outside"},
    {"a misaligned access", "", "ld.global.u32 v, [g+2];\n", "ld.global.u32 v, [g+4];\n", "",
     SIM_FAULT_ALIGNMENT, ""},
    {"a misaligned vector", "", "ld.global.v4.u32 {r0, r1, r2, r3}, [g+8];\n",
     "ld.global.v4.u32 {r0, r1, r2, r3}, [g+16];\n", "", SIM_FAULT_ALIGNMENT, ""},
    {"tensor memory that is not freed", TENSOR_BEGIN, "", TENSOR_END, "", SIM_FAULT_TENSOR_MEMORY,
     "not freed"},
    {"an allocation after the permit was given up", "@q bra A1;\n",
     "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n", "",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\nld.shared.u32 t, [slot];\n"
     "tcgen05.dealloc.cta_group::1.sync.aligned.b32 t, 32;\nA1:\n",
     SIM_FAULT_TENSOR_MEMORY, "relinquish"},
    {"tensor memory used after it was freed",
     TENSOR_BEGIN "tcgen05.st.sync.aligned.32x32b.x2.b32 [ad], {tid, tid}; tcgen05.wait::st.sync.aligned;\n",
     TENSOR_END LOAD_RESULT, LOAD_RESULT "tcgen05.wait::ld.sync.aligned;\n" TENSOR_END, "",
     SIM_FAULT_TENSOR_MEMORY, "not allocated"},
    {"a load from the lanes of another warp",
     TENSOR_BEGIN "tcgen05.st.sync.aligned.32x32b.x2.b32 [ad], {tid, tid}; tcgen05.wait::st.sync.aligned;\n",
     "xor.b32 ad, ad, 0x200000;\n", "", LOAD_RESULT "tcgen05.wait::ld.sync.aligned;\n" TENSOR_END,
     SIM_FAULT_TENSOR_MEMORY, "lane"},
    {"columns that were not allocated", TENSOR_BEGIN, "add.u32 ad, ad, 255;\n", "add.u32 ad, ad, 254;\n",
     "tcgen05.st.sync.aligned.32x32b.x2.b32 [ad], {tid, tid}; tcgen05.wait::st.sync.aligned;\n" TENSOR_END,
     SIM_FAULT_TENSOR_MEMORY, "allocated"},
    {"tensor memory read before anybody wrote it", TENSOR_BEGIN, "",
     "tcgen05.st.sync.aligned.32x32b.x2.b32 [ad], {tid, tid}; tcgen05.wait::st.sync.aligned;\n",
     LOAD_RESULT "tcgen05.wait::ld.sync.aligned;\n" TENSOR_END, SIM_FAULT_UNWRITTEN, "never written"},
    {"a loaded register used before wait::ld",
     TENSOR_BEGIN
     "tcgen05.st.sync.aligned.32x32b.x2.b32 [ad], {tid, tid}; tcgen05.wait::st.sync.aligned;\n" LOAD_RESULT,
     "", "tcgen05.wait::ld.sync.aligned;\n", "add.u32 v, r0, r1; tcgen05.wait::ld.sync.aligned;\n" TENSOR_END,
     SIM_FAULT_REGISTERS, "wait::ld"},
    {"a loaded register used before wait::ld by way of a move",
     TENSOR_BEGIN
     "tcgen05.st.sync.aligned.32x32b.x2.b32 [ad], {tid, tid}; tcgen05.wait::st.sync.aligned;\n" LOAD_RESULT
     "mov.b64 da, {r0, r1}; mov.b64 {x, y}, da;\n",
     "", "tcgen05.wait::ld.sync.aligned;\n", "add.u32 v, x, y; tcgen05.wait::ld.sync.aligned;\n" TENSOR_END,
     SIM_FAULT_REGISTERS, "wait::ld"},
    {"an own store read back before wait::st",
     TENSOR_BEGIN "tcgen05.st.sync.aligned.32x32b.x2.b32 [ad], {tid, tid};\n", "",
     "tcgen05.wait::st.sync.aligned;\n",
     LOAD_RESULT "tcgen05.wait::ld.sync.aligned; tcgen05.wait::st.sync.aligned;\n" TENSOR_END, SIM_FAULT_RACE,
     "wait::st"},
    {"an operand stored into tensor memory without wait::st before the product",
     BARRIERS LOAD TENSOR_BEGIN DESCRIPTORS
     "tcgen05.st.sync.aligned.32x32b.x8.b32 [ad+128], {tid, tid, tid, tid, tid, tid, tid, tid};\n",
     "", "tcgen05.wait::st.sync.aligned;\n",
     "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; add.u32 y, t, 128;\n"
     "@lead tcgen05.mma.cta_group::1.kind::f16 [t], [y], db, 0x08200490, acc;\n"
     "@lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [md];\n" WAIT_PRODUCT
     "tcgen05.wait::st.sync.aligned;\n" TENSOR_END,
     SIM_FAULT_RACE, "wait"},
    {"a product's operand without fence::before_thread_sync at its writers",
     BARRIERS LOAD TENSOR_BEGIN DESCRIPTORS "tcgen05.st.sync.aligned.32x32b.x8.b32 [ad+128], {tid, tid, tid, "
                                            "tid, tid, tid, tid, tid}; tcgen05.wait::st.sync.aligned;\n",
     "", "tcgen05.fence::before_thread_sync;\n",
     "bar.sync 0; tcgen05.fence::after_thread_sync; add.u32 y, t, 128;\n"
     "@lead tcgen05.mma.cta_group::1.kind::f16 [t], [y], db, 0x08200490, acc;\n"
     "@lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [md];\n" WAIT_PRODUCT
         TENSOR_END,
     SIM_FAULT_RACE, "before_thread_sync"},
    {"a result read without fence::after_thread_sync",
     BARRIERS LOAD TENSOR_BEGIN DESCRIPTORS PRODUCT WAIT_PRODUCT, "", "tcgen05.fence::after_thread_sync;\n",
     LOAD_RESULT "tcgen05.wait::ld.sync.aligned;\n" TENSOR_END, SIM_FAULT_RACE, "after_thread_sync"},
    {"a result read without a wait for the commit", BARRIERS LOAD TENSOR_BEGIN DESCRIPTORS PRODUCT,
     "bar.sync 0;\n", WAIT_PRODUCT,
     "tcgen05.fence::after_thread_sync;\n" LOAD_RESULT
     "tcgen05.wait::ld.sync.aligned;\nPX: mbarrier.try_wait.parity.shared::cta.b64 p, [md], 0; @!p bra "
     "PX;\n" TENSOR_END,
     SIM_FAULT_NONE, ""},
    {"an operand overwritten while the product reads it", BARRIERS LOAD TENSOR_BEGIN DESCRIPTORS PRODUCT, "",
     "PV: mbarrier.try_wait.parity.shared::cta.b64 p, [md], 0; @!p bra PV;\n",
     "@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [mf], 1024;\n"
     "@lead cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [sa], [g], 1024, "
     "[mf];\n" WAIT_PRODUCT "M: mbarrier.try_wait.parity.shared::cta.b64 p, [mf], 1; @!p bra M;\n" TENSOR_END,
     SIM_FAULT_RACE, ""},
    {"an operand written by threads without a proxy fence",
     BARRIERS LOAD "mov.u32 x, tid; FL: shl.b32 y, x, 2; add.u32 y, y, sa; st.shared.u32 [y], 0; add.u32 x, "
                   "x, 128; setp.lt.u32 p, x, 8192; @p bra FL;\n",
     "", "fence.proxy.async.shared::cta;\n", TENSOR_BEGIN DESCRIPTORS PRODUCT WAIT_PRODUCT TENSOR_END,
     SIM_FAULT_PROXY, "fence.proxy.async"},
    {"a matrix descriptor without its version", BARRIERS LOAD TENSOR_BEGIN DESCRIPTORS,
     "mov.b64 da, {x, 0x40000040};\n", "", PRODUCT WAIT_PRODUCT TENSOR_END, SIM_FAULT_DESCRIPTOR, "version"},
    {"an instruction descriptor with an impossible shape", BARRIERS LOAD TENSOR_BEGIN DESCRIPTORS,
     "@lead tcgen05.mma.cta_group::1.kind::f16 [t], da, db, 0x09200490, acc;\n", "",
     PRODUCT WAIT_PRODUCT TENSOR_END, SIM_FAULT_DESCRIPTOR, "M must be"},
    {"an operand beyond the CTA's shared memory", BARRIERS LOAD TENSOR_BEGIN DESCRIPTORS,
     "add.u32 x, x, 1024; mov.b64 db, {x, 0x40004040};\n", "", PRODUCT WAIT_PRODUCT TENSOR_END,
     SIM_FAULT_NONE, ""},
    {"more arrivals than the barrier expects", BARRIERS,
     "@lead mbarrier.arrive.shared::cta.b64 _, [mf], 2;\n",
     "@lead mbarrier.arrive.shared::cta.b64 _, [mf];\n", "", SIM_FAULT_BARRIER, "arrivals"},
    {"a barrier that was not initialised", "", "@lead mbarrier.arrive.shared::cta.b64 _, [mf];\n", BARRIERS,
     "", SIM_FAULT_BARRIER, "initialised"},
    {"a barrier initialised twice", BARRIERS, "@lead mbarrier.init.shared::cta.b64 [mf], 1;\n",
     "@lead mbarrier.inval.shared::cta.b64 [mf]; @lead mbarrier.init.shared::cta.b64 [mf], 1;\n", "",
     SIM_FAULT_BARRIER, "again"},
    {"a count of zero", "", "@lead mbarrier.init.shared::cta.b64 [mf], 0;\n",
     "@lead mbarrier.init.shared::cta.b64 [mf], 1;\n", "", SIM_FAULT_BARRIER, "count"},
    {"a store over a barrier", BARRIERS, "@lead st.shared.u32 [mf+4], 0;\n", "", "", SIM_FAULT_BARRIER,
     "overwritten"},
    {"an aligned instruction in a diverged warp", TENSOR_BEGIN "setp.eq.u32 p, lane, 0;\n",
     "@p bra J; tcgen05.wait::st.sync.aligned; J:\n", "tcgen05.wait::st.sync.aligned;\n", TENSOR_END,
     SIM_FAULT_CONVERGENCE, "aligned"},
    {"a register that nothing writes", "", "add.u32 v, tid, r7;\n", "add.u32 v, tid, tid;\n", "",
     SIM_FAULT_REGISTERS, "register r7"},
    {"a predicate that nothing writes", ".reg .pred never;\n", "@never bra U; U:\n", "", "",
     SIM_FAULT_REGISTERS, "register never"},
    {"a trap", "", "trap;\n", "", "", SIM_FAULT_TRAP, ""},
    {"more registers than the CTA has", "setp.lt.u32 p, warp, 4;\n", "setmaxnreg.inc.sync.aligned.u32 256;\n",
     "setmaxnreg.dec.sync.aligned.u32 64;\n", "", SIM_FAULT_NONE, ""},
};

static void run_case(const Case *one, bool mended, int seed) {
    char text[16384];
    uint32_t data[BUFFER / 4];
    for (int i = 0; i < BUFFER / 4; i++)
        data[i] = 0x3F803F80u; // bf16 1, 1
    snprintf(text, sizeof text, "%s%s%s%s\nret;\n}\n", PROLOGUE, one->before,
             mended ? one->mended : one->broken, one->after);
    Bench bench = bench_open("sm_100a");
    bench_option(&bench, "seed", seed);
    bench_load(&bench, text);
    bench_param_u64(&bench, bench_alloc(&bench, BUFFER, NULL));
    bench_param_u64(&bench, bench_alloc(&bench, BUFFER, data));
    const SimFault *fault = bench_run(&bench, (BenchLaunch){"k", 1, 128, 1, 40960});
    if (mended && fault->kind != SIM_FAULT_NONE)
        fail_msg("the mended twin of '%s' (seed %d) is reported: %s", one->name, seed, fault->text);
    if (!mended && fault->kind == SIM_FAULT_NONE)
        fail_msg("'%s' (seed %d) is not reported", one->name, seed);
    if (!mended && one->kind != SIM_FAULT_NONE &&
        (fault->kind != one->kind || !strstr(fault->text, one->says)))
        fail_msg("'%s' (seed %d) should be '%s' with '%s', but is: %s", one->name, seed,
                 jfa_sim_fault_name(one->kind), one->says, fault->text);
    if (!mended && fault->kind != SIM_FAULT_DEADLOCK &&
        (fault->file_line != 7 || strcmp(fault->file, "check.jfa")))
        fail_msg("'%s': the report has no place in the source: %s", one->name, fault->text);
    bench_close(&bench);
}

static void each_check_reports_its_kernel(void **state) {
    const Case *one = *state;
    for (int seed = 0; seed < SEEDS; seed++)
        run_case(one, false, seed);
}

static void each_mended_twin_passes(void **state) {
    const Case *one = *state;
    for (int seed = 0; seed < SEEDS; seed++)
        run_case(one, true, seed);
}

// Rank 1 of a pair exits at once, or after the cluster barrier at which rank 0 arrives when it has stored.
static void a_cta_that_exits_before_its_peer_is_done_with_it_is_reported(void **state) {
    (void)state;
    static const char *const STORE = "mapa.shared::cluster.u32 y, place, 1; mov.u32 x, 0;\nL: add.u32 x, x, "
                                     "1; setp.lt.u32 p, x, 20000; @p bra L;\n"
                                     "st.shared::cluster.u32 [y], tid;\n";
    static const char *const BARRIER =
        "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n";
    for (int mended = 0; mended < 2; mended++) {
        char text[8192];
        snprintf(text, sizeof text,
                 "%smov.u32 w, %%cluster_ctarank; setp.eq.u32 p, w, 1; @p bra END;\n%sEND:\n%sret;\n}\n",
                 PROLOGUE, STORE, mended ? BARRIER : "");
        Bench bench = bench_open("sm_100a");
        bench_load(&bench, text);
        bench_param_u64(&bench, 0);
        bench_param_u64(&bench, 0);
        BenchLaunch launch = {"k", 2, 128, 2, 40960};
        if (mended)
            bench_run_well(&bench, launch);
        else
            bench_run_fault(&bench, launch, SIM_FAULT_EXIT, "rank 1, which has exited");
        bench_close(&bench);
    }
}

static void an_endless_loop_ends_at_the_limit_of_steps(void **state) {
    (void)state;
    Bench bench = bench_open("sm_100a");
    bench_option(&bench, "steps", 10000);
    bench_load(&bench, PROLOGUE "L: bra L;\nret;\n}\n");
    bench_param_u64(&bench, 0);
    bench_param_u64(&bench, 0);
    bench_run_fault(&bench, (BenchLaunch){"k", 1, 128, 1, 40960}, SIM_FAULT_DEADLOCK, "10000 instructions");
    bench_close(&bench);
}

// Clusters 3 and up have the fault; the report is that of cluster 3, and the whole text is the same, with any
// number of threads.
static void a_report_does_not_depend_on_the_threads_of_the_host(void **state) {
    (void)state;
    char first[1536] = "";
    for (int threads = 1; threads <= 8; threads *= 2)
        for (int round = 0; round < 3; round++) {
            Bench bench = bench_open("sm_100a,sms=8");
            bench_option(&bench, "seed", 5);
            bench_option(&bench, "threads", threads);
            bench_load(&bench, PROLOGUE "mov.u32 x, %ctaid.x; setp.ge.u32 p, x, 3; bar.sync 0; @p "
                                        "ld.shared.u32 v, [place]; ret;\n}\n");
            bench_param_u64(&bench, 0);
            bench_param_u64(&bench, 0);
            const SimFault *fault = bench_run(&bench, (BenchLaunch){"k", 32, 128, 1, 40960});
            assert_int_equal(fault->cta, 3);
            if (!first[0])
                memcpy(first, fault->text, sizeof first);
            assert_string_equal(first, fault->text);
            bench_close(&bench);
        }
}

// A wait in vain: with the instructions `after_try` behind each try that failed.
static Bench wait_in_vain(const char *after_try) {
    static char text[4096];
    Bench bench = bench_open("sm_100a");
    snprintf(text, sizeof text, "%s%s bra W;\nE: ret;\n}\n",
             PROLOGUE BARRIERS "mov.u64 da, %globaltimer;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, "
                               "[mf], 0; @p bra E; ",
             after_try);
    bench_load(&bench, text);
    return bench;
}

static void time_passes_while_all_wait_so_that_a_kernel_can_give_up(void **state) {
    (void)state;
    static const char ONE_HOUR[] = "mov.u64 db, %globaltimer; sub.u64 db, db, da; setp.ge.u64 acc, db, "
                                   "3600000000000; @acc st.global.u64 [o], db; @acc ";
    for (int seed = 0; seed < SEEDS; seed++)
        for (int traps = 0; traps < 2; traps++) {
            char body[256];
            snprintf(body, sizeof body, "%s%s", ONE_HOUR, traps ? "trap;" : "bra E;");
            Bench bench = wait_in_vain(body);
            bench_option(&bench, "seed", seed);
            uint64_t waited = 0, out = bench_alloc(&bench, BUFFER, NULL);
            bench_param_u64(&bench, out);
            bench_param_u64(&bench, 0);
            BenchLaunch launch = {"k", 1, 128, 1, 40960};
            if (traps)
                bench_run_fault(&bench, launch, SIM_FAULT_TRAP, "check.jfa:7");
            else
                bench_run_well(&bench, launch);
            bench_read(&bench, &waited, out, sizeof waited);
            assert_true(waited >= 3600000000000 && waited < 3 * 3600000000000);
            bench_close(&bench);
        }
}

static void a_wait_without_a_limit_is_a_deadlock_though_the_kernel_reads_a_clock(void **state) {
    (void)state;
    Bench bench = wait_in_vain("mov.u64 db, %globaltimer;");
    bench_param_u64(&bench, 0);
    bench_param_u64(&bench, 0);
    bench_run_fault(&bench, (BenchLaunch){"k", 1, 128, 1, 40960}, SIM_FAULT_DEADLOCK, "parity 0");
    bench_close(&bench);
}

int main(void) {
    enum { COUNT = sizeof CASES / sizeof CASES[0] };
    static struct CMUnitTest tests[2 * COUNT + 5];
    static char names[2 * COUNT][160];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[2 * i], sizeof names[0], "%s is reported", CASES[i].name);
        snprintf(names[2 * i + 1], sizeof names[0], "without %s the kernel passes", CASES[i].name);
        tests[2 * i] =
            (struct CMUnitTest){names[2 * i], each_check_reports_its_kernel, NULL, NULL, (void *)&CASES[i]};
        tests[2 * i + 1] =
            (struct CMUnitTest){names[2 * i + 1], each_mended_twin_passes, NULL, NULL, (void *)&CASES[i]};
    }
    const struct CMUnitTest more[] = {
        cmocka_unit_test(a_cta_that_exits_before_its_peer_is_done_with_it_is_reported),
        cmocka_unit_test(an_endless_loop_ends_at_the_limit_of_steps),
        cmocka_unit_test(a_report_does_not_depend_on_the_threads_of_the_host),
        cmocka_unit_test(time_passes_while_all_wait_so_that_a_kernel_can_give_up),
        cmocka_unit_test(a_wait_without_a_limit_is_a_deadlock_though_the_kernel_reads_a_clock),
    };
    memcpy(tests + 2 * COUNT, more, sizeof more);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
