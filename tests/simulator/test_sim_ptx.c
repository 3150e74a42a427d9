// The PTX front end: what it makes of each construct, what it says of each mistake, and that no bytes break
// it.
#include "simulator/ptx/ptx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.6\n.target sm_100a\n.address_size 64\n"
#define BODY(text) HEAD ".visible .entry k(.param .u64 out)\n{\n" text "\nret;\n}\n"

static PtxModule *parse(const char *text) {
    PtxError error;
    PtxModule *module = ptx_parse(text, strlen(text), &error);
    if (!module)
        fail_msg("%d:%d: %s", error.line, error.column, error.message);
    return module;
}

static void parameters_are_laid_out_with_natural_alignment(void **state) {
    (void)state;
    PtxModule *module = parse(HEAD ".visible .entry k(.param .u32 a, .param .align 64 .b8 m[128],\n"
                                   ".param .u64 .ptr .global .align 16 p, .param .f32 s, .param .u8 b)\n"
                                   ".reqntid 128, 1, 1\n.minnctapersm 1\n.reqnctapercluster 2\n{ ret; }");
    const struct {
        const char *name;
        int64_t offset, bytes;
    } EXPECTED[] = {{"a", 0, 4}, {"m", 64, 128}, {"p", 192, 8}, {"s", 200, 4}, {"b", 204, 1}};
    for (size_t i = 0; i < sizeof EXPECTED / sizeof EXPECTED[0]; i++) {
        int at = ptx_find_symbol(module, EXPECTED[i].name, 0);
        assert_true(at >= 0);
        assert_int_equal(module->symbols[at].offset, EXPECTED[i].offset);
        assert_int_equal(module->symbols[at].bytes, EXPECTED[i].bytes);
    }
    assert_int_equal(module->entries[0].param_bytes, 205);
    assert_int_equal(module->entries[0].required_threads[0], 128);
    assert_int_equal(module->entries[0].min_ctas, 1);
    assert_int_equal(module->entries[0].cluster[0], 2);
    assert_int_equal(module->entries[0].cluster[2], 1);
    ptx_free(module);
}

static void variables_have_offsets_and_initial_bytes(void **state) {
    (void)state;
    PtxModule *module = parse(HEAD ".extern .shared .align 1024 .b8 dyn[];\n.shared .align 8 .b64 a, b;\n"
                                   ".shared .align 1024 .b8 tile[2048];\n"
                                   ".visible .global .align 4 .u32 numbers[3] = {1, 0x80000000, -1};\n"
                                   ".const .f32 half = 0.5;\n.visible .entry k() { .shared .b32 own; ret; }");
    assert_true(module->symbols[ptx_find_symbol(module, "dyn", -1)].is_extern);
    assert_int_equal(module->symbols[ptx_find_symbol(module, "b", -1)].offset, 8);
    assert_int_equal(module->symbols[ptx_find_symbol(module, "tile", -1)].offset, 1024);
    assert_int_equal(module->symbols[ptx_find_symbol(module, "own", 0)].offset, 3072);
    assert_int_equal(module->shared_bytes, 3076);
    uint32_t numbers[3];
    memcpy(numbers, module->symbols[ptx_find_symbol(module, "numbers", -1)].initial, sizeof numbers);
    assert_int_equal(numbers[1], 0x80000000u);
    assert_int_equal(numbers[2], 0xFFFFFFFFu);
    float half;
    memcpy(&half, module->symbols[ptx_find_symbol(module, "half", -1)].initial, sizeof half);
    assert_true(half == 0.5f);
    ptx_free(module);
}

static void operands_keep_their_form(void **state) {
    (void)state;
    PtxModule *module =
        parse(BODY(".reg .pred p, q; .reg .b32 %r<4>, x; .reg .b64 %rd<2>;\n"
                   "@!p shfl.sync.idx.b32 x|q, %r1, 0, 31, -1;\n"
                   "elect.sync _|p, 0xffffffff;\n"
                   "ld.global.v2.b32 {%r0, %r3}, [%rd1+-16];\n"
                   "cp.async.bulk.tensor.2d.a::b [x], [%rd0, {%r1, 7}], [x];\n"
                   "add.f32 x, 0f3F800000, 0d3FF0000000000000;\n"
                   "mov.u32 x, %tid.x; and.pred p, !q, p; mov.u64 %rd0, out; ld.param.u64 %rd0, [out+4U];"));
    const PtxInstruction *in = module->entries[0].instructions;
    assert_true(in[0].predicate == 0 && in[0].predicate_negated);
    assert_int_equal(in[0].part_count, 4);
    assert_string_equal(in[0].parts[2], "idx");
    assert_true(in[0].operands[0].kind == PTX_REG && in[0].operands[0].reg == 6 &&
                in[0].operands[0].second == 1);
    assert_int_equal(in[0].operands[4].integer, -1);
    assert_true(in[1].operands[0].kind == PTX_SINK && in[1].operands[0].second == 0);
    assert_true(in[2].operands[0].kind == PTX_VECTOR && in[2].operands[0].items[1].reg == 5);
    assert_true(in[2].operands[1].kind == PTX_ADDRESS && in[2].operands[1].offset == -16);
    assert_true(in[3].operands[1].kind == PTX_TENSOR && in[3].operands[1].count == 3);
    assert_true(in[3].operands[1].items[2].kind == PTX_INT && in[3].operands[1].items[2].integer == 7);
    assert_string_equal(in[3].parts[5], "a::b");
    assert_true(in[4].operands[1].integer == 0x3F800000 && !in[4].operands[1].is_double);
    assert_true(in[4].operands[2].is_double);
    assert_true(in[5].operands[1].kind == PTX_SPECIAL);
    assert_true(in[6].operands[1].negated);
    assert_true(in[7].operands[1].kind == PTX_SYMBOL);
    assert_true(in[8].operands[0].kind == PTX_REG && in[8].operands[1].items[0].kind == PTX_SYMBOL);
    assert_int_equal(in[8].operands[1].offset, 4);
    ptx_free(module);
}

