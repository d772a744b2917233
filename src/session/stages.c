/* The stages that a quantity of one rank may be of: one after the other where the chain is bound, else the
 * first, a middle and the last one, as formulas. */
#include "session/session_int.h"

#include <string.h>

enum { MOST_LINKS = 1 << 16 }; /* of a chain that is looked at stage by stage */

typedef struct choosing {
    etch_session *session;
    etch_pipeline *p;
    const etch_stages *stages;
    etch_expr stage_count, chunk_count; /* with values put in */
    etch_stage_numbers numbers;
    etch_stage_list *out;
} choosing;

static etch_expr apply(const choosing *c, etch_expr expr)
{
    return etch_pipeline_apply(c->session, c->p, expr);
}

static void add(const choosing *c, const char *label, const etch_stage_view *view)
{
    ETCH_PUSH(c->session->arena, c->out, (etch_stage_item){label, view});
}

static void find_sizes(choosing *c)
{
    const etch_plan *plan = c->p->plan;
    c->stage_count = etch_int(c->session->sym, 1);
    for (uint32_t i = 0; i < c->stages->line->axis_count; i++)
        c->stage_count =
            etch_mul(c->session->sym, c->stage_count, plan->mesh.at[c->stages->line->axes[i]].size);
    c->stage_count = apply(c, c->stage_count);
    c->chunk_count = apply(c, c->stages->line->chunks);
}

/* ---- bound chains --------------------------------------------------------------------------------------- */

static bool number_of(const choosing *c, etch_expr expr, uint64_t *number)
{
    etch_expr value = apply(c, expr);
    return value && etch_to_u64(value, number);
}

/* Is every size of the chain a number? */
static bool find_numbers(choosing *c)
{
    etch_arena *arena = c->session->arena;
    const etch_stage_line *line = c->stages->line;
    uint64_t stages, chunks, *entries = ETCH_NEW_ARRAY(arena, c->stages->entries.count, uint64_t);
    uint64_t *counts = ETCH_NEW_ARRAY(arena, line->count_count, uint64_t);
    bool bound = c->stage_count && c->chunk_count && etch_to_u64(c->stage_count, &stages) &&
                 etch_to_u64(c->chunk_count, &chunks);
    for (uint32_t i = 0; bound && i < c->stages->entries.count; i++)
        bound = number_of(c, c->stages->entries.at[i].count, &entries[i]);
    for (uint32_t i = 0; bound && i < line->count_count; i++)
        bound = number_of(c, line->counts[i], &counts[i]);
    bound = bound && number_of(c, c->stages->units, &c->numbers.units) && stages > 0 && chunks > 0 &&
            stages <= MOST_LINKS && chunks <= MOST_LINKS && stages * chunks <= MOST_LINKS;
    if (!bound)
        return false;
    c->numbers.stages = (uint32_t)stages;
    c->numbers.chunks = (uint32_t)chunks;
    c->numbers.entries = entries;
    c->numbers.counts = line->counts ? counts : NULL;
    return true;
}

static bool same_view(const choosing *c, const etch_stage_view *a, const etch_stage_view *b)
{
    for (uint32_t i = 0; i < c->stages->entries.count; i++)
        for (int side = 0; side < ETCH_SIDES; side++)
            if (a->shares[i][side] != b->shares[i][side])
                return false;
    for (uint32_t i = 0; i < c->stages->cuts.count; i++)
        if (a->forward[i] != b->forward[i] || a->backward[i] != b->backward[i])
            return false;
    return true;
}

/* Stages that hold equal parts share a view, and so its costs. */
static const etch_stage_view *shared_view(const choosing *c, const etch_stage_view *view)
{
    for (uint32_t i = 0; i < c->out->count; i++)
        if (same_view(c, c->out->at[i].view, view))
            return c->out->at[i].view;
    for (uint32_t i = 0; i < c->p->stage_costs.count; i++)
        if (c->p->stage_costs.at[i]->view && same_view(c, c->p->stage_costs.at[i]->view, view))
            return c->p->stage_costs.at[i]->view;
    return view;
}

