// log.c: takes what `ptxas -v` printed, gives numbers. An entry's block looks like this:
//
//   ptxas info    : Compiling entry function 'name' for 'sm_90a'
//   ptxas info    : Function properties for name
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 168 registers, used 1 barriers, 224 bytes smem
//
// A number is found by the words behind it, so that new fields and another order do no harm.
#include "compiler/emit/emit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// What a number in the log means. Words are matched right behind the number and its space.
typedef struct {
    const char *words;
    size_t offset; // into EmitEntry
    bool is_wide;  // int64_t, else int
} Number;

static const Number NUMBERS[] = {
    {"bytes stack frame", offsetof(EmitEntry, stack_bytes), true},
    {"bytes spill stores", offsetof(EmitEntry, spill_store_bytes), true},
    {"bytes spill loads", offsetof(EmitEntry, spill_load_bytes), true},
    {"bytes smem", offsetof(EmitEntry, shared_bytes), true},
    {"registers", offsetof(EmitEntry, registers), false},
    {"barriers", offsetof(EmitEntry, barriers), false},
};

static void store(EmitEntry *entry, const Number *number, long long value) {
    char *field = (char *)entry + number->offset;
    if (number->is_wide) {
        int64_t wide = value;
        memcpy(field, &wide, sizeof wide);
    } else {
        int narrow = (int)value;
        memcpy(field, &narrow, sizeof narrow);
    }
}

static void read_numbers(const char *line, EmitEntry *entry) {
    for (const char *at = line; *at; at++) {
        if (!isdigit((unsigned char)*at) || (at > line && at[-1] != ' '))
            continue;
        char *end;
        long long value = strtoll(at, &end, 10);
        for (size_t i = 0; *end == ' ' && i < sizeof NUMBERS / sizeof NUMBERS[0]; i++)
            if (!strncmp(end + 1, NUMBERS[i].words, strlen(NUMBERS[i].words)))
                store(entry, &NUMBERS[i], value);
        at = end - 1;
    }
}

// The text between single quotes behind `mark`, or NULL.
static const char *quoted_after(const char *line, const char *mark, Arena *arena) {
    const char *start = strstr(line, mark);
    if (!start)
        return NULL;
    start += strlen(mark);
    const char *end = strchr(start, '\'');
    return end ? arena_copy(arena, start, (size_t)(end - start)) : NULL;
}

static bool is_c75(const char *line) {
    for (const char *at = line; (at = strstr(at, "C75")); at++)
        if (isdigit((unsigned char)at[3]) && isdigit((unsigned char)at[4]))
            return true;
    return false;
}

// Warnings and errors name themselves in the line's head: "ptxas warning : ...", "ptxas fatal   : ...",
// "ptxas file.ptx, line 7; error   : ...".
static bool is_trouble(const char *line) {
    static const char *const WORDS[] = {"warning", "error", "fatal"};
    const char *head = strstr(line, " : ");
    for (size_t i = 0; head && i < sizeof WORDS / sizeof WORDS[0]; i++) {
        const char *word = strstr(line, WORDS[i]);
        if (word && word < head)
            return true;
    }
    return false;
}

static const char *without_prefix(const char *line) {
    static const char PREFIX[] = "ptxas ";
    return strncmp(line, PREFIX, sizeof PREFIX - 1) ? line : line + sizeof PREFIX - 1;
}

static int count_lines(const char *text) {
    int count = 1;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

void emit_parse_log(const char *log, Arena *arena, EmitReport *report) {
    int lines = count_lines(log);
    EmitEntry *entries = arena_array(arena, EmitEntry, lines);
    const char **notes = arena_array(arena, const char *, lines);
    int entry_count = 0, note_count = 0;
    report->has_c75 = false;
    report->spill_bytes = 0;
    while (*log) {
        size_t length = strcspn(log, "\n");
        const char *line = arena_copy(arena, log, length);
        log += length + (log[length] == '\n');
        const char *name = quoted_after(line, "Compiling entry function '", arena);
        if (name)
            entries[entry_count++].name = name;
        else if (is_c75(line) || is_trouble(line))
            notes[note_count++] = without_prefix(line);
        else if (entry_count)
            read_numbers(line, &entries[entry_count - 1]);
        report->has_c75 = report->has_c75 || is_c75(line);
    }
    for (int i = 0; i < entry_count; i++)
        report->spill_bytes += entries[i].spill_store_bytes + entries[i].spill_load_bytes;
    report->entries = entries;
    report->entry_count = entry_count;
    report->notes = notes;
    report->note_count = note_count;
}
