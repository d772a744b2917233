/* Uses along the chain of layers, as formulas: whether a stage has any, and what goes over a cut. A use that
 * some iterations make is there where such iterations are. */
#include "graph/stage/stage_int.h"

/* ---- amounts ------------------------------------------------------------------------------------------- */

etch_expr etch_stage_use_total(etch_sym *sym, const etch_stage_use *use)
{
    return use->body ? etch_mul(sym, use->body->count, use->runs) : use->runs;
}

/* On the stage. */
static etch_expr use_here(etch_sym *sym, const etch_stage_view *view, const etch_stage_use *use)
{
    etch_expr times = etch_int(sym, etch_stage_holds(view, use->position));
    if (use->body)
        times = etch_stage_iterations(sym, view, use->position, use->body);
    return etch_mul(sym, times, use->runs);
}

/* On the others. */
static etch_expr use_elsewhere(etch_sym *sym, const etch_stage_view *view, const etch_stage_use *use)
{
    const uint32_t segment = etch_position_segment(use->position);
    bool all = etch_stage_holds(view, use->position);
    if (use->body)
        return etch_sub(sym, etch_stage_use_total(sym, use), use_here(sym, view, use));
    if (etch_position_side(use->position) == ETCH_ALL_OF)
        all = view->whole[segment];
    return all ? etch_int(sym, 0) : use->runs;
}

/* ---- stages -------------------------------------------------------------------------------------------- */

bool etch_stage_holds(const etch_stage_view *view, etch_position position)
{
    return etch_position_side(position) == ETCH_ALL_OF ? view->held[etch_position_segment(position)]
                                                       : !etch_is_zero(etch_stage_share(view, position));
}

etch_expr etch_stage_presence(etch_sym *sym, const etch_stage_view *view, const etch_stage_uses *uses)
{
    etch_expr here = etch_int(sym, 0);
    for (uint32_t i = 0; i < uses->count; i++)
        here = etch_add(sym, here, use_here(sym, view, &uses->at[i]));
    return etch_some(sym, here);
}

etch_expr etch_stage_shares_weight(etch_sym *sym, const etch_stage_view *view, const etch_stage_uses *uses)
{
    etch_expr elsewhere = etch_int(sym, view->of_first_copy != NULL); /* whatever it uses, another one does */
    for (uint32_t i = 0; i < uses->count; i++)
        elsewhere = etch_add(sym, elsewhere, use_elsewhere(sym, view, &uses->at[i]));
    return etch_mul(sym, etch_some(sym, elsewhere), etch_stage_presence(sym, view, uses));
}

/* ---- all stages ---------------------------------------------------------------------------------------- */

/* On one stage of a bound chain. */
static etch_expr use_on(etch_sym *sym, const etch_stage_view *view, const etch_stage_use *use, uint32_t stage)
{
    const etch_stage_numbers *n = view->numbers;
    const etch_chunk_map map = n->map;
    const etch_bound_interval of = etch_layers_of_position(n, use->position);
    etch_expr sum = etch_int(sym, 0);
    for (uint32_t chunk = 0; chunk < n->chunks; chunk++) {
        const uint64_t model_chunk = etch_model_chunk(map, n->stages, (etch_chunk_place){stage, chunk});
        const etch_bound_interval here = etch_overlap(of, etch_layers_of_chunk(n, model_chunk));
        if (here.end == 0)
            continue;
        const etch_expr low = etch_int(sym, (int64_t)(here.first - of.first));
        const etch_expr high = etch_int(sym, (int64_t)(here.end - of.first));
        const etch_expr times = use->body ? etch_class_count(sym, use->body, low, high) : etch_int(sym, 1);
        sum = etch_add(sym, sum, etch_mul(sym, times, use->runs));
    }
    return sum;
}

/* By formulas the first stage has what is before the loop and its first iteration, and the last one, or the
 * first as well, what is after it and its last: of weights that are shared, both. Of some iterations of a
 * loop it is not known which stages have them: all may. */
static etch_expr users_by_class(etch_sym *sym, const etch_stage_view *view, const etch_stage_uses *uses)
{
    for (uint32_t i = 0; i < uses->count; i++)
        if (etch_position_is_loop(view->stages, uses->at[i].position))
            return view->stage_count;
    return etch_int(sym, view->ends_first && !view->of_first_copy ? 1 : 2);
}

etch_expr etch_stage_users(etch_sym *sym, const etch_stage_view *view, const etch_stage_uses *uses)
{
    etch_expr users = etch_int(sym, 0);
    if (uses->count == 0)
        return etch_int(sym, etch_stage_copies(view->stages));
    if (!view->numbers)
        return users_by_class(sym, view, uses);
    for (uint32_t stage = 0; stage < view->numbers->stages; stage++) {
        etch_expr here = etch_int(sym, 0);
        for (uint32_t i = 0; i < uses->count; i++)
            here = etch_add(sym, here, use_on(sym, view, &uses->at[i], stage));
        users = etch_add(sym, users, etch_some(sym, here));
    }
    return users;
}

/* ---- the first stage ----------------------------------------------------------------------------------- */

/* Uses in iterations from `low` to before `high` of a loop, by those from `from` to before `end`, all of the
 * loop. */
