// tiles.c: the loops over tiles and over the blocks of a walk. Every role computes them from the same record
// by the same code, so all roles see the same tiles and blocks.
#include "compiler/lower/internal.h"

#include <string.h>

// Work item -> record and factors: item = record * F + f, the last factor running fastest.
static void read_record(Lower *l, Value item) {
    const Plan *plan = l->plan;
    Value factor_count = ir_int(l, 1);
    for (int i = 0; i < plan->factor_count; i++)
        factor_count = ir_mul(l, factor_count, arg_value(l, ARG_DIM, plan->factors[i].dim, 0));
    Value record = ir_udiv(l, item, factor_count), rest = ir_urem(l, item, factor_count);
    for (int i = plan->factor_count - 1; i >= 0; i--) {
        Value extent = arg_value(l, ARG_DIM, plan->factors[i].dim, 0);
        l->factors[i] = i == 0 ? rest : ir_urem(l, rest, extent);
        if (i > 0)
            rest = ir_udiv(l, rest, extent);
    }
    Value first = ir_mul(l, LLVMBuildSExt(l->builder, record, l->i64, ""), ir_long(l, plan->field_count));
    for (int i = 0; i < plan->field_count; i++) {
        Value at = ir_add(l, first, ir_long(l, i));
        Value address = LLVMBuildGEP2(l->builder, l->i32, arg_value(l, ARG_RECORDS, 0, 0), &at, 1, "");
        l->fields[i] = LLVMBuildLoad2(l->builder, l->i32, address, "");
        LLVMSetMetadata(l->fields[i], LLVMGetMDKindIDInContext(l->context, "invariant.load", 14),
                        LLVMMDNodeInContext(l->context, NULL, 0));
    }
}

static bool only_bounds(const Walk *walk) {
    // The predicate is then `position < length`: every block up to the length counts, and no scan is needed.
    const Expr *where = walk->where;
    return where->kind == X_BINARY && where->op == '<' && where->a->kind == X_LOCAL &&
           where->b->kind == X_FIELD;
}

// What follows is about a block of that walk, so its axis has positions; what held before.
static uint64_t enter_axis(Lower *l, const Walk *walk) {
    uint64_t outside = l->walked_axes;
    l->walked_axes |= 1ull << walk->axis;
    return outside;
}

// Moves `block` by `step` while no element of the block can be seen and it hasn't met `limit`.
static Value skip_empty(Lower *l, const Walk *walk, Value from, Value limit, int step) {
    Value variable = ir_variable(l, l->i32, from);
    LLVMBasicBlockRef test = ir_block(l, "skip_test"), look = ir_block(l, "skip_look"),
                      next = ir_block(l, "skip_next"), done = ir_block(l, "skip_done");
    ir_jump(l, test);
    ir_at(l, test);
    Value at = ir_get(l, l->i32, variable);
    ir_branch(l, ir_equal(l, at, limit), done, look);
    ir_at(l, look);
    math_cache_clear(l);
    Value block = step > 0 ? at : ir_sub(l, at, ir_int(l, 1)), must, may;
    uint64_t outside = enter_axis(l, walk);
    interval_class(l, walk, ir_mul(l, block, ir_int(l, walk->size)), &must, &may);
    l->walked_axes = outside;
    ir_branch(l, may, done, next);
    ir_at(l, next);
    ir_set(l, variable, ir_add(l, at, ir_int(l, step)));
    ir_jump(l, test);
    ir_at(l, done);
    math_cache_clear(l);
    return ir_get(l, l->i32, variable);
}

static void find_walk(Lower *l, int number) {
    const Walk *walk = l->plan->walks[number];
    Value length = l->fields[plan_field((Plan *)l->plan, FIELD_LEN, walk->axis, 0)];
    Value blocks = ir_udiv(l, ir_add(l, length, ir_int(l, walk->size - 1)), ir_int(l, walk->size));
    WalkState *state = &l->walks[number];
    if (only_bounds(walk)) {
        state->first = ir_int(l, 0);
        state->count = blocks;
        return;
    }
    state->first = skip_empty(l, walk, ir_int(l, 0), blocks, 1);
    Value end = skip_empty(l, walk, blocks, state->first, -1);
    state->count = ir_sub(l, end, state->first);
}

// Items are dealt out in zig-zag: round r gives cluster c of G (a CTA that has none counts as one) item r * G
// + c, or counted from the other end when r is odd.
static Value dealt_item(Lower *l, Value round) {
    Value size = ir_int(l, l->plan->cluster);
    Value cta = ir_udiv(l, ir_intrinsic(l, "llvm.nvvm.read.ptx.sreg.ctaid.x", NULL, 0, NULL, 0), size);
    Value ctas = ir_udiv(l, ir_intrinsic(l, "llvm.nvvm.read.ptx.sreg.nctaid.x", NULL, 0, NULL, 0), size);
    Value mirrored = ir_sub(l, ir_sub(l, ctas, ir_int(l, 1)), cta);
    Value odd = LLVMBuildTrunc(l->builder, round, l->i1, "");
    return ir_add(l, ir_mul(l, round, ctas), ir_select(l, odd, mirrored, cta));
}

