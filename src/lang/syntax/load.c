/* Reads a spec and what it imports: each file once, files after their imports. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "lang/syntax/syntax.h"

#include "etch/listings.h" /* etch_is_spec_name */

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file that was found, also while its imports are still being read. */
typedef struct loaded {
    /* interned absolute path without links */
    const char *identity;
    etch_ast *ast;
    /* its imports are being read */
    bool open;
} loaded;

/* The way from the spec to the file that is being read. */
typedef struct chain {
    const struct chain *importer;
    const loaded *file;
    /* the path in the file above */
    etch_span import;
} chain;

typedef struct loader {
    const etch_ast_context *context;
    etch_ast_files *files;
    ETCH_VEC(loaded *) known;
    /* of the spec itself; NULL: it is a file */
    const char *text;
} loader;

/* The file of the shelf; NULL when there is no shelf, or it is not there. */
static etch_shelved *find_shelved(const loader *l, const char *path)
{
    const etch_shelf *shelf = l->context->shelf;
    for (uint32_t i = 0; shelf && i < shelf->files.count; i++)
        if (strcmp(shelf->files.at[i].path, path) == 0)
            return &shelf->files.at[i];
    return NULL;
}

static const char *identity_of(loader *l, const char *path)
{
    char absolute[PATH_MAX];
    etch_shelf *shelf = l->context->shelf;
    const etch_shelved *shelved = find_shelved(l, path);
    if (shelved)
        return etch_name_of(l->context->names, shelved->identity);
    const char *identity = realpath(path, absolute) ? absolute : path;
    if (shelf)
        ETCH_PUSH(shelf->arena, &shelf->files,
                  (etch_shelved){.path = etch_copy_text(shelf->arena, path, strlen(path)),
                                 .identity = etch_copy_text(shelf->arena, identity, strlen(identity))});
    return etch_name_of(l->context->names, identity);
}

static loaded *find(const loader *l, const char *identity)
{
    for (uint32_t i = 0; i < l->known.count; i++) {
        if (l->known.at[i]->identity == identity) {
            return l->known.at[i];
        }
    }
    return NULL;
}

/* Is there a file, or was there one when the spec was first read? */
static bool is_there(const loader *l, const char *path)
{
    etch_shelf *shelf = l->context->shelf;
    if (find_shelved(l, path))
        return true;
    for (uint32_t i = 0; shelf && i < shelf->missing.count; i++)
        if (strcmp(shelf->missing.at[i], path) == 0)
            return false;
    if (access(path, F_OK) == 0)
        return true;
    if (shelf)
        ETCH_PUSH(shelf->arena, &shelf->missing, etch_copy_text(shelf->arena, path, strlen(path)));
    return false;
}

/* Path of an import as a person would write it from where the spec's own path starts. */
static const char *path_beside(loader *l, const char *importer, const char *path)
{
    const char *slash = strrchr(importer, '/');
    if (path[0] == '/' || !slash) {
        return path;
    }
    return etch_text(l->context->arena, "%.*s%s", (int)(slash + 1 - importer), importer, path);
}

/* Beside the importing file, or else in one of the folders; what is nowhere has the first path. */
static const char *path_of(loader *l, const char *importer, const char *path)
{
    const char *beside = path_beside(l, importer, path), *folder = l->context->folders;
    if (!folder || path[0] == '/' || is_there(l, beside))
        return beside;
    while (*folder) {
        const size_t length = strcspn(folder, ":");
        const char *there = etch_text(l->context->arena, "%.*s/%s", (int)length, folder, path);
        if (length > 0 && is_there(l, there))
            return there;
        folder += length + (folder[length] == ':');
    }
    return beside;
}

bool etch_is_spec_name(const char *name)
{
    const char *ending = strrchr(name, '.');
    return ending && strcmp(ending, ".etch") == 0;
}

/* The first specs that begin with `text`, each as 'h100_sxm.etch'; NULL: none. */
static const char *specs_from(etch_arena *arena, const etch_file_names *specs, const char *text,
                              size_t length)
{
    enum { MOST = 4 };
    etch_buf list = {.arena = arena};
    for (uint32_t i = 0, shown = 0; length > 1 && i < specs->count && shown < MOST; i++)
        if (strncmp(specs->at[i], text, length) == 0)
            etch_buf_printf(&list, "%s'%s'", shown++ > 0 ? " or " : "", specs->at[i]);
    return list.length > 0 ? list.text : NULL;
}

/* The spec of a folder whose name is nearest to `name`, or those that begin with it; NULL: none. */
static const char *spec_like(loader *l, const char *folder, size_t length, const char *name)
{
    etch_arena *arena = l->context->arena;
    etch_file_names specs = {0};
    const etch_file_names all = etch_files_of(arena, etch_text(arena, "%.*s", (int)length, folder));
    for (uint32_t i = 0; i < all.count; i++)
        if (etch_is_spec_name(all.at[i]))
            ETCH_PUSH(arena, &specs, all.at[i]);
    const char *near = etch_nearest(name, specs.at, specs.count);
    return near ? etch_text(arena, "'%s'", near) : specs_from(arena, &specs, name, strcspn(name, "."));
}

/* Of what is not there. Looks beside the path, and then in the folders of imports. */
static void help_nearest(loader *l, etch_diag *diag, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *folder = l->context->folders;
    if (access(path, F_OK) == 0)
        return;
    const char *near = slash ? spec_like(l, path, (size_t)(name - path), name) : spec_like(l, ".", 1, name);
    while (!near && folder && *folder) {
        const size_t length = strcspn(folder, ":");
        near = length > 0 ? spec_like(l, folder, length, name) : NULL;
        folder += length + (folder[length] == ':');
    }
    if (near)
        etch_help(diag, "did you mean %s?", near);
}

