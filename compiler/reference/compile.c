// compile.c: expressions of a reference to nodes. Functions and hooks are expanded in place, with the
// kernel's math where it has some.
#include "compiler/reference/compiler.h"

#include <math.h>
#include <string.h>

// Recursion runs over the tree, and over what functions and constants expand to; both are bounded.
enum { DEEPEST = 500, MOST_WORK = 200000, MOST_ARGUMENTS = 32 };

static const Node *at(Compiler *compiler, int node) {
    return &compiler->program->nodes[node];
}

static int list_length(const Ast *list) {
    int count = 0;
    for (; list; list = list->next)
        count++;
    return count;
}

const Binding *bind_name(Compiler *compiler, const Binding *names, const char *name, int node) {
    Binding *binding = arena_new_of(compiler->arena, Binding);
    *binding = (Binding){.name = name, .node = node, .next = names};
    return binding;
}

int compile_binder(Compiler *compiler, const Context *context, const Ast *bind, bool is_vector) {
    Variable variable = {.depth = context->depth, .axis = -1, .is_vector = is_vector};
    if (bind->a->kind == AST_NAME && !find_binding(context, bind->a->name))
        variable.axis = find_axis(compiler, bind->a->name);
    if (variable.axis < 0) {
        int size = compile_expression(compiler, context, bind->a);
        if (size == NO_NODE)
            return -1;
        const Node *extent = at(compiler, size);
        if (extent->kind != NODE_CONSTANT || extent->type != ELEM_I32 || extent->integer < 0) {
            diag_error(compiler->diag, bind->a->span, "reference-shape",
                       "an index runs over an axis, a dim or an integer constant");
            return -1;
        }
        variable.size = extent->integer;
    }
    return variable_new(compiler, &variable, bind->span);
}

// ---------------------------------------------------------------- elements

// The positions of an element; false: reported.
static bool compile_positions(Compiler *compiler, const Context *context, const Ast *ast, int rank,
                              int *positions) {
    if (list_length(ast->list) != rank) {
        diag_error(compiler->diag, ast->span, "shape-mismatch", "tensor '%s' has %d dims, but %d are given",
                   ast->a->name, rank, list_length(ast->list));
        return false;
    }
    int i = 0;
    for (const Ast *position = ast->list; position; position = position->next, i++) {
        positions[i] = compile_expression(compiler, context, position);
        if (positions[i] == NO_NODE)
            return false;
        if (at(compiler, positions[i])->type != ELEM_I32) {
            diag_error(compiler->diag, position->span, "type-mismatch", "a position must be an integer");
            return false;
        }
    }
    return true;
}

int compile_element(Compiler *compiler, const Context *context, const Ast *ast, int index) {
    ProgramTensor *tensor = &compiler->program->tensors[index];
    int rank = tensor->given->rank, vectors = 0;
    if (tensor->direction == TENSOR_OUT || !tensor->given->data) {
        DiagItem *error = diag_error(compiler->diag, ast->span, "write-only", "tensor '%s' %s", ast->a->name,
                                     tensor->direction == TENSOR_OUT ? "is an output; it can't be read"
                                                                     : "is read, but was not given");
        diag_note(error, tensor->ast->span, "declared here");
        return NO_NODE;
    }
    Node node = {.kind = NODE_ELEMENT,
                 .vector = -1,
                 .depends = 1ull << DEPTH_SEQUENCE,
                 .a = NO_NODE,
                 .b = NO_NODE,
                 .c = NO_NODE,
                 .tensor = index,
                 .unit_dim = -1};
    for (int i = 0; i < REFERENCE_MAX_DIMS; i++)
        node.at[i] = NO_NODE;
    if (!compile_positions(compiler, context, ast, rank, node.at))
        return NO_NODE;
    for (int i = 0; i < rank; i++) {
        const Node *position = at(compiler, node.at[i]);
        if (position->vector < 0)
            continue;
        node.unit_dim = position->kind == NODE_INDEX && !vectors ? i : -1;
        vectors++;
    }
    tensor->inner[node.unit_dim >= 0 ? node.unit_dim : rank - 1] = true;
    node.type = tensor->elem == ELEM_I32 ? ELEM_I32 : ELEM_F32;
    return node_new(compiler, node, ast->span);
}

