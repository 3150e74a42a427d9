// read.c: takes a tuned file's text, gives its entries.
#include "compiler/tuned/tuned.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_WORD = 63, LONGEST_LINE = 1000 };

typedef struct {
    Arena *arena;
    Diag *diag;
    const Source *source;
    int file;
    int at, end; // of what is not yet read of the line
    TunedEntry *entries, **tail, *open;
    int count; // of entries
} Reader;

static Span span_of(const Reader *reader, int start, int end) {
    return (Span){reader->file, start, end};
}

__attribute__((format(printf, 3, 4))) static bool fail(Reader *reader, Span span, const char *format, ...) {
    va_list args;
    va_start(args, format);
    diag_error(reader->diag, span, "tuned-syntax", "%s", arena_vformat(reader->arena, format, args));
    va_end(args);
    return false;
}

// ---------------------------------------------------------------- words

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

static void skip_blanks(Reader *reader) {
    while (reader->at < reader->end && is_blank(reader->source->text[reader->at]))
        reader->at++;
}

static const char *text_of(const Reader *reader, Span span) {
    return arena_copy(reader->arena, reader->source->text + span.start, (size_t)(span.end - span.start));
}

// Up to the next blank; empty at the line's end.
static Span take_word(Reader *reader) {
    skip_blanks(reader);
    int start = reader->at;
    while (reader->at < reader->end && !is_blank(reader->source->text[reader->at]))
        reader->at++;
    return span_of(reader, start, reader->at);
}

static bool is_at_end(Reader *reader) {
    skip_blanks(reader);
    return reader->at == reader->end;
}

static bool ends_here(Reader *reader) {
    return is_at_end(reader) || fail(reader, span_of(reader, reader->at, reader->end), "this is too much");
}

static bool is_name(const char *text) {
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    while (isalnum((unsigned char)*text) || *text == '_')
        text++;
    return !*text;
}

static bool take_text(Reader *reader, const char *what, const char **text, Span *span) {
    *span = take_word(reader);
    *text = text_of(reader, *span);
    if (!**text)
        return fail(reader, *span, "%s is missing", what);
    return span->end - span->start <= LONGEST_WORD ||
           fail(reader, *span, "%s has at most %d characters", what, LONGEST_WORD);
}

static bool take_name(Reader *reader, const char *what, const char **name, Span *span) {
    return take_text(reader, what, name, span) &&
           (is_name(*name) || fail(reader, *span, "%s is no name", *name));
}

// ---------------------------------------------------------------- lines of an entry

static bool read_number(Reader *reader, TunedValue *value) {
    value->is_bool = !strcmp(value->text, "true") || !strcmp(value->text, "false");
    if (value->is_bool) {
        value->number = value->text[0] == 't';
        return true;
    }
    size_t digits = strspn(value->text + (*value->text == '-'), "0123456789");
    long long number = strtoll(value->text, NULL, 10);
    value->number = (double)number;
    return (digits && !value->text[digits + (*value->text == '-')] && number >= INT32_MIN &&
            number <= INT32_MAX) ||
           fail(reader, value->span, "'%s' is no integer of 32 bits, true or false", value->text);
}

// NAME = VALUE
static bool read_value(Reader *reader, TunedValue *values, int *count, bool is_use) {
    TunedValue value = {0};
    if (!take_name(reader, "a name", &value.name, &value.name_span))
        return false;
    for (int i = 0; i < *count; i++)
        if (!strcmp(values[i].name, value.name))
            return fail(reader, value.name_span, "'%s' is said twice", value.name);
    Span equals = take_word(reader);
    if (strcmp(text_of(reader, equals), "=") != 0)
        return fail(reader, equals, "a '=' is missing, between blanks");
    if (!take_text(reader, "a value", &value.text, &value.span) || (is_use && !read_number(reader, &value)))
        return false;
    if (*count == TUNED_MAX_VALUES)
        return fail(reader, value.name_span, "more than %d values", TUNED_MAX_VALUES);
    values[(*count)++] = value;
    return ends_here(reader);
}

static bool read_when(Reader *reader) {
    return read_value(reader, reader->open->when, &reader->open->when_count, false);
}

static bool read_use(Reader *reader) {
    return read_value(reader, reader->open->use, &reader->open->use_count, true);
}

// The rest of the line, whatever it is.
static bool read_rest(Reader *reader, const char **text) {
    skip_blanks(reader);
    int end = reader->end;
    while (end > reader->at && is_blank(reader->source->text[end - 1]))
        end--;
    Span span = span_of(reader, reader->at, end);
    reader->at = reader->end;
    if (*text)
        return fail(reader, span, "this is said twice");
    *text = text_of(reader, span);
    if (span.end - span.start > TUNED_MAX_NOTE) // with what stands before it, a line must not grow too long
        return fail(reader, span, "more than %d characters", TUNED_MAX_NOTE);
    return **text || fail(reader, span, "nothing is said");
}

