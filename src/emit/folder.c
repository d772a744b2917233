/* The output folder: what may be replaced, and how a run appears as a whole or not at all. */
#define _GNU_SOURCE /* renameat2, syncfs */

#include "emit/emit_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- whose files --------------------------------------------------------------------------------------- */

/* Is `text` "<rank>.et" with a rank below `count`, written as we write it? */
static bool is_rank(const char *text, uint32_t count)
{
    uint64_t rank = 0;
    if (*text == '0' && text[1] != '.')
        return false;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && rank < count; at++)
        rank = rank * 10 + (uint64_t)(*at - '0');
    return at > text && rank < count && strcmp(at, ETCH_CHAKRA_SUFFIX) == 0;
}

/* Is it a file for ASTRA-sim that its owner has edited, or made? */
static bool is_kept(const etch_folder *folder, const char *file)
{
    const uint32_t at = etch_astra_sim_file(file);
    return at < ETCH_ASTRA_SIM_FILES && folder->kept[at];
}

static bool run_owns(const etch_run_files *run, const char *file)
{
    size_t length = strlen(run->name);
    if (!run->known)
        return false;
    if (strcmp(file, ETCH_MANIFEST_FILE) == 0 || strcmp(file, ETCH_CHAKRA_GROUP_FILE) == 0)
        return true;
    if (run->astra_sim && etch_astra_sim_file(file) < ETCH_ASTRA_SIM_FILES)
        return true;
    return strncmp(file, run->name, length) == 0 && file[length] == '.' &&
           is_rank(file + length + 1, run->rank_count);
}

/* Of the earlier run, and as that wrote it. */
static bool is_earlier(const etch_folder *folder, const char *file)
{
    return run_owns(&folder->earlier, file) && !is_kept(folder, file);
}

/* ---- looking ------------------------------------------------------------------------------------------- */

typedef struct survey {
    etch_folder *folder;
    uint32_t entries, foreign;
    /* in the order of bytes */
    char first_foreign[ETCH_FILE_NAME];
    /* a folder under the name of a file that we will write */
    char blocker[ETCH_FILE_NAME];
} survey;

/* Marks a file for ASTRA-sim that does not hold what the earlier run wrote. */
static void compare_machine(etch_folder *folder, const char *name)
{
    enum { MOST_BYTES = 1 << 20 }; /* what etch writes is far smaller */
    const uint32_t at = etch_astra_sim_file(name);
    char *text, hash[ETCH_SHA256_TEXT] = "";
    size_t length;
    const char *why;
    if (at == ETCH_ASTRA_SIM_FILES)
        return;
    const char *path = etch_text(folder->arena, "%s/%s", folder->path, name);
    if (etch_read_file(folder->arena, path, MOST_BYTES, &text, &length, &why) == ETCH_OK)
        etch_sha256(&(etch_piece){text, length}, 1, hash);
    folder->kept[at] = hash[0] == '\0' || strcmp(hash, folder->earlier.machine[at]) != 0;
}

static int survey_entry(void *data, int folder, const char *name)
{
    survey *s = data;
    struct stat info;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : errno; /* what is gone meanwhile is in nobody's way */
    bool regular = S_ISREG(info.st_mode);
    s->entries++;
    if (!regular && run_owns(&s->folder->ours, name))
        snprintf(s->blocker, sizeof s->blocker, "%s", name);
    if (regular)
        compare_machine(s->folder, name);
    if (regular && is_earlier(s->folder, name))
        return 0;
    if (s->foreign++ == 0 || strcmp(name, s->first_foreign) < 0)
        snprintf(s->first_foreign, sizeof s->first_foreign, "%s", name);
    return 0;
}

static etch_diag *refuse(const etch_folder *folder, etch_code code, const char *what)
{
    return etch_error(folder->diags, code, (etch_span){0, 0}, "the output '%s' %s", folder->path, what);
}

static etch_status refuse_kind(const etch_folder *folder, mode_t mode)
{
    if (S_ISLNK(mode)) {
        etch_diag *diag = refuse(folder, ETCH_E_OUTPUT_KIND, "is a symbolic link");
        etch_help(diag, "give the folder that the link leads to");
    } else {
        etch_diag *diag = refuse(folder, ETCH_E_OUTPUT_KIND, "is a file");
        etch_help(diag,
                  "give the name of a new folder, of an empty one, or of one that holds an earlier run");
    }
    return ETCH_EINPUT;
}

