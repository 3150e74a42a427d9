/* jfa.y: the grammar. docs/language.md quotes these rules. After an error the parser goes on at the next ';' or '}'
   so that one run reports several errors. */
%define api.pure full
%define api.prefix {jfa_yy}
%define parse.error custom
%define parse.lac full
%locations
%param { void *scanner }
%parse-param { ParserState *state }
%expect 0

%code requires {
#include "grammar/parser.h"
}

%union {
    const char *text;
    int64_t integer;
    double real;
    Ast *node;
    int op;
    bool flag;
}

%code {
#include "jfa_l.h"

#define YYLLOC_DEFAULT(Current, Rhs, N)                                                                                \
    do {                                                                                                               \
        if (N) {                                                                                                       \
            (Current) = span_join(YYRHSLOC(Rhs, 1), YYRHSLOC(Rhs, N));                                                 \
        } else {                                                                                                       \
            (Current) = YYRHSLOC(Rhs, 0);                                                                              \
            (Current).start = (Current).end;                                                                           \
        }                                                                                                              \
    } while (0)

static Ast *make(ParserState *state, AstKind kind, Span span) {
    Ast *node = arena_new_of(state->arena, Ast);
    node->kind = kind;
    node->span = node->name_span = span;
    return node;
}

static Ast *named(ParserState *state, AstKind kind, Span span, const char *name, Span name_span) {
    Ast *node = make(state, kind, span);
    node->name = name;
    node->name_span = name_span;
    return node;
}

static Ast *binary(ParserState *state, Span span, int op, Ast *a, Ast *b) {
    Ast *node = make(state, AST_BINARY, span);
    node->op = op;
    node->a = a;
    node->b = b;
    return node;
}

static int start_or_scan(JFA_YYSTYPE *value, Span *span, void *scanner, ParserState *state);
#define jfa_yylex(value, span, scanner) start_or_scan(value, span, scanner, state)
static void jfa_yyerror(Span *span, void *scanner, ParserState *state, const char *message);
}

%token START_FILE "start of file" START_EXPRESSION "start of expression"
%token USE "use" FAMILY "family" SCHEDULE "schedule" KERNEL "kernel" OF "of" FOR "for" IN "in" CONST "const" FN "fn"
%token OPTION "option" AXIS "axis" DIM "dim" DIVIDES "divides" TENSOR "tensor" OPTIONAL "optional" PARAM "param"
%token HOOK "hook" REFERENCE "reference" SMEM "smem" TMEM "tmem" OVER "over" PIPE "pipe" GRID "grid" WALK "walk" TURN "turn" CLUSTER "cluster" MULTICAST "multicast" OCCUPANCY "occupancy"
%token WHERE "where" ROLE "role" WARPS "warps" REGS "regs" LET "let" VAR "var" TAKE "take" PUT "put" FILL "fill"
%token FREE "free" UPDATE "update" FRESH "fresh" IF "if" ELSE "else" TRUE "true" FALSE "false" INF "inf"
%token ARROW "=>" TO "->" EQ "==" NE "!=" LE "<=" GE ">=" AND "&&" OR "||" ADD_TO "+=" TRANSPOSED "^T"
%token <text> NAME "a name" OUT "out" INOUT "inout" PLACE "place" STORE "store" TUNE "tune"
%token <integer> INTEGER "an integer"
%token <real> REAL "a number"

%type <text> name role_name
%type <op> direction space
%type <flag> is_optional
%type <integer> pipe_kind
%type <node> top_items top_item braced_items items item statements statement block else_part
%type <node> expression arguments argument_list names name_list binds bind replica dims type shape default_value bound
%type <node> value target argument where_part fresh_part modifiers regs_part from_type constant tune_part expression_list roles

%right '?' ':'
%left OR
%left AND
%left EQ NE
%left '<' '>' LE GE
%left '+' '-'
%left '*' '/' '%' '@'
%precedence UNARY
%precedence TRANSPOSED '.' '[' '('

%%

start:
  START_FILE top_items              { state->result = $2; }
| START_EXPRESSION expression       { state->result = $2; }
;

