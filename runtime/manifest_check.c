// manifest_check.c: a manifest is checked before it is written and after it is read, so that the rest of the
// runtime may use its indices and sizes as they are. Takes anything, changes nothing.
#include "runtime/manifest.h"

#include "runtime/error.h"
#include "runtime/manifest_words.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define FAIL(err, ...) (jfa_error_set(err, JFA_ERROR_MANIFEST, __VA_ARGS__), false)

// Locale-free: isalpha() follows the program's locale.
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool ends(const char *text, size_t capacity) {
    return memchr(text, 0, capacity) != NULL;
}

static bool check_name(const char *what, const char *name, size_t capacity, const char *also,
                       jfa_error *err) {
    if (!ends(name, capacity))
        return FAIL(err, "a name of kind '%s' is longer than %zu bytes", what, capacity - 1);
    bool good = is_letter(name[0]) || (name[0] && strchr(also, name[0]));
    for (const char *c = name; *c && good; c++)
        good = is_letter(*c) || is_digit(*c) || strchr(also, *c);
    return good || FAIL(err, "'%s' is not a name of kind '%s'", name, what);
}

// A value that is one word (or, with spaces, the rest of a line).
static bool check_word(const char *what, const char *text, size_t capacity, bool spaces, jfa_error *err) {
    if (!ends(text, capacity))
        return FAIL(err, "the %s is longer than %zu bytes", what, capacity - 1);
    bool good = text[0] && text[0] != ' ';
    for (const char *c = text; *c && good; c++)
        good = (unsigned char)*c > ' ' || (spaces && *c == ' ');
    return good || FAIL(err, "the %s is empty or has blanks or control characters", what);
}

static bool check_count(const char *what, int count, int least, int most, jfa_error *err) {
    return (count >= least && count <= most) ||
           FAIL(err, "the number of %s is %d; it must be %d to %d", what, count, least, most);
}

static bool check_range(const char *what, int64_t value, int64_t least, int64_t most, jfa_error *err) {
    return (value >= least && value <= most) || FAIL(err, "%s is %lld; it must be %lld to %lld", what,
                                                     (long long)value, (long long)least, (long long)most);
}

static bool check_ref(const jfa_manifest *m, const char *what, jfa_ref ref, int index, jfa_error *err) {
    return ref == REF_NONE || (index >= 0 && index < jfa_ref_count(m, ref)) ||
           FAIL(err, "%s names %s number %d, which there is not", what, jfa_ref_word(ref), index);
}

static bool check_counts(const jfa_manifest *m, jfa_error *err) {
    const jfa_kernel_info *info = &m->info;
    return check_count("axes", info->axis_count, 0, JFA_MAX_AXES, err) &&
           check_count("dims", info->dim_count, 0, JFA_MAX_DIMS, err) &&
           check_count("tensors", info->tensor_count, 0, JFA_MAX_TENSORS, err) &&
           check_count("params", info->param_count, 0, JFA_MAX_PARAMS, err) &&
           check_count("constants", info->constant_count, 0, JFA_MAX_CONSTANTS, err) &&
           check_count("factors", m->factor_count, 0, JFA_MAX_DIMS, err) &&
           check_count("blocks", m->block_count, 0, JFA_MAX_BLOCKS, err) &&
           check_count("fields", m->field_count, 1, JFA_MAX_FIELDS, err) &&
           check_count("maps", m->map_count, 0, JFA_MAX_MAPS, err) &&
           check_count("args", m->arg_count, 0, JFA_MAX_ARGS, err) &&
           check_count("files", m->file_count, 0, JFA_MAX_FILES, err) &&
           check_count("waits", m->wait_count, 0, JFA_MAX_WAITS, err);
}

static bool check_head(const jfa_manifest *m, jfa_error *err) {
    const jfa_kernel_info *info = &m->info;
    if (!check_name("kernel", info->name, sizeof info->name, "", err) ||
        !check_name("entry", m->entry, sizeof m->entry, "$%.", err) ||
        !check_word("target", info->target, sizeof info->target, false, err) ||
        !check_word("compiler's version", info->compiler, sizeof info->compiler, false, err) ||
        !check_word("source file's name", info->source, sizeof info->source, true, err) ||
        !check_range("threads", info->threads, 32, 1024, err) ||
        !check_range("shared", info->shared_bytes, 0, 1 << 20, err) ||
        !check_range("cluster", info->cluster, 1, 16, err))
        return false;
    return info->threads % 32 == 0 || FAIL(err, "threads is %d; it must be a multiple of 32", info->threads);
}

