/* The end of a step: reduction of gradients, clipping norm, optimizer, gathering of weights, by weight
 * groups. */
#include "graph/step/step_int.h"

/* ---- one element --------------------------------------------------------------------------------------- */

uint32_t etch_update_flop(const etch_training *training)
{
    const etch_row *row = training->train.optimizer.row;
    return row ? row->flop : 0;
}

uint32_t etch_master_bytes(const etch_training *training)
{
    const etch_dtypes *dtypes = &training->graph->dtypes;
    const etch_optimizer *optimizer = &training->train.optimizer;
    return (optimizer->master ? etch_dtype_bytes(etch_dtype_or(dtypes->master, dtypes->optim)) : 0) +
           (optimizer->main_grads ? etch_dtype_bytes(dtypes->optim) : 0);
}

uint32_t etch_moment_bytes(const etch_training *training)
{
    const etch_dtypes *dtypes = &training->graph->dtypes;
    const etch_row *row = training->train.optimizer.row;
    return row ? row->states * etch_dtype_bytes(etch_dtype_or(dtypes->moments, dtypes->optim)) : 0;
}

/* Reads the gradient, the weight (its master copy when there is one) and what the optimizer keeps; writes all
 * but the gradient back, and the weight as well when it has a master copy. A copy of the gradient is written
 * and read besides. */
uint32_t etch_update_bytes(const etch_training *training, const etch_tensor *weight, uint32_t *reads)
{
    const etch_row *row = training->train.optimizer.row;
    if (reads)
        *reads = 0;
    if (!row)
        return 0;
    uint32_t gradient = etch_dtype_bytes(training->graph->dtypes.grads);
    const etch_dtypes *dtypes = &training->graph->dtypes;
    uint32_t main_grad = training->train.optimizer.main_grads ? etch_dtype_bytes(dtypes->optim) : 0;
    uint32_t moments = etch_moment_bytes(training) + main_grad;
    uint32_t copy = etch_dtype_bytes(etch_dtype_or(dtypes->master, dtypes->optim));
    uint32_t own = etch_dtype_bytes(weight->dtype);
    bool master = training->train.optimizer.master;
    uint32_t read = gradient + (master ? copy : own) + moments;
    uint32_t written = own + (master ? copy : 0) + moments;
    if (reads)
        *reads = read;
    return read + written;
}

uint32_t etch_sync_width(const etch_training *training)
{
    const etch_dtypes *dtypes = &training->graph->dtypes;
    return etch_dtype_bytes(etch_dtype_or(dtypes->grads_comm, dtypes->grads));
}

uint32_t etch_clip_flop(const etch_training *training)
{
    return etch_row_for(training->graph, ETCH_USE_NORM)->flop;
}

uint32_t etch_clip_bytes(const etch_training *training)
{
    return etch_dtype_bytes(training->graph->dtypes.grads);
}

/* ---- one weight ---------------------------------------------------------------------------------------- */

etch_expr etch_update_elements(const etch_placed *placed, const etch_tensor *weight)
{
    return etch_held_elements(placed, weight, ETCH_HOLDS_STATES);
}

/* Over axes that divide the states, partial gradients become shards, and what is left partial is all-reduced
 * as shards; a gradient that is whole on such an axis is cut without a collective, before anything moves.
 * Where ranks hold gradients in parts, each microbatch adds to the parts. */
void etch_ending_collectives(const etch_placed *placed, const etch_tensor *weight,
                             etch_ending_collective collectives[ETCH_ENDING_COLLECTIVES])
{
    const etch_training *training = placed->training;
    etch_sym *sym = training->graph->sym;
    const uint32_t partial = placed->sync_axes[weight->id], zero = placed->zero_axes[weight->id];
    const etch_expr shard = etch_update_elements(placed, weight);
    const etch_dtype_said gathered = training->graph->dtypes.weights_comm;
    etch_expr of_gradient = etch_mul(sym, shard, etch_int(sym, etch_sync_width(training)));
    etch_expr of_weight =
        etch_mul(sym, shard, etch_int(sym, etch_dtype_bytes(etch_dtype_or(gathered, weight->dtype))));
    const bool each = placed->plan->reduce_each;
    const uint32_t whole = zero & ~etch_zero_divides(placed, weight, ETCH_HOLDS_WEIGHT);
    collectives[0] = (etch_ending_collective){
        .collective = ETCH_REDUCE_SCATTER,
        .axes = partial & zero,
        .every_microbatch = each || etch_zero_divides(placed, weight, ETCH_HOLDS_GRADIENT) != 0,
        .bytes = etch_mul(sym, of_gradient, etch_group_size(placed, partial & zero))};
    collectives[1] = (etch_ending_collective){.collective = ETCH_ALL_REDUCE,
                                              .axes = partial & ~zero,
                                              .every_microbatch = each,
                                              .bytes = of_gradient};
    collectives[2] = (etch_ending_collective){
        .collective = ETCH_ALL_GATHER, .axes = training->train.optimizer.row ? whole : 0, .bytes = of_weight};
    for (uint32_t i = 0; i < ETCH_ENDING_COLLECTIVES; i++)
        if (!collectives[i].axes)
            collectives[i].collective = ETCH_NO_COLLECTIVE;
}

