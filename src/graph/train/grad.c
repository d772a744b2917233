/* Derivation of the backward pass.
 *
 * requires: a checked forward graph. provides: the backward region, gradients, weight groups.
 *
 * Reverse mode over regions. Contributions to the cotangent of a value are collected while its consumers are
 * undone; when its producer is reached they become one op `add_cotangents`, and placement decides how they
 * are added and moved. Gradients of weights are not collected: each contribution is added into the
 * accumulator in place. A loop is undone by a loop that runs the iterations backwards; with recomputation its
 * body begins with a copy of the forward body; each class of iterations is undone by a body of its own. Only
 * what a trainable weight needs is derived. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "graph/ir/cursor.h"
#include "graph/train/train_int.h"

etch_expr etch_training_size(const etch_training *training, const etch_dim *dim)
{
    etch_sym *sym = training->graph->sym;
    const bool divided = training->train.batch && etch_dim_is_packed_from(dim, training->train.batch);
    return divided ? etch_div(sym, dim->size, training->train.micro) : dim->size;
}

etch_expr etch_size_in_training(const void *training, const etch_dim *dim)
{
    return etch_training_size(training, dim);
}

static bool is_loss(const etch_tensor *tensor)
{
    return etch_has_tag(tensor, "loss");
}

static bool is_trainable(const etch_tensor *tensor)
{
    return tensor->kind == ETCH_WEIGHT && !tensor->frozen;
}

/* ---- which values need a cotangent? ----------------------------------------------------------------- */

/* True when that was not known yet. */
static bool need(etch_deriver *d, const etch_tensor *tensor)
{
    const bool known = d->needs[tensor->id];
    d->needs[tensor->id] = true;
    return !known;
}

static bool mark_op(etch_deriver *d, const etch_op *op)
{
    bool any = false, changed = false;
    for (uint32_t i = 0; i < op->in_count; i++)
        any = any || d->needs[op->ins[i]->id];
    uint32_t results = etch_row_is_several(op->row) ? op->out_count : 1;
    for (uint32_t i = 0; i < results && any && op->row->grads; i++)
        changed = need(d, op->outs[i]) || changed;
    return changed;
}

/* A loop-carried value needs one when its first or any later version does, of any class. */
static bool mark_loop(etch_deriver *d, const etch_loop *loop)
{
    bool changed = false;
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++) {
        bool any = d->needs[etch_loop_carries(loop)->at[i].init->id];
        for (uint32_t k = 0; k < loop->bodies.count; k++)
            any = any || d->needs[loop->bodies.at[k]->carries.at[i].out->id];
        for (uint32_t k = 0; any && k < loop->bodies.count; k++)
            changed = need(d, loop->bodies.at[k]->carries.at[i].in) || changed;
        changed = (any && need(d, etch_loop_carries(loop)->at[i].result)) || changed;
    }
    return changed;
}

static void mark_all(etch_deriver *d)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (etch_cursor at = {.root = d->graph->forward}; etch_cursor_next(&at);)
            changed = (at.item->op ? mark_op(d, at.item->op) : mark_loop(d, at.item->loop)) || changed;
    }
}

/* ---- contributions ---------------------------------------------------------------------------------- */

/* Every value has a derived one: their names take no format. */
static const char *derived_name(etch_arena *arena, const char *prefix, const char *name)
{
    const size_t before = strlen(prefix), length = strlen(name);
    char *text = etch_alloc(arena, before + length + 1);
    memcpy(text, prefix, before);
    memcpy(text + before, name, length);
    return text;
}

static etch_tensor *derived_tensor(etch_deriver *d, const char *prefix, etch_tensor *of, etch_dtype dtype)
{
    etch_graph *g = d->graph;
    etch_tensor *t = etch_tensor_new(g, derived_name(g->arena, prefix, of->name), ETCH_ACT, dtype,
                                     etch_dims_of(of), of->span);
    t->of = of;
    t->scope = of->scope;
    return t;
}

/* Cotangents are sums and are no narrower than activations, whatever a value was cast to. */
static etch_dtype cotangent_dtype(const etch_deriver *d, const etch_tensor *of)
{
    const etch_dtype usual = d->graph->dtypes.act;
    return etch_dtype_bytes(of->dtype) < etch_dtype_bytes(usual) ? usual : of->dtype;
}

