#include "grammar/diag.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void diag_init(Diag *diag, Arena *arena, SourceSet *sources) {
    memset(diag, 0, sizeof *diag);
    diag->arena = arena;
    diag->sources = sources;
    diag->tail = &diag->items;
}

static DiagItem *add(Diag *diag, DiagSeverity severity, Span span, const char *code, const char *format,
                     va_list args) {
    DiagItem *item = arena_new_of(diag->arena, DiagItem);
    item->severity = severity;
    item->code = code;
    item->span = span;
    item->text = arena_vformat(diag->arena, format, args);
    item->owner = diag;
    *diag->tail = item;
    diag->tail = &item->next;
    diag->error_count += severity == DIAG_ERROR;
    return item;
}

DiagItem *diag_error(Diag *diag, Span span, const char *code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    DiagItem *item = add(diag, DIAG_ERROR, span, code, format, args);
    va_end(args);
    return item;
}

DiagItem *diag_warning(Diag *diag, Span span, const char *code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    DiagItem *item = add(diag, DIAG_WARNING, span, code, format, args);
    va_end(args);
    return item;
}

void diag_note(DiagItem *item, Span span, const char *format, ...) {
    DiagNote *note = arena_new_of(item->owner->arena, DiagNote);
    va_list args;
    va_start(args, format);
    note->text = arena_vformat(item->owner->arena, format, args);
    va_end(args);
    note->span = span;
    DiagNote **tail = &item->notes;
    while (*tail)
        tail = &(*tail)->next;
    *tail = note;
}

void diag_help(DiagItem *item, const char *format, ...) {
    va_list args;
    va_start(args, format);
    item->help = arena_vformat(item->owner->arena, format, args);
    va_end(args);
}

void diag_take_back(Diag *diag, int first, bool (*goes)(const Diag *diag, const DiagItem *item)) {
    DiagItem **link = &diag->items;
    while (*link && first-- > 0)
        link = &(*link)->next;
    while (*link) {
        if (!goes(diag, *link)) {
            link = &(*link)->next;
            continue;
        }
        diag->error_count -= (*link)->severity == DIAG_ERROR;
        *link = (*link)->next;
    }
    diag->tail = link;
}

static void print_place(const Diag *diag, Span span, FILE *out) {
    if (span.file < 0)
        return;
    Place place = source_place(diag->sources, span.file, span.start);
    fprintf(out, "%s:%d:%d: ", diag->sources->files[span.file].path, place.line, place.column);
}

static int printable(unsigned char c) {
    return c >= 32 && c != 127 ? c : c == '\t' ? '\t' : '?';
}

// The source line with a caret line below it; tabs are kept so that the caret stands right. Of a long line
// the part around the caret.
static void print_snippet(const Diag *diag, Span span, FILE *out) {
    if (span.file < 0)
        return;
    const Source *source = &diag->sources->files[span.file];
    Place place = source_place(diag->sources, span.file, span.start);
    int start = source->line_starts[place.line - 1], end = start;
    while (end < source->length && source->text[end] != '\n' && source->text[end] != '\r')
        end++;
    enum { LONGEST = 400, BEFORE = 100 };
    const char *more = "";
    if (span.start - start > LONGEST - BEFORE) {
        start = span.start - BEFORE;
        more = "...";
    }
    if (end - start > LONGEST)
        end = start + LONGEST;
    fprintf(out, "%6d | %s", place.line, more);
    for (int i = start; i < end; i++)
        fputc(printable((unsigned char)source->text[i]), out);
    fprintf(out, "\n       | %*s", (int)strlen(more), "");
    for (int i = start; i < span.start && i < end; i++)
        fputc(source->text[i] == '\t' ? '\t' : ' ', out);
    fputc('^', out);
    for (int i = span.start + 1; i < span.end && i < end; i++)
        fputc('~', out);
    fputc('\n', out);
}

static int by_place(const void *left, const void *right) {
    const DiagItem *a = *(DiagItem *const *)left, *b = *(DiagItem *const *)right;
    if (a->span.file != b->span.file)
        return a->span.file < b->span.file ? -1 : 1;
    if (a->span.start != b->span.start)
        return a->span.start < b->span.start ? -1 : 1;
    return 0;
}

static DiagItem **sorted(const Diag *diag, int *count) {
    *count = 0;
    for (DiagItem *item = diag->items; item; item = item->next)
        ++*count;
    DiagItem **list = arena_array(diag->arena, DiagItem *, *count + 1);
    int i = 0;
    for (DiagItem *item = diag->items; item; item = item->next)
        list[i++] = item;
    // qsort is not stable; equal places are told apart by insertion below.
    for (int k = 1; k < *count; k++)
        for (int j = k; j > 0 && by_place(&list[j - 1], &list[j]) > 0; j--) {
            DiagItem *swap = list[j];
            list[j] = list[j - 1];
            list[j - 1] = swap;
        }
    return list;
}

