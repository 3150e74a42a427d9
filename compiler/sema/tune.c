// tune.c: constants with values worth trying, and those that a tuned file says.
#include "compiler/sema/internal.h"

#include "compiler/plan/lookup.h"

#include <string.h>

enum { MAX_CHOICES = 16 };

// ---------------------------------------------------------------- which entry fits

static const TunedValue *find_value(const TunedValue *values, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (!strcmp(values[i].name, name))
            return &values[i];
    return NULL;
}

static const Constant *find_constant(const Sema *sema, const char *name) {
    for (int i = 0; i < sema->plan->constant_count; i++)
        if (!strcmp(sema->plan->constants[i].name, name))
            return &sema->plan->constants[i];
    return NULL;
}

static const Define *find_define(const Sema *sema, const char *name) {
    for (int i = 0; i < sema->options->define_count; i++)
        if (sema->defines[i].name && !strcmp(sema->defines[i].name, name))
            return &sema->defines[i];
    return NULL;
}

// -D K=32+32 says what a line says as 64.
static bool says_same(Sema *sema, const Define *define, const char *text) {
    bool is_number = define->value && expr_is_constant(define->value) && define->value->kind != X_BOOL;
    return tuned_is_equal(text, is_number ? arena_format(sema->arena, "%.9g", expr_constant(define->value))
                                          : define->text);
}

// What an entry was tuned with that this compilation hasn't, or the reverse; NULL: they agree. Constants of
// the kernel are all known; of the schedule's, which are not, those count that -D says.
static const char *difference(Sema *sema, const TunedEntry *entry) {
    for (int i = 0; i < sema->plan->constant_count; i++) {
        const Constant *constant = &sema->plan->constants[i];
        const TunedValue *value = find_value(entry->when, entry->when_count, constant->name);
        const char *here = constant_text(sema->arena, constant, constant->value);
        if (!value || !tuned_is_equal(value->text, here))
            return arena_format(sema->arena, "was tuned with %s = %s; here it is %s", constant->name,
                                value ? value->text : "nothing", here);
    }
    for (int i = 0; i < entry->when_count; i++) {
        const TunedValue *value = &entry->when[i];
        const Define *given = find_define(sema, value->name);
        if (!find_constant(sema, value->name) && !(given && says_same(sema, given, value->text)))
            return arena_format(sema->arena, "was tuned with -D %s=%s", value->name, value->text);
    }
    for (int i = 0; i < sema->options->define_count; i++) {
        const Define *define = &sema->defines[i];
        if (!define->name || find_constant(sema, define->name) ||
            find_value(entry->use, entry->use_count, define->name))
            continue;
        if (!find_value(entry->when, entry->when_count, define->name))
            return arena_format(sema->arena, "was not tuned with -D %s=%s", define->name, define->text);
    }
    return NULL;
}

// How far an entry fits: the reason of the one that fits best is told.
typedef enum { FIT_NOTHING, FIT_KERNEL, FIT_TARGET, FIT_DEVICE, FIT_ALL } Fit;

static Fit find_fit(Sema *sema, const TunedEntry *entry, const char *schedule, const char **missing) {
    const char *target = sema->options->target->name, *kernel = sema->parts->kernel->name;
    if (strcmp(entry->kernel, kernel) || strcmp(entry->schedule, schedule)) {
        *missing = arena_format(sema->arena, "has nothing for kernel %s with schedule %s", kernel, schedule);
        return FIT_NOTHING;
    }
    if (strcmp(entry->target, target)) {
        *missing = arena_format(sema->arena, "was tuned for %s, not for %s", entry->target, target);
        return FIT_KERNEL;
    }
    if (sema->options->device && strcmp(entry->device, sema->options->device)) {
        *missing =
            arena_format(sema->arena, "was tuned on %s, not on %s", entry->device, sema->options->device);
        return FIT_TARGET;
    }
    *missing = difference(sema, entry);
    return *missing ? FIT_DEVICE : FIT_ALL;
}

void tune_choose(Sema *sema) {
    SemaParts *parts = sema->parts;
    const char *schedule = arena_format(sema->arena, "%s.%s", parts->family->name, parts->schedule->name);
    Fit best = FIT_NOTHING;
    for (const TunedEntry *entry = sema->options->tuned; entry; entry = entry->next) {
        const char *missing;
        Fit fit = find_fit(sema, entry, schedule, &missing);
        if (fit == FIT_ALL && parts->tuned) {
            DiagItem *item = diag_error(sema->diag, entry->span, "tuned-ambiguous",
                                        "this was tuned on %s, but another entry that fits on %s",
                                        entry->device, parts->tuned->device);
            diag_note(item, parts->tuned->span, "the other entry");
            diag_help(item, "say which is meant: --tuned-for '%s'", entry->device);
            return;
        }
        if (fit == FIT_ALL)
            parts->tuned = entry;
        if (fit >= best)
            parts->tuned_missing = missing;
        best = fit > best ? fit : best;
    }
    if (!sema->options->tuned)
        parts->tuned_missing = "has no entries";
    if (parts->tuned)
        parts->tuned_missing = NULL;
}

// ---------------------------------------------------------------- constants

static bool is_literal(const Ast *ast, int64_t *value) {
    bool is_negative = ast->kind == AST_UNARY && ast->op == '-';
    const Ast *number = is_negative ? ast->a : ast;
    *value = is_negative ? -number->integer : number->integer;
    return number->kind == AST_INT || ast->kind == AST_BOOL;
}