static void inner_scopes_have_their_own_labels_and_registers(void **state) {
    (void)state;
    PtxModule *module = parse(BODY(".reg .pred p; bra END;\n"
                                   "{ .reg .pred p; WAIT: @p bra DONE; bra WAIT; DONE: }\n"
                                   "{ .reg .pred p; WAIT: @p bra DONE; bra WAIT; DONE: }\nEND:"));
    const PtxEntry *entry = &module->entries[0];
    const int EXPECTED[] = {5, 3, 1, 5, 3};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(entry->instructions[i].operands[0].kind, PTX_LABEL);
        assert_int_equal(entry->instructions[i].operands[0].target, EXPECTED[i]);
    }
    assert_int_equal(entry->register_count, 3);
    assert_int_equal(entry->instructions[1].predicate, 1);
    assert_int_equal(entry->instructions[3].predicate, 2);
    ptx_free(module);
}

static void lines_of_the_source_follow_loc(void **state) {
    (void)state;
    PtxModule *module =
        parse(HEAD ".file 2 \"dense.jfa\"\n.visible .entry k()\n{\nbar.sync 0;\n.loc 2 17 3\nbar.sync 1;\n"
                   ".loc 2 20 1, function_name $L__x, inlined_at 2 1 1\nret;\n}\n"
                   ".section .debug_abbrev {\n.b8 1\n{ } }\n");
    const PtxInstruction *in = module->entries[0].instructions;
    assert_string_equal(module->files[2], "dense.jfa");
    assert_int_equal(in[0].loc_line, 0);
    assert_int_equal(in[0].line, 7);
    assert_true(in[1].loc_file == 2 && in[1].loc_line == 17 && in[1].line == 9);
    assert_int_equal(in[2].loc_line, 20);
    ptx_free(module);
}

static void branch_tables_hold_labels(void **state) {
    (void)state;
    PtxModule *module =
        parse(BODY(".reg .b32 r;\nT: .branchtargets A, B;\nbrx.idx r, T;\nA: bar.sync 0;\nB:"));
    const PtxOperand *table = &module->entries[0].instructions[0].operands[1];
    assert_int_equal(table->count, 2);
    assert_true(table->items[0].kind == PTX_LABEL && table->items[0].target == 1);
    assert_int_equal(table->items[1].target, 2);
    ptx_free(module);
}

static void mistakes_are_named_with_their_place(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int line;
        const char *says;
    } CASES[] = {
        {"", 1, "no .target"},
        {BODY("mov.u32 %r1, 0;"), 6, "unknown register %r1"},
        {BODY("bra NOWHERE;"), 6, "NOWHERE"},
        {BODY(".reg .b32 a;\n.reg .b32 a;"), 7, "a is declared twice"},
        {BODY("L: bar.sync 0;\nL: bar.sync 0;"), 7, "L is declared twice"},
        {BODY(".reg .b32 a;\n@a bar.sync 0;"), 7, "a is not a predicate"},
        {BODY(".reg .b32 a;\nld.shared.b32 a, [b];"), 7, "unknown register or variable b"},
        {BODY(".reg .b32 a;\nadd.s32 a, a a;"), 7, "unexpected"},
        {BODY(".reg .b32 a;\nmov.u32 a, 12x;"), 7, "12x is not a number"},
        {BODY(".reg .b32 a;\nmov.f32 a, 0f3F80;"), 7, "not a number"},
        {BODY(".reg .b99 a;"), 6, "unknown directive .b99"},
        {BODY(".reg .b32 a<99999999>;"), 6, "more than"},
        {BODY("\x01"), 6, "unexpected byte 0x01"},
        {BODY("/* open"), 9, "comment without an end"},
        {HEAD ".shared .align 3 .b8 x[4];", 4, "power of two"},
        {HEAD ".shared .b8 x[];", 4, "size of x"},
        {HEAD ".global .b8 x[1] = {1, 2};", 4, "more initial values"},
        {HEAD ".visible .func f()\n{ ret; }", 4, "functions are not supported: f"},
        {HEAD ".visible .entry k() { ret; }\n.visible .entry k() { ret; }", 5, "k is declared twice"},
        {".target sm_90a\n.address_size 32", 2, ".address_size 64"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        PtxError error;
        PtxModule *module = ptx_parse(CASES[i].text, strlen(CASES[i].text), &error);
        if (module || !strstr(error.message, CASES[i].says) || error.line != CASES[i].line)
            fail_msg("case %zu: %d:%d: %s", i, error.line, error.column, module ? "accepted" : error.message);
    }
}

