// state.h: the parser's state, shared by ptx.c (names, variables, entries, the module) and operands.c
// (instructions).
#ifndef JFA_SIMULATOR_PTX_STATE_H
#define JFA_SIMULATOR_PTX_STATE_H

#include "simulator/ptx/parse.h"

// Behind an instruction's operands lie blank ones, so that a reader that looks at too many finds no operand.
enum { BLANK_OPERANDS = 4 };

enum { NAME_BUCKETS = 8192, MAX_REGISTERS = 1 << 20, BLOCK_BYTES = 1 << 16 };

typedef enum { NAME_REGISTER, NAME_SYMBOL, NAME_LABEL, NAME_TABLE } NameKind;

typedef struct Name Name;
struct Name {
    const char *text;
    uint32_t hash;
    NameKind kind;
    int value;        // number of the register, symbol or instruction
    PtxOperand table; // NAME_TABLE: a vector of labels
    Name *in_bucket;  // older or of an outer scope
    Name *in_scope;
};

typedef struct Pending Pending; // use of a name that may be a label further down
struct Pending {
    const char *name;
    int instruction, operand, item; // item: in a branch table, else -1
    int line, column;
    Pending *before;
};

typedef struct Scope Scope;
struct Scope {
    int number;
    Name *names;
    Pending *pending;
    Scope *outer;
};

typedef struct Block Block;
struct Block {
    Block *before;
    size_t used, size;
    unsigned char bytes[];
};

typedef struct {
    PtxModule module; // first: what the caller holds
    Block *blocks;
} Owned;

struct PtxParser {
    Owned *owned;
    PtxModule *module;
    PtxError *error;
    jmp_buf failed;
    Name *buckets[NAME_BUCKETS];
    Scope *scope;
    int scope_count;
    int entry; // -1: outside
    int loc_file, loc_line;
    PtxDeclaration declaration;
    PtxType register_type;
    PtxSymbol *initialised;
    int64_t initial_count;
    int symbol_capacity, entry_capacity, register_capacity, instruction_capacity;
    bool has_target;
    PtxOperand *no_operands; // of instructions that have none
};

Name *ptx_find_name(const PtxParser *parser, const char *text); // the innermost; NULL: none
// Room for one more element of an array of the module; the array moves.
void *ptx_grow(PtxParser *parser, void *array, int count, int *capacity, size_t element);
PtxEntry *ptx_entry_now(PtxParser *parser);
PtxOperand ptx_blank(PtxOperandKind kind);

#endif
