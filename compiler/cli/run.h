// run.h: what the files of `jfac run` share: a problem made for a plan's axes, dims, tensors and params,
// whatever they are.
#ifndef JFA_COMPILER_CLI_RUN_H
#define JFA_COMPILER_CLI_RUN_H

#include "compiler/cli/cli.h"
#include "compiler/reference/reference.h"
#include "runtime/jfa.h"

enum { RUN_GUARD_BYTES = 256 }; // before and behind every tensor; keeps the alignment of an allocation

// A tensor of the plan as it lies in memory. `before` and `after` hold guard, array, guard.
typedef struct {
    const Tensor *declared;
    bool is_given;                                              // optional tensors may be left out
    bool is_shared;                                             // all sequences use the same rows
    int64_t extents[MAX_TENSOR_DIMS], strides[MAX_TENSOR_DIMS]; // elements
    int32_t *bases[MAX_TENSOR_DIMS];      // first row of each sequence, for dims that are axes, else NULL
    int64_t *wide_bases[MAX_TENSOR_DIMS]; // the same for the reference
    jfa_rows_kind rows;
    size_t bytes;                  // of the array
    unsigned char *before, *after; // as sent to the device, as it came back (outputs)
    unsigned char *other;          // as it came back from a second device, or NULL
    int64_t other_written;         // elements that it changed
    double bound;                  // run_compare: of the difference from the reference (outputs)
    uint64_t address;              // on the device, of the first guard; 0: none
} RunTensor;

typedef struct {
    const Plan *plan;
    Arena *arena;
    int64_t sequences;
    int32_t **lengths;      // [axes][sequences]
    int64_t **wide_lengths; // the same for the reference
    int64_t *dims;          // extents of the run-time dims
    double *params;
    bool *is_param_given;
    RunTensor *tensors;
} RunProblem;

// ---- run_problem.c: lengths, extents and params from the command line. A status; messages are printed.
int run_read_problem(RunProblem *problem, const Plan *plan, const CliOptions *options);
int64_t run_total(const RunProblem *problem, int axis); // positions of all sequences

// ---- run_tensors.c

// Lays out and fills all tensors. With poison, elements that belong to no sequence are NaN in inputs (-1 in
// integers); `spread` puts rows of no one between sequences too. False: out of memory, or too large to
// address; a message is printed.
bool run_make_tensors(RunProblem *problem, uint64_t seed, bool poison, bool spread);
void run_free_tensors(RunProblem *problem);
// Bytes of guards, padding and foreign rows that changed, by comparing `after` with `before`. `written` is
// the reference's, NULL for a tensor that the kernel must not write at all.
int64_t run_count_strays(const RunTensor *tensor, const bool *written);

// ---- run_device.c

typedef struct {
    jfa_device *device;
    jfa_module *module;
    jfa_kernel *kernel;
    bool is_simulated; // takes PTX, tells its progress
} RunDevice;

int run_begin(void); // once, before a device is opened
// What a failure of the runtime means for jfac's exit status; its message is printed.
int run_status(jfa_status status, const jfa_error *error);
double run_now_ms(void);

int run_open(RunDevice *device, const char *name); // a status; messages are printed
void run_close(RunDevice *device);

jfa_status run_load(RunDevice *device, const void *image, size_t bytes, jfa_error *error);
void run_unload(RunDevice *device);
// Tensors to the device, with their guards; they stay until they are released, also after a failure.
jfa_status run_send(RunDevice *device, RunProblem *problem, jfa_error *error);
void run_release(RunDevice *device, RunProblem *problem);
jfa_status run_plan(RunDevice *device, const RunProblem *problem, jfa_plan **plan, jfa_error *error);
// Copies tensors to the device, plans, launches once, copies outputs and inputs back. *milliseconds: the
// launch.
jfa_status run_on_device(RunDevice *device, RunProblem *problem, int64_t seed, double *milliseconds,
                         jfa_error *error);

// ---- run_against.c

// Runs on a second device, before run_on_device, and keeps its outputs.
int run_on_other(RunDevice *other, RunProblem *problem, int64_t seed);
// Says how far apart the outputs are; after run_compare.
int run_compare_devices(const RunProblem *problem, const CliOptions *options);

// ---- run_verify.c

typedef struct {
    ReferenceResults exact, rounded;
} RunReference;

// Evaluates the reference on what the inputs hold. A status; messages are printed. Freed in any case.
int run_reference(const RunProblem *problem, Session *session, const CliOptions *options,
                  RunReference *reference);
void run_free_reference(RunReference *reference);

typedef struct {
    const char *device;
    int64_t seed;
    double milliseconds;
} RunRow;

// Compares all outputs with the reference, looks for stray writes, and tells of them. Prints a row for each
// output unless `row` is NULL. Is all right?
bool run_compare(RunProblem *problem, const RunReference *reference, const RunRow *row);

#endif
