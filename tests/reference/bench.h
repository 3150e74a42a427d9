// bench.h: a reference from text, with tensors filled by a seed, for the tests of this folder.
#ifndef JFA_TESTS_REFERENCE_BENCH_H
#define JFA_TESTS_REFERENCE_BENCH_H

#include "compiler/reference/reference.h"

enum { BENCH_MOST = 12 };

typedef struct {
    Arena *arena;
    SourceSet sources;
    Diag diag;
    ReferenceProblem problem;
    ReferenceConstant constants[BENCH_MOST];
    ReferenceDim dims[BENCH_MOST];
    ReferenceAxis axes[BENCH_MOST];
    ReferenceParam params[BENCH_MOST];
    ReferenceTensor tensors[BENCH_MOST];
} Bench;

// Reads the text's families and kernels: the last of each is the problem's. Fails the test when it can't be
// parsed.
void bench_open(Bench *bench, const char *text);
// The same with a file of the source tree before the text.
void bench_open_file(Bench *bench, const char *path, const char *text);
void bench_close(Bench *bench);

void bench_axis(Bench *bench, const char *name, const int64_t *lengths);
void bench_dim(Bench *bench, const char *name, int64_t value);
void bench_param(Bench *bench, const char *name, double value);
// A dense row-major tensor; `data` NULL for an output.
ReferenceTensor *bench_tensor(Bench *bench, const char *name, const double *data, int rank,
                              const int64_t *extents);
ReferenceTensor *bench_tensor1(Bench *bench, const char *name, const double *data, int64_t a);
ReferenceTensor *bench_tensor2(Bench *bench, const char *name, const double *data, int64_t a, int64_t b);
ReferenceTensor *bench_tensor3(Bench *bench, const char *name, const double *data, int64_t a, int64_t b,
                               int64_t c);

// Evaluates; fails the test, with the messages, when that can't be done.
ReferenceResults bench_run(Bench *bench, ReferenceMode mode);
const double *bench_values(const ReferenceResults *results, const char *name);

// `count` values in -1..1 of at most 8 bits, so exact in every type, over 8 binades, so that float sums of
// products round. In the bench's arena.
double *bench_noise(Bench *bench, int64_t count, uint32_t seed);

#endif
