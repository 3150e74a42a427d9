// fake_driver.c: see fake_driver.h. Exports the functions of the CUDA driver API that the runtime looks up.
#include "tests/runtime/fake_driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int device;
    bool is_primary;
} Context;

// Modules, functions, streams and events remember whose they are.
typedef struct {
    int device;
    double at;
} Object;

static FakeDriver driver = {.version = 12080, .device_count = 2, .major = 10, .minor = 0};
static Context primary[FAKE_DEVICES], others[FAKE_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local Context *stack[16];
static _Thread_local int depth;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    NO_DEVICE = 100,
    INVALID_CONTEXT = 201,
    CAPTURE_UNSUPPORTED = 900,
    ALLOCATIONS = 256
};

static struct {
    uint64_t address;
    size_t bytes;
} allocations[ALLOCATIONS];

#define COUNT(field) __atomic_add_fetch(&driver.field, 1, __ATOMIC_SEQ_CST)

FakeDriver *fake_driver(void) {
    return &driver;
}

void *fake_driver_context(int device) {
    others[device] = (Context){device, false};
    return &others[device];
}

void *fake_driver_current(void) {
    return depth ? stack[depth - 1] : NULL;
}

void fake_driver_set_current(void *context) {
    depth = context != NULL;
    stack[0] = context;
}

static bool has_context(void) {
    return depth && stack[depth - 1];
}

// What may not be called while a stream is captured.
static int forbidden(void) {
    if (!driver.is_capturing)
        return SUCCESS;
    COUNT(forbidden);
    return CAPTURE_UNSUPPORTED;
}

static int begin(const Object *object) {
    if (!has_context())
        return INVALID_CONTEXT;
    if (object && object->device != stack[depth - 1]->device)
        COUNT(wrong_device);
    return SUCCESS;
}

static int new_object(void **object) {
    Object *made = has_context() ? calloc(1, sizeof *made) : NULL;
    if (!made)
        return INVALID_CONTEXT;
    made->device = stack[depth - 1]->device;
    *object = made;
    return SUCCESS;
}

// ---------------------------------------------------------------- driver and devices

int cuDriverGetVersion(int *version) {
    *version = driver.version;
    return SUCCESS;
}

int cuInit(unsigned flags) {
    (void)flags;
    return driver.init_result;
}

int cuGetErrorString(int result, const char **text) {
    static _Thread_local char words[32];
    snprintf(words, sizeof words, "fake error %d", result);
    *text = words;
    return SUCCESS;
}

int cuDeviceGet(int *device, int number) {
    *device = number;
    return number < driver.device_count ? SUCCESS : 101;
}

int cuDeviceGetCount(int *count) {
    *count = driver.device_count;
    return SUCCESS;
}

int cuDeviceGetName(char *name, int bytes, int device) {
    snprintf(name, (size_t)bytes, "Fake %d", device);
    return SUCCESS;
}

int cuDeviceGetAttribute(int *value, int which, int device) {
    (void)device;
    *value = which == 16   ? 148
             : which == 75 ? driver.major
             : which == 76 ? driver.minor
             : which == 88 ? driver.pageable
             : which == 97 ? 232448
                           : 0;
    return SUCCESS;
}

// ---------------------------------------------------------------- contexts

int cuDevicePrimaryCtxRetain(void **context, int device) {
    COUNT(retains);
    primary[device] = (Context){device, true};
    *context = &primary[device];
    return SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    COUNT(releases);
    return SUCCESS;
}

int cuCtxGetCurrent(void **context) {
    *context = fake_driver_current();
    return SUCCESS;
}

int cuCtxGetDevice(int *device) {
    if (!has_context())
        return INVALID_CONTEXT;
    *device = stack[depth - 1]->device;
    return SUCCESS;
}

int cuCtxPushCurrent_v2(void *context) {
    if (depth == 16)
        return INVALID_VALUE;
    stack[depth++] = context;
    return SUCCESS;
}

int cuCtxPopCurrent_v2(void **context) {
    if (!depth) {
        COUNT(unbalanced);
        return INVALID_CONTEXT;
    }
    *context = stack[--depth];
    return SUCCESS;
}

