// expr_text.h: expressions of a plan as text, in the words of the language.
#ifndef JFA_COMPILER_PLAN_EXPR_TEXT_H
#define JFA_COMPILER_PLAN_EXPR_TEXT_H

#include "compiler/plan/plan.h"

// The expression, in the arena of the plan. Nodes that are met more than once, and long parts, are written to
// `shared_to` first, one line "%1 = ..." each behind `indent` spaces, and stand by that name in the text
// returned. Names count up from *named_so_far.
const char *expr_text(const Plan *plan, const Expr *expr, FILE *shared_to, int indent, int *named_so_far);

// "f32[128, cols]"
const char *plan_type_text(const Plan *plan, Type type);

// "scores[g]"
const char *slot_text(const Plan *plan, const Slot *slot);

#endif
