/* Where the text of a sweep goes: to whoever asked, or into a file, which has a hidden name until all of it
 * is there and on the disk. */
#define _POSIX_C_SOURCE 200809L

#include "session/sweep/sweep_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static etch_status fail(const etch_sweep_sink *sink, const char *verb, int error)
{
    return etch_io_error(sink->session->diags, verb, sink->options->file, NULL, error);
}

etch_status etch_sink_open(etch_sweep_sink *sink)
{
    etch_arena *arena = sink->session->arena;
    const char *path = sink->options->file, *slash = path ? strrchr(path, '/') : NULL;
    sink->folder = sink->file = -1;
    if (!path)
        return ETCH_OK;
    const char *parent = slash == path ? "/"
                         : slash       ? etch_copy_text(arena, path, (size_t)(slash - path))
                                       : ".";
    sink->name = etch_copy_string(arena, slash ? slash + 1 : path);
    snprintf(sink->hidden, sizeof sink->hidden, ETCH_HIDDEN "%.200s-%ld", sink->name, (long)getpid());
    sink->folder = *sink->name ? etch_open_folder(parent) : -1;
    if (sink->folder < 0)
        return fail(sink, "create", *sink->name ? errno : EISDIR);
    (void)unlinkat(sink->folder, sink->hidden, 0); /* of a process of this number that was killed */
    const int error = etch_file_create(sink->folder, sink->hidden, &sink->file);
    return error == 0 ? ETCH_OK : fail(sink, "create", error);
}

etch_status etch_sink_write(etch_sweep_sink *sink, const char *text, size_t length)
{
    if (length == 0)
        return ETCH_OK;
    if (sink->options->file) {
        const int error = etch_file_write(sink->file, text, length);
        return error == 0 ? ETCH_OK : fail(sink, "write", error);
    }
    if (!sink->options->write || sink->options->write(sink->options->data, text, length))
        return ETCH_OK;
    etch_error(sink->session->diags, ETCH_E_OUTPUT_IO, (etch_span){0, 0}, "cannot write the rows");
    return ETCH_EIO;
}

etch_status etch_sink_close(etch_sweep_sink *sink, bool whole)
{
    if (sink->file < 0)
        return ETCH_OK;
    const char *name =
        whole ? sink->name : etch_text(sink->session->arena, "%s" ETCH_SINK_PARTIAL, sink->name);
    int error = fsync(sink->file) == 0 || errno == EINVAL ? 0 : errno;
    const int closed = etch_file_close(sink->file);
    sink->file = -1;
    error = error ? error : closed;
    if (error == 0 && renameat(sink->folder, sink->hidden, sink->folder, name) != 0)
        error = errno;
    if (error == 0) {
        *sink->hidden = '\0';
        (void)fsync(
            sink->folder); /* the rows are there; some file systems have nothing to sync of a folder */
    }
    return error == 0 ? ETCH_OK : fail(sink, "write", error);
}

void etch_sink_abandon(etch_sweep_sink *sink)
{
    if (sink->file >= 0)
        close(sink->file);
    if (sink->folder >= 0 && *sink->hidden)
        (void)unlinkat(sink->folder, sink->hidden, 0);
    if (sink->folder >= 0)
        close(sink->folder);
    sink->file = sink->folder = -1;
}
