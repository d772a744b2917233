/* The end of a step, by weight groups: gradients are reduced, their norm is taken, weights are updated, and
 * gathered where ranks update a part of them each. */
#include "graph/step/step_int.h"

#include "graph/ir/row.h"

typedef struct ending {
    etch_placed *placed;
    const etch_training *training;
    etch_sym *sym;
    etch_arena *arena;
    /* by weight */
    etch_tensor **gradients;
    /* by the same: elements that a rank updates, where they have been asked for */
    etch_expr *elements;
    /* by the same: which of the steps of backward is the last that adds to its gradient */
    uint32_t *complete_at;
    etch_step_tasks *out;
} ending;

/* ---- what all of it shares ----------------------------------------------------------------------------- */

static etch_step_task *new_task(const ending *e, etch_end_role role, const etch_weight_group *group)
{
    etch_step_task *task = ETCH_NEW(e->arena, etch_step_task);
    *task = (etch_step_task){.kind = ETCH_TASK_COMPUTE,
                             .phase = ETCH_OPTIMIZER,
                             .when = ETCH_ONCE_A_STEP,
                             .flop = etch_int(e->sym, 0),
                             .bytes = etch_int(e->sym, 0),
                             .end = role,
                             .group = group};
    return task;
}

static etch_step_task *new_collective(const ending *e, etch_end_role role, const etch_weight_group *group,
                                      etch_collective collective, uint32_t axes)
{
    etch_step_task *task = new_task(e, role, group);
    task->kind = ETCH_TASK_COLLECTIVE;
    task->phase = ETCH_SYNC;
    task->collective = collective;
    task->axes = axes;
    return task;
}

/* Weight `i` of a group, with a row and no amounts. */
static etch_step_contribution of_weight(const ending *e, const etch_weight_group *group, uint32_t i,
                                        const etch_row *row)
{
    const etch_tensor *weight = group->weights.at[i];
    return (etch_step_contribution){.tensor = weight,
                                    .gradient = e->gradients[weight->id],
                                    .group = group,
                                    .row = row,
                                    .scope = weight->scope,
                                    .span = weight->span,
                                    .copies = group->copies.at[i]};
}

/* Elements of a weight that a rank updates. */
static etch_expr updated_elements(const ending *e, const etch_tensor *weight)
{
    etch_expr *elements = &e->elements[weight->id];
    if (!*elements)
        *elements = etch_held_elements(e->placed, weight, ETCH_HOLDS_STATES);
    return *elements;
}

/* What is done for one element: FLOP, and bytes. */
typedef struct amounts {
    uint32_t flop, read, written, payload;
} amounts;

static etch_expr times(const ending *e, etch_expr elements, uint32_t constant)
{
    return constant ? etch_mul(e->sym, elements, etch_int(e->sym, constant)) : NULL;
}

/* `sum` and so many times `amount` (NULL: nothing). */
static etch_expr plus(const ending *e, etch_expr sum, etch_expr often, etch_expr amount)
{
    return amount ? etch_add(e->sym, sum, etch_mul(e->sym, often, amount)) : sum;
}

/* Products of matrices of several shapes: no shape is that of the task. */
static void add_products(const ending *e, etch_step_task *task, etch_expr flop)
{
    if (!task->product) {
        task->product = ETCH_NEW(e->arena, etch_kernel_product);
        *task->product = (etch_kernel_product){
            .kind = ETCH_PRODUCT_PLAIN, .dtype = ETCH_BF16, .flop = etch_int(e->sym, 0)};
    }
    task->product->flop = etch_add(e->sym, task->product->flop, flop);
}

/* One run of a task is of one group of weights, or of all groups. */
static void contribute(const ending *e, etch_step_task *task, etch_step_contribution c)
{
    etch_expr often = c.copies ? c.copies : etch_int(e->sym, 1);
    if (!task->group && c.group && c.group->body)
        often = etch_mul(e->sym, often, c.group->body->count);
    ETCH_PUSH(e->arena, &task->contributions, c);
    if (c.product_flop)
        add_products(e, task, etch_mul(e->sym, often, c.product_flop));
    task->flop = plus(e, task->flop, often, c.flop);
    task->bytes = plus(e, task->bytes, often, c.read);
    task->bytes = plus(e, task->bytes, often, c.written);
    task->bytes = plus(e, task->bytes, often, c.payload);
    task->bytes = plus(e, task->bytes, often, c.moved);
}

