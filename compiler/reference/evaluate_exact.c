// evaluate_exact.c: the evaluation in float64.
#include "compiler/reference/number.h"
#include "compiler/reference/program.h"

#include <stdlib.h>

#define REAL double
#define ROUNDS false
#define MATH(name) name
#define MODE(name) exact_##name
#include "compiler/reference/evaluate.h"
