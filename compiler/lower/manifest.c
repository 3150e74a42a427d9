// manifest.c: fills the runtime's manifest from the plan. Names and counts beyond the runtime's limits are
// refused by its own check.
#include "compiler/lower/manifest.h"

#include "grammar/ast.h"
#include "runtime/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jfa_dtype dtype_of(Elem elem) {
    static const jfa_dtype TYPES[ELEM_COUNT] = {[ELEM_BOOL] = JFA_U8,
                                                [ELEM_I32] = JFA_I32,
                                                [ELEM_F32] = JFA_F32,
                                                [ELEM_BF16] = JFA_BF16,
                                                [ELEM_F16] = JFA_F16};
    return TYPES[elem];
}

#define COPY_NAME(to, from) snprintf((to), sizeof(to), "%s", (from))

static void fill_tensor(const Tensor *tensor, jfa_tensor_info *info) {
    COPY_NAME(info->name, tensor->name);
    info->direction = tensor->direction == TENSOR_IN    ? JFA_IN
                      : tensor->direction == TENSOR_OUT ? JFA_OUT
                                                        : JFA_INOUT;
    info->dtype = dtype_of(tensor->elem);
    info->optional = tensor->is_optional;
    info->rank = tensor->rank;
    for (int i = 0; i < tensor->rank; i++) {
        static const jfa_dim_kind KINDS[] = {
            [DIM_AXIS] = JFA_DIM_AXIS, [DIM_RUNTIME] = JFA_DIM_RUNTIME, [DIM_CONSTANT] = JFA_DIM_CONSTANT};
        info->dims[i].kind = KINDS[tensor->dims[i].kind];
        info->dims[i].index = tensor->dims[i].kind == DIM_CONSTANT ? 0 : tensor->dims[i].index;
        info->dims[i].extent = tensor->dims[i].kind == DIM_CONSTANT ? tensor->dims[i].extent : 0;
    }
}

static void fill_info(const Plan *plan, jfa_kernel_info *info) {
    COPY_NAME(info->name, plan->kernel_name);
    COPY_NAME(info->target, plan->target->name);
    COPY_NAME(info->source, plan->source_path);
    COPY_NAME(info->compiler, JFA_VERSION);
    info->threads = 32 * plan->warps;
    info->shared_bytes = plan->shared_bytes;
    info->cluster = plan->cluster;
    info->axis_count = plan->axis_count;
    for (int i = 0; i < plan->axis_count; i++)
        COPY_NAME(info->axes[i].name, plan->axes[i].name);
    info->dim_count = plan->dim_count;
    for (int i = 0; i < plan->dim_count; i++) {
        COPY_NAME(info->dims[i].name, plan->dims[i].name);
        info->dims[i].divides = plan->dims[i].divides;
    }
    info->tensor_count = plan->tensor_count;
    for (int i = 0; i < plan->tensor_count; i++)
        fill_tensor(&plan->tensors[i], &info->tensors[i]);
    info->param_count = plan->param_count;
    for (int i = 0; i < plan->param_count; i++) {
        COPY_NAME(info->params[i].name, plan->params[i].name);
        info->params[i].dtype = dtype_of(plan->params[i].elem);
        info->params[i].is_positive = plan->params[i].is_positive;
        info->params[i].has_default = plan->params[i].has_default;
        info->params[i].default_value = plan->params[i].default_value;
    }
    info->constant_count = plan->constant_count;
    for (int i = 0; i < plan->constant_count; i++) {
        COPY_NAME(info->constants[i].name, plan->constants[i].name);
        if (plan->constants[i].text)
            COPY_NAME(info->constants[i].value, plan->constants[i].text);
        else
            snprintf(info->constants[i].value, sizeof info->constants[i].value, "%.9g",
                     plan->constants[i].value);
    }
}

static void add_entry(jfa_map *map, jfa_map_entry_kind kind, int dim, int64_t box) {
    if (map->rank < 5)
        map->entries[map->rank++] = (jfa_map_entry){kind, dim, box};
}

// The dimensions in the order in which the lowering makes coordinates (walk.c, tile_coordinates).
static void fill_map(const Plan *plan, const TensorMap *from, jfa_map *map) {
    const Tensor *tensor = &plan->tensors[from->tensor];
    map->tensor = from->tensor;
    map->swizzle_bytes = from->swizzle_bytes;
    map->cols = from->cols;
    add_entry(map, JFA_ENTRY_COL, from->col_dim, from->chunk_cols);
    add_entry(map, JFA_ENTRY_ROWS, from->row_dim, from->rows);
    if (from->chunks)
        add_entry(map, JFA_ENTRY_CHUNK, from->col_dim, from->chunks);
    for (int i = tensor->rank - 1; i >= 0; i--)
        if (tensor->dims[i].kind == DIM_RUNTIME)
            add_entry(map, JFA_ENTRY_DIM, i, 1);
    add_entry(map, JFA_ENTRY_END, from->row_dim, 1);
}

static void fill_args(const KernelArgs *args, jfa_manifest *manifest) {
    static const jfa_arg_kind KINDS[] = {
        [ARG_MAP] = JFA_ARG_MAP,     [ARG_POINTER] = JFA_ARG_PTR,       [ARG_STRIDE] = JFA_ARG_STRIDE,
        [ARG_DIM] = JFA_ARG_DIM,     [ARG_PARAM] = JFA_ARG_PARAM,       [ARG_RECORDS] = JFA_ARG_RECORDS,
        [ARG_ITEMS] = JFA_ARG_ITEMS, [ARG_WATCHDOG] = JFA_ARG_WATCHDOG, [ARG_QUEUE] = JFA_ARG_QUEUE};
    manifest->arg_count = args->count;
    for (int i = 0; i < args->count; i++) {
        const KernelArg *arg = &args->args[i];
        manifest->args[i] = (jfa_arg){KINDS[arg->kind], arg->index, arg->dim, arg->offset, arg->bytes};
    }
}

