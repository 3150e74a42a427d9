// slots.c: pipes and the slots that a role holds or fills; who fills and who uses a pipe.
#include "compiler/sema/internal.h"

#include "compiler/plan/lookup.h"

#include <string.h>

// The pipe that `pipe` or `pipe[index]` names. *index: NULL, a constant or the replica number.
Pipe *slot_find_pipe(Sema *sema, Scope *scope, const Ast *ast, Expr **index) {
    const Ast *name = ast->kind == AST_INDEX ? ast->a : ast;
    Symbol *symbol = scope_find(scope, name->name);
    *index = NULL;
    if (!symbol || (symbol->kind == SYM_PIPE && !symbol->pipe) || symbol->kind != SYM_PIPE) {
        if (!symbol || symbol->kind != SYM_PIPE)
            scope_unknown(sema, sema->schedule, name->name, name->span, "pipe");
        return NULL;
    }
    Pipe *pipe = symbol->pipe;
    if (!pipe->is_array) {
        if (ast->kind == AST_INDEX) {
            diag_error(sema->diag, ast->span, "shape-mismatch", "'%s' is a single pipe; it takes no index",
                       pipe->name);
            return NULL;
        }
        return pipe;
    }
    if (ast->kind != AST_INDEX || !ast->list || ast->list->next) {
        diag_error(sema->diag, ast->span, "shape-mismatch",
                   "'%s' is an array of %d pipes; say which: %s[...]", pipe->name, pipe->array, pipe->name);
        return NULL;
    }
    *index = sema_expr(sema, scope, ast->list);
    if (!*index)
        return NULL;
    if ((*index)->kind == X_REPLICA) {
        if (sema->role->replicas <= pipe->array)
            return pipe;
        diag_error(sema->diag, ast->span, "constant-range",
                   "'%s' has %d pipes, but role '%s' has %d replicas", pipe->name, pipe->array,
                   sema->role->name, sema->role->replicas);
        return NULL;
    }
    if ((*index)->kind != X_INT) {
        diag_error(sema->diag, ast->list->span, "not-constant",
                   "which pipe of '%s' must be a constant or the number of the replica", pipe->name);
        return NULL;
    }
    if ((*index)->integer < 0 || (*index)->integer >= pipe->array) {
        diag_error(sema->diag, ast->list->span, "constant-range",
                   "'%s' has %d pipes, numbered from 0; there is no %lld", pipe->name, pipe->array,
                   (long long)(*index)->integer);
        return NULL;
    }
    return pipe;
}

bool slot_in_tiles(Sema *sema, Span span) {
    if (sema->in_tiles)
        return true;
    DiagItem *item = diag_error(sema->diag, span, "outside-tiles", "this belongs inside the loop over tiles");
    diag_help(item, "for t in %s { ... }", sema->tiles ? sema->tiles->name : "tiles");
    return false;
}

void slot_note_wrong_role(Sema *sema, DiagItem *item, const Pipe *pipe) {
    const char *takers = "";
    for (int i = 0; i < pipe->to_count; i++)
        takers = arena_format(sema->arena, "%s%s%s", takers, i ? ", " : "", pipe->to[i]->name);
    diag_note(item, pipe->span, "pipe '%s' goes from '%s' to '%s'", pipe->name, pipe->from->name, takers);
}

Slot *slot_make(Sema *sema, Pipe *pipe, Expr *index, const char *name, Span span) {
    Slot *slot = arena_new_of(sema->arena, Slot);
    slot->name = name;
    slot->number = sema->role->slot_count++;
    slot->pipe = pipe;
    slot->index = index;
    slot->span = span;
    return slot;
}

void slot_hold(Sema *sema, Slot *slot) {
    Held *held = arena_new_of(sema->arena, Held);
    held->slot = slot;
    held->next = sema->held;
    sema->held = held;
}

Held *slot_find_held(Sema *sema, const Slot *slot) {
    for (Held *held = sema->held; held; held = held->next)
        if (held->slot == slot)
            return held;
    return NULL;
}

