// write.c: entries of a tuned file: made, compared, put into place, written.
#include "compiler/tuned/tuned.h"

#include <stdlib.h>
#include <string.h>

static const char HEADER[] =
    "# What `jfac tune` found to be fastest, for `jfac build --tuned`. Entries are replaced\n"
    "# when they are tuned again; comments are not kept.\n";

TunedEntry *tuned_new(Arena *arena) {
    TunedEntry *entry = arena_new_of(arena, TunedEntry);
    entry->when = arena_array(arena, TunedValue, TUNED_MAX_VALUES);
    entry->use = arena_array(arena, TunedValue, TUNED_MAX_VALUES);
    return entry;
}

void tuned_add(TunedValue *values, int *count, const char *name, const char *text) {
    if (*count < TUNED_MAX_VALUES)
        values[(*count)++] = (TunedValue){.name = name, .text = text};
}

bool tuned_is_equal(const char *a, const char *b) {
    char *end_a, *end_b;
    double x = strtod(a, &end_a), y = strtod(b, &end_b);
    bool are_numbers = end_a != a && end_b != b && !*end_a && !*end_b;
    return !strcmp(a, b) || (are_numbers && x == y);
}

// Lines of the same kind stand in any order.
static bool are_same_settings(const TunedEntry *a, const TunedEntry *b) {
    if (a->when_count != b->when_count)
        return false;
    for (int i = 0; i < a->when_count; i++) {
        bool is_there = false;
        for (int k = 0; k < b->when_count; k++)
            is_there = is_there || (!strcmp(a->when[i].name, b->when[k].name) &&
                                    tuned_is_equal(a->when[i].text, b->when[k].text));
        if (!is_there)
            return false;
    }
    return true;
}

bool tuned_is_same(const TunedEntry *a, const TunedEntry *b) {
    return !strcmp(a->kernel, b->kernel) && !strcmp(a->schedule, b->schedule) &&
           !strcmp(a->target, b->target) && !strcmp(a->device, b->device) && are_same_settings(a, b);
}

TunedEntry *tuned_put(TunedEntry *entries, TunedEntry *entry) {
    TunedEntry **link = &entries;
    while (*link && !tuned_is_same(*link, entry))
        link = &(*link)->next;
    entry->next = *link ? (*link)->next : NULL;
    *link = entry;
    return entries;
}

static void write_values(FILE *out, const char *word, const TunedValue *values, int count) {
    for (int i = 0; i < count; i++)
        fprintf(out, "  %s %s = %s\n", word, values[i].name, values[i].text);
}

static void write_entry(FILE *out, const TunedEntry *entry) {
    fprintf(out, "\nkernel %s\n  schedule %s\n  target %s\n  device %s\n", entry->kernel, entry->schedule,
            entry->target, entry->device);
    write_values(out, "when", entry->when, entry->when_count);
    write_values(out, "use", entry->use, entry->use_count);
    if (entry->measured)
        fprintf(out, "  measured %s\n", entry->measured);
    if (entry->problem)
        fprintf(out, "  on %s\n", entry->problem);
    fputs("end\n", out);
}

const char *tuned_text(Arena *arena, const TunedEntry *entries) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return NULL;
    fputs(HEADER, out);
    for (; entries; entries = entries->next)
        write_entry(out, entries);
    const char *kept = fclose(out) ? NULL : arena_copy(arena, text, length);
    free(text);
    return kept;
}