static void fill_work(const Plan *plan, jfa_manifest *manifest) {
    static const jfa_field_kind KINDS[] = {[FIELD_SEQ] = JFA_FIELD_SEQ,
                                           [FIELD_START] = JFA_FIELD_START,
                                           [FIELD_LEN] = JFA_FIELD_LEN,
                                           [FIELD_BASE] = JFA_FIELD_BASE};
    manifest->heaviest_first = plan->heaviest_first;
    manifest->persistent = plan->persistent ? plan->occupancy : 0;
    manifest->factor_count = plan->factor_count;
    for (int i = 0; i < plan->factor_count; i++)
        manifest->factors[i] = plan->factors[i].dim;
    manifest->block_count = plan->tile_axis_count;
    for (int i = 0; i < plan->tile_axis_count; i++)
        manifest->blocks[i] = (jfa_block){plan->tile_axes[i].axis, plan->tile_axes[i].size};
    manifest->field_count = plan->field_count;
    for (int i = 0; i < plan->field_count; i++)
        manifest->fields[i] =
            (jfa_field){KINDS[plan->fields[i].kind], plan->fields[i].index, plan->fields[i].dim};
}

// Where waits stand: the files that they name, each once. False: more than the manifest holds.
static bool find_file(const SourceSet *sources, const Wait *wait, jfa_manifest *manifest, int *file) {
    const char *path = sources->files[wait->place.file].path;
    for (*file = 0; *file < manifest->file_count; ++*file)
        if (!strncmp(manifest->files[*file], path, JFA_PATH_BYTES - 1))
            return true;
    if (manifest->file_count == JFA_MAX_FILES)
        return false;
    COPY_NAME(manifest->files[manifest->file_count++], path);
    return true;
}

static bool fill_waits(const Watchdog *watchdog, const SourceSet *sources, jfa_manifest *manifest) {
    manifest->watchdog_ms = watchdog->ms;
    manifest->wait_count = watchdog->count;
    for (int i = 0; i < watchdog->count; i++) {
        const Wait *from = &watchdog->waits[i];
        jfa_wait *wait = &manifest->waits[i];
        COPY_NAME(wait->role, from->role);
        COPY_NAME(wait->pipe, from->pipe);
        wait->is_full = from->is_full;
        wait->count = from->count;
        wait->stages = from->stages;
        wait->line = source_place(sources, from->place.file, from->place.start).line;
        if (!find_file(sources, from, manifest, &wait->file))
            return false;
    }
    return true;
}

// Counts that would not fit the manifest's arrays.
const char *lower_too_many(const Plan *plan, const KernelArgs *args, const Watchdog *watchdog) {
    const struct {
        const char *what;
        int count, limit;
    } LIMITS[] = {
        {"axes", plan->axis_count, JFA_MAX_AXES},
        {"dims", plan->dim_count, JFA_MAX_DIMS},
        {"tensors", plan->tensor_count, JFA_MAX_TENSORS},
        {"params", plan->param_count, JFA_MAX_PARAMS},
        {"constants", plan->constant_count, JFA_MAX_CONSTANTS},
        {"record fields", plan->field_count, JFA_MAX_FIELDS},
        {"tensor maps", plan->map_count, JFA_MAX_MAPS},
        {"kernel parameters", args->count, JFA_MAX_ARGS},
        {"factors", plan->factor_count, JFA_MAX_DIMS},
        {"blocked axes", plan->tile_axis_count, JFA_MAX_BLOCKS},
        {"waits with a limit", watchdog->count, JFA_MAX_WAITS},
    };
    for (size_t i = 0; i < sizeof LIMITS / sizeof LIMITS[0]; i++)
        if (LIMITS[i].count > LIMITS[i].limit)
            return arena_format(plan->arena, "the kernel has %d %s, but a kernel can have %d at most",
                                LIMITS[i].count, LIMITS[i].what, LIMITS[i].limit);
    return NULL;
}

const char *lower_manifest(const Plan *plan, const KernelArgs *args, const Watchdog *watchdog,
                           const SourceSet *sources, size_t *length, const char **message) {
    *message = lower_too_many(plan, args, watchdog);
    if (*message)
        return NULL;
    jfa_manifest *manifest = arena_new_of(plan->arena, jfa_manifest);
    fill_info(plan, &manifest->info);
    snprintf(manifest->entry, sizeof manifest->entry, "%s", lower_entry_name(plan));
    fill_work(plan, manifest);
    manifest->map_count = plan->map_count;
    for (int i = 0; i < plan->map_count; i++)
        fill_map(plan, &plan->maps[i], &manifest->maps[i]);
    fill_args(args, manifest);
    if (!fill_waits(watchdog, sources, manifest)) {
        *message = arena_format(plan->arena, "the kernel's waits stand in more than %d files", JFA_MAX_FILES);
        return NULL;
    }
    jfa_error error;
    char *text = NULL;
    size_t capacity = 0;
    for (int round = 0; round < 2; round++) { // measured, then written
        if (jfa_manifest_write(manifest, text, capacity, length, &error) != JFA_OK) {
            *message = arena_format(plan->arena, "%s", error.message);
            return NULL;
        }
        if (text)
            break;
        capacity = *length + 1;
        text = arena_alloc(plan->arena, capacity);
    }
    return text;
}
