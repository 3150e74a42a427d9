// The numbers of tiles and blocks that a message names are the smallest that show what it says.
#include "compiler/plan/protocol.h"
#include "tests/plan/sources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char OPERANDS[] =
    "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
    "walk steps over p in blocks(k, 64);\n"
    "walk more over r in blocks(k, 64);\n"
    "smem a [%d] : dtype[128, 64];\n"
    "smem b [%d] : dtype[128, 64];\n"
    "tmem acc : f32[128, 128];\n"
    "pipe a_in : a load -> mma;\n"
    "pipe b_in : b load -> mma;\n"
    "pipe product : acc mma -> out;\n"
    "role load : 1 warp { for t in tiles { %s } }\n"
    "role mma : 1 warp { for t in tiles { %s } }\n"
    "role out : 4 warps { for t in tiles { if t.steps.count > 0 { take x = product; "
    "store C[t.i + rows, t.j + cols] = x; free x; } } }\n";

static const char MULTIPLY[] =
    "if t.steps.count > 0 { fill d = product { for s in t.steps { take x = a_in; take y = "
    "b_in; d += x @ y^T fresh if s.first; free x; free y; } } }";

typedef struct {
    const char *name;
    int depth_a, depth_b;
    const char *load, *mma;
    const char *trip;
} Case;

// All of `a` before the first `b`: there is room for `depth` of them, and for one more that mma has taken but
// not freed.
#define APART "for s in t.steps { put a_in = A[t.i, s.p]; } for s in t.steps { put b_in = B[t.j, s.p]; }"
static const Case CASES[] = {
    {"one slot", 1, 1, APART, MULTIPLY, "with 1 tile of 2 blocks of 'steps' and 0 blocks of 'more'\n"},
    {"as many blocks as slots and one", 3, 1, APART, MULTIPLY,
     "with 1 tile of 4 blocks of 'steps' and 0 blocks of 'more'\n"},
    {"more blocks than are tried else", 7, 2, APART, MULTIPLY,
     "with 1 tile of 8 blocks of 'steps' and 0 blocks of 'more'\n"},
    {"only the walk that matters has blocks", 2, 2,
     "for s in t.more { put a_in = A[t.i, s.r]; put b_in = B[t.j, s.r]; } for s in t.steps { put a_in = "
     "A[t.i, s.p]; put b_in "
     "= B[t.j, s.p]; }",
     "for s in t.more { take y = b_in; free y; } for s in t.more { take x = a_in; free x; } "
     "if t.steps.count > 0 { fill d = product { for s in t.steps { take x = a_in; take y = b_in; d += x @ "
     "y^T fresh if "
     "s.first; free x; free y; } } }",
     "with 1 tile of 0 blocks of 'steps' and 3 blocks of 'more'\n"},
};

static void check_case(void **state) {
    const Case *test = *state;
    char text[4096];
    snprintf(text, sizeof text, OPERANDS, test->depth_a, test->depth_b, test->load, test->mma);
    Program *program = program_of_schedule(text);
    assert_string_equal(program_messages(program), "");
    assert_false(protocol_check(program->plan, &program->diag));
    const char *said = program_messages(program);
    if (!strstr(said, test->trip) || !strstr(said, "wait for each other") || program->diag.error_count != 1)
        fail_msg("%s", said);
    program_free(program);
}

// Not that it has loops within loops, where it has none.
static void a_role_of_too_many_statements_is_told_as_that(void **state) {
    (void)state;
    enum { LETS = 30000 };
    char *mma = malloc((size_t)LETS * 32 + 1024);
    size_t at = (size_t)sprintf(mma, "for s in t.steps { take x = a_in; take y = b_in; ");
    for (int i = 0; i < LETS; i++)
        at += (size_t)sprintf(mma + at, "let v%d = s.p + %d; ", i, i);
    sprintf(mma + at, "free x; free y; }");
    size_t size = strlen(mma) + 4096;
    char *text = malloc(size);
    snprintf(text, size, OPERANDS, 1, 1,
             "for s in t.steps { put a_in = A[t.i, s.p]; put b_in = B[t.j, s.p]; }", mma);
    char *product = strstr(text, "pipe product"), *out = strstr(text, "role out");
    memset(product, ' ', (size_t)(strchr(product, '\n') - product));
    memset(out, ' ', (size_t)(strchr(out, '\n') - out));
    Program *program = program_of_schedule(text);
    assert_non_null(program->plan);
    assert_false(protocol_check(program->plan, &program->diag));
    const DiagItem *item = program->diag.items;
    assert_string_equal(item->text,
                        "role 'mma' runs more than 262144 statements with 1 tile of 11 blocks of 'steps' and "
                        "11 blocks of 'more': too many to be checked");
    assert_non_null(strstr(item->help, "say more in each statement"));
    program_free(program);
    free(text);
    free(mma);
}

int main(void) {
    enum { COUNT = sizeof CASES / sizeof CASES[0] };
    struct CMUnitTest tests[COUNT + 1] = {cmocka_unit_test(a_role_of_too_many_statements_is_told_as_that)};
    for (int i = 0; i < COUNT; i++)
        tests[i + 1] = (struct CMUnitTest){
            .name = CASES[i].name, .test_func = check_case, .initial_state = (void *)&CASES[i]};
    return _cmocka_run_group_tests("trips", tests, COUNT + 1, NULL, NULL);
}
