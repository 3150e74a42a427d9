#include "compiler/plan/lookup.h"

Buffer *buffer_root(const Buffer *buffer) {
    while (buffer->over)
        buffer = buffer->over;
    return (Buffer *)buffer;
}

Pipe *pipe_next(const Plan *plan, const Pipe *pipe) {
    for (int i = 0; i < plan->pipe_count; i++)
        if (plan->pipes[i]->before == pipe)
            return plan->pipes[i];
    return (Pipe *)pipe;
}

bool pipe_gives_on(const Plan *plan, const Pipe *pipe) {
    const Pipe *next = pipe_next(plan, pipe);
    return next != pipe && next->hands_over;
}

// Whether any statement takes or fills a slot of the pipe by a number other than the replica's.
static bool names_by_constant(const Stmt *stmt, const Pipe *pipe) {
    for (; stmt; stmt = stmt->next) {
        const Slot *slot = stmt->slot;
        if (slot && slot->pipe == pipe && (!slot->index || slot->index->kind != X_REPLICA))
            return true;
        if (names_by_constant(stmt->body, pipe) || names_by_constant(stmt->other, pipe))
            return true;
    }
    return false;
}

int pipe_sharers(const Pipe *pipe, const Role *role) {
    if (pipe->is_array && !names_by_constant(role->body, pipe))
        return 1;
    return role->replicas;
}

bool role_takes(const Role *role, const Pipe *pipe) {
    for (int i = 0; i < pipe->to_count; i++)
        if (pipe->to[i] == role)
            return true;
    return false;
}

bool role_in_warpgroup(const Role *role, int group) {
    int first = group * WARPGROUP_WARPS, end = first + WARPGROUP_WARPS;
    return role->first_warp < end && role->first_warp + role->warps * role->replicas > first;
}

const char *pipe_takers_text(const Plan *plan, const Pipe *pipe) {
    const char *text = "";
    for (int i = 0; i < pipe->to_count; i++)
        text = arena_format(plan->arena, "%s%s%s", text, i ? ", " : "", pipe->to[i]->name);
    return text;
}

const char *constant_text(Arena *arena, const Constant *constant, double value) {
    if (constant->text)
        return constant->text;
    if (constant->elem == ELEM_BOOL)
        return value != 0 ? "true" : "false";
    return arena_format(arena, constant->elem == ELEM_I32 ? "%.0f" : "%.9g", value);
}
