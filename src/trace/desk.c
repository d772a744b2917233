/* Traces as a whole in memory, one after the other in the same room. */
#define _POSIX_C_SOURCE 200809L

#include "trace/rank_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longer traces are read message by message. */
enum { MOST_BYTES = 16 << 20, LEAST_ROOM = 1 << 16 };

/* Room for one byte more than `length`, so that a file which has grown shows. */
static bool make_room(etch_desk *desk, size_t length)
{
    if (length < desk->capacity)
        return true;
    size_t larger = desk->capacity ? desk->capacity : LEAST_ROOM;
    while (larger <= length)
        larger *= 2;
    uint8_t *moved = realloc(desk->bytes, larger);
    if (!moved)
        return false;
    desk->bytes = moved;
    desk->capacity = larger;
    return true;
}

static bool read_plain(etch_desk *desk, int file, size_t size)
{
    if (!make_room(desk, size))
        return false;
    while (desk->length <= size) {
        const ssize_t got = read(file, desk->bytes + desk->length, desk->capacity - desk->length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        desk->length += (size_t)got;
        if (got == 0 || desk->length == size)
            break;
    }
    return desk->length == size;
}

static bool read_packed(etch_desk *desk, int file)
{
    char reason[1];
    int error;
    size_t got;
    if (!desk->unpacker)
        desk->unpacker = etch_unpacker_new(-1);
    if (!desk->unpacker || !make_room(desk, 0))
        return false;
    etch_unpacker_begin(desk->unpacker, file);
    do {
        if (!make_room(desk, desk->length) ||
            etch_unpacker_read(desk->unpacker, desk->bytes + desk->length, desk->capacity - desk->length,
                               &got, &error, reason, sizeof reason) != ETCH_OK)
            return false;
        desk->length += got;
    } while (got > 0 && desk->length <= MOST_BYTES);
    return got == 0;
}

bool etch_desk_load(etch_desk *desk, const char *path, bool is_packed)
{
    struct stat info;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool fine = file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
                info.st_size <= MOST_BYTES;
    desk->length = 0;
    if (fine) {
        desk->is_writable = (info.st_mode & S_IWUSR) != 0;
        fine = is_packed ? read_packed(desk, file) : read_plain(desk, file, (size_t)info.st_size);
    }
    if (file >= 0)
        close(file);
    return fine;
}

void etch_desk_free(etch_desk *desk)
{
    etch_unpacker_free(desk->unpacker);
    etch_wire_free(&desk->wire);
    free(desk->bytes);
    *desk = (etch_desk){0};
}
