// expr.c: expressions of the syntax tree to typed expressions; functions and hooks are expanded in place.
#include "compiler/sema/internal.h"

#include <math.h>
#include <string.h>

static const Type I32 = {ELEM_I32, 1, 1}, F32 = {ELEM_F32, 1, 1}, BOOL = {ELEM_BOOL, 1, 1};

bool sema_constant_int(Sema *sema, Scope *scope, const Ast *ast, const char *what, int64_t low, int64_t high,
                       int64_t *value) {
    Expr *expr = sema_expr(sema, scope, ast);
    if (!expr)
        return false;
    if (expr->kind != X_INT) {
        declare_note_defines(
            sema, diag_error(sema->diag, ast->span, "not-constant", "%s must be an integer constant", what),
            ast);
        return false;
    }
    if (expr->integer < low || expr->integer > high) {
        DiagItem *item =
            diag_error(sema->diag, ast->span, "constant-range", "%s is %lld; it must be in %lld..%lld", what,
                       (long long)expr->integer, (long long)low, (long long)high);
        declare_note_defines(sema, item, ast);
        return false;
    }
    *value = expr->integer;
    return true;
}

// ---------------------------------------------------------------- names

const char *sema_slot_name(Sema *sema, Scope *scope, const Ast *target) {
    if (target->kind == AST_NAME)
        return target->name;
    if (!target->list || target->list->next || target->a->kind != AST_NAME) {
        diag_error(sema->diag, target->span, "bad-slot", "a slot is a name, or a name with one index");
        return NULL;
    }
    Expr *index = sema_expr(sema, scope, target->list);
    if (!index)
        return NULL;
    if (index->kind != X_INT) {
        diag_error(sema->diag, target->list->span, "not-constant", "the index of a slot must be a constant");
        return NULL;
    }
    return arena_format(sema->arena, "%s[%lld]", target->a->name, (long long)index->integer);
}

static bool has_indexed_slots(const Scope *scope, const char *name) {
    size_t length = strlen(name);
    for (; scope; scope = scope->parent)
        for (const Symbol *symbol = scope->symbols; symbol; symbol = symbol->next)
            if (symbol->kind == SYM_SLOT && !strncmp(symbol->name, name, length) &&
                symbol->name[length] == '[')
                return true;
    return false;
}

// The slot that a name or name[index] stands for; NULL when it is something else, or a mistake that was
// reported.
static Symbol *slot_symbol(Sema *sema, Scope *scope, const Ast *ast) {
    const char *name = ast->kind == AST_NAME ? ast->name : NULL;
    if (ast->kind == AST_INDEX && ast->a->kind == AST_NAME && has_indexed_slots(scope, ast->a->name))
        name = sema_slot_name(sema, scope, ast);
    Symbol *symbol = name ? scope_find(scope, name) : NULL;
    return symbol && symbol->kind == SYM_SLOT ? symbol : NULL;
}

static bool is_gone(Sema *sema, const Slot *slot, Span span) {
    for (Held *held = sema->held; held; held = held->next)
        if (held->slot == slot && held->gone) {
            slot_report_gone(sema, held, span);
            return true;
        }
    return false;
}

// The take that would have bound this name, or the first of its array, was wrong and has been reported.
static bool is_reported(Sema *sema, Scope *scope, const Ast *ast) {
    bool is_index = ast->kind == AST_INDEX && ast->a->kind == AST_NAME;
    const char *name = ast->kind == AST_NAME ? ast->name
                       : is_index            ? arena_format(sema->arena, "%s[0]", ast->a->name)
                                             : NULL;
    const Symbol *symbol = name ? scope_find(scope, name) : NULL;
    return symbol && symbol->kind == SYM_VALUE && !symbol->expr;
}

