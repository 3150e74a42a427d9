// tuned.h: the file in which `jfac tune` keeps what it found and from which a build takes it. Takes its text,
// gives entries, and the reverse. Which entry fits a build is sema's business.
//
//   # a comment
//   kernel NAME
//     schedule FAMILY.SCHEDULE
//     target sm_90a
//     device NVIDIA H200              as the driver calls it
//     when head_dim = 128             what the code depends on beside the text: options and constants of the
//     kernel, when dtype = bf16               and constants of the schedule that -D fixed use N = 144 the
//     constants that were searched use STAGES = 2 measured 0.4123 ms, 0.912 of the default's on --batch 4
//     --len 4096         for its reader, like `measured`: both may be left out
//   end
//
// A line says one thing, so that two versions of a file can be compared; `end` shows that nothing is cut off.
#ifndef JFA_COMPILER_TUNED_TUNED_H
#define JFA_COMPILER_TUNED_TUNED_H

#include "grammar/diag.h"

enum {
    TUNED_MAX_VALUES = 128,  // lines of a kind in an entry
    TUNED_MAX_ENTRIES = 256, // of a file
    TUNED_MAX_NOTE = 900,    // bytes of what is said for the reader
};

typedef struct {
    const char *name, *text;
    double number; // of `use`: true is 1
    bool is_bool;
    Span name_span, span; // of the name, of the value
} TunedValue;

typedef struct TunedEntry TunedEntry;
struct TunedEntry {
    const char *kernel, *schedule, *target, *device;
    TunedValue *when, *use; // [TUNED_MAX_VALUES]
    int when_count, use_count;
    const char *measured, *problem; // NULL: not said
    Span span;                      // of its first line
    TunedEntry *next;
};

TunedEntry *tuned_new(Arena *arena);
void tuned_add(TunedValue *values, int *count, const char *name, const char *text); // texts are the caller's

// Entries of file number `file`, in order; NULL for a file without. The first mistake is reported and ends
// it: then false.
bool tuned_parse(Arena *arena, Diag *diag, int file, TunedEntry **entries);

// The entries with `entry` in the place of the one that is for the same, or as the last.
TunedEntry *tuned_put(TunedEntry *entries, TunedEntry *entry);
// Are both for the same kernel, schedule, target, device and settings?
bool tuned_is_same(const TunedEntry *a, const TunedEntry *b);

const char *tuned_text(Arena *arena, const TunedEntry *entries);

// Do two values of a `when` line say the same? 0.50 and 0.5 do.
bool tuned_is_equal(const char *a, const char *b);

#endif
