// exact.c: a reference in float64, without roundings.
#define REAL double
#define MODE exact
#define FN(name) name
#define ROUND(elem, x) ((void)(elem), (x))
#include "compiler/reference/evaluate.h"
