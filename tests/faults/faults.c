/* Stands between the program and the C library: one call of a kind fails, or is cut short, or the process
 * ends before it.
 *
 * ETCH_FAULT=KIND:N in the environment says which: the N-th, from 1. Into the file that ETCH_FAULT_COUNTS
 * names go, when the program ends, lines "KIND COUNT": how many calls there were of each kind. DEATH counts
 * the calls that change files: the process is killed before the N-th, and with ETCH_FAULT_LOSES=1 what was
 * written and not synced is lost, as with the power. With ETCH_FAULT_PLAIN=1 two names cannot be exchanged,
 * as in simple file systems.
 *
 * The linker's --wrap sends the calls of the program here. GMP asks the program for its memory.
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum kind {
    MEMORY,
    OPEN,
    READ,
    WRITE,
    CLOSE,
    RENAME,
    FOLDER,
    REMOVE,
    LOOK,
    MODE,
    THREAD,
    CUT,
    INTERRUPT,
    SYNC,
    DEATH,
    KINDS
} kind;

static const char *const kind_names[KINDS] = {"memory", "open",   "read",      "write", "close",
                                              "rename", "folder", "remove",    "look",  "mode",
                                              "thread", "cut",    "interrupt", "sync",  "death"};

/* What a test harness is made of: set before main, read by every thread. */
static atomic_ulong calls[KINDS];
static kind fault_kind = KINDS;
static unsigned long fault_number;

/* Counts a call of the kind. Is it the one that fails? Sets errno then. */
static bool fails(kind which, int error)
{
    if (atomic_fetch_add(&calls[which], 1) + 1 != fault_number || which != fault_kind)
        return false;
    errno = error;
    return true;
}

/* Files that were created since the last sync. */
enum { MOST_FILES = 512 };
static int unsynced[MOST_FILES];
static atomic_uint unsynced_count;

static void lose_files(void)
{
    for (unsigned i = 0; i < atomic_load(&unsynced_count) && i < MOST_FILES; i++)
        if (ftruncate(unsynced[i], 0) != 0)
            abort();
}

/* A call that changes files is about to happen: is this the end? */
static void changes(void)
{
    if (!fails(DEATH, 0))
        return;
    if (getenv("ETCH_FAULT_LOSES"))
        lose_files();
    kill(getpid(), SIGKILL);
}

/* Another kind of call that changes files. */
static bool fails_to_change(kind which, int error)
{
    changes();
    return fails(which, error);
}

#define WRAP_CHANGE(which, error, failure, result, name, parameters, ...) \
    result __real_##name parameters;                                      \
    result __wrap_##name parameters;                                      \
    result __wrap_##name parameters                                       \
    {                                                                     \
        if (fails_to_change(which, error))                                \
            return failure;                                               \
        return __real_##name(__VA_ARGS__);                                \
    }

#define WRAP(which, error, failure, result, name, parameters, ...) \
    result __real_##name parameters;                               \
    result __wrap_##name parameters;                               \
    result __wrap_##name parameters                                \
    {                                                              \
        if (fails(which, error))                                   \
            return failure;                                        \
        return __real_##name(__VA_ARGS__);                         \
    }

/* clang-format off */
WRAP(MEMORY, ENOMEM, NULL, void *, malloc, (size_t size), size)
WRAP(MEMORY, ENOMEM, NULL, void *, calloc, (size_t count, size_t size), count, size)
WRAP(MEMORY, ENOMEM, NULL, void *, realloc, (void *old, size_t size), old, size)
WRAP(OPEN, EMFILE, NULL, DIR *, opendir, (const char *path), path)
WRAP(OPEN, EMFILE, NULL, FILE *, fopen, (const char *path, const char *mode), path, mode)
WRAP(READ, EIO, NULL, struct dirent *, readdir, (DIR *stream), stream)
WRAP(READ, EIO, -1, ssize_t, pread, (int file, void *to, size_t size, off_t at), file, to, size, at)
WRAP_CHANGE(RENAME, EACCES, -1, int, rename, (const char *from, const char *to), from, to)
WRAP_CHANGE(RENAME, EACCES, -1, int, renameat,
            (int from_folder, const char *from, int folder, const char *to),
     from_folder, from, folder, to)
WRAP_CHANGE(FOLDER, ENOSPC, -1, int, mkdir, (const char *path, mode_t mode), path, mode)
WRAP_CHANGE(REMOVE, EACCES, -1, int, unlinkat, (int folder, const char *path, int flags),
            folder, path, flags)
WRAP_CHANGE(REMOVE, EACCES, -1, int, rmdir, (const char *path), path)
WRAP(LOOK, EACCES, NULL, char *, realpath, (const char *path, char *resolved), path, resolved)
WRAP(LOOK, EACCES, -1, int, stat, (const char *path, struct stat *info), path, info)
WRAP(LOOK, EACCES, -1, int, lstat, (const char *path, struct stat *info), path, info)
WRAP(LOOK, EIO, -1, int, fstat, (int file, struct stat *info), file, info)
WRAP(LOOK, EACCES, -1, int, fstatat, (int folder, const char *path, struct stat *info, int flags),
     folder, path, info, flags)
