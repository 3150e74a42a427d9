// work.c: the list of work: one record for each sequence and block that has positions, heaviest sequences
// first when the kernel wants that. The order and the fields are the manifest's (manifest.h, "Work"). All
// counts are 64-bit and checked. Where offsets are on the device, the list is made as long as it can get.
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(err, status, ...) jfa_error_set(err, status, __VA_ARGS__)

typedef struct {
    uint64_t key; // ascending
    int32_t sequence;
} Order;

// Lengths stay a block below 2^31 (bind.c): 32 bits are enough, and several times as fast to divide.
static int64_t block_count(const jfa_bound *b, const jfa_block *block, int64_t sequence) {
    uint32_t size = (uint32_t)block->size;
    return ((uint32_t)jfa_bound_length(b, block->axis, sequence) + size - 1) / size;
}

// Records of a sequence; stays at INT64_MAX when it would pass it.
static int64_t record_count(const jfa_bound *b, int64_t sequence) {
    const jfa_manifest *m = b->manifest;
    int64_t count = 1;
    for (int i = 0; i < m->block_count; i++) {
        int64_t blocks = block_count(b, &m->blocks[i], sequence);
        if (!blocks)
            return 0;
        if (__builtin_mul_overflow(count, blocks, &count))
            count = INT64_MAX;
    }
    return count;
}

static bool is_blocked(const jfa_manifest *m, int axis) {
    for (int i = 0; i < m->block_count; i++)
        if (m->blocks[i].axis == axis)
            return true;
    return false;
}

static int64_t weight(const jfa_bound *b, int64_t sequence) {
    int64_t product = 1;
    for (int axis = 0; axis < b->manifest->info.axis_count; axis++) {
        int64_t length = jfa_bound_length(b, axis, sequence);
        if (!is_blocked(b->manifest, axis) && length > 1 && __builtin_mul_overflow(product, length, &product))
            product = INT64_MAX;
    }
    return product;
}

static int64_t factors(const jfa_bound *b) {
    const jfa_manifest *m = b->manifest;
    int64_t factor = 1;
    for (int i = 0; i < m->factor_count; i++)
        if (__builtin_mul_overflow(factor, b->dims[m->factors[i]], &factor))
            factor = INT64_MAX;
    return factor;
}

// Counts records and sequences that have any; refuses what doesn't fit the kernel's 32-bit counters.
static jfa_status count_work(const jfa_bound *b, jfa_work *work, int64_t *sequences, jfa_error *err) {
    int64_t factor = factors(b);
    *sequences = 0;
    for (int64_t s = 0; s < b->sequences; s++) {
        int64_t count = record_count(b, s);
        *sequences += count > 0;
        if (__builtin_add_overflow(work->records, count, &work->records) ||
            __builtin_mul_overflow(work->records, factor, &work->items) || work->items > INT32_MAX)
            return FAIL(err, JFA_ERROR_LIMIT,
                        "there are more than %d work items: sequences 0 to %lld alone have %lld blocks, with "
                        "%lld items each",
                        INT32_MAX, (long long)s, (long long)work->records, (long long)factor);
    }
    work->bytes = (size_t)work->records * (size_t)b->manifest->field_count * sizeof(int32_t);
    return JFA_OK;
}

// The fields of a sequence's records; `start` fields are left for write_sequence.
static void write_fields(const jfa_bound *b, int64_t sequence, int32_t *words) {
    const jfa_manifest *m = b->manifest;
    for (int i = 0; i < m->field_count; i++) {
        const jfa_field *field = &m->fields[i];
        int64_t value = sequence;
        if (field->kind == JFA_FIELD_LEN)
            value = jfa_bound_length(b, field->index, sequence);
        else if (field->kind == JFA_FIELD_BASE)
            value = jfa_bound_base(b, field->index, field->dim, sequence);
        words[i] = (int32_t)value; // fits: lengths, rows and sequences are below 2^31 (bind.c, tensors.c)
    }
}

// The place in a record of each block's start; -1: it has none.
static void find_starts(const jfa_manifest *m, int places[JFA_MAX_BLOCKS]) {
    for (int k = 0; k < m->block_count; k++) {
        places[k] = -1;
        for (int i = 0; i < m->field_count; i++)
            if (m->fields[i].kind == JFA_FIELD_START && m->fields[i].index == m->blocks[k].axis)
                places[k] = i;
    }
}

static int32_t *write_sequence(const jfa_bound *b, const int *places, int64_t sequence, int32_t *words) {
    const jfa_manifest *m = b->manifest;
    int64_t at[JFA_MAX_BLOCKS] = {0}, lengths[JFA_MAX_BLOCKS] = {0};
    int32_t fields[JFA_MAX_FIELDS];
    write_fields(b, sequence, fields);
    for (int i = 0; i < m->block_count; i++)
        lengths[i] = jfa_bound_length(b, m->blocks[i].axis, sequence);
    for (;;) {
        memcpy(words, fields, (size_t)m->field_count * sizeof *words);
        for (int k = 0; k < m->block_count; k++)
            if (places[k] >= 0)
                words[places[k]] = (int32_t)at[k];
        words += m->field_count;
        int i = m->block_count - 1;
        for (; i >= 0; i--) {
            at[i] += m->blocks[i].size;
            if (at[i] < lengths[i])
                break;
            at[i] = 0;
        }
        if (i < 0)
            return words;
    }
}

