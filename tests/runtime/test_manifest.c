// test_manifest.c: the manifest's text, read and written.
#include "tests/runtime/fixture.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_TEXT = 4096 };

static char *written(const jfa_manifest *manifest) {
    size_t length;
    jfa_error err = {0};
    if (jfa_manifest_write(manifest, NULL, 0, &length, &err))
        fail_msg("%s", err.message);
    char *text = malloc(length + 1);
    assert_non_null(text);
    size_t again;
    assert_int_equal(jfa_manifest_write(manifest, text, length + 1, &again, &err), JFA_OK);
    assert_int_equal(again, length);
    assert_int_equal(strlen(text), length);
    return text;
}

static void a_manifest_is_the_same_after_reading_and_writing(void **state) {
    (void)state;
    const char *const texts[] = {SAMPLE_MANIFEST, MATMUL_MANIFEST};
    for (size_t i = 0; i < 2; i++) {
        jfa_manifest manifest = fixture_manifest(texts[i]);
        char *text = written(&manifest);
        assert_string_equal(text, texts[i]);
        free(text);
    }
}

static void so_is_one_with_a_watchdog(void **state) {
    (void)state;
    char *watched = fixture_watched();
    jfa_manifest m = fixture_manifest(watched);
    assert_true(m.watchdog_ms == 100 && m.wait_count == 2 && m.file_count == 1);
    assert_string_equal(m.files[0], "a schedule.jfa");
    assert_string_equal(m.waits[1].role, "load");
    assert_string_equal(m.waits[1].pipe, "scores");
    assert_true(m.waits[0].is_full && !m.waits[1].is_full);
    assert_true(m.waits[0].count == 1 && m.waits[0].stages == 3 && m.waits[0].line == 73);
    // The writer's order: the reader takes any.
    char *in_order = fixture_edit(watched, "watchdog 100\n", ""), *text = written(&m);
    char *expected = fixture_edit(in_order, "file a", "watchdog 100\nfile a");
    assert_string_equal(text, expected);
    free(text);
    free(expected);
    free(in_order);
    free(watched);
}

static void what_was_read_is_what_the_text_says(void **state) {
    (void)state;
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    assert_string_equal(m.info.source, "examples/my sample.jfa");
    assert_int_equal(m.info.threads, 384);
    assert_int_equal(m.info.dims[1].divides, 0);
    assert_int_equal(m.info.dims[0].divides, -1);
    assert_int_equal(m.info.tensors[3].rank, 2);
    assert_true(m.info.tensors[3].optional);
    assert_int_equal(m.info.tensors[3].dims[1].kind, JFA_DIM_AXIS);
    assert_int_equal(m.info.tensors[0].dims[2].extent, 128);
    assert_true(m.info.params[0].default_value == 0.088388347648318447);
    assert_false(m.info.params[1].has_default);
    assert_true(m.info.params[1].is_positive && !m.info.params[0].is_positive);
    assert_int_equal(m.fields[6].dim, 1);
    assert_int_equal(m.maps[2].entries[2].box, 1);
    assert_int_equal(m.maps[0].entries[1].kind, JFA_ENTRY_ROWS);
    assert_int_equal(m.args[5].dim, 1);
    assert_int_equal(jfa_manifest_parameter_bytes(&m), 436);
}

static void kernels_stand_one_behind_the_other(void **state) {
    (void)state;
    char text[2 * MOST_TEXT];
    snprintf(text, sizeof text, "%s%s", SAMPLE_MANIFEST, MATMUL_MANIFEST);
    jfa_manifest m;
    size_t first, second;
    assert_int_equal(jfa_manifest_read(text, strlen(text), &m, &first, NULL), JFA_OK);
    assert_string_equal(m.info.name, "sample");
    assert_int_equal(jfa_manifest_read(text + first, strlen(text) - first, &m, &second, NULL), JFA_OK);
    assert_string_equal(m.info.name, "matmul");
    assert_int_equal(first + second, strlen(text));
}

