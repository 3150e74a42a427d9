// internal.h: shared by the files of this room. The walk over statements and the math are target-neutral;
// what a target's engines do is behind the table `Engines`.
#ifndef JFA_COMPILER_LOWER_INTERNAL_H
#define JFA_COMPILER_LOWER_INTERNAL_H

#include "compiler/lower/lower.h"

#include <llvm-c/DebugInfo.h>

#define SHARED_SYMBOL "jfa_shared" // the dynamic shared memory

typedef LLVMValueRef Value;
typedef struct Lower Lower;

// What differs between chips. Addresses are 32-bit shared-window or tensor-memory addresses.
typedef struct {
    // Start and end of the CTA, executed by all threads; between them l->tmem holds the base of tensor
    // memory.
    void (*begin)(Lower *l);
    void (*end)(Lower *l);
    // Called after a wait for, and before an arrival about, bytes in tensor memory.
    void (*after_wait)(Lower *l);
    void (*before_arrive)(Lower *l);
    // d = or += a b; `fresh`: i1, whether it starts from zero.
    void (*product)(Lower *l, const Stmt *stmt, Value fresh);
    // Arrives on a barrier when all products issued so far have retired.
    void (*commit)(Lower *l, Value barrier, int ctas);
    // Products into registers: waits until only the `left` latest of them go on. The accumulators of those
    // that ended are replaced by their readable values; `words` are the registers that these read.
    void (*wait_products)(Lower *l, int left, Value *accumulators, int count, Value *words, int word_count);
    // Columns [first, first + count) of the thread's row of a tile in tensor memory, as raw 32-bit words.
    void (*read_columns)(Lower *l, Value address, int count, Value *words);
    void (*write_columns)(Lower *l, Value address, int count, Value *words);
    void (*finish_writes)(Lower *l);
} Engines;

extern const Engines SM100_ENGINES, SM90_ENGINES;

typedef struct { // where a role is in a pipe's ring
    const Pipe *pipe;
    int64_t index; // constant index of a pipe array, -1: single pipe or the replica's
    bool filling;
    Value stage, phase; // allocas, i32
} RingState;

typedef struct {
    Value stage; // of the slot in the ring
    Value index; // of the pipe in its array
} SlotState;

typedef struct {
    Value index, start, full; // i32, i32, i1 (a constant within a specialised body)
    Value count;
} BlockState;

typedef struct {
    Value first, count; // blocks of the current tile, i32
} WalkState;

typedef struct { // locals.c
    // One a cell: an element of the thread, or a word of two where the local is packed.
    Value *cells;
    const Expr *expr; // varies with columns of unknown extent: computed where it is used
    bool is_variable; // its cells are allocas
    bool is_row_sum;  // its cells are sums over the thread's own columns (row_sums.c)
} LocalState;

typedef struct {
    const Expr *expr;
    Value *values; // by layout_index
} CacheEntry;

// One of the elements of a tile that a thread holds: `row` counts its rows, `col` its columns (layout.c).
typedef struct {
    int row, col;
} Element;

typedef struct {         // a product that is under way (flight.c)
    const Local *result; // NULL: a later product adds to it, whose flight has the accumulators
    const Local *operand;
    const Slot *a, *b;
    Value *accumulators; // in the order of the instruction's registers
    Value *words;        // registers that it reads
    int accumulator_count, word_count;
} Flight;

typedef struct { // gather.c: an element that each lane loaded for another column
    const Expr *expr;
    int group; // of 32 columns
    Value value;
} ColumnLoad;

enum { LANES = 32, MAX_COLUMN_LOADS = 64 };
enum { CACHE_SIZE = 1 << 12, MAX_RINGS = 256, MAX_FLIGHTS = 8, MOST_ASM_ARGS = 512 };

typedef struct {
    Flight list[MAX_FLIGHTS];
    int count;
} Flights;

typedef struct { // the end of a path of the program, before it meets another
    LLVMBasicBlockRef end;
    Flights flights;
} FlightPath;

