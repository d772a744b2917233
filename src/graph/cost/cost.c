/* Costs as lists of items: what each op, kernel, collective and weight contributes to a step. */
#include "graph/cost/cost_int.h"

typedef struct listing {
    const etch_training *training;
    /* NULL: costs of the graph itself */
    const etch_placed *placed;
    /* NULL: everything is on one stage */
    const etch_stage_view *stage;
    etch_sym *sym;
    etch_arena *arena;
    /* by weight */
    etch_tensor **gradients;
    const bool *weight_gradients;
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

/* Inside a loop of the top level, as often as the stage runs its iterations. */
static place place_on_stage(const listing *l, const etch_placed_loop *loop, const etch_region *body)
{
    place at = place_inside(l, outermost(l), body);
    if (!l->stage)
        return at;
    const bool link = etch_position_is_loop(l->placed->stages, loop->position);
    at.runs = link ? etch_stage_iterations(l->sym, l->stage, loop->position, body)
                   : etch_mul(l->sym, at.runs, etch_stage_share(l->stage, loop->position));
    return at;
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

/* A weight at the end of a step. */
typedef struct ending {
    const etch_weight_group *weight_group;
    const etch_tensor *weight;
    /* of one copy: in the graph, or those that one rank updates */
    etch_expr elements;
    /* of the whole model, or those of the stage; */
    etch_expr copies;
    /* of them, those whose norm is taken here; */
    etch_expr counted;
    /* and those that other stages hold as well */
    etch_expr shared;
} ending;

/* The FLOP that `row` takes for the weight: `constant` for each element. */
static etch_cost item_of_weight(const listing *l, etch_measure measure, const ending *e, const etch_row *row,
                                uint32_t constant)
{
    const etch_expr each = etch_mul(l->sym, e->elements, etch_int(l->sym, constant));
    etch_cost item = etch_cost_of_weight(measure, e->weight, each, e->copies);
    item.phase = ETCH_OPTIMIZER;
    item.row = row;
    return item;
}

static etch_cost item_of_norm(const listing *l, etch_measure measure, const ending *e, uint32_t constant)
{
    etch_cost item = item_of_weight(l, measure, e, etch_row_for(l->training->graph, ETCH_USE_NORM), constant);
    item.times = e->counted;
    return item;
}

/* Optimizer and clipping norm. */
static void list_ending_flop(const listing *l, etch_measure measure, const ending *e)
{
    const etch_train *train = &l->training->train;
    push(l, item_of_weight(l, measure, e, train->optimizer.row, etch_update_flop(l->training)));
    if (train->clip)
        push(l, item_of_norm(l, measure, e, etch_clip_flop(l->training)));
}

static void list_ending_traffic(const listing *l, const ending *e)
{
    const etch_train *train = &l->training->train;
    uint32_t reads;
    const uint32_t bytes = etch_update_bytes(l->training, e->weight, &reads);
    etch_cost item = item_of_weight(l, ETCH_TRAFFIC, e, train->optimizer.row, bytes);
    item.read = etch_mul(l->sym, e->elements, etch_int(l->sym, reads));
    push(l, item);
    if (!train->clip)
        return;
    item = item_of_norm(l, ETCH_TRAFFIC, e, etch_clip_bytes(l->training));
    item.read = item.each;
    push(l, item);
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

/* `item` as payload and as traffic of a ring. */
static void push_comm(const listing *l, etch_cost item)
{
    item.measure = ETCH_COMM;
    push(l, item);
    etch_expr share = ring_share(l->sym, item.collective, etch_group_size(l->placed, item.axes));
    item.measure = ETCH_WIRE;
    item.each = etch_mul(l->sym, item.each, share);
    push(l, item);
}

static etch_provenance provenance_of_ending(const listing *l, const ending *e, etch_collective collective)
{
    const bool in_parts = collective != ETCH_ALL_REDUCE;
    return (etch_provenance){collective == ETCH_ALL_GATHER ? ETCH_RULE_UPDATE : ETCH_RULE_REDUCE,
                             .tensor = e->weight, .weight_group = e->weight_group,
                             .line = in_parts ? l->placed->plan->zero.span : (etch_span){0, 0}};
}

/* The weight's part of its buckets. */
static void list_ending_collectives(const listing *l, const ending *e)
{
    etch_ending_collective collectives[ETCH_ENDING_COLLECTIVES];
    etch_ending_collectives(l->placed, e->weight, collectives);
    for (uint32_t i = 0; i < ETCH_ENDING_COLLECTIVES; i++) {
        if (collectives[i].collective == ETCH_NO_COLLECTIVE)
            continue;
        etch_cost item = item_of_weight(
            l, ETCH_COMM, e, etch_row_of_collective(l->training->graph, collectives[i].collective), 0);
        item.each = collectives[i].bytes;
        if (collectives[i].every_microbatch)
            item.times = etch_mul(l->sym, item.times, l->training->train.micro);
        item.phase = ETCH_SYNC;
        item.collective = collectives[i].collective;
        item.axes = collectives[i].axes;
        item.provenance = provenance_of_ending(l, e, collectives[i].collective);
        item.provenance.every_microbatch = collectives[i].every_microbatch;
        push_comm(l, item);
    }
}

/* Stages that hold the weight add up their gradients. */
static void list_shared_reduction(const listing *l, const ending *e)
{
    if (!l->stage)
        return;
    etch_cost item =
        item_of_weight(l, ETCH_COMM, e, etch_row_of_collective(l->training->graph, ETCH_ALL_REDUCE),
                       etch_sync_width(l->training));
    item.times = e->shared;
    item.phase = ETCH_SYNC;
    item.collective = ETCH_ALL_REDUCE;
    item.axes = etch_stage_axes(l->placed);
    item.provenance =
        (etch_provenance){ETCH_RULE_SHARED_WEIGHT, .tensor = e->weight, .weight_group = e->weight_group,
                          .line = l->placed->stages->line->span};
    push_comm(l, item);
}

/* The norm itself: one number, written and then summed over all ranks. */
static void list_clip_result(const listing *l)
{
    const etch_graph *graph = l->training->graph;
    etch_cost item = {
        .measure = ETCH_TRAFFIC,
        .each = etch_int(l->sym, ETCH_CLIP_RESULT_BYTES),
        .read = etch_int(l->sym, 0),
        .times = etch_int(l->sym, 1),
        .phase = ETCH_OPTIMIZER,
        .row = etch_row_for(l->training->graph, ETCH_USE_NORM),
        .scope = graph->scopes.at[0],
        .span = l->training->train.span,
    };
    push(l, item);
    if (l->placed->plan->mesh.count == 0)
        return;
    item.phase = ETCH_SYNC;
    item.collective = ETCH_ALL_REDUCE;
    item.row = etch_row_of_collective(l->training->graph, ETCH_ALL_REDUCE);
    item.axes = (1u << l->placed->plan->mesh.count) - 1;
    item.provenance = (etch_provenance){ETCH_RULE_CLIP, .line = l->training->train.span};
    push_comm(l, item);
}

/* ---- one rank ------------------------------------------------------------------------------------------ */

static etch_cost item_of_step(const listing *l, etch_measure measure, const etch_step *step, place at)
{
    const etch_op *op = step->op; /* NULL: a move */
    const etch_tensor *tensor = step->outs[0]->tensor;
    return (etch_cost){
        .measure = measure,
        .times = times_of(l, at, step->phase),
        .phase = step->phase,
        .row = step->row,
        .matmul = op && etch_op_is_matmul(op),
        .of_weights = op ? etch_is_weight_gradient(l->weight_gradients, op)
                         : step->phase == ETCH_BACKWARD && l->weight_gradients[tensor->id],
        .scope = op ? forward_op(op)->scope : step->scope,
        .loop = loop_of(at),
        .body = at.body,
        .tensor = tensor,
        .span = op ? op->span : tensor->span,
    };
}

/* Caches of all microbatches are there together. */
static void list_cache(const listing *l, const etch_step *step, place at)
{
    etch_cost item = item_of_step(l, ETCH_CACHED, step, at);
    item.each = etch_value_bytes(l->placed, step->outs[0]);
    push(l, item);
}

/* Weight by weight, so that modules can be told apart. */
static void list_gather(const listing *l, const etch_step *gather, place at)
{
    for (uint32_t i = 0; i < gather->in_count; i++) {
        const etch_tensor *weight = gather->ins[i]->tensor;
        etch_cost item = item_of_step(l, ETCH_COMM, gather, at);
        item.each = etch_payload_of(l->placed, gather, i);
        if (gather->once)
            item.times = at.runs;
        item.collective = gather->collective;
        item.axes = gather->axes;
        item.step = gather;
        item.provenance = gather->provenance;
        item.scope = weight->scope;
        item.tensor = weight;
        item.span = weight->span;
        push_comm(l, item);
    }
}

static void list_kernel(const listing *l, const etch_kernel *kernel, place at)
{
    if (kernel->anchor->copies) {
        list_gather(l, kernel->anchor, at);
        return;
    }
    if (etch_step_role(kernel->anchor) == ETCH_ROLE_RESHARD) {
        etch_cost item = item_of_step(l, ETCH_COMM, kernel->anchor, at);
        item.each = kernel->bytes;
        item.collective = kernel->anchor->collective;
        item.axes = kernel->anchor->axes;
        item.step = kernel->anchor;
        item.provenance = kernel->anchor->provenance;
        push_comm(l, item);
        return;
    }
    for (uint32_t i = 0; i < kernel->steps.count; i++) {
        etch_cost item = item_of_step(l, ETCH_RANK_FLOPS, kernel->steps.at[i], at);
        item.step = kernel->steps.at[i];
        item.op = item.step->op;
        item.each = etch_step_flop(l->placed, item.step);
        push(l, item);
        if (kernel->steps.at[i]->row->stays)
            list_cache(l, kernel->steps.at[i], at);
    }
    etch_cost item = item_of_step(l, ETCH_TRAFFIC, kernel->anchor, at);
    item.each = kernel->bytes;
    item.read = kernel->read;
    push(l, item);
}

/* Goes as deep as loops are nested. */
static void list_body(const listing *l, const etch_placed_region *region, place at)
{
    for (uint32_t i = 0; i < region->kernels.count; i++)
        list_kernel(l, region->kernels.at[i], at);
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            list_body(l, loop->bodies.at[k], place_inside(l, at, loop->bodies.at[k]->of));
    }
}

static void list_top(const listing *l, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->kernels.count; i++) {
        place at = outermost(l);
        if (l->stage)
            at.runs = etch_stage_share(l->stage, region->kernels.at[i]->anchor->position);
        list_kernel(l, region->kernels.at[i], at);
    }
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            list_body(l, loop->bodies.at[k], place_on_stage(l, loop, loop->bodies.at[k]->of));
    }
}

