// planner.c: plans from offsets that are on the device: the kernel that fills the list of work is loaded,
// given its parameters and launched (planner_text.c has the kernel).
#include "runtime/internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(err, status, ...) jfa_error_set(err, status, __VA_ARGS__)

static jfa_status load(jfa_kernel *kernel, jfa_error *err) {
    jfa_device *device = kernel->module->device;
    char *text = jfa_planner_text(&kernel->manifest, device->props.arch);
    if (!text)
        return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for a planner");
    jfa_status status = jfa_loaded_take(device, text, strlen(text), &kernel->planner, err);
    free(text);
    if (status)
        return status;
    jfa_error mine = {0};
    status = device->backend->function_get(device->handle, jfa_loaded_handle(kernel->planner), "jfa_planner",
                                           &kernel->planner_function, &mine);
    if (status) {
        jfa_loaded_drop(device, kernel->planner);
        kernel->planner = NULL;
    }
    return jfa_backend_result(status, &mine, err, "find the planner");
}

jfa_status jfa_planner_load(jfa_kernel *kernel, jfa_error *err) {
    pthread_mutex_lock(&kernel->module->lock);
    jfa_status status = kernel->planner ? JFA_OK : load(kernel, err);
    pthread_mutex_unlock(&kernel->module->lock);
    return status;
}

void jfa_planner_unload(jfa_kernel *kernel) {
    jfa_loaded_drop(kernel->module->device, kernel->planner);
}

// The arrays of the block are as long as the kernel needs, one behind the other.
static size_t bases_at(const jfa_manifest *m) {
    return offsetof(jfa_planner_block, axes) +
           (size_t)m->info.axis_count * sizeof(((jfa_planner_block *)0)->axes[0]);
}

size_t jfa_planner_block_bytes(const jfa_manifest *m) {
    size_t bytes = bases_at(m);
    for (int i = 0; i < m->field_count; i++)
        if (m->fields[i].kind == JFA_FIELD_BASE)
            bytes += sizeof(((jfa_planner_block *)0)->bases[0]);
    return bytes;
}

static void fill_bases(const jfa_bound *b, uint8_t *to) {
    const jfa_manifest *m = b->manifest;
    for (int i = 0; i < m->field_count; i++) {
        const jfa_field *field = &m->fields[i];
        if (field->kind != JFA_FIELD_BASE)
            continue;
        const jfa_tensor *tensor = b->tensors[field->index];
        uint32_t base[2] = {0, 0};
        if (tensor && tensor->rows[field->dim].kind == JFA_ROWS_PACKED)
            base[0] = 1;
        if (tensor && tensor->rows[field->dim].kind == JFA_ROWS_PADDED)
            base[1] = (uint32_t)tensor->rows[field->dim].pitch;
        memcpy(to, base, sizeof base);
        to += sizeof base;
    }
}

void jfa_planner_fill(const jfa_bound *b, const jfa_work *work, uint64_t records, uint8_t *block) {
    jfa_planner_block whole = {
        .records = records,
        .status = records + jfa_work_status(b->manifest, work->records),
        .sequences = (uint32_t)b->sequences,
        .most_records = (uint32_t)work->records,
    };
    for (int a = 0; a < b->manifest->info.axis_count; a++) {
        whole.axes[a].offsets = b->axes[a]->device_offsets;
        whole.axes[a].length = (uint32_t)b->axes[a]->length;
        whole.axes[a].most_total = (uint32_t)b->most_total[a];
        whole.axes[a].most_length = (uint32_t)b->most_length[a];
    }
    memcpy(block, &whole, bases_at(b->manifest));
    fill_bases(b, block + bases_at(b->manifest));
}

jfa_status jfa_planner_launch(const jfa_kernel *kernel, int64_t sequences, const uint8_t *block, void *stream,
                              jfa_error *err) {
    jfa_device *device = kernel->module->device;
    int64_t ctas = (sequences + JFA_PLANNER_THREADS - 1) / JFA_PLANNER_THREADS;
    jfa_launch_desc desc = {
        .grid = {(uint32_t)ctas, 1, 1},
        .block = {JFA_PLANNER_THREADS, 1, 1},
        .cluster = {1, 1, 1},
        .params = block,
        .params_bytes = jfa_planner_block_bytes(&kernel->manifest),
        .stream = stream,
    };
    jfa_error mine;
    mine.message[0] = '\0';
    return jfa_device_result(device,
                             device->backend->launch(device->handle, kernel->planner_function, &desc, &mine),
                             &mine, err, "launch the planner");
}

jfa_status jfa_planner_verdict(const jfa_manifest *m, uint64_t status, jfa_error *err) {
    static const char *const TEXTS[] = {
        [0] = "are wrong",
        [JFA_WRONG_START] = "start with another number than 0",
        [JFA_WRONG_ORDER] = "decrease or are negative",
        [JFA_WRONG_TOTAL] = "pass the rows that the tensors have",
        [JFA_WRONG_LENGTH] = "make it longer than the tensors' rows for a sequence",
    };
    int axis = (int)(status >> 3 & 7), reason = (int)(status & 7);
    return FAIL(err, JFA_ERROR_PROBLEM,
                "axis '%s': the offsets on the device of sequence %llu %s; it was taken as empty",
                axis < m->info.axis_count ? m->info.axes[axis].name : "?", (unsigned long long)(status >> 6),
                reason <= JFA_WRONG_LENGTH ? TEXTS[reason] : TEXTS[0]);
}