static etch_status refuse_foreign(const etch_folder *folder, const survey *s)
{
    etch_diag *diag = refuse(folder, ETCH_E_OUTPUT_TAKEN, "holds files that no run of etch wrote");
    etch_note(diag, (etch_span){0, 0}, "the first of %u is '%s'%s", (unsigned)s->foreign, s->first_foreign,
              run_owns(&folder->earlier, s->first_foreign) && is_kept(folder, s->first_foreign)
                  ? ", which is not as etch wrote it"
                  : "");
    etch_help(diag, "give another folder; or --force, which replaces traces, '%s' and '%s' only",
              ETCH_CHAKRA_GROUP_FILE, ETCH_MANIFEST_FILE);
    return ETCH_EINPUT;
}

static etch_status refuse_blocker(const etch_folder *folder, const survey *s)
{
    etch_diag *diag =
        refuse(folder, ETCH_E_OUTPUT_TAKEN, "has something else under the name of a file to write");
    etch_note(diag, (etch_span){0, 0}, "'%s' is no regular file", s->blocker);
    return ETCH_EINPUT;
}

/* Can the target not be renamed, because it is "." or "..", the root, or where a file system is mounted? */
static bool is_fixed(const etch_folder *folder, dev_t device)
{
    struct stat parent;
    const char *slash = strrchr(folder->path, '/');
    const char *last = slash ? slash + 1 : folder->path;
    return *last == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0 ||
           stat(folder->parent, &parent) != 0 || parent.st_dev != device;
}

static etch_status inspect_folder(etch_folder *folder, const struct stat *info, bool force)
{
    survey s = {.folder = folder};
    etch_status status = etch_manifest_read(folder, &folder->earlier);
    if (status != ETCH_OK)
        return status;
    int error = etch_for_each_entry(folder->path, survey_entry, &s);
    if (error != 0)
        return etch_io_error(folder->diags, "read", folder->path, NULL, error);
    if (s.foreign > 0 && !force)
        return refuse_foreign(folder, &s);
    if (s.blocker[0] != '\0')
        return refuse_blocker(folder, &s);
    folder->mode = info->st_mode & 07777;
    folder->group = info->st_gid;
    if (s.foreign > 0 || is_fixed(folder, info->st_dev))
        folder->way = ETCH_FOLDER_WITHIN;
    else
        folder->way = s.entries > 0 ? ETCH_FOLDER_EARLIER : ETCH_FOLDER_EMPTY;
    return ETCH_OK;
}

static void split_path(etch_folder *folder, const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    folder->path = etch_copy_text(folder->arena, path, length);
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    folder->parent = length > 0 ? etch_copy_text(folder->arena, path, length) : ".";
}

etch_status etch_folder_inspect(etch_folder *folder, const char *path, bool force)
{
    struct stat info;
    split_path(folder, path);
    if (*path == '\0' || etch_has_control(path)) {
        etch_diag *diag = refuse(folder, ETCH_E_OUTPUT_KIND, "is no name of a folder");
        if (*path != '\0')
            etch_note(diag, (etch_span){0, 0}, "it has control characters");
        return ETCH_EINPUT;
    }
    if (lstat(folder->path, &info) != 0) {
        folder->way = ETCH_FOLDER_MISSING;
        return errno == ENOENT ? ETCH_OK
                               : etch_io_error(folder->diags, "create folder", folder->path, NULL, errno);
    }
    return S_ISDIR(info.st_mode) ? inspect_folder(folder, &info, force) : refuse_kind(folder, info.st_mode);
}

/* ---- beginning ----------------------------------------------------------------------------------------- */

/* Creates the folders that `folder->parent` lacks. */
static etch_status create_parents(etch_folder *folder)
{
    struct stat info;
    size_t length = strlen(folder->parent);
    folder->new_parents = ETCH_NEW_ARRAY(folder->arena, length / 2 + 1, const char *);
    for (size_t end = 1; end <= length; end++) {
        if (folder->parent[end] != '/' && folder->parent[end] != '\0')
            continue;
        const char *part = etch_copy_text(folder->arena, folder->parent, end);
        if (stat(part, &info) == 0)
            continue;
        if (mkdir(part, 0777) == 0)
            folder->new_parents[folder->new_parent_count++] = part;
        else if (errno != EEXIST)
            return etch_io_error(folder->diags, "create folder", part, NULL, errno);
    }
    return ETCH_OK;
}

