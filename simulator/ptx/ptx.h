// ptx.h: PTX text to a module of entries with flat instruction lists. Knows syntax only: which opcodes exist
// and what they do is the machine's (machine/decode.c). Nested scopes are resolved: registers and labels of
// inner { } scopes get numbers of their own.
#ifndef JFA_SIMULATOR_PTX_PTX_H
#define JFA_SIMULATOR_PTX_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    PTX_PRED,
    PTX_B8,
    PTX_B16,
    PTX_B32,
    PTX_B64,
    PTX_B128,
    PTX_U8,
    PTX_U16,
    PTX_U32,
    PTX_U64,
    PTX_S8,
    PTX_S16,
    PTX_S32,
    PTX_S64,
    PTX_F16,
    PTX_F16X2,
    PTX_F32,
    PTX_F64,
    PTX_TYPE_COUNT
} PtxType;

int ptx_type_bytes(PtxType type); // pred: 1

typedef enum {
    PTX_REG,     // reg: number of a register of the entry; second >= 0: the q of a pair p|q
    PTX_INT,     // integer (two's complement; U suffix and hex accepted)
    PTX_FLOAT,   // 0f or 0d literal or decimal: `integer` holds the bits of the 32-bit float (0f) or 64-bit
                 // (0d, decimal)
    PTX_SYMBOL,  // symbol: variable or parameter; offset
    PTX_SPECIAL, // name: "%tid.x", "%laneid", ...
    PTX_ADDRESS, // [ items[0] + offset ]; a bare [imm] has items[0] of kind PTX_INT
    PTX_TENSOR,  // [ items[0], { coordinates: items[1..] } ]: map and coordinates
    PTX_VECTOR,  // { items }
    PTX_LABEL,   // target: index of the instruction that the label stands before
    PTX_SINK,    // _ ; with second >= 0 the q of the pair _|q
    PTX_NAME,    // an identifier that is none of the above (a function's name)
} PtxOperandKind;

typedef struct PtxOperand PtxOperand;
struct PtxOperand {
    PtxOperandKind kind;
    bool negated; // !p
    bool is_double;
    int reg, second, symbol, target;
    int64_t integer, offset;
    const char *name;
    PtxOperand *items;
    int count;
};

typedef struct {
    const char *text;         // the opcode as written, "tcgen05.mma.cta_group::1.kind::f16"
    const char *const *parts; // split at '.' ("::" does not split): parts[0] = "tcgen05"
    int part_count;
    int predicate;          // register number, -1: none
    bool predicate_negated; // @!p
    PtxOperand *operands;
    int operand_count;
    int line;               // of the PTX text, from 1
    int loc_file, loc_line; // last .loc before it; 0: none
} PtxInstruction;

typedef enum {
    PTX_SPACE_GLOBAL,
    PTX_SPACE_SHARED,
    PTX_SPACE_CONST,
    PTX_SPACE_LOCAL,
    PTX_SPACE_PARAM
} PtxSpace;

typedef struct {
    const char *name;
    PtxSpace space;
    PtxType type;
    int64_t bytes; // whole size; 0 for an `.extern .shared x[]`
    int align;
    bool is_extern;
    int entry;      // of an entry (its parameters, its local variables): the entry's number; -1: the module's
    int64_t offset; // PARAM: in the parameter block; LOCAL, SHARED (not extern), within entry or module:
                    // assigned in order with alignment
    const uint8_t *initial; // `bytes` bytes, or NULL
} PtxSymbol;

typedef struct {
    const char *name; // "%r17", or "s3.P1" for scope 3
    PtxType type;
} PtxRegister;

typedef struct {
    const char *name;
    PtxRegister *registers;
    int register_count;
    PtxInstruction *instructions;
    int instruction_count;
    int64_t param_bytes;
    int required_threads[3];     // .reqntid, 0: not given
    int max_threads[3];          // .maxntid
    int cluster[3];              // .reqnctapercluster, 0: not given
    int min_ctas, max_registers; // .minnctapersm, .maxnreg; 0: not given
    int64_t local_bytes;
    int line;
} PtxEntry;

typedef struct {
    const char *target; // "sm_100a"
    int version_major, version_minor, address_size;
    PtxEntry *entries;
    int entry_count;
    PtxSymbol *symbols;
    int symbol_count;
    const char **files; // by .file number
    int file_count;
    int64_t shared_bytes; // static shared memory of the module
} PtxModule;

typedef struct {
    int line, column;
    char message[240];
} PtxError;

// NULL and *error on a mistake. The text needn't outlive the call. Free with ptx_free.
PtxModule *ptx_parse(const char *text, size_t length, PtxError *error);
void ptx_free(PtxModule *module);

int ptx_find_entry(const PtxModule *module, const char *name); // -1: none
int ptx_find_symbol(const PtxModule *module, const char *name,
                    int entry); // the entry's first, then the module's; -1

#endif
