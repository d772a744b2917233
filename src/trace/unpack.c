/* A compressed trace as the bytes that it holds: zstd frames, one behind the other. */
#define _POSIX_C_SOURCE 200809L

#include "trace/trace_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

/* Of the window that a frame asks for: 8 MB, which every level up to 19 stays within. Nothing else that a
 * frame says of itself takes memory. */
enum { MOST_WINDOW_LOG = 23 };

struct etch_unpacker {
    ZSTD_DCtx *context;
    int file;
    /* some frame has begun; it has not ended; the file has no more bytes */
    bool any, within, ended;
    ZSTD_inBuffer in;
    size_t room;
    uint8_t bytes[];
};

etch_unpacker *etch_unpacker_new(int file)
{
    const size_t room = ZSTD_DStreamInSize();
    etch_unpacker *u = malloc(sizeof *u + room);
    if (!u)
        return NULL;
    *u = (etch_unpacker){.context = ZSTD_createDCtx(), .file = file, .room = room};
    u->in.src = u->bytes;
    if (u->context && !ZSTD_isError(ZSTD_DCtx_setParameter(u->context, ZSTD_d_windowLogMax, MOST_WINDOW_LOG)))
        return u;
    etch_unpacker_free(u);
    return NULL;
}

void etch_unpacker_free(etch_unpacker *unpacker)
{
    if (unpacker)
        ZSTD_freeDCtx(unpacker->context);
    free(unpacker);
}

void etch_unpacker_begin(etch_unpacker *unpacker, int file)
{
    (void)ZSTD_DCtx_reset(unpacker->context, ZSTD_reset_session_only); /* cannot fail */
    unpacker->file = file;
    unpacker->any = unpacker->within = unpacker->ended = false;
    unpacker->in = (ZSTD_inBuffer){unpacker->bytes, 0, 0};
}

/* Returns 0 or an errno. */
static int read_more(etch_unpacker *u)
{
    ssize_t got;
    do
        got = read(u->file, u->bytes, u->room);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno;
    u->in = (ZSTD_inBuffer){u->bytes, (size_t)got, 0};
    u->ended = got == 0;
    return 0;
}

static etch_status refuse(const etch_unpacker *u, size_t code, char *reason, size_t size)
{
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_memory_allocation:
        return ETCH_ENOMEM;
    case ZSTD_error_frameParameter_windowTooLarge:
        snprintf(reason, size,
                 "its zstd frame needs more than %d MB to be read: compress at a level up to 19",
                 1 << (MOST_WINDOW_LOG - 20));
        break;
    case ZSTD_error_prefix_unknown:
        snprintf(reason, size, "%s",
                 u->any ? "something follows its zstd frame that is none"
                        : "it is not compressed with zstd, as its name says");
        break;
    default:
        snprintf(reason, size, "its zstd frame is damaged: %s", ZSTD_getErrorName(code));
    }
    return ETCH_EINPUT;
}

etch_status etch_unpacker_read(etch_unpacker *u, void *at, size_t room, size_t *got, int *error, char *reason,
                               size_t size)
{
    ZSTD_outBuffer out = {at, room, 0};
    *error = 0;
    while (out.pos == 0) {
        if (u->in.pos == u->in.size && !u->ended)
            *error = read_more(u);
        if (*error != 0)
            return ETCH_EIO;
        if (u->ended && !u->within)
            break;
        const size_t taken = u->in.pos;
        const size_t left = ZSTD_decompressStream(u->context, &out, &u->in);
        if (ZSTD_isError(left))
            return refuse(u, left, reason, size);
        u->any = true;
        u->within = left > 0;
        if (u->ended && left > 0 && out.pos == 0 && u->in.pos == taken) {
            snprintf(reason, size, "the file ends within its zstd frame");
            return ETCH_EINPUT;
        }
    }
    *got = out.pos;
    return ETCH_OK;
}
