// compile.c: expressions of a reference, a hook or a function to nodes. Takes trees that sema may not have
// seen: every mistake is a message, never a crash.
#include "compiler/reference/compiler.h"

#include <math.h>
#include <string.h>

enum { MOST_NESTING = 200, MOST_WORK = 100000, MOST_ARGUMENTS = 32 };

static Node *at(Compiler *compiler, int node) {
    return &compiler->program->nodes[node];
}

const Binding *bind_name(Compiler *compiler, const Binding *names, const char *name, int node) {
    Binding *binding = arena_new_of(compiler->arena, Binding);
    binding->name = name;
    binding->node = node;
    binding->next = names;
    return binding;
}

// `i in axis` or `i in N`: a new index.
int compile_binder(Compiler *compiler, const Context *context, const Ast *bind, bool is_vector) {
    Variable variable = {.depth = context->depth, .axis = -1, .is_vector = is_vector};
    if (bind->a->kind == AST_NAME && !find_binding(context, bind->a->name))
        variable.axis = find_axis(compiler, bind->a->name);
    if (variable.axis < 0) {
        int size = compile_expression(compiler, context, bind->a);
        if (size == NO_NODE)
            return -1;
        const Node *node = at(compiler, size);
        if (node->kind != NODE_CONSTANT || node->type != ELEM_I32 || node->integer < 0) {
            diag_error(compiler->diag, bind->a->span, "not-constant",
                       "an index runs over an axis, a dim or a constant");
            return -1;
        }
        variable.size = node->integer;
    }
    return variable_new(compiler, &variable, bind->span);
}

// ---------------------------------------------------------------- elements

int compile_element(Compiler *compiler, const Context *context, const Ast *ast, int tensor) {
    ProgramTensor *info = &compiler->program->tensors[tensor];
    Node node = {.kind = NODE_ELEMENT,
                 .type = info->elem == ELEM_I32 ? ELEM_I32 : ELEM_F32,
                 .vector = -1,
                 .depends = 1u << DEPTH_SEQUENCE,
                 .a = NO_NODE,
                 .b = NO_NODE,
                 .c = NO_NODE,
                 .tensor = tensor,
                 .unit_dim = -1};
    for (int i = 0; i < REFERENCE_MAX_DIMS; i++)
        node.at[i] = NO_NODE;
    int rank = 0, vectors = 0, unit = -1;
    for (const Ast *index = ast->list; index; index = index->next, rank++) {
        if (rank == info->given->rank || index->kind == AST_BIND)
            break;
        int position = compile_expression(compiler, context, index);
        if (position == NO_NODE)
            return NO_NODE;
        if (at(compiler, position)->type != ELEM_I32) {
            diag_error(compiler->diag, index->span, "type-mismatch", "a position must be a whole number");
            return NO_NODE;
        }
        node.at[rank] = position;
        vectors += at(compiler, position)->vector >= 0;
        if (at(compiler, position)->kind == NODE_INDEX && at(compiler, position)->vector >= 0)
            unit = rank;
    }
    if (rank != info->given->rank || (ast->list && rank < info->given->rank)) {
        diag_error(compiler->diag, ast->span, "shape-mismatch", "tensor '%s' has %d dims, but %d are given",
                   info->given->name, info->given->rank, rank);
        return NO_NODE;
    }
    if (!info->given->data && info->direction != TENSOR_OUT) {
        diag_error(compiler->diag, ast->span, "reference-problem", "tensor '%s' is read, but not given",
                   info->given->name);
        return NO_NODE;
    }
    if (info->direction == TENSOR_OUT) {
        diag_error(compiler->diag, ast->span, "write-only", "tensor '%s' is an output; it can't be read",
                   info->given->name);
        return NO_NODE;
    }
    info->is_read = true;
    if (vectors == 1 && unit >= 0)
        node.unit_dim = unit;
    info->inner[node.unit_dim >= 0 ? node.unit_dim : info->given->rank - 1] = true;
    return node_new(compiler, node, ast->span);
}

