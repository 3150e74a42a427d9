// fold.c: makes typed expressions; folds constants on the way.
#include "compiler/sema/internal.h"

#include <math.h>
#include <string.h>

static const Type UNIFORM_I32 = {ELEM_I32, 1, 1}, UNIFORM_F32 = {ELEM_F32, 1, 1},
                  UNIFORM_BOOL = {ELEM_BOOL, 1, 1};

Expr *expr_new(Sema *sema, ExprKind kind, Type type, Span span) {
    Expr *expr = arena_new_of(sema->arena, Expr);
    expr->kind = kind;
    expr->type = type;
    expr->span = span;
    return expr;
}

Expr *expr_int(Sema *sema, int64_t value, Span span) {
    if (value < INT32_MIN || value > INT32_MAX) {
        diag_error(sema->diag, span, "constant-range", "%lld does not fit in i32", (long long)value);
        return NULL;
    }
    Expr *expr = expr_new(sema, X_INT, UNIFORM_I32, span);
    expr->integer = value;
    return expr;
}

Expr *expr_float(Sema *sema, double value, Span span) {
    Expr *expr = expr_new(sema, X_FLOAT, UNIFORM_F32, span);
    expr->real = value;
    return expr;
}

Expr *expr_bool(Sema *sema, bool value, Span span) {
    Expr *expr = expr_new(sema, X_BOOL, UNIFORM_BOOL, span);
    expr->integer = value;
    return expr;
}

bool expr_is_constant(const Expr *expr) {
    return expr && (expr->kind == X_INT || expr->kind == X_FLOAT || expr->kind == X_BOOL);
}

double expr_constant(const Expr *expr) {
    return expr->kind == X_FLOAT ? expr->real : (double)expr->integer;
}

const char *type_text(Sema *sema, Type type) {
    const char *elem = elem_name(type.elem);
    if (type.rows == 1 && type.cols == 1)
        return elem;
    const char *rows = type.rows == EXTENT_ANY ? "rows" : arena_format(sema->arena, "%d", type.rows);
    const char *cols = type.cols == EXTENT_ANY ? "cols" : arena_format(sema->arena, "%d", type.cols);
    if (type.cols == 1)
        return arena_format(sema->arena, "%s[%s]", elem, rows);
    return arena_format(sema->arena, "%s[%s, %s]", elem, rows, cols);
}

static bool join_extent(int a, int b, int *joined) {
    if (a == b || b == 1) {
        *joined = a;
        return true;
    }
    if (a == 1 || a == EXTENT_ANY) {
        *joined = b;
        return true;
    }
    *joined = a;
    return b == EXTENT_ANY;
}

bool type_join(Sema *sema, Type a, Type b, Span span, Type *joined) {
    joined->elem = a.elem;
    if (join_extent(a.rows, b.rows, &joined->rows) && join_extent(a.cols, b.cols, &joined->cols))
        return true;
    diag_error(sema->diag, span, "shape-mismatch", "shapes don't fit: %s with %s", type_text(sema, a),
               type_text(sema, b));
    return false;
}

Expr *expr_cast(Sema *sema, Expr *expr, Elem elem, Span span) {
    if (!expr || expr->type.elem == elem)
        return expr;
    if (expr->type.elem == ELEM_BOOL || elem == ELEM_BOOL) {
        bool is_condition = expr->type.elem == ELEM_BOOL;
        DiagItem *item =
            diag_error(sema->diag, span, "type-mismatch", "this is %s, but %s is needed",
                       is_condition ? "a condition" : "a number", is_condition ? "a number" : "a condition");
        diag_help(item, is_condition ? "choose numbers by it: condition ? 1 : 0"
                                     : "compare the number with another, with == != < > <= or >=");
        return NULL;
    }
    if (expr->kind == X_INT && elem == ELEM_F32)
        return expr_float(sema, (double)expr->integer, expr->span);
    if (expr->kind == X_FLOAT && elem == ELEM_I32) {
        double whole = trunc(expr->real);
        if (whole >= INT32_MIN && whole <= INT32_MAX)
            return expr_int(sema, (int64_t)whole, expr->span);
        diag_error(sema->diag, span, "constant-range", "%g does not fit in i32", expr->real);
        return NULL;
    }
    Type type = expr->type;
    type.elem = elem;
    Expr *cast = expr_new(sema, X_CAST, type, expr->span);
    cast->a = expr;
    return cast;
}

Expr *expr_unary(Sema *sema, int op, Expr *a, Span span) {
    if (!a)
        return NULL;
    if (op == '!') {
        a = expr_cast(sema, a, ELEM_BOOL, span);
        if (!a)
            return NULL;
        if (a->kind == X_BOOL)
            return expr_bool(sema, !a->integer, span);
    } else {
        if (a->type.elem == ELEM_BOOL)
            return expr_cast(sema, a, ELEM_F32, span);
        if (a->kind == X_INT)
            return expr_int(sema, -a->integer, span);
        if (a->kind == X_FLOAT)
            return expr_float(sema, -a->real, span);
    }
    Expr *expr = expr_new(sema, X_UNARY, a->type, span);
    expr->op = op;
    expr->a = a;
    return expr;
}

