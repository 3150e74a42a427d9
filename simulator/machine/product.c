// product.c: tcgen05.mma (PTX ISA: "tcgen05.mma", "Matrix descriptors", "Data path layout organization",
// "Block scaling"). The result lies in blocks of consecutive lanes; each block is one product of rows of A
// and rows of B.
#include "simulator/engines/instr_desc.h"
#include "simulator/engines/mma.h"
#include "simulator/engines/numbers.h"
#include "simulator/machine/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_ROWS = 128,
    MOST_N = 256,
    MOST_K = 32,
    MOST_BLOCKS = 4,
    SCALED_COLUMNS = 32 /* rows that one column of scales serves */
};

typedef struct {
    Cta *cta;
    int lane, rows; // of D
    int first_row;  // of A, in this CTA
    int first_n, n; // of B
} Block;

typedef struct {
    Async *async;
    Cta *issuer;
    SimInstrDesc desc;
    int k, element_bytes, parts;
    float *a, *b; // of one block, [rows][k]; all of B, [n][k]
} Product;

// ---------------------------------------------------------------- operands

static bool read_shared(const Product *product, Cta *cta, uint64_t bits, bool mn_major, SimElem elem,
                        int rows, float *out) {
    SimMatrixDesc desc;
    char message[200];
    uint32_t pieces[MOST_N * MOST_K / 16 * 2];
    Async *async = product->async;
    if (!sim_matrix_desc_decode(bits, true, &desc, message)) {
        fault_async(product->issuer, async, SIM_FAULT_DESCRIPTOR, "matrix descriptor 0x%016llx: %s",
                    (unsigned long long)bits, message);
        return false;
    }
    int count = sim_matrix_pieces(&desc, !mn_major, product->element_bytes, rows, product->k, pieces);
    for (int i = 0; i < count; i++) {
        uint32_t offset = pieces[i] - SHARED_BASE;
        if (pieces[i] < SHARED_BASE || offset + 16 > cta->shared_bytes) {
            fault_async(product->issuer, async, SIM_FAULT_BOUNDS,
                        "the operand reaches shared offset %u of %u bytes", offset, cta->shared_bytes);
            return false;
        }
        if (!race_shared_read(cta, NULL, async->op, async, offset, 16))
            return false;
    }
    // Descriptors hold window addresses; shared memory's bytes begin at SHARED_BASE.
    return sim_matrix_read(&desc, !mn_major, elem, rows, product->k, cta->shared - SHARED_BASE,
                           cta->shared_bytes + SHARED_BASE, out);
}

static float element_of(SimElem elem, uint32_t word) {
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
        return value; // tf32: the low 13 bits are not looked at
    }
}

// Columns of tensor memory that the product reads or writes, in the lane quarters of the block.
static bool touch(const Product *product, const Block *block, int first_lane, int first_column, int columns,
                  bool read, bool write, const char *what) {
    for (int column = first_column; column < first_column + columns; column++) {
        if (!column_is_allocated(block->cta, column)) {
            fault_async(product->issuer, product->async, SIM_FAULT_TENSOR_MEMORY,
                        "%s reaches column %d, which is not allocated", what, column);
            return false;
        }
        for (int quarter = first_lane / 32; quarter <= (first_lane + block->rows - 1) / 32; quarter++)
            if ((read &&
                 !race_tensor_read(block->cta, NULL, product->async->op, product->async, quarter, column)) ||
                (write &&
                 !race_tensor_write(block->cta, NULL, product->async->op, product->async, quarter, column)))
                return false;
    }
    return true;
}

static bool lanes_fit(const Product *product, const Block *block, int first_lane) {
    if (first_lane >= 0 && first_lane + block->rows <= TMEM_LANES)
        return true;
    fault_async(product->issuer, product->async, SIM_FAULT_TENSOR_MEMORY,
                "%d lanes from lane %d on are more than there are", block->rows, first_lane);
    return false;
}

