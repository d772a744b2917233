/* Derivation of the backward pass.
 *
 * requires: a checked forward graph. provides: the backward region, gradients, units.
 *
 * Reverse mode over regions. Contributions to the cotangent of a value are collected while its consumers are
 * undone; when its producer is reached they become one op `add_cotangents`, and placement decides how they
 * are added and moved. Gradients of weights are not collected: each contribution is added into the
 * accumulator in place. A loop is undone by a loop that runs the iterations backwards; with recomputation its
 * body begins with a copy of the forward body. Only what a trainable weight needs is derived. */
#include <ctype.h>
#include <string.h>

#include "graph/row_int.h"

typedef ETCH_VEC(etch_tensor *) tensor_list;

typedef struct deriver {
    etch_graph *graph;
    etch_training *training;
    uint32_t forward_count;   /* tensors of the forward graph: ids below it */
    bool *needs;              /* by forward id: does a trainable weight stand behind it? */
    tensor_list *parts;       /* by forward id: contributions to its cotangent in the region in work */
    etch_tensor **version;    /* by forward id: the recomputed copy in force, or NULL */
    etch_loop **loop_version; /* by forward loop: its recomputed copy, or NULL */
    bool failed;
} deriver;

etch_expr etch_training_size(const etch_training *training, const etch_dim *dim)
{
    etch_sym *sym = training->graph->sym;
    return dim == training->train.batch ? etch_div(sym, dim->size, training->train.micro) : dim->size;
}

static bool has_tag(const etch_tensor *tensor, const char *tag)
{
    for (uint32_t i = 0; i < tensor->tag_count; i++)
        if (strcmp(tensor->tags[i], tag) == 0)
            return true;
    return false;
}

static bool is_loss(const etch_tensor *tensor)
{
    return has_tag(tensor, "loss");
}

static bool is_trainable(const etch_tensor *tensor)
{
    return tensor->kind == ETCH_WEIGHT && !tensor->frozen;
}

/* ---- which values need a cotangent? ----------------------------------------------------------------- */

static void mark_region(deriver *d, const etch_region *region);

static void mark_op(deriver *d, const etch_op *op)
{
    bool any = false;
    for (uint32_t i = 0; i < op->in_count; i++)
        any = any || d->needs[op->ins[i]->id];
    uint32_t results = etch_row_is_several(op->row) ? op->out_count : 1;
    for (uint32_t i = 0; i < results && any && op->row->grads; i++)
        d->needs[op->outs[i]->id] = true;
}

/* A value that an iteration hands on needs one when its first or any later version does. */
static void mark_loop(deriver *d, const etch_loop *loop)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < loop->carries.count; i++) {
            const etch_carry *c = &loop->carries.at[i];
            bool any = d->needs[c->init->id] || d->needs[c->out->id];
            if (any && !d->needs[c->in->id])
                d->needs[c->in->id] = d->needs[c->result->id] = changed = true;
        }
        mark_region(d, loop->body);
        for (uint32_t i = 0; i < loop->carries.count; i++)
            changed =
                changed || (d->needs[loop->carries.at[i].out->id] && !d->needs[loop->carries.at[i].in->id]);
    }
}

static void mark_region(deriver *d, const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item *item = &region->items.at[i];
        if (item->op)
            mark_op(d, item->op);
        else
            mark_loop(d, item->loop);
    }
}

/* ---- contributions ---------------------------------------------------------------------------------- */

/* The tensor that backward reads for a forward one: its recomputed copy where there is one. */
static etch_tensor *version_of(const deriver *d, etch_tensor *tensor)
{
    etch_tensor *copy = tensor->id < d->forward_count ? d->version[tensor->id] : NULL;
    return copy ? copy : tensor;
}

static etch_tensor *derived_tensor(deriver *d, const char *prefix, etch_tensor *of, etch_dtype dtype)
{
    etch_graph *g = d->graph;
    etch_tensor *t = etch_tensor_new(g, etch_text(g->arena, "%s%s", prefix, of->name), ETCH_ACT, dtype,
                                     of->dims, of->rank, of->span);
    t->of = of;
    t->scope = of->scope;
    return t;
}