Slot *sema_slot(Sema *sema, Scope *scope, const Ast *ast) {
    int errors = sema->diag->error_count;
    const Symbol *symbol = slot_symbol(sema, scope, ast);
    if (!symbol && is_reported(sema, scope, ast))
        return NULL;
    if (!symbol && sema->diag->error_count == errors) {
        const char *text = ast_text(sema->diag->sources, sema->arena, ast->span);
        DiagItem *item = diag_error(sema->diag, ast->span, "unknown-slot",
                                    "'%s' is not a slot that this role holds", text);
        diag_help(
            item,
            "a slot is bound by 'take %s = pipe;' and may be used until it is freed, within the same block",
            text);
    }
    if (!symbol || !symbol->slot || is_gone(sema, symbol->slot, ast->span))
        return NULL;
    return symbol->slot;
}

static Expr *read_slot(Sema *sema, Slot *slot, Span span) {
    if (is_gone(sema, slot, span))
        return NULL;
    if (slot->filling) {
        diag_error(sema->diag, span, "slot-filling", "slot '%s' is being filled; it has no value to read yet",
                   slot->name);
        return NULL;
    }
    Elem elem = elem_is_float(slot->pipe->buffer->elem) ? ELEM_F32 : slot->pipe->buffer->elem;
    Expr *expr =
        expr_new(sema, X_SLOT, (Type){elem, slot->pipe->buffer->rows, slot->pipe->buffer->cols}, span);
    expr->slot = slot;
    sema->role->uses_values = true;
    sema->role->touches_tmem |= slot->pipe->buffer->space == SPACE_TMEM;
    return expr;
}

static Expr *name_value(Sema *sema, Scope *scope, const Ast *ast) {
    if (sema->role && (!strcmp(ast->name, "rows") || !strcmp(ast->name, "cols"))) {
        bool rows = ast->name[0] == 'r';
        sema->role->uses_values = true;
        return expr_new(sema, rows ? X_ROWS : X_COLS,
                        (Type){ELEM_I32, rows ? EXTENT_ANY : 1, rows ? 1 : EXTENT_ANY}, ast->span);
    }
    Symbol *symbol = scope_find(scope, ast->name);
    if (!symbol) {
        scope_unknown(sema, scope, ast->name, ast->name_span, "value");
        return NULL;
    }
    Expr *expr;
    switch (symbol->kind) {
    case SYM_VALUE:
        if (!symbol->expr) // its declaration was wrong and has been reported
            return NULL;
        expr = arena_new_of(sema->arena, Expr);
        *expr = *symbol->expr;
        // Shared arguments stay one node, so that they are computed once.
        return expr_is_constant(expr) ? (expr->span = ast->span, expr) : symbol->expr;
    case SYM_DIM:
        expr = expr_new(sema, X_DIM, I32, ast->span);
        expr->index = symbol->index;
        return expr;
    case SYM_PARAM:
        expr = expr_new(sema, X_PARAM, (Type){sema->plan->params[symbol->index].elem, 1, 1}, ast->span);
        expr->index = symbol->index;
        return expr;
    case SYM_SLOT:
        return symbol->slot ? read_slot(sema, symbol->slot, ast->span) : NULL;
    default:
        diag_error(sema->diag, ast->span, "not-a-value", "'%s' is %s, not a value", ast->name,
                   symbol_kind_text(symbol->kind));
        return NULL;
    }
}

Expr *sema_field(Sema *sema, FieldKind kind, int index, int dim, Span span) {
    Expr *expr = expr_new(sema, X_FIELD, I32, span);
    expr->index = plan_field(sema->plan, kind, index, dim);
    return expr;
}

// ---------------------------------------------------------------- members

// Says what a tile has: what the grid is over, then its walks, then what every tile has.
static void no_tile_member(Sema *sema, const Ast *ast) {
    enum { MOST = 4 * MAX_ITEMS };
    const Plan *plan = sema->plan;
    const char *names[MOST], *text = "";
    int count = 0;
    for (int i = 0; i < plan->factor_count; i++)
        names[count++] = plan->factors[i].name;
    for (int i = 0; i < plan->tile_axis_count; i++)
        names[count++] = plan->tile_axes[i].name;
    for (int i = 0; i < plan->walk_count; i++)
        names[count++] = plan->walks[i]->name;
    names[count++] = "seq";
    for (int i = 0; i < plan->axis_count; i++)
        names[count++] = arena_format(sema->arena, "len_%s", plan->axes[i].name);
    DiagItem *item =
        diag_error(sema->diag, ast->name_span, "unknown-member", "a tile has no '%s'", ast->name);
    const char *closest = diag_closest(ast->name, names, count);
    if (closest) {
        diag_help(item, "did you mean '%s'?", closest);
        return;
    }
    for (int i = 0; i < count; i++)
        text = arena_format(sema->arena, "%s%s%s", text,
                            i == 0           ? ""
                            : i == count - 1 ? " and "
                                             : ", ",
                            names[i]);
    diag_help(item, "it has %s", text);
}

