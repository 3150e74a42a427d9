// barriers.c: which barriers a pipe needs. A slot's "full" barrier completes when its filling has, its
// "empty" one when all its takers have given it back; each has one phase a use (PTX ISA, "mbarrier").
#include "compiler/plan/place_steps.h"
#include "compiler/plan/lookup.h"

// Arrivals with which a role completes a filling or a use: threads arrive once a warp, and so do they when
// they multiply into their registers; every other engine arrives once.
static int arrivals(const Plan *plan, Engine engine, const Role *role) {
    bool by_threads =
        engine == ENGINE_THREADS || (engine == ENGINE_PRODUCT && plan->target->products_in_registers);
    return by_threads ? role->warps : 1;
}

static int empty_arrivals(const Plan *plan, const Pipe *pipe) {
    int count = 0;
    for (int i = 0; i < pipe->to_count; i++)
        count += arrivals(plan, pipe->used_by, pipe->to[i]) * pipe_sharers(pipe, pipe->to[i]);
    return pipe->multicast ? count * plan->cluster : count; // the bytes of all CTAs are written at once
}

// Named barriers of a CTA; number 0 synchronises all its threads (PTX ISA, "barrier").
static void number_turns(Plan *plan, Diag *diag) {
    enum { NAMED_BARRIERS = 16 };
    int next = 1;
    for (int i = 0; i < plan->turn_count; i++) {
        plan->turns[i]->barrier = next;
        next += plan->turns[i]->role->replicas;
    }
    if (next <= NAMED_BARRIERS)
        return;
    DiagItem *error = diag_error(diag, plan->schedule_span, "barrier-budget",
                                 "the turns need %d named barriers, %d more than the %d of a CTA", next - 1,
                                 next - NAMED_BARRIERS, NAMED_BARRIERS - 1);
    for (int i = 0; i < plan->turn_count; i++)
        diag_note(error, plan->turns[i]->span, "'%s' needs %d, one for each replica of '%s'",
                  plan->turns[i]->name, plan->turns[i]->role->replicas, plan->turns[i]->role->name);
}

// Products of one thread run in the order of their issue (PTX ISA, "tcgen05 memory consistency model"). So a
// product that writes bytes which an earlier product of the same thread reads needs no barrier between them.
static bool is_ordered(const Plan *plan, const Pipe *pipe) {
    const Pipe *next = pipe_next(plan, pipe);
    if (pipe->used_by != ENGINE_PRODUCT || next->filled_by != ENGINE_PRODUCT || pipe->to_count != 1)
        return false;
    const Role *role = pipe->to[0];
    return next->from == role && pipe_sharers(pipe, role) == 1 && pipe_sharers(next, role) == 1;
}

static bool needs_empty(const Plan *plan, const Pipe *pipe) {
    return !pipe->free_is_ordered && !pipe_gives_on(plan, pipe);
}

static int pipe_barriers(const Plan *plan, const Pipe *pipe) {
    return needs_empty(plan, pipe) ? 2 : 1;
}

void barriers_decide(Plan *plan, Diag *diag) {
    for (int i = 0; i < plan->pipe_count; i++) {
        Pipe *pipe = plan->pipes[i];
        const Buffer *buffer = pipe->buffer;
        pipe->free_is_ordered = !pipe_gives_on(plan, pipe) && is_ordered(plan, pipe);
        pipe->full_count = arrivals(plan, pipe->filled_by, pipe->from);
        pipe->empty_count = needs_empty(plan, pipe) ? empty_arrivals(plan, pipe) : 0;
        int64_t tile_bytes = (int64_t)buffer->rows * buffer->cols * elem_bytes(buffer->elem);
        pipe->bytes = pipe->filled_by == ENGINE_LOAD ? tile_bytes : 0;
        if (pipe_sharers(pipe, pipe->from) > 1) {
            DiagItem *error = diag_error(diag, pipe->span, "replica-put",
                                         "all %d replicas of '%s' put into the same slots of '%s'",
                                         pipe->from->replicas, pipe->from->name, pipe->name);
            diag_note(error, pipe->from->span, "the replicas are declared here");
            diag_help(error, "give each replica its own pipe: pipe %s [%d], put as %s[%s]", pipe->name,
                      pipe->from->replicas, pipe->name,
                      pipe->from->replica_name ? pipe->from->replica_name : "g");
        }
    }
    number_turns(plan, diag);
    int64_t count = barriers_count(plan);
    plan->mbarriers = (int)count;
    if (count > plan->target->max_mbarriers) {
        DiagItem *error = diag_error(
            diag, plan->schedule_span, "barrier-budget",
            "the pipes need %lld barriers, %lld more than the %d that a kernel may have", (long long)count,
            (long long)(count - plan->target->max_mbarriers), plan->target->max_mbarriers);
        for (int i = 0; i < plan->pipe_count; i++)
            diag_note(error, plan->pipes[i]->span, "'%s' has %lld slots with %d barrier%s each",
                      plan->pipes[i]->name, (long long)buffer_instances(plan->pipes[i]->buffer),
                      pipe_barriers(plan, plan->pipes[i]),
                      pipe_barriers(plan, plan->pipes[i]) == 1 ? "" : "s");
        diag_help(error, "a pipe has up to two barriers a slot: fewer or less deep pipes need fewer");
    }
}

int64_t barriers_count(const Plan *plan) {
    int64_t count = 2 * plan->queue_depth;
    for (int i = 0; i < plan->pipe_count; i++)
        count += buffer_instances(plan->pipes[i]->buffer) * pipe_barriers(plan, plan->pipes[i]);
    return count;
}

int64_t barriers_bytes(const Plan *plan) {
    return (barriers_count(plan) + plan->queue_depth) * BARRIER_BYTES; // an item takes no more than a barrier
}

void barriers_place(Plan *plan) {
    int64_t offset = plan->barrier_offset;
    for (int i = 0; i < plan->pipe_count; i++) {
        Pipe *pipe = plan->pipes[i];
        int64_t bytes = buffer_instances(pipe->buffer) * BARRIER_BYTES;
        pipe->full_barrier = offset;
        offset += bytes;
        pipe->empty_barrier = -1;
        if (needs_empty(plan, pipe)) {
            pipe->empty_barrier = offset;
            offset += bytes;
        }
    }
    int64_t queue_bytes = plan->queue_depth * BARRIER_BYTES;
    plan->queue_full = offset;
    plan->queue_empty = offset + queue_bytes;
    plan->queue_items = offset + 2 * queue_bytes;
    offset += 3 * queue_bytes;
    plan->barrier_bytes = offset - plan->barrier_offset;
}
