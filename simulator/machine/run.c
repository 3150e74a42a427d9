// run.c: the scheduler. A host thread runs one cluster at a time: picks a warp at random, runs it for a
// random slice, then completes what is due. Nothing can run and nothing is under way: a deadlock.
#include "simulator/machine/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- groups of lanes

void warp_block(Warp *warp, WaitKind kind, uint32_t barrier, uint32_t parity) {
    Group *group = &warp->groups[warp->current];
    group->wait = kind;
    group->barrier = barrier;
    group->parity = parity;
}

static void remove_group(Warp *warp, int i) {
    warp->groups[i] = warp->groups[--warp->group_count];
}

// Groups at the same place become one.
static void merge_groups(Warp *warp) {
    for (int i = 0; i < warp->group_count; i++)
        for (int k = i + 1; k < warp->group_count;) {
            Group *a = &warp->groups[i], *b = &warp->groups[k];
            bool same = a->pc == b->pc && ((a->wait == WAIT_NONE && b->wait == WAIT_NONE) ||
                                           (a->wait == WAIT_WARP && b->wait == WAIT_WARP));
            if (!same) {
                k++;
                continue;
            }
            a->mask |= b->mask;
            a->wait = WAIT_NONE;
            remove_group(warp, k);
        }
}

// The group to run: of those that can, the one at the lowest place. -1: none.
static int choose_group(Warp *warp) {
    int best = -1;
    for (int i = 0; i < warp->group_count; i++) {
        Group *group = &warp->groups[i];
        warp->current = i;
        if (group->wait != WAIT_NONE && wait_is_over(warp, group)) {
            group->wait = WAIT_NONE;
            warp->cta->cluster->progress = 1;
        }
    }
    if (warp->group_count > 1)
        merge_groups(warp);
    for (int i = 0; i < warp->group_count; i++)
        if (warp->groups[i].wait == WAIT_NONE && (best < 0 || warp->groups[i].pc < warp->groups[best].pc))
            best = i;
    return best;
}

static void exit_lanes(Warp *warp, const Op *op, uint32_t mask) {
    Cta *cta = warp->cta;
    warp->exited |= mask;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t thread = (uint32_t)(warp->number * LANES + first_lane(rest));
        for (const Async *async = cta->pending; async; async = async->next)
            if (async->thread == thread && async->group >= 0) {
                fault(warp, op, SIM_FAULT_EXIT,
                      "a thread exits while its bulk store of PTX line %d is under way", async->line);
                return;
            }
    }
    cta->cluster->progress = 1;
}

// brx.idx: each lane goes where its index leads.
static void leave_by_index(Warp *warp, const Op *op, uint32_t taken) {
    const PtxOperand *table = &op->source->operands[1];
    int here = warp->current, pc = warp->groups[here].pc;
    uint32_t rest = taken, stay = warp->groups[here].mask & ~taken;
    while (rest) {
        uint32_t index = (uint32_t)lane_value(warp, &op->operands[0], first_lane(rest)), same = 0;
        FOR_LANES(lane, rest)
        same |= (uint32_t)((uint32_t)lane_value(warp, &op->operands[0], (int)lane) == index) << lane;
        if (index >= (uint32_t)table->count) {
            fault(warp, op, SIM_FAULT_BOUNDS, "index %u into a table of %d labels", index, table->count);
            return;
        }
        rest &= ~same;
        Group group = {.pc = table->items[index].target, .mask = same};
        if (!rest && !stay)
            warp->groups[here] = group;
        else
            warp->groups[warp->group_count++] = group;
        warp->groups[here].mask &= rest || stay ? ~same : ALL_LANES;
    }
    if (stay)
        warp->groups[here] = (Group){.pc = pc + 1, .mask = stay};
}

// Branch or exit of the lanes in `taken`; the others of the group go on.
static void leave(Warp *warp, const Op *op, uint32_t taken) {
    Group *group = &warp->groups[warp->current];
    uint32_t stay = group->mask & ~taken;
    if (op->mode == CONTROL_EXIT) {
        exit_lanes(warp, op, taken);
        if (stay) {
            group->mask = stay;
            group->pc++;
        } else {
            remove_group(warp, warp->current);
        }
        return;
    }
    if (!stay) {
        group->pc = op->target;
        return;
    }
    if (!taken) {
        group->pc++;
        return;
    }
    Group other = {.pc = op->target, .mask = taken};
    group->mask = stay;
    group->pc++;
    warp->groups[warp->group_count++] = other;
}