static int compile_index(Compiler *compiler, const Context *context, const Ast *ast) {
    if (ast->a->kind == AST_NAME) {
        const Binding *binding = find_binding(context, ast->a->name);
        if (binding && binding->is_vector_let) {
            if (!ast->list || ast->list->next || ast->list->kind == AST_BIND) {
                diag_error(compiler->diag, ast->span, "reference-shape", "'%s' takes one index",
                           ast->a->name);
                return NO_NODE;
            }
            int index = compile_expression(compiler, context, ast->list);
            if (index == NO_NODE)
                return NO_NODE;
            if (at(compiler, index)->type != ELEM_I32) {
                diag_error(compiler->diag, ast->list->span, "type-mismatch",
                           "an index must be a whole number");
                return NO_NODE;
            }
            Node node = {.kind = NODE_ITEM,
                         .type = at(compiler, binding->node)->type,
                         .vector = -1,
                         .a = binding->node,
                         .b = index,
                         .c = NO_NODE};
            return node_new(compiler, node, ast->span);
        }
        int tensor = binding ? -1 : find_tensor(compiler, context, ast->a->name);
        if (tensor >= 0)
            return compile_element(compiler, context, ast, tensor);
        if (!binding) {
            unknown_name(compiler, context, ast->a->name, ast->a->span, "tensor or vector");
            return NO_NODE;
        }
    }
    diag_error(compiler->diag, ast->span, "not-indexable", "only tensors and vectors take an index");
    return NO_NODE;
}

// ---------------------------------------------------------------- reductions

static int compile_reduction(Compiler *compiler, const Context *context, const Ast *ast) {
    static const char *const NAMES[] = {[REDUCE_SUM] = "sum", [REDUCE_MAX] = "max", [REDUCE_MIN] = "min"};
    int op = -1;
    for (int i = REDUCE_SUM; i <= REDUCE_MIN; i++)
        if (ast->name && !strcmp(ast->name, NAMES[i]))
            op = i;
    if (op < 0) {
        diag_error(compiler->diag, ast->span, "unknown-name", "a reduction is sum, max or min");
        return NO_NODE;
    }
    int var = compile_binder(compiler, context, ast->list, false);
    if (var < 0)
        return NO_NODE;
    Context inner = *context;
    inner.depth++;
    inner.names =
        bind_name(compiler, context->names, ast->list->name, node_index(compiler, var, ast->list->span));
    int body = node_cast(compiler, compile_expression(compiler, &inner, ast->a), ELEM_F32, ast->a->span);
    if (body == NO_NODE)
        return NO_NODE;
    // Not on its own index, which runs out in it; on the sequence if that sets how far it runs.
    uint64_t depends = at(compiler, body)->depends & ~(1ull << compiler->program->vars[var].depth);
    if (compiler->program->vars[var].axis >= 0)
        depends |= 1ull << DEPTH_SEQUENCE;
    Node node = {.kind = NODE_REDUCE,
                 .type = ELEM_F32,
                 .vector = at(compiler, body)->vector,
                 .op = op,
                 .var = var,
                 .a = body,
                 .b = NO_NODE,
                 .c = NO_NODE,
                 .depends = depends};
    return node_new(compiler, node, ast->span);
}

// ---------------------------------------------------------------- calls

static const struct {
    const char *name;
    int op, args;
} BUILTINS[] = {
    {"exp", CALL_EXP, 1},   {"exp2", CALL_EXP2, 1},   {"log", CALL_LOG, 1},   {"log2", CALL_LOG2, 1},
    {"sqrt", CALL_SQRT, 1}, {"rsqrt", CALL_RSQRT, 1}, {"tanh", CALL_TANH, 1}, {"floor", CALL_FLOOR, 1},
    {"sin", CALL_SIN, 1},   {"cos", CALL_COS, 1},     {"abs", CALL_ABS, 1},   {"min", CALL_MIN, 2},
    {"max", CALL_MAX, 2},
};