static void every_malformed_manifest_is_refused_with_its_reason(void **state) {
    (void)state;
    static const struct {
        const char *find, *replace, *message;
    } CASES[] = {
        {"jfa-manifest 1\n", "", "line 1: 'kernel' is not the start"},
        {"jfa-manifest 1\n", "jfa-manifest 2\n", "version 2; this library reads version 1"},
        {"jfa-manifest 1\n", "jfa-manifest x\n", "'x' is not an integer"},
        {"kernel sample\n", "", "without a line 'kernel'"},
        {"kernel sample\n", "kernel sample\nkernel sample\n", "'kernel' comes twice"},
        {"kernel sample\n", "kernel 1sample\n", "'1sample' is not a name"},
        {"kernel sample\n", "kernel two words\n", "'kernel' has 2 operands"},
        {"kernel sample\n", "kernel \n", "'' is not a name"},
        {"kernel sample\n", "colonel sample\n", "'colonel' begins no line"},
        {"entry sample_entry\n", "entry a-b\n", "'a-b' is not a name"},
        {"target sm_100a\n", "target \n", "the target is empty"},
        {"source examples/my sample.jfa\n", "source\n", "'source' has 0 operands"},
        {"source examples/my sample.jfa\n", "source  x\n", "source file's name is empty or has blanks"},
        {"threads 384", "threads 48", "multiple of 32"},
        {"threads 384", "threads 2048", "threads is 2048"},
        {"threads 384", "threads 99999999999999999999", "is not an integer"},
        {"threads 384", "threads +384", "is not an integer"},
        {"shared 131072", "shared 9999999", "shared is 9999999"},
        {"cluster 1", "cluster 17", "cluster is 17"},
        {"axis k\n", "axis k\naxis k\n", "the name 'k' is given to two"},
        {"axis k\n", "axis k\naxis 1\n", "'1' is not a name"},
        {"axis k\n", "axis k\naxis a\naxis b\naxis c\naxis d\naxis e\naxis f\naxis g\n", "more than 8 lines"},
        {"dim kv_heads\n", "dim k\n", "no dim 'kv_heads' above"},
        {"divides kv_heads heads\n", "divides kv_heads nothing\n", "no dim 'nothing' above"},
        {"divides kv_heads heads\n", "divides kv_heads kv_heads\n", "divides itself"},
        {"divides kv_heads heads\n", "divides kv_heads heads\ndivides kv_heads heads\n", "divides two dims"},
        {"tensor Q in", "tensor Q from", "'from' is no direction"},
        {"tensor Q in bf16", "tensor Q in bf17", "'bf17' is no element type"},
        {"q,heads,128", "q,heads,0", "'0' is not an integer of 1"},
        {"q,heads,128", "q,heads,", "no axis or dim ''"},
        {"q,heads,128", "q,tails,128", "no axis or dim 'tails'"},
        {"q,heads,128", "q,q,q,q,q,128", "more than 5 lines of kind 'dim of a tensor'"},
        {"heads,q optional", "heads,q sometimes", "'sometimes' follows the dims"},
        {"tensor K in", "tensor Q in bf16 k,heads,128\ntensor K in", "the name 'Q' is given to two"},
        {"param scale f32", "param scale bf16", "neither f32 nor i32"},
        {"param scale f32 0.088388347648318447", "param scale f32 1/8", "'1/8' is not a number"},
        {"param scale f32 0.088388347648318447", "param scale f32 nan", "not a number"},
        {"param scale f32 0.088388347648318447", "param scale f32 ", "'' is not a number"},
        {"param window i32", "param window i32 1.5", "has the default 1.5"},
        {"param window i32\n", "param window i32 0\n", "declared > 0 and has the default 0"},
        {"positive window\n", "positive scale\npositive width\n", "no param 'width'"},
        {"factor heads", "factor q", "no dim 'q'"},
        {"factor heads\n", "factor heads\nfactor heads\n", "factor twice"},
        {"block q 256", "block q 0", "'0' is not an integer of 1"},
        {"block q 256\n", "block q 256\nblock q 128\n", "blocked twice"},
        {"persistent\n", "persistent\npersistent\n", "comes twice"},
        {"persistent\n", "persistent 0\n", "1"},
        {"persistent\n", "persistent 33\n", "32"},
        {"field seq", "field sequence", "'sequence' is not known"},
        {"field seq", "field seq q", "too few or too many operands"},
        {"field start q", "field start k", "not blocked"},
        {"field base K 0", "field base K 1", "which is no axis"},
        {"field base K 0", "field base K 3", "which has 3"},
        {"field base K 0", "field base K -1", "'-1' is not an integer"},
        {"field base K 0", "field base M 0", "no tensor 'M'"},
        {"map K 128 128", "map K 100 128", "swizzle is 100"},
        {"map K 128 128", "map K 64 128", "128 bytes of a row pass the swizzle's 64"},
        {"map K 128 128", "map K 128 96", "tiles of 96 columns are not made of boxes of 64"},
        {"map K 128 128 col:64 rows:0:128 chunk:2 dim", "map K 128 126 col:63 rows:0:128 dim",
         "126 bytes of a row are no multiple of 16"},
        {"map K 128 128 col:64 rows:0:128", "map K 128 128 rows:0:128 col:64", "'col' is not the first"},
        {"map K 128 128 col:64 rows:0:128 chunk:2", "map K 128 128 col:64 rows:0:128 chunk:3",
         "3 chunks of 64"},
        {"map K 128 128 col:64 rows:0:128 chunk:2", "map K 128 128 col:64 rows:0:128 chunk:2 chunk:2",
         "operands"},
        {"map K 128 128 col:64 rows:0:128", "map K 128 128 col:64 rows:1:128", "for one dim"},
        {"map K 128 128 col:64 rows:0:128", "map K 128 128 col:64 rows:0:257", "box of entry 1 is 257"},
        {"map K 128 128 col:64 rows:0:128", "map K 128 128 col:64 rows:2:128", "entry 1 names dim 2"},
        {"map K 128 128 col:64 rows:0:128", "map K 128 128 col:64 rows:0", "too few or too many parts"},
        {"map K 128 128 col:64 rows:0:128", "map K 128 128 col:64 rows:0:1:1", "too many parts"},
        {"map K 128 128 col:64 rows:0:128", "map K 128 128 col:64 lines:0:1", "'lines' is not known"},
        {"chunk:2 dim:1:1 end:0\nmap O", "chunk:2 end:0\nmap O", "dim 1 of tensor 'K' is not reached"},
        {"chunk:2 dim:1:1 end:0\nmap O", "chunk:2 dim:1:1\nmap O", "together"},
        {"arg 128 128 map 1", "arg 128 128 map 3", "map number 3, which there is not"},
        {"arg 128 128 map 1", "arg 128 64 map 1", "it must have 128"},
        {"arg 128 128 map 1", "arg 64 128 map 1", "an arg's offset is 64"},
        {"arg 416 4 dim heads", "arg 418 4 dim heads", "multiple of 4"},
        {"arg 432 4 items", "arg 32764 4 items", "an arg's offset is 32764"},
        {"arg 392 8 stride LSE 0", "arg 392 8 stride LSE 2", "which has 2"},
        {"arg 392 8 stride LSE 0", "arg 392 8 stride LSE", "too few or too many operands"},
        {"arg 424 4 param window", "arg 424 4 param weight", "no param 'weight'"},
        {"\nend\n", "\n", "the text ends before 'end'"},
        {"\nend\n", "\nend", "the text ends before 'end'"},
        {"axis q\n", "axis q \n", "'axis' has 2 operands"},
        {"axis q\n", "axis  q\n", "'axis' has 2 operands"},
        {"axis q\n", "axis q\n\n", "'' begins no line"},
    };
    int failures = 0;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char *text = fixture_edit(SAMPLE_MANIFEST, CASES[i].find, CASES[i].replace);
        jfa_manifest m;
        jfa_error err = {0};
        size_t used;
        jfa_status status = jfa_manifest_read(text, strlen(text), &m, &used, &err);
        if (status != JFA_ERROR_MANIFEST || err.status != status || !strstr(err.message, CASES[i].message)) {
            print_error("'%s' gives '%s', not '%s'\n", CASES[i].replace, err.message, CASES[i].message);
            failures++;
        }
        free(text);
    }
    assert_int_equal(failures, 0);
}

