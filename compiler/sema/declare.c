// declare.c: what families, kernels and schedules declare.
#include "compiler/sema/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ITEMS = 64 };

static Elem elem_by_name(const char *name) {
    for (int i = ELEM_I32; i < ELEM_COUNT; i++)
        if (!strcmp(elem_name((Elem)i), name))
            return (Elem)i;
    return ELEM_COUNT;
}

// The element type that a name stands for, also through an option; ELEM_COUNT: reported.
static Elem find_elem(Sema *sema, Scope *scope, const char *name, Span span) {
    Elem elem = elem_by_name(name);
    if (elem != ELEM_COUNT)
        return elem;
    Symbol *symbol = scope_find(scope, name);
    if (symbol && symbol->kind == SYM_TYPE)
        return symbol->elem;
    DiagItem *item = diag_error(sema->diag, span, "unknown-type", "there is no type named '%s'", name);
    diag_help(item, "types: bf16, f16, f32, i32, bool, and options declared as types");
    return ELEM_COUNT;
}

static bool grows(Sema *sema, int count, Span span, const char *what) {
    if (count < MAX_ITEMS)
        return true;
    diag_error(sema->diag, span, "too-many", "more than %d %s", MAX_ITEMS, what);
    return false;
}

static Define *find_define(Sema *sema, const char *name) {
    for (int i = 0; i < sema->options->define_count; i++)
        if (sema->defines[i].name && !strcmp(sema->defines[i].name, name)) {
            sema->defines[i].used = true;
            return &sema->defines[i];
        }
    return NULL;
}

static void add_constant(Sema *sema, const char *name, Expr *value, const char *text, Span span) {
    if (!grows(sema, sema->plan->constant_count, span, "constants"))
        return;
    Constant *constant = &sema->plan->constants[sema->plan->constant_count++];
    constant->name = name;
    constant->value = value ? expr_constant(value) : 0;
    constant->text = text;
    constant->span = span;
}

static void declare_const(Sema *sema, Scope *scope, const Ast *ast, bool overridable) {
    Define *define = overridable ? find_define(sema, ast->name) : NULL;
    Expr *value = define ? define->value : sema_expr(sema, scope, ast->a);
    if (define && !value)
        diag_error(sema->diag, ast->span, "bad-define", "-D %s=%s: '%s' is a number", define->name,
                   define->text, ast->name);
    if (value && !expr_is_constant(value)) {
        diag_error(sema->diag, ast->a->span, "not-constant", "'%s' must be a constant", ast->name);
        value = NULL;
    }
    Symbol *symbol = scope_add(sema, scope, SYM_VALUE, ast->name, ast->name_span);
    if (symbol)
        symbol->expr = value;
    if (value && overridable)
        add_constant(sema, ast->name, value, NULL, ast->span);
}

static void declare_function(Sema *sema, Scope *scope, const Ast *ast) {
    Symbol *symbol = scope_add(sema, scope, SYM_FUNCTION, ast->name, ast->name_span);
    if (!symbol)
        return;
    symbol->ast = ast;
    symbol->scope = scope;
}

// ---------------------------------------------------------------- family

static const Ast *find_item(const Ast *list, AstKind kind, const char *name) {
    for (; list; list = list->next)
        if (list->kind == kind && !strcmp(list->name, name))
            return list;
    return NULL;
}

static const char *allowed_text(Sema *sema, const Ast *option) {
    const char *text = "";
    for (const Ast *choice = option->list; choice; choice = choice->next)
        text = arena_format(sema->arena, "%s%s%s", text, *text ? ", " : "",
                            ast_text(sema->diag->sources, sema->arena, choice->span));
    return text;
}

static void bad_choice(Sema *sema, const Ast *option, const char *value, Span span) {
    DiagItem *item = diag_error(sema->diag, span, "option-value", "%s can't be %s", option->name, value);
    diag_note(item, option->span, "'%s' is declared here", option->name);
    diag_help(item, "choose one of: %s", allowed_text(sema, option));
}