static int count(const Ast *list) {
    int items = 0;
    for (; list; list = list->next)
        items++;
    return items;
}

static bool has_arguments(Compiler *compiler, const Ast *call, const char *name, int wanted) {
    if (count(call->list) == wanted)
        return true;
    diag_error(compiler->diag, call->span, "argument-count", "'%s' takes %d argument%s, not %d", name, wanted,
               wanted == 1 ? "" : "s", count(call->list));
    return false;
}

static int expand(Compiler *compiler, const Context *context, ScopeKind scope, const Ast *parameters,
                  const Ast *body, const int *args) {
    Context inner = {.scope = scope, .vector = context->vector, .depth = context->depth};
    int i = 0;
    for (const Ast *parameter = parameters; parameter; parameter = parameter->next, i++)
        inner.names = bind_name(compiler, inner.names, parameter->name, args[i]);
    return compile_expression(compiler, &inner, body);
}

// The kernel's own math names the parameters that it needs, in any order.
static int call_hook(Compiler *compiler, const Context *context, const Ast *hook, const int *args,
                     Span span) {
    const Ast *math =
        compiler->problem->kernel ? find_item(compiler->problem->kernel->list, AST_MATH, hook->name) : NULL;
    int value;
    if (!math) {
        value = expand(compiler, context, SCOPE_FAMILY, hook->list, hook->a, args);
    } else {
        int chosen[MOST_ARGUMENTS], i = 0;
        for (const Ast *own = math->list; own && i < MOST_ARGUMENTS; own = own->next, i++) {
            chosen[i] = NO_NODE;
            int k = 0;
            for (const Ast *formal = hook->list; formal; formal = formal->next, k++)
                if (!strcmp(formal->name, own->name))
                    chosen[i] = args[k];
            if (chosen[i] == NO_NODE) {
                diag_error(compiler->diag, own->span, "unknown-parameter", "hook '%s' has no parameter '%s'",
                           hook->name, own->name);
                return NO_NODE;
            }
        }
        value = expand(compiler, context, SCOPE_KERNEL, math->list, math->a, chosen);
    }
    Elem type = !strcmp(hook->name2, "bool") ? ELEM_BOOL : !strcmp(hook->name2, "i32") ? ELEM_I32 : ELEM_F32;
    if (value != NO_NODE && type == ELEM_I32 && at(compiler, value)->type == ELEM_F32) {
        Node cast = {
            .kind = NODE_CAST, .type = ELEM_I32, .vector = -1, .a = value, .b = NO_NODE, .c = NO_NODE};
        return node_new(compiler, cast, span);
    }
    return node_cast(compiler, value, type, span);
}

static int compile_rounded(Compiler *compiler, const Context *context, const Ast *ast) {
    const Ast *type = ast->list ? ast->list->next : NULL;
    Node node = {.kind = NODE_ROUND, .type = ELEM_F32, .vector = -1, .b = NO_NODE, .c = NO_NODE};
    if (!has_arguments(compiler, ast, "rounded", 2))
        return NO_NODE;
    if (type->kind != AST_NAME) {
        diag_error(compiler->diag, type->span, "unknown-type",
                   "rounded(value, type) needs the name of a type");
        return NO_NODE;
    }
    if (!find_type(compiler, type->name, type->span, &node.elem))
        return NO_NODE;
    node.a = node_cast(compiler, compile_expression(compiler, context, ast->list), ELEM_F32, ast->span);
    return node.a == NO_NODE ? NO_NODE : node_new(compiler, node, ast->span);
}

static int convert(Compiler *compiler, int value, Elem type, Span span) {
    if (value == NO_NODE || at(compiler, value)->type == type || type == ELEM_F32)
        return node_cast(compiler, value, type, span);
    if (at(compiler, value)->type == ELEM_BOOL)
        return node_cast(compiler, value, type, span);
    Node cast = {.kind = NODE_CAST, .type = type, .vector = -1, .a = value, .b = NO_NODE, .c = NO_NODE};
    return node_new(compiler, cast, span);
}