/* An op of the backward pass, placed in `region`; its outs are still to be filled. */
static etch_op *derived_op(etch_deriver *d, const etch_row *row, etch_tensor *const *ins, uint32_t in_count,
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

/* Integers have none. Reported once: what an integer is made from is mostly one, too. */
static bool has_gradient(etch_deriver *d, const etch_tensor *target)
{
    const etch_graph *g = d->graph;
    if (target->dtype < ETCH_I64)
        return true;
    while (target->producer && etch_op_is_view(target->producer)) /* named by whoever wrote it */
        target = target->producer->ins[0];
    if (!d->found_integer) {
        etch_diag *diag = etch_error(g->diags, ETCH_E_INTEGER_GRADIENT, target->span,
                                     "%s: %s is an integer, but the loss needs its gradient",
                                     etch_tensor_text(g->arena, target), etch_dtype_name(target->dtype));
        if (target->kind == ETCH_WEIGHT)
            etch_help(diag, "give it another dtype, or keep it from being trained: tag frozen");
        else
            etch_help(diag, "give it another dtype: it depends on weights that are trained");
    }
    d->found_integer = d->failed = true;
    return false;
}

static etch_tensor *gradient_of(const etch_deriver *d, const etch_tensor *weight)
{
    const etch_graph *g = d->graph;
    for (uint32_t i = 0; i < g->weights.count; i++)
        if (g->weights.at[i] == weight)
            return d->training->gradients.at[i];
    return NULL;
}

static void add_term(etch_deriver *d, const etch_tensor *to, etch_tensor *term)
{
    etch_tensor_list *terms = &d->terms->to[to->id];
    if (terms->count == 0)
        ETCH_PUSH(d->graph->arena, &d->terms->ids, to->id);
    ETCH_PUSH(d->graph->arena, terms, term);
}

static etch_cotangent_terms *begin_terms(etch_deriver *d)
{
    if (d->idle.count > 0)
        return d->idle.at[--d->idle.count];
    etch_cotangent_terms *terms = ETCH_NEW(d->graph->arena, etch_cotangent_terms);
    terms->to = ETCH_NEW_ARRAY(d->graph->arena, d->forward_count, etch_tensor_list);
    return terms;
}

static void end_terms(etch_deriver *d, etch_cotangent_terms *terms)
{
    for (uint32_t i = 0; i < terms->ids.count; i++)
        terms->to[terms->ids.at[i]] = (etch_tensor_list){0};
    terms->ids.count = 0;
    ETCH_PUSH(d->graph->arena, &d->idle, terms);
}

/* Adds `term` to the cotangent of `target`; a weight is the same weight where a module has it as an argument.
 * `fresh`: nothing else uses `term`, so that its producer can add
 * into a gradient itself. */
static void contribute(etch_deriver *d, etch_region *region, etch_tensor *target, etch_tensor *term,
                       bool fresh)
{
    if (!d->needs[target->id] || !has_gradient(d, target))
        return;
    if (etch_named_root(target)->kind == ETCH_WEIGHT)
        target = etch_named_root(target);
    if (target->kind != ETCH_WEIGHT) {
        add_term(d, target, term);
        return;
    }
    if (!fresh) {
        etch_op *op = derived_op(d, etch_row_for(d->graph, ETCH_USE_ACCUMULATION), &term, 1, 1, NULL);
        op->scope = target->scope;
        term = op->outs[0] = derived_tensor(d, "d", target, d->graph->dtypes.grads);
        etch_region_add_op(d->graph, region, op);
    }
    term->dtype = d->graph->dtypes.grads;
    term->adds_to = gradient_of(d, target);
}

/* The cotangent of a forward value: the sum of what was contributed so far. NULL when there is nothing. */
static etch_tensor *total_of(etch_deriver *d, etch_region *region, etch_tensor *tensor,
                             const etch_op *forward)
{
    etch_tensor_list *terms = &d->terms->to[tensor->id];
    if (terms->count == 0)
        return NULL;
    etch_op *op = derived_op(d, etch_row_for(d->graph, ETCH_USE_TOTAL), terms->at, terms->count, 1, NULL);
    op->scope = forward ? forward->scope : tensor->scope;
    op->span = tensor->span;
    op->outs[0] = derived_tensor(d, "d", etch_recompute_version(d, tensor), cotangent_dtype(d, tensor));
    op->outs[0]->of = etch_recompute_version(d, tensor);
    etch_region_add_op(d->graph, region, op);
    *terms = (etch_tensor_list){0};
    return op->outs[0];
}

/* ---- one op ----------------------------------------------------------------------------------------- */

/* The operand `xN` or result `yN`; NULL: it is not given. */
static etch_tensor *named_value(const etch_op *op, const char *name)
{
    const uint32_t n = (uint32_t)(name[1] - '0'), index = *name == 'x' ? etch_op_index(op, n) : n;
    if (*name == 'x')
        return index != UINT32_MAX ? op->ins[index] : NULL;
    return n < op->out_count ? op->outs[n] : NULL;
}

/* What a row of backward finds out about a result of forward before the cotangent is looked at. */
static etch_tensor *found_by(etch_deriver *d, etch_region *region, const etch_op *op, const char *name,
                             const etch_tensor_list *args, uint32_t skip)
{
    const etch_row *row = etch_row_named(d->graph->table, name);
    etch_op *made = derived_op(d, row, args->at + skip, args->count - skip, 1, op);
    made->outs[0] = derived_tensor(d, derived_name(d->graph->arena, name, " of "), op->outs[0], ETCH_F32);
    etch_region_add_op(d->graph, region, made);
    return made->outs[0];
}

/* Collects the operands that `args` names; returns the bits of those that are not given. */
static uint32_t gather_args(etch_deriver *d, etch_region *region, const etch_op *op, const char *args,
                            const etch_tensor_list *cotangents, uint32_t target, etch_tensor_list *out)
{
    etch_arena *arena = d->graph->arena;
    uint32_t absent = 0, slot = 0;
    for (const char *at = args; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        for (uint32_t i = 0; *at == 'd' && i < cotangents->count; i++)
            if (length == 1 || i == (uint32_t)(at[1] - '0'))
                ETCH_PUSH(arena, out, cotangents->at[i]);
        etch_tensor *value = *at == 'x' || *at == 'y' ? named_value(op, at) : NULL;
        if (*at == '@')
            value = found_by(d, region, op, at + 1, out, cotangents->count);
        else if (value && at[2] == '|')
            value = etch_either_read(d, value, named_value(op, at + 3), out->count);
        else if (value)
            value = etch_recompute_read(d, value);
        if (value)
            ETCH_PUSH(arena, out, value);
        else if (*at == 'x')
            absent |= 1u << slot;
        else if (*at == 'o')
            for (uint32_t i = 0; i < op->in_count; i++)
                if (i != target)
                    ETCH_PUSH(arena, out, etch_recompute_read(d, op->ins[i]));
        at += length;
        slot++;
    }
    return absent;
}

static bool same_dims(const etch_tensor *a, const etch_tensor *b)
{
    return etch_dims_same(etch_dims_of(a), etch_dims_of(b));
}

/* A part of what a concat has made has the dims along which the operand was broadcast. */
static void give_part_dims(etch_deriver *d, const etch_op *made, uint32_t term)
{
    etch_dim_list dims = {0};
    etch_part_dims(made, made->ins[0], term, d->graph, &dims);
    made->outs[term]->dims = dims.at;
    made->outs[term]->rank = dims.count;
}

/* The cotangent of an operand that was broadcast. */
static etch_tensor *sum_to(etch_deriver *d, etch_region *region, etch_tensor *term, etch_tensor *target)
{
    etch_op *op = derived_op(d, etch_row_for(d->graph, ETCH_USE_REDUCTION), &term, 1, 1, NULL);
    op->scope = target->scope;
    op->span = target->span;
    op->outs[0] = derived_tensor(d, "d", target, cotangent_dtype(d, target));
    etch_region_add_op(d->graph, region, op);
    return op->outs[0];
}

/* Calls the rule's row for the operands `targets`. */
static void apply_rule(etch_deriver *d, etch_region *region, const etch_op *op, const etch_grad *rule,
                       const etch_tensor_list *cotangents, const uint32_t *targets, uint32_t count)
{
    const etch_row *row = etch_row_named(d->graph->table, rule->row);
    etch_tensor_list args = {0};
    bool any = false;
    for (uint32_t i = 0; i < count; i++)
        any = any || d->needs[op->ins[targets[i]]->id];
    if (!any)
        return;
    uint32_t absent = gather_args(d, region, op, rule->args, cotangents, targets[0], &args);
    if (row->elide_same && same_dims(args.at[0], op->ins[targets[0]])) {
        contribute(d, region, op->ins[targets[0]], args.at[0], false);
        return;
    }
    etch_op *made = derived_op(d, row, args.at, args.count, count, op);
    etch_either_add(d, made);
    made->attrs.absent = absent;
    if (row->inverts_map) {
        const etch_dim_view from = made->attrs.from;
        made->attrs.from = made->attrs.to;
        made->attrs.to = from;
    }
    for (uint32_t i = 0; i < count; i++) {
        etch_tensor *target = op->ins[targets[i]];
        made->outs[i] = derived_tensor(d, "d", target, cotangent_dtype(d, target));
        made->outs[i]->optional_result = !d->needs[target->id];
        if (etch_row_is_several(row))
            give_part_dims(d, made, i);
    }
    etch_region_add_op(d->graph, region, made);
    for (uint32_t i = 0; i < count; i++) {
        etch_tensor *target = op->ins[targets[i]], *term = made->outs[i];
        bool fresh = row->role != ETCH_ROLE_FREE; /* a view is no node, so it adds into nothing */
        if (etch_row_is_several(row) && d->needs[target->id] && !same_dims(term, target)) {
            term = sum_to(d, region, term, target);
            fresh = true;
        }
        contribute(d, region, target, term, fresh);
    }
}

static etch_tensor *zeros_like(etch_deriver *d, etch_tensor *of)
{
    etch_tensor *zeros = derived_tensor(d, "d", of, cotangent_dtype(d, of));
    zeros->kind = ETCH_CONSTANT;
    return zeros;
}

/* The cotangent of the result; of parts those of all, zeros where nothing was contributed. False when there
 * is none at all. */
static bool collect_cotangents(etch_deriver *d, etch_region *region, const etch_op *op, etch_tensor_list *out)
{
    bool any = false;
    uint32_t targets = 0;
    for (uint32_t i = 0; i < op->in_count; i++)
        targets += d->needs[op->ins[i]->id];
    for (uint32_t i = 0; i < (etch_row_is_several(op->row) ? op->out_count : 1); i++) {
        etch_tensor *total = total_of(d, region, op->outs[i], op);
        if (total)
            total->producer->is_shared = targets > 1;
        any = any || total;
        ETCH_PUSH(d->graph->arena, out, total ? total : zeros_like(d, op->outs[i]));
    }
    return any;
}

static void derive_op(etch_deriver *d, etch_region *region, const etch_op *op)
{
    etch_graph *g = d->graph;
    etch_tensor *result = op->outs[0];
    if (is_loss(result)) {
        if (result->rank)
            etch_error(g->diags, ETCH_E_LOSS_SHAPE, result->span,
                       "%s is tagged loss but has dims; a loss is a scalar", result->name),
                d->failed = true;
        etch_tensor *seed =
            etch_tensor_new(g, "one", ETCH_CONSTANT, result->dtype, (etch_dim_view){0}, result->span);
        add_term(d, result, seed);
    }
    etch_tensor_list cotangents = {0};
    if (!d->needs[result->id] || !collect_cotangents(d, region, op, &cotangents))
        return;
    uint32_t *targets = ETCH_NEW_ARRAY(g->arena, op->in_count, uint32_t);
    for (const etch_grad *rule = op->row->grads; rule->row; rule++) {
        uint32_t count = 0;
        const bool added = strcmp(rule->into, "added") == 0, taken = strcmp(rule->into, "taken") == 0;
        if (added || taken || strcmp(rule->into, "each") == 0) {
            for (uint32_t i = 0; i < op->in_count; i++)
                if (!(op->attrs.taken & 1u << i ? added : taken))
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

/* ---- loops ------------------------------------------------------------------------------------------ */

static void derive_region(etch_deriver *d, const etch_region *forward, etch_region *into);

/* Is there an objective in the region? `trained`: that depends on a trainable weight. */
static bool has_loss(const etch_deriver *d, const etch_region *region, bool trained)
{
    for (etch_cursor at = {.root = region}; etch_cursor_next(&at);) {
        const etch_tensor *result = at.item->op ? at.item->op->outs[0] : NULL;
        if (result && is_loss(result) && (!trained || d->needs[result->id]))
            return true;
    }
    return false;
}

static bool loop_trains(const etch_deriver *d, const etch_loop *loop)
{
    for (uint32_t i = 0; i < loop->bodies.count; i++)
        if (has_loss(d, loop->bodies.at[i], true))
            return true;
    return false;
}

static bool loop_matters(const etch_deriver *d, const etch_loop *loop)
{
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        if (d->terms->to[etch_loop_carries(loop)->at[i].result->id].count)
            return true;
    return loop_trains(d, loop);
}

static bool op_matters(const etch_deriver *d, const etch_op *op)
{
    const etch_tensor *result = op->outs[0];
    return d->needs[result->id] && (d->terms->to[result->id].count || is_loss(result));
}

/* A value that the backward loop hands from iteration to iteration: the cotangent of `of`. */
static etch_tensor *backward_carry(etch_deriver *d, etch_region *back, etch_tensor *of, etch_tensor *init)
{
    etch_tensor *in = derived_tensor(d, "d", of, cotangent_dtype(d, of));
    ETCH_PUSH(d->graph->arena, &back->carries, (etch_carry){.init = init, .in = in});
    return in;
}

/* A loop that is being undone: body by body, each with its own contributions. */
typedef struct undoing {
    const etch_loop *loop;
    etch_loop *back;
    /* the region that it is in, and its terms */
    etch_region *into;
    etch_cotangent_terms *outside;
    /* by loop-carried value: the cotangent of its result, or NULL */
    etch_tensor **inits;
    /* by class */
    etch_cotangent_terms **terms;
} undoing;

typedef ETCH_VEC(uint32_t) ids_list;

/* Makes the terms of a class, in its backward body, those that contributions are added to. */
static etch_region *enter_class(etch_deriver *d, const undoing *u, uint32_t class)
{
    d->terms = u->terms[class];
    return d->graph->region = u->back->bodies.at[class];
}

/* Derives one body. Its carries are the values that need a cotangent, in the order of the loop. */
static void derive_body(etch_deriver *d, const undoing *u, uint32_t class)
{
    const etch_region *body = u->loop->bodies.at[class];
    etch_region *back = enter_class(d, u, class);
    back->count = body->count;
    d->reverse_of[u->loop->id] = back;
    etch_recompute_body(d, body, back);
    d->graph->region = back;
    for (uint32_t i = 0; i < body->carries.count; i++) {
        const etch_carry *c = &body->carries.at[i];
        if (d->needs[c->in->id])
            add_term(d, c->out, backward_carry(d, back, etch_recompute_version(d, c->in), u->inits[i]));
    }
    derive_region(d, body, back);
    d->graph->region = back;
    for (uint32_t i = 0, k = 0; i < body->carries.count; i++) {
        etch_tensor *in = body->carries.at[i].in;
        if (!d->needs[in->id])
            continue;
        etch_tensor *total = total_of(d, back, in, NULL);
        back->carries.at[k++].out = total ? total : zeros_like(d, in);
    }
}

/* The values from outside the loop that some class contributes to, each once, by id. */
static ids_list outer_ids(const etch_deriver *d, const undoing *u)
{
    ids_list ids = {0};
    for (uint32_t k = 0; k < u->loop->bodies.count; k++)
        for (uint32_t i = 0; i < u->terms[k]->ids.count; i++) {
            const uint32_t id = u->terms[k]->ids.at[i];
            if (u->terms[k]->to[id].count)
                ETCH_PUSH(d->graph->arena, &ids, id);
        }
    ids.count = etch_sort_ids(ids.at, ids.count);
    return ids;
}

/* The cotangent of a value from outside, or NULL, before the loop, the last item of its region so far. */
static etch_tensor *total_before(etch_deriver *d, const undoing *u, etch_tensor *tensor)
{
    d->terms = u->outside;
    etch_tensor *total = total_of(d, u->into, tensor, NULL);
    if (total)
        etch_region_swap_last(u->into);
    return total;
}

/* Cotangents of values from outside the loop: each iteration adds its part, if it has one, to what earlier
 * ones and those that read the value after the loop have left. So a pipeline has one of them to send. */
static void accumulate_outer(etch_deriver *d, const undoing *u, etch_tensor_list *outer)
{
    const ids_list ids = outer_ids(d, u);
    for (uint32_t i = 0; i < ids.count; i++) {
        etch_tensor *tensor = d->graph->tensors.at[ids.at[i]];
        etch_tensor *before = total_before(d, u, tensor);
        for (uint32_t k = 0; k < u->loop->bodies.count; k++) {
            etch_region *back = enter_class(d, u, k);
            const bool adds = d->terms->to[tensor->id].count > 0;
            etch_tensor *in = backward_carry(d, back, etch_recompute_version(d, tensor), before), *out = in;
            if (adds) {
                add_term(d, tensor, in);
                out = total_of(d, back, tensor, NULL);
            }
            back->carries.at[back->carries.count - 1].out = out;
        }
        ETCH_PUSH(d->graph->arena, outer, tensor);
    }
}

/* The backward loop, without its bodies' contents. */
static etch_loop *begin_backward(etch_deriver *d, const etch_loop *loop, etch_region *into)
{
    d->graph->region = into;
    etch_loop *back = etch_graph_begin(d->graph, loop->name, loop->count, loop->span);
    etch_loop *undone = d->loop_version[loop->id];
    back->forward = undone ? undone : (etch_loop *)(uintptr_t)loop;
    back->pattern = loop->pattern;
    for (uint32_t k = 1; k < loop->bodies.count; k++)
        etch_loop_add_body(d->graph, back, into);
    return back;
}

/* The i-th value that leaves the backward loop: the cotangent of what `target` was when the loop began. */
static void leave_backward(etch_deriver *d, const etch_loop *back, uint32_t i, etch_tensor *target,
                           etch_region *into)
{
    const etch_tensor *in = etch_loop_carries(back)->at[i].in;
    etch_tensor *result = derived_tensor(d, "", (etch_tensor *)(uintptr_t)in, in->dtype);
    result->of = in->of;
    etch_loop_set_result(back, i, result);
    contribute(d, into, target, result, false);
}

static void derive_loop(etch_deriver *d, const etch_loop *loop, etch_region *into)
{
    etch_graph *g = d->graph;
    if (!loop_matters(d, loop))
        return;
    const uint32_t classes = loop->bodies.count, count = etch_loop_carries(loop)->count;
    undoing u = {.loop = loop, .into = into, .outside = d->terms};
    u.inits = ETCH_NEW_ARRAY(g->arena, count, etch_tensor *);
    u.terms = ETCH_NEW_ARRAY(g->arena, classes, etch_cotangent_terms *);
    etch_tensor_list carried = {0};
    for (uint32_t i = 0; i < count; i++) {
        const etch_carry *c = &etch_loop_carries(loop)->at[i];
        u.inits[i] = d->needs[c->in->id] ? total_of(d, into, c->result, NULL) : NULL;
        if (d->needs[c->in->id])
            ETCH_PUSH(g->arena, &carried, c->init);
    }
    u.back = begin_backward(d, loop, into);
    for (uint32_t k = 0; k < classes; k++) {
        u.terms[k] = begin_terms(d);
        derive_body(d, &u, k);
    }
    accumulate_outer(d, &u, &carried);
    g->region = into;
    d->terms = u.outside;
    for (uint32_t k = 0; k < classes; k++)
        end_terms(d, u.terms[k]);
    for (uint32_t i = 0; i < carried.count; i++)
        leave_backward(d, u.back, i, carried.at[i], into);
}

static void derive_region(etch_deriver *d, const etch_region *forward, etch_region *into)
{
    for (uint32_t i = forward->items.count; i-- > 0;) {
        const etch_item *item = &forward->items.at[i];
        d->graph->region = into;
        if (item->op ? op_matters(d, item->op) : loop_matters(d, item->loop))
            etch_recompute_blocks(d, forward, i, into);
        if (item->op)
            derive_op(d, into, item->op);
        else
            derive_loop(d, item->loop, into);
    }
}

/* ---- weight groups ------------------------------------------------------------------------------------- */

/* `body`: of an outermost loop, or NULL. */
static etch_weight_group *group_at(etch_training *training, uint32_t segment, etch_region *body)
{
    for (uint32_t i = 0; i < training->weight_groups.count; i++)
        if (training->weight_groups.at[i]->segment == segment && training->weight_groups.at[i]->body == body)
            return training->weight_groups.at[i];
    etch_weight_group *weight_group = ETCH_NEW(training->graph->arena, etch_weight_group);
    weight_group->segment = segment;
    weight_group->loop = body ? body->loop : NULL;
    weight_group->body = body;
    ETCH_PUSH(training->graph->arena, &training->weight_groups, weight_group);
    return weight_group;
}

static void add_weight(etch_deriver *d, etch_weight_group *weight_group, etch_tensor *weight, bool *seen)
{
    if (seen[weight->id])
        return;
    seen[weight->id] = true;
    ETCH_PUSH(d->graph->arena, &weight_group->weights, weight);
    ETCH_PUSH(d->graph->arena, &weight_group->copies, etch_copies_in_group(d->graph->sym, weight));
}

/* Assigns weights in order of first use. Segments count up over the items of the top level: even between
 * loops, odd for loops. A weight of the top level that a loop uses first is complete only when the loop has
 * been undone: it belongs to the segment before. */
static void add_weights(etch_deriver *d, const etch_op *op, uint32_t segment, etch_region *outermost,
                        bool *seen)
{
    for (uint32_t k = 0; op->row->use != ETCH_USE_COPY && k < op->in_count; k++) {
        etch_tensor *w = etch_named_root(op->ins[k]);
        const bool shared = outermost && !w->region->loop;
        if (w->kind == ETCH_WEIGHT)
            add_weight(d, group_at(d->training, segment - shared, shared ? NULL : outermost), w, seen);
    }
}

/* `seen`: is in a group, or in none because it is not trained. */
static void find_groups(etch_deriver *d)
{
    const etch_graph *g = d->graph;
    const etch_region *forward = g->forward;
    bool *seen = ETCH_NEW_ARRAY(g->arena, g->tensors.count, bool);
    for (uint32_t i = 0; i < g->weights.count; i++)
        seen[g->weights.at[i]->id] = !d->training->gradients.at[i];
    for (uint32_t i = 0, segment = 0; i < forward->items.count; i++) {
        const etch_item *item = &forward->items.at[i];
        if (item->op)
            add_weights(d, item->op, segment, NULL, seen);
        for (uint32_t k = 0; item->loop && k < item->loop->bodies.count; k++)
            for (etch_cursor at = {.root = item->loop->bodies.at[k]}; etch_cursor_next(&at);)
                if (at.item->op)
                    add_weights(d, at.item->op, segment + 1, item->loop->bodies.at[k], seen);
        segment += item->loop ? 2 : 0;
    }
}

static void sort_groups(etch_training *training)
{
    for (uint32_t i = 1; i < training->weight_groups.count; i++)
        for (uint32_t k = i;
             k > 0 && training->weight_groups.at[k]->segment < training->weight_groups.at[k - 1]->segment;
             k--) {
            etch_weight_group *swap = training->weight_groups.at[k];
            training->weight_groups.at[k] = training->weight_groups.at[k - 1];
            training->weight_groups.at[k - 1] = swap;
        }
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

static void make_gradients(etch_deriver *d)
{
    etch_graph *g = d->graph;
    for (uint32_t i = 0; i < g->weights.count; i++) {
        etch_tensor *w = g->weights.at[i], *gradient = NULL;
        if (is_trainable(w)) {
            gradient = etch_tensor_new(g, derived_name(g->arena, "d", w->name), ETCH_GRADIENT,
                                       g->dtypes.grads, etch_dims_of(w), w->span);
            gradient->of = w;
            gradient->scope = w->scope;
            gradient->region = w->region;
        }
        ETCH_PUSH(g->arena, &d->training->gradients, gradient);
    }
}

/* Weights whose gradient nothing adds to are not trained: no step of the optimizer changes them. */
static void leave_untrained(etch_deriver *d)
{
    const etch_graph *g = d->graph;
    bool *added = ETCH_NEW_ARRAY(g->arena, g->tensors.count, bool);
    for (etch_cursor at = {.root = d->training->backward}; etch_cursor_next(&at);)
        for (uint32_t k = 0; at.item->op && k < at.item->op->out_count; k++)
            if (at.item->op->outs[k]->adds_to)
                added[at.item->op->outs[k]->adds_to->id] = true;
    for (uint32_t i = 0; i < g->weights.count; i++) {
        const etch_tensor *weight = g->weights.at[i];
        etch_tensor **gradient = &d->training->gradients.at[i];
        if (!*gradient || added[(*gradient)->id])
            continue;
        *gradient = NULL;
        if (d->failed || weight->is_unused)
            continue;
        etch_diag *diag =
            etch_remark(g->diags, ETCH_E_NO_GRADIENT, weight->span,
                        "%s has no gradient, and is not trained: the loss does not depend on it, "
                        "or only through a choice or stop_gradient",
                        weight->name);
        etch_help(diag, "tag it frozen if that is meant");
    }
}

/* A model without weights trains nothing, and says so by itself; buffers are none. */
static bool is_all_frozen(const etch_graph *graph)
{
    bool has_weights = false;
    for (uint32_t i = 0; i < graph->weights.count; i++) {
        if (is_trainable(graph->weights.at[i]))
            return false;
        has_weights = has_weights || !graph->weights.at[i]->buffer;
    }
    return has_weights;
}

etch_training *etch_train_derive(etch_graph *graph, const etch_train *train)
{
    etch_training *training = ETCH_NEW(graph->arena, etch_training);
    training->graph = graph;
    training->train = *train;
    if (!training->train.micro)
        training->train.micro = etch_int(graph->sym, 1);
    etch_deriver d = {.graph = graph, .training = training, .forward_count = graph->tensors.count};
    d.needs = ETCH_NEW_ARRAY(graph->arena, d.forward_count, bool);
    d.terms = begin_terms(&d);
    d.loop_version = ETCH_NEW_ARRAY(graph->arena, graph->loop_count, etch_loop *);
    d.reverse_of = ETCH_NEW_ARRAY(graph->arena, graph->loop_count, etch_region *);
    d.failed = !etch_freeze(graph, train) || !etch_train_follow_batch(graph, &training->train);
    for (uint32_t i = 0; i < graph->weights.count; i++)
        d.needs[graph->weights.at[i]->id] = is_trainable(graph->weights.at[i]);
    mark_all(&d);
    etch_recompute_begin(&d);
    make_gradients(&d);
    if (!has_loss(&d, graph->forward, false)) {
        etch_diag *diag =
            etch_error(graph->diags, ETCH_E_NO_LOSS, train->span,
                       "model %s has nothing to train for: no statement is tagged loss", graph->model);
        etch_help(diag, "tag the objective: l[] = cross_entropy(z, labels, over = V)  tag loss");
        return NULL;
    }
    if (is_all_frozen(graph)) {
        etch_error(graph->diags, ETCH_E_NOTHING_TO_TRAIN, train->span,
                   "all weights of model %s are frozen: nothing is left to train", graph->model);
        return NULL;
    }
    training->backward = ETCH_NEW(graph->arena, etch_region);
    derive_region(&d, graph->forward, training->backward);
    etch_either_end(&d);
    etch_recompute_end(&d);
    etch_made_find(training);
    leave_untrained(&d);
    find_groups(&d);
    sort_groups(training);
    etch_matrices_find(training);
    for (uint32_t i = 0; i < training->weight_groups.count; i++)
        training->weight_groups.at[i]->id = i;
    graph->region = graph->forward;
    return d.failed ? NULL : training;
}
