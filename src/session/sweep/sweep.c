/* Sweeps: frames, one after the other; their rows in blocks, some blocks at a time; and what comes of them,
 * in the order of the rows. */
#include "session/sweep/sweep_int.h"

#include <inttypes.h>
#include <string.h>

/* More rows need a word of the user. */
#define ROWS_UNASKED UINT64_C(100000000)

/* ---- what blocks say ----------------------------------------------------------------------------------- */

static void add_tally(etch_sweep *sweep, const etch_tally *tally)
{
    etch_arena *arena = sweep->arena;
    etch_tally own = *tally;
    sweep->report->refused += tally->count;
    etch_tally *known = etch_tally_add(arena, &sweep->tallies, &own);
    if (known->values != tally->values)
        return;
    etch_exact *values = ETCH_NEW_ARRAY(arena, tally->frame->axis_count, etch_exact);
    for (uint32_t i = 0; i < tally->frame->axis_count; i++)
        values[i] = tally->values[i];
    known->values = values;
    known->reason.text = etch_copy_string(arena, tally->reason.text);
}

/* Before the first row. */
static etch_status write_head(etch_sweep *sweep)
{
    etch_buf head = {.arena = sweep->arena};
    if (!sweep->has_head)
        etch_print_head(sweep, &head);
    sweep->has_head = true;
    return etch_sink_write(&sweep->sink, &head);
}

static etch_status take_block(etch_sweep *sweep, etch_sweep_block *b)
{
    for (uint32_t i = 0; i < b->tallies.count; i++)
        add_tally(sweep, &b->tallies.at[i]);
    for (uint32_t i = 0; i < sweep->request.where.count; i++) {
        sweep->asked[i] += b->asked[i];
        sweep->met[i] += b->met[i];
    }
    sweep->report->unmet += b->unmet;
    sweep->report->written += b->written;
    if (!etch_sweep_streams(sweep))
        etch_rows_take(sweep, b);
    const etch_status status = b->text.length ? write_head(sweep) : ETCH_OK;
    return status == ETCH_OK ? etch_sink_write(&sweep->sink, &b->text) : status;
}

