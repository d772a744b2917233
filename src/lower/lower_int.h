/* Inside lower: bind -> outline -> unroll. An outline is the placed graph in numbers, its loops still loops; unrolling
 * it gives the program of a rank. */
#ifndef ETCH_LOWER_INT_H
#define ETCH_LOWER_INT_H

#include "lower/lower.h"

enum {
    ETCH_LEAST_PAYLOAD = 64, /* bytes: simulators loop or reject below */
    ETCH_SCALAR_BYTES = 4,   /* the f32 that clipping reduces */
    ETCH_MAX_LOOP_DEPTH = 64
};

#define ETCH_NO_NODE UINT32_MAX    /* a value that no node of the rank makes: weights, inputs, zeros */
#define ETCH_UNMADE (UINT32_MAX - 1) /* a value whose node has not been issued yet */
#define ETCH_MAX_NODES (UINT32_MAX - 2)

/* Ends with ETCH_EINTERNAL unless what must hold for every placed graph does. */
void etch_lower_require(etch_arena *arena, bool holds);

/* ---- bind.c: values ------------------------------------------------------------------------------------------------- */

typedef struct etch_bound etch_bound;

/* The mesh and the schedule in numbers. */
typedef struct etch_extent {
    uint32_t axis_count;
    uint32_t axis_size[ETCH_MAX_AXES];
    uint32_t wide;  /* axes of more than one rank */
    uint32_t rank_count;
    uint64_t micro; /* microbatches of a step */
} etch_extent;

/* Looks at everything that lowering reads: values, assumptions, requirements, sizes. ETCH_OK, or the status that the
 * diagnostics explain. `scratch` keeps what is bound. */
etch_status etch_bind(etch_arena *scratch, const etch_lower_options *options, etch_bound **bound,
                      etch_extent *extent) ETCH_MUST_CHECK;
/* The value of an expression, computed once: a constant when `etch_bind` went well, NULL when it is undefined. */
etch_expr etch_bound_value(etch_bound *bound, etch_expr expr);
/* The values given, as text that lives in `arena`, in the order of the options. */
const etch_binding *etch_bound_list(etch_bound *bound, etch_arena *arena);

/* ---- groups.c ----------------------------------------------------------------------------------------------------------- */

/* Families of the axis sets in `sets`, each only once and of wide axes only. Writes the family of sets[i] to family_of[i]. */
void etch_families_make(etch_arena *arena, const etch_placed *placed, const etch_extent *extent, const uint32_t *sets,
                        uint32_t count, etch_job *job, uint16_t *family_of);

/* ---- schedule.c --------------------------------------------------------------------------------------------------------- */

typedef enum etch_direction { ETCH_SLOT_FORWARD, ETCH_SLOT_BACKWARD } etch_direction;

/* What a stage does without pause: one direction of one microbatch. */
typedef struct etch_slot {
    etch_direction direction;
    uint64_t microbatch;
} etch_slot;

/* Number of slots, and the i-th of them, of the only stage of a job with `micro` microbatches under 1F1B: each microbatch goes back as soon as it
 * has come forward. */
uint64_t etch_slot_count(uint64_t micro, bool backward);
etch_slot etch_slot_at(uint64_t index, bool backward);

/* ---- outline.c: the program before it is unrolled -------------------------------------------------------------------------- */

/* Where the node that made a value is looked up: a cell of a body, one for each time that the body runs in a microbatch. */
typedef struct etch_cell {
    const struct etch_body *body; /* NULL: no node makes it */
    uint32_t slot;
} etch_cell;

/* What becomes one node each time it runs. */
typedef struct etch_task {
    uint64_t flop, bytes;     /* exact, before the least values of a trace */
    etch_cell *reads;
    uint32_t read_count;
    uint32_t *gradients;      /* adds into these in place: indices into the outline's */
    uint32_t gradient_count;
    uint32_t slot;            /* of its body: where its node is kept */
    uint32_t axes;            /* COLL: wide axes */
    uint32_t tally;           /* COLL: index into the outline's */
    uint16_t family;          /* COLL */
    uint8_t type, collective; /* as in etch_node */
    char phase;               /* first letter of its name */
    const char *name;         /* the rest of it, behind microbatch and loops */
    uint32_t name_length;
} etch_task;

/* A value that iterations hand on. */
typedef struct etch_handed {
    etch_cell init, out; /* seen from around the loop; from inside it */
    uint32_t in, result; /* slots: of the loop's body; of the body around it */
} etch_handed;

typedef struct etch_repeat {
    struct etch_body *body;
    uint64_t count;
    bool reverse;             /* iterations in falling order of the forward index */
    etch_handed *handed;
    uint32_t handed_count;
    uint32_t *handing;        /* nodes on their way from one iteration to the next */
    const char *name;
    uint32_t name_length;
    const struct etch_unit_task **after_each; /* last microbatch: run after each iteration */
    uint32_t after_each_count;
} etch_repeat;

typedef struct etch_part {
    etch_task *task; /* one of the two */
    etch_repeat *repeat;
} etch_part;

/* A region of the placed graph. */
typedef struct etch_body {
    etch_part *parts; /* in issue order */
    uint32_t part_count;
    uint32_t depth;           /* loops around it */
    struct etch_body *parent; /* NULL: top level */
    const etch_repeat *repeat;
    uint64_t runs;            /* in one microbatch */
    uint32_t slots;
    uint64_t first_cell;
} etch_body;

/* The accumulator of a weight's gradient: one for each iteration of the forward loops around the weight. */
typedef struct etch_gradient {
    uint32_t depth;
    uint64_t copies;          /* over all loops */
    uint64_t copies_per_unit; /* over the loops inside the outermost one */
    uint64_t first_cell;
} etch_gradient;

/* A node of the end of a step, once for each iteration of its unit: synchronises or uses gradients. */
typedef struct etch_unit_task {
    etch_task task;           /* its gradients are those it reads */
    uint64_t units;           /* iterations, or 1 */
    const char *loop_name;    /* NULL: no loop */
    uint32_t loop_name_length;
} etch_unit_task;

/* Collectives of one kind over the same axes as written: rows of the totals. */
typedef struct etch_tally {
    uint8_t collective;
    uint32_t axes;
} etch_tally;

typedef struct etch_outline {
    const etch_extent *extent;
    etch_body *forward, *backward; /* backward may be NULL */
    uint64_t cell_count;           /* of one microbatch */
    etch_gradient *gradients;
    uint32_t gradient_count;
    uint64_t gradient_cells;
    /* Last microbatch: buckets to run behind part p of the backward body. */
    ETCH_VEC(const etch_unit_task *) *after_part;
    etch_unit_task **buckets;
    uint32_t bucket_count;
    etch_task *norm, *norm_reduce; /* of clipping; NULL where there is none (a single rank has nothing to reduce) */
    etch_unit_task **updates;
    uint32_t update_count;
    ETCH_VEC(etch_tally) tallies;  /* by collective, then axes */
    uint64_t node_count;           /* exact */
    uint64_t dep_bound, name_bound;/* of all nodes: at most */
} etch_outline;
#endif
