// instr_desc.c: fields and legal combinations of the instruction descriptor.
#include "simulator/engines/instr_desc.h"

#include <stdio.h>

int sim_kind_k(SimKind kind) {
    static const int K[] = {[SIM_KIND_F16] = 16,
                            [SIM_KIND_TF32] = 8,
                            [SIM_KIND_F8F6F4] = 32,
                            [SIM_KIND_I8] = 32,
                            [SIM_KIND_MXF8F6F4] = 32};
    return K[kind];
}

static bool refuse(char message[200], const char *text, int value) {
    snprintf(message, 200, "%s, not %d", text, value);
    return false;
}

// Type codes of bits 7..9 and 10..12 (PTX ISA, "Instruction descriptor", tables of .kind::f16 and so on). -1:
// none that the simulator knows.
static int element_of(SimKind kind, uint32_t code) {
    switch (kind) {
    case SIM_KIND_F16:
        return code == 0 ? SIM_ELEM_F16 : code == 1 ? SIM_ELEM_BF16 : -1;
    case SIM_KIND_TF32:
        return code == 2 ? SIM_ELEM_TF32 : -1;
    case SIM_KIND_F8F6F4:
    case SIM_KIND_MXF8F6F4:
        return code == 0 ? SIM_ELEM_E4M3 : code == 1 ? SIM_ELEM_E5M2 : -1;
    default:
        return -1;
    }
}

static bool check_shape(const SimInstrDesc *desc, SimKind kind, int cta_group, char message[200]) {
    int step = cta_group == 2 ? 16 : 8;
    bool scaled = kind == SIM_KIND_MXF8F6F4;
    bool m_good =
        cta_group == 2 ? desc->m == 128 || desc->m == 256 : desc->m == 128 || (desc->m == 64 && !scaled);
    if (!m_good)
        return refuse(message,
                      cta_group == 2 ? "M must be 128 or 256 for a CTA pair"
                      : scaled       ? "M must be 128"
                                     : "M must be 64 or 128",
                      desc->m);
    if (desc->n < step || desc->n > 256 || desc->n % step)
        return refuse(message,
                      cta_group == 2 ? "N must be a multiple of 16 up to 256"
                                     : "N must be a multiple of 8 up to 256",
                      desc->n);
    bool bytes = kind == SIM_KIND_F8F6F4 || scaled;
    if (bytes && desc->b_mn_major && desc->n % (2 * step))
        return refuse(message,
                      "N of an MN-major B of 8-bit elements must be a multiple of 16, or 32 for a pair",
                      desc->n);
    return true;
}

bool sim_instr_desc_decode(uint32_t bits, SimKind kind, int cta_group, SimInstrDesc *desc,
                           char message[200]) {
    bool scaled = kind == SIM_KIND_MXF8F6F4;
    int a = element_of(kind, bits >> 7 & 7), b = element_of(kind, bits >> 10 & 7);
    *desc = (SimInstrDesc){.negate_a = bits >> 13 & 1,
                           .negate_b = bits >> 14 & 1,
                           .a_mn_major = bits >> 15 & 1,
                           .b_mn_major = bits >> 16 & 1,
                           .n = (int)(bits >> 17 & 63) * 8};
    if (a < 0)
        return refuse(message, "the code of A's type must be one of the kind's", (int)(bits >> 7 & 7));
    if (b < 0)
        return refuse(message, "the code of B's type must be one of the kind's", (int)(bits >> 10 & 7));
    desc->a = (SimElem)a;
    desc->b = (SimElem)b;
    if (bits & 7)
        return refuse(message, "sparse products are not supported: bits 0..2 must be 0", (int)(bits & 7));
    if (scaled) {
        desc->m = (int)(bits >> 27 & 3) * 128;
        desc->sfb_id = (int)(bits >> 4 & 3);
        desc->sfa_id = (int)(bits >> 29 & 3);
        if (!(bits >> 23 & 1))
            return refuse(message, "the scale type of this kind must be ue8m0, bit 23", 0);
        if (bits & (1u << 3 | 1u << 6 | 7u << 24 | 1u << 31))
            return refuse(message, "reserved bits must be 0", 1);
        return check_shape(desc, kind, cta_group, message);
    }
    int result = (int)(bits >> 4 & 3);
    desc->m = (int)(bits >> 24 & 31) * 16;
    desc->d_f16 = result == 0;
    if (result > 1 ||
        (desc->d_f16 && (kind == SIM_KIND_TF32 || desc->a == SIM_ELEM_BF16 || desc->b == SIM_ELEM_BF16)))
        return refuse(message, "D's type must be f32 (1), or f16 (0) where the inputs allow it", result);
    if (kind == SIM_KIND_F16 && desc->a != desc->b)
        return refuse(message, "A and B must have the same 16-bit type", 1);
    // Bits 30 and 31, the largest shift, belong to .ws products, which this decoder is not for.
    if (bits & (1u << 3 | 1u << 6 | 1u << 23 | 7u << 29))
        return refuse(message, "reserved bits must be 0", 1);
    return check_shape(desc, kind, cta_group, message);
}
