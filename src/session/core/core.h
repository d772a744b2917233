/* The core of a session: the session itself, pipelines, values, statements, messages. */
#ifndef ETCH_SESSION_CORE_CORE_H
#define ETCH_SESSION_CORE_CORE_H

#include <stdatomic.h>

#include "emit/emit.h"
#include "etch/etch.h"
#include "lang/lang.h"
#include "lower/lower.h"

/* ---- pipelines ----------------------------------------------------------------------------------------- */

/* Costs of one rank of a stage. */
typedef struct etch_stage_costs {
    /* NULL: there is one stage */
    const etch_stage_view *view;
    /* bits of those that are listed */
    uint32_t measures;
    etch_cost_list costs;
} etch_stage_costs;

/* The memory of a rank of a stage. Unlike costs, it depends on the number of the stage. */
typedef struct etch_stage_memory {
    const etch_stage_view *view;
    etch_stage_place place;
    /* with the working set */
    bool working;
    etch_cost_list items;
} etch_stage_memory;

/* One model under one train block and one set of values, as far as it was needed: costs of the whole job
 * need no plan, costs of one rank need it placed. */
typedef struct etch_compiled {
    /* as asked; NULL: the spec's choice */
    const char *run;
    /* may be NULL */
    const etch_plan *plan;
    const etch_settings *settings;
    /* the plan, with so many layers recomputed as it takes to fit; NULL: it does not ask for that */
    const etch_plan *fitted;
    /* these layers, and of how many */
    uint64_t fitted_layers, fitted_of;
    /* it has not been found out yet how many these are, and there is no model before */
    bool waits;
    /* NULL: could not be built, and that has been reported */
    etch_model *model;
    /* without a backward pass when the model is not trained */
    etch_training *training;
    /* NULL until asked for, or when it could not be placed */
    etch_placed *placed;
    bool tried_to_place;
    /* the values have been found to mean something: for the model, under the plan, for its stages */
    bool allowed, divided, fits;
    /* NULL until asked for */
    const etch_op_roles *op_roles;
    /* NULL until asked for */
    const etch_cost_list *graph_costs;
    /* of one rank, as far as they were asked for */
    ETCH_VEC(etch_stage_costs *) stage_costs;
    /* likewise */
    ETCH_VEC(etch_stage_memory *) stage_memory;
} etch_compiled;

/* The values in force with one run and plan. */
typedef struct etch_in_force {
    /* as asked; NULL: the spec's choice */
    const char *run;
    /* may be NULL */
    const etch_plan *plan;
    /* the plans beside which this one was named; NULL: alone */
    const char *named;
    /* as asked; NULL: the spec's choice */
    const char *config;
    etch_defaults defaults;
    etch_settings settings;
    /* false: they have errors, which have been reported */
    bool fine;
} etch_in_force;

/* A mesh axis that a value of communication takes to be larger than 1. */
typedef struct etch_open_axis {
    const char *name;
    etch_expr size;
} etch_open_axis;

/* An assumption of a formula about the stages of a plan. */
typedef struct etch_open_stages {
    /* "pp > 1 stages" */
    const char *text;
    /* not 0 where it holds */
    etch_expr in_form;
    const etch_plan *plan;
} etch_open_stages;

/* The limit of what the formulas of one request cost: see etch_sym_limits. Of all that the baseline asks, the
 * largest needs some 200 million: half a second to two, by what is counted. */
enum { ETCH_REQUEST_OPERATIONS = 250000000 };

