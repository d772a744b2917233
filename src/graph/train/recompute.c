/* Recomputation: values of the forward pass that are made again in backward instead of being kept.
 *
 * requires: a checked forward graph, called by the derivation in the order in which it undoes ops. provides:
 * copies of forward ops in the backward region, of phase `recompute`.
 *
 * A loop, or a call of a module, is recomputed as a whole from what enters it, right before the first of its
 * ops is undone; what it carries on stays kept where later ops read it. A statement that is chosen by a tag
 * or as module.tensor keeps nothing of what it makes, its result included: an op of it is recomputed when one
 * of its values is first read. Something chosen inside of something chosen is run once more for each. */
#include <stdlib.h>
#include <string.h>

#include "graph/ir/cursor.h"
#include "graph/train/train_int.h"

/* ---- selectors -------------------------------------------------------------------------------------- */

/* Some op of what is selected is in `within`, by op id; NULL: everything is. What has no op is anywhere. */
static bool is_within(const etch_deriver *d, const etch_choice *what, const bool *within)
{
    for (etch_cursor at = {.root = d->graph->forward}; within && etch_cursor_next(&at);)
        if (at.item->op && etch_choice_has(what, at.item->op, at.in))
            return within[at.item->op->id];
    return true;
}

/* Where the call stands: arguments enter and results leave there, whatever loops the module has inside. */
static const etch_region *region_of_call(const etch_region *forward, const etch_scope *scope)
{
    for (etch_cursor at = {.root = forward}; etch_cursor_next(&at);)
        if (at.item->op && at.item->op->scope == scope && at.item->op->edge != ETCH_NO_EDGE)
            return at.in;
    return NULL;
}

/* Of an item of that region: a loop belongs to the call when an op of it does. */
static bool is_of_call(const etch_item *item, const etch_scope *scope)
{
    for (uint32_t k = 0; item->loop && k < item->loop->bodies.count; k++)
        for (uint32_t i = 0; i < item->loop->bodies.at[k]->items.count; i++)
            if (is_of_call(&item->loop->bodies.at[k]->items.at[i], scope))
                return true;
    return item->op && etch_scope_is_inside(item->op->scope, scope);
}

/* Blocks that hold others come before them. */
static void add_block(etch_deriver *d, etch_recompute_block block)
{
    ETCH_PUSH(d->graph->arena, &d->recomputed.blocks, block);
    etch_recompute_block *at = d->recomputed.blocks.at;
    uint32_t i = d->recomputed.blocks.count - 1;
    for (; i > 0 && at[i - 1].end - at[i - 1].first < block.end - block.first; i--)
        at[i] = at[i - 1];
    at[i] = block;
}

static bool has_block(const etch_deriver *d, const etch_scope *scope)
{
    for (uint32_t i = 0; i < d->recomputed.blocks.count; i++)
        if (d->recomputed.blocks.at[i].scope == scope)
            return true;
    return false;
}

static void find_block(etch_deriver *d, const etch_scope *scope)
{
    etch_recompute_block block = {.scope = scope, .region = region_of_call(d->graph->forward, scope)};
    if (!scope->parent)
        block.region = d->graph->forward; /* the model itself */
    if (!block.region || has_block(d, scope))
        return;
    const uint32_t count = block.region->items.count;
    while (block.first < count && !is_of_call(&block.region->items.at[block.first], scope))
        block.first++;
    for (block.end = block.first; block.end < count; block.end++)
        if (!is_of_call(&block.region->items.at[block.end], scope))
            break;
    add_block(d, block);
}

/* Are there iterations of which elaboration has made bodies of their own, because only the first are
 * recomputed? A selector of all loops means those of the top level. */
static bool has_limited(const etch_deriver *d, const char *name, const bool *within)
{
    bool found = false;
    for (uint32_t i = 0; i < d->graph->forward->items.count; i++) {
        etch_loop *loop = d->graph->forward->items.at[i].loop;
        const etch_choice what = {.loop = loop};
        if (loop && (!name || strcmp(loop->name, name) == 0) && is_within(d, &what, within))
            found = found || loop->partly_recomputed;
    }
    return found;
}

static bool is_idle(const etch_deriver *d, const char *name)
{
    for (uint32_t i = 0; i < d->graph->idle_loops.count; i++)
        if (!name || strcmp(d->graph->idle_loops.at[i]->name, name) == 0)
            return true;
    return false;
}