/* Weight `i` of a group, if it has a gradient: so much for each element that a rank updates. */
static void contribute_weight(const ending *e, etch_step_task *task, const etch_weight_group *group,
                              uint32_t i, const etch_row *row, amounts of_one)
{
    etch_step_contribution c = of_weight(e, group, i, row);
    if (!c.gradient)
        return;
    const etch_expr elements = updated_elements(e, c.tensor);
    c.flop = times(e, elements, of_one.flop);
    c.read = times(e, elements, of_one.read);
    c.written = times(e, elements, of_one.written);
    c.payload = times(e, elements, of_one.payload);
    contribute(e, task, c);
}

static void push(const ending *e, etch_step_task *task)
{
    if (task->contributions.count > 0)
        ETCH_PUSH(e->arena, e->out, task);
}

/* ---- collectives --------------------------------------------------------------------------------------- */

/* A collective that a weight takes part in at the end of a step; none without axes. */
typedef struct ending_collective {
    etch_collective collective;
    uint32_t axes;
    bool every_microbatch;
    /* it takes no other weight */
    bool alone;
    /* the line of the plan that divides the weight; NULL: it is held alike */
    const etch_zero *zero;
} ending_collective;

/* Bytes of an element of a gradient on its way to other ranks. */
static uint32_t sync_width(const ending *e)
{
    const etch_dtypes *dtypes = &e->training->graph->dtypes;
    return etch_dtype_bytes(etch_dtype_or(dtypes->grads_comm, dtypes->grads));
}

/* The n-th of three, in the order in which they happen. Over axes that divide the states, partial gradients
 * become shards, and what is left partial is all-reduced as shards; a gradient that is whole on such an axis
 * is cut without a collective, before anything moves. Where ranks hold gradients in parts, each microbatch
 * adds to the parts. */
static ending_collective nth_collective(const ending *e, const etch_tensor *weight, uint32_t n)
{
    const etch_placed *placed = e->placed;
    const etch_zero *line = etch_zero_of(placed, weight);
    const uint32_t partial = placed->sync_axes[weight->id], zero = placed->zero_axes[weight->id];
    const uint32_t whole = zero & ~etch_zero_divides(placed, weight, ETCH_HOLDS_WEIGHT);
    const bool each = placed->plan->reduce_each;
    ending_collective all[] = {{ETCH_REDUCE_SCATTER, partial & zero,
                                each || etch_zero_divides(placed, weight, ETCH_HOLDS_GRADIENT) != 0,
                                .zero = line},
                               {ETCH_ALL_REDUCE, partial & ~zero, .every_microbatch = each},
                               {ETCH_ALL_GATHER, e->training->train.optimizer.row ? whole : 0, .zero = line}};
    all[n].alone =
        line->by_weight || (placed->plan->bucketing == ETCH_BUCKET_BY_TENSOR && !all[n].every_microbatch);
    return all[n];
}

/* What one rank puts into it, for one copy of the weight. */
static etch_expr payload_of(const ending *e, const etch_tensor *weight, const ending_collective *collective)
{
    const etch_dtype_said said = e->training->graph->dtypes.weights_comm;
    const bool gathers = collective->collective == ETCH_ALL_GATHER;
    const uint32_t width = gathers ? etch_dtype_bytes(etch_dtype_or(said, weight->dtype)) : sync_width(e);
    const etch_expr shard = times(e, updated_elements(e, weight), width);
    return collective->collective == ETCH_REDUCE_SCATTER
               ? etch_mul(e->sym, shard, etch_group_size(e->placed, collective->axes))
               : shard;
}

static etch_provenance cause_of(const etch_weight_group *group, const ending_collective *collective)
{
    return (etch_provenance){collective->collective == ETCH_ALL_GATHER ? ETCH_RULE_UPDATE : ETCH_RULE_REDUCE,
                             .weight_group = group, .every_microbatch = collective->every_microbatch,
                             .line = collective->zero ? collective->zero->span : (etch_span){0, 0}};
}

