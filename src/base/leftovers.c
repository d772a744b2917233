/* What killed runs left: hidden folders that no process holds. */
#define _DEFAULT_SOURCE /* flock, O_NOFOLLOW */

#include "base/base_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

typedef struct clearing {
    etch_diags *diags;
    const char *mark, *place;
} clearing;

static bool skip_number(const char **at)
{
    const size_t digits = strspn(*at, "0123456789");
    *at += digits;
    return digits > 0;
}

/* Is it a name of ours? Says whether of an earlier run. */
static bool is_hidden(const char *name, bool *is_earlier)
{
    *is_earlier = strncmp(name, ETCH_HIDDEN_OLD, strlen(ETCH_HIDDEN_OLD)) == 0;
    if (strncmp(name, ETCH_HIDDEN, strlen(ETCH_HIDDEN)) != 0)
        return false;
    name += strlen(*is_earlier ? ETCH_HIDDEN_OLD : ETCH_HIDDEN);
    return skip_number(&name) && *name++ == '-' && skip_number(&name) && *name == '\0';
}

static int fail_at_first(void *data, int folder, const char *name)
{
    (void)data, (void)folder, (void)name;
    return EEXIST;
}

static bool holds_files(const char *path)
{
    return etch_for_each_entry(path, fail_at_first, NULL) == EEXIST;
}

static void say_kept(const clearing *c, const char *path, const char *files)
{
    etch_diag *diag = etch_warning(c->diags, ETCH_E_OUTPUT_KILLED, (etch_span){0, 0},
                                   "'%s' holds what a killed run was about to replace", files);
    etch_help(diag, "move it back to where it belongs, or remove '%s'", path);
}

/* Whatever is wrong with an entry, the folder that holds it cannot be removed then. */
static void remove_leftover(const clearing *c, int file, const char *path, const char *replaced)
{
    if (c->mark)
        (void)unlinkat(file, c->mark, 0); /* removed file by file, it must not look complete meanwhile */
    (void)!etch_for_each_entry(replaced, etch_remove_entry, NULL);
    (void)unlinkat(file, ETCH_REPLACED, AT_REMOVEDIR);
    (void)unlinkat(file, ETCH_ASIDE, AT_REMOVEDIR);
    (void)!etch_for_each_entry(path, etch_remove_entry, NULL);
    if (rmdir(path) == 0)
        etch_remark(c->diags, ETCH_E_OUTPUT_KILLED, (etch_span){0, 0}, "removed '%s', left by a killed run",
                    path);
    else if (errno != ENOENT)
        etch_warning(c->diags, ETCH_E_OUTPUT_KILLED, (etch_span){0, 0},
                     "'%s' was left by a killed run, and cannot be removed", path);
}

static void clear_folder(const clearing *c, int file, const char *name, bool is_earlier)
{
    char path[PATH_MAX], inner[PATH_MAX + sizeof ETCH_REPLACED];
    if (snprintf(path, sizeof path, "%s/%s", c->place, name) >= (int)sizeof path)
        return;
    snprintf(inner, sizeof inner, "%s/%s", path, ETCH_ASIDE);
    /* files of a run that was set aside, or that one in a folder of others began to replace, are nowhere
     * else */
    if (holds_files(is_earlier ? path : inner)) {
        say_kept(c, path, is_earlier ? path : inner);
        return;
    }
    snprintf(inner, sizeof inner, "%s/%s", path, ETCH_REPLACED);
    remove_leftover(c, file, path, inner);
}

static int clear_entry(void *data, int folder, const char *name)
{
    bool is_earlier;
    if (!is_hidden(name, &is_earlier))
        return 0;
    const int file = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return 0;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) /* else a run is at work in it, or nobody can tell */
        clear_folder(data, file, name, is_earlier);
    close(file);
    return 0;
}

void etch_leftovers_clear(const etch_target *target, const char *place)
{
    clearing c = {target->diags, target->mark, place};
    (void)!etch_for_each_entry(place, clear_entry, &c); /* who cannot look finds nothing */
}
