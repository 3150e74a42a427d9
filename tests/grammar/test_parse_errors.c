// What the parser says of broken text, and what it does with text made to hurt it.
#include "tests/grammar/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

typedef struct {
    const char *text, *places, *rest; // bench_places(); a line of the messages beside, or NULL
} Mistake;

static const Mistake MISTAKES[] = {
    {"family f {\n  axis q\n  axis k;\n}\n", "2:9: missing ';' after 'q'\n", NULL},
    {"family f { axis q }", "1:18: missing ';' after 'q'\n", NULL},
    {"use a", "1:6: missing ';' after 'a'\n", NULL},
    {"family f {\n  tensr x : in f32[q];\n}", "2:11: ':' can't stand here, expected ';'\n",
     "did you mean 'tensor'?"},
    {"fmaily f { axis q; }",
     "1:1: 'fmaily' can't stand here, expected 'use', 'family', 'schedule' or 'kernel'\n",
     "did you mean 'family'?"},
    {"family f { reference { lte x = 1; } }", "1:28: 'x' can't stand here, expected '+=', '[' or '='\n",
     "did you mean 'let'?"},
    {"family f { hook m(q) : f32 = q; }", "1:28: '=' can't stand here, expected '=>'\n",
     "math is given with '=>': name (parameters) => value;"},
    {"family f { const a => 2; }", "1:20: '=>' can't stand here, expected '='\n",
     "a value is given with '='; '=>' gives the math of a hook or a function"},
    {"family f { const a == 2; }", "1:20: '==' can't stand here, expected '='\n",
     "a value is given with '='; '==' compares"},
    {"family f { role r : 1 warp { if a = b { } } }", "1:35: '=' can't stand here\n",
     "values are compared with '=='"},
    {"kernel k : f {\n  dtype bf16;\n", "3:1: the file ends inside a construct\n",
     "t.jfa:1:14: note: this '{' is not closed"},
    {"family f {\n axis q;\n\nkernel k : f { }\n}", "4:1: 'kernel' can't stand here\n",
     "t.jfa:1:10: note: this '{' is not closed"},
    {"family f { reference { let y = (1 + [2;\n free x; } }", "1:37: '[' can't stand here\n", NULL},
    {"family f { const y = (1 + 2; }", "1:28: ';' can't stand here\n",
     "t.jfa:1:22: note: this '(' is not closed"},
    {"family f { const y = x[1 + 2; }", "1:29: ';' can't stand here\n",
     "t.jfa:1:23: note: this '[' is not closed"},
    {"family f { } }", "1:14: this '}' closes nothing\n", NULL},
    {"family in { }", "1:8: 'in' is a word of the language; it can't be a name\n", NULL},
    {"family f { axis for; }", "1:17: 'for' is a word of the language; it can't be a name\n", NULL},
    {"family f { axis ; }", "1:17: ';' can't stand here, expected a name\n", NULL},
    {"kernel k { axis q; }", "1:10: '{' can't stand here, expected ':'\n", NULL},
    {"family f { const a = 1 + ; }", "1:26: ';' can't stand here\n", NULL},
    {"family f { const a = (1 + 2)(i in q : 1); }",
     "1:22: a reduction is called by its name: sum(i in axis : value)\n", NULL},
    {"family f { size 99999999999999999999; }", "1:17: this integer does not fit in 64 bits\n", NULL},
    {"family f { size 0xfffffffffffffffff; }", "1:17: this integer does not fit in 64 bits\n", NULL},
    {"family f { size 1e999; }", "1:17: this number is too large\n", NULL},
    {"family f { size 1e-999; }", "", NULL},
    {"family f { axis $q; }", "1:17: '$' is not part of the language\n", NULL},
    {"family f { axis q\x01; }", "1:18: byte 0x01 is not part of the language\n", NULL},
    {"family f { axis q\xff\xfe\xc3\xa9; }", "1:18: only ASCII is part of the language, except in comments\n",
     NULL},
    {"// \xff\xc3\xa9 \x01\nfamily f { }", "", NULL},
    {"x", "1:1: 'x' can't stand here, expected 'use', 'family', 'schedule' or 'kernel'\n", NULL},
    {"family f { axis a b; }\nfamily g { dim ; }\nuse 3;\nkernel k : f { size 4; }",
     "1:19: 'b' can't stand here, expected ';'\n2:16: ';' can't stand here, expected a name\n3:5: '3' can't "
     "stand here, "
     "expected a name\n",
     NULL},
};

