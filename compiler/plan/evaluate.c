// evaluate.c: the values that decide which statements run: conditions, block numbers, counts, and what is
// computed from them. What only a launch knows has a identity instead of a value: equal computations have
// equal keys, in all roles, so a condition on it comes out the same everywhere in one run.
#include "compiler/plan/protocol_steps.h"
#include "compiler/plan/expr_table.h"
#include "grammar/ast.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- which locals matter

typedef struct {
    Actor *actor;
    ExprTable met;
    bool changed;
} Search;

static void mark(Search *search, const Expr *expr) {
    if (!expr || (*expr_table_at(&search->met, expr))++)
        return;
    if (expr->kind == X_LOCAL && expr->local->number >= 0 && !search->actor->decides[expr->local->number]) {
        search->actor->decides[expr->local->number] = true;
        search->changed = true;
    }
    mark(search, expr->a);
    mark(search, expr->b);
    mark(search, expr->c);
    for (int i = 0; i < expr->arg_count; i++)
        mark(search, expr->args[i]);
}

static void mark_list(Search *search, const Stmt *stmt) {
    for (; stmt; stmt = stmt->next) {
        if (stmt->kind == ST_IF)
            mark(search, stmt->value);
        if (stmt->kind == ST_PRODUCT)
            mark(search, stmt->fresh);
        if ((stmt->kind == ST_LET || stmt->kind == ST_SET) && search->actor->decides[stmt->local->number])
            mark(search, stmt->value);
        mark_list(search, stmt->body);
        mark_list(search, stmt->other);
    }
}

void evaluate_find_deciding(Protocol *protocol, Actor *actor) {
    actor->decides = arena_array(protocol->arena, bool, actor->role->local_count + 1);
    Search search = {.actor = actor, .met.arena = protocol->arena};
    do {
        search.changed = false;
        mark_list(&search, actor->role->body);
    } while (search.changed);
}

// ---------------------------------------------------------------- values

uint64_t hash_mix(uint64_t a, uint64_t b) {
    uint64_t hash = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;
    return hash ^ (hash >> 32);
}

static Value number(double number) {
    Value value = {.known = true, .number = number};
    memcpy(&value.identity, &number, sizeof number);
    return value;
}

static Value unknown(uint64_t kind, uint64_t a, uint64_t b, uint64_t c) {
    return (Value){.identity = hash_mix(hash_mix(hash_mix(kind + 1, a), b), c)};
}

// Whether a condition on unknown values holds in this run.
static bool choose(Context *context, const Expr *expr, uint64_t identity) {
    Choices *choices = &context->protocol->choices;
    const int most = (int)(sizeof choices->list / sizeof choices->list[0]);
    for (int i = 0; i < choices->count; i++)
        if (choices->list[i].identity == identity)
            return choices->list[i].holds;
    if (choices->count == most)
        return false;
    Choice *choice = &choices->list[choices->count];
    choice->identity = identity;
    choice->expr = expr;
    choice->holds = choices->pattern >> (choices->count % CHOICE_BITS) & 1;
    choices->count++;
    return choice->holds;
}

static Value block_value(Context *context, const Expr *expr) {
    const Protocol *protocol = context->protocol;
    int walk = 0;
    while (protocol->plan->walks[walk] != expr->block->walk)
        walk++;
    int index = context->block_index[expr->block->number];
    int count = protocol->trip->blocks[context->tile][walk];
    Value start =
        unknown(X_BLOCK * 16 + (uint64_t)expr->op, (uint64_t)walk, (uint64_t)context->tile, (uint64_t)index);
    switch (expr->op) {
    case BLOCK_INDEX:
        return number(index);
    case BLOCK_FIRST:
        return number(index == 0);
    case BLOCK_LAST:
        return number(index == count - 1);
    case BLOCK_FULL:
        return number(choose(context, expr, start.identity));
    default:
        return start;
    }
}

static Value count_value(Context *context, const Expr *expr) {
    const Protocol *protocol = context->protocol;
    int walk = 0;
    while (protocol->plan->walks[walk] != expr->walk)
        walk++;
    return number(protocol->trip->blocks[context->tile][walk]);
}

// a < b, where at least one is unknown.
static bool choose_less(Context *context, const Expr *expr, Value a, Value b) {
    return choose(context, expr, unknown('<', a.identity, b.identity, 0).identity);
}

static bool choose_equal(Context *context, const Expr *expr, Value a, Value b) {
    uint64_t low = a.identity < b.identity ? a.identity : b.identity,
             high = a.identity < b.identity ? b.identity : a.identity;
    return choose(context, expr, unknown(OP_EQ, low, high, 0).identity);
}

static Value compare(Context *context, const Expr *expr, Value a, Value b) {
    bool known = a.known && b.known;
    switch (expr->op) {
    case '<':
        return number(known ? a.number < b.number : choose_less(context, expr, a, b));
    case '>':
        return number(known ? a.number > b.number : choose_less(context, expr, b, a));
    case OP_LE:
        return number(known ? a.number <= b.number : !choose_less(context, expr, b, a));
    case OP_GE:
        return number(known ? a.number >= b.number : !choose_less(context, expr, a, b));
    case OP_EQ:
        return number(known ? a.number == b.number : choose_equal(context, expr, a, b));
    default:
        return number(known ? a.number != b.number : !choose_equal(context, expr, a, b));
    }
}

