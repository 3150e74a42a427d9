// ptxas.c: takes PTX text, gives a cubin and what ptxas had to say. Requires a ptxas that knows the target.
#include "compiler/emit/emit.h"
#include "compiler/emit/internal.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CUBIN_MAX_BYTES = 256 * 1024 * 1024 };

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

// "Cuda compilation tools, release 13.0, V13.0.88" gives "13.0.88".
const char *emit_ptxas_version(const char *path, Arena *arena) {
    const char *const argv[] = {path, "--version", NULL};
    const char *output = "", *message;
    int status;
    if (!process_run(argv, arena, &output, &status, &message) || status)
        return "";
    const char *mark = strstr(output, ", V");
    if (!mark)
        return "";
    mark += 3;
    return arena_copy(arena, mark, strspn(mark, "0123456789."));
}

// ---------------------------------------------------------------- the cubin

static bool read_file(const char *path, Arena *arena, void **bytes, size_t *length, const char **message) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        *message = arena_format(arena, "ptxas left no output: %s", strerror(errno));
        return false;
    }
    long size = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
    bool good = size > 0 && size <= CUBIN_MAX_BYTES && !fseek(file, 0, SEEK_SET);
    if (good) {
        *bytes = arena_alloc(arena, (size_t)size);
        *length = (size_t)size;
        good = fread(*bytes, 1, *length, file) == *length;
    }
    fclose(file);
    if (!good)
        *message = arena_format(arena, "ptxas' output (%ld bytes) can't be read", size);
    return good;
}

// The bytes of section ".text.NAME" (a cubin is an ELF file, 64 bits, little-endian), or 0.
static int64_t code_bytes(const unsigned char *cubin, size_t length, const char *entry) {
    static const char PREFIX[] = ".text.";
    Elf64_Ehdr header;
    if (length < sizeof header)
        return 0;
    memcpy(&header, cubin, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_shentsize != sizeof(Elf64_Shdr) ||
        header.e_shoff > length || (length - header.e_shoff) / sizeof(Elf64_Shdr) < header.e_shnum ||
        header.e_shstrndx >= header.e_shnum)
        return 0;
    const unsigned char *table = cubin + header.e_shoff;
    Elf64_Shdr names;
    memcpy(&names, table + header.e_shstrndx * sizeof names, sizeof names);
    size_t entry_length = strlen(entry);
    for (int i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, table + (size_t)i * sizeof section, sizeof section);
        uint64_t at = names.sh_offset + section.sh_name, needed = sizeof PREFIX - 1 + entry_length + 1;
        if (at < names.sh_offset || at > length || length - at < needed)
            continue;
        if (!memcmp(cubin + at, PREFIX, sizeof PREFIX - 1) &&
            !memcmp(cubin + at + sizeof PREFIX - 1, entry, entry_length + 1))
            return (int64_t)section.sh_size;
    }
    return 0;
}

// ---------------------------------------------------------------- the run

typedef struct {
    char folder[TEMPORARY_PATH_BYTES], ptx[TEMPORARY_PATH_BYTES], cubin[TEMPORARY_PATH_BYTES];
    int numbers[3]; // as known to temporary.c: folder, ptx, cubin
} Workspace;

static void leave(Workspace *work) {
    for (int i = 2; i >= 0; i--)
        temporary_remove(work->numbers[i]);
}

static bool enter(Workspace *work, Arena *arena, const char **message) {
    work->numbers[1] = work->numbers[2] = -1;
    work->numbers[0] = temporary_folder(work->folder);
    if (work->numbers[0] < 0) {
        *message = arena_format(arena, "can't make a temporary folder: %s", strerror(errno));
        return false;
    }
    int ptx = snprintf(work->ptx, sizeof work->ptx, "%s/kernel.ptx", work->folder);
    int cubin = snprintf(work->cubin, sizeof work->cubin, "%s/kernel.cubin", work->folder);
    if (ptx < (int)sizeof work->ptx && cubin < (int)sizeof work->cubin) {
        work->numbers[1] = temporary_know_path(work->ptx);
        work->numbers[2] = temporary_know_path(work->cubin);
    }
    if (work->numbers[1] < 0 || work->numbers[2] < 0) {
        *message = arena_format(arena, "can't make temporary files in %s", work->folder);
        leave(work);
        return false;
    }
    return true;
}

