// operations.h: arithmetic, element by element. A part of evaluate.h.

#define EACH(out, type, value)                                                                               \
    for (int64_t i = 0; i < count; i++)                                                                      \
        ((type *)(out))[i] = (value);                                                                        \
    break

static void evaluate_unary(Worker *worker, const Node *node, Cell *cell) {
    Operand a = operand(worker, node->a);
    const REAL *restrict x = a.reals;
    const int32_t *restrict n = a.integers;
    int64_t count = width(worker, node);
    if (node->type != ELEM_F32) {
        switch (node->op) {
        case '!':
            EACH(cell->buffer, int32_t, !n[i]);
        case '-':
            EACH(cell->buffer, int32_t, (int32_t) - (uint32_t)n[i]);
        default:
            EACH(cell->buffer, int32_t, n[i] < 0 ? (int32_t) - (uint32_t)n[i] : n[i]);
        }
        return;
    }
    switch (node->op) {
    case '-':
        EACH(cell->buffer, REAL, -x[i]);
    case CALL_EXP:
        EACH(cell->buffer, REAL, MATH(exp)(x[i]));
    case CALL_EXP2:
        EACH(cell->buffer, REAL, MATH(exp2)(x[i]));
    case CALL_LOG:
        EACH(cell->buffer, REAL, MATH(log)(x[i]));
    case CALL_LOG2:
        EACH(cell->buffer, REAL, MATH(log2)(x[i]));
    case CALL_SQRT:
        EACH(cell->buffer, REAL, MATH(sqrt)(x[i]));
    case CALL_RSQRT:
        EACH(cell->buffer, REAL, 1 / MATH(sqrt)(x[i]));
    case CALL_TANH:
        EACH(cell->buffer, REAL, MATH(tanh)(x[i]));
    case CALL_FLOOR:
        EACH(cell->buffer, REAL, MATH(floor)(x[i]));
    case CALL_SIN:
        EACH(cell->buffer, REAL, MATH(sin)(x[i]));
    case CALL_COS:
        EACH(cell->buffer, REAL, MATH(cos)(x[i]));
    default:
        EACH(cell->buffer, REAL, MATH(fabs)(x[i]));
    }
}

// One loop for each way in which the operands repeat: with the steps fixed, the compiler vectorises it.
#define EACH_PAIR(type, from, value)                                                                         \
    {                                                                                                        \
        const from *p = (const void *)a.reals, *q = (const void *)b.reals;                                   \
        type *restrict out = cell->buffer;                                                                   \
        if (a.step && b.step)                                                                                \
            for (int64_t i = 0; i < count; i++) {                                                            \
                from x = p[i], y = q[i];                                                                     \
                out[i] = (value);                                                                            \
            }                                                                                                \
        else if (a.step)                                                                                     \
            for (int64_t i = 0; i < count; i++) {                                                            \
                from x = p[i], y = *q;                                                                       \
                out[i] = (value);                                                                            \
            }                                                                                                \
        else                                                                                                 \
            for (int64_t i = 0; i < count; i++) {                                                            \
                from x = *p, y = q[i * b.step];                                                              \
                out[i] = (value);                                                                            \
            }                                                                                                \
        break;                                                                                               \
    }
#define WRAPPED(op) (int32_t)((uint32_t)x op(uint32_t) y)
// Division by zero gives 0, and so does its remainder; the most negative integer / -1 wraps.
#define DIVIDED (y == 0 ? 0 : y == -1 ? (int32_t) - (uint32_t)x : x / y)
#define REMAINDER (y == 0 || y == -1 ? 0 : x % y)
#define COMPARISONS(from)                                                                                    \
    case '<':                                                                                                \
        EACH_PAIR(int32_t, from, x < y)                                                                      \
    case '>':                                                                                                \
        EACH_PAIR(int32_t, from, x > y)                                                                      \
    case OP_LE:                                                                                              \
        EACH_PAIR(int32_t, from, x <= y)                                                                     \
    case OP_GE:                                                                                              \
        EACH_PAIR(int32_t, from, x >= y)                                                                     \
    case OP_EQ:                                                                                              \
        EACH_PAIR(int32_t, from, x == y)                                                                     \
    case OP_NE:                                                                                              \
        EACH_PAIR(int32_t, from, x != y)

