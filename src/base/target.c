/* A folder that is written under a hidden name, and appears under its own when all of it is there. */
#define _GNU_SOURCE /* renameat2, syncfs */

#include "base/base_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the name ------------------------------------------------------------------------------------------ */

void etch_target_name(etch_target *target, const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    target->path = etch_copy_text(target->arena, path, length);
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    target->parent = length > 0 ? etch_copy_text(target->arena, path, length) : ".";
}

bool etch_target_is_fixed(const etch_target *target)
{
    struct stat info, parent;
    const char *slash = strrchr(target->path, '/');
    const char *last = slash ? slash + 1 : target->path;
    return *last == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0 ||
           (stat(target->path, &info) == 0 && stat(target->parent, &parent) == 0 &&
            parent.st_dev != info.st_dev);
}

/* ---- beginning ----------------------------------------------------------------------------------------- */

/* Creates the folders that `target->parent` lacks. */
static etch_status create_parents(etch_target *target)
{
    struct stat info;
    size_t length = strlen(target->parent);
    const char *outer = *target->parent == '/' ? "/" : ".";
    target->new_parents = ETCH_NEW_ARRAY(target->arena, length / 2 + 1, const char *);
    for (size_t end = 1; end <= length; end++) {
        if (target->parent[end] != '/' && target->parent[end] != '\0')
            continue;
        const char *part = etch_copy_text(target->arena, target->parent, end);
        if (stat(part, &info) == 0) {
            outer = part;
            continue;
        }
        if (target->new_parent_count == 0)
            target->outer = outer;
        if (mkdir(part, 0777) == 0)
            target->new_parents[target->new_parent_count++] = part;
        else if (errno != EEXIST)
            return etch_io_error(target->diags, "create folder", part, NULL, errno);
    }
    return ETCH_OK;
}

/* A new folder in `place` under a name that nobody has: ".etch-" or ".etch-old-" and two numbers. */
static etch_status create_hidden(const etch_target *target, const char *place, const char *prefix,
                                 const char **hidden)
{
    for (unsigned i = 0;; i++) {
        const char *path = etch_text(target->arena, "%s/%s%ld-%u", place, prefix, (long)getpid(), i);
        if (mkdir(path, 0777) == 0) {
            *hidden = path;
            return ETCH_OK;
        }
        if (errno != EEXIST)
            return etch_io_error(target->diags, "create a folder in", place, NULL, errno);
    }
}

int etch_open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens a folder that was created, and locks it as long as it is open: it is somebody's. 0, an errno, or
 * EAGAIN when another run took it for a leftover between the two. A file system without locks has no others
 * that could. */
static int open_locked(const char *path, int *file)
{
    struct stat info;
    *file = etch_open_folder(path);
    if (*file < 0)
        return errno == ENOENT ? EAGAIN : errno;
    const bool is_taken = flock(*file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_taken && (fstat(*file, &info) != 0 || info.st_nlink > 0))
        return 0;
    close(*file);
    *file = -1;
    return EAGAIN;
}

/* Does the new folder take the name of one that is there? */
static bool keeps_mode(const etch_target *target)
{
    return target->way == ETCH_TARGET_EMPTY || target->way == ETCH_TARGET_EARLIER;
}

/* The new files get the group of the folder that they replace, where it hands it on. */
static etch_status take_group(const etch_target *target)
{
    struct stat info;
    if (!keeps_mode(target))
        return ETCH_OK;
    int error = fstat(target->files, &info) == 0 ? 0 : errno;
    if (error == 0 && info.st_gid != target->group && fchown(target->files, (uid_t)-1, target->group) != 0)
        error = errno;
    if (error == 0 && (target->mode & S_ISGID) && fchmod(target->files, S_ISGID | S_IRWXU) != 0)
        error = errno;
    if (error == 0)
        return ETCH_OK;
    return etch_io_error(target->diags, "keep the group of", target->path, NULL, error);
}

etch_status etch_target_begin(etch_target *target)
{
    const char *place = target->way == ETCH_TARGET_WITHIN ? target->path : target->parent;
    etch_status status = target->way == ETCH_TARGET_MISSING ? create_parents(target) : ETCH_OK;
    int error = EAGAIN;
    if (status == ETCH_OK)
        etch_leftovers_clear(target, place);
    while (status == ETCH_OK && error == EAGAIN) {
        status = create_hidden(target, place, ETCH_HIDDEN, &target->hidden);
        if (status == ETCH_OK)
            error = open_locked(target->hidden, &target->files);
    }
    if (status != ETCH_OK)
        return status;
    if (error != 0)
        return etch_io_error(target->diags, "open", target->hidden, NULL, error);
    return take_group(target);
}

/* ---- the disk ------------------------------------------------------------------------------------------ */

etch_status etch_target_sync_files(const etch_target *target)
{
    if (!target->syncs || syncfs(target->files) == 0)
        return ETCH_OK;
    return etch_io_error(target->diags, "sync", target->path, NULL, errno);
}

/* Returns 0 or an errno. Some file systems have nothing to sync of a folder. */
static int sync_entries(int folder)
{
    return fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
}

etch_status etch_target_sync_entries(const etch_target *target, int folder)
{
    const int error = target->syncs ? sync_entries(folder) : 0;
    return error == 0 ? ETCH_OK : etch_io_error(target->diags, "sync", target->path, NULL, error);
}

