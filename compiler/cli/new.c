// new.c: jfac new NAME --like FILE: a kernel file to start from: the body of FILE's kernel under another
// name, and in comments what its family lets a kernel say, with what holds when nothing is said.
#include "compiler/cli/cli.h"
#include "grammar/parser.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    Arena *arena;
    const SourceSet *sources;
    const SemaParts *parts;
    const char *name, *text; // of the new kernel, and its file as far as it is written
} NewFile;

static const char *slice(const NewFile *file, Span span) {
    return ast_text(file->sources, file->arena, span);
}

static void add(NewFile *file, const char *more) {
    file->text = arena_format(file->arena, "%s%s", file->text, more);
}

// ---------------------------------------------------------------- what a kernel may say

static bool is_said(const NewFile *file, const char *name) {
    for (const Ast *item = file->parts->kernel->list; item; item = item->next)
        if ((item->kind == AST_MATH || item->kind == AST_SETTING) && !strcmp(item->name, name))
            return true;
    return false;
}

// "(q, k, head)"
static const char *parameters(const NewFile *file, const Ast *hook) {
    const char *text = "";
    for (const Ast *name = hook->list; name; name = name->next)
        text = arena_format(file->arena, "%s%s%s", text, *text ? ", " : "", name->name);
    return arena_format(file->arena, "(%s)", text);
}

static const char *values(const NewFile *file, const Ast *option) {
    const char *text = "";
    for (const Ast *value = option->list; value; value = value->next)
        text = arena_format(file->arena, "%s%s%s", text, *text ? ", " : "", slice(file, value->span));
    return text;
}

static const char *line_about(const NewFile *file, const Ast *item) {
    switch (item->kind) {
    case AST_OPTION:
        return arena_format(file->arena, "  // %s: one of %s\n", item->name, values(file, item));
    case AST_HOOK:
        return is_said(file, item->name)
                   ? arena_format(file->arena, "  // %s %s gives %s\n", item->name, parameters(file, item),
                                  item->name2)
                   : arena_format(file->arena, "  // %s %s => %s;   // %s; as it is unless you say it\n",
                                  item->name, parameters(file, item), slice(file, item->a->span),
                                  item->name2);
    default:
        return "";
    }
}

static void add_choices(NewFile *file) {
    add(file, "\n  // What else can be said here. Math names the values that it needs, in this order or "
              "fewer of them:\n");
    for (const Ast *item = file->parts->family->list; item; item = item->next)
        add(file, line_about(file, item));
    add(file, "  // param slope : f32 = 1;        a number that is given at each launch; math may use it\n"
              "  // tensor bias : in f32[...];    a tensor of yours, over the family's axes and dims\n");
}

static void add_operands(NewFile *file) {
    add(file, arena_format(file->arena, "\n// What every kernel of family %s is launched with:\n",
                           file->parts->family->name));
    for (const Ast *item = file->parts->family->list; item; item = item->next)
        if (item->kind == AST_TENSOR || item->kind == AST_PARAM)
            add(file, arena_format(file->arena, "//   %s\n", slice(file, item->span)));
}

// ---------------------------------------------------------------- the file

// "family" of "folder/family.jfa": what `use` says.
static const char *base_name(const NewFile *file, const char *path) {
    const char *start = strrchr(path, '/'), *end = strrchr(path, '.');
    start = start ? start + 1 : path;
    return arena_copy(file->arena, start, end && end > start ? (size_t)(end - start) : strlen(start));
}

// The kernel's text between its braces.
static const char *body(const NewFile *file) {
    const char *text = slice(file, file->parts->kernel->span), *open = strchr(text, '{'),
               *close = strrchr(text, '}');
    return open && close ? arena_copy(file->arena, open + 1, (size_t)(close - open - 1)) : "\n";
}

static void write_text(NewFile *file) {
    const Ast *kernel = file->parts->kernel, *family = file->parts->family;
    const char *like = file->sources->files[kernel->span.file].path;
    file->text = arena_format(file->arena,
                              "// %s: say here what it computes. Made like %s.\n"
                              "//   jfac check %s.jfa\n"
                              "//   jfac run   %s.jfa --seeds 3\n"
                              "use %s;\n\nkernel %s : %s {%s",
                              file->name, like, file->name, file->name,
                              base_name(file, file->sources->files[family->span.file].path), file->name,
                              family->name, body(file));
    add_choices(file);
    add(file, "}\n");
    add_operands(file);
}

// ---------------------------------------------------------------- the command

// A name that the language takes: no word of it, no operator.
static bool is_name(const char *name, Arena *arena) {
    SourceSet sources = {.arena = arena};
    Diag diag;
    diag_init(&diag, arena, &sources);
    int file = source_add(&sources, "", name, strlen(name));
    const Ast *expression = parse_expression(arena, &diag, file);
    return !diag.error_count && expression && expression->kind == AST_NAME && !strcmp(expression->name, name);
}

static int write_file(const CliOptions *options, const NewFile *file) {
    const char *path = options->output ? options->output : arena_format(options->arena, "%s.jfa", file->name);
    if (!strcmp(path, "-"))
        return fputs(file->text, stdout) < 0 ? STATUS_ENVIRONMENT : STATUS_GOOD;
    struct stat info;
    if (!stat(path, &info)) {
        fprintf(stderr, "jfac: %s exists already; nothing was written\n", path);
        return STATUS_ENVIRONMENT;
    }
    const char *message = NULL;
    if (!file_write_whole(path, file->text, strlen(file->text), &message)) {
        fprintf(stderr, "jfac: %s\n", message);
        return STATUS_ENVIRONMENT;
    }
    fprintf(stderr, "%s: kernel %s, of family %s\n", path, file->name, file->parts->family->name);
    return STATUS_GOOD;
}

static int make(Session *session, const CliOptions *options, const char *name) {
    int status = session_status(session, jfac_check(session->jfac, &session->options));
    if (status)
        return status;
    NewFile file = {.arena = options->arena,
                    .sources = jfac_diag(session->jfac)->sources,
                    .parts = jfac_parts(session->jfac),
                    .name = name};
    const Ast *kernel = file.parts->kernel, *others[] = {file.parts->family, file.parts->schedule};
    for (int i = 0; i < 2; i++)
        if (others[i]->span.file == kernel->span.file)
            return usage_error(
                "%s %s is declared in the file of kernel %s; put it into a file of its own first",
                i ? "schedule" : "family", others[i]->name, kernel->name);
    write_text(&file);
    return write_file(options, &file);
}

int command_new(CliOptions *options) {
    const char *name = options->file;
    if (!options->like)
        return usage_error("new wants the kernel to start from: jfac new %s --like examples/dense.jfa", name);
    if (!is_name(name, options->arena))
        return usage_error(
            "'%s' can't be a kernel's name: letters, digits and '_', and no word of the language", name);
    options->file = options->like;
    Session session;
    int status = session_open(&session, options);
    if (!status)
        status = make(&session, options, name);
    session_close(&session);
    return status;
}
