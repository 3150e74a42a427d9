// bench.h: text in, tree or messages out, as text; for the tests of this folder.
#ifndef JFA_TESTS_GRAMMAR_BENCH_H
#define JFA_TESTS_GRAMMAR_BENCH_H

#include "grammar/ast.h"

typedef struct {
    Arena *arena;
    SourceSet sources;
    Diag diag;
    Ast *items;
} Parsed;

Parsed bench_parse(const char *text, size_t length);
Parsed bench_parse_text(const char *text);
void bench_close(Parsed *parsed);

// What `print` writes; in the arena.
const char *bench_tree(Parsed *parsed);
const char *bench_messages(Parsed *parsed);
const char *bench_json(Parsed *parsed);
// One line for each message in order of place: "line:column: text".
const char *bench_places(Parsed *parsed);

#endif
