// convert.c: cvt in the forms between scalar types and the packed forms of tensor-core types (PTX ISA:
// "cvt").
#include "simulator/engines/numbers.h"
#include "simulator/machine/decode.h"

#include <math.h>
#include <string.h>

typedef enum { NUMBER_INT, NUMBER_F16, NUMBER_BF16, NUMBER_F32, NUMBER_F64 } Number;

static float word_float(uint32_t word) {
    float value;
    memcpy(&value, &word, 4);
    return value;
}

static uint32_t float_word(float value) {
    uint32_t word;
    memcpy(&word, &value, 4);
    return word;
}

static double read_number(Number kind, uint64_t bits) {
    double wide;
    switch (kind) {
    case NUMBER_F16:
        return sim_f16_to_f32((uint16_t)bits);
    case NUMBER_BF16:
        return sim_bf16_to_f32((uint16_t)bits);
    case NUMBER_F32:
        return word_float((uint32_t)bits);
    default:
        memcpy(&wide, &bits, 8);
        return wide;
    }
}

static double rounded(double x, SimRounding how) {
    return how == SIM_RZ ? trunc(x) : how == SIM_RP ? ceil(x) : how == SIM_RM ? floor(x) : nearbyint(x);
}

static uint64_t to_int(double x, int type, SimRounding how) {
    int bits = 8 * ptx_type_bytes((PtxType)type);
    bool is_signed = type >= PTX_S8 && type <= PTX_S64;
    if (isnan(x))
        return bits == 64 ? 1ull << 63 : is_signed && bits == 32 ? 0 : 0;
    x = rounded(x, how);
    double low = is_signed ? -ldexp(1, bits - 1) : 0, high = is_signed ? ldexp(1, bits - 1) : ldexp(1, bits);
    if (x <= low)
        return is_signed ? (uint64_t)1 << (bits - 1) : 0;
    if (x >= high)
        return is_signed ? ((uint64_t)1 << (bits - 1)) - 1 : bits == 64 ? ~0ull : ((uint64_t)1 << bits) - 1;
    return is_signed ? (uint64_t)(int64_t)x : (uint64_t)x;
}

// A double to f32 in the given rounding; exact integers of 64 bits come as long double.
static float narrow(long double x, SimRounding how) {
    float nearest = (float)x;
    if (how == SIM_RN || (long double)nearest == x || isnan(nearest))
        return nearest;
    bool above = (long double)nearest > x;
    if (how == SIM_RP)
        return above ? nearest : nextafterf(nearest, INFINITY);
    if (how == SIM_RM)
        return above ? nextafterf(nearest, -INFINITY) : nearest;
    return (x > 0) == above ? nextafterf(nearest, 0) : nearest;
}

static Number number_of(const char *text) {
    return !strcmp(text, "f16")    ? NUMBER_F16
           : !strcmp(text, "bf16") ? NUMBER_BF16
           : !strcmp(text, "f32")  ? NUMBER_F32
           : !strcmp(text, "f64")  ? NUMBER_F64
                                   : NUMBER_INT;
}

static int64_t extend_int(uint64_t bits, int type) {
    int width = 8 * ptx_type_bytes((PtxType)type);
    if (width == 64)
        return (int64_t)bits;
    return type >= PTX_S8 && type <= PTX_S64 ? (int64_t)(bits << (64 - width)) >> (64 - width)
                                             : (int64_t)(bits & ((1ull << width) - 1));
}

static uint64_t clamp_int(int64_t value, bool from_unsigned, int type) {
    int bits = 8 * ptx_type_bytes((PtxType)type);
    bool is_signed = type >= PTX_S8 && type <= PTX_S64;
    if (from_unsigned && value < 0) // a large unsigned number
        return is_signed ? (1ull << (bits - 1)) - 1 : bits == 64 ? (uint64_t)value : (1ull << bits) - 1;
    if (bits == 64)
        return !is_signed && value < 0 ? 0 : (uint64_t)value;
    int64_t low = is_signed ? -(1ll << (bits - 1)) : 0,
            high = is_signed ? (1ll << (bits - 1)) - 1 : (1ll << bits) - 1;
    return (uint64_t)(value < low ? low : value > high ? high : value);
}

