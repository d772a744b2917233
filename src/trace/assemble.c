/* Files of a text, written into a folder that appears under its name when all of them are there. */
#define _POSIX_C_SOURCE 200809L

#include "trace/text_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct assembling {
    const etch_assemble_options *options;
    const etch_source *text;
    etch_target target;
    etch_assembly *assembly;
} assembling;

static etch_status refuse(const assembling *a, const char *what, const char *help)
{
    etch_diag *diag = etch_error(a->target.diags, ETCH_E_ASSEMBLE_FOLDER, (etch_span){0, 0}, "'%s' %s",
                                 a->target.path, what);
    etch_help(diag, "%s", help);
    return ETCH_EINPUT;
}

static etch_status fail(const assembling *a, const char *name, int error)
{
    return etch_io_error(a->target.diags, "write", a->target.path, name, error);
}

/* ---- files --------------------------------------------------------------------------------------------- */

static etch_status check_cancel(const assembling *a)
{
    if (!a->options->cancel || atomic_load(a->options->cancel) == 0)
        return ETCH_OK;
    return etch_cancelled(a->target.diags, a->target.path);
}

static etch_status put_file(const assembling *a, const char *name, const char *bytes, size_t length)
{
    const int error = etch_file_put(a->target.files, name, bytes, length);
    if (error == EEXIST) {
        etch_error(a->target.diags, ETCH_E_TEXT_FILE, (etch_span){0, 0}, "the file '%s' is there twice",
                   name);
        return ETCH_EINPUT;
    }
    return error == 0 ? check_cancel(a) : fail(a, name, error);
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

static int fail_at_first(void *data, int folder, const char *name)
{
    (void)data, (void)folder, (void)name;
    return EEXIST;
}

static etch_status inspect_folder(assembling *a, const struct stat *info)
{
    etch_target *target = &a->target;
    const int error = etch_for_each_entry(target->path, fail_at_first, NULL);
    if (error != 0 && error != EEXIST)
        return etch_io_error(target->diags, "read", target->path, NULL, error);
    if (error == EEXIST && !a->options->force)
        return refuse(a, "is not an empty folder",
                      "give the name of a new folder, or of an empty one; or --force, which replaces files "
                      "of the same names");
    if (etch_target_is_fixed(target))
        return refuse(a, "cannot be replaced by another folder", "give the name of a new folder");
    target->way = error == EEXIST ? ETCH_TARGET_EARLIER : ETCH_TARGET_EMPTY;
    target->mode = info->st_mode & 07777;
    target->group = info->st_gid;
    return ETCH_OK;
}

/* The target may be missing, or empty; with `force` it may hold files. */
static etch_status inspect(assembling *a)
{
    struct stat info;
    etch_target_name(&a->target, a->options->folder);
    if (*a->options->folder == '\0' || etch_has_control(a->options->folder))
        return refuse(a, "is no name of a folder", "give the name of a new folder");
    a->target.way = ETCH_TARGET_MISSING;
    if (lstat(a->target.path, &info) != 0)
        return errno == ENOENT ? ETCH_OK : fail(a, NULL, errno);
    if (S_ISDIR(info.st_mode))
        return inspect_folder(a, &info);
    return refuse(a, "is no folder", "give the name of a new folder, or of an empty one");
}

/* Is it a file in the place of which another one was written? Else EEXIST, or why that cannot be told. */
static int check_entry(void *data, int folder, const char *name)
{
    const assembling *a = data;
    struct stat info;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : errno;
    if (!S_ISREG(info.st_mode) || fstatat(a->target.files, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return S_ISREG(info.st_mode) && errno != ENOENT ? errno : EEXIST;
    return 0;
}

/* Everything that is replaced has a successor. */
static etch_status check_earlier(assembling *a)
{
    const int error =
        a->target.way == ETCH_TARGET_EARLIER ? etch_for_each_entry(a->target.path, check_entry, a) : 0;
    if (error == EEXIST)
        return refuse(a, "holds files that the text does not make", "give the name of a new folder");
    return error == 0 ? ETCH_OK : etch_io_error(a->target.diags, "read", a->target.path, NULL, error);
}

/* What came into the folder since then stays. */
static int remove_earlier(void *data, int folder, const char *name)
{
    const assembling *a = data;
    struct stat info;
    return fstatat(a->target.files, name, &info, AT_SYMLINK_NOFOLLOW) == 0
               ? etch_remove_entry(NULL, folder, name)
               : 0;
}

static etch_status assemble(void *data)
{
    assembling *a = data;
    const etch_text_sink sink = {put_files, a};
    etch_status status = inspect(a);
    if (status == ETCH_OK)
        status = etch_target_begin(&a->target);
    if (status == ETCH_OK)
        status = etch_text_read(a->target.arena, a->target.diags, a->text, &sink);
    if (status == ETCH_OK)
        status = check_earlier(a);
    if (status == ETCH_OK)
        status = etch_target_sync_files(&a->target);
    if (status == ETCH_OK)
        status = check_cancel(a);
    return status == ETCH_OK ? etch_target_appear(&a->target, remove_earlier, a) : status;
}

etch_status etch_trace_assemble(etch_arena *arena, const etch_source *text,
                                const etch_assemble_options *options, etch_diags *diags,
                                etch_assembly *assembly)
{
    assembling a = {
        .options = options,
        .text = text,
        .target = {.arena = arena, .diags = diags, .syncs = options->syncs, .files = -1},
        .assembly = assembly,
    };
    *assembly = (etch_assembly){0};
    etch_status status = etch_guard(etch_arena_mem(arena), assemble, &a);
    if (status == ETCH_OK)
        etch_target_close(&a.target);
    else
        etch_target_abandon(&a.target);
    return status;
}
