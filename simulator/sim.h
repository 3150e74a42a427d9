// sim.h: a simulated GPU that executes PTX text, instruction by instruction, and looks for mistakes while it
// does. Devices "sim:sm_100a" and "sim:sm_90a"; "sim:sm_100a,sms=8" sets the number of simulated SMs (default
// 4). Options (jfa_backend.set_option): "seed" (order of warps, delay of asynchronous operations), "threads"
// (host threads; default all cores), "race" (0: no checks of order), "steps" (instructions of warps
// that a cluster may execute before it counts as endless; 0, the default: any number). The same seed gives
// the same run whatever the number of threads, but for what several clusters write to the same global memory.
// A device may be used by several threads: it takes one call at a time.
//
// Refused when a module is loaded, each by its name: functions (.func, call); tcgen05.mma of kinds i8, mxf4
// and mxf4nvf4, .ws, .sp and .ashift, tcgen05.shift, decompressing copies; im2col, gather4 and scatter4;
// cvt.rs and the 4- and 6-bit formats; textures. Not modelled: caches and their hints, time (clocks count
// instructions, a nanosecond each, and run ahead while all that a cluster does is wait, so that a kernel's
// own limits of time pass), programmatic dependent launch (its instructions do nothing), scopes of fences
// (all reach the whole device). The order of accesses to shared and tensor memory is checked within a CTA and
// between the two CTAs of a pair, not in larger clusters; global memory is checked for bounds and for being
// written.
#ifndef JFA_SIMULATOR_SIM_H
#define JFA_SIMULATOR_SIM_H

#include "runtime/backend.h"

typedef enum {
    SIM_FAULT_NONE,
    SIM_FAULT_DEADLOCK,  // no warp can go on
    SIM_FAULT_RACE,      // accesses that no synchronisation orders
    SIM_FAULT_PROXY,     // ordered, but a fence between proxies is missing
    SIM_FAULT_UNWRITTEN, // read of memory that nobody wrote
    SIM_FAULT_BOUNDS,    // outside an allocation
    SIM_FAULT_ALIGNMENT,
    SIM_FAULT_TENSOR_MEMORY, // not allocated, not freed, wrong warp for a lane
    SIM_FAULT_DESCRIPTOR,    // illegal matrix or instruction descriptor, or tensor map
    SIM_FAULT_BARRIER,       // mbarrier misuse
    SIM_FAULT_REGISTERS,     // register budget, or a register read before its asynchronous load has landed
    SIM_FAULT_CONVERGENCE,   // an aligned instruction in a diverged warp
    SIM_FAULT_EXIT,          // a CTA ended with unfinished business
    SIM_FAULT_TRAP,
    SIM_FAULT_UNSUPPORTED,
} SimFaultKind;

typedef struct {
    SimFaultKind kind;
    int line;       // of the PTX text; 0: none
    char file[128]; // of the .jfa source by .loc; empty: none
    int file_line;
    int cta, warp, lane;
    char text[1536]; // the whole report
} SimFault;

typedef void (*SimProgress)(void *context, uint64_t done, uint64_t total); // CTAs (clusters)

const jfa_backend *jfa_sim_backend(void);
jfa_status jfa_sim_register(jfa_error *err);

// Called during launches of that device (a backend handle), from any thread, one call at a time. NULL: none.
void jfa_sim_on_progress(void *device, SimProgress progress, void *context);

// The fault that ended the device's last launch; kind SIM_FAULT_NONE: it ended well.
const SimFault *jfa_sim_last_fault(void *device);

// Instructions that the warps of the device's last launch executed; those that wait count once a look. The
// same seed gives the same number.
uint64_t jfa_sim_executed(void *device);

const char *jfa_sim_fault_name(SimFaultKind kind);

#endif