/* An op of the backward pass, placed in `region`; its outs are still to be filled. */
static etch_op *derived_op(deriver *d, const etch_row *row, etch_tensor *const *ins, uint32_t in_count,
                           uint32_t out_count, const etch_op *forward)
{
    const etch_attrs *attrs = forward ? &forward->attrs : NULL;
    etch_span span = forward ? forward->span : ins[0]->span;
    etch_op *op = etch_op_new(d->graph, row, ins, in_count, out_count, attrs, ETCH_BACKWARD, span);
    op->attrs.absent = 0;
    op->forward = (etch_op *)(uintptr_t)forward;
    op->scope = forward ? forward->scope : ins[0]->scope;
    return op;
}

static etch_tensor *gradient_of(const deriver *d, const etch_tensor *weight)
{
    const etch_graph *g = d->graph;
    for (uint32_t i = 0; i < g->weights.count; i++)
        if (g->weights.at[i] == weight)
            return d->training->gradients.at[i];
    return NULL;
}

/* Adds `part` to the cotangent of `target`. `fresh`: nothing else uses `part`, so that its producer can add
 * into a gradient itself. */
static void contribute(deriver *d, etch_region *region, etch_tensor *target, etch_tensor *part, bool fresh)
{
    if (!d->needs[target->id])
        return;
    if (target->kind != ETCH_WEIGHT) {
        ETCH_PUSH(d->graph->arena, &d->parts[target->id], part);
        return;
    }
    if (!fresh) {
        etch_op *op = derived_op(d, etch_row_for(d->graph, USE_ACCUMULATION), &part, 1, 1, NULL);
        op->scope = target->scope;
        part = op->outs[0] = derived_tensor(d, "d", target, d->graph->dtypes.grads);
        etch_region_add_op(d->graph, region, op);
    }
    part->dtype = d->graph->dtypes.grads;
    part->adds_to = gradient_of(d, target);
}

/* The cotangent of a forward value: the sum of what was contributed so far. NULL when there is nothing. */
static etch_tensor *total_of(deriver *d, etch_region *region, etch_tensor *tensor, const etch_op *forward)
{
    tensor_list *parts = &d->parts[tensor->id];
    if (parts->count == 0)
        return NULL;
    etch_op *op = derived_op(d, etch_row_for(d->graph, USE_TOTAL), parts->at, parts->count, 1, NULL);
    op->scope = forward ? forward->scope : tensor->scope;
    op->span = tensor->span;
    op->outs[0] = derived_tensor(d, "d", version_of(d, tensor), tensor->dtype);
    op->outs[0]->of = version_of(d, tensor);
    etch_region_add_op(d->graph, region, op);
    *parts = (tensor_list){0};
    return op->outs[0];
}

/* ---- one op ----------------------------------------------------------------------------------------- */

/* Collects the operands that `args` names; returns the bits of those that are not given. */
static uint32_t gather_args(deriver *d, const etch_op *op, const char *args, const tensor_list *cotangents,
                            uint32_t target, tensor_list *out)
{
    etch_arena *arena = d->graph->arena;
    uint32_t absent = 0, slot = 0;
    for (const char *at = args; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        uint32_t n = length > 1 && isdigit((unsigned char)at[1]) ? (uint32_t)(at[1] - '0') : 0;
        uint32_t index = *at == 'x' ? etch_op_index(op, n) : n;
        for (uint32_t i = 0; *at == 'd' && i < cotangents->count; i++)
            if (length == 1 || i == n)
                ETCH_PUSH(arena, out, cotangents->at[i]);
        if (*at == 'x' && index != UINT32_MAX)
            ETCH_PUSH(arena, out, version_of(d, op->ins[index]));
        else if (*at == 'x')
            absent |= 1u << slot;
        else if (*at == 'y' && n < op->out_count)
            ETCH_PUSH(arena, out, version_of(d, op->outs[n]));
        else if (*at == 'o')
            for (uint32_t i = 0; i < op->in_count; i++)
                if (i != target)
                    ETCH_PUSH(arena, out, version_of(d, op->ins[i]));
        at += length;
        slot++;
    }
    return absent;
}

