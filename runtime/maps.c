// maps.c: a manifest's tensor map and a bound tensor become the numbers of a tensor map (manifest.h, "Maps").
// Limits are those of cuTensorMapEncodeTiled (CUDA driver API).
#include "runtime/internal.h"

#define FAIL(err, status, ...) jfa_error_set(err, status, __VA_ARGS__)

enum { MAP_UNIT_BYTES = 16 };
static const int64_t MOST_STRIDE_BYTES = (1LL << 40) - 1, MOST_EXTENT = 1LL << 32;

// The stride in bytes. Dims with one element may have any: they get one that is valid.
static jfa_status stride_bytes(const jfa_bound *b, int tensor, int dim, int64_t *bytes, jfa_error *err) {
    const jfa_tensor *given = b->tensors[tensor];
    const char *name = b->manifest->info.tensors[tensor].name;
    int64_t size = jfa_dtype_bytes(given->dtype), stride = given->strides[dim];
    *bytes = MAP_UNIT_BYTES;
    if (given->extents[dim] < 2)
        return JFA_OK;
    if (stride > MOST_STRIDE_BYTES / size)
        return FAIL(err, JFA_ERROR_LIMIT, "tensor '%s': the stride %lld of dim %d is beyond 2^40 bytes", name,
                    (long long)stride, dim);
    *bytes = stride * size;
    if (*bytes % MAP_UNIT_BYTES)
        return FAIL(err, JFA_ERROR_PROBLEM,
                    "tensor '%s': the stride of dim %d is %lld elements = %lld bytes; tensor maps need "
                    "multiples of %d "
                    "bytes",
                    name, dim, (long long)stride, (long long)*bytes, MAP_UNIT_BYTES);
    return JFA_OK;
}

// Tiles may pass the end of a sequence only along the ragged dim. Along another axis a sequence must end with
// a tile, or with the tensor, where the map clips.
static jfa_status check_ends(const jfa_bound *b, int tensor, int dim, int64_t tile, jfa_error *err) {
    const jfa_tensor_info *info = &b->manifest->info.tensors[tensor];
    int axis = info->dims[dim].index;
    int64_t extent = b->tensors[tensor]->extents[dim];
    if (info->dims[dim].kind != JFA_DIM_AXIS || tile == 1)
        return JFA_OK;
    if (jfa_bound_is_on_device(b, axis))
        return FAIL(err, JFA_ERROR_UNSUPPORTED,
                    "tensor '%s' is moved in tiles of %lld along axis '%s': its lengths must be known on the "
                    "host",
                    info->name, (long long)tile, b->manifest->info.axes[axis].name);
    for (int64_t s = 0; s < b->sequences; s++) {
        int64_t length = jfa_bound_length(b, axis, s);
        if (length % tile && jfa_bound_base(b, tensor, dim, s) + length != extent)
            return FAIL(
                err, JFA_ERROR_PROBLEM,
                "tensor '%s': sequence %lld has %lld positions on axis '%s', dim %d; its tiles of %lld would "
                "reach into the next rows, so it must be a multiple of %lld or end where the tensor ends",
                info->name, (long long)s, (long long)length, b->manifest->info.axes[axis].name, dim,
                (long long)tile, (long long)tile);
    }
    return JFA_OK;
}

static jfa_status check_tensor(const jfa_bound *b, const jfa_map *map, jfa_error *err) {
    const jfa_tensor *given = b->tensors[map->tensor];
    const char *name = b->manifest->info.tensors[map->tensor].name;
    int inner = given->rank - 1;
    if (given->extents[inner] > 1 && given->strides[inner] != 1)
        return FAIL(err, JFA_ERROR_PROBLEM,
                    "tensor '%s': the stride of the innermost dim is %lld; tensor maps need 1", name,
                    (long long)given->strides[inner]);
    if (jfa_tensor_has_elements(given) && given->address % MAP_UNIT_BYTES)
        return FAIL(err, JFA_ERROR_PROBLEM,
                    "tensor '%s': the address 0x%llx is no multiple of %d bytes; tensor maps need that", name,
                    (unsigned long long)given->address, MAP_UNIT_BYTES);
    return check_ends(b, map->tensor, inner, map->cols, err);
}