static void report_unlimited(etch_deriver *d, const etch_recomputed *of)
{
    const char *name = of->selector ? of->selector : "full";
    etch_diag *diag =
        etch_error(d->graph->diags, ETCH_E_RECOMPUTE_FIRST, of->span,
                   "recompute = %s(first = ..) counts iterations of loops of a spec that no loop "
                   "is around, and %s",
                   name, of->selector ? "this is none" : "there is none");
    etch_help_selector(d->graph, diag, name, "name such a loop (`repeat n as NAME`), or leave first out");
    d->failed = true;
}

/* Finds what a name selects: loops, where there are none calls, and then statements; false: nothing. */
static bool find_selected(etch_deriver *d, const char *name, const bool *within, bool *op_dropped)
{
    const etch_choices chosen = etch_choose(d->graph, name);
    bool found = false;
    for (uint32_t i = 0; i < chosen.count; i++)
        if (chosen.at[i].loop && is_within(d, &chosen.at[i], within))
            found = d->recomputed.loops[chosen.at[i].loop->id] = true;
    const bool loops = found;
    for (uint32_t i = 0; i < chosen.count && !loops; i++)
        if (chosen.at[i].call && is_within(d, &chosen.at[i], within)) {
            find_block(d, chosen.at[i].call);
            found = true;
        }
    const bool calls = found;
    for (uint32_t i = 0; i < chosen.count && !calls; i++) {
        const etch_tensor *result = chosen.at[i].result;
        if (!result || !result->producer || (within && !within[result->producer->id]))
            continue;
        found = op_dropped[result->producer->id] = true;
        for (uint32_t op = result->first_op; op < result->end_op; op++)
            op_dropped[op] = true;
    }
    return found;
}

/* A value that is not saved is not saved under other names either. */
static void drop_results(etch_deriver *d, const bool *op_dropped)
{
    for (uint32_t i = 0; i < d->forward_count; i++) {
        const etch_tensor *tensor = d->graph->tensors.at[i];
        const etch_op *op = tensor->producer;
        if (op && !tensor->of)
            d->recomputed.dropped[i] = op_dropped[op->id] || (op->row->role == ETCH_ROLE_FREE &&
                                                              d->recomputed.dropped[op->ins[0]->id]);
    }
}

static void report_unknown(etch_deriver *d, const char *name, etch_span span)
{
    etch_diag *diag =
        etch_error(d->graph->diags, ETCH_E_RECOMPUTE_UNKNOWN, span,
                   "recompute = %s: the model has no loop, module, tag or module.tensor of this name", name);
    etch_help_selector(d->graph, diag, name,
                       "name a loop of the model (`repeat n as NAME`), a module that it calls or a tag, or "
                       "write full or none");
    d->failed = true;
}

void etch_recompute_begin(etch_deriver *d)
{
    etch_graph *g = d->graph;
    const etch_train *train = &d->training->train;
    const etch_recompute *recompute = &train->recompute;
    bool *op_dropped = ETCH_NEW_ARRAY(g->arena, g->op_count, bool);
    d->recomputed.loops = ETCH_NEW_ARRAY(g->arena, g->loop_count, bool);
    d->recomputed.wanted = ETCH_NEW_ARRAY(g->arena, g->op_count, bool);
    d->recomputed.dropped = ETCH_NEW_ARRAY(g->arena, d->forward_count, bool);
    d->recomputed.version = ETCH_NEW_ARRAY(g->arena, d->forward_count, etch_tensor *);
    for (uint32_t i = 0; recompute->all && i < g->forward->items.count; i++)
        if (g->forward->items.at[i].loop)
            d->recomputed.loops[g->forward->items.at[i].loop->id] = true;
    for (uint32_t i = 0; i < recompute->selectors.count; i++) {
        const etch_recomputed *of = &recompute->selectors.at[i];
        const bool *within = of->place ? etch_plan_scope_ops(g, train->recompute_plan, of->place) : NULL;
        if (of->first) {
            if (!has_limited(d, of->selector, within) && !is_idle(d, of->selector))
                report_unlimited(d, of);
        } else if (!find_selected(d, of->selector, within, op_dropped))
            report_unknown(d, of->selector, of->span.end ? of->span : train->span);
    }
    drop_results(d, op_dropped);
}

/* ---- copies ----------------------------------------------------------------------------------------- */

