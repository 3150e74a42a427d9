// jfac.h: the compiler as a library: one compilation from a .jfa file to PTX with its manifest. Assembling to
// a cubin is emit/emit.h. Not safe for several threads on one Jfac; different ones are independent.
#ifndef JFA_COMPILER_JFAC_H
#define JFA_COMPILER_JFAC_H

#include "compiler/plan/plan.h"
#include "compiler/reference/reference.h"
#include "compiler/sema/sema.h"
#include "grammar/ast.h"

typedef struct {
    const char *path;                // the main file
    const char *target;              // "sm_100a"
    const char *kernel;              // NULL: the file's only one
    const char *const *include_dirs; // where `use` looks after the using file's own directory
    int include_dir_count;
    const char *const *defines; // "name=value"
    int define_count;
    int64_t watchdog_ms;      // limit of each wait, up to JFA_MOST_WATCHDOG_MS (runtime/manifest.h); 0: none
    const char *tuned;        // NULL: none; the file from which a schedule's constants are taken
    const char *tuned_device; // NULL: what was tuned on any device fits
} JfacOptions;

typedef struct {
    double front_ms; // reading, sema, place, protocol
    double llvm_ms;  // lowering, passes, PTX
} JfacTimes;

typedef struct Jfac Jfac;

Jfac *jfac_new(void); // NULL: out of memory
void jfac_free(Jfac *jfac);

// Each step runs the ones before it if they haven't run. False: errors are in jfac_diag (for jfac_lower also
// an internal error as its message). Strings and trees belong to the Jfac.
bool jfac_parse(Jfac *jfac, const JfacOptions *options);
bool jfac_check(Jfac *jfac, const JfacOptions *options);
bool jfac_lower(Jfac *jfac, const JfacOptions *options, const char **message);

const Diag *jfac_diag(const Jfac *jfac);
const Ast *jfac_tree(const Jfac *jfac);
const SemaParts *jfac_parts(const Jfac *jfac); // the kernel, family and schedule in the tree
const Plan *jfac_plan(const Jfac *jfac);
const char *jfac_ptx(const Jfac *jfac);
const char *jfac_llvm(const Jfac *jfac); // as lowered, before LLVM's passes
JfacTimes jfac_times(const Jfac *jfac);

// Options of the family and constants of the kernel that -D changed, as the reference wants them; their
// number. `out` has room for all defines.
int jfac_given_constants(const Plan *plan, const char *const *defines, int define_count,
                         ReferenceConstant *out);

#endif
