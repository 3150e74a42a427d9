// race.c: happens-before. Every warp, the tensor core and every copy channel is an agent with a clock;
// synchronisation carries clocks along. An access must come after the accesses that it conflicts with, and
// across proxies the fences of the PTX memory model must lie between (PTX ISA, "Memory Consistency Model",
// "Proxies", "tcgen05 memory consistency").
#include "simulator/machine/machine.h"

#include <stdio.h>
#include <string.h>

void clock_join(Clock *into, const Clock *from) {
    for (int i = 0; i < CLOCK_AGENTS; i++)
        into->at[i] = into->at[i] > from->at[i] ? into->at[i] : from->at[i];
}

void clocks_join(Clocks *into, const Clocks *from) {
    clock_join(&into->seen, &from->seen);
    clock_join(&into->async, &from->async);
    clock_join(&into->tensor, &from->tensor);
}

uint32_t warp_tick(Warp *warp) {
    return warp->clocks.seen.at[warp->agent] = ++warp->time;
}

void warp_release(Warp *warp, Clocks *into) {
    warp_tick(warp);
    clocks_join(into, &warp->clocks);
}

void warp_acquire(Warp *warp, const Clocks *from) {
    clocks_join(&warp->clocks, from);
}

static bool checks(const Cta *cta) {
    return cta->cluster->launch->check_races && cta->cluster->cta_count <= CLOCK_CTAS;
}

static const char *agent_name(const Cta *cta, int agent, char *buffer, size_t size) {
    int local = agent % AGENTS_PER_CTA, rank = agent / AGENTS_PER_CTA;
    int used = local < MAX_WARPS
                   ? snprintf(buffer, size, "warp %d", local)
                   : snprintf(buffer, size, "%s",
                              local == AGENT_TENSOR ? "the tensor core" : "an asynchronous copy");
    if (rank != cta->rank)
        snprintf(buffer + used, size - (size_t)used, " of the CTA of rank %d", rank);
    return buffer;
}

typedef struct {
    Cta *cta;
    Warp *warp;
    const Op *op;
    const Async *async;
    const Clocks *clocks;
    const Clock *tensor; // what fence::after_thread_sync made usable
    int quarter, column; // of tensor memory; quarter -1: shared memory
    uint32_t offset;     // of shared memory
    int agent;
    uint32_t time;
    bool write;
} Access;

static const char *place_name(const Access *access, char *buffer, size_t size) {
    if (access->quarter < 0)
        snprintf(buffer, size, "shared offset %u", access->offset);
    else
        snprintf(buffer, size, "tensor memory column %d, lanes %d..%d,", access->column, 32 * access->quarter,
                 32 * access->quarter + 31);
    return buffer;
}

static void raise_fault(const Access *access, SimFaultKind kind, const char *text) {
    if (access->async)
        fault_async(access->cta, access->async, kind, "%s", text);
    else
        fault(access->warp, access->op, kind, "%s", text);
}

// A mistake of this access alone.
static bool refuse(const Access *access, SimFaultKind kind, const char *what) {
    char place[64], text[200];
    snprintf(text, sizeof text, "%s %s", place_name(access, place, sizeof place), what);
    raise_fault(access, kind, text);
    return false;
}

static bool report(const Access *access, SimFaultKind kind, int other, uint32_t line, bool other_wrote,
                   const char *missing) {
    char name[64], place[64], text[400];
    agent_name(access->cta, other, name, sizeof name);
    place_name(access, place, sizeof place);
    snprintf(text, sizeof text, "%s is %s %s, but was %s by %s at PTX line %u: %s", place,
             access->write ? "written" : "read", access->async ? "by this asynchronous operation" : "here",
             other_wrote ? "written" : "read", name, line, missing);
    raise_fault(access, kind, text);
    return false;
}

enum { ALL_BYTES = 15 }; // of a word

static const char *const NO_ORDER = "nothing orders the two accesses";
static const char *const NO_FENCE =
    "fence.proxy.async is missing between the writer's store and this asynchronous access";

