#include "tests/grammar/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

Parsed bench_parse(const char *text, size_t length) {
    Parsed parsed = {.arena = arena_new()};
    assert_non_null(parsed.arena);
    parsed.sources.arena = parsed.arena;
    // The set is moved when this returns; only its contents are needed until then.
    Diag diag;
    diag_init(&diag, parsed.arena, &parsed.sources);
    int file = source_add(&parsed.sources, "t.jfa", text, length);
    parsed.items = parse_file(parsed.arena, &diag, file);
    parsed.diag = diag;
    return parsed;
}

Parsed bench_parse_text(const char *text) {
    return bench_parse(text, strlen(text));
}

void bench_close(Parsed *parsed) {
    arena_free(parsed->arena);
}

typedef enum { TREE, TEXT, JSON } Form;

static const char *printed(Parsed *parsed, Form form) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    parsed->diag.sources = &parsed->sources;
    if (form == TREE)
        ast_print(parsed->items, out);
    else if (form == TEXT)
        diag_print_text(&parsed->diag, out);
    else
        diag_print_json(&parsed->diag, out);
    fclose(out);
    const char *copy = arena_copy(parsed->arena, text, length);
    free(text);
    return copy;
}

const char *bench_tree(Parsed *parsed) {
    return printed(parsed, TREE);
}

const char *bench_messages(Parsed *parsed) {
    return printed(parsed, TEXT);
}

const char *bench_json(Parsed *parsed) {
    return printed(parsed, JSON);
}

const char *bench_places(Parsed *parsed) {
    const char *text = "";
    for (const DiagItem *item = parsed->diag.items; item; item = item->next) {
        Place place = source_place(&parsed->sources, item->span.file, item->span.start);
        text = arena_format(parsed->arena, "%s%d:%d: %s\n", text, place.line, place.column, item->text);
    }
    return text;
}
