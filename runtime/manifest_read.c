// manifest_read.c: the manifest's text back to the structure. A table says which lines there are; the reader
// of each fills its part. What the lines say together is checked at the end by jfa_manifest_check.
#include "runtime/manifest.h"

#include "runtime/error.h"
#include "runtime/manifest_words.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINE_BYTES = 1024, MOST_WORDS = 16 };

typedef struct {
    jfa_manifest *m;
    jfa_error *err;
    int line;
    char buffer[MOST_LINE_BYTES];
    char *words[MOST_WORDS]; // in buffer; words[0] is the line's kind
    int count;
    bool done;
} Reader;

#define FAIL(reader, format, ...)                                                                            \
    (jfa_error_set((reader)->err, JFA_ERROR_MANIFEST, "manifest line %d: " format, (reader)->line,           \
                   __VA_ARGS__),                                                                             \
     false)

// ---------------------------------------------------------------- words

static bool read_text(Reader *r, const char *word, char *to, size_t capacity) {
    size_t length = strlen(word);
    if (length >= capacity)
        return FAIL(r, "'%.32s...' is longer than %zu bytes", word, capacity - 1);
    memcpy(to, word, length + 1);
    return true;
}

static bool read_integer(Reader *r, const char *word, int64_t least, int64_t most, int64_t *value) {
    bool digits = *word && strspn(word + (*word == '-'), "0123456789") == strlen(word) - (*word == '-');
    errno = 0;
    *value = digits ? strtoll(word, NULL, 10) : 0;
    if (!digits || errno || *value < least || *value > most)
        return FAIL(r, "'%s' is not an integer of %lld to %lld", word, (long long)least, (long long)most);
    return true;
}

static bool read_int(Reader *r, const char *word, int *value) {
    int64_t wide;
    bool good = read_integer(r, word, 0, INT32_MAX, &wide);
    *value = (int)wide;
    return good;
}

static bool read_ref(Reader *r, jfa_ref ref, const char *word, int *index) {
    *index = jfa_ref_find(r->m, ref, word);
    return *index >= 0 || FAIL(r, "there is no %s '%s' above this line", jfa_ref_word(ref), word);
}

static bool read_choice(Reader *r, const char *what, const char *word, const char *const *words, int count,
                        int *choice) {
    for (*choice = 0; *choice < count; ++*choice)
        if (strcmp(word, words[*choice]) == 0)
            return true;
    return FAIL(r, "'%s' is no %s", word, what);
}

static bool read_dtype(Reader *r, const char *word, jfa_dtype *dtype) {
    for (int i = 0; i < JFA_DTYPE_COUNT; i++)
        if (strcmp(word, jfa_dtype_name((jfa_dtype)i)) == 0) {
            *dtype = (jfa_dtype)i;
            return true;
        }
    return FAIL(r, "'%s' is no element type", word);
}

// Gives in *place the next free element of a list of at most `most`.
static bool next_place(Reader *r, const char *what, int *count, int most, int *place) {
    if (*count >= most)
        return FAIL(r, "more than %d lines of kind '%s'", most, what);
    *place = (*count)++;
    return true;
}

// ---------------------------------------------------------------- lines

static bool read_kernel(Reader *r) {
    return read_text(r, r->words[1], r->m->info.name, sizeof r->m->info.name);
}

static bool read_entry(Reader *r) {
    return read_text(r, r->words[1], r->m->entry, sizeof r->m->entry);
}

static bool read_target(Reader *r) {
    return read_text(r, r->words[1], r->m->info.target, sizeof r->m->info.target);
}

static bool read_compiler(Reader *r) {
    return read_text(r, r->words[1], r->m->info.compiler, sizeof r->m->info.compiler);
}

static bool read_source(Reader *r) {
    return read_text(r, r->words[1], r->m->info.source, sizeof r->m->info.source);
}

static bool read_threads(Reader *r) {
    return read_int(r, r->words[1], &r->m->info.threads);
}

static bool read_shared(Reader *r) {
    return read_integer(r, r->words[1], 0, INT32_MAX, &r->m->info.shared_bytes);
}

