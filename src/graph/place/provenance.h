/* Why a placement has a collective: which rule asks for it, and on whose behalf. The rules' numbers are those
 * of docs/placement.md. Part of what other modules see of graph. */
#ifndef ETCH_GRAPH_PLACE_PROVENANCE_H
#define ETCH_GRAPH_PLACE_PROVENANCE_H

#include "base/base.h"

typedef enum etch_rule {
    ETCH_RULE_NONE,
    /* R2: `op` divides its work so that it reads the value like that */
    ETCH_RULE_OPERAND,
    /* R5: `op` merges dims, of which the inner ones must be whole */
    ETCH_RULE_MERGE,
    /* R1: `tensor` is pinned by `line` */
    ETCH_RULE_PIN,
    /* R4: the run asks for `tensor`, which so is no partial sum */
    ETCH_RULE_RESULT,
    /* R1: `tensor` enters the call `scope`, the loop or the statement of `result`, which `line` places
     * otherwise */
    ETCH_RULE_ENTER,
    /* R1: and leaves it */
    ETCH_RULE_LEAVE,
    /* R7: `loop` hands `tensor` on */
    ETCH_RULE_LOOP,
    /* R2: `op` reduces over shards of what it needs a statistic of */
    ETCH_RULE_STATISTIC,
    /* R6: the cotangent of `tensor` goes to where that was made */
    ETCH_RULE_COTANGENT,
    /* R6: parts of the cotangent of `tensor` are held differently, and are added */
    ETCH_RULE_TOTAL,
    /* R6: `tensor` is a partial sum, whose summands all have the whole cotangent */
    ETCH_RULE_SUMMAND,
    /* R9: `tensor` is the gradient of a weight, and goes to where the weight is */
    ETCH_RULE_WEIGHT,
    /* R9: a weight group (an iteration of `loop`, or what is in none) reads weights that `line` divides */
    ETCH_RULE_WHOLE,
    /* the end of a step, and between stages: */
    /* R9: ranks that replicate `tensor` add up its gradients; `line`: they update it in parts */
    ETCH_RULE_REDUCE,
    /* R9: weights that `line` has updated in parts are made whole */
    ETCH_RULE_UPDATE,
    /* stages that use the same weights add up their gradients */
    ETCH_RULE_SHARED_WEIGHT,
    /* the norm of all gradients */
    ETCH_RULE_CLIP,
    /* `line`: what is alive where the chain is cut goes to the next stage */
    ETCH_RULE_STAGE,
    ETCH_RULE_COUNT
} etch_rule;
/* "operand": for programs. */
const char *etch_rule_name(etch_rule rule);

/* Fields that the rule does not speak of are NULL, `line` nowhere. */
typedef struct etch_provenance {
    etch_rule rule;
    const struct etch_op *op;
    const struct etch_tensor *tensor;
    const struct etch_loop *loop;
    const struct etch_scope *scope;
    const struct etch_tensor *result;
    /* REDUCE, UPDATE, TIE: whose weights these are */
    const struct etch_weight_group *weight_group;
    /* STAGE */
    const struct etch_cut *cut;
    /* REDUCE: of a weight group and microbatch, else at the end of the step */
    bool every_microbatch;
    /* of the plan, or of the train block */
    etch_span line;
} etch_provenance;

typedef enum etch_phrase_role {
    /* how the value came to be held as it is: what made it */
    ETCH_PHRASE_MADE,
    /* what asks for the collective */
    ETCH_PHRASE_NEEDS,
    /* a line of the plan after one of the two */
    ETCH_PHRASE_LINE
} etch_phrase_role;

#endif