static void so_is_a_watchdog_that_makes_no_sense(void **state) {
    (void)state;
    static const struct {
        const char *find, *replace, *message;
    } CASES[] = {
        {"watchdog 100\n", "watchdog 0\n", "'0' is not an integer of 1 to 3600000"},
        {"watchdog 100\n", "watchdog 3600001\n", "is not an integer"},
        {"watchdog 100\n", "watchdog 100\nwatchdog 100\n", "'watchdog' comes twice"},
        {"watchdog 100\n", "", "a watchdog of 0 ms has 1 args and 2 waits"},
        {"arg 440 8 watchdog\n", "", "a watchdog of 100 ms has 0 args"},
        {"arg 440 8 watchdog\n", "arg 440 8 watchdog\narg 448 8 watchdog\n", "has 2 args"},
        {"arg 440 8 watchdog\n", "arg 440 4 watchdog\n", "it must have 8"},
        {"arg 440 8 watchdog\n", "arg 436 8 watchdog\n", "multiple of 8"},
        {"file a schedule.jfa\n", "", "a wait's file is 0; it must be 0 to -1"},
        {"file a schedule.jfa\n", "file \n", "name of a wait's file is empty"},
        {"mma full kv", "mma half kv", "'half' is no state of a slot"},
        {"mma full kv", "m-a full kv", "'m-a' is not a name of kind 'role'"},
        {"mma full kv", "mma full 1kv", "'1kv' is not a name of kind 'pipe'"},
        {"kv 1 3 0 73", "kv 0 3 0 73", "number of a wait's pipes is 0"},
        {"kv 1 3 0 73", "kv 1 0 0 73", "number of a wait's stages is 0"},
        {"kv 1 3 0 73", "kv 1 3 1 73", "a wait's file is 1"},
        {"kv 1 3 0 73", "kv 1 3 0 0", "a wait's line is 0"},
        {"kv 1 3 0 73", "kv 1 3 0", "'wait' has 6 operands"},
        {"kv 1 3 0 73", "kv 1 3 -1 73", "'-1' is not an integer"},
    };
    char *watched = fixture_watched();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char *text = fixture_edit(watched, CASES[i].find, CASES[i].replace);
        jfa_manifest m;
        jfa_error err = {0};
        size_t used;
        if (jfa_manifest_read(text, strlen(text), &m, &used, &err) != JFA_ERROR_MANIFEST ||
            !strstr(err.message, CASES[i].message))
            fail_msg("'%s' gives '%s', not '%s'", CASES[i].replace, err.message, CASES[i].message);
        free(text);
    }
    free(watched);
}

