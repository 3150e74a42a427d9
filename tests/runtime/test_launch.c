// test_launch.c: from a device's name to a launch, on a device made of host tables.
#include "tests/runtime/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
    jfa_device *device;
    jfa_module *module;
    jfa_kernel *kernel;
} Loaded;

static jfa_status load_text(jfa_device *device, const char *manifest, jfa_module **module, jfa_error *err) {
    char *ptx = fixture_ptx(manifest, strlen(manifest));
    jfa_status status = jfa_module_load(device, ptx, strlen(ptx), module, err);
    free(ptx);
    return status;
}

static Loaded load(const char *manifest) {
    Loaded l;
    jfa_error err = {0};
    fixture_register();
    if (jfa_device_open("fake:sm_100a", &l.device, &err) || load_text(l.device, manifest, &l.module, &err) ||
        jfa_kernel_get(l.module, NULL, &l.kernel, &err))
        fail_msg("%s", err.message);
    return l;
}

static void unload(Loaded *l) {
    fake.failing = NULL;
    assert_int_equal(jfa_module_unload(l->module, NULL), JFA_OK);
    assert_int_equal(jfa_device_close(l->device, NULL), JFA_OK);
    assert_true(!fake.live_devices && !fake.live_modules && !fake.live_allocations);
}

static void make(Sample *s) {
    fixture_sample(s, 3, 900, 600, 8, 2);
    s->axes[0].length = 300;
    s->axes[1].length = 200;
}

static void a_launch_hands_over_what_the_manifest_says(void **state) {
    (void)state;
    Loaded l = load(SAMPLE_MANIFEST);
    Sample sample;
    jfa_plan *plan;
    jfa_error err = {0};
    make(&sample);
    if (jfa_plan_create(l.kernel, &sample.problem, &plan, &err))
        fail_msg("%s", err.message);
    const jfa_plan_info *info = jfa_plan_get_info(plan);
    assert_true(info->records == 6 && info->items == 48 && info->grid == 4 && info->threads == 384);
    assert_int_equal(info->device_bytes, 6 * 28);
    int stream;
    assert_int_equal(jfa_launch(plan, &stream, &err), JFA_OK);
    const jfa_launch_desc *desc = &fake.last_launch;
    assert_true(desc->grid[0] == 4 && desc->grid[1] == 1 && desc->grid[2] == 1);
    assert_true(desc->block[0] == 384 && desc->cluster[0] == 1 && desc->shared_bytes == 131072);
    assert_true(desc->stream == &stream && desc->params_bytes == 436);
    assert_string_equal(fake.last_function, "sample_entry");

    const uint8_t *block = fake.last_params;
    jfa_tensor_map maps[3];
    for (int i = 0; i < 3; i++)
        memcpy(&maps[i], block + 128 * i, sizeof maps[i]);
    assert_int_equal(maps[1].address, 0x200000000000 - 128 * 512);
    assert_int_equal(maps[2].box[2], 1);
    uint64_t words[4];
    memcpy(words, block + 384, sizeof words);
    assert_int_equal(words[0], 0x400000000000);
    assert_int_equal(words[1], 900);
    assert_int_equal(words[2], 1);
    const int32_t *records = fixture_memory(words[3]);
    assert_non_null(records);
    const int32_t second[7] = {0, 256, 300, 200, 0, 0, 0}, last[7] = {2, 256, 300, 200, 600, 400, 600};
    assert_memory_equal(records + 7, second, sizeof second);
    assert_memory_equal(records + 35, last, sizeof last);
    int32_t numbers[5];
    float scale;
    memcpy(numbers, block + 416, sizeof numbers);
    memcpy(&scale, block + 420, sizeof scale);
    assert_true(numbers[0] == 8 && scale == 0.088388347648318447f && numbers[2] == 5 && numbers[3] == 6);
    assert_int_equal(numbers[4], 48);
    assert_int_equal(jfa_synchronise(l.device, &stream, NULL), JFA_OK);
    assert_int_equal(jfa_plan_destroy(plan, NULL), JFA_OK);
    unload(&l);
}