// Names of one kind are distinct; axes and dims stand in the same places, so they share one set.
static bool check_names(const jfa_manifest *m, jfa_error *err) {
    for (jfa_ref ref = REF_AXIS; ref <= REF_PARAM; ref++)
        for (int i = 0; i < jfa_ref_count(m, ref); i++) {
            const char *name = jfa_ref_name(m, ref, i);
            if (!check_name(jfa_ref_word(ref), name, JFA_NAME_BYTES, "", err))
                return false;
            if (jfa_ref_find(m, ref, name) != i || (ref == REF_DIM && jfa_ref_find(m, REF_AXIS, name) >= 0))
                return FAIL(err, "the name '%s' is given to two axes, dims, tensors or params", name);
        }
    for (int i = 0; i < m->info.constant_count; i++) {
        const jfa_constant_info *constant = &m->info.constants[i];
        if (!check_name("constant", constant->name, sizeof constant->name, "", err) ||
            !check_word("constant's value", constant->value, sizeof constant->value, false, err))
            return false;
    }
    return true;
}

static bool check_dims(const jfa_manifest *m, jfa_error *err) {
    for (int i = 0; i < m->info.dim_count; i++) {
        const jfa_dim_info *dim = &m->info.dims[i];
        if (dim->divides == -1)
            continue;
        if (!check_ref(m, "'divides'", REF_DIM, dim->divides, err))
            return false;
        if (dim->divides == i)
            return FAIL(err, "dim '%s' divides itself", dim->name);
    }
    return true;
}

static bool check_tensor_dim(const jfa_manifest *m, const jfa_tensor_info *tensor, int index,
                             jfa_error *err) {
    const jfa_tensor_dim *dim = &tensor->dims[index];
    switch (dim->kind) {
    case JFA_DIM_AXIS:
        return check_ref(m, tensor->name, REF_AXIS, dim->index, err);
    case JFA_DIM_RUNTIME:
        return check_ref(m, tensor->name, REF_DIM, dim->index, err);
    case JFA_DIM_CONSTANT:
        return check_range("a constant dim", dim->extent, 1, INT32_MAX, err);
    default:
        return FAIL(err, "dim %d of tensor '%s' has an unknown kind", index, tensor->name);
    }
}

static bool check_tensors(const jfa_manifest *m, jfa_error *err) {
    for (int i = 0; i < m->info.tensor_count; i++) {
        const jfa_tensor_info *tensor = &m->info.tensors[i];
        if ((unsigned)tensor->direction > JFA_INOUT || !jfa_dtype_bytes(tensor->dtype))
            return FAIL(err, "tensor '%s' has an unknown direction or element type", tensor->name);
        if (!check_count("dims of a tensor", tensor->rank, 1, JFA_MAX_RANK, err))
            return false;
        for (int d = 0; d < tensor->rank; d++)
            if (!check_tensor_dim(m, tensor, d, err))
                return false;
    }
    return true;
}

bool jfa_param_is_positive(const jfa_param_info *param, double value) {
    return param->dtype == JFA_I32 ? value > 0 : value >= FLT_MIN && value <= FLT_MAX;
}

static bool check_params(const jfa_manifest *m, jfa_error *err) {
    for (int i = 0; i < m->info.param_count; i++) {
        const jfa_param_info *param = &m->info.params[i];
        double value = param->default_value;
        if (param->dtype != JFA_F32 && param->dtype != JFA_I32)
            return FAIL(err, "param '%s' is neither f32 nor i32", param->name);
        if (!param->has_default)
            continue;
        if (value != value)
            return FAIL(err, "the default of param '%s' is not a number", param->name);
        if (param->is_positive && !jfa_param_is_positive(param, value))
            return FAIL(err, "param '%s' is declared > 0 and has the default %g", param->name, value);
        if (param->dtype == JFA_F32)
            continue;
        if (!(value >= INT32_MIN && value <= INT32_MAX && value == floor(value)))
            return FAIL(err, "param '%s' of type i32 has the default %g", param->name, value);
    }
    return true;
}

static bool is_blocked(const jfa_manifest *m, int axis) {
    for (int i = 0; i < m->block_count; i++)
        if (m->blocks[i].axis == axis)
            return true;
    return false;
}

static bool check_space(const jfa_manifest *m, jfa_error *err) {
    for (int i = 0; i < m->factor_count; i++) {
        if (!check_ref(m, "'factor'", REF_DIM, m->factors[i], err))
            return false;
        for (int k = 0; k < i; k++)
            if (m->factors[k] == m->factors[i])
                return FAIL(err, "dim '%s' is a factor twice", m->info.dims[m->factors[i]].name);
    }
    for (int i = 0; i < m->block_count; i++) {
        const jfa_block *block = &m->blocks[i];
        if (!check_ref(m, "'block'", REF_AXIS, block->axis, err) ||
            !check_range("a block's size", block->size, 1, INT32_MAX, err))
            return false;
        for (int k = 0; k < i; k++)
            if (m->blocks[k].axis == block->axis)
                return FAIL(err, "axis '%s' is blocked twice", m->info.axes[block->axis].name);
    }
    return true;
}