/* Does the collective belong before one that is there already? They stand in rising order of axes; of those
 * that reduce one gradient each, the one whose gradient is complete first comes first. */
static bool comes_before(const ending *e, const ending_collective *collective, const etch_tensor *weight,
                         const etch_step_task *other)
{
    return collective->axes != other->axes
               ? collective->axes < other->axes
               : collective->alone && collective->collective != ETCH_ALL_GATHER &&
                     e->complete_at[weight->id] < e->complete_at[other->contributions.at[0].tensor->id];
}

/* The collective of the group for this move of a weight, made when it is the first of its kind: those from
 * `first` on are the group's. */
static etch_step_task *collective_for(const ending *e, uint32_t first, const etch_weight_group *group,
                                      const etch_tensor *weight, const ending_collective *collective)
{
    uint32_t at = first;
    for (uint32_t i = first; i < e->out->count && !collective->alone; i++) {
        etch_step_task *other = e->out->at[i];
        const etch_zero *zero = etch_zero_of(e->placed, other->contributions.at[0].tensor);
        if (other->axes == collective->axes && (!collective->zero || collective->zero == zero) &&
            other->provenance.every_microbatch == collective->every_microbatch && !other->alone)
            return other;
    }
    while (at < e->out->count && !comes_before(e, collective, weight, e->out->at[at]))
        at++;
    const etch_end_role role = collective->collective == ETCH_ALL_GATHER ? ETCH_END_GATHER : ETCH_END_REDUCE;
    etch_step_task *task = new_collective(e, role, group, collective->collective, collective->axes);
    task->when = collective->every_microbatch ? ETCH_EACH_MICROBATCH : ETCH_ONCE_A_STEP;
    task->alone = collective->alone;
    task->provenance = cause_of(group, collective);
    ETCH_PUSH(e->arena, e->out, NULL);
    for (uint32_t i = e->out->count - 1; i > at; i--)
        e->out->at[i] = e->out->at[i - 1];
    return e->out->at[at] = task;
}

/* The collectives of a group that are the n-th of a weight: one for each set of axes. */
static void add_collectives(const ending *e, const etch_weight_group *group, uint32_t n)
{
    const uint32_t first = e->out->count;
    for (uint32_t i = 0; i < group->weights.count; i++) {
        const ending_collective collective = nth_collective(e, group->weights.at[i], n);
        etch_step_contribution c =
            of_weight(e, group, i, etch_row_of_collective(e->training->graph, collective.collective));
        if (!c.gradient || !collective.axes)
            continue;
        c.payload = payload_of(e, c.tensor, &collective);
        contribute(e, collective_for(e, first, group, c.tensor, &collective), c);
    }
}

/* May more than one stage use weights? What a loop of the chain declares itself is used by one iteration, and
 * so by one stage, unless the chain is there more than once. */
static bool may_be_shared(const ending *e, const etch_stage_uses *uses)
{
    return uses && (etch_stage_copies(e->placed->stages) > 1 || uses->count > 1 ||
                    (uses->count == 1 && etch_position_is_loop(e->placed->stages, uses->at[0].position)));
}

/* Stages that use the same weights add up their gradients. */
static void add_shared(const ending *e, const etch_weight_group *group)
{
    if (!may_be_shared(e, etch_weight_group_uses(e->placed, group)))
        return;
    etch_step_task *task =
        new_collective(e, ETCH_END_REDUCE_SHARED, group, ETCH_ALL_REDUCE, etch_stage_axes(e->placed));
    task->provenance = (etch_provenance){ETCH_RULE_SHARED_WEIGHT, .weight_group = group,
                                         .line = e->placed->stages->line->span};
    const etch_row *row = etch_row_of_collective(e->training->graph, ETCH_ALL_REDUCE);
    const amounts of_one = {.payload = sync_width(e)};
    for (uint32_t i = 0; i < group->weights.count; i++)
        contribute_weight(e, task, group, i, row, of_one);
    push(e, task);
}

/* ---- the norm ------------------------------------------------------------------------------------------ */

/* Its result: one number. */
static etch_step_contribution of_norm(const ending *e, const etch_row *row)
{
    return (etch_step_contribution){
        .row = row, .scope = e->training->graph->scopes.at[0], .span = e->training->train.span};
}

