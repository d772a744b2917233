/* Weights that make no difference: nothing reads them, or only what no result of the model depends on. */
#include "graph/ir/cursor.h"
#include "graph/ir/ir_int.h"

/* A loop-carried value: as it enters an iteration, or leaves the last one. */
typedef struct carried {
    /* NULL: neither */
    const etch_loop *loop;
    uint32_t carry;
} carried;

typedef struct search {
    const etch_graph *graph;
    /* by tensor id: does a result depend on it? */
    bool *live;
    /* by tensor id */
    carried *carried;
    /* by tensor id: the first op that reads it */
    const etch_op **reader;
    ETCH_VEC(etch_tensor *) work;
} search;

static void look_at(search *s, etch_tensor *tensor)
{
    if (!tensor || s->live[tensor->id])
        return;
    s->live[tensor->id] = true;
    ETCH_PUSH(s->graph->arena, &s->work, tensor);
}

static void survey(search *s)
{
    for (etch_cursor at = {.root = s->graph->forward}; etch_cursor_next(&at);) {
        const etch_op *op = at.item->op;
        const etch_loop *loop = at.item->loop;
        for (uint32_t k = 0; op && k < op->in_count; k++)
            if (!s->reader[op->ins[k]->id])
                s->reader[op->ins[k]->id] = op;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            for (uint32_t i = 0; i < loop->bodies.at[k]->carries.count; i++) {
                const etch_carry *c = &loop->bodies.at[k]->carries.at[i];
                s->carried[c->in->id] = s->carried[c->result->id] = (carried){loop, i};
            }
    }
}

static void follow(search *s)
{
    while (s->work.count > 0) {
        const etch_tensor *t = s->work.at[--s->work.count];
        for (uint32_t i = 0; t->producer && i < t->producer->in_count; i++)
            look_at(s, t->producer->ins[i]);
        const carried *what = &s->carried[t->id];
        for (uint32_t k = 0; what->loop && k < what->loop->bodies.count; k++) {
            const etch_carry *c = &what->loop->bodies.at[k]->carries.at[what->carry];
            look_at(s, c->init);
            look_at(s, c->out);
        }
    }
}

/* Is it a cache, which later runs read? */
static bool stays(const etch_tensor *tensor)
{
    return tensor->producer && tensor->producer->row->stays;
}

/* A module that is called in several places may use its weight in one of them only. */
static bool is_used_elsewhere(const search *s, const etch_tensor *weight)
{
    for (uint32_t i = 0; i < s->graph->weights.count; i++) {
        const etch_tensor *other = s->graph->weights.at[i];
        if (s->live[other->id] && other->span.start == weight->span.start)
            return true;
    }
    return false;
}

static void warn(const search *s, const etch_tensor *weight)
{
    const etch_op *reader = s->reader[weight->id];
    etch_diags *diags = s->graph->diags;
    etch_diag *diag =
        etch_warning(diags, ETCH_E_UNUSED_WEIGHT, weight->span,
                     reader ? "no result depends on weight %s" : "weight %s is never used", weight->name);
    if (reader)
        etch_note(diag, reader->span, "what is made from it here is not used");
    etch_help(diag, "it counts among the parameters all the same: remove it, or use it");
}

void etch_graph_warn_unused(const etch_graph *graph, etch_tensor *const *results, uint32_t count)
{
    const uint32_t tensors = graph->tensors.count;
    search s = {.graph = graph,
                .live = ETCH_NEW_ARRAY(graph->arena, tensors, bool),
                .carried = ETCH_NEW_ARRAY(graph->arena, tensors, carried),
                .reader = ETCH_NEW_ARRAY(graph->arena, tensors, const etch_op *)};
    bool any = false;
    survey(&s);
    for (uint32_t i = 0; i < count; i++)
        look_at(&s, results[i]);
    for (uint32_t i = 0; i < tensors; i++)
        if (graph->tensors.at[i] &&
            (etch_has_tag(graph->tensors.at[i], "loss") || stays(graph->tensors.at[i])))
            look_at(&s, graph->tensors.at[i]);
    any = s.work.count > 0;
    follow(&s);
    for (uint32_t i = 0; i < graph->weights.count; i++) {
        etch_tensor *weight = graph->weights.at[i];
        weight->is_unused = !s.live[weight->id] && (any || !s.reader[weight->id]);
        if (weight->is_unused && !is_used_elsewhere(&s, weight))
            warn(&s, weight);
    }
}
