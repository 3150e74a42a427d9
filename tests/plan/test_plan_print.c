// The plan as text: everything that it holds, the same each time.
#include "compiler/plan/place.h"
#include "tests/plan/sources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// Small, but with every kind of statement.
static const char SCHEDULE[] =
    "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
    "walk steps over p in blocks(k, 128) where p >= i;\n"
    "smem a [3] : dtype[128, 128];\n"
    "smem c : dtype[128, 128];\n"
    "smem v : f32[128];\n"
    "tmem s : f32[128, 128];\n"
    "tmem e : dtype[128, 128] over s;\n"
    "tmem acc : f32[128, 128];\n"
    "pipe a_in : a load -> mma;\n"
    "pipe scores : s mma -> soft;\n"
    "pipe probs : e soft -> mma;\n"
    "pipe factor : v soft -> out;\n"
    "pipe o : acc mma -> out in place;\n"
    "pipe result : c out -> write;\n"
    "role load : 1 warp, 40 regs {\n"
    "  for t in tiles { put a_in = A[t.i, 0]; }\n"
    "}\n"
    "role mma : 1 warp, 40 regs {\n"
    "  for t in tiles {\n"
    "    take x = a_in;\n"
    "    fill d = scores { d += x @ x^T fresh if t.steps.count > 0; }\n"
    "    take y = probs;\n"
    "    put o = y @ x;\n"
    "    free y;\n"
    "    free x;\n"
    "  }\n"
    "}\n"
    "role soft : 4 warps, 128 regs {\n"
    "  for t in tiles {\n"
    "    var sum : f32[128] = 0;\n"
    "    for b in t.steps.rest { sum = sum + (b.full ? 1.0 : 2.0); }\n"
    "    take x = scores;\n"
    "    let y = x * limit;\n"
    "    put probs = y * y;\n"
    "    put factor = sum;\n"
    "  }\n"
    "}\n"
    "role out : 4 warps, 128 regs {\n"
    "  for t in tiles {\n"
    "    take f = factor;\n"
    "    take x = o;\n"
    "    update x = x * f;\n"
    "    if limit > 2.0 { put result = x; } else { put result = max(x, rowmax(x)); }\n"
    "    free x;\n"
    "    free f;\n"
    "  }\n"
    "}\n"
    "role write : 1 warp, 40 regs {\n"
    "  for t in tiles { take y = result; store C[t.i, t.j] = y; free y; }\n"
    "}\n";

