// explain.c: jfac explain FILE: what was decided, and what ptxas makes of it where there is one.
#include "compiler/cli/cli.h"
#include "compiler/plan/explain.h"

#include <stdio.h>
#include <string.h>

static void add_assembly(ExplainReport *explained, const EmitReport *report) {
    if (!report->entry_count)
        return;
    const EmitEntry *entry = &report->entries[0];
    explained->has_ptxas = true;
    explained->registers = entry->registers;
    explained->spill_store_bytes = entry->spill_store_bytes;
    explained->spill_load_bytes = entry->spill_load_bytes;
    explained->stack_bytes = entry->stack_bytes;
    explained->code_bytes = entry->code_bytes;
}

static int explain(Session *session, CliOptions *options) {
    int status = session_status(session, jfac_lower(session->jfac, &session->options, &session->message));
    session_tell_tuned(session);
    if (status)
        return status;
    // Without a ptxas the plan is worth showing all the same.
    const char *message;
    EmitReport report = {0};
    void *cubin;
    size_t length;
    if (emit_find_ptxas(options->arena, &message)) {
        status = session_assemble(session, options, &cubin, &length, &report);
        if (status)
            return status;
    }
    JfacTimes times = jfac_times(session->jfac);
    ExplainPhase phases[] = {
        {"front end", times.front_ms}, {"LLVM", times.llvm_ms}, {"ptxas", report.milliseconds}};
    ExplainReport explained = {.phases = phases, .phase_count = report.found ? 3 : 2};
    add_assembly(&explained, &report);
    explain_print(jfac_plan(session->jfac), &explained, stdout);
    if (!report.found)
        printf("registers and spills are not known: %s\n", message);
    return STATUS_GOOD;
}

int command_explain(CliOptions *options) {
    Session session;
    int status = session_open(&session, options);
    if (!status)
        status = explain(&session, options);
    session_close(&session);
    return status;
}
