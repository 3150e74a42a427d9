// matrix_desc.h: the 64-bit shared-memory matrix descriptors of tcgen05 and wgmma (PTX ISA, "Shared memory
// descriptor", "Matrix-descriptor format") and the addresses of a matrix's elements ("Canonical layouts").
#ifndef JFA_SIMULATOR_ENGINES_MATRIX_DESC_H
#define JFA_SIMULATOR_ENGINES_MATRIX_DESC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t start, leading, stride; // bytes
    int swizzle_bytes;
    bool atom32; // 128-byte swizzle of 32-byte atoms
    int base_offset;
} SimMatrixDesc;

typedef enum { SIM_ELEM_F16, SIM_ELEM_BF16, SIM_ELEM_E4M3, SIM_ELEM_E5M2, SIM_ELEM_TF32 } SimElem;

// false: illegal, with the reason.
bool sim_matrix_desc_decode(uint64_t bits, bool is_sm100, SimMatrixDesc *desc, char message[200]);

// The shared byte address of element (row, k) after the swizzle; row: along M or N.
uint32_t sim_matrix_address(const SimMatrixDesc *desc, bool k_major, int element_bytes, int row, int k);

// out[row * k_count + k] as f32, by whole pieces as below. `shared` is where address 0 lies, addresses from 0
// to `size`. false: one leaves it.
bool sim_matrix_read(const SimMatrixDesc *desc, bool k_major, SimElem elem, int rows, int k_count,
                     const uint8_t *shared, uint32_t size, float *out);

// The addresses of the 16-byte pieces that such a read touches, each once; room for rows * k_count *
// element_bytes / 16. Whole pieces: k_count (K-major) or rows (MN-major) is a multiple of 16 / element_bytes.
int sim_matrix_pieces(const SimMatrixDesc *desc, bool k_major, int element_bytes, int rows, int k_count,
                      uint32_t *pieces);

#endif
