// internal.h: shared by the files of this room.
#ifndef JFA_COMPILER_SEMA_INTERNAL_H
#define JFA_COMPILER_SEMA_INTERNAL_H

#include "compiler/sema/sema.h"

enum { MAX_ITEMS = 64 }; // of each kind

typedef struct Scope Scope;

typedef enum {
    SYM_VALUE,  // expr: constants, arguments, locals
    SYM_TYPE,   // elem
    SYM_DIM,    // index
    SYM_PARAM,  // index
    SYM_TENSOR, // index
    SYM_AXIS,   // index
    SYM_FUNCTION,
    SYM_HOOK,
    SYM_BUFFER,
    SYM_PIPE,
    SYM_ROLE,
    SYM_WALK,
    SYM_TURN,
    SYM_TILES, // the grid's name
    SYM_TILE,  // the variable of a loop over it
    SYM_BLOCK,
    SYM_SLOT,
} SymbolKind;

typedef struct Symbol {
    const char *name;
    SymbolKind kind;
    Span span;
    struct Symbol *next;
    Expr *expr;
    Elem elem;
    int index;
    const Ast *ast;  // function or hook as declared
    const Ast *math; // hook: the kernel's own math, or NULL
    Scope *scope;    // where the body's names are looked up
    Scope *math_scope;
    Buffer *buffer;
    Pipe *pipe;
    Role *role;
    Walk *walk;
    Turn *turn;
    Block *block;
    Slot *slot;    // NULL: its take was wrong and has been reported
    bool inlining; // its body is being expanded: a second time is a recursion
} Symbol;

struct Scope {
    Symbol *symbols;
    Scope *parent;
};

typedef struct Held {
    Slot *slot;
    bool gone; // freed or handed on
    Span gone_span;
    const Pipe *gone_to; // the one whose put it was handed on by; NULL: freed
    struct Held *next;
} Held;

typedef struct {
    const char *name;
    const char *text;
    Expr *value; // NULL when the text is a name (a type)
    bool used;
} Define;

typedef struct {
    Arena *arena;
    Diag *diag;
    Plan *plan;
    const SemaOptions *options;
    SemaParts *parts;
    Define *defines;
    bool tuned_used[TUNED_MAX_VALUES]; // of the entry's `use` lines
    bool lost_round; // a buffer is declared over what it can't be: who hands on what is not known
    bool lost_walk;  // a walk's declaration was wrong: who goes along it can't be read
    Scope *global, *family, *kernel, *schedule;
    bool lost_name; // of two things declared alike: reported, and no name is said to be unknown any more
    Symbol *tiles;
    Ast *walk_where[16];
    // While a role's body is read:
    Role *role;
    bool told_rows; // that the role's warps don't match a tile's rows
    Held *held;
    bool in_tiles;
    const Turn *turn; // whose statements are being read
    int nested;       // expressions being read within each other
    bool is_too_deep; // told once
    int expanded;     // functions and hooks expanded in place so far, likewise
    int unrolled;     // statements made by constant loops so far: a bound against runaway specs
} Sema;

// scope.c
Scope *scope_new(Sema *sema, Scope *parent);
Symbol *scope_find(Scope *scope, const char *name);
Symbol *scope_add(Sema *sema, Scope *scope, SymbolKind kind, const char *name,
                  Span span); // NULL: duplicate, reported
void scope_unknown(Sema *sema, Scope *scope, const char *name, Span span, const char *what);
const char *symbol_kind_text(SymbolKind kind);

// fold.c: makes expressions; constants are folded. Errors are reported and give NULL; a NULL operand gives
// NULL.
Expr *expr_new(Sema *sema, ExprKind kind, Type type, Span span);
Expr *expr_int(Sema *sema, int64_t value, Span span);
Expr *expr_float(Sema *sema, double value, Span span);
Expr *expr_bool(Sema *sema, bool value, Span span);
// span: where the value is used; an expression may come from elsewhere.
Expr *expr_cast(Sema *sema, Expr *expr, Elem elem, Span span);
Expr *expr_unary(Sema *sema, int op, Expr *a, Span span);
Expr *expr_binary(Sema *sema, int op, Expr *a, Expr *b, Span span);
Expr *expr_select(Sema *sema, Expr *condition, Expr *a, Expr *b, Span span);
Expr *expr_math(Sema *sema, MathOp op, Expr *a, Expr *b, Span span);
bool expr_is_constant(const Expr *expr);
double expr_constant(const Expr *expr);
bool type_join(Sema *sema, Type a, Type b, Span span, Type *joined);
const char *type_text(Sema *sema, Type type);

// expr.c
Expr *sema_expr(Sema *sema, Scope *scope, const Ast *ast);
bool sema_constant_int(Sema *sema, Scope *scope, const Ast *ast, const char *what, int64_t low, int64_t high,
                       int64_t *value);
