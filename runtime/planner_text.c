// planner_text.c: the kernel that fills a list of work from offsets on the device, as PTX for one manifest.
//
// A thread has a sequence. It goes through all sequences, a CTA's worth at a time by way of shared memory,
// and sums the records of those that come before its own (heavier, or as heavy and before it) and of all; so
// it knows where its records go, in the same order as work.c gives them. Time grows with the square of the
// number of sequences; one launch, no second pass and no atomics on the way. The rest of the list is filled
// with empty records: positions of none. Nothing is written behind the list, whatever the offsets hold.
#include "runtime/internal.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const jfa_manifest *manifest;
    char *bytes;
    size_t used, capacity;
    bool failed;
} Text;

__attribute__((format(printf, 2, 3))) static void put(Text *t, const char *format, ...) {
    va_list args;
    for (int round = 0; round < 2 && !t->failed; round++) {
        size_t room = t->capacity - t->used;
        va_start(args, format);
        int length = vsnprintf(t->bytes ? t->bytes + t->used : NULL, room, format, args);
        va_end(args);
        if (length >= 0 && (size_t)length < room) {
            t->used += (size_t)length;
            return;
        }
        size_t capacity = t->capacity ? t->capacity * 2 : 16384;
        char *more = length < 0 || round ? NULL : realloc(t->bytes, capacity);
        t->failed = !more;
        t->bytes = more ? more : t->bytes;
        t->capacity = more ? capacity : t->capacity;
    }
}

// ---------------------------------------------------------------- parameters

// PTX versions in which chips came (PTX ISA, "Release Notes"): the driver of a device knows its version.
static const char *version_of(const char *arch) {
    static const struct {
        int up_to;
        const char *version;
    } VERSIONS[] = {{90, "8.0"}, {101, "8.6"}, {103, "8.8"}, {119, "9.0"}, {120, "8.7"}, {999, "8.8"}};
    int number = 0, i = 0;
    sscanf(arch, "sm_%d", &number);
    while (number > VERSIONS[i].up_to && VERSIONS[i].up_to < 999)
        i++;
    return VERSIONS[i].version;
}

static int base_count(const jfa_manifest *m) {
    int count = 0;
    for (int i = 0; i < m->field_count; i++)
        count += m->fields[i].kind == JFA_FIELD_BASE;
    return count;
}

// In the order of jfa_planner_block.
static void put_header(Text *t, const char *arch) {
    put(t,
        ".version %s\n.target %s\n.address_size 64\n\n.visible .entry jfa_planner(\n"
        "    .param .u64 records,\n    .param .u64 status,\n    .param .u32 sequences,\n    .param .u32 most",
        version_of(arch), arch);
    for (int a = 0; a < t->manifest->info.axis_count; a++)
        put(t,
            ",\n    .param .u64 offsets%d,\n    .param .u32 length%d,\n    .param .u32 most_total%d,\n"
            "    .param .u32 most_length%d,\n    .param .u32 unused%d",
            a, a, a, a, a);
    for (int i = 0; i < base_count(t->manifest); i++)
        put(t, ",\n    .param .u32 packed%d,\n    .param .u32 pitch%d", i, i);
    put(t, "\n)\n.reqntid %d, 1, 1\n{\n", JFA_PLANNER_THREADS);
    put(t,
        "    .shared .align 8 .b8 weights[%d];\n    .shared .align 8 .b8 counts[%d];\n"
        "    .reg .pred %%p<8>;\n    .reg .b32 %%r<32>;\n    .reg .b64 %%d<16>;\n",
        8 * JFA_PLANNER_THREADS, 4 * JFA_PLANNER_THREADS);
    put(t, "    .reg .b32 %%start<%d>, %%len<%d>, %%reason<%d>, %%at<%d>, %%base<%d>;\n\n", JFA_MAX_AXES,
        JFA_MAX_AXES, JFA_MAX_AXES, JFA_MAX_BLOCKS, JFA_MAX_FIELDS);
}

// ---------------------------------------------------------------- a sequence

