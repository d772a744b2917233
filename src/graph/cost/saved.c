/* Values of the forward pass that are saved for the backward pass, of the whole job and of one rank.
 *
 * requires: a training graph, or a placement of it. provides: the values that are read again, each once, with
 * the op that needs it.
 *
 * Nothing is typed in: what an op's gradient reads follows from its row, and so does what is kept. A rank
 * keeps each value as backward reads it, a shard or a copy that forward has gathered: the same value in
 * another placement is other memory. */
#include <stdlib.h>
#include <string.h>

#include "graph/cost/live.h"

/* Of a weight that is gathered one run of the step may find several. */
static etch_expr copies_of(const etch_live_program *p, const etch_live_count *count)
{
    const etch_value *value = p->names[count->name].value;
    const etch_step *step = value ? value->step : NULL;
    for (uint32_t i = 0; step && step->copies && i < step->out_count; i++)
        if (step->outs[i] == value)
            return etch_mul(p->sym, count->times, step->copies[i]);
    return count->times;
}

static etch_saved saved_of(const etch_live_program *p, const etch_live_count *count)
{
    const etch_live_name *name = &p->names[count->name];
    return (etch_saved){
        .tensor = name->tensor,
        .value = name->value,
        .body = name->region->loop ? name->region : NULL,
        .elements = p->placed ? etch_value_elements(p->placed, name->value)
                              : etch_elements(p->sym, name->tensor, etch_size_in_training, p->training),
        .width = etch_dtype_bytes(name->tensor->dtype),
        .times = copies_of(p, count),
        .reader = name->reader,
    };
}

/* ---- their order --------------------------------------------------------------------------------------- */

/* A kept name, and where it stands in the list. */
typedef struct kept {
    etch_live_count count;
    uint32_t layout, tensor;
} kept;

static int by_place(const void *a, const void *b)
{
    const kept *x = a, *y = b;
    const int layout = etch_order(x->layout, y->layout), tensor = etch_order(x->tensor, y->tensor);
    return layout ? layout : tensor ? tensor : etch_order(x->count.name, y->count.name);
}

/* Copies that no loop carries. */
static bool is_unowned(const etch_live_name *name)
{
    return !name->is_carried && name->value->step && name->value->step->collective != ETCH_NO_COLLECTIVE;
}

/* Values that lie alike stand together, in the order in which backward first reads one; copies come last. */
static uint32_t layout_of(const etch_live_program *p, const etch_live_name *name)
{
    uint32_t first = p->read_count + 1;
    if (!p->placed)
        return 0;
    if (is_unowned(name))
        return p->read_count + 1 + name->order;
    const size_t size = p->placed->plan->mesh.count * sizeof *name->value->place;
    for (uint32_t i = 0; i < p->name_count; i++) {
        const etch_live_name *other = &p->names[i];
        if (other->order && other->order < first && !is_unowned(other) &&
            memcmp(other->value->place, name->value->place, size) == 0)
            first = other->order;
    }
    return first;
}

/* The list lives in `arena`. */
static void list_kept(etch_live_program *p, etch_arena *arena, etch_saved_list *out)
{
    etch_live_counts counts = {0};
    ETCH_VEC(kept) all = {0};
    etch_live_kept(p, &counts);
    for (uint32_t i = 0; i < counts.count; i++) {
        const etch_live_name *name = &p->names[counts.at[i].name];
        if (!etch_is_zero(counts.at[i].times))
            ETCH_PUSH(p->arena, &all, (kept){counts.at[i], layout_of(p, name), name->tensor->id});
    }
    if (all.count > 0)
        qsort(all.at, all.count, sizeof *all.at, by_place);
    for (uint32_t i = 0; i < all.count; i++)
        ETCH_PUSH(arena, out, saved_of(p, &all.at[i].count));
}

void etch_graph_saved(const etch_training *training, etch_saved_list *out)
{
    if (training->backward)
        list_kept(etch_live_of_training(training), training->graph->arena, out);
}

const etch_stage_view *etch_view_of_kept(const etch_placed *placed, const etch_stage_view *view,
                                         etch_hold hold, uint32_t chunk)
{
    const bool is_apart = hold == ETCH_HOLD_INPUTS_TO_WEIGHTS || etch_stage_copies(view->stages) > 1;
    return etch_stage_view_chunks(placed, view, is_apart ? chunk : 0, chunk);
}

void etch_placed_saved(const etch_placed *placed, const etch_stage_view *view, etch_hold hold,
                       etch_saved_list *out)
{
    if (!placed->backward)
        return;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    etch_live_program *p = etch_live_of_placed(scratch, placed, view, hold);
    list_kept(p, placed->arena, out);
    if (hold == ETCH_HOLD_INPUTS_TO_WEIGHTS)
        etch_live_waiting_gradients(p, placed->arena, out);
    etch_arena_free(scratch);
}
