/* Costs as lists of items: what each op, kernel, collective and weight contributes to a step. */
#include "graph/cost/cost_int.h"
#include "graph/ir/cursor.h"

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
    /* of one rank: a bit for each measure that is asked for */
    uint32_t measures;
    etch_cost_list *out;
} listing;

/* Executions in a step of what is in a region of the graph. */
static etch_expr times_in(const listing *l, const etch_region *region)
{
    const etch_expr micro = l->training->train.micro, runs = etch_runs_in(l->sym, region, NULL);
    return micro ? etch_mul(l->sym, micro, runs) : runs;
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

/* ---- the graph itself ---------------------------------------------------------------------------------- */

static void list_ops(const listing *l)
{
    const etch_training *training = l->training;
    etch_cursor at = {.root = training->graph->forward, .then = training->backward};
    const etch_region *region = NULL;
    etch_expr times = NULL;
    while (etch_cursor_next(&at)) {
        const etch_op *op = at.item->op;
        if (!op)
            continue;
        times = at.in == region ? times : times_in(l, at.in);
        region = at.in;
        etch_cost item = {
            .measure = ETCH_FLOPS,
            .each = etch_op_flop(l->sym, op, etch_size_in_training, training),
            .times = times,
            .phase = op->phase,
            .row = op->row,
            .matmul = etch_op_is_matmul(op),
            .of_weights = etch_is_weight_gradient(l->weight_gradients, op),
            .scope = etch_first_op(op)->scope,
            .body = region->loop ? etch_forward_body(region) : NULL,
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
    const etch_op *reader = etch_first_op(s->reader);
    const bool own = reader->outs[0]->region == s->body || (!s->body && !reader->outs[0]->region->loop);
    return (etch_cost){
        .measure = measure,
        .each = etch_mul(sym, s->elements, etch_int(sym, s->width)),
        .times = s->times,
        .phase = ETCH_FORWARD,
        .row = s->reader->row,
        .scope = own ? reader->scope : s->tensor->scope,
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
    return (etch_cost){
        .measure = measure,
        .each = each,
        .times = times,
        .scope = weight->scope,
        .body = etch_body_around(weight),
        .tensor = weight,
        .span = weight->span,
    };
}

static void list_params(const listing *l)
{
    const etch_graph *graph = l->training->graph;
    const etch_expr *active = etch_active_shares(graph, l->arena);
    for (uint32_t i = 0; i < graph->weights.count; i++) {
        const etch_tensor *weight = graph->weights.at[i];
        const etch_expr elements = etch_elements(l->sym, weight, etch_size_in_training, l->training);
        const etch_expr copies = etch_runs_in(l->sym, weight->region, NULL);
        etch_cost item = etch_cost_of_weight(ETCH_PARAMS, weight, elements, copies);
        item.trainable = l->training->backward ? l->gradients[weight->id] != NULL : !weight->frozen;
        push(l, item);
        item.measure = ETCH_ACTIVE;
        if (active[weight->id])
            item.each = etch_mul(l->sym, item.each, active[weight->id]);
        push(l, item);
    }
}

static void push_ending(const listing *l, const etch_weight_group *weight_group, uint32_t i,
                        const etch_row *row, etch_expr flop, bool matmul)
{
    const etch_expr weight_groups = weight_group->body ? weight_group->body->count : etch_int(l->sym, 1);
    etch_cost item = etch_cost_of_weight(ETCH_FLOPS, weight_group->weights.at[i], flop,
                                         etch_mul(l->sym, weight_groups, weight_group->copies.at[i]));
    item.phase = ETCH_OPTIMIZER;
    item.row = row;
    item.matmul = matmul;
    push(l, item);
}

/* Products, and all else. */
static void list_update(const listing *l, const etch_weight_group *weight_group, uint32_t i,
                        const etch_row *row)
{
    const etch_update_work work = etch_update_of_job(l->training, weight_group->weights.at[i], row);
    if (work.product_flop)
        push_ending(l, weight_group, i, row, work.product_flop, true);
    push_ending(l, weight_group, i, row,
                work.product_flop ? etch_sub(l->sym, work.flop, work.product_flop) : work.flop, false);
}

/* Optimizer and clipping norm of a weight of the whole job. */
static void list_ending(const listing *l, const etch_weight_group *weight_group, uint32_t i)
{
    const etch_train *train = &l->training->train;
    const etch_tensor *weight = weight_group->weights.at[i];
    const etch_expr elements = etch_elements(l->sym, weight, etch_size_in_training, l->training);
    for (uint32_t part = 0; train->optimizer.row && part <= ETCH_LAST_PART; part++) {
        const etch_row *row = etch_update_part(l->training, weight, part);
        if (row)
            list_update(l, weight_group, i, row);
    }
    if (train->clip)
        push_ending(l, weight_group, i, etch_row_for(l->training->graph, ETCH_USE_NORM),
                    etch_mul(l->sym, elements, etch_int(l->sym, etch_clip_flop(l->training))), false);
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
    if (collective == ETCH_SEND || collective == ETCH_PERMUTE)
        return etch_int(sym, 1);
    etch_expr once = etch_div(sym, hops, n);
    return collective == ETCH_ALL_REDUCE ? etch_mul(sym, etch_int(sym, 2), once) : once;
}

/* ---- one rank ------------------------------------------------------------------------------------------ */

static etch_cost item_of(const listing *l, const etch_step_task *task, const etch_step_contribution *c,
                         const etch_task_place *at)
{
    const etch_op *op = c->step ? c->step->op : NULL;
    etch_cost item = {
        .times = at->runs,
        .phase = task->phase,
        .row = c->row,
        .matmul = op && etch_op_is_matmul(op),
        .of_weights = op ? etch_is_weight_gradient(l->weight_gradients, op)
                         : task->phase == ETCH_BACKWARD && c->tensor && l->weight_gradients[c->tensor->id],
        .scope = c->scope,
        .step = c->step,
        .collective = task->collective,
        .axes = task->axes,
        .provenance = task->provenance,
        .body = at->body,
        .tensor = c->tensor,
        .span = c->span,
    };
    if (task->end)
        item.provenance.tensor = c->tensor;
    return item;
}

/* Of what stages that share a weight add up, these. */
static etch_expr ranks_of(const listing *l, const etch_step_task *task)
{
    if (task->end == ETCH_END_REDUCE_SHARED && l->view)
        return etch_stage_users(l->sym, l->view, etch_weight_group_uses(l->placed, task->group));
    return etch_group_size(l->placed, task->axes);
}

static bool is_asked(const listing *l, etch_measure measure)
{
    return l->measures >> measure & 1;
}

/* The item as this measure; nothing where `each` is NULL. */
static void push_as(const listing *l, const etch_cost *like, etch_measure measure, etch_expr each)
{
    if (!each || !is_asked(l, measure))
        return;
    etch_cost item = *like;
    item.measure = measure;
    item.each = each;
    push(l, item);
}

/* What the contribution adds to. */
static uint32_t measures_of(const etch_step_contribution *c)
{
    return (c->payload ? 1u << ETCH_COMM | 1u << ETCH_WIRE : 0) |
           (c->read || c->written ? 1u << ETCH_TRAFFIC : 0) | (c->moved ? 1u << ETCH_HOST_TRAFFIC : 0) |
           (c->cached ? 1u << ETCH_CACHED : 0) | (c->flop ? 1u << ETCH_RANK_FLOPS : 0);
}

/* One contribution to the step of a rank. */
static void list_contribution(void *data, const etch_step_task *task, const etch_step_contribution *c,
                              const etch_task_place *at)
{
    const listing *l = data;
    if (!(measures_of(c) & l->measures))
        return;
    etch_cost item = item_of(l, task, c, at);
    if (c->payload) {
        item.ranks = ranks_of(l, task);
        push_as(l, &item, ETCH_COMM, c->payload);
        if (is_asked(l, ETCH_WIRE))
            push_as(l, &item, ETCH_WIRE,
                    etch_mul(l->sym, c->payload, ring_share(l->sym, task->collective, item.ranks)));
    }
    item.read = task->kind == ETCH_TASK_LOAD ? c->moved : etch_int(l->sym, 0);
    push_as(l, &item, ETCH_HOST_TRAFFIC, c->moved);
    item.read = c->written && !c->read ? etch_int(l->sym, 0) : c->read;
    if (is_asked(l, ETCH_TRAFFIC))
        push_as(l, &item, ETCH_TRAFFIC, c->written ? etch_add(l->sym, item.read, c->written) : c->read);
    push_as(l, &item, ETCH_CACHED, c->cached); /* what microbatches write is there together */
    item.op = c->step ? c->step->op : NULL;
    const bool both = c->product_flop && is_asked(l, ETCH_RANK_FLOPS);
    push_as(l, &item, ETCH_RANK_FLOPS, both ? etch_sub(l->sym, c->flop, c->product_flop) : c->flop);
    item.matmul = true;
    push_as(l, &item, ETCH_RANK_FLOPS, c->product_flop);
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
    list_ops(&l);
    if (!training->backward)
        return;
    list_saved(&l);
    list_endings(&l);
}

void etch_placed_costs_of(const etch_placed *placed, const etch_stage_view *stage, uint32_t measures,
                          etch_cost_list *out)
{
    listing l = {
        .training = placed->training,
        .placed = placed,
        .sym = placed->training->graph->sym,
        .arena = placed->arena,
        .weight_gradients = etch_weight_gradients(placed->training),
        .view = placed->stages ? stage : NULL,
        .measures = measures,
        .out = out,
    };
    etch_step_each(placed->program, stage, list_contribution, &l);
}

void etch_placed_costs(const etch_placed *placed, const etch_stage_view *stage, etch_cost_list *out)
{
    etch_placed_costs_of(placed, stage, UINT32_MAX, out);
}
