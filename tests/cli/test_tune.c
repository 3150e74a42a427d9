// jfac tune and what the other commands take from its file: which combination wins, what is left out and why,
// what a file is for.
#include "compiler/emit/emit.h"
#include "compiler/emit/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/jfa-test-XXXXXX";
static Arena *arena;

static int set_up(void **state) {
    (void)state;
    arena = arena_new();
    return arena && mkdtemp(folder) && !chdir(folder) && !setenv("TMPDIR", folder, 1) ? 0 : -1;
}

typedef struct {
    int status;
    const char *text; // both streams
} Result;

// Runs a shell line in the test's folder. "tune" counts instructions of m.jfa, or of the file in $F, on a
// problem of a few tiles; "plan" prints what a build of it makes of its constants.
static Result run(const char *line) {
    const char *script =
        arena_format(arena,
                     "jfac() { '%s' \"$@\"; }; R='%s'; D='%s'; F=m.jfa; L='m=130;n=128;k=64'\n"
                     "tune() { jfac tune $F --measure instructions --lens \"$L\" \"$@\"; }\n"
                     "plan() { jfac build $F --emit plan --tuned t.tuned \"$@\"; }\n%s",
                     JFAC, REPOSITORY, DRIVER, line);
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    Result result = {-1, ""};
    const char *message;
    if (!process_run(argv, arena, &result.text, &result.status, &message))
        fail_msg("%s", message);
    return result;
}

static int clean(void **state) {
    (void)state;
    return run("rm -rf ./*").status;
}

static int tear_down(void **state) {
    clean(state);
    arena_free(arena);
    return rmdir(folder);
}

typedef struct {
    const char *line;
    int status;
    const char *says, *not ; // NULL: anything
} Case;

static void check_cases(const Case *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        Result result = run(cases[i].line);
        bool says = !cases[i].says || strstr(result.text, cases[i].says);
        if (result.status != cases[i].status || !says || (cases[i].not &&strstr(result.text, cases[i].not )))
            fail_msg("%s: status %d, says: %s", cases[i].line, result.status, result.text);
    }
}
#define CHECK_CASES(cases) check_cases(cases, sizeof cases / sizeof cases[0])

// m.jfa: the example with what this test wants to be tried; both targets have the same line.
static void write_kernel(const char *name, const char *constants) {
    Result result =
        run(arena_format(arena,
                         "sed -E 's|N = 128 tune [^)]*\\), |N = 128, |; s|STAGES = 4 tune [^)]*\\)|%s|' "
                         "$R/examples/matmul.jfa > %s && grep -c '%.12s' %s",
                         constants, name, constants, name));
    if (result.status || result.text[0] != '2')
        fail_msg("%s", result.text);
}

static void write_file(const char *name, const char *text) {
    const char *message;
    if (!file_write_whole(name, text, strlen(text), &message))
        fail_msg("%s", message);
}

#define FILE_HEAD "kernel matmul\n  schedule matmul.forward\n  target sm_100a\n"
static void write_tuned(const char *device, const char *values) {
    write_file("t.tuned", arena_format(arena, FILE_HEAD "  device %s\n%send\n", device, values));
}

static const Case USAGE[] = {
    {"jfac tune", 2, "tune wants a .jfa file", NULL},
    {"jfac tune m.jfa --device sim:sm_100a", 2, "tune on one (--device cuda:0)", NULL},
    {"jfac tune m.jfa --measure instructions --device cuda:0", 2, "only simulated devices count instructions",
     NULL},
    {"jfac tune m.jfa --measure heat", 2, "--measure takes time or instructions, not 'heat'", NULL},
    {"jfac tune m.jfa", 3, "no CUDA driver", NULL},
    {"tune --rounds 0", 2, "--rounds wants 1 to 1000", NULL},
    {"tune --limit-time soon", 2, "--limit-time wants a whole number", NULL},
    {"tune --device sim:sm_90a --target sm_100a", 2, "it can't run what is built for sm_100a", NULL},
    {"tune --tuned x", 2, "tune has no option '--tuned'", NULL},
    {"tune --image x", 2, "tune has no option '--image'", NULL},
    {"tune --heads 3", 2, "has no dim of that name", NULL},
    {"tune -D STAGES=4", 1, "has no constant to tune that -D doesn't fix", NULL},
    {"tune -o no/such/folder/t.tuned", 3, "no/such/folder", NULL},
    {"F=absent.jfa; tune", 1, "absent.jfa", NULL},
    {"jfac build m.jfa --tuned absent.tuned", 1, "can't read absent.tuned", NULL},
    {"jfac tune --help", 0, "--limit-time SECONDS", "--json"},
};

