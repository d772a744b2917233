/* Quantities: what a query, a check and a view ask of a pipeline's costs. */
#ifndef ETCH_SESSION_QUERY_QUERY_H
#define ETCH_SESSION_QUERY_QUERY_H

#include "machine/machine.h"
#include "session/core/core.h"
#include "simulate/simulate.h"

/* ---- quantities ---------------------------------------------------------------------------------------- */

typedef enum etch_subject { ETCH_OF_PHASE, ETCH_OF_PART, ETCH_OF_CALL, ETCH_OF_CLASS } etch_subject;

/* One quantity of the language of queries. Dispatch, listings and breakdowns follow from this table. */
typedef struct etch_quantity_row {
    const char *name;
    /* what its first argument is */
    etch_subject subject;
    etch_measure measure;
    enum {
        ETCH_ALL,
        ETCH_ONLY_MATMUL,
        ETCH_ONLY_ELEMENTWISE,
        ETCH_ONLY_TRAINABLE,
        ETCH_ONLY_READ,
        ETCH_ONLY_WRITTEN
    } only;
    /* bits 1 << etch_breakdown */
    unsigned breakdowns;
    etch_unit unit;
    const char *help;
    /* of a run of the step on a machine; else it is a sum of items */
    enum {
        ETCH_NOT_TIMED,
        ETCH_TIMED_SECONDS,
        ETCH_TIMED_MFU,
        ETCH_TIMED_HFU,
        ETCH_TIMED_TOKENS,
        ETCH_TIMED_DAYS,
        ETCH_TIMED_DEVICE_HOURS,
        ETCH_TIMED_COST,
        ETCH_TIMED_GOODPUT,
        ETCH_TIMED_ENERGY
    } timing;
} etch_quantity_row;

const etch_quantity_row *etch_quantity_row_of(const char *name);
/* In the order of listings; NULL past the end. */
const etch_quantity_row *etch_quantity_row_at(size_t index);
void etch_quantity_describe_all(etch_buf *out);
bool etch_quantity_of_rank(const etch_quantity_row *row);

/* A class of memory that `memory` may be asked of. */
typedef struct etch_memory_class {
    const char *name;
    /* bits 1 << etch_memory */
    unsigned held;
    /* caches as well */
    bool cache;
    /* also of a part of the model */
    bool of_parts;
    const char *help;
} etch_memory_class;

/* NULL past the end. */
const etch_memory_class *etch_memory_class_at(size_t index);
/* NULL after a reported error. */
const etch_memory_class *etch_memory_class_of(etch_session *session, const etch_quantity *quantity);
/* The name that `--by class` gives to the memory of an item. */
const char *etch_memory_label(const etch_cost *cost);
/* The quantities that session gives to lang for evaluating expressions. */
etch_quantities etch_session_quantities(etch_session *session);

/* One item of a quantity, and how often it counts. */
typedef struct etch_pick {
    const etch_cost *cost;
    /* each * times, with the values put in */
    etch_expr amount;
} etch_pick;

typedef ETCH_VEC(etch_pick) etch_picks;

/* The items that a quantity consists of, on one stage where it is of one rank. */
typedef struct etch_share {
    /* of the stage */
    const char *label;
    etch_picks picks;
    etch_expr sum;
} etch_share;

typedef ETCH_VEC(etch_share) etch_shares;
/* Fills one share for each stage that the quantity may be of; at least one. NULL after a reported error, else
 * the pipeline that they come from. */
etch_compiled *etch_quantity_pick(etch_session *session, const etch_quantity *quantity,
                                  const etch_quantity_row *row, etch_shares *out);
/* That of the heaviest stage; with `which`, the index of it, or UINT32_MAX when it depends on values. */
etch_expr etch_shares_most(etch_session *session, const etch_shares *shares, uint32_t *which);
etch_expr etch_picks_sum(etch_session *session, const etch_picks *picks);
/* Does the collective exist? One over axes of size 1 does not. Where all of its axes may be 1 or more, it is
 * counted and the axes are noted. */
bool etch_cost_communicates(etch_session *session, const etch_compiled *p, const etch_cost *cost);
/* Why there is the collective of an item, in words. `names` of tensors by id, in place of the spec's; may be
 * NULL. */
const etch_phrase_view *etch_cost_explain(etch_session *session, const etch_compiled *p,
                                          const etch_cost *cost, const char *const *names, size_t *count);
/* The amount of the item in all steps of a served model, with the values in force. */
etch_expr etch_cost_total(etch_session *session, const etch_compiled *p, const etch_cost *cost,
                          etch_expr amount);

/* ---- times --------------------------------------------------------------------------------------------- */

