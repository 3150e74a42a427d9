// sources.h: plans from source text, and messages as text, for the tests of this room.
#ifndef JFA_TESTS_PLAN_SOURCES_H
#define JFA_TESTS_PLAN_SOURCES_H

#include "compiler/plan/plan.h"

typedef struct {
    Arena *arena;
    SourceSet sources;
    Diag diag;
    Plan *plan; // NULL: sema reported errors
} Program;

// Compiles `text` as file "t.jfa" up to the plan, for sm_100a. The plan isn't placed.
Program *program_new(const char *text);

// The same for a file of the repository, "examples/dense.jfa"; templates are found.
Program *program_open(const char *path);
// examples/dense.jfa, with the first place where the text `from` stands in that file of the repository
// changed to `to`; fails when it stands nowhere. The file is one that dense.jfa uses.
Program *program_edited(const char *path, const char *from, const char *to);
void program_free(Program *program);

// All messages as they are printed, in the arena.
const char *program_messages(Program *program);

// A family `f` with axes m, n, k, tensors A [m, k], B [n, k] in and C [m, n] out, all bf16, a param `limit`,
// a kernel of it, and a schedule with that body, which starts at line 3.
Program *program_of_schedule(const char *body);

// Text written by `print`, in the arena.
const char *text_of(Program *program, void (*print)(const Plan *plan, FILE *out));

typedef struct {
    const char *name;     // of the test: a sentence
    const char *body;     // of the schedule
    const char *messages; // as printed; "": the pass succeeds without any
} MessageCase;

// Runs a pass on each case and compares the messages; the number of failed tests.
int run_message_cases(const MessageCase *cases, int count, bool (*pass)(Plan *plan, Diag *diag));

#endif
