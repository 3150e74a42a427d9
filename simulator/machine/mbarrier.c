// mbarrier.c: mbarrier objects, the instructions on them, and what asynchronous operations signal on them
// (PTX ISA: "Parallel Synchronization and Communication Instructions: mbarrier").
#include "simulator/machine/decode.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- mbarrier objects

enum { MBARRIER_COUNT_LIMIT = (1 << 20) - 1 };

Mbarrier *mbarrier_find(Cta *cta, uint32_t offset) {
    for (int i = 0; i < cta->barrier_count; i++)
        if (cta->barriers[i].valid && cta->barriers[i].address == offset)
            return &cta->barriers[i];
    return NULL;
}

static void flip_if_complete(Cta *cta, Mbarrier *barrier) {
    if (barrier->pending != 0 || barrier->transactions != 0)
        return;
    barrier->phase++;
    barrier->pending = barrier->expected;
    barrier->completed = barrier->arriving;
    cta->cluster->progress = 1;
}

void mbarrier_arrive(Cta *cta, Mbarrier *barrier, int64_t count) {
    barrier->pending -= count;
    flip_if_complete(cta, barrier);
}

bool mbarrier_passed(const Mbarrier *barrier, uint32_t parity) {
    return (barrier->phase & 1) != (parity & 1);
}

static Mbarrier *barrier_at(Warp *warp, const Op *op, uint64_t address, Cta **owner) {
    uint32_t offset;
    if ((address & WINDOW_MASK) == SHARED_WINDOW)
        address = (uint32_t)address;
    *owner = machine_shared(warp, op, (uint32_t)address, 8, &offset);
    if (!*owner)
        return NULL;
    Mbarrier *barrier = mbarrier_find(*owner, offset);
    if (!barrier)
        fault(warp, op, SIM_FAULT_BARRIER, "there is no initialised mbarrier at shared address 0x%x",
              (uint32_t)address);
    return barrier;
}

// An arrival of an asynchronous operation on the barrier at the same offset of each CTA in `mask`, or of one
// CTA.
static Mbarrier *async_barrier(Cta *cta, Async *async, uint32_t address, Cta **owner) {
    Cluster *cluster = cta->cluster;
    uint32_t rank = address >> 24, offset = (address & 0xFFFFFF) - SHARED_BASE;
    *owner = rank < (uint32_t)cluster->cta_count ? &cluster->ctas[rank] : NULL;
    Mbarrier *barrier = *owner ? mbarrier_find(*owner, offset) : NULL;
    if (!barrier)
        fault_async(cta, async, SIM_FAULT_BARRIER,
                    "it signals shared address 0x%x, where there is no initialised mbarrier", address);
    else if (*owner != cta && machine_has_exited(*owner)) {
        fault_async(cta, async, SIM_FAULT_EXIT,
                    "it signals an mbarrier of the CTA of rank %u, which has exited", rank);
        return NULL;
    }
    return barrier;
}

static void release_async(const Async *async, Mbarrier *barrier) {
    clocks_join(&barrier->arriving, &async->issued);
    Clocks *into = &barrier->arriving;
    if (into->seen.at[async->channel] < async->time)
        into->seen.at[async->channel] = into->async.at[async->channel] = async->time;
    if (async->channel % AGENTS_PER_CTA == AGENT_TENSOR && into->tensor.at[async->channel] < async->time)
        into->tensor.at[async->channel] = async->time;
}

void mbarrier_complete_bytes(Cta *cta, Async *async, uint32_t address, int64_t bytes) {
    Cta *owner;
    Mbarrier *barrier = async_barrier(cta, async, address, &owner);
    if (!barrier)
        return;
    release_async(async, barrier);
    barrier->transactions -= bytes;
    if (barrier->transactions < -MBARRIER_COUNT_LIMIT) {
        fault_async(cta, async, SIM_FAULT_BARRIER,
                    "transaction count below its range: more bytes arrive than are expected");
        return;
    }
    flip_if_complete(owner, barrier);
}

