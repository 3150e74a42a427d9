// sema.c: finds the kernel with its family and schedule, and runs the steps in order.
#include "compiler/sema/internal.h"

#include <math.h>
#include <string.h>

static const Ast *only_kernel(Sema *sema, const Ast *program) {
    const char *wanted = sema->options->kernel;
    const Ast *found = NULL;
    for (const Ast *item = program; item; item = item->next) {
        if (item->kind != AST_KERNEL || item->span.file != 0 || (wanted && strcmp(item->name, wanted)))
            continue;
        if (found && !wanted) {
            DiagItem *error = diag_error(sema->diag, item->name_span, "which-kernel",
                                         "this file has several kernels; say which");
            diag_note(error, found->name_span, "another is '%s'", found->name);
            diag_help(error, "--kernel %s", found->name);
            return NULL;
        }
        if (found) {
            diag_error(sema->diag, item->name_span, "duplicate-name", "kernel '%s' is declared twice",
                       item->name);
            return NULL;
        }
        found = item;
    }
    if (!found) {
        DiagItem *error = diag_error(sema->diag, (Span){0, 0, 0}, "no-kernel",
                                     wanted ? "this file has no kernel '%s'" : "this file has no kernel%s",
                                     wanted ? wanted : "");
        diag_help(error, "a kernel is declared with: kernel NAME : FAMILY { ... }");
    }
    return found;
}

static const Ast *find_family(Sema *sema, const Ast *program, const Ast *kernel) {
    enum { MOST = 64 };
    const char *names[MOST];
    int count = 0;
    const Ast *found = NULL;
    for (const Ast *item = program; item; item = item->next)
        if (item->kind == AST_FAMILY) {
            if (count < MOST)
                names[count++] = item->name;
            if (strcmp(item->name, kernel->name2))
                continue;
            if (found) {
                DiagItem *error = diag_error(sema->diag, item->name_span, "duplicate-name",
                                             "family '%s' is declared twice", item->name);
                diag_note(error, found->name_span, "first declared here");
            } else {
                found = item;
            }
        }
    if (found)
        return found;
    DiagItem *error = diag_error(sema->diag, kernel->name2_span, "unknown-name",
                                 "there is no family named '%s'", kernel->name2);
    const char *closest = diag_closest(kernel->name2, names, count);
    if (closest)
        diag_help(error, "did you mean '%s'?", closest);
    else
        diag_help(error, "add 'use %s;', or name the file that declares it with: use NAME;", kernel->name2);
    return NULL;
}

static const Ast *setting(const Ast *kernel, const char *name) {
    for (const Ast *item = kernel->list; item; item = item->next)
        if (item->kind == AST_SETTING && !strcmp(item->name, name))
            return item;
    return NULL;
}

// The family's schedule for the target: the one that the kernel names with 'schedule NAME;', else the only
// one, else 'forward'.
static const Ast *find_schedule(Sema *sema, const Ast *program, const Ast *kernel) {
    const Ast *wish = setting(kernel, "schedule"), *found = NULL;
    const char *wanted = wish && wish->a->kind == AST_NAME ? wish->a->name : NULL, *known = "";
    for (const Ast *item = program; item; item = item->next) {
        if (item->kind != AST_SCHEDULE || strcmp(item->name2, kernel->name2))
            continue;
        known =
            arena_format(sema->arena, "%s%s%s for %s", known, *known ? ", " : "", item->name, item->name3);
        bool fits =
            !strcmp(item->name3, sema->options->target->family) && (!wanted || !strcmp(item->name, wanted));
        if (!fits)
            continue;
        if (!found || (!wanted && !strcmp(item->name, "forward")))
            found = item;
    }
    if (!found) {
        DiagItem *error = diag_error(sema->diag, wish ? wish->span : kernel->name_span, "no-schedule",
                                     "family '%s' has no schedule%s%s for %s", kernel->name2,
                                     wanted ? " " : "", wanted ? wanted : "", sema->options->target->family);
        diag_help(error, "known: %s",
                  *known ? known
                         : "none; a schedule is declared with: schedule NAME of FAMILY for TARGET { ... }");
    }
    return found;
}

