/* Gradients that wait for the second half of backward.
 *
 * Ranks that hold gradients in parts reduce them with the second half. What the first half adds to is whole
 * until then: once in each run of the region that has the weight, however many steps add to it there. */
#include "graph/cost/live.h"

/* What a region is run how often on the stage: the one at work, from the outermost on. */
typedef struct level {
    const etch_region *body;
    etch_expr runs;
} level;

/* A gradient that steps of the first half add to. */
typedef struct waiting {
    const etch_tensor *gradient;
    etch_saved saved;
    /* how often the steps add to one of them, together */
    etch_expr added;
} waiting;

typedef struct finding {
    etch_live_program *p;
    ETCH_VEC(level) levels;
    ETCH_VEC(waiting) all;
} finding;

static etch_expr runs_of(const finding *f, const etch_live_loop *loop, const etch_region *body)
{
    const etch_stage_view *view = f->levels.count == 1 ? f->p->view : NULL;
    if (!view)
        return body->count;
    if (etch_position_is_loop(view->stages, loop->position))
        return etch_stage_iterations(f->p->sym, view, loop->position, body);
    return etch_mul(f->p->sym, body->count, etch_stage_share(view, loop->position));
}

/* The run of the region that has the weight is the level so deep. */
static uint32_t home_of(const finding *f, const etch_tensor *weight)
{
    uint32_t home = f->levels.count - 1;
    while (home > 0 && etch_forward_body(f->levels.at[home].body) != weight->region)
        home--;
    return home;
}

static etch_expr runs_between(const finding *f, uint32_t first, uint32_t end)
{
    etch_expr runs = etch_int(f->p->sym, 1);
    for (uint32_t i = first; i < end; i++)
        runs = etch_mul(f->p->sym, runs, f->levels.at[i].runs);
    return runs;
}

static void add(finding *f, const etch_live_item *item, uint32_t k)
{
    const etch_tensor *gradient = item->step->accumulate_into[k];
    const uint32_t home = home_of(f, gradient->of);
    const bool is_top = f->levels.count == 1;
    const etch_expr added = is_top && f->p->view ? etch_stage_share(f->p->view, item->position)
                                                 : runs_between(f, home + 1, f->levels.count);
    for (uint32_t i = 0; i < f->all.count; i++)
        if (f->all.at[i].gradient == gradient) {
            f->all.at[i].added = etch_add(f->p->sym, f->all.at[i].added, added);
            return;
        }
    const etch_value *value = item->step->outs[k];
    const etch_saved saved = {.tensor = value->tensor,
                              .value = value,
                              .body = home ? f->levels.at[home].body : NULL,
                              .elements = etch_value_elements(f->p->placed, value),
                              .width = etch_dtype_bytes(value->tensor->dtype),
                              .times = runs_between(f, 1, home + 1),
                              .reader = item->op};
    ETCH_PUSH(f->p->arena, &f->all, (waiting){gradient, saved, added});
}

/* Goes as deep as loops are nested. */
static void look_at(finding *f, const etch_live_region *region)
{
    const etch_live_program *p = f->p;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_live_item *item = &region->items.at[i];
        for (uint32_t k = 0; item->step && k < item->step->out_count; k++)
            if (item->step->accumulate_into[k] &&
                etch_zero_divides(p->placed, item->step->accumulate_into[k]->of, ETCH_HOLDS_GRADIENT))
                add(f, item, k);
        for (uint32_t b = 0; item->loop && b < item->loop->bodies.count; b++) {
            const etch_live_region *body = item->loop->bodies.at[b];
            const level inside = {body->of, runs_of(f, item->loop, body->of)};
            ETCH_PUSH(p->arena, &f->levels, inside);
            look_at(f, body);
            f->levels.count--;
        }
    }
}

void etch_live_waiting_gradients(etch_live_program *p, etch_arena *arena, etch_saved_list *out)
{
    finding f = {.p = p};
    ETCH_PUSH(p->arena, &f.levels, (level){NULL, etch_int(p->sym, 1)});
    look_at(&f, p->forward);
    for (uint32_t i = 0; i < f.all.count; i++) {
        etch_saved *saved = &f.all.at[i].saved;
        saved->times = etch_mul(p->sym, saved->times, etch_some(p->sym, f.all.at[i].added));
        if (!etch_is_zero(saved->times))
            ETCH_PUSH(arena, out, *saved);
    }
}
