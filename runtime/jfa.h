// jfa.h: load, plan and launch kernels that jfac compiled. This is the only header that a user includes.
//
// A module (a cubin, or PTX text) carries a manifest for each kernel: which axes, dims, tensors and params it
// has. A caller opens a device, loads a module, describes a problem (lengths, tensors, params), makes a plan
// of it and launches the plan, as often as wanted:
//
//     jfa_device_open("cuda:0", &device, &err);
//     jfa_module_load_file(device, "dense.cubin", &module, &err);
//     jfa_kernel_get(module, NULL, &kernel, &err);
//     jfa_plan_create(kernel, &problem, &plan, &err);
//     jfa_launch(plan, NULL, &err);
//     jfa_synchronise(device, NULL, &err);
//
// Words. An *axis* runs over the positions of a sequence; each sequence has its own length on each axis. A
// *dim* is a run-time extent common to all sequences (heads). A *tensor* has dims, outermost first, each an
// axis, a dim or a constant. On an axis, a tensor has *rows*: sequence s uses rows base .. base + length - 1
// of that dim.
//
// Errors. Functions that can fail return a jfa_status and, when `err` is not NULL, fill it on failure with
// one sentence that names what was wrong and its value; on success *err is left alone. After a failure
// outputs are NULL or 0. Threads. Different devices may be used from different threads. On one device,
// functions may run concurrently if they work on different objects; a plan may be launched from several
// threads once it is made. Device addresses are 64-bit integers, valid on their device alone. Strides and
// extents count elements.
#ifndef JFA_RUNTIME_JFA_H
#define JFA_RUNTIME_JFA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    JFA_OK = 0,
    JFA_ERROR_ARGUMENT,      // NULL, negative, or otherwise outside what the function takes
    JFA_ERROR_OUT_OF_MEMORY, // host or device
    JFA_ERROR_NOT_FOUND,     // no such device, file, kernel, tensor, axis, dim or param
    JFA_ERROR_IO,            // a file can't be read
    JFA_ERROR_IMAGE,         // neither PTX nor a cubin, damaged, or without a manifest
    JFA_ERROR_MANIFEST,      // the manifest is malformed or of another version
    JFA_ERROR_TARGET,        // built for another chip, or the device lacks what the kernel needs
    JFA_ERROR_PROBLEM,       // tensors, lengths and params don't fit the kernel, or each other
    JFA_ERROR_LIMIT,         // a size beyond what the kernel's 32-bit positions or the hardware can address
    JFA_ERROR_UNSUPPORTED,   // the backend doesn't offer it
    JFA_ERROR_BUSY,          // still in use by other objects
    JFA_ERROR_DEVICE,        // the device or its driver reports a failure
    JFA_ERROR_LAUNCH,        // a kernel failed while it ran
    JFA_STATUS_COUNT
} jfa_status;

enum { JFA_MESSAGE_BYTES = 1024 };

typedef struct {
    jfa_status status;
    char message[JFA_MESSAGE_BYTES]; // one sentence, NUL-terminated, without a newline at the end
} jfa_error;

// Element types. e4m3, e5m2: 8-bit floats (OCP). e8m0: a power of two, the scale of a block (OCP
// microscaling).
typedef enum {
    JFA_F32,
    JFA_F16,
    JFA_BF16,
    JFA_E4M3,
    JFA_E5M2,
    JFA_E8M0,
    JFA_I8,
    JFA_U8,
    JFA_I32,
    JFA_U32,
    JFA_I64,
    JFA_DTYPE_COUNT
} jfa_dtype;

// "no such tensor" and the like, in lower case: the class, where the message of a jfa_error is the instance.
// Never NULL.
const char *jfa_status_string(jfa_status status);
// "bf16"; "?" for a value that is none.
const char *jfa_dtype_name(jfa_dtype dtype);
// Bytes of an element; 0 for a value that is none.
int jfa_dtype_bytes(jfa_dtype dtype);
// The version of this library, "0.1.0".
const char *jfa_version(void);

#ifdef __cplusplus
}
#endif

#endif
