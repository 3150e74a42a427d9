// backend.h: what a device must offer to the runtime. One table of functions a backend; the runtime knows
// backends by their table only. The CUDA backend is built into the runtime; the simulator is entered with
// jfa_backend_register(), which libjfa does when it is loaded.
//
// Conventions: every function returns a jfa_status and fills *err (never NULL here) on failure. Device
// addresses are 64-bit integers, valid on that device alone. No function keeps a pointer that it is given
// unless it says so.
#ifndef JFA_RUNTIME_BACKEND_H
#define JFA_RUNTIME_BACKEND_H

#include "runtime/jfa.h"

#include <stddef.h>
#include <stdint.h>

// A tensor map as in cuTensorMapEncodeTiled (CUDA driver API); rules in PTX ISA "Tensors" and the driver's
// manual. Dimensions are innermost first. Element strides are 1, no interleave.
typedef struct {
    jfa_dtype dtype;
    int rank;         // 1..5
    uint64_t address; // device address of element 0; 16-byte aligned. May lie before an allocation as long as
                      // no element that is in bounds does (ragged maps use this).
    uint64_t dims[5]; // extents in elements, 1..2^32
    uint64_t strides[5]; // bytes; strides[0] is ignored (dense); multiples of 16, below 2^40
    uint32_t box[5];     // 1..256 elements
    int swizzle_bytes;   // 0, 32, 64 or 128
} jfa_tensor_map;

typedef struct {
    uint32_t grid[3], block[3], cluster[3]; // cluster {1,1,1} when the kernel has none
    uint32_t shared_bytes;                  // dynamic shared memory
    const void *params;                     // the kernel's parameters laid out as in the PTX .param list
    size_t params_bytes;
    void *stream; // backend's own; NULL: its default
} jfa_launch_desc;

typedef struct jfa_backend {
    const char *scheme; // "sim", "cuda": the part of a device name before the colon
    // spec: the part after the colon ("sm_100a", "0"), never NULL. *device: the backend's own handle.
    jfa_status (*open)(const char *spec, void **device, jfa_device_props *props, jfa_error *err);
    void (*close)(void *device);
    jfa_status (*alloc)(void *device, size_t bytes, uint64_t *address, jfa_error *err); // 256-byte aligned
    jfa_status (*free)(void *device, uint64_t address, jfa_error *err);
    jfa_status (*copy_in)(void *device, uint64_t to, const void *from, size_t bytes, jfa_error *err);
    jfa_status (*copy_out)(void *device, void *to, uint64_t from, size_t bytes, jfa_error *err);
    // image: PTX text (NUL-terminated, `bytes` without the NUL) or a cubin; a backend refuses the form that
    // it can't take.
    jfa_status (*module_load)(void *device, const void *image, size_t bytes, void **module, jfa_error *err);
    void (*module_unload)(void *device, void *module);
    jfa_status (*function_get)(void *device, void *module, const char *name, void **function, jfa_error *err);
    jfa_status (*encode_tensor_map)(void *device, const jfa_tensor_map *map, uint8_t out[128],
                                    jfa_error *err);
    jfa_status (*launch)(void *device, void *function, const jfa_launch_desc *desc, jfa_error *err);
    jfa_status (*synchronise)(void *device, void *stream, jfa_error *err);
    // May be NULL. Like copy_in to memory that nothing on the device uses yet, so that it waits for nothing
    // that runs there. NULL: copy_in does.
    jfa_status (*upload)(void *device, uint64_t to, const void *from, size_t bytes, jfa_error *err);
    // May be NULL. Is `address` .. address + bytes - 1 memory that kernels can use, as far as can be told?
    // JFA_ERROR_PROBLEM and a message that begins with what is wrong ("its address, 0x10, is ...").
    jfa_status (*check_memory)(void *device, uint64_t address, uint64_t bytes, jfa_error *err);
    // All four, or none: then launches are done when they return, and the host's clock is read instead.
    // event_elapsed waits for `end`, and gives milliseconds.
    jfa_status (*event_create)(void *device, void **event, jfa_error *err);
    void (*event_destroy)(void *device, void *event);
    jfa_status (*event_record)(void *device, void *event, void *stream, jfa_error *err);
    jfa_status (*event_elapsed)(void *device, void *start, void *end, float *milliseconds, jfa_error *err);
    // Both, or none: memory of the host that kernels write to at *address and that outlives their failure,
    // after which such a device is of no more use. Zeros at first. NULL: the device's own memory outlives it.
    jfa_status (*host_alloc)(void *device, size_t bytes, uint64_t *address, void **host, jfa_error *err);
    void (*host_free)(void *device, void *host);
    // Sets a backend option before a launch ("seed", "threads", "progress"); JFA_ERROR_UNSUPPORTED for an
    // unknown name.
    jfa_status (*set_option)(void *device, const char *name, int64_t value, jfa_error *err);
} jfa_backend;

// Makes a backend known under its scheme. The table must live as long as the process. Call once a scheme,
// before jfa_device_open; not safe against a concurrent open.
jfa_status jfa_backend_register(const jfa_backend *backend, jfa_error *err);

#endif
