// deadlock.c: finds the roles that wait for each other where a rehearsal stopped, and says what would help.
#include "compiler/plan/protocol_steps.h"

typedef struct {
    int actor, next; // next: the one it waits for, -1: none that could still act
    const Event *event;
    int channel; // it waits for: that of the event, or the one whose frees it needs
} Wait;

static bool is_blocked(const Protocol *protocol, const Rehearsal *rehearsal, int actor) {
    return rehearsal->at[actor] < protocol->actors[actor].count;
}

static int putter_of(const Protocol *protocol, int channel) {
    const Channel *own = &protocol->channels[channel];
    int replicas = own->pipe->from->replicas, before = (own->index + replicas - 1) % replicas;
    for (int i = 0; i < protocol->actor_count && own->turn; i++)
        if (protocol->actors[i].role == own->turn->role && protocol->actors[i].replica == before)
            return i;
    for (int i = 0; i < protocol->actor_count; i++)
        if (protocol->actors[i].role == own->pipe->from && actor_uses(&protocol->actors[i], own))
            return i;
    return -1;
}

static int frees_of(const Protocol *protocol, const Rehearsal *rehearsal, int actor, int channel, int stage) {
    int depth = rehearsal_depth(rehearsal, protocol->channels[channel].pipe), count = 0;
    for (int i = 0; i < rehearsal->at[actor]; i++) {
        const Event *event = &protocol->actors[actor].events[i];
        count += event->kind == EVENT_FREE && event->channel == channel && event->use % depth == stage;
    }
    return count;
}

// A taker that hasn't freed the slot often enough, if there is one, that is blocked itself.
static int owing_taker(const Protocol *protocol, const Rehearsal *rehearsal, const Event *event, int channel,
                       int frees) {
    const Channel *own = &protocol->channels[channel];
    int stage = event->use % rehearsal_depth(rehearsal, own->pipe);
    for (int i = 0; i < protocol->actor_count; i++) {
        const Actor *actor = &protocol->actors[i];
        if (role_takes(actor->role, own->pipe) && actor_uses(actor, own) &&
            is_blocked(protocol, rehearsal, i) &&
            frees_of(protocol, rehearsal, i, channel, stage) * own->takers < frees)
            return i;
    }
    return -1;
}

static Wait wait_of(const Protocol *protocol, const Rehearsal *rehearsal, int actor) {
    const Event *event = &protocol->actors[actor].events[rehearsal->at[actor]];
    Wait wait = {.actor = actor, .event = event, .channel = event->channel};
    int frees;
    if (event->kind == EVENT_TAKE)
        wait.next = putter_of(protocol, event->channel);
    else if (rehearsal_needs(protocol, rehearsal, event, &wait.channel, &frees))
        wait.next = owing_taker(protocol, rehearsal, event, wait.channel, frees);
    if (wait.next >= 0 && !is_blocked(protocol, rehearsal, wait.next))
        wait.next = -1;
    return wait;
}

// The waits of a cycle, the first actor of the schedule first; its length. Every blocked actor leads into a
// cycle, or to one that waits for nobody, which is then given alone.
static int find_cycle(const Protocol *protocol, const Rehearsal *rehearsal, Wait *cycle) {
    int actor = 0;
    while (!is_blocked(protocol, rehearsal, actor))
        actor++;
    Wait wait = wait_of(protocol, rehearsal, actor);
    for (int i = 0; i < protocol->actor_count && wait.next >= 0;
         i++) // after so many steps it is inside a cycle
        wait = wait_of(protocol, rehearsal, wait.next);
    int first = wait.actor;
    for (Wait next = wait; next.next >= 0 && next.next != wait.actor;) {
        next = wait_of(protocol, rehearsal, next.next);
        first = next.actor < first ? next.actor : first;
    }
    int length = 0;
    wait = wait_of(protocol, rehearsal, first);
    do {
        cycle[length++] = wait;
        if (wait.next < 0)
            break;
        wait = wait_of(protocol, rehearsal, wait.next);
    } while (wait.actor != first);
    return length;
}

// The same roles that wait for the same pipes are one cycle, whatever the replicas and the numbers of blocks.
static uint64_t signature(const Wait *cycle, int length, const Protocol *protocol) {
    uint64_t sum = 0;
    for (int i = 0; i < length; i++) {
        const Channel *channel = &protocol->channels[cycle[i].channel];
        uint64_t pipe =
            channel->turn ? ~(uint64_t)0 : (uint64_t)protocol_pipe_number(protocol, channel->pipe);
        uint64_t role = (uint64_t)protocol->actors[cycle[i].actor].role->number;
        uint64_t one = hash_mix(hash_mix(role, pipe), cycle[i].event->kind);
        bool met = false;
        for (int k = 0; k < i; k++)
            met |= protocol->actors[cycle[k].actor].role == protocol->actors[cycle[i].actor].role &&
                   protocol->channels[cycle[k].channel].pipe == protocol->channels[cycle[i].channel].pipe;
        sum += met ? 0 : one;
    }
    return sum;
}

static void note_wait(const Protocol *protocol, DiagItem *error, const Wait *wait) {
    const char *name = actor_text(protocol, &protocol->actors[wait->actor]);
    const Channel *own = &protocol->channels[wait->event->channel],
                  *other = &protocol->channels[wait->channel];
    Span span = wait->event->stmt->span;
    if (own->turn)
        diag_note(error, span, "'%s' waits for its turn '%s', which the replica before it has to end", name,
                  own->turn->name);
    else if (wait->event->kind == EVENT_TAKE)
        diag_note(error, span, "'%s' waits for '%s' to put '%s'", name, own->pipe->from->name,
                  channel_text(protocol, own));
    else if (own == other)
        diag_note(error, span, "'%s' waits for a free slot of '%s' (depth %d), which '%s' frees", name,
                  channel_text(protocol, own), own->pipe->buffer->depth,
                  pipe_takers_text(protocol->plan, own->pipe));
    else
        diag_note(error, span, "'%s' waits for the bytes that '%s' shares with '%s', which '%s' frees", name,
                  channel_text(protocol, own), channel_text(protocol, other),
                  pipe_takers_text(protocol->plan, other->pipe));
}

