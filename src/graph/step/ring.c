/* How a rank runs an attention whose blocks go round: with how many of them, and how much work each is. */
#include "graph/step/step_int.h"

/* The queries of a rank, half of them where it has an early and a late chunk. */
static etch_expr queries_of(const etch_placed *placed, const etch_dim *query, etch_expr parts, bool halved)
{
    etch_sym *sym = placed->training->graph->sym;
    const etch_expr own = etch_div(sym, etch_placed_size(placed, query), parts);
    return halved ? etch_mul(sym, own, etch_ratio(sym, 1, 2)) : own;
}

static bool returns(const etch_step *step)
{
    for (uint32_t i = 0; i < step->out_count; i++)
        if (step->outs[i]->blocks)
            return true;
    return false;
}

/* Under a mask a rank sees of its own block the keys that are not later: of n queries n(n + 1)/2 pairs with
 * contiguous parts; of two chunks of n also all pairs of the later one with the earlier, 2n*n + n, and half
 * of the pairs of any other block, 2n*n. */
etch_ring etch_ring_of(const etch_placed *placed, const etch_step *step)
{
    etch_sym *sym = placed->training->graph->sym;
    const etch_expr one = etch_int(sym, 1), two = etch_int(sym, 2);
    const etch_expr size = etch_group_size(placed, step->ring), others = etch_sub(sym, size, one);
    const bool masked = step->op->attrs.causal && !step->op->attrs.pairs, uneven = masked && step->work_share;
    etch_ring ring = {.size = size, .runs = size, .sums = others, .own = one, .other = one};
    if (masked) {
        const etch_dim *query = etch_op_division(step->op).queries;
        const etch_expr twice = etch_mul(sym, two, queries_of(placed, query, size, !uneven));
        ring.own = etch_add(sym, uneven ? etch_mul(sym, twice, etch_ratio(sym, 1, 2)) : twice, one);
        ring.other = twice;
    }
    if (uneven) {
        ring.runs = etch_add(sym, step->work_share, one);
        ring.sums = etch_min(sym, others, etch_max(sym, step->work_share, one));
    }
    if (!returns(step))
        ring.sums = etch_int(sym, 0);
    return ring;
}

/* Each block that goes round is as large as any other. */
etch_expr etch_ring_message(const etch_placed *placed, const etch_kernel *kernel)
{
    etch_sym *sym = placed->training->graph->sym;
    const etch_expr size = etch_group_size(placed, kernel->anchor->axes);
    return etch_div(sym, etch_kernel_payload(placed, kernel), etch_sub(sym, size, etch_int(sym, 1)));
}
