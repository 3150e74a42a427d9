// internal.h: what the runtime's files share. Pipeline of a plan: bind (names to places, everything checked),
// work (the records), maps, parameters.
#ifndef JFA_RUNTIME_INTERNAL_H
#define JFA_RUNTIME_INTERNAL_H

#include "runtime/backend.h"
#include "runtime/error.h"
#include "runtime/manifest.h"

#include <pthread.h>
#include <stdatomic.h>

// Device memory.
typedef struct {
    uint64_t address;
    size_t bytes;
} jfa_memory;

typedef struct jfa_loaded jfa_loaded;
typedef struct jfa_watchdog jfa_watchdog;

enum { JFA_MOST_SPARES = 16 };

struct jfa_device {
    const jfa_backend *backend;
    void *handle;
    jfa_device_props props;
    atomic_int module_count, event_count;
    pthread_mutex_t lock; // of what follows (cache.c)
    jfa_loaded *images;
    jfa_memory spares[JFA_MOST_SPARES];
    int spare_count;
    jfa_watchdog *watchdogs; // of kernels that are loaded (watchdog.c)
};

struct jfa_kernel {
    jfa_module *module;
    void *function;
    jfa_manifest manifest;
    jfa_watchdog *watchdog; // NULL: built without one
    jfa_loaded *planner;    // NULL until a plan needs it (planner.c)
    void *planner_function;
};

struct jfa_module {
    jfa_device *device;
    jfa_loaded *image;
    atomic_int plan_count;
    pthread_mutex_t lock; // of the kernels' planners
    int kernel_count;
    jfa_kernel *kernels;
};

// Passes on what a backend's function returned and said; `what` it was to do, for one that said nothing.
// `err` may be NULL.
jfa_status jfa_backend_result(jfa_status status, jfa_error *backend, jfa_error *err, const char *what);

// The same of what may tell that a kernel failed: with what a watchdog knows about it.
jfa_status jfa_device_result(jfa_device *device, jfa_status status, jfa_error *backend, jfa_error *err,
                             const char *what);

// Copies to device memory that nothing uses yet, without waiting for what runs.
jfa_status jfa_upload(jfa_device *device, uint64_t to, const void *from, size_t bytes, jfa_error *err);

// ---------------------------------------------------------------- cache.c

// An image that ends with a NUL behind its bytes, on the device; one that is there is used again. The caller
// drops *loaded; the last one unloads it.
jfa_status jfa_loaded_take(jfa_device *device, const char *image, size_t bytes, jfa_loaded **loaded,
                           jfa_error *err);
void *jfa_loaded_handle(const jfa_loaded *loaded); // the backend's module
void jfa_loaded_drop(jfa_device *device, jfa_loaded *loaded);

// Device memory of at least that many bytes (not 0), kept from before if there is some; it is given back.
jfa_status jfa_spare_take(jfa_device *device, size_t bytes, jfa_memory *memory, jfa_error *err);
jfa_status jfa_spare_give(jfa_device *device, jfa_memory memory, jfa_error *err);
void jfa_spares_free(jfa_device *device);

// ---------------------------------------------------------------- watchdog.c

// Memory for what the kernel's waits tell, if it was built to.
jfa_status jfa_watchdog_start(jfa_kernel *kernel, jfa_error *err);
void jfa_watchdog_stop(jfa_kernel *kernel);
uint64_t jfa_watchdog_address(const jfa_watchdog *watchdog); // on the device; 0 for NULL
// After a kernel failed: puts before err's message (err may be NULL) which waits were too long, if some were.
void jfa_watchdog_explain(jfa_device *device, jfa_error *err);

// ---------------------------------------------------------------- image.c

// The manifests' text in PTX text or a cubin, without trailing NULs; the caller frees *text. *is_text: the
// image is PTX.
jfa_status jfa_image_manifest(const void *image, size_t bytes, char **text, size_t *length, bool *is_text,
                              jfa_error *err);

// ---------------------------------------------------------------- bind.c, tensors.c

// A problem by the manifest's indices. The arrays of the problem are referred to, not copied.
typedef struct {
    const jfa_manifest *manifest;
    int64_t sequences;
    int64_t most_positions; // a length or a number of rows may be this at most
    const jfa_axis *axes[JFA_MAX_AXES];
    bool on_device; // offsets of an axis are: its lengths may not be asked for
    // Of such an axis: positions of all sequences, and of one, at most.
    int64_t most_total[JFA_MAX_AXES], most_length[JFA_MAX_AXES];
    int64_t *starts[JFA_MAX_AXES]; // [sequences], running sums where lengths are listed, else NULL; owned
    int64_t dims[JFA_MAX_DIMS];    // extents
    const jfa_tensor *tensors[JFA_MAX_TENSORS]; // NULL: optional, left out
    double params[JFA_MAX_PARAMS];
} jfa_bound;

// Checks the problem and binds it. The caller releases *bound, also after a failure.
jfa_status jfa_bind(const jfa_manifest *manifest, const jfa_problem *problem, jfa_bound *bound,
                    jfa_error *err);
void jfa_bound_release(jfa_bound *bound);

static inline bool jfa_bound_is_on_device(const jfa_bound *bound, int axis) {
    return bound->axes[axis]->device_offsets != 0;
}

