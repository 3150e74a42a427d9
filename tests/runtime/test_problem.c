// test_problem.c: what a problem may say, and the sentence for everything that it may not.
#include "tests/runtime/fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int32_t Q_OFFSETS[] = {0, 100, 100, 356}, K_OFFSETS[] = {0, 0, 50, 300};
static const int32_t LATE[] = {1, 2, 3, 4}, FALLING[] = {0, 5, 4, 6}, NEGATIVE[] = {1, -1, 1};
static const int32_t APART[] = {256, 0, 0}, TOGETHER[] = {0, 0, 99}, BEFORE[] = {-1, 0, 0},
                     BEHIND[] = {0, 0, 101};

static void make(Sample *s) {
    fixture_sample(s, 3, 356, 300, 8, 2);
    s->axes[0].offsets = Q_OFFSETS;
    s->axes[1].offsets = K_OFFSETS;
}

static jfa_status bind(const Sample *sample, jfa_bound *bound, jfa_error *err) {
    static jfa_manifest m;
    m = fixture_manifest(SAMPLE_MANIFEST);
    jfa_status status = jfa_bind(&m, &sample->problem, bound, err);
    jfa_bound_release(bound);
    return status;
}

typedef void (*Change)(Sample *);

// ---------------------------------------------------------------- allowed

static void nothing(Sample *s) {
    (void)s;
}
static void any_order(Sample *s) {
    jfa_tensor q = s->tensors[0];
    s->tensors[0] = s->tensors[3];
    s->tensors[3] = q;
}
static void without_optional(Sample *s) {
    s->problem.tensor_count = 3;
}
static void more_rows(Sample *s) {
    s->tensors[SAMPLE_K].extents[0] = 1000;
}
static void dims_named(Sample *s) {
    s->dims[0] = (jfa_dim){"kv_heads", 2};
    s->problem.dims = s->dims;
    s->problem.dim_count = 1;
}
static void expanded_input(Sample *s) {
    s->tensors[SAMPLE_K].strides[0] = s->tensors[SAMPLE_K].strides[1] = 0;
}
static void all_params(Sample *s) {
    s->params[1] = (jfa_param){"scale", -INFINITY};
    s->problem.param_count = 2;
}
static void shared_input(Sample *s) {
    s->tensors[SAMPLE_Q].rows[0].kind = JFA_ROWS_SHARED;
    s->tensors[SAMPLE_Q].extents[0] = 256;
}
static void listed_output(Sample *s) {
    s->tensors[SAMPLE_O].rows[0] = (jfa_rows){JFA_ROWS_LISTED, 0, APART};
}
static void padded_output(Sample *s) {
    s->tensors[SAMPLE_O].rows[0] = (jfa_rows){JFA_ROWS_PADDED, 256, NULL};
    s->tensors[SAMPLE_O].extents[0] = 768;
}
// Q, K and O as column slices of one array with rows of 4096 elements.
static void fused_slices(Sample *s) {
    const int64_t starts[] = {0, 1024, 2048};
    for (int i = 0; i < 3; i++) {
        s->tensors[i].address = 0x100000000000 + 2 * (uint64_t)starts[i];
        s->tensors[i].strides[0] = 4096;
    }
}
static void fused_backwards(Sample *s) {
    fused_slices(s);
    s->tensors[SAMPLE_O].address = 0x100000000000;
    s->tensors[SAMPLE_Q].address = 0x100000001000;
}
static void side_by_side(Sample *s) {
    s->tensors[SAMPLE_O].address = s->tensors[SAMPLE_Q].address + 356 * 8 * 128 * 2;
}
static void empty_everything(Sample *s) {
    s->problem.sequences = 0;
    for (int i = 0; i < 3; i++)
        s->tensors[i].extents[0] = 0;
    s->tensors[SAMPLE_LSE].extents[1] = 0;
    for (int i = 0; i < 4; i++)
        s->tensors[i].address = 0;
}

