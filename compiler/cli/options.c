// options.c: the table of options, and the reader of a command line.
#include "compiler/cli/cli.h"
#include "runtime/manifest.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { OPTION_FLAG, OPTION_TEXT, OPTION_LIST, OPTION_NUMBER } OptionKind;

enum {
    FOR_BUILD = 1,
    FOR_CHECK = 2,
    FOR_EXPLAIN = 4,
    FOR_RUN = 8,
    FOR_VERSION = 16,
    FOR_TUNE = 32,
    FOR_NEW = 64
};
enum {
    FOR_ONE = FOR_BUILD | FOR_CHECK | FOR_EXPLAIN | FOR_RUN, // compile a file once
    FOR_FILES = FOR_ONE | FOR_TUNE,
    FOR_DEVICES = FOR_RUN | FOR_TUNE,
    FOR_ALL = FOR_FILES | FOR_VERSION | FOR_NEW,
};

typedef struct {
    const char *name;     // with its dashes
    const char *argument; // how help calls it; NULL: none
    OptionKind kind;
    int commands;
    size_t offset; // into CliOptions: bool, const char *, TextList or int64_t
    const char *help;
} Option;

#define FIELD(name) offsetof(CliOptions, name)

static const Option OPTIONS[] = {
    {"--like", "FILE", OPTION_TEXT, FOR_NEW, FIELD(like), "the file whose kernel the new one starts from"},
    {"-o", "FILE", OPTION_TEXT, FOR_NEW, FIELD(output),
     "the new file (default: NAME.jfa); - is standard output"},
    {"--target", "NAME", OPTION_TEXT, FOR_FILES, FIELD(target), "the chip: sm_100a (default) or sm_90a"},
    {"--kernel", "NAME", OPTION_TEXT, FOR_FILES | FOR_NEW, FIELD(kernel),
     "which kernel, when the file has several"},
    {"-D", "NAME=VALUE", OPTION_LIST, FOR_FILES, FIELD(defines),
     "overrides a constant of the schedule or a setting of the kernel; may be repeated"},
    {"-I", "FOLDER", OPTION_LIST, FOR_FILES | FOR_NEW, FIELD(include_dirs),
     "where `use` looks after the file's own folder; jfac's templates are always searched; may be repeated"},
    {"--tuned", "FILE", OPTION_TEXT, FOR_ONE, FIELD(tuned),
     "takes the schedule's constants from what jfac tune wrote, if it was tuned for this; -D goes before"},
    {"--tuned-for", "DEVICE", OPTION_TEXT, FOR_ONE, FIELD(tuned_device),
     "takes only what was tuned on the device of that name (run: the one it runs on)"},
    {"-o", "FILE", OPTION_TEXT, FOR_TUNE, FIELD(output),
     "the tuned file (default: KERNEL.tuned); entries for something else in it are kept"},
    {"-o", "FILE", OPTION_TEXT, FOR_BUILD, FIELD(output),
     "the output (default: KERNEL.cubin, .ptx or .ll; ast and plan are printed); - is standard output"},
    {"--emit", "FORM", OPTION_TEXT, FOR_BUILD, FIELD(emit),
     "what to write: ast, plan, llvm, ptx or cubin (default)"},
    {"--line-info", NULL, OPTION_FLAG, FOR_BUILD | FOR_RUN, FIELD(line_info),
     "keep source lines in the cubin, for profilers"},
    {"--watchdog", "MS", OPTION_NUMBER, FOR_BUILD | FOR_RUN, FIELD(watchdog_ms),
     "a wait of the kernel that lasts longer ends it, and is told with its role, pipe and line"},
    {"--strict", NULL, OPTION_FLAG, FOR_BUILD | FOR_TUNE, FIELD(strict),
     "registers spilled to memory are an error; for tune, a reason to leave a kernel out"},
    {"--timings", NULL, OPTION_FLAG, FOR_BUILD, FIELD(timings),
     "print milliseconds of front end, LLVM and ptxas"},
    {"--json", NULL, OPTION_FLAG, FOR_CHECK, FIELD(json),
     "print the diagnostics as a JSON array on standard output"},
    {"--device", "NAME", OPTION_TEXT, FOR_DEVICES, FIELD(device),
     "sim:sm_100a, sim:sm_90a, cuda:0, ... (default: the target, simulated; for tune cuda:0)"},
    {"--against", "NAME", OPTION_TEXT, FOR_RUN, FIELD(against),
     "a second device: the same on both, and their outputs side by side"},
    {"--lens", "LIST", OPTION_LIST, FOR_DEVICES, FIELD(lens),
     "lengths of the sequences: 0,1,127 for all axes, 'q=0,1;k=5,6' for those named"},
    {"--lens-file", "FILE", OPTION_TEXT, FOR_DEVICES, FIELD(lens_file), "lengths for all axes, one a line"},
    {"--limit", "N", OPTION_NUMBER, FOR_DEVICES, FIELD(limit), "the first N lengths of the file only"},
    {"--batch", "N", OPTION_NUMBER, FOR_DEVICES, FIELD(batch), "N sequences of the length that --len says"},
    {"--len", "N", OPTION_NUMBER, FOR_DEVICES, FIELD(length), "see --batch"},
    {"--broadcast", "TENSOR", OPTION_LIST, FOR_DEVICES, FIELD(broadcast),
     "all sequences share the rows of this input; may be repeated"},
    {"--without", "TENSOR", OPTION_LIST, FOR_DEVICES, FIELD(without),
     "leaves out an optional tensor; may be repeated"},
    {"--param", "NAME=VALUE", OPTION_LIST, FOR_DEVICES, FIELD(params),
     "a param of the kernel; may be repeated"},
    {"--seed", "N", OPTION_NUMBER, FOR_DEVICES, FIELD(seed),
     "of inputs, layout and simulated order of events (default 0)"},
    {"--seeds", "N", OPTION_NUMBER, FOR_RUN, FIELD(seeds), "runs, with seeds from --seed on (default 1)"},
    {"--no-poison", NULL, OPTION_FLAG, FOR_RUN, FIELD(no_poison),
     "tensors lie dense, without NaN between and behind their sequences"},
    {"--image", "FILE", OPTION_TEXT, FOR_RUN, FIELD(image),
     "runs this PTX file or cubin, not what the compiler makes now"},
    {"--measure", "WHAT", OPTION_TEXT, FOR_TUNE, FIELD(measure),
     "time (default), or instructions, which a simulated device counts"},
    {"--rounds", "N", OPTION_NUMBER, FOR_TUNE, FIELD(rounds),
     "bursts of launches of each kernel, of which the median counts (default 11)"},
    {"--exhaustive", NULL, OPTION_FLAG, FOR_TUNE, FIELD(exhaustive),
     "tries all combinations, however many; else, if there are more than 32, one constant after the other"},
    {"--limit-time", "SECONDS", OPTION_NUMBER, FOR_TUNE, FIELD(limit_time),
     "builds nothing more after that long, and takes the best so far"},
    {"--help", NULL, OPTION_FLAG, FOR_ALL, FIELD(help), "this text"},
    {"-h", NULL, OPTION_FLAG, FOR_ALL, FIELD(help), NULL},
};
enum { OPTION_COUNT = sizeof OPTIONS / sizeof OPTIONS[0] };