static bool read_cluster(Reader *r) {
    return read_int(r, r->words[1], &r->m->info.cluster);
}

static bool read_axis(Reader *r) {
    jfa_kernel_info *info = &r->m->info;
    int place;
    return next_place(r, "axis", &info->axis_count, JFA_MAX_AXES, &place) &&
           read_text(r, r->words[1], info->axes[place].name, JFA_NAME_BYTES);
}

static bool read_dim(Reader *r) {
    jfa_kernel_info *info = &r->m->info;
    int place;
    if (!next_place(r, "dim", &info->dim_count, JFA_MAX_DIMS, &place))
        return false;
    info->dims[place].divides = -1;
    return read_text(r, r->words[1], info->dims[place].name, JFA_NAME_BYTES);
}

static bool read_divides(Reader *r) {
    int dim, other;
    if (!read_ref(r, REF_DIM, r->words[1], &dim) || !read_ref(r, REF_DIM, r->words[2], &other))
        return false;
    if (r->m->info.dims[dim].divides >= 0)
        return FAIL(r, "dim '%s' divides two dims", r->words[1]);
    r->m->info.dims[dim].divides = other;
    return true;
}

static bool read_constant(Reader *r) {
    jfa_kernel_info *info = &r->m->info;
    int place;
    return next_place(r, "constant", &info->constant_count, JFA_MAX_CONSTANTS, &place) &&
           read_text(r, r->words[1], info->constants[place].name, JFA_NAME_BYTES) &&
           read_text(r, r->words[2], info->constants[place].value, JFA_NAME_BYTES);
}

static bool read_tensor_dim(Reader *r, const char *word, jfa_tensor_dim *dim) {
    if (*word >= '0' && *word <= '9') {
        dim->kind = JFA_DIM_CONSTANT;
        return read_integer(r, word, 1, INT32_MAX, &dim->extent);
    }
    dim->kind = JFA_DIM_AXIS;
    dim->index = jfa_ref_find(r->m, REF_AXIS, word);
    if (dim->index >= 0)
        return true;
    dim->kind = JFA_DIM_RUNTIME;
    dim->index = jfa_ref_find(r->m, REF_DIM, word);
    return dim->index >= 0 || FAIL(r, "there is no axis or dim '%s' above this line", word);
}

static bool read_tensor(Reader *r) {
    jfa_kernel_info *info = &r->m->info;
    int place, direction;
    if (!next_place(r, "tensor", &info->tensor_count, JFA_MAX_TENSORS, &place))
        return false;
    jfa_tensor_info *tensor = &info->tensors[place];
    if (!read_text(r, r->words[1], tensor->name, JFA_NAME_BYTES) ||
        !read_choice(r, "direction", r->words[2], JFA_DIRECTION_WORDS, JFA_INOUT + 1, &direction) ||
        !read_dtype(r, r->words[3], &tensor->dtype))
        return false;
    tensor->direction = (jfa_direction)direction;
    tensor->optional = r->count == 6;
    if (tensor->optional && strcmp(r->words[5], "optional") != 0)
        return FAIL(r, "'%s' follows the dims of a tensor", r->words[5]);
    for (char *word = r->words[4], *next; word; word = next) {
        next = strchr(word, ',');
        if (next)
            *next++ = 0;
        if (!next_place(r, "dim of a tensor", &tensor->rank, JFA_MAX_RANK, &place) ||
            !read_tensor_dim(r, word, &tensor->dims[place]))
            return false;
    }
    return true;
}

static bool read_param(Reader *r) {
    jfa_kernel_info *info = &r->m->info;
    int place;
    if (!next_place(r, "param", &info->param_count, JFA_MAX_PARAMS, &place))
        return false;
    jfa_param_info *param = &info->params[place];
    if (!read_text(r, r->words[1], param->name, JFA_NAME_BYTES) || !read_dtype(r, r->words[2], &param->dtype))
        return false;
    if (r->count < 4)
        return true;
    char *end;
    param->has_default = true;
    param->default_value = strtod(r->words[3], &end);
    return (end != r->words[3] && !*end) || FAIL(r, "'%s' is not a number", r->words[3]);
}

