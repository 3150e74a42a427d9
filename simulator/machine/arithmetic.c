// arithmetic.c: integer, logic, floating-point and comparison instructions (PTX ISA: "Integer Arithmetic",
// "Floating Point", "Half Precision", "Comparison and Selection", "Logic and Shift", "Data Movement: mov").
#include "simulator/engines/numbers.h"
#include "simulator/machine/decode.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- helpers

static bool is_signed(int type) {
    return type >= PTX_S8 && type <= PTX_S64;
}
static bool is_float(int type) {
    return type == PTX_F16 || type == PTX_F32 || type == PTX_F64;
}
static int bits_of(int type) {
    return 8 * ptx_type_bytes((PtxType)type);
}

static uint64_t truncate_to(uint64_t value, int bits) {
    return bits >= 64 ? value : value & ((1ull << bits) - 1);
}

static int64_t extend(uint64_t value, int bits) {
    return bits >= 64 ? (int64_t)value : (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static uint64_t typed(uint64_t value, int type) {
    return is_signed(type) ? (uint64_t)extend(value, bits_of(type)) : truncate_to(value, bits_of(type));
}

static float as_float(uint64_t bits) {
    float value;
    uint32_t word = (uint32_t)bits;
    memcpy(&value, &word, 4);
    return value;
}

static uint32_t float_bits(float value) {
    uint32_t word;
    memcpy(&word, &value, 4);
    return word;
}

static double as_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static uint64_t double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

static SimRounding rounding_of(const Decoder *d) {
    return has(d, "rz") || has(d, "rzi")   ? SIM_RZ
           : has(d, "rp") || has(d, "rpi") ? SIM_RP
           : has(d, "rm") || has(d, "rmi") ? SIM_RM
                                           : SIM_RN;
}

static const Operand *source(const Op *op, int i) {
    return &op->operands[i];
}

// ---------------------------------------------------------------- 32-bit integers, all lanes at once

#define WORDS(name, expression)                                                                              \
    static void name(Warp *warp, const Op *op, uint32_t mask) {                                              \
        uint32_t *d = reg32(warp, &op->operands[0]);                                                         \
        const uint32_t *x = reg32(warp, &op->operands[1]),                                                   \
                       *y = reg32(warp, &op->operands[op->operand_count > 2 ? 2 : 1]);                       \
        const uint32_t *z = reg32(warp, &op->operands[op->operand_count > 3 ? 3 : 1]);                       \
        (void)z;                                                                                             \
        if (mask == ALL_LANES) {                                                                             \
            for (int i = 0; i < LANES; i++) {                                                                \
                uint32_t a = x[i], b = y[i], c = z[i];                                                       \
                (void)b, (void)c;                                                                            \
                d[i] = (uint32_t)(expression);                                                               \
            }                                                                                                \
            return;                                                                                          \
        }                                                                                                    \
        FOR_LANES(i, mask) {                                                                                 \
            uint32_t a = x[i], b = y[i], c = z[i];                                                           \
            (void)b, (void)c;                                                                                \
            d[i] = (uint32_t)(expression);                                                                   \
        }                                                                                                    \
    }

WORDS(run_add32, a + b)
WORDS(run_sub32, a - b)
WORDS(run_mul32, a *b)
WORDS(run_and32, a &b)
WORDS(run_or32, a | b)
WORDS(run_xor32, a ^ b)
WORDS(run_not32, ~a)
WORDS(run_shl32, b > 31 ? 0 : a << b)
WORDS(run_shr_u32, b > 31 ? 0 : a >> b)
WORDS(run_shr_s32, (int32_t)a >> (b > 31 ? 31 : b))
WORDS(run_min_s32, (int32_t)a < (int32_t)b ? a : b)
WORDS(run_max_s32, (int32_t)a > (int32_t)b ? a : b)
WORDS(run_min_u32, a < b ? a : b)
WORDS(run_max_u32, a > b ? a : b)
WORDS(run_mad32, a *b + c)
WORDS(run_mov32, a)

// ---------------------------------------------------------------- any integer width

enum {
    INT_ADD,
    INT_SUB,
    INT_MUL_LO,
    INT_MUL_HI,
    INT_MUL_WIDE,
    INT_MAD_LO,
    INT_MAD_HI,
    INT_MAD_WIDE,
    INT_DIV,
    INT_REM,
    INT_MIN,
    INT_MAX,
    INT_AND,
    INT_OR,
    INT_XOR,
    INT_NOT,
    INT_CNOT,
    INT_SHL,
    INT_SHR,
    INT_NEG,
    INT_ABS,
    INT_SAD,
    INT_POPC,
    INT_CLZ,
    INT_BREV,
    INT_BFIND,
    INT_BFE,
    INT_BFI,
    INT_LOP3,
    INT_PRMT,
    INT_SHF_L,
    INT_SHF_R,
};

static uint64_t multiply_high(uint64_t a, uint64_t b, int type) {
    int bits = bits_of(type);
    if (is_signed(type))
        return (uint64_t)(((__int128)(int64_t)a * (int64_t)b) >> bits);
    return (uint64_t)(((unsigned __int128)a * b) >> bits);
}

static uint64_t divide_int(uint64_t a, uint64_t b, int type, bool remainder) {
    if (b == 0)
        return remainder ? a : ~0ull; // unspecified by PTX; the chip gives all ones
    if (!is_signed(type))
        return remainder ? a % b : a / b;
    int64_t x = (int64_t)a, y = (int64_t)b;
    if (y == -1)
        return remainder ? 0 : 0 - a;
    return (uint64_t)(remainder ? x % y : x / y);
}

static uint64_t shift(uint64_t a, uint32_t amount, int type, bool left) {
    int bits = bits_of(type);
    if (left)
        return amount >= (uint32_t)bits ? 0 : a << amount;
    if (is_signed(type))
        return (uint64_t)((int64_t)a >> (amount >= (uint32_t)bits ? 63 : amount));
    return amount >= (uint32_t)bits ? 0 : a >> amount;
}

static uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector, int mode) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t s = selector >> (4 * i) & 15;
        if (mode) { // f4e b4e rc8 ecl ecr rc16
            uint32_t n = selector & 3;
            static const int8_t ECL[4][4] = {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}};
            static const int8_t ECR[4][4] = {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}};
            s = mode == 1   ? n + (uint32_t)i
                : mode == 2 ? (n + 8 - (uint32_t)i) & 7
                : mode == 3 ? n
                : mode == 4 ? (uint32_t)ECL[n][i]
                : mode == 5 ? (uint32_t)ECR[n][i]
                            : (n & 1) * 2 + ((uint32_t)i & 1);
        }
        uint32_t byte = (uint32_t)(bytes >> (8 * (s & 7))) & 255;
        if (!mode && s & 8)
            byte = byte & 128 ? 255 : 0;
        result |= byte << (8 * i);
    }
    return result;
}

