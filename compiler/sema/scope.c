// scope.c: names and where they are visible.
#include "compiler/sema/internal.h"

#include <string.h>

Scope *scope_new(Sema *sema, Scope *parent) {
    Scope *scope = arena_new_of(sema->arena, Scope);
    scope->parent = parent;
    return scope;
}

Symbol *scope_find(Scope *scope, const char *name) {
    for (; scope; scope = scope->parent)
        for (Symbol *symbol = scope->symbols; symbol; symbol = symbol->next)
            if (!strcmp(symbol->name, name))
                return symbol;
    return NULL;
}

const char *symbol_kind_text(SymbolKind kind) {
    static const char *const TEXT[] = {
        [SYM_VALUE] = "a value",       [SYM_TYPE] = "a type",     [SYM_DIM] = "a dim",
        [SYM_PARAM] = "a param",       [SYM_TENSOR] = "a tensor", [SYM_AXIS] = "an axis",
        [SYM_FUNCTION] = "a function", [SYM_HOOK] = "a hook",     [SYM_BUFFER] = "a buffer",
        [SYM_PIPE] = "a pipe",         [SYM_ROLE] = "a role",     [SYM_WALK] = "a walk",
        [SYM_TILES] = "the grid",      [SYM_TILE] = "a tile",     [SYM_BLOCK] = "a block",
        [SYM_SLOT] = "a slot",         [SYM_TURN] = "a turn",
    };
    return TEXT[kind];
}

Symbol *scope_add(Sema *sema, Scope *scope, SymbolKind kind, const char *name, Span span) {
    for (Symbol *symbol = scope->symbols; symbol; symbol = symbol->next)
        if (!strcmp(symbol->name, name)) {
            DiagItem *item = diag_error(sema->diag, span, "duplicate-name", "'%s' is declared twice", name);
            if (symbol->span.file >= 0)
                diag_note(item, symbol->span, "first declared here, as %s", symbol_kind_text(symbol->kind));
            else
                diag_help(item, "'%s' is a name of the language; choose another", name);
            sema->lost_name |= scope == sema->family || scope == sema->kernel || scope == sema->schedule;
            return NULL;
        }
    Symbol *symbol = arena_new_of(sema->arena, Symbol);
    symbol->kind = kind;
    symbol->name = name;
    symbol->span = span;
    symbol->next = scope->symbols;
    scope->symbols = symbol;
    return symbol;
}

void scope_unknown(Sema *sema, Scope *scope, const char *name, Span span, const char *what) {
    enum { MOST = 256 };
    const char *names[MOST];
    int count = 0;
    for (Scope *at = scope; at; at = at->parent)
        for (Symbol *symbol = at->symbols; symbol && count < MOST; symbol = symbol->next)
            names[count++] = symbol->name;
    if (sema->lost_name) // one of two that were declared alike may have been meant to be it
        return;
    const Symbol *other = scope_find(scope, name);
    if (other) {
        DiagItem *item = diag_error(sema->diag, span, "wrong-kind", "'%s' is %s; %s %s is needed here", name,
                                    symbol_kind_text(other->kind), strchr("aeiou", *what) ? "an" : "a", what);
        if (other->span.file >= 0)
            diag_note(item, other->span, "declared here");
        return;
    }
    for (int i = 0; !strncmp(what, "function", 8) && count < MOST && sema_math_name(i); i++)
        names[count++] = sema_math_name(i);
    DiagItem *item =
        diag_error(sema->diag, span, "unknown-name", "there is no %s named '%s' here", what, name);
    const char *closest = diag_closest(name, names, count);
    if (closest)
        diag_help(item, "did you mean '%s'?", closest);
}