struct Lower {
    const Plan *plan;
    const KernelArgs *args;
    const SourceSet *sources;
    Watchdog *watchdog;
    const Engines *engines;
    Arena *arena;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder, entry_builder; // entry_builder: allocas
    LLVMDIBuilderRef debug;
    LLVMMetadataRef debug_scope, *debug_files;
    Span place; // of the statement being lowered
    Value function;
    LLVMTypeRef i1, i8, i16, i32, i64, f32, void_type, shared_pointer, global_pointer;
    Value shared_base;        // i32 shared-window address of the dynamic shared memory
    Value thread, warp, lane; // i32 in the CTA
    Value cta;                // i32: rank of the CTA in its cluster
    Value tmem;               // i32
    Value *arg_values;        // parallel to args->args
    // Of the role being lowered:
    const Role *role;
    Value replica, row, warp_of_role; // i32; row: the first one that the thread holds
    Value first_col;                  // i32: the first column
    Value *fields, *factors;
    WalkState walks[16];
    uint64_t walked_axes; // bit a: within a block of a walk along axis a, which therefore has positions
    SlotState *slots;
    BlockState *blocks;
    LocalState *locals;
    Flight flights[MAX_FLIGHTS]; // the oldest first
    int flight_count;
    RingState rings[MAX_RINGS];
    int ring_count;
    CacheEntry cache[CACHE_SIZE];
    int cache_used;
    Value
        column; // i32: stands for `cols` while a value is computed for a column of the lane's choice; or NULL
    ColumnLoad column_loads[MAX_COLUMN_LOADS]; // as long as the cache
    int column_load_count;
    bool out_of_rings;
    // Tiles in tensor memory are read only within this window of columns (0: whole), so that a piece lives in
    // registers.
    int window_first, window_count;
};

// ---------------------------------------------------------------- ir.c
Value ir_int(Lower *l, int64_t value);
Value ir_long(Lower *l, int64_t value);
Value ir_float(Lower *l, double value);
Value ir_bool(Lower *l, bool value);
Value ir_add(Lower *l, Value a, Value b);
Value ir_sub(Lower *l, Value a, Value b);
Value ir_mul(Lower *l, Value a, Value b);
Value ir_udiv(Lower *l, Value a, Value b);
Value ir_urem(Lower *l, Value a, Value b);
Value ir_and(Lower *l, Value a, Value b);
Value ir_or(Lower *l, Value a, Value b);
Value ir_xor(Lower *l, Value a, Value b);
Value ir_shl(Lower *l, Value a, int bits);
Value ir_shr(Lower *l, Value a, int bits);
Value ir_less(Lower *l, Value a, Value b); // signed
Value ir_equal(Lower *l, Value a, Value b);
Value ir_select(Lower *l, Value condition, Value a, Value b);
Value ir_min(Lower *l, Value a, Value b); // signed
Value ir_max(Lower *l, Value a, Value b);
Value ir_variable(Lower *l, LLVMTypeRef type, Value initial); // an alloca; stored here
Value ir_get(Lower *l, LLVMTypeRef type, Value variable);
void ir_set(Lower *l, Value variable, Value value);
LLVMBasicBlockRef ir_block(Lower *l, const char *name);
void ir_at(Lower *l, LLVMBasicBlockRef block);
void ir_jump(Lower *l, LLVMBasicBlockRef block);
void ir_branch(Lower *l, Value condition, LLVMBasicBlockRef yes, LLVMBasicBlockRef no);
// Calls an intrinsic by name; `types` are the overloaded types.
Value ir_intrinsic(Lower *l, const char *name, LLVMTypeRef *types, int type_count, Value *args,
                   int arg_count);
// Inline assembly. `pure`: no side effect, may be moved, merged and dropped.
Value ir_asm(Lower *l, LLVMTypeRef result, const char *text, const char *constraints, bool pure, Value *args,
             int count);
