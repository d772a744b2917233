/* A run as one file, or stream: a tar archive of what the folder would hold. The files stand one after the
 * other, so that what is encoded on several threads is written in turns.
 *
 * The unit of work is a piece: some ranks whose traces are one chunk each, one chunk of the trace of one
 * rank, or a compressed trace. Of it a thread holds a chunk, or what a trace is compressed to, up to
 * MOST_PACKED: what is longer is compressed twice, once to know its size, which stands before it. The
 * comm_group.json that begins the archive says whose it is, the manifest that ends it that nothing is
 * missing. */
#define _POSIX_C_SOURCE 200809L

#include "emit/emit_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_RANKS = 32, MOST_PACKED = 4 << 20 };
#define STREAM_NAME "<stdout>"
#define HIDDEN_NAME "archive.tar"

/* The pieces of one variant. */
typedef struct sequence {
    const etch_variant *variant;
    /* by chunk of a trace: its first node */
    const uint32_t *starts;
    uint32_t chunks;
    /* ranks of a piece */
    uint32_t ranks;
    /* how many pieces there are up to its end */
    size_t end;
} sequence;

typedef struct packing {
    const etch_job *job;
    const etch_emit_options *options;
    etch_archive *archive;
    etch_turns *turns;
    sequence *sequences;
    uint32_t count;
    /* of whoever's turn it is: what went wrong, with the trace of which rank */
    int error;
    uint32_t failed_rank;
    etch_traces_written written;
} packing;

/* What one piece needs while it is made. */
typedef struct desk {
    packing *p;
    const etch_variant *variant;
    const uint32_t *ranks;
    uint32_t count, chunk, chunks;
    uint32_t *values;
    etch_chunk nodes;
    /* a compressed trace, as far as there is room, and its size */
    uint8_t *packed;
    size_t held, room;
    uint64_t size;
} desk;

/* ---- pieces -------------------------------------------------------------------------------------------- */

/* Where the chunks of a trace begin. False: memory is out. */
static bool find_starts(etch_arena *arena, const etch_job *job, sequence *s)
{
    const etch_variant *v = s->variant;
    uint32_t *starts = ETCH_NEW_ARRAY(arena, v->size.bytes / v->size.chunk_least + 1, uint32_t), count = 0;
    etch_chunk chunk = {0};
    const bool fine = etch_chunk_new(&chunk, &v->size);
    for (uint32_t id = 0; fine && id < v->program->node_count;) {
        starts[count++] = id;
        id = etch_chunk_encode(job, v->program, v->widths, id, &chunk);
    }
    etch_chunk_free(&chunk);
    s->starts = starts;
    s->chunks = count;
    return fine;
}

static etch_status make_sequences(etch_arena *arena, const etch_variants *variants, packing *p)
{
    static const uint32_t first = 0;
    size_t end = 0;
    p->sequences = ETCH_NEW_ARRAY(arena, variants->count, sequence);
    for (uint32_t i = 0; i < variants->count; i++) {
        const etch_variant *v = &variants->at[i];
        sequence *s = &p->sequences[i];
        *s = (sequence){.variant = v, .starts = &first, .chunks = 1, .ranks = 1};
        if (!p->options->packs && v->size.bytes <= v->size.chunk_least)
            s->ranks = PIECE_RANKS;
        else if (!p->options->packs && !find_starts(arena, p->job, s))
            return ETCH_ENOMEM;
        end += (size_t)((v->count + s->ranks - 1) / s->ranks) * s->chunks;
        s->end = end;
    }
    p->count = variants->count;
    return ETCH_OK;
}

/* Returns the first node of its chunk. */
static uint32_t find_piece(packing *p, size_t i, desk *d)
{
    uint32_t low = 0, high = p->count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (p->sequences[middle].end > i)
            high = middle;
        else
            low = middle + 1;
    }
    const sequence *s = &p->sequences[low];
    const size_t at = low > 0 ? i - p->sequences[low - 1].end : i;
    const uint32_t first = (uint32_t)(at / s->chunks) * s->ranks, left = s->variant->count - first;
    *d = (desk){.p = p,
                .variant = s->variant,
                .ranks = s->variant->ranks + first,
                .count = left < s->ranks ? left : s->ranks,
                .chunk = (uint32_t)(at % s->chunks),
                .chunks = s->chunks};
    return s->starts[d->chunk];
}

