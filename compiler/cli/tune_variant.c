// tune_variant.c: one combination of constants: built, checked against the reference, measured.
#include "compiler/cli/tune.h"
#include "simulator/sim.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---------------------------------------------------------------- a kernel that hangs

enum { HANG_SECONDS = 120 }; // far above a launch's time, or a burst's
static char hang_message[512];

// Nothing but the end of the process frees a GPU from a kernel that waits for ever.
static void end_hanging(int signal_number) {
    (void)signal_number;
    ssize_t written = write(STDERR_FILENO, hang_message, strlen(hang_message));
    _exit(written < 0 ? STATUS_MISMATCH : STATUS_MISMATCH);
}

// The simulator finds deadlocks itself, and takes its time.
static void watch(const Tune *tune, const TuneVariant *variant) {
    if (tune->device.is_simulated)
        return;
    snprintf(hang_message, sizeof hang_message,
             "jfac: error: no end within %d s with %s: the kernel hangs; nothing was written\n", HANG_SECONDS,
             tune_variant_text(tune, variant));
    signal(SIGALRM, end_hanging);
    alarm(HANG_SECONDS);
}

static void unwatch(void) {
    alarm(0);
}

// ---------------------------------------------------------------- its compilation

// Options and session live in `arena`, as long as it and the session.
static int open_point(const Tune *tune, const TunePoint *point, Arena *arena, CliOptions *options,
                      Session *session) {
    *options = *tune->options;
    options->arena = arena;
    const TextList *given = &tune->options->defines;
    const char **defines = arena_array(arena, const char *, given->count + tune->constant_count);
    int count = given->count;
    if (count)
        memcpy(defines, given->items, sizeof *defines * (size_t)count);
    for (int k = 0; k < tune->constant_count; k++)
        if (point->is_set[k])
            defines[count++] = arena_format(arena, "%s=%s", tune_constant_name(tune, k),
                                            tune_value_text(tune, k, point->values[k]));
    options->defines = (TextList){defines, count, count};
    return session_open(session, options);
}

static const Constant *find_constant(const Session *session, const char *name) {
    const Plan *draft = jfac_parts(session->jfac)->draft;
    for (int i = 0; draft && i < draft->constant_count; i++)
        if (!strcmp(draft->constants[i].name, name))
            return &draft->constants[i];
    return NULL;
}

int tune_choices(Tune *tune, const TunePoint *point, int k, double choices[TUNE_MAX_CHOICES]) {
    TunePoint without = *point;
    without.is_set[k] = false;
    Arena *arena = arena_new();
    CliOptions options;
    Session session = {0};
    int count = 0;
    if (arena && !open_point(tune, &without, arena, &options, &session)) {
        jfac_check(session.jfac, &session.options);
        const Constant *constant = find_constant(&session, tune_constant_name(tune, k));
        for (; constant && count < constant->choice_count && count < TUNE_MAX_CHOICES; count++)
            choices[count] = constant->choices[count];
    }
    session_close(&session);
    arena_free(arena);
    return count;
}

// Strings that stay are in the arena of the command.
static const char *keep(const Tune *tune, const char *text) {
    return arena_copy(tune->options->arena, text, strlen(text));
}

static const char *first_error(const Tune *tune, const Session *session) {
    for (const DiagItem *item = jfac_diag(session->jfac)->items; item; item = item->next)
        if (item->severity == DIAG_ERROR)
            return keep(tune, item->text);
    return arena_format(tune->options->arena, "internal error: %s",
                        session->message ? session->message : "the compilation failed without a reason");
}

static void read_values(const Tune *tune, const Session *session, TuneVariant *variant) {
    for (int k = 0; k < tune->constant_count; k++) {
        const Constant *constant = find_constant(session, tune_constant_name(tune, k));
        variant->values[k] = constant                   ? constant->value
                             : variant->point.is_set[k] ? variant->point.values[k]
                                                        : NAN;
    }
}

