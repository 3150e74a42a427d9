// warpops.c: control flow and what the lanes of a warp do together (PTX ISA: "Control Flow", "shfl", "vote",
// "redux", "match", "elect", "bar.warp.sync", "setmaxnreg", and the hints that have no effect here).
#include "simulator/engines/numbers.h"
#include "simulator/machine/decode.h"

#include <string.h>

// ---------------------------------------------------------------- control flow: the scheduler acts on the
// flags

static void run_nothing(Warp *warp, const Op *op, uint32_t mask) {
    (void)warp, (void)op, (void)mask;
}

static bool decode_branch(Decoder *d, Op *op) {
    if (d->in->operand_count != 1 || d->in->operands[0].kind != PTX_LABEL)
        return false;
    op->flags = OP_BRANCH;
    op->mode = CONTROL_BRANCH;
    op->target = d->in->operands[0].target;
    op->run = run_nothing;
    return true;
}

// brx.idx index, table
static bool decode_indexed(Decoder *d, Op *op) {
    const PtxOperand *table = d->in->operand_count == 2 ? &d->in->operands[1] : NULL;
    if (!table || table->kind != PTX_VECTOR || table->items[0].kind != PTX_LABEL || strcmp(part(d, 1), "idx"))
        return false;
    op->flags = OP_BRANCH;
    op->mode = CONTROL_INDEXED;
    op->run = run_nothing;
    return take_operands(d, op, PTX_B32) && op->operands[0].at >= 0;
}

static bool decode_exit(Decoder *d, Op *op) {
    (void)d;
    op->flags = OP_BRANCH;
    op->mode = CONTROL_EXIT;
    op->run = run_nothing;
    return true;
}

static void run_trap(Warp *warp, const Op *op, uint32_t mask) {
    (void)mask;
    fault(warp, op, SIM_FAULT_TRAP, "the kernel executed trap");
}

static bool decode_trap(Decoder *d, Op *op) {
    (void)d;
    op->run = run_trap;
    return true;
}

static bool decode_nothing(Decoder *d, Op *op) {
    op->run = run_nothing;
    return take_operands(d, op, PTX_B32);
}

// ---------------------------------------------------------------- collectives

// All members must be here; lanes that are elsewhere make the group wait.
static bool members_here(Warp *warp, const Op *op, uint32_t mask, uint32_t members) {
    members &= ~warp->exited;
    if ((mask & members) == members)
        return true;
    (void)op;
    warp_block(warp, WAIT_WARP, members, 0);
    warp->groups[warp->current].pc--; // executed again, by all of them together
    return false;
}

static void run_warp_sync(Warp *warp, const Op *op, uint32_t mask) {
    members_here(warp, op, mask, (uint32_t)lane_value(warp, &op->operands[0], first_lane(mask)));
}

static bool decode_bar_warp(Decoder *d, Op *op) {
    if (!has(d, "warp"))
        return false;
    op->run = run_warp_sync;
    op->flags = OP_COLLECTIVE;
    return take_operands(d, op, PTX_B32);
}

enum { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY, SHUFFLE_IDX };

// operands: d[|p], a, b, c, membermask
static void run_shuffle(Warp *warp, const Op *op, uint32_t mask) {
    int first = op->first_list;
    if (!members_here(warp, op, mask, (uint32_t)lane_value(warp, &op->operands[first + 3], first_lane(mask))))
        return;
    uint32_t values[LANES] = {0}, predicate = 0, results[LANES];
    FOR_LANES(lane, mask) values[lane] = (uint32_t)lane_value(warp, &op->operands[first], (int)lane);
    FOR_LANES(lane, mask) {
        uint32_t b = (uint32_t)lane_value(warp, &op->operands[first + 1], (int)lane),
                 c = (uint32_t)lane_value(warp, &op->operands[first + 2], (int)lane);
        int bval = (int)(b & 31), cval = (int)(c & 31), segment = (int)(c >> 8 & 31), id = (int)lane;
        int max_lane = (id & segment) | (cval & ~segment), min_lane = id & segment, from;
        bool valid;
        switch (op->mode) {
        case SHUFFLE_UP:
            from = id - bval, valid = from >= max_lane;
            break;
        case SHUFFLE_DOWN:
            from = id + bval, valid = from <= max_lane;
            break;
        case SHUFFLE_BFLY:
            from = id ^ bval, valid = from <= max_lane;
            break;
        default:
            from = min_lane | (bval & ~segment), valid = from <= max_lane;
            break;
        }
        if (!valid)
            from = id;
        results[lane] = values[from & 31];
        predicate |= (uint32_t)valid << lane;
    }
    FOR_LANES(lane, mask) lane_set(warp, &op->operands[0], (int)lane, results[lane]);
    if (first == 2)
        FOR_LANES(lane, mask) lane_set(warp, &op->operands[1], (int)lane, predicate >> lane & 1);
}

