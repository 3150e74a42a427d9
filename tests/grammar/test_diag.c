// Messages as text and as JSON, and the names that are suggested.
#include "tests/grammar/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char TEXT[] = "first line\n\ttab and \x01 here\nlast";
static const Span NOWHERE = {-1, 0, 0};

// A set with TEXT as file 0 and nothing reported.
static void open_text(Parsed *parsed, const char *text) {
    *parsed = (Parsed){.arena = arena_new()};
    assert_non_null(parsed->arena);
    parsed->sources.arena = parsed->arena;
    diag_init(&parsed->diag, parsed->arena, &parsed->sources);
    source_add(&parsed->sources, "dir/a \"b\".jfa", text, strlen(text));
}

static void text_shows_the_line_the_place_notes_and_help_sorted_by_place(void **state) {
    (void)state;
    Parsed parsed;
    open_text(&parsed, TEXT);
    DiagItem *late = diag_error(&parsed.diag, (Span){0, 12, 15}, "late", "%s %d", "number", 2);
    diag_note(late, (Span){0, 6, 10}, "the other place");
    diag_note(late, NOWHERE, "of no place");
    diag_help(late, "do %s", "this");
    diag_warning(&parsed.diag, (Span){0, 0, 5}, "early", "number 1");
    diag_error(&parsed.diag, NOWHERE, "nowhere", "number 0");
    assert_string_equal(bench_messages(&parsed), "error: number 0\n"
                                                 "dir/a \"b\".jfa:1:1: warning: number 1\n"
                                                 "     1 | first line\n"
                                                 "       | ^~~~~\n"
                                                 "dir/a \"b\".jfa:2:2: error: number 2\n"
                                                 "     2 | \ttab and ? here\n"
                                                 "       | \t^~~\n"
                                                 "dir/a \"b\".jfa:1:7: note: the other place\n"
                                                 "     1 | first line\n"
                                                 "       |       ^~~~\n"
                                                 "note: of no place\n"
                                                 "help: do this\n");
    assert_int_equal(parsed.diag.error_count, 2);
    bench_close(&parsed);
}

static void spans_at_the_end_and_over_lines_stay_in_their_line(void **state) {
    (void)state;
    Parsed parsed;
    open_text(&parsed, TEXT);
    diag_error(&parsed.diag, (Span){0, 6, 20}, "long", "long");
    diag_error(&parsed.diag, (Span){0, 31, 31}, "end", "end");
    assert_string_equal(bench_messages(&parsed), "dir/a \"b\".jfa:1:7: error: long\n"
                                                 "     1 | first line\n"
                                                 "       |       ^~~~\n"
                                                 "dir/a \"b\".jfa:3:5: error: end\n"
                                                 "     3 | last\n"
                                                 "       |     ^\n");
    bench_close(&parsed);
}

static void a_long_line_is_shown_around_the_place(void **state) {
    (void)state;
    enum { LENGTH = 2000, AT = 1500, BEFORE = 100 };
    char line[LENGTH + 1];
    memset(line, 'a', LENGTH);
    line[LENGTH] = '\0';
    line[AT] = 'Z';
    Parsed parsed;
    open_text(&parsed, line);
    diag_error(&parsed.diag, (Span){0, AT, AT + 1}, "far", "far");
    char *text = strdup(bench_messages(&parsed)), *shown = strchr(text, '\n') + 1,
         *below = strchr(shown, '\n') + 1;
    assert_int_equal(strchr(shown, 'Z') - shown, strchr(below, '^') - below);
    assert_int_equal(strchr(shown, 'Z') - strstr(shown, "..."), 3 + BEFORE);
    assert_true(strlen(text) < 700);
    free(text);
    bench_close(&parsed);
}

static void messages_said_twice_appear_once_and_many_are_counted(void **state) {
    (void)state;
    Parsed parsed;
    open_text(&parsed, TEXT);
    for (int i = 0; i < 3; i++)
        diag_error(&parsed.diag, (Span){0, 0, 1}, "same", "same");
    assert_null(strstr(strstr(bench_messages(&parsed), "same") + 1, "same"));
    for (int i = 0; i < DIAG_LIMIT + 4; i++)
        diag_error(&parsed.diag, (Span){0, 1, 2}, "other", "other %d", i);
    const char *text = bench_messages(&parsed);
    assert_non_null(strstr(text, "other 23"));
    assert_null(strstr(text, "other 24"));
    assert_string_equal(text + strlen(text) - 11, "and 5 more\n");
    bench_close(&parsed);
}

