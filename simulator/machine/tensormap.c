// tensormap.c: tensor maps edited by a kernel (PTX ISA: "tensormap.replace", "tensormap.cp_fenceproxy").
#include "simulator/engines/tensor_map.h"
#include "simulator/machine/decode.h"

#include <string.h>

enum { MAP_BYTES = 128 };

typedef enum { ADDRESS, RANK, BOX, DIM, STRIDE, ELEMENT_STRIDE, TYPE, INTERLEAVE, SWIZZLE, FILL } Field;

static const struct {
    const char *name;
    Field field;
    bool has_index;
} FIELDS[] = {
    {"global_address", ADDRESS, false},
    {"rank", RANK, false},
    {"box_dim", BOX, true},
    {"global_dim", DIM, true},
    {"global_stride", STRIDE, true},
    {"element_stride", ELEMENT_STRIDE, true},
    {"elemtype", TYPE, false},
    {"interleave_layout", INTERLEAVE, false},
    {"swizzle_mode", SWIZZLE, false},
    {"fill_mode", FILL, false},
};

// ---------------------------------------------------------------- unfinished maps

// A map that a kernel builds field by field, from 128 zeros, breaks rules until the last field is there.
// Until then its bytes hold this; tensormap.cp_fenceproxy turns it into a tensor map.
typedef struct {
    uint32_t magic;
    uint8_t dtype_bytes, kind, rank, swizzle_bytes, fill_nan, unused[7];
    uint64_t address, strides[4];
    uint32_t last_index[5]; // extents less one
    uint16_t box[5];
    uint8_t rest[42];
} Draft;

_Static_assert(sizeof(Draft) == MAP_BYTES, "a tensor map has 128 bytes");

static const uint32_t DRAFT_MAGIC = 0x44524146u;

static void draft_from(const uint8_t *bytes, Draft *draft) {
    SimTensorMap map;
    memcpy(draft, bytes, sizeof *draft);
    if (draft->magic == DRAFT_MAGIC || !sim_tensor_map_decode(bytes, &map)) {
        draft->magic = DRAFT_MAGIC;
        return;
    }
    *draft = (Draft){.magic = DRAFT_MAGIC,
                     .dtype_bytes = (uint8_t)map.dtype_bytes,
                     .kind = (uint8_t)map.kind,
                     .rank = (uint8_t)map.rank,
                     .swizzle_bytes = (uint8_t)map.swizzle_bytes,
                     .fill_nan = map.fill_nan,
                     .address = map.address};
    for (int i = 0; i < map.rank; i++) {
        draft->last_index[i] = (uint32_t)(map.dims[i] - 1);
        draft->box[i] = (uint16_t)map.box[i];
        if (i > 0)
            draft->strides[i - 1] = map.strides[i];
    }
}

static SimTensorMap draft_map(const Draft *draft) {
    SimTensorMap map = {.dtype_bytes = draft->dtype_bytes,
                        .kind = draft->kind,
                        .rank = draft->rank,
                        .swizzle_bytes = draft->swizzle_bytes,
                        .fill_nan = draft->fill_nan,
                        .address = draft->address};
    for (int i = 0; i < 5; i++) {
        map.dims[i] = (uint64_t)draft->last_index[i] + 1;
        map.box[i] = draft->box[i];
        map.strides[i] = i ? draft->strides[i - 1] : draft->dtype_bytes;
    }
    return map;
}

// By the numbers of tensormap.replace (PTX ISA: "tensormap.replace", table of .elemtype): CUtensorMapDataType
// and bytes.
static const struct {
    uint8_t kind, bytes;
} TYPES[] = {{0, 1}, {1, 2},  {2, 4}, {3, 4}, {4, 8},  {5, 8}, {6, 2},
             {7, 4}, {10, 4}, {8, 8}, {9, 2}, {11, 4}, {12, 4}};

// What is wrong with the value, or NULL.
static const char *replace(Draft *draft, Field field, uint64_t index, uint64_t value) {
    static const uint8_t SWIZZLE_BYTES[] = {0, 32, 64, 128};
    if (index > (field == STRIDE ? 3 : 4))
        return "there is no such dimension in a tensor map";
    switch (field) {
    case ADDRESS:
        draft->address = value;
        return NULL;
    case RANK:
        draft->rank = (uint8_t)(value < 5 ? value + 1 : 0);
        return value < 5 ? NULL : "the rank less one must be 0 to 4";
    case BOX:
        draft->box[index] = (uint16_t)value;
        return value >= 1 && value <= 256 ? NULL : "a box must be 1 to 256 elements wide";
    case DIM:
        draft->last_index[index] = (uint32_t)(value - 1);
        return NULL;
    case STRIDE:
        draft->strides[index] = value;
        return NULL;
    case ELEMENT_STRIDE:
        return value == 1 ? NULL : "element strides other than 1 are not supported";
    case INTERLEAVE:
        return value == 0 ? NULL : "interleaved layouts are not supported";
    case FILL:
        draft->fill_nan = value != 0;
        return value <= 1 ? NULL : "the fill mode must be 0 or 1";
    case SWIZZLE:
        draft->swizzle_bytes = value < 4 ? SWIZZLE_BYTES[value] : 0;
        return value < 4 ? NULL : "the swizzle mode must be 0 to 3";
    default:
        if (value >= sizeof TYPES / sizeof TYPES[0])
            return "the element type must be 0 to 12";
        draft->kind = TYPES[value].kind;
        draft->dtype_bytes = TYPES[value].bytes;
        return NULL;
    }
}