static void type_option(Sema *sema, const Ast *option, const char *value, Span span) {
    bool allowed = false;
    for (const Ast *choice = option->list; choice; choice = choice->next)
        allowed |= choice->kind == AST_NAME && !strcmp(choice->name, value);
    Elem elem = elem_by_name(value);
    if (!allowed || elem == ELEM_COUNT) {
        bad_choice(sema, option, value, span);
        elem = ELEM_COUNT;
    }
    Symbol *symbol = scope_add(sema, sema->family, SYM_TYPE, option->name, option->name_span);
    if (symbol)
        symbol->elem = elem == ELEM_COUNT ? ELEM_BF16 : elem;
    add_constant(sema, option->name, NULL, value, option->span);
}

static void number_option(Sema *sema, const Ast *option, Expr *value, Span span) {
    bool allowed = false;
    for (const Ast *choice = option->list; choice && value; choice = choice->next) {
        Expr *candidate = sema_expr(sema, sema->family, choice);
        allowed |=
            candidate && expr_is_constant(candidate) && expr_constant(candidate) == expr_constant(value);
    }
    if (value && !allowed)
        bad_choice(sema, option, arena_format(sema->arena, "%g", expr_constant(value)), span);
    Symbol *symbol = scope_add(sema, sema->family, SYM_VALUE, option->name, option->name_span);
    if (symbol)
        symbol->expr = value;
    if (value)
        add_constant(sema, option->name, value, NULL, option->span);
}

static void declare_option(Sema *sema, const Ast *option) {
    const Ast *setting = find_item(sema->parts->kernel->list, AST_SETTING, option->name);
    Define *define = find_define(sema, option->name);
    bool is_type = !strcmp(option->name2, "type");
    if (!is_type && strcmp(option->name2, "int")) {
        diag_error(sema->diag, option->span, "unknown-type", "an option is 'int' or 'type', not '%s'",
                   option->name2);
        return;
    }
    Span span = setting ? setting->a->span : option->span;
    if (!setting && !define) {
        DiagItem *item =
            diag_error(sema->diag, sema->parts->kernel->name_span, "option-missing",
                       "kernel '%s' doesn't say its %s", sema->parts->kernel->name, option->name);
        diag_note(item, option->span, "'%s' is declared here", option->name);
        diag_help(item, "add '%s VALUE;' with one of: %s", option->name, allowed_text(sema, option));
    }
    if (is_type) {
        const char *value = define                         ? define->text
                            : !setting                     ? option->list->name
                            : setting->a->kind == AST_NAME ? setting->a->name
                                                           : NULL;
        type_option(sema, option, value ? value : "a number", span);
    } else {
        Expr *value = define ? define->value : setting ? sema_expr(sema, sema->family, setting->a) : NULL;
        if (define && !value)
            bad_choice(sema, option, define->text, span);
        if (value && !expr_is_constant(value)) {
            diag_error(sema->diag, span, "not-constant", "%s must be a constant", option->name);
            value = NULL;
        }
        number_option(sema, option, value, span);
    }
}

static void declare_axis(Sema *sema, const Ast *ast) {
    Symbol *symbol = scope_add(sema, sema->family, SYM_AXIS, ast->name, ast->name_span);
    if (!symbol || !grows(sema, sema->plan->axis_count, ast->span, "axes"))
        return;
    symbol->index = sema->plan->axis_count;
    Axis *axis = &sema->plan->axes[sema->plan->axis_count++];
    axis->name = ast->name;
    axis->span = ast->span;
}

