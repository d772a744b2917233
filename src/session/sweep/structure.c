/* Which axes of a frame decide structure: the model, its loops and its stages differ with their values. */
#include "session/sweep/frame_int.h"

bool etch_framing_is_size(const etch_framing *f, etch_expr var)
{
    for (uint32_t i = 0; f->plan && i < f->plan->mesh.count; i++)
        if (etch_settings_apply(f->session->sym, f->settings, f->plan->mesh.at[i].size) == var ||
            f->plan->mesh.at[i].size == var)
            return true;
    return false;
}

/* ---- what decides -------------------------------------------------------------------------------------- */

static void each_of_loops(const etch_graph *graph, etch_structure_fn each, void *data)
{
    for (etch_cursor at = {.root = graph->forward}; etch_cursor_next(&at);)
        if (at.item->loop)
            each(data, at.item->loop->count);
    for (uint32_t i = 0; i < graph->idle_loops.count; i++)
        each(data, graph->idle_loops.at[i]->count);
    for (uint32_t i = 0; i < graph->decisive.count; i++)
        each(data, graph->decisive.at[i]);
}

static void each_of_stages(const etch_compiled *p, etch_structure_fn each, void *data)
{
    const etch_stage_line *line = p->plan->stage;
    for (uint32_t i = 0; i < line->axis_count; i++)
        each(data, p->plan->mesh.at[line->axes[i]].size);
    each(data, line->chunks);
    if (p->training->train.micro && etch_schedule_counts_microbatches(line->schedule))
        each(data, p->training->train.micro);
    for (uint32_t i = 0; i < line->count_count; i++)
        each(data, line->counts[i]);
    for (uint32_t i = 0; p->placed->stages && i < p->placed->stages->segments.count; i++)
        each(data, p->placed->stages->segments.at[i].count);
}

void etch_structure_each(const etch_compiled *p, etch_structure_fn each, void *data)
{
    each_of_loops(p->training->graph, each, data);
    if (p->placed && p->plan->stage)
        each_of_stages(p, each, data);
}

void etch_structure_of_mesh(etch_sym *sym, const etch_settings *settings, const etch_plan *plan,
                            etch_structure_fn each, void *data)
{
    for (uint32_t i = 0; plan && i < plan->mesh.count; i++) {
        etch_expr size = etch_settings_apply(sym, settings, plan->mesh.at[i].size);
        if (!size || !etch_var_name(size))
            each(data, plan->mesh.at[i].size);
    }
}

/* ---- of a frame ---------------------------------------------------------------------------------------- */

/* The axes that a value speaks of decide. */
static void decide(void *data, etch_expr value)
{
    etch_framing *f = data;
    const etch_expr *vars;
    value = etch_settings_apply(f->session->sym, f->settings, value);
    const uint32_t count = value ? etch_vars_of(f->session->sym, value, &vars) : 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < f->vars.count; k++)
            if (f->vars.at[k] == vars[i])
                f->axes.at[k].decides = true;
}

/* A branch was decided by a default, or not at all. */
static bool is_undecided(const etch_diag *said)
{
    for (; said; said = said->next)
        if (said->code == ETCH_E_UNDECIDED || said->severity == ETCH_ERROR)
            return true;
    return false;
}

/* Builds the model with all axes open, to see which of them must not be. */
void etch_framing_structure(etch_framing *f)
{
    etch_session *session = f->session;
    const etch_diags_mark mark = etch_diags_now(session->diags);
    f->frame->by_row = f->names_other;
    for (uint32_t i = 0; i < f->axes.count; i++) {
        f->axes.at[i].is_size = etch_framing_is_size(f, f->vars.at[i]);
        bool real;
        int64_t least;
        if (!f->axes.at[i].is_size && !etch_spec_range(session->spec, f->vars.at[i], &real, &least))
            f->axes.at[i].decides = true; /* the tokens of a step */
    }
    if (!f->asks || f->frame->by_row)
        return;
    etch_compiled *p = etch_compiled_get(session, NULL, NULL, f->asks_rank, (etch_span){0, 0});
    if (p && (!f->asks_rank || etch_compiled_place(session, p)))
        etch_structure_each(p, decide, f);
    else if (p)
        each_of_loops(p->training->graph, decide, f);
    etch_structure_of_mesh(session->sym, f->settings, f->plan, decide, f);
    const etch_diag *said = etch_diags_retract(session->diags, &mark);
    const etch_diag *wrong = etch_first_error(said);
    f->frame->open_error = wrong ? etch_sweep_copy(f->sweep->arena, wrong) : NULL;
    for (uint32_t i = 0; is_undecided(said) && i < f->axes.count; i++)
        f->axes.at[i].decides = f->axes.at[i].decides || !f->axes.at[i].is_size;
}
