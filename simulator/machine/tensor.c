// tensor.c: Blackwell's tensor memory and tensor core (PTX ISA: "TensorCore 5th Generation Family
// Instructions").
#include "simulator/engines/matrix_desc.h"
#include "simulator/engines/tmem_layout.h"
#include "simulator/machine/tensor.h"

#include <stdlib.h>
#include <string.h>

enum { UNITS = TMEM_COLUMNS / COLUMNS_A_UNIT, MOST_LISTED = 512 };

// ---------------------------------------------------------------- allocation

bool tensor_on_sm100(Warp *warp, const Op *op) {
    if (warp->cta->cluster->launch->sim->is_sm100)
        return true;
    fault(warp, op, SIM_FAULT_UNSUPPORTED, "this chip has no tcgen05");
    return false;
}

static bool whole_warp(Warp *warp, const Op *op, uint32_t mask) {
    if (mask == ~warp->exited && mask == ALL_LANES)
        return tensor_on_sm100(warp, op);
    fault(warp, op, SIM_FAULT_CONVERGENCE, "an aligned instruction is executed by lanes 0x%08x only", mask);
    return false;
}

static int find_free(const Cta *cta, int units) {
    for (int first = 0; first + units <= UNITS; first += units) {
        bool free_run = true;
        for (int i = 0; i < units; i++)
            free_run &= !cta->tmem_owner[first + i];
        if (free_run)
            return first;
    }
    return -1;
}

static void run_alloc(Warp *warp, const Op *op, uint32_t mask) {
    if (!whole_warp(warp, op, mask))
        return;
    Cta *cta = warp->cta;
    uint32_t columns = (uint32_t)lane_value(warp, &op->operands[1], 0), offset;
    if (columns < 32 || columns > TMEM_COLUMNS || (columns & (columns - 1))) {
        fault(warp, op, SIM_FAULT_TENSOR_MEMORY, "%u columns: a power of two in 32..512 is needed", columns);
        return;
    }
    if (cta->tmem_relinquished) {
        fault(warp, op, SIM_FAULT_TENSOR_MEMORY, "allocation after relinquish_alloc_permit");
        return;
    }
    uint64_t address = lane_value(warp, &op->operands[0], 0) + (uint64_t)(int64_t)op->operands[0].add;
    Cta *owner = machine_shared(warp, op, (uint32_t)address, 4, &offset);
    if (!owner)
        return;
    int units = (int)columns / COLUMNS_A_UNIT, first = find_free(cta, units);
    if (first < 0) { // blocks until another allocation is freed
        warp_block(warp, WAIT_TMEM, columns, 0);
        warp->groups[warp->current].pc--;
        return;
    }
    for (int i = 0; i < units; i++)
        cta->tmem_owner[first + i] = (uint8_t)(i == 0 ? units : 0x80);
    cta->tmem_allocated += (int)columns;
    uint32_t base = (uint32_t)(first * COLUMNS_A_UNIT);
    if (race_shared_write(owner, warp, op, NULL, offset, 4))
        memcpy(owner->shared + offset, &base, 4);
}

static void run_dealloc(Warp *warp, const Op *op, uint32_t mask) {
    if (!whole_warp(warp, op, mask))
        return;
    Cta *cta = warp->cta;
    uint32_t base = (uint32_t)lane_value(warp, &op->operands[0], 0),
             columns = (uint32_t)lane_value(warp, &op->operands[1], 0);
    uint32_t first = base / COLUMNS_A_UNIT, units = columns / COLUMNS_A_UNIT;
    if (base % COLUMNS_A_UNIT || first >= UNITS || cta->tmem_owner[first] != units) {
        fault(warp, op, SIM_FAULT_TENSOR_MEMORY, "%u columns at address 0x%x are freed, but not allocated so",
              columns, base);
        return;
    }
    for (int c = 0; c < cta->cluster->cta_count; c++)
        for (const Async *async = cta->cluster->ctas[c].pending; async; async = async->next)
            if (async->in_order && (c == cta->rank || (async->cta_group == 2 && (c ^ 1) == cta->rank))) {
                fault(warp, op, SIM_FAULT_TENSOR_MEMORY,
                      "tensor memory is freed while the operation of PTX line %d is under way", async->line);
                return;
            }
    memset(&cta->tmem_owner[first], 0, units);
    cta->tmem_allocated -= (int)columns;
    for (int quarter = 0; quarter < 4; quarter++)
        memset(&cta->tensor_cells[quarter * TMEM_COLUMNS + (int)base], 0, columns * sizeof(Cell));
    cta->cluster->progress = 1;
}

