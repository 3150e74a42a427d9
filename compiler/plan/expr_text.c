// expr_text.c: prints each node once. Text is made bottom up into the arena; a node that is met again gets a
// name.
#include "compiler/plan/expr_text.h"
#include "compiler/plan/expr_table.h"
#include "grammar/ast.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Plan *plan;
    ExprTable uses;    // how often a node is met; counting stops at 2
    ExprTable numbers; // names given so far
    int *named;
    FILE *out;
    int indent;
    const Expr *whole;
} Writer;

enum { LONGEST_TEXT = 160 }; // a part that is longer gets a name too

static const char *text_of(Writer *writer, const Expr *expr);

const char *plan_type_text(const Plan *plan, Type type) {
    const char *elem = elem_name(type.elem);
    if (type_is_uniform(type))
        return elem;
    const char *rows = type.rows == EXTENT_ANY ? "rows" : arena_format(plan->arena, "%d", type.rows);
    if (type.cols == 1)
        return arena_format(plan->arena, "%s[%s]", elem, rows);
    const char *cols = type.cols == EXTENT_ANY ? "cols" : arena_format(plan->arena, "%d", type.cols);
    return arena_format(plan->arena, "%s[%s, %s]", elem, rows, cols);
}

const char *slot_text(const Plan *plan, const Slot *slot) {
    if (!slot->index)
        return slot->pipe->name;
    if (slot->index->kind == X_INT)
        return arena_format(plan->arena, "%s[%lld]", slot->pipe->name, (long long)slot->index->integer);
    return arena_format(plan->arena, "%s[replica]", slot->pipe->name);
}

static bool is_leaf(const Expr *expr) {
    return !expr->a && !expr->b && !expr->c && expr->arg_count == 0;
}

static void count_uses(Writer *writer, const Expr *expr) {
    if (!expr || is_leaf(expr))
        return;
    int *uses = expr_table_at(&writer->uses, expr);
    if (++*uses > 1)
        return;
    count_uses(writer, expr->a);
    count_uses(writer, expr->b);
    count_uses(writer, expr->c);
    for (int i = 0; i < expr->arg_count; i++)
        count_uses(writer, expr->args[i]);
}

static const char *field_text(Writer *writer, const Expr *expr) {
    const Plan *plan = writer->plan;
    const RecordField *field = &plan->fields[expr->index];
    switch (field->kind) {
    case FIELD_START:
        return arena_format(plan->arena, "tile.start_%s", plan->axes[field->index].name);
    case FIELD_LEN:
        return arena_format(plan->arena, "tile.len_%s", plan->axes[field->index].name);
    case FIELD_BASE:
        return arena_format(plan->arena, "tile.base_%s_%d", plan->tensors[field->index].name, field->dim);
    default:
        return "tile.seq";
    }
}

static const char *real_text(Writer *writer, double value) {
    if (isinf(value))
        return value < 0 ? "-inf" : "inf";
    return arena_format(writer->plan->arena, "%.9g", value);
}

static const char *block_text(Writer *writer, const Expr *expr) {
    static const char *const NAMES[] = {"start", "index", "first", "last", "full"};
    return arena_format(writer->plan->arena, "%s#%d.%s", expr->block->name, expr->block->number,
                        NAMES[expr->op]);
}

static const char *call_text(Writer *writer, const char *name, const Expr *expr) {
    const char *a = text_of(writer, expr->a);
    if (!expr->b)
        return arena_format(writer->plan->arena, "%s(%s)", name, a);
    return arena_format(writer->plan->arena, "%s(%s, %s)", name, a, text_of(writer, expr->b));
}

static const char *gather_text(Writer *writer, const Expr *expr) {
    const char *text = "";
    for (int i = 0; i < expr->arg_count; i++)
        text =
            arena_format(writer->plan->arena, "%s%s%s", text, i ? ", " : "", text_of(writer, expr->args[i]));
    return arena_format(writer->plan->arena, "%s[%s]", writer->plan->tensors[expr->index].name, text);
}

static const char *inner_text(Writer *writer, const Expr *expr) {
    static const char *const MATH[MATH_OP_COUNT] = {"exp", "exp2", "log", "log2",  "sqrt", "rsqrt", "tanh",
                                                    "abs", "min",  "max", "floor", "sin",  "cos"};
    static const char *const REDUCE[] = {"rowmax", "rowmin", "rowsum"};
    const Plan *plan = writer->plan;
    Arena *arena = plan->arena;
    switch (expr->kind) {
    case X_INT:
        return arena_format(arena, "%lld", (long long)expr->integer);
    case X_FLOAT:
        return real_text(writer, expr->real);
    case X_BOOL:
        return expr->integer ? "true" : "false";
    case X_LOCAL:
        return expr->local->number < 0 ? expr->local->name
                                       : arena_format(arena, "%s#%d", expr->local->name, expr->local->number);
    case X_DIM:
        return plan->dims[expr->index].name;
    case X_PARAM:
        return plan->params[expr->index].name;
    case X_FIELD:
        return field_text(writer, expr);
    case X_FACTOR:
        return arena_format(arena, "tile.%s", plan->factors[expr->index].name);
    case X_COUNT:
        return arena_format(arena, "tile.%s.count", expr->walk->name);
    case X_BLOCK:
        return block_text(writer, expr);
    case X_REPLICA:
        return "replica";
    case X_CTA:
        return "cta";
    case X_ROWS:
        return "rows";
    case X_COLS:
        return "cols";
    case X_SLOT:
        return arena_format(arena, "%s#%d", expr->slot->name, expr->slot->number);
    case X_UNARY:
        return arena_format(arena, "%s%s", ast_op_text(expr->op), text_of(writer, expr->a));
    case X_BINARY: {
        const char *a = text_of(writer, expr->a), *b = text_of(writer, expr->b);
        return arena_format(arena, "(%s %s %s)", a, ast_op_text(expr->op), b);
    }
    case X_SELECT: {
        const char *a = text_of(writer, expr->a), *b = text_of(writer, expr->b),
                   *c = text_of(writer, expr->c);
        return arena_format(arena, "(%s ? %s : %s)", a, b, c);
    }
    case X_CALL:
        return call_text(writer, MATH[expr->op], expr);
    case X_REDUCE:
        return call_text(writer, REDUCE[expr->op], expr);
    case X_CAST:
        return call_text(writer, elem_name(expr->type.elem), expr);
    case X_GATHER:
        return gather_text(writer, expr);
    }
    return "";
}

static const char *named(Writer *writer, int number) {
    return arena_format(writer->plan->arena, "%%%d", number);
}

static const char *text_of(Writer *writer, const Expr *expr) {
    if (is_leaf(expr))
        return inner_text(writer, expr);
    int number = *expr_table_at(&writer->numbers, expr);
    if (number)
        return named(writer, number);
    const char *text = inner_text(writer, expr);
    if (*expr_table_at(&writer->uses, expr) == 1 && (expr == writer->whole || strlen(text) <= LONGEST_TEXT))
        return text;
    number = *expr_table_at(&writer->numbers, expr) = ++*writer->named;
    fprintf(writer->out, "%*s%%%d = %s\n", writer->indent, "", number, text);
    return named(writer, number);
}

const char *expr_text(const Plan *plan, const Expr *expr, FILE *shared_to, int indent, int *named_so_far) {
    Writer writer = {.plan = plan, .named = named_so_far, .out = shared_to, .indent = indent, .whole = expr};
    writer.uses.arena = writer.numbers.arena = plan->arena;
    count_uses(&writer, expr);
    return text_of(&writer, expr);
}
