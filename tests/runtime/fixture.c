// fixture.c: see fixture.h.
#include "tests/runtime/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const char SAMPLE_MANIFEST[] = "jfa-manifest 1\n"
                               "kernel sample\n"
                               "entry sample_entry\n"
                               "target sm_100a\n"
                               "compiler 0.1.0\n"
                               "source examples/my sample.jfa\n"
                               "threads 384\n"
                               "shared 131072\n"
                               "cluster 1\n"
                               "axis q\n"
                               "axis k\n"
                               "dim heads\n"
                               "dim kv_heads\n"
                               "divides kv_heads heads\n"
                               "constant head_dim 128\n"
                               "constant dtype bf16\n"
                               "tensor Q in bf16 q,heads,128\n"
                               "tensor K in bf16 k,kv_heads,128\n"
                               "tensor O out bf16 q,heads,128\n"
                               "tensor LSE out f32 heads,q optional\n"
                               "param scale f32 0.088388347648318447\n"
                               "param window i32\n"
                               "positive window\n"
                               "factor heads\n"
                               "block q 256\n"
                               "heaviest_first\n"
                               "persistent\n"
                               "field seq\n"
                               "field start q\n"
                               "field len q\n"
                               "field len k\n"
                               "field base Q 0\n"
                               "field base K 0\n"
                               "field base LSE 1\n"
                               "map Q 128 128 col:64 rows:0:128 chunk:2 dim:1:1 end:0\n"
                               "map K 128 128 col:64 rows:0:128 chunk:2 dim:1:1 end:0\n"
                               "map O 128 128 col:64 rows:0:128 chunk:1 dim:1:1 end:0\n"
                               "arg 0 128 map 0\n"
                               "arg 128 128 map 1\n"
                               "arg 256 128 map 2\n"
                               "arg 384 8 ptr LSE\n"
                               "arg 392 8 stride LSE 0\n"
                               "arg 400 8 stride LSE 1\n"
                               "arg 408 8 records\n"
                               "arg 416 4 dim heads\n"
                               "arg 420 4 param scale\n"
                               "arg 424 4 param window\n"
                               "arg 428 4 record_count\n"
                               "arg 432 4 items\n"
                               "end\n";

const char MATMUL_MANIFEST[] = "jfa-manifest 1\n"
                               "kernel matmul\n"
                               "entry matmul\n"
                               "target sm_100a\n"
                               "compiler 0.1.0\n"
                               "source examples/matmul.jfa\n"
                               "threads 192\n"
                               "shared 65536\n"
                               "cluster 2\n"
                               "axis m\n"
                               "axis n\n"
                               "axis k\n"
                               "tensor A in bf16 m,k\n"
                               "tensor B in bf16 n,k\n"
                               "tensor C out bf16 m,n\n"
                               "block m 128\n"
                               "block n 128\n"
                               "field seq\n"
                               "field start m\n"
                               "field start n\n"
                               "field len m\n"
                               "field len n\n"
                               "field len k\n"
                               "field base A 0\n"
                               "field base A 1\n"
                               "map A 128 64 col:64 rows:0:128 end:0\n"
                               "map B 128 64 col:64 rows:0:128 end:0\n"
                               "map C 128 128 col:64 rows:0:128 end:0\n"
                               "arg 0 128 map 0\n"
                               "arg 128 128 map 1\n"
                               "arg 256 128 map 2\n"
                               "arg 384 8 records\n"
                               "arg 392 4 items\n"
                               "end\n";

jfa_manifest fixture_manifest(const char *text) {
    jfa_manifest manifest;
    jfa_error err = {0};
    size_t used;
    if (jfa_manifest_read(text, strlen(text), &manifest, &used, &err))
        fail_msg("%s", err.message);
    return manifest;
}

char *fixture_edit(const char *text, const char *find, const char *replace) {
    const char *at = strstr(text, find);
    if (!at)
        fail_msg("'%s' is not in the text", find);
    char *edited = malloc(strlen(text) + strlen(replace) + 1);
    assert_non_null(edited);
    sprintf(edited, "%.*s%s%s", (int)(at - text), text, replace, at + strlen(find));
    return edited;
}