static bool same_dim_set(const etch_tensor *a, const etch_tensor *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (!etch_has_dim(b, a->dims[i]))
            return false;
    return true;
}

/* A part of what a concat has made has the dims along which the operand was broadcast. */
static void give_part_dims(deriver *d, const etch_op *made, uint32_t part)
{
    etch_dim_list dims = {0};
    etch_part_dims(made, made->ins[0], part, d->graph, &dims);
    made->outs[part]->dims = dims.at;
    made->outs[part]->rank = dims.count;
}

/* The cotangent of an operand that was broadcast. */
static etch_tensor *sum_to(deriver *d, etch_region *region, etch_tensor *part, etch_tensor *target)
{
    etch_op *op = derived_op(d, etch_row_for(d->graph, USE_REDUCTION), &part, 1, 1, NULL);
    op->scope = target->scope;
    op->span = target->span;
    op->outs[0] = derived_tensor(d, "d", target, target->dtype);
    etch_region_add_op(d->graph, region, op);
    return op->outs[0];
}

/* Calls the rule's row for the operands `targets`. */
static void apply_rule(deriver *d, etch_region *region, const etch_op *op, const etch_grad *rule,
                       const tensor_list *cotangents, const uint32_t *targets, uint32_t count)
{
    const etch_row *row = etch_row_named(d->graph->table, rule->row);
    tensor_list args = {0};
    bool any = false;
    for (uint32_t i = 0; i < count; i++)
        any = any || d->needs[op->ins[targets[i]]->id];
    if (!any)
        return;
    uint32_t absent = gather_args(d, op, rule->args, cotangents, targets[0], &args);
    if (row->elide_same && same_dim_set(args.at[0], op->ins[targets[0]])) {
        contribute(d, region, op->ins[targets[0]], args.at[0], false);
        return;
    }
    etch_op *made = derived_op(d, row, args.at, args.count, count, op);
    made->attrs.absent = absent;
    if (row->inverts_map) {
        etch_dim **from = made->attrs.from;
        made->attrs.from = made->attrs.to;
        made->attrs.to = from;
    }
    for (uint32_t i = 0; i < count; i++) {
        etch_tensor *target = op->ins[targets[i]];
        made->outs[i] = derived_tensor(d, "d", target, target->dtype);
        made->outs[i]->optional_result = !d->needs[target->id];
        if (etch_row_is_several(row))
            give_part_dims(d, made, i);
    }
    etch_region_add_op(d->graph, region, made);
    for (uint32_t i = 0; i < count; i++) {
        etch_tensor *target = op->ins[targets[i]], *part = made->outs[i];
        bool fresh = row->role != ROLE_FREE; /* a view is no node, so it adds into nothing */
        if (etch_row_is_several(row) && d->needs[target->id] && !same_dim_set(part, target)) {
            part = sum_to(d, region, part, target);
            fresh = true;
        }
        contribute(d, region, target, part, fresh);
    }
}

static etch_tensor *zeros_like(deriver *d, etch_tensor *of)
{
    etch_tensor *zeros = derived_tensor(d, "d", of, of->dtype);
    zeros->kind = ETCH_CONSTANT;
    return zeros;
}

/* The cotangent of the result; of parts those of all, zeros where nothing was contributed. False when there
 * is none at all. */
static bool collect_cotangents(deriver *d, etch_region *region, const etch_op *op, tensor_list *out)
{
    bool any = false;
    for (uint32_t i = 0; i < (etch_row_is_several(op->row) ? op->out_count : 1); i++) {
        etch_tensor *total = total_of(d, region, op->outs[i], op);
        any = any || total;
        ETCH_PUSH(d->graph->arena, out, total ? total : zeros_like(d, version_of(d, op->outs[i])));
    }
    return any;
}