static bool read_positive(Reader *r) {
    int param;
    if (!read_ref(r, REF_PARAM, r->words[1], &param))
        return false;
    r->m->info.params[param].is_positive = true;
    return true;
}

static bool read_factor(Reader *r) {
    int place;
    return next_place(r, "factor", &r->m->factor_count, JFA_MAX_DIMS, &place) &&
           read_ref(r, REF_DIM, r->words[1], &r->m->factors[place]);
}

static bool read_block(Reader *r) {
    int place;
    return next_place(r, "block", &r->m->block_count, JFA_MAX_BLOCKS, &place) &&
           read_ref(r, REF_AXIS, r->words[1], &r->m->blocks[place].axis) &&
           read_integer(r, r->words[2], 1, INT32_MAX, &r->m->blocks[place].size);
}

static bool read_heaviest(Reader *r) {
    return r->m->heaviest_first = true;
}
static bool read_persistent(Reader *r) {
    int64_t ctas = 1;
    bool good = r->count == 1 || read_integer(r, r->words[1], 1, JFA_MAX_OCCUPANCY, &ctas);
    r->m->persistent = (int)ctas;
    return good;
}

// words[first] is one of the table's, its operands follow and end the line.
static bool read_operand(Reader *r, int first, const jfa_operand_word *table, int table_count, int *kind,
                         int *index, int *dim) {
    for (*kind = 0; *kind < table_count; ++*kind)
        if (strcmp(r->words[first], table[*kind].word) == 0)
            break;
    if (*kind == table_count)
        return FAIL(r, "'%s' is not known here", r->words[first]);
    const jfa_operand_word *word = &table[*kind];
    if (r->count != first + 1 + (word->ref != REF_NONE) + word->has_dim)
        return FAIL(r, "'%s' has too few or too many operands", word->word);
    *index = *dim = 0;
    if (word->ref == REF_MAP && !read_int(r, r->words[first + 1], index))
        return false;
    if (word->ref != REF_MAP && word->ref != REF_NONE && !read_ref(r, word->ref, r->words[first + 1], index))
        return false;
    return !word->has_dim || read_int(r, r->words[first + 2], dim);
}

static bool read_field(Reader *r) {
    int place, kind;
    if (!next_place(r, "field", &r->m->field_count, JFA_MAX_FIELDS, &place))
        return false;
    jfa_field *field = &r->m->fields[place];
    bool good = read_operand(r, 1, JFA_FIELD_WORDS, JFA_FIELD_KIND_COUNT, &kind, &field->index, &field->dim);
    field->kind = (jfa_field_kind)kind;
    return good;
}

static bool read_arg(Reader *r) {
    int place, kind;
    if (!next_place(r, "arg", &r->m->arg_count, JFA_MAX_ARGS, &place))
        return false;
    jfa_arg *arg = &r->m->args[place];
    bool good = read_integer(r, r->words[1], 0, JFA_PARAMETER_BYTES, &arg->offset) &&
                read_integer(r, r->words[2], 0, JFA_PARAMETER_BYTES, &arg->bytes) &&
                read_operand(r, 3, JFA_ARG_WORDS, JFA_ARG_KIND_COUNT, &kind, &arg->index, &arg->dim);
    if (good)
        arg->kind = (jfa_arg_kind)kind;
    return good;
}

