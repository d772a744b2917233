/* The stages that a quantity of one rank may be of: one after the other where the chain is bound, else the
 * first, a middle and the last one, as formulas. */
#include "session/core/core.h"

#include <string.h>

enum { MOST_MODEL_CHUNKS = 1 << 16 }; /* of a chain that is looked at stage by stage */

typedef struct choosing {
    etch_session *session;
    etch_compiled *p;
    const etch_stages *stages;
    /* with values put in */
    etch_expr stage_count, chunk_count;
    etch_stage_numbers numbers;
    etch_stage_list *out;
} choosing;

static etch_expr apply(const choosing *c, etch_expr expr)
{
    return etch_compiled_apply(c->session, c->p, expr);
}

/* `number`: of the stage. */
static void add(const choosing *c, const char *label, const etch_stage_view *view, etch_expr number)
{
    uint64_t chunks = 1;
    const bool counted = c->stages && c->chunk_count && etch_to_u64(c->chunk_count, &chunks);
    const etch_expr stages = c->stages ? c->stage_count : etch_int(c->session->sym, 1);
    const etch_stage_place place = {number, stages, counted ? (uint32_t)chunks : 1};
    ETCH_PUSH(c->session->arena, c->out, (etch_stage_item){label, view, place});
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

/* ---- bound chains -------------------------------------------------------------------------------------- */

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
    uint64_t stages, chunks, *segments = ETCH_NEW_ARRAY(arena, c->stages->segments.count, uint64_t);
    uint64_t *counts = ETCH_NEW_ARRAY(arena, line->count_count, uint64_t);
    bool bound = c->stage_count && c->chunk_count && etch_to_u64(c->stage_count, &stages) &&
                 etch_to_u64(c->chunk_count, &chunks);
    for (uint32_t i = 0; bound && i < c->stages->segments.count; i++)
        bound = number_of(c, c->stages->segments.at[i].count, &segments[i]);
    for (uint32_t i = 0; bound && i < line->count_count; i++)
        bound = number_of(c, line->counts[i], &counts[i]);
    bound = bound && number_of(c, c->stages->layers, &c->numbers.layers) && stages > 0 && chunks > 0 &&
            stages <= MOST_MODEL_CHUNKS && chunks <= MOST_MODEL_CHUNKS &&
            stages * chunks <= MOST_MODEL_CHUNKS;
    if (!bound)
        return false;
    c->numbers.map = etch_schedule_map(line->schedule);
    c->numbers.stages = (uint32_t)stages;
    c->numbers.chunks = (uint32_t)chunks;
    c->numbers.segments = segments;
    c->numbers.counts = line->counts ? counts : NULL;
    return true;
}

/* Have both as many iterations of each class of the entry's loop? */
static bool same_classes(const choosing *c, uint32_t segment, const etch_stage_view *a,
                         const etch_stage_view *b)
{
    const etch_loop *loop = c->stages->segments.at[segment].loop;
    const etch_position position = etch_position_at(segment, ETCH_ALL_OF);
    etch_sym *sym = c->session->sym;
    for (uint32_t k = 0; loop && loop->pattern && k < loop->bodies.count; k++)
        if (etch_stage_iterations(sym, a, position, loop->bodies.at[k]) !=
            etch_stage_iterations(sym, b, position, loop->bodies.at[k]))
            return false;
    return true;
}

/* Do both send the same at the cut, as often? */
static bool same_messages(const choosing *c, uint32_t cut, bool back, const etch_stage_view *a,
                          const etch_stage_view *b)
{
    const etch_cut *at = &c->stages->cuts.at[cut];
    const etch_crossings *all = back ? &at->backward : &at->forward;
    etch_sym *sym = c->session->sym;
    bool same = etch_stage_sends(sym, a, cut, NULL, back) == etch_stage_sends(sym, b, cut, NULL, back);
    for (uint32_t i = 0; same && i < all->count; i++)
        same = etch_stage_sends(sym, a, cut, &all->at[i], back) ==
               etch_stage_sends(sym, b, cut, &all->at[i], back);
    return same;
}

/* Of a chain that is there twice, mirror images hold the same layers, each of the other copy. */
static bool same_view(const choosing *c, const etch_stage_view *a, const etch_stage_view *b)
{
    if (a->of_first_copy && b->of_first_copy && !same_view(c, a->of_first_copy, b->of_first_copy))
        return false;
    for (uint32_t i = 0; i < c->stages->segments.count; i++)
        for (int side = 0; side < ETCH_SIDES; side++)
            if (a->shares[i][side] != b->shares[i][side])
                return false;
    for (uint32_t i = 0; i < c->stages->cuts.count; i++)
        for (int back = 0; back < 2; back++)
            if (!same_messages(c, i, back, a, b))
                return false;
    for (uint32_t i = 0; i < c->stages->segments.count; i++)
        if (!same_classes(c, i, a, b))
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
            shared_view(c, etch_stage_view_of(c->p->placed, &c->numbers, stage)),
            etch_int(c->session->sym, stage));
    return true;
}

