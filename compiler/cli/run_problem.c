// run_problem.c: lengths of sequences, extents of dims, values of params, as the command line says them.
#include "compiler/cli/run.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEFAULT_EXTENT = 2 };
enum { MAX_SEQUENCES = 1 << 24 };
static const char DEFAULT_LENGTHS[] = "0,1,64,127,200";

// ---------------------------------------------------------------- lists of lengths

typedef struct {
    int32_t *items;
    int64_t count, capacity;
} Lengths;

static void add_length(Arena *arena, Lengths *lengths, int32_t length) {
    if (lengths->count == lengths->capacity) {
        lengths->capacity = lengths->capacity ? 2 * lengths->capacity : 64;
        int32_t *more = arena_array(arena, int32_t, lengths->capacity);
        if (lengths->count)
            memcpy(more, lengths->items, sizeof *more * (size_t)lengths->count);
        lengths->items = more;
    }
    lengths->items[lengths->count++] = length;
}

// One number from *text on, which is moved behind it. -1: there is none in range.
static int64_t take_length(const char **text) {
    char *end;
    errno = 0;
    long long value = strtoll(*text, &end, 10);
    if (end == *text || errno || value < 0 || value > INT32_MAX)
        return -1;
    *text = end;
    return value;
}

static bool parse_lengths(Arena *arena, const char *text, Lengths *lengths) {
    const char *at = text;
    for (;;) {
        int64_t length = take_length(&at);
        if (length < 0 || (*at && *at != ',')) {
            usage_error("--lens wants lengths with commas between them, not '%s'", text);
            return false;
        }
        add_length(arena, lengths, (int32_t)length);
        if (!*at)
            return true;
        at++;
    }
}

// One length a line; lines that start with '#' are comments.
static int read_lengths(const CliOptions *options, Lengths *lengths) {
    FILE *file = fopen(options->lens_file, "r");
    if (!file) {
        fprintf(stderr, "jfac: can't read %s: %s\n", options->lens_file, strerror(errno));
        return STATUS_ENVIRONMENT;
    }
    char line[256];
    int status = STATUS_GOOD;
    int64_t limit = options->limit >= 0 ? options->limit : MAX_SEQUENCES;
    for (int number = 1; !status && lengths->count < limit && fgets(line, sizeof line, file); number++) {
        const char *at = line;
        size_t length = strlen(line);
        bool is_comment = *at == '#';
        // The rest of a long comment is skipped.
        while (is_comment && length && line[length - 1] != '\n' && fgets(line, sizeof line, file))
            length = strlen(line);
        // Neither at a line's end nor at the file's: a zero byte, or more than a length.
        bool is_whole = (length && line[length - 1] == '\n') || feof(file);
        if (is_whole && (is_comment || !line[strspn(line, " \t\r\n")]))
            continue;
        int64_t value = take_length(&at);
        if (!is_whole || value < 0 || at[strspn(at, " \t\r\n")])
            status = usage_error("%s:%d: not a length: a line holds one whole number from 0 to %d",
                                 options->lens_file, number, INT32_MAX);
        else
            add_length(options->arena, lengths, (int32_t)value);
    }
    if (!status && ferror(file)) {
        fprintf(stderr, "jfac: can't read %s: %s\n", options->lens_file, strerror(errno));
        status = STATUS_ENVIRONMENT;
    }
    fclose(file);
    if (!status && !lengths->count && limit)
        status = usage_error("%s holds no length", options->lens_file);
    return status;
}

// ---------------------------------------------------------------- lengths of each axis

static int find_axis(const Plan *plan, const char *name, size_t length) {
    for (int i = 0; i < plan->axis_count; i++)
        if (strlen(plan->axes[i].name) == length && !strncmp(plan->axes[i].name, name, length))
            return i;
    return -1;
}

// "0,1,127" is for all axes; "q=0,1;k=5,6" for those named.
static int read_lens_option(const Plan *plan, const CliOptions *options, const char *text, Lengths *axes,
                            bool *named) {
    Arena *arena = options->arena;
    do {
        size_t length = strcspn(text, ";");
        const char *part = arena_copy(arena, text, length);
        text += length + (text[length] == ';');
        const char *equals = strchr(part, '=');
        int axis = equals ? find_axis(plan, part, (size_t)(equals - part)) : -1;
        if (equals && axis < 0)
            return usage_error("--lens: there is no axis '%.*s' in family %s", (int)(equals - part), part,
                               plan->family_name);
        if (!equals && (options->lens_file || options->batch >= 0))
            return usage_error(
                "--lens %s and %s both say the lengths of all axes; give one of them, or --lens AXIS=%s",
                part, options->lens_file ? "--lens-file" : "--batch", part);
        if (equals && named[axis])
            return usage_error("--lens: axis '%s' has lengths already", plan->axes[axis].name);
        Lengths lengths = {0};
        if (!parse_lengths(arena, equals ? equals + 1 : part, &lengths))
            return STATUS_USAGE;
        for (int i = 0; i < plan->axis_count; i++)
            if (axis < 0 || i == axis) {
                axes[i] = lengths;
                named[i] = true;
            }
    } while (*text);
    return STATUS_GOOD;
}

