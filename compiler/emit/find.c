// find.c: where ptxas is.
#include "compiler/emit/emit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_program(const char *path) {
    struct stat info;
    return !stat(path, &info) && S_ISREG(info.st_mode) && !access(path, X_OK);
}

static const char *find_on_path(Arena *arena) {
    const char *rest = getenv("PATH");
    while (rest && *rest) {
        size_t length = strcspn(rest, ":");
        const char *folder = length ? arena_copy(arena, rest, length) : ".";
        const char *candidate = arena_format(arena, "%s/ptxas", folder);
        if (is_program(candidate))
            return candidate;
        rest += length + (rest[length] == ':');
    }
    return NULL;
}

static const char *find_in_cuda_home(Arena *arena) {
    const char *home = getenv("CUDA_HOME");
    const char *candidate = home && *home ? arena_format(arena, "%s/bin/ptxas", home) : NULL;
    return candidate && is_program(candidate) ? candidate : NULL;
}

const char *emit_find_ptxas(Arena *arena, const char **message) {
    static const char USUAL[] = "/usr/local/cuda/bin/ptxas";
    const char *named = getenv("JFAC_PTXAS");
    if (named && *named) {
        if (is_program(named))
            return named;
        *message = arena_format(arena, "JFAC_PTXAS names '%s', which is no program that can be run", named);
        return NULL;
    }
    if (is_program(JFAC_PTXAS_BUNDLED))
        return JFAC_PTXAS_BUNDLED;
    const char *found = find_on_path(arena);
    if (!found)
        found = find_in_cuda_home(arena);
    if (!found && is_program(USUAL))
        found = USUAL;
    if (!found)
        *message = arena_format(
            arena, "there is no ptxas: looked at $JFAC_PTXAS (not set), %s, PATH, $CUDA_HOME/bin (%s) and %s",
            JFAC_PTXAS_BUNDLED, getenv("CUDA_HOME") ? getenv("CUDA_HOME") : "not set", USUAL);
    return found;
}
