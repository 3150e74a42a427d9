// module.c: an image with its manifests becomes a module with kernels.
#include "runtime/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(err, status, ...) jfa_error_set(err, status, __VA_ARGS__)

// ---------------------------------------------------------------- manifests

// The kernels' manifests stand one behind the other.
static jfa_status read_manifests(jfa_module *module, const char *text, size_t length, jfa_error *err) {
    for (size_t at = 0; at < length;) {
        jfa_kernel *more = calloc((size_t)module->kernel_count + 1, sizeof *more);
        if (!more)
            return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for %d kernels",
                        module->kernel_count + 1);
        if (module->kernel_count)
            memcpy(more, module->kernels, (size_t)module->kernel_count * sizeof *more);
        free(module->kernels);
        module->kernels = more;
        jfa_kernel *kernel = &more[module->kernel_count];
        size_t used;
        jfa_status status = jfa_manifest_read(text + at, length - at, &kernel->manifest, &used, err);
        if (status)
            return status;
        for (int i = 0; i < module->kernel_count; i++)
            if (strcmp(more[i].manifest.info.name, kernel->manifest.info.name) == 0)
                return FAIL(err, JFA_ERROR_MANIFEST, "two kernels of the module are called '%s'",
                            kernel->manifest.info.name);
        kernel->module = module;
        module->kernel_count++;
        at += used;
    }
    return JFA_OK;
}

// sm_90a code runs on sm_90a alone, sm_90 code also there (PTX ISA, ".target").
static bool runs_on(const char *target, const char *arch) {
    size_t length = strlen(target);
    return strncmp(target, arch, length) == 0 &&
           (!arch[length] || (arch[length] >= 'a' && !arch[length + 1]));
}

static jfa_status check_kernel(const jfa_module *module, const jfa_kernel *kernel, jfa_error *err) {
    const jfa_device_props *props = &module->device->props;
    const jfa_kernel_info *info = &kernel->manifest.info;
    if (!runs_on(info->target, props->arch))
        return FAIL(err, JFA_ERROR_TARGET, "kernel '%s' was built for %s, but the device '%s' is %s",
                    info->name, info->target, props->name, props->arch);
    if (info->shared_bytes > props->shared_bytes_per_cta)
        return FAIL(err, JFA_ERROR_TARGET,
                    "kernel '%s' needs %lld bytes of shared memory for each CTA; the device '%s' has %lld",
                    info->name, (long long)info->shared_bytes, props->name,
                    (long long)props->shared_bytes_per_cta);
    return JFA_OK;
}

// ---------------------------------------------------------------- loading

// The array of kernels is complete: their addresses stay.
static jfa_status find_functions(jfa_module *module, jfa_error *err) {
    const jfa_device *device = module->device;
    for (int i = 0; i < module->kernel_count; i++) {
        jfa_kernel *kernel = &module->kernels[i];
        jfa_error mine = {0};
        jfa_status status = device->backend->function_get(device->handle, jfa_loaded_handle(module->image),
                                                          kernel->manifest.entry, &kernel->function, &mine);
        if (status)
            return jfa_backend_result(status, &mine, err, "find a kernel");
        status = jfa_watchdog_start(kernel, err);
        if (status)
            return status;
    }
    return JFA_OK;
}

static jfa_status load(jfa_module *module, const char *image, size_t bytes, jfa_error *err) {
    char *text;
    size_t length;
    bool is_text;
    jfa_status status = jfa_image_manifest(image, bytes, &text, &length, &is_text, err);
    if (status)
        return status;
    status = read_manifests(module, text, length, err);
    free(text);
    for (int i = 0; i < module->kernel_count && !status; i++)
        status = check_kernel(module, &module->kernels[i], err);
    if (!status)
        status = jfa_loaded_take(module->device, image, bytes, &module->image, err);
    return status ? status : find_functions(module, err);
}

static bool ends_with_nul(const char *image, size_t bytes) {
    return bytes > 1 && !image[bytes - 1] && image[0] != 0x7f; // an ELF file's last byte is its own
}

