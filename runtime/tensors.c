// tensors.c: does each sequence lie within each tensor, can each element be addressed, and do outputs
// coincide with nothing? Requires axes, extents and dims to be bound and good.
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(err, status, ...) jfa_error_set(err, status, __VA_ARGS__)

bool jfa_tensor_has_elements(const jfa_tensor *tensor) {
    for (int d = 0; d < tensor->rank; d++)
        if (!tensor->extents[d])
            return false;
    return true;
}

bool jfa_tensor_set_dense(jfa_tensor *tensor) {
    int64_t stride = 1;
    if (!tensor)
        return false;
    memset(tensor->strides, 0, sizeof tensor->strides);
    if (tensor->rank < 1 || tensor->rank > JFA_MAX_RANK)
        return false;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        int64_t extent = tensor->extents[d] ? tensor->extents[d] : 1;
        tensor->strides[d] = stride;
        if (extent < 0 || __builtin_mul_overflow(stride, extent, &stride)) {
            memset(tensor->strides, 0, sizeof tensor->strides);
            return false;
        }
    }
    return true;
}

// ---------------------------------------------------------------- rows

static jfa_status check_rows_kind(const jfa_bound *b, int tensor, int dim, jfa_error *err) {
    const jfa_rows *rows = &b->tensors[tensor]->rows[dim];
    const char *name = b->manifest->info.tensors[tensor].name;
    if ((unsigned)rows->kind > JFA_ROWS_LISTED)
        return FAIL(err, JFA_ERROR_PROBLEM, "tensor '%s': dim %d has rows of unknown kind %d", name, dim,
                    (int)rows->kind);
    if (rows->kind == JFA_ROWS_PADDED && (rows->pitch < 0 || rows->pitch > INT32_MAX))
        return FAIL(err, JFA_ERROR_PROBLEM,
                    "tensor '%s': the pitch of dim %d is %lld rows; it must be 0 to %d", name, dim,
                    (long long)rows->pitch, INT32_MAX);
    if (rows->kind == JFA_ROWS_LISTED && !rows->list && b->sequences)
        return FAIL(err, JFA_ERROR_PROBLEM, "tensor '%s': the list of dim %d is NULL", name, dim);
    return JFA_OK;
}

static void set_least(int64_t *limit, int64_t value) {
    *limit = *limit < value ? *limit : value;
}

// What the tensor's rows allow on an axis whose lengths aren't known here; the device checks them.
static jfa_status limit_rows(jfa_bound *b, int tensor, int dim, jfa_error *err) {
    const jfa_tensor_info *info = &b->manifest->info.tensors[tensor];
    const jfa_rows *rows = &b->tensors[tensor]->rows[dim];
    int axis = info->dims[dim].index;
    int64_t extent = b->tensors[tensor]->extents[dim], before = 0;
    if (rows->kind == JFA_ROWS_LISTED)
        return FAIL(err, JFA_ERROR_UNSUPPORTED,
                    "tensor '%s': the rows of dim %d are listed on the host, but the lengths of axis '%s' "
                    "are on the device",
                    info->name, dim, b->manifest->info.axes[axis].name);
    if (rows->kind == JFA_ROWS_PADDED && b->sequences > 1) {
        before = (b->sequences - 1) * rows->pitch; // below 2^62
        if (before > extent)
            return FAIL(
                err, JFA_ERROR_PROBLEM,
                "tensor '%s': the last of %lld sequences starts at row %lld, but dim %d has %lld rows",
                info->name, (long long)b->sequences, (long long)before, dim, (long long)extent);
        if (info->direction != JFA_IN) // sequences must not write each other's rows
            set_least(&b->most_length[axis], rows->pitch);
    }
    set_least(&b->most_length[axis], extent - before);
    if (rows->kind == JFA_ROWS_PACKED)
        set_least(&b->most_total[axis], extent);
    return JFA_OK;
}

// Packed sequences lie one behind the other: they are within the tensor if the last one is. Most tensors are
// packed, and plans are made often.
static bool packed_rows_fit(const jfa_bound *b, int tensor, int dim) {
    int axis = b->manifest->info.tensors[tensor].dims[dim].index;
    return b->tensors[tensor]->rows[dim].kind == JFA_ROWS_PACKED &&
           jfa_bound_total(b, axis) <= b->tensors[tensor]->extents[dim];
}