// name[index] where name is a vector bound by let.
static int compile_item(Compiler *compiler, const Context *context, const Ast *ast, const Binding *binding) {
    if (!binding->is_vector_let || list_length(ast->list) != 1) {
        diag_error(compiler->diag, ast->span, "reference-shape", "'%s' takes %s", binding->name,
                   binding->is_vector_let ? "one index" : "no index; it is one value");
        return NO_NODE;
    }
    int position = compile_expression(compiler, context, ast->list);
    if (position == NO_NODE)
        return NO_NODE;
    if (at(compiler, position)->type != ELEM_I32) {
        diag_error(compiler->diag, ast->list->span, "type-mismatch", "a position must be an integer");
        return NO_NODE;
    }
    const Node *value = at(compiler, binding->node);
    if (value->vector < 0) // the same for every index
        return binding->node;
    Node node = {.kind = NODE_ITEM,
                 .type = value->type,
                 .vector = -1,
                 .depends = value->depends,
                 .a = position,
                 .b = NO_NODE,
                 .c = NO_NODE,
                 .source = binding->node};
    return node_new(compiler, node, ast->span);
}

static int compile_index(Compiler *compiler, const Context *context, const Ast *ast) {
    if (ast->a->kind != AST_NAME) {
        diag_error(compiler->diag, ast->span, "not-indexable", "only tensors and vectors take an index");
        return NO_NODE;
    }
    const Binding *binding = find_binding(context, ast->a->name);
    if (binding)
        return compile_item(compiler, context, ast, binding);
    int tensor = find_tensor(compiler, context, ast->a->name);
    if (tensor >= 0)
        return compile_element(compiler, context, ast, tensor);
    if (find_item(compiler->problem->family->list, AST_TENSOR, ast->a->name))
        diag_error(compiler->diag, ast->span, "tensor-missing", "tensor '%s' is read, but was not given",
                   ast->a->name);
    else
        unknown_name(compiler, context, ast->a->name, ast->a->span, "tensor");
    return NO_NODE;
}

// ---------------------------------------------------------------- calls

static int expand(Compiler *compiler, const Context *context, const Ast *parameters, const Ast *body,
                  const int *arguments, ScopeKind scope) {
    const Binding *names = NULL;
    for (const Ast *parameter = parameters; parameter; parameter = parameter->next)
        names = bind_name(compiler, names, parameter->name, *arguments++);
    const Context inside = {
        .names = names, .scope = scope, .vector = context->vector, .depth = context->depth};
    return compile_expression(compiler, &inside, body);
}

// A kernel's math names the parameters that it needs, in any order. False: reported.
static bool choose_arguments(Compiler *compiler, const Ast *hook, const Ast *math, const int *arguments,
                             int *chosen) {
    int count = 0;
    for (const Ast *own = math->list; own; own = own->next, count++) {
        int i = 0;
        const Ast *formal = hook->list;
        for (; formal && strcmp(formal->name, own->name); formal = formal->next)
            i++;
        if (!formal || count == MOST_ARGUMENTS) {
            DiagItem *error = diag_error(compiler->diag, own->span, "unknown-parameter",
                                         "hook '%s' has no parameter '%s'", hook->name, own->name);
            diag_note(error, hook->span, "declared here; name any of these, in any order");
            return false;
        }
        chosen[count] = arguments[i];
    }
    return true;
}

static int call_hook(Compiler *compiler, const Context *context, const Ast *hook, const int *arguments,
                     Span span) {
    const Ast *math =
        compiler->problem->kernel ? find_item(compiler->problem->kernel->list, AST_MATH, hook->name) : NULL;
    int chosen[MOST_ARGUMENTS];
    if (math && !choose_arguments(compiler, hook, math, arguments, chosen))
        return NO_NODE;
    int value = math ? expand(compiler, context, math->list, math->a, chosen, SCOPE_KERNEL)
                     : expand(compiler, context, hook->list, hook->a, arguments, SCOPE_FAMILY);
    bool is_condition = !strcmp(hook->name2, "bool"), is_integer = !strcmp(hook->name2, "i32");
    return node_cast(compiler, value, is_condition ? ELEM_BOOL : is_integer ? ELEM_I32 : ELEM_F32, span);
}