// Bucket sort by one byte of the key after the other, from the lowest on; equal keys keep their order. The
// result lies in the array that is returned.
static Order *sort(Order *order, Order *other, int64_t count, uint64_t most) {
    for (int shift = 0; shift < 64 && most >> shift; shift += 8) {
        int64_t places[256] = {0}, place = 0;
        for (int64_t i = 0; i < count; i++)
            places[order[i].key >> shift & 255]++;
        for (int k = 0; k < 256; k++) {
            int64_t here = places[k];
            places[k] = place;
            place += here;
        }
        for (int64_t i = 0; i < count; i++)
            other[places[order[i].key >> shift & 255]++] = order[i];
        Order *swapped = order;
        order = other;
        other = swapped;
    }
    return order;
}

// Sequences with records, with their weights as keys; the keys are then counted from the heaviest, so that
// few bytes of them differ.
static uint64_t fill_order(const jfa_bound *b, Order *order, int64_t sequences) {
    uint64_t most = 0, least = UINT64_MAX;
    int64_t count = 0;
    for (int64_t s = 0; s < b->sequences && count < sequences; s++) {
        if (!record_count(b, s))
            continue;
        uint64_t key = (uint64_t)weight(b, s);
        most = key > most ? key : most;
        least = key < least ? key : least;
        order[count++] = (Order){key, (int32_t)s};
    }
    for (int64_t i = 0; i < count; i++)
        order[i].key = most - order[i].key;
    return most - least;
}

// Records of a sequence weigh the same, so that sorting sequences sorts records.
static jfa_status write_sorted(const jfa_bound *b, int64_t sequences, int32_t *words, jfa_error *err) {
    int places[JFA_MAX_BLOCKS];
    Order *order = calloc((size_t)sequences, 2 * sizeof *order);
    if (!order)
        return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory to sort %lld sequences",
                    (long long)sequences);
    find_starts(b->manifest, places);
    uint64_t most = fill_order(b, order, sequences);
    const Order *sorted = sort(order, order + sequences, sequences, most);
    for (int64_t i = 0; i < sequences; i++)
        words = write_sequence(b, places, sorted[i].sequence, words);
    free(order);
    return JFA_OK;
}

// ---------------------------------------------------------------- offsets on the device

// Blocks of all sequences on an axis, at most. Of n sequences with positions, T in all, each has a block for
// its first position and one more for each `size` of the rest: n + (T - n) / size, the most for the largest
// n.
static int64_t most_blocks(const jfa_bound *b, const jfa_block *block) {
    int64_t total = b->most_total[block->axis], of_each, all;
    if (!__builtin_mul_overflow(b->sequences, b->most_length[block->axis], &all) && all < total)
        total = all;
    of_each = (b->most_length[block->axis] + block->size - 1) / block->size;
    int64_t count = b->sequences < total ? b->sequences : total;
    all = count + (total - count) / block->size;
    return of_each < all / (b->sequences ? b->sequences : 1) ? of_each * b->sequences : all;
}

// Sums over sequences of products are at most the products of the sums.
static int64_t most_records(const jfa_bound *b) {
    const jfa_manifest *m = b->manifest;
    int64_t records = 1;
    bool any_on_device = false;
    for (int i = 0; i < m->block_count; i++) {
        bool on_device = jfa_bound_is_on_device(b, m->blocks[i].axis);
        any_on_device |= on_device;
        int64_t blocks = !on_device     ? block_count(b, &m->blocks[i], 0)
                         : b->sequences ? most_blocks(b, &m->blocks[i])
                                        : 0;
        if (__builtin_mul_overflow(records, blocks, &records))
            records = INT64_MAX;
    }
    if (!any_on_device && __builtin_mul_overflow(records, b->sequences, &records))
        records = INT64_MAX;
    return records;
}

size_t jfa_work_status(const jfa_manifest *m, int64_t records) {
    size_t bytes = (size_t)records * (size_t)m->field_count * sizeof(int32_t), unit = sizeof(uint64_t);
    return (bytes + unit - 1) / unit * unit;
}

static jfa_status build_bound(const jfa_bound *b, jfa_work *work, jfa_error *err) {
    int64_t factor = factors(b);
    work->records = most_records(b);
    if (__builtin_mul_overflow(work->records, factor, &work->items) || work->items > INT32_MAX)
        return FAIL(err, JFA_ERROR_LIMIT,
                    "there could be more than %d work items: up to %lld blocks, with %lld items each",
                    INT32_MAX, (long long)work->records, (long long)factor);
    if (!work->records)
        return JFA_OK;
    size_t status = jfa_work_status(b->manifest, work->records);
    work->bytes = status + sizeof JFA_NOTHING_WRONG;
    work->words = calloc(1, work->bytes);
    if (!work->words)
        return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for %lld records of work",
                    (long long)work->records);
    memcpy((uint8_t *)work->words + status, &JFA_NOTHING_WRONG, sizeof JFA_NOTHING_WRONG);
    return JFA_OK;
}

jfa_status jfa_work_build(const jfa_bound *b, jfa_work *work, jfa_error *err) {
    *work = (jfa_work){0};
    if (b->on_device)
        return build_bound(b, work, err);
    int64_t sequences;
    jfa_status status = count_work(b, work, &sequences, err);
    if (status || !work->records)
        return status;
    work->words = malloc(work->bytes + 1); // all of it is written
    if (!work->words)
        return FAIL(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for %lld records of work",
                    (long long)work->records);
    if (b->manifest->heaviest_first)
        return write_sorted(b, sequences, work->words, err);
    int places[JFA_MAX_BLOCKS];
    int32_t *words = work->words;
    find_starts(b->manifest, places);
    for (int64_t s = 0; s < b->sequences; s++)
        if (record_count(b, s))
            words = write_sequence(b, places, s, words);
    return JFA_OK;
}
