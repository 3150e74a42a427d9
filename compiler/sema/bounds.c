// bounds.c: where the tiles of tensors lie. A ragged map cuts off what lies behind a sequence's end only, so
// a tile that began before its sequence would hold a neighbour's rows; and work items that stored the same
// rows would overwrite each other's. Takes roles whose statements are right, reports positions that can't be
// shown to be inside.
#include "compiler/sema/internal.h"

// Least positions are exact; most ones are known up to this, the largest position of a sequence
// (runtime/bind.c keeps a margin behind it for the tile or block at a sequence's end).
enum { MOST_POSITION = INT32_MAX - 65536, MOST_VISITS = 20000 };

// An i32 value lies in [low, high], counted from the start of the tile on grid axis `tile_axis` if that is >=
// 0.
typedef struct {
    int64_t low, high;
    int tile_axis;
} Bound;

typedef struct {
    Sema *sema;
    const Role *role;
    Expr **values;     // of the role's locals that don't change, by number
    bool *after_first; // by number of a block: it isn't the walk's first
    int64_t cols;      // of the values that are stored
    int visits;        // of expressions for one position: shared parts are seen again each time
} Bounds;

static const Bound UNKNOWN = {INT32_MIN, INT32_MAX, -1};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static Bound number(int64_t low, int64_t high) {
    // What may leave 32 bits wraps round, and is anywhere.
    return low < INT32_MIN || high > INT32_MAX ? UNKNOWN : (Bound){low, high, -1};
}

// The value's own range, counted from the start of its sequence.
static Bound plain(Bound a) {
    return a.tile_axis < 0 ? a : number(a.low, a.high > 65536 ? INT64_MAX : MOST_POSITION + a.high);
}

static Bound bound_of(Bounds *b, const Expr *expr);

static Bound sum_of(Bound a, Bound b) {
    if (a.tile_axis >= 0 && b.tile_axis >= 0)
        b = plain(b);
    Bound sum = {a.low + b.low, a.high + b.high, a.tile_axis >= 0 ? a.tile_axis : b.tile_axis};
    return sum.tile_axis < 0 || sum.low < INT32_MIN || sum.high > INT32_MAX ? number(sum.low, sum.high) : sum;
}

static Bound difference(Bound a, Bound b) {
    if (a.tile_axis >= 0 && a.tile_axis == b.tile_axis)
        return number(a.low - b.high, a.high - b.low);
    b = plain(b);
    return sum_of(a, (Bound){-b.high, -b.low, -1});
}

