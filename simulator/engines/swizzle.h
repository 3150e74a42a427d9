// The shared-memory swizzles of TMA, tcgen05 and wgmma (PTX ISA, "Tensor swizzling modes"): one exclusive or
// on the bits of a byte address. The address is the absolute one in shared memory, so a tile that does not
// start on a multiple of the pattern (8 rows of the swizzle's width) is permuted, exactly as the chip would
// permute it.
#ifndef JFA_SIMULATOR_ENGINES_SWIZZLE_H
#define JFA_SIMULATOR_ENGINES_SWIZZLE_H

#include <stdint.h>

// swizzle_bytes: 0 (none), 32, 64 or 128. Every 16-byte piece stays whole. The function is its own inverse.
static inline uint32_t sim_swizzle(uint32_t address, int swizzle_bytes) {
    // 128 B: bits 4-6 with bits 7-9; 64 B: bits 4-5 with bits 7-8; 32 B: bit 4 with bit 7.
    uint32_t mask = swizzle_bytes > 0 ? (uint32_t)swizzle_bytes - 16u : 0u;
    return address ^ ((address >> 3) & mask);
}

// 128 B with 32-byte atoms: bits 5-6 with bits 7-8, so that pairs of pieces move together.
static inline uint32_t sim_swizzle_atom32(uint32_t address) {
    return address ^ ((address >> 2) & 0x60u);
}

#endif
