// fault.c: reports of what a kernel does wrong. The first one ends its cluster's run.
#include "simulator/machine/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *jfa_sim_fault_name(SimFaultKind kind) {
    static const char *const NAMES[] = {
        [SIM_FAULT_NONE] = "no fault",
        [SIM_FAULT_DEADLOCK] = "deadlock",
        [SIM_FAULT_RACE] = "race",
        [SIM_FAULT_PROXY] = "missing proxy fence",
        [SIM_FAULT_UNWRITTEN] = "read of unwritten memory",
        [SIM_FAULT_BOUNDS] = "out of bounds",
        [SIM_FAULT_ALIGNMENT] = "misaligned",
        [SIM_FAULT_TENSOR_MEMORY] = "tensor memory",
        [SIM_FAULT_DESCRIPTOR] = "illegal descriptor",
        [SIM_FAULT_BARRIER] = "barrier misuse",
        [SIM_FAULT_REGISTERS] = "registers",
        [SIM_FAULT_CONVERGENCE] = "diverged warp",
        [SIM_FAULT_EXIT] = "unfinished at exit",
        [SIM_FAULT_TRAP] = "trap",
        [SIM_FAULT_UNSUPPORTED] = "unsupported",
    };
    return NAMES[kind];
}

static void set_place(SimFault *report, const PtxModule *module, int line, int loc_file, int loc_line) {
    report->line = line;
    report->file_line = loc_line;
    if (loc_line > 0 && loc_file >= 0 && loc_file < module->file_count && module->files[loc_file])
        snprintf(report->file, sizeof report->file, "%s", module->files[loc_file]);
}

static void write_report(Cta *cta, SimFaultKind kind, const PtxInstruction *in, int line, int loc_file,
                         int loc_line, int warp, int lane, const char *format, va_list args) {
    SimFault *report = &cta->cluster->fault;
    if (report->kind != SIM_FAULT_NONE)
        return;
    memset(report, 0, sizeof *report);
    set_place(report, cta->cluster->launch->module->ptx, line, loc_file, loc_line);
    report->kind = kind;
    report->cta = (int)cta->id[0];
    report->warp = warp;
    report->lane = lane;
    char text[900];
    vsnprintf(text, sizeof text, format, args);
    char source[200] = "";
    if (report->file[0])
        snprintf(source, sizeof source, " (%s:%d)", report->file, report->file_line);
    snprintf(report->text, sizeof report->text,
             "%s: %s\n  at PTX line %d%s: %.200s\n  in CTA %d, warp %d, lane %d", jfa_sim_fault_name(kind),
             text, line, source, in ? in->text : "", report->cta, warp, lane);
}

void fault(Warp *warp, const Op *op, SimFaultKind kind, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const Group *group = &warp->groups[warp->current];
    int lane = warp->group_count && group->mask ? first_lane(group->mask) : 0;
    write_report(warp->cta, kind, op->source, op->line, op->loc_file, op->loc_line, warp->number, lane,
                 format, args);
    va_end(args);
}

void fault_async(Cta *cta, const Async *async, SimFaultKind kind, const char *format, ...) {
    va_list args;
    va_start(args, format);
    write_report(cta, kind, async->op->source, async->line, async->op->loc_file, async->op->loc_line,
                 async->warp, (int)(async->thread % LANES), format, args);
    va_end(args);
}

static size_t describe_waiter(Warp *warp, const Group *group, SimFault *report, char *text, size_t size) {
    const Launch *launch = warp->cta->cluster->launch;
    const PtxModule *module = launch->module->ptx;
    const Op *op = &launch->program->ops[group->pc > 0 ? group->pc - 1 : 0];
    char what[160], source[160] = "";
    if (op->loc_line > 0 && op->loc_file >= 0 && op->loc_file < module->file_count &&
        module->files[op->loc_file])
        snprintf(source, sizeof source, " (%s:%d)", module->files[op->loc_file], op->loc_line);
    if (!report->line)
        set_place(report, module, op->line, op->loc_file, op->loc_line);
    int length = snprintf(text, size, "\n  CTA %d warp %d, PTX line %d%s: %s", (int)warp->cta->id[0],
                          warp->number, op->line, source, wait_text(warp, group, what, sizeof what));
    return length < 0 ? 0 : (size_t)length;
}

static void write_waits(Cluster *cluster, const char *headline) {
    SimFault *report = &cluster->fault;
    if (report->kind != SIM_FAULT_NONE)
        return;
    memset(report, 0, sizeof *report);
    report->kind = SIM_FAULT_DEADLOCK;
    report->cta = (int)cluster->ctas[0].id[0];
    size_t used = (size_t)snprintf(report->text, sizeof report->text, "%s", headline);
    // Those that wait for data first: the others wait for them.
    for (int pass = 0; pass < 2; pass++)
        for (int c = 0; c < cluster->cta_count; c++)
            for (int w = 0; w < cluster->ctas[c].warp_count; w++) {
                Warp *warp = &cluster->ctas[c].warps[w];
                for (int g = 0; g < warp->group_count && used < sizeof report->text; g++)
                    if ((warp->groups[g].wait == WAIT_BARRIER || warp->groups[g].wait == WAIT_WARP) ==
                        (pass == 1))
                        used += describe_waiter(warp, &warp->groups[g], report, report->text + used,
                                                sizeof report->text - used);
            }
}

void fault_deadlock(Cluster *cluster) {
    write_waits(cluster, "deadlock: no warp can go on and nothing asynchronous is under way");
}

void fault_endless(Cluster *cluster, uint64_t limit) {
    char headline[120];
    snprintf(headline, sizeof headline, "deadlock: no end after %llu instructions of warps",
             (unsigned long long)limit);
    write_waits(cluster, headline);
}