/* Numbers, with low <= value <= high: what the formulas say lies between the ends. */
typedef struct etch_within {
    etch_expr low, value, high;
} etch_within;

/* The value of a timed quantity, by a run of the step on the session's machine. False after a reported
 * error. */
bool etch_timed_of(etch_session *session, const etch_quantity *quantity, const etch_quantity_row *row,
                   etch_within *out);
/* Its arguments, as a call for example has them: "(step)". */
/* Joules of all devices in a step; `stack` may be NULL. False after a reported error. */
bool etch_energy_of(etch_session *session, const etch_quantity *quantity, etch_compiled *p,
                    const etch_cluster *cluster, const etch_stack *stack, etch_within *out);
const char *etch_timed_argument(const etch_quantity_row *row);
/* Can the quantity be asked for like this? False after a reported error. */
bool etch_timed_allow(etch_session *session, const etch_quantity *quantity, const etch_quantity_row *row);
/* Is it of many steps: what a number of tokens takes, or what failures leave? */
bool etch_timed_of_many(const etch_quantity_row *row);
/* Has it the numbers that it needs, and no others? False after a reported error. */
bool etch_many_allow(etch_session *session, const etch_quantity *quantity, const etch_quantity_row *row);
/* The step that quantities of many are of. */
typedef struct etch_one_step {
    const etch_compiled *compiled;
    /* NULL for quantities that are of no tokens */
    etch_expr tokens;
    etch_expr ranks;
    const etch_within *seconds;
} etch_one_step;
bool etch_many_of(etch_session *session, const etch_quantity *quantity, const etch_quantity_row *row,
                  const etch_one_step *step, etch_within *out);
/* The only cluster of the spec of `machine`, NULL: of the session's own. NULL after a reported error. */
const etch_cluster *etch_session_cluster(etch_session *session, const etch_session *machine);
/* The only device of the spec, and the first level of its only cluster, where there is one. False after a
 * reported error. */
bool etch_session_device(etch_session *session, bool needs_level, etch_machine *out);
/* The stack of the cluster; NULL after a reported error. */
const etch_stack *etch_session_stack(etch_session *session, const etch_cluster *cluster, const char *name);
/* The next of some kinds of products, bits 1 << etch_product_kind, from `*from` on, that the device has no
 * line for, as a sentence; NULL: there is none. */
const char *etch_machine_lack(etch_arena *arena, const etch_device *device, unsigned kinds, unsigned *from);
/* Says which kinds of kernels of the job the device has no line for. */
void etch_remark_machine(etch_session *session, const etch_device *device, const etch_job *job);
/* Says that the levels divide a group unevenly, where they do. */
void etch_remark_uneven(etch_session *session, const etch_uneven *uneven);
/* What a rank holds, or a part of it, as an answer has it: the `put` of an etch_valuation, whose data is an
 * etch_held_by. */
typedef struct etch_held_by {
    etch_session *session;
    const etch_compiled *p;
} etch_held_by;
etch_expr etch_held_amount(void *data, etch_expr amount);

/* ---- items in tables, and what they come from ---------------------------------------------------------- */

/* The op's name, of a move the collective's. */
const char *etch_cost_op_name(const etch_cost *cost);
/* The name that `--by layer` gives to the body of a forward loop that an item runs in (NULL: none): the names
 * of the loops from the outermost in, with a number where several loops have the same, and the first
 * iteration where they differ. */
const char *etch_layer_label(etch_session *session, const etch_compiled *compiled, const etch_region *body);
/* The label that a table shows for an item. */
const char *etch_cost_label(etch_session *session, const etch_compiled *compiled, const etch_cost *cost,
                            etch_breakdown by);

/* The terms of a sum, and what each of its summands has of them. */
typedef struct etch_terms {
    uint32_t count;
    /* in the order of the formula */
    etch_expr *whole;
    /* [term][summand] */
    etch_expr *share;
} etch_terms;

etch_terms etch_terms_of(etch_session *session, etch_expr total, const etch_expr *summands, uint32_t count);

/* The contribution of one place of the spec, by one op in one phase, to a quantity. */
typedef struct etch_contribution {
    /* one of its items */
    const etch_cost *cost;
    /* of communication: why it is there, in words; else "" */
    const char *why;
    etch_expr sum;
} etch_contribution;

typedef ETCH_VEC(etch_contribution) etch_contributions;
/* In program order. */
void etch_contributions_of(etch_session *session, const etch_compiled *p, const etch_picks *picks,
                           etch_contributions *out);
/* Fills the terms of an answer, whose unit is set. */
void etch_answer_why(etch_session *session, const etch_compiled *p, const etch_contributions *from,
                     etch_expr total, const etch_query_options *options, etch_answer *answer);

#endif
