// temporary.c: see internal.h. The table is fixed and its states are atomic, because the signal handler reads
// it.
#include "compiler/emit/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOT_COUNT = 32 };
enum { SLOT_FREE, SLOT_TAKEN, SLOT_PATH, SLOT_CHILD };

static struct {
    atomic_int state;
    char path[TEMPORARY_PATH_BYTES];
    pid_t child;
} slots[SLOT_COUNT];

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof SIGNALS[0] };

// Calls only what POSIX lists as safe in a handler (kill, unlink, rmdir, signal, raise). Files go before
// folders, which must be empty by then.
static void on_signal(int number) {
    for (int i = 0; i < SLOT_COUNT; i++) {
        int state = atomic_load(&slots[i].state);
        if (state == SLOT_CHILD)
            kill(slots[i].child, SIGKILL);
        if (state == SLOT_PATH)
            unlink(slots[i].path);
    }
    for (int i = 0; i < SLOT_COUNT; i++)
        if (atomic_load(&slots[i].state) == SLOT_PATH)
            rmdir(slots[i].path);
    signal(number, SIG_DFL);
    raise(number);
}

// A signal that the program handles or ignores already stays so.
static void watch_signals(void) {
    static atomic_flag is_done = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&is_done))
        return;
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction action;
        if (sigaction(SIGNALS[i], NULL, &action) || action.sa_handler != SIG_DFL)
            continue;
        action = (struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART};
        sigaction(SIGNALS[i], &action, NULL);
    }
}

static int take_slot(void) {
    watch_signals();
    for (int i = 0; i < SLOT_COUNT; i++) {
        int free_state = SLOT_FREE;
        if (atomic_compare_exchange_strong(&slots[i].state, &free_state, SLOT_TAKEN))
            return i;
    }
    errno = EMFILE;
    return -1;
}

int temporary_know_path(const char *path) {
    if (strlen(path) >= TEMPORARY_PATH_BYTES) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int number = take_slot();
    if (number >= 0) {
        strcpy(slots[number].path, path);
        atomic_store(&slots[number].state, SLOT_PATH);
    }
    return number;
}

int temporary_know_child(pid_t child) {
    int number = take_slot();
    if (number >= 0) {
        slots[number].child = child;
        atomic_store(&slots[number].state, SLOT_CHILD);
    }
    return number;
}

void temporary_forget(int number) {
    if (number >= 0)
        atomic_store(&slots[number].state, SLOT_FREE);
}

int temporary_folder(char path[TEMPORARY_PATH_BYTES]) {
    const char *root = getenv("TMPDIR");
    if (!root || !*root)
        root = "/tmp";
    if (snprintf(path, TEMPORARY_PATH_BYTES, "%s/jfac-XXXXXX", root) >= TEMPORARY_PATH_BYTES) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (!mkdtemp(path))
        return -1;
    int number = temporary_know_path(path);
    if (number < 0)
        rmdir(path);
    return number;
}

void temporary_remove(int number) {
    if (number < 0)
        return;
    if (unlink(slots[number].path))
        rmdir(slots[number].path);
    temporary_forget(number);
}
