// compare.c: comparison, selection and mov (PTX ISA: "Comparison and Selection", "Data Movement: mov").
#include "simulator/machine/arithmetic.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- comparison and selection

enum { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_UNORDERED = 8, CMP_NUM = 16, CMP_NAN = 17 };

static bool compare_int(int how, uint64_t a, uint64_t b, bool is_signed_type) {
    bool less = is_signed_type ? (int64_t)a < (int64_t)b : a < b;
    switch (how & 7) {
    case CMP_EQ:
        return a == b;
    case CMP_NE:
        return a != b;
    case CMP_LT:
        return less;
    case CMP_LE:
        return less || a == b;
    case CMP_GT:
        return !less && a != b;
    default:
        return !less;
    }
}

static bool compare_float(int how, double a, double b) {
    bool unordered = isnan(a) || isnan(b);
    if (how == CMP_NUM || how == CMP_NAN)
        return unordered == (how == CMP_NAN);
    if (unordered)
        return (how & CMP_UNORDERED) != 0;
    switch (how & 7) {
    case CMP_EQ:
        return a == b;
    case CMP_NE:
        return a != b;
    case CMP_LT:
        return a < b;
    case CMP_LE:
        return a <= b;
    case CMP_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static float flush(float x) {
    return fabsf(x) < 1.17549435e-38f ? copysignf(0, x) : x;
}

static bool compare(Warp *warp, const Op *op, const Operand *x, const Operand *y, int lane) {
    uint64_t a = lane_value(warp, x, lane), b = lane_value(warp, y, lane);
    switch (op->type2) {
    case PTX_F32: {
        float p = as_float(a), q = as_float(b);
        return compare_float(op->mode, op->ftz ? flush(p) : p, op->ftz ? flush(q) : q);
    }
    case PTX_F64:
        return compare_float(op->mode, as_double(a), as_double(b));
    case PTX_F16:
        return op->space ? compare_float(op->mode, sim_bf16_to_f32((uint16_t)a), sim_bf16_to_f32((uint16_t)b))
                         : compare_float(op->mode, sim_f16_to_f32((uint16_t)a), sim_f16_to_f32((uint16_t)b));
    default:
        return compare_int(op->mode, typed(a, op->type2), typed(b, op->type2), is_signed(op->type2));
    }
}

static void set_predicate(Warp *warp, const Operand *place, uint32_t mask, uint32_t bits) {
    if (place->at < 0)
        return;
    uint32_t *p = reg32(warp, place);
    *p = (*p & ~mask) | (bits & mask);
}

static uint32_t combine(const Op *op, uint32_t result, uint32_t other) {
    return op->count == 1   ? result & other
           : op->count == 2 ? result | other
           : op->count == 3 ? result ^ other
                            : result;
}

static void run_setp(Warp *warp, const Op *op, uint32_t mask) {
    uint32_t result = 0;
    const Operand *x = &op->operands[op->first_list], *y = &op->operands[op->first_list + 1];
    if (op->type2 == PTX_S32 || op->type2 == PTX_U32 || op->type2 == PTX_B32) {
        const uint32_t *a = reg32(warp, x), *b = reg32(warp, y);
        bool signs = op->type2 == PTX_S32;
        for (int i = 0; i < LANES; i++)
            result |= (uint32_t)compare_int(op->mode, signs ? (uint64_t)(int64_t)(int32_t)a[i] : a[i],
                                            signs ? (uint64_t)(int64_t)(int32_t)b[i] : b[i], signs)
                      << i;
    } else {
        FOR_LANES(lane, mask) result |= (uint32_t)compare(warp, op, x, y, (int)lane) << lane;
    }
    uint32_t other = op->count ? *reg32(warp, &op->operands[op->first_list + 2]) : 0;
    if (op->immediate)
        other = ~other;
    if (op->first_list == 2)
        set_predicate(warp, &op->operands[1], mask, combine(op, ~result, other));
    set_predicate(warp, &op->operands[0], mask, combine(op, result, other));
}

static int comparison_of(const Decoder *d, bool *found) {
    static const struct {
        const char *name;
        int how;
    } NAMES[] = {
        {"eq", CMP_EQ},
        {"ne", CMP_NE},
        {"lt", CMP_LT},
        {"le", CMP_LE},
        {"gt", CMP_GT},
        {"ge", CMP_GE},
        {"lo", CMP_LT},
        {"ls", CMP_LE},
        {"hi", CMP_GT},
        {"hs", CMP_GE},
        {"equ", CMP_EQ | CMP_UNORDERED},
        {"neu", CMP_NE | CMP_UNORDERED},
        {"ltu", CMP_LT | CMP_UNORDERED},
        {"leu", CMP_LE | CMP_UNORDERED},
        {"gtu", CMP_GT | CMP_UNORDERED},
        {"geu", CMP_GE | CMP_UNORDERED},
        {"num", CMP_NUM},
        {"nan", CMP_NAN},
    };
    *found = false;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (!strcmp(part(d, 1), NAMES[i].name)) {
            *found = true;
            return NAMES[i].how;
        }
    return 0;
}

static bool decode_setp(Decoder *d, Op *op) {
    bool found;
    op->mode = comparison_of(d, &found);
    op->type2 = last_type(d);
    if (has(d, "bf16")) {
        op->type2 = PTX_F16;
        op->space = 1;
    }
    if (!found || op->type2 == TYPE_NONE || op->type2 == PTX_F16X2)
        return false;
    op->ftz = has(d, "ftz");
    op->count = has(d, "and") ? 1 : has(d, "or") ? 2 : has(d, "xor") ? 3 : 0;
    op->run = run_setp;
    op->first_list = operand_width(&d->in->operands[0]);
    if (op->count)
        op->immediate = d->in->operands[d->in->operand_count - 1].negated;
    return take_operands(d, op, op->type2);
}

static void run_selp(Warp *warp, const Op *op, uint32_t mask) {
    uint32_t chosen = *reg32(warp, source(op, 3));
    const Operand *d = &op->operands[0], *a = source(op, 1), *b = source(op, 2);
    if (d->bytes == 4 && a->bytes == 4 && b->bytes == 4 && mask == ALL_LANES) {
        uint32_t *to = reg32(warp, d);
        const uint32_t *x = reg32(warp, a), *y = reg32(warp, b);
        for (int i = 0; i < LANES; i++)
            to[i] = chosen >> i & 1 ? x[i] : y[i];
        return;
    }
    FOR_LANES(lane, mask)
    lane_set(warp, d, (int)lane, lane_value(warp, chosen >> lane & 1 ? a : b, (int)lane));
}

static bool decode_selp(Decoder *d, Op *op) {
    op->type = last_type(d);
    op->run = run_selp;
    return op->type != TYPE_NONE && take_operands(d, op, op->type);
}

static void run_set(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        bool yes = compare(warp, op, source(op, 1), source(op, 2), (int)lane);
        lane_set(warp, &op->operands[0], (int)lane,
                 !yes                  ? 0
                 : op->type == PTX_F32 ? float_bits(1)
                                       : 0xFFFFFFFFu);
    }
}

static bool decode_set(Decoder *d, Op *op) {
    bool found;
    op->mode = comparison_of(d, &found);
    op->type2 = last_type(d);
    op->ftz = has(d, "ftz");
    op->type = has(d, "f32") && op->type2 != PTX_F32 ? PTX_F32 : PTX_U32;
    op->run = run_set;
    return found && d->in->operand_count == 3 && take_operands(d, op, op->type2);
}

// ---------------------------------------------------------------- mov

// mov d, {a, b, ..}: packs; mov {a, b, ..}, s: unpacks; the first element is the low one.
static void run_pack(Warp *warp, const Op *op, uint32_t mask) {
    int total = ptx_type_bytes((PtxType)op->type), each = total / op->list_count;
    bool packs = op->first_list == 1;
    const Operand *whole = &op->operands[packs ? 0 : op->list_count];
    FOR_LANES(lane, mask) {
        if (total == 16) { // two halves of 64 bits, or four words
            uint64_t *wide = reg64(warp, whole) + 2 * lane;
            if (packs)
                wide[0] = wide[1] = 0;
            for (int i = 0; i < op->list_count; i++) {
                const Operand *item = &op->operands[op->first_list + i];
                int at = i * each / 8, bits = i * each % 8 * 8;
                if (packs)
                    wide[at] |= truncate_to(lane_value(warp, item, (int)lane), 8 * each) << bits;
                else
                    lane_set(warp, item, (int)lane, truncate_to(wide[at] >> bits, 8 * each));
            }
            continue;
        }
        uint64_t value = packs ? 0 : lane_value(warp, whole, (int)lane);
        for (int i = 0; i < op->list_count; i++) {
            const Operand *item = &op->operands[op->first_list + i];
            if (packs)
                value |= truncate_to(lane_value(warp, item, (int)lane), 8 * each) << (8 * each * i);
            else
                lane_set(warp, item, (int)lane, truncate_to(value >> (8 * each * i), 8 * each));
        }
        if (packs)
            lane_set(warp, whole, (int)lane, value);
    }
}

static void run_mov(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        if (op->operands[0].bytes == 16) {
            memcpy(reg64(warp, &op->operands[0]) + 2 * lane, reg64(warp, source(op, 1)) + 2 * lane, 16);
            continue;
        }
        lane_set(warp, &op->operands[0], (int)lane, lane_value(warp, source(op, 1), (int)lane));
    }
}