static void run_relinquish(Warp *warp, const Op *op, uint32_t mask) {
    if (whole_warp(warp, op, mask))
        warp->cta->tmem_relinquished = 1;
}

// ---------------------------------------------------------------- loads and stores by a warp

typedef struct {
    int first_lane, first_column;
    SimTmemShape shape;
    int offset; // of the second half of 16x32bx2
} Window;

static bool window_of(Warp *warp, const Op *op, const Operand *place, Window *window) {
    uint32_t address = (uint32_t)lane_value(warp, place, 0) + (uint32_t)place->add;
    for (int lane = 1; lane < LANES; lane++)
        if ((uint32_t)lane_value(warp, place, lane) + (uint32_t)place->add != address) {
            fault(warp, op, SIM_FAULT_TENSOR_MEMORY, "the address differs between the lanes of the warp");
            return false;
        }
    window->first_lane = (int)(address >> 16);
    window->first_column = (int)(address & 0xFFFF);
    window->shape = (SimTmemShape)op->mode;
    window->offset = (int)op->immediate;
    int quarter = window->first_lane / 32;
    if (quarter != warp->number % 4 || window->first_lane > 127) {
        fault(warp, op, SIM_FAULT_TENSOR_MEMORY, "warp %d reaches lanes %d..%d only, not lane %d",
              warp->number, 32 * (warp->number % 4), 32 * (warp->number % 4) + 31, window->first_lane);
        return false;
    }
    return true;
}

// The (lane, column) of register r in thread t, absolute; packed loads take two columns a register.
static void place_of(const Op *op, const Window *window, int reg, int thread, int half, int *lane,
                     int *column) {
    sim_tmem_place(window->shape, op->mode2 ? 2 * reg + half : reg, thread, lane, column);
    *lane += window->first_lane;
    *column += window->first_column + (window->shape == SIM_16X32BX2 && thread >= 16 ? window->offset : 0);
}

static bool check_place(Warp *warp, const Op *op, int lane, int column) {
    if (column_is_allocated(warp->cta, column) && lane / 32 == warp->number % 4)
        return true;
    fault(warp, op, SIM_FAULT_TENSOR_MEMORY, "lane %d, column %d is not allocated, or not this warp's", lane,
          column);
    return false;
}

// Lane = thread, column = register: the shape that matters for speed.
static bool is_plain(const Op *op) {
    return op->mode == SIM_32X32B && !op->mode2;
}

static bool check_plain_columns(Warp *warp, const Op *op, const Window *window, bool write) {
    int quarter = warp->number % 4;
    if (window->first_lane % 32) {
        fault(warp, op, SIM_FAULT_TENSOR_MEMORY, "32 lanes from lane %d on are not all this warp's",
              window->first_lane);
        return false;
    }
    for (int reg = 0; reg < op->list_count; reg++) {
        int column = window->first_column + reg;
        if (!check_place(warp, op, window->first_lane, column))
            return false;
        if (write ? !race_tensor_write(warp->cta, warp, op, NULL, quarter, column)
                  : !race_tensor_read(warp->cta, warp, op, NULL, quarter, column))
            return false;
    }
    return true;
}

// Columns are checked once each; shapes of 16 lanes touch the quarter's columns all the same.
static bool check_columns(Warp *warp, const Op *op, const Window *window, bool write) {
    uint8_t seen[TMEM_COLUMNS] = {0};
    if (is_plain(op))
        return check_plain_columns(warp, op, window, write);
    for (int reg = 0; reg < op->list_count; reg++)
        for (int thread = 0; thread < LANES; thread++)
            for (int half = 0; half <= op->mode2; half++) {
                int lane, column;
                place_of(op, window, reg, thread, half, &lane, &column);
                if (!check_place(warp, op, lane, column))
                    return false;
                if (seen[column]++)
                    continue;
                int quarter = warp->number % 4;
                if (write ? !race_tensor_write(warp->cta, warp, op, NULL, quarter, column)
                          : !race_tensor_read(warp->cta, warp, op, NULL, quarter, column))
                    return false;
            }
    return true;
}

void warp_mark_loading(Warp *warp, int32_t at) {
    if (warp->busy[at / 8])
        return;
    warp->busy[at / 8] = BUSY_LOAD;
    if (warp->busy_loads < MOST_LISTED)
        warp->loading[warp->busy_loads] = at / 8;
    warp->busy_loads++;
}

