/* Texts that come from files, pipes and the standard input: `etch check -`, `etch check <(gen)`,
 * `etch assemble -`. */
#define _POSIX_C_SOURCE 200809L

#include "cli_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_BYTES = 64 << 10 };

/* Appends what comes next to a text with room for a NUL. Its length, 0 at the end, -1 with errno. */
static ssize_t read_more(int file, char **text, size_t length, size_t *room)
{
    ssize_t got;
    if (length + 1 >= *room) {
        char *wider = realloc(*text, *room ? *room * 2 : FIRST_BYTES);
        if (!wider)
            return -1;
        *room = *room ? *room * 2 : FIRST_BYTES;
        *text = wider;
    }
    do
        got = read(file, *text + length, *room - 1 - length);
    while (got < 0 && errno == EINTR);
    return got;
}

static const char *read_all(int file, size_t limit, char **text, size_t *length)
{
    size_t room = 0;
    ssize_t got;
    while ((got = read_more(file, text, *length, &room)) > 0) {
        *length += (size_t)got;
        if (*length > limit)
            return "is too large";
    }
    if (got < 0)
        return strerror(errno);
    (*text)[*length] = '\0';
    return NULL;
}

const char *cli_read_text(const char *name, size_t limit, char **text, size_t *length)
{
    const bool is_input = strcmp(name, "-") == 0;
    const int file = is_input ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    *text = NULL;
    *length = 0;
    const char *why = file < 0 ? strerror(errno) : read_all(file, limit, text, length);
    if (file >= 0 && !is_input)
        close(file);
    if (why) {
        free(*text);
        *text = NULL;
    }
    return why;
}

bool cli_is_piped(const char *name)
{
    struct stat info;
    return name && (strcmp(name, "-") == 0 || (stat(name, &info) == 0 && S_ISFIFO(info.st_mode)));
}

bool cli_is_archive(const char *path)
{
    static const char suffix[] = ".tar";
    const size_t length = strlen(path);
    return length >= sizeof suffix && strcmp(path + length - (sizeof suffix - 1), suffix) == 0;
}

const char *cli_read_piped(const char *name, char **text)
{
    enum { MOST_BYTES = 64 << 20 }; /* as of a file */
    size_t length;
    const char *why = cli_read_text(name, MOST_BYTES, text, &length);
    if (why || !memchr(*text, '\0', length))
        return why;
    free(*text);
    *text = NULL;
    return "holds a NUL byte";
}
