// matrix.c: a warp's matrix instructions (PTX ISA: "mma", "ldmatrix", "stmatrix"), all of them synchronous.
#include "simulator/engines/mma.h"
#include "simulator/engines/numbers.h"
#include "simulator/engines/wgmma_layout.h"
#include "simulator/machine/decode.h"

#include <string.h>

static bool whole_warp(Warp *warp, const Op *op, uint32_t mask) {
    if (mask == ALL_LANES)
        return true;
    fault(warp, op, SIM_FAULT_CONVERGENCE, "an aligned instruction is executed by lanes 0x%08x only", mask);
    return false;
}

// ---------------------------------------------------------------- ldmatrix, stmatrix

// Row `row` of matrix i: 16 bytes at the address that lane 8 i + row gives.
static uint8_t *matrix_row(Warp *warp, const Op *op, int lane, bool write) {
    const Operand *base = &op->operands[op->first_list ? 0 : op->list_count];
    uint32_t offset, address = (uint32_t)lane_value(warp, base, lane) + (uint32_t)base->add;
    Cta *cta = machine_shared(warp, op, address, 16, &offset);
    if (!cta)
        return NULL;
    bool good = write ? race_shared_write(cta, warp, op, NULL, offset, 16)
                      : race_shared_read(cta, warp, op, NULL, offset, 16);
    return good ? cta->shared + offset : NULL;
}

// op->mode: transposed; operands: the registers (first_list, list_count) and the address.
static void run_ldmatrix(Warp *warp, const Op *op, uint32_t mask) {
    if (!whole_warp(warp, op, mask))
        return;
    for (int i = 0; i < op->list_count; i++) {
        uint16_t matrix[8][8];
        for (int row = 0; row < 8; row++) {
            const uint8_t *from = matrix_row(warp, op, 8 * i + row, false);
            if (!from)
                return;
            memcpy(matrix[row], from, 16);
        }
        for (int lane = 0; lane < LANES; lane++) {
            uint32_t word = 0;
            for (int item = 0; item < 2; item++) {
                int row, column;
                sim_ldmatrix_place(lane, item, op->mode, &row, &column);
                word |= (uint32_t)matrix[row][column] << (16 * item);
            }
            lane_set(warp, &op->operands[op->first_list + i], lane, word);
        }
    }
}

static void run_stmatrix(Warp *warp, const Op *op, uint32_t mask) {
    if (!whole_warp(warp, op, mask))
        return;
    for (int i = 0; i < op->list_count; i++) {
        uint16_t matrix[8][8];
        for (int lane = 0; lane < LANES; lane++) {
            uint32_t word = (uint32_t)lane_value(warp, &op->operands[op->first_list + i], lane);
            for (int item = 0; item < 2; item++) {
                int row, column;
                sim_ldmatrix_place(lane, item, op->mode, &row, &column);
                matrix[row][column] = (uint16_t)(word >> (16 * item));
            }
        }
        for (int row = 0; row < 8; row++) {
            uint8_t *to = matrix_row(warp, op, 8 * i + row, true);
            if (!to)
                return;
            memcpy(to, matrix[row], 16);
        }
    }
}

static bool decode_matrix_move(Decoder *d, Op *op) {
    static const char *const ALLOWED[] = {"sync", "aligned", "m8n8",   "x1",          "x2",
                                          "x4",   "trans",   "shared", "shared::cta", NULL};
    bool load = !strcmp(part(d, 0), "ldmatrix");
    int wanted = has(d, "x4") ? 4 : has(d, "x2") ? 2 : has(d, "x1") ? 1 : 0;
    if (!wanted || !only(d, ALLOWED) || last_type(d) != PTX_B16 || d->in->operand_count != 2)
        return fail(d, "unsupported form %s", d->in->text);
    const PtxOperand *list = &d->in->operands[load ? 0 : 1];
    op->list_count = operand_width(list);
    if (op->list_count != wanted)
        return fail(d, "%s needs %d registers", d->in->text, wanted);
    op->first_list = load ? 0 : 1;
    op->mode = has(d, "trans");
    op->run = load ? run_ldmatrix : run_stmatrix;
    return take_operands(d, op, PTX_B32);
}

// ---------------------------------------------------------------- mma

enum { MMA_M = 16, MMA_N = 8, MOST_K = 32, MOST_REGISTERS = 4 };
enum { ELEM_F16, ELEM_BF16, ELEM_TF32, ELEM_E4M3, ELEM_E5M2 };

static const struct {
    const char *name;
    int bytes;
} ELEMS[] = {{"f16", 2}, {"bf16", 2}, {"tf32", 4}, {"e4m3", 1}, {"e5m2", 1}};

static float element_value(int elem, uint32_t word) {
    float value;
    switch (elem) {
    case ELEM_F16:
        return sim_f16_to_f32((uint16_t)word);
    case ELEM_BF16:
        return sim_bf16_to_f32((uint16_t)word);
    case ELEM_E4M3:
        return sim_e4m3_to_f32((uint8_t)word);
    case ELEM_E5M2:
        return sim_e5m2_to_f32((uint8_t)word);
    default:
        word &= 0xFFFFE000u;
        memcpy(&value, &word, 4);
        return value;
    }
}

