// program.h: the compiled form of a reference; private to this room.
//
// A node is a value: a scalar, or a vector over one index. It is evaluated when asked for and then kept until
// the innermost variable that it depends on changes, so that nothing is computed again inside a loop that it
// doesn't vary in. Variables nest, so a depth of nesting stands for a variable; inner ones are set again
// whenever an outer one is. Names bound by `let` are just nodes. Under a vector index, nested reductions loop
// over their own index and accumulate vectors.
#ifndef JFA_COMPILER_REFERENCE_PROGRAM_H
#define JFA_COMPILER_REFERENCE_PROGRAM_H

#include "compiler/reference/reference.h"

typedef enum {
    NODE_CONSTANT, // integer or real
    NODE_INDEX,    // var: its current value, or 0, 1, 2, ... for a vector index
    NODE_LENGTH,   // axis
    NODE_SEQUENCE,
    NODE_ELEMENT, // tensor, at[]
    NODE_ITEM,    // source (a vector) at index a
    NODE_UNARY,   // op, a
    NODE_BINARY,  // op, a, b
    NODE_CHOICE,  // a ? b : c
    NODE_CAST,    // a as type
    NODE_ROUND,   // a rounded to `elem`
    NODE_REDUCE,  // op over var: a
    NODE_KIND_COUNT
} NodeKind;

typedef enum { REDUCE_SUM, REDUCE_MAX, REDUCE_MIN } ReduceKind;

typedef enum { // NODE_UNARY: these; NODE_BINARY: these or an operator of the syntax tree
    CALL_EXP = 512,
    CALL_EXP2,
    CALL_LOG,
    CALL_LOG2,
    CALL_SQRT,
    CALL_RSQRT,
    CALL_TANH,
    CALL_FLOOR,
    CALL_SIN,
    CALL_COS,
    CALL_ABS,
    CALL_MIN,
    CALL_MAX,
} CallOp;

// Depths: of constants, of what changes with the sequence, of the outermost index.
enum { DEPTH_CONSTANT, DEPTH_SEQUENCE, DEPTH_FIRST, DEPTH_LIMIT = 64 };

typedef struct {
    NodeKind kind;
    Elem type;        // ELEM_BOOL, ELEM_I32, ELEM_F32 (a double in exact mode)
    int vector;       // the index that it is a vector over, or -1
    uint64_t depends; // bit d: on the variable at depth d
    int innermost;    // the highest bit of depends
    int op;
    int a, b, c;
    int32_t integer;
    double real;
    int var, tensor, axis, source;
    Elem elem;
    int at[REFERENCE_MAX_DIMS]; // nodes
    int unit_dim; // NODE_ELEMENT: the only dim whose index is a vector, when that is 0, 1, 2, ...; or -1
    // NODE_REDUCE of a product of `factor`, a vector over its own index, with elements of a matrix whose row
    // the index chooses (dim row_dim): computed row by row. -1: has no such form.
    int factor, matrix, row_dim;
} Node;

typedef struct {
    int depth;
    int axis;     // runs over an axis, or -1
    int64_t size; // otherwise
    bool is_vector;
} Variable;

typedef struct Step Step;
struct Step {
    bool is_loop;
    int var; // loop; store: the vector index, or -1
    Step *body;
    int tensor, value, vector_dim;
    int slack; // a kernel may be off by that; NO_NODE: nothing is said
    int at[REFERENCE_MAX_DIMS];
    Span span;
    Step *next;
};

typedef struct {
    const ReferenceTensor *given;
    const Ast *ast;
    Elem elem;
    int direction;
    int axis[REFERENCE_MAX_DIMS]; // of the problem, or -1
    bool is_written, has_slack;
    bool inner[REFERENCE_MAX_DIMS]; // is read with that dim as the innermost
} ProgramTensor;

typedef struct {
    const ReferenceProblem *problem;
    Node *nodes;
    int node_count, node_capacity;
    Variable *vars;
    int var_count, var_capacity;
    ProgramTensor *tensors; // as problem->tensors
    Step *steps;
} Program;

// compile.c: NULL: reported.
Program *program_compile(Arena *arena, Diag *diag, const ReferenceProblem *problem);

// The largest extent of a variable over all sequences.
int64_t program_largest_extent(const Program *program, int var);

// A tensor's elements as the evaluation reads them: of dim `inner` adjacent.
typedef struct {
    void *elements; // int32_t for i32 tensors; otherwise double (exact) or float
    int64_t stride[REFERENCE_MAX_DIMS];
} Packed;

typedef struct {
    const Program *program;
    Packed (*packed)[REFERENCE_MAX_DIMS]; // [tensor][inner dim]
    ReferenceOutput **outputs;            // [tensor], NULL: not written
} Evaluation;

typedef struct {
    bool out_of_memory;
    const Step *bad_store; // sets an element outside of its tensor
} WorkerFault;

// Evaluates part `part` of `parts` of the outermost loops, for sequence `sequence`. Two builds of one text:
// evaluate.h.
typedef struct Worker Worker;
Worker *exact_worker_new(const Evaluation *evaluation); // NULL: out of memory
void exact_worker_run(Worker *worker, int64_t sequence, int part, int parts, WorkerFault *fault);
void exact_worker_free(Worker *worker);
Worker *rounded_worker_new(const Evaluation *evaluation);
void rounded_worker_run(Worker *worker, int64_t sequence, int part, int parts, WorkerFault *fault);
void rounded_worker_free(Worker *worker);

#endif