static void add_builtins(Sema *sema) {
    static const struct {
        const char *name;
        double value;
    } CONSTANTS[] = {
        {"LOG2E", 1.4426950408889634074}, {"LN2", 0.69314718055994530942}, {"PI", 3.14159265358979323846}};
    Span nowhere = {-1, 0, 0};
    for (size_t i = 0; i < sizeof CONSTANTS / sizeof CONSTANTS[0]; i++) {
        Symbol *symbol = scope_add(sema, sema->global, SYM_VALUE, CONSTANTS[i].name, nowhere);
        symbol->expr = expr_float(sema, CONSTANTS[i].value, nowhere);
    }
}

static void read_defines(Sema *sema) {
    int count = sema->options->define_count;
    sema->defines = arena_array(sema->arena, Define, count + 1);
    for (int i = 0; i < count; i++) {
        const char *text = sema->options->defines[i], *equals = strchr(text, '=');
        int file = source_add(sema->diag->sources, "<-D>", text, strlen(text));
        if (!equals || equals == text || !equals[1]) {
            diag_error(sema->diag, (Span){file, 0, (int)strlen(text)}, "bad-define", "-D needs NAME=VALUE");
            continue;
        }
        Define *define = &sema->defines[i];
        define->name = arena_copy(sema->arena, text, (size_t)(equals - text));
        for (int k = 0; k < i; k++)
            if (sema->defines[k].name && !strcmp(sema->defines[k].name, define->name)) {
                diag_error(sema->diag, (Span){file, 0, (int)strlen(text)}, "bad-define",
                           "-D %s is given twice", define->name);
                define->used = true;
                break;
            }
        define->text = equals + 1;
        int value = source_add(sema->diag->sources, "<-D>", define->text, strlen(define->text));
        int errors = sema->diag->error_count;
        Ast *ast = parse_expression(sema->arena, sema->diag, value);
        if (sema->diag->error_count != errors)
            define->name = NULL; // told; the constant keeps its own value
        if (!define->name || !ast || ast->kind == AST_NAME)
            continue; // a name: the value of a type option
        define->value = sema_expr(sema, sema->global, ast);
    }
}

static void check_defines(Sema *sema) {
    for (int i = 0; i < sema->options->define_count; i++) {
        const Define *define = &sema->defines[i];
        if (!define->name || define->used)
            continue;
        enum { MOST = 128 };
        const char *names[MOST];
        int count = 0;
        for (int k = 0; k < sema->plan->constant_count && count < MOST; k++)
            names[count++] = sema->plan->constants[k].name;
        DiagItem *error = diag_error(sema->diag, (Span){-1, 0, 0}, "bad-define",
                                     "-D %s: the kernel and its schedule have no constant '%s'", define->name,
                                     define->name);
        const char *closest = diag_closest(define->name, names, count);
        const char *all = "";
        for (int k = 0; k < count; k++)
            all = arena_format(sema->arena, "%s%s%s", all, k ? ", " : "", names[k]);
        if (closest)
            diag_help(error, "did you mean '%s'?", closest);
        else
            diag_help(error, "there are: %s", all);
    }
}

int plan_field(Plan *plan, FieldKind kind, int index, int dim) {
    for (int i = 0; i < plan->field_count; i++)
        if (plan->fields[i].kind == kind && plan->fields[i].index == index && plan->fields[i].dim == dim)
            return i;
    if (plan->field_count == plan->field_capacity) {
        int capacity = plan->field_capacity ? 2 * plan->field_capacity : 16;
        RecordField *fields = arena_array(plan->arena, RecordField, capacity);
        if (plan->field_count)
            memcpy(fields, plan->fields, sizeof *fields * (size_t)plan->field_count);
        plan->fields = fields;
        plan->field_capacity = capacity;
    }
    plan->fields[plan->field_count] = (RecordField){kind, index, dim};
    return plan->field_count++;
}

