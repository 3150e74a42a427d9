// cli.h: what the commands of jfac share: exit statuses, options, the table of commands, one compilation.
#ifndef JFA_COMPILER_CLI_CLI_H
#define JFA_COMPILER_CLI_CLI_H

#include "compiler/emit/emit.h"
#include "compiler/jfac.h"

// Part of jfac's interface: scripts rely on them. See also `jfac --help`.
enum {
    STATUS_GOOD = 0,
    STATUS_INPUT = 1,       // errors in the input
    STATUS_USAGE = 2,       // wrong usage
    STATUS_ENVIRONMENT = 3, // no ptxas, a file that can't be written, no such device
    STATUS_MISMATCH = 4,    // `run`, `tune`: a kernel's output isn't what it must be
    STATUS_INTERNAL = 70,   // a mistake in jfac (EX_SOFTWARE of sysexits.h)
    STATUS_MEMORY = 71,     // out of memory (EX_OSERR)
};

#define DEFAULT_TARGET "sm_100a"
enum { MAX_ROUNDS = 1000 };

typedef struct {
    const char **items;
    int count, capacity;
} TextList;

typedef struct {
    const char *name; // as typed, without "--"
    int64_t value;
} NamedNumber;

typedef struct {
    Arena *arena;
    const char *file;
    bool help;
    // The compilation.
    const char *target; // NULL: not given
    const char *kernel;
    TextList defines, include_dirs;
    // Output.
    const char *output; // NULL: the default
    const char *emit;
    bool json, timings, line_info, strict;
    int64_t watchdog_ms;              // -1: not given
    const char *tuned, *tuned_device; // NULL: not given
    // `new`.
    const char *like;
    // `run`.
    const char *device, *against, *lens_file, *image;
    TextList lens, params, broadcast, without;
    int64_t limit, batch, length; // -1: not given
    int64_t seed, seeds;
    bool no_poison;
    // `tune`.
    const char *measure;
    bool exhaustive;
    int64_t limit_time, rounds; // seconds, -1: not given
    NamedNumber *numbers;       // options that no table names: extents of the kernel's dims
    int number_count, number_capacity;
} CliOptions;

typedef struct Command {
    const char *name, *summary, *usage, *examples;
    int (*run)(CliOptions *options);
    bool takes_file;
    bool takes_dims; // unknown `--name NUMBER` options are kept for it
} Command;

extern const Command COMMANDS[];
extern const int COMMAND_COUNT;

int command_build(CliOptions *options);
int command_check(CliOptions *options);
int command_new(CliOptions *options);
int command_explain(CliOptions *options);
int command_run(CliOptions *options);
int command_tune(CliOptions *options);
int command_version(CliOptions *options);

// ---- options.c

// Fills in defaults and reads the arguments behind the command's name. False: a message was printed.
bool options_parse(CliOptions *options, const Command *command, int argc, char **argv);
// Options of one command, one a line.
void options_print(const Command *command, FILE *out);

// ---- help.c

void help_general(FILE *out);
void help_command(const Command *command, FILE *out);

// Prints "jfac: " and the message to standard error and gives STATUS_USAGE.
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
// "; did you mean '...'?" when one of the names is close, else "".
const char *suggestion(Arena *arena, const char *name, const char *const *names, int count);

// ---- session.c: one compilation on behalf of a command.

typedef struct {
    Jfac *jfac;
    JfacOptions options;
    const char *message; // of an internal error
    bool step_good;      // what the last step returned
} Session;

// Exits are left to the caller: a status other than STATUS_GOOD means that it is to be returned after
// session_close.
int session_open(Session *session, CliOptions *options);
void session_close(Session *session);

// Prints the diagnostics, sorted, and gives the status that a step's result calls for.
int session_status(Session *session, bool step_is_good);

// Which constants came from the tuned file, or why none did, on standard error. Nothing if there is no such
// file.
void session_tell_tuned(const Session *session);

typedef enum { QUALITY_GOOD, QUALITY_SERIALISED, QUALITY_SPILLS } KernelQuality;

// What makes an assembled kernel not worth having: products that don't overlap, and with `strict` spills.
KernelQuality session_quality(const EmitReport *report, bool strict);

// Assembles the session's PTX; prints why not. ptxas' remarks are printed as warnings.
int session_assemble(Session *session, const CliOptions *options, void **cubin, size_t *length,
                     EmitReport *report);

int internal_error(const char *message);

#endif