static void every_layout_that_makes_sense_is_taken(void **state) {
    (void)state;
    static const struct {
        const char *what;
        Change change;
    } CASES[] = {
        {"as it is", nothing},
        {"in another order", any_order},
        {"without the optional tensor", without_optional},
        {"more rows than needed", more_rows},
        {"dims named again", dims_named},
        {"an expanded input", expanded_input},
        {"all params", all_params},
        {"a shared input", shared_input},
        {"a listed output", listed_output},
        {"a padded output", padded_output},
        {"slices of a fused tensor", fused_slices},
        {"an output before the inputs", fused_backwards},
        {"an output right behind an input", side_by_side},
        {"no sequences and no memory", empty_everything},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Sample sample;
        jfa_bound bound;
        jfa_error err = {0};
        make(&sample);
        CASES[i].change(&sample);
        if (bind(&sample, &bound, &err) || err.message[0])
            fail_msg("%s: %s", CASES[i].what, err.message);
    }
}

static void params_left_out_take_their_default(void **state) {
    (void)state;
    Sample sample;
    jfa_bound bound;
    make(&sample);
    assert_int_equal(bind(&sample, &bound, NULL), JFA_OK);
    assert_true(bound.params[0] == 0.088388347648318447 && bound.params[1] == 5);
    assert_int_equal(bound.dims[0], 8);
    assert_int_equal(bound.dims[1], 2);
}

// ---------------------------------------------------------------- refused

