// ptx.c: what the grammar's rules do: names and scopes, layout of parameters and variables, the module's
// memory.
#include "simulator/ptx/state.h"
#include "ptx_y.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define YYSTYPE PTX_YYSTYPE
#define YYLTYPE PTX_YYLTYPE
#define YY_EXTRA_TYPE PtxParser *
#include "ptx_l.h"

_Thread_local PtxParser *ptx_current;

// ---------------------------------------------------------------- failure and memory

void ptx_fail(PtxParser *parser, int line, int column, const char *format, ...) {
    va_list arguments;
    parser->error->line = line;
    parser->error->column = column;
    va_start(arguments, format);
    vsnprintf(parser->error->message, sizeof parser->error->message, format, arguments);
    va_end(arguments);
    longjmp(parser->failed, 1);
}

void ptx_scanner_failed(const char *message) {
    ptx_fail(ptx_current, 0, 0, "%s", message);
}

void *ptx_take(PtxParser *parser, size_t bytes) {
    bytes = (bytes + 15) & ~(size_t)15;
    Block *block = parser->owned->blocks;
    if (!block || block->size - block->used < bytes) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block = malloc(sizeof *block + size);
        if (!block)
            ptx_fail(parser, 0, 0, "out of memory");
        *block = (Block){.before = parser->owned->blocks, .size = size};
        parser->owned->blocks = block;
    }
    void *result = block->bytes + block->used;
    block->used += bytes;
    return memset(result, 0, bytes);
}

const char *ptx_copy(PtxParser *parser, const char *text, size_t length) {
    char *copy = ptx_take(parser, length + 1);
    memcpy(copy, text, length);
    return copy;
}

void *ptx_grow(PtxParser *parser, void *array, int count, int *capacity, size_t element) {
    if (count < *capacity)
        return array;
    int wanted = *capacity ? 2 * *capacity : 64;
    void *more = realloc(array, element * (size_t)wanted);
    if (!more)
        ptx_fail(parser, 0, 0, "out of memory");
    memset((char *)more + element * (size_t)*capacity, 0, element * (size_t)(wanted - *capacity));
    *capacity = wanted;
    return more;
}

void ptx_free(PtxModule *module) {
    if (!module)
        return;
    for (int i = 0; i < module->entry_count; i++) {
        free(module->entries[i].registers);
        free(module->entries[i].instructions);
    }
    free(module->entries);
    free(module->symbols);
    free(module->files);
    for (Block *block = ((Owned *)module)->blocks; block;) {
        Block *before = block->before;
        free(block);
        block = before;
    }
    free(module);
}

// ---------------------------------------------------------------- words and numbers

PtxWord ptx_word(PtxParser *parser, const char *text, size_t length) {
    return (PtxWord){ptx_copy(parser, text, length), parser->loc_file, parser->loc_line};
}

PtxNumber ptx_number(PtxParser *parser, const char *text, size_t length, int line, int column) {
    PtxNumber number = {0};
    char copy[64], *end = copy;
    if (length >= sizeof copy)
        ptx_fail(parser, line, column, "the number is too long");
    memcpy(copy, text, length);
    copy[length] = '\0';
    char form = copy[0] == '0' ? copy[1] : '\0';
    errno = 0;
    if (form == 'f' || form == 'F' || form == 'd' || form == 'D') {
        number.is_float = true;
        number.is_double = form == 'd' || form == 'D';
        number.integer = (int64_t)strtoull(copy + 2, &end, 16);
        if (length != (number.is_double ? 18u : 10u))
            end = copy;
    } else if (strchr(copy, '.')) {
        double value = strtod(copy, &end);
        number.is_float = number.is_double = true;
        memcpy(&number.integer, &value, sizeof value);
        errno = 0;
    } else {
        bool binary = form == 'b' || form == 'B';
        int base = binary ? 2 : form == 'x' || form == 'X' ? 16 : form ? 8 : 10;
        number.integer = (int64_t)strtoull(binary ? copy + 2 : copy, &end, base);
        end += *end == 'U';
    }
    if (*end || end == copy || errno)
        ptx_fail(parser, line, column, "%s is not a number", copy);
    return number;
}