static void declare_dim(Sema *sema, const Ast *ast) {
    int divides = -1;
    if (ast->name2) {
        Symbol *whole = scope_find(sema->family, ast->name2);
        if (!whole || whole->kind != SYM_DIM)
            scope_unknown(sema, sema->family, ast->name2, ast->span, "dim");
        else
            divides = whole->index;
    }
    Symbol *symbol = scope_add(sema, sema->family, SYM_DIM, ast->name, ast->name_span);
    if (!symbol || !grows(sema, sema->plan->dim_count, ast->span, "dims"))
        return;
    symbol->index = sema->plan->dim_count;
    RuntimeDim *dim = &sema->plan->dims[sema->plan->dim_count++];
    dim->name = ast->name;
    dim->divides = divides;
    dim->span = ast->span;
}

static bool tensor_dim(Sema *sema, Scope *scope, const Ast *ast, TensorDim *dim) {
    Symbol *symbol = ast->kind == AST_NAME ? scope_find(scope, ast->name) : NULL;
    if (symbol && (symbol->kind == SYM_AXIS || symbol->kind == SYM_DIM)) {
        dim->kind = symbol->kind == SYM_AXIS ? DIM_AXIS : DIM_RUNTIME;
        dim->index = symbol->index;
        return true;
    }
    dim->kind = DIM_CONSTANT;
    return sema_constant_int(sema, scope, ast, "the extent of a dim", 1, 1 << 20, &dim->extent);
}

static void declare_tensor(Sema *sema, Scope *scope, const Ast *ast, bool from_kernel) {
    Symbol *symbol = scope_add(sema, scope, SYM_TENSOR, ast->name, ast->name_span);
    if (!symbol || !grows(sema, sema->plan->tensor_count, ast->span, "tensors"))
        return;
    symbol->index = sema->plan->tensor_count;
    Tensor *tensor = &sema->plan->tensors[sema->plan->tensor_count++];
    tensor->name = ast->name;
    tensor->direction = ast->op;
    tensor->is_optional = ast->flag;
    tensor->from_kernel = from_kernel;
    tensor->span = ast->span;
    Elem elem = find_elem(sema, scope, ast->a->name, ast->a->span);
    tensor->elem = elem == ELEM_COUNT ? ELEM_F32 : elem;
    if (tensor->elem == ELEM_BOOL)
        diag_error(sema->diag, ast->a->span, "unknown-type", "a tensor can't hold bool; use i32");
    for (const Ast *dim = ast->a->list; dim; dim = dim->next) {
        if (tensor->rank == MAX_TENSOR_DIMS) {
            diag_error(sema->diag, dim->span, "too-many", "a tensor has at most %d dims", MAX_TENSOR_DIMS);
            break;
        }
        if (tensor_dim(sema, scope, dim, &tensor->dims[tensor->rank]))
            tensor->rank++;
    }
    if (!ast->a->list)
        diag_error(sema->diag, ast->a->span, "shape-mismatch", "tensor '%s' needs its dims: %s[...]",
                   ast->name, ast->a->name);
}

static void declare_param(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *value = ast->a ? sema_expr(sema, scope, ast->a) : NULL;
    Symbol *symbol = scope_add(sema, scope, SYM_PARAM, ast->name, ast->name_span);
    if (!symbol || !grows(sema, sema->plan->param_count, ast->span, "params"))
        return;
    symbol->index = sema->plan->param_count;
    Param *param = &sema->plan->params[sema->plan->param_count++];
    param->name = ast->name;
    param->span = ast->span;
    param->elem = elem_by_name(ast->name2);
    if (param->elem != ELEM_F32 && param->elem != ELEM_I32) {
        diag_error(sema->diag, ast->span, "unknown-type", "a param is f32 or i32, not '%s'", ast->name2);
        param->elem = ELEM_F32;
    }
    if (value && !expr_is_constant(value)) {
        diag_error(sema->diag, ast->a->span, "not-constant", "the default of a param must be a constant");
        return;
    }
    param->has_default = value != NULL;
    param->default_value = value ? expr_constant(value) : 0;
}

