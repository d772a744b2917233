/* Machines: how long kernels take on them, and their numbers from measurements. */
#include "session/query/query.h"

#include <math.h>
#include <stdlib.h>

#include "machine/machine.h"

/* ---- which machine ------------------------------------------------------------------------------------- */

/* The only device, and the first level of the only cluster. False, with a message, where it is not clear. */
static bool choose_machine(etch_session *session, bool needs_level, etch_machine *out)
{
    const etch_device *const *devices;
    const etch_cluster *const *clusters;
    const uint32_t count = etch_spec_devices(session->spec, &devices);
    const uint32_t cluster_count = etch_spec_clusters(session->spec, &clusters);
    if (count != 1) {
        etch_diag *diag = etch_error(session->diags, ETCH_E_MACHINE_CHOICE, (etch_span){0, 0},
                                     count ? "the spec has %u devices" : "the spec has no device", count);
        etch_help(diag, "name a spec with one `device NAME { ... }`");
        return false;
    }
    *out = (etch_machine){.device = devices[0]};
    if (cluster_count == 1 && clusters[0]->levels.count > 0)
        out->level = &clusters[0]->levels.at[0];
    if (out->level || !needs_level)
        return true;
    etch_diag *diag =
        etch_error(session->diags, ETCH_E_MACHINE_CHOICE, (etch_span){0, 0},
                   cluster_count > 1 ? "the spec has %u clusters" : "the spec has no cluster with a level",
                   cluster_count);
    etch_help(diag, "collectives are of a level: write `cluster NAME { device = .., level NAME { ... } }`");
    return false;
}

static etch_status refuse(etch_session *session, const char *why)
{
    etch_error(session->diags, ETCH_E_FIT, (etch_span){0, 0}, "%s", why);
    return ETCH_EINPUT;
}

/* ---- one kernel ---------------------------------------------------------------------------------------- */

typedef struct timing {
    etch_session *session;
    const etch_kernel_call *kernel;
    etch_seconds seconds;
} timing;

static etch_status time_kernel(void *data)
{
    timing *t = data;
    etch_machine machine;
    if (!choose_machine(t->session, t->kernel->kind == ETCH_KERNEL_COLLECTIVE, &machine))
        return ETCH_EINPUT;
    const char *why = etch_kernel_time(t->session->arena, &machine, t->kernel, &t->seconds);
    return why ? refuse(t->session, why) : ETCH_OK;
}

etch_status etch_session_kernel_time(etch_session *session, const etch_kernel_call *kernel,
                                     etch_seconds *seconds)
{
    timing t = {.session = session, .kernel = kernel};
    const etch_status status = etch_session_run(session, time_kernel, &t);
    *seconds = t.seconds;
    return status;
}

/* ---- a table ------------------------------------------------------------------------------------------- */

typedef struct fitting {
    etch_session *session;
    const etch_fit_options *options;
    const etch_fitting *result;
} fitting;

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest error that `share` of them, in tenths, do not exceed. */
static double quantile(const double *sorted, size_t count, size_t share)
{
    return sorted[(share * count + 9) / 10 - 1];
}

static etch_fit_errors errors_of(etch_arena *arena, const etch_fit_line *rows, size_t count,
                                 etch_fit_part part)
{
    double *errors = ETCH_NEW_ARRAY(arena, count, double);
    etch_fit_errors result = {0};
    for (size_t i = 0; i < count; i++)
        if (rows[i].part == part)
            errors[result.rows++] = fabs(rows[i].error);
    if (result.rows == 0)
        return result;
    qsort(errors, result.rows, sizeof *errors, by_size);
    result.median = quantile(errors, result.rows, 5);
    result.p90 = quantile(errors, result.rows, 9);
    return result;
}

/* NULL, or why a row has no time. */
static const char *predict(etch_arena *arena, const etch_machine *machine, const etch_measured *row,
                           etch_fit_line *out)
{
    *out = (etch_fit_line){.kernel = row->kernel, .line = row->line, .measured = row->seconds};
    const char *why = etch_kernel_time(arena, machine, &row->kernel, &out->predicted);
    if (why)
        return why;
    out->error = (out->predicted.low - row->seconds) / row->seconds;
    if (row->kernel.kind == ETCH_KERNEL_SYSTOLIC)
        (void)etch_kernel_cycles(machine->device, &row->kernel, &out->cycles); /* there is a time: they fit */
    return NULL;
}

