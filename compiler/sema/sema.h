// sema.h: from syntax trees to the plan. Takes the items of all files, gives a Plan with names resolved,
// hooks and functions inlined, constants folded, constant loops unrolled and slots checked to be linear.
#ifndef JFA_COMPILER_SEMA_SEMA_H
#define JFA_COMPILER_SEMA_SEMA_H

#include "compiler/plan/plan.h"
#include "compiler/tuned/tuned.h"
#include "grammar/ast.h"

typedef struct {
    const Target *target;
    const char *kernel; // NULL: the only kernel of the main file
    const char *const
        *defines; // "name=value", overriding constants of the schedule and settings of the kernel
    int define_count;
    const TunedEntry *tuned; // the entries of a tuned file: one that fits gives constants of the schedule
    const char *device;      // NULL: an entry for any device fits
} SemaOptions;

// The parts of a program that one kernel is made of.
typedef struct {
    const Ast *kernel, *family, *schedule;
    const TunedEntry *tuned; // the one that was taken, or NULL
    const char
        *tuned_missing;   // why none was: "has nothing for kernel dense"; NULL: one was, or there are none
    const Plan *draft;    // the plan as far as it was made: its constants are known in spite of errors
    int kernel_constants; // so many of the constants are the kernel's, options and others; the rest the
                          // schedule's
} SemaParts;

// Reads `path` and, depth first, the files that it uses. Directories searched for `use name;`: the using
// file's own, then `include_dirs` in order. Returns all top-level items; errors go to diag.
Ast *sema_load(Arena *arena, Diag *diag, const char *path, const char *const *include_dirs,
               int include_dir_count);

// NULL when errors were reported. `parts` is filled as far as they were found.
Plan *sema_build(Arena *arena, Diag *diag, const Ast *program, const SemaOptions *options, SemaParts *parts);

#endif
