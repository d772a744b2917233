/* A sweep whose rows several processes compute: each goes through all of them and computes its chunks, as a
 * part does; process 0 gets what came of the others' as records, and takes all in the order of the rows. */
#include "session/sweep/crew_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Records go out together, so many bytes of them. */
enum { MESSAGE_BYTES = 1 << 20 };

static bool is_first(const etch_crew *crew)
{
    return crew->rank == 0;
}

/* ---- the beginning ------------------------------------------------------------------------------------- */

/* The bytes that a process sends next. */
static bool receive_more(etch_part_reader *reader)
{
    etch_crew_source *source = reader->data;
    etch_crew *crew = source->crew;
    etch_sweep *sweep = crew->sweep;
    size_t length = 0;
    source->status = etch_world_receive(crew->world, sweep->session->diags, source->from,
                                        &sweep->session->cancel, &reader->bytes, &length);
    reader->at = 0;
    reader->end = source->status == ETCH_OK ? length : 0;
    return reader->end > 0;
}

static etch_status refuse_other(const etch_crew *crew, uint32_t other)
{
    etch_diag *diag = etch_error(crew->sweep->session->diags, ETCH_E_WORLD, (etch_span){0, 0},
                                 "process %u sweeps something else than process 0", other);
    etch_help(diag, "all processes need the same files, options and version of etch");
    return ETCH_EINPUT;
}

/* All are of one sweep. */
static etch_status compare_heads(etch_crew *crew, const char *head)
{
    etch_sweep *sweep = crew->sweep;
    for (uint32_t i = 1; i < crew->size; i++) {
        const char *bytes;
        size_t length;
        const etch_status status = etch_world_receive(crew->world, sweep->session->diags, i,
                                                      &sweep->session->cancel, &bytes, &length);
        if (status != ETCH_OK)
            return status;
        if (strcmp(bytes, head) != 0)
            return refuse_other(crew, i);
    }
    return ETCH_OK;
}

static etch_status begin_first(etch_crew *crew, const char *head)
{
    etch_sweep *sweep = crew->sweep;
    const etch_part *part = sweep->part;
    etch_status status = compare_heads(crew, head);
    if (status != ETCH_OK)
        return status;
    crew->sources = ETCH_NEW_ARRAY(sweep->arena, crew->size, etch_crew_source);
    for (uint32_t i = 0; i < crew->size; i++)
        crew->sources[i] = (etch_crew_source){
            .crew = crew, .from = i, .reader = {.file = -1, .more = receive_more, .data = &crew->sources[i]}};
    crew->done = crew->next = part ? part->done : 0;
    crew->finished = part && part->finished;
    const char *text = etch_text(sweep->arena, "%" PRIu64 " %d", crew->done, crew->finished);
    return etch_world_send_all(crew->world, sweep->session->diags, text, strlen(text));
}

static etch_status begin_other(etch_crew *crew, const char *head)
{
    etch_sweep *sweep = crew->sweep;
    etch_diags *diags = sweep->session->diags;
    const char *bytes;
    char *end;
    size_t length;
    etch_status status = etch_world_send(crew->world, diags, 0, head, strlen(head));
    if (status == ETCH_OK)
        status = etch_world_receive(crew->world, diags, 0, &sweep->session->cancel, &bytes, &length);
    if (status != ETCH_OK)
        return status;
    crew->done = strtoull(bytes, &end, 10);
    crew->finished = strtoul(end, NULL, 10) != 0;
    return ETCH_OK;
}

etch_status etch_crew_begin(etch_crew *crew)
{
    const char *head = etch_text(crew->sweep->arena, "%u rows\n%s", (unsigned)crew->sweep->block_rows,
                                 etch_part_head(crew->sweep));
    return is_first(crew) ? begin_first(crew, head) : begin_other(crew, head);
}

bool etch_crew_is_own(const etch_crew *crew, uint64_t chunk)
{
    return chunk >= crew->done && chunk % crew->size == crew->rank;
}

/* ---- what others are told ------------------------------------------------------------------------------ */

static etch_status flush(etch_crew *crew)
{
    const etch_status status =
        etch_world_send(crew->world, crew->sweep->session->diags, 0, crew->out.text, crew->out.length);
    etch_arena_free(crew->scratch);
    crew->scratch = NULL;
    crew->out = (etch_buf){0};
    return status;
}