static bool has_entry(const jfa_map *map, jfa_map_entry_kind kind) {
    for (int i = 0; i < map->rank; i++)
        if (map->entries[i].kind == kind)
            return true;
    return false;
}

// Extent (elements) and stride (bytes) of one dimension of the map.
static jfa_status fill_entry(const jfa_bound *b, const jfa_map *map, int place, int64_t *extent,
                             int64_t *stride, jfa_error *err) {
    const jfa_map_entry *entry = &map->entries[place];
    const jfa_tensor *given = b->tensors[map->tensor];
    int64_t inner = given->extents[given->rank - 1], cols = map->entries[0].box;
    jfa_status status;
    *stride = MAP_UNIT_BYTES;
    switch (entry->kind) {
    case JFA_ENTRY_COL:
        *extent = has_entry(map, JFA_ENTRY_CHUNK) ? cols : inner;
        return JFA_OK;
    case JFA_ENTRY_CHUNK:
        *extent = inner / cols;
        *stride = cols * jfa_dtype_bytes(given->dtype);
        return JFA_OK;
    case JFA_ENTRY_ROWS:
        *extent = entry->box;
        return stride_bytes(b, map->tensor, entry->dim, stride, err);
    case JFA_ENTRY_END:
        *extent = given->extents[entry->dim] + 1;
        return stride_bytes(b, map->tensor, entry->dim, stride, err);
    default:
        *extent = given->extents[entry->dim];
        status = check_ends(b, map->tensor, entry->dim, entry->box, err);
        return status ? status : stride_bytes(b, map->tensor, entry->dim, stride, err);
    }
}

// A ragged map starts R rows before its tensor. A tensor without elements is never reached: all coordinates
// lie outside.
static jfa_status set_address(const jfa_bound *b, const jfa_map *map, jfa_tensor_map *out, jfa_error *err) {
    const jfa_tensor *given = b->tensors[map->tensor];
    if (!jfa_tensor_has_elements(given))
        return JFA_OK;
    out->address = given->address;
    for (int i = 0; i < map->rank; i++) {
        if (map->entries[i].kind != JFA_ENTRY_ROWS)
            continue;
        uint64_t before = (uint64_t)map->entries[i].box * out->strides[i];
        if (before >= given->address)
            return FAIL(err, JFA_ERROR_LIMIT,
                        "tensor '%s': the address 0x%llx has less than %llu bytes before it, as its "
                        "ragged tensor map needs",
                        b->manifest->info.tensors[map->tensor].name, (unsigned long long)given->address,
                        (unsigned long long)before);
        out->address -= before;
    }
    return JFA_OK;
}

jfa_status jfa_map_fill(const jfa_bound *b, int number, jfa_tensor_map *out, jfa_error *err) {
    const jfa_map *map = &b->manifest->maps[number];
    const jfa_tensor *given = b->tensors[map->tensor];
    *out = (jfa_tensor_map){.dtype = given->dtype, .rank = map->rank, .swizzle_bytes = map->swizzle_bytes};
    jfa_status status = check_tensor(b, map, err);
    for (int i = 0; i < map->rank && !status; i++) {
        int64_t extent = 1, stride = 0;
        status = fill_entry(b, map, i, &extent, &stride, err);
        if (!status && extent > MOST_EXTENT)
            status = FAIL(err, JFA_ERROR_LIMIT, "tensor '%s': an extent of %lld is beyond 2^32",
                          b->manifest->info.tensors[map->tensor].name, (long long)extent);
        out->dims[i] = extent > 0 ? (uint64_t)extent : 1; // an empty tensor: it is never reached
        out->strides[i] = i ? (uint64_t)stride : 0;
        out->box[i] = (uint32_t)map->entries[i].box;
    }
    return status ? status : set_address(b, map, out, err);
}