static void derive_op(deriver *d, etch_region *region, const etch_op *op)
{
    etch_graph *g = d->graph;
    etch_tensor *result = op->outs[0];
    if (is_loss(result)) {
        if (result->rank)
            etch_error(g->diags, ETCH_E_LOSS_SHAPE, result->span,
                       "%s is tagged loss but has dims; a loss is a scalar", result->name),
                d->failed = true;
        etch_tensor *seed = etch_tensor_new(g, "one", ETCH_CONSTANT, result->dtype, NULL, 0, result->span);
        ETCH_PUSH(g->arena, &d->parts[result->id], seed);
    }
    tensor_list cotangents = {0};
    if (!d->needs[result->id] || !collect_cotangents(d, region, op, &cotangents))
        return;
    uint32_t *targets = ETCH_NEW_ARRAY(g->arena, op->in_count, uint32_t);
    for (const etch_grad *rule = op->row->grads; rule->row; rule++) {
        uint32_t count = 0;
        if (strcmp(rule->into, "each") == 0) {
            for (uint32_t i = 0; i < op->in_count; i++)
                apply_rule(d, region, op, rule, &cotangents, &i, 1);
            continue;
        }
        for (uint32_t i = 0; strcmp(rule->into, "all") == 0 && i < op->in_count; i++)
            targets[count++] = i;
        for (const char *at = rule->into; *at; at++) {
            uint32_t index =
                isdigit((unsigned char)*at) ? etch_op_index(op, (uint32_t)(*at - '0')) : UINT32_MAX;
            if (index != UINT32_MAX)
                targets[count++] = index;
        }
        if (count)
            apply_rule(d, region, op, rule, &cotangents, targets, count);
    }
}

/* ---- recomputation ---------------------------------------------------------------------------------- */

static etch_tensor *cloned_tensor(deriver *d, etch_tensor *of)
{
    etch_tensor *copy =
        etch_tensor_new(d->graph, of->name, of->kind, of->dtype, of->dims, of->rank, of->span);
    uint32_t id = copy->id;
    *copy = *of;
    copy->id = id;
    copy->of = of;
    copy->producer = NULL;
    copy->region = d->graph->region;
    d->version[of->id] = copy;
    return copy;
}

static void clone_op(deriver *d, const etch_op *op, etch_region *into)
{
    etch_op *copy = etch_op_new(d->graph, op->row, op->ins, op->in_count, op->out_count, &op->attrs,
                                ETCH_RECOMPUTE, op->span);
    copy->scope = op->scope;
    copy->edge = op->edge;
    copy->forward = (etch_op *)(uintptr_t)op;
    for (uint32_t i = 0; i < op->in_count; i++)
        copy->ins[i] = version_of(d, op->ins[i]);
    for (uint32_t i = 0; i < op->out_count; i++)
        copy->outs[i] = cloned_tensor(d, op->outs[i]);
    etch_region_add_op(d->graph, into, copy);
}

/* Copies a forward region to the end of `into`: everything is run again, also what nobody reads. */
static void clone_region(deriver *d, const etch_region *region, etch_region *into)
{
    etch_graph *g = d->graph;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item *item = &region->items.at[i];
        if (item->op) {
            clone_op(d, item->op, into);
            continue;
        }
        g->region = into;
        etch_loop *loop = item->loop, *copy = etch_graph_begin(g, loop->name, loop->count, loop->span);
        d->loop_version[loop->id] = copy;
        for (uint32_t c = 0; c < loop->carries.count; c++) {
            etch_tensor *init = version_of(d, loop->carries.at[c].init);
            ETCH_PUSH(g->arena, &copy->carries,
                      (etch_carry){.init = init, .in = cloned_tensor(d, loop->carries.at[c].in)});
        }
        clone_region(d, loop->body, copy->body);
        g->region = into;
        for (uint32_t c = 0; c < loop->carries.count; c++) {
            copy->carries.at[c].out = version_of(d, loop->carries.at[c].out);
            copy->carries.at[c].result = cloned_tensor(d, loop->carries.at[c].result);
        }
    }
}