static void run_tmem_load(Warp *warp, const Op *op, uint32_t mask) {
    Window window;
    if (!whole_warp(warp, op, mask) || !window_of(warp, op, &op->operands[op->list_count], &window) ||
        !check_columns(warp, op, &window, false))
        return;
    for (int reg = 0; reg < op->list_count; reg++) {
        uint32_t *to = reg32(warp, &op->operands[reg]);
        const uint32_t *plain =
            is_plain(op) ? cell_of(warp->cta, window.first_lane, window.first_column + reg) : NULL;
        for (int thread = 0; plain && thread < LANES; thread++)
            to[thread] = plain[thread * TMEM_COLUMNS];
        for (int thread = 0; !plain && thread < LANES; thread++) {
            int lane, column;
            place_of(op, &window, reg, thread, 0, &lane, &column);
            uint32_t value = *cell_of(warp->cta, lane, column);
            if (op->mode2) {
                place_of(op, &window, reg, thread, 1, &lane, &column);
                value = (value & 0xFFFF) | *cell_of(warp->cta, lane, column) << 16;
            }
            to[thread] = value;
        }
        if (op->operands[reg].at >= 0) {
            warp_mark_loading(warp, op->operands[reg].at);
        }
    }
}

static void run_tmem_store(Warp *warp, const Op *op, uint32_t mask) {
    Window window;
    if (!whole_warp(warp, op, mask) || !window_of(warp, op, &op->operands[0], &window) ||
        !check_columns(warp, op, &window, true))
        return;
    if (!warp->unwaited_stores)
        warp->unwaited_stores = warp->time;
    for (int reg = 0; reg < op->list_count; reg++) {
        const uint32_t *from = reg32(warp, &op->operands[op->first_list + reg]);
        uint32_t *plain =
            is_plain(op) ? cell_of(warp->cta, window.first_lane, window.first_column + reg) : NULL;
        for (int thread = 0; plain && thread < LANES; thread++)
            plain[thread * TMEM_COLUMNS] = from[thread];
        for (int thread = 0; !plain && thread < LANES; thread++) {
            int lane, column;
            place_of(op, &window, reg, thread, 0, &lane, &column);
            *cell_of(warp->cta, lane, column) = op->mode2 ? from[thread] & 0xFFFF : from[thread];
            if (op->mode2) {
                place_of(op, &window, reg, thread, 1, &lane, &column);
                *cell_of(warp->cta, lane, column) = from[thread] >> 16;
            }
        }
    }
}

static void loads_are_over(Warp *warp) {
    size_t places = warp->cta->cluster->launch->program->register_bytes / 8;
    for (int i = 0; i < warp->busy_loads && i < MOST_LISTED; i++)
        warp->busy[warp->loading[i]] = BUSY_NOT;
    for (size_t i = 0; warp->busy_loads > MOST_LISTED && i < places; i++)
        warp->busy[i] = warp->busy[i] == BUSY_LOAD ? BUSY_NOT : warp->busy[i];
    warp->busy_loads = 0;
}

static void run_wait(Warp *warp, const Op *op, uint32_t mask) {
    if (!whole_warp(warp, op, mask))
        return;
    if (op->mode)
        warp->unwaited_stores = 0;
    else
        loads_are_over(warp);
}

// ---------------------------------------------------------------- fences

static void run_fence(Warp *warp, const Op *op, uint32_t mask) {
    (void)mask;
    if (op->mode) { // after_thread_sync: what synchronisation brought is usable from here
        clock_join(&warp->tensor_after, &warp->clocks.tensor);
        return;
    }
    // before_thread_sync: own operations that are complete are ordered before the next arrival.
    warp_tick(warp);
    uint32_t until = warp->time;
    if (warp->unwaited_stores)
        until = warp->unwaited_stores - 1;
    if (warp->busy_loads)
        return;
    if (warp->clocks.tensor.at[warp->agent] < until)
        warp->clocks.tensor.at[warp->agent] = until;
    clock_join(&warp->clocks.tensor, &warp->tensor_after);
}

// ---------------------------------------------------------------- commits

