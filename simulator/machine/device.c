// device.c: the simulator as a backend of the runtime.
#include "simulator/machine/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static jfa_status failed(jfa_error *err, jfa_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static jfa_status failed(jfa_error *err, jfa_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    err->status = status;
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return status;
}

// ---------------------------------------------------------------- the device

static jfa_status sim_open(const char *spec, void **device, jfa_device_props *props, jfa_error *err) {
    char arch[16];
    int sms = 4;
    char rest; // nothing may follow the number
    const char *comma = strchr(spec, ',');
    size_t length = comma ? (size_t)(comma - spec) : strlen(spec);
    snprintf(arch, sizeof arch, "%.*s", (int)length, spec);
    if ((strcmp(arch, "sm_100a") && strcmp(arch, "sm_90a")) ||
        (comma && sscanf(comma, ",sms=%d%c", &sms, &rest) != 1) || sms < 1 || sms > 1024)
        return failed(err, JFA_ERROR_NOT_FOUND,
                      "no simulated device 'sim:%s'; there are sim:sm_100a and sim:sm_90a, with ',sms=N' for "
                      "N multiprocessors",
                      spec);
    Sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return failed(err, JFA_ERROR_OUT_OF_MEMORY, "out of memory");
    snprintf(sim->arch, sizeof sim->arch, "%s", arch);
    sim->is_sm100 = !strcmp(arch, "sm_100a");
    sim->sm_count = sms;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    sim->threads = cores > 0 ? (int)cores : 1;
    sim->check_races = true;
    sim->next_address = 0x7000000000ull;
    pthread_mutex_init(&sim->call_lock, NULL);
    pthread_mutex_init(&sim->memory_lock, NULL);
    memset(props, 0, sizeof *props);
    snprintf(props->name, sizeof props->name, "simulated %s", arch);
    snprintf(props->arch, sizeof props->arch, "%s", arch);
    props->sm_count = sms;
    props->shared_bytes_per_cta = SHARED_LIMIT;
    *device = sim;
    return JFA_OK;
}

// Very large allocations take address space only; the host's pages come with the first touch. So tensors of
// more than 2^31 elements can be simulated where few of them are used.
#define SPARSE_BYTES ((size_t)256 << 20)

static uint8_t *new_bytes(size_t size, bool is_sparse) {
    if (!is_sparse)
        return calloc(1, size);
    void *bytes =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return bytes == MAP_FAILED ? NULL : bytes;
}

static void free_bytes(uint8_t *bytes, size_t size, bool is_sparse) {
    if (is_sparse && bytes)
        munmap(bytes, size);
    else
        free(bytes);
}

static void sim_close(void *device) {
    Sim *sim = device;
    if (!sim)
        return;
    for (int i = 0; i < sim->allocation_count; i++) {
        free_bytes(sim->allocations[i].data, sim->allocations[i].bytes, sim->allocations[i].is_sparse);
        free_bytes(sim->allocations[i].written, sim->allocations[i].bytes, sim->allocations[i].is_sparse);
    }
    free(sim->allocations);
    pthread_mutex_destroy(&sim->memory_lock);
    pthread_mutex_destroy(&sim->call_lock);
    free(sim);
}

// ---------------------------------------------------------------- memory

enum { GAP = 64 * 1024 }; // between allocations, so that overruns hit nothing

static jfa_status sim_alloc(void *device, size_t bytes, uint64_t *address, jfa_error *err) {
    Sim *sim = device;
    size_t size = bytes ? bytes : 1;
    bool is_sparse = size >= SPARSE_BYTES;
    uint8_t *data = new_bytes(size, is_sparse), *written = new_bytes(size, is_sparse);
    Allocation *list = sim->allocations;
    if (sim->allocation_count == sim->allocation_capacity) {
        int capacity = sim->allocation_capacity ? 2 * sim->allocation_capacity : 64;
        list = realloc(sim->allocations, sizeof *list * (size_t)capacity);
        if (list) {
            sim->allocations = list;
            sim->allocation_capacity = capacity;
        }
    }
    if (!data || !written || !list) {
        free_bytes(data, size, is_sparse);
        free_bytes(written, size, is_sparse);
        return failed(err, JFA_ERROR_OUT_OF_MEMORY, "out of memory for %zu bytes on the simulated device",
                      bytes);
    }
    if (!is_sparse)
        memset(data, 0xFF, size); // NaN in every float type
    *address = sim->next_address;
    sim->allocations[sim->allocation_count++] = (Allocation){*address, size, data, written, false, is_sparse};
    sim->next_address = (sim->next_address + size + GAP + 255) / 256 * 256;
    return JFA_OK;
}

