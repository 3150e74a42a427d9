// queue.c: items that CTAs ask for while they work ("persistent via queue"). One thread takes them from a
// counter in global memory, some ahead of the roles, and hands them on through a ring in shared memory with a
// full and an empty barrier a stage. The first item of a CTA is its own number; behind the last item every
// role gets one that doesn't exist, and ends.
#include "compiler/lower/internal.h"

enum { CELL_BYTES = 8, COUNTER = 0, DONE = 4 };

QueueState queue_begin(Lower *l) {
    return (QueueState){ir_variable(l, l->i32, ir_int(l, 0)), ir_variable(l, l->i32, ir_int(l, 0))};
}

static void advance(Lower *l, const QueueState *queue) {
    Value next = ir_add(l, ir_get(l, l->i32, queue->stage), ir_int(l, 1));
    Value wraps = ir_equal(l, next, ir_int(l, l->plan->queue_depth));
    ir_set(l, queue->stage, ir_select(l, wraps, ir_int(l, 0), next));
    Value phase = ir_get(l, l->i32, queue->phase);
    ir_set(l, queue->phase, ir_xor(l, phase, LLVMBuildZExt(l->builder, wraps, l->i32, "")));
}

static Value at_stage(Lower *l, const QueueState *queue, int64_t offset) {
    Value place =
        ir_add(l, ir_int(l, offset), ir_mul(l, ir_get(l, l->i32, queue->stage), ir_int(l, CELL_BYTES)));
    return ir_add(l, l->shared_base, place);
}

Value queue_next(Lower *l, const QueueState *queue) {
    const Plan *plan = l->plan;
    Value item, empty = at_stage(l, queue, plan->queue_empty);
    ptx_wait(l, at_stage(l, queue, plan->queue_full), ir_get(l, l->i32, queue->phase));
    ptx_load_shared(l, at_stage(l, queue, plan->queue_items), 0, &item, 1);
    if (l->role->uses_values) {
        // The same in all lanes, and said so: branches on it are uniform.
        item = ir_intrinsic(l, "llvm.nvvm.shfl.sync.idx.i32", NULL, 0,
                            IR_ARGS(ir_int(l, -1), item, ir_int(l, 0), ir_int(l, 31)));
        ptx_arrive_if(l, ir_equal(l, l->lane, ir_int(l, 0)), empty);
    } else {
        ptx_arrive(l, empty);
    }
    advance(l, queue);
    return item;
}

static Value counted(Lower *l, int counter) {
    return ir_asm(l, l->i32,
                  arena_format(l->arena, "atom.relaxed.gpu.global.add.u32 $0, [$1+%d], 1;", counter), "=r,l",
                  false, IR_ARGS(arg_value(l, ARG_QUEUE, 0, 0)));
}

// The last CTA that finds nothing left makes the counters ready for the next launch: nobody counts any more.
static void finish(Lower *l, Value ctas) {
    Value last = ir_equal(l, counted(l, DONE), ir_sub(l, ctas, ir_int(l, 1)));
    LLVMBasicBlockRef reset = ir_block(l, "queue_reset"), done = ir_block(l, "queue_finished");
    ir_branch(l, last, reset, done);
    ir_at(l, reset);
    ir_asm(l, l->void_type,
           arena_format(l->arena,
                        "st.relaxed.gpu.global.u32 [$0+%d], 0;\n\tst.relaxed.gpu.global.u32 [$0+%d], 0;",
                        COUNTER, DONE),
           "l", false, IR_ARGS(arg_value(l, ARG_QUEUE, 0, 0)));
    ir_jump(l, done);
    ir_at(l, done);
}

void queue_serve(Lower *l) {
    const Plan *plan = l->plan;
    LLVMBasicBlockRef chosen = ir_block(l, "queue"), loop = ir_block(l, "queue_loop"),
                      more = ir_block(l, "queue_more"), none = ir_block(l, "queue_none"),
                      rejoin = ir_block(l, "queue_rejoin");
    ir_branch(l, ptx_elect(l), chosen, rejoin);
    ir_at(l, chosen);
    Value ctas = ir_intrinsic(l, "llvm.nvvm.read.ptx.sreg.nctaid.x", NULL, 0, NULL, 0);
    Value next = ir_variable(l, l->i32, ir_intrinsic(l, "llvm.nvvm.read.ptx.sreg.ctaid.x", NULL, 0, NULL, 0));
    QueueState queue = queue_begin(l);
    ir_jump(l, loop);
    ir_at(l, loop);
    Value item = ir_get(l, l->i32, next);
    ptx_wait(l, at_stage(l, &queue, plan->queue_empty),
             ir_xor(l, ir_get(l, l->i32, queue.phase), ir_int(l, 1)));
    ptx_store_shared(l, at_stage(l, &queue, plan->queue_items), 0, &item, 1);
    ptx_arrive(l, at_stage(l, &queue, plan->queue_full));
    advance(l, &queue);
    ir_branch(l, LLVMBuildICmp(l->builder, LLVMIntULT, item, arg_value(l, ARG_ITEMS, 0, 0), ""), more, none);
    ir_at(l, more);
    ir_set(l, next, ir_add(l, ctas, counted(l, COUNTER)));
    ir_jump(l, loop);
    ir_at(l, none);
    finish(l, ctas);
    ir_jump(l, rejoin);
    ir_at(l, rejoin);
}