// A in tensor memory: the rows of a block lie in the block's own lanes, elements packed along the columns.
static bool read_tensor(const Product *product, const Block *block) {
    int per_column = 4 / product->element_bytes, columns = product->k / per_column,
        bits = 8 * product->element_bytes;
    int lane = block->lane + (int)(product->async->a_tmem >> 16),
        first = (int)(product->async->a_tmem & 0xFFFF);
    if (!lanes_fit(product, block, lane) ||
        !touch(product, block, lane, first, columns, true, false, "operand A"))
        return false;
    for (int row = 0; row < block->rows; row++)
        for (int i = 0; i < product->k; i++)
            product->a[row * product->k + i] =
                element_of(product->desc.a, *cell_of(block->cta, lane + row, first + i / per_column) >>
                                                (bits * (i % per_column)));
    return true;
}

static bool read_b(const Product *product) {
    int rows = product->desc.n / product->parts;
    for (int part = 0; part < product->parts; part++) {
        Cta *cta = tensor_partner(product->issuer, product->async, part);
        if (!cta || !read_shared(product, cta, product->async->b, product->desc.b_mn_major, product->desc.b,
                                 rows, product->b + part * rows * product->k))
            return false;
    }
    return true;
}

// ---------------------------------------------------------------- scales

typedef struct {
    float a[MOST_ROWS];
    float b[4][MOST_N]; // each lane quarter has its own copy
} Scales;

// A row's scale lies in its own lane, in the column of its 32 rows; a column's scale in lane n % 32 of every
// quarter.
static bool read_scales(const Product *product, const Block *block, Scales *scales) {
    int first_a = (int)(product->async->scale_a & 0xFFFF), first_b = (int)(product->async->scale_b & 0xFFFF);
    int columns_a = (block->first_row + block->rows + SCALED_COLUMNS - 1) / SCALED_COLUMNS,
        columns_b = (block->n + SCALED_COLUMNS - 1) / SCALED_COLUMNS;
    if (!touch(product, block, block->lane, first_a, columns_a, true, false, "the scales of A") ||
        !touch(product, block, block->lane, first_b, columns_b, true, false, "the scales of B"))
        return false;
    for (int row = 0; row < block->rows; row++) {
        int m = block->first_row + row, lane = (block->lane + row) / 32 * 32 + m % 32;
        uint32_t word = *cell_of(block->cta, lane, first_a + m / SCALED_COLUMNS);
        scales->a[row] = sim_ue8m0_to_f32((uint8_t)(word >> (8 * product->desc.sfa_id)));
    }
    for (int quarter = block->lane / 32; quarter <= (block->lane + block->rows - 1) / 32; quarter++)
        for (int n = 0; n < block->n; n++) {
            uint32_t word = *cell_of(block->cta, 32 * quarter + n % 32, first_b + n / SCALED_COLUMNS);
            scales->b[quarter][n] = sim_ue8m0_to_f32((uint8_t)(word >> (8 * product->desc.sfb_id)));
        }
    return true;
}

// ---------------------------------------------------------------- results

static float load_result(const Product *product, const uint32_t *cell) {
    float value;
    if (product->desc.d_f16)
        return sim_f16_to_f32((uint16_t)*cell);
    memcpy(&value, cell, 4);
    return value;
}

static void store_result(const Product *product, uint32_t *cell, float value) {
    if (product->desc.d_f16)
        *cell = sim_f32_to_f16(value, SIM_RN, false, false); // not packed: one element a column
    else
        memcpy(cell, &value, 4);
}

static bool is_disabled(const Product *product, const Block *block, int lane) {
    const uint32_t *masks = product->async->disabled + (block->cta->rank & (product->parts - 1)) * 4;
    return masks[lane / 32] >> (lane % 32) & 1;
}

// Anything but a plain sum in f32: by way of the bare product.
static bool finish(const Product *product, const Block *block, int lane, int first_column) {
    const Async *async = product->async;
    bool scaled = async->kind == SIM_KIND_MXF8F6F4;
    Scales *scales = scaled ? malloc(sizeof *scales) : NULL;
    float *bare = malloc(sizeof *bare * (size_t)(block->rows * block->n));
    bool good = bare && (!scaled || (scales && read_scales(product, block, scales)));
    if (good)
        sim_mma_f32(bare, block->n, product->a, product->b + block->first_n * product->k, block->rows,
                    block->n, product->k, false);
    for (int row = 0; good && row < block->rows; row++) {
        if (is_disabled(product, block, lane + row))
            continue;
        for (int n = 0; n < block->n; n++) {
            uint32_t *cell = cell_of(block->cta, lane + row, first_column + n);
            double sum = bare[row * block->n + n];
            if (scaled)
                sum *= (double)scales->a[row] * (double)scales->b[(lane + row) / 32][n];
            if (async->accumulate)
                sum += ldexp(load_result(product, cell), -async->input_shift);
            store_result(product, cell, (float)sum);
        }
    }
    free(scales);
    free(bare);
    return good;
}

