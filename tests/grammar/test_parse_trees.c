// Every construct of the language and the tree that it makes.
#include "tests/grammar/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct {
    const char *text, *tree;
} Construct;

static void expect_trees(const Construct *constructs, size_t count, const char *before, const char *after,
                         const char *tree_before, int indent) {
    for (size_t i = 0; i < count; i++) {
        char text[1024], tree[4096];
        snprintf(text, sizeof text, "%s%s%s", before, constructs[i].text, after);
        snprintf(tree, sizeof tree, "%s", tree_before);
        for (const char *line = constructs[i].tree; *line;) {
            size_t length = strcspn(line, "\n");
            snprintf(tree + strlen(tree), sizeof tree - strlen(tree), "%*s%.*s\n", indent, "", (int)length,
                     line);
            line += length + (line[length] == '\n');
        }
        Parsed parsed = bench_parse_text(text);
        if (parsed.diag.items || strcmp(bench_tree(&parsed), tree))
            fail_msg("%s\n%s\nmakes\n%s\nnot\n%s", text, bench_messages(&parsed), bench_tree(&parsed), tree);
        bench_close(&parsed);
    }
}

#define COUNT(table) (sizeof table / sizeof table[0])

static const Construct TOP[] = {
    {"use a;", "use a"},
    {"family f { }", "family f"},
    {"schedule s of f for sm_100 { }", "schedule s f sm_100"},
    {"kernel k : f { }", "kernel k f"},
    {"use out; use inout; use place; use tune;", "use out\nuse inout\nuse place\nuse tune"},
};

static void every_top_level_item_has_its_tree(void **state) {
    (void)state;
    expect_trees(TOP, COUNT(TOP), "", "", "", 0);
}

static const Construct ITEMS[] = {
    {"const A = 1;", "const A\n  int 1"},
    {"const A = 1, B = 2.5;", "const A\n  int 1\nconst B\n  float 2.5"},
    {"const A = 1 tune (2, B + 3), B = 4;",
     "const A\n  int 1\n  int 2\n  binary +\n    name B\n    int 3\nconst B\n  int 4"},
    {"const tune = tune tune (tune);", "const tune\n  name tune\n  name tune"},
    {"fn f() => 1;", "fn f\n  int 1"},
    {"fn f(x, y) => x;", "fn f\n  name x\n  name x\n  name y"},
    {"option o : int in (1, 2);", "option o int\n  int 1\n  int 2"},
    {"axis q;", "axis q"},
    {"dim h;", "dim h"},
    {"dim h divides g;", "dim h g"},
    {"tensor T : in f32[q, 4];", "tensor T in\n  type f32\n    name q\n    int 4"},
    {"tensor T : inout f32 optional;", "tensor T inout *\n  type f32"},
    {"tensor T : out f32;", "tensor T out\n  type f32"},
    {"param p : f32;", "param p f32"},
    {"param p : i32 = 3;", "param p i32\n  int 3"},
    {"param p : f32 > 0;", "param p f32\n  int 0"},
    {"param p : i32 > 0 = 3;", "param p i32\n  int 3\n  int 0"},
    {"hook h(a, b) : bool => true;", "hook h bool\n  bool 1\n  name a\n  name b"},
    {"reference { }", "reference"},
    {"size 4;", "setting size\n  int 4"},
    {"size -4;", "setting size\n  int -4"},
    {"size -4.5;", "setting size\n  float -4.5"},
    {"flag false;", "setting flag\n  bool 0"},
    {"dtype bf16;", "setting dtype\n  name bf16"},
    {"mask (q) => false;", "math mask\n  bool 0\n  name q"},
    {"smem s : f32[4];", "buffer s smem\n  type f32\n    int 4"},
    {"tmem s [2] : f32[4, N];", "buffer s tmem\n  type f32\n    int 4\n    name N\n  int 2"},
    {"smem s [2, 3] : f32[4] over t;", "buffer s t smem\n  type f32\n    int 4\n  int 2\n  int 3"},
    {"pipe p : s a -> b;", "pipe p s a\n  > name b"},
    {"pipe p [2] : s store -> b, store in place;", "pipe p s store *\n  int 2\n  > name b\n  > name store"},
    {"pipe p : s a -> b multicast;", "pipe p s a multicast\n  > name b"},
    {"cluster c in 2;", "cluster c\n  int 2"},
    {"occupancy 2 * K;", "occupancy\n  binary *\n    int 2\n    name K"},
    {"grid t over (h in heads, i in blocks(q, 4)) persistent;",
     "grid t\n  bind h\n    name heads\n  bind i\n    call\n      name blocks\n      name q\n      int 4\n  "
     "> name persistent"},
    {"walk w over j in blocks(k, 4);",
     "walk w\n  bind j\n    call\n      name blocks\n      name k\n      int 4"},
    {"walk w over j in k where j < 2;", "walk w\n  binary <\n    name j\n    int 2\n  bind j\n    name k"},
    {"role r : 1 warp { }", "role r\n  int 1"},
    {"role store [g in 2] : 4 warps, 80 regs { }", "role store\n  int 4\n  int 80\n  bind g\n    int 2"},
};

static void every_item_has_its_tree(void **state) {
    (void)state;
    expect_trees(ITEMS, COUNT(ITEMS), "family f { ", " }", "family f\n", 2);
}

