// watchdog.c: what a kernel's waits tell when they last too long (runtime/manifest.h says in which words),
// put before the message of the failure by which the kernel then ends.
#include "runtime/internal.h"
#include "runtime/manifest_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TOLD = 16, WORD_CLAIM = 0, WORD_FIRST = 1 };

struct jfa_watchdog {
    jfa_watchdog *next;
    const jfa_kernel *kernel;
    uint64_t address; // on the device
    void *host;       // the same memory for the host; NULL: it is the device's own, and is copied
    size_t words;
    uint32_t *seen; // [words]: what was last read
};

// ---------------------------------------------------------------- memory

static jfa_status take_memory(jfa_watchdog *watchdog, jfa_device *device, jfa_error *err) {
    size_t bytes = watchdog->words * sizeof(uint32_t);
    jfa_error mine = {0};
    if (device->backend->host_alloc)
        return jfa_backend_result(
            device->backend->host_alloc(device->handle, bytes, &watchdog->address, &watchdog->host, &mine),
            &mine, err, "allocate memory for a watchdog");
    jfa_status status = jfa_malloc(device, bytes, &watchdog->address, err);
    return status ? status : jfa_copy_to_device(device, watchdog->address, watchdog->seen, bytes, err);
}

static void give_memory(jfa_watchdog *watchdog, jfa_device *device) {
    if (device->backend->host_alloc && watchdog->host)
        device->backend->host_free(device->handle, watchdog->host);
    else if (!device->backend->host_alloc)
        jfa_free(device, watchdog->address, NULL);
    free(watchdog->seen);
    free(watchdog);
}

