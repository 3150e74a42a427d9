// machine.h: the simulated chip's state, shared by the files of this room and of check/. One Cluster is run
// by one host thread; global memory is shared by all.
#ifndef JFA_SIMULATOR_MACHINE_MACHINE_H
#define JFA_SIMULATOR_MACHINE_MACHINE_H

#include "simulator/engines/tensor_map.h"
#include "simulator/ptx/ptx.h"
#include "simulator/sim.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    LANES = 32,
    ALL_LANES_COUNT = 32,
    MAX_WARPS = 32,
    MAX_CTAS = 16, // of a cluster
    TMEM_LANES = 128,
    TMEM_COLUMNS = 512,
    SHARED_LIMIT = 232448, // bytes a CTA can have
    LOAD_CHANNELS = 32,    // clocks of asynchronous copies, used in turn
    REGISTER_SLACK = 1024, // an operand may be narrower than its instruction takes it for
    // Agents of the happens-before check, per CTA: its warps, the tensor core, the copies.
    AGENT_TENSOR = MAX_WARPS,
    AGENT_COPY = MAX_WARPS + 1,
    AGENTS_PER_CTA = AGENT_COPY + LOAD_CHANNELS,
    // Clocks span a pair of CTAs. In larger clusters accesses are not checked for order.
    CLOCK_CTAS = 2,
    CLOCK_AGENTS = CLOCK_CTAS * AGENTS_PER_CTA,
};

static const uint32_t ALL_LANES = 0xFFFFFFFFu;

// Addresses: shared memory of CTA rank r in the cluster's window: r << 24 | offset (offset from SHARED_BASE,
// as on the chip, where the first KB is the system's). Generic addresses: SHARED_WINDOW | shared address;
// PARAM_WINDOW | offset; LOCAL_WINDOW | offset; anything else is global.
#define SHARED_BASE 1024u
#define WINDOW_MASK 0xFFFFFFFF00000000ull
#define SHARED_WINDOW 0x0001000000000000ull
#define LOCAL_WINDOW 0x0002000000000000ull
#define PARAM_WINDOW 0x0003000000000000ull

typedef struct Sim Sim;
typedef struct Launch Launch;
typedef struct Cluster Cluster;
typedef struct Cta Cta;
typedef struct Warp Warp;
typedef struct Op Op;

// ---------------------------------------------------------------- clocks (check/race.c)

typedef struct { // indexed by agent, see agent_base()
    uint32_t at[CLOCK_AGENTS];
} Clock;

typedef struct {
    Clock seen;   // happened before
    Clock async;  // of those, generic writes that are visible to the async proxy
    Clock tensor; // of those, tcgen05 operations that were ordered by fence::before_thread_sync
} Clocks;

// ---------------------------------------------------------------- memory

typedef struct {
    uint16_t writer;     // agent + 1; 0: never written
    uint8_t generic : 1; // the writer was a generic access
    uint8_t barrier : 1; // part of an mbarrier object
    uint8_t written : 4; // which bytes were ever written
    uint8_t last;        // which bytes the writer wrote
    uint32_t time, line;
    struct {
        uint16_t agent; // + 1
        uint8_t bytes;
        uint32_t time, line;
    } readers[3];
} Cell; // four bytes of shared memory, or one column of a lane quarter of tensor memory

typedef struct {
    bool valid;
    uint32_t address; // offset in the CTA's shared memory
    int64_t expected, pending, transactions;
    uint32_t phase; // number of completed phases
    Clocks arriving, completed;
} Mbarrier;

typedef struct Allocation {
    uint64_t address;
    size_t bytes;
    uint8_t *data, *written; // one flag a byte
    bool freed, is_sparse;
} Allocation;

// ---------------------------------------------------------------- asynchronous operations

typedef struct Async Async;
struct Async {
    void (*complete)(Cta *cta, Async *async);
    uint64_t due;
    Async *next;
    bool in_order; // of the tensor core: completes after the earlier ones
    int line, warp;
    int channel; // agent of the happens-before check, among those of all CTAs
    uint32_t time;
    Clocks issued; // the issuer's clocks at issue
    // Copies:
    SimTensorMap map;
    int32_t coordinates[5];
    uint32_t shared, barrier, multicast; // cluster addresses; CTA mask or 0
    uint64_t global;
    uint32_t bytes;
    int reduction;     // 0: none
    int group;         // bulk group of the issuing thread
    int product_group; // of wgmma; -1: another operation
    int copy_group;    // of cp.async; -1: another operation
    uint64_t *lanes;   // of cp.async: addresses; freed with the operation
    uint32_t thread;
    // Products:
    uint32_t d, a_tmem, descriptor, scale_a, scale_b;
    uint64_t a, b;
    bool a_in_tmem, accumulate, has_disabled;
    uint32_t disabled[8]; // lanes of D that are not written, four words a CTA
    int input_shift;      // D is scaled by 2^-shift before the sum
    int kind, commit_mask;
    int cta_group;
    const Op *op;
};