static int command_bit(const Command *command) {
    static const struct {
        const char *name;
        int bit;
    } BITS[] = {{"build", FOR_BUILD},     {"check", FOR_CHECK}, {"new", FOR_NEW},
                {"explain", FOR_EXPLAIN}, {"run", FOR_RUN},     {"tune", FOR_TUNE}};
    for (size_t i = 0; i < sizeof BITS / sizeof BITS[0]; i++)
        if (!strcmp(BITS[i].name, command->name))
            return BITS[i].bit;
    return FOR_VERSION;
}

void options_print(const Command *command, FILE *out) {
    for (int i = 0; i < OPTION_COUNT; i++) {
        const Option *option = &OPTIONS[i];
        if (!option->help || !(option->commands & command_bit(command)))
            continue;
        int width = fprintf(out, "  %s %s", option->name, option->argument ? option->argument : "");
        fprintf(out, "%*s%s\n", width < 22 ? 22 - width : 1, "", option->help);
    }
    if (command->takes_dims)
        fprintf(out, "  --DIM N             extent of a dim of the family, as --heads 8 or --kv-heads 2\n");
}

// ---------------------------------------------------------------- lists that grow

static void list_add(Arena *arena, TextList *list, const char *text) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 8;
        const char **more = arena_array(arena, const char *, list->capacity);
        if (list->count)
            memcpy(more, list->items, sizeof *more * (size_t)list->count);
        list->items = more;
    }
    list->items[list->count++] = text;
}

static void number_add(CliOptions *options, const char *name, int64_t value) {
    if (options->number_count == options->number_capacity) {
        options->number_capacity = options->number_capacity ? 2 * options->number_capacity : 8;
        NamedNumber *more = arena_array(options->arena, NamedNumber, options->number_capacity);
        if (options->number_count)
            memcpy(more, options->numbers, sizeof *more * (size_t)options->number_count);
        options->numbers = more;
    }
    options->numbers[options->number_count++] = (NamedNumber){name, value};
}

// ---------------------------------------------------------------- one command line

typedef struct {
    CliOptions *options;
    const Command *command;
    int count, at;
    char **words;
} Reader;

static bool read_number(const char *name, const char *text, int64_t *value) {
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < 0) {
        usage_error("%s wants a whole number from 0 on, not '%s'", name, text);
        return false;
    }
    *value = number;
    return true;
}

static bool set(const Reader *reader, const Option *option, const char *value) {
    void *field = (char *)reader->options + option->offset;
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return true;
    case OPTION_TEXT:
        *(const char **)field = value;
        return true;
    case OPTION_LIST:
        list_add(reader->options->arena, field, value);
        return true;
    case OPTION_NUMBER:
        return read_number(option->name, value, field);
    }
    return false;
}

