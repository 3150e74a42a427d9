// matrix_desc.c: matrices in shared memory. Everything goes by 16-byte pieces: a piece holds consecutive
// elements along the major direction, and no swizzle breaks one.
#include "simulator/engines/matrix_desc.h"
#include "simulator/engines/numbers.h"
#include "simulator/engines/swizzle.h"

#include <stdio.h>
#include <string.h>

static bool refuse(char message[200], const char *text, uint64_t value) {
    snprintf(message, 200, "%s (0x%llx)", text, (unsigned long long)value);
    return false;
}

// PTX ISA: tcgen05 "Shared memory descriptor" (bits 46..48 hold 0b001, the swizzle has three bits), wgmma
// "Matrix-descriptor format" (two bits).
bool sim_matrix_desc_decode(uint64_t bits, bool is_sm100, SimMatrixDesc *desc, char message[200]) {
    static const int BYTES_SM100[8] = {0, 128, 128, -1, 64, -1, 32, -1}, BYTES_SM90[4] = {0, 128, 64, 32};
    *desc = (SimMatrixDesc){.start = (uint32_t)(bits & 0x3FFF) << 4,
                            .leading = (uint32_t)(bits >> 16 & 0x3FFF) << 4,
                            .stride = (uint32_t)(bits >> 32 & 0x3FFF) << 4,
                            .base_offset = (int)(bits >> 49 & 7)};
    if (bits & 0x0000C000C000C000ull & ~(is_sm100 ? 1ull << 46 : 0))
        return refuse(message, "bits that must be 0 are set", bits & 0x0000C000C000C000ull);
    if (is_sm100) {
        int code = (int)(bits >> 61);
        if ((bits >> 46 & 7) != 1)
            return refuse(message, "bits 46..48 must hold 1, the descriptor's version", bits >> 46 & 7);
        if (bits >> 52 & 1)
            return refuse(message, "bit 52, the absolute leading offset, does not exist on this chip", bits);
        if (bits >> 53 & 0xFF)
            return refuse(message, "bits 53..60 must be 0", bits >> 53 & 0xFF);
        if (BYTES_SM100[code] < 0)
            return refuse(message, "the swizzle's code does not exist", (uint64_t)code);
        desc->swizzle_bytes = BYTES_SM100[code];
        desc->atom32 = code == 1;
    } else {
        if (bits >> 46 & 7 || bits >> 52 & 0x3FF)
            return refuse(message, "bits 46..48 and 52..61 must be 0", bits);
        desc->swizzle_bytes = BYTES_SM90[bits >> 62];
    }
    if (desc->base_offset && !desc->swizzle_bytes)
        return refuse(message, "a base offset without a swizzle", (uint64_t)desc->base_offset);
    return true;
}

static uint32_t swizzled(const SimMatrixDesc *desc, uint32_t address) {
    if (desc->atom32)
        return sim_swizzle_atom32(address);
    // The base offset says in which row of the pattern the matrix begins, where that is not on the pattern's
    // boundary.
    uint32_t shift = (uint32_t)desc->base_offset << 7;
    return sim_swizzle(address - shift, desc->swizzle_bytes) + shift;
}

static uint32_t plain_address(const SimMatrixDesc *desc, bool k_major, int element_bytes, uint32_t row,
                              uint32_t k) {
    uint32_t size = (uint32_t)element_bytes, width = (uint32_t)desc->swizzle_bytes;
    if (k_major) {
        uint32_t along = k * size;
        if (!width)
            return row / 8 * desc->stride + row % 8 * 16 + along / 16 * desc->leading + along % 16;
        return row / 8 * desc->stride + row % 8 * width + along;
    }
    uint32_t along = row * size;
    if (!width)
        return along / 16 * desc->stride + along % 16 + k % 8 * 16 + k / 8 * desc->leading;
    if (desc->atom32)
        return along / width * desc->leading + along % width + k / 4 * desc->stride + k % 4 * width;
    return along / width * desc->leading + along % width + k / 8 * desc->stride + k % 8 * width;
}

uint32_t sim_matrix_address(const SimMatrixDesc *desc, bool k_major, int element_bytes, int row, int k) {
    return swizzled(desc,
                    desc->start + plain_address(desc, k_major, element_bytes, (uint32_t)row, (uint32_t)k));
}

int sim_matrix_pieces(const SimMatrixDesc *desc, bool k_major, int element_bytes, int rows, int k_count,
                      uint32_t *pieces) {
    int count = 0, each = 16 / element_bytes;
    for (int row = 0; row < rows; row += k_major ? 1 : each)
        for (int k = 0; k < k_count; k += k_major ? each : 1)
            pieces[count++] = sim_matrix_address(desc, k_major, element_bytes, row, k) & ~15u;
    return count;
}

static const float *byte_table(SimElem elem) {
    static _Thread_local float tables[2][256];
    static _Thread_local bool made;
    for (int i = 0; i < 256 && !made; i++) {
        tables[0][i] = sim_e4m3_to_f32((uint8_t)i);
        tables[1][i] = sim_e5m2_to_f32((uint8_t)i);
    }
    made = true;
    return tables[elem == SIM_ELEM_E5M2];
}

static void decode_piece(const uint8_t *bytes, SimElem elem, float out[16], const float *table) {
    uint16_t halves[8];
    uint32_t words[4];
    switch (elem) {
    case SIM_ELEM_BF16:
        memcpy(halves, bytes, 16);
        for (int i = 0; i < 8; i++)
            out[i] = sim_bf16_to_f32(halves[i]);
        break;
    case SIM_ELEM_F16:
        memcpy(halves, bytes, 16);
        for (int i = 0; i < 8; i++)
            out[i] = sim_f16_to_f32(halves[i]);
        break;
    case SIM_ELEM_TF32: // the low 13 bits of the f32 are not looked at
        memcpy(words, bytes, 16);
        for (int i = 0; i < 4; i++)
            words[i] &= 0xFFFFE000u;
        memcpy(out, words, 16);
        break;
    default:
        for (int i = 0; i < 16; i++)
            out[i] = table[bytes[i]];
    }
}

bool sim_matrix_read(const SimMatrixDesc *desc, bool k_major, SimElem elem, int rows, int k_count,
                     const uint8_t *shared, uint32_t size, float *out) {
    int bytes = elem == SIM_ELEM_TF32                            ? 4
                : elem == SIM_ELEM_E4M3 || elem == SIM_ELEM_E5M2 ? 1
                                                                 : 2,
        each = 16 / bytes;
    const float *table = bytes == 1 ? byte_table(elem) : NULL;
    float piece[16];
    for (int row = 0; row < rows; row += k_major ? 1 : each)
        for (int k = 0; k < k_count; k += k_major ? each : 1) {
            uint32_t address = sim_matrix_address(desc, k_major, bytes, row, k);
            if (address > size || size - address < 16)
                return false;
            decode_piece(shared + address, elem, piece, table);
            if (k_major)
                memcpy(out + row * k_count + k, piece, sizeof(float) * (size_t)each);
            else
                for (int i = 0; i < each && row + i < rows; i++)
                    out[(row + i) * k_count + k] = piece[i];
        }
    return true;
}
