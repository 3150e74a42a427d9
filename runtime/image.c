// image.c: finds the manifest, the global byte array `jfa_manifest`, in an image. The image may be anything:
// every offset and count is checked before it is used.
#include "runtime/internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(err, ...) jfa_error_set(err, JFA_ERROR_IMAGE, __VA_ARGS__)

static const char SYMBOL[] = "jfa_manifest";
enum { SYMBOL_LENGTH = sizeof SYMBOL - 1 };

// ---------------------------------------------------------------- PTX

typedef struct {
    const char *at, *end;
} Cursor;

static bool is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

// Past blanks and comments (PTX ISA, "Comments").
static void skip_blanks(Cursor *c) {
    while (c->at < c->end) {
        size_t left = (size_t)(c->end - c->at);
        if (strchr(" \t\r\n", *c->at) && *c->at) {
            c->at++;
        } else if (left > 1 && c->at[0] == '/' && c->at[1] == '/') {
            const char *newline = memchr(c->at, '\n', left);
            c->at = newline ? newline : c->end;
        } else if (left > 1 && c->at[0] == '/' && c->at[1] == '*') {
            for (c->at += 2; c->end - c->at > 1 && (c->at[0] != '*' || c->at[1] != '/');)
                c->at++;
            c->at = c->end - c->at > 1 ? c->at + 2 : c->end;
        } else {
            return;
        }
    }
}

static bool take(Cursor *c, char wanted) {
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

// A decimal or hexadecimal integer below 2^31, with U behind it or not (PTX ISA, "Integer Constants").
static bool take_number(Cursor *c, int64_t *value) {
    skip_blanks(c);
    size_t left = (size_t)(c->end - c->at);
    int base = left > 2 && c->at[0] == '0' && (c->at[1] | 32) == 'x' ? 16 : 10;
    const char *start = c->at += base == 16 ? 2 : 0;
    for (*value = 0; c->at < c->end; c->at++) {
        char letter = (char)(*c->at | 32);
        int digit = *c->at >= '0' && *c->at <= '9'                 ? *c->at - '0'
                    : base == 16 && letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
                                                                   : -1;
        if (digit < 0)
            break;
        *value = *value * base + digit;
        if (*value > INT32_MAX)
            return false;
    }
    if (c->at == start)
        return false;
    if (c->at < c->end && *c->at == 'U')
        c->at++;
    return true;
}

// "[N] = { 1, 2, ... }" behind the symbol. Elements left out at the end are zero, and zeros at the end are no
// text.
static bool take_bytes(Cursor *c, char *bytes, size_t capacity, size_t *length) {
    int64_t declared, value;
    *length = 0;
    if (!take(c, '[') || !take_number(c, &declared) || !take(c, ']') || !take(c, '=') || !take(c, '{'))
        return false;
    do {
        if (*length >= (size_t)declared || *length >= capacity || !take_number(c, &value) || value > 255)
            return false;
        bytes[(*length)++] = (char)value;
    } while (take(c, ','));
    return take(c, '}');
}

// Positions the cursor behind the symbol's declaration; a use of the symbol isn't followed by its extent.
static bool find_declaration(Cursor *c) {
    while (skip_blanks(c), c->at < c->end) {
        const char *start = c->at;
        while (c->at < c->end && is_name_character(*c->at))
            c->at++;
        if (c->at - start == SYMBOL_LENGTH && memcmp(start, SYMBOL, SYMBOL_LENGTH) == 0) {
            Cursor ahead = *c;
            if (take(&ahead, '['))
                return true;
        }
        if (c->at == start)
            c->at++;
    }
    return false;
}

static jfa_status read_ptx(const char *text, size_t bytes, char **manifest, size_t *length, jfa_error *err) {
    Cursor cursor = {text, text + bytes};
    if (!find_declaration(&cursor))
        return FAIL(err, "the PTX text has no array '%s': it was not built by jfac", SYMBOL);
    size_t capacity = (size_t)(cursor.end - cursor.at);
    *manifest = malloc(capacity + 1);
    if (!*manifest)
        return jfa_error_set(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for a manifest of up to %zu bytes",
                             capacity);
    if (take_bytes(&cursor, *manifest, capacity, length))
        return JFA_OK;
    return FAIL(err, "the array '%s' of the PTX text is damaged", SYMBOL);
}

// ---------------------------------------------------------------- cubin (ELF64, little-endian)

typedef struct {
    const unsigned char *data;
    size_t bytes;
    Elf64_Ehdr header;
} Elf;

static bool inside(const Elf *elf, uint64_t offset, uint64_t bytes) {
    return offset <= elf->bytes && bytes <= elf->bytes - offset;
}

static bool read_header(Elf *elf) {
    if (!inside(elf, 0, sizeof elf->header))
        return false;
    memcpy(&elf->header, elf->data, sizeof elf->header);
    const Elf64_Ehdr *h = &elf->header;
    return h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ident[EI_DATA] == ELFDATA2LSB &&
           h->e_shentsize == sizeof(Elf64_Shdr) &&
           inside(elf, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr));
}

