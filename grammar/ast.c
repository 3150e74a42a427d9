#include "grammar/parser.h"

#include <stdlib.h>
#include <string.h>

#include "jfa_y.h"
#include "jfa_l.h"

char *parser_copy(ParserState *state, const char *text, size_t length) {
    return arena_copy(state->arena, text, length);
}

void parser_scanner_failed(const char *message) {
    // flex calls this only when memory is out or its own tables are broken.
    fprintf(stderr, "jfac: %s\n", message);
    exit(71);
}

Ast *ast_append(Ast *list, Ast *item) {
    if (!list || !item)
        return list ? list : item;
    Ast *last = list->last ? list->last : list;
    while (last->next)
        last = last->next;
    last->next = item;
    list->last = item->last ? item->last : item;
    return list;
}

// ---------------------------------------------------------------- depth

typedef struct {
    Ast *node;
    int depth; // of expressions around it
} Visit;

typedef struct {
    Arena *arena;
    Visit *visits;
    int count, capacity;
} Visits;

static void push(Visits *stack, Ast *node, int depth) {
    if (!node)
        return;
    if (stack->count == stack->capacity) {
        int capacity = stack->capacity ? 2 * stack->capacity : 256;
        Visit *larger = arena_array(stack->arena, Visit, capacity);
        if (stack->count)
            memcpy(larger, stack->visits, sizeof *larger * (size_t)stack->count);
        stack->visits = larger;
        stack->capacity = capacity;
    }
    stack->visits[stack->count++] = (Visit){node, depth};
}

// Later passes recur over the tree. The grammar's stack doesn't bound what is read from left to right (1 + 1
// + ...), so expressions that are too deep are told and cut off here, without recursion.
static void limit_depth(ParserState *state) {
    Visits stack = {.arena = state->arena};
    push(&stack, state->result, 0);
    while (stack.count) {
        Visit visit = stack.visits[--stack.count];
        Ast *node = visit.node;
        bool is_expression = node->kind <= AST_TYPE;
        push(&stack, node->next, visit.depth);
        if (is_expression && visit.depth >= DEEPEST_EXPRESSION) {
            parser_too_deep(state, node->span);
            *node = (Ast){.kind = AST_INT, .span = node->span, .name_span = node->span, .next = node->next};
            continue;
        }
        Ast *const children[] = {node->a, node->b, node->c, node->list, node->list2};
        for (size_t i = 0; i < sizeof children / sizeof children[0]; i++)
            push(&stack, children[i], is_expression ? visit.depth + 1 : 0);
    }
}

static Ast *parse(Arena *arena, Diag *diag, int file, bool expression) {
    ParserState state = {.arena = arena,
                         .diag = diag,
                         .file = file,
                         .expression = expression,
                         .first_token = true,
                         .errors_before = diag->error_count,
                         .starts_construct = true};
    const Source *source = &diag->sources->files[file];
    yyscan_t scanner;
    if (jfa_yylex_init_extra(&state, &scanner))
        parser_scanner_failed("out of memory");
    jfa_yy_scan_bytes(source->text, source->length, scanner);
    jfa_yyparse(scanner, &state);
    jfa_yylex_destroy(scanner);
    limit_depth(&state);
    return state.result;
}

Ast *parse_file(Arena *arena, Diag *diag, int file) {
    return parse(arena, diag, file, false);
}

Ast *parse_expression(Arena *arena, Diag *diag, int file) {
    return parse(arena, diag, file, true);
}

