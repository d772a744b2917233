/* Questions: the value of an expression, tables, reasons, proofs. Part of etch/etch.h. */
#ifndef ETCH_QUERY_H
#define ETCH_QUERY_H

#include "etch/notation.h"
#include "etch/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- query -------------------------------------------------------------------------------------------- */

/* What a quantity can be split by. */
typedef enum etch_breakdown {
    ETCH_BY_NOTHING,
    /* the op table's name: einsum, rms_norm */
    ETCH_BY_OP,
    /* dotted path of modules from the model: llama.block.attention */
    ETCH_BY_MODULE,
    /* forward, recompute, backward, sync, optimizer */
    ETCH_BY_PHASE,
    /* all_reduce, reduce_scatter, all_gather, all_to_all */
    ETCH_BY_COLLECTIVE,
    /* mesh axes of a collective: dp, or a product (dp,tp) */
    ETCH_BY_AXIS,
    /* pipeline stages: 0, 1, ... where they are bound, else first, middle, last; `whole` without pipeline */
    ETCH_BY_STAGE,
    /* each term of the formula, and what gives it: op, module path, place in the spec */
    ETCH_BY_TERM,
    /* loops of the model, all iterations of a class together: layer, outer.inner; layer#2 where several loops
     * have the same name, layer[3] where the iterations that are as this one differ from others; "outside
     * loops" */
    ETCH_BY_LAYER,
    /* memory: weights, grads, master, moments, activations, workspace, cache */
    ETCH_BY_CLASS
} etch_breakdown;

/* "op", "module", ...; "" for ETCH_BY_NOTHING; NULL after the last. */
ETCH_API const char *etch_breakdown_name(etch_breakdown by);

/* How a query is answered. Everything but `struct_size` may be zero. */
typedef struct etch_query_options {
    /* sizeof(etch_query_options) */
    size_t struct_size;
    etch_breakdown by;
    /* of formulas */
    etch_notation notation;
    etch_form form;
    /* by this param, dim or mesh axis, which has no value: the derivative of the value, and of each row.
     * Floors count as steps, which have none */
    const char *derivative;
    /* only the terms of the highest degree in this param, dim or axis; alone: with a breakdown or a
     * derivative it is ETCH_EINPUT */
    const char *leading;
    /* the terms of the value, of one quantity alone, and what they come from; without a breakdown */
    bool why;
    /* where steps take time: an open session whose spec has one cluster; NULL: that of the queried spec. It
     * reports nothing: what is wrong is said by the session that is asked. */
    etch_session *machine;
    /* a stack of its cluster; NULL: kernels take as long as they do alone */
    const char *stack;
    /* where `amount` is the greatest of rows of which none always is, which takes longer to write than all of
     * them, it is left empty */
    bool rows_alone;
} etch_query_options;

/* "plain", "latex", "c", "python", "json"; "shortest", "expanded", "factored", "relative"; NULL after the
 * last. */
ETCH_API const char *etch_notation_name(etch_notation notation);
ETCH_API const char *etch_form_name(etch_form form);

typedef struct etch_amount {
    /* an exact number, or a formula: in the language of specs, or as the query asked */
    const char *text;
    bool is_number;
    /* of a number: three significant digits and the unit, "8.03 G", "1.05 GB"; else NULL */
    const char *human;
    /* of a formula, when the query asks for ETCH_JSON: this; `text` is ETCH_PLAIN then */
    const char *json;
    /* of a number that is known to lie between two: these, as decimals, and `text` has the digits that both
     * have when they are rounded to as many; else NULL */
    const char *low, *high;
} etch_amount;

typedef struct etch_row_amount {
    const char *label;
    etch_amount amount;
} etch_row_amount;

/* A part of an explanation why a collective is there. */
typedef struct etch_phrase_view {
    etch_phrase_role role;
    const char *text;
    /* `location` is a line of the plan */
    bool of_plan;
    /* in a spec */
    etch_location location;
} etch_phrase_view;

/* What gives a part of a term. */
typedef struct etch_reason {
    /* of the term */
    etch_amount amount;
    /* as in `--by op`, of communication as in `--by collective`; "weight" of parameters */
    const char *op;
    /* dotted path: llama.block.attention */
    const char *module;
    /* has it a phase? Parameters have none */
    bool phased;
    etch_phase phase;
    /* what it computes, by its name in the spec; NULL: nothing that has one */
    const char *tensor;
    /* in the spec */
    etch_location location;
    /* of communication: why the collective is there; NULL of others */
    const etch_phrase_view *why;
    size_t why_count;
} etch_reason;

