// backend_cuda.c: NVIDIA GPUs by the CUDA driver API. The driver's library is loaded when a device is opened,
// so a machine without one can still use other backends. Types and constants are those of cuda.h (CUDA Driver
// API, 12.0 and later); they are declared here so that building needs no CUDA toolkit.
#include "runtime/internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult, CUdevice;
typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream;
typedef uint64_t CUdeviceptr;

typedef struct {
    int id;
    char unused[4];
    union {
        struct {
            unsigned x, y, z;
        } cluster;
        char unused[64];
    } value;
} CUlaunchAttribute;

typedef struct {
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned attribute_count;
} CUlaunchConfig;

enum {
    DEVICE_ATTRIBUTE_SM_COUNT = 16,
    DEVICE_ATTRIBUTE_CAPABILITY_MAJOR = 75,
    DEVICE_ATTRIBUTE_CAPABILITY_MINOR = 76,
    DEVICE_ATTRIBUTE_SHARED_OPTIN = 97,
    FUNCTION_ATTRIBUTE_DYNAMIC_SHARED = 8,
    LAUNCH_ATTRIBUTE_CLUSTER = 4,
    JIT_ERROR_LOG_BUFFER = 5,
    JIT_ERROR_LOG_BYTES = 6,
    PARAM_END = 0,
    PARAM_BUFFER = 1,
    PARAM_BYTES = 2,
};

