// copy.c: bulk and tensor copies by the asynchronous proxy (PTX ISA: "cp.async.bulk", "cp.async.bulk.tensor",
// "cp.reduce.async.bulk").
#include "simulator/engines/numbers.h"
#include "simulator/machine/decode.h"

#include <math.h>
#include <string.h>

enum {
    NO_REDUCTION,
    REDUCE_ADD,
    REDUCE_MIN,
    REDUCE_MAX,
    REDUCE_INC,
    REDUCE_DEC,
    REDUCE_AND,
    REDUCE_OR,
    REDUCE_XOR
};

// ---------------------------------------------------------------- one element of a reduction

static float as_float(uint32_t word) {
    float value;
    memcpy(&value, &word, 4);
    return value;
}

static void reduce_element(uint8_t *to, const uint8_t *from, int kind, int bytes, int how) {
    enum { FLOAT16 = 6, FLOAT32 = 7, BFLOAT16 = 9, FLOAT32_FTZ = 10, INT32 = 3 }; // CUtensorMapDataType
    uint64_t a = 0, b = 0;
    memcpy(&a, to, (size_t)bytes);
    memcpy(&b, from, (size_t)bytes);
    if (kind == FLOAT32 || kind == FLOAT32_FTZ || kind == FLOAT16 || kind == BFLOAT16) {
        float x = kind == FLOAT16    ? sim_f16_to_f32((uint16_t)a)
                  : kind == BFLOAT16 ? sim_bf16_to_f32((uint16_t)a)
                                     : as_float((uint32_t)a);
        float y = kind == FLOAT16    ? sim_f16_to_f32((uint16_t)b)
                  : kind == BFLOAT16 ? sim_bf16_to_f32((uint16_t)b)
                                     : as_float((uint32_t)b);
        float r = how == REDUCE_MIN ? fminf(x, y) : how == REDUCE_MAX ? fmaxf(x, y) : x + y;
        uint32_t word;
        memcpy(&word, &r, 4);
        a = kind == FLOAT16    ? sim_f32_to_f16(r, SIM_RN, false, false)
            : kind == BFLOAT16 ? sim_f32_to_bf16(r, SIM_RN, false, false)
                               : word;
    } else {
        bool less = kind == INT32 ? (int32_t)b < (int32_t)a : b < a;
        a = how == REDUCE_ADD   ? a + b
            : how == REDUCE_MIN ? (less ? b : a)
            : how == REDUCE_MAX ? (less ? a : b)
            : how == REDUCE_AND ? a & b
            : how == REDUCE_OR  ? a | b
            : how == REDUCE_XOR ? a ^ b
            : how == REDUCE_INC ? (a >= b ? 0 : a + 1)
                                : (a == 0 || a > b ? b : a - 1);
    }
    memcpy(to, &a, (size_t)bytes);
}

// ---------------------------------------------------------------- pieces of a box

typedef struct {
    Cta *cta; // whose shared memory
    Cta *issuer;
    Async *async;
} Box;

static uint8_t *shared_bytes(const Box *box, uint32_t address, int length, bool write) {
    uint32_t offset = (address & 0xFFFFFF) - SHARED_BASE;
    if ((address & 0xFFFFFF) < SHARED_BASE || offset + (uint32_t)length > box->cta->shared_bytes) {
        fault_async(box->issuer, box->async, SIM_FAULT_BOUNDS,
                    "the tile reaches shared offset %u of %u bytes", offset, box->cta->shared_bytes);
        return NULL;
    }
    if (write ? !race_shared_write(box->cta, NULL, box->async->op, box->async, offset, (uint32_t)length)
              : !race_shared_read(box->cta, NULL, box->async->op, box->async, offset, (uint32_t)length))
        return NULL;
    return box->cta->shared + offset;
}

static uint8_t *global_bytes(const Box *box, uint64_t address, int length, bool write) {
    Sim *sim = box->issuer->cluster->launch->sim;
    Allocation *a = machine_allocation(sim, address, (uint64_t)length);
    if (!a) {
        fault_async(box->issuer, box->async, SIM_FAULT_BOUNDS,
                    "%d bytes at global address 0x%llx are outside every allocation", length,
                    (unsigned long long)address);
        return NULL;
    }
    uint64_t at = address - a->address;
    if (write) {
        memset(a->written + at, 1, (size_t)length);
        return a->data + at;
    }
    if (memchr(a->written + at, 0, (size_t)length)) {
        fault_async(
            box->issuer, box->async, SIM_FAULT_UNWRITTEN,
            "global address 0x%llx (byte %llu of an allocation of %zu) is read, but was never written",
            (unsigned long long)address, (unsigned long long)at, a->bytes);
        return NULL;
    }
    return a->data + at;
}