static void a_line_too_long_to_show_is_cut(void **state) {
    (void)state;
    char line[2000];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = 0;
    Parsed parsed;
    open_text(&parsed, line);
    diag_error(&parsed.diag, (Span){0, 1500, 1600}, "far", "far");
    assert_true(strlen(bench_messages(&parsed)) < 1000);
    bench_close(&parsed);
}

static void json_has_every_field_and_escapes_what_json_must(void **state) {
    (void)state;
    Parsed parsed;
    open_text(&parsed, TEXT);
    assert_string_equal(bench_json(&parsed), "[]\n");
    DiagItem *item = diag_error(&parsed.diag, (Span){0, 6, 15}, "code", "a \"quote\", a \\, a\ttab, \x7f");
    diag_note(item, NOWHERE, "line\nend");
    diag_warning(&parsed.diag, NOWHERE, "w", "plain");
    diag_help(item, "h\"");
    assert_string_equal(
        bench_json(&parsed),
        "[\n {\"severity\":\"warning\",\"code\":\"w\",\"message\":\"plain\",\"notes\":[],\"help\":null},\n"
        " {\"severity\":\"error\",\"code\":\"code\",\"file\":\"dir/a \\\"b\\\".jfa\",\"line\":1,\"column\":7,"
        "\"end_line\":2,\"end_column\":5,\"message\":\"a \\\"quote\\\", a \\\\, a\\u0009tab, \\u007f\","
        "\"notes\":[{\"message\":\"line\\u000aend\"}],\"help\":\"h\\\"\"}\n]\n");
    bench_close(&parsed);
}

static void json_is_utf8_whatever_the_message_holds(void **state) {
    (void)state;
    static const struct {
        const char *text, *json;
    } CASES[] = {
        {"caf\xc3\xa9", "caf\xc3\xa9"},
        {"\xe2\x82\xac", "\xe2\x82\xac"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xff", "\\ufffd"},
        {"a\xc3", "a\\ufffd"},
        {"\xc3(", "\\ufffd("},
        {"\xe2\x82", "\\ufffd\\ufffd"},
        {"\xc0\xaf", "\\ufffd\\ufffd"},
        {"\xe0\x80\xaf", "\\ufffd\\ufffd\\ufffd"},
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},
        {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Parsed parsed;
        char json[256];
        open_text(&parsed, TEXT);
        diag_error(&parsed.diag, NOWHERE, "c", "%s", CASES[i].text);
        snprintf(
            json, sizeof json,
            "[\n {\"severity\":\"error\",\"code\":\"c\",\"message\":\"%s\",\"notes\":[],\"help\":null}\n]\n",
            CASES[i].json);
        assert_string_equal(bench_json(&parsed), json);
        bench_close(&parsed);
    }
}

static void the_closest_name_is_close(void **state) {
    (void)state;
    static const char *const NAMES[] = {"head_dim", "heads", "kv_heads", "x", "mask"};
    static const struct {
        const char *name, *closest;
    } CASES[] = {
        {"head_dmi", "head_dim"}, {"head", "heads"}, {"heads", "heads"},   {"kvheads", "kv_heads"},
        {"maks", "mask"},         {"y", NULL},       {"", NULL},           {"zzzzzz", NULL},
        {"masquerade", NULL},     {"ma", NULL},      {"HEADS_KV_X", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const char *closest = diag_closest(CASES[i].name, NAMES, 5);
        if (closest != CASES[i].closest &&
            (!closest || !CASES[i].closest || strcmp(closest, CASES[i].closest)))
            fail_msg("%s: %s", CASES[i].name, closest ? closest : "none");
    }
    char name[400];
    memset(name, 'q', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_null(diag_closest(name, NAMES, 5));
    assert_null(diag_closest("x", NAMES, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_shows_the_line_the_place_notes_and_help_sorted_by_place),
        cmocka_unit_test(spans_at_the_end_and_over_lines_stay_in_their_line),
        cmocka_unit_test(a_long_line_is_shown_around_the_place),
        cmocka_unit_test(messages_said_twice_appear_once_and_many_are_counted),
        cmocka_unit_test(a_line_too_long_to_show_is_cut),
        cmocka_unit_test(json_has_every_field_and_escapes_what_json_must),
        cmocka_unit_test(json_is_utf8_whatever_the_message_holds),
        cmocka_unit_test(the_closest_name_is_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