// .loc file line column: the rest (function_name, inlined_at) tells where the line was inlined to.
void ptx_set_loc(PtxParser *parser, const char *text) {
    int file = 0, line = 0;
    if (sscanf(text, ".loc %9d %9d", &file, &line) == 2) {
        parser->loc_file = file;
        parser->loc_line = line;
    }
}

void ptx_add_file(PtxParser *parser, const char *text) {
    int number = 0;
    const char *name = strchr(text, '"'), *end = name ? strchr(name + 1, '"') : NULL;
    if (sscanf(text, ".file %9d", &number) != 1 || number < 0 || number > 65535 || !end)
        return; // only names in messages depend on it
    PtxModule *module = parser->module;
    if (number >= module->file_count) {
        const char **files = realloc(module->files, sizeof *files * (size_t)(number + 1));
        if (!files)
            ptx_fail(parser, 0, 0, "out of memory");
        memset(files + module->file_count, 0, sizeof *files * (size_t)(number + 1 - module->file_count));
        module->files = files;
        module->file_count = number + 1;
    }
    module->files[number] = ptx_copy(parser, name + 1, (size_t)(end - name - 1));
}

void ptx_version(PtxParser *parser, const char *text) {
    sscanf(text, "%9d.%9d", &parser->module->version_major, &parser->module->version_minor);
}

void ptx_target(PtxParser *parser, const char *text) {
    parser->module->target = text;
    parser->has_target = true;
}

void ptx_address_size(PtxParser *parser, int64_t bits, int line, int column) {
    if (bits != 64)
        ptx_fail(parser, line, column, "only .address_size 64 is supported");
    parser->module->address_size = 64;
}

// ---------------------------------------------------------------- names