WRAP_CHANGE(MODE, EPERM, -1, int, fchmod, (int file, mode_t mode), file, mode)
WRAP_CHANGE(MODE, EPERM, -1, int, fchown, (int file, uid_t owner, gid_t group), file, owner, group)
WRAP(SYNC, EIO, -1, int, fsync, (int file), file)
WRAP(THREAD, EAGAIN, EAGAIN, int, pthread_create,
     (pthread_t *thread, const pthread_attr_t *options, void *(*start)(void *), void *data),
     thread, options, start, data)
/* clang-format on */

int __real_renameat2(int from_folder, const char *from, int folder, const char *to, unsigned flags);
int __wrap_renameat2(int from_folder, const char *from, int folder, const char *to, unsigned flags);
int __wrap_renameat2(int from_folder, const char *from, int folder, const char *to, unsigned flags)
{
    if (getenv("ETCH_FAULT_PLAIN")) {
        errno = EINVAL;
        return -1;
    }
    return fails_to_change(RENAME, EACCES) ? -1 : __real_renameat2(from_folder, from, folder, to, flags);
}

int __real_close(int file);
int __real_syncfs(int file);
int __wrap_syncfs(int file);
int __wrap_syncfs(int file)
{
    if (fails(SYNC, EIO))
        return -1;
    while (atomic_load(&unsynced_count) > 0)
        __real_close(unsynced[atomic_fetch_sub(&unsynced_count, 1) - 1]);
    return __real_syncfs(file);
}

/* A call that may be interrupted before anything has happened. */
static bool fails_or_waits(kind which, int error)
{
    return fails(which, error) || fails(INTERRUPT, EINTR);
}

/* How many of `size` bytes are moved: a cut call moves one. */
static size_t cut(size_t size)
{
    return size > 1 && fails(CUT, 0) ? 1 : size;
}

ssize_t __real_read(int file, void *to, size_t size);
ssize_t __wrap_read(int file, void *to, size_t size);
ssize_t __wrap_read(int file, void *to, size_t size)
{
    return fails_or_waits(READ, EIO) ? -1 : __real_read(file, to, cut(size));
}

ssize_t __real_write(int file, const void *from, size_t size);
ssize_t __wrap_write(int file, const void *from, size_t size);
ssize_t __wrap_write(int file, const void *from, size_t size)
{
    changes();
    return fails_or_waits(WRITE, ENOSPC) ? -1 : __real_write(file, from, cut(size));
}

/* The descriptor is gone in any case. */
int __wrap_close(int file);
int __wrap_close(int file)
{
    const bool failed = fails(CLOSE, EIO);
    const int result = __real_close(file);
    if (failed)
        errno = EIO;
    return failed ? -1 : result;
}

int __real_openat(int folder, const char *path, int flags, ...);

/* Without a mode: the program opens this way what is there. */
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    return fails(OPEN, EMFILE) ? -1 : __real_openat(AT_FDCWD, path, flags);
}

int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    if (flags & O_CREAT)
        changes();
    if (fails_or_waits(OPEN, EMFILE))
        return -1;
    const int file = __real_openat(folder, path, flags, mode);
    if (file >= 0 && (flags & O_CREAT) && getenv("ETCH_FAULT_LOSES"))
        unsynced[atomic_fetch_add(&unsynced_count, 1) % MOST_FILES] = dup(file);
    return file;
}

/* What parses JSON fails as a whole: Jansson 2.14 writes beyond its buffer when memory runs out within. */
static _Thread_local bool is_parsing;

json_t *__real_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error);
json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error);
json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error)
{
    if (fails(MEMORY, ENOMEM)) {
        if (error)
            *error = (json_error_t){.line = -1, .column = -1};
        return NULL;
    }
    is_parsing = true;
    json_t *result = __real_json_loadb(text, length, flags, error);
    is_parsing = false;
    return result;
}

static void *json_memory(size_t size)
{
    return is_parsing ? __real_malloc(size) : __wrap_malloc(size);
}

__attribute__((constructor)) static void begin(void)
{
    const char *fault = getenv("ETCH_FAULT");
    json_set_alloc_funcs(json_memory, free);
    for (int i = 0; fault && i < KINDS; i++) {
        const size_t length = strlen(kind_names[i]);
        if (strncmp(fault, kind_names[i], length) == 0 && fault[length] == ':') {
            fault_kind = (kind)i;
            fault_number = strtoul(fault + length + 1, NULL, 10);
        }
    }
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("ETCH_FAULT_COUNTS");
    const int file =
        path ? __real_openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    if (file < 0)
        return;
    for (int i = 0; i < KINDS; i++)
        dprintf(file, "%s %lu\n", kind_names[i], atomic_load(&calls[i]));
    __real_close(file);
}
