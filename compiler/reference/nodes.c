// nodes.c: makes the nodes of a program. Takes operands, gives nodes with their type, the index that they are
// vectors over and what they depend on.
#include "compiler/reference/compiler.h"

#include <math.h>
#include <string.h>

enum { MOST_NODES = 20000, MOST_VARIABLES = 2000 };

static const Node *at(Compiler *compiler, int node) {
    return &compiler->program->nodes[node];
}

static void *grown(Compiler *compiler, void *items, int count, int *capacity, size_t bytes) {
    if (count < *capacity)
        return items;
    *capacity = *capacity ? 2 * *capacity : 64;
    void *larger = arena_alloc(compiler->arena, bytes * (size_t)*capacity);
    if (count)
        memcpy(larger, items, bytes * (size_t)count);
    return larger;
}

static bool join_operand(Compiler *compiler, Node *node, int operand, Span span) {
    if (operand == NO_NODE)
        return true;
    const Node *other = at(compiler, operand);
    node->depends |= other->depends;
    if (other->vector < 0)
        return true;
    if (node->vector >= 0 && node->vector != other->vector) {
        diag_error(compiler->diag, span, "reference-shape", "this varies along two indices at once");
        return false;
    }
    node->vector = other->vector;
    return true;
}

int node_new(Compiler *compiler, Node node, Span span) {
    Program *program = compiler->program;
    if (program->node_count == MOST_NODES) {
        diag_error(compiler->diag, span, "reference-size", "the reference grows beyond %d operations",
                   MOST_NODES);
        return NO_NODE;
    }
    int operands[] = {node.a, node.b, node.c};
    for (int i = 0; i < 3 && node.kind != NODE_REDUCE; i++)
        if (!join_operand(compiler, &node, operands[i], span))
            return NO_NODE;
    for (int i = 0; i < REFERENCE_MAX_DIMS && node.kind == NODE_ELEMENT; i++)
        if (!join_operand(compiler, &node, node.at[i], span))
            return NO_NODE;
    while (node.depends >> node.innermost > 1)
        node.innermost++;
    program->nodes =
        grown(compiler, program->nodes, program->node_count, &program->node_capacity, sizeof *program->nodes);
    program->nodes[program->node_count] = node;
    return program->node_count++;
}

int variable_new(Compiler *compiler, const Variable *variable, Span span) {
    Program *program = compiler->program;
    if (program->var_count == MOST_VARIABLES) {
        diag_error(compiler->diag, span, "reference-size", "the reference has more than %d indices",
                   MOST_VARIABLES);
        return -1;
    }
    if (variable->depth == DEPTH_LIMIT) {
        diag_error(compiler->diag, span, "reference-size", "more than %d indices within each other",
                   DEPTH_LIMIT - DEPTH_FIRST);
        return -1;
    }
    program->vars =
        grown(compiler, program->vars, program->var_count, &program->var_capacity, sizeof *program->vars);
    program->vars[program->var_count] = *variable;
    return program->var_count++;
}

static Node blank(NodeKind kind, Elem type) {
    return (Node){.kind = kind, .type = type, .vector = -1, .a = NO_NODE, .b = NO_NODE, .c = NO_NODE};
}

static int constant(Compiler *compiler, Elem type, int32_t integer, double real, Span span) {
    Node node = blank(NODE_CONSTANT, type);
    node.integer = integer;
    node.real = real;
    return node_new(compiler, node, span);
}

int node_int(Compiler *compiler, int64_t value, Span span) {
    if (value >= INT32_MIN && value <= INT32_MAX)
        return constant(compiler, ELEM_I32, (int32_t)value, 0, span);
    diag_error(compiler->diag, span, "constant-range", "%lld does not fit in i32", (long long)value);
    return NO_NODE;
}

int node_real(Compiler *compiler, double value, Span span) {
    return constant(compiler, ELEM_F32, 0, value, span);
}

int node_bool(Compiler *compiler, bool value, Span span) {
    return constant(compiler, ELEM_BOOL, value, 0, span);
}

int node_index(Compiler *compiler, int var, Span span) {
    const Variable *variable = &compiler->program->vars[var];
    Node node = blank(NODE_INDEX, ELEM_I32);
    node.var = var;
    node.vector = variable->is_vector ? var : -1;
    // As a vector it is 0, 1, 2, ...: only its length can change.
    node.depends = 1ull << (variable->is_vector ? DEPTH_SEQUENCE : variable->depth);
    return node_new(compiler, node, span);
}

static bool is_constant(Compiler *compiler, int node) {
    return at(compiler, node)->kind == NODE_CONSTANT;
}

int node_cast(Compiler *compiler, int a, Elem type, Span span) {
    if (a == NO_NODE || at(compiler, a)->type == type)
        return a;
    const Node *from = at(compiler, a);
    if (from->type == ELEM_BOOL || type == ELEM_BOOL) {
        diag_error(compiler->diag, span, "type-mismatch", "%s where %s is needed",
                   from->type == ELEM_BOOL ? "a condition" : "a number",
                   type == ELEM_BOOL ? "a condition" : "a number");
        return NO_NODE;
    }
    if (is_constant(compiler, a) && type == ELEM_F32)
        return node_real(compiler, from->integer, span);
    Node node = blank(NODE_CAST, type);
    node.a = a;
    return node_new(compiler, node, span);
}

// ---------------------------------------------------------------- folding

