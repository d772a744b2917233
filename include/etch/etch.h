/* libetch: what a model and its parallel plan cost, exactly, and Chakra execution traces of every rank.
 *
 *     etch_session *session;
 *     etch_session_options options = {.spec = "models/llama.etch", .config = "llama3_8b"};
 *     const etch_answer *answer;
 *     if (etch_session_open(&options, &session) == ETCH_OK &&
 *         etch_session_query(session, "params(model)", ETCH_BY_NOTHING, &answer) == ETCH_OK)
 *         puts(answer->amount.text);
 *     etch_session_close(session);
 *
 * A session reads one spec and answers questions about it. Every function that can fail returns a status
 * (etch/status.h); unless it is ETCH_ENOMEM, the messages of the session say why. Numbers are exact decimal
 * text, whatever their size: "8030261248", or "7/2" where they are no integers.
 *
 * Ownership: what a function hands out belongs to the session and lives until the session is closed, or until
 * a call ends with ETCH_ELIMIT or ETCH_ENOMEM, which exhausts the session. Texts are UTF-8 and end with a
 * NUL. Texts and arrays that are given to the library are copied.
 *
 * Threads: a session belongs to one thread at a time; `etch_session_cancel` may be called from any thread and
 * from a signal handler. Sessions are independent of each other: the library has no global state. It prints
 * nothing and does not end the process. */
#ifndef ETCH_ETCH_H
#define ETCH_ETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etch/export.h"
#include "etch/listings.h"
#include "etch/notation.h"
#include "etch/status.h"
#include "etch/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sessions --------------------------------------------------------------------------------------- */

typedef struct etch_session etch_session;

/* Everything may be zero. */
typedef struct etch_session_options {
    /* path of the spec; NULL, without `text`: only `etch_session_verify` and dumps can be asked for */
    const char *spec;
    /* the spec itself; `spec` is then its name in messages, and where its imports are relative to */
    const char *text;
    /* `model_count` models that the program builds (etch/graph.h) */
    const struct etch_network_model *models;
    size_t model_count;
    /* a config of the spec; NULL: the one that `use config` names, or none */
    const char *config;
    /* a plan of the spec; NULL: the one that `use plan` names, or the only one */
    const char *plan;
    /* a train or infer block; NULL: the only train block, else the only infer block or model */
    const char *run;
    /* pipeline stage that quantities of a rank are of: "0", .., "first", "middle", "last"; NULL: heaviest */
    const char *stage;
    /* which work of a rank is one node, and so what `traffic` counts: one of those of `etch_granularity_at`;
     * NULL: "kernel" */
    const char *granularity;
    /* what of the work counts as FLOP: a preset, or items, or a preset and what differs from it,
     * "megatron,causal=full": `etch_describe_counts`; NULL: all of it, as executed */
    const char *count;
    /* `set_count` texts "NAME=EXPR", also several joined by commas; before the config */
    const char *const *sets;
    size_t set_count;
    /* bind params that have only a default, and mesh axes without a size to 1, in queries and checks;
     * `etch_session_lower` always does */
    bool defaults;
    /* bytes that the session may hold; 0: ETCH_MEMORY_LIMIT */
    size_t memory_limit;
} etch_session_options;

#define ETCH_MEMORY_LIMIT ((size_t)4 << 30)

/* Granularities; NULL after the last.
 *   kernel  a product, attention, norm, ..., with the chains of elementwise ops before or after it
 *   op      each op that does anything
 *   block   all work of a phase between two collectives, or between one and the end of a loop's iteration
 * FLOP and communication are the same in all of them. What stays inside a node is not read from memory nor
 * written to it. */
ETCH_API const char *etch_granularity_at(size_t i);

/* Reads the spec and what it imports. `*session` is a session also after an error, for its messages (and NULL
 * only with ETCH_ENOMEM); it then refuses everything else with the same status.
 * ETCH_EINPUT: the spec has errors. ETCH_EIO: it cannot be read. */