static void every_mistake_is_told_where_it_is_with_what_to_do(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof MISTAKES / sizeof MISTAKES[0]; i++) {
        Parsed parsed = bench_parse_text(MISTAKES[i].text);
        if (strcmp(bench_places(&parsed), MISTAKES[i].places) ||
            (MISTAKES[i].rest && !strstr(bench_messages(&parsed), MISTAKES[i].rest)))
            fail_msg("%s\n%s", MISTAKES[i].text, bench_messages(&parsed));
        bench_close(&parsed);
    }
}

static void what_can_be_read_beside_mistakes_is_returned(void **state) {
    (void)state;
    Parsed parsed = bench_parse_text("kernel a { size 4; }\nkernel b : f { size ; flag true; }\nuse c;");
    assert_string_equal(bench_tree(&parsed), "kernel b f\n  setting flag\n    bool 1\nuse c\n");
    assert_int_equal(parsed.diag.error_count, 2);
    bench_close(&parsed);
}

// ---------------------------------------------------------------- forms of files

static void line_ends_last_lines_and_empty_files_make_no_difference(void **state) {
    (void)state;
    static const char *const SAME[] = {
        "use a;\nuse b;\n",         "use a;\r\nuse b;\r\n", "use a;\ruse b;",
        "use a; // c\nuse b; // d", "\n\n\tuse a;use b;\f", "//\nuse a;//\n//\nuse b;//",
    };
    static const char *const NOTHING[] = {"", "\n", "\r\n", " \t", "//", "// no line end", "//\n//"};
    for (size_t i = 0; i < sizeof SAME / sizeof SAME[0]; i++) {
        Parsed parsed = bench_parse_text(SAME[i]);
        assert_string_equal(bench_tree(&parsed), "use a\nuse b\n");
        assert_null(parsed.diag.items);
        bench_close(&parsed);
    }
    for (size_t i = 0; i < sizeof NOTHING / sizeof NOTHING[0]; i++) {
        Parsed parsed = bench_parse_text(NOTHING[i]);
        assert_string_equal(bench_tree(&parsed), "");
        assert_null(parsed.diag.items);
        bench_close(&parsed);
    }
}

static void places_in_files_with_crlf_and_tabs_are_right(void **state) {
    (void)state;
    Parsed parsed = bench_parse_text("use a;\r\n\tuse ;\r\n");
    assert_string_equal(bench_messages(&parsed), "t.jfa:2:6: error: ';' can't stand here, expected a name\n"
                                                 "     2 | \tuse ;\n"
                                                 "       | \t    ^\n");
    bench_close(&parsed);
}

static void bytes_of_zero_are_reported_and_do_not_end_the_file(void **state) {
    (void)state;
    static const char TEXT[] = "use a;\0use b;\0// \0\nuse ;";
    Parsed parsed = bench_parse(TEXT, sizeof TEXT - 1);
    assert_string_equal(bench_places(&parsed), "1:7: byte 0x00 is not part of the language\n"
                                               "1:14: byte 0x00 is not part of the language\n"
                                               "2:5: ';' can't stand here, expected a name\n");
    assert_string_equal(bench_tree(&parsed), "use a\nuse b\n");
    bench_close(&parsed);
}

// ---------------------------------------------------------------- size

typedef struct {
    const char *before, *repeated, *middle, *closing, *after;
    int times;         // 0: as often as fit in a file
    const char *error; // part of the messages, or NULL: it is right
} Large;