static void a_tensor_left_out_is_a_null_pointer(void **state) {
    (void)state;
    Loaded l = load(SAMPLE_MANIFEST);
    Sample sample;
    jfa_plan *plan;
    make(&sample);
    sample.problem.tensor_count = 3;
    assert_int_equal(jfa_plan_create(l.kernel, &sample.problem, &plan, NULL), JFA_OK);
    assert_int_equal(jfa_launch(plan, NULL, NULL), JFA_OK);
    const uint64_t zeros[3] = {0};
    assert_memory_equal(fake.last_params + 384, zeros, sizeof zeros);
    jfa_plan_destroy(plan, NULL);
    unload(&l);
}

static void a_plan_without_work_launches_nothing(void **state) {
    (void)state;
    Loaded l = load(SAMPLE_MANIFEST);
    Sample sample;
    jfa_plan *plan;
    make(&sample);
    sample.axes[0].length = 0;
    assert_int_equal(jfa_plan_create(l.kernel, &sample.problem, &plan, NULL), JFA_OK);
    assert_int_equal(jfa_plan_get_info(plan)->grid, 0);
    assert_int_equal(jfa_launch(plan, NULL, NULL), JFA_OK);
    assert_true(fake.launches == 0 && fake.live_allocations == 0);
    jfa_plan_destroy(plan, NULL);
    unload(&l);
}

static void a_problem_without_work_is_checked_all_the_same(void **state) {
    (void)state;
    Loaded l = load(SAMPLE_MANIFEST);
    Sample sample;
    jfa_plan *plan;
    jfa_error err;
    make(&sample);
    sample.axes[0].length = 0;
    sample.tensors[SAMPLE_Q].strides[0] += 1;
    assert_int_equal(jfa_plan_create(l.kernel, &sample.problem, &plan, &err), JFA_ERROR_PROBLEM);
    assert_non_null(strstr(err.message, "tensor maps need multiples of 16 bytes"));
    assert_null(plan);
    unload(&l);
}

static void a_tensor_without_rows_gets_an_address_that_exists(void **state) {
    (void)state;
    Loaded l = load(SAMPLE_MANIFEST);
    Sample sample;
    jfa_plan *plan;
    jfa_tensor_map map;
    make(&sample);
    sample.axes[1].length = 0;
    sample.tensors[SAMPLE_K].extents[0] = 0;
    sample.tensors[SAMPLE_K].address = 0;
    assert_int_equal(jfa_plan_create(l.kernel, &sample.problem, &plan, NULL), JFA_OK);
    assert_int_equal(jfa_launch(plan, NULL, NULL), JFA_OK);
    memcpy(&map, fake.last_params + 128, sizeof map);
    assert_non_null(fixture_memory(map.address));
    assert_int_equal(map.dims[4], 1);
    jfa_plan_destroy(plan, NULL);
    unload(&l);
}

static void the_grid_follows_items_processors_and_clusters(void **state) {
    (void)state;
    static const struct {
        const char *persistent, *cluster;
        int64_t length, heads;
        int grid;
    } CASES[] = {
        {"persistent\n", "cluster 1", 1, 1, 1},
        {"persistent\n", "cluster 1", 1, 2, 4},
        {"persistent\n", "cluster 2", 1, 1, 4},
        {"persistent\n", "cluster 8", 300, 8, 8},
        {"", "cluster 1", 300, 8, 48},
        {"", "cluster 2", 1, 1, 6},
        {"", "cluster 16", 1, 1, 48},
        {"persistent 2\n", "cluster 1", 300, 8, 8},
        {"persistent 3\n", "cluster 4", 300, 8, 12},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char *text = fixture_edit(SAMPLE_MANIFEST, "persistent\n", CASES[i].persistent);
        char *again = fixture_edit(text, "cluster 1", CASES[i].cluster);
        Loaded l = load(again);
        Sample sample;
        jfa_plan *plan;
        int64_t sequences = i == 0 ? 1 : 3;
        fixture_sample(&sample, sequences, 900, 0, CASES[i].heads, 1);
        sample.axes[0].length = CASES[i].length;
        assert_int_equal(jfa_plan_create(l.kernel, &sample.problem, &plan, NULL), JFA_OK);
        assert_int_equal(jfa_plan_get_info(plan)->grid, CASES[i].grid);
        jfa_plan_destroy(plan, NULL);
        unload(&l);
        free(again);
        free(text);
    }
}

