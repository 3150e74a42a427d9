// tmem_layout.h: where elements lie in tensor memory (PTX ISA, "tcgen05 Data path layout organization", "Data
// movement shape"). Lanes and columns count from those of the instruction's address.
#ifndef JFA_SIMULATOR_ENGINES_TMEM_LAYOUT_H
#define JFA_SIMULATOR_ENGINES_TMEM_LAYOUT_H

#include <stdbool.h>

typedef enum { SIM_32X32B, SIM_16X64B, SIM_16X128B, SIM_16X256B, SIM_16X32BX2 } SimTmemShape;

int sim_tmem_registers(SimTmemShape shape, int n); // of .xN
void sim_tmem_place(SimTmemShape shape, int reg, int thread, int *lane,
                    int *column); // 16x32bx2: column within its half
void sim_tmem_result_place(int m_total, int cta_group, bool ws, int n_total, int m, int n, int *cta,
                           int *lane, int *column);

#endif
