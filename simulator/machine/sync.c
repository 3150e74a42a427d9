// sync.c: barriers of the CTA, mbarriers, cluster barriers and fences (PTX ISA: "Parallel Synchronization and
// Communication Instructions").
#include "simulator/machine/decode.h"

#include <stdio.h>
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

// ---------------------------------------------------------------- barriers of the CTA

static int live_threads(const Cta *cta) {
    int threads = 0;
    for (int w = 0; w < cta->warp_count; w++)
        threads += LANES - __builtin_popcount(cta->warps[w].exited);
    return threads;
}

static void complete_barrier(Cta *cta, int id) {
    cta->named[id].completed = cta->named[id].arriving;
    cta->named[id].done_popcount = cta->named[id].popcount;
    cta->named[id].done_all = cta->named[id].all;
    cta->named[id].done_any = cta->named[id].any;
    cta->named[id].arrived = 0;
    cta->named[id].needed = 0;
    cta->named[id].generation++;
    cta->cluster->progress = 1;
}

// A barrier over the whole CTA needs fewer threads once some have exited.
static void check_barriers(Cta *cta) {
    for (int id = 0; id < 16; id++)
        if (cta->named[id].arrived && cta->named[id].needed < 0 &&
            cta->named[id].arrived >= live_threads(cta))
            complete_barrier(cta, id);
}

enum { BAR_SYNC, BAR_ARRIVE, BAR_RED, REDUCED = -1 };

// bar.red: the predicate is the last operand; op->count says what of it is wanted.
static void add_predicates(Warp *warp, const Op *op, uint32_t mask, uint32_t id) {
    uint32_t bits = 0;
    FOR_LANES(lane, mask)
    bits |= (uint32_t)(lane_value(warp, &op->operands[op->operand_count - 1], (int)lane) & 1) << lane;
    bits = (op->immediate ? ~bits : bits) & mask;
    warp->cta->named[id].popcount += (uint32_t)__builtin_popcount(bits);
    warp->cta->named[id].all &= bits == mask;
    warp->cta->named[id].any |= bits != 0;
}

enum { RED_POPC, RED_AND, RED_OR };

static void take_reduction(Warp *warp, const Op *op, uint32_t mask, uint32_t id) {
    const Cta *cta = warp->cta;
    uint32_t value = op->count == RED_POPC  ? cta->named[id].done_popcount
                     : op->count == RED_AND ? cta->named[id].done_all
                                            : cta->named[id].done_any;
    FOR_LANES(lane, mask) lane_set(warp, &op->operands[0], (int)lane, value);
    warp->groups[warp->current].pending_limit = 0;
}

static void run_barrier(Warp *warp, const Op *op, uint32_t mask) {
    Cta *cta = warp->cta;
    int lane = first_lane(mask);
    uint32_t live = ~warp->exited;
    if (op->mode2 && mask != live) {
        fault(warp, op, SIM_FAULT_CONVERGENCE, "an aligned barrier is executed by lanes 0x%08x of 0x%08x",
              mask, live);
        return;
    }
    uint32_t id = (uint32_t)lane_value(warp, &op->operands[op->first_list], lane);
    if (id > 15) {
        fault(warp, op, SIM_FAULT_BARRIER, "barrier %u; there are 0..15", id);
        return;
    }
    if (op->mode == BAR_RED &&
        warp->groups[warp->current].pending_limit == REDUCED) { // woken: the barrier is complete
        take_reduction(warp, op, mask, id);
        return;
    }
    bool counted = op->operand_count > op->first_list + 1 + (op->mode == BAR_RED);
    int needed = counted ? (int)lane_value(warp, &op->operands[op->first_list + 1], lane) : -1;
    if (counted && needed % LANES) {
        fault(warp, op, SIM_FAULT_BARRIER, "barrier %u for %d threads; the number must be a multiple of 32",
              id, needed);
        return;
    }
    if (cta->named[id].arrived && cta->named[id].needed != needed) {
        fault(warp, op, SIM_FAULT_BARRIER, "barrier %u for %d threads, while others wait on it for %d", id,
              needed, cta->named[id].needed);
        return;
    }
    if (!cta->named[id].arrived) {
        memset(&cta->named[id].arriving, 0, sizeof cta->named[id].arriving);
        cta->named[id].any = cta->named[id].popcount = 0;
        cta->named[id].all = 1;
    }
    cta->named[id].needed = needed;
    cta->named[id].arrived += counted && mask == live ? LANES : __builtin_popcount(mask);
    warp_release(warp, &cta->named[id].arriving);
    if (op->mode == BAR_RED)
        add_predicates(warp, op, mask, id);
    uint32_t generation = cta->named[id].generation;
    int enough = needed < 0 ? live_threads(cta) : needed;
    if (cta->named[id].arrived > enough) {
        fault(warp, op, SIM_FAULT_BARRIER, "%d threads arrive on barrier %u for %d", cta->named[id].arrived,
              id, enough);
        return;
    }
    if (cta->named[id].arrived == enough) {
        complete_barrier(cta, (int)id);
        if (op->mode != BAR_ARRIVE)
            warp_acquire(warp, &cta->named[id].completed);
        if (op->mode == BAR_RED)
            take_reduction(warp, op, mask, id);
        return;
    }
    if (op->mode != BAR_ARRIVE)
        warp_block(warp, WAIT_BARRIER, id, generation);
    if (op->mode == BAR_RED) { // executed again for its result
        warp->groups[warp->current].pending_limit = REDUCED;
        warp->groups[warp->current].pc--;
    }
}