// Positions of the sequence on the axis. This and the next two are here since they are asked for each
// sequence many times.
static inline int64_t jfa_bound_length(const jfa_bound *bound, int axis, int64_t sequence) {
    const jfa_axis *given = bound->axes[axis];
    if (given->offsets)
        return (int64_t)given->offsets[sequence + 1] - given->offsets[sequence];
    return given->lengths ? given->lengths[sequence] : given->length;
}
// Positions of all sequences on an axis whose lengths are known and good.
int64_t jfa_bound_total(const jfa_bound *bound, int axis);
// Positions before those of the sequence, when sequences lie one behind the other.
static inline int64_t jfa_bound_start(const jfa_bound *bound, int axis, int64_t sequence) {
    const jfa_axis *given = bound->axes[axis];
    if (given->offsets)
        return given->offsets[sequence];
    return given->lengths ? bound->starts[axis][sequence] : sequence * given->length;
}
// First row of the sequence in the tensor along a dim that is an axis; 0 when it has no rows or the tensor is
// left out.
static inline int64_t jfa_bound_base(const jfa_bound *bound, int tensor, int dim, int64_t sequence) {
    const jfa_tensor *given = bound->tensors[tensor];
    int axis = bound->manifest->info.tensors[tensor].dims[dim].index;
    if (!given || !jfa_bound_length(bound, axis, sequence))
        return 0;
    const jfa_rows *rows = &given->rows[dim];
    switch (rows->kind) {
    case JFA_ROWS_SHARED:
        return 0;
    case JFA_ROWS_PADDED:
        return sequence * rows->pitch;
    case JFA_ROWS_LISTED:
        return rows->list[sequence];
    default:
        return jfa_bound_start(bound, axis, sequence);
    }
}

// The part of jfa_bind that looks at the tensors' memory: rows, strides, alignment, overlaps. Axes and
// extents are good. Sets the limits of axes that are on the device.
jfa_status jfa_bound_check_tensors(jfa_bound *bound, jfa_error *err);
// Has the tensor elements?
bool jfa_tensor_has_elements(const jfa_tensor *tensor);
// Bytes from its first to behind its last element; of a tensor that was checked and has elements.
uint64_t jfa_tensor_bytes(const jfa_tensor *tensor);

// ---------------------------------------------------------------- work.c, maps.c

typedef struct {
    int64_t records, items;
    size_t bytes;
    int32_t *words; // [records][fields]; owned; NULL when there are none
} jfa_work;

// Makes the list of work. The caller frees work->words. Where offsets are on the device: as many empty
// records as there can be, followed by the status (jfa_work_status), which says that all is well.
jfa_status jfa_work_build(const jfa_bound *bound, jfa_work *work, jfa_error *err);

// Where the status of a list of `records` records lies, in bytes from its start.
size_t jfa_work_status(const jfa_manifest *manifest, int64_t records);

// Fills the description of a tensor map; address 0 for a tensor without elements, which every coordinate
// misses.
jfa_status jfa_map_fill(const jfa_bound *bound, int map, jfa_tensor_map *out, jfa_error *err);

// Fills the kernel's block of parameters: `block` has jfa_manifest_parameter_bytes bytes, `maps` 128 for each
// map.
typedef struct {
    uint64_t records, watchdog, queue; // on the device; 0: there is none
} jfa_addresses;

void jfa_parameters_fill(const jfa_bound *bound, const jfa_work *work, const jfa_addresses *addresses,
                         const uint8_t *maps, uint8_t *block);

// ---------------------------------------------------------------- planner.c, planner_text.c

// The kernel that fills a list of work on the device, in PTX for that chip; the caller frees it. NULL: no
// memory. Its parameters are a jfa_planner_block.
char *jfa_planner_text(const jfa_manifest *manifest, const char *arch);

enum { JFA_PLANNER_THREADS = 128 };

// The planner's parameters in the order of its .param list.
typedef struct {
    uint64_t records, status;
    uint32_t sequences, most_records;
    struct {
        uint64_t offsets; // 0: all sequences have `length`
        uint32_t length, most_total, most_length, unused;
    } axes[JFA_MAX_AXES]; // as many as the kernel has
    struct {
        uint32_t is_packed, pitch; // the first row is is_packed * offset + pitch * sequence
    } bases[JFA_MAX_FIELDS];       // of the fields that are bases
} jfa_planner_block;

// What the planner finds wrong with a sequence: sequence * 64 + axis * 8 + one of these; the least counts.
typedef enum {
    JFA_WRONG_START = 1, // the first offset is not 0
    JFA_WRONG_ORDER,     // offsets decrease
    JFA_WRONG_TOTAL,     // they pass the tensors' rows
    JFA_WRONG_LENGTH,    // more positions than a sequence has rows
} jfa_wrong;

static const uint64_t JFA_NOTHING_WRONG = UINT64_MAX;

// Loads the kernel's planner unless it is loaded, and lays out its parameters; `block` as
// jfa_planner_block_bytes says.
jfa_status jfa_planner_load(jfa_kernel *kernel, jfa_error *err);
void jfa_planner_unload(jfa_kernel *kernel);
size_t jfa_planner_block_bytes(const jfa_manifest *manifest);
void jfa_planner_fill(const jfa_bound *bound, const jfa_work *work, uint64_t records, uint8_t *block);
jfa_status jfa_planner_launch(const jfa_kernel *kernel, int64_t sequences, const uint8_t *block, void *stream,
                              jfa_error *err);
jfa_status jfa_planner_verdict(const jfa_manifest *manifest, uint64_t status, jfa_error *err);

// backend_cuda.c: always there; whether the machine has a driver shows when a device is opened.
extern const jfa_backend jfa_cuda_backend;

#endif
