// interval.c: the class of a block. The mask is evaluated over the block's rectangle of positions by interval
// arithmetic, in 64 bits, as code that runs once a block: must = every element is seen, may = some element
// could be. Sound: where an expression can't be bounded, may is true and must is false, and the block counts
// as partial.
#include "compiler/lower/internal.h"

#include "grammar/ast.h"

// Both ends are within 32 bits. `least` and `most` are what is known of them while compiling.
typedef struct {
    Value low, high; // i64
    int64_t least, most;
} Range;

typedef struct {
    Value must, may; // i1
} Truth;

enum { MOST_KNOWN = 1024 }; // a power of two

typedef struct {
    Lower *l;
    const Walk *walk;
    Range rows, cols;
    // Parts that expressions share are bounded once.
    struct {
        const Expr *expr;
        Range range;
        Truth truth;
    } * known;
    int known_count;
} Rectangle;

static Range range_of(Rectangle *r, Expr *expr);
static Truth truth_of(Rectangle *r, Expr *expr);

// The expression's place among those known: empty or its own. -1: no more room.
static int place_of(const Rectangle *r, const Expr *expr) {
    size_t at = ((size_t)expr >> 4) % MOST_KNOWN;
    while (r->known[at].expr && r->known[at].expr != expr)
        at = (at + 1) % MOST_KNOWN;
    return !r->known[at].expr && r->known_count > MOST_KNOWN / 2 ? -1 : (int)at;
}

static Value smaller(Lower *l, Value a, Value b) {
    return ir_select(l, LLVMBuildICmp(l->builder, LLVMIntSLT, a, b, ""), a, b);
}

static Value greater(Lower *l, Value a, Value b) {
    return ir_select(l, LLVMBuildICmp(l->builder, LLVMIntSLT, a, b, ""), b, a);
}

static Range unknown(Lower *l) {
    return (Range){ir_long(l, INT32_MIN), ir_long(l, INT32_MAX), INT32_MIN, INT32_MAX};
}

// An operation's result may leave 32 bits, where the kernel's arithmetic wraps: then it is anywhere.
static Range wrapped(Lower *l, Range a) {
    if (a.least >= INT32_MIN && a.most <= INT32_MAX)
        return a;
    Range all = unknown(l);
    Value fits = ir_and(l, LLVMBuildICmp(l->builder, LLVMIntSLE, all.low, a.low, ""),
                        LLVMBuildICmp(l->builder, LLVMIntSLE, a.high, all.high, ""));
    return (Range){ir_select(l, fits, a.low, all.low), ir_select(l, fits, a.high, all.high), INT32_MIN,
                   INT32_MAX};
}

