// numbers_x32.c: the hot operations on 32 lanes at once, written so that the compiler makes vector code of
// them.
#include "simulator/engines/numbers.h"

#include <math.h>
#include <string.h>

enum { LANES = 32 };

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

// The result with PTX's NaN, flushed when wanted. Works on bits so that no branch remains.
static inline uint32_t finished(float value, bool ftz) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t magnitude = bits & 0x7FFFFFFFu;
    bits = ftz && magnitude < 0x00800000u ? bits & 0x80000000u : bits;
    return magnitude > 0x7F800000u ? 0x7FFFFFFFu : bits;
}

static inline float flushed(float value, bool ftz) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = ftz && (bits & 0x7FFFFFFFu) < 0x00800000u ? bits & 0x80000000u : bits;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define LOOP(name, parameters, expression)                                                                   \
    CLONES void name parameters {                                                                            \
        for (int i = 0; i < LANES; i++) {                                                                    \
            uint32_t bits = finished(expression, ftz);                                                       \
            memcpy(&out[i], &bits, sizeof bits);                                                             \
        }                                                                                                    \
    }

LOOP(sim_add_x32, (float *out, const float *a, const float *b, bool ftz),
     flushed(a[i], ftz) + flushed(b[i], ftz))
LOOP(sim_sub_x32, (float *out, const float *a, const float *b, bool ftz),
     flushed(a[i], ftz) - flushed(b[i], ftz))
LOOP(sim_mul_x32, (float *out, const float *a, const float *b, bool ftz),
     flushed(a[i], ftz) * flushed(b[i], ftz))
LOOP(sim_fma_x32, (float *out, const float *a, const float *b, const float *c, bool ftz),
     fmaf(flushed(a[i], ftz), flushed(b[i], ftz), flushed(c[i], ftz)))

// Ordered by the bits as sign and magnitude, so that +0 > -0; a NaN gives way to the other operand.
static inline float larger(float x, float y, bool want_smaller) {
    int32_t p, q;
    memcpy(&p, &x, sizeof p);
    memcpy(&q, &y, sizeof q);
    int32_t s = p ^ (int32_t)((uint32_t)(p >> 31) >> 1), t = q ^ (int32_t)((uint32_t)(q >> 31) >> 1);
    float chosen = (s > t) != want_smaller ? x : y;
    chosen = x != x ? y : chosen;
    return y != y ? x : chosen;
}

LOOP(sim_max_x32, (float *out, const float *a, const float *b, bool ftz),
     larger(flushed(a[i], ftz), flushed(b[i], ftz), false))
LOOP(sim_min_x32, (float *out, const float *a, const float *b, bool ftz),
     larger(flushed(a[i], ftz), flushed(b[i], ftz), true))

typedef float Narrow __attribute__((vector_size(16), aligned(4)));
typedef double Wide __attribute__((vector_size(32)));
typedef uint64_t Whole __attribute__((vector_size(32)));

// 2^x = 2^n * 2^f with |f| <= 1/2; the Taylor polynomial of degree 9 in double is exact to 2^-42. Spelled in
// vectors because compilers don't find the two widths' common step.
CLONES void sim_ex2_x32(float *out, const float *in, bool ftz) {
    static const double C[] = {1.0,
                               0.69314718055994530942,
                               0.24022650695910071233,
                               0.055504108664821579953,
                               0.0096181291076284771620,
                               0.0013333558146428443423,
                               1.5403530393381609954e-4,
                               1.5252733804059840280e-5,
                               1.3215486790144309488e-6,
                               1.0178086009239699728e-7};
    float x[LANES], power[LANES];
    for (int i = 0; i < LANES; i++) {
        float near = flushed(in[i], ftz);
        near = near > 200.0f ? 200.0f : near;
        x[i] = near < -200.0f ? -200.0f : near; // a NaN passes both
    }
    for (int i = 0; i < LANES; i += 4) {
        Wide wide = __builtin_convertvector(*(const Narrow *)(x + i), Wide);
        Wide shifted = wide + 0x1.8p52; // the whole part in the low bits of the mantissa
        Wide f = wide - (shifted - 0x1.8p52), p = f * C[9] + C[8];
        for (int k = 7; k >= 0; k--)
            p = p * f + C[k];
        p *= (Wide)(((Whole)shifted + 1023) << 52);
        *(Narrow *)(power + i) = __builtin_convertvector(p, Narrow);
    }
    for (int i = 0; i < LANES; i++) {
        uint32_t bits = finished(in[i] != in[i] ? in[i] : power[i], ftz);
        memcpy(&out[i], &bits, sizeof bits);
    }
}

static inline uint32_t bf16_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FFFu : rounded;
}

CLONES void sim_pack_bf16_x32(uint32_t *out, const float *high, const float *low) {
    for (int i = 0; i < LANES; i++)
        out[i] = bf16_bits(high[i]) << 16 | bf16_bits(low[i]);
}

static inline uint32_t f16_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    uint32_t normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    float size;
    memcpy(&size, &magnitude, sizeof size);
    float aligned = size + 0.5f; // the unit of the last place of 0.5 is half precision's smallest number
    uint32_t small;
    memcpy(&small, &aligned, sizeof small);
    uint32_t result = magnitude < 113u << 23 ? small - 0x3F000000u : normal > 0x7C00u ? 0x7C00u : normal;
    return magnitude > 0x7F800000u ? 0x7FFFu : sign | result;
}

CLONES void sim_pack_f16_x32(uint32_t *out, const float *high, const float *low) {
    for (int i = 0; i < LANES; i++)
        out[i] = f16_bits(high[i]) << 16 | f16_bits(low[i]);
}
