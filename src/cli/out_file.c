/* A file that appears when all of it is there: until then it has a hidden name. */
#define _POSIX_C_SOURCE 200809L

#include "timeline_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool say(const char *path, int error)
{
    fprintf(stderr, "etch: cannot write '%s': %s\n", path, strerror(error));
    return false;
}

bool cli_out_begin(cli_out_file *file, const char *path)
{
    const size_t room = strlen(path) + 32;
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash + 1 - path) : 0;
    *file = (cli_out_file){.path = path, .hidden = malloc(room)};
    if (!file->hidden)
        return say(path, ENOMEM);
    if (!path[folder])
        return say(path, EISDIR);
    snprintf(file->hidden, room, "%.*s.%s-%ld", folder, path, path + folder, (long)getpid());
    (void)unlink(file->hidden); /* of a process of this number that was killed */
    file->stream = fopen(file->hidden, "wx");
    return file->stream || say(path, errno);
}

cli_exit cli_out_end(cli_out_file *file, bool whole)
{
    bool fine = file->stream != NULL;
    if (fine) {
        errno = 0;
        fine = whole && fflush(file->stream) == 0 && !ferror(file->stream) &&
               (fsync(fileno(file->stream)) == 0 || errno == EINVAL);
        const int error = errno;
        const bool closed = fclose(file->stream) == 0;
        const bool named = fine && closed && rename(file->hidden, file->path) == 0;
        if (!named) {
            if (whole)
                say(file->path, fine ? errno : error);
            (void)unlink(file->hidden);
        }
        fine = named;
    }
    free(file->hidden);
    return fine ? CLI_DONE : CLI_IO;
}