// "rows:0:128": cuts at the colons.
static bool read_map_entry(Reader *r, char *word, jfa_map_entry *entry) {
    char *parts[3] = {word, NULL, NULL};
    int count = 1, kind = 0;
    for (char *colon; (colon = strchr(parts[count - 1], ':')); count++) {
        if (count == 3)
            return FAIL(r, "'%s' has too many parts", colon);
        *colon = 0;
        parts[count] = colon + 1;
    }
    while (kind < JFA_ENTRY_KIND_COUNT && strcmp(word, JFA_ENTRY_WORDS[kind].word) != 0)
        kind++;
    if (kind == JFA_ENTRY_KIND_COUNT ||
        count != 1 + JFA_ENTRY_WORDS[kind].has_dim + JFA_ENTRY_WORDS[kind].has_box)
        return FAIL(r, "'%s' is not known here, or has too few or too many parts", word);
    entry->kind = (jfa_map_entry_kind)kind;
    entry->box = 1;
    return (!JFA_ENTRY_WORDS[kind].has_dim || read_int(r, parts[1], &entry->dim)) &&
           (!JFA_ENTRY_WORDS[kind].has_box || read_integer(r, parts[count - 1], 1, INT32_MAX, &entry->box));
}

static bool read_map(Reader *r) {
    int place;
    if (!next_place(r, "map", &r->m->map_count, JFA_MAX_MAPS, &place))
        return false;
    jfa_map *map = &r->m->maps[place];
    if (!read_ref(r, REF_TENSOR, r->words[1], &map->tensor) ||
        !read_int(r, r->words[2], &map->swizzle_bytes) ||
        !read_integer(r, r->words[3], 1, INT32_MAX, &map->cols))
        return false;
    for (int i = 4; i < r->count; i++)
        if (!read_map_entry(r, r->words[i], &map->entries[map->rank++]))
            return false;
    return true;
}

static bool read_watchdog(Reader *r) {
    return read_integer(r, r->words[1], 1, JFA_MOST_WATCHDOG_MS, &r->m->watchdog_ms);
}

static bool read_file(Reader *r) {
    int place;
    return next_place(r, "file", &r->m->file_count, JFA_MAX_FILES, &place) &&
           read_text(r, r->words[1], r->m->files[place], sizeof r->m->files[place]);
}

static bool read_wait(Reader *r) {
    int place, is_full;
    if (!next_place(r, "wait", &r->m->wait_count, JFA_MAX_WAITS, &place))
        return false;
    jfa_wait *wait = &r->m->waits[place];
    bool good = read_text(r, r->words[1], wait->role, sizeof wait->role) &&
                read_choice(r, "state of a slot", r->words[2], JFA_WAIT_WORDS, 2, &is_full) &&
                read_text(r, r->words[3], wait->pipe, sizeof wait->pipe) &&
                read_int(r, r->words[4], &wait->count) && read_int(r, r->words[5], &wait->stages) &&
                read_int(r, r->words[6], &wait->file) && read_int(r, r->words[7], &wait->line);
    wait->is_full = good && is_full;
    return good;
}

static bool read_end(Reader *r) {
    return r->done = true;
}

// Lines by their first word; words: how many there may be, with the first.
static const struct {
    const char *word;
    int least, most;
    bool once, needed;
    bool (*read)(Reader *);
} LINES[] = {
    {"kernel", 2, 2, true, true, read_kernel},
    {"entry", 2, 2, true, true, read_entry},
    {"target", 2, 2, true, true, read_target},
    {"compiler", 2, 2, true, true, read_compiler},
    {"source", 2, 2, true, true, read_source},
    {"threads", 2, 2, true, true, read_threads},
    {"shared", 2, 2, true, true, read_shared},
    {"cluster", 2, 2, true, true, read_cluster},
    {"axis", 2, 2, false, false, read_axis},
    {"dim", 2, 2, false, false, read_dim},
    {"divides", 3, 3, false, false, read_divides},
    {"constant", 3, 3, false, false, read_constant},
    {"tensor", 5, 6, false, false, read_tensor},
    {"param", 3, 4, false, false, read_param},
    {"positive", 2, 2, false, false, read_positive},
    {"factor", 2, 2, false, false, read_factor},
    {"block", 3, 3, false, false, read_block},
    {"heaviest_first", 1, 1, true, false, read_heaviest},
    {"persistent", 1, 2, true, false, read_persistent},
    {"field", 2, 4, false, true, read_field},
    {"map", 5, 4 + JFA_MAX_RANK, false, false, read_map},
    {"arg", 4, 6, false, false, read_arg},
    {"watchdog", 2, 2, true, false, read_watchdog},
    {"file", 2, 2, false, false, read_file},
    {"wait", 8, 8, false, false, read_wait},
    {"end", 1, 1, true, true, read_end},
};
enum { LINE_KINDS = sizeof LINES / sizeof LINES[0] };

