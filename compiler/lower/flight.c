// flight.c: products that have been issued into registers and not waited for. They retire in the order of
// their issue; a wait says how many of the latest may go on (PTX ISA, "wgmma.wait_group"). Each is waited for
// as late as the program's order allows: before its result is read, before a register that it reads changes,
// before a slot that it reads is given back, and where paths of the program meet.
#include "compiler/lower/internal.h"

#include <string.h>

void flight_add(Lower *l, Flight flight) {
    if (l->flight_count == MAX_FLIGHTS)
        flight_settle_all(l);
    l->flights[l->flight_count++] = flight;
}

// Waits for the `count` oldest. What their wait makes readable passes through it, and what they read is an
// input of it: otherwise registers could be read, or used anew, before it.
static void settle(Lower *l, int count) {
    if (count == 0)
        return;
    int results = 0, words = 0;
    for (int i = 0; i < count; i++) {
        results += l->flights[i].result ? l->flights[i].accumulator_count : 0;
        words += l->flights[i].word_count;
    }
    Value *tied = arena_array(l->arena, Value, results + 1), *kept = arena_array(l->arena, Value, words + 1);
    results = words = 0;
    for (int i = 0; i < count; i++) {
        const Flight *flight = &l->flights[i];
        for (int k = 0; k < flight->accumulator_count && flight->result; k++)
            tied[results++] = flight->accumulators[k];
        for (int k = 0; k < flight->word_count; k++)
            kept[words++] = flight->words[k];
    }
    l->engines->wait_products(l, l->flight_count - count, tied, results, kept, words);
    results = 0;
    for (int i = 0; i < count; i++) {
        const Flight *flight = &l->flights[i];
        for (int k = 0; k < flight->accumulator_count && flight->result; k++)
            ir_set(l, local_accumulator(l, flight->result, k), tied[results++]);
    }
    l->flight_count -= count;
    memmove(l->flights, l->flights + count, sizeof *l->flights * (size_t)l->flight_count);
}

void flight_settle_all(Lower *l) {
    settle(l, l->flight_count);
}

void flight_settle_result(Lower *l, const Local *local) {
    int count = 0;
    for (int i = 0; i < l->flight_count; i++)
        if (l->flights[i].result == local)
            count = i + 1;
    settle(l, count);
}

void flight_settle_uses(Lower *l, const Local *local) {
    int count = 0;
    for (int i = 0; i < l->flight_count; i++)
        if (l->flights[i].result == local || l->flights[i].operand == local)
            count = i + 1;
    settle(l, count);
}

void flight_settle_slot(Lower *l, const Slot *slot) {
    int count = 0;
    for (int i = 0; i < l->flight_count; i++)
        if (l->flights[i].a == slot || l->flights[i].b == slot)
            count = i + 1;
    settle(l, count);
}

Value *flight_take_over(Lower *l, const Local *local) {
    for (int i = l->flight_count - 1; i >= 0; i--)
        if (l->flights[i].result == local) {
            l->flights[i].result = NULL;
            return l->flights[i].accumulators;
        }
    return NULL;
}

// ---------------------------------------------------------------- paths that part and meet

Flights flight_part(const Lower *l) {
    Flights all = {.count = l->flight_count};
    memcpy(all.list, l->flights, sizeof all.list);
    return all;
}

static bool same(const Lower *l, const Flights *flights) {
    return l->flight_count == flights->count &&
           !memcmp(l->flights, flights->list, sizeof *l->flights * (size_t)flights->count);
}

static void restore(Lower *l, const Flights *flights) {
    l->flight_count = flights->count;
    memcpy(l->flights, flights->list, sizeof flights->list);
}

void flight_swap(Lower *l, const Flights *before, FlightPath *path) {
    path->end = LLVMGetInsertBlock(l->builder);
    path->flights = flight_part(l);
    restore(l, before);
}

void flight_meet(Lower *l, const Flights *before, const FlightPath *first, LLVMBasicBlockRef meeting) {
    bool alike = same(l, before) && same(l, &first->flights);
    if (!alike)
        flight_settle_all(l);
    ir_jump(l, meeting);
    ir_at(l, first->end);
    if (!alike) {
        restore(l, &first->flights);
        flight_settle_all(l);
    }
    ir_jump(l, meeting);
    ir_at(l, meeting);
}
