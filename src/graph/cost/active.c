/* Weights that one token uses: of the weights of experts, as many as it chooses experts.
 *
 * A weight is one of experts when every op that reads it works on the slots of experts that the weight has,
 * too. Weights that are made of others (sums with adapters, casts) hand the question on. */
#include "graph/cost/cost_int.h"
#include "graph/ir/cursor.h"

/* The tokens that a dispatch routes: each token uses `share` of what the dim `experts` of weights has. */
typedef struct routing {
    const etch_dim *experts, *slots;
    etch_expr share;
} routing;

typedef struct actives {
    const etch_graph *graph;
    etch_arena *arena;
    ETCH_VEC(routing) routings;
    /* by tensor id */
    bool *made_of_weights;
    /* by tensor id: NULL as long as nothing reads it */
    etch_expr *share;
} actives;

static void add_routing(actives *a, const etch_op *op)
{
    etch_sym *sym = a->graph->sym;
    routing r = {.slots = op->attrs.slots.at[0]};
    etch_expr choices = etch_int(sym, 1);
    for (uint32_t i = 0; i < op->outs[0]->rank; i++) {
        const etch_dim *dim = op->outs[0]->dims[i];
        if (dim != r.slots && !etch_has_dim(op->ins[0], dim))
            r.experts = dim;
    }
    for (uint32_t i = 0; i < op->attrs.to.count; i++)
        if (!etch_dim_among(op->attrs.over, op->attrs.from.at[i]))
            choices = etch_mul(sym, choices, op->attrs.from.at[i]->size);
    r.share = etch_div(sym, choices, r.experts->size);
    ETCH_PUSH(a->arena, &a->routings, r);
}

static void look_ahead(actives *a)
{
    for (etch_cursor at = {.root = a->graph->forward}; etch_cursor_next(&at);) {
        const etch_op *op = at.item->op;
        bool all = op && op->in_count > 0;
        if (!op)
            continue;
        for (uint32_t k = 0; k < op->in_count; k++)
            all = all && a->made_of_weights[op->ins[k]->id];
        a->made_of_weights[op->outs[0]->id] = all;
        if (op->row->routing == ETCH_ROUTING_FILLS)
            add_routing(a, op);
    }
}

/* How much of operand `x` a token uses in this op. */
static etch_expr share_in(const actives *a, const etch_op *op, const etch_tensor *x)
{
    if (a->made_of_weights[op->outs[0]->id] && a->share[op->outs[0]->id])
        return a->share[op->outs[0]->id];
    for (uint32_t i = 0; i < a->routings.count; i++)
        if (etch_has_dim(x, a->routings.at[i].experts) && etch_op_has_dim(op, a->routings.at[i].slots))
            return a->routings.at[i].share;
    return etch_int(a->graph->sym, 1);
}

static void look_back(actives *a, const etch_region *region)
{
    for (uint32_t i = region->items.count; i-- > 0;) {
        const etch_op *op = region->items.at[i].op;
        const etch_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            look_back(a, loop->bodies.at[k]);
        for (uint32_t k = 0; op && k < op->in_count; k++) {
            const etch_tensor *x = op->ins[k];
            if (!a->made_of_weights[x->id])
                continue;
            etch_expr share = share_in(a, op, x), other = a->share[x->id];
            a->share[x->id] = other ? etch_max(a->graph->sym, share, other) : share;
        }
    }
}

etch_expr *etch_active_shares(const etch_graph *graph, etch_arena *arena)
{
    actives a = {.graph = graph, .arena = arena};
    a.made_of_weights = ETCH_NEW_ARRAY(arena, graph->tensors.count, bool);
    a.share = ETCH_NEW_ARRAY(arena, graph->tensors.count, etch_expr);
    for (uint32_t i = 0; i < graph->weights.count; i++)
        a.made_of_weights[graph->weights.at[i]->id] = true;
    look_ahead(&a);
    look_back(&a, graph->forward);
    return a.share;
}