static void a_kernel_says_what_it_takes(void **state) {
    (void)state;
    Loaded l = load(SAMPLE_MANIFEST);
    const jfa_kernel_info *info = jfa_kernel_get_info(l.kernel);
    assert_string_equal(info->name, "sample");
    assert_true(info->axis_count == 2 && info->dim_count == 2 && info->tensor_count == 4 &&
                info->param_count == 2);
    assert_string_equal(info->axes[info->tensors[1].dims[0].index].name, "k");
    assert_string_equal(info->constants[0].value, "128");
    assert_null(jfa_kernel_get_info(NULL));
    assert_int_equal(jfa_module_kernel_count(l.module), 1);
    assert_string_equal(jfa_module_kernel_name(l.module, 0), "sample");
    assert_null(jfa_module_kernel_name(l.module, 1));
    assert_null(jfa_module_kernel_name(l.module, -1));
    assert_string_equal(jfa_device_get_props(l.device)->arch, "sm_100a");
    assert_ptr_equal(jfa_device_native(l.device), &fake);
    assert_int_equal(jfa_device_set_option(l.device, "seed", 3, NULL), JFA_OK);
    assert_string_equal(fake.last_option, "seed");
    unload(&l);
}

static void a_module_of_two_kernels_wants_a_name(void **state) {
    (void)state;
    char both[8192];
    snprintf(both, sizeof both, "%s%s", SAMPLE_MANIFEST, MATMUL_MANIFEST);
    fixture_register();
    Loaded l;
    jfa_error err;
    assert_int_equal(jfa_device_open("fake:sm_100a", &l.device, NULL), JFA_OK);
    assert_int_equal(load_text(l.device, both, &l.module, NULL), JFA_OK);
    assert_int_equal(jfa_kernel_get(l.module, NULL, &l.kernel, &err), JFA_ERROR_ARGUMENT);
    assert_string_equal(err.message, "the module has 2 kernels: name one ('sample', ...)");
    assert_int_equal(jfa_kernel_get(l.module, "matmul", &l.kernel, NULL), JFA_OK);
    assert_string_equal(jfa_kernel_get_info(l.kernel)->name, "matmul");
    assert_int_equal(jfa_kernel_get(l.module, "mat", &l.kernel, &err), JFA_ERROR_NOT_FOUND);
    assert_string_equal(err.message, "the module has no kernel 'mat'");
    assert_null(l.kernel);
    snprintf(both, sizeof both, "%s%s", SAMPLE_MANIFEST, SAMPLE_MANIFEST);
    jfa_module *twin;
    assert_int_equal(load_text(l.device, both, &twin, &err), JFA_ERROR_MANIFEST);
    assert_string_equal(err.message, "two kernels of the module are called 'sample'");
    unload(&l);
}

static void a_module_for_another_device_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *find, *replace, *device, *message; // NULL: it loads
    } CASES[] = {
        {"target sm_100a", "target sm_100a", "fake:sm_100a", NULL},
        {"target sm_100a", "target sm_100", "fake:sm_100a", NULL},
        {"target sm_100a", "target sm_10", "fake:sm_100a",
         "was built for sm_10, but the device 'a fake' is sm_100a"},
        {"target sm_100a", "target sm_10", "fake:sm_100",
         "was built for sm_10, but the device 'a fake' is sm_100"},
        {"target sm_100a", "target sm_90a", "fake:sm_100a", "was built for sm_90a"},
        {"target sm_100a", "target sm_100a", "fake:sm_100", "was built for sm_100a"},
        {"shared 131072", "shared 232448", "fake:sm_100a", NULL},
        {"shared 131072", "shared 232449", "fake:sm_100a",
         "needs 232449 bytes of shared memory for each CTA; the device "
         "'a fake' has 232448"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char *text = fixture_edit(SAMPLE_MANIFEST, CASES[i].find, CASES[i].replace);
        fixture_register();
        jfa_device *device;
        jfa_module *module;
        jfa_error err = {0};
        assert_int_equal(jfa_device_open(CASES[i].device, &device, NULL), JFA_OK);
        jfa_status status = load_text(device, text, &module, &err);
        assert_int_equal(status, CASES[i].message ? JFA_ERROR_TARGET : JFA_OK);
        if (CASES[i].message && !strstr(err.message, CASES[i].message))
            fail_msg("case %zu: '%s'", i, err.message);
        assert_int_equal(jfa_module_unload(module, NULL), JFA_OK);
        assert_int_equal(jfa_device_close(device, NULL), JFA_OK);
        free(text);
    }
}

