/* A placed graph run on all ranks of its mesh at once, step by step: each rank holds its part of every value,
 * and collectives see nothing but the parts of their group. Every operand and result is compared with the run
 * on one rank. */
#ifndef ETCH_TEST_EXEC_RANKS_H
#define ETCH_TEST_EXEC_RANKS_H

#include "exec_chain.h"
#include "exec_run.h"

typedef enum exec_order { EXEC_PROGRAM, EXEC_KERNELS } exec_order;

/* A mesh with numbers, and where the ranks are on it. */
typedef struct exec_mesh {
    const etch_graph *graph;
    const etch_plan *plan;
    uint32_t axes, ranks, size[ETCH_MAX_AXES];
    bool *is_slots;   /* by id of the first of dims that are renamed into each other: the slots of experts? */
    uint32_t *divide; /* by the same: axes that divide it in some value */
} exec_mesh;

exec_mesh exec_mesh_of(const etch_graph *graph, const etch_plan *plan);
/* A rank's place on an axis; the first axis is the outermost. */
uint32_t exec_mesh_at(const exec_mesh *mesh, uint32_t rank, uint32_t axis);
/* Do two ranks differ on no axis outside `axes`? */
bool exec_mesh_is_group(const exec_mesh *mesh, uint32_t a, uint32_t b, uint32_t axes);
/* Ranks that differ on `axes` alone, and a rank's place among them. */
uint32_t exec_mesh_count(const exec_mesh *mesh, uint32_t axes);
uint32_t exec_mesh_place(const exec_mesh *mesh, uint32_t rank, uint32_t axes);
/* Slots have no order of their own. They lie in a grid of all axes that divide them anywhere, and a rank has
 * those whose place on each axis that divides them now is its own: any axis may join or leave, next to any
 * other. */
void exec_mesh_note_slots(exec_mesh *mesh, const etch_placed *placed);
bool exec_mesh_is_slots(const exec_mesh *mesh, const etch_dim *dim);
/* Does the axis divide the slots in any value? */
bool exec_mesh_divides(const exec_mesh *mesh, const etch_dim *slots, uint32_t axis);
/* All cells of the grid, and those of the axes inside `axis`: the place of slot i is i / (size / parts) /
 * inside, modulo the size of the axis. */
typedef struct exec_cells {
    uint32_t parts, inside;
} exec_cells;
exec_cells exec_mesh_cells(const exec_mesh *mesh, const etch_dim *slots, uint32_t axis);
/* Is axis `a` outside `b` on a dim that both divide, and that is none of slots? As the plan's first line that
 * has both says, for the dim or for another that it was renamed from or to; the mesh's order when none
 * does. */
bool exec_mesh_is_outside(const exec_mesh *mesh, const etch_dim *dim, uint32_t a, uint32_t b);
/* The size of a dim of `size` elements as the plan pads it. A rank holds a part of that; what lies behind the
 * last element is padding, which the last ranks have more of than others, or nothing else. */
uint32_t exec_mesh_padded(const exec_mesh *mesh, const etch_dim *dim, uint32_t size);
/* Do ranks hold padding of a dim of this name in any tensor; NULL: of any dim? */
bool exec_is_padded(const etch_placed *placed, const char *dim);
/* The part of a tensor that a rank holds under `place`, without elements. */
exec_array exec_mesh_part(const exec_mesh *mesh, const exec_env *env, const etch_tensor *tensor,
                          const etch_state *place, uint32_t rank);

/* A part of a weight that the first rank of a stage has until backward gathers from it. */
typedef struct exec_weight_part {
    const etch_value *value;
    uint32_t instance;
    exec_array *array;
} exec_weight_part;

/* A weight group at work: an iteration of a loop of the top level, or what lies between such loops, cut where
 * something is gathered after what has computed. */
typedef struct exec_weight_group {
    uint32_t began; /* with the first op or move; 0: there was none yet */
    uint32_t action;
} exec_weight_group;

