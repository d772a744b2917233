/* Lines of a plan that reach nothing of the model under it. */
#include "graph/place/place_int.h"

#include <string.h>

/* Has a tensor of the model a dim of this name? */
static bool has_dim(const etch_graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->tensors.count; i++) {
        const etch_tensor *tensor = graph->tensors.at[i];
        for (uint32_t d = 0; d < tensor->rank; d++)
            if (strcmp(tensor->dims[d]->name, name) == 0)
                return true;
    }
    return false;
}

static void check_dim(const etch_placer *p, const char *name, bool known, etch_span span)
{
    if (known && !has_dim(p->graph, name))
        etch_remark(p->graph->diags, ETCH_E_UNKNOWN_SHARD, span,
                    "no tensor of model %s has the dim %s: this has no effect", p->graph->model, name);
}

void etch_plan_remark_idle(const etch_placer *p)
{
    const etch_plan *plan = p->plan;
    if (plan->shared)
        return; /* made for many models: what one lacks of it is listed, not remarked on */
    for (uint32_t i = 0; i < plan->shards.count; i++)
        check_dim(p, plan->shards.at[i].dim, plan->shards.at[i].known, plan->shards.at[i].span);
    for (uint32_t i = 0; i < plan->overrides.count; i++) {
        const etch_override *o = &plan->overrides.at[i];
        for (uint32_t k = 0; k < o->shards.count; k++)
            check_dim(p, o->shards.at[k].dim, o->shards.at[k].known, o->shards.at[k].span);
    }
    for (uint32_t i = 0; i < plan->pads.count; i++)
        check_dim(p, plan->pads.at[i].dim, plan->pads.at[i].known, plan->pads.at[i].span);
}
