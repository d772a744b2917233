/* Moves between placements. */
#include "graph/ir/families/family.h"

#define MOVE(label, made, text) ETCH_ROW(label, "x", text, .role = ETCH_ROLE_RESHARD, .use = ETCH_USE_##made)

static const etch_row rows[] = {
    MOVE("slice_shard", SLICE_SHARD, "a rank's own shard of what it holds: free"),
    MOVE("reduce_scatter", REDUCE_SCATTER, "partial sums to shards"),
    MOVE("all_to_all", ALL_TO_ALL, "shards on one dim to shards on another"),
    MOVE("all_reduce", ALL_REDUCE, "partial sums to their sum everywhere"),
    MOVE("all_gather", ALL_GATHER, "shards to the whole everywhere"),
    MOVE("permute", PERMUTE, "shards from rank to rank, until each has had all of them"),
};

ETCH_FAMILY(moves);
