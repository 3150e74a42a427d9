// The checks bite: each change below breaks the protocol of the emitted PTX in one place, and the simulator
// must report it.
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
    const char *what;        // the mechanism that is taken away
    const char *within;      // only in lines that hold this; NULL: any
    const char *find;        // text within a line of PTX
    const char *replacement; // of the found text; NULL: the line is dropped
    int which;               // which occurrence, from 1; 0: all
    SimFaultKind kinds[3];   // what the report may be
    int edited;              // lines changed
} Mutation;

static char *apply(const char *ptx, void *context) {
    Mutation *mutation = context;
    mutation->edited = 0;
    size_t capacity = strlen(ptx) * 2 + 1, used = 0;
    char *out = malloc(capacity);
    int seen = 0;
    for (const char *line = ptx; *line;) {
        const char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) + 1 : strlen(line);
        char text[4096];
        snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : sizeof text - 1), line);
        bool fits = length < sizeof text && (!mutation->within || strstr(text, mutation->within));
        char *found = fits ? strstr(text, mutation->find) : NULL;
        bool change = found && (++seen == mutation->which || mutation->which == 0);
        if (change)
            mutation->edited++;
        if (change && mutation->replacement)
            used += (size_t)snprintf(out + used, capacity - used, "%.*s%s%s", (int)(found - text), text,
                                     mutation->replacement, found + strlen(mutation->find));
        else if (!change) {
            memcpy(out + used, line, length);
            used += length;
        }
        line += length;
    }
    out[used] = '\0';
    return out;
}

static Mutation ON_SM100[] = {
    {"tcgen05.wait::st", NULL, "tcgen05.wait::st", NULL, 0, {SIM_FAULT_RACE}, 0},
    {"tcgen05.wait::ld", NULL, "tcgen05.wait::ld", NULL, 0, {SIM_FAULT_REGISTERS}, 0},
    {"fence::before_thread_sync", NULL, "tcgen05.fence::before_thread_sync;", NULL, 0, {SIM_FAULT_RACE}, 0},
    {"fence::after_thread_sync", NULL, "tcgen05.fence::after_thread_sync;", NULL, 0, {SIM_FAULT_RACE}, 0},
    {"fence.proxy.async", NULL, "fence.proxy.async", NULL, 0, {SIM_FAULT_PROXY}, 0},
    {"the wait for a store's reads", NULL, "cp.async.bulk.wait_group.read", NULL, 0, {SIM_FAULT_RACE}, 0},
    {"an expectation of bytes", NULL, "mbarrier.arrive.expect_tx", NULL, 1, {SIM_FAULT_DEADLOCK}, 0},
    {"a commit", NULL, "tcgen05.commit", NULL, 1, {SIM_FAULT_DEADLOCK}, 0},
    {"another commit", NULL, "tcgen05.commit", NULL, 4, {SIM_FAULT_DEADLOCK, SIM_FAULT_RACE}, 0},
    {"the freeing of tensor memory", NULL, "tcgen05.dealloc", NULL, 0, {SIM_FAULT_TENSOR_MEMORY}, 0},
    {"a barrier's initialisation", NULL, "mbarrier.init", NULL, 2, {SIM_FAULT_BARRIER}, 0},
    {"an arrival", NULL, "@P1 mbarrier.arrive", NULL, 1, {SIM_FAULT_DEADLOCK}, 0},
    {"the swizzle of a descriptor",
     NULL,
     "1073758272}",
     "-2147467264}",
     0,
     {SIM_FAULT_DESCRIPTOR, SIM_FAULT_RACE, SIM_FAULT_PROXY},
     0},
    {"the version bit of a descriptor", NULL, "1073758272}", "1073741888}", 0, {SIM_FAULT_DESCRIPTOR}, 0},
    {"a barrier's wait",
     NULL,
     "mbarrier.try_wait.parity",
     "setp.eq.u32 P1, 0, 0; //",
     3,
     {SIM_FAULT_RACE, SIM_FAULT_UNWRITTEN, SIM_FAULT_DEADLOCK},
     0},
    {"the flip of a phase",
     ", 1;\n",
     "xor.b32",
     "or.b32",
     0,
     {SIM_FAULT_DEADLOCK, SIM_FAULT_RACE, SIM_FAULT_BARRIER},
     0},
    {"a stage of the ring on one side",
     "setp.eq.b32",
     ", 3;",
     ", 2;",
     1,
     {SIM_FAULT_DEADLOCK, SIM_FAULT_RACE, SIM_FAULT_BARRIER},
     0},
};

