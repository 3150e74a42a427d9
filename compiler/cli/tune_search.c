// tune_search.c: which combinations are tried.
#include "compiler/cli/tune.h"

#include <stdio.h>
#include <string.h>

enum {
    FEW = 32,        // combinations that are all tried
    MOST_SWEEPS = 4, // over the constants one by one; each finds less than the one before
};
// What is gained must be more than what two measurements of the same kernel differ by.
static const double LEAST_GAIN = 0.005;

typedef struct {
    TuneVariant **items;
    int count, capacity;
} Group;

static void add(Tune *tune, Group *group, TuneVariant *variant) {
    for (int i = 0; i < group->count; i++)
        if (group->items[i] == variant)
            return;
    if (variant->left_out)
        return;
    if (group->count == group->capacity) {
        group->capacity = group->capacity ? 2 * group->capacity : 32;
        TuneVariant **more = arena_array(tune->options->arena, TuneVariant *, group->capacity);
        if (group->count)
            memcpy(more, group->items, sizeof *more * (size_t)group->count);
        group->items = more;
    }
    group->items[group->count++] = variant;
}

// Measures the group, whose first is the default, and takes its fastest if that is faster than the best so
// far.
static int race(Tune *tune, const Group *group, TuneVariant **best) {
    int status = tune_measure(tune, group->items, group->count);
    if (status)
        return status;
    TuneVariant *fastest = *best;
    for (int i = 0; i < group->count; i++)
        if (group->items[i]->ratio < fastest->ratio)
            fastest = group->items[i];
    if (fastest->ratio < (*best)->ratio * (1 - LEAST_GAIN))
        *best = fastest;
    return STATUS_GOOD;
}

// ---------------------------------------------------------------- all of them

// The combinations of constants k and on, with those before as the point has them.
static int try_all(Tune *tune, TunePoint *point, int k, Group *group) {
    int status = STATUS_GOOD;
    if (k == tune->constant_count) {
        TuneVariant *variant = tune_variant(tune, point, &status);
        if (variant)
            add(tune, group, variant);
        return status;
    }
    double choices[TUNE_MAX_CHOICES];
    int count = tune_choices(tune, point, k, choices);
    for (int i = 0; !status && i < count && !tune_is_late(tune); i++) {
        point->is_set[k] = true;
        point->values[k] = choices[i];
        status = try_all(tune, point, k + 1, group);
    }
    point->is_set[k] = false;
    return status;
}

// ---------------------------------------------------------------- one constant after the other

// The best with constant k as it may be otherwise; constants that were not set follow.
static int try_one(Tune *tune, int k, TuneVariant **best) {
    double choices[TUNE_MAX_CHOICES];
    int count = tune_choices(tune, &(*best)->point, k, choices), status = STATUS_GOOD;
    Group group = {0};
    add(tune, &group, tune->variants[0]);
    add(tune, &group, *best);
    int known = group.count;
    for (int i = 0; !status && i < count && !tune_is_late(tune); i++) {
        TunePoint point = (*best)->point;
        point.is_set[k] = i > 0; // the first is its own value
        point.values[k] = choices[i];
        TuneVariant *variant = tune_variant(tune, &point, &status);
        if (variant)
            add(tune, &group, variant);
    }
    return status || group.count == known ? status : race(tune, &group, best);
}

static int try_each(Tune *tune, TuneVariant **best) {
    int status = STATUS_GOOD;
    for (int sweep = 0; !status && sweep < MOST_SWEEPS && !tune_is_late(tune); sweep++) {
        const TuneVariant *before = *best;
        for (int k = 0; !status && k < tune->constant_count; k++)
            status = try_one(tune, k, best);
        if (*best == before)
            break;
    }
    return status;
}

// ---------------------------------------------------------------- the search

// As the constants stand at their defaults: more or fewer may come from values that depend on others.
static int64_t combinations(Tune *tune) {
    int64_t product = 1;
    const Plan *plan = jfac_plan(tune->session.jfac);
    for (int k = 0; k < tune->constant_count && product <= FEW; k++)
        product *= plan->constants[tune->constants[k]].choice_count;
    return product;
}

int tune_search(Tune *tune, TuneVariant **best) {
    TunePoint point = {0};
    int status;
    Group group = {0};
    *best = tune_variant(tune, &point, &status);
    if (status)
        return status;
    if ((*best)->left_out) {
        if (!(*best)->is_wrong) // told
            fprintf(stderr, "jfac: error: the default can't be measured: %s\n", (*best)->left_out);
        return (*best)->is_wrong ? STATUS_MISMATCH : STATUS_INPUT;
    }
    add(tune, &group, *best);
    if (!tune->options->exhaustive && combinations(tune) > FEW) {
        status = race(tune, &group, best); // so that the default is measured even if nothing else is
        return status ? status : try_each(tune, best);
    }
    status = try_all(tune, &point, 0, &group);
    return status ? status : race(tune, &group, best);
}