static void declare_hook(Sema *sema, const Ast *ast) {
    Symbol *symbol = scope_add(sema, sema->family, SYM_HOOK, ast->name, ast->name_span);
    if (!symbol)
        return;
    symbol->ast = ast;
    symbol->scope = sema->family;
    if (strcmp(ast->name2, "f32") && strcmp(ast->name2, "i32") && strcmp(ast->name2, "bool"))
        diag_error(sema->diag, ast->span, "unknown-type", "a hook gives f32, i32 or bool, not '%s'",
                   ast->name2);
}

static void misplaced(Sema *sema, const Ast *item, const char *where) {
    diag_error(sema->diag, item->span, "misplaced", "this can't stand in a %s", where);
}

void declare_family(Sema *sema) {
    for (const Ast *item = sema->parts->family->list; item; item = item->next)
        if (item->kind == AST_OPTION)
            declare_option(sema, item);
    for (const Ast *item = sema->parts->family->list; item; item = item->next)
        switch (item->kind) {
        case AST_OPTION:
        case AST_REFERENCE:
            break;
        case AST_AXIS:
            declare_axis(sema, item);
            break;
        case AST_DIM:
            declare_dim(sema, item);
            break;
        case AST_TENSOR:
            declare_tensor(sema, sema->family, item, false);
            break;
        case AST_PARAM:
            declare_param(sema, sema->family, item);
            break;
        case AST_HOOK:
            declare_hook(sema, item);
            break;
        case AST_CONST:
            declare_const(sema, sema->family, item, false);
            break;
        case AST_FUNCTION:
            declare_function(sema, sema->family, item);
            break;
        default:
            misplaced(sema, item, "family");
            break;
        }
}

// ---------------------------------------------------------------- kernel

static void declare_math(Sema *sema, const Ast *math) {
    Symbol *hook = NULL;
    const char *names[MAX_ITEMS];
    int count = 0;
    for (Symbol *symbol = sema->family->symbols; symbol && count < MAX_ITEMS; symbol = symbol->next)
        if (symbol->kind == SYM_HOOK) {
            names[count++] = symbol->name;
            if (!strcmp(symbol->name, math->name))
                hook = symbol;
        }
    if (!hook) {
        DiagItem *item = diag_error(sema->diag, math->name_span, "unknown-name",
                                    "family '%s' has no hook '%s'", sema->parts->family->name, math->name);
        const char *closest = diag_closest(math->name, names, count);
        if (closest)
            diag_help(item, "did you mean '%s'?", closest);
        return;
    }
    if (hook->math) {
        DiagItem *item =
            diag_error(sema->diag, math->name_span, "duplicate-name", "'%s' is defined twice", math->name);
        diag_note(item, hook->math->name_span, "first defined here");
        return;
    }
    for (const Ast *own = math->list; own; own = own->next)
        if (!find_item(hook->ast->list, AST_NAME, own->name)) {
            DiagItem *item = diag_error(sema->diag, own->span, "unknown-parameter",
                                        "hook '%s' has no parameter '%s'", math->name, own->name);
            diag_note(item, hook->ast->span, "declared here; name any of these, in any order");
        }
    hook->math = math;
    hook->math_scope = sema->kernel;
}

void declare_kernel(Sema *sema) {
    for (const Ast *item = sema->parts->kernel->list; item; item = item->next)
        switch (item->kind) {
        case AST_SETTING: {
            const Ast *option = find_item(sema->parts->family->list, AST_OPTION, item->name);
            if (option || !strcmp(item->name, "schedule"))
                break;
            const char *names[MAX_ITEMS];
            int count = 0;
            for (const Ast *other = sema->parts->family->list; other && count < MAX_ITEMS;
                 other = other->next)
                if (other->kind == AST_OPTION)
                    names[count++] = other->name;
            DiagItem *error =
                diag_error(sema->diag, item->name_span, "unknown-option", "family '%s' has no option '%s'",
                           sema->parts->family->name, item->name);
            const char *closest = diag_closest(item->name, names, count);
            if (closest)
                diag_help(error, "did you mean '%s'?", closest);
            break;
        }
        case AST_MATH:
            declare_math(sema, item);
            break;
        case AST_TENSOR:
            declare_tensor(sema, sema->kernel, item, true);
            break;
        case AST_PARAM:
            declare_param(sema, sema->kernel, item);
            break;
        case AST_CONST:
            declare_const(sema, sema->kernel, item, true);
            break;
        case AST_FUNCTION:
            declare_function(sema, sema->kernel, item);
            break;
        default:
            misplaced(sema, item, "kernel");
            break;
        }
}

