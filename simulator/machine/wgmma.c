// wgmma.c: Hopper's warpgroup products (PTX ISA: "Asynchronous Warpgroup Level Matrix Multiply-Accumulate").
// A warp makes the 16 rows of the result that lie in its own registers; a warp's products complete in order,
// at random moments before the wait_group that covers them, and read shared memory and registers only then.
#include "simulator/engines/matrix_desc.h"
#include "simulator/engines/mma.h"
#include "simulator/engines/numbers.h"
#include "simulator/engines/wgmma_layout.h"
#include "simulator/machine/decode.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 16, MOST_N = 256, MOST_K = 32, NEGATE_A = 1, NEGATE_B = 2, MN_MAJOR_A = 4, MN_MAJOR_B = 8 };

// Of an Op: count N, list_count registers of D, mode and mode2 the types of A and B, type that of D, space
// whether A lies in registers, immediate the flags above. Operands: D, A (descriptor, or four registers),
// descriptor of B, scale-d.

static int element_bytes(SimElem elem) {
    return elem == SIM_ELEM_TF32 ? 4 : elem == SIM_ELEM_E4M3 || elem == SIM_ELEM_E5M2 ? 1 : 2;
}
static int k_of(SimElem elem) {
    return 32 / element_bytes(elem);
}
static const Operand *operand_a(const Op *op) {
    return &op->operands[op->list_count];
}
static const Operand *operand_b(const Op *op) {
    return operand_a(op) + (op->space ? 4 : 1);
}

static bool whole_warpgroup(Warp *warp, const Op *op, uint32_t mask) {
    if (mask != ALL_LANES)
        fault(warp, op, SIM_FAULT_CONVERGENCE, "an aligned instruction is executed by lanes 0x%08x only",
              mask);
    else if (warp->number / 4 * 4 + 4 > warp->cta->warp_count)
        fault(warp, op, SIM_FAULT_CONVERGENCE, "warp %d has no whole warpgroup around it", warp->number);
    return mask == ALL_LANES && !faulted(warp->cta->cluster);
}

// ---------------------------------------------------------------- the product, when it completes

static float decode_element(SimElem elem, uint32_t word) {
    float value;
    switch (elem) {
    case SIM_ELEM_BF16:
        return sim_bf16_to_f32((uint16_t)word);
    case SIM_ELEM_F16:
        return sim_f16_to_f32((uint16_t)word);
    case SIM_ELEM_E4M3:
        return sim_e4m3_to_f32((uint8_t)word);
    case SIM_ELEM_E5M2:
        return sim_e5m2_to_f32((uint8_t)word);
    default:
        word &= 0xFFFFE000u;
        memcpy(&value, &word, 4);
        return value;
    }
}

static void read_registers(Warp *warp, const Op *op, float *a) {
    SimElem elem = (SimElem)op->mode;
    int bytes = element_bytes(elem), k_count = k_of(elem);
    for (int reg = 0; reg < 4; reg++) {
        const uint32_t *words = reg32(warp, operand_a(op) + reg);
        for (int lane = 0; lane < LANES; lane++)
            for (int item = 0; item < 4 / bytes; item++) {
                int row, k;
                sim_wgmma_a_place(lane, reg, item, bytes, &row, &k);
                a[row * k_count + k] = decode_element(elem, words[lane] >> (8 * bytes * item));
            }
    }
}

// The rows of A that begin at `first_row`, as a matrix of its own: the canonical layouts repeat every 8 rows
// or every swizzle width, so that a multiple of 16 rows is one addition to the start.
static void skip_rows(SimMatrixDesc *desc, bool k_major, int bytes, uint32_t first_row) {
    uint32_t along = first_row * (uint32_t)bytes, width = (uint32_t)desc->swizzle_bytes;
    if (k_major)
        desc->start += first_row / 8 * desc->stride;
    else if (!width)
        desc->start += along / 16 * desc->stride;
    else
        desc->start += along / width * desc->leading + along % width;
}