/* ---- formulas ------------------------------------------------------------------------------------------ */

/* Is it the number of a stage that there may be? Also where only the first and the last one have names. */
static bool stage_number(const char *wanted, uint64_t *number)
{
    *number = 0;
    for (const char *at = wanted; at && *at; at++) {
        if (*at < '0' || *at > '9' || *number > MOST_MODEL_CHUNKS)
            return false;
        *number = 10 * *number + (uint64_t)(*at - '0');
    }
    return wanted && *wanted && *number < MOST_MODEL_CHUNKS;
}

static void add_class(const choosing *c, etch_stage_class class, uint32_t chunks, const char *label,
                      etch_expr number)
{
    const etch_expr one = etch_int(c->session->sym, 1);
    const etch_stage_view *view = etch_stage_view_class(c->p->placed, class, c->stage_count, chunks, number);
    if (view)
        add(c, label, shared_view(c, view),
            class == ETCH_STAGE_FIRST  ? etch_int(c->session->sym, 0)
            : class == ETCH_STAGE_LAST ? etch_sub(c->session->sym, c->stage_count, one)
                                       : number);
}

/* The stage that is wanted, where it has a number: one of the ends, or in the middle if there are so many. */
static void add_numbered(const choosing *c, uint32_t chunks, const char *wanted, uint64_t number)
{
    uint64_t stages = 0;
    const bool counted = etch_to_u64(c->stage_count, &stages);
    const bool last = counted && number + 1 == stages;
    if (counted && number >= stages)
        return;
    add_class(c,
              number == 0 ? ETCH_STAGE_FIRST
              : last      ? ETCH_STAGE_LAST
                          : ETCH_STAGE_MIDDLE,
              chunks, wanted, etch_int(c->session->sym, (int64_t)number));
}

/* The stages that formulas hold for; `least`: stages that there must be more of. */
static const char *condition(const choosing *c, uint64_t least)
{
    uint64_t stages;
    const char *count = etch_expr_text(c->session->sym, c->stage_count);
    if (etch_to_u64(c->stage_count, &stages))
        return etch_text(c->session->arena, "%s stages", count);
    return etch_text(c->session->arena, "%s > %llu stages%s", count, (unsigned long long)least,
                     etch_stage_copies(c->stages) > 1 ? ", an even number" : "");
}

static etch_expr positive_part(etch_sym *sym, etch_expr value)
{
    return etch_max(sym, value, etch_int(sym, 0));
}

/* 1 or 0. */
static etch_expr is_even(etch_sym *sym, etch_expr count)
{
    const etch_expr two = etch_int(sym, 2);
    const etch_expr rest = etch_sub(sym, count, etch_mul(sym, two, etch_floor_div(sym, count, two)));
    return etch_sub(sym, etch_int(sym, 1), rest);
}

/* There are more than `least` stages, each has an iteration of the loop, and a middle one is none of the
 * ends. */
static etch_expr in_form(const choosing *c, uint32_t chunks, uint64_t least)
{
    etch_sym *sym = c->session->sym;
    const etch_stages *stages = c->stages;
    uint32_t before = 0, after = 0;
    for (uint32_t i = 0, seen = 0; i < stages->segments.count; i++) {
        seen += stages->segments.at[i].loop != NULL;
        before += !seen;
        after += seen && !stages->segments.at[i].loop;
    }
    etch_expr model_chunks = etch_mul(sym, c->stage_count, etch_int(sym, chunks / etch_stage_copies(stages)));
    etch_expr fewest = etch_floor_div(sym, apply(c, stages->layers), model_chunks);
    etch_expr spare = etch_sub(sym, fewest, etch_int(sym, before > after ? before : after));
    etch_expr more = etch_sub(sym, c->stage_count, etch_int(sym, (int64_t)least));
    etch_expr form = etch_mul(sym, positive_part(sym, spare), positive_part(sym, more));
    if (etch_stage_copies(stages) > 1)
        form = etch_mul(sym, form, is_even(sym, c->stage_count));
    for (uint32_t i = 0; i < c->out->count; i++)
        if (strcmp(c->out->at[i].label, "middle") == 0)
            form = etch_mul(sym, form,
                            positive_part(sym, etch_sub(sym, etch_sub(sym, c->stage_count, etch_int(sym, 1)),
                                                        etch_var(sym, "stage"))));
    return form;
}