static const Construct STATEMENTS[] = {
    {"let x = 1;", "> let x\n  int 1"},
    {"let x[i in q] = i;", "> let x\n  name i\n  bind i\n    name q"},
    {"var x : f32[4] = 0;", "> var x\n  int 0\n  type f32\n    int 4"},
    {"x = 1;", "> assign\n  name x\n  int 1"},
    {"T[h, d in D] = 1;", "> assign\n  index\n    name T\n    name h\n    bind d\n      name D\n  int 1"},
    {"take x = p;", "> take\n  name x\n  name p"},
    {"take x[1] = p[1];", "> take\n  index\n    name x\n    int 1\n  index\n    name p\n    int 1"},
    {"put p = x;", "> put\n  name p\n  name x"},
    {"put p += x;", "> put *\n  name p\n  name x"},
    {"put p += x fresh if c;", "> put *\n  name p\n  name x\n  name c"},
    {"fill d = p { free x; }", "> fill d\n  name p\n  > free\n    name x"},
    {"d += x fresh if c;", "> accumulate\n  name d\n  name x\n  name c"},
    {"free x;", "> free\n  name x"},
    {"update x = y;", "> update\n  name x\n  name y"},
    {"store T[i] = y;", "> store\n  index\n    name T\n    name i\n  name y"},
    {"for i in q, j in k { }", "> for\n  bind i\n    name q\n  bind j\n    name k"},
    {"if c { free x; }", "> if\n  name c\n  > free\n    name x"},
    {"if c { } else { free x; }", "> if\n  name c\n  free\n    name x"},
    {"if c { } else if d { } else { }", "> if\n  name c\n  if\n    name d"},
};

static void every_statement_has_its_tree(void **state) {
    (void)state;
    expect_trees(STATEMENTS, COUNT(STATEMENTS), "family f { role r : 1 warp { ", " } }",
                 "family f\n  role r\n    int 1\n", 4);
}

static const Construct EXPRESSIONS[] = {
    {"7", "int 7"},
    {"0x1F", "int 31"},
    {"9223372036854775807", "int 9223372036854775807"},
    {".5", "float 0.5"},
    {"1.", "float 1"},
    {"1e3", "float 1000"},
    {"2.5E-1", "float 0.25"},
    {"true", "bool 1"},
    {"inf", "inf"},
    {"x", "name x"},
    {"(x)", "name x"},
    {"-x", "unary -\n  name x"},
    {"!x", "unary !\n  name x"},
    {"a + b * c", "binary +\n  name a\n  binary *\n    name b\n    name c"},
    {"a - b - c", "binary -\n  binary -\n    name a\n    name b\n  name c"},
    {"a / b % c @ d", "binary @\n  binary %\n    binary /\n      name a\n      name b\n    name c\n  name d"},
    {"-a * b", "binary *\n  unary -\n    name a\n  name b"},
    {"-a.b", "unary -\n  member b\n    name a"},
    {"a < b == c", "binary ==\n  binary <\n    name a\n    name b\n  name c"},
    {"a >= b && c <= d || e != f", "binary ||\n  binary &&\n    binary >=\n      name a\n      name b\n    "
                                   "binary <=\n      name c\n      name d\n  binary "
                                   "!=\n    name e\n    name f"},
    {"a ? b : c ? d : e", "choice\n  name a\n  name b\n  choice\n    name c\n    name d\n    name e"},
    {"a > b ? 1 : 2", "choice\n  binary >\n    name a\n    name b\n  int 1\n  int 2"},
    {"a @ b^T", "binary @\n  name a\n  transpose\n    name b"},
    {"a[i].b", "member b\n  index\n    name a\n    name i"},
    {"f()", "call\n  name f"},
    {"f(x, y)", "call\n  name f\n  name x\n  name y"},
    {"sum(i in q : x)", "reduce sum\n  name x\n  bind i\n    name q"},
    {"a[]", "index\n  name a"},
    {"place + out", "binary +\n  name place\n  name out"},
};

static void every_expression_has_its_tree_and_operators_bind_in_order(void **state) {
    (void)state;
    expect_trees(EXPRESSIONS, COUNT(EXPRESSIONS), "family f { const X = ", "; }", "family f\n  const X\n", 4);
}

static void spans_hold_the_text_of_their_construct(void **state) {
    (void)state;
    Parsed parsed = bench_parse_text("use a;\nfamily f { const C = (1 + x[2]) * 3; }");
    const Ast *constant = parsed.items->next->list;
    assert_string_equal(ast_text(&parsed.sources, parsed.arena, parsed.items->span), "use a;");
    assert_string_equal(ast_text(&parsed.sources, parsed.arena, constant->name_span), "C");
    assert_string_equal(ast_text(&parsed.sources, parsed.arena, constant->a->span), "(1 + x[2]) * 3");
    assert_string_equal(ast_text(&parsed.sources, parsed.arena, constant->a->a->span), "1 + x[2]");
    assert_string_equal(ast_text(&parsed.sources, parsed.arena, constant->a->a->b->span), "x[2]");
    bench_close(&parsed);
}

static void expressions_of_the_command_line_are_read_alone(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
    } CASES[] = {{"1 + 2", true}, {"bf16", true}, {"", false},
                 {"1 +", false},  {"1;", false},  {"use a;", false}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        Parsed parsed = bench_parse_text("");
        parsed.diag.sources = &parsed.sources;
        diag_init(&parsed.diag, parsed.arena, &parsed.sources);
        int file = source_add(&parsed.sources, "<-D>", CASES[i].text, strlen(CASES[i].text));
        const Ast *ast = parse_expression(parsed.arena, &parsed.diag, file);
        assert_int_equal(parsed.diag.error_count == 0, CASES[i].is_good);
        assert_true(ast || !CASES[i].is_good);
        bench_close(&parsed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_top_level_item_has_its_tree),
        cmocka_unit_test(every_item_has_its_tree),
        cmocka_unit_test(every_statement_has_its_tree),
        cmocka_unit_test(every_expression_has_its_tree_and_operators_bind_in_order),
        cmocka_unit_test(spans_hold_the_text_of_their_construct),
        cmocka_unit_test(expressions_of_the_command_line_are_read_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
