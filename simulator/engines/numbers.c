// numbers.c: conversions and scalar arithmetic. The loops over 32 lanes are in numbers_x32.c.
#include "simulator/engines/numbers.h"
#include "simulator/engines/half.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static const uint32_t CANONICAL_NAN = 0x7FFFFFFFu;

static float flush(float x, bool ftz) {
    return ftz && fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
}

static float finish(float x, bool ftz) {
    return x != x ? from_bits(CANONICAL_NAN) : flush(x, ftz);
}

// ---------------------------------------------------------------- formats

typedef struct {
    int exponent_bits, mantissa_bits, bias;
    bool has_infinity; // else the largest code of the largest exponent is the only NaN (e4m3)
} Format;

static const Format F16 = {5, 10, 15, true}, BF16 = {8, 7, 127, true}, E4M3 = {4, 3, 7, false},
                    E5M2 = {5, 2, 15, true};

static float decode(const Format *format, uint32_t bits) {
    int mantissa_bits = format->mantissa_bits, top = (1 << format->exponent_bits) - 1;
    uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
    int exponent = (int)(bits >> mantissa_bits) & top;
    bool negative = bits >> (mantissa_bits + format->exponent_bits) & 1;
    float value;
    if (exponent == top && format->has_infinity)
        value = mantissa ? NAN : INFINITY;
    else if (exponent == top && mantissa == (1u << mantissa_bits) - 1)
        value = NAN;
    else if (exponent == 0)
        value = ldexpf((float)mantissa, 1 - format->bias - mantissa_bits);
    else
        value = ldexpf((float)(mantissa | 1u << mantissa_bits), exponent - format->bias - mantissa_bits);
    return negative ? -value : value;
}

static double round_to_whole(double x, SimRounding rounding,
                             bool negative) { // x >= 0, of a value with that sign
    switch (rounding) {
    case SIM_RZ:
        return floor(x);
    case SIM_RP:
        return negative ? floor(x) : ceil(x);
    case SIM_RM:
        return negative ? ceil(x) : floor(x);
    default:
        return nearbyint(x);
    }
}

static uint32_t encode(const Format *format, float value, SimRounding rounding, bool relu, bool satfinite) {
    int mantissa_bits = format->mantissa_bits, top = (1 << format->exponent_bits) - 1;
    uint32_t largest_code = format->has_infinity
                                ? ((uint32_t)top << mantissa_bits) - 1
                                : ((uint32_t)top << mantissa_bits) + (1u << mantissa_bits) - 2;
    uint32_t nan_code = (1u << (format->exponent_bits + mantissa_bits)) - 1;
    if (value != value)
        return nan_code;
    bool negative = signbit(value);
    uint32_t sign = negative ? 1u << (format->exponent_bits + mantissa_bits) : 0;
    if (relu && negative)
        return 0;
    double magnitude = fabs((double)value);
    if (magnitude == 0)
        return sign;
    if (isinf(magnitude))
        return sign | (satfinite || !format->has_infinity ? largest_code : largest_code + 1);
    int exponent;
    frexp(magnitude, &exponent);
    exponent--; // magnitude = 1.x * 2^exponent
    if (exponent < 1 - format->bias)
        exponent = 1 - format->bias;
    double whole = round_to_whole(ldexp(magnitude, mantissa_bits - exponent), rounding, negative);
    // Consecutive codes are consecutive values, also across a carry into the exponent.
    uint64_t code = (uint64_t)(exponent + format->bias - 1) << mantissa_bits;
    code += (uint64_t)whole;
    if (code > largest_code) {
        bool away =
            rounding == SIM_RN || (rounding == SIM_RP && !negative) || (rounding == SIM_RM && negative);
        code = satfinite || !away || !format->has_infinity ? largest_code : largest_code + 1;
    }
    return sign | (uint32_t)code;
}

float sim_bf16_to_f32(uint16_t bits) {
    return from_bits((uint32_t)bits << 16);
}

float sim_f16_to_f32(uint16_t bits) {
    return sim_half_value(bits);
}

float sim_e4m3_to_f32(uint8_t bits) {
    return decode(&E4M3, bits);
}
float sim_e5m2_to_f32(uint8_t bits) {
    return decode(&E5M2, bits);
}
float sim_ue8m0_to_f32(uint8_t bits) {
    return bits == 255 ? from_bits(CANONICAL_NAN) : ldexpf(1.0f, bits - 127);
}

