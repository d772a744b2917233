/* A part of a sweep on its way into a file. */
#define _POSIX_C_SOURCE 200809L

#include "session/sweep/part_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* ---- fields -------------------------------------------------------------------------------------------- */

void etch_part_put(etch_buf *out, const char *text)
{
    if (!text) {
        etch_buf_puts(out, ETCH_PART_NOTHING);
        return;
    }
    for (; *text; text++) {
        const char *special = *text == '\\' ? "\\\\" : *text == '\t' ? "\\t" : *text == '\n' ? "\\n" : NULL;
        etch_buf_add(out, special ? special : text, special ? 2 : 1);
    }
}

/* ---- the header ---------------------------------------------------------------------------------------- */

static void put_line(etch_buf *out, const char *word, const char *text)
{
    etch_buf_printf(out, "%s ", word);
    etch_part_put(out, text);
    etch_buf_puts(out, "\n");
}

/* The files of a machine, and what is set in them. */
static void put_machine(etch_buf *all, const etch_sweep_machine_of *machine)
{
    const etch_source **files;
    const uint32_t count =
        machine->session && machine->session->spec ? etch_spec_files(machine->session->spec, &files) : 0;
    put_line(all, "machine", machine->name);
    for (uint32_t i = 0; i < count; i++) {
        etch_buf_printf(all, "%zu:", (size_t)files[i]->length);
        etch_buf_add(all, files[i]->text, files[i]->length);
    }
    for (uint32_t i = 0; i < machine->sets.count; i++)
        put_line(all, "number", machine->sets.at[i]);
}

/* What the rows depend on: files, options of the session, the version of the program. */
static const char *digest_of(const etch_sweep *sweep)
{
    etch_session *session = sweep->session;
    const etch_session_options *o = &session->options;
    etch_buf all = {.arena = sweep->arena};
    const etch_source **files;
    const uint32_t count = etch_spec_files(session->spec, &files);
    for (uint32_t i = 0; i < count; i++) {
        etch_buf_printf(&all, "%zu:", (size_t)files[i]->length);
        etch_buf_add(&all, files[i]->text, files[i]->length);
    }
    for (uint32_t i = 0; i < sweep->machines.count; i++)
        put_machine(&all, sweep->machines.at[i]);
    put_line(&all, "version", ETCH_VERSION);
    put_line(&all, "config", o->config);
    put_line(&all, "plan", o->plan);
    put_line(&all, "run", o->run);
    put_line(&all, "stage", o->stage);
    put_line(&all, "count", o->count);
    put_line(&all, "stack", sweep->options->stack);
    etch_buf_printf(&all, "granularity %d\n", (int)o->granularity);
    for (size_t i = 0; i < o->set_count; i++)
        put_line(&all, "set", o->sets[i]);
    for (size_t i = 0; i < o->plan_set_count; i++)
        put_line(&all, "option", o->plan_sets[i]);
    for (uint32_t i = 0; i < sweep->request.over.count; i++)
        put_line(&all, "over", sweep->request.over.at[i]);
    char *text = etch_alloc(sweep->arena, ETCH_SHA256_TEXT);
    etch_sha256(&(etch_piece){all.text, all.length}, 1, text);
    return text;
}

static void put_frame(etch_buf *out, const etch_sweep *sweep, const etch_sweep_frame *frame)
{
    etch_buf_printf(out, "frame %d %u ", frame->refused, (unsigned)frame->reason.code);
    for (uint32_t i = 0; i < sweep->request.choices.count; i++) {
        etch_part_put(out, frame->choices[i]);
        etch_buf_puts(out, "\t");
    }
    etch_part_put(out, frame->reason.text);
    etch_buf_puts(out, "\n");
    for (uint32_t i = 0; i < frame->axis_count; i++) {
        etch_buf_printf(out, "axis %u ", frame->axes[i].column);
        etch_part_put(out, frame->axes[i].name);
        etch_buf_puts(out, "\n");
    }
    for (uint32_t i = 0; !frame->refused && i < sweep->request.where.count; i++)
        etch_buf_printf(out, "kind %d\n", (int)frame->kinds[i]);
}