static const char *const KIND_NAMES[AST_KIND_COUNT] = {
    [AST_INT] = "int",
    [AST_FLOAT] = "float",
    [AST_BOOL] = "bool",
    [AST_INF] = "inf",
    [AST_NAME] = "name",
    [AST_UNARY] = "unary",
    [AST_BINARY] = "binary",
    [AST_CHOICE] = "choice",
    [AST_CALL] = "call",
    [AST_INDEX] = "index",
    [AST_MEMBER] = "member",
    [AST_TRANSPOSE] = "transpose",
    [AST_REDUCE] = "reduce",
    [AST_BIND] = "bind",
    [AST_TYPE] = "type",
    [AST_USE] = "use",
    [AST_FAMILY] = "family",
    [AST_SCHEDULE] = "schedule",
    [AST_KERNEL] = "kernel",
    [AST_CONST] = "const",
    [AST_FUNCTION] = "fn",
    [AST_OPTION] = "option",
    [AST_AXIS] = "axis",
    [AST_DIM] = "dim",
    [AST_TENSOR] = "tensor",
    [AST_PARAM] = "param",
    [AST_HOOK] = "hook",
    [AST_REFERENCE] = "reference",
    [AST_SETTING] = "setting",
    [AST_MATH] = "math",
    [AST_BUFFER] = "buffer",
    [AST_PIPE] = "pipe",
    [AST_GRID] = "grid",
    [AST_WALK] = "walk",
    [AST_ROLE] = "role",
    [AST_LET] = "let",
    [AST_VAR] = "var",
    [AST_ASSIGN] = "assign",
    [AST_TAKE] = "take",
    [AST_PUT] = "put",
    [AST_FILL] = "fill",
    [AST_ACCUM] = "accumulate",
    [AST_FREE] = "free",
    [AST_UPDATE] = "update",
    [AST_STORE] = "store",
    [AST_FOR] = "for",
    [AST_IF] = "if",
    [AST_TURN] = "turn",
    [AST_IN_TURN] = "in turn",
    [AST_CLUSTER] = "cluster",
    [AST_OCCUPANCY] = "occupancy",
};

const char *ast_op_text(int op) {
    static const char *const LONG[] = {"==", "!=", "<=", ">=", "&&", "||"};
    static const char SHORT[] = "+\0-\0*\0/\0%\0@\0<\0>\0!";
    if (op >= OP_EQ && op <= OP_OR)
        return LONG[op - OP_EQ];
    for (size_t i = 0; i < sizeof SHORT; i += 2)
        if (SHORT[i] == op)
            return &SHORT[i];
    return "?";
}

static void print_node(const Ast *node, const char *label, int depth, FILE *out) {
    for (; node; node = node->next) {
        fprintf(out, "%*s%s%s", 2 * depth, "", label, KIND_NAMES[node->kind]);
        if (node->name)
            fprintf(out, " %s", node->name);
        if (node->name2)
            fprintf(out, " %s", node->name2);
        if (node->name3)
            fprintf(out, " %s", node->name3);
        if (node->kind == AST_UNARY || node->kind == AST_BINARY)
            fprintf(out, " %s", ast_op_text(node->op));
        if (node->kind == AST_INT || node->kind == AST_BOOL)
            fprintf(out, " %lld", (long long)node->integer);
        if (node->kind == AST_FLOAT)
            fprintf(out, " %g", node->real);
        if (node->kind == AST_BUFFER)
            fprintf(out, " %s", node->op == SPACE_SMEM ? "smem" : "tmem");
        if (node->kind == AST_TENSOR)
            fprintf(out, " %s", node->op == TENSOR_IN ? "in" : node->op == TENSOR_OUT ? "out" : "inout");
        if (node->kind == AST_PIPE && node->op == PIPE_MULTICAST)
            fprintf(out, " multicast");
        if (node->flag || (node->kind == AST_PIPE && node->op == PIPE_IN_PLACE))
            fprintf(out, " *");
        fputc('\n', out);
        print_node(node->a, "", depth + 1, out);
        print_node(node->b, "", depth + 1, out);
        print_node(node->c, "", depth + 1, out);
        print_node(node->list, "", depth + 1, out);
        print_node(node->list2, "> ", depth + 1, out);
    }
}

void ast_print(const Ast *items, FILE *out) {
    print_node(items, "", 0, out);
}

const char *ast_text(const SourceSet *sources, Arena *arena, Span span) {
    if (span.file < 0)
        return "";
    return arena_copy(arena, sources->files[span.file].text + span.start, (size_t)(span.end - span.start));
}
