// ast.h: what the parser makes of a .jfa file. Every node has its source span. One node type serves all
// constructs; the table below says which fields a kind uses. Lists are chained by `next`.
#ifndef JFA_GRAMMAR_AST_H
#define JFA_GRAMMAR_AST_H

#include "grammar/diag.h"
#include "grammar/source.h"

typedef enum {
    // --- expressions
    AST_INT,       // integer
    AST_FLOAT,     // real
    AST_BOOL,      // integer: 0 or 1
    AST_INF,       // inf
    AST_NAME,      // name
    AST_UNARY,     // op ('-', '!'), a
    AST_BINARY,    // op, a, b
    AST_CHOICE,    // a ? b : c
    AST_CALL,      // a (callee), list (arguments)
    AST_INDEX,     // a (base), list (indices)
    AST_MEMBER,    // a . name
    AST_TRANSPOSE, // a ^T
    AST_REDUCE,    // name (sum, max, min), list (one AST_BIND), a
    AST_BIND,      // name in a
    AST_TYPE,      // name (bf16, f32, i32, ... or an option), list (shape; may be empty)
    // --- top level
    AST_USE,      // name
    AST_FAMILY,   // name, list (items)
    AST_SCHEDULE, // name, name2 (family), name3 (target), list (items)
    AST_KERNEL,   // name, name2 (family), list (items)
    // --- items
    AST_CONST,     // name, a, list (other values worth trying; may be empty)
    AST_FUNCTION,  // name, list (parameters: AST_NAME), a (body)
    AST_OPTION,    // name, name2 ("int" or "type"), list (allowed values)
    AST_AXIS,      // name
    AST_DIM,       // name, name2 (dim that it divides) or NULL
    AST_TENSOR,    // name, op (TENSOR_IN ...), a (AST_TYPE), flag (optional)
    AST_PARAM,     // name, name2 (type), a (default) or NULL, b (what it is above) or NULL
    AST_HOOK,      // name, list (parameters), name2 (type of the result), a (default math)
    AST_REFERENCE, // list (statements)
    AST_SETTING,   // name, a
    AST_MATH,      // name, list (parameters), a: a kernel's definition of a hook
    AST_BUFFER,    // name, op (SPACE_SMEM, SPACE_TMEM), list (dims), a (AST_TYPE), name2 (over) or NULL
    AST_PIPE,      // name, list (dims), name2 (buffer), name3 (from), list2 (to: AST_NAME), op (PIPE_PLAIN
                   // ...)
    AST_GRID,      // name (tiles), list (AST_BIND), list2 (modifiers: AST_NAME)
    AST_WALK,      // name, list (one AST_BIND), list2 (modifiers: AST_NAME), a (where) or NULL
    AST_TURN,      // name, name2 (role)
    AST_CLUSTER,   // name (of the rank), a (CTAs)
    AST_OCCUPANCY, // a (CTAs an SM)
    AST_ROLE,      // name, list (AST_BIND of the replica, or NULL), a (warps), b (regs) or NULL, list2
                   // (statements)
    // --- statements
    AST_LET,     // name, list (AST_BINDs: a family of values) or NULL, a
    AST_VAR,     // name, b (AST_TYPE), a
    AST_ASSIGN,  // a (target), b
    AST_TAKE,    // a (slot: AST_NAME or AST_INDEX), b (pipe)
    AST_PUT,     // a (pipe), b (value), flag (+=), c (fresh if) or NULL
    AST_FILL,    // name (slot), a (pipe), list2 (statements)
    AST_ACCUM,   // a (slot) += b, c (fresh if) or NULL
    AST_FREE,    // a (slot)
    AST_UPDATE,  // a (slot) = b
    AST_STORE,   // a (tensor[...]) = b
    AST_IN_TURN, // name (turn), list2 (statements)
    AST_FOR,     // list (AST_BINDs), list2 (statements)
    AST_IF,      // a, list2 (then), list (else)
    AST_KIND_COUNT
} AstKind;

enum { TENSOR_IN, TENSOR_OUT, TENSOR_INOUT };
enum { SPACE_SMEM, SPACE_TMEM };
enum { PIPE_PLAIN, PIPE_IN_PLACE, PIPE_MULTICAST };

// Operators of more than one character; the others are their character.
enum { OP_EQ = 256, OP_NE, OP_LE, OP_GE, OP_AND, OP_OR };

typedef struct Ast Ast;
struct Ast {
    AstKind kind;
    Span span;      // the whole construct
    Span name_span; // where `name` stands
    Span name2_span, name3_span;
    const char *name, *name2, *name3;
    int op;
    bool flag;
    int64_t integer;
    double real;
    Ast *a, *b, *c;
    Ast *list, *list2;
    Ast *next;
    Ast *last; // the parser's: near the end of the chain that this node heads, or NULL
};

// Parses file number `file`. Returns its top-level items in order; errors go to diag, and the items that
// could be read are returned all the same, so that later checks can report too.
Ast *parse_file(Arena *arena, Diag *diag, int file);

// Parses "NAME = VALUE" texts given on a command line: an expression on its own.
Ast *parse_expression(Arena *arena, Diag *diag, int file);

// Prints the tree, one node a line, indented (jfac build --emit ast).
void ast_print(const Ast *items, FILE *out);

// An expression as source text, for messages.
const char *ast_text(const SourceSet *sources, Arena *arena, Span span);

const char *ast_op_text(int op);

#endif
