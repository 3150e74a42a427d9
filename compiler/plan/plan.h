// plan.h: the compiler's one representation between the passes. sema makes it from the syntax tree (names
// resolved, hooks and functions inlined, constants folded, constant loops unrolled); place adds offsets,
// columns and barriers; protocol checks it; lower turns it into LLVM IR; explain and --emit plan print it. No
// pass re-derives what an earlier one decided.
#ifndef JFA_COMPILER_PLAN_H
#define JFA_COMPILER_PLAN_H

#include "compiler/target.h"
#include "grammar/diag.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Plan Plan;
typedef struct Role Role;
typedef struct Pipe Pipe;
typedef struct Buffer Buffer;
typedef struct Walk Walk;
typedef struct Turn Turn;

enum { MAX_TENSOR_DIMS = 5, MAX_TILE_AXES = 3 };

// ---------------------------------------------------------------- types and expressions

// The type of a value in a role. A value may vary along the rows and along the columns of a tile: rows x cols
// elements. Extent 1: does not vary along that direction. EXTENT_ANY: varies, with the extent of what it
// meets
// (`rows`, `cols`).
typedef struct {
    Elem elem;
    int rows, cols;
} Type;

enum { EXTENT_ANY = 0 };

static inline bool type_is_uniform(Type type) {
    return type.rows == 1 && type.cols == 1;
}

typedef enum {
    X_INT,     // integer
    X_FLOAT,   // real
    X_BOOL,    // integer
    X_LOCAL,   // local
    X_DIM,     // index: run-time extent plan->dims[index]
    X_PARAM,   // index: plan->params[index]
    X_FIELD,   // index: plan->fields[index] of the current tile record
    X_FACTOR,  // index: plan->factors[index] of the current tile
    X_COUNT,   // walk: number of its blocks for the current tile
    X_BLOCK,   // walk loop variable `block`, op: BlockField
    X_REPLICA, // the role's replica number
    X_CTA,     // the CTA's rank in its cluster
    X_ROWS,    // row of the element within its tile
    X_COLS,    // column of the element within its tile
    X_UNARY,   // op ('-', '!'), a
    X_BINARY,  // op (as in the syntax tree), a, b
    X_SELECT,  // a ? b : c; a uniform condition with a constant branch is folded by sema
    X_CALL,    // op: MathOp, a (b)
    X_REDUCE,  // op: ReduceOp, a: over the columns of each row
    X_CAST,    // a converted to type.elem
    X_SLOT,    // slot read as a tile of values
    X_GATHER,  // index: plan->tensors[index], args: one position a dim
} ExprKind;

typedef enum { BLOCK_START, BLOCK_INDEX, BLOCK_FIRST, BLOCK_LAST, BLOCK_FULL } BlockField;
typedef enum {
    MATH_EXP,
    MATH_EXP2,
    MATH_LOG,
    MATH_LOG2,
    MATH_SQRT,
    MATH_RSQRT,
    MATH_TANH,
    MATH_ABS,
    MATH_MIN,
    MATH_MAX,
    MATH_FLOOR,
    MATH_SIN,
    MATH_COS,
    MATH_OP_COUNT
} MathOp;
typedef enum { REDUCE_MAX, REDUCE_MIN, REDUCE_SUM } ReduceOp;

typedef struct Local {
    const char *name;
    int number; // within its role
    Type type;
    Elem stored; // how registers hold it: a 16-bit type packs two columns into one; else type.elem
    bool is_mutable;
    Span span;
} Local;

typedef struct Block { // the variable of a loop over a walk's blocks
    const char *name;
    Walk *walk;
    bool reads_full; // its body asks `.full`: the body is compiled once for full blocks and once for partial
                     // ones
    int number;      // within its role
} Block;

typedef struct Expr Expr;
struct Expr {
    ExprKind kind;
    Type type;
    Span span;
    int op, index;
    int64_t integer;
    double real;
    Expr *a, *b, *c;
    Expr **args;
    int arg_count;
    Local *local;
    Block *block;
    Walk *walk;
    struct Slot *slot;
    // Expressions share their parts. Walks note here that they have been somewhere, so that each part is seen
    // once.
    int depth;              // of what lies below; sema bounds it, so that walks may recur
    unsigned mark;          // of the walk with that number (Plan.marks)
    const Walk *varies_for; // interval.c: for this walk ...
    bool varies;            // ... whether it depends on the element's position
};

// ---------------------------------------------------------------- statements

// A taken slot (take), or one being filled (fill).
typedef struct Slot {
    const char *name;
    int number; // within its role
    Pipe *pipe;
    Expr *index; // which of a pipe array: constant or the replica number; NULL for a single pipe
    Span span;   // of the take or fill
    bool filling;
    struct Slot
        *handed_from; // filling only: the slot over the same bytes that the role gives up for it, or NULL
} Slot;

typedef struct {
    Slot *a, *b;                     // a NULL: the left operand is a_local
    Local *a_local;                  // a tile in registers
    bool a_transposed, b_transposed; // as written: a^T, b^T
    int m, n, k;
} Product;