typedef struct exec_ranks {
    exec_env env;
    const etch_placed *placed;
    exec_mesh mesh;
    exec_run *reference; /* of the same microbatch */
    exec_order order;
    ETCH_VEC(const etch_step *) gathers; /* of weights, in the order of forward, then backward */
    ETCH_VEC(exec_weight_part) parts;    /* that the first microbatch has made on a stage */
    const etch_loop **home;              /* by value id: the loop in whose body it is made */
    exec_store values;                   /* by value id and rank: of one microbatch */
    exec_store gradients;                /* by tensor id and rank */
    exec_store reduced; /* by the same: the parts of ranks, where each microbatch adds to parts */
    bool *seen;         /* by step id: its FLOP were compared */
    const etch_placed_region *region; /* at work */
    uint64_t kept; /* bytes of the forward pass that the first rank has read in backward; in program order */
    uint64_t working; /* the most bytes that it has had at a time of all else that is not given or a gradient
                               of a weight: from the step that makes an array to the last that reads it */
    uint32_t now;     /* steps that were run */
    ETCH_VEC(exec_weight_group) groups; /* in the order in which they are run */
    bool group_begins, group_computes;  /* one begins with the next step; the one at work has computed */
    uint32_t actions, pass_began;       /* passes that were run; when the last of them began */
    uint32_t *group_read; /* by weight group of the placement: when a whole gradient was added to last */
    ETCH_VEC(exec_array *) of_iteration; /* whole gradients of the iteration in work */
    uint32_t *together;                  /* of the gather in work: when a copy that it makes was read last */
    ETCH_VEC(exec_array *) made;         /* of the first rank, in the microbatch in work */
    struct exec_traffic
        *traffic; /* counts what kernels of the first rank read and write; NULL: nobody does */
    /* Of the ranks of one stage: */
    const exec_chain *chain; /* NULL: they run all of the model */
    uint32_t stage;
    exec_interval interval; /* the layers of the chunk in work */
    bool skips[2];          /* the pass leaves out its first half, its second */
    exec_store *pending;    /* as gradients: what a first half alone adds to them; its second half takes it */
    bool **uses;            /* by tensor id of a weight, and instance: something here has read it */
    uint32_t *runs;         /* by step id: how often it was run */
    uint32_t unread;        /* trained weights that are said to be on the stage, and nothing there reads */
} exec_ranks;

exec_ranks *exec_ranks_new(etch_arena *arena, const etch_placed *placed, exec_run *reference,
                           exec_order order);
/* The ranks of one stage of the chain. They run what the interval that is set has of a pass. */
exec_ranks *exec_ranks_of_stage(etch_arena *arena, const exec_chain *chain, uint32_t stage,
                                exec_run *reference);
/* Runs one pass of the microbatch in work, as far as it is in the interval, with the values that are set. */
void exec_ranks_pass(exec_ranks *ranks, bool backward);
/* Where something of the top level runs: is that here and now? */
bool exec_ranks_is_here(const exec_ranks *ranks, etch_position home);
/* Runs both passes of the microbatch that the reference has just run. */
void exec_ranks_run(exec_ranks *ranks);
/* Ends a microbatch: reduces gradients that ranks hold in parts, and adds them to the parts. */
void exec_ranks_reduce(exec_ranks *ranks);
/* Ends the step: reduces the gradients, lets each rank change what it updates of every weight, and gathers
 * what others have changed; compares gradients and weights with those of the reference. */
void exec_ranks_finish(exec_ranks *ranks);
/* The same for all stages, which add up the gradients of the weights that they share. */
void exec_stages_finish(exec_ranks *const *stages, uint32_t count);

/* ---- between the files of the executor -------------------------------------------------------------- */

/* Notes how the dims that the op of a step is about lie on ranks. */
void exec_ranks_lay_out(exec_ranks *ranks, const etch_step *step);
/* A rank's part of a value; NULL when it has not been made. In the order of kernels, what is no node is made
 * when it is asked for. */