// Start, length and what is wrong with it, of the sequence %r2 (of %r1) on one axis. A length that is wrong
// becomes 0.
static void put_axis(Text *t, int a) {
    put(t,
        "    ld.param.u64 %%d4, [offsets%d];\n"
        "    ld.param.u32 %%r8, [length%d];\n"
        "    ld.param.u32 %%r9, [most_total%d];\n"
        "    ld.param.u32 %%r10, [most_length%d];\n"
        "    setp.lt.u32 %%p0, %%r2, %%r1;\n"
        "    setp.ne.and.u64 %%p1, %%d4, 0, %%p0;\n"
        "    mul.lo.u32 %%start%d, %%r2, %%r8;\n"
        "    add.u32 %%r11, %%start%d, %%r8;\n"
        "    mad.wide.u32 %%d4, %%r2, 4, %%d4;\n"
        "    @%%p1 ld.global.u32 %%start%d, [%%d4];\n"
        "    @%%p1 ld.global.u32 %%r11, [%%d4+4];\n"
        "    sub.u32 %%len%d, %%r11, %%start%d;\n",
        a, a, a, a, a, a, a, a, a);
    // The least of the reasons that hold; 0: none.
    put(t,
        "    setp.gt.s32 %%p2, %%len%d, %%r10;\n"
        "    selp.u32 %%reason%d, %d, 0, %%p2;\n"
        "    setp.gt.s32 %%p2, %%r11, %%r9;\n"
        "    selp.u32 %%reason%d, %d, %%reason%d, %%p2;\n"
        "    setp.lt.s32 %%p2, %%r11, %%start%d;\n"
        "    selp.u32 %%reason%d, %d, %%reason%d, %%p2;\n"
        "    setp.lt.s32 %%p2, %%start%d, 0;\n"
        "    selp.u32 %%reason%d, %d, %%reason%d, %%p2;\n"
        "    setp.eq.u32 %%p2, %%r2, 0;\n"
        "    setp.ne.and.u32 %%p2, %%start%d, 0, %%p2;\n"
        "    selp.u32 %%reason%d, %d, %%reason%d, %%p2;\n"
        "    selp.u32 %%reason%d, %%reason%d, 0, %%p1;\n",
        a, a, JFA_WRONG_LENGTH, a, JFA_WRONG_TOTAL, a, a, a, JFA_WRONG_ORDER, a, a, a, JFA_WRONG_ORDER, a, a,
        a, JFA_WRONG_START, a, a, a);
    put(t,
        "    setp.ne.u32 %%p2, %%reason%d, 0;\n"
        "    selp.u32 %%len%d, 0, %%len%d, %%p2;\n"
        "    selp.u32 %%len%d, %%len%d, 0, %%p0;\n",
        a, a, a, a, a);
}

static bool is_blocked(const jfa_manifest *m, int axis) {
    for (int i = 0; i < m->block_count; i++)
        if (m->blocks[i].axis == axis)
            return true;
    return false;
}

// %r3: records of the sequence; %d3: its weight, as in work.c.
static void put_sequence(Text *t) {
    const jfa_manifest *m = t->manifest;
    for (int a = 0; a < m->info.axis_count; a++)
        put_axis(t, a);
    put(t, "    setp.lt.u32 %%p0, %%r2, %%r1;\n    selp.u32 %%r3, 1, 0, %%p0;\n");
    for (int i = 0; i < m->block_count; i++)
        put(t,
            "    add.u32 %%r8, %%len%d, %lld;\n    div.u32 %%r8, %%r8, %lld;\n"
            "    mul.lo.u32 %%r3, %%r3, %%r8;\n",
            m->blocks[i].axis, (long long)m->blocks[i].size - 1, (long long)m->blocks[i].size);
    put(t, "    mov.u64 %%d3, 1;\n");
    for (int a = 0; a < m->info.axis_count && m->heaviest_first; a++)
        if (!is_blocked(m, a))
            put(t,
                "    max.u32 %%r8, %%len%d, 1;\n"
                "    cvt.u64.u32 %%d4, %%r8;\n"
                "    mul.hi.u64 %%d5, %%d3, %%d4;\n"
                "    mul.lo.u64 %%d3, %%d3, %%d4;\n"
                "    setp.ne.u64 %%p1, %%d5, 0;\n"
                "    setp.gt.or.u64 %%p1, %%d3, 0x7fffffffffffffff, %%p1;\n"
                "    selp.u64 %%d3, 0x7fffffffffffffff, %%d3, %%p1;\n",
                a);
}

