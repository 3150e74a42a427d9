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
// outputs are NULL or 0.
//
// Threads. Devices may be used from any thread, several at once. On one device, functions may run
// concurrently if they work on different objects; a plan may be launched from several threads once it is
// made. No function leaves another CUDA context current than it found.
//
// Streams are the backend's own, made by the caller (a CUstream or cudaStream_t for cuda:N); NULL is its
// default one. Device addresses are 64-bit integers, valid on their device alone. Strides and extents count
// elements.
//
// Versions. Functions and structs stay as they are within a major version, and until 1.0 within a minor one;
// the shared library's soname says which.
#ifndef JFA_RUNTIME_JFA_H
#define JFA_RUNTIME_JFA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Marks what the shared library exports; all else that it is made of stays within it.
#if defined(__GNUC__)
#define JFA_API __attribute__((visibility("default")))
#else
#define JFA_API
#endif

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

enum { JFA_MESSAGE_BYTES = 2048 };

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
JFA_API const char *jfa_status_string(jfa_status status);
// "bf16"; "?" for a value that is none.
JFA_API const char *jfa_dtype_name(jfa_dtype dtype);
// Bytes of an element; 0 for a value that is none.
JFA_API int jfa_dtype_bytes(jfa_dtype dtype);
// The version of this library, "0.1.0".
JFA_API const char *jfa_version(void);

// ---------------------------------------------------------------- devices and memory

typedef struct jfa_device jfa_device;

typedef struct {
    char name[64]; // "NVIDIA H200", "simulated sm_100a"
    char arch[16]; // "sm_90a"
    int sm_count;
    int64_t shared_bytes_per_cta; // largest dynamic shared memory of a CTA
} jfa_device_props;

// Opens the device `name`: a backend's scheme, a colon, what the backend takes ("sim:sm_100a", "cuda:0"). The
// caller owns *device and closes it. JFA_ERROR_NOT_FOUND: there is no such backend or device, or its driver
// is missing or too old.
//
// cuda:N uses the CUDA context that is current in the calling thread if it is one of that GPU (it must live
// as long as the device is open), and otherwise the GPU's primary context, as the CUDA runtime does. The
// driver (libcuda.so.1, CUDA 12.0 or later) is looked for at the first call; nothing else of CUDA is needed.
JFA_API jfa_status jfa_device_open(const char *name, jfa_device **device, jfa_error *err);
// NULL is allowed. JFA_ERROR_BUSY while modules of it are loaded or it has events: it stays open then.
JFA_API jfa_status jfa_device_close(jfa_device *device, jfa_error *err);
// Valid until the device is closed. NULL for NULL.
JFA_API const jfa_device_props *jfa_device_get_props(const jfa_device *device);
// The backend's own handle, for functions that a backend offers beside this library. NULL for NULL.
JFA_API void *jfa_device_native(const jfa_device *device);
// Sets an option of the backend ("seed", "threads") for later launches. JFA_ERROR_UNSUPPORTED: it has no such
// option.
JFA_API jfa_status jfa_device_set_option(jfa_device *device, const char *name, int64_t value, jfa_error *err);

// Device memory, aligned to 256 bytes, contents undefined. The caller frees it. bytes 0 gives address 0.
JFA_API jfa_status jfa_malloc(jfa_device *device, size_t bytes, uint64_t *address, jfa_error *err);
// Address 0 is allowed. Nothing that runs may still use the memory.
JFA_API jfa_status jfa_free(jfa_device *device, uint64_t address, jfa_error *err);
// Copies between host and device memory; both are done when they return. bytes 0 does nothing.
JFA_API jfa_status jfa_copy_to_device(jfa_device *device, uint64_t to, const void *from, size_t bytes,
                                      jfa_error *err);
JFA_API jfa_status jfa_copy_from_device(jfa_device *device, void *to, uint64_t from, size_t bytes,
                                        jfa_error *err);
