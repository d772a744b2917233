/* The whole way from a training graph and a plan to what one rank does: the passes in their order. */
#include "graph/graph.h"
#include "graph/place/placer.h"
#include "graph/step/kernel.h"

etch_placed *etch_place(const etch_training *training, const etch_plan *plan, etch_granularity granularity)
{
    etch_placer *p =
        etch_place_ops(training, plan); /* R1-R8: how ranks hold values, and the collectives between */
    if (!p)
        return NULL;
    etch_stages_find(p); /* the chain of layers, and where it may be cut */
    if (p->failed || !etch_zero_find(p->placed))
        return NULL;
    etch_shard_weights(p->placed); /* ZeRO: gathers before what reads weights */
    etch_kernels(p->placed, granularity);
    etch_updates(p->placed); /* the end of the step */
    return p->placed;
}