static uint64_t convert(const Op *op, uint64_t bits) {
    Number from = (Number)op->space, to = (Number)op->mode;
    SimRounding how = (SimRounding)op->mode2;
    if (from == NUMBER_INT && to == NUMBER_INT) {
        int64_t value = extend_int(bits, op->type2);
        bool from_unsigned = op->type2 >= PTX_U8 && op->type2 <= PTX_U64;
        uint64_t result = op->saturate ? clamp_int(value, from_unsigned && op->type2 == PTX_U64, op->type)
                                       : (uint64_t)value;
        int width = 8 * ptx_type_bytes((PtxType)op->type);
        // The destination register may be wider: sign- or zero-extended to it.
        return (uint64_t)extend_int(width == 64 ? result : result & ((1ull << width) - 1), op->type);
    }
    if (from == NUMBER_INT) {
        int64_t value = extend_int(bits, op->type2);
        long double exact = op->type2 == PTX_U64 ? (long double)(uint64_t)value : (long double)value;
        if (to == NUMBER_F64) {
            double wide = (double)exact;
            uint64_t result;
            memcpy(&result, &wide, 8);
            return result;
        }
        if (to == NUMBER_F32)
            return float_word(narrow(exact, how));
        return to == NUMBER_F16 ? sim_f32_to_f16((float)exact, how, false, op->saturate)
                                : sim_f32_to_bf16((float)exact, how, false, op->saturate);
    }
    double value = read_number(from, bits);
    if (op->ftz && from == NUMBER_F32 && fabs(value) < 1.17549435e-38)
        value = copysign(0, value);
    if (to == NUMBER_INT)
        return to_int(value, op->type, how);
    if (op->count) // .rni and the like: to an integral value
        value = rounded(value, how);
    if (op->saturate && to != NUMBER_F64 && !op->nan)
        value = isnan(value) ? 0 : value < 0 ? 0 : value > 1 ? 1 : value;
    if (to == NUMBER_F64) {
        uint64_t result;
        memcpy(&result, &value, 8);
        return result;
    }
    if (to == NUMBER_F32) {
        float result = narrow(value, how);
        if (isnan(result))
            return 0x7FFFFFFF;
        return float_word(op->ftz && fabsf(result) < 1.17549435e-38f ? copysignf(0, result) : result);
    }
    return to == NUMBER_F16 ? sim_f32_to_f16((float)value, how, op->relu, false)
                            : sim_f32_to_bf16((float)value, how, op->relu, false);
}

static void run_convert(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        uint64_t result = convert(op, lane_value(warp, &op->operands[1], (int)lane));
        lane_set(warp, &op->operands[0], (int)lane, op->operands[0].bytes == 4 ? (uint32_t)result : result);
    }
}

// ---------------------------------------------------------------- packed

typedef enum { PACK_F16, PACK_BF16, PACK_E4M3, PACK_E5M2, PACK_UE8M0 } Pack;

static uint32_t pack_one(const Op *op, Pack to, float value) {
    switch (to) {
    case PACK_F16:
        return sim_f32_to_f16(value, (SimRounding)op->mode2, op->relu, op->saturate);
    case PACK_BF16:
        return sim_f32_to_bf16(value, (SimRounding)op->mode2, op->relu, op->saturate);
    case PACK_E4M3:
        return sim_f32_to_e4m3(value, op->relu);
    case PACK_E5M2:
        return sim_f32_to_e5m2(value, op->relu);
    default:
        return sim_f32_to_ue8m0(value, (SimRounding)op->mode2, op->saturate);
    }
}

static float unpack_one(Pack from, uint32_t bits) {
    switch (from) {
    case PACK_F16:
        return sim_f16_to_f32((uint16_t)bits);
    case PACK_BF16:
        return sim_bf16_to_f32((uint16_t)bits);
    case PACK_E4M3:
        return sim_e4m3_to_f32((uint8_t)bits);
    case PACK_E5M2:
        return sim_e5m2_to_f32((uint8_t)bits);
    default:
        return sim_ue8m0_to_f32((uint8_t)bits);
    }
}

static int pack_bits(Pack pack) {
    return pack <= PACK_BF16 ? 16 : 8;
}

