// arena.h: memory that lives as long as one compilation and is freed whole.
#ifndef JFA_GRAMMAR_ARENA_H
#define JFA_GRAMMAR_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct Arena Arena;

Arena *arena_new(void); // NULL when memory is out
void arena_free(Arena *arena);

// Zeroed memory, aligned for any type. When memory is out, prints a message and ends the process with status
// 71: a compiler can do nothing sensible then, and no output file exists before the last step.
void *arena_alloc(Arena *arena, size_t bytes);
char *arena_copy(Arena *arena, const char *text, size_t length); // NUL-terminated copy
char *arena_format(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vformat(Arena *arena, const char *format, va_list args);

#define arena_new_of(arena, Type) ((Type *)arena_alloc((arena), sizeof(Type)))
#define arena_array(arena, Type, count) ((Type *)arena_alloc((arena), sizeof(Type) * (size_t)(count)))

#endif
