// bench.h: kernels of examples/ built in memory, run on the simulator through the runtime, and compared with
// attention written out here in float64: a second reference, which shares nothing with the families' own.
#ifndef JFA_TESTS_KERNELS_BENCH_H
#define JFA_TESTS_KERNELS_BENCH_H

#include "compiler/jfac.h"
#include "runtime/jfa.h"
#include "simulator/sim.h"

typedef enum {
    LAYOUT_SELF,
    LAYOUT_CROSS,
    LAYOUT_BROADCAST,
    LAYOUT_DENSE,
    LAYOUT_PADDED,
    LAYOUT_COUNT
} Layout;

typedef struct {
    const char *file;       // in the source tree
    const char *defines[8]; // ends with NULL
    Layout layout;
    const int32_t *lens_q, *lens_k; // [sequences]; lens_k NULL: as lens_q
    int sequences, heads, kv_heads, head_dim;
    bool is_f16;
    int64_t seed;
    int64_t watchdog_ms; // 0: built without one
    int64_t row_stride;  // of Q, K, V and O on the device, in elements; 0: dense
    // Changes the PTX before it is loaded: the text may be rewritten in place or replaced. NULL: as built.
    char *(*edit)(const char *ptx, void *context);
    void *context;
    // Of the kernel; NULL: all.
    bool (*mask)(int64_t q, int64_t k, int64_t len_q, int64_t len_k);
    int extra_launches; // of the same plan, into outputs that are cleared
    int64_t steps;      // of each warp, at most; 0: as many as the simulator allows
} Case;

typedef struct {
    SimFault fault;                  // kind SIM_FAULT_NONE: it ran to its end
    char message[JFA_MESSAGE_BYTES]; // why it could not even be built or launched; empty: it could
    double error, largest;           // of O against float64: largest difference, largest value
    double lse_error;
    int64_t nan_count, touched; // NaN in the output; elements outside of every sequence that changed
    double rounded_error; // what the same computation with 16-bit P and output, float32 sums, differs from
                          // float64
} Outcome;

// What the cases are built for and run on, by the test's argument; sm_100a without one. Call it first.
extern const char *bench_target;
void bench_set_target(int argc, char **argv);
bool bench_on_sm90(void);

void bench_run_case(const Case *test, Outcome *outcome);

// The case's PTX, edited; NULL: outcome->message says why there is none. And a run of such a text.
char *bench_build_case(const Case *test, Outcome *outcome);
void bench_run_text(const Case *test, const char *ptx, Outcome *outcome);

// Fails the test unless the outcome is right: no fault, nothing touched, error at most twice the rounded
// computation's.
void bench_expect_right(const Case *test, const Outcome *outcome);

#endif
