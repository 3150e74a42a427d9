// wgmma_layout.h: fragments of wgmma and mma.sync (PTX ISA, "Register fragments and shared memory matrix
// layouts") and of ldmatrix and stmatrix.
#ifndef JFA_SIMULATOR_ENGINES_WGMMA_LAYOUT_H
#define JFA_SIMULATOR_ENGINES_WGMMA_LAYOUT_H

// Thread 0..127 of the warpgroup. The accumulator in f32: one element a register.
static inline void sim_wgmma_result_place(int thread, int reg, int *row, int *column) {
    int lane = thread % 32;
    *row = 16 * (thread / 32) + lane / 4 + 8 * (reg >> 1 & 1);
    *column = 2 * (lane % 4) + (reg & 1) + 8 * (reg >> 2);
}

// A in registers: element `item` of register 0..3; 4 / element_bytes elements a register.
static inline void sim_wgmma_a_place(int thread, int reg, int item, int element_bytes, int *row, int *k) {
    int lane = thread % 32, each = 4 / element_bytes;
    *row = 16 * (thread / 32) + lane / 4 + 8 * (reg & 1);
    *k = each * (lane % 4) + item + 4 * each * (reg >> 1);
}

// ldmatrix, stmatrix m8n8 of 16-bit elements: of a matrix, the row and column of a thread's element 0 (low)
// or 1.
static inline void sim_ldmatrix_place(int thread, int item, int transposed, int *row, int *column) {
    int major = thread / 4, minor = 2 * (thread % 4) + item;
    *row = transposed ? minor : major;
    *column = transposed ? major : minor;
}

#endif
