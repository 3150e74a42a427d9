// tensor_map.h: tensor maps (CUDA driver API, cuTensorMapEncodeTiled) and the walk over a box (PTX ISA,
// "Tensors").
#ifndef JFA_SIMULATOR_ENGINES_TENSOR_MAP_H
#define JFA_SIMULATOR_ENGINES_TENSOR_MAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int dtype_bytes;
    int kind; // CUtensorMapDataType
    int rank; // 1..5
    uint64_t address;
    uint64_t dims[5];    // elements, innermost first
    uint64_t strides[5]; // bytes; [0] is ignored
    uint32_t box[5];     // elements
    int swizzle_bytes;   // 0, 32, 64, 128
    bool fill_nan;       // out of bounds: NaN instead of zero
} SimTensorMap;

// The rules of cuTensorMapEncodeTiled; addresses may lie outside of any allocation.
bool sim_tensor_map_check(const SimTensorMap *map, char message[200]);

// To and from the opaque 128 bytes: an own format with a checksum. false: these bytes are no tensor map.
void sim_tensor_map_encode(const SimTensorMap *map, uint8_t out[128]);
bool sim_tensor_map_decode(const uint8_t in[128], SimTensorMap *map);

int64_t sim_tensor_map_box_bytes(const SimTensorMap *map); // also what lies out of bounds counts

// Called once a contiguous run of at most 16 bytes: the shared address after the swizzle, the global address
// when the run is inside of the tensor. Addresses wrap modulo 2^64. false ends the walk.
typedef bool (*SimRunVisitor)(void *context, uint32_t shared, uint64_t global, int length, bool inside);
bool sim_tensor_map_walk(const SimTensorMap *map, const int32_t coordinates[5], uint32_t shared_base,
                         SimRunVisitor visit, void *context);

#endif
