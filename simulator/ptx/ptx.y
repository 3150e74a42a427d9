// ptx.y: the grammar of a PTX module (PTX ISA, "Directives" and "Instruction statements"). The first mistake ends the
// parse: PTX comes from a compiler, and what follows a mistake would only repeat it.
%define api.pure full
%define api.prefix {ptx_yy}
%define parse.error verbose
%locations
%parse-param {PtxParser *parser} {void *scanner}
%lex-param {void *scanner}

%code requires {
#include "simulator/ptx/parse.h"
}

%union {
    int64_t integer;
    PtxNumber number;
    PtxWord word;
    PtxType type;
    PtxSpace space;
    PtxOperand operand;
    PtxList *list;
    PtxDeclaration declaration;
    struct {
        int64_t values[3];
        int count;
    } triple;
}

%code {
int ptx_yylex(PTX_YYSTYPE *value, PTX_YYLTYPE *at, void *scanner);

static void ptx_yyerror(PTX_YYLTYPE *at, PtxParser *parser, void *scanner, const char *message) {
    (void)scanner;
    ptx_fail(parser, at->first_line, at->first_column, "%s", message);
}

static int64_t whole(PtxParser *parser, PtxNumber number, PTX_YYLTYPE at) {
    if (number.is_float)
        ptx_fail(parser, at.first_line, at.first_column, "a whole number is needed here");
    return number.integer;
}

static int64_t element_count(PtxParser *parser, int64_t before, PtxNumber number, PTX_YYLTYPE at) {
    int64_t more = whole(parser, number, at);
    if (more < 1 || more > (INT64_C(1) << 32) / before)
        ptx_fail(parser, at.first_line, at.first_column, "an array needs 1 to 2^32 elements");
    return before * more;
}
}

%token TARGET ".target" ADDRESS_SIZE ".address_size" LINKAGE ".visible" EXTERN ".extern" ENTRY ".entry" FUNC ".func"
%token NORETURN ".noreturn" PRAGMA ".pragma" REG ".reg" ALIGN ".align" PTR ".ptr"
%token BRANCHTARGETS ".branchtargets" STRING "string"
%token <word> WORD "name" LIMIT "limit" FLAG "flag"
%token <number> NUMBER "number"
%token <type> TYPE "type"
%token <space> SPACE "state space"
%token <integer> VECTOR "vector width"

%type <number> number
%type <integer> alignment elements sizes range
%type <declaration> declaration
%type <operand> operand address base
%type <list> operands operand_list label_list
%type <triple> triple

%%

module: items;

items: %empty | items item;

item: TARGET WORD                     { ptx_target(parser, $2.text); } target_options
    | ADDRESS_SIZE NUMBER             { ptx_address_size(parser, whole(parser, $2, @2), @2.first_line, @2.first_column); }
    | linkage variable
    | linkage entry
    | linkage function_prototype
    | linkage EXTERN function_prototype
    | PRAGMA STRING ';'
    ;

target_options: %empty | target_options ',' WORD;

linkage: %empty | LINKAGE;

// ---------------------------------------------------------------- variables

declaration: SPACE                    { $$ = (PtxDeclaration){.space = $1, .type = PTX_TYPE_COUNT, .vector = 1}; }
    | declaration alignment           { $$ = $1; $$.align = (int)$2; }
    | declaration VECTOR              { $$ = $1; $$.vector = (int)$2; }
    | declaration TYPE                { $$ = $1; $$.type = $2; }
    ;

alignment: ALIGN NUMBER {
        $$ = whole(parser, $2, @2);
        if ($$ < 1 || $$ > 1 << 20 || ($$ & ($$ - 1)))
            ptx_fail(parser, @2.first_line, @2.first_column, "an alignment must be a power of two");
    };

variable: variable_kind variable_names ';';

variable_kind: declaration            { ptx_declaration(parser, $1); }
    | EXTERN declaration              { $2.is_extern = true; ptx_declaration(parser, $2); }
    ;

variable_names: variable_name | variable_names ',' variable_name;

variable_name: WORD elements { ptx_declare(parser, $1.text, $2, @1.first_line, @1.first_column); } initial;

elements: %empty                      { $$ = 1; }
    | '[' ']'                         { $$ = 0; }
    | sizes
    ;

sizes: '[' NUMBER ']'                 { $$ = element_count(parser, 1, $2, @2); }
    | sizes '[' NUMBER ']'            { $$ = element_count(parser, $1, $3, @3); }
    ;

initial: %empty | '=' initial_value;

initial_value: number                 { ptx_initial_number(parser, $1, @1.first_line, @1.first_column); }
    | WORD { ptx_fail(parser, @1.first_line, @1.first_column, "an initial value must be a number: addresses are not known here"); }
    | '{' '}'
    | '{' initial_values '}'
    ;

initial_values: initial_value | initial_values ',' initial_value;

// ---------------------------------------------------------------- entries

entry: ENTRY WORD                     { ptx_entry_begin(parser, $2.text, @2.first_line, @2.first_column); }
       parameters limits '{' statements '}' { ptx_entry_end(parser); };

parameters: %empty | '(' ')' | '(' parameter_list ')';

parameter_list: parameter | parameter_list ',' parameter;

parameter: declaration pointer WORD elements {
        ptx_declaration(parser, $1);
        ptx_declare(parser, $3.text, $4, @3.first_line, @3.first_column);
    };

pointer: %empty | PTR | PTR SPACE | PTR alignment | PTR SPACE alignment;

limits: %empty | limits limit;

limit: LIMIT triple { ptx_entry_limit(parser, $1.text, $2.values, $2.count, @1.first_line, @1.first_column); }
    | FLAG
    | PRAGMA STRING ';'
    ;