ETCH_API etch_status etch_session_open(const etch_session_options *options, etch_session **session);

/* Ends a session and frees all that belongs to it. NULL is allowed. */
ETCH_API void etch_session_close(etch_session *session);

/* Asks a running call that reads or writes traces, or the next one, to end soon, leaving nothing behind. It
 * then returns ETCH_ELIMIT. */
ETCH_API void etch_session_cancel(etch_session *session);

/* ---- messages --------------------------------------------------------------------------------------- */

/* A range of characters. Lines and columns (characters) count from 1; the end is after the last one. */
typedef struct etch_location {
    /* as it was given or written in an import; NULL: nowhere in a file */
    const char *path;
    uint32_t line, column;
    uint32_t end_line, end_column;
} etch_location;

typedef struct etch_comment {
    etch_location location;
    const char *text;
} etch_comment;

/* One message: an error of the input, a warning, or a remark on a result. */
typedef struct etch_message {
    /* "error", "warning" or "remark" */
    const char *severity;
    /* "E0203"; never changes its meaning. "" for none */
    const char *code;
    etch_location location;
    /* one line */
    const char *text;
    /* what is known */
    const etch_comment *notes;
    /* what would help; mostly nowhere in a file */
    const etch_comment *helps;
    size_t note_count, help_count;
} etch_message;

/* All messages so far, in the order of their discovery; at most 20 of each severity. `*count` of them. */
ETCH_API const etch_message *etch_session_messages(etch_session *session, size_t *count);

/* The same as text for a person, with source lines and carets. "" when there are none. */
ETCH_API const char *etch_session_message_text(etch_session *session);

/* What a status means, in a few words: "memory is out". A static text. */
ETCH_API const char *etch_status_text(etch_status status);

/* ---- values in force -------------------------------------------------------------------------------- */

typedef struct etch_binding_row {
    /* of a param or a mesh axis */
    const char *name;
    /* a number, or a formula in other params */
    const char *value;
    /* "run", "set", "config" or "default" */
    const char *from;
} etch_binding_row;

/* What binds params and axes, each once, in order of declaration. */
ETCH_API etch_status etch_session_bindings(etch_session *session, const etch_binding_row **rows,
                                           size_t *count);

/* ---- check ------------------------------------------------------------------------------------------ */

/* What a plan demands of the values that it is used with. */
typedef struct etch_demand {
    const char *plan;
    /* "tp | kv_heads" */
    const char *text;
    etch_location location;
} etch_demand;

/* What a plan of an imported file speaks of and the models lack. The plan holds without it. */
typedef struct etch_absence {
    const char *plan;
    /* "dim A" */
    const char *text;
    etch_location location;
} etch_absence;

/* What became of a `check` line of the spec. */
typedef struct etch_verdict {
    /* "proved", "refuted" or "unknown" */
    const char *verdict;
    /* as written */
    const char *text;
    etch_location location;
} etch_verdict;

typedef struct etch_check_report {
    /* names, in order of declaration, imports first */
    const char *const *modules;
    const char *const *models;
    const char *const *configs;
    const char *const *plans;
    size_t module_count, model_count, config_count, plan_count;
    const etch_demand *demands;
    size_t demand_count;
    const etch_absence *absences;
    size_t absence_count;
    const etch_verdict *verdicts;
    size_t verdict_count;
} etch_check_report;

/* Builds every model of the spec, derives what it trains, places every plan, and decides the `check` lines
 * of the spec. Values of `sets`, of the config and, with `defaults`, of the defaults take the place of
 * params, and assumptions and demands that they contradict are errors.
 * ETCH_EINPUT: errors, or a check line is refuted. ETCH_EUNKNOWN: otherwise fine, but a check line could be
 * neither proved nor refuted (a warning says which). `*report` is complete with ETCH_OK and ETCH_EUNKNOWN;
 * otherwise it is NULL or holds what was found. */