#define IR_ARGS(...) (Value[]){__VA_ARGS__}, (int)(sizeof((Value[]){__VA_ARGS__}) / sizeof(Value))

// ---------------------------------------------------------------- ptx.c: instructions that both targets have
void ptx_barrier_init(Lower *l, Value barrier, int count);
void ptx_fence_barrier_init(Lower *l);
void ptx_wait(Lower *l, Value barrier, Value parity);
void ptx_arrive(Lower *l, Value barrier);
void ptx_arrive_if(Lower *l, Value condition, Value barrier);
void ptx_arrive_at(Lower *l, Value barrier, Value cta);
void ptx_arrive_at_all(Lower *l, Value lane, int ctas, Value barrier);
void ptx_expect(Lower *l, Value barrier, Value bytes);
void ptx_load_tile(Lower *l, Value shared, Value map, Value *coordinates, int rank, Value barrier, int ctas);
void ptx_store_tile(Lower *l, Value map, Value *coordinates, int rank, Value shared);
void ptx_store_commit(Lower *l);
void ptx_store_wait(Lower *l, bool only_reads);
void ptx_fence_async(Lower *l);
void ptx_sync_warp(Lower *l);
void ptx_sync_cta(Lower *l);
void ptx_sync_cluster(Lower *l);
void ptx_named_barrier(Lower *l, Value number, int threads, bool waits);
void ptx_set_registers(Lower *l, int regs, bool more);
Value ptx_elect(Lower *l);
void ptx_store_shared(Lower *l, Value address, int64_t offset, Value *words, int count); // 1, 2 or 4 words
void ptx_load_shared(Lower *l, Value address, int64_t offset, Value *words, int count);
Value ptx_pack(Lower *l, Elem elem, Value low, Value high);
Value ptx_math(Lower *l, const char *instruction, Value a);

// ---------------------------------------------------------------- math.c
// The value of an expression at one of the thread's places (ignored along what it doesn't vary with). Values
// are kept until cache_clear.
Value math_value(Lower *l, const Expr *expr, Element at);
// Of `expr`, a row reduction: over the columns that the thread holds of that row.
Value math_reduce_own(Lower *l, const Expr *expr, int row);
// What the threads that share a row hold of its reduction, put together.
Value math_reduce_lanes(Lower *l, ReduceOp op, bool is_float, Value own);
void math_cache_clear(Lower *l);
Value math_plus(Lower *l, Value a, Value b); // f32
Value math_times(Lower *l, Value a, Value b);
Value math_uniform(Lower *l, const Expr *expr);
int arg_find(const KernelArgs *args, ArgKind kind, int index, int dim);
Value arg_value(Lower *l, ArgKind kind, int index, int dim);

// ---------------------------------------------------------------- gather.c
Value math_tensor_address(Lower *l, int tensor, Expr *const *positions, Element at, Value *inside);
Value gather_value(Lower *l, const Expr *expr, Element at);

// ---------------------------------------------------------------- factors.c
// Replaces products by what they have beside their common positive factor, and gives that; NULL: they have
// none.
Value factor_take(const Lower *l, Value *values, int count);
// condition ? a : b, with a positive factor of one behind the choice where the other is infinite.
Value factor_select(Lower *l, Value condition, Value a, Value b);

// ---------------------------------------------------------------- slots.c
Value slot_index(Lower *l, const Slot *slot);
Value slot_address(Lower *l, const Slot *slot); // shared-window address, or tensor-memory address
RingState *ring_of(Lower *l, const Slot *slot);
void slot_wait_free(Lower *l, const Slot *slot);
void slot_wait_full(Lower *l, const Slot *slot);
void slot_publish(Lower *l, const Slot *slot);
void slot_release(Lower *l, const Slot *slot);
void slot_drain(Lower *l);
Value slot_full_barrier(Lower *l, const Slot *slot);