// t.seq, t.len_<axis>, t.<factor>, t.<block position>
static Expr *tile_member(Sema *sema, const Ast *ast) {
    Plan *plan = sema->plan;
    if (!strcmp(ast->name, "seq"))
        return sema_field(sema, FIELD_SEQ, 0, 0, ast->span);
    for (int i = 0; i < plan->factor_count; i++)
        if (!strcmp(plan->factors[i].name, ast->name)) {
            Expr *expr = expr_new(sema, X_FACTOR, I32, ast->span);
            expr->index = i;
            return expr;
        }
    for (int i = 0; i < plan->tile_axis_count; i++)
        if (!strcmp(plan->tile_axes[i].name, ast->name))
            return sema_field(sema, FIELD_START, plan->tile_axes[i].axis, 0, ast->span);
    if (!strncmp(ast->name, "len_", 4))
        for (int i = 0; i < plan->axis_count; i++)
            if (!strcmp(plan->axes[i].name, ast->name + 4))
                return sema_field(sema, FIELD_LEN, i, 0, ast->span);
    no_tile_member(sema, ast);
    return NULL;
}

static Expr *block_member(Sema *sema, Block *block, const Ast *ast) {
    static const char *const NAMES[] = {
        [BLOCK_INDEX] = "index", [BLOCK_FIRST] = "first", [BLOCK_LAST] = "last", [BLOCK_FULL] = "full"};
    int field = -1;
    if (!strcmp(ast->name, block->walk->block_name))
        field = BLOCK_START;
    for (int i = BLOCK_INDEX; i <= BLOCK_FULL; i++)
        if (!strcmp(ast->name, NAMES[i]))
            field = i;
    if (field < 0) {
        DiagItem *item = diag_error(sema->diag, ast->name_span, "unknown-member",
                                    "a block of '%s' has no '%s'", block->walk->name, ast->name);
        diag_help(item, "it has %s (its first position), index, first, last and full",
                  block->walk->block_name);
        return NULL;
    }
    block->reads_full |= field == BLOCK_FULL;
    Expr *expr =
        expr_new(sema, X_BLOCK, field == BLOCK_START || field == BLOCK_INDEX ? I32 : BOOL, ast->span);
    expr->op = field;
    expr->block = block;
    return expr;
}

Walk *sema_walk_of(Sema *sema, Scope *scope, const Ast *ast) {
    if (ast->kind != AST_MEMBER || ast->a->kind != AST_NAME)
        return NULL;
    Symbol *tile = scope_find(scope, ast->a->name);
    if (!tile || tile->kind != SYM_TILE)
        return NULL;
    for (int i = 0; i < sema->plan->walk_count; i++)
        if (!strcmp(sema->plan->walks[i]->name, ast->name))
            return sema->plan->walks[i];
    return NULL;
}

static Expr *member_value(Sema *sema, Scope *scope, const Ast *ast) {
    Walk *walk = sema_walk_of(sema, scope, ast->a);
    if (walk) {
        if (!strcmp(ast->name, "count")) {
            Expr *expr = expr_new(sema, X_COUNT, I32, ast->span);
            expr->walk = walk;
            return expr;
        }
        diag_error(sema->diag, ast->name_span, "unknown-member",
                   "a walk has count and has(row, col), not '%s'", ast->name);
        return NULL;
    }
    if (ast->a->kind == AST_NAME) {
        Symbol *symbol = scope_find(scope, ast->a->name);
        if (!symbol) {
            scope_unknown(sema, scope, ast->a->name, ast->a->span, "tile or block");
            return NULL;
        }
        if (symbol->kind == SYM_TILE)
            return tile_member(sema, ast);
        if (symbol->kind == SYM_BLOCK)
            return block_member(sema, symbol->block, ast);
    }
    diag_error(sema->diag, ast->span, "unknown-member", "only tiles, blocks and walks have members");
    return NULL;
}