static jfa_status check_rows(jfa_bound *b, int tensor, int dim, jfa_error *err) {
    const jfa_tensor_info *info = &b->manifest->info.tensors[tensor];
    int axis = info->dims[dim].index;
    int64_t extent = b->tensors[tensor]->extents[dim];
    jfa_status status = check_rows_kind(b, tensor, dim, err);
    if (status)
        return status;
    if (jfa_bound_is_on_device(b, axis))
        return limit_rows(b, tensor, dim, err);
    if (packed_rows_fit(b, tensor, dim))
        return JFA_OK;
    for (int64_t s = 0; s < b->sequences; s++) {
        int64_t base = jfa_bound_base(b, tensor, dim, s), length = jfa_bound_length(b, axis, s);
        if (base < 0 || base + length > extent)
            return FAIL(err, JFA_ERROR_PROBLEM,
                        "tensor '%s': sequence %lld has %lld positions on axis '%s', from row %lld on, but "
                        "dim %d has %lld "
                        "rows",
                        info->name, (long long)s, (long long)length, b->manifest->info.axes[axis].name,
                        (long long)base, dim, (long long)extent);
    }
    return JFA_OK;
}

typedef struct {
    int64_t base, end;
} Rows;

static int compare_rows(const void *a, const void *b) {
    const Rows *x = a, *y = b;
    return x->base != y->base ? (x->base < y->base ? -1 : 1) : (x->end > y->end) - (x->end < y->end);
}

// Sets *apart: no two sequences use the same row of the dim.
static jfa_status rows_are_apart(const jfa_bound *b, int tensor, int dim, bool *apart, jfa_error *err) {
    int axis = b->manifest->info.tensors[tensor].dims[dim].index;
    *apart = true;
    if (b->tensors[tensor]->rows[dim].kind == JFA_ROWS_PACKED)
        return JFA_OK;
    if (jfa_bound_is_on_device(b, axis)) {
        *apart = b->sequences < 2 || b->tensors[tensor]->rows[dim].kind == JFA_ROWS_PADDED; // limit_rows
        return JFA_OK;
    }
    int64_t count = 0;
    for (int64_t s = 0; s < b->sequences; s++)
        count += jfa_bound_length(b, axis, s) > 0;
    if (count < 2)
        return JFA_OK;
    Rows *rows = calloc((size_t)count, sizeof *rows);
    if (!rows)
        return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for %lld sequences", (long long)count);
    int64_t place = 0;
    for (int64_t s = 0; s < b->sequences; s++) {
        int64_t length = jfa_bound_length(b, axis, s), base = jfa_bound_base(b, tensor, dim, s);
        if (length)
            rows[place++] = (Rows){base, base + length};
    }
    qsort(rows, (size_t)count, sizeof *rows, compare_rows);
    for (int64_t i = 1; i < count && *apart; i++)
        *apart = rows[i].base >= rows[i - 1].end;
    free(rows);
    return JFA_OK;
}

// Sequences that write the same rows of an output along all its axes overwrite each other.
static jfa_status check_output_rows(const jfa_bound *b, int tensor, jfa_error *err) {
    const jfa_tensor_info *info = &b->manifest->info.tensors[tensor];
    bool apart = true;
    for (int d = 0; d < info->rank; d++) {
        if (info->dims[d].kind != JFA_DIM_AXIS)
            continue;
        jfa_status status = rows_are_apart(b, tensor, d, &apart, err);
        if (status || apart)
            return status;
    }
    return apart ? JFA_OK
                 : FAIL(err, JFA_ERROR_PROBLEM,
                        "tensor '%s' is written, but several sequences have the same rows of it", info->name);
}

// ---------------------------------------------------------------- elements

// Elements from the first to behind the last; -1: beyond 63 bits.
static int64_t tensor_span(const jfa_tensor *tensor, int without) {
    int64_t span = 1;
    for (int d = 0; d < tensor->rank; d++) {
        int64_t part;
        if (d == without)
            continue;
        if (__builtin_mul_overflow(tensor->extents[d] - 1, tensor->strides[d], &part) ||
            __builtin_add_overflow(span, part, &span))
            return -1;
    }
    return span;
}

uint64_t jfa_tensor_bytes(const jfa_tensor *tensor) {
    return (uint64_t)(tensor_span(tensor, -1) * jfa_dtype_bytes(tensor->dtype));
}

static jfa_status check_memory(const jfa_bound *b, int tensor, jfa_error *err) {
    const jfa_tensor_info *info = &b->manifest->info.tensors[tensor];
    const jfa_tensor *given = b->tensors[tensor];
    int64_t bytes = jfa_dtype_bytes(given->dtype), span_bytes;
    for (int d = 0; d < given->rank; d++)
        if (given->strides[d] < 0)
            return FAIL(err, JFA_ERROR_PROBLEM, "tensor '%s': the stride of dim %d is %lld", info->name, d,
                        (long long)given->strides[d]);
    if (!jfa_tensor_has_elements(given))
        return JFA_OK;
    if (!given->address)
        return FAIL(err, JFA_ERROR_PROBLEM, "tensor '%s' has elements, but its address is 0", info->name);
    if (given->address % (uint64_t)bytes)
        return FAIL(err, JFA_ERROR_PROBLEM,
                    "tensor '%s': the address 0x%llx is no multiple of its elements' %lld bytes", info->name,
                    (unsigned long long)given->address, (long long)bytes);
    int64_t span = tensor_span(given, -1);
    if (span < 0 || __builtin_mul_overflow(span, bytes, &span_bytes) ||
        given->address > UINT64_MAX - (uint64_t)span_bytes)
        return FAIL(err, JFA_ERROR_LIMIT, "tensor '%s': extents and strides pass the address space",
                    info->name);
    return JFA_OK;
}

