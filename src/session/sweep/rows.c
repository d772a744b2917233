/* Rows that are kept: the best, those that no other is better than, and those that a table waits for. Of rows
 * that are equally good, the first comes first. */
#include "session/sweep/sweep_int.h"

#include <stdlib.h>
#include <string.h>

bool etch_sweep_streams(const etch_sweep *sweep)
{
    return !sweep->request.has_best && sweep->request.pareto.count == 0 &&
           sweep->options->format != ETCH_SWEEP_TABLE && !sweep->options->plot;
}

static void copy_exacts(etch_arena *arena, etch_exact *to, const etch_exact *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        to[i] = from[i];
        to[i].text = etch_copy_string(arena, from[i].text);
    }
}

/* A row of its own, in the place of one that is no longer kept. */
static etch_kept_row keep(etch_sweep *sweep, const etch_kept_row *row)
{
    etch_arena *arena = sweep->arena;
    etch_kept_row own = {0};
    if (sweep->spare.count > 0) {
        own = sweep->spare.at[--sweep->spare.count];
    } else {
        own.values = ETCH_NEW_ARRAY(arena, sweep->columns.count, etch_exact);
        own.results = ETCH_NEW_ARRAY(arena, sweep->request.exprs.count, etch_exact);
    }
    own.row = row->row;
    own.frame = row->frame;
    copy_exacts(arena, own.values, row->values, row->frame->axis_count);
    copy_exacts(arena, own.results, row->results, sweep->request.exprs.count);
    return own;
}

/* ---- the best ------------------------------------------------------------------------------------------ */

static int compare_best(const etch_sweep *sweep, const etch_kept_row *a, const etch_kept_row *b)
{
    const uint32_t k = sweep->request.best;
    const int order = etch_exact_compare(sweep->arena, a->results[k], b->results[k]);
    return order ? order : etch_order(a->row, b->row);
}

/* The kept rows are in order. */
static bool take_best(etch_sweep *sweep, const etch_kept_row *row)
{
    uint32_t low = 0, high = sweep->kept.count;
    if (high == sweep->request.top) {
        if (compare_best(sweep, row, &sweep->kept.at[high - 1]) >= 0)
            return false;
        ETCH_PUSH(sweep->arena, &sweep->spare, sweep->kept.at[--sweep->kept.count]);
        high--;
    }
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (compare_best(sweep, row, &sweep->kept.at[middle]) < 0)
            high = middle;
        else
            low = middle + 1;
    }
    const etch_kept_row own = keep(sweep, row);
    ETCH_PUSH(sweep->arena, &sweep->kept, own);
    memmove(&sweep->kept.at[low + 1], &sweep->kept.at[low],
            (sweep->kept.count - 1 - low) * sizeof *sweep->kept.at);
    sweep->kept.at[low] = own;
    return true;
}

/* ---- the front ----------------------------------------------------------------------------------------- */

/* Is one at least as good in all, and better in one? */
static bool is_better(const etch_sweep *sweep, const etch_kept_row *a, const etch_kept_row *b)
{
    bool better = false;
    for (uint32_t i = 0; i < sweep->request.pareto.count; i++) {
        const uint32_t k = sweep->request.pareto.at[i];
        const int order = etch_exact_compare(sweep->arena, a->results[k], b->results[k]);
        if (order > 0)
            return false;
        better = better || order < 0;
    }
    return better;
}

static bool take_front(etch_sweep *sweep, const etch_kept_row *row)
{
    for (uint32_t i = 0; i < sweep->kept.count; i++)
        if (is_better(sweep, &sweep->kept.at[i], row))
            return false;
    uint32_t left = 0;
    for (uint32_t i = 0; i < sweep->kept.count; i++)
        if (is_better(sweep, row, &sweep->kept.at[i]))
            ETCH_PUSH(sweep->arena, &sweep->spare, sweep->kept.at[i]);
        else
            sweep->kept.at[left++] = sweep->kept.at[i];
    sweep->kept.count = left;
    const etch_kept_row own = keep(sweep, row);
    ETCH_PUSH(sweep->arena, &sweep->kept, own);
    return true;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

bool etch_rows_offer(etch_sweep *sweep, const etch_kept_row *row)
{
    if (sweep->request.has_best)
        return take_best(sweep, row);
    if (sweep->request.pareto.count > 0)
        return take_front(sweep, row);
    const etch_kept_row own = keep(sweep, row);
    ETCH_PUSH(sweep->arena, &sweep->kept, own);
    return true;
}
