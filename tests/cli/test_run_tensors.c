// Inputs and outputs of jfac run: where rows lie, what is between them, and that a byte too many is noticed.
#include "compiler/cli/run.h"
#include "compiler/reference/number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { SEQUENCES = 4, ROWS = 0 + 3 + 1 + 5, HEADS = 2, COLUMNS = 12 };

static Axis axis = {.name = "m"};
static Tensor tensors[] = {
    {.name = "A",
     .direction = TENSOR_IN,
     .elem = ELEM_BF16,
     .rank = 3,
     .dims = {{DIM_AXIS, 0, 0}, {DIM_RUNTIME, 0, 0}, {DIM_CONSTANT, 0, COLUMNS}}},
    {.name = "C",
     .direction = TENSOR_OUT,
     .elem = ELEM_F32,
     .rank = 2,
     .dims = {{DIM_RUNTIME, 0, 0}, {DIM_AXIS, 0, 0}}},
    {.name = "W", .direction = TENSOR_IN, .elem = ELEM_I32, .rank = 1, .dims = {{DIM_RUNTIME, 0, 0}}},
};
enum { TENSORS = sizeof tensors / sizeof tensors[0] };
static Plan plan = {
    .axes = &axis, .axis_count = 1, .tensors = tensors, .tensor_count = TENSORS, .dim_count = 1};
static int32_t lengths[SEQUENCES] = {0, 3, 1, 5};

typedef struct {
    RunProblem problem;
    int32_t *axes[1];
    int64_t dims[1];
    RunTensor run[TENSORS];
} Fixture;

static void open_fixture(Fixture *fixture, bool poison, bool spread) {
    memset(fixture, 0, sizeof *fixture);
    fixture->axes[0] = lengths;
    fixture->dims[0] = HEADS;
    for (int i = 0; i < TENSORS; i++)
        fixture->run[i] = (RunTensor){.declared = &tensors[i], .is_given = true};
    fixture->problem = (RunProblem){.plan = &plan,
                                    .arena = arena_new(),
                                    .sequences = SEQUENCES,
                                    .lengths = fixture->axes,
                                    .dims = fixture->dims,
                                    .tensors = fixture->run};
    assert_non_null(fixture->problem.arena);
    assert_true(run_make_tensors(&fixture->problem, 7, poison, spread));
    for (int i = 0; i < TENSORS; i++)
        memcpy(fixture->run[i].after, fixture->run[i].before, fixture->run[i].bytes + 2 * RUN_GUARD_BYTES);
}

static void close_fixture(Fixture *fixture) {
    run_free_tensors(&fixture->problem);
    arena_free(fixture->problem.arena);
}

// How many elements of the whole array, padding and foreign rows included, are no NaN.
static int count_numbers(const RunTensor *tensor) {
    int count = 0, bytes = elem_bytes(tensor->declared->elem);
    for (int64_t i = 0; i < (int64_t)tensor->bytes / bytes; i++)
        count += !isnan(number_read(tensor->declared->elem, false, tensor->before + RUN_GUARD_BYTES, i));
    return count;
}

static void only_elements_of_sequences_are_numbers_in_a_poisoned_input(void **state) {
    (void)state;
    for (int spread = 0; spread < 2; spread++) {
        Fixture fixture;
        open_fixture(&fixture, true, spread);
        const RunTensor *a = &fixture.run[0];
        assert_int_equal(count_numbers(a), ROWS * HEADS * COLUMNS);
        assert_true(a->extents[0] > ROWS);
        for (int d = 0; d < 2; d++)
            assert_int_equal(a->strides[d] * 2 % 16, 0);
        for (int s = 1; s < SEQUENCES; s++) // packed exactly, or apart by listed rows
            assert_true(spread ? a->bases[0][s] >= a->bases[0][s - 1] + lengths[s - 1]
                               : a->bases[0][s] == a->bases[0][s - 1] + lengths[s - 1]);
        close_fixture(&fixture);
    }
}

static void without_poison_tensors_are_dense(void **state) {
    (void)state;
    Fixture fixture;
    open_fixture(&fixture, false, false);
    assert_int_equal(fixture.run[0].extents[0], ROWS);
    assert_int_equal(fixture.run[0].bytes / 2, ROWS * HEADS * 16); // rows of 12 elements lie on 16 bytes
    close_fixture(&fixture);
}

