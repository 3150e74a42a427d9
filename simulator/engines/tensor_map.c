// tensor_map.c: rules, encoding and the walk over a box.
#include "simulator/engines/tensor_map.h"
#include "simulator/engines/swizzle.h"

#include <stdio.h>
#include <string.h>

static bool refuse(char message[200], const char *rule, int at, unsigned long long value) {
    if (at >= 0)
        snprintf(message, 200, "%s: dimension %d has %llu", rule, at, value);
    else
        snprintf(message, 200, "%s: it is %llu", rule, value);
    return false;
}

// By CUtensorMapDataType. The packed types of 4 and 6 bits, 13 to 15, are not simulated.
static const struct {
    int bytes;
    bool floating;
} KINDS[] = {{1, false}, {2, false}, {4, false}, {4, false}, {8, false}, {8, false}, {2, true},
             {4, true},  {8, true},  {2, true},  {4, true},  {4, true},  {4, true}};

static bool check_type(const SimTensorMap *map, char message[200]) {
    if (map->kind < 0 || map->kind >= (int)(sizeof KINDS / sizeof KINDS[0]))
        return refuse(message, "the element type must be 0 to 12", -1, (unsigned long long)map->kind);
    if (map->dtype_bytes != KINDS[map->kind].bytes)
        return refuse(message, "the bytes of an element must be those of its type", -1,
                      (unsigned long long)map->dtype_bytes);
    if (map->fill_nan && !KINDS[map->kind].floating)
        return refuse(message, "only floating types can be filled with NaN, not this type", -1,
                      (unsigned long long)map->kind);
    return true;
}

bool sim_tensor_map_check(const SimTensorMap *map, char message[200]) {
    if (map->rank < 1 || map->rank > 5)
        return refuse(message, "the rank must be 1 to 5", -1, (unsigned long long)map->rank);
    if (!check_type(map, message))
        return false;
    if (map->address % 16)
        return refuse(message, "the address must be a multiple of 16", -1, map->address);
    for (int i = 0; i < map->rank; i++) {
        if (map->dims[i] < 1 || map->dims[i] > 1ull << 32)
            return refuse(message, "an extent must be 1 to 2^32", i, map->dims[i]);
        if (i > 0 && (map->strides[i] % 16 || map->strides[i] >= 1ull << 40))
            return refuse(message, "a stride must be a multiple of 16 below 2^40 bytes", i, map->strides[i]);
        if (map->box[i] < 1 || map->box[i] > 256)
            return refuse(message, "a box must be 1 to 256 elements wide", i, map->box[i]);
    }
    uint64_t inner = (uint64_t)map->box[0] * (uint64_t)map->dtype_bytes;
    if (inner % 16)
        return refuse(message, "the inner box must be a multiple of 16 bytes", -1, inner);
    int swizzle = map->swizzle_bytes;
    if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
        return refuse(message, "the swizzle must be 0, 32, 64 or 128 bytes", -1, (unsigned long long)swizzle);
    if (swizzle && inner > (uint64_t)swizzle)
        return refuse(message, "the inner box must not be wider than the swizzle in bytes", -1, inner);
    return true;
}

// ---------------------------------------------------------------- 128 opaque bytes

static const uint32_t MAGIC = 0x4D54464Au; // "JFTM"

typedef struct {
    uint32_t magic, checksum;
    uint8_t dtype_bytes, kind, rank, swizzle_bytes, fill_nan, unused[3];
    uint64_t address;
    uint32_t last_index[5]; // extents less one
    uint16_t last_box[5];
    uint16_t more_unused;
    uint64_t strides[4];
    uint8_t rest[40];
} Encoded;

_Static_assert(sizeof(Encoded) == 128, "a tensor map has 128 bytes");

