/* Files of a text, written into a folder that appears under its name when all of them are there. */
#define _POSIX_C_SOURCE 200809L

#include "trace/text_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct assembling {
    etch_arena *arena;
    etch_diags *diags;
    const etch_source *text;
    /* without slashes at the end */
    const char *folder;
    /* where the files are until all of them are there, else NULL */
    const char *hidden;
    /* open on `hidden`, or -1 */
    int files;
    etch_assembly *assembly;
} assembling;

static etch_status refuse(const assembling *a, const char *path, int error)
{
    char why[128];
    if (strerror_r(error, why, sizeof why) != 0)
        snprintf(why, sizeof why, "error %d", error);
    etch_error(a->diags, ETCH_E_OUTPUT_IO, (etch_span){0, 0}, "cannot write '%s': %s", path, why);
    return ETCH_EIO;
}

/* ---- files --------------------------------------------------------------------------------------------- */

static int write_all(int file, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(file, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

static etch_status put_file(const assembling *a, const char *name, const char *bytes, size_t length)
{
    int file = openat(a->files, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST) {
        etch_error(a->diags, ETCH_E_TEXT_FILE, (etch_span){0, 0}, "the file '%s' is there twice", name);
        return ETCH_EINPUT;
    }
    int error = file < 0 ? errno : write_all(file, bytes, length);
    if (file >= 0 && close(file) != 0 && errno != EINTR && error == 0)
        error = errno;
    return error == 0 ? ETCH_OK : refuse(a, name, error);
}

static etch_status put_files(void *data, const char *const *names, uint32_t name_count, const char *bytes,
                             size_t length)
{
    const assembling *a = data;
    etch_status status = ETCH_OK;
    for (uint32_t i = 0; i < name_count && status == ETCH_OK; i++) {
        status = put_file(a, names[i], bytes, length);
        a->assembly->files++;
        a->assembly->bytes += length;
    }
    return status;
}

/* ---- the folder ---------------------------------------------------------------------------------------- */

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Returns 0 or an errno. */
static int look_for_entry(const char *folder, bool *found)
{
    DIR *stream = opendir(folder);
    const struct dirent *entry = NULL;
    if (!stream)
        return errno;
    do
        errno = 0;
    while ((entry = readdir(stream)) != NULL && is_dots(entry->d_name));
    const int error = entry ? 0 : errno;
    *found = entry != NULL;
    closedir(stream);
    return error;
}

/* The folder may be missing, or empty. */
static etch_status check_target(const assembling *a)
{
    struct stat info;
    if (lstat(a->folder, &info) != 0 && errno == ENOENT && *a->folder != '\0')
        return ETCH_OK;
    if (lstat(a->folder, &info) != 0)
        return refuse(a, a->folder, errno);
    bool taken = true;
    const int error = S_ISDIR(info.st_mode) ? look_for_entry(a->folder, &taken) : 0;
    if (error != 0)
        return refuse(a, a->folder, error);
    if (!taken)
        return ETCH_OK;
    etch_diag *diag =
        etch_error(a->diags, ETCH_E_ASSEMBLE_FOLDER, (etch_span){0, 0},
                   S_ISDIR(info.st_mode) ? "the folder '%s' is not empty" : "'%s' is no folder", a->folder);
    etch_help(diag, "give the name of a new folder, or of an empty one");
    return ETCH_EINPUT;
}

static etch_status begin_folder(assembling *a)
{
    for (unsigned i = 0;; i++) {
        const char *path = etch_text(a->arena, "%s.etch-%ld-%u", a->folder, (long)getpid(), i);
        if (mkdir(path, 0777) == 0) {
            a->hidden = path;
            break;
        }
        if (errno != EEXIST)
            return refuse(a, a->folder, errno);
    }
    a->files = open(a->hidden, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return a->files < 0 ? refuse(a, a->folder, errno) : ETCH_OK;
}

static void remove_folder(assembling *a)
{
    DIR *stream = opendir(a->hidden);
    const struct dirent *entry;
    while (stream && (entry = readdir(stream)) != NULL)
        if (!is_dots(entry->d_name))
            unlinkat(dirfd(stream), entry->d_name, 0);
    if (stream)
        closedir(stream);
    rmdir(a->hidden);
    a->hidden = NULL;
}

static etch_status assemble(void *data)
{
    assembling *a = data;
    const etch_text_sink sink = {put_files, a};
    etch_status status = check_target(a);
    if (status == ETCH_OK)
        status = begin_folder(a);
    if (status == ETCH_OK)
        status = etch_text_read(a->arena, a->diags, a->text, &sink);
    if (status != ETCH_OK)
        return status;
    if (rename(a->hidden, a->folder) != 0)
        return refuse(a, a->folder, errno);
    a->hidden = NULL;
    return ETCH_OK;
}

etch_status etch_trace_assemble(etch_arena *arena, const etch_source *text, const char *folder,
                                etch_diags *diags, etch_assembly *assembly)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    assembling a = {.arena = arena,
                    .diags = diags,
                    .text = text,
                    .folder = etch_copy_text(arena, folder, length),
                    .files = -1,
                    .assembly = assembly};
    *assembly = (etch_assembly){0};
    etch_status status = etch_guard(etch_arena_mem(arena), assemble, &a);
    if (a.files >= 0)
        close(a.files);
    if (a.hidden)
        remove_folder(&a);
    return status;
}
