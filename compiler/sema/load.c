// load.c: reads a file and, depth first, the files that it uses.
#include "compiler/sema/sema.h"

#include <string.h>

typedef struct {
    Arena *arena;
    Diag *diag;
    const char *const *include_dirs;
    int include_dir_count;
    Ast *items, **tail;
    struct Loaded {
        const char *name;
        struct Loaded *next;
    } * loaded;
} Loader;

static bool is_loaded(Loader *loader, const char *name) {
    for (struct Loaded *entry = loader->loaded; entry; entry = entry->next)
        if (!strcmp(entry->name, name))
            return true;
    struct Loaded *entry = arena_new_of(loader->arena, struct Loaded);
    entry->name = name;
    entry->next = loader->loaded;
    loader->loaded = entry;
    return false;
}

static const char *directory_of(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? arena_copy(arena, path, (size_t)(slash - path)) : ".";
}

static void load_items(Loader *loader, int file);

static void load_used(Loader *loader, const Ast *use) {
    if (is_loaded(loader, use->name))
        return;
    const char *user = loader->diag->sources->files[use->span.file].path, *reason = NULL;
    for (int i = -1; i < loader->include_dir_count; i++) {
        const char *dir = i < 0 ? directory_of(loader->arena, user) : loader->include_dirs[i];
        int file = source_read(loader->diag->sources,
                               arena_format(loader->arena, "%s/%s.jfa", dir, use->name), &reason);
        if (file >= 0) {
            load_items(loader, file);
            return;
        }
    }
    DiagItem *item = diag_error(loader->diag, use->name_span, "unknown-file", "can't find %s.jfa: %s",
                                use->name, reason ? reason : "no directory was searched");
    diag_note(item, (Span){-1, 0, 0}, "searched: %s", directory_of(loader->arena, user));
    for (int i = 0; i < loader->include_dir_count; i++)
        diag_note(item, (Span){-1, 0, 0}, "searched: %s", loader->include_dirs[i]);
    diag_help(item, "name its directory with -I");
}

static void load_items(Loader *loader, int file) {
    for (Ast *item = parse_file(loader->arena, loader->diag, file), *next; item; item = next) {
        next = item->next;
        item->next = NULL;
        *loader->tail = item;
        loader->tail = &item->next;
        if (item->kind == AST_USE)
            load_used(loader, item);
    }
}

Ast *sema_load(Arena *arena, Diag *diag, const char *path, const char *const *include_dirs,
               int include_dir_count) {
    Loader loader = {
        .arena = arena, .diag = diag, .include_dirs = include_dirs, .include_dir_count = include_dir_count};
    loader.tail = &loader.items;
    const char *reason;
    int file = source_read(diag->sources, path, &reason);
    if (file < 0) {
        diag_error(diag, (Span){-1, 0, 0}, "unreadable-file", "can't read %s: %s", path, reason);
        return NULL;
    }
    load_items(&loader, file);
    return loader.items;
}
