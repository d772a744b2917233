/* The numbers of a device, or a level, from measured kernels. */
#include "session/fit/fit_int.h"

#include <math.h>

#include "session/query/query.h"

static etch_fit_errors errors_of(etch_arena *arena, const etch_fit_line *rows, size_t count,
                                 etch_fit_part part)
{
    double *errors = ETCH_NEW_ARRAY(arena, count, double);
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].part == part)
            errors[found++] = fabs(rows[i].error);
    return etch_fit_errors_of(errors, found);
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

static etch_status judge(const etch_fit_request *f, const etch_machine *machine, etch_kernel_kind kind,
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
            return etch_fit_refuse(f->session, why);
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

static etch_status fit_rows(etch_fit_request *f, etch_machine *machine, etch_kernel_kind kind,
                            const etch_measurements *rows)
{
    etch_arena *arena = f->session->arena;
    etch_fitting *result = ETCH_NEW(arena, etch_fitting);
    etch_fitted fitted;
    const char *why;
    if (!f->options->check) {
        const etch_status status = etch_fit_find(arena, machine, kind, rows, &fitted, &why);
        if (why)
            return etch_fit_refuse(f->session, why);
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

etch_status etch_fit_kernels(void *data)
{
    etch_fit_request *f = data;
    etch_session *session = f->session;
    etch_machine machine;
    etch_kernel_kind kind;
    etch_measurements rows = {0};
    if (!etch_session_device(session, false, &machine) ||
        !etch_measurements_read(session->arena, f->source, machine.device, session->diags, &kind, &rows) ||
        !etch_session_device(session, kind == ETCH_KERNEL_COLLECTIVE, &machine))
        return ETCH_EINPUT;
    return fit_rows(f, &machine, kind, &rows);
}