static bool read_section(const Elf *elf, uint64_t index, Elf64_Shdr *section) {
    if (index >= elf->header.e_shnum)
        return false;
    memcpy(section, elf->data + elf->header.e_shoff + index * sizeof *section, sizeof *section);
    return section->sh_type == SHT_NOBITS || inside(elf, section->sh_offset, section->sh_size);
}

static bool is_manifest(const Elf *elf, const Elf64_Shdr *names, const Elf64_Sym *symbol) {
    return symbol->st_name <= names->sh_size && names->sh_size - symbol->st_name > SYMBOL_LENGTH &&
           memcmp(elf->data + names->sh_offset + symbol->st_name, SYMBOL, sizeof SYMBOL) == 0;
}

// The bytes of the symbol, whose value counts from the start of its section. NULL: no such bytes in the file.
static const unsigned char *symbol_bytes(const Elf *elf, const Elf64_Sym *symbol) {
    Elf64_Shdr section;
    if (!read_section(elf, symbol->st_shndx, &section) || section.sh_type == SHT_NOBITS)
        return NULL;
    if (symbol->st_value > section.sh_size || symbol->st_size > section.sh_size - symbol->st_value)
        return NULL;
    return elf->data + section.sh_offset + symbol->st_value;
}

static bool find_symbol(const Elf *elf, Elf64_Sym *symbol) {
    for (uint64_t i = 0; i < elf->header.e_shnum; i++) {
        Elf64_Shdr table, names;
        if (!read_section(elf, i, &table) || table.sh_type != SHT_SYMTAB ||
            !read_section(elf, table.sh_link, &names) || names.sh_type == SHT_NOBITS)
            continue;
        for (uint64_t k = 0; k < table.sh_size / sizeof *symbol; k++) {
            memcpy(symbol, elf->data + table.sh_offset + k * sizeof *symbol, sizeof *symbol);
            if (is_manifest(elf, &names, symbol))
                return true;
        }
    }
    return false;
}

static jfa_status read_cubin(const void *image, size_t bytes, char **manifest, size_t *length,
                             jfa_error *err) {
    Elf elf = {.data = image, .bytes = bytes};
    Elf64_Sym symbol;
    if (!read_header(&elf))
        return FAIL(err, "the cubin is damaged: its header or section table reaches past its %zu bytes",
                    bytes);
    if (!find_symbol(&elf, &symbol))
        return FAIL(err, "the cubin has no symbol '%s': it was not built by jfac, or was stripped", SYMBOL);
    const unsigned char *data = symbol_bytes(&elf, &symbol);
    if (!data)
        return FAIL(err, "the cubin is damaged: the bytes of '%s' are not in it", SYMBOL);
    *length = symbol.st_size;
    *manifest = malloc(*length + 1);
    if (!*manifest)
        return jfa_error_set(err, JFA_ERROR_OUT_OF_MEMORY, "no host memory for a manifest of %zu bytes",
                             *length);
    memcpy(*manifest, data, *length);
    return JFA_OK;
}

// ---------------------------------------------------------------- both

jfa_status jfa_image_manifest(const void *image, size_t bytes, char **text, size_t *length, bool *is_text,
                              jfa_error *err) {
    *text = NULL;
    *length = 0;
    *is_text = bytes < SELFMAG || memcmp(image, ELFMAG, SELFMAG) != 0;
    jfa_status status;
    if (!*is_text)
        status = read_cubin(image, bytes, text, length, err);
    else if (memchr(image, 0, bytes))
        status = FAIL(err, "the image is neither a cubin nor PTX text");
    else
        status = read_ptx(image, bytes, text, length, err);
    while (!status && *length && !(*text)[*length - 1])
        --*length;
    if (!status && !*length)
        status = FAIL(err, "the array '%s' of the image is empty", SYMBOL);
    if (status) {
        free(*text);
        *text = NULL;
    }
    return status;
}