static void integer_pair(const Node *node, Operand a, Operand b, int64_t count, Cell *cell) {
    switch (node->op) {
        COMPARISONS(int32_t)
    case '+':
        EACH_PAIR(int32_t, int32_t, WRAPPED(+))
    case '-':
        EACH_PAIR(int32_t, int32_t, WRAPPED(-))
    case '*':
        EACH_PAIR(int32_t, int32_t, WRAPPED(*))
    case '/':
        EACH_PAIR(int32_t, int32_t, DIVIDED)
    case '%':
        EACH_PAIR(int32_t, int32_t, REMAINDER)
    case OP_AND:
        EACH_PAIR(int32_t, int32_t, x & y)
    case OP_OR:
        EACH_PAIR(int32_t, int32_t, x | y)
    case CALL_MIN:
        EACH_PAIR(int32_t, int32_t, x < y ? x : y)
    default:
        EACH_PAIR(int32_t, int32_t, x > y ? x : y)
    }
}

static void real_pair(const Node *node, Operand a, Operand b, int64_t count, Cell *cell) {
    switch (node->op) {
        COMPARISONS(REAL)
    case '+':
        EACH_PAIR(REAL, REAL, x + y)
    case '-':
        EACH_PAIR(REAL, REAL, x - y)
    case '*':
        EACH_PAIR(REAL, REAL, x * y)
    case '/':
        EACH_PAIR(REAL, REAL, x / y)
    case '%':
        EACH_PAIR(REAL, REAL, MATH(fmod)(x, y))
    case CALL_MIN:
        EACH_PAIR(REAL, REAL, x < y || y != y ? x : y)
    default:
        EACH_PAIR(REAL, REAL, x > y || y != y ? x : y)
    }
}

static void evaluate_binary(Worker *worker, const Node *node, Cell *cell) {
    Operand a = operand(worker, node->a), b = operand(worker, node->b);
    int64_t count = width(worker, node);
    if (node_at(worker, node->a)->type == ELEM_F32)
        real_pair(node, a, b, count, cell);
    else
        integer_pair(node, a, b, count, cell);
}

static void evaluate_choice(Worker *worker, const Node *node, Cell *cell) {
    Operand condition = operand(worker, node->a);
    int64_t count = width(worker, node);
    if (!condition.step) { // only the chosen side is evaluated
        Operand chosen = operand(worker, *condition.integers ? node->b : node->c);
        if (chosen.step || count == 1) {
            cell->data = chosen.reals;
            return;
        }
        for (int64_t i = 0; i < count; i++)
            if (node->type == ELEM_F32)
                ((REAL *)cell->buffer)[i] = *chosen.reals;
            else
                ((int32_t *)cell->buffer)[i] = *chosen.integers;
        return;
    }
    Operand a = operand(worker, node->b), b = operand(worker, node->c);
    const int32_t *restrict is_first = condition.integers;
    if (node->type == ELEM_F32)
        for (int64_t i = 0; i < count; i++)
            ((REAL *)cell->buffer)[i] = is_first[i] ? a.reals[i * a.step] : b.reals[i * b.step];
    else
        for (int64_t i = 0; i < count; i++)
            ((int32_t *)cell->buffer)[i] = is_first[i] ? a.integers[i * a.step] : b.integers[i * b.step];
}

// Towards zero; out of range to the nearest, NaN to 0, as cvt.rzi.s32 does (PTX ISA, "cvt").
static int32_t truncated(REAL value) {
    if (value != value)
        return 0;
    return value >= (REAL)2147483648.0    ? INT32_MAX
           : value <= (REAL)-2147483648.0 ? INT32_MIN
                                          : (int32_t)value;
}

static void evaluate_cast(Worker *worker, const Node *node, Cell *cell) {
    Operand a = operand(worker, node->a);
    for (int64_t i = 0, count = width(worker, node); i < count; i++)
        if (node->type == ELEM_F32)
            ((REAL *)cell->buffer)[i] = (REAL)a.integers[i];
        else
            ((int32_t *)cell->buffer)[i] = truncated(a.reals[i]);
}

static void evaluate_round(Worker *worker, const Node *node, Cell *cell) {
    Operand a = operand(worker, node->a);
    if (!ROUNDS || node->elem == ELEM_F32) {
        cell->data = a.reals;
        return;
    }
    REAL *restrict out = cell->buffer;
    int64_t count = width(worker, node);
    if (node->elem == ELEM_BF16)
        for (int64_t i = 0; i < count; i++)
            out[i] = number_round_bf16((float)a.reals[i]);
    else
        for (int64_t i = 0; i < count; i++)
            out[i] = number_round_f16((float)a.reals[i]);
}