static bool is_recomputed(const deriver *d, const etch_loop *loop, const etch_region *parent)
{
    const etch_train *train = &d->training->train;
    if (train->recompute_all && !parent->loop)
        return true;
    for (uint32_t i = 0; i < train->recompute_count; i++)
        if (strcmp(train->recompute[i], loop->name) == 0)
            return true;
    return false;
}

/* ---- loops ------------------------------------------------------------------------------------------ */

static void derive_region(deriver *d, const etch_region *forward, etch_region *into);

static bool region_has_loss(const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item *item = &region->items.at[i];
        if (item->op ? is_loss(item->op->outs[0]) : region_has_loss(item->loop->body))
            return true;
    }
    return false;
}

static bool loop_matters(const deriver *d, const etch_loop *loop)
{
    for (uint32_t i = 0; i < loop->carries.count; i++)
        if (d->parts[loop->carries.at[i].result->id].count)
            return true;
    return region_has_loss(loop->body);
}

/* A value that the backward loop hands from iteration to iteration: the cotangent of `of`. */
static etch_tensor *backward_carry(deriver *d, etch_loop *back, etch_tensor *of, etch_tensor *init)
{
    etch_tensor *in = derived_tensor(d, "d", of, of->dtype);
    ETCH_PUSH(d->graph->arena, &back->carries, (etch_carry){.init = init, .in = in});
    return in;
}

/* Cotangents of values from outside the loop: each iteration adds its part to what earlier ones left. */
static void accumulate_outer(deriver *d, etch_loop *back, tensor_list *outer)
{
    for (uint32_t id = 0; id < d->forward_count; id++) {
        etch_tensor *tensor = d->graph->tensors.at[id];
        if (d->parts[id].count == 0)
            continue;
        etch_tensor *in = backward_carry(d, back, version_of(d, tensor), NULL);
        ETCH_PUSH(d->graph->arena, &d->parts[id], in);
        back->carries.at[back->carries.count - 1].out = total_of(d, back->body, tensor, NULL);
        ETCH_PUSH(d->graph->arena, outer, tensor);
    }
}

static void derive_loop(deriver *d, const etch_loop *loop, const etch_region *parent, etch_region *into)
{
    etch_graph *g = d->graph;
    if (!loop_matters(d, loop))
        return;
    etch_tensor **inits = ETCH_NEW_ARRAY(g->arena, loop->carries.count, etch_tensor *);
    for (uint32_t i = 0; i < loop->carries.count; i++)
        inits[i] =
            d->needs[loop->carries.at[i].in->id] ? total_of(d, into, loop->carries.at[i].result, NULL) : NULL;

    g->region = into;
    etch_loop *back = etch_graph_begin(g, loop->name, loop->count, loop->span);
    etch_loop *undone = d->loop_version[loop->id];
    back->forward = undone ? undone : (etch_loop *)(uintptr_t)loop;
    tensor_list *outside = d->parts, outer = {0};
    d->parts = ETCH_NEW_ARRAY(g->arena, d->forward_count, tensor_list);

    uint32_t *kept = ETCH_NEW_ARRAY(g->arena, loop->carries.count, uint32_t), kept_count = 0;
    if (is_recomputed(d, loop, parent))
        clone_region(d, loop->body, back->body);
    for (uint32_t i = 0; i < loop->carries.count; i++) {
        const etch_carry *c = &loop->carries.at[i];
        if (!d->needs[c->in->id])
            continue;
        ETCH_PUSH(g->arena, &d->parts[c->out->id], backward_carry(d, back, version_of(d, c->in), inits[i]));
        kept[kept_count++] = i;
    }
    g->region = back->body;
    derive_region(d, loop->body, back->body);
    g->region = back->body;
    for (uint32_t k = 0; k < kept_count; k++) {
        etch_tensor *in = loop->carries.at[kept[k]].in, *total = total_of(d, back->body, in, NULL);
        back->carries.at[k].out = total ? total : zeros_like(d, in);
    }
    accumulate_outer(d, back, &outer);

    g->region = into;
    d->parts = outside;
    for (uint32_t i = 0; i < back->carries.count; i++) {
        etch_carry *c = &back->carries.at[i];
        c->result = derived_tensor(d, "", c->in, c->in->dtype);
        c->result->of = c->in->of;
        etch_tensor *target = i < kept_count ? loop->carries.at[kept[i]].init : outer.at[i - kept_count];
        contribute(d, into, target, c->result, false);
    }
}

