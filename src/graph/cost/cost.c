/* Costs as lists of items: what each op, kernel, collective and weight contributes to a step. */
#include "graph/cost/cost_int.h"

typedef struct listing {
    const etch_training *training;
    /* NULL: costs of the graph itself */
    const etch_placed *placed;
    etch_sym *sym;
    etch_arena *arena;
    /* by weight */
    etch_tensor **gradients;
    const bool *weight_gradients;
    /* NULL: everything is on one stage */
    const etch_stage_view *view;
    etch_cost_list *out;
} listing;

/* Where a region's items run. */
typedef struct place {
    /* executions per microbatch: the product of the loops around it */
    etch_expr runs;
    /* innermost of the forward pass, or NULL */
    const etch_region *body;
} place;

static place place_inside(const listing *l, place outer, const etch_region *body)
{
    return (place){etch_mul(l->sym, outer.runs, body->count), etch_forward_body(body)};
}

static const etch_loop *loop_of(place at)
{
    return at.body ? at.body->loop : NULL;
}

static place outermost(const listing *l)
{
    return (place){etch_int(l->sym, 1), NULL};
}

/* Executions per step of what belongs to `phase`. */
static etch_expr times_of(const listing *l, place at, etch_phase phase)
{
    etch_expr micro = l->training->train.micro;
    bool every_microbatch = phase == ETCH_FORWARD || phase == ETCH_RECOMPUTE || phase == ETCH_BACKWARD;
    return every_microbatch && micro ? etch_mul(l->sym, micro, at.runs) : at.runs;
}

/* A lookup does nothing that is FLOP, but conventions may count it as a product. */
static bool may_count(const etch_cost *item)
{
    return !etch_is_zero(item->each) || (item->op && item->op->row->family == ETCH_FAMILY_LOOKUP);
}

static void push(const listing *l, etch_cost item)
{
    if (may_count(&item) && !etch_is_zero(item.times))
        ETCH_PUSH(l->arena, l->out, item);
}

/* Of a derived op: the op of the forward graph that it comes from. */
static const etch_op *forward_op(const etch_op *op)
{
    while (op->forward)
        op = op->forward;
    return op;
}

/* ---- the graph itself ---------------------------------------------------------------------------------- */

/* Goes as deep as loops are nested. */
static void list_region(const listing *l, const etch_region *region, place at)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_op *op = region->items.at[i].op;
        const etch_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            list_region(l, loop->bodies.at[k], place_inside(l, at, loop->bodies.at[k]));
        if (loop)
            continue;
        etch_cost item = {
            .measure = ETCH_FLOPS,
            .each = etch_op_flop(l->sym, op, etch_size_in_training, l->training),
            .times = times_of(l, at, op->phase),
            .phase = op->phase,
            .row = op->row,
            .matmul = etch_op_is_matmul(op),
            .of_weights = etch_is_weight_gradient(l->weight_gradients, op),
            .scope = forward_op(op)->scope,
            .loop = loop_of(at),
            .body = at.body,
            .op = op,
            .tensor = op->outs[0],
            .span = op->span,
        };
        push(l, item);
    }
}

/* A value belongs to the module that needs it, where that keeps one for each of its own calls; else to the
 * module that makes it. */
etch_cost etch_cost_of_saved(etch_sym *sym, etch_measure measure, const etch_saved *s)
{
    const etch_op *reader = forward_op(s->reader);
    const bool own = reader->outs[0]->region == s->body || (!s->body && !reader->outs[0]->region->loop);
    return (etch_cost){
        .measure = measure,
        .each = etch_mul(sym, s->elements, etch_int(sym, s->width)),
        .times = s->times,
        .phase = ETCH_FORWARD,
        .row = s->reader->row,
        .scope = own ? reader->scope : s->tensor->scope,
        .loop = s->body ? s->body->loop : NULL,
        .body = s->body,
        .tensor = s->tensor,
        .span = s->tensor->span,
    };
}

static void list_saved(const listing *l)
{
    etch_saved_list saved = {0};
    etch_graph_saved(l->training, &saved);
    for (uint32_t i = 0; i < saved.count; i++)
        push(l, etch_cost_of_saved(l->sym, ETCH_SAVED, &saved.at[i]));
}

