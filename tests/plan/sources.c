#include "tests/plan/sources.h"
#include "compiler/sema/sema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static Program *empty(void) {
    Arena *arena = arena_new();
    if (!arena)
        exit(71);
    Program *program = arena_new_of(arena, Program);
    program->arena = arena;
    program->sources.arena = arena;
    diag_init(&program->diag, arena, &program->sources);
    return program;
}

static void build(Program *program, const Ast *items) {
    SemaOptions options = {.target = target_find("sm_100a")};
    SemaParts parts = {0};
    if (!program->diag.error_count)
        program->plan = sema_build(program->arena, &program->diag, items, &options, &parts);
}

Program *program_new(const char *text) {
    Program *program = empty();
    int file = source_add(&program->sources, "t.jfa", text, strlen(text));
    build(program, parse_file(program->arena, &program->diag, file));
    return program;
}

Program *program_open(const char *path) {
    Program *program = empty();
    static const char *const DIRECTORIES[] = {JFA_REPOSITORY "/templates"};
    const char *whole = arena_format(program->arena, "%s/%s", JFA_REPOSITORY, path);
    build(program, sema_load(program->arena, &program->diag, whole, DIRECTORIES, 1));
    return program;
}

static int changed_file(Program *program, const char *path, const char *from, const char *to) {
    const char *reason = "";
    SourceSet kept = {.arena =
                          program->arena}; // the program's first file is that of the kernel, as it is now
    if (source_read(&kept, arena_format(program->arena, "%s/%s", JFA_REPOSITORY, path), &reason) < 0)
        fail_msg("%s: %s", path, reason);
    const char *text = kept.files[0].text, *at = from ? strstr(text, from) : NULL;
    if (!from)
        return source_add(&program->sources, path, text, strlen(text));
    if (!at)
        fail_msg("'%s' doesn't stand in %s", from, path);
    const char *changed =
        arena_format(program->arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return source_add(&program->sources, path, changed, strlen(changed));
}

Program *program_edited(const char *path, const char *from, const char *to) {
    static const char *const PATHS[] = {"examples/dense.jfa", "templates/attention.jfa",
                                        "templates/attention_sm100.jfa"};
    Program *program = empty();
    Ast *items = NULL, **tail = &items;
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++) {
        bool changes = !strcmp(path, PATHS[i]);
        int file = changed_file(program, PATHS[i], changes ? from : NULL, to);
        *tail = parse_file(program->arena, &program->diag, file);
        while (*tail)
            tail = &(*tail)->next;
    }
    build(program, items);
    return program;
}

Program *program_of_schedule(const char *body) {
    Program *program = empty();
    const char *text = arena_format(
        program->arena,
        "family f { option dtype : type in (bf16, f16); axis m; axis n; axis k; tensor A : in dtype[m, k]; "
        "tensor B : "
        "in dtype[n, k]; tensor C : out dtype[m, n]; param limit : f32 = 1; } kernel x : f { dtype bf16; }\n"
        "schedule s of f for sm_100 {\n%s}\n",
        body);
    int file = source_add(&program->sources, "t.jfa", text, strlen(text));
    build(program, parse_file(program->arena, &program->diag, file));
    return program;
}

void program_free(Program *program) {
    arena_free(program->arena);
}

static const char *finish(Program *program, FILE *out, char **bytes, size_t *length) {
    fclose(out);
    const char *text = arena_copy(program->arena, *bytes, *length);
    free(*bytes);
    return text;
}

static FILE *start(char **bytes, size_t *length) {
    FILE *out = open_memstream(bytes, length);
    if (!out)
        exit(71);
    return out;
}

const char *program_messages(Program *program) {
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = start(&bytes, &length);
    diag_print_text(&program->diag, out);
    return finish(program, out, &bytes, &length);
}

const char *text_of(Program *program, void (*print)(const Plan *plan, FILE *out)) {
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = start(&bytes, &length);
    print(program->plan, out);
    return finish(program, out, &bytes, &length);
}

typedef struct {
    const MessageCase *wanted;
    bool (*pass)(Plan *plan, Diag *diag);
} MessageTest;

static void run_message_case(void **state) {
    const MessageTest *test = *state;
    Program *program = program_of_schedule(test->wanted->body);
    assert_string_equal(program_messages(program), ""); // sema accepts it
    assert_non_null(program->plan);
    bool passed = test->pass(program->plan, &program->diag);
    assert_string_equal(program_messages(program), test->wanted->messages);
    assert_int_equal(passed, program->diag.error_count == 0);
    program_free(program);
}

int run_message_cases(const MessageCase *cases, int count, bool (*pass)(Plan *plan, Diag *diag)) {
    MessageTest *states = calloc((size_t)count, sizeof *states);
    struct CMUnitTest *tests = calloc((size_t)count, sizeof *tests);
    if (!states || !tests)
        exit(71);
    for (int i = 0; i < count; i++) {
        states[i] = (MessageTest){&cases[i], pass};
        tests[i] = (struct CMUnitTest){
            .name = cases[i].name, .test_func = run_message_case, .initial_state = &states[i]};
    }
    int failed = _cmocka_run_group_tests("messages", tests, (size_t)count, NULL, NULL);
    free(tests);
    free(states);
    return failed;
}
