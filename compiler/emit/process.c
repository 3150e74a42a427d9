// process.c: one child process, its output as text.
#define _GNU_SOURCE // pipe2
#include "compiler/emit/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// All that comes out of `end` up to its end, NUL-terminated, in the arena.
static const char *read_all(int end, Arena *arena) {
    size_t capacity = 4096, length = 0;
    char *text = arena_alloc(arena, capacity);
    for (;;) {
        ssize_t count = read(end, text + length, capacity - length - 1);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return text;
        length += (size_t)count;
        if (length + 1 == capacity) {
            char *larger = arena_alloc(arena, capacity * 2);
            memcpy(larger, text, length);
            text = larger;
            capacity *= 2;
        }
    }
}

static int spawn(const char *const *argv, int output, pid_t *child) {
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    if (!error)
        error = posix_spawn(child, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int wait_for(pid_t child) {
    int state;
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            return 127;
    return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
}

bool process_run(const char *const *argv, Arena *arena, const char **output, int *status,
                 const char **message) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) {
        *message = arena_format(arena, "can't make a pipe to run %s: %s", argv[0], strerror(errno));
        return false;
    }
    pid_t child;
    int error = spawn(argv, ends[1], &child);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        *message = arena_format(arena, "can't run %s: %s", argv[0], strerror(error));
        return false;
    }
    int known = temporary_know_child(child);
    *output = read_all(ends[0], arena);
    close(ends[0]);
    *status = wait_for(child);
    temporary_forget(known);
    return true;
}