static void note_open_stages(const choosing *c, uint32_t chunks, uint64_t least)
{
    etch_session *session = c->session;
    const char *text = condition(c, least);
    for (uint32_t i = 0; i < session->open_stages.count; i++)
        if (strcmp(session->open_stages.at[i].text, text) == 0 &&
            c->p->plan == session->open_stages.at[i].plan)
            return;
    ETCH_PUSH(session->arena, &session->open_stages,
              (etch_open_stages){text, in_form(c, chunks, least), c->p->plan});
}

static void add_classes(const choosing *c, const char *wanted)
{
    etch_sym *sym = c->session->sym;
    uint64_t chunks = 0, number, least = 1;
    if (!c->chunk_count || !etch_to_u64(c->chunk_count, &chunks) || chunks == 0 || chunks > MOST_MODEL_CHUNKS)
        return;
    if (stage_number(wanted, &number)) {
        add_numbered(c, (uint32_t)chunks, wanted, number);
        least = number + 1;
    } else {
        add_class(c, ETCH_STAGE_FIRST, (uint32_t)chunks, "first", NULL);
        if (c->stage_count != etch_int(sym, 2))
            add_class(c, ETCH_STAGE_MIDDLE, (uint32_t)chunks, "middle", etch_var(sym, "stage"));
        add_class(c, ETCH_STAGE_LAST, (uint32_t)chunks, "last", NULL);
    }
    if (c->out->count > 0)
        note_open_stages(c, (uint32_t)chunks, least > 1 ? least : 1);
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

static bool report_no_stage(const choosing *c, const char *wanted, etch_span span, const char *stages)
{
    etch_diag *diag =
        etch_error(c->session->diags, ETCH_E_QUERY_STAGE, span, "there is no stage '%s'", wanted);
    etch_help(diag, "stages are %s", stages);
    return false;
}

/* There are no formulas, or not of this stage. */
static bool report_unformed(const choosing *c, const char *wanted, etch_span span)
{
    uint64_t stages, number;
    if (stage_number(wanted, &number) && etch_to_u64(c->stage_count, &stages) && number >= stages)
        return report_no_stage(c, wanted, span,
                               etch_text(c->session->arena, "0 to %llu; first and last name the ends",
                                         (unsigned long long)(stages - 1)));
    etch_diag *diag =
        etch_error(c->session->diags, ETCH_E_QUERY_STAGE, c->stages->line->span,
                   "the stages of plan '%s' have no formula of their own here", c->p->plan->name);
    etch_note(diag, (etch_span){0, 0},
              "there is one for a chain with one loop, units spread evenly, and a bound number of chunks");
    const uint32_t count = c->stages->segments.count;
    etch_expr *sizes = ETCH_NEW_ARRAY(c->session->arena, count + 2, etch_expr);
    sizes[0] = c->stage_count;
    sizes[1] = c->chunk_count;
    for (uint32_t i = 0; i < count; i++)
        sizes[i + 2] = apply(c, c->stages->segments.at[i].count);
    etch_help_unbound(c->session, diag, sizes, count + 2);
    return false;
}

/* Has the plan's order these numbers of stages and microbatches? What one that is listed holds is known for
 * no others. */
static bool order_fits(const choosing *c, bool must_be_bound)
{
    const etch_stage_line *line = c->stages->line;
    const etch_train *train = &c->p->training->train;
    etch_sym *sym = c->session->sym;
    uint64_t stages, microbatches;
    if (c->stage_count == etch_int(sym, 1))
        return true;
    const etch_expr micro = train->micro ? apply(c, train->micro) : etch_int(sym, 1);
    const bool counted = micro && etch_to_u64(micro, &microbatches),
               listed = etch_schedule_order(line->schedule);
    const bool staged = c->stage_count && etch_to_u64(c->stage_count, &stages) && stages <= MOST_MODEL_CHUNKS;
    if (listed ? staged && counted : staged || (counted && must_be_bound))
        return etch_pipe_fits(
            c->session->diags, line->span,
            &(etch_pipe){.schedule = line->schedule,
                         /* as few as there may be where they are open */
                         .stages = staged ? (uint32_t)stages : etch_schedule_copies(line->schedule),
                         .microbatches = counted ? microbatches : 0,
                         .trains = c->p->model->trains && staged});
    if (!must_be_bound || !listed)
        return true;
    etch_diag *diag =
        etch_error(c->session->diags, ETCH_E_QUERY_STAGE, line->span,
                   "the stages of plan '%s' have no formula of their own here", c->p->plan->name);
    etch_note(diag, (etch_span){0, 0}, "its order is one of numbers");
    const etch_expr sizes[] = {c->stage_count, micro};
    etch_help_unbound(c->session, diag, sizes, 2);
    return false;
}

static bool keep_only(const choosing *c, const char *wanted, etch_span span)
{
    const uint32_t count = c->out->count;
    for (uint32_t i = 0; i < count; i++) {
        const bool is_end =
            (i == 0 && strcmp(wanted, "first") == 0) || (i + 1 == count && strcmp(wanted, "last") == 0);
        if (!is_end && strcmp(c->out->at[i].label, wanted) != 0)
            continue;
        c->out->at[0] = c->out->at[i];
        c->out->count = 1;
        return true;
    }
    if (c->session->open_stages.count > 0)
        return report_no_stage(c, wanted, span, "first, middle and last, or numbers from 0");
    return report_no_stage(c, wanted, span,
                           etch_text(c->session->arena, "%s to %s; first and last name the ends",
                                     c->out->at[0].label, c->out->at[count - 1].label));
}

bool etch_session_stages(etch_session *session, etch_compiled *p, const char *wanted, etch_span span,
                         etch_stage_list *out)
{
    choosing c = {.session = session, .p = p, .out = out};
    if (!etch_compiled_place(session, p))
        return false;
    c.stages = p->placed->stages;
    if (c.stages) {
        find_sizes(&c);
        if (!order_fits(&c, true))
            return false;
    }
    if (!c.stages || c.stage_count == etch_int(session->sym, 1)) {
        add(&c, wanted ? "0" : "whole", NULL, etch_int(session->sym, 0));
    } else if (find_numbers(&c)) {
        if (!add_numbers(&c))
            return false;
    } else {
        add_classes(&c, wanted);
        if (out->count == 0)
            return report_unformed(&c, wanted, span);
    }
    return !wanted || keep_only(&c, wanted, span);
}

bool etch_session_stages_fit(etch_session *session, etch_compiled *p)
{
    etch_stage_list none = {0};
    choosing c = {.session = session, .p = p, .stages = p->placed->stages, .out = &none};
    if (!c.stages)
        return true;
    find_sizes(&c);
    return order_fits(&c, false) && (c.stage_count == etch_int(session->sym, 1) || !find_numbers(&c) ||
                                     etch_stage_numbers_fit(p->placed, &c.numbers));
}

const etch_cost_list *etch_compiled_stage_costs(etch_session *session, etch_compiled *p,
                                                const etch_stage_view *view, uint32_t measures)
{
    for (uint32_t i = 0; i < p->stage_costs.count; i++)
        if (p->stage_costs.at[i]->view == view && p->stage_costs.at[i]->measures == measures)
            return &p->stage_costs.at[i]->costs;
    etch_stage_costs *made = ETCH_NEW(session->arena, etch_stage_costs);
    made->view = view;
    made->measures = measures;
    if (measures & ETCH_COUNTED_MEASURES)
        etch_kernels_count(p->placed);
    etch_placed_costs_of(p->placed, view, measures, &made->costs);
    ETCH_PUSH(session->arena, &p->stage_costs, made);
    return &made->costs;
}

const etch_cost_list *etch_compiled_stage_memory(etch_session *session, etch_compiled *p,
                                                 const etch_stage_item *stage, bool working,
                                                 const etch_valuation *values)
{
    const etch_expr zero = etch_int(session->sym, 0), one = etch_int(session->sym, 1);
    const etch_stage_item any = {.place = {zero, one, 1}};
    const etch_stage_item *of = stage ? stage : &any;
    for (uint32_t i = 0; i < p->stage_memory.count; i++) {
        etch_stage_memory *known = p->stage_memory.at[i];
        if (known->view == of->view && known->place.stage == of->place.stage && known->working == working)
            return &known->items;
    }
    etch_stage_memory *made = ETCH_NEW(session->arena, etch_stage_memory);
    *made = (etch_stage_memory){.view = of->view, .place = of->place, .working = working};
    etch_placed_memory(p->placed, of->view, &of->place, &made->items);
    if (working)
        etch_placed_workspace(p->placed, of->view, &of->place, values, &made->items);
    const etch_cost_list *costs = etch_compiled_stage_costs(session, p, of->view, 1u << ETCH_CACHED);
    for (uint32_t i = 0; i < costs->count; i++)
        ETCH_PUSH(session->arena, &made->items, costs->at[i]);
    ETCH_PUSH(session->arena, &p->stage_memory, made);
    return &made->items;
}
