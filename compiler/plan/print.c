// print.c: the whole plan as text (--emit plan). The same plan gives the same text.
#include "compiler/plan/expr_text.h"
#include "compiler/plan/lookup.h"
#include "grammar/ast.h"

#include <string.h>

static const char *const ENGINES[] = {"nothing", "loads", "products", "threads", "stores"};

static const char *const PARTS[] = {"", ".first", ".rest", ".last"};

// ---------------------------------------------------------------- declarations

static void print_names(const Plan *plan, FILE *out) {
    for (int i = 0; i < plan->constant_count; i++) {
        const Constant *constant = &plan->constants[i];
        if (constant->text)
            fprintf(out, "const %s = %s\n", constant->name, constant->text);
        else
            fprintf(out, "const %s = %.9g\n", constant->name, constant->value);
    }
    for (int i = 0; i < plan->axis_count; i++)
        fprintf(out, "axis %s\n", plan->axes[i].name);
    for (int i = 0; i < plan->dim_count; i++) {
        int divides = plan->dims[i].divides;
        fprintf(out, "dim %s%s%s\n", plan->dims[i].name, divides < 0 ? "" : " divides ",
                divides < 0 ? "" : plan->dims[divides].name);
    }
    for (int i = 0; i < plan->param_count; i++) {
        const Param *param = &plan->params[i];
        fprintf(out, "param %s : %s%s", param->name, elem_name(param->elem),
                param->is_positive ? " > 0" : "");
        if (param->has_default)
            fprintf(out, " = %.9g", param->default_value);
        fputc('\n', out);
    }
}

static void print_tensors(const Plan *plan, FILE *out) {
    static const char *const DIRECTIONS[] = {
        [TENSOR_IN] = "in", [TENSOR_OUT] = "out", [TENSOR_INOUT] = "inout"};
    for (int i = 0; i < plan->tensor_count; i++) {
        const Tensor *tensor = &plan->tensors[i];
        fprintf(out, "tensor %s : %s%s %s[", tensor->name, tensor->is_optional ? "optional " : "",
                DIRECTIONS[tensor->direction], elem_name(tensor->elem));
        for (int k = 0; k < tensor->rank; k++) {
            const TensorDim *dim = &tensor->dims[k];
            fputs(k ? ", " : "", out);
            if (dim->kind == DIM_CONSTANT)
                fprintf(out, "%lld", (long long)dim->extent);
            else
                fputs(dim->kind == DIM_AXIS ? plan->axes[dim->index].name : plan->dims[dim->index].name, out);
        }
        fprintf(out, "]%s\n", tensor->from_kernel ? " of the kernel" : "");
    }
}

static void print_grid(const Plan *plan, FILE *out) {
    if (plan->cluster > 1)
        fprintf(out, "cluster of %d\n", plan->cluster);
    if (plan->occupancy > 1)
        fprintf(out, "occupancy %d\n", plan->occupancy);
    fprintf(out, "grid%s%s\n", plan->heaviest_first ? " heaviest_first" : "",
            plan->queue_depth  ? " persistent via queue"
            : plan->persistent ? " persistent"
                               : "");
    for (int i = 0; i < plan->factor_count; i++)
        fprintf(out, "  %s in %s\n", plan->factors[i].name, plan->dims[plan->factors[i].dim].name);
    for (int i = 0; i < plan->tile_axis_count; i++)
        fprintf(out, "  %s in blocks(%s, %lld)\n", plan->tile_axes[i].name,
                plan->axes[plan->tile_axes[i].axis].name, (long long)plan->tile_axes[i].size);
    fprintf(out, "record of a tile\n");
    for (int i = 0; i < plan->field_count; i++) {
        const RecordField *field = &plan->fields[i];
        fprintf(out, "  %d: ", i);
        if (field->kind == FIELD_SEQ)
            fprintf(out, "seq\n");
        else if (field->kind == FIELD_BASE)
            fprintf(out, "base of %s, dim %d\n", plan->tensors[field->index].name, field->dim);
        else
            fprintf(out, "%s of %s\n", field->kind == FIELD_START ? "start" : "length",
                    plan->axes[field->index].name);
    }
    for (int i = 0; i < plan->walk_count; i++) {
        const Walk *walk = plan->walks[i];
        fprintf(out, "walk %s over %s in blocks(%s, %lld)%s\n", walk->name, walk->block_name,
                plan->axes[walk->axis].name, (long long)walk->size, walk->last_first ? " last_first" : "");
        int named = 0;
        if (walk->where)
            fprintf(out, "  where %s\n", expr_text(plan, walk->where, out, 2, &named));
    }
}

