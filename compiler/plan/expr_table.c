#include "compiler/plan/expr_table.h"

static ExprEntry *find(ExprEntry *entries, int capacity, const Expr *expr) {
    uint64_t hash = (uint64_t)(uintptr_t)expr * 0x9e3779b97f4a7c15u;
    int at = (int)(hash >> 40) & (capacity - 1);
    while (entries[at].expr && entries[at].expr != expr)
        at = (at + 1) & (capacity - 1);
    return &entries[at];
}

static void grow(ExprTable *table) {
    int capacity = table->capacity ? 2 * table->capacity : 64;
    ExprEntry *entries = arena_array(table->arena, ExprEntry, capacity);
    for (int i = 0; i < table->capacity; i++)
        if (table->entries[i].expr)
            *find(entries, capacity, table->entries[i].expr) = table->entries[i];
    table->entries = entries;
    table->capacity = capacity;
}

int *expr_table_at(ExprTable *table, const Expr *expr) {
    if (2 * table->count >= table->capacity)
        grow(table);
    ExprEntry *entry = find(table->entries, table->capacity, expr);
    if (!entry->expr) {
        entry->expr = expr;
        table->count++;
    }
    return &entry->number;
}