// ---------------------------------------------------------------- programs (decode.c)

typedef void (*OpRun)(Warp *warp, const Op *op, uint32_t mask);

enum {
    OP_COLLECTIVE = 1,
    OP_BRANCH = 2,
    OP_ALIGNED = 4,
    OP_ASYNC_REGISTERS = 8, // may name busy registers
    OP_MOVES = 16,          // only moves bits from registers to registers
    OP_CLOCK = 32           // reads a clock
};

enum Busy { BUSY_NOT, BUSY_LOAD, BUSY_RESULT, BUSY_OPERAND };

typedef struct {   // an operand: the byte offset of a register (constants and special values lie among them)
                   // and its width
    int32_t at;    // -1: sink
    int32_t bytes; // a lane: 4 (also for 8 and 16 bits), 8, 16; 0: predicate
    int32_t add;   // addresses: constant offset
} Operand;

enum { MAX_OPERANDS = 136 };

struct Op {
    OpRun run;
    int predicate; // byte offset or -1
    bool predicate_negated;
    int flags;
    int type, type2; // PtxType of the operation, and of the source (cvt, set)
    int mode, mode2; // operation's own: comparison, rounding, ...
    bool ftz, saturate, relu, nan, absolute;
    int space;
    int count; // vector width, registers, dimensions
    int64_t immediate;
    int target; // branch
    Operand *operands;
    int operand_count;
    int first_list, list_count; // operands[first_list ...]: a vector
    int line, loc_file, loc_line;
    const PtxInstruction *source;
};

typedef struct {
    const PtxEntry *entry;
    const PtxModule *module;
    Op *ops;
    int op_count;
    Operand *register_places;
    size_t register_bytes; // of one warp
    bool uses_queue;       // takes work by clusterlaunchcontrol
    bool reads_clock;
    struct Constant {
        int32_t at, bytes;
        uint64_t value;
        int special; // which special register, or -1
    } * constants;
    int constant_count, constant_capacity;
    Operand *operand_pool;
    int operand_count, operand_capacity;
} Program;

typedef struct {
    Sim *sim;
    PtxModule *ptx;
    Program *programs;        // one an entry
    uint64_t *global_symbols; // device addresses, by symbol
} Module;

bool decode_entry(Module *module, int entry, Program *program, char message[256]);
void decode_free(Program *program);

// ---------------------------------------------------------------- warps

typedef enum {
    WAIT_NONE,
    WAIT_MBARRIER,
    WAIT_BARRIER,
    WAIT_WARP,
    WAIT_TMEM,
    WAIT_REGISTERS,
    WAIT_ASYNC,
    WAIT_CLUSTER,
    WAIT_PRODUCTS,
    WAIT_COPIES,
} WaitKind;

enum { CONTROL_BRANCH = 1, CONTROL_EXIT, CONTROL_INDEXED }; // mode of an Op with OP_BRANCH

typedef struct { // lanes that are at the same place
    int pc;
    uint32_t mask;
    WaitKind wait;
    uint32_t barrier, parity; // WAIT_MBARRIER; WAIT_BARRIER: number and generation; WAIT_WARP: member mask
    int pending_limit;        // WAIT_ASYNC: at most so many groups still pending
} Group;

struct Warp {
    Cta *cta;
    int number;
    int agent; // of the happens-before check
    uint8_t *registers;
    Group groups[LANES];
    int group_count, current;
    uint32_t exited;
    uint32_t carry;             // condition code of each lane
    uint32_t barrier_arrived;   // lanes of a diverged warp that are at a CTA barrier
    uint32_t cluster_waits_due; // lanes that arrived at the cluster's barrier and haven't waited there since
    Clocks
        clocks; // clocks.tensor: what was received; tensor_after: what fence::after_thread_sync made usable
    Clock tensor_after;
    uint32_t time;
    uint64_t executed;
    // Registers that an asynchronous operation reads or writes, by place / 8 (enum Busy): not to be touched
    // before the wait.
    uint8_t *busy;
    int32_t loading[512];          // places / 8 of the first of those that tcgen05.ld loads
    int busy_loads, busy_products; // tcgen05.ld since the last wait::ld; wgmma under way
    int copy_group;                // number of cp.async's open group
    int product_group;             // number of wgmma's open group
    uint64_t product_due;          // when the youngest wgmma is due
    bool product_fenced;           // there was a wgmma.fence
    uint32_t unwaited_stores;      // tcgen05.st since the last wait::st: time of the first, 0: none
    int regs;
    int bulk_groups[LANES]; // per lane: number of the open group
    Clock copies_done;      // of this warp's threads, by bulk group
};