char *fixture_watched(void) {
    return fixture_edit(SAMPLE_MANIFEST, "arg 432 4 items\n",
                        "arg 432 4 items\n"
                        "arg 440 8 watchdog\n"
                        "watchdog 100\n"
                        "file a schedule.jfa\n"
                        "wait mma full kv 1 3 0 73\n"
                        "wait load empty scores 2 1 0 81\n");
}

char *fixture_ptx(const char *manifest, size_t length) {
    char *text = malloc(1024 + length * 5);
    assert_non_null(text);
    char *at = text + sprintf(text,
                              ".version 8.8\n.target sm_100a\n.address_size 64\n// jfa_manifest[1] = {0}\n"
                              ".visible .global .align 1 .b8 jfa_manifest[%zu] = {",
                              length);
    for (size_t i = 0; i < length; i++)
        at += sprintf(at, "%s%u", i ? ", " : "", (unsigned char)manifest[i]);
    sprintf(at, "};\n.visible .entry sample_entry() { ret; }\n");
    return text;
}

// ---------------------------------------------------------------- the device

Fake fake;

typedef struct Block {
    struct Block *next;
    uint64_t address;
    size_t bytes;
    unsigned char data[];
} Block;

static Block *blocks;
static uint64_t next_address = 0x100000000;

static jfa_status outcome(const char *function, jfa_error *err) {
    if (!fake.failing || strcmp(fake.failing, function) != 0)
        return JFA_OK;
    jfa_status status = fake.failure ? fake.failure : JFA_ERROR_DEVICE;
    if (!fake.silent)
        jfa_error_set(err, status, "fake failure in %s", function);
    return status;
}

static jfa_status fake_open(const char *spec, void **device, jfa_device_props *props, jfa_error *err) {
    if (outcome("open", err))
        return JFA_ERROR_DEVICE;
    *props = (jfa_device_props){.name = "a fake", .sm_count = 4, .shared_bytes_per_cta = 232448};
    snprintf(props->arch, sizeof props->arch, "%s", spec);
    *device = &fake;
    fake.live_devices++;
    return JFA_OK;
}

static void fake_close(void *device) {
    (void)device;
    fake.live_devices--;
}

static jfa_status fake_alloc(void *device, size_t bytes, uint64_t *address, jfa_error *err) {
    (void)device;
    if (outcome("alloc", err))
        return JFA_ERROR_DEVICE;
    Block *block = malloc(sizeof *block + bytes);
    if (!block)
        return jfa_error_set(err, JFA_ERROR_OUT_OF_MEMORY, "the fake is full");
    *block = (Block){blocks, next_address, bytes};
    blocks = block;
    next_address += (bytes + 511) / 256 * 256;
    fake.live_allocations++;
    *address = block->address;
    return JFA_OK;
}

static Block **find_block(uint64_t address) {
    Block **place = &blocks;
    while (*place && !(address >= (*place)->address && address < (*place)->address + (*place)->bytes))
        place = &(*place)->next;
    return place;
}

static jfa_status fake_free(void *device, uint64_t address, jfa_error *err) {
    (void)device;
    Block **place = find_block(address), *block = *place;
    if (!block)
        return jfa_error_set(err, JFA_ERROR_ARGUMENT, "0x%llx is not allocated", (unsigned long long)address);
    *place = block->next;
    free(block);
    fake.live_allocations--;
    return outcome("free", err);
}

void *fixture_memory(uint64_t address) {
    Block *block = *find_block(address);
    return block ? block->data + (address - block->address) : NULL;
}

static jfa_status fake_copy_in(void *device, uint64_t to, const void *from, size_t bytes, jfa_error *err) {
    (void)device;
    memcpy(fixture_memory(to), from, bytes);
    return outcome("copy_in", err);
}

static jfa_status fake_copy_out(void *device, void *to, uint64_t from, size_t bytes, jfa_error *err) {
    (void)device;
    memcpy(to, fixture_memory(from), bytes);
    return outcome("copy_out", err);
}