// Waits until all work in `stream` is done, and reports failures of it. A kernel that was built with a
// watchdog and hung is JFA_ERROR_LAUNCH, with the waits that were too long in the message: role, pipe, line
// of the source. On a GPU any other function that meets the failure first says the same; nothing on the
// device can be used afterwards.
JFA_API jfa_status jfa_synchronise(jfa_device *device, void *stream, jfa_error *err);

// A point in a stream's work, to measure time between two of them. The caller destroys it before the device
// is closed.
typedef struct jfa_event jfa_event;

JFA_API jfa_status jfa_event_create(jfa_device *device, jfa_event **event, jfa_error *err);
JFA_API void jfa_event_destroy(jfa_event *event); // NULL is allowed
// The event is when all work that is in `stream` now is done. Recording again moves it.
JFA_API jfa_status jfa_event_record(jfa_event *event, void *stream, jfa_error *err);
// Waits for `end` and gives the milliseconds from `start` to it, both recorded in streams of one device.
// Resolution on a GPU: about half a microsecond.
JFA_API jfa_status jfa_event_elapsed(jfa_event *start, jfa_event *end, float *milliseconds, jfa_error *err);

// ---------------------------------------------------------------- modules and kernels

typedef struct jfa_module jfa_module;
typedef struct jfa_kernel jfa_kernel;

// Loads PTX text (with or without a final NUL) or a cubin of `bytes` bytes; the caller's copy isn't needed
// afterwards. An image that is loaded on the device already is not loaded again: the modules share it. The
// caller owns *module. JFA_ERROR_IMAGE, JFA_ERROR_MANIFEST: not an image of ours. JFA_ERROR_TARGET: built for
// another chip. JFA_ERROR_UNSUPPORTED: the driver is too old for the image.
JFA_API jfa_status jfa_module_load(jfa_device *device, const void *image, size_t bytes, jfa_module **module,
                                   jfa_error *err);
// The same from a file.
JFA_API jfa_status jfa_module_load_file(jfa_device *device, const char *path, jfa_module **module,
                                        jfa_error *err);
// Also ends the module's kernels. NULL is allowed. JFA_ERROR_BUSY while plans of its kernels exist.
JFA_API jfa_status jfa_module_unload(jfa_module *module, jfa_error *err);
JFA_API int jfa_module_kernel_count(const jfa_module *module);
// The name of kernel `index`; NULL outside 0 .. count - 1.
JFA_API const char *jfa_module_kernel_name(const jfa_module *module, int index);

// The kernel of that name; name NULL: the only one. It belongs to the module.
JFA_API jfa_status jfa_kernel_get(jfa_module *module, const char *name, jfa_kernel **kernel, jfa_error *err);

enum {
    JFA_NAME_BYTES = 64,  // names with their NUL
    JFA_PATH_BYTES = 512, // file names with their NUL
    JFA_MAX_RANK = 5,     // dims of a tensor
    JFA_MAX_AXES = 8,
    JFA_MAX_DIMS = 16,
    JFA_MAX_TENSORS = 32,
    JFA_MAX_PARAMS = 32,
    JFA_MAX_CONSTANTS = 64,
};

typedef enum { JFA_DIM_AXIS, JFA_DIM_RUNTIME, JFA_DIM_CONSTANT } jfa_dim_kind;
typedef enum { JFA_IN, JFA_OUT, JFA_INOUT } jfa_direction;

typedef struct {
    char name[JFA_NAME_BYTES];
} jfa_axis_info;

typedef struct {
    char name[JFA_NAME_BYTES];
    int divides; // the dim (its index) that this one divides without remainder, or -1
} jfa_dim_info;

typedef struct {
    jfa_dim_kind kind;
    int index;      // of the axis or run-time dim
    int64_t extent; // constant, in elements
} jfa_tensor_dim;

typedef struct {
    char name[JFA_NAME_BYTES];
    jfa_direction direction;
    jfa_dtype dtype;
    bool optional; // may be left out of a problem
    int rank;
    jfa_tensor_dim dims[JFA_MAX_RANK]; // outermost first
} jfa_tensor_info;

