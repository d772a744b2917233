/* Part of the door of graph (graph.h includes it): choices that a plan makes beside placement. */
#ifndef ETCH_GRAPH_OPTIONS_H
#define ETCH_GRAPH_OPTIONS_H

/* What one collective reduces of the gradients, and gathers of the weights that follow from them. */
typedef enum etch_bucketing {
    ETCH_BUCKET_BY_LAYER, /* those of a unit */
    ETCH_BUCKET_BY_STEP,  /* all over the same axes */
    ETCH_BUCKET_BY_SIZE   /* so many bytes */
} etch_bucketing;

/* What of the optimizer's states is kept in the memory of the host instead of the device's. */
enum { ETCH_OFFLOAD_MASTER = 1, ETCH_OFFLOAD_MOMENTS = 2 };

#endif