static void derive_region(deriver *d, const etch_region *forward, etch_region *into)
{
    for (uint32_t i = forward->items.count; i-- > 0;) {
        const etch_item *item = &forward->items.at[i];
        d->graph->region = into;
        if (item->op)
            derive_op(d, into, item->op);
        else
            derive_loop(d, item->loop, forward, into);
    }
}

/* ---- units ------------------------------------------------------------------------------------------ */

static etch_unit *unit_at(etch_training *training, uint32_t segment, etch_loop *loop)
{
    for (uint32_t i = 0; i < training->units.count; i++)
        if (training->units.at[i]->segment == segment)
            return training->units.at[i];
    etch_unit *unit = ETCH_NEW(training->graph->arena, etch_unit);
    unit->segment = segment;
    unit->loop = loop;
    ETCH_PUSH(training->graph->arena, &training->units, unit);
    return unit;
}

/* How often a weight exists in one unit: once for each iteration of the loops around its declaration inside
 * the outermost one. */
static etch_expr copies_in_unit(etch_sym *sym, const etch_tensor *weight)
{
    etch_expr copies = etch_int(sym, 1);
    for (const etch_region *r = weight->region; r && r->loop && r->parent->loop; r = r->parent)
        copies = etch_mul(sym, copies, r->loop->count);
    return copies;
}

static void add_weight(deriver *d, etch_unit *unit, etch_tensor *weight, bool *seen)
{
    if (seen[weight->id] || !is_trainable(weight))
        return;
    seen[weight->id] = true;
    ETCH_PUSH(d->graph->arena, &unit->weights, weight);
    ETCH_PUSH(d->graph->arena, &unit->copies, copies_in_unit(d->graph->sym, weight));
}

/* Assigns weights in order of first use. Segments count up over the items of the top level: even between
 * loops, odd for loops. A weight of the top level that a loop uses first is complete only when the loop has
 * been undone: it belongs to the segment before. */
static void unit_region(deriver *d, const etch_region *region, etch_loop *outermost, uint32_t *segment,
                        bool *seen)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item *item = &region->items.at[i];
        if (item->loop) {
            *segment += !outermost;
            unit_region(d, item->loop->body, outermost ? outermost : item->loop, segment, seen);
            *segment += !outermost;
            continue;
        }
        for (uint32_t k = 0; k < item->op->in_count; k++) {
            etch_tensor *w = item->op->ins[k];
            if (w->kind != ETCH_WEIGHT)
                continue;
            bool shared = outermost && !w->region->loop;
            etch_unit *unit = unit_at(d->training, *segment - shared, shared ? NULL : outermost);
            add_weight(d, unit, w, seen);
        }
    }
}

static void sort_units(etch_training *training)
{
    for (uint32_t i = 1; i < training->units.count; i++)
        for (uint32_t k = i; k > 0 && training->units.at[k]->segment < training->units.at[k - 1]->segment;
             k--) {
            etch_unit *swap = training->units.at[k];
            training->units.at[k] = training->units.at[k - 1];
            training->units.at[k - 1] = swap;
        }
}

/* ---- the door --------------------------------------------------------------------------------------- */

static void make_gradients(deriver *d)
{
    etch_graph *g = d->graph;
    for (uint32_t i = 0; i < g->weights.count; i++) {
        etch_tensor *w = g->weights.at[i], *gradient = NULL;
        if (is_trainable(w)) {
            gradient = etch_tensor_new(g, etch_text(g->arena, "d%s", w->name), ETCH_GRADIENT, g->dtypes.grads,
                                       w->dims, w->rank, w->span);
            gradient->of = w;
            gradient->scope = w->scope;
            gradient->region = w->region;
        }
        ETCH_PUSH(g->arena, &d->training->gradients, gradient);
    }
}

