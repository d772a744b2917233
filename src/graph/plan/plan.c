/* Questions about plans: ranks, axes, lines. */
#include <string.h>

#include "graph/plan/plan_regions.h"

uint32_t etch_plan_axis_at(const etch_plan *plan, uint32_t place)
{
    return plan->order_count ? plan->order[place] : place;
}

uint32_t etch_axes_of(const uint32_t *axes, uint32_t count)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < count; i++)
        bits |= 1u << axes[i];
    return bits;
}

etch_expr etch_plan_ranks(etch_sym *sym, const etch_plan *plan)
{
    etch_expr count = etch_int(sym, 1);
    for (uint32_t i = 0; i < plan->mesh.count; i++)
        count = etch_mul(sym, count, plan->mesh.at[i].size);
    return count;
}

const etch_product *etch_product_at(const etch_plan *plan, const uint32_t *axes, uint32_t count)
{
    const etch_product *longest = NULL;
    for (uint32_t i = 0; i < plan->products.count; i++) {
        const etch_product *product = &plan->products.at[i];
        const uint32_t least = longest ? longest->axis_count + 1 : 2;
        if (product->axis_count >= least && product->axis_count <= count &&
            memcmp(product->axes, axes, product->axis_count * sizeof *axes) == 0)
            longest = product;
    }
    return longest;
}

const etch_shard *etch_shard_find(const etch_shard *shards, uint32_t count, const char *dim)
{
    for (uint32_t i = count; i-- > 0;) /* a later line overrules an earlier one */
        if (strcmp(shards[i].dim, dim) == 0)
            return &shards[i];
    return NULL;
}