Cta *tensor_partner(Cta *cta, Async *async, int part) {
    Cluster *cluster = cta->cluster;
    int rank = async->cta_group == 2 ? (cta->rank & ~1) + part : cta->rank;
    if (rank < cluster->cta_count)
        return &cluster->ctas[rank];
    fault_async(cta, async, SIM_FAULT_TENSOR_MEMORY, "cta_group::2 in a cluster without a CTA of rank %d",
                rank);
    return NULL;
}

static void complete_commit(Cta *cta, Async *async) {
    mbarrier_async_arrive(cta, async, async->barrier, (uint32_t)async->commit_mask);
}

static void run_commit(Warp *warp, const Op *op, uint32_t mask) {
    if (!tensor_on_sm100(warp, op))
        return;
    FOR_LANES(lane, mask) {
        Async *async = async_new(warp, op, complete_commit);
        if (!async)
            return;
        async->in_order = true;
        async->thread = (uint32_t)warp->number * LANES + lane;
        async->barrier = (uint32_t)(lane_value(warp, &op->operands[0], (int)lane) +
                                    (uint64_t)(int64_t)op->operands[0].add);
        async->commit_mask = op->mode ? (int)(lane_value(warp, &op->operands[1], (int)lane) & 0xFFFF) : 0;
        async_start(warp, async);
    }
}

// ---------------------------------------------------------------- copies from shared memory

typedef struct {
    const char *name;
    int rows, bytes; // of the source
    int copies;      // lanes that a row goes to
    int step;        // from one of them to the next
    int row_step, rows_a_group,
        group_step; // row r goes to lane (r % rows_a_group) * row_step + r / rows_a_group * group_step
} CopyForm;

static const CopyForm COPY_FORMS[] = {
    {"128x256b", 128, 32, 1, 0, 1, 128, 0},      {"4x256b", 4, 32, 1, 0, 32, 4, 0},
    {"128x128b", 128, 16, 1, 0, 1, 128, 0},      {"warpx2::02_13", 64, 16, 2, 64, 1, 64, 0},
    {"warpx2::01_23", 64, 16, 2, 32, 1, 32, 64}, {"32x128b", 32, 16, 4, 32, 1, 32, 0},
};

static bool write_copy(Cta *cta, Cta *issuer, Async *async, int lane, int first_column,
                       const uint8_t *bytes) {
    for (int i = 0; i < 4; i++) {
        int column = first_column + i;
        if (!column_is_allocated(cta, column) || lane >= TMEM_LANES) {
            fault_async(issuer, async, SIM_FAULT_TENSOR_MEMORY, "lane %d, column %d is not allocated", lane,
                        column);
            return false;
        }
        if (!race_tensor_write(cta, NULL, async->op, async, lane / 32, column))
            return false;
        memcpy(cell_of(cta, lane, column), bytes + 4 * i, 4);
    }
    return true;
}

static bool copy_part(Cta *cta, Cta *issuer, Async *async, const SimMatrixDesc *desc) {
    const CopyForm *form = &COPY_FORMS[async->kind];
    int first_lane = (int)(async->d >> 16), first_column = (int)(async->d & 0xFFFF);
    for (int row = 0; row < form->rows; row++)
        for (int byte = 0; byte < form->bytes; byte += 16) {
            uint32_t address = sim_matrix_address(desc, true, 1, row, byte), offset = address - SHARED_BASE;
            if (address < SHARED_BASE || offset + 16 > cta->shared_bytes) {
                fault_async(issuer, async, SIM_FAULT_BOUNDS, "the copy reads shared offset %u of %u bytes",
                            offset, cta->shared_bytes);
                return false;
            }
            if (!race_shared_read(cta, NULL, async->op, async, offset, 16))
                return false;
            int lane = first_lane + row % form->rows_a_group * form->row_step +
                       row / form->rows_a_group * form->group_step;
            for (int i = 0; i < form->copies; i++)
                if (!write_copy(cta, issuer, async, lane + i * form->step, first_column + byte / 4,
                                cta->shared + offset))
                    return false;
        }
    return true;
}

static void complete_copy(Cta *cta, Async *async) {
    SimMatrixDesc desc;
    char message[200];
    if (!sim_matrix_desc_decode(async->a, true, &desc, message)) {
        fault_async(cta, async, SIM_FAULT_DESCRIPTOR, "matrix descriptor 0x%016llx: %s",
                    (unsigned long long)async->a, message);
        return;
    }
    for (int part = 0; part < async->cta_group; part++) {
        Cta *partner = tensor_partner(cta, async, part);
        if (!partner || !copy_part(partner, cta, async, &desc))
            return;
    }
}

