/* Sweeps: frames, one after the other; their rows in blocks, some blocks at a time; and what comes of them,
 * in the order of the rows. */
#include "session/sweep/crew_int.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* More rows need a word of the user. */
#define ROWS_UNASKED UINT64_C(100000000)

/* Each may be a model of its own. */
enum { MOST_FRAMES = 10000, BLOCK_TIMED = 512 };

/* Of a block, for which Ctrl-C waits; a block has fewer rows. */
enum { MOST_CUTS = 1 << 16 };

/* ---- what blocks say ----------------------------------------------------------------------------------- */

/* Does another process write? */
static bool is_helper(const etch_sweep *sweep)
{
    return sweep->crew && sweep->crew->rank > 0;
}

/* Keeps what is to be kept of the rows of a block; these go to `log`, where there is one, for a part. */
static void take_rows(etch_sweep *sweep, const etch_sweep_block *block, etch_buf *log)
{
    etch_exact *values = ETCH_NEW_ARRAY(block->arena, block->frame->axis_count, etch_exact);
    for (uint32_t i = 0; i < block->count; i++) {
        if (!block->results[i])
            continue;
        for (uint32_t a = 0; a < block->frame->axis_count; a++)
            values[a] = (etch_exact){block->numbers[a][i],
                                     block->denominators[a] ? block->denominators[a][i] : 1, NULL};
        const etch_kept_row row = {etch_block_number(block, i), block->frame, values, block->results[i]};
        if (etch_rows_offer(sweep, &row) && log)
            etch_part_put_row(log, sweep, &row);
    }
}

static etch_status take_block(etch_sweep *sweep, etch_sweep_block *b)
{
    etch_buf kept = {.arena = b->arena};
    for (uint32_t i = 0; i < b->tallies.count; i++)
        etch_sweep_add_tally(sweep, &b->tallies.at[i]);
    for (uint32_t i = 0; i < sweep->request.where.count; i++) {
        sweep->asked[i] += b->asked[i];
        sweep->met[i] += b->met[i];
    }
    sweep->report->unmet += b->unmet;
    sweep->report->written += b->written;
    if (!etch_sweep_streams(sweep))
        take_rows(sweep, b, sweep->part || is_helper(sweep) ? &kept : NULL);
    if (is_helper(sweep))
        return etch_crew_add(sweep->crew, b, &kept);
    return sweep->part ? etch_part_add(sweep->part, b, &kept)
                       : etch_sweep_write(sweep, b->text.text, b->text.length);
}

/* From one on that was stopped, nothing is known of the rows. */
static void drop_blocks(etch_sweep *sweep, uint32_t first)
{
    for (uint32_t i = first; i < sweep->block_count; i++)
        sweep->report->rows -= sweep->blocks[i].count + sweep->blocks[i].skipped;
    sweep->report->stopped = true;
}

static etch_status take_blocks(etch_sweep *sweep)
{
    etch_crew *crew = sweep->crew;
    etch_status status = ETCH_OK;
    for (uint32_t i = 0; status == ETCH_OK && i < sweep->block_count && !sweep->report->stopped; i++) {
        etch_sweep_block *block = &sweep->blocks[i];
        if (crew && !is_helper(sweep) && !block->cut)
            status = etch_crew_take(crew, block->chunk);
        if (block->cut || sweep->report->stopped)
            drop_blocks(sweep, i);
        else if (status == ETCH_OK)
            status = take_block(sweep, block);
    }
    return status == ETCH_OK && is_helper(sweep) ? etch_crew_flush(crew) : status;
}