etch_tensor *etch_recompute_version(const etch_deriver *d, etch_tensor *tensor)
{
    etch_tensor *copy = tensor->id < d->forward_count ? d->recomputed.version[tensor->id] : NULL;
    return copy ? copy : tensor;
}

static etch_tensor *cloned_tensor(etch_deriver *d, etch_tensor *of)
{
    etch_tensor *copy = etch_tensor_new(d->graph, of->name, of->kind, of->dtype, etch_dims_of(of), of->span);
    uint32_t id = copy->id;
    *copy = *of;
    copy->id = id;
    copy->of = of;
    copy->producer = NULL;
    copy->region = d->graph->region;
    d->recomputed.version[of->id] = copy;
    return copy;
}

static void clone_op(etch_deriver *d, const etch_op *op, etch_region *into)
{
    etch_op *copy = etch_op_new(d->graph, op->row, op->ins, op->in_count, op->out_count, &op->attrs,
                                ETCH_RECOMPUTE, op->span);
    copy->scope = op->scope;
    copy->edge = op->edge;
    copy->forward = (etch_op *)(uintptr_t)op;
    for (uint32_t i = 0; i < op->in_count; i++)
        copy->ins[i] = etch_recompute_read(d, op->ins[i]);
    for (uint32_t i = 0; i < op->out_count; i++)
        copy->outs[i] = cloned_tensor(d, op->outs[i]);
    etch_region_add_op(d->graph, into, copy);
    if (into != d->graph->region) /* inside of the loop that is being made there: before it */
        etch_region_swap_last(into);
}

static void clone_items(etch_deriver *d, const etch_region *region, uint32_t first, uint32_t end,
                        etch_region *into);

/* `inits`: of the loop-carried values. */
static void clone_body(etch_deriver *d, const etch_region *body, etch_tensor *const *inits, etch_region *copy)
{
    etch_graph *g = d->graph;
    g->region = copy;
    copy->count = body->count;
    for (uint32_t c = 0; c < body->carries.count; c++)
        ETCH_PUSH(g->arena, &copy->carries,
                  (etch_carry){.init = inits[c], .in = cloned_tensor(d, body->carries.at[c].in)});
    clone_items(d, body, 0, body->items.count, copy);
    for (uint32_t c = 0; c < body->carries.count; c++)
        copy->carries.at[c].out = etch_recompute_read(d, body->carries.at[c].out);
}

static void clone_loop(etch_deriver *d, const etch_loop *loop, etch_region *into)
{
    etch_graph *g = d->graph;
    const uint32_t count = etch_loop_carries(loop)->count;
    etch_tensor **inits = ETCH_NEW_ARRAY(g->arena, count, etch_tensor *);
    g->region = into;
    for (uint32_t c = 0; c < count; c++)
        inits[c] = etch_recompute_read(d, etch_loop_carries(loop)->at[c].init);
    etch_loop *copy = etch_graph_begin(g, loop->name, loop->count, loop->span);
    copy->repeats = (etch_loop *)(uintptr_t)loop;
    copy->pattern = loop->pattern;
    d->loop_version[loop->id] = copy;
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        clone_body(d, loop->bodies.at[k], inits,
                   k == 0 ? copy->bodies.at[0] : etch_loop_add_body(g, copy, into));
    g->region = into;
    for (uint32_t c = 0; c < count; c++)
        etch_loop_set_result(copy, c, cloned_tensor(d, etch_loop_carries(loop)->at[c].result));
}

/* Copies items of a forward region to the end of `into`: everything is recomputed, also what nobody reads. */
static void clone_items(etch_deriver *d, const etch_region *region, uint32_t first, uint32_t end,
                        etch_region *into)
{
    for (uint32_t i = first; i < end; i++) {
        d->graph->region = into;
        if (region->items.at[i].op)
            clone_op(d, region->items.at[i].op, into);
        else
            clone_loop(d, region->items.at[i].loop, into);
    }
    d->graph->region = into;
}

void etch_recompute_body(etch_deriver *d, const etch_region *body, etch_region *into)
{
    if (d->recomputed.loops[body->loop->id] || body->recomputed)
        clone_items(d, body, 0, body->items.count, into);
}

void etch_recompute_blocks(etch_deriver *d, const etch_region *region, uint32_t item, etch_region *into)
{
    for (uint32_t i = 0; i < d->recomputed.blocks.count; i++) {
        etch_recompute_block *block = &d->recomputed.blocks.at[i];
        if (block->region != region || block->recomputed || item < block->first || item >= block->end)
            continue;
        block->recomputed = true;
        clone_items(d, region, block->first, block->end, into);
    }
}