static TuneVariant *find_variant(const Tune *tune, const TuneVariant *like) {
    for (int i = 0; i < tune->count; i++) {
        bool is_same = true;
        for (int k = 0; k < tune->constant_count; k++)
            is_same = is_same && tune->variants[i]->values[k] == like->values[k];
        if (is_same)
            return tune->variants[i];
    }
    return NULL;
}

// The image; NULL: the variant is left out, or *status isn't good.
static const void *make_image(const Tune *tune, Session *session, const CliOptions *options,
                              TuneVariant *variant, size_t *bytes, int *status) {
    if (!jfac_lower(session->jfac, &session->options, &session->message)) {
        variant->left_out = first_error(tune, session);
        return NULL;
    }
    const char *ptx = jfac_ptx(session->jfac), *message = NULL;
    *bytes = strlen(ptx);
    if (tune->device.is_simulated)
        return ptx;
    void *cubin = NULL;
    EmitReport report = {0};
    EmitCubinOptions cubin_options = {0};
    if (!emit_cubin(ptx, jfac_plan(session->jfac)->target, &cubin_options, options->arena, &cubin, bytes,
                    &report, &message)) {
        // Without a ptxas, or with one that is too old, there is nothing to be had at all.
        if (!report.found || report.is_too_old) {
            fprintf(stderr, "jfac: %s\n", message);
            *status = STATUS_ENVIRONMENT;
        }
        variant->left_out = keep(tune, message);
        return NULL;
    }
    KernelQuality quality = session_quality(&report, options->strict);
    if (quality == QUALITY_SERIALISED)
        variant->left_out = "the tensor core's products don't overlap (ptxas' C75xx)";
    else if (quality == QUALITY_SPILLS)
        variant->left_out = arena_format(tune->options->arena, "%lld bytes of registers are spilled",
                                         (long long)report.spill_bytes);
    return variant->left_out ? NULL : cubin;
}

// ---------------------------------------------------------------- its results and its plan

static jfa_status check(Tune *tune, TuneVariant *variant, jfa_error *error) {
    double milliseconds;
    uint64_t seed = (uint64_t)tune->options->seed;
    if (!run_make_tensors(&tune->checked, seed, true, true)) {
        *error = (jfa_error){JFA_ERROR_OUT_OF_MEMORY, "no host memory for tensors"};
        return JFA_ERROR_OUT_OF_MEMORY;
    }
    watch(tune, variant);
    jfa_status status =
        run_on_device(&variant->loaded, &tune->checked, tune->options->seed, &milliseconds, error);
    unwatch();
    variant->is_wrong = status == JFA_OK && !run_compare(&tune->checked, &tune->reference, NULL);
    run_free_tensors(&tune->checked);
    return status;
}

static jfa_status prepare(Tune *tune, TuneVariant *variant, const void *image, size_t bytes,
                          jfa_error *error) {
    variant->loaded = (RunDevice){.device = tune->device.device, .is_simulated = tune->device.is_simulated};
    jfa_status status = run_load(&variant->loaded, image, bytes, error);
    if (!status)
        status = check(tune, variant, error);
    if (status || variant->is_wrong)
        return status;
    status = run_plan(&variant->loaded, &tune->measured, &variant->plan, error);
    if (!status && !tune->device.is_simulated) {
        watch(tune, variant);
        status = timing_warm_up(&tune->timing, variant->plan, &variant->launches, error);
        unwatch();
    }
    return status;
}

static void unload(TuneVariant *variant) {
    jfa_error ignored;
    if (variant->plan)
        jfa_plan_destroy(variant->plan, &ignored);
    variant->plan = NULL;
    run_unload(&variant->loaded);
}

void tune_unload(Tune *tune) {
    for (int i = 0; i < tune->count; i++)
        unload(tune->variants[i]);
}

