// event.c: points in time of a stream. A backend without events of its own has done a launch when it returns;
// the host's clock is then right.
#include "runtime/internal.h"

#include <stdlib.h>
#include <time.h>

#define FAIL(err, status, ...) jfa_error_set(err, status, __VA_ARGS__)

struct jfa_event {
    jfa_device *device;
    void *handle;       // the backend's, or NULL
    struct timespec at; // without a handle
    bool is_recorded;
};

jfa_status jfa_event_create(jfa_device *device, jfa_event **event, jfa_error *err) {
    if (!event)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the place for the event is NULL");
    *event = NULL;
    if (!device)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the device is NULL");
    jfa_event *made = calloc(1, sizeof *made);
    if (!made)
        return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for an event");
    made->device = device;
    jfa_error mine = {0};
    jfa_status status = device->backend->event_create
                            ? device->backend->event_create(device->handle, &made->handle, &mine)
                            : JFA_OK;
    if (status) {
        free(made);
        return jfa_backend_result(status, &mine, err, "create an event");
    }
    atomic_fetch_add(&device->event_count, 1);
    *event = made;
    return JFA_OK;
}

void jfa_event_destroy(jfa_event *event) {
    if (!event)
        return;
    jfa_device *device = event->device;
    if (device->backend->event_destroy)
        device->backend->event_destroy(device->handle, event->handle);
    atomic_fetch_sub(&device->event_count, 1);
    free(event);
}

jfa_status jfa_event_record(jfa_event *event, void *stream, jfa_error *err) {
    if (!event)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the event is NULL");
    const jfa_backend *backend = event->device->backend;
    jfa_error mine = {0};
    jfa_status status = JFA_OK;
    if (backend->event_record)
        status = backend->event_record(event->device->handle, event->handle, stream, &mine);
    else
        clock_gettime(CLOCK_MONOTONIC, &event->at);
    event->is_recorded |= status == JFA_OK;
    return jfa_device_result(event->device, status, &mine, err, "record an event");
}

jfa_status jfa_event_elapsed(jfa_event *start, jfa_event *end, float *milliseconds, jfa_error *err) {
    if (!milliseconds)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the place for the milliseconds is NULL");
    *milliseconds = 0;
    if (!start || !end)
        return FAIL(err, JFA_ERROR_ARGUMENT, "an event is NULL");
    if (start->device != end->device)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the events are of different devices");
    if (!start->is_recorded || !end->is_recorded)
        return FAIL(err, JFA_ERROR_ARGUMENT, "the %s event has not been recorded",
                    start->is_recorded ? "end" : "start");
    const jfa_backend *backend = start->device->backend;
    jfa_error mine = {0};
    if (backend->event_elapsed)
        return jfa_device_result(
            start->device,
            backend->event_elapsed(start->device->handle, start->handle, end->handle, milliseconds, &mine),
            &mine, err, "time events");
    *milliseconds = (float)((double)(end->at.tv_sec - start->at.tv_sec) * 1e3 +
                            (double)(end->at.tv_nsec - start->at.tv_nsec) * 1e-6);
    return JFA_OK;
}