name: NAME | OUT | INOUT | PLACE | TUNE ;
role_name: name | STORE ;

top_items:
  %empty                            { $$ = NULL; }
| top_items top_item                { $$ = ast_append($1, $2); }
;

top_item:
  USE name ';'                      { $$ = named(state, AST_USE, @$, $2, @2); }
| FAMILY name braced_items          { $$ = named(state, AST_FAMILY, @$, $2, @2); $$->list = $3; }
| SCHEDULE name OF name FOR name braced_items
                                    { $$ = named(state, AST_SCHEDULE, @$, $2, @2); $$->name2 = $4; $$->name3 = $6; $$->list = $7;
                                      $$->name2_span = @4; $$->name3_span = @6; }
| KERNEL name ':' name braced_items
                                    { $$ = named(state, AST_KERNEL, @$, $2, @2); $$->name2 = $4; $$->name2_span = @4; $$->list = $5; }
| error ';'                         { $$ = NULL; yyerrok; }
| error '}'                         { $$ = NULL; yyerrok; }
| error braced_items                { $$ = NULL; yyerrok; }
;

braced_items:
  '{' items '}'                     { $$ = $2; }
| '{' items error '}'               { $$ = $2; yyerrok; }
;

items:
  %empty                            { $$ = NULL; }
| items item                        { $$ = ast_append($1, $2); }
;

item:
  CONST from_type ';'               { $$ = $2; }
| FN name '(' names ')' ARROW expression ';'
                                    { $$ = named(state, AST_FUNCTION, @$, $2, @2); $$->list = $4; $$->a = $7; }
| OPTION name ':' name IN '(' expression_list ')' ';'
                                    { $$ = named(state, AST_OPTION, @$, $2, @2); $$->name2 = $4; $$->name2_span = @4; $$->list = $7; }
| AXIS name ';'                     { $$ = named(state, AST_AXIS, @$, $2, @2); }
| DIM name ';'                      { $$ = named(state, AST_DIM, @$, $2, @2); }
| DIM name DIVIDES name ';'         { $$ = named(state, AST_DIM, @$, $2, @2); $$->name2 = $4; $$->name2_span = @4; }
| TENSOR name ':' direction type is_optional ';'
                                    { $$ = named(state, AST_TENSOR, @$, $2, @2); $$->op = $4; $$->a = $5; $$->flag = $6; }
| PARAM name ':' name bound default_value ';'
                                    { $$ = named(state, AST_PARAM, @$, $2, @2); $$->name2 = $4; $$->name2_span = @4; $$->b = $5; $$->a = $6; }
| HOOK name '(' names ')' ':' name ARROW expression ';'
                                    { $$ = named(state, AST_HOOK, @$, $2, @2); $$->list = $4; $$->name2 = $7; $$->name2_span = @7; $$->a = $9; }
| REFERENCE block                   { $$ = make(state, AST_REFERENCE, @$); $$->list = $2; }
| name value ';'                    { $$ = named(state, AST_SETTING, @$, $1, @1); $$->a = $2; }
| SCHEDULE name ';'                 { $$ = named(state, AST_SETTING, @$, "schedule", @1);
                                      $$->a = named(state, AST_NAME, @2, $2, @2); }
| name '(' names ')' ARROW expression ';'
                                    { $$ = named(state, AST_MATH, @$, $1, @1); $$->list = $3; $$->a = $6; }
| space name dims ':' type ';'      { $$ = named(state, AST_BUFFER, @$, $2, @2); $$->op = $1; $$->list = $3; $$->a = $5; }
| space name dims ':' type OVER name ';'
                                    { $$ = named(state, AST_BUFFER, @$, $2, @2); $$->op = $1; $$->list = $3; $$->a = $5; $$->name2 = $7; $$->name2_span = @7; }
| PIPE name dims ':' name role_name TO roles pipe_kind ';'
                                    { $$ = named(state, AST_PIPE, @$, $2, @2); $$->list = $3; $$->name2 = $5; $$->name3 = $6;
                                      $$->list2 = $8; $$->op = (int)$9; $$->name2_span = @5; $$->name3_span = @6; }