ETCH_API etch_status etch_session_check(etch_session *session, const etch_check_report **report);

/* ---- query ------------------------------------------------------------------------------------------ */

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

typedef struct etch_amount {
    /* an exact number, or a formula: in the language of specs, or as the query asked */
    const char *text;
    bool is_number;
    /* of a number: three significant digits and the unit, "8.03 G", "1.05 GB"; else NULL */
    const char *human;
    /* of a formula, when the query asks for ETCH_JSON: this; `text` is ETCH_PLAIN then */
    const char *json;
} etch_amount;

typedef struct etch_row_amount {
    const char *label;
    etch_amount amount;
} etch_row_amount;

/* A part of an explanation why a collective is there. */
typedef struct etch_phrase_view {
    /* "made": how the tensor came to be held as it is; "needed": what asks for the collective; "plan": a line
     * of the plan after one of the two */
    const char *part;
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
    /* NULL of parameters */
    const char *phase;
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
    /* "elements", "FLOP", "bytes"; "" when the expression is not one quantity alone */
    const char *unit;
    /* the session's counting convention, every item: "causal=half,..."; NULL: work as executed */
    const char *count;
    etch_amount amount;
    /* name of the breakdown, "" without */
    const char *by;
    /* what `amount` is of the rows: "total", or the "heaviest" of stages; NULL when which of them is the
     * heaviest depends on values: `amount` is the greatest of all */
    const char *sum_label;
    /* in the order of the program. Rows of 0 are left out */
    const etch_row_amount *rows;
    size_t row_count;
    /* when the query asks why; in the order of the formula */
    const etch_term *terms;
    size_t term_count;
} etch_answer;

/* The value of an expression over params, dims (sizes over the whole job), mesh axes and quantities. Params
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
ETCH_API etch_status etch_session_query(etch_session *session, const char *expression, etch_breakdown by,
                                        const etch_answer **answer);

/* ---- show ------------------------------------------------------------------------------------------- */

/* One microbatch through one chunk of a stage in one direction. Times are what they would be if every forward
 * slot took 1, every backward slot 2, and messages no time. */
typedef struct etch_pipeline_slot {
    bool backward;
    uint32_t chunk;
    uint64_t microbatch;
    uint64_t start, end;
} etch_pipeline_slot;

typedef struct etch_pipeline_stage {
    /* most forward slots whose backward slot has not begun; 0 without training */
    uint64_t in_flight;
    /* in the order of the stage */
    const etch_pipeline_slot *slots;
    size_t slot_count;
} etch_pipeline_stage;

typedef struct etch_pipeline_report {
    /* config may be NULL */
    const char *model, *plan, *config;
    /* "one_f_one_b" */
    const char *schedule;
    /* false: forward slots only */
    bool trains;
    /* of each stage; chunk c of stage s is model chunk c*stages + s of the chain */
    uint32_t chunks;
    uint64_t microbatches;
    /* end of the last slot */
    uint64_t time;
    /* time that a stage waits, as a fraction of the time that it works: "3/8" */
    const char *bubble;
    /* NULL when these sizes have none */
    const char *bubble_formula;
    /* of stage number `stage`; NULL without training or stages */
    const char *in_flight_formula;
    const etch_pipeline_stage *stages;
    size_t stage_count;
} etch_pipeline_report;

/* The order in which the stages of the plan work; a plan without stages has one. Binds defaults.
 * ETCH_EINPUT: values are missing, or cannot be what they are. ETCH_ELIMIT: too large to be looked at. */
ETCH_API etch_status etch_session_pipeline(etch_session *session, const etch_pipeline_report **report);
/* The result of a pass (`etch_pass_at`), as text for people: its form may change. "model" and "train" need no
 * plan. Values of params and axes are put in. ETCH_EINPUT: no such pass, or errors in the model or plan. */