static uint64_t bit_field(uint64_t a, uint64_t position, uint64_t length, int type) {
    int bits = bits_of(type);
    position &= 255, length &= 255;
    int64_t sign_at =
        (int64_t)(position + length) - 1 < bits - 1 ? (int64_t)(position + length) - 1 : bits - 1;
    bool sign = is_signed(type) && length && (a >> sign_at & 1);
    uint64_t result = 0;
    for (int i = 0; i < bits; i++) {
        bool bit = (uint64_t)i < length && position + (uint64_t)i < (uint64_t)bits
                       ? a >> (position + (uint64_t)i) & 1
                       : sign;
        result |= (uint64_t)bit << i;
    }
    return result;
}

static uint64_t bit_insert(uint64_t a, uint64_t b, uint64_t position, uint64_t length, int bits) {
    position &= 255, length &= 255;
    for (uint64_t i = 0; i < length && position + i < (uint64_t)bits; i++)
        b = (b & ~(1ull << (position + i))) | (a >> i & 1) << (position + i);
    return b;
}

static uint64_t lookup3(uint64_t a, uint64_t b, uint64_t c, uint64_t table) {
    uint64_t result = 0;
    for (int i = 0; i < 8; i++)
        if (table >> i & 1)
            result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}

static uint64_t compute_int(const Op *op, const uint64_t v[5]) {
    int bits = bits_of(op->type);
    uint64_t a = v[1], b = v[2], c = v[3];
    switch (op->mode) {
    case INT_ADD:
        return a + b;
    case INT_SUB:
        return a - b;
    case INT_MUL_LO:
    case INT_MUL_WIDE:
        return a * b;
    case INT_MUL_HI:
        return multiply_high(a, b, op->type);
    case INT_MAD_LO:
    case INT_MAD_WIDE:
        return a * b + c;
    case INT_MAD_HI:
        return multiply_high(a, b, op->type) + c;
    case INT_DIV:
        return divide_int(a, b, op->type, false);
    case INT_REM:
        return divide_int(a, b, op->type, true);
    case INT_MIN:
        return is_signed(op->type) ? ((int64_t)a < (int64_t)b ? a : b) : a < b ? a : b;
    case INT_MAX:
        return is_signed(op->type) ? ((int64_t)a > (int64_t)b ? a : b) : a > b ? a : b;
    case INT_AND:
        return a & b;
    case INT_OR:
        return a | b;
    case INT_XOR:
        return a ^ b;
    case INT_NOT:
        return ~a;
    case INT_CNOT:
        return a == 0;
    case INT_SHL:
        return shift(a, (uint32_t)b, op->type, true);
    case INT_SHR:
        return shift(a, (uint32_t)b, op->type, false);
    case INT_NEG:
        return 0 - a;
    case INT_ABS:
        return (int64_t)a < 0 ? 0 - a : a;
    case INT_SAD:
        return c + (is_signed(op->type) ? ((int64_t)a < (int64_t)b ? b - a : a - b) : a < b ? b - a : a - b);
    case INT_POPC:
        return (uint64_t)__builtin_popcountll(truncate_to(a, bits));
    case INT_CLZ:
        return truncate_to(a, bits) ? (uint64_t)(__builtin_clzll(truncate_to(a, bits)) - (64 - bits))
                                    : (uint64_t)bits;
    case INT_BREV: {
        uint64_t r = 0;
        for (int i = 0; i < bits; i++)
            r |= (a >> i & 1) << (bits - 1 - i);
        return r;
    }
    case INT_BFIND: {
        uint64_t x = is_signed(op->type) && (int64_t)a < 0 ? truncate_to(~a, bits) : truncate_to(a, bits);
        if (!x)
            return ~0ull;
        uint64_t at = (uint64_t)(63 - __builtin_clzll(x));
        return op->mode2 ? (uint64_t)bits - 1 - at : at;
    }
    case INT_BFE:
        return bit_field(a, b, c, op->type);
    case INT_BFI:
        return bit_insert(a, b, c, v[4], bits);
    case INT_LOP3:
        return lookup3(a, b, c, v[4]);
    case INT_PRMT:
        return permute_bytes((uint32_t)a, (uint32_t)b, (uint32_t)c, op->mode2);
    case INT_SHF_L:
    case INT_SHF_R: {
        uint32_t amount = op->mode2 ? ((uint32_t)c > 32 ? 32 : (uint32_t)c) : (uint32_t)c & 31;
        uint64_t both = (uint64_t)(uint32_t)b << 32 | (uint32_t)a;
        return op->mode == INT_SHF_L ? (uint32_t)((both << amount) >> 32) : (uint32_t)(both >> amount);
    }
    default:
        return 0;
    }
}