/* ---- making -------------------------------------------------------------------------------------------- */

/* Keeps what there is room for, and counts the rest. */
static int hold(void *data, const void *bytes, size_t length)
{
    desk *d = data;
    if (d->held + length <= d->room) {
        memcpy(d->packed + d->held, bytes, length);
        d->held += length;
    } else {
        d->room = 0;
    }
    return 0;
}

/* Compresses the trace of the piece. Returns 0 or an errno. */
static int pack(desk *d, etch_put put, void *data)
{
    const etch_variant *v = d->variant;
    etch_packer *packer = etch_packer_new(put, data, v->size.bytes);
    int error = packer ? 0 : ENOMEM;
    for (uint32_t id = 0; error == 0 && id < v->program->node_count;) {
        if (d->p->options->cancel && atomic_load(d->p->options->cancel) != 0)
            error = ECANCELED;
        id = etch_chunk_encode(d->p->job, v->program, v->widths, id, &d->nodes);
        etch_chunk_patch(&d->nodes, v->widths, d->values);
        if (error == 0)
            error = etch_packer_add(packer, d->nodes.bytes, d->nodes.length);
    }
    if (error == 0)
        error = etch_packer_end(packer, &d->size);
    etch_packer_free(packer);
    return error;
}

/* Whatever can be done before the turn comes. Returns 0 or an errno. */
static int prepare(desk *d, uint32_t first)
{
    const etch_variant *v = d->variant;
    const uint32_t blanks = etch_blank_count(d->p->job);
    d->values = calloc((size_t)d->count * blanks, sizeof *d->values);
    if (!etch_chunk_new(&d->nodes, &v->size) || !d->values)
        return ENOMEM;
    for (uint32_t i = 0; i < d->count; i++)
        etch_blanks_fill(d->p->job, d->ranks[i], d->values + (size_t)i * blanks);
    if (d->p->options->packs) {
        d->room = v->size.bytes + v->size.bytes / 64 + ETCH_TAR_BLOCK < MOST_PACKED
                      ? (size_t)(v->size.bytes + v->size.bytes / 64 + ETCH_TAR_BLOCK)
                      : (size_t)MOST_PACKED;
        d->packed = malloc(d->room);
        return d->packed ? pack(d, hold, d) : ENOMEM;
    }
    (void)etch_chunk_encode(d->p->job, v->program, v->widths, first, &d->nodes);
    return 0;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void name_of(const packing *p, uint32_t rank, char name[ETCH_FILE_NAME])
{
    etch_trace_name(p->options->name, rank, etch_trace_suffix(p->options), name);
}

static int open_trace(const packing *p, uint32_t rank, uint64_t size)
{
    char name[ETCH_FILE_NAME];
    name_of(p, rank, name);
    return etch_archive_open(p->archive, name, size, NULL);
}

static int put_link(const packing *p, const etch_twin *twin)
{
    char name[ETCH_FILE_NAME], other[ETCH_FILE_NAME];
    name_of(p, twin->rank, name);
    name_of(p, twin->of, other);
    return etch_archive_open(p->archive, name, 0, other);
}

/* The compressed trace, under the name of a rank. */
static int put_packed(desk *d, uint32_t rank)
{
    packing *p = d->p;
    int error = open_trace(p, rank, d->size);
    if (error == 0)
        error = d->room > 0 ? etch_archive_write(p->archive, d->packed, d->held)
                            : pack(d, etch_archive_write, p->archive);
    p->written.bytes += d->size;
    return error == 0 ? etch_archive_close(p->archive, d->size) : error;
}

/* The chunk of the i-th rank. */
static int put_chunk(desk *d, uint32_t i)
{
    packing *p = d->p;
    const uint64_t size = d->variant->size.bytes;
    int error = d->chunk == 0 ? open_trace(p, d->ranks[i], size) : 0;
    etch_chunk_patch(&d->nodes, d->variant->widths, d->values + (size_t)i * etch_blank_count(p->job));
    if (error == 0)
        error = etch_archive_write(p->archive, d->nodes.bytes, d->nodes.length);
    if (error != 0 || d->chunk + 1 < d->chunks)
        return error;
    p->written.bytes += size;
    return etch_archive_close(p->archive, size);
}

/* The traces that have the bytes of a rank's. */
static int put_twins(desk *d, uint32_t rank)
{
    const etch_twin *twins = d->variant->twins;
    const uint32_t count = d->variant->twin_count;
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (twins[middle].of < rank)
            low = middle + 1;
        else
            high = middle;
    }
    int error = 0;
    for (; error == 0 && low < count && twins[low].of == rank; low++) {
        if (!d->p->options->links) {
            error = put_packed(d, twins[low].rank);
            continue;
        }
        d->p->written.links++;
        d->p->written.bytes += d->p->options->packs ? d->size : d->variant->size.bytes;
        error = put_link(d->p, &twins[low]);
    }
    return error;
}