static bool read_schedule(Reader *reader) {
    return read_rest(reader, &reader->open->schedule);
}
static bool read_target(Reader *reader) {
    return read_rest(reader, &reader->open->target);
}
static bool read_device(Reader *reader) {
    return read_rest(reader, &reader->open->device);
}
static bool read_measured(Reader *reader) {
    return read_rest(reader, &reader->open->measured);
}
static bool read_problem(Reader *reader) {
    return read_rest(reader, &reader->open->problem);
}

static bool read_end(Reader *reader) {
    TunedEntry *entry = reader->open;
    const char *missing = !entry->schedule ? "schedule"
                          : !entry->target ? "target"
                          : !entry->device ? "device"
                                           : NULL;
    if (missing)
        return fail(reader, entry->span, "this entry doesn't say its %s", missing);
    for (const TunedEntry *other = reader->entries; other; other = other->next)
        if (tuned_is_same(other, entry)) {
            DiagItem *item =
                diag_error(reader->diag, entry->span, "tuned-syntax", "two entries are for the same");
            diag_note(item, other->span, "the first is here");
            diag_help(item, "keep one of the two");
            return false;
        }
    *reader->tail = entry;
    reader->tail = &entry->next;
    reader->open = NULL;
    return ends_here(reader);
}

static const struct {
    const char *word;
    bool (*read)(Reader *reader);
} LINES[] = {
    {"schedule", read_schedule}, {"target", read_target},     {"device", read_device},
    {"when", read_when},         {"use", read_use},           {"on", read_problem},
    {"end", read_end},           {"measured", read_measured},
};
enum { LINE_COUNT = sizeof LINES / sizeof LINES[0] };

static bool read_kernel(Reader *reader, Span word) {
    Span span;
    if (reader->count++ == TUNED_MAX_ENTRIES)
        return fail(reader, word, "more than %d entries", TUNED_MAX_ENTRIES);
    reader->open = tuned_new(reader->arena);
    reader->open->span = span_of(reader, word.start, reader->end);
    return take_name(reader, "the kernel's name", &reader->open->kernel, &span) && ends_here(reader);
}

static bool read_line(Reader *reader) {
    Span span = take_word(reader);
    const char *word = text_of(reader, span);
    if (!*word || *word == '#')
        return true;
    if (!reader->open)
        return !strcmp(word, "kernel")
                   ? read_kernel(reader, span)
                   : fail(reader, span, "an entry starts with 'kernel', not with '%s'", word);
    const char *words[LINE_COUNT];
    for (int i = 0; i < LINE_COUNT; i++) {
        if (!strcmp(LINES[i].word, word))
            return LINES[i].read(reader);
        words[i] = LINES[i].word;
    }
    if (!strcmp(word, "kernel"))
        return fail(reader, span, "the entry above has no 'end'");
    const char *closest = diag_closest(word, words, LINE_COUNT);
    return fail(reader, span, "an entry says no '%s'%s%s%s", word, closest ? "; did you mean '" : "",
                closest ? closest : "", closest ? "'?" : "");
}

// ---------------------------------------------------------------- the file

static bool has_good_bytes(Reader *reader) {
    if (reader->end - reader->at > LONGEST_LINE)
        return fail(reader, span_of(reader, reader->at, reader->at + 1), "a line has at most %d bytes",
                    LONGEST_LINE);
    for (int i = reader->at; i < reader->end; i++) {
        unsigned char byte = (unsigned char)reader->source->text[i];
        if ((byte < ' ' && byte != '\t') || byte > '~')
            return fail(reader, span_of(reader, i, i + 1), "byte 0x%02x can't be part of a tuned file", byte);
    }
    return true;
}

bool tuned_parse(Arena *arena, Diag *diag, int file, TunedEntry **entries) {
    Reader reader = {.arena = arena, .diag = diag, .source = &diag->sources->files[file], .file = file};
    reader.tail = &reader.entries;
    const char *text = reader.source->text;
    *entries = NULL;
    for (int next = 0; next < reader.source->length;) {
        int end = next;
        while (end < reader.source->length && text[end] != '\n')
            end++;
        reader.at = next;
        reader.end = end > next && text[end - 1] == '\r' ? end - 1 : end;
        next = end + 1;
        if (!has_good_bytes(&reader) || !read_line(&reader))
            return false;
    }
    if (reader.open)
        return fail(&reader, reader.open->span, "this entry has no 'end': the file is cut off");
    *entries = reader.entries;
    return true;
}
