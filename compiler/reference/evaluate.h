// evaluate.h: the evaluation of a program, included twice: with REAL double and no roundings (exact.c), and
// with REAL float and the kernel's (rounded.c). MODE names the functions: exact_worker_new, ... ROUND(elem,
// x) rounds.
#include "compiler/reference/program.h"

#include "grammar/ast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define NAME(x) JOIN(MODE, x)

typedef union {
    int32_t i;
    REAL r;
} Scalar;

struct Worker {
    const Evaluation *evaluation;
    const Program *program;
    int64_t sequence;
    int32_t *index;                // [var]
    uint64_t version[DEPTH_LIMIT]; // by depth: changes with the value of the variable there
    uint64_t *known_at;            // [node]: version of its innermost variable when it was computed, 0: never
    Scalar *scalars;               // [node]
    void **vectors;                // [node]: REAL or int32_t [largest extent], or NULL
    uint64_t clock;
};

static void evaluate(Worker *w, int node);

static int64_t extent(const Worker *w, int var) {
    const Variable *variable = &w->program->vars[var];
    return variable->axis >= 0 ? w->program->problem->axes[variable->axis].lengths[w->sequence]
                               : variable->size;
}

static void set_index(Worker *w, int var, int64_t value) {
    w->index[var] = (int32_t)value;
    w->version[w->program->vars[var].depth] = ++w->clock;
}

static const Node *node_at(const Worker *w, int node) {
    return &w->program->nodes[node];
}
static bool is_real(const Node *n) {
    return n->type == ELEM_F32;
}

// ---------------------------------------------------------------- one operation

static REAL call(int op, REAL x) {
    switch (op) {
    case '-':
        return -x;
    case CALL_EXP:
        return FN(exp)(x);
    case CALL_EXP2:
        return FN(exp2)(x);
    case CALL_LOG:
        return FN(log)(x);
    case CALL_LOG2:
        return FN(log2)(x);
    case CALL_SQRT:
        return FN(sqrt)(x);
    case CALL_RSQRT:
        return 1 / FN(sqrt)(x);
    case CALL_TANH:
        return FN(tanh)(x);
    case CALL_FLOOR:
        return FN(floor)(x);
    case CALL_SIN:
        return FN(sin)(x);
    case CALL_COS:
        return FN(cos)(x);
    default:
        return FN(fabs)(x);
    }
}

static REAL combine(int op, REAL a, REAL b) {
    switch (op) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '/':
        return a / b;
    case '%':
        return FN(fmod)(a, b);
    case CALL_MIN:
        return FN(fmin)(a, b);
    default:
        return FN(fmax)(a, b);
    }
}

static int32_t combine_int(int op, int32_t a, int32_t b) {
    uint32_t x = (uint32_t)a, y = (uint32_t)b;
    switch (op) {
    case '+':
        return (int32_t)(x + y);
    case '-':
        return (int32_t)(x - y);
    case '*':
        return (int32_t)(x * y);
    case '/':
        return b == 0 ? 0 : b == -1 ? (int32_t)(0 - x) : a / b;
    case '%':
        return b == 0 || b == -1 ? 0 : a % b;
    case CALL_MIN:
        return a < b ? a : b;
    case CALL_MAX:
        return a > b ? a : b;
    case OP_AND:
        return a && b;
    default:
        return a || b;
    }
}

static bool is_comparison(int op) {
    return op == '<' || op == '>' || (op >= OP_EQ && op <= OP_GE);
}

#define COMPARE(op, a, b)                                                                                    \
    ((op) == '<'     ? (a) < (b)                                                                             \
     : (op) == '>'   ? (a) > (b)                                                                             \
     : (op) == OP_LE ? (a) <= (b)                                                                            \
     : (op) == OP_GE ? (a) >= (b)                                                                            \
     : (op) == OP_EQ ? (a) == (b)                                                                            \
                     : (a) != (b))

// ---------------------------------------------------------------- scalars and vectors alike

typedef struct { // a scalar is a vector of step 0
    const REAL *r;
    const int32_t *i;
    int step;
} Values;