static bool decode_barrier(Decoder *d, Op *op) {
    if (has(d, "warp") || has(d, "cluster"))
        return false;
    op->mode = has(d, "red") ? BAR_RED : has(d, "arrive") ? BAR_ARRIVE : BAR_SYNC;
    op->mode2 = !strcmp(d->in->parts[0], "bar") || has(d, "aligned");
    if (op->mode == BAR_RED) {
        op->count = has(d, "popc") ? RED_POPC : has(d, "and") ? RED_AND : RED_OR;
        op->first_list = 1;
        if (d->in->operand_count < 3)
            return false;
        op->immediate = d->in->operands[d->in->operand_count - 1].negated;
    }
    op->run = run_barrier;
    op->flags = OP_COLLECTIVE;
    return take_operands(d, op, PTX_B32);
}

// barrier.cluster: all threads of all CTAs.
static void run_cluster_barrier(Warp *warp, const Op *op, uint32_t mask) {
    Cluster *cluster = warp->cta->cluster;
    if (op->mode == BAR_ARRIVE) {
        for (int i = 0; i < __builtin_popcount(mask); i++)
            cluster->cluster_arrived++;
        int needed = 0;
        for (int c = 0; c < cluster->cta_count; c++)
            needed += live_threads(&cluster->ctas[c]);
        warp->barrier_arrived = cluster->cluster_generation;
        if (!op->mode2)
            warp_release(warp, &cluster->cluster_arriving);
        if (cluster->cluster_arrived >= needed) {
            cluster->cluster_completed = cluster->cluster_arriving;
            cluster->cluster_arrived = 0;
            cluster->cluster_generation++;
            cluster->progress = 1;
        }
        return;
    }
    if (cluster->cluster_generation == warp->barrier_arrived)
        warp_block(warp, WAIT_CLUSTER, 0, warp->barrier_arrived);
    else
        warp_acquire(warp, &cluster->cluster_completed);
}

static bool decode_cluster_barrier(Decoder *d, Op *op) {
    if (!has(d, "cluster"))
        return false;
    op->mode = has(d, "arrive") ? BAR_ARRIVE : BAR_SYNC;
    op->mode2 = has(d, "relaxed");
    op->run = run_cluster_barrier;
    return take_operands(d, op, PTX_B32);
}

// ---------------------------------------------------------------- fences

static void run_fence(Warp *warp, const Op *op, uint32_t mask) {
    (void)mask;
    warp_tick(warp);
    // fence.proxy.async: this warp's own writes become visible to asynchronous accesses. Other warps' writes
    // do not, even if they happened before: each writer fences on its side of the barrier.
    if (op->mode)
        warp->clocks.async.at[warp->agent] = warp_tick(warp);
}

static bool decode_fence(Decoder *d, Op *op) {
    op->mode = has(d, "proxy") && (has(d, "async") || has(d, "async::generic"));
    op->run = run_fence;
    return take_operands(d, op, PTX_B64);
}

// ---------------------------------------------------------------- waiting