// One word of shared memory, or 16 bytes that share a cell; `bytes`: those of the word that are accessed.
static inline bool check_shared(const Access *access, const Cell *cell, uint8_t bytes) {
    int writer = cell->writer - 1;
    bool own = writer == access->agent && !access->async;
    if (writer >= 0 && !own && cell->last & bytes) {
        if (access->clocks->seen.at[writer] < cell->time)
            return report(access, SIM_FAULT_RACE, writer, cell->line, true, NO_ORDER);
        if (access->async && cell->generic && !access->write && access->clocks->async.at[writer] < cell->time)
            return report(access, SIM_FAULT_PROXY, writer, cell->line, true, NO_FENCE);
    }
    for (int i = 0; i < 3 && access->write; i++) {
        int reader = cell->readers[i].agent - 1;
        if (reader < 0 || (reader == access->agent && !access->async) || !(cell->readers[i].bytes & bytes))
            continue;
        if (access->clocks->seen.at[reader] < cell->readers[i].time)
            return report(access, SIM_FAULT_RACE, reader, cell->readers[i].line, false, NO_ORDER);
    }
    return true;
}

static inline void note_write(Cell *cell, const Access *access, int line, uint8_t bytes) {
    cell->writer = (uint16_t)(access->agent + 1);
    cell->generic = !access->async;
    cell->written |= bytes & 15;
    cell->last = bytes;
    cell->time = access->time;
    cell->line = (uint32_t)line;
    if (bytes == ALL_BYTES)
        memset(cell->readers, 0, sizeof cell->readers);
}

static inline void note_read(Cell *cell, const Access *access, int line, uint8_t bytes) {
    int place = 0;
    for (int i = 0; i < 3; i++) {
        if (cell->readers[i].agent == access->agent + 1) {
            place = i;
            break;
        }
        if (cell->readers[i].agent == 0 || cell->readers[i].time < cell->readers[place].time)
            place = i;
    }
    bool same = cell->readers[place].agent == access->agent + 1;
    cell->readers[place].bytes = same ? cell->readers[place].bytes | bytes : bytes;
    cell->readers[place].agent = (uint16_t)(access->agent + 1);
    cell->readers[place].time = access->time;
    cell->readers[place].line = (uint32_t)line;
}

static Access access_of(Cta *cta, Warp *warp, const Op *op, const Async *async, bool write) {
    Access access = {.cta = cta, .warp = warp, .op = op, .async = async, .write = write, .quarter = -1};
    if (async) {
        access.agent = async->channel;
        access.time = async->time;
        access.clocks = &async->issued;
        access.tensor = &async->issued.tensor;
    } else {
        access.agent = warp->agent;
        access.time = warp_tick(warp);
        access.clocks = &warp->clocks;
        access.tensor = &warp->tensor_after;
    }
    return access;
}

static inline bool cell_access(Access *access, Cell *cell, uint32_t word, uint8_t bytes, bool check,
                               int line) {
    access->offset = word * 4;
    if (cell->barrier && access->write)
        return refuse(access, SIM_FAULT_BARRIER, "holds an mbarrier and is overwritten");
    if (!access->write && (cell->written & bytes) != bytes)
        return refuse(access, SIM_FAULT_UNWRITTEN, "is read, but was never written");
    if (check && !check_shared(access, cell, bytes))
        return false;
    if (access->write)
        note_write(cell, access, line, bytes);
    else
        note_read(cell, access, line, bytes);
    return true;
}

// Gives each word of the 16 bytes its own cell.
static void split_cells(Cta *cta, uint32_t piece) {
    for (uint32_t i = 1; i < 4 && !cta->split[piece]; i++)
        cta->cells[4 * piece + i] = cta->cells[4 * piece];
    cta->split[piece] = 1;
}

void race_mark_barrier(Cta *cta, uint32_t offset, bool is_barrier) {
    split_cells(cta, offset / 16);
    for (uint32_t i = 0; i < 2; i++)
        cta->cells[offset / 4 + i].barrier = is_barrier;
}