static bool check_tensor_place(const jfa_manifest *m, const char *what, int tensor, int dim, jfa_error *err) {
    int rank = m->info.tensors[tensor].rank;
    return (dim >= 0 && dim < rank) || FAIL(err, "%s names dim %d of tensor '%s', which has %d", what, dim,
                                            m->info.tensors[tensor].name, rank);
}

static bool check_fields(const jfa_manifest *m, jfa_error *err) {
    for (int i = 0; i < m->field_count; i++) {
        const jfa_field *field = &m->fields[i];
        if ((unsigned)field->kind >= JFA_FIELD_KIND_COUNT)
            return FAIL(err, "field %d has an unknown kind", i);
        const jfa_operand_word *word = &JFA_FIELD_WORDS[field->kind];
        if (!check_ref(m, word->word, word->ref, field->index, err))
            return false;
        if (field->kind == JFA_FIELD_START && !is_blocked(m, field->index))
            return FAIL(err, "field 'start' names axis '%s', which is not blocked",
                        m->info.axes[field->index].name);
        if (!word->has_dim)
            continue;
        if (!check_tensor_place(m, word->word, field->index, field->dim, err))
            return false;
        const jfa_tensor_info *tensor = &m->info.tensors[field->index];
        if (tensor->dims[field->dim].kind != JFA_DIM_AXIS)
            return FAIL(err, "field 'base' names dim %d of tensor '%s', which is no axis", field->dim,
                        tensor->name);
    }
    return true;
}

static bool check_args(const jfa_manifest *m, jfa_error *err) {
    int64_t end = 0;
    for (int i = 0; i < m->arg_count; i++) {
        const jfa_arg *arg = &m->args[i];
        if ((unsigned)arg->kind >= JFA_ARG_KIND_COUNT)
            return FAIL(err, "arg %d has an unknown kind", i);
        const jfa_operand_word *word = &JFA_ARG_WORDS[arg->kind];
        if (!check_ref(m, word->word, word->ref, arg->index, err) ||
            (word->has_dim && !check_tensor_place(m, word->word, arg->index, arg->dim, err)))
            return false;
        if (arg->bytes != word->bytes)
            return FAIL(err, "arg %d (%s) has %lld bytes; it must have %d", i, word->word,
                        (long long)arg->bytes, word->bytes);
        if (!check_range("an arg's offset", arg->offset, end, JFA_PARAMETER_BYTES - arg->bytes, err))
            return false;
        if (arg->offset % word->unit)
            return FAIL(err, "arg %d (%s) lies at %lld; it must lie at a multiple of %d", i, word->word,
                        (long long)arg->offset, word->unit);
        end = arg->offset + arg->bytes;
    }
    return true;
}

static bool check_watchdog(const jfa_manifest *m, jfa_error *err) {
    int args = 0;
    for (int i = 0; i < m->arg_count; i++)
        args += m->args[i].kind == JFA_ARG_WATCHDOG;
    if (!check_range("the watchdog's limit", m->watchdog_ms, 0, JFA_MOST_WATCHDOG_MS, err))
        return false;
    if (args != (m->watchdog_ms > 0) || (m->wait_count && !m->watchdog_ms))
        return FAIL(err, "a watchdog of %lld ms has %d args and %d waits", (long long)m->watchdog_ms, args,
                    m->wait_count);
    for (int i = 0; i < m->file_count; i++)
        if (!check_word("name of a wait's file", m->files[i], sizeof m->files[i], true, err))
            return false;
    for (int i = 0; i < m->wait_count; i++) {
        const jfa_wait *wait = &m->waits[i];
        if (!check_name("role", wait->role, sizeof wait->role, "", err) ||
            !check_name("pipe", wait->pipe, sizeof wait->pipe, "", err) ||
            !check_range("the number of a wait's pipes", wait->count, 1, INT32_MAX, err) ||
            !check_range("the number of a wait's stages", wait->stages, 1, INT32_MAX, err) ||
            !check_range("a wait's file", wait->file, 0, m->file_count - 1, err) ||
            !check_range("a wait's line", wait->line, 1, INT32_MAX, err))
            return false;
    }
    return true;
}

jfa_status jfa_manifest_check(const jfa_manifest *m, jfa_error *err) {
    bool good = check_counts(m, err) && check_head(m, err) && check_names(m, err) && check_dims(m, err) &&
                check_tensors(m, err) && check_params(m, err) && check_space(m, err) &&
                check_fields(m, err) && jfa_manifest_check_maps(m, err) && check_args(m, err) &&
                check_watchdog(m, err);
    return good ? JFA_OK : JFA_ERROR_MANIFEST;
}

int64_t jfa_manifest_parameter_bytes(const jfa_manifest *m) {
    return m->arg_count ? m->args[m->arg_count - 1].offset + m->args[m->arg_count - 1].bytes : 0;
}