static void a_text_that_ends_early_is_refused_wherever_it_ends(void **state) {
    (void)state;
    for (size_t length = 0; length < strlen(SAMPLE_MANIFEST); length++) {
        // An allocation of just that size, for the sanitizer to guard.
        char *text = malloc(length ? length : 1);
        assert_non_null(text);
        memcpy(text, SAMPLE_MANIFEST, length);
        jfa_manifest m;
        size_t used;
        assert_int_equal(jfa_manifest_read(text, length, &m, &used, NULL), JFA_ERROR_MANIFEST);
        free(text);
    }
}

static uint32_t random_state = 1;
static uint32_t random_number(void) {
    return random_state = random_state * 1664525u + 1013904223u;
}

static void a_damaged_text_is_refused_or_read_but_never_crashes(void **state) {
    (void)state;
    int good = 0, bad = 0;
    char *watched = fixture_watched();
    for (int round = 0; round < 20000; round++) {
        char text[MOST_TEXT];
        size_t bytes = strlen(watched);
        memcpy(text, watched, bytes);
        for (int k = 0; k < 1 + round % 4; k++) {
            uint32_t place = (random_number() >> 8) % bytes, kind = random_number() >> 30;
            static const char LETTERS[] = " \n:,09-akQ";
            text[place] = kind ? LETTERS[(random_number() >> 8) % 10] : (char)(random_number() >> 24);
        }
        jfa_manifest m;
        size_t used, length;
        if (jfa_manifest_read(text, bytes, &m, &used, NULL)) {
            bad++;
        } else {
            good++;
            assert_int_equal(jfa_manifest_write(&m, NULL, 0, &length, NULL), JFA_OK);
        }
    }
    assert_true(good > 0 && bad > 0);
    free(watched);
}

