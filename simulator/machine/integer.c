// integer.c: integer, logic and shift instructions (PTX ISA: "Integer Arithmetic", "Logic and Shift").
#include "simulator/machine/arithmetic.h"

#include <math.h>
#include <string.h>

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
WORDS(run_min_relu, (int32_t)a <= 0 || (int32_t)b <= 0 ? 0 : a < b ? a : b)
WORDS(run_max_relu, (int32_t)a <= 0 && (int32_t)b <= 0 ? 0 : (int32_t)a > (int32_t)b ? a : b)
WORDS(run_mad32, a *b + c)

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
        if (op->mode2 && ((int64_t)a <= 0 || (int64_t)b <= 0))
            return 0;
        return is_signed(op->type) ? ((int64_t)a < (int64_t)b ? a : b) : a < b ? a : b;
    case INT_MAX:
        if (op->mode2 && (int64_t)a <= 0 && (int64_t)b <= 0)
            return 0;
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
    static const char *const ALLOWED[] = {"lo",  "hi",   "wide",  "sat",  "shiftamt", "f4e",
                                          "b4e", "rc8",  "ecl",   "ecr",  "rc16",     "l",
                                          "r",   "wrap", "clamp", "relu", NULL};
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
    bool relu = has(d, "relu"); // of signed words alone: a negative result becomes 0
    if (relu && ((op->mode != INT_MIN && op->mode != INT_MAX) || op->type != PTX_S32))
        return false;
    op->mode2 |= relu;
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
    OpRun fast = is_signed(op->type) ? form->words_s : form->words_u;
    if (relu)
        fast = op->mode == INT_MIN ? run_min_relu : run_max_relu;
    op->run = words && fast ? fast : run_int;
    return true;
}

const OpEntry INTEGER_OPS[] = {
    {"add", decode_int},   {"sub", decode_int},  {"mul", decode_int},  {"mad", decode_int},
    {"div", decode_int},   {"rem", decode_int},  {"min", decode_int},  {"max", decode_int},
    {"and", decode_int},   {"or", decode_int},   {"xor", decode_int},  {"not", decode_int},
    {"shl", decode_int},   {"shr", decode_int},  {"neg", decode_int},  {"abs", decode_int},
    {"sad", decode_int},   {"popc", decode_int}, {"clz", decode_int},  {"brev", decode_int},
    {"bfind", decode_int}, {"bfe", decode_int},  {"bfi", decode_int},  {"lop3", decode_int},
    {"prmt", decode_int},  {"shf", decode_int},  {"cnot", decode_int}, {NULL, NULL},
};