/* In the turn of the piece. */
static void put_piece(desk *d)
{
    packing *p = d->p;
    for (uint32_t i = 0; p->error == 0 && i < d->count; i++) {
        p->failed_rank = d->ranks[i];
        p->error = p->options->packs ? put_packed(d, d->ranks[i]) : put_chunk(d, i);
        if (p->error == 0 && d->chunk + 1 == d->chunks)
            p->error = put_twins(d, d->ranks[i]);
    }
}

static etch_status write_piece(void *data, size_t i)
{
    packing *p = data;
    desk d;
    const uint32_t first = find_piece(p, i, &d);
    const int error = prepare(&d, first);
    bool fine = false;
    if (etch_turns_take(p->turns, i)) {
        p->error = error;
        p->failed_rank = d.ranks[0];
        put_piece(&d);
        fine = p->error == 0;
        etch_turns_end(p->turns, fine);
    }
    etch_chunk_free(&d.nodes);
    free(d.values);
    free(d.packed);
    return fine ? ETCH_OK : error == ENOMEM ? ETCH_ENOMEM : ETCH_EIO;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static etch_status report(const etch_folder *folder, const char *name, int error)
{
    if (error == ENOMEM)
        return ETCH_ENOMEM;
    if (error == ECANCELED)
        return etch_cancelled(folder->out.diags, folder->out.path);
    return etch_io_error(folder->out.diags, "write", folder->out.path, name, error);
}

static etch_status write_traces(packing *p, const etch_folder *folder)
{
    char name[ETCH_FILE_NAME];
    const size_t count = p->count > 0 ? p->sequences[p->count - 1].end : 0;
    etch_status status = p->turns ? ETCH_OK : ETCH_ENOMEM;
    if (status == ETCH_OK)
        status = etch_parallel(etch_emit_threads(p->options), count, write_piece, p);
    if (status == ETCH_OK || p->error == 0)
        return status;
    name_of(p, p->failed_rank, name);
    return report(folder, name, p->error);
}

static etch_status write_first(packing *p, const etch_archive_rest *rest, const etch_folder *folder)
{
    uint64_t size;
    int error = etch_groups_put(p->job, NULL, NULL, &size);
    if (error == 0)
        error = etch_archive_open(p->archive, ETCH_CHAKRA_GROUP_FILE, size, NULL);
    if (error == 0)
        error = etch_groups_put(p->job, etch_archive_write, p->archive, &size);
    if (error == 0)
        error = etch_archive_close(p->archive, size);
    if (error != 0)
        return report(folder, ETCH_CHAKRA_GROUP_FILE, error);
    for (uint32_t i = 0; error == 0 && i < rest->extra_count; i++) {
        const etch_extra_file *extra = &rest->extras[i];
        error = etch_archive_put(p->archive, extra->name, extra->text, extra->length);
        if (error != 0)
            return report(folder, extra->name, error);
    }
    return ETCH_OK;
}

static etch_status write_last(packing *p, const etch_archive_rest *rest, const etch_folder *folder)
{
    int error = etch_archive_put(p->archive, ETCH_MANIFEST_FILE, rest->manifest, rest->manifest_length);
    if (error == 0)
        error = etch_archive_finish(p->archive);
    return error == 0 ? ETCH_OK : report(folder, ETCH_MANIFEST_FILE, error);
}

/* Into an open file. */
static etch_status fill(packing *p, int file, const etch_variants *variants, const etch_archive_rest *rest,
                        const etch_folder *folder, etch_arena *arena)
{
    etch_archive_begin(p->archive, file, p->options->cancel);
    etch_status status = make_sequences(arena, variants, p);
    if (status == ETCH_OK)
        status = write_first(p, rest, folder);
    if (status == ETCH_OK)
        status = write_traces(p, folder);
    if (status == ETCH_OK)
        status = write_last(p, rest, folder);
    return status;
}

static etch_status open_hidden(const etch_folder *folder, unsigned mode, int *file)
{
    int error = etch_file_create(folder->out.files, HIDDEN_NAME, file);
    if (error == 0 && mode != 0 && fchmod(*file, (mode_t)mode) != 0)
        error = errno;
    return error == 0 ? ETCH_OK : report(folder, NULL, error);
}

etch_status etch_archive_write_all(etch_arena *arena, const etch_job *job, const etch_variants *variants,
                                   const etch_emit_options *options, const etch_archive_rest *rest,
                                   unsigned mode, etch_folder *folder, etch_traces_written *written)
{
    const bool is_stream = options->stream > 0;
    packing p = {
        .job = job, .options = options, .archive = ETCH_NEW(arena, etch_archive), .turns = etch_turns_new()};
    int file = options->stream;
    etch_status status = is_stream ? ETCH_OK : open_hidden(folder, mode, &file);
    p.archive->own = -1;
    if (status == ETCH_OK)
        status = fill(&p, file, variants, rest, folder, arena);
    etch_archive_end(p.archive);
    etch_turns_free(p.turns);
    *written = p.written;
    if (status == ETCH_OK && options->cancel && atomic_load(options->cancel) != 0 && !is_stream)
        status = etch_cancelled(folder->out.diags, folder->out.path);
    if (is_stream)
        return status;
    if (status == ETCH_OK)
        return etch_target_appear_file(&folder->out, HIDDEN_NAME, file);
    if (file >= 0)
        close(file);
    return status;
}

/* ---- what is there ------------------------------------------------------------------------------------- */

static etch_status refuse(const etch_folder *folder, etch_code code, const char *what, const char *help)
{
    etch_diag *diag =
        etch_error(folder->out.diags, code, (etch_span){0, 0}, "the output '%s' %s", folder->out.path, what);
    etch_help(diag, "%s", help);
    return ETCH_EINPUT;
}

/* Is the file empty, or an archive of a run? Returns 0 or an errno. */
static int look_inside(const char *path, bool *ours)
{
    unsigned char block[ETCH_TAR_BLOCK];
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    size_t used = 0;
    ssize_t got = 1;
    if (file < 0)
        return errno;
    while (got != 0 && used < sizeof block) {
        got = read(file, block + used, sizeof block - used);
        if (got < 0 && errno != EINTR)
            break;
        used += got > 0 ? (size_t)got : 0;
    }
    const int error = got < 0 ? errno : 0;
    close(file);
    *ours = used == 0 || (used == sizeof block && etch_tar_begins(block, ETCH_CHAKRA_GROUP_FILE));
    return error;
}

static etch_status inspect_file(etch_folder *folder, const struct stat *info, unsigned *mode)
{
    bool ours = false;
    const int error = look_inside(folder->out.path, &ours);
    *mode = info->st_mode & 07777;
    if (error != 0)
        return etch_io_error(folder->out.diags, "read", folder->out.path, NULL, error);
    return ours ? ETCH_OK
                : refuse(folder, ETCH_E_OUTPUT_TAKEN, "is a file that no run of etch wrote",
                         "remove it, or give another name");
}

etch_status etch_archive_inspect(etch_folder *folder, const etch_emit_options *options, unsigned *mode)
{
    struct stat info;
    *mode = 0;
    folder->out.way = ETCH_TARGET_MISSING;
    if (options->stream > 0) {
        folder->out.path = STREAM_NAME;
        return ETCH_OK;
    }
    etch_target_name(&folder->out, options->archive);
    if (*options->archive == '\0' || etch_has_control(options->archive))
        return refuse(folder, ETCH_E_OUTPUT_KIND, "is no name of a file", "give the name of a file, X.tar");
    if (lstat(folder->out.path, &info) != 0)
        return errno == ENOENT ? ETCH_OK
                               : etch_io_error(folder->out.diags, "create", folder->out.path, NULL, errno);
    if (S_ISREG(info.st_mode))
        return inspect_file(folder, &info, mode);
    if (S_ISDIR(info.st_mode))
        return refuse(folder, ETCH_E_OUTPUT_KIND, "is a folder, and no archive",
                      "to write a folder of this name, end it with a slash: X.tar/");
    return refuse(folder, ETCH_E_OUTPUT_KIND, "is no regular file", "give the name of a file, X.tar");
}
