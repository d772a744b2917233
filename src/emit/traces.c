/* Writing the traces of all ranks on several threads, of one process or several.
 *
 * The unit of work is a batch: some ranks of one variant. Its chunks are encoded one after the other, and
 * each goes into the files of all its ranks before the next is encoded: so a program of any length needs
 * the memory of one chunk, and encoding is shared. */
#define _POSIX_C_SOURCE 200809L

#include "emit/emit_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    /* more would share the cost of encoding further than can be noticed */
    BATCH_RANKS = 32,
    /* over all threads: far below the usual limit of a process */
    OPEN_FILES = 128
};

typedef struct batch {
    const etch_variant *variant;
    const uint32_t *ranks;
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
} desk;

void etch_trace_name(const char *name, uint32_t rank, char file_name[ETCH_FILE_NAME])
{
    snprintf(file_name, ETCH_FILE_NAME, "%s.%u.et", name, (unsigned)rank);
}

static uint32_t rank_of(const desk *d, uint32_t i)
{
    return d->b->ranks[i];
}

static etch_status fail(desk *d, uint32_t i, int error)
{
    d->b->error = error;
    d->b->failed_rank = rank_of(d, i);
    return ETCH_EIO;
}

static etch_status poll_cancel(desk *d)
{
    const atomic_int *cancel = d->w->options->cancel;
    d->b->cancelled = cancel && atomic_load(cancel) != 0;
    return d->b->cancelled ? ETCH_ELIMIT : ETCH_OK;
}

static bool desk_alloc(desk *d)
{
    const etch_trace_size *size = &d->b->variant->size;
    d->chunk.bytes = malloc(size->chunk_bytes);
    d->chunk.patches = malloc((size->chunk_patches + 1) * sizeof *d->chunk.patches);
    d->values = calloc((size_t)d->b->count * etch_blank_count(d->w->job), sizeof *d->values);
    return d->chunk.bytes && d->chunk.patches && d->values;
}

static uint32_t *values_of(const desk *d, uint32_t i)
{
    return d->values + (size_t)i * etch_blank_count(d->w->job);
}

static etch_status open_files(desk *d)
{
    char name[ETCH_FILE_NAME];
    for (; d->open < d->b->count; d->open++) {
        etch_trace_name(d->w->options->name, rank_of(d, d->open), name);
        int error = etch_file_create(d->w->folder, name, &d->files[d->open]);
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
        status = open_files(&d);
    }
    if (status == ETCH_OK)
        status = write_chunks(&d);
    status = close_files(&d, status);
    free(d.chunk.bytes);
    free(d.chunk.patches);
    free(d.values);
    return status;
}

static unsigned thread_count(const etch_emit_options *options)
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
            etch_trace_name(w->options->name, b->failed_rank, name);
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
    etch_trace_name(w->options->name, from, name);
    etch_trace_name(w->options->name, to, other);
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

etch_status etch_traces_write(etch_arena *arena, const etch_job *job, const etch_variants *variants,
                              const etch_emit_options *options, const etch_folder *folder, uint32_t *links)
{
    const unsigned threads = thread_count(options);
    const uint64_t all_threads = (uint64_t)threads * etch_world_size(options->world);
    writing w = {.job = job, .options = options, .folder = folder->out.files};
    const uint32_t ranks = batch_ranks(job->rank_count, threads, all_threads);
    const size_t count = make_batches(arena, variants, options, ranks, &w.batches);
    etch_status status = write_batches(&w, threads, count, folder);
    *links = 0;
    if (status == ETCH_OK && options->links)
        status = etch_shared_meet(options, folder->out.diags); /* a file is linked that another may write */
    for (uint32_t i = 0; i < variants->count && status == ETCH_OK; i++)
        status = link_twins(&w, &variants->at[i], folder, links);
    return status;
}
