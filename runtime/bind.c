// bind.c: a problem's names are looked up in the manifest, and what it says is checked: lengths, extents,
// params. Takes what the caller wrote, gives a jfa_bound whose numbers all later steps can trust to fit
// 32-bit positions.
#include "runtime/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(err, status, ...) jfa_error_set(err, status, __VA_ARGS__)

// Kernels compute positions up to one block or tile behind a sequence's end in 32 bits.
enum { LEAST_MARGIN = 65536 };

static int64_t most_positions(const jfa_manifest *m) {
    int64_t margin = LEAST_MARGIN;
    for (int i = 0; i < m->block_count; i++)
        if (m->blocks[i].size > margin)
            margin = m->blocks[i].size;
    return INT32_MAX - margin;
}

// ---------------------------------------------------------------- axes

static jfa_status check_length(const jfa_bound *b, int axis, int64_t sequence, int64_t length,
                               jfa_error *err) {
    const char *name = b->manifest->info.axes[axis].name;
    if (length < 0)
        return FAIL(err, JFA_ERROR_PROBLEM, "axis '%s': the length of sequence %lld is %lld", name,
                    (long long)sequence, (long long)length);
    if (length > b->most_positions)
        return FAIL(err, JFA_ERROR_LIMIT,
                    "axis '%s': the length of sequence %lld is %lld; it may be %lld at most", name,
                    (long long)sequence, (long long)length, (long long)b->most_positions);
    return JFA_OK;
}

static jfa_status check_offsets(jfa_bound *b, int axis, jfa_error *err) {
    const char *name = b->manifest->info.axes[axis].name;
    const int32_t *offsets = b->axes[axis]->offsets;
    if (offsets[0] != 0)
        return FAIL(err, JFA_ERROR_PROBLEM, "axis '%s': the offsets start with %d; they must start with 0",
                    name, offsets[0]);
    for (int64_t s = 0; s < b->sequences; s++)
        if (offsets[s + 1] < offsets[s])
            return FAIL(err, JFA_ERROR_PROBLEM, "axis '%s': offset %lld is %d, less than the %d before it",
                        name, (long long)s + 1, offsets[s + 1], offsets[s]);
    return JFA_OK;
}

// Running sums, for packed tensors over an axis whose lengths are listed.
static jfa_status sum_lengths(jfa_bound *b, int axis, jfa_error *err) {
    const int32_t *lengths = b->axes[axis]->lengths;
    int64_t *starts = calloc((size_t)b->sequences + 1, sizeof *starts);
    b->starts[axis] = starts;
    if (!starts)
        return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for %lld sequences",
                    (long long)b->sequences);
    // At most 2^31 lengths below 2^31: the sum stays below 2^62; negative ones are refused afterwards.
    for (int64_t s = 0; s < b->sequences; s++)
        starts[s + 1] = starts[s] + lengths[s];
    return JFA_OK;
}

static jfa_status check_sources(const jfa_bound *b, int axis, jfa_error *err) {
    const jfa_axis *given = b->axes[axis];
    const char *name = b->manifest->info.axes[axis].name;
    if (!given)
        return FAIL(err, JFA_ERROR_NOT_FOUND, "axis '%s' has no lengths in the problem", name);
    if (given->offsets && given->lengths)
        return FAIL(err, JFA_ERROR_PROBLEM, "axis '%s' has both offsets and lengths", name);
    if (given->device_offsets && (given->offsets || given->lengths || given->length))
        return FAIL(err, JFA_ERROR_PROBLEM,
                    "axis '%s' has offsets on the device, and offsets or lengths beside them", name);
    if (given->device_offsets % sizeof(int32_t))
        return FAIL(err, JFA_ERROR_PROBLEM,
                    "axis '%s': the address 0x%llx of its offsets is no multiple of %zu bytes", name,
                    (unsigned long long)given->device_offsets, sizeof(int32_t));
    return JFA_OK;
}