static jfa_status sim_free(void *device, uint64_t address, jfa_error *err) {
    Sim *sim = device;
    Allocation *a = machine_allocation(sim, address, 1);
    if (!a || a->address != address)
        return failed(err, JFA_ERROR_ARGUMENT, "0x%llx is not the start of an allocation",
                      (unsigned long long)address);
    free_bytes(a->data, a->bytes, a->is_sparse);
    free_bytes(a->written, a->bytes, a->is_sparse);
    a->data = a->written = NULL;
    a->freed = true;
    return JFA_OK;
}

static jfa_status range(Sim *sim, uint64_t address, size_t bytes, Allocation **a, jfa_error *err) {
    *a = machine_allocation(sim, address, bytes);
    return *a ? JFA_OK
              : failed(err, JFA_ERROR_ARGUMENT, "%zu bytes at 0x%llx are outside every allocation", bytes,
                       (unsigned long long)address);
}

static jfa_status sim_copy_in(void *device, uint64_t to, const void *from, size_t bytes, jfa_error *err) {
    Allocation *a;
    if (!bytes)
        return JFA_OK;
    jfa_status status = range(device, to, bytes, &a, err);
    if (status == JFA_OK) {
        memcpy(a->data + (to - a->address), from, bytes);
        memset(a->written + (to - a->address), 1, bytes);
    }
    return status;
}

static jfa_status sim_copy_out(void *device, void *to, uint64_t from, size_t bytes, jfa_error *err) {
    Allocation *a;
    if (!bytes)
        return JFA_OK;
    jfa_status status = range(device, from, bytes, &a, err);
    if (status == JFA_OK)
        memcpy(to, a->data + (from - a->address), bytes);
    return status;
}

static jfa_status sim_check_memory(void *device, uint64_t address, uint64_t bytes, jfa_error *err) {
    const Allocation *a = machine_allocation(device, address, 1);
    if (!a)
        return failed(err, JFA_ERROR_PROBLEM, "its address, 0x%llx, is in no allocation",
                      (unsigned long long)address);
    uint64_t there = a->bytes - (address - a->address);
    return bytes <= there ? JFA_OK
                          : failed(err, JFA_ERROR_PROBLEM,
                                   "the allocation of its address, 0x%llx, ends after %llu bytes",
                                   (unsigned long long)address, (unsigned long long)there);
}

// ---------------------------------------------------------------- modules

static void sim_module_unload(void *device, void *handle) {
    Module *module = handle;
    jfa_error ignored;
    if (!module)
        return;
    for (int i = 0; module->ptx && module->global_symbols && i < module->ptx->symbol_count; i++)
        if (module->global_symbols[i])
            sim_free(device, module->global_symbols[i], &ignored);
    for (int i = 0; module->programs && i < module->ptx->entry_count; i++)
        decode_free(&module->programs[i]);
    free(module->programs);
    free(module->global_symbols);
    if (module->ptx)
        ptx_free(module->ptx);
    free(module);
}

static jfa_status place_globals(Sim *sim, Module *module, jfa_error *err) {
    for (int i = 0; i < module->ptx->symbol_count; i++) {
        const PtxSymbol *symbol = &module->ptx->symbols[i];
        if ((symbol->space != PTX_SPACE_GLOBAL && symbol->space != PTX_SPACE_CONST) || symbol->is_extern)
            continue;
        jfa_status status = sim_alloc(sim, (size_t)symbol->bytes, &module->global_symbols[i], err);
        if (status == JFA_OK && symbol->bytes) {
            uint8_t *zeros = symbol->initial ? NULL : calloc(1, (size_t)symbol->bytes);
            status = sim_copy_in(sim, module->global_symbols[i], symbol->initial ? symbol->initial : zeros,
                                 (size_t)symbol->bytes, err);
            free(zeros);
        }
        if (status != JFA_OK)
            return status;
    }
    return JFA_OK;
}

