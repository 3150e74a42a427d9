// test_cuda.c: devices "cuda:N" on a driver without a GPU that records its calls (fake_driver.h).
// Arguments choose the driver that the environment leads to: none: the fake; "old": one without tensor maps;
// "missing": none at all.
#include "tests/runtime/fake_driver.h"
#include "tests/runtime/fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static FakeDriver *driver;
static void *(*driver_context)(int);
static void (*set_current)(void *);
static void *(*current)(void);

// Held open, so that the runtime gets the same library.
static void *find_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    FakeDriver *(*get)(void);
    if (!library)
        return NULL;
    *(void **)&get = dlsym(library, "fake_driver");
    *(void **)&driver_context = dlsym(library, "fake_driver_context");
    *(void **)&set_current = dlsym(library, "fake_driver_set_current");
    *(void **)&current = dlsym(library, "fake_driver_current");
    driver = get ? get() : NULL;
    return library;
}

static void reset(void) {
    *driver = (FakeDriver){.version = 12080, .device_count = 2, .major = 10};
    set_current(NULL);
}

// ---------------------------------------------------------------- a kernel with its problem

typedef struct {
    jfa_device *device;
    jfa_module *module;
    jfa_kernel *kernel;
    Sample sample;
    uint64_t memory[4];
} Loaded;

static jfa_status load_text(jfa_device *device, const char *manifest, jfa_module **module, jfa_error *err) {
    char *ptx = fixture_ptx(manifest, strlen(manifest));
    jfa_status status = jfa_module_load(device, ptx, strlen(ptx), module, err);
    free(ptx);
    return status;
}