static bool load_piece(void *context, uint32_t shared, uint64_t global, int length, bool inside) {
    const Box *box = context;
    const uint8_t *from = inside ? global_bytes(box, global, length, false) : NULL;
    if (inside && !from)
        return false;
    uint8_t *to = shared_bytes(box, shared, length, true);
    if (!to)
        return false;
    if (inside)
        memcpy(to, from, (size_t)length);
    else if (box->async->map.fill_nan)
        memset(to, 0xFF, (size_t)length);
    else
        memset(to, 0, (size_t)length);
    return true;
}

static bool store_piece(void *context, uint32_t shared, uint64_t global, int length, bool inside) {
    const Box *box = context;
    if (!inside)
        return true;
    const uint8_t *from = shared_bytes(box, shared, length, false);
    uint8_t *to = from ? global_bytes(box, global, length, true) : NULL;
    if (!to)
        return false;
    if (!box->async->reduction) {
        memcpy(to, from, (size_t)length);
        return true;
    }
    Sim *sim = box->issuer->cluster->launch->sim;
    pthread_mutex_lock(&sim->memory_lock);
    int bytes = box->async->map.dtype_bytes;
    for (int i = 0; i < length; i += bytes)
        reduce_element(to + i, from + i, box->async->map.kind, bytes, box->async->reduction);
    pthread_mutex_unlock(&sim->memory_lock);
    return true;
}

static void complete_load(Cta *cta, Async *async) {
    Cluster *cluster = cta->cluster;
    uint32_t mask = async->multicast ? async->multicast : 1u << (async->shared >> 24);
    for (int rank = 0; rank < cluster->cta_count; rank++) {
        if (!(mask >> rank & 1))
            continue;
        Box box = {&cluster->ctas[rank], cta, async};
        if (!sim_tensor_map_walk(&async->map, async->coordinates, async->shared & 0xFFFFFF, load_piece, &box))
            return;
        uint32_t barrier =
            async->multicast ? (async->barrier & 0xFFFFFF) | (uint32_t)rank << 24 : async->barrier;
        mbarrier_complete_bytes(cta, async, barrier, sim_tensor_map_box_bytes(&async->map));
    }
}

// What wait_group orders: the copy's accesses before the thread's next.
static void note_done(Cta *cta, const Async *async) {
    uint32_t *at = &cta->warps[async->warp].copies_done.at[async->channel];
    *at = *at > async->time ? *at : async->time;
}

static void complete_store(Cta *cta, Async *async) {
    Box box = {cta, cta, async};
    sim_tensor_map_walk(&async->map, async->coordinates, async->shared & 0xFFFFFF, store_piece, &box);
    note_done(cta, async);
}

// ---------------------------------------------------------------- one-dimensional copies

static void complete_bulk_load(Cta *cta, Async *async) {
    Cluster *cluster = cta->cluster;
    uint32_t mask = async->multicast ? async->multicast : 1u << (async->shared >> 24);
    for (int rank = 0; rank < cluster->cta_count; rank++) {
        if (!(mask >> rank & 1))
            continue;
        Box box = {&cluster->ctas[rank], cta, async};
        for (uint32_t i = 0; i < async->bytes; i += 16)
            if (!load_piece(&box, (async->shared & 0xFFFFFF) + i, async->global + i, 16, true))
                return;
        uint32_t barrier =
            async->multicast ? (async->barrier & 0xFFFFFF) | (uint32_t)rank << 24 : async->barrier;
        mbarrier_complete_bytes(cta, async, barrier, async->bytes);
    }
}

static void complete_bulk_store(Cta *cta, Async *async) {
    Box box = {cta, cta, async};
    for (uint32_t i = 0; i < async->bytes; i += 16)
        if (!store_piece(&box, (async->shared & 0xFFFFFF) + i, async->global + i, 16, true))
            return;
    note_done(cta, async);
}

static void complete_shared_copy(Cta *cta, Async *async) { // to another CTA's shared memory
    Cluster *cluster = cta->cluster;
    Box from = {cta, cta, async}, to = {&cluster->ctas[async->shared >> 24], cta, async};
    for (uint32_t i = 0; i < async->bytes; i += 16) {
        const uint8_t *source = shared_bytes(&from, (uint32_t)async->global + i, 16, false);
        uint8_t *target = source ? shared_bytes(&to, (async->shared & 0xFFFFFF) + i, 16, true) : NULL;
        if (!target)
            return;
        if (!async->reduction)
            memcpy(target, source, 16);
        for (int at = 0; async->reduction && at < 16; at += async->map.dtype_bytes)
            reduce_element(target + at, source + at, async->map.kind, async->map.dtype_bytes,
                           async->reduction);
    }
    mbarrier_complete_bytes(cta, async, async->barrier, async->bytes);
}

