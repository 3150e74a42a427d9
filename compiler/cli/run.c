// run.c: jfac run FILE: compiles, runs on a device with made-up inputs, and compares with the family's
// reference.
#include "compiler/cli/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE_MAX_BYTES = 256 * 1024 * 1024 };

// ---------------------------------------------------------------- the image

static int read_image(const CliOptions *options, const void **image, size_t *bytes) {
    errno = 0;
    FILE *file = fopen(options->image, "rb");
    long size = -1;
    if (file && !fseek(file, 0, SEEK_END))
        size = ftell(file);
    bool good = size > 0 && size <= IMAGE_MAX_BYTES && !fseek(file, 0, SEEK_SET);
    if (good) {
        void *room = arena_alloc(options->arena, (size_t)size + 1); // zeroed: PTX ends with a NUL
        good = fread(room, 1, (size_t)size, file) == (size_t)size;
        *image = room;
        *bytes = (size_t)size;
    }
    const char *reason = errno && !good           ? strerror(errno)
                         : size > IMAGE_MAX_BYTES ? "it is larger than any kernel"
                                                  : "it holds nothing";
    if (file)
        fclose(file);
    if (good)
        return STATUS_GOOD;
    fprintf(stderr, "jfac: can't read %s: %s\n", options->image, reason);
    return STATUS_ENVIRONMENT;
}

// Simulated devices execute PTX; real ones get the cubin that `jfac build` would write.
static int make_image(Session *session, const RunDevice *device, const CliOptions *options,
                      const void **image, size_t *bytes) {
    if (options->image)
        return read_image(options, image, bytes);
    if (device->is_simulated) {
        *image = jfac_ptx(session->jfac);
        *bytes = strlen(jfac_ptx(session->jfac));
        return STATUS_GOOD;
    }
    EmitReport report;
    void *cubin = NULL;
    int status = session_assemble(session, options, &cubin, bytes, &report);
    *image = cubin;
    return status;
}

// ---------------------------------------------------------------- the runs

// other: NULL unless there is a second device.
static int run_seed(RunDevice *device, RunDevice *other, RunProblem *problem, Session *session,
                    const CliOptions *options, int64_t seed) {
    // Layouts alternate: sequences close to each other, so that a neighbour's rows lie behind the last one,
    // and rows of no one in between.
    bool spread = !options->no_poison && seed % 2 == 0;
    RunRow row = {.device = options->device, .seed = seed};
    RunReference reference = {0};
    jfa_error error = {0};
    int status = STATUS_MEMORY;
    if (run_make_tensors(problem, (uint64_t)seed, !options->no_poison, spread))
        status = other ? run_on_other(other, problem, seed) : STATUS_GOOD;
    if (!status)
        status = run_status(run_on_device(device, problem, seed, &row.milliseconds, &error), &error);
    if (!status)
        status = run_reference(problem, session, options, &reference);
    if (!status && !run_compare(problem, &reference, &row))
        status = STATUS_MISMATCH;
    if (!status && other)
        status = run_compare_devices(problem, options);
    run_free_reference(&reference);
    run_free_tensors(problem);
    return status;
}

// A mismatch doesn't end the other seeds; anything else does.
static int run_seeds(RunDevice *device, RunDevice *other, RunProblem *problem, Session *session,
                     const CliOptions *options) {
    int worst = STATUS_GOOD;
    for (int64_t i = 0; i < options->seeds; i++) {
        int status = run_seed(device, other, problem, session, options, options->seed + i);
        if (status)
            worst = status;
        if (status && status != STATUS_MISMATCH)
            break;
    }
    return worst;
}

static int load(Session *session, RunDevice *device, const CliOptions *options) {
    const void *image = NULL;
    size_t bytes = 0;
    int status = make_image(session, device, options, &image, &bytes);
    jfa_error error = {0};
    return status ? status : run_status(run_load(device, image, bytes, &error), &error);
}

static int run(Session *session, RunDevice *device, RunDevice *other, CliOptions *options) {
    int status = session_status(session, jfac_lower(session->jfac, &session->options, &session->message));
    session_tell_tuned(session);
    RunProblem problem;
    if (!status)
        status = run_read_problem(&problem, jfac_plan(session->jfac), options);
    if (!status)
        status = load(session, device, options);
    if (!status && other)
        status = load(session, other, options);
    if (!status)
        status = run_seeds(device, other, &problem, session, options);
    return status;
}

int command_run(CliOptions *options) {
    if (!options->device)
        options->device =
            arena_format(options->arena, "sim:%s", options->target ? options->target : DEFAULT_TARGET);
    RunDevice device = {0}, other = {0};
    int status = run_begin();
    if (!status)
        status = run_open(&device, options->device);
    if (!status && options->against)
        status = run_open(&other, options->against);
    if (status) {
        run_close(&device);
        return status;
    }
    if (!options->target)
        options->target = jfa_device_get_props(device.device)->arch;
    // What was tuned on another GPU is not for this one; a simulated one has nothing of its own.
    if (!device.is_simulated && !options->tuned_device)
        options->tuned_device = jfa_device_get_props(device.device)->name;
    Session session;
    status = session_open(&session, options);
    if (!status)
        status = run(&session, &device, options->against ? &other : NULL, options);
    run_close(&device);
    run_close(&other);
    session_close(&session);
    return status;
}
