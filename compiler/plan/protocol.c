// protocol.c: what can be told from the statements alone; then, for every trip, whether puts and takes come
// out even, and whether a rehearsal reaches its end.
#include "compiler/plan/protocol.h"
#include "compiler/plan/protocol_steps.h"

// ---------------------------------------------------------------- names and memory

bool protocol_is_new(Protocol *protocol, const void *what, uint64_t more) {
    uint64_t identity = hash_mix((uint64_t)(uintptr_t)what, more);
    for (int i = 0; i < protocol->reported_count; i++)
        if (protocol->reported[i] == identity)
            return false;
    if (protocol->reported_count == protocol->reported_capacity) {
        int capacity = protocol->reported_capacity ? 2 * protocol->reported_capacity : 16;
        uint64_t *reported = arena_array(protocol->arena, uint64_t, capacity);
        for (int i = 0; i < protocol->reported_count; i++)
            reported[i] = protocol->reported[i];
        protocol->reported = reported;
        protocol->reported_capacity = capacity;
    }
    protocol->reported[protocol->reported_count++] = identity;
    return true;
}

int protocol_pipe_number(const Protocol *protocol, const Pipe *pipe) {
    int number = 0;
    while (protocol->plan->pipes[number] != pipe)
        number++;
    return number;
}

const char *actor_text(const Protocol *protocol, const Actor *actor) {
    if (actor->role->replicas == 1)
        return actor->role->name;
    return arena_format(protocol->arena, "%s[%d]", actor->role->name, actor->replica);
}

const char *channel_text(const Protocol *protocol, const Channel *channel) {
    if (channel->turn)
        return channel->turn->name;
    if (!channel->pipe->is_array)
        return channel->pipe->name;
    return arena_format(protocol->arena, "%s[%d]", channel->pipe->name, channel->index);
}

bool actor_uses(const Actor *actor, const Channel *channel) {
    const Role *role = actor->role;
    if (role->replicas == 1 || pipe_sharers(channel->pipe, role) > 1)
        return true;
    return channel->index == actor->replica;
}

// ---------------------------------------------------------------- from the statements alone

static bool has_slot(const Stmt *stmt, const Pipe *pipe, bool filling) {
    for (; stmt; stmt = stmt->next) {
        bool opens = stmt->kind != ST_FREE && stmt->slot && stmt->slot->pipe == pipe;
        if ((opens && stmt->slot->filling == filling) || has_slot(stmt->body, pipe, filling) ||
            has_slot(stmt->other, pipe, filling))
            return true;
    }
    return false;
}

static const Stmt *first_free(const Stmt *stmt, const Pipe *pipe) {
    for (; stmt; stmt = stmt->next) {
        if (stmt->kind == ST_FREE && stmt->slot->pipe == pipe)
            return stmt;
        const Stmt *within = first_free(stmt->body, pipe);
        within = within ? within : first_free(stmt->other, pipe);
        if (within)
            return within;
    }
    return NULL;
}

static void check_pipe_used(Protocol *protocol, const Pipe *pipe) {
    if (!has_slot(pipe->from->body, pipe, true)) {
        DiagItem *error = diag_error(protocol->diag, pipe->span, "never-put", "role '%s' never puts '%s'",
                                     pipe->from->name, pipe->name);
        diag_note(error, pipe->from->span, "role '%s' is declared here", pipe->from->name);
        diag_help(error, "put %s = ...; or leave the pipe out", pipe->name);
    }
    for (int i = 0; i < pipe->to_count; i++) {
        bool twice = false;
        for (int k = 0; k < i; k++)
            twice |= pipe->to[k] == pipe->to[i];
        if (twice)
            diag_error(protocol->diag, pipe->span, "named-twice", "'%s' names its taker '%s' twice",
                       pipe->name, pipe->to[i]->name);
        if (twice || has_slot(pipe->to[i]->body, pipe, false))
            continue;
        DiagItem *error = diag_error(protocol->diag, pipe->span, "never-taken", "role '%s' never takes '%s'",
                                     pipe->to[i]->name, pipe->name);
        diag_note(error, pipe->to[i]->span, "role '%s' is declared here", pipe->to[i]->name);
        diag_help(error,
                  "every taker that a pipe names must take and free each slot: take x = %s; ... free x;",
                  pipe->name);
    }
}