/* The sum of squares over all gradients of the rank. */
static void add_norm(const ending *e)
{
    const etch_row *row = etch_row_for(e->training->graph, ETCH_USE_NORM);
    etch_step_task *task = new_task(e, ETCH_END_NORM, NULL);
    const amounts of_one = {.flop = etch_clip_flop(e->training),
                            .read = etch_dtype_bytes(e->training->graph->dtypes.grads)};
    for (uint32_t u = 0; u < e->placed->weight_groups.count; u++)
        for (uint32_t i = 0; i < e->placed->weight_groups.at[u]->weights.count; i++)
            contribute_weight(e, task, e->placed->weight_groups.at[u], i, row, of_one);
    etch_step_contribution result = of_norm(e, row);
    result.written = etch_int(e->sym, ETCH_CLIP_RESULT_BYTES);
    contribute(e, task, result);
    push(e, task);
}

static void add_norm_reduce(const ending *e)
{
    if (e->placed->plan->mesh.count == 0)
        return;
    etch_step_task *task = new_collective(e, ETCH_END_NORM_REDUCE, NULL, ETCH_ALL_REDUCE,
                                          (1u << e->placed->plan->mesh.count) - 1);
    task->provenance = (etch_provenance){ETCH_RULE_CLIP, .line = e->training->train.span};
    etch_step_contribution c = of_norm(e, etch_row_of_collective(e->training->graph, ETCH_ALL_REDUCE));
    c.payload = etch_int(e->sym, ETCH_CLIP_RESULT_BYTES);
    contribute(e, task, c);
    push(e, task);
}

/* ---- the optimizer ------------------------------------------------------------------------------------- */

/* The task of the group for a part of an update: those from `first` on are the group's. */
static etch_step_task *update_task(const ending *e, uint32_t first, const etch_weight_group *group,
                                   etch_end_role role, const etch_row *row)
{
    for (uint32_t i = first; i < e->out->count; i++)
        if (e->out->at[i]->contributions.at[0].row == row)
            return e->out->at[i];
    ETCH_PUSH(e->arena, e->out, new_task(e, role, group));
    return e->out->at[e->out->count - 1];
}

/* A part of the update of the weights of a group: a task for each optimizer. */
static void add_update(const ending *e, const etch_weight_group *group, uint32_t part)
{
    static const etch_end_role roles[] = {ETCH_END_PREPARE, ETCH_END_REFINE, ETCH_END_UPDATE};
    const uint32_t first = e->out->count;
    for (uint32_t i = 0; i < group->weights.count; i++) {
        const etch_row *row = etch_update_part(e->training, group->weights.at[i], part);
        etch_step_contribution c = of_weight(e, group, i, row);
        if (!c.gradient || !row)
            continue;
        const etch_update_work work =
            etch_update_of_rank(e->placed, c.tensor, row, updated_elements(e, c.tensor));
        c.flop = work.flop;
        c.product_flop = work.product_flop;
        c.read = work.read;
        c.written = work.written;
        contribute(e, update_task(e, first, group, roles[part], row), c);
    }
}

/* The collective of the group for what ranks share of a weight: those from `first` on are the group's. */
static etch_step_task *share_task(const ending *e, uint32_t first, const etch_weight_group *group,
                                  etch_end_role role, const etch_update_shared *shared)
{
    for (uint32_t i = first; i < e->out->count; i++)
        if (e->out->at[i]->axes == shared->axes && e->out->at[i]->collective == shared->collective)
            return e->out->at[i];
    etch_step_task *task = new_collective(e, role, group, shared->collective, shared->axes);
    task->provenance =
        (etch_provenance){ETCH_RULE_OPTIMIZER, .weight_group = group, .line = e->training->train.span};
    ETCH_PUSH(e->arena, e->out, task);
    return task;
}