static etch_buf *out_of(etch_crew *crew)
{
    if (!crew->scratch) {
        crew->scratch = etch_arena_new(crew->sweep->mem);
        crew->out = (etch_buf){.arena = crew->scratch};
    }
    return &crew->out;
}

etch_status etch_crew_add(etch_crew *crew, const etch_sweep_block *block, const etch_buf *kept)
{
    etch_part_put_record(out_of(crew), block, kept);
    return crew->out.length < MESSAGE_BYTES ? ETCH_OK : flush(crew);
}

etch_status etch_crew_flush(etch_crew *crew)
{
    return crew->scratch ? flush(crew) : ETCH_OK;
}

bool etch_crew_is_stopped(const etch_crew *crew)
{
    return !is_first(crew) && etch_world_is_stopped(crew->world);
}

/* ---- what process 0 takes ------------------------------------------------------------------------------ */

static etch_status refuse_record(const etch_crew *crew, uint32_t from)
{
    etch_error(crew->sweep->session->diags, ETCH_E_WORLD, (etch_span){0, 0},
               "process %u sends other rows than those that it has to compute", from);
    return ETCH_EINTERNAL;
}

/* A process that was stopped says no more; it is not what failed. */
static etch_status end_early(etch_crew *crew, const etch_crew_source *source)
{
    if (source->status == ETCH_OK)
        return refuse_record(crew, source->from);
    if (source->status != ETCH_ELIMIT || etch_error_count(crew->sweep->session->diags) > 0)
        return source->status;
    crew->sweep->report->stopped = true;
    return ETCH_OK;
}

static etch_status take_record(etch_crew *crew, etch_part_record *record)
{
    etch_sweep *sweep = crew->sweep;
    const char *text;
    size_t length;
    etch_status status = sweep->part ? etch_part_add_record(sweep->part, record) : ETCH_OK;
    if (status == ETCH_OK && !etch_part_apply(sweep, record, &text, &length))
        return refuse_record(crew, (uint32_t)(record->chunk % crew->size));
    return status == ETCH_OK && !sweep->part ? etch_sweep_write(sweep, text, length) : status;
}

static etch_status take_next(etch_crew *crew)
{
    etch_crew_source *source = &crew->sources[crew->next % crew->size];
    etch_arena *scratch = etch_arena_new(crew->sweep->mem);
    etch_part_record record;
    etch_status status = ETCH_OK;
    const etch_part_next next = etch_part_read(&source->reader, scratch, &record);
    if (next == ETCH_PART_TORN)
        status = end_early(crew, source);
    else if (next == ETCH_PART_DONE || record.chunk != crew->next)
        status = refuse_record(crew, source->from);
    else
        status = take_record(crew, &record);
    etch_arena_free(scratch);
    return status;
}

etch_status etch_crew_take(etch_crew *crew, uint64_t until)
{
    etch_status status = ETCH_OK;
    while (status == ETCH_OK && crew->next < until && !crew->sweep->report->stopped) {
        if (crew->next % crew->size != 0)
            status = take_next(crew);
        crew->next++;
    }
    return status;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static etch_status finish_first(etch_crew *crew)
{
    etch_sweep *sweep = crew->sweep;
    etch_status status = etch_crew_take(crew, sweep->chunk);
    for (uint32_t i = 1; status == ETCH_OK && !sweep->report->stopped && i < crew->size; i++) {
        etch_crew_source *source = &crew->sources[i];
        etch_arena *scratch = etch_arena_new(sweep->mem);
        etch_part_record record;
        const etch_part_next next = etch_part_read(&source->reader, scratch, &record);
        etch_arena_free(scratch);
        if (next == ETCH_PART_TORN)
            status = end_early(crew, source);
        else if (next != ETCH_PART_DONE || source->reader.chunks != sweep->chunk ||
                 source->reader.rows != sweep->walked)
            status = refuse_record(crew, i);
    }
    return status;
}

etch_status etch_crew_finish(etch_crew *crew)
{
    if (is_first(crew))
        return finish_first(crew);
    etch_part_put_done(out_of(crew), crew->sweep);
    return flush(crew);
}