// Which sources are of another type than the operation's: shift amounts, positions, the wide addend.
static uint64_t int_source(Warp *warp, const Op *op, int i, int lane) {
    uint64_t value = lane_value(warp, source(op, i), lane);
    bool plain = (op->mode == INT_SHL || op->mode == INT_SHR) && i == 2;
    plain |= op->mode == INT_BFE && i >= 2;
    plain |= op->mode == INT_BFI && i >= 3;
    if (plain)
        return (uint32_t)value;
    if (op->mode == INT_MAD_WIDE && i == 3)
        return value;
    return typed(value, op->type);
}

static void run_int(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        uint64_t v[5] = {0};
        for (int i = 1; i < op->operand_count && i < 5; i++)
            v[i] = int_source(warp, op, i, (int)lane);
        uint64_t result = compute_int(op, v);
        bool wide = op->mode == INT_MUL_WIDE || op->mode == INT_MAD_WIDE;
        int bits = wide ? 2 * bits_of(op->type) : bits_of(op->type);
        if (op->saturate && op->type == PTX_S32) {
            int64_t exact =
                op->mode == INT_ADD ? (int64_t)v[1] + (int64_t)v[2] : (int64_t)v[1] - (int64_t)v[2];
            result = (uint64_t)(exact > INT32_MAX ? INT32_MAX : exact < INT32_MIN ? INT32_MIN : exact);
        }
        lane_set(warp, &op->operands[0], (int)lane,
                 truncate_to(result, op->operands[0].bytes == 4 && bits < 32 ? bits : 64));
    }
}