// ---------------------------------------------------------------- memory

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    COUNT(allocs);
    int result = begin(NULL);
    result = result ? result : forbidden();
    if (result)
        return result;
    pthread_mutex_lock(&lock);
    int place = 0;
    while (place < ALLOCATIONS && allocations[place].address)
        place++;
    void *memory = NULL;
    if (place == ALLOCATIONS || posix_memalign(&memory, 256, bytes))
        result = 2;
    *address = (uint64_t)(uintptr_t)memory;
    if (!result) {
        allocations[place].address = *address;
        allocations[place].bytes = bytes;
        driver.live_allocations++;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

// The allocation that holds the address; -1: none. Under the lock.
static int find(uint64_t address) {
    for (int i = 0; i < ALLOCATIONS; i++)
        if (address >= allocations[i].address && address - allocations[i].address < allocations[i].bytes)
            return i;
    return -1;
}

int cuMemFree_v2(uint64_t address) {
    COUNT(frees);
    int result = begin(NULL);
    result = result ? result : forbidden();
    if (result)
        return result;
    pthread_mutex_lock(&lock);
    int place = find(address);
    if (place >= 0 && allocations[place].address == address) {
        free((void *)(uintptr_t)address);
        allocations[place].address = allocations[place].bytes = 0;
        driver.live_allocations--;
    } else {
        result = INVALID_VALUE;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int cuMemHostAlloc(void **host, size_t bytes, unsigned flags) {
    enum { PORTABLE_AND_MAPPED = 3 };
    int result = begin(NULL);
    result = result ? result : forbidden();
    if (result || flags != PORTABLE_AND_MAPPED)
        return result ? result : INVALID_VALUE;
    *host = malloc(bytes);
    if (!*host)
        return 2;
    memset(*host, 0xFF, bytes);
    COUNT(live_host_memory);
    return SUCCESS;
}

int cuMemHostGetDevicePointer_v2(uint64_t *address, void *host, unsigned flags) {
    int result = driver.host_result;
    driver.host_result = SUCCESS;
    *address = (uint64_t)(uintptr_t)host + FAKE_MAPPED;
    return result ? result : flags ? INVALID_VALUE : begin(NULL);
}

int cuMemFreeHost(void *host) {
    int result = begin(NULL);
    if (result)
        return result;
    free(host);
    __atomic_sub_fetch(&driver.live_host_memory, 1, __ATOMIC_SEQ_CST);
    return SUCCESS;
}

int cuPointerGetAttribute(void *value, int which, uint64_t address) {
    pthread_mutex_lock(&lock);
    int place = find(address);
    pthread_mutex_unlock(&lock);
    if (which != 2 || place < 0)
        return INVALID_VALUE;
    *(unsigned *)value = 2; // CU_MEMORYTYPE_DEVICE
    return SUCCESS;
}

static int copy(void *to, const void *from, size_t bytes) {
    int result = begin(NULL);
    result = result ? result : forbidden();
    if (!result)
        memcpy(to, from, bytes);
    return result;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    COUNT(copies);
    return copy((void *)(uintptr_t)to, from, bytes);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    COUNT(copies);
    return copy(to, (const void *)(uintptr_t)from, bytes);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    COUNT(uploads);
    begin(stream);
    return copy((void *)(uintptr_t)to, from, bytes);
}

// ---------------------------------------------------------------- modules and tensor maps

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    (void)image, (void)count, (void)options;
    COUNT(loads);
    int result = forbidden();
    if (driver.load_result) {
        snprintf(values[0], 64, "line 7: what is this?");
        result = driver.load_result;
        driver.load_result = SUCCESS;
    }
    return result ? result : new_object(module);
}

int cuModuleUnload(void *module) {
    COUNT(unloads);
    begin(module);
    free(module);
    return SUCCESS;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)name;
    *function = module;
    return begin(module);
}

int cuFuncGetAttribute(int *value, int which, void *function) {
    *value = which == 1 ? 1024 : 0;
    return begin(function);
}

int cuFuncSetAttribute(void *function, int which, int value) {
    int result = begin(function);
    bool good = (which == 8 && value == 232448 - 1024) || (which == 9 && value == 100);
    return result ? result : good ? SUCCESS : INVALID_VALUE;
}

#ifndef FAKE_DRIVER_IS_OLD
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                           int interleave, int swizzle, int promotion, int fill) {
    (void)steps, (void)interleave, (void)promotion, (void)fill;
    COUNT(encodes);
    if ((uintptr_t)map % 64 || (uintptr_t)address % 16)
        return INVALID_VALUE;
    for (uint32_t i = 0; i < rank; i++)
        if (!dims[i] || !box[i] || box[i] > 256 || (i && strides[i - 1] % 16))
            return INVALID_VALUE;
    memset(map, 0, 128);
    memcpy(map, &address, sizeof address);
    memcpy((char *)map + 8, &type, sizeof type);
    memcpy((char *)map + 12, &swizzle, sizeof swizzle);
    memcpy((char *)map + 16, dims, rank * sizeof *dims);
    return SUCCESS;
}
#endif

// ---------------------------------------------------------------- launches, streams, events

typedef struct {
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned attribute_count;
} Config;

int cuLaunchKernelEx(const Config *config, void *function, void **params, void **extra) {
    int result = begin(function);
    if (result || params)
        return result ? result : INVALID_VALUE;
    COUNT(launches);
    pthread_mutex_lock(&lock);
    driver.stream = config->stream;
    driver.grid = config->grid[0];
    driver.block = config->block[0];
    driver.shared = config->shared;
    driver.attribute_count = config->attribute_count;
    driver.params_bytes = *(const size_t *)extra[3];
    if (driver.params_bytes <= sizeof driver.params)
        memcpy(driver.params, extra[1], driver.params_bytes);
    result = driver.launch_result;
    driver.launch_result = SUCCESS;
    pthread_mutex_unlock(&lock);
    return result;
}

int cuStreamCreate(void **stream, unsigned flags) {
    return flags == 1 ? new_object(stream) : INVALID_VALUE;
}

int cuStreamDestroy_v2(void *stream) {
    begin(stream);
    free(stream);
    return SUCCESS;
}

int cuStreamSynchronize(void *stream) {
    COUNT(waits);
    int result = begin(stream);
    result = result ? result : forbidden();
    return result ? result : driver.wait_result;
}

int cuEventCreate(void **event, unsigned flags) {
    (void)flags;
    COUNT(events);
    return new_object(event);
}

int cuEventDestroy_v2(void *event) {
    begin(event);
    free(event);
    return SUCCESS;
}

int cuEventRecord(void *event, void *stream) {
    static double now;
    (void)stream;
    int result = begin(event);
    pthread_mutex_lock(&lock);
    ((Object *)event)->at = now += 1.5;
    pthread_mutex_unlock(&lock);
    return result;
}

int cuEventSynchronize(void *event) {
    COUNT(waits);
    int result = begin(event);
    result = result ? result : forbidden();
    return result ? result : driver.wait_result;
}

int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    *milliseconds = (float)(((Object *)end)->at - ((Object *)start)->at);
    return begin(start);
}