| GRID name OVER '(' binds ')' modifiers ';'
                                    { $$ = named(state, AST_GRID, @$, $2, @2); $$->list = $5; $$->list2 = $7; }
| WALK name OVER bind modifiers where_part ';'
                                    { $$ = named(state, AST_WALK, @$, $2, @2); $$->list = $4; $$->list2 = $5; $$->a = $6; }
| CLUSTER name IN expression ';'    { $$ = named(state, AST_CLUSTER, @$, $2, @2); $$->a = $4; }
| OCCUPANCY expression ';'          { $$ = make(state, AST_OCCUPANCY, @$); $$->a = $2; }
| TURN name OF role_name ';'        { $$ = named(state, AST_TURN, @$, $2, @2); $$->name2 = $4; }
| ROLE role_name replica ':' expression WARPS regs_part block
                                    { $$ = named(state, AST_ROLE, @$, $2, @2); $$->list = $3; $$->a = $5; $$->b = $7; $$->list2 = $8; }
| error ';'                         { $$ = NULL; yyerrok; }
| error block                       { $$ = NULL; yyerrok; }
;

from_type:
  constant
| from_type ',' constant            { $$ = ast_append($1, $3); }
;

constant:
  name '=' expression tune_part     { $$ = named(state, AST_CONST, @$, $1, @1); $$->a = $3; $$->list = $4; }
;

value:
  INTEGER                           { $$ = make(state, AST_INT, @$); $$->integer = $1; }
| '-' INTEGER                       { $$ = make(state, AST_INT, @$); $$->integer = -$2; }
| REAL                              { $$ = make(state, AST_FLOAT, @$); $$->real = $1; }
| '-' REAL                          { $$ = make(state, AST_FLOAT, @$); $$->real = -$2; }
| TRUE                              { $$ = make(state, AST_BOOL, @$); $$->integer = 1; }
| FALSE                             { $$ = make(state, AST_BOOL, @$); }
| name                              { $$ = named(state, AST_NAME, @$, $1, @1); }
;

target:
  name                              { $$ = named(state, AST_NAME, @$, $1, @1); }
| name '[' arguments ']'            { $$ = make(state, AST_INDEX, @$); $$->a = named(state, AST_NAME, @1, $1, @1); $$->list = $3; }
;

direction: IN { $$ = TENSOR_IN; } | OUT { $$ = TENSOR_OUT; } | INOUT { $$ = TENSOR_INOUT; } ;
space: SMEM { $$ = SPACE_SMEM; } | TMEM { $$ = SPACE_TMEM; } ;
is_optional: %empty { $$ = false; } | OPTIONAL { $$ = true; } ;
pipe_kind: %empty { $$ = PIPE_PLAIN; } | IN PLACE { $$ = PIPE_IN_PLACE; } | MULTICAST { $$ = PIPE_MULTICAST; } ;
bound: %empty { $$ = NULL; } | '>' INTEGER { $$ = make(state, AST_INT, @2); $$->integer = $2; } ;
default_value: %empty { $$ = NULL; } | '=' expression { $$ = $2; } ;
tune_part: %empty { $$ = NULL; } | TUNE '(' expression_list ')' { $$ = $3; } ;
where_part: %empty { $$ = NULL; } | WHERE expression { $$ = $2; } ;
fresh_part: %empty { $$ = NULL; } | FRESH IF expression { $$ = $3; } ;
regs_part: %empty { $$ = NULL; } | ',' expression REGS { $$ = $2; } ;
replica: %empty { $$ = NULL; } | '[' bind ']' { $$ = $2; } ;
dims: %empty { $$ = NULL; } | '[' expression_list ']' { $$ = $2; } ;
shape: %empty { $$ = NULL; } | '[' expression_list ']' { $$ = $2; } ;
type: name shape                    { $$ = named(state, AST_TYPE, @$, $1, @1); $$->list = $2; } ;

modifiers:
  %empty                            { $$ = NULL; }
| modifiers name                    { $$ = ast_append($1, named(state, AST_NAME, @2, $2, @2)); }
;

roles:
  role_name                         { $$ = named(state, AST_NAME, @1, $1, @1); }
