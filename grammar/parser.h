// parser.h: what scanner and parser share; private to this room.
#ifndef JFA_GRAMMAR_PARSER_H
#define JFA_GRAMMAR_PARSER_H

#include "grammar/ast.h"

// flex knows these types by its own names only.
#define YYSTYPE JFA_YYSTYPE
#define YYLTYPE JFA_YYLTYPE
#define JFA_YYLTYPE Span

typedef struct {
    Arena *arena;
    Diag *diag;
    int file;
    int offset;       // of the next byte to scan
    bool expression;  // parse one expression instead of a file
    bool first_token; // the start token has not been given yet
    Ast *result;
} ParserState;

char *parser_copy(ParserState *state, const char *text, size_t length);
void parser_bad_token(ParserState *state, Span span, const char *message);
void parser_bad_byte(ParserState *state, Span span, unsigned char byte);
void parser_scanner_failed(const char *message);

// Appends `item` (itself a chain, or NULL) to the chain `list`; returns the head.
Ast *ast_append(Ast *list, Ast *item);

#endif
