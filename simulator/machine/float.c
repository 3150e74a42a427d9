// float.c: floating-point arithmetic, single, double, half and packed (PTX ISA: "Floating Point", "Half
// Precision").
#include "simulator/machine/arithmetic.h"

#include <math.h>
#include <string.h>

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

const OpEntry FLOAT_OPS[] = {
    {"add", decode_float},   {"sub", decode_float}, {"mul", decode_float},      {"fma", decode_float},
    {"mad", decode_float},   {"div", decode_float}, {"min", decode_float},      {"max", decode_float},
    {"neg", decode_float},   {"abs", decode_float}, {"sqrt", decode_float},     {"rcp", decode_float},
    {"rsqrt", decode_float}, {"ex2", decode_float}, {"lg2", decode_float},      {"tanh", decode_float},
    {"sin", decode_float},   {"cos", decode_float}, {"copysign", decode_float}, {NULL, NULL},
};
