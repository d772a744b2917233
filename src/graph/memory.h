/* Part of the door of graph (graph.h includes it): what one rank holds. */
#ifndef ETCH_GRAPH_MEMORY_H
#define ETCH_GRAPH_MEMORY_H

/* What one rank keeps of the forward pass of one microbatch until backward, or what is run again there, has read it: each
 * value as that reads it, a shard or a copy that forward has gathered. `stage`: what it keeps of it there; NULL: there is
 * one. As `etch_graph_saved`, with elements of the rank; `times` is of the stage. */
void etch_placed_saved(const etch_placed *placed, const etch_stage_view *stage, etch_saved_list *out);

/* Where a stage is in its pipeline: its number, how many there are, and how many chunks each of them holds. */
typedef struct etch_stage_place {
    etch_expr stage, stages;
    uint32_t chunks;
} etch_stage_place;

/* All items of what one rank of a stage holds: ETCH_RANK_SAVED, of one microbatch; ETCH_RANK_PARAMS; ETCH_HELD. */
/* `place`: of the stage; not read where the plan has none. */
void etch_placed_memory(const etch_placed *placed, const etch_stage_view *stage,
                        const etch_stage_place *place, etch_cost_list *out);

#endif
