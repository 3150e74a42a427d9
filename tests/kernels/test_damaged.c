// Damaged images of a real kernel, loaded, planned and run: bytes of its header, of what it says of itself
// (the manifest) and of its code are others. Each is refused with a message, reported as a fault, or runs to
// an end.
#include "tests/kernels/bench.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DAMAGES = 80, STEPS = 20000 };

static const int32_t LENS_Q[] = {1, 130}, LENS_K[] = {140, 0};
static const Case DENSE = {.file = "examples/dense.jfa",
                           .layout = LAYOUT_CROSS,
                           .lens_q = LENS_Q,
                           .lens_k = LENS_K,
                           .sequences = 2,
                           .heads = 2,
                           .kv_heads = 1,
                           .head_dim = 128,
                           .steps = STEPS};

typedef struct {
    char *text;
    size_t manifest, code, end; // where the numbers of the manifest and what is behind them begin
} Image;

static Image build_image(void) {
    Outcome outcome = {0};
    Image image = {.text = bench_build_case(&DENSE, &outcome)};
    if (!image.text)
        fail_msg("%s", outcome.message);
    const char *symbol = strstr(image.text, "jfa_manifest["), *list = symbol ? strchr(symbol, '{') : NULL;
    const char *close = list ? strchr(list, '}') : NULL;
    assert_non_null(close);
    image.manifest = (size_t)(list + 1 - image.text);
    image.code = (size_t)(close - image.text);
    image.end = strlen(image.text);
    return image;
}

static uint32_t random_below(uint32_t *state, size_t limit) {
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(*state >> 8) * limit >> 24);
}

// What it came to; a kernel that is refused or fails has a reason to tell.
typedef struct {
    int refused, faults, ran;
} Tally;

static void run_damaged(const char *text, Tally *tally) {
    Outcome outcome = {0};
    bench_run_text(&DENSE, text, &outcome);
    if (outcome.fault.kind != SIM_FAULT_NONE)
        tally->faults++;
    else if (outcome.message[0])
        tally->refused++;
    else
        tally->ran++;
    if (outcome.fault.kind != SIM_FAULT_NONE)
        assert_true(outcome.message[0]);
    if (strstr(outcome.message, "internal"))
        fail_msg("%s", outcome.message);
}

static void as_built_it_runs(void **state) {
    const Image *image = *state;
    Outcome outcome = {0};
    bench_run_text(&DENSE, image->text, &outcome);
    bench_expect_right(&DENSE, &outcome);
}

static void damage_bytes(const Image *image, size_t from, size_t to, uint32_t seed) {
    Tally tally = {0};
    for (int i = 0; i < DAMAGES; i++) {
        char *text = strdup(image->text);
        for (uint32_t k = 0; k <= random_below(&seed, 3); k++) {
            size_t at = from + random_below(&seed, to - from);
            text[at] ^= (char)(1 << random_below(&seed, 8));
        }
        run_damaged(text, &tally);
        free(text);
    }
    assert_true(tally.refused + tally.faults > DAMAGES / 4); // that the damage does damage
}

static void bytes_of_the_header_are_others(void **state) {
    const Image *image = *state;
    damage_bytes(image, 0, image->manifest, 1);
}

static void bytes_of_the_manifests_array_are_others(void **state) {
    const Image *image = *state;
    damage_bytes(image, image->manifest, image->code, 2);
}

static void bytes_of_the_code_are_others(void **state) {
    const Image *image = *state;
    damage_bytes(image, image->code, image->end, 3);
}

static void it_ends_anywhere(void **state) {
    const Image *image = *state;
    uint32_t seed = 4;
    Tally tally = {0};
    for (int i = 0; i < DAMAGES / 2; i++) {
        char *text = strdup(image->text);
        text[random_below(&seed, image->end)] = '\0';
        run_damaged(text, &tally);
        free(text);
    }
    assert_int_equal(tally.ran, 0);
}

// Letters of the manifest, behind the numbers: a digit becomes another digit most times, so that it still
// reads.
static void letters_of_the_manifest_are_others(void **state) {
    const Image *image = *state;
    uint32_t seed = 5;
    Tally tally = {0};
    for (int i = 0; i < 4 * DAMAGES; i++) {
        char *text = malloc(2 * image->end);
        int count = 0, damaged = 0;
        for (size_t at = image->manifest; at < image->code; at++)
            count += image->text[at] == ',';
        damaged = (int)random_below(&seed, (size_t)count);
        size_t used = image->manifest;
        memcpy(text, image->text, used);
        const char *at = image->text + used, *close = image->text + image->code;
        for (int k = 0; at < close; k++) {
            char *next;
            long letter = strtol(at, &next, 10);
            if (k == damaged && isdigit((int)letter) && random_below(&seed, 8))
                letter = '0' + (letter - '0' + 1 + random_below(&seed, 9)) % 10;
            else if (k == damaged)
                letter = (long)(" \n-a9,"[random_below(&seed, 6)]);
            used += (size_t)sprintf(text + used, "%s%ld", k ? ", " : "", letter);
            at = next + strspn(next, ", \n\t");
        }
        strcpy(text + used, close);
        run_damaged(text, &tally);
        free(text);
    }
    assert_true(tally.refused + tally.faults > DAMAGES);
}

int main(int argc, char **argv) {
    bench_set_target(argc, argv);
    Image image = build_image();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(as_built_it_runs, &image),
        cmocka_unit_test_prestate(bytes_of_the_header_are_others, &image),
        cmocka_unit_test_prestate(bytes_of_the_manifests_array_are_others, &image),
        cmocka_unit_test_prestate(bytes_of_the_code_are_others, &image),
        cmocka_unit_test_prestate(it_ends_anywhere, &image),
        cmocka_unit_test_prestate(letters_of_the_manifest_are_others, &image),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(image.text);
    return failed;
}
