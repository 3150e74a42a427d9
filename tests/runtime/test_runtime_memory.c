// test_runtime_memory.c: each allocation of the library fails once; nothing crashes, nothing leaks, and it is
// told.
#include "tests/runtime/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// The linker leads the calls of malloc, calloc and realloc here (--wrap).
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static int until_failure = -1; // -1: none
static bool has_failed;

static bool fails_now(void) {
    if (until_failure < 0)
        return false;
    has_failed |= until_failure == 0;
    return until_failure-- == 0;
}

void *__wrap_malloc(size_t bytes) {
    return fails_now() ? NULL : __real_malloc(bytes);
}
void *__wrap_calloc(size_t count, size_t bytes) {
    return fails_now() ? NULL : __real_calloc(count, bytes);
}
void *__wrap_realloc(void *old, size_t bytes) {
    return fails_now() ? NULL : __real_realloc(old, bytes);
}

static jfa_status run(const char *path, const jfa_problem *problem, jfa_error *err) {
    jfa_device *device;
    jfa_module *module = NULL;
    jfa_kernel *kernel;
    jfa_plan *plan = NULL;
    jfa_status status = jfa_device_open("fake:sm_100a", &device, err);
    if (status)
        return status;
    status = jfa_module_load_file(device, path, &module, err);
    if (!status)
        status = jfa_kernel_get(module, "sample", &kernel, err);
    if (!status)
        status = jfa_plan_create(kernel, problem, &plan, err);
    if (!status)
        status = jfa_launch(plan, NULL, err);
    assert_int_equal(jfa_plan_destroy(plan, NULL), JFA_OK);
    assert_int_equal(jfa_module_unload(module, NULL), JFA_OK);
    assert_int_equal(jfa_device_close(device, NULL), JFA_OK);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    char path[] = "/tmp/jfa_memory_XXXXXX", both[8192];
    char *watched = fixture_watched();
    snprintf(both, sizeof both, "%s%s", watched, MATMUL_MANIFEST);
    free(watched);
    char *ptx = fixture_ptx(both, strlen(both));
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    fputs(ptx, file);
    fclose(file);
    free(ptx);

    static const int32_t LENGTHS[] = {300, 0, 5}, LIST[] = {0, 0, 300};
    Sample sample;
    fixture_register();
    fixture_sample(&sample, 3, 305, 305, 4, 2);
    sample.axes[0].lengths = sample.axes[1].lengths = LENGTHS;
    sample.tensors[SAMPLE_O].rows[0] = (jfa_rows){JFA_ROWS_LISTED, 0, LIST};
    int round = 0;
    for (has_failed = true; has_failed; round++) {
        jfa_error err = {0};
        has_failed = false;
        until_failure = round;
        jfa_status status = run(path, &sample.problem, &err);
        until_failure = -1;
        // fopen's own allocation may be the one that fails.
        bool told = status == JFA_ERROR_OUT_OF_MEMORY || status == JFA_ERROR_IO;
        if (has_failed && (!told || !err.message[0]))
            fail_msg("allocation %d fails: '%s'", round, err.message);
        assert_true(has_failed || status == JFA_OK);
        assert_true(!fake.live_devices && !fake.live_modules && !fake.live_allocations);
    }
    assert_true(round > 12);
    remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
