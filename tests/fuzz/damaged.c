// Damaged programs: the examples with their templates, some of whose words were left out, doubled, exchanged,
// or are other numbers, or words of other places. Each must be checked in time and without a fault of memory,
// and is either right or told with a place. usage: damaged COUNT [SEED [LOWERED]]; one in LOWERED of those
// that are right is lowered to PTX, 0 for none. A program that breaks something is left as damaged-SEED.jfa.
#include "compiler/jfac.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TOKENS = 16384, MOST_BYTES = 1 << 17, SECONDS = 20 };

typedef struct {
    const char *name;
    const char *parts[4]; // files of the tree, whose `use` lines go
    const char *target;
} Original;

static const Original ORIGINALS[] = {
    {"attention_sm100",
     {"examples/dense.jfa", "templates/attention.jfa", "templates/attention_sm100.jfa"},
     "sm_100a"},
    {"attention_sm90",
     {"examples/dense.jfa", "templates/attention.jfa", "templates/attention_sm90.jfa"},
     "sm_90a"},
    {"window",
     {"examples/sliding_window.jfa", "templates/attention.jfa", "templates/attention_sm100.jfa"},
     "sm_100a"},
    {"matmul_sm100", {"examples/matmul.jfa"}, "sm_100a"},
    {"matmul_sm90", {"examples/matmul.jfa"}, "sm_90a"},
    {"optional_tile", {"tests/corners/optional_tile.jfa"}, "sm_100a"},
};
enum { ORIGINAL_COUNT = sizeof ORIGINALS / sizeof ORIGINALS[0] };

typedef struct {
    int at, length;
} Token;

typedef struct {
    char *text;
    Token tokens[MOST_TOKENS];
    int count;
} Program;

static void fail(const char *what) {
    fprintf(stderr, "damaged: %s\n", what);
    exit(1);
}

static void add_part(Program *program, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", REPOSITORY, name);
    FILE *in = fopen(path, "r");
    if (!in)
        fail(path);
    char line[4096];
    size_t used = strlen(program->text);
    while (fgets(line, sizeof line, in))
        if (strncmp(line, "use ", 4))
            used += (size_t)snprintf(program->text + used, MOST_BYTES - used, "%s", line);
    fclose(in);
    if (used >= MOST_BYTES)
        fail("an original is too long");
}

static bool is_part(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

// Words, numbers, and single other characters; comments are none.
static void find_tokens(Program *program) {
    const char *text = program->text;
    for (int i = 0; text[i];) {
        int start = i;
        if (text[i] == '/' && text[i + 1] == '/') {
            i += (int)strcspn(text + i, "\n");
            continue;
        }
        if (isspace((unsigned char)text[i])) {
            i++;
            continue;
        }
        for (i++; is_part(text[start]) && is_part(text[i]);)
            i++;
        if (program->count == MOST_TOKENS)
            fail("an original has too many words");
        program->tokens[program->count++] = (Token){start, i - start};
    }
}

static uint64_t random_state;

static int random_below(int limit) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)limit);
}

static void put(char **to, const char *text, int length) {
    memcpy(*to, text, (size_t)length);
    *to += length;
}

static const char *other_number(void) {
    static const char *const NUMBERS[] = {"0",    "1",          "2",          "3",     "7",   "8",   "16",
                                          "63",   "64",         "96",         "99",    "100", "127", "129",
                                          "256",  "1024",       "4096",       "65536", "-1",  "0.5", "1e9",
                                          "1e38", "2147483647", "2147483648", "inf"};
    return NUMBERS[random_below(sizeof NUMBERS / sizeof NUMBERS[0])];
}

