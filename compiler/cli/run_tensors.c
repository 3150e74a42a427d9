// run_tensors.c: tensors in host memory: where their rows lie, what is in them, and what must not have
// changed.
#include "compiler/cli/run.h"
#include "compiler/reference/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGN_BYTES = 16,    // of strides: what tensor maps need (CUDA driver API, cuTensorMapEncodeTiled)
    SENTINEL = 0xA5,     // in outputs, where nothing may be written
    POISON = 0xFF,       // NaN in every float type, -1 in integers
    SLACK_ROWS = 3,      // at most, before each sequence, and behind the last
    INTEGER_VALUES = 16, // integer inputs are 0 .. 15
};

// ---------------------------------------------------------------- made-up values

static uint64_t mix(uint64_t value) { // splitmix64's finaliser: every bit depends on every bit
    value += 0x9E3779B97F4A7C15u;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

enum { NORMALS = 1 << 16 };

// Normal values by the Box-Muller transform, made once; elements pick from them by a hash of their place.
static const float *normals(void) {
    static float table[NORMALS];
    static bool is_made;
    for (int i = 0; !is_made && i < NORMALS; i += 2) {
        double u = ((double)(mix((uint64_t)i) >> 11) + 0.5) * 0x1p-53,
               v = (double)(mix((uint64_t)i + 1) >> 11) * 0x1p-53;
        double radius = sqrt(-2 * log(u)), angle = 6.283185307179586 * v;
        table[i] = (float)(radius * cos(angle));
        table[i + 1] = (float)(radius * sin(angle));
    }
    is_made = true;
    return table;
}

static void write_element(void *array, Elem elem, int64_t offset, double value) {
    float narrow = number_round(elem, (float)value);
    uint32_t bits = number_bits(narrow);
    _Float16 half = (_Float16)narrow;
    uint16_t upper = (uint16_t)(bits >> 16);
    int32_t integer = (int32_t)value;
    uint8_t boolean = value != 0;
    const void *const FORMS[ELEM_COUNT] = {[ELEM_BOOL] = &boolean,
                                           [ELEM_I32] = &integer,
                                           [ELEM_F32] = &narrow,
                                           [ELEM_BF16] = &upper,
                                           [ELEM_F16] = &half};
    int bytes = elem_bytes(elem);
    memcpy((char *)array + offset * bytes, FORMS[elem], (size_t)bytes);
}

static void fill_element(RunTensor *tensor, int64_t offset, uint64_t salt) {
    static const int INTEGER_LIMIT[ELEM_COUNT] = {[ELEM_BOOL] = 2, [ELEM_I32] = INTEGER_VALUES};
    Elem elem = tensor->declared->elem;
    uint64_t hash = mix(salt ^ (uint64_t)offset);
    double value =
        elem_is_float(elem) ? normals()[hash % NORMALS] : (double)(hash % (uint64_t)INTEGER_LIMIT[elem]);
    write_element(tensor->before + RUN_GUARD_BYTES, elem, offset, value);
}

// Fills what belongs to sequence s: a box of the tensor.
static void fill_box(const RunProblem *problem, RunTensor *tensor, int64_t s, uint64_t salt) {
    const Tensor *declared = tensor->declared;
    int64_t start[MAX_TENSOR_DIMS], count[MAX_TENSOR_DIMS], index[MAX_TENSOR_DIMS] = {0};
    for (int d = 0; d < declared->rank; d++) {
        bool is_axis = declared->dims[d].kind == DIM_AXIS;
        start[d] = is_axis ? tensor->bases[d][s] : 0;
        count[d] = is_axis ? problem->lengths[declared->dims[d].index][s] : tensor->extents[d];
        if (count[d] == 0)
            return;
    }
    for (int d = declared->rank - 1; d >= 0;) {
        int64_t offset = 0;
        for (int i = 0; i < declared->rank; i++)
            offset += (start[i] + index[i]) * tensor->strides[i];
        fill_element(tensor, offset, salt);
        for (d = declared->rank - 1; d >= 0 && ++index[d] == count[d]; d--)
            index[d] = 0;
    }
}

// ---------------------------------------------------------------- where rows lie

// Sets where each sequence's rows start along dim d, and how many rows there are. False: more than 32 bits.
static bool lay_rows(RunProblem *problem, RunTensor *tensor, int d, uint64_t salt, bool poison, bool spread) {
    const int32_t *lengths = problem->lengths[tensor->declared->dims[d].index];
    // Neighbours in memory start on 16 bytes.
    bool is_innermost = d == tensor->declared->rank - 1;
    int64_t end = 0, unit = is_innermost ? ALIGN_BYTES / elem_bytes(tensor->declared->elem) : 1;
    tensor->bases[d] = arena_array(problem->arena, int32_t, problem->sequences + 1);
    tensor->wide_bases[d] = arena_array(problem->arena, int64_t, problem->sequences + 1);
    for (int64_t s = 0; s < problem->sequences; s++) {
        int64_t base = tensor->is_shared ? 0 : end;
        if (!tensor->is_shared && spread && !(is_innermost && problem->sequences == 1))
            base += unit * (int64_t)(mix(salt + (uint64_t)s) % (SLACK_ROWS + 1));
        if (base + lengths[s] > INT32_MAX - SLACK_ROWS * unit)
            return false;
        tensor->bases[d][s] = (int32_t)base;
        tensor->wide_bases[d][s] = base;
        if (base + lengths[s] > end)
            end = base + lengths[s];
    }
    // Along an innermost axis tiles are clipped where the tensor ends: nothing may lie behind it.
    tensor->extents[d] = end + (poison && !is_innermost ? SLACK_ROWS * unit : 0);
    return true;
}

static bool lay_out(RunProblem *problem, RunTensor *tensor, uint64_t salt, bool poison, bool spread) {
    const Tensor *declared = tensor->declared;
    tensor->rows = tensor->is_shared ? JFA_ROWS_SHARED : spread ? JFA_ROWS_LISTED : JFA_ROWS_PACKED;
    for (int d = 0; d < declared->rank; d++) {
        const TensorDim *dim = &declared->dims[d];
        tensor->extents[d] = dim->kind == DIM_RUNTIME ? problem->dims[dim->index] : dim->extent;
        if (dim->kind == DIM_AXIS && !lay_rows(problem, tensor, d, salt, poison, spread))
            return false;
    }
    int64_t align = ALIGN_BYTES / elem_bytes(declared->elem), stride = 1;
    for (int d = declared->rank - 1; d >= 0; d--) {
        tensor->strides[d] = stride;
        int64_t extent = tensor->extents[d] ? tensor->extents[d] : 1, next;
        if (__builtin_mul_overflow(stride, extent, &next) || next > INT64_MAX / 64)
            return false;
        next = (next + align - 1) / align * align;
        stride = poison ? next + align : next;
    }
    tensor->bytes = (size_t)stride * (size_t)elem_bytes(declared->elem);
    return true;
}

static bool make_tensor(RunProblem *problem, RunTensor *tensor, uint64_t seed, bool poison, bool spread) {
    // Each tensor has values and gaps of its own, so that one's base used for another shows.
    uint64_t salt = mix(seed) ^ mix((uint64_t)(tensor - problem->tensors) + 1);
    if (!lay_out(problem, tensor, salt, poison, spread)) {
        fprintf(stderr, "jfac: tensor %s would be too large to address\n", tensor->declared->name);
        return false;
    }
    size_t all = tensor->bytes + 2 * RUN_GUARD_BYTES;
    tensor->before = malloc(all);
    tensor->after = malloc(all);
    if (!tensor->before || !tensor->after) {
        fprintf(stderr, "jfac: out of memory: tensor %s has %zu bytes\n", tensor->declared->name,
                tensor->bytes);
        return false;
    }
    bool is_output = tensor->declared->direction == TENSOR_OUT;
    memset(tensor->before, is_output ? SENTINEL : poison ? POISON : 0, all);
    for (int64_t s = 0; !is_output && s < problem->sequences; s++)
        fill_box(problem, tensor, s, salt);
    return true;
}

bool run_make_tensors(RunProblem *problem, uint64_t seed, bool poison, bool spread) {
    for (int i = 0; i < problem->plan->tensor_count; i++)
        if (problem->tensors[i].is_given && !make_tensor(problem, &problem->tensors[i], seed, poison, spread))
            return false;
    return true;
}

void run_free_tensors(RunProblem *problem) {
    for (int i = 0; i < problem->plan->tensor_count; i++) {
        RunTensor *tensor = &problem->tensors[i];
        free(tensor->before);
        free(tensor->after);
        free(tensor->other);
        tensor->before = tensor->after = tensor->other = NULL;
    }
}

// ---------------------------------------------------------------- what must not have changed

// Makes elements equal that were to be written, so that whatever still differs was not.
static void accept_written(const RunTensor *tensor, const bool *written) {
    int rank = tensor->declared->rank;
    size_t bytes = (size_t)elem_bytes(tensor->declared->elem);
    int64_t index[MAX_TENSOR_DIMS] = {0};
    for (int d = 0; d < rank; d++)
        if (tensor->extents[d] == 0)
            return;
    int64_t element = 0;
    for (int d = rank - 1; d >= 0; element++) {
        if (written[element]) {
            int64_t offset = 0;
            for (int i = 0; i < rank; i++)
                offset += index[i] * tensor->strides[i];
            size_t at = RUN_GUARD_BYTES + (size_t)offset * bytes;
            memcpy(tensor->before + at, tensor->after + at, bytes);
        }
        for (d = rank - 1; d >= 0 && ++index[d] == tensor->extents[d]; d--)
            index[d] = 0;
    }
}

int64_t run_count_strays(const RunTensor *tensor, const bool *written) {
    if (written)
        accept_written(tensor, written);
    int64_t strays = 0;
    for (size_t i = 0; i < tensor->bytes + 2 * RUN_GUARD_BYTES; i++)
        strays += tensor->before[i] != tensor->after[i];
    return strays;
}
