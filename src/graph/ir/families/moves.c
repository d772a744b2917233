/* Moves between placements. */
#include "graph/ir/families/family.h"

static const etch_row rows[] = {
    {.name = "slice_shard",
     .operands = "x",
     .role = ETCH_ROLE_RESHARD,
     .use = ETCH_USE_SLICE_SHARD,
     .help = "a rank's own shard of what it holds: free"},
    {.name = "reduce_scatter",
     .operands = "x",
     .role = ETCH_ROLE_RESHARD,
     .use = ETCH_USE_REDUCE_SCATTER,
     .help = "partial sums to shards"},
    {.name = "all_to_all",
     .operands = "x",
     .role = ETCH_ROLE_RESHARD,
     .use = ETCH_USE_ALL_TO_ALL,
     .help = "shards on one dim to shards on another"},
    {.name = "all_reduce",
     .operands = "x",
     .role = ETCH_ROLE_RESHARD,
     .use = ETCH_USE_ALL_REDUCE,
     .help = "partial sums to their sum everywhere"},
    {.name = "all_gather",
     .operands = "x",
     .role = ETCH_ROLE_RESHARD,
     .use = ETCH_USE_ALL_GATHER,
     .help = "shards to the whole everywhere"},
};

ETCH_FAMILY(moves);
