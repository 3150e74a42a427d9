// backend_cuda.c: NVIDIA GPUs by the CUDA driver API. The driver's library is loaded when a device is opened,
// so a machine without one can still use other backends. Types and constants are those of cuda.h (CUDA Driver
// API, 12.0 and later); they are declared here so that building needs no CUDA toolkit.
//
// Threads: contexts are current for one thread, and each function makes the device's own current while it
// runs, so that any thread may call for any device. What is written after the driver is loaded belongs to one
// device's handle.
#include "runtime/internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult, CUdevice;
typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream, *CUevent;
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
    OLDEST_VERSION = 12000, // cuDriverGetVersion: 1000 * major + 10 * minor; tensor maps came with 12.0
    RESULT_OUT_OF_MEMORY = 2,
    RESULT_NO_DEVICE = 100,
    RESULT_NO_BINARY = 209,
    RESULT_UNSUPPORTED_PTX = 222,
    RESULT_FIRST_LAUNCH_FAILURE = 700,
    RESULT_LAST_LAUNCH_FAILURE = 799,
    DEVICE_ATTRIBUTE_SM_COUNT = 16,
    DEVICE_ATTRIBUTE_CAPABILITY_MAJOR = 75,
    DEVICE_ATTRIBUTE_CAPABILITY_MINOR = 76,
    DEVICE_ATTRIBUTE_PAGEABLE_ACCESS = 88,
    DEVICE_ATTRIBUTE_SHARED_OPTIN = 97,
    POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    HOST_PORTABLE = 1,
    HOST_MAPPED = 2,
    STREAM_NON_BLOCKING = 1,
    FUNCTION_ATTRIBUTE_STATIC_SHARED = 1,
    FUNCTION_ATTRIBUTE_DYNAMIC_SHARED = 8,
    FUNCTION_ATTRIBUTE_CARVEOUT = 9,
    LAUNCH_ATTRIBUTE_CLUSTER = 4,
    JIT_ERROR_LOG_BUFFER = 5,
    JIT_ERROR_LOG_BYTES = 6,
    PARAM_END = 0,
    PARAM_BUFFER = 1,
    PARAM_BYTES = 2,
};

