/* What one rank holds, as lists of items. */
#include "graph/kernel_int.h"

typedef struct listing {
    const etch_placed *placed;
    const etch_stage_view *stage; /* NULL: everything is on one stage */
    etch_sym *sym;
    etch_arena *arena;
    etch_cost_list *out;
} listing;

static void push(const listing *l, etch_cost item)
{
    if (!etch_is_zero(item.each) && !etch_is_zero(item.times))
        ETCH_PUSH(l->arena, l->out, item);
}

/* ---- what is kept for backward ----------------------------------------------------------------------------- */

static void list_saved(const listing *l)
{
    etch_saved_list saved = {0};
    etch_placed_saved(l->placed, l->stage, &saved);
    for (uint32_t i = 0; i < saved.count; i++)
        push(l, etch_cost_of_saved(l->sym, ETCH_RANK_SAVED, &saved.at[i]));
}

/* ---- the door ---------------------------------------------------------------------------------------------- */

void etch_placed_memory(const etch_placed *placed, const etch_stage_view *stage, etch_cost_list *out)
{
    const listing l = {
        .placed = placed,
        .stage = placed->stages ? stage : NULL,
        .sym = placed->training->graph->sym,
        .arena = placed->arena,
        .out = out,
    };
    if (placed->backward)
        list_saved(&l);
}
