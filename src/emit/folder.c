/* The output folder: what may be replaced, and how files take their places among those of others. */
#define _POSIX_C_SOURCE 200809L

#include "emit/emit_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- whose files --------------------------------------------------------------------------------------- */

/* Is `text` "<rank>" and the suffix, with a rank below `count`, written as we write it? */
static bool is_rank(const char *text, uint32_t count, const char *suffix)
{
    uint64_t rank = 0;
    if (*text == '0' && text[1] != '.')
        return false;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && rank < count; at++)
        rank = rank * 10 + (uint64_t)(*at - '0');
    return at > text && rank < count && strcmp(at, suffix) == 0;
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
           is_rank(file + length + 1, run->rank_count, run->suffix);
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
    const char *path = etch_text(folder->out.arena, "%s/%s", folder->out.path, name);
    if (etch_read_file(folder->out.arena, path, MOST_BYTES, &text, &length, &why) == ETCH_OK)
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
    return etch_error(folder->out.diags, code, (etch_span){0, 0}, "the output '%s' %s", folder->out.path,
                      what);
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

static etch_status inspect_folder(etch_folder *folder, const struct stat *info, bool force)
{
    survey s = {.folder = folder};
    etch_status status = etch_manifest_read(folder, &folder->earlier);
    if (status != ETCH_OK)
        return status;
    int error = etch_for_each_entry(folder->out.path, survey_entry, &s);
    if (error != 0)
        return etch_io_error(folder->out.diags, "read", folder->out.path, NULL, error);
    if (s.foreign > 0 && !force)
        return refuse_foreign(folder, &s);
    if (s.blocker[0] != '\0')
        return refuse_blocker(folder, &s);
    folder->out.mode = info->st_mode & 07777;
    folder->out.group = info->st_gid;
    if (s.foreign > 0 || etch_target_is_fixed(&folder->out))
        folder->out.way = ETCH_TARGET_WITHIN;
    else
        folder->out.way = s.entries > 0 ? ETCH_TARGET_EARLIER : ETCH_TARGET_EMPTY;
    return ETCH_OK;
}

etch_status etch_folder_inspect(etch_folder *folder, const char *path, bool force)
{
    struct stat info;
    etch_target_name(&folder->out, path);
    if (*path == '\0' || etch_has_control(path)) {
        etch_diag *diag = refuse(folder, ETCH_E_OUTPUT_KIND, "is no name of a folder");
        if (*path != '\0')
            etch_note(diag, (etch_span){0, 0}, "it has control characters");
        return ETCH_EINPUT;
    }
    if (lstat(folder->out.path, &info) != 0) {
        folder->out.way = ETCH_TARGET_MISSING;
        return errno == ENOENT
                   ? ETCH_OK
                   : etch_io_error(folder->out.diags, "create folder", folder->out.path, NULL, errno);
    }
    return S_ISDIR(info.st_mode) ? inspect_folder(folder, &info, force) : refuse_kind(folder, info.st_mode);
}

/* ---- within a folder of others ------------------------------------------------------------------------- */

/* What the run replaces steps aside into a second hidden folder, so that a failure can put it back. */
static int step_aside(const etch_folder *folder, const char *name, const char *hidden_name)
{
    return renameat(folder->filled, name, folder->old, hidden_name) == 0 || errno == ENOENT ? 0 : errno;
}

static int step_aside_earlier(void *data, int folder, const char *name)
{
    const etch_folder *of = data;
    (void)folder;
    return is_earlier(of, name) ? step_aside(of, name, name) : 0;
}

static int remove_earlier(void *data, int folder, const char *name)
{
    const etch_folder *of = data;
    if (is_earlier(of, name) && unlinkat(folder, name, 0) != 0)
        return errno;
    return 0;
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
        etch_trace_name(folder->ours.name, rank, folder->ours.suffix, name);
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
    /* what it speaks of is there before it is */
    if (strcmp(name, ETCH_MANIFEST_FILE) == 0 &&
        etch_target_sync_entries(&folder->out, folder->filled) != ETCH_OK)
        return ETCH_EIO;
    int error = step_aside(folder, name, hidden_name);
    if (error == 0 && renameat(folder->out.files, hidden_name, folder->filled, name) != 0)
        error = errno;
    if (error != 0)
        return etch_io_error(folder->out.diags, "write", folder->out.path, name, error);
    folder->placed++;
    return ETCH_OK;
}

static etch_status take_back_file(etch_folder *folder, const char *hidden_name, const char *name)
{
    (void)hidden_name;
    if (folder->placed > 0 && unlinkat(folder->filled, name, 0) == 0)
        folder->placed--;
    return ETCH_OK;
}