static Mutation ON_SM90[] = {
    {"the waits for products", NULL, "wgmma.wait_group", NULL, 0, {SIM_FAULT_REGISTERS, SIM_FAULT_RACE}, 0},
    {"half of a wait for products",
     NULL,
     "wgmma.wait_group.sync.aligned 0",
     "wgmma.wait_group.sync.aligned 1",
     0,
     {SIM_FAULT_REGISTERS, SIM_FAULT_RACE},
     0},
    {"the fences of products", NULL, "wgmma.fence", NULL, 0, {SIM_FAULT_REGISTERS}, 0},
    {"the commits of products",
     NULL,
     "wgmma.commit_group",
     NULL,
     0,
     {SIM_FAULT_REGISTERS, SIM_FAULT_RACE},
     0},
    {"fence.proxy.async", NULL, "fence.proxy.async", NULL, 0, {SIM_FAULT_PROXY}, 0},
    {"the wait for a store's reads", NULL, "cp.async.bulk.wait_group.read", NULL, 0, {SIM_FAULT_RACE}, 0},
    {"an expectation of bytes", NULL, "mbarrier.arrive.expect_tx", NULL, 1, {SIM_FAULT_DEADLOCK}, 0},
    {"a barrier's initialisation", NULL, "mbarrier.init", NULL, 2, {SIM_FAULT_BARRIER}, 0},
    {"an arrival", NULL, "@P1 mbarrier.arrive", NULL, 5, {SIM_FAULT_DEADLOCK}, 0},
    {"the end of a turn", NULL, "bar.arrive", NULL, 3, {SIM_FAULT_DEADLOCK}, 0},
    {"the reconvergence after a store",
     NULL,
     "bar.warp.sync",
     NULL,
     0,
     {SIM_FAULT_CONVERGENCE, SIM_FAULT_RACE},
     0},
    {"a barrier's wait",
     NULL,
     "mbarrier.try_wait.parity",
     "setp.eq.u32 P1, 0, 0; //",
     3,
     {SIM_FAULT_RACE, SIM_FAULT_UNWRITTEN, SIM_FAULT_DEADLOCK},
     0},
    {"the flip of a phase",
     ", 1;\n",
     "xor.b32",
     "or.b32",
     0,
     {SIM_FAULT_DEADLOCK, SIM_FAULT_RACE, SIM_FAULT_BARRIER},
     0},
};

// Of clusters of two CTAs, on either chip.
static Mutation IN_CLUSTERS[] = {
    {"a copy to the other CTA", NULL, "mov.b16 ctas, 3", "mov.b16 ctas, 1", 1, {SIM_FAULT_DEADLOCK}, 0},
    {"an expectation of bytes", NULL, "mbarrier.arrive.expect_tx", NULL, 1, {SIM_FAULT_DEADLOCK}, 0},
    {"the arrival that the other CTA waits for",
     NULL,
     "barrier.cluster.arrive",
     "// ",
     2,
     {SIM_FAULT_BARRIER, SIM_FAULT_DEADLOCK},
     0},
};
static Mutation IN_CLUSTERS_ON_SM90[] = {
    {"the freeing of the other CTA's slots", "setp.lt.u32 P1", ", 2;", ", 1;", 0, {SIM_FAULT_DEADLOCK}, 0},
};
static Mutation IN_CLUSTERS_ON_SM100[] = {
    {"the freeing of the other CTA's slots", "mov.b16 ctas", ", 3;", ", 1;", 3, {SIM_FAULT_DEADLOCK}, 0},
};

static const int32_t LENS[] = {300, 129, 0, 400};

static Case case_of(const char *define, int seed) {
    return (Case){.file = "examples/dense.jfa",
                  .defines = {define},
                  .layout = LAYOUT_SELF,
                  .lens_q = LENS,
                  .sequences = 4,
                  .heads = 2,
                  .kv_heads = 1,
                  .head_dim = 128,
                  .seed = seed};
}

// How many of the mutations nobody reports.
static int missed(Mutation *mutations, size_t count, const char *define) {
    int missed = 0;
    for (size_t i = 0; i < count; i++) {
        Mutation *mutation = &mutations[i];
        bool caught = false;
        Outcome outcome;
        for (int seed = 0; seed < 3 && !caught; seed++) {
            Case test = case_of(define, seed);
            test.edit = apply;
            test.context = mutation;
            bench_run_case(&test, &outcome);
            assert_true(mutation->edited > 0); // the text is there to be taken away
            for (int k = 0; k < 3; k++)
                caught |= outcome.fault.kind != SIM_FAULT_NONE && outcome.fault.kind == mutation->kinds[k];
        }
        if (!caught) {
            print_message("without %s: %s\n", mutation->what,
                          outcome.message[0] ? outcome.message : "nothing was reported");
            missed++;
        }
    }
    return missed;
}
#define MISSED(mutations, define) missed(mutations, sizeof(mutations) / sizeof *(mutations), define)

static void every_mechanism_taken_away_is_reported(void **state) {
    (void)state;
    assert_int_equal(bench_on_sm90() ? MISSED(ON_SM90, NULL) : MISSED(ON_SM100, NULL), 0);
}

static void so_is_what_ties_a_cluster_together(void **state) {
    (void)state;
    const char *pairs = "CLUSTER=2";
    assert_int_equal(MISSED(IN_CLUSTERS, pairs), 0);
    assert_int_equal(
        bench_on_sm90() ? MISSED(IN_CLUSTERS_ON_SM90, pairs) : MISSED(IN_CLUSTERS_ON_SM100, pairs), 0);
}

static void the_same_kernel_unchanged_is_right(void **state) {
    (void)state;
    Case test = case_of(NULL, 0);
    Outcome outcome;
    bench_run_case(&test, &outcome);
    bench_expect_right(&test, &outcome);
}

int main(int argc, char **argv) {
    bench_set_target(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_kernel_unchanged_is_right),
        cmocka_unit_test(every_mechanism_taken_away_is_reported),
        cmocka_unit_test(so_is_what_ties_a_cluster_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