static jfa_status bind_axis(jfa_bound *b, int axis, jfa_error *err) {
    const jfa_axis *given = b->axes[axis];
    jfa_status status = check_sources(b, axis, err);
    if (status)
        return status;
    if (given->device_offsets) {
        b->on_device = true;
        b->most_total[axis] = b->most_length[axis] = b->most_positions;
        return JFA_OK;
    }
    if (given->offsets)
        status = check_offsets(b, axis, err);
    else if (given->lengths)
        status = sum_lengths(b, axis, err);
    else
        status = check_length(b, axis, 0, given->length, err);
    bool listed = given->offsets || given->lengths;
    for (int64_t s = 0; listed && s < b->sequences && !status; s++)
        status = check_length(b, axis, s, jfa_bound_length(b, axis, s), err);
    return status;
}

// The device plans by what it has: offsets that are there, and numbers.
static jfa_status check_places(const jfa_bound *b, jfa_error *err) {
    const jfa_kernel_info *info = &b->manifest->info;
    for (int i = 0; i < info->axis_count && b->on_device; i++)
        if (b->axes[i]->offsets || b->axes[i]->lengths)
            return FAIL(err, JFA_ERROR_UNSUPPORTED,
                        "the lengths of axis '%s' are listed on the host, but those of another axis are on "
                        "the device: have them on one side",
                        info->axes[i].name);
    return JFA_OK;
}

static jfa_status find_axes(jfa_bound *b, const jfa_problem *problem, jfa_error *err) {
    const jfa_kernel_info *info = &b->manifest->info;
    for (int i = 0; i < problem->axis_count; i++) {
        const jfa_axis *given = &problem->axes[i];
        int axis = 0;
        while (axis < info->axis_count && (!given->name || strcmp(info->axes[axis].name, given->name) != 0))
            axis++;
        if (axis == info->axis_count)
            return FAIL(err, JFA_ERROR_NOT_FOUND, "kernel '%s' has no axis '%s'", info->name,
                        given->name ? given->name : "(NULL)");
        if (b->axes[axis])
            return FAIL(err, JFA_ERROR_PROBLEM, "axis '%s' is given twice", given->name);
        b->axes[axis] = given;
    }
    return JFA_OK;
}

// ---------------------------------------------------------------- params

static jfa_status check_param(const jfa_param_info *param, double value, jfa_error *err) {
    if (param->dtype == JFA_I32 && !(value >= INT32_MIN && value <= INT32_MAX && value == floor(value)))
        return FAIL(err, JFA_ERROR_PROBLEM, "param '%s' is %g; it must be an integer of 32 bits", param->name,
                    value);
    if (param->dtype == JFA_F32 && isfinite(value) && !isfinite((float)value))
        return FAIL(err, JFA_ERROR_PROBLEM, "param '%s' is %g, beyond the range of f32", param->name, value);
    if (param->is_positive && !jfa_param_is_positive(param, value))
        return FAIL(err, JFA_ERROR_PROBLEM, "param '%s' is %g; the kernel declares it > 0%s", param->name,
                    value, param->dtype == JFA_F32 ? " (and normal: at least 1.2e-38)" : "");
    return JFA_OK;
}

static jfa_status bind_params(jfa_bound *b, const jfa_problem *problem, jfa_error *err) {
    const jfa_kernel_info *info = &b->manifest->info;
    bool known[JFA_MAX_PARAMS] = {false};
    for (int i = 0; i < problem->param_count; i++) {
        const jfa_param *given = &problem->params[i];
        int param = 0;
        while (param < info->param_count &&
               (!given->name || strcmp(info->params[param].name, given->name) != 0))
            param++;
        if (param == info->param_count)
            return FAIL(err, JFA_ERROR_NOT_FOUND, "kernel '%s' has no param '%s'", info->name,
                        given->name ? given->name : "(NULL)");
        if (known[param])
            return FAIL(err, JFA_ERROR_PROBLEM, "param '%s' is given twice", given->name);
        jfa_status status = check_param(&info->params[param], given->value, err);
        if (status)
            return status;
        known[param] = true;
        b->params[param] = given->value;
    }
    for (int i = 0; i < info->param_count; i++) {
        if (known[i])
            continue;
        if (!info->params[i].has_default)
            return FAIL(err, JFA_ERROR_NOT_FOUND, "param '%s' is not given and has no default",
                        info->params[i].name);
        b->params[i] = info->params[i].default_value;
    }
    return JFA_OK;
}

