/* Which of the values that backward keeps lie on one stage.
 *
 * requires: a placed graph with stages. A value of the top level lies on every stage that reads it in
 * backward: where it is made elsewhere, the message that brought it is what is kept. Values of iterations lie
 * where these run. */
#include "graph/cost/cost_int.h"

struct etch_saved_stage {
    const etch_placed *placed;
    const etch_stage_view *view;
    etch_sym *sym;
    etch_arena *arena;
    /* by id of a loop of the top level of forward */
    etch_position *loops;
    /* by tensor id */
    etch_positions *reads;
};

etch_saved_stage *etch_saved_stage_new(const etch_placed *placed, const etch_stage_view *view)
{
    if (!placed->stages || !view)
        return NULL;
    const etch_graph *graph = placed->training->graph;
    etch_saved_stage *stage = ETCH_NEW(placed->arena, etch_saved_stage);
    *stage = (etch_saved_stage){
        .placed = placed,
        .view = view,
        .sym = graph->sym,
        .arena = placed->arena,
        .loops = ETCH_NEW_ARRAY(placed->arena, graph->loop_count, etch_position),
        .reads = ETCH_NEW_ARRAY(placed->arena, graph->tensors.count, etch_positions),
    };
    for (uint32_t i = 0; i < placed->forward->items.count; i++) {
        const etch_placed_loop *loop = placed->forward->items.at[i].loop;
        if (loop)
            stage->loops[loop->loop->id] = loop->position;
    }
    return stage;
}

bool etch_saved_stage_note(etch_saved_stage *stage, const etch_tensor *place, etch_position position)
{
    if (!stage || position == ETCH_NO_POSITION)
        return false;
    etch_positions *positions = &stage->reads[place->id];
    for (uint32_t i = 0; i < positions->count; i++)
        if (positions->at[i] == position)
            return false;
    ETCH_PUSH(stage->arena, positions, position);
    return true;
}

/* The body of the top level around a body, in the forward graph. */
static const etch_region *outermost(const etch_region *body)
{
    while (body->parent && body->parent->loop)
        body = body->parent;
    return etch_forward_body(body);
}

static etch_position position_of(const etch_saved_stage *stage, const etch_region *body)
{
    return stage->loops[outermost(body)->loop->id];
}

etch_position etch_saved_stage_side(const etch_saved_stage *stage, const etch_region *body, etch_side side)
{
    if (!stage)
        return ETCH_NO_POSITION;
    const etch_position position = position_of(stage, body);
    return etch_position_is_loop(stage->placed->stages, position)
               ? etch_position_at(etch_position_segment(position), side)
               : position;
}

static etch_expr presence(const etch_saved_stage *stage, etch_position position)
{
    etch_positions one = {0};
    ETCH_PUSH(stage->arena, &one, position);
    return etch_stage_presence(stage->sym, stage->view, &one);
}

etch_expr etch_saved_stage_times(const etch_saved_stage *stage, etch_sym *sym, const etch_tensor *place)
{
    etch_expr product = etch_int(sym, 1);
    if (stage && !place->region->loop)
        return etch_stage_presence(sym, stage->view, &stage->reads[place->id]);
    for (const etch_region *body = place->region; body && body->loop; body = body->parent) {
        const bool top = !body->parent || !body->parent->loop;
        const etch_position position = stage && top ? position_of(stage, body) : ETCH_NO_POSITION;
        if (stage && top && etch_position_is_loop(stage->placed->stages, position))
            product = etch_mul(sym, product, etch_stage_iterations(sym, stage->view, position, body));
        else
            product = etch_mul(sym, product, body->count);
        if (stage && top && !etch_position_is_loop(stage->placed->stages, position))
            product = etch_mul(sym, product, etch_stage_share(stage->view, position));
    }
    return product;
}

etch_expr etch_saved_stage_ends(const etch_saved_stage *stage, etch_sym *sym, const etch_region *body,
                                etch_side side)
{
    const etch_tensor *result = etch_loop_carries(body->loop)->at[0].result;
    const etch_expr some =
        etch_smaller(sym, body->loop->count, etch_int(sym, 1)); /* 0: no iteration at all */
    if (result->region->loop)                                   /* as often as the loop around it runs */
        return etch_mul(sym, some, etch_saved_stage_times(stage, sym, result));
    return stage ? etch_mul(sym, some, presence(stage, etch_saved_stage_side(stage, body, side))) : some;
}

etch_expr etch_saved_stage_intervals(const etch_saved_stage *stage, etch_sym *sym, const etch_region *body)
{
    const bool top = !body->parent || !body->parent->loop;
    const etch_position position = stage && top ? position_of(stage, body) : ETCH_NO_POSITION;
    if (!stage || !top || !etch_position_is_loop(stage->placed->stages, position))
        return etch_saved_stage_ends(stage, sym, body, ETCH_LAST_OF);
    return etch_int(sym, stage->view->ranges[etch_position_segment(position)].count);
}
