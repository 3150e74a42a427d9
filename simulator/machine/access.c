// access.c: loads, stores, atomics and addresses (PTX ISA: "ld", "st", "atom", "red", "cvta", "isspacep",
// "mapa").
#include "simulator/machine/decode.h"

#include <math.h>
#include <string.h>

enum { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM, SPACE_CONST };

static uint64_t address_of(Warp *warp, const Op *op, const Operand *base, int lane) {
    uint64_t value = lane_value(warp, base, lane);
    if (op->space == SPACE_SHARED)
        value = (uint32_t)value; // a 64-bit register may hold a shared-window address
    return value + (uint64_t)(int64_t)base->add;
}

static int resolve_space(uint64_t *address, int space) {
    if (space != SPACE_GENERIC)
        return space;
    switch (*address & WINDOW_MASK) {
    case SHARED_WINDOW:
        *address = (uint32_t)*address;
        return SPACE_SHARED;
    case LOCAL_WINDOW:
        *address = (uint32_t)*address;
        return SPACE_LOCAL;
    case PARAM_WINDOW:
        *address = (uint32_t)*address;
        return SPACE_PARAM;
    default:
        return SPACE_GLOBAL;
    }
}

static uint8_t *local_pointer(Warp *warp, const Op *op, int lane, uint64_t address, uint32_t bytes) {
    int64_t size = warp->cta->cluster->launch->program->entry->local_bytes;
    if (address + bytes > (uint64_t)size) {
        fault(warp, op, SIM_FAULT_BOUNDS,
              "%u bytes at local address 0x%llx: the thread has %lld bytes of local memory", bytes,
              (unsigned long long)address, (long long)size);
        return NULL;
    }
    return warp->cta->local_memory + (size_t)size * (size_t)(warp->number * LANES + lane) + address;
}

// The bytes that one lane accesses; NULL after a fault. `write`: they will be written.
static uint8_t *pointer(Warp *warp, const Op *op, int lane, uint64_t address, uint32_t bytes, bool read,
                        bool write) {
    int space = resolve_space(&address, op->space);
    Launch *launch = warp->cta->cluster->launch;
    switch (space) {
    case SPACE_SHARED: {
        uint32_t offset;
        Cta *cta = machine_shared(warp, op, (uint32_t)address, bytes, &offset);
        if (!cta || (read && !race_shared_read(cta, warp, op, NULL, offset, bytes)) ||
            (write && !race_shared_write(cta, warp, op, NULL, offset, bytes)))
            return NULL;
        return cta->shared + offset;
    }
    case SPACE_LOCAL:
        return local_pointer(warp, op, lane, address, bytes);
    case SPACE_PARAM:
        if (address + bytes > launch->param_bytes || write) {
            fault(warp, op, SIM_FAULT_BOUNDS, "%u bytes at parameter offset %llu of %zu", bytes,
                  (unsigned long long)address, launch->param_bytes);
            return NULL;
        }
        return (uint8_t *)(uintptr_t)launch->params + address;
    default: {
        uint8_t *data = read ? machine_global(warp, op, address, bytes, false) : NULL;
        return write ? machine_global(warp, op, address, bytes, true) : data;
    }
    }
}

static uint64_t load_bits(const uint8_t *from, int bytes) {
    uint64_t value = 0;
    memcpy(&value, from, (size_t)bytes);
    return value;
}

static int element_bytes(const Op *op) {
    return ptx_type_bytes((PtxType)op->type);
}

static uint64_t widened(uint64_t value, int type) {
    int bits = 8 * ptx_type_bytes((PtxType)type);
    if (type >= PTX_S8 && type <= PTX_S64 && bits < 64)
        return (uint64_t)((int64_t)(value << (64 - bits)) >> (64 - bits));
    return value;
}

static void run_load(Warp *warp, const Op *op, uint32_t mask) {
    int each = element_bytes(op), total = each * op->count;
    const Operand *base = &op->operands[op->count];
    FOR_LANES(lane, mask) {
        const uint8_t *from =
            pointer(warp, op, (int)lane, address_of(warp, op, base, (int)lane), (uint32_t)total, true, false);
        if (!from)
            return;
        for (int i = 0; i < op->count; i++) {
            if (each == 16)
                memcpy(reg64(warp, &op->operands[i]) + 2 * lane, from, 16);
            else
                lane_set(warp, &op->operands[i], (int)lane,
                         widened(load_bits(from + i * each, each), op->type));
        }
    }
}

static void run_store(Warp *warp, const Op *op, uint32_t mask) {
    int each = element_bytes(op), total = each * op->count;
    FOR_LANES(lane, mask) {
        uint8_t *to = pointer(warp, op, (int)lane, address_of(warp, op, &op->operands[0], (int)lane),
                              (uint32_t)total, false, true);
        if (!to)
            return;
        for (int i = 0; i < op->count; i++) {
            if (each == 16) {
                memcpy(to, reg64(warp, &op->operands[1]) + 2 * lane, 16);
                continue;
            }
            uint64_t value = lane_value(warp, &op->operands[1 + i], (int)lane);
            memcpy(to + i * each, &value, (size_t)each);
        }
    }
}