typedef struct {
    char name[JFA_NAME_BYTES];
    jfa_dtype dtype;  // JFA_F32 or JFA_I32
    bool is_positive; // planning refuses a value that isn't above 0 (f32: normal and finite)
    bool has_default;
    double default_value;
} jfa_param_info;

typedef struct {
    char name[JFA_NAME_BYTES];
    char value[JFA_NAME_BYTES]; // a number or a word, as in the source
} jfa_constant_info;

typedef struct {
    char name[JFA_NAME_BYTES];
    char target[JFA_NAME_BYTES];   // "sm_100a"
    char source[JFA_PATH_BYTES];   // the .jfa file
    char compiler[JFA_NAME_BYTES]; // version of the compiler that built it
    int threads;                   // of a CTA
    int64_t shared_bytes;          // dynamic shared memory of a CTA
    int cluster;                   // CTAs of a cluster
    int axis_count, dim_count, tensor_count, param_count, constant_count;
    jfa_axis_info axes[JFA_MAX_AXES];
    jfa_dim_info dims[JFA_MAX_DIMS];
    jfa_tensor_info tensors[JFA_MAX_TENSORS];
    jfa_param_info params[JFA_MAX_PARAMS];
    jfa_constant_info constants[JFA_MAX_CONSTANTS];
} jfa_kernel_info;

// What a kernel is and takes, valid until its module is unloaded. NULL for NULL.
JFA_API const jfa_kernel_info *jfa_kernel_get_info(const jfa_kernel *kernel);

// ---------------------------------------------------------------- problems

// Lengths of the sequences on an axis, in positions: exactly one of the four is given. With offsets, sequence
// s has offsets[s + 1] - offsets[s] positions ("cu_seqlens"): sequences + 1 numbers that start with 0 and
// don't decrease.
//
// Offsets may be known on the device only (see jfa_plan_update). If those of one axis are, each other axis
// has its offsets there too, or one length for all sequences; no tensor's rows are listed on those axes; and
// an axis that is the innermost dim of a tensor moved by tensor maps must be known on the host.
typedef struct {
    const char *name;
    const int32_t *offsets;  // [sequences + 1], on the host, or NULL
    const int32_t *lengths;  // [sequences], on the host, or NULL
    int64_t length;          // of every sequence, when the others are NULL or 0
    uint64_t device_offsets; // address of int32 [sequences + 1] on the device, or 0
} jfa_axis;

// Where the rows of a sequence start in a tensor along a dim that is an axis.
typedef enum {
    JFA_ROWS_PACKED, // one sequence behind the other (jagged; a dense batch when lengths are equal)
    JFA_ROWS_SHARED, // all sequences use the same rows from 0 on (broadcast)
    JFA_ROWS_PADDED, // sequence s starts at s * pitch
    JFA_ROWS_LISTED, // sequence s starts at list[s]
} jfa_rows_kind;

typedef struct {
    jfa_rows_kind kind;
    int64_t pitch;       // JFA_ROWS_PADDED, in rows
    const int32_t *list; // JFA_ROWS_LISTED: [sequences], on the host
} jfa_rows;

// A tensor in device memory. Element (i0, i1, ...) lies at address + (i0 * strides[0] + i1 * strides[1] +
// ...) elements. Tensors that are moved by tensor maps need an address and strides that are multiples of 16
// bytes, and 1 as the innermost stride. No two elements of an output may coincide, nor an output and another
// tensor.
typedef struct {
    const char *name;
    uint64_t address;
    jfa_dtype dtype;
    int rank;
    int64_t extents[JFA_MAX_RANK]; // elements, outermost first; on an axis: rows that exist, of all sequences
    int64_t strides[JFA_MAX_RANK]; // elements, not negative
    jfa_rows rows[JFA_MAX_RANK];   // for dims that are axes; zero: packed
} jfa_tensor;

