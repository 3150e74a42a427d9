// names.c: what a name means in a reference, a hook or a function.
#include "compiler/reference/compiler.h"

#include <math.h>
#include <string.h>

const Ast *find_item(const Ast *list, AstKind kind, const char *name) {
    for (; list; list = list->next)
        if (list->kind == kind && !strcmp(list->name, name))
            return list;
    return NULL;
}

const Binding *find_binding(const Context *context, const char *name) {
    for (const Binding *binding = context->names; binding; binding = binding->next)
        if (!strcmp(binding->name, name))
            return binding;
    return NULL;
}

// The declaration of that kind in the scope, the kernel's before the family's.
static const Ast *find_declared(const Compiler *compiler, AstKind kind, const char *name, ScopeKind from,
                                ScopeKind *scope) {
    const Ast *item = NULL;
    if (from == SCOPE_KERNEL && compiler->problem->kernel)
        item = find_item(compiler->problem->kernel->list, kind, name);
    *scope = item ? SCOPE_KERNEL : SCOPE_FAMILY;
    return item ? item : find_item(compiler->problem->family->list, kind, name);
}

// What the name stands for, with its article; NULL: nothing. *span: where it was declared.
static const char *kind_of(const Compiler *compiler, const Context *context, const char *name, Span *span) {
    static const struct {
        AstKind kind;
        const char *text;
    } KINDS[] = {{AST_OPTION, "an option"}, {AST_CONST, "a constant"},   {AST_PARAM, "a param"},
                 {AST_DIM, "a dim"},        {AST_AXIS, "an axis"},       {AST_TENSOR, "a tensor"},
                 {AST_HOOK, "a hook"},      {AST_FUNCTION, "a function"}};
    if (find_binding(context, name))
        return "a value";
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        ScopeKind scope;
        const Ast *item = find_declared(compiler, KINDS[i].kind, name, context->scope, &scope);
        if (item) {
            *span = item->span;
            return KINDS[i].text;
        }
    }
    return NULL;
}

void unknown_name(Compiler *compiler, const Context *context, const char *name, Span span, const char *what) {
    enum { MOST = 256 };
    const char *names[MOST];
    int count = 0;
    Span declared = {-1, 0, 0};
    const char *kind = kind_of(compiler, context, name, &declared);
    if (kind) {
        DiagItem *error = diag_error(compiler->diag, span, "wrong-kind", "'%s' is %s; %s %s is needed here",
                                     name, kind, strchr("aeiou", *what) ? "an" : "a", what);
        if (declared.file >= 0)
            diag_note(error, declared, "declared here");
        return;
    }
    for (const Binding *binding = context->names; binding && count < MOST; binding = binding->next)
        names[count++] = binding->name;
    const Ast *lists[] = {compiler->problem->family->list,
                          compiler->problem->kernel ? compiler->problem->kernel->list : NULL};
    for (int i = 0; i <= (context->scope == SCOPE_KERNEL); i++)
        for (const Ast *item = lists[i]; item && count < MOST; item = item->next)
            if (item->name && item->kind != AST_SETTING && item->kind != AST_MATH)
                names[count++] = item->name;
    DiagItem *error =
        diag_error(compiler->diag, span, "unknown-name", "there is no %s named '%s' here", what, name);
    const char *closest = diag_closest(name, names, count);
    if (closest)
        diag_help(error, "did you mean '%s'?", closest);
}

int find_axis(const Compiler *compiler, const char *name) {
    for (int i = 0; i < compiler->problem->axis_count; i++)
        if (!strcmp(compiler->problem->axes[i].name, name))
            return i;
    return -1;
}

int find_tensor(Compiler *compiler, const Context *context, const char *name) {
    ScopeKind scope;
    const Ast *ast = find_declared(compiler, AST_TENSOR, name, context->scope, &scope);
    for (int i = 0; ast && i < compiler->problem->tensor_count; i++)
        if (!strcmp(compiler->problem->tensors[i].name, name))
            return i;
    return -1;
}

const Ast *find_callable(Compiler *compiler, const Context *context, const char *name, ScopeKind *scope) {
    const Ast *item = find_declared(compiler, AST_FUNCTION, name, context->scope, scope);
    return item ? item : find_declared(compiler, AST_HOOK, name, SCOPE_FAMILY, scope);
}

static const ReferenceConstant *given_constant(const Compiler *compiler, const char *name) {
    for (int i = 0; i < compiler->problem->constant_count; i++)
        if (!strcmp(compiler->problem->constants[i].name, name))
            return &compiler->problem->constants[i];
    return NULL;
}

static bool elem_named(const char *name, Elem *elem) {
    for (int i = ELEM_I32; i < ELEM_COUNT; i++)
        if (!strcmp(elem_name((Elem)i), name)) {
            *elem = (Elem)i;
            return true;
        }
    return false;
}

