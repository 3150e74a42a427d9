// row_sums.c: variables that only ever gather sums over the columns, such as `l = l * a + rowsum(e)`. Where
// several threads share a row, each keeps the sum over its own columns, and they are added up where the
// variable is read: sums and factors of a row can change places. That leaves no exchange between threads in
// the loop.
#include "compiler/lower/internal.h"

#include "grammar/ast.h"

static bool reads(Lower *l, Expr *expr, const Local *local) {
    if (!expr)
        return false;
    if (expr->kind == X_LOCAL)
        return expr->local == local;
    if (expr->mark == l->plan->marks)
        return false;
    expr->mark = l->plan->marks;
    bool any = reads(l, expr->a, local) || reads(l, expr->b, local) || reads(l, expr->c, local);
    for (int i = 0; i < expr->arg_count && !any; i++)
        any = reads(l, expr->args[i], local);
    return any;
}

static bool reads_local(Lower *l, Expr *expr, const Local *local) {
    ((Plan *)l->plan)->marks++;
    return reads(l, expr, local);
}

static bool is_local(const Expr *expr, const Local *local) {
    return expr->kind == X_LOCAL && expr->local == local;
}

// The parts of `local * factor + rowsum(...)`, in either order; factor NULL: 1.
static bool split(Lower *l, const Expr *value, const Local *local, Expr **factor, Expr **sum) {
    if (value->kind != X_BINARY || value->op != '+')
        return false;
    for (int i = 0; i < 2; i++) {
        Expr *kept = i ? value->b : value->a;
        *sum = i ? value->a : value->b;
        *factor = NULL;
        if (kept->kind == X_BINARY && kept->op == '*' && is_local(kept->a, local))
            *factor = kept->b;
        else if (kept->kind == X_BINARY && kept->op == '*' && is_local(kept->b, local))
            *factor = kept->a;
        else if (!is_local(kept, local))
            continue;
        if ((*sum)->kind == X_REDUCE && (*sum)->op == REDUCE_SUM && !reads_local(l, (*sum)->a, local) &&
            (!*factor || !reads_local(l, *factor, local)))
            return true;
    }
    return false;
}

static bool is_zero(const Expr *expr) {
    return (expr->kind == X_FLOAT && expr->real == 0) || (expr->kind == X_INT && expr->integer == 0);
}

static bool sets_otherwise(Lower *l, const Stmt *stmt, const Local *local) {
    Expr *factor, *sum;
    for (; stmt; stmt = stmt->next) {
        if (stmt->local == local && (stmt->kind != ST_LET || !is_zero(stmt->value)) &&
            (stmt->kind != ST_SET || !split(l, stmt->value, local, &factor, &sum)))
            return true;
        if (sets_otherwise(l, stmt->body, local) || sets_otherwise(l, stmt->other, local))
            return true;
    }
    return false;
}

static void find(Lower *l, const Role *role, const Stmt *stmt) {
    for (; stmt; stmt = stmt->next) {
        const Local *local = stmt->kind == ST_LET ? stmt->local : NULL;
        if (local && local->is_mutable && local->type.elem == ELEM_F32 && local->type.rows != 1 &&
            local->type.cols == 1)
            l->locals[local->number].is_row_sum = !sets_otherwise(l, role->body, local);
        find(l, role, stmt->body);
        find(l, role, stmt->other);
    }
}

void row_sums_find(Lower *l, const Role *role) {
    if (layout_lanes_a_row(l) > 1)
        find(l, role, role->body);
}

void row_sum_set(Lower *l, const Stmt *stmt) {
    const Local *local = stmt->local;
    Value *cells = l->locals[local->number].cells;
    Expr *factor = NULL, *sum = NULL;
    split(l, stmt->value, local, &factor, &sum);
    for (int row = 0; row < layout_rows(l, local->type); row++) {
        Value kept = ir_get(l, l->f32, cells[row]);
        if (factor)
            kept = math_times(l, kept, math_value(l, factor, (Element){row, 0}));
        ir_set(l, cells[row], math_plus(l, kept, math_reduce_own(l, sum, row)));
    }
}
