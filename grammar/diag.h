// diag.h: messages to the author of a .jfa file, collected during a compilation and printed sorted by place.
//
//   file:line:col: error: what is wrong
//      12 |   put kv_in = K[b];
//         |       ^~~~~
//   file:line:col: note: the other place involved
//   help: what to do
#ifndef JFA_GRAMMAR_DIAG_H
#define JFA_GRAMMAR_DIAG_H

#include "grammar/source.h"

#include <stdio.h>

typedef enum { DIAG_ERROR, DIAG_WARNING } DiagSeverity;

typedef struct DiagNote {
    Span span; // file < 0: none
    const char *text;
    struct DiagNote *next;
} DiagNote;

typedef struct DiagItem {
    DiagSeverity severity;
    const char *code; // stable name of the check, e.g. "unknown-name"; part of the JSON form
    Span span;
    const char *text;
    DiagNote *notes; // in the order added
    const char *help;
    struct DiagItem *next;
    struct Diag *owner;
} DiagItem;

enum { DIAG_LIMIT = 25 }; // errors printed; the rest are counted

typedef struct Diag {
    Arena *arena;
    SourceSet *sources;
    DiagItem *items, **tail;
    int error_count;
} Diag;

void diag_init(Diag *diag, Arena *arena, SourceSet *sources);

// Adds an error. The item returned (never NULL) takes notes and help.
DiagItem *diag_error(Diag *diag, Span span, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
DiagItem *diag_warning(Diag *diag, Span span, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void diag_note(DiagItem *item, Span span, const char *format, ...) __attribute__((format(printf, 3, 4)));
void diag_help(DiagItem *item, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Takes back the items from number `first` on (in the order added) that `goes` says.
void diag_take_back(Diag *diag, int first, bool (*goes)(const Diag *diag, const DiagItem *item));

void diag_print_text(const Diag *diag, FILE *out);
// One JSON array of objects {severity, code, file, line, column, end_line, end_column, message, notes, help}.
void diag_print_json(const Diag *diag, FILE *out);

// The name among `candidates` closest to `name` (the same in other letters' case, or an edit distance of at
// most a third of its length plus one, and less than its length), or NULL.
const char *diag_closest(const char *name, const char *const *candidates, int count);

#endif