static bool has_count(Compiler *compiler, const Ast *call, int wanted) {
    int given = list_length(call->list);
    if (given == wanted && given <= MOST_ARGUMENTS)
        return true;
    diag_error(compiler->diag, call->span, "argument-count", "'%s' takes %d argument%s, not %d",
               call->a->name, wanted, wanted == 1 ? "" : "s", given);
    return false;
}

static bool compile_arguments(Compiler *compiler, const Context *context, const Ast *call, int *arguments) {
    for (const Ast *argument = call->list; argument; argument = argument->next)
        if ((*arguments++ = compile_expression(compiler, context, argument)) == NO_NODE)
            return false;
    return true;
}

static int call_rounded(Compiler *compiler, const Context *context, const Ast *call) {
    Elem elem;
    if (!has_count(compiler, call, 2))
        return NO_NODE;
    const Ast *type = call->list->next;
    if (type->kind != AST_NAME) {
        diag_error(compiler->diag, type->span, "unknown-type", "rounded(value, type) needs a type here");
        return NO_NODE;
    }
    if (!find_type(compiler, type->name, type->span, &elem))
        return NO_NODE;
    if (!elem_is_float(elem)) {
        diag_error(compiler->diag, type->span, "type-mismatch", "rounded() needs a type of floats, not %s",
                   elem_name(elem));
        return NO_NODE;
    }
    int value = node_cast(compiler, compile_expression(compiler, context, call->list), ELEM_F32, call->span);
    Node node = {.kind = NODE_ROUND,
                 .type = ELEM_F32,
                 .vector = -1,
                 .a = value,
                 .b = NO_NODE,
                 .c = NO_NODE,
                 .elem = elem};
    return value == NO_NODE ? NO_NODE : node_new(compiler, node, call->span);
}

static const struct {
    const char *name;
    int op, arguments;
} CALLS[] = {
    {"exp", CALL_EXP, 1},   {"exp2", CALL_EXP2, 1},   {"log", CALL_LOG, 1},   {"log2", CALL_LOG2, 1},
    {"sqrt", CALL_SQRT, 1}, {"rsqrt", CALL_RSQRT, 1}, {"tanh", CALL_TANH, 1}, {"floor", CALL_FLOOR, 1},
    {"sin", CALL_SIN, 1},   {"cos", CALL_COS, 1},     {"abs", CALL_ABS, 1},   {"min", CALL_MIN, 2},
    {"max", CALL_MAX, 2},
};

static int call_builtin(Compiler *compiler, const Context *context, const Ast *call) {
    const char *name = call->a->name;
    int arguments[MOST_ARGUMENTS] = {0};
    for (size_t i = 0; i < sizeof CALLS / sizeof CALLS[0]; i++) {
        if (strcmp(CALLS[i].name, name))
            continue;
        if (!has_count(compiler, call, CALLS[i].arguments) ||
            !compile_arguments(compiler, context, call, arguments))
            return NO_NODE;
        return CALLS[i].arguments == 1
                   ? node_unary(compiler, CALLS[i].op, arguments[0], call->span)
                   : node_binary(compiler, CALLS[i].op, arguments[0], arguments[1], call->span);
    }
    if (!strcmp(name, "f32") || !strcmp(name, "i32")) {
        if (!has_count(compiler, call, 1) || !compile_arguments(compiler, context, call, arguments))
            return NO_NODE;
        return node_cast(compiler, arguments[0], name[0] == 'f' ? ELEM_F32 : ELEM_I32, call->span);
    }
    if (!strcmp(name, "within")) {
        DiagItem *error = diag_error(compiler->diag, call->span, "misplaced",
                                     "within(value, error) is no value: it says how a result is compared");
        diag_help(error, "store it: T[...] = within(value, error);");
        return NO_NODE;
    }
    unknown_name(compiler, context, name, call->a->span, "function or hook");
    return NO_NODE;
}

