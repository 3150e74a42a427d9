// test_misuse.c: wrong uses of the library on a simulated device, from the outside: each is an error with a
// sentence that names what was wrong, outputs are NULL or 0 afterwards, and nothing crashes or is lost. What
// a problem may not say of itself is in test_problem.c; here are its relations to memory that exists, to
// other objects and to threads.
#include "simulator/sim.h"
#include "tests/runtime/fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DO(call)                                                                                             \
    do {                                                                                                     \
        jfa_error failure = {0};                                                                             \
        jfa_error *err = &failure;                                                                           \
        if (call)                                                                                            \
            fail_msg("%s: %s", #call, failure.message);                                                      \
    } while (0)

// The call must give the status, and a message with the words; it may then be made without a place for the
// message.
#define REFUSED(expected, words, call)                                                                       \
    do {                                                                                                     \
        jfa_error refusal = {0};                                                                             \
        jfa_error *err = &refusal;                                                                           \
        jfa_status status = call;                                                                            \
        if (status != (expected) || refusal.status != (expected) || !strstr(refusal.message, words))         \
            fail_msg("%s: '%s' (%s), not '%s'", #call, refusal.message, jfa_status_string(status), words);   \
        err = NULL;                                                                                          \
        assert_int_equal(call, expected);                                                                    \
    } while (0)

enum { SEQUENCES = 3, ROWS = 300, HEADS = 8, KV_HEADS = 2 };

// The sample kernel on a simulated device, with tensors that exist.
typedef struct {
    jfa_device *device;
    jfa_module *module;
    jfa_kernel *kernel;
    Sample sample;
} Bench;

static jfa_status load(jfa_device *device, const char *manifest, jfa_module **module, jfa_error *err) {
    char *ptx = fixture_ptx(manifest, strlen(manifest));
    jfa_status status = jfa_module_load(device, ptx, strlen(ptx), module, err);
    free(ptx);
    return status;
}

// Nothing here asserts: it runs on other threads too.
static jfa_status set_up(Bench *b, const char *name, jfa_error *err) {
    *b = (Bench){0};
    fixture_sample(&b->sample, SEQUENCES, ROWS, ROWS, HEADS, KV_HEADS);
    b->sample.axes[0].length = b->sample.axes[1].length = ROWS / SEQUENCES;
    jfa_status status = jfa_device_open(name, &b->device, err);
    status = status ? status : load(b->device, SAMPLE_MANIFEST, &b->module, err);
    status = status ? status : jfa_kernel_get(b->module, NULL, &b->kernel, err);
    for (int i = 0; i < 4 && !status; i++) {
        jfa_tensor *t = &b->sample.tensors[i];
        size_t bytes = (size_t)(t->extents[0] * t->strides[0]) * (size_t)jfa_dtype_bytes(t->dtype);
        status = jfa_malloc(b->device, bytes, &t->address, err);
    }
    return status;
}

static jfa_status tear_down(Bench *b, jfa_error *err) {
    jfa_status status = jfa_module_unload(b->module, err);
    for (int i = 0; i < 4 && !status; i++)
        status = jfa_free(b->device, b->sample.tensors[i].address, err);
    return status ? status : jfa_device_close(b->device, err);
}

static void make(Bench *b) {
    DO(set_up(b, "sim:sm_100a", err));
}
static void end(Bench *b) {
    DO(tear_down(b, err));
}

static int register_simulator(void **state) {
    (void)state;
    DO(jfa_sim_register(err));
    fixture_register();
    return 0;
}

// ---------------------------------------------------------------- NULL

static void null_is_refused_and_outputs_are_cleared(void **state) {
    (void)state;
    Bench b;
    make(&b);
    jfa_device *device = (jfa_device *)&b;
    REFUSED(JFA_ERROR_ARGUMENT, "name", jfa_device_open(NULL, &device, err));
    assert_null(device);
    jfa_module *module = (jfa_module *)&b;
    REFUSED(JFA_ERROR_ARGUMENT, "the device", jfa_module_load(NULL, "x", 1, &module, err));
    assert_null(module);
    module = (jfa_module *)&b;
    REFUSED(JFA_ERROR_ARGUMENT, "the device", jfa_module_load_file(NULL, "x", &module, err));
    assert_null(module);
    jfa_kernel *kernel = b.kernel;
    REFUSED(JFA_ERROR_ARGUMENT, "the module", jfa_kernel_get(NULL, NULL, &kernel, err));
    assert_null(kernel);
    jfa_plan *plan = (jfa_plan *)&b;
    REFUSED(JFA_ERROR_ARGUMENT, "the kernel", jfa_plan_create(NULL, &b.sample.problem, &plan, err));
    assert_null(plan);
    uint64_t address = 1;
    REFUSED(JFA_ERROR_ARGUMENT, "the device", jfa_malloc(NULL, 1, &address, err));
    assert_int_equal(address, 0);
    float milliseconds = 1;
    REFUSED(JFA_ERROR_ARGUMENT, "event", jfa_event_elapsed(NULL, NULL, &milliseconds, err));
    assert_true(milliseconds == 0);
    REFUSED(JFA_ERROR_ARGUMENT, "the plan", jfa_plan_update(NULL, NULL, err));
    REFUSED(JFA_ERROR_ARGUMENT, "the plan", jfa_plan_check(NULL, NULL, err));
    REFUSED(JFA_ERROR_ARGUMENT, "the plan", jfa_launch(NULL, NULL, err));
    assert_false(jfa_tensor_set_dense(NULL));
    assert_null(jfa_kernel_get_info(NULL));
    assert_null(jfa_module_kernel_name(NULL, 0));

    // A problem without anything, and one with counts but no arrays.
    jfa_problem nothing = {0};
    REFUSED(JFA_ERROR_NOT_FOUND, "axis 'q' has no lengths", jfa_plan_create(b.kernel, &nothing, &plan, err));
    nothing.param_count = 1;
    REFUSED(JFA_ERROR_ARGUMENT, "1 params, but their array is NULL",
            jfa_plan_create(b.kernel, &nothing, &plan, err));
    end(&b);
}

// ---------------------------------------------------------------- chips

static void a_kernel_for_another_chip_is_refused_with_both_names(void **state) {
    (void)state;
    static const struct {
        const char *target, *device, *words;
    } CASES[] = {
        {"target sm_90a", "sim:sm_100a", "built for sm_90a, but the device 'simulated sm_100a' is sm_100a"},
        {"target sm_100a", "sim:sm_90a", "built for sm_100a, but the device 'simulated sm_90a' is sm_90a"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        jfa_device *device;
        jfa_module *module;
        char *manifest = fixture_edit(SAMPLE_MANIFEST, "target sm_100a", CASES[i].target);
        DO(jfa_device_open(CASES[i].device, &device, err));
        REFUSED(JFA_ERROR_TARGET, CASES[i].words, load(device, manifest, &module, err));
        assert_null(module);
        DO(jfa_device_close(device, err));
        free(manifest);
    }
    jfa_device *device;
    REFUSED(JFA_ERROR_NOT_FOUND, "no simulated device 'sim:sm_80'",
            jfa_device_open("sim:sm_80", &device, err));
    assert_null(device);
}

// ---------------------------------------------------------------- problems that memory and numbers don't fit

static void small_memory(Sample *s) {
    s->tensors[SAMPLE_K].address += 256; // still aligned, but the last bytes are outside
}
static void no_memory(Sample *s) {
    s->tensors[SAMPLE_O].address = 0x1000000;
}
static void misaligned(Sample *s) {
    s->tensors[SAMPLE_Q].address += 8;
    s->tensors[SAMPLE_Q].extents[0]--;
    s->axes[0].length--;
}
static void odd_stride(Sample *s) {
    s->tensors[SAMPLE_K].strides[0] = 257;
}
static void wide_stride(Sample *s) {
    s->tensors[SAMPLE_K].strides[2] = 2;
}
static void itself(Sample *s) {
    s->tensors[SAMPLE_O].address = s->tensors[SAMPLE_Q].address;
}
static void decreasing(Sample *s) {
    static const int32_t OFFSETS[] = {0, 200, 100, 300};
    s->axes[0].offsets = OFFSETS;
    s->axes[0].length = 0;
}
static void too_many_tokens(Sample *s) {
    static const int32_t OFFSETS[] = {0, 100, 200, 301};
    s->axes[0].offsets = OFFSETS;
    s->axes[0].length = 0;
}
static void uneven_heads(Sample *s) {
    s->tensors[SAMPLE_K].extents[1] = 3;
}
// Sums and products that would be small numbers again in 32 or 64 bits.
static void sum_of_two_to_the_32(Sample *s) {
    static const int32_t LENGTHS[] = {1 << 30, 1 << 30, 1 << 30, 1 << 30, 300};
    s->problem.sequences = 5;
    s->axes[0].lengths = LENGTHS;
    s->axes[0].length = 0;
}
static void product_of_two_to_the_32(Sample *s) {
    s->problem.sequences = 1 << 16;
    s->axes[0].length = 1 << 16;
}
static void most_sequences(Sample *s) {
    s->problem.sequences = INT32_MAX;
}
static void too_many_sequences(Sample *s) {
    s->problem.sequences = INT64_MAX;
}
static void least_sequences(Sample *s) {
    s->problem.sequences = INT64_MIN;
}
static void long_sequence(Sample *s) {
    s->axes[1].length = INT64_MAX;
}
static void long_tensor(Sample *s) {
    s->tensors[SAMPLE_K].extents[0] = INT64_MAX;
}
static void far_rows(Sample *s) {
    s->tensors[SAMPLE_K].strides[0] = INT64_MAX;
}
static void bytes_beyond_63_bits(Sample *s) {
    s->tensors[SAMPLE_K].strides[0] = INT64_MAX / ROWS;
}
static void many_heads(Sample *s) {
    s->tensors[SAMPLE_Q].extents[1] = INT64_MAX;
}
static void far_pitch(Sample *s) {
    s->tensors[SAMPLE_K].rows[0] = (jfa_rows){JFA_ROWS_PADDED, INT32_MAX, NULL};
}
static void odd_offsets(Sample *s) {
    s->axes[0] = (jfa_axis){.name = "q", .device_offsets = 0x7000000002};
    s->axes[1] = s->axes[0];
    s->axes[1].name = "k";
}
static void offsets_nowhere(Sample *s) {
    odd_offsets(s);
    s->axes[0].device_offsets = s->axes[1].device_offsets = 0x100;
}
static void two_sides(Sample *s) {
    static const int32_t OFFSETS[] = {0, 100, 200, 300};
    s->axes[0] = (jfa_axis){.name = "q", .offsets = OFFSETS};
    s->axes[1] = (jfa_axis){.name = "k", .device_offsets = s->tensors[SAMPLE_K].address};
}

static void a_problem_that_does_not_fit_makes_no_plan(void **state) {
    (void)state;
    static const struct {
        void (*change)(Sample *);
        jfa_status status;
        const char *words;
    } CASES[] = {
        {small_memory, JFA_ERROR_PROBLEM, "tensor 'K' of 153600 bytes: the allocation of its address"},
        {no_memory, JFA_ERROR_PROBLEM,
         "tensor 'O' of 614400 bytes: its address, 0x1000000, is in no allocation"},
        {misaligned, JFA_ERROR_PROBLEM, "08 is no multiple of 16 bytes; tensor maps need that"},
        {odd_stride, JFA_ERROR_PROBLEM,
         "the stride of dim 0 is 257 elements = 514 bytes; tensor maps need multiples"},
        {wide_stride, JFA_ERROR_PROBLEM, "the stride of the innermost dim is 2; tensor maps need 1"},
        {itself, JFA_ERROR_PROBLEM, "tensor 'O' is written, and overlaps tensor 'Q'"},
        {decreasing, JFA_ERROR_PROBLEM, "axis 'q': offset 2 is 100, less than the 200 before it"},
        {too_many_tokens, JFA_ERROR_PROBLEM, "sequence 2 has 101 positions on axis 'q', from row 200 on"},
        {uneven_heads, JFA_ERROR_PROBLEM, "'heads' (8) must be a multiple of 'kv_heads' (3)"},
        {sum_of_two_to_the_32, JFA_ERROR_PROBLEM,
         "has 1073741824 positions on axis 'q', from row 0 on, but dim 0 has 300"},
        {product_of_two_to_the_32, JFA_ERROR_PROBLEM, "has 65536 positions on axis 'q'"},
        {most_sequences, JFA_ERROR_PROBLEM, "sequence 3 has 100 positions on axis 'q', from row 300 on"},
        {too_many_sequences, JFA_ERROR_LIMIT, "the number of sequences is 9223372036854775807"},
        {least_sequences, JFA_ERROR_ARGUMENT, "the number of sequences is -9223372036854775808"},
        {long_sequence, JFA_ERROR_LIMIT, "the length of sequence 0 is 9223372036854775807"},
        {long_tensor, JFA_ERROR_LIMIT, "tensor 'K': dim 0 has 9223372036854775807 rows"},
        {far_rows, JFA_ERROR_LIMIT, "tensor 'K': extents and strides pass the address space"},
        {bytes_beyond_63_bits, JFA_ERROR_LIMIT, "tensor 'K': extents and strides pass the address space"},
        {many_heads, JFA_ERROR_PROBLEM, "dim 'heads' is 9223372036854775807 in Q"},
        {far_pitch, JFA_ERROR_PROBLEM, "sequence 1 has 100 positions on axis 'k', from row 2147483647 on"},
        {odd_offsets, JFA_ERROR_PROBLEM, "the address 0x7000000002 of its offsets is no multiple of 4"},
        {offsets_nowhere, JFA_ERROR_PROBLEM,
         "the offsets of axis 'q': its address, 0x100, is in no allocation"},
        {two_sides, JFA_ERROR_UNSUPPORTED, "the lengths of axis 'q' are listed on the host"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Bench b;
        make(&b);
        jfa_plan *plan = (jfa_plan *)&b;
        CASES[i].change(&b.sample);
        REFUSED(CASES[i].status, CASES[i].words, jfa_plan_create(b.kernel, &b.sample.problem, &plan, err));
        assert_null(plan);
        DO(jfa_module_unload(b.module, err)); // the plan that wasn't made isn't counted
        DO(jfa_device_close(b.device, err));  // with memory that nobody freed: it ends with the device
    }
}

// On a device that knows nothing of memory, so that numbers alone decide.
static void more_work_than_32_bits_count_is_refused(void **state) {
    (void)state;
    jfa_device *device;
    jfa_module *module;
    jfa_kernel *kernel;
    jfa_plan *plan;
    Sample sample;
    DO(jfa_device_open("fake:sm_100a", &device, err));
    DO(load(device, SAMPLE_MANIFEST, &module, err));
    DO(jfa_kernel_get(module, NULL, &kernel, err));
    fixture_sample(&sample, SEQUENCES, ROWS, ROWS, 1 << 30, KV_HEADS);
    sample.axes[0].length = sample.axes[1].length = ROWS / SEQUENCES;
    for (int i = 0; i < 4; i++)
        sample.tensors[i].address = (uint64_t)(i + 1) << 56;
    REFUSED(JFA_ERROR_LIMIT,
            "more than 2147483647 work items: sequences 0 to 1 alone have 2 blocks, with 1073741824",
            jfa_plan_create(kernel, &sample.problem, &plan, err));
    assert_null(plan);
    DO(jfa_module_unload(module, err));
    DO(jfa_device_close(device, err));
}

static void no_sequences_are_a_plan_that_does_nothing(void **state) {
    (void)state;
    Bench b;
    make(&b);
    jfa_plan *plan;
    b.sample.problem.sequences = 0;
    DO(jfa_plan_create(b.kernel, &b.sample.problem, &plan, err));
    assert_int_equal(jfa_plan_get_info(plan)->grid, 0);
    DO(jfa_launch(plan, NULL, err));
    REFUSED(JFA_ERROR_ARGUMENT, "there is nothing to update", jfa_plan_update(plan, NULL, err));
    REFUSED(JFA_ERROR_ARGUMENT, "there is nothing to update", jfa_plan_check(plan, NULL, err));
    DO(jfa_plan_destroy(plan, err));
    end(&b);
}

// ---------------------------------------------------------------- memory

static void memory_that_is_not_there_is_not_touched(void **state) {
    (void)state;
    Bench b;
    make(&b);
    uint64_t address, large = 1;
    char bytes[16] = "";
    DO(jfa_malloc(b.device, sizeof bytes, &address, err));
    REFUSED(JFA_ERROR_OUT_OF_MEMORY, "18446744073709551615 bytes",
            jfa_malloc(b.device, SIZE_MAX, &large, err));
    assert_int_equal(large, 0);
    REFUSED(JFA_ERROR_ARGUMENT, "outside every allocation",
            jfa_copy_to_device(b.device, address + 1, bytes, 16, err));
    REFUSED(JFA_ERROR_ARGUMENT, "outside every allocation",
            jfa_copy_from_device(b.device, bytes, address - 1, 16, err));
    REFUSED(JFA_ERROR_ARGUMENT, "outside every allocation",
            jfa_copy_from_device(b.device, bytes, address, SIZE_MAX, err));
    REFUSED(JFA_ERROR_ARGUMENT, "is NULL", jfa_copy_to_device(b.device, address, NULL, 16, err));
    REFUSED(JFA_ERROR_ARGUMENT, "not the start of an allocation", jfa_free(b.device, address + 1, err));
    DO(jfa_free(b.device, address, err));
    REFUSED(JFA_ERROR_ARGUMENT, "not the start of an allocation", jfa_free(b.device, address, err));
    REFUSED(JFA_ERROR_ARGUMENT, "outside every allocation",
            jfa_copy_to_device(b.device, address, bytes, 1, err));
    end(&b);
}

// ---------------------------------------------------------------- order

static void nothing_ends_before_what_uses_it(void **state) {
    (void)state;
    Bench b;
    make(&b);
    jfa_plan *plan;
    jfa_event *start, *stop;
    float milliseconds;
    DO(jfa_plan_create(b.kernel, &b.sample.problem, &plan, err));
    DO(jfa_event_create(b.device, &start, err));
    DO(jfa_event_create(b.device, &stop, err));
    REFUSED(JFA_ERROR_BUSY, "its kernels have 1 plan", jfa_module_unload(b.module, err));
    REFUSED(JFA_ERROR_BUSY, "1 module is loaded", jfa_device_close(b.device, err));
    REFUSED(JFA_ERROR_ARGUMENT, "the start event has not been recorded",
            jfa_event_elapsed(start, stop, &milliseconds, err));
    DO(jfa_event_record(start, NULL, err));
    REFUSED(JFA_ERROR_ARGUMENT, "the end event has not been recorded",
            jfa_event_elapsed(start, stop, &milliseconds, err));
    DO(jfa_launch(plan, NULL, err)); // all of it works as before
    DO(jfa_plan_destroy(plan, err));
    DO(jfa_module_unload(b.module, err));
    b.module = NULL;
    REFUSED(JFA_ERROR_BUSY, "it has 2 events", jfa_device_close(b.device, err));
    jfa_event_destroy(start);
    REFUSED(JFA_ERROR_BUSY, "it has 1 event", jfa_device_close(b.device, err));
    jfa_event_destroy(stop);
    end(&b);
    DO(jfa_plan_destroy(NULL, err));
    DO(jfa_module_unload(NULL, err));
    DO(jfa_device_close(NULL, err));
    jfa_event_destroy(NULL);
}

static void a_plan_from_the_device_is_updated_before_it_is_launched(void **state) {
    (void)state;
    static const int32_t GOOD[] = {0, 10, 10, 300}, BAD[] = {0, 10, 301, 300};
    Bench b;
    make(&b);
    jfa_plan *plan;
    uint64_t offsets;
    DO(jfa_malloc(b.device, sizeof GOOD, &offsets, err));
    b.sample.axes[0] = (jfa_axis){.name = "q", .device_offsets = offsets};
    b.sample.axes[1] = (jfa_axis){.name = "k", .device_offsets = offsets};
    DO(jfa_plan_create(b.kernel, &b.sample.problem, &plan, err));
    REFUSED(JFA_ERROR_ARGUMENT, "call jfa_plan_update before the first launch", jfa_launch(plan, NULL, err));
    DO(jfa_copy_to_device(b.device, offsets, BAD, sizeof BAD, err));
    DO(jfa_plan_update(plan, NULL, err));
    DO(jfa_launch(plan, NULL, err));
    jfa_error told = {0};
    assert_int_equal(jfa_plan_check(plan, NULL, &told), JFA_ERROR_PROBLEM);
    assert_non_null(strstr(told.message, "axis 'q': the offsets on the device of sequence 1 pass the rows"));
    DO(jfa_plan_check(plan, NULL, err)); // it was told
    DO(jfa_copy_to_device(b.device, offsets, GOOD, sizeof GOOD, err));
    DO(jfa_plan_update(plan, NULL, err));
    DO(jfa_plan_check(plan, NULL, err));
    DO(jfa_plan_destroy(plan, err));
    DO(jfa_free(b.device, offsets, err));
    end(&b);
}

// ---------------------------------------------------------------- threads

enum { ROUNDS = 12 };

typedef struct {
    const char *name; // of the device that the thread opens, or NULL: it uses that of `shared`
    const Bench *shared;
    jfa_error err;
} Worker;

// Memory, a plan of its own from offsets on the device, updates, launches and copies, again and again.
static jfa_status work(Bench *b, jfa_error *err) {
    static const int32_t OFFSETS[] = {0, 10, 10, 300};
    jfa_status status = JFA_OK;
    for (int i = 0; i < ROUNDS && !status; i++) {
        int32_t back[4] = {0};
        uint64_t offsets = 0;
        jfa_plan *plan = NULL;
        status = jfa_malloc(b->device, sizeof OFFSETS, &offsets, err);
        status = status ? status : jfa_copy_to_device(b->device, offsets, OFFSETS, sizeof OFFSETS, err);
        b->sample.axes[0] = (jfa_axis){.name = "q", .device_offsets = offsets};
        b->sample.axes[1] = (jfa_axis){.name = "k", .device_offsets = offsets};
        status = status ? status : jfa_plan_create(b->kernel, &b->sample.problem, &plan, err);
        status = status ? status : jfa_plan_update(plan, NULL, err);
        status = status ? status : jfa_launch(plan, NULL, err);
        status = status ? status : jfa_plan_check(plan, NULL, err);
        status = status ? status : jfa_copy_from_device(b->device, back, offsets, sizeof back, err);
        if (!status && memcmp(back, OFFSETS, sizeof back) != 0)
            status = jfa_error_set(err, JFA_ERROR_DEVICE, "the offsets came back as others");
        jfa_plan_destroy(plan, NULL);
        jfa_free(b->device, offsets, NULL);
    }
    return status;
}

static void *run(void *argument) {
    Worker *w = argument;
    Bench b;
    if (w->shared) {
        b = *w->shared;
        b.sample.problem.axes = b.sample.axes;
        b.sample.problem.tensors = b.sample.tensors;
        b.sample.problem.params = b.sample.params;
        work(&b, &w->err);
    } else if (!set_up(&b, w->name, &w->err) && !work(&b, &w->err)) {
        tear_down(&b, &w->err);
    }
    return NULL;
}

static void run_together(Worker *workers, int count) {
    pthread_t threads[4];
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, &workers[i]), 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++)
        if (workers[i].err.status)
            fail_msg("thread %d: %s", i, workers[i].err.message);
}

static void two_threads_use_two_devices(void **state) {
    (void)state;
    Worker workers[2] = {{.name = "sim:sm_100a"}, {.name = "sim:sm_100a,sms=2"}};
    run_together(workers, 2);
}

static void four_threads_use_one_device(void **state) {
    (void)state;
    Bench b;
    make(&b);
    Worker workers[4] = {{.shared = &b}, {.shared = &b}, {.shared = &b}, {.shared = &b}};
    run_together(workers, 4);
    end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_refused_and_outputs_are_cleared),
        cmocka_unit_test(a_kernel_for_another_chip_is_refused_with_both_names),
        cmocka_unit_test(a_problem_that_does_not_fit_makes_no_plan),
        cmocka_unit_test(more_work_than_32_bits_count_is_refused),
        cmocka_unit_test(no_sequences_are_a_plan_that_does_nothing),
        cmocka_unit_test(memory_that_is_not_there_is_not_touched),
        cmocka_unit_test(nothing_ends_before_what_uses_it),
        cmocka_unit_test(a_plan_from_the_device_is_updated_before_it_is_launched),
        cmocka_unit_test(two_threads_use_two_devices),
        cmocka_unit_test(four_threads_use_one_device),
    };
    return cmocka_run_group_tests(tests, register_simulator, NULL);
}