static const char TEXT[] =
    "kernel x : f, schedule s for sm_100a\n"
    "const dtype = bf16\n"
    "axis m\n"
    "axis n\n"
    "axis k\n"
    "param limit : f32 = 1\n"
    "tensor A : in bf16[m, k]\n"
    "tensor B : in bf16[n, k]\n"
    "tensor C : out bf16[m, n]\n"
    "grid persistent\n"
    "  i in blocks(m, 128)\n"
    "  j in blocks(n, 128)\n"
    "record of a tile\n"
    "  0: start of m\n"
    "  1: length of m\n"
    "  2: start of n\n"
    "  3: length of n\n"
    "  4: length of k\n"
    "  5: seq\n"
    "  6: base of A, dim 0\n"
    "  7: base of A, dim 1\n"
    "  8: base of C, dim 0\n"
    "  9: base of C, dim 1\n"
    "walk steps over p in blocks(k, 128)\n"
    "  where ((p >= i) && (p < tile.len_k))\n"
    "smem a [1, 3] : bf16[128, 128]\n"
    "  offset 0, stride 32768, bytes 32768, swizzle 128, chunk 64 columns\n"
    "smem c [1, 1] : bf16[128, 128]\n"
    "  offset 98304, stride 32768, bytes 32768, swizzle 128, chunk 64 columns\n"
    "smem v [1, 1] : f32[128]\n"
    "  offset 131072, stride 512, bytes 512, swizzle 0, chunk 1 columns\n"
    "tmem s [1, 1] : f32[128, 128]\n"
    "  column 0, stride 128, columns 128\n"
    "tmem e [1, 1] : bf16[128, 128] over s\n"
    "  column 0, stride 128, columns 64\n"
    "tmem acc [1, 1] : f32[128, 128]\n"
    "  column 128, stride 128, columns 128\n"
    "pipe a_in : a load -> mma\n"
    "  filled by loads, used by products\n"
    "  full at 131584, arrivals 1, bytes 32768; empty at 131608, arrivals 1\n"
    "pipe scores : s mma -> soft\n"
    "  filled by products, used by threads, waits for frees of probs, first in round\n"
    "  full at 131632, arrivals 1; slots are handed on\n"
    "pipe probs : e soft -> mma\n"
    "  filled by threads, used by products, takes over slots of scores\n"
    "  full at 131640, arrivals 4; frees are ordered by the tensor core\n"
    "pipe factor : v soft -> out\n"
    "  filled by threads, used by threads\n"
    "  full at 131648, arrivals 4; empty at 131656, arrivals 4\n"
    "pipe o : acc mma -> out in place\n"
    "  filled by products, used by threads\n"
    "  full at 131664, arrivals 1; empty at 131672, arrivals 4\n"
    "pipe result : c out -> write\n"
    "  filled by threads, used by stores\n"
    "  full at 131680, arrivals 4; empty at 131688, arrivals 1\n"
    "map 0: loads of A, tiles [128, 128] over dims 0, 1, swizzle 128, chunk 64 columns, chunks 0\n"
    "map 1: stores of C, tiles [128, 128] over dims 0, 1, swizzle 128, chunk 64 columns, chunks 0\n"
    "shared memory 131712 bytes: barriers at 131584, 112 bytes, 14 of them; tensor-memory pointer at 131696\n"
    "tensor memory 256 columns of 256 allocated\n"
    "cta 12 warps, 168 registers a thread at launch\n"
    "role load : 1 warp from warp 8, 40 registers, one thread\n"
    "  for each tile\n"
    "    load put#0 = a_in <- A[tile.start_m, 0] by map 0\n"
    "role mma : 1 warp from warp 9, 40 registers, one thread, issues products\n"
    "  for each tile\n"
    "    take x#0 = a_in\n"
    "    fill d#1 = scores\n"
    "      product d#1 += x#0 @ x#0^T [128, 128, 128] fresh if (tile.steps.count > 0)\n"
    "    take y#2 = probs\n"
    "    fill put#3 = o\n"
    "      product put#3 += y#2 @ x#0 [128, 128, 128] fresh if true\n"
    "    free y#2\n"
    "    free x#0\n"
    "role soft : 4 warps from warp 0, 128 registers, computes, touches tensor memory\n"
    "  for each tile\n"
    "    var sum#0 : f32[128] = 0\n"
    "    for b#0 in tile.steps.rest, full blocks apart\n"
    "      set sum#0 : f32[128] = (sum#0 + (b#0.full ? 1 : 2))\n"
    "    take x#0 = scores\n"
    "    let y#1 : f32[128, 128] = (x#0 * limit)\n"
    "    put put#1 = probs <- (y#1 * y#1) over x#0\n"
    "    put put#2 = factor <- sum#0\n"
    "role out : 4 warps from warp 4, 128 registers, computes, touches tensor memory\n"
    "  for each tile\n"
    "    take f#0 = factor\n"
    "    take x#1 = o\n"
    "    update x#1 = (x#1 * f#0)\n"
    "    if (limit > 2)\n"
    "      put put#2 = result <- x#1\n"
    "    else\n"
    "      put put#3 = result <- max(x#1, rowmax(x#1))\n"
    "    free x#1\n"
    "    free f#0\n"
    "role write : 1 warp from warp 10, 40 registers, one thread\n"
    "  for each tile\n"
    "    take y#0 = result\n"
    "    store C[tile.start_m, tile.start_n] by map 1 = y#0\n"
    "    free y#0\n";

static Program *placed(const char *body) {
    Program *program = program_of_schedule(body);
    assert_string_equal(program_messages(program), "");
    assert_true(place_plan(program->plan, &program->diag));
    return program;
}

static void every_part_of_a_plan_is_printed(void **state) {
    (void)state;
    Program *program = placed(SCHEDULE);
    assert_string_equal(text_of(program, plan_print), TEXT);
    program_free(program);
}

static void the_same_plan_gives_the_same_text(void **state) {
    (void)state;
    Program *first = program_open("examples/dense.jfa"), *second = program_open("examples/dense.jfa");
    assert_true(place_plan(first->plan, &first->diag));
    assert_true(place_plan(second->plan, &second->diag));
    assert_string_equal(text_of(first, plan_print), text_of(second, plan_print));
    program_free(first);
    program_free(second);
}

// A function of a function ... that names its argument twice: 2^14 times the argument when written out.
static void values_that_are_used_again_are_named_not_repeated(void **state) {
    (void)state;
    enum { LEVELS = 14 };
    Arena *arena = arena_new();
    assert_non_null(arena);
    const char *call = "x";
    for (int i = 0; i < LEVELS; i++)
        call = arena_format(arena, "twice(%s)", call);
    const char *body = arena_format(
        arena,
        "fn twice(y) => y + y;\ngrid tiles over (i in blocks(m, 128));\nsmem a : f32[128];\npipe p : a r -> "
        "w;\n"
        "role r : 4 warps { for t in tiles { put p = rows; } }\n"
        "role w : 4 warps { for t in tiles { take x = p; store C[t.i + rows, 0] = %s; free x; } }\n",
        call);
    Program *program = placed(body);
    const char *text = text_of(program, plan_print);
    assert_true(strlen(text) < 6000);
    assert_non_null(strstr(text, "%1 = (x#0 + x#0)"));
    assert_non_null(strstr(text, "%2 = (%1 + %1)"));
    program_free(program);
    arena_free(arena);
}

int main(void) {
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(every_part_of_a_plan_is_printed),
        cmocka_unit_test(the_same_plan_gives_the_same_text),
        cmocka_unit_test(values_that_are_used_again_are_named_not_repeated),
    };
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
