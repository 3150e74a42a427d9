// Tuned files: what is read is what was written, entries keep their places, and a file that is damaged is
// refused where it is damaged.
#include "compiler/tuned/tuned.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static Arena *arena;

static int set_up(void **state) {
    (void)state;
    arena = arena_new();
    return arena ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

// The messages as printed; "" and the entries for a good file.
static const char *parse(const char *text, size_t length, TunedEntry **entries) {
    SourceSet *sources = arena_new_of(arena, SourceSet);
    Diag diag;
    sources->arena = arena;
    diag_init(&diag, arena, sources);
    bool good = tuned_parse(arena, &diag, source_add(sources, "t.tuned", text, length), entries);
    assert_int_equal(good, diag.error_count == 0);
    assert_true(diag.error_count <= 1);
    char *printed = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&printed, &size);
    assert_non_null(out);
    diag_print_text(&diag, out);
    fclose(out);
    const char *kept = arena_copy(arena, printed, size);
    free(printed);
    return kept;
}

#define WHEN "  when head_dim = 128\n  when dtype = bf16\n"
#define ENTRY                                                                                                \
    "kernel k\n  schedule f.s\n  target sm_90a\n  device NVIDIA H200\n" WHEN                                 \
    "  use N = -144\n  use IS = true\n"
static const char TEXT[] = "# notes\n\n" ENTRY "  measured 0.4 ms\n  on --batch 4\nend\n"
                           "kernel other\n schedule f.s\n\ttarget sm_90a \n  device a b\nend";

static void a_file_says_entries_in_order(void **state) {
    (void)state;
    TunedEntry *entries;
    assert_string_equal(parse(TEXT, strlen(TEXT), &entries), "");
    assert_string_equal(entries->kernel, "k");
    assert_string_equal(entries->schedule, "f.s");
    assert_string_equal(entries->target, "sm_90a");
    assert_string_equal(entries->device, "NVIDIA H200");
    assert_int_equal(entries->when_count, 2);
    assert_string_equal(entries->when[1].name, "dtype");
    assert_string_equal(entries->when[1].text, "bf16");
    assert_int_equal(entries->use_count, 2);
    assert_true(entries->use[0].number == -144 && !entries->use[0].is_bool);
    assert_true(entries->use[1].number == 1 && entries->use[1].is_bool);
    assert_string_equal(entries->problem, "--batch 4");
    assert_string_equal(entries->next->device, "a b");
    assert_string_equal(entries->next->target, "sm_90a");
    assert_null(entries->next->measured);
    assert_null(entries->next->next);
}

static void what_is_written_is_read_as_the_same(void **state) {
    (void)state;
    TunedEntry *entries, *again;
    parse(TEXT, strlen(TEXT), &entries);
    const char *written = tuned_text(arena, entries);
    assert_string_equal(parse(written, strlen(written), &again), "");
    assert_true(tuned_is_same(entries, again) && tuned_is_same(entries->next, again->next));
    assert_false(tuned_is_same(entries, again->next));
    assert_string_equal(tuned_text(arena, again), written);
}

static void empty_and_windows_files_are_read(void **state) {
    (void)state;
    static const char LINES[] = "kernel k\r\nschedule f.s\r\ntarget t\r\ndevice d\r\nend\r\n";
    TunedEntry *entries;
    assert_string_equal(parse("", 0, &entries), "");
    assert_null(entries);
    assert_string_equal(parse(LINES, strlen(LINES), &entries), "");
    assert_string_equal(entries->device, "d");
}

static void values_are_compared_as_numbers_where_they_are(void **state) {
    (void)state;
    assert_true(tuned_is_equal("0.50", "0.5") && tuned_is_equal("bf16", "bf16") &&
                tuned_is_equal("nan", "nan"));
    assert_false(tuned_is_equal("1", "2") || tuned_is_equal("bf16", "f16") || tuned_is_equal("1", "1x"));
}

