// tune_file.c: the winner's entry, put into the output file.
#include "compiler/cli/tune.h"
#include "compiler/plan/lookup.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int tune_read_file(const Tune *tune, const char *path, TunedEntry **entries) {
    Arena *arena = tune->options->arena;
    *entries = NULL;
    if (!strcmp(path, "-") || access(path, F_OK))
        return STATUS_GOOD;
    SourceSet *sources = arena_new_of(arena, SourceSet); // entries point into it
    Diag diag;
    sources->arena = arena;
    diag_init(&diag, arena, sources);
    const char *reason;
    int file = source_read(sources, path, &reason);
    if (file < 0) {
        fprintf(stderr, "jfac: can't read %s: %s\n", path, reason);
        return STATUS_ENVIRONMENT;
    }
    if (tuned_parse(arena, &diag, file, entries))
        return STATUS_GOOD;
    diag_print_text(&diag, stderr);
    return STATUS_INPUT;
}

// ---------------------------------------------------------------- one entry

static bool is_define_of(const char *define, const char *name) {
    size_t length = strlen(name);
    return !strncmp(define, name, length) && define[length] == '=';
}

static bool is_given(const CliOptions *options, const char *name) {
    for (int i = 0; i < options->defines.count; i++)
        if (is_define_of(options->defines.items[i], name))
            return true;
    return false;
}

// What the winner is for: all constants of the kernel, and those of the schedule that -D fixed.
static void add_settings(const Tune *tune, TunedEntry *entry) {
    const Plan *plan = jfac_plan(tune->session.jfac);
    int of_kernel = jfac_parts(tune->session.jfac)->kernel_constants;
    for (int i = 0; i < plan->constant_count; i++) {
        const Constant *constant = &plan->constants[i];
        if (i < of_kernel || is_given(tune->options, constant->name))
            tuned_add(entry->when, &entry->when_count, constant->name,
                      constant_text(tune->options->arena, constant, constant->value));
    }
}

static const char *add_options(Arena *arena, const char *text, const char *name, const TextList *list) {
    for (int i = 0; i < list->count; i++)
        text = arena_format(arena, "%s %s %s", text, name, list->items[i]);
    return text;
}

static const char *add_number(Arena *arena, const char *text, const char *name, int64_t value) {
    return value < 0 ? text : arena_format(arena, "%s %s %lld", text, name, (long long)value);
}

// As the command line said it.
static const char *problem_text(const CliOptions *options) {
    Arena *arena = options->arena;
    const char *text = add_options(arena, "", "--lens", &options->lens);
    if (options->lens_file)
        text = arena_format(arena, "%s --lens-file %s", text, options->lens_file);
    text = add_number(arena, text, "--limit", options->limit);
    text = add_number(arena, text, "--batch", options->batch);
    text = add_number(arena, text, "--len", options->length);
    for (int i = 0; i < options->number_count; i++)
        text = add_number(arena, text, arena_format(arena, "--%s", options->numbers[i].name),
                          options->numbers[i].value);
    text = add_options(arena, text, "--broadcast", &options->broadcast);
    text = add_options(arena, text, "--without", &options->without);
    text = add_options(arena, text, "--param", &options->params);
    if (!*text)
        return NULL;
    // A file's name may hold what the format doesn't, and the line is for reading only.
    char *line =
        arena_copy(arena, text + 1, strlen(text + 1) > TUNED_MAX_NOTE ? TUNED_MAX_NOTE : strlen(text + 1));
    for (char *at = line; *at; at++)
        *at = *at < ' ' || *at > '~' ? '?' : *at;
    return line;
}

static TunedEntry *make_entry(const Tune *tune, const TuneVariant *winner) {
    Arena *arena = tune->options->arena;
    const Plan *plan = jfac_plan(tune->session.jfac);
    TunedEntry *entry = tuned_new(arena);
    entry->kernel = plan->kernel_name;
    entry->schedule = arena_format(arena, "%s.%s", plan->family_name, plan->schedule_name);
    entry->target = plan->target->name;
    entry->device = jfa_device_get_props(tune->device.device)->name;
    add_settings(tune, entry);
    for (int k = 0; k < tune->constant_count; k++)
        tuned_add(entry->use, &entry->use_count, tune_constant_name(tune, k),
                  tune_value_text(tune, k, winner->values[k]));
    entry->measured =
        tune->counts_instructions
            ? arena_format(arena, "%.0f instructions, %.3f of the default's", winner->cost, winner->ratio)
            : arena_format(arena, "%.4f ms, %.3f of the default's", winner->cost, winner->ratio);
    entry->problem = problem_text(tune->options);
    return entry;
}

int tune_write_file(const Tune *tune, const char *path, const TuneVariant *winner) {
    TunedEntry *entries;
    // Read once more: others may have been tuned meanwhile.
    int status = tune_read_file(tune, path, &entries);
    if (status)
        return status;
    const char *message,
        *text = tuned_text(tune->options->arena, tuned_put(entries, make_entry(tune, winner)));
    if (!text) {
        fprintf(stderr, "jfac: out of memory\n");
        return STATUS_MEMORY;
    }
    if (file_write_whole(path, text, strlen(text), &message))
        return STATUS_GOOD;
    fprintf(stderr, "jfac: %s\n", message);
    return STATUS_ENVIRONMENT;
}