static int return_file(void *data, int folder, const char *name)
{
    const etch_folder *of = data;
    if (strcmp(name, ETCH_MANIFEST_WAITING) == 0)
        return 0;
    return renameat(folder, name, of->filled, name) == 0 ? 0 : errno;
}

/* Leaves the target as it was before `fill_target`. Returns 0 or an errno; allocates nothing. */
static int undo_filling(etch_folder *folder)
{
    for_each_file(folder, take_back_file);
    int error = etch_for_each_entry(folder->aside, return_file, folder);
    if (folder->out.syncs)
        (void)fsync(folder->filled);
    if (error == 0 && renameat(folder->old, ETCH_MANIFEST_WAITING, folder->filled, ETCH_MANIFEST_FILE) != 0 &&
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
    if (error == 0 && etch_target_sync_entries(&folder->out, folder->filled) != ETCH_OK)
        return ETCH_EIO;
    if (error == 0)
        error = etch_for_each_entry(folder->out.path, step_aside_earlier, folder);
    if (error != 0)
        return etch_io_error(folder->out.diags, "replace an earlier run in", folder->out.path, NULL, error);
    return for_each_file(folder, place_file);
}

/* The run is in place. What it replaced gets a name that says so, lest it be taken for an only copy. */
static void remove_aside(etch_folder *folder)
{
    const char *replaced = etch_text(folder->out.arena, "%s/%s", folder->out.hidden, ETCH_REPLACED);
    if (rename(folder->aside, replaced) != 0)
        replaced = folder->aside;
    if (etch_remove_folder(replaced, etch_remove_entry, NULL) != 0)
        etch_warning(folder->out.diags, ETCH_E_OUTPUT_LEFT, (etch_span){0, 0},
                     "the earlier run could not be removed: it is in '%s' now", replaced);
    else if (rmdir(folder->out.hidden) != 0)
        etch_warning(folder->out.diags, ETCH_E_OUTPUT_LEFT, (etch_span){0, 0},
                     "'%s' is empty and could not be removed", folder->out.hidden);
    folder->aside = folder->out.hidden = NULL;
}

static etch_status fill_target(etch_folder *folder)
{
    folder->filled = etch_open_folder(folder->out.path);
    if (folder->filled < 0)
        return etch_io_error(folder->out.diags, "open", folder->out.path, NULL, errno);
    const char *aside = etch_text(folder->out.arena, "%s/%s", folder->out.hidden, ETCH_ASIDE);
    if (mkdir(aside, 0777) != 0)
        return etch_io_error(folder->out.diags, "create a folder in", folder->out.hidden, NULL, errno);
    folder->aside = aside;
    folder->old = etch_open_folder(aside);
    if (folder->old < 0) {
        const int error = errno;
        rmdir(aside); /* it is empty */
        folder->aside = NULL;
        return etch_io_error(folder->out.diags, "open", aside, NULL, error);
    }
    etch_status status = etch_target_sync_entries(&folder->out, folder->out.files);
    if (status == ETCH_OK)
        status = replace_files(folder);
    if (status == ETCH_OK) {
        etch_target_sync_name(&folder->out);
        remove_aside(folder);
        return ETCH_OK;
    }
    const int error = undo_filling(folder);
    if (error != 0)
        etch_io_error(folder->out.diags, "put back the earlier run from", aside, NULL, error);
    return status;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static etch_status take_name(etch_folder *folder)
{
    if (renameat(folder->out.files, ETCH_MANIFEST_WAITING, folder->out.files, ETCH_MANIFEST_FILE) != 0)
        return etch_io_error(folder->out.diags, "write", folder->out.path, ETCH_MANIFEST_FILE, errno);
    return etch_target_appear(&folder->out, remove_earlier, folder);
}

static void close_all(etch_folder *folder)
{
    etch_target_close(&folder->out);
    if (folder->filled >= 0)
        close(folder->filled);
    if (folder->old >= 0)
        close(folder->old);
    folder->filled = folder->old = -1;
}

etch_status etch_folder_commit(etch_folder *folder)
{
    etch_status status = etch_target_sync_files(&folder->out);
    if (status == ETCH_OK)
        status = folder->out.way == ETCH_TARGET_WITHIN ? fill_target(folder) : take_name(folder);
    close_all(folder);
    return status;
}

void etch_folder_abandon(etch_folder *folder)
{
    if (folder->aside)
        undo_filling(folder);
    close_all(folder);
    etch_target_abandon(&folder->out);
}
