// trace.c: runs the statements of each actor for one trip, without waiting, and lists its events. What a
// product adds to is known here too: the role that fills a slot is alone in doing so.
#include "compiler/plan/protocol_steps.h"

typedef struct {
    Context context;
    Protocol *protocol;
    Actor *actor;
    int *slot_use; // by number of a slot: the use that it holds
    const Slot *filling;
    bool written; // something went into the slot that is being filled
    int steps;
} Tracer;

static void run_list(Tracer *tracer, const Stmt *stmt);

static int channel_of(const Tracer *tracer, const Slot *slot) {
    int channel = tracer->protocol->first_channel[protocol_pipe_number(tracer->protocol, slot->pipe)];
    if (!slot->index)
        return channel;
    return channel + (slot->index->kind == X_INT ? (int)slot->index->integer : tracer->actor->replica);
}

static void add_event(Tracer *tracer, EventKind kind, const Stmt *stmt, int channel, int use) {
    Actor *actor = tracer->actor;
    if (actor->count == actor->capacity) {
        int capacity = actor->capacity ? 2 * actor->capacity : 64;
        Event *events = arena_array(tracer->protocol->scratch, Event, capacity);
        for (int i = 0; i < actor->count; i++)
            events[i] = actor->events[i];
        actor->events = events;
        actor->capacity = capacity;
    }
    actor->events[actor->count++] = (Event){kind, channel, use, stmt, stmt->slot};
}

static bool reports(const Tracer *tracer, const Stmt *stmt) {
    return !tracer->protocol->quiet && protocol_is_new(tracer->protocol, stmt, 0);
}

// A slot taken over must be the one that is next: otherwise the roles would mean different bytes by the same
// turn.
static void check_handing(Tracer *tracer, const Stmt *stmt, int use) {
    const Slot *slot = stmt->slot, *from = slot->handed_from;
    if (!from || tracer->slot_use[from->number] == use || !reports(tracer, stmt))
        return;
    DiagItem *error = diag_error(tracer->protocol->diag, stmt->span, "round-order",
                                 "'%s' takes over slots of '%s' out of order, %s", slot->pipe->name,
                                 from->pipe->name, trip_text(tracer->protocol));
    diag_note(error, from->span, "this slot of '%s' was taken here", from->pipe->name);
    diag_help(error, "hand slots on in the order in which they were taken, each exactly once");
}

static int start_put(Tracer *tracer, const Stmt *stmt) {
    int channel = channel_of(tracer, stmt->slot), use = tracer->actor->puts[channel]++;
    check_handing(tracer, stmt, use);
    tracer->slot_use[stmt->slot->number] = use;
    add_event(tracer, EVENT_PUT, stmt, channel, use);
    return channel;
}

// Whether the slot still holds what an earlier put left in it.
static bool keeps_contents(const Tracer *tracer, const Slot *slot) {
    return slot->pipe->in_place && tracer->slot_use[slot->number] >= slot->pipe->buffer->depth;
}

static void run_fill(Tracer *tracer, const Stmt *stmt) {
    int channel = start_put(tracer, stmt);
    tracer->filling = stmt->slot;
    tracer->written = keeps_contents(tracer, stmt->slot);
    run_list(tracer, stmt->body);
    if (!tracer->written && reports(tracer, stmt)) {
        DiagItem *error = diag_error(tracer->protocol->diag, stmt->span, "empty-fill",
                                     "nothing is written to '%s' before it is published, %s",
                                     stmt->slot->pipe->name, trip_text(tracer->protocol));
        diag_help(error,
                  "put it only when there is something to write, and take it under the same condition");
    }
    tracer->filling = NULL;
    add_event(tracer, EVENT_PUBLISH, stmt, channel, tracer->slot_use[stmt->slot->number]);
}

static void run_product(Tracer *tracer, const Stmt *stmt) {
    bool fresh = stmt->fresh && evaluate_condition(&tracer->context, stmt->fresh);
    if (!fresh && !tracer->written && reports(tracer, stmt)) {
        const Pipe *pipe = stmt->slot->pipe;
        DiagItem *error = diag_error(tracer->protocol->diag, stmt->span, "adds-to-nothing",
                                     "this product adds to a slot of '%s' that holds nothing, %s", pipe->name,
                                     trip_text(tracer->protocol));
        if (pipe->in_place)
            diag_help(error, "start anew with 'fresh if' at the first product of each tile");
        else
            diag_help(error,
                      "start anew with 'fresh if' at the first product; only a pipe that is 'in place' keeps "
                      "what its slots held before");
    }
    tracer->written = true;
}