/* ---- weights: parameters, and what the end of a step does with them ------------------------------------ */

etch_cost etch_cost_of_weight(etch_measure measure, const etch_tensor *weight, etch_expr each,
                              etch_expr times)
{
    const etch_region *body = weight->region;
    while (body && !body->loop)
        body = body->parent;
    return (etch_cost){
        .measure = measure,
        .each = each,
        .times = times,
        .scope = weight->scope,
        .loop = body ? body->loop : NULL,
        .body = body,
        .tensor = weight,
        .span = weight->span,
    };
}

static etch_expr copies_of_weight(const listing *l, const etch_tensor *weight)
{
    etch_expr copies = etch_int(l->sym, 1);
    for (const etch_region *region = weight->region; region; region = region->parent)
        if (region->loop)
            copies = etch_mul(l->sym, copies, region->count);
    return copies;
}

static void list_params(const listing *l)
{
    const etch_graph *graph = l->training->graph;
    const etch_expr *active = etch_active_shares(graph, l->arena);
    for (uint32_t i = 0; i < graph->weights.count; i++) {
        const etch_tensor *weight = graph->weights.at[i];
        const etch_expr elements = etch_elements(l->sym, weight, etch_size_in_training, l->training);
        etch_cost item = etch_cost_of_weight(ETCH_PARAMS, weight, elements, copies_of_weight(l, weight));
        item.trainable = l->training->backward ? l->gradients[weight->id] != NULL : !weight->frozen;
        push(l, item);
        item.measure = ETCH_ACTIVE;
        if (active[weight->id])
            item.each = etch_mul(l->sym, item.each, active[weight->id]);
        push(l, item);
    }
}

/* Optimizer and clipping norm of a weight of the whole job. */
static void list_ending(const listing *l, const etch_weight_group *weight_group, uint32_t i)
{
    const etch_train *train = &l->training->train;
    const etch_tensor *weight = weight_group->weights.at[i];
    const etch_expr elements = etch_elements(l->sym, weight, etch_size_in_training, l->training);
    const etch_expr weight_groups = weight_group->body ? weight_group->body->count : etch_int(l->sym, 1);
    const struct {
        const etch_row *row;
        /* of an element */
        uint32_t flop;
    } ops[] = {{train->optimizer.row, etch_update_flop(l->training)},
               {etch_row_for(l->training->graph, ETCH_USE_NORM), etch_clip_flop(l->training)}};
    for (int k = 0; k < (train->clip ? 2 : 1); k++) {
        etch_cost item =
            etch_cost_of_weight(ETCH_FLOPS, weight, etch_mul(l->sym, elements, etch_int(l->sym, ops[k].flop)),
                                etch_mul(l->sym, weight_groups, weight_group->copies.at[i]));
        item.phase = ETCH_OPTIMIZER;
        item.row = ops[k].row;
        push(l, item);
    }
}

static void list_endings(const listing *l)
{
    for (uint32_t u = 0; u < l->training->weight_groups.count; u++) {
        const etch_weight_group *weight_group = l->training->weight_groups.at[u];
        for (uint32_t i = 0; i < weight_group->weights.count; i++)
            if (l->gradients[weight_group->weights.at[i]->id])
                list_ending(l, weight_group, i);
    }
}

/* ---- communication ------------------------------------------------------------------------------------- */

/* The bytes that a ring over `n` ranks sends for a payload of one byte. */
static etch_expr ring_share(etch_sym *sym, etch_collective collective, etch_expr n)
{
    etch_expr hops = etch_sub(sym, n, etch_int(sym, 1));
    if (collective == ETCH_ALL_GATHER) /* the payload is one shard */
        return hops;
    if (collective == ETCH_SEND)
        return etch_int(sym, 1);
    etch_expr once = etch_div(sym, hops, n);
    return collective == ETCH_ALL_REDUCE ? etch_mul(sym, etch_int(sym, 2), once) : once;
}