static void run_mov32(Warp *warp, const Op *op, uint32_t mask) {
    uint32_t *to = reg32(warp, &op->operands[0]);
    const uint32_t *from = reg32(warp, source(op, 1));
    if (mask == ALL_LANES) {
        memmove(to, from, LANES * sizeof *to);
        return;
    }
    FOR_LANES(lane, mask) to[lane] = from[lane];
}

static bool decode_mov(Decoder *d, Op *op) {
    op->type = last_type(d);
    if (op->type == TYPE_NONE || d->in->part_count != 2 || d->in->operand_count != 2 ||
        !take_operands(d, op, op->type))
        return false;
    const PtxOperand *in = d->in->operands;
    op->flags = OP_MOVES;
    if (in[0].kind == PTX_VECTOR || in[1].kind == PTX_VECTOR) {
        op->first_list = in[0].kind == PTX_VECTOR ? 0 : 1;
        op->list_count = in[op->first_list].count;
        op->run = run_pack;
        return true;
    }
    bool words = op->operands[0].bytes == 4 && op->operands[1].bytes == 4;
    op->run = words ? run_mov32 : run_mov;
    return true;
}

const OpEntry COMPARE_OPS[] = {
    {"mov", decode_mov}, {"setp", decode_setp}, {"selp", decode_selp}, {"set", decode_set}, {NULL, NULL},
};
