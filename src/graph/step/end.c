/* The end of a step, by weight groups: gradients are reduced, their norm is taken, weights are updated, and
 * gathered where ranks update a part of them each. */
#include "graph/step/step_int.h"

typedef struct ending {
    etch_placed *placed;
    const etch_training *training;
    etch_sym *sym;
    etch_arena *arena;
    /* by weight */
    etch_tensor **gradients;
    etch_step_tasks *out;
} ending;

/* ---- what all of it shares ----------------------------------------------------------------------------- */

static etch_step_task *new_task(const ending *e, etch_end_role role, etch_doers doers,
                                const etch_weight_group *group)
{
    etch_step_task *task = ETCH_NEW(e->arena, etch_step_task);
    *task = (etch_step_task){.kind = ETCH_TASK_COMPUTE,
                             .phase = ETCH_OPTIMIZER,
                             .when = ETCH_ONCE_A_STEP,
                             .flop = etch_int(e->sym, 0),
                             .bytes = etch_int(e->sym, 0),
                             .end = role,
                             .doers = doers,
                             .group = group};
    return task;
}

static etch_step_task *new_collective(const ending *e, etch_end_role role, const etch_weight_group *group,
                                      etch_collective collective, uint32_t axes)
{
    const etch_doers doers = !group                           ? ETCH_EVERY_STAGE
                             : role == ETCH_END_REDUCE_SHARED ? ETCH_SHARED_USERS
                                                              : ETCH_ALL_USERS;
    etch_step_task *task = new_task(e, role, doers, group);
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

static etch_expr times(const ending *e, etch_expr elements, uint32_t constant)
{
    return etch_mul(e->sym, elements, etch_int(e->sym, constant));
}

/* `sum` and so many times `amount` (NULL: nothing). */
static etch_expr plus(const ending *e, etch_expr sum, etch_expr often, etch_expr amount)
{
    return amount ? etch_add(e->sym, sum, etch_mul(e->sym, often, amount)) : sum;
}

/* One run of a task is of one group of weights, or of all groups. */
static void contribute(const ending *e, etch_step_task *task, etch_step_contribution c)
{
    etch_expr often = c.copies ? c.copies : etch_int(e->sym, 1);
    if (!task->group && c.group && c.group->body)
        often = etch_mul(e->sym, often, c.group->body->count);
    ETCH_PUSH(e->arena, &task->contributions, c);
    task->flop = plus(e, task->flop, often, c.flop);
    task->bytes = plus(e, task->bytes, often, c.read);
    task->bytes = plus(e, task->bytes, often, c.written);
    task->bytes = plus(e, task->bytes, often, c.payload);
}

static void push(const ending *e, etch_step_task *task)
{
    if (task->contributions.count > 0)
        ETCH_PUSH(e->arena, e->out, task);
}

/* ---- collectives --------------------------------------------------------------------------------------- */

static etch_provenance cause_of(const ending *e, const etch_weight_group *group,
                                const etch_ending_collective *collective)
{
    const bool in_parts = collective->collective != ETCH_ALL_REDUCE;
    return (etch_provenance){collective->collective == ETCH_ALL_GATHER ? ETCH_RULE_UPDATE : ETCH_RULE_REDUCE,
                             .weight_group = group, .every_microbatch = collective->every_microbatch,
                             .line = in_parts ? e->placed->plan->zero.span : (etch_span){0, 0}};
}

/* The collective of the group for this move, made when it is the first of its kind: those from `first` on are
 * the group's, in rising order of axes. */
static etch_step_task *collective_for(const ending *e, uint32_t first, const etch_weight_group *group,
                                      const etch_ending_collective *collective)
{
    uint32_t at = first;
    while (at < e->out->count && e->out->at[at]->axes < collective->axes)
        at++;
    if (at < e->out->count && e->out->at[at]->axes == collective->axes)
        return e->out->at[at];
    const etch_end_role role = collective->collective == ETCH_ALL_GATHER ? ETCH_END_GATHER : ETCH_END_REDUCE;
    etch_step_task *task = new_collective(e, role, group, collective->collective, collective->axes);
    task->when = collective->every_microbatch ? ETCH_EACH_MICROBATCH : ETCH_ONCE_A_STEP;
    task->provenance = cause_of(e, group, collective);
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
        const etch_tensor *weight = group->weights.at[i];
        etch_ending_collective collectives[ETCH_ENDING_COLLECTIVES];
        if (!e->gradients[weight->id])
            continue;
        etch_ending_collectives(e->placed, weight, collectives);
        if (collectives[n].collective == ETCH_NO_COLLECTIVE)
            continue;
        etch_step_contribution c =
            of_weight(e, group, i, etch_row_of_collective(e->training->graph, collectives[n].collective));
        c.payload = collectives[n].bytes;
        contribute(e, collective_for(e, first, group, &collectives[n]), c);
    }
}

/* May more than one stage use weights? What a loop of the chain declares itself is used by one iteration. */
static bool may_be_shared(const ending *e, const etch_positions *uses)
{
    return uses &&
           (uses->count > 1 || (uses->count == 1 && etch_position_is_loop(e->placed->stages, uses->at[0])));
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
    for (uint32_t i = 0; i < group->weights.count; i++) {
        etch_step_contribution c =
            of_weight(e, group, i, etch_row_of_collective(e->training->graph, ETCH_ALL_REDUCE));
        const etch_expr elements = etch_update_elements(e->placed, c.tensor);
        if (!c.gradient)
            continue;
        c.payload = times(e, elements, etch_sync_width(e->training));
        contribute(e, task, c);
    }
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
    etch_step_task *task = new_task(e, ETCH_END_NORM, ETCH_FIRST_USER, NULL);
    for (uint32_t u = 0; u < e->placed->weight_groups.count; u++)
        for (uint32_t i = 0; i < e->placed->weight_groups.at[u]->weights.count; i++) {
            etch_step_contribution c = of_weight(e, e->placed->weight_groups.at[u], i, row);
            const etch_expr elements = etch_update_elements(e->placed, c.tensor);
            if (!c.gradient)
                continue;
            c.flop = times(e, elements, etch_clip_flop(e->training));
            c.read = times(e, elements, etch_clip_bytes(e->training));
            contribute(e, task, c);
        }
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

static void add_update(const ending *e, const etch_weight_group *group)
{
    etch_step_task *task = new_task(e, ETCH_END_UPDATE, ETCH_ALL_USERS, group);
    for (uint32_t i = 0; i < group->weights.count; i++) {
        etch_step_contribution c = of_weight(e, group, i, e->training->train.optimizer.row);
        uint32_t reads;
        if (!c.gradient)
            continue;
        const etch_expr elements = etch_update_elements(e->placed, c.tensor);
        const uint32_t bytes = etch_update_bytes(e->training, c.tensor, &reads);
        c.flop = times(e, elements, etch_update_flop(e->training));
        c.read = times(e, elements, reads);
        c.written = times(e, elements, bytes - reads);
        contribute(e, task, c);
    }
    push(e, task);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

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
    for (uint32_t i = 0; i < count && train->optimizer.row; i++)
        add_update(e, groups[i]);
    for (uint32_t i = 0; i < count; i++)
        add_collectives(e, groups[i], 2);
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
        .out = out,
    };
    add_all(&e);
    etch_arena_free(scratch);
}