static Values values_of(Worker *w, int node) {
    evaluate(w, node);
    const Node *n = node_at(w, node);
    Values values = {.step = n->vector >= 0};
    const void *data = n->vector >= 0 ? w->vectors[node] : (void *)&w->scalars[node];
    values.r = data;
    values.i = data;
    return values;
}

static void fill_unary(const Node *n, Values a, REAL *r, int32_t *i, int64_t count) {
    if (n->op == '!' || !is_real(n)) {
        for (int64_t k = 0; k < count; k++) {
            int32_t x = a.i[k * a.step];
            i[k] = n->op == '!'   ? !x
                   : n->op == '-' ? (int32_t)(0 - (uint32_t)x)
                   : x < 0        ? (int32_t)(0 - (uint32_t)x)
                                  : x;
        }
        return;
    }
    for (int64_t k = 0; k < count; k++)
        r[k] = call(n->op, a.r[k * a.step]);
}

static void fill_product(Values a, Values b, REAL *r,
                         int64_t count) { // the hot case, apart so that it vectorises
    if (a.step && b.step)
        for (int64_t k = 0; k < count; k++)
            r[k] = a.r[k] * b.r[k];
    else if (a.step)
        for (int64_t k = 0; k < count; k++)
            r[k] = a.r[k] * b.r[0];
    else
        for (int64_t k = 0; k < count; k++)
            r[k] = a.r[0] * b.r[k * b.step];
}

static void fill_binary(Worker *w, const Node *n, Values a, Values b, REAL *r, int32_t *i, int64_t count) {
    bool real = is_real(node_at(w, n->a));
    if (is_comparison(n->op)) {
        for (int64_t k = 0; k < count; k++)
            i[k] = real ? COMPARE(n->op, a.r[k * a.step], b.r[k * b.step])
                        : COMPARE(n->op, a.i[k * a.step], b.i[k * b.step]);
        return;
    }
    if (!real) {
        for (int64_t k = 0; k < count; k++)
            i[k] = combine_int(n->op, a.i[k * a.step], b.i[k * b.step]);
        return;
    }
    if (n->op == '*') {
        fill_product(a, b, r, count);
        return;
    }
    for (int64_t k = 0; k < count; k++)
        r[k] = combine(n->op, a.r[k * a.step], b.r[k * b.step]);
}

static void fill_choice(Worker *w, const Node *n, REAL *r, int32_t *i, int64_t count) {
    Values condition = values_of(w, n->a), a = values_of(w, n->b), b = values_of(w, n->c);
    for (int64_t k = 0; k < count; k++) {
        Values from = condition.i[k * condition.step] ? a : b;
        if (is_real(n))
            r[k] = from.r[k * from.step];
        else
            i[k] = from.i[k * from.step];
    }
}

static void fill_cast(Worker *w, const Node *n, Values a, REAL *r, int32_t *i, int64_t count) {
    bool from_real = is_real(node_at(w, n->a));
    for (int64_t k = 0; k < count; k++) {
        if (is_real(n)) {
            r[k] = from_real ? a.r[k * a.step] : (REAL)a.i[k * a.step];
            continue;
        }
        double x = (double)a.r[k * a.step];
        i[k] = isnan(x) ? 0 : x >= INT32_MAX ? INT32_MAX : x <= INT32_MIN ? INT32_MIN : (int32_t)x;
    }
}

// ---------------------------------------------------------------- elements of tensors