// The walk's predicate at a position: `where`, and the position lies within the sequence.
Expr *sema_walk_predicate(Sema *sema, Walk *walk, Expr *row, Expr *col, Span span) {
    if (!row || !col)
        return NULL;
    const Ast *where = sema->walk_where[walk_number(sema, walk)];
    Expr *inside = expr_binary(sema, '<', col, sema_field(sema, FIELD_LEN, walk->axis, 0, span), span);
    if (!where)
        return inside;
    Scope *scope = scope_new(sema, sema->schedule);
    const char *row_name = sema->plan->tile_axis_count ? sema->plan->tile_axes[0].name : "";
    Symbol *symbol = scope_add(sema, scope, SYM_VALUE, row_name, walk->span);
    if (symbol)
        symbol->expr = row;
    symbol = scope_add(sema, scope, SYM_VALUE, walk->block_name, walk->span);
    if (!symbol)
        return NULL;
    symbol->expr = col;
    Plan *plan = sema->plan;
    for (int i = 0; i < plan->factor_count; i++) {
        Expr *factor = expr_new(sema, X_FACTOR, I32, span);
        factor->index = i;
        if ((symbol = scope_add(sema, scope, SYM_VALUE, plan->factors[i].name, walk->span)))
            symbol->expr = factor;
    }
    for (int i = 0; i < plan->axis_count; i++)
        if ((symbol = scope_add(sema, scope, SYM_VALUE,
                                arena_format(sema->arena, "len_%s", plan->axes[i].name), walk->span)))
            symbol->expr = sema_field(sema, FIELD_LEN, i, 0, span);
    if ((symbol = scope_add(sema, scope, SYM_VALUE, "seq", walk->span)))
        symbol->expr = sema_field(sema, FIELD_SEQ, 0, 0, span);
    Expr *value = expr_cast(sema, sema_expr(sema, scope, where), ELEM_BOOL, where->span);
    return expr_binary(sema, OP_AND, value, inside, span);
}

// ---------------------------------------------------------------- calls

static const struct {
    const char *name;
    MathOp op;
    int args;
} MATH[] = {
    {"exp", MATH_EXP, 1},   {"exp2", MATH_EXP2, 1},   {"log", MATH_LOG, 1},     {"log2", MATH_LOG2, 1},
    {"sqrt", MATH_SQRT, 1}, {"rsqrt", MATH_RSQRT, 1}, {"tanh", MATH_TANH, 1},   {"abs", MATH_ABS, 1},
    {"min", MATH_MIN, 2},   {"max", MATH_MAX, 2},     {"floor", MATH_FLOOR, 1}, {"sin", MATH_SIN, 1},
    {"cos", MATH_COS, 1},
};

static const struct {
    const char *name;
    ReduceOp op;
} REDUCTIONS[] = {{"rowmax", REDUCE_MAX}, {"rowmin", REDUCE_MIN}, {"rowsum", REDUCE_SUM}};

const char *sema_math_name(int i) {
    const int math = sizeof MATH / sizeof MATH[0],
              all = math + (int)(sizeof REDUCTIONS / sizeof REDUCTIONS[0]);
    return i < math ? MATH[i].name : i < all ? REDUCTIONS[i - math].name : NULL;
}

static int list_length(const Ast *list) {
    int count = 0;
    for (; list; list = list->next)
        count++;
    return count;
}

static bool has_arguments(Sema *sema, const Ast *call, const char *name, int wanted) {
    int given = list_length(call->list);
    if (given == wanted)
        return true;
    diag_error(sema->diag, call->span, "argument-count", "'%s' takes %d argument%s, not %d", name, wanted,
               wanted == 1 ? "" : "s", given);
    return false;
}