// The text with one to three tokens damaged; `out` has room for three more of them.
static void damage(const Program *program, char *out) {
    enum { LEAVE_OUT, TWICE, EXCHANGE, ANOTHER, NUMBER, KINDS, MOST_CHANGES = 3 };
    int changes = 1 + random_below(MOST_CHANGES), at[MOST_CHANGES], kind[MOST_CHANGES];
    for (int i = 0; i < changes; i++) {
        at[i] = random_below(program->count - 1);
        kind[i] = random_below(KINDS);
        for (int tries = 0; kind[i] == NUMBER && tries < 2000; tries++)
            if (!isdigit((unsigned char)program->text[program->tokens[at[i]].at]))
                at[i] = random_below(program->count - 1);
    }
    char *to = out;
    int done = 0;
    for (int t = 0; t < program->count; t++) {
        const Token *token = &program->tokens[t], *next = token + 1;
        put(&to, program->text + done, token->at - done);
        done = token->at + token->length;
        int change = 0;
        while (change < changes && at[change] != t)
            change++;
        if (change == changes) {
            put(&to, program->text + token->at, token->length);
            continue;
        }
        if (kind[change] == LEAVE_OUT)
            continue;
        const Token *from = kind[change] == EXCHANGE  ? next
                            : kind[change] == ANOTHER ? &program->tokens[random_below(program->count)]
                                                      : token;
        const char *number = other_number();
        if (kind[change] == NUMBER)
            put(&to, number, (int)strlen(number));
        else
            put(&to, program->text + from->at, from->length);
        if (kind[change] == TWICE || kind[change] == EXCHANGE) {
            put(&to, " ", 1);
            put(&to, program->text + token->at, token->length);
        }
        if (kind[change] == EXCHANGE) {
            done = next->at + next->length;
            t++;
        }
    }
    strcpy(to, program->text + done);
}

static void print_all(const Diag *diag) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return;
    diag_print_text(diag, out);
    diag_print_json(diag, out);
    fclose(out);
    free(text);
}

// 1: right; 0: refused.
static int check(const char *path, const Original *original, int lowered) {
    Jfac *jfac = jfac_new();
    if (!jfac)
        fail("out of memory");
    const JfacOptions options = {.path = path, .target = original->target};
    bool good = jfac_check(jfac, &options);
    const Diag *diag = jfac_diag(jfac);
    if (good != !diag->error_count)
        fail("it is neither right nor told to be wrong");
    print_all(diag);
    const char *message = NULL;
    if (good && lowered && !random_below(lowered) && !jfac_lower(jfac, &options, &message))
        fprintf(stderr, "damaged: %s can't be lowered: %s\n", path, message ? message : "no reason");
    jfac_free(jfac);
    return good;
}

int main(int argc, char **argv) {
    static Program programs[ORIGINAL_COUNT];
    static char text[2 * MOST_BYTES];
    if (argc < 2)
        fail("usage: damaged COUNT [SEED [LOWERED]]");
    int count = atoi(argv[1]), lowered = argc > 3 ? atoi(argv[3]) : 0, right = 0;
    for (int i = 0; i < ORIGINAL_COUNT; i++) {
        programs[i].text = calloc(1, MOST_BYTES);
        if (!programs[i].text)
            fail("out of memory");
        for (int k = 0; k < 4 && ORIGINALS[i].parts[k]; k++)
            add_part(&programs[i], ORIGINALS[i].parts[k]);
        find_tokens(&programs[i]);
    }
    long first = argc > 2 ? atol(argv[2]) : 1;
    for (long seed = first; seed < first + count; seed++) {
        int which = (int)(seed % ORIGINAL_COUNT);
        char path[64];
        random_state = (uint64_t)seed * 0x9E3779B97F4A7C15u;
        if (seed < first + ORIGINAL_COUNT)
            strcpy(text,
                   programs[which].text); // as it is: that it is right says that the rest means something
        else
            damage(&programs[which], text);
        snprintf(path, sizeof path, "damaged-%ld.jfa", seed);
        FILE *out = fopen(path, "w");
        if (!out || fputs(text, out) == EOF || fclose(out))
            fail("can't write");
        alarm(SECONDS); // ends a run that hangs; the file stays
        int good = check(path, &ORIGINALS[which], lowered);
        alarm(0);
        remove(path);
        if (!good && seed < first + ORIGINAL_COUNT)
            fail(ORIGINALS[which].name);
        right += good;
    }
    for (int i = 0; i < ORIGINAL_COUNT; i++)
        free(programs[i].text);
    printf("%d programs, %d of them right\n", count, right);
    return 0;
}
