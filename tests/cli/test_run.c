// jfac run as its user meets it: kernels that are right pass, kernels that are wrong don't.
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

static int tear_down(void **state) {
    (void)state;
    arena_free(arena);
    return rmdir(folder);
}

typedef struct {
    const char *line;
    int status;
    const char *says;
} Case;

// "jfac" is the executable under test, "matmul" the example of that name, "$L" lengths that it takes.
static void check_case(const Case *test) {
    const char *script =
        arena_format(arena,
                     "jfac() { '%s' \"$@\"; }; R='%s'; L='m=0,1,130;n=128,128,128;k=64,0,64'\n"
                     "matmul() { jfac run $R/examples/matmul.jfa \"$@\"; }\n%s",
                     JFAC, REPOSITORY, test->line);
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const char *text = "", *message;
    int status = -1;
    if (!process_run(argv, arena, &text, &status, &message))
        fail_msg("%s", message);
    if (status != test->status || !strstr(text, test->says))
        fail_msg("%s: status %d, says: %s", test->line, status, text);
}

static void check_cases(const Case *cases, size_t count) {
    for (size_t i = 0; i < count; i++)
        check_case(&cases[i]);
}
#define CHECK_CASES(cases) check_cases(cases, sizeof cases / sizeof cases[0])

static const Case RIGHT[] = {
    {"matmul --lens $L --seeds 3", 0, "pass"},
    {"matmul --lens $L --no-poison", 0, "pass"},
    {"matmul --lens $L --against sim:sm_100a | tail -n 1 | sed 's/.* 0 of [1-9][0-9]* el.*/all are equal/'",
     0, "all are equal"},
    {"matmul --lens $L --against sim:sm_90a", 3, "was built for sm_100a"},
    {"matmul --lens $L --against sim:sm_1", 3, "sim:sm_1"},
    {"matmul --lens $L --seed 1 --param alpha=0.5", 0, "pass"},
    {"matmul --lens $L --watchdog 100", 0, "pass"},
    {"matmul --lens $L --watchdog 1 --target sm_90a --device sim:sm_90a", 0, "pass"},
    {"matmul --lens $L -D STAGES=2 -D dtype=f16", 0, "pass"},
    {"matmul --batch 2 --len 64 --broadcast B --lens 'n=128,128;k=64,64'", 0, "pass"},
    {"printf '# lengths\\n128\\n\\n128\\n64\\n' > lens; matmul --lens-file lens --limit 2 && rm lens", 0,
     "pass"},
    {"jfac build $R/examples/matmul.jfa --emit ptx -o k.ptx && matmul --lens $L --image k.ptx && rm k.ptx", 0,
     "pass"},
};

static void a_right_kernel_passes_whatever_the_layout(void **state) {
    (void)state;
    CHECK_CASES(RIGHT);
}

// Without the first bytes that a load announces.
static const Case HANGS[] = {
    {"jfac build $R/examples/matmul.jfa --watchdog 250 --emit ptx -o k.ptx\n"
     "sed '0,/mbarrier.arrive.expect_tx/s//\\/\\/ /' k.ptx > hangs.ptx\n"
     "matmul --lens $L --image hangs.ptx; s=$?; rm k.ptx hangs.ptx; exit $s",
     4, "jfac: the kernel 'matmul' hung: role '"},
};

static void a_kernel_that_hangs_is_told_and_fails(void **state) {
    (void)state;
    CHECK_CASES(HANGS);
}

// The image is of a kernel whose math differs a little from that of the reference it is compared with.
static const Case WRONG[] = {
    {"sed 's/alpha \\* x;/alpha * x * 1.05;/' $R/examples/matmul.jfa > other.jfa\n"
     "jfac build other.jfa --emit ptx -o k.ptx && matmul --lens $L --image k.ptx\n"
     "s=$?; rm other.jfa k.ptx; exit $s",
     4, "the worst element is C["},
};

static void a_kernel_with_other_math_fails(void **state) {
    (void)state;
    CHECK_CASES(WRONG);
}