// ---------------------------------------------------------------- the text

// Takes the line up to its newline into the buffer. False: there is none, or it is too long or has a NUL.
static bool take_line(Reader *r, const char *text, size_t length, size_t *used) {
    const char *start = text + *used, *newline = memchr(start, '\n', length - *used);
    r->line++;
    if (!newline)
        return FAIL(r, "the text ends before '%s'", "end");
    size_t bytes = (size_t)(newline - start);
    if (bytes >= sizeof r->buffer || memchr(start, 0, bytes))
        return FAIL(r, "longer than %d bytes, or with a NUL", MOST_LINE_BYTES - 1);
    memcpy(r->buffer, start, bytes);
    r->buffer[bytes] = 0;
    *used += bytes + 1;
    return true;
}

static bool split_line(Reader *r) {
    static const char SOURCE[] = "source ", FILE_NAME[] = "file ";
    r->count = 0;
    char *word = r->buffer;
    // A file's name may have blanks: it is the rest of its line.
    bool whole =
        strncmp(word, SOURCE, sizeof SOURCE - 1) == 0 || strncmp(word, FILE_NAME, sizeof FILE_NAME - 1) == 0;
    while (word) {
        if (r->count == MOST_WORDS)
            return FAIL(r, "more than %d words", MOST_WORDS);
        r->words[r->count++] = word;
        word = whole && r->count == 2 ? NULL : strchr(word, ' ');
        if (word)
            *word++ = 0;
    }
    return true;
}

static bool read_line(Reader *r, bool seen[LINE_KINDS]) {
    int kind = 0;
    while (kind < LINE_KINDS && strcmp(r->words[0], LINES[kind].word) != 0)
        kind++;
    if (kind == LINE_KINDS)
        return FAIL(r, "'%.64s' begins no line of a manifest", r->words[0]);
    if (r->count < LINES[kind].least || r->count > LINES[kind].most)
        return FAIL(r, "'%s' has %d operands", r->words[0], r->count - 1);
    if (seen[kind] && LINES[kind].once)
        return FAIL(r, "'%s' comes twice", r->words[0]);
    seen[kind] = true;
    return LINES[kind].read(r);
}

static bool read_all(Reader *r, const char *text, size_t length, size_t *used) {
    bool seen[LINE_KINDS] = {false};
    int64_t version;
    if (!take_line(r, text, length, used) || !split_line(r))
        return false;
    if (r->count != 2 || strcmp(r->words[0], "jfa-manifest") != 0)
        return FAIL(r, "'%.64s' is not the start of a manifest", r->words[0]);
    if (!read_integer(r, r->words[1], 1, INT32_MAX, &version))
        return false;
    if (version != JFA_MANIFEST_VERSION)
        return FAIL(r, "version %lld; this library reads version %d", (long long)version,
                    JFA_MANIFEST_VERSION);
    while (!r->done)
        if (!take_line(r, text, length, used) || !split_line(r) || !read_line(r, seen))
            return false;
    for (int i = 0; i < LINE_KINDS; i++)
        if (LINES[i].needed && !seen[i])
            return FAIL(r, "the manifest ends without a line '%s'", LINES[i].word);
    return true;
}

jfa_status jfa_manifest_read(const char *text, size_t length, jfa_manifest *m, size_t *used, jfa_error *err) {
    *used = 0;
    memset(m, 0, sizeof *m);
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return jfa_error_set(err, JFA_ERROR_OUT_OF_MEMORY, "no memory to read a manifest");
    locale_t before = uselocale(plain);
    Reader reader = {.m = m, .err = err};
    bool good = read_all(&reader, text, length, used);
    uselocale(before);
    freelocale(plain);
    return good ? jfa_manifest_check(m, err) : JFA_ERROR_MANIFEST;
}