// The driver's functions by their versioned names.
#define FUNCTIONS(F)                                                                                         \
    F(init, "cuInit", (unsigned))                                                                            \
    F(error_text, "cuGetErrorString", (CUresult, const char **))                                             \
    F(device_get, "cuDeviceGet", (CUdevice *, int))                                                          \
    F(device_count, "cuDeviceGetCount", (int *))                                                             \
    F(device_name, "cuDeviceGetName", (char *, int, CUdevice))                                               \
    F(device_attribute, "cuDeviceGetAttribute", (int *, int, CUdevice))                                      \
    F(context_retain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                                   \
    F(context_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                                           \
    F(context_push, "cuCtxPushCurrent_v2", (CUcontext))                                                      \
    F(context_pop, "cuCtxPopCurrent_v2", (CUcontext *))                                                      \
    F(memory_alloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                                \
    F(memory_free, "cuMemFree_v2", (CUdeviceptr))                                                            \
    F(copy_in, "cuMemcpyHtoD_v2", (CUdeviceptr, const void *, size_t))                                       \
    F(copy_out, "cuMemcpyDtoH_v2", (void *, CUdeviceptr, size_t))                                            \
    F(module_load, "cuModuleLoadDataEx", (CUmodule *, const void *, unsigned, int *, void **))               \
    F(module_unload, "cuModuleUnload", (CUmodule))                                                           \
    F(module_function, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))                        \
    F(function_set, "cuFuncSetAttribute", (CUfunction, int, int))                                            \
    F(encode_tiled, "cuTensorMapEncodeTiled",                                                                \
      (void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,                  \
       const uint32_t *, int, int, int, int))                                                                \
    F(launch, "cuLaunchKernelEx", (const CUlaunchConfig *, CUfunction, void **, void **))                    \
    F(stream_synchronise, "cuStreamSynchronize", (CUstream))                                                 \
    F(context_synchronise, "cuCtxSynchronize", (void))

#define DECLARE(name, symbol, arguments) CUresult(*name) arguments;
static struct { FUNCTIONS(DECLARE) } cuda;

typedef struct {
    CUdevice number;
    CUcontext context;
} Device;

// ---------------------------------------------------------------- the driver's library

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static bool is_loaded;

static jfa_status load_functions(void *library, jfa_error *err) {
#define RESOLVE(name, symbol, arguments)                                                                     \
    *(void **)&cuda.name = dlsym(library, symbol);                                                           \
    if (!cuda.name)                                                                                          \
        return jfa_error_set(err, JFA_ERROR_NOT_FOUND,                                                       \
                             "the CUDA driver is too old: it has no %s; CUDA 12.0 or later is needed",       \
                             symbol);
    FUNCTIONS(RESOLVE)
#undef RESOLVE
    CUresult result = cuda.init(0);
    if (result)
        return jfa_error_set(err, JFA_ERROR_NOT_FOUND,
                             "the CUDA driver finds no usable GPU (cuInit: error %d)", result);
    return JFA_OK;
}

static jfa_status load_driver(jfa_error *err) {
    pthread_mutex_lock(&loading);
    jfa_status status = JFA_OK;
    if (!is_loaded) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        status = library ? load_functions(library, err)
                         : jfa_error_set(err, JFA_ERROR_NOT_FOUND,
                                         "there is no CUDA driver on this machine (libcuda.so.1); kernels "
                                         "can run on sim:sm_100a and sim:sm_90a");
        is_loaded = status == JFA_OK;
        if (library && !is_loaded)
            dlclose(library);
    }
    pthread_mutex_unlock(&loading);
    return status;
}

static jfa_status check(CUresult result, const char *what, jfa_error *err) {
    if (!result)
        return JFA_OK;
    const char *text = NULL;
    cuda.error_text(result, &text);
    enum { OUT_OF_MEMORY = 2, LAUNCH_FAILURES = 700 };
    jfa_status status = result == OUT_OF_MEMORY                     ? JFA_ERROR_OUT_OF_MEMORY
                        : result >= LAUNCH_FAILURES && result < 800 ? JFA_ERROR_LAUNCH
                                                                    : JFA_ERROR_DEVICE;
    return jfa_error_set(err, status, "%s: CUDA error %d, %s", what, result, text ? text : "unknown");
}

// The device's context is current between enter and leave; the caller's own comes back.
static jfa_status enter(Device *device, jfa_error *err) {
    return check(cuda.context_push(device->context), "cuCtxPushCurrent", err);
}

static void leave(void) {
    CUcontext ignored;
    cuda.context_pop(&ignored);
}

// ---------------------------------------------------------------- devices

static int attribute(CUdevice device, int which) {
    int value = 0;
    cuda.device_attribute(&value, which, device);
    return value;
}

static jfa_status cuda_open(const char *spec, void **handle, jfa_device_props *props, jfa_error *err) {
    char *end;
    long number = strtol(spec, &end, 10);
    if (!*spec || *end || number < 0 || number > 1023)
        return jfa_error_set(err, JFA_ERROR_NOT_FOUND,
                             "'cuda:%.32s' names no GPU; it is cuda: and a number from 0", spec);
    jfa_status status = load_driver(err);
    if (status)
        return status;
    int count = 0;
    cuda.device_count(&count);
    if (number >= count)
        return jfa_error_set(err, JFA_ERROR_NOT_FOUND, "there is no cuda:%ld: the driver sees %d GPU%s",
                             number, count, count == 1 ? "" : "s");
    Device *device = calloc(1, sizeof *device);
    if (!device)
        return jfa_error_set(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for a device");
    status = check(cuda.device_get(&device->number, (int)number), "cuDeviceGet", err);
    status = status ? status
                    : check(cuda.context_retain(&device->context, device->number), "cuDevicePrimaryCtxRetain",
                            err);
    if (status) {
        free(device);
        return status;
    }
    memset(props, 0, sizeof *props);
    cuda.device_name(props->name, sizeof props->name - 1, device->number);
    int major = attribute(device->number, DEVICE_ATTRIBUTE_CAPABILITY_MAJOR),
        minor = attribute(device->number, DEVICE_ATTRIBUTE_CAPABILITY_MINOR);
    snprintf(props->arch, sizeof props->arch, "sm_%d%da", major, minor);
    props->sm_count = attribute(device->number, DEVICE_ATTRIBUTE_SM_COUNT);
    props->shared_bytes_per_cta = attribute(device->number, DEVICE_ATTRIBUTE_SHARED_OPTIN);
    *handle = device;
    return JFA_OK;
}

static void cuda_close(void *handle) {
    Device *device = handle;
    if (device)
        cuda.context_release(device->number);
    free(device);
}

// ---------------------------------------------------------------- memory

static jfa_status cuda_alloc(void *handle, size_t bytes, uint64_t *address, jfa_error *err) {
    jfa_status status = enter(handle, err);
    if (status)
        return status;
    status = check(cuda.memory_alloc(address, bytes ? bytes : 1), "cuMemAlloc", err);
    leave();
    return status;
}

static jfa_status cuda_free(void *handle, uint64_t address, jfa_error *err) {
    jfa_status status = enter(handle, err);
    if (status)
        return status;
    status = check(cuda.memory_free(address), "cuMemFree", err);
    leave();
    return status;
}

static jfa_status cuda_copy_in(void *handle, uint64_t to, const void *from, size_t bytes, jfa_error *err) {
    jfa_status status = enter(handle, err);
    if (status)
        return status;
    status = check(cuda.copy_in(to, from, bytes), "cuMemcpyHtoD", err);
    leave();
    return status;
}

static jfa_status cuda_copy_out(void *handle, void *to, uint64_t from, size_t bytes, jfa_error *err) {
    jfa_status status = enter(handle, err);
    if (status)
        return status;
    status = check(cuda.copy_out(to, from, bytes), "cuMemcpyDtoH", err);
    leave();
    return status;
}

// ---------------------------------------------------------------- modules

static jfa_status cuda_module_load(void *handle, const void *image, size_t bytes, void **module,
                                   jfa_error *err) {
    (void)bytes; // a cubin knows its size, PTX ends with a NUL
    jfa_status status = enter(handle, err);
    if (status)
        return status;
    char log[512] = "";
    int options[] = {JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    status = check(cuda.module_load(module, image, 2, options, values), "cuModuleLoadData", err);
    if (status) {
        size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof err->message - used, "%s%s", log[0] ? ": " : "", log);
        err->status = status = JFA_ERROR_IMAGE;
    }
    leave();
    return status;
}

static void cuda_module_unload(void *handle, void *module) {
    jfa_error ignored;
    if (enter(handle, &ignored))
        return;
    cuda.module_unload(module);
    leave();
}

static jfa_status cuda_function_get(void *handle, void *module, const char *name, void **function,
                                    jfa_error *err) {
    jfa_status status = enter(handle, err);
    if (status)
        return status;
    status = check(cuda.module_function(function, module, name), name, err);
    int shared = attribute(((Device *)handle)->number, DEVICE_ATTRIBUTE_SHARED_OPTIN);
    if (!status)
        status = check(cuda.function_set(*function, FUNCTION_ATTRIBUTE_DYNAMIC_SHARED, shared),
                       "cuFuncSetAttribute", err);
    leave();
    return status;
}

// ---------------------------------------------------------------- launches

static jfa_status cuda_encode_tensor_map(void *handle, const jfa_tensor_map *map, uint8_t out[128],
                                         jfa_error *err) {
    // CUtensorMapDataType; 8-bit types are moved as bytes.
    static const int TYPES[JFA_DTYPE_COUNT] = {
        [JFA_F32] = 7, [JFA_F16] = 6, [JFA_BF16] = 9, [JFA_E4M3] = 0, [JFA_E5M2] = 0, [JFA_E8M0] = 0,
        [JFA_I8] = 0,  [JFA_U8] = 0,  [JFA_I32] = 3,  [JFA_U32] = 2,  [JFA_I64] = 5};
    enum { INTERLEAVE_NONE = 0, PROMOTE_L2_256B = 3, FILL_ZEROS = 0 };
    static const uint32_t ONES[5] = {1, 1, 1, 1, 1};
    int swizzle = map->swizzle_bytes == 128  ? 3
                  : map->swizzle_bytes == 64 ? 2
                  : map->swizzle_bytes == 32 ? 1
                                             : 0;
    _Alignas(64) uint8_t encoded[128];
    jfa_status status = enter(handle, err);
    if (status)
        return status;
    status = check(cuda.encode_tiled(encoded, TYPES[map->dtype], (uint32_t)map->rank,
                                     (void *)(uintptr_t)map->address, map->dims, map->strides + 1, map->box,
                                     ONES, INTERLEAVE_NONE, swizzle, PROMOTE_L2_256B, FILL_ZEROS),
                   "cuTensorMapEncodeTiled", err);
    leave();
    if (!status)
        memcpy(out, encoded, sizeof encoded);
    return status;
}

static jfa_status cuda_launch(void *handle, void *function, const jfa_launch_desc *desc, jfa_error *err) {
    size_t bytes = desc->params_bytes;
    void *extra[] = {(void *)PARAM_BUFFER, (void *)(uintptr_t)desc->params, (void *)PARAM_BYTES, &bytes,
                     (void *)PARAM_END};
    CUlaunchAttribute cluster = {.id = LAUNCH_ATTRIBUTE_CLUSTER};
    cluster.value.cluster.x = desc->cluster[0];
    cluster.value.cluster.y = desc->cluster[1];
    cluster.value.cluster.z = desc->cluster[2];
    bool has_cluster = desc->cluster[0] * desc->cluster[1] * desc->cluster[2] > 1;
    CUlaunchConfig config = {.shared_bytes = desc->shared_bytes,
                             .stream = desc->stream,
                             .attributes = has_cluster ? &cluster : NULL,
                             .attribute_count = has_cluster};
    memcpy(config.grid, desc->grid, sizeof config.grid);
    memcpy(config.block, desc->block, sizeof config.block);
    jfa_status status = enter(handle, err);
    if (status)
        return status;
    status = check(cuda.launch(&config, function, NULL, extra), "cuLaunchKernel", err);
    leave();
    return status;
}

static jfa_status cuda_synchronise(void *handle, void *stream, jfa_error *err) {
    jfa_status status = enter(handle, err);
    if (status)
        return status;
    status = check(stream ? cuda.stream_synchronise(stream) : cuda.context_synchronise(),
                   "the kernel failed while it ran", err);
    leave();
    return status;
}

static jfa_status cuda_set_option(void *handle, const char *name, int64_t value, jfa_error *err) {
    (void)handle, (void)value;
    return jfa_error_set(err, JFA_ERROR_UNSUPPORTED, "a CUDA device has no option '%.64s'", name);
}

const jfa_backend jfa_cuda_backend = {
    .scheme = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
    .module_load = cuda_module_load,
    .module_unload = cuda_module_unload,
    .function_get = cuda_function_get,
    .encode_tensor_map = cuda_encode_tensor_map,
    .launch = cuda_launch,
    .synchronise = cuda_synchronise,
    .set_option = cuda_set_option,
};