static bool read_shared(Cta *cta, Async *async, uint64_t bits, bool mn_major, SimElem elem, int rows,
                        uint32_t first_row, float *out) {
    SimMatrixDesc desc;
    char message[200];
    int bytes = element_bytes(elem), k_count = k_of(elem);
    uint32_t pieces[MOST_N * 2];
    if (!sim_matrix_desc_decode(bits, false, &desc, message)) {
        fault_async(cta, async, SIM_FAULT_DESCRIPTOR, "matrix descriptor 0x%016llx: %s",
                    (unsigned long long)bits, message);
        return false;
    }
    skip_rows(&desc, !mn_major, bytes, first_row);
    int count = sim_matrix_pieces(&desc, !mn_major, bytes, rows, k_count, pieces);
    for (int i = 0; i < count; i++) {
        uint32_t offset = pieces[i] - SHARED_BASE;
        if (pieces[i] < SHARED_BASE || offset + 16 > cta->shared_bytes) {
            fault_async(cta, async, SIM_FAULT_BOUNDS, "the operand reaches shared offset %u of %u bytes",
                        offset, cta->shared_bytes);
            return false;
        }
        if (!race_shared_read(cta, NULL, async->op, async, offset, 16))
            return false;
    }
    return sim_matrix_read(&desc, !mn_major, elem, rows, k_count, cta->shared - SHARED_BASE,
                           cta->shared_bytes + SHARED_BASE, out);
}

// Between the result's registers and a plain matrix. With an f16 result a register holds two columns.
static void move_result(Warp *warp, const Op *op, float *d, bool into_registers) {
    bool half = op->type == PTX_F16;
    for (int reg = 0; reg < op->list_count; reg++) {
        uint32_t *words = reg32(warp, &op->operands[reg]);
        for (int lane = 0; lane < LANES; lane++) {
            int row, column;
            sim_wgmma_result_place(lane, half ? 2 * reg : reg, &row, &column);
            float *place = &d[row * op->count + column];
            if (!half && into_registers) {
                memcpy(&words[lane], place, 4);
            } else if (!half) {
                memcpy(place, &words[lane], 4);
            } else if (into_registers) {
                words[lane] = sim_f32_to_f16(place[0], SIM_RN, false, false) |
                              (uint32_t)sim_f32_to_f16(place[1], SIM_RN, false, false) << 16;
            } else {
                place[0] = sim_f16_to_f32((uint16_t)words[lane]);
                place[1] = sim_f16_to_f32((uint16_t)(words[lane] >> 16));
            }
        }
    }
}

static void complete_product(Cta *cta, Async *async) {
    Warp *warp = &cta->warps[async->warp];
    const Op *op = async->op;
    SimElem elem_a = (SimElem)op->mode, elem_b = (SimElem)op->mode2;
    int k_count = k_of(elem_a);
    float a[ROWS * MOST_K], b[MOST_N * MOST_K], d[ROWS * MOST_N];
    if (op->space)
        read_registers(warp, op, a);
    else if (!read_shared(cta, async, async->a, op->immediate & MN_MAJOR_A, elem_a, ROWS,
                          (uint32_t)(warp->number % 4) * ROWS, a))
        return;
    if (!read_shared(cta, async, async->b, op->immediate & MN_MAJOR_B, elem_b, op->count, 0, b))
        return;
    bool negate = ((op->immediate & NEGATE_A) != 0) != ((op->immediate & NEGATE_B) != 0);
    for (int i = 0; negate && i < ROWS * k_count; i++)
        a[i] = -a[i];
    if (async->accumulate)
        move_result(warp, op, d, false);
    sim_mma_f32(d, op->count, a, b, ROWS, op->count, k_count, async->accumulate);
    move_result(warp, op, d, true);
}

// ---------------------------------------------------------------- issue

static bool uniform(Warp *warp, const Op *op, const Operand *operand) {
    uint64_t first = lane_value(warp, operand, 0);
    for (int lane = 1; lane < LANES; lane++)
        if (lane_value(warp, operand, lane) != first) {
            fault(warp, op, SIM_FAULT_DESCRIPTOR,
                  "a descriptor or predicate of wgmma differs between the lanes of the warp");
            return false;
        }
    return true;
}

// An accumulator may be that of an earlier product under way, of the same shape; any other use of its
// registers may not.
static bool registers_are_free(Warp *warp, const Op *op) {
    uint8_t first = warp->busy[op->operands[0].at / 8];
    for (int i = 0; i < op->list_count; i++) {
        uint8_t busy = warp->busy[op->operands[i].at / 8];
        if (busy == BUSY_OPERAND || busy != first) {
            fault(warp, op, SIM_FAULT_REGISTERS,
                  "the accumulator overlaps registers of another product under way");
            return false;
        }
    }
    for (int i = 0; op->space && i < 4; i++)
        if (warp->busy[operand_a(op)[i].at / 8] == BUSY_RESULT) {
            fault(warp, op, SIM_FAULT_REGISTERS, "operand A lies in an accumulator under way");
            return false;
        }
    return true;
}

