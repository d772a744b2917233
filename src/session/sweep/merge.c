/* A sweep's output from the parts that several processes have made of it: rows in their order, the best of
 * all, and what all of them left out. The spec is not needed. */
#define _POSIX_C_SOURCE 200809L

#include "session/sweep/part_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct merging {
    etch_session *session;
    const char *const *paths;
    size_t count;
    etch_sweep sweep;
    etch_sweep_options options;
    /* by share */
    etch_part_reader **readers;
} merging;

/* ---- the header ---------------------------------------------------------------------------------------- */

typedef ETCH_VEC(etch_sweep_axis) etch_axes;
typedef ETCH_VEC(etch_where_kind) etch_kinds;

/* A sweep that is made again from the lines of a header. */
typedef struct heading {
    etch_sweep *sweep;
    etch_sweep_options *options;
    etch_sweep_frame *frame;
    etch_axes axes;
    etch_kinds kinds;
} heading;

static const char *rest_of(etch_arena *arena, const char *line)
{
    const char *space = strchr(line, ' ');
    return space ? etch_part_text(etch_copy_text(arena, space + 1, strlen(space + 1))) : NULL;
}

/* The i-th number behind the word. */
static uint64_t number_in(const char *line, int i)
{
    for (; line && i >= 0; i--)
        line = strchr(line, ' ') ? strchr(line, ' ') + 1 : NULL;
    return line ? strtoull(line, NULL, 10) : 0;
}

static void end_frame(heading *h)
{
    if (!h->frame)
        return;
    h->frame->axes = h->axes.at;
    h->frame->axis_count = h->axes.count;
    h->frame->kinds = h->kinds.at;
    h->axes = (etch_axes){0};
    h->kinds = (etch_kinds){0};
}

static bool add_frame(heading *h, const char *line)
{
    etch_arena *arena = h->sweep->arena;
    const char *at = strchr(line, ' ');
    at = at ? strchr(at + 1, ' ') : NULL;
    at = at ? strchr(at + 1, ' ') : NULL;
    if (!at)
        return false;
    const uint32_t count = h->sweep->request.choices.count;
    const char **choices = ETCH_NEW_ARRAY(arena, count, const char *);
    char *field = etch_copy_text(arena, at + 1, strlen(at + 1));
    for (uint32_t i = 0; i < count; i++) {
        char *next = strchr(field, '\t');
        if (!next)
            return false;
        *next = '\0';
        choices[i] = etch_part_text(field);
        field = next + 1;
    }
    end_frame(h);
    h->frame = ETCH_NEW(arena, etch_sweep_frame);
    *h->frame = (etch_sweep_frame){.number = h->sweep->frames.count,
                                   .choices = choices,
                                   .refused = number_in(line, 0) != 0,
                                   .reason = {(etch_code)number_in(line, 1), etch_part_text(field)}};
    ETCH_PUSH(arena, &h->sweep->frames, h->frame);
    return true;
}

static bool add_axis(heading *h, const char *line)
{
    const char *name = strchr(line, ' ');
    const uint64_t column = number_in(line, 0);
    if (!h->frame || !name || column >= h->sweep->columns.count)
        return false;
    const etch_sweep_axis axis = {.column = (uint32_t)column, .name = rest_of(h->sweep->arena, name + 1)};
    ETCH_PUSH(h->sweep->arena, &h->axes, axis);
    return axis.name != NULL;
}

static bool is_word(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0 && line[strlen(word)] == ' ';
}

