// manifest.h: what a kernel's user must know to launch it, as the runtime's manifest text.
#ifndef JFA_COMPILER_LOWER_MANIFEST_H
#define JFA_COMPILER_LOWER_MANIFEST_H

#include "compiler/lower/lower.h"

// What the kernel has more of than a manifest can say, in words; NULL: nothing.
const char *lower_too_many(const Plan *plan, const KernelArgs *args, const Watchdog *watchdog);

// In the plan's arena. NULL and a message: the plan can't be described (an internal error).
const char *lower_manifest(const Plan *plan, const KernelArgs *args, const Watchdog *watchdog,
                           const SourceSet *sources, size_t *length, const char **message);

#endif
