// parser.h: what scanner, parser and its messages share; private to this room.
#ifndef JFA_GRAMMAR_PARSER_H
#define JFA_GRAMMAR_PARSER_H

#include "grammar/ast.h"

// flex knows these types by its own names only.
#define YYSTYPE JFA_YYSTYPE
#define YYLTYPE JFA_YYLTYPE
#define JFA_YYLTYPE Span

// The parser's stack: what is nested deeper is refused. It also bounds the depth of blocks in the tree.
#define YYMAXDEPTH 4000

enum {
    MOST_SYNTAX_ERRORS = 100, // in one file; then the rest of it is left unread
    DEEPEST_EXPRESSION = 1000,
    LONGEST_NAME = 63 // what a kernel says of itself holds names of 64 bytes, with their NUL
};

typedef struct {
    Arena *arena;
    Diag *diag;
    int file;
    int offset;         // of the next byte to scan
    bool expression;    // parse one expression instead of a file
    bool first_token;   // the start token has not been given yet
    bool told_unclosed; // a bracket that isn't closed: what doesn't fit after it follows from that
    bool told_at_top; // outside of all braces: what stands wrong there up to the next construct follows from
                      // it
    bool gave_up;     // too many errors: the scanner says that the file ends
    int errors_before;
    Ast *result;
    // For messages: the token read last, the one before it, the first of the construct at hand.
    Span token, previous, construct;
    bool starts_construct, construct_is_name;
    int construct_level; // brackets around it
    Span *open;          // brackets that are not closed yet, innermost last
    int open_count, open_capacity;
} ParserState;

char *parser_copy(ParserState *state, const char *text, size_t length);
void parser_bad_token(ParserState *state, Span span, const char *message);
void parser_bad_bytes(ParserState *state, Span span);
void parser_scanner_failed(const char *message);
void parser_too_deep(ParserState *state, Span span);

// Follows the tokens: requires to be told each of them once, in order.
void parser_saw_token(ParserState *state, Span span, bool is_name);

// Is a syntax error here told? Most that follow from one that was are not. found: NULL at the end of the
// file.
bool parser_tells_syntax_error(ParserState *state, const char *found);
// Reports the token read last. `found` and `expected` are tokens as the grammar names them ("';'", "for", "a
// name"); found is NULL at the end of the file. `expected` holds at most PARSER_MOST_EXPECTED.
enum { PARSER_MOST_EXPECTED = 80 };
void parser_syntax_error(ParserState *state, const char *found, const char *const *expected, int count);

// Appends `item` (itself a chain, or NULL) to the chain `list`; returns the head.
Ast *ast_append(Ast *list, Ast *item);

#endif
