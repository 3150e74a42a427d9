#include "grammar/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void find_lines(SourceSet *set, Source *source) {
    int lines = 1;
    for (int i = 0; i < source->length; i++)
        lines += source->text[i] == '\n';
    source->line_starts = arena_array(set->arena, int32_t, lines);
    source->line_count = 1;
    for (int i = 0; i < source->length; i++)
        if (source->text[i] == '\n')
            source->line_starts[source->line_count++] = i + 1;
}

int source_add(SourceSet *set, const char *path, const char *text, size_t length) {
    if (set->count == set->capacity) {
        int capacity = set->capacity ? 2 * set->capacity : 8;
        Source *files = arena_array(set->arena, Source, capacity);
        if (set->count)
            memcpy(files, set->files, sizeof(Source) * (size_t)set->count);
        set->files = files;
        set->capacity = capacity;
    }
    Source *source = &set->files[set->count];
    source->path = arena_copy(set->arena, path, strlen(path));
    source->text = arena_copy(set->arena, text, length);
    source->length = (int32_t)length;
    find_lines(set, source);
    return set->count++;
}

int source_read(SourceSet *set, const char *path, const char **reason) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        *reason = arena_format(set->arena, "%s", strerror(errno));
        return -1;
    }
    size_t capacity = 64 * 1024, length = 0;
    char *text = arena_alloc(set->arena, capacity);
    for (;;) {
        length += fread(text + length, 1, capacity - length, file);
        if (length < capacity || length > SOURCE_MAX_BYTES)
            break;
        char *larger = arena_alloc(set->arena, 2 * capacity);
        memcpy(larger, text, length);
        text = larger;
        capacity *= 2;
    }
    bool failed = ferror(file) != 0;
    int error = errno;
    fclose(file);
    if (failed || length > SOURCE_MAX_BYTES) {
        *reason = failed ? arena_format(set->arena, "%s", strerror(error))
                         : arena_format(set->arena, "larger than %d bytes", SOURCE_MAX_BYTES);
        return -1;
    }
    return source_add(set, path, text, length);
}

Place source_place(const SourceSet *set, int file, int offset) {
    const Source *source = &set->files[file];
    int low = 0, high = source->line_count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (source->line_starts[middle] <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    Place place = {low + 1, offset - source->line_starts[low] + 1};
    return place;
}