#define DO(call)                                                                                             \
    do {                                                                                                     \
        jfa_error failure = {0};                                                                             \
        jfa_error *err = &failure;                                                                           \
        if (call)                                                                                            \
            fail_msg("%s: %s", #call, failure.message);                                                      \
    } while (0)

static void load_manifest(Loaded *l, const char *name, const char *manifest) {
    memset(l, 0, sizeof *l);
    DO(jfa_device_open(name, &l->device, err));
    DO(load_text(l->device, manifest, &l->module, err));
    DO(jfa_kernel_get(l->module, NULL, &l->kernel, err));
    fixture_sample(&l->sample, 3, 900, 600, 8, 2);
    l->sample.axes[0].length = 300;
    l->sample.axes[1].length = 200;
    for (int i = 0; i < 4; i++) {
        jfa_tensor *tensor = &l->sample.tensors[i];
        DO(jfa_malloc(l->device, jfa_tensor_bytes(tensor), &l->memory[i], err));
        tensor->address = l->memory[i];
    }
}

static void load(Loaded *l, const char *name) {
    load_manifest(l, name, SAMPLE_MANIFEST);
}

static void unload(Loaded *l) {
    for (int i = 0; i < 4; i++)
        DO(jfa_free(l->device, l->memory[i], err));
    DO(jfa_module_unload(l->module, err));
    DO(jfa_device_close(l->device, err));
}

static int calls(void) { // that a launch must not make
    return driver->allocs + driver->frees + driver->copies + driver->uploads + driver->waits +
           driver->encodes + driver->loads + driver->unloads;
}

// ---------------------------------------------------------------- tests

static void a_device_is_what_the_driver_says(void **state) {
    (void)state;
    reset();
    jfa_device *device;
    DO(jfa_device_open("cuda:1", &device, err));
    const jfa_device_props *props = jfa_device_get_props(device);
    assert_string_equal(props->name, "Fake 1");
    assert_string_equal(props->arch, "sm_100a");
    assert_true(props->sm_count == 148 && props->shared_bytes_per_cta == 232448);
    DO(jfa_device_close(device, err));
    assert_true(driver->retains == 1 && driver->releases == 1);
}

static void a_launch_allocates_and_waits_for_nothing(void **state) {
    (void)state;
    reset();
    Loaded l;
    jfa_plan *plan;
    load(&l, "cuda:0");
    DO(jfa_plan_create(l.kernel, &l.sample.problem, &plan, err));
    int before = calls(), stream;
    driver->is_capturing = 1;
    for (int i = 0; i < 10; i++)
        DO(jfa_launch(plan, &stream, err));
    assert_int_equal(driver->forbidden, 0);
    driver->is_capturing = 0;
    assert_int_equal(calls(), before);
    assert_int_equal(driver->launches, 10);
    assert_ptr_equal(driver->stream, &stream);
    assert_true(driver->grid == 48 && driver->block == 384 && driver->shared == 131072);
    assert_true(driver->attribute_count == 0 && driver->params_bytes == 436);
    // The first parameter is the map of Q, which begins 128 rows of 8 * 128 elements before it.
    uint64_t address;
    memcpy(&address, driver->params, sizeof address);
    assert_int_equal(address, l.memory[SAMPLE_Q] - 128 * 8 * 128 * 2);
    DO(jfa_plan_destroy(plan, err));
    unload(&l);
    assert_true(driver->live_allocations == 0 && driver->wrong_device == 0);
}

static void a_plan_is_made_without_waiting_for_what_runs(void **state) {
    (void)state;
    reset();
    Loaded l;
    load(&l, "cuda:0");
    for (int i = 0; i < 5; i++) {
        jfa_plan *plan;
        DO(jfa_plan_create(l.kernel, &l.sample.problem, &plan, err));
        DO(jfa_plan_destroy(plan, err));
    }
    // Copies go through a stream of the device's own, into memory that the plan before left.
    assert_true(driver->copies == 0 && driver->uploads == 5 && driver->allocs == 5 && driver->frees == 0);
    unload(&l);
    assert_int_equal(driver->live_allocations, 0);
}

static void maps_are_encoded_once_a_plan_and_images_loaded_once(void **state) {
    (void)state;
    reset();
    Loaded l;
    jfa_plan *plan;
    jfa_module *again, *other;
    load(&l, "cuda:0");
    DO(load_text(l.device, SAMPLE_MANIFEST, &again, err));
    assert_int_equal(driver->loads, 1);
    char *text = fixture_edit(SAMPLE_MANIFEST, "map K", "map Q"), *ptx = fixture_ptx(text, strlen(text));
    DO(jfa_module_load(l.device, ptx, strlen(ptx), &other, err));
    assert_int_equal(driver->loads, 2);
    DO(jfa_plan_create(l.kernel, &l.sample.problem, &plan, err));
    assert_int_equal(driver->encodes, 3);
    DO(jfa_plan_destroy(plan, err));
    jfa_kernel *kernel; // two of its maps say the same of the same tensor
    DO(jfa_kernel_get(other, NULL, &kernel, err));
    DO(jfa_plan_create(kernel, &l.sample.problem, &plan, err));
    assert_int_equal(driver->encodes, 5);
    DO(jfa_launch(plan, NULL, err));
    assert_memory_equal(driver->params, driver->params + 128, 128);
    DO(jfa_plan_destroy(plan, err));
    DO(jfa_module_unload(again, err));
    assert_int_equal(driver->unloads, 0);
    DO(jfa_module_unload(other, err));
    assert_int_equal(driver->unloads, 1);
    unload(&l);
    assert_int_equal(driver->unloads, 2);
    free(text);
    free(ptx);
}

static void the_callers_context_is_used_and_comes_back(void **state) {
    (void)state;
    reset();
    Loaded l;
    void *mine = driver_context(0), *of_another = driver_context(1);
    set_current(mine);
    load(&l, "cuda:0");
    assert_int_equal(driver->retains, 0);
    assert_ptr_equal(current(), mine);
    set_current(of_another);
    jfa_plan *plan;
    DO(jfa_plan_create(l.kernel, &l.sample.problem, &plan, err));
    DO(jfa_launch(plan, NULL, err));
    assert_ptr_equal(current(), of_another);
    DO(jfa_plan_destroy(plan, err));
    unload(&l);
    assert_ptr_equal(current(), of_another);
    load(&l, "cuda:0"); // a context of another device is none of this one's
    assert_int_equal(driver->retains, 1);
    unload(&l);
    assert_true(driver->releases == 1 && driver->wrong_device == 0 && driver->unbalanced == 0);
    assert_ptr_equal(current(), of_another);
}

static void events_measure_time(void **state) {
    (void)state;
    reset();
    jfa_device *device, *other;
    jfa_event *start, *end, *foreign;
    jfa_error err;
    float milliseconds = 1;
    DO(jfa_device_open("cuda:0", &device, err));
    DO(jfa_device_open("cuda:1", &other, err));
    DO(jfa_event_create(device, &start, err));
    DO(jfa_event_create(device, &end, err));
    DO(jfa_event_create(other, &foreign, err));
    assert_int_equal(jfa_event_elapsed(start, end, &milliseconds, &err), JFA_ERROR_ARGUMENT);
    assert_string_equal(err.message, "the start event has not been recorded");
    DO(jfa_event_record(start, NULL, err));
    assert_int_equal(jfa_event_elapsed(start, end, &milliseconds, &err), JFA_ERROR_ARGUMENT);
    assert_string_equal(err.message, "the end event has not been recorded");
    DO(jfa_event_record(end, NULL, err));
    DO(jfa_event_elapsed(start, end, &milliseconds, err));
    assert_true(milliseconds == 1.5f);
    assert_int_equal(jfa_event_elapsed(start, foreign, &milliseconds, &err), JFA_ERROR_ARGUMENT);
    assert_string_equal(err.message, "the events are of different devices");
    assert_true(milliseconds == 0);
    jfa_event_destroy(start);
    jfa_event_destroy(end);
    jfa_event_destroy(foreign);
    DO(jfa_device_close(device, err));
    DO(jfa_device_close(other, err));
    assert_int_equal(driver->wrong_device, 0);
}

// Each thread opens its devices anew, and all launch one plan.
typedef struct {
    const jfa_plan *plan;
    int device;
    bool failed;
} Job;

static void *work(void *argument) {
    Job *job = argument;
    char name[16];
    snprintf(name, sizeof name, "cuda:%d", job->device);
    for (int round = 0; round < 20 && !job->failed; round++) {
        Loaded l;
        jfa_plan *plan;
        load(&l, name);
        DO(jfa_plan_create(l.kernel, &l.sample.problem, &plan, err));
        job->failed = jfa_launch(plan, NULL, NULL) || jfa_launch(job->plan, NULL, NULL) ||
                      jfa_synchronise(l.device, NULL, NULL);
        DO(jfa_plan_destroy(plan, err));
        unload(&l);
    }
    return NULL;
}

static void threads_may_use_all_devices_at_once(void **state) {
    (void)state;
    enum { THREADS = 6 };
    reset();
    Loaded l;
    jfa_plan *plan;
    load(&l, "cuda:0");
    DO(jfa_plan_create(l.kernel, &l.sample.problem, &plan, err));
    pthread_t threads[THREADS];
    Job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (Job){plan, i % 2, false};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_false(jobs[i].failed);
    }
    DO(jfa_plan_destroy(plan, err));
    unload(&l);
    assert_int_equal(driver->launches, THREADS * 20 * 2);
    assert_true(driver->wrong_device == 0 && driver->unbalanced == 0 && driver->live_allocations == 0);
    assert_int_equal(driver->retains, driver->releases);
}

