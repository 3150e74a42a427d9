// A kernel built with a watchdog says what it waited for when it hangs, and is right when it doesn't.
#include "tests/kernels/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *what;    // is taken away
    const char *define;  // NULL: none
    const char *find;    // in the PTX
    int which;           // occurrence, from 1; 0: all
    const char *replace; // no longer than what was found
    // What must be among the waits told:
    const char *role, *statement;
    int number; // of the statement among its like in the schedule, from 1
    const char *slot;
} Hang;

static const Hang ON_SM100[] = {
    {"the bytes expected of Q", NULL, "mbarrier.arrive.expect_tx", 1, "// ", "mma", "take a[g] = q_in[g]", 1,
     "'q_in[0]' (full, stage 0, phase 0)"},
    {"a commit of products", NULL, "tcgen05.commit", 1, "// ", "correct", "take x = o[g]", 2,
     "'o[0]' (full, stage 0, phase "},
    {"the copy of K to the other CTA", "CLUSTER=2", "ctas, 3;\n\tcp.async", 1, "ctas, 1;", "mma",
     "take k = kv_in", 1, "'kv_in' (full, stage 0, phase 0)"},
    {"the freeing of the other CTA's slots", "CLUSTER=2", "ctas, 3;\n\ttcgen05.commit", 0, "ctas, 1;", "load",
     "put kv_in = ", 2, "'kv_in' (empty, stage "},
};

// The end of a turn: waits for one have no limit, but those for what the waiting role doesn't do have.
static const Hang ON_SM90[] = {
    {"the bytes expected of K", NULL, "mbarrier.arrive.expect_tx", 1, "// ", "attend", "take k = k_in", 1,
     "'k_in' (full, stage 0, phase 0)"},
    {"the end of a turn", NULL, "bar.arrive", 3, "// ", "store", "take y = result[g]", 1,
     "'result[0]' (full, stage 0, phase "},
    {"the copy of K to the other CTA", "CLUSTER=2", "ctas, 3;\n\tcp.async", 1, "ctas, 1;", "attend",
     "take k = k_in", 1, "'k_in' (full, stage 0, phase 0)"},
    {"the freeing of the other CTA's slots", "CLUSTER=2", ", 2;\n\t@P1 mapa", 0, ", 1;", "load",
     "put k_in = ", 2, "'k_in' (empty, stage "},
};

static char *apply(const char *ptx, void *context) {
    const Hang *hang = context;
    char *text = strdup(ptx), *at = text;
    int edited = 0;
    assert_non_null(text);
    for (int i = 1; (at = strstr(at, hang->find)); i++, at++)
        if (i == hang->which || !hang->which) {
            memcpy(at, hang->replace, strlen(hang->replace));
            edited++;
        }
    assert_true(edited > 0); // it is there to be taken away
    return text;
}

static const int32_t LENS[] = {300, 129, 0, 700};

static Case case_of(const char *define, int seed) {
    return (Case){.file = "examples/dense.jfa",
                  .defines = {define},
                  .layout = LAYOUT_SELF,
                  .lens_q = LENS,
                  .sequences = 4,
                  .heads = 2,
                  .kv_heads = 1,
                  .head_dim = 128,
                  .watchdog_ms = 100,
                  .seed = seed};
}

// "FOLDER/attention_sm100.jfa:46": where the schedule has the statement.
static void find_statement(const Hang *hang, char *place, size_t size) {
    char path[512], line[512];
    snprintf(path, sizeof path, "%s/templates/attention_%s.jfa", REPOSITORY,
             bench_on_sm90() ? "sm90" : "sm100");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    int number = 0;
    for (int seen = 0; seen < hang->number; number++) {
        assert_non_null(fgets(line, sizeof line, file));
        seen += strstr(line, hang->statement) != NULL;
    }
    fclose(file);
    snprintf(place, size, "%s:%d", path, number);
}

// The first wait of a message says how long it was.
static bool names(const char *message, const Hang *hang) {
    char place[600], first[1024], later[1024];
    find_statement(hang, place, sizeof place);
    snprintf(first, sizeof first, "hung: role '%s' waited for 100 ms at %s for pipe %s", hang->role, place,
             hang->slot);
    snprintf(later, sizeof later, " role '%s' at %s for pipe %s", hang->role, place, hang->slot);
    return strstr(message, first) || strstr(message, later);
}

static void a_kernel_that_hangs_names_its_waits(void **state) {
    (void)state;
    enum { SEEDS = 3, COUNT = sizeof ON_SM100 / sizeof *ON_SM100 };
    _Static_assert(COUNT == sizeof ON_SM90 / sizeof *ON_SM90, "one loop for both");
    for (int i = 0; i < COUNT * SEEDS; i++) {
        const Hang *hang = &(bench_on_sm90() ? ON_SM90 : ON_SM100)[i / SEEDS];
        Case test = case_of(hang->define, i % SEEDS);
        Outcome outcome;
        test.edit = apply;
        test.context = (void *)(uintptr_t)hang;
        bench_run_case(&test, &outcome);
        if (outcome.fault.kind != SIM_FAULT_TRAP || !names(outcome.message, hang) ||
            strncmp(outcome.message, "the kernel 'dense' hung: role '", 31) != 0)
            fail_msg("without %s, seed %d: %s", hang->what, i % SEEDS, outcome.message);
    }
}

static void a_kernel_that_does_not_hang_is_right(void **state) {
    (void)state;
    static const char *const DEFINES[] = {NULL, "CLUSTER=2", "N=64"};
    for (int i = 0; i < 3; i++) {
        Case test = case_of(DEFINES[i], i);
        Outcome outcome;
        bench_run_case(&test, &outcome);
        bench_expect_right(&test, &outcome);
    }
}

// A deadlock of a kernel without a watchdog is found by the simulator itself.
static void without_a_watchdog_the_simulator_reports_the_deadlock(void **state) {
    (void)state;
    const Hang *hang = bench_on_sm90() ? ON_SM90 : ON_SM100;
    Case test = case_of(hang->define, 0);
    Outcome outcome;
    test.watchdog_ms = 0;
    test.edit = apply;
    test.context = (void *)(uintptr_t)hang;
    bench_run_case(&test, &outcome);
    assert_int_equal(outcome.fault.kind, SIM_FAULT_DEADLOCK);
    assert_null(strstr(outcome.message, "hung"));
}

// Of what a watchdog adds to the text.
static char *look(const char *ptx, void *context) {
    static const char *const MARKS[] = {"globaltimer", "trap", "atom."};
    int *count = context;
    for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++)
        *count += strstr(ptx, MARKS[i]) != NULL;
    return strdup(ptx);
}

static void a_kernel_built_without_has_nothing_of_it(void **state) {
    (void)state;
    for (int watched = 0; watched < 2; watched++) {
        int count = 0;
        Case test = case_of(NULL, 0);
        Outcome outcome;
        test.watchdog_ms = watched;
        test.edit = look;
        test.context = &count;
        bench_run_case(&test, &outcome);
        assert_int_equal(count, watched ? 3 : 0);
    }
}

int main(int argc, char **argv) {
    bench_set_target(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_that_hangs_names_its_waits),
        cmocka_unit_test(a_kernel_that_does_not_hang_is_right),
        cmocka_unit_test(without_a_watchdog_the_simulator_reports_the_deadlock),
        cmocka_unit_test(a_kernel_built_without_has_nothing_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