static void a_module_may_come_from_a_file(void **state) {
    (void)state;
    char path[] = "/tmp/jfa_module_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    FILE *stream = fdopen(file, "w");
    assert_non_null(stream);
    char *ptx = fixture_ptx(SAMPLE_MANIFEST, strlen(SAMPLE_MANIFEST));
    fputs(ptx, stream);
    for (int i = 0; i < 100000; i++) // longer than one read
        fputc('\n', stream);
    fclose(stream);
    free(ptx);
    fixture_register();
    Loaded l;
    jfa_error err = {0};
    assert_int_equal(jfa_device_open("fake:sm_100a", &l.device, NULL), JFA_OK);
    if (jfa_module_load_file(l.device, path, &l.module, &err))
        fail_msg("%s", err.message);
    assert_true(fake.image_ended);
    assert_int_equal(truncate(path, 0), 0);
    jfa_module *none;
    assert_int_equal(jfa_module_load_file(l.device, path, &none, &err), JFA_ERROR_IMAGE);
    assert_non_null(strstr(err.message, "is empty"));
    remove(path);
    assert_int_equal(jfa_module_load_file(l.device, path, &none, &err), JFA_ERROR_IO);
    assert_non_null(strstr(err.message, "can't open '/tmp/jfa_module_"));
    assert_int_equal(jfa_module_load_file(l.device, "/tmp", &none, &err), JFA_ERROR_IO);
    assert_null(none);
    unload(&l);
}

static void ptx_may_end_with_a_nul(void **state) {
    (void)state;
    fixture_register();
    Loaded l;
    assert_int_equal(jfa_device_open("fake:sm_100a", &l.device, NULL), JFA_OK);
    char *ptx = fixture_ptx(SAMPLE_MANIFEST, strlen(SAMPLE_MANIFEST));
    assert_int_equal(jfa_module_load(l.device, ptx, strlen(ptx) + 1, &l.module, NULL), JFA_OK);
    jfa_module *none;
    ptx[5] = 0;
    assert_int_equal(jfa_module_load(l.device, ptx, 100, &none, NULL), JFA_ERROR_IMAGE);
    free(ptx);
    unload(&l);
}

static void unknown_devices_are_refused_with_the_known_ones(void **state) {
    (void)state;
    static const char *const NAMES[] = {"rocm:0", "fake", "", ":", "fakes:0", "fak:0"};
    fixture_register();
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        jfa_device *device;
        jfa_error err;
        assert_int_equal(jfa_device_open(NAMES[i], &device, &err), JFA_ERROR_NOT_FOUND);
        assert_non_null(
            strstr(err.message, "names no device: it must be a backend (cuda, fake), a colon and a device"));
        assert_null(device);
    }
    static const jfa_backend SAME = {.scheme = "fake"}, NAMELESS = {.scheme = NULL};
    assert_int_equal(jfa_backend_register(&SAME, NULL), JFA_ERROR_ARGUMENT);
    assert_int_equal(jfa_backend_register(&NAMELESS, NULL), JFA_ERROR_ARGUMENT);
    assert_int_equal(jfa_backend_register(NULL, NULL), JFA_ERROR_ARGUMENT);
}

static void what_is_in_use_is_not_taken_away(void **state) {
    (void)state;
    Loaded l = load(SAMPLE_MANIFEST);
    Sample sample;
    jfa_plan *plan;
    jfa_error err;
    make(&sample);
    assert_int_equal(jfa_plan_create(l.kernel, &sample.problem, &plan, NULL), JFA_OK);
    assert_int_equal(jfa_module_unload(l.module, &err), JFA_ERROR_BUSY);
    assert_string_equal(err.message, "the module is in use: its kernels have 1 plan");
    assert_int_equal(jfa_device_close(l.device, &err), JFA_ERROR_BUSY);
    assert_string_equal(err.message, "the device 'a fake' is in use: 1 module is loaded");
    assert_int_equal(jfa_plan_destroy(plan, NULL), JFA_OK);
    unload(&l);
}

