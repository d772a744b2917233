/* Reading whole files, and the names of those in a folder. */
#define _POSIX_C_SOURCE 200809L

#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct reading {
    etch_arena *arena;
    int file;
    /* size: what the file said of itself, 0 for files of /proc */
    size_t limit, size;
    char *text;
    size_t length;
    const char *why;
} reading;

static const char *error_text(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return "no such file";
    case EACCES:
    case EPERM:
        return "permission denied";
    case ENAMETOOLONG:
        return "the name is too long";
    case ELOOP:
        return "too many symbolic links";
    case EISDIR:
        return "is a directory";
    default:
        return "cannot be read";
    }
}

static etch_status refuse(reading *r, const char *why)
{
    r->why = why;
    return ETCH_EIO;
}

/* Reads until the end of the file, which may come sooner or later than its size says. */
static etch_status read_all(void *data)
{
    reading *r = data;
    size_t capacity = r->size + 2; /* room for a NUL, and for one byte more, of which none is the end */
    r->text = etch_alloc(r->arena, capacity);
    for (;;) {
        if (r->length == capacity - 1) {
            char *wider = etch_alloc_array(r->arena, capacity, 2);
            memcpy(wider, r->text, r->length);
            r->text = wider;
            capacity *= 2;
        }
        ssize_t got = read(r->file, r->text + r->length, capacity - 1 - r->length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return refuse(r, error_text(errno));
        if (got == 0)
            break;
        r->length += (size_t)got;
        if (r->length > r->limit)
            return refuse(r, ETCH_FILE_TOO_LARGE);
    }
    r->text[r->length] = '\0';
    return ETCH_OK;
}

static etch_status check_kind(reading *r)
{
    struct stat info;
    if (fstat(r->file, &info) != 0)
        return refuse(r, error_text(errno));
    if (S_ISDIR(info.st_mode))
        return refuse(r, "is a directory");
    if (!S_ISREG(info.st_mode))
        return refuse(r, "is not a regular file");
    if ((uintmax_t)info.st_size > r->limit)
        return refuse(r, ETCH_FILE_TOO_LARGE);
    r->size = (size_t)info.st_size;
    return ETCH_OK;
}

etch_status etch_read_file(etch_arena *arena, const char *path, size_t limit, char **text, size_t *length,
                           const char **why)
{
    /* O_NONBLOCK: opening a pipe that nobody writes to must not wait. */
    reading r = {.arena = arena, .limit = limit, .file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    if (r.file < 0) {
        *why = error_text(errno);
        return ETCH_EIO;
    }
    etch_status status = check_kind(&r);
    if (status == ETCH_OK)
        status = etch_guard(etch_arena_mem(arena), read_all, &r); /* so that the file is closed in any case */
    close(r.file);
    if (status == ETCH_ENOMEM || status == ETCH_ELIMIT)
        etch_trap(etch_arena_mem(arena), status);
    *why = r.why;
    *text = r.text;
    *length = r.length;
    return status;
}

/* ---- folders ------------------------------------------------------------------------------------------- */

typedef struct listing {
    etch_arena *arena;
    DIR *folder;
    etch_file_names names;
} listing;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static etch_status list_all(void *data)
{
    enum { MOST = 10000 };
    listing *l = data;
    const struct dirent *entry;
    while (l->names.count < MOST && (entry = readdir(l->folder)) != NULL)
        if (entry->d_name[0] != '.')
            ETCH_PUSH(l->arena, &l->names, etch_copy_text(l->arena, entry->d_name, strlen(entry->d_name)));
    if (l->names.count > 0)
        qsort(l->names.at, l->names.count, sizeof *l->names.at, by_name);
    return ETCH_OK;
}

etch_file_names etch_files_of(etch_arena *arena, const char *folder)
{
    listing l = {.arena = arena, .folder = opendir(folder)};
    if (!l.folder)
        return l.names;
    const etch_status status = etch_guard(etch_arena_mem(arena), list_all, &l); /* the folder is closed */
    closedir(l.folder);
    if (status != ETCH_OK)
        etch_trap(etch_arena_mem(arena), status);
    return l.names;
}