static bool is_comparison(int op) {
    return op == '<' || op == '>' || (op >= OP_EQ && op <= OP_GE);
}
static bool is_logical(int op) {
    return op == OP_AND || op == OP_OR;
}

static bool compare(int op, double a, double b) {
    switch (op) {
    case '<':
        return a < b;
    case '>':
        return a > b;
    case OP_LE:
        return a <= b;
    case OP_GE:
        return a >= b;
    case OP_EQ:
        return a == b;
    default:
        return a != b;
    }
}

static Expr *fold_int(Sema *sema, int op, int64_t a, int64_t b, Span span) {
    switch (op) { // operands fit in 32 bits, so no result overflows 64
    case '+':
        return expr_int(sema, a + b, span);
    case '-':
        return expr_int(sema, a - b, span);
    case '*':
        return expr_int(sema, a * b, span);
    case '/':
        return expr_int(sema, a / b, span);
    default:
        return expr_int(sema, a % b, span);
    }
}

static Expr *fold_float(Sema *sema, int op, double a, double b, Span span) {
    switch (op) {
    case '+':
        return expr_float(sema, a + b, span);
    case '-':
        return expr_float(sema, a - b, span);
    case '*':
        return expr_float(sema, a * b, span);
    case '/':
        return expr_float(sema, a / b, span);
    default:
        return expr_float(sema, fmod(a, b), span);
    }
}

// true && x, false || x and the like.
static Expr *simplify_logical(Sema *sema, int op, Expr *a, Expr *b, Span span) {
    Expr *constant = a->kind == X_BOOL ? a : b->kind == X_BOOL ? b : NULL;
    if (!constant)
        return NULL;
    Expr *other = constant == a ? b : a;
    if ((op == OP_AND) == (constant->integer != 0))
        return other;
    return expr_bool(sema, op == OP_OR, span);
}

// x * 1, x / 1, x + 0, x - 0: the identities that hold for every float but -0 + 0.
static Expr *simplify_identity(int op, Expr *a, Expr *b) {
    if (!expr_is_constant(b))
        return NULL;
    double value = expr_constant(b);
    if ((op == '*' || op == '/') && value == 1)
        return a;
    if ((op == '+' || op == '-') && value == 0 && a->type.elem == ELEM_I32)
        return a;
    return NULL;
}

// (x * u) * v with x varying and u, v uniform: x * (u * v), so that the uniform part is computed once.
// Products of floats may be regrouped so; sums are not.
static Expr *regroup(Sema *sema, int op, Expr *a, Expr *b, Span span) {
    if (op != '*' || a->type.elem != ELEM_F32)
        return NULL;
    if (type_is_uniform(a->type) && !type_is_uniform(b->type)) {
        Expr *swap = a;
        a = b;
        b = swap;
    }
    bool fits = !type_is_uniform(a->type) && type_is_uniform(b->type) && a->kind == X_BINARY && a->op == '*';
    if (!fits || type_is_uniform(a->a->type) == type_is_uniform(a->b->type))
        return NULL;
    Expr *varying = type_is_uniform(a->a->type) ? a->b : a->a, *uniform = varying == a->a ? a->b : a->a;
    return expr_binary(sema, '*', varying, expr_binary(sema, '*', uniform, b, span), span);
}

// Conditions are compared with each other for equality only, and are no numbers.
static bool has_numbers(Sema *sema, int op, const Expr *a, const Expr *b, Span span) {
    bool first = a->type.elem == ELEM_BOOL, second = b->type.elem == ELEM_BOOL;
    if ((!first && !second) || (first && second && (op == OP_EQ || op == OP_NE)))
        return true;
    DiagItem *item =
        diag_error(sema->diag, span, "type-mismatch", "'%s' needs numbers, not conditions", ast_op_text(op));
    if (is_comparison(op) && first && a->kind == X_BINARY && is_comparison(a->op))
        diag_help(item, "comparisons are joined by &&: a < b && b < c");
    else
        diag_help(item, "choose numbers by a condition: condition ? 1 : 0");
    return false;
}