static void a_failure_of_the_device_is_passed_on_and_leaks_nothing(void **state) {
    (void)state;
    static const char *const FUNCTIONS[] = {"module_load",       "function_get", "alloc",      "copy_in",
                                            "encode_tensor_map", "launch",       "synchronise"};
    for (int silent = 0; silent < 2; silent++)
        for (size_t i = 0; i < sizeof FUNCTIONS / sizeof FUNCTIONS[0]; i++) {
            fixture_register();
            jfa_device *device;
            jfa_module *module = NULL;
            jfa_kernel *kernel;
            jfa_plan *plan = NULL;
            jfa_error err = {0};
            Sample sample;
            make(&sample);
            assert_int_equal(jfa_device_open("fake:sm_100a", &device, NULL), JFA_OK);
            fake.failing = FUNCTIONS[i];
            fake.silent = silent;
            jfa_status status = load_text(device, SAMPLE_MANIFEST, &module, &err);
            if (!status)
                status = jfa_kernel_get(module, NULL, &kernel, &err);
            if (!status)
                status = jfa_plan_create(kernel, &sample.problem, &plan, &err);
            if (!status)
                status = jfa_launch(plan, NULL, &err);
            if (!status)
                status = jfa_synchronise(device, NULL, &err);
            assert_int_equal(status, JFA_ERROR_DEVICE);
            assert_int_equal(err.status, JFA_ERROR_DEVICE);
            assert_non_null(strstr(err.message, silent ? "the device failed to " : FUNCTIONS[i]));
            assert_int_equal(jfa_plan_destroy(plan, NULL), JFA_OK);
            Loaded l = {device, module, NULL};
            unload(&l);
        }
    fixture_register();
    fake.failing = "open";
    jfa_device *device;
    assert_int_equal(jfa_device_open("fake:0", &device, NULL), JFA_ERROR_DEVICE);
    assert_null(device);
}

static void memory_is_allocated_copied_and_freed(void **state) {
    (void)state;
    fixture_register();
    jfa_device *device;
    uint64_t address = 1;
    char back[4] = "";
    assert_int_equal(jfa_device_open("fake:sm_100a", &device, NULL), JFA_OK);
    assert_int_equal(jfa_malloc(device, 0, &address, NULL), JFA_OK);
    assert_int_equal(address, 0);
    assert_int_equal(jfa_malloc(device, 4, &address, NULL), JFA_OK);
    assert_int_equal(jfa_copy_to_device(device, address, "abc", 4, NULL), JFA_OK);
    assert_int_equal(jfa_copy_from_device(device, back, address, 4, NULL), JFA_OK);
    assert_string_equal(back, "abc");
    assert_int_equal(jfa_copy_to_device(device, 0, NULL, 0, NULL), JFA_OK);
    assert_int_equal(jfa_copy_to_device(device, address, NULL, 1, NULL), JFA_ERROR_ARGUMENT);
    assert_int_equal(jfa_copy_from_device(device, back, 0, 1, NULL), JFA_ERROR_ARGUMENT);
    assert_int_equal(jfa_free(device, address, NULL), JFA_OK);
    assert_int_equal(jfa_free(device, 0, NULL), JFA_OK);
    assert_int_equal(fake.live_allocations, 0);
    assert_int_equal(jfa_device_close(device, NULL), JFA_OK);
}

static void events_read_the_clock_where_the_device_has_none(void **state) {
    (void)state;
    fixture_register();
    jfa_device *device;
    jfa_event *start, *end;
    float milliseconds = -1;
    assert_int_equal(jfa_device_open("fake:sm_100a", &device, NULL), JFA_OK);
    assert_int_equal(jfa_event_create(device, &start, NULL), JFA_OK);
    assert_int_equal(jfa_event_create(device, &end, NULL), JFA_OK);
    assert_int_equal(jfa_event_record(start, NULL, NULL), JFA_OK);
    assert_int_equal(usleep(2000), 0);
    assert_int_equal(jfa_event_record(end, NULL, NULL), JFA_OK);
    assert_int_equal(jfa_event_elapsed(start, end, &milliseconds, NULL), JFA_OK);
    assert_true(milliseconds >= 2);
    jfa_event_destroy(start);
    jfa_event_destroy(end);
    assert_int_equal(jfa_device_close(device, NULL), JFA_OK);
}

