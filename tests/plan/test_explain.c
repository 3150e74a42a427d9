// The tables that 'explain' prints.
#include "compiler/plan/explain.h"
#include "compiler/plan/place.h"
#include "tests/plan/sources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const ExplainReport *chosen_report;

static void print_chosen(const Plan *plan, FILE *out) {
    explain_print(plan, chosen_report, out);
}

static const char *explained(Program *program, const ExplainReport *report) {
    chosen_report = report;
    return text_of(program, print_chosen);
}

static Program *attention(void) {
    Program *program = program_open("examples/dense.jfa");
    assert_non_null(program->plan);
    assert_true(place_plan(program->plan, &program->diag));
    return program;
}

static void attention_fits_on_forty_lines(void **state) {
    (void)state;
    static const ExplainPhase PHASES[] = {{"sema", 1.25}, {"assemble", 300}};
    const ExplainReport report = {
        .has_ptxas = true, .registers = 168, .code_bytes = 20000, .phases = PHASES, .phase_count = 2};
    Program *program = attention();
    const char *text = explained(program, &report);
    int lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    assert_true(lines <= 40);
    program_free(program);
}

static void pipes_are_told_in_plain_words(void **state) {
    static const char *const WANTED[] = {
        "  out          2          bf16[128, 128]     65536 bytes, each 32768  shared memory at 0, over qs\n",
        "  p            2          bf16[128, 128]     128 columns, each 64     tensor memory at 0, over s\n",
        "  q_in         2 x 1      load -> mma          32768 bytes have come  the products that read it are "
        "done; then "
        "result\n",
        "  scores       2 x 1      mma -> softmax       the product is done    handed on to probs\n",
        "  probs        2 x 1      softmax -> mma       4 warps wrote it       in the tensor core's order, "
        "without a "
        "barrier; then scores\n",
        "  o            2 x 1      mma -> correct       the product is done    4 warps freed it; keeps its "
        "contents\n",
        "  result       2 x 1      correct -> store     4 warps wrote it       the store has read it; then "
        "q_in\n",
        "  tensor memory  [####################] 100%  512 of 512 columns\n",
        "  threads        [##########..........]  50%  512 of 1024 of a CTA\n",
    };
    static const ExplainReport NOTHING = {0};
    (void)state;
    Program *program = attention();
    const char *text = explained(program, &NOTHING);
    for (size_t i = 0; i < sizeof WANTED / sizeof WANTED[0]; i++)
        if (!strstr(text, WANTED[i]))
            fail_msg("missing: %sin\n%s", WANTED[i], text);
    program_free(program);
}

static void what_the_assembler_reports_is_told_only_when_it_is_there(void **state) {
    static const ExplainReport NOTHING = {0},
                               GOOD = {.has_ptxas = true, .registers = 168, .code_bytes = 4096},
                               SPILLS = {.has_ptxas = true,
                                         .registers = 255,
                                         .spill_store_bytes = 16,
                                         .spill_load_bytes = 32,
                                         .stack_bytes = 64};
    (void)state;
    Program *program = attention();
    assert_null(strstr(explained(program, &NOTHING), "assembled"));
    assert_non_null(strstr(explained(program, &GOOD),
                           "assembled: 168 registers a thread, no spills, 0 bytes of stack, "
                           "4096 bytes of code\n"));
    assert_non_null(strstr(explained(program, &SPILLS),
                           "assembled: 255 registers a thread, SPILLS: 16 bytes stored, 32 "
                           "loaded, 64 bytes of stack\n"));
    program_free(program);
}

static void phases_are_summed(void **state) {
    static const ExplainPhase PHASES[] = {{"sema", 1.25}, {"assemble", 300}};
    const ExplainReport report = {.phases = PHASES, .phase_count = 2};
    (void)state;
    Program *program = attention();
    assert_non_null(
        strstr(explained(program, &report), "compiled: sema 1.2 ms, assemble 300.0 ms; together 301.2 ms\n"));
    program_free(program);
}

int main(void) {
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(attention_fits_on_forty_lines),
        cmocka_unit_test(pipes_are_told_in_plain_words),
        cmocka_unit_test(what_the_assembler_reports_is_told_only_when_it_is_there),
        cmocka_unit_test(phases_are_summed),
    };
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