static int32_t wrapped(int op, int32_t a, int32_t b) {
    uint32_t x = (uint32_t)a, y = (uint32_t)b;
    switch (op) {
    case '+':
        return (int32_t)(x + y);
    case '-':
        return (int32_t)(x - y);
    case '*':
        return (int32_t)(x * y);
    case '/':
        return b == -1 ? (int32_t)-x : a / b;
    case '%':
        return b == -1 ? 0 : a % b;
    case CALL_MIN:
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

static double real_result(int op, double a, double b) {
    switch (op) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '/':
        return a / b;
    case '%':
        return fmod(a, b);
    case CALL_MIN:
        return fmin(a, b);
    default:
        return fmax(a, b);
    }
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

static double call_result(int op, double a) {
    switch (op) {
    case '-':
        return -a;
    case CALL_EXP:
        return exp(a);
    case CALL_EXP2:
        return exp2(a);
    case CALL_LOG:
        return log(a);
    case CALL_LOG2:
        return log2(a);
    case CALL_SQRT:
        return sqrt(a);
    case CALL_RSQRT:
        return 1 / sqrt(a);
    case CALL_TANH:
        return tanh(a);
    case CALL_FLOOR:
        return floor(a);
    case CALL_SIN:
        return sin(a);
    case CALL_COS:
        return cos(a);
    default:
        return fabs(a);
    }
}

static bool is_comparison(int op) {
    return op == '<' || op == '>' || (op >= OP_EQ && op <= OP_GE);
}
static bool is_logical(int op) {
    return op == OP_AND || op == OP_OR;
}

static int fold_binary(Compiler *compiler, int op, const Node *a, const Node *b, Span span) {
    if (is_logical(op))
        return node_bool(compiler, op == OP_AND ? a->integer && b->integer : a->integer || b->integer, span);
    bool is_real = a->type == ELEM_F32;
    if (is_comparison(op))
        return node_bool(compiler,
                         compare(op, is_real ? a->real : a->integer, is_real ? b->real : b->integer), span);
    if (is_real)
        return node_real(compiler, real_result(op, a->real, b->real), span);
    return node_int(compiler, wrapped(op, a->integer, b->integer), span);
}

int node_unary(Compiler *compiler, int op, int a, Span span) {
    bool keeps_integers = op == '-' || op == CALL_ABS;
    if (a != NO_NODE && (!keeps_integers || at(compiler, a)->type == ELEM_BOOL))
        a = node_cast(compiler, a, op == '!' ? ELEM_BOOL : ELEM_F32, span);
    if (a == NO_NODE)
        return NO_NODE;
    const Node *operand = at(compiler, a);
    if (is_constant(compiler, a)) {
        if (op == '!')
            return node_bool(compiler, !operand->integer, span);
        if (operand->type == ELEM_F32)
            return node_real(compiler, call_result(op, operand->real), span);
        bool negates = op == '-' || operand->integer < 0;
        return node_int(compiler, negates ? wrapped('-', 0, operand->integer) : operand->integer, span);
    }
    Node node = blank(NODE_UNARY, operand->type);
    node.op = op;
    node.a = a;
    return node_new(compiler, node, span);
}

int node_binary(Compiler *compiler, int op, int a, int b, Span span) {
    if (a == NO_NODE || b == NO_NODE)
        return NO_NODE;
    Elem left = at(compiler, a)->type, right = at(compiler, b)->type;
    Elem type = is_logical(op) ? ELEM_BOOL : left == ELEM_F32 || right == ELEM_F32 ? ELEM_F32 : left;
    a = node_cast(compiler, a, type, span);
    b = node_cast(compiler, b, type, span);
    if (a == NO_NODE || b == NO_NODE)
        return NO_NODE;
    if (type == ELEM_BOOL && !is_logical(op) && op != OP_EQ && op != OP_NE) {
        diag_error(compiler->diag, span, "type-mismatch", "'%s' needs numbers, not conditions",
                   ast_op_text(op));
        return NO_NODE;
    }
    if (type == ELEM_I32 && (op == '/' || op == '%') && is_constant(compiler, b) &&
        at(compiler, b)->integer == 0) {
        diag_error(compiler->diag, span, "division-by-zero", "an integer is divided by the constant 0");
        return NO_NODE;
    }
    if (is_constant(compiler, a) && is_constant(compiler, b)) {
        Node first = *at(compiler, a), second = *at(compiler, b);
        return fold_binary(compiler, op, &first, &second, span);
    }
    Node node = blank(NODE_BINARY, is_comparison(op) ? ELEM_BOOL : type);
    node.op = op;
    node.a = a;
    node.b = b;
    return node_new(compiler, node, span);
}

int node_choice(Compiler *compiler, int condition, int a, int b, Span span) {
    condition = node_cast(compiler, condition, ELEM_BOOL, span);
    if (condition == NO_NODE || a == NO_NODE || b == NO_NODE)
        return NO_NODE;
    Elem left = at(compiler, a)->type, right = at(compiler, b)->type;
    Elem type = left == ELEM_F32 || right == ELEM_F32 ? ELEM_F32 : left;
    a = node_cast(compiler, a, type, span);
    b = node_cast(compiler, b, type, span);
    if (a == NO_NODE || b == NO_NODE)
        return NO_NODE;
    if (is_constant(compiler, condition))
        return at(compiler, condition)->integer ? a : b;
    Node node = blank(NODE_CHOICE, type);
    node.a = condition;
    node.b = a;
    node.c = b;
    return node_new(compiler, node, span);
}
