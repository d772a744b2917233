/* The factors of a stack from measured steps: each is run in a session of its own. */
#include "session/fit/fit_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session/query/query.h"
#include "simulate/simulate.h"

/* Of so many rows or more, each third is kept out in its turn. */
enum { THIRDS = 3, LEAST_KEPT_OUT = 6, DIGITS = 4 };

typedef struct fit_row {
    struct fit_steps *fit;
    uint32_t index;
    etch_session *session;
    const etch_job *job;
    double seconds;
} fit_row;

typedef struct fit_steps {
    etch_session *session;
    const etch_source *source;
    const etch_fit_options *options;
    const etch_cluster *cluster;
    /* what is run, and of which rows */
    const etch_stack *stack;
    const bool *which;
    etch_measured_steps table;
    fit_row *rows;
    unsigned threads;
    const etch_fitting *result;
} fit_steps;

static const etch_measured_step *step_of(const fit_row *row)
{
    return &row->fit->table.at[row->index];
}

/* ---- one row ------------------------------------------------------------------------------------------- */

/* The spec's path, which is relative to the folder of the table. */
static const char *path_of(const fit_row *row)
{
    const char *table = row->fit->source->path, *spec = step_of(row)->spec;
    const char *end = strrchr(table, '/');
    if (spec[0] == '/' || !end)
        return spec;
    return etch_text(row->fit->session->arena, "%.*s/%s", (int)(end - table), table, spec);
}

/* False after a reported error. */
static bool read_granularity(const fit_row *row, etch_granularity *out)
{
    const char *text = step_of(row)->granularity;
    for (int i = 0; text && etch_granularity_name((etch_granularity)i); i++)
        if (i != ETCH_GRANULARITY_BLOCK && strcmp(etch_granularity_name((etch_granularity)i), text) == 0) {
            *out = (etch_granularity)i;
            return true;
        }
    if (!text)
        return true;
    etch_diag *diag = etch_error(row->fit->session->diags, ETCH_E_TABLE_ROW, step_of(row)->span,
                                 "line %u has no granularity '%s' that is run", step_of(row)->line, text);
    etch_help(diag, "say op, kernel or library");
    return false;
}

/* What is lowered is the same for all factors. */
static etch_status lower(void *data)
{
    fit_row *row = data;
    const etch_style style = {.workloads = true};
    etch_compiled *p = etch_compiled_get(row->session, NULL, NULL, true, (etch_span){0, 0});
    if (!p || !etch_compiled_place(row->session, p))
        return ETCH_EINPUT;
    return etch_compiled_lower(row->session, p, &style, &row->job);
}

static etch_status run(void *data)
{
    fit_row *row = data;
    const etch_simulate_options options = {.cluster = row->fit->cluster, .stack = row->fit->stack};
    etch_arena *arena = etch_arena_new(row->session->mem);
    const etch_simulated *simulated;
    const etch_status status = etch_simulate(arena, row->session->diags, row->job, &options, &simulated);
    if (status == ETCH_OK)
        row->seconds = (double)simulated->step * 1e-12;
    etch_arena_free(arena);
    return status;
}

static etch_status run_one(void *data, size_t i)
{
    fit_row *row = &((fit_row *)data)[i];
    return row->fit->which[i] ? etch_session_run_bound(row->session, run, row) : ETCH_OK;
}

static etch_status lower_one(void *data, size_t i)
{
    fit_row *row = &((fit_row *)data)[i];
    return etch_session_run_bound(row->session, lower, row);
}

/* Says the first error of a row at its line. */
static etch_status repeat(fit_steps *f, etch_status status)
{
    for (uint32_t i = 0; i < f->table.count; i++) {
        const etch_session *session = f->rows[i].session;
        const etch_diag *said = session ? etch_first_error(etch_diags_first(session->diags)) : NULL;
        if (!said)
            continue;
        etch_diag *diag = etch_error(f->session->diags, said->code, f->table.at[i].span, "%s", said->message);
        for (const etch_label *help = said->helps; help; help = help->next)
            etch_help(diag, "%s", help->message);
        etch_note(diag, (etch_span){0, 0}, "the step of line %u is not run", f->table.at[i].line);
        return status;
    }
    return status;
}

/* ---- all rows ------------------------------------------------------------------------------------------ */