static int read_common_lengths(const CliOptions *options, Lengths *lengths) {
    if (options->lens_file)
        return read_lengths(options, lengths);
    if (options->batch < 0 && options->length < 0)
        return parse_lengths(options->arena, DEFAULT_LENGTHS, lengths) ? STATUS_GOOD : STATUS_USAGE;
    if (options->batch < 0 || options->length < 0)
        return usage_error("--batch and --len go together");
    if (options->batch > MAX_SEQUENCES || options->length > INT32_MAX)
        return usage_error("--batch takes up to %d sequences, --len up to %d positions", MAX_SEQUENCES,
                           INT32_MAX);
    for (int64_t i = 0; i < options->batch; i++)
        add_length(options->arena, lengths, (int32_t)options->length);
    return STATUS_GOOD;
}

static int read_all_lengths(RunProblem *problem, const CliOptions *options) {
    const Plan *plan = problem->plan;
    Lengths common = {0};
    int status = read_common_lengths(options, &common);
    Lengths *axes = arena_array(problem->arena, Lengths, plan->axis_count);
    for (int i = 0; i < plan->axis_count; i++)
        axes[i] = common;
    bool *named = arena_array(problem->arena, bool, plan->axis_count);
    for (int i = 0; !status && i < options->lens.count; i++)
        status = read_lens_option(plan, options, options->lens.items[i], axes, named);
    bool has_others = !options->lens.count || options->lens_file || options->batch >= 0;
    for (int i = 0; !status && !has_others && i < plan->axis_count; i++)
        if (!named[i])
            status = usage_error("--lens says no lengths for axis '%s'; for all axes: --lens 0,1,127",
                                 plan->axes[i].name);
    if (status)
        return status;
    problem->sequences = plan->axis_count ? axes[0].count : 1;
    problem->lengths = arena_array(problem->arena, int32_t *, plan->axis_count);
    problem->wide_lengths = arena_array(problem->arena, int64_t *, plan->axis_count);
    for (int i = 0; i < plan->axis_count; i++) {
        if (axes[i].count != problem->sequences)
            return usage_error("axis %s has %lld lengths, axis %s has %lld", plan->axes[i].name,
                               (long long)axes[i].count, plan->axes[0].name, (long long)problem->sequences);
        problem->lengths[i] = axes[i].items;
        problem->wide_lengths[i] = arena_array(problem->arena, int64_t, problem->sequences);
        for (int64_t s = 0; s < problem->sequences; s++)
            problem->wide_lengths[i][s] = axes[i].items[s];
    }
    return STATUS_GOOD;
}

int64_t run_total(const RunProblem *problem, int axis) {
    int64_t total = 0;
    for (int64_t s = 0; s < problem->sequences; s++)
        total += problem->lengths[axis][s];
    return total;
}

// ---------------------------------------------------------------- dims

// --kv-heads means kv_heads.
static bool is_dim_named(const char *dim, const char *option) {
    for (; *dim && *option; dim++, option++)
        if (*dim != (*option == '-' ? '_' : *option))
            return false;
    return !*dim && !*option;
}

static int unknown_dim(const Plan *plan, const CliOptions *options, const char *name) {
    const char **names = arena_array(options->arena, const char *, plan->dim_count);
    for (int i = 0; i < plan->dim_count; i++)
        names[i] = plan->dims[i].name;
    for (int i = 0; i < plan->constant_count; i++)
        if (!strcasecmp(plan->constants[i].name, name) || is_dim_named(plan->constants[i].name, name))
            return usage_error("there is no option '--%s'; '%s' is a constant: -D %s=VALUE", name,
                               plan->constants[i].name, plan->constants[i].name);
    return usage_error("there is no option '--%s', and family %s has no dim of that name%s", name,
                       plan->family_name, suggestion(options->arena, name, names, plan->dim_count));
}