// ---------------------------------------------------------------- tensors and dims

static jfa_status find_tensors(jfa_bound *b, const jfa_problem *problem, jfa_error *err) {
    const jfa_kernel_info *info = &b->manifest->info;
    for (int i = 0; i < problem->tensor_count; i++) {
        const jfa_tensor *given = &problem->tensors[i];
        int tensor = 0;
        while (tensor < info->tensor_count &&
               (!given->name || strcmp(info->tensors[tensor].name, given->name) != 0))
            tensor++;
        if (tensor == info->tensor_count)
            return FAIL(err, JFA_ERROR_NOT_FOUND, "kernel '%s' has no tensor '%s'", info->name,
                        given->name ? given->name : "(NULL)");
        if (b->tensors[tensor])
            return FAIL(err, JFA_ERROR_PROBLEM, "tensor '%s' is given twice", given->name);
        b->tensors[tensor] = given;
    }
    for (int i = 0; i < info->tensor_count; i++)
        if (!b->tensors[i] && !info->tensors[i].optional)
            return FAIL(err, JFA_ERROR_NOT_FOUND, "tensor '%s' is missing in the problem",
                        info->tensors[i].name);
    return JFA_OK;
}

static jfa_status set_dim(jfa_bound *b, int dim, int64_t extent, const char *where, jfa_error *err) {
    const char *name = b->manifest->info.dims[dim].name;
    if (extent < 1 || extent > INT32_MAX)
        return FAIL(err, JFA_ERROR_PROBLEM, "dim '%s' is %lld in %s; it must be 1 to %d", name,
                    (long long)extent, where, INT32_MAX);
    if (b->dims[dim] && b->dims[dim] != extent)
        return FAIL(err, JFA_ERROR_PROBLEM, "dim '%s' is %lld in %s, but %lld before it", name,
                    (long long)extent, where, (long long)b->dims[dim]);
    b->dims[dim] = extent;
    return JFA_OK;
}

static jfa_status bind_extent(jfa_bound *b, int tensor, int dim, jfa_error *err) {
    const jfa_tensor_info *info = &b->manifest->info.tensors[tensor];
    const jfa_tensor_dim *wanted = &info->dims[dim];
    int64_t extent = b->tensors[tensor]->extents[dim];
    if (wanted->kind == JFA_DIM_RUNTIME)
        return set_dim(b, wanted->index, extent, info->name, err);
    if (wanted->kind == JFA_DIM_CONSTANT && extent != wanted->extent)
        return FAIL(err, JFA_ERROR_PROBLEM, "tensor '%s': dim %d is %lld; the kernel was built for %lld",
                    info->name, dim, (long long)extent, (long long)wanted->extent);
    if (extent < 0)
        return FAIL(err, JFA_ERROR_PROBLEM, "tensor '%s': dim %d is %lld", info->name, dim,
                    (long long)extent);
    if (wanted->kind == JFA_DIM_AXIS && extent > b->most_positions)
        return FAIL(err, JFA_ERROR_LIMIT, "tensor '%s': dim %d has %lld rows; it may have %lld at most",
                    info->name, dim, (long long)extent, (long long)b->most_positions);
    return JFA_OK;
}

static jfa_status bind_tensor(jfa_bound *b, int tensor, jfa_error *err) {
    const jfa_tensor_info *info = &b->manifest->info.tensors[tensor];
    const jfa_tensor *given = b->tensors[tensor];
    if (given->dtype != info->dtype)
        return FAIL(err, JFA_ERROR_PROBLEM, "tensor '%s' has elements of type %s; the kernel takes %s",
                    info->name, jfa_dtype_name(given->dtype), jfa_dtype_name(info->dtype));
    if (given->rank != info->rank)
        return FAIL(err, JFA_ERROR_PROBLEM, "tensor '%s' has %d dims; the kernel takes %d", info->name,
                    given->rank, info->rank);
    for (int d = 0; d < info->rank; d++) {
        jfa_status status = bind_extent(b, tensor, d, err);
        if (status)
            return status;
    }
    return JFA_OK;
}