static void a_tensor_without_an_axis_is_filled_once(void **state) {
    (void)state;
    Fixture fixture;
    open_fixture(&fixture, true, true);
    for (int i = 0; i < HEADS; i++) {
        double value = number_read(ELEM_I32, false, fixture.run[2].before + RUN_GUARD_BYTES, i);
        assert_true(value >= 0 && value < 16);
    }
    close_fixture(&fixture);
}

static void every_byte_that_may_not_change_is_watched(void **state) {
    (void)state;
    Fixture fixture;
    open_fixture(&fixture, true, true);
    RunTensor *c = &fixture.run[1];
    assert_int_equal(run_count_strays(c, NULL), 0);
    size_t all = c->bytes + 2 * RUN_GUARD_BYTES;
    for (size_t i = 0; i < all; i++) {
        c->after[i] ^= 1;
        assert_int_equal(run_count_strays(c, NULL), 1);
        c->after[i] ^= 1;
    }
    close_fixture(&fixture);
}

static void elements_that_were_to_be_written_are_no_strays(void **state) {
    (void)state;
    Fixture fixture;
    open_fixture(&fixture, true, true);
    RunTensor *c = &fixture.run[1];
    bool written[HEADS * 64] = {false};
    assert_true(c->extents[1] < 64);
    int64_t row = c->bases[1][3] + 2,
            column = 1 * c->extents[1] + row; // head 1 of a row of the last sequence
    written[column] = true;
    size_t at = RUN_GUARD_BYTES + (size_t)(c->strides[0] + row) * 4;
    memset(c->after + at, 0, 4);
    assert_int_equal(run_count_strays(c, written), 0);
    c->after[at + 4] ^= 1;
    assert_int_equal(run_count_strays(c, written), 1);
    close_fixture(&fixture);
}

// Stands for a device whose kernel writes ones.
jfa_status run_on_device(RunDevice *device, RunProblem *problem, int64_t seed, double *milliseconds,
                         jfa_error *error) {
    (void)device, (void)seed, (void)error;
    RunTensor *c = &problem->tensors[1];
    float one = 1;
    for (size_t at = RUN_GUARD_BYTES; at < RUN_GUARD_BYTES + c->bytes; at += sizeof one)
        memcpy(c->after + at, &one, sizeof one);
    *milliseconds = 1;
    return JFA_OK;
}

int run_status(jfa_status status, const jfa_error *error) {
    (void)error;
    return status == JFA_OK ? STATUS_GOOD : STATUS_INTERNAL;
}

static void outputs_of_two_devices_may_differ_by_what_the_reference_allows(void **state) {
    (void)state;
    static const struct {
        float value;
        double bound;
        int status;
    } CASES[] = {{1, 0, STATUS_GOOD},        {1.25F, 0.5, STATUS_GOOD},   {1.25F, 0.1, STATUS_MISMATCH},
                 {0.75F, 0.25, STATUS_GOOD}, {NAN, 100, STATUS_MISMATCH}, {INFINITY, 100, STATUS_MISMATCH}};
    CliOptions options = {.device = "a", .against = "b"};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Fixture fixture;
        RunDevice device = {0};
        open_fixture(&fixture, true, true);
        assert_int_equal(run_on_other(&device, &fixture.problem, 0), STATUS_GOOD);
        RunTensor *c = &fixture.run[1];
        assert_true(c->other_written > 0 && c->other_written == (int64_t)c->bytes / 4);
        c->bound = CASES[i].bound;
        memcpy(c->after + RUN_GUARD_BYTES + 4, &CASES[i].value, 4);
        assert_int_equal(run_compare_devices(&fixture.problem, &options), CASES[i].status);
        close_fixture(&fixture);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_elements_of_sequences_are_numbers_in_a_poisoned_input),
        cmocka_unit_test(without_poison_tensors_are_dense),
        cmocka_unit_test(a_tensor_without_an_axis_is_filled_once),
        cmocka_unit_test(every_byte_that_may_not_change_is_watched),
        cmocka_unit_test(elements_that_were_to_be_written_are_no_strays),
        cmocka_unit_test(outputs_of_two_devices_may_differ_by_what_the_reference_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
