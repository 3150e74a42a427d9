// tmem_layout.c: fragments of tcgen05.ld and .st, and the place of a product's result.
#include "simulator/engines/tmem_layout.h"

int sim_tmem_registers(SimTmemShape shape, int n) {
    static const int EACH[] = {
        [SIM_32X32B] = 1, [SIM_16X64B] = 1, [SIM_16X128B] = 2, [SIM_16X256B] = 4, [SIM_16X32BX2] = 1};
    return EACH[shape] * n;
}

void sim_tmem_place(SimTmemShape shape, int reg, int thread, int *lane, int *column) {
    switch (shape) {
    case SIM_16X64B:
        *lane = (thread >> 2) + 8 * (thread & 1);
        *column = (thread >> 1 & 1) + 2 * reg;
        break;
    case SIM_16X128B:
        *lane = (thread >> 2) + 8 * (reg & 1);
        *column = (thread & 3) + 4 * (reg >> 1);
        break;
    case SIM_16X256B:
        *lane = (thread >> 2) + 8 * (reg >> 1 & 1);
        *column = 2 * (thread & 3) + (reg & 1) + 8 * (reg >> 2);
        break;
    case SIM_16X32BX2:
        *lane = thread & 15;
        *column = reg;
        break;
    default:
        *lane = thread;
        *column = reg;
    }
}

void sim_tmem_result_place(int m_total, int cta_group, bool ws, int n_total, int m, int n, int *cta,
                           int *lane, int *column) {
    *cta = 0;
    *column = n;
    if (cta_group == 2) {
        int half = m_total / 2;
        *cta = m / half;
        *lane = m % half;
        if (m_total == 128) {
            *lane += 64 * (n >= n_total / 2);
            *column = n % (n_total / 2);
        }
        return;
    }
    if (m_total == 64 && !ws) {
        *lane = m % 16 + 32 * (m / 16);
        return;
    }
    int parts = ws ? 128 / m_total : 1, part = n_total / parts;
    *lane = m + m_total * (n / part);
    *column = n % part;
}