static bool decode_shuffle(Decoder *d, Op *op) {
    static const char *const MODES[] = {"up", "down", "bfly", "idx"};
    op->mode = -1;
    for (int i = 0; i < 4; i++)
        if (has(d, MODES[i]))
            op->mode = i;
    if (op->mode < 0 || !has(d, "sync"))
        return false;
    op->first_list = operand_width(&d->in->operands[0]);
    op->run = run_shuffle;
    op->flags = OP_COLLECTIVE;
    return take_operands(d, op, PTX_B32);
}

enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };

static void run_vote(Warp *warp, const Op *op, uint32_t mask) {
    uint32_t members = (uint32_t)lane_value(warp, &op->operands[2], first_lane(mask)) & ~warp->exited;
    if (!members_here(warp, op, mask, members))
        return;
    uint32_t votes = *reg32(warp, &op->operands[1]);
    if (op->immediate)
        votes = ~votes;
    votes &= members;
    uint32_t result = op->mode == VOTE_BALLOT ? votes
                      : op->mode == VOTE_ALL  ? votes == members
                      : op->mode == VOTE_ANY  ? votes != 0
                                              : votes == members || !votes;
    FOR_LANES(lane, mask) lane_set(warp, &op->operands[0], (int)lane, result);
}

static bool decode_vote(Decoder *d, Op *op) {
    static const char *const MODES[] = {"all", "any", "uni", "ballot"};
    op->mode = -1;
    for (int i = 0; i < 4; i++)
        if (has(d, MODES[i]))
            op->mode = i;
    op->run = run_vote;
    op->flags = OP_COLLECTIVE;
    if (op->mode < 0 || !has(d, "sync") || d->in->operand_count != 3 || d->in->operands[1].kind != PTX_REG)
        return false;
    op->immediate = d->in->operands[1].negated;
    return take_operands(d, op, PTX_B32);
}

// redux.sync: add, min, max, and, or, xor on 32 bits; min and max of f32.
static void run_redux(Warp *warp, const Op *op, uint32_t mask) {
    uint32_t members = (uint32_t)lane_value(warp, &op->operands[2], first_lane(mask)) & ~warp->exited;
    if (!members_here(warp, op, mask, members))
        return;
    bool first = true;
    uint32_t total = 0;
    FOR_LANES(lane, members) {
        uint32_t value = (uint32_t)lane_value(warp, &op->operands[1], (int)lane);
        if (op->absolute)
            value &= 0x7FFFFFFF;
        if (first) {
            total = value;
            first = false;
            continue;
        }
        float a, b;
        memcpy(&a, &total, 4), memcpy(&b, &value, 4);
        bool less = op->type == PTX_S32 ? (int32_t)value < (int32_t)total : value < total;
        switch (op->mode) {
        case 0:
            total += value;
            break;
        case 1:
        case 2:
            if (op->type == PTX_F32) {
                float r = op->mode == 1 ? sim_min(a, b, op->nan, false) : sim_max(a, b, op->nan, false);
                memcpy(&total, &r, 4);
            } else if (less == (op->mode == 1)) {
                total = value;
            }
            break;
        case 3:
            total &= value;
            break;
        case 4:
            total |= value;
            break;
        default:
            total ^= value;
            break;
        }
    }
    FOR_LANES(lane, mask) lane_set(warp, &op->operands[0], (int)lane, total);
}

static bool decode_redux(Decoder *d, Op *op) {
    static const char *const MODES[] = {"add", "min", "max", "and", "or", "xor"};
    op->mode = -1;
    for (int i = 0; i < 6; i++)
        if (has(d, MODES[i]))
            op->mode = i;
    op->type = last_type(d);
    op->nan = has(d, "NaN");
    op->absolute = has(d, "abs");
    op->run = run_redux;
    op->flags = OP_COLLECTIVE;
    return op->mode >= 0 && take_operands(d, op, PTX_B32);
}

