// syntax.c: what is said when a token can't stand where it stands, from the author's point of view: what is
// missing and where, which bracket is still open, which word was probably meant.
#include "grammar/parser.h"

#include <string.h>

static const Source *source_of(const ParserState *state) {
    return &state->diag->sources->files[state->file];
}

static const char *text_of(const ParserState *state, Span span) {
    enum { LONGEST = 40 };
    int length = span.end - span.start;
    return arena_copy(state->arena, source_of(state)->text + span.start,
                      (size_t)(length > LONGEST ? LONGEST : length));
}

static char byte_at(const ParserState *state, Span span) {
    return span.end > span.start ? source_of(state)->text[span.start] : 0;
}

static int line_of(const ParserState *state, int offset) {
    return source_place(state->diag->sources, state->file, offset).line;
}

static bool has_given_up(ParserState *state) {
    state->gave_up = state->gave_up || state->diag->error_count - state->errors_before >= MOST_SYNTAX_ERRORS;
    return state->gave_up;
}

void parser_bad_token(ParserState *state, Span span, const char *message) {
    if (!has_given_up(state))
        diag_error(state->diag, span, "syntax", "%s", message);
}

void parser_bad_bytes(ParserState *state, Span span) {
    unsigned char byte = (unsigned char)byte_at(state, span);
    if (has_given_up(state))
        return;
    if (span.start == 0 && !strncmp(source_of(state)->text, "\xef\xbb\xbf", 3))
        diag_help(diag_error(state->diag, span, "syntax", "the file begins with a byte order mark"),
                  "save it as UTF-8 without one");
    else if (byte >= 128)
        diag_error(state->diag, span, "syntax", "only ASCII is part of the language, except in comments");
    else if (byte >= 32 && byte < 127)
        diag_error(state->diag, span, "syntax", "'%c' is not part of the language", byte);
    else
        diag_error(state->diag, span, "syntax", "byte 0x%02x is not part of the language", byte);
}

void parser_too_deep(ParserState *state, Span span) {
    if (!has_given_up(state))
        diag_error(state->diag, span, "syntax", "this is nested too deeply");
}

// ---------------------------------------------------------------- following the tokens

static void open_bracket(ParserState *state, Span span) {
    if (state->open_count == state->open_capacity) {
        int capacity = state->open_capacity ? 2 * state->open_capacity : 64;
        Span *larger = arena_array(state->arena, Span, capacity);
        if (state->open_count)
            memcpy(larger, state->open, sizeof *larger * (size_t)state->open_count);
        state->open = larger;
        state->open_capacity = capacity;
    }
    state->open[state->open_count++] = span;
}

// A '}' or ';' also ends the round and square brackets that were forgotten inside of it.
static void close_bracket(ParserState *state, char closing) {
    char opening = closing == ')' ? '(' : closing == ']' ? '[' : '{';
    bool is_strong = closing == '}' || closing == ';';
    while (is_strong && state->open_count && byte_at(state, state->open[state->open_count - 1]) != '{')
        state->open_count--;
    if (closing != ';' && state->open_count && byte_at(state, state->open[state->open_count - 1]) == opening)
        state->open_count--;
}

static bool starts_top(const ParserState *state, Span span) {
    static const char *const WORDS[] = {"use", "family", "schedule", "kernel"};
    const char *text = text_of(state, span);
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        if (state->open_count == 0 && !strcmp(text, WORDS[i]))
            return true;
    return false;
}

void parser_saw_token(ParserState *state, Span span, bool is_name) {
    char byte = byte_at(state, span);
    bool is_single = span.end - span.start == 1;
    char last = byte_at(state, state->token);
    // Only now, so that a message about a closing bracket still knows what it was to close.
    if (state->token.end - state->token.start == 1 && last && strchr("})];", last))
        close_bracket(state, last);
    state->previous = state->token;
    state->token = span;
    if (state->starts_construct) {
        state->construct = span;
        state->construct_is_name = is_name;
        state->construct_level = state->open_count;
    }
    state->starts_construct = is_single && strchr("{};", byte) && byte;
    if (state->told_at_top)
        state->told_at_top = !starts_top(state, span);
    if (is_single && (byte == '{' || byte == '(' || byte == '['))
        open_bracket(state, span);
}