static jfa_status bind_given_dims(jfa_bound *b, const jfa_problem *problem, jfa_error *err) {
    const jfa_kernel_info *info = &b->manifest->info;
    for (int i = 0; i < problem->dim_count; i++) {
        const jfa_dim *given = &problem->dims[i];
        int dim = 0;
        while (dim < info->dim_count && (!given->name || strcmp(info->dims[dim].name, given->name) != 0))
            dim++;
        if (dim == info->dim_count)
            return FAIL(err, JFA_ERROR_NOT_FOUND, "kernel '%s' has no dim '%s'", info->name,
                        given->name ? given->name : "(NULL)");
        jfa_status status = set_dim(b, dim, given->extent, "the problem", err);
        if (status)
            return status;
    }
    return JFA_OK;
}

static jfa_status check_dims(const jfa_bound *b, jfa_error *err) {
    const jfa_kernel_info *info = &b->manifest->info;
    for (int i = 0; i < info->dim_count; i++)
        if (!b->dims[i])
            return FAIL(err, JFA_ERROR_NOT_FOUND, "dim '%s' is not given, and no given tensor has it",
                        info->dims[i].name);
    for (int i = 0; i < info->dim_count; i++) {
        int other = info->dims[i].divides;
        if (other >= 0 && b->dims[other] % b->dims[i])
            return FAIL(err, JFA_ERROR_PROBLEM, "'%s' (%lld) must be a multiple of '%s' (%lld)",
                        info->dims[other].name, (long long)b->dims[other], info->dims[i].name,
                        (long long)b->dims[i]);
    }
    return JFA_OK;
}

// ---------------------------------------------------------------- all

static jfa_status check_problem(const jfa_problem *problem, jfa_error *err) {
    const struct {
        const char *name;
        const void *array;
        int count;
    } arrays[] = {
        {"axes", problem->axes, problem->axis_count},
        {"tensors", problem->tensors, problem->tensor_count},
        {"dims", problem->dims, problem->dim_count},
        {"params", problem->params, problem->param_count},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        if (arrays[i].count < 0 || (arrays[i].count && !arrays[i].array))
            return FAIL(err, JFA_ERROR_ARGUMENT, "the problem has %d %s, but their array is %s",
                        arrays[i].count, arrays[i].name, arrays[i].array ? "given" : "NULL");
    if (problem->sequences < 0)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the number of sequences is %lld",
                    (long long)problem->sequences);
    if (problem->sequences > INT32_MAX)
        return FAIL(err, JFA_ERROR_LIMIT, "the number of sequences is %lld; it may be %d at most",
                    (long long)problem->sequences, INT32_MAX);
    return JFA_OK;
}

jfa_status jfa_bind(const jfa_manifest *m, const jfa_problem *problem, jfa_bound *b, jfa_error *err) {
    memset(b, 0, sizeof *b);
    b->manifest = m;
    b->most_positions = most_positions(m);
    jfa_status status = check_problem(problem, err);
    b->sequences = problem->sequences;
    if (!status)
        status = find_axes(b, problem, err);
    for (int i = 0; i < m->info.axis_count && !status; i++)
        status = bind_axis(b, i, err);
    if (!status)
        status = check_places(b, err);
    if (!status)
        status = bind_params(b, problem, err);
    if (!status)
        status = find_tensors(b, problem, err);
    if (!status)
        status = bind_given_dims(b, problem, err);
    for (int i = 0; i < m->info.tensor_count && !status; i++)
        if (b->tensors[i])
            status = bind_tensor(b, i, err);
    if (!status)
        status = check_dims(b, err);
    return status ? status : jfa_bound_check_tensors(b, err);
}

void jfa_bound_release(jfa_bound *b) {
    for (int i = 0; i < JFA_MAX_AXES; i++)
        free(b->starts[i]);
    memset(b->starts, 0, sizeof b->starts);
}

int64_t jfa_bound_total(const jfa_bound *b, int axis) {
    int64_t last = b->sequences - 1;
    return last < 0 ? 0 : jfa_bound_start(b, axis, last) + jfa_bound_length(b, axis, last);
}
