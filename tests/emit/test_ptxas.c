// ptxas: finding it, running it, reading its log. A stand-in (a shell script) plays the ptxas that fails in
// ways which a real one can't be made to; the real one is used where there is one.
#define _GNU_SOURCE // memmem
#include "compiler/emit/emit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/jfa-test-XXXXXX";
static char scratch[64], stand_in[64];

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(scratch, sizeof scratch, "%s/tmp", folder);
    snprintf(stand_in, sizeof stand_in, "%s/ptxas", folder);
    return mkdir(scratch, 0700) || setenv("TMPDIR", scratch, 1);
}

static int tear_down(void **state) {
    (void)state;
    unlink(stand_in);
    return rmdir(scratch) || rmdir(folder);
}

static void write_stand_in(const char *body) {
    char script[512];
    const char *message;
    int length = snprintf(script, sizeof script, "#!/bin/sh\n%s\n", body);
    if (!file_write_whole(stand_in, script, (size_t)length, &message))
        fail_msg("%s", message);
    assert_int_equal(chmod(stand_in, 0700), 0);
}

static int count_left_over(void) {
    DIR *dir = opendir(scratch);
    assert_non_null(dir);
    int count = -2;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static const char GOOD[] = ".version 8.4\n.target sm_90a\n.address_size 64\n"
                           ".visible .entry one(.param .u64 p)\n{\n.reg .b64 %r<2>;\n.reg .b32 %v;\n"
                           ".shared .align 4 .b8 room[64];\n"
                           "ld.param.u64 %r1, [p];\nmov.u32 %v, room;\nst.global.u32 [%r1], %v;\nret;\n}\n";

// ---------------------------------------------------------------- the log

static const char LOG[] = "ptxas info    : 0 bytes gmem\n"
                          "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable "
                          "to determine register count at entry.\n"
                          "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
                          "ptxas info    : Function properties for first\n"
                          "    48 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
                          "ptxas info    : Used 168 registers, used 3 barriers, 48 bytes cumulative stack "
                          "size, 224 bytes smem, 10 bytes cmem[0]\n"
                          "ptxas info    : Compiling entry function 'second_C75' for 'sm_90a'\n"
                          "ptxas info    : Function properties for second_C75\n"
                          "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                          "ptxas info    : Used 24 registers\n"
                          "ptxas warning : Value of threads per SM for entry second_C75 is out of range.";

static void the_log_gives_numbers_per_entry_and_what_is_worth_a_note(void **state) {
    (void)state;
    Arena *arena = arena_new();
    EmitReport report = {0};
    emit_parse_log(LOG, arena, &report);
    assert_int_equal(report.entry_count, 2);
    const EmitEntry *first = &report.entries[0], *second = &report.entries[1];
    assert_string_equal(first->name, "first");
    assert_int_equal(first->registers, 168);
    assert_int_equal(first->barriers, 3);
    assert_int_equal(first->stack_bytes, 48);
    assert_int_equal(first->spill_store_bytes, 8);
    assert_int_equal(first->spill_load_bytes, 12);
    assert_int_equal(first->shared_bytes, 224);
    assert_string_equal(second->name, "second_C75");
    assert_int_equal(second->registers, 24);
    assert_int_equal(report.spill_bytes, 20);
    assert_true(report.has_c75);
    assert_int_equal(report.note_count, 2);
    assert_non_null(strstr(report.notes[0], "(C7508)"));
    assert_non_null(strstr(report.notes[1], "out of range"));
    arena_free(arena);
}

static void a_log_of_anything_else_gives_nothing(void **state) {
    (void)state;
    static const char *const LOGS[] = {"", "\n\n", "Used 12 registers\n",
                                       "ptxas info    : Compiling entry function 'x", "C7\nC75\nC75x1"};
    for (size_t i = 0; i < sizeof LOGS / sizeof LOGS[0]; i++) {
        Arena *arena = arena_new();
        EmitReport report = {0};
        emit_parse_log(LOGS[i], arena, &report);
        assert_int_equal(report.entry_count, 0);
        assert_int_equal(report.note_count, 0);
        assert_false(report.has_c75);
        arena_free(arena);
    }
}

// ---------------------------------------------------------------- finding it

static void a_named_ptxas_that_is_none_is_a_message_with_its_name(void **state) {
    (void)state;
    Arena *arena = arena_new();
    const char *message = NULL;
    setenv("JFAC_PTXAS", "/no/such/ptxas", 1);
    assert_null(emit_find_ptxas(arena, &message));
    assert_non_null(strstr(message, "/no/such/ptxas"));
    void *cubin;
    size_t length;
    EmitReport report;
    assert_false(emit_cubin(GOOD, target_find("sm_90a"), NULL, arena, &cubin, &length, &report, &message));
    assert_false(report.found);
    unsetenv("JFAC_PTXAS");
    arena_free(arena);
}

static void the_environment_goes_before_everything_else(void **state) {
    (void)state;
    Arena *arena = arena_new();
    const char *message = NULL;
    write_stand_in("exit 0");
    setenv("JFAC_PTXAS", stand_in, 1);
    assert_string_equal(emit_find_ptxas(arena, &message), stand_in);
    unsetenv("JFAC_PTXAS");
    arena_free(arena);
}

// ---------------------------------------------------------------- runs

typedef struct {
    const char *what, *body, *message; // message: what it must hold
    int status;
} Failure;

static const Failure FAILURES[] = {
    {"an error", "echo 'ptxas x.ptx, line 7; error   : Unknown symbol' >&2; exit 255", "Unknown symbol", 255},
    {"a signal", "kill -SEGV $$", "signal 11", -11},
    {"no output file", "exit 0", "left no output", 0},
    {"an empty output file", "while [ \"$1\" != -o ]; do shift; done; : > \"$2\"", "can't be read", 0},
};

static void a_ptxas_that_fails_is_a_message_and_leaves_no_files(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof FAILURES / sizeof FAILURES[0]; i++) {
        Arena *arena = arena_new();
        char body[400];
        snprintf(body, sizeof body, "case $1 in --version) echo ', V99.1'; exit;; esac\n%s",
                 FAILURES[i].body);
        write_stand_in(body);
        void *cubin;
        size_t length;
        EmitReport report;
        const char *message = NULL;
        EmitCubinOptions options = {.ptxas = stand_in};
        assert_false(
            emit_cubin(GOOD, target_find("sm_90a"), &options, arena, &cubin, &length, &report, &message));
        if (!strstr(message, FAILURES[i].message))
            fail_msg("%s: %s", FAILURES[i].what, message);
        assert_true(report.found);
        assert_string_equal(report.version, "99.1");
        assert_int_equal(report.status, FAILURES[i].status);
        assert_int_equal(count_left_over(), 0);
        arena_free(arena);
    }
}