static int64_t least_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t most_of(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static Range hull(Lower *l, Range a, Range b) {
    return (Range){smaller(l, a.low, b.low), greater(l, a.high, b.high), least_of(a.least, b.least),
                   most_of(a.most, b.most)};
}

static Range added(Lower *l, Range a, Range b) {
    return wrapped(
        l, (Range){ir_add(l, a.low, b.low), ir_add(l, a.high, b.high), a.least + b.least, a.most + b.most});
}

static Range negated(Lower *l, Range a) { // may leave 32 bits
    Value zero = ir_long(l, 0);
    return (Range){ir_sub(l, zero, a.high), ir_sub(l, zero, a.low), -a.most, -a.least};
}

static Range multiplied(Lower *l, Range a, Range b) {
    const Value as[] = {a.low, a.high}, bs[] = {b.low, b.high};
    const int64_t a_ends[] = {a.least, a.most}, b_ends[] = {b.least, b.most};
    Range range = {0};
    for (int i = 0; i < 4; i++) {
        Value product = ir_mul(l, as[i / 2], bs[i % 2]);
        int64_t end = a_ends[i / 2] * b_ends[i % 2];
        Range one = {product, product, end, end};
        range = i ? hull(l, range, one) : one;
    }
    return wrapped(l, range);
}

// Division truncates toward zero: monotonic for a positive divisor.
static Range divided(Lower *l, Range a, int64_t divisor) {
    Value by = ir_long(l, divisor);
    return (Range){LLVMBuildSDiv(l->builder, a.low, by, ""), LLVMBuildSDiv(l->builder, a.high, by, ""),
                   a.least / divisor, a.most / divisor};
}

// If the whole range has one quotient, the remainder is monotonic in it; else it is anywhere in its own
// range.
static Range remainder_of(Lower *l, Range a, int64_t divisor) {
    Range quotient = divided(l, a, divisor);
    Value by = ir_long(l, divisor), zero = ir_long(l, 0), last = ir_long(l, divisor - 1);
    Value low = LLVMBuildSRem(l->builder, a.low, by, ""), high = LLVMBuildSRem(l->builder, a.high, by, "");
    Value same = ir_and(l, ir_equal(l, quotient.low, quotient.high),
                        LLVMBuildICmp(l->builder, LLVMIntSGE, a.low, zero, ""));
    Value negative = LLVMBuildICmp(l->builder, LLVMIntSLT, a.low, zero, "");
    return (Range){ir_select(l, same, low, ir_select(l, negative, ir_long(l, 1 - divisor), zero)),
                   ir_select(l, same, high, last), a.least < 0 ? 1 - divisor : 0, divisor - 1};
}

static Truth compare(Rectangle *r, int op, Expr *a_expr, Expr *b_expr) {
    Lower *l = r->l;
    if (a_expr->type.elem != ELEM_I32)
        return (Truth){ir_bool(l, false), ir_bool(l, true)};
    Range a = range_of(r, a_expr), b = range_of(r, b_expr);
    LLVMBuilderRef builder = l->builder;
    Value apart = ir_or(l, LLVMBuildICmp(builder, LLVMIntSLT, a.high, b.low, ""),
                        LLVMBuildICmp(builder, LLVMIntSLT, b.high, a.low, ""));
    Value equal = ir_and(l, ir_and(l, ir_equal(l, a.low, a.high), ir_equal(l, b.low, b.high)),
                         ir_equal(l, a.low, b.low));
    switch (op) {
    case '<':
        return (Truth){LLVMBuildICmp(builder, LLVMIntSLT, a.high, b.low, ""),
                       LLVMBuildICmp(builder, LLVMIntSLT, a.low, b.high, "")};
    case OP_LE:
        return (Truth){LLVMBuildICmp(builder, LLVMIntSLE, a.high, b.low, ""),
                       LLVMBuildICmp(builder, LLVMIntSLE, a.low, b.high, "")};
    case '>':
        return compare(r, '<', b_expr, a_expr);
    case OP_GE:
        return compare(r, OP_LE, b_expr, a_expr);
    case OP_EQ:
        return (Truth){equal, LLVMBuildNot(builder, apart, "")};
    default:
        return (Truth){apart, LLVMBuildNot(builder, equal, "")};
    }
}

static bool varies(const Rectangle *r, Expr *expr) {
    if (!expr)
        return false;
    if (expr->kind == X_LOCAL)
        return expr->local == r->walk->row_position || expr->local == r->walk->col_position;
    if (expr->varies_for == r->walk)
        return expr->varies;
    bool any = varies(r, expr->a) || varies(r, expr->b) || varies(r, expr->c);
    for (int i = 0; i < expr->arg_count; i++)
        any |= varies(r, expr->args[i]);
    expr->varies_for = r->walk;
    return expr->varies = any;
}

static Truth find_truth(Rectangle *r, Expr *expr) {
    Lower *l = r->l;
    if (!varies(r, expr)) {
        Value value = math_uniform(l, expr);
        return (Truth){value, value};
    }
    if (expr->kind == X_UNARY) {
        Truth a = truth_of(r, expr->a);
        return (Truth){LLVMBuildNot(l->builder, a.may, ""), LLVMBuildNot(l->builder, a.must, "")};
    }
    if (expr->kind == X_SELECT) {
        Truth condition = truth_of(r, expr->a), a = truth_of(r, expr->b), b = truth_of(r, expr->c);
        Value both_must = ir_and(l, a.must, b.must), either_may = ir_or(l, a.may, b.may);
        return (Truth){ir_select(l, condition.must, a.must, ir_select(l, condition.may, both_must, b.must)),
                       ir_select(l, condition.must, a.may, ir_select(l, condition.may, either_may, b.may))};
    }
    if (expr->kind == X_BINARY && (expr->op == OP_AND || expr->op == OP_OR)) {
        Truth a = truth_of(r, expr->a), b = truth_of(r, expr->b);
        if (expr->op == OP_AND)
            return (Truth){ir_and(l, a.must, b.must), ir_and(l, a.may, b.may)};
        return (Truth){ir_or(l, a.must, b.must), ir_or(l, a.may, b.may)};
    }
    if (expr->kind == X_BINARY && expr->a->type.elem == ELEM_I32)
        return compare(r, expr->op, expr->a, expr->b);
    return (Truth){ir_bool(l, false), ir_bool(l, true)};
}

static Truth truth_of(Rectangle *r, Expr *expr) {
    int place = place_of(r, expr);
    if (place < 0)
        return (Truth){ir_bool(r->l, false), ir_bool(r->l, true)};
    if (!r->known[place].expr) {
        Truth truth = find_truth(r, expr);
        place = place_of(r, expr);
        if (place < 0)
            return truth;
        r->known[place].expr = expr;
        r->known[place].truth = truth;
        r->known_count++;
    }
    return r->known[place].truth;
}

static Range find_range(Rectangle *r, Expr *expr) {
    Lower *l = r->l;
    if (expr->kind == X_LOCAL && expr->local == r->walk->row_position)
        return r->rows;
    if (expr->kind == X_LOCAL && expr->local == r->walk->col_position)
        return r->cols;
    if (!varies(r, expr)) {
        Value value = LLVMBuildSExt(l->builder, math_uniform(l, expr), l->i64, "");
        return expr->kind == X_INT ? (Range){value, value, expr->integer, expr->integer}
                                   : (Range){value, value, INT32_MIN, INT32_MAX};
    }
    Range a, b;
    switch (expr->kind) {
    case X_UNARY:
        return wrapped(l, negated(l, range_of(r, expr->a)));
    case X_BINARY:
        if ((expr->op == '/' || expr->op == '%')) {
            if (expr->b->kind != X_INT || expr->b->integer <= 0)
                return unknown(l);
            a = range_of(r, expr->a);
            return expr->op == '/' ? divided(l, a, expr->b->integer) : remainder_of(l, a, expr->b->integer);
        }
        a = range_of(r, expr->a);
        b = range_of(r, expr->b);
        if (expr->op == '+' || expr->op == '-')
            return added(l, a, expr->op == '+' ? b : negated(l, b));
        return expr->op == '*' ? multiplied(l, a, b) : unknown(l);
    case X_SELECT: {
        Truth condition = truth_of(r, expr->a);
        a = range_of(r, expr->b);
        b = range_of(r, expr->c);
        Range both = hull(l, a, b);
        return (Range){ir_select(l, condition.must, a.low, ir_select(l, condition.may, both.low, b.low)),
                       ir_select(l, condition.must, a.high, ir_select(l, condition.may, both.high, b.high)),
                       both.least, both.most};
    }
    case X_CALL:
        a = range_of(r, expr->a);
        if (expr->op == MATH_ABS) {
            Range other = negated(l, a);
            return wrapped(l,
                           (Range){greater(l, greater(l, a.low, other.low), ir_long(l, 0)),
                                   greater(l, a.high, other.high), most_of(most_of(a.least, other.least), 0),
                                   most_of(a.most, other.most)});
        }
        if (expr->op == MATH_MIN || expr->op == MATH_MAX) {
            bool is_least = expr->op == MATH_MIN;
            b = range_of(r, expr->b);
            Value (*pick)(Lower *, Value, Value) = is_least ? smaller : greater;
            int64_t (*end)(int64_t, int64_t) = is_least ? least_of : most_of;
            return (Range){pick(l, a.low, b.low), pick(l, a.high, b.high), end(a.least, b.least),
                           end(a.most, b.most)};
        }
        return unknown(l);
    default:
        return unknown(l); // values from tensors
    }
}

static Range range_of(Rectangle *r, Expr *expr) {
    int place = place_of(r, expr);
    if (place < 0)
        return unknown(r->l);
    if (!r->known[place].expr) {
        Range range = find_range(r, expr);
        place = place_of(r, expr);
        if (place < 0)
            return range;
        r->known[place].expr = expr;
        r->known[place].range = range;
        r->known_count++;
    }
    return r->known[place].range;
}

static Range position_range(Value low, Value high) {
    return (Range){low, high, 0, INT32_MAX};
}

void interval_class(Lower *l, const Walk *walk, Value block_start, Value *must, Value *may) {
    const Plan *plan = l->plan;
    Rectangle r = {.l = l, .walk = walk};
    r.known = arena_alloc(l->arena, sizeof *r.known * MOST_KNOWN);
    Value start = LLVMBuildSExt(l->builder, block_start, l->i64, "");
    r.cols = position_range(start, ir_add(l, start, ir_long(l, walk->size - 1)));
    if (plan->tile_axis_count) {
        const TileAxis *axis = &plan->tile_axes[0];
        Value first = l->fields[plan_field((Plan *)plan, FIELD_START, axis->axis, 0)];
        Value length = l->fields[plan_field((Plan *)plan, FIELD_LEN, axis->axis, 0)];
        first = LLVMBuildSExt(l->builder, first, l->i64, "");
        length = LLVMBuildSExt(l->builder, length, l->i64, "");
        r.rows = position_range(first, smaller(l, ir_add(l, first, ir_long(l, axis->size - 1)),
                                               ir_sub(l, length, ir_long(l, 1))));
    }
    Truth truth = truth_of(&r, walk->where);
    *must = truth.must;
    *may = truth.may;
}
