/* Why a placement has a collective: which rule asks for it, and on whose behalf. The rules' numbers are those
 * of docs/placement.md. Part of what other modules see of graph. */
#ifndef ETCH_GRAPH_PLACE_PROVENANCE_H
#define ETCH_GRAPH_PLACE_PROVENANCE_H

#include "base/base.h"

/* Fields that the rule does not speak of are NULL, `line` nowhere. */
typedef struct etch_provenance {
    etch_rule rule;
    const struct etch_op *op;
    const struct etch_tensor *tensor;
    const struct etch_loop *loop;
    const struct etch_scope *scope;
    const struct etch_tensor *result;
    /* REDUCE, UPDATE, TIE, OPTIMIZER: whose weights these are */
    const struct etch_weight_group *weight_group;
    /* STAGE */
    const struct etch_cut *cut;
    /* REDUCE: of a weight group and microbatch, else at the end of the step */
    bool every_microbatch;
    /* of the plan, or of the train block */
    etch_span line;
} etch_provenance;

#endif
