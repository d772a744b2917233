/* Memory over time: what a rank of a stage holds beside its states, along the actions of a step.
 *
 * A row is an interval of an action: an iteration of a loop of the top level, or what lies between loops.
 * In it values are kept that backward reads, and most of what else is there at a time counts. What memory(C)
 * says of kept values and of the workspace is at least what each row has of them. */
#ifndef ETCH_GRAPH_COST_CURVE_H
#define ETCH_GRAPH_COST_CURVE_H

#include "graph/cost/cost.h"

typedef enum etch_curve_kind {
    /* kept for backward, of all microbatches under way */
    ETCH_CURVE_ACTIVATIONS,
    /* copies of weights that ranks hold in parts */
    ETCH_CURVE_GATHERED,
    /* results of collectives, and what messages have brought */
    ETCH_CURVE_COMMUNICATION,
    /* all else that is worked on */
    ETCH_CURVE_WORKSPACE,
    ETCH_CURVE_KINDS
} etch_curve_kind;

typedef struct etch_curve_row {
    /* of the order of the stage */
    uint32_t action;
    /* of the top level of forward; NULL: between such loops */
    const etch_loop *loop;
    uint64_t iteration;
    uint64_t bytes[ETCH_CURVE_KINDS];
} etch_curve_row;

/* What is there in the fullest row. */
typedef struct etch_curve_item {
    etch_curve_kind kind;
    const etch_tensor *tensor;
    uint64_t bytes;
} etch_curve_item;

typedef struct etch_curve {
    const etch_action *actions;
    uint32_t action_count;
    const etch_curve_row *rows;
    uint32_t row_count;
    /* the first row that holds the most */
    uint32_t peak;
    const etch_curve_item *items;
    uint32_t item_count;
} etch_curve;

typedef struct etch_curve_options {
    const etch_placed *placed;
    /* NULL: there is one */
    const etch_stage_view *stage;
    /* its number; sizes of the order */
    uint32_t number;
    etch_pipe pipe;
    /* makes every amount a number */
    const etch_valuation *values;
    uint32_t most_rows;
} etch_curve_options;

typedef enum etch_curve_result {
    ETCH_CURVE_FINE,
    /* an amount is no number of 64 bits */
    ETCH_CURVE_OPEN,
    ETCH_CURVE_TOO_LONG
} etch_curve_result;

/* The result lives in `arena`. */
etch_curve_result etch_placed_curve(etch_arena *arena, const etch_curve_options *options, etch_curve *out);

#endif
