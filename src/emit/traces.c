/* Writing the traces of all ranks on several threads, of one process or several.
 *
 * The unit of work is a batch: some ranks of one variant. Its chunks are encoded one after the other, and
 * each goes into the files of all its ranks before the next is encoded: so a program of any length needs
 * the memory of one chunk, and encoding is shared. Where traces are compressed, the ranks of a batch come one
 * after the other, since each needs some megabytes meanwhile, and those of equal bytes are copied. */
#define _POSIX_C_SOURCE 200809L

#include "emit/emit_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    /* more would share the cost of encoding further than can be noticed */
    BATCH_RANKS = 32,
    /* over all threads: far below the usual limit of a process */
    OPEN_FILES = 128,
    COPY_BYTES = 1 << 16
};

typedef struct batch {
    const etch_variant *variant;
    const uint32_t *ranks;
    /* in their place: copies of others */
    const etch_twin *twins;
    uint32_t count;
    /* How it went, for the diagnostic. */
    int error;
    uint32_t failed_rank;
    bool cancelled;
} batch;

typedef struct writing {
    const etch_job *job;
    const etch_emit_options *options;
    int folder;
    batch *batches;
    /* by rank: bytes of the file; NULL unless traces are compressed */
    uint64_t *packed;
} writing;

/* What one batch needs while it is written. */
typedef struct desk {
    const writing *w;
    batch *b;
    etch_chunk chunk;
    /* by rank of the batch and blank */
    uint32_t *values;
    int files[BATCH_RANKS];
    /* how many of them */
    uint32_t open;
    /* `chunk` has all nodes */
    bool is_whole;
} desk;

const char *etch_trace_suffix(const etch_emit_options *options)
{
    return options->packs ? ETCH_CHAKRA_SUFFIX_ZSTD : ETCH_CHAKRA_SUFFIX;
}

void etch_trace_name(const char *name, uint32_t rank, const char *suffix, char file_name[ETCH_FILE_NAME])
{
    snprintf(file_name, ETCH_FILE_NAME, "%s.%u%s", name, (unsigned)rank, suffix);
}

static void name_trace(const writing *w, uint32_t rank, char file_name[ETCH_FILE_NAME])
{
    etch_trace_name(w->options->name, rank, etch_trace_suffix(w->options), file_name);
}

static int create_trace(const writing *w, uint32_t rank, int *file)
{
    char name[ETCH_FILE_NAME];
    name_trace(w, rank, name);
    return etch_file_create(w->folder, name, file);
}

static uint32_t rank_of(const desk *d, uint32_t i)
{
    return d->b->twins ? d->b->twins[i].rank : d->b->ranks[i];
}

static etch_status fail(desk *d, uint32_t i, int error)
{
    d->b->error = error;
    d->b->failed_rank = rank_of(d, i);
    return error == ENOMEM ? ETCH_ENOMEM : ETCH_EIO;
}

static etch_status poll_cancel(desk *d)
{
    const atomic_int *cancel = d->w->options->cancel;
    d->b->cancelled = cancel && atomic_load(cancel) != 0;
    return d->b->cancelled ? ETCH_ELIMIT : ETCH_OK;
}

static bool desk_alloc(desk *d)
{
    d->values = calloc((size_t)d->b->count * etch_blank_count(d->w->job), sizeof *d->values);
    return etch_chunk_new(&d->chunk, &d->b->variant->size) && d->values;
}

static uint32_t *values_of(const desk *d, uint32_t i)
{
    return d->values + (size_t)i * etch_blank_count(d->w->job);
}

static etch_status open_files(desk *d)
{
    for (; d->open < d->b->count; d->open++) {
        const int error = create_trace(d->w, rank_of(d, d->open), &d->files[d->open]);
        if (error != 0)
            return fail(d, d->open, error);
    }
    return ETCH_OK;
}

static etch_status write_chunk(desk *d)
{
    const etch_variant *variant = d->b->variant;
    for (uint32_t i = 0; i < d->b->count; i++) {
        etch_status status = poll_cancel(d);
        if (status != ETCH_OK)
            return status;
        etch_chunk_patch(&d->chunk, variant->widths, values_of(d, i));
        int error = etch_file_write(d->files[i], d->chunk.bytes, d->chunk.length);
        if (error != 0)
            return fail(d, i, error);
    }
    return ETCH_OK;
}