// ---------------------------------------------------------------- schedule

static void declare_buffer(Sema *sema, const Ast *ast) {
    Symbol *symbol = scope_add(sema, sema->schedule, SYM_BUFFER, ast->name, ast->name_span);
    if (!symbol || !grows(sema, sema->plan->buffer_count, ast->span, "buffers"))
        return;
    Buffer *buffer = arena_new_of(sema->arena, Buffer);
    buffer->name = ast->name;
    buffer->space = ast->op;
    buffer->span = ast->span;
    buffer->array = buffer->depth = 1;
    Elem elem = find_elem(sema, sema->schedule, ast->a->name, ast->a->span);
    buffer->elem = elem == ELEM_COUNT ? ELEM_F32 : elem;
    bool good = elem != ELEM_COUNT;
    for (const Ast *dim = ast->list; dim; dim = dim->next) {
        int64_t extent = 1;
        if (buffer->dim_count == 2) {
            diag_error(sema->diag, dim->span, "too-many", "a buffer has at most an array extent and a depth");
            return;
        }
        good &= sema_constant_int(sema, sema->schedule, dim, "the depth of a buffer", 1, 64, &extent);
        buffer->dims[buffer->dim_count++] = (int)extent;
    }
    int64_t extents[2] = {1, 1};
    for (const Ast *extent = ast->a->list; extent; extent = extent->next) {
        if (buffer->rank == 2) {
            diag_error(sema->diag, extent->span, "shape-mismatch", "a buffer has one or two extents");
            return;
        }
        good &= sema_constant_int(sema, sema->schedule, extent, "the extent of a buffer", 1, 4096,
                                  &extents[buffer->rank++]);
    }
    if (buffer->rank == 0)
        diag_error(sema->diag, ast->a->span, "shape-mismatch", "buffer '%s' needs its shape: %s[rows, cols]",
                   ast->name, ast->a->name);
    buffer->rows = (int)extents[0];
    buffer->cols = (int)extents[1];
    if (ast->name2) {
        Symbol *over = scope_find(sema->schedule, ast->name2);
        if (!over || over->kind != SYM_BUFFER || !over->buffer)
            scope_unknown(sema, sema->schedule, ast->name2, ast->span, "buffer declared before");
        else
            buffer->over = over->buffer;
    }
    if (!good)
        return;
    if (buffer->space == SPACE_TMEM && !sema->plan->target->tmem_columns) {
        diag_error(sema->diag, ast->span, "no-tmem", "%s has no tensor memory", sema->plan->target->name);
        return;
    }
    symbol->buffer = buffer;
    sema->plan->buffers[sema->plan->buffer_count++] = buffer;
}

