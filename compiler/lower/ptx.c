// ptx.c: PTX instructions that sm_90a and sm_100a share and LLVM has no stable intrinsic for, one function
// each. Sections are those of the PTX ISA.
#include "compiler/lower/internal.h"

#include <string.h>

// "Parallel Synchronization and Communication Instructions: mbarrier"
void ptx_barrier_init(Lower *l, Value barrier, int count) {
    ir_asm(l, l->void_type, "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r", false,
           IR_ARGS(barrier, ir_int(l, count)));
}

void ptx_fence_barrier_init(Lower *l) {
    ir_asm(l, l->void_type, "fence.mbarrier_init.release.cluster;", "", false, NULL, 0);
}

// try_wait may give up after a while: loop until the phase of that parity has completed.
void ptx_wait(Lower *l, Value barrier, Value parity) {
    ir_asm(l, l->void_type,
           "{\n\t.reg .pred P1;\nLAB_WAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, [$0], $1;\n\t@P1 "
           "bra DONE;\n\tbra "
           "LAB_WAIT;\nDONE:\n\t}",
           "r,r", false, IR_ARGS(barrier, parity));
}

void ptx_arrive(Lower *l, Value barrier) {
    ir_asm(l, l->void_type, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r", false, IR_ARGS(barrier));
}

void ptx_arrive_if(Lower *l, Value condition, Value barrier) {
    Value flag = LLVMBuildZExt(l->builder, condition, l->i32, "");
    ir_asm(
        l, l->void_type,
        "{\n\t.reg .pred P1;\n\tsetp.ne.b32 P1, $1, 0;\n\t@P1 mbarrier.arrive.shared::cta.b64 _, [$0];\n\t}",
        "r,r", false, IR_ARGS(barrier, flag));
}

// At the barrier in the same place of another CTA: "mapa" gives its address in the cluster's window.
void ptx_arrive_at(Lower *l, Value barrier, Value cta) {
    ir_asm(l, l->void_type,
           "{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, $0, "
           "$1;\n\tmbarrier.arrive.shared::cluster.b64 _, "
           "[there];\n\t}",
           "r,r", false, IR_ARGS(barrier, cta));
}

// The first `ctas` lanes of the warp arrive, each at another CTA.
void ptx_arrive_at_all(Lower *l, Value lane, int ctas, Value barrier) {
    ir_asm(l, l->void_type,
           arena_format(l->arena,
                        "{\n\t.reg .pred P1;\n\t.reg .b32 there;\n\tsetp.lt.u32 P1, $1, %d;\n\t@P1 "
                        "mapa.shared::cluster.u32 there, $0, $1;\n\t@P1 mbarrier.arrive.shared::cluster.b64 "
                        "_, [there];\n\t}",
                        ctas),
           "r,r", false, IR_ARGS(barrier, lane));
}

void ptx_expect(Lower *l, Value barrier, Value bytes) {
    ir_asm(l, l->void_type, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r", false,
           IR_ARGS(barrier, bytes));
}

// "Data Movement and Conversion Instructions: cp.async.bulk.tensor"
static const char *coordinate_list(Lower *l, int first, int rank) {
    const char *list = "";
    for (int i = 0; i < rank; i++)
        list = arena_format(l->arena, "%s%s$%d", list, i ? ", " : "", first + i);
    return list;
}

static const char *constraint_list(Lower *l, const char *start, int rank) {
    for (int i = 0; i < rank; i++)
        start = arena_format(l->arena, "%s,r", start);
    return start;
}

// ctas: into the same place of so many CTAs of the cluster, each of whose barriers is told.
void ptx_load_tile(Lower *l, Value shared, Value map, Value *coordinates, int rank, Value barrier, int ctas) {
    Value args[8] = {shared, map, barrier};
    memcpy(args + 3, coordinates, sizeof(Value) * (size_t)rank);
    const char *list = coordinate_list(l, 3, rank);
    const char *text =
        ctas == 1 ? arena_format(l->arena,
                                 "cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::"
                                 "bytes [$0], [$1, {%s}], [$2];",
                                 rank, list)
                  : arena_format(l->arena,
                                 "{\n\t.reg .b16 ctas;\n\tmov.b16 ctas, %d;\n\tcp.async.bulk.tensor.%dd."
                                 "shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                                 "[$0], [$1, {%s}], [$2], ctas;\n\t}",
                                 (1 << ctas) - 1, rank, list);
    ir_asm(l, l->void_type, text, constraint_list(l, "r,l,r", rank), false, args, rank + 3);
}

void ptx_store_tile(Lower *l, Value map, Value *coordinates, int rank, Value shared) {
    Value args[8] = {map, shared};
    memcpy(args + 2, coordinates, sizeof(Value) * (size_t)rank);
    const char *text =
        arena_format(l->arena, "cp.async.bulk.tensor.%dd.global.shared::cta.bulk_group [$0, {%s}], [$1];",
                     rank, coordinate_list(l, 2, rank));
    ir_asm(l, l->void_type, text, constraint_list(l, "l,r", rank), false, args, rank + 2);
}