typedef struct {
    const char *root;
    int mode;
    OpRun words_s, words_u; // fast forms for 32 bits
} IntForm;

static const IntForm INT_FORMS[] = {
    {"add", INT_ADD, run_add32, run_add32},
    {"sub", INT_SUB, run_sub32, run_sub32},
    {"min", INT_MIN, run_min_s32, run_min_u32},
    {"max", INT_MAX, run_max_s32, run_max_u32},
    {"and", INT_AND, run_and32, run_and32},
    {"or", INT_OR, run_or32, run_or32},
    {"xor", INT_XOR, run_xor32, run_xor32},
    {"not", INT_NOT, run_not32, run_not32},
    {"shl", INT_SHL, run_shl32, run_shl32},
    {"shr", INT_SHR, run_shr_s32, run_shr_u32},
    {"div", INT_DIV, NULL, NULL},
    {"rem", INT_REM, NULL, NULL},
    {"neg", INT_NEG, NULL, NULL},
    {"abs", INT_ABS, NULL, NULL},
    {"sad", INT_SAD, NULL, NULL},
    {"popc", INT_POPC, NULL, NULL},
    {"clz", INT_CLZ, NULL, NULL},
    {"brev", INT_BREV, NULL, NULL},
    {"bfind", INT_BFIND, NULL, NULL},
    {"bfe", INT_BFE, NULL, NULL},
    {"bfi", INT_BFI, NULL, NULL},
    {"lop3", INT_LOP3, NULL, NULL},
    {"prmt", INT_PRMT, NULL, NULL},
    {"cnot", INT_CNOT, NULL, NULL},
    {"mul", INT_MUL_LO, run_mul32, run_mul32},
    {"mad", INT_MAD_LO, run_mad32, run_mad32},
    {"shf", INT_SHF_L, NULL, NULL},
};

static void run_logic_predicate(Warp *warp, const Op *op, uint32_t mask) {
    uint32_t a = *reg32(warp, source(op, 1)), b = op->operand_count > 2 ? *reg32(warp, source(op, 2)) : 0;
    uint32_t r = op->mode == INT_AND   ? a & b
                 : op->mode == INT_OR  ? a | b
                 : op->mode == INT_XOR ? a ^ b
                 : op->mode == INT_NOT ? ~a
                                       : a;
    uint32_t *d = reg32(warp, &op->operands[0]);
    *d = (*d & ~mask) | (r & mask);
}