// cvt d, high, low: the first source goes to the upper half.
static void run_pack_floats(Warp *warp, const Op *op, uint32_t mask) {
    Pack to = (Pack)op->mode;
    if (mask == ALL_LANES && to <= PACK_BF16 && op->mode2 == SIM_RN && !op->relu && !op->saturate) {
        (to == PACK_BF16 ? sim_pack_bf16_x32 : sim_pack_f16_x32)(
            reg32(warp, &op->operands[0]), regf(warp, &op->operands[1]), regf(warp, &op->operands[2]));
        return;
    }
    FOR_LANES(lane, mask) {
        uint32_t high = pack_one(op, to, word_float((uint32_t)lane_value(warp, &op->operands[1], (int)lane)));
        uint32_t low = pack_one(op, to, word_float((uint32_t)lane_value(warp, &op->operands[2], (int)lane)));
        lane_set(warp, &op->operands[0], (int)lane, high << pack_bits(to) | low);
    }
}

static void run_repack(Warp *warp, const Op *op, uint32_t mask) {
    Pack to = (Pack)op->mode, from = (Pack)op->space;
    FOR_LANES(lane, mask) {
        uint32_t bits = (uint32_t)lane_value(warp, &op->operands[1], (int)lane), result = 0;
        for (int half = 0; half < 2; half++) {
            uint32_t one = bits >> (half * pack_bits(from)) & ((1u << pack_bits(from)) - 1);
            result |= pack_one(op, to, unpack_one(from, one)) << (half * pack_bits(to));
        }
        lane_set(warp, &op->operands[0], (int)lane, result);
    }
}

static int pack_of(const char *text) {
    static const char *const NAMES[] = {"f16x2", "bf16x2", "e4m3x2", "e5m2x2", "ue8m0x2"};
    for (int i = 0; i < 5; i++)
        if (!strcmp(NAMES[i], text))
            return i;
    return -1;
}

static bool decode_convert(Decoder *d, Op *op) {
    static const char *const MODIFIERS[] = {"rn",  "rz",  "rp",  "rm",        "rni",  "rzi", "rpi",
                                            "rmi", "ftz", "sat", "satfinite", "relu", NULL};
    const char *types[2] = {0};
    int count = 0;
    for (int i = 1; i < d->in->part_count; i++) {
        bool modifier = false;
        for (const char *const *name = MODIFIERS; *name; name++)
            modifier |= !strcmp(*name, d->in->parts[i]);
        if (modifier)
            continue;
        if (count == 2)
            return false;
        types[count++] = d->in->parts[i];
    }
    if (count != 2)
        return false;
    op->mode2 = has(d, "rz") || has(d, "rzi")   ? SIM_RZ
                : has(d, "rp") || has(d, "rpi") ? SIM_RP
                : has(d, "rm") || has(d, "rmi") ? SIM_RM
                                                : SIM_RN;
    op->ftz = has(d, "ftz");
    op->relu = has(d, "relu");
    op->saturate = has(d, "sat") || has(d, "satfinite");
    int to = pack_of(types[0]), from = pack_of(types[1]);
    if (to >= 0) {
        op->mode = to;
        op->space = from;
        if (from < 0 && strcmp(types[1], "f32"))
            return false;
        op->run = from < 0 ? run_pack_floats : run_repack;
        return d->in->operand_count == (from < 0 ? 3 : 2) && take_operands(d, op, PTX_B32);
    }
    op->mode = (int)number_of(types[0]);
    op->space = (int)number_of(types[1]);
    op->type = op->mode == NUMBER_BF16 ? PTX_B16 : type_of(types[0]);
    op->type2 = op->space == NUMBER_BF16 ? PTX_B16 : type_of(types[1]);
    op->count = has(d, "rni") || has(d, "rzi") || has(d, "rpi") || has(d, "rmi");
    op->nan = has(d, "satfinite");
    if (op->type == TYPE_NONE || op->type2 == TYPE_NONE)
        return false;
    op->run = run_convert;
    return take_operands(d, op, op->type2);
}

const OpEntry CONVERT_OPS[] = {{"cvt", decode_convert}, {NULL, NULL}};
