// evaluate.h: runs a Program for one sequence. Included twice: with REAL double and with REAL float, so that
// each mode computes in its own type throughout. MATH(f) names the math library's function for REAL, MODE(f)
// the exported functions. No operation is contracted or reassociated (see CMakeLists.txt): a sum runs in
// ascending order.

typedef struct {
    uint64_t stamp; // of the evaluation that made it; 0: none
    const void *data;
    void *buffer;
} Cell;

struct Worker {
    const Evaluation *evaluation;
    const Program *program;
    Cell *cells;
    int64_t *extents; // [vars], of the current sequence
    int32_t *values;  // [vars]
    uint64_t stamps[DEPTH_LIMIT], clock;
    int64_t sequence;
    int64_t part, parts;
    WorkerFault *fault;
};

// An operand's elements: step 0 repeats a scalar.
typedef struct {
    const REAL *reals;
    const int32_t *integers;
    int64_t step;
} Operand;

static const void *evaluate(Worker *worker, int index);

static const Node *node_at(const Worker *worker, int index) {
    return &worker->program->nodes[index];
}

static int64_t width(const Worker *worker, const Node *node) {
    return node->vector < 0 ? 1 : worker->extents[node->vector];
}

static Operand operand(Worker *worker, int index) {
    const void *data = evaluate(worker, index);
    return (Operand){data, data, node_at(worker, index)->vector >= 0};
}

static int32_t integer_of(Worker *worker, int index) {
    return *(const int32_t *)evaluate(worker, index);
}

static void set_variable(Worker *worker, int var, int64_t value) {
    worker->values[var] = (int32_t)value;
    worker->stamps[worker->program->vars[var].depth] = ++worker->clock;
}

#include "compiler/reference/elements.h"
#include "compiler/reference/operations.h"

// ---------------------------------------------------------------- reductions

static REAL reduce_reals(int op, Operand a, int64_t count) {
    REAL result = op == REDUCE_SUM ? 0 : op == REDUCE_MAX ? -(REAL)INFINITY : (REAL)INFINITY;
    for (int64_t i = 0; i < count && op == REDUCE_SUM; i++)
        result += a.reals[i * a.step];
    for (int64_t i = 0; i < count && op == REDUCE_MAX; i++)
        result = a.reals[i * a.step] > result ? a.reals[i * a.step] : result;
    for (int64_t i = 0; i < count && op == REDUCE_MIN; i++)
        result = a.reals[i * a.step] < result ? a.reals[i * a.step] : result;
    return result;
}

static void reduce_scalar(Worker *worker, const Node *node, Cell *cell) {
    int64_t count = worker->extents[node->var];
    Operand a = {0};
    if (count > 0)
        a = operand(worker, node->a);
    if (node->type == ELEM_F32) {
        *(REAL *)cell->buffer = reduce_reals(node->op, a, count);
        return;
    }
    uint32_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (uint32_t)a.integers[i * a.step];
    *(int32_t *)cell->buffer = (int32_t)sum;
}

// out[i] = sum over rows of factors[row] * matrix[row][i], rows in ascending order. Four rows at a time spare
// three of four passes over `out` and keep the order.
static void add_rows(REAL *restrict out, int64_t count, const REAL *factors, int64_t step, const REAL *matrix,
                     int64_t stride, int64_t rows) {
    int64_t row = 0;
    for (int64_t i = 0; i < count; i++)
        out[i] = 0;
    for (; row + 4 <= rows; row += 4, matrix += 4 * stride) {
        const REAL f0 = factors[row * step], f1 = factors[(row + 1) * step], f2 = factors[(row + 2) * step],
                   f3 = factors[(row + 3) * step];
        const REAL *m0 = matrix, *m1 = m0 + stride, *m2 = m1 + stride, *m3 = m2 + stride;
        for (int64_t i = 0; i < count; i++)
            out[i] = (((out[i] + f0 * m0[i]) + f1 * m1[i]) + f2 * m2[i]) + f3 * m3[i];
    }
    for (; row < rows; row++, matrix += stride)
        for (int64_t i = 0; i < count; i++)
            out[i] += factors[row * step] * matrix[i];
}

