/* Kinds that reports speak of, and the names that texts and JSON have for them. The numbers are stable; new
 * kinds come after the others, before `..._COUNT`. Part of etch/etch.h.
 *
 * Names are static texts. A number that is no kind has none: NULL. */
#ifndef ETCH_KINDS_H
#define ETCH_KINDS_H

#include "etch/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of messages: "error", "warning", "remark". */
typedef enum etch_severity { ETCH_ERROR, ETCH_WARNING, ETCH_REMARK, ETCH_SEVERITY_COUNT } etch_severity;
ETCH_API const char *etch_severity_name(etch_severity severity);

/* What gave a param or a mesh axis its value: "run", "set", "config", "default". */
typedef enum etch_given_by {
    /* the train or infer block itself */
    ETCH_GIVEN_BY_RUN,
    /* `sets` of the options */
    ETCH_GIVEN_BY_SET,
    ETCH_GIVEN_BY_CONFIG,
    ETCH_GIVEN_BY_DEFAULT,
    ETCH_GIVEN_BY_COUNT
} etch_given_by;
ETCH_API const char *etch_given_by_name(etch_given_by by);

/* What a quantity counts: "elements", "FLOP", "bytes", "seconds", "tokens/s", "hours", "days"; "" for what is
 * not one quantity alone, for shares of 1, and for money. */
typedef enum etch_unit {
    ETCH_UNIT_NONE,
    ETCH_UNIT_ELEMENTS,
    ETCH_UNIT_FLOP,
    ETCH_UNIT_BYTES,
    ETCH_UNIT_SECONDS,
    ETCH_UNIT_TOKENS_A_SECOND,
    ETCH_UNIT_HOURS,
    ETCH_UNIT_DAYS,
    ETCH_UNIT_COUNT
} etch_unit;
ETCH_API const char *etch_unit_name(etch_unit unit);

/* What the amount of a table is of its rows: "total", "heaviest", "greatest". */
typedef enum etch_sum_kind {
    ETCH_SUM_TOTAL,
    /* of stages */
    ETCH_SUM_HEAVIEST,
    /* which stage is the heaviest depends on values: the amount is the greatest of all */
    ETCH_SUM_GREATEST,
    ETCH_SUM_COUNT
} etch_sum_kind;
ETCH_API const char *etch_sum_kind_name(etch_sum_kind sum);

/* Of a step: "forward", "recompute", "backward", "sync", "optimizer". */
typedef enum etch_phase {
    ETCH_FORWARD,
    ETCH_RECOMPUTE,
    ETCH_BACKWARD,
    /* reduction of gradients */
    ETCH_SYNC,
    ETCH_OPTIMIZER,
    ETCH_PHASE_COUNT
} etch_phase;
ETCH_API const char *etch_phase_name(etch_phase phase);

/* What moves data between ranks: "all_reduce". */
typedef enum etch_collective {
    ETCH_NO_COLLECTIVE,
    /* a rank takes its own part of what it has: nothing moves */
    ETCH_SLICE,
    ETCH_REDUCE_SCATTER,
    ETCH_ALL_TO_ALL,
    ETCH_ALL_REDUCE,
    ETCH_ALL_GATHER,
    /* to the stage that comes next or before: never between placements */
    ETCH_SEND,
    /* blocks of an attention go from rank to rank, until each rank has had all of them */
    ETCH_PERMUTE,
    ETCH_COLLECTIVE_COUNT
} etch_collective;
ETCH_API const char *etch_collective_name(etch_collective collective);

/* Of a tensor: "input", "weight", "value", "gradient", "constant". */
typedef enum etch_tensor_kind {
    /* given to the model */
    ETCH_INPUT,
    ETCH_WEIGHT,
    /* result of an op, or the argument of a loop body */
    ETCH_ACT,
    /* accumulator of the gradient of a weight: lives through all microbatches */
    ETCH_GRADIENT,
    /* known without being computed: the seed of the backward pass, zeros */
    ETCH_CONSTANT,
    ETCH_TENSOR_KIND_COUNT
} etch_tensor_kind;
ETCH_API const char *etch_tensor_kind_name(etch_tensor_kind kind);

