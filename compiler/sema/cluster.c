// cluster.c: clusters of CTAs that work on a tile together. What they load for each other they must load in
// step, so nothing that decides about a multicast pipe may differ between them.
#include "compiler/sema/internal.h"

#include "compiler/plan/lookup.h"

void cluster_declare(Sema *sema, const Ast *ast) {
    static const Type RANK = {ELEM_I32, 1, 1};
    Plan *plan = sema->plan;
    if (plan->cluster_span.end) {
        DiagItem *item =
            diag_error(sema->diag, ast->span, "bad-cluster", "the schedule has a cluster already");
        diag_note(item, plan->cluster_span, "declared here");
        return;
    }
    plan->cluster_span = ast->span;
    int64_t count = 1;
    if (sema_constant_int(sema, sema->schedule, ast->a, "the number of CTAs in a cluster", 1, 8, &count) &&
        (count & (count - 1)))
        declare_note_defines(sema,
                             diag_error(sema->diag, ast->a->span, "bad-cluster",
                                        "a cluster has 1, 2, 4 or 8 CTAs, not %lld", (long long)count),
                             ast->a);
    else
        plan->cluster = (int)count;
    // Its name is known also if the number was wrong, so that the mistake is told once.
    Symbol *symbol = scope_add(sema, sema->schedule, SYM_VALUE, ast->name, ast->name_span);
    if (symbol)
        symbol->expr =
            count == 1 ? expr_int(sema, 0, ast->name_span) : expr_new(sema, X_CTA, RANK, ast->name_span);
}

// ---------------------------------------------------------------- what differs between the CTAs

typedef struct {
    Sema *sema;
    bool *differs; // by number of a local of the role
    bool grew;
} Differences;

static bool differs_in(Differences *d, Expr *expr) {
    if (!expr || expr->mark == d->sema->plan->marks)
        return false;
    expr->mark = d->sema->plan->marks;
    if (expr->kind == X_CTA ||
        (expr->kind == X_LOCAL && expr->local->number >= 0 && d->differs && d->differs[expr->local->number]))
        return true;
    bool any = differs_in(d, expr->a) || differs_in(d, expr->b) || differs_in(d, expr->c);
    for (int i = 0; i < expr->arg_count && !any; i++)
        any = differs_in(d, expr->args[i]);
    return any;
}

static bool differs(Differences *d, Expr *expr) {
    d->sema->plan->marks++;
    return differs_in(d, expr);
}

// inside: under a condition that differs.
static void find_differences(Differences *d, const Stmt *stmt, bool inside) {
    for (; stmt; stmt = stmt->next) {
        if ((stmt->kind == ST_LET || stmt->kind == ST_SET) && stmt->local->number >= 0 &&
            !d->differs[stmt->local->number] && (inside || differs(d, stmt->value)))
            d->grew = d->differs[stmt->local->number] = true;
        bool below = inside || (stmt->kind == ST_IF && differs(d, stmt->value));
        find_differences(d, stmt->body, below);
        find_differences(d, stmt->other, below);
    }
}

static void check_position(Differences *d, const Stmt *stmt) {
    for (int i = 0; i < d->sema->plan->tensors[stmt->tensor.tensor].rank; i++) {
        if (!differs(d, stmt->tensor.at[i]))
            continue;
        DiagItem *item =
            diag_error(d->sema->diag, stmt->tensor.at[i]->span, "cluster-divergence",
                       "the CTAs of a cluster would load different tiles into '%s', which is multicast",
                       stmt->slot->pipe->name);
        diag_help(
            item,
            "a multicast tile is the same for all of them; a pipe without 'multicast' is each CTA's own");
    }
}

// condition: the innermost one around that differs, or NULL.
static void check_steps(Differences *d, const Stmt *stmt, const Stmt *condition) {
    for (; stmt; stmt = stmt->next) {
        const Pipe *pipe = stmt->slot ? stmt->slot->pipe : NULL;
        if (pipe && pipe->multicast && stmt->kind == ST_PUT_LOAD)
            check_position(d, stmt);
        if (pipe && pipe->multicast && condition) {
            DiagItem *item =
                diag_error(d->sema->diag, stmt->span, "cluster-divergence",
                           "only some CTAs of a cluster would come here, but '%s' is multicast: all of them "
                           "put, take and free each of its slots",
                           pipe->name);
            diag_note(item, condition->value->span, "this differs between the CTAs");
        }
        const Stmt *below = stmt->kind == ST_IF && differs(d, stmt->value) ? stmt : condition;
        check_steps(d, stmt->body, below);
        check_steps(d, stmt->other, below);
    }
}

static void check_role(Sema *sema, const Role *role) {
    Differences d = {.sema = sema, .differs = arena_array(sema->arena, bool, role->local_count + 1)};
    do {
        d.grew = false;
        find_differences(&d, role->body, false);
    } while (d.grew);
    check_steps(&d, role->body, NULL);
}

static void check_pipe(Sema *sema, const Pipe *pipe) {
    if (pipe->filled_by != ENGINE_LOAD && pipe->filled_by != ENGINE_NONE) {
        DiagItem *item = diag_error(sema->diag, pipe->span, "bad-multicast",
                                    "'%s' is multicast, but not filled by loads", pipe->name);
        diag_help(item, "only tiles of tensors are multicast: put %s = TENSOR[...]", pipe->name);
    }
    if (pipe->before != pipe) {
        DiagItem *item =
            diag_error(sema->diag, pipe->span, "bad-multicast",
                       "'%s' is multicast, but shares its bytes with '%s'", pipe->name, pipe->before->name);
        diag_help(item, "give it a buffer of its own");
    }
}

void cluster_check(Sema *sema) {
    Plan *plan = sema->plan;
    if (plan->cluster == 1)
        return;
    Differences d = {.sema = sema};
    for (int i = 0; i < plan->walk_count; i++)
        if (differs(&d, plan->walks[i]->where))
            diag_error(sema->diag, plan->walks[i]->span, "cluster-divergence",
                       "the CTAs of a cluster would walk over different blocks of '%s'",
                       plan->walks[i]->name);
    for (int i = 0; i < plan->pipe_count; i++)
        if (plan->pipes[i]->multicast)
            check_pipe(sema, plan->pipes[i]);
    for (int i = 0; i < plan->role_count; i++)
        check_role(sema, plan->roles[i]);
}