| roles ',' role_name               { $$ = ast_append($1, named(state, AST_NAME, @3, $3, @3)); }
;

names: %empty { $$ = NULL; } | name_list ;
name_list:
  name                              { $$ = named(state, AST_NAME, @1, $1, @1); }
| name_list ',' name                { $$ = ast_append($1, named(state, AST_NAME, @3, $3, @3)); }
;

bind: name IN expression            { $$ = named(state, AST_BIND, @$, $1, @1); $$->a = $3; } ;
binds:
  bind
| binds ',' bind                    { $$ = ast_append($1, $3); }
;

block:
  '{' statements '}'                { $$ = $2; }
| '{' statements error '}'          { $$ = $2; yyerrok; }
;

statements:
  %empty                            { $$ = NULL; }
| statements statement              { $$ = ast_append($1, $2); }
;

statement:
  LET name '=' expression ';'       { $$ = named(state, AST_LET, @$, $2, @2); $$->a = $4; }
| LET name '[' binds ']' '=' expression ';'
                                    { $$ = named(state, AST_LET, @$, $2, @2); $$->list = $4; $$->a = $7; }
| VAR name ':' type '=' expression ';'
                                    { $$ = named(state, AST_VAR, @$, $2, @2); $$->b = $4; $$->a = $6; }
| TAKE target '=' target ';' { $$ = make(state, AST_TAKE, @$); $$->a = $2; $$->b = $4; }
| PUT target '=' expression ';' { $$ = make(state, AST_PUT, @$); $$->a = $2; $$->b = $4; }
| PUT target ADD_TO expression fresh_part ';'
                                    { $$ = make(state, AST_PUT, @$); $$->a = $2; $$->b = $4; $$->flag = true; $$->c = $5; }
| FILL name '=' target block        { $$ = named(state, AST_FILL, @$, $2, @2); $$->a = $4; $$->list2 = $5; }
| FREE target ';'               { $$ = make(state, AST_FREE, @$); $$->a = $2; }
| UPDATE target '=' expression ';' { $$ = make(state, AST_UPDATE, @$); $$->a = $2; $$->b = $4; }
| STORE target '=' expression ';'  { $$ = make(state, AST_STORE, @$); $$->a = $2; $$->b = $4; }
| target '=' expression ';'     { $$ = make(state, AST_ASSIGN, @$); $$->a = $1; $$->b = $3; }
| target ADD_TO expression fresh_part ';'
                                    { $$ = make(state, AST_ACCUM, @$); $$->a = $1; $$->b = $3; $$->c = $4; }
| IN TURN name block                { $$ = named(state, AST_IN_TURN, @$, $3, @3); $$->list2 = $4; }
| FOR binds block                   { $$ = make(state, AST_FOR, @$); $$->list = $2; $$->list2 = $3; }
| IF expression block else_part     { $$ = make(state, AST_IF, @$); $$->a = $2; $$->list2 = $3; $$->list = $4; }
| error ';'                         { $$ = NULL; yyerrok; }
| error block                       { $$ = NULL; yyerrok; }
;

else_part:
  %empty                            { $$ = NULL; }
| ELSE block                        { $$ = $2; }
| ELSE IF expression block else_part { $$ = make(state, AST_IF, span_join(@2, @$)); $$->a = $3; $$->list2 = $4; $$->list = $5; }
;

expression_list:
  expression
| expression_list ',' expression    { $$ = ast_append($1, $3); }
;

arguments: %empty { $$ = NULL; } | argument_list ;
argument_list:
  argument
| argument_list ',' argument        { $$ = ast_append($1, $3); }
;
argument: expression | bind ;

expression:
  INTEGER                           { $$ = make(state, AST_INT, @$); $$->integer = $1; }