static etch_status write_chunks(desk *d)
{
    const etch_variant *variant = d->b->variant;
    etch_status status = ETCH_OK;
    for (uint32_t id = 0; id < variant->program->node_count && status == ETCH_OK;) {
        id = etch_chunk_encode(d->w->job, variant->program, variant->widths, id, &d->chunk);
        status = write_chunk(d);
    }
    return status;
}

static etch_status close_files(desk *d, etch_status status)
{
    for (uint32_t i = 0; i < d->open; i++) {
        int error = etch_file_close(d->files[i]);
        if (error != 0 && status == ETCH_OK)
            status = fail(d, i, error);
    }
    return status;
}

static etch_status write_plain(desk *d)
{
    etch_status status = open_files(d);
    if (status == ETCH_OK)
        status = write_chunks(d);
    return close_files(d, status);
}

/* ---- compressed ---------------------------------------------------------------------------------------- */

/* The chunks of one rank. Where there is only one, the next rank finds it encoded. */
static etch_status pack_chunks(desk *d, uint32_t i, etch_packer *packer)
{
    const etch_variant *variant = d->b->variant;
    const uint32_t count = variant->program->node_count;
    for (uint32_t id = 0; id < count;) {
        const etch_status status = poll_cancel(d);
        if (status != ETCH_OK)
            return status;
        const uint32_t first = id;
        id = d->is_whole ? count
                         : etch_chunk_encode(d->w->job, variant->program, variant->widths, id, &d->chunk);
        d->is_whole = first == 0 && id == count;
        etch_chunk_patch(&d->chunk, variant->widths, values_of(d, i));
        const int error = etch_packer_add(packer, d->chunk.bytes, d->chunk.length);
        if (error != 0)
            return fail(d, i, error);
    }
    const int error = etch_packer_end(packer, &d->w->packed[rank_of(d, i)]);
    return error == 0 ? ETCH_OK : fail(d, i, error);
}

static etch_status pack_trace(desk *d, uint32_t i)
{
    int file;
    int error = create_trace(d->w, rank_of(d, i), &file);
    if (error != 0)
        return fail(d, i, error);
    etch_packer *packer = etch_packer_new(etch_put_into_file, &file, d->b->variant->size.bytes);
    etch_status status = packer ? pack_chunks(d, i, packer) : ETCH_ENOMEM;
    etch_packer_free(packer);
    error = etch_file_close(file);
    return error != 0 && status == ETCH_OK ? fail(d, i, error) : status;
}

static etch_status write_packed(desk *d)
{
    etch_status status = ETCH_OK;
    for (uint32_t i = 0; i < d->b->count && status == ETCH_OK; i++)
        status = pack_trace(d, i);
    return status;
}

/* ---- both ---------------------------------------------------------------------------------------------- */

static etch_status write_batch(void *data, size_t i)
{
    const writing *w = data;
    desk d = {.w = w, .b = &w->batches[i]};
    etch_status status = poll_cancel(&d);
    if (status == ETCH_OK)
        status = desk_alloc(&d) ? ETCH_OK : ETCH_ENOMEM;
    if (status == ETCH_OK) {
        for (uint32_t k = 0; k < d.b->count; k++)
            etch_blanks_fill(w->job, rank_of(&d, k), values_of(&d, k));
        status = w->packed ? write_packed(&d) : write_plain(&d);
    }
    etch_chunk_free(&d.chunk);
    free(d.values);
    return status;
}

unsigned etch_emit_threads(const etch_emit_options *options)
{
    if (options->threads == 0)
        return 1;
    return options->threads < OPEN_FILES ? options->threads : OPEN_FILES;
}

/* Ranks of a batch: enough batches for the threads of all processes, few enough open files. */
static uint32_t batch_ranks(uint32_t rank_count, unsigned threads, uint64_t all_threads)
{
    uint32_t most = BATCH_RANKS;
    const uint64_t share = (rank_count + all_threads - 1) / all_threads;
    if (share < most)
        most = (uint32_t)share;
    if (OPEN_FILES / threads < most)
        most = OPEN_FILES / threads;
    return most;
}