static jfa_status load(Sim *sim, Module *module, const void *image, size_t bytes, jfa_error *err) {
    PtxError error;
    module->ptx = ptx_parse(image, bytes, &error);
    if (!module->ptx)
        return failed(err, JFA_ERROR_IMAGE, "PTX line %d:%d: %s", error.line, error.column, error.message);
    if (strcmp(module->ptx->target, sim->arch))
        return failed(err, JFA_ERROR_TARGET, "the module is for %s, the device is %s", module->ptx->target,
                      sim->arch);
    module->programs = calloc((size_t)module->ptx->entry_count + 1, sizeof(Program));
    module->global_symbols = calloc((size_t)module->ptx->symbol_count + 1, sizeof(uint64_t));
    if (!module->programs || !module->global_symbols)
        return failed(err, JFA_ERROR_OUT_OF_MEMORY, "out of memory");
    jfa_status status = place_globals(sim, module, err);
    for (int i = 0; status == JFA_OK && i < module->ptx->entry_count; i++) {
        char message[256];
        if (!decode_entry(module, i, &module->programs[i], message))
            status = failed(err, JFA_ERROR_UNSUPPORTED, "%s", message);
    }
    return status;
}

static jfa_status sim_module_load(void *device, const void *image, size_t bytes, void **handle,
                                  jfa_error *err) {
    if (bytes >= 4 && !memcmp(image, "\177ELF", 4))
        return failed(err, JFA_ERROR_IMAGE, "the simulator runs PTX, not a cubin; build with --emit ptx");
    Module *module = calloc(1, sizeof *module);
    if (!module)
        return failed(err, JFA_ERROR_OUT_OF_MEMORY, "out of memory");
    module->sim = device;
    jfa_status status = load(device, module, image, bytes, err);
    if (status != JFA_OK) {
        sim_module_unload(device, module);
        return status;
    }
    *handle = module;
    return JFA_OK;
}

static jfa_status sim_function_get(void *device, void *handle, const char *name, void **function,
                                   jfa_error *err) {
    (void)device;
    Module *module = handle;
    int entry = ptx_find_entry(module->ptx, name);
    if (entry < 0)
        return failed(err, JFA_ERROR_NOT_FOUND, "the module has no kernel '%s'", name);
    *function = &module->programs[entry];
    // The program leads back to its module.
    module->programs[entry].module = module->ptx;
    return JFA_OK;
}

// ---------------------------------------------------------------- tensor maps

static jfa_status sim_encode_tensor_map(void *device, const jfa_tensor_map *map, uint8_t out[128],
                                        jfa_error *err) {
    (void)device;
    enum { FLOAT16 = 6, FLOAT32 = 7, BFLOAT16 = 9, INT32 = 3, UINT8 = 0 }; // CUtensorMapDataType
    SimTensorMap sim = {.rank = map->rank, .address = map->address, .swizzle_bytes = map->swizzle_bytes};
    sim.kind = map->dtype == JFA_BF16  ? BFLOAT16
               : map->dtype == JFA_F16 ? FLOAT16
               : map->dtype == JFA_F32 ? FLOAT32
               : map->dtype == JFA_I32 ? INT32
                                       : UINT8;
    sim.dtype_bytes = sim.kind == BFLOAT16 || sim.kind == FLOAT16 ? 2 : sim.kind == UINT8 ? 1 : 4;
    for (int i = 0; i < 5; i++) {
        sim.dims[i] = map->dims[i];
        sim.strides[i] = map->strides[i];
        sim.box[i] = map->box[i];
    }
    char message[200];
    if (!sim_tensor_map_check(&sim, message))
        return failed(err, JFA_ERROR_ARGUMENT, "tensor map: %s", message);
    sim_tensor_map_encode(&sim, out);
    return JFA_OK;
}

// ---------------------------------------------------------------- launches