// A dim that nobody names is as large as the one that it divides, or as one that divides it, or has two
// elements.
static void fill_in_dims(RunProblem *problem) {
    const Plan *plan = problem->plan;
    for (int i = 0; i < plan->dim_count; i++)
        if (!problem->dims[i] && plan->dims[i].divides < 0)
            for (int j = 0; j < plan->dim_count; j++)
                if (plan->dims[j].divides == i && problem->dims[j])
                    problem->dims[i] = problem->dims[j];
    for (int i = 0; i < plan->dim_count; i++)
        if (!problem->dims[i] && plan->dims[i].divides < 0)
            problem->dims[i] = DEFAULT_EXTENT;
    for (int round = 0; round < plan->dim_count; round++) // a dim may divide one that divides another
        for (int i = 0; i < plan->dim_count; i++)
            if (!problem->dims[i])
                problem->dims[i] = problem->dims[plan->dims[i].divides];
}

static int read_dims(RunProblem *problem, const CliOptions *options) {
    const Plan *plan = problem->plan;
    problem->dims = arena_array(problem->arena, int64_t, plan->dim_count);
    for (int i = 0; i < options->number_count; i++) {
        const NamedNumber *number = &options->numbers[i];
        int dim = 0;
        while (dim < plan->dim_count && !is_dim_named(plan->dims[dim].name, number->name))
            dim++;
        if (dim == plan->dim_count)
            return unknown_dim(plan, options, number->name);
        if (number->value < 1 || number->value > INT32_MAX)
            return usage_error("--%s wants at least 1 and at most %d", number->name, INT32_MAX);
        problem->dims[dim] = number->value;
    }
    fill_in_dims(problem);
    return STATUS_GOOD;
}

// ---------------------------------------------------------------- params and tensors

static int read_param(RunProblem *problem, const char *text) {
    const Plan *plan = problem->plan;
    size_t length = strcspn(text, "=");
    for (int i = 0; text[length] && i < plan->param_count; i++) {
        if (strlen(plan->params[i].name) != length || strncmp(plan->params[i].name, text, length))
            continue;
        char *end;
        double value = strtod(text + length + 1, &end);
        bool is_whole = value == floor(value) && value >= INT32_MIN && value <= INT32_MAX;
        if (end == text + length + 1 || *end || (plan->params[i].elem == ELEM_I32 && !is_whole))
            return usage_error("--param %s: not a value of type %s", text, elem_name(plan->params[i].elem));
        problem->params[i] = value;
        problem->is_param_given[i] = true;
        return STATUS_GOOD;
    }
    return usage_error(
        "--param %s: wants NAME=VALUE with a param of the kernel (jfac build --emit plan lists them)", text);
}

static int read_params(RunProblem *problem, const CliOptions *options) {
    const Plan *plan = problem->plan;
    problem->params = arena_array(problem->arena, double, plan->param_count);
    problem->is_param_given = arena_array(problem->arena, bool, plan->param_count);
    int status = STATUS_GOOD;
    for (int i = 0; !status && i < options->params.count; i++)
        status = read_param(problem, options->params.items[i]);
    for (int i = 0; !status && i < plan->param_count; i++)
        if (!problem->is_param_given[i] && !plan->params[i].has_default)
            status = usage_error("param %s has no default: give --param %s=VALUE", plan->params[i].name,
                                 plan->params[i].name);
    return status;
}

static RunTensor *find_tensor(RunProblem *problem, const char *name) {
    for (int i = 0; i < problem->plan->tensor_count; i++)
        if (!strcmp(problem->tensors[i].declared->name, name))
            return &problem->tensors[i];
    return NULL;
}

static int read_tensors(RunProblem *problem, const CliOptions *options) {
    const Plan *plan = problem->plan;
    problem->tensors = arena_array(problem->arena, RunTensor, plan->tensor_count);
    for (int i = 0; i < plan->tensor_count; i++) {
        problem->tensors[i].declared = &plan->tensors[i];
        problem->tensors[i].is_given = true;
    }
    for (int i = 0; i < options->broadcast.count; i++) {
        RunTensor *tensor = find_tensor(problem, options->broadcast.items[i]);
        if (!tensor || tensor->declared->direction != TENSOR_IN)
            return usage_error("--broadcast %s: there is no input of that name", options->broadcast.items[i]);
        tensor->is_shared = true;
    }
    for (int i = 0; i < options->without.count; i++) {
        RunTensor *tensor = find_tensor(problem, options->without.items[i]);
        if (!tensor || !tensor->declared->is_optional)
            return usage_error("--without %s: there is no optional tensor of that name",
                               options->without.items[i]);
        tensor->is_given = false;
    }
    return STATUS_GOOD;
}

int run_read_problem(RunProblem *problem, const Plan *plan, const CliOptions *options) {
    *problem = (RunProblem){.plan = plan, .arena = options->arena};
    int status = read_all_lengths(problem, options);
    if (!status)
        status = read_dims(problem, options);
    if (!status)
        status = read_params(problem, options);
    if (!status)
        status = read_tensors(problem, options);
    return status;
}