static etch_status judge(const fitting *f, const etch_machine *machine, etch_kernel_kind kind,
                         const etch_measurements *rows, etch_fitting *out)
{
    etch_arena *arena = f->session->arena;
    const etch_fit_part *parts = etch_fit_parts(arena, rows);
    etch_fit_line *lines = ETCH_NEW_ARRAY(arena, rows->count, etch_fit_line);
    const char *left_out = NULL;
    uint32_t left_count = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        const char *why = predict(arena, machine, &rows->at[i], &lines[out->row_count]);
        lines[out->row_count].part = parts[i];
        if (why && parts[i] == ETCH_FIT_ASIDE) { /* of a dtype that the device does not have */
            left_out = why;
            left_count++;
            continue;
        }
        if (why)
            return refuse(f->session, why);
        out->row_count++;
    }
    if (left_out)
        etch_remark(f->session->diags, ETCH_E_FIT, (etch_span){0, 0}, "%u rows of the table are left out: %s",
                    left_count, left_out);
    out->kind = kind;
    out->rows = lines;
    for (int part = 0; part < ETCH_FIT_PARTS; part++)
        out->errors[part] = errors_of(arena, lines, out->row_count, (etch_fit_part)part);
    return ETCH_OK;
}

/* The machine with other numbers. */
static void put(etch_arena *arena, etch_machine *machine, etch_kernel_kind kind, const etch_fitted *fitted)
{
    if (kind == ETCH_KERNEL_COLLECTIVE) {
        etch_level *level = ETCH_NEW(arena, etch_level);
        *level = *machine->level;
        level->fit = *fitted;
        machine->level = level;
        return;
    }
    etch_device *device = ETCH_NEW(arena, etch_device);
    *device = *machine->device;
    device->fits[kind] = *fitted;
    machine->device = device;
}

static const etch_fitted *fitted_of(const etch_machine *machine, etch_kernel_kind kind)
{
    return kind == ETCH_KERNEL_COLLECTIVE ? &machine->level->fit : &machine->device->fits[kind];
}

static etch_status fit_rows(fitting *f, etch_machine *machine, etch_kernel_kind kind,
                            const etch_measurements *rows)
{
    etch_arena *arena = f->session->arena;
    etch_fitting *result = ETCH_NEW(arena, etch_fitting);
    etch_fitted fitted;
    const char *why;
    if (!f->options->check) {
        const etch_status status = etch_fit_find(arena, machine, kind, rows, &fitted, &why);
        if (why)
            return refuse(f->session, why);
        if (status != ETCH_OK)
            return status;
        put(arena, machine, kind, &fitted);
    }
    const etch_status status = judge(f, machine, kind, rows, result);
    etch_buf line = {.arena = arena};
    etch_fitted_print(&line, kind, fitted_of(machine, kind));
    result->line = line.text;
    result->device = machine->device->name;
    f->result = status == ETCH_OK ? result : NULL;
    return status;
}

static etch_status fit(void *data)
{
    fitting *f = data;
    etch_session *session = f->session;
    const etch_fit_options *o = f->options;
    etch_machine machine;
    etch_kernel_kind kind;
    etch_measurements rows = {0};
    if (!o->text || !o->name)
        return refuse(session, "the options name no table");
    const etch_source *source = etch_source_add(session->diags, o->name, o->text, o->length);
    if (!source) {
        etch_error(session->diags, ETCH_E_SOURCES_TOO_LARGE, (etch_span){0, 0},
                   "'%s' is larger than the %d bytes that a table may have", o->name, ETCH_TOTAL_LIMIT);
        return ETCH_ELIMIT;
    }
    if (!choose_machine(session, false, &machine) ||
        !etch_measurements_read(session->arena, source, machine.device, session->diags, &kind, &rows) ||
        !choose_machine(session, kind == ETCH_KERNEL_COLLECTIVE, &machine))
        return ETCH_EINPUT;
    return fit_rows(f, &machine, kind, &rows);
}

etch_status etch_session_fit(etch_session *session, const etch_fit_options *options,
                             const etch_fitting **result)
{
    etch_fit_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    fitting f = {.session = session, .options = &own};
    const etch_status status =
        unfit ? etch_session_refuse(session, unfit) : etch_session_run(session, fit, &f);
    *result = status == ETCH_OK ? f.result : NULL;
    return status;
}

/* ---- as text ------------------------------------------------------------------------------------------- */

typedef struct printing {
    etch_session *session;
    const char *text;
} printing;

static etch_status print_machines(void *data)
{
    printing *p = data;
    const etch_device *const *devices;
    const etch_cluster *const *clusters;
    const uint32_t count = etch_spec_devices(p->session->spec, &devices);
    const uint32_t cluster_count = etch_spec_clusters(p->session->spec, &clusters);
    etch_buf out = {.arena = p->session->arena};
    etch_buf_puts(&out, "etch 1\n");
    for (uint32_t i = 0; i < count; i++)
        etch_device_print(&out, devices[i]);
    for (uint32_t i = 0; i < cluster_count; i++)
        etch_cluster_print(&out, clusters[i]);
    p->text = out.text;
    return ETCH_OK;
}

etch_status etch_session_machines(etch_session *session, const char **text)
{
    printing p = {.session = session};
    const etch_status status = etch_session_run(session, print_machines, &p);
    *text = status == ETCH_OK ? p.text : NULL;
    return status;
}