static void run_match(Warp *warp, const Op *op, uint32_t mask) {
    uint32_t members = (uint32_t)lane_value(warp, &op->operands[2], first_lane(mask)) & ~warp->exited;
    if (!members_here(warp, op, mask, members))
        return;
    FOR_LANES(lane, mask) {
        uint32_t same = 0;
        FOR_LANES(other, members)
        if (lane_value(warp, &op->operands[1], (int)other) == lane_value(warp, &op->operands[1], (int)lane))
            same |= 1u << other;
        lane_set(warp, &op->operands[0], (int)lane, same);
    }
}

static bool decode_match(Decoder *d, Op *op) {
    op->run = run_match;
    op->flags = OP_COLLECTIVE;
    return has(d, "any") && take_operands(d, op, last_type(d));
}

static void run_activemask(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) lane_set(warp, &op->operands[0], (int)lane, mask);
}

static bool decode_activemask(Decoder *d, Op *op) {
    op->run = run_activemask;
    return take_operands(d, op, PTX_B32);
}

// elect.sync d|p, membermask: the leader is the lowest member.
static void run_elect(Warp *warp, const Op *op, uint32_t mask) {
    uint32_t members = (uint32_t)lane_value(warp, &op->operands[2], first_lane(mask)) & ~warp->exited;
    if (!members_here(warp, op, mask, members))
        return;
    int leader = first_lane(members);
    FOR_LANES(lane, mask) {
        lane_set(warp, &op->operands[0], (int)lane, (uint64_t)leader);
        lane_set(warp, &op->operands[1], (int)lane, (int)lane == leader);
    }
}

static bool decode_elect(Decoder *d, Op *op) {
    op->run = run_elect;
    op->flags = OP_COLLECTIVE;
    return has(d, "sync") && take_operands(d, op, PTX_B32) && op->operand_count == 3;
}

// ---------------------------------------------------------------- setmaxnreg

static void run_setmaxnreg(Warp *warp, const Op *op, uint32_t mask) {
    Cta *cta = warp->cta;
    if (mask != ~warp->exited) {
        fault(warp, op, SIM_FAULT_CONVERGENCE, "setmaxnreg in a diverged warp");
        return;
    }
    int wanted = (int)lane_value(warp, &op->operands[0], 0), change = (wanted - warp->regs) * LANES;
    if (wanted % 8 || wanted < 24 || wanted > 256) {
        fault(warp, op, SIM_FAULT_REGISTERS, "setmaxnreg %d: a multiple of 8 in 24..256 is needed", wanted);
        return;
    }
    if ((op->mode && change < 0) || (!op->mode && change > 0)) {
        fault(warp, op, SIM_FAULT_REGISTERS, "setmaxnreg.%s %d, but the warp has %d registers a thread",
              op->mode ? "inc" : "dec", wanted, warp->regs);
        return;
    }
    warp->regs = wanted;
    if (change <= 0 || cta->register_pool >= change) {
        cta->register_pool -= change;
        cta->cluster->progress = 1;
        return;
    }
    warp_block(warp, WAIT_REGISTERS, (uint32_t)change, 0);
}

static bool decode_setmaxnreg(Decoder *d, Op *op) {
    op->mode = has(d, "inc");
    op->run = run_setmaxnreg;
    op->flags = OP_COLLECTIVE;
    return take_operands(d, op, PTX_B32);
}

const OpEntry WARP_OPS[] = {
    {"bra", decode_branch},
    {"brx", decode_indexed},
    {"ret", decode_exit},
    {"exit", decode_exit},
    {"trap", decode_trap},
    {"bar", decode_bar_warp},
    {"shfl", decode_shuffle},
    {"vote", decode_vote},
    {"redux", decode_redux},
    {"match", decode_match},
    {"activemask", decode_activemask},
    {"elect", decode_elect},
    {"setmaxnreg", decode_setmaxnreg},
    {"nanosleep", decode_nothing},
    {"griddepcontrol", decode_nothing},
    {"pmevent", decode_nothing},
    {NULL, NULL},
};