typedef struct {
    int tensor;                // plan->tensors
    Expr *at[MAX_TENSOR_DIMS]; // position on an axis (from the sequence's start), index of a dim, column of a
                               // constant
    Span at_span[MAX_TENSOR_DIMS]; // as written; a position's expression may come from elsewhere
    int map;                       // plan->maps when moved by TMA, else -1
    Span span;
} TensorRef;

typedef enum {
    ST_TILES,     // for each tile of the grid: body
    ST_WALK,      // for each block of block->walk (part): body
    ST_IF,        // cond, body, other
    ST_LET,       // local = value
    ST_SET,       // mutable local = value
    ST_TAKE,      // slot
    ST_PUT_VALUE, // slot (filling) = value, published
    ST_PUT_LOAD,  // slot (filling) = tensor tile, published
    ST_FILL,      // slot (filling): waited for; body; published
    ST_PRODUCT,   // slot (filling) or local = or += product; fresh: condition under which it starts from zero
    ST_TURN,      // body, while it is the replica's turn
    ST_FREE,      // slot
    ST_UPDATE,    // slot = value, in place
    ST_STORE_VALUE, // tensor elements = value
    ST_STORE_TILE,  // tensor tile = slot
} StmtKind;

typedef enum { PART_ALL, PART_FIRST, PART_REST, PART_LAST } WalkPart;

typedef struct Stmt Stmt;
struct Stmt {
    StmtKind kind;
    Span span;
    Stmt *next;
    Stmt *body, *other;
    Expr *value; // also the condition of ST_IF
    Expr *fresh; // ST_PRODUCT: NULL: always accumulates; constant true: starts anew
    Local *local;
    Slot *slot;
    Slot *source; // ST_STORE_TILE
    Block *block;
    Turn *turn;
    WalkPart part;
    Product product;
    TensorRef tensor;
};

// ---------------------------------------------------------------- what exists

typedef enum { DIM_AXIS, DIM_RUNTIME, DIM_CONSTANT } DimKind;

typedef struct {
    DimKind kind;
    int index;      // axis or run-time dim
    int64_t extent; // constant
} TensorDim;

typedef struct {
    const char *name;
    int direction; // TENSOR_IN ...
    bool is_optional, from_kernel;
    bool is_broken; // sema: its dims were wrong and have been reported
    Elem elem;
    int rank;
    TensorDim dims[MAX_TENSOR_DIMS];
    Span span;
} Tensor;

typedef struct {
    const char *name;
    int divides; // run-time dim that this one divides, or -1
    Span span;
} RuntimeDim;

typedef struct {
    const char *name;
    Span span;
} Axis;

typedef struct {
    const char *name;
    Elem elem;        // f32 or i32
    bool is_positive; // declared so, and checked when a problem is planned
    bool has_default;
    double default_value;
    Span span;
} Param;

typedef struct {
    const char *name;
    double value;
    const char *text; // for types
    Elem elem;        // of the value
    // Of a constant with `tune`: the values worth trying, the default's first, each once.
    double *choices;
    int choice_count; // 0: of another constant, or given by -D
    Span span;
} Constant;

// How tiles of a tensor are moved by TMA. Same tensor and tile, same map.
typedef struct {
    int tensor;
    bool is_store;
    int rows, cols; // of the tile; of a slice fewer rows
    int row_dim, col_dim;
    int swizzle_bytes;
    int chunk_cols; // columns of one swizzle-wide chunk
    int chunks; // chunks moved by one instruction (box extent of the chunk dimension); 0: no chunk dimension
    // A multicast tile is moved in slices, one by each CTA: of its chunks, and of its rows if there are fewer
    // chunks than CTAs. CTA c moves slice c % chunk_slices of the chunks, slice c / chunk_slices of the rows.
    // 1, 1: whole.
    int chunk_slices, row_slices;
} TensorMap;

typedef enum { FIELD_SEQ, FIELD_START, FIELD_LEN, FIELD_BASE } FieldKind;

typedef struct {
    FieldKind kind;
    int index; // axis (START, LEN) or tensor (BASE)
    int dim;   // BASE: which dim of the tensor
} RecordField;

typedef struct {
    const char *name;
    int dim; // run-time dim
} Factor;

typedef struct {
    const char *name;
    int axis;
    int64_t size;
} TileAxis;

struct Walk {
    const char *name, *block_name;
    int axis;
    int64_t size;
    bool last_first; // goes from the last block to the first; blocks are numbered as they are visited
    Expr *where;     // predicate over the elements of a block, or NULL: sema binds `row_position` and
                     // `col_position`
    // The positions on the tile's first blocked axis and on the walk's axis, as seen by `where`.
    Local *row_position, *col_position;
    Span span;
};

// The replicas of a role take turns, number 0 first: each runs the statements of its turn alone.
struct Turn {
    const char *name;
    Role *role;
    Span span;
    // place: named barrier of replica 0, the others follow; a replica waits on its own for the one before it
    int barrier;
};

