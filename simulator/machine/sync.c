// sync.c: barriers of the CTA and of the cluster, fences, and what warps wait for (PTX ISA: "Parallel
// Synchronization and Communication Instructions").
#include "simulator/machine/decode.h"

#include <stdio.h>
#include <string.h>

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
    bool arrives = op->mode == BAR_ARRIVE;
    if (mask & (arrives ? warp->cluster_waits_due : ~warp->cluster_waits_due)) {
        fault(warp, op, SIM_FAULT_BARRIER,
              arrives ? "a second arrival at the cluster barrier without a wait after the first"
                      : "a wait at the cluster barrier without an arrival before it");
        return;
    }
    warp->cluster_waits_due ^= mask;
    if (arrives) {
        cluster->cluster_arrived += __builtin_popcount(mask);
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

// Each time twice as far, so that a limit of any length passes soon.
bool waits_give_up(Cluster *cluster) {
    enum { FIRST_NS = 1000 };
    bool any = false;
    if (!cluster->launch->program->reads_clock || cluster->skipped > UINT64_MAX / 4)
        return false;
    for (int c = 0; c < cluster->cta_count; c++)
        for (int w = 0; w < cluster->ctas[c].warp_count; w++) {
            Warp *warp = &cluster->ctas[c].warps[w];
            for (int g = 0; g < warp->group_count; g++) {
                Group *group = &warp->groups[g];
                if (group->wait != WAIT_MBARRIER)
                    continue;
                const Op *wait = &cluster->launch->program->ops[group->pc - 1];
                *reg32(warp, &wait->operands[0]) &= ~group->mask;
                group->wait = WAIT_NONE;
                any = true;
            }
        }
    if (any)
        cluster->now += cluster->skipped = cluster->skipped ? 2 * cluster->skipped : FIRST_NS;
    return any;
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
    {"barrier", decode_cluster_barrier},
    {"bar", decode_barrier},
    {"barrier", decode_barrier},
    {"fence", decode_fence},
    {"membar", decode_fence},
    {NULL, NULL},
};
