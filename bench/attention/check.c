// check.c: sampled rows of O and LSE beside float64.
//
// What is allowed follows from the kernel's two roundings to bf16: of the probabilities and of the result.
// Each is off by at most 2^-9 of its value and independent of the others, so a row's mean square error is at
// most 2^-18 (sum over keys of (p v)^2 + O^2), and three times its root is never reached by a correct kernel.
// A block of keys that is left out, or doubled, is far above it.
#include "bench/attention/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double ROUNDING = 0x1p-9;   // of bf16, relative
static const double DEVIATIONS = 3;      // of a row's error, in units of the expected one
static const double F32_ERROR = 2e-6;    // of O: f32 sums and the approximate exp2
static const double LSE_ABSOLUTE = 2e-4; // exp2.approx, lg2.approx and f32 sums
static const double LSE_RELATIVE = 1e-5;

typedef struct {
    int64_t sequence, row, head;
} Sample;

typedef struct {
    const Shape *shape;
    uint16_t *bits;             // [head_dim]
    double *q, *o, *square;     // [head_dim]
    double *scores;             // [longest]
    double lse, expected_error; // of the row computed last
} Workspace;

static bool open_workspace(Workspace *space, const Shape *shape) {
    int64_t longest = 1;
    for (int64_t s = 0; s < shape->sequences; s++)
        longest = shape->len_k[s] > longest ? shape->len_k[s] : longest;
    size_t dim = (size_t)shape->head_dim;
    *space = (Workspace){.shape = shape,
                         .bits = malloc(dim * sizeof *space->bits),
                         .q = malloc(dim * sizeof *space->q),
                         .o = malloc(dim * sizeof *space->o),
                         .square = malloc(dim * sizeof *space->square),
                         .scores = malloc((size_t)longest * sizeof *space->scores)};
    return space->bits && space->q && space->o && space->square && space->scores;
}

static void close_workspace(Workspace *space) {
    free(space->bits);
    free(space->q);
    free(space->o);
    free(space->square);
    free(space->scores);
}

static const uint16_t *input_row(Workspace *space, TensorId id, int64_t row, int64_t head, int heads) {
    int64_t dim = space->shape->head_dim;
    values_fill(id, (row * heads + head) * dim, dim, space->bits);
    return space->bits;
}

static double compute_scores(Workspace *space, const Sample *sample, int64_t keys) {
    const Shape *shape = space->shape;
    int64_t q_row = (shape->shares_q ? 0 : shape->first_q[sample->sequence]) + sample->row;
    int64_t kv_head = sample->head / (shape->heads / shape->kv_heads);
    const uint16_t *row = input_row(space, TENSOR_Q, q_row, sample->head, shape->heads);
    for (int d = 0; d < shape->head_dim; d++)
        space->q[d] = (double)value_of_bf16(row[d]) / sqrt(shape->head_dim);
    double largest = -INFINITY;
    for (int64_t j = 0; j < keys; j++) {
        row = input_row(space, TENSOR_K, shape->first_k[sample->sequence] + j, kv_head, shape->kv_heads);
        double sum = 0;
        for (int d = 0; d < shape->head_dim; d++)
            sum += space->q[d] * (double)value_of_bf16(row[d]);
        space->scores[j] = sum;
        largest = fmax(largest, sum);
    }
    return largest;
}

// o, lse and expected_error of the sampled row.
static void compute_row(Workspace *space, const Sample *sample) {
    const Shape *shape = space->shape;
    int64_t keys = shape->len_k[sample->sequence];
    if (shape->is_causal && sample->row + 1 < keys)
        keys = sample->row + 1;
    double largest = compute_scores(space, sample, keys), total = 0;
    for (int d = 0; d < shape->head_dim; d++)
        space->o[d] = space->square[d] = 0;
    for (int64_t j = 0; j < keys; j++)
        total += exp(space->scores[j] - largest);
    for (int64_t j = 0; j < keys; j++) {
        int64_t kv_head = sample->head / (shape->heads / shape->kv_heads);
        const uint16_t *row =
            input_row(space, TENSOR_V, shape->first_k[sample->sequence] + j, kv_head, shape->kv_heads);
        double probability = exp(space->scores[j] - largest) / total;
        for (int d = 0; d < shape->head_dim; d++) {
            double part = probability * (double)value_of_bf16(row[d]);
            space->o[d] += part;
            space->square[d] += part * part;
        }
    }
    space->lse = keys ? largest + log(total) : -INFINITY;
    double variance = 0;
    for (int d = 0; d < shape->head_dim; d++)
        variance += space->square[d] + space->o[d] * space->o[d];
    space->expected_error = ROUNDING * sqrt(variance / shape->head_dim);
}

