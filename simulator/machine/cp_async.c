// cp_async.c: the small asynchronous operations: cp.async of 4 to 16 bytes a thread, st.async and red.async
// to another CTA's shared memory (PTX ISA: "cp.async", "cp.async.commit_group", "cp.async.mbarrier.arrive",
// "st.async", "red.async").
#include "simulator/machine/decode.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- cp.async

// One operation a warp; lanes[2 i] and [2 i + 1] are where lane i copies to and from, disabled[0] its lanes,
// bytes the size, disabled[1] the bytes that are read (the rest is zero).
static void complete_copy(Cta *cta, Async *async) {
    Warp *warp = &cta->warps[async->warp];
    Sim *sim = cta->cluster->launch->sim;
    FOR_LANES(lane, async->disabled[0]) {
        uint8_t bytes[16] = {0};
        uint64_t to = async->lanes[2 * lane], from = async->lanes[2 * lane + 1];
        uint32_t read = async->disabled[1], offset = (uint32_t)(to & 0xFFFFFF) - SHARED_BASE;
        Allocation *a = read ? machine_allocation(sim, from, read) : NULL;
        if (read && !a) {
            fault_async(cta, async, SIM_FAULT_BOUNDS,
                        "%u bytes at global address 0x%llx are outside every allocation", read,
                        (unsigned long long)from);
            return;
        }
        if (a && memchr(a->written + (from - a->address), 0, read)) {
            fault_async(cta, async, SIM_FAULT_UNWRITTEN,
                        "global address 0x%llx is read, but was never written", (unsigned long long)from);
            return;
        }
        if (a)
            memcpy(bytes, a->data + (from - a->address), read);
        if (!race_shared_write(cta, NULL, async->op, async, offset, async->bytes))
            return;
        memcpy(cta->shared + offset, bytes, async->bytes);
    }
    uint32_t *done = &warp->copies_done.at[async->channel];
    *done = *done > async->time ? *done : async->time;
}

static uint64_t value_at(Warp *warp, const Op *op, int i, int lane) {
    return lane_value(warp, &op->operands[i], lane) + (uint64_t)(int64_t)op->operands[i].add;
}

// Operands: destination, source, size, [bytes to read].
static void run_copy(Warp *warp, const Op *op, uint32_t mask) {
    Async *async = async_new(warp, op, complete_copy);
    if (!async)
        return;
    async->lanes = malloc(sizeof *async->lanes * 2 * LANES);
    async->copy_group = warp->copy_group;
    async->bytes = (uint32_t)op->immediate;
    async->disabled[0] = mask;
    async->disabled[1] = async->bytes;
    FOR_LANES(lane, mask) {
        uint32_t offset;
        if (!async->lanes ||
            !machine_shared(warp, op, (uint32_t)value_at(warp, op, 0, (int)lane), async->bytes, &offset))
            return;
        async->lanes[2 * lane] = (uint32_t)value_at(warp, op, 0, (int)lane);
        async->lanes[2 * lane + 1] = value_at(warp, op, 1, (int)lane);
    }
    if (op->operand_count > 3)
        async->disabled[1] = (uint32_t)lane_value(warp, &op->operands[3], first_lane(mask));
    async->disabled[1] = async->disabled[1] < async->bytes ? async->disabled[1] : async->bytes;
    async_start(warp, async);
}

static void run_commit(Warp *warp, const Op *op, uint32_t mask) {
    (void)op, (void)mask;
    warp->copy_group++;
}

bool copies_are_over(const Warp *warp, int newest_allowed) {
    for (const Async *async = warp->cta->pending; async; async = async->next)
        if (async->copy_group >= 0 && async->warp == warp->number &&
            async->copy_group < warp->copy_group - newest_allowed)
            return false;
    return true;
}

static void run_wait(Warp *warp, const Op *op, uint32_t mask) {
    (void)mask;
    int allowed = op->mode ? -1 : (int)op->immediate; // wait_all: also what is in no group yet
    if (copies_are_over(warp, allowed)) {
        clock_join(&warp->clocks.seen, &warp->copies_done);
        return;
    }
    warp_block(warp, WAIT_COPIES, 0, 0);
    Group *group = &warp->groups[warp->current];
    group->pending_limit = allowed;
    group->pc--; // again once they are over
}

// cp.async.mbarrier.arrive: one arrival a thread once its copies so far are done.
static void complete_arrive(Cta *cta, Async *async) {
    clock_join(&async->issued.seen, &cta->warps[async->warp].copies_done);
    for (int i = 0; i < __builtin_popcount(async->disabled[0]) && !faulted(cta->cluster); i++)
        mbarrier_async_arrive(cta, async, async->barrier, 0);
}