static int compile_call(Compiler *compiler, const Context *context, const Ast *call) {
    int arguments[MOST_ARGUMENTS];
    ScopeKind scope;
    if (call->a->kind != AST_NAME) {
        diag_error(compiler->diag, call->a->span, "not-callable", "this can't be called");
        return NO_NODE;
    }
    if (!strcmp(call->a->name, "rounded"))
        return call_rounded(compiler, context, call);
    const Ast *callee = find_callable(compiler, context, call->a->name, &scope);
    if (!callee)
        return call_builtin(compiler, context, call);
    if (!has_count(compiler, call, list_length(callee->list)) ||
        !compile_arguments(compiler, context, call, arguments))
        return NO_NODE;
    if (callee->kind == AST_HOOK)
        return call_hook(compiler, context, callee, arguments, call->span);
    return expand(compiler, context, callee->list, callee->a, arguments, scope);
}

// ---------------------------------------------------------------- reductions

// The dim of an element's tensor that `var` alone chooses, when nothing else of the element changes with it;
// or -1.
static int dim_chosen_by(Compiler *compiler, int element, int var) {
    const Node *node = at(compiler, element);
    int dim = -1, depth = compiler->program->vars[var].depth;
    if (node->kind != NODE_ELEMENT || node->type != ELEM_F32 || node->unit_dim < 0)
        return -1;
    for (int i = 0; i < compiler->program->tensors[node->tensor].given->rank; i++) {
        const Node *position = at(compiler, node->at[i]);
        if (!(position->depends >> depth & 1))
            continue;
        if (dim >= 0 || position->kind != NODE_INDEX)
            return -1;
        dim = i;
    }
    return dim;
}

static int compile_over(Compiler *compiler, const Context *context, const Ast *reduce, const Ast *body,
                        int var) {
    int position = node_index(compiler, var, reduce->list->span);
    if (position == NO_NODE)
        return NO_NODE;
    const Context inside = {.names = bind_name(compiler, context->names, reduce->list->name, position),
                            .scope = context->scope,
                            .vector = compiler->program->vars[var].is_vector ? var : context->vector,
                            .depth = context->depth + 1};
    return compile_expression(compiler, &inside, body);
}

// Under a vector index, a sum of factor * matrix element, the factor the same for the whole vector: remembers
// the form in `node`, with the factors of all rows compiled as one vector. False: reported.
static bool find_matrix(Compiler *compiler, const Context *context, const Ast *reduce, Node *node) {
    const Node *body = at(compiler, node->a);
    if (reduce->a->kind != AST_BINARY || reduce->a->op != '*' || body->kind != NODE_BINARY ||
        body->op != '*' || body->type != ELEM_F32)
        return true;
    bool is_left = at(compiler, body->a)->vector >= 0;
    int matrix = is_left ? body->a : body->b, other = is_left ? body->b : body->a;
    int dim = dim_chosen_by(compiler, matrix, node->var);
    if (dim < 0 || at(compiler, other)->vector >= 0)
        return true;
    Variable along = compiler->program->vars[node->var];
    along.is_vector = true;
    int var = variable_new(compiler, &along, reduce->span);
    if (var < 0)
        return false;
    node->factor = node_cast(
        compiler, compile_over(compiler, context, reduce, is_left ? reduce->a->b : reduce->a->a, var),
        ELEM_F32, reduce->span);
    node->matrix = matrix;
    node->row_dim = dim;
    return node->factor != NO_NODE;
}

static int reduce_node(Compiler *compiler, const Context *context, const Ast *ast, ReduceKind kind,
                       bool is_vector) {
    int var = compile_binder(compiler, context, ast->list, is_vector);
    if (var < 0)
        return NO_NODE;
    int body = compile_over(compiler, context, ast, ast->a, var);
    if (body != NO_NODE && (kind != REDUCE_SUM || at(compiler, body)->type == ELEM_BOOL))
        body = node_cast(compiler, body, ELEM_F32, ast->a->span);
    if (body == NO_NODE)
        return NO_NODE;
    // Under another vector's index and yet the same along it: one value, computed as a vector over its own
    // index.
    if (!is_vector && at(compiler, body)->vector < 0)
        return reduce_node(compiler, context, ast, kind, true);
    Node node = {.kind = NODE_REDUCE,
                 .type = at(compiler, body)->type,
                 .vector = -1,
                 .a = body,
                 .b = NO_NODE,
                 .c = NO_NODE,
                 .var = var,
                 .op = (int)kind,
                 .factor = NO_NODE,
                 .matrix = NO_NODE};
    // Not on its own index, which runs inside of it; on the sequence for how far that runs.
    node.depends = (at(compiler, body)->depends & ~(1ull << context->depth)) | 1ull << DEPTH_SEQUENCE;
    if (!is_vector) {
        node.vector = at(compiler, body)->vector;
        if (kind == REDUCE_SUM && !find_matrix(compiler, context, ast, &node))
            return NO_NODE;
    }
    return node_new(compiler, node, ast->span);
}