static bool decode_int(Decoder *d, Op *op) {
    static const char *const ALLOWED[] = {"lo",  "hi",  "wide", "sat", "shiftamt", "f4e",  "b4e",   "rc8",
                                          "ecl", "ecr", "rc16", "l",   "r",        "wrap", "clamp", NULL};
    op->type = last_type(d);
    if (op->type == TYPE_NONE || is_float(op->type) || op->type == PTX_F16X2 || !only(d, ALLOWED))
        return false;
    const IntForm *form = NULL;
    for (size_t i = 0; i < sizeof INT_FORMS / sizeof INT_FORMS[0]; i++)
        if (!strcmp(INT_FORMS[i].root, d->in->parts[0]))
            form = &INT_FORMS[i];
    op->mode = form->mode;
    if (op->mode == INT_MUL_LO || op->mode == INT_MAD_LO)
        op->mode += has(d, "hi") ? 1 : has(d, "wide") ? 2 : 0;
    if (op->mode == INT_SHF_L) {
        op->mode = has(d, "r") ? INT_SHF_R : INT_SHF_L;
        op->mode2 = has(d, "clamp");
    }
    if (op->mode == INT_BFIND)
        op->mode2 = has(d, "shiftamt");
    static const char *const PERMUTES[] = {"", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
    for (int i = 1; i < 7 && op->mode == INT_PRMT; i++)
        if (has(d, PERMUTES[i]))
            op->mode2 = i;
    op->saturate = has(d, "sat");
    if (!take_operands(d, op, op->type))
        return false;
    if (op->type == PTX_PRED) {
        op->run = run_logic_predicate;
        return true;
    }
    bool words = bits_of(op->type) == 32 && !op->saturate && op->mode == form->mode;
    for (int i = 0; i < op->operand_count; i++)
        words &= op->operands[i].bytes == 4 && op->operands[i].at >= 0;
    op->run = words && form->words_s ? (is_signed(op->type) ? form->words_s : form->words_u) : run_int;
    return true;
}

// ---------------------------------------------------------------- floats

enum {
    FLOAT_ADD,
    FLOAT_SUB,
    FLOAT_MUL,
    FLOAT_FMA,
    FLOAT_DIV,
    FLOAT_MIN,
    FLOAT_MAX,
    FLOAT_NEG,
    FLOAT_ABS,
    FLOAT_SQRT,
    FLOAT_RCP,
    FLOAT_RSQRT,
    FLOAT_EX2,
    FLOAT_LG2,
    FLOAT_TANH,
    FLOAT_SIN,
    FLOAT_COS,
    FLOAT_COPYSIGN
};

static float compute_f32(const Op *op, float a, float b, float c) {
    SimRounding r = (SimRounding)op->mode2;
    switch (op->mode) {
    case FLOAT_ADD:
        return sim_add(a, b, r, op->ftz);
    case FLOAT_SUB:
        return sim_add(a, -b, r, op->ftz);
    case FLOAT_MUL:
        return sim_mul(a, b, r, op->ftz);
    case FLOAT_FMA:
        return sim_fma(a, b, c, r, op->ftz);
    case FLOAT_DIV:
        return sim_div(a, b, r, op->ftz);
    case FLOAT_MIN:
        return sim_min(op->absolute ? fabsf(a) : a, op->absolute ? fabsf(b) : b, op->nan, op->ftz);
    case FLOAT_MAX:
        return sim_max(op->absolute ? fabsf(a) : a, op->absolute ? fabsf(b) : b, op->nan, op->ftz);
    case FLOAT_NEG:
        return as_float(float_bits(a) ^ 0x80000000u);
    case FLOAT_ABS:
        return as_float(float_bits(a) & 0x7FFFFFFFu);
    case FLOAT_SQRT:
        return sim_sqrt(a, op->ftz);
    case FLOAT_RCP:
        return sim_rcp(a, op->ftz);
    case FLOAT_RSQRT:
        return sim_rsqrt(a, op->ftz);
    case FLOAT_EX2:
        return sim_ex2(a, op->ftz);
    case FLOAT_LG2:
        return sim_lg2(a, op->ftz);
    case FLOAT_TANH:
        return sim_tanh(a);
    case FLOAT_SIN:
        return sim_sin(a, op->ftz);
    case FLOAT_COS:
        return sim_cos(a, op->ftz);
    default:
        return copysignf(b, a);
    }
}

static float clamp01(float x) {
    return isnan(x) ? 0 : x < 0 ? 0 : x > 1 ? 1 : x;
}

static void run_f32(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        float v[5] = {0};
        for (int i = 1; i < op->operand_count && i < 5; i++)
            v[i] = as_float(lane_value(warp, source(op, i), (int)lane));
        float result = compute_f32(op, v[1], v[2], v[3]);
        if (op->count == 3)
            result = compute_f32(op, result, v[3], 0);
        if (op->saturate)
            result = clamp01(result);
        lane_set(warp, &op->operands[0], (int)lane, float_bits(result));
    }
}

#define FLOATS(name, call)                                                                                   \
    static void name(Warp *warp, const Op *op, uint32_t mask) {                                              \
        if (mask != ALL_LANES) {                                                                             \
            run_f32(warp, op, mask);                                                                         \
            return;                                                                                          \
        }                                                                                                    \
        float *d = regf(warp, &op->operands[0]);                                                             \
        const float *a = regf(warp, &op->operands[1]),                                                       \
                    *b = regf(warp, &op->operands[op->operand_count > 2 ? 2 : 1]);                           \
        const float *c = regf(warp, &op->operands[op->operand_count > 3 ? 3 : 1]);                           \
        (void)b, (void)c;                                                                                    \
        call;                                                                                                \
    }
