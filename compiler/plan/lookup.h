// lookup.h: questions about a plan that several passes ask. Nothing here changes a plan.
#ifndef JFA_COMPILER_PLAN_LOOKUP_H
#define JFA_COMPILER_PLAN_LOOKUP_H

#include "compiler/plan/plan.h"

// The buffer whose bytes this one lies in: the end of its chain of `over`.
Buffer *buffer_root(const Buffer *buffer);

// How many instances of the buffer there are: array * depth.
static inline int64_t buffer_instances(const Buffer *buffer) {
    return (int64_t)buffer->array * buffer->depth;
}

// The pipe whose put waits for, or takes over, what this pipe gives back; itself when its bytes are its own.
Pipe *pipe_next(const Plan *plan, const Pipe *pipe);

// The taken slots of the pipe are never freed: the next pipe over the same bytes takes them over.
bool pipe_gives_on(const Plan *plan, const Pipe *pipe);

// Whether the pipe names the role as a taker.
bool role_takes(const Role *role, const Pipe *pipe);

// How many replicas of `role` meet at each slot of the pipe: one when the pipe is an array that the role
// indexes by its replica number, else all.
int pipe_sharers(const Pipe *pipe, const Role *role);

enum {
    WARPGROUP_WARPS =
        4, // warps that share a register count, and between them reach all rows of tensor memory
    WARPGROUP_THREADS = 128,
};

// Whether any replica of the role has warps in warpgroup number `group` of the CTA. Requires place.
bool role_in_warpgroup(const Role *role, int group);

// A value of the constant as in the source: "true", "3", "0.5", or the name of its type.
const char *constant_text(Arena *arena, const Constant *constant, double value);

// "load", or "load, store": the pipe's takers.
const char *pipe_takers_text(const Plan *plan, const Pipe *pipe);

#endif
