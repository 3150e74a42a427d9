// test_image.c: finding the manifest in PTX text and in cubins, damaged ones included.
#include "tests/runtime/fixture.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    jfa_status status;
    char *text;
    size_t length;
    bool is_text;
    jfa_error err;
} Found;

// The image is copied into an allocation of its size, for the sanitizer to guard.
static Found find(const void *image, size_t bytes) {
    Found found = {0};
    void *copy = malloc(bytes ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, image, bytes);
    found.status = jfa_image_manifest(copy, bytes, &found.text, &found.length, &found.is_text, &found.err);
    free(copy);
    if (found.status)
        assert_null(found.text);
    return found;
}

static void the_manifest_is_found_in_ptx_text(void **state) {
    (void)state;
    char *ptx = fixture_ptx(SAMPLE_MANIFEST, strlen(SAMPLE_MANIFEST));
    Found found = find(ptx, strlen(ptx));
    assert_int_equal(found.status, JFA_OK);
    assert_true(found.is_text);
    assert_int_equal(found.length, strlen(SAMPLE_MANIFEST));
    assert_memory_equal(found.text, SAMPLE_MANIFEST, found.length);
    free(found.text);
    free(ptx);
}

static void ptx_text_is_read_as_ptx_means_it(void **state) {
    (void)state;
    static const struct {
        const char *ptx, *manifest; // NULL: refused
    } CASES[] = {
        {".global .align 1 .b8 jfa_manifest[3] = {106, 102, 97};", "jfa"},
        {".b8 jfa_manifest[3]={0x6a,0X66,97U};", "jfa"},
        {".b8 jfa_manifest [ 3 ] = { 106 , /* } */ 102, // }\n 97 } ;", "jfa"},
        {".b8 jfa_manifest[5] = {106, 102, 97, 0, 0};", "jfa"},
        {".b8 jfa_manifest[9] = {106, 102, 97};", "jfa"},
        {"mov.u64 %rd1, jfa_manifest; .b8 jfa_manifest[1] = {106};", "j"},
        {".b8 my_jfa_manifest[1] = {97}; .b8 jfa_manifest2[1] = {98}; .b8 jfa_manifest[1] = {106};", "j"},
        {"/* .b8 jfa_manifest[1] = {97}; */ .b8 jfa_manifest[1] = {106};", "j"},
        {"", NULL},
        {"ret;", NULL},
        {"// .b8 jfa_manifest[1] = {97};", NULL},
        {"/* .b8 jfa_manifest[1] = {97};", NULL},
        {"/*", NULL},
        {"/", NULL},
        {".b8 jfa_manifest[1];", NULL},
        {".b8 jfa_manifest[1] = {};", NULL},
        {".b8 jfa_manifest[1] = {0};", NULL},
        {".b8 jfa_manifest[1] = {106,};", NULL},
        {".b8 jfa_manifest[1] = {106, 102};", NULL},
        {".b8 jfa_manifest[2] = {106, 256};", NULL},
        {".b8 jfa_manifest[2] = {106, -1};", NULL},
        {".b8 jfa_manifest[2] = {106, x};", NULL},
        {".b8 jfa_manifest[2] = {106 102};", NULL},
        {".b8 jfa_manifest[2] = {106, 102", NULL},
        {".b8 jfa_manifest[99999999999999999999] = {106};", NULL},
        {".b8 jfa_manifest[0x] = {106};", NULL},
        {".b8 jfa_manifest[", NULL},
        {".b8 jfa_manifest", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Found found = find(CASES[i].ptx, strlen(CASES[i].ptx));
        if ((found.status == JFA_OK) != (CASES[i].manifest != NULL))
            fail_msg("'%s': %s", CASES[i].ptx, found.status ? found.err.message : "not refused");
        if (found.status) {
            assert_int_equal(found.status, JFA_ERROR_IMAGE);
        } else {
            assert_int_equal(found.length, strlen(CASES[i].manifest));
            assert_memory_equal(found.text, CASES[i].manifest, found.length);
        }
        free(found.text);
    }
}

// ---------------------------------------------------------------- cubins

enum {
    DATA_AT = 64,
    DATA_BYTES = 24,
    NAMES_AT = 88,
    SYMBOLS_AT = 112,
    SECTIONS_AT = 192,
    CUBIN_BYTES = 192 + 4 * 64
};

// Sections: null, data (behind three other bytes lies the manifest), symbols, names.
static void make_cubin(unsigned char cubin[CUBIN_BYTES]) {
    memset(cubin, 0, CUBIN_BYTES);
    Elf64_Ehdr header = {
        .e_type = ET_EXEC, .e_machine = 190, .e_shoff = SECTIONS_AT, .e_shentsize = 64, .e_shnum = 4};
    memcpy(header.e_ident, ELFMAG "\2\1\1", 7);
    Elf64_Sym symbols[3] = {
        {0},
        {.st_name = 14, .st_shndx = 1, .st_size = 3},
        {.st_name = 1, .st_shndx = 1, .st_value = 3, .st_size = 16},
    };
    Elf64_Shdr sections[4] = {
        {0},
        {.sh_type = SHT_PROGBITS, .sh_offset = DATA_AT, .sh_size = DATA_BYTES},
        {.sh_type = SHT_SYMTAB,
         .sh_offset = SYMBOLS_AT,
         .sh_size = sizeof symbols,
         .sh_link = 3,
         .sh_entsize = 24},
        {.sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = 21},
    };
    memcpy(cubin, &header, sizeof header);
    memcpy(cubin + DATA_AT, "abcjfa-manifest 1\n", 18);
    memcpy(cubin + NAMES_AT, "\0jfa_manifest\0others", 21);
    memcpy(cubin + SYMBOLS_AT, symbols, sizeof symbols);
    memcpy(cubin + SECTIONS_AT, sections, sizeof sections);
}

static void the_manifest_is_found_in_a_cubin(void **state) {
    (void)state;
    unsigned char cubin[CUBIN_BYTES];
    make_cubin(cubin);
    Found found = find(cubin, sizeof cubin);
    if (found.status)
        fail_msg("%s", found.err.message);
    assert_false(found.is_text);
    assert_int_equal(found.length, 15); // its last byte is 0
    assert_memory_equal(found.text, "jfa-manifest 1\n", 15);
    free(found.text);
}

static void a_cubin_whose_offsets_lead_outside_is_refused(void **state) {
    (void)state;
    static const struct {
        size_t place, bytes;
        uint64_t value;
    } CASES[] = {
        {offsetof(Elf64_Ehdr, e_ident) + EI_CLASS, 1, ELFCLASS32},
        {offsetof(Elf64_Ehdr, e_ident) + EI_DATA, 1, ELFDATA2MSB},
        {offsetof(Elf64_Ehdr, e_shoff), 8, UINT64_MAX - 8},
        {offsetof(Elf64_Ehdr, e_shoff), 8, SECTIONS_AT + 1},
        {offsetof(Elf64_Ehdr, e_shnum), 2, 5},
        {offsetof(Elf64_Ehdr, e_shnum), 2, 0},
        {offsetof(Elf64_Ehdr, e_shentsize), 2, 40},
        {SYMBOLS_AT + 48 + offsetof(Elf64_Sym, st_name), 4, 0xffffffff},
        {SYMBOLS_AT + 48 + offsetof(Elf64_Sym, st_name), 4, 21},
        {SYMBOLS_AT + 48 + offsetof(Elf64_Sym, st_name), 4, 14},
        {SYMBOLS_AT + 48 + offsetof(Elf64_Sym, st_shndx), 2, 4},
        {SYMBOLS_AT + 48 + offsetof(Elf64_Sym, st_shndx), 2, SHN_ABS},
        {SYMBOLS_AT + 48 + offsetof(Elf64_Sym, st_shndx), 2, 0},
        {SYMBOLS_AT + 48 + offsetof(Elf64_Sym, st_value), 8, UINT64_MAX},
        {SYMBOLS_AT + 48 + offsetof(Elf64_Sym, st_value), 8, DATA_BYTES + 1},
        {SYMBOLS_AT + 48 + offsetof(Elf64_Sym, st_size), 8, DATA_BYTES},
        {SYMBOLS_AT + 48 + offsetof(Elf64_Sym, st_size), 8, UINT64_MAX},
        {SYMBOLS_AT + 48 + offsetof(Elf64_Sym, st_size), 8, 0},
        {SECTIONS_AT + 64 + offsetof(Elf64_Shdr, sh_type), 4, SHT_NOBITS},
        {SECTIONS_AT + 64 + offsetof(Elf64_Shdr, sh_offset), 8, CUBIN_BYTES - 8},
        {SECTIONS_AT + 64 + offsetof(Elf64_Shdr, sh_size), 8, UINT64_MAX},
        {SECTIONS_AT + 128 + offsetof(Elf64_Shdr, sh_size), 8, CUBIN_BYTES},
        {SECTIONS_AT + 128 + offsetof(Elf64_Shdr, sh_size), 8, 47},
        {SECTIONS_AT + 128 + offsetof(Elf64_Shdr, sh_link), 4, 9},
        {SECTIONS_AT + 192 + offsetof(Elf64_Shdr, sh_type), 4, SHT_NOBITS},
        {SECTIONS_AT + 192 + offsetof(Elf64_Shdr, sh_offset), 8, UINT64_MAX},
        {SECTIONS_AT + 192 + offsetof(Elf64_Shdr, sh_size), 8, 13},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        unsigned char cubin[CUBIN_BYTES];
        make_cubin(cubin);
        memcpy(cubin + CASES[i].place, &CASES[i].value, CASES[i].bytes);
        Found found = find(cubin, sizeof cubin);
        if (found.status != JFA_ERROR_IMAGE || !found.err.message[0])
            fail_msg("case %zu is not refused", i);
    }
}

static void a_cubin_cut_anywhere_is_refused(void **state) {
    (void)state;
    unsigned char cubin[CUBIN_BYTES];
    make_cubin(cubin);
    for (size_t bytes = 0; bytes < sizeof cubin; bytes++)
        assert_int_equal(find(cubin, bytes).status, JFA_ERROR_IMAGE);
}

static void damaged_images_never_crash(void **state) {
    (void)state;
    uint32_t number = 1;
    char *ptx = fixture_ptx(SAMPLE_MANIFEST, 40);
    for (int round = 0; round < 40000; round++) {
        unsigned char image[CUBIN_BYTES];
        size_t bytes = sizeof image;
        make_cubin(image);
        if (round % 2) {
            bytes = strlen(ptx) < bytes ? strlen(ptx) : bytes;
            memcpy(image, ptx, bytes);
        }
        for (int k = 0; k < 3; k++) {
            number = number * 1664525u + 1013904223u;
            image[(number >> 8) % bytes] = (unsigned char)(number >> 24);
        }
        free(find(image, bytes).text);
    }
    free(ptx);
}

// What ptxas makes of the array, where there is a ptxas.
static void the_manifest_is_found_in_what_ptxas_builds(void **state) {
    (void)state;
    char folder[] = "/tmp/jfa_image_XXXXXX", command[512], path[64];
    assert_non_null(mkdtemp(folder));
    char *ptx = fixture_ptx(SAMPLE_MANIFEST, strlen(SAMPLE_MANIFEST));
    snprintf(path, sizeof path, "%s/k.ptx", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(ptx, file);
    fclose(file);
    free(ptx);
    snprintf(command, sizeof command,
             "PATH=$PATH:/usr/local/cuda/bin; cd %s && ptxas -arch=sm_100a -o k.cubin k.ptx >/dev/null 2>&1",
             folder);
    bool built = system(command) == 0;
    unsigned char cubin[65536];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/k.cubin", folder);
    if (built && (file = fopen(path, "rb"))) {
        bytes = fread(cubin, 1, sizeof cubin, file);
        fclose(file);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    if (!built)
        skip();
    Found found = find(cubin, bytes);
    if (found.status)
        fail_msg("%s", found.err.message);
    assert_false(found.is_text);
    assert_int_equal(found.length, strlen(SAMPLE_MANIFEST));
    assert_memory_equal(found.text, SAMPLE_MANIFEST, found.length);
    free(found.text);
}

static void what_is_neither_ptx_nor_a_cubin_is_refused(void **state) {
    (void)state;
    Found found = find("\0\1\2\3jfa_manifest[1] = {1}", 20);
    assert_int_equal(found.status, JFA_ERROR_IMAGE);
    assert_non_null(strstr(found.err.message, "neither a cubin nor PTX"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_manifest_is_found_in_ptx_text),
        cmocka_unit_test(ptx_text_is_read_as_ptx_means_it),
        cmocka_unit_test(the_manifest_is_found_in_a_cubin),
        cmocka_unit_test(a_cubin_whose_offsets_lead_outside_is_refused),
        cmocka_unit_test(a_cubin_cut_anywhere_is_refused),
        cmocka_unit_test(damaged_images_never_crash),
        cmocka_unit_test(the_manifest_is_found_in_what_ptxas_builds),
        cmocka_unit_test(what_is_neither_ptx_nor_a_cubin_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
