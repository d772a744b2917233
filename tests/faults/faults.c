/* Stands between the program and the C library: calls fail, or are cut short, or a signal comes, or the
 * process ends before one.
 *
 * ETCH_FAULT in the environment says which: KIND:N is the N-th of its kind, from 1; KIND:N+ that and all
 * after it; several are joined by commas. Into the file that ETCH_FAULT_COUNTS names go, when the program
 * ends, lines "KIND COUNT": how many calls there were of each kind. CALL is any call of the system. Before
 * the N-th of SIGNAL, which counts the same calls, the signal comes whose number is in ETCH_FAULT_SIGNAL.
 * DEATH counts the calls that change files: the process is killed before the N-th. With ETCH_FAULT_PLAIN=1
 * two names cannot be exchanged, as in simple file systems. Into the file that ETCH_FAULT_LOG names goes a
 * line for each change of files that was done, and for each sync.
 *
 * The linker's --wrap sends the calls of the program here. GMP asks the program for its memory.
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
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
    LINK,
    FOLDER,
    REMOVE,
    LOOK,
    MODE,
    THREAD,
    CUT,
    INTERRUPT,
    SYNC,
    DEATH,
    CALL,
    SIGNAL,
    KINDS
} kind;

static const char *const kind_names[KINDS] = {"memory", "open",      "read",   "write", "close", "rename",
                                              "link",   "folder",    "remove", "look",  "mode",  "thread",
                                              "cut",    "interrupt", "sync",   "death", "call",  "signal"};

typedef struct fault {
    kind which;
    unsigned long number;
    /* this call and all after it */
    bool onward;
} fault;

/* What a test harness is made of: set before main, read by every thread. */
enum { MOST_FAULTS = 8 };
static atomic_ulong calls[KINDS];
static fault faults[MOST_FAULTS];
static int fault_count, log_file = -1;

/* Counts a call of the kind. Is it one that is hit? */
static bool hits(kind which)
{
    const unsigned long number = atomic_fetch_add(&calls[which], 1) + 1;
    bool hit = false;
    for (int i = 0; i < fault_count; i++)
        hit = hit || (faults[i].which == which &&
                      (number == faults[i].number || (faults[i].onward && number > faults[i].number)));
    return hit;
}

/* Does a call of the kind fail? Sets errno then. */
static bool fails(kind which, int error)
{
    const bool is_call = which != MEMORY && which != CUT && which != INTERRUPT && which != DEATH;
    const char *number = is_call && hits(SIGNAL) ? getenv("ETCH_FAULT_SIGNAL") : NULL;
    if (number)
        kill(getpid(), atoi(number));
    const bool any = is_call && hits(CALL);
    if (!hits(which) && !any)
        return false;
    errno = error;
    return true;
}

/* A call that changes files is about to happen: is this the end? */
static void changes(void)
{
    if (!hits(DEATH))
        return;
    kill(getpid(), SIGKILL);
}

/* Another kind of call that changes files. */
static bool fails_to_change(kind which, int error)
{
    changes();
    return fails(which, error);
}