ETCH_API etch_status etch_session_pass(etch_session *session, const char *pass, const char **text);
/* How a query is answered. All zero: as `etch_session_query` does without a breakdown. */
typedef struct etch_query_options {
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
} etch_query_options;

ETCH_API etch_status etch_session_query_with(etch_session *session, const char *expression,
                                             const etch_query_options *options, const etch_answer **answer);

/* "plain", "latex", "c", "python", "json"; "expanded", "factored", "relative"; NULL after the last. */
ETCH_API const char *etch_notation_name(etch_notation notation);
ETCH_API const char *etch_form_name(etch_form form);

/* ---- the graph -------------------------------------------------------------------------------------- */

/* No tensor, op, loop or module. */
#define ETCH_VIEW_NONE SIZE_MAX

/* Numbers and formulas are exact: over params, with the values in force. `..._by_dims` says the same with the
 * names of `etch_view_dim` as variables, and `micro` for the number of microbatches. */
typedef struct etch_view_dim {
    /* as in the spec; "X#2" when another dim of the report has this name */
    const char *name;
    /* elements, over the whole job */
    const char *size;
    /* declared with ~ */
    bool average;
    /* it is the dim that `accumulate` names, or slots that its tokens fill: a microbatch has `size` / micro
     * of it */
    bool divided;
} etch_view_dim;

typedef struct etch_view_tensor {
    /* As in the spec; "x#2" is another tensor of this name, in the order of the program. "y.1" is what a part
     * of the statement of y gives, "y.mask" its mask. "dx", "d(x#2)" are gradients with respect to them,
     * "x.again" is x computed again. */
    const char *name;
    /* "input", "weight", "value", "gradient" (accumulated over all microbatches), "constant" */
    const char *kind;
    /* "bf16" */
    const char *dtype;
    /* `dim_count` indices into the dims of the report */
    const size_t *dims;
    size_t dim_count;
    /* of one microbatch and iteration, over the whole job */
    const char *bytes;
    /* where it is defined, */
    size_t module;
    /* and in which loop: each iteration has one */
    size_t loop;
    /* the tensor that it is a gradient of, or a second computation of */
    size_t of;
    /* the gradient that its op adds it to in place; it is no tensor of its own then */
    size_t added_to;
    /* a weight without gradient; the same value as the operand of the op that gives it */
    bool frozen, passed;
    const char *const *tags;
    size_t tag_count;
    etch_location location;
} etch_view_tensor;

typedef struct etch_view_op {
    /* of the op table: "einsum" */
    const char *name;
    /* beside operands, as a spec says them: "over = S, causal = true"; "" for none */
    const char *arguments;
    /* "forward", "recompute", "backward" */
    const char *phase;
    const size_t *ins, *outs;
    size_t in_count, out_count;
    /* where it stands; a derived one: where what it derives from stands */
    size_t module;
    /* the innermost one around it */
    size_t loop;
    /* derived: the op whose gradient it computes, or that it repeats; NONE when that is not part of the
     * report, and of sums of gradients */
    size_t forward;
    /* the name of that op; NULL when it derives from none */
    const char *derives;
    /* of one iteration of the loops around it, all microbatches, over the whole job */
    const char *flop;
    const char *flop_by_dims;
    /* iterations of the loops around it: a step has flop * runs FLOP of it */
    const char *runs;
    /* hands a value on unchanged: an argument, a result, a gradient with one use */
    bool passes;
    etch_location location;
} etch_view_op;

/* A loop-carried value: the first gets `init` (NONE: zeros) as `in`, each next one `out` of the one before
 * it, and what comes after the loop `out` of the last, as `result`. */
typedef struct etch_view_carry {
    size_t init, in, out, result;
} etch_view_carry;

