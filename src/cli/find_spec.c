/* Specs by their names alone: those of ETCH_PATH, then those that were installed with the program. */
#define _POSIX_C_SOURCE 200809L

#include "cli_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "folder/name" when that can be read. */
static bool is_there(const char *folder, size_t length, const char *name, char path[CLI_PATH])
{
    const int used = snprintf(path, CLI_PATH, "%.*s/%s", (int)length, folder, name);
    return used > 0 && used < CLI_PATH && access(path, R_OK) == 0;
}

static bool is_in_list(const char *folders, const char *name, char path[CLI_PATH])
{
    while (folders && *folders) {
        const size_t length = strcspn(folders, ":");
        if (length > 0 && is_there(folders, length, name, path))
            return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}

/* In a folder of the models, or else of the machines. */
static bool is_shipped(const char *data, const char *name, char path[CLI_PATH])
{
    static const char *const folders[] = {"models", "machines"};
    char folder[CLI_PATH];
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const int used = snprintf(folder, sizeof folder, "%s/%s", data, folders[i]);
        if (used > 0 && used < CLI_PATH && is_there(folder, (size_t)used, name, path))
            return true;
    }
    return false;
}

/* The i-th folder that may hold the data of this program: where they are from the program, so that an
 * installation can be moved; beside a program that is not installed; where they were to be. False after the
 * last, or where the path is too long. */
static bool data_folder(size_t i, char path[CLI_PATH])
{
    static const char *const from_program[] = {ETCH_DATA_FROM_PROGRAM, "share/etch"};
    enum { FROM_PROGRAM = sizeof from_program / sizeof *from_program };
    if (i >= FROM_PROGRAM)
        return i == FROM_PROGRAM && snprintf(path, CLI_PATH, "%s", ETCH_DATA) < CLI_PATH;
    const ssize_t length = readlink("/proc/self/exe", path, CLI_PATH - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    const size_t room = slash ? CLI_PATH - (size_t)(slash - path) : 0;
    if (!slash || snprintf(slash, room, "/%s", from_program[i]) >= (int)room)
        *path = '\0'; /* nothing is below it */
    return true;
}

static bool is_installed(const char *name, char path[CLI_PATH])
{
    char folder[CLI_PATH];
    for (size_t i = 0; data_folder(i, folder); i++)
        if (*folder && is_shipped(folder, name, path))
            return true;
    return false;
}

const char *cli_import_folders(const char *kind, char folders[CLI_FOLDERS])
{
    const char *own = getenv("ETCH_PATH");
    char folder[CLI_PATH];
    size_t used = 0;
    *folders = '\0';
    for (size_t i = 0; own || data_folder(i, folder); own = NULL) {
        const int more = snprintf(folders + used, CLI_FOLDERS - used, "%s%s%s%s", used ? ":" : "",
                                  own ? own : folder, own ? "" : "/", own ? "" : kind);
        if (more < 0 || (size_t)more >= CLI_FOLDERS - used) {
            folders[used] = '\0'; /* what is too long is left out, as the folder of a file is */
            break;
        }
        used += (size_t)more;
        i += !own;
    }
    return folders;
}

bool cli_installed_folder(const char *kind, char path[CLI_PATH])
{
    char folder[CLI_PATH];
    for (size_t i = 0; data_folder(i, folder); i++)
        if (*folder && is_there(folder, strlen(folder), kind, path))
            return true;
    return false;
}

const char *cli_find_spec(const char *name, char path[CLI_PATH])
{
    if (!name || *name == '\0' || strchr(name, '/') || access(name, F_OK) == 0)
        return name;
    return is_in_list(getenv("ETCH_PATH"), name, path) || is_installed(name, path) ? path : name;
}

const char *cli_find_machine(const char *name, char path[CLI_PATH])
{
    char file[CLI_PATH];
    const int used = snprintf(file, sizeof file, "%s.etch", name);
    if (strchr(name, '/') || access(name, F_OK) == 0 || used < 0 || used >= CLI_PATH)
        return name;
    const char *found = cli_find_spec(file, path);
    if (found == path)
        return path;
    if (found && access(found, F_OK) == 0)
        return strcpy(path, found);
    return cli_find_spec(name, path);
}
