/* Classes of iterations: a loop has one body for each, and a pattern that says which iteration is of
 * which. */
#include "graph/ir/ir_int.h"

etch_region *etch_loop_add_body(etch_graph *graph, etch_loop *loop, etch_region *parent)
{
    etch_region *body = ETCH_NEW(graph->arena, etch_region);
    body->loop = loop;
    body->parent = parent;
    body->index = loop->bodies.count;
    body->count = loop->count;
    ETCH_PUSH(graph->arena, &loop->bodies, body);
    return body;
}

void etch_loop_set_result(const etch_loop *loop, uint32_t i, etch_tensor *result)
{
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        loop->bodies.at[k]->carries.at[i].result = result;
}

void etch_region_swap_last(etch_region *region)
{
    etch_item *last = &region->items.at[region->items.count - 1], swap = *last;
    last[0] = last[-1];
    last[-1] = swap;
}

void etch_graph_classes(etch_graph *graph, etch_loop *loop, const etch_pattern *pattern)
{
    loop->pattern = loop->bodies.count > 1 ? pattern : NULL;
    for (uint32_t i = 0; i < loop->bodies.count; i++)
        loop->bodies.at[i]->count =
            etch_class_count(graph->sym, loop->bodies.at[i], etch_int(graph->sym, 0), loop->count);
}

etch_expr etch_larger(etch_sym *sym, etch_expr a, etch_expr b)
{
    if (etch_at_least(sym, a, b, NULL) == ETCH_YES)
        return a;
    return etch_at_least(sym, b, a, NULL) == ETCH_YES ? b : etch_max(sym, a, b);
}

etch_expr etch_smaller(etch_sym *sym, etch_expr a, etch_expr b)
{
    if (etch_at_least(sym, a, b, NULL) == ETCH_YES)
        return b;
    return etch_at_least(sym, b, a, NULL) == ETCH_YES ? a : etch_min(sym, a, b);
}

etch_expr etch_some(etch_sym *sym, etch_expr amount)
{
    return etch_is_zero(amount) ? amount : etch_smaller(sym, amount, etch_int(sym, 1));
}

etch_expr etch_additions(etch_sym *sym, const etch_expr *made, uint32_t count)
{
    const etch_expr one = etch_int(sym, 1);
    etch_expr sum = etch_int(sym, -1);
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        sum = etch_add(sym, sum, made[i] ? made[i] : one);
        any = any || made[i];
    }
    return any ? etch_larger(sym, etch_int(sym, 0), sum) : NULL;
}

etch_expr etch_any_made(etch_sym *sym, const etch_expr *made, uint32_t count)
{
    etch_expr sum = etch_int(sym, 0);
    for (uint32_t i = 0; i < count; i++) {
        if (!made[i])
            return NULL;
        sum = etch_add(sym, sum, made[i]);
    }
    return etch_some(sym, sum);
}

/* How many of 0, 1, .. to before `end` are `residue` modulo `period`. */
static etch_expr count_below(etch_sym *sym, etch_expr end, uint32_t residue, uint32_t period)
{
    etch_expr top = etch_add(sym, end, etch_int(sym, (int64_t)period - 1 - residue));
    return etch_floor_div(sym, top, etch_int(sym, period));
}

/* Those from `low` to before `high` that are of a class; `others`: that are of another one. */
static etch_expr count_residues(etch_sym *sym, const etch_pattern *pattern, const uint32_t *class_of,
                                uint32_t class, bool others, etch_expr low, etch_expr high)
{
    etch_expr count = etch_int(sym, 0);
    for (uint32_t r = 0; r < pattern->period; r++) {
        if (class_of[r] == ETCH_NO_CLASS || (class_of[r] == class) == others)
            continue;
        count = etch_add(sym, count, count_below(sym, high, r, pattern->period));
        count = etch_sub(sym, count, count_below(sym, low, r, pattern->period));
    }
    return count;
}

/* The class that most residues of a segment have, of several the last. */
static uint32_t main_class(const etch_pattern *pattern, const uint32_t *class_of)
{
    uint32_t best = ETCH_NO_CLASS, most = 0;
    for (uint32_t i = 0; i < pattern->period; i++) {
        uint32_t members = 0;
        for (uint32_t r = 0; r < pattern->period && class_of[i] != ETCH_NO_CLASS; r++)
            members += class_of[r] == class_of[i];
        if (members > most || (members == most && members > 0 && class_of[i] > best)) {
            best = class_of[i];
            most = members;
        }
    }
    return best;
}