bool find_type(Compiler *compiler, const char *name, Span span, Elem *elem) {
    const ReferenceConstant *given = given_constant(compiler, name);
    const Ast *option = find_item(compiler->problem->family->list, AST_OPTION, name);
    if (option && given && given->is_type && given->type > ELEM_BOOL && given->type < ELEM_COUNT) {
        *elem = given->type;
        return true;
    }
    const Ast *setting = option && compiler->problem->kernel
                             ? find_item(compiler->problem->kernel->list, AST_SETTING, name)
                             : NULL;
    if (elem_named(name, elem) ||
        (setting && setting->a->kind == AST_NAME && elem_named(setting->a->name, elem)))
        return true;
    DiagItem *error = diag_error(compiler->diag, span, "unknown-type", "there is no type named '%s'", name);
    if (option)
        diag_help(error, "the kernel must say it: %s TYPE;", name);
    else
        diag_help(error, "types: bf16, f16, f32, i32, and options declared as types");
    return false;
}

// ---------------------------------------------------------------- values

static int whole_or_real(Compiler *compiler, double value, bool is_integer, Span span) {
    if (is_integer && value == trunc(value) && fabs(value) <= INT32_MAX)
        return node_int(compiler, (int64_t)value, span);
    return node_real(compiler, value, span);
}

static int option_value(Compiler *compiler, const Ast *option, Span span) {
    const ReferenceConstant *given = given_constant(compiler, option->name);
    const Context nothing = {.vector = -1, .depth = DEPTH_FIRST};
    if (strcmp(option->name2, "int")) {
        diag_error(compiler->diag, span, "not-a-value", "'%s' is a type, not a value", option->name);
        return NO_NODE;
    }
    if (given && !given->is_type)
        return whole_or_real(compiler, given->value, true, span);
    const Ast *setting = compiler->problem->kernel
                             ? find_item(compiler->problem->kernel->list, AST_SETTING, option->name)
                             : NULL;
    if (setting)
        return compile_expression(compiler, &nothing, setting->a);
    DiagItem *error =
        diag_error(compiler->diag, span, "option-missing", "the kernel doesn't say its %s", option->name);
    diag_note(error, option->span, "'%s' is declared here", option->name);
    return NO_NODE;
}

// A declared value that must be a constant: a const, or the default of a param.
static int constant_value(Compiler *compiler, const Ast *ast, ScopeKind scope) {
    const Context nothing = {.vector = -1, .depth = DEPTH_FIRST, .scope = scope};
    int node = compile_expression(compiler, &nothing, ast->a);
    if (node == NO_NODE || compiler->program->nodes[node].kind == NODE_CONSTANT)
        return node;
    diag_error(compiler->diag, ast->a->span, "not-constant", "'%s' must be a constant", ast->name);
    return NO_NODE;
}

static int const_value(Compiler *compiler, const Ast *ast, ScopeKind scope, Span span) {
    const ReferenceConstant *given = given_constant(compiler, ast->name);
    int node = constant_value(compiler, ast, scope);
    if (node == NO_NODE || !given || given->is_type)
        return node;
    return whole_or_real(compiler, given->value, compiler->program->nodes[node].type == ELEM_I32, span);
}

static int param_value(Compiler *compiler, const Ast *ast, ScopeKind scope, Span span) {
    double value = 0;
    bool given = false;
    for (int i = 0; i < compiler->problem->param_count; i++)
        if (!strcmp(compiler->problem->params[i].name, ast->name)) {
            value = compiler->problem->params[i].value;
            given = true;
        }
    if (!given && !ast->a) {
        DiagItem *error =
            diag_error(compiler->diag, span, "param-missing", "param '%s' has no value", ast->name);
        diag_note(error, ast->span, "it has no default");
        return NO_NODE;
    }
    if (!given) {
        int node = constant_value(compiler, ast, scope);
        if (node == NO_NODE)
            return NO_NODE;
        const Node *constant = &compiler->program->nodes[node];
        value = constant->type == ELEM_F32 ? constant->real : constant->integer;
    }
    if (!strcmp(ast->name2, "i32"))
        return node_int(compiler, value >= INT32_MIN && value <= INT32_MAX ? (int64_t)value : INT64_MAX,
                        span);
    return node_real(compiler, (float)value, span);
}

static int dim_value(Compiler *compiler, const Ast *ast, Span span) {
    for (int i = 0; i < compiler->problem->dim_count; i++)
        if (!strcmp(compiler->problem->dims[i].name, ast->name))
            return node_int(compiler, compiler->problem->dims[i].value, span);
    diag_error(compiler->diag, span, "dim-missing", "dim '%s' has no value", ast->name);
    return NO_NODE;
}