static bool repeats(DiagItem *const *list, int i) {
    return i > 0 && by_place(&list[i - 1], &list[i]) == 0 && !strcmp(list[i - 1]->text, list[i]->text);
}

void diag_print_text(const Diag *diag, FILE *out) {
    int count;
    DiagItem **list = sorted(diag, &count);
    int printed = 0, left_out = 0;
    for (int i = 0; i < count; i++) {
        const DiagItem *item = list[i];
        if (repeats(list, i))
            continue;
        if (printed == DIAG_LIMIT) {
            left_out++;
            continue;
        }
        printed++;
        print_place(diag, item->span, out);
        fprintf(out, "%s: %s\n", item->severity == DIAG_ERROR ? "error" : "warning", item->text);
        print_snippet(diag, item->span, out);
        for (const DiagNote *note = item->notes; note; note = note->next) {
            print_place(diag, note->span, out);
            fprintf(out, "note: %s\n", note->text);
            print_snippet(diag, note->span, out);
        }
        if (item->help)
            fprintf(out, "help: %s\n", item->help);
    }
    if (left_out)
        fprintf(out, "and %d more\n", left_out);
}

// Bytes of the UTF-8 character at `c`; 0: it is none (RFC 3629).
static int utf8_length(const unsigned char *c) {
    int length = *c < 0x80 ? 1 : *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;
    for (int i = 1; i < length; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    bool is_overlong = (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xf0 && c[1] < 0x90);
    bool is_no_character = (*c == 0xed && c[1] > 0x9f) || (*c == 0xf4 && c[1] > 0x8f);
    return is_overlong || is_no_character ? 0 : length;
}

// What is not UTF-8 becomes the replacement character: the output is JSON whatever the source holds.
static void json_string(const char *text, FILE *out) {
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int length = utf8_length(c);
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 32 || *c == 127)
            fprintf(out, "\\u%04x", *c);
        else if (!length)
            fprintf(out, "\\ufffd");
        else
            fwrite(c, 1, (size_t)length, out);
        c += length ? length : 1;
    }
    fputc('"', out);
}

static void json_place(const Diag *diag, Span span, FILE *out) {
    if (span.file < 0)
        return;
    Place start = source_place(diag->sources, span.file, span.start);
    Place end = source_place(diag->sources, span.file, span.end);
    fprintf(out, "\"file\":");
    json_string(diag->sources->files[span.file].path, out);
    fprintf(out, ",\"line\":%d,\"column\":%d,\"end_line\":%d,\"end_column\":%d,", start.line, start.column,
            end.line, end.column);
}

void diag_print_json(const Diag *diag, FILE *out) {
    int count;
    DiagItem **list = sorted(diag, &count);
    fputc('[', out);
    bool first = true;
    for (int i = 0; i < count; i++) {
        const DiagItem *item = list[i];
        if (repeats(list, i))
            continue;
        fprintf(out, "%s\n {\"severity\":\"%s\",\"code\":", first ? "" : ",",
                item->severity == DIAG_ERROR ? "error" : "warning");
        first = false;
        json_string(item->code, out);
        fputc(',', out);
        json_place(diag, item->span, out);
        fprintf(out, "\"message\":");
        json_string(item->text, out);
        fprintf(out, ",\"notes\":[");
        for (const DiagNote *note = item->notes; note; note = note->next) {
            fprintf(out, "%s{", note == item->notes ? "" : ",");
            json_place(diag, note->span, out);
            fprintf(out, "\"message\":");
            json_string(note->text, out);
            fputc('}', out);
        }
        fprintf(out, "],\"help\":");
        if (item->help)
            json_string(item->help, out);
        else
            fprintf(out, "null");
        fputc('}', out);
    }
    fprintf(out, "%s]\n", first ? "" : "\n");
}

static int edit_distance(const char *a, const char *b) {
    enum { LONGEST = 63 };
    size_t length_a = strlen(a), length_b = strlen(b);
    if (length_a > LONGEST || length_b > LONGEST)
        return INT_MAX;
    int row[LONGEST + 1];
    for (size_t j = 0; j <= length_b; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= length_a; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= length_b; j++) {
            int replace = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int shorter = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = replace < shorter ? replace : shorter;
        }
    }
    return row[length_b];
}

const char *diag_closest(const char *name, const char *const *candidates, int count) {
    const char *best = NULL;
    int length = (int)strlen(name), limit = length / 3 + 1;
    if (limit >= length) // every letter would be another
        limit = length - 1;
    int best_distance = limit + 1;
    for (int i = 0; i < count; i++)
        if (strcmp(name, candidates[i]) && !strcasecmp(name, candidates[i]))
            return candidates[i];
    for (int i = 0; i < count; i++) {
        int distance = edit_distance(name, candidates[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    return best;
}