static int space_of(const Decoder *d) {
    return has(d, "global")                                                         ? SPACE_GLOBAL
           : has(d, "shared") || has(d, "shared::cta") || has(d, "shared::cluster") ? SPACE_SHARED
           : has(d, "local")                                                        ? SPACE_LOCAL
           : has(d, "param") || has(d, "param::entry")                              ? SPACE_PARAM
           : has(d, "const")                                                        ? SPACE_CONST
                                                                                    : SPACE_GENERIC;
}

static const char *const ACCESS_PARTS[] = {"global",
                                           "shared",
                                           "shared::cta",
                                           "shared::cluster",
                                           "local",
                                           "param",
                                           "param::entry",
                                           "const",
                                           "relaxed",
                                           "acquire",
                                           "release",
                                           "volatile",
                                           "weak",
                                           "cta",
                                           "cluster",
                                           "gpu",
                                           "sys",
                                           "nc",
                                           "ca",
                                           "cg",
                                           "cs",
                                           "lu",
                                           "cv",
                                           "wb",
                                           "wt",
                                           "v2",
                                           "v4",
                                           "v8",
                                           "L1::evict_last",
                                           "L1::evict_first",
                                           "L1::no_allocate",
                                           "L1::evict_normal",
                                           "L1::evict_unchanged",
                                           "L2::cache_hint",
                                           "L2::evict_last",
                                           "L2::evict_first",
                                           "L2::evict_normal",
                                           "L2::64B",
                                           "L2::128B",
                                           "L2::256B",
                                           "noftz",
                                           NULL};

static bool decode_access(Decoder *d, Op *op) {
    bool load = !strcmp(d->in->parts[0], "ld");
    if (has(d, "async"))
        return decode_store_async(d, op);
    op->type = last_type(d);
    op->space = space_of(d);
    op->count = has(d, "v2") ? 2 : has(d, "v4") ? 4 : has(d, "v8") ? 8 : 1;
    op->run = load ? run_load : run_store;
    if (op->type == TYPE_NONE || !only(d, ACCESS_PARTS) || !take_operands(d, op, op->type))
        return false;
    return op->operand_count >= op->count + 1;
}

// ---------------------------------------------------------------- atomics

enum { ATOM_ADD, ATOM_MIN, ATOM_MAX, ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_EXCH, ATOM_CAS, ATOM_INC, ATOM_DEC };

static uint64_t apply(const Op *op, uint64_t old, uint64_t value, uint64_t third) {
    if (op->type == PTX_F32 || op->type == PTX_F64) {
        double a, b;
        float fa, fb;
        if (op->type == PTX_F32) {
            uint32_t wa = (uint32_t)old, wb = (uint32_t)value;
            memcpy(&fa, &wa, 4), memcpy(&fb, &wb, 4);
            float r = op->mode == ATOM_ADD ? fa + fb : op->mode == ATOM_MIN ? fminf(fa, fb) : fmaxf(fa, fb);
            memcpy(&wa, &r, 4);
            return wa;
        }
        memcpy(&a, &old, 8), memcpy(&b, &value, 8);
        a = op->mode == ATOM_ADD ? a + b : op->mode == ATOM_MIN ? fmin(a, b) : fmax(a, b);
        memcpy(&old, &a, 8);
        return old;
    }
    bool is_signed = op->type >= PTX_S8 && op->type <= PTX_S64;
    bool less = is_signed ? (int64_t)widened(value, op->type) < (int64_t)widened(old, op->type) : value < old;
    switch (op->mode) {
    case ATOM_ADD:
        return old + value;
    case ATOM_MIN:
        return less ? value : old;
    case ATOM_MAX:
        return less ? old : value;
    case ATOM_AND:
        return old & value;
    case ATOM_OR:
        return old | value;
    case ATOM_XOR:
        return old ^ value;
    case ATOM_EXCH:
        return value;
    case ATOM_CAS:
        return old == value ? third : old;
    case ATOM_INC:
        return old >= value ? 0 : old + 1;
    default:
        return old == 0 || old > value ? value : old - 1;
    }
}