/* `item` as payload and as traffic of a ring of its ranks. */
static void push_comm(const listing *l, etch_cost item)
{
    item.measure = ETCH_COMM;
    push(l, item);
    etch_expr share = ring_share(l->sym, item.collective, item.ranks);
    item.measure = ETCH_WIRE;
    item.each = etch_mul(l->sym, item.each, share);
    push(l, item);
}

/* ---- one rank ------------------------------------------------------------------------------------------ */

static etch_cost item_of(const listing *l, const etch_step_task *task, const etch_step_contribution *c,
                         const etch_task_place *at)
{
    const etch_op *op = c->step ? c->step->op : NULL;
    return (etch_cost){
        .times = at->runs,
        .phase = task->phase,
        .row = c->row,
        .matmul = op && etch_op_is_matmul(op),
        .of_weights = op ? etch_is_weight_gradient(l->weight_gradients, op)
                         : task->phase == ETCH_BACKWARD && c->tensor && l->weight_gradients[c->tensor->id],
        .scope = c->scope,
        .loop = at->body ? at->body->loop : NULL,
        .body = at->body,
        .tensor = c->tensor,
        .span = c->span,
    };
}

static void list_traffic(const listing *l, etch_cost item, const etch_step_contribution *c)
{
    const etch_expr nothing = etch_int(l->sym, 0);
    item.measure = ETCH_TRAFFIC;
    item.read = c->read ? c->read : nothing;
    item.each = etch_add(l->sym, item.read, c->written ? c->written : nothing);
    push(l, item);
}

/* Of what stages that share a weight add up, these. */
static etch_expr ranks_of(const listing *l, const etch_step_task *task)
{
    if (task->end == ETCH_END_REDUCE_SHARED && l->view)
        return etch_stage_users(l->sym, l->view, etch_weight_group_uses(l->placed, task->group));
    return etch_group_size(l->placed, task->axes);
}

static void list_payload(const listing *l, etch_cost item, const etch_step_task *task,
                         const etch_step_contribution *c)
{
    item.each = c->payload;
    item.step = c->step;
    item.collective = task->collective;
    item.axes = task->axes;
    item.ranks = ranks_of(l, task);
    item.provenance = task->provenance;
    if (task->end)
        item.provenance.tensor = c->tensor;
    push_comm(l, item);
}

/* One contribution to the step of a rank. */
static void list_contribution(void *data, const etch_step_task *task, const etch_step_contribution *c,
                              const etch_task_place *at)
{
    const listing *l = data;
    etch_cost item = item_of(l, task, c, at);
    if (c->payload)
        list_payload(l, item, task, c);
    if (c->read || c->written)
        list_traffic(l, item, c);
    if (c->cached) { /* what microbatches write is there together */
        item.measure = ETCH_CACHED;
        item.each = c->cached;
        push(l, item);
    }
    if (c->flop) {
        item.measure = ETCH_RANK_FLOPS;
        item.each = c->flop;
        item.step = c->step;
        item.op = c->step ? c->step->op : NULL;
        push(l, item);
    }
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

void etch_graph_costs(const etch_training *training, etch_cost_list *out)
{
    const etch_graph *graph = training->graph;
    listing l = {
        .training = training,
        .sym = graph->sym,
        .arena = graph->arena,
        .gradients = etch_gradients_by_weight(training, graph->arena),
        .weight_gradients = etch_weight_gradients(training),
        .out = out,
    };
    list_params(&l);
    list_region(&l, graph->forward, outermost(&l));
    if (!training->backward)
        return;
    list_region(&l, training->backward, outermost(&l));
    list_saved(&l);
    list_endings(&l);
}

void etch_placed_costs(const etch_placed *placed, const etch_stage_view *stage, etch_cost_list *out)
{
    listing l = {
        .training = placed->training,
        .placed = placed,
        .sym = placed->training->graph->sym,
        .arena = placed->arena,
        .weight_gradients = etch_weight_gradients(placed->training),
        .view = placed->stages ? stage : NULL,
        .out = out,
    };
    /* a value makes about two items, and lists of them are long to copy */
    if (out->capacity == 0) {
        out->capacity = 2 * placed->value_count;
        out->at = ETCH_NEW_ARRAY(placed->arena, out->capacity, etch_cost);
    }
    etch_step_each(placed->program, stage, list_contribution, &l);
}