static bool reduce_matrix(Worker *worker, const Node *node, Cell *cell) {
    const Node *matrix = node_at(worker, node->matrix);
    int64_t rows = worker->extents[node->var], count = width(worker, node), offset;
    const ProgramTensor *tensor = &worker->program->tensors[matrix->tensor];
    set_variable(worker, node->var, 0);
    if (rows > range_of(worker, tensor, node->row_dim).limit ||
        !locate(worker, matrix, matrix->unit_dim, count, &offset))
        return false;
    Operand factors = operand(worker, node->factor);
    const Packed *packed = packed_for(worker, matrix);
    add_rows(cell->buffer, count, factors.reals, factors.step, (const REAL *)packed->elements + offset,
             packed->stride[node->row_dim], rows);
    return true;
}

static void accumulate(const Node *node, Operand a, int64_t count, void *buffer) {
    REAL *restrict out = buffer;
    int32_t *restrict sums = buffer;
    if (node->type != ELEM_F32)
        for (int64_t i = 0; i < count; i++)
            sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)a.integers[i]);
    else if (node->op == REDUCE_SUM)
        for (int64_t i = 0; i < count; i++)
            out[i] += a.reals[i];
    else if (node->op == REDUCE_MAX)
        for (int64_t i = 0; i < count; i++)
            out[i] = a.reals[i] > out[i] ? a.reals[i] : out[i];
    else
        for (int64_t i = 0; i < count; i++)
            out[i] = a.reals[i] < out[i] ? a.reals[i] : out[i];
}

static void reduce_vector(Worker *worker, const Node *node, Cell *cell) {
    int64_t count = width(worker, node), rows = worker->extents[node->var];
    if (node->matrix >= 0 && rows > 0 && reduce_matrix(worker, node, cell))
        return;
    if (node->type == ELEM_F32)
        for (int64_t i = 0; i < count; i++)
            ((REAL *)cell->buffer)[i] = reduce_reals(node->op, (Operand){0}, 0);
    else
        memset(cell->buffer, 0, sizeof(int32_t) * (size_t)count);
    for (int64_t row = 0; row < rows; row++) {
        set_variable(worker, node->var, row);
        accumulate(node, operand(worker, node->a), count, cell->buffer);
    }
}

static void evaluate_reduce(Worker *worker, const Node *node, Cell *cell) {
    if (node->vector < 0)
        reduce_scalar(worker, node, cell);
    else
        reduce_vector(worker, node, cell);
}

static const void *evaluate(Worker *worker, int index) {
    static void (*const EVALUATE[NODE_KIND_COUNT])(Worker *, const Node *, Cell *) = {
        [NODE_CONSTANT] = evaluate_constant, [NODE_INDEX] = evaluate_index,
        [NODE_LENGTH] = evaluate_length,     [NODE_SEQUENCE] = evaluate_sequence,
        [NODE_ELEMENT] = evaluate_element,   [NODE_ITEM] = evaluate_item,
        [NODE_UNARY] = evaluate_unary,       [NODE_BINARY] = evaluate_binary,
        [NODE_CHOICE] = evaluate_choice,     [NODE_CAST] = evaluate_cast,
        [NODE_ROUND] = evaluate_round,       [NODE_REDUCE] = evaluate_reduce,
    };
    const Node *node = node_at(worker, index);
    Cell *cell = &worker->cells[index];
    if (cell->stamp >= worker->stamps[node->innermost])
        return cell->data;
    cell->data = cell->buffer;
    EVALUATE[node->kind](worker, node, cell);
    cell->stamp = worker->clock;
    return cell->data;
}

// ---------------------------------------------------------------- statements

static double stored_value(const ProgramTensor *tensor, Operand value, int64_t i) {
    if (tensor->elem == ELEM_I32)
        return value.integers[i * value.step];
    REAL real = value.reals[i * value.step];
    return ROUNDS ? number_round(tensor->elem, (float)real) : real;
}