struct etch_session {
    etch_mem *mem;
    /* what messages are made of: outlives an exhausted session */
    etch_arena *reports;
    /* for the last message, given back before it is written */
    etch_arena *room;
    etch_diags *diags;
    /* everything else; NULL when a call was cut short */
    etch_arena *arena;
    /* the arena and the context are there, and outlive what fails */
    bool loaded;
    /* when it is not ETCH_OK, every call ends with it */
    etch_status broken;
    /* What the spec is read again from when the session begins anew: lives as long as the session. */
    etch_arena *kept;
    etch_session_options options;
    /* the spec of the options was a config, and is what was made of it */
    bool took_config;
    etch_shelf shelf;
    /* bytes that the session may hold after a release without beginning anew */
    size_t budget;
    /* the latest release began anew */
    bool renewed;
    /* of quantities that do not say another */
    etch_count count;
    etch_sym *sym;
    etch_spec *spec;
    ETCH_VEC(etch_in_force *) in_force;
    /* The question is of one case and not of all: what a config leaves out takes its default. Statements are
     * made of all values. */
    bool of_one_case;
    /* values that the run hides */
    bool warned_of_hidden;
    ETCH_VEC(etch_compiled *) compiled_models;
    /* the last one that a quantity asked for */
    const etch_compiled *latest;
    /* of the request: whose cluster steps run on; NULL: the session's own */
    const etch_session *machine;
    /* that cluster, where it is known already; it outlives the session. NULL: it is to be found */
    const etch_cluster *cluster;
    /* of its cluster; NULL: none */
    const char *stack;
    /* of the request: steps that have been run; query/time.c knows them */
    struct etch_timed_run *timed_runs;
    /* since `latest` was reset */
    ETCH_VEC(etch_open_axis) open_axes;
    /* likewise */
    ETCH_VEC(etch_open_stages) open_stages;
    atomic_int cancel;
};

/* The values in force with a plan, which may be NULL. NULL after a reported error. */
const etch_settings *etch_session_settings(etch_session *session, const etch_plan *plan);
/* Copies the sets of `given`, those of plans and others apart. */
void etch_session_divide_sets(etch_arena *arena, const etch_session_options *given,
                              etch_session_options *own);
/* The length of the piece of a list before the next comma that is in no brackets and no quotes. */
size_t etch_piece_of_list(const char *text);
/* The same of a run (NULL: the spec's choice), which may bind params itself. */
const etch_settings *etch_run_settings(etch_session *session, const char *run, const etch_plan *plan);
/* The plan that the options, or the spec, name. False after a reported error; the plan may be NULL when
 * nothing names one. */
bool etch_session_plan(etch_session *session, const etch_plan **plan);
/* The pipeline of a train block and a plan (NULL: the session's choice), built when it is new. With
 * `needs_plan` there must be a plan. NULL after a reported error. `asked` is the place in a query. */
etch_compiled *etch_compiled_get(etch_session *session, const char *run, const char *plan, bool needs_plan,
                                 etch_span asked);
/* The same as far as it is known without its memory: it may still wait for the layers that fit. NULL after an
 * error, which may be a bug and not reported. */
etch_compiled *etch_compiled_find(etch_session *session, const char *run, const char *plan, bool needs_plan,
                                  etch_span asked);
/* Builds the model of a pipeline, or takes that of one which is alike; it stays NULL after an error. */
void etch_compiled_build(etch_session *session, etch_compiled *compiled);
/* Nothing came of it: that has been reported, or is a bug and ends as one. */
void etch_compiled_lost(const etch_session *session);
/* What the model does as a whole, whatever the plan. */
const etch_cost_list *etch_compiled_graph_costs(etch_session *session, etch_compiled *compiled);
/* Places the pipeline's plan. False after a reported error. */
bool etch_compiled_place(etch_session *session, etch_compiled *compiled);
/* Do the values mean something for the model and its step? Refuses what lowering would; of what has no value
 * yet, only what no value would mend. False after a reported error. */
bool etch_compiled_allow(etch_session *session, etch_compiled *compiled);
/* The same under the plan, which is placed: also what it requires of sizes. */
bool etch_compiled_divide(etch_session *session, etch_compiled *compiled);
/* The same, and the units of the model fit the stages. */
bool etch_compiled_fit(etch_session *session, etch_compiled *compiled);
/* The values of a pipeline as lower takes them. `placed`: under its plan, or NULL. */
etch_values etch_compiled_values(etch_session *session, const etch_compiled *compiled,
                                 const etch_placed *placed);

