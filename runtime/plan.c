// plan.c: plans: bind, work, maps and parameters in order; and their launches.
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(err, status, ...) jfa_error_set(err, status, __VA_ARGS__)

struct jfa_plan {
    jfa_kernel *kernel;
    jfa_plan_info info;
    jfa_memory records; // owned
    uint8_t *block;     // parameters; owned
    size_t block_bytes;
    // Of a plan from offsets on the device:
    int64_t sequences;
    uint8_t *planner_block; // the planner's parameters; owned; NULL: lengths were known on the host
    size_t status_at;       // in the records' memory
    atomic_bool is_updated;
};

// ---------------------------------------------------------------- parameters

static void put_param(const jfa_bound *b, int param, uint8_t *to) {
    if (b->manifest->info.params[param].dtype == JFA_I32) {
        int32_t value = (int32_t)b->params[param];
        memcpy(to, &value, sizeof value);
    } else {
        float value = (float)b->params[param];
        memcpy(to, &value, sizeof value);
    }
}

// Integers of the sizes in JFA_ARG_WORDS; the machine is little-endian, like the device.
static int64_t integer_arg(const jfa_bound *b, const jfa_work *work, const jfa_addresses *addresses,
                           const jfa_arg *arg) {
    const jfa_tensor *tensor =
        arg->kind == JFA_ARG_PTR || arg->kind == JFA_ARG_STRIDE ? b->tensors[arg->index] : NULL;
    switch (arg->kind) {
    case JFA_ARG_PTR:
        return tensor ? (int64_t)tensor->address : 0;
    case JFA_ARG_STRIDE:
        return tensor ? tensor->strides[arg->dim] : 0;
    case JFA_ARG_DIM:
        return b->dims[arg->index];
    case JFA_ARG_RECORDS:
        return (int64_t)addresses->records;
    case JFA_ARG_RECORD_COUNT:
        return work->records;
    case JFA_ARG_WATCHDOG:
        return (int64_t)addresses->watchdog;
    case JFA_ARG_QUEUE:
        return (int64_t)addresses->queue;
    default:
        return work->items;
    }
}

void jfa_parameters_fill(const jfa_bound *b, const jfa_work *work, const jfa_addresses *addresses,
                         const uint8_t *maps, uint8_t *block) {
    for (int i = 0; i < b->manifest->arg_count; i++) {
        const jfa_arg *arg = &b->manifest->args[i];
        uint8_t *to = block + arg->offset;
        if (arg->kind == JFA_ARG_MAP) {
            memcpy(to, maps + (size_t)arg->index * JFA_MAP_BYTES, JFA_MAP_BYTES);
        } else if (arg->kind == JFA_ARG_PARAM) {
            put_param(b, arg->index, to);
        } else {
            int64_t value = integer_arg(b, work, addresses, arg);
            memcpy(to, &value, (size_t)arg->bytes);
        }
    }
}

// ---------------------------------------------------------------- making a plan

static bool has_queue(const jfa_manifest *m) {
    for (int i = 0; i < m->arg_count; i++)
        if (m->args[i].kind == JFA_ARG_QUEUE)
            return true;
    return false;
}

// The queue's counters lie behind the list of work.
static size_t queue_at(const jfa_work *work) {
    size_t unit = sizeof(uint64_t);
    return (work->bytes + unit - 1) / unit * unit;
}

static jfa_status upload(jfa_plan *plan, const jfa_work *work, jfa_error *err) {
    static const uint32_t COUNTERS[2] = {0, 0};
    jfa_device *device = plan->kernel->module->device;
    bool queued = has_queue(&plan->kernel->manifest);
    size_t bytes = queued ? queue_at(work) + sizeof COUNTERS : work->bytes;
    jfa_status status = jfa_spare_take(device, bytes, &plan->records, err);
    if (!status)
        status = jfa_upload(device, plan->records.address, work->words, work->bytes, err);
    if (!status && queued)
        status = jfa_upload(device, plan->records.address + queue_at(work), COUNTERS, sizeof COUNTERS, err);
    return status;
}

static jfa_status describe_maps(const jfa_bound *b, jfa_tensor_map *maps, jfa_error *err) {
    jfa_status status = JFA_OK;
    memset(maps, 0, JFA_MAX_MAPS * sizeof *maps); // padding too: maps are compared
    for (int i = 0; i < b->manifest->map_count && !status; i++)
        if (b->tensors[b->manifest->maps[i].tensor])
            status = jfa_map_fill(b, i, &maps[i], err);
    return status;
}