static void declare_role(Sema *sema, const Ast *ast) {
    Symbol *symbol = scope_add(sema, sema->schedule, SYM_ROLE, ast->name, ast->name_span);
    if (!symbol || !grows(sema, sema->plan->role_count, ast->span, "roles"))
        return;
    Role *role = arena_new_of(sema->arena, Role);
    role->name = ast->name;
    role->span = ast->name_span;
    role->replicas = 1;
    int64_t value;
    if (ast->list) {
        role->replica_name = ast->list->name;
        if (!sema_constant_int(sema, sema->schedule, ast->list->a, "the number of replicas", 1, 8, &value))
            value = 1;
        role->replicas = (int)value;
    }
    role->warps_span = ast->a->span;
    role->warps = sema_constant_int(sema, sema->schedule, ast->a, "the number of warps", 1, 32, &value)
                      ? (int)value
                      : 1;
    if (ast->b) {
        role->regs_span = ast->b->span;
        role->regs = sema_constant_int(sema, sema->schedule, ast->b, "registers a thread", 24, 255, &value)
                         ? (int)value
                         : 0;
    }
    role->number = sema->plan->role_count;
    symbol->role = role;
    sema->plan->roles[sema->plan->role_count++] = role;
}

static Role *role_named(Sema *sema, const char *name, Span span) {
    Symbol *symbol = scope_find(sema->schedule, name);
    if (symbol && symbol->kind == SYM_ROLE)
        return symbol->role;
    scope_unknown(sema, sema->schedule, name, span, "role");
    return NULL;
}

// The leading dims of the buffer are the pipe's own; what remains is the ring's depth.
static bool match_ring(Sema *sema, const Ast *ast, Pipe *pipe) {
    Buffer *buffer = pipe->buffer;
    int64_t extent = 1;
    int own = 0;
    for (const Ast *dim = ast->list; dim; dim = dim->next, own++) {
        if (own == 1) {
            diag_error(sema->diag, dim->span, "shape-mismatch", "a pipe array has one extent");
            return false;
        }
        if (!sema_constant_int(sema, sema->schedule, dim, "the extent of a pipe array", 1, 64, &extent))
            return false;
    }
    pipe->is_array = own == 1;
    pipe->array = (int)extent;
    int remaining = buffer->dim_count - own;
    if (remaining < 0 || remaining > 1 || (own == 1 && buffer->dims[0] != extent)) {
        DiagItem *item =
            diag_error(sema->diag, ast->span, "shape-mismatch",
                       "the extents of pipe '%s' don't fit those of buffer '%s'", pipe->name, buffer->name);
        diag_note(item, buffer->span, "declared here");
        diag_help(item, "pipe p[A] : b needs buffer b[A] or b[A, DEPTH]; pipe p : b needs b or b[DEPTH]");
        return false;
    }
    int depth = remaining == 1 ? buffer->dims[own] : 1;
    if ((buffer->array != 1 || buffer->depth != 1) &&
        (buffer->array != pipe->array || buffer->depth != depth)) {
        diag_error(sema->diag, ast->span, "shape-mismatch",
                   "two pipes see buffer '%s' as rings of different depth", buffer->name);
        return false;
    }
    buffer->array = pipe->array;
    buffer->depth = depth;
    return true;
}

static void declare_pipe(Sema *sema, const Ast *ast) {
    Symbol *symbol = scope_add(sema, sema->schedule, SYM_PIPE, ast->name, ast->name_span);
    if (!symbol || !grows(sema, sema->plan->pipe_count, ast->span, "pipes"))
        return;
    Symbol *buffer = scope_find(sema->schedule, ast->name2);
    if (!buffer || buffer->kind != SYM_BUFFER) {
        scope_unknown(sema, sema->schedule, ast->name2, ast->span, "buffer");
        return;
    }
    if (!buffer->buffer)
        return;
    Pipe *pipe = arena_new_of(sema->arena, Pipe);
    pipe->name = ast->name;
    pipe->span = ast->span;
    pipe->buffer = buffer->buffer;
    pipe->in_place = ast->flag;
    pipe->full_barrier = pipe->empty_barrier = -1;
    pipe->from = role_named(sema, ast->name3, ast->span);
    for (const Ast *to = ast->list2; to; to = to->next) {
        if (pipe->to_count == 4) {
            diag_error(sema->diag, to->span, "too-many", "a pipe has at most 4 takers");
            return;
        }
        Role *role = role_named(sema, to->name, to->span);
        if (!role)
            return;
        pipe->to[pipe->to_count++] = role;
    }
    if (!pipe->from || !match_ring(sema, ast, pipe))
        return;
    symbol->pipe = pipe;
    sema->plan->pipes[sema->plan->pipe_count++] = pipe;
}

