// tune.c: jfac tune FILE: measures a kernel with the values that its schedule lists for its constants, and
// keeps the fastest in a file for `jfac build --tuned`.
#include "compiler/cli/tune.h"
#include "compiler/plan/lookup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- constants and variants as text

static const Constant *constant_of(const Tune *tune, int k) {
    return &jfac_plan(tune->session.jfac)->constants[tune->constants[k]];
}

const char *tune_constant_name(const Tune *tune, int k) {
    return constant_of(tune, k)->name;
}

const char *tune_value_text(const Tune *tune, int k, double value) {
    return isnan(value) ? "?" : constant_text(tune->options->arena, constant_of(tune, k), value);
}

const char *tune_variant_text(const Tune *tune, const TuneVariant *variant) {
    const char *text = "";
    for (int k = 0; k < tune->constant_count; k++)
        text = arena_format(tune->options->arena, "%s%s%s=%s", text, *text ? ", " : "",
                            tune_constant_name(tune, k), tune_value_text(tune, k, variant->values[k]));
    return text;
}

bool tune_is_late(const Tune *tune) {
    return tune->options->limit_time >= 0 &&
           run_now_ms() - tune->started_ms >= 1e3 * (double)tune->options->limit_time;
}

// ---------------------------------------------------------------- the table

// The fastest first, then those that were not measured, in the order in which they were tried.
static int by_cost(const void *left, const void *right) {
    const TuneVariant *a = *(TuneVariant *const *)left, *b = *(TuneVariant *const *)right;
    bool has_a = a->cost > 0, has_b = b->cost > 0;
    if (has_a != has_b)
        return has_b - has_a;
    return has_a ? (a->ratio > b->ratio) - (a->ratio < b->ratio) : 0;
}

static int column_width(const Tune *tune, int k) {
    int width = (int)strlen(tune_constant_name(tune, k));
    return width < 5 ? 5 : width;
}

static void print_table(const Tune *tune, const TuneVariant *best) {
    TuneVariant **sorted = arena_array(tune->options->arena, TuneVariant *, tune->count);
    memcpy(sorted, tune->variants, sizeof *sorted * (size_t)tune->count);
    qsort(sorted, (size_t)tune->count, sizeof *sorted, by_cost);
    for (int k = 0; k < tune->constant_count; k++)
        printf("%*s  ", column_width(tune, k), tune_constant_name(tune, k));
    printf("%12s  of default\n", tune->counts_instructions ? "instructions" : "ms");
    for (int i = 0; i < tune->count; i++) {
        const TuneVariant *variant = sorted[i];
        for (int k = 0; k < tune->constant_count; k++)
            printf("%*s  ", column_width(tune, k), tune_value_text(tune, k, variant->values[k]));
        if (variant->cost > 0)
            printf(tune->counts_instructions ? "%12.0f  %10.3f" : "%12.4f  %10.3f", variant->cost,
                   variant->ratio);
        else
            printf("%12s  %10s  %s", "-", "-", variant->left_out ? variant->left_out : "not measured");
        printf("%s%s\n", variant == tune->variants[0] ? "  default" : "", variant == best ? "  best" : "");
    }
}

static int count_left_out(const Tune *tune, bool wrong) {
    int count = 0;
    for (int i = 0; i < tune->count; i++)
        count += tune->variants[i]->left_out && tune->variants[i]->is_wrong == wrong;
    return count;
}

static void print_result(const Tune *tune, const TuneVariant *best, const char *path) {
    int left_out = count_left_out(tune, false), wrong = count_left_out(tune, true);
    printf("%d tried", tune->count);
    if (left_out)
        printf(", %d left out", left_out);
    if (wrong)
        printf(", %d WRONG", wrong);
    printf("%s\nbest: %s%s, written to %s\n", tune_is_late(tune) ? ", no time for more" : "",
           tune_variant_text(tune, best), best == tune->variants[0] ? " (the default)" : "", path);
}

// ---------------------------------------------------------------- the problems

// Elements that a family computes for sequence s, as far as axes tell.
static double work_of(const RunProblem *problem, int64_t s) {
    double product = 1;
    for (int i = 0; i < problem->plan->axis_count; i++)
        product *= problem->lengths[i][s];
    return product;
}

static double work(const RunProblem *problem) {
    const Plan *plan = problem->plan;
    double sum = 0;
    for (int64_t s = 0; s < problem->sequences; s++)
        sum += work_of(problem, s);
    for (int i = 0; i < plan->dim_count; i++)
        sum *= plan->dims[i].divides < 0 ? (double)problem->dims[i] : 1;
    return sum;
}

