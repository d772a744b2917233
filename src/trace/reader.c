/* A trace file as a stream of messages: each stands after its length. */
#define _POSIX_C_SOURCE 200809L

#include "trace/trace_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 17, LENGTH_BYTES = 10 };

struct etch_trace_reader {
    /* -1: `bytes` is all there is */
    int file;
    /* of a compressed file; else NULL */
    etch_unpacker *unpacker;
    /* from malloc; NULL without a file */
    uint8_t *buffer;
    size_t capacity;
    /* what has been read and not been dropped */
    const uint8_t *bytes;
    /* of `bytes`: where the next message is, and how many there are */
    size_t at, filled;
    /* in the file, of `bytes` */
    uint64_t offset;
    /* the file has no more than `bytes` */
    bool ended;
    etch_wire wire;
    etch_trace_metadata metadata;
    etch_trace_node node;
};

static etch_status fail(const etch_trace_reader *r, etch_status status, etch_trace_error *error,
                        const char *format, ...) ETCH_PRINTF(4, 5);

static etch_status fail(const etch_trace_reader *r, etch_status status, etch_trace_error *error,
                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->reason, sizeof error->reason, format, args);
    va_end(args);
    error->offset = r->offset + r->at;
    return status;
}

static etch_status fail_system(const etch_trace_reader *r, int number, etch_trace_error *error)
{
    if (strerror_r(number, error->reason, sizeof error->reason) != 0)
        snprintf(error->reason, sizeof error->reason, "error %d", number);
    error->offset = r->offset + r->at;
    return ETCH_EIO;
}

/* ---- bytes --------------------------------------------------------------------------------------------- */

/* Makes room for `wanted` bytes from `at` on. */
static etch_status make_room(etch_trace_reader *r, size_t wanted)
{
    if (r->at > 0 && r->filled > r->at)
        memmove(r->buffer, r->buffer + r->at, r->filled - r->at);
    r->offset += r->at;
    r->filled -= r->at;
    r->at = 0;
    if (wanted <= r->capacity)
        return ETCH_OK;
    size_t larger = r->capacity;
    while (larger < wanted)
        larger *= 2;
    uint8_t *moved = realloc(r->buffer, larger);
    if (!moved)
        return ETCH_ENOMEM;
    r->bytes = r->buffer = moved;
    r->capacity = larger;
    return ETCH_OK;
}

/* Adds to what is there; `*got` is 0 at the end of the file. */
static etch_status read_more(etch_trace_reader *r, size_t *got, etch_trace_error *error)
{
    uint8_t *at = r->buffer + r->filled;
    const size_t room = r->capacity - r->filled;
    int number = 0;
    if (r->unpacker) {
        const etch_status status =
            etch_unpacker_read(r->unpacker, at, room, got, &number, error->reason, sizeof error->reason);
        error->offset = r->offset + r->at;
        return status == ETCH_EIO ? fail_system(r, number, error) : status;
    }
    ssize_t read_now;
    do
        read_now = read(r->file, at, room);
    while (read_now < 0 && errno == EINTR);
    if (read_now < 0)
        return fail_system(r, errno, error);
    *got = (size_t)read_now;
    return ETCH_OK;
}

/* Reads until `wanted` bytes are there, or the file ends. */
static etch_status fill(etch_trace_reader *r, size_t wanted, etch_trace_error *error)
{
    if (r->filled - r->at >= wanted || r->ended)
        return ETCH_OK;
    if (make_room(r, wanted) != ETCH_OK)
        return ETCH_ENOMEM;
    while (r->filled < wanted && !r->ended) {
        size_t got;
        const etch_status status = read_more(r, &got, error);
        if (status != ETCH_OK)
            return status;
        r->filled += got;
        r->ended = got == 0;
    }
    return ETCH_OK;
}

/* The next message; `*length` bytes at `r->bytes + r->at`, behind which the caller moves on. `*more` is false
 * at the end of the file. */