static TunedEntry *entry_for(const char *kernel, const char *device, const char *head_dim, const char *n) {
    TunedEntry *entry = tuned_new(arena);
    entry->kernel = kernel;
    entry->schedule = "f.s";
    entry->target = "sm_90a";
    entry->device = device;
    tuned_add(entry->when, &entry->when_count, "head_dim", head_dim);
    tuned_add(entry->use, &entry->use_count, "N", n);
    return entry;
}

// "dense/H200/128=96 ..." of all entries.
static const char *summary(const TunedEntry *entries) {
    const char *text = "";
    for (; entries; entries = entries->next)
        text = arena_format(arena, "%s%s%s/%s/%s=%s", text, *text ? " " : "", entries->kernel,
                            entries->device, entries->when[0].text, entries->use[0].text);
    return text;
}

static void an_entry_takes_the_place_of_the_one_for_the_same(void **state) {
    (void)state;
    TunedEntry *entries = tuned_put(NULL, entry_for("dense", "H200", "128", "96"));
    entries = tuned_put(entries, entry_for("dense", "H200", "64", "112"));
    entries = tuned_put(entries, entry_for("dense", "H100", "128", "144"));
    entries = tuned_put(entries, entry_for("causal", "H200", "128", "160"));
    assert_string_equal(summary(entries),
                        "dense/H200/128=96 dense/H200/64=112 dense/H100/128=144 causal/H200/128=160");
    entries = tuned_put(entries, entry_for("dense", "H200", "64.0", "176"));
    entries = tuned_put(entries, entry_for("dense", "H200", "128", "64"));
    assert_string_equal(summary(entries),
                        "dense/H200/128=64 dense/H200/64.0=176 dense/H100/128=144 causal/H200/128=160");
}

// ---------------------------------------------------------------- what is wrong

static const struct {
    const char *text, *says; // the first line of what is printed
} WRONG[] = {
    {"kernel k\n  use N 144\n", "t.tuned:2:9: error: a '=' is missing, between blanks"},
    {"kernel k\n  use N=144\n", "t.tuned:2:7: error: N=144 is no name"},
    {"kernel k\n  use N = 1x\n", "t.tuned:2:11: error: '1x' is no integer of 32 bits, true or false"},
    {"kernel k\n  use N = 3000000000\n", "t.tuned:2:11: error: '3000000000' is no integer of 32 bits"},
    {"kernel k\n  use N = 99999999999999999999\n",
     "t.tuned:2:11: error: '99999999999999999999' is no integer"},
    {"kernel k\n  use N = -\n", "t.tuned:2:11: error: '-' is no integer of 32 bits"},
    {"kernel k\n  use N =\n", "t.tuned:2:10: error: a value is missing"},
    {"kernel k\n  use N = 1 2\n", "t.tuned:2:13: error: this is too much"},
    {"kernel k\n  use N = 1\n  use N = 2\n", "t.tuned:3:7: error: 'N' is said twice"},
    {"kernel k\n  target a\n  target b\n", "t.tuned:3:10: error: this is said twice"},
    {"kernel k\n  target\n", "t.tuned:2:9: error: nothing is said"},
    {"kernel k\n  devise x\n", "t.tuned:2:3: error: an entry says no 'devise'; did you mean 'device'?"},
    {"kernel k\nkernel l\n", "t.tuned:2:1: error: the entry above has no 'end'"},
    {"kernel\n", "t.tuned:1:7: error: the kernel's name is missing"},
    {"kernel 3\n", "t.tuned:1:8: error: 3 is no name"},
    {"kernel k l\n", "t.tuned:1:10: error: this is too much"},
    {"end\n", "t.tuned:1:1: error: an entry starts with 'kernel', not with 'end'"},
    {ENTRY, "t.tuned:1:1: error: this entry has no 'end': the file is cut off"},
    {"kernel k\n  schedule f.s\n  target t\nend\n", "t.tuned:1:1: error: this entry doesn't say its device"},
    {ENTRY "end\n" ENTRY "end\n", "t.tuned:10:1: error: two entries are for the same"},
    {"kernel k\n  device \x01\n", "t.tuned:2:10: error: byte 0x01 can't be part of a tuned file"},
    {"# caf\xc3\xa9\n", "t.tuned:1:6: error: byte 0xc3 can't be part of a tuned file"},
    {"kernel a234567890123456789012345678901234567890123456789012345678901234\n",
     "t.tuned:1:8: error: the kernel's name has at most 63 characters"},
};