// What became of it: a failure of the device leaves nothing to go on with.
static int judge(Tune *tune, TuneVariant *variant, jfa_status failure, const jfa_error *error) {
    const char *text = tune_variant_text(tune, variant);
    bool is_fault = failure == JFA_ERROR_LAUNCH;
    jfa_error ignored;
    if (failure && !tune->device.is_simulated && jfa_synchronise(tune->device.device, NULL, &ignored)) {
        fprintf(stderr, "jfac: error: with %s the device failed, and doesn't go on; nothing was written\n",
                text);
        return run_status(failure, error);
    }
    if (is_fault || variant->is_wrong) {
        if (is_fault)
            fprintf(stderr, "jfac: %s\n", error->message);
        fprintf(stderr, "jfac: error: with %s the kernel is wrong\n", text);
        variant->is_wrong = true;
        variant->left_out = "WRONG";
    } else if (failure) {
        variant->left_out = keep(tune, error->message);
    }
    if (variant->left_out)
        unload(variant);
    return STATUS_GOOD;
}

static void add_variant(Tune *tune, TuneVariant *variant) {
    if (tune->count == tune->capacity) {
        tune->capacity = tune->capacity ? 2 * tune->capacity : 32;
        TuneVariant **more = arena_array(tune->options->arena, TuneVariant *, tune->capacity);
        if (tune->count)
            memcpy(more, tune->variants, sizeof *more * (size_t)tune->count);
        tune->variants = more;
    }
    tune->variants[tune->count++] = variant;
}

static TuneVariant *build(Tune *tune, const TunePoint *point, Session *session, const CliOptions *options,
                          int *status) {
    TuneVariant *variant = arena_new_of(tune->options->arena, TuneVariant), *known;
    variant->point = *point;
    jfac_check(session->jfac, &session->options);
    read_values(tune, session, variant);
    if ((known = find_variant(tune, variant)))
        return known;
    add_variant(tune, variant);
    fprintf(stderr, "tuning: %s\n", tune_variant_text(tune, variant));
    size_t bytes = 0;
    jfa_error error = {0};
    const void *image = make_image(tune, session, options, variant, &bytes, status);
    if (image)
        *status = judge(tune, variant, prepare(tune, variant, image, bytes, &error), &error);
    return *status ? NULL : variant;
}

TuneVariant *tune_variant(Tune *tune, const TunePoint *point, int *status) {
    Arena *arena = arena_new();
    CliOptions options;
    Session session = {0};
    TuneVariant *variant = NULL;
    *status = arena ? open_point(tune, point, arena, &options, &session) : STATUS_MEMORY;
    if (!*status)
        variant = build(tune, point, &session, &options, status);
    session_close(&session);
    arena_free(arena);
    return variant;
}

// ---------------------------------------------------------------- its cost

static jfa_status measure_once(Tune *tune, TuneVariant *variant, double *cost, jfa_error *error) {
    watch(tune, variant);
    jfa_status status = tune->counts_instructions
                            ? timing_launches(&tune->timing, variant->plan, 1, cost, error)
                            : timing_burst(&tune->timing, variant->plan, variant->launches, cost, error);
    unwatch();
    if (tune->counts_instructions)
        *cost = (double)jfa_sim_executed(jfa_device_native(tune->device.device));
    return status;
}

int tune_measure(Tune *tune, TuneVariant **group, int count) {
    // Counting twice gives the same number twice.
    int rounds = tune->counts_instructions ? 1 : (int)tune->options->rounds;
    double *costs = arena_array(tune->options->arena, double, (size_t)rounds *(size_t)count);
    jfa_error error = {0};
    jfa_status status;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++) {
            status = measure_once(tune, group[i], &costs[i * rounds + round], &error);
            if (status) { // right when it was checked: no other can be trusted to be
                fprintf(stderr, "jfac: error: with %s the kernel failed; nothing was written\n",
                        tune_variant_text(tune, group[i]));
                return run_status(status, &error);
            }
        }
    for (int i = 0; i < count; i++) {
        group[i]->cost = timing_median(&costs[i * rounds], rounds);
        group[i]->ratio = group[0]->cost > 0 ? group[i]->cost / group[0]->cost : 1;
    }
    return STATUS_GOOD;
}