static void fill_element(Worker *w, const Node *n, REAL *r, int32_t *i, int64_t count) {
    const ProgramTensor *tensor = &w->program->tensors[n->tensor];
    const ReferenceTensor *given = tensor->given;
    int inner = n->unit_dim >= 0 ? n->unit_dim : given->rank - 1;
    const Packed *packed = &w->evaluation->packed[n->tensor][inner];
    Values at[REFERENCE_MAX_DIMS];
    int64_t base[REFERENCE_MAX_DIMS];
    for (int d = 0; d < given->rank; d++) {
        at[d] = values_of(w, n->at[d]);
        base[d] = given->base[d] ? given->base[d][w->sequence] : 0;
    }
    for (int64_t k = 0; k < count; k++) {
        int64_t offset = 0;
        bool inside = true;
        for (int d = 0; d < given->rank; d++) {
            int64_t place = base[d] + at[d].i[k * at[d].step];
            inside &= place >= 0 && place < given->extent[d];
            offset += place * packed->stride[d];
        }
        if (n->unit_dim >= 0 && k == 0 && inside && base[inner] + count <= given->extent[inner]) {
            // The whole vector lies side by side.
            if (is_real(n))
                memcpy(r, (const REAL *)packed->elements + offset, sizeof(REAL) * (size_t)count);
            else
                memcpy(i, (const int32_t *)packed->elements + offset, sizeof(int32_t) * (size_t)count);
            return;
        }
        if (is_real(n))
            r[k] = inside ? ((const REAL *)packed->elements)[offset] : (REAL)NAN;
        else
            i[k] = inside ? ((const int32_t *)packed->elements)[offset] : 0;
    }
}

static void fill_item(Worker *w, const Node *n, REAL *r, int32_t *i, int64_t count) {
    evaluate(w, n->a);
    Values index = values_of(w, n->b);
    const void *vector = w->vectors[n->a];
    int64_t size = extent(w, node_at(w, n->a)->vector);
    for (int64_t k = 0; k < count; k++) {
        int64_t at = index.i[k * index.step];
        bool inside = at >= 0 && at < size;
        if (is_real(n))
            r[k] = inside ? ((const REAL *)vector)[at] : (REAL)NAN;
        else
            i[k] = inside ? ((const int32_t *)vector)[at] : 0;
    }
}

static void fill_reduction(Worker *w, const Node *n, REAL *r, int64_t count) {
    REAL start = n->op == REDUCE_SUM ? 0 : n->op == REDUCE_MAX ? (REAL)-INFINITY : (REAL)INFINITY;
    for (int64_t k = 0; k < count; k++)
        r[k] = start;
    int64_t rounds = extent(w, n->var);
    for (int64_t round = 0; round < rounds; round++) {
        set_index(w, n->var, round);
        Values a = values_of(w, n->a);
        if (n->op == REDUCE_SUM && a.step)
            for (int64_t k = 0; k < count; k++)
                r[k] += a.r[k];
        else
            for (int64_t k = 0; k < count; k++) {
                REAL x = a.r[k * a.step];
                r[k] = n->op == REDUCE_SUM   ? r[k] + x
                       : n->op == REDUCE_MAX ? FN(fmax)(r[k], x)
                                             : FN(fmin)(r[k], x);
            }
    }
}

// ---------------------------------------------------------------- nodes

static void fill(Worker *w, const Node *n, REAL *r, int32_t *i, int64_t count) {
    switch (n->kind) {
    case NODE_CONSTANT:
        if (is_real(n))
            r[0] = (REAL)n->real;
        else
            i[0] = n->integer;
        break;
    case NODE_INDEX:
        for (int64_t k = 0; k < count; k++)
            i[k] = n->vector >= 0 ? (int32_t)k : w->index[n->var];
        break;
    case NODE_LENGTH:
        i[0] = (int32_t)w->program->problem->axes[n->axis].lengths[w->sequence];
        break;
    case NODE_SEQUENCE:
        i[0] = (int32_t)w->sequence;
        break;
    case NODE_ELEMENT:
        fill_element(w, n, r, i, count);
        break;
    case NODE_ITEM:
        fill_item(w, n, r, i, count);
        break;
    case NODE_UNARY:
        fill_unary(n, values_of(w, n->a), r, i, count);
        break;
    case NODE_BINARY: {
        Values a = values_of(w, n->a), b = values_of(w, n->b);
        fill_binary(w, n, a, b, r, i, count);
        break;
    }
    case NODE_CHOICE:
        fill_choice(w, n, r, i, count);
        break;
    case NODE_CAST:
        fill_cast(w, n, values_of(w, n->a), r, i, count);
        break;
    case NODE_ROUND: {
        Values a = values_of(w, n->a);
        for (int64_t k = 0; k < count; k++)
            r[k] = ROUND(n->elem, a.r[k * a.step]);
        break;
    }
    default:
        fill_reduction(w, n, r, count);
        break;
    }
}