static void mark_registers(Warp *warp, const Op *op) {
    for (int i = 0; i < op->list_count; i++)
        warp->busy[op->operands[i].at / 8] = BUSY_RESULT;
    for (int i = 0; op->space && i < 4; i++)
        warp->busy[operand_a(op)[i].at / 8] = BUSY_OPERAND;
    warp->busy_products++;
}

static void run_product(Warp *warp, const Op *op, uint32_t mask) {
    const Operand *b = operand_b(op);
    if (!whole_warpgroup(warp, op, mask) || !uniform(warp, op, b) || !uniform(warp, op, b + 1) ||
        (!op->space && !uniform(warp, op, operand_a(op))) || !registers_are_free(warp, op))
        return;
    if (!warp->product_fenced) {
        fault(warp, op, SIM_FAULT_REGISTERS, "wgmma.fence is missing before the warp's first product");
        return;
    }
    Async *async = async_new(warp, op, complete_product);
    if (!async)
        return;
    async->channel =
        agent_base(warp->cta) + AGENT_COPY + LOAD_CHANNELS / 2 + warp->number % (LOAD_CHANNELS / 2);
    async->product_group = warp->product_group;
    async->a = op->space ? 0 : lane_value(warp, operand_a(op), 0);
    async->b = lane_value(warp, b, 0);
    async->accumulate = lane_value(warp, b + 1, 0) & 1;
    mark_registers(warp, op);
    async_start(warp, async);
    if (async->due <= warp->product_due)
        async->due = warp->product_due + 1;
    warp->product_due = async->due;
}

// ---------------------------------------------------------------- groups

static void run_fence(Warp *warp, const Op *op, uint32_t mask) {
    if (whole_warpgroup(warp, op, mask))
        warp->product_fenced = true;
}

static void run_commit(Warp *warp, const Op *op, uint32_t mask) {
    if (whole_warpgroup(warp, op, mask))
        warp->product_group++;
}

bool products_are_over(const Warp *warp, int newest_allowed) {
    for (const Async *async = warp->cta->pending; async; async = async->next)
        if (async->product_group >= 0 && async->warp == warp->number &&
            async->product_group < warp->product_group - newest_allowed)
            return false;
    return true;
}

static void run_wait(Warp *warp, const Op *op, uint32_t mask) {
    if (!whole_warpgroup(warp, op, mask))
        return;
    if (!products_are_over(warp, (int)op->immediate)) {
        warp_block(warp, WAIT_PRODUCTS, 0, 0);
        Group *group = &warp->groups[warp->current];
        group->pending_limit = (int)op->immediate;
        group->pc--; // again once they are over
        return;
    }
    // What the products read happened before; the registers of those that are left stay busy.
    int channel = AGENT_COPY + LOAD_CHANNELS / 2 + warp->number % (LOAD_CHANNELS / 2);
    uint32_t until = warp->cta->agent_time[channel];
    size_t places = warp->cta->cluster->launch->program->register_bytes / 8;
    for (size_t i = 0; warp->busy_products && i < places; i++)
        warp->busy[i] = warp->busy[i] >= BUSY_RESULT ? BUSY_NOT : warp->busy[i];
    warp->busy_products = 0;
    for (const Async *async = warp->cta->pending; async; async = async->next)
        if (async->product_group >= 0 && async->warp == warp->number) {
            mark_registers(warp, async->op);
            until = async->time - 1 < until ? async->time - 1 : until;
        }
    uint32_t *seen = &warp->clocks.seen.at[agent_base(warp->cta) + channel];
    *seen = *seen < until ? until : *seen;
}

// ---------------------------------------------------------------- decode

