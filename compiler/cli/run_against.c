// run_against.c: the same problem on a second device, whose outputs stand beside the first one's. Both are
// held against the reference; beyond that, two devices that execute the same PTX differ only where PTX leaves
// it open: in the last places of approximate functions and in the order within a tensor core's sum. So
// elements may differ by no more than the reference allows of each.
#include "compiler/cli/run.h"
#include "compiler/reference/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_output(const RunTensor *tensor) {
    return tensor->is_given && tensor->declared->direction != TENSOR_IN;
}

// Elements that the kernel gave a value; run_compare accepts them into `before`, so they are counted first.
static int64_t count_written(const RunTensor *tensor) {
    size_t width = (size_t)elem_bytes(tensor->declared->elem);
    int64_t count = 0;
    for (size_t at = RUN_GUARD_BYTES; at < RUN_GUARD_BYTES + tensor->bytes; at += width)
        count += memcmp(tensor->other + at, tensor->before + at, width) != 0;
    return count;
}

// What the other device wrote moves from `after` to `other`.
static bool set_aside(RunProblem *problem) {
    for (int i = 0; i < problem->plan->tensor_count; i++) {
        RunTensor *tensor = &problem->tensors[i];
        if (!is_output(tensor))
            continue;
        size_t bytes = tensor->bytes + 2 * RUN_GUARD_BYTES;
        tensor->other = malloc(bytes);
        if (!tensor->other)
            return false;
        memcpy(tensor->other, tensor->after, bytes);
        tensor->other_written = count_written(tensor);
    }
    return true;
}

int run_on_other(RunDevice *other, RunProblem *problem, int64_t seed) {
    double milliseconds;
    jfa_error error = {0};
    int status = run_status(run_on_device(other, problem, seed, &milliseconds, &error), &error);
    if (!status && !set_aside(problem)) {
        fprintf(stderr, "jfac: out of memory for a second device's outputs\n");
        status = STATUS_MEMORY;
    }
    return status;
}

typedef struct {
    int64_t different; // elements
    double largest;    // difference; infinite where one is NaN or infinite and the other isn't
    int64_t at;        // where that is
} Differences;

static Differences find_differences(const RunTensor *tensor) {
    Elem elem = tensor->declared->elem;
    size_t width = (size_t)elem_bytes(elem);
    const unsigned char *a = tensor->after + RUN_GUARD_BYTES, *b = tensor->other + RUN_GUARD_BYTES;
    Differences found = {0};
    for (int64_t i = 0; i < (int64_t)(tensor->bytes / width); i++) {
        size_t at = (size_t)i * width;
        if (!memcmp(a + at, b + at, width))
            continue;
        double x = number_read(elem, false, a, i), y = number_read(elem, false, b, i), size = fabs(x - y);
        if (isnan(x) && isnan(y)) // payloads are nobody's business
            continue;
        found.different++;
        if (!(size <= found.largest)) {
            found.largest = isnan(size) ? INFINITY : size;
            found.at = i;
        }
    }
    return found;
}

int run_compare_devices(const RunProblem *problem, const CliOptions *options) {
    int status = STATUS_GOOD;
    for (int i = 0; i < problem->plan->tensor_count; i++) {
        const RunTensor *tensor = &problem->tensors[i];
        if (!is_output(tensor))
            continue;
        Differences found = find_differences(tensor);
        bool passes = found.largest <= tensor->bound;
        printf("  %s against %s: %lld of %lld elements of %s differ, by %.3g at most (bound %.3g)  %s\n",
               options->device, options->against, (long long)found.different,
               (long long)tensor->other_written, tensor->declared->name, found.largest, tensor->bound,
               passes ? "pass" : "FAIL");
        if (passes)
            continue;
        const void *ours = tensor->after + RUN_GUARD_BYTES, *others = tensor->other + RUN_GUARD_BYTES;
        fprintf(stderr, "jfac: element %lld of %s is %.9g on %s and %.9g on %s\n", (long long)found.at,
                tensor->declared->name, number_read(tensor->declared->elem, false, ours, found.at),
                options->device, number_read(tensor->declared->elem, false, others, found.at),
                options->against);
        status = STATUS_MISMATCH;
    }
    return status;
}