/* ---- weight groups ------------------------------------------------------------------------------------- */

etch_tensor **etch_gradients_by_weight(const etch_training *training, etch_arena *arena)
{
    const etch_graph *graph = training->graph;
    etch_tensor **by_id = ETCH_NEW_ARRAY(arena, graph->tensors.count, etch_tensor *);
    for (uint32_t i = 0; i < training->gradients.count; i++)
        by_id[graph->weights.at[i]->id] = training->gradients.at[i];
    return by_id;
}

typedef struct ending {
    etch_placed *placed;
    const etch_training *training;
    etch_sym *sym;
    etch_arena *arena;
    /* by weight */
    etch_tensor **gradients;
} ending;

/* Elements of the i-th weight of a weight group that a rank updates, all copies. */
static etch_expr group_elements(const ending *e, const etch_weight_group *weight_group, uint32_t i)
{
    return etch_mul(e->sym, weight_group->copies.at[i],
                    etch_update_elements(e->placed, weight_group->weights.at[i]));
}

static etch_expr times(const ending *e, etch_expr elements, uint32_t constant)
{
    return etch_mul(e->sym, elements, etch_int(e->sym, constant));
}

/* The bucket of the weight group for this move, made when it is the first of its kind: those from `first` on
 * are the weight group's, in rising order of axes. */
static etch_bucket *bucket_for(const ending *e, etch_buckets *list, uint32_t first,
                               etch_weight_group *weight_group, const etch_ending_collective *collective)
{
    uint32_t at = first;
    while (at < list->count && list->at[at].axes < collective->axes)
        at++;
    if (at < list->count && list->at[at].axes == collective->axes)
        return &list->at[at];
    ETCH_PUSH(e->arena, list, (etch_bucket){0});
    for (uint32_t i = list->count - 1; i > at; i--)
        list->at[i] = list->at[i - 1];
    list->at[at] = (etch_bucket){.weight_group = weight_group,
                                 .collective = collective->collective,
                                 .axes = collective->axes,
                                 .every_microbatch = collective->every_microbatch,
                                 .bytes = etch_int(e->sym, 0)};
    return &list->at[at];
}

/* The collectives of a weight group that are the n-th of a weight: one for each set of axes. */
static void add_buckets(const ending *e, etch_weight_group *weight_group, uint32_t n, etch_buckets *list)
{
    const uint32_t first = list->count;
    for (uint32_t i = 0; i < weight_group->weights.count; i++) {
        const etch_tensor *weight = weight_group->weights.at[i];
        etch_ending_collective collectives[ETCH_ENDING_COLLECTIVES];
        if (!e->gradients[weight->id])
            continue;
        etch_ending_collectives(e->placed, weight, collectives);
        if (collectives[n].collective == ETCH_NO_COLLECTIVE)
            continue;
        etch_bucket *bucket = bucket_for(e, list, first, weight_group, &collectives[n]);
        ETCH_PUSH(e->arena, &bucket->gradients, e->gradients[weight->id]);
        bucket->bytes = etch_add(e->sym, bucket->bytes,
                                 etch_mul(e->sym, weight_group->copies.at[i], collectives[n].bytes));
    }
}