struct Buffer {
    const char *name;
    int space;              // SPACE_SMEM, SPACE_TMEM
    int array, depth;       // instances = array * depth; which dims are the array follows from its pipes
    int dims[2], dim_count; // as declared
    const char *depth_name; // the constant that the last of them is, or NULL: another expression
    Elem elem;
    int rows, cols; // cols 1: a vector with one element a row
    int rank;       // 1 or 2
    Buffer *over;   // shares the bytes of this buffer
    Span span;
    // place:
    int64_t bytes;     // of one instance (SMEM)
    int columns;       // of one instance (TMEM)
    int64_t offset;    // SMEM byte offset, or TMEM column, of instance 0
    int64_t stride;    // to the next instance, bytes or columns
    int swizzle_bytes; // SMEM tiles: 128, 64, 32; 0 for vectors
    int chunk_cols;    // columns of one swizzle-wide chunk; a tile lies as [chunk][row][chunk_cols]
};

// What completes a filling ("full") or a use ("empty") of a slot.
typedef enum {
    ENGINE_NONE,
    ENGINE_LOAD,    // TMA load: bytes on the barrier
    ENGINE_PRODUCT, // tensor core: commit
    ENGINE_THREADS, // loads and stores by the role's threads: one arrival a warp
    ENGINE_STORE,   // TMA store: bulk group read, then one arrival
} Engine;

struct Pipe {
    const char *name;
    int array; // pipes of the array, 1 for a single one
    bool is_array, in_place;
    bool multicast; // each CTA of the cluster loads a slice of the tile for all of them
    Buffer *buffer;
    Role *from;
    Role *to[4];
    int to_count;
    Span span, from_span, to_span;
    Engine filled_by, used_by; // sema
    // Bytes shared by several pipes (`over`) go round: this pipe's put waits for `before` to be freed (itself
    // when the bytes are its own). hands_over: the put gives on the slot of `before` that the role holds;
    // nothing to wait for.
    Pipe *before;
    bool hands_over, first_in_round;
    bool free_is_ordered; // place: freeing needs no barrier, the next put follows it in the same tensor
                          // core's order
    // place: shared-memory offsets of barrier 0 (8 bytes each, array * depth of them), or -1
    int64_t full_barrier, empty_barrier;
    int full_count, empty_count; // arrivals a phase
    int64_t bytes;               // expected a phase (ENGINE_LOAD)
};

struct Role {
    const char *name;
    const char *replica_name;
    int number;
    int replicas;
    int warps, regs; // regs 0: not stated
    Span span, regs_span, warps_span;
    Stmt *body;
    bool uses_values;  // has tile values in registers: all its threads run; otherwise one elected lane does
    bool touches_tmem; // reads or writes tensor memory by threads: starts at a multiple of 4 warps
    bool issues_products;
    int local_count, slot_count, block_count;
    // place:
    int first_warp;
    int final_regs; // after setmaxnreg
};

struct Plan {
    Arena *arena;
    unsigned marks; // number of the latest walk over expressions
    const Target *target;
    const char *kernel_name, *family_name, *schedule_name, *source_path;
    Span kernel_span, schedule_span;
    Span cluster_span, occupancy_span; // empty when not declared

    Constant *constants;
    int constant_count;
    Axis *axes;
    int axis_count;
    RuntimeDim *dims;
    int dim_count;
    Tensor *tensors;
    int tensor_count;
    Param *params;
    int param_count;

    Factor *factors;
    int factor_count;
    TileAxis tile_axes[MAX_TILE_AXES];
    int tile_axis_count;
    bool heaviest_first, persistent;
    int queue_depth; // items that a CTA knows ahead of its work; 0: they are dealt out beforehand
    int cluster;     // CTAs that work on a tile together; 1: each alone
    int occupancy;   // CTAs that an SM runs at a time, which share its memory and registers
    RecordField *fields;
    int field_count, field_capacity;

    Walk **walks;
    int walk_count;
    Turn **turns;
    int turn_count;
    Buffer **buffers;
    int buffer_count;
    Pipe **pipes;
    int pipe_count;
    Role **roles;
    int role_count;
    TensorMap *maps;
    int map_count, map_capacity;

    // place:
    int warps; // of the CTA, idle ones included
    int launch_regs;
    int64_t shared_bytes, barrier_offset, barrier_bytes, tmem_pointer_offset;
    int tmem_columns;    // used
    int tmem_allocation; // power of two, 0 when there is none
    int mbarriers;
    // Of the queue: its warp, and shared-memory offsets of its barriers and of the items, queue_depth of
    // each.
    int queue_warp, queue_empty_count;
    int64_t queue_full, queue_empty, queue_items;
};

// The record field of that kind, added if it is new; its index.
int plan_field(Plan *plan, FieldKind kind, int index, int dim);

void plan_print(const Plan *plan, FILE *out);

#endif