FLOATS(run_add_all, sim_add_x32(d, a, b, op->ftz))
FLOATS(run_sub_all, sim_sub_x32(d, a, b, op->ftz))
FLOATS(run_mul_all, sim_mul_x32(d, a, b, op->ftz))
FLOATS(run_fma_all, sim_fma_x32(d, a, b, c, op->ftz))
FLOATS(run_max_all, sim_max_x32(d, a, b, op->ftz))
FLOATS(run_min_all, sim_min_x32(d, a, b, op->ftz))
FLOATS(run_ex2_all, sim_ex2_x32(d, a, op->ftz))

static void run_f64(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        double v[4] = {0};
        for (int i = 1; i < op->operand_count && i < 4; i++)
            v[i] = as_double(lane_value(warp, source(op, i), (int)lane));
        double a = v[1], b = v[2], r = 0;
        switch (op->mode) {
        case FLOAT_ADD:
            r = a + b;
            break;
        case FLOAT_SUB:
            r = a - b;
            break;
        case FLOAT_MUL:
            r = a * b;
            break;
        case FLOAT_FMA:
            r = fma(a, b, v[3]);
            break;
        case FLOAT_DIV:
            r = a / b;
            break;
        case FLOAT_MIN:
            r = fmin(a, b);
            break;
        case FLOAT_MAX:
            r = fmax(a, b);
            break;
        case FLOAT_NEG:
            r = -a;
            break;
        case FLOAT_ABS:
            r = fabs(a);
            break;
        case FLOAT_SQRT:
            r = sqrt(a);
            break;
        case FLOAT_RCP:
            r = 1 / a;
            break;
        case FLOAT_RSQRT:
            r = 1 / sqrt(a);
            break;
        default:
            r = copysign(b, a);
            break;
        }
        lane_set(warp, &op->operands[0], (int)lane, double_bits(r));
    }
}

// Packed pairs: f32x2 in 64 bits, f16x2 and bf16x2 in 32; a single f16 or bf16 in 16. The element is mode of
// `count` halves.
static void run_packed(Warp *warp, const Op *op, uint32_t mask) {
    bool words = op->type2 == PTX_F32, bf16 = op->space;
    FOR_LANES(lane, mask) {
        uint64_t result = 0;
        for (int half = 0; half < op->count; half++) {
            float v[4] = {0};
            for (int i = 1; i < op->operand_count && i < 4; i++) {
                uint64_t bits = lane_value(warp, source(op, i), (int)lane) >> (half * (words ? 32 : 16));
                v[i] = words  ? as_float(bits)
                       : bf16 ? sim_bf16_to_f32((uint16_t)bits)
                              : sim_f16_to_f32((uint16_t)bits);
            }
            float r = compute_f32(op, v[1], v[2], v[3]);
            if (op->relu && !(r > 0))
                r = isnan(r) ? r : 0;
            uint64_t bits = words  ? float_bits(r)
                            : bf16 ? sim_f32_to_bf16(r, SIM_RN, false, false)
                                   : sim_f32_to_f16(r, SIM_RN, false, false);
            result |= bits << (half * (words ? 32 : 16));
        }
        lane_set(warp, &op->operands[0], (int)lane, result);
    }
}

typedef struct {
    const char *root;
    int mode;
    OpRun all; // fast form for f32, round to nearest
} FloatForm;

static const FloatForm FLOAT_FORMS[] = {
    {"add", FLOAT_ADD, run_add_all},    {"sub", FLOAT_SUB, run_sub_all}, {"mul", FLOAT_MUL, run_mul_all},
    {"fma", FLOAT_FMA, run_fma_all},    {"mad", FLOAT_FMA, run_fma_all}, {"div", FLOAT_DIV, NULL},
    {"min", FLOAT_MIN, run_min_all},    {"max", FLOAT_MAX, run_max_all}, {"neg", FLOAT_NEG, NULL},
    {"abs", FLOAT_ABS, NULL},           {"sqrt", FLOAT_SQRT, NULL},      {"rcp", FLOAT_RCP, NULL},
    {"rsqrt", FLOAT_RSQRT, NULL},       {"ex2", FLOAT_EX2, run_ex2_all}, {"lg2", FLOAT_LG2, NULL},
    {"tanh", FLOAT_TANH, NULL},         {"sin", FLOAT_SIN, NULL},        {"cos", FLOAT_COS, NULL},
    {"copysign", FLOAT_COPYSIGN, NULL},
};