static etch_status open_row(fit_steps *f, uint32_t i)
{
    fit_row *row = &f->rows[i];
    const etch_measured_step *step = &f->table.at[i];
    etch_session_options options = {.struct_size = sizeof options,
                                    .spec = path_of(row),
                                    .config = step->config,
                                    .plan = step->plan,
                                    .run = step->run,
                                    .sets = &step->sets,
                                    .set_count = step->sets != NULL,
                                    .folders = f->options->folders};
    if (!read_granularity(row, &options.granularity))
        return ETCH_EINPUT;
    return etch_session_open(&options, &row->session);
}

static etch_status open_all(fit_steps *f)
{
    etch_status status = ETCH_OK;
    for (uint32_t i = 0; status == ETCH_OK && i < f->table.count; i++)
        status = open_row(f, i);
    if (status == ETCH_OK)
        status = etch_parallel(f->threads, f->table.count, lower_one, f->rows);
    return status == ETCH_OK ? status : repeat(f, status);
}

/* Seconds of the rows of `which`. */
static etch_status run_rows(void *data, const etch_stack *stack, const bool *which, double *seconds)
{
    fit_steps *f = data;
    f->stack = stack;
    f->which = which;
    const etch_status status = etch_parallel(f->threads, f->table.count, run_one, f->rows);
    for (uint32_t i = 0; status == ETCH_OK && i < f->table.count; i++)
        if (which[i])
            seconds[i] = f->rows[i].seconds;
    return status == ETCH_OK ? status : repeat(f, status);
}

/* ---- the fit ------------------------------------------------------------------------------------------- */

/* The rows that may be fitted, but for each third from `out` on; below 0: all of them. */
static bool *calibration(const fit_steps *f, int out, uint32_t *count)
{
    bool *which = ETCH_NEW_ARRAY(f->session->arena, f->table.count, bool);
    uint32_t number = 0;
    *count = 0;
    for (uint32_t i = 0; i < f->table.count; i++)
        if (f->table.at[i].calibrates) {
            which[i] = out < 0 || number % THIRDS != (uint32_t)out;
            number++;
            *count += which[i];
        }
    return which;
}

/* Factors of all rows of calibration, to four digits. */
static etch_status find(fit_steps *f, const etch_step_runs *runs, const bool *which, etch_stack *stack)
{
    bool apart;
    const etch_status status = etch_factors_find(f->session->arena, runs, which, stack, &apart);
    if (status != ETCH_OK)
        return status;
    if (!apart)
        etch_remark(f->session->diags, ETCH_E_FIT, (etch_span){0, 0},
                    "the steps do not tell attention from all else: its factor is left at 1");
    stack->all = etch_decimal_round(etch_decimal_double(stack->all), DIGITS);
    stack->attention = etch_decimal_round(etch_decimal_double(stack->attention), DIGITS);
    return ETCH_OK;
}

/* What factors that were fitted to two thirds say of the other one. */
static etch_status keep_out(fit_steps *f, const etch_step_runs *runs, const etch_stack *begin,
                            etch_fit_step *steps)
{
    double *seconds = ETCH_NEW_ARRAY(f->session->arena, f->table.count, double);
    etch_status status = ETCH_OK;
    for (int third = 0; status == ETCH_OK && third < THIRDS; third++) {
        uint32_t count;
        bool apart, *which = calibration(f, third, &count);
        etch_stack stack = *begin;
        status = etch_factors_find(f->session->arena, runs, which, &stack, &apart);
        for (uint32_t i = 0; i < f->table.count; i++)
            which[i] = f->table.at[i].calibrates && !which[i];
        if (status == ETCH_OK)
            status = run_rows(f, &stack, which, seconds);
        for (uint32_t i = 0; status == ETCH_OK && i < f->table.count; i++)
            if (which[i])
                steps[i].kept_out = seconds[i];
    }
    return status;
}

static etch_fit_errors errors_of(const fit_steps *f, const etch_fit_step *steps, etch_fit_part part)
{
    double *errors = ETCH_NEW_ARRAY(f->session->arena, f->table.count, double);
    size_t count = 0;
    for (uint32_t i = 0; i < f->table.count; i++) {
        const double seconds = part == ETCH_FIT_KEPT_OUT ? steps[i].kept_out
                               : part == steps[i].part   ? steps[i].predicted
                                                         : 0;
        if (seconds > 0)
            errors[count++] = fabs(seconds / steps[i].measured - 1);
    }
    return etch_fit_errors_of(errors, count);
}

