// steps.c: the statements of a reference to loops and stores. Takes the trees of a family and a kernel, gives
// the Program that the evaluation runs.
#include "compiler/reference/compiler.h"

#include <string.h>

enum { DEEPEST_BLOCK = 60 };

int64_t program_largest_extent(const Program *program, int var) {
    const Variable *variable = &program->vars[var];
    if (variable->axis < 0)
        return variable->size;
    int64_t largest = 0;
    for (int64_t i = 0; i < program->problem->sequences; i++) {
        int64_t length = program->problem->axes[variable->axis].lengths[i];
        largest = length > largest ? length : largest;
    }
    return largest;
}

static Step *loops(Compiler *compiler, Context context, const Ast *binds, const Ast *body) {
    int var = compile_binder(compiler, &context, binds, false);
    if (var < 0)
        return NULL;
    int index = node_index(compiler, var, binds->span);
    if (index == NO_NODE)
        return NULL;
    Step *step = arena_new_of(compiler->arena, Step);
    *step = (Step){.is_loop = true, .var = var, .span = binds->span};
    context.names = bind_name(compiler, context.names, binds->name, index);
    context.depth++;
    if (binds->next) {
        step->body = loops(compiler, context, binds->next, body);
        return step->body ? step : NULL;
    }
    return compile_statements(compiler, context, body, &step->body) ? step : NULL;
}

// let name = value; or let name[index in axis] = value;
static const Binding *bind_let(Compiler *compiler, const Context *context, const Ast *let) {
    Context inside = *context;
    if (let->list && let->list->next) {
        diag_error(compiler->diag, let->list->next->span, "reference-shape", "a vector has one index");
        return NULL;
    }
    if (let->list) {
        int var = compile_binder(compiler, context, let->list, true);
        int index = var < 0 ? NO_NODE : node_index(compiler, var, let->list->span);
        if (index == NO_NODE)
            return NULL;
        inside.names = bind_name(compiler, context->names, let->list->name, index);
        inside.vector = var;
        inside.depth++;
    }
    int value = compile_expression(compiler, &inside, let->a);
    if (value == NO_NODE)
        return NULL;
    Binding *binding = arena_new_of(compiler->arena, Binding);
    *binding = (Binding){
        .name = let->name, .node = value, .is_vector_let = let->list != NULL, .next = context->names};
    return binding;
}

// An optional output that was not given: nobody asks for it.
static bool is_left_out(Compiler *compiler, const Context *context, const Ast *target) {
    const Ast *declared = find_item(compiler->problem->family->list, AST_TENSOR, target->a->name);
    return declared && declared->op != TENSOR_IN && find_tensor(compiler, context, target->a->name) < 0;
}

static int stored_tensor(Compiler *compiler, const Context *context, const Ast *target) {
    if (target->kind != AST_INDEX || target->a->kind != AST_NAME) {
        diag_error(compiler->diag, target->span, "reference-target",
                   "only elements of a tensor can be set: T[...] = value;");
        return -1;
    }
    int tensor = find_tensor(compiler, context, target->a->name);
    if (tensor < 0) {
        unknown_name(compiler, context, target->a->name, target->a->span, "output tensor");
        return -1;
    }
    if (compiler->program->tensors[tensor].direction != TENSOR_IN)
        return tensor;
    DiagItem *error = diag_error(compiler->diag, target->span, "reference-target", "tensor '%s' is an input",
                                 target->a->name);
    diag_note(error, compiler->program->tensors[tensor].ast->span, "declared here");
    return -1;
}

// The positions of a store: expressions, and at most one index that runs. False: reported.
static bool store_positions(Compiler *compiler, Context *context, const Ast *target, Step *step) {
    int dim = 0, rank = compiler->program->tensors[step->tensor].given->rank;
    for (const Ast *position = target->list; position; position = position->next)
        dim++;
    if (dim != rank) {
        diag_error(compiler->diag, target->span, "shape-mismatch",
                   "tensor '%s' has %d dims, but %d are given", target->a->name, rank, dim);
        return false;
    }
    const Context outside = *context;
    dim = 0;
    for (const Ast *position = target->list; position; position = position->next, dim++) {
        if (position->kind != AST_BIND) {
            step->at[dim] = compile_expression(compiler, &outside, position);
            if (step->at[dim] == NO_NODE)
                return false;
            if (compiler->program->nodes[step->at[dim]].type == ELEM_I32)
                continue;
            diag_error(compiler->diag, position->span, "type-mismatch", "a position must be an integer");
            return false;
        }
        if (step->var >= 0) {
            diag_error(compiler->diag, position->span, "reference-shape",
                       "one index of a store can run; use 'for' for the others");
            return false;
        }
        step->var = compile_binder(compiler, &outside, position, true);
        step->at[dim] = step->var < 0 ? NO_NODE : node_index(compiler, step->var, position->span);
        if (step->at[dim] == NO_NODE)
            return false;
        step->vector_dim = dim;
        context->names = bind_name(compiler, outside.names, position->name, step->at[dim]);
        context->vector = step->var;
        context->depth = outside.depth + 1;
    }
    return true;
}

// within(value, error): what a kernel may be off by, beside its roundings.
static bool is_within(const Ast *ast) {
    return ast->kind == AST_CALL && ast->a->kind == AST_NAME && !strcmp(ast->a->name, "within");
}

static int within_error(Compiler *compiler, const Context *context, const Ast *call) {
    if (!call->list || !call->list->next || call->list->next->next) {
        diag_error(
            compiler->diag, call->span, "argument-count",
            "within(value, error) takes two arguments: what is stored, and what a kernel may be off by");
        return NO_NODE;
    }
    return node_cast(compiler, compile_expression(compiler, context, call->list->next), ELEM_F32,
                     call->list->next->span);
}

