// cache.c: what a device keeps so that it needn't be made twice: images that are loaded, and the memory of
// lists of work that were freed (drivers wait for all that runs when memory is freed). Both belong to a
// device, under its lock.
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(err, status, ...) jfa_error_set(err, status, __VA_ARGS__)

// ---------------------------------------------------------------- images

struct jfa_loaded {
    jfa_loaded *next;
    void *handle;
    int users;
    size_t bytes;
    char image[]; // the NUL included
};

static jfa_loaded *find(jfa_device *device, const char *image, size_t bytes) {
    for (jfa_loaded *loaded = device->images; loaded; loaded = loaded->next)
        if (loaded->bytes == bytes && !memcmp(loaded->image, image, bytes))
            return loaded;
    return NULL;
}

static jfa_status load(jfa_device *device, const char *image, size_t bytes, jfa_loaded **loaded,
                       jfa_error *err) {
    jfa_loaded *made = malloc(sizeof *made + bytes + 1);
    if (!made)
        return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for an image of %zu bytes", bytes);
    *made = (jfa_loaded){.next = device->images, .bytes = bytes};
    memcpy(made->image, image, bytes);
    made->image[bytes] = '\0'; // backends want PTX to end with one
    jfa_error mine = {0};
    jfa_status status =
        device->backend->module_load(device->handle, made->image, bytes, &made->handle, &mine);
    if (status) {
        free(made);
        return jfa_backend_result(status, &mine, err, "load a module");
    }
    device->images = *loaded = made;
    return JFA_OK;
}

jfa_status jfa_loaded_take(jfa_device *device, const char *image, size_t bytes, jfa_loaded **loaded,
                           jfa_error *err) {
    pthread_mutex_lock(&device->lock);
    *loaded = find(device, image, bytes);
    jfa_status status = *loaded ? JFA_OK : load(device, image, bytes, loaded, err);
    if (*loaded)
        (*loaded)->users++;
    pthread_mutex_unlock(&device->lock);
    return status;
}

void *jfa_loaded_handle(const jfa_loaded *loaded) {
    return loaded->handle;
}

void jfa_loaded_drop(jfa_device *device, jfa_loaded *loaded) {
    if (!loaded)
        return;
    pthread_mutex_lock(&device->lock);
    bool is_last = !--loaded->users;
    for (jfa_loaded **place = &device->images; is_last && *place; place = &(*place)->next)
        if (*place == loaded) {
            *place = loaded->next;
            break;
        }
    if (is_last) {
        device->backend->module_unload(device->handle, loaded->handle);
        free(loaded);
    }
    pthread_mutex_unlock(&device->lock);
}

// ---------------------------------------------------------------- memory

enum { SMALLEST_BYTES = 4096, MOST_WASTE = 4 };

// Sizes are rounded up, so that plans of similar problems fit each other's memory.
static size_t rounded(size_t bytes) {
    size_t size = SMALLEST_BYTES;
    while (size < bytes && size <= SIZE_MAX / 2)
        size *= 2;
    return size < bytes ? bytes : size;
}

jfa_status jfa_spare_take(jfa_device *device, size_t bytes, jfa_memory *memory, jfa_error *err) {
    *memory = (jfa_memory){0};
    size_t size = rounded(bytes);
    pthread_mutex_lock(&device->lock);
    int best = -1;
    for (int i = 0; i < device->spare_count; i++)
        if (device->spares[i].bytes >= bytes && device->spares[i].bytes / MOST_WASTE <= size &&
            (best < 0 || device->spares[i].bytes < device->spares[best].bytes))
            best = i;
    if (best >= 0) {
        *memory = device->spares[best];
        device->spares[best] = device->spares[--device->spare_count];
    }
    pthread_mutex_unlock(&device->lock);
    if (best >= 0)
        return JFA_OK;
    jfa_status status = jfa_malloc(device, size, &memory->address, err);
    memory->bytes = status ? 0 : size;
    return status;
}

jfa_status jfa_spare_give(jfa_device *device, jfa_memory memory, jfa_error *err) {
    if (!memory.address)
        return JFA_OK;
    pthread_mutex_lock(&device->lock);
    bool is_kept = device->spare_count < JFA_MOST_SPARES;
    if (is_kept)
        device->spares[device->spare_count++] = memory;
    pthread_mutex_unlock(&device->lock);
    return is_kept ? JFA_OK : jfa_free(device, memory.address, err);
}

void jfa_spares_free(jfa_device *device) {
    for (int i = 0; i < device->spare_count; i++)
        jfa_free(device, device->spares[i].address, NULL);
    device->spare_count = 0;
}