bool wait_is_over(Warp *warp, const Group *group) {
    Cta *cta = warp->cta;
    switch (group->wait) {
    case WAIT_MBARRIER: {
        Mbarrier *barrier = mbarrier_find(cta, group->barrier);
        if (!barrier || !mbarrier_passed(barrier, group->parity))
            return false;
        warp_acquire(warp, &barrier->completed);
        return true;
    }
    case WAIT_BARRIER:
        if (cta->named[group->barrier].generation == group->parity)
            check_barriers(cta);
        if (cta->named[group->barrier].generation == group->parity)
            return false;
        warp_acquire(warp, &cta->named[group->barrier].completed);
        return true;
    case WAIT_CLUSTER:
        if (cta->cluster->cluster_generation == group->parity)
            return false;
        warp_acquire(warp, &cta->cluster->cluster_completed);
        return true;
    case WAIT_REGISTERS:
        if (cta->register_pool < (int)group->barrier)
            return false;
        cta->register_pool -= (int)group->barrier;
        return true;
    case WAIT_ASYNC:
        return async_groups_pending(cta, group->barrier, group->pending_limit) == 0;
    case WAIT_COPIES:
        return copies_are_over(warp, group->pending_limit);
    case WAIT_PRODUCTS:
        return products_are_over(warp, group->pending_limit);
    default:
        return false;
    }
}

// "full", "smem+64": the shared variable at that offset.
static const char *symbol_near(const Cta *cta, uint32_t offset, char *buffer, size_t size) {
    const Launch *launch = cta->cluster->launch;
    const PtxModule *module = launch->module->ptx;
    snprintf(buffer, size, "shared memory");
    for (int i = 0; i < module->symbol_count; i++) {
        const PtxSymbol *symbol = &module->symbols[i];
        if (symbol->space != PTX_SPACE_SHARED)
            continue;
        uint64_t first = symbol->is_extern ? launch->static_shared : (uint64_t)symbol->offset;
        bool inside = offset >= first && (symbol->is_extern || offset < first + (uint64_t)symbol->bytes);
        if (inside && offset == first)
            snprintf(buffer, size, "%.40s", symbol->name);
        else if (inside)
            snprintf(buffer, size, "%.40s+%llu", symbol->name, (unsigned long long)(offset - first));
    }
    return buffer;
}

const char *wait_text(Warp *warp, const Group *group, char *buffer, size_t size) {
    char symbol[64];
    switch (group->wait) {
    case WAIT_MBARRIER: {
        Mbarrier *b = mbarrier_find(warp->cta, group->barrier);
        snprintf(
            buffer, size,
            "waits for the mbarrier %s at offset %u, parity %u (%lld arrivals and %lld bytes are missing)",
            symbol_near(warp->cta, group->barrier, symbol, sizeof symbol), group->barrier, group->parity,
            b ? (long long)b->pending : 0, b ? (long long)b->transactions : 0);
        break;
    }
    case WAIT_BARRIER:
        snprintf(buffer, size, "waits at barrier %u, where %d threads have arrived", group->barrier,
                 warp->cta->named[group->barrier].arrived);
        break;
    case WAIT_WARP:
        snprintf(buffer, size, "waits for lanes 0x%08x of its warp", group->barrier);
        break;
    case WAIT_TMEM:
        snprintf(buffer, size, "waits for %u free columns of tensor memory", group->barrier);
        break;
    case WAIT_REGISTERS:
        snprintf(buffer, size, "waits for %u registers; the CTA's pool has %d", group->barrier,
                 warp->cta->register_pool);
        break;
    case WAIT_ASYNC:
        snprintf(buffer, size, "waits for its asynchronous copies");
        break;
    case WAIT_COPIES:
        snprintf(buffer, size, "waits for its cp.async groups");
        break;
    case WAIT_PRODUCTS:
        snprintf(buffer, size, "waits for its wgmma groups");
        break;
    case WAIT_CLUSTER:
        snprintf(buffer, size, "waits at the cluster barrier");
        break;
    default:
        snprintf(buffer, size, "could run");
        break;
    }
    return buffer;
}

const OpEntry SYNC_OPS[] = {
    {"mbarrier", decode_mbarrier},
    {"barrier", decode_cluster_barrier},
    {"bar", decode_barrier},
    {"barrier", decode_barrier},
    {"fence", decode_fence},
    {"membar", decode_fence},
    {NULL, NULL},
};