static uint32_t hash_of(const char *text) {
    uint32_t hash = 2166136261u; // FNV-1a
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

Name *ptx_find_name(const PtxParser *parser, const char *text) {
    uint32_t hash = hash_of(text);
    for (Name *name = parser->buckets[hash % NAME_BUCKETS]; name; name = name->in_bucket)
        if (name->hash == hash && !strcmp(name->text, text))
            return name;
    return NULL;
}

static Name *find_in_scope(const PtxParser *parser, const char *text) {
    Name *name = ptx_find_name(parser, text);
    for (Name *own = name ? parser->scope->names : NULL; own; own = own->in_scope)
        if (own == name)
            return name;
    return NULL;
}

static Name *add_name(PtxParser *parser, const char *text, NameKind kind, int value) {
    Name *name = ptx_take(parser, sizeof *name);
    uint32_t hash = hash_of(text);
    *name = (Name){.text = text,
                   .hash = hash,
                   .kind = kind,
                   .value = value,
                   .in_bucket = parser->buckets[hash % NAME_BUCKETS],
                   .in_scope = parser->scope->names};
    parser->buckets[hash % NAME_BUCKETS] = name;
    parser->scope->names = name;
    return name;
}

static Name *declare(PtxParser *parser, const char *text, NameKind kind, int value, int line, int column) {
    Name *before = ptx_find_name(parser, text);
    // Walking the scope's names costs; a name that is new everywhere needs no walk.
    if (before && find_in_scope(parser, text))
        ptx_fail(parser, line, column, "%.120s is declared twice", text);
    return add_name(parser, text, kind, value);
}

void ptx_scope_begin(PtxParser *parser) {
    Scope *scope = ptx_take(parser, sizeof *scope);
    scope->number = parser->scope_count++;
    scope->outer = parser->scope;
    parser->scope = scope;
}

static void resolve(PtxParser *parser, const Pending *pending, const Name *name) {
    PtxOperand *operand =
        &parser->module->entries[parser->entry].instructions[pending->instruction].operands[pending->operand];
    if (pending->item >= 0)
        operand = &operand->items[pending->item];
    operand->kind = PTX_LABEL;
    operand->target = name->value;
}

// Labels of the scope get their uses; the uses that are left over look in the scope around it.
void ptx_scope_end(PtxParser *parser) {
    Scope *scope = parser->scope;
    for (Pending *pending = scope->pending; pending;) {
        Pending *before = pending->before;
        Name *name = find_in_scope(parser, pending->name);
        if (name && name->kind == NAME_LABEL) {
            resolve(parser, pending, name);
        } else if (scope->outer && scope->outer->outer) {
            pending->before = scope->outer->pending;
            scope->outer->pending = pending;
        } else {
            ptx_fail(parser, pending->line, pending->column, "unknown register, label or variable %.120s",
                     pending->name);
        }
        pending = before;
    }
    for (Name *name = scope->names; name; name = name->in_scope)
        parser->buckets[name->hash % NAME_BUCKETS] = name->in_bucket;
    parser->scope = scope->outer;
}

// ---------------------------------------------------------------- variables

int ptx_type_bytes(PtxType type) {
    static const uint8_t BYTES[PTX_TYPE_COUNT] = {
        [PTX_PRED] = 1, [PTX_B8] = 1,  [PTX_B16] = 2, [PTX_B32] = 4,   [PTX_B64] = 8, [PTX_B128] = 16,
        [PTX_U8] = 1,   [PTX_U16] = 2, [PTX_U32] = 4, [PTX_U64] = 8,   [PTX_S8] = 1,  [PTX_S16] = 2,
        [PTX_S32] = 4,  [PTX_S64] = 8, [PTX_F16] = 2, [PTX_F16X2] = 4, [PTX_F32] = 4, [PTX_F64] = 8,
    };
    return type >= 0 && type < PTX_TYPE_COUNT ? BYTES[type] : 0;
}

void ptx_declaration(PtxParser *parser, PtxDeclaration declaration) {
    parser->declaration = declaration;
}

// Where the variable lies in its space: parameters follow each other with natural alignment (CUDA's calling
// convention).
static int64_t place(PtxParser *parser, const PtxSymbol *symbol) {
    PtxEntry *entry = parser->entry >= 0 ? &parser->module->entries[parser->entry] : NULL;
    int64_t *end = symbol->space == PTX_SPACE_SHARED           ? &parser->module->shared_bytes
                   : symbol->space == PTX_SPACE_PARAM && entry ? &entry->param_bytes
                   : symbol->space == PTX_SPACE_LOCAL && entry ? &entry->local_bytes
                                                               : NULL;
    if (!end || symbol->is_extern)
        return 0;
    int64_t offset = (*end + symbol->align - 1) / symbol->align * symbol->align;
    *end = offset + symbol->bytes;
    return offset;
}

void ptx_declare(PtxParser *parser, const char *text, int64_t elements, int line, int column) {
    const PtxDeclaration *declaration = &parser->declaration;
    if (declaration->type == PTX_TYPE_COUNT || declaration->type == PTX_PRED)
        ptx_fail(parser, line, column, "variable %.120s has no type", text);
    if (declaration->is_extern ? declaration->space != PTX_SPACE_SHARED : elements == 0)
        ptx_fail(parser, line, column, "the size of %.120s is not known in this module", text);
    PtxModule *module = parser->module;
    module->symbols =
        ptx_grow(parser, module->symbols, module->symbol_count, &parser->symbol_capacity, sizeof(PtxSymbol));
    PtxSymbol *symbol = &module->symbols[module->symbol_count];
    int bytes = ptx_type_bytes(declaration->type) * declaration->vector;
    *symbol = (PtxSymbol){
        .name = text,
        .space = declaration->space,
        .type = declaration->type,
        .bytes = bytes * elements,
        .align = declaration->align ? declaration->align : bytes,
        .is_extern = declaration->is_extern,
        .entry = parser->entry,
    };
    symbol->offset = place(parser, symbol);
    declare(parser, text, NAME_SYMBOL, module->symbol_count++, line, column);
    parser->initialised = symbol;
    parser->initial_count = 0;
}

void ptx_initial_number(PtxParser *parser, PtxNumber number, int line, int column) {
    PtxSymbol *symbol = parser->initialised;
    int bytes = ptx_type_bytes(symbol->type);
    if (symbol->space != PTX_SPACE_GLOBAL && symbol->space != PTX_SPACE_CONST)
        ptx_fail(parser, line, column, "only global and constant variables have initial values");
    if (parser->initial_count >= symbol->bytes / bytes)
        ptx_fail(parser, line, column, "more initial values than elements of %.120s", symbol->name);
    if (!symbol->initial)
        symbol->initial = ptx_take(parser, (size_t)symbol->bytes);
    uint64_t bits = (uint64_t)number.integer;
    if (number.is_double && symbol->type == PTX_F32) {
        double wide;
        memcpy(&wide, &bits, sizeof wide);
        float narrow = (float)wide;
        memcpy(&bits, &narrow, sizeof narrow);
    }
    memcpy((uint8_t *)symbol->initial + parser->initial_count++ * bytes, &bits,
           (size_t)(bytes < 8 ? bytes : 8));
}

// ---------------------------------------------------------------- entries

PtxEntry *ptx_entry_now(PtxParser *parser) {
    return &parser->module->entries[parser->entry];
}

void ptx_entry_begin(PtxParser *parser, const char *text, int line, int column) {
    PtxModule *module = parser->module;
    if (ptx_find_entry(module, text) >= 0)
        ptx_fail(parser, line, column, "entry %.120s is declared twice", text);
    module->entries =
        ptx_grow(parser, module->entries, module->entry_count, &parser->entry_capacity, sizeof(PtxEntry));
    parser->entry = module->entry_count++;
    parser->register_capacity = parser->instruction_capacity = 0;
    *ptx_entry_now(parser) = (PtxEntry){.name = text, .line = line};
    ptx_scope_begin(parser);
}

void ptx_entry_end(PtxParser *parser) {
    ptx_scope_end(parser);
    parser->entry = -1;
}

void ptx_entry_limit(PtxParser *parser, const char *directive, const int64_t *values, int count, int line,
                     int column) {
    PtxEntry *entry = ptx_entry_now(parser);
    int three[3] = {1, 1, 1};
    for (int i = 0; i < count; i++) {
        if (values[i] < 0 || values[i] > 1 << 20)
            ptx_fail(parser, line, column, "%s is out of range", directive);
        three[i] = (int)values[i];
    }
    const struct {
        const char *directive;
        int *into, count;
    } LIMITS[] = {
        {".reqntid", entry->required_threads, 3},  {".maxntid", entry->max_threads, 3},
        {".reqnctapercluster", entry->cluster, 3}, {".minnctapersm", &entry->min_ctas, 1},
        {".maxnreg", &entry->max_registers, 1},
    };
    for (size_t i = 0; i < sizeof LIMITS / sizeof LIMITS[0]; i++)
        if (!strcmp(LIMITS[i].directive, directive))
            memcpy(LIMITS[i].into, three, sizeof(int) * (size_t)LIMITS[i].count);
}

void ptx_registers(PtxParser *parser, PtxType type) {
    parser->register_type = type;
}

static void add_register(PtxParser *parser, const char *text, int line, int column) {
    PtxEntry *entry = ptx_entry_now(parser);
    if (entry->register_count >= MAX_REGISTERS)
        ptx_fail(parser, line, column, "more than %d registers", MAX_REGISTERS);
    entry->registers = ptx_grow(parser, entry->registers, entry->register_count, &parser->register_capacity,
                                sizeof(PtxRegister));
    const char *shown = text;
    if (parser->scope->outer && parser->scope->outer->outer) { // an inner { } of the entry
        char name[160];
        int length = snprintf(name, sizeof name, "s%d.%.140s", parser->scope->number, text);
        shown = ptx_copy(parser, name, (size_t)length);
    }
    entry->registers[entry->register_count] = (PtxRegister){shown, parser->register_type};
    declare(parser, text, NAME_REGISTER, entry->register_count++, line, column);
}

void ptx_register(PtxParser *parser, const char *text, int64_t count, int line, int column) {
    if (count < 0) {
        add_register(parser, text, line, column);
        return;
    }
    if (count > MAX_REGISTERS)
        ptx_fail(parser, line, column, "more than %d registers", MAX_REGISTERS);
    for (int64_t i = 0; i < count; i++) {
        char name[160];
        int length = snprintf(name, sizeof name, "%.140s%d", text, (int)i);
        add_register(parser, ptx_copy(parser, name, (size_t)length), line, column);
    }
}

void ptx_label(PtxParser *parser, const char *text, int line, int column) {
    declare(parser, text, NAME_LABEL, ptx_entry_now(parser)->instruction_count, line, column);
}

void ptx_target_table(PtxParser *parser, const char *text, const PtxList *labels, int line, int column) {
    declare(parser, text, NAME_TABLE, 0, line, column)->table = ptx_group(parser, PTX_VECTOR, labels);
}

// ---------------------------------------------------------------- the module

int ptx_find_entry(const PtxModule *module, const char *name) {
    for (int i = 0; i < module->entry_count; i++)
        if (!strcmp(module->entries[i].name, name))
            return i;
    return -1;
}

int ptx_find_symbol(const PtxModule *module, const char *name, int entry) {
    int found = -1;
    for (int i = 0; i < module->symbol_count; i++)
        if (!strcmp(module->symbols[i].name, name)) {
            if (module->symbols[i].entry == entry && entry >= 0)
                return i;
            if (module->symbols[i].entry < 0)
                found = i;
        }
    return found;
}

static void parse_all(PtxParser *parser, const char *text, size_t length) {
    yyscan_t scanner = NULL;
    if (length > 1u << 30)
        ptx_fail(parser, 0, 0, "the text is longer than a gigabyte");
    if (ptx_yylex_init_extra(parser, &scanner))
        ptx_fail(parser, 0, 0, "out of memory");
    // The longjmp of a failure passes here to free the scanner, then goes on outwards.
    jmp_buf outer;
    memcpy(&outer, &parser->failed, sizeof outer);
    if (setjmp(parser->failed)) {
        ptx_yylex_destroy(scanner);
        longjmp(outer, 1);
    }
    ptx_yy_scan_bytes(text, (int)length, scanner);
    ptx_yyset_lineno(1, scanner);
    parser->no_operands = ptx_take(parser, sizeof(PtxOperand) * BLANK_OPERANDS);
    for (int i = 0; i < BLANK_OPERANDS; i++)
        parser->no_operands[i] = ptx_blank(PTX_NAME);
    ptx_scope_begin(parser);
    ptx_yyparse(parser, scanner);
    ptx_scope_end(parser);
    memcpy(&parser->failed, &outer, sizeof outer);
    ptx_yylex_destroy(scanner);
    if (!parser->has_target)
        ptx_fail(parser, 1, 1, "the module has no .target");
}

PtxModule *ptx_parse(const char *text, size_t length, PtxError *error) {
    PtxParser *parser = calloc(1, sizeof *parser);
    Owned *owned = calloc(1, sizeof *owned);
    *error = (PtxError){0};
    if (!parser || !owned) {
        free(parser);
        free(owned);
        snprintf(error->message, sizeof error->message, "out of memory");
        return NULL;
    }
    parser->owned = owned;
    parser->module = &owned->module;
    parser->error = error;
    parser->entry = -1;
    PtxParser *before = ptx_current;
    ptx_current = parser;
    PtxModule *result = &owned->module;
    if (setjmp(parser->failed)) {
        ptx_free(&parser->owned->module);
        result = NULL;
    } else {
        parse_all(parser, text, length);
    }
    ptx_current = before;
    free(parser);
    return result;
}
