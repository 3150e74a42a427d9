// harness.h: a simulated device for the tests of this folder: PTX in, bytes and faults out.
#ifndef JFA_TESTS_SIMULATOR_HARNESS_H
#define JFA_TESTS_SIMULATOR_HARNESS_H

#include "simulator/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef struct {
    const jfa_backend *backend;
    void *device, *module;
    uint8_t params[1024];
    size_t params_bytes;
    uint32_t grid_y; // of the next launch; 0: 1
} Bench;

// Each fails the test with the simulator's message when it does not succeed.
Bench bench_open(const char *spec);
void bench_close(Bench *bench);
void bench_option(Bench *bench, const char *name, int64_t value);
void bench_load(Bench *bench, const char *text);                       // replaces the module
void bench_load_file(Bench *bench, const char *name);                  // relative to this folder
uint64_t bench_alloc(Bench *bench, size_t bytes, const void *initial); // initial: NULL or `bytes` bytes
void bench_read(Bench *bench, void *to, uint64_t from, size_t bytes);
// Parameters in order, with natural alignment; NULL bytes: zeros.
void bench_param(Bench *bench, const void *bytes, size_t size, size_t align);
void bench_param_u64(Bench *bench, uint64_t value);
void bench_param_u32(Bench *bench, uint32_t value);
void bench_param_map(Bench *bench, const jfa_tensor_map *map);

typedef struct {
    const char *kernel;
    uint32_t grid, block, cluster, shared; // cluster 0: 1
} BenchLaunch;

// The fault that the launch ended with; kind SIM_FAULT_NONE: none. Forgets the parameters.
const SimFault *bench_run(Bench *bench, BenchLaunch launch);
// The launch must end without a fault.
void bench_run_well(Bench *bench, BenchLaunch launch);
// The launch must end with that kind of fault, and its text must hold `says`.
void bench_run_fault(Bench *bench, BenchLaunch launch, SimFaultKind kind, const char *says);

float bench_bf16(float value, uint16_t *bits); // rounds to nearest even; returns the rounded value
uint32_t bench_random(uint32_t *state);
float bench_uniform(uint32_t *state); // -1 .. 1

#endif