/* A new folder in `place` under a name that nobody has: ".etch-" or ".etch-old-" and two numbers. */
static etch_status create_hidden(const etch_folder *folder, const char *place, const char *prefix,
                                 const char **hidden)
{
    for (unsigned i = 0;; i++) {
        const char *path = etch_text(folder->arena, "%s/%s%ld-%u", place, prefix, (long)getpid(), i);
        if (mkdir(path, 0777) == 0) {
            *hidden = path;
            return ETCH_OK;
        }
        if (errno != EEXIST)
            return etch_io_error(folder->diags, "create a folder in", place, NULL, errno);
    }
}

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens a folder that was created, and locks it as long as it is open: it is somebody's. 0, an errno, or
 * EAGAIN when another run took it for a leftover between the two. A file system without locks has no others
 * that could. */
static int open_locked(const char *path, int *file)
{
    struct stat info;
    *file = open_folder(path);
    if (*file < 0)
        return errno == ENOENT ? EAGAIN : errno;
    const bool is_taken = flock(*file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_taken && (fstat(*file, &info) != 0 || info.st_nlink > 0))
        return 0;
    close(*file);
    *file = -1;
    return EAGAIN;
}

/* The new files get the group of the folder that they replace, where it hands it on. */
static etch_status take_group(const etch_folder *folder)
{
    struct stat info;
    if (folder->way != ETCH_FOLDER_EMPTY && folder->way != ETCH_FOLDER_EARLIER)
        return ETCH_OK;
    int error = fstat(folder->files, &info) == 0 ? 0 : errno;
    if (error == 0 && info.st_gid != folder->group && fchown(folder->files, (uid_t)-1, folder->group) != 0)
        error = errno;
    if (error == 0 && (folder->mode & S_ISGID) && fchmod(folder->files, S_ISGID | S_IRWXU) != 0)
        error = errno;
    if (error == 0)
        return ETCH_OK;
    return etch_io_error(folder->diags, "keep the group of", folder->path, NULL, error);
}

etch_status etch_folder_begin(etch_folder *folder)
{
    const char *place = folder->way == ETCH_FOLDER_WITHIN ? folder->path : folder->parent;
    etch_status status = folder->way == ETCH_FOLDER_MISSING ? create_parents(folder) : ETCH_OK;
    int error = EAGAIN;
    if (status == ETCH_OK)
        etch_leftovers_clear(folder->diags, place);
    while (status == ETCH_OK && error == EAGAIN) {
        status = create_hidden(folder, place, ETCH_HIDDEN, &folder->hidden);
        if (status == ETCH_OK)
            error = open_locked(folder->hidden, &folder->files);
    }
    if (status != ETCH_OK)
        return status;
    if (error != 0)
        return etch_io_error(folder->diags, "open", folder->hidden, NULL, error);
    return take_group(folder);
}

/* ---- committing ---------------------------------------------------------------------------------------- */

static void close_all(etch_folder *folder)
{
    if (folder->files >= 0)
        close(folder->files);
    if (folder->target >= 0)
        close(folder->target);
    if (folder->old >= 0)
        close(folder->old);
    folder->files = folder->target = folder->old = -1;
}

static etch_status take_name(etch_folder *folder)
{
    if (rename(folder->hidden, folder->path) != 0)
        return etch_io_error(folder->diags, "create folder", folder->path, NULL, errno);
    folder->hidden = NULL;
    return ETCH_OK;
}

static etch_status keep_mode(const etch_folder *folder)
{
    if (fchmod(folder->files, (mode_t)folder->mode) != 0)
        return etch_io_error(folder->diags, "set the permissions of", folder->path, NULL, errno);
    return ETCH_OK;
}

static int remove_earlier(void *data, int folder, const char *name)
{
    const etch_folder *of = data;
    if (is_earlier(of, name) && unlinkat(folder, name, 0) != 0)
        return errno;
    return 0;
}

/* Removes a folder and the files in it that `remove_entry` removes. */
static int remove_folder(const char *path, etch_visit remove_entry, void *data)
{
    int error = etch_for_each_entry(path, remove_entry, data);
    return rmdir(path) == 0 ? 0 : error != 0 ? error : errno;
}

/* Removed file by file, a folder must not look finished meanwhile. */
static void remove_manifest(const char *path)
{
    int folder = open_folder(path);
    if (folder < 0)
        return; /* whatever is wrong, removing the folder says it */
    unlinkat(folder, ETCH_MANIFEST_FILE, 0);
    close(folder);
}

/* The earlier run is at `place`, and the new one under its name. */
static void remove_replaced(etch_folder *folder, const char *place)
{
    remove_manifest(place);
    if (remove_folder(place, remove_earlier, folder) != 0)
        etch_warning(folder->diags, ETCH_E_OUTPUT_LEFT, (etch_span){0, 0},
                     "the earlier run could not be removed: it is in '%s' now", place);
}

/* Where a file system cannot exchange two names: for a moment the target is away, and the earlier run has a
 * name that says what it is. */