struct Cta {
    Cluster *cluster;
    int rank, warp_count, sm;
    uint32_t id[3];
    uint8_t *shared;
    uint32_t shared_bytes; // static + dynamic
    Cell *cells;           // shared memory, one a word
    uint8_t *split;        // by 16 bytes; 0: the first of the four cells stands for all of them
    uint32_t *tensor;      // [lane][column]
    Cell *tensor_cells;    // [quarter][column]
    uint8_t tmem_owner[TMEM_COLUMNS / 32]; // 0: free
    int tmem_allocated, tmem_relinquished;
    Mbarrier *barriers;
    int barrier_count, barrier_capacity;
    struct {
        int arrived, needed; // threads
        uint32_t generation;
        uint32_t popcount, all,
            any; // bar.red, of the threads that arrived; and of the last completed generation:
        uint32_t done_popcount, done_all, done_any;
        Clocks arriving, completed;
    } named[16];
    Warp *warps;
    int live_warps;
    int register_pool;
    uint32_t agent_time[AGENTS_PER_CTA]; // of the asynchronous agents
    int next_channel;
    Async *unstarted; // made, but not yet started: left over when its instruction faults
    Async *pending;   // of this CTA, unordered but for `in_order`
    int pending_count;
    uint64_t tensor_due; // when the youngest in-order operation is due
    uint8_t *local_memory;
};

struct Cluster {
    Launch *launch;
    Cta *ctas;
    int cta_count;
    uint64_t now, random, steps;
    uint64_t skipped; // of `now`: the last time by which all waited in vain
    uint32_t cluster_generation;
    int cluster_arrived;
    Clocks cluster_arriving, cluster_completed;
    uint64_t *queue;   // the next cluster of this multiprocessor; NULL: the kernel takes none itself
    bool refusal_seen; // by query_cancel
    SimFault fault;    // kind SIM_FAULT_NONE while all is well
    int progress;      // something moved since the last look
};

struct Launch {
    Sim *sim;
    const Module *module;
    const Program *program;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t dynamic_shared, static_shared;
    const uint8_t *params;
    size_t param_bytes;
    uint64_t seed;
    bool check_races;
    // Work of the host threads:
    pthread_mutex_t lock;
    uint64_t next_cluster, cluster_total, done;
    SimFault fault; // of the cluster with the lowest number, so that it does not depend on the host's threads
    uint64_t fault_cluster;
    uint64_t executed; // instructions of warps
};

struct Sim {
    bool is_sm100;
    char arch[16];
    int sm_count, threads;
    uint64_t seed;
    bool check_races;
    uint64_t step_limit;         // instructions of warps that a cluster may execute; 0: any number
    pthread_mutex_t call_lock;   // one call of the backend at a time (device.c)
    pthread_mutex_t memory_lock; // atomics on global memory, within a launch
    Allocation *allocations;
    int allocation_count, allocation_capacity;
    uint64_t next_address;
    SimProgress progress;
    void *progress_context;
    SimFault last_fault;
    uint64_t executed; // by the last launch
};

static inline int agent_base(const Cta *cta) {
    return cta->rank % CLOCK_CTAS * AGENTS_PER_CTA;
}