/* Of an element: "bf16". */
typedef enum etch_dtype {
    ETCH_F64,
    ETCH_F32,
    ETCH_BF16,
    ETCH_F16,
    ETCH_F8,
    ETCH_I64,
    ETCH_I32,
    ETCH_I8,
    ETCH_BOOL,
    ETCH_DTYPE_COUNT
} etch_dtype;
ETCH_API const char *etch_dtype_name(etch_dtype dtype);

/* What says where a value is: "map", "zero", "pin", "loop", "scope", "moved", "inferred". The first five are
 * stated, the others follow. */
typedef enum etch_placed_by {
    /* the plan's lines, of weights and inputs */
    ETCH_PLACED_BY_MAP,
    /* the zero line, of weights that ranks hold in flat parts */
    ETCH_PLACED_BY_ZERO,
    ETCH_PLACED_BY_PIN,
    /* the plan's lines, of what a loop carries */
    ETCH_PLACED_BY_LOOP,
    /* a collective or slice at the edge of a call */
    ETCH_PLACED_BY_SCOPE,
    /* moved as an op needs it */
    ETCH_PLACED_BY_MOVE,
    /* the op that makes it */
    ETCH_PLACED_BY_OP,
    ETCH_PLACED_BY_COUNT
} etch_placed_by;
ETCH_API const char *etch_placed_by_name(etch_placed_by by);

/* The rule that asks for a collective: "operand". R1 to R9 are those of docs/placement.md; docs/cli.md lists
 * the names. */
typedef enum etch_rule {
    ETCH_RULE_NONE,
    /* R2: an op divides its work so that it reads the value like that */
    ETCH_RULE_OPERAND,
    /* R5: an op merges dims, of which the inner ones must be whole */
    ETCH_RULE_MERGE,
    /* R1: a pin */
    ETCH_RULE_PIN,
    /* R4: the run asks for the result, which so is not partial */
    ETCH_RULE_RESULT,
    /* R1: the value enters a call, a loop or a statement, which lines of the plan place otherwise */
    ETCH_RULE_ENTER,
    /* R1: and leaves it */
    ETCH_RULE_LEAVE,
    /* R7: a loop carries the value */
    ETCH_RULE_LOOP,
    /* R2: an op reduces over shards of what it needs a statistic of */
    ETCH_RULE_STATISTIC,
    /* R6: a cotangent goes to where its value was made */
    ETCH_RULE_COTANGENT,
    /* R6: parts of a cotangent are held differently, and are added */
    ETCH_RULE_TOTAL,
    /* R6: the value is partial, and what ranks have of it all have the whole cotangent */
    ETCH_RULE_SUMMAND,
    /* R2: an attention has what others hold block by block, as the plan says */
    ETCH_RULE_RING,
    /* R9: the gradient of a weight goes to where the weight is */
    ETCH_RULE_WEIGHT,
    /* R9: a weight group (an iteration of a loop, or what is in none) reads weights that a line divides */
    ETCH_RULE_WHOLE,
    /* the end of a step, and between stages: */
    /* R9: ranks that replicate a weight add up its gradients */
    ETCH_RULE_REDUCE,
    /* R9: weights that ranks have updated in parts are made whole */
    ETCH_RULE_UPDATE,
    /* stages that use the same weights add up their gradients */
    ETCH_RULE_SHARED_WEIGHT,
    /* the norm of all gradients */
    ETCH_RULE_CLIP,
    /* what is alive where the model is cut goes to the next stage */
    ETCH_RULE_STAGE,
    /* what an optimizer must know of a whole weight */
    ETCH_RULE_OPTIMIZER,
    ETCH_RULE_COUNT
} etch_rule;
ETCH_API const char *etch_rule_name(etch_rule rule);

/* A part of the explanation why a collective is there: "made", "needed", "plan". */
typedef enum etch_phrase_role {
    /* how the value came to be held as it is: what made it */
    ETCH_PHRASE_MADE,
    /* what asks for the collective */
    ETCH_PHRASE_NEEDS,
    /* a line of the plan after one of the two */
    ETCH_PHRASE_LINE,
    ETCH_PHRASE_COUNT
} etch_phrase_role;
ETCH_API const char *etch_phrase_role_name(etch_phrase_role role);

