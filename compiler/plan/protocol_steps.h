// protocol_steps.h: shared by the files of the protocol check, private to this room.
//
// A trip says how many tiles there are and how many blocks each has. Nothing that decides which statements
// run depends on waiting, so a trip gives each actor (a replica of a role) one list of events, which doesn't
// depend on the depths of rings either. A rehearsal then plays the lists against each other.
#ifndef JFA_COMPILER_PLAN_PROTOCOL_STEPS_H
#define JFA_COMPILER_PLAN_PROTOCOL_STEPS_H

#include "compiler/plan/lookup.h"
#include "grammar/ast.h"

enum { MOST_STEPS = 1 << 18 };                                      // statements of one actor in one trip
enum { MAX_TRIP_TILES = 3, MAX_TRIP_WALKS = 16, DEEPER_TRIED = 8 }; // DEEPER_TRIED: slots more in a ring

typedef struct {
    int tiles;
    int blocks[MAX_TRIP_TILES][MAX_TRIP_WALKS];
} Trip;

// A condition on values that only a launch knows, and the outcome that this run takes. Equal conditions have
// equal keys.
typedef struct {
    uint64_t identity;
    bool holds;
    const Expr *expr;
} Choice;

typedef struct {
    Choice list[64];
    int count;
    unsigned pattern; // outcome of choice i: bit i modulo CHOICE_BITS
} Choices;

enum { CHOICE_BITS = 4 };

typedef enum { EVENT_PUT, EVENT_PUBLISH, EVENT_TAKE, EVENT_FREE } EventKind;

typedef struct {
    EventKind kind;
    int channel; // number of a pipe of an array among all of them
    int use;     // how often that actor had put or taken this channel before
    const Stmt *stmt;
    const Slot *slot;
} Event;

typedef struct {
    const Role *role;
    int replica;
    bool *decides; // by number of a local: a condition depends on it
    // Of the run at hand:
    Event *events;
    int count, capacity;
    int *puts, *taken; // how many, by channel
} Actor;

typedef struct { // one pipe, or one of an array
    const Pipe *pipe;
    int index;
    int takers;       // actors that take it
    const Turn *turn; // NULL, or the turn whose token goes through here: each replica takes the one that the
                      // replica before it put
} Channel;

typedef struct Protocol {
    const Plan *plan;
    Diag *diag;
    Arena *arena;
    Arena *scratch; // of one run
    Actor *actors;
    int actor_count;
    Channel *channels;
    int channel_count;
    int *first_channel; // by number of a pipe
    int *turn_channel;  // by number of a turn: that of its replica 0
    Trip *trips;
    int trip_count;
    // Of the run at hand:
    const Trip *trip;
    Choices choices;
    bool quiet;            // tries something out: reports nothing
    const Actor *too_long; // whose statements were too many to be run, in that trip; or NULL
    // What has been reported, so that it isn't once more for the next trip.
    uint64_t *reported;
    int reported_count, reported_capacity;
} Protocol;

uint64_t hash_mix(uint64_t a, uint64_t b);
bool protocol_is_new(Protocol *protocol, const void *what, uint64_t more); // and remembers it
int protocol_pipe_number(const Protocol *protocol, const Pipe *pipe);
bool actor_uses(const Actor *actor, const Channel *channel); // whether a pipe's slots are that replica's, too
const char *actor_text(const Protocol *protocol, const Actor *actor);
const char *channel_text(const Protocol *protocol, const Channel *channel);

// trips.c
void trips_make(Protocol *protocol);
bool trips_smaller(const Protocol *protocol, const Trip *trip, int step, Trip *smaller);
const char *trip_text(const Protocol *protocol); // "with 2 tiles of 1 and 0 blocks"

// evaluate.c: what decides which statements run.
typedef struct {
    bool known;
    double number;
    uint64_t identity;
} Value;

typedef struct {
    const Expr *expr;
    unsigned epoch;
    Value value;
} Known;

typedef struct {
    Protocol *protocol;
    const Actor *actor;
    int tile;
    int *block_index; // by number of a block
    Value *locals;
    unsigned epoch; // values computed earlier hold as long as it is the same
    Known known[256];
} Context;

void evaluate_find_deciding(Protocol *protocol, Actor *actor);
Value evaluate(Context *context, const Expr *expr);
bool evaluate_condition(Context *context, const Expr *expr);

// trace.c: the events of all actors for the trip and choices at hand; also reports products that add to
// nothing.
void trace_all(Protocol *protocol);

// rehearse.c
typedef struct {
    int *at; // the event that each actor has come to
    bool finished;
    const Buffer *deeper; // a root buffer tried with another depth, or NULL
    int depth;
    int *published, *freed; // by channel and stage
    int stages;             // most in a ring
} Rehearsal;

int rehearsal_depth(const Rehearsal *rehearsal, const Pipe *pipe);
// The channel, and how many frees of the slot's stage, that a put waits for; false: it waits for nothing.
bool rehearsal_needs(const Protocol *protocol, const Rehearsal *rehearsal, const Event *event, int *channel,
                     int *frees);
void rehearse(Protocol *protocol, Rehearsal *rehearsal);

// deadlock.c: reports where a rehearsal stopped.
void deadlock_report(Protocol *protocol, const Rehearsal *rehearsal);

// protocol.c: whether every rehearsal reaches its end when the rings of that root buffer have another depth.
// Other runs take the place of the run at hand.
bool protocol_passes_with(Protocol *protocol, const Buffer *root, int depth);

#endif