// ---------------------------------------------------------------- faults (check/fault.c)
void fault(Warp *warp, const Op *op, SimFaultKind kind, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void fault_async(Cta *cta, const Async *async, SimFaultKind kind, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static inline bool faulted(const Cluster *cluster) {
    return cluster->fault.kind != SIM_FAULT_NONE;
}
void fault_deadlock(Cluster *cluster);
void fault_endless(Cluster *cluster, uint64_t limit);

// ---------------------------------------------------------------- clocks (check/race.c)
void clock_join(Clock *into, const Clock *from);
void clocks_join(Clocks *into, const Clocks *from);
uint32_t warp_tick(Warp *warp); // a new time of the warp, for an access or a release
void warp_release(Warp *warp, Clocks *into);
void warp_acquire(Warp *warp, const Clocks *from);
// Shared memory, by CTA and byte offset. Async accesses give their agent, time and the issuer's clocks.
bool race_shared_read(Cta *cta, Warp *warp, const Op *op, const Async *async, uint32_t offset,
                      uint32_t bytes);
bool race_shared_write(Cta *cta, Warp *warp, const Op *op, const Async *async, uint32_t offset,
                       uint32_t bytes);
void race_mark_barrier(Cta *cta, uint32_t offset, bool is_barrier); // eight bytes
bool race_tensor_read(Cta *cta, Warp *warp, const Op *op, const Async *async, int quarter, int column);
bool race_tensor_write(Cta *cta, Warp *warp, const Op *op, const Async *async, int quarter, int column);

// ---------------------------------------------------------------- memory.c
Allocation *machine_allocation(Sim *sim, uint64_t address, uint64_t bytes); // NULL: out of bounds
// A pointer to global bytes for reading (all written) or writing (marks them). NULL after a fault.
uint8_t *machine_global(Warp *warp, const Op *op, uint64_t address, uint32_t bytes, bool write);
bool machine_has_exited(const Cta *cta); // all of its threads
// The CTA and byte offset of a shared-window address; NULL after a fault.
Cta *machine_shared(Warp *warp, const Op *op, uint32_t address, uint32_t bytes, uint32_t *offset);

// ---------------------------------------------------------------- sync.c
Mbarrier *mbarrier_find(Cta *cta, uint32_t offset);
void mbarrier_arrive(Cta *cta, Mbarrier *barrier, int64_t count);
void mbarrier_complete_bytes(Cta *cta, Async *async, uint32_t cluster_address, int64_t bytes);
void mbarrier_async_arrive(Cta *cta, Async *async, uint32_t cluster_address, uint32_t mask);
bool mbarrier_passed(const Mbarrier *barrier, uint32_t parity);
bool products_are_over(const Warp *warp, int newest_allowed); // wgmma.c
bool copies_are_over(const Warp *warp, int newest_allowed);   // cp_async.c
bool wait_is_over(Warp *warp, const Group *group);            // may take what it waited for
const char *wait_text(Warp *warp, const Group *group, char *buffer, size_t size);
// When no warp can go on: lets time pass and the suspended try_waits give up, if the kernel reads a clock and
// so may do something about it. False: nothing would change.
bool waits_give_up(Cluster *cluster);

// ---------------------------------------------------------------- async.c
Async *async_new(Warp *warp, const Op *op, void (*complete)(Cta *, Async *));
void async_start(Warp *warp, Async *async);
void async_free(Async *async);                   // NULL is allowed
void warp_mark_loading(Warp *warp, int32_t at);  // tensor.c: its value comes with tcgen05.wait::ld
bool async_run_due(Cluster *cluster);            // completes what is due; false: nothing was
uint64_t async_next_due(const Cluster *cluster); // UINT64_MAX: none
int async_groups_pending(const Cta *cta, uint32_t thread, int newest_kept);
uint64_t sim_random(Cluster *cluster);

// ---------------------------------------------------------------- run.c
bool run_launch(Launch *launch);
void run_place_cluster(const Launch *launch, uint64_t number,
                       uint32_t first[3]); // coordinates of its first CTA
void warp_advance(Warp *warp);             // the current group to the next instruction
void warp_block(Warp *warp, WaitKind kind, uint32_t barrier, uint32_t parity);

// ---------------------------------------------------------------- registers
static inline uint32_t *reg32(Warp *warp, const Operand *operand) {
    return (uint32_t *)(warp->registers + operand->at);
}
static inline uint64_t *reg64(Warp *warp, const Operand *operand) {
    return (uint64_t *)(warp->registers + operand->at);
}
static inline float *regf(Warp *warp, const Operand *operand) {
    return (float *)(warp->registers + operand->at);
}
static inline double *regd(Warp *warp, const Operand *operand) {
    return (double *)(warp->registers + operand->at);
}
static inline uint64_t lane_value(Warp *warp, const Operand *operand, int lane) {
    if (operand->bytes == 4)
        return reg32(warp, operand)[lane];
    if (operand->bytes == 0)
        return reg32(warp, operand)[0] >> lane & 1;
    return operand->bytes == 8 ? reg64(warp, operand)[lane] : reg64(warp, operand)[2 * lane];
}
static inline void lane_set(Warp *warp, const Operand *operand, int lane, uint64_t value) {
    if (operand->at < 0)
        return;
    if (operand->bytes == 4)
        reg32(warp, operand)[lane] = (uint32_t)value;
    else if (operand->bytes == 0)
        reg32(warp, operand)[0] = (reg32(warp, operand)[0] & ~(1u << lane)) | (uint32_t)(value & 1) << lane;
    else
        reg64(warp, operand)[operand->bytes == 8 ? lane : 2 * lane] = value;
}
static inline int first_lane(uint32_t mask) {
    return mask ? __builtin_ctz(mask) : 0;
}
#define FOR_LANES(lane, mask)                                                                                \
    for (uint32_t rest_ = (mask), lane = 0; rest_ && ((lane = (uint32_t)__builtin_ctz(rest_)), true);        \
         rest_ &= rest_ - 1)

#endif
