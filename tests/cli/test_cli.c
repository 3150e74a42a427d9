// The jfac executable as its user meets it: exit statuses, what is said where, which files there are
// afterwards.
#include "compiler/emit/emit.h"
#include "compiler/emit/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/jfa-test-XXXXXX";
static Arena *arena;

static int set_up(void **state) {
    (void)state;
    arena = arena_new();
    return arena && mkdtemp(folder) && !chdir(folder) && !setenv("TMPDIR", folder, 1) ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(arena);
    return rmdir(folder);
}

typedef struct {
    int status;
    const char *text; // both streams
} Result;

// Runs a shell line in the test's folder; "jfac" in it is the executable under test, "$R" the repository.
static Result run(const char *line) {
    const char *script = arena_format(arena, "jfac() { '%s' \"$@\"; }; R='%s'; %s", JFAC, REPOSITORY, line);
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    Result result = {-1, ""};
    const char *message;
    if (!process_run(argv, arena, &result.text, &result.status, &message))
        fail_msg("%s", message);
    return result;
}

static int count_files(void) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int count = -2;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void write_file(const char *name, const char *text) {
    const char *message;
    if (!file_write_whole(name, text, strlen(text), &message))
        fail_msg("%s", message);
}

typedef struct {
    const char *line;
    int status;
    const char *says; // NULL: anything
} Case;

static void check_cases(const Case *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        Result result = run(cases[i].line);
        if (result.status != cases[i].status || (cases[i].says && !strstr(result.text, cases[i].says)))
            fail_msg("%s: status %d, says: %s", cases[i].line, result.status, result.text);
    }
}
#define CHECK_CASES(cases) check_cases(cases, sizeof cases / sizeof cases[0])

static const Case HELP[] = {
    {"jfac --help 2>&-", 0, "exit status:"},      {"jfac help build 2>&-", 0, "examples:"},
    {"jfac build --help 2>&-", 0, "--emit FORM"}, {"jfac check -h 2>&-", 0, "--json"},
    {"jfac version 2>&-", 0, "sm_100a"},          {"jfac --version 2>&-", 0, JFA_VERSION},
};

static void help_goes_to_standard_output_and_is_no_error(void **state) {
    (void)state;
    CHECK_CASES(HELP);
}

static const Case WRONG_USAGE[] = {
    {"jfac 2>&1 >&-", 2, "usage:"},
    {"jfac buld x 2>&1 >&-", 2, "did you mean 'build'?"},
    {"jfac build 2>&1 >&-", 2, "wants a .jfa file"},
    {"jfac build a b 2>&1 >&-", 2, "'b' is one argument too many"},
    {"jfac build a --taget sm_90a 2>&1 >&-", 2, "did you mean '--target'?"},
    {"jfac build a --json 2>&1 >&-", 2, "has no option '--json'"},
    {"jfac build a --target 2>&1 >&-", 2, "--target wants NAME"},
    {"jfac build a --target sm_91a 2>&1 >&-", 2, "did you mean 'sm_90a'?"},
    {"jfac build a --emit cubim 2>&1 >&-", 2, "did you mean 'cubin'?"},
    {"jfac build a --timings=3 2>&1 >&-", 2, "takes no value"},
    {"jfac build a --watchdog 0 2>&1 >&-", 2, "--watchdog wants 1 to 3600000 milliseconds, not 0"},
    {"jfac build a --watchdog -1 2>&1 >&-", 2, "--watchdog wants a whole number from 0 on, not '-1'"},
    {"jfac build a --watchdog soon 2>&1 >&-", 2, "--watchdog wants a whole number from 0 on, not 'soon'"},
    {"jfac build a --watchdog 1.5 2>&1 >&-", 2, "not '1.5'"},
    {"jfac build a --watchdog 3600001 2>&1 >&-", 2, "milliseconds, not 3600001"},
    {"jfac build a --watchdog 1099511627776 2>&1 >&-", 2, "milliseconds, not 1099511627776"},
    {"jfac build a --watchdog 99999999999999999999 2>&1 >&-", 2, "not '99999999999999999999'"},
    {"jfac build a --watchdog 2>&1 >&-", 2, "--watchdog wants MS"},
    {"jfac check a --watchdog 5 2>&1 >&-", 2, "has no option '--watchdog'"},
    {"jfac build a -x 2>&1 >&-", 2, "has no option '-x'"},
    {"jfac version a 2>&1 >&-", 2, "one argument too many"},
};

static void wrong_usage_is_status_2_and_says_what_is_right(void **state) {
    (void)state;
    CHECK_CASES(WRONG_USAGE);
}