| REAL                              { $$ = make(state, AST_FLOAT, @$); $$->real = $1; }
| TRUE                              { $$ = make(state, AST_BOOL, @$); $$->integer = 1; }
| FALSE                             { $$ = make(state, AST_BOOL, @$); }
| INF                               { $$ = make(state, AST_INF, @$); }
| name                              { $$ = named(state, AST_NAME, @$, $1, @1); }
| '(' expression ')'                { $$ = $2; }
| '-' expression %prec UNARY        { $$ = make(state, AST_UNARY, @$); $$->op = '-'; $$->a = $2; }
| '!' expression %prec UNARY        { $$ = make(state, AST_UNARY, @$); $$->op = '!'; $$->a = $2; }
| expression '+' expression         { $$ = binary(state, @$, '+', $1, $3); }
| expression '-' expression         { $$ = binary(state, @$, '-', $1, $3); }
| expression '*' expression         { $$ = binary(state, @$, '*', $1, $3); }
| expression '/' expression         { $$ = binary(state, @$, '/', $1, $3); }
| expression '%' expression         { $$ = binary(state, @$, '%', $1, $3); }
| expression '@' expression         { $$ = binary(state, @$, '@', $1, $3); }
| expression '<' expression         { $$ = binary(state, @$, '<', $1, $3); }
| expression '>' expression         { $$ = binary(state, @$, '>', $1, $3); }
| expression LE expression          { $$ = binary(state, @$, OP_LE, $1, $3); }
| expression GE expression          { $$ = binary(state, @$, OP_GE, $1, $3); }
| expression EQ expression          { $$ = binary(state, @$, OP_EQ, $1, $3); }
| expression NE expression          { $$ = binary(state, @$, OP_NE, $1, $3); }
| expression AND expression         { $$ = binary(state, @$, OP_AND, $1, $3); }
| expression OR expression          { $$ = binary(state, @$, OP_OR, $1, $3); }
| expression '?' expression ':' expression
                                    { $$ = make(state, AST_CHOICE, @$); $$->a = $1; $$->b = $3; $$->c = $5; }
| expression TRANSPOSED             { $$ = make(state, AST_TRANSPOSE, @$); $$->a = $1; }
| expression '.' name               { $$ = named(state, AST_MEMBER, @$, $3, @3); $$->a = $1; }
| expression '[' arguments ']'      { $$ = make(state, AST_INDEX, @$); $$->a = $1; $$->list = $3; }
| expression '(' arguments ')'      { $$ = make(state, AST_CALL, @$); $$->a = $1; $$->list = $3; }
| expression '(' bind ':' expression ')'
                                    { $$ = named(state, AST_REDUCE, @$, $1->name, @1); $$->list = $3; $$->a = $5;
                                      if ($1->kind != AST_NAME)
                                          diag_error(state->diag, @1, "syntax", "a reduction is called by its name: sum(i in axis : value)"); }
;

%%

// Gives the start token first, so that one grammar serves files and single expressions.
static int start_or_scan(JFA_YYSTYPE *value, Span *span, void *scanner, ParserState *state) {
#undef jfa_yylex
    if (state->first_token) {
        state->first_token = false;
        span->file = state->file;
        span->start = span->end = 0;
        return state->expression ? START_EXPRESSION : START_FILE;
    }
    int token = state->gave_up ? 0 : jfa_yylex(value, span, scanner);
    if (token == 0) {
        span->file = state->file;
        span->start = span->end = state->diag->sources->files[state->file].length;
    }
    parser_saw_token(state, *span, token == NAME);
    return token;
}

// Called by bison itself only when its stack is full.
static void jfa_yyerror(Span *span, void *scanner, ParserState *state, const char *message) {
    (void)scanner;
    (void)message;
    parser_too_deep(state, *span);
}

static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, ParserState *state) {
    (void)scanner;
    yysymbol_kind_t token = yypcontext_token(context), kinds[PARSER_MOST_EXPECTED];
    const char *expected[PARSER_MOST_EXPECTED], *found = token == YYSYMBOL_YYEOF ? NULL : yysymbol_name(token);
    if (!parser_tells_syntax_error(state, found)) // what was expected takes long to find out
        return 0;
    int count = yypcontext_expected_tokens(context, kinds, PARSER_MOST_EXPECTED);
    for (int i = 0; i < count; i++)
        expected[i] = yysymbol_name(kinds[i]);
    parser_syntax_error(state, found, expected, count);
    return 0;
}
