// session.c: one compilation on behalf of a command: where templates are, what a result means for the exit
// status.
#include "compiler/cli/cli.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const char *path) {
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

// The folder of this executable, or NULL.
static const char *own_folder(Arena *arena) {
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    while (length > 0 && path[length - 1] != '/')
        length--;
    return length > 1 ? arena_copy(arena, path, (size_t)length - 1) : NULL;
}

// The user's folders, then those of the templates that exist: beside the executable, under its prefix, where
// jfac was installed to, in the source tree.
static void add_folders(JfacOptions *options, const CliOptions *cli) {
    const char *own = own_folder(cli->arena);
    const char *const candidates[] = {
        own ? arena_format(cli->arena, "%s/templates", own) : "",
        own ? arena_format(cli->arena, "%s/../share/jfac/templates", own) : "",
        JFAC_INSTALLED_TEMPLATES,
        JFAC_SOURCE_TEMPLATES,
    };
    enum { CANDIDATES = sizeof candidates / sizeof candidates[0] };
    const char **folders = arena_array(cli->arena, const char *, cli->include_dirs.count + CANDIDATES);
    int count = cli->include_dirs.count;
    if (count)
        memcpy(folders, cli->include_dirs.items, sizeof *folders * (size_t)count);
    for (int i = 0; i < CANDIDATES; i++)
        if (is_folder(candidates[i]))
            folders[count++] = candidates[i];
    options->include_dirs = folders;
    options->include_dir_count = count;
}

int session_open(Session *session, CliOptions *cli) {
    *session = (Session){.jfac = jfac_new()};
    if (!session->jfac) {
        fprintf(stderr, "jfac: out of memory\n");
        return STATUS_MEMORY;
    }
    int count;
    const Target *const *targets = target_all(&count);
    const char **names = arena_array(cli->arena, const char *, count);
    for (int i = 0; i < count; i++)
        names[i] = targets[i]->name;
    if (!cli->target)
        cli->target = DEFAULT_TARGET;
    if (!target_find(cli->target))
        return usage_error("there is no target '%s'%s", cli->target,
                           suggestion(cli->arena, cli->target, names, count));
    session->options = (JfacOptions){
        .path = cli->file,
        .target = cli->target,
        .kernel = cli->kernel,
        .defines = cli->defines.items,
        .define_count = cli->defines.count,
        .watchdog_ms = cli->watchdog_ms > 0 ? cli->watchdog_ms : 0,
        .tuned = cli->tuned,
        .tuned_device = cli->tuned_device,
    };
    add_folders(&session->options, cli);
    return STATUS_GOOD;
}

void session_close(Session *session) {
    jfac_free(session->jfac);
}

int internal_error(const char *message) {
    fprintf(stderr,
            "jfac: internal error: %s\n"
            "This is a mistake in jfac, not in the file. Please report it with the file and what `jfac "
            "version` says.\n",
            message);
    return STATUS_INTERNAL;
}

int session_status(Session *session, bool step_is_good) {
    const Diag *diag = jfac_diag(session->jfac);
    diag_print_text(diag, stderr);
    if (diag->error_count)
        return STATUS_INPUT;
    if (step_is_good)
        return STATUS_GOOD;
    return internal_error(session->message ? session->message : "the compilation failed without a reason");
}

void session_tell_tuned(const Session *session) {
    const SemaParts *parts = jfac_parts(session->jfac);
    const char *file = session->options.tuned;
    if (!file || (!parts->tuned && !parts->tuned_missing))
        return; // not asked for, or never read
    if (!parts->tuned) {
        fprintf(stderr, "jfac: not tuned: %s %s; the defaults are used\n", file, parts->tuned_missing);
        return;
    }
    fprintf(stderr, "jfac: tuned:");
    for (int i = 0; i < parts->tuned->use_count; i++) {
        const TunedValue *use = &parts->tuned->use[i];
        const char *given = NULL;
        for (int k = 0; k < session->options.define_count; k++) {
            size_t length = strlen(use->name);
            const char *define = session->options.defines[k];
            if (!strncmp(define, use->name, length) && define[length] == '=')
                given = define + length + 1;
        }
        fprintf(stderr, "%s %s=%s%s", i ? "," : "", use->name, given ? given : use->text,
                given ? " (by -D)" : "");
    }
    fprintf(stderr, " from %s\n", file);
}

KernelQuality session_quality(const EmitReport *report, bool strict) {
    return report->has_c75                 ? QUALITY_SERIALISED
           : strict && report->spill_bytes ? QUALITY_SPILLS
                                           : QUALITY_GOOD;
}

// ptxas refuses only what jfac got wrong, unless it doesn't know the target or its PTX version, was ended, or
// a thread has fewer registers at launch than one product's operands.
static int assembly_failure(const EmitReport *report, const char *message) {
    if (report->is_short_of_registers) {
        fprintf(
            stderr,
            "jfac: error: %s\n"
            "help: at launch a thread has an equal share of the SM's registers, whatever its role has later: "
            "use fewer warps, fewer CTAs an SM, or smaller tiles\n",
            message);
        return STATUS_INPUT;
    }
    if (report->found && report->status > 0 && !report->is_too_old)
        return internal_error(message);
    fprintf(stderr, "jfac: %s\n", message);
    if (!report->found)
        fprintf(stderr, "help: install CUDA's ptxas, or name one by JFAC_PTXAS; `--emit ptx` needs none\n");
    else if (report->is_too_old)
        fprintf(stderr, "help: %s is of version %s; a newer one is needed (JFAC_PTXAS names it)\n",
                report->path, report->version[0] ? report->version : "unknown");
    return STATUS_ENVIRONMENT;
}

int session_assemble(Session *session, const CliOptions *cli, void **cubin, size_t *length,
                     EmitReport *report) {
    const Plan *plan = jfac_plan(session->jfac);
    EmitCubinOptions options = {.line_info = cli->line_info};
    const char *message = NULL;
    if (!emit_cubin(jfac_ptx(session->jfac), plan->target, &options, cli->arena, cubin, length, report,
                    &message))
        return assembly_failure(report, message);
    for (int i = 0; i < report->note_count; i++)
        fprintf(stderr, "jfac: ptxas: %s\n", report->notes[i]);
    if (report->spill_bytes)
        fprintf(stderr, "jfac: ptxas: registers were spilled to memory, %lld bytes a thread\n",
                (long long)report->spill_bytes);
    return STATUS_GOOD;
}