static void wrong_usage_says_what_is_right(void **state) {
    (void)state;
    write_kernel("m.jfa", "STAGES = 4 tune (2)");
    CHECK_CASES(USAGE);
    assert_int_equal(run("[ ! -e matmul.tuned ]").status, 0);
}

// Fewer stages, fewer barriers to set up; 60 stages don't fit.
static const Case SEARCHES[] = {
    {"tune -o t.tuned", 0, "4 tried, 1 left out\nbest: STAGES=2, written to t.tuned", NULL},
    {"cat t.tuned", 0, "  when dtype = bf16\n  use STAGES = 2\n  measured ", NULL},
    {"cat t.tuned", 0, "  on --lens m=130;n=128;k=64\nend\n", NULL},
    {"tune -o u.tuned && cmp t.tuned u.tuned", 0, "written to u.tuned", NULL},
    {"tune 2>&1 >/dev/null -o t.tuned", 0, "tuning: STAGES=60", "STAGES=9"},
    {"tune -o -", 0, "\nkernel matmul\n", "of default"},
    {"tune -o t.tuned --limit-time 0", 0, "1 tried, no time for more\nbest: STAGES=4 (the default)", NULL},
    {"tune", 0, "written to matmul.tuned", NULL},
    {"tune | grep ' 60 .*shared memory'", 0, "schedule 'forward' needs", NULL},
};

static void the_cheapest_wins_and_what_does_not_fit_is_left_out(void **state) {
    (void)state;
    write_kernel("m.jfa", "STAGES = 4 tune (2, 5, 60)");
    CHECK_CASES(SEARCHES);
}

// Y is a half of X unless it is set.
static const Case DEPENDENT[] = {
    {"tune -o t.tuned", 0, "9 tried", NULL},
    {"tune -o t.tuned 2>&1 >/dev/null", 0, "tuning: X=8, Y=6, STAGES=2", "X=8, Y=3"},
    {"tune -o t.tuned -D X=2", 0, "3 tried", NULL},
    {"tail -8 t.tuned", 0, "  when X = 2\n  use Y = 1\n  use STAGES = 2\n", NULL},
};

static void values_follow_from_others(void **state) {
    (void)state;
    write_kernel("m.jfa", "X = 4 tune (6, 8), Y = X / 2 tune (X / 2 + 1, X / 2 + 2), "
                          "STAGES = max(2, X - Y) tune (max(2, X - Y))");
    CHECK_CASES(DEPENDENT);
}

// 5 * 7 combinations are many: the best of each constant is kept.
static const Case MANY[] = {
    {"tune -o t.tuned", 0, "best: STAGES=2, X=1, ", NULL},
    {"tune -o t.tuned | sed -n 's/ tried.*//p'", 0, "", "35"},
    {"tune -o t.tuned --exhaustive", 0, "35 tried", NULL},
};

static void many_combinations_are_tried_one_constant_after_the_other(void **state) {
    (void)state;
    write_kernel("m.jfa", "STAGES = 4 tune (2, 3, 5, 6), X = 1 tune (2, 3, 4, 5, 6, 7)");
    CHECK_CASES(MANY);
}