static bool shared_access(Cta *cta, Warp *warp, const Op *op, const Async *async, uint32_t offset,
                          uint32_t bytes, bool write) {
    Access access = access_of(cta, warp, op, async, write);
    int line = async ? async->line : op->line;
    bool check = checks(cta);
    uint32_t end = offset + bytes;
    for (uint32_t piece = offset / 16; piece * 16 < end; piece++) {
        uint32_t first = offset > piece * 16 ? offset : piece * 16,
                 last = end < piece * 16 + 16 ? end : piece * 16 + 16;
        bool whole = last - first == 16;
        if (whole && !cta->split[piece]) {
            if (!cell_access(&access, &cta->cells[4 * piece], 4 * piece, ALL_BYTES, check, line))
                return false;
            continue;
        }
        split_cells(cta, piece);
        for (uint32_t word = first / 4; word * 4 < last; word++) {
            uint32_t from = first > word * 4 ? first - word * 4 : 0,
                     to = last < word * 4 + 4 ? last - word * 4 : 4;
            uint8_t mask = (uint8_t)((1u << to) - (1u << from));
            if (!cell_access(&access, &cta->cells[word], word, mask, check, line))
                return false;
        }
        if (whole && write)
            cta->split[piece] = 0; // the four cells are the same again
    }
    return true;
}

bool race_shared_read(Cta *cta, Warp *warp, const Op *op, const Async *async, uint32_t offset,
                      uint32_t bytes) {
    return shared_access(cta, warp, op, async, offset, bytes, false);
}

bool race_shared_write(Cta *cta, Warp *warp, const Op *op, const Async *async, uint32_t offset,
                       uint32_t bytes) {
    return shared_access(cta, warp, op, async, offset, bytes, true);
}

// Tensor memory: ordered only through fence::before_thread_sync, a synchronisation and
// fence::after_thread_sync.
static bool check_tensor(const Access *access, int other, uint32_t time, uint32_t line, bool other_wrote) {
    if (other < 0 || other == access->agent)
        return true;
    if (access->clocks->seen.at[other] < time && !(access->async && access->tensor->at[other] >= time))
        return report(access, SIM_FAULT_RACE, other, line, other_wrote, NO_ORDER);
    if (access->tensor->at[other] < time)
        return report(access, SIM_FAULT_RACE, other, line, other_wrote,
                      "tcgen05.wait or tcgen05.fence::before_thread_sync is missing before the other's "
                      "arrival, or fence::after_thread_sync after this side's wait");
    return true;
}

static bool tensor_access(Cta *cta, Warp *warp, const Op *op, const Async *async, int quarter, int column,
                          bool write) {
    Cell *cell = &cta->tensor_cells[quarter * TMEM_COLUMNS + column];
    Access access = access_of(cta, warp, op, async, write);
    int line = async ? async->line : op->line;
    access.quarter = quarter;
    access.column = column;
    if (!write && !cell->writer)
        return refuse(&access, SIM_FAULT_UNWRITTEN, "is read, but was never written");
    if (checks(cta)) {
        if (!check_tensor(&access, cell->writer - 1, cell->time, cell->line, true))
            return false;
        // A warp reads its own store only after wait::st.
        if (!async && !write && cell->writer - 1 == warp->agent && warp->unwaited_stores &&
            cell->time >= warp->unwaited_stores)
            return report(&access, SIM_FAULT_RACE, warp->agent, cell->line, true,
                          "tcgen05.wait::st is missing");
        for (int i = 0; i < 3 && write; i++)
            if (!check_tensor(&access, cell->readers[i].agent - 1, cell->readers[i].time,
                              cell->readers[i].line, false))
                return false;
    }
    if (write)
        note_write(cell, &access, line, ALL_BYTES);
    else
        note_read(cell, &access, line, ALL_BYTES);
    return true;
}

bool race_tensor_read(Cta *cta, Warp *warp, const Op *op, const Async *async, int quarter, int column) {
    return tensor_access(cta, warp, op, async, quarter, column, false);
}

bool race_tensor_write(Cta *cta, Warp *warp, const Op *op, const Async *async, int quarter, int column) {
    return tensor_access(cta, warp, op, async, quarter, column, true);
}