/* Those of this process. */
static size_t make_batches(etch_arena *arena, const etch_variants *variants, const etch_emit_options *options,
                           uint32_t ranks, batch **batches)
{
    size_t count = 0, made = 0, number = 0;
    for (uint32_t i = 0; i < variants->count; i++)
        count += (variants->at[i].count + ranks - 1) / ranks;
    *batches = ETCH_NEW_ARRAY(arena, count, batch);
    for (uint32_t i = 0; i < variants->count; i++) {
        const etch_variant *variant = &variants->at[i];
        for (uint32_t first = 0; first < variant->count; first += ranks) {
            uint32_t left = variant->count - first;
            if (!etch_shared_has(options, number++))
                continue;
            (*batches)[made++] = (batch){
                .variant = variant, .ranks = variant->ranks + first, .count = left < ranks ? left : ranks};
        }
    }
    return made;
}

/* The diagnostic of the first batch that failed. */
static void report(const writing *w, size_t count, const etch_folder *folder)
{
    char name[ETCH_FILE_NAME];
    for (size_t i = 0; i < count; i++) {
        const batch *b = &w->batches[i];
        if (b->cancelled) {
            etch_cancelled(folder->out.diags, folder->out.path);
            return;
        }
        if (b->error != 0) {
            name_trace(w, b->failed_rank, name);
            etch_io_error(folder->out.diags, "write", folder->out.path, name, b->error);
            return;
        }
    }
}

/* ---- further names ------------------------------------------------------------------------------------- */

/* Gives the file of a rank a further name. A file system that has no links, or no more of one file (ext4 has
 * 65,000), says so here. */
static bool link_trace(const writing *w, uint32_t from, uint32_t to)
{
    char name[ETCH_FILE_NAME], other[ETCH_FILE_NAME];
    name_trace(w, from, name);
    name_trace(w, to, other);
    return linkat(w->folder, name, w->folder, other, 0) == 0;
}

/* The traces of a variant that have the bytes of others. One that cannot be a link is a file, and what is
 * linked next is linked to that one. */
static etch_status link_twins(writing *w, const etch_variant *variant, const etch_folder *folder,
                              uint32_t *links)
{
    uint32_t file = 0;
    size_t files = 0;
    for (uint32_t i = 0; i < variant->twin_count; i++) {
        const etch_twin *twin = &variant->twins[i];
        if (w->options->cancel && atomic_load(w->options->cancel) != 0)
            return etch_cancelled(folder->out.diags, folder->out.path);
        if (i == 0 || twin->of != twin[-1].of) {
            file = twin->of;
            files++;
        }
        if (!etch_shared_has(w->options, files))
            continue;
        if (link_trace(w, file, twin->rank)) {
            if (w->packed)
                w->packed[twin->rank] = w->packed[file];
            ++*links;
            continue;
        }
        batch alone = {.variant = variant, .ranks = &twin->rank, .count = 1};
        w->batches = &alone;
        const etch_status status = write_batch(w, 0);
        if (status != ETCH_OK && status != ETCH_ENOMEM)
            report(w, 1, folder);
        if (status != ETCH_OK)
            return status;
        file = twin->rank;
    }
    return ETCH_OK;
}

/* ---- copies -------------------------------------------------------------------------------------------- */

/* A file that is copied, and as much of it as one piece holds. */
typedef struct original {
    uint32_t rank;
    /* all of it is in `bytes` */
    bool is_whole;
    size_t length;
    uint8_t bytes[COPY_BYTES];
} original;