static void run_atomic(Warp *warp, const Op *op, uint32_t mask) {
    int bytes = element_bytes(op), base = op->first_list;
    Sim *sim = warp->cta->cluster->launch->sim;
    FOR_LANES(lane, mask) {
        uint64_t address = address_of(warp, op, &op->operands[base], (int)lane);
        pthread_mutex_lock(&sim->memory_lock);
        uint8_t *at = pointer(warp, op, (int)lane, address, (uint32_t)bytes, true, true);
        uint64_t old = 0;
        if (at) {
            old = load_bits(at, bytes);
            uint64_t value = lane_value(warp, &op->operands[base + 1], (int)lane);
            uint64_t third = op->mode == ATOM_CAS ? lane_value(warp, &op->operands[base + 2], (int)lane) : 0;
            if (bytes == 4)
                value = (uint32_t)value, third = (uint32_t)third;
            uint64_t result = apply(op, old, value, third);
            memcpy(at, &result, (size_t)bytes);
        }
        pthread_mutex_unlock(&sim->memory_lock);
        if (!at)
            return;
        if (base == 1)
            lane_set(warp, &op->operands[0], (int)lane, old);
    }
}

static bool decode_atomic(Decoder *d, Op *op) {
    static const char *const NAMES[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"};
    op->mode = -1;
    if (has(d, "async"))
        return decode_store_async(d, op);
    for (int i = 0; i < 10; i++)
        if (has(d, NAMES[i]))
            op->mode = i;
    op->type = last_type(d);
    op->space = space_of(d);
    op->run = run_atomic;
    op->first_list = !strcmp(d->in->parts[0], "atom");
    if (op->mode < 0 || op->type == TYPE_NONE || op->type == PTX_F16 || op->type == PTX_F16X2 ||
        has(d, "async") || has(d, "v2") || has(d, "v4"))
        return false;
    return take_operands(d, op, op->type);
}

// ---------------------------------------------------------------- addresses

static void run_cvta(Warp *warp, const Op *op, uint32_t mask) {
    static const uint64_t WINDOWS[] = {[SPACE_GLOBAL] = 0,
                                       [SPACE_SHARED] = SHARED_WINDOW,
                                       [SPACE_LOCAL] = LOCAL_WINDOW,
                                       [SPACE_PARAM] = PARAM_WINDOW,
                                       [SPACE_CONST] = 0};
    FOR_LANES(lane, mask) {
        uint64_t value =
            lane_value(warp, &op->operands[1], (int)lane) + (uint64_t)(int64_t)op->operands[1].add;
        if (op->mode) // to the space
            value = WINDOWS[op->space] ? (uint32_t)value : value;
        else
            value = WINDOWS[op->space] | (WINDOWS[op->space] ? (uint32_t)value : value);
        lane_set(warp, &op->operands[0], (int)lane, value);
    }
}

static bool decode_cvta(Decoder *d, Op *op) {
    op->space = space_of(d);
    op->mode = has(d, "to");
    op->run = run_cvta;
    return op->space != SPACE_GENERIC && take_operands(d, op, PTX_B64);
}

static void run_isspacep(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        uint64_t address = lane_value(warp, &op->operands[1], (int)lane);
        lane_set(warp, &op->operands[0], (int)lane, resolve_space(&address, SPACE_GENERIC) == op->space);
    }
}

static bool decode_isspacep(Decoder *d, Op *op) {
    op->space = space_of(d);
    op->run = run_isspacep;
    return take_operands(d, op, PTX_B64);
}

static void run_mapa(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        uint64_t address = lane_value(warp, &op->operands[1], (int)lane),
                 rank = lane_value(warp, &op->operands[2], (int)lane);
        if (rank >= (uint64_t)warp->cta->cluster->cta_count) {
            fault(warp, op, SIM_FAULT_BOUNDS, "mapa to CTA rank %llu of a cluster of %d",
                  (unsigned long long)rank, warp->cta->cluster->cta_count);
            return;
        }
        lane_set(warp, &op->operands[0], (int)lane, (address & ~0xFF000000ull) | rank << 24);
    }
}

static bool decode_mapa(Decoder *d, Op *op) {
    op->run = run_mapa;
    return take_operands(d, op, last_type(d) == PTX_U64 ? PTX_B64 : PTX_B32);
}

static void run_getctarank(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask)
    lane_set(warp, &op->operands[0], (int)lane, lane_value(warp, &op->operands[1], (int)lane) >> 24 & 0xFF);
}

static bool decode_getctarank(Decoder *d, Op *op) {
    op->run = run_getctarank;
    return take_operands(d, op, PTX_B64);
}

static void run_nothing(Warp *warp, const Op *op, uint32_t mask) {
    (void)warp, (void)op, (void)mask;
}

static bool decode_hint(Decoder *d, Op *op) {
    op->run = run_nothing; // prefetches and cache policies have no effect on results
    return take_operands(d, op, PTX_B64);
}

const OpEntry ACCESS_OPS[] = {
    {"ld", decode_access},          {"st", decode_access},
    {"atom", decode_atomic},        {"red", decode_atomic},
    {"cvta", decode_cvta},          {"isspacep", decode_isspacep},
    {"mapa", decode_mapa},          {"getctarank", decode_getctarank},
    {"prefetch", decode_hint},      {"prefetchu", decode_hint},
    {"createpolicy", decode_hint},  {"discard", decode_hint},
    {"applypriority", decode_hint}, {NULL, NULL},
};
