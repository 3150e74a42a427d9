#include "tests/reference/bench.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void fail_with_messages(const Bench *bench, const char *what) {
    diag_print_text(&bench->diag, stderr);
    fail_msg("%s", what);
}

static void start(Bench *bench) {
    *bench = (Bench){0};
    bench->arena = arena_new();
    assert_non_null(bench->arena);
    bench->sources.arena = bench->arena;
    diag_init(&bench->diag, bench->arena, &bench->sources);
    bench->problem.sequences = 1;
    bench->problem.constants = bench->constants;
    bench->problem.dims = bench->dims;
    bench->problem.axes = bench->axes;
    bench->problem.params = bench->params;
    bench->problem.tensors = bench->tensors;
}

static void take_items(Bench *bench, int file) {
    for (const Ast *item = parse_file(bench->arena, &bench->diag, file); item; item = item->next) {
        if (item->kind == AST_FAMILY)
            bench->problem.family = item;
        if (item->kind == AST_KERNEL)
            bench->problem.kernel = item;
    }
    if (bench->diag.error_count || !bench->problem.family)
        fail_with_messages(bench, "the test's text is wrong");
}

void bench_open(Bench *bench, const char *text) {
    start(bench);
    take_items(bench, source_add(&bench->sources, "test.jfa", text, strlen(text)));
}

void bench_open_file(Bench *bench, const char *path, const char *text) {
    start(bench);
    const char *reason = "";
    int file =
        source_read(&bench->sources, arena_format(bench->arena, "%s/%s", JFA_SOURCE_DIR, path), &reason);
    if (file < 0)
        fail_msg("%s: %s", path, reason);
    take_items(bench, file);
    take_items(bench, source_add(&bench->sources, "test.jfa", text, strlen(text)));
}

void bench_close(Bench *bench) {
    arena_free(bench->arena);
}

void bench_axis(Bench *bench, const char *name, const int64_t *lengths) {
    bench->axes[bench->problem.axis_count++] = (ReferenceAxis){name, lengths};
}

void bench_dim(Bench *bench, const char *name, int64_t value) {
    bench->dims[bench->problem.dim_count++] = (ReferenceDim){name, value};
}

void bench_param(Bench *bench, const char *name, double value) {
    bench->params[bench->problem.param_count++] = (ReferenceParam){name, value};
}

ReferenceTensor *bench_tensor(Bench *bench, const char *name, const double *data, int rank,
                              const int64_t *extents) {
    ReferenceTensor *tensor = &bench->tensors[bench->problem.tensor_count++];
    *tensor = (ReferenceTensor){.name = name, .data = data, .is_double = true, .rank = rank};
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        tensor->extent[d] = extents[d];
        tensor->stride[d] = stride;
        stride *= extents[d];
    }
    return tensor;
}

ReferenceTensor *bench_tensor1(Bench *bench, const char *name, const double *data, int64_t a) {
    return bench_tensor(bench, name, data, 1, (int64_t[]){a});
}

ReferenceTensor *bench_tensor2(Bench *bench, const char *name, const double *data, int64_t a, int64_t b) {
    return bench_tensor(bench, name, data, 2, (int64_t[]){a, b});
}

ReferenceTensor *bench_tensor3(Bench *bench, const char *name, const double *data, int64_t a, int64_t b,
                               int64_t c) {
    return bench_tensor(bench, name, data, 3, (int64_t[]){a, b, c});
}

ReferenceResults bench_run(Bench *bench, ReferenceMode mode) {
    ReferenceResults results;
    if (!reference_evaluate(bench->arena, &bench->diag, &bench->problem, mode, &results))
        fail_with_messages(bench, "the reference can't be evaluated");
    return results;
}

const double *bench_values(const ReferenceResults *results, const char *name) {
    for (int i = 0; i < results->count; i++)
        if (!strcmp(results->outputs[i].name, name))
            return results->outputs[i].values;
    fail_msg("there is no output %s", name);
    return NULL;
}

double *bench_noise(Bench *bench, int64_t count, uint32_t seed) {
    double *values = arena_array(bench->arena, double, count + 1);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = ldexp(((int)(seed >> 24) - 128) / 128.0, -(int)(seed >> 16 & 7));
    }
    return values;
}
