// engines.c: what Hopper's tensor core does for the lowering. A product is one statement with all its
// instructions, so that nothing can come between them. Sections: PTX ISA, "Asynchronous Warpgroup Level
// Matrix Multiply-Accumulate Instructions".
#include "compiler/lower/internal.h"

#include "grammar/ast.h"

enum { STEP = 16, MOST_STEPS = 64, FRAGMENT_WORDS = 4 };

static void nothing(Lower *l) {
    (void)l;
}

// ---------------------------------------------------------------- operands

// "Matrix-descriptor format". High word: stride of 8 rows / 16, and in bits 30 and 31 the swizzle.
static int64_t descriptor_high(int swizzle_bytes) {
    int64_t code = swizzle_bytes == 128 ? 1 : swizzle_bytes == 64 ? 2 : 3;
    return code << 30 | 8 * swizzle_bytes / 16;
}

// Low word of k-step 0 of an operand tile [chunk][row][swizzle bytes]: its address and, MN-major, the
// distance from chunk to chunk. The address of a CTA in a cluster has more bits than the field.
static Value descriptor_low(Lower *l, const Buffer *buffer, Value address, bool k_major) {
    int64_t leading = k_major ? 1 : (int64_t)buffer->rows * buffer->swizzle_bytes / 16;
    return ir_or(l, ir_and(l, ir_shr(l, address, 4), ir_int(l, 0x3FFF)), ir_int(l, leading << 16));
}

// What k-step `step` adds to it. K-major (the tile's rows are M or N): 32 bytes along the row, then the next
// chunk. MN-major (the tile's rows are K): 16 rows.
static int64_t descriptor_step(const Buffer *buffer, bool k_major, int step) {
    if (!k_major)
        return (int64_t)step * STEP * buffer->swizzle_bytes / 16;
    int64_t chunk_bytes = (int64_t)buffer->rows * buffer->swizzle_bytes;
    int column = step * STEP;
    return (column / buffer->chunk_cols * chunk_bytes +
            column % buffer->chunk_cols * elem_bytes(buffer->elem)) /
           16;
}

// One descriptor for each k-step, computed outside the statement: those that don't change leave the loop.
static void descriptors(Lower *l, const Slot *slot, bool k_major, int steps, Value *made) {
    const Buffer *buffer = slot->pipe->buffer;
    Value low = descriptor_low(l, buffer, slot_address(l, slot), k_major);
    Value high = ir_long(l, (int64_t)((uint64_t)descriptor_high(buffer->swizzle_bytes) << 32));
    for (int step = 0; step < steps; step++) {
        Value word = ir_add(l, low, ir_int(l, descriptor_step(buffer, k_major, step)));
        made[step] = ir_or(l, LLVMBuildZExt(l->builder, word, l->i64, ""), high);
    }
}

// ---------------------------------------------------------------- the statement

typedef struct { // an inline assembly statement as it grows
    Lower *l;
    const char *text, *constraints;
    Value args[MOST_ASM_ARGS];
    int arg_count, result_count;
} Statement;

static void add(Statement *s, const char *constraint, Value value) {
    s->constraints =
        arena_format(s->l->arena, "%s%s%s", s->constraints, *s->constraints ? "," : "", constraint);
    if (value)
        s->args[s->arg_count++] = value;
    else
        s->result_count++;
}

static int operand_number(const Statement *s) { // of the next one to be added
    return s->result_count + s->arg_count;
}

static const char *register_list(Lower *l, int first, int count) {
    const char *list = "";
    for (int i = 0; i < count; i++)
        list = arena_format(l->arena, "%s%s$%d", list, i ? ", " : "", first + i);
    return list;
}

static void add_step(Statement *s, const Stmt *stmt, int step, int a, int b, bool predicated) {
    const Product *p = &stmt->product;
    Lower *l = s->l;
    const char *type = p->b->pipe->buffer->elem == ELEM_BF16 ? "bf16" : "f16";
    const char *keeps = step || !stmt->fresh ? "1" : predicated ? "P1" : "0";
    const char *left = p->a ? arena_format(l->arena, "$%d", a)
                            : arena_format(l->arena, "{%s}", register_list(l, a, FRAGMENT_WORDS));
    const char *a_major = !p->a ? "" : p->a_transposed ? " 1," : " 0,";
    s->text = arena_format(
        l->arena, "%swgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s {%s}, %s, $%d, %s, 1, 1,%s %d;\n\t",
        s->text, p->n, type, type, register_list(l, 0, s->result_count), left, b, keeps, a_major,
        !p->b_transposed);
}