// ---------------------------------------------------------------- issue

static uint64_t value_at(Warp *warp, const Op *op, int i, int lane) {
    return lane_value(warp, &op->operands[i], lane) + (uint64_t)(int64_t)op->operands[i].add;
}

static bool read_map(Warp *warp, const Op *op, uint64_t address, SimTensorMap *map) {
    Launch *launch = warp->cta->cluster->launch;
    const uint8_t *bytes;
    if (address % 64) {
        fault(warp, op, SIM_FAULT_ALIGNMENT, "the tensor map at 0x%llx is not aligned to 64 bytes",
              (unsigned long long)address);
        return false;
    }
    if ((address & WINDOW_MASK) == PARAM_WINDOW) {
        uint32_t offset = (uint32_t)address;
        if (offset + 128ull > launch->param_bytes) {
            fault(warp, op, SIM_FAULT_BOUNDS, "tensor map at parameter offset %u of %zu", offset,
                  launch->param_bytes);
            return false;
        }
        bytes = launch->params + offset;
    } else if (!(bytes = machine_global(warp, op, address, 128, false))) {
        return false;
    }
    if (!sim_tensor_map_decode(bytes, map)) {
        fault(warp, op, SIM_FAULT_DESCRIPTOR, "the 128 bytes at 0x%llx are no tensor map of this device",
              (unsigned long long)address);
        return false;
    }
    return true;
}

static bool check_tile_place(Warp *warp, const Op *op, const SimTensorMap *map, uint32_t shared) {
    if (map->rank != op->count) {
        fault(warp, op, SIM_FAULT_DESCRIPTOR, "a copy of %d dimensions with a tensor map of %d", op->count,
              map->rank);
        return false;
    }
    uint32_t align = map->swizzle_bytes ? (uint32_t)map->swizzle_bytes * 8 : 128;
    if ((shared & 0xFFFFFF) % align) {
        fault(warp, op, SIM_FAULT_ALIGNMENT,
              "shared address 0x%x of a tile must be aligned to %u bytes for its swizzle", shared, align);
        return false;
    }
    return true;
}

static void run_tensor_load(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        Async *async = async_new(warp, op, complete_load);
        if (!async)
            return;
        async->thread = (uint32_t)warp->number * LANES + lane;
        async->shared = (uint32_t)value_at(warp, op, 0, (int)lane);
        async->barrier = (uint32_t)value_at(warp, op, 2 + op->count, (int)lane);
        if (!read_map(warp, op, value_at(warp, op, 1, (int)lane), &async->map) ||
            !check_tile_place(warp, op, &async->map, async->shared))
            return;
        for (int i = 0; i < op->count; i++)
            async->coordinates[i] = (int32_t)value_at(warp, op, 2 + i, (int)lane);
        if (op->mode)
            async->multicast = (uint32_t)lane_value(warp, &op->operands[3 + op->count], (int)lane) & 0xFFFF;
        async_start(warp, async);
    }
}

static void run_tensor_store(Warp *warp, const Op *op, uint32_t mask) {
    FOR_LANES(lane, mask) {
        Async *async = async_new(warp, op, complete_store);
        if (!async)
            return;
        async->thread = (uint32_t)warp->number * LANES + lane;
        async->group = warp->bulk_groups[lane];
        async->reduction = op->mode;
        if (!read_map(warp, op, value_at(warp, op, 0, (int)lane), &async->map))
            return;
        for (int i = 0; i < op->count; i++)
            async->coordinates[i] = (int32_t)value_at(warp, op, 1 + i, (int)lane);
        async->shared = (uint32_t)value_at(warp, op, 1 + op->count, (int)lane);
        if (!check_tile_place(warp, op, &async->map, async->shared))
            return;
        async_start(warp, async);
    }
}

enum { BULK_LOAD, BULK_STORE, BULK_SHARED };