/* A stage that a quantity may be of. */
typedef struct etch_stage_item {
    /* "0", "1", ...; or "first", "middle", "last"; "whole" where there is one */
    const char *label;
    /* NULL: there is one */
    const etch_stage_view *view;
    etch_stage_place place;
} etch_stage_item;

typedef ETCH_VEC(etch_stage_item) etch_stage_list;
/* Reports units that do not fit the stages, where all of them have values. */
bool etch_session_stages_fit(etch_session *session, etch_compiled *p);
/* The stages of a plan, or only the one that is `wanted`; the plan is placed. False after a reported
 * error. */
bool etch_session_stages(etch_session *session, etch_compiled *compiled, const char *wanted, etch_span span,
                         etch_stage_list *out);
/* Items of one rank of a stage, in program order: those of the measures with a bit in `measures`. */
const etch_cost_list *etch_compiled_stage_costs(etch_session *session, etch_compiled *compiled,
                                                const etch_stage_view *view, uint32_t measures);
/* Items of what one rank of a stage holds; `stage` NULL: of a call that is on any. `working`: with the
 * working set, which takes the longest; `values` are those of etch_placed_workspace, the same for every
 * question to this pipeline. */
const etch_cost_list *etch_compiled_stage_memory(etch_session *session, etch_compiled *compiled,
                                                 const etch_stage_item *stage, bool working,
                                                 const etch_valuation *values);
/* Values of `compiled` put into an expression. */
etch_expr etch_compiled_apply(etch_session *session, const etch_compiled *compiled, etch_expr expr);
/* Says which params and mesh axes the expressions speak of, and how they are given values. `stage`, the
 * number of a stage in formulas, is none of them. Expressions may be NULL. */
void etch_help_unbound(etch_session *session, etch_diag *diag, const etch_expr *exprs, uint32_t count);
/* Remarks on defaults that values needed because the config in force leaves these params out. */
void etch_remark_config_defaults(etch_session *session);
/* Remarks on mesh axes that nobody has given a value, so that they are 1; with `of`, on those alone that it
 * speaks of. */
void etch_remark_default_axes(etch_session *session, const etch_compiled *p, etch_expr of);
/* A set of mesh axes without those that are bound to 1: no collective is over these. */
uint32_t etch_compiled_axes(etch_session *session, const etch_compiled *p, uint32_t axes);

/* How nodes are named and annotated. */
typedef struct etch_style {
    etch_naming naming;
    /* bits 1 << etch_annotation */
    unsigned annotations;
    /* the job has its workloads */
    bool workloads;
    /* as of etch_lower */
    uint32_t brief;
} etch_style;

/* Lowers a placed pipeline to a job, which checks every value; nothing is written. `style` may be NULL. */
etch_status etch_compiled_lower(etch_session *session, etch_compiled *compiled, const etch_style *style,
                                const etch_job **job) ETCH_MUST_CHECK;

/* ---- counting conventions ------------------------------------------------------------------------------ */

/* Reads a list as the option has it: "megatron,causal=full"; NULL: the work as it is executed. False after a
 * reported error. */
bool etch_session_read_count(etch_session *session, const char *list, etch_count *count);
/* The convention of a quantity: the session's, and what its arguments say. False after a reported error. */
bool etch_quantity_count(etch_session *session, const etch_quantity *quantity, etch_count *count);
const etch_op_roles *etch_compiled_op_roles(etch_session *session, etch_compiled *compiled);

/* ---- parts of a model ---------------------------------------------------------------------------------- */

/* Something in a graph that happens at one place of the program: a call of a module, a loop, a tensor. */
typedef struct etch_selected {
    /* one of the three */
    etch_scope *scope;
    /* of a loop: its iterations of one class */
    const etch_region *body;
    const etch_tensor *tensor;
    /* of a call, where it stands */
    const etch_region *region;
    /* how often it happens in one microbatch: the product of the loops around */
    etch_expr around;
} etch_selected;