// ---------------------------------------------------------------- messages

typedef struct {
    const char *found; // as the grammar names it; NULL: the end of the file
    const char *const *expected;
    int count;
} Mismatch;

static bool expects(const Mismatch *mismatch, const char *token) {
    for (int i = 0; i < mismatch->count; i++)
        if (!strcmp(mismatch->expected[i], token))
            return true;
    return false;
}

static bool is_found(const Mismatch *mismatch, const char *token) {
    return mismatch->found && !strcmp(mismatch->found, token);
}

// Words that are names too, where a name can stand.
static bool is_soft_word(const char *token) {
    static const char *const WORDS[] = {"out", "inout", "place", "store", "tune"};
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        if (!strcmp(WORDS[i], token))
            return true;
    return false;
}

static bool is_word(const char *token) {
    return token && token[0] >= 'a' && token[0] <= 'z' && !strchr(token, ' ');
}

// ", expected a, b or c", or nothing when that would be a long list.
static const char *expected_text(const ParserState *state, const Mismatch *mismatch) {
    enum { SHOWN = 5 };
    const char *shown[PARSER_MOST_EXPECTED], *text = "";
    bool takes_names = expects(mismatch, "a name");
    int count = 0;
    for (int i = 0; i < mismatch->count; i++)
        if ((!takes_names || !is_soft_word(mismatch->expected[i])) &&
            strcmp(mismatch->expected[i], "end of file"))
            shown[count++] = mismatch->expected[i];
    for (int i = 0; i < count && count <= SHOWN; i++) {
        const char *quote = shown[i][0] == '\'' || strchr(shown[i], ' ') ? "" : "'";
        const char *before = i == 0 ? ", expected " : i == count - 1 ? " or " : ", ";
        text = arena_format(state->arena, "%s%s%s%s%s", text, before, quote, shown[i], quote);
    }
    return text;
}

static bool is_top_word(const Mismatch *mismatch) {
    return is_found(mismatch, "family") || is_found(mismatch, "schedule") || is_found(mismatch, "kernel") ||
           is_found(mismatch, "use");
}

// The bracket that was still open when the token came, if leaving it open is the likely mistake.
static void note_open_bracket(ParserState *state, const Mismatch *mismatch, DiagItem *item) {
    char byte = mismatch->found ? byte_at(state, state->token) : 0;
    int i = state->open_count - 1;
    // The token itself may have opened one.
    if (i >= 0 && mismatch->found && state->open[i].start == state->token.start)
        i--;
    if (i < 0)
        return;
    bool is_brace = byte_at(state, state->open[i]) == '{';
    bool is_outer_word = is_found(mismatch, "role") || is_top_word(mismatch);
    bool wants_end = expects(mismatch, byte_at(state, state->open[i]) == '[' ? "']'" : "')'");
    if (!mismatch->found || (is_brace && is_outer_word) || (!is_brace && byte && strchr(";{}", byte)) ||
        (!is_brace && wants_end && byte && strchr(":=", byte))) {
        diag_note(item, state->open[i], "this '%c' is not closed", byte_at(state, state->open[i]));
        state->told_unclosed |= is_brace;
    }
}

static void help_with_word(ParserState *state, DiagItem *item) {
    enum { TOP, ITEMS, STATEMENTS, LEVELS, MOST = 20 };
    static const char *const WORDS[LEVELS][MOST] = {
        [TOP] = {"use", "family", "schedule", "kernel"},
        [ITEMS] = {"const", "fn", "option", "axis", "dim", "tensor", "param", "hook", "reference", "smem",
                   "tmem", "pipe", "grid", "walk", "turn", "cluster", "occupancy", "role"},
        [STATEMENTS] = {"let", "var", "take", "put", "fill", "free", "update", "store", "for", "if"},
    };
    if (!state->construct_is_name)
        return;
    const char *const *words =
        WORDS[state->construct_level < STATEMENTS ? state->construct_level : STATEMENTS];
    int count = 0;
    while (count < MOST && words[count])
        count++;
    const char *closest = diag_closest(text_of(state, state->construct), words, count);
    if (closest)
        diag_help(item, "did you mean '%s'?", closest);
}

