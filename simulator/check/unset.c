// unset.c: reads of registers that no instruction of the entry ever writes. Takes a decoded entry; such a
// read becomes an operation that reports itself, so that the check costs nothing while a kernel runs, and
// code that never runs may have it.
#include "simulator/machine/decode.h"

#include <stdlib.h>
#include <string.h>

// Instructions whose first operand is no result. Others write their first operand if it is not an address.
static bool first_is_read(const PtxInstruction *in) {
    static const char *const ROOTS[] = {"st",        "red",        "bra",       "brx",     "bar",
                                        "barrier",   "cp",         "fence",     "membar",  "tensormap",
                                        "stmatrix",  "prefetch",   "prefetchu", "discard", "applypriority",
                                        "nanosleep", "setmaxnreg", NULL};
    for (int i = 0; ROOTS[i]; i++)
        if (!strcmp(ROOTS[i], in->parts[0])) // a reduction at a barrier has a result
            return in->part_count < 2 || strncmp(in->parts[1], "red", 3) != 0;
    return false;
}

static void mark(const PtxOperand *operand, uint8_t *written) {
    if (operand->kind == PTX_REG)
        written[operand->reg] = 1;
    if ((operand->kind == PTX_REG || operand->kind == PTX_SINK) && operand->second >= 0)
        written[operand->second] = 1;
    for (int i = 0; operand->kind == PTX_VECTOR && i < operand->count; i++)
        mark(&operand->items[i], written);
}

static int unset_in(const PtxOperand *operand, const uint8_t *written) {
    if (operand->kind == PTX_REG && !written[operand->reg])
        return operand->reg;
    for (int i = 0; i < operand->count; i++) {
        int found = unset_in(&operand->items[i], written);
        if (found >= 0)
            return found;
    }
    return -1;
}

static int unset_read(const PtxInstruction *in, const uint8_t *written) {
    if (in->predicate >= 0 && !written[in->predicate])
        return in->predicate;
    for (int i = 0; i < in->operand_count; i++) {
        int found = unset_in(&in->operands[i], written);
        if (found >= 0)
            return found;
    }
    return -1;
}

static void run_unset(Warp *warp, const Op *op, uint32_t mask) {
    (void)mask;
    const PtxEntry *entry = warp->cta->cluster->launch->program->entry;
    fault(warp, op, SIM_FAULT_REGISTERS, "register %s is read, but nothing writes it",
          entry->registers[op->immediate].name);
}

bool check_unset_registers(Program *program) {
    const PtxEntry *entry = program->entry;
    uint8_t *written = calloc((size_t)entry->register_count + 1, 1);
    if (!written)
        return false;
    for (int i = 0; i < entry->instruction_count; i++)
        if (entry->instructions[i].operand_count && !first_is_read(&entry->instructions[i]))
            mark(&entry->instructions[i].operands[0], written);
    for (int i = 0; i < entry->instruction_count; i++) {
        int found = unset_read(&entry->instructions[i], written);
        if (found < 0)
            continue;
        Op *op = &program->ops[i];
        op->run = run_unset;
        op->predicate = -1;
        op->flags = 0;
        op->immediate = found;
    }
    free(written);
    return true;
}
