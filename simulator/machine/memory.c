// memory.c: global memory (allocations with gaps between them) and the checks of an address.
#include "simulator/machine/machine.h"

#include <stdlib.h>
#include <string.h>

Allocation *machine_allocation(Sim *sim, uint64_t address, uint64_t bytes) {
    // Allocations are in ascending order of address.
    int low = 0, high = sim->allocation_count - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        Allocation *a = &sim->allocations[middle];
        if (address < a->address)
            high = middle - 1;
        else if (address >= a->address + a->bytes)
            low = middle + 1;
        else
            return !a->freed && bytes <= a->address + a->bytes - address ? a : NULL;
    }
    return NULL;
}

// Where an address out of bounds lies, for the message.
static const Allocation *nearest(const Sim *sim, uint64_t address) {
    const Allocation *best = NULL;
    for (int i = 0; i < sim->allocation_count; i++)
        if (sim->allocations[i].address <= address)
            best = &sim->allocations[i];
    return best;
}

uint8_t *machine_global(Warp *warp, const Op *op, uint64_t address, uint32_t bytes, bool write) {
    if (address % bytes && (bytes & (bytes - 1)) == 0) {
        fault(warp, op, SIM_FAULT_ALIGNMENT, "global address 0x%llx is not aligned to %u bytes",
              (unsigned long long)address, bytes);
        return NULL;
    }
    Sim *sim = warp->cta->cluster->launch->sim;
    Allocation *a = machine_allocation(sim, address, bytes);
    if (!a) {
        const Allocation *near = nearest(sim, address);
        if (near)
            fault(warp, op, SIM_FAULT_BOUNDS,
                  "%u bytes at global address 0x%llx are outside every allocation: %llu bytes past the end "
                  "of one of %zu bytes%s",
                  bytes, (unsigned long long)address,
                  (unsigned long long)(address - near->address - near->bytes), near->bytes,
                  near->freed ? " (freed)" : "");
        else
            fault(warp, op, SIM_FAULT_BOUNDS,
                  "%u bytes at global address 0x%llx are outside every allocation", bytes,
                  (unsigned long long)address);
        return NULL;
    }
    uint64_t at = address - a->address;
    if (write) {
        memset(a->written + at, 1, bytes);
        return a->data + at;
    }
    for (uint32_t i = 0; i < bytes; i++)
        if (!a->written[at + i]) {
            fault(warp, op, SIM_FAULT_UNWRITTEN,
                  "global address 0x%llx (byte %llu of an allocation of %zu) is read, but was never written",
                  (unsigned long long)(address + i), (unsigned long long)(at + i), a->bytes);
            return NULL;
        }
    return a->data + at;
}

bool machine_has_exited(const Cta *cta) {
    for (int w = 0; w < cta->warp_count; w++)
        if (cta->warps[w].group_count)
            return false;
    return true;
}

Cta *machine_shared(Warp *warp, const Op *op, uint32_t address, uint32_t bytes, uint32_t *offset) {
    Cluster *cluster = warp->cta->cluster;
    uint32_t rank = address >> 24, place = address & 0xFFFFFF;
    if (rank >= (uint32_t)cluster->cta_count || place < SHARED_BASE ||
        place - SHARED_BASE + bytes > cluster->ctas[rank].shared_bytes) {
        fault(warp, op, SIM_FAULT_BOUNDS,
              "%u bytes at shared address 0x%x: the CTA has %u bytes of shared memory, from 0x%x", bytes,
              address, warp->cta->shared_bytes, SHARED_BASE | (uint32_t)warp->cta->rank << 24);
        return NULL;
    }
    if (place % bytes && (bytes & (bytes - 1)) == 0 && bytes <= 16) {
        fault(warp, op, SIM_FAULT_ALIGNMENT, "shared address 0x%x is not aligned to %u bytes", address,
              bytes);
        return NULL;
    }
    if (rank != (uint32_t)warp->cta->rank && machine_has_exited(&cluster->ctas[rank])) {
        fault(warp, op, SIM_FAULT_EXIT, "shared address 0x%x belongs to the CTA of rank %u, which has exited",
              address, rank);
        return NULL;
    }
    *offset = place - SHARED_BASE;
    return &cluster->ctas[rank];
}