// Bytes that go on to the next pipe can't also come back: whoever waits for them would have to know which.
static void check_handed_on(Protocol *protocol, const Pipe *pipe) {
    if (!pipe_gives_on(protocol->plan, pipe))
        return;
    const Pipe *next = pipe_next(protocol->plan, pipe);
    for (int i = 0; i < pipe->to_count; i++) {
        const Stmt *stmt = first_free(pipe->to[i]->body, pipe);
        if (!stmt)
            continue;
        DiagItem *error = diag_error(protocol->diag, stmt->span, "round-order",
                                     "a slot of '%s' is freed here, but handed on to '%s' elsewhere",
                                     pipe->name, next->name);
        diag_note(error, next->from_span, "handed on here");
        diag_help(error, "treat it alike on every path: put '%s' while the slot is held, or free it first",
                  next->name);
    }
}

static void check_statements(Protocol *protocol) {
    for (int i = 0; i < protocol->plan->pipe_count; i++) {
        check_pipe_used(protocol, protocol->plan->pipes[i]);
        check_handed_on(protocol, protocol->plan->pipes[i]);
    }
}

// ---------------------------------------------------------------- puts and takes of one run

static int puts_of(const Protocol *protocol, int channel) {
    int count = 0;
    for (int i = 0; i < protocol->actor_count; i++)
        count += protocol->actors[i].puts[channel];
    return count;
}

// "puts 'q_in' twice"
static const char *how_often(const Protocol *protocol, const char *verb, const char *what, int count) {
    static const char *const WORDS[] = {"", " once", " twice"};
    if (count == 0)
        return arena_format(protocol->arena, "never %s %s", verb, what);
    if (count <= 2)
        return arena_format(protocol->arena, "%s %s%s", verb, what, WORDS[count]);
    return arena_format(protocol->arena, "%s %s %d times", verb, what, count);
}

static void report_uneven(Protocol *protocol, const Channel *channel, const Actor *taker, int puts,
                          int taken) {
    const Pipe *pipe = channel->pipe;
    if (!protocol_is_new(protocol, pipe, (uint64_t)(uintptr_t)taker->role))
        return;
    const char *name = arena_format(protocol->arena, "'%s'", channel_text(protocol, channel));
    DiagItem *error =
        diag_error(protocol->diag, pipe->span, "uneven", "'%s' %s, but '%s' %s, %s", pipe->from->name,
                   how_often(protocol, "puts", name, puts), actor_text(protocol, taker),
                   how_often(protocol, "takes", "it", taken), trip_text(protocol));
    diag_note(error, pipe->from_span, "'%s' puts it here", pipe->from->name);
    diag_note(error, pipe->to_span, "and it is taken here");
    diag_help(error, "on every path, each slot that is put must be taken once by each taker");
}

static void report_round(Protocol *protocol, const Channel *channel, int puts, int puts_before) {
    const Pipe *pipe = channel->pipe, *before = pipe->before;
    if (!protocol_is_new(protocol, pipe, 1))
        return;
    const char *name = arena_format(protocol->arena, "'%s'", channel_text(protocol, channel));
    const Channel other = {.pipe = before, .index = channel->index};
    const char *shared =
        arena_format(protocol->arena, "'%s', whose bytes it shares", channel_text(protocol, &other));
    DiagItem *error =
        diag_error(protocol->diag, pipe->span, "round-order", "'%s' %s, but '%s' %s, %s", pipe->from->name,
                   how_often(protocol, "puts", name, puts), before->from->name,
                   how_often(protocol, "puts", shared, puts_before), trip_text(protocol));
    diag_note(error, before->span, "'%s' is declared here", before->name);
    diag_help(error, "shared bytes go round: each put of '%s' belongs to one put of '%s'", pipe->name,
              before->name);
}

