// version.c: jfac version.
#include "compiler/cli/cli.h"

#include <stdio.h>

int command_version(CliOptions *options) {
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    printf("jfac %s\nLLVM %u.%u.%u\n", JFA_VERSION, major, minor, patch);
    const char *message, *path = emit_find_ptxas(options->arena, &message);
    if (path)
        printf("ptxas %s (%s)\n", emit_ptxas_version(path, options->arena), path);
    else
        printf("no ptxas: %s\n", message);
    int count;
    const Target *const *targets = target_all(&count);
    fputs("targets", stdout);
    for (int i = 0; i < count; i++)
        printf(" %s", targets[i]->name);
    putchar('\n');
    return STATUS_GOOD;
}