static const Large LARGE[] = {
    {"", "use a;", "", "", "", 0, NULL},
    {"family f { ", "axis q; ", "", "", "}", 0, NULL},
    {"family f { fn g(a", ", a", "", "", ") => 1; }", 0, NULL},
    {"family f { const c = g(1", ", 1", "", "", "); }", 0, NULL},
    {"// ", "a", "", "", "", 0, NULL},
    {"", " \n", "", "", "", 0, NULL},
    {"use ", "a", "", "", ";", 63, NULL},
    {"use ", "a", "", "", ";", 0, "a name has at most 63 characters"},
    {"family f { size ", "9", "", "", "; }", 0, "does not fit in 64 bits"},
    {"family f { const c = 1", " + 1", "", "", "; }", 900, NULL},
    {"family f { const c = 1", " + 1", "", "", "; }", 0, "nested too deeply"},
    {"family f { const c = a", ".a", "", "", "; }", 0, "nested too deeply"},
    {"family f { const c = a", "(1)", "", "", "; }", 0, "nested too deeply"},
    {"family f { const c = ", "(", "1", ")", "; }", 900, NULL},
    {"family f { const c = ", "(", "1", ")", "; }", 0, "nested too deeply"},
    {"family f { const c = ", "-", "1", "", "; }", 0, "nested too deeply"},
    {"family f { const c = ", "a?", "1", ":1", "; }", 0, "nested too deeply"},
    {"family f { const c = ", "f(", "1", ")", "; }", 0, "nested too deeply"},
    {"family f { reference { ", "for i in q {", "", "}", "} }", 500, NULL},
    {"family f { reference { ", "for i in q {", "", "}", "} }", 0, "nested too deeply"},
    {"family f { reference { if a { } ", "else if a { }", "", "", "} }", 0, "nested too deeply"},
    {"", "{", "", "", "", 0, "can't stand here"},
    {"", "}", "", "", "", 0, "closes nothing"},
    {"", "$", "", "", "", 0, "and 75 more"},
    {"", "\xff;", "", "", "", 0, "and 75 more"},
    {"", "use ;\n", "", "", "", 0, "and 75 more"},
    {"family f { ", "a b c;\n", "", "", "}", 0, "and 75 more"},
};

static char *large_text(const Large *large, size_t *length) {
    size_t unit = strlen(large->repeated) + strlen(large->closing);
    size_t edges = strlen(large->before) + strlen(large->middle) + strlen(large->after);
    size_t times = large->times ? (size_t)large->times : (SOURCE_MAX_BYTES - edges) / unit;
    char *text = malloc(edges + times * unit + 1), *at = text;
    assert_non_null(text);
    const char *const parts[] = {large->before, large->repeated, large->middle, large->closing, large->after};
    for (int part = 0; part < 5; part++) {
        size_t bytes = strlen(parts[part]);
        for (size_t i = 0; i < (part == 1 || part == 3 ? times : 1); i++, at += bytes)
            memcpy(at, parts[part], bytes);
    }
    *length = (size_t)(at - text);
    return text;
}

static void files_of_four_megabytes_of_anything_are_read_in_time_and_stack(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof LARGE / sizeof LARGE[0]; i++) {
        size_t length;
        char *text = large_text(&LARGE[i], &length);
        clock_t start = clock();
        Parsed parsed = bench_parse(text, length);
        const char *messages = bench_messages(&parsed);
        bench_tree(&parsed);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (seconds > 10 || (LARGE[i].error ? !strstr(messages, LARGE[i].error) : *messages != 0))
            fail_msg("%s%s...: %.1f s, %.300s", LARGE[i].before, LARGE[i].repeated, seconds, messages);
        bench_close(&parsed);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake_is_told_where_it_is_with_what_to_do),
        cmocka_unit_test(what_can_be_read_beside_mistakes_is_returned),
        cmocka_unit_test(line_ends_last_lines_and_empty_files_make_no_difference),
        cmocka_unit_test(places_in_files_with_crlf_and_tabs_are_right),
        cmocka_unit_test(bytes_of_zero_are_reported_and_do_not_end_the_file),
        cmocka_unit_test(files_of_four_megabytes_of_anything_are_read_in_time_and_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
