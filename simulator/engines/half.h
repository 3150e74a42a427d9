// half.h: half precision to single in a form that compilers vectorise; for this room alone.
#ifndef JFA_SIMULATOR_ENGINES_HALF_H
#define JFA_SIMULATOR_ENGINES_HALF_H

#include <stdint.h>
#include <string.h>

// The fields moved into place have an exponent too small by 112; the multiplication mends that and makes
// subnormal numbers normal. Infinity and NaN get the largest exponent instead.
static inline float sim_half_value(uint16_t half) {
    uint32_t magnitude = (uint32_t)(half & 0x7FFF) << 13, sign = (uint32_t)(half & 0x8000) << 16, bits;
    float value;
    memcpy(&value, &magnitude, sizeof value);
    value *= 0x1p112f;
    memcpy(&bits, &value, sizeof bits);
    bits = magnitude >= 0x7C00u << 13 ? magnitude | 0x7F800000u : bits;
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
