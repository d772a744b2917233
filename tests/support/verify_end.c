/* The verifier of weight groups and of the end of a step: each gradient is reduced where it is partial, then
 * counted in the norm, then its weight is updated and gathered. */
#include "verify_int.h"

/* What the end of a step does with one weight. */
typedef struct weight_end {
    etch_tensor *gradient; /* NULL: it is not trained, or no op of the model reads it */
    const etch_weight_group *group;
    uint32_t place;             /* in the order of the groups, from 1 */
    uint32_t adds;              /* of the training graph, to its gradient */
    uint32_t reduced, gathered; /* axes */
    uint32_t shared, norms, updates, loads, stores;
    uint32_t parts;   /* of its update before the last one */
    uint32_t told;    /* axes over whose ranks something is shared after the first of these */
    etch_expr loaded; /* bytes */
} weight_end;

typedef struct ending {
    verifying *v;
    weight_end *of; /* by tensor id */
} ending;

/* ---- the training graph -------------------------------------------------------------------------------- */

static void note_op(const ending *e, const etch_op *op)
{
    const etch_training *training = e->v->placed->training;
    for (uint32_t i = 0; i < op->in_count; i++)
        for (uint32_t k = 0; op->ins[i]->kind == ETCH_WEIGHT && k < training->gradients.count; k++)
            if (training->graph->weights.at[k] == op->ins[i])
                e->of[op->ins[i]->id].gradient = training->gradients.at[k];
    for (uint32_t i = 0; i < op->out_count; i++)
        if (op->outs[i]->adds_to)
            e->of[op->outs[i]->adds_to->of->id].adds++;
}

/* Which weights are trained, and how often backward adds to their gradients. Goes as deep as loops are
 * nested. */
static void note_region(const ending *e, const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            note_region(e, loop->bodies.at[k]);
        if (!loop)
            note_op(e, region->items.at[i].op);
    }
}

/* ---- weight groups ------------------------------------------------------------------------------------- */

/* The iterations of the outermost loop around a weight; NULL: it is in none. `*copies`: how often one of them
 * has it. */
static const etch_region *outermost_body(const verifying *v, const etch_tensor *weight, etch_expr *copies)
{
    const etch_region *outermost = NULL;
    *copies = etch_int(v->sym, 1);
    for (const etch_region *r = weight->region; r; r = r->parent) {
        if (!r->loop)
            continue;
        if (outermost)
            *copies = etch_mul(v->sym, *copies, outermost->count);
        outermost = r;
    }
    return outermost;
}

static bool same_uses(const verifying *v, const etch_tensor *a, const etch_tensor *b)
{
    const etch_stages *stages = v->placed->stages;
    if (!stages)
        return true;
    const etch_stage_uses *left = &stages->uses[a->id], *right = &stages->uses[b->id];
    for (uint32_t i = 0; i < left->count && i < right->count; i++)
        if (left->at[i].position != right->at[i].position || left->at[i].body != right->at[i].body ||
            left->at[i].runs != right->at[i].runs)
            return false;
    return left->count == right->count;
}

static bool check_member(const ending *e, const etch_weight_group *group, uint32_t i, uint32_t place)
{
    verifying *v = e->v;
    const etch_tensor *weight = group->weights.at[i];
    weight_end *end = &e->of[weight->id];
    etch_expr copies;
    const etch_region *body = outermost_body(v, weight, &copies);
    if (weight->kind != ETCH_WEIGHT)
        return verify_wrong(v, "weight group %u has %s, which is no weight", (unsigned)group->id,
                            weight->name);
    if (end->group)
        return verify_wrong(v, "weight %s is in weight groups %u and %u", weight->name,
                            (unsigned)end->group->id, (unsigned)group->id);
    if (group->body && (group->body != body || group->loop != body->loop))
        return verify_wrong(v, "weight %s is in weight group %u of another loop", weight->name,
                            (unsigned)group->id);
    if (!group->body && body)
        return verify_wrong(v, "weight %s of a loop is in weight group %u of none", weight->name,
                            (unsigned)group->id);
    if (!verify_same(v, copies, group->copies.at[i]))
        return verify_wrong(v, "weight %s is not as often in its weight group as in its loops", weight->name);
    if (!same_uses(v, weight, group->weights.at[0]))
        return verify_wrong(v, "weight %s is used by other stages than its weight group", weight->name);
    end->group = group;
    end->place = place;
    return true;
}

