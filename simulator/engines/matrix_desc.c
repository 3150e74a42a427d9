// matrix_desc.c: matrices in shared memory. Everything goes by 16-byte pieces: a piece holds consecutive
// elements along the major direction, and no swizzle breaks one.
#include "simulator/engines/matrix_desc.h"
#include "simulator/engines/half.h"
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
    // The base offset says in which row of the pattern the matrix begins, where that is not on the pattern's
    // boundary.
    uint32_t shift = (uint32_t)desc->base_offset << 7, moved = address - shift;
    return (desc->atom32 ? sim_swizzle_atom32(moved) : sim_swizzle(moved, desc->swizzle_bytes)) + shift;
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
    uint32_t group = desc->atom32 ? 4 : 8; // of k
    uint32_t wide = along / width, within = along % width;
    return wide * desc->leading + within + k / group * desc->stride + k % group * width;
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

// One piece's elements. Inlined where `elem` is a constant, so that each type's loop becomes vector code.
__attribute__((always_inline)) static inline void decode_piece(const uint8_t *bytes, SimElem elem, float *out,
                                                               const float *table) {
    uint16_t halves[8];
    uint32_t words[8];
    float values[8];
    switch (elem) {
    case SIM_ELEM_BF16:
        memcpy(halves, bytes, 16);
        for (int i = 0; i < 8; i++)
            words[i] = (uint32_t)halves[i] << 16;
        memcpy(out, words, 32);
        break;
    case SIM_ELEM_F16:
        memcpy(halves, bytes, 16);
        for (int i = 0; i < 8; i++)
            values[i] = sim_half_value(halves[i]);
        memcpy(out, values, 32);
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

typedef struct {
    const SimMatrixDesc *desc;
    int rows, k_count;
    const uint8_t *shared;
    uint32_t size;
    float *out;
} Read;

static bool leaves(const Read *read, uint32_t address) {
    return address > read->size || read->size - address < 16;
}

// Pieces hold consecutive k: they go out as they are.
__attribute__((always_inline)) static inline bool read_k_major(const Read *read, SimElem elem, int bytes,
                                                               const float *table) {
    for (int row = 0; row < read->rows; row++)
        for (int k = 0; k < read->k_count; k += 16 / bytes) {
            uint32_t address = sim_matrix_address(read->desc, true, bytes, row, k);
            if (leaves(read, address))
                return false;
            decode_piece(read->shared + address, elem, read->out + row * read->k_count + k, table);
        }
    return true;
}

// Pieces hold consecutive rows: each is one column of the output.
__attribute__((always_inline)) static inline bool read_mn_major(const Read *read, SimElem elem, int bytes,
                                                                const float *table) {
    const int each = 16 / bytes;
    float piece[16];
    for (int row = 0; row < read->rows; row += each)
        for (int k = 0; k < read->k_count; k++) {
            uint32_t address = sim_matrix_address(read->desc, false, bytes, row, k);
            if (leaves(read, address))
                return false;
            decode_piece(read->shared + address, elem, piece, table);
            float *column = read->out + row * read->k_count + k;
            for (int i = 0; i < each && row + i < read->rows; i++)
                column[i * read->k_count] = piece[i];
        }
    return true;
}

#define READER(name, elem, bytes)                                                                            \
    static bool name(const Read *read, bool k_major, const float *table) {                                   \
        return k_major ? read_k_major(read, elem, bytes, table) : read_mn_major(read, elem, bytes, table);   \
    }
READER(read_f16, SIM_ELEM_F16, 2)
READER(read_bf16, SIM_ELEM_BF16, 2)
READER(read_byte, SIM_ELEM_E4M3, 1)
READER(read_tf32, SIM_ELEM_TF32, 4)

bool sim_matrix_read(const SimMatrixDesc *desc, bool k_major, SimElem elem, int rows, int k_count,
                     const uint8_t *shared, uint32_t size, float *out) {
    static bool (*const READERS[])(const Read *, bool, const float *) = {[SIM_ELEM_F16] = read_f16,
                                                                         [SIM_ELEM_BF16] = read_bf16,
                                                                         [SIM_ELEM_E4M3] = read_byte,
                                                                         [SIM_ELEM_E5M2] = read_byte,
                                                                         [SIM_ELEM_TF32] = read_tf32};
    Read read = {desc, rows, k_count, shared, size, out};
    bool byte = elem == SIM_ELEM_E4M3 || elem == SIM_ELEM_E5M2;
    return READERS[elem](&read, k_major, byte ? byte_table(elem) : NULL);
}
