// explain.h: what was decided for a kernel, for its author (jfac explain).
#ifndef JFA_COMPILER_PLAN_EXPLAIN_H
#define JFA_COMPILER_PLAN_EXPLAIN_H

#include "compiler/plan/plan.h"

typedef struct {
    const char *name; // "sema"
    double milliseconds;
} ExplainPhase;

// What is known beyond the plan.
typedef struct {
    bool has_ptxas; // the numbers of the assembler's report are there
    int registers;  // a thread
    int64_t spill_store_bytes, spill_load_bytes, stack_bytes; // a thread
    int64_t code_bytes;                                       // 0: not known
    const ExplainPhase *phases;                               // of the compilation, in order; the caller's
    int phase_count;
} ExplainReport;

// Tables of buffers, pipes, roles and budgets. Requires place.
void explain_print(const Plan *plan, const ExplainReport *report, FILE *out);

#endif