static bool check_groups(const ending *e)
{
    verifying *v = e->v;
    const etch_training *training = v->placed->training;
    uint32_t place = 0;
    for (uint32_t g = 0; g < v->placed->weight_groups.count; g++) {
        const etch_weight_group *group = v->placed->weight_groups.at[g];
        if (group->id != g)
            return verify_wrong(v, "weight group %u is not in its place", (unsigned)g);
        for (uint32_t i = 0; i < group->weights.count; i++)
            if (!check_member(e, group, i, ++place))
                return false;
    }
    for (uint32_t i = 0; i < training->gradients.count; i++) {
        const etch_tensor *weight = training->graph->weights.at[i];
        const weight_end *end = &e->of[weight->id];
        if (end->gradient && !end->group)
            return verify_wrong(v, "weight %s is in no weight group", weight->name);
        if (end->gradient && v->adds[end->gradient->id] != end->adds)
            return verify_wrong(v, "%u steps add to the gradient of %s, and %u in the training graph",
                                (unsigned)v->adds[end->gradient->id], weight->name, (unsigned)end->adds);
    }
    return true;
}

/* ---- tasks of the end ---------------------------------------------------------------------------------- */

static bool check_end_task(const ending *e, const etch_step_task *task)
{
    verifying *v = e->v;
    const bool computes = task->end == ETCH_END_NORM || task->end == ETCH_END_UPDATE ||
                          task->end == ETCH_END_PREPARE || task->end == ETCH_END_REFINE;
    const bool loads = task->end == ETCH_END_LOAD, stores = task->end == ETCH_END_STORE;
    const etch_task_kind kind = computes ? ETCH_TASK_COMPUTE
                                : loads  ? ETCH_TASK_LOAD
                                : stores ? ETCH_TASK_STORE
                                         : ETCH_TASK_COLLECTIVE;
    const bool of_all = task->end == ETCH_END_NORM || task->end == ETCH_END_NORM_REDUCE;
    if (task->end == ETCH_END_NONE || task->kernel)
        return verify_wrong(v, "%s is among the tasks of the end", verify_task_name(v, task));
    if (task->kind != kind || task->phase != (kind == ETCH_TASK_COLLECTIVE ? ETCH_SYNC : ETCH_OPTIMIZER))
        return verify_wrong(v, "%s is of the wrong kind or phase", verify_task_name(v, task));
    if (of_all != !task->group)
        return verify_wrong(v, "%s is of the wrong weight group", verify_task_name(v, task));
    if (task->when == ETCH_FIRST_MICROBATCH ||
        (task->when == ETCH_EACH_MICROBATCH && task->end != ETCH_END_REDUCE))
        return verify_wrong(v, "%s does not wait for the last microbatch", verify_task_name(v, task));
    return verify_task(v, task);
}

/* ---- one weight in a task ------------------------------------------------------------------------------ */

/* Is the gradient of the weight reduced in each microbatch by this collective? What ranks hold in parts is;
 * what they hold whole only where the plan says so. */
static bool is_reduced_each(const verifying *v, const etch_step_task *task)
{
    const etch_zero *zero = etch_zero_of(v->placed, task->contributions.at[0].tensor);
    const bool in_parts = zero->level >= 2 && !zero->whole;
    return v->placed->plan->reduce_each || (task->collective == ETCH_REDUCE_SCATTER && in_parts);
}

/* Axes that divide the states are scattered over first, the others are reduced over then. */
static bool check_reduction(const ending *e, const etch_step_task *task, const etch_step_contribution *c)
{
    verifying *v = e->v;
    weight_end *end = &e->of[c->tensor->id];
    const uint32_t divided = v->placed->zero_axes[c->tensor->id];
    const bool scatters = task->collective == ETCH_REDUCE_SCATTER;
    if (task->axes & end->reduced)
        return verify_wrong(v, "the gradient of %s is reduced twice over %s", c->tensor->name,
                            etch_axes_label(v->placed, task->axes & end->reduced));
    if (scatters ? task->axes & ~divided : task->axes & divided)
        return verify_wrong(v, "the gradient of %s is %s over %s", c->tensor->name,
                            scatters ? "scattered" : "reduced whole", etch_axes_label(v->placed, task->axes));
    if (scatters && end->reduced)
        return verify_wrong(v, "the gradient of %s is scattered after it was reduced", c->tensor->name);
    if ((task->when == ETCH_EACH_MICROBATCH) != is_reduced_each(v, task))
        return verify_wrong(v, "%s of %s is %s", verify_task_name(v, task), c->tensor->name,
                            task->when == ETCH_EACH_MICROBATCH ? "in each microbatch" : "once in a step");
    end->reduced |= task->axes;
    return true;
}

