// fake_driver.h: a libcuda.so.1 without a GPU. It does what the runtime needs with host tables, records the
// calls, and does as the test wants.
#ifndef JFA_TESTS_RUNTIME_FAKE_DRIVER_H
#define JFA_TESTS_RUNTIME_FAKE_DRIVER_H

#include <stdint.h>

enum { FAKE_DEVICES = 4 };

// What the device calls the host's memory lies so far from what the host calls it.
#define FAKE_MAPPED (UINT64_C(1) << 46)

typedef struct {
    // What it is to be.
    int version;       // 12080: CUDA 12.8
    int init_result;   // of cuInit
    int device_count;  // up to FAKE_DEVICES
    int major, minor;  // compute capability
    int load_result;   // of the next cuModuleLoadDataEx
    int launch_result; // of the next cuLaunchKernelEx
    int wait_result;   // of cuStreamSynchronize and cuEventSynchronize, from now on
    int host_result;   // of the next cuMemHostGetDevicePointer
    int pageable;      // kernels may use all of the host's memory
    int is_capturing;  // calls that a captured stream does not allow fail, and are counted
    // What was called; updated atomically.
    int allocs, frees, copies, uploads, waits, encodes, loads, unloads, launches, events, retains, releases;
    int live_allocations, live_host_memory, forbidden, unbalanced;
    int wrong_device; // calls with another device's objects than the current context's
    // Of the last launch.
    void *stream;
    unsigned grid, block, shared, attribute_count;
    uint64_t params_bytes;
    unsigned char params[4096];
} FakeDriver;

// The functions beside the driver's own.
FakeDriver *fake_driver(void);
void *fake_driver_context(int device); // another context than the primary one
void fake_driver_set_current(void *context);
void *fake_driver_current(void);

#endif