static bool decode_types(const Decoder *d, Op *op) {
    static const struct {
        const char *name;
        SimElem elem;
    } NAMES[] = {{"f16", SIM_ELEM_F16},
                 {"bf16", SIM_ELEM_BF16},
                 {"tf32", SIM_ELEM_TF32},
                 {"e4m3", SIM_ELEM_E4M3},
                 {"e5m2", SIM_ELEM_E5M2}};
    // wgmma.mma_async.sync.aligned.SHAPE.D.A.B
    const char *result = part(d, 5);
    op->type = !strcmp(result, "f32") ? PTX_F32 : !strcmp(result, "f16") ? PTX_F16 : TYPE_NONE;
    op->mode = op->mode2 = -1;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (!strcmp(part(d, 6), NAMES[i].name))
            op->mode = (int)NAMES[i].elem;
        if (!strcmp(part(d, 7), NAMES[i].name))
            op->mode2 = (int)NAMES[i].elem;
    }
    if (op->type == TYPE_NONE || op->mode < 0 || op->mode2 < 0 || d->in->part_count != 8)
        return false;
    int bytes = element_bytes((SimElem)op->mode);
    bool same = op->mode == op->mode2 || (bytes == 1 && element_bytes((SimElem)op->mode2) == 1);
    return same && (op->type == PTX_F32 || op->mode == SIM_ELEM_F16 || bytes == 1);
}

static bool decode_product(Decoder *d, Op *op) {
    int m = 0, n = 0, k = 0;
    for (const char *at = part(d, 4), *last = NULL; *at; at++) {
        last = *at == 'm' || *at == 'n' || *at == 'k' ? at : last;
        int *into = !last ? NULL : *last == 'm' ? &m : *last == 'n' ? &n : &k;
        if (into && *at >= '0' && *at <= '9' && *into < 1000)
            *into = 10 * *into + (*at - '0');
    }
    if (!decode_types(d, op) || m != 64 || n < 8 || n > 256 || n % 8 || k != k_of((SimElem)op->mode))
        return fail(d, "unsupported form %s", d->in->text);
    const PtxOperand *in = d->in->operands;
    int count = d->in->operand_count;
    if (count < 6 || in[0].kind != PTX_VECTOR)
        return fail(d, "%s: too few operands", d->in->text);
    op->count = n;
    op->list_count = in[0].count;
    op->space = in[1].kind == PTX_VECTOR;
    int wanted = op->type == PTX_F32 ? n / 2 : n / 4, transposes = element_bytes((SimElem)op->mode) != 2 ? 0
                                                                   : op->space                           ? 1
                                                                                                         : 2;
    if (op->list_count != wanted || (op->space && in[1].count != 4) || count != 6 + transposes)
        return fail(d, "%s needs %d registers for D, 4 for A, and %d operands", d->in->text, wanted,
                    6 + transposes);
    for (int i = 4; i < count; i++)
        if (in[i].kind != PTX_INT)
            return fail(d, "%s: operand %d must be a number", d->in->text, i + 1);
    op->immediate = (in[4].integer == -1 ? NEGATE_A : 0) | (in[5].integer == -1 ? NEGATE_B : 0);
    if (transposes)
        op->immediate |= (transposes == 2 && in[6].integer ? MN_MAJOR_A : 0) |
                         (in[5 + transposes].integer ? MN_MAJOR_B : 0);
    op->run = run_product;
    op->flags = OP_ASYNC_REGISTERS;
    if (!take_operands(d, op, PTX_B64))
        return false;
    for (int i = 0; i < op->list_count + (op->space ? 4 : 0); i++)
        if (op->operands[i].bytes != 4 || op->operands[i].at < 0)
            return fail(d, "%s: D and A need registers of 32 bits", d->in->text);
    return true;
}

static bool decode_wgmma(Decoder *d, Op *op) {
    const char *what = part(d, 1);
    if (d->module->sim->is_sm100)
        return fail(d, "this chip has no wgmma");
    if (!strcmp(what, "mma_async"))
        return decode_product(d, op);
    op->run = !strcmp(what, "fence")          ? run_fence
              : !strcmp(what, "commit_group") ? run_commit
              : !strcmp(what, "wait_group")   ? run_wait
                                              : NULL;
    if (op->run == run_wait && d->in->operand_count == 1 && d->in->operands[0].kind == PTX_INT)
        op->immediate = d->in->operands[0].integer;
    else if (!op->run || d->in->operand_count)
        return false;
    return true;
}

const OpEntry WGMMA_OPS[] = {{"wgmma", decode_wgmma}, {NULL, NULL}};
