// timing.c: bursts of launches between two events.
#include "timing/timing.h"

#include <stdlib.h>

enum { MAX_LAUNCHES = 500 };
// A burst is long beside the events' resolution and the clock's ramp, and short enough for many rounds.
static const double BURST_MS = 20, WARM_UP_MS = 100;
static const double LEAST_MS = 1e-3; // of a launch: a plan without work takes no time

jfa_status timing_open(Timing *timing, jfa_device *device, jfa_error *err) {
    *timing = (Timing){.device = device};
    jfa_status status = jfa_event_create(device, &timing->start, err);
    if (!status)
        status = jfa_event_create(device, &timing->end, err);
    if (status)
        timing_close(timing);
    return status;
}

void timing_close(Timing *timing) {
    jfa_event_destroy(timing->start);
    jfa_event_destroy(timing->end);
    *timing = (Timing){0};
}

jfa_status timing_launches(const Timing *timing, jfa_plan *plan, int launches, double *milliseconds,
                           jfa_error *err) {
    float elapsed = 0;
    jfa_status status = jfa_event_record(timing->start, NULL, err);
    for (int i = 0; !status && i < launches; i++)
        status = jfa_launch(plan, NULL, err);
    if (!status)
        status = jfa_event_record(timing->end, NULL, err);
    if (!status)
        status = jfa_event_elapsed(timing->start, timing->end, &elapsed, err);
    *milliseconds = (double)elapsed / launches;
    return status ? status : jfa_synchronise(timing->device, NULL, err);
}

jfa_status timing_warm_up(const Timing *timing, jfa_plan *plan, int *launches, jfa_error *err) {
    double once = 0, total = 0;
    jfa_status status = JFA_OK;
    *launches = 1;
    while (!status && total < WARM_UP_MS) {
        int count = once > 0 ? (int)(BURST_MS / once) + 1 : 1;
        count = count > MAX_LAUNCHES ? MAX_LAUNCHES : count;
        status = timing_launches(timing, plan, count, &once, err);
        once = once > LEAST_MS ? once : LEAST_MS;
        total += once * count;
        *launches = count;
    }
    return status;
}

jfa_status timing_burst(const Timing *timing, jfa_plan *plan, int launches, double *milliseconds,
                        jfa_error *err) {
    jfa_status status = timing_launches(timing, plan, launches / 4 + 1, milliseconds, err);
    return status ? status : timing_launches(timing, plan, launches, milliseconds, err);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double timing_median(double *times, int count) {
    qsort(times, (size_t)count, sizeof *times, ascending);
    return times[count / 2];
}