static void tensors_must_lie_in_memory_that_the_driver_knows(void **state) {
    (void)state;
    reset();
    Loaded l;
    jfa_plan *plan;
    jfa_error err;
    load(&l, "cuda:0");
    _Alignas(16) static char host[900 * 8 * 128 * 2];
    l.sample.tensors[SAMPLE_Q].address = (uint64_t)(uintptr_t)host;
    assert_int_equal(jfa_plan_create(l.kernel, &l.sample.problem, &plan, &err), JFA_ERROR_PROBLEM);
    if (!strstr(err.message, "tensor 'Q' of 1843200 bytes: its address, 0x") ||
        !strstr(err.message, "is no memory that the driver knows"))
        fail_msg("%s", err.message);
    // Too small: one allocation holds all tensors but the last rows of Q.
    enum { MIB = 1 << 20 };
    for (int i = 0; i < 4; i++) {
        DO(jfa_free(l.device, l.memory[i], err));
        l.memory[i] = 0;
    }
    DO(jfa_malloc(l.device, 16 * MIB, &l.memory[0], err));
    l.sample.tensors[SAMPLE_K].address = l.memory[0];
    l.sample.tensors[SAMPLE_O].address = l.memory[0] + 4 * MIB;
    l.sample.tensors[SAMPLE_LSE].address = l.memory[0] + 8 * MIB;
    l.sample.tensors[SAMPLE_Q].address = l.memory[0] + 15 * MIB;
    assert_int_equal(jfa_plan_create(l.kernel, &l.sample.problem, &plan, &err), JFA_ERROR_PROBLEM);
    if (!strstr(err.message, "its last byte, 0x"))
        fail_msg("%s", err.message);
    assert_null(plan);
    unload(&l);
    reset();
    driver->pageable = 1;
    load(&l, "cuda:0");
    l.sample.tensors[SAMPLE_Q].address = (uint64_t)(uintptr_t)host;
    DO(jfa_plan_create(l.kernel, &l.sample.problem, &plan, err));
    DO(jfa_plan_destroy(plan, err));
    unload(&l);
}

