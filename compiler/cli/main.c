// main.c: jfac COMMAND [FILE] [options]. Finds the command, reads its options, runs it.
#include "compiler/cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

const Command COMMANDS[] = {
    {.name = "build",
     .summary = "compile a kernel to a cubin",
     .usage = "jfac build FILE [options]",
     .examples = "  jfac build examples/dense.jfa                      writes dense.cubin for sm_100a\n"
                 "  jfac build examples/dense.jfa --target sm_90a -o out/dense.cubin\n"
                 "  jfac build examples/dense.jfa --emit ptx -o -      prints PTX\n"
                 "  jfac build examples/dense.jfa --emit plan          shows what the compiler decided\n"
                 "  jfac build examples/matmul.jfa -D STAGES=6         changes a constant of the schedule\n",
     .run = command_build,
     .takes_file = true},
    {.name = "check",
     .summary = "report all errors in a kernel, and write nothing",
     .usage = "jfac check FILE [options]",
     .examples = "  jfac check examples/dense.jfa\n"
                 "  jfac check examples/dense.jfa --json               for editors\n",
     .run = command_check,
     .takes_file = true},
    {.name = "new",
     .summary = "write a kernel file to start from",
     .usage = "jfac new NAME --like FILE [options]",
     .examples = "  jfac new my_window --like examples/dense.jfa       writes my_window.jfa\n",
     .run = command_new,
     .takes_file = true},
    {.name = "explain",
     .summary = "show buffers, pipes, roles and what they use of the chip",
     .usage = "jfac explain FILE [options]",
     .examples = "  jfac explain examples/dense.jfa --target sm_90a\n",
     .run = command_explain,
     .takes_file = true},
    {.name = "run",
     .summary = "run a kernel on made-up inputs and compare with its reference",
     .usage = "jfac run FILE [options]",
     .examples = "  jfac run examples/dense.jfa                        simulated, a few short sequences\n"
                 "  jfac run examples/dense.jfa --device cuda:0 --batch 4 --len 4096 --heads 16\n"
                 "  jfac run examples/dense.jfa --lens 'q=1,128;k=300,0' --heads 4 --kv-heads 2 --seeds 5\n"
                 "  jfac run examples/dense.jfa --lens-file lengths.txt --limit 100\n",
     .run = command_run,
     .takes_file = true,
     .takes_dims = true},
    {.name = "tune",
     .summary = "measure what a schedule's constants may be, and keep the fastest for build",
     .usage = "jfac tune FILE [options]",
     .examples = "  jfac tune examples/dense.jfa --batch 4 --len 4096 --heads 16 -o dense.tuned\n"
                 "  jfac build examples/dense.jfa --tuned dense.tuned\n"
                 "  jfac tune examples/dense.jfa --lens-file lengths.txt -D head_dim=64 -D STAGES=4\n"
                 "  jfac tune examples/matmul.jfa --measure instructions --lens 'm=64;n=128;k=64'\n",
     .run = command_tune,
     .takes_file = true,
     .takes_dims = true},
    {.name = "version",
     .summary = "show the versions of jfac, LLVM and ptxas, and the targets",
     .usage = "jfac version",
     .examples = "  jfac version\n",
     .run = command_version},
};
const int COMMAND_COUNT = sizeof COMMANDS / sizeof COMMANDS[0];

static const Command *find_command(const char *name) {
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (!strcmp(COMMANDS[i].name, name))
            return &COMMANDS[i];
    return NULL;
}

static int unknown_command(const char *name, Arena *arena) {
    const char **names = arena_array(arena, const char *, COMMAND_COUNT);
    for (int i = 0; i < COMMAND_COUNT; i++)
        names[i] = COMMANDS[i].name;
    return usage_error("there is no command '%s'%s", name, suggestion(arena, name, names, COMMAND_COUNT));
}

static bool is_help(const char *argument) {
    return !strcmp(argument, "--help") || !strcmp(argument, "-h") || !strcmp(argument, "help");
}

static int run(int argc, char **argv, Arena *arena) {
    if (argc < 2) {
        help_general(stderr);
        return STATUS_USAGE;
    }
    if (is_help(argv[1]) && argc == 2) {
        help_general(stdout);
        return STATUS_GOOD;
    }
    const char *name = is_help(argv[1]) ? argv[2] : argv[1];
    const Command *command = find_command(strcmp(name, "--version") ? name : "version");
    if (!command)
        return unknown_command(name, arena);
    CliOptions options = {.arena = arena};
    if (!is_help(argv[1]) && !options_parse(&options, command, argc - 2, argv + 2))
        return STATUS_USAGE;
    if (is_help(argv[1]) || options.help) {
        help_command(command, stdout);
        return STATUS_GOOD;
    }
    return command->run(&options);
}

int main(int argc, char **argv) {
    signal(SIGXFSZ, SIG_IGN); // a file beyond the user's limit is then told as a write that failed
    Arena *arena = arena_new();
    if (!arena) {
        fprintf(stderr, "jfac: out of memory\n");
        return STATUS_MEMORY;
    }
    int status = run(argc, argv, arena);
    arena_free(arena);
    // A full disk or a closed pipe shows only when what was printed is flushed.
    if ((fflush(stdout) || ferror(stdout)) && status == STATUS_GOOD) {
        fprintf(stderr, "jfac: can't write to standard output\n");
        return STATUS_ENVIRONMENT;
    }
    return status;
}