static int compile_reduce(Compiler *compiler, const Context *context, const Ast *ast) {
    static const struct {
        const char *name;
        ReduceKind kind;
    } REDUCTIONS[] = {{"sum", REDUCE_SUM}, {"max", REDUCE_MAX}, {"min", REDUCE_MIN}};
    for (size_t i = 0; i < sizeof REDUCTIONS / sizeof REDUCTIONS[0]; i++)
        if (ast->name && !strcmp(REDUCTIONS[i].name, ast->name))
            return reduce_node(compiler, context, ast, REDUCTIONS[i].kind, context->vector < 0);
    diag_error(compiler->diag, ast->span, "unknown-name", "a reduction is sum, max or min, not '%s'",
               ast->name ? ast->name : "");
    return NO_NODE;
}

// ---------------------------------------------------------------- expressions

static int compile_binary(Compiler *compiler, const Context *context, const Ast *ast) {
    if (ast->op == '@') {
        diag_error(compiler->diag, ast->span, "product-place",
                   "a reference has no '@'; write sum(i in axis : a * b)");
        return NO_NODE;
    }
    int a = compile_expression(compiler, context, ast->a);
    int b = a == NO_NODE ? NO_NODE : compile_expression(compiler, context, ast->b);
    return node_binary(compiler, ast->op, a, b, ast->span);
}

static int compile_choice(Compiler *compiler, const Context *context, const Ast *ast) {
    int condition = compile_expression(compiler, context, ast->a);
    int a = condition == NO_NODE ? NO_NODE : compile_expression(compiler, context, ast->b);
    int b = a == NO_NODE ? NO_NODE : compile_expression(compiler, context, ast->c);
    return node_choice(compiler, condition, a, b, ast->span);
}

static int compile_kind(Compiler *compiler, const Context *context, const Ast *ast) {
    switch (ast->kind) {
    case AST_INT:
        return node_int(compiler, ast->integer, ast->span);
    case AST_FLOAT:
        return node_real(compiler, ast->real, ast->span);
    case AST_BOOL:
        return node_bool(compiler, ast->integer != 0, ast->span);
    case AST_INF:
        return node_real(compiler, INFINITY, ast->span);
    case AST_NAME:
        return name_value(compiler, context, ast);
    case AST_UNARY:
        return node_unary(compiler, ast->op, compile_expression(compiler, context, ast->a), ast->span);
    case AST_BINARY:
        return compile_binary(compiler, context, ast);
    case AST_CHOICE:
        return compile_choice(compiler, context, ast);
    case AST_CALL:
        return compile_call(compiler, context, ast);
    case AST_INDEX:
        return compile_index(compiler, context, ast);
    case AST_REDUCE:
        return compile_reduce(compiler, context, ast);
    default:
        diag_error(compiler->diag, ast->span, "not-a-value", "this can't stand in a reference");
        return NO_NODE;
    }
}

int compile_expression(Compiler *compiler, const Context *context, const Ast *ast) {
    if (compiler->nesting == DEEPEST || compiler->work == MOST_WORK) {
        diag_error(compiler->diag, ast->span, "reference-size",
                   compiler->nesting == DEEPEST
                       ? "this is nested too deeply; does a function or a constant use itself?"
                       : "what this expands to is too large");
        return NO_NODE;
    }
    compiler->nesting++;
    compiler->work++;
    int node = compile_kind(compiler, context, ast);
    compiler->nesting--;
    return node;
}
