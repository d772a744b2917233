/* Writing files into folders. Every call that can fail is looked at: a full disk may show only when a file is
 * closed. */
#define _POSIX_C_SOURCE 200809L

#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int etch_file_create(int folder, const char *name, int *file)
{
    do
        *file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    while (*file < 0 && errno == EINTR);
    return *file < 0 ? errno : 0;
}

int etch_file_write(int file, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        ssize_t written = write(file, at, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        at += written;
        length -= (size_t)written;
    }
    return 0;
}

int etch_put_into_file(void *data, const void *bytes, size_t length)
{
    return etch_file_write(*(const int *)data, bytes, length);
}

int etch_file_close(int file)
{
    /* After EINTR the descriptor is gone on Linux: a second close could hit another thread's file. */
    return close(file) == 0 || errno == EINTR ? 0 : errno;
}

int etch_file_put(int folder, const char *name, const void *bytes, size_t length)
{
    int file;
    int error = etch_file_create(folder, name, &file);
    if (error != 0)
        return error;
    error = etch_file_write(file, bytes, length);
    int close_error = etch_file_close(file);
    return error != 0 ? error : close_error;
}

etch_status etch_io_error(etch_diags *diags, const char *verb, const char *path, const char *file, int error)
{
    char why[128];
    if (strerror_r(error, why, sizeof why) != 0)
        snprintf(why, sizeof why, "error %d", error);
    etch_error(diags, ETCH_E_OUTPUT_IO, (etch_span){0, 0}, "cannot %s '%s%s%s': %s", verb, path,
               file ? "/" : "", file ? file : "", why);
    return ETCH_EIO;
}

int etch_for_each_entry(const char *path, etch_visit visit, void *data)
{
    DIR *stream = opendir(path);
    int error = stream ? 0 : errno;
    while (error == 0) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (!entry) {
            error = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            error = visit(data, dirfd(stream), entry->d_name);
    }
    if (stream)
        closedir(stream);
    return error;
}

int etch_remove_entry(void *data, int folder, const char *name)
{
    (void)data;
    return unlinkat(folder, name, 0) == 0 || errno == ENOENT ? 0 : errno;
}

bool etch_has_control(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name < 0x20 || *name == 0x7F)
            return true;
    return false;
}

etch_status etch_cancelled(etch_diags *diags, const char *path)
{
    etch_error(diags, ETCH_E_OUTPUT_CANCELLED, (etch_span){0, 0}, "cancelled: '%s' was not written", path);
    return ETCH_ELIMIT;
}
