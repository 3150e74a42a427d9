// mma.h: the matrix product itself.
#ifndef JFA_SIMULATOR_ENGINES_MMA_H
#define JFA_SIMULATOR_ENGINES_MMA_H

#include <stdbool.h>

// d[i * ldd + j] = (accumulate ? d : 0) + sum over k of a[i * k_count + k] * b[j * k_count + k], in f32, k
// ascending, each product added to the sum so far (with a fused multiply-add where the host has it). k_count
// at most 256, n at most 256.
void sim_mma_f32(float *d, int ldd, const float *a, const float *b, int m, int n, int k_count,
                 bool accumulate);

#endif