static bool run_block(const Product *product, const Block *block) {
    const Async *async = product->async;
    int lane = block->lane + (int)(async->d >> 16), first_column = (int)(async->d & 0xFFFF);
    if (!lanes_fit(product, block, lane) ||
        !touch(product, block, lane, first_column, block->n, async->accumulate, true, "the result"))
        return false;
    for (int i = 0; i < block->rows * product->k && product->desc.negate_a != product->desc.negate_b; i++)
        product->a[i] = -product->a[i];
    bool plain = async->kind != SIM_KIND_MXF8F6F4 && !product->desc.d_f16 && !async->input_shift &&
                 !async->has_disabled;
    if (!plain)
        return finish(product, block, lane, first_column);
    sim_mma_f32((float *)cell_of(block->cta, lane, first_column), TMEM_COLUMNS, product->a,
                product->b + block->first_n * product->k, block->rows, block->n, product->k,
                async->accumulate);
    return true;
}

// The blocks of one CTA (PTX ISA, "Data path layout organization": layouts D, F, A and B).
static int blocks_of(const Product *product, Cta *cta, Block *blocks) {
    int m = product->desc.m, n = product->desc.n;
    if (product->parts == 1 && m == 64) { // 16 rows in each quarter
        for (int i = 0; i < 4; i++)
            blocks[i] = (Block){cta, 32 * i, 16, 16 * i, 0, n};
        return 4;
    }
    if (product->parts == 2 && m == 128) { // 64 rows a CTA, the second half of the columns in the upper lanes
        blocks[0] = (Block){cta, 0, 64, 0, 0, n / 2};
        blocks[1] = (Block){cta, 64, 64, 0, n / 2, n / 2};
        return 2;
    }
    blocks[0] = (Block){cta, 0, 128, 0, 0, n};
    return 1;
}

static bool run_part(Product *product, Cta *cta) {
    Block blocks[MOST_BLOCKS];
    int count = blocks_of(product, cta, blocks), rows = product->desc.m / product->parts;
    float *all = product->async->a_in_tmem ? NULL : malloc(sizeof *all * (size_t)(rows * product->k));
    bool good = product->async->a_in_tmem ||
                (all && read_shared(product, cta, product->async->a, product->desc.a_mn_major,
                                    product->desc.a, rows, all));
    for (int i = 0; good && i < count; i++) {
        if (all)
            memcpy(product->a, all + blocks[i].first_row * product->k,
                   sizeof *all * (size_t)(blocks[i].rows * product->k));
        good = (all || read_tensor(product, &blocks[i])) && run_block(product, &blocks[i]);
    }
    free(all);
    return good;
}

static void complete_product(Cta *cta, Async *async) {
    Product product = {
        .async = async, .issuer = cta, .parts = async->cta_group, .k = sim_kind_k((SimKind)async->kind)};
    char message[200];
    if (!sim_instr_desc_decode(async->descriptor, (SimKind)async->kind, async->cta_group, &product.desc,
                               message)) {
        fault_async(cta, async, SIM_FAULT_DESCRIPTOR, "instruction descriptor 0x%08x: %s", async->descriptor,
                    message);
        return;
    }
    product.element_bytes = 32 / product.k; // of K, an instruction takes 32 bytes
    product.a = malloc(sizeof(float) * MOST_ROWS * MOST_K);
    product.b = malloc(sizeof(float) * MOST_N * MOST_K);
    bool good = product.a && product.b;
    if (!good)
        fault_async(cta, async, SIM_FAULT_UNSUPPORTED, "out of memory");
    good = good && read_b(&product);
    for (int part = 0; good && part < product.parts; part++) {
        Cta *partner = tensor_partner(cta, async, part);
        good = partner && run_part(&product, partner);
    }
    free(product.a);
    free(product.b);
}

// ---------------------------------------------------------------- issue