static void a_line_too_long_or_with_a_nul_is_refused(void **state) {
    (void)state;
    char line[3000];
    memset(line, 'x', sizeof line);
    memcpy(line, "source ", 7);
    line[sizeof line - 2] = '\n';
    line[sizeof line - 1] = 0;
    char *text = fixture_edit(SAMPLE_MANIFEST, "source examples/my sample.jfa\n", line);
    jfa_manifest m;
    jfa_error err;
    size_t used, length = strlen(text);
    assert_int_equal(jfa_manifest_read(text, length, &m, &used, &err), JFA_ERROR_MANIFEST);
    assert_non_null(strstr(err.message, "longer than 1023 bytes"));
    strcpy(text, SAMPLE_MANIFEST);
    text[24] = 0; // within a name, which would be shorter then
    err.message[0] = 0;
    assert_int_equal(jfa_manifest_read(text, strlen(SAMPLE_MANIFEST), &m, &used, &err), JFA_ERROR_MANIFEST);
    assert_non_null(strstr(err.message, "with a NUL"));
    free(text);
}

typedef void (*Damage)(jfa_manifest *);

static void damage_unterminated(jfa_manifest *m) {
    memset(m->info.tensors[1].name, 'x', JFA_NAME_BYTES);
}
static void damage_count(jfa_manifest *m) {
    m->info.tensor_count = JFA_MAX_TENSORS + 1;
}
static void damage_negative_count(jfa_manifest *m) {
    m->map_count = -1;
}
static void damage_no_fields(jfa_manifest *m) {
    m->field_count = 0;
}
static void damage_dtype(jfa_manifest *m) {
    m->info.tensors[0].dtype = (jfa_dtype)99;
}
static void damage_direction(jfa_manifest *m) {
    m->info.tensors[0].direction = (jfa_direction)-1;
}
static void damage_rank(jfa_manifest *m) {
    m->info.tensors[0].rank = 6;
}
static void damage_dim_kind(jfa_manifest *m) {
    m->info.tensors[0].dims[0].kind = (jfa_dim_kind)7;
}
static void damage_dim_index(jfa_manifest *m) {
    m->info.tensors[0].dims[0].index = 2;
}
static void damage_divides(jfa_manifest *m) {
    m->info.dims[0].divides = -2;
}
static void damage_field_kind(jfa_manifest *m) {
    m->fields[0].kind = (jfa_field_kind)-1;
}
static void damage_entry_kind(jfa_manifest *m) {
    m->maps[0].entries[1].kind = (jfa_map_entry_kind)9;
}
static void damage_map_rank(jfa_manifest *m) {
    m->maps[0].rank = 6;
}
static void damage_map_tensor(jfa_manifest *m) {
    m->maps[0].tensor = -1;
}
static void damage_arg_kind(jfa_manifest *m) {
    m->args[0].kind = JFA_ARG_KIND_COUNT;
}
static void damage_arg_offset(jfa_manifest *m) {
    m->args[0].offset = INT64_MAX;
}
static void damage_factor(jfa_manifest *m) {
    m->factors[0] = 2;
}
static void damage_block(jfa_manifest *m) {
    m->blocks[0].size = INT64_MAX;
}
static void damage_newline(jfa_manifest *m) {
    strcpy(m->info.source, "a\nb");
}
static void damage_wait_name(jfa_manifest *m) {
    m->watchdog_ms = 1;
    m->args[m->arg_count++] = (jfa_arg){JFA_ARG_WATCHDOG, 0, 0, 440, 8};
    m->wait_count = m->file_count = 1;
    strcpy(m->files[0], "a");
    m->waits[0] = (jfa_wait){.count = 1, .stages = 1, .line = 1, .pipe = "p"};
    memset(m->waits[0].role, 'x', JFA_NAME_BYTES);
}
static void damage_wait_count(jfa_manifest *m) {
    m->wait_count = JFA_MAX_WAITS + 1;
}
static void damage_file_count(jfa_manifest *m) {
    m->file_count = -1;
}
static void damage_blank(jfa_manifest *m) {
    strcpy(m->info.constants[0].value, "1 2");
}