static void a_cubin_that_is_no_elf_file_has_no_code_size(void **state) {
    (void)state;
    Arena *arena = arena_new();
    write_stand_in(
        "echo \"Compiling entry function 'one' for 'x'\"\n"
        "while [ \"$1\" != -o ]; do shift; [ $# = 0 ] && exit; done; echo not an elf file > \"$2\"");
    void *cubin;
    size_t length;
    EmitReport report;
    const char *message = NULL;
    EmitCubinOptions options = {.ptxas = stand_in};
    if (!emit_cubin(GOOD, target_find("sm_90a"), &options, arena, &cubin, &length, &report, &message))
        fail_msg("%s", message);
    assert_int_equal(report.entry_count, 1);
    assert_int_equal(report.entries[0].code_bytes, 0);
    arena_free(arena);
}

// The child of this test hangs in its stand-in; a signal must end it and leave neither files nor the stand-in
// running.
static void a_signal_during_the_run_leaves_no_files(void **state) {
    (void)state;
    write_stand_in("case $1 in --version) exit;; esac\nexec sleep 60");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        void *cubin;
        size_t length;
        EmitReport report;
        const char *message;
        EmitCubinOptions options = {.ptxas = stand_in};
        emit_cubin(GOOD, target_find("sm_90a"), &options, arena_new(), &cubin, &length, &report, &message);
        _exit(0);
    }
    for (int i = 0; i < 500 && count_left_over() == 0; i++)
        nanosleep(&(struct timespec){0, 10 * 1000 * 1000}, NULL);
    assert_int_equal(count_left_over(), 1);
    nanosleep(&(struct timespec){0, 200 * 1000 * 1000}, NULL);
    kill(child, SIGTERM);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(count_left_over(), 0);
}

