// warps.c: which warps of the CTA a role's replicas are, and the registers of their threads. Registers are
// moved between warpgroups, not roles (PTX ISA, "setmaxnreg": all warps of a warpgroup execute the same one),
// so roles within one warpgroup must agree.
#include "compiler/plan/place_steps.h"
#include "compiler/plan/lookup.h"

enum {
    THREADS_PER_WARP = 32,
    // setmaxnreg takes multiples of 8 in 24..256; a thread can use no more than 255.
    REGS_STEP = 8,
    REGS_LEAST = 24,
    REGS_MOST = 248,
};

static int round_up(int value, int step) {
    return (value + step - 1) / step * step;
}

static int all_warps(const Role *role) {
    return role->warps * role->replicas;
}

// A role that touches tensor memory has a multiple of 4 warps, as its tiles have 128 rows; so its replicas
// may follow each other directly.
static bool starts_group(const Role *role) {
    return role->touches_tmem || all_warps(role) >= WARPGROUP_WARPS;
}

// Roles of few warps stand together, after the others; none lies across two warpgroups.
static void number_warps(Plan *plan) {
    int next = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < plan->role_count; i++) {
            Role *role = plan->roles[i];
            if (starts_group(role) != (pass == 0))
                continue;
            bool crosses = next / WARPGROUP_WARPS != (next + all_warps(role) - 1) / WARPGROUP_WARPS;
            role->first_warp = pass == 0 || crosses ? round_up(next, WARPGROUP_WARPS) : next;
            next = role->first_warp + all_warps(role);
        }
        if (pass == 1 && plan->queue_depth) // stands with the small roles, or alone
            plan->queue_warp = next++;
        next = round_up(next, WARPGROUP_WARPS);
    }
    plan->warps = next;
}

static bool check_range(const Role *role, Diag *diag) {
    if (role->regs == 0 ||
        (role->regs % REGS_STEP == 0 && role->regs >= REGS_LEAST && role->regs <= REGS_MOST))
        return true;
    DiagItem *error = diag_error(diag, role->regs_span, "register-count",
                                 "role '%s' can't have %d registers a thread", role->name, role->regs);
    int nearest = round_up(role->regs, REGS_STEP);
    nearest = nearest < REGS_LEAST ? REGS_LEAST : nearest > REGS_MOST ? REGS_MOST : nearest;
    diag_help(error, "registers are given out in multiples of %d from %d to %d: %d, for example", REGS_STEP,
              REGS_LEAST, REGS_MOST, nearest);
    return false;
}

// Either all roles say their registers or none.
static bool check_all_or_none(const Plan *plan, Diag *diag) {
    const Role *stated = NULL, *missing = NULL;
    const char *names = "";
    for (int i = 0; i < plan->role_count; i++) {
        const Role *role = plan->roles[i];
        if (role->regs) {
            stated = stated ? stated : role;
            continue;
        }
        missing = missing ? missing : role;
        names = arena_format(plan->arena, "%s%s'%s'", names, *names ? ", " : "", role->name);
    }
    if (!stated || !missing)
        return true;
    DiagItem *error = diag_error(diag, missing->span, "register-missing",
                                 "role '%s' says its registers, but these don't: %s", stated->name, names);
    diag_note(error, stated->regs_span, "stated here");
    diag_help(error, "registers are moved between roles, so all roles say theirs, or none does");
    return false;
}

// The registers of a warpgroup: those of its roles, which must agree.
static bool group_registers(const Plan *plan, int group, int *regs, Diag *diag) {
    const Role *first = NULL;
    for (int i = 0; i < plan->role_count; i++) {
        const Role *role = plan->roles[i];
        if (!role_in_warpgroup(role, group))
            continue;
        if (first && first->regs != role->regs) {
            DiagItem *error = diag_error(diag, role->regs_span, "register-group",
                                         "roles '%s' and '%s' share a warpgroup, but say %d and %d registers",
                                         first->name, role->name, first->regs, role->regs);
            diag_note(error, first->regs_span, "'%s' says %d here", first->name, first->regs);
            diag_help(error, "%d warps that stand together have the same registers: use %d for both",
                      WARPGROUP_WARPS, first->regs > role->regs ? first->regs : role->regs);
            return false;
        }
        first = first ? first : role;
    }
    *regs = first ? first->regs : REGS_LEAST;
    return true;
}

