#define _XOPEN_SOURCE 700

#include "tree.h"

#include "emit/emit.h"
#include "suite.h"

#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_LIMIT = 1 << 28, DEPTH_LIMIT = 8 };

const char *tree_new(etch_arena *arena)
{
    char *path = etch_text(arena, "/tmp/etch-emit-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(path));
    return path;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

void tree_remove(const char *path)
{
    ck_assert_int_eq(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void tree_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    ck_assert_int_eq(fclose(file), 0);
}

char *tree_read(etch_arena *arena, const char *path, size_t *length)
{
    char *text;
    const char *why;
    ck_assert_int_eq(etch_read_file(arena, path, FILE_LIMIT, &text, length, &why), ETCH_OK);
    return text;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static void describe(etch_buf *out, const char *path, const struct stat *info)
{
    char hash[ETCH_SHA256_TEXT] = "";
    if (S_ISREG(info->st_mode)) {
        etch_arena *content = etch_arena_new(etch_arena_mem(out->arena));
        etch_piece piece;
        piece.bytes = tree_read(content, path, &piece.length);
        etch_sha256(&piece, 1, hash);
        etch_arena_free(content);
    }
    etch_buf_printf(out, "%s %o %s\n", path, (unsigned)info->st_mode, hash);
}

static void walk(etch_buf *out, const char *path, int depth)
{
    struct dirent **entries;
    ck_assert_int_lt(depth, DEPTH_LIMIT);
    int count = scandir(path, &entries, is_entry, by_name);
    ck_assert_int_ge(count, 0);
    for (int i = 0; i < count; i++) {
        struct stat info;
        const char *name = etch_text(out->arena, "%s/%s", path, entries[i]->d_name);
        ck_assert_int_eq(lstat(name, &info), 0);
        describe(out, name, &info);
        if (S_ISDIR(info.st_mode))
            walk(out, name, depth + 1);
        free(entries[i]);
    }
    free(entries);
}

const char *tree_snapshot(etch_arena *arena, const char *path)
{
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    walk(&out, path, 0);
    return out.text;
}

uint32_t tree_count(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_entry, by_name);
    ck_assert_int_ge(count, 0);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return (uint32_t)count;
}