// ---------------------------------------------------------------- instructions

static uint64_t address_of(Warp *warp, const Operand *base, int lane) {
    return lane_value(warp, base, lane) + (uint64_t)(int64_t)base->add;
}

// The map's bytes for reading or writing, checked as ordinary accesses of 16 bytes. They may lie in two
// places.
static bool move_map(Warp *warp, const Op *op, uint64_t address, bool shared, uint8_t *bytes, bool write) {
    for (uint32_t i = 0; i < MAP_BYTES; i += 16) {
        uint8_t *at;
        if (shared) {
            uint32_t offset;
            Cta *cta = machine_shared(warp, op, (uint32_t)address + i, 16, &offset);
            if (!cta || !(write ? race_shared_write(cta, warp, op, NULL, offset, 16)
                                : race_shared_read(cta, warp, op, NULL, offset, 16)))
                return false;
            at = cta->shared + offset;
        } else if (!(at = machine_global(warp, op, address + i, 16, write))) {
            return false;
        }
        if (write)
            memcpy(at, bytes + i, 16);
        else
            memcpy(bytes + i, at, 16);
    }
    return true;
}

// op->mode: field; op->space: the map lies in shared memory. Operands: map, [index], value.
static void run_replace(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        uint8_t bytes[MAP_BYTES];
        char message[200];
        Draft draft;
        uint64_t address = address_of(warp, &op->operands[0], (int)lane);
        bool has_index = op->operand_count == 3;
        uint64_t index = has_index ? lane_value(warp, &op->operands[1], (int)lane) : 0;
        if (!move_map(warp, op, address, op->space, bytes, false))
            return;
        draft_from(bytes, &draft);
        const char *wrong = replace(&draft, (Field)op->mode, index,
                                    lane_value(warp, &op->operands[has_index ? 2 : 1], (int)lane));
        if (wrong) {
            fault(warp, op, SIM_FAULT_DESCRIPTOR, "%s", wrong);
            return;
        }
        SimTensorMap map = draft_map(&draft);
        if (!op->space && sim_tensor_map_check(&map, message)) // in global memory it is in use as it is
            sim_tensor_map_encode(&map, bytes);
        else
            memcpy(bytes, &draft, sizeof draft);
        if (!move_map(warp, op, address, op->space, bytes, true))
            return;
    }
}

static void run_copy(Warp *warp, const Op *op, uint32_t mask) {
    uint8_t bytes[MAP_BYTES];
    char message[200];
    Draft draft;
    int lane = first_lane(mask);
    if (mask != ALL_LANES) {
        fault(warp, op, SIM_FAULT_CONVERGENCE, "an aligned instruction is executed by lanes 0x%08x only",
              mask);
        return;
    }
    if (!move_map(warp, op, address_of(warp, &op->operands[1], lane), true, bytes, false))
        return;
    draft_from(bytes, &draft);
    SimTensorMap map = draft_map(&draft);
    if (!sim_tensor_map_check(&map, message)) {
        fault(warp, op, SIM_FAULT_DESCRIPTOR, "the tensor map is not legal: %s", message);
        return;
    }
    sim_tensor_map_encode(&map, bytes);
    move_map(warp, op, address_of(warp, &op->operands[0], lane), false, bytes, true);
}

static bool decode_tensormap(Decoder *d, Op *op) {
    if (!strcmp(part(d, 1), "cp_fenceproxy")) {
        op->run = run_copy;
        return d->in->operand_count == 3 && take_operands(d, op, PTX_B64);
    }
    op->mode = -1;
    bool has_index = false;
    for (size_t i = 0; i < sizeof FIELDS / sizeof FIELDS[0]; i++)
        if (!strcmp(part(d, 3), FIELDS[i].name)) {
            op->mode = (int)FIELDS[i].field;
            has_index = FIELDS[i].has_index;
        }
    if (op->mode < 0 || strcmp(part(d, 1), "replace") || strcmp(part(d, 2), "tile") ||
        d->in->operand_count != (has_index ? 3 : 2))
        return fail(d, "unsupported form %s", d->in->text);
    op->space = has(d, "shared::cta");
    op->run = run_replace;
    return take_operands(d, op, PTX_B64);
}

const OpEntry TENSORMAP_OPS[] = {{"tensormap", decode_tensormap}, {NULL, NULL}};