/* ---- messages between stages --------------------------------------------------------------------------- */

static void list_message(const listing *l, etch_phase phase, const etch_cut *cut, etch_expr bytes,
                         etch_expr count)
{
    const etch_graph *graph = l->training->graph;
    etch_cost item = {
        .each = bytes,
        .times = etch_mul(l->sym, l->training->train.micro, count),
        .phase = phase,
        .collective = ETCH_SEND,
        .axes = etch_stage_axes(l->placed),
        .provenance = {ETCH_RULE_STAGE, .cut = cut, .line = l->placed->stages->line->span},
        .scope = graph->scopes.at[0],
        .span = l->placed->stages->line->span,
    };
    push_comm(l, item);
}

static void list_messages(const listing *l)
{
    const etch_stages *stages = l->placed->stages;
    for (uint32_t i = 0; l->stage && i < stages->cuts.count; i++)
        list_message(l, ETCH_FORWARD, &stages->cuts.at[i], stages->cuts.at[i].forward_bytes,
                     l->stage->forward[i]);
    for (uint32_t i = 0; l->stage && l->placed->backward && i < stages->cuts.count; i++)
        list_message(l, ETCH_BACKWARD, &stages->cuts.at[i], stages->cuts.at[i].backward_bytes,
                     l->stage->backward[i]);
}

