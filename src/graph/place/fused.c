/* Products that ranks compute whole although the plan divides what is made of them: `wqkv[H,O]`, and then
 * `split`, which needs its dim whole, and heads of its parts. A remark tells of them. */
#include "graph/place/place_int.h"
#include "graph/place/steps.h"

/* The product that the value is a part of, after views and at least one split; NULL: it is of none. */
static const etch_step *fused_product(const etch_value *value)
{
    bool is_split = false;
    const etch_step *step = value->step;
    while (step && step->in_count > 0 && etch_step_role(step) == ETCH_ROLE_FREE) {
        is_split = is_split || etch_row_is_several(step->row);
        step = step->ins[0]->step;
    }
    const bool is_product = step && step->collective == ETCH_NO_COLLECTIVE && etch_op_is_matmul(step->op);
    return is_split && is_product ? step : NULL;
}

static void remark(const etch_placer *p, const etch_step *product, uint32_t axis, const etch_dim *dim)
{
    etch_diag *diag = etch_remark(
        p->graph->diags, ETCH_E_FUSED, product->op->span,
        "axis %s divides nothing of this product: %s is split, and %s, which the plan divides, is only in "
        "its parts",
        p->plan->mesh.at[axis].name, etch_tensor_text(p->arena, product->op->outs[0]), dim->name);
    etch_help(diag,
              "give the parts a dim of their own beside %s: a weight for each, or w[..,%s,J] and split(.., "
              "over = J)",
              dim->name, dim->name);
}

/* `shown`: a part of what was split, or another look at one. */
static void check_part(const etch_placer *p, const etch_value *shown)
{
    const etch_step *product = fused_product(shown);
    const etch_tensor *part = shown->tensor;
    for (uint32_t i = 0; product && i < part->rank; i++) {
        const etch_shard *shard = etch_map_dim_of(p, part, part->dims[i]);
        for (uint32_t k = 0; shard && k < shard->axis_count; k++)
            if (!product->factor[shard->axes[k]] && !shown->place[shard->axes[k]])
                remark(p, product, shard->axes[k], part->dims[i]);
    }
}

static void check_region(const etch_placer *p, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const bool shows =
            step && step->op && step->phase == ETCH_FORWARD && etch_step_role(step) == ETCH_ROLE_FREE;
        for (uint32_t k = 0; shows && k < step->out_count; k++)
            check_part(p, step->outs[k]);
    }
}

void etch_plan_remark_fused(const etch_placer *p)
{
    for (uint32_t i = 0; i < p->placed->regions.count; i++)
        check_region(p, p->placed->regions.at[i]);
}