// Moves before wait::ld pass the mark on: compilers place them there, and the assembler lets them follow the
// load.
static bool move_of_loading(Warp *warp, const Op *op) {
    int results = op->list_count && op->first_list == 0 ? op->list_count : 1;
    bool loading = false;
    for (int i = results; i < op->operand_count; i++)
        loading |= op->operands[i].at >= 0 && warp->busy[op->operands[i].at / 8] == BUSY_LOAD;
    for (int i = 0; i < results && loading; i++)
        if (op->operands[i].at >= 0)
            warp_mark_loading(warp, op->operands[i].at);
    return loading;
}

static bool touches_busy(Warp *warp, const Op *op) {
    static const char *const WHAT[] = {
        [BUSY_LOAD] = "a register that tcgen05.ld is loading is used before tcgen05.wait::ld",
        [BUSY_RESULT] =
            "a register of an accumulator is used before the wgmma.wait_group that covers its product",
        [BUSY_OPERAND] = "a register that holds an operand of wgmma is used before the wgmma.wait_group that "
                         "covers its product",
    };
    if (op->flags & OP_ASYNC_REGISTERS || (op->flags & OP_MOVES && move_of_loading(warp, op)))
        return false;
    for (int i = 0; i < op->operand_count; i++)
        if (op->operands[i].at >= 0 && warp->busy[op->operands[i].at / 8]) {
            fault(warp, op, SIM_FAULT_REGISTERS, "%s", WHAT[warp->busy[op->operands[i].at / 8]]);
            return true;
        }
    return false;
}

// ---------------------------------------------------------------- one slice of a warp

static bool run_warp(Warp *warp, int slice) {
    Cluster *cluster = warp->cta->cluster;
    const Program *program = cluster->launch->program;
    int chosen = choose_group(warp);
    if (chosen < 0)
        return false;
    warp->current = chosen;
    for (int step = 0; step < slice; step++) {
        Group *group = &warp->groups[warp->current];
        if (group->pc >= program->op_count) { // the end of the entry is an exit
            exit_lanes(warp, &program->ops[program->op_count - 1], group->mask);
            remove_group(warp, warp->current);
            return true;
        }
        const Op *op = &program->ops[group->pc];
        uint32_t mask = group->mask;
        if (op->predicate >= 0) {
            uint32_t p = *(uint32_t *)(warp->registers + op->predicate);
            mask &= op->predicate_negated ? ~p : p;
        }
        warp->executed++;
        cluster->steps++;
        cluster->now++;
        if (((warp->busy_loads && cluster->launch->check_races) || warp->busy_products) &&
            touches_busy(warp, op))
            return true;
        if (op->flags & OP_BRANCH) {
            if (op->mode == CONTROL_INDEXED)
                leave_by_index(warp, op, mask);
            else
                leave(warp, op, mask);
            if (faulted(cluster))
                return true;
            if (warp->group_count == 0 || (chosen = choose_group(warp)) < 0)
                return true;
            warp->current = chosen;
            continue;
        }
        group->pc++;
        if (op->flags & OP_CLOCK)
            decode_read_clock(program, warp);
        if (mask)
            op->run(warp, op, mask);
        if (faulted(cluster))
            return true;
        group = &warp->groups[warp->current];
        if (group->wait != WAIT_NONE || warp->group_count > 1) {
            if (group->wait == WAIT_NONE || warp->group_count > 1) {
                if ((chosen = choose_group(warp)) < 0)
                    return true;
                warp->current = chosen;
                continue;
            }
            return true;
        }
    }
    return true;
}

// ---------------------------------------------------------------- a CTA's life

static uint32_t dynamic_base(const Launch *launch) {
    return launch->static_shared;
}

static void free_cta(Cta *cta) {
    free(cta->shared);
    free(cta->cells);
    free(cta->split);
    free(cta->tensor);
    free(cta->tensor_cells);
    free(cta->barriers);
    free(cta->local_memory);
    for (int w = 0; cta->warps && w < cta->warp_count; w++)
        free(cta->warps[w].registers), free(cta->warps[w].busy);
    free(cta->warps);
    for (Async *async = cta->pending; async;) {
        Async *next = async->next;
        async_free(async);
        async = next;
    }
    async_free(cta->unstarted);
}

static int launch_registers(const Launch *launch) {
    const PtxEntry *entry = launch->program->entry;
    if (entry->max_registers)
        return entry->max_registers;
    int threads = (int)(launch->block[0] * launch->block[1] * launch->block[2]);
    threads = (threads + 127) / 128 * 128;
    int ctas = entry->min_ctas > 1 ? entry->min_ctas : 1; // that an SM must have room for
    int regs = 65536 / threads / ctas / 8 * 8;
    return regs > 255 ? 255 : regs;
}

