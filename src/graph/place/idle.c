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

/* Axes over which the map divides a dim, by this line, and which nothing divides that the pin lists.
 * `listed`: the dim, if it does. What is written `@ ()` is meant. */
static uint32_t axes_undone(const etch_pin *pin, const etch_shard *listed, const etch_shard *line)
{
    uint32_t axes = line ? etch_axes_of(line->axes, line->axis_count) : 0;
    for (uint32_t i = 0; i < pin->shards.count; i++)
        axes &= ~etch_axes_of(pin->shards.at[i].axes, pin->shards.at[i].axis_count);
    const bool is_meant = listed ? !listed->bare && !listed->axis_count : pin->rest;
    return is_meant ? 0 : axes;
}

static bool remark_undone(const etch_placer *p, const etch_pin *pin, const etch_tensor *tensor)
{
    for (uint32_t d = 0; d < tensor->rank; d++) {
        const etch_dim *dim = tensor->dims[d];
        const etch_shard *listed = etch_shard_find(pin->shards.at, pin->shards.count, dim->name);
        const etch_shard *line = etch_map_dim_of(p, tensor, dim);
        const uint32_t axes = axes_undone(pin, listed, line);
        if (!axes)
            continue;
        etch_diag *diag =
            etch_remark(p->graph->diags, ETCH_E_PIN_UNDOES, listed ? listed->span : pin->span,
                        "pin %s: %s is whole on all ranks of %s, which the plan divides it over",
                        pin->selector, dim->name, etch_axes_label(p->placed, axes));
        etch_note(diag, line->span, "here");
        etch_help(diag,
                  "write the axes that stay as well, or `..` for all dims that are held as elsewhere; "
                  "%s @ () if that is meant",
                  dim->name);
        return true;
    }
    return false;
}

/* Of each pin once. */
static void remark_pins(const etch_placer *p)
{
    ETCH_VEC(const etch_pin *) said = {0};
    for (uint32_t i = 0; i < p->graph->tensors.count; i++) {
        const etch_tensor *tensor = p->graph->tensors.at[i];
        const etch_pin *pin = tensor->producer && !tensor->of ? etch_map_find_pin(p->placed, tensor) : NULL;
        bool again = !pin;
        for (uint32_t k = 0; k < said.count && !again; k++)
            again = said.at[k] == pin;
        if (!again && remark_undone(p, pin, tensor))
            ETCH_PUSH(p->arena, &said, pin);
    }
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
    remark_pins(p);
}
