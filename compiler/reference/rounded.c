// rounded.c: a reference as a kernel could compute it in a straightforward order: float32 results, and the
// roundings that it names.
#define REAL float
#define MODE rounded
#define FN(name) name##f
#define ROUND(elem, x) number_round((elem), (x))
#include "compiler/reference/number.h"

#include "compiler/reference/evaluate.h"