static Expr *reduce(Sema *sema, ReduceOp op, Expr *a, Span span) {
    if (!a)
        return NULL;
    if (a->type.cols == EXTENT_ANY) {
        DiagItem *item =
            diag_error(sema->diag, span, "shape-mismatch",
                       "nothing says how many columns a row of this has: it is %s", type_text(sema, a->type));
        diag_help(item,
                  "a taken tile in the same expression says it, or a variable: var x : f32[M, N] = ...;");
        return NULL;
    }
    if (a->type.cols == 1 || a->type.elem == ELEM_BOOL) {
        DiagItem *item =
            diag_error(sema->diag, span, "shape-mismatch", "a row reduction needs a tile of numbers, not %s",
                       type_text(sema, a->type));
        diag_help(
            item,
            "rowmax, rowmin and rowsum go over the columns of a tile: a slot, or what is computed from one");
        return NULL;
    }
    Expr *expr = expr_new(sema, X_REDUCE, (Type){a->type.elem, a->type.rows, 1}, span);
    expr->op = op;
    expr->a = a;
    return expr;
}

enum { MOST_EXPANSIONS = 10000 };

// Binds arguments to parameters by position, then evaluates `body` in a scope below `definition`.
static Expr *expand(Sema *sema, Symbol *callee, Scope *definition, const Ast *parameters, const Ast *body,
                    Expr **args, Span span) {
    if (callee->inlining) {
        diag_error(sema->diag, span, "recursion",
                   "'%s' calls itself; functions are expanded in place and can't recur", callee->name);
        return NULL;
    }
    if (++sema->expanded > MOST_EXPANSIONS) {
        if (sema->expanded == MOST_EXPANSIONS + 1)
            diag_error(sema->diag, span, "too-many", "functions expand in place to more than %d bodies",
                       MOST_EXPANSIONS);
        return NULL;
    }
    Scope *scope = scope_new(sema, definition);
    int i = 0;
    for (const Ast *parameter = parameters; parameter; parameter = parameter->next, i++) {
        Symbol *symbol = scope_add(sema, scope, SYM_VALUE, parameter->name, parameter->span);
        if (!symbol)
            return NULL;
        symbol->expr = args[i];
    }
    callee->inlining = true;
    Expr *value = sema_expr(sema, scope, body);
    callee->inlining = false;
    return value;
}

// A hook gives a value for each element of the tiles that it is called with, also when it doesn't use them.
static Expr *spread(Sema *sema, Expr *value, Expr **args, int count, Span span) {
    if (!value)
        return NULL;
    Type type = value->type;
    for (int i = 0; i < count; i++)
        if (args[i]->type.cols > 1 && !type_join(sema, type, args[i]->type, span, &type))
            return NULL;
    if (type.rows == value->type.rows && type.cols == value->type.cols)
        return value;
    Expr *expr = expr_new(sema, X_SELECT, type, span);
    expr->a = expr_bool(sema, true, span);
    expr->b = expr->c = value;
    return expr;
}

static Expr *call_hook(Sema *sema, Symbol *hook, Expr **args, Span span) {
    Expr *value;
    if (hook->math) {
        // The kernel names the parameters that it needs, in any order.
        Expr *chosen[32] = {0};
        int count = 0;
        for (const Ast *own = hook->math->list; own && count < 32; own = own->next, count++) {
            int i = 0;
            for (const Ast *formal = hook->ast->list; formal; formal = formal->next, i++)
                if (!strcmp(formal->name, own->name))
                    chosen[count] = args[i];
            if (!chosen[count])
                return NULL; // reported when the kernel was declared
        }
        value = expand(sema, hook, hook->math_scope, hook->math->list, hook->math->a, chosen, span);
    } else {
        value = expand(sema, hook, hook->scope, hook->ast->list, hook->ast->a, args, span);
    }
    Elem elem = !strcmp(hook->ast->name2, "bool")  ? ELEM_BOOL
                : !strcmp(hook->ast->name2, "i32") ? ELEM_I32
                                                   : ELEM_F32;
    Span body = hook->math ? hook->math->a->span : hook->ast->a->span;
    return spread(sema, expr_cast(sema, value, elem, body), args, list_length(hook->ast->list), span);
}