// name in blocks(axis, size)
static bool blocks_of(Sema *sema, const Ast *bind, int *axis, int64_t *size) {
    const Ast *call = bind->a;
    if (call->kind != AST_CALL || call->a->kind != AST_NAME || strcmp(call->a->name, "blocks") ||
        !call->list || !call->list->next || call->list->next->next || call->list->kind != AST_NAME) {
        diag_error(sema->diag, call->span, "bad-grid", "expected blocks(axis, size)");
        return false;
    }
    Symbol *symbol = scope_find(sema->schedule, call->list->name);
    if (!symbol || symbol->kind != SYM_AXIS) {
        scope_unknown(sema, sema->schedule, call->list->name, call->list->span, "axis");
        return false;
    }
    *axis = symbol->index;
    return sema_constant_int(sema, sema->schedule, call->list->next, "the size of a block", 1, 65536, size);
}

static void declare_grid(Sema *sema, const Ast *ast) {
    Plan *plan = sema->plan;
    Symbol *symbol = scope_add(sema, sema->schedule, SYM_TILES, ast->name, ast->name_span);
    if (!symbol)
        return;
    if (sema->tiles) {
        DiagItem *item = diag_error(sema->diag, ast->span, "duplicate-name", "a schedule has one grid");
        diag_note(item, sema->tiles->span, "the first is here");
        return;
    }
    sema->tiles = symbol;
    for (const Ast *bind = ast->list; bind; bind = bind->next) {
        Symbol *dim = bind->a->kind == AST_NAME ? scope_find(sema->schedule, bind->a->name) : NULL;
        if (dim && dim->kind == SYM_DIM) {
            if (!grows(sema, plan->factor_count, bind->span, "factors"))
                return;
            plan->factors[plan->factor_count].name = bind->name;
            plan->factors[plan->factor_count++].dim = dim->index;
            continue;
        }
        if (plan->tile_axis_count == MAX_TILE_AXES) {
            diag_error(sema->diag, bind->span, "too-many", "a grid has at most %d blocked axes",
                       MAX_TILE_AXES);
            return;
        }
        TileAxis *tile = &plan->tile_axes[plan->tile_axis_count];
        if (!blocks_of(sema, bind, &tile->axis, &tile->size))
            return;
        tile->name = bind->name;
        plan->tile_axis_count++;
        plan_field(plan, FIELD_START, tile->axis, 0);
        plan_field(plan, FIELD_LEN, tile->axis, 0);
    }
    for (const Ast *modifier = ast->list2; modifier; modifier = modifier->next) {
        if (!strcmp(modifier->name, "heaviest_first"))
            plan->heaviest_first = true;
        else if (!strcmp(modifier->name, "persistent"))
            plan->persistent = true;
        else
            diag_error(sema->diag, modifier->span, "unknown-name",
                       "a grid is 'heaviest_first' or 'persistent', not '%s'", modifier->name);
    }
}

int walk_number(const Sema *sema, const Walk *walk) {
    for (int i = 0; i < sema->plan->walk_count; i++)
        if (sema->plan->walks[i] == walk)
            return i;
    return -1;
}

