// manifest_write.c: a manifest as text, line by line in the order that the reader needs.
#include "runtime/manifest.h"

#include "runtime/error.h"
#include "runtime/manifest_words.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>

typedef struct {
    char *text;
    size_t capacity, length; // length counts on when the text is full
} Writer;

__attribute__((format(printf, 2, 3))) static void put(Writer *w, const char *format, ...) {
    size_t left = w->length < w->capacity ? w->capacity - w->length : 0;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(left ? w->text + w->length : NULL, left, format, args);
    va_end(args);
    w->length += length > 0 ? (size_t)length : 0;
}

static void put_head(Writer *w, const jfa_manifest *m) {
    const jfa_kernel_info *info = &m->info;
    put(w, "jfa-manifest %d\nkernel %s\nentry %s\ntarget %s\n", JFA_MANIFEST_VERSION, info->name, m->entry,
        info->target);
    put(w, "compiler %s\nsource %s\n", info->compiler, info->source);
    put(w, "threads %d\nshared %lld\ncluster %d\n", info->threads, (long long)info->shared_bytes,
        info->cluster);
    for (int i = 0; i < info->axis_count; i++)
        put(w, "axis %s\n", info->axes[i].name);
    for (int i = 0; i < info->dim_count; i++)
        put(w, "dim %s\n", info->dims[i].name);
    for (int i = 0; i < info->dim_count; i++)
        if (info->dims[i].divides >= 0)
            put(w, "divides %s %s\n", info->dims[i].name, info->dims[info->dims[i].divides].name);
    for (int i = 0; i < info->constant_count; i++)
        put(w, "constant %s %s\n", info->constants[i].name, info->constants[i].value);
}

static void put_tensor(Writer *w, const jfa_kernel_info *info, const jfa_tensor_info *tensor) {
    put(w, "tensor %s %s %s ", tensor->name, JFA_DIRECTION_WORDS[tensor->direction],
        jfa_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank; i++) {
        const jfa_tensor_dim *dim = &tensor->dims[i];
        put(w, "%s", i ? "," : "");
        if (dim->kind == JFA_DIM_CONSTANT)
            put(w, "%lld", (long long)dim->extent);
        else
            put(w, "%s",
                dim->kind == JFA_DIM_AXIS ? info->axes[dim->index].name : info->dims[dim->index].name);
    }
    put(w, "%s\n", tensor->optional ? " optional" : "");
}

static void put_space(Writer *w, const jfa_manifest *m) {
    for (int i = 0; i < m->info.param_count; i++) {
        const jfa_param_info *param = &m->info.params[i];
        put(w, "param %s %s", param->name, jfa_dtype_name(param->dtype));
        if (param->has_default)
            put(w, " %.17g", param->default_value);
        put(w, "\n");
        if (param->is_positive)
            put(w, "positive %s\n", param->name);
    }
    for (int i = 0; i < m->factor_count; i++)
        put(w, "factor %s\n", m->info.dims[m->factors[i]].name);
    for (int i = 0; i < m->block_count; i++)
        put(w, "block %s %lld\n", m->info.axes[m->blocks[i].axis].name, (long long)m->blocks[i].size);
    put(w, "%s", m->heaviest_first ? "heaviest_first\n" : "");
    if (m->persistent == 1)
        put(w, "persistent\n");
    else if (m->persistent)
        put(w, "persistent %d\n", m->persistent);
}

static void put_operand(Writer *w, const jfa_manifest *m, const jfa_operand_word *word, int index, int dim) {
    put(w, "%s", word->word);
    if (word->ref == REF_MAP)
        put(w, " %d", index);
    else if (word->ref != REF_NONE)
        put(w, " %s", jfa_ref_name(m, word->ref, index));
    if (word->has_dim)
        put(w, " %d", dim);
    put(w, "\n");
}

static void put_map(Writer *w, const jfa_manifest *m, const jfa_map *map) {
    put(w, "map %s %d %lld", m->info.tensors[map->tensor].name, map->swizzle_bytes, (long long)map->cols);
    for (int i = 0; i < map->rank; i++) {
        const jfa_map_entry *entry = &map->entries[i];
        const jfa_entry_word *word = &JFA_ENTRY_WORDS[entry->kind];
        put(w, " %s", word->word);
        if (word->has_dim)
            put(w, ":%d", entry->dim);
        if (word->has_box)
            put(w, ":%lld", (long long)entry->box);
    }
    put(w, "\n");
}

static void put_watchdog(Writer *w, const jfa_manifest *m) {
    if (m->watchdog_ms)
        put(w, "watchdog %lld\n", (long long)m->watchdog_ms);
    for (int i = 0; i < m->file_count; i++)
        put(w, "file %s\n", m->files[i]);
    for (int i = 0; i < m->wait_count; i++) {
        const jfa_wait *wait = &m->waits[i];
        put(w, "wait %s %s %s %d %d %d %d\n", wait->role, JFA_WAIT_WORDS[wait->is_full], wait->pipe,
            wait->count, wait->stages, wait->file, wait->line);
    }
}

static void put_all(Writer *w, const jfa_manifest *m) {
    put_head(w, m);
    for (int i = 0; i < m->info.tensor_count; i++)
        put_tensor(w, &m->info, &m->info.tensors[i]);
    put_space(w, m);
    for (int i = 0; i < m->field_count; i++) {
        put(w, "field ");
        put_operand(w, m, &JFA_FIELD_WORDS[m->fields[i].kind], m->fields[i].index, m->fields[i].dim);
    }
    for (int i = 0; i < m->map_count; i++)
        put_map(w, m, &m->maps[i]);
    for (int i = 0; i < m->arg_count; i++) {
        const jfa_arg *arg = &m->args[i];
        put(w, "arg %lld %lld ", (long long)arg->offset, (long long)arg->bytes);
        put_operand(w, m, &JFA_ARG_WORDS[arg->kind], arg->index, arg->dim);
    }
    put_watchdog(w, m);
    put(w, "end\n");
}

jfa_status jfa_manifest_write(const jfa_manifest *m, char *text, size_t capacity, size_t *length,
                              jfa_error *err) {
    *length = 0;
    jfa_status status = jfa_manifest_check(m, err);
    if (status)
        return status;
    // Numbers have a point, whatever the program's locale.
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return jfa_error_set(err, JFA_ERROR_OUT_OF_MEMORY, "no memory to write a manifest");
    locale_t before = uselocale(plain);
    Writer writer = {text, text ? capacity : 0, 0};
    put_all(&writer, m);
    uselocale(before);
    freelocale(plain);
    *length = writer.length;
    return JFA_OK;
}
