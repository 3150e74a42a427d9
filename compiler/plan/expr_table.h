// expr_table.h: what a pass knows of expression nodes. Values share nodes (an argument of a hook is one node,
// however often the hook's math names it), so a pass must remember which nodes it has met to stay linear.
#ifndef JFA_COMPILER_PLAN_EXPR_TABLE_H
#define JFA_COMPILER_PLAN_EXPR_TABLE_H

#include "compiler/plan/plan.h"

typedef struct {
    const Expr *expr;
    int number;
} ExprEntry;

typedef struct {
    Arena *arena;
    ExprEntry *entries; // open addressing, a power of two of them
    int capacity, count;
} ExprTable;

// The node's number, to be read and changed; 0 when the node is new.
int *expr_table_at(ExprTable *table, const Expr *expr);

#endif