// Lengths above `keep` halved, rounded up. False: there are none.
static bool halve(RunProblem *problem, int32_t keep) {
    bool is_smaller = false;
    for (int i = 0; i < problem->plan->axis_count; i++)
        for (int64_t s = 0; s < problem->sequences; s++)
            if (problem->lengths[i][s] > keep) {
                problem->lengths[i][s] = problem->lengths[i][s] / 2 + problem->lengths[i][s] % 2;
                problem->wide_lengths[i][s] = problem->lengths[i][s];
                is_smaller = true;
            }
    return is_smaller;
}

typedef struct {
    double work;
    int64_t number;
} Sequence;

static int heaviest_first(const void *left, const void *right) {
    const Sequence *a = left, *b = right;
    if (a->work != b->work)
        return a->work < b->work ? 1 : -1;
    return (a->number > b->number) - (a->number < b->number);
}

// `count` of the measured sequences: the heaviest, and others evenly from those after it.
static void choose_sequences(Tune *tune, const Sequence *sorted, int64_t count) {
    RunProblem *problem = &tune->checked;
    problem->sequences = count;
    for (int64_t i = 0; i < count; i++) {
        int64_t from = sorted[i * tune->measured.sequences / count].number;
        for (int axis = 0; axis < problem->plan->axis_count; axis++)
            problem->wide_lengths[axis][i] = problem->lengths[axis][i] = tune->measured.lengths[axis][from];
    }
}

// The measured problem made small enough for the reference, which runs on the CPU: some of its sequences,
// then lengths halved. Lengths that were equal stay so, and long ones remain longer than what all stages of a
// schedule hold.
static void make_checked(Tune *tune) {
    enum { MOST_SEQUENCES = 16, FEWEST_SEQUENCES = 2, SHORTEST = 64 };
    static const double MOST_WORK = 1 << 24;
    Arena *arena = tune->options->arena;
    const Plan *plan = tune->measured.plan;
    RunProblem *problem = &tune->checked;
    int64_t all = tune->measured.sequences, count = all < MOST_SEQUENCES ? all : MOST_SEQUENCES;
    Sequence *sorted = arena_array(arena, Sequence, all + 1);
    for (int64_t s = 0; s < all; s++)
        sorted[s] = (Sequence){work_of(&tune->measured, s), s};
    qsort(sorted, (size_t)all, sizeof *sorted, heaviest_first);
    *problem = tune->measured;
    problem->lengths = arena_array(arena, int32_t *, plan->axis_count);
    problem->wide_lengths = arena_array(arena, int64_t *, plan->axis_count);
    for (int i = 0; i < plan->axis_count; i++) {
        problem->lengths[i] = arena_array(arena, int32_t, count + 1);
        problem->wide_lengths[i] = arena_array(arena, int64_t, count + 1);
    }
    problem->tensors = arena_array(arena, RunTensor, plan->tensor_count);
    memcpy(problem->tensors, tune->measured.tensors, sizeof *problem->tensors * (size_t)plan->tensor_count);
    choose_sequences(tune, sorted, count);
    while (work(problem) > MOST_WORK) {
        if (count > FEWEST_SEQUENCES)
            choose_sequences(tune, sorted, count /= 2);
        else if (!halve(problem, SHORTEST))
            break;
    }
}

static int make_reference(Tune *tune) {
    int status = STATUS_MEMORY;
    if (run_make_tensors(&tune->checked, (uint64_t)tune->options->seed, true, true))
        status = run_reference(&tune->checked, &tune->session, tune->options, &tune->reference);
    run_free_tensors(&tune->checked);
    return status;
}

// Inputs of the measured problem on the device; the host needs them no more.
static int send_measured(Tune *tune) {
    jfa_error error = {0};
    if (!run_make_tensors(&tune->measured, (uint64_t)tune->options->seed, false, false))
        return STATUS_MEMORY;
    int status = run_status(run_send(&tune->device, &tune->measured, &error), &error);
    run_free_tensors(&tune->measured);
    return status;
}

static void print_problem(const Tune *tune) {
    int64_t longest = 0;
    for (int i = 0; i < tune->checked.plan->axis_count; i++)
        for (int64_t s = 0; s < tune->checked.sequences; s++)
            longest = tune->checked.lengths[i][s] > longest ? tune->checked.lengths[i][s] : longest;
    printf("kernel %s, schedule %s, %s on %s\n", tune->measured.plan->kernel_name,
           tune->measured.plan->schedule_name, tune->measured.plan->target->name,
           jfa_device_get_props(tune->device.device)->name);
    printf("measured on %lld sequences, results checked on %lld of up to %lld positions\n",
           (long long)tune->measured.sequences, (long long)tune->checked.sequences, (long long)longest);
    fflush(stdout);
}