#define WRAP_MODE(name, parameters, ...)   \
    int __real_##name parameters;          \
    int __wrap_##name parameters;          \
    int __wrap_##name parameters           \
    {                                      \
        if (fails_to_change(MODE, EPERM))  \
            return -1;                     \
        return __real_##name(__VA_ARGS__); \
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
WRAP(LOOK, EACCES, NULL, char *, realpath, (const char *path, char *resolved), path, resolved)
WRAP(LOOK, EACCES, -1, int, stat, (const char *path, struct stat *info), path, info)
WRAP(LOOK, EACCES, -1, int, lstat, (const char *path, struct stat *info), path, info)
WRAP(LOOK, EIO, -1, int, fstat, (int file, struct stat *info), file, info)
WRAP(LOOK, EACCES, -1, int, fstatat, (int folder, const char *path, struct stat *info, int flags),
     folder, path, info, flags)
WRAP_MODE(fchmod, (int file, mode_t mode), file, mode)
WRAP_MODE(fchown, (int file, uid_t owner, gid_t group), file, owner, group)
WRAP(THREAD, EAGAIN, EAGAIN, int, pthread_create,
     (pthread_t *thread, const pthread_attr_t *options, void *(*start)(void *), void *data),
     thread, options, start, data)
/* clang-format on */

/* ---- what changes files, and its log ------------------------------------------------------------------ */

/* Where an entry of an open folder is, as the kernel knows it now. */
static void locate(int folder, const char *name, char place[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
    const ssize_t length = *name == '/' ? 0 : readlink(link, place, PATH_MAX / 2);
    snprintf(place + (length > 0 ? length : 0), PATH_MAX / 2, *name == '/' || !*name ? "%s" : "/%s", name);
}

/* A change that was done; the second name may be NULL. */
static void note(const char *what, int folder, const char *name, int to_folder, const char *to)
{
    const int error = errno;
    char from_place[PATH_MAX], to_place[PATH_MAX] = "";
    if (log_file < 0)
        return;
    locate(folder, name, from_place);
    if (to)
        locate(to_folder, to, to_place);
    dprintf(log_file, "%s\t%s\t%s\n", what, from_place, to_place);
    errno = error;
}

int __real_renameat2(int from_folder, const char *from, int folder, const char *to, unsigned flags);
int __real_renameat(int from_folder, const char *from, int folder, const char *to);
int __real_linkat(int from_folder, const char *from, int folder, const char *to, int flags);
int __real_mkdir(const char *path, mode_t mode);
int __real_unlinkat(int folder, const char *path, int flags);
int __real_close(int file);

int __wrap_renameat2(int from_folder, const char *from, int folder, const char *to, unsigned flags);
int __wrap_renameat2(int from_folder, const char *from, int folder, const char *to, unsigned flags)
{
    if (getenv("ETCH_FAULT_PLAIN")) {
        errno = EINVAL;
        return -1;
    }
    if (fails_to_change(RENAME, EACCES) || __real_renameat2(from_folder, from, folder, to, flags) != 0)
        return -1;
    note("exchange", from_folder, from, folder, to);
    return 0;
}

int __wrap_renameat(int from_folder, const char *from, int folder, const char *to);
int __wrap_renameat(int from_folder, const char *from, int folder, const char *to)
{
    if (fails_to_change(RENAME, EACCES) || __real_renameat(from_folder, from, folder, to) != 0)
        return -1;
    note("rename", from_folder, from, folder, to);
    return 0;
}

int __wrap_linkat(int from_folder, const char *from, int folder, const char *to, int flags);
int __wrap_linkat(int from_folder, const char *from, int folder, const char *to, int flags)
{
    if (fails_to_change(LINK, EMLINK) || __real_linkat(from_folder, from, folder, to, flags) != 0)
        return -1;
    note("link", from_folder, from, folder, to);
    return 0;
}

int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    return __wrap_renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    if (fails_to_change(FOLDER, ENOSPC) || __real_mkdir(path, mode) != 0)
        return -1;
    note("folder", AT_FDCWD, path, 0, NULL);
    return 0;
}

int __wrap_unlinkat(int folder, const char *path, int flags);
int __wrap_unlinkat(int folder, const char *path, int flags)
{
    if (fails_to_change(REMOVE, EACCES) || __real_unlinkat(folder, path, flags) != 0)
        return -1;
    note("remove", folder, path, 0, NULL);
    return 0;
}

int __wrap_rmdir(const char *path);
int __wrap_rmdir(const char *path)
{
    return __wrap_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

/* The machine stays up, so that nothing has to reach its disk: what would not, a test works out from the
 * log. */
int __wrap_fsync(int file);
int __wrap_fsync(int file)
{
    if (fails(SYNC, EIO))
        return -1;
    note("sync", file, "", 0, NULL);
    return 0;
}

int __wrap_syncfs(int file);
int __wrap_syncfs(int file)
{
    if (fails(SYNC, EIO))
        return -1;
    note("sync_all", file, "", 0, NULL);
    return 0;
}

/* A call that may be interrupted before anything has happened. */
static bool fails_or_waits(kind which, int error)
{
    return fails(which, error) || fails(INTERRUPT, EINTR);
}

/* How many of `size` bytes are moved: a cut call moves one. */
static size_t cut(size_t size)
{
    return size > 1 && hits(CUT) ? 1 : size;
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
    if (file >= 0 && (flags & O_CREAT))
        note("file", folder, path, 0, NULL);
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

/* Reads one of the list, and returns what comes after it. */
static const char *read_fault(const char *text)
{
    for (int i = 0; i < KINDS; i++) {
        const size_t length = strlen(kind_names[i]);
        char *rest;
        if (strncmp(text, kind_names[i], length) != 0 || text[length] != ':')
            continue;
        fault *f = &faults[fault_count++];
        *f = (fault){.which = (kind)i, .number = strtoul(text + length + 1, &rest, 10)};
        f->onward = *rest == '+';
        rest += f->onward;
        return *rest == ',' ? rest + 1 : rest;
    }
    abort(); /* a mistake of a test */
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("ETCH_FAULT"), *path = getenv("ETCH_FAULT_LOG");
    json_set_alloc_funcs(json_memory, free);
    if (path)
        log_file = __real_openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    while (text && *text && fault_count < MOST_FAULTS)
        text = read_fault(text);
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