static const Case WRONG_USAGE[] = {
    {"matmul --lens 1,x", 2, "'1,x'"},
    {"matmul --lens ''", 2, "--lens wants"},
    {"matmul --seed 9223372036854775807", 2, "there are no 1 seeds from there on"},
    {"matmul --lens 'z=1'", 2, "no axis 'z'"},
    {"matmul --lens 'm=1;n=1,2;k=1'", 2, "axis n has 2 lengths"},
    {"matmul --lens 3000000000", 2, "--lens wants"},
    {"matmul --batch 3", 2, "go together"},
    {"matmul --seeds 0", 2, "at least 1"},
    {"matmul --seed -1", 2, "from 0 on"},
    {"matmul --param beta=1", 2, "a param of the kernel"},
    {"jfac run $R/examples/dense.jfa --lens 2 --heads 1 --param scale=-0.5", 2, "the kernel declares it > 0"},
    {"jfac run $R/examples/dense.jfa --lens 2 --heads 1 --param scale=1e-40", 2,
     "the kernel declares it > 0"},
    {"jfac run $R/examples/dense.jfa --lens 2 --heads 1 --param scale=inf", 2, "the kernel declares it > 0"},
    {"matmul --param alpha=one", 2, "not a value of type f32"},
    {"matmul --broadcast C", 2, "no input of that name"},
    {"matmul --without A", 2, "no optional tensor"},
    {"matmul --heads 3", 2, "no dim of that name"},
    {"matmul --devise sim:sm_100a", 2, "did you mean '--device'?"},
    {"matmul --device nowhere", 3, "nowhere"},
    {"matmul --device sim:sm_1", 3, "sm_1"},
    {"matmul --device sim:sm_100a,sms=4x", 3, "sms=4x"},
    {"matmul --lens-file absent", 3, "can't read absent"},
    {"matmul --lens-file /", 3, "can't read /: Is a directory"},
    {"matmul --lens-file /dev/null", 2, "/dev/null holds no length"},
    {"matmul --lens-file /dev/zero", 2, "/dev/zero:1: not a length"},
    {"printf '12\\0junk\n' > lens; matmul --lens-file lens; s=$?; rm lens; exit $s", 2,
     "lens:1: not a length"},
    {"sed 's/A\\[i, p\\]/Z[i, p]/' $R/examples/matmul.jfa > other.jfa; jfac check other.jfa; s=$?; rm "
     "other.jfa; exit $s",
     1, "other.jfa:19:39: error: there is no tensor named 'Z' here"},
    {"sed 's/dtype bf16;/dtype bf16; epilogue (x, row) => x + (row == 0);/' $R/examples/matmul.jfa > "
     "other.jfa\n"
     "jfac check other.jfa; s=$?; rm other.jfa; exit $s",
     1, "other.jfa:137:"},
    {"jfac check $R/examples/matmul.jfa -D dtype=f16", 0, "no errors"},
    {"jfac check $R/examples/matmul.jfa -D STAGES=2 -D STAGES=3", 1, "-D STAGES is given twice"},
    {"matmul --watchdog 0", 2, "--watchdog wants 1 to"},
    {"matmul --watchdog 5 --image k.ptx", 2, "--watchdog is for what the compiler makes"},
    {"matmul --image absent", 3, "can't read absent: No such file"},
    {"matmul --image /dev/null", 3, "can't read /dev/null: it holds nothing"},
    {"matmul --lens 'm=1'", 2, "--lens says no lengths for axis 'n'"},
    {"matmul --lens 'm=1;m=2'", 2, "axis 'm' has lengths already"},
    {"echo 7 > lens; matmul --lens 5 --lens-file lens; s=$?; rm lens; exit $s", 2,
     "--lens 5 and --lens-file both say the lengths of all axes"},
    {"matmul --batch 5 --len 3 --lens-file /dev/null", 2, "--lens-file and --batch both say the lengths"},
    {"matmul --lens 5 --batch 1 --len 3", 2, "--lens 5 and --batch both say the lengths of all axes"},
    {"matmul --limit 3", 2, "--limit is about the lines of --lens-file"},
    {"matmul --heads -1", 2, "--heads wants a whole number from 0 on, not '-1'"},
    {"matmul --stages 3", 2, "'STAGES' is a constant: -D STAGES=VALUE"},
    {"jfac check $R/examples/dense.jfa -D STAGES=0", 1, "note: -D STAGES=0 says so"},
    {"jfac check $R/examples/dense.jfa -D CLUSTER=3", 1, "note: -D CLUSTER=3 says so"},
    {"jfac check $R/examples/dense.jfa -D head_dim=96", 1, "note: -D head_dim=96 says so"},
    {"echo 7x > lens; matmul --lens-file lens; s=$?; rm lens; exit $s", 2, "lens:1: not a length"},
};

static void wrong_usage_is_told_before_anything_runs(void **state) {
    (void)state;
    CHECK_CASES(WRONG_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_kernel_passes_whatever_the_layout),
        cmocka_unit_test(a_kernel_that_hangs_is_told_and_fails),
        cmocka_unit_test(a_kernel_with_other_math_fails),
        cmocka_unit_test(wrong_usage_is_told_before_anything_runs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
