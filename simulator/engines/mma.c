// mma.c: blocks of 4 rows by 16 columns held in registers, B turned once so that columns are consecutive.
#include "simulator/engines/mma.h"

enum { MOST_K = 256, MOST_N = 256, ROWS = 4, COLUMNS = 16 };

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__((target_clones("arch=haswell", "default")))
#else
#define CLONES
#endif

CLONES static void block_product(float *d, int ldd, const float *a, const float *turned, int turned_step,
                                 int rows, int columns, int k_count, bool accumulate) {
    float sum[ROWS][COLUMNS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            sum[i][j] = accumulate && i < rows && j < columns ? d[i * ldd + j] : 0;
    for (int k = 0; k < k_count; k++) {
        const float *row = turned + k * turned_step;
        for (int i = 0; i < ROWS; i++) {
            float factor = a[(i < rows ? i : 0) * k_count + k];
            for (int j = 0; j < COLUMNS; j++)
                sum[i][j] += factor * row[j];
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            d[i * ldd + j] = sum[i][j];
}

void sim_mma_f32(float *d, int ldd, const float *a, const float *b, int m, int n, int k_count,
                 bool accumulate) {
    static _Thread_local float turned[MOST_K * MOST_N];
    int step = (n + COLUMNS - 1) / COLUMNS * COLUMNS;
    for (int k = 0; k < k_count; k++)
        for (int j = 0; j < step; j++)
            turned[k * step + j] = j < n ? b[j * k_count + k] : 0;
    for (int j = 0; j < n; j += COLUMNS)
        for (int i = 0; i < m; i += ROWS)
            block_product(d + i * ldd + j, ldd, a + i * k_count, turned + j, step,
                          m - i < ROWS ? m - i : ROWS, n - j < COLUMNS ? n - j : COLUMNS, k_count,
                          accumulate);
}