void tiles_loop(Lower *l, const Stmt *stmt) {
    bool asks = l->plan->queue_depth;
    QueueState queue = {0};
    if (asks)
        queue = queue_begin(l);
    Value round = ir_variable(l, l->i32, ir_int(l, 0));
    LLVMBasicBlockRef test = ir_block(l, "tiles_test"), body = ir_block(l, "tiles_body"),
                      done = ir_block(l, "tiles_done");
    ir_jump(l, test);
    ir_at(l, test);
    Value item = asks ? queue_next(l, &queue) : dealt_item(l, ir_get(l, l->i32, round));
    ir_branch(l, LLVMBuildICmp(l->builder, LLVMIntULT, item, arg_value(l, ARG_ITEMS, 0, 0), ""), body, done);
    ir_at(l, body);
    math_cache_clear(l);
    read_record(l, item);
    for (int i = 0; i < l->plan->walk_count; i++)
        find_walk(l, i);
    walk_statements(l, stmt->body);
    flight_settle_all(l);
    ir_set(l, round, ir_add(l, ir_get(l, l->i32, round), ir_int(l, 1)));
    ir_jump(l, test);
    ir_at(l, done);
}

static void block_body(Lower *l, const Stmt *stmt, Value full) {
    l->blocks[stmt->block->number].full = full;
    walk_statements(l, stmt->body);
}

// The body is compiled once, or twice if it asks whether the block is full: then each copy knows the answer.
static void block_bodies(Lower *l, const Stmt *stmt) {
    if (!stmt->block->reads_full) {
        block_body(l, stmt, ir_bool(l, false));
        return;
    }
    Value must, may;
    math_cache_clear(l);
    interval_class(l, stmt->block->walk, l->blocks[stmt->block->number].start, &must, &may);
    LLVMBasicBlockRef full = ir_block(l, "block_full"), partial = ir_block(l, "block_partial"),
                      done = ir_block(l, "block_done");
    ir_branch(l, must, full, partial);
    Flights before = flight_part(l);
    FlightPath first;
    ir_at(l, full);
    block_body(l, stmt, ir_bool(l, true));
    flight_swap(l, &before, &first);
    ir_at(l, partial);
    block_body(l, stmt, ir_bool(l, false));
    flight_meet(l, &before, &first, done);
}

static const WalkState *state_of(const Lower *l, const Walk *walk) {
    int number = 0;
    while (l->plan->walks[number] != walk)
        number++;
    return &l->walks[number];
}

static void enter_block(Lower *l, const Stmt *stmt, Value index) {
    const Walk *walk = stmt->block->walk;
    const WalkState *state = state_of(l, walk);
    BlockState *block = &l->blocks[stmt->block->number];
    Value place = walk->last_first ? ir_sub(l, ir_sub(l, state->count, ir_int(l, 1)), index) : index;
    block->index = index;
    block->count = state->count;
    block->start = ir_mul(l, ir_add(l, state->first, place), ir_int(l, walk->size));
    uint64_t outside = enter_axis(l, walk);
    block_bodies(l, stmt);
    l->walked_axes = outside;
}

// The first or the last block, if there is one.
static void one_block(Lower *l, const Stmt *stmt) {
    Value count = state_of(l, stmt->block->walk)->count;
    LLVMBasicBlockRef body = ir_block(l, "walk_body"), none = ir_block(l, "walk_none"),
                      done = ir_block(l, "walk_done");
    ir_branch(l, ir_less(l, ir_int(l, 0), count), body, none);
    Flights before = flight_part(l);
    FlightPath first;
    ir_at(l, body);
    enter_block(l, stmt, stmt->part == PART_FIRST ? ir_int(l, 0) : ir_sub(l, count, ir_int(l, 1)));
    flight_swap(l, &before, &first);
    ir_at(l, none);
    flight_meet(l, &before, &first, done);
}

// The test stands at the end: what a body leaves in registers goes round without copies.
void walk_loop(Lower *l, const Stmt *stmt) {
    if (stmt->part == PART_FIRST || stmt->part == PART_LAST) {
        one_block(l, stmt);
        return;
    }
    flight_settle_all(l);
    Value first = ir_int(l, stmt->part == PART_REST), count = state_of(l, stmt->block->walk)->count;
    Value variable = ir_variable(l, l->i32, first);
    LLVMBasicBlockRef body = ir_block(l, "walk_body"), done = ir_block(l, "walk_done");
    ir_branch(l, ir_less(l, first, count), body, done);
    ir_at(l, body);
    enter_block(l, stmt, ir_get(l, l->i32, variable));
    flight_settle_all(l);
    Value next = ir_add(l, ir_get(l, l->i32, variable), ir_int(l, 1));
    ir_set(l, variable, next);
    ir_branch(l, ir_less(l, next, count), body, done);
    ir_at(l, done);
}
