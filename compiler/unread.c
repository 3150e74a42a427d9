#include "compiler/unread.h"

#include <ctype.h>
#include <string.h>

static bool is_part(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static const char *skip_space(const char *at, const char *end) {
    while (at < end) {
        if (isspace((unsigned char)*at)) {
            at++;
        } else if (at + 1 < end && at[0] == '/' && at[1] == '/') {
            while (at < end && *at != '\n')
                at++;
        } else {
            break;
        }
    }
    return at;
}

static bool is_word(const char *word, int length, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if ((int)strlen(words[i]) == length && !strncmp(word, words[i], (size_t)length))
            return true;
    return false;
}

// Words that stand before a name that is used. A name behind any other word may be declared by it, however it
// is misspelt.
static bool uses_next(const char *word, int length) {
    static const char *const WORDS[] = {"put", "free", "update", "store", "if",
                                        "in",  "over", "of",     "where", "divides"};
    return is_word(word, length, WORDS, sizeof WORDS / sizeof WORDS[0]);
}

static bool assigns_next(const char *word, int length) {
    static const char *const WORDS[] = {"put", "update"};
    return is_word(word, length, WORDS, sizeof WORDS / sizeof WORDS[0]);
}

// "a, b) =>": the rest of a list of parameters.
static bool is_parameter(const char *at, const char *end) {
    while (at < end && (is_part(*at) || *at == ',' || isspace((unsigned char)*at)))
        at++;
    if (at >= end || *at != ')')
        return false;
    at = skip_space(at + 1, end);
    return at + 1 < end && at[0] == '=' && at[1] == '>';
}

static bool text_may_declare(const Source *source, const char *name, int length) {
    const char *at = source->text, *end = source->text + source->length, *before = NULL;
    int before_length = 0; // of the word before; 0: something else stood there
    while ((at = skip_space(at, end)) < end) {
        if (!is_part(*at)) {
            before_length = 0;
            at++;
            continue;
        }
        const char *word = at;
        while (at < end && is_part(*at))
            at++;
        if (at - word == length && !memcmp(word, name, (size_t)length)) {
            const char *next = skip_space(at, end);
            bool is_set =
                next < end && (*next == ':' || (*next == '=' && (next + 1 == end || next[1] != '=')));
            bool is_bound = next + 2 < end && !strncmp(next, "in", 2) && !is_part(next[2]);
            if ((before_length && !uses_next(before, before_length)) || is_bound || is_parameter(at, end) ||
                (is_set && !(before_length && assigns_next(before, before_length))))
                return true;
        }
        before = word;
        before_length = (int)(at - word);
    }
    return false;
}

bool unread_may_declare(const SourceSet *sources, Span use) {
    if (use.file < 0 || use.end <= use.start)
        return true;
    const char *name = sources->files[use.file].text + use.start;
    for (int i = 0; i < use.end - use.start; i++)
        if (!is_part(name[i]))
            return true; // no name
    for (int i = 0; i < sources->count; i++)
        if (text_may_declare(&sources->files[i], name, use.end - use.start))
            return true;
    return false;
}