static void print_buffers(const Plan *plan, FILE *out) {
    for (int i = 0; i < plan->buffer_count; i++) {
        const Buffer *buffer = plan->buffers[i];
        bool shared = buffer->space == SPACE_SMEM;
        fprintf(out, "%s %s [%d, %d] : %s[%d", shared ? "smem" : "tmem", buffer->name, buffer->array,
                buffer->depth, elem_name(buffer->elem), buffer->rows);
        if (buffer->rank == 2)
            fprintf(out, ", %d", buffer->cols);
        fprintf(out, "]%s%s\n", buffer->over ? " over " : "", buffer->over ? buffer->over->name : "");
        if (shared)
            fprintf(out, "  offset %lld, stride %lld, bytes %lld, swizzle %d, chunk %d columns\n",
                    (long long)buffer->offset, (long long)buffer->stride, (long long)buffer->bytes,
                    buffer->swizzle_bytes, buffer->chunk_cols);
        else
            fprintf(out, "  column %lld, stride %lld, columns %d\n", (long long)buffer->offset,
                    (long long)buffer->stride, buffer->columns);
    }
}

static void print_pipe(const Plan *plan, const Pipe *pipe, FILE *out) {
    fprintf(out, "pipe %s ", pipe->name);
    if (pipe->is_array)
        fprintf(out, "[%d] ", pipe->array);
    fprintf(out, ": %s %s -> %s%s\n", pipe->buffer->name, pipe->from->name, pipe_takers_text(plan, pipe),
            pipe->in_place    ? " in place"
            : pipe->multicast ? " multicast"
                              : "");
    fprintf(out, "  filled by %s, used by %s", ENGINES[pipe->filled_by], ENGINES[pipe->used_by]);
    if (pipe->hands_over)
        fprintf(out, ", takes over slots of %s", pipe->before->name);
    else if (pipe->before != pipe)
        fprintf(out, ", waits for frees of %s%s", pipe->before->name,
                pipe->first_in_round ? ", first in round" : "");
    fprintf(out, "\n  full at %lld, arrivals %d", (long long)pipe->full_barrier, pipe->full_count);
    if (pipe->bytes)
        fprintf(out, ", bytes %lld", (long long)pipe->bytes);
    if (pipe->empty_barrier >= 0)
        fprintf(out, "; empty at %lld, arrivals %d\n", (long long)pipe->empty_barrier, pipe->empty_count);
    else
        fprintf(out, "; %s\n",
                pipe->free_is_ordered ? "frees are ordered by the tensor core" : "slots are handed on");
}

static void print_maps(const Plan *plan, FILE *out) {
    for (int i = 0; i < plan->map_count; i++) {
        const TensorMap *map = &plan->maps[i];
        fprintf(out,
                "map %d: %s of %s, tiles [%d, %d] over dims %d, %d, swizzle %d, chunk %d columns, chunks %d",
                i, map->is_store ? "stores" : "loads", plan->tensors[map->tensor].name, map->rows, map->cols,
                map->row_dim, map->col_dim, map->swizzle_bytes, map->chunk_cols, map->chunks);
        if (map->chunk_slices * map->row_slices > 1)
            fprintf(out, ", slices %d x %d", map->chunk_slices, map->row_slices);
        fprintf(out, "\n");
    }
}

// ---------------------------------------------------------------- statements

