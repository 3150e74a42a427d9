// file.c: output files that are there whole or not at all.
#define _GNU_SOURCE // mkostemp
#include "compiler/emit/emit.h"
#include "compiler/emit/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static _Thread_local char complaint[TEMPORARY_PATH_BYTES + 128];

static bool fail(const char *doing, const char *path, const char **message) {
    snprintf(complaint, sizeof complaint, "can't %s %s: %s", doing, path, strerror(errno));
    *message = complaint;
    return false;
}

static bool write_all(int file, const char *bytes, size_t length) {
    while (length) {
        ssize_t count = write(file, bytes, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return false;
        bytes += count;
        length -= (size_t)count;
    }
    return true;
}

// The mode that a file made by open() would get; mkstemp gives 0600.
static mode_t new_file_mode(void) {
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static bool write_and_rename(int file, const char *temporary, const char *path, const void *bytes,
                             size_t length, const char **message) {
    bool written = write_all(file, bytes, length) && !fchmod(file, new_file_mode()) && !fsync(file);
    int error = errno;
    if (close(file) && written) { // some file systems report a full disk only here
        written = false;
        error = errno;
    }
    errno = error;
    if (!written)
        return fail("write", path, message);
    return rename(temporary, path) ? fail("write", path, message) : true;
}

// Something that is there and is no regular file (a device, a pipe) is written to as it is: renaming would
// replace it.
static bool write_in_place(const char *path, const void *bytes, size_t length, const char **message) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return fail("open", path, message);
    bool written = write_all(file, bytes, length);
    int error = errno;
    if (close(file) && written) {
        written = false;
        error = errno;
    }
    errno = error;
    return written ? true : fail("write", path, message);
}

bool file_write_whole(const char *path, const void *bytes, size_t length, const char **message) {
    if (!strcmp(path, "-"))
        return write_all(STDOUT_FILENO, bytes, length) ? true : fail("write", "standard output", message);
    struct stat info;
    if (!stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return write_in_place(path, bytes, length, message);

    char temporary[TEMPORARY_PATH_BYTES];
    if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary) {
        errno = ENAMETOOLONG;
        return fail("write", path, message);
    }
    int file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0)
        return fail("write", path, message);
    int known = temporary_know_path(temporary);
    bool good = write_and_rename(file, temporary, path, bytes, length, message);
    if (!good)
        unlink(temporary);
    temporary_forget(known);
    return good;
}