static void declare_walk(Sema *sema, const Ast *ast) {
    Symbol *symbol = scope_add(sema, sema->schedule, SYM_WALK, ast->name, ast->name_span);
    if (!symbol)
        return;
    if (sema->plan->walk_count == 16) {
        diag_error(sema->diag, ast->span, "too-many", "more than 16 walks");
        return;
    }
    Walk *walk = arena_new_of(sema->arena, Walk);
    walk->name = ast->name;
    walk->span = ast->span;
    walk->block_name = ast->list->name;
    if (!blocks_of(sema, ast->list, &walk->axis, &walk->size))
        return;
    plan_field(sema->plan, FIELD_LEN, walk->axis, 0);
    symbol->walk = walk;
    sema->walk_where[sema->plan->walk_count] = ast->a;
    sema->plan->walks[sema->plan->walk_count++] = walk;
    static const Type POSITION = {ELEM_I32, 1, 1};
    Expr *positions[2];
    Local **locals[2] = {&walk->row_position, &walk->col_position};
    for (int i = 0; i < 2; i++) {
        Local *local = *locals[i] = arena_new_of(sema->arena, Local);
        local->name = i ? walk->block_name : sema->plan->tile_axis_count ? sema->plan->tile_axes[0].name : "";
        local->number = -1;
        local->type = POSITION;
        positions[i] = expr_new(sema, X_LOCAL, POSITION, ast->span);
        positions[i]->local = local;
    }
    walk->where = sema_walk_predicate(sema, walk, positions[0], positions[1], ast->span);
}

void declare_schedule(Sema *sema) {
    const Ast *list = sema->parts->schedule->list;
    for (const Ast *item = list; item; item = item->next)
        switch (item->kind) {
        case AST_CONST:
            declare_const(sema, sema->schedule, item, true);
            break;
        case AST_FUNCTION:
            declare_function(sema, sema->schedule, item);
            break;
        case AST_BUFFER:
            declare_buffer(sema, item);
            break;
        case AST_ROLE:
            declare_role(sema, item);
            break;
        case AST_PIPE:
        case AST_GRID:
        case AST_WALK:
            break;
        default:
            misplaced(sema, item, "schedule");
            break;
        }
    for (const Ast *item = list; item; item = item->next)
        if (item->kind == AST_PIPE)
            declare_pipe(sema, item);
        else if (item->kind == AST_GRID)
            declare_grid(sema, item);
    for (const Ast *item = list; item; item = item->next)
        if (item->kind == AST_WALK)
            declare_walk(sema, item);
    if (!sema->tiles)
        diag_error(sema->diag, sema->parts->schedule->name_span, "bad-grid", "schedule '%s' has no grid",
                   sema->parts->schedule->name);
}

// ---------------------------------------------------------------- rounds

static Buffer *root_of(Buffer *buffer) {
    while (buffer->over)
        buffer = buffer->over;
    return buffer;
}

void declare_rounds(Sema *sema) {
    Plan *plan = sema->plan;
    for (int i = 0; i < plan->pipe_count; i++) {
        Pipe *round[MAX_ITEMS];
        int count = 0;
        for (int k = 0; k < plan->pipe_count; k++)
            if (root_of(plan->pipes[k]->buffer) == root_of(plan->pipes[i]->buffer))
                round[count++] = plan->pipes[k];
        if (round[0] != plan->pipes[i])
            continue;
        for (int k = 0; k < count; k++) {
            Pipe *before = round[(k + count - 1) % count];
            round[k]->first_in_round = k == 0;
            if (round[k]->hands_over && (k == 0 || round[k]->before != before)) {
                DiagItem *item =
                    diag_error(sema->diag, round[k]->span, "round-order",
                               "'%s' takes over the bytes of '%s', but isn't declared right after it",
                               round[k]->name, round[k]->before->name);
                diag_note(item, round[k]->before->span, "'%s' is declared here", round[k]->before->name);
                diag_help(item, "declare pipes over shared bytes in the order in which the bytes go round");
            }
            round[k]->before = before;
            if (round[k]->array != round[0]->array || round[k]->buffer->depth != round[0]->buffer->depth)
                diag_error(sema->diag, round[k]->span, "shape-mismatch",
                           "pipes over shared bytes must have the same extents: '%s' and '%s'",
                           round[0]->name, round[k]->name);
        }
    }
}
