// Damaged kernels: words of a good kernel's text changed places. Whatever comes of it, it is refused,
// reported or run to an end; nothing of the simulator breaks (the sanitizers see what would).
#include "tests/simulator/harness.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DAMAGES = 60, MOST_WORDS = 4096, STEPS = 20000 };

typedef struct {
    const char *file, *kernel, *chip;
    int maps; // tensor maps at the front of the parameters
    uint32_t cluster;
} Victim;

static const Victim VICTIMS[] = {
    {"recipe_sm100_umma_bf16.ptx", "umma_bf16", "sm_100a", 2, 1},
    {"recipe_sm100_two_cta.ptx", "pair", "sm_100a", 2, 2},
    {"recipe_sm100_clc_loop.ptx", "clc_loop", "sm_100a", 0, 1},
    {"recipe_sm100_exp2_poly.ptx", NULL, "sm_100a", 0, 1},
    {"recipe_sm90_wgmma_bf16.ptx", "wgmma_bf16", "sm_90a", 2, 1},
    {"both_matrix_ldst.ptx", "k", "sm_90a", 1, 1},
    {"both_cluster.ptx", "k", "sm_90a", 1, 2},
    {"both_mbarrier.ptx", "k", "sm_90a", 1, 1},
    {"both_sync_misc.ptx", "k", "sm_90a", 1, 1},
    {"both_bulk_1d.ptx", "k", "sm_90a", 1, 1},
    {"sm100_tcgen05_ld.ptx", "k", "sm_100a", 1, 1},
    {"sm100_tcgen05_st.ptx", "k", "sm_100a", 1, 1},
};

typedef struct {
    size_t at, length;
} Word;

static bool in_word(char c) {
    return isalnum((unsigned char)c) || (c && strchr("%._$:", c));
}

static int find_words(const char *text, Word *words) {
    int count = 0;
    const char *body = strchr(text, '{');
    assert_non_null(body);
    for (size_t i = (size_t)(body - text); text[i] && count < MOST_WORDS;) {
        size_t start = i;
        while (in_word(text[i]))
            i++;
        if (i > start)
            words[count++] = (Word){start, i - start};
        else
            i++;
    }
    return count;
}

// One word becomes another of the text, most times one of its kind.
static void damage(const char *text, const Word *words, int count, uint32_t *random, char *out, size_t size) {
    const Word *victim = &words[bench_random(random) % (uint32_t)count], *other = victim;
    for (int attempt = 0; attempt < 100; attempt++) {
        other = &words[bench_random(random) % (uint32_t)count];
        if (text[other->at] == text[victim->at] || bench_random(random) % 64 == 0)
            break;
    }
    snprintf(out, size, "%.*s%.*s%s", (int)victim->at, text, (int)other->length, text + other->at,
             text + victim->at + victim->length);
}

static void run_damaged(const Victim *victim, const char *text, int seed) {
    static uint8_t zeros[1 << 15];
    jfa_error err = {0};
    Bench bench = bench_open(victim->chip);
    bench_option(&bench, "seed", seed);
    bench_option(&bench, "threads", 1);
    bench_option(&bench, "steps", STEPS);
    if (bench.backend->module_load(bench.device, text, strlen(text), &bench.module, &err) == JFA_OK) {
        jfa_tensor_map map = {.dtype = JFA_BF16,
                              .rank = 2,
                              .address = bench_alloc(&bench, sizeof zeros, zeros),
                              .dims = {64, 128},
                              .strides = {2, 128},
                              .box = {64, 64},
                              .swizzle_bytes = 128};
        for (int i = 0; i < victim->maps; i++)
            bench_param_map(&bench, &map);
        bench_param_u64(&bench, bench_alloc(&bench, 1 << 17, NULL));
        void *function = NULL;
        const char *kernel = victim->kernel ? victim->kernel : "exp2_poly";
        jfa_launch_desc desc = {.grid = {2, 1, 1},
                                .block = {128, 1, 1},
                                .cluster = {victim->cluster, 1, 1},
                                .shared_bytes = 65536,
                                .params = bench.params,
                                .params_bytes = sizeof bench.params};
        if (bench.backend->function_get(bench.device, bench.module, kernel, &function, &err) == JFA_OK &&
            bench.backend->launch(bench.device, function, &desc, &err) == JFA_OK)
            (void)bench.backend->synchronise(bench.device, NULL, &err);
    }
    bench_close(&bench);
}

static void damaged_kernels_break_nothing(void **state) {
    (void)state;
    static char text[1 << 15], damaged[1 << 16];
    static Word words[MOST_WORDS];
    for (size_t i = 0; i < sizeof VICTIMS / sizeof VICTIMS[0]; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/snippets/%s", FOLDER, VICTIMS[i].file);
        FILE *in = fopen(path, "rb");
        assert_non_null(in);
        text[fread(text, 1, sizeof text - 1, in)] = '\0';
        fclose(in);
        int count = find_words(text, words);
        uint32_t random = (uint32_t)i + 1;
        for (int k = 0; k < DAMAGES; k++) {
            damage(text, words, count, &random, damaged, sizeof damaged);
            run_damaged(&VICTIMS[i], damaged, k);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_kernels_break_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
