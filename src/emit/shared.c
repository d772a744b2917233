/* A run whose traces several processes write: process 0 makes the hidden folder, all write traces into it,
 * and process 0 the rest, once the others have done theirs. */
#define _XOPEN_SOURCE 700 /* realpath */

#include "emit/emit_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef etch_status (*take_fn)(void *data, unsigned from, const char *bytes, size_t length);

/* Process 0 takes a message of each of the others. */
static etch_status take_all(const etch_emit_options *o, etch_diags *diags, take_fn take, void *data)
{
    etch_status status = ETCH_OK;
    for (unsigned i = 1; status == ETCH_OK && i < etch_world_size(o->world); i++) {
        const char *bytes;
        size_t length;
        status = etch_world_receive(o->world, diags, i, o->cancel, &bytes, &length);
        if (status == ETCH_OK && take)
            status = take(data, i, bytes, length);
    }
    return status;
}

bool etch_shared_is_helper(const etch_emit_options *o)
{
    return etch_world_rank(o->world) > 0;
}

bool etch_shared_has(const etch_emit_options *o, size_t i)
{
    return i % etch_world_size(o->world) == etch_world_rank(o->world);
}

/* ---- one run ------------------------------------------------------------------------------------------- */

typedef struct comparison {
    const char *hash;
    etch_diags *diags;
} comparison;

static etch_status compare(void *data, unsigned from, const char *bytes, size_t length)
{
    const comparison *c = data;
    if (strlen(c->hash) == length && memcmp(bytes, c->hash, length) == 0)
        return ETCH_OK;
    etch_diag *diag = etch_error(c->diags, ETCH_E_WORLD, (etch_span){0, 0},
                                 "process %u lowers something else than process 0", from);
    etch_help(diag, "all processes need the same files, options and version of etch");
    return ETCH_EINPUT;
}

etch_status etch_shared_begin(const etch_emit_options *o, etch_diags *diags, const char *manifest,
                              size_t length)
{
    char hash[ETCH_SHA256_TEXT];
    comparison c = {hash, diags};
    if (etch_world_size(o->world) == 1)
        return ETCH_OK;
    if (o->packs) {
        etch_diag *diag = etch_error(diags, ETCH_E_WORLD, (etch_span){0, 0},
                                     "several processes do not compress traces together");
        etch_help(diag, "leave --zstd out, or let one process write them");
        return ETCH_EINPUT;
    }
    etch_sha256(&(etch_piece){manifest, length}, 1, hash);
    return etch_shared_is_helper(o) ? etch_world_send(o->world, diags, 0, hash, strlen(hash))
                                    : take_all(o, diags, compare, &c);
}

/* ---- one folder ---------------------------------------------------------------------------------------- */

static etch_status tell_folder(const etch_emit_options *o, const etch_target *target)
{
    char *path = realpath(target->hidden, NULL);
    if (!path)
        return etch_io_error(target->diags, "open", target->hidden, NULL, errno);
    const etch_status status = etch_world_send_all(o->world, target->diags, path, strlen(path));
    free(path);
    return status;
}

static etch_status find_folder(const etch_emit_options *o, etch_target *target)
{
    const char *path;
    size_t length;
    const etch_status status = etch_world_receive(o->world, target->diags, 0, o->cancel, &path, &length);
    if (status != ETCH_OK)
        return status;
    target->files = etch_open_folder(path);
    if (target->files >= 0)
        return ETCH_OK;
    char why[128];
    if (strerror_r(errno, why, sizeof why) != 0)
        *why = '\0';
    etch_diag *diag = etch_error(target->diags, ETCH_E_OUTPUT_IO, (etch_span){0, 0},
                                 "process %u cannot open '%s': %s", etch_world_rank(o->world), path, why);
    etch_help(diag, "write to a file system that all processes see");
    return ETCH_EIO;
}

etch_status etch_shared_open(const etch_emit_options *o, etch_target *target)
{
    if (etch_world_size(o->world) == 1)
        return ETCH_OK;
    return etch_shared_is_helper(o) ? find_folder(o, target) : tell_folder(o, target);
}

/* ---- together ------------------------------------------------------------------------------------------ */

etch_status etch_shared_meet(const etch_emit_options *o, etch_diags *diags)
{
    const char *bytes;
    size_t length;
    if (etch_world_size(o->world) == 1)
        return ETCH_OK;
    if (!etch_shared_is_helper(o)) {
        const etch_status status = take_all(o, diags, NULL, NULL);
        return status == ETCH_OK ? etch_world_send_all(o->world, diags, "", 0) : status;
    }
    const etch_status status = etch_world_send(o->world, diags, 0, "", 0);
    return status == ETCH_OK ? etch_world_receive(o->world, diags, 0, o->cancel, &bytes, &length) : status;
}

bool etch_shared_is_stopped(const etch_emit_options *o)
{
    return etch_shared_is_helper(o) && etch_world_is_stopped(o->world);
}

static etch_status add(void *data, unsigned from, const char *bytes, size_t length)
{
    uint32_t *sum = data;
    (void)from, (void)length;
    *sum += (uint32_t)strtoul(bytes, NULL, 10);
    return ETCH_OK;
}

etch_status etch_shared_finish(const etch_emit_options *o, etch_diags *diags, uint32_t *links)
{
    char text[12];
    if (etch_world_size(o->world) == 1)
        return ETCH_OK;
    if (!etch_shared_is_helper(o))
        return take_all(o, diags, add, links);
    snprintf(text, sizeof text, "%" PRIu32, *links);
    return etch_world_send(o->world, diags, 0, text, strlen(text));
}