const char *etch_part_head(const etch_sweep *sweep)
{
    const etch_sweep_request *r = &sweep->request;
    etch_buf out = {.arena = sweep->arena};
    put_line(&out, "of", digest_of(sweep));
    etch_buf_printf(&out, "format %d\n", (int)sweep->options->format);
    for (uint32_t i = 0; i < r->choices.count; i++)
        put_line(&out, r->choices.at[i].named ? "named" : "choice", r->choices.at[i].name);
    for (uint32_t i = 0; i < sweep->columns.count; i++)
        put_line(&out, "column", sweep->columns.at[i]);
    for (uint32_t i = 0; i < r->exprs.count; i++)
        put_line(&out, "expr", r->exprs.at[i]);
    if (r->has_best)
        etch_buf_printf(&out, "best %u %" PRIu64 "\n", r->best, r->top);
    for (uint32_t i = 0; i < r->pareto.count; i++)
        etch_buf_printf(&out, "pareto %u\n", r->pareto.at[i]);
    for (uint32_t i = 0; i < r->where.count; i++)
        put_line(&out, "where", r->where.at[i]);
    for (uint32_t i = 0; i < sweep->frames.count; i++)
        put_frame(&out, sweep, sweep->frames.at[i]);
    return out.text;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static etch_status fail(const etch_part *p, const char *verb, int error)
{
    return etch_io_error(p->sweep->session->diags, verb, p->path, NULL, error);
}

static etch_status refuse(const etch_part *p, const char *why, const char *help)
{
    etch_diag *diag =
        etch_error(p->sweep->session->diags, ETCH_E_SWEEP_PART, (etch_span){0, 0}, "'%s' %s", p->path, why);
    etch_help(diag, "%s", help);
    return ETCH_EINPUT;
}

/* Takes over what an earlier run has left, up to where it is whole. */
static etch_status take_over(etch_part *p, int file)
{
    etch_sweep *sweep = p->sweep;
    etch_part_reader *reader = ETCH_NEW(sweep->arena, etch_part_reader);
    const char *why, *text;
    size_t length;
    *reader = (etch_part_reader){.file = file, .path = p->path};
    if (!etch_part_open(reader, sweep->arena, &why)) {
        if (reader->is_other)
            return refuse(p, "holds something else than a part of a sweep",
                          "name another file, or remove it");
        return ftruncate(file, 0) == 0 ? ETCH_OK : fail(p, "write", errno);
    }
    if (strcmp(reader->head, p->head) != 0 || reader->shard != p->shard || reader->shards != p->shards)
        return refuse(p, "is a part of another sweep", "name another file, or remove it");
    for (;;) {
        etch_arena *scratch = etch_arena_new(sweep->mem);
        etch_part_record record;
        const etch_part_next next = etch_part_read(reader, scratch, &record);
        const bool fine = next != ETCH_PART_RECORD || (record.chunk == p->done * p->shards + p->shard - 1 &&
                                                       etch_part_apply(sweep, &record, &text, &length));
        etch_arena_free(scratch);
        p->finished = next == ETCH_PART_DONE;
        if (next != ETCH_PART_RECORD || !fine)
            break;
        p->done++;
    }
    if (p->finished)
        return ETCH_OK;
    if (ftruncate(file, (off_t)reader->whole) != 0 || lseek(file, 0, SEEK_END) < 0)
        return fail(p, "write", errno);
    return ETCH_OK;
}

static int open_in(const etch_part *p, const char *name, int flags)
{
    int file;
    do
        file = openat(p->folder, name, flags | O_CLOEXEC, 0666);
    while (file < 0 && errno == EINTR);
    return file;
}

static etch_status write_head(etch_part *p)
{
    etch_buf out = {.arena = p->sweep->arena};
    etch_buf_printf(&out, ETCH_PART_MAGIC "\nshard %u %u\n%send\n", p->shard, p->shards, p->head);
    const int error = etch_file_write(p->file, out.text, out.length);
    return error ? fail(p, "write", error) : ETCH_OK;
}

static etch_status open_unfinished(etch_part *p, bool resume)
{
    p->file = open_in(p, p->unfinished, O_RDWR | O_CREAT);
    if (p->file < 0)
        return fail(p, "create", errno);
    if (flock(p->file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return refuse(p, "is being written by another process", "wait for it, or name another file");
    if (!resume && ftruncate(p->file, 0) != 0)
        return fail(p, "write", errno);
    const etch_status status = resume ? take_over(p, p->file) : ETCH_OK;
    if (status != ETCH_OK || p->finished)
        return status;
    const off_t end = lseek(p->file, 0, SEEK_END);
    return end == 0 ? write_head(p) : end < 0 ? fail(p, "write", errno) : ETCH_OK;
}

etch_status etch_part_begin(etch_part *p)
{
    const etch_sweep_options *o = p->sweep->options;
    etch_arena *arena = p->sweep->arena;
    const char *slash = strrchr(o->file, '/');
    const char *parent = slash == o->file ? "/"
                         : slash          ? etch_copy_text(arena, o->file, (size_t)(slash - o->file))
                                          : ".";
    p->path = o->file;
    p->name = slash ? slash + 1 : o->file;
    p->unfinished = etch_text(arena, "%s" ETCH_PART_UNFINISHED, p->name);
    p->head = etch_part_head(p->sweep);
    p->folder = *p->name ? etch_open_folder(parent) : -1;
    if (p->folder < 0)
        return fail(p, "create", *p->name ? errno : EISDIR);
    /* A part that is finished already, which a queue of jobs may ask for again. */
    const int file = o->resume && !p->alone ? open_in(p, p->name, O_RDONLY) : -1;
    if (file >= 0) {
        const etch_status status = take_over(p, file);
        close(file);
        if (status != ETCH_OK || p->finished)
            return status;
        return refuse(p, "is no finished part", "name another file, or remove it");
    }
    return open_unfinished(p, o->resume);
}

/* ---- records ------------------------------------------------------------------------------------------- */

static void put_exacts(etch_buf *out, etch_arena *arena, const etch_exact *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(out, "%s%s", i ? " " : "", etch_exact_text(arena, values[i]));
}

static void put_tally(etch_buf *out, etch_arena *arena, const etch_tally *t)
{
    etch_buf_printf(out, "tally %u %" PRIu64 " %" PRIu64 " %u ", (unsigned)t->reason.code, t->count, t->row,
                    t->frame->number);
    etch_part_put(out, t->reason.text);
    etch_buf_puts(out, "\t");
    put_exacts(out, arena, t->values, t->frame->axis_count);
    etch_buf_puts(out, "\n");
}

void etch_part_put_row(etch_buf *out, const etch_sweep *sweep, const etch_kept_row *row)
{
    etch_buf_printf(out, "row %" PRIu64 " %u ", row->row, row->frame->number);
    put_exacts(out, out->arena, row->values, row->frame->axis_count);
    etch_buf_puts(out, "\t");
    put_exacts(out, out->arena, row->results, sweep->request.exprs.count);
    etch_buf_puts(out, "\n");
}

/* The line before the bytes of a record. */
static void put_line_of(etch_buf *out, const etch_part_record *record)
{
    etch_buf line = {.arena = out->arena};
    etch_buf_printf(&line, "record %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, record->chunk,
                    record->rows, record->unmet, record->written, record->length);
    const uint64_t sum = etch_part_sum(line.text, line.length, record->bytes, (size_t)record->length);
    etch_buf_printf(out, "%s %016" PRIx64 "\n", line.text, sum);
}

/* `out` has its bytes. */
static etch_part_record make_record(etch_buf *out, const etch_sweep_block *b, const etch_buf *kept)
{
    for (uint32_t i = 0; i < b->sweep->request.where.count; i++)
        etch_buf_printf(out, "asked %" PRIu64 " %" PRIu64 "\n", b->asked[i], b->met[i]);
    for (uint32_t i = 0; i < b->tallies.count; i++)
        put_tally(out, b->arena, &b->tallies.at[i]);
    if (kept->length)
        etch_buf_add(out, kept->text, kept->length);
    etch_buf_puts(out, "rows\n");
    if (b->text.length)
        etch_buf_add(out, b->text.text, b->text.length);
    return (etch_part_record){b->chunk, b->count + b->skipped, b->unmet, b->written, out->length, out->text};
}

void etch_part_put_record(etch_buf *out, const etch_sweep_block *b, const etch_buf *kept)
{
    etch_buf bytes = {.arena = b->arena};
    const etch_part_record record = make_record(&bytes, b, kept);
    put_line_of(out, &record);
    etch_buf_add(out, record.bytes, (size_t)record.length);
}

etch_status etch_part_add_record(etch_part *p, const etch_part_record *record)
{
    etch_arena *scratch = etch_arena_new(p->sweep->mem);
    etch_buf line = {.arena = scratch};
    put_line_of(&line, record);
    int error = etch_file_write(p->file, line.text, line.length);
    etch_arena_free(scratch);
    if (error == 0)
        error = etch_file_write(p->file, record->bytes, (size_t)record->length);
    return error ? fail(p, "write", error) : ETCH_OK;
}

etch_status etch_part_add(etch_part *p, const etch_sweep_block *b, const etch_buf *kept)
{
    etch_buf bytes = {.arena = b->arena};
    const etch_part_record record = make_record(&bytes, b, kept);
    return etch_part_add_record(p, &record);
}

void etch_part_put_done(etch_buf *out, const etch_sweep *sweep)
{
    etch_buf line = {.arena = sweep->arena};
    etch_buf_printf(&line, "done %" PRIu64 " %" PRIu64, sweep->chunk, sweep->walked);
    etch_buf_printf(out, "%s %016" PRIx64 "\n", line.text, etch_part_sum(line.text, line.length, NULL, 0));
}

etch_status etch_part_finish(etch_part *p)
{
    etch_sweep *sweep = p->sweep;
    if (p->finished)
        return ETCH_OK;
    etch_buf line = {.arena = sweep->arena};
    etch_part_put_done(&line, sweep);
    int error = etch_file_write(p->file, line.text, line.length);
    if (error == 0 && fsync(p->file) != 0 && errno != EINVAL)
        error = errno;
    if (error == 0 && !p->alone && renameat(p->folder, p->unfinished, p->folder, p->name) != 0)
        error = errno;
    if (error)
        return fail(p, "write", error);
    if (!p->alone)
        (void)fsync(p->folder); /* some file systems have nothing to sync of a folder */
    p->finished = true;
    return ETCH_OK;
}

etch_status etch_part_copy(etch_part *p)
{
    etch_sweep *sweep = p->sweep;
    etch_part_reader *reader = ETCH_NEW(sweep->arena, etch_part_reader);
    etch_part_next next = ETCH_PART_RECORD;
    etch_status status = ETCH_OK;
    const char *why;
    *reader = (etch_part_reader){.file = p->file, .path = p->path};
    if (lseek(p->file, 0, SEEK_SET) < 0 || !etch_part_open(reader, sweep->arena, &why))
        return fail(p, "read", errno ? errno : EIO);
    while (status == ETCH_OK && next == ETCH_PART_RECORD) {
        etch_arena *scratch = etch_arena_new(sweep->mem);
        etch_part_record record;
        next = etch_part_read(reader, scratch, &record);
        const char *rows = next == ETCH_PART_RECORD ? etch_part_rows(&record) : NULL;
        if (rows)
            status = etch_sweep_write(sweep, rows, record.length - (size_t)(rows - record.bytes));
        etch_arena_free(scratch);
    }
    return status == ETCH_OK && next != ETCH_PART_DONE ? fail(p, "read", EIO) : status;
}

void etch_part_remove(etch_part *p)
{
    (void)unlinkat(p->folder, p->unfinished, 0);
}

void etch_part_end(etch_part *p)
{
    if (p->file >= 0)
        close(p->file);
    if (p->folder >= 0)
        close(p->folder);
    p->file = p->folder = -1;
}

/* ---- shares -------------------------------------------------------------------------------------------- */

bool etch_part_read_share(etch_session *session, const char *text, uint32_t *shard, uint32_t *shards)
{
    enum { MOST = 100000 };
    char *end;
    *shard = *shards = 1;
    if (!text)
        return true;
    const unsigned long i = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    const unsigned long n =
        i > 0 && *end == '/' && end[1] >= '0' && end[1] <= '9' ? strtoul(end + 1, &end, 10) : 0;
    if (i >= 1 && i <= n && n <= MOST && *end == '\0') {
        *shard = (uint32_t)i;
        *shards = (uint32_t)n;
        return true;
    }
    etch_diag *diag = etch_error(session->diags, ETCH_E_SWEEP_PART, (etch_span){0, 0},
                                 "'%.40s' is no share of a sweep", text);
    return etch_help(diag, "write 3/8: the third of eight; at most %d", MOST);
}

bool etch_part_is_own(const etch_part *p, uint64_t chunk)
{
    return chunk % p->shards == p->shard - 1 && chunk / p->shards >= p->done;
}
