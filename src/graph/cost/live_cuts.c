/* Which values are in the memory of a chunk: those that it makes, and those that messages bring over the cuts
 * around it. */
#include "graph/cost/live_run_int.h"

const etch_cut *etch_live_cut_of(const etch_stage_view *view, uint32_t chunk, bool after,
                                 etch_expr *iteration)
{
    const etch_stages *stages = view->stages;
    const etch_layer_interval *end = NULL;
    uint32_t segment = 0;
    bool inside;
    for (uint32_t s = 0; s < stages->segments.count; s++)
        for (uint32_t i = 0; i < view->ranges[s].count; i++)
            if (view->ranges[s].at[i].chunk == chunk && (after || !end)) {
                end = &view->ranges[s].at[i];
                segment = s;
            }
    if (!end)
        return NULL;
    *iteration = after ? end->high : end->low;
    inside = after ? end->high != stages->segments.at[segment].count : !etch_is_zero(end->low);
    for (uint32_t i = 0; i < stages->cuts.count; i++)
        if (stages->cuts.at[i].segment == segment + (after && !inside) && stages->cuts.at[i].inside == inside)
            return &stages->cuts.at[i];
    return NULL;
}

bool etch_live_is_sent(const etch_live_run *r, const etch_cut *cut, bool backward, uint32_t name,
                       etch_expr iteration)
{
    const etch_crossings *list = backward ? &cut->backward : &cut->forward;
    for (uint32_t i = 0; i < list->count; i++) {
        etch_crossing crossing = list->at[i];
        crossing.is_made = true;
        if (crossing.value->id == name)
            return !etch_is_zero(
                etch_crosses(r->sym, r->program->view->stages, cut, &crossing, backward, iteration));
    }
    return false;
}

void etch_live_note_origin(etch_live_run *r, uint32_t name, uint32_t chunk)
{
    if (name != ETCH_NO_NAME && r->open.count == 1)
        r->origins[name] = (etch_live_origin){true, chunk, r->pass};
}

bool etch_live_has(const etch_live_run *r, uint32_t name, uint32_t chunk)
{
    const etch_live_name *names = r->program->names;
    const uint32_t root = etch_value_root((etch_value *)(uintptr_t)names[name].value)->id;
    const etch_live_origin *origin = &r->origins[root];
    if (!r->program->view || !origin->is_known || origin->chunk == chunk || chunk == ETCH_NO_CHUNK)
        return true;
    const bool backward = origin->pass != ETCH_PASS_FORWARD;
    etch_expr iteration = NULL;
    const etch_cut *cut = etch_live_cut_of(r->program->view, chunk, backward, &iteration);
    return !cut || etch_live_is_sent(r, cut, backward, root, iteration);
}
