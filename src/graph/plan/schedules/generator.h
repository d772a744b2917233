/* What a schedule is: one file of this folder, and one line of the table in schedule.c. */
#ifndef ETCH_GRAPH_PLAN_GENERATOR_H
#define ETCH_GRAPH_PLAN_GENERATOR_H

#include "graph/plan/schedules/schedule.h"

/* The actions of a stage in the making, with room for `etch_action_count` of them. */
typedef struct etch_action_list {
    etch_action *at;
    uint64_t count;
} etch_action_list;

struct etch_schedule {
    /* as specs say it */
    const char *name;
    /* takes `virtual = v` */
    bool has_chunks;
    /* else it has so many chunks in each stage; 0: one */
    uint32_t chunks;
    /* which model chunks they are */
    etch_chunk_map map;
    /* backward goes in halves, each an action of its own */
    bool has_halves;
    /* forward and backward actions share slots */
    bool overlaps;
    /* where they do: `etch_schedule_pairs` */
    bool (*pairs)(const etch_schedule *schedule, const etch_pipe_sizes *sizes, etch_expr stage,
                  uint32_t forward, uint32_t backward);
    /* trains with at least so many microbatches for each stage; 0: with any number */
    uint32_t least_for_stage;
    /* is made for the order that a plan lists; in the table it is a name */
    bool takes_order;
    /* that order */
    const etch_action_order *order;
    /* Adds the actions of `stage`, from 0, in the order in which it does them: for every microbatch and chunk
     * a forward action, and a backward action, or its halves, when the pipe trains. No order may stall; a
     * slot that actions share begins when all of them can. */
    void (*actions)(etch_action_list *list, const etch_pipe *pipe, uint32_t stage);
    /* Closed forms, equal to what the actions say: see `etch_in_flight_formula`, of what is held until the
     * gradients of inputs, until those of weights, and between both (the last two NULL without halves);
     * `etch_chunk_in_flight_formula` (NULL where a stage has one chunk; asked for the last hold only with
     * halves); and `etch_bubble_formula`. All are NULL where there is an order. */
    etch_expr (*in_flight)(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage);
    etch_expr (*until_weights)(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage);
    etch_expr (*between_halves)(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage);
    etch_expr (*chunk_in_flight)(etch_sym *sym, const etch_pipe_sizes *sizes, uint32_t chunks, uint32_t chunk,
                                 etch_hold hold, etch_expr stage);
    etch_expr (*bubble)(etch_sym *sym, const etch_pipe_sizes *sizes);
    /* also where several chunks are in a stage and the stages do not divide the microbatches */
    bool bubble_is_exact;
};

/* As `etch_in_flight_formula` and `etch_chunk_in_flight_formula`, by counting; of all chunks. */
#define ETCH_ALL_CHUNKS UINT32_MAX
etch_expr etch_order_in_flight(etch_sym *sym, const etch_schedule *schedule, etch_hold hold, uint32_t chunk,
                               etch_expr stage);

#define ETCH_DECLARE(NAME, name) extern const etch_schedule etch_schedule_##name;
ETCH_SCHEDULE_TABLE(ETCH_DECLARE)
#undef ETCH_DECLARE

/* ---- what orders have in common ------------------------------------------------------------------------ */

void etch_action_add(etch_action_list *list, etch_action_kind kind, uint32_t chunk, uint64_t microbatch);
/* Adds it to the slot of the action before it. */
void etch_action_add_to_slot(etch_action_list *list, etch_action_kind kind, uint32_t chunk,
                             uint64_t microbatch);
/* Forward and backward in turns, of one chunk, after `warmup` forward actions (all of them where there are
 * fewer). Where backward goes in halves, the second comes `lag` turns after the first. */
void etch_actions_in_turns(etch_action_list *list, const etch_pipe *pipe, uint64_t warmup, uint64_t lag);
/* Forward alone, of two chunks of which the second comes back: a microbatch is back on stage i after
 * 2(p - i) - 1 others. */
void etch_actions_to_and_fro(etch_action_list *list, const etch_pipe *pipe, uint32_t stage);
/* Of DualPipeV: of a pipe of 2 chunks in each stage, the second of which comes back; the closed forms are
 * those that a schedule has. */
void etch_actions_dual(etch_action_list *list, const etch_pipe *pipe, uint32_t stage);
bool etch_dual_pairs(const etch_schedule *schedule, const etch_pipe_sizes *sizes, etch_expr stage,
                     uint32_t forward, uint32_t backward);
etch_expr etch_dual_in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage);
etch_expr etch_dual_between_halves(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage);
etch_expr etch_dual_chunk_in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, uint32_t chunks,
                                    uint32_t chunk, etch_hold hold, etch_expr stage);
etch_expr etch_dual_bubble(etch_sym *sym, const etch_pipe_sizes *sizes);
/* Of a chain that is there twice, when stages that are mirror images are one: half of the stages, and of the
 * microbatches. */
etch_pipe_sizes etch_pipe_sizes_folded(etch_sym *sym, const etch_pipe_sizes *sizes);
/* (p - 1) / m: all other stages fill and drain, each for as long as one microbatch takes. */
etch_expr etch_bubble_of_others(etch_sym *sym, const etch_pipe_sizes *sizes);

#endif