triple: NUMBER                        { $$.values[0] = whole(parser, $1, @1); $$.count = 1; }
    | triple ',' NUMBER {
        $$ = $1;
        if ($$.count == 3)
            ptx_fail(parser, @3.first_line, @3.first_column, "at most three numbers are allowed here");
        $$.values[$$.count++] = whole(parser, $3, @3);
    }
    ;

function_prototype: FUNC result WORD  arguments NORETURN ';'
    | FUNC result WORD arguments ';'
    | FUNC result WORD arguments '{' { ptx_fail(parser, @3.first_line, @3.first_column, "functions are not supported: %s must be inlined", $3.text); }
    ;

result: %empty | '(' argument_list ')';

arguments: %empty | '(' ')' | '(' argument_list ')';

argument_list: argument | argument_list ',' argument;

argument: declaration WORD elements | REG TYPE WORD;

// ---------------------------------------------------------------- statements

statements: %empty | statements statement;

statement: REG TYPE                   { ptx_registers(parser, $2); } register_list ';'
    | REG VECTOR TYPE { ptx_fail(parser, @2.first_line, @2.first_column, "vector registers are not supported"); }
    | variable
    | '{'                             { ptx_scope_begin(parser); } statements '}' { ptx_scope_end(parser); }
    | WORD ':'                        { ptx_label(parser, $1.text, @1.first_line, @1.first_column); }
    | WORD ':' BRANCHTARGETS label_list ';' { ptx_target_table(parser, $1.text, $4, @1.first_line, @1.first_column); }
    | WORD operands ';'               { ptx_instruction(parser, NULL, false, $1, $2, @1.first_line, @1.first_column); }
    | '@' WORD WORD operands ';'      { ptx_instruction(parser, $2.text, false, $3, $4, @3.first_line, @3.first_column); }
    | '@' '!' WORD WORD operands ';'  { ptx_instruction(parser, $3.text, true, $4, $5, @4.first_line, @4.first_column); }
    | PRAGMA STRING ';'
    | ';'
    ;

register_list: register_name | register_list ',' register_name;

register_name: WORD range { ptx_register(parser, $1.text, $2, @1.first_line, @1.first_column); };

range: %empty                         { $$ = -1; }
    | '<' NUMBER '>'                  { $$ = whole(parser, $2, @2); }
    ;

label_list: WORD                      { $$ = ptx_append(parser, NULL, ptx_name(parser, $1.text, @1.first_line, @1.first_column), @1.first_line, @1.first_column); }
    | label_list ',' WORD             { $$ = ptx_append(parser, $1, ptx_name(parser, $3.text, @3.first_line, @3.first_column), @3.first_line, @3.first_column); }
    ;

operands: %empty                      { $$ = NULL; }
    | operand_list
    ;

operand_list: operand                 { $$ = ptx_append(parser, NULL, $1, @1.first_line, @1.first_column); }
    | operand_list ',' operand        { $$ = ptx_append(parser, $1, $3, @3.first_line, @3.first_column); }
    ;

number: NUMBER
    | '-' NUMBER {
        $$ = $2;
        $$.integer = $2.is_float ? (int64_t)((uint64_t)$2.integer ^ ($2.is_double ? 1ull << 63 : 1ull << 31))
                                 : (int64_t)(0 - (uint64_t)$2.integer);
    }
    ;

base: WORD                            { $$ = ptx_name(parser, $1.text, @1.first_line, @1.first_column); }
    | number {
        $$ = (PtxOperand){.kind = $1.is_float ? PTX_FLOAT : PTX_INT, .is_double = $1.is_double, .integer = $1.integer,
                          .reg = -1, .second = -1, .symbol = -1, .target = -1};
    }
    ;

operand: base
    | WORD '+' NUMBER {
        $$ = ptx_name(parser, $1.text, @1.first_line, @1.first_column);
        if ($$.kind != PTX_SYMBOL)
            ptx_fail(parser, @1.first_line, @1.first_column, "only a variable may have an offset here");
        $$.offset = whole(parser, $3, @3);
    }
    | WORD '|' WORD                   { $$ = ptx_pair(parser, $1.text, $3.text, @1.first_line, @1.first_column); }
    | '!' WORD                        { $$ = ptx_name(parser, $2.text, @2.first_line, @2.first_column); $$.negated = true; }
    | '{' operand_list '}'            { $$ = ptx_group(parser, PTX_VECTOR, $2); }
    | '(' operand_list ')'            { $$ = ptx_group(parser, PTX_VECTOR, $2); }
    | '[' address ']'                 { $$ = $2; }
    | '[' address ',' '{' operand_list '}' ']' {
        PtxList *items = ptx_append(parser, NULL, $2.items[0], @2.first_line, @2.first_column);
        if ($2.offset)
            ptx_fail(parser, @2.first_line, @2.first_column, "a tensor map's address has no offset");
        items = ptx_append(parser, items, ptx_group(parser, PTX_VECTOR, $5), @5.first_line, @5.first_column);
        $$ = ptx_group(parser, PTX_TENSOR, items);
    }
    ;

address: base                         { $$ = ptx_group(parser, PTX_ADDRESS, ptx_append(parser, NULL, $1, @1.first_line, @1.first_column)); }
    | base '+' number {
        $$ = ptx_group(parser, PTX_ADDRESS, ptx_append(parser, NULL, $1, @1.first_line, @1.first_column));
        $$.offset = whole(parser, $3, @3);
    }
    | base '-' NUMBER {
        $$ = ptx_group(parser, PTX_ADDRESS, ptx_append(parser, NULL, $1, @1.first_line, @1.first_column));
        $$.offset = (int64_t)(0 - (uint64_t)whole(parser, $3, @3));
    }
    ;

%%
