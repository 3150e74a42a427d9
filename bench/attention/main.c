// main.c: bench_attention: times attention kernels and prints a CSV row for each shape and variant; or, with
// --serve, answers requests, so that another program can time its own kernels in turn with these.
#include "bench/attention/bench.h"

#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_NO_DEVICE = 3, EXIT_HANGS = 4 };
enum { MAX_ROUNDS = 1000, MAX_ONLY = 64 };

static const char USAGE[] =
    "usage: bench_attention --cubins FOLDER --shapes CSV [options]\n"
    "  --device NAME    cuda:0 (default), or sim:sm_90a, which takes MASK-HEAD_DIM.ptx\n"
    "  --only PATTERN   shapes whose name matches; may be repeated\n"
    "  --variant NAME   MASK-HEAD_DIM-NAME.cubin; base (default) is the one without a name; may be repeated\n"
    "  --rounds N       bursts, of which the median is taken (default 11)\n"
    "  --limit SECONDS  ends a shape that takes longer, which a kernel that hangs does (default 300)\n"
    "  --list           prints the shapes' sizes and ends\n"
    "  --soak N         N launches of random jagged batches, one in 50 checked; needs no --shapes\n"
    "  --seed N         of --soak (default 1)\n"
    "  --serve          reads 'prepare SHAPE VARIANT', 'time SHAPE VARIANT', 'release', 'quit'\n";

typedef struct {
    const char *device, *cubins, *shapes;
    const char *only[MAX_ONLY], *variants[BENCH_MAX_VARIANTS];
    int only_count, variant_count, rounds, soak;
    uint64_t seed;
    unsigned limit;
    bool serves, lists;
} Options;

// ---------------------------------------------------------------- options

static bool add(const char **list, int *count, int capacity, const char *value) {
    if (*count < capacity)
        list[(*count)++] = value;
    return *count <= capacity;
}

static bool take_value(Options *options, const char *name, const char *value) {
    if (!strcmp(name, "--device"))
        options->device = value;
    else if (!strcmp(name, "--cubins"))
        options->cubins = value;
    else if (!strcmp(name, "--shapes"))
        options->shapes = value;
    else if (!strcmp(name, "--only"))
        return add(options->only, &options->only_count, MAX_ONLY, value);
    else if (!strcmp(name, "--variant"))
        return add(options->variants, &options->variant_count, BENCH_MAX_VARIANTS, value);
    else if (!strcmp(name, "--rounds"))
        return (options->rounds = atoi(value)) > 0 && options->rounds <= MAX_ROUNDS;
    else if (!strcmp(name, "--limit"))
        return (options->limit = (unsigned)atoi(value)) > 0;
    else if (!strcmp(name, "--soak"))
        return (options->soak = atoi(value)) > 0;
    else if (!strcmp(name, "--seed"))
        options->seed = strtoull(value, NULL, 0);
    else
        return false;
    return true;
}

static bool read_options(int count, char **arguments, Options *options) {
    *options = (Options){.device = "cuda:0", .rounds = 11, .seed = 1, .limit = 300};
    for (int i = 1; i < count; i++) {
        if (!strcmp(arguments[i], "--serve"))
            options->serves = true;
        else if (!strcmp(arguments[i], "--list"))
            options->lists = true;
        else if (i + 1 == count || !take_value(options, arguments[i], arguments[i + 1])) {
            fprintf(stderr, "bench_attention: can't use '%s'\n%s", arguments[i], USAGE);
            return false;
        } else
            i++;
    }
    if (!options->variant_count)
        options->variants[options->variant_count++] = "base";
    if (options->soak ? options->cubins != NULL : options->shapes && (options->cubins || options->lists))
        return true;
    fputs(USAGE, stderr);
    return false;
}

static bool is_wanted(const Options *options, const Shape *shape) {
    for (int i = 0; i < options->only_count; i++)
        if (!fnmatch(options->only[i], shape->name, 0))
            return true;
    return !options->only_count;
}

// ---------------------------------------------------------------- a kernel that hangs

// Nothing but the end of the process frees a GPU from a kernel that waits for ever.
static void end_hanging(int signal_number) {
    (void)signal_number;
    static const char message[] = "bench_attention: no end within --limit: does the kernel hang?\n";
    ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
    _exit(written < 0 ? EXIT_HANGS : EXIT_HANGS);
}

// ---------------------------------------------------------------- the table

static double tflops(const Shape *shape, double milliseconds) {
    return milliseconds > 0 ? shape->flop / milliseconds / 1e9 : 0;
}

// Variants take turns, so that a clock that changes changes for all.
static jfa_status time_rounds(Session *session, const Options *options, const Shape *shape,
                              double (*times)[MAX_ROUNDS], jfa_error *err) {
    jfa_status status = JFA_OK;
    for (int round = 0; !status && round < options->rounds; round++)
        for (int v = 0; !status && v < options->variant_count; v++)
            if (session_find(session, shape, options->variants[v]))
                status = session_time(session, shape, options->variants[v], &times[v][round], err);
    return status;
}