// The literal of the same value before `choice`: one of the two was meant to be another. What is computed may
// coincide. NULL: there is none.
static const Ast *find_literal(const Ast *ast, const Ast *choice) {
    int64_t value, other;
    if (!is_literal(choice, &value))
        return NULL;
    if (is_literal(ast->a, &other) && other == value)
        return ast->a;
    for (const Ast *before = ast->list; before != choice; before = before->next)
        if (is_literal(before, &other) && other == value)
            return before;
    return NULL;
}

static bool check_choice(Sema *sema, const Ast *ast, const Ast *choice, const Expr *value, Elem elem) {
    if (!value)
        return false;
    if (!expr_is_constant(value)) {
        diag_error(sema->diag, choice->span, "not-constant", "what '%s' may be must be constants", ast->name);
        return false;
    }
    if (value->type.elem != elem) {
        DiagItem *item = diag_error(sema->diag, choice->span, "tune-type", "this is %s, but '%s' is %s",
                                    elem_name(value->type.elem), ast->name, elem_name(elem));
        diag_note(item, ast->a->span, "its default is here");
        return false;
    }
    const Ast *first = find_literal(ast, choice);
    if (!first)
        return true;
    DiagItem *item = diag_error(sema->diag, choice->span, "tune-twice", "%s is listed twice",
                                ast_text(sema->diag->sources, sema->arena, choice->span));
    diag_note(item, first->span, first == ast->a ? "it is the default" : "first listed here");
    diag_help(item, "each value is tried once, the default too: leave it out here");
    return false;
}

static bool add_choice(Sema *sema, const Ast *ast, const Ast *choice, const Expr *value, Constant *constant) {
    for (int i = 0; i < constant->choice_count; i++)
        if (constant->choices[i] == expr_constant(value))
            return true;
    if (constant->choice_count < MAX_CHOICES) {
        constant->choices[constant->choice_count++] = expr_constant(value);
        return true;
    }
    diag_error(sema->diag, choice->span, "too-many",
               "'%s' may be at most %d values: each costs a build and a measurement", ast->name, MAX_CHOICES);
    return false;
}

static const char *choices_text(Sema *sema, const Constant *constant) {
    const char *text = "";
    for (int i = 0; i < constant->choice_count; i++)
        text = arena_format(sema->arena, "%s%s%s", text, i ? ", " : "",
                            constant_text(sema->arena, constant, constant->choices[i]));
    return text;
}

// The entry's value in the place of the default.
static Expr *tuned_value(Sema *sema, const Ast *ast, Expr *value, const Constant *constant) {
    const TunedEntry *entry = sema->parts->tuned;
    const TunedValue *use = entry ? find_value(entry->use, entry->use_count, ast->name) : NULL;
    if (!use)
        return value;
    sema->tuned_used[use - entry->use] = true;
    bool is_bool = value->type.elem == ELEM_BOOL;
    for (int i = 0; use->is_bool == is_bool && i < constant->choice_count; i++)
        if (constant->choices[i] == use->number)
            return is_bool ? expr_bool(sema, use->number != 0, value->span)
                           : expr_int(sema, (int64_t)use->number, value->span);
    DiagItem *item = diag_error(sema->diag, use->span, "tuned-value", "%s is not among the values of '%s'",
                                use->text, ast->name);
    diag_note(item, ast->span, "'%s' is declared here", ast->name);
    diag_help(item, "it may be %s: has the schedule changed? tune it again", choices_text(sema, constant));
    return NULL;
}

Expr *tune_constant(Sema *sema, Scope *scope, const Ast *ast, Expr *value, bool is_given,
                    Constant *constant) {
    if (!value || is_given) // reported, or not searched
        return value;
    Elem elem = value->type.elem;
    if (elem != ELEM_I32 && elem != ELEM_BOOL) {
        diag_error(sema->diag, ast->a->span, "tune-type", "'%s' is %s; integers are tuned, or true and false",
                   ast->name, elem_name(elem));
        return value;
    }
    constant->choices = arena_array(sema->arena, double, MAX_CHOICES);
    constant->elem = elem;
    bool good = add_choice(sema, ast, ast->a, value, constant);
    for (const Ast *choice = ast->list; choice && good; choice = choice->next) {
        Expr *other = sema_expr(sema, scope, choice);
        good = check_choice(sema, ast, choice, other, elem) && add_choice(sema, ast, choice, other, constant);
    }
    return good ? tuned_value(sema, ast, value, constant) : value;
}

void tune_misplaced(Sema *sema, const Ast *ast) {
    DiagItem *item = diag_error(sema->diag, ast->span, "misplaced", "'%s' can't be tuned here", ast->name);
    diag_help(item, "a schedule's constants are tuned; those of families and kernels say what is computed");
}

void tune_check_used(Sema *sema) {
    const TunedEntry *entry = sema->parts->tuned;
    for (int i = 0; entry && i < entry->use_count; i++) {
        const TunedValue *use = &entry->use[i];
        const Constant *constant = find_constant(sema, use->name);
        if (sema->tuned_used[i] || (constant && find_define(sema, use->name)))
            continue;
        DiagItem *item =
            constant
                ? diag_error(sema->diag, use->name_span, "tuned-value", "'%s' is not tuned", use->name)
                : diag_error(sema->diag, use->name_span, "tuned-unknown",
                             "schedule '%s' has no constant '%s'", sema->parts->schedule->name, use->name);
        if (constant)
            diag_note(item, constant->span, "'%s' is declared here, without 'tune'", use->name);
        diag_help(item, "has the schedule changed? tune it again");
    }
}