static etch_status run_blocks(etch_sweep *sweep)
{
    const unsigned threads = sweep->options->threads ? sweep->options->threads : 1;
    etch_status status = ETCH_OK;
    if (sweep->crew && etch_crew_is_stopped(sweep->crew))
        drop_blocks(sweep, 0);
    else
        status = etch_blocks_compute(sweep, threads);
    if (status == ETCH_OK)
        status = take_blocks(sweep);
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

/* What comes next of a walk, as much as makes a block. What goes into a part, or is divided among
 * processes, has as many rows in each, however many are cut. */
static etch_status fill_block(etch_sweep *sweep, const etch_sweep_frame *frame, etch_walk *walk,
                              etch_exact *row)
{
    etch_sweep_block *block;
    etch_status status = etch_blocks_next(sweep, frame, &block);
    const bool even = sweep->part || sweep->crew;
    uint64_t room = sweep->block_rows;
    uint32_t cuts = 0;
    while (status == ETCH_OK && room > 0 && cuts < MOST_CUTS && etch_walk_more(walk, row)) {
        const uint64_t cut = etch_walk_take_cut(walk, even ? room : UINT64_MAX);
        cuts += cut > 0;
        if (cut > 0) {
            etch_block_add_cut(block, cut, walk->cut_by_quantity);
            room -= even ? cut : 0;
        } else {
            status = etch_block_add(block, row);
            etch_walk_take_row(walk);
            room--;
        }
    }
    if (status == ETCH_OK) {
        sweep->report->rows += block->count + block->skipped;
        sweep->walked += block->count + block->skipped;
        sweep->chunk++;
    }
    return status;
}

/* The rows of a chunk that another process computes, or that are computed. False: there are no more. */
static bool pass_chunk(etch_sweep *sweep, etch_walk *walk, etch_exact *row)
{
    const uint64_t passed = etch_walk_skip(walk, row, sweep->block_rows);
    sweep->walked += passed;
    sweep->chunk += passed > 0;
    return passed == sweep->block_rows;
}

static bool is_own(const etch_sweep *sweep, uint64_t chunk)
{
    if (sweep->crew)
        return etch_crew_is_own(sweep->crew, chunk);
    return !sweep->part || etch_part_is_own(sweep->part, chunk);
}

static etch_status run_frame(etch_sweep *sweep, const etch_sweep_frame *frame, etch_walk *walk,
                             uint32_t most_blocks)
{
    etch_exact *row = ETCH_NEW_ARRAY(sweep->arena, frame->axis_count, etch_exact);
    etch_status status = ETCH_OK;
    etch_walk_start(walk, sweep->arena, sweep->session, frame, sweep->options->every_row ? NULL : sweep);
    while (status == ETCH_OK) {
        if (sweep->block_count == most_blocks || is_cancelled(sweep)) {
            status = run_blocks(sweep);
            sweep->report->stopped = sweep->report->stopped || is_cancelled(sweep);
        }
        if (status != ETCH_OK || sweep->report->stopped)
            break;
        const bool own = is_own(sweep, sweep->chunk);
        if (own ? !etch_walk_more(walk, row) : !pass_chunk(sweep, walk, row))
            break;
        if (own)
            status = fill_block(sweep, frame, walk, row);
        if (status == ETCH_OK && sweep->walked > ROWS_UNASKED && !sweep->options->yes)
            status = refuse_rows(sweep, "more than 100000000");
    }
    etch_walk_end(walk);
    return walk->failed ? ETCH_EINPUT : status;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* The next values of the choices, the last one fastest. False: there are none. */
static bool next_choice(const etch_sweep_request *r, uint32_t *at)
{
    for (uint32_t i = r->choices.count; i-- > 0; at[i] = 0)
        if (++at[i] < r->choices.at[i].values.count)
            return true;
    return false;
}

static bool refuse_frames(etch_sweep *sweep)
{
    etch_diag *diag =
        etch_error(sweep->session->diags, ETCH_E_SWEEP_ROWS, (etch_span){0, 0},
                   "plans, configs, runs, machines and options of plans make more than %d combinations",
                   (int)MOST_FRAMES);
    return etch_help(diag, "give fewer of them; numbers, as of params, may be millions") && false;
}

/* All plans with all configs, runs and so on. False after an error: none of them is a sweep, or the statement
 * is wrong. */
static bool make_frames(etch_sweep *sweep)
{
    const etch_sweep_request *r = &sweep->request;
    uint32_t *at = ETCH_NEW_ARRAY(sweep->arena, r->choices.count, uint32_t);
    const char **choices = ETCH_NEW_ARRAY(sweep->arena, r->choices.count, const char *);
    bool some = false;
    do {
        for (uint32_t i = 0; i < r->choices.count; i++)
            choices[i] = r->choices.at[i].values.at[at[i]];
        if (sweep->frames.count == MOST_FRAMES)
            return refuse_frames(sweep);
        const etch_sweep_frame *frame = etch_frame_new(sweep, choices);
        some = some || !frame->refused;
        sweep->times = sweep->times || (!frame->refused && frame->times);
    } while (next_choice(r, at));
    if (!some && sweep->frames.at[0]->why)
        etch_sweep_repeat(sweep->session, sweep->frames.at[0]->why);
    return some;
}

/* A share of several waits for the others; all of a sweep becomes the file that was asked for. */
static etch_status finish_part(etch_sweep *sweep)
{
    etch_part *part = sweep->part;
    if (sweep->report->stopped)
        return etch_sweep_report_stop(sweep);
    etch_status status = etch_part_finish(part);
    if (status != ETCH_OK || !part->alone)
        return status;
    status = etch_sink_open(&sweep->sink);
    if (status == ETCH_OK)
        status = etch_part_copy(part);
    if (status == ETCH_OK)
        status = etch_sweep_finish(sweep);
    if (status == ETCH_OK || status == ETCH_EINPUT)
        etch_part_remove(part);
    return status;
}

static bool refuse_part(const etch_sweep *sweep, const char *why, const char *help)
{
    etch_diag *diag = etch_error(sweep->session->diags, ETCH_E_SWEEP_PART, (etch_span){0, 0}, "%s", why);
    return etch_help(diag, "%s", help) && false;
}

/* Does the sweep go into a part? False after an error. */
static bool choose_part(etch_sweep *sweep, etch_part *part)
{
    const etch_sweep_options *o = sweep->options;
    *part = (etch_part){.sweep = sweep, .folder = -1, .file = -1};
    if (!o->shard && !o->resume)
        return true;
    if (!etch_part_read_share(sweep->session, o->shard, &part->shard, &part->shards))
        return false;
    if (!o->file)
        return refuse_part(sweep, "a part of a sweep needs a file, and so does what can go on later",
                           "say -o FILE");
    if (o->shard && sweep->crew)
        return refuse_part(sweep, "the processes of a run share all rows of a sweep",
                           "leave out --shard, or start one process");
    part->alone = !o->shard;
    sweep->part = is_helper(sweep) ? NULL : part;
    return true;
}

/* Rows that are run one by one, or are shared with others, come in small blocks; but any number of processes
 * may go on with a part of all. */
static void choose_blocks(etch_sweep *sweep)
{
    const bool shared = sweep->part ? !sweep->part->alone : sweep->crew && !sweep->options->resume;
    sweep->block_rows = sweep->times ? BLOCK_TIMED : shared ? ETCH_PART_SHARED : ETCH_SWEEP_BLOCK;
}

static etch_status run_frames(etch_sweep *sweep)
{
    const unsigned threads = sweep->options->threads ? sweep->options->threads : 1;
    /* as many rows at a time, whatever their blocks are */
    const uint32_t most = 4 * threads * (sweep->times ? 1 : ETCH_SWEEP_BLOCK / sweep->block_rows);
    etch_status status = ETCH_OK;
    sweep->blocks = ETCH_NEW_ARRAY(sweep->arena, most, etch_sweep_block);
    for (uint32_t i = 0; status == ETCH_OK && !sweep->report->stopped && i < sweep->frames.count; i++)
        if (!sweep->frames.at[i]->refused)
            status = run_frame(sweep, sweep->frames.at[i], &sweep->walk, most);
    return status == ETCH_OK && !sweep->report->stopped ? run_blocks(sweep) : status;
}

/* All rows, or those of this process; and what others have computed. */
static etch_status run_rows(etch_sweep *sweep, bool finished)
{
    etch_crew *crew = sweep->crew;
    etch_status status = crew ? etch_crew_begin(crew) : ETCH_OK;
    if (status != ETCH_OK || (crew ? crew->finished : finished))
        return status;
    status = run_frames(sweep);
    return status == ETCH_OK && crew && !sweep->report->stopped ? etch_crew_finish(crew) : status;
}

/* Are there other processes? */
static void join_crew(etch_sweep *sweep)
{
    etch_world *world = sweep->options->world;
    if (etch_world_size(world) == 1)
        return;
    sweep->crew = ETCH_NEW(sweep->arena, etch_crew);
    *sweep->crew = (etch_crew){
        .sweep = sweep, .world = world, .rank = etch_world_rank(world), .size = etch_world_size(world)};
}

static etch_status run(void *data)
{
    etch_sweep *sweep = data;
    etch_session *session = sweep->session;
    etch_part *part = ETCH_NEW(sweep->arena, etch_part);
    sweep->report = ETCH_NEW(session->arena, etch_sweep_report);
    if (!etch_sweep_format_name(sweep->options->format)) {
        etch_error(session->diags, ETCH_NO_CODE, (etch_span){0, 0}, "there is no format of rows %d",
                   (int)sweep->options->format);
        return ETCH_EINPUT;
    }
    join_crew(sweep);
    if (!choose_part(sweep, part) || !etch_sweep_read(session, sweep->options, &sweep->request) ||
        !make_frames(sweep) || (sweep->options->plot && !etch_plot_fits(sweep)))
        return ETCH_EINPUT;
    choose_blocks(sweep);
    etch_status status = check_count(sweep);
    if (status != ETCH_OK)
        return status;
    sweep->asked = ETCH_NEW_ARRAY(sweep->arena, sweep->request.where.count, uint64_t);
    sweep->met = ETCH_NEW_ARRAY(sweep->arena, sweep->request.where.count, uint64_t);
    if (!is_helper(sweep))
        status = sweep->part ? etch_part_begin(part) : etch_sink_open(&sweep->sink);
    if (status == ETCH_OK)
        status = run_rows(sweep, part->finished);
    sweep->report->cases = sweep->case_count;
    if (status != ETCH_OK)
        return status;
    if (is_helper(sweep))
        return sweep->report->stopped ? ETCH_ELIMIT : ETCH_OK;
    return sweep->part ? finish_part(sweep) : etch_sweep_finish(sweep);
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
    if (sweep->plot.session)
        etch_sink_abandon(&sweep->plot);
    if (sweep->part)
        etch_part_end(sweep->part);
    for (uint32_t i = 0; i < sweep->files.count; i++)
        close(sweep->files.at[i]);
    etch_machines_close(sweep);
    etch_walk_end(&sweep->walk);
    etch_blocks_free(sweep);
    for (uint32_t i = 0; i < sweep->programs.count; i++)
        etch_program_free(sweep->programs.at[i]);
    for (uint32_t i = 0; i < sweep->case_slots; i++)
        for (etch_sweep_case *at = sweep->cases[i]; at; at = at->next)
            etch_case_free(at);
    etch_timers_free(sweep);
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
    *report = session->broken == ETCH_OK && etch_world_rank(own.world) == 0 ? sweep.report : NULL;
    return status;
}