static jfa_status check_launch(const Sim *sim, const Program *program, const jfa_launch_desc *desc,
                               jfa_error *err) {
    const PtxEntry *entry = program->entry;
    uint64_t threads = (uint64_t)desc->block[0] * desc->block[1] * desc->block[2];
    if (!threads || threads > 1024)
        return failed(err, JFA_ERROR_ARGUMENT, "%llu threads a CTA; 1..1024 are possible",
                      (unsigned long long)threads);
    for (int i = 0; i < 3; i++) {
        if (entry->required_threads[0] &&
            (uint32_t)(entry->required_threads[i] ? entry->required_threads[i] : 1) != desc->block[i])
            return failed(err, JFA_ERROR_ARGUMENT, "kernel '%s' requires %d x %d x %d threads", entry->name,
                          entry->required_threads[0], entry->required_threads[1], entry->required_threads[2]);
        if (!desc->cluster[i] || desc->grid[i] % desc->cluster[i])
            return failed(err, JFA_ERROR_ARGUMENT, "grid extent %u is not a multiple of cluster extent %u",
                          desc->grid[i], desc->cluster[i]);
    }
    if ((uint64_t)desc->cluster[0] * desc->cluster[1] * desc->cluster[2] > MAX_CTAS)
        return failed(err, JFA_ERROR_ARGUMENT, "a cluster has at most %d CTAs", MAX_CTAS);
    if ((int64_t)desc->shared_bytes + program->module->shared_bytes > SHARED_LIMIT)
        return failed(err, JFA_ERROR_ARGUMENT, "%lld bytes of shared memory; a CTA has %d",
                      (long long)desc->shared_bytes + (long long)program->module->shared_bytes, SHARED_LIMIT);
    if (desc->params_bytes < (size_t)entry->param_bytes)
        return failed(err, JFA_ERROR_ARGUMENT, "%zu bytes of parameters; kernel '%s' takes %lld",
                      desc->params_bytes, entry->name, (long long)entry->param_bytes);
    (void)sim;
    return JFA_OK;
}

static jfa_status sim_launch(void *device, void *function, const jfa_launch_desc *desc, jfa_error *err) {
    Sim *sim = device;
    const Program *program = function;
    memset(&sim->last_fault, 0, sizeof sim->last_fault);
    jfa_status status = check_launch(sim, program, desc, err);
    if (status != JFA_OK)
        return status;
    // ptx_parse keeps one module; the launch needs it for names and lines.
    Module view = {.sim = sim, .ptx = (PtxModule *)(uintptr_t)program->module};
    Launch launch = {.sim = sim,
                     .module = &view,
                     .program = program,
                     .dynamic_shared = desc->shared_bytes,
                     .params = desc->params,
                     .param_bytes = desc->params_bytes,
                     .seed = sim->seed,
                     .check_races = sim->check_races};
    // Dynamic shared memory begins after the static, on the largest alignment that a declaration asks for.
    launch.static_shared = (uint32_t)program->module->shared_bytes;
    for (int i = 0; i < program->module->symbol_count; i++) {
        const PtxSymbol *symbol = &program->module->symbols[i];
        uint32_t align = symbol->align > 1 ? (uint32_t)symbol->align : 1;
        if (symbol->space == PTX_SPACE_SHARED && symbol->is_extern)
            launch.static_shared = (launch.static_shared + align - 1) / align * align;
    }
    memcpy(launch.grid, desc->grid, sizeof launch.grid);
    memcpy(launch.block, desc->block, sizeof launch.block);
    memcpy(launch.cluster, desc->cluster, sizeof launch.cluster);
    launch.cluster_total = (uint64_t)(desc->grid[0] / desc->cluster[0]) * (desc->grid[1] / desc->cluster[1]) *
                           (desc->grid[2] / desc->cluster[2]);
    bool good = run_launch(&launch);
    sim->executed = launch.executed;
    if (good)
        return JFA_OK;
    sim->last_fault = launch.fault;
    return failed(err, JFA_ERROR_LAUNCH, "%s", launch.fault.text);
}

static jfa_status sim_synchronise(void *device, void *stream, jfa_error *err) {
    (void)device, (void)stream, (void)err; // a launch returns when it is done
    return JFA_OK;
}