// The reference knows nothing of OFF. The wrong kernel would be cheaper.
static const Case WRONG[] = {
    {"tune -o t.tuned", 4, "jfac: error: with OFF=1, STAGES=2 the kernel is wrong", NULL},
    {"tune -o t.tuned", 4, "2 tried, 1 WRONG\nbest: OFF=0, STAGES=4 (the default), written to t.tuned", NULL},
    {"rm t.tuned; tune -o t.tuned -D OFF=1 -D STAGES=2", 1, "has no constant to tune", NULL},
    {"sed 's/OFF = 0 tune (1)/OFF = 1 tune (0)/' m.jfa > o.jfa; F=o.jfa; tune -o t.tuned", 4,
     "with OFF=1, STAGES=2 the kernel is wrong", "best:"},
    {"[ ! -e t.tuned ]", 0, NULL, NULL},
};

static void a_wrong_kernel_never_wins(void **state) {
    (void)state;
    write_kernel("k.jfa", "OFF = 0 tune (1), STAGES = OFF == 0 ? 4 : 2");
    assert_int_equal(
        run("sed 's/STAGES = OFF == 0 ? 4 : 2/STAGES = OFF == 0 ? 4 : 2 tune (OFF == 0 ? 4 : 2)/\n"
            "s/epilogue(x, t.i + rows, t.j + cols)/epilogue(x, t.i + rows, t.j + cols) + OFF/' "
            "k.jfa > m.jfa")
            .status,
        0);
    CHECK_CASES(WRONG);
}

static const Case KEPT[] = {
    {"tune -o t.tuned && tune -o t.tuned -D dtype=f16 && tune -o t.tuned --device sim:sm_90a && grep -c "
     "kernel t.tuned",
     0, "\n3\n", NULL},
    {"tune -o t.tuned --limit-time 0 && grep -c kernel t.tuned", 0, "\n3\n", NULL},
    {"grep use t.tuned | tr '\\n' ' '", 0, "use STAGES = 4   use STAGES = 2   use STAGES = 4 ", NULL},
    {"cp t.tuned u.tuned; printf 'kernel\\n' >> t.tuned; tune -o t.tuned", 1,
     "t.tuned:33:7: error: ", "tuning:"},
    {"mv u.tuned t.tuned; plan", 0, "jfac: tuned: STAGES=4 from t.tuned", NULL},
    {"plan -D dtype=f16", 0, "jfac: tuned: STAGES=2 from t.tuned", NULL},
    {"plan --target sm_90a", 0, "jfac: tuned: STAGES=4 from t.tuned", NULL},
};

static void entries_for_something_else_are_kept(void **state) {
    (void)state;
    write_kernel("m.jfa", "STAGES = 4 tune (2)");
    CHECK_CASES(KEPT);
}

static const Case PRECEDENCE[] = {
    {"plan", 0, "const STAGES = 2", NULL},
    {"plan 2>&1 >/dev/null", 0, "jfac: tuned: STAGES=2 from t.tuned\n", NULL},
    {"jfac check m.jfa --tuned t.tuned", 0, "tuned: STAGES=2 from", NULL},
    {"jfac build m.jfa --emit plan", 0, "const STAGES = 4", "tuned"},
    {"plan -D STAGES=5", 0, "const STAGES = 5", NULL},
    {"plan -D STAGES=5 2>&1 >/dev/null", 0, "jfac: tuned: STAGES=5 (by -D) from t.tuned\n", NULL},
    {"plan --tuned-for GPU", 0, "const STAGES = 2", NULL},
    {"jfac run m.jfa --lens \"$L\" --tuned t.tuned", 0, "tuned: STAGES=2 from", NULL},
    // What it was not tuned for: the defaults, and why.
    {"plan -D dtype=f16", 0, "const STAGES = 4", NULL},
    {"plan -D dtype=f16 2>&1 >/dev/null", 0,
     "not tuned: t.tuned was tuned with dtype = bf16; here it is f16; the defaults are", NULL},
    {"plan -D K=64", 0, "was not tuned with -D K=64", "STAGES = 2"},
    {"plan --target sm_90a", 0, "was tuned for sm_100a, not for sm_90a", "STAGES = 2"},
    {"plan --tuned-for 'Other GPU'", 0, "was tuned on GPU, not on Other GPU", "STAGES = 2"},
    {"sed -i 's/kernel matmul/kernel other/' t.tuned; plan", 0,
     "has nothing for kernel matmul with schedule matmul.f", "STAGES = 2"},
    {": > t.tuned; plan", 0, "not tuned: t.tuned has no entries", NULL},
};

