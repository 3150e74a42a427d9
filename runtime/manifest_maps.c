// manifest_maps.c: are the tensor maps of a manifest such that every dimension can be filled from the tensor,
// and every coordinate has one meaning? Rules of boxes and swizzles: cuTensorMapEncodeTiled (CUDA driver
// API), PTX ISA "Tensors".
#include "runtime/error.h"
#include "runtime/manifest_words.h"

enum { MOST_BOX_ELEMENTS = 256, BOX_BYTES_UNIT = 16 };

#define FAIL(err, ...) (jfa_error_set(err, JFA_ERROR_MANIFEST, __VA_ARGS__), false)

static bool check_col(const jfa_map *map, const jfa_tensor_info *tensor, int number, jfa_error *err) {
    int64_t bytes = map->entries[0].box * jfa_dtype_bytes(tensor->dtype);
    if (bytes % BOX_BYTES_UNIT)
        return FAIL(err, "map %d: %lld bytes of a row are no multiple of %d", number, (long long)bytes,
                    BOX_BYTES_UNIT);
    if (map->cols < 1 || map->cols % map->entries[0].box)
        return FAIL(err, "map %d: tiles of %lld columns are not made of boxes of %lld", number,
                    (long long)map->cols, (long long)map->entries[0].box);
    return !map->swizzle_bytes || bytes <= map->swizzle_bytes ||
           FAIL(err, "map %d: %lld bytes of a row pass the swizzle's %d", number, (long long)bytes,
                map->swizzle_bytes);
}

static bool check_chunk(const jfa_map *map, const jfa_tensor_info *tensor, int number, int64_t box,
                        jfa_error *err) {
    const jfa_tensor_dim *inner = &tensor->dims[tensor->rank - 1];
    if (inner->kind != JFA_DIM_CONSTANT)
        return FAIL(err, "map %d: chunks need a constant innermost dim", number);
    if (inner->extent % map->entries[0].box || inner->extent / map->entries[0].box < box)
        return FAIL(err, "map %d: %lld chunks of %lld columns don't fit the %lld of tensor '%s'", number,
                    (long long)box, (long long)map->entries[0].box, (long long)inner->extent, tensor->name);
    return true;
}

static bool check_entry(const jfa_map *map, const jfa_tensor_info *tensor, int number, int place,
                        jfa_error *err) {
    const jfa_map_entry *entry = &map->entries[place];
    if ((unsigned)entry->kind >= JFA_ENTRY_KIND_COUNT || (place == 0) != (entry->kind == JFA_ENTRY_COL))
        return FAIL(err, "map %d: entry %d is unknown, or 'col' is not the first and only the first", number,
                    place);
    const jfa_entry_word *word = &JFA_ENTRY_WORDS[entry->kind];
    if (entry->box < 1 || entry->box > MOST_BOX_ELEMENTS || (!word->has_box && entry->box != 1))
        return FAIL(err, "map %d: the box of entry %d is %lld; it must be 1 to %d", number, place,
                    (long long)entry->box, word->has_box ? MOST_BOX_ELEMENTS : 1);
    // The innermost dim is col's.
    if (word->has_dim && (entry->dim < 0 || entry->dim >= tensor->rank - 1))
        return FAIL(err, "map %d: entry %d names dim %d of tensor '%s'; it must be 0 to %d", number, place,
                    entry->dim, tensor->name, tensor->rank - 2);
    return entry->kind != JFA_ENTRY_CHUNK || check_chunk(map, tensor, number, entry->box, err);
}

// Each dim is reached by exactly one entry, the ragged one by `rows` and `end`.
static bool check_cover(const jfa_map *map, const jfa_tensor_info *tensor, int number, jfa_error *err) {
    int counts[JFA_ENTRY_KIND_COUNT] = {0}, plain[JFA_MAX_RANK] = {0}, ragged = -1, end = -1;
    for (int i = 0; i < map->rank; i++) {
        const jfa_map_entry *entry = &map->entries[i];
        counts[entry->kind]++;
        if (entry->kind == JFA_ENTRY_ROWS)
            ragged = entry->dim;
        if (entry->kind == JFA_ENTRY_END)
            end = entry->dim;
        if (entry->kind == JFA_ENTRY_DIM)
            plain[entry->dim]++;
    }
    if (counts[JFA_ENTRY_ROWS] > 1 || counts[JFA_ENTRY_END] > 1 || ragged != end ||
        counts[JFA_ENTRY_CHUNK] > 1)
        return FAIL(err, "map %d: 'rows' and 'end' come once, together and for one dim, 'chunk' once",
                    number);
    for (int d = 0; d < tensor->rank - 1; d++)
        if (plain[d] != (d != ragged))
            return FAIL(err, "map %d: dim %d of tensor '%s' is not reached by exactly one entry", number, d,
                        tensor->name);
    return true;
}

bool jfa_manifest_check_maps(const jfa_manifest *m, jfa_error *err) {
    for (int i = 0; i < m->map_count; i++) {
        const jfa_map *map = &m->maps[i];
        int swizzle = map->swizzle_bytes;
        if (map->tensor < 0 || map->tensor >= m->info.tensor_count)
            return FAIL(err, "map %d names tensor number %d, which there is not", i, map->tensor);
        if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
            return FAIL(err, "map %d: the swizzle is %d bytes; it must be 0, 32, 64 or 128", i, swizzle);
        if (map->rank < 1 || map->rank > JFA_MAX_RANK)
            return FAIL(err, "map %d has %d entries; it must have 1 to %d", i, map->rank, JFA_MAX_RANK);
        const jfa_tensor_info *tensor = &m->info.tensors[map->tensor];
        for (int k = 0; k < map->rank; k++)
            if (!check_entry(map, tensor, i, k, err))
                return false;
        if (!check_col(map, tensor, i, err) || !check_cover(map, tensor, i, err))
            return false;
    }
    return true;
}