// A slot is read, or freed, that the role doesn't hold any more.
void slot_report_gone(Sema *sema, const Held *held, Span span) {
    const char *name = held->slot->name;
    DiagItem *item;
    if (held->gone_to) {
        item = diag_error(sema->diag, span, "slot-freed", "slot '%s' was handed on before", name);
        diag_note(item, held->gone_span, "this put hands it on: '%s' shares its bytes with '%s'",
                  held->gone_to->name, held->slot->pipe->name);
        diag_help(item,
                  "read '%s' before that put, and don't free it; or give the buffers bytes of their own",
                  name);
    } else {
        item = diag_error(sema->diag, span, "slot-freed", "slot '%s' was freed before", name);
        diag_note(item, held->gone_span, "freed here");
        diag_help(item, "free '%s' once, after its last use", name);
    }
}

static bool same_index(const Expr *a, const Expr *b) {
    if (!a || !b)
        return a == b;
    return a->kind == b->kind && (a->kind != X_INT || a->integer == b->integer);
}

// The slot over the same bytes that the role holds: a put hands it on.
static Held *held_bytes(Sema *sema, const Pipe *pipe, const Expr *index) {
    for (Held *held = sema->held; held; held = held->next)
        if (!held->gone && !held->slot->filling && held->slot->pipe != pipe &&
            buffer_root(held->slot->pipe->buffer) == buffer_root(pipe->buffer) &&
            same_index(held->slot->index, index))
            return held;
    return NULL;
}

void slot_set_engine(Sema *sema, Engine *engine, Engine now, const Pipe *pipe, Span span, const char *verb) {
    static const char *const TEXT[] = {[ENGINE_LOAD] = "loads from tensors",
                                       [ENGINE_PRODUCT] = "the tensor core",
                                       [ENGINE_THREADS] = "the role's threads",
                                       [ENGINE_STORE] = "stores to tensors"};
    if (*engine == ENGINE_NONE || *engine == now) {
        *engine = now;
        return;
    }
    DiagItem *item = diag_error(sema->diag, span, "mixed-engines", "pipe '%s' is %s both by %s and by %s",
                                pipe->name, verb, TEXT[*engine], TEXT[now]);
    diag_note(item, pipe->span, "declared here");
    diag_help(item, "give each its own pipe");
}

void slot_use(Sema *sema, const Slot *slot, Engine engine, Span span) {
    slot_set_engine(sema, &slot->pipe->used_by, engine, slot->pipe, span, "used");
}

// A slot to fill: checks the role, and whether the put hands on bytes that the role holds.
Slot *slot_open(Sema *sema, Scope *scope, const Ast *target, const char *name, Span span) {
    Expr *index;
    Pipe *pipe = slot_find_pipe(sema, scope, target, &index);
    if (!pipe || !slot_in_tiles(sema, span))
        return NULL;
    if (pipe->from != sema->role) {
        DiagItem *item = diag_error(sema->diag, target->span, "wrong-role", "role '%s' can't put '%s'",
                                    sema->role->name, pipe->name);
        slot_note_wrong_role(sema, item, pipe);
        diag_help(item, "a pipe is put by one role, the one before its '->': use another pipe for '%s'",
                  sema->role->name);
        return NULL;
    }
    Slot *slot = slot_make(sema, pipe, index, name, span);
    slot->filling = true;
    Held *held = held_bytes(sema, pipe, index);
    bool first = !pipe->from_span.end;
    if (!first && pipe->hands_over != (held != NULL)) {
        DiagItem *item = diag_error(
            sema->diag, span, "round-order",
            "'%s' is put sometimes while holding the bytes that it shares, and sometimes not", pipe->name);
        diag_note(item, pipe->from_span, "the other put is here");
        return NULL;
    }
    pipe->from_span = span;
    pipe->hands_over = held != NULL;
    if (held) {
        if (pipe->before && pipe->before != held->slot->pipe) {
            diag_error(sema->diag, span, "round-order", "'%s' takes over bytes from two different pipes",
                       pipe->name);
            return NULL;
        }
        pipe->before = held->slot->pipe;
        slot->handed_from = held->slot;
    }
    return slot;
}

void slot_hand_on(Sema *sema, const Slot *slot, Span span) {
    if (!slot->handed_from)
        return;
    Held *held = slot_find_held(sema, slot->handed_from);
    held->gone = true;
    held->gone_span = span;
    held->gone_to = slot->pipe;
}