static void what_the_driver_refuses_is_told(void **state) {
    (void)state;
    static const struct {
        int result;
        jfa_status status;
        const char *message;
    } CASES[] = {
        {200, JFA_ERROR_IMAGE,
         "the driver refuses the module: CUDA error 200, fake error 200: line 7: what is this?"},
        {209, JFA_ERROR_TARGET,
         "the driver refuses the module: CUDA error 209, fake error 209; the device is sm_100a"},
        {222, JFA_ERROR_UNSUPPORTED,
         "the driver refuses the module: CUDA error 222, fake error 222; the driver offers CUDA 12.8, and "
         "the module needs a newer one"},
        {2, JFA_ERROR_OUT_OF_MEMORY, "the driver refuses the module: CUDA error 2, fake error 2"},
    };
    reset();
    jfa_device *device;
    DO(jfa_device_open("cuda:0", &device, err));
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        jfa_module *module;
        jfa_error err;
        driver->load_result = CASES[i].result;
        assert_int_equal(load_text(device, SAMPLE_MANIFEST, &module, &err), CASES[i].status);
        if (!strstr(err.message, CASES[i].message))
            fail_msg("%s", err.message);
    }
    DO(jfa_device_close(device, err));
    driver->major = 9;
    jfa_module *module;
    jfa_error err;
    DO(jfa_device_open("cuda:0", &device, err));
    assert_int_equal(load_text(device, SAMPLE_MANIFEST, &module, &err), JFA_ERROR_TARGET);
    assert_string_equal(err.message,
                        "kernel 'sample' was built for sm_100a, but the device 'Fake 0' is sm_90a");
    DO(jfa_device_close(device, err));
}

static void a_failure_of_a_launch_is_told(void **state) {
    (void)state;
    reset();
    Loaded l;
    jfa_plan *plan;
    jfa_error err;
    load(&l, "cuda:0");
    DO(jfa_plan_create(l.kernel, &l.sample.problem, &plan, err));
    driver->launch_result = 1;
    assert_int_equal(jfa_launch(plan, NULL, &err), JFA_ERROR_DEVICE);
    assert_string_equal(err.message, "cuLaunchKernelEx: CUDA error 1, fake error 1");
    driver->launch_result = 719;
    assert_int_equal(jfa_launch(plan, NULL, &err), JFA_ERROR_LAUNCH);
    DO(jfa_plan_destroy(plan, err));
    unload(&l);
}

// A trap ends the context: from then on every call says so, and the device's memory is out of reach.
static void a_kernel_that_hung_is_explained(void **state) {
    (void)state;
    static const char STORY[] =
        "the kernel 'sample' hung: role 'load' waited for 100 ms at a schedule.jfa:81 "
        "for pipe 'scores[1]' (empty, stage 0, phase 1) in CTA 7; the work before "
        "this point failed: CUDA error 719, fake error 719";
    reset();
    Loaded l;
    jfa_plan *plan;
    jfa_event *start, *end;
    jfa_error err;
    float milliseconds;
    char *manifest = fixture_watched();
    load_manifest(&l, "cuda:0", manifest);
    assert_int_equal(driver->live_host_memory, 1);
    DO(jfa_plan_create(l.kernel, &l.sample.problem, &plan, err));
    DO(jfa_event_create(l.device, &start, err));
    DO(jfa_event_create(l.device, &end, err));
    DO(jfa_event_record(start, NULL, err));
    int before = calls();
    driver->is_capturing = 1;
    DO(jfa_launch(plan, NULL, err));
    driver->is_capturing = 0;
    assert_true(calls() == before && driver->forbidden == 0);
    DO(jfa_event_record(end, NULL, err));
    DO(jfa_synchronise(l.device, NULL, err));
    uint64_t address;
    memcpy(&address, driver->params + WATCHDOG_OFFSET, sizeof address);
    uint32_t *words = (uint32_t *)(uintptr_t)(address - FAKE_MAPPED);
    for (int i = 0; i < 4 * (1 + 12); i++)
        assert_int_equal(words[i], 0);
    const uint32_t head[] = {1, 1 + 9, 0, 0}, told[] = {2, 1, 1, 7};
    memcpy(words, head, sizeof head);
    memcpy(words + 4 * (1 + 9), told, sizeof told);
    driver->wait_result = 719;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(jfa_synchronise(l.device, NULL, &err), JFA_ERROR_LAUNCH);
        assert_string_equal(err.message, STORY);
        assert_int_equal(jfa_event_elapsed(start, end, &milliseconds, &err), JFA_ERROR_LAUNCH);
        assert_string_equal(err.message, STORY);
        driver->launch_result = 719;
        assert_int_equal(jfa_launch(plan, NULL, &err), JFA_ERROR_LAUNCH);
        assert_non_null(strstr(err.message, "hung: role 'load'"));
    }
    driver->wait_result = 1; // what isn't a failure of a kernel is told as it is
    assert_int_equal(jfa_synchronise(l.device, NULL, &err), JFA_ERROR_DEVICE);
    assert_null(strstr(err.message, "hung"));
    driver->wait_result = 0;
    jfa_event_destroy(start);
    jfa_event_destroy(end);
    DO(jfa_plan_destroy(plan, err));
    unload(&l);
    assert_true(driver->live_host_memory == 0 && driver->live_allocations == 0 && driver->unbalanced == 0);
    free(manifest);
}