static void run_arrive(Warp *warp, const Op *op, uint32_t mask) {
    uint32_t offset, address = (uint32_t)value_at(warp, op, 0, first_lane(mask));
    Cta *owner = machine_shared(warp, op, address, 8, &offset);
    Mbarrier *barrier = owner ? mbarrier_find(owner, offset) : NULL;
    if (!barrier) {
        fault(warp, op, SIM_FAULT_BARRIER, "there is no initialised mbarrier at shared address 0x%x",
              address);
        return;
    }
    if (!op->mode) // without .noinc the arrival expects itself
        barrier->pending += __builtin_popcount(mask);
    Async *async = async_new(warp, op, complete_arrive);
    if (!async)
        return;
    async->barrier = address;
    async->disabled[0] = mask;
    async_start(warp, async);
    for (const Async *other = warp->cta->pending; other; other = other->next)
        if (other->copy_group >= 0 && other->warp == warp->number && async->due <= other->due)
            async->due = other->due + 1;
}

bool decode_cp_async(Decoder *d, Op *op) {
    const char *what = part(d, 2);
    int count = d->in->operand_count;
    const PtxOperand *in = d->in->operands;
    if (!strcmp(what, "commit_group") || !strcmp(what, "wait_all") || !strcmp(what, "wait_group")) {
        op->mode = !strcmp(what, "wait_all");
        op->run = !strcmp(what, "commit_group") ? run_commit : run_wait;
        if (!strcmp(what, "wait_group")) {
            op->immediate = count == 1 && in[0].kind == PTX_INT ? in[0].integer : -1;
            return op->immediate >= 0 && op->immediate < 1 << 20;
        }
        return count == 0;
    }
    if (!strcmp(what, "mbarrier")) {
        op->mode = has(d, "noinc");
        op->run = run_arrive;
        return count == 1 && take_operands(d, op, PTX_B64);
    }
    if ((strcmp(what, "ca") && strcmp(what, "cg")) || count < 3 || in[2].kind != PTX_INT)
        return false;
    op->immediate = in[2].integer;
    op->run = run_copy;
    bool size_known = op->immediate == 4 || op->immediate == 8 || op->immediate == 16;
    return (size_known || fail(d, "cp.async copies 4, 8 or 16 bytes")) && take_operands(d, op, PTX_B64);
}

// ---------------------------------------------------------------- st.async, red.async

// disabled[0 ..]: the words; bytes: how many.
static void complete_store(Cta *cta, Async *async) {
    uint32_t rank = async->shared >> 24, offset = (async->shared & 0xFFFFFF) - SHARED_BASE;
    Cta *target = &cta->cluster->ctas[rank];
    if (!race_shared_write(target, NULL, async->op, async, offset, async->bytes))
        return;
    uint32_t words[4];
    memcpy(words, async->disabled, sizeof words);
    if (async->reduction) {
        uint32_t old;
        memcpy(&old, target->shared + offset, 4);
        words[0] += old;
    }
    memcpy(target->shared + offset, words, async->bytes);
    mbarrier_complete_bytes(cta, async, async->barrier, async->bytes);
}

// Operands: address, values (list_count, of type), mbarrier.
static void run_store(Warp *warp, const Op *op, uint32_t mask) {
    int each = ptx_type_bytes((PtxType)op->type);
    FOR_LANES(lane, mask) {
        uint32_t offset, address = (uint32_t)value_at(warp, op, 0, (int)lane);
        if (!machine_shared(warp, op, address, (uint32_t)(each * op->list_count), &offset))
            return;
        Async *async = async_new(warp, op, complete_store);
        if (!async)
            return;
        async->thread = (uint32_t)warp->number * LANES + lane;
        async->shared = address;
        async->bytes = (uint32_t)(each * op->list_count);
        async->barrier = (uint32_t)value_at(warp, op, 1 + op->list_count, (int)lane);
        async->reduction = op->mode;
        for (int i = 0; i < op->list_count; i++) {
            uint64_t value = lane_value(warp, &op->operands[1 + i], (int)lane);
            memcpy((uint8_t *)async->disabled + i * each, &value, (size_t)each);
        }
        async_start(warp, async);
    }
}

bool decode_store_async(Decoder *d, Op *op) {
    bool reduces = !strcmp(part(d, 0), "red");
    op->type = last_type(d);
    op->mode = reduces;
    op->list_count = d->in->operand_count == 3 ? operand_width(&d->in->operands[1]) : 0;
    int bytes = op->type == TYPE_NONE ? 0 : ptx_type_bytes((PtxType)op->type);
    if (!has(d, "mbarrier::complete_tx::bytes") || bytes < 4 || op->list_count < 1 ||
        bytes * op->list_count > 16 || (reduces && (!has(d, "add") || bytes != 4 || op->list_count != 1)))
        return fail(d, "unsupported form %s", d->in->text);
    op->run = run_store;
    return take_operands(d, op, op->type);
}
