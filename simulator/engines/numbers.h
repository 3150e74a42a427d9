// numbers.h: the chip's number formats and single operations on them (PTX ISA: "cvt", "Floating Point
// Instructions"). NaN results are canonical: f32 0x7FFFFFFF, f16 and bf16 0x7FFF, e4m3 0x7F, e5m2 0x7F. `ftz`
// flushes subnormal inputs and results to zero of the same sign.
#ifndef JFA_SIMULATOR_ENGINES_NUMBERS_H
#define JFA_SIMULATOR_ENGINES_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { SIM_RN, SIM_RZ, SIM_RP, SIM_RM } SimRounding; // to nearest even, to zero, up, down

float sim_bf16_to_f32(uint16_t bits);
float sim_f16_to_f32(uint16_t bits);
float sim_e4m3_to_f32(uint8_t bits);
float sim_e5m2_to_f32(uint8_t bits);
float sim_ue8m0_to_f32(uint8_t bits); // 2^(bits - 127); 0xFF: NaN

uint16_t sim_f32_to_bf16(float value, SimRounding rounding, bool relu, bool satfinite);
uint16_t sim_f32_to_f16(float value, SimRounding rounding, bool relu, bool satfinite);
uint8_t sim_f32_to_e4m3(float value, bool relu); // to nearest, saturating
uint8_t sim_f32_to_e5m2(float value, bool relu);
uint8_t sim_f32_to_ue8m0(float value, SimRounding rounding,
                         bool satfinite); // SIM_RZ or SIM_RP; of the magnitude

// The approximate functions of the chip, here correctly rounded to f32 (but for ties of the double result).
float sim_ex2(float x, bool ftz);
float sim_lg2(float x, bool ftz);
float sim_rcp(float x, bool ftz);
float sim_sqrt(float x, bool ftz);
float sim_rsqrt(float x, bool ftz);
float sim_tanh(float x);
float sim_sin(float x, bool ftz);
float sim_cos(float x, bool ftz);

float sim_add(float a, float b, SimRounding rounding, bool ftz);
float sim_mul(float a, float b, SimRounding rounding, bool ftz);
float sim_fma(float a, float b, float c, SimRounding rounding, bool ftz);
float sim_div(float a, float b, SimRounding rounding, bool ftz);
float sim_max(float a, float b, bool nan,
              bool ftz); // nan: a NaN operand gives NaN, else the other operand; +0 > -0
float sim_min(float a, float b, bool nan, bool ftz);

// The same for 32 lanes, rounded to nearest. `out` may be one of the inputs.
void sim_ex2_x32(float *out, const float *in, bool ftz);
void sim_add_x32(float *out, const float *a, const float *b, bool ftz);
void sim_sub_x32(float *out, const float *a, const float *b, bool ftz);
void sim_mul_x32(float *out, const float *a, const float *b, bool ftz);
void sim_fma_x32(float *out, const float *a, const float *b, const float *c, bool ftz);
void sim_max_x32(float *out, const float *a, const float *b, bool ftz);
void sim_min_x32(float *out, const float *a, const float *b, bool ftz);
void sim_pack_bf16_x32(uint32_t *out, const float *high, const float *low);
void sim_pack_f16_x32(uint32_t *out, const float *high, const float *low);

#endif