// d = or += a b. `fresh` is a constant, or decides at run time whether the first k-step adds.
static void product(Lower *l, const Stmt *stmt, Value fresh) {
    const Product *p = &stmt->product;
    int steps = p->k / STEP, results = p->n / 2;
    bool starts_anew = LLVMIsAConstantInt(fresh) && LLVMConstIntGetZExtValue(fresh);
    bool predicated = stmt->fresh && !LLVMIsAConstantInt(fresh);
    Stmt as_known = *stmt;
    if (stmt->fresh && !predicated && !starts_anew)
        as_known.fresh = NULL;
    Value a[MOST_STEPS], b[MOST_STEPS];
    Flight flight = {.result = stmt->local, .operand = p->a_local, .a = p->a, .b = p->b};
    if (p->a_local)
        flight.words = local_fragments(l, p->a_local, p->b->pipe->buffer->elem, &flight.word_count);
    else
        descriptors(l, p->a, !p->a_transposed, steps, a);
    descriptors(l, p->b, p->b_transposed, steps, b);
    Value *into = local_accumulators(l, stmt->local, !starts_anew);
    Statement s = {.l = l, .text = "wgmma.fence.sync.aligned;\n\t", .constraints = ""};
    LLVMTypeRef *types = arena_array(l->arena, LLVMTypeRef, results);
    for (int i = 0; i < results; i++) {
        types[i] = l->f32;
        add(&s, "=&f", NULL);
    }
    for (int i = 0; i < results && !starts_anew; i++)
        add(&s, arena_format(l->arena, "%d", i), into[i]);
    if (predicated) {
        s.text = arena_format(l->arena, "{\n\t.reg .pred P1;\n\tsetp.eq.u32 P1, $%d, 0;\n\t%s",
                              operand_number(&s), s.text);
        add(&s, "r", LLVMBuildZExt(l->builder, fresh, l->i32, ""));
    }
    for (int step = 0; step < steps; step++) {
        int left = operand_number(&s);
        for (int i = 0; i < FRAGMENT_WORDS && p->a_local; i++)
            add(&s, "r", flight.words[FRAGMENT_WORDS * step + i]);
        if (p->a)
            add(&s, "l", a[step]);
        int right = operand_number(&s);
        add(&s, "l", b[step]);
        add_step(&s, &as_known, step, left, right, predicated);
    }
    s.text =
        arena_format(l->arena, "%swgmma.commit_group.sync.aligned;%s", s.text, predicated ? "\n\t}" : "");
    Value made = ir_asm(l, LLVMStructTypeInContext(l->context, types, (unsigned)results, false), s.text,
                        s.constraints, false, s.args, s.arg_count);
    flight.accumulators = arena_array(l->arena, Value, results);
    flight.accumulator_count = results;
    for (int i = 0; i < results; i++)
        flight.accumulators[i] = LLVMBuildExtractValue(l->builder, made, (unsigned)i, "");
    flight_add(l, flight);
}

static void wait_products(Lower *l, int left, Value *accumulators, int count, Value *words, int word_count) {
    Statement s = {.l = l, .constraints = ""};
    s.text = arena_format(l->arena, "wgmma.wait_group.sync.aligned %d;", left);
    LLVMTypeRef *types = arena_array(l->arena, LLVMTypeRef, count + 1);
    for (int i = 0; i < count; i++) {
        types[i] = l->f32;
        add(&s, "=f", NULL);
    }
    for (int i = 0; i < count; i++)
        add(&s, arena_format(l->arena, "%d", i), accumulators[i]);
    for (int i = 0; i < word_count; i++)
        add(&s, "r", words[i]);
    LLVMTypeRef result =
        count ? LLVMStructTypeInContext(l->context, types, (unsigned)count, false) : l->void_type;
    Value passed = ir_asm(l, result, s.text, s.constraints, false, s.args, s.arg_count);
    for (int i = 0; i < count; i++)
        accumulators[i] = LLVMBuildExtractValue(l->builder, passed, (unsigned)i, "");
}

const Engines SM90_ENGINES = {
    .begin = nothing,
    .end = nothing,
    .after_wait = nothing,
    .before_arrive = nothing,
    .product = product,
    .wait_products = wait_products,
};
