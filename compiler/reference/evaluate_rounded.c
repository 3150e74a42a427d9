// evaluate_rounded.c: the evaluation in float32, with the roundings that the reference asks for.
#include "compiler/reference/number.h"
#include "compiler/reference/program.h"

#include <stdlib.h>

#define REAL float
#define ROUNDS true
#define MATH(name) name##f
#define MODE(name) rounded_##name
#include "compiler/reference/evaluate.h"