// Fragments (PTX ISA, "Matrix Fragments for mma.m16n8k16" and so on): with g = lane / 4 and c = lane % 4, a
// register holds consecutive elements along K; A's registers alternate between rows g and g + 8.
static void read_fragments(Warp *warp, const Op *op, const Operand *first, int count, int elem, bool is_a,
                           float *out) {
    int bytes = ELEMS[elem].bytes, each = 4 / bytes;
    for (int reg = 0; reg < count; reg++)
        for (int lane = 0; lane < LANES; lane++) {
            uint32_t word = (uint32_t)lane_value(warp, first + reg, lane);
            int row = lane / 4 + (is_a ? 8 * (reg & 1) : 0), block = is_a ? reg >> 1 : reg;
            for (int item = 0; item < each; item++)
                out[row * op->count + each * (lane % 4) + item + 4 * each * block] =
                    element_value(elem, word >> (8 * bytes * item));
        }
}

// The 16 x 8 result in f32, or two columns packed as f16.
static void move_result(Warp *warp, const Operand *first, bool half, float *d, bool into_registers) {
    for (int lane = 0; lane < LANES; lane++)
        for (int row = 0; row < 2; row++) {
            float *place = &d[(lane / 4 + 8 * row) * MMA_N + 2 * (lane % 4)];
            uint32_t words[2];
            if (half && into_registers) {
                words[0] = sim_f32_to_f16(place[0], SIM_RN, false, false) |
                           (uint32_t)sim_f32_to_f16(place[1], SIM_RN, false, false) << 16;
                lane_set(warp, first + row, lane, words[0]);
            } else if (half) {
                words[0] = (uint32_t)lane_value(warp, first + row, lane);
                place[0] = sim_f16_to_f32((uint16_t)words[0]);
                place[1] = sim_f16_to_f32((uint16_t)(words[0] >> 16));
            } else if (into_registers) {
                memcpy(words, place, 8);
                lane_set(warp, first + 2 * row, lane, words[0]);
                lane_set(warp, first + 2 * row + 1, lane, words[1]);
            } else {
                words[0] = (uint32_t)lane_value(warp, first + 2 * row, lane);
                words[1] = (uint32_t)lane_value(warp, first + 2 * row + 1, lane);
                memcpy(place, words, 8);
            }
        }
}

// op->count: K; mode, mode2: element types; type: of C and D. Operands: D, A, B, C.
static void run_mma(Warp *warp, const Op *op, uint32_t mask) {
    float a[MMA_M * MOST_K], b[MMA_N * MOST_K], d[MMA_M * MMA_N];
    if (!whole_warp(warp, op, mask))
        return;
    bool half = op->type == PTX_F16;
    int results = half ? 2 : 4, registers_b = op->count * ELEMS[op->mode].bytes / 16;
    const Operand *first_a = op->operands + results, *first_b = first_a + 2 * registers_b;
    read_fragments(warp, op, first_a, 2 * registers_b, op->mode, true, a);
    read_fragments(warp, op, first_b, registers_b, op->mode2, false, b);
    move_result(warp, first_b + registers_b, half, d, false);
    sim_mma_f32(d, MMA_N, a, b, MMA_M, MMA_N, op->count, true);
    move_result(warp, op->operands, half, d, true);
}

// mma.sync.aligned.m16n8kK.row.col.D.A.B.C
static bool decode_mma(Decoder *d, Op *op) {
    static const struct {
        const char *shape;
        int k;
    } SHAPES[] = {{"m16n8k4", 4}, {"m16n8k8", 8}, {"m16n8k16", 16}, {"m16n8k32", 32}};
    op->mode = op->mode2 = -1;
    for (int i = 0; i < 4; i++)
        if (!strcmp(part(d, 3), SHAPES[i].shape))
            op->count = SHAPES[i].k;
    for (int i = 0; i < 5; i++) {
        if (!strcmp(part(d, 7), ELEMS[i].name))
            op->mode = i;
        if (!strcmp(part(d, 8), ELEMS[i].name))
            op->mode2 = i;
    }
    const char *result = part(d, 6);
    op->type = !strcmp(result, "f32") ? PTX_F32 : PTX_F16;
    bool known = d->in->part_count == 10 && op->count && op->mode >= 0 && op->mode2 >= 0 &&
                 !strcmp(result, part(d, 9)) && (op->type == PTX_F32 || !strcmp(result, "f16")) &&
                 !strcmp(part(d, 4), "row") && !strcmp(part(d, 5), "col");
    int bytes = known ? op->count * ELEMS[op->mode].bytes : 0;
    if (!known || ELEMS[op->mode].bytes != ELEMS[op->mode2].bytes || (bytes != 16 && bytes != 32))
        return fail(d, "unsupported form %s", d->in->text);
    op->run = run_mma;
    if (!take_operands(d, op, PTX_B32))
        return false;
    int wanted = (op->type == PTX_F16 ? 4 : 8) + 3 * bytes / 16;
    return op->operand_count == wanted ||
           fail(d, "%s needs %d registers in all, not %d", d->in->text, wanted, op->operand_count);
}

const OpEntry MATRIX_OPS[] = {
    {"ldmatrix", decode_matrix_move}, {"stmatrix", decode_matrix_move}, {"mma", decode_mma}, {NULL, NULL}};