typedef struct {
    const char *name;
    double value; // an integer for a param of type i32
} jfa_param;

// A run-time extent. Only dims that no given tensor has need to be named; others may be, and are checked.
typedef struct {
    const char *name;
    int64_t extent;
} jfa_dim;

// Everything is named as in the kernel's info, in any order. Unused arrays are NULL with count 0.
typedef struct {
    int64_t sequences;
    const jfa_axis *axes;
    int axis_count;
    const jfa_tensor *tensors;
    int tensor_count;
    const jfa_dim *dims;
    int dim_count;
    const jfa_param *params; // those left out take their default
    int param_count;
} jfa_problem;

// Sets dense row-major strides from rank and extents (at least 1 each for this purpose). False, and strides
// 0, when the rank or an extent is out of range or a stride passes 2^63 - 1; false for NULL.
JFA_API bool jfa_tensor_set_dense(jfa_tensor *tensor);

// ---------------------------------------------------------------- plans

typedef struct jfa_plan jfa_plan;

// Of a plan from offsets on the device, records and items are the most that there can be.
typedef struct {
    int64_t records;      // blocks of work: (sequence, block ...) with rows
    int64_t items;        // records times the extents of the factor dims (heads)
    int64_t device_bytes; // of the work list on the device
    int grid, threads;    // CTAs, and threads of each; grid 0: a launch does nothing
    int64_t shared_bytes; // dynamic shared memory of a CTA
} jfa_plan_info;

// Checks the problem against the kernel, makes the list of work and copies it to the device, encodes the
// tensor maps. Waits for nothing that runs on the device. Nothing of the problem is kept but the tensors'
// addresses: the tensors must exist while the plan is launched. The caller owns *plan. JFA_ERROR_PROBLEM,
// JFA_ERROR_NOT_FOUND: the problem doesn't fit; JFA_ERROR_LIMIT: a size beyond 32 bits.
JFA_API jfa_status jfa_plan_create(jfa_kernel *kernel, const jfa_problem *problem, jfa_plan **plan,
                                   jfa_error *err);
// A plan from offsets on the device (jfa_axis) is made without knowing them: it has room for the most blocks
// that its tensors' rows allow, and is filled by the device. This starts that in `stream` and returns: what
// is launched in the stream from then on uses the offsets as they are at that point of it. Call it whenever
// they have changed, and once before the first launch. It costs one small kernel; blocks that aren't there
// cost the kernel next to nothing each. Allocates nothing and waits for nothing, like jfa_launch, and can be
// captured into the same graph. JFA_ERROR_ARGUMENT: the plan's lengths were given on the host.
//
// Offsets on the device are checked there: sequences that decrease, pass the tensors' rows, or are the first
// and don't start with 0 count as empty.
JFA_API jfa_status jfa_plan_update(jfa_plan *plan, void *stream, jfa_error *err);
// Waits for `stream` and tells what was wrong with the offsets of updates since the last check:
// JFA_ERROR_PROBLEM names the first sequence. Never needed; a plan from the host's lengths is always right.
JFA_API jfa_status jfa_plan_check(jfa_plan *plan, void *stream, jfa_error *err);

// NULL is allowed. Launches of it must have ended. The device keeps some of the memory for later plans, until
// it is closed.
JFA_API jfa_status jfa_plan_destroy(jfa_plan *plan, jfa_error *err);
JFA_API const jfa_plan_info *jfa_plan_get_info(const jfa_plan *plan);

// Starts the kernel in `stream` and returns; later work of that stream waits for it. A plan without work does
// nothing. Allocates nothing and waits for nothing, on the host or the device, so that it may be captured
// into a CUDA graph; the plan and the tensors must then live as long as the graph. Launches of one plan must
// not overlap in time if its kernel asks for work (docs/language.md, `via queue`).
JFA_API jfa_status jfa_launch(const jfa_plan *plan, void *stream, jfa_error *err);

#ifdef __cplusplus
}
#endif

#endif
