// instr_desc.h: the 32-bit instruction descriptor of tcgen05.mma (PTX ISA, "Instruction descriptor").
#ifndef JFA_SIMULATOR_ENGINES_INSTR_DESC_H
#define JFA_SIMULATOR_ENGINES_INSTR_DESC_H

#include "simulator/engines/matrix_desc.h"

typedef enum { SIM_KIND_F16, SIM_KIND_TF32, SIM_KIND_F8F6F4, SIM_KIND_I8, SIM_KIND_MXF8F6F4 } SimKind;

typedef struct {
    int m, n; // of the CTA pair with cta_group 2
    SimElem a, b;
    bool d_f16, negate_a, negate_b, a_mn_major, b_mn_major;
    int sfa_id, sfb_id;
} SimInstrDesc;

bool sim_instr_desc_decode(uint32_t bits, SimKind kind, int cta_group, SimInstrDesc *desc, char message[200]);
int sim_kind_k(SimKind kind); // elements along K of one instruction

#endif
