// emit.h: from an LLVM module to PTX text, and from PTX to a cubin by ptxas. Takes what lower made; gives
// text and bytes in the caller's arena. Messages are one sentence, in the arena too.
#ifndef JFA_COMPILER_EMIT_EMIT_H
#define JFA_COMPILER_EMIT_EMIT_H

#include "compiler/target.h"
#include "grammar/arena.h"

#include <llvm-c/Core.h>

typedef struct {
    double passes_ms;  // verifier and IR passes
    double codegen_ms; // selection, registers, text
} EmitTimes;

// Sets the module's triple and data layout, verifies it, runs the passes (which change it) and prints PTX for
// the target. `times` may be NULL. False: *message says what LLVM said; that is a bug of the compiler, never
// of its input. Errors that LLVM itself calls fatal end the process with status 70: its C API has no way back
// from them.
bool emit_ptx(LLVMModuleRef module, const Target *target, Arena *arena, EmitTimes *times, char **ptx,
              const char **message);

// The module as LLVM IR text.
char *emit_llvm_text(LLVMModuleRef module, Arena *arena);

// What ptxas says of one kernel. Bytes of stack and spills are a thread's.
typedef struct {
    const char *name;
    int registers, barriers;
    int64_t stack_bytes, spill_store_bytes, spill_load_bytes;
    int64_t shared_bytes; // static shared memory
    int64_t code_bytes;   // of its section in the cubin
} EmitEntry;

typedef struct {
    bool found;          // there is a ptxas
    const char *path;    // which one
    const char *version; // "13.0.88"; "" when it doesn't say
    int status;          // its exit status; -n: ended by signal n
    const EmitEntry *entries;
    int entry_count;
    // Lines that cost speed or report trouble: warnings, errors, and the C75xx notes, by which ptxas says
    // that it ignored setmaxnreg or serialised wgmma (they are "info" lines). Each without its "ptxas"
    // prefix.
    const char *const *notes;
    int note_count;
    bool has_c75;               // one of the notes is a C75xx
    int64_t spill_bytes;        // all entries, stores and loads
    bool is_too_old;            // it refused the target or the PTX version
    bool is_short_of_registers; // at launch, for the operands of one instruction
    const char *log;            // all that it printed
    double milliseconds;
} EmitReport;

typedef struct {
    const char *ptxas; // NULL: see emit_find_ptxas
    bool line_info;    // -lineinfo; without it the cubin holds neither source lines nor the PTX's text
} EmitCubinOptions;

// Where ptxas is: $JFAC_PTXAS, the one installed into the build folder, PATH, $CUDA_HOME/bin,
// /usr/local/cuda/bin. NULL: *message says where it was looked for. With $JFAC_PTXAS set nothing else is
// tried.
const char *emit_find_ptxas(Arena *arena, const char **message);

// "13.0.88", or "" when the program at `path` doesn't say.
const char *emit_ptxas_version(const char *path, Arena *arena);

// Assembles `ptx` (NUL-terminated). `options` may be NULL. True: *cubin and *length are set; a spill or a
// C75xx line is no failure here, the caller decides. False: *message; the report is filled as far as it goes
// (`found` false: no ptxas).
bool emit_cubin(const char *ptx, const Target *target, const EmitCubinOptions *options, Arena *arena,
                void **cubin, size_t *length, EmitReport *report, const char **message);

// Reads ptxas' log, as far as entries, notes and sums go.
void emit_parse_log(const char *log, Arena *arena, EmitReport *report);

// Writes beside `path` under a temporary name, syncs, renames: the file is there whole or not at all, also
// when a signal ends the process. "-" is standard output. False: *message, valid until the thread's next
// call.
bool file_write_whole(const char *path, const void *bytes, size_t length, const char **message);

#endif