/* The next piece; 0 bytes at the end. Returns 0 or an errno. */
static int read_piece(int file, original *from)
{
    from->length = 0;
    while (from->length < COPY_BYTES) {
        const ssize_t got = read(file, from->bytes + from->length, COPY_BYTES - from->length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            break;
        from->length += (size_t)got;
    }
    return 0;
}

static int copy_pieces(const writing *w, original *from, uint32_t rank, int to)
{
    char name[ETCH_FILE_NAME];
    name_trace(w, rank, name);
    const int file = openat(w->folder, name, O_RDONLY | O_CLOEXEC);
    int error = file < 0 ? errno : 0;
    bool is_first = true;
    for (from->length = COPY_BYTES; error == 0 && from->length == COPY_BYTES; is_first = false) {
        error = read_piece(file, from);
        if (error == 0)
            error = etch_file_write(to, from->bytes, from->length);
        from->is_whole = error == 0 && is_first && from->length < COPY_BYTES;
    }
    from->rank = rank;
    if (file >= 0)
        close(file);
    return error;
}

static int copy_twin(const writing *w, original *from, const etch_twin *twin)
{
    int to;
    int error = create_trace(w, twin->rank, &to);
    if (error != 0)
        return error;
    error = from->is_whole && from->rank == twin->of ? etch_file_write(to, from->bytes, from->length)
                                                     : copy_pieces(w, from, twin->of, to);
    const int close_error = etch_file_close(to);
    w->packed[twin->rank] = w->packed[twin->of];
    return error != 0 ? error : close_error;
}

static etch_status copy_batch(void *data, size_t i)
{
    const writing *w = data;
    desk d = {.w = w, .b = &w->batches[i]};
    original *from = malloc(sizeof *from);
    etch_status status = from ? ETCH_OK : ETCH_ENOMEM;
    if (from)
        from->is_whole = false;
    for (uint32_t k = 0; k < d.b->count && status == ETCH_OK; k++) {
        status = poll_cancel(&d);
        const int error = status == ETCH_OK ? copy_twin(w, from, &d.b->twins[k]) : 0;
        if (error != 0)
            status = fail(&d, k, error);
    }
    free(from);
    return status;
}

/* The traces of a variant that have the bytes of others, which are compressed already. */
static etch_status copy_twins(etch_arena *arena, writing *w, unsigned threads, const etch_variant *variant,
                              const etch_folder *folder)
{
    const size_t count = (variant->twin_count + BATCH_RANKS - 1) / BATCH_RANKS;
    w->batches = ETCH_NEW_ARRAY(arena, count, batch);
    for (size_t i = 0; i < count; i++) {
        const uint32_t first = (uint32_t)i * BATCH_RANKS, left = variant->twin_count - first;
        w->batches[i] = (batch){.twins = variant->twins + first,
                                .count = left < BATCH_RANKS ? left : (uint32_t)BATCH_RANKS};
    }
    const etch_status status = etch_parallel(threads, count, copy_batch, w);
    if (status != ETCH_OK && status != ETCH_ENOMEM)
        report(w, count, folder);
    return status;
}

/* ---- all of them --------------------------------------------------------------------------------------- */

/* Some batches at a time where others may end the run. */
static etch_status write_batches(writing *w, unsigned threads, size_t count, const etch_folder *folder)
{
    enum { BATCHES = 16 }; /* of a thread */
    const bool alone = etch_world_size(w->options->world) == 1;
    const size_t most = alone ? count : (size_t)BATCHES * threads;
    batch *const all = w->batches;
    etch_status status = ETCH_OK;
    for (size_t first = 0; status == ETCH_OK && first < count; first += most) {
        const size_t some = count - first < most ? count - first : most;
        if (etch_shared_is_stopped(w->options))
            return etch_cancelled(folder->out.diags, folder->out.path);
        w->batches = all + first;
        status = etch_parallel(threads, some, write_batch, w);
        if (status != ETCH_OK && status != ETCH_ENOMEM)
            report(w, some, folder);
    }
    return status;
}

static uint64_t count_bytes(const writing *w, const etch_variants *variants)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < variants->count; i++)
        bytes += (variants->at[i].count + variants->at[i].twin_count) * variants->at[i].size.bytes;
    if (!w->packed)
        return bytes;
    bytes = 0;
    for (uint32_t rank = 0; rank < w->job->rank_count; rank++)
        bytes += w->packed[rank];
    return bytes;
}

etch_status etch_traces_write(etch_arena *arena, const etch_job *job, const etch_variants *variants,
                              const etch_emit_options *options, const etch_folder *folder,
                              etch_traces_written *written)
{
    const unsigned threads = etch_emit_threads(options);
    const uint64_t all_threads = (uint64_t)threads * etch_world_size(options->world);
    writing w = {.job = job, .options = options, .folder = folder->out.files};
    if (options->packs)
        w.packed = ETCH_NEW_ARRAY(arena, job->rank_count, uint64_t);
    const uint32_t ranks = batch_ranks(job->rank_count, threads, all_threads);
    const size_t count = make_batches(arena, variants, options, ranks, &w.batches);
    etch_status status = write_batches(&w, threads, count, folder);
    *written = (etch_traces_written){0};
    if (status == ETCH_OK && options->links)
        status = etch_shared_meet(options, folder->out.diags); /* a file is linked that another may write */
    for (uint32_t i = 0; i < variants->count && status == ETCH_OK; i++)
        status = options->links ? link_twins(&w, &variants->at[i], folder, &written->links)
                                : copy_twins(arena, &w, threads, &variants->at[i], folder);
    written->bytes = count_bytes(&w, variants);
    return status;
}
