// declare.c: what families, kernels and schedules declare.
#include "compiler/sema/internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static Elem elem_by_name(const char *name) {
    for (int i = ELEM_I32; i < ELEM_COUNT; i++)
        if (!strcmp(elem_name((Elem)i), name))
            return (Elem)i;
    return ELEM_COUNT;
}

// The element type that a name stands for, also through an option; ELEM_COUNT: reported.
Elem declare_find_elem(Sema *sema, Scope *scope, const char *name, Span span) {
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

bool declare_grows(Sema *sema, int count, Span span, const char *what) {
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

static void note_define(Sema *sema, DiagItem *item, const char *name) {
    for (int i = 0; i < sema->options->define_count; i++)
        if (sema->defines[i].name && !strcmp(sema->defines[i].name, name))
            diag_note(item, (Span){-1, 0, 0}, "-D %s=%s says so", name, sema->defines[i].text);
}

void declare_note_defines(Sema *sema, DiagItem *item, const Ast *ast) {
    if (!ast)
        return;
    if (ast->kind == AST_NAME)
        note_define(sema, item, ast->name);
    declare_note_defines(sema, item, ast->a);
    declare_note_defines(sema, item, ast->b);
    declare_note_defines(sema, item, ast->c);
}

static Constant *add_constant(Sema *sema, const char *name, const Expr *value, const char *text, Span span) {
    if (!declare_grows(sema, sema->plan->constant_count, span, "constants"))
        return NULL;
    Constant *constant = &sema->plan->constants[sema->plan->constant_count++];
    constant->name = name;
    constant->value = value ? expr_constant(value) : 0;
    constant->elem = value ? value->type.elem : ELEM_COUNT;
    constant->text = text;
    constant->span = span;
    return constant;
}

void declare_const(Sema *sema, Scope *scope, const Ast *ast, bool overridable) {
    Define *define = overridable ? find_define(sema, ast->name) : NULL;
    Expr *value = define ? define->value : sema_expr(sema, scope, ast->a);
    if (define && !value)
        diag_error(sema->diag, ast->span, "bad-define", "-D %s=%s: '%s' is a number", define->name,
                   define->text, ast->name);
    if (value && !expr_is_constant(value)) {
        diag_error(sema->diag, ast->a->span, "not-constant", "'%s' must be a constant", ast->name);
        value = NULL;
    }
    // Before the name is known: what a constant lists is said without it, like its own value.
    Constant tuned = {0};
    if (ast->list && scope != sema->schedule)
        tune_misplaced(sema, ast);
    else if (ast->list)
        value = tune_constant(sema, scope, ast, value, define != NULL, &tuned);
    Symbol *symbol = scope_add(sema, scope, SYM_VALUE, ast->name, ast->name_span);
    if (symbol)
        symbol->expr = value;
    Constant *constant = value && overridable ? add_constant(sema, ast->name, value, NULL, ast->span) : NULL;
    if (constant) {
        constant->choices = tuned.choices;
        constant->choice_count = tuned.choice_count;
    }
}

void declare_function(Sema *sema, Scope *scope, const Ast *ast) {
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
    note_define(sema, item, option->name);
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

static const char *constant_text(Sema *sema, const Expr *value) {
    if (value->kind == X_BOOL)
        return value->integer ? "true" : "false";
    const char *text = arena_format(sema->arena, "%g", expr_constant(value));
    return value->kind == X_FLOAT && !strpbrk(text, ".en") ? arena_format(sema->arena, "%s.0", text) : text;
}

static void number_option(Sema *sema, const Ast *option, Expr *value, Span span) {
    bool allowed = false;
    Expr *first = NULL;
    for (const Ast *choice = option->list; choice && value; choice = choice->next) {
        Expr *candidate = sema_expr(sema, sema->family, choice);
        if (!candidate || candidate->kind != X_INT)
            continue;
        first = first ? first : candidate;
        allowed |= value->kind == X_INT && candidate->integer == value->integer;
    }
    if (value && !allowed)
        bad_choice(sema, option, constant_text(sema, value), span);
    Symbol *symbol = scope_add(sema, sema->family, SYM_VALUE, option->name, option->name_span);
    value = allowed ? value : first;
    if (symbol)
        symbol->expr = value;
    if (value)
        add_constant(sema, option->name, value, NULL, option->span);
}

// A setting that no option has and that comes close: it will be reported as such.
static bool is_misspelt(Sema *sema, const Ast *option) {
    for (const Ast *item = sema->parts->kernel->list; item; item = item->next)
        if (item->kind == AST_SETTING && !find_item(sema->parts->family->list, AST_OPTION, item->name) &&
            diag_closest(item->name, &option->name, 1))
            return true;
    return false;
}

static void declare_option(Sema *sema, const Ast *option) {
    const Ast *setting = find_item(sema->parts->kernel->list, AST_SETTING, option->name);
    Define *define = find_define(sema, option->name);
    bool is_type = !strcmp(option->name2, "type");
    if (!is_type && strcmp(option->name2, "int")) {
        diag_error(sema->diag, option->name2_span, "unknown-type", "an option is 'int' or 'type', not '%s'",
                   option->name2);
        return;
    }
    Span span = setting ? setting->a->span : option->span;
    if (!setting && !define && !is_misspelt(sema, option)) {
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
    if (!symbol || !declare_grows(sema, sema->plan->axis_count, ast->span, "axes"))
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
            scope_unknown(sema, sema->family, ast->name2, ast->name2_span, "dim");
        else
            divides = whole->index;
    }
    Symbol *symbol = scope_add(sema, sema->family, SYM_DIM, ast->name, ast->name_span);
    if (!symbol || !declare_grows(sema, sema->plan->dim_count, ast->span, "dims"))
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
    if (!symbol || !declare_grows(sema, sema->plan->tensor_count, ast->span, "tensors"))
        return;
    symbol->index = sema->plan->tensor_count;
    Tensor *tensor = &sema->plan->tensors[sema->plan->tensor_count++];
    tensor->name = ast->name;
    tensor->direction = ast->op;
    tensor->is_optional = ast->flag;
    tensor->from_kernel = from_kernel;
    tensor->span = ast->span;
    if (tensor->is_optional && tensor->direction != TENSOR_OUT) {
        DiagItem *item = diag_error(sema->diag, ast->span, "optional-input",
                                    "tensor '%s' is read, so it can't be left out", ast->name);
        diag_help(item, "only outputs are optional: nothing is stored when they are left out");
    }
    Elem elem = declare_find_elem(sema, scope, ast->a->name, ast->a->span);
    tensor->elem = elem == ELEM_COUNT ? ELEM_F32 : elem;
    if (tensor->elem == ELEM_BOOL)
        diag_error(sema->diag, ast->a->span, "unknown-type", "a tensor can't hold bool; use i32");
    for (const Ast *dim = ast->a->list; dim; dim = dim->next) {
        if (tensor->rank == MAX_TENSOR_DIMS) {
            diag_error(sema->diag, dim->span, "too-many", "a tensor has at most %d dims", MAX_TENSOR_DIMS);
            tensor->is_broken = true;
            break;
        }
        if (tensor_dim(sema, scope, dim, &tensor->dims[tensor->rank]))
            tensor->rank++;
        else
            tensor->is_broken = true;
    }
    tensor->is_broken |= !ast->a->list;
    if (!ast->a->list)
        diag_error(sema->diag, ast->a->span, "shape-mismatch", "tensor '%s' needs its dims: %s[...]",
                   ast->name, ast->a->name);
}

static void declare_param(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *value = ast->a ? sema_expr(sema, scope, ast->a) : NULL;
    Symbol *symbol = scope_add(sema, scope, SYM_PARAM, ast->name, ast->name_span);
    if (!symbol || !declare_grows(sema, sema->plan->param_count, ast->span, "params"))
        return;
    symbol->index = sema->plan->param_count;
    Param *param = &sema->plan->params[sema->plan->param_count++];
    param->name = ast->name;
    param->span = ast->span;
    param->elem = elem_by_name(ast->name2);
    if (param->elem != ELEM_F32 && param->elem != ELEM_I32) {
        diag_error(sema->diag, ast->name2_span, "unknown-type", "a param is f32 or i32, not '%s'",
                   ast->name2);
        param->elem = ELEM_F32;
    }
    param->is_positive = ast->b != NULL;
    if (ast->b && ast->b->integer != 0)
        diag_error(sema->diag, ast->b->span, "bad-bound",
                   "the one bound that a param can have is 0: '> 0' promises that it is positive");
    if (value && !expr_is_constant(value)) {
        diag_error(sema->diag, ast->a->span, "not-constant", "the default of a param must be a constant");
        return;
    }
    if (value && value->kind != X_INT && (value->kind == X_BOOL || param->elem == ELEM_I32)) {
        diag_error(sema->diag, ast->a->span, "type-mismatch", "param '%s' is %s; its default can't be %s",
                   ast->name, elem_name(param->elem),
                   ast_text(sema->diag->sources, sema->arena, ast->a->span));
        return;
    }
    param->has_default = value != NULL;
    param->default_value = value ? expr_constant(value) : 0;
    if (value && param->is_positive &&
        !(param->elem == ELEM_I32 ? param->default_value > 0
                                  : param->default_value >= FLT_MIN && param->default_value <= FLT_MAX))
        diag_error(sema->diag, ast->a->span, "bad-bound",
                   "param '%s' is declared > 0; its default is %g, not a normal number above 0", ast->name,
                   param->default_value);
}

static void declare_hook(Sema *sema, const Ast *ast) {
    Symbol *symbol = scope_add(sema, sema->family, SYM_HOOK, ast->name, ast->name_span);
    if (!symbol)
        return;
    symbol->ast = ast;
    symbol->scope = sema->family;
    if (strcmp(ast->name2, "f32") && strcmp(ast->name2, "i32") && strcmp(ast->name2, "bool"))
        diag_error(sema->diag, ast->name2_span, "unknown-type", "a hook gives f32, i32 or bool, not '%s'",
                   ast->name2);
}

static void declare_twice(Sema *sema, Span span, const char *name, Span first) {
    DiagItem *item = diag_error(sema->diag, span, "duplicate-name", "'%s' is defined twice", name);
    diag_note(item, first, "first defined here");
}

void declare_misplaced(Sema *sema, const Ast *item, const char *where) {
    static const char *const HOLDS[][2] = {
        {"family", "a family holds option, axis, dim, tensor, param, hook, const, fn and reference"},
        {"schedule", "a schedule holds smem, tmem, pipe, grid, walk, role, const and fn"},
        {"kernel",
         "a kernel holds the family's options and hooks, and param, tensor, const, fn and schedule; buffers, "
         "pipes and roles belong in a schedule"},
    };
    DiagItem *error = diag_error(sema->diag, item->span, "misplaced", "this can't stand in a %s", where);
    for (size_t i = 0; i < sizeof HOLDS / sizeof HOLDS[0]; i++)
        if (!strcmp(where, HOLDS[i][0]))
            diag_help(error, "%s", HOLDS[i][1]);
}

void declare_family(Sema *sema) {
    const Ast *reference = NULL;
    for (const Ast *item = sema->parts->family->list; item; item = item->next)
        if (item->kind == AST_OPTION)
            declare_option(sema, item);
    for (const Ast *item = sema->parts->family->list; item; item = item->next)
        switch (item->kind) {
        case AST_OPTION:
            break;
        case AST_REFERENCE:
            if (reference)
                declare_twice(sema, item->span, "reference", reference->span);
            reference = item;
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
            declare_misplaced(sema, item, "family");
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
        declare_twice(sema, math->name_span, math->name, hook->math->name_span);
        return;
    }
    for (const Ast *own = math->list; own; own = own->next)
        if (!find_item(hook->ast->list, AST_NAME, own->name)) {
            DiagItem *item = diag_error(sema->diag, own->span, "unknown-parameter",
                                        "hook '%s' has no parameter '%s'", math->name, own->name);
            const char *known[MAX_ITEMS];
            int known_count = 0;
            for (const Ast *one = hook->ast->list; one && known_count < MAX_ITEMS; one = one->next)
                known[known_count++] = one->name;
            diag_note(item, hook->ast->span, "declared here; name any of these, in any order");
            const char *closest = diag_closest(own->name, known, known_count);
            if (closest)
                diag_help(item, "did you mean '%s'?", closest);
        }
    hook->math = math;
    hook->math_scope = sema->kernel;
}

// What the family declares for the kernel and for who launches it keeps its name: the kernel's own would
// stand beside it in some places and not in others.
static void check_own_name(Sema *sema, const Ast *own) {
    for (const Ast *item = sema->parts->family->list; item; item = item->next) {
        bool is_common = item->kind == AST_OPTION || item->kind == AST_AXIS || item->kind == AST_DIM ||
                         item->kind == AST_TENSOR || item->kind == AST_PARAM || item->kind == AST_HOOK;
        if (!is_common || strcmp(item->name, own->name))
            continue;
        DiagItem *error = diag_error(sema->diag, own->name_span, "duplicate-name",
                                     "family '%s' has a '%s' already", sema->parts->family->name, own->name);
        diag_note(error, item->span, "declared here");
        if (item->kind == AST_OPTION)
            diag_help(error, "to choose its value: %s VALUE;", own->name);
        else if (item->kind == AST_HOOK)
            diag_help(error, "to replace it: %s (PARAMETERS) => VALUE;", own->name);
        else
            diag_help(error, "choose another name");
        return;
    }
}

void declare_kernel(Sema *sema) {
    for (const Ast *item = sema->parts->kernel->list; item; item = item->next) {
        if (item->kind == AST_TENSOR || item->kind == AST_PARAM || item->kind == AST_CONST ||
            item->kind == AST_FUNCTION)
            check_own_name(sema, item);
        switch (item->kind) {
        case AST_SETTING: {
            const Ast *first = find_item(sema->parts->kernel->list, AST_SETTING, item->name);
            if (first != item) {
                DiagItem *error = diag_error(sema->diag, item->name_span, "duplicate-name",
                                             "'%s' is said twice", item->name);
                diag_note(error, first->name_span, "first said here");
                diag_help(error, "keep one of the two");
                break;
            }
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
            declare_misplaced(sema, item, "kernel");
            break;
        }
    }
}