/* Iterations of a loop that are alike; where a loop has several classes of them, each is a member. */
typedef struct etch_view_loop {
    /* "layer" */
    const char *name;
    /* how many are of the class; of all classes */
    const char *count, *total;
    /* the same for all classes of a loop, and for no other loop */
    size_t number;
    /* which: "0 to 17 where layer % 6 is 4, 5"; NULL: all */
    const char *iterations;
    /* where it stands; the loop around it */
    size_t module, parent;
    /* of the backward pass: the loop whose iterations it undoes, the last one first */
    size_t undoes;
    const etch_view_carry *carries;
    size_t carry_count;
    etch_location location;
} etch_view_loop;

/* One call of a module; the model itself. */
typedef struct etch_view_module {
    /* as in the spec; "norm#2" is the second call in its caller */
    const char *name;
    /* of calls: "block.norm#2"; of the model its name */
    const char *path;
    /* the caller; NONE for the model */
    size_t parent;
    /* the innermost one around the call */
    size_t loop;
    /* as the caller calls them */
    const size_t *arguments, *results;
    size_t argument_count, result_count;
    /* of the call */
    etch_location location;
} etch_view_module;

/* A value of the forward pass that the backward pass reads, so that it is kept until then. */
typedef struct etch_view_saved {
    size_t tensor;
    /* of one microbatch, all iterations of the loops around it, over the whole job */
    const char *bytes;
    /* of one iteration */
    const char *bytes_by_dims;
    /* iterations */
    const char *runs;
    /* the first op of the backward pass that reads it; NONE when that is not part of the report */
    size_t reader;
    /* that op's name, */
    const char *reader_name;
    /* "recompute" or "backward", */
    const char *reader_phase;
    /* and the name of the one that it derives from */
    const char *reader_derives;
    etch_location reader_location;
} etch_view_saved;

typedef struct etch_view_total {
    const char *phase;
    /* of a step, over the whole job; of a part: of one call of it, one iteration */
    const char *flop;
} etch_view_total;

typedef struct etch_graph_report {
    /* config may be NULL */
    const char *model, *config;
    /* as asked; NULL: the whole model */
    const char *part;
    /* how many calls or loops have this name: the first is shown. 1 of tensors, which are all shown */
    size_t calls;
    /* microbatches of a step */
    const char *micro;
    /* false: there is no backward pass */
    bool trains;
    const etch_view_dim *dims;
    /* in the order of their definition */
    const etch_view_tensor *tensors;
    /* in the order of the program: forward, then backward */
    const etch_view_op *ops;
    const etch_view_loop *loops;
    /* callers before those that they call; 0 is the model */
    const etch_view_module *modules;
    /* in the order of the forward pass */
    const etch_view_saved *saved;
    /* of phases that have ops */
    const etch_view_total *totals;
    size_t dim_count, tensor_count, op_count, loop_count, module_count, saved_count, total_count;
} etch_graph_report;

/* The graph of the model, and what is derived from it: which gradients are computed how, and which values are
 * kept for them. `part` may name a module, loop, tag or module.tensor, as `of =` in queries does; NULL:
 * everything. ETCH_EINPUT: the model has errors, or no such part. */
ETCH_API etch_status etch_session_graph(etch_session *session, const char *part,
                                        const etch_graph_report **report);

/* ---- prove ------------------------------------------------------------------------------------------ */

typedef struct etch_assignment {
    const char *name, *value;
} etch_assignment;