// ---------------------------------------------------------------- help

// The smallest depth of the ring with which all runs reach their end; 0: none that was tried.
static int passing_depth(Protocol *protocol, const Buffer *root) {
    for (int more = 1; more <= DEEPER_TRIED; more++)
        if (protocol_passes_with(protocol, root, root->depth + more))
            return root->depth + more;
    return 0;
}

static bool ring_may_grow(const Protocol *protocol, const Buffer *root) {
    for (int i = 0; i < protocol->plan->pipe_count; i++)
        if (buffer_root(protocol->plan->pipes[i]->buffer) == root && protocol->plan->pipes[i]->in_place)
            return false; // a slot that keeps contents is one certain slot
    return true;
}

static const char *deeper_help(Protocol *protocol, const Wait *cycle, int length) {
    for (int i = 0; i < length; i++) {
        const Buffer *root = buffer_root(protocol->channels[cycle[i].channel].pipe->buffer);
        if (cycle[i].event->kind != EVENT_PUT || !ring_may_grow(protocol, root))
            continue;
        int depth = passing_depth(protocol, root);
        if (depth)
            return arena_format(protocol->arena, "it passes when '%s' has a depth of %d instead of %d",
                                root->name, depth, root->depth);
    }
    return NULL;
}

static bool takes_later(const Protocol *protocol, const Rehearsal *rehearsal, int actor, int channel) {
    const Actor *own = &protocol->actors[actor];
    for (int i = rehearsal->at[actor]; i < own->count; i++)
        if (own->events[i].kind == EVENT_TAKE && own->events[i].channel == channel)
            return true;
    return false;
}

static const char *wait_help(const Protocol *protocol, const Rehearsal *rehearsal, const Wait *wait,
                             const Wait *next) {
    const char *name = actor_text(protocol, &protocol->actors[wait->actor]);
    const char *what = channel_text(protocol, &protocol->channels[wait->channel]);
    const char *own = channel_text(protocol, &protocol->channels[wait->event->channel]);
    if (wait->next == wait->actor && wait->event->kind == EVENT_PUT)
        return arena_format(protocol->arena, "let '%s' free '%s' before it puts '%s'", name, what, own);
    if (wait->event->kind != EVENT_TAKE || next->event->kind != EVENT_PUT || next->next != wait->actor ||
        next->channel == wait->channel || !takes_later(protocol, rehearsal, wait->actor, next->channel))
        return NULL;
    const char *full = channel_text(protocol, &protocol->channels[next->channel]);
    const char *putter = actor_text(protocol, &protocol->actors[next->actor]);
    return arena_format(
        protocol->arena,
        "let '%s' take and '%s' put '%s' and '%s' in the same order: here '%s' takes '%s' next, but "
        "'%s' puts '%s'",
        name, putter, full, what, name, what, putter, full);
}

// A role takes one pipe while the other role has to be rid of another one first, or waits for its own free.
static const char *order_help(const Protocol *protocol, const Rehearsal *rehearsal, const Wait *cycle,
                              int length) {
    const char *help = NULL;
    for (int i = 0; i < length && !help; i++)
        help = wait_help(protocol, rehearsal, &cycle[i], &cycle[(i + 1) % length]);
    return help;
}

static const char *who_text(const Protocol *protocol, const Wait *cycle, int length) {
    const char *text = "";
    for (int i = 0; i < length; i++)
        text = arena_format(protocol->arena, "%s%s'%s'", text,
                            i == 0            ? ""
                            : i == length - 1 ? " and "
                                              : ", ",
                            actor_text(protocol, &protocol->actors[cycle[i].actor]));
    return text;
}

void deadlock_report(Protocol *protocol, const Rehearsal *rehearsal) {
    Wait *cycle = arena_array(protocol->arena, Wait, protocol->actor_count + 1);
    int length = find_cycle(protocol, rehearsal, cycle);
    if (!protocol_is_new(protocol, NULL, signature(cycle, length, protocol)))
        return;
    const char *who = who_text(protocol, cycle, length), *when = trip_text(protocol);
    const char *how = length > 1          ? "wait for each other"
                      : cycle[0].next < 0 ? "waits for ever"
                                          : "waits for itself";
    DiagItem *error = diag_error(protocol->diag, cycle[0].event->stmt->span, "deadlock", "%s %s %s %s",
                                 length > 1 ? "roles" : "role", who, how, when);
    for (int i = 0; i < length; i++)
        note_wait(protocol, error, &cycle[i]);
    // The events of this run are gone once others are tried.
    const char *order = order_help(protocol, rehearsal, cycle, length);
    Event *events = arena_array(protocol->arena, Event, length);
    for (int i = 0; i < length; i++) {
        events[i] = *cycle[i].event;
        cycle[i].event = &events[i];
    }
    const char *deeper = deeper_help(protocol, cycle, length);
    if (deeper && order)
        diag_help(error, "%s; or %s", deeper, order);
    else if (deeper || order)
        diag_help(error, "%s", deeper ? deeper : order);
    else
        diag_help(error,
                  "no deeper ring helps: free a slot before waiting for what its free makes possible, or "
                  "change the order of puts and takes");
}
