// rehearse.c: plays the actors' events against each other. Each goes as far as it can; the order doesn't
// matter, since nothing that one does can stop another that could go on.
#include "compiler/plan/protocol_steps.h"

int rehearsal_depth(const Rehearsal *rehearsal, const Pipe *pipe) {
    return rehearsal->deeper && buffer_root(pipe->buffer) == rehearsal->deeper ? rehearsal->depth
                                                                               : pipe->buffer->depth;
}

static int stage_of(const Protocol *protocol, const Rehearsal *rehearsal, const Event *event) {
    int depth = rehearsal_depth(rehearsal, protocol->channels[event->channel].pipe);
    return event->channel * rehearsal->stages + event->use % depth;
}

bool rehearsal_needs(const Protocol *protocol, const Rehearsal *rehearsal, const Event *event, int *channel,
                     int *frees) {
    const Channel *own = &protocol->channels[event->channel];
    const Pipe *pipe = own->pipe;
    if (pipe->hands_over)
        return false;
    // The first pipe of a round finds the bytes free; a later one follows the same use of the pipe before it.
    int round = event->use / rehearsal_depth(rehearsal, pipe) + (pipe->first_in_round ? 0 : 1);
    *channel = protocol->first_channel[protocol_pipe_number(protocol, pipe->before)] + own->index;
    *frees = round * protocol->channels[*channel].takers;
    return round > 0;
}

static bool can_go_on(const Protocol *protocol, const Rehearsal *rehearsal, const Event *event) {
    int stage = stage_of(protocol, rehearsal, event);
    if (event->kind == EVENT_TAKE) {
        int depth = rehearsal_depth(rehearsal, protocol->channels[event->channel].pipe);
        return rehearsal->published[stage] > event->use / depth;
    }
    int channel, frees;
    if (event->kind != EVENT_PUT || !rehearsal_needs(protocol, rehearsal, event, &channel, &frees))
        return true;
    return rehearsal->freed[stage + (channel - event->channel) * rehearsal->stages] >= frees;
}

static bool advance(const Protocol *protocol, Rehearsal *rehearsal, int actor) {
    const Actor *own = &protocol->actors[actor];
    int start = rehearsal->at[actor];
    for (; rehearsal->at[actor] < own->count; rehearsal->at[actor]++) {
        const Event *event = &own->events[rehearsal->at[actor]];
        if (!can_go_on(protocol, rehearsal, event))
            break;
        int stage = stage_of(protocol, rehearsal, event);
        rehearsal->published[stage] += event->kind == EVENT_PUBLISH;
        rehearsal->freed[stage] += event->kind == EVENT_FREE;
    }
    return rehearsal->at[actor] != start;
}

void rehearse(Protocol *protocol, Rehearsal *rehearsal) {
    rehearsal->stages = rehearsal->depth;
    for (int i = 0; i < protocol->plan->pipe_count; i++)
        if (protocol->plan->pipes[i]->buffer->depth > rehearsal->stages)
            rehearsal->stages = protocol->plan->pipes[i]->buffer->depth;
    int cells = protocol->channel_count * rehearsal->stages + 1;
    rehearsal->published = arena_array(protocol->scratch, int, cells);
    rehearsal->freed = arena_array(protocol->scratch, int, cells);
    rehearsal->at = arena_array(protocol->scratch, int, protocol->actor_count + 1);
    for (int i = 0; i < protocol->plan->turn_count; i++) // the first turn is that of replica 0
        rehearsal->published[protocol->turn_channel[i] * rehearsal->stages] = 1;
    bool moved = true;
    while (moved) {
        moved = false;
        for (int i = 0; i < protocol->actor_count; i++)
            moved |= advance(protocol, rehearsal, i);
    }
    rehearsal->finished = true;
    for (int i = 0; i < protocol->actor_count; i++)
        rehearsal->finished &= rehearsal->at[i] == protocol->actors[i].count;
}
