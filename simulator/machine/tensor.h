// tensor.h: what tensor.c (memory, loads, stores, copies) and product.c (tcgen05.mma) share.
#ifndef JFA_SIMULATOR_MACHINE_TENSOR_H
#define JFA_SIMULATOR_MACHINE_TENSOR_H

#include "simulator/machine/decode.h"

enum { COLUMNS_A_UNIT = 32 }; // of an allocation

bool tensor_on_sm100(Warp *warp, const Op *op); // false: after a fault
bool decode_tensor_product(Decoder *d, Op *op); // tcgen05.mma

static inline bool column_is_allocated(const Cta *cta, int column) {
    return column >= 0 && column < TMEM_COLUMNS && cta->tmem_owner[column / COLUMNS_A_UNIT] != 0;
}

static inline uint32_t *cell_of(Cta *cta, int lane, int column) {
    return &cta->tensor[lane * TMEM_COLUMNS + column];
}

// The CTAs that an operation of cta_group 1 or 2 works on: `cta` alone, or the pair of even and odd rank that
// it is in. NULL after a fault: there is no such CTA.
Cta *tensor_partner(Cta *cta, Async *async, int part);

#endif