// Dims in ascending order of strides: each must step over all that the smaller ones span. Sufficient, and
// what every slice of a dense tensor fulfils.
static jfa_status check_output_strides(const jfa_bound *b, int tensor, jfa_error *err) {
    const jfa_tensor *given = b->tensors[tensor];
    int order[JFA_MAX_RANK], count = 0;
    for (int d = 0; d < given->rank; d++) {
        if (given->extents[d] < 2)
            continue;
        int place = count++;
        for (; place > 0 && given->strides[order[place - 1]] > given->strides[d]; place--)
            order[place] = order[place - 1];
        order[place] = d;
    }
    int64_t span = 1;
    for (int i = 0; i < count; i++) {
        int64_t stride = given->strides[order[i]];
        if (stride < span)
            return FAIL(err, JFA_ERROR_PROBLEM,
                        "tensor '%s' is written, but the stride %lld of dim %d makes elements coincide",
                        b->manifest->info.tensors[tensor].name, (long long)stride, order[i]);
        span += (given->extents[order[i]] - 1) * stride;
    }
    return JFA_OK;
}

// ---------------------------------------------------------------- pairs

// Slices of one array: both step by the same stride, and within a step they lie apart.
static bool interleaved(const jfa_tensor *a, const jfa_tensor *b) {
    int64_t a_bytes = jfa_dtype_bytes(a->dtype), b_bytes = jfa_dtype_bytes(b->dtype);
    for (int i = 0; i < a->rank; i++)
        for (int k = 0; k < b->rank; k++) {
            uint64_t step = (uint64_t)a->strides[i] * (uint64_t)a_bytes;
            if (!step || step != (uint64_t)b->strides[k] * (uint64_t)b_bytes)
                continue;
            uint64_t a_span = (uint64_t)(tensor_span(a, i) * a_bytes),
                     b_span = (uint64_t)(tensor_span(b, k) * b_bytes);
            uint64_t place = b->address >= a->address ? (b->address - a->address) % step
                                                      : (step - (a->address - b->address) % step) % step;
            if (place >= a_span && b_span <= step - place)
                return true;
        }
    return false;
}

static bool apart(const jfa_tensor *a, const jfa_tensor *b) {
    uint64_t a_bytes = jfa_tensor_bytes(a), b_bytes = jfa_tensor_bytes(b);
    return a->address + a_bytes <= b->address || b->address + b_bytes <= a->address || interleaved(a, b);
}

static jfa_status check_pairs(const jfa_bound *b, jfa_error *err) {
    const jfa_kernel_info *info = &b->manifest->info;
    for (int i = 0; i < info->tensor_count; i++) {
        const jfa_tensor *output = b->tensors[i];
        if (!output || info->tensors[i].direction == JFA_IN || !jfa_tensor_has_elements(output))
            continue;
        for (int k = 0; k < info->tensor_count; k++) {
            const jfa_tensor *other = b->tensors[k];
            if (k == i || !other || !jfa_tensor_has_elements(other) || apart(output, other))
                continue;
            return FAIL(err, JFA_ERROR_PROBLEM, "tensor '%s' is written, and overlaps tensor '%s'",
                        info->tensors[i].name, info->tensors[k].name);
        }
    }
    return JFA_OK;
}

static jfa_status check_tensor(jfa_bound *b, int tensor, jfa_error *err) {
    const jfa_tensor_info *info = &b->manifest->info.tensors[tensor];
    for (int d = 0; d < info->rank; d++) {
        jfa_status status = info->dims[d].kind == JFA_DIM_AXIS ? check_rows(b, tensor, d, err) : JFA_OK;
        if (status)
            return status;
    }
    jfa_status status = check_memory(b, tensor, err);
    if (!status && info->direction != JFA_IN && jfa_tensor_has_elements(b->tensors[tensor])) {
        status = check_output_strides(b, tensor, err);
        if (!status)
            status = check_output_rows(b, tensor, err);
    }
    return status;
}

jfa_status jfa_bound_check_tensors(jfa_bound *b, jfa_error *err) {
    for (int i = 0; i < b->manifest->info.tensor_count; i++) {
        jfa_status status = b->tensors[i] ? check_tensor(b, i, err) : JFA_OK;
        if (status)
            return status;
    }
    return check_pairs(b, err);
}