void ptx_store_commit(Lower *l) {
    ir_asm(l, l->void_type, "cp.async.bulk.commit_group;", "", false, NULL, 0);
}

void ptx_store_wait(Lower *l, bool only_reads) {
    ir_asm(l, l->void_type, only_reads ? "cp.async.bulk.wait_group.read 0;" : "cp.async.bulk.wait_group 0;",
           "", false, NULL, 0);
}

// "Memory Consistency Model: proxies"; "membar / fence"
void ptx_fence_async(Lower *l) {
    ir_asm(l, l->void_type, "fence.proxy.async.shared::cta;", "", false, NULL, 0);
}

void ptx_sync_warp(Lower *l) {
    ir_asm(l, l->void_type, "bar.warp.sync 0xffffffff;", "", false, NULL, 0);
}
void ptx_sync_cta(Lower *l) {
    ir_asm(l, l->void_type, "bar.sync 0;", "", false, NULL, 0);
}

// "barrier.cluster": release and acquire unless said otherwise
void ptx_sync_cluster(Lower *l) {
    ir_asm(l, l->void_type, "barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;", "", false,
           NULL, 0);
}

// "barrier": waits until so many threads have come, or only comes.
void ptx_named_barrier(Lower *l, Value number, int threads, bool waits) {
    ir_asm(l, l->void_type, arena_format(l->arena, "bar.%s $0, %d;", waits ? "sync" : "arrive", threads), "r",
           false, IR_ARGS(number));
}

// "Miscellaneous Instructions: setmaxnreg"
void ptx_set_registers(Lower *l, int regs, bool more) {
    ir_asm(l, l->void_type,
           arena_format(l->arena, "setmaxnreg.%s.sync.aligned.u32 %d;", more ? "inc" : "dec", regs), "",
           false, NULL, 0);
}

Value ptx_elect(Lower *l) {
    Value flag = ir_asm(l, l->i32,
                        "{\n\t.reg .pred P1;\n\telect.sync _|P1, 0xffffffff;\n\tselp.b32 $0, 1, 0, P1;\n\t}",
                        "=r", false, NULL, 0);
    return LLVMBuildICmp(l->builder, LLVMIntNE, flag, ir_int(l, 0), "");
}

// "ld, st" on the shared window by 32-bit address
void ptx_store_shared(Lower *l, Value address, int64_t offset, Value *words, int count) {
    if (count == 2) {
        ir_asm(l, l->void_type,
               arena_format(l->arena, "st.shared.v2.b32 [$0 + %lld], {$1, $2};", (long long)offset), "r,r,r",
               false, IR_ARGS(address, words[0], words[1]));
        return;
    }
    if (count == 1) {
        ir_asm(l, l->void_type, arena_format(l->arena, "st.shared.b32 [$0 + %lld], $1;", (long long)offset),
               "r,r", false, IR_ARGS(address, words[0]));
        return;
    }
    ir_asm(l, l->void_type,
           arena_format(l->arena, "st.shared.v4.b32 [$0 + %lld], {$1, $2, $3, $4};", (long long)offset),
           "r,r,r,r,r", false, IR_ARGS(address, words[0], words[1], words[2], words[3]));
}

void ptx_load_shared(Lower *l, Value address, int64_t offset, Value *words, int count) {
    LLVMTypeRef four[4] = {l->i32, l->i32, l->i32, l->i32};
    if (count == 2) {
        const char *text =
            arena_format(l->arena, "ld.shared.v2.b32 {$0, $1}, [$2 + %lld];", (long long)offset);
        Value loaded = ir_asm(l, LLVMStructTypeInContext(l->context, four, 2, false), text, "=r,=r,r", false,
                              IR_ARGS(address));
        for (unsigned i = 0; i < 2; i++)
            words[i] = LLVMBuildExtractValue(l->builder, loaded, i, "");
        return;
    }
    if (count == 1) {
        words[0] =
            ir_asm(l, l->i32, arena_format(l->arena, "ld.shared.b32 $0, [$1 + %lld];", (long long)offset),
                   "=r,r", false, IR_ARGS(address));
        return;
    }
    const char *text =
        arena_format(l->arena, "ld.shared.v4.b32 {$0, $1, $2, $3}, [$4 + %lld];", (long long)offset);
    Value loaded = ir_asm(l, LLVMStructTypeInContext(l->context, four, 4, false), text, "=r,=r,=r,=r,r",
                          false, IR_ARGS(address));
    for (unsigned i = 0; i < 4; i++)
        words[i] = LLVMBuildExtractValue(l->builder, loaded, i, "");
}

// "cvt": the first source goes to the upper half.
Value ptx_pack(Lower *l, Elem elem, Value low, Value high) {
    return ir_asm(l, l->i32,
                  elem == ELEM_BF16 ? "cvt.rn.bf16x2.f32 $0, $1, $2;" : "cvt.rn.f16x2.f32 $0, $1, $2;",
                  "=r,f,f", true, IR_ARGS(high, low));
}

Value ptx_math(Lower *l, const char *instruction, Value a) {
    return ir_asm(l, l->f32, arena_format(l->arena, "%s $0, $1;", instruction), "=f,f", true, IR_ARGS(a));
}