exec_array *exec_ranks_find(exec_ranks *ranks, const etch_value *value, uint32_t rank);
/* The same; fails when there is none. */
exec_array *exec_ranks_get(exec_ranks *ranks, const etch_value *value, uint32_t rank);
/* Where it is kept. */
exec_array **exec_ranks_slot(exec_ranks *ranks, const etch_value *value, uint32_t rank);
/* On a stage: the mark that something there reads the instance of the weight in force; else NULL. */
bool *exec_ranks_use(exec_ranks *ranks, const etch_tensor *tensor);
/* A rank's part of a value that is given. */
exec_array *exec_ranks_cut(exec_ranks *ranks, const etch_value *value, uint32_t rank);
/* Which part of a weight a rank has, where the ranks of `axes` hold parts: those outermost over which its
 * gradient is no partial sum. */
uint32_t exec_ranks_place(const exec_ranks *ranks, const etch_tensor *weight, uint32_t axes, uint32_t rank);
/* A rank's part of such a weight. */
exec_array *exec_ranks_range(exec_ranks *ranks, const etch_value *value, uint32_t rank);
/* Gathers weights, or takes parts of gathered ones, in a run of the region. */
void exec_ranks_gather(exec_ranks *ranks, const etch_placed_region *region, const etch_step *step);
/* The gradient of the weight is added to: its copies are there until then. */
void exec_ranks_reach(exec_ranks *ranks, const etch_tensor *weight);
/* The step that reads the array last, or what is there as long. */
uint32_t exec_array_end(const exec_array *array);
/* A gradient that ranks hold in parts is whole from the first contribution on: to the end of its iteration,
 * of a loop of the top level, or until all of its weight group are made. */
void exec_ranks_whole(exec_ranks *ranks, const etch_step *step, uint32_t output, exec_array *sum);
void exec_ranks_end_iteration(exec_ranks *ranks);
/* An iteration hands the array on: it is there to its end. */
void exec_ranks_hand_on(const exec_ranks *ranks, const etch_placed_region *body, exec_array *array);
/* The most bytes that the first rank has had at a time of what it does not keep for backward. */
uint64_t exec_ranks_most(const exec_ranks *ranks);
/* Counts weight groups: an iteration of a loop of the top level begins, or a step is run. */
void exec_ranks_begin_iteration(exec_ranks *ranks, const etch_placed_loop *loop);
void exec_ranks_count_group(exec_ranks *ranks, const etch_step *step);
/* When what the weight group at work gathers was gathered: `prefetch` groups ahead, with the first step of
 * the group; on a stage with one of the same action. */
uint32_t exec_ranks_gathered_at(const exec_ranks *ranks);
/* Begins the life of an array of the first rank. */
void exec_ranks_birth(exec_ranks *ranks, const etch_tensor *tensor, exec_array *array, uint32_t rank);
/* The same of what a step makes, of what goes round as many blocks as a rank has at once. */
void exec_ranks_begin(exec_ranks *ranks, const etch_step *step, uint32_t output, exec_array *made,
                      uint32_t rank);
/* Forgets what the items of the region before `end` have gathered for the unit that ends. */
void exec_ranks_forget(exec_ranks *ranks, const etch_placed_region *region, uint32_t end);
/* FLOP of an op that a rank has run, with those that padding takes; `gathered`: axes over which it was given
 * its operands whole. */
int64_t exec_ranks_flop(exec_ranks *ranks, const etch_step *step, const exec_call *run, uint32_t gathered,
                        uint32_t rank);
/* Do blocks of the operand go round for the step, whose op runs once for each? */
bool exec_goes_round(const etch_step *step, uint32_t operand);
/* Runs such a step on all ranks, which have these parts of its operands: by result and rank what they make.
 * Adds the FLOP, by rank. */
exec_array ***exec_ranks_go_round(exec_ranks *ranks, const etch_step *step, exec_array ***parts,
                                  int64_t *flop);
/* Blocks that a rank has beside its own at once; of gradients of what goes round. */
uint32_t exec_blocks_out(const exec_ranks *ranks, uint32_t ring);
uint32_t exec_blocks_back(const exec_ranks *ranks, uint32_t ring);
/* Does a move send as much as is said of it? */
void exec_ranks_check_payload(exec_ranks *ranks, const etch_step *step);
/* What a move gives a rank. NULL when the ranks of the group do not hold that together. */
exec_array *exec_ranks_move(exec_ranks *ranks, const etch_step *step, uint32_t rank);

#endif