void mbarrier_async_arrive(Cta *cta, Async *async, uint32_t address, uint32_t mask) {
    for (int rank = 0; rank < cta->cluster->cta_count; rank++) {
        if (mask && !(mask >> rank & 1))
            continue;
        Cta *owner;
        Mbarrier *barrier =
            async_barrier(cta, async, mask ? (address & 0xFFFFFF) | (uint32_t)rank << 24 : address, &owner);
        if (!barrier)
            return;
        release_async(async, barrier);
        if (barrier->pending <= 0) {
            fault_async(cta, async, SIM_FAULT_BARRIER,
                        "it arrives on the mbarrier at 0x%x, which expects no more arrivals in this phase",
                        address);
            return;
        }
        mbarrier_arrive(owner, barrier, 1);
        if (!mask)
            return;
    }
}

// ---------------------------------------------------------------- mbarrier instructions

static void run_mbarrier_init(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        uint32_t offset,
            address = (uint32_t)lane_value(warp, &op->operands[0], (int)lane) + (uint32_t)op->operands[0].add;
        int64_t count = (int32_t)lane_value(warp, &op->operands[1], (int)lane);
        Cta *cta = machine_shared(warp, op, address, 8, &offset);
        if (!cta)
            return;
        if (count < 1 || count > MBARRIER_COUNT_LIMIT) {
            fault(warp, op, SIM_FAULT_BARRIER, "mbarrier count %lld is not in 1..2^20-1", (long long)count);
            return;
        }
        if (mbarrier_find(cta, offset)) {
            fault(warp, op, SIM_FAULT_BARRIER,
                  "the mbarrier at shared offset %u is initialised again without mbarrier.inval", offset);
            return;
        }
        if (cta->barrier_count == cta->barrier_capacity) {
            int capacity = cta->barrier_capacity ? 2 * cta->barrier_capacity : 64;
            Mbarrier *more = realloc(cta->barriers, sizeof *more * (size_t)capacity);
            if (!more) {
                fault(warp, op, SIM_FAULT_UNSUPPORTED, "out of memory");
                return;
            }
            cta->barriers = more;
            cta->barrier_capacity = capacity;
        }
        Mbarrier *barrier = &cta->barriers[cta->barrier_count++];
        memset(barrier, 0, sizeof *barrier);
        barrier->valid = true;
        barrier->address = offset;
        barrier->expected = barrier->pending = count;
        race_mark_barrier(cta, offset, true);
    }
}

static void run_mbarrier_inval(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        Cta *owner;
        Mbarrier *barrier = barrier_at(
            warp, op, lane_value(warp, &op->operands[0], (int)lane) + (uint64_t)(int64_t)op->operands[0].add,
            &owner);
        if (!barrier)
            return;
        barrier->valid = false;
        race_mark_barrier(owner, barrier->address, false);
    }
}

enum { ARRIVE = 1, EXPECT = 2, COMPLETE = 4, DROP = 8 };

// operands: [state], barrier, [count or bytes]; op->first_list: where the barrier stands.
static void run_mbarrier_arrive(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        const Operand *at = &op->operands[op->first_list];
        Cta *owner;
        Mbarrier *barrier =
            barrier_at(warp, op, lane_value(warp, at, (int)lane) + (uint64_t)(int64_t)at->add, &owner);
        if (!barrier)
            return;
        int64_t number = op->operand_count > op->first_list + 1
                             ? (int64_t)(uint32_t)lane_value(warp, at + 1, (int)lane)
                             : 1;
        if (op->first_list)
            lane_set(warp, &op->operands[0], (int)lane,
                     (uint64_t)barrier->pending << 32 | (barrier->phase & 1));
        if (op->mode & EXPECT)
            barrier->transactions += number;
        if (op->mode & COMPLETE)
            barrier->transactions -= number;
        if (barrier->transactions > MBARRIER_COUNT_LIMIT || barrier->transactions < -MBARRIER_COUNT_LIMIT) {
            fault(warp, op, SIM_FAULT_BARRIER,
                  "transaction count %lld of the mbarrier at shared offset %u is out of range",
                  (long long)barrier->transactions, barrier->address);
            return;
        }
        int64_t arrivals = !(op->mode & ARRIVE) ? 0 : op->mode & EXPECT ? 1 : number;
        if (arrivals > barrier->pending) {
            fault(warp, op, SIM_FAULT_BARRIER,
                  "%lld arrivals on the mbarrier at shared offset %u, which expects %lld more in this phase",
                  (long long)arrivals, barrier->address, (long long)barrier->pending);
            return;
        }
        if (arrivals && !op->mode2)
            warp_release(warp, &barrier->arriving);
        if (op->mode & DROP)
            barrier->expected -= arrivals;
        mbarrier_arrive(owner, barrier, arrivals);
    }
}

