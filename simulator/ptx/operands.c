// operands.c: operands and instructions; uses of names that may be labels further down are noted for the end
// of the scope.
#include "simulator/ptx/state.h"

#include <string.h>

// ---------------------------------------------------------------- operands

PtxOperand ptx_blank(PtxOperandKind kind) {
    return (PtxOperand){.kind = kind, .reg = -1, .second = -1, .symbol = -1, .target = -1};
}

PtxOperand ptx_name(PtxParser *parser, const char *text, int line, int column) {
    const Name *name = ptx_find_name(parser, text);
    PtxOperand operand = ptx_blank(PTX_NAME);
    operand.name = text;
    if (!strcmp(text, "_")) {
        operand.kind = PTX_SINK;
    } else if (name && name->kind == NAME_REGISTER) {
        operand.kind = PTX_REG;
        operand.reg = name->value;
    } else if (name && name->kind == NAME_SYMBOL) {
        operand.kind = PTX_SYMBOL;
        operand.symbol = name->value;
    } else if (name && name->kind == NAME_TABLE) {
        return name->table;
    } else if (!strcmp(text, "WARP_SZ")) {
        operand.kind = PTX_INT;
        operand.integer = 32;
    } else if (text[0] == '%') {
        size_t length = strlen(text); // a special register has no number of its own but %envreg, %pm
        bool numbered = text[length - 1] >= '0' && text[length - 1] <= '9' && strcmp(text, "%clock64");
        if (numbered)
            ptx_fail(parser, line, column, "unknown register %.120s", text);
        operand.kind = PTX_SPECIAL;
    }
    return operand; // PTX_NAME: a label, if it turns up
}

PtxOperand ptx_pair(PtxParser *parser, const char *first, const char *second, int line, int column) {
    PtxOperand pair = ptx_name(parser, first, line, column), other = ptx_name(parser, second, line, column);
    bool good = pair.kind == PTX_REG || pair.kind == PTX_SINK;
    if (!good || (other.kind != PTX_REG && other.kind != PTX_SINK))
        ptx_fail(parser, line, column, "%.80s|%.80s must be two registers", first, second);
    pair.second = other.reg;
    return pair;
}

PtxList *ptx_append(PtxParser *parser, PtxList *before, PtxOperand operand, int line, int column) {
    PtxList *list = ptx_take(parser, sizeof *list);
    *list = (PtxList){operand, before, before ? before->count + 1 : 1, line, column};
    return list;
}

PtxOperand ptx_group(PtxParser *parser, PtxOperandKind kind, const PtxList *items) {
    PtxOperand group = ptx_blank(kind);
    group.count = items->count;
    group.items = ptx_take(parser, sizeof(PtxOperand) * (size_t)(items->count + BLANK_OPERANDS));
    for (int i = 0; i < BLANK_OPERANDS; i++)
        group.items[group.count + i] = ptx_blank(PTX_NAME);
    for (int i = group.count - 1; i >= 0; i--, items = items->before)
        group.items[i] = items->operand;
    return group;
}

static void expect_label(PtxParser *parser, const PtxOperand *operand, Pending where) {
    if (operand->kind != PTX_NAME)
        return;
    Pending *pending = ptx_take(parser, sizeof *pending);
    *pending = where;
    pending->name = operand->name;
    pending->before = parser->scope->pending;
    parser->scope->pending = pending;
}

// The address's base and a tensor's coordinates lie one level down.
static void find_labels(PtxParser *parser, const PtxOperand *operand, Pending where) {
    expect_label(parser, operand, where);
    for (int i = 0; i < operand->count; i++) {
        const PtxOperand *item = &operand->items[i];
        where.item = i;
        if (operand->kind == PTX_VECTOR)
            expect_label(parser, item, where);
        else if (item->kind == PTX_NAME)
            ptx_fail(parser, where.line, where.column, "unknown register or variable %.120s", item->name);
    }
}

// A tensor's coordinates as items beside the map.
static PtxOperand flat_tensor(PtxParser *parser, const PtxOperand *tensor) {
    const PtxOperand *coordinates = &tensor->items[1];
    PtxOperand flat = ptx_blank(PTX_TENSOR);
    flat.count = coordinates->count + 1;
    flat.items = ptx_take(parser, sizeof(PtxOperand) * (size_t)flat.count);
    flat.items[0] = tensor->items[0];
    memcpy(flat.items + 1, coordinates->items, sizeof(PtxOperand) * (size_t)coordinates->count);
    return flat;
}

static const char *const *split(PtxParser *parser, const char *text, int *count) {
    const char *parts[64];
    *count = 0;
    for (const char *at = text; at;) {
        const char *dot = strchr(at, '.');
        if (*count < 64)
            parts[(*count)++] = ptx_copy(parser, at, dot ? (size_t)(dot - at) : strlen(at));
        at = dot ? dot + 1 : NULL;
    }
    const char **kept = ptx_take(parser, sizeof *kept * (size_t)*count);
    memcpy(kept, parts, sizeof *kept * (size_t)*count);
    return kept;
}

void ptx_instruction(PtxParser *parser, const char *predicate, bool negated, PtxWord opcode,
                     const PtxList *operands, int line, int column) {
    PtxEntry *entry = ptx_entry_now(parser);
    entry->instructions = ptx_grow(parser, entry->instructions, entry->instruction_count,
                                   &parser->instruction_capacity, sizeof(PtxInstruction));
    PtxInstruction instruction = {.text = opcode.text,
                                  .predicate = -1,
                                  .predicate_negated = negated,
                                  .line = line,
                                  .loc_file = opcode.loc_file,
                                  .loc_line = opcode.loc_line};
    instruction.parts = split(parser, opcode.text, &instruction.part_count);
    if (predicate) {
        const Name *name = ptx_find_name(parser, predicate);
        if (!name || name->kind != NAME_REGISTER || entry->registers[name->value].type != PTX_PRED)
            ptx_fail(parser, line, column, "%.120s is not a predicate register", predicate);
        instruction.predicate = name->value;
    }
    instruction.operands = parser->no_operands;
    if (operands) {
        Pending where = {.instruction = entry->instruction_count, .item = -1};
        PtxOperand all = ptx_group(parser, PTX_VECTOR, operands);
        instruction.operands = all.items;
        instruction.operand_count = all.count;
        for (int i = all.count - 1; i >= 0; i--, operands = operands->before) {
            if (all.items[i].kind == PTX_TENSOR)
                all.items[i] = flat_tensor(parser, &all.items[i]);
            where.operand = i;
            where.line = operands->line;
            where.column = operands->column;
            find_labels(parser, &all.items[i], where);
        }
    }
    entry->instructions[entry->instruction_count++] = instruction;
}
