// explain.c: the plan for its author: what lies where, what completes what, and how much of the chip is used.
#include "compiler/plan/explain.h"
#include "compiler/plan/lookup.h"
#include "grammar/ast.h"

enum { BAR_CELLS = 20 };

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

// ---------------------------------------------------------------- constants

static void print_choices(const Plan *plan, FILE *out) {
    bool is_first = true;
    for (int i = 0; i < plan->constant_count; i++) {
        const Constant *constant = &plan->constants[i];
        if (!constant->choice_count)
            continue;
        if (is_first)
            fprintf(out, "%-14s %-10s %s\n", "tuned", "value", "tried by jfac tune");
        is_first = false;
        fprintf(out, "  %-12s %-10s ", constant->name, constant_text(plan->arena, constant, constant->value));
        for (int k = 0; k < constant->choice_count; k++)
            fprintf(out, "%s%s", k ? ", " : "", constant_text(plan->arena, constant, constant->choices[k]));
        fputc('\n', out);
    }
}

// ---------------------------------------------------------------- buffers

static const char *shape(const Plan *plan, const Buffer *buffer) {
    return buffer->rank == 1
               ? arena_format(plan->arena, "%s[%d]", elem_name(buffer->elem), buffer->rows)
               : arena_format(plan->arena, "%s[%d, %d]", elem_name(buffer->elem), buffer->rows, buffer->cols);
}

static void print_buffers(const Plan *plan, FILE *out) {
    fprintf(out, "%-14s %-10s %-18s %-24s %s\n", "buffer", "instances", "type", "size", "lies in");
    for (int i = 0; i < plan->buffer_count; i++) {
        const Buffer *buffer = plan->buffers[i];
        bool shared = buffer->space == SPACE_SMEM;
        int64_t each = shared ? buffer->bytes : buffer->columns, all = each * buffer_instances(buffer);
        const char *size = arena_format(plan->arena, "%lld %s, each %lld", (long long)all,
                                        shared ? "bytes" : "columns", (long long)each);
        fprintf(out, "  %-12s %-10lld %-18s %-24s %s memory at %lld", buffer->name,
                (long long)buffer_instances(buffer), shape(plan, buffer), size, shared ? "shared" : "tensor",
                (long long)buffer->offset);
        if (buffer->over)
            fprintf(out, ", over %s", buffer->over->name);
        else if (buffer->swizzle_bytes)
            fprintf(out, ", swizzle %d", buffer->swizzle_bytes);
        fputc('\n', out);
    }
}

// ---------------------------------------------------------------- pipes

static const char *full_text(const Plan *plan, const Pipe *pipe) {
    switch (pipe->filled_by) {
    case ENGINE_LOAD:
        return arena_format(plan->arena, "%lld bytes have come", (long long)pipe->bytes);
    case ENGINE_PRODUCT:
        return "the product is done";
    case ENGINE_THREADS:
        return arena_format(plan->arena, "%d warp%s wrote it", pipe->full_count, plural(pipe->full_count));
    default:
        return "never";
    }
}

static const char *used_text(const Plan *plan, const Pipe *pipe) {
    if (pipe_gives_on(plan, pipe))
        return "";
    if (pipe->free_is_ordered)
        return "in the tensor core's order, without a barrier";
    switch (pipe->used_by) {
    case ENGINE_PRODUCT:
        return "the products that read it are done";
    case ENGINE_STORE:
        return "the store has read it";
    default:
        return arena_format(plan->arena, "%d warp%s freed it", pipe->empty_count, plural(pipe->empty_count));
    }
}

static const char *free_text(const Plan *plan, const Pipe *pipe) {
    const Pipe *next = pipe_next(plan, pipe);
    const char *used = used_text(plan, pipe);
    if (pipe_gives_on(plan, pipe))
        return arena_format(plan->arena, "handed on to %s", next->name);
    if (pipe->in_place)
        return arena_format(plan->arena, "%s; keeps its contents", used);
    return next == pipe ? used : arena_format(plan->arena, "%s; then %s", used, next->name);
}

static void print_pipes(const Plan *plan, FILE *out) {
    fprintf(out, "%-14s %-10s %-20s %-22s %s\n", "pipe", "slots", "from -> to", "full when",
            "free again when");
    for (int i = 0; i < plan->pipe_count; i++) {
        const Pipe *pipe = plan->pipes[i];
        const char *slots = pipe->is_array
                                ? arena_format(plan->arena, "%d x %d", pipe->array, pipe->buffer->depth)
                                : arena_format(plan->arena, "%d", pipe->buffer->depth);
        const char *way =
            arena_format(plan->arena, "%s -> %s", pipe->from->name, pipe_takers_text(plan, pipe));
        fprintf(out, "  %-12s %-10s %-20s %-22s %s\n", pipe->name, slots, way, full_text(plan, pipe),
                free_text(plan, pipe));
    }
}