// ---------------------------------------------------------------- places

// %r6: records before the own sequence's; %r7: all. The own sequence is %r4 with weight %d2.
static void put_sums(Text *t) {
    put(t, "    mov.u32 %%r6, 0;\n    mov.u32 %%r7, 0;\n    mov.u32 %%r5, 0;\n"
           "    mov.u64 %%d6, weights;\n    mov.u64 %%d7, counts;\n"
           "CHUNK:\n"
           "    setp.ge.u32 %%p3, %%r5, %%r1;\n    @%%p3 bra SUMMED;\n"
           "    add.u32 %%r2, %%r5, %%r0;\n");
    put_sequence(t);
    put(t,
        "    mad.wide.u32 %%d8, %%r0, 8, %%d6;\n    st.shared.u64 [%%d8], %%d3;\n"
        "    mad.wide.u32 %%d8, %%r0, 4, %%d7;\n    st.shared.u32 [%%d8], %%r3;\n"
        "    bar.sync 0;\n"
        "    mov.u32 %%r12, 0;\n"
        "OTHER:\n"
        "    mad.wide.u32 %%d8, %%r12, 8, %%d6;\n    ld.shared.u64 %%d9, [%%d8];\n"
        "    mad.wide.u32 %%d8, %%r12, 4, %%d7;\n    ld.shared.u32 %%r13, [%%d8];\n"
        "    add.u32 %%r14, %%r5, %%r12;\n"
        "    add.u32 %%r7, %%r7, %%r13;\n"
        "    setp.lt.u32 %%p1, %%r14, %%r4;\n"
        "    setp.eq.and.u64 %%p1, %%d9, %%d2, %%p1;\n"
        "    setp.gt.or.u64 %%p1, %%d9, %%d2, %%p1;\n"
        "    @%%p1 add.u32 %%r6, %%r6, %%r13;\n"
        "    add.u32 %%r12, %%r12, 1;\n"
        "    setp.lt.u32 %%p1, %%r12, %d;\n    @%%p1 bra OTHER;\n"
        "    bar.sync 0;\n"
        "    add.u32 %%r5, %%r5, %d;\n    bra.uni CHUNK;\n"
        "SUMMED:\n",
        JFA_PLANNER_THREADS, JFA_PLANNER_THREADS);
}

// ---------------------------------------------------------------- records

static void put_bases(Text *t) {
    const jfa_manifest *m = t->manifest;
    for (int i = 0, n = 0; i < m->field_count; i++) {
        const jfa_field *field = &m->fields[i];
        if (field->kind != JFA_FIELD_BASE)
            continue;
        int axis = m->info.tensors[field->index].dims[field->dim].index;
        put(t,
            "    ld.param.u32 %%r8, [packed%d];\n    ld.param.u32 %%r9, [pitch%d];\n"
            "    mul.lo.u32 %%r9, %%r9, %%r4;\n"
            "    mad.lo.u32 %%base%d, %%r8, %%start%d, %%r9;\n"
            "    setp.eq.u32 %%p1, %%len%d, 0;\n"
            "    selp.u32 %%base%d, 0, %%base%d, %%p1;\n",
            n, n, i, axis, axis, i, i);
        n++;
    }
}

static void put_fields(Text *t) {
    const jfa_manifest *m = t->manifest;
    for (int i = 0; i < m->field_count; i++) {
        const jfa_field *field = &m->fields[i];
        int block = 0;
        switch (field->kind) {
        case JFA_FIELD_START:
            while (block < m->block_count - 1 && m->blocks[block].axis != field->index)
                block++;
            put(t, "    st.global.u32 [%%d8+%d], %%at%d;\n", 4 * i, block);
            break;
        case JFA_FIELD_LEN:
            put(t, "    st.global.u32 [%%d8+%d], %%len%d;\n", 4 * i, field->index);
            break;
        case JFA_FIELD_BASE:
            put(t, "    st.global.u32 [%%d8+%d], %%base%d;\n", 4 * i, i);
            break;
        default:
            put(t, "    st.global.u32 [%%d8+%d], %%r4;\n", 4 * i);
        }
    }
}

