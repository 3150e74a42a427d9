// queue.c: work taken from the grid's queue by running clusters (PTX ISA: "clusterlaunchcontrol.try_cancel",
// "clusterlaunchcontrol.query_cancel"). Each simulated multiprocessor has its part of the queue, so that a
// run does not depend on the host's threads.
#include "simulator/machine/decode.h"

#include <string.h>

enum { RESPONSE_BYTES = 16, REFUSE_ONE_IN = 16 };

// The response is opaque in PTX; ours: a mark with the answer in its lowest bit, and the first CTA's
// coordinates.
static const uint32_t RESPONSE_MARK = 0x434C4300u;

static bool take_cluster(Cluster *cluster, uint32_t first[3]) {
    Launch *launch = cluster->launch;
    // The hardware may refuse although work is left; it then launches that work itself.
    if (!cluster->queue || *cluster->queue >= launch->cluster_total ||
        sim_random(cluster) % REFUSE_ONE_IN == 0)
        return false;
    uint64_t number = *cluster->queue;
    *cluster->queue += (uint64_t)launch->sim->sm_count;
    run_place_cluster(launch, number, first);
    pthread_mutex_lock(&launch->lock);
    launch->done++;
    pthread_mutex_unlock(&launch->lock);
    return true;
}

static bool write_response(Cta *issuer, Async *async, Cta *cta, const uint32_t response[4]) {
    uint32_t place = async->shared & 0xFFFFFF, offset = place - SHARED_BASE;
    if (place < SHARED_BASE || offset + RESPONSE_BYTES > cta->shared_bytes) {
        fault_async(issuer, async, SIM_FAULT_BOUNDS, "the response lies at shared offset %u of %u bytes",
                    offset, cta->shared_bytes);
        return false;
    }
    if (!race_shared_write(cta, NULL, async->op, async, offset, RESPONSE_BYTES))
        return false;
    memcpy(cta->shared + offset, response, RESPONSE_BYTES);
    return true;
}

static void complete_request(Cta *cta, Async *async) {
    Cluster *cluster = cta->cluster;
    uint32_t response[4] = {RESPONSE_MARK, 0, 0, 0};
    if (take_cluster(cluster, response + 1))
        response[0] |= 1;
    uint32_t mask = async->multicast ? async->multicast : 1u << cta->rank;
    for (int rank = 0; rank < cluster->cta_count; rank++) {
        if (!(mask >> rank & 1))
            continue;
        if (!write_response(cta, async, &cluster->ctas[rank], response))
            return;
        mbarrier_complete_bytes(cta, async, (async->barrier & 0xFFFFFF) | (uint32_t)rank << 24,
                                RESPONSE_BYTES);
    }
}

// Operands: response, mbarrier. op->mode: to all CTAs of the cluster.
static void run_request(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        if (warp->cta->cluster->refusal_seen) {
            fault(warp, op, SIM_FAULT_UNSUPPORTED,
                  "work is asked for after a refusal was seen, which is undefined");
            return;
        }
        Async *async = async_new(warp, op, complete_request);
        if (!async)
            return;
        async->thread = (uint32_t)warp->number * LANES + lane;
        async->shared =
            (uint32_t)lane_value(warp, &op->operands[0], (int)lane) + (uint32_t)op->operands[0].add;
        async->barrier =
            (uint32_t)lane_value(warp, &op->operands[1], (int)lane) + (uint32_t)op->operands[1].add;
        async->multicast = op->mode ? (1u << warp->cta->cluster->cta_count) - 1 : 0;
        if (async->shared % RESPONSE_BYTES) {
            fault(warp, op, SIM_FAULT_ALIGNMENT,
                  "shared address 0x%x of the response is not aligned to 16 bytes", async->shared);
            return;
        }
        async_start(warp, async);
    }
}

enum { QUERY_IS_CANCELED, QUERY_ALL, QUERY_X, QUERY_Y, QUERY_Z };

static void run_query(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        uint32_t response[4];
        memcpy(response, reg64(warp, &op->operands[op->operand_count - 1]) + 2 * lane, sizeof response);
        bool taken = response[0] & 1;
        if ((response[0] & ~1u) != RESPONSE_MARK) {
            fault(warp, op, SIM_FAULT_UNWRITTEN, "the queried value is no response of try_cancel");
            return;
        }
        if (op->mode == QUERY_IS_CANCELED) {
            warp->cta->cluster->refusal_seen |= !taken;
            lane_set(warp, &op->operands[0], (int)lane, taken);
            continue;
        }
        if (!taken) {
            fault(warp, op, SIM_FAULT_UNWRITTEN, "the CTA of a refused request is asked for");
            return;
        }
        if (op->mode != QUERY_ALL)
            lane_set(warp, &op->operands[0], (int)lane, response[1 + op->mode - QUERY_X]);
        for (int i = 0; op->mode == QUERY_ALL && i < 4; i++)
            lane_set(warp, &op->operands[i], (int)lane, i < 3 ? response[1 + i] : 0);
    }
}

static bool decode_queue(Decoder *d, Op *op) {
    static const char *const QUERIES[] = {"is_canceled", "get_first_ctaid", "get_first_ctaid::x",
                                          "get_first_ctaid::y", "get_first_ctaid::z"};
    if (!d->module->sim->is_sm100)
        return fail(d, "this chip has no clusterlaunchcontrol");
    if (!strcmp(part(d, 1), "try_cancel")) {
        d->program->uses_queue = true;
        op->mode = has(d, "multicast::cluster::all");
        op->run = run_request;
        return d->in->operand_count == 2 && take_operands(d, op, PTX_B64);
    }
    op->mode = -1;
    for (int i = 0; i < 5; i++)
        if (!strcmp(part(d, 2), QUERIES[i]))
            op->mode = i;
    op->run = run_query;
    if (op->mode < 0 || strcmp(part(d, 1), "query_cancel") || !take_operands(d, op, PTX_B32))
        return false;
    int wanted = op->mode == QUERY_ALL ? 5 : 2;
    return op->operand_count == wanted && op->operands[wanted - 1].bytes == 16;
}

const OpEntry QUEUE_OPS[] = {{"clusterlaunchcontrol", decode_queue}, {NULL, NULL}};
