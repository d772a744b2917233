/* Traces of the rows that were chosen: a folder for each, named by its values, with the bytes that `lower`
 * writes of these. */
#define _POSIX_C_SOURCE 200809L

#include "session/sweep/sweep_int.h"
#include "trace/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* ---- names --------------------------------------------------------------------------------------------- */

static void put_plain(etch_buf *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
    for (; *text; text++)
        etch_buf_add(out, strchr(plain, *text) ? text : "_", 1);
}

static void put_value(etch_buf *out, const char *name, const char *value)
{
    etch_buf_puts(out, out->length ? "," : "");
    put_plain(out, name);
    etch_buf_puts(out, "=");
    put_plain(out, value);
}

/* "plan=fsdp,dp=8", of what has a column. */
static const char *plain_name(const etch_sweep *sweep, const etch_kept_row *row)
{
    etch_buf name = {.arena = sweep->arena};
    const etch_sweep_frame *frame = row->frame;
    for (uint32_t i = 0; i < sweep->request.choices.count; i++)
        if (sweep->request.choices.at[i].named && frame->choices[i])
            put_value(&name, sweep->request.choices.at[i].name, frame->choices[i]);
    for (uint32_t i = 0; i < frame->axis_count; i++)
        put_value(&name, frame->axes[i].name, etch_exact_text(sweep->arena, row->values[i]));
    return name.length ? name.text : "row";
}

/* Where values differ in what names of files cannot say, or are too many for one, the number of the row
 * does. */
static const char *const *names_of(const etch_sweep *sweep)
{
    enum { LONGEST = 200 };
    const uint32_t count = sweep->kept.count;
    const char **names = ETCH_NEW_ARRAY(sweep->arena, count, const char *);
    for (uint32_t i = 0; i < count; i++) {
        const etch_kept_row *row = &sweep->kept.at[i];
        names[i] = plain_name(sweep, row);
        bool fits = strlen(names[i]) <= LONGEST;
        for (uint32_t k = 0; fits && k < i; k++)
            fits = strcmp(names[k], names[i]) != 0;
        if (!fits)
            names[i] = etch_text(sweep->arena, "%.*s,row=%" PRIu64, LONGEST, names[i], row->row + 1);
    }
    return names;
}

/* ---- one row ------------------------------------------------------------------------------------------- */

/* Says the first error of another session, without its places. */
static void repeat(etch_sweep *sweep, const etch_session *from, const char *row)
{
    const etch_diag *said = from ? etch_sweep_first_error(from) : NULL;
    etch_diag *diag = etch_error(sweep->session->diags, said ? said->code : ETCH_NO_CODE, (etch_span){0, 0},
                                 "%s", said ? said->message : "no traces could be written");
    for (const etch_label *help = said ? said->helps : NULL; help; help = help->next)
        etch_help(diag, "%s", help->message);
    etch_note(diag, (etch_span){0, 0}, "while traces of %s are written", row);
}

static etch_status verify(etch_sweep *sweep, const char *folder, const char *row)
{
    const etch_verify_options options = {
        .path = folder, .threads = sweep->options->threads, .cancel = &sweep->session->cancel};
    etch_arena *scratch = etch_arena_new(sweep->mem);
    etch_verify_result result;
    const etch_status status = etch_verify(scratch, &options, sweep->session->diags, &result);
    etch_arena_free(scratch);
    if (status == ETCH_EUNKNOWN)
        etch_error(sweep->session->diags, ETCH_NO_CODE, (etch_span){0, 0},
                   "the ranks of %s finish only if the timing is kind: `etch verify %s` says more", row,
                   folder);
    return status;
}

static etch_status lower(etch_sweep *sweep, const etch_kept_row *row, const char *folder)
{
    const etch_output_options options = {
        .struct_size = sizeof options, .folder = folder, .threads = sweep->options->threads};
    const char *text = etch_row_text(sweep, row->frame, row->values);
    const etch_output_report *report;
    etch_status status;
    etch_session *session = etch_frame_open(sweep, sweep->arena, row->frame, row->values, &status);
    if (status == ETCH_OK)
        status = etch_session_lower(session, &options, &report);
    if (status != ETCH_OK)
        repeat(sweep, session, text);
    etch_session_close(session);
    return status == ETCH_OK && sweep->options->verify ? verify(sweep, folder, text) : status;
}

/* ---- all ----------------------------------------------------------------------------------------------- */

etch_status etch_sweep_lower(etch_sweep *sweep)
{
    const char *folder = sweep->options->lower, *const *names = names_of(sweep);
    etch_status status = ETCH_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return etch_io_error(sweep->session->diags, "create", folder, NULL, errno);
    for (uint32_t i = 0; status == ETCH_OK && i < sweep->kept.count; i++) {
        if (atomic_load(&sweep->session->cancel) != 0) {
            sweep->report->stopped = true;
            etch_error(sweep->session->diags, ETCH_E_SWEEP_STOPPED, (etch_span){0, 0},
                       "stopped: traces are written of the first %u of %u rows", i, sweep->kept.count);
            return ETCH_ELIMIT;
        }
        status = lower(sweep, &sweep->kept.at[i], etch_text(sweep->arena, "%s/%s", folder, names[i]));
    }
    return status;
}