static bool init_cta(Cluster *cluster, Cta *cta, int rank) {
    Launch *launch = cluster->launch;
    uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
    cta->cluster = cluster;
    cta->rank = rank;
    cta->warp_count = (int)((threads + LANES - 1) / LANES);
    cta->shared_bytes = dynamic_base(launch) + launch->dynamic_shared;
    cta->shared = calloc(1, cta->shared_bytes + 16);
    cta->cells = calloc(cta->shared_bytes / 4 + 4, sizeof(Cell));
    cta->split = calloc(1, cta->shared_bytes / 16 + 2);
    cta->warps = calloc((size_t)cta->warp_count, sizeof(Warp));
    if (launch->sim->is_sm100) {
        cta->tensor = malloc(sizeof(uint32_t) * TMEM_LANES * TMEM_COLUMNS);
        cta->tensor_cells = calloc(4 * TMEM_COLUMNS, sizeof(Cell));
        if (cta->tensor)
            memset(cta->tensor, 0xFF, sizeof(uint32_t) * TMEM_LANES * TMEM_COLUMNS); // NaN until written
    }
    int64_t local = launch->program->entry->local_bytes;
    cta->local_memory = local ? calloc((size_t)cta->warp_count * LANES, (size_t)local) : NULL;
    if (!cta->shared || !cta->cells || !cta->split || !cta->warps ||
        (launch->sim->is_sm100 && (!cta->tensor || !cta->tensor_cells)) || (local && !cta->local_memory))
        return false;
    memset(cta->shared, 0xA5, cta->shared_bytes);
    for (int w = 0; w < cta->warp_count; w++) {
        Warp *warp = &cta->warps[w];
        warp->cta = cta;
        warp->number = w;
        warp->agent = agent_base(cta) + w;
        warp->regs = launch_registers(launch);
        warp->registers = calloc(1, launch->program->register_bytes + REGISTER_SLACK);
        warp->busy = calloc(1, (launch->program->register_bytes + REGISTER_SLACK) / 8);
        if (!warp->registers || !warp->busy)
            return false;
        uint32_t here = threads - (uint32_t)w * LANES;
        uint32_t mask = here >= LANES ? ALL_LANES : (1u << here) - 1;
        warp->exited = ~mask;
        warp->groups[0] = (Group){.mask = mask};
        warp->group_count = 1;
        warp_tick(warp);
    }
    return true;
}

void run_place_cluster(const Launch *launch, uint64_t number, uint32_t first[3]) {
    uint64_t clusters[2] = {launch->grid[0] / launch->cluster[0], launch->grid[1] / launch->cluster[1]};
    uint64_t at[3] = {number % clusters[0], number / clusters[0] % clusters[1],
                      number / clusters[0] / clusters[1]};
    for (int i = 0; i < 3; i++)
        first[i] = (uint32_t)at[i] * launch->cluster[i];
}

static void place_cta(Launch *launch, Cta *cta, uint64_t number, int rank) {
    const uint32_t *size = launch->cluster;
    uint32_t in[3] = {(uint32_t)rank % size[0], (uint32_t)rank / size[0] % size[1],
                      (uint32_t)rank / size[0] / size[1]};
    run_place_cluster(launch, number, cta->id);
    for (int i = 0; i < 3; i++)
        cta->id[i] += in[i];
    cta->sm = (int)(number % (uint64_t)launch->sim->sm_count);
}

static void check_exit(Cta *cta) {
    const Program *program = cta->cluster->launch->program;
    Warp *warp = &cta->warps[0];
    warp->group_count = 0;
    if (cta->tmem_allocated)
        fault(warp, &program->ops[program->op_count - 1], SIM_FAULT_TENSOR_MEMORY,
              "the CTA ends with %d columns of tensor memory not freed", cta->tmem_allocated);
    for (const Async *async = cta->pending; async && !faulted(cta->cluster); async = async->next)
        fault(warp, async->op, SIM_FAULT_EXIT, "the CTA ends while this asynchronous operation is under way");
}

static bool all_done(const Cluster *cluster) {
    for (int c = 0; c < cluster->cta_count; c++)
        for (int w = 0; w < cluster->ctas[c].warp_count; w++)
            if (cluster->ctas[c].warps[w].group_count)
                return false;
    return true;
}

