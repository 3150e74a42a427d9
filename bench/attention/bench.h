// bench.h: what the files of bench_attention share. It uses the library as a user would: through jfa.h.
#ifndef JFA_BENCH_ATTENTION_BENCH_H
#define JFA_BENCH_ATTENTION_BENCH_H

#include "runtime/jfa.h"
#include "timing/timing.h"

enum { BENCH_NAME_BYTES = 64, BENCH_MAX_SHAPES = 256, BENCH_MAX_VARIANTS = 32 };
enum { BENCH_SAMPLES = 64 }; // rows of O and LSE that are checked

// ---- shapes.c: the problems, as a CSV file states them

typedef struct {
    char name[BENCH_NAME_BYTES];
    bool is_causal;
    int head_dim, heads, kv_heads;
    int64_t sequences;
    int32_t *len_q, *len_k;     // [sequences]
    int64_t *first_q, *first_k; // [sequences], first rows in packed tensors
    int64_t total_q, total_k;   // positions of all sequences
    bool shares_q;              // one set of queries for all sequences
    double flop;                // 4 len_q len_k heads head_dim summed over sequences, half of it when causal
} Shape;

typedef struct {
    Shape items[BENCH_MAX_SHAPES];
    int count;
} Shapes;

// False after a message on stderr. bench/README.md has the file's format.
bool shapes_read(const char *path, Shapes *shapes);
void shapes_free(Shapes *shapes);
// First rows, totals and FLOP from the lengths.
void shape_sum_up(Shape *shape);

// ---- values.c: inputs that are a function of a place, so that no host copy of a tensor is needed

typedef enum { TENSOR_Q, TENSOR_K, TENSOR_V, TENSOR_O, TENSOR_LSE, TENSOR_COUNT } TensorId;

// bf16 elements start .. start + count - 1 of an input; close to a normal distribution of variance 1.
// `start` is even.
void values_fill(TensorId id, int64_t start, int64_t count, uint16_t *out);
float value_of_bf16(uint16_t bits);
// A number of 64 bits that looks random, a different one for each x.
uint64_t values_mix(uint64_t x);

// ---- session.c: one shape at a time on a device, with one plan for each variant of its kernel

typedef struct {
    char name[BENCH_NAME_BYTES];
    jfa_module *module;
    jfa_plan *plan;
    int launches; // between two events
    double error; // worst of the sampled rows, as a fraction of what is allowed
} Variant;

typedef struct {
    jfa_device *device;
    bool is_simulated;  // takes PTX, is slow, has no clock to warm up
    const char *folder; // of cubins
    const Shape *shape; // NULL: none is held
    uint64_t addresses[TENSOR_COUNT];
    Variant variants[BENCH_MAX_VARIANTS];
    int variant_count;
    Timing timing;
} Session;

jfa_status session_open(Session *session, const char *device, const char *folder, jfa_error *err);
void session_close(Session *session);
// Tensors on the device, the variant's plan, one checked launch, and warm-up. Another shape's tensors are
// freed first. A result that is wrong is JFA_ERROR_LAUNCH.
jfa_status session_prepare(Session *session, const Shape *shape, const char *variant, jfa_error *err);
// Milliseconds of one launch, the mean of a burst between two events.
jfa_status session_time(Session *session, const Shape *shape, const char *variant, double *milliseconds,
                        jfa_error *err);
// The steps of session_prepare. A shape may be planned and filled in the tensors of a larger one that is
// held: inputs are a function of the place alone.
jfa_status session_hold(Session *session, const Shape *shape, jfa_error *err);
jfa_status session_fill(const Session *session, const Shape *shape, bool outputs, jfa_error *err);
jfa_status session_load(const Session *session, bool is_causal, int head_dim, const char *variant,
                        jfa_module **module, jfa_error *err);
jfa_status session_plan(const Session *session, const Shape *shape, jfa_module *module, jfa_plan **plan,
                        jfa_error *err);
const Variant *session_find(const Session *session, const Shape *shape, const char *variant);
// Frees what is held of the shape.
void session_release(Session *session);

// ---- soak.c

// That many launches of random jagged batches, some of them checked. False after a message on stderr.
bool soak_run(Session *session, const char *variant, int launches, uint64_t seed);

// ---- check.c

// Sampled rows of O and LSE beside float64 computed on the host. *worst: the largest error, as a fraction of
// what is allowed; above 1 is JFA_ERROR_LAUNCH with the place in *err.
jfa_status check_outputs(jfa_device *device, const Shape *shape, const uint64_t addresses[TENSOR_COUNT],
                         double *worst, jfa_error *err);

#endif