static bool add_numbers(const choosing *c)
{
    if (!etch_stage_numbers_fit(c->p->placed, &c->numbers))
        return false;
    for (uint32_t stage = 0; stage < c->numbers.stages; stage++)
        add(c, etch_text(c->session->arena, "%u", (unsigned)stage),
            shared_view(c, etch_stage_view_of(c->p->placed, &c->numbers, stage)));
    return true;
}

/* ---- formulas ------------------------------------------------------------------------------------------- */

static void add_classes(const choosing *c)
{
    static const char *const labels[] = {"first", "middle", "last"};
    uint64_t chunks = 0;
    if (!c->chunk_count || !etch_to_u64(c->chunk_count, &chunks) || chunks == 0 || chunks > MOST_LINKS)
        return;
    for (int i = 0; i < 3; i++) {
        const etch_stage_view *view =
            etch_stage_view_class(c->p->placed, (etch_stage_class)i, c->stage_count, (uint32_t)chunks,
                                  etch_var(c->session->sym, "stage"));
        if (view)
            add(c, labels[i], shared_view(c, view));
    }
    c->session->open_stages = c->out->count > 0 ? c->stage_count : NULL;
}

/* ---- the door ------------------------------------------------------------------------------------------- */

static bool report_unbound(const choosing *c)
{
    etch_diag *diag = etch_error(c->session->diags, ETCH_E_QUERY_STAGE, c->stages->line->span,
                                 "the stages of plan '%s' have no formula of their own here", c->p->plan->name);
    etch_note(diag, (etch_span){0, 0},
              "there is one for a chain with one loop, units spread evenly, and a bound number of chunks");
    etch_help(diag, "give values to the number of stages, of chunks, and of the loops that are cut: --set");
    return false;
}

static bool keep_only(const choosing *c, const char *wanted, etch_span span)
{
    const uint32_t count = c->out->count;
    for (uint32_t i = 0; i < count; i++) {
        const bool is_end = (i == 0 && strcmp(wanted, "first") == 0) ||
                            (i + 1 == count && strcmp(wanted, "last") == 0);
        if (!is_end && strcmp(c->out->at[i].label, wanted) != 0)
            continue;
        c->out->at[0] = c->out->at[i];
        c->out->count = 1;
        return true;
    }
    etch_diag *diag =
        etch_error(c->session->diags, ETCH_E_QUERY_STAGE, span, "there is no stage '%s'", wanted);
    etch_help(diag, "stages are %s to %s; first and last name the ends", c->out->at[0].label,
              c->out->at[count - 1].label);
    return false;
}

bool etch_session_stages(etch_session *session, etch_pipeline *p, const char *wanted, etch_span span,
                         etch_stage_list *out)
{
    choosing c = {.session = session, .p = p, .out = out};
    if (!etch_pipeline_place(session, p))
        return false;
    c.stages = p->placed->stages;
    if (c.stages)
        find_sizes(&c);
    if (!c.stages || c.stage_count == etch_int(session->sym, 1)) {
        add(&c, wanted ? "0" : "whole", NULL);
    } else if (find_numbers(&c)) {
        if (!add_numbers(&c))
            return false;
    } else {
        add_classes(&c);
        if (out->count == 0)
            return report_unbound(&c);
    }
    return !wanted || keep_only(&c, wanted, span);
}

const etch_cost_list *etch_pipeline_stage_costs(etch_session *session, etch_pipeline *p,
                                                const etch_stage_view *view)
{
    for (uint32_t i = 0; i < p->stage_costs.count; i++)
        if (p->stage_costs.at[i]->view == view)
            return &p->stage_costs.at[i]->costs;
    etch_stage_costs *made = ETCH_NEW(session->arena, etch_stage_costs);
    made->view = view;
    etch_placed_costs(p->placed, view, &made->costs);
    ETCH_PUSH(session->arena, &p->stage_costs, made);
    return &made->costs;
}