static void run_cluster(Cluster *cluster) {
    enum { SHORTEST_SLICE = 8, LONGEST_SLICE = 250 };
    int warps = cluster->ctas[0].warp_count * cluster->cta_count;
    uint64_t limit = cluster->launch->sim->step_limit;
    while (!faulted(cluster) && !all_done(cluster)) {
        cluster->progress = 0;
        bool ran = false;
        // One random warp, or the next that can run after it.
        int first = (int)(sim_random(cluster) % (uint64_t)warps);
        for (int i = 0; i < warps && !ran; i++) {
            int at = (first + i) % warps;
            Warp *warp =
                &cluster->ctas[at / cluster->ctas[0].warp_count].warps[at % cluster->ctas[0].warp_count];
            if (warp->group_count)
                ran = run_warp(warp, SHORTEST_SLICE + (int)(sim_random(cluster) % LONGEST_SLICE));
        }
        if (!ran) {
            uint64_t due = async_next_due(cluster);
            if (due == UINT64_MAX) {
                if (!cluster->progress && !waits_give_up(cluster))
                    fault_deadlock(cluster);
                continue;
            }
            cluster->now = due > cluster->now ? due : cluster->now;
        }
        async_run_due(cluster);
        if (limit && cluster->steps > limit)
            fault_endless(cluster, limit);
    }
    for (int c = 0; c < cluster->cta_count && !faulted(cluster); c++)
        check_exit(&cluster->ctas[c]);
}

static void run_one(Launch *launch, uint64_t number, uint64_t *queue) {
    Cluster cluster = {.launch = launch,
                       .queue = queue,
                       .random = launch->seed * 0x9E3779B97F4A7C15ull + number * 0xD1B54A32D192ED03ull + 1};
    cluster.cta_count = (int)(launch->cluster[0] * launch->cluster[1] * launch->cluster[2]);
    cluster.ctas = calloc((size_t)cluster.cta_count, sizeof(Cta));
    bool good = cluster.ctas != NULL;
    for (int rank = 0; good && rank < cluster.cta_count; rank++) {
        place_cta(launch, &cluster.ctas[rank], number, rank);
        good = init_cta(&cluster, &cluster.ctas[rank], rank);
        for (int w = 0; good && w < cluster.ctas[rank].warp_count; w++)
            decode_init_registers(launch->program, &cluster.ctas[rank].warps[w]);
    }
    if (good)
        run_cluster(&cluster);
    else
        snprintf(cluster.fault.text, sizeof cluster.fault.text, "out of memory"),
            cluster.fault.kind = SIM_FAULT_UNSUPPORTED;
    for (int rank = 0; cluster.ctas && rank < cluster.cta_count; rank++)
        free_cta(&cluster.ctas[rank]);
    free(cluster.ctas);
    pthread_mutex_lock(&launch->lock);
    launch->done++;
    launch->executed += cluster.steps;
    if (faulted(&cluster) && (launch->fault.kind == SIM_FAULT_NONE || number < launch->fault_cluster)) {
        launch->fault = cluster.fault;
        launch->fault_cluster = number;
    }
    if (launch->sim->progress)
        launch->sim->progress(launch->sim->progress_context, launch->done, launch->cluster_total);
    pthread_mutex_unlock(&launch->lock);
}

// A multiprocessor's part of the queue: what its clusters don't take themselves is launched one by one.
static void run_part(Launch *launch, uint64_t first) {
    for (uint64_t next = first; next < launch->cluster_total;) {
        uint64_t number = next;
        next += (uint64_t)launch->sim->sm_count;
        run_one(launch, number, &next);
        pthread_mutex_lock(&launch->lock);
        bool stop = launch->fault.kind != SIM_FAULT_NONE;
        pthread_mutex_unlock(&launch->lock);
        if (stop)
            return;
    }
}

static void *work(void *context) {
    Launch *launch = context;
    bool parts = launch->program->uses_queue;
    uint64_t count = launch->cluster_total;
    if (parts && count > (uint64_t)launch->sim->sm_count)
        count = (uint64_t)launch->sim->sm_count;
    for (;;) {
        pthread_mutex_lock(&launch->lock);
        bool stop = launch->next_cluster >= count || launch->fault.kind != SIM_FAULT_NONE;
        uint64_t number = stop ? 0 : launch->next_cluster++;
        pthread_mutex_unlock(&launch->lock);
        if (stop)
            return NULL;
        if (parts)
            run_part(launch, number);
        else
            run_one(launch, number, NULL);
    }
}

bool run_launch(Launch *launch) {
    enum { MOST_THREADS = 64 };
    pthread_t threads[MOST_THREADS];
    int count = launch->sim->threads, started = 0;
    count = count > MOST_THREADS ? MOST_THREADS : count < 1 ? 1 : count;
    pthread_mutex_init(&launch->lock, NULL);
    for (; started < count - 1; started++)
        if (pthread_create(&threads[started], NULL, work, launch))
            break;
    work(launch);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&launch->lock);
    return launch->fault.kind == SIM_FAULT_NONE;
}
