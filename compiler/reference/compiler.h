// compiler.h: shared by the files that turn a reference's tree into a Program; private to this room.
#ifndef JFA_COMPILER_REFERENCE_COMPILER_H
#define JFA_COMPILER_REFERENCE_COMPILER_H

#include "compiler/reference/program.h"

typedef enum { SCOPE_FAMILY, SCOPE_KERNEL } ScopeKind; // the kernel's scope sees the family's too

// A name bound by a loop, a let, or a function's parameter list.
typedef struct Binding {
    const char *name;
    int node;
    bool is_vector_let; // used as name[index]
    const struct Binding *next;
} Binding;

typedef struct {
    const Binding *names;
    ScopeKind scope;
    int vector; // the vector index of the expression at hand, or -1
    int depth;  // variables in scope
} Context;

typedef struct {
    Arena *arena;
    Diag *diag;
    const ReferenceProblem *problem;
    Program *program;
    int nesting; // of expressions, calls and constants
    int work;    // expressions visited
} Compiler;

enum { NO_NODE = -1 };

// nodes.c: makes nodes; constants are folded. Errors are reported and give NO_NODE; a NO_NODE operand gives
// NO_NODE.
int node_new(Compiler *compiler, Node node,
             Span span); // fills vector, depends and innermost from the operands
int node_int(Compiler *compiler, int64_t value, Span span);
int node_real(Compiler *compiler, double value, Span span);
int node_bool(Compiler *compiler, bool value, Span span);
int node_cast(Compiler *compiler, int a, Elem type, Span span);
int node_unary(Compiler *compiler, int op, int a, Span span);
int node_binary(Compiler *compiler, int op, int a, int b, Span span);
int node_choice(Compiler *compiler, int condition, int a, int b, Span span);
int node_index(Compiler *compiler, int var, Span span);
int variable_new(Compiler *compiler, const Variable *variable, Span span);

// names.c
int name_value(Compiler *compiler, const Context *context, const Ast *ast);
const Ast *find_callable(Compiler *compiler, const Context *context, const char *name, ScopeKind *scope);
int find_tensor(Compiler *compiler, const Context *context, const char *name);
int find_axis(const Compiler *compiler, const char *name);
bool find_type(Compiler *compiler, const char *name, Span span, Elem *elem);
void unknown_name(Compiler *compiler, const Context *context, const char *name, Span span, const char *what);
const Binding *find_binding(const Context *context, const char *name);
const Ast *find_item(const Ast *list, AstKind kind, const char *name);
bool bind_tensors(Compiler *compiler);

// compile.c
int compile_expression(Compiler *compiler, const Context *context, const Ast *ast);
int compile_element(Compiler *compiler, const Context *context, const Ast *ast, int tensor);
// The index that a binder declares: a loop's or a vector's.
int compile_binder(Compiler *compiler, const Context *context, const Ast *bind, bool is_vector);
const Binding *bind_name(Compiler *compiler, const Binding *names, const char *name, int node);

// steps.c
bool compile_statements(Compiler *compiler, Context context, const Ast *list, Step **first);

#endif
