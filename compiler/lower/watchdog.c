// watchdog.c: waits that know how long they take. Takes a barrier and the parity to wait for; where the
// kernel is built with a watchdog, a wait beyond the limit tells which one it is in the words that
// runtime/manifest.h describes, and ends the kernel. Tells the plan's words apart by a number: the manifest
// has the rest.
#include "compiler/lower/internal.h"

#include "runtime/manifest.h"

#include <string.h>

static bool same(const Wait *a, const Wait *b) {
    return a->role == b->role && a->pipe == b->pipe && a->is_full == b->is_full &&
           a->place.file == b->place.file && a->place.start == b->place.start;
}

// A statement that is compiled twice has one number.
static int number_of(Lower *l, const Wait *wait) {
    Watchdog *watchdog = l->watchdog;
    for (int i = 0; i < watchdog->count; i++)
        if (same(&watchdog->waits[i], wait))
            return i;
    if (watchdog->count % 16 == 0) {
        Wait *more = arena_array(l->arena, Wait, watchdog->count + 16);
        if (watchdog->count)
            memcpy(more, watchdog->waits, sizeof *more * (size_t)watchdog->count);
        watchdog->waits = more;
    }
    watchdog->waits[watchdog->count] = *wait;
    return watchdog->count++;
}

// Tries, and looks at the clock after each try in vain: a try lasts about as long as the chip likes. $0: the
// barrier, $1: the parity, $2: the watchdog's words.
static const char *try_until(Lower *l, const char *label, const char *exit, int64_t limit_ns) {
    return arena_format(l->arena,
                        "%s:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, [$0], $1;\n\t%smov.u64 now, "
                        "%%globaltimer;\n\tsub.u64 now, now, start;\n\tsetp.lt.u64 P1, now, "
                        "%lld;\n\t@P1 bra %s;\n\t",
                        label, exit, (long long)limit_ns, label);
}

// The cluster that is first claims the words, by an atomic of the GPU's own scope: the host only reads, and
// not before the kernel has failed. `mine`: 1 + the cluster's number (of a power of two of CTAs); `place`: 1
// + that of the warp in the cluster. Of a warp's lanes all that wait write the same.
static const char *tell(Lower *l, int number, int64_t barriers_at) {
    const char *place = "";
    if (l->plan->cluster > 1)
        place = arena_format(l->arena, "and.b32 part, cta, %d;\n\tmad.lo.u32 place, part, %d, place;\n\t",
                             l->plan->cluster - 1, l->plan->warps);
    return arena_format(
        l->arena,
        "mov.u32 cta, %%ctaid.x;\n\tshr.u32 mine, cta, %d;\n\tadd.u32 mine, mine, 1;\n\t"
        "atom.relaxed.gpu.global.cas.b32 was, [$2], 0, mine;\n\tsetp.eq.u32 P1, was, 0;\n\t"
        "selp.b32 was, mine, was, P1;\n\tsetp.ne.u32 P2, was, mine;\n\t@P2 bra TOLD;\n\t"
        "mov.u32 place, %%tid.x;\n\tshr.u32 place, place, 5;\n\t%sadd.u32 place, place, 1;\n\t"
        "@P1 st.relaxed.sys.global.u32 [$2+%d], place;\n\t"
        "mul.wide.u32 words, place, %d;\n\tadd.u64 words, words, $2;\n\t"
        "mov.b32 part, " SHARED_SYMBOL ";\n\tsub.u32 part, $0, part;\n\tsub.u32 part, part, %lld;\n\t"
        "shr.u32 part, part, 3;\n\tmov.b32 was, %d;\n\t"
        "st.relaxed.sys.global.v4.u32 [words], {was, $1, part, cta};\n\tfence.acq_rel.sys;\nTOLD:\n\t"
        "mov.u64 start, %%globaltimer;\n",
        __builtin_ctz((unsigned)l->plan->cluster), place, (int)sizeof(uint32_t),
        JFA_WATCHDOG_WORDS * (int)sizeof(uint32_t), (long long)barriers_at, number + 1);
}

// What a first try finds done costs nothing more than without a watchdog.
void watchdog_wait(Lower *l, const Pipe *pipe, bool is_full, Value barrier, Value parity) {
    enum { NS_PER_MS = 1000000 };
    if (!l->watchdog->ms) {
        ptx_wait(l, barrier, parity);
        return;
    }
    Wait wait = {l->role->name, pipe->name,          is_full,
                 pipe->array,   pipe->buffer->depth, l->place.file >= 0 ? l->place : l->plan->kernel_span};
    int64_t limit = l->watchdog->ms * NS_PER_MS;
    const char *text =
        arena_format(l->arena,
                     "{\n\t.reg .pred P1, P2;\n\t.reg .b32 was, mine, place, part, cta;\n\t.reg .b64 start, "
                     "now, words;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 P1, [$0], $1;\n\t@P1 bra DONE;\n\t"
                     "mov.u64 start, %%globaltimer;\n%s%s%strap;\nDONE:\n\t}",
                     try_until(l, "AGAIN", "@P1 bra DONE;\n\t", limit),
                     tell(l, number_of(l, &wait), is_full ? pipe->full_barrier : pipe->empty_barrier),
                     try_until(l, "LATER", "", limit / 4));
    ir_asm(l, l->void_type, text, "r,r,l", false, IR_ARGS(barrier, parity, arg_value(l, ARG_WATCHDOG, 0, 0)));
}
