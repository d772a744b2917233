/* Declarations that the files that show a placement share. */
#ifndef ETCH_SESSION_VIEW_PLAN_INT_H
#define ETCH_SESSION_VIEW_PLAN_INT_H

#include "etch/placement.h"
#include "session/view/graph_int.h"

typedef struct etch_shown_step {
    const etch_step *step;
    /* of the report */
    size_t loop;
} etch_shown_step;

typedef struct etch_shown_carry {
    const etch_placed_carry *carry;
    size_t loop;
} etch_shown_carry;

/* A collective as all stages together have it: a step, or what the weights of a weight group, or a cut, have
 * in common. */
typedef struct etch_shown_collective {
    /* one of its items */
    const etch_cost *cost;
    /* the first that has it */
    uint32_t stage;
    /* payload of one */
    etch_expr each;
    /* by stage; of all times */
    etch_expr *times, *bytes, *wire;
    ETCH_VEC(const etch_tensor *) tensors;
} etch_shown_collective;

typedef struct etch_plan_viewing {
    /* of the graph */
    etch_viewing view;
    const etch_placed *placed;
    etch_stage_list stages;
    ETCH_VEC(etch_shown_step) steps;
    ETCH_VEC(etch_shown_carry) carries;
    ETCH_VEC(etch_shown_collective) collectives;
    /* by step id: an index into the report, or NONE */
    size_t *step_at;
    /* by value id: an index into the report, or NONE */
    size_t *value_at;
    /* by step id, likewise */
    size_t *collective_at;
    /* by tensor id: is there a move because of its pin? */
    bool *pin_reshards;
    ETCH_VEC(etch_view_value) values;
    etch_explaining how;
    etch_placement_report *report;
} etch_plan_viewing;

/* Finds the collectives of all stages, by phase; what they move is mentioned. */
void etch_plan_find_collectives(etch_plan_viewing *v);
/* Fills the collectives and totals of the report. */
void etch_plan_add_collectives(etch_plan_viewing *v);
/* The axes of a bit set, less those that are bound to 1, as indices. */
const size_t *etch_plan_axis_list(const etch_plan_viewing *v, uint32_t axes, size_t *count);
/* With the values in force; "undefined" where a divisor is 0. */
const char *etch_plan_text(const etch_plan_viewing *v, etch_expr value);
/* Over dims and mesh axes: bytes of values on one rank, payload of a collective. */
const char *etch_plan_bytes_by_dims(const etch_plan_viewing *v, etch_value *const *values, uint32_t count);
const char *etch_plan_payload_by_dims(const etch_plan_viewing *v, const etch_step *collective);

#endif