static void run_copy(Warp *warp, const Op *op, uint32_t mask) {
    if (!tensor_on_sm100(warp, op))
        return;
    FOR_LANES(lane, mask) {
        Async *async = async_new(warp, op, complete_copy);
        if (!async)
            return;
        async->in_order = true;
        async->thread = (uint32_t)warp->number * LANES + lane;
        async->d = (uint32_t)lane_value(warp, &op->operands[0], (int)lane) + (uint32_t)op->operands[0].add;
        async->a = lane_value(warp, &op->operands[1], (int)lane);
        async->kind = op->mode;
        async->cta_group = op->count;
        async_start(warp, async);
    }
}

// ---------------------------------------------------------------- decode

static bool decode_move(Decoder *d, Op *op, bool load) {
    static const char *const SHAPES[] = {[SIM_32X32B] = "32x32b",
                                         [SIM_16X64B] = "16x64b",
                                         [SIM_16X128B] = "16x128b",
                                         [SIM_16X256B] = "16x256b",
                                         [SIM_16X32BX2] = "16x32bx2"};
    op->mode = -1;
    for (int i = 0; i < 5; i++)
        if (has(d, SHAPES[i]))
            op->mode = i;
    int n = 0;
    for (int i = 1; i < d->in->part_count; i++)
        if (d->in->parts[i][0] == 'x')
            n = atoi(d->in->parts[i] + 1);
    op->mode2 = has(d, "pack::16b") || has(d, "unpack::16b");
    if (op->mode < 0 || n < 1 || n > 128 || (n & (n - 1)))
        return false;
    const PtxOperand *list = &d->in->operands[load ? 0 : d->in->operand_count - 1];
    op->list_count = list->kind == PTX_VECTOR ? list->count : 1;
    if (op->list_count != sim_tmem_registers((SimTmemShape)op->mode, n))
        return fail(d, "%s needs %d registers, not %d", d->in->text,
                    sim_tmem_registers((SimTmemShape)op->mode, n), op->list_count);
    op->first_list = load ? 0 : operand_start(d, d->in->operand_count - 1);
    if (op->mode == SIM_16X32BX2)
        op->immediate = d->in->operands[load ? 2 : 1].integer;
    op->run = load ? run_tmem_load : run_tmem_store;
    op->flags = OP_COLLECTIVE | (load ? OP_ASYNC_REGISTERS : 0);
    return take_operands(d, op, PTX_B32);
}

static bool decode_tcgen05(Decoder *d, Op *op) {
    const char *what = part(d, 1);
    if (!strcmp(what, "ld") || !strcmp(what, "st"))
        return decode_move(d, op, what[0] == 'l');
    if (!strcmp(what, "mma"))
        return decode_tensor_product(d, op);
    if (!strcmp(what, "commit")) {
        op->mode = has(d, "multicast::cluster");
        op->run = run_commit;
        return take_operands(d, op, PTX_B64);
    }
    if (!strcmp(what, "cp")) {
        op->mode = -1;
        for (size_t i = 0; i < sizeof COPY_FORMS / sizeof COPY_FORMS[0]; i++)
            if (has(d, COPY_FORMS[i].name))
                op->mode = (int)i;
        if (op->mode < 0 || d->in->part_count > 5) // decompression has more parts
            return fail(d, "unsupported form %s", d->in->text);
        op->count = has(d, "cta_group::2") ? 2 : 1;
        op->run = run_copy;
        return take_operands(d, op, PTX_B64);
    }
    static const struct {
        const char *name;
        OpRun run;
        int mode;
    } SIMPLE[] = {
        {"alloc", run_alloc, 0},
        {"dealloc", run_dealloc, 0},
        {"relinquish_alloc_permit", run_relinquish, 0},
        {"wait::ld", run_wait, 0},
        {"wait::st", run_wait, 1},
        {"fence::before_thread_sync", run_fence, 0},
        {"fence::after_thread_sync", run_fence, 1},
    };
    for (size_t i = 0; i < sizeof SIMPLE / sizeof SIMPLE[0]; i++)
        if (!strcmp(what, SIMPLE[i].name)) {
            op->run = SIMPLE[i].run;
            op->mode = SIMPLE[i].mode;
            return take_operands(d, op, PTX_B32);
        }
    return false;
}

const OpEntry TENSOR_OPS[] = {{"tcgen05", decode_tcgen05}, {NULL, NULL}};
