// test_watchdog.c: what the waits of a failed kernel told is in the message of the failure.
#include "tests/runtime/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    jfa_device *device;
    jfa_module *module;
    jfa_plan *plan;
    uint32_t *words; // of the watchdog, as the kernel would write them
} Loaded;

// folder: put before the name of the waits' file
static jfa_status load(Loaded *l, const char *folder, jfa_error *err) {
    Sample sample;
    jfa_kernel *kernel;
    *l = (Loaded){0};
    fixture_sample(&sample, 3, 900, 600, 8, 2);
    sample.axes[0].length = 300;
    sample.axes[1].length = 200;
    char *watched = fixture_watched(), *manifest = fixture_edit(watched, "file ", folder);
    char *ptx = fixture_ptx(manifest, strlen(manifest));
    jfa_status status = jfa_device_open("fake:sm_100a", &l->device, err);
    status = status ? status : jfa_module_load(l->device, ptx, strlen(ptx), &l->module, err);
    status = status ? status : jfa_kernel_get(l->module, NULL, &kernel, err);
    status = status ? status : jfa_plan_create(kernel, &sample.problem, &l->plan, err);
    status = status ? status : jfa_launch(l->plan, NULL, err);
    free(watched);
    free(manifest);
    free(ptx);
    if (status)
        return status;
    uint64_t address;
    memcpy(&address, fake.last_params + WATCHDOG_OFFSET, sizeof address);
    l->words = fixture_memory(address);
    assert_non_null(l->words);
    return status;
}

static int set_up_in(void **state, const char *folder) {
    static Loaded loaded;
    jfa_error err = {0};
    fixture_register();
    *state = &loaded;
    if (load(&loaded, folder, &err))
        fail_msg("%s", err.message);
    return 0;
}

static int set_up(void **state) {
    return set_up_in(state, "file ");
}

static int set_up_deep(void **state) {
    char folder[400] = "file ";
    memset(folder + 5, 'x', sizeof folder - 6);
    return set_up_in(state, folder);
}

static int tear_down(void **state) {
    Loaded *l = *state;
    fake.failing = NULL;
    assert_int_equal(jfa_plan_destroy(l->plan, NULL), JFA_OK);
    assert_int_equal(jfa_module_unload(l->module, NULL), JFA_OK);
    assert_int_equal(jfa_device_close(l->device, NULL), JFA_OK);
    assert_true(!fake.live_devices && !fake.live_modules && !fake.live_allocations);
    return 0;
}

static void tell(Loaded *l, int warp, uint32_t wait, uint32_t parity, uint32_t slot, uint32_t cta) {
    uint32_t words[] = {wait, parity, slot, cta};
    l->words[0] = 1;
    memcpy(l->words + 4 + 4 * warp, words, sizeof words);
}

static void says(Loaded *l, jfa_status status, const char *message) {
    jfa_error err = {0};
    fake.failing = "synchronise";
    fake.failure = status;
    assert_int_equal(jfa_synchronise(l->device, NULL, &err), status);
    assert_string_equal(err.message, message);
    assert_int_equal(err.status, status);
}

static void the_waits_that_were_too_long_are_named_the_first_one_first(void **state) {
    Loaded *l = *state;
    tell(l, 2, 2, 0, 1, 17);
    for (int warp = 4; warp < 8; warp++) // that say the same
        tell(l, warp, 1, 1, 2, 17);
    l->words[1] = 1 + 5;
    says(l, JFA_ERROR_LAUNCH,
         "the kernel 'sample' hung: role 'mma' waited for 100 ms at a schedule.jfa:73 for pipe 'kv' (full, "
         "stage 2, phase 1) in CTA 17, and so did role 'load' at a schedule.jfa:81 for pipe 'scores[1]' "
         "(empty, stage 0, phase 0) in CTA 17; fake failure in synchronise");
}