static Bound product(Bound a, Bound b) {
    a = plain(a);
    b = plain(b);
    int64_t ends[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
    return number(least(least(ends[0], ends[1]), least(ends[2], ends[3])),
                  most(most(ends[0], ends[1]), most(ends[2], ends[3])));
}

// Both truncate toward zero, and give 0 where the divisor is 0.
static Bound quotient(int op, Bound a, Bound b) {
    a = plain(a);
    b = plain(b);
    if (op == '%') {
        int64_t largest = most(b.high, -b.low) - 1; // in absolute value
        int64_t bound = most(least(most(a.high, -a.low), largest), 0);
        return number(a.low < 0 ? -bound : 0, a.high > 0 ? bound : 0);
    }
    if (b.low < 0) // any sign; the most negative integer divided by -1 is itself
        return UNKNOWN;
    int64_t divisor = b.low ? b.low : 1;
    return number(a.low < 0 ? a.low / divisor
                  : b.high  ? a.low / b.high
                            : 0,
                  a.high > 0 ? a.high / divisor : 0);
}

static Bound binary(Bounds *b, const Expr *expr) {
    Bound left = bound_of(b, expr->a), right = bound_of(b, expr->b);
    switch (expr->op) {
    case '+':
        return sum_of(left, right);
    case '-':
        return difference(left, right);
    case '*':
        return product(left, right);
    case '/':
    case '%':
        return quotient(expr->op, left, right);
    default:
        return UNKNOWN;
    }
}

// Of a and b as one: from the same start, if they have it in common.
static void align(Bound *a, Bound *b) {
    if (a->tile_axis == b->tile_axis)
        return;
    *a = plain(*a);
    *b = plain(*b);
}

static Bound call(Bounds *b, const Expr *expr) {
    Bound left = bound_of(b, expr->a), right = expr->b ? bound_of(b, expr->b) : UNKNOWN;
    align(&left, &right);
    switch (expr->op) {
    case MATH_MIN:
        return (Bound){least(left.low, right.low), least(left.high, right.high), left.tile_axis};
    case MATH_MAX:
        return (Bound){most(left.low, right.low), most(left.high, right.high), left.tile_axis};
    case MATH_ABS:
        left = plain(bound_of(b, expr->a));
        return left.low >= 0 ? left
                             : number(left.low == INT32_MIN ? INT32_MIN : 0, most(left.high, -left.low));
    default:
        return UNKNOWN;
    }
}

static Bound field(const Bounds *b, const Expr *expr) {
    const Plan *plan = b->sema->plan;
    const RecordField *field = &plan->fields[expr->index];
    if (field->kind == FIELD_START)
        for (int i = 0; i < plan->tile_axis_count; i++)
            if (plan->tile_axes[i].axis == field->index)
                return (Bound){0, 0, i};
    return (Bound){0, MOST_POSITION, -1};
}

static Bound block(const Bounds *b, const Expr *expr) {
    const Walk *walk = expr->block->walk;
    bool after_first = b->after_first[expr->block->number];
    if (expr->op == BLOCK_INDEX)
        return (Bound){after_first, MOST_POSITION, -1};
    if (expr->op != BLOCK_START)
        return UNKNOWN;
    return (Bound){after_first && !walk->last_first ? walk->size : 0, MOST_POSITION, -1};
}

static Bound bound_of(Bounds *b, const Expr *expr) {
    if (!expr || expr->type.elem != ELEM_I32 || ++b->visits > MOST_VISITS)
        return UNKNOWN;
    switch (expr->kind) {
    case X_INT:
        return (Bound){expr->integer, expr->integer, -1};
    case X_LOCAL:
        return expr->local->number >= 0 ? bound_of(b, b->values[expr->local->number]) : UNKNOWN;
    case X_DIM:
        return (Bound){1, INT32_MAX, -1};
    case X_PARAM:
        return b->sema->plan->params[expr->index].is_positive ? (Bound){1, INT32_MAX, -1} : UNKNOWN;
    case X_FIELD:
        return field(b, expr);
    case X_FACTOR:
    case X_COUNT:
        return (Bound){0, INT32_MAX, -1};
    case X_BLOCK:
        return block(b, expr);
    case X_REPLICA:
        return (Bound){0, b->role->replicas - 1, -1};
    case X_CTA:
        return (Bound){0, b->sema->plan->cluster - 1, -1};
    case X_ROWS:
        return (Bound){0, b->role->warps * b->sema->plan->target->warp_rows - 1, -1};
    case X_COLS:
        return (Bound){0, b->cols - 1, -1};
    case X_UNARY:
        return expr->op == '-' ? difference((Bound){0, 0, -1}, bound_of(b, expr->a)) : UNKNOWN;
    case X_BINARY:
        return binary(b, expr);
    case X_SELECT: {
        Bound yes = bound_of(b, expr->b), no = bound_of(b, expr->c);
        align(&yes, &no);
        return (Bound){least(yes.low, no.low), most(yes.high, no.high), yes.tile_axis};
    }
    case X_CALL:
        return call(b, expr);
    default:
        return UNKNOWN;
    }
}

static Bound position_bound(Bounds *b, const Expr *at) {
    b->visits = 0;
    return bound_of(b, at);
}

// ---------------------------------------------------------------- what is reported

static const char *as_written(const Bounds *b, Span span) {
    return ast_text(b->sema->diag->sources, b->sema->arena, span);
}

static void check_begin(Bounds *b, const Stmt *stmt, int dim, Bound bound) {
    bound = plain(bound);
    if (bound.low >= 0)
        return;
    const Tensor *tensor = &b->sema->plan->tensors[stmt->tensor.tensor];
    Span span = stmt->tensor.at_span[dim];
    const char *text = as_written(b, span);
    DiagItem *item;
    if (bound.low == INT32_MIN)
        item = diag_error(b->sema->diag, span, "tile-before-start",
                          "a tile of '%s' may begin before its sequence: nothing says how small '%s' is",
                          tensor->name, text);
    else
        item = diag_error(b->sema->diag, span, "tile-before-start",
                          "a tile of '%s' may begin before its sequence: '%s' may be %lld", tensor->name,
                          text, (long long)bound.low);
    diag_note(item, tensor->span,
              "its rows before a sequence are another sequence's; only those behind the end are left out");
    diag_help(item, "begin where a tile or a block does, or behind it; otherwise: max(%s, 0)", text);
}

// The rows (columns) that a work item owns on a blocked axis are those of its tile.
static void check_own(Bounds *b, const Stmt *stmt, int dim, Bound bound, int64_t extent) {
    const Plan *plan = b->sema->plan;
    const Tensor *tensor = &plan->tensors[stmt->tensor.tensor];
    const TileAxis *own = &plan->tile_axes[bound.tile_axis];
    if (bound.low >= 0 && bound.high + extent <= own->size)
        return;
    DiagItem *item = diag_error(
        b->sema->diag, stmt->tensor.at_span[dim], "store-overlap",
        "positions %lld to %lld of the tile are stored to '%s', but those from 0 to %lld are its own",
        (long long)bound.low, (long long)(bound.high + extent - 1), tensor->name, (long long)own->size - 1);
    diag_help(item, "the others belong to the next tiles: the grid has one for each %lld positions of '%s'",
              (long long)own->size, plan->axes[own->axis].name);
}

static bool is_factor(const Bounds *b, const Expr *expr, int factor) {
    while (expr && expr->kind == X_LOCAL && expr->local->number >= 0)
        expr = b->values[expr->local->number];
    return expr && expr->kind == X_FACTOR && expr->index == factor;
}

static void report_shared(Bounds *b, const Stmt *stmt, const char *name, const char *more) {
    const Tensor *tensor = &b->sema->plan->tensors[stmt->tensor.tensor];
    DiagItem *item = diag_error(b->sema->diag, stmt->tensor.span, "store-overlap",
                                "tiles of the grid that differ in '%s' would store the same rows of '%s'",
                                name, tensor->name);
    diag_note(item, tensor->span, "declared here");
    diag_help(item, "a tile stores to places of its own: one of the positions must be t.%s%s", name, more);
}

// A tile's store must tell its work item from all others, on each axis and dim of the grid.
static void check_distinct(Bounds *b, const Stmt *stmt, const Bound *bounds) {
    const Plan *plan = b->sema->plan;
    const Tensor *tensor = &plan->tensors[stmt->tensor.tensor];
    for (int axis = 0; axis < plan->tile_axis_count; axis++) {
        bool tells = false;
        for (int i = 0; i < tensor->rank; i++)
            tells |= tensor->dims[i].kind == DIM_AXIS &&
                     tensor->dims[i].index == plan->tile_axes[axis].axis && bounds[i].tile_axis == axis;
        if (!tells)
            report_shared(b, stmt, plan->tile_axes[axis].name, ", or that and a constant");
    }
    for (int factor = 0; factor < plan->factor_count; factor++) {
        bool tells = false;
        for (int i = 0; i < tensor->rank; i++)
            tells |= tensor->dims[i].kind == DIM_RUNTIME && is_factor(b, stmt->tensor.at[i], factor);
        if (!tells)
            report_shared(b, stmt, plan->factors[factor].name, "");
    }
}

// A tile has all of a constant dim; an index below 0 is none of a run-time one. Neither leaves the tensor,
// where a load gives zeros, but nobody means that.
static void check_index(Bounds *b, const Stmt *stmt, int dim, Bound bound) {
    const Tensor *tensor = &b->sema->plan->tensors[stmt->tensor.tensor];
    Span span = stmt->tensor.at_span[dim];
    if (tensor->dims[dim].kind == DIM_CONSTANT && (bound.low > 0 || bound.high < 0)) {
        DiagItem *item = diag_error(b->sema->diag, span, "tile-outside",
                                    "a tile of '%s' has all %lld columns: it begins at 0", tensor->name,
                                    (long long)tensor->dims[dim].extent);
        diag_help(item, "leave the position out, or say 0");
    } else if (bound.high < 0) {
        diag_error(b->sema->diag, span, "tile-outside", "'%s' is below 0: there is no such tile of '%s'",
                   as_written(b, span), tensor->name);
    }
}

static void check_tile(Bounds *b, const Stmt *stmt) {
    const Plan *plan = b->sema->plan;
    const Tensor *tensor = &plan->tensors[stmt->tensor.tensor];
    const TensorMap *map = &plan->maps[stmt->tensor.map];
    const Buffer *buffer = (stmt->kind == ST_PUT_LOAD ? stmt->slot : stmt->source)->pipe->buffer;
    Bound bounds[MAX_TENSOR_DIMS];
    int errors = b->sema->diag->error_count;
    for (int i = 0; i < tensor->rank; i++) {
        bounds[i] = position_bound(b, stmt->tensor.at[i]);
        check_index(b, stmt, i, plain(bounds[i]));
        if (tensor->dims[i].kind != DIM_AXIS || plain(bounds[i]).high < 0)
            continue;
        check_begin(b, stmt, i, bounds[i]);
        if (stmt->kind == ST_STORE_TILE && bounds[i].tile_axis >= 0 && b->sema->diag->error_count == errors)
            check_own(b, stmt, i, bounds[i], i == map->row_dim ? buffer->rows : buffer->cols);
    }
    if (stmt->kind == ST_STORE_TILE && b->sema->diag->error_count == errors)
        check_distinct(b, stmt, bounds);
}

// Of a store of values only what is known to be wrong is told: which elements are stored may hang on
// conditions, and what lies outside of the sequence is left out.
static void check_values(Bounds *b, const Stmt *stmt) {
    const Plan *plan = b->sema->plan;
    const Tensor *tensor = &plan->tensors[stmt->tensor.tensor];
    Type type = stmt->value->type;
    for (int i = 0; i < tensor->rank; i++)
        if (stmt->tensor.at[i]->type.cols != 1 && stmt->tensor.at[i]->type.cols != EXTENT_ANY)
            type.cols = stmt->tensor.at[i]->type.cols;
    b->cols = type.cols == EXTENT_ANY ? 1 : type.cols;
    for (int i = 0; i < tensor->rank; i++) {
        Bound bound = position_bound(b, stmt->tensor.at[i]);
        if (tensor->dims[i].kind == DIM_AXIS && bound.tile_axis >= 0 &&
            tensor->dims[i].index == plan->tile_axes[bound.tile_axis].axis)
            check_own(b, stmt, i, bound, 1);
    }
    b->cols = MOST_POSITION;
}

// `!b.first`, or `b.first` with is_negated.
static const Block *not_first(const Expr *condition, bool is_negated) {
    while (condition && condition->kind == X_UNARY && condition->op == '!') {
        is_negated = !is_negated;
        condition = condition->a;
    }
    bool fits = condition && condition->kind == X_BLOCK && condition->op == BLOCK_FIRST && is_negated;
    return fits ? condition->block : NULL;
}

static void check_list(Bounds *b, const Stmt *stmt);

static void check_after_first(Bounds *b, const Stmt *list, const Block *block) {
    bool before = block && b->after_first[block->number];
    if (block)
        b->after_first[block->number] = true;
    check_list(b, list);
    if (block)
        b->after_first[block->number] = before;
}

static void check_list(Bounds *b, const Stmt *stmt) {
    for (; stmt; stmt = stmt->next) {
        switch (stmt->kind) {
        case ST_LET:
            if (!stmt->local->is_mutable && stmt->local->number >= 0)
                b->values[stmt->local->number] = stmt->value;
            break;
        case ST_PUT_LOAD:
        case ST_STORE_TILE:
            check_tile(b, stmt);
            break;
        case ST_STORE_VALUE:
            check_values(b, stmt);
            break;
        case ST_WALK:
            check_after_first(b, stmt->body, stmt->part == PART_REST ? stmt->block : NULL);
            continue;
        case ST_IF:
            check_after_first(b, stmt->body, not_first(stmt->value, false));
            check_after_first(b, stmt->other, not_first(stmt->value, true));
            continue;
        default:
            break;
        }
        check_list(b, stmt->body);
    }
}

void bounds_check(Sema *sema) {
    for (int i = 0; i < sema->plan->role_count; i++) {
        Role *role = sema->plan->roles[i];
        Bounds b = {.sema = sema,
                    .role = role,
                    .values = arena_array(sema->arena, Expr *, role->local_count + 1),
                    .after_first = arena_array(sema->arena, bool, role->block_count + 1),
                    .cols = MOST_POSITION};
        check_list(&b, role->body);
    }
}