static etch_status replace_by_two_names(etch_folder *folder)
{
    const char *aside = NULL;
    etch_status status = create_hidden(folder, folder->parent, ETCH_HIDDEN_OLD, &aside);
    if (status != ETCH_OK)
        return status;
    if (rename(folder->path, aside) != 0) {
        int error = errno;
        rmdir(aside); /* it is empty */
        return etch_io_error(folder->diags, "replace", folder->path, NULL, error);
    }
    status = take_name(folder);
    if (status == ETCH_OK)
        remove_replaced(folder, aside);
    else if (rename(aside, folder->path) != 0)
        etch_io_error(folder->diags, "put back the earlier run from", aside, NULL, errno);
    return status;
}

static etch_status replace_earlier(etch_folder *folder)
{
#ifdef RENAME_EXCHANGE
    if (renameat2(AT_FDCWD, folder->hidden, AT_FDCWD, folder->path, RENAME_EXCHANGE) == 0) {
        const char *earlier = folder->hidden;
        folder->hidden = NULL;
        remove_replaced(folder, earlier);
        return ETCH_OK;
    }
#endif
    return replace_by_two_names(folder);
}

/* ---- within a folder of others ------------------------------------------------------------------------- */

/* What the run replaces steps aside into a second hidden folder, so that a failure can put it back. */
static int step_aside(const etch_folder *folder, const char *name, const char *hidden_name)
{
    return renameat(folder->target, name, folder->old, hidden_name) == 0 || errno == ENOENT ? 0 : errno;
}

static int step_aside_earlier(void *data, int folder, const char *name)
{
    const etch_folder *of = data;
    (void)folder;
    return is_earlier(of, name) ? step_aside(of, name, name) : 0;
}

/* Calls act(folder, hidden name, name) for the files of the run, the manifest last, until one fails. */
static etch_status for_each_file(etch_folder *folder,
                                 etch_status (*act)(etch_folder *folder, const char *hidden_name,
                                                    const char *name))
{
    char name[ETCH_FILE_NAME];
    etch_status status = ETCH_OK;
    for (uint32_t rank = 0; rank < folder->ours.rank_count && status == ETCH_OK; rank++) {
        if (folder->ranks && !etch_intervals_hold(folder->ranks, rank))
            continue;
        etch_trace_name(folder->ours.name, rank, name);
        status = act(folder, name, name);
    }
    for (uint32_t i = 0; i < folder->extra_count && status == ETCH_OK; i++)
        status = folder->kept[i] ? ETCH_OK : act(folder, folder->extras[i].name, folder->extras[i].name);
    if (status == ETCH_OK)
        status = act(folder, ETCH_CHAKRA_GROUP_FILE, ETCH_CHAKRA_GROUP_FILE);
    return status == ETCH_OK ? act(folder, ETCH_MANIFEST_WAITING, ETCH_MANIFEST_FILE) : status;
}

static etch_status place_file(etch_folder *folder, const char *hidden_name, const char *name)
{
    int error = step_aside(folder, name, hidden_name);
    if (error == 0 && renameat(folder->files, hidden_name, folder->target, name) != 0)
        error = errno;
    if (error != 0)
        return etch_io_error(folder->diags, "write", folder->path, name, error);
    folder->placed++;
    return ETCH_OK;
}

static etch_status take_back_file(etch_folder *folder, const char *hidden_name, const char *name)
{
    (void)hidden_name;
    if (folder->placed > 0 && unlinkat(folder->target, name, 0) == 0)
        folder->placed--;
    return ETCH_OK;
}

static int return_file(void *data, int folder, const char *name)
{
    const etch_folder *of = data;
    if (strcmp(name, ETCH_MANIFEST_WAITING) == 0)
        return 0;
    return renameat(folder, name, of->target, name) == 0 ? 0 : errno;
}

/* Leaves the target as it was before `fill_target`. Returns 0 or an errno; allocates nothing. */
static int undo_filling(etch_folder *folder)
{
    for_each_file(folder, take_back_file);
    int error = etch_for_each_entry(folder->aside, return_file, folder);
    if (error == 0 && renameat(folder->old, ETCH_MANIFEST_WAITING, folder->target, ETCH_MANIFEST_FILE) != 0 &&
        errno != ENOENT)
        error = errno;
    if (error == 0)
        rmdir(folder->aside);
    folder->aside = NULL;
    return error;
}