static bool bench_shape(Session *session, const Options *options, const Shape *shape) {
    static double times[BENCH_MAX_VARIANTS][MAX_ROUNDS];
    jfa_error err = {0};
    bool good = true;
    for (int v = 0; v < options->variant_count; v++)
        if (session_prepare(session, shape, options->variants[v], &err)) {
            fprintf(stderr, "bench_attention: %s, %s: %s\n", shape->name, options->variants[v], err.message);
            good = false;
        }
    if (time_rounds(session, options, shape, times, &err)) {
        fprintf(stderr, "bench_attention: %s: %s\n", shape->name, err.message);
        return false;
    }
    for (int v = 0; v < options->variant_count; v++) {
        const Variant *variant = session_find(session, shape, options->variants[v]);
        if (!variant)
            continue;
        double median = timing_median(times[v], options->rounds); // sorts
        printf("%s,%s,%.5f,%.5f,%.1f,%.3f\n", shape->name, variant->name, median, times[v][0],
               tflops(shape, median), variant->error);
    }
    fflush(stdout);
    return good;
}

static int bench_all(Session *session, const Options *options, const Shapes *shapes) {
    int status = EXIT_SUCCESS;
    printf("shape,variant,ms,min_ms,tflops,error_of_allowed\n");
    for (int i = 0; i < shapes->count; i++) {
        if (!is_wanted(options, &shapes->items[i]))
            continue;
        alarm(options->limit);
        if (!bench_shape(session, options, &shapes->items[i]))
            status = EXIT_WRONG;
        alarm(0);
        session_release(session);
    }
    return status;
}

// ---------------------------------------------------------------- the server

static const Shape *find_shape(const Shapes *shapes, const char *name) {
    for (int i = 0; i < shapes->count; i++)
        if (!strcmp(shapes->items[i].name, name))
            return &shapes->items[i];
    return NULL;
}

// One line for each request, "ok ..." or "error ...". False ends the server.
static bool answer(Session *session, const Shapes *shapes, const char *line) {
    char verb[16] = "", name[BENCH_NAME_BYTES] = "", variant[BENCH_NAME_BYTES] = "";
    jfa_error err = {0};
    double milliseconds = 0;
    sscanf(line, "%15s %63s %63s", verb, name, variant);
    const Shape *shape = find_shape(shapes, name);
    if (!strcmp(verb, "quit"))
        return false;
    if (!strcmp(verb, "release")) {
        session_release(session);
        printf("ok\n");
    } else if (!shape || !*variant)
        printf("error no such request or shape: %s\n", line);
    else if (!strcmp(verb, "prepare") && !session_prepare(session, shape, variant, &err))
        printf("ok %.3f\n", session_find(session, shape, variant)->error);
    else if (!strcmp(verb, "time") && !session_time(session, shape, variant, &milliseconds, &err))
        printf("ok %.6f\n", milliseconds);
    else
        printf("error %s\n", err.status ? err.message : "no such request");
    return true;
}

static int serve(Session *session, const Options *options, const Shapes *shapes) {
    char line[512];
    printf("ok %s\n", jfa_device_get_props(session->device)->name);
    fflush(stdout);
    bool is_open = true;
    while (is_open && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = '\0';
        alarm(options->limit);
        is_open = answer(session, shapes, line);
        alarm(0);
        fflush(stdout);
    }
    return EXIT_SUCCESS;
}

// ---------------------------------------------------------------- main

static void list(const Options *options, const Shapes *shapes) {
    printf("shape,sequences,positions_q,positions_k,gflop\n");
    for (int i = 0; i < shapes->count; i++) {
        const Shape *shape = &shapes->items[i];
        if (is_wanted(options, shape))
            printf("%s,%lld,%lld,%lld,%.3f\n", shape->name, (long long)shape->sequences,
                   (long long)shape->total_q, (long long)shape->total_k, shape->flop / 1e9);
    }
}

static int soak(Session *session, const Options *options) {
    bool good = true;
    alarm(options->limit);
    for (int v = 0; good && v < options->variant_count; v++)
        good = soak_run(session, options->variants[v], options->soak, options->seed);
    alarm(0);
    return good ? EXIT_SUCCESS : EXIT_WRONG;
}

static int run(const Options *options, const Shapes *shapes) {
    jfa_error err = {0};
    Session session;
    if (options->lists) {
        list(options, shapes);
        return EXIT_SUCCESS;
    }
    if (session_open(&session, options->device, options->cubins, &err)) {
        fprintf(stderr, "bench_attention: %s\n", err.message);
        return EXIT_NO_DEVICE;
    }
    int status = options->soak     ? soak(&session, options)
                 : options->serves ? serve(&session, options, shapes)
                                   : bench_all(&session, options, shapes);
    session_close(&session);
    return status;
}

int main(int count, char **arguments) {
    static Shapes shapes;
    Options options;
    if (!read_options(count, arguments, &options))
        return EXIT_USAGE;
    signal(SIGALRM, end_hanging);
    bool good = !options.shapes || shapes_read(options.shapes, &shapes);
    int status = good ? run(&options, &shapes) : EXIT_USAGE;
    shapes_free(&shapes);
    return status;
}