typedef struct etch_term {
    etch_amount amount;
    /* in the order of the program; they add up to the amount */
    const etch_reason *reasons;
    size_t reason_count;
} etch_term;

typedef struct etch_answer {
    /* as asked */
    const char *query;
    /* NONE when the expression is not one quantity alone */
    etch_unit unit;
    /* the session's counting convention, every item: "causal=half,..."; NULL: work as executed */
    const char *count;
    /* without a text where the query leaves it out */
    etch_amount amount;
    /* a query without a breakdown is answered by stage where which stage is the heaviest depends on values */
    etch_breakdown by;
    /* what `amount` is of the rows */
    etch_sum_kind sum;
    /* in the order of the program. Rows of 0 are left out */
    const etch_row_amount *rows;
    size_t row_count;
    /* when the query asks why; in the order of the formula */
    const etch_term *terms;
    size_t term_count;
} etch_answer;

/* Answers a question: `options` say how, NULL: all zero, the value alone.
 *
 * The value of an expression over params, dims (sizes over the whole job), mesh axes and quantities. Params
 * that neither `sets` nor the config bind stay symbolic, with or without a default, unless the session binds
 * defaults. A breakdown needs an expression that is one quantity alone.
 *
 * Quantities are listed by `etch_describe_quantities`. Their arguments:
 *   P        forward, recompute, backward, sync (gradient reduction), optimizer, or step: all of them. FLOP
 *            of the whole job, over the global batch; rank quantities of one rank; both of one step.
 *   X        `model`, the spec's only model, or whatever `of =` may name.
 *   of = M   one call of a part of the model over the global batch: a module (its first call in the order of
 *            the program), one iteration of a loop, or one execution of what computes a tensor, named by its
 *            tag or as module.tensor. Dots say where: block.norm. What happens several times counts as often
 *            as the loops inside M, and all microbatches, repeat it; the loops around M do not. Parts of this
 *            name that cost something else are an error, which says so.
 *   op =     only ops, or collectives, of this name, as `--by op` shows them
 *   axis =   only collectives over exactly this mesh axis or product of axes: tp, (dp,tp)
 *   part =   of a rank that has this part of causal queries, where a plan shares them in contiguous parts:
 *            its number, or first or last, which is the heaviest and is taken when it is left out
 *   stage =  of a rank of this pipeline stage: its number, or first, middle, last. Left out, the heaviest;
 *            where that depends on values, a single quantity is answered by stage
 *   plan =, run =   instead of the session's
 *   count =  FLOP by this counting convention instead of the session's; causal = full, router = no, ...: what
 *            differs from it
 * An axis that is bound to 1 leaves the products that it is part of; collectives over no other axis do not
 * exist. A value that holds only where symbolic axes are larger than 1 comes with a remark. */
ETCH_API etch_status etch_session_query(etch_session *session, const char *expression,
                                        const etch_query_options *options, const etch_answer **answer);

/* ---- prove -------------------------------------------------------------------------------------------- */

typedef struct etch_assignment {
    const char *name, *value;
} etch_assignment;

/* What became of a statement. Formulas are in the language of specs, with the values in force. */
typedef struct etch_proof {
    /* as asked */
    const char *statement;
    /* ETCH_YES: proved; ETCH_NO: refuted */
    etch_truth truth;
    const char *left, *right;
    /* left - right; NULL for `|` */
    const char *difference;
    /* "tp - 1 != 0": where this does not hold the statement says nothing */
    const char *const *conditions;
    size_t condition_count;
    /* refuted: values that satisfy everything assumed, and for which it is false */
    const etch_assignment *witness;
    /* 0 when both sides are numbers */
    size_t witness_count;
    /* refuted: the sides for the witness */
    const char *left_value, *right_value;
} etch_proof;

/* Decides a statement for all values of params and mesh axes that the spec's assumptions, and its
 * declarations, allow: `A == B`, `!=`, `>=`, `<=`, `>`, `<`, `d | n` (d divides n), `integer(A)`, over what a
 * query may ask for. It holds when it does wherever both sides are defined; divisors that may be 0 are listed
 * as conditions. While an axis is a symbol, quantities of communication hold where it is larger than 1: so
 * does the verdict, and a remark says so. ETCH_OK: proved. ETCH_EUNKNOWN: neither proved nor refuted.
 * ETCH_EINPUT: refuted; or, and then `*proof` is NULL, the statement has errors. */
ETCH_API etch_status etch_session_prove(etch_session *session, const char *statement,
                                        const etch_proof **proof);

#ifdef __cplusplus
}
#endif

#endif