static bool add_line(heading *h, const char *line)
{
    etch_sweep *sweep = h->sweep;
    etch_sweep_request *r = &sweep->request;
    if (is_word(line, "of"))
        return true;
    if (is_word(line, "format")) {
        h->options->format = (etch_sweep_format)number_in(line, 0);
        return etch_sweep_format_name(h->options->format) != NULL;
    }
    if (is_word(line, "named") || is_word(line, "choice")) {
        const etch_sweep_choice choice = {.name = rest_of(sweep->arena, line),
                                          .named = is_word(line, "named")};
        ETCH_PUSH(sweep->arena, &r->choices, choice);
        return choice.name != NULL;
    }
    if (is_word(line, "column")) {
        ETCH_PUSH(sweep->arena, &sweep->columns, rest_of(sweep->arena, line));
    } else if (is_word(line, "expr")) {
        ETCH_PUSH(sweep->arena, &r->exprs, rest_of(sweep->arena, line));
    } else if (is_word(line, "where")) {
        ETCH_PUSH(sweep->arena, &r->where, rest_of(sweep->arena, line));
    } else if (is_word(line, "best")) {
        r->has_best = true;
        r->best = (uint32_t)number_in(line, 0);
        r->top = number_in(line, 1);
        return r->best < r->exprs.count && r->top > 0;
    } else if (is_word(line, "pareto")) {
        ETCH_PUSH(sweep->arena, &r->pareto, (uint32_t)number_in(line, 0));
        return number_in(line, 0) < r->exprs.count;
    } else if (is_word(line, "kind")) {
        ETCH_PUSH(sweep->arena, &h->kinds, (etch_where_kind)number_in(line, 0));
    } else {
        return is_word(line, "frame") ? add_frame(h, line) : is_word(line, "axis") && add_axis(h, line);
    }
    return true;
}

static bool read_head(merging *m, const char *head)
{
    heading h = {.sweep = &m->sweep, .options = &m->options};
    bool fine = true;
    for (const char *at = head, *end; fine && (end = strchr(at, '\n')) != NULL; at = end + 1)
        fine = add_line(&h, etch_copy_text(m->sweep.arena, at, (size_t)(end - at)));
    end_frame(&h);
    for (uint32_t i = 0; fine && i < m->sweep.frames.count; i++) {
        const etch_sweep_frame *frame = m->sweep.frames.at[i];
        fine = frame->refused || m->sweep.request.where.count == 0 || frame->kinds;
    }
    return fine && m->sweep.request.exprs.count > 0 && m->sweep.frames.count > 0;
}

/* ---- parts --------------------------------------------------------------------------------------------- */

static etch_status refuse(merging *m, const char *path, const char *why, const char *help)
{
    etch_diag *diag =
        etch_error(m->session->diags, ETCH_E_SWEEP_PART, (etch_span){0, 0}, "'%s' %s", path, why);
    if (help)
        etch_help(diag, "%s", help);
    return ETCH_EINPUT;
}

static etch_status open_part(merging *m, const char *path, etch_part_reader **out)
{
    const char *why;
    etch_part_reader *r = *out = ETCH_NEW(m->sweep.arena, etch_part_reader);
    *r = (etch_part_reader){.path = path, .file = -1};
    do
        r->file = open(path, O_RDONLY | O_CLOEXEC);
    while (r->file < 0 && errno == EINTR);
    if (r->file < 0)
        return etch_io_error(m->session->diags, "read", path, NULL, errno);
    ETCH_PUSH(m->sweep.arena, &m->sweep.files, r->file);
    if (!etch_part_open(r, m->sweep.arena, &why))
        return refuse(m, path, why, NULL);
    return ETCH_OK;
}

static etch_status report_missing(merging *m)
{
    uint32_t missing = 0, first = 0, shards = (uint32_t)m->count;
    for (uint32_t i = shards; i-- > 0;)
        if (!m->readers[i]) {
            missing++;
            first = i + 1;
        }
    etch_diag *diag =
        etch_error(m->session->diags, ETCH_E_SWEEP_PART, (etch_span){0, 0},
                   "%u of %u parts are missing, the first is %u/%u", missing, shards, first, shards);
    etch_help(diag, "make it: --shard %u/%u", first, shards);
    return ETCH_EINPUT;
}

/* All parts, each once, of one sweep. */
static etch_status open_all(merging *m)
{
    uint32_t shards = 0;
    const char *head = NULL;
    if (m->count == 0)
        return refuse(m, "", "is no file", NULL);
    for (size_t i = 0; i < m->count; i++) {
        etch_part_reader *r;
        const etch_status status = open_part(m, m->paths[i], &r);
        if (status != ETCH_OK)
            return status;
        if (!head) {
            head = r->head;
            shards = r->shards;
            if (!read_head(m, head))
                return refuse(m, r->path, "has a header that etch does not write", NULL);
            m->readers = ETCH_NEW_ARRAY(m->sweep.arena, shards, etch_part_reader *);
        }
        if (r->shards != shards || strcmp(r->head, head) != 0)
            return refuse(m, r->path, etch_text(m->sweep.arena, "is of another sweep than '%s'", m->paths[0]),
                          "all parts are made by one command, but for --shard");
        if (m->readers[r->shard - 1])
            return refuse(
                m, r->path,
                etch_text(m->sweep.arena, "is the same part as '%s'", m->readers[r->shard - 1]->path), NULL);
        m->readers[r->shard - 1] = r;
    }
    const size_t given = m->count;
    m->count = shards;
    return given == shards ? ETCH_OK : report_missing(m);
}

