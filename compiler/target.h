// target.h: what the compiler knows of a chip: one table of facts each. Nothing outside compiler/lower/ asks
// which target it is. Numbers: PTX ISA and CUDA programming guide as named beside each in target.c.
#ifndef JFA_COMPILER_TARGET_H
#define JFA_COMPILER_TARGET_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { ELEM_BOOL, ELEM_I32, ELEM_F32, ELEM_BF16, ELEM_F16, ELEM_COUNT } Elem;

int elem_bytes(Elem elem);
const char *elem_name(Elem elem);
bool elem_is_float(Elem elem);

typedef struct Target {
    const char *name;     // "sm_100a": --target and .target
    const char *family;   // "sm_100": `schedule ... for`
    const char *ptx;      // feature string that selects the PTX version in LLVM
    int64_t shared_bytes; // per CTA, when an SM runs one at a time
    int tmem_columns;     // 0: no tensor memory
    int tmem_lanes;
    int warp_rows;              // rows of a tile of values that a warp holds in its registers
    bool products_in_registers; // of a whole warpgroup; otherwise one thread issues them, into tensor memory
    int registers;              // 32-bit, per SM
    int max_threads;            // per CTA
    int sm_threads;             // that an SM runs at a time
    int max_regs;               // per thread
    int max_mbarriers;          // our limit: what fits beside the buffers is checked apart
    // Shapes of one tensor-core product instruction with 16-bit operands.
    int product_m[2], product_m_count;
    int product_n_step, product_n_max;
    int product_k; // elements of 16 bits
} Target;

const Target *target_find(const char *name); // NULL: unknown
const Target *const *target_all(int *count);

// Shared memory that a CTA may have when an SM runs so many: an equal part of the SM's, less what the system
// keeps for each (CUDA C++ programming guide, "Compute Capabilities": 228 KB an SM, 227 KB a CTA).
int64_t target_shared_bytes(const Target *target, int ctas);

// Registers per thread that ptxas gives that many threads of an SM at launch: the largest multiple of 8 such
// that all fit, at most 255.
int target_launch_regs(const Target *target, int threads);

// The swizzle of a shared-memory tile whose rows have that many bytes: the widest of 128, 64 and 32 bytes
// that divides them (PTX ISA, "Tensors: swizzling modes"); 0 when none does. A tile lies as
// [chunk][row][swizzle bytes].
int swizzle_bytes_for(int row_bytes);

#endif