static void run_store(Worker *worker, const Step *step) {
    const ProgramTensor *tensor = &worker->program->tensors[step->tensor];
    ReferenceOutput *output = worker->evaluation->outputs[step->tensor];
    int64_t offset = 0, stride = 1, unit_stride = 0, count = step->var < 0 ? 1 : worker->extents[step->var];
    for (int d = tensor->given->rank - 1; d >= 0; stride *= tensor->given->extent[d--]) {
        Range range = range_of(worker, tensor, d);
        int64_t position = d == step->vector_dim ? 0 : integer_of(worker, step->at[d]);
        if (position < 0 || position + (d == step->vector_dim ? count : 1) > range.limit) {
            if (count > 0)
                worker->fault->bad_store = step;
            return;
        }
        offset += (range.base + position) * stride;
        unit_stride = d == step->vector_dim ? stride : unit_stride;
    }
    Operand value = operand(worker, step->value);
    for (int64_t i = 0; i < count; i++) {
        output->values[offset + i * unit_stride] = stored_value(tensor, value, i);
        output->written[offset + i * unit_stride] = true;
    }
    if (!ROUNDS || step->slack < 0)
        return;
    Operand slack = operand(worker, step->slack);
    for (int64_t i = 0; i < count; i++) {
        REAL most = MATH(fabs)(slack.reals[i * slack.step]);
        output->slack[offset + i * unit_stride] = isfinite(most) ? most : 0;
    }
}

static void run_steps(Worker *worker, const Step *step, bool is_outermost) {
    for (; step && !worker->fault->bad_store; step = step->next) {
        if (!step->is_loop) {
            if (!is_outermost || worker->part == 0)
                run_store(worker, step);
            continue;
        }
        int64_t extent = worker->extents[step->var];
        int64_t first = is_outermost ? extent * worker->part / worker->parts : 0;
        int64_t end = is_outermost ? extent * (worker->part + 1) / worker->parts : extent;
        for (int64_t i = first; i < end; i++) {
            set_variable(worker, step->var, i);
            run_steps(worker, step->body, false);
        }
    }
}

// ---------------------------------------------------------------- workers

void MODE(worker_free)(Worker *worker) {
    if (!worker)
        return;
    for (int i = 0; worker->cells && i < worker->program->node_count; i++)
        free(worker->cells[i].buffer);
    free(worker->cells);
    free(worker->extents);
    free(worker->values);
    free(worker);
}

Worker *MODE(worker_new)(const Evaluation *evaluation) {
    const Program *program = evaluation->program;
    Worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return NULL;
    worker->evaluation = evaluation;
    worker->program = program;
    worker->sequence = -1;
    worker->clock = worker->stamps[DEPTH_CONSTANT] = 1;
    worker->cells = calloc((size_t)program->node_count + 1, sizeof *worker->cells);
    worker->extents = calloc((size_t)program->var_count + 1, sizeof *worker->extents);
    worker->values = calloc((size_t)program->var_count + 1, sizeof *worker->values);
    bool good = worker->cells && worker->extents && worker->values;
    for (int i = 0; good && i < program->node_count; i++) {
        const Node *node = &program->nodes[i];
        int64_t count = node->vector < 0 ? 1 : program_largest_extent(program, node->vector);
        worker->cells[i].buffer = malloc(((size_t)count + 1) * (sizeof(REAL) > 4 ? sizeof(REAL) : 4));
        good = worker->cells[i].buffer != NULL;
    }
    if (good)
        return worker;
    MODE(worker_free)(worker);
    return NULL;
}

void MODE(worker_run)(Worker *worker, int64_t sequence, int part, int parts, WorkerFault *fault) {
    const Program *program = worker->program;
    worker->sequence = sequence;
    worker->part = part;
    worker->parts = parts;
    worker->fault = fault;
    worker->stamps[DEPTH_SEQUENCE] = ++worker->clock;
    for (int i = 0; i < program->var_count; i++) {
        const Variable *variable = &program->vars[i];
        worker->extents[i] =
            variable->axis < 0 ? variable->size : program->problem->axes[variable->axis].lengths[sequence];
    }
    run_steps(worker, program->steps, true);
}
