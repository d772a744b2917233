/* Declarations that the files of stage share. */
#ifndef ETCH_GRAPH_STAGE_STAGE_INT_H
#define ETCH_GRAPH_STAGE_STAGE_INT_H

#include "graph/place/placer.h"
#include "graph/stage/layers.h"

/* Its first layer: with all of a segment that is a loop, each of its iterations would do what is done
 * once. */
#define ETCH_CHAIN_BEGIN ETCH_FIRST_OF

typedef enum etch_read_how {
    ETCH_READ,
    /* a loop of the top level begins with it */
    ETCH_READ_BEGINS,
    /* an iteration of one hands it on */
    ETCH_READ_HANDS
} etch_read_how;

typedef struct etch_stage_read {
    etch_value *value;
    etch_read_how how;
    /* in a loop of the top level: the class, and the region in it or the body itself; else NULL */
    const etch_region *body, *in;
} etch_stage_read;

typedef ETCH_VEC(etch_stage_read) etch_stage_reads;

/* The top level of a pass. */
typedef struct etch_stage_pass {
    const etch_placed_item *items;
    /* by item: what it reads */
    etch_stage_reads *reads;
    uint32_t count;
} etch_stage_pass;

typedef struct etch_staging {
    etch_placer *p;
    etch_placed *placed;
    etch_stages *stages;
    /* the second is empty where nothing is trained */
    etch_stage_pass forward_pass, backward_pass;
    /* along the backward pass, where stage positions fall */
    bool backward;
    /* by value id */
    /* where it is made; ETCH_NO_POSITION: it can be had anywhere */
    etch_position *made_at;
    /* its first reader in the region in work */
    etch_position *first;
    bool *made_backward;
    /* a step that is no view and no part, or a loop, reads it, or a part of it */
    bool *is_read;
} etch_staging;

/* ---- stage_items.c ------------------------------------------------------------------------------------- */

/* Of an item of the top level. A view has no results of its own; one of a loop that nobody reads is NULL. */
bool etch_stage_is_view(const etch_placed_item *item);
etch_position *etch_stage_item_position(const etch_placed_item *item);
uint32_t etch_stage_result_count(const etch_placed_item *item);
etch_value *etch_stage_result_at(const etch_placed_item *item, uint32_t k);
etch_position etch_stage_made_at(const etch_staging *s, etch_value *value);
/* Of a loop the iteration that comes first, or last, in the order of the pass. */
etch_position etch_stage_loop_begin(const etch_staging *s, etch_position position);
etch_position etch_stage_loop_end(const etch_staging *s, etch_position position);
/* Which values are read, of all the program. */
void etch_stage_find_reads(etch_staging *s);
/* The items of a region, NULL: of none, with what they read. */
etch_stage_pass etch_stage_pass_of(const etch_staging *s, const etch_placed_region *region);
/* Lets whatever reads one value in a region, however deep, read the other one. */
void etch_stage_exchange(const etch_placed_region *region, const etch_value *from, etch_value *to);
/* Lets loops of the chain begin what they add up with terms of the same sum that are known where they begin.
 * True when there were any: positions are then to be found again. */
bool etch_stage_begin_with_terms(const etch_staging *s);
/* Splits sums whose terms come from several later units. True when there were any: positions are then to be
 * found again. */
bool etch_stage_add_on_the_way(const etch_staging *s);
/* Does the move cut a rank's own shard of what the forward pass has made, or of what is there anyway? */
bool etch_stage_is_own_shard(const etch_staging *s, const etch_step *step);
/* Lets backward read the shards that forward has cut, after the unit that makes the whole. True when there
 * were any: positions are then to be found again. */
bool etch_stage_share_shards(const etch_staging *s);
/* Lets every unit cut the shards of weights and inputs that it reads, and gather the weights. True when there
 * were any that another one had moved: positions are then to be found again. */
bool etch_stage_move_where_read(etch_staging *s);
/* Finds the cuts, and where weights are used. */
void etch_stage_find_alive(etch_staging *s);

struct etch_carrying {
    etch_arena *arena;
    const etch_loop *loop;
    uint32_t carries;
    /* by class and carried value: how often an iteration reads what enters it, 1 where it surely does; and as
     * which it hands that on, as bits */
    etch_expr *reads;
    uint64_t *next;
    /* by carried value: how often what leaves the loop is read */
    etch_expr *leaving;
};

/* The last one stands for all that have no bit of their own. */
static inline uint64_t etch_carried_bit(uint32_t k)
{
    return (uint64_t)1 << (k < 63 ? k : 63);
}

/* 1 where something reads the k-th value as it enters this iteration, or later (`backward`: as it leaves it,
 * on the way back), else 0. */
etch_expr etch_carried_read(etch_sym *sym, const etch_carrying *carrying, uint32_t k, bool backward,
                            etch_expr iteration);

/* Is the use by some iterations of the loop that the cut is in? */
bool etch_stage_use_is_split(const etch_cut *cut, const etch_stage_use *use);

/* Finds the segments of the chain that the line of `stages` lists. False after an error. */
bool etch_stage_segments(etch_placer *p, etch_stages *stages);

#endif
