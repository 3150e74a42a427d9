// async.c: operations that complete later. Each is due after a seeded random delay; those of the tensor core
// complete in the order in which they were issued, others in any.
#include "simulator/machine/machine.h"

#include <stdlib.h>
#include <string.h>

// splitmix64
uint64_t sim_random(Cluster *cluster) {
    uint64_t z = cluster->random += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

void async_free(Async *async) {
    if (async)
        free(async->lanes);
    free(async);
}

Async *async_new(Warp *warp, const Op *op, void (*complete)(Cta *, Async *)) {
    Async *async = calloc(1, sizeof *async);
    if (!async) {
        fault(warp, op, SIM_FAULT_UNSUPPORTED, "out of memory");
        return NULL;
    }
    Cta *cta = warp->cta;
    async_free(cta->unstarted);
    cta->unstarted = async;
    async->complete = complete;
    async->op = op;
    async->line = op->line;
    async->warp = warp->number;
    async->thread = (uint32_t)(warp->number * LANES + first_lane(warp->groups[warp->current].mask));
    async->group = async->product_group = async->copy_group = -1;
    warp_tick(warp);
    async->issued = warp->clocks;
    async->issued.tensor = warp->tensor_after;
    async->channel = agent_base(cta) + AGENT_COPY + cta->next_channel;
    // Without tensor memory, the upper half of the channels are the tensor cores of the warps.
    cta->next_channel =
        (cta->next_channel + 1) % (cta->cluster->launch->sim->is_sm100 ? LOAD_CHANNELS : LOAD_CHANNELS / 2);
    return async;
}

void async_start(Warp *warp, Async *async) {
    Cta *cta = warp->cta;
    Cluster *cluster = cta->cluster;
    cta->unstarted = NULL;
    enum { SHORTEST = 1, LONGEST = 400 };
    if (async->in_order)
        async->channel = agent_base(cta) + AGENT_TENSOR;
    async->time = ++cta->agent_time[async->channel - agent_base(cta)];
    async->due = cluster->now + SHORTEST + sim_random(cluster) % LONGEST;
    if (async->in_order) {
        if (async->due <= cta->tensor_due)
            async->due = cta->tensor_due + 1;
        cta->tensor_due = async->due;
    }
    Async **place = &cta->pending;
    while (*place)
        place = &(*place)->next;
    *place = async;
    cta->pending_count++;
}

uint64_t async_next_due(const Cluster *cluster) {
    uint64_t due = UINT64_MAX;
    for (int c = 0; c < cluster->cta_count; c++)
        for (const Async *async = cluster->ctas[c].pending; async; async = async->next)
            due = async->due < due ? async->due : due;
    return due;
}

bool async_run_due(Cluster *cluster) {
    bool any = false;
    for (int c = 0; c < cluster->cta_count; c++) {
        Cta *cta = &cluster->ctas[c];
        for (;;) {
            Async **first = NULL;
            for (Async **place = &cta->pending; *place; place = &(*place)->next)
                if ((*place)->due <= cluster->now && (!first || (*place)->due < (*first)->due))
                    first = place;
            if (!first)
                break;
            Async *async = *first;
            *first = async->next;
            cta->pending_count--;
            any = true;
            cluster->progress = 1;
            async->complete(cta, async);
            async_free(async);
            if (faulted(cluster))
                return true;
        }
    }
    return any;
}

// Bulk groups of that thread that are still pending, not counting the `newest_kept` youngest.
int async_groups_pending(const Cta *cta, uint32_t thread, int newest_allowed) {
    const Warp *warp = &cta->warps[thread / LANES];
    int limit = warp->bulk_groups[thread % LANES] - newest_allowed, pending = 0;
    for (const Async *async = cta->pending; async; async = async->next)
        pending += async->thread == thread && async->group >= 0 && async->group < limit;
    return pending;
}