/* ---- records ------------------------------------------------------------------------------------------- */

/* The chunk of a part that comes next, or its end; and nothing else. */
static etch_status next_record(merging *m, etch_part_reader *r, uint64_t chunk, bool *ended)
{
    etch_sweep *sweep = &m->sweep;
    etch_arena *scratch = etch_arena_new(sweep->mem);
    etch_part_record record;
    const char *text;
    size_t length;
    etch_status status = ETCH_OK;
    const etch_part_next next = etch_part_read(r, scratch, &record);
    *ended = next == ETCH_PART_DONE;
    if (next == ETCH_PART_TORN || (next == ETCH_PART_RECORD && record.chunk != chunk)) {
        status = refuse(m, r->path, "is not finished", "run its sweep with --resume");
    } else if (next == ETCH_PART_RECORD) {
        if (!etch_part_apply(sweep, &record, &text, &length))
            status = refuse(m, r->path, "has a record that etch does not write", NULL);
        else
            status = etch_sweep_write(sweep, text, length);
    }
    etch_arena_free(scratch);
    return status;
}

static etch_status merge_records(merging *m)
{
    uint64_t chunk = 0;
    for (;; chunk++) {
        bool ended;
        const etch_status status = next_record(m, m->readers[chunk % m->count], chunk, &ended);
        if (status != ETCH_OK)
            return status;
        if (ended)
            break;
        if (atomic_load(&m->session->cancel) != 0) {
            m->sweep.report->stopped = true;
            return ETCH_OK;
        }
    }
    /* The others have as many. */
    for (size_t i = 0; i < m->count; i++) {
        etch_part_reader *r = m->readers[i];
        bool ended = i == chunk % m->count;
        const etch_status status = ended ? ETCH_OK : next_record(m, r, UINT64_MAX, &ended);
        if (status != ETCH_OK)
            return status;
        if (r->chunks != chunk || r->rows != m->sweep.report->rows)
            return refuse(m, r->path, "ends elsewhere than the others", NULL);
    }
    return ETCH_OK;
}

static etch_status run(void *data)
{
    merging *m = data;
    etch_sweep *sweep = &m->sweep;
    sweep->report = ETCH_NEW(m->session->arena, etch_sweep_report);
    etch_status status = open_all(m);
    if (status != ETCH_OK)
        return status;
    sweep->asked = ETCH_NEW_ARRAY(sweep->arena, sweep->request.where.count, uint64_t);
    sweep->met = ETCH_NEW_ARRAY(sweep->arena, sweep->request.where.count, uint64_t);
    status = etch_sink_open(&sweep->sink);
    if (status == ETCH_OK)
        status = merge_records(m);
    return status == ETCH_OK ? etch_sweep_finish(sweep) : status;
}

static etch_status run_guarded(void *data)
{
    merging *m = data;
    return etch_guard(m->sweep.mem, run, m);
}

etch_status etch_session_merge(etch_session *session, const char *const *parts, size_t count,
                               const etch_sweep_options *options, const etch_sweep_report **report)
{
    merging m = {.session = session, .paths = parts, .count = count};
    const char *unfit = etch_options_read(options, &m.options, sizeof m.options);
    m.options.explain = false; /* that asks the spec */
    m.options.plot = m.options.lower = NULL;
    m.sweep.session = session;
    m.sweep.options = &m.options;
    m.sweep.sink = (etch_sweep_sink){.session = session, .options = &m.options, .folder = -1, .file = -1};
    etch_status status = etch_sweep_begin(&m.sweep);
    if (status == ETCH_OK)
        status =
            unfit ? etch_session_refuse(session, unfit) : etch_session_run_plain(session, run_guarded, &m);
    etch_sweep_end(&m.sweep);
    *report = status == ETCH_OK && session->broken == ETCH_OK ? m.sweep.report : NULL;
    return status;
}