/* The stack to begin with; with `check` the one of the cluster. False after a reported error. */
static bool begin_with(const fit_steps *f, etch_stack *out)
{
    const etch_stack *known = etch_cluster_stack(f->cluster, f->options->stack);
    if (f->options->check) {
        known = etch_session_stack(f->session, f->cluster, f->options->stack);
        if (known)
            *out = *known;
        return known != NULL;
    }
    *out = (etch_stack){.name = f->options->stack, .all = {1, 0}, .attention = {1, 0}};
    if (known)
        out->launch = known->launch;
    return true;
}

static etch_status fit(fit_steps *f)
{
    etch_arena *arena = f->session->arena;
    etch_fitting *result = ETCH_NEW(arena, etch_fitting);
    etch_fit_step *steps = ETCH_NEW_ARRAY(arena, f->table.count, etch_fit_step);
    double *numbers = ETCH_NEW_ARRAY(arena, f->table.count, double);
    bool *all = ETCH_NEW_ARRAY(arena, f->table.count, bool);
    const etch_step_runs runs = {f->table.count, numbers, run_rows, f};
    etch_stack stack;
    uint32_t count;
    const bool *which = calibration(f, -1, &count);
    for (uint32_t i = 0; i < f->table.count; i++) {
        const etch_measured_step *row = &f->table.at[i];
        all[i] = true;
        numbers[i] = row->seconds;
        steps[i] = (etch_fit_step){.line = row->line,
                                   .part = row->calibrates ? ETCH_FIT_USED : ETCH_FIT_GIVEN,
                                   .measured = row->seconds};
    }
    if (!begin_with(f, &stack))
        return ETCH_EINPUT;
    if (count == 0 && !f->options->check)
        return etch_fit_refuse(f->session,
                               "no row of the table is for fitting: `split` says calibration of none");
    etch_status status = f->options->check ? ETCH_OK : find(f, &runs, which, &stack);
    if (status == ETCH_OK && !f->options->check && count >= LEAST_KEPT_OUT)
        status = keep_out(f, &runs, &stack, steps);
    double *seconds = ETCH_NEW_ARRAY(arena, f->table.count, double);
    if (status == ETCH_OK)
        status = run_rows(f, &stack, all, seconds);
    if (status != ETCH_OK)
        return status;
    for (uint32_t i = 0; i < f->table.count; i++)
        steps[i].predicted = seconds[i];
    etch_buf line = {.arena = arena};
    etch_stack_print_line(&line, &stack);
    *result = (etch_fitting){.kind = ETCH_KERNEL_KINDS,
                             .device = f->cluster->device->name,
                             .line = line.text,
                             .steps = steps,
                             .step_count = f->table.count};
    for (int part = 0; part < ETCH_FIT_PARTS; part++)
        result->errors[part] = errors_of(f, steps, (etch_fit_part)part);
    f->result = result;
    return ETCH_OK;
}

/* ---- public functions ---------------------------------------------------------------------------------- */

static etch_status prepare(void *data)
{
    fit_steps *f = data;
    etch_session *session = f->session;
    if (!f->options->stack) {
        etch_diag *diag = etch_error(session->diags, ETCH_E_FIT, (etch_span){0, 0},
                                     "'%s' is a table of steps, which are of a stack", f->source->path);
        etch_help(diag, "say with --stack NAME what the factors are of");
        return ETCH_EINPUT;
    }
    f->cluster = etch_session_cluster(session, NULL);
    if (!f->cluster || !etch_measured_steps_read(session->arena, f->source, f->cluster->device,
                                                 f->options->stack, session->diags, &f->table))
        return ETCH_EINPUT;
    f->threads = f->options->threads ? f->options->threads : 1;
    return ETCH_OK;
}

static etch_status go(void *data)
{
    fit_steps *f = data;
    const etch_status status = open_all(f);
    return status == ETCH_OK ? fit(f) : status;
}

etch_status etch_fit_steps(etch_fit_request *request)
{
    etch_session *session = request->session;
    fit_steps f = {.session = session, .source = request->source, .options = request->options};
    etch_status status = etch_session_run(session, prepare, &f);
    if (status == ETCH_OK)
        f.rows = calloc(f.table.count, sizeof *f.rows); /* outlives a call that is cut short */
    if (status == ETCH_OK && !f.rows)
        status = ETCH_ENOMEM;
    for (uint32_t i = 0; status == ETCH_OK && i < f.table.count; i++)
        f.rows[i] = (fit_row){.fit = &f, .index = i};
    if (status == ETCH_OK)
        status = etch_session_run(session, go, &f);
    for (uint32_t i = 0; f.rows && i < f.table.count; i++)
        etch_session_close(f.rows[i].session);
    free(f.rows);
    request->result = f.result;
    return status;
}