static Step *store(Compiler *compiler, Context context, const Ast *assign) {
    Step *step = arena_new_of(compiler->arena, Step);
    *step = (Step){.var = -1, .vector_dim = -1, .slack = NO_NODE, .span = assign->a->span};
    step->tensor = stored_tensor(compiler, &context, assign->a);
    if (step->tensor < 0 || !store_positions(compiler, &context, assign->a, step))
        return NULL;
    ProgramTensor *tensor = &compiler->program->tensors[step->tensor];
    tensor->is_written = true;
    const Ast *value = assign->b;
    if (is_within(value)) {
        step->slack = within_error(compiler, &context, value);
        tensor->has_slack = true;
        if (step->slack == NO_NODE)
            return NULL;
        value = value->list;
    }
    step->value = node_cast(compiler, compile_expression(compiler, &context, value),
                            tensor->elem == ELEM_I32 ? ELEM_I32 : ELEM_F32, value->span);
    return step->value == NO_NODE ? NULL : step;
}

bool compile_statements(Compiler *compiler, Context context, const Ast *list, Step **first) {
    bool good = true;
    for (; list; list = list->next) {
        Step *step = NULL;
        if (list->kind == AST_LET) {
            const Binding *names = bind_let(compiler, &context, list);
            if (!names)
                return false; // what follows would only miss its name
            context.names = names;
            continue;
        }
        if (list->kind == AST_ASSIGN && list->a->kind == AST_INDEX && list->a->a->kind == AST_NAME &&
            is_left_out(compiler, &context, list->a))
            continue;
        if (compiler->nesting == DEEPEST_BLOCK) {
            diag_error(compiler->diag, list->span, "reference-size", "more than %d blocks within each other",
                       DEEPEST_BLOCK);
            return false;
        }
        compiler->nesting++;
        if (list->kind == AST_FOR)
            step = loops(compiler, context, list->list, list->list2);
        else if (list->kind == AST_ASSIGN)
            step = store(compiler, context, list);
        else
            diag_error(compiler->diag, list->span, "misplaced",
                       "a reference has let, for and T[...] = value only");
        compiler->nesting--;
        good &= step != NULL;
        if (step) {
            *first = step;
            first = &step->next;
        }
    }
    return good;
}

// ---------------------------------------------------------------- the problem

static bool check_axes(Compiler *compiler) {
    const ReferenceProblem *problem = compiler->problem;
    for (int i = 0; i < problem->axis_count; i++)
        for (int64_t k = 0; k < problem->sequences; k++) {
            int64_t length = problem->axes[i].lengths[k];
            if (length >= 0 && length <= INT32_MAX)
                continue;
            diag_error(compiler->diag, problem->family->name_span, "reference-problem",
                       "axis '%s' has length %lld in sequence %lld", problem->axes[i].name, (long long)length,
                       (long long)k);
            return false;
        }
    return true;
}

static bool check_rows(Compiler *compiler, const ProgramTensor *tensor, int dim) {
    const ReferenceProblem *problem = compiler->problem;
    const ReferenceTensor *given = tensor->given;
    const int64_t *lengths = problem->axes[tensor->axis[dim]].lengths;
    for (int64_t i = 0; i < problem->sequences; i++) {
        int64_t base = given->base[dim] ? given->base[dim][i] : 0;
        if (base >= 0 && lengths[i] <= given->extent[dim] && base <= given->extent[dim] - lengths[i])
            continue;
        if (lengths[i] == 0)
            continue;
        diag_error(compiler->diag, tensor->ast->span, "reference-problem",
                   "rows %lld..%lld of sequence %lld are outside of '%s', which has %lld", (long long)base,
                   (long long)(base + lengths[i] - 1), (long long)i, given->name,
                   (long long)given->extent[dim]);
        return false;
    }
    return true;
}

static bool check_tensors(Compiler *compiler) {
    for (int i = 0; i < compiler->problem->tensor_count; i++) {
        const ProgramTensor *tensor = &compiler->program->tensors[i];
        int64_t elements = 1;
        for (int dim = 0; dim < tensor->given->rank; dim++) {
            int64_t extent = tensor->given->extent[dim];
            if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements) ||
                elements > INT64_MAX / 16) {
                diag_error(compiler->diag, tensor->ast->span, "reference-problem",
                           "dim %d of '%s' can't be %lld", dim, tensor->given->name, (long long)extent);
                return false;
            }
            if (tensor->axis[dim] >= 0 && !check_rows(compiler, tensor, dim))
                return false;
        }
    }
    return true;
}

Program *program_compile(Arena *arena, Diag *diag, const ReferenceProblem *problem) {
    Program *program = arena_new_of(arena, Program);
    Compiler compiler = {.arena = arena, .diag = diag, .problem = problem, .program = program};
    program->problem = problem;
    const Ast *reference = problem->family->list;
    while (reference && reference->kind != AST_REFERENCE)
        reference = reference->next;
    if (!reference) {
        DiagItem *error = diag_error(diag, problem->family->name_span, "no-reference",
                                     "family '%s' has no reference", problem->family->name);
        diag_help(error, "add: reference { ... }");
        return NULL;
    }
    if (!check_axes(&compiler) || !bind_tensors(&compiler) || !check_tensors(&compiler))
        return NULL;
    const Context context = {.vector = -1, .depth = DEPTH_FIRST};
    return compile_statements(&compiler, context, reference->list, &program->steps) ? program : NULL;
}
