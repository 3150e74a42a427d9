// elements.h: constants, indices, elements of tensors and of vectors. A part of evaluate.h.

// ---------------------------------------------------------------- elements of tensors

typedef struct {
    int64_t base, limit; // positions 0 .. limit - 1 exist
} Range;

static Range range_of(const Worker *worker, const ProgramTensor *tensor, int dim) {
    int axis = tensor->axis[dim];
    if (axis < 0)
        return (Range){0, tensor->given->extent[dim]};
    const int64_t *base = tensor->given->base[dim];
    return (Range){base ? base[worker->sequence] : 0,
                   worker->program->problem->axes[axis].lengths[worker->sequence]};
}

static const Packed *packed_for(const Worker *worker, const Node *node) {
    int rank = worker->program->tensors[node->tensor].given->rank;
    return &worker->evaluation->packed[node->tensor][node->unit_dim >= 0 ? node->unit_dim : rank - 1];
}

// Offset of the element at the scalar positions, with position 0 in dim `unit`, of which `count` must exist.
static bool locate(Worker *worker, const Node *node, int unit, int64_t count, int64_t *offset) {
    const ProgramTensor *tensor = &worker->program->tensors[node->tensor];
    const Packed *packed = packed_for(worker, node);
    *offset = 0;
    for (int i = 0; i < tensor->given->rank; i++) {
        Range range = range_of(worker, tensor, i);
        int64_t position = i == unit ? 0 : integer_of(worker, node->at[i]);
        if (position < 0 || position + (i == unit ? count : 1) > range.limit)
            return false;
        *offset += (range.base + position) * packed->stride[i];
    }
    return true;
}

static const void *element_address(const Packed *packed, Elem type, int64_t offset) {
    return type == ELEM_I32 ? (const void *)((const int32_t *)packed->elements + offset)
                            : (const void *)((const REAL *)packed->elements + offset);
}

// Positions that vary in other ways, or lie outside: one by one. A position outside of its dim reads the
// nearest element inside; where there is none, 0.
static void gather(Worker *worker, const Node *node, Cell *cell) {
    const ProgramTensor *tensor = &worker->program->tensors[node->tensor];
    const Packed *packed = packed_for(worker, node);
    Operand positions[REFERENCE_MAX_DIMS];
    Range ranges[REFERENCE_MAX_DIMS];
    bool is_empty = false;
    for (int d = 0; d < tensor->given->rank; d++) {
        positions[d] = operand(worker, node->at[d]);
        ranges[d] = range_of(worker, tensor, d);
        is_empty |= ranges[d].limit == 0;
    }
    for (int64_t i = 0, count = width(worker, node); i < count; i++) {
        int64_t offset = 0;
        for (int d = 0; d < tensor->given->rank; d++) {
            int64_t position = positions[d].integers[i * positions[d].step], last = ranges[d].limit - 1;
            position = position < 0 ? 0 : position > last ? last : position;
            offset += (ranges[d].base + position) * packed->stride[d];
        }
        if (node->type == ELEM_I32)
            ((int32_t *)cell->buffer)[i] = is_empty ? 0 : ((const int32_t *)packed->elements)[offset];
        else
            ((REAL *)cell->buffer)[i] = is_empty ? 0 : ((const REAL *)packed->elements)[offset];
    }
}

static void evaluate_element(Worker *worker, const Node *node, Cell *cell) {
    int64_t offset;
    bool is_direct = node->vector < 0 || node->unit_dim >= 0;
    if (is_direct && locate(worker, node, node->unit_dim, width(worker, node), &offset))
        cell->data = element_address(packed_for(worker, node), node->type, offset);
    else
        gather(worker, node, cell);
}

// ---------------------------------------------------------------- values without operands

static void evaluate_constant(Worker *worker, const Node *node, Cell *cell) {
    (void)worker;
    if (node->type == ELEM_F32)
        *(REAL *)cell->buffer = (REAL)node->real;
    else
        *(int32_t *)cell->buffer = node->integer;
}

static void evaluate_index(Worker *worker, const Node *node, Cell *cell) {
    int32_t *out = cell->buffer;
    if (node->vector < 0)
        *out = worker->values[node->var];
    for (int64_t i = 0; node->vector >= 0 && i < worker->extents[node->var]; i++)
        out[i] = (int32_t)i;
}

static void evaluate_length(Worker *worker, const Node *node, Cell *cell) {
    *(int32_t *)cell->buffer = (int32_t)worker->program->problem->axes[node->axis].lengths[worker->sequence];
}

static void evaluate_sequence(Worker *worker, const Node *node, Cell *cell) {
    (void)node;
    *(int32_t *)cell->buffer = (int32_t)worker->sequence;
}

static void evaluate_item(Worker *worker, const Node *node, Cell *cell) {
    const Node *source = node_at(worker, node->source), *position = node_at(worker, node->a);
    Operand from = operand(worker, node->source), at = operand(worker, node->a);
    int64_t limit = width(worker, source), count = width(worker, node);
    bool is_whole = position->kind == NODE_INDEX && position->vector >= 0 && count <= limit;
    if (is_whole) {
        cell->data = from.reals;
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t k = at.integers[i * at.step];
        bool is_inside = k >= 0 && k < limit;
        if (node->type == ELEM_F32)
            ((REAL *)cell->buffer)[i] = is_inside ? from.reals[k] : (REAL)NAN;
        else
            ((int32_t *)cell->buffer)[i] = is_inside ? from.integers[k] : 0;
    }
}