static bool decode_float(Decoder *d, Op *op) {
    static const char *const ALLOWED[] = {"rn",  "rz",  "rp",    "rm",   "ftz",    "sat",  "approx",  "full",
                                          "NaN", "abs", "f32x2", "bf16", "bf16x2", "relu", "xorsign", NULL};
    const FloatForm *form = NULL;
    for (size_t i = 0; i < sizeof FLOAT_FORMS / sizeof FLOAT_FORMS[0]; i++)
        if (!strcmp(FLOAT_FORMS[i].root, d->in->parts[0]))
            form = &FLOAT_FORMS[i];
    op->type = last_type(d);
    bool packed =
        has(d, "f32x2") || has(d, "bf16") || has(d, "bf16x2") || op->type == PTX_F16 || op->type == PTX_F16X2;
    if (!packed && !is_float(op->type))
        return false;
    if (!only(d, ALLOWED) || has(d, "xorsign"))
        return false;
    op->mode = form->mode;
    op->mode2 = rounding_of(d);
    op->ftz = has(d, "ftz");
    op->saturate = has(d, "sat");
    op->nan = has(d, "NaN");
    op->relu = has(d, "relu");
    op->absolute = has(d, "abs") && op->mode != FLOAT_ABS;
    if (packed) {
        bool words = has(d, "f32x2");
        op->space = has(d, "bf16") || has(d, "bf16x2");
        op->count = words || has(d, "bf16x2") || op->type == PTX_F16X2 ? 2 : 1;
        op->type2 = words ? PTX_F32 : PTX_F16;
        op->run = run_packed;
        return take_operands(d, op, words ? PTX_B64 : PTX_B32);
    }
    if (!take_operands(d, op, op->type))
        return false;
    if (op->type == PTX_F64) {
        op->run = run_f64;
        return true;
    }
    op->count = (op->mode == FLOAT_MIN || op->mode == FLOAT_MAX) && op->operand_count == 4 ? 3 : 0;
    bool fast = form->all && op->mode2 == SIM_RN && !op->saturate && !op->nan && !op->absolute && !op->count;
    for (int i = 0; i < op->operand_count; i++)
        fast &= op->operands[i].bytes == 4 && op->operands[i].at >= 0;
    op->run = fast ? form->all : run_f32;
    return true;
}

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

static bool decode_mov(Decoder *d, Op *op) {
    op->type = last_type(d);
    if (op->type == TYPE_NONE || d->in->part_count != 2 || d->in->operand_count != 2 ||
        !take_operands(d, op, op->type))
        return false;
    const PtxOperand *in = d->in->operands;
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

const OpEntry ARITHMETIC_OPS[] = {
    {"mov", decode_mov},   {"setp", decode_setp},      {"selp", decode_selp},
    {"set", decode_set},   {"add", decode_float},      {"sub", decode_float},
    {"mul", decode_float}, {"fma", decode_float},      {"mad", decode_float},
    {"div", decode_float}, {"min", decode_float},      {"max", decode_float},
    {"neg", decode_float}, {"abs", decode_float},      {"sqrt", decode_float},
    {"rcp", decode_float}, {"rsqrt", decode_float},    {"ex2", decode_float},
    {"lg2", decode_float}, {"tanh", decode_float},     {"sin", decode_float},
    {"cos", decode_float}, {"copysign", decode_float}, {"add", decode_int},
    {"sub", decode_int},   {"mul", decode_int},        {"mad", decode_int},
    {"div", decode_int},   {"rem", decode_int},        {"min", decode_int},
    {"max", decode_int},   {"and", decode_int},        {"or", decode_int},
    {"xor", decode_int},   {"not", decode_int},        {"shl", decode_int},
    {"shr", decode_int},   {"neg", decode_int},        {"abs", decode_int},
    {"sad", decode_int},   {"popc", decode_int},       {"clz", decode_int},
    {"brev", decode_int},  {"bfind", decode_int},      {"bfe", decode_int},
    {"bfi", decode_int},   {"lop3", decode_int},       {"prmt", decode_int},
    {"shf", decode_int},   {"cnot", decode_int},       {NULL, NULL},
};