static bool loop_exists(const etch_region *region, const char *name)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        if (loop && (strcmp(loop->name, name) == 0 || loop_exists(loop->body, name)))
            return true;
    }
    return false;
}

/* Is it a module that is called, or a tag? */
static bool is_other_part(const etch_graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->scopes.count; i++)
        if (strcmp(graph->scopes.at[i]->module, name) == 0)
            return true;
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        if (has_tag(graph->tensors.at[i], name))
            return true;
    return false;
}

static void check_recompute(deriver *d)
{
    const etch_train *train = &d->training->train;
    for (uint32_t i = 0; i < train->recompute_count; i++) {
        if (loop_exists(d->graph->forward, train->recompute[i]))
            continue;
        d->failed = true;
        if (is_other_part(d->graph, train->recompute[i])) {
            etch_error(d->graph->diags, ETCH_E_LATER, train->span,
                       "recomputation of '%s' is part of the language but is not given meaning yet: loops "
                       "are recomputed",
                       train->recompute[i]);
            continue;
        }
        etch_diag *diag =
            etch_error(d->graph->diags, ETCH_E_RECOMPUTE_UNKNOWN, train->span,
                       "recompute = %s: the model has no loop of this name", train->recompute[i]);
        etch_help(diag, "name a loop of the model (`repeat n as NAME`), or write full or none");
    }
}

/* Inside a step the batch is what one microbatch has of it; under another name it would be all of it. */
static void check_batch(deriver *d, const etch_region *region)
{
    const etch_train *train = &d->training->train;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_op *op = region->items.at[i].op;
        if (!op)
            check_batch(d, region->items.at[i].loop->body);
        for (uint32_t m = 0; op && m < op->attrs.map_count; m++) {
            const etch_dim *from = op->attrs.from[m], *to = op->attrs.to[m];
            if (!train->batch || (from != train->batch && to != train->batch))
                continue;
            d->failed = true;
            etch_error(
                d->graph->diags, ETCH_E_LATER, op->span,
                "%s of %s, which `accumulate` divides into microbatches, is part of the language but is "
                "not given meaning yet",
                op->row->name, train->batch->name);
            break;
        }
    }
}

etch_training *etch_train_derive(etch_graph *graph, const etch_train *train)
{
    etch_training *training = ETCH_NEW(graph->arena, etch_training);
    training->graph = graph;
    training->train = *train;
    if (!training->train.micro)
        training->train.micro = etch_int(graph->sym, 1);
    deriver d = {.graph = graph, .training = training, .forward_count = graph->tensors.count};
    d.needs = ETCH_NEW_ARRAY(graph->arena, d.forward_count, bool);
    d.parts = ETCH_NEW_ARRAY(graph->arena, d.forward_count, tensor_list);
    d.version = ETCH_NEW_ARRAY(graph->arena, d.forward_count, etch_tensor *);
    d.loop_version = ETCH_NEW_ARRAY(graph->arena, graph->loop_count, etch_loop *);
    for (uint32_t i = 0; i < graph->weights.count; i++)
        d.needs[graph->weights.at[i]->id] = is_trainable(graph->weights.at[i]);
    mark_region(&d, graph->forward);
    check_recompute(&d);
    if (training->train.micro != etch_int(graph->sym, 1))
        check_batch(&d, graph->forward);
    make_gradients(&d);
    if (!region_has_loss(graph->forward)) {
        etch_diag *diag =
            etch_error(graph->diags, ETCH_E_NO_LOSS, train->span,
                       "model %s has nothing to train for: no statement is tagged loss", graph->model);
        etch_help(diag, "tag the objective: l[] = cross_entropy(z, labels, over = V)  tag loss");
        return NULL;
    }
    training->backward = ETCH_NEW(graph->arena, etch_region);
    derive_region(&d, graph->forward, training->backward);
    uint32_t segment = 0;
    bool *seen = ETCH_NEW_ARRAY(graph->arena, graph->tensors.count, bool);
    unit_region(&d, graph->forward, NULL, &segment, seen);
    sort_units(training);
    graph->region = graph->forward;
    return d.failed ? NULL : training;
}
