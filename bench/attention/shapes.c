// shapes.c: reads the CSV file of shapes and draws the lengths of their sequences.
#include "bench/attention/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 1024, COLUMNS = 9, MAX_SEQUENCES = 1 << 20, MAX_LENGTH = 1 << 24 };
static const char HEADER[] = "name,mask,head_dim,heads,kv_heads,sequences,len_q,len_k,queries";

typedef struct {
    const char *path;
    int line;
} Place;

static bool complain(const Place *place, const char *what, const char *value) {
    fprintf(stderr, "bench_attention: %s:%d: %s '%s'\n", place->path, place->line, what, value);
    return false;
}

static bool read_number(const char *text, long least, long most, long *value) {
    char *end;
    *value = strtol(text, &end, 10);
    return end != text && !*end && *value >= least && *value <= most;
}

// ---------------------------------------------------------------- lengths

// FILE:FACTOR: one length a line, times FACTOR; lines that start with # are comments.
static bool read_lengths(const Place *place, const char *spec, int64_t sequences, int32_t *lengths) {
    char path[LINE_BYTES], line[LINE_BYTES];
    const char *slash = strrchr(place->path, '/');
    snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - place->path + 1) : 0, place->path, spec);
    char *colon = strrchr(path, ':');
    long factor = 1, value;
    if (colon && !read_number(colon + 1, 1, 1024, &factor))
        return complain(place, "no factor from 1 to 1024 at the end of", spec);
    if (colon)
        *colon = '\0';
    FILE *file = fopen(path, "r");
    if (!file)
        return complain(place, "can't open", path);
    int64_t count = 0;
    bool good = true;
    while (good && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '#' || !line[0])
            continue;
        good = count < sequences && read_number(line, 0, MAX_LENGTH / factor, &value);
        if (good)
            lengths[count++] = (int32_t)(value * factor);
    }
    fclose(file);
    return good && count == sequences ? true : complain(place, "not one length for each sequence in", path);
}

// Integers from LOW to HIGH, equally likely. bench/peers.py draws the same ones.
static void draw_lengths(int64_t sequences, long low, long high, long seed, int32_t *lengths) {
    for (int64_t s = 0; s < sequences; s++) {
        uint64_t random = values_mix(((uint64_t)seed << 32) + (uint64_t)s) >> 32;
        lengths[s] = (int32_t)(low + (long)(random * (uint64_t)(high - low + 1) >> 32));
    }
}

static bool make_lengths(const Place *place, const char *spec, int64_t sequences, int32_t *lengths) {
    long low, high, seed;
    char rest;
    if (!strncmp(spec, "file:", 5))
        return read_lengths(place, spec + 5, sequences, lengths);
    if (sscanf(spec, "uniform:%ld:%ld:%ld%c", &low, &high, &seed, &rest) == 3) {
        if (low < 0 || high < low || high > MAX_LENGTH || seed < 0 || seed > INT32_MAX)
            return complain(place, "out of range:", spec);
        draw_lengths(sequences, low, high, seed, lengths);
        return true;
    }
    if (!read_number(spec, 0, MAX_LENGTH, &low))
        return complain(place, "neither a number, uniform:LOW:HIGH:SEED nor file:PATH[:FACTOR]:", spec);
    for (int64_t s = 0; s < sequences; s++)
        lengths[s] = (int32_t)low;
    return true;
}

// ---------------------------------------------------------------- one line

void shape_sum_up(Shape *shape) {
    shape->total_q = shape->total_k = 0;
    shape->flop = 0;
    for (int64_t s = 0; s < shape->sequences; s++) {
        shape->first_q[s] = shape->total_q;
        shape->first_k[s] = shape->total_k;
        shape->total_q += shape->len_q[s];
        shape->total_k += shape->len_k[s];
        shape->flop +=
            4.0 * shape->len_q[s] * shape->len_k[s] * shape->heads * shape->head_dim / (1 + shape->is_causal);
    }
}

