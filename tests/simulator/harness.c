// harness.c: see harness.h.
#include "tests/simulator/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(jfa_status status, const jfa_error *err, const char *what) {
    if (status != JFA_OK)
        fail_msg("%s: %s", what, err->message);
}

Bench bench_open(const char *spec) {
    Bench bench = {.backend = jfa_sim_backend()};
    jfa_device_props props;
    jfa_error err = {0};
    must(bench.backend->open(spec, &bench.device, &props, &err), &err, "open");
    return bench;
}

void bench_close(Bench *bench) {
    if (bench->module)
        bench->backend->module_unload(bench->device, bench->module);
    bench->backend->close(bench->device);
}

void bench_option(Bench *bench, const char *name, int64_t value) {
    jfa_error err = {0};
    must(bench->backend->set_option(bench->device, name, value, &err), &err, name);
}

void bench_load(Bench *bench, const char *text) {
    jfa_error err = {0};
    if (bench->module)
        bench->backend->module_unload(bench->device, bench->module);
    bench->module = NULL;
    must(bench->backend->module_load(bench->device, text, strlen(text), &bench->module, &err), &err, "load");
}

void bench_load_file(Bench *bench, const char *name) {
    char path[600];
    static char text[1 << 18];
    snprintf(path, sizeof path, "%s/%s", FOLDER, name);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    size_t length = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    text[length] = '\0';
    bench_load(bench, text);
}

uint64_t bench_alloc(Bench *bench, size_t bytes, const void *initial) {
    jfa_error err = {0};
    uint64_t address = 0;
    must(bench->backend->alloc(bench->device, bytes, &address, &err), &err, "alloc");
    if (initial)
        must(bench->backend->copy_in(bench->device, address, initial, bytes, &err), &err, "copy_in");
    return address;
}

void bench_read(Bench *bench, void *to, uint64_t from, size_t bytes) {
    jfa_error err = {0};
    must(bench->backend->copy_out(bench->device, to, from, bytes, &err), &err, "copy_out");
}

void bench_param(Bench *bench, const void *bytes, size_t size, size_t align) {
    size_t at = (bench->params_bytes + align - 1) / align * align;
    assert_true(at + size <= sizeof bench->params);
    if (bytes)
        memcpy(bench->params + at, bytes, size);
    else
        memset(bench->params + at, 0, size);
    bench->params_bytes = at + size;
}

void bench_param_u64(Bench *bench, uint64_t value) {
    bench_param(bench, &value, 8, 8);
}
void bench_param_u32(Bench *bench, uint32_t value) {
    bench_param(bench, &value, 4, 4);
}

void bench_param_map(Bench *bench, const jfa_tensor_map *map) {
    uint8_t bytes[128];
    jfa_error err = {0};
    must(bench->backend->encode_tensor_map(bench->device, map, bytes, &err), &err, "tensor map");
    bench_param(bench, bytes, sizeof bytes, 128);
}

const SimFault *bench_run(Bench *bench, BenchLaunch launch) {
    static const SimFault NONE;
    void *function = NULL;
    jfa_error err = {0};
    must(bench->backend->function_get(bench->device, bench->module, launch.kernel, &function, &err), &err,
         "function");
    jfa_launch_desc desc = {.grid = {launch.grid, bench->grid_y ? bench->grid_y : 1, 1},
                            .block = {launch.block, 1, 1},
                            .cluster = {launch.cluster ? launch.cluster : 1, 1, 1},
                            .shared_bytes = launch.shared,
                            .params = bench->params,
                            .params_bytes = bench->params_bytes};
    jfa_status status = bench->backend->launch(bench->device, function, &desc, &err);
    jfa_status finished = status == JFA_OK ? bench->backend->synchronise(bench->device, NULL, &err) : status;
    bench->params_bytes = 0;
    const SimFault *fault = jfa_sim_last_fault(bench->device);
    if (finished == JFA_OK)
        return &NONE;
    if (fault->kind == SIM_FAULT_NONE)
        fail_msg("launch: %s", err.message);
    return fault;
}

void bench_run_well(Bench *bench, BenchLaunch launch) {
    const SimFault *fault = bench_run(bench, launch);
    if (fault->kind != SIM_FAULT_NONE)
        fail_msg("%s", fault->text);
}

void bench_run_fault(Bench *bench, BenchLaunch launch, SimFaultKind kind, const char *says) {
    const SimFault *fault = bench_run(bench, launch);
    if (fault->kind != kind || !strstr(fault->text, says))
        fail_msg("expected '%s' with '%s', got %s", jfa_sim_fault_name(kind), says,
                 fault->kind == SIM_FAULT_NONE ? "no fault" : fault->text);
}

float bench_bf16(float value, uint16_t *bits) {
    uint32_t word;
    memcpy(&word, &value, 4);
    word = (word + 0x7FFF + (word >> 16 & 1)) & 0xFFFF0000u;
    *bits = (uint16_t)(word >> 16);
    memcpy(&value, &word, 4);
    return value;
}

uint32_t bench_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

float bench_uniform(uint32_t *state) {
    return (float)bench_random(state) / 8388608.0f - 1.0f;
}