static void nulls_are_refused(void **state) {
    (void)state;
    Loaded l = load(SAMPLE_MANIFEST);
    Sample sample;
    make(&sample);
    jfa_device *device;
    jfa_module *module;
    jfa_kernel *kernel;
    jfa_plan *plan;
    uint64_t address;
    jfa_event *event;
    float milliseconds;
    const jfa_status results[] = {
        jfa_device_open(NULL, &device, NULL),
        jfa_device_open("fake:0", NULL, NULL),
        jfa_device_set_option(NULL, "seed", 1, NULL),
        jfa_device_set_option(l.device, NULL, 1, NULL),
        jfa_malloc(NULL, 1, &address, NULL),
        jfa_malloc(l.device, 1, NULL, NULL),
        jfa_free(NULL, 1, NULL),
        jfa_copy_to_device(NULL, 1, &address, 1, NULL),
        jfa_copy_from_device(NULL, &address, 1, 1, NULL),
        jfa_synchronise(NULL, NULL, NULL),
        jfa_module_load(NULL, "x", 1, &module, NULL),
        jfa_module_load(l.device, NULL, 1, &module, NULL),
        jfa_module_load(l.device, "x", 0, &module, NULL),
        jfa_module_load(l.device, "x", 1, NULL, NULL),
        jfa_module_load_file(l.device, NULL, &module, NULL),
        jfa_module_load_file(l.device, "x", NULL, NULL),
        jfa_kernel_get(NULL, NULL, &kernel, NULL),
        jfa_kernel_get(l.module, NULL, NULL, NULL),
        jfa_plan_create(NULL, &sample.problem, &plan, NULL),
        jfa_plan_create(l.kernel, NULL, &plan, NULL),
        jfa_plan_create(l.kernel, &sample.problem, NULL, NULL),
        jfa_launch(NULL, NULL, NULL),
        jfa_event_create(NULL, &event, NULL),
        jfa_event_create(l.device, NULL, NULL),
        jfa_event_record(NULL, NULL, NULL),
        jfa_event_elapsed(NULL, NULL, &milliseconds, NULL),
        jfa_event_elapsed(NULL, NULL, NULL, NULL),
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i] != JFA_ERROR_ARGUMENT)
            fail_msg("call %zu gives '%s'", i, jfa_status_string(results[i]));
    assert_int_equal(jfa_plan_destroy(NULL, NULL), JFA_OK);
    assert_int_equal(jfa_module_unload(NULL, NULL), JFA_OK);
    assert_int_equal(jfa_device_close(NULL, NULL), JFA_OK);
    jfa_event_destroy(NULL);
    assert_null(jfa_plan_get_info(NULL));
    assert_null(jfa_device_get_props(NULL));
    assert_null(jfa_device_native(NULL));
    assert_int_equal(jfa_module_kernel_count(NULL), 0);
    unload(&l);
}

static void every_status_and_type_has_a_name(void **state) {
    (void)state;
    for (int i = 0; i < JFA_STATUS_COUNT; i++)
        assert_string_not_equal(jfa_status_string((jfa_status)i), "unknown status");
    assert_string_equal(jfa_status_string((jfa_status)-1), "unknown status");
    for (int i = 0; i < JFA_DTYPE_COUNT; i++)
        assert_true(jfa_dtype_bytes((jfa_dtype)i) > 0 && jfa_dtype_name((jfa_dtype)i)[0] != '?');
    assert_true(!jfa_dtype_bytes(JFA_DTYPE_COUNT) && jfa_dtype_name((jfa_dtype)-1)[0] == '?');
    assert_string_equal(jfa_version(), JFA_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_hands_over_what_the_manifest_says),
        cmocka_unit_test(a_tensor_left_out_is_a_null_pointer),
        cmocka_unit_test(a_plan_without_work_launches_nothing),
        cmocka_unit_test(a_problem_without_work_is_checked_all_the_same),
        cmocka_unit_test(a_tensor_without_rows_gets_an_address_that_exists),
        cmocka_unit_test(the_grid_follows_items_processors_and_clusters),
        cmocka_unit_test(a_kernel_says_what_it_takes),
        cmocka_unit_test(a_module_of_two_kernels_wants_a_name),
        cmocka_unit_test(a_module_for_another_device_is_refused),
        cmocka_unit_test(a_module_may_come_from_a_file),
        cmocka_unit_test(ptx_may_end_with_a_nul),
        cmocka_unit_test(unknown_devices_are_refused_with_the_known_ones),
        cmocka_unit_test(what_is_in_use_is_not_taken_away),
        cmocka_unit_test(a_failure_of_the_device_is_passed_on_and_leaks_nothing),
        cmocka_unit_test(memory_is_allocated_copied_and_freed),
        cmocka_unit_test(events_read_the_clock_where_the_device_has_none),
        cmocka_unit_test(nulls_are_refused),
        cmocka_unit_test(every_status_and_type_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