static const Case FORMS[] = {
    {"jfac check $R/examples/matmul.jfa", 0, "no errors (kernel matmul, sm_100a)"},
    {"jfac check $R/examples/matmul.jfa --json", 0, "[]"},
    {"jfac build $R/examples/matmul.jfa --emit ast", 0, "family matmul"},
    {"jfac build $R/examples/matmul.jfa --emit plan", 0, "schedule forward for sm_100a"},
    {"jfac build $R/examples/matmul.jfa --emit plan -DSTAGES=2", 0, "const STAGES = 2"},
    {"jfac build $R/examples/matmul.jfa --emit plan -D STAGES=2", 0, "const STAGES = 2"},
    {"jfac build $R/examples/matmul.jfa --emit llvm -o - 2>&-", 0, "target"},
    {"jfac build $R/examples/matmul.jfa --emit=ptx -o - 2>&-", 0, ".target sm_100a"},
    {"jfac build --emit ptx -o - -- $R/examples/matmul.jfa 2>&-", 0, ".target sm_100a"},
};

static const Case WATCHED[] = {
    {"jfac build $R/examples/matmul.jfa --emit ptx -o - 2>&- | grep globaltimer", 1, ""},
    {"jfac build $R/examples/matmul.jfa --emit ptx -o - --watchdog 1 2>&-", 0,
     "setp.lt.u64 P1, now, 1000000;"},
    {"jfac build $R/examples/matmul.jfa --emit ptx -o - --watchdog 3600000 2>&-", 0, "now, 3600000000000;"},
};

static void a_watchdog_is_built_in_on_demand(void **state) {
    (void)state;
    CHECK_CASES(WATCHED);
    assert_int_equal(count_files(), 0);
}

static void every_form_can_be_printed(void **state) {
    (void)state;
    CHECK_CASES(FORMS);
    assert_int_equal(count_files(), 0);
}

static void the_default_output_is_named_after_the_kernel(void **state) {
    (void)state;
    Result result = run("jfac build $R/examples/matmul.jfa --emit ptx --timings");
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.text, "matmul.ptx: "));
    assert_non_null(strstr(result.text, "front end"));
    assert_int_equal(unlink("matmul.ptx"), 0);
    assert_int_equal(count_files(), 0);
}

static void a_cubin_is_built_where_there_is_a_ptxas(void **state) {
    (void)state;
    const char *message;
    if (!emit_find_ptxas(arena, &message))
        skip();
    Result result =
        run("jfac build $R/examples/matmul.jfa -o here.cubin && jfac explain $R/examples/matmul.jfa");
    if (result.status)
        fail_msg("%s", result.text);
    assert_non_null(strstr(result.text, "registers"));
    assert_int_equal(unlink("here.cubin"), 0);
    assert_int_equal(count_files(), 0);
}

// Files that are wrong in one way each, and builds whose last step fails: nothing may be written, and an
// older output stays as it is.
static const Case FAILURES[] = {
    {"jfac build absent.jfa", 1, "absent.jfa"},
    {"jfac build broken.jfa", 1, "broken.jfa:1:"},
    {"jfac check broken.jfa 2>&-", 1, ""},
    {"jfac check broken.jfa --json 2>&-", 1, "\"severity\""},
    {"jfac explain broken.jfa", 1, "broken.jfa:1:"},
    {"jfac build $R/examples/matmul.jfa -D STAGES=60 -o out", 1, "error"},
    {"jfac build $R/examples/matmul.jfa --kernel other -o out", 1, "other"},
    {"jfac build $R/examples/matmul.jfa -o no/such/folder/out --emit ptx", 3, "no/such/folder/out"},
    {"{ echo 'use attention; kernel k : attention { head_dim 128; dtype bf16; score (s, head) => s'\n"
     "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28; do echo \"+ "
     "t$i[head]\"; done\n"
     "echo ';'\n"
     "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28; do echo \"tensor "
     "t$i : in f32[heads];\"; done\n"
     "echo '}'; } > many.jfa; jfac check many.jfa; s=$?; rm many.jfa; exit $s",
     1, "the kernel has 33 tensors, but a kernel can have 32 at most"},
    {"ulimit -f 1; jfac build $R/examples/matmul.jfa --emit ptx -o out", 3,
     "can't write out: File too large"},
    {"jfac build $R/examples/matmul.jfa --emit ptx -o ''", 2, "-o wants the name of a file"},
    {"jfac build $R/examples/matmul.jfa --emit ptx -o - > /dev/full", 3, "standard output"},
    {"jfac check $R/examples/matmul.jfa > /dev/full", 3, "standard output"},
    {"JFAC_PTXAS=/absent jfac build $R/examples/matmul.jfa -o out", 3, "/absent"},
    {"JFAC_PTXAS=./ptxas jfac build $R/examples/matmul.jfa -o out", 70, "internal error"},
    {"jfac new mine --like $R/examples/dense.jfa -o - | grep -c 'kernel mine : attention'", 0, "1"},
    {"jfac new mine --like $R/examples/dense.jfa && jfac check mine.jfa && jfac check mine.jfa --target "
     "sm_90a",
     0, "no errors (kernel mine"},
    {"jfac new mine --like $R/examples/dense.jfa; s=$?; rm mine.jfa; exit $s", 3, "mine.jfa exists already"},
    {"jfac new role --like $R/examples/dense.jfa", 2, "'role' can't be a kernel's name"},
    {"jfac new 'a b' --like $R/examples/dense.jfa", 2, "'a b' can't be a kernel's name"},
    {"jfac new mine", 2, "jfac new mine --like"},
    {"jfac new mine --like $R/examples/matmul.jfa", 2, "family matmul is declared in the file of kernel"},
    {"jfac new mine --like absent.jfa", 1, "can't read absent.jfa"},
    {"jfac check $R/examples/dense.jfa --target sm_90a -D ATTEND_REGS=184", 1,
     "keeps 160 registers of tiles"},
    {"JFAC_PTXAS=./poor-ptxas jfac build $R/examples/matmul.jfa -o out", 1, "fewer CTAs an SM"},
    {"JFAC_PTXAS=./old-ptxas jfac build $R/examples/matmul.jfa -o out", 3, "a newer one is needed"},
    {"JFAC_PTXAS=./killed-ptxas jfac build $R/examples/matmul.jfa -o out", 3, "signal 9"},
};