/* The orders in which stages work, one line each: as enumerators end, and as specs say it. */
#define ETCH_SCHEDULE_TABLE(X)      \
    X(GPIPE, gpipe)                 \
    X(ONE_F_ONE_B, one_f_one_b)     \
    X(INTERLEAVED, interleaved)     \
    X(ZB_H1, zb_h1)                 \
    X(ZB_H2, zb_h2)                 \
    X(BREADTH_FIRST, breadth_first) \
    X(ZB_V, zb_v)                   \
    X(DUALPIPE, dualpipe)           \
    X(DUALPIPEV, dualpipev)         \
    X(LIST, list)

typedef enum etch_schedule_kind {
#define ETCH_SCHEDULE_KIND(NAME, name) ETCH_SCHEDULE_##NAME,
    ETCH_SCHEDULE_TABLE(ETCH_SCHEDULE_KIND)
#undef ETCH_SCHEDULE_KIND
        ETCH_SCHEDULE_COUNT
} etch_schedule_kind;
ETCH_API const char *etch_schedule_kind_name(etch_schedule_kind kind);

/* What a stage does with one microbatch in one chunk: "forward", "backward", or a half of the backward pass:
 * "input_gradients", which the chunk before waits for, and "weight_gradients", all else. */
typedef enum etch_action_kind {
    ETCH_ACTION_FORWARD,
    ETCH_ACTION_BACKWARD,
    ETCH_ACTION_INPUT_GRADIENTS,
    ETCH_ACTION_WEIGHT_GRADIENTS,
    ETCH_ACTION_COUNT
} etch_action_kind;
ETCH_API const char *etch_action_kind_name(etch_action_kind kind);

/* Which work of a rank is one node of its trace, and so what `traffic` counts: "kernel", "op", "block",
 * "library". FLOP and communication are the same in all of them. What stays inside a node is not read from
 * memory nor written to it. */
typedef enum etch_granularity {
    /* a product, norm, attention, ... with the elementwise ops before or after it */
    ETCH_GRANULARITY_KERNEL,
    /* each op that does anything */
    ETCH_GRANULARITY_OP,
    /* all work of a phase between two collectives, or between one and the end of a loop's iteration */
    ETCH_GRANULARITY_BLOCK,
    /* as kernels, but products and attention are calls of a library: elementwise ops beside them are kernels
     * of their own, or of the norm that reads them */
    ETCH_GRANULARITY_LIBRARY,
    ETCH_GRANULARITY_COUNT
} etch_granularity;
ETCH_API const char *etch_granularity_name(etch_granularity granularity);

/* How nodes of traces are called: "short", "full", "none". */
typedef enum etch_naming {
    /* phase, microbatch, loops, the innermost modules and the tensor: "F0.layer3.attention.q" */
    ETCH_NAMES_SHORT,
    /* also Chakra's type, the stage and all modules:
     * "COMP_NODE.forward.mb0.stage0.layer3.llama.block.attention.q" */
    ETCH_NAMES_FULL,
    /* nothing */
    ETCH_NAMES_NONE,
    ETCH_NAMING_COUNT
} etch_naming;
ETCH_API const char *etch_naming_name(etch_naming naming);

/* How sends end: "both", "eager", "rendezvous". */
typedef enum etch_protocol {
    /* is asked of one after the other */
    ETCH_PROTOCOL_BOTH,
    /* a send finishes by itself */
    ETCH_PROTOCOL_EAGER,
    /* a send waits until its receive is posted */
    ETCH_PROTOCOL_RENDEZVOUS,
    ETCH_PROTOCOL_COUNT
} etch_protocol;
ETCH_API const char *etch_protocol_name(etch_protocol protocol);

/* Whether all ranks of traces run to the end: "none", "always", "timing", "stalls", "protocol". */
typedef enum etch_verdict_kind {
    /* broken rules leave nothing to say */
    ETCH_VERDICT_NONE,
    /* every rank finishes, whatever the timing */
    ETCH_VERDICT_ALWAYS,
    /* every rank finishes under nominal durations; under others some may not */
    ETCH_VERDICT_BY_TIMING,
    /* some rank does not finish */
    ETCH_VERDICT_STALLS,
    /* of both protocols: every rank finishes where sends are eager, and not under rendezvous */
    ETCH_VERDICT_BY_PROTOCOL,
    ETCH_VERDICT_COUNT
} etch_verdict_kind;
ETCH_API const char *etch_verdict_name(etch_verdict_kind verdict);

#ifdef __cplusplus
}
#endif

#endif