static void run_bulk(Warp *warp, const Op *op, uint32_t mask) {
    static void (*const COMPLETE[])(Cta *, Async *) = {complete_bulk_load, complete_bulk_store,
                                                       complete_shared_copy};
    FOR_LANES(lane, mask) {
        Async *async = async_new(warp, op, COMPLETE[op->mode2]);
        if (!async)
            return;
        async->thread = (uint32_t)warp->number * LANES + lane;
        uint64_t to = value_at(warp, op, 0, (int)lane), from = value_at(warp, op, 1, (int)lane);
        async->bytes = (uint32_t)value_at(warp, op, 2, (int)lane);
        async->shared = (uint32_t)(op->mode2 == BULK_STORE ? from : to);
        async->global = op->mode2 == BULK_STORE ? to : op->mode2 == BULK_SHARED ? (uint32_t)from : from;
        if (op->mode2 == BULK_STORE)
            async->group = warp->bulk_groups[lane];
        else
            async->barrier = (uint32_t)value_at(warp, op, 3, (int)lane);
        async->reduction = op->mode;
        async->map.kind = op->type;
        async->map.dtype_bytes = op->count;
        if (async->bytes % 16 || async->shared % 16 || async->global % 16) {
            fault(warp, op, SIM_FAULT_ALIGNMENT,
                  "a bulk copy needs addresses and size in multiples of 16 bytes: 0x%x, 0x%llx, %u",
                  async->shared, (unsigned long long)async->global, async->bytes);
            return;
        }
        if (op->immediate)
            async->multicast = (uint32_t)lane_value(warp, &op->operands[4], (int)lane) & 0xFFFF;
        async_start(warp, async);
    }
}

static void run_nothing(Warp *warp, const Op *op, uint32_t mask) {
    (void)warp, (void)op, (void)mask;
}

static void run_commit_group(Warp *warp, const Op *op, uint32_t mask) {
    (void)op;
    FOR_LANES(lane, mask) warp->bulk_groups[lane]++;
}

static void run_wait_group(Warp *warp, const Op *op, uint32_t mask) {
    int limit = (int)lane_value(warp, &op->operands[0], first_lane(mask));
    // Completion of the reads of a store and of its writes are one event here.
    FOR_LANES(lane, mask) {
        uint32_t thread = (uint32_t)warp->number * LANES + lane;
        if (async_groups_pending(warp->cta, thread, limit)) {
            warp_block(warp, WAIT_ASYNC, thread, 0);
            warp->groups[warp->current].pending_limit = limit;
            warp->groups[warp->current].pc--; // looks again: other lanes have groups of their own
            return;
        }
    }
    clock_join(&warp->clocks.seen, &warp->copies_done);
}

// ---------------------------------------------------------------- decode

static int reduction_of(const Decoder *d) {
    static const char *const NAMES[] = {"", "add", "min", "max", "inc", "dec", "and", "or", "xor"};
    for (int i = 1; i < 9; i++)
        if (has(d, NAMES[i]))
            return i;
    return NO_REDUCTION;
}

static bool decode_tensor(Decoder *d, Op *op) {
    bool load = has(d, "mbarrier::complete_tx::bytes");
    op->count = 0;
    for (int i = 1; i <= 5; i++) {
        char name[4] = {(char)('0' + i), 'd', 0};
        if (has(d, name))
            op->count = i;
    }
    if (!op->count || has(d, "tile::gather4") || has(d, "tile::scatter4") || has(d, "im2col"))
        return fail(d, "unsupported form %s", d->in->text);
    if (!take_operands(d, op, PTX_B32))
        return false;
    op->mode = load ? has(d, "multicast::cluster") : reduction_of(d);
    op->run = load ? run_tensor_load : run_tensor_store;
    return op->operand_count >= op->count + 2;
}

static bool decode_copy(Decoder *d, Op *op) {
    if (!has(d, "bulk"))
        return decode_cp_async(d, op);
    if (has(d, "commit_group")) {
        op->run = run_commit_group;
        return true;
    }
    if (has(d, "wait_group")) {
        op->run = run_wait_group;
        return take_operands(d, op, PTX_B32);
    }
    if (has(d, "prefetch")) { // into L2: no effect on results
        op->run = run_nothing;
        return take_operands(d, op, PTX_B64);
    }
    if (has(d, "tensor"))
        return decode_tensor(d, op);
    bool to_global = !strcmp(part(d, 3), "global") || !strcmp(part(d, 2), "global") || (has(d, "bulk_group"));
    op->mode = reduction_of(d);
    op->mode2 = to_global ? BULK_STORE : has(d, "global") ? BULK_LOAD : BULK_SHARED;
    op->immediate = has(d, "multicast::cluster");
    // The element kinds of tensor maps serve the reductions (CUtensorMapDataType).
    op->type = has(d, "f32")                    ? 7
               : has(d, "f16")                  ? 6
               : has(d, "bf16")                 ? 9
               : has(d, "s32")                  ? 3
               : has(d, "u64") || has(d, "s64") ? 4
                                                : 2;
    op->count = has(d, "f16") || has(d, "bf16") ? 2 : op->type == 4 ? 8 : 4;
    if (op->mode && op->mode2 == BULK_LOAD)
        return fail(d, "unsupported form %s", d->in->text);
    op->run = run_bulk;
    return take_operands(d, op, PTX_B64);
}

const OpEntry COPY_OPS[] = {{"cp", decode_copy}, {NULL, NULL}};
