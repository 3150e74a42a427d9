// engines.c: what Blackwell's tensor core and tensor memory do for the lowering. Sections: PTX ISA,
// "TensorCore 5th Generation Family Instructions".
#include "compiler/lower/internal.h"

#include "grammar/ast.h"

#include <string.h>

static bool uses_tmem(const Lower *l) {
    return l->plan->tmem_allocation > 0;
}

// One warp allocates, reads nothing before the CTA's barrier, and frees at the end ("tcgen05.alloc").
static void begin(Lower *l) {
    if (!uses_tmem(l))
        return;
    LLVMBasicBlockRef allocate = ir_block(l, "allocate"), done = ir_block(l, "allocated");
    ir_branch(l, ir_equal(l, l->warp, ir_int(l, 0)), allocate, done);
    ir_at(l, allocate);
    Value pointer = ir_add(l, l->shared_base, ir_int(l, l->plan->tmem_pointer_offset));
    ir_asm(l, l->void_type, "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$0], $1;", "r,r", false,
           IR_ARGS(pointer, ir_int(l, l->plan->tmem_allocation)));
    ir_asm(l, l->void_type, "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", "", false, NULL, 0);
    ir_jump(l, done);
    ir_at(l, done);
}

static void before_arrive(Lower *l) {
    ir_asm(l, l->void_type, "tcgen05.fence::before_thread_sync;", "", false, NULL, 0);
}

static void after_wait(Lower *l) {
    ir_asm(l, l->void_type, "tcgen05.fence::after_thread_sync;", "", false, NULL, 0);
}

static void end(Lower *l) {
    if (!uses_tmem(l))
        return;
    LLVMBasicBlockRef release = ir_block(l, "release"), done = ir_block(l, "released");
    ir_branch(l, ir_equal(l, l->warp, ir_int(l, 0)), release, done);
    ir_at(l, release);
    after_wait(l);
    ir_asm(l, l->void_type, "tcgen05.dealloc.cta_group::1.sync.aligned.b32 $0, $1;", "r,r", false,
           IR_ARGS(l->tmem, ir_int(l, l->plan->tmem_allocation)));
    ir_jump(l, done);
    ir_at(l, done);
}

// "Shared memory descriptor". High word: stride of 8 rows / 16, bit 14 the fixed version, bits 29..31 the
// swizzle.
static int64_t descriptor_high(int swizzle_bytes) {
    int code = swizzle_bytes == 128 ? 2 : swizzle_bytes == 64 ? 4 : 6;
    return (int64_t)code << 29 | 1 << 14 | 8 * swizzle_bytes / 16;
}

// Low word of the descriptor of an operand tile [chunk][row][swizzle bytes]: its address and, MN-major, the
// distance from chunk to chunk.
static Value descriptor_low(Lower *l, const Buffer *buffer, Value address, bool k_major) {
    int64_t leading = k_major ? 1 : (int64_t)buffer->rows * buffer->swizzle_bytes / 16;
    Value start = ir_and(l, ir_shr(l, address, 4), ir_int(l, 0x3FFF));
    return ir_or(l, start, ir_int(l, leading << 16));
}

// What k-step `step` adds to the low word, in units of 16 bytes. K-major (the tile's rows are M or N): 32
// bytes along the row, then the next chunk. MN-major (the tile's rows are K): 16 rows.
static int64_t descriptor_step(const Buffer *buffer, bool k_major, int step) {
    enum { STEP = 16 };
    if (!k_major)
        return (int64_t)step * STEP * buffer->swizzle_bytes / 16;
    int64_t chunk_bytes = (int64_t)buffer->rows * buffer->swizzle_bytes;
    int column = step * STEP;
    return (column / buffer->chunk_cols * chunk_bytes +
            column % buffer->chunk_cols * elem_bytes(buffer->elem)) /
           16;
}

// "Instruction descriptor" for .kind::f16: f32 result, operand types, MN-major bits 15 and 16, N / 8, M / 16.
static int64_t instruction_descriptor(const Product *product, bool a_k_major, bool b_k_major) {
    int type = product->a->pipe->buffer->elem == ELEM_BF16;
    return 1 << 4 | type << 7 | type << 10 | !a_k_major << 15 | !b_k_major << 16 | product->n / 8 << 17 |
           (int64_t)(product->m / 16) << 24;
}