typedef struct {
    const Plan *plan;
    FILE *out;
    int indent, named;
} Printer;

// A slot that a put fills has no name of its own.
static const char *slot_name(const Slot *slot) {
    return strchr(slot->name, '@') ? "put" : slot->name;
}

static const char *value_text(Printer *printer, const Expr *expr) {
    return expr_text(printer->plan, expr, printer->out, printer->indent, &printer->named);
}

static void start_line(Printer *printer) {
    fprintf(printer->out, "%*s", printer->indent, "");
}

static const char *tensor_text(Printer *printer, const TensorRef *ref) {
    const Plan *plan = printer->plan;
    const Tensor *tensor = &plan->tensors[ref->tensor];
    const char *text = "";
    for (int i = 0; i < tensor->rank; i++)
        text = arena_format(plan->arena, "%s%s%s", text, i ? ", " : "", value_text(printer, ref->at[i]));
    text = arena_format(plan->arena, "%s[%s]", tensor->name, text);
    return ref->map < 0 ? text : arena_format(plan->arena, "%s by map %d", text, ref->map);
}

static void print_list(Printer *printer, const Stmt *stmt);

static void print_body(Printer *printer, const Stmt *body) {
    printer->indent += 2;
    print_list(printer, body);
    printer->indent -= 2;
}

static void print_if(Printer *printer, const Stmt *stmt) {
    const char *condition = value_text(printer, stmt->value);
    start_line(printer);
    fprintf(printer->out, "if %s\n", condition);
    print_body(printer, stmt->body);
    if (!stmt->other)
        return;
    start_line(printer);
    fprintf(printer->out, "else\n");
    print_body(printer, stmt->other);
}

static const char *operand_text(const Printer *printer, const Slot *slot, const Local *local,
                                bool transposed) {
    return arena_format(printer->plan->arena, "%s#%d%s", slot ? slot_name(slot) : local->name,
                        slot ? slot->number : local->number, transposed ? "^T" : "");
}

static void print_product(Printer *printer, const Stmt *stmt) {
    const Product *product = &stmt->product;
    const char *fresh = stmt->fresh ? value_text(printer, stmt->fresh) : "false";
    start_line(printer);
    fprintf(printer->out, "product %s += %s @ %s [%d, %d, %d] fresh if %s\n",
            operand_text(printer, stmt->slot, stmt->local, false),
            operand_text(printer, product->a, product->a_local, product->a_transposed),
            operand_text(printer, product->b, NULL, product->b_transposed), product->m, product->n,
            product->k, fresh);
}

static void print_put(Printer *printer, const Stmt *stmt, const char *what, const char *value) {
    const Slot *slot = stmt->slot;
    start_line(printer);
    fprintf(printer->out, "%s %s#%d = %s%s%s", what, slot_name(slot), slot->number,
            slot_text(printer->plan, slot), value ? " <- " : "", value ? value : "");
    if (slot->handed_from)
        fprintf(printer->out, " over %s#%d", slot_name(slot->handed_from), slot->handed_from->number);
    fputc('\n', printer->out);
}

static void print_value(Printer *printer, const char *what, const Local *local, const Stmt *stmt) {
    const char *value = value_text(printer, stmt->value);
    start_line(printer);
    fprintf(printer->out, "%s %s#%d : %s = %s\n", what, local->name, local->number,
            plan_type_text(printer->plan, local->type), value);
}

