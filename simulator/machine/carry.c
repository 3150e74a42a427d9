// carry.c: extended-precision integers (PTX ISA: "Extended-Precision Integer Arithmetic Instructions"):
// add.cc, addc, sub.cc, subc, mad.cc, madc. The condition code is one bit a lane.
#include "simulator/machine/decode.h"

#include <string.h>

enum { CARRY_ADD, CARRY_SUB, CARRY_MAD_LO, CARRY_MAD_HI };

// op->count: bits; mode: what; mode2: takes the carry in; immediate: gives it out.
static void run_carry(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        uint64_t limit = op->count == 64 ? ~0ull : 0xFFFFFFFFull, v[3] = {0};
        for (int i = 1; i < op->operand_count; i++)
            v[i - 1] = lane_value(warp, &op->operands[i], (int)lane) & limit;
        unsigned __int128 a = v[0], b = v[1], in = op->mode2 ? warp->carry >> lane & 1 : 0, sum;
        if (op->mode == CARRY_MAD_LO || op->mode == CARRY_MAD_HI) {
            a *= b;
            a = op->mode == CARRY_MAD_HI ? a >> op->count : a & limit;
            b = v[2];
        }
        sum = op->mode == CARRY_SUB ? a - b - in : a + b + in;
        uint32_t out = (uint32_t)(sum >> op->count) & 1; // of a difference: the borrow
        if (op->immediate)
            warp->carry = (warp->carry & ~(1u << lane)) | out << lane;
        lane_set(warp, &op->operands[0], (int)lane, (uint64_t)sum & limit);
    }
}

static bool decode_carry(Decoder *d, Op *op) {
    static const char *const ALLOWED[] = {"cc", "lo", "hi", NULL};
    const char *root = part(d, 0);
    bool multiplies = root[0] == 'm';
    op->type = last_type(d);
    op->mode2 = root[strlen(root) - 1] == 'c';
    op->immediate = has(d, "cc");
    bool typed = op->type == PTX_U32 || op->type == PTX_S32 || op->type == PTX_U64 || op->type == PTX_S64;
    if (!typed || !only(d, ALLOWED) || !(op->mode2 || op->immediate) ||
        d->in->operand_count != 3 + multiplies)
        return false;
    // The high half of a signed product is not that of the unsigned one.
    if (multiplies && has(d, "hi") && (op->type == PTX_S32 || op->type == PTX_S64))
        return false;
    op->mode = multiplies       ? (has(d, "hi") ? CARRY_MAD_HI : CARRY_MAD_LO)
               : root[0] == 's' ? CARRY_SUB
                                : CARRY_ADD;
    op->count = 8 * ptx_type_bytes((PtxType)op->type);
    op->run = run_carry;
    return take_operands(d, op, op->type);
}

const OpEntry CARRY_OPS[] = {
    {"add", decode_carry}, {"addc", decode_carry}, {"sub", decode_carry}, {"subc", decode_carry},
    {"mad", decode_carry}, {"madc", decode_carry}, {NULL, NULL}};