/* ---- values that were not kept ---------------------------------------------------------------------- */

bool etch_recompute_is_missing(const etch_deriver *d, const etch_tensor *tensor)
{
    return tensor->id < d->forward_count && d->recomputed.dropped[tensor->id] &&
           !d->recomputed.version[tensor->id];
}

typedef ETCH_VEC(const etch_op *) op_list;

static void want_op(etch_deriver *d, op_list *wanted, const etch_op *op)
{
    if (!d->recomputed.wanted[op->id])
        ETCH_PUSH(d->graph->arena, wanted, op);
    d->recomputed.wanted[op->id] = true;
}

static int by_id(const void *a, const void *b)
{
    const etch_op *const *x = a, *const *y = b;
    return etch_order((*x)->id, (*y)->id);
}

/* Makes the value again where its op is undone, and before it what the op reads. */
static void make_again(etch_deriver *d, const etch_tensor *tensor)
{
    op_list wanted = {0};
    want_op(d, &wanted, tensor->producer);
    for (uint32_t i = 0; i < wanted.count; i++)
        for (uint32_t k = 0; k < wanted.at[i]->in_count; k++)
            if (etch_recompute_is_missing(d, wanted.at[i]->ins[k]))
                want_op(d, &wanted, wanted.at[i]->ins[k]->producer);
    qsort(wanted.at, wanted.count, sizeof *wanted.at, by_id);
    for (uint32_t i = 0; i < wanted.count; i++) {
        const etch_loop *loop = wanted.at[i]->outs[0]->region->loop;
        clone_op(d, wanted.at[i], loop ? d->reverse_of[loop->id] : d->training->backward);
    }
}

etch_tensor *etch_recompute_read(etch_deriver *d, etch_tensor *tensor)
{
    if (etch_recompute_is_missing(d, tensor))
        make_again(d, tensor);
    return etch_recompute_version(d, tensor);
}

/* ---- what nobody reads ------------------------------------------------------------------------------ */

typedef struct remains {
    /* by tensor id: what is left makes it */
    bool *made;
    /* by loop */
    bool *loop_left;
} remains;

static bool is_no_copy(const etch_op *op)
{
    return op->phase != ETCH_RECOMPUTE;
}

/* What is left, and what it makes. */
static void note_left(const remains *s, const etch_region *region)
{
    for (etch_cursor at = {.root = region}; etch_cursor_next(&at);) {
        const etch_op *op = at.item->op;
        const etch_loop *loop = at.item->loop;
        for (uint32_t k = 0; op && k < op->out_count; k++)
            s->made[op->outs[k]->id] = true;
        if (loop)
            s->loop_left[loop->id] = true;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            for (uint32_t i = 0; i < loop->bodies.at[k]->carries.count; i++) {
                const etch_carry *c = &loop->bodies.at[k]->carries.at[i];
                s->made[c->in->id] = s->made[c->result->id] = true;
            }
    }
}

/* Readers of a copy that was left out read its original. */
static void point_back(const remains *s, const etch_graph *graph, const etch_region *region)
{
    for (etch_cursor at = {.root = region}; etch_cursor_next(&at);) {
        etch_loop *loop = at.item->loop;
        while (loop && loop->forward && loop->forward->repeats && !s->loop_left[loop->forward->id])
            loop->forward = loop->forward->repeats;
    }
    for (uint32_t i = 0; i < graph->tensors.count; i++) {
        etch_tensor *tensor = graph->tensors.at[i];
        while (tensor->of && tensor->of->of && !s->made[tensor->of->id])
            tensor->of = tensor->of->of;
    }
}

void etch_recompute_end(etch_deriver *d)
{
    if (!d->training->train.recompute.needed)
        return;
    etch_arena *arena = d->graph->arena;
    const uint32_t tensors = d->graph->tensors.count;
    const etch_sift sift = {arena, is_no_copy, false, ETCH_NEW_ARRAY(arena, tensors, bool)};
    etch_region_sift(&sift, d->training->backward);
    const remains s = {ETCH_NEW_ARRAY(arena, tensors, bool),
                       ETCH_NEW_ARRAY(arena, d->graph->loop_count, bool)};
    note_left(&s, d->training->backward);
    point_back(&s, d->graph, d->training->backward);
}
