// tune.h: what the files of `jfac tune` share: a search over the values that a schedule lists for its
// constants.
#ifndef JFA_COMPILER_CLI_TUNE_H
#define JFA_COMPILER_CLI_TUNE_H

#include "compiler/cli/run.h"
#include "timing/timing.h"

enum { TUNE_MAX_CONSTANTS = 32, TUNE_MAX_CHOICES = 64 };

// A combination: what -D says of the constants. Those that it says nothing of have their own value, which may
// follow from others.
typedef struct {
    bool is_set[TUNE_MAX_CONSTANTS];
    double values[TUNE_MAX_CONSTANTS];
} TunePoint;

typedef struct {
    TunePoint point;
    double values[TUNE_MAX_CONSTANTS]; // as compiled; NaN: it never got as far
    const char *left_out;              // why it isn't compared with others, or NULL
    bool is_wrong;                     // left out because of its results
    RunDevice loaded;                  // its module on the device
    jfa_plan *plan;
    int launches; // that make a burst
    double cost;  // milliseconds or instructions of a launch; 0: not measured
    double ratio; // to the default's cost, measured in the same rounds
} TuneVariant;

typedef struct {
    CliOptions *options;
    RunDevice device;
    Timing timing;
    bool counts_instructions;
    Session session;                   // of the defaults: what is tuned, and what a problem looks like
    int constants[TUNE_MAX_CONSTANTS]; // of the plan
    int constant_count;
    RunProblem measured, checked;
    RunReference reference; // of `checked`
    TuneVariant **variants; // the first has the defaults
    int count, capacity;
    double started_ms;
} Tune;

const char *tune_constant_name(const Tune *tune, int k);
const char *tune_value_text(const Tune *tune, int k, double value);
// "N=144, STAGES=2"
const char *tune_variant_text(const Tune *tune, const TuneVariant *variant);
bool tune_is_late(const Tune *tune);

// ---- tune_variant.c

// What constant k may be at that point. Whatever the compilation says otherwise, as many as could be found.
int tune_choices(Tune *tune, const TunePoint *point, int k, double choices[TUNE_MAX_CHOICES]);
// Builds, loads and checks the kernel of that point, unless it is known. NULL: the search can't go on,
// *status says how it ends; messages are printed.
TuneVariant *tune_variant(Tune *tune, const TunePoint *point, int *status);
// Measures each of them in turns, which sets their cost and ratio. The first has the defaults. A status.
int tune_measure(Tune *tune, TuneVariant **group, int count);
void tune_unload(Tune *tune);

// ---- tune_search.c

// All combinations if they are few, else one constant after the other. The best: *best. A status.
int tune_search(Tune *tune, TuneVariant **best);

// ---- tune_file.c

// Entries of the output file, which may not exist yet. A status; what is wrong with it is printed.
int tune_read_file(const Tune *tune, const char *path, TunedEntry **entries);
// With the winner's entry in its place.
int tune_write_file(const Tune *tune, const char *path, const TuneVariant *winner);

#endif