/* ---- the end of a step --------------------------------------------------------------------------------- */

static void list_ending(const listing *l, ending *e)
{
    if (!l->placed) {
        e->elements = etch_elements(l->sym, e->weight, etch_size_in_training, l->training);
        list_ending_flop(l, ETCH_FLOPS, e);
        return;
    }
    e->elements = etch_update_elements(l->placed, e->weight);
    list_ending_collectives(l, e);
    list_shared_reduction(l, e);
    list_ending_flop(l, ETCH_RANK_FLOPS, e);
    list_ending_traffic(l, e);
}

/* Copies of a weight group's weights on the stage, and how many of them it shares with other stages. */
typedef struct holding {
    /* all; those whose norm it counts; those that others hold as well */
    etch_expr copies, counted, shared;
} holding;

static holding holding_of(const listing *l, const etch_weight_group *weight_group)
{
    etch_expr runs = weight_group->body ? weight_group->body->count : etch_int(l->sym, 1);
    const etch_positions *uses = l->stage ? etch_weight_group_uses(l->placed, weight_group) : NULL;
    holding all = {runs, runs, etch_int(l->sym, 0)};
    if (uses && uses->count == 0) { /* with the iterations of a loop of the chain */
        all.copies = all.counted = etch_stage_iterations(
            l->sym, l->stage, etch_stage_position_of(l->placed, weight_group->loop), weight_group->body);
    } else if (uses) {
        all.copies = etch_mul(l->sym, runs, etch_stage_presence(l->sym, l->stage, uses));
        all.counted = etch_mul(l->sym, runs, etch_stage_begins(l->sym, l->stage, uses));
        all.shared = etch_mul(l->sym, runs, etch_stage_shares_weight(l->sym, l->stage, uses));
    }
    return all;
}

