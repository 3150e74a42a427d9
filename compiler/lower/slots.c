// slots.c: pipes in motion. Which barrier a put, take or free waits for or signals follows from the plan: who
// fills a slot, who uses it, and whose free its bytes wait for.
#include "compiler/lower/internal.h"

#include "grammar/ast.h"

// The role's place in the ring of a pipe, made at first use: stage 0, phase 0.
RingState *ring_of(Lower *l, const Slot *slot) {
    int64_t index = slot->index && slot->index->kind == X_INT ? slot->index->integer : -1;
    for (int i = 0; i < l->ring_count; i++)
        if (l->rings[i].pipe == slot->pipe && l->rings[i].index == index &&
            l->rings[i].filling == slot->filling)
            return &l->rings[i];
    if (l->ring_count == MAX_RINGS) {
        l->out_of_rings = true;
        return &l->rings[0];
    }
    RingState *ring = &l->rings[l->ring_count++];
    ring->pipe = slot->pipe;
    ring->index = index;
    ring->filling = slot->filling;
    // The initial values go to the function's entry: the role may first meet the pipe inside a loop.
    ring->stage = LLVMBuildAlloca(l->entry_builder, l->i32, "");
    ring->phase = LLVMBuildAlloca(l->entry_builder, l->i32, "");
    LLVMBuildStore(l->entry_builder, ir_int(l, 0), ring->stage);
    LLVMBuildStore(l->entry_builder, ir_int(l, 0), ring->phase);
    return ring;
}

static void advance(Lower *l, RingState *ring) {
    Value stage = ir_get(l, l->i32, ring->stage), phase = ir_get(l, l->i32, ring->phase);
    if (ring->pipe->buffer->depth == 1) {
        ir_set(l, ring->phase, ir_xor(l, phase, ir_int(l, 1)));
        return;
    }
    Value next = ir_add(l, stage, ir_int(l, 1));
    Value wraps = ir_equal(l, next, ir_int(l, ring->pipe->buffer->depth));
    ir_set(l, ring->stage, ir_select(l, wraps, ir_int(l, 0), next));
    ir_set(l, ring->phase, ir_xor(l, phase, LLVMBuildZExt(l->builder, wraps, l->i32, "")));
}

Value slot_index(Lower *l, const Slot *slot) {
    return !slot->index                 ? ir_int(l, 0)
           : slot->index->kind == X_INT ? ir_int(l, slot->index->integer)
                                        : l->replica;
}

// Instance number of the slot's bytes and barriers: index * depth + stage.
static Value instance(Lower *l, const Slot *slot) {
    const SlotState *state = &l->slots[slot->number];
    Value index = ir_mul(l, state->index, ir_int(l, slot->pipe->buffer->depth));
    return ir_add(l, index, state->stage);
}

static Value barrier_at(Lower *l, int64_t offset, Value number) {
    Value place = ir_add(l, ir_int(l, offset), ir_shl(l, number, 3));
    return ir_add(l, l->shared_base, place);
}

Value slot_full_barrier(Lower *l, const Slot *slot) {
    return barrier_at(l, slot->pipe->full_barrier, instance(l, slot));
}

Value slot_address(Lower *l, const Slot *slot) {
    const Buffer *buffer = slot->pipe->buffer;
    Value offset =
        ir_add(l, ir_int(l, buffer->offset), ir_mul(l, instance(l, slot), ir_int(l, buffer->stride)));
    return ir_add(l, buffer->space == SPACE_TMEM ? l->tmem : l->shared_base, offset);
}

static bool in_tmem(const Slot *slot) {
    return slot->pipe->buffer->space == SPACE_TMEM;
}

// Waits until the bytes of the next slot are free. The first round of a ring finds them free: the barrier's
// phase "before the first" has parity 1. A later pipe of a round waits for a free that has to happen first:
// parity 0.
void slot_wait_free(Lower *l, const Slot *slot) {
    RingState *ring = ring_of(l, slot);
    SlotState *state = &l->slots[slot->number];
    state->stage = ir_get(l, l->i32, ring->stage);
    state->index = slot_index(l, slot);
    const Pipe *pipe = slot->pipe, *before = pipe->before;
    if (!pipe->hands_over && !before->free_is_ordered) {
        Value phase = ir_get(l, l->i32, ring->phase);
        Value parity = pipe->first_in_round ? ir_xor(l, phase, ir_int(l, 1)) : phase;
        watchdog_wait(l, before, false, barrier_at(l, before->empty_barrier, instance(l, slot)), parity);
        if (in_tmem(slot))
            l->engines->after_wait(l);
    }
    advance(l, ring);
}