// One statement for all k-steps: descriptors are made beside their use, where they cost no registers across
// the loop.
static void product(Lower *l, const Stmt *stmt, Value fresh) {
    enum { STEP = 16, TMEM_COLUMNS_A_STEP = 8 };
    const Product *p = &stmt->product;
    const Buffer *a = p->a->pipe->buffer, *b = p->b->pipe->buffer;
    bool a_in_tmem = a->space == SPACE_TMEM, a_k_major = !p->a_transposed, b_k_major = p->b_transposed;
    Value a_address = slot_address(l, p->a), d = slot_address(l, stmt->slot);
    Value left = a_in_tmem ? a_address : descriptor_low(l, a, a_address, a_k_major);
    Value right = descriptor_low(l, b, slot_address(l, p->b), b_k_major);
    Value keeps = LLVMBuildZExt(l->builder, LLVMBuildNot(l->builder, fresh, ""), l->i32, "");
    const char *text =
        "{\n\t.reg .pred P1;\n\t.reg .b32 A1, B1;\n\t.reg .b64 A2, B2;\n\tsetp.ne.b32 P1, $3, 0;\n\t";
    for (int step = 0; step < p->k / STEP; step++) {
        int64_t a_step = a_in_tmem ? step * TMEM_COLUMNS_A_STEP : descriptor_step(a, a_k_major, step);
        text = arena_format(l->arena, "%sadd.s32 A1, $1, %lld;\n\tadd.s32 B1, $2, %lld;\n\t", text,
                            (long long)a_step, (long long)descriptor_step(b, b_k_major, step));
        if (!a_in_tmem)
            text = arena_format(l->arena, "%smov.b64 A2, {A1, %lld};\n\t", text,
                                (long long)descriptor_high(a->swizzle_bytes));
        text = arena_format(
            l->arena,
            "%smov.b64 B2, {B1, %lld};\n\ttcgen05.mma.cta_group::1.kind::f16 [$0], %s, B2, %lld, %s;\n\t",
            text, (long long)descriptor_high(b->swizzle_bytes), a_in_tmem ? "[A1]" : "A2",
            (long long)instruction_descriptor(p, a_k_major, b_k_major), step ? "1" : "P1");
    }
    text = arena_format(l->arena, "%s}", text);
    ir_asm(l, l->void_type, text, "r,r,r,r", false, IR_ARGS(d, left, right, keeps));
}

// "tcgen05.commit": one arrival, at each of so many CTAs, when all earlier products of this thread have
// retired.
static void commit(Lower *l, Value barrier, int ctas) {
    const char *text = ctas == 1
                           ? "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [$0];"
                           : arena_format(l->arena,
                                          "{\n\t.reg .b16 ctas;\n\tmov.b16 ctas, "
                                          "%d;\n\ttcgen05.commit.cta_group::1.mbarrier::arrive::"
                                          "one.shared::cluster.multicast::cluster.b64 [$0], ctas;\n\t}",
                                          (1 << ctas) - 1);
    ir_asm(l, l->void_type, text, "r", false, IR_ARGS(barrier));
}

// The 32x32b shape: thread t of a warp holds row 32 * (warp % 4) + t, one register a column. The lane field
// of the address is the warp's quarter.
static Value quarter_address(Lower *l, Value address) {
    return ir_add(l, address, ir_shl(l, ir_and(l, l->warp_of_role, ir_int(l, 3)), 21));
}

static int piece_columns(int left) {
    int columns = 32;
    while (columns > left)
        columns /= 2;
    return columns;
}

static const char *register_list(Lower *l, int first, int count) {
    const char *list = "";
    for (int i = 0; i < count; i++)
        list = arena_format(l->arena, "%s%s$%d", list, i ? ", " : "", first + i);
    return list;
}

// Loads and their wait are one statement: nothing can use a register before the wait.
static void read_columns(Lower *l, Value address, int count, Value *words) {
    const char *text = "", *constraints = "";
    for (int first = 0; first < count;) {
        int columns = piece_columns(count - first);
        text = arena_format(l->arena, "%stcgen05.ld.sync.aligned.32x32b.x%d.b32 {%s}, [$%d + %d];\n\t", text,
                            columns, register_list(l, first, columns), count, first);
        first += columns;
    }
    text = arena_format(l->arena, "%stcgen05.wait::ld.sync.aligned;", text);
    LLVMTypeRef *types = arena_array(l->arena, LLVMTypeRef, count);
    for (int i = 0; i < count; i++) {
        types[i] = l->i32;
        constraints = arena_format(l->arena, "%s=&r,", constraints);
    }
    constraints = arena_format(l->arena, "%sr", constraints);
    LLVMTypeRef result =
        count == 1 ? l->i32 : LLVMStructTypeInContext(l->context, types, (unsigned)count, false);
    Value loaded = ir_asm(l, result, text, constraints, false, IR_ARGS(quarter_address(l, address)));
    for (int i = 0; i < count; i++)
        words[i] = count == 1 ? loaded : LLVMBuildExtractValue(l->builder, loaded, (unsigned)i, "");
}

static void write_columns(Lower *l, Value address, int count, Value *words) {
    Value lanes = quarter_address(l, address);
    for (int first = 0; first < count;) {
        int columns = piece_columns(count - first);
        Value args[33] = {ir_add(l, lanes, ir_int(l, first))};
        memcpy(args + 1, words + first, sizeof(Value) * (size_t)columns);
        const char *text = arena_format(l->arena, "tcgen05.st.sync.aligned.32x32b.x%d.b32 [$0], {%s};",
                                        columns, register_list(l, 1, columns));
        const char *constraints = "r";
        for (int i = 0; i < columns; i++)
            constraints = arena_format(l->arena, "%s,r", constraints);
        ir_asm(l, l->void_type, text, constraints, false, args, columns + 1);
        first += columns;
    }
}

static void finish_writes(Lower *l) {
    ir_asm(l, l->void_type, "tcgen05.wait::st.sync.aligned;", "", false, NULL, 0);
}

const Engines SM100_ENGINES = {
    .begin = begin,
    .end = end,
    .after_wait = after_wait,
    .before_arrive = before_arrive,
    .product = product,
    .commit = commit,
    .read_columns = read_columns,
    .write_columns = write_columns,
    .finish_writes = finish_writes,
};