static Value arithmetic(const Expr *expr, Value a, Value b) {
    bool real = elem_is_float(expr->type.elem);
    if (a.known && b.known)
        switch (expr->op) {
        case '+':
            return number(a.number + b.number);
        case '-':
            return number(a.number - b.number);
        case '*':
            return number(a.number * b.number);
        case '/':
            return number(real ? a.number / b.number : b.number == 0 ? 0 : trunc(a.number / b.number));
        case '%':
            return number(!real && b.number == 0 ? 0 : fmod(a.number, b.number));
        default:
            break;
        }
    return unknown(X_BINARY * 512 + (uint64_t)expr->op, a.identity, b.identity, 0);
}

static Value binary_value(Context *context, const Expr *expr) {
    if (expr->op == OP_AND || expr->op == OP_OR) {
        bool a = evaluate_condition(context, expr->a), decided = a == (expr->op == OP_OR);
        return number(decided ? a : evaluate_condition(context, expr->b));
    }
    Value a = evaluate(context, expr->a), b = evaluate(context, expr->b);
    if (expr->op == '<' || expr->op == '>' || (expr->op >= OP_EQ && expr->op <= OP_GE))
        return compare(context, expr, a, b);
    return arithmetic(expr, a, b);
}

static Value call_value(Context *context, const Expr *expr) {
    Value a = evaluate(context, expr->a), b = expr->b ? evaluate(context, expr->b) : number(0);
    if (a.known && b.known)
        switch (expr->op) {
        case MATH_ABS:
            return number(fabs(a.number));
        case MATH_MIN:
            return number(fmin(a.number, b.number));
        case MATH_MAX:
            return number(fmax(a.number, b.number));
        case MATH_FLOOR:
            return number(floor(a.number));
        default:
            break;
        }
    return unknown(X_CALL * 64 + (uint64_t)expr->op, a.identity, b.identity, 0);
}

static Value cast_value(Context *context, const Expr *expr) {
    Value a = evaluate(context, expr->a);
    if (expr->type.elem == ELEM_BOOL)
        return number(a.known ? a.number != 0 : !choose_equal(context, expr, a, number(0)));
    if (a.known)
        return number(expr->type.elem == ELEM_I32 ? trunc(a.number) : a.number);
    // Between numbers a conversion changes nothing that a condition could tell.
    return a;
}

static Value gather_value(Context *context, const Expr *expr) {
    uint64_t identity = (uint64_t)expr->index;
    for (int i = 0; i < expr->arg_count; i++)
        identity = hash_mix(identity, evaluate(context, expr->args[i]).identity);
    return unknown(X_GATHER, identity, 0, 0);
}

static Value compute(Context *context, const Expr *expr) {
    uint64_t tile = (uint64_t)context->tile, index = (uint64_t)expr->index;
    switch (expr->kind) {
    case X_INT:
    case X_BOOL:
        return number((double)expr->integer);
    case X_FLOAT:
        return number(expr->real);
    case X_LOCAL:
        return expr->local->number < 0 ? unknown(X_LOCAL, 0, 0, 0) : context->locals[expr->local->number];
    case X_DIM:
    case X_PARAM:
    case X_CTA:
        return unknown(expr->kind, index, 0, 0);
    case X_FIELD:
    case X_FACTOR:
        return unknown(expr->kind, index, tile, 0);
    case X_COUNT:
        return count_value(context, expr);
    case X_BLOCK:
        return block_value(context, expr);
    case X_REPLICA:
        return number(context->actor->replica);
    case X_UNARY: {
        if (expr->op == '!')
            return number(!evaluate_condition(context, expr->a));
        Value a = evaluate(context, expr->a);
        return a.known ? number(-a.number) : unknown(X_UNARY, a.identity, 0, 0);
    }
    case X_BINARY:
        return binary_value(context, expr);
    case X_SELECT:
        return evaluate(context, evaluate_condition(context, expr->a) ? expr->b : expr->c);
    case X_CALL:
        return call_value(context, expr);
    case X_CAST:
        return cast_value(context, expr);
    case X_GATHER:
        return gather_value(context, expr);
    default: // values of tiles decide nothing
        return unknown(expr->kind, (uint64_t)(uintptr_t)expr, 0, 0);
    }
}

Value evaluate(Context *context, const Expr *expr) {
    Known *known =
        &context->known[((uintptr_t)expr >> 4) % (sizeof context->known / sizeof context->known[0])];
    if (known->expr == expr && known->epoch == context->epoch)
        return known->value;
    Value value = compute(context, expr);
    *known = (Known){expr, context->epoch, value};
    return value;
}

bool evaluate_condition(Context *context, const Expr *expr) {
    Value value = evaluate(context, expr);
    return value.known ? value.number != 0 : choose(context, expr, value.identity);
}