// ---------------------------------------------------------------- roles and budgets

static const char *work_text(const Plan *plan, const Role *role) {
    if (role->uses_values && plan->target->products_in_registers)
        return role->issues_products ? "all threads compute and multiply" : "all threads compute";
    if (role->uses_values)
        return role->touches_tmem ? "all threads compute, a row each; reads or writes tensor memory"
                                  : "all threads compute, a row each";
    return role->issues_products ? "one thread issues products" : "one thread moves tiles";
}

static void print_roles(const Plan *plan, FILE *out) {
    fprintf(out, "%-14s %-10s %-20s %s\n", "role", "warps", "registers a thread", "does");
    for (int i = 0; i < plan->role_count; i++) {
        const Role *role = plan->roles[i];
        const char *warps = role->replicas > 1
                                ? arena_format(plan->arena, "%d x %d", role->replicas, role->warps)
                                : arena_format(plan->arena, "%d", role->warps);
        const char *regs =
            arena_format(plan->arena, "%d%s", role->final_regs, role->regs ? "" : " (as launched)");
        fprintf(out, "  %-12s %-10s %-20s %s\n", role->name, warps, regs, work_text(plan, role));
    }
}

static void print_budget(const char *name, int64_t used, int64_t available, const char *unit, FILE *out) {
    if (available <= 0)
        return;
    char bar[BAR_CELLS + 1];
    int64_t cells = used * BAR_CELLS / available;
    for (int i = 0; i < BAR_CELLS; i++)
        bar[i] = i < cells ? '#' : '.';
    bar[BAR_CELLS] = 0;
    fprintf(out, "  %-14s [%s] %3lld%%  %lld of %lld %s\n", name, bar, (long long)(used * 100 / available),
            (long long)used, (long long)available, unit);
}

static int64_t registers_used(const Plan *plan) {
    int64_t sum = 0;
    for (int group = 0; group < plan->warps / WARPGROUP_WARPS; group++)
        for (int i = 0; i < plan->role_count; i++)
            if (role_in_warpgroup(plan->roles[i], group)) {
                sum += (int64_t)plan->roles[i]->final_regs * WARPGROUP_THREADS;
                break;
            }
    return sum;
}

static void print_budgets(const Plan *plan, FILE *out) {
    int threads = plan->warps / WARPGROUP_WARPS * WARPGROUP_THREADS;
    fprintf(out, "budget\n");
    print_budget("shared memory", plan->shared_bytes, target_shared_bytes(plan->target, plan->occupancy),
                 "bytes", out);
    print_budget("tensor memory", plan->tmem_allocation, plan->target->tmem_columns / plan->occupancy,
                 "columns", out);
    print_budget("registers", registers_used(plan), (int64_t)plan->launch_regs * threads,
                 "of the threads at launch", out);
    print_budget("threads", threads, plan->target->max_threads, "of a CTA", out);
    print_budget("barriers", plan->mbarriers, plan->target->max_mbarriers, "barriers", out);
}

static void print_report(const ExplainReport *report, FILE *out) {
    if (report->has_ptxas) {
        fprintf(out, "assembled: %d registers a thread, ", report->registers);
        if (report->spill_store_bytes || report->spill_load_bytes)
            fprintf(out, "SPILLS: %lld bytes stored, %lld loaded, ", (long long)report->spill_store_bytes,
                    (long long)report->spill_load_bytes);
        else
            fprintf(out, "no spills, ");
        fprintf(out, "%lld bytes of stack", (long long)report->stack_bytes);
        if (report->code_bytes)
            fprintf(out, ", %lld bytes of code", (long long)report->code_bytes);
        fputc('\n', out);
    }
    double total = 0;
    for (int i = 0; i < report->phase_count; i++) {
        fprintf(out, "%s%s %.1f ms", i ? ", " : "compiled: ", report->phases[i].name,
                report->phases[i].milliseconds);
        total += report->phases[i].milliseconds;
    }
    if (report->phase_count)
        fprintf(out, "; together %.1f ms\n", total);
}

void explain_print(const Plan *plan, const ExplainReport *report, FILE *out) {
    fprintf(out, "kernel %s : %s, schedule %s for %s\n\n", plan->kernel_name, plan->family_name,
            plan->schedule_name, plan->target->name);
    if (plan->cluster > 1)
        fprintf(out, "clusters of %d CTAs work on a tile together\n\n", plan->cluster);
    if (plan->occupancy > 1)
        fprintf(out, "an SM runs %d CTAs at a time; what follows is what each has\n\n", plan->occupancy);
    print_choices(plan, out);
    print_buffers(plan, out);
    print_pipes(plan, out);
    print_roles(plan, out);
    print_budgets(plan, out);
    print_report(report, out);
}