static bool comes_out_even(Protocol *protocol) {
    bool even = true;
    for (int i = 0; i < protocol->channel_count; i++) {
        const Channel *channel = &protocol->channels[i];
        int puts = puts_of(protocol, i);
        if (channel->turn)
            continue;
        for (int k = 0; k < protocol->actor_count; k++) {
            const Actor *actor = &protocol->actors[k];
            if (!role_takes(actor->role, channel->pipe) || !actor_uses(actor, channel))
                continue;
            int taken = actor->taken[i];
            if (taken != puts && !protocol->quiet)
                report_uneven(protocol, channel, actor, puts, taken);
            even &= taken == puts;
        }
    }
    for (int i = 0; i < protocol->channel_count && even; i++) {
        const Channel *channel = &protocol->channels[i];
        if (channel->turn)
            continue;
        int before =
            protocol->first_channel[protocol_pipe_number(protocol, channel->pipe->before)] + channel->index;
        int puts = puts_of(protocol, i), puts_before = puts_of(protocol, before);
        if (puts == puts_before)
            continue;
        even = false;
        if (!protocol->quiet)
            report_round(protocol, channel, puts, puts_before);
    }
    return even;
}

// ---------------------------------------------------------------- all runs

static bool run(Protocol *protocol, const Buffer *deeper, int depth);

// The roles wait for each other in this trip: tells it for the smallest one made from it where they do.
static void report_smallest(Protocol *protocol) {
    const Trip *outer = protocol->trip;
    Trip *least = arena_new_of(protocol->arena, Trip), candidate;
    *least = *outer;
    protocol->quiet = true;
    for (int step = 0; trips_smaller(protocol, least, step, &candidate); step++) {
        protocol->trip = &candidate;
        if (run(protocol, NULL, 0))
            continue;
        *least = candidate;
        step = -1;
    }
    protocol->quiet = false;
    protocol->trip = least;
    trace_all(protocol);
    Rehearsal rehearsal = {0};
    rehearse(protocol, &rehearsal);
    deadlock_report(protocol, &rehearsal);
    protocol->trip = outer;
}

// One run; false: it doesn't reach its end.
static bool run(Protocol *protocol, const Buffer *deeper, int depth) {
    trace_all(protocol);
    if (protocol->too_long)
        return false;
    if (!comes_out_even(protocol)) // reported apart: no depth changes it
        return protocol->quiet;
    Rehearsal rehearsal = {.deeper = deeper, .depth = depth};
    rehearse(protocol, &rehearsal);
    if (!rehearsal.finished && !protocol->quiet)
        report_smallest(protocol);
    return rehearsal.finished;
}

// All outcomes of a trip's conditions, up to CHOICE_BITS of them apart; the first failure ends it.
static bool run_trip(Protocol *protocol, const Trip *trip, const Buffer *deeper, int depth) {
    protocol->trip = trip;
    unsigned patterns = 1;
    for (unsigned pattern = 0; pattern < patterns; pattern++) {
        protocol->choices.pattern = pattern;
        Arena *scratch = arena_new();
        protocol->scratch = scratch ? scratch : protocol->arena;
        bool ends = run(protocol, deeper, depth);
        arena_free(scratch);
        if (!ends)
            return false;
        int bits = protocol->choices.count < CHOICE_BITS ? protocol->choices.count : CHOICE_BITS;
        patterns = patterns > 1u << bits ? patterns : 1u << bits;
    }
    return true;
}

bool protocol_passes_with(Protocol *protocol, const Buffer *root, int depth) {
    protocol->quiet = true;
    bool passes = true;
    for (int i = 0; i < protocol->trip_count && passes; i++)
        passes = run_trip(protocol, &protocol->trips[i], root, depth);
    protocol->quiet = false;
    return passes;
}

static void find_actors(Protocol *protocol) {
    const Plan *plan = protocol->plan;
    for (int i = 0; i < plan->role_count; i++)
        protocol->actor_count += plan->roles[i]->replicas;
    protocol->actors = arena_array(protocol->arena, Actor, protocol->actor_count + 1);
    Actor *actor = protocol->actors;
    for (int i = 0; i < plan->role_count; i++)
        for (int replica = 0; replica < plan->roles[i]->replicas; replica++, actor++) {
            actor->role = plan->roles[i];
            actor->replica = replica;
            evaluate_find_deciding(protocol, actor);
        }
}