/* What ranks share after a part of the update. */
static void add_shares(const ending *e, const etch_weight_group *group, uint32_t part)
{
    static const etch_end_role roles[] = {ETCH_END_SHARE_PREPARED, ETCH_END_SHARE_REFINED};
    const uint32_t first = e->out->count;
    for (uint32_t i = 0; i < group->weights.count; i++) {
        const etch_row *row = etch_update_part(e->training, group->weights.at[i], part);
        if (!row || row->share == ETCH_SHARE_NOTHING)
            continue;
        const etch_tensor *weight = group->weights.at[i];
        const etch_update_shared shared =
            etch_update_shared_of(e->placed, weight, row, updated_elements(e, weight));
        etch_step_contribution c =
            of_weight(e, group, i, etch_row_of_collective(e->training->graph, shared.collective));
        if (!c.gradient || !shared.axes)
            continue;
        c.payload = shared.payload;
        contribute(e, share_task(e, first, group, roles[part], &shared), c);
    }
}

/* Each part of all groups, before the next one begins. */
static void add_parts(const ending *e)
{
    for (uint32_t part = 0; part <= ETCH_LAST_PART; part++) {
        for (uint32_t i = 0; i < e->placed->weight_groups.count; i++)
            add_update(e, e->placed->weight_groups.at[i], part);
        for (uint32_t i = 0; i < e->placed->weight_groups.count && part < ETCH_LAST_PART; i++)
            add_shares(e, e->placed->weight_groups.at[i], part);
    }
}

/* States that are in the memory of the host come for the update of a group, and go back. */
static void add_transfer(const ending *e, const etch_weight_group *group, etch_task_kind kind)
{
    etch_step_task *task = new_task(e, kind == ETCH_TASK_LOAD ? ETCH_END_LOAD : ETCH_END_STORE, group);
    task->kind = kind;
    for (uint32_t i = 0; i < group->weights.count; i++) {
        etch_step_contribution c = of_weight(e, group, i, e->training->train.optimizer.row);
        if (!c.gradient)
            continue;
        c.moved = etch_offloaded_bytes(e->placed, c.tensor);
        if (!etch_is_zero(c.moved))
            contribute(e, task, c);
    }
    push(e, task);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void add_updates(const ending *e)
{
    etch_weight_group *const *groups = e->placed->weight_groups.at;
    const uint32_t count = e->placed->weight_groups.count;
    for (uint32_t i = 0; i < count; i++)
        add_transfer(e, groups[i], ETCH_TASK_LOAD);
    add_parts(e);
    for (uint32_t i = 0; i < count; i++)
        add_transfer(e, groups[i], ETCH_TASK_STORE);
}

static void add_all(const ending *e)
{
    const etch_train *train = &e->training->train;
    etch_weight_group *const *groups = e->placed->weight_groups.at;
    const uint32_t count = e->placed->weight_groups.count;
    for (uint32_t i = count; i-- > 0;) {
        add_collectives(e, groups[i], 0);
        add_collectives(e, groups[i], 1);
    }
    for (uint32_t i = count; i-- > 0;)
        add_shared(e, groups[i]);
    if (train->clip) {
        add_norm(e);
        add_norm_reduce(e);
    }
    if (train->optimizer.row)
        add_updates(e);
    for (uint32_t i = 0; i < count; i++)
        add_collectives(e, groups[i], 2);
}

static uint32_t *find_completion(const etch_placed *placed, etch_arena *arena)
{
    uint32_t *complete_at = ETCH_NEW_ARRAY(arena, placed->training->graph->tensors.count, uint32_t), now = 0;
    for (etch_placed_cursor at = {.root = placed->backward}; etch_placed_cursor_next(&at); now++)
        for (uint32_t k = 0; at.item->step && k < at.item->step->out_count; k++)
            if (at.item->step->accumulate_into[k])
                complete_at[at.item->step->accumulate_into[k]->of->id] = now;
    return complete_at;
}

void etch_step_end(etch_placed *placed, etch_step_tasks *out)
{
    const etch_training *training = placed->training;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    const ending e = {
        .placed = placed,
        .training = training,
        .sym = training->graph->sym,
        .arena = placed->arena,
        .gradients = etch_gradients_by_weight(training, scratch),
        .elements = ETCH_NEW_ARRAY(scratch, training->graph->tensors.count, etch_expr),
        .complete_at = find_completion(placed, scratch),
        .out = out,
    };
    add_all(&e);
    etch_arena_free(scratch);
}
