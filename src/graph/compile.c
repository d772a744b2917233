/* The whole way from a training graph and a plan to the step of every rank: the passes in their order. */
#include "graph/graph.h"
#include "graph/place/placer.h"
#include "graph/step/kernel.h"

const char *etch_pass_name(etch_pass pass)
{
    static const char *const names[ETCH_PASS_COUNT] = {"model", "train", "place", "stage",
                                                       "shard", "fuse",  "step"};
    return (unsigned)pass < ETCH_PASS_COUNT ? names[pass] : NULL;
}

static etch_placed *place_until(const etch_training *training, const etch_plan *plan,
                                etch_granularity granularity, etch_pass last)
{
    etch_placer *p = etch_place_ops(training, plan); /* R1-R8: layouts, and the collectives between them */
    if (!p || last <= ETCH_PASS_PLACE)
        return p ? p->placed : NULL;
    etch_stages_find(p); /* the chain of layers, and where it may be cut */
    if (p->failed || last == ETCH_PASS_STAGE)
        return p->failed ? NULL : p->placed;
    if (!etch_zero_find(p->placed)) /* ZeRO: what ranks hold in parts, */
        return NULL;
    etch_shard_weights(p->placed); /* and gathers before what reads weights */
    if (last == ETCH_PASS_SHARD)
        return p->placed;
    etch_kernels(p->placed, granularity); /* what runs as one node */
    if (last == ETCH_PASS_FUSE)
        return p->placed;
    etch_placed_weight_groups(p->placed);
    etch_step_program_make(p->placed); /* tasks, messages, the end of the step */
    return p->placed;
}

etch_placed *etch_place_uncounted(const etch_training *training, const etch_plan *plan,
                                  etch_granularity granularity)
{
    return place_until(training, plan, granularity, ETCH_PASS_STEP);
}

etch_placed *etch_place_until(const etch_training *training, const etch_plan *plan,
                              etch_granularity granularity, etch_pass last)
{
    etch_placed *placed = place_until(training, plan, granularity, last);
    if (placed && last >= ETCH_PASS_STEP)
        etch_kernels_count(placed);
    return placed;
}

etch_placed *etch_place(const etch_training *training, const etch_plan *plan, etch_granularity granularity)
{
    return etch_place_until(training, plan, granularity, ETCH_PASS_STEP);
}