static void many_axes_nowhere(Sample *s) {
    s->problem.axes = NULL;
}
static void negative_count(Sample *s) {
    s->problem.tensor_count = -1;
}
static void unknown_axis(Sample *s) {
    s->axes[1].name = "z";
}
static void nameless_axis(Sample *s) {
    s->axes[1].name = NULL;
}
static void axis_twice(Sample *s) {
    s->axes[1].name = "q";
}
static void axis_missing(Sample *s) {
    s->problem.axis_count = 1;
}
static void both_said(Sample *s) {
    s->axes[0].lengths = Q_OFFSETS;
}
static void late_offsets(Sample *s) {
    s->axes[0].offsets = LATE;
}
static void falling_offsets(Sample *s) {
    s->axes[0].offsets = FALLING;
}
static void negative_length(Sample *s) {
    s->axes[0].offsets = NULL;
    s->axes[0].lengths = NEGATIVE;
}
static void negative_uniform(Sample *s) {
    s->axes[0].offsets = NULL;
    s->axes[0].length = -3;
}
static void unknown_tensor(Sample *s) {
    s->tensors[0].name = "X";
}
static void nameless_tensor(Sample *s) {
    s->tensors[0].name = NULL;
}
static void tensor_twice(Sample *s) {
    s->tensors[0].name = "K";
}
static void tensor_missing(Sample *s) {
    s->problem.tensor_count = 2;
}
static void wrong_dtype(Sample *s) {
    s->tensors[0].dtype = JFA_F16;
}
static void wrong_rank(Sample *s) {
    s->tensors[0].rank = 2;
}
static void wrong_constant(Sample *s) {
    s->tensors[0].extents[2] = 64;
}
static void negative_rows(Sample *s) {
    s->tensors[0].extents[0] = -1;
}
static void too_many_rows(Sample *s) {
    s->tensors[0].extents[0] = INT32_MAX;
}
static void other_heads(Sample *s) {
    s->tensors[SAMPLE_O].extents[1] = 4;
}
static void no_heads(Sample *s) {
    s->tensors[0].extents[1] = 0;
}
static void uneven_heads(Sample *s) {
    s->tensors[SAMPLE_K].extents[1] = 3;
}
static void unknown_dim(Sample *s) {
    dims_named(s);
    s->dims[0].name = "tails";
}
static void other_dim(Sample *s) {
    dims_named(s);
    s->dims[0].extent = 4;
}
static void few_rows(Sample *s) {
    s->tensors[SAMPLE_Q].extents[0] = 355;
}
static void few_shared_rows(Sample *s) {
    shared_input(s);
    s->tensors[SAMPLE_Q].extents[0] = 255;
}
static void unknown_rows(Sample *s) {
    s->tensors[0].rows[0].kind = (jfa_rows_kind)4;
}
static void negative_pitch(Sample *s) {
    s->tensors[0].rows[0] = (jfa_rows){JFA_ROWS_PADDED, -1, NULL};
}
static void huge_pitch(Sample *s) {
    s->tensors[0].rows[0] = (jfa_rows){JFA_ROWS_PADDED, INT64_MAX, NULL};
}
static void list_nowhere(Sample *s) {
    s->tensors[0].rows[0].kind = JFA_ROWS_LISTED;
}
static void list_before(Sample *s) {
    s->tensors[0].rows[0] = (jfa_rows){JFA_ROWS_LISTED, 0, BEFORE};
}
static void list_behind(Sample *s) {
    s->tensors[0].rows[0] = (jfa_rows){JFA_ROWS_LISTED, 0, BEHIND};
}
static void shared_output(Sample *s) {
    s->tensors[SAMPLE_O].rows[0].kind = JFA_ROWS_SHARED;
}
static void listed_together(Sample *s) {
    s->tensors[SAMPLE_O].rows[0] = (jfa_rows){JFA_ROWS_LISTED, 0, TOGETHER};
}
static void narrow_pitch(Sample *s) {
    s->tensors[SAMPLE_O].rows[0] = (jfa_rows){JFA_ROWS_PADDED, 49, NULL};
}
static void negative_stride(Sample *s) {
    s->tensors[0].strides[1] = -128;
}
static void address_nowhere(Sample *s) {
    s->tensors[0].address = 0;
}
static void odd_address(Sample *s) {
    s->tensors[SAMPLE_LSE].address += 2;
}
static void huge_stride(Sample *s) {
    s->tensors[0].strides[0] = INT64_MAX / 100;
}
static void end_of_memory(Sample *s) {
    s->tensors[0].address = UINT64_MAX - 1023;
}
static void expanded_output(Sample *s) {
    s->tensors[SAMPLE_O].strides[1] = 0;
}
static void folded_output(Sample *s) {
    s->tensors[SAMPLE_O].strides[0] = 1016;
}
static void same_output(Sample *s) {
    s->tensors[SAMPLE_O].address = s->tensors[SAMPLE_Q].address;
}
static void touching_output(Sample *s) {
    side_by_side(s);
    s->tensors[SAMPLE_O].address -= 2;
}
static void fused_overlap(Sample *s) {
    fused_slices(s);
    s->tensors[SAMPLE_O].address -= 2;
    s->tensors[SAMPLE_K].address = s->tensors[SAMPLE_O].address - 2 * 255;
}
static void two_outputs(Sample *s) {
    s->tensors[SAMPLE_LSE].address = s->tensors[SAMPLE_O].address + 8;
}
static void unknown_param(Sample *s) {
    s->params[0].name = "width";
}
static void nameless_param(Sample *s) {
    s->params[0].name = NULL;
}
static void param_missing(Sample *s) {
    s->problem.param_count = 0;
}
static void param_twice(Sample *s) {
    s->params[1] = s->params[0];
    s->problem.param_count = 2;
}
static void broken_integer(Sample *s) {
    s->params[0].value = 0.5;
}
static void large_integer(Sample *s) {
    s->params[0].value = 2147483648.0;
}
static void no_integer(Sample *s) {
    s->params[0].value = NAN;
}
static void not_positive(Sample *s) {
    s->params[0].value = 0;
}
static void large_float(Sample *s) {
    all_params(s);
    s->params[1].value = 1e39;
}

