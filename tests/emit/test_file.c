// Output files: there whole or not at all.
#include "compiler/emit/emit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/jfa-test-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int count_files(void) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int count = -2; // "." and ".."
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

static const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void a_file_is_written_whole_and_replaces_what_was_there(void **state) {
    (void)state;
    const char *message = NULL;
    const char *path = in_folder("out");
    assert_true(file_write_whole(path, "first, longer", 13, &message));
    assert_true(file_write_whole(path, "next", 4, &message));
    char bytes[32] = {0};
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), 4);
    fclose(file);
    assert_string_equal(bytes, "next");
    assert_int_equal(count_files(), 1);
    unlink(path);
}

static void a_new_file_has_the_mode_of_the_umask(void **state) {
    (void)state;
    const char *message = NULL;
    mode_t mask = umask(027);
    assert_true(file_write_whole(in_folder("out"), "x", 1, &message));
    umask(mask);
    struct stat info;
    assert_int_equal(stat(in_folder("out"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    unlink(in_folder("out"));
}

static void a_folder_that_is_not_there_is_a_message_with_the_path(void **state) {
    (void)state;
    const char *message = NULL;
    assert_false(file_write_whole(in_folder("no/such/out"), "x", 1, &message));
    assert_non_null(strstr(message, "no/such/out"));
    assert_int_equal(count_files(), 0);
}

// A file size limit stands for a full disk: the write fails half way.
static void a_write_that_fails_half_way_leaves_nothing_and_keeps_the_old_file(void **state) {
    (void)state;
    const char *message = NULL;
    assert_true(file_write_whole(in_folder("out"), "old", 3, &message));
    static char large[65536];
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    bool written = file_write_whole(in_folder("out"), large, sizeof large, &message);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(written);
    assert_non_null(message);
    struct stat info;
    assert_int_equal(stat(in_folder("out"), &info), 0);
    assert_int_equal(info.st_size, 3);
    assert_int_equal(count_files(), 1);
    unlink(in_folder("out"));
}

static void a_folder_in_the_place_of_the_file_is_refused(void **state) {
    (void)state;
    const char *message = NULL;
    assert_int_equal(mkdir(in_folder("out"), 0700), 0);
    assert_false(file_write_whole(in_folder("out"), "x", 1, &message));
    assert_int_equal(count_files(), 1);
    rmdir(in_folder("out"));
}

static void a_device_is_written_to_and_not_replaced(void **state) {
    (void)state;
    const char *message = NULL;
    assert_true(file_write_whole("/dev/null", "x", 1, &message));
    struct stat info;
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    assert_false(file_write_whole("/dev/full", "x", 1, &message));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_written_whole_and_replaces_what_was_there),
        cmocka_unit_test(a_new_file_has_the_mode_of_the_umask),
        cmocka_unit_test(a_folder_that_is_not_there_is_a_message_with_the_path),
        cmocka_unit_test(a_write_that_fails_half_way_leaves_nothing_and_keeps_the_old_file),
        cmocka_unit_test(a_folder_in_the_place_of_the_file_is_refused),
        cmocka_unit_test(a_device_is_written_to_and_not_replaced),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