static etch_status run_blocks(etch_sweep *sweep)
{
    const unsigned threads = sweep->options->threads ? sweep->options->threads : 1;
    etch_status status = etch_blocks_compute(sweep, threads);
    for (uint32_t i = 0; status == ETCH_OK && i < sweep->block_count; i++)
        status = take_block(sweep, &sweep->blocks[i]);
    etch_blocks_free(sweep);
    return status;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static etch_status refuse_rows(etch_sweep *sweep, const char *count)
{
    etch_diag *diag = etch_error(sweep->session->diags, ETCH_E_SWEEP_ROWS, (etch_span){0, 0},
                                 "the sweep has %s rows", count);
    etch_help(diag, "give fewer values; or say --yes");
    return ETCH_EINPUT;
}

/* How many rows there are, as far as that is plain: "1000000"; those of the equation and of values that
 * depend on others are not counted. */
static etch_status check_count(etch_sweep *sweep)
{
    etch_sym *sym = sweep->session->sym;
    etch_expr total = etch_int(sym, 0);
    for (uint32_t i = 0; i < sweep->frames.count; i++) {
        const etch_sweep_frame *frame = sweep->frames.at[i];
        etch_expr rows = etch_int(sym, !frame->refused);
        for (uint32_t k = 0; k < frame->axis_count; k++)
            if (frame->axes[k].values && !frame->axes[k].is_factor)
                rows = etch_mul(sym, rows, etch_int(sym, frame->axes[k].value_count));
        total = etch_add(sym, total, rows);
    }
    if (sweep->options->yes || etch_constant_compare(sym, total, etch_int(sym, (int64_t)ROWS_UNASKED)) <= 0)
        return ETCH_OK;
    return refuse_rows(sweep, etch_expr_text(sym, total));
}

static bool is_cancelled(const etch_sweep *sweep)
{
    return atomic_load(&sweep->session->cancel) != 0;
}

static etch_status run_frame(etch_sweep *sweep, const etch_sweep_frame *frame, etch_walk *walk,
                             uint32_t most_blocks)
{
    etch_exact *row = ETCH_NEW_ARRAY(sweep->arena, frame->axis_count, etch_exact);
    etch_sweep_block *block = NULL;
    etch_status status = ETCH_OK;
    etch_walk_start(walk, sweep->arena, sweep->session, frame);
    while (status == ETCH_OK && !sweep->report->stopped && etch_walk_next(walk, row)) {
        if (block && block->count == ETCH_SWEEP_BLOCK)
            block = NULL;
        if (!block && sweep->block_count == most_blocks) {
            status = run_blocks(sweep);
            sweep->report->stopped = is_cancelled(sweep);
        }
        if (sweep->report->stopped)
            break;
        if (status == ETCH_OK && !block)
            status = etch_blocks_next(sweep, frame, &block);
        if (status == ETCH_OK)
            status = etch_block_add(block, row);
        sweep->report->rows++;
        if (sweep->report->rows > ROWS_UNASKED && !sweep->options->yes)
            status = refuse_rows(sweep, "more than 100000000");
    }
    etch_walk_end(walk);
    return walk->failed ? ETCH_EINPUT : status;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* All plans with all configs. False after an error: none of them is a sweep, or the statement is wrong. */
static bool make_frames(etch_sweep *sweep)
{
    const etch_sweep_request *r = &sweep->request;
    bool some = false;
    for (uint32_t i = 0; i < r->plans.count; i++)
        for (uint32_t k = 0; k < r->configs.count; k++)
            some = !etch_frame_new(sweep, r->plans.at[i], r->configs.at[k])->refused || some;
    if (!some && sweep->frames.at[0]->why)
        etch_sweep_repeat(sweep->session, sweep->frames.at[0]->why);
    return some;
}

static void finish_text(etch_sweep *sweep, etch_buf *out)
{
    const etch_kept_row *rows = sweep->kept.at;
    if (etch_sweep_streams(sweep))
        return;
    if (sweep->options->format == ETCH_SWEEP_TABLE) {
        if (sweep->kept.count > 0)
            etch_print_table(sweep, rows, sweep->kept.count, out);
        return;
    }
    for (uint32_t i = 0; i < sweep->kept.count; i++)
        etch_print_row(sweep, rows[i].frame, rows[i].values, rows[i].results, out);
}

static etch_status finish(etch_sweep *sweep)
{
    etch_buf text = {.arena = sweep->arena};
    const bool stopped = sweep->report->stopped;
    finish_text(sweep, &text);
    etch_status status = text.length ? write_head(sweep) : ETCH_OK;
    if (status == ETCH_OK)
        status = etch_sink_write(&sweep->sink, &text);
    if (status != ETCH_OK)
        return status;
    if (stopped) {
        etch_error(sweep->session->diags, ETCH_E_SWEEP_STOPPED, (etch_span){0, 0},
                   "stopped: what is written is of the first %" PRIu64 " rows%s%s%s", sweep->report->rows,
                   sweep->options->file ? ", in '" : "", sweep->options->file ? sweep->options->file : "",
                   sweep->options->file ? ".partial'" : "");
        status = etch_sink_close(&sweep->sink, false);
        return status == ETCH_OK ? ETCH_ELIMIT : status;
    }
    if (!etch_sweep_tell(sweep))
        return ETCH_EINPUT;
    if (!etch_sweep_streams(sweep))
        sweep->report->written = sweep->kept.count;
    return etch_sink_close(&sweep->sink, true);
}

static etch_status run(void *data)
{
    etch_sweep *sweep = data;
    etch_session *session = sweep->session;
    sweep->report = ETCH_NEW(session->arena, etch_sweep_report);
    if (!etch_sweep_format_name(sweep->options->format)) {
        etch_error(session->diags, ETCH_NO_CODE, (etch_span){0, 0}, "there is no format of rows %d",
                   (int)sweep->options->format);
        return ETCH_EINPUT;
    }
    if (!etch_sweep_read(session, sweep->options, &sweep->request) || !make_frames(sweep))
        return ETCH_EINPUT;
    etch_status status = check_count(sweep);
    if (status != ETCH_OK)
        return status;
    const unsigned threads = sweep->options->threads ? sweep->options->threads : 1;
    const uint32_t most_blocks = 4 * threads;
    sweep->blocks = ETCH_NEW_ARRAY(sweep->arena, most_blocks, etch_sweep_block);
    sweep->asked = ETCH_NEW_ARRAY(sweep->arena, sweep->request.where.count, uint64_t);
    sweep->met = ETCH_NEW_ARRAY(sweep->arena, sweep->request.where.count, uint64_t);
    status = etch_sink_open(&sweep->sink);
    for (uint32_t i = 0; status == ETCH_OK && !sweep->report->stopped && i < sweep->frames.count; i++)
        if (!sweep->frames.at[i]->refused)
            status = run_frame(sweep, sweep->frames.at[i], &sweep->walk, most_blocks);
    if (status == ETCH_OK && !sweep->report->stopped)
        status = run_blocks(sweep);
    sweep->report->cases = sweep->case_count;
    return status == ETCH_OK ? finish(sweep) : status;
}

/* Under the guard of the session, which may be cut short: what the sweep holds is its own. */
static etch_status run_guarded(void *data)
{
    etch_sweep *sweep = data;
    return etch_guard(sweep->mem, run, sweep);
}

static etch_status begin(void *data)
{
    etch_sweep *sweep = data;
    sweep->arena = etch_arena_new(sweep->mem);
    return ETCH_OK;
}

etch_status etch_sweep_begin(etch_sweep *sweep)
{
    sweep->mem = etch_mem_new(ETCH_MEMORY_LIMIT);
    return sweep->mem ? etch_guard(sweep->mem, begin, sweep) : ETCH_ENOMEM;
}

void etch_sweep_end(etch_sweep *sweep)
{
    etch_sink_abandon(&sweep->sink);
    etch_walk_end(&sweep->walk);
    etch_blocks_free(sweep);
    for (uint32_t i = 0; i < sweep->programs.count; i++)
        etch_program_free(sweep->programs.at[i]);
    for (uint32_t i = 0; i < sweep->case_slots; i++)
        for (etch_sweep_case *at = sweep->cases[i]; at; at = at->next)
            etch_case_free(at);
    if (sweep->mem)
        etch_mem_free(sweep->mem);
}

etch_status etch_session_sweep(etch_session *session, const etch_sweep_options *options,
                               const etch_sweep_report **report)
{
    etch_sweep_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    etch_sweep sweep = {.session = session, .options = &own};
    sweep.sink = (etch_sweep_sink){.session = session, .options = &own, .folder = -1, .file = -1};
    etch_status status = etch_sweep_begin(&sweep);
    if (status == ETCH_OK)
        status = unfit ? etch_session_refuse(session, unfit) : etch_session_run(session, run_guarded, &sweep);
    etch_sweep_end(&sweep);
    *report = session->broken == ETCH_OK ? sweep.report : NULL;
    return status;
}
