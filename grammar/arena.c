#include "grammar/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 256 * 1024, ALIGNMENT = 16 };

typedef struct Block {
    struct Block *next;
    size_t used, size;
    // Bytes follow, aligned.
} Block;

struct Arena {
    Block *blocks;
};

static void out_of_memory(void) {
    fputs("jfac: out of memory\n", stderr);
    exit(71);
}

Arena *arena_new(void) {
    return calloc(1, sizeof(Arena));
}

void arena_free(Arena *arena) {
    if (!arena)
        return;
    for (Block *block = arena->blocks; block;) {
        Block *next = block->next;
        free(block);
        block = next;
    }
    free(arena);
}

static size_t header_bytes(void) {
    return (sizeof(Block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void *arena_alloc(Arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 2)
        out_of_memory();
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    Block *block = arena->blocks;
    if (!block || block->size - block->used < bytes) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block = calloc(1, header_bytes() + size);
        if (!block)
            out_of_memory();
        block->size = size;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *memory = (char *)block + header_bytes() + block->used;
    block->used += bytes;
    return memory;
}

char *arena_copy(Arena *arena, const char *text, size_t length) {
    char *copy = arena_alloc(arena, length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *arena_vformat(Arena *arena, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = arena_alloc(arena, length < 0 ? 1 : (size_t)length + 1);
    if (text && length >= 0)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *arena_format(Arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = arena_vformat(arena, format, args);
    va_end(args);
    return text;
}
