// measure_plan.c: how long plans take to make, and how evenly they deal out the work. Prints; asserts
// nothing.
#include "tests/runtime/fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static double now_us(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Lengths as of users' histories: log-normal, median 180, cut at 4,096.
static int32_t *make_offsets(int sequences) {
    int32_t *offsets = calloc((size_t)sequences + 1, sizeof *offsets);
    uint32_t state = 1;
    for (int s = 0; offsets && s < sequences; s++) {
        double sum = 0;
        for (int i = 0; i < 12; i++) {
            state = state * 1664525u + 1013904223u;
            sum += (double)(state >> 8) / (1 << 24);
        }
        double length = exp(5.2 + (sum - 6) * 1.1);
        offsets[s + 1] = offsets[s] + (int32_t)(length < 4096 ? length : 4096);
    }
    return offsets;
}

// The heaviest CTA's positions of the unblocked axis, in multiples of the mean.
static double imbalance(const jfa_work *work, int fields, int field, int64_t factor, int64_t ctas) {
    double *loads = calloc((size_t)ctas, sizeof *loads), most = 0, all = 0;
    for (int64_t item = 0; loads && item < work->items; item++) {
        int64_t round = item / ctas, place = item % ctas;
        double load = work->words[item / factor * fields + field];
        double *cta = &loads[round % 2 ? ctas - 1 - place : place];
        *cta += load;
        all += load;
        most = fmax(most, *cta);
    }
    free(loads);
    return most / (all / (double)ctas);
}

static void measure(jfa_kernel *kernel, int sequences) {
    enum { RUNS = 201, HEADS = 4, SMS = 148 };
    int32_t *offsets = make_offsets(sequences);
    Sample sample;
    fixture_sample(&sample, sequences, offsets[sequences], offsets[sequences], HEADS, HEADS);
    sample.axes[0].offsets = sample.axes[1].offsets = offsets;
    double times[RUNS];
    int64_t records = 0;
    for (int i = 0; i < RUNS; i++) {
        jfa_plan *plan;
        jfa_error err;
        double start = now_us();
        if (jfa_plan_create(kernel, &sample.problem, &plan, &err)) {
            printf("%s\n", err.message);
            exit(1);
        }
        times[i] = now_us() - start;
        records = jfa_plan_get_info(plan)->records;
        jfa_plan_destroy(plan, NULL);
    }
    qsort(times, RUNS, sizeof *times, ascending);
    jfa_bound bound;
    jfa_work work = {0};
    jfa_manifest manifest = fixture_manifest(SAMPLE_MANIFEST);
    if (!jfa_bind(&manifest, &sample.problem, &bound, NULL))
        jfa_work_build(&bound, &work, NULL);
    printf("%7d sequences, %7lld records: %9.1f us a plan (median of %d; fastest %.1f, slowest %.1f), the "
           "heaviest of %d CTAs has %.4f of the mean\n",
           sequences, (long long)records, times[RUNS / 2], RUNS, times[0], times[RUNS - 1], SMS,
           imbalance(&work, manifest.field_count, 3, HEADS, SMS));
    free(work.words);
    jfa_bound_release(&bound);
    free(offsets);
}

int main(void) {
    jfa_device *device;
    jfa_module *module;
    jfa_kernel *kernel;
    fixture_register();
    char *ptx = fixture_ptx(SAMPLE_MANIFEST, strlen(SAMPLE_MANIFEST));
    if (jfa_device_open("fake:sm_100a", &device, NULL) ||
        jfa_module_load(device, ptx, strlen(ptx), &module, NULL) ||
        jfa_kernel_get(module, NULL, &kernel, NULL))
        return 1;
    static const int SIZES[] = {64, 256, 1024, 4096, 16384};
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++)
        measure(kernel, SIZES[i]);
    free(ptx);
    jfa_module_unload(module, NULL);
    jfa_device_close(device, NULL);
    return 0;
}
