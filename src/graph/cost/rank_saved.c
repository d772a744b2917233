/* Values of the forward pass that one rank saves for the backward pass.
 *
 * requires: a placed graph. provides: the values that backward reads, as they lie on a rank.
 *
 * Values that lie alike are counted together, by the rules for the whole graph (saved.c): what a loop carries
 * it holds alike in all iterations, so that its chains are whole. The same value in another placement is
 * other memory. A copy is kept where backward reads it itself; where a move of backward reads what it was
 * made of, that is kept. */
#include "graph/cost/cost_int.h"

#include <string.h>

/* Reads of values that lie alike. */
typedef struct layout {
    etch_state place[ETCH_MAX_AXES];
    etch_readings readings;
} layout;

/* A copy that is no link of a chain that a loop carries on. */
typedef struct unowned_copy {
    const etch_value *value;
    const etch_op *reader;
    etch_positions positions;
} unowned_copy;

typedef struct reading {
    const etch_placed *placed;
    etch_sym *sym;
    etch_arena *arena;
    uint32_t axes;
    /* by value id: made by the backward pass, or recomputed in it */
    bool *backward;
    /* by value id: enters a loop of the forward pass, or the next iteration */
    bool *carried_on;
    /* by value id: of the forward pass, where a step makes it */
    const etch_region **region;
    ETCH_VEC(layout) layouts;
    ETCH_VEC(unowned_copy) unowned;
} reading;

static void carry_on(reading *r, const etch_value *value)
{
    while (value && etch_step_shows(value->step))
        value = value->step->ins[0];
    if (value)
        r->carried_on[value->id] = true;
}

/* Goes as deep as loops are nested. */
static void find_makers(reading *r, const etch_placed_region *region, bool backward)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; step && k < step->out_count; k++) {
            r->backward[step->outs[k]->id] = backward;
            r->region[step->outs[k]->id] = region->of;
        }
        for (uint32_t k = 0; loop && !backward && k < etch_loop_carries(loop)->count; k++)
            carry_on(r, etch_loop_carries(loop)->at[k].init);
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            find_makers(r, loop->bodies.at[k], backward);
    }
    for (uint32_t k = 0; !backward && k < region->carries.count; k++)
        carry_on(r, region->carries.at[k].out);
}

/* The value in memory when this one is read: under views, and before collectives of backward itself. */
static const etch_value *memory_of(const reading *r, const etch_value *value)
{
    while (etch_step_shows(value->step) ||
           (value->step && value->step->collective != ETCH_NO_COLLECTIVE && r->backward[value->id]))
        value = etch_value_before(value);
    return value;
}

static layout *layout_of(reading *r, const etch_state *place)
{
    for (uint32_t i = 0; i < r->layouts.count; i++)
        if (memcmp(r->layouts.at[i].place, place, r->axes * sizeof *place) == 0)
            return &r->layouts.at[i];
    layout one = {.readings.shards = etch_int(r->sym, 1), .readings.placed = r->placed};
    memcpy(one.place, place, r->axes * sizeof *place);
    for (uint32_t a = 0; a < r->axes; a++)
        if (place[a] && place[a] != ETCH_PARTIAL)
            one.readings.shards = etch_mul(r->sym, one.readings.shards, r->placed->plan->mesh.at[a].size);
    ETCH_PUSH(r->arena, &r->layouts, one);
    return &r->layouts.at[r->layouts.count - 1];
}

/* A copy that no loop carries on is memory of its own, once for each time that it is made. A weight is there
 * anyway, wherever it is gathered, and so is a rank's own shard of an input. */
static bool is_unowned(const reading *r, const etch_value *value)
{
    const bool made = value->step && value->step->collective != ETCH_NO_COLLECTIVE && !r->backward[value->id];
    const etch_kind kind = value->tensor->kind;
    const bool given =
        kind == ETCH_WEIGHT || (kind == ETCH_INPUT && value->step && value->step->collective == ETCH_SLICE);
    return made && !given && !r->carried_on[value->id];
}

static void note_unowned(reading *r, const etch_value *value, const etch_op *reader, etch_position position)
{
    uint32_t i = 0;
    while (i < r->unowned.count && r->unowned.at[i].value != value)
        i++;
    if (i == r->unowned.count)
        ETCH_PUSH(r->arena, &r->unowned, (unowned_copy){.value = value, .reader = reader});
    if (position != ETCH_NO_POSITION)
        ETCH_PUSH(r->arena, &r->unowned.at[i].positions, position);
}

static void note(reading *r, const etch_value *read, const etch_op *reader, etch_position position)
{
    const etch_value *value = memory_of(r, read);
    if (is_unowned(r, value)) {
        note_unowned(r, value, reader, position);
        return;
    }
    layout *of = layout_of(r, value->place);
    ETCH_PUSH(r->arena, &of->readings.all, (etch_reading){value->tensor, reader, position});
}

/* `position`: of the loop of the top level around it; ETCH_NO_POSITION: there is none. */
static void read_region(reading *r, const etch_placed_region *region, etch_position position)
{
    const bool staged = r->placed->stages != NULL;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        const bool reads = step && step->collective == ETCH_NO_COLLECTIVE && !etch_step_shows(step);
        for (uint32_t k = 0; reads && k < step->in_count; k++)
            note(r, step->ins[k], step->op, staged && !region->loop ? step->position : position);
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            read_region(r, loop->bodies.at[k], staged && !region->loop ? loop->position : position);
    }
}

static void add_unowned(const reading *r, const unowned_copy *s, const etch_stage_view *view,
                        etch_saved_stage *stage, etch_saved_list *out)
{
    const etch_region *region = r->region[s->value->id];
    etch_tensor here = *s->value->tensor; /* as if it were declared where the copy is made */
    here.region = (etch_region *)(uintptr_t)region;
    etch_expr times = stage && !region->loop ? etch_stage_presence(r->sym, view, &s->positions)
                                             : etch_saved_stage_times(stage, r->sym, &here);
    const etch_saved item = {
        .tensor = s->value->tensor,
        .body = region->loop ? region : NULL,
        .elements = etch_value_elements(r->placed, s->value),
        .width = etch_dtype_bytes(s->value->tensor->dtype),
        .times = times,
        .reader = s->reader,
    };
    if (!etch_is_zero(times))
        ETCH_PUSH(r->arena, out, item);
}

void etch_placed_saved(const etch_placed *placed, const etch_stage_view *view, etch_saved_list *out)
{
    const etch_graph *graph = placed->training->graph;
    reading r = {
        .placed = placed,
        .sym = graph->sym,
        .arena = placed->arena,
        .axes = placed->plan->mesh.count,
        .backward = ETCH_NEW_ARRAY(placed->arena, placed->value_count, bool),
        .carried_on = ETCH_NEW_ARRAY(placed->arena, placed->value_count, bool),
        .region = ETCH_NEW_ARRAY(placed->arena, placed->value_count, const etch_region *),
    };
    if (!placed->backward)
        return;
    find_makers(&r, placed->forward, false);
    find_makers(&r, placed->backward, true);
    read_region(&r, placed->backward, ETCH_NO_POSITION);
    for (uint32_t i = 0; i < r.layouts.count; i++)
        etch_saved_for(placed->training, &r.layouts.at[i].readings, etch_saved_stage_new(placed, view), out);
    for (uint32_t i = 0; i < r.unowned.count; i++)
        add_unowned(&r, &r.unowned.at[i], view, etch_saved_stage_new(placed, view), out);
}