static etch_expr uses_between(etch_sym *sym, const etch_stage_uses *uses, uint32_t from, uint32_t end,
                              etch_expr low, etch_expr high)
{
    etch_expr sum = etch_int(sym, 0);
    for (uint32_t i = from; i < end; i++)
        sum = etch_add(sym, sum,
                       etch_mul(sym, uses->at[i].runs, etch_class_count(sym, uses->at[i].body, low, high)));
    return sum;
}

/* Does the stage have the first of these uses, which are at one position? Nothing uses it before where all
 * iterations do. */
static etch_expr begins_at(etch_sym *sym, const etch_stage_view *view, const etch_stage_uses *uses,
                           uint32_t from, uint32_t end)
{
    const etch_stage_use *first = &uses->at[from];
    const uint32_t segment = etch_position_segment(first->position);
    const etch_expr one = etch_int(sym, 1);
    etch_expr sum = etch_int(sym, 0);
    if (!first->body) {
        const bool is_loop = etch_position_is_loop(view->stages, first->position);
        const etch_position at = is_loop ? etch_position_at(segment, ETCH_FIRST_OF) : first->position;
        return etch_mul(sym, etch_int(sym, etch_stage_holds(view, at)), etch_some(sym, first->runs));
    }
    for (uint32_t i = 0; i < view->ranges[segment].count; i++) {
        const etch_layer_interval *held = &view->ranges[segment].at[i];
        const etch_expr before = uses_between(sym, uses, from, end, etch_int(sym, 0), held->low);
        const etch_expr here = uses_between(sym, uses, from, end, held->low, held->high);
        sum = etch_add(sym, sum,
                       etch_mul(sym, etch_sub(sym, one, etch_some(sym, before)), etch_some(sym, here)));
    }
    return sum;
}

etch_expr etch_stage_begins(etch_sym *sym, const etch_stage_view *view, const etch_stage_uses *uses)
{
    const etch_expr one = etch_int(sym, 1);
    etch_expr before = etch_int(sym, 0), sum = before;
    for (uint32_t from = 0, end; from < uses->count; from = end) {
        for (end = from + 1;
             end < uses->count && uses->at[from].body && uses->at[end].position == uses->at[from].position;)
            end++;
        const etch_expr none = etch_sub(sym, one, etch_some(sym, before));
        if (etch_is_zero(none))
            break;
        sum = etch_add(sym, sum, etch_mul(sym, none, begins_at(sym, view, uses, from, end)));
        for (uint32_t i = from; i < end; i++)
            before = etch_add(sym, before, etch_stage_use_total(sym, &uses->at[i]));
    }
    return sum;
}

/* ---- cuts ---------------------------------------------------------------------------------------------- */

bool etch_stage_use_is_split(const etch_cut *cut, const etch_stage_use *use)
{
    return cut->inside && use->body && use->position == etch_position_at(cut->segment, ETCH_ALL_OF);
}

/* What is on one side of the cut: of the loop that it is in the iterations there. */
static etch_expr on_side(etch_sym *sym, const etch_stages *stages, const etch_cut *cut,
                         const etch_stage_uses *uses, bool later, etch_expr iteration)
{
    const etch_expr zero = etch_int(sym, 0), low = later ? iteration : zero;
    const etch_expr high = later ? stages->segments.at[cut->segment].count : iteration;
    etch_expr sum = zero;
    for (uint32_t i = 0; i < uses->count; i++) {
        const etch_stage_use *use = &uses->at[i];
        const etch_expr amount = etch_stage_use_is_split(cut, use)
                                     ? etch_mul(sym, etch_class_count(sym, use->body, low, high), use->runs)
                                     : etch_stage_use_total(sym, use);
        sum = etch_add(sym, sum, amount);
    }
    return sum;
}

etch_expr etch_crosses(etch_sym *sym, const etch_stages *stages, const etch_cut *cut,
                       const etch_crossing *crossing, bool backward, etch_expr iteration)
{
    etch_expr crosses = etch_int(sym, 1);
    if (!crossing->is_read && crossing->carrying)
        crosses = etch_carried_read(sym, crossing->carrying, crossing->carried, backward, iteration);
    else if (!crossing->is_read)
        crosses = etch_some(sym, on_side(sym, stages, cut, &crossing->reads, !backward, iteration));
    if (!crossing->is_made)
        crosses = etch_mul(sym, crosses,
                           etch_some(sym, on_side(sym, stages, cut, &crossing->makes, backward, iteration)));
    return crosses;
}

etch_expr etch_stage_sends(etch_sym *sym, const etch_stage_view *view, uint32_t cut,
                           const etch_crossing *crossing, bool backward)
{
    const etch_iterations *at = backward ? &view->backward[cut] : &view->forward[cut];
    etch_expr sum = etch_int(sym, 0);
    if (!crossing || (crossing->is_read && crossing->is_made))
        return etch_int(sym, at->count);
    for (uint32_t i = 0; i < at->count; i++)
        sum = etch_add(
            sym, sum,
            etch_crosses(sym, view->stages, &view->stages->cuts.at[cut], crossing, backward, at->at[i]));
    return sum;
}
