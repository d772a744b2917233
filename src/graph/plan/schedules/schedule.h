/* Part of what other modules see of graph: pipeline schedules as data.
 *
 * A pipeline of p stages holds v chunks of the model in each; together they are a chain that every microbatch
 * runs through, forward from model chunk 0 and backward from the last. Which of them a chunk of a stage is
 * the schedule says (etch_model_chunk). An action is what a stage does without pause: one microbatch through
 * one chunk in one direction, or one half of its backward pass (Qi et al. 2023, arXiv 2401.10241): first
 * gradients of the chunk's inputs, which the chunk before waits for (I), later those of its weights, which
 * nothing waits for (W). A forward action and a backward one of another microbatch may share a slot (F3&B1):
 * they run in turns, so that the communication of each passes while the other computes (DualPipe, DeepSeek-AI
 * 2024, arXiv 2412.19437). A schedule is the order of the actions of each stage; it says nothing of time. No
 * order here ever stalls: a stage that does its actions in turn, each as soon as what it needs is there,
 * comes to the end, however long actions and messages take. Each schedule is a file of its own here
 * (generator.h). */
#ifndef ETCH_GRAPH_PLAN_SCHEDULE_H
#define ETCH_GRAPH_PLAN_SCHEDULE_H

#include "etch/kinds.h"
#include "graph/plan/schedules/chunk_map.h"
#include "symbolic/symbolic.h"

typedef struct etch_action {
    etch_action_kind kind;
    uint32_t chunk;
    uint64_t microbatch;
    /* it shares the slot of the action before it: a slot is a forward action, and then one that goes back, or
     * both of its halves */
    bool overlaps;
} etch_action;

/* Does it make the gradients that the chunk before waits for? */
static inline bool etch_action_goes_back(etch_action action)
{
    return action.kind == ETCH_ACTION_BACKWARD || action.kind == ETCH_ACTION_INPUT_GRADIENTS;
}

/* Is it the last of the microbatch in the chunk? */
static inline bool etch_action_ends(etch_action action)
{
    return action.kind == ETCH_ACTION_BACKWARD || action.kind == ETCH_ACTION_WEIGHT_GRADIENTS;
}

/* The end of the slot that begins with action number `first`: its actions are those before this number. */
static inline uint64_t etch_slot_end(const etch_action *actions, uint64_t count, uint64_t first)
{
    uint64_t end = first + 1;
    while (end < count && actions[end].overlaps)
        end++;
    return end;
}

typedef struct etch_schedule etch_schedule;

/* The schedule that specs call `name` ("gpipe", "one_f_one_b", "interleaved"), or NULL. */
const etch_schedule *etch_schedule_named(const char *name);
/* The one of a plan that names none: one_f_one_b. */
const etch_schedule *etch_schedule_default(void);
/* Schedules by index for listings (help, "did you mean"); NULL past the end. */
const etch_schedule *etch_schedule_at(uint32_t index);
const char *etch_schedule_name(const etch_schedule *schedule);
/* What programs call it; ETCH_SCHEDULE_COUNT for one that is not in the table. */
etch_schedule_kind etch_schedule_kind_of(const etch_schedule *schedule);
/* Does it take `virtual = v`, the chunks of a stage? The others have a number of their own. */
bool etch_schedule_has_chunks(const etch_schedule *schedule);
/* That number: 1 unless it is made for chunks. */
uint32_t etch_schedule_chunks(const etch_schedule *schedule);
/* How often the chain is there, weights and all; the microbatches are divided among the copies. */
uint32_t etch_schedule_copies(const etch_schedule *schedule);
/* How the chain goes through the stages. */
etch_chunk_map etch_schedule_map(const etch_schedule *schedule);
/* Are the halves of its backward pass actions of their own? */
bool etch_schedule_has_halves(const etch_schedule *schedule);
/* Do forward and backward actions share slots? */
bool etch_schedule_overlaps(const etch_schedule *schedule);
/* The sizes that formulas speak of: variables, constants, anything. */
typedef struct etch_pipe_sizes {
    etch_expr stages, chunks, microbatches;
} etch_pipe_sizes;

/* Does the stage go forward through the one of its chunks and back through the other in a slot? Of a stage
 * without a number, or sizes that are none: may one do so? */
bool etch_schedule_pairs(const etch_schedule *schedule, const etch_pipe_sizes *sizes, etch_expr stage,
                         uint32_t forward, uint32_t backward);

/* ---- numbers ---------------------------------------------------------------------------------------- */

enum { ETCH_MOST_STAGES = 1 << 20, ETCH_MOST_CHUNKS = 1 << 20 };
#define ETCH_MOST_MICROBATCHES (UINT64_C(1) << 32)

/* A schedule with values, each from 1 to the most above. Numbers of stages, chunks and microbatches go
 * together unless `etch_pipe_fits` says that they do not. */
typedef struct etch_pipe {
    const etch_schedule *schedule;
    uint32_t stages;
    /* of each stage: 1 unless the schedule has chunks */
    uint32_t chunks;
    /* of a step; etch_pipe_fits asks only for the stages where they are 0 */
    uint64_t microbatches;
    /* false: forward actions only */
    bool trains;
} etch_pipe;

