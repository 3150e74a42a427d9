// internal.h: what the files of this folder share.
#ifndef JFA_COMPILER_EMIT_INTERNAL_H
#define JFA_COMPILER_EMIT_INTERNAL_H

#include "grammar/arena.h"

#include <llvm-c/Core.h>

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TEMPORARY_PATH_BYTES = 4096 };

// ---- temporary.c: files and folders that must not outlive the process, and child processes likewise. Each
// is known under a number until it is forgotten; a signal that ends the process removes those still known,
// newest first.

// The number, or -1 when too many are known or the path is too long.
int temporary_know_path(const char *path);
int temporary_know_child(pid_t child);
void temporary_forget(int number); // -1: does nothing

// A fresh folder under $TMPDIR (or /tmp), known to be temporary. Its number, or -1 and errno.
int temporary_folder(char path[TEMPORARY_PATH_BYTES]);
// Removes the file or the empty folder, and forgets it.
void temporary_remove(int number);

// ---- annotate.c

// Says by metadata, as LLVM 20 wants it, what the functions' attributes say to LLVM 21 and later.
void emit_annotate(LLVMModuleRef module, Arena *arena);

// ---- process.c

// Runs argv[0] (a path) to its end with empty input; what it prints, both streams in order, goes to *output.
// True: it ran; *status is its exit status, or -signal. False: *message.
bool process_run(const char *const *argv, Arena *arena, const char **output, int *status,
                 const char **message);

#endif