// Does the tensors' memory exist, and that of offsets?
static jfa_status check_memory(const jfa_device *device, const jfa_bound *b, jfa_error *err) {
    for (int i = 0; i < b->manifest->info.axis_count && device->backend->check_memory; i++) {
        uint64_t offsets = b->axes[i]->device_offsets;
        jfa_error mine = {0};
        jfa_status status =
            offsets ? device->backend->check_memory(device->handle, offsets,
                                                    ((uint64_t)b->sequences + 1) * sizeof(int32_t), &mine)
                    : JFA_OK;
        if (status)
            return FAIL(err, status, "the offsets of axis '%s': %s", b->manifest->info.axes[i].name,
                        mine.message);
    }
    for (int i = 0; i < b->manifest->info.tensor_count && device->backend->check_memory; i++) {
        const jfa_tensor *tensor = b->tensors[i];
        if (!tensor || !jfa_tensor_has_elements(tensor))
            continue;
        uint64_t bytes = jfa_tensor_bytes(tensor);
        jfa_error mine = {0};
        jfa_status status = device->backend->check_memory(device->handle, tensor->address, bytes, &mine);
        if (status)
            return FAIL(err, status, "tensor '%s' of %llu bytes: %s", b->manifest->info.tensors[i].name,
                        (unsigned long long)bytes, mine.message);
    }
    return JFA_OK;
}

// The map before `map` that says the same of the same tensor; -1: none.
static int same_map(const jfa_tensor_map *maps, int map) {
    int same = map - 1;
    while (same >= 0 && memcmp(&maps[same], &maps[map], sizeof *maps) != 0)
        same--;
    return same;
}

// The maps of tensors that were left out stay zero: the kernel must not use them. A tensor without elements
// gets an address that exists.
static jfa_status encode_maps(const jfa_plan *plan, const jfa_bound *b, jfa_tensor_map *maps,
                              uint8_t *encoded, jfa_error *err) {
    const jfa_device *device = plan->kernel->module->device;
    for (int i = 0; i < b->manifest->map_count; i++) {
        jfa_error mine = {0};
        if (!b->tensors[b->manifest->maps[i].tensor])
            continue;
        if (!maps[i].address)
            maps[i].address = plan->records.address;
        int same = same_map(maps, i);
        if (same >= 0) {
            memcpy(encoded + (size_t)i * JFA_MAP_BYTES, encoded + (size_t)same * JFA_MAP_BYTES,
                   JFA_MAP_BYTES);
            continue;
        }
        jfa_status status = device->backend->encode_tensor_map(device->handle, &maps[i],
                                                               encoded + (size_t)i * JFA_MAP_BYTES, &mine);
        if (status)
            return jfa_backend_result(status, &mine, err, "encode a tensor map");
    }
    return JFA_OK;
}

static jfa_status fill_parameters(jfa_plan *plan, const jfa_bound *b, const jfa_work *work,
                                  jfa_tensor_map *maps, jfa_error *err) {
    plan->block_bytes = (size_t)jfa_manifest_parameter_bytes(b->manifest);
    plan->block = calloc(1, plan->block_bytes + 1);
    uint8_t *encoded = calloc((size_t)b->manifest->map_count + 1, JFA_MAP_BYTES);
    jfa_status status = JFA_OK;
    if (!plan->block || !encoded)
        status = FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for a kernel's parameters");
    else
        status = encode_maps(plan, b, maps, encoded, err);
    if (!status)
        jfa_parameters_fill(b, work,
                            &(jfa_addresses){.records = plan->records.address,
                                             .watchdog = jfa_watchdog_address(plan->kernel->watchdog),
                                             .queue = plan->records.address + queue_at(work)},
                            encoded, plan->block);
    free(encoded);
    return status;
}

static jfa_status prepare_planner(jfa_plan *plan, const jfa_bound *b, const jfa_work *work, jfa_error *err) {
    plan->sequences = b->sequences;
    plan->status_at = jfa_work_status(b->manifest, work->records);
    plan->planner_block = calloc(1, jfa_planner_block_bytes(b->manifest));
    if (!plan->planner_block)
        return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for a planner's parameters");
    if (!work->records)
        return JFA_OK;
    jfa_planner_fill(b, work, plan->records.address, plan->planner_block);
    return jfa_planner_load(plan->kernel, err);
}

static jfa_status set_info(jfa_plan *plan, const jfa_work *work, jfa_error *err) {
    const jfa_manifest *m = &plan->kernel->manifest;
    const jfa_device_props *props = &plan->kernel->module->device->props;
    int64_t cluster = m->info.cluster, clusters = work->items,
            most = (int64_t)props->sm_count * m->persistent / cluster;
    if (m->persistent && clusters > most)
        clusters = most > 0 ? most : 1;
    int64_t ctas = clusters * cluster;
    if (ctas > INT32_MAX)
        return FAIL(err, JFA_ERROR_LIMIT, "a grid of %lld CTAs is beyond %d", (long long)ctas, INT32_MAX);
    plan->info = (jfa_plan_info){
        .records = work->records,
        .items = work->items,
        .device_bytes = (int64_t)work->bytes,
        .grid = (int)ctas,
        .threads = m->info.threads,
        .shared_bytes = m->info.shared_bytes,
    };
    return JFA_OK;
}