static int declared_value(Compiler *compiler, const Ast *item, ScopeKind scope, Span span) {
    switch (item->kind) {
    case AST_OPTION:
        return option_value(compiler, item, span);
    case AST_CONST:
        return const_value(compiler, item, scope, span);
    case AST_PARAM:
        return param_value(compiler, item, scope, span);
    default:
        return dim_value(compiler, item, span);
    }
}

static int sequence_value(Compiler *compiler, const char *name, Span span) {
    Node node = {.kind = NODE_SEQUENCE,
                 .type = ELEM_I32,
                 .vector = -1,
                 .depends = 1ull << DEPTH_SEQUENCE,
                 .a = NO_NODE,
                 .b = NO_NODE,
                 .c = NO_NODE};
    if (!strcmp(name, "seq"))
        return node_new(compiler, node, span);
    node.kind = NODE_LENGTH;
    node.axis = strncmp(name, "len_", 4) ? -1 : find_axis(compiler, name + 4);
    return node.axis < 0 ? NO_NODE : node_new(compiler, node, span);
}

int name_value(Compiler *compiler, const Context *context, const Ast *ast) {
    static const AstKind VALUES[] = {AST_OPTION, AST_CONST, AST_PARAM, AST_DIM};
    static const struct {
        const char *name;
        double value;
    } CONSTANTS[] = {
        {"LOG2E", 0x1.71547652b82fep+0}, {"LN2", 0x1.62e42fefa39efp-1}, {"PI", 0x1.921fb54442d18p+1}};
    const Binding *binding = find_binding(context, ast->name);
    if (binding && binding->is_vector_let) {
        diag_error(compiler->diag, ast->span, "reference-shape", "'%s' needs an index: %s[...]", ast->name,
                   ast->name);
        return NO_NODE;
    }
    if (binding)
        return binding->node;
    for (size_t i = 0; i < sizeof VALUES / sizeof VALUES[0]; i++) {
        ScopeKind scope;
        const Ast *item = find_declared(compiler, VALUES[i], ast->name, context->scope, &scope);
        if (item)
            return declared_value(compiler, item, scope, ast->span);
    }
    int node = sequence_value(compiler, ast->name, ast->span);
    if (node != NO_NODE)
        return node;
    for (size_t i = 0; i < sizeof CONSTANTS / sizeof CONSTANTS[0]; i++)
        if (!strcmp(CONSTANTS[i].name, ast->name))
            return node_real(compiler, CONSTANTS[i].value, ast->span);
    bool is_tensor = find_tensor(compiler, context, ast->name) >= 0;
    if (is_tensor || find_axis(compiler, ast->name) >= 0)
        diag_error(compiler->diag, ast->span, "not-a-value", "'%s' is %s, not a value", ast->name,
                   is_tensor ? "a tensor" : "an axis");
    else
        unknown_name(compiler, context, ast->name, ast->span, "value");
    return NO_NODE;
}

// ---------------------------------------------------------------- tensors

static bool bind_dims(Compiler *compiler, ProgramTensor *tensor) {
    int rank = 0;
    for (const Ast *dim = tensor->ast->a->list; dim; dim = dim->next, rank++)
        if (rank < REFERENCE_MAX_DIMS)
            tensor->axis[rank] = dim->kind == AST_NAME ? find_axis(compiler, dim->name) : -1;
    if (rank == tensor->given->rank && rank <= REFERENCE_MAX_DIMS)
        return true;
    diag_error(compiler->diag, tensor->ast->span, "reference-problem",
               "tensor '%s' has %d dims, but %d are given", tensor->ast->name, rank, tensor->given->rank);
    return false;
}

// Finds the declarations of the problem's tensors.
bool bind_tensors(Compiler *compiler) {
    const ReferenceProblem *problem = compiler->problem;
    compiler->program->tensors = arena_array(compiler->arena, ProgramTensor, problem->tensor_count);
    for (int i = 0; i < problem->tensor_count; i++) {
        ProgramTensor *tensor = &compiler->program->tensors[i];
        ScopeKind scope;
        tensor->given = &problem->tensors[i];
        tensor->ast = find_declared(compiler, AST_TENSOR, tensor->given->name, SCOPE_KERNEL, &scope);
        if (!tensor->ast) {
            diag_error(compiler->diag, problem->family->name_span, "unknown-name",
                       "there is no tensor named '%s'", tensor->given->name);
            return false;
        }
        tensor->direction = tensor->ast->op;
        if (!find_type(compiler, tensor->ast->a->name, tensor->ast->a->span, &tensor->elem) ||
            !bind_dims(compiler, tensor))
            return false;
    }
    return true;
}