Expr *expr_binary(Sema *sema, int op, Expr *a, Expr *b, Span span) {
    if (!a || !b)
        return NULL;
    if (op == '@') {
        DiagItem *item =
            diag_error(sema->diag, span, "product-place", "a product '@' can't stand inside an expression");
        diag_help(item, "products run on the tensor core: put pipe = a @ b; or, inside fill, slot += a @ b;");
        return NULL;
    }
    if (!is_logical(op) && !has_numbers(sema, op, a, b, span))
        return NULL;
    Elem elem = is_logical(op)                                         ? ELEM_BOOL
                : a->type.elem == ELEM_F32 || b->type.elem == ELEM_F32 ? ELEM_F32
                                                                       : a->type.elem;
    a = expr_cast(sema, a, elem, span);
    b = expr_cast(sema, b, elem, span);
    Type type;
    if (!a || !b || !type_join(sema, a->type, b->type, span, &type))
        return NULL;
    if (elem == ELEM_I32 && (op == '/' || op == '%') && b->kind == X_INT && b->integer == 0) {
        DiagItem *item =
            diag_error(sema->diag, span, "division-by-zero", "an integer is divided by the constant 0");
        diag_help(item, "a quotient of floats may be infinite: write 0.0, or f32(x), for a float");
        return NULL;
    }
    if (is_logical(op)) {
        Expr *simple = simplify_logical(sema, op, a, b, span);
        if (simple)
            return simple;
    } else if (expr_is_constant(a) && expr_is_constant(b)) {
        if (is_comparison(op))
            return expr_bool(sema, compare(op, expr_constant(a), expr_constant(b)), span);
        return elem == ELEM_I32 ? fold_int(sema, op, a->integer, b->integer, span)
                                : fold_float(sema, op, a->real, b->real, span);
    } else {
        Expr *simple = simplify_identity(op, a, b);
        if (simple)
            return simple;
        if (op == '*' && (simple = simplify_identity(op, b, a)))
            return simple;
        if (op == '+' && (simple = simplify_identity(op, b, a)))
            return simple;
        if ((simple = regroup(sema, op, a, b, span)))
            return simple;
    }
    if (is_comparison(op))
        type.elem = ELEM_BOOL;
    Expr *expr = expr_new(sema, X_BINARY, type, span);
    expr->op = op;
    expr->a = a;
    expr->b = b;
    return expr;
}

Expr *expr_select(Sema *sema, Expr *condition, Expr *a, Expr *b, Span span) {
    condition = expr_cast(sema, condition, ELEM_BOOL, span);
    if (!condition || !a || !b)
        return NULL;
    Elem elem = a->type.elem == ELEM_F32 || b->type.elem == ELEM_F32 ? ELEM_F32 : a->type.elem;
    a = expr_cast(sema, a, elem, span);
    b = expr_cast(sema, b, elem, span);
    Type type;
    if (!a || !b || !type_join(sema, a->type, b->type, span, &type))
        return NULL;
    if (condition->kind == X_BOOL)
        return condition->integer ? a : b;
    if (!type_join(sema, type, condition->type, span, &type))
        return NULL;
    Expr *expr = expr_new(sema, X_SELECT, type, span);
    expr->a = condition;
    expr->b = a;
    expr->c = b;
    return expr;
}

static double math_value(MathOp op, double a, double b) {
    switch (op) {
    case MATH_EXP:
        return exp(a);
    case MATH_EXP2:
        return exp2(a);
    case MATH_LOG:
        return log(a);
    case MATH_LOG2:
        return log2(a);
    case MATH_SQRT:
        return sqrt(a);
    case MATH_RSQRT:
        return 1 / sqrt(a);
    case MATH_TANH:
        return tanh(a);
    case MATH_ABS:
        return fabs(a);
    case MATH_MIN:
        return fmin(a, b);
    case MATH_MAX:
        return fmax(a, b);
    case MATH_FLOOR:
        return floor(a);
    case MATH_SIN:
        return sin(a);
    case MATH_COS:
        return cos(a);
    default:
        return 0;
    }
}

Expr *expr_math(Sema *sema, MathOp op, Expr *a, Expr *b, Span span) {
    if (!a || ((op == MATH_MIN || op == MATH_MAX) && !b))
        return NULL;
    bool keeps_integers = op == MATH_ABS || op == MATH_MIN || op == MATH_MAX;
    Elem elem =
        keeps_integers && a->type.elem == ELEM_I32 && (!b || b->type.elem == ELEM_I32) ? ELEM_I32 : ELEM_F32;
    a = expr_cast(sema, a, elem, span);
    b = expr_cast(sema, b, elem, span);
    if (!a)
        return NULL;
    Type type = a->type;
    if (b && !type_join(sema, a->type, b->type, span, &type))
        return NULL;
    if (expr_is_constant(a) && (!b || expr_is_constant(b))) {
        double value = math_value(op, expr_constant(a), b ? expr_constant(b) : 0);
        return elem == ELEM_I32 ? expr_int(sema, (int64_t)value, span) : expr_float(sema, value, span);
    }
    Expr *expr = expr_new(sema, X_CALL, type, span);
    expr->op = op;
    expr->a = a;
    expr->b = b;
    return expr;
}