static void every_misfit_is_refused_with_names_and_numbers(void **state) {
    (void)state;
    static const struct {
        Change change;
        jfa_status status;
        const char *message;
    } CASES[] = {
        {many_axes_nowhere, JFA_ERROR_ARGUMENT, "the problem has 2 axes, but their array is NULL"},
        {negative_count, JFA_ERROR_ARGUMENT, "the problem has -1 tensors"},
        {unknown_axis, JFA_ERROR_NOT_FOUND, "kernel 'sample' has no axis 'z'"},
        {nameless_axis, JFA_ERROR_NOT_FOUND, "kernel 'sample' has no axis '(NULL)'"},
        {axis_twice, JFA_ERROR_PROBLEM, "axis 'q' is given twice"},
        {axis_missing, JFA_ERROR_NOT_FOUND, "axis 'k' has no lengths"},
        {both_said, JFA_ERROR_PROBLEM, "axis 'q' has both offsets and lengths"},
        {late_offsets, JFA_ERROR_PROBLEM, "axis 'q': the offsets start with 1"},
        {falling_offsets, JFA_ERROR_PROBLEM, "axis 'q': offset 2 is 4, less than the 5 before it"},
        {negative_length, JFA_ERROR_PROBLEM, "axis 'q': the length of sequence 1 is -1"},
        {negative_uniform, JFA_ERROR_PROBLEM, "axis 'q': the length of sequence 0 is -3"},
        {unknown_tensor, JFA_ERROR_NOT_FOUND, "kernel 'sample' has no tensor 'X'"},
        {nameless_tensor, JFA_ERROR_NOT_FOUND, "no tensor '(NULL)'"},
        {tensor_twice, JFA_ERROR_PROBLEM, "tensor 'K' is given twice"},
        {tensor_missing, JFA_ERROR_NOT_FOUND, "tensor 'O' is missing"},
        {wrong_dtype, JFA_ERROR_PROBLEM, "tensor 'Q' has elements of type f16; the kernel takes bf16"},
        {wrong_rank, JFA_ERROR_PROBLEM, "tensor 'Q' has 2 dims; the kernel takes 3"},
        {wrong_constant, JFA_ERROR_PROBLEM, "tensor 'Q': dim 2 is 64; the kernel was built for 128"},
        {negative_rows, JFA_ERROR_PROBLEM, "tensor 'Q': dim 0 is -1"},
        {too_many_rows, JFA_ERROR_LIMIT, "tensor 'Q': dim 0 has 2147483647 rows; it may have 2147418111"},
        {other_heads, JFA_ERROR_PROBLEM, "dim 'heads' is 4 in O, but 8 before it"},
        {no_heads, JFA_ERROR_PROBLEM, "dim 'heads' is 0 in Q"},
        {uneven_heads, JFA_ERROR_PROBLEM, "'heads' (8) must be a multiple of 'kv_heads' (3)"},
        {unknown_dim, JFA_ERROR_NOT_FOUND, "kernel 'sample' has no dim 'tails'"},
        {other_dim, JFA_ERROR_PROBLEM, "dim 'kv_heads' is 2 in K, but 4 before it"},
        {few_rows, JFA_ERROR_PROBLEM,
         "tensor 'Q': sequence 2 has 256 positions on axis 'q', from row 100 on, but dim 0 has 355"},
        {few_shared_rows, JFA_ERROR_PROBLEM,
         "sequence 2 has 256 positions on axis 'q', from row 0 on, but dim 0 has 255"},
        {unknown_rows, JFA_ERROR_PROBLEM, "rows of unknown kind 4"},
        {negative_pitch, JFA_ERROR_PROBLEM, "the pitch of dim 0 is -1"},
        {huge_pitch, JFA_ERROR_PROBLEM, "the pitch of dim 0 is 9223372036854775807"},
        {list_nowhere, JFA_ERROR_PROBLEM, "the list of dim 0 is NULL"},
        {list_before, JFA_ERROR_PROBLEM, "from row -1 on"},
        {list_behind, JFA_ERROR_PROBLEM, "from row 101 on, but dim 0 has 356"},
        {shared_output, JFA_ERROR_PROBLEM, "tensor 'O' is written, but several sequences have the same rows"},
        {listed_together, JFA_ERROR_PROBLEM,
         "tensor 'O' is written, but several sequences have the same rows"},
        {narrow_pitch, JFA_ERROR_PROBLEM, "tensor 'O' is written, but several sequences have the same rows"},
        {negative_stride, JFA_ERROR_PROBLEM, "tensor 'Q': the stride of dim 1 is -128"},
        {address_nowhere, JFA_ERROR_PROBLEM, "tensor 'Q' has elements, but its address is 0"},
        {odd_address, JFA_ERROR_PROBLEM,
         "tensor 'LSE': the address 0x400000000002 is no multiple of its elements' 4 bytes"},
        {huge_stride, JFA_ERROR_LIMIT, "tensor 'Q': extents and strides pass the address space"},
        {end_of_memory, JFA_ERROR_LIMIT, "tensor 'Q': extents and strides pass the address space"},
        {expanded_output, JFA_ERROR_PROBLEM,
         "tensor 'O' is written, but the stride 0 of dim 1 makes elements coincide"},
        {folded_output, JFA_ERROR_PROBLEM, "the stride 1016 of dim 0 makes elements coincide"},
        {same_output, JFA_ERROR_PROBLEM, "tensor 'O' is written, and overlaps tensor 'Q'"},
        {touching_output, JFA_ERROR_PROBLEM, "tensor 'O' is written, and overlaps tensor 'Q'"},
        {fused_overlap, JFA_ERROR_PROBLEM, "tensor 'O' is written, and overlaps tensor 'K'"},
        {two_outputs, JFA_ERROR_PROBLEM, "tensor 'O' is written, and overlaps tensor 'LSE'"},
        {unknown_param, JFA_ERROR_NOT_FOUND, "kernel 'sample' has no param 'width'"},
        {nameless_param, JFA_ERROR_NOT_FOUND, "kernel 'sample' has no param '(NULL)'"},
        {param_missing, JFA_ERROR_NOT_FOUND, "param 'window' is not given and has no default"},
        {param_twice, JFA_ERROR_PROBLEM, "param 'window' is given twice"},
        {broken_integer, JFA_ERROR_PROBLEM, "param 'window' is 0.5; it must be an integer"},
        {large_integer, JFA_ERROR_PROBLEM, "param 'window' is 2.14748e+09; it must be an integer"},
        {no_integer, JFA_ERROR_PROBLEM, "param 'window' is nan; it must be an integer"},
        {large_float, JFA_ERROR_PROBLEM, "param 'scale' is 1e+39, beyond the range of f32"},
        {not_positive, JFA_ERROR_PROBLEM, "param 'window' is 0; the kernel declares it > 0"},
    };
    int failures = 0;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Sample sample;
        jfa_bound bound;
        jfa_error err = {0};
        make(&sample);
        CASES[i].change(&sample);
        jfa_status status = bind(&sample, &bound, &err);
        if (status != CASES[i].status || err.status != status || !strstr(err.message, CASES[i].message)) {
            print_error("'%s', not '%s'\n", err.message, CASES[i].message);
            failures++;
        }
        assert_int_equal(bind(&sample, &bound, NULL), status); // without a place for the message
    }
    assert_int_equal(failures, 0);
}

