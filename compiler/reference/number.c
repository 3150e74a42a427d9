#include "compiler/reference/number.h"

// Significant bits and the exponent of the smallest normal number (IEEE 754 binary16 and binary32; bfloat16
// has binary32's exponents), and the largest finite value.
static const struct {
    int bits, lowest;
    double largest;
} FORMATS[ELEM_COUNT] = {
    [ELEM_F32] = {24, -126, 0x1.fffffep127},
    [ELEM_BF16] = {8, -126, 0x1.fep127},
    [ELEM_F16] = {11, -14, 65504},
};

float number_round(Elem elem, float value) {
    return elem == ELEM_BF16 ? number_round_bf16(value) : elem == ELEM_F16 ? number_round_f16(value) : value;
}

static float read_f16(uint16_t half) {
    int exponent = half >> 10 & 31, fraction = half & 1023;
    float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                 : exponent     ? ldexpf((float)(fraction + 1024), exponent - 25)
                                : ldexpf((float)fraction, -24);
    return half >> 15 ? -size : size;
}

double number_read(Elem elem, bool is_double, const void *data, int64_t index) {
    if (is_double)
        return ((const double *)data)[index];
    switch (elem) {
    case ELEM_BF16:
        return number_from_bits((uint32_t)((const uint16_t *)data)[index] << 16);
    case ELEM_F16:
        return read_f16(((const uint16_t *)data)[index]);
    case ELEM_F32:
        return ((const float *)data)[index];
    default:
        return ((const int32_t *)data)[index];
    }
}

double number_half_ulp(Elem elem, double value) {
    if (value == 0 || !isfinite(value) || !FORMATS[elem].bits)
        return 0;
    int exponent = ilogb(value);
    if (exponent < FORMATS[elem].lowest)
        exponent = FORMATS[elem].lowest;
    return ldexp(0.5, exponent - FORMATS[elem].bits + 1);
}

double number_to_elem(Elem elem, double value) {
    if (!FORMATS[elem].bits)
        return trunc(value);
    if (value == 0 || !isfinite(value))
        return value;
    double ulp = 2 * number_half_ulp(elem, value), rounded = rint(value / ulp) * ulp;
    return fabs(rounded) > FORMATS[elem].largest ? copysign(INFINITY, value) : rounded;
}