// ---------------------------------------------------------------- the command

static int find_constants(Tune *tune) {
    const Plan *plan = jfac_plan(tune->session.jfac);
    for (int i = 0; i < plan->constant_count; i++) {
        if (!plan->constants[i].choice_count)
            continue;
        if (tune->constant_count == TUNE_MAX_CONSTANTS)
            return usage_error("schedule '%s' tunes more than %d constants: fix some by -D",
                               plan->schedule_name, TUNE_MAX_CONSTANTS);
        tune->constants[tune->constant_count++] = i;
    }
    if (tune->constant_count)
        return STATUS_GOOD;
    fprintf(stderr,
            "jfac: schedule '%s' has no constant to tune that -D doesn't fix\n"
            "help: list what is worth trying: const N = 128 tune (64, 96);\n",
            plan->schedule_name);
    return STATUS_INPUT;
}

static int search(Tune *tune) {
    TuneVariant *best = NULL;
    const char *path = tune->options->output ? tune->options->output
                                             : arena_format(tune->options->arena, "%s.tuned",
                                                            jfac_plan(tune->session.jfac)->kernel_name);
    TunedEntry *entries;
    int status = tune_read_file(tune, path, &entries); // now, not after an hour
    if (!status)
        status = make_reference(tune);
    if (!status)
        status = send_measured(tune);
    if (status)
        return status;
    bool is_printed = !strcmp(path, "-");
    if (!is_printed)
        print_problem(tune);
    status = tune_search(tune, &best);
    if (!status && !is_printed)
        print_table(tune, best);
    fflush(stdout);
    if (!status)
        status = tune_write_file(tune, path, best);
    if (!status && !is_printed)
        print_result(tune, best, path);
    return !status && count_left_out(tune, true) ? STATUS_MISMATCH : status;
}

static int tune_kernel(Tune *tune) {
    Session *session = &tune->session;
    int status = session_open(session, tune->options);
    if (!status)
        status = session_status(session, jfac_check(session->jfac, &session->options));
    if (!status)
        status = find_constants(tune);
    if (!status)
        status = run_read_problem(&tune->measured, jfac_plan(session->jfac), tune->options);
    jfa_error error = {0};
    if (!status)
        status = run_status(timing_open(&tune->timing, tune->device.device, &error), &error);
    if (!status) {
        make_checked(tune);
        status = search(tune);
        tune_unload(tune);
        run_release(&tune->device, &tune->measured);
    }
    return status;
}

static int read_measure(Tune *tune) {
    const char *measure = tune->options->measure ? tune->options->measure : "time";
    tune->counts_instructions = !strcmp(measure, "instructions");
    if (!tune->counts_instructions && strcmp(measure, "time") != 0)
        return usage_error("--measure takes time or instructions, not '%s'", measure);
    if (!tune->options->device)
        tune->options->device =
            tune->counts_instructions
                ? arena_format(tune->options->arena, "sim:%s",
                               tune->options->target ? tune->options->target : DEFAULT_TARGET)
                : "cuda:0";
    bool is_simulated = !strncmp(tune->options->device, "sim:", 4);
    if (is_simulated && !tune->counts_instructions)
        return usage_error(
            "what a kernel takes on a simulated device says nothing of its time on a GPU: tune on one "
            "(--device cuda:0), or count instructions instead: --measure instructions");
    if (!is_simulated && tune->counts_instructions)
        return usage_error("only simulated devices count instructions: --device sim:%s",
                           tune->options->target ? tune->options->target : DEFAULT_TARGET);
    return STATUS_GOOD;
}

int command_tune(CliOptions *options) {
    Tune tune = {.options = options, .started_ms = run_now_ms()};
    int status = read_measure(&tune);
    if (!status)
        status = run_begin();
    if (!status)
        status = run_open(&tune.device, options->device);
    if (status)
        return status;
    const char *arch = jfa_device_get_props(tune.device.device)->arch;
    if (!options->target)
        options->target = arch;
    status = !strcmp(options->target, arch) ? tune_kernel(&tune)
                                            : usage_error("%s is an %s; it can't run what is built for %s",
                                                          options->device, arch, options->target);
    run_free_reference(&tune.reference);
    timing_close(&tune.timing);
    run_close(&tune.device);
    session_close(&tune.session);
    return status;
}