static void a_define_goes_before_what_was_tuned_and_that_before_the_default(void **state) {
    (void)state;
    write_kernel("m.jfa", "STAGES = 4 tune (2)");
    write_tuned("GPU", "  when dtype = bf16\n  use STAGES = 2\n");
    CHECK_CASES(PRECEDENCE);
}

static const Case FIXED[] = {
    {"plan -D K=64", 0, "const STAGES = 2", NULL},
    {"plan -D K=32+32", 0, "const STAGES = 2", NULL},
    {"plan", 0, "was tuned with -D K=64", "STAGES = 2"},
    {"plan -D K=32", 0, "was tuned with -D K=64", "STAGES = 2"},
    {"plan -D K=128", 1, "not tuned: t.tuned was tuned with -D K=64", NULL}, // doesn't fit either

};

static void what_was_fixed_when_it_was_tuned_is_part_of_what_it_is_for(void **state) {
    (void)state;
    write_kernel("m.jfa", "STAGES = 4 tune (2)");
    write_tuned("GPU", "  when dtype = bf16\n  when K = 64\n  use STAGES = 2\n");
    CHECK_CASES(FIXED);
}

static void two_devices_are_told_apart_by_name(void **state) {
    (void)state;
    static const Case CASES[] = {
        {"plan", 1, "t.tuned:8:1: error: this was tuned on B, but another entry that fits on A", NULL},
        {"plan", 1, "help: say which is meant: --tuned-for 'B'", NULL},
        {"plan --tuned-for A", 0, "tuned: STAGES=2 from", NULL},
        {"plan --tuned-for B", 0, "tuned: STAGES=4 from", NULL},
    };
    write_kernel("m.jfa", "STAGES = 4 tune (2)");
    write_file("t.tuned", FILE_HEAD "  device A\n  when dtype = bf16\n  use STAGES = 2\nend\n" FILE_HEAD
                                    "  device B\n  when dtype = bf16\n  use STAGES = 4\nend\n");
    CHECK_CASES(CASES);
}

// What the schedule no longer says. The caret stands in the tuned file.
static const Case OUTDATED[] = {
    {"plan", 1,
     "t.tuned:6:16: error: 3 is not among the values of 'STAGES'\n     6 |   use STAGES = 3\n"
     "       |                ^\nm.jfa:",
     NULL},
    {"plan", 1, "help: it may be 4, 2: has the schedule changed? tune it again", NULL},
    {"plan -D STAGES=4", 0, "STAGES=4 (by -D)", NULL},
    {"sed -i 's/STAGES = 3/STAGES = true/' t.tuned; plan", 1, "true is not among the values of 'STAGES'",
     NULL},
    {"sed -i 's/STAGES = true/STAGE = 2/' t.tuned; plan", 1,
     "t.tuned:6:7: error: schedule 'forward' has no constant 'STAGE'", NULL},
    {"sed -i 's/STAGE = 2/K = 64/' t.tuned; plan", 1, "t.tuned:6:7: error: 'K' is not tuned", NULL},
    {"sed -i 's/K = 64/K 64/' t.tuned; plan", 1, "t.tuned:6:9: error: a '=' is missing", NULL},
    {"head -c 40 t.tuned > u; mv u t.tuned; plan", 1, "t.tuned:1:1: error: this entry has no 'end'", NULL},
    {"printf 'kernel m\\0\\n' > t.tuned; plan", 1, "t.tuned:1:9: error: byte 0x00", NULL},
};