/* Are there numbers of microbatches that it has no order for? */
bool etch_schedule_counts_microbatches(const etch_schedule *schedule);
/* Is it made for the order that a plan lists? */
bool etch_schedule_takes_order(const etch_schedule *schedule);

/* ---- orders that plans list --------------------------------------------------------------------------- */

typedef struct etch_action_order {
    uint32_t stages, chunks;
    uint64_t microbatches;
    /* are there halves of backward? Then backward as a whole is both, one after the other */
    bool has_halves;
    /* by stage: its actions, and how many; microbatches times chunks fit into 64 bits */
    const etch_action *const *actions;
    const uint64_t *counts;
    etch_chunk_map map;
    /* are there actions that overlap? */
    bool overlaps;
} etch_action_order;

typedef enum etch_order_fault_kind {
    /* the action stands on its stage already, `before` */
    ETCH_ORDER_TWICE,
    /* the stage has to do `needed` before it */
    ETCH_ORDER_EARLY,
    /* the stage does not do `needed`; of no place */
    ETCH_ORDER_MISSING,
    /* stages wait for each other for ever */
    ETCH_ORDER_STALL
} etch_order_fault_kind;

/* The stage waits at its action number `at` for what another one, or itself, does later. */
typedef struct etch_order_wait {
    uint32_t stage;
    uint64_t at;
    etch_action needed;
    uint32_t other;
} etch_order_wait;

typedef struct etch_order_fault {
    etch_order_fault_kind kind;
    uint32_t stage;
    /* number of an action of the stage */
    uint64_t at, before;
    etch_action needed;
    /* each waits for the next, the last one for the first */
    const etch_order_wait *cycle;
    uint32_t cycle_count;
} etch_order_fault;

/* Does each stage do every microbatch and chunk once, forward before backward, and do all come to the end,
 * however long actions take? False: `fault` says what is wrong first. */
bool etch_order_check(etch_arena *arena, const etch_action_order *order, etch_order_fault *fault);
/* The schedule of an order that has been checked. Keeps the order. */
const etch_schedule *etch_order_schedule(etch_arena *arena, const etch_action_order *order);
/* The order of a schedule; NULL: it has none. */
const etch_action_order *etch_schedule_order(const etch_schedule *schedule);

/* ---- sizes -------------------------------------------------------------------------------------------- */

/* How many of the microbatches go through each chunk. */
uint64_t etch_chunk_microbatches(const etch_pipe *pipe);
/* How many actions each stage has. */
uint64_t etch_action_count(const etch_pipe *pipe);
/* The actions of a stage in their order, `etch_action_count` of them, in `arena`. */
const etch_action *etch_actions(etch_arena *arena, const etch_pipe *pipe, uint32_t stage);
/* Is there an order for these numbers of stages and microbatches? One that a plan lists has its own, and
 * some schedules want an even number of both, or a number of microbatches for training. Reports it, at the
 * stage line. */
bool etch_pipe_fits(etch_diags *diags, etch_span span, const etch_pipe *pipe);
/* How long a stage holds something of a microbatch: from the action that makes it to the one that reads it
 * last. */
typedef enum etch_hold {
    ETCH_HOLD_FORWARD_TO_INPUTS,
    ETCH_HOLD_FORWARD_TO_WEIGHTS,
    /* nothing where both are one action */
    ETCH_HOLD_INPUTS_TO_WEIGHTS,
    ETCH_HOLD_COUNT
} etch_hold;

/* The most microbatches and chunks of which a stage, by these actions of it, holds something at a time: never
 * more, at some time exactly that. 0 without backward actions. */
uint64_t etch_in_flight(const etch_action *actions, uint64_t count, etch_hold hold);

/* ---- formulas --------------------------------------------------------------------------------------- */

/* `etch_in_flight` of a training run, for stage number `stage` (from 0). */
etch_expr etch_in_flight_formula(etch_sym *sym, const etch_schedule *schedule, const etch_pipe_sizes *sizes,
                                 etch_hold hold, etch_expr stage);
/* Of them, the most at a time that are of one of its chunks, of which there are `chunks` (`sizes->chunks` is
 * not read). Exact as well, and not all chunks have their most at the same time. */
etch_expr etch_chunk_in_flight_formula(etch_sym *sym, const etch_schedule *schedule,
                                       const etch_pipe_sizes *sizes, uint32_t chunks, uint32_t chunk,
                                       etch_hold hold, etch_expr stage);
/* Time in which a stage waits, as a fraction of the time in which it works, when all forward actions take
 * equally long, all backward actions too, halves as long as forward, and messages no time. When the pipe
 * trains that is between the stage's first action and its last, of the stage that waits longest: its next
 * step may follow at once. Forward only, it is until the last stage has ended. */
etch_expr etch_bubble_formula(etch_sym *sym, const etch_schedule *schedule, const etch_pipe_sizes *sizes,
                              bool trains);
/* Is there a formula, and does it hold for these sizes? Else it is less than the truth. */
bool etch_bubble_formula_holds(const etch_pipe *pipe);

#endif