// try_wait suspends until the phase is over, or gives up at times as the chip may: a caller has to loop.
// test_wait answers at once.
static void run_mbarrier_wait(Warp *warp, const Op *op, uint32_t mask) {
    uint32_t passed = 0;
    const Operand *at = &op->operands[1];
    Mbarrier *first = NULL;
    bool uniform = true;
    uint32_t first_parity = 0;
    FOR_LANES(lane, mask) {
        Cta *owner;
        Mbarrier *barrier =
            barrier_at(warp, op, lane_value(warp, at, (int)lane) + (uint64_t)(int64_t)at->add, &owner);
        if (!barrier)
            return;
        if (owner != warp->cta) {
            fault(warp, op, SIM_FAULT_BARRIER, "a wait on an mbarrier of another CTA");
            return;
        }
        uint64_t value = lane_value(warp, &op->operands[2], (int)lane);
        uint32_t parity = (uint32_t)(value & 1);
        if (op->mode == 0 && !first && value > 1) {
            fault(warp, op, SIM_FAULT_BARRIER, "phase parity %llu is neither 0 nor 1",
                  (unsigned long long)value);
            return;
        }
        uniform &= !first || (first == barrier && parity == first_parity);
        first = barrier;
        first_parity = parity;
        if (mbarrier_passed(barrier, parity)) {
            passed |= 1u << lane;
            warp_acquire(warp, &barrier->completed);
        }
    }
    uint32_t *result = reg32(warp, &op->operands[0]);
    bool suspends = op->mode2 && uniform && !(passed & mask) && sim_random(warp->cta->cluster) % 4 != 0;
    *result = (*result & ~mask) | (suspends ? mask : passed & mask);
    if (suspends)
        warp_block(warp, WAIT_MBARRIER, first->address, first_parity);
}

static void run_pending_count(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask)
    lane_set(warp, &op->operands[0], (int)lane, lane_value(warp, &op->operands[1], (int)lane) >> 32);
}

static bool decode_mbarrier(Decoder *d, Op *op) {
    const char *what = part(d, 1);
    if (!take_operands(d, op, !strcmp(what, "inval") ? PTX_B64 : PTX_B32))
        return false;
    if (!strcmp(what, "init"))
        op->run = run_mbarrier_init;
    else if (!strcmp(what, "inval"))
        op->run = run_mbarrier_inval;
    else if (!strcmp(what, "pending_count"))
        op->run = run_pending_count;
    else if (!strcmp(what, "try_wait") || !strcmp(what, "test_wait")) {
        op->run = run_mbarrier_wait;
        op->mode = !has(d, "parity");
        op->mode2 = !strcmp(what, "try_wait");
    } else {
        op->mode = (!strcmp(what, "arrive") || !strcmp(what, "arrive_drop") ? ARRIVE : 0) |
                   (has(d, "expect_tx") ? EXPECT : 0) | (!strcmp(what, "complete_tx") ? COMPLETE : 0) |
                   (!strcmp(what, "arrive_drop") ? DROP : 0);
        if (!op->mode)
            return false;
        op->first_list = d->in->operands[0].kind != PTX_ADDRESS;
        op->mode2 = has(d, "relaxed"); // orders nothing
        op->run = run_mbarrier_arrive;
    }
    return true;
}

const OpEntry MBARRIER_OPS[] = {{"mbarrier", decode_mbarrier}, {NULL, NULL}};