static void a_later_failure_is_not_told_the_same(void **state) {
    Loaded *l = *state;
    tell(l, 0, 1, 1, 2, 17);
    assert_int_equal((fake.failing = "launch", fake.failure = JFA_ERROR_LAUNCH,
                      jfa_launch(l->plan, NULL, NULL)), // without a place for the message
                     JFA_ERROR_LAUNCH);
    says(l, JFA_ERROR_LAUNCH, "fake failure in synchronise");
}

static void other_failures_are_told_as_they_are(void **state) {
    Loaded *l = *state;
    says(l, JFA_ERROR_LAUNCH, "fake failure in synchronise");
    tell(l, 0, 1, 1, 2, 17);
    says(l, JFA_ERROR_DEVICE, "fake failure in synchronise");
}

static void words_that_make_no_sense_are_left_out(void **state) {
    static const char UNKNOWN[] =
        "the kernel 'sample' hung: a role waited for 100 ms; fake failure in synchronise";
    Loaded *l = *state;
    tell(l, 0, 3, 1, 2, 17); // there is no third wait
    tell(l, 11, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX);
    l->words[1] = 1 + 11;
    says(l, JFA_ERROR_LAUNCH, UNKNOWN);
    l->words[0] = 1;
    l->words[1] = UINT32_MAX; // and no such warp
    says(l, JFA_ERROR_LAUNCH, UNKNOWN);
}

static void a_story_of_all_warps(Loaded *l, jfa_error *err) {
    for (int warp = 0; warp < 12; warp++)
        tell(l, warp, 2, 0, (uint32_t)warp, UINT32_MAX);
    fake.failing = "synchronise";
    fake.failure = JFA_ERROR_LAUNCH;
    assert_int_equal(jfa_synchronise(l->device, NULL, err), JFA_ERROR_LAUNCH);
}

static void all_warps_get_to_tell(void **state) {
    jfa_error err = {0};
    a_story_of_all_warps(*state, &err);
    assert_non_null(strstr(err.message, "'scores[0]'"));
    assert_non_null(strstr(err.message, "'scores[11]' (empty, stage 0, phase 0) in CTA 4294967295; fake"));
}

static void a_long_story_is_cut(void **state) {
    jfa_error err = {0};
    a_story_of_all_warps(*state, &err);
    assert_non_null(strstr(err.message, "'scores[2]'"));
    assert_int_equal(strlen(err.message), JFA_MESSAGE_BYTES - 1);
}

static void a_module_whose_watchdog_has_no_memory_is_not_loaded(void **state) {
    (void)state;
    static const char *const FUNCTIONS[] = {"alloc", "copy_in"};
    fixture_register();
    for (int i = 0; i < 2; i++) {
        char *manifest = fixture_watched(), *ptx = fixture_ptx(manifest, strlen(manifest));
        jfa_device *device;
        jfa_module *module;
        jfa_error err = {0};
        assert_int_equal(jfa_device_open("fake:sm_100a", &device, NULL), JFA_OK);
        fake.failing = FUNCTIONS[i];
        assert_int_equal(jfa_module_load(device, ptx, strlen(ptx), &module, &err), JFA_ERROR_DEVICE);
        assert_non_null(strstr(err.message, FUNCTIONS[i]));
        fake.failing = NULL;
        assert_int_equal(jfa_device_close(device, NULL), JFA_OK);
        assert_true(!fake.live_devices && !fake.live_modules && !fake.live_allocations);
        free(manifest);
        free(ptx);
    }
}

#define WITH_KERNEL(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_KERNEL(the_waits_that_were_too_long_are_named_the_first_one_first),
        WITH_KERNEL(a_later_failure_is_not_told_the_same),
        WITH_KERNEL(other_failures_are_told_as_they_are),
        WITH_KERNEL(words_that_make_no_sense_are_left_out),
        WITH_KERNEL(all_warps_get_to_tell),
        cmocka_unit_test_setup_teardown(a_long_story_is_cut, set_up_deep, tear_down),
        cmocka_unit_test(a_module_whose_watchdog_has_no_memory_is_not_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
