// help.c: help texts and messages about usage.
#include "compiler/cli/cli.h"

#include <stdarg.h>
#include <stdio.h>

static const char STATUSES[] =
    "exit status:\n"
    "  0   all is well\n"
    "  1   errors in the input; each was printed with its place\n"
    "  2   wrong usage\n"
    "  3   the environment: no ptxas, a file that can't be written, no such device\n"
    "  4   run, tune: a kernel's output is not what it must be\n"
    "  70  a mistake in jfac itself\n"
    "  71  out of memory\n";

void help_general(FILE *out) {
    fprintf(out, "jfac compiles .jfa files, schedules and kernels over jagged sequences, to GPU code.\n\n"
                 "usage: jfac COMMAND [FILE] [options]\n\ncommands:\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-9s %s\n", COMMANDS[i].name, COMMANDS[i].summary);
    fprintf(out,
            "\nexamples:\n"
            "  jfac check examples/dense.jfa\n"
            "  jfac build examples/dense.jfa --target sm_90a\n"
            "  jfac build --help\n\n%s\n"
            "environment:\n"
            "  JFAC_PTXAS  the ptxas to use instead of the one that is found\n"
            "  TMPDIR      where temporary files lie (default /tmp)\n",
            STATUSES);
}

void help_command(const Command *command, FILE *out) {
    fprintf(out, "jfac %s: %s\n\nusage: %s\n\noptions:\n", command->name, command->summary, command->usage);
    options_print(command, out);
    fprintf(out, "\nexamples:\n%s\n%s", command->examples, STATUSES);
}

int usage_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("jfac: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return STATUS_USAGE;
}

const char *suggestion(Arena *arena, const char *name, const char *const *names, int count) {
    const char *closest = diag_closest(name, names, count);
    return closest ? arena_format(arena, "; did you mean '%s'?", closest) : "";
}
