// timing.h: how long launches take, measured in bursts between two events of the device. For all who compare
// kernels: they measure in rounds, each kernel once a round, and take the median of its bursts, so that a
// clock that changes changes for all.
#ifndef JFA_TIMING_TIMING_H
#define JFA_TIMING_TIMING_H

#include "runtime/jfa.h"

typedef struct {
    jfa_device *device;
    jfa_event *start, *end;
} Timing;

// The device stays the caller's, and open for as long. After a failure there is nothing to close.
jfa_status timing_open(Timing *timing, jfa_device *device, jfa_error *err);
void timing_close(Timing *timing); // also of one that is zero

// Milliseconds of one launch, the mean of `launches` between two events.
jfa_status timing_launches(const Timing *timing, jfa_plan *plan, int launches, double *milliseconds,
                           jfa_error *err);
// Launches until the clock is up; *launches is how many make a burst.
jfa_status timing_warm_up(const Timing *timing, jfa_plan *plan, int *launches, jfa_error *err);
// One burst, as timing_launches. The GPU may have worked for someone else since the last one: what changes
// hands at the first launches isn't timed.
jfa_status timing_burst(const Timing *timing, jfa_plan *plan, int launches, double *milliseconds,
                        jfa_error *err);

// Sorts them. count > 0.
double timing_median(double *times, int count);

#endif