static void a_manifest_that_is_inconsistent_is_not_written(void **state) {
    (void)state;
    static const Damage DAMAGES[] = {
        damage_unterminated, damage_count,      damage_negative_count, damage_no_fields,  damage_dtype,
        damage_direction,    damage_rank,       damage_dim_kind,       damage_dim_index,  damage_divides,
        damage_field_kind,   damage_entry_kind, damage_map_rank,       damage_map_tensor, damage_arg_kind,
        damage_arg_offset,   damage_factor,     damage_block,          damage_newline,    damage_blank,
        damage_wait_name,    damage_wait_count, damage_file_count,
    };
    for (size_t i = 0; i < sizeof DAMAGES / sizeof DAMAGES[0]; i++) {
        jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
        jfa_error err = {0};
        size_t length;
        DAMAGES[i](&m);
        if (jfa_manifest_write(&m, NULL, 0, &length, &err) != JFA_ERROR_MANIFEST || !err.message[0] || length)
            fail_msg("damage %zu is written", i);
    }
}

static void a_text_longer_than_its_place_is_cut_and_counted(void **state) {
    (void)state;
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    char text[64];
    memset(text, '!', sizeof text);
    size_t length;
    assert_int_equal(jfa_manifest_write(&m, text, 20, &length, NULL), JFA_OK);
    assert_int_equal(length, strlen(SAMPLE_MANIFEST));
    assert_memory_equal(text, SAMPLE_MANIFEST, 19);
    assert_int_equal(text[19], 0);
    assert_int_equal(text[20], '!');
}

static void numbers_have_a_point_in_every_locale(void **state) {
    (void)state;
    static const char *const NAMES[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"};
    bool found = false;
    for (size_t i = 0; i < 4 && !found; i++)
        found = setlocale(LC_ALL, NAMES[i]) != NULL;
    if (!found)
        skip();
    jfa_manifest m = fixture_manifest(SAMPLE_MANIFEST);
    char *text = written(&m);
    setlocale(LC_ALL, "C");
    assert_string_equal(text, SAMPLE_MANIFEST);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_is_the_same_after_reading_and_writing),
        cmocka_unit_test(so_is_one_with_a_watchdog),
        cmocka_unit_test(what_was_read_is_what_the_text_says),
        cmocka_unit_test(kernels_stand_one_behind_the_other),
        cmocka_unit_test(every_malformed_manifest_is_refused_with_its_reason),
        cmocka_unit_test(so_is_a_watchdog_that_makes_no_sense),
        cmocka_unit_test(a_text_that_ends_early_is_refused_wherever_it_ends),
        cmocka_unit_test(a_damaged_text_is_refused_or_read_but_never_crashes),
        cmocka_unit_test(a_line_too_long_or_with_a_nul_is_refused),
        cmocka_unit_test(a_manifest_that_is_inconsistent_is_not_written),
        cmocka_unit_test(a_text_longer_than_its_place_is_cut_and_counted),
        cmocka_unit_test(numbers_have_a_point_in_every_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