static void a_watchdog_without_memory_is_told(void **state) {
    (void)state;
    reset();
    jfa_device *device;
    jfa_module *module;
    jfa_error err;
    char *manifest = fixture_watched();
    DO(jfa_device_open("cuda:0", &device, err));
    driver->host_result = 1;
    assert_int_equal(load_text(device, manifest, &module, &err), JFA_ERROR_DEVICE);
    assert_non_null(strstr(err.message, "cuMemHostGetDevicePointer"));
    assert_int_equal(driver->live_host_memory, 0);
    DO(jfa_device_close(device, err));
    free(manifest);
}

static void open_fails_with(const char *name, const char *message) {
    jfa_device *device;
    jfa_error err = {0};
    assert_int_equal(jfa_device_open(name, &device, &err), JFA_ERROR_NOT_FOUND);
    if (!strstr(err.message, message))
        fail_msg("'%s' is told as '%s'", message, err.message);
    assert_null(device);
}

// Before any other: a driver that was good once stays loaded.
static void a_driver_that_cant_be_used_is_told(void **state) {
    (void)state;
    reset();
    driver->version = 11080;
    open_fails_with("cuda:0", "the CUDA driver is too old: it offers CUDA 11.8, and 12.0 or later is needed");
    reset();
    driver->init_result = 100;
    open_fails_with("cuda:0", "there is a CUDA driver on this machine, but no GPU");
    driver->init_result = 803;
    open_fails_with("cuda:0", "the CUDA driver can't be used: cuInit: CUDA error 803, fake error 803");
    reset();
    open_fails_with("cuda:2", "there is no cuda:2: the driver sees 2 GPUs");
    open_fails_with("cuda:", "names no GPU; it is cuda: and a number from 0");
    open_fails_with("cuda: 1", "names no GPU");
    open_fails_with("cuda:-1", "names no GPU");
    open_fails_with("cuda:0x", "names no GPU");
    open_fails_with("cuda:99999999999999999999", "names no GPU");
    driver->device_count = 1;
    open_fails_with("cuda:1", "the driver sees 1 GPU");
}

static void a_driver_without_tensor_maps_is_too_old(void **state) {
    (void)state;
    open_fails_with("cuda:0", "the CUDA driver is too old: it has no cuTensorMapEncodeTiled; CUDA 12.0 or "
                              "later is needed");
}

static void a_machine_without_a_driver_is_told_what_is_missing(void **state) {
    (void)state;
    open_fails_with("cuda:0", "there is no CUDA driver on this machine (libcuda.so.1: ");
    open_fails_with("cuda:0", "kernels can run on sim:sm_100a and sim:sm_90a");
}

int main(int count, char **arguments) {
    const struct CMUnitTest old[] = {cmocka_unit_test(a_driver_without_tensor_maps_is_too_old)};
    const struct CMUnitTest missing[] = {
        cmocka_unit_test(a_machine_without_a_driver_is_told_what_is_missing)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_that_cant_be_used_is_told),
        cmocka_unit_test(a_device_is_what_the_driver_says),
        cmocka_unit_test(a_launch_allocates_and_waits_for_nothing),
        cmocka_unit_test(a_plan_is_made_without_waiting_for_what_runs),
        cmocka_unit_test(maps_are_encoded_once_a_plan_and_images_loaded_once),
        cmocka_unit_test(the_callers_context_is_used_and_comes_back),
        cmocka_unit_test(events_measure_time),
        cmocka_unit_test(threads_may_use_all_devices_at_once),
        cmocka_unit_test(tensors_must_lie_in_memory_that_the_driver_knows),
        cmocka_unit_test(what_the_driver_refuses_is_told),
        cmocka_unit_test(a_failure_of_a_launch_is_told),
        cmocka_unit_test(a_kernel_that_hung_is_explained),
        cmocka_unit_test(a_watchdog_without_memory_is_told),
    };
    if (count > 1 && !strcmp(arguments[1], "old"))
        return cmocka_run_group_tests(old, NULL, NULL);
    void *library = find_driver();
    if (count > 1 && library) {
        printf("this machine has a driver: not tested\n");
        return 0;
    }
    if (count > 1)
        return cmocka_run_group_tests(missing, NULL, NULL);
    if (!driver) {
        printf("libcuda.so.1 is not the fake\n");
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