// The driver's functions by their versioned names.
#define FUNCTIONS(F)                                                                                         \
    F(driver_version, "cuDriverGetVersion", (int *))                                                         \
    F(init, "cuInit", (unsigned))                                                                            \
    F(error_text, "cuGetErrorString", (CUresult, const char **))                                             \
    F(device_get, "cuDeviceGet", (CUdevice *, int))                                                          \
    F(device_count, "cuDeviceGetCount", (int *))                                                             \
    F(device_name, "cuDeviceGetName", (char *, int, CUdevice))                                               \
    F(device_attribute, "cuDeviceGetAttribute", (int *, int, CUdevice))                                      \
    F(context_retain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                                   \
    F(context_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                                           \
    F(context_current, "cuCtxGetCurrent", (CUcontext *))                                                     \
    F(context_device, "cuCtxGetDevice", (CUdevice *))                                                        \
    F(context_push, "cuCtxPushCurrent_v2", (CUcontext))                                                      \
    F(context_pop, "cuCtxPopCurrent_v2", (CUcontext *))                                                      \
    F(memory_alloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                                \
    F(memory_free, "cuMemFree_v2", (CUdeviceptr))                                                            \
    F(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                             \
    F(host_address, "cuMemHostGetDevicePointer_v2", (CUdeviceptr *, void *, unsigned))                       \
    F(host_free, "cuMemFreeHost", (void *))                                                                  \
    F(pointer_attribute, "cuPointerGetAttribute", (void *, int, CUdeviceptr))                                \
    F(upload, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void *, size_t, CUstream))                         \
    F(copy_in, "cuMemcpyHtoD_v2", (CUdeviceptr, const void *, size_t))                                       \
    F(copy_out, "cuMemcpyDtoH_v2", (void *, CUdeviceptr, size_t))                                            \
    F(module_load, "cuModuleLoadDataEx", (CUmodule *, const void *, unsigned, int *, void **))               \
    F(module_unload, "cuModuleUnload", (CUmodule))                                                           \
    F(module_function, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))                        \
    F(function_attribute, "cuFuncGetAttribute", (int *, int, CUfunction))                                    \
    F(function_set, "cuFuncSetAttribute", (CUfunction, int, int))                                            \
    F(encode_tiled, "cuTensorMapEncodeTiled",                                                                \
      (void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,                  \
       const uint32_t *, int, int, int, int))                                                                \
    F(launch, "cuLaunchKernelEx", (const CUlaunchConfig *, CUfunction, void **, void **))                    \
    F(stream_create, "cuStreamCreate", (CUstream *, unsigned))                                               \
    F(stream_destroy, "cuStreamDestroy_v2", (CUstream))                                                      \
    F(stream_synchronise, "cuStreamSynchronize", (CUstream))                                                 \
    F(event_create, "cuEventCreate", (CUevent *, unsigned))                                                  \
    F(event_destroy, "cuEventDestroy_v2", (CUevent))                                                         \
    F(event_record, "cuEventRecord", (CUevent, CUstream))                                                    \
    F(event_synchronise, "cuEventSynchronize", (CUevent))                                                    \
    F(event_elapsed, "cuEventElapsedTime", (float *, CUevent, CUevent))

#define DECLARE(name, symbol, arguments) CUresult(*name) arguments;
static struct { FUNCTIONS(DECLARE) } cuda;

typedef struct {
    CUdevice number;
    CUcontext context;
    bool is_retained; // the device's primary context, to be released
    CUstream uploads; // of its own: what runs in others is not waited for
    bool any_pointer; // all of the host's memory can be used: addresses can't be judged
} Device;

// ---------------------------------------------------------------- the driver's library

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static bool is_loaded;

static jfa_status check_version(void *library, jfa_error *err) {
    CUresult (*version_get)(int *);
    int version = 0;
    *(void **)&version_get = dlsym(library, "cuDriverGetVersion");
    if (version_get && !version_get(&version) && version < OLDEST_VERSION)
        return jfa_error_set(err, JFA_ERROR_NOT_FOUND,
                             "the CUDA driver is too old: it offers CUDA %d.%d, and %d.%d or later is needed",
                             version / 1000, version % 1000 / 10, OLDEST_VERSION / 1000,
                             OLDEST_VERSION % 1000 / 10);
    return JFA_OK;
}

static jfa_status load_functions(void *library, jfa_error *err) {
    jfa_status status = check_version(library, err);
    if (status)
        return status;
#define RESOLVE(name, symbol, arguments)                                                                     \
    *(void **)&cuda.name = dlsym(library, symbol);                                                           \
    if (!cuda.name)                                                                                          \
        return jfa_error_set(err, JFA_ERROR_NOT_FOUND,                                                       \
                             "the CUDA driver is too old: it has no %s; CUDA 12.0 or later is needed",       \
                             symbol);
    FUNCTIONS(RESOLVE)
#undef RESOLVE
    CUresult result = cuda.init(0);
    const char *text = NULL;
    if (result)
        cuda.error_text(result, &text);
    if (result == RESULT_NO_DEVICE)
        return jfa_error_set(err, JFA_ERROR_NOT_FOUND, "there is a CUDA driver on this machine, but no GPU");
    return result ? jfa_error_set(err, JFA_ERROR_NOT_FOUND,
                                  "the CUDA driver can't be used: cuInit: CUDA error %d, %s", result,
                                  text ? text : "unknown")
                  : JFA_OK;
}

static jfa_status load_driver(jfa_error *err) {
    pthread_mutex_lock(&loading);
    jfa_status status = JFA_OK;
    if (!is_loaded) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        const char *why = library ? NULL : dlerror();
        status = library ? load_functions(library, err)
                         : jfa_error_set(err, JFA_ERROR_NOT_FOUND,
                                         "there is no CUDA driver on this machine (libcuda.so.1: %.256s); "
                                         "kernels can run on sim:sm_100a and sim:sm_90a",
                                         why ? why : "not found");
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
    jfa_status status = result == RESULT_OUT_OF_MEMORY ? JFA_ERROR_OUT_OF_MEMORY
                        : result >= RESULT_FIRST_LAUNCH_FAILURE && result <= RESULT_LAST_LAUNCH_FAILURE
                            ? JFA_ERROR_LAUNCH
                            : JFA_ERROR_DEVICE;
    return jfa_error_set(err, status, "%s: CUDA error %d, %s", what, result, text ? text : "unknown");
}

// The device's context is current between enter and leave; the caller's own comes back.
typedef struct {
    jfa_status status;
    bool is_pushed;
} Entered;

static Entered enter(const Device *device, jfa_error *err) {
    CUcontext current = NULL;
    if (!cuda.context_current(&current) && current == device->context)
        return (Entered){JFA_OK, false};
    jfa_status status = check(cuda.context_push(device->context), "cuCtxPushCurrent", err);
    return (Entered){status, status == JFA_OK};
}

static jfa_status leave(Entered entered, jfa_status status) {
    CUcontext ignored;
    if (entered.is_pushed)
        cuda.context_pop(&ignored);
    return status;
}

// One call of the driver within the device's context.
#define WITHIN(device, call, what, err)                                                                      \
    do {                                                                                                     \
        Entered entered = enter((device), (err));                                                            \
        return entered.status ? entered.status : leave(entered, check((call), (what), (err)));               \
    } while (0)

// ---------------------------------------------------------------- devices

static int attribute(CUdevice device, int which) {
    int value = 0;
    cuda.device_attribute(&value, which, device);
    return value;
}

// The caller's context if it has one of this device, so that its streams and memory can be used; else the
// primary one, which the CUDA runtime and all that builds on it use.
static jfa_status take_context(Device *device, jfa_error *err) {
    CUcontext current = NULL;
    CUdevice number = -1;
    if (!cuda.context_current(&current) && current && !cuda.context_device(&number) &&
        number == device->number) {
        device->context = current;
        return JFA_OK;
    }
    jfa_status status =
        check(cuda.context_retain(&device->context, device->number), "cuDevicePrimaryCtxRetain", err);
    device->is_retained = status == JFA_OK;
    return status;
}

static void cuda_close(void *handle) {
    Device *device = handle;
    jfa_error ignored;
    if (!device)
        return;
    if (device->uploads) {
        Entered entered = enter(device, &ignored);
        if (!entered.status)
            leave(entered, cuda.stream_destroy(device->uploads) ? JFA_ERROR_DEVICE : JFA_OK);
    }
    if (device->is_retained)
        cuda.context_release(device->number);
    free(device);
}

static jfa_status make_stream(Device *device, jfa_error *err) {
    WITHIN(device, cuda.stream_create(&device->uploads, STREAM_NON_BLOCKING), "cuStreamCreate", err);
}

static jfa_status find_device(const char *spec, int *number, jfa_error *err) {
    char *end;
    long wanted = strtol(spec, &end, 10);
    if (*spec < '0' || *spec > '9' || *end || wanted > 1023)
        return jfa_error_set(err, JFA_ERROR_NOT_FOUND,
                             "'cuda:%.32s' names no GPU; it is cuda: and a number from 0", spec);
    jfa_status status = load_driver(err);
    int count = 0;
    if (!status)
        status = check(cuda.device_count(&count), "cuDeviceGetCount", err);
    if (!status && wanted >= count)
        return jfa_error_set(err, JFA_ERROR_NOT_FOUND, "there is no cuda:%ld: the driver sees %d GPU%s",
                             wanted, count, count == 1 ? "" : "s");
    *number = (int)wanted;
    return status;
}

static jfa_status cuda_open(const char *spec, void **handle, jfa_device_props *props, jfa_error *err) {
    int number = 0;
    jfa_status status = find_device(spec, &number, err);
    if (status)
        return status;
    Device *device = calloc(1, sizeof *device);
    if (!device)
        return jfa_error_set(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for a device");
    status = check(cuda.device_get(&device->number, number), "cuDeviceGet", err);
    if (!status)
        status = take_context(device, err);
    if (!status)
        status = make_stream(device, err);
    if (status) {
        cuda_close(device);
        return status;
    }
    memset(props, 0, sizeof *props);
    cuda.device_name(props->name, sizeof props->name - 1, device->number);
    int major = attribute(device->number, DEVICE_ATTRIBUTE_CAPABILITY_MAJOR),
        minor = attribute(device->number, DEVICE_ATTRIBUTE_CAPABILITY_MINOR);
    snprintf(props->arch, sizeof props->arch, "sm_%d%da", major, minor);
    props->sm_count = attribute(device->number, DEVICE_ATTRIBUTE_SM_COUNT);
    props->shared_bytes_per_cta = attribute(device->number, DEVICE_ATTRIBUTE_SHARED_OPTIN);
    device->any_pointer = attribute(device->number, DEVICE_ATTRIBUTE_PAGEABLE_ACCESS);
    *handle = device;
    return JFA_OK;
}

// ---------------------------------------------------------------- memory

static jfa_status cuda_alloc(void *handle, size_t bytes, uint64_t *address, jfa_error *err) {
    WITHIN(handle, cuda.memory_alloc(address, bytes ? bytes : 1), "cuMemAlloc", err);
}

static jfa_status cuda_free(void *handle, uint64_t address, jfa_error *err) {
    WITHIN(handle, cuda.memory_free(address), "cuMemFree", err);
}

static jfa_status cuda_copy_in(void *handle, uint64_t to, const void *from, size_t bytes, jfa_error *err) {
    WITHIN(handle, cuda.copy_in(to, from, bytes), "cuMemcpyHtoD", err);
}

static jfa_status cuda_copy_out(void *handle, void *to, uint64_t from, size_t bytes, jfa_error *err) {
    WITHIN(handle, cuda.copy_out(to, from, bytes), "cuMemcpyDtoH", err);
}

static jfa_status cuda_upload(void *handle, uint64_t to, const void *from, size_t bytes, jfa_error *err) {
    Device *device = handle;
    Entered entered = enter(device, err);
    if (entered.status)
        return entered.status;
    jfa_status status = check(cuda.upload(to, from, bytes, device->uploads), "cuMemcpyHtoDAsync", err);
    if (!status)
        status = check(cuda.stream_synchronise(device->uploads), "cuStreamSynchronize", err);
    return leave(entered, status);
}

// Only the ends are looked at: what lies between may be several mappings.
static jfa_status cuda_check_memory(void *handle, uint64_t address, uint64_t bytes, jfa_error *err) {
    Device *device = handle;
    const uint64_t ends[] = {address, address + bytes - 1};
    if (device->any_pointer)
        return JFA_OK;
    Entered entered = enter(device, err);
    jfa_status status = entered.status;
    for (int i = 0; i < 2 && !status; i++) {
        unsigned type;
        if (cuda.pointer_attribute(&type, POINTER_ATTRIBUTE_MEMORY_TYPE, ends[i]))
            status = jfa_error_set(err, JFA_ERROR_PROBLEM, "%s, 0x%llx, is no memory that the driver knows",
                                   i ? "its last byte" : "its address", (unsigned long long)ends[i]);
    }
    return leave(entered, status);
}

// A failure ends the context, with all memory of the device; the host's pages stay.
static jfa_status cuda_host_alloc(void *handle, size_t bytes, uint64_t *address, void **host,
                                  jfa_error *err) {
    Entered entered = enter(handle, err);
    jfa_status status = entered.status;
    *host = NULL;
    if (!status)
        status = check(cuda.host_alloc(host, bytes, HOST_PORTABLE | HOST_MAPPED), "cuMemHostAlloc", err);
    if (!status) {
        memset(*host, 0, bytes);
        status = check(cuda.host_address(address, *host, 0), "cuMemHostGetDevicePointer", err);
        if (status) {
            cuda.host_free(*host);
            *host = NULL;
        }
    }
    return leave(entered, status);
}

static void cuda_host_free(void *handle, void *host) {
    jfa_error ignored;
    Entered entered = enter(handle, &ignored);
    if (!entered.status)
        leave(entered, check(cuda.host_free(host), "cuMemFreeHost", &ignored));
}

// ---------------------------------------------------------------- modules

// What the driver says of an image that it refuses, in terms of what can be done about it.
static jfa_status refused(const Device *device, CUresult result, const char *log, jfa_error *err) {
    int version = 0;
    cuda.driver_version(&version);
    check(result, "the driver refuses the module", err);
    size_t used = strlen(err->message);
    if (result == RESULT_NO_BINARY)
        snprintf(err->message + used, sizeof err->message - used, "; the device is sm_%d%da",
                 attribute(device->number, DEVICE_ATTRIBUTE_CAPABILITY_MAJOR),
                 attribute(device->number, DEVICE_ATTRIBUTE_CAPABILITY_MINOR));
    else if (result == RESULT_UNSUPPORTED_PTX)
        snprintf(err->message + used, sizeof err->message - used,
                 "; the driver offers CUDA %d.%d, and the module needs a newer one", version / 1000,
                 version % 1000 / 10);
    else
        snprintf(err->message + used, sizeof err->message - used, "%s%s", log[0] ? ": " : "", log);
    err->status = result == RESULT_NO_BINARY         ? JFA_ERROR_TARGET
                  : result == RESULT_UNSUPPORTED_PTX ? JFA_ERROR_UNSUPPORTED
                  : result == RESULT_OUT_OF_MEMORY   ? JFA_ERROR_OUT_OF_MEMORY
                                                     : JFA_ERROR_IMAGE;
    return err->status;
}

static jfa_status cuda_module_load(void *handle, const void *image, size_t bytes, void **module,
                                   jfa_error *err) {
    (void)bytes; // a cubin knows its size, PTX ends with a NUL
    Entered entered = enter(handle, err);
    if (entered.status)
        return entered.status;
    char log[512] = "";
    int options[] = {JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUresult result = cuda.module_load(module, image, 2, options, values);
    return leave(entered, result ? refused(handle, result, log, err) : JFA_OK);
}

static void cuda_module_unload(void *handle, void *module) {
    jfa_error ignored;
    Entered entered = enter(handle, &ignored);
    if (!entered.status)
        leave(entered, check(cuda.module_unload(module), "cuModuleUnload", &ignored));
}

// Kernels may use all the shared memory that the module's own leaves; and an SM gives to shared memory what
// it can, not to its cache, so that as many CTAs fit as a schedule's occupancy says.
static jfa_status cuda_function_get(void *handle, void *module, const char *name, void **function,
                                    jfa_error *err) {
    const Device *device = handle;
    Entered entered = enter(device, err);
    int used = 0;
    jfa_status status = entered.status;
    if (!status)
        status = check(cuda.module_function(function, module, name), name, err);
    if (!status)
        status = check(cuda.function_attribute(&used, FUNCTION_ATTRIBUTE_STATIC_SHARED, *function),
                       "cuFuncGetAttribute", err);
    if (!status)
        status = check(cuda.function_set(*function, FUNCTION_ATTRIBUTE_DYNAMIC_SHARED,
                                         attribute(device->number, DEVICE_ATTRIBUTE_SHARED_OPTIN) - used),
                       "cuFuncSetAttribute", err);
    if (!status)
        status =
            check(cuda.function_set(*function, FUNCTION_ATTRIBUTE_CARVEOUT, 100), "cuFuncSetAttribute", err);
    return leave(entered, status);
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
    Entered entered = enter(handle, err);
    jfa_status status = entered.status;
    if (!status)
        status =
            check(cuda.encode_tiled(encoded, TYPES[map->dtype], (uint32_t)map->rank,
                                    (void *)(uintptr_t)map->address, map->dims, map->strides + 1, map->box,
                                    ONES, INTERLEAVE_NONE, swizzle, PROMOTE_L2_256B, FILL_ZEROS),
                  "cuTensorMapEncodeTiled", err);
    if (!status)
        memcpy(out, encoded, sizeof encoded);
    return leave(entered, status);
}

// Allocates nothing and waits for nothing: the driver copies the parameters, so that the launch can also be
// captured into a graph.
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
    WITHIN(handle, cuda.launch(&config, function, NULL, extra), "cuLaunchKernelEx", err);
}

static jfa_status cuda_synchronise(void *handle, void *stream, jfa_error *err) {
    WITHIN(handle, cuda.stream_synchronise(stream), "the work before this point failed", err);
}

// ---------------------------------------------------------------- events

static jfa_status cuda_event_create(void *handle, void **event, jfa_error *err) {
    WITHIN(handle, cuda.event_create(event, 0), "cuEventCreate", err);
}

static void cuda_event_destroy(void *handle, void *event) {
    jfa_error ignored;
    Entered entered = enter(handle, &ignored);
    if (!entered.status)
        leave(entered, check(cuda.event_destroy(event), "cuEventDestroy", &ignored));
}

static jfa_status cuda_event_record(void *handle, void *event, void *stream, jfa_error *err) {
    WITHIN(handle, cuda.event_record(event, stream), "cuEventRecord", err);
}

static jfa_status cuda_event_elapsed(void *handle, void *start, void *end, float *milliseconds,
                                     jfa_error *err) {
    Entered entered = enter(handle, err);
    jfa_status status = entered.status;
    if (!status)
        status = check(cuda.event_synchronise(end), "the work before this point failed", err);
    if (!status)
        status = check(cuda.event_elapsed(milliseconds, start, end), "cuEventElapsedTime", err);
    return leave(entered, status);
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
    .upload = cuda_upload,
    .check_memory = cuda_check_memory,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_elapsed = cuda_event_elapsed,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .set_option = cuda_set_option,
};