jfa_status jfa_module_load(jfa_device *device, const void *image, size_t bytes, jfa_module **module,
                           jfa_error *err) {
    if (!module)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the place for the module is NULL");
    *module = NULL;
    if (!device || !image || !bytes)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the device or the image is NULL or empty");
    jfa_module *made = calloc(1, sizeof *made);
    if (!made)
        return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for a module");
    made->device = device;
    pthread_mutex_init(&made->lock, NULL);
    jfa_status status = load(made, image, bytes - ends_with_nul(image, bytes), err);
    if (status) {
        for (int i = 0; i < made->kernel_count; i++)
            jfa_watchdog_stop(&made->kernels[i]);
        jfa_loaded_drop(device, made->image);
        pthread_mutex_destroy(&made->lock);
        free(made->kernels);
        free(made);
        return status;
    }
    atomic_fetch_add(&device->module_count, 1);
    *module = made;
    return JFA_OK;
}

static jfa_status read_file(FILE *file, const char *path, char **image, size_t *bytes, jfa_error *err) {
    size_t capacity = 0;
    *image = NULL;
    *bytes = 0;
    do {
        capacity = capacity ? capacity * 2 : 65536;
        char *more = realloc(*image, capacity);
        if (!more)
            return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for '%.256s'", path);
        *image = more;
        *bytes += fread(*image + *bytes, 1, capacity - *bytes, file);
        if (ferror(file))
            return FAIL(err, JFA_ERROR_IO, "can't read '%.256s': %s", path, strerror(errno));
    } while (*bytes == capacity);
    return JFA_OK;
}

jfa_status jfa_module_load_file(jfa_device *device, const char *path, jfa_module **module, jfa_error *err) {
    if (module)
        *module = NULL;
    if (!device || !module || !path)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the device, the path or the place for the module is NULL");
    FILE *file = fopen(path, "rb");
    if (!file)
        return FAIL(err, JFA_ERROR_IO, "can't open '%.256s': %s", path, strerror(errno));
    char *image;
    size_t bytes;
    jfa_status status = read_file(file, path, &image, &bytes, err);
    fclose(file);
    if (!status && !bytes)
        status = FAIL(err, JFA_ERROR_IMAGE, "the file '%.256s' is empty", path);
    if (!status)
        status = jfa_module_load(device, image, bytes, module, err);
    free(image);
    return status;
}

jfa_status jfa_module_unload(jfa_module *module, jfa_error *err) {
    if (!module)
        return JFA_OK;
    int plans = atomic_load(&module->plan_count);
    if (plans)
        return FAIL(err, JFA_ERROR_BUSY, "the module is in use: its kernels have %d plan%s", plans,
                    plans == 1 ? "" : "s");
    for (int i = 0; i < module->kernel_count; i++) {
        jfa_planner_unload(&module->kernels[i]);
        jfa_watchdog_stop(&module->kernels[i]);
    }
    jfa_loaded_drop(module->device, module->image);
    pthread_mutex_destroy(&module->lock);
    atomic_fetch_sub(&module->device->module_count, 1);
    free(module->kernels);
    free(module);
    return JFA_OK;
}

// ---------------------------------------------------------------- kernels

int jfa_module_kernel_count(const jfa_module *module) {
    return module ? module->kernel_count : 0;
}

const char *jfa_module_kernel_name(const jfa_module *module, int index) {
    return module && index >= 0 && index < module->kernel_count ? module->kernels[index].manifest.info.name
                                                                : NULL;
}

jfa_status jfa_kernel_get(jfa_module *module, const char *name, jfa_kernel **kernel, jfa_error *err) {
    if (kernel)
        *kernel = NULL;
    if (!module || !kernel)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the module or the place for the kernel is NULL");
    if (!name && module->kernel_count != 1)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the module has %d kernels: name one ('%s', ...)",
                    module->kernel_count, module->kernels[0].manifest.info.name);
    for (int i = 0; i < module->kernel_count && !*kernel; i++)
        if (!name || strcmp(module->kernels[i].manifest.info.name, name) == 0)
            *kernel = &module->kernels[i];
    return *kernel ? JFA_OK : FAIL(err, JFA_ERROR_NOT_FOUND, "the module has no kernel '%.128s'", name);
}

const jfa_kernel_info *jfa_kernel_get_info(const jfa_kernel *kernel) {
    return kernel ? &kernel->manifest.info : NULL;
}
