// arithmetic.h: bits and types, shared by the files of arithmetic; private to this room.
#ifndef JFA_SIMULATOR_MACHINE_ARITHMETIC_H
#define JFA_SIMULATOR_MACHINE_ARITHMETIC_H

#include "simulator/engines/numbers.h"
#include "simulator/machine/decode.h"

#include <string.h>

static inline bool is_signed(int type) {
    return type >= PTX_S8 && type <= PTX_S64;
}
static inline bool is_float(int type) {
    return type == PTX_F16 || type == PTX_F32 || type == PTX_F64;
}
static inline int bits_of(int type) {
    return 8 * ptx_type_bytes((PtxType)type);
}

static inline uint64_t truncate_to(uint64_t value, int bits) {
    return bits >= 64 ? value : value & ((1ull << bits) - 1);
}

static inline int64_t extend(uint64_t value, int bits) {
    return bits >= 64 ? (int64_t)value : (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static inline uint64_t typed(uint64_t value, int type) {
    return is_signed(type) ? (uint64_t)extend(value, bits_of(type)) : truncate_to(value, bits_of(type));
}

static inline float as_float(uint64_t bits) {
    float value;
    uint32_t word = (uint32_t)bits;
    memcpy(&value, &word, 4);
    return value;
}

static inline uint32_t float_bits(float value) {
    uint32_t word;
    memcpy(&word, &value, 4);
    return word;
}

static inline double as_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static inline uint64_t double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

static inline SimRounding rounding_of(const Decoder *d) {
    return has(d, "rz") || has(d, "rzi")   ? SIM_RZ
           : has(d, "rp") || has(d, "rpi") ? SIM_RP
           : has(d, "rm") || has(d, "rmi") ? SIM_RM
                                           : SIM_RN;
}

static inline const Operand *source(const Op *op, int i) {
    return &op->operands[i];
}

#endif
