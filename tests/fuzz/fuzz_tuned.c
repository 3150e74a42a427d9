// Tuned files that nobody wrote: one mistake is told, or entries come that are read again as they are
// written.
#include "compiler/tuned/tuned.h"

#include <stdlib.h>
#include <string.h>

static TunedEntry *parse(Arena *arena, const char *text, size_t length, bool *good) {
    SourceSet *sources = arena_new_of(arena, SourceSet);
    Diag diag;
    sources->arena = arena;
    diag_init(&diag, arena, sources);
    TunedEntry *entries;
    *good = tuned_parse(arena, &diag, source_add(sources, "fuzz.tuned", text, length), &entries);
    if (diag.error_count != !*good || (!*good && entries))
        abort();
    char *printed = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&printed, &size);
    if (out) {
        diag_print_text(&diag, out);
        fclose(out);
    }
    free(printed);
    return entries;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena *arena = arena_new();
    if (!arena)
        return 0;
    bool good;
    TunedEntry *entries = parse(arena, (const char *)data, size, &good);
    const char *written = good ? tuned_text(arena, entries) : NULL;
    if (written) {
        TunedEntry *again = parse(arena, written, strlen(written), &good);
        if (!good)
            abort();
        for (; entries && again; entries = entries->next, again = again->next)
            if (!tuned_is_same(entries, again))
                abort();
        if (entries || again)
            abort();
    }
    arena_free(arena);
    return 0;
}