typedef ETCH_VEC(etch_selected) etch_selection;
/* All parts that a selector names, in program order; at least one, or false after a reported error. */
bool etch_selection_find(etch_session *session, const etch_compiled *compiled, const char *selector,
                         etch_span span, etch_selection *out);
bool etch_selected_holds(const etch_selected *part, const etch_cost *cost);
/* How often the part has what costs that: as often as it happens, but a weight that calls share only as often
 * as there is one. */
etch_expr etch_selected_times(etch_sym *sym, const etch_selected *part, const etch_cost *cost);
etch_span etch_selected_span(const etch_selected *part);

/* ---- statements ---------------------------------------------------------------------------------------- */

/* The verdict on a statement with the values in force. */
typedef struct etch_judgement {
    etch_truth truth;
    /* with the values */
    etch_claim claim;
    /* ETCH_NO, unless no side has a variable */
    etch_witness witness;
    /* what must not be 0 for both sides to be defined, and may be */
    const etch_expr *nonzero;
    uint32_t nonzero_count;
} etch_judgement;

/* A claim with the values of `settings`. Sides that they make undefined are NULL. */
etch_claim etch_claim_apply(etch_session *session, const etch_claim *written, const etch_settings *settings);
/* Decides a claim whose sides are defined. Points where the claim says nothing, because a divisor is 0 or
 * because a mesh axis is 1 that its quantities take to be larger, refute nothing. */
etch_judgement etch_session_judge(etch_session *session, const etch_claim *written,
                                  const etch_settings *settings);
/* "a = 1, b = 2" */
const char *etch_witness_text(etch_session *session, const etch_witness *witness);
/* Do the values in force leave the spec's assumptions true, as far as they decide them? Formulas are
 * simplified under the assumptions, and say nothing where these are false. False after a reported error. */
bool etch_check_assumptions(etch_session *session, const etch_settings *settings);
/* Says for which mesh axes the values since the last call hold only when they are larger than 1. */
void etch_remark_open(etch_session *session);
/* Nothing has been taken to be larger than 1. */
void etch_forget_open(etch_session *session);

/* ---- options ------------------------------------------------------------------------------------------- */

/* Copies the members of options that both know from `given` (NULL: all zero) to `own`, of `size` bytes. NULL,
 * or why they are refused. */
const char *etch_options_read(const void *given, void *own, size_t size);

typedef struct etch_refusal {
    etch_session *session;
    const char *why;
} etch_refusal;
/* Ends a call with ETCH_EINPUT and this message. */
etch_status etch_session_refuse(etch_session *session, const char *why);

/* ---- results ------------------------------------------------------------------------------------------- */

etch_amount etch_amount_of(etch_session *session, etch_expr expr, etch_unit unit, etch_notation notation,
                           etch_form form);
/* A constant with three significant digits, the SI prefix and the unit: "8.03 G", "1.05 GB". */
const char *etch_human_text(etch_session *session, etch_expr constant, etch_unit unit);
/* A number above 0 that is known to lie between two constants. */
/* The text of the same for seconds, of two numbers of picoseconds above 0. */
const char *etch_seconds_text(etch_arena *arena, uint64_t low, uint64_t high);
etch_amount etch_amount_within(etch_session *session, etch_expr low, etch_expr high, etch_unit unit);
etch_location etch_locate(etch_session *session, etch_span span);
/* Runs `body(data)` under the session's guard, unless the session is broken. The first also refuses a session
 * without a spec. */
etch_status etch_session_run(etch_session *session, etch_status (*body)(void *data),
                             void *data) ETCH_MUST_CHECK;
etch_status etch_session_run_plain(etch_session *session, etch_status (*body)(void *data),
                                   void *data) ETCH_MUST_CHECK;
/* As the first, with the defaults of params that nothing binds, as what runs or is written needs values. */
etch_status etch_session_run_bound(etch_session *session, etch_status (*body)(void *data),
                                   void *data) ETCH_MUST_CHECK;

#endif