static etch_status next_message(etch_trace_reader *r, size_t *length, bool *more, etch_trace_error *error)
{
    uint64_t value = 0;
    etch_status status = fill(r, LENGTH_BYTES, error);
    if (status != ETCH_OK)
        return status;
    *more = r->at < r->filled;
    if (!*more)
        return ETCH_OK;
    int taken = etch_wire_varint(r->bytes + r->at, r->bytes + r->filled, &value);
    if (taken == 0)
        return fail(r, ETCH_EINPUT, error, "the file ends within the length of a message");
    if (taken < 0)
        return fail(r, ETCH_EINPUT, error, "the length of a message is no varint");
    if (value > ETCH_TRACE_MESSAGE_LIMIT)
        return fail(r, ETCH_EINPUT, error, "a message of %" PRIu64 " bytes is longer than the limit of %d",
                    value, ETCH_TRACE_MESSAGE_LIMIT);
    status = fill(r, (size_t)taken + (size_t)value, error);
    if (status != ETCH_OK)
        return status;
    if (r->filled - r->at < (size_t)taken + (size_t)value)
        return fail(r, ETCH_EINPUT, error, "the file ends within a message of %" PRIu64 " bytes", value);
    r->at += (size_t)taken;
    *length = (size_t)value;
    return ETCH_OK;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

/* A Node in the place of GlobalMetadata: every reader would take it for that, and lose the node. */
static bool is_node(const etch_trace_reader *r, size_t length)
{
    etch_wire wire = {0};
    etch_trace_node node;
    etch_trace_error ignored;
    const etch_status status = etch_wire_node(&wire, r->bytes + r->at, length, 0, &node, &ignored);
    etch_wire_free(&wire);
    return status == ETCH_OK && node.unknown == 0 && node.type != ETCH_TYPE_INVALID && node.attr_count > 0;
}

static etch_status read_head(etch_trace_reader *r, etch_trace_error *error)
{
    static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    size_t length = 0;
    bool more;
    etch_status status = fill(r, sizeof zstd, error);
    if (status == ETCH_OK && r->filled >= 2 && r->bytes[0] == 0x1f && r->bytes[1] == 0x8b)
        return fail(r, ETCH_EINPUT, error, "the file is compressed with gzip, which simulators do not read");
    if (status == ETCH_OK && r->filled >= sizeof zstd && memcmp(r->bytes, zstd, sizeof zstd) == 0)
        return fail(r, ETCH_EINPUT, error,
                    "the file is compressed with zstd, and its name does not end in %s",
                    ETCH_CHAKRA_SUFFIX_ZSTD);
    if (status == ETCH_OK)
        status = next_message(r, &length, &more, error);
    if (status != ETCH_OK)
        return status;
    if (!more)
        return fail(r, ETCH_EINPUT, error, "the file is empty: there is no GlobalMetadata");
    status = etch_wire_metadata(&r->wire, r->bytes + r->at, length, r->offset + r->at, &r->metadata, error);
    if ((status == ETCH_EINPUT || r->metadata.unknown > 0) && is_node(r, length)) {
        error->headless = true;
        return fail(r, ETCH_EINPUT, error, "the first message is a Node: there is no GlobalMetadata");
    }
    r->at += length;
    return status;
}

static etch_status open_file(etch_trace_reader *r, const char *path, etch_trace_error *error)
{
    struct stat info;
    bool is_packed;
    (void)etch_chakra_stem(path, &is_packed);
    r->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (r->file < 0 || fstat(r->file, &info) != 0)
        return fail_system(r, errno, error);
    if (!S_ISREG(info.st_mode))
        return fail(r, ETCH_EIO, error, "it is no regular file");
    r->capacity = !is_packed && info.st_size >= 0 && info.st_size < BUFFER_BYTES
                      ? (size_t)info.st_size + LENGTH_BYTES
                      : (size_t)BUFFER_BYTES;
    if (is_packed && !(r->unpacker = etch_unpacker_new(r->file)))
        return ETCH_ENOMEM;
    r->bytes = r->buffer = malloc(r->capacity);
    return r->buffer ? ETCH_OK : ETCH_ENOMEM;
}

static etch_status begin(etch_trace_reader *r, etch_status status, etch_trace_reader **reader,
                         etch_trace_error *error)
{
    error->headless = false;
    if (status == ETCH_OK)
        status = read_head(r, error);
    if (status != ETCH_OK)
        etch_trace_close(r);
    *reader = status == ETCH_OK ? r : NULL;
    return status;
}

etch_status etch_trace_open(const char *path, etch_trace_reader **reader, etch_trace_error *error)
{
    etch_trace_reader *r = calloc(1, sizeof *r);
    *reader = NULL;
    if (!r)
        return ETCH_ENOMEM;
    r->file = -1;
    return begin(r, open_file(r, path, error), reader, error);
}

etch_status etch_trace_open_bytes(const void *bytes, size_t length, etch_trace_reader **reader,
                                  etch_trace_error *error)
{
    etch_trace_reader *r = calloc(1, sizeof *r);
    *reader = NULL;
    if (!r)
        return ETCH_ENOMEM;
    r->file = -1;
    r->bytes = bytes;
    r->filled = length;
    r->ended = true;
    return begin(r, ETCH_OK, reader, error);
}

void etch_trace_close(etch_trace_reader *reader)
{
    if (!reader)
        return;
    if (reader->file >= 0)
        close(reader->file);
    etch_unpacker_free(reader->unpacker);
    etch_wire_free(&reader->wire);
    free(reader->buffer);
    free(reader);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

const etch_trace_metadata *etch_trace_head(const etch_trace_reader *reader)
{
    return &reader->metadata;
}

uint64_t etch_trace_position(const etch_trace_reader *reader)
{
    return reader->offset + reader->at;
}

etch_status etch_trace_next(etch_trace_reader *reader, const etch_trace_node **node, etch_trace_error *error)
{
    size_t length = 0;
    bool more;
    *node = NULL;
    etch_status status = next_message(reader, &length, &more, error);
    if (status != ETCH_OK || !more)
        return status;
    status = etch_wire_node(&reader->wire, reader->bytes + reader->at, length, reader->offset + reader->at,
                            &reader->node, error);
    reader->at += length;
    if (status == ETCH_OK)
        *node = &reader->node;
    return status;
}
