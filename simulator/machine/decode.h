// decode.h: from a parsed instruction to an operation of the machine. Each file of operations gives a table
// of roots (the opcode's first part) with a decoder that looks at the rest.
#ifndef JFA_SIMULATOR_MACHINE_DECODE_H
#define JFA_SIMULATOR_MACHINE_DECODE_H

#include "simulator/machine/machine.h"

typedef struct {
    Module *module;
    Program *program;
    const PtxInstruction *in;
    int entry;
    char *message; // 256 bytes
} Decoder;

typedef struct {
    const char *root;
    bool (*decode)(Decoder *d, Op *op); // false: unknown form (message empty) or a message
} OpEntry;

extern const OpEntry FLOAT_OPS[], INTEGER_OPS[], COMPARE_OPS[], CONVERT_OPS[], ACCESS_OPS[], SYNC_OPS[],
    MBARRIER_OPS[], COPY_OPS[], TENSOR_OPS[], WARP_OPS[], WGMMA_OPS[], MATRIX_OPS[], TENSORMAP_OPS[],
    QUEUE_OPS[], CARRY_OPS[];

enum { TYPE_NONE = -1 };

bool has(const Decoder *d, const char *part); // the opcode has that part
const char *part(const Decoder *d, int i);    // "" beyond the end
int type_of(const char *text);                // TYPE_NONE
int last_type(const Decoder *d);
bool only(const Decoder *d,
          const char *const *allowed); // every part after the first is a type or in the list
bool fail(Decoder *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Flattens all operands (vectors, pairs, addresses) into op->operands. Immediates are as wide as `type`.
bool take_operands(Decoder *d, Op *op, int type);
// Where operand number i of the instruction begins among the flattened ones, and how many it makes.
int operand_start(const Decoder *d, int i);
int operand_width(const PtxOperand *operand);

// Reads of registers that nothing writes become faults (check/unset.c). false: out of memory.
bool check_unset_registers(Program *program);

bool decode_cp_async(Decoder *d, Op *op);    // cp_async.c
bool decode_store_async(Decoder *d, Op *op); // st.async, red.async

// Special registers whose value differs by warp or CTA.
enum {
    SPECIAL_NONE,
    SPECIAL_TID_X,
    SPECIAL_TID_Y,
    SPECIAL_TID_Z,
    SPECIAL_NTID_X,
    SPECIAL_NTID_Y,
    SPECIAL_NTID_Z,
    SPECIAL_CTAID_X,
    SPECIAL_CTAID_Y,
    SPECIAL_CTAID_Z,
    SPECIAL_NCTAID_X,
    SPECIAL_NCTAID_Y,
    SPECIAL_NCTAID_Z,
    SPECIAL_LANEID,
    SPECIAL_WARPID,
    SPECIAL_NWARPID,
    SPECIAL_SMID,
    SPECIAL_NSMID,
    SPECIAL_CLUSTER_RANK,
    SPECIAL_CLUSTER_SIZE,
    SPECIAL_CLUSTERID_X,
    SPECIAL_CLUSTERID_Y,
    SPECIAL_CLUSTERID_Z,
    SPECIAL_NCLUSTERID_X,
    SPECIAL_NCLUSTERID_Y,
    SPECIAL_NCLUSTERID_Z,
    SPECIAL_CLUSTER_CTAID_X,
    SPECIAL_CLUSTER_CTAID_Y,
    SPECIAL_CLUSTER_CTAID_Z,
    SPECIAL_CLUSTER_NCTAID_X,
    SPECIAL_CLUSTER_NCTAID_Y,
    SPECIAL_CLUSTER_NCTAID_Z,
    SPECIAL_LANEMASK_EQ,
    SPECIAL_LANEMASK_LE,
    SPECIAL_LANEMASK_LT,
    SPECIAL_LANEMASK_GE,
    SPECIAL_LANEMASK_GT,
    SPECIAL_DYNAMIC_SHARED,
    SPECIAL_CLOCK,
    SPECIAL_EXPLICIT_CLUSTER,
    SPECIAL_SHARED_ADDRESS, // of a shared variable: value is its offset
    SPECIAL_EXTERN_SHARED,  // of the dynamic shared memory
};

// Fills the constants and special registers of a warp.
void decode_init_registers(const Program *program, Warp *warp);
// Brings the clocks among them up to date.
void decode_read_clock(const Program *program, Warp *warp);

#endif