// The own sequence's records from place %r6 on; %r15: the list's length.
static void put_records(Text *t) {
    const jfa_manifest *m = t->manifest;
    put_bases(t);
    for (int i = 0; i < m->block_count; i++)
        put(t, "    mov.u32 %%at%d, 0;\n", i);
    put(t,
        "    setp.eq.u32 %%p1, %%r3, 0;\n    @%%p1 bra WRITTEN;\n"
        "RECORD:\n"
        "    setp.ge.u32 %%p1, %%r6, %%r15;\n    @%%p1 bra WRITTEN;\n"
        "    mad.wide.u32 %%d8, %%r6, %d, %%d0;\n",
        4 * m->field_count);
    put_fields(t);
    put(t, "    add.u32 %%r6, %%r6, 1;\n");
    for (int i = m->block_count - 1; i >= 0; i--)
        put(t,
            "    add.u32 %%at%d, %%at%d, %lld;\n    setp.lt.u32 %%p1, %%at%d, %%len%d;\n"
            "    @%%p1 bra RECORD;\n    mov.u32 %%at%d, 0;\n",
            i, i, (long long)m->blocks[i].size, i, m->blocks[i].axis, i);
    put(t, "WRITTEN:\n");
}

static void put_rest(Text *t) {
    const jfa_manifest *m = t->manifest;
    put(t,
        "    add.u32 %%r6, %%r7, %%r4;\n"
        "    mov.u32 %%r8, %%nctaid.x;\n    mul.lo.u32 %%r8, %%r8, %d;\n"
        "    setp.lt.u32 %%p1, %%r6, %%r7;\n    @%%p1 bra DONE;\n"
        "EMPTY:\n"
        "    setp.ge.u32 %%p1, %%r6, %%r15;\n    @%%p1 bra DONE;\n"
        "    mad.wide.u32 %%d8, %%r6, %d, %%d0;\n",
        JFA_PLANNER_THREADS, 4 * m->field_count);
    for (int i = 0; i < m->field_count; i++)
        put(t, "    st.global.u32 [%%d8+%d], 0;\n", 4 * i);
    put(t, "    add.u32 %%r6, %%r6, %%r8;\n    bra.uni EMPTY;\nDONE:\n    ret;\n}\n");
}

static void put_verdict(Text *t) {
    for (int a = 0; a < t->manifest->info.axis_count; a++)
        put(t,
            "    setp.ne.u32 %%p1, %%reason%d, 0;\n"
            "    cvt.u64.u32 %%d8, %%r4;\n"
            "    shl.b64 %%d8, %%d8, 6;\n"
            "    add.u32 %%r8, %%reason%d, %d;\n"
            "    cvt.u64.u32 %%d9, %%r8;\n"
            "    add.u64 %%d8, %%d8, %%d9;\n"
            "    @%%p1 red.global.min.u64 [%%d1], %%d8;\n",
            a, a, 8 * a);
}

char *jfa_planner_text(const jfa_manifest *manifest, const char *arch) {
    Text text = {.manifest = manifest}, *t = &text;
    put_header(t, arch);
    put(t, "    ld.param.u64 %%d0, [records];\n    ld.param.u64 %%d1, [status];\n"
           "    ld.param.u32 %%r1, [sequences];\n    ld.param.u32 %%r15, [most];\n"
           "    mov.u32 %%r0, %%tid.x;\n    mov.u32 %%r8, %%ctaid.x;\n");
    put(t, "    mad.lo.u32 %%r4, %%r8, %d, %%r0;\n    mov.u32 %%r2, %%r4;\n", JFA_PLANNER_THREADS);
    put_sequence(t);
    put(t, "    mov.u64 %%d2, %%d3;\n");
    put_sums(t);
    // Again, now that the registers of a sequence have been used for all of them.
    put(t, "    mov.u32 %%r2, %%r4;\n");
    put_sequence(t);
    put_verdict(t);
    put_records(t);
    put_rest(t);
    if (text.failed) {
        free(text.bytes);
        return NULL;
    }
    return text.bytes;
}
