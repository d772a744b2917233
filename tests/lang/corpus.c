#define _XOPEN_SOURCE 700 /* scandir */
#include "corpus.h"

#include "suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ends_with_etch(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".etch") == 0;
}

/* By bytes, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

corpus corpus_read(etch_arena *arena, const char *folder)
{
    const char *root = getenv("ETCH_SOURCE_DIR");
    ck_assert_msg(root != NULL, "ETCH_SOURCE_DIR is not set");
    const char *path = etch_text(arena, "%s/grammar/%s", root, folder);
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, ends_with_etch, by_name);
    ck_assert_msg(count > 0, "no cases in %s", path);
    corpus cases = {0};
    for (int i = 0; i < count; i++) {
        const char *file = entries[i]->d_name;
        corpus_case item = {.name = etch_text(arena, "%.*s", (int)(strlen(file) - 5), file),
                            .path = etch_text(arena, "%s/%s", path, file)};
        char *text = NULL;
        const char *why = "";
        etch_status status = etch_read_file(arena, item.path, (size_t)1 << 24, &text, &item.length, &why);
        ck_assert_msg(status == ETCH_OK, "%s: %s", item.path, why);
        item.text = text;
        ETCH_PUSH(arena, &cases, item);
        free(entries[i]);
    }
    free(entries);
    return cases;
}

static const char *path_beside(etch_arena *arena, const corpus_case *item, const char *ending)
{
    return etch_text(arena, "%.*s.%s", (int)(strlen(item->path) - 5), item->path, ending);
}

const char *corpus_beside(etch_arena *arena, const corpus_case *item, const char *ending)
{
    char *text = NULL;
    size_t length = 0;
    const char *why = "";
    const char *path = path_beside(arena, item, ending);
    return etch_read_file(arena, path, (size_t)1 << 24, &text, &length, &why) == ETCH_OK ? text : NULL;
}

bool corpus_update(etch_arena *arena, const corpus_case *item, const char *ending, const char *text)
{
    if (!getenv("ETCH_UPDATE")) {
        return false;
    }
    FILE *file = fopen(path_beside(arena, item, ending), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    return true;
}

etch_ast_context corpus_context(etch_arena *arena)
{
    return (etch_ast_context){.arena = arena, .names = etch_names_new(arena), .diags = etch_diags_new(arena)};
}