static int compile_call(Compiler *compiler, const Context *context, const Ast *ast) {
    if (ast->a->kind != AST_NAME) {
        diag_error(compiler->diag, ast->a->span, "not-callable", "this can't be called");
        return NO_NODE;
    }
    const char *name = ast->a->name;
    ScopeKind scope;
    const Ast *callee = find_callable(compiler, context, name, &scope);
    if (!callee && !strcmp(name, "rounded"))
        return compile_rounded(compiler, context, ast);
    int args[MOST_ARGUMENTS], given = 0;
    for (const Ast *argument = ast->list; argument; argument = argument->next) {
        if (given == MOST_ARGUMENTS || argument->kind == AST_BIND) {
            diag_error(compiler->diag, argument->span, "argument-count",
                       "this can't stand as an argument here");
            return NO_NODE;
        }
        args[given] = compile_expression(compiler, context, argument);
        if (args[given++] == NO_NODE)
            return NO_NODE;
    }
    if (callee) {
        if (!has_arguments(compiler, ast, name, count(callee->list)))
            return NO_NODE;
        return callee->kind == AST_HOOK ? call_hook(compiler, context, callee, args, ast->span)
                                        : expand(compiler, context, scope, callee->list, callee->a, args);
    }
    for (size_t i = 0; i < sizeof BUILTINS / sizeof BUILTINS[0]; i++)
        if (!strcmp(BUILTINS[i].name, name)) {
            if (!has_arguments(compiler, ast, name, BUILTINS[i].args))
                return NO_NODE;
            return BUILTINS[i].args == 1 ? node_unary(compiler, BUILTINS[i].op, args[0], ast->span)
                                         : node_binary(compiler, BUILTINS[i].op, args[0], args[1], ast->span);
        }
    if (!strcmp(name, "f32") || !strcmp(name, "i32"))
        return has_arguments(compiler, ast, name, 1)
                   ? convert(compiler, args[0], name[0] == 'f' ? ELEM_F32 : ELEM_I32, ast->span)
                   : NO_NODE;
    unknown_name(compiler, context, name, ast->a->span, "function or hook");
    return NO_NODE;
}

// ---------------------------------------------------------------- expressions

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
    case AST_BINARY: {
        if (ast->op == '@') {
            diag_error(compiler->diag, ast->span, "reference-shape",
                       "write products in a reference as sums: sum(d in D : a[d] * b[d])");
            return NO_NODE;
        }
        int a = compile_expression(compiler, context, ast->a),
            b = compile_expression(compiler, context, ast->b);
        return node_binary(compiler, ast->op, a, b, ast->span);
    }
    case AST_CHOICE: {
        int condition = compile_expression(compiler, context, ast->a),
            a = compile_expression(compiler, context, ast->b);
        return node_choice(compiler, condition, a, compile_expression(compiler, context, ast->c), ast->span);
    }
    case AST_CALL:
        return compile_call(compiler, context, ast);
    case AST_INDEX:
        return compile_index(compiler, context, ast);
    case AST_REDUCE:
        return compile_reduction(compiler, context, ast);
    default:
        diag_error(compiler->diag, ast->span, "not-a-value", "this is not a value in a reference");
        return NO_NODE;
    }
}

int compile_expression(Compiler *compiler, const Context *context, const Ast *ast) {
    if (compiler->nesting == MOST_NESTING || compiler->work++ == MOST_WORK) {
        diag_error(compiler->diag, ast->span, "reference-size",
                   "the reference is nested too deeply, or calls itself");
        return NO_NODE;
    }
    compiler->nesting++;
    int node = compile_kind(compiler, context, ast);
    compiler->nesting--;
    return node;
}