static void sync_place(const etch_target *target, const char *place)
{
    const int file = etch_open_folder(place);
    const int error = file < 0 ? errno : sync_entries(file);
    if (file >= 0)
        close(file);
    if (error != 0)
        etch_warning(target->diags, ETCH_E_OUTPUT_SYNC, (etch_span){0, 0},
                     "'%s' is written, but a loss of power now may undo it: cannot sync '%s'", target->path,
                     place);
}

void etch_target_sync_name(const etch_target *target)
{
    if (!target->syncs)
        return;
    sync_place(target, target->way == ETCH_TARGET_WITHIN ? target->path : target->parent);
    for (uint32_t i = 0; i < target->new_parent_count; i++)
        sync_place(target, i == 0 ? target->outer : target->new_parents[i - 1]);
}

/* ---- appearing ----------------------------------------------------------------------------------------- */

static etch_status take_name(etch_target *target)
{
    if (rename(target->hidden, target->path) != 0)
        return etch_io_error(target->diags, "create folder", target->path, NULL, errno);
    target->hidden = NULL;
    return ETCH_OK;
}

static etch_status keep_mode(const etch_target *target)
{
    if (fchmod(target->files, (mode_t)target->mode) != 0)
        return etch_io_error(target->diags, "set the permissions of", target->path, NULL, errno);
    return ETCH_OK;
}

/* Removed file by file, a folder must not look complete meanwhile. */
static void remove_mark(const etch_target *target, const char *path)
{
    const int folder = target->mark ? etch_open_folder(path) : -1;
    if (folder < 0)
        return; /* whatever is wrong, removing the folder says it */
    unlinkat(folder, target->mark, 0);
    close(folder);
}

int etch_remove_folder(const char *path, etch_visit remove_entry, void *data)
{
    int error = etch_for_each_entry(path, remove_entry, data);
    return rmdir(path) == 0 ? 0 : error != 0 ? error : errno;
}

/* Where a file system cannot exchange two names: for a moment the target is away, and the earlier run has a
 * name that says what it is. Then it gets one that says that it may go. */
static etch_status replace_by_two_names(etch_target *target, const char **earlier)
{
    const char *aside = NULL, *replaced = target->hidden;
    etch_status status = create_hidden(target, target->parent, ETCH_HIDDEN_OLD, &aside);
    if (status != ETCH_OK)
        return status;
    if (rename(target->path, aside) != 0) {
        int error = errno;
        rmdir(aside); /* it is empty */
        return etch_io_error(target->diags, "replace", target->path, NULL, error);
    }
    status = take_name(target);
    if (status == ETCH_OK)
        *earlier = rename(aside, replaced) == 0 ? replaced : aside;
    else if (rename(aside, target->path) != 0)
        etch_io_error(target->diags, "put back the earlier run from", aside, NULL, errno);
    return status;
}

static etch_status replace_earlier(etch_target *target, const char **earlier)
{
#ifdef RENAME_EXCHANGE
    if (renameat2(AT_FDCWD, target->hidden, AT_FDCWD, target->path, RENAME_EXCHANGE) == 0) {
        *earlier = target->hidden;
        target->hidden = NULL;
        return ETCH_OK;
    }
#endif
    return replace_by_two_names(target, earlier);
}

etch_status etch_target_appear(etch_target *target, etch_visit remove_earlier, void *data)
{
    const char *earlier = NULL;
    etch_status status = keeps_mode(target) ? keep_mode(target) : ETCH_OK;
    if (status == ETCH_OK)
        status = etch_target_sync_entries(target, target->files);
    if (status == ETCH_OK)
        status = target->way == ETCH_TARGET_EARLIER ? replace_earlier(target, &earlier) : take_name(target);
    if (status != ETCH_OK)
        return status;
    /* only then may the earlier run go */
    etch_target_sync_name(target);
    if (earlier)
        remove_mark(target, earlier);
    if (earlier && etch_remove_folder(earlier, remove_earlier, data) != 0)
        etch_warning(target->diags, ETCH_E_OUTPUT_LEFT, (etch_span){0, 0},
                     "the earlier run could not be removed: it is in '%s' now", earlier);
    return ETCH_OK;
}

etch_status etch_target_appear_file(etch_target *target, const char *name, int file)
{
    int error = !target->syncs || fsync(file) == 0 || errno == EINVAL ? 0 : errno;
    const int closed = etch_file_close(file);
    error = error != 0 ? error : closed;
    if (error == 0 && renameat(target->files, name, AT_FDCWD, target->path) != 0)
        error = errno;
    if (error != 0)
        return etch_io_error(target->diags, "write", target->path, NULL, error);
    etch_target_sync_name(target);
    if (rmdir(target->hidden) != 0)
        etch_warning(target->diags, ETCH_E_OUTPUT_LEFT, (etch_span){0, 0},
                     "'%s' is empty and could not be removed", target->hidden);
    target->hidden = NULL;
    return ETCH_OK;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

void etch_target_close(etch_target *target)
{
    if (target->files >= 0)
        close(target->files);
    target->files = -1;
}

void etch_target_abandon(etch_target *target)
{
    etch_target_close(target);
    if (target->hidden) {
        remove_mark(target, target->hidden);
        (void)!etch_remove_folder(target->hidden, etch_remove_entry, NULL);
    }
    target->hidden = NULL;
    while (target->new_parent_count > 0)
        rmdir(target->new_parents[--target->new_parent_count]);
}