/* Of the iterations from `first` to before `end` of a segment. The main class has those that no other has: so
 * the counts of all classes add up to their number, as formulas. */
static etch_expr count_in_segment(etch_sym *sym, const etch_pattern *pattern, const etch_segment *segment,
                                  uint32_t class, etch_expr first, etch_expr end)
{
    const bool main = main_class(pattern, segment->class_of) == class;
    const etch_expr count = count_residues(sym, pattern, segment->class_of, class, main, first, end);
    return main ? etch_sub(sym, etch_sub(sym, end, first), count) : count;
}

etch_expr etch_class_count(etch_sym *sym, const etch_region *body, etch_expr low, etch_expr high)
{
    const etch_pattern *pattern = body->loop->pattern;
    etch_expr count = etch_int(sym, 0);
    if (!pattern)
        return etch_sub(sym, high, low);
    for (uint32_t i = 0; i < pattern->segments.count; i++) {
        const etch_segment *segment = &pattern->segments.at[i];
        const etch_expr first = etch_larger(sym, segment->first, low);
        const etch_expr end = etch_larger(sym, etch_smaller(sym, segment->end, high), first);
        count = etch_add(sym, count, count_in_segment(sym, pattern, segment, body->index, first, end));
    }
    return count;
}

/* Where in an interval an iteration is, or would be: how many of those of the interval come before it. */
static etch_expr place_in(etch_sym *sym, const etch_loop *loop, etch_expr low, etch_expr size,
                          etch_expr iteration)
{
    const etch_expr zero = etch_int(sym, 0);
    if (etch_is_zero(iteration))
        return zero;
    return iteration == loop->count
               ? size
               : etch_smaller(sym, size, etch_larger(sym, etch_sub(sym, iteration, low), zero));
}

etch_expr etch_class_share(etch_sym *sym, const etch_region *body, etch_expr low, etch_expr size)
{
    const etch_loop *loop = body->loop;
    etch_expr count = etch_int(sym, 0);
    if (!loop->pattern)
        return size;
    for (uint32_t i = 0; i < loop->pattern->segments.count; i++) {
        const etch_segment *segment = &loop->pattern->segments.at[i];
        const etch_expr first = place_in(sym, loop, low, size, segment->first);
        etch_expr end = place_in(sym, loop, low, size, segment->end);
        if (etch_at_least(sym, segment->end, segment->first, NULL) != ETCH_YES)
            end = etch_larger(sym, end, first);
        count = etch_add(sym, count,
                         count_in_segment(sym, loop->pattern, segment, body->index, etch_add(sym, low, first),
                                          etch_add(sym, low, end)));
    }
    return count;
}

/* ---- loops of the derived passes ----------------------------------------------------------------------- */

/* The body that this one reverses or repeats. */
const etch_region *etch_forward_body(const etch_region *body)
{
    if (body->loop->forward)
        body = body->loop->forward->bodies.at[body->index];
    return body->loop->repeats ? body->loop->repeats->bodies.at[body->index] : body;
}

const etch_region *etch_body_around(const etch_tensor *tensor)
{
    return tensor->region && tensor->region->loop ? tensor->region : NULL;
}

etch_expr etch_runs_in(etch_sym *sym, const etch_region *region, const etch_region *around)
{
    etch_expr runs = etch_int(sym, 1);
    for (; region && region != around; region = region->parent)
        if (region->loop)
            runs = etch_mul(sym, runs, region->count);
    return runs;
}

etch_expr etch_copies_in_group(etch_sym *sym, const etch_tensor *weight)
{
    etch_expr copies = etch_int(sym, 1);
    for (const etch_region *r = weight->region; r && r->loop && r->parent->loop; r = r->parent)
        copies = etch_mul(sym, copies, r->count);
    return copies;
}

etch_phase etch_loop_phase(const etch_loop *loop)
{
    return loop->forward ? ETCH_BACKWARD : loop->repeats ? ETCH_RECOMPUTE : ETCH_FORWARD;
}