static bool read_extents(const Place *place, char **cells, Shape *shape) {
    static const char *const NAMES[] = {"head_dim", "heads", "kv_heads", "sequences"};
    static const long MOST[] = {1024, 1024, 1024, MAX_SEQUENCES};
    long values[4];
    for (int i = 0; i < 4; i++)
        if (!read_number(cells[2 + i], 1, MOST[i], &values[i])) {
            char what[BENCH_NAME_BYTES];
            snprintf(what, sizeof what, "%s is out of range:", NAMES[i]);
            return complain(place, what, cells[2 + i]);
        }
    shape->head_dim = (int)values[0];
    shape->heads = (int)values[1];
    shape->kv_heads = (int)values[2];
    shape->sequences = values[3];
    if (shape->heads % shape->kv_heads)
        return complain(place, "kv_heads doesn't divide heads:", cells[4]);
    return true;
}

static bool read_shape(const Place *place, char **cells, Shape *shape) {
    snprintf(shape->name, sizeof shape->name, "%s", cells[0]);
    shape->is_causal = !strcmp(cells[1], "causal");
    if (!shape->is_causal && strcmp(cells[1], "dense") != 0)
        return complain(place, "the mask is neither dense nor causal:", cells[1]);
    if (!read_extents(place, cells, shape))
        return false;
    shape->shares_q = !strcmp(cells[8], "shared");
    if (!shape->shares_q && strcmp(cells[8], "own") != 0)
        return complain(place, "queries are neither own nor shared:", cells[8]);
    size_t count = (size_t)shape->sequences;
    shape->len_q = calloc(count, sizeof *shape->len_q);
    shape->len_k = calloc(count, sizeof *shape->len_k);
    shape->first_q = calloc(count, sizeof *shape->first_q);
    shape->first_k = calloc(count, sizeof *shape->first_k);
    if (!shape->len_q || !shape->len_k || !shape->first_q || !shape->first_k)
        return complain(place, "no memory for", cells[0]);
    const char *len_k = *cells[7] ? cells[7] : cells[6];
    if (!make_lengths(place, cells[6], shape->sequences, shape->len_q) ||
        !make_lengths(place, len_k, shape->sequences, shape->len_k))
        return false;
    for (int64_t s = 1; shape->shares_q && s < shape->sequences; s++)
        if (shape->len_q[s] != shape->len_q[0])
            return complain(place, "shared queries, but lengths that differ:", cells[6]);
    shape_sum_up(shape);
    return true;
}

static int split(char *line, char **cells) {
    int count = 0;
    line[strcspn(line, "\r\n")] = '\0';
    for (char *at = line; at; count++) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        if (count < COLUMNS)
            cells[count] = at;
        at = comma ? comma + 1 : NULL;
    }
    return count;
}

static bool read_line(const Place *place, char *line, Shapes *shapes) {
    char *cells[COLUMNS];
    if (split(line, cells) != COLUMNS)
        return complain(place, "not as many cells as the header in the line of", line);
    for (int i = 0; i < shapes->count; i++)
        if (!strcmp(shapes->items[i].name, cells[0]))
            return complain(place, "twice the name", cells[0]);
    if (shapes->count == BENCH_MAX_SHAPES || !*cells[0] || strlen(cells[0]) >= BENCH_NAME_BYTES)
        return complain(place, "too many shapes, or a name of no use:", cells[0]);
    return read_shape(place, cells, &shapes->items[shapes->count++]);
}

bool shapes_read(const char *path, Shapes *shapes) {
    Place place = {path, 0};
    char line[LINE_BYTES];
    bool good = true, has_header = false;
    FILE *file = fopen(path, "r");
    if (!file)
        return complain(&place, "can't open", path);
    while (good && fgets(line, sizeof line, file)) {
        place.line++;
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '#' || !line[0])
            continue;
        if (has_header)
            good = read_line(&place, line, shapes);
        else if (strcmp(line, HEADER) != 0)
            good = complain(&place, "not the header", line);
        has_header = true;
    }
    fclose(file);
    return good;
}

void shapes_free(Shapes *shapes) {
    for (int i = 0; i < shapes->count; i++) {
        free(shapes->items[i].len_q);
        free(shapes->items[i].len_k);
        free(shapes->items[i].first_q);
        free(shapes->items[i].first_k);
    }
    shapes->count = 0;
}
