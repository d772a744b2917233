/* What comes of the rows of a sweep: counts, text, and what is said at the end. */
#include "session/sweep/part_int.h"

#include <inttypes.h>

void etch_sweep_add_tally(etch_sweep *sweep, const etch_tally *tally)
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
    return etch_sink_write(&sweep->sink, head.text, head.length);
}

etch_status etch_sweep_write(etch_sweep *sweep, const char *text, size_t length)
{
    if (length == 0)
        return ETCH_OK;
    const etch_status status = write_head(sweep);
    return status == ETCH_OK ? etch_sink_write(&sweep->sink, text, length) : status;
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

etch_status etch_sweep_report_stop(etch_sweep *sweep)
{
    const char *file = sweep->options->file;
    const char *end = sweep->part ? ETCH_PART_UNFINISHED : ETCH_SINK_PARTIAL;
    etch_diag *diag =
        etch_error(sweep->session->diags, ETCH_E_SWEEP_STOPPED, (etch_span){0, 0},
                   "stopped: what is written is of the first %" PRIu64 " rows%s%s%s%s", sweep->report->rows,
                   file ? ", in '" : "", file ? file : "", file ? end : "", file ? "'" : "");
    if (sweep->part)
        etch_help(diag, "the same command with --resume goes on");
    return ETCH_ELIMIT;
}

/* Into a file that appears as the rows do. */
static etch_status write_plot(etch_sweep *sweep)
{
    etch_buf text = {.arena = sweep->arena};
    sweep->plot_options = (etch_sweep_options){.file = sweep->options->plot};
    sweep->plot = (etch_sweep_sink){
        .session = sweep->session, .options = &sweep->plot_options, .folder = -1, .file = -1};
    if (!etch_plot(sweep, &text))
        return ETCH_EINPUT;
    etch_status status = etch_sink_open(&sweep->plot);
    if (status == ETCH_OK)
        status = etch_sink_write(&sweep->plot, text.text, text.length);
    return status == ETCH_OK ? etch_sink_close(&sweep->plot, true) : status;
}

etch_status etch_sweep_finish(etch_sweep *sweep)
{
    etch_buf text = {.arena = sweep->arena};
    finish_text(sweep, &text);
    etch_status status = etch_sweep_write(sweep, text.text, text.length);
    if (status != ETCH_OK)
        return status;
    if (sweep->report->stopped) {
        const etch_status told = etch_sweep_report_stop(sweep);
        status = etch_sink_close(&sweep->sink, false);
        return status == ETCH_OK ? told : status;
    }
    if (!etch_sweep_tell(sweep))
        return ETCH_EINPUT;
    if (!etch_sweep_streams(sweep))
        sweep->report->written = sweep->kept.count;
    if (sweep->options->plot)
        status = write_plot(sweep);
    if (status == ETCH_OK)
        status = etch_sink_close(&sweep->sink, true);
    return status == ETCH_OK && sweep->options->lower ? etch_sweep_lower(sweep) : status;
}