static bool note_contribution(const ending *e, const etch_step_task *task, const etch_step_contribution *c)
{
    weight_end *end = &e->of[c->tensor->id];
    switch (task->end) {
    case ETCH_END_REDUCE:
        return check_reduction(e, task, c);
    case ETCH_END_REDUCE_SHARED:
        end->shared++;
        return true;
    case ETCH_END_NORM:
        end->norms++;
        return true;
    case ETCH_END_UPDATE:
        end->updates++;
        return true;
    case ETCH_END_LOAD:
        end->loads++;
        end->loaded = c->moved;
        return true;
    case ETCH_END_STORE:
        end->stores++;
        return verify_same(e->v, c->moved, end->loaded) ||
               verify_wrong(e->v, "of %s other bytes are stored than are loaded", c->tensor->name);
    case ETCH_END_PREPARE:
    case ETCH_END_REFINE:
        end->parts++;
        return true;
    case ETCH_END_SHARE_PREPARED:
    case ETCH_END_SHARE_REFINED:
        end->told |= task->axes;
        return end->parts > 0 || verify_wrong(e->v, "nothing of %s is there to be shared", c->tensor->name);
    default:
        end->gathered |= task->axes;
        return true;
    }
}

static bool check_contribution(const ending *e, const etch_step_task *task, const etch_step_contribution *c,
                               uint32_t *place)
{
    verifying *v = e->v;
    const weight_end *end = &e->of[c->tensor->id];
    if (!end->gradient || c->gradient != end->gradient)
        return verify_wrong(v, "%s names %s, which has another gradient or none", verify_task_name(v, task),
                            c->tensor->name);
    if (c->group != end->group || (task->group && task->group != c->group))
        return verify_wrong(v, "%s names %s, which is of another weight group", verify_task_name(v, task),
                            c->tensor->name);
    if (end->place <= *place)
        return verify_wrong(v, "%s names %s out of the order of its weight group", verify_task_name(v, task),
                            c->tensor->name);
    etch_expr copies;
    outermost_body(v, c->tensor, &copies);
    if (!c->copies || !verify_same(v, c->copies, copies))
        return verify_wrong(v, "%s does not count the copies of %s", verify_task_name(v, task),
                            c->tensor->name);
    *place = end->place;
    return note_contribution(e, task, c);
}

/* What is of no weight, the result of the norm, comes last. */
static bool check_contributions(const ending *e, const etch_step_task *task)
{
    const bool of_all = !task->group;
    uint32_t place = 0, others = 0;
    for (uint32_t i = 0; i < task->contributions.count; i++) {
        const etch_step_contribution *c = &task->contributions.at[i];
        if (c->tensor ? others || !check_contribution(e, task, c, &place) : !of_all)
            return verify_wrong(e->v, "%s has a contribution out of place", verify_task_name(e->v, task));
        others += !c->tensor;
    }
    return others == of_all ||
           verify_wrong(e->v, "%s has %u results", verify_task_name(e->v, task), (unsigned)others);
}

/* Reductions, the norm, updates, gathers. */
static bool check_tasks(const ending *e)
{
    verifying *v = e->v;
    const etch_step_tasks *tasks = &v->program->end;
    for (uint32_t i = 0; i < tasks->count; i++) {
        if (i > 0 && tasks->at[i]->end < tasks->at[i - 1]->end)
            return verify_wrong(v, "%s comes before %s", verify_task_name(v, tasks->at[i - 1]),
                                verify_task_name(v, tasks->at[i]));
        if (!check_end_task(e, tasks->at[i]) || !check_contributions(e, tasks->at[i]))
            return false;
    }
    return true;
}

/* ---- each weight --------------------------------------------------------------------------------------- */