uint16_t sim_f32_to_bf16(float value, SimRounding rounding, bool relu, bool satfinite) {
    uint32_t bits = bits_of(value);
    if (rounding == SIM_RN && !relu && !satfinite && value == value)
        return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    return (uint16_t)encode(&BF16, value, rounding, relu, satfinite);
}

uint16_t sim_f32_to_f16(float value, SimRounding rounding, bool relu, bool satfinite) {
    return (uint16_t)encode(&F16, value, rounding, relu, satfinite);
}

uint8_t sim_f32_to_e4m3(float value, bool relu) {
    return (uint8_t)encode(&E4M3, value, SIM_RN, relu, true);
}
uint8_t sim_f32_to_e5m2(float value, bool relu) {
    return (uint8_t)encode(&E5M2, value, SIM_RN, relu, true);
}

uint8_t sim_f32_to_ue8m0(float value, SimRounding rounding, bool satfinite) {
    if (value != value)
        return 255;
    double magnitude = fabs((double)value);
    if (isinf(magnitude))
        return satfinite ? 254 : 255;
    int exponent;
    double fraction = frexp(magnitude, &exponent); // [0.5, 1)
    if (magnitude == 0)
        return 0;
    exponent += 126 + (rounding == SIM_RP && fraction > 0.5);
    if (exponent > 254)
        return satfinite ? 254 : 255;
    return (uint8_t)(exponent < 0 ? 0 : exponent);
}

// ---------------------------------------------------------------- functions

float sim_ex2(float x, bool ftz) {
    return finish((float)exp2((double)flush(x, ftz)), ftz);
}
float sim_lg2(float x, bool ftz) {
    return finish((float)log2((double)flush(x, ftz)), ftz);
}
float sim_rcp(float x, bool ftz) {
    return finish((float)(1.0 / (double)flush(x, ftz)), ftz);
}
float sim_sqrt(float x, bool ftz) {
    return finish(sqrtf(flush(x, ftz)), ftz);
}
float sim_rsqrt(float x, bool ftz) {
    return finish((float)(1.0 / sqrt((double)flush(x, ftz))), ftz);
}
float sim_tanh(float x) {
    return finish((float)tanh((double)x), false);
}
float sim_sin(float x, bool ftz) {
    return finish((float)sin((double)flush(x, ftz)), ftz);
}
float sim_cos(float x, bool ftz) {
    return finish((float)cos((double)flush(x, ftz)), ftz);
}

static int mode_of(SimRounding rounding) {
    return rounding == SIM_RZ   ? FE_TOWARDZERO
           : rounding == SIM_RP ? FE_UPWARD
           : rounding == SIM_RM ? FE_DOWNWARD
                                : FE_TONEAREST;
}

// The volatile operands keep the operation between the two changes of mode.
#define ROUNDED(name, parameters, prepare, expression)                                                       \
    float name parameters {                                                                                  \
        prepare;                                                                                             \
        if (rounding == SIM_RN)                                                                              \
            return finish(expression, ftz);                                                                  \
        fesetround(mode_of(rounding));                                                                       \
        volatile float result = expression;                                                                  \
        fesetround(FE_TONEAREST);                                                                            \
        return finish(result, ftz);                                                                          \
    }

ROUNDED(sim_add, (float a, float b, SimRounding rounding, bool ftz), volatile float x = flush(a, ftz);
        volatile float y = flush(b, ftz), x + y)
ROUNDED(sim_mul, (float a, float b, SimRounding rounding, bool ftz), volatile float x = flush(a, ftz);
        volatile float y = flush(b, ftz), x *y)
ROUNDED(sim_div, (float a, float b, SimRounding rounding, bool ftz), volatile float x = flush(a, ftz);
        volatile float y = flush(b, ftz), x / y)
ROUNDED(sim_fma, (float a, float b, float c, SimRounding rounding, bool ftz),
        volatile float x = flush(a, ftz);
        volatile float y = flush(b, ftz); volatile float z = flush(c, ftz), fmaf(x, y, z))

float sim_max(float a, float b, bool nan, bool ftz) {
    a = flush(a, ftz), b = flush(b, ftz);
    if (a != a || b != b)
        return nan || (a != a && b != b) ? from_bits(CANONICAL_NAN) : a != a ? b : a;
    return a > b || (a == b && !signbit(a)) ? a : b;
}

float sim_min(float a, float b, bool nan, bool ftz) {
    a = flush(a, ftz), b = flush(b, ftz);
    if (a != a || b != b)
        return nan || (a != a && b != b) ? from_bits(CANONICAL_NAN) : a != a ? b : a;
    return a < b || (a == b && signbit(a)) ? a : b;
}