jfa_status jfa_watchdog_start(jfa_kernel *kernel, jfa_error *err) {
    const jfa_kernel_info *info = &kernel->manifest.info;
    jfa_device *device = kernel->module->device;
    if (!kernel->manifest.watchdog_ms)
        return JFA_OK;
    size_t words = JFA_WATCHDOG_WORDS * (1 + (size_t)info->cluster * ((size_t)info->threads / 32));
    jfa_watchdog *made = calloc(1, sizeof *made);
    uint32_t *seen = calloc(words, sizeof *seen);
    if (!made || !seen) {
        free(made);
        free(seen);
        return jfa_error_set(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for a watchdog");
    }
    *made = (jfa_watchdog){.kernel = kernel, .words = words, .seen = seen};
    jfa_status status = take_memory(made, device, err);
    if (status) {
        give_memory(made, device);
        return status;
    }
    kernel->watchdog = made;
    pthread_mutex_lock(&device->lock);
    made->next = device->watchdogs;
    device->watchdogs = made;
    pthread_mutex_unlock(&device->lock);
    return JFA_OK;
}

void jfa_watchdog_stop(jfa_kernel *kernel) {
    jfa_device *device = kernel->module ? kernel->module->device : NULL;
    if (!kernel->watchdog)
        return;
    pthread_mutex_lock(&device->lock);
    jfa_watchdog **at = &device->watchdogs;
    while (*at != kernel->watchdog)
        at = &(*at)->next;
    *at = kernel->watchdog->next;
    pthread_mutex_unlock(&device->lock);
    give_memory(kernel->watchdog, device);
    kernel->watchdog = NULL;
}

uint64_t jfa_watchdog_address(const jfa_watchdog *watchdog) {
    return watchdog ? watchdog->address : 0;
}

// ---------------------------------------------------------------- what was told

typedef struct {
    char text[JFA_MESSAGE_BYTES];
    size_t used;
    int count; // of waits told
} Story;

__attribute__((format(printf, 2, 3))) static void add(Story *story, const char *format, ...) {
    size_t left = sizeof story->text - story->used;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(story->text + story->used, left, format, args);
    va_end(args);
    if (length > 0)
        story->used += (size_t)length < left ? (size_t)length : left - 1;
}

// place: of a warp, counted from 1
static const uint32_t *told_by(const jfa_watchdog *watchdog, size_t place) {
    return watchdog->seen + JFA_WATCHDOG_WORDS * place;
}

// The first time says how long; the rest waited as long.
static void add_wait(Story *story, const jfa_manifest *m, const uint32_t *words) {
    const jfa_wait *wait = &m->waits[words[0] - 1];
    uint32_t pipe = words[2] / (uint32_t)wait->stages, stage = words[2] % (uint32_t)wait->stages;
    if (!story->count++)
        add(story, "role '%s' waited for %lld ms", wait->role, (long long)m->watchdog_ms);
    else
        add(story, "%s role '%s'", story->count == 2 ? ", and so did" : ",", wait->role);
    add(story, " at %s:%d for pipe '%s", m->files[wait->file], wait->line, wait->pipe);
    if (wait->count > 1)
        add(story, "[%u]", pipe);
    add(story, "' (%s, stage %u, phase %u) in CTA %u", JFA_WAIT_WORDS[wait->is_full], stage, words[1],
        words[3]);
}

static bool is_known(const jfa_watchdog *watchdog, const uint32_t *words) {
    return words[0] >= 1 && words[0] <= (uint32_t)watchdog->kernel->manifest.wait_count;
}

// The one that told first, then the others; warps that say the same are one.
static void tell(const jfa_watchdog *watchdog, Story *story) {
    const uint32_t *told[MOST_TOLD];
    int count = 0;
    size_t warps = watchdog->words / JFA_WATCHDOG_WORDS - 1, first = watchdog->seen[WORD_FIRST];
    for (size_t i = 0; i <= warps && count < MOST_TOLD; i++) {
        size_t place = i ? i : first; // counted from 1
        bool is_new = place >= 1 && place <= warps && is_known(watchdog, told_by(watchdog, place));
        for (int k = 0; k < count && is_new; k++)
            is_new = memcmp(told[k], told_by(watchdog, place), JFA_WATCHDOG_WORDS * sizeof **told) != 0;
        if (is_new)
            told[count++] = told_by(watchdog, place);
    }
    add(story, "the kernel '%s' hung: ", watchdog->kernel->manifest.info.name);
    for (int i = 0; i < count; i++)
        add_wait(story, &watchdog->kernel->manifest, told[i]);
    if (!count)
        add(story, "a role waited for %lld ms", (long long)watchdog->kernel->manifest.watchdog_ms);
}

// Where the device outlives the failure, later ones must not be told the same: the words are cleared.
static bool read_words(jfa_watchdog *watchdog, jfa_device *device) {
    size_t bytes = watchdog->words * sizeof(uint32_t);
    if (watchdog->host) {
        const volatile uint32_t *words = watchdog->host;
        for (size_t i = 0; i < watchdog->words; i++)
            watchdog->seen[i] = words[i];
        return watchdog->seen[WORD_CLAIM];
    }
    jfa_error ignored;
    const jfa_backend *backend = device->backend;
    if (backend->copy_out(device->handle, watchdog->seen, watchdog->address, bytes, &ignored) ||
        !watchdog->seen[WORD_CLAIM])
        return false;
    void *zeros = calloc(1, bytes);
    if (zeros)
        backend->copy_in(device->handle, watchdog->address, zeros, bytes, &ignored);
    free(zeros);
    return true;
}

void jfa_watchdog_explain(jfa_device *device, jfa_error *err) {
    Story story = {.used = 0};
    pthread_mutex_lock(&device->lock);
    for (jfa_watchdog *watchdog = device->watchdogs; watchdog; watchdog = watchdog->next)
        if (read_words(watchdog, device) && !story.used)
            tell(watchdog, &story);
    pthread_mutex_unlock(&device->lock);
    if (!err || !story.used)
        return;
    add(&story, "; %s", err->message);
    memcpy(err->message, story.text, sizeof err->message);
}
