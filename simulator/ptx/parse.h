// parse.h: what the scanner, the grammar and ptx.c share. Nothing outside of this folder includes it.
#ifndef JFA_SIMULATOR_PTX_PARSE_H
#define JFA_SIMULATOR_PTX_PARSE_H

#include "simulator/ptx/ptx.h"

#include <setjmp.h>

typedef struct PtxParser PtxParser;

typedef struct { // a number as written
    bool is_float, is_double;
    int64_t integer; // or the bits of the float
} PtxNumber;

typedef struct { // an opcode, label, register or symbol; with the .loc in force where it stands
    const char *text;
    int loc_file, loc_line;
} PtxWord;

typedef struct PtxList PtxList; // operands in reverse order of reading
struct PtxList {
    PtxOperand operand;
    PtxList *before;
    int count;
    int line, column;
};

typedef struct { // what precedes a variable's name
    PtxSpace space;
    PtxType type;
    int vector, align;
    bool is_extern;
} PtxDeclaration;

// Memory of the module: zeroed; on failure the parse ends with "out of memory" and does not return.
void *ptx_take(PtxParser *parser, size_t bytes);
const char *ptx_copy(PtxParser *parser, const char *text, size_t length);
_Noreturn void ptx_fail(PtxParser *parser, int line, int column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
_Noreturn void ptx_scanner_failed(const char *message); // memory, in the scanner's own code

// The scanner's.
void ptx_set_loc(PtxParser *parser, const char *text);
void ptx_add_file(PtxParser *parser, const char *text);
PtxWord ptx_word(PtxParser *parser, const char *text, size_t length);
PtxNumber ptx_number(PtxParser *parser, const char *text, size_t length, int line, int column);
extern _Thread_local PtxParser *ptx_current; // of the parse that this thread is in

// The grammar's, in the order of a module.
void ptx_version(PtxParser *parser, const char *text);
void ptx_target(PtxParser *parser, const char *text);
void ptx_address_size(PtxParser *parser, int64_t bits, int line, int column);
void ptx_declaration(PtxParser *parser, PtxDeclaration declaration); // of the names that follow
void ptx_declare(PtxParser *parser, const char *name, int64_t elements, int line,
                 int column); // 0 elements: []
void ptx_initial_number(PtxParser *parser, PtxNumber number, int line,
                        int column); // of the variable declared last
void ptx_entry_begin(PtxParser *parser, const char *name, int line, int column);
void ptx_entry_limit(PtxParser *parser, const char *directive, const int64_t *values, int count, int line,
                     int column);
void ptx_entry_end(PtxParser *parser);
void ptx_scope_begin(PtxParser *parser);
void ptx_scope_end(PtxParser *parser);
void ptx_registers(PtxParser *parser, PtxType type); // of the names that follow
void ptx_register(PtxParser *parser, const char *name, int64_t count, int line, int column); // -1: no <n>
void ptx_label(PtxParser *parser, const char *name, int line, int column);
void ptx_target_table(PtxParser *parser, const char *name, const PtxList *labels, int line, int column);
PtxOperand ptx_name(PtxParser *parser, const char *name, int line, int column);
PtxOperand ptx_pair(PtxParser *parser, const char *first, const char *second, int line, int column);
PtxOperand ptx_group(PtxParser *parser, PtxOperandKind kind, const PtxList *items); // operands into one
PtxList *ptx_append(PtxParser *parser, PtxList *before, PtxOperand operand, int line, int column);
void ptx_instruction(PtxParser *parser, const char *predicate, bool negated, PtxWord opcode,
                     const PtxList *operands, int line, int column);

#endif