// Operands: d, a, b, descriptor, then the scales of A and B or the masks of disabled lanes (list_count),
// then, at first_list, whether to accumulate. immediate: shift of the input.
static void run_product(Warp *warp, const Op *op, uint32_t mask) {
    if (!tensor_on_sm100(warp, op))
        return;
    FOR_LANES(lane, mask) {
        Async *async = async_new(warp, op, complete_product);
        if (!async)
            return;
        async->thread = (uint32_t)warp->number * LANES + lane;
        async->in_order = true;
        async->d = (uint32_t)lane_value(warp, &op->operands[0], (int)lane) + (uint32_t)op->operands[0].add;
        async->a_in_tmem = op->mode2;
        async->a = lane_value(warp, &op->operands[1], (int)lane);
        async->a_tmem = (uint32_t)async->a + (uint32_t)op->operands[1].add;
        async->b = lane_value(warp, &op->operands[2], (int)lane);
        async->descriptor = (uint32_t)lane_value(warp, &op->operands[3], (int)lane);
        async->accumulate = lane_value(warp, &op->operands[op->first_list], (int)lane) & 1;
        async->kind = op->mode;
        async->cta_group = op->count;
        async->input_shift = (int)op->immediate;
        if (op->mode == SIM_KIND_MXF8F6F4) {
            async->scale_a =
                (uint32_t)lane_value(warp, &op->operands[4], (int)lane) + (uint32_t)op->operands[4].add;
            async->scale_b =
                (uint32_t)lane_value(warp, &op->operands[5], (int)lane) + (uint32_t)op->operands[5].add;
        }
        for (int i = 0; i < op->list_count; i++) {
            async->disabled[i] = (uint32_t)lane_value(warp, &op->operands[4 + i], (int)lane);
            async->has_disabled |= async->disabled[i] != 0;
        }
        async_start(warp, async);
    }
}

// ---------------------------------------------------------------- decode

static bool known_parts(const Decoder *d) {
    static const char *const ALLOWED[] = {"mma",
                                          "cta_group::1",
                                          "cta_group::2",
                                          "kind::f16",
                                          "kind::tf32",
                                          "kind::f8f6f4",
                                          "kind::mxf8f6f4",
                                          "block_scale",
                                          "scale_vec::1X",
                                          "block32",
                                          "collector::a::fill",
                                          "collector::a::use",
                                          "collector::a::lastuse",
                                          "collector::a::discard",
                                          NULL};
    return only(d, ALLOWED);
}

bool decode_tensor_product(Decoder *d, Op *op) {
    static const struct {
        const char *name;
        SimKind kind;
    } KINDS[] = {{"kind::f16", SIM_KIND_F16},
                 {"kind::tf32", SIM_KIND_TF32},
                 {"kind::f8f6f4", SIM_KIND_F8F6F4},
                 {"kind::mxf8f6f4", SIM_KIND_MXF8F6F4}};
    const PtxOperand *in = d->in->operands;
    int count = d->in->operand_count;
    op->mode = -1;
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (has(d, KINDS[i].name))
            op->mode = (int)KINDS[i].kind;
    bool scaled = op->mode == SIM_KIND_MXF8F6F4;
    if (op->mode < 0 || !known_parts(d) || scaled != has(d, "block_scale"))
        return fail(d, "unsupported form %s", d->in->text);
    op->count = has(d, "cta_group::2") ? 2 : 1;
    bool masked = !scaled && count > 4 && in[4].kind == PTX_VECTOR;
    op->list_count = masked ? in[4].count : 0;
    int predicate = scaled ? 6 : masked ? 5 : 4;
    bool shifted =
        !scaled && count == predicate + 2 && in[predicate + 1].kind == PTX_INT && op->mode != SIM_KIND_F8F6F4;
    if (count != predicate + 1 + shifted || (masked && op->list_count != 4 * op->count))
        return fail(d, "%s has operands that do not fit it", d->in->text);
    op->immediate = shifted ? in[predicate + 1].integer : 0;
    if (op->immediate < 0 || op->immediate > 15)
        return fail(d, "the shift of the input must be 0 to 15");
    op->mode2 = in[1].kind == PTX_ADDRESS;
    op->first_list = operand_start(d, predicate);
    op->run = run_product;
    return take_operands(d, op, PTX_B64);
}