/* May several stages use the weight: by several positions, or by all iterations of a loop, or as the chain is
 * there twice? */
static bool may_be_shared(const verifying *v, const etch_tensor *weight)
{
    const etch_stages *stages = v->placed->stages;
    const etch_stage_uses *uses = stages ? &stages->uses[weight->id] : NULL;
    return uses && (etch_schedule_map(stages->line->schedule) == ETCH_MAP_DUPLICATED || uses->count > 1 ||
                    (uses->count == 1 && etch_position_is_loop(stages, uses->at[0].position)));
}

/* The axes along which the plan's lines divide the weight. */
static uint32_t sharding_axes(const etch_placed *placed, const etch_tensor *weight)
{
    uint32_t axes = 0;
    for (uint32_t a = 0; a < placed->plan->mesh.count; a++)
        axes |= etch_is_sharded(placed->weight_of[weight->id]->place[a]) ? 1u << a : 0;
    return axes;
}

static bool check_weight(const ending *e, const etch_tensor *weight)
{
    verifying *v = e->v;
    const etch_placed *placed = v->placed;
    const etch_train *train = &placed->training->train;
    const weight_end *end = &e->of[weight->id];
    const char *name = weight->name;
    const uint32_t partial = end->gradient ? v->partial[end->gradient->id] : 0;
    const bool trained = end->gradient != NULL, updates = train->optimizer.row != NULL;
    const uint32_t parts = placed->zero_axes[weight->id];
    const bool is_held_whole = etch_zero_of(placed, weight)->level < 3;
    const uint32_t gathered = trained && updates && is_held_whole ? parts : 0;
    if (!trained)
        return true;
    if (partial != placed->sync_axes[weight->id])
        return verify_wrong(v, "the gradient of %s is partial over %s, not %s", name,
                            etch_axes_label(placed, partial),
                            etch_axes_label(placed, placed->sync_axes[weight->id]));
    if (end->reduced != partial)
        return verify_wrong(v, "the gradient of %s is partial over %s and reduced over %s", name,
                            etch_axes_label(placed, partial), etch_axes_label(placed, end->reduced));
    if (end->shared != may_be_shared(v, weight))
        return verify_wrong(v, "stages add up the gradient of %s %u times", name, (unsigned)end->shared);
    if (end->norms != train->clip)
        return verify_wrong(v, "the gradient of %s is %u times in the norm", name, (unsigned)end->norms);
    if (end->updates != updates)
        return verify_wrong(v, "weight %s has %u updates", name, (unsigned)end->updates);
    if (end->told & ~(parts | sharding_axes(placed, weight)))
        return verify_wrong(v, "the update of %s is shared over %s, which do not divide it", name,
                            etch_axes_label(placed, end->told));
    const bool away = !etch_is_zero(etch_offloaded_bytes(placed, weight));
    if (end->loads != away || end->stores != away)
        return verify_wrong(v, "states of %s are loaded %u times and stored %u times", name,
                            (unsigned)end->loads, (unsigned)end->stores);
    return end->gathered == gathered ||
           verify_wrong(v, "weight %s is gathered over %s and updated in parts over %s", name,
                        etch_axes_label(placed, end->gathered), etch_axes_label(placed, gathered));
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

bool verify_end(verifying *v)
{
    const etch_training *training = v->placed->training;
    const ending e = {v, ETCH_NEW_ARRAY(v->scratch, training->graph->tensors.count, weight_end)};
    if (!v->placed->backward)
        return v->program->end.count == 0 || verify_wrong(v, "a step without backward has an end");
    note_region(&e, training->graph->forward);
    note_region(&e, training->backward);
    if (!check_groups(&e) || !check_tasks(&e))
        return false;
    for (uint32_t i = 0; i < training->graph->weights.count; i++)
        if (!check_weight(&e, training->graph->weights.at[i]))
            return false;
    const bool clips = training->train.clip;
    uint32_t reductions = 0;
    for (uint32_t i = 0; i < v->program->end.count; i++)
        reductions += v->program->end.at[i]->end == ETCH_END_NORM_REDUCE;
    return reductions == (clips && v->placed->plan->mesh.count > 0) ||
           verify_wrong(v, "the norm is reduced %u times", (unsigned)reductions);
}