// ---------------------------------------------------------------- beside the device's

static double o_error(const Workspace *space, const uint16_t *came) {
    double sum = 0;
    for (int d = 0; d < space->shape->head_dim; d++) {
        double difference = (double)value_of_bf16(came[d]) - space->o[d];
        sum += difference * difference;
    }
    double error = sqrt(sum / space->shape->head_dim);
    return error / (DEVIATIONS * space->expected_error + F32_ERROR);
}

static double lse_error(const Workspace *space, float came) {
    if (isinf(space->lse))
        return (double)came == space->lse ? 0 : INFINITY;
    return fabs((double)came - space->lse) / (LSE_ABSOLUTE + LSE_RELATIVE * fabs(space->lse));
}

static jfa_status check_row(jfa_device *device, Workspace *space, const uint64_t *addresses,
                            const Sample *sample, double *worst, jfa_error *err) {
    const Shape *shape = space->shape;
    int64_t row = shape->first_q[sample->sequence] + sample->row;
    uint64_t o_at = (uint64_t)((row * shape->heads + sample->head) * shape->head_dim) * sizeof(uint16_t);
    uint64_t lse_at = (uint64_t)(sample->head * shape->total_q + row) * sizeof(float);
    float lse = 0;
    compute_row(space, sample);
    jfa_status status = jfa_copy_from_device(device, &lse, addresses[TENSOR_LSE] + lse_at, sizeof lse, err);
    if (!status)
        status = jfa_copy_from_device(device, space->bits, addresses[TENSOR_O] + o_at,
                                      (size_t)shape->head_dim * sizeof(uint16_t), err);
    if (status)
        return status;
    double of_o = o_error(space, space->bits), of_lse = lse_error(space, lse);
    // A NaN is neither above nor below: it is asked for by what it isn't.
    if (of_o <= 1 && of_lse <= 1) {
        *worst = fmax(*worst, fmax(of_o, of_lse));
        return JFA_OK;
    }
    *err = (jfa_error){.status = JFA_ERROR_LAUNCH};
    snprintf(err->message, sizeof err->message,
             "wrong result: sequence %lld (%d queries, %d keys), query %lld, head %lld: O is off by %.3g and "
             "LSE (%.6g for %.6g) by %.3g of what is allowed",
             (long long)sample->sequence, shape->len_q[sample->sequence], shape->len_k[sample->sequence],
             (long long)sample->row, (long long)sample->head, of_o, (double)lse, space->lse, of_lse);
    return JFA_ERROR_LAUNCH;
}

// The first and the last query of the batch, and queries drawn from all: long sequences come more often.
static Sample draw_sample(const Shape *shape, int index) {
    int64_t row = (int64_t)(values_mix((uint64_t)index + 1000) % (uint64_t)shape->total_q);
    int64_t sequence = 0;
    if (index < 2)
        row = index ? shape->total_q - 1 : 0;
    while (sequence + 1 < shape->sequences && shape->first_q[sequence + 1] <= row)
        sequence++;
    return (Sample){sequence, row - shape->first_q[sequence],
                    (int64_t)(values_mix((uint64_t)index + 5000) % (uint64_t)shape->heads)};
}

jfa_status check_outputs(jfa_device *device, const Shape *shape, const uint64_t addresses[TENSOR_COUNT],
                         double *worst, jfa_error *err) {
    *worst = 0;
    Workspace space;
    jfa_status status = JFA_OK;
    if (!open_workspace(&space, shape)) {
        *err = (jfa_error){JFA_ERROR_OUT_OF_MEMORY, "no host memory to check results"};
        status = JFA_ERROR_OUT_OF_MEMORY;
    }
    for (int i = 0; !status && shape->total_q && i < BENCH_SAMPLES; i++) {
        Sample sample = draw_sample(shape, i);
        status = check_row(device, &space, addresses, &sample, worst, err);
    }
    close_workspace(&space);
    return status;
}
