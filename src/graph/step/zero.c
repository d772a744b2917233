/* Which axes divide what a rank holds of each weight, as the zero lines of the plan say.
 *
 * requires: a placed graph, before kernels are made. provides: placed->zero_axes. */
#include <string.h>

#include "graph/ir/cursor.h"
#include "graph/plan/plan_regions.h"
#include "graph/step/step_int.h"

const etch_zero *etch_zero_of(const etch_placed *placed, const etch_tensor *weight)
{
    for (const etch_plan_region *region = etch_plan_region_of(placed->plan_regions, weight); region;
         region = region->outer)
        for (uint32_t i = region->overrides.count; i-- > 0;)
            if (region->overrides.at[i]->zero.level)
                return &region->overrides.at[i]->zero;
    return &placed->plan->zero;
}

bool etch_zero_roots(const etch_zero *zero, const etch_tensor *weight)
{
    return zero->root && !weight->region->loop;
}

uint32_t etch_zero_divides(const etch_placed *placed, const etch_tensor *weight, etch_holding what)
{
    const etch_zero *zero = etch_zero_of(placed, weight);
    static const uint32_t least_level[] = {
        [ETCH_HOLDS_STATES] = 1, [ETCH_HOLDS_GRADIENT] = 2, [ETCH_HOLDS_WEIGHT] = 3};
    const bool divided = zero->level >= least_level[what] && !(what == ETCH_HOLDS_GRADIENT && zero->whole);
    return divided ? placed->zero_axes[weight->id] : 0;
}

etch_expr etch_held_elements(const etch_placed *placed, const etch_tensor *weight, etch_holding what)
{
    etch_value held = *placed->weight_of[weight->id];
    held.sharded_flat = etch_zero_divides(placed, weight, what);
    return etch_value_elements(placed, &held);
}

uint32_t etch_stage_axes(const etch_placed *placed)
{
    const etch_stage_line *line = placed->stages ? placed->stages->line : NULL;
    return line ? etch_axes_of(line->axes, line->axis_count) : 0;
}

/* The axes of its zero line that hold the weight alike. Stages hold different weights. A buffer is no
 * weight. */
static uint32_t dividing_axes(const etch_placed *placed, const etch_tensor *weight)
{
    if (weight->buffer)
        return 0;
    const etch_state *held = placed->weight_of[weight->id]->place;
    return etch_axes_held(placed->plan, held, NULL) & etch_zero_of(placed, weight)->axes &
           ~etch_stage_axes(placed);
}

static bool report_nothing_divided(const etch_placed *placed, const etch_zero *zero)
{
    const char *axes = etch_axes_label(placed, zero->axes);
    etch_diag *diag = etch_error(placed->diags, ETCH_E_ZERO_NOTHING, zero->span,
                                 "zero divides nothing over %s: these axes divide all weights already", axes);
    etch_help(diag, "name axes that replicate weights, as those that divide only the batch do");
    return false;
}

/* ---- weight groups ------------------------------------------------------------------------------------- */

static const etch_loop *loop_named(const etch_graph *graph, const char *name)
{
    for (etch_cursor at = {.root = graph->forward}; etch_cursor_next(&at);)
        if (at.item->loop && strcmp(at.item->loop->name, name) == 0)
            return at.item->loop;
    return NULL;
}

/* A name that nothing has was warned of when the plan was read. */
static bool check_groups(const etch_placed *placed, const etch_zero *zero)
{
    for (uint32_t i = 0; i < zero->group_count; i++) {
        const etch_loop *loop = loop_named(placed->training->graph, zero->weight_groups[i]);
        const etch_region *around = loop ? loop->bodies.at[0]->parent : NULL;
        if (!around || !around->loop)
            continue;
        etch_diag *diag = etch_error(placed->diags, ETCH_E_ZERO_UNIT, zero->group_spans[i],
                                     "weights are gathered by the iterations of outermost loops, and '%s' is "
                                     "inside of '%s'",
                                     loop->name, around->loop->name);
        etch_note(diag, loop->span, "the loop is here");
        return false;
    }
    return true;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

/* Divides the weights that the line is about. One that is neither read nor trained has nothing to divide
 * before level 3. */
static bool divide_by(etch_placed *placed, const etch_zero *zero, const bool *trained)
{
    const etch_graph *graph = placed->training->graph;
    uint32_t divided = 0, concerned = 0;
    if (zero->level == 0)
        return true;
    if (!check_groups(placed, zero))
        return false;
    for (uint32_t i = 0; i < graph->weights.count; i++) {
        const etch_tensor *weight = graph->weights.at[i];
        if (etch_zero_of(placed, weight) != zero || (zero->level < 3 && !trained[weight->id]))
            continue;
        divided |= placed->zero_axes[weight->id] = dividing_axes(placed, weight);
        concerned++;
    }
    const bool says_none = !zero->axes && zero != &placed->plan->zero;
    return divided || !concerned || says_none || report_nothing_divided(placed, zero);
}

bool etch_zero_find(etch_placed *placed)
{
    const etch_training *training = placed->training;
    bool *trained = ETCH_NEW_ARRAY(placed->arena, training->graph->tensors.count, bool);
    for (uint32_t u = 0; u < training->weight_groups.count; u++)
        for (uint32_t i = 0; i < training->weight_groups.at[u]->weights.count; i++)
            trained[training->weight_groups.at[u]->weights.at[i]->id] = true;
    bool fine = divide_by(placed, &placed->plan->zero, trained);
    for (uint32_t i = 0; i < placed->plan->overrides.count && fine; i++)
        fine = divide_by(placed, &placed->plan->overrides.at[i].zero, trained);
    return fine;
}