// A value is kept until the innermost variable that it depends on changes.
static void evaluate(Worker *w, int node) {
    const Node *n = node_at(w, node);
    uint64_t version = w->version[n->innermost];
    if (w->known_at[node] == version)
        return;
    bool is_vector = n->vector >= 0;
    fill(w, n, is_vector ? w->vectors[node] : &w->scalars[node].r,
         is_vector ? w->vectors[node] : &w->scalars[node].i, is_vector ? extent(w, n->vector) : 1);
    w->known_at[node] = version;
}

// ---------------------------------------------------------------- steps

static void store(Worker *w, const Step *step) {
    const ProgramTensor *tensor = &w->program->tensors[step->tensor];
    const ReferenceTensor *given = tensor->given;
    ReferenceOutput *output = w->evaluation->outputs[step->tensor];
    Values value = values_of(w, step->value), at[REFERENCE_MAX_DIMS];
    for (int d = 0; d < given->rank; d++)
        at[d] = values_of(w, step->at[d]);
    int64_t count = step->var >= 0 ? extent(w, step->var) : 1;
    for (int64_t k = 0; k < count; k++) {
        int64_t offset = 0;
        bool inside = true;
        for (int d = 0; d < given->rank; d++) {
            int64_t place = (given->base[d] ? given->base[d][w->sequence] : 0) + at[d].i[k * at[d].step];
            inside &= place >= 0 && place < given->extent[d];
            offset = offset * given->extent[d] + place;
        }
        if (!inside)
            continue;
        bool real = is_real(node_at(w, step->value));
        output->values[offset] =
            real ? (double)ROUND(tensor->elem, value.r[k * value.step]) : value.i[k * value.step];
        output->written[offset] = true;
    }
}

static void run_steps(Worker *w, const Step *step, int part, int parts) {
    for (; step; step = step->next) {
        if (!step->is_loop) {
            store(w, step);
            continue;
        }
        int64_t rounds = extent(w, step->var);
        for (int64_t round = part; round < rounds; round += parts) {
            set_index(w, step->var, round);
            run_steps(w, step->body, 0, 1);
        }
    }
}

void NAME(_worker_run)(Worker *w, int64_t sequence, int part, int parts) {
    w->sequence = sequence;
    w->version[DEPTH_SEQUENCE] = ++w->clock;
    run_steps(w, w->program->steps, part, parts);
}

Worker *NAME(_worker_new)(const Evaluation *evaluation) {
    const Program *program = evaluation->program;
    Worker *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->evaluation = evaluation;
    w->program = program;
    size_t vars = (size_t)program->var_count + 1, nodes = (size_t)program->node_count + 1;
    w->index = calloc(vars, sizeof *w->index);
    w->known_at = calloc(nodes, sizeof *w->known_at);
    w->scalars = calloc(nodes, sizeof *w->scalars);
    w->vectors = calloc(nodes, sizeof *w->vectors);
    bool good = w->index && w->known_at && w->scalars && w->vectors;
    for (int depth = 0; depth < DEPTH_LIMIT; depth++)
        w->version[depth] = ++w->clock;
    for (int n = 0; good && n < program->node_count; n++)
        if (program->nodes[n].vector >= 0) {
            w->vectors[n] =
                calloc((size_t)program_largest_extent(program, program->nodes[n].vector) + 1, sizeof(double));
            good = w->vectors[n] != NULL;
        }
    if (good)
        return w;
    NAME(_worker_free)(w);
    return NULL;
}

void NAME(_worker_free)(Worker *w) {
    if (!w)
        return;
    for (int n = 0; w->vectors && n < w->program->node_count; n++)
        free(w->vectors[n]);
    free(w->index), free(w->known_at), free(w->scalars), free(w->vectors);
    free(w);
}