/* Weight by weight, so that modules can be told apart; the sums are those of buckets and updates. */
static void list_group(const listing *l, const etch_weight_group *weight_group)
{
    const holding held = holding_of(l, weight_group);
    for (uint32_t i = 0; i < weight_group->weights.count; i++) {
        const etch_expr each = weight_group->copies.at[i];
        ending e = {.weight_group = weight_group,
                    .weight = weight_group->weights.at[i],
                    .copies = etch_mul(l->sym, held.copies, each),
                    .counted = etch_mul(l->sym, held.counted, each),
                    .shared = etch_mul(l->sym, held.shared, each)};
        if (l->gradients[e.weight->id])
            list_ending(l, &e);
    }
}

static void list_endings(const listing *l)
{
    const uint32_t count = l->placed ? l->placed->weight_groups.count : l->training->weight_groups.count;
    etch_weight_group *const *weight_groups =
        l->placed ? l->placed->weight_groups.at : l->training->weight_groups.at;
    for (uint32_t i = 0; i < count; i++)
        list_group(l, weight_groups[i]);
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
        .stage = placed->stages ? stage : NULL,
        .sym = placed->training->graph->sym,
        .arena = placed->arena,
        .gradients = etch_gradients_by_weight(placed->training, placed->arena),
        .weight_gradients = etch_weight_gradients(placed->training),
        .out = out,
    };
    list_top(&l, placed->forward);
    if (placed->backward)
        list_top(&l, placed->backward);
    list_messages(&l);
    if (!placed->backward)
        return;
    list_endings(&l);
    if (placed->training->train.clip)
        list_clip_result(&l);
}