/* The manifest goes first and comes last: without it a folder does not look finished. */
static etch_status replace_files(etch_folder *folder)
{
    int error = step_aside(folder, ETCH_MANIFEST_FILE, ETCH_MANIFEST_WAITING);
    if (error == 0)
        error = etch_for_each_entry(folder->path, step_aside_earlier, folder);
    if (error != 0)
        return etch_io_error(folder->diags, "replace an earlier run in", folder->path, NULL, error);
    return for_each_file(folder, place_file);
}

/* The run is in place. What it replaced gets a name that says so, lest it be taken for an only copy. */
static void remove_aside(etch_folder *folder)
{
    const char *replaced = etch_text(folder->arena, "%s/%s", folder->hidden, ETCH_REPLACED);
    if (rename(folder->aside, replaced) != 0)
        replaced = folder->aside;
    if (remove_folder(replaced, etch_remove_entry, NULL) != 0)
        etch_warning(folder->diags, ETCH_E_OUTPUT_LEFT, (etch_span){0, 0},
                     "the earlier run could not be removed: it is in '%s' now", replaced);
    else if (rmdir(folder->hidden) != 0)
        etch_warning(folder->diags, ETCH_E_OUTPUT_LEFT, (etch_span){0, 0},
                     "'%s' is empty and could not be removed", folder->hidden);
    folder->aside = folder->hidden = NULL;
}

static etch_status fill_target(etch_folder *folder)
{
    folder->target = open_folder(folder->path);
    if (folder->target < 0)
        return etch_io_error(folder->diags, "open", folder->path, NULL, errno);
    const char *aside = etch_text(folder->arena, "%s/%s", folder->hidden, ETCH_ASIDE);
    if (mkdir(aside, 0777) != 0)
        return etch_io_error(folder->diags, "create a folder in", folder->hidden, NULL, errno);
    folder->aside = aside;
    folder->old = open_folder(aside);
    if (folder->old < 0) {
        const int error = errno;
        rmdir(aside); /* it is empty */
        folder->aside = NULL;
        return etch_io_error(folder->diags, "open", aside, NULL, error);
    }
    etch_status status = replace_files(folder);
    if (status == ETCH_OK) {
        remove_aside(folder);
        return ETCH_OK;
    }
    const int error = undo_filling(folder);
    if (error != 0)
        etch_io_error(folder->diags, "put back the earlier run from", aside, NULL, error);
    return status;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* A manifest says that the files are there: so they are, whatever the machine does next. */
static etch_status sync_files(const etch_folder *folder)
{
    if (!folder->syncs || syncfs(folder->files) == 0)
        return ETCH_OK;
    return etch_io_error(folder->diags, "sync", folder->path, NULL, errno);
}

/* The new names, too. */
static void sync_names(const etch_folder *folder)
{
    const char *place = folder->way == ETCH_FOLDER_WITHIN ? folder->path : folder->parent;
    if (!folder->syncs)
        return;
    const int file = open_folder(place);
    /* some file systems have nothing to sync of a folder */
    const int error = file < 0 ? errno : fsync(file) != 0 && errno != EINVAL ? errno : 0;
    if (file >= 0)
        close(file);
    if (error != 0)
        etch_warning(folder->diags, ETCH_E_OUTPUT_SYNC, (etch_span){0, 0},
                     "'%s' is written, but a loss of power now may undo it: cannot sync '%s'", folder->path,
                     place);
}

static etch_status put_in_place(etch_folder *folder)
{
    if (folder->way == ETCH_FOLDER_WITHIN)
        return fill_target(folder);
    if (renameat(folder->files, ETCH_MANIFEST_WAITING, folder->files, ETCH_MANIFEST_FILE) != 0)
        return etch_io_error(folder->diags, "write", folder->path, ETCH_MANIFEST_FILE, errno);
    return folder->way == ETCH_FOLDER_EARLIER ? replace_earlier(folder) : take_name(folder);
}

etch_status etch_folder_commit(etch_folder *folder)
{
    etch_status status = sync_files(folder);
    if (status == ETCH_OK && (folder->way == ETCH_FOLDER_EMPTY || folder->way == ETCH_FOLDER_EARLIER))
        status = keep_mode(folder);
    if (status == ETCH_OK)
        status = put_in_place(folder);
    if (status == ETCH_OK)
        sync_names(folder);
    close_all(folder);
    return status;
}

void etch_folder_abandon(etch_folder *folder)
{
    if (folder->aside)
        undo_filling(folder);
    close_all(folder);
    if (folder->hidden) {
        remove_manifest(folder->hidden);
        remove_folder(folder->hidden, etch_remove_entry, NULL);
    }
    folder->hidden = NULL;
    while (folder->new_parent_count > 0)
        rmdir(folder->new_parents[--folder->new_parent_count]);
}