static void check_sum(const Plan *plan, int sum, Diag *diag) {
    int group_threads = WARPGROUP_WARPS * THREADS_PER_WARP, groups = plan->warps / WARPGROUP_WARPS;
    int available = plan->launch_regs * groups;
    if (sum <= available)
        return;
    DiagItem *error = diag_error(diag, plan->schedule_span, "register-budget",
                                 "the roles want %d registers, %d more than the %d that %d threads have",
                                 sum * group_threads, (sum - available) * group_threads,
                                 available * group_threads, groups * group_threads);
    if (plan->occupancy > 1)
        diag_note(error, plan->occupancy_span, "CTAs that an SM runs at a time share its registers");
    for (int i = 0; i < plan->role_count; i++) {
        const Role *role = plan->roles[i];
        diag_note(error, role->regs_span, "'%s' has %d warp%s with %d registers a thread", role->name,
                  all_warps(role), all_warps(role) == 1 ? "" : "s", role->regs);
    }
    diag_help(
        error,
        "summed once for each %d warps, the roles' numbers may come to %d: here they come to %d, so state "
        "%d fewer",
        WARPGROUP_WARPS, available, sum, sum - available);
}

static void place_registers(Plan *plan, Diag *diag) {
    bool good = check_all_or_none(plan, diag);
    for (int i = 0; i < plan->role_count; i++)
        good &= check_range(plan->roles[i], diag);
    bool stated = plan->role_count > 0 && plan->roles[0]->regs > 0;
    int sum = 0;
    for (int group = 0; good && group < plan->warps / WARPGROUP_WARPS; group++) {
        int regs = plan->launch_regs;
        if (stated && !group_registers(plan, group, &regs, diag))
            return;
        sum += regs;
    }
    for (int i = 0; i < plan->role_count; i++)
        plan->roles[i]->final_regs = stated ? plan->roles[i]->regs : plan->launch_regs;
    if (good && stated)
        check_sum(plan, sum, diag);
}

void warps_place(Plan *plan, Diag *diag) {
    if (plan->role_count == 0) {
        diag_error(diag, plan->schedule_span, "no-role", "schedule '%s' has no role", plan->schedule_name);
        return;
    }
    number_warps(plan);
    int most = plan->target->max_threads / THREADS_PER_WARP;
    if (plan->warps > most) {
        DiagItem *error = diag_error(diag, plan->schedule_span, "thread-budget",
                                     "the roles need %d warps, %d more than the %d of a CTA", plan->warps,
                                     plan->warps - most, most);
        for (int i = 0; i < plan->role_count; i++) {
            const Role *role = plan->roles[i];
            diag_note(error, role->warps_span, "'%s' has %d x %d warp%s", role->name, role->replicas,
                      role->warps, role->warps == 1 ? "" : "s");
        }
        diag_help(
            error,
            "use fewer replicas or warps; roles of tensor memory or of %d warps start at a multiple of %d",
            WARPGROUP_WARPS, WARPGROUP_WARPS);
        return;
    }
    int threads = plan->occupancy * plan->warps * THREADS_PER_WARP;
    if (threads > plan->target->sm_threads) {
        DiagItem *error =
            diag_error(diag, plan->occupancy_span, "thread-budget",
                       "%d CTAs of %d warps have %d threads, %d more than an SM runs at a time",
                       plan->occupancy, plan->warps, threads, threads - plan->target->sm_threads);
        diag_help(error, "with so many warps, an SM runs %d at most",
                  plan->target->sm_threads / (plan->warps * THREADS_PER_WARP));
        return;
    }
    plan->launch_regs = target_launch_regs(plan->target, threads);
    place_registers(plan, diag);
}