static void print_stmt(Printer *printer, const Stmt *stmt) {
    FILE *out = printer->out;
    switch (stmt->kind) {
    case ST_TILES:
        start_line(printer);
        fprintf(out, "for each tile\n");
        print_body(printer, stmt->body);
        break;
    case ST_WALK:
        start_line(printer);
        fprintf(out, "for %s#%d in tile.%s%s%s\n", stmt->block->name, stmt->block->number,
                stmt->block->walk->name, PARTS[stmt->part],
                stmt->block->reads_full ? ", full blocks apart" : "");
        print_body(printer, stmt->body);
        break;
    case ST_IF:
        print_if(printer, stmt);
        break;
    case ST_LET:
        print_value(printer, stmt->local->is_mutable ? "var" : "let", stmt->local, stmt);
        break;
    case ST_SET:
        print_value(printer, "set", stmt->local, stmt);
        break;
    case ST_TAKE:
        print_put(printer, stmt, "take", NULL);
        break;
    case ST_PUT_VALUE:
        print_put(printer, stmt, "put", value_text(printer, stmt->value));
        break;
    case ST_PUT_LOAD:
        print_put(printer, stmt, "load", tensor_text(printer, &stmt->tensor));
        break;
    case ST_FILL:
        print_put(printer, stmt, "fill", NULL);
        print_body(printer, stmt->body);
        break;
    case ST_TURN:
        start_line(printer);
        fprintf(out, "in turn %s\n", stmt->turn->name);
        print_body(printer, stmt->body);
        break;
    case ST_PRODUCT:
        print_product(printer, stmt);
        break;
    case ST_FREE:
        start_line(printer);
        fprintf(out, "free %s#%d\n", slot_name(stmt->slot), stmt->slot->number);
        break;
    case ST_UPDATE: {
        const char *value = value_text(printer, stmt->value);
        start_line(printer);
        fprintf(out, "update %s#%d = %s\n", slot_name(stmt->slot), stmt->slot->number, value);
        break;
    }
    case ST_STORE_VALUE: {
        const char *to = tensor_text(printer, &stmt->tensor), *value = value_text(printer, stmt->value);
        start_line(printer);
        fprintf(out, "store %s = %s\n", to, value);
        break;
    }
    case ST_STORE_TILE: {
        const char *to = tensor_text(printer, &stmt->tensor);
        start_line(printer);
        fprintf(out, "store %s = %s#%d\n", to, slot_name(stmt->source), stmt->source->number);
        break;
    }
    }
}

static void print_list(Printer *printer, const Stmt *stmt) {
    for (; stmt; stmt = stmt->next)
        print_stmt(printer, stmt);
}

static void print_role(const Plan *plan, const Role *role, FILE *out) {
    fprintf(out, "role %s", role->name);
    if (role->replica_name)
        fprintf(out, " [%s in %d]", role->replica_name, role->replicas);
    fprintf(out, " : %d warp%s from warp %d, %d registers%s%s%s\n", role->warps, role->warps == 1 ? "" : "s",
            role->first_warp, role->final_regs, role->uses_values ? ", computes" : ", one thread",
            role->touches_tmem ? ", touches tensor memory" : "",
            role->issues_products ? ", issues products" : "");
    Printer printer = {plan, out, 2, 0};
    print_list(&printer, role->body);
}

void plan_print(const Plan *plan, FILE *out) {
    fprintf(out, "kernel %s : %s, schedule %s for %s\n", plan->kernel_name, plan->family_name,
            plan->schedule_name, plan->target->name);
    print_names(plan, out);
    print_tensors(plan, out);
    print_grid(plan, out);
    print_buffers(plan, out);
    for (int i = 0; i < plan->pipe_count; i++)
        print_pipe(plan, plan->pipes[i], out);
    print_maps(plan, out);
    fprintf(out, "shared memory %lld bytes: barriers at %lld, %lld bytes, %d of them",
            (long long)plan->shared_bytes, (long long)plan->barrier_offset, (long long)plan->barrier_bytes,
            plan->mbarriers);
    if (plan->tmem_pointer_offset >= 0)
        fprintf(out, "; tensor-memory pointer at %lld", (long long)plan->tmem_pointer_offset);
    fprintf(out, "\ntensor memory %d columns of %d allocated\n", plan->tmem_columns, plan->tmem_allocation);
    fprintf(out, "cta %d warps, %d registers a thread at launch\n", plan->warps, plan->launch_regs);
    for (int i = 0; i < plan->role_count; i++)
        print_role(plan, plan->roles[i], out);
}
