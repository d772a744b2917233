/* Tables of steps and their seconds. */
#include "machine/sheet_int.h"

static const char *text_of(const etch_sheet *t, const char *name)
{
    const etch_cell at = etch_sheet_cell(t, name);
    return at.length ? etch_copy_text(t->arena, at.text, at.length) : NULL;
}

static bool is_of(const etch_sheet *t, const char *column, const char *name)
{
    return !etch_sheet_has(t, column) || etch_cell_is(etch_sheet_cell(t, column), name);
}

static void read_row(const etch_sheet *t, const etch_device *device, const char *stack,
                     etch_measured_steps *out)
{
    if (!is_of(t, "machine", device->name) || !is_of(t, "stack", stack))
        return;
    const etch_cell spec = etch_sheet_cell(t, "spec");
    etch_measured_step row = {.spec = text_of(t, "spec"),
                              .config = text_of(t, "config"),
                              .plan = text_of(t, "plan"),
                              .run = text_of(t, "run"),
                              .sets = text_of(t, "sets"),
                              .granularity = text_of(t, "granularity"),
                              .line = t->number,
                              .span = etch_sheet_span(t, spec),
                              .calibrates = !etch_sheet_given(t)};
    if (!row.spec)
        (void)etch_sheet_refuse(t, spec, "spec", "no path of a spec");
    else if (etch_sheet_time(t, "seconds", 0, "seconds", &row.seconds))
        ETCH_PUSH(t->arena, out, row);
}

bool etch_is_table_of_steps(etch_arena *arena, const etch_source *source)
{
    static const char *const names[] = {"spec", "seconds", NULL};
    etch_sheet *t = ETCH_NEW(arena, etch_sheet);
    return etch_sheet_begin(t, arena, source, etch_diags_new(arena)) && etch_sheet_has_all(t, names);
}

bool etch_measured_steps_read(etch_arena *arena, const etch_source *source, const etch_device *device,
                              const char *stack, etch_diags *diags, etch_measured_steps *out)
{
    etch_sheet *t = ETCH_NEW(arena, etch_sheet);
    bool fits;
    if (!etch_sheet_begin(t, arena, source, diags))
        return false;
    const uint32_t errors = etch_error_count(diags);
    while (etch_sheet_next(t, &fits))
        if (fits)
            read_row(t, device, stack, out);
    if (out->count == 0 && etch_error_count(diags) == errors)
        etch_error(diags, ETCH_E_FIT, (etch_span){0, 0},
                   "'%s' has no row of the machine '%s' and the stack '%s'", source->path, device->name,
                   stack);
    return etch_error_count(diags) == errors;
}
