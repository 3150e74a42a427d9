// number.h: 16-bit floating-point formats, and elements of host arrays.
#ifndef JFA_COMPILER_REFERENCE_NUMBER_H
#define JFA_COMPILER_REFERENCE_NUMBER_H

#include "compiler/target.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t number_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float number_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Round to nearest even at bit 16; NaN stays NaN. Branch-free, so that loops over it vectorise.
static inline float number_round_bf16(float value) {
    uint32_t bits = number_bits(value);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
    return value == value ? number_from_bits(rounded) : value;
}

// Adding and subtracting 1.5 * 2^(e + 13) leaves 11 significant bits, or multiples of 2^-24 below 2^-14
// (subnormals); from 65520 on the result is infinite.
static inline float number_round_f16(float value) {
    uint32_t bits = number_bits(value), exponent = bits & 0x7f800000, lowest = (127u - 14) << 23;
    float magic = number_from_bits((exponent > lowest ? exponent : lowest) + (13u << 23)) * 1.5f;
    float rounded = (value + magic) - magic;
    float size = fabsf(value);
    rounded = size < 65520.0f ? rounded : copysignf(INFINITY, value);
    return value == value ? copysignf(rounded, value) : value;
}

float number_round(Elem elem, float value); // f32: unchanged
double number_read(Elem elem, bool is_double, const void *data, int64_t index);
// Half a unit in the last place of the type at |value|, finite; 0 for 0 and for integers.
double number_half_ulp(Elem elem, double value);
// The float64 value as the type holds it, rounded once.
double number_to_elem(Elem elem, double value);

#endif
