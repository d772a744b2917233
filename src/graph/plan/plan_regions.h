/* The regions of a model that the scopes of a plan speak of, and what crosses their edges. */
#ifndef ETCH_GRAPH_PLAN_PLAN_REGIONS_H
#define ETCH_GRAPH_PLAN_PLAN_REGIONS_H

#include "graph/plan/plan.h"

/* A region of the model that scopes of the plan speak of. */
typedef struct etch_plan_region {
    etch_choice what;
    /* the next one around it; NULL: none */
    struct etch_plan_region *outer;
    /* its scopes, as the plan has them: later ones overrule */
    ETCH_VEC(const etch_override *) overrides;
    /* bits of the axes whose use they change */
    uint32_t touched;
} etch_plan_region;

/* The innermost region of each, or NULL. */
typedef struct etch_plan_regions {
    /* by id, of the forward pass */
    etch_plan_region **of_op, **of_tensor;
    /* that are regions themselves */
    etch_plan_region **of_call, **of_loop;
    /* by scope id */
    etch_plan_region **around;
    /* the lines of the plan that put dims on axes: of the model's map, its pins, then scope by scope */
    ETCH_VEC(const etch_shard *) lines;
} etch_plan_regions;

/* Finds the regions that the scopes of the plan speak of. */
void etch_plan_regions_find(const etch_graph *graph, const etch_plan *plan, etch_plan_regions *plan_regions);
/* Which ops of the forward pass (by id) the scope of a plan speaks of that has this place in its list,
 * counted from 1 (plan_regions.c). */
const bool *etch_plan_scope_ops(const etch_graph *graph, const etch_plan *plan, uint32_t place);
/* The innermost region that a tensor, or the one that it derives from, is in; NULL: none. */
const etch_plan_region *etch_plan_region_of(const etch_plan_regions *plan_regions, const etch_tensor *tensor);
/* The innermost region that the ops of a call are in; NULL: none. */
const etch_plan_region *etch_plan_region_around(const etch_plan_regions *plan_regions,
                                                const etch_scope *scope);

/* A value goes into regions or out of one. */
typedef struct etch_boundary {
    /* bits of the axes that the regions touch; 0: nothing is asked for */
    uint32_t axes;
    /* where it comes to be; NULL: in no region */
    const etch_plan_region *to;
    /* which one it enters or leaves: the outermost */
    const etch_plan_region *plan_region;
    bool leaves;
} etch_boundary;

/* The boundary that an operand of a forward op, or of a copy of one, crosses: as arguments and what else
 * comes from outside enter its regions, or as a result leaves its call. */
etch_boundary etch_boundary_of_operand(const etch_plan_regions *plan_regions, const etch_op *op,
                                       const etch_tensor *operand);
/* The boundary that a tensor crosses as the result of a statement, and that loop-carried values cross when
 * the loop ends. */
etch_boundary etch_boundary_of_result(const etch_plan_regions *plan_regions, const etch_tensor *tensor);
etch_boundary etch_boundary_of_loop(const etch_plan_regions *plan_regions, const etch_loop *loop);
/* The axes that the map of a region (NULL: of the model) gives a dim, outermost first; NULL entry when the
 * map does not name it. */
const etch_shard *etch_map_dim(const etch_plan *plan, const etch_plan_region *plan_region,
                               const etch_dim *dim);
/* The last of the lines that is of the dim: a later line overrules an earlier one; NULL: there is none. */
const etch_shard *etch_shard_find(const etch_shard *shards, uint32_t count, const char *dim);

#endif