static Expr *call_value(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *args[32] = {0};
    int count = 0;
    bool bad = false;
    for (const Ast *argument = ast->list; argument; argument = argument->next, count++) {
        if (count == 32) {
            diag_error(sema->diag, ast->span, "argument-count", "more than 32 arguments");
            return NULL;
        }
        args[count] = sema_expr(sema, scope, argument);
        bad |= !args[count];
    }
    if (ast->a->kind == AST_MEMBER && !strcmp(ast->a->name, "has")) {
        Walk *walk = sema_walk_of(sema, scope, ast->a->a);
        if (walk && has_arguments(sema, ast, "has", 2) && !bad)
            return sema_walk_predicate(sema, walk, args[0], args[1], ast->span);
        if (walk)
            return NULL;
    }
    if (ast->a->kind != AST_NAME) {
        diag_error(sema->diag, ast->a->span, "not-callable", "this can't be called");
        return NULL;
    }
    const char *name = ast->a->name;
    Symbol *symbol = scope_find(scope, name);
    if (symbol && (symbol->kind == SYM_FUNCTION || symbol->kind == SYM_HOOK)) {
        if (!has_arguments(sema, ast, name, list_length(symbol->ast->list)) || bad)
            return NULL;
        return symbol->kind == SYM_HOOK
                   ? call_hook(sema, symbol, args, ast->span)
                   : expand(sema, symbol, symbol->scope, symbol->ast->list, symbol->ast->a, args, ast->span);
    }
    for (size_t i = 0; i < sizeof MATH / sizeof MATH[0]; i++)
        if (!strcmp(MATH[i].name, name))
            return has_arguments(sema, ast, name, MATH[i].args) && !bad
                       ? expr_math(sema, MATH[i].op, args[0], args[1], ast->span)
                       : NULL;
    for (size_t i = 0; i < sizeof REDUCTIONS / sizeof REDUCTIONS[0]; i++)
        if (!strcmp(REDUCTIONS[i].name, name))
            return has_arguments(sema, ast, name, 1) && !bad
                       ? reduce(sema, REDUCTIONS[i].op, args[0], ast->span)
                       : NULL;
    if (!strcmp(name, "f32") || !strcmp(name, "i32"))
        return has_arguments(sema, ast, name, 1) && !bad
                   ? expr_cast(sema, args[0], name[0] == 'f' ? ELEM_F32 : ELEM_I32, ast->list->span)
                   : NULL;
    scope_unknown(sema, scope, name, ast->a->span, "function or hook");
    return NULL;
}

// An element of a tensor: one position a dim.
static Expr *gather(Sema *sema, Scope *scope, const Ast *ast, int index) {
    Tensor *tensor = &sema->plan->tensors[index];
    if (tensor->direction == TENSOR_OUT) {
        diag_error(sema->diag, ast->span, "write-only", "tensor '%s' is an output; it can't be read",
                   tensor->name);
        return NULL;
    }
    if (list_length(ast->list) != tensor->rank) {
        tile_wrong_rank(sema, tensor, ast->span, list_length(ast->list));
        return NULL;
    }
    Expr *expr = expr_new(sema, X_GATHER, F32, ast->span);
    expr->type.elem = elem_is_float(tensor->elem) ? ELEM_F32 : tensor->elem;
    expr->index = index;
    expr->args = arena_array(sema->arena, Expr *, tensor->rank);
    for (const Ast *at = ast->list; at; at = at->next) {
        Expr *position = sema_expr(sema, scope, at);
        if (!position)
            return NULL;
        if (position->type.elem != ELEM_I32) {
            diag_error(sema->diag, at->span, "type-mismatch", "a position must be i32, not %s",
                       type_text(sema, position->type));
            return NULL;
        }
        if (!type_join(sema, expr->type, position->type, at->span, &expr->type))
            return NULL;
        expr->args[expr->arg_count] = position;
        TensorDim *dim = &tensor->dims[expr->arg_count++];
        if (dim->kind == DIM_AXIS) {
            plan_field(sema->plan, FIELD_BASE, index, expr->arg_count - 1);
            plan_field(sema->plan, FIELD_LEN, dim->index, 0);
        }
    }
    return expr;
}

