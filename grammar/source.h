// source.h: the files of a compilation and places in them.
#ifndef JFA_GRAMMAR_SOURCE_H
#define JFA_GRAMMAR_SOURCE_H

#include "grammar/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum { SOURCE_MAX_BYTES = 4 * 1024 * 1024 };

typedef struct {
    const char *path; // as the user named it
    const char *text; // NUL-terminated; may hold NULs before `length`
    int32_t length;
    int32_t *line_starts; // byte offset of each line
    int32_t line_count;
} Source;

// Bytes [start, end) of file number `file` of the set. A span with file < 0 has no place.
typedef struct {
    int32_t file, start, end;
} Span;

typedef struct {
    Arena *arena;
    Source *files;
    int count, capacity;
} SourceSet;

typedef struct {
    int line, column; // from 1; the column counts bytes, a tab is one
} Place;

// Adds text to the set and returns its number. The text is copied.
int source_add(SourceSet *set, const char *path, const char *text, size_t length);

// Reads a file. Returns its number, or -1 and a reason (in the arena).
int source_read(SourceSet *set, const char *path, const char **reason);

Place source_place(const SourceSet *set, int file, int offset);

static inline Span span_join(Span first, Span last) {
    Span span = {first.file, first.start, last.end};
    return span;
}

#endif