static void find_channels(Protocol *protocol) {
    const Plan *plan = protocol->plan;
    protocol->first_channel = arena_array(protocol->arena, int, plan->pipe_count + 1);
    for (int i = 0; i < plan->pipe_count; i++) {
        protocol->first_channel[i] = protocol->channel_count;
        protocol->channel_count += plan->pipes[i]->array;
    }
    protocol->turn_channel = arena_array(protocol->arena, int, plan->turn_count + 1);
    for (int i = 0; i < plan->turn_count; i++) {
        protocol->turn_channel[i] = protocol->channel_count;
        protocol->channel_count += plan->turns[i]->role->replicas;
    }
    protocol->channels = arena_array(protocol->arena, Channel, protocol->channel_count + 1);
    for (int i = 0; i < plan->pipe_count; i++)
        for (int index = 0; index < plan->pipes[i]->array; index++) {
            Channel *channel = &protocol->channels[protocol->first_channel[i] + index];
            channel->pipe = plan->pipes[i];
            channel->index = index;
            for (int k = 0; k < protocol->actor_count; k++)
                channel->takers += role_takes(protocol->actors[k].role, channel->pipe) &&
                                   actor_uses(&protocol->actors[k], channel);
        }
}

// A turn is a token that goes round the replicas. It needs no slot to lie in: a put of it never waits.
static void find_turns(Protocol *protocol) {
    for (int i = 0; i < protocol->plan->turn_count; i++) {
        const Turn *turn = protocol->plan->turns[i];
        Buffer *buffer = arena_new_of(protocol->arena, Buffer);
        buffer->depth = 1;
        Pipe *pipe = arena_new_of(protocol->arena, Pipe);
        pipe->buffer = buffer;
        pipe->before = pipe;
        pipe->hands_over = pipe->is_array = true;
        pipe->array = turn->role->replicas;
        pipe->from = pipe->to[pipe->to_count++] = turn->role;
        for (int replica = 0; replica < turn->role->replicas; replica++)
            protocol->channels[protocol->turn_channel[i] + replica] =
                (Channel){.pipe = pipe, .index = replica, .takers = 1, .turn = turn};
    }
}

// Loops over blocks around each statement, at most.
static int walk_depth(const Stmt *stmt) {
    int deepest = 0;
    for (; stmt; stmt = stmt->next) {
        int body = walk_depth(stmt->body) + (stmt->kind == ST_WALK), other = walk_depth(stmt->other);
        deepest = body > deepest ? body : deepest;
        deepest = other > deepest ? other : deepest;
    }
    return deepest;
}

static void report_too_long(Protocol *protocol) {
    const Role *role = protocol->too_long->role;
    DiagItem *error = diag_error(protocol->diag, role->span, "too-complex",
                                 "role '%s' runs more than %d statements %s: too many to be checked",
                                 role->name, MOST_STEPS, trip_text(protocol));
    if (walk_depth(role->body) > 1)
        diag_help(error, "a loop over blocks within another one runs its body for each pair of blocks: put "
                         "what doesn't need both outside of the inner loop");
    else
        diag_help(error, "say more in each statement: a function (fn) may hold what many 'let' compute");
}

bool protocol_check(Plan *plan, Diag *diag) {
    int errors = diag->error_count;
    Protocol protocol = {.plan = plan, .diag = diag, .arena = plan->arena};
    check_statements(&protocol);
    if (diag->error_count != errors)
        return false;
    find_actors(&protocol);
    find_channels(&protocol);
    find_turns(&protocol);
    trips_make(&protocol);
    for (int i = 0; i < protocol.trip_count && !protocol.too_long; i++)
        run_trip(&protocol, &protocol.trips[i], NULL, 0);
    if (protocol.too_long)
        report_too_long(&protocol);
    return diag->error_count == errors;
}