static void write_program(const char *name, const char *body) {
    write_file(name, arena_format(arena, "#!/bin/sh\n[ \"$1\" = --version ] && exit\n%s\n", body));
    assert_int_equal(chmod(name, 0700), 0);
}

static void a_failure_writes_no_output_and_keeps_the_old_one(void **state) {
    (void)state;
    write_file("out", "old");
    write_file("broken.jfa", "kernel { head_dim 128 }\n");
    write_program("ptxas", "echo 'ptxas k.ptx, line 1; error   : no' >&2; exit 255");
    write_program("poor-ptxas",
                  "echo 'ptxas fatal   : (C7602) Insufficient registers (80) to compile' >&2; exit 255");
    write_program("old-ptxas",
                  "echo \"ptxas fatal   : Value 'x' is not defined for option 'gpu-name'\" >&2; exit 1");
    write_program("killed-ptxas", "kill -KILL $$");
    int files = count_files();
    CHECK_CASES(FAILURES);
    assert_int_equal(count_files(), files);
    assert_string_equal(run("cat out").text, "old");
    assert_int_equal(run("rm out broken.jfa ptxas poor-ptxas old-ptxas killed-ptxas").status, 0);
}

// A ptxas that takes all and says `says`.
static void write_ptxas(const char *says) {
    write_program("ptxas", arena_format(arena,
                                        "while [ \"$1\" != -o ]; do shift; done; echo x > \"$2\"\n"
                                        "printf \"%s\" >&2",
                                        says));
}

static void what_ptxas_says_of_speed_decides_whether_a_kernel_is_built(void **state) {
    (void)state;
    static const char BUILD[] = "JFAC_PTXAS=./ptxas jfac build $R/examples/matmul.jfa -o out";
    write_ptxas("ptxas info    : (C7512) Potential Performance Loss: serialized\\n");
    Result result = run(BUILD);
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.text, "(C7512)"));
    assert_int_equal(run("[ ! -e out ]").status, 0);
    write_ptxas("ptxas info    : Compiling entry function 'matmul' for 'x'\\n"
                "    8 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\\n");
    result = run(arena_format(arena, "%s --strict", BUILD));
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.text, "12 bytes a thread"));
    assert_int_equal(run("[ ! -e out ]").status, 0);
    assert_int_equal(run(BUILD).status, 0);
    assert_int_equal(run("rm out ptxas").status, 0);
}

static void files_that_are_used_are_found_in_the_folders_named(void **state) {
    (void)state;
    Result result = run("mkdir inner && printf 'use part;\\nkernel k : part_family { }\\n' > main.jfa\n"
                        "printf 'family part_family { axis m; }\\n' > inner/part.jfa\n"
                        "jfac build main.jfa --emit ast && exit 9\n"
                        "jfac build main.jfa --emit ast -I inner && jfac build main.jfa --emit ast -Iinner");
    if (result.status || !strstr(result.text, "family part_family"))
        fail_msg("status %d: %s", result.status, result.text);
    assert_int_equal(run("rm -r inner main.jfa").status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_goes_to_standard_output_and_is_no_error),
        cmocka_unit_test(wrong_usage_is_status_2_and_says_what_is_right),
        cmocka_unit_test(every_form_can_be_printed),
        cmocka_unit_test(a_watchdog_is_built_in_on_demand),
        cmocka_unit_test(the_default_output_is_named_after_the_kernel),
        cmocka_unit_test(a_cubin_is_built_where_there_is_a_ptxas),
        cmocka_unit_test(a_failure_writes_no_output_and_keeps_the_old_one),
        cmocka_unit_test(what_ptxas_says_of_speed_decides_whether_a_kernel_is_built),
        cmocka_unit_test(files_that_are_used_are_found_in_the_folders_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