static uint32_t checksum(const Encoded *encoded) {
    Encoded copy = *encoded;
    copy.checksum = 0;
    uint8_t bytes[sizeof copy];
    memcpy(bytes, &copy, sizeof copy);
    uint32_t hash = 2166136261u; // FNV-1a
    for (size_t i = 0; i < sizeof bytes; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

void sim_tensor_map_encode(const SimTensorMap *map, uint8_t out[128]) {
    Encoded encoded;
    memset(&encoded, 0, sizeof encoded);
    encoded.magic = MAGIC;
    encoded.dtype_bytes = (uint8_t)map->dtype_bytes;
    encoded.kind = (uint8_t)map->kind;
    encoded.rank = (uint8_t)map->rank;
    encoded.swizzle_bytes = (uint8_t)map->swizzle_bytes;
    encoded.fill_nan = map->fill_nan;
    encoded.address = map->address;
    for (int i = 0; i < map->rank; i++) {
        encoded.last_index[i] = (uint32_t)(map->dims[i] - 1);
        encoded.last_box[i] = (uint16_t)(map->box[i] - 1);
        if (i > 0)
            encoded.strides[i - 1] = map->strides[i];
    }
    encoded.checksum = checksum(&encoded);
    memcpy(out, &encoded, sizeof encoded);
}

bool sim_tensor_map_decode(const uint8_t in[128], SimTensorMap *map) {
    Encoded encoded;
    char message[200];
    memcpy(&encoded, in, sizeof encoded);
    if (encoded.magic != MAGIC || encoded.checksum != checksum(&encoded))
        return false;
    *map = (SimTensorMap){.dtype_bytes = encoded.dtype_bytes,
                          .kind = encoded.kind,
                          .rank = encoded.rank,
                          .address = encoded.address,
                          .swizzle_bytes = encoded.swizzle_bytes,
                          .fill_nan = encoded.fill_nan};
    for (int i = 0; i < 5 && i < map->rank; i++) {
        map->dims[i] = (uint64_t)encoded.last_index[i] + 1;
        map->box[i] = (uint32_t)encoded.last_box[i] + 1;
        map->strides[i] = i ? encoded.strides[i - 1] : (uint64_t)map->dtype_bytes;
    }
    return sim_tensor_map_check(map, message);
}

// ---------------------------------------------------------------- the walk

int64_t sim_tensor_map_box_bytes(const SimTensorMap *map) {
    int64_t bytes = map->dtype_bytes;
    for (int i = 0; i < map->rank; i++)
        bytes *= map->box[i];
    return bytes;
}

// One innermost row: pieces of 16 bytes of shared memory, cut where the tensor begins or ends.
static bool walk_row(const SimTensorMap *map, int64_t first, uint64_t global, bool row_inside,
                     uint32_t shared, SimRunVisitor visit, void *context) {
    int element = map->dtype_bytes, row_bytes = (int)map->box[0] * element;
    int64_t begin = first < 0 ? -first : 0,
            end = (int64_t)map->dims[0] - first; // elements of the row inside of the tensor
    begin *= element, end *= element;
    if (!row_inside || end < 0)
        end = 0;
    for (int at = 0; at < row_bytes;) {
        int stop = (at / 16 + 1) * 16;
        bool inside = at >= begin && at < end;
        if (inside && stop > end)
            stop = (int)end;
        if (!inside && at < begin && stop > begin && begin < end)
            stop = (int)begin;
        if (stop > row_bytes)
            stop = row_bytes;
        if (!visit(context, sim_swizzle(shared + (uint32_t)at, map->swizzle_bytes), global + (uint64_t)at,
                   stop - at, inside))
            return false;
        at = stop;
    }
    return true;
}

bool sim_tensor_map_walk(const SimTensorMap *map, const int32_t coordinates[5], uint32_t shared_base,
                         SimRunVisitor visit, void *context) {
    uint32_t index[5] = {0};
    uint32_t row_bytes = map->box[0] * (uint32_t)map->dtype_bytes;
    for (uint32_t shared = shared_base;; shared += row_bytes) {
        bool inside = true;
        uint64_t global = map->address + (uint64_t)(int64_t)coordinates[0] * (uint64_t)map->dtype_bytes;
        for (int i = 1; i < map->rank; i++) {
            int64_t at = (int64_t)coordinates[i] + index[i];
            inside &= at >= 0 && (uint64_t)at < map->dims[i];
            global += (uint64_t)at * map->strides[i];
        }
        if (!walk_row(map, coordinates[0], global, inside, shared, visit, context))
            return false;
        int i = 1;
        while (i < map->rank && ++index[i] == map->box[i])
            index[i++] = 0;
        if (i >= map->rank)
            return true;
    }
}
