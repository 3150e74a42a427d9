// mma.c: blocks of 4 rows by 16 columns held in vector registers, B turned once so that columns are
// consecutive.
#include "simulator/engines/mma.h"

#include <string.h>

enum { MOST_K = 256, MOST_N = 256, ROWS = 4, COLUMNS = 16, LANES = 8 };

// The levels of x86-64, not processors by name: those match one processor only.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

typedef float Vector __attribute__((vector_size(4 * LANES), aligned(4)));

// A whole block.
CLONES static void block_product(float *d, int ldd, const float *a, const float *turned, int turned_step,
                                 int k_count, bool accumulate) {
    Vector sum[ROWS][2];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 2; j++)
            sum[i][j] = accumulate ? *(const Vector *)(d + i * ldd + j * LANES) : (Vector){0};
    for (int k = 0; k < k_count; k++) {
        const Vector left = *(const Vector *)(turned + k * turned_step),
                     right = *(const Vector *)(turned + k * turned_step + LANES);
        for (int i = 0; i < ROWS; i++) {
            float factor = a[i * k_count + k];
            sum[i][0] += factor * left;
            sum[i][1] += factor * right;
        }
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 2; j++)
            *(Vector *)(d + i * ldd + j * LANES) = sum[i][j];
}

// A block at the edge, by way of a whole one.
static void edge_product(float *d, int ldd, const float *a, const float *turned, int turned_step, int rows,
                         int columns, int k_count, bool accumulate) {
    float whole[ROWS * COLUMNS] = {0}, rows_of_a[ROWS * MOST_K] = {0};
    for (int i = 0; i < rows; i++) {
        memcpy(rows_of_a + i * k_count, a + i * k_count, sizeof(float) * (size_t)k_count);
        memcpy(whole + i * COLUMNS, d + i * ldd, sizeof(float) * (size_t)columns);
    }
    block_product(whole, COLUMNS, rows_of_a, turned, turned_step, k_count, accumulate);
    for (int i = 0; i < rows; i++)
        memcpy(d + i * ldd, whole + i * COLUMNS, sizeof(float) * (size_t)columns);
}

void sim_mma_f32(float *d, int ldd, const float *a, const float *b, int m, int n, int k_count,
                 bool accumulate) {
    static _Thread_local float turned[MOST_K * MOST_N];
    int step = (n + COLUMNS - 1) / COLUMNS * COLUMNS;
    for (int j = 0; j < step; j++)
        for (int k = 0; k < k_count; k++)
            turned[k * step + j] = j < n ? b[j * k_count + k] : 0;
    for (int j = 0; j < n; j += COLUMNS)
        for (int i = 0; i < m; i += ROWS) {
            int rows = m - i < ROWS ? m - i : ROWS, columns = n - j < COLUMNS ? n - j : COLUMNS;
            if (rows == ROWS && columns == COLUMNS)
                block_product(d + i * ldd + j, ldd, a + i * k_count, turned + j, step, k_count, accumulate);
            else
                edge_product(d + i * ldd + j, ldd, a + i * k_count, turned + j, step, rows, columns, k_count,
                             accumulate);
        }
}