static const Option *find_option(const Reader *reader, const char *name, size_t length) {
    for (int i = 0; i < OPTION_COUNT; i++)
        if ((OPTIONS[i].commands & command_bit(reader->command)) && strlen(OPTIONS[i].name) == length &&
            !strncmp(OPTIONS[i].name, name, length))
            return &OPTIONS[i];
    return NULL;
}

static bool unknown_option(const Reader *reader, const char *name) {
    const char *names[OPTION_COUNT];
    int count = 0;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (OPTIONS[i].commands & command_bit(reader->command))
            names[count++] = OPTIONS[i].name;
    usage_error("%s has no option '%s'%s", reader->command->name, name,
                suggestion(reader->options->arena, name, names, count));
    return false;
}

// The value behind `=` or in the next word; NULL and a message: there is none.
static const char *take_value(Reader *reader, const char *name, const char *attached, const char *what) {
    if (attached)
        return attached;
    if (reader->at < reader->count)
        return reader->words[reader->at++];
    usage_error("%s wants %s behind it", name, what);
    return NULL;
}

static bool read_dim(Reader *reader, const char *name, const char *attached) {
    const char *value = take_value(reader, name, attached, "a number");
    int64_t number;
    // What isn't followed by a number was hardly meant as a dim.
    const char *digits = value && value[0] == '-' ? value + 1 : value;
    if (value && !(digits[0] >= '0' && digits[0] <= '9'))
        return unknown_option(reader, name);
    if (!value || !read_number(name, value, &number))
        return false;
    number_add(reader->options, name + 2, number);
    return true;
}

static bool read_option(Reader *reader, const char *word) {
    Arena *arena = reader->options->arena;
    bool is_long = word[1] == '-';
    // -Dname=value and -Ifolder may be written in one word.
    size_t length = is_long ? strcspn(word, "=") : 2;
    const char *attached = word[length] ? word + length + is_long : NULL;
    const char *name = arena_copy(arena, word, length);
    const Option *option = find_option(reader, name, length);
    if (!option && is_long && reader->command->takes_dims)
        return read_dim(reader, name, attached);
    if (!option || (!is_long && attached && option->kind == OPTION_FLAG))
        return unknown_option(reader, is_long ? name : word);
    if (option->kind != OPTION_FLAG) {
        const char *value = take_value(reader, option->name, attached, option->argument);
        return value && set(reader, option, value);
    }
    if (attached) {
        usage_error("%s takes no value", option->name);
        return false;
    }
    return set(reader, option, NULL);
}

static bool read_word(Reader *reader, const char *word, bool *only_files) {
    if (!*only_files && !strcmp(word, "--")) {
        *only_files = true;
        return true;
    }
    if (!*only_files && word[0] == '-' && word[1])
        return read_option(reader, word);
    if (!reader->command->takes_file || reader->options->file) {
        usage_error("%s: '%s' is one argument too many", reader->command->name, word);
        return false;
    }
    reader->options->file = word;
    return true;
}

bool options_parse(CliOptions *options, const Command *command, int argc, char **argv) {
    options->emit = "cubin";
    options->seeds = 1;
    options->limit = options->batch = options->length = options->limit_time = options->watchdog_ms = -1;
    options->rounds = 11;
    Reader reader = {options, command, argc, 0, argv};
    bool only_files = false;
    while (reader.at < argc) {
        const char *word = argv[reader.at++];
        if (!read_word(&reader, word, &only_files))
            return false;
    }
    if (options->seeds == 0) {
        usage_error("--seeds wants at least 1");
        return false;
    }
    if (options->rounds < 1 || options->rounds > MAX_ROUNDS) {
        usage_error("--rounds wants 1 to %d", MAX_ROUNDS);
        return false;
    }
    if (options->seed > INT64_MAX - options->seeds) {
        usage_error("--seed %lld: there are no %lld seeds from there on", (long long)options->seed,
                    (long long)options->seeds);
        return false;
    }
    if (options->watchdog_ms == 0 || options->watchdog_ms > JFA_MOST_WATCHDOG_MS) {
        usage_error("--watchdog wants 1 to %d milliseconds, not %lld", JFA_MOST_WATCHDOG_MS,
                    (long long)options->watchdog_ms);
        return false;
    }
    if (options->watchdog_ms > 0 && options->image) {
        usage_error("--watchdog is for what the compiler makes; build the image of --image with it");
        return false;
    }
    if (options->lens_file && (options->batch >= 0 || options->length >= 0)) {
        usage_error("--lens-file and --batch both say the lengths; give one of them");
        return false;
    }
    if (options->limit >= 0 && !options->lens_file) {
        usage_error("--limit is about the lines of --lens-file, which isn't given");
        return false;
    }
    if (options->output && !*options->output) {
        usage_error("-o wants the name of a file, or - for standard output");
        return false;
    }
    if (command->takes_file && !options->file && !options->help) {
        usage_error("%s wants a .jfa file; see jfac %s --help", command->name, command->name);
        return false;
    }
    return true;
}