static void a_dim_that_no_tensor_has_must_be_named(void **state) {
    (void)state;
    char *text = fixture_edit(SAMPLE_MANIFEST, "dim kv_heads\n", "dim kv_heads\ndim splits\n");
    jfa_manifest m = fixture_manifest(text);
    Sample sample;
    jfa_bound bound;
    jfa_error err;
    make(&sample);
    assert_int_equal(jfa_bind(&m, &sample.problem, &bound, &err), JFA_ERROR_NOT_FOUND);
    assert_string_equal(err.message, "dim 'splits' is not given, and no given tensor has it");
    jfa_bound_release(&bound);
    sample.dims[0] = (jfa_dim){"splits", 3};
    sample.problem.dims = sample.dims;
    sample.problem.dim_count = 1;
    assert_int_equal(jfa_bind(&m, &sample.problem, &bound, &err), JFA_OK);
    assert_int_equal(bound.dims[2], 3);
    jfa_bound_release(&bound);
    free(text);
}

static void dense_strides_are_set_or_refused(void **state) {
    (void)state;
    jfa_tensor tensor = {.rank = 3, .extents = {7, 0, 128}};
    assert_true(jfa_tensor_set_dense(&tensor));
    assert_int_equal(tensor.strides[0], 128);
    assert_int_equal(tensor.strides[1], 128);
    assert_int_equal(tensor.strides[2], 1);
    tensor.extents[1] = -1;
    assert_false(jfa_tensor_set_dense(&tensor));
    tensor.extents[1] = tensor.extents[0] = INT64_MAX / 2;
    assert_false(jfa_tensor_set_dense(&tensor));
    assert_int_equal(tensor.strides[2], 0);
    tensor.rank = 6;
    assert_false(jfa_tensor_set_dense(&tensor));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_that_makes_sense_is_taken),
        cmocka_unit_test(params_left_out_take_their_default),
        cmocka_unit_test(every_misfit_is_refused_with_names_and_numbers),
        cmocka_unit_test(a_dim_that_no_tensor_has_must_be_named),
        cmocka_unit_test(dense_strides_are_set_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
