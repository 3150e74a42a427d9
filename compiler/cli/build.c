// build.c: jfac build FILE: compiles, and writes one output.
#include "compiler/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    const char *extension; // NULL: printed unless -o says otherwise
    // Runs the steps that the form needs and gives its bytes. NULL: *status says why.
    const char *(*make)(Session *session, CliOptions *options, size_t *length, EmitReport *report,
                        int *status);
} Form;

// What `print` prints, as bytes in the arena.
static const char *capture(Arena *arena, void (*print)(Session *session, FILE *out), Session *session,
                           size_t *length) {
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (!out)
        return NULL;
    print(session, out);
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    const char *kept = arena_copy(arena, text, *length);
    free(text);
    return kept;
}

static void print_tree(Session *session, FILE *out) {
    ast_print(jfac_tree(session->jfac), out);
}

static void print_plan(Session *session, FILE *out) {
    plan_print(jfac_plan(session->jfac), out);
}

static const char *print_captured(Session *session, CliOptions *options, void (*print)(Session *, FILE *),
                                  bool step_is_good, size_t *length, int *status) {
    *status = session_status(session, step_is_good);
    if (*status)
        return NULL;
    const char *text = capture(options->arena, print, session, length);
    if (!text) {
        fprintf(stderr, "jfac: out of memory\n");
        *status = STATUS_MEMORY;
    }
    return text;
}

static const char *make_ast(Session *session, CliOptions *options, size_t *length, EmitReport *report,
                            int *status) {
    (void)report;
    return print_captured(session, options, print_tree, jfac_parse(session->jfac, &session->options), length,
                          status);
}

static const char *make_plan(Session *session, CliOptions *options, size_t *length, EmitReport *report,
                             int *status) {
    (void)report;
    return print_captured(session, options, print_plan, jfac_check(session->jfac, &session->options), length,
                          status);
}

static int lower(Session *session) {
    return session_status(session, jfac_lower(session->jfac, &session->options, &session->message));
}

static const char *make_llvm(Session *session, CliOptions *options, size_t *length, EmitReport *report,
                             int *status) {
    (void)options, (void)report;
    *status = lower(session);
    const char *text = *status ? NULL : jfac_llvm(session->jfac);
    *length = text ? strlen(text) : 0;
    return text;
}

static const char *make_ptx(Session *session, CliOptions *options, size_t *length, EmitReport *report,
                            int *status) {
    (void)options, (void)report;
    *status = lower(session);
    const char *text = *status ? NULL : jfac_ptx(session->jfac);
    *length = text ? strlen(text) : 0;
    return text;
}

// Products that ptxas serialised run at about half the speed, which no one who builds a kernel wants to find
// out by measuring.
static int check_quality(const EmitReport *report, const CliOptions *options) {
    KernelQuality quality = session_quality(report, options->strict);
    if (quality == QUALITY_SERIALISED) {
        fputs("jfac: error: the tensor core's products don't overlap in this kernel, for the reason above; "
              "nothing "
              "was written\n"
              "help: if registers are short, give the role smaller tiles or more registers\n",
              stderr);
        return STATUS_INPUT;
    }
    if (quality == QUALITY_SPILLS) {
        fputs("jfac: error: registers are spilled, which --strict doesn't allow; nothing was written\n"
              "help: give the role smaller tiles or more registers\n",
              stderr);
        return STATUS_INPUT;
    }
    return STATUS_GOOD;
}

static const char *make_cubin(Session *session, CliOptions *options, size_t *length, EmitReport *report,
                              int *status) {
    void *cubin = NULL;
    *status = lower(session);
    if (!*status)
        *status = session_assemble(session, options, &cubin, length, report);
    if (!*status)
        *status = check_quality(report, options);
    return *status ? NULL : cubin;
}

static const Form FORMS[] = {
    {"ast", NULL, make_ast},  {"plan", NULL, make_plan},      {"llvm", "ll", make_llvm},
    {"ptx", "ptx", make_ptx}, {"cubin", "cubin", make_cubin},
};
enum { FORM_COUNT = sizeof FORMS / sizeof FORMS[0] };

static const Form *find_form(const char *name, Arena *arena) {
    const char *names[FORM_COUNT];
    for (int i = 0; i < FORM_COUNT; i++) {
        if (!strcmp(FORMS[i].name, name))
            return &FORMS[i];
        names[i] = FORMS[i].name;
    }
    usage_error("--emit takes ast, plan, llvm, ptx or cubin, not '%s'%s", name,
                suggestion(arena, name, names, FORM_COUNT));
    return NULL;
}

static const char *output_name(const Session *session, const CliOptions *options, const Form *form) {
    if (options->output)
        return options->output;
    if (!form->extension)
        return "-";
    return arena_format(options->arena, "%s.%s", jfac_plan(session->jfac)->kernel_name, form->extension);
}

// "dense.cubin: 47104 bytes for sm_100a, 168 registers, nothing spilled; jfac 41 ms, ptxas 312 ms". Beside an
// output that goes to standard output it would be in the way, so it goes to standard error then.
static void summarise(const Session *session, const CliOptions *options, const char *path, size_t length,
                      const EmitReport *report) {
    bool is_printed = !strcmp(path, "-");
    FILE *out = is_printed ? stderr : stdout;
    JfacTimes times = jfac_times(session->jfac);
    fprintf(out, "%s: %zu bytes for %s", is_printed ? "standard output" : path, length, options->target);
    for (int i = 0; i < report->entry_count; i++)
        fprintf(out, ", %d registers", report->entries[i].registers);
    if (report->entry_count && report->spill_bytes)
        fprintf(out, ", %lld bytes spilled", (long long)report->spill_bytes);
    else if (report->entry_count)
        fputs(", nothing spilled", out);
    fprintf(out, "; jfac %.0f ms", times.front_ms + times.llvm_ms);
    if (report->found)
        fprintf(out, ", ptxas %.0f ms", report->milliseconds);
    fputc('\n', out);
    if (options->timings) {
        fprintf(out, "  front end  %8.1f ms\n  LLVM       %8.1f ms\n", times.front_ms, times.llvm_ms);
        if (report->found)
            fprintf(out, "  ptxas      %8.1f ms (%s, version %s)\n", report->milliseconds, report->path,
                    report->version);
    }
}

static int build(Session *session, CliOptions *options, const Form *form) {
    int status;
    size_t length;
    EmitReport report = {0};
    const char *bytes = form->make(session, options, &length, &report, &status);
    session_tell_tuned(session);
    if (!bytes)
        return status;
    const char *path = output_name(session, options, form), *message;
    fflush(stdout);
    if (!file_write_whole(path, bytes, length, &message)) {
        fprintf(stderr, "jfac: %s\n", message);
        return STATUS_ENVIRONMENT;
    }
    if (form->extension || options->output || options->timings)
        summarise(session, options, path, length, &report);
    return STATUS_GOOD;
}

int command_build(CliOptions *options) {
    const Form *form = find_form(options->emit, options->arena);
    if (!form)
        return STATUS_USAGE;
    Session session;
    int status = session_open(&session, options);
    if (!status)
        status = build(&session, options, form);
    session_close(&session);
    return status;
}