// ---------------------------------------------------------------- queue.c
typedef struct {
    Value stage, phase; // variables: a thread's place in the ring of items
} QueueState;

QueueState queue_begin(Lower *l);
// The role's next item, one behind the last when none is left.
Value queue_next(Lower *l, const QueueState *queue);
// The warp that asks for items.
void queue_serve(Lower *l);

// ---------------------------------------------------------------- watchdog.c
// Waits until the phase of that parity of a pipe's full or empty barrier has completed, or, where there is a
// watchdog, too long.
void watchdog_wait(Lower *l, const Pipe *pipe, bool is_full, Value barrier, Value parity);

// ---------------------------------------------------------------- layout.c: who holds which element of a
// tile
void layout_begin_role(Lower *l);
int layout_rows(const Lower *l, Type type); // that a thread holds
int layout_cols(const Lower *l, Type type);
int layout_index(const Lower *l, Type type, Element at);
int layout_count(const Lower *l, Type type);
Value layout_row(Lower *l, int row); // i32: its number in the tile
Value layout_col(Lower *l, int col);
int layout_first_col(const Lower *l,
                     int col);          // of the columns that the lanes of a warp have as their `col`th
int layout_lanes_a_row(const Lower *l); // threads that share a row; they are neighbours
// i1 or NULL (always): of the threads that hold the same value of that type, this is the one that stores it.
Value layout_stores(Lower *l, Type type);

// ---------------------------------------------------------------- locals.c
void local_let(Lower *l, const Stmt *stmt);
void local_set(Lower *l, const Stmt *stmt);
Value local_value(Lower *l, const Local *local, Element at);

// The registers of a product's result, in the order of its instruction; with their values if it adds to them.
Value *local_accumulators(Lower *l, const Local *local, bool with_values);
Value local_accumulator(Lower *l, const Local *local, int number); // alloca
// A tile as the left operand of a product: its words in the order of the k-steps.
Value *local_fragments(Lower *l, const Local *local, Elem elem, int *count);

// ---------------------------------------------------------------- flight.c
void flight_add(Lower *l, Flight flight);
void flight_settle_all(Lower *l);
void flight_settle_result(Lower *l, const Local *local); // before it is read
void flight_settle_uses(Lower *l, const Local *local);   // before it changes
void flight_settle_slot(Lower *l, const Slot *slot);     // before it is given back
// The accumulators of the product under way whose result is `local`, for one that adds to it; NULL: none.
Value *flight_take_over(Lower *l, const Local *local);
// Two paths: part; build the first, swap; build the second, meet. Jumps from both ends to `meeting`.
Flights flight_part(const Lower *l);
void flight_swap(Lower *l, const Flights *before, FlightPath *first);
void flight_meet(Lower *l, const Flights *before, const FlightPath *first, LLVMBasicBlockRef meeting);

// ---------------------------------------------------------------- row_sums.c
void row_sums_find(Lower *l, const Role *role);
void row_sum_set(Lower *l, const Stmt *stmt);

// ---------------------------------------------------------------- tile_values.c
void slot_read(Lower *l, const Slot *slot, int first, int count, Value *values); // as f32 or i32
void slot_write(Lower *l, const Slot *slot, const Expr *value);
Value value_pack(Lower *l, Elem elem, const Expr *value, Element at); // two columns from `at` on, as one word
void value_unpack(Lower *l, Elem elem, Value word, Value *values);

// ---------------------------------------------------------------- interval.c
// Whether the walk's predicate holds for all (must) and for any (may) element of a block; i1.
void interval_class(Lower *l, const Walk *walk, Value block_start, Value *must, Value *may);

// ---------------------------------------------------------------- tiles.c
void tiles_loop(Lower *l, const Stmt *stmt);
void walk_loop(Lower *l, const Stmt *stmt);

// ---------------------------------------------------------------- walk.c
void walk_statements(Lower *l, const Stmt *stmt);
void walk_place(Lower *l, Span span); // the .loc of what follows

#endif