static void run_walk(Tracer *tracer, const Stmt *stmt) {
    int walk = 0;
    while (tracer->protocol->plan->walks[walk] != stmt->block->walk)
        walk++;
    int count = tracer->protocol->trip->blocks[tracer->context.tile][walk];
    int first = stmt->part == PART_REST ? 1 : stmt->part == PART_LAST && count > 0 ? count - 1 : 0;
    int end = stmt->part == PART_FIRST && count > 1 ? 1 : count;
    for (int index = first; index < end && !tracer->protocol->too_long; index++) {
        tracer->context.block_index[stmt->block->number] = index;
        run_list(tracer, stmt->body);
    }
}

static void run_tiles(Tracer *tracer, const Stmt *stmt) {
    for (int tile = 0; tile < tracer->protocol->trip->tiles; tile++) {
        tracer->context.tile = tile;
        run_list(tracer, stmt->body);
    }
}

static void run_turn(Tracer *tracer, const Stmt *stmt) {
    Actor *actor = tracer->actor;
    int number = 0;
    while (tracer->protocol->plan->turns[number] != stmt->turn)
        number++;
    int first = tracer->protocol->turn_channel[number];
    int own = first + actor->replica, next = first + (actor->replica + 1) % stmt->turn->role->replicas;
    add_event(tracer, EVENT_TAKE, stmt, own, actor->taken[own]++);
    run_list(tracer, stmt->body);
    add_event(tracer, EVENT_PUBLISH, stmt, next, actor->puts[next]++);
}

static void run_local(Tracer *tracer, const Stmt *stmt) {
    if (tracer->actor->decides[stmt->local->number])
        tracer->context.locals[stmt->local->number] = evaluate(&tracer->context, stmt->value);
}

static void run_stmt(Tracer *tracer, const Stmt *stmt) {
    int channel;
    switch (stmt->kind) {
    case ST_TILES:
        run_tiles(tracer, stmt);
        break;
    case ST_WALK:
        run_walk(tracer, stmt);
        break;
    case ST_IF:
        run_list(tracer, evaluate_condition(&tracer->context, stmt->value) ? stmt->body : stmt->other);
        break;
    case ST_LET:
    case ST_SET:
        run_local(tracer, stmt);
        break;
    case ST_TAKE:
        channel = channel_of(tracer, stmt->slot);
        tracer->slot_use[stmt->slot->number] = tracer->actor->taken[channel]++;
        add_event(tracer, EVENT_TAKE, stmt, channel, tracer->slot_use[stmt->slot->number]);
        break;
    case ST_PUT_VALUE:
    case ST_PUT_LOAD:
        channel = start_put(tracer, stmt);
        add_event(tracer, EVENT_PUBLISH, stmt, channel, tracer->slot_use[stmt->slot->number]);
        break;
    case ST_FILL:
        run_fill(tracer, stmt);
        break;
    case ST_PRODUCT:
        if (stmt->slot)
            run_product(tracer, stmt);
        break;
    case ST_TURN:
        run_turn(tracer, stmt);
        break;
    case ST_FREE:
        add_event(tracer, EVENT_FREE, stmt, channel_of(tracer, stmt->slot),
                  tracer->slot_use[stmt->slot->number]);
        break;
    case ST_UPDATE:
    case ST_STORE_VALUE:
    case ST_STORE_TILE:
        break;
    }
}

static void run_list(Tracer *tracer, const Stmt *stmt) {
    for (; stmt; stmt = stmt->next) {
        if (++tracer->steps > MOST_STEPS) {
            tracer->protocol->too_long = tracer->actor;
            return;
        }
        tracer->context.epoch++;
        run_stmt(tracer, stmt);
    }
}

static void trace_actor(Protocol *protocol, Actor *actor) {
    const Role *role = actor->role;
    Arena *arena = protocol->scratch;
    Tracer *tracer = arena_new_of(arena, Tracer);
    tracer->protocol = protocol;
    tracer->actor = actor;
    actor->puts = arena_array(arena, int, protocol->channel_count + 1);
    actor->taken = arena_array(arena, int, protocol->channel_count + 1);
    tracer->slot_use = arena_array(arena, int, role->slot_count + 1);
    tracer->context.protocol = protocol;
    tracer->context.actor = actor;
    tracer->context.block_index = arena_array(arena, int, role->block_count + 1);
    tracer->context.locals = arena_array(arena, Value, role->local_count + 1);
    actor->events = NULL;
    actor->count = actor->capacity = 0;
    run_list(tracer, role->body);
}

void trace_all(Protocol *protocol) {
    protocol->choices.count = 0;
    for (int i = 0; i < protocol->actor_count; i++)
        trace_actor(protocol, &protocol->actors[i]);
}
