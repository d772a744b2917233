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

/* Beside the program, so that an installation can be moved. */
static bool is_installed(const char *name, char path[CLI_PATH])
{
    char program[CLI_PATH];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = '\0';
        char *slash = strrchr(program, '/');
        const size_t room = slash ? sizeof program - (size_t)(slash - program) : 0;
        if (slash && snprintf(slash, room, "/%s", ETCH_DATA_FROM_PROGRAM) < (int)room &&
            is_shipped(program, name, path))
            return true;
    }
    return is_shipped(ETCH_DATA, name, path);
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
