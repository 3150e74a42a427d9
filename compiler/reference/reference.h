// reference.h: evaluates a family's `reference` block on the CPU, with the kernel's own math in its hooks:
// the numbers that a kernel's output is verified against.
//
// Positions on an axis count from the start of their sequence; the row of a tensor is base + position. `seq`
// and `len_<axis>` are names in a reference. An integer that meets a float becomes one; `/` and `%` of
// integers truncate as in C and are 0 where the divisor is 0; integers wrap at 32 bits as on the GPU. Sums
// run in ascending order of their index, from 0. The largest of nothing is -inf, the smallest +inf, the sum
// 0. max and min ignore NaN. A position outside of a tensor's dim, or of a sequence, reads the nearest
// element inside, and 0 where there is none. Expressions of constants alone are folded in float64, as the
// compiler folds them.
#ifndef JFA_COMPILER_REFERENCE_REFERENCE_H
#define JFA_COMPILER_REFERENCE_REFERENCE_H

#include "compiler/target.h"
#include "grammar/ast.h"

enum { REFERENCE_MAX_DIMS = 5 };

typedef enum {
    REFERENCE_EXACT,  // float64 throughout; rounded(x, type) is x; outputs are not rounded
    REFERENCE_ROUNDED // every result in float32; rounded(x, type) rounds to nearest even; outputs as their
                      // type
} ReferenceMode;

// What an option of the family or a constant of the kernel is, where it isn't what the kernel's file says.
typedef struct {
    const char *name;
    bool is_type;
    Elem type;    // when is_type
    double value; // otherwise
} ReferenceConstant;

typedef struct {
    const char *name;
    int64_t value;
} ReferenceDim;

typedef struct {
    const char *name;
    const int64_t *lengths; // [sequences]
} ReferenceAxis;

typedef struct {
    const char *name;
    double value; // rounded to the param's type before use
} ReferenceParam;

// A tensor of the family or the kernel, as it lies in host memory. Element (i0, i1, ...) of sequence s is at
// sum over dims of (base[dim][s] + i_dim) * stride[dim]; base is 0 for dims that are no axes.
typedef struct {
    const char *name;
    const void *data; // inputs: of the declared type, or doubles; outputs: unused here, compared below
    bool is_double;
    int rank;
    int64_t extent[REFERENCE_MAX_DIMS];      // of the whole array: all sequences' rows along an axis
    int64_t stride[REFERENCE_MAX_DIMS];      // in elements; 0 repeats
    const int64_t *base[REFERENCE_MAX_DIMS]; // [sequences]; NULL: all sequences start at 0
} ReferenceTensor;

typedef struct {
    const Ast *family, *kernel;
    int64_t sequences;
    const ReferenceConstant *constants;
    int constant_count;
    const ReferenceDim *dims;
    int dim_count;
    const ReferenceAxis *axes;
    int axis_count;
    const ReferenceParam *params; // those left out have the default of their declaration
    int param_count;
    const ReferenceTensor *tensors; // data NULL: absent (optional), or an output
    int tensor_count;
} ReferenceProblem;

// What was computed of one out or inout tensor, dense in row-major order of the tensor's extents.
typedef struct {
    const char *name;
    Elem elem;
    int64_t count;
    double *values;
    bool *written; // rows that belong to no sequence are not
    double *slack; // rounded: what a kernel may be off by beside roundings, within(x, e); NULL: nothing
} ReferenceOutput;

typedef struct {
    ReferenceOutput *outputs; // in the order of problem->tensors
    int count;
} ReferenceResults;

// Evaluates all sequences, on all cores. An inout tensor reads as it was given. False: a reason is in diag
// and results are empty. Results are freed with reference_results_free.
bool reference_evaluate(Arena *arena, Diag *diag, const ReferenceProblem *problem, ReferenceMode mode,
                        ReferenceResults *results);
// What can be said of the reference without evaluating it: of the problem, lengths and data are not looked
// at.
bool reference_check(Arena *arena, Diag *diag, const ReferenceProblem *problem);
void reference_results_free(ReferenceResults *results);

// How far a kernel's output is from the exact result, beside how far the rounded computation is.
//
// Errors are over the elements that the reference wrote. Equal infinities differ by 0; so do two NaN, and an
// infinity and a value that rounds to it in the output's type. Any other NaN or infinity is an infinite error
// and never passes.
//   maximum   largest |x - exact|
//   relative  ||x - exact|| / ||exact|| in the Frobenius norm, over finite values (when ||exact|| is 0: 0 or
//   infinity)
// The kernel passes when its maximum is at most 2 * max(rounded maximum, h), where h is half an ulp of the
// output's type at the largest |exact|, and its relative error at most 2 * max(rounded relative, h /
// ||exact||, ||h_i|| / (sqrt(3) ||exact||)), where h_i is half an ulp of each element (compare.c says why).
// There is no other tolerance: where the exact result is 0 throughout, h is 0 and the kernel must be exactly
// right. What the chip's functions may be off by is said by the family's reference: within(x, e) adds e to
// the rounded error of an element.
typedef struct {
    int64_t compared; // elements
    double kernel_maximum, kernel_relative;
    double rounded_maximum, rounded_relative;
    double maximum_bound, relative_bound;
    int64_t worst;                    // row-major index of the kernel's worst element, -1: none compared
    double worst_kernel, worst_exact; // its values
    bool passes;
} ReferenceComparison;

// `kernel` describes the kernel's output in host memory; its rank and extents are those that were evaluated.
ReferenceComparison reference_compare(const ReferenceTensor *kernel, const ReferenceOutput *exact,
                                      const ReferenceOutput *rounded);

#endif