static void report_unreadable(loader *l, const char *path, const char *why, const chain *from)
{
    if (from) {
        etch_diag *diag = etch_error(l->context->diags, ETCH_E_IMPORT_UNREADABLE, from->import,
                                     "cannot read '%s': %s", path, why);
        help_nearest(l, diag, path);
        etch_help(diag, "the path of an import is relative to the file that it stands in%s",
                  l->context->folders ? ", or to a folder in which models are looked for" : "");
    } else {
        help_nearest(l,
                     etch_error(l->context->diags, ETCH_E_SPEC_UNREADABLE, (etch_span){0},
                                "cannot read '%s': %s", path, why),
                     path);
    }
}

static void report_cycle(loader *l, const loaded *again, const chain *from)
{
    etch_buf text = {.arena = l->context->arena};
    const chain *first = from;
    while (first->importer && first->importer->file != again) {
        first = first->importer;
    }
    etch_buf_printf(&text, "'%s' imports itself", again->ast->source->path);
    if (from->file != again) {
        /* the chain is linked upwards; say it downwards */
        ETCH_VEC(const chain *) way = {0};
        for (const chain *step = from; step && step->file != again; step = step->importer) {
            ETCH_PUSH(l->context->arena, &way, step);
        }
        etch_buf_puts(&text, ":");
        etch_buf_printf(&text, " %s", again->ast->source->path);
        for (uint32_t i = way.count; i-- > 0;) {
            etch_buf_printf(&text, " -> %s", way.at[i]->file->ast->source->path);
        }
        etch_buf_printf(&text, " -> %s", again->ast->source->path);
    }
    etch_diag *diag = etch_error(l->context->diags, ETCH_E_IMPORT_CYCLE, from->import, "%s", text.text);
    etch_help(diag, "move what both need into a file of its own");
}

static loaded *load(loader *l, const char *path, const chain *from, uint32_t depth);

static void load_imports(loader *l, loaded *file, const chain *from, uint32_t depth)
{
    file->open = true;
    for (uint32_t i = 0; i < file->ast->items.count; i++) {
        etch_ast_item *item = &file->ast->items.at[i];
        if (item->kind != ETCH_AST_IMPORT) {
            continue;
        }
        chain step = {.importer = from, .file = file, .import = item->name.span};
        loaded *imported = load(l, path_of(l, file->ast->source->path, item->name.text), &step, depth + 1);
        item->file = imported ? imported->ast : NULL;
    }
    file->open = false;
}

static etch_ast *parse_text(loader *l, const char *path, const char *text, size_t length, const chain *from)
{
    const etch_ast_context *context = l->context;
    const etch_source *source = etch_source_add(context->diags, path, text, length);
    if (source)
        return etch_ast_parse(context, source);
    etch_error(context->diags, ETCH_E_SOURCES_TOO_LARGE, from ? from->import : (etch_span){0},
               "'%s' and the files before it are too large together", path);
    return NULL;
}

static etch_ast *read_ast(loader *l, const char *path, const chain *from)
{
    const etch_ast_context *context = l->context;
    if (!from && l->text)
        return parse_text(l, path, l->text, strlen(l->text), from);
    etch_shelved *shelved = find_shelved(l, path);
    if (shelved && shelved->text)
        return parse_text(l, path, shelved->text, shelved->length, from);
    char *text = NULL;
    size_t length = 0;
    const char *why = "it cannot be read";
    etch_arena *arena = shelved ? context->shelf->arena : context->arena;
    if (etch_read_file(arena, path, ETCH_FILE_LIMIT, &text, &length, &why) != ETCH_OK) {
        report_unreadable(l, path, why, from);
        return NULL;
    }
    if (shelved) {
        shelved->text = text;
        shelved->length = length;
    }
    return parse_text(l, path, text, length, from);
}

static loaded *load(loader *l, const char *path, const chain *from, uint32_t depth)
{
    const char *identity = identity_of(l, path);
    loaded *known = find(l, identity);
    if (known) {
        if (known->open) {
            report_cycle(l, known, from);
            return NULL;
        }
        return known;
    }
    if (depth > ETCH_IMPORT_DEPTH) {
        etch_error(l->context->diags, ETCH_E_IMPORT_DEPTH, from->import,
                   "imports are nested more than %d files deep", ETCH_IMPORT_DEPTH);
        return NULL;
    }
    etch_ast *ast = read_ast(l, path, from);
    if (!ast) {
        return NULL;
    }
    loaded *file = ETCH_NEW(l->context->arena, loaded);
    file->identity = identity;
    file->ast = ast;
    ETCH_PUSH(l->context->arena, &l->known, file);
    load_imports(l, file, from, depth);
    ETCH_PUSH(l->context->arena, l->files, ast);
    return file;
}

etch_status etch_ast_load(const etch_ast_context *context, const char *path, const char *text,
                          etch_ast_files *files)
{
    uint32_t errors = etch_error_count(context->diags);
    uint32_t tokens = 0;
    etch_ast_context counting = *context;
    counting.tokens = &tokens;
    *files = (etch_ast_files){0};
    loader l = {.context = &counting, .files = files, .text = text};
    if (!load(&l, path, NULL, 0)) {
        return ETCH_EIO;
    }
    return etch_error_count(context->diags) == errors ? ETCH_OK : ETCH_EINPUT;
}
