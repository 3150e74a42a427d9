// device.c: the table of backends, and devices: thin, checked calls of a backend's functions.
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(err, status, ...) jfa_error_set(err, status, __VA_ARGS__)

enum { MOST_BACKENDS = 8 };
static const jfa_backend *backends[MOST_BACKENDS] = {&jfa_cuda_backend};
static int backend_count = 1;

jfa_status jfa_backend_result(jfa_status status, jfa_error *backend, jfa_error *err, const char *what) {
    if (!status)
        return JFA_OK;
    if (!backend->message[0])
        jfa_error_set(backend, status, "the device failed to %s: %s", what, jfa_status_string(status));
    backend->status = status;
    if (err)
        *err = *backend;
    return status;
}

jfa_status jfa_device_result(jfa_device *device, jfa_status status, jfa_error *backend, jfa_error *err,
                             const char *what) {
    jfa_backend_result(status, backend, err, what);
    if (status == JFA_ERROR_LAUNCH)
        jfa_watchdog_explain(device, err);
    return status;
}

static const jfa_backend *find_backend(const char *name, size_t length) {
    for (int i = 0; i < backend_count; i++)
        if (strlen(backends[i]->scheme) == length && memcmp(backends[i]->scheme, name, length) == 0)
            return backends[i];
    return NULL;
}

jfa_status jfa_backend_register(const jfa_backend *backend, jfa_error *err) {
    if (!backend || !backend->scheme || !backend->scheme[0])
        return FAIL(err, JFA_ERROR_ARGUMENT, "the backend or its scheme is NULL or empty");
    if (find_backend(backend->scheme, strlen(backend->scheme)))
        return FAIL(err, JFA_ERROR_ARGUMENT, "a backend '%s' is registered already", backend->scheme);
    if (backend_count == MOST_BACKENDS)
        return FAIL(err, JFA_ERROR_LIMIT, "there are %d backends already", MOST_BACKENDS);
    backends[backend_count++] = backend;
    return JFA_OK;
}

static jfa_status no_backend(const char *name, jfa_error *err) {
    char known[128] = "";
    for (int i = 0; i < backend_count; i++) {
        size_t used = strlen(known), length = strlen(backends[i]->scheme);
        if (used + length + 3 > sizeof known)
            break;
        if (used)
            strcat(known, ", ");
        strcat(known, backends[i]->scheme);
    }
    return FAIL(err, JFA_ERROR_NOT_FOUND,
                "'%.128s' names no device: it must be a backend (%s), a colon and a device", name,
                known[0] ? known : "none is registered");
}

jfa_status jfa_device_open(const char *name, jfa_device **device, jfa_error *err) {
    if (device)
        *device = NULL;
    if (!name || !device)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the device's name or place is NULL");
    const char *colon = strchr(name, ':');
    const jfa_backend *backend = colon ? find_backend(name, (size_t)(colon - name)) : NULL;
    if (!backend)
        return no_backend(name, err);
    jfa_device *opened = calloc(1, sizeof *opened);
    if (!opened)
        return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for a device");
    opened->backend = backend;
    pthread_mutex_init(&opened->lock, NULL);
    jfa_error mine = {0};
    jfa_status status = backend->open(colon + 1, &opened->handle, &opened->props, &mine);
    if (status) {
        pthread_mutex_destroy(&opened->lock);
        free(opened);
        return jfa_backend_result(status, &mine, err, "open");
    }
    *device = opened;
    return JFA_OK;
}

jfa_status jfa_device_close(jfa_device *device, jfa_error *err) {
    if (!device)
        return JFA_OK;
    int modules = atomic_load(&device->module_count), events = atomic_load(&device->event_count);
    if (modules)
        return FAIL(err, JFA_ERROR_BUSY, "the device '%s' is in use: %d module%s loaded", device->props.name,
                    modules, modules == 1 ? " is" : "s are");
    if (events)
        return FAIL(err, JFA_ERROR_BUSY, "the device '%s' is in use: it has %d event%s", device->props.name,
                    events, events == 1 ? "" : "s");
    jfa_spares_free(device);
    device->backend->close(device->handle);
    pthread_mutex_destroy(&device->lock);
    free(device);
    return JFA_OK;
}

const jfa_device_props *jfa_device_get_props(const jfa_device *device) {
    return device ? &device->props : NULL;
}

void *jfa_device_native(const jfa_device *device) {
    return device ? device->handle : NULL;
}

static jfa_status no_device(jfa_error *err) {
    return FAIL(err, JFA_ERROR_ARGUMENT, "the device is NULL");
}

jfa_status jfa_device_set_option(jfa_device *device, const char *name, int64_t value, jfa_error *err) {
    if (!device || !name)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the device or the option's name is NULL");
    jfa_error mine = {0};
    return jfa_backend_result(device->backend->set_option(device->handle, name, value, &mine), &mine, err,
                              "set an option");
}

jfa_status jfa_malloc(jfa_device *device, size_t bytes, uint64_t *address, jfa_error *err) {
    if (address)
        *address = 0;
    if (!device)
        return no_device(err);
    if (!address)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the place for the address is NULL");
    jfa_error mine = {0};
    return bytes ? jfa_device_result(device, device->backend->alloc(device->handle, bytes, address, &mine),
                                     &mine, err, "allocate memory")
                 : JFA_OK;
}

jfa_status jfa_free(jfa_device *device, uint64_t address, jfa_error *err) {
    if (!device)
        return no_device(err);
    jfa_error mine = {0};
    return address ? jfa_device_result(device, device->backend->free(device->handle, address, &mine), &mine,
                                       err, "free memory")
                   : JFA_OK;
}

jfa_status jfa_copy_to_device(jfa_device *device, uint64_t to, const void *from, size_t bytes,
                              jfa_error *err) {
    if (!device)
        return no_device(err);
    if (bytes && (!to || !from))
        return FAIL(err, JFA_ERROR_ARGUMENT, "the source or target of a copy of %zu bytes is NULL", bytes);
    jfa_error mine = {0};
    return bytes ? jfa_device_result(device, device->backend->copy_in(device->handle, to, from, bytes, &mine),
                                     &mine, err, "copy memory")
                 : JFA_OK;
}

jfa_status jfa_upload(jfa_device *device, uint64_t to, const void *from, size_t bytes, jfa_error *err) {
    jfa_error mine = {0};
    return device->backend->upload
               ? jfa_device_result(device, device->backend->upload(device->handle, to, from, bytes, &mine),
                                   &mine, err, "copy memory")
               : jfa_copy_to_device(device, to, from, bytes, err);
}

jfa_status jfa_copy_from_device(jfa_device *device, void *to, uint64_t from, size_t bytes, jfa_error *err) {
    if (!device)
        return no_device(err);
    if (bytes && (!to || !from))
        return FAIL(err, JFA_ERROR_ARGUMENT, "the source or target of a copy of %zu bytes is NULL", bytes);
    jfa_error mine = {0};
    return bytes
               ? jfa_device_result(device, device->backend->copy_out(device->handle, to, from, bytes, &mine),
                                   &mine, err, "copy memory")
               : JFA_OK;
}

jfa_status jfa_synchronise(jfa_device *device, void *stream, jfa_error *err) {
    if (!device)
        return no_device(err);
    jfa_error mine = {0};
    return jfa_device_result(device, device->backend->synchronise(device->handle, stream, &mine), &mine, err,
                             "synchronise");
}