void slot_wait_full(Lower *l, const Slot *slot) {
    RingState *ring = ring_of(l, slot);
    SlotState *state = &l->slots[slot->number];
    state->stage = ir_get(l, l->i32, ring->stage);
    state->index = slot_index(l, slot);
    watchdog_wait(l, slot->pipe, true, slot_full_barrier(l, slot), ir_get(l, l->i32, ring->phase));
    if (in_tmem(slot))
        l->engines->after_wait(l);
    advance(l, ring);
}

static void arrive_one(Lower *l, Value barrier, int ctas) {
    if (ctas == 1)
        ptx_arrive(l, barrier);
    for (int i = 0; i < ctas && ctas > 1; i++)
        ptx_arrive_at(l, barrier, ir_int(l, i));
}

// One arrival a warp, at each of so many CTAs, after all its lanes are done with the bytes.
static void arrive_threads(Lower *l, const Slot *slot, Value barrier, int ctas) {
    if (in_tmem(slot))
        l->engines->before_arrive(l);
    if (!l->role->uses_values) {
        arrive_one(l, barrier, ctas);
        return;
    }
    ptx_sync_warp(l);
    if (ctas == 1)
        ptx_arrive_if(l, ir_equal(l, l->lane, ir_int(l, 0)), barrier);
    else
        ptx_arrive_at_all(l, l->lane, ctas, barrier);
}

void slot_publish(Lower *l, const Slot *slot) {
    Value barrier = slot_full_barrier(l, slot);
    switch (slot->pipe->filled_by) {
    case ENGINE_PRODUCT:
        l->engines->commit(l, barrier, 1);
        break;
    case ENGINE_THREADS:
        // Generic writes become visible to the asynchronous readers of shared memory by this fence alone.
        if (!in_tmem(slot) && slot->pipe->used_by != ENGINE_THREADS)
            ptx_fence_async(l);
        arrive_threads(l, slot, barrier, 1);
        break;
    default:
        break; // a load signals by its bytes
    }
}

void slot_release(Lower *l, const Slot *slot) {
    const Pipe *pipe = slot->pipe;
    if (pipe->free_is_ordered)
        return;
    Value barrier = barrier_at(l, pipe->empty_barrier, instance(l, slot));
    int ctas = pipe->multicast ? l->plan->cluster : 1; // whose loads wait for this
    switch (pipe->used_by) {
    case ENGINE_PRODUCT:
        if (l->plan->target->products_in_registers) {
            flight_settle_slot(l, slot);
            arrive_threads(l, slot, barrier, ctas);
        } else {
            l->engines->commit(l, barrier, ctas);
        }
        break;
    case ENGINE_STORE:
        ptx_store_wait(l, true);
        arrive_one(l, barrier, ctas);
        break;
    default:
        arrive_threads(l, slot, barrier, ctas);
        break;
    }
}

// Before the role ends: waits until the tensor core has returned every slot, since its arrivals come by
// themselves and must find the barrier alive.
void slot_drain(Lower *l) {
    if (l->plan->target->products_in_registers) // threads arrive themselves
        return;
    l->place = l->role->span;
    for (int i = 0; i < l->ring_count; i++) {
        RingState *ring = &l->rings[i];
        const Pipe *pipe = ring->pipe;
        if (!ring->filling || pipe->before != pipe || pipe->used_by != ENGINE_PRODUCT ||
            pipe->free_is_ordered)
            continue;
        Value index = ring->index >= 0 ? ir_int(l, ring->index) : pipe->is_array ? l->replica : ir_int(l, 0);
        for (int k = 0; k < pipe->buffer->depth; k++) {
            Value stage = ir_get(l, l->i32, ring->stage), phase = ir_get(l, l->i32, ring->phase);
            Value number = ir_add(l, ir_mul(l, index, ir_int(l, pipe->buffer->depth)), stage);
            watchdog_wait(l, pipe, false, barrier_at(l, pipe->empty_barrier, number),
                          ir_xor(l, phase, ir_int(l, 1)));
            advance(l, ring);
        }
    }
}