static bool run_ptxas(const Workspace *work, const Target *target, const EmitCubinOptions *options,
                      Arena *arena, EmitReport *report, const char **message) {
    const char *argv[8];
    int count = 0;
    argv[count++] = report->path;
    argv[count++] = "-v";
    argv[count++] = arena_format(arena, "-arch=%s", target->name);
    if (options && options->line_info)
        argv[count++] = "-lineinfo";
    argv[count++] = work->ptx;
    argv[count++] = "-o";
    argv[count++] = work->cubin;
    argv[count] = NULL;
    double start = now_ms();
    bool ran = process_run(argv, arena, &report->log, &report->status, message);
    report->milliseconds = now_ms() - start;
    if (!ran)
        return false;
    emit_parse_log(report->log, arena, report);
    if (report->status == 0)
        return true;
    // What ptxas 12 and 13 say of an -arch and of a .version that they don't know.
    report->is_too_old = strstr(report->log, "is not defined for option 'gpu-name'") ||
                         strstr(report->log, "Unsupported .version");
    report->is_short_of_registers = strstr(report->log, "Insufficient registers");
    const char *first = report->note_count ? report->notes[0] : report->log;
    *message = report->status < 0
                   ? arena_format(arena, "ptxas was ended by signal %d", -report->status)
                   : arena_format(arena, "ptxas refuses the PTX (status %d): %s", report->status, first);
    return false;
}

// Where PTX has .loc lines, ptxas keeps them and the whole PTX text in the cubin even without -lineinfo. So
// they are left out unless they are asked for: the lines of PTX ISA, "Debugging Directives", that LLVM writes
// for line tables.
static const char *without_line_info(const char *ptx, Arena *arena) {
    static const char *const DIRECTIVES[] = {".loc", ".file", ".section"};
    char *kept = arena_alloc(arena, strlen(ptx) + 1), *end = kept;
    while (*ptx) {
        size_t length = strcspn(ptx, "\n"), indent = strspn(ptx, " \t"),
               word = strcspn(ptx + indent, " \t\n");
        length += ptx[length] == '\n';
        bool is_line_info = false;
        for (size_t i = 0; i < sizeof DIRECTIVES / sizeof DIRECTIVES[0]; i++)
            is_line_info = is_line_info ||
                           (strlen(DIRECTIVES[i]) == word && !strncmp(ptx + indent, DIRECTIVES[i], word));
        if (!is_line_info) {
            memcpy(end, ptx, length);
            end += length;
        }
        ptx += length;
    }
    return kept;
}

static bool assemble(const Workspace *work, const char *ptx, const Target *target,
                     const EmitCubinOptions *options, Arena *arena, void **cubin, size_t *length,
                     EmitReport *report, const char **message) {
    const char *complaint;
    if (!options || !options->line_info)
        ptx = without_line_info(ptx, arena);
    if (!file_write_whole(work->ptx, ptx, strlen(ptx), &complaint)) {
        *message = arena_format(arena, "%s", complaint);
        return false;
    }
    if (!run_ptxas(work, target, options, arena, report, message) ||
        !read_file(work->cubin, arena, cubin, length, message))
        return false;
    EmitEntry *entries = arena_array(arena, EmitEntry, report->entry_count);
    for (int i = 0; i < report->entry_count; i++) {
        entries[i] = report->entries[i];
        entries[i].code_bytes = code_bytes(*cubin, *length, entries[i].name);
    }
    report->entries = entries;
    return true;
}

bool emit_cubin(const char *ptx, const Target *target, const EmitCubinOptions *options, Arena *arena,
                void **cubin, size_t *length, EmitReport *report, const char **message) {
    *report = (EmitReport){.log = "", .version = ""};
    report->path = options && options->ptxas ? options->ptxas : emit_find_ptxas(arena, message);
    if (!report->path)
        return false;
    report->found = true;
    report->version = emit_ptxas_version(report->path, arena);
    Workspace work;
    if (!enter(&work, arena, message))
        return false;
    bool good = assemble(&work, ptx, target, options, arena, cubin, length, report, message);
    leave(&work);
    return good;
}