static void every_snippet_of_the_instruction_families_parses(void **state) {
    (void)state;
    DIR *folder = opendir(SNIPPETS);
    assert_non_null(folder);
    int count = 0;
    for (struct dirent *file; (file = readdir(folder));) {
        if (!strstr(file->d_name, ".ptx"))
            continue;
        char path[600], text[16384];
        snprintf(path, sizeof path, "%s/%s", SNIPPETS, file->d_name);
        FILE *in = fopen(path, "rb");
        assert_non_null(in);
        size_t length = fread(text, 1, sizeof text, in);
        fclose(in);
        assert_true(length < sizeof text);
        PtxError error;
        PtxModule *module = ptx_parse(text, length, &error);
        if (!module)
            fail_msg("%s:%d:%d: %s", file->d_name, error.line, error.column, error.message);
        assert_true(module->entry_count > 0 && module->entries[0].instruction_count > 5);
        ptx_free(module);
        count++;
    }
    closedir(folder);
    assert_true(count > 30);
}

// A kernel with every construct, for the tests that damage it.
static const char EVERYTHING[] =
    ".version 8.6\n.target sm_100a\n.address_size 64\n.file 1 \"a.jfa\"\n.extern .shared .align 1024 .b8 "
    "dyn[];\n"
    ".visible .global .align 1 .b8 manifest[4] = {106, 0x66, 97, -1};\n/* remark */ .shared .align 8 .b64 "
    "bar;\n"
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 .ptr .global .align 1 out)\n.reqntid "
    "128\n{\n"
    ".reg .pred %p<3>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<4>;\n.loc 1 2 3\nmov.b64 %rd1, dyn;\n"
    "@%p1 bra $L__BB0_1;\nbra.uni $L__BB0_2;\n$L__BB0_1:\n{ .reg .pred p; W: "
    "mbarrier.try_wait.parity.shared::cta.b64 p,\n"
    "[%r1+8], 0; @!p bra W; }\n$L__BB0_2: T: .branchtargets $L__BB0_1, $L__BB0_2;\nbrx.idx %r1, T;\n"
    "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, -3}], "
    "[bar];\n"
    "elect.sync _|%p2, 0xffffffff; ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%rd2+-16];\n"
    "fma.rn.f32 %r1, %r2, 0f3F800000, 0d3FF0000000000000; ret;\n}\n.section .debug_info { .b8 1 }\n";

static void no_truncation_breaks_the_parser(void **state) {
    (void)state;
    size_t length = strlen(EVERYTHING);
    PtxError error;
    ptx_free(parse(EVERYTHING));
    for (size_t i = 0; i < length; i++) {
        char *cut = malloc(i + 1); // its own allocation, so that reading past the end is seen by a sanitizer
        assert_non_null(cut);
        memcpy(cut, EVERYTHING, i);
        PtxModule *module = ptx_parse(cut, i, &error);
        assert_true(module || error.message[0]);
        ptx_free(module);
        free(cut);
    }
}

static void no_damaged_bytes_break_the_parser(void **state) {
    (void)state;
    static const char TOKENS[] = "{}[]()<>.,;:@!|=+-_%\0\"/09afxU\n\xFF";
    size_t length = strlen(EVERYTHING);
    uint32_t random = 1;
    char *damaged = malloc(length);
    assert_non_null(damaged);
    for (int round = 0; round < 4000; round++) {
        memcpy(damaged, EVERYTHING, length);
        for (int change = 0; change < 1 + round % 4; change++) {
            random = random * 1664525u + 1013904223u;
            damaged[(random >> 8) % length] = TOKENS[(random >> 3) % (sizeof TOKENS - 1)];
        }
        PtxError error;
        PtxModule *module = ptx_parse(damaged, length, &error);
        assert_true(module || error.message[0]);
        ptx_free(module);
    }
    free(damaged);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_laid_out_with_natural_alignment),
        cmocka_unit_test(variables_have_offsets_and_initial_bytes),
        cmocka_unit_test(operands_keep_their_form),
        cmocka_unit_test(inner_scopes_have_their_own_labels_and_registers),
        cmocka_unit_test(lines_of_the_source_follow_loc),
        cmocka_unit_test(branch_tables_hold_labels),
        cmocka_unit_test(mistakes_are_named_with_their_place),
        cmocka_unit_test(every_snippet_of_the_instruction_families_parses),
        cmocka_unit_test(no_truncation_breaks_the_parser),
        cmocka_unit_test(no_damaged_bytes_break_the_parser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