static void add_update(const ending *e, etch_weight_group *weight_group)
{
    etch_update update = {
        .weight_group = weight_group, .flop = etch_int(e->sym, 0), .bytes = etch_int(e->sym, 0)};
    for (uint32_t i = 0; i < weight_group->weights.count; i++) {
        const etch_tensor *weight = weight_group->weights.at[i];
        if (!e->gradients[weight->id])
            continue;
        etch_expr elements = group_elements(e, weight_group, i);
        ETCH_PUSH(e->placed->arena, &update.gradients, e->gradients[weight->id]);
        update.flop = etch_add(e->sym, update.flop, times(e, elements, etch_update_flop(e->training)));
        update.bytes =
            etch_add(e->sym, update.bytes, times(e, elements, etch_update_bytes(e->training, weight, NULL)));
    }
    if (update.gradients.count > 0)
        ETCH_PUSH(e->placed->arena, &e->placed->updates, update);
}

/* The sum of squares of a weight group's gradients. */
static void add_norm(const ending *e, etch_weight_group *weight_group)
{
    etch_update norm = {.weight_group = weight_group};
    etch_expr elements = etch_int(e->sym, 0);
    for (uint32_t i = 0; i < weight_group->weights.count; i++) {
        etch_tensor *gradient = e->gradients[weight_group->weights.at[i]->id];
        if (!gradient)
            continue;
        elements = etch_add(e->sym, elements, group_elements(e, weight_group, i));
        ETCH_PUSH(e->arena, &norm.gradients, gradient);
    }
    norm.flop = times(e, elements, etch_clip_flop(e->training));
    norm.bytes = times(e, elements, etch_clip_bytes(e->training));
    if (norm.gradients.count > 0)
        ETCH_PUSH(e->arena, &e->placed->norms, norm);
}

/* May more than one stage use weights? What a loop of the chain declares itself is used by one iteration. */
static bool may_be_shared(const ending *e, const etch_positions *uses)
{
    return uses &&
           (uses->count > 1 || (uses->count == 1 && etch_position_is_loop(e->placed->stages, uses->at[0])));
}

/* Stages that use the same weights add up their gradients. */
static void add_shared_reduction(const ending *e, etch_weight_group *weight_group)
{
    const etch_positions *uses = etch_weight_group_uses(e->placed, weight_group);
    const uint32_t width = etch_sync_width(e->training);
    if (!may_be_shared(e, uses))
        return;
    etch_bucket shared_reduction = {.weight_group = weight_group,
                                    .collective = ETCH_ALL_REDUCE,
                                    .axes = etch_stage_axes(e->placed),
                                    .bytes = etch_int(e->sym, 0)};
    for (uint32_t i = 0; i < weight_group->weights.count; i++) {
        etch_tensor *gradient = e->gradients[weight_group->weights.at[i]->id];
        if (!gradient)
            continue;
        ETCH_PUSH(e->arena, &shared_reduction.gradients, gradient);
        shared_reduction.bytes =
            etch_add(e->sym, shared_reduction.bytes, times(e, group_elements(e, weight_group, i), width));
    }
    if (shared_reduction.gradients.count > 0)
        ETCH_PUSH(e->arena, &e->placed->shared_reductions, shared_reduction);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void add_all(const ending *e)
{
    etch_placed *placed = e->placed;
    const etch_train *train = &e->training->train;
    for (uint32_t i = placed->weight_groups.count; i-- > 0;) {
        add_buckets(e, placed->weight_groups.at[i], 0, &placed->buckets);
        add_buckets(e, placed->weight_groups.at[i], 1, &placed->buckets);
        add_shared_reduction(e, placed->weight_groups.at[i]);
    }
    for (uint32_t i = 0; i < placed->weight_groups.count; i++) {
        if (train->clip)
            add_norm(e, placed->weight_groups.at[i]);
        if (train->optimizer.row)
            add_update(e, placed->weight_groups.at[i]);
    }
    for (uint32_t i = 0; i < placed->weight_groups.count; i++)
        add_buckets(e, placed->weight_groups.at[i], 2, &placed->gathers);
}

void etch_updates(etch_placed *placed)
{
    const etch_training *training = placed->training;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    ending e = {
        .placed = placed,
        .training = training,
        .sym = training->graph->sym,
        .arena = placed->arena,
        .gradients = etch_gradients_by_weight(training, scratch),
    };
    etch_placed_weight_groups(placed);
    add_all(&e);
    etch_arena_free(scratch);
}