// Everything is checked before the device is touched, also for a problem without work.
static jfa_status build(jfa_plan *plan, const jfa_bound *b, jfa_work *work, jfa_error *err) {
    jfa_tensor_map maps[JFA_MAX_MAPS];
    jfa_status status = describe_maps(b, maps, err);
    if (!status)
        status = check_memory(plan->kernel->module->device, b, err);
    if (!status)
        status = jfa_work_build(b, work, err);
    if (!status)
        status = set_info(plan, work, err);
    if (!status && work->items) {
        status = upload(plan, work, err);
        status = status ? status : fill_parameters(plan, b, work, maps, err);
    }
    return status || !b->on_device ? status : prepare_planner(plan, b, work, err);
}

jfa_status jfa_plan_create(jfa_kernel *kernel, const jfa_problem *problem, jfa_plan **plan, jfa_error *err) {
    if (!plan)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the place for the plan is NULL");
    *plan = NULL;
    if (!kernel || !problem)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the kernel or the problem is NULL");
    jfa_plan *made = calloc(1, sizeof *made);
    if (!made)
        return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for a plan");
    made->kernel = kernel;
    atomic_fetch_add(&kernel->module->plan_count, 1);
    jfa_bound bound;
    jfa_work work = {0};
    jfa_status status = jfa_bind(&kernel->manifest, problem, &bound, err);
    if (!status)
        status = build(made, &bound, &work, err);
    free(work.words);
    jfa_bound_release(&bound);
    if (status)
        jfa_plan_destroy(made, NULL); // the first failure is the one to report
    else
        *plan = made;
    return status;
}

jfa_status jfa_plan_destroy(jfa_plan *plan, jfa_error *err) {
    if (!plan)
        return JFA_OK;
    jfa_module *module = plan->kernel->module;
    jfa_status status = jfa_spare_give(module->device, plan->records, err);
    atomic_fetch_sub(&module->plan_count, 1);
    free(plan->planner_block);
    free(plan->block);
    free(plan);
    return status;
}

const jfa_plan_info *jfa_plan_get_info(const jfa_plan *plan) {
    return plan ? &plan->info : NULL;
}

// ---------------------------------------------------------------- offsets on the device

static jfa_status check_is_on_device(const jfa_plan *plan, jfa_error *err) {
    if (!plan)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the plan is NULL");
    return plan->planner_block
               ? JFA_OK
               : FAIL(err, JFA_ERROR_ARGUMENT,
                      "the plan was made from lengths on the host; there is nothing to update");
}

jfa_status jfa_plan_update(jfa_plan *plan, void *stream, jfa_error *err) {
    jfa_status status = check_is_on_device(plan, err);
    if (!status && plan->info.grid)
        status = jfa_planner_launch(plan->kernel, plan->sequences, plan->planner_block, stream, err);
    if (!status)
        atomic_store(&plan->is_updated, true);
    return status;
}

jfa_status jfa_plan_check(jfa_plan *plan, void *stream, jfa_error *err) {
    jfa_status status = check_is_on_device(plan, err);
    if (status || !plan->info.grid)
        return status;
    jfa_device *device = plan->kernel->module->device;
    uint64_t address = plan->records.address + plan->status_at, found;
    status = jfa_synchronise(device, stream, err);
    if (!status)
        status = jfa_copy_from_device(device, &found, address, sizeof found, err);
    if (status || found == JFA_NOTHING_WRONG)
        return status;
    status = jfa_copy_to_device(device, address, &JFA_NOTHING_WRONG, sizeof found, err);
    return status ? status : jfa_planner_verdict(&plan->kernel->manifest, found, err);
}

// ---------------------------------------------------------------- launching

jfa_status jfa_launch(const jfa_plan *plan, void *stream, jfa_error *err) {
    if (!plan)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the plan is NULL");
    if (plan->planner_block && !atomic_load(&plan->is_updated))
        return FAIL(err, JFA_ERROR_ARGUMENT,
                    "the plan's offsets are on the device: call jfa_plan_update before the first launch");
    if (!plan->info.grid)
        return JFA_OK;
    const jfa_kernel_info *info = &plan->kernel->manifest.info;
    jfa_device *device = plan->kernel->module->device;
    jfa_launch_desc desc = {
        .grid = {(uint32_t)plan->info.grid, 1, 1},
        .block = {(uint32_t)info->threads, 1, 1},
        .cluster = {(uint32_t)info->cluster, 1, 1},
        .shared_bytes = (uint32_t)info->shared_bytes,
        .params = plan->block,
        .params_bytes = plan->block_bytes,
        .stream = stream,
    };
    jfa_error mine;
    mine.message[0] = '\0';
    return jfa_device_result(device,
                             device->backend->launch(device->handle, plan->kernel->function, &desc, &mine),
                             &mine, err, "launch a kernel");
}