static jfa_status sim_set_option(void *device, const char *name, int64_t value, jfa_error *err) {
    Sim *sim = device;
    if (!strcmp(name, "seed"))
        sim->seed = (uint64_t)value;
    else if (!strcmp(name, "threads"))
        sim->threads = value < 1 ? 1 : (int)value;
    else if (!strcmp(name, "race"))
        sim->check_races = value != 0;
    else if (!strcmp(name, "steps"))
        sim->step_limit = value < 0 ? 0 : (uint64_t)value;
    else
        return failed(err, JFA_ERROR_UNSUPPORTED,
                      "the simulator has no option '%s'; there are seed, threads, race and steps", name);
    return JFA_OK;
}

// ---------------------------------------------------------------- the table

// A device may be used by several threads at once: what it keeps (allocations, the last fault) belongs to one
// call at a time. A launch runs on threads of its own, so nothing is lost.
static jfa_status leave(Sim *sim, jfa_status status) {
    pthread_mutex_unlock(&sim->call_lock);
    return status;
}
static Sim *enter(void *device) {
    Sim *sim = device;
    pthread_mutex_lock(&sim->call_lock);
    return sim;
}

static jfa_status alloc_alone(void *device, size_t bytes, uint64_t *address, jfa_error *err) {
    Sim *sim = enter(device);
    return leave(sim, sim_alloc(sim, bytes, address, err));
}
static jfa_status free_alone(void *device, uint64_t address, jfa_error *err) {
    Sim *sim = enter(device);
    return leave(sim, sim_free(sim, address, err));
}
static jfa_status copy_in_alone(void *device, uint64_t to, const void *from, size_t bytes, jfa_error *err) {
    Sim *sim = enter(device);
    return leave(sim, sim_copy_in(sim, to, from, bytes, err));
}
static jfa_status copy_out_alone(void *device, void *to, uint64_t from, size_t bytes, jfa_error *err) {
    Sim *sim = enter(device);
    return leave(sim, sim_copy_out(sim, to, from, bytes, err));
}
static jfa_status check_memory_alone(void *device, uint64_t address, uint64_t bytes, jfa_error *err) {
    Sim *sim = enter(device);
    return leave(sim, sim_check_memory(sim, address, bytes, err));
}
static jfa_status module_load_alone(void *device, const void *image, size_t bytes, void **module,
                                    jfa_error *err) {
    Sim *sim = enter(device);
    return leave(sim, sim_module_load(sim, image, bytes, module, err));
}
static void module_unload_alone(void *device, void *module) {
    Sim *sim = enter(device);
    sim_module_unload(sim, module);
    leave(sim, JFA_OK);
}
static jfa_status launch_alone(void *device, void *function, const jfa_launch_desc *desc, jfa_error *err) {
    Sim *sim = enter(device);
    return leave(sim, sim_launch(sim, function, desc, err));
}
static jfa_status set_option_alone(void *device, const char *name, int64_t value, jfa_error *err) {
    Sim *sim = enter(device);
    return leave(sim, sim_set_option(sim, name, value, err));
}

static const jfa_backend BACKEND = {
    .scheme = "sim",
    .open = sim_open,
    .close = sim_close,
    .alloc = alloc_alone,
    .free = free_alone,
    .copy_in = copy_in_alone,
    .copy_out = copy_out_alone,
    .check_memory = check_memory_alone,
    .module_load = module_load_alone,
    .module_unload = module_unload_alone,
    .function_get = sim_function_get,
    .encode_tensor_map = sim_encode_tensor_map,
    .launch = launch_alone,
    .synchronise = sim_synchronise,
    .set_option = set_option_alone,
};

const jfa_backend *jfa_sim_backend(void) {
    return &BACKEND;
}

void jfa_sim_on_progress(void *device, SimProgress progress, void *context) {
    Sim *sim = device;
    sim->progress = progress;
    sim->progress_context = context;
}

uint64_t jfa_sim_executed(void *device) {
    return ((Sim *)device)->executed;
}

const SimFault *jfa_sim_last_fault(void *device) {
    return &((Sim *)device)->last_fault;
}