static jfa_status fake_module_load(void *device, const void *image, size_t bytes, void **module,
                                   jfa_error *err) {
    if (outcome("module_load", err))
        return JFA_ERROR_DEVICE;
    fake.live_modules++;
    fake.image_ended = !((const char *)image)[bytes];
    *module = device;
    return JFA_OK;
}

static void fake_module_unload(void *device, void *module) {
    (void)device, (void)module;
    fake.live_modules--;
}

static jfa_status fake_function_get(void *device, void *module, const char *name, void **function,
                                    jfa_error *err) {
    (void)device, (void)module;
    snprintf(fake.last_function, sizeof fake.last_function, "%s", name);
    *function = &fake;
    return outcome("function_get", err);
}

static jfa_status fake_encode(void *device, const jfa_tensor_map *map, uint8_t out[128], jfa_error *err) {
    (void)device;
    _Static_assert(sizeof *map <= 128, "a map holds its own description");
    memcpy(out, map, sizeof *map);
    return outcome("encode_tensor_map", err);
}

static jfa_status fake_launch(void *device, void *function, const jfa_launch_desc *desc, jfa_error *err) {
    (void)device, (void)function;
    fake.launches++;
    fake.last_launch = *desc;
    memcpy(fake.last_params, desc->params, desc->params_bytes);
    return outcome("launch", err);
}

static jfa_status fake_synchronise(void *device, void *stream, jfa_error *err) {
    (void)device, (void)stream;
    return outcome("synchronise", err);
}

static jfa_status fake_set_option(void *device, const char *name, int64_t value, jfa_error *err) {
    (void)device, (void)value;
    snprintf(fake.last_option, sizeof fake.last_option, "%s", name);
    return outcome("set_option", err);
}

void fixture_register(void) {
    static const jfa_backend BACKEND = {
        .scheme = "fake",
        .open = fake_open,
        .close = fake_close,
        .alloc = fake_alloc,
        .free = fake_free,
        .copy_in = fake_copy_in,
        .copy_out = fake_copy_out,
        .module_load = fake_module_load,
        .module_unload = fake_module_unload,
        .function_get = fake_function_get,
        .encode_tensor_map = fake_encode,
        .launch = fake_launch,
        .synchronise = fake_synchronise,
        .set_option = fake_set_option,
    };
    static bool registered;
    fake = (Fake){0};
    if (!registered)
        assert_int_equal(jfa_backend_register(&BACKEND, NULL), JFA_OK);
    registered = true;
}

// ---------------------------------------------------------------- the problem

static jfa_tensor dense(const char *name, uint64_t address, jfa_dtype dtype, int rank, int64_t a, int64_t b,
                        int64_t c) {
    jfa_tensor tensor = {
        .name = name, .address = address, .dtype = dtype, .rank = rank, .extents = {a, b, c}};
    assert_true(jfa_tensor_set_dense(&tensor));
    return tensor;
}

void fixture_sample(Sample *s, int64_t sequences, int64_t q_rows, int64_t k_rows, int64_t heads,
                    int64_t kv_heads) {
    memset(s, 0, sizeof *s);
    s->axes[0].name = "q";
    s->axes[1].name = "k";
    s->tensors[SAMPLE_Q] = dense("Q", 0x100000000000, JFA_BF16, 3, q_rows, heads, 128);
    s->tensors[SAMPLE_K] = dense("K", 0x200000000000, JFA_BF16, 3, k_rows, kv_heads, 128);
    s->tensors[SAMPLE_O] = dense("O", 0x300000000000, JFA_BF16, 3, q_rows, heads, 128);
    s->tensors[SAMPLE_LSE] = dense("LSE", 0x400000000000, JFA_F32, 2, heads, q_rows, 0);
    s->params[0] = (jfa_param){"window", 5};
    s->problem = (jfa_problem){
        .sequences = sequences,
        .axes = s->axes,
        .axis_count = 2,
        .tensors = s->tensors,
        .tensor_count = 4,
        .params = s->params,
        .param_count = 1,
    };
}