static void what_is_wrong_is_told_at_its_place(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        TunedEntry *entries;
        const char *says = parse(WRONG[i].text, strlen(WRONG[i].text), &entries);
        if (strncmp(says, WRONG[i].says, strlen(WRONG[i].says)) != 0 || entries)
            fail_msg("%s: says: %s", WRONG[i].text, says);
    }
}

static void there_are_limits(void **state) {
    (void)state;
    char *text = malloc(1 << 20), *end = text;
    assert_non_null(text);
    TunedEntry *entries;
    end += sprintf(end, "kernel k\n");
    for (int i = 0; i <= TUNED_MAX_VALUES; i++)
        end += sprintf(end, "use N%d = 1\n", i);
    assert_non_null(
        strstr(parse(text, strlen(text), &entries), "t.tuned:130:5: error: more than 128 values"));
    end = text;
    for (int i = 0; i <= TUNED_MAX_ENTRIES; i++)
        end += sprintf(end, "kernel k%d\nschedule s\ntarget t\ndevice d\nend\n", i);
    assert_non_null(
        strstr(parse(text, strlen(text), &entries), "t.tuned:1281:1: error: more than 256 entries"));
    end = text + sprintf(text, "kernel k\ndevice ");
    memset(end, 'd', TUNED_MAX_NOTE + 1);
    assert_non_null(strstr(parse(text, (size_t)(end - text) + TUNED_MAX_NOTE + 1, &entries),
                           "t.tuned:2:8: error: more than 900 characters"));
    memset(text, '#', 1001);
    assert_non_null(strstr(parse(text, 1001, &entries), "t.tuned:1:1: error: a line has at most 1000 bytes"));
    free(text);
}

// Each byte replaced, each end cut off: an error with its place, or a file that says something else.
static void damage_is_survived(void **state) {
    (void)state;
    static const char BYTES[] = {0, '\n', ' ', '=', 'e', '9', '-', '#', (char)0xff};
    char text[sizeof TEXT];
    size_t length = strlen(TEXT), first = strcspn(TEXT, "k"),
           end = (size_t)(strstr(TEXT, "\nend\n") - TEXT) + 4;
    int refused = 0;
    for (size_t at = 0; at < length; at++) {
        TunedEntry *entries;
        Arena *kept = arena;
        arena = arena_new();
        assert_non_null(arena);
        for (size_t i = 0; i < sizeof BYTES; i++) {
            memcpy(text, TEXT, sizeof TEXT);
            text[at] = BYTES[i];
            refused += *parse(text, length, &entries) != '\0';
        }
        // A file that ends between entries is whole.
        bool is_between = at <= first || at == end || at == end + 1;
        assert_int_equal(*parse(TEXT, at, &entries) == '\0', is_between);
        arena_free(arena);
        arena = kept;
    }
    assert_true(refused > (int)length);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_says_entries_in_order),
        cmocka_unit_test(what_is_written_is_read_as_the_same),
        cmocka_unit_test(empty_and_windows_files_are_read),
        cmocka_unit_test(values_are_compared_as_numbers_where_they_are),
        cmocka_unit_test(an_entry_takes_the_place_of_the_one_for_the_same),
        cmocka_unit_test(what_is_wrong_is_told_at_its_place),
        cmocka_unit_test(there_are_limits),
        cmocka_unit_test(damage_is_survived),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
