/* A trace as one zstd frame, piece by piece. */
#include "emit/emit_int.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

struct etch_packer {
    ZSTD_CCtx *context;
    etch_put put;
    void *data;
    /* of the frame, written so far */
    uint64_t written;
    size_t room;
    uint8_t out[];
};

etch_packer *etch_packer_new(etch_put put, void *data, uint64_t bytes)
{
    const size_t room = ZSTD_CStreamOutSize();
    etch_packer *p = malloc(sizeof *p + room);
    if (!p)
        return NULL;
    /* A context for each frame: no byte depends on the frames before it. */
    *p = (etch_packer){.context = ZSTD_createCCtx(), .put = put, .data = data, .room = room};
    if (p->context && !ZSTD_isError(ZSTD_CCtx_setParameter(p->context, ZSTD_c_checksumFlag, 1)) &&
        !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(p->context, bytes)))
        return p;
    etch_packer_free(p);
    return NULL;
}

void etch_packer_free(etch_packer *packer)
{
    if (packer)
        ZSTD_freeCCtx(packer->context);
    free(packer);
}

/* Writes what comes of `in`; at the end, all of it. Returns 0 or an errno. */
static int pass_on(etch_packer *p, ZSTD_inBuffer *in, ZSTD_EndDirective end)
{
    size_t left;
    do {
        ZSTD_outBuffer out = {p->out, p->room, 0};
        left = ZSTD_compressStream2(p->context, &out, in, end);
        if (ZSTD_isError(left))
            return ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation ? ENOMEM : EIO;
        const int error = p->put(p->data, p->out, out.pos);
        if (error != 0)
            return error;
        p->written += out.pos;
    } while (end == ZSTD_e_end ? left > 0 : in->pos < in->size);
    return 0;
}

int etch_packer_add(etch_packer *packer, const void *bytes, size_t length)
{
    ZSTD_inBuffer in = {bytes, length, 0};
    return pass_on(packer, &in, ZSTD_e_continue);
}

int etch_packer_end(etch_packer *packer, uint64_t *written)
{
    ZSTD_inBuffer in = {NULL, 0, 0};
    const int error = pass_on(packer, &in, ZSTD_e_end);
    *written = packer->written;
    return error;
}