/* What became of a statement. Formulas are in the language of specs, with the values in force. */
typedef struct etch_proof {
    /* as asked */
    const char *statement;
    /* "proved", "refuted" or "unknown" */
    const char *verdict;
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

/* ---- lower ------------------------------------------------------------------------------------------ */

typedef struct etch_output_options {
    /* where to write; may be NULL for a dry run. Created when missing. A folder that holds nothing but an
     * earlier run is replaced as a whole when this one succeeds */
    const char *folder;
    /* of the traces, <name>.<rank>.et; NULL: the model's name */
    const char *name;
    /* 0 counts as 1. The bytes written do not depend on it */
    unsigned threads;
    /* write also into a folder that holds other files; those stay */
    bool force;
    /* change nothing on disk */
    bool dry_run;
    /* also write what ASTRA-sim needs beside traces and groups: network.yml, system.json, memory.json, and
     * astra-sim.sh with the command */
    bool astra_sim;
    /* write the traces of these only, "0,2,8-15"; NULL: of all. Groups, manifest and totals are those of all
     * ranks */
    const char *ranks;
    /* of nodes: one of those of `etch_naming_at`; NULL: "short" */
    const char *names;
    /* what nodes say beside what simulators read: several of those of `etch_annotation_at`, joined by commas;
     * NULL: nothing */
    const char *attrs;
} etch_output_options;

/* What nodes can be called; NULL after the last.
 *   short  phase, microbatch, loops, the innermost modules and the tensor: "F0.layer3.attention.q"
 *   full   also Chakra's type, the stage and all modules:
 *          "COMP_NODE.forward.mb0.stage0.layer3.llama.block.attention.q"
 *   none   nothing */
ETCH_API const char *etch_naming_at(size_t i);

/* Attributes that nodes can have for people and their scripts; NULL after the last. A node has those that
 * mean something of it.
 *   phase       string_val  forward, recompute, backward, sync, optimizer
 *   layer       int64_val   iteration of the outermost loop that the node is in
 *   microbatch  int64_val   from 0; none at the end of a step
 *   op_type     string_val  as in `--by op` and `--by collective`: einsum, all_gather; send, recv
 *   module      string_val  the module it is of: llama.block.attention; none of messages */
ETCH_API const char *etch_annotation_at(size_t i);

/* Payload of one rank in a step, as comm_size counts it. */
typedef struct etch_output_comm {
    /* "all_reduce" */
    const char *collective;
    /* "tp", "(dp,tp)" */
    const char *axes;
    const char *bytes, *bytes_human;
    uint64_t nodes;
} etch_output_comm;

/* Ranks of one pipeline stage, and of one part of it where parts do unequal work; numbers are of one of its
 * ranks and one step, less the padding that simulators ask for. */
typedef struct etch_output_stage {
    uint32_t ranks, nodes;
    const char *flop, *flop_human;
    /* read and written */
    const char *bytes, *bytes_human;
    const etch_output_comm *comm;
    size_t comm_count;
    uint32_t stage, part;
} etch_output_stage;

typedef struct etch_output_report {
    /* config and folder may be NULL */
    const char *model, *plan, *config, *folder;
    /* the name of the train or infer block; NULL when it has none */
    const char *run;
    /* false for a dry run: the same numbers, of what would be written */
    bool written;
    uint32_t ranks;
    /* programs: ranks of one class differ in group ids only */
    uint32_t classes;
    /* communication groups */
    uint32_t groups;
    /* as many as `ranks`, unless some were chosen */
    uint32_t ranks_written;
    /* of the ranks written */
    uint64_t nodes;
    uint64_t files;
    /* on disk, all files */
    uint64_t bytes;
    /* stage by stage, and part by part of each */
    const etch_output_stage *stages;
    size_t stage_count;
    /* of each stage: 1 unless ranks of a stage do unequal work */
    uint32_t part_count;
} etch_output_report;

/* Binds all params and axes, and writes one trace for each rank, comm_group.json and manifest.json. Nothing
 * is left on disk when it fails, and what was there stays.
 * ETCH_EINPUT: values are missing, contradict an assumption or a demand of the plan, or the folder holds
 * files of others. ETCH_EIO: cannot write. ETCH_ELIMIT: a limit of traces, or cancelled. */
ETCH_API etch_status etch_session_lower(etch_session *session, const etch_output_options *options,
                                        const etch_output_report **report);

/* ---- traces for people ------------------------------------------------------------------------------ */

typedef enum etch_dump_as {
    /* what all nodes add up to, as tables */
    ETCH_DUMP_AS_SUMMARY,
    /* a JSON object on a line for each node */
    ETCH_DUMP_AS_JSON,
    /* the text form of traces: `etch_session_assemble` gives back the same bytes */
    ETCH_DUMP_AS_TEXT
} etch_dump_as;

/* Where text goes, piece by piece; not NUL-terminated. Returns false when it cannot be written. */
typedef bool (*etch_write)(void *data, const char *text, size_t length);

/* Reads Chakra traces of any tool, one message at a time, and says what is in them. `path` is a trace or a
 * folder; `ranks` lists those that are wanted, "0,2,8-15", NULL for all. The session needs no spec.
 * ETCH_EINPUT: something is no trace; what comes before has been written, as text also what it is made of.
 * ETCH_EIO: a file cannot be read, or `write` failed. ETCH_ELIMIT: cancelled. */
ETCH_API etch_status etch_session_dump(etch_session *session, const char *path, etch_dump_as as,
                                       const char *ranks, etch_write write, void *data);

typedef struct etch_assembled {
    const char *folder;
    uint32_t files;
    /* of all files */
    uint64_t bytes;
} etch_assembled;

/* Makes a new folder (or fills an empty one) with the files that `text`, in the text form of traces,
 * describes; it may describe broken ones. `name` is for messages. The session needs no spec. Nothing is left
 * when it fails. ETCH_EINPUT: mistakes in the text, or the folder holds something. ETCH_EIO: cannot write. */
ETCH_API etch_status etch_session_assemble(etch_session *session, const char *name, const char *text,
                                           size_t length, const char *folder, const etch_assembled **result);

/* ---- verify ----------------------------------------------------------------------------------------- */

typedef struct etch_verification_options {
    /* a folder of traces, or a folder and the name of the traces: "out", "out/llama" */
    const char *path;
    /* the file of groups; NULL: comm_group.json beside the traces, when it is there */
    const char *groups;
    /* 0 counts as 1. The result does not depend on it */
    unsigned threads;
    /* a send waits until its receive is posted; otherwise sends are eager */
    bool rendezvous;
    /* runs with random durations, from the seeds 1, 2, ... */
    uint32_t seeds;
} etch_verification_options;

/* What a rank held at most at any moment of the runs with random durations. */
typedef struct etch_rank_marks {
    /* nodes that wait for nothing but a slot or their end */
    uint32_t ready;
    /* microbatches of which some work has begun, and some not finished */
    uint32_t in_flight;
} etch_rank_marks;

typedef struct etch_verification {
    /* "always": every rank finishes, whatever the timing. "timing": it does under nominal durations, and
     * may not under others. "stalls": some rank does not finish. "none": broken rules leave nothing to
     * say. */
    const char *verdict;
    uint32_t ranks, groups;
    /* different programs: ranks of one differ in groups, peers and tags only */
    uint32_t programs;
    /* ranks that do not finish */
    uint32_t stalled;
    /* of all ranks */
    uint64_t nodes, bytes;
    /* nodes by what they do */
    uint64_t computations, collectives, sends, receives, memory;
    /* by rank; NULL without seeds */
    const etch_rank_marks *marks;
} etch_verification;

/* Reads the traces of all ranks, whoever wrote them, holds them against every rule that simulators rely
 * on, and says whether all ranks run to the end. The session needs no spec. ETCH_OK: no errors, and the
 * verdict is "always". ETCH_EUNKNOWN: no errors, and "timing". ETCH_EINPUT: errors. ETCH_EIO: something
 * cannot be read. ETCH_ELIMIT: too large, or cancelled by `etch_session_cancel`. `*result` is NULL when
 * there is nothing to tell. */
ETCH_API etch_status etch_session_verify(etch_session *session, const etch_verification_options *options,
                                         const etch_verification **result);

#ifdef __cplusplus
}
#endif

#endif
