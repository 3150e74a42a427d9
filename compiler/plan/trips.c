// trips.c: which numbers of tiles and blocks are tried. Few are enough to meet every transition: no block,
// the first, the last, one between; consecutive tiles with different counts; and more blocks than the deepest
// ring has slots.
#include "compiler/plan/protocol_steps.h"

#include <string.h>

enum { COUNTS = 4, MOST_KINDS = 64, MOST_TRIPS = 1024 };

typedef struct {
    int blocks[MAX_TRIP_WALKS];
} Kind; // of a tile

static int make_kinds(const Plan *plan, Kind *kinds) {
    int walks = plan->walk_count, count = 0;
    for (int equal = 0; equal < COUNTS; equal++, count++)
        for (int walk = 0; walk < walks; walk++)
            kinds[count].blocks[walk] = equal;
    if (walks == 2) {
        for (int i = 0; i < COUNTS * COUNTS; i++)
            if (i / COUNTS != i % COUNTS)
                kinds[count++] = (Kind){{i / COUNTS, i % COUNTS}};
        return count;
    }
    for (int walk = 0; walk < walks && walks > 2; walk++)
        for (int other = 0; other < COUNTS; other += 2, count++)
            for (int i = 0; i < walks; i++)
                kinds[count].blocks[i] = i == walk ? 2 - other : other;
    return count;
}

static void add_trip(Protocol *protocol, int tiles, const Kind *first, const Kind *second,
                     const Kind *third) {
    if (protocol->trip_count == MOST_TRIPS)
        return;
    const Kind *kinds[MAX_TRIP_TILES] = {first, second, third};
    Trip *trip = &protocol->trips[protocol->trip_count++];
    trip->tiles = tiles;
    for (int tile = 0; tile < tiles; tile++)
        for (int walk = 0; walk < protocol->plan->walk_count; walk++)
            trip->blocks[tile][walk] = kinds[tile]->blocks[walk];
}

static void add_long_trips(Protocol *protocol, const Kind *kinds) {
    int deepest = 1;
    for (int i = 0; i < protocol->plan->buffer_count; i++)
        if (protocol->plan->buffers[i]->depth > deepest)
            deepest = protocol->plan->buffers[i]->depth;
    Kind many = {{0}};
    for (int walk = 0; walk < protocol->plan->walk_count; walk++)
        many.blocks[walk] = deepest + DEEPER_TRIED + 2;
    add_trip(protocol, 1, &many, NULL, NULL);
    add_trip(protocol, 2, &many, &kinds[1], NULL);
}

static int blocks_of(const Protocol *protocol, const Trip *trip) {
    int blocks = 0;
    for (int tile = 0; tile < trip->tiles; tile++)
        for (int walk = 0; walk < protocol->plan->walk_count; walk++)
            blocks += trip->blocks[tile][walk];
    return blocks;
}

// Fewest tiles first, of those the fewest blocks: what fails is told for the first trip that does.
static void sort_trips(Protocol *protocol) {
    Trip *trips = protocol->trips;
    for (int i = 1; i < protocol->trip_count; i++) {
        const Trip trip = trips[i];
        int blocks = blocks_of(protocol, &trip), place = i;
        for (; place > 0 &&
               (trips[place - 1].tiles > trip.tiles ||
                (trips[place - 1].tiles == trip.tiles && blocks_of(protocol, &trips[place - 1]) > blocks));
             place--)
            trips[place] = trips[place - 1];
        trips[place] = trip;
    }
}

// Leaves out a tile, or lowers a number of blocks: the next smaller trip to try. False: there are no more.
// `step` counts what has been tried since the trip last changed.
bool trips_smaller(const Protocol *protocol, const Trip *trip, int step, Trip *smaller) {
    *smaller = *trip;
    if (step < trip->tiles) {
        smaller->tiles--;
        for (int tile = step; tile < smaller->tiles; tile++)
            memcpy(smaller->blocks[tile], trip->blocks[tile + 1], sizeof trip->blocks[tile]);
        return true;
    }
    step -= trip->tiles;
    for (int tile = 0; tile < trip->tiles; tile++)
        for (int walk = 0; walk < protocol->plan->walk_count; walk++) {
            if (step < trip->blocks[tile][walk]) {
                smaller->blocks[tile][walk] = step;
                return true;
            }
            step -= trip->blocks[tile][walk];
        }
    return false;
}

void trips_make(Protocol *protocol) {
    static const int THREES[][MAX_TRIP_TILES] = {{0, 0, 0}, {1, 0, 1}, {2, 0, 1},
                                                 {0, 3, 0}, {3, 1, 2}, {3, 3, 3}};
    Kind kinds[MOST_KINDS] = {0};
    int count = protocol->plan->walk_count ? make_kinds(protocol->plan, kinds) : 1;
    protocol->trips = arena_array(protocol->arena, Trip, MOST_TRIPS);
    add_trip(protocol, 0, NULL, NULL, NULL);
    for (int i = 0; i < count; i++)
        add_trip(protocol, 1, &kinds[i], NULL, NULL);
    // With many walks, one tile of each pair is of the first, equal kinds.
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++)
            if (count <= COUNTS * COUNTS || i < COUNTS || k < COUNTS)
                add_trip(protocol, 2, &kinds[i], &kinds[k], NULL);
    for (size_t i = 0; i < sizeof THREES / sizeof THREES[0]; i++)
        if (count > 1 || i == 0)
            add_trip(protocol, 3, &kinds[THREES[i][0]], &kinds[THREES[i][1]], &kinds[THREES[i][2]]);
    if (count > 1)
        add_long_trips(protocol, kinds);
    sort_trips(protocol);
}

// ---------------------------------------------------------------- in words

// "1, 0 and 2"
static const char *counts_text(const Protocol *protocol, int walk) {
    const Trip *trip = protocol->trip;
    const char *text = "";
    for (int tile = 0; tile < trip->tiles; tile++)
        text = arena_format(protocol->arena, "%s%s%d", text,
                            tile == 0                 ? ""
                            : tile == trip->tiles - 1 ? " and "
                                                      : ", ",
                            trip->blocks[tile][walk]);
    bool one = trip->blocks[trip->tiles - 1][walk] == 1;
    return arena_format(protocol->arena, "%s block%s", text, one ? "" : "s");
}

static const char *choices_text(const Protocol *protocol, const char *text) {
    enum { MOST_SAID = 3 };
    int said = 0;
    for (int i = 0; i < protocol->choices.count && said < MOST_SAID; i++) {
        const Choice *choice = &protocol->choices.list[i];
        if (choice->expr->span.file < 0)
            continue;
        const char *condition = ast_text(protocol->diag->sources, protocol->arena, choice->expr->span);
        text = arena_format(protocol->arena, "%s, %s '%s' %s", text, said++ ? "and" : "where", condition,
                            choice->holds ? "holds" : "doesn't hold");
    }
    return text;
}

const char *trip_text(const Protocol *protocol) {
    const Trip *trip = protocol->trip;
    const Plan *plan = protocol->plan;
    const char *text =
        arena_format(protocol->arena, "with %d tile%s", trip->tiles, trip->tiles == 1 ? "" : "s");
    for (int walk = 0; walk < plan->walk_count && trip->tiles; walk++) {
        text =
            arena_format(protocol->arena, "%s %s %s", text, walk ? "and" : "of", counts_text(protocol, walk));
        if (plan->walk_count > 1)
            text = arena_format(protocol->arena, "%s of '%s'", text, plan->walks[walk]->name);
    }
    return choices_text(protocol, text);
}