static Expr *index_value(Sema *sema, Scope *scope, const Ast *ast) {
    if (ast->a->kind == AST_NAME) {
        Symbol *symbol = scope_find(scope, ast->a->name);
        if (symbol && symbol->kind == SYM_TENSOR)
            return gather(sema, scope, ast, symbol->index);
        int errors = sema->diag->error_count;
        const Symbol *slot = slot_symbol(sema, scope, ast);
        if (slot || sema->diag->error_count != errors)
            return slot && slot->slot ? read_slot(sema, slot->slot, ast->span) : NULL;
        if (!symbol) {
            scope_unknown(sema, scope, ast->a->name, ast->a->span, "tensor or slot");
            return NULL;
        }
    }
    diag_error(sema->diag, ast->span, "not-indexable", "only tensors and slots take an index");
    return NULL;
}

static Expr *read_expr(Sema *sema, Scope *scope, const Ast *ast) {
    Expr *a, *b;
    switch (ast->kind) {
    case AST_INT:
        return expr_int(sema, ast->integer, ast->span);
    case AST_FLOAT:
        return expr_float(sema, ast->real, ast->span);
    case AST_BOOL:
        return expr_bool(sema, ast->integer != 0, ast->span);
    case AST_INF:
        return expr_float(sema, INFINITY, ast->span);
    case AST_NAME:
        return name_value(sema, scope, ast);
    case AST_UNARY:
        return expr_unary(sema, ast->op, sema_expr(sema, scope, ast->a), ast->span);
    case AST_BINARY:
        if (ast->op == '@')
            return expr_binary(sema, '@', expr_bool(sema, false, ast->span),
                               expr_bool(sema, false, ast->span), ast->span);
        a = sema_expr(sema, scope, ast->a);
        b = sema_expr(sema, scope, ast->b);
        return expr_binary(sema, ast->op, a, b, ast->span);
    case AST_CHOICE: {
        Expr *condition = sema_expr(sema, scope, ast->a);
        a = sema_expr(sema, scope, ast->b);
        b = sema_expr(sema, scope, ast->c);
        return expr_select(sema, condition, a, b, ast->span);
    }
    case AST_CALL:
        return call_value(sema, scope, ast);
    case AST_INDEX:
        return index_value(sema, scope, ast);
    case AST_MEMBER:
        return member_value(sema, scope, ast);
    case AST_TRANSPOSE:
        diag_error(sema->diag, ast->span, "product-place",
                   "'^T' can stand only on an operand of a product '@'");
        return NULL;
    case AST_REDUCE:
        diag_error(sema->diag, ast->span, "reference-only",
                   "a reduction over an index can stand only in a reference; in a role use rowmax, rowmin or "
                   "rowsum");
        return NULL;
    default:
        diag_error(sema->diag, ast->span, "not-a-value", "this is not a value");
        return NULL;
    }
}

enum { DEEPEST = 2000 };

static int depth_of(Expr *expr) {
    if (!expr || expr->depth)
        return expr ? expr->depth : 0;
    int deepest = 0;
    Expr *const parts[] = {expr->a, expr->b, expr->c};
    for (int i = 0; i < 3 + expr->arg_count; i++) {
        int depth = depth_of(i < 3 ? parts[i] : expr->args[i - 3]);
        deepest = depth > deepest ? depth : deepest;
    }
    return expr->depth = deepest + 1;
}

// Functions expand in place, so what is nested neither in the file nor in its functions may be deep all the
// same.
Expr *sema_expr(Sema *sema, Scope *scope, const Ast *ast) {
    sema->nested++;
    Expr *expr = sema->nested > DEEPEST ? NULL : read_expr(sema, scope, ast);
    bool is_too_deep = sema->nested > DEEPEST || depth_of(expr) > DEEPEST;
    if (is_too_deep && !sema->is_too_deep) {
        sema->is_too_deep = true;
        diag_error(sema->diag, ast->span, "too-many",
                   "this is nested too deeply, with the functions that it calls expanded in place");
    }
    sema->nested--;
    return is_too_deep ? NULL : expr;
}