Slot *sema_slot(Sema *sema, Scope *scope, const Ast *ast);               // NULL: reported
const char *sema_slot_name(Sema *sema, Scope *scope, const Ast *target); // "a" or "a[1]"; NULL: reported
Walk *sema_walk_of(Sema *sema, Scope *scope, const Ast *ast);            // t.kv; NULL: it is something else
Expr *sema_field(Sema *sema, FieldKind kind, int index, int dim, Span span);
Expr *sema_walk_predicate(Sema *sema, Walk *walk, Expr *row, Expr *col, Span span);

const char *sema_math_name(int i); // the functions of the language; NULL: no more

// declare.c
// Says of each constant in the tree that -D gave it its value.
void declare_note_defines(Sema *sema, DiagItem *item, const Ast *ast);
bool declare_grows(Sema *sema, int count, Span span, const char *what);
Elem declare_find_elem(Sema *sema, Scope *scope, const char *name, Span span);
void declare_const(Sema *sema, Scope *scope, const Ast *ast, bool overridable);
void declare_function(Sema *sema, Scope *scope, const Ast *ast);
void declare_misplaced(Sema *sema, const Ast *item, const char *where);
void declare_family(Sema *sema);
void declare_kernel(Sema *sema);

// tune.c
void tune_choose(Sema *sema); // the entry of the tuned file, if one fits; requires the kernel's constants
// The values that `ast` lists beside its own, into the constant; and the one of them that the tuned file
// says, else `value`. NULL: what it says is wrong, and reported.
Expr *tune_constant(Sema *sema, Scope *scope, const Ast *ast, Expr *value, bool is_given, Constant *constant);
void tune_misplaced(Sema *sema, const Ast *ast);
void tune_check_used(Sema *sema); // requires the schedule's constants

// schedule.c
void declare_schedule(Sema *sema);
void declare_rounds(Sema *sema); // which pipe's free each put waits for; requires all roles to have been read
int walk_number(const Sema *sema, const Walk *walk);

// cluster.c
void cluster_declare(Sema *sema, const Ast *ast);
void cluster_check(Sema *sema); // requires all roles to have been read, and rounds to be known

// bounds.c
void bounds_check(Sema *sema); // requires all roles to have been read without errors

// slots.c
Pipe *slot_find_pipe(Sema *sema, Scope *scope, const Ast *ast, Expr **index);
bool slot_in_tiles(Sema *sema, Span span); // false: reported
void slot_note_wrong_role(Sema *sema, DiagItem *item, const Pipe *pipe);
Slot *slot_make(Sema *sema, Pipe *pipe, Expr *index, const char *name, Span span);
void slot_hold(Sema *sema, Slot *slot);
void slot_report_gone(Sema *sema, const Held *held, Span span);
Held *slot_find_held(Sema *sema, const Slot *slot);
void slot_set_engine(Sema *sema, Engine *engine, Engine now, const Pipe *pipe, Span span, const char *verb);
void slot_use(Sema *sema, const Slot *slot, Engine engine, Span span);
Slot *slot_open(Sema *sema, Scope *scope, const Ast *target, const char *name, Span span);
void slot_hand_on(Sema *sema, const Slot *slot, Span span);

// tiles.c
bool tile_read_ref(Sema *sema, Scope *scope, const Ast *ast, TensorRef *ref);
void tile_wrong_rank(Sema *sema, const Tensor *tensor, Span span, int given);
bool tile_is_tensor(Scope *scope, const Ast *ast);
int tile_find_map(Sema *sema, const TensorRef *ref, const Buffer *buffer, bool is_store,
                  int slices); // CTAs that share the move; -1: reported
bool tile_check_direction(Sema *sema, const TensorRef *ref, bool writes);

// product.c
// A product that fills the slot `into`, or a local if that is NULL: then stmt->local is yet to be set.
Stmt *product_read(Sema *sema, Scope *scope, Slot *into, const Ast *value, const Ast *fresh, bool accumulates,
                   Span span);
bool product_is(const Ast *ast);

// stmt.c
Stmt *stmt_make(Sema *sema, StmtKind kind, Span span);
bool stmt_check_tile(Sema *sema, int rows, int cols, Span span);
Expr *stmt_value(Sema *sema, Scope *scope, const Ast *ast);
Stmt *stmt_read_list(Sema *sema, Scope *scope, const Ast *list);

// control.c
Stmt *control_block(Sema *sema, Scope *scope, const Ast *list);
Stmt *control_if(Sema *sema, Scope *scope, const Ast *ast);
Stmt *control_turn(Sema *sema, Scope *scope, const Ast *ast);
Stmt *control_for(Sema *sema, Scope *scope, const Ast *ast);
void sema_role(Sema *sema, Role *role, const Ast *ast);

#endif