static void help_with_header(ParserState *state, DiagItem *item) {
    const char *word = text_of(state, state->construct);
    if (state->open_count != 0 || state->construct.start == state->token.start)
        return;
    if (!strcmp(word, "kernel"))
        diag_help(item, "a kernel is declared with: kernel NAME : FAMILY { ... }");
    if (!strcmp(word, "schedule"))
        diag_help(item, "a schedule is declared with: schedule NAME of FAMILY for TARGET { ... }");
}

static DiagItem *missing_semicolon(ParserState *state) {
    Span after = {state->file, state->previous.end, state->previous.end};
    return diag_error(state->diag, after, "syntax", "missing ';' after '%s'",
                      text_of(state, state->previous));
}

// The next line begins, or the block ends, where a ';' could stand.
static bool misses_semicolon(const ParserState *state, const Mismatch *mismatch) {
    return expects(mismatch, "';'") && state->previous.end > state->previous.start &&
           (!mismatch->found || is_found(mismatch, "'}'") ||
            line_of(state, state->token.start) > line_of(state, state->previous.end - 1));
}

static void help_with_arrow(const Mismatch *mismatch, DiagItem *item) {
    if (is_found(mismatch, "'='") && expects(mismatch, "=>"))
        diag_help(item, "math is given with '=>': name (parameters) => value;");
    if (is_found(mismatch, "=>") && expects(mismatch, "'='"))
        diag_help(item, "a value is given with '='; '=>' gives the math of a hook or a function");
    if (is_found(mismatch, "==") && expects(mismatch, "'='"))
        diag_help(item, "a value is given with '='; '==' compares");
    if (is_found(mismatch, "'='") && expects(mismatch, "=="))
        diag_help(item, "values are compared with '=='");
}

static DiagItem *wrong_token(ParserState *state, const Mismatch *mismatch) {
    const char *list = expected_text(state, mismatch), *text = text_of(state, state->token);
    bool wants_only_name = expects(mismatch, "a name") && *list;
    if (is_word(mismatch->found) && !is_soft_word(mismatch->found) && wants_only_name && mismatch->count <= 6)
        return diag_error(state->diag, state->token, "syntax",
                          "'%s' is a word of the language; it can't be a name", text);
    if (is_found(mismatch, "'}'") && !state->open_count)
        return diag_error(state->diag, state->token, "syntax", "this '}' closes nothing");
    return diag_error(state->diag, state->token, "syntax", "'%s' can't stand here%s", text, list);
}

bool parser_tells_syntax_error(ParserState *state, const char *found) {
    const Mismatch mismatch = {found, NULL, 0};
    if (has_given_up(state) || (state->told_unclosed && (!found || is_top_word(&mismatch))))
        return false;
    return !state->told_at_top || state->open_count > 1 || is_top_word(&mismatch);
}

void parser_syntax_error(ParserState *state, const char *found, const char *const *expected, int count) {
    const Mismatch mismatch = {found, expected, count};
    DiagItem *item;
    if (misses_semicolon(state, &mismatch))
        item = missing_semicolon(state);
    else if (!found)
        item = diag_error(state->diag, state->token, "syntax", "the file ends inside a construct%s",
                          expected_text(state, &mismatch));
    else
        item = wrong_token(state, &mismatch);
    note_open_bracket(state, &mismatch, item);
    help_with_header(state, item);
    state->told_at_top = state->open_count == 0;
    help_with_word(state, item);
    help_with_arrow(&mismatch, item);
    if (is_found(&mismatch, "'='") && state->construct_is_name && state->open_count == 1 &&
        state->previous.start == state->construct.start)
        diag_help(item, "a kernel sets an option without '=': %s VALUE;", text_of(state, state->construct));
}