static void the_real_ptxas_gives_a_cubin_and_its_numbers(void **state) {
    (void)state;
    Arena *arena = arena_new();
    const char *message = NULL;
    if (!emit_find_ptxas(arena, &message)) {
        arena_free(arena);
        skip();
    }
    void *cubin = NULL;
    size_t length = 0;
    EmitReport report;
    EmitCubinOptions options = {.line_info = true};
    if (!emit_cubin(GOOD, target_find("sm_90a"), &options, arena, &cubin, &length, &report, &message))
        fail_msg("%s", message);
    assert_memory_equal(cubin, "\177ELF", 4);
    assert_int_equal(report.entry_count, 1);
    assert_string_equal(report.entries[0].name, "one");
    assert_true(report.entries[0].registers > 0);
    assert_int_equal(report.entries[0].shared_bytes, 64);
    assert_true(report.entries[0].code_bytes > 0);
    assert_int_equal(report.spill_bytes, 0);
    assert_true(report.version[0] && report.milliseconds > 0);
    assert_false(
        emit_cubin("this is no PTX", target_find("sm_90a"), NULL, arena, &cubin, &length, &report, &message));
    assert_true(report.found && report.status != 0);
    assert_int_equal(count_left_over(), 0);
    arena_free(arena);
}

// Sections of the cubin are found by their names in its table of strings.
static bool has_text(const void *bytes, size_t length, const char *text) {
    return memmem(bytes, length, text, strlen(text) + 1) != NULL;
}

static void source_lines_are_in_the_cubin_only_when_asked_for(void **state) {
    (void)state;
    static const char WITH_LINES[] =
        ".version 8.4\n.target sm_90a\n.address_size 64\n"
        ".visible .entry one(.param .u64 p)\n{\n.reg .b64 %r<2>;\n"
        "\t.loc\t1 5 3\nld.param.u64 %r1, [p];\nst.global.u64 [%r1], %r1;\nret;\n}\n"
        "\t.file\t1 \"secret.jfa\"\n";
    Arena *arena = arena_new();
    const char *message = NULL;
    if (!emit_find_ptxas(arena, &message)) {
        arena_free(arena);
        skip();
    }
    for (int line_info = 0; line_info < 2; line_info++) {
        void *cubin = NULL;
        size_t length = 0;
        EmitReport report;
        EmitCubinOptions options = {.line_info = line_info};
        if (!emit_cubin(WITH_LINES, target_find("sm_90a"), &options, arena, &cubin, &length, &report,
                        &message))
            fail_msg("%s", message);
        assert_int_equal(has_text(cubin, length, ".debug_line"), line_info);
        assert_int_equal(has_text(cubin, length, "secret.jfa"), line_info);
    }
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_log_gives_numbers_per_entry_and_what_is_worth_a_note),
        cmocka_unit_test(a_log_of_anything_else_gives_nothing),
        cmocka_unit_test(a_named_ptxas_that_is_none_is_a_message_with_its_name),
        cmocka_unit_test(the_environment_goes_before_everything_else),
        cmocka_unit_test(a_ptxas_that_fails_is_a_message_and_leaves_no_files),
        cmocka_unit_test(a_cubin_that_is_no_elf_file_has_no_code_size),
        cmocka_unit_test(a_signal_during_the_run_leaves_no_files),
        cmocka_unit_test(source_lines_are_in_the_cubin_only_when_asked_for),
        cmocka_unit_test(the_real_ptxas_gives_a_cubin_and_its_numbers),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