static Plan *plan_new(Sema *sema) {
    enum { MOST = 64 };
    Plan *plan = arena_new_of(sema->arena, Plan);
    plan->arena = sema->arena;
    plan->target = sema->options->target;
    plan->cluster = 1;
    plan->occupancy = 1;
    plan->constants = arena_array(sema->arena, Constant, MOST);
    plan->axes = arena_array(sema->arena, Axis, MOST);
    plan->dims = arena_array(sema->arena, RuntimeDim, MOST);
    plan->tensors = arena_array(sema->arena, Tensor, MOST);
    plan->params = arena_array(sema->arena, Param, MOST);
    plan->factors = arena_array(sema->arena, Factor, MOST);
    plan->walks = arena_array(sema->arena, Walk *, MOST);
    plan->turns = arena_array(sema->arena, Turn *, MOST);
    plan->buffers = arena_array(sema->arena, Buffer *, MOST);
    plan->pipes = arena_array(sema->arena, Pipe *, MOST);
    plan->roles = arena_array(sema->arena, Role *, MOST);
    return plan;
}

static void read_roles(Sema *sema) {
    for (const Ast *item = sema->parts->schedule->list; item; item = item->next) {
        if (item->kind != AST_ROLE)
            continue;
        Symbol *symbol = scope_find(sema->schedule, item->name);
        if (symbol && symbol->kind == SYM_ROLE && symbol->span.start == item->name_span.start)
            sema_role(sema, symbol->role, item);
    }
    // A slot that is taken and freed without a look at it is freed by threads.
    for (int i = 0; i < sema->plan->pipe_count; i++)
        if (sema->plan->pipes[i]->used_by == ENGINE_NONE && sema->plan->pipes[i]->to_span.end)
            sema->plan->pipes[i]->used_by = ENGINE_THREADS;
}

Plan *sema_build(Arena *arena, Diag *diag, const Ast *program, const SemaOptions *options, SemaParts *parts) {
    Sema sema = {.arena = arena, .diag = diag, .options = options, .parts = parts};
    parts->kernel = only_kernel(&sema, program);
    if (!parts->kernel)
        return NULL;
    parts->family = find_family(&sema, program, parts->kernel);
    if (!parts->family)
        return NULL;
    parts->schedule = find_schedule(&sema, program, parts->kernel);
    sema.plan = plan_new(&sema);
    sema.global = scope_new(&sema, NULL);
    add_builtins(&sema);
    read_defines(&sema);
    sema.family = scope_new(&sema, sema.global);
    sema.kernel = scope_new(&sema, sema.family);
    sema.schedule = scope_new(&sema, sema.family);
    declare_family(&sema);
    declare_kernel(&sema);
    parts->draft = sema.plan;
    parts->kernel_constants = sema.plan->constant_count;
    if (!parts->schedule)
        return NULL;
    tune_choose(&sema);
    declare_schedule(&sema);
    tune_check_used(&sema);
    // Else slots would be told to be free or held that are not, and loops to be over nothing.
    if (!sema.lost_round && !sema.lost_walk && sema.tiles)
        read_roles(&sema);
    check_defines(&sema);
    if (diag->error_count)
        return NULL;
    declare_rounds(&sema);
    cluster_check(&sema);
    bounds_check(&sema);
    Plan *plan = sema.plan;
    plan->kernel_name = parts->kernel->name;
    plan->family_name = parts->family->name;
    plan->schedule_name = parts->schedule->name;
    plan->kernel_span = parts->kernel->name_span;
    plan->schedule_span = parts->schedule->name_span;
    plan->source_path = diag->sources->files[0].path;
    return diag->error_count ? NULL : plan;
}