static void what_the_schedule_no_longer_says_is_an_error_in_the_file(void **state) {
    (void)state;
    write_kernel("m.jfa", "STAGES = 4 tune (2)");
    write_tuned("GPU", "  when dtype = bf16\n  use STAGES = 3\n");
    CHECK_CASES(OUTDATED);
}

// A driver without a GPU behind it: its launches compute nothing, which is right where there is nothing to
// compute.
static void on_a_gpu_time_is_measured_and_results_are_checked(void **state) {
    (void)state;
    const char *message;
    if (!emit_find_ptxas(arena, &message))
        skip();
    static const Case CASES[] = {
        {"LD_LIBRARY_PATH=$D jfac tune m.jfa --lens 0 --rounds 2 -o t.tuned", 0,
         "3 tried, 1 left out\nbest: ", NULL},
        {"cat t.tuned", 0, "  device Fake 0\n", NULL},
        {"cat t.tuned", 0, " ms, 1.000 of the default's\n", NULL},
        {"rm t.tuned; LD_LIBRARY_PATH=$D jfac tune m.jfa --lens \"$L\" -o t.tuned; s=$?; [ ! -e t.tuned ] && "
         "exit $s",
         4, "with STAGES=4 the kernel is wrong", "best:"},
        {"JFAC_PTXAS=/absent LD_LIBRARY_PATH=$D jfac tune m.jfa --lens 0 -o t.tuned", 3, "/absent", NULL},
        {"LD_LIBRARY_PATH=$D JFAC_PTXAS=./serial jfac tune m.jfa --lens 0 -o t.tuned", 1,
         "products don't overlap", NULL},
        {"LD_LIBRARY_PATH=$D JFAC_PTXAS=./spills jfac tune m.jfa --strict --lens 0 -o t.tuned", 1,
         "12 bytes of registers are spilled", NULL},
    };
    write_kernel("m.jfa", "STAGES = 4 tune (2, 60)");
    write_file("serial", "#!/bin/sh\n[ \"$1\" = --version ] && exit\n"
                         "while [ \"$1\" != -o ]; do shift; done; echo x > \"$2\"\n"
                         "echo 'ptxas info    : (C7512) Potential Performance Loss: serialized' >&2\n");
    write_file("spills", "#!/bin/sh\n[ \"$1\" = --version ] && exit\n"
                         "while [ \"$1\" != -o ]; do shift; done; echo x > \"$2\"\n"
                         "echo \"ptxas info    : Compiling entry function 'matmul' for 'x'\" >&2\n"
                         "echo '    8 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads' >&2\n");
    assert_int_equal(run("chmod +x serial spills").status, 0);
    CHECK_CASES(CASES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(wrong_usage_says_what_is_right, clean),
        cmocka_unit_test_setup(the_cheapest_wins_and_what_does_not_fit_is_left_out, clean),
        cmocka_unit_test_setup(values_follow_from_others, clean),
        cmocka_unit_test_setup(many_combinations_are_tried_one_constant_after_the_other, clean),
        cmocka_unit_test_setup(a_wrong_kernel_never_wins, clean),
        cmocka_unit_test_setup(entries_for_something_else_are_kept, clean),
        cmocka_unit_test_setup(a_define_goes_before_what_was_tuned_and_that_before_the_default, clean),
        cmocka_unit_test_setup(what_was_fixed_when_it_was_tuned_is_part_of_what_it_is_for, clean),
        cmocka_unit_test_setup(two_devices_are_told_apart_by_name, clean),
        cmocka_unit_test_setup(what_the_schedule_no_longer_says_is_an_error_in_the_file, clean),
        cmocka_unit_test_setup(on_a_gpu_time_is_measured_and_results_are_checked, clean),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
