/* The door of graph: the op table, forward graphs with named dimensions, and what is derived from them.
 *
 *     builder -> forward graph -> etch_train_derive -> training graph
 *             -> etch_place -> placed graph, its kernels and costs
 *
 * A graph is symbolic and knows no loop count: a loop is a count, and one body for each class of iterations
 * that are alike. Sizes are those of the whole job, except the dim that `accumulate` names: inside a training
 * graph it is the size of one microbatch (see `etch_training_size`). Graphs live in the arena that they were
 * made with and are not changed once the next stage has begun. Errors go to the diagnostics of the graph; a builder call that reports one returns NULL,
 * and NULL operands are taken silently (result NULL), so that one mistake gives one message. */
#ifndef ETCH_GRAPH_H
#define ETCH_GRAPH_H

#include "graph/cause.h"
#include "graph/count.h"
#include "graph/dtype.h"
#include "graph/options.h"
#include "graph/schedule.h"
#include "graph/table.h"
#include "graph/zero.h"
#include "symbolic/symbolic.h"

/* ---- dims, tensors, ops ----------------------------------------------------------------------------- */

typedef struct etch_dim {
    const char *name;
    etch_expr size;                 /* elements, over the whole job */
    bool ragged;                    /* declared with ~: a size on average */
    bool grows;                     /* what a cache holds, where a served model runs in several steps */
    uint32_t id;                    /* order of creation within the graph */
    const struct etch_dim *twin;    /* the dim that this one was first renamed from (keys of a sequence: its
                                    queries); NULL otherwise */
    const struct etch_dim *experts; /* of slots: whose they are; NULL for most */
    ETCH_VEC(const struct etch_dim *)
    holds; /* of slots: the dims of the tokens and choices that fill them, and those that they hold; none for
              most */
    etch_span span; /* where it is declared */
} etch_dim;
/* Is it `other`, or does it hold its elements? Then a microbatch of `other` is one of both. */
bool etch_dim_holds(const etch_dim *dim, const etch_dim *other);

typedef enum etch_kind {
    ETCH_INPUT, /* given to the model */
    ETCH_WEIGHT,
    ETCH_ACT,      /* result of an op, or the argument of a loop body */
    ETCH_GRADIENT, /* accumulator of the gradient of a weight: lives through all microbatches */
    ETCH_CONSTANT  /* known without being computed: the seed of the backward pass, zeros */
} etch_kind;

typedef enum etch_phase {
    ETCH_FORWARD,
    ETCH_RECOMPUTE,
    ETCH_BACKWARD,
    ETCH_SYNC,
    ETCH_OPTIMIZER,
    ETCH_PHASE_COUNT
} etch_phase;
const char *etch_phase_name(etch_phase phase);

/* One call of a module: where an op belongs, and what a plan's `for MODULE` speaks of. */
typedef struct etch_scope {
    const char *module;         /* name of the module or model */
    struct etch_scope *parent;  /* the caller's; NULL for the model */
    struct etch_region *region; /* where the call stands */
    uint32_t id;
    etch_span span; /* the call */
} etch_scope;
/* "llama.block.attention". `labels`, by scope id, take the place of the modules' names; NULL: none do. */
const char *etch_scope_path(etch_arena *arena, const etch_scope *scope, const char *const *labels);

typedef struct etch_tensor {
    uint32_t id;
    const char *name; /* as the spec says; derived ones: of the tensor that they derive from */
    etch_kind kind;
    etch_dtype dtype;
    etch_dim *const *dims; /* each once; their order has no meaning */
    uint32_t rank;
    struct etch_op *producer;   /* NULL for inputs, weights, arguments of loop bodies, constants */
    uint32_t output;            /* which result of the producer */
    struct etch_region *region; /* where it is made (weights: where they are declared) */
    etch_scope *scope;
    const char **tags;
    uint32_t tag_count;
    uint32_t first_op, end_op; /* ids of the ops that its statement made; both 0: only the producer */
    bool frozen;               /* weight without a gradient */
    bool wanted;               /* an infer run asks for it */
    bool optional_result; /* a result that exists for backward only, not written when nobody reads it (dropout
                             mask) */
    struct etch_tensor
        *of; /* derived: the forward tensor (cotangent, recomputed copy) or weight (gradient) */
    struct etch_tensor *adds_to; /* its producer adds it into this gradient in place; NULL otherwise */
    etch_span span;
} etch_tensor;

/* What an op says beside its operands. Unused fields are zero. */
typedef struct etch_attrs {
    etch_dim **over;
    uint32_t over_count;
    etch_dim **dot;
    uint32_t dot_count;
    etch_dim **from,
        **to; /* renaming, pairwise, see regroup.c; slice: over -> to[0]; routing: tokens -> slots; concat
                              and split: the dim of each part (NULL: a part of size 1 that has none) -> the whole */
    uint32_t map_count;
    etch_dim **kernel;
    uint32_t kernel_count;
    etch_dim **state;
    uint32_t state_count;
    etch_dim **slots;
    uint32_t slots_count;
    etch_dim **kept;
    uint32_t kept_count;
    bool sync;
    bool causal;
    etch_expr number;
    etch_expr window, cap, pairs, stride, size, chunk, groups, keep, limit; /* NULL: not said */
    uint32_t dtype;  /* an etch_dtype plus one; 0: not said */
    uint32_t absent; /* bits of the optional operands that are left out before one that is given */
} etch_attrs;

/* Where a keyword is kept: one of the pointers is set. */
typedef struct etch_keyword_field {
    etch_dim ***dims;
    uint32_t *dim_count; /* with `dims` */
    bool *flag;
    etch_expr *number; /* NULL when it is not said; a keyword that says 0 is not said */
    uint32_t *dtype;   /* 0 when it is not said, else an etch_dtype plus one */
} etch_keyword_field;
etch_keyword_field etch_keyword_field_of(const etch_keyword_info *info, etch_attrs *attrs);
/* Is it said? */
bool etch_keyword_is_said(const etch_keyword_field *field);
/* The first keyword that a call of the row needs and `attrs` does not say; NULL: all are said. */
const etch_keyword_info *etch_keyword_missing(const etch_row *row, const etch_attrs *attrs);

/* The operands of a call by the place that its row gives them; NULL: left out. */
enum { ETCH_MAX_OPERANDS = 16 };
typedef struct etch_operands {
    etch_tensor *at[ETCH_MAX_OPERANDS];
    const char *names[ETCH_MAX_OPERANDS]; /* NULL behind the last name of a row that takes any number */
    uint32_t least, most;                 /* operands that must be given, and all */
} etch_operands;
etch_operands etch_operands_of(etch_arena *arena, const etch_row *row);
/* The place of an optional operand; UINT32_MAX: there is none of this name. */
uint32_t etch_operands_slot(const etch_operands *operands, const char *name);

typedef enum etch_edge { ETCH_NO_EDGE, ETCH_ENTER, ETCH_LEAVE } etch_edge;

typedef struct etch_op {
    const etch_row *row;
    etch_tensor **ins;
    uint32_t in_count;
    etch_tensor **outs;
    uint32_t out_count;
    etch_attrs attrs;
    etch_phase phase;
    etch_scope *scope;
    etch_edge edge; /* of an identity that passes a value into or out of `scope` */
    struct etch_op
        *forward; /* derived op: the op whose gradient it computes; recomputed copy: the op it repeats */
    etch_span span;
    uint32_t id;
} etch_op;

/* A value that iterations hand on: body(in) -> out; `init` enters the first iteration, `result` leaves the
 * last. These two are the loop's, the same in all of its bodies; each body has its own `in` and `out`. */
typedef struct etch_carry {
    etch_tensor *init; /* NULL: starts as zeros */
    etch_tensor *in, *out, *result;
} etch_carry;

/* Iterations from `first` to before `end`; none where end <= first. Both are integers from 0 to the count of
 * the loop. */
typedef struct etch_segment {
    etch_expr first, end;
    uint32_t *class_of; /* by residue: the iteration modulo the period */
} etch_segment;
#define ETCH_NO_CLASS UINT32_MAX /* of residues that no iteration of the segment has */

/* Which iteration is of which class. The segments are disjoint and hold every iteration. */
typedef struct etch_pattern {
    uint32_t period; /* at least 1 */
    ETCH_VEC(etch_segment) segments;
} etch_pattern;

typedef struct etch_loop {
    const char *name; /* index name, or "loop" */
    etch_expr count;
    ETCH_VEC(struct etch_region *) bodies; /* by class of iterations; at least one */
    const etch_pattern *pattern;           /* NULL: one class */
    struct etch_loop
        *forward; /* backward loop: the forward loop that it undoes, in reverse order of iterations */
    struct etch_loop *repeats; /* copy made by recomputation: the forward loop that it runs again */
    uint32_t id;
    etch_span span;
} etch_loop;

typedef struct etch_item {
    etch_op *op; /* one of the two */
    etch_loop *loop;
} etch_item;

typedef struct etch_region {
    ETCH_VEC(etch_item) items; /* program order */
    struct etch_region *parent;
    etch_loop *loop; /* whose body it is; NULL at top level */
    /* of a body: */
    uint32_t index;  /* its class of iterations */
    etch_expr count; /* how many iterations of one run of the loop are of the class */
    ETCH_VEC(etch_carry) carries;
} etch_region;

/* What enters and leaves a loop: the carries of its first body, as `init` and `result` are those of all. */
#define etch_loop_carries(loop) (&(loop)->bodies.at[0]->carries)

typedef struct etch_graph {
    etch_arena *arena;
    const etch_table *table; /* the builtin one, unless replaced before the first op */
    etch_sym *sym;
    etch_diags *diags;
    etch_dtypes dtypes;
    const char *model;
    etch_region *forward;
    ETCH_VEC(etch_dim *) dims;
    ETCH_VEC(etch_tensor *) tensors; /* by id */
    ETCH_VEC(etch_tensor *) weights; /* in program order of their declaration */
    ETCH_VEC(etch_scope *) scopes;   /* by id; 0 is the model */
    uint32_t op_count, loop_count;
    bool serves; /* the model is served, not trained: caches hold what runs before it have left there */
    /* A served model that runs several times, one run behind the other: how often, and the number of the run
     * (an index, from 0), which sizes of caches and costs have in them. NULL: one run. */
    etch_expr steps, step;
    /* Defaults of params, for questions that only they decide (is the cache empty when training?). */
    const etch_expr *default_vars, *default_values;
    uint32_t default_count;
    /* the builder's place */
    etch_region *region;
    etch_scope *scope;
} etch_graph;

/* ---- building a forward graph ----------------------------------------------------------------------- */

etch_graph *etch_graph_new(etch_arena *arena, etch_sym *sym, etch_diags *diags, etch_dtypes dtypes,
                           const char *model, etch_span span);

/* A new dim. Two calls make two dims, whatever their names. */
etch_dim *etch_graph_dim(etch_graph *graph, const char *name, etch_expr size, bool ragged, etch_span span);
bool etch_has_dim(const etch_tensor *tensor, const etch_dim *dim);
/* Has `a` all dims of `b`? */
bool etch_covers(const etch_tensor *a, const etch_tensor *b);
/* "[B,S,H]", for messages; "?" for a NULL dim. */
const char *etch_dims_text(etch_arena *arena, etch_dim *const *dims, uint32_t count);

/* Calls of modules, in a stack: scopes name where ops belong. */
void etch_graph_enter(etch_graph *graph, const char *module, etch_span call);
void etch_graph_leave(etch_graph *graph);
/* Passes a value into the current scope (an argument, after etch_graph_enter) or out of it (a result, before
 * etch_graph_leave). */
etch_tensor *etch_graph_pass(etch_graph *graph, etch_edge edge, etch_tensor *value, const char *name,
                             etch_span span);

/* An input or a weight. A dim that appears twice is an error (help: write H'). */
etch_tensor *etch_graph_input(etch_graph *graph, const char *name, etch_dim *const *dims, uint32_t rank,
                              etch_dtype dtype, etch_span span);
etch_tensor *etch_graph_weight(etch_graph *graph, const char *name, etch_dim *const *dims, uint32_t rank,
                               etch_dtype dtype, bool frozen, etch_span span);

/* `row` applied to operands (a missing optional operand is not in `ins`). The row checks dims and infers
 * those of the result. `want` (may be NULL): dims declared for the statement; rows that cannot infer need
 * them, the results of others have no dims but these. Result 0. */
etch_tensor *etch_graph_call(etch_graph *graph, const etch_row *row, etch_tensor *const *ins,
                             uint32_t in_count, const etch_attrs *attrs, etch_dim *const *want,
                             uint32_t want_rank, etch_span span);

/* Declared dims of one of several results. */
typedef struct etch_result_dims {
    etch_dim *const *at;
    uint32_t count;
} etch_result_dims;
/* Does the row have several results (as many as are declared)? */
bool etch_row_is_several(const etch_row *row);
/* A call of such a row on one operand; fills `out`, one result for each of `want`. False after an error. */
bool etch_graph_call_several(etch_graph *graph, const etch_row *row, etch_tensor *x, const etch_attrs *attrs,
                             const etch_result_dims *want, etch_tensor **out, uint32_t count, etch_span span);

/* The same with operands by place. */
etch_tensor *etch_graph_call_operands(etch_graph *graph, const etch_row *row, const etch_operands *operands,
                                      const etch_attrs *attrs, etch_dim *const *want, uint32_t want_rank,
                                      etch_span span);

/* The operators. `etch_graph_product` multiplies two tensors and keeps exactly the dims `keep` (those of the
 * operands that are not kept are summed); keep == NULL: nothing is summed, and one operand's dims must
 * contain the other's (else an error that asks "outer product or contraction?"). `etch_graph_sum` adds or
 * subtracts with broadcast by name. */
etch_tensor *etch_graph_product(etch_graph *graph, etch_tensor *a, etch_tensor *b, etch_dim *const *keep,
                                uint32_t keep_rank, etch_span span);
etch_tensor *etch_graph_sum(etch_graph *graph, etch_tensor *a, etch_tensor *b, bool subtract, etch_span span);
/* Sums one tensor down to `keep`; the tensor itself when nothing is to sum. */
etch_tensor *etch_graph_reduce(etch_graph *graph, etch_tensor *a, etch_dim *const *keep, uint32_t keep_rank,
                               etch_span span);
/* `x[S->S']`: each dim `from[i]` becomes `to[i]`, of equal size (proved, else an error). */
etch_tensor *etch_graph_rename(etch_graph *graph, etch_tensor *a, etch_dim *const *from, etch_dim *const *to,
                               uint32_t count, etch_span span);
/* `x[(N,P)->M]`, `x[M->(N,P)]`: the dims `from` become the dims `to`, one side of which is a single dim; the
 * outer dims stand first. The products of the sizes are equal (proved, else an error). */
typedef struct etch_regroup {
    etch_dim *const *from;
    uint32_t from_count;
    etch_dim *const *to;
    uint32_t to_count;
} etch_regroup;
etch_tensor *etch_graph_regroup(etch_graph *graph, etch_tensor *a, const etch_regroup *groups, uint32_t count,
                                etch_span span);
/* What the attributes of a renaming say, as a spec writes it: "S->S', (N,P)->M". */
const char *etch_renaming_text(etch_arena *arena, const etch_attrs *attrs);

/* x times, or plus, a number. */
etch_tensor *etch_graph_scale(etch_graph *graph, etch_tensor *x, etch_expr number, etch_span span);
etch_tensor *etch_graph_shift(etch_graph *graph, etch_tensor *x, etch_expr number, etch_span span);
/* 1/x. */
etch_tensor *etch_graph_reciprocal(etch_graph *graph, etch_tensor *x, etch_span span);
/* Another name for the same value. */
etch_tensor *etch_graph_alias(etch_graph *graph, etch_tensor *x, etch_span span);

/* Names a result as the statement's left side does, and gives it tags (kept pointers must outlive the graph).
 */
void etch_graph_label(etch_tensor *tensor, const char *name, const char **tags, uint32_t tag_count,
                      etch_span span);

/* Has it this tag? */
bool etch_has_tag(const etch_tensor *tensor, const char *tag);

/* What names select. Is the scope a call of the module at the end of `path` (`length` characters: "block.attention"), and
 * are its callers those before? */
bool etch_scope_is_called(const etch_scope *scope, const char *path, size_t length);
/* Is it `outer`, or a call inside of it? */
bool etch_scope_is_inside(const etch_scope *scope, const etch_scope *outer);
/* Has the tensor this tag, or does `path` call it module.tensor? */
bool etch_tensor_is_selected(const etch_tensor *tensor, const char *path);

/* Says that the statement made `tensor` and all ops since there were `op_count` of them. */
void etch_graph_state(const etch_graph *graph, etch_tensor *tensor, uint32_t op_count);

/* Passes go as deep as loops are nested: whoever builds a graph for others nests no more. */
enum { ETCH_LOOPS_NESTED = 400 };

/* Loops. Between begin and end the builder works in the body. `etch_graph_carry` (right after begin) makes
 * the body's version of a value that the body changes; `etch_graph_end` gets the body's last version of each
 * carried value, in the same order (dims must be equal), and fills `results` with the values after the loop.
 */
etch_loop *etch_graph_begin(etch_graph *graph, const char *name, etch_expr count, etch_span span);
etch_tensor *etch_graph_carry(etch_graph *graph, etch_tensor *init, etch_span span);
/* Ends a body with its last versions and begins that of another class; fills `ins` with its versions of the
 * carried values. `etch_graph_classes` says, before or after the end, which iterations are of which class. */
void etch_graph_next_body(etch_graph *graph, etch_tensor *const *outs, etch_tensor **ins, uint32_t count);
void etch_graph_classes(etch_graph *graph, etch_loop *loop, const etch_pattern *pattern);
void etch_graph_end(etch_graph *graph, etch_tensor *const *outs, etch_tensor **results, uint32_t count);

/* As etch_max and etch_min, simpler where facts tell which of the two it is. */
etch_expr etch_larger(etch_sym *sym, etch_expr a, etch_expr b);
etch_expr etch_smaller(etch_sym *sym, etch_expr a, etch_expr b);
/* How many of the iterations from `low` to before `high` of a loop are of the class of `body`. */
etch_expr etch_class_count(etch_sym *sym, const etch_region *body, etch_expr low, etch_expr high);

/* Warns of each weight that nothing reads, or that neither `results` (NULL: failed ones) nor a loss depend on. */
void etch_graph_warn_unused(const etch_graph *graph, etch_tensor *const *results, uint32_t count);

/* Leaves of a forward graph what `wanted` and the caches need, and marks `wanted` as outputs: no partial sum
 * is left of them. NULL entries are skipped. */
void etch_graph_keep(etch_graph *graph, etch_tensor *const *wanted, uint32_t count);

/* ---- training --------------------------------------------------------------------------------------- */

typedef struct etch_optimizer {
    const etch_row *row; /* adamw, sgd, ... */
    bool master;         /* keeps a master copy of the weights */
    bool main_grads;     /* works on a copy of the gradients, which it makes and keeps */
} etch_optimizer;

/* What is run again in backward instead of being kept: loops, by their iterations; modules; tags and module.tensor,
 * whose statements make their values again. */
typedef struct etch_recompute {
    ETCH_VEC(const char *) selectors;
    ETCH_VEC(etch_span) spans; /* of the selectors */
    ETCH_VEC(uint32_t)
    places;         /* of the selectors: the scope of the plan that they stand in, its place in the plan's
                                  list plus one; 0 or missing: in none */
    bool all;       /* every outermost loop */
    bool needed;    /* without what nobody reads */
    etch_span span; /* where it is said; nowhere when it is not */
} etch_recompute;

typedef struct etch_train {
    etch_dim *batch; /* the dim that `accumulate` names; NULL: one microbatch */
    etch_expr micro; /* number of microbatches of a step */
    etch_optimizer optimizer;
    const char *const *recompute;     /* as in etch_recompute */
    const etch_span *recompute_spans; /* NULL: `span` */
    const uint32_t *recompute_places; /* as in etch_recompute; NULL: all 0 */
    const struct etch_plan *plan;     /* whose scopes those are */
    uint32_t recompute_count;
    bool recompute_all;    /* every outermost loop */
    bool recompute_needed; /* without what nobody reads */
    const etch_span *freeze_spans;
    const char *const *freeze; /* modules, loops, tags, module.tensor: their weights are not trained */
    uint32_t freeze_count;
    bool clip; /* a global norm of the gradients before the optimizer */
    etch_span span;
} etch_train;

/* Weights that are synchronised and updated together: one iteration of an outermost loop, or what lies
 * between loops. Each class of iterations has its own. */
typedef struct etch_unit {
    etch_loop *loop;   /* forward loop, or NULL */
    etch_region *body; /* of its iterations: the class; NULL without a loop */
    uint32_t segment;  /* order of first use at top level */
    ETCH_VEC(etch_tensor *) weights;
    ETCH_VEC(etch_expr) copies; /* how often each weight exists in one unit: 1, or the count of inner loops */
} etch_unit;

/* A training graph: the forward region of `graph` and what was derived from it. */
typedef struct etch_training {
    etch_graph *graph;
    etch_train train;
    etch_region *backward;             /* NULL when the model has no loss */
    ETCH_VEC(etch_tensor *) gradients; /* by order of weights; NULL where a weight has none */
    ETCH_VEC(etch_unit *) units;
} etch_training;

/* Replaces what is run again. `plan`: whose scopes it speaks of; NULL: of none. */
void etch_train_recompute(etch_train *train, const etch_recompute *recompute, const struct etch_plan *plan);

/* Derives backward, recomputation and the units. A graph may be trained in several ways, one after the other. NULL after an error (no loss, an op that has no gradient).
 */
etch_training *etch_train_derive(etch_graph *graph, const etch_train *train);

/* Size of a dim inside the graph: of one microbatch for the batch dim. */
etch_expr etch_training_size(const etch_training *training, const etch_dim *dim);

/* A value of the forward pass that is kept until backward, or what is run again there, has read it: what is in memory,
 * whatever it is called, once. Weights and inputs are there anyway. */
typedef struct etch_saved {
    const etch_tensor *tensor; /* behind renames, slices and what passes in and out of modules */
    const etch_region *body;   /* of the innermost loop whose iterations keep one each; NULL: kept once */
    etch_expr elements;        /* of one, of one microbatch */
    uint32_t width;            /* bytes of an element */
    etch_expr times;           /* how many of them one microbatch keeps */
    const etch_op *reader;     /* the first op that reads it: why it is kept */
} etch_saved;
typedef ETCH_VEC(etch_saved) etch_saved_list;

/* All of them, in the order of the forward pass. Empty without a backward pass. */
void etch_graph_saved(const etch_training *training, etch_saved_list *out);

/* The body of the forward graph that a derived loop's undoes or repeats; a forward one itself. */
const etch_region *etch_forward_body(const etch_region *body);

/* FLOP of one execution of an op; `size(data, dim)` says the size of a dim. */
typedef etch_expr (*etch_size_fn)(const void *data, const etch_dim *dim);
etch_expr etch_op_flop(etch_sym *sym, const etch_op *op, etch_size_fn size, const void *data);
/* Elements of a tensor. */
etch_expr etch_elements(etch_sym *sym, const etch_tensor *tensor, etch_size_fn size, const void *data);
/* Is the result the operand's memory under the same or other dims (renames, identities)? */
bool etch_op_is_view(const etch_op *op);

/* ---- plans and placement ---------------------------------------------------------------------------- */

#define ETCH_MAX_AXES 16

typedef struct etch_axis {
    const char *name;
    etch_expr size; /* a variable, or an expression over variables */
    etch_span span;
} etch_axis;

/* dim -> mesh axes, outermost first; none: cleared. */
typedef struct etch_shard {
    const char *dim;
    uint32_t axes[ETCH_MAX_AXES]; /* indices into the mesh */
    uint32_t axis_count;
    bool known; /* does the spec have a dim of this name? Else that has been said. */
    etch_span span;
} etch_shard;

typedef struct etch_pin {
    const char *selector;        /* a tag, or "module.tensor" */
    ETCH_VEC(etch_shard) shards; /* the dims that it lists; without axes: held whole */
    etch_span span;
} etch_pin;

/* `for SELECTOR { .. }`: modules, loops, tags, module.tensor. */
typedef struct etch_override {
    const char *const *selectors;
    uint32_t selector_count;
    uint32_t outer; /* the scope that it stands in: its place in the plan's list plus one; 0: in none */
    ETCH_VEC(etch_shard) shards;
    ETCH_VEC(etch_pin) pins;
    etch_span span;
} etch_override;

/* A name for a product of mesh axes: `axis dp = (edp, ep)`. Shards and pins hold the axes themselves. */
typedef struct etch_product {
    const char *name;
    uint32_t axes[ETCH_MAX_AXES]; /* indices into the mesh, outermost first */
    uint32_t axis_count;
    etch_span span;
} etch_product;

/* What has no effect: a line of a plan without meaning yet, as long as its axes are 1; what a plan of an imported file
 * speaks of and the spec lacks. */
typedef struct etch_pending {
    const char *text; /* "zero 3 @ dp", as written; "dim A" */
    uint32_t axes;    /* bits of mesh axes */
    etch_span span;
} etch_pending;

/* `stage (embed, layer, head) @ pp, schedule = one_f_one_b`: the model is a chain of units, the iterations of
 * the loops and the blocks that are listed, and stages take consecutive ones. */
typedef struct etch_stage_line {
    const char *const *selectors; /* loops, tags, modules */
    const etch_span *selector_spans;
    const bool
        *selectors_known; /* does the spec have something of this name? Else that has been said. NULL: all */
    uint32_t selector_count;
    uint32_t
        axes[ETCH_MAX_AXES]; /* indices into the mesh, outermost first: together they number the stages */
    uint32_t axis_count;
    const etch_schedule *schedule;
    etch_expr chunks;        /* chunks of units that each stage holds: 1 unless the schedule interleaves */
    const etch_expr *counts; /* units of each chunk, in the order of the chain; NULL: spread evenly */
    uint32_t count_count;
    etch_span span;
} etch_stage_line;

/* `pad V = 128*tp`: ranks hold the dim as if its size were a multiple of that. */
typedef struct etch_pad {
    const char *dim;
    etch_expr multiple;
    bool known; /* as in etch_shard */
    etch_span span;
} etch_pad;

/* How many ranks a plan asks for: what its mesh must come to. */
typedef struct etch_rank_count {
    etch_expr count; /* NULL: it does not say */
    etch_span span;
} etch_rank_count;

typedef struct etch_plan {
    const char *name;
    bool shared;                   /* of an imported file: made for several models */
    const etch_stage_line *stage;  /* NULL: one stage */
    ETCH_VEC(etch_axis) mesh;      /* outermost first */
    uint32_t order[ETCH_MAX_AXES]; /* mesh axes as they number the ranks, outermost first */
    uint32_t order_count;          /* 0: in the order of the mesh */
    etch_span order_span;          /* nowhere when it is not said */
    etch_rank_count ranks;
    ETCH_VEC(etch_product) products;
    ETCH_VEC(etch_pending) pending;
    ETCH_VEC(etch_pending) lacks;
    etch_zero zero;
    bool keep_gathers;   /* backward reads the copies that forward has gathered, which are kept (R8) */
    etch_span keep_span; /* where the plan says so; nowhere when it does not */
    bool reduce_last; /* gradients are reduced when the whole backward pass has ended, not layer by layer */
    bool reduce_each; /* layer by layer in each microbatch, not once in a step */
    etch_span reduce_span;  /* where the plan says so; nowhere when it does not */
    uint32_t offloaded;     /* bits: ETCH_OFFLOAD_.. */
    etch_span offload_span; /* as reduce_span */
    bool contiguous; /* ranks that share causal queries have contiguous parts of them, of unequal work */
    etch_span balance_span; /* as reduce_span */
    etch_bucketing bucketing;
    etch_expr bucket; /* ETCH_BUCKET_BY_SIZE: bytes that the ranks of a group reduce, or gather, at once */
    etch_span bucket_span;    /* as reduce_span */
    etch_recompute recompute; /* takes the place of the train block's where the plan says so */
    etch_precision precision; /* of its classes; others are as the spec says */
    ETCH_VEC(etch_shard) shards;
    ETCH_VEC(etch_pin) pins;
    ETCH_VEC(etch_override) overrides;
    ETCH_VEC(etch_pad) pads; /* of each dim one at most */
    etch_span span;
} etch_plan;

/* The mesh axis that is at this place, counted from the outermost, when ranks are numbered. */
uint32_t etch_plan_axis_at(const etch_plan *plan, uint32_t place);
/* All ranks of the mesh. */
etch_expr etch_plan_ranks(etch_sym *sym, const etch_plan *plan);

/* State of one tensor on one mesh axis. */
typedef const etch_dim *etch_state;      /* NULL: replicated; a dim: sharded on it */
extern const etch_dim etch_partial_mark; /* its address: a partial sum */
#define ETCH_PARTIAL (&etch_partial_mark)

/* A tensor as one placement holds it. */
typedef struct etch_value {
    etch_tensor *tensor;
    etch_state place[ETCH_MAX_AXES];
    uint32_t
        flat; /* of a weight, for most 0: axes among whose ranks the elements that `place` gives a rank are
                      divided, laid out flat and padded to equal parts */
    struct etch_step *step; /* what makes it; NULL for inputs, weights, arguments of loop bodies, constants */
    uint32_t id;
} etch_value;

typedef enum etch_move {
    ETCH_NO_MOVE,
    ETCH_SLICE,
    ETCH_REDUCE_SCATTER,
    ETCH_ALL_TO_ALL,
    ETCH_ALL_REDUCE,
    ETCH_ALL_GATHER,
    ETCH_SEND, /* to the stage that comes next or before: never between placements */
    ETCH_MOVE_COUNT
} etch_move;
const char *etch_move_name(etch_move move); /* "all_reduce" as in queries */

/* Where in the chain of units something of the top level runs: with a block, with the first or the last
 * iteration of a loop, or with all of them. Along the chain homes grow. */
typedef uint32_t etch_home;
#define ETCH_NO_HOME UINT32_MAX
#define ETCH_NO_ENTRY UINT32_MAX
enum { ETCH_SIDES = 3 };
typedef enum etch_side { ETCH_FIRST_OF, ETCH_ALL_OF, ETCH_LAST_OF } etch_side;
static inline etch_home etch_home_at(uint32_t entry, etch_side side)
{
    return ETCH_SIDES * entry + (uint32_t)side;
}
static inline uint32_t etch_home_entry(etch_home home)
{
    return home / ETCH_SIDES;
}
static inline etch_side etch_home_side(etch_home home)
{
    return (etch_side)(home % ETCH_SIDES);
}

/* An op as one placement runs it, or a move between placements. */
typedef struct etch_step {
    etch_op *op;         /* NULL for a collective of the step's end (gradient bucket, clip) */
    const etch_row *row; /* of the op; the move's row for moves */
    etch_move move;
    uint32_t axes;                    /* move: bit i for mesh axis i */
    etch_dtype travels;               /* move: dtype of what is sent, */
    uint32_t block;                   /* and how many elements share a scale that is sent as well; 0: none */
    etch_state factor[ETCH_MAX_AXES]; /* which dim each axis divides the work along */
    etch_expr
        part; /* of causal queries in contiguous parts, which of them the rank has, from 0; NULL: equal work */
    etch_value **ins, **outs;
    uint32_t in_count, out_count;
    etch_tensor **accumulate_into; /* by result: the gradient that it is added into in place, or NULL */
    etch_phase phase;
    etch_scope *scope;
    etch_cause cause; /* move: why it is there */
    const etch_expr
        *copies;     /* of several weights that are gathered at once, by operand: how often one run finds
                                each; NULL for all else */
    bool once;       /* a gather that only the first microbatch needs */
    uint32_t kernel; /* index in the region's kernels, or UINT32_MAX (no node) */
    etch_home home;  /* of the top level: where in the chain of stages */
    uint32_t id;
} etch_step;

typedef struct etch_placed_item {
    etch_step *step; /* one of the two */
    struct etch_placed_loop *loop;
} etch_placed_item;

/* Several steps that run as one node, or one collective. */
typedef struct etch_kernel {
    ETCH_VEC(etch_step *) steps; /* program order */
    etch_step *anchor; /* the product, norm, ... that names it; the collective; else the first step */
    ETCH_VEC(etch_value *) reads;  /* values that enter: roots, each once */
    ETCH_VEC(etch_value *) writes; /* values that leave */
    etch_expr flop;                /* of one rank, one execution */
    etch_expr bytes;               /* read plus written; of a collective: its payload */
    etch_expr read;                /* of them, those that are read; of a collective: nothing */
    uint32_t item;                 /* place in the order of the region: index among its items */
} etch_kernel;

typedef struct etch_placed_carry {
    etch_value *init, *in, *out, *result; /* init NULL: zeros; as in etch_carry */
} etch_placed_carry;

typedef struct etch_placed_region {
    ETCH_VEC(etch_placed_item) items;
    ETCH_VEC(etch_kernel *) kernels; /* in issue order */
    struct etch_placed_loop *loop;   /* whose body it is; NULL at top level */
    const etch_region *of;           /* the region that it places */
    ETCH_VEC(etch_placed_carry) carries;
} etch_placed_region;

typedef struct etch_placed_loop {
    etch_loop *loop;
    ETCH_VEC(etch_placed_region *) bodies; /* by class, as those of the loop */
    struct etch_placed_loop *forward;
    etch_home home; /* of the top level: ETCH_ALL_OF an entry that is this loop, or where all of it runs */
} etch_placed_loop;

/* A link of the chain: a loop, each of whose iterations is a unit, or a block, which is one. */
typedef struct etch_stage_entry {
    const char *name;       /* as the plan selects it */
    uint32_t selector;      /* which name of the stage line that is */
    const etch_loop *loop;  /* NULL: a block */
    etch_expr first, count; /* units: those of the entries before it; its own */
} etch_stage_entry;

/* Where a chain may be cut: before an entry, or between the iterations of a loop. What is alive there goes
 * to the next stage in one message for each microbatch; backward, cotangents go the other way. A value that
 * the loop hands on is the body's argument. */
typedef struct etch_cut {
    uint32_t entry;
    bool inside; /* the entry's loop; else before the entry */
    ETCH_VEC(etch_value *) forward, backward;
    etch_expr forward_bytes, backward_bytes; /* of one rank and message */
} etch_cut;

typedef ETCH_VEC(etch_home) etch_homes;

/* The chain that a plan's stage line makes of the model. */
typedef struct etch_stages {
    const etch_stage_line *line;
    ETCH_VEC(etch_stage_entry) entries; /* in program order, at least one */
    etch_expr units;                    /* of all entries */
    ETCH_VEC(etch_cut) cuts;            /* along the chain */
    uint32_t *entry_of_op;              /* by op id: the entry that it is listed in, or ETCH_NO_ENTRY */
    etch_homes *uses; /* by tensor id of a weight: where it is used, each once, ascending; empty where each
                         iteration of a loop of the chain has its own */
} etch_stages;

/* One collective at the end of a step, of the weights of a unit: their gradients are reduced to what the
 * optimizer reads, or what it has updated is gathered. */
typedef struct etch_bucket {
    etch_unit *unit;
    etch_move move; /* reduce-scatter or all-reduce of gradients, all-gather of weights */
    uint32_t axes;
    bool every_microbatch;             /* else once, at the end of the step */
    etch_expr bytes;                   /* payload of one rank */
    ETCH_VEC(etch_tensor *) gradients; /* of the weights */
} etch_bucket;

typedef ETCH_VEC(etch_bucket) etch_buckets;

/* The optimizer's node of one unit. */
typedef struct etch_update {
    etch_unit *unit;
    etch_expr flop, bytes;
    ETCH_VEC(etch_tensor *) gradients;
} etch_update;

/* `divisor` must divide `size` when the plan is bound. */
typedef struct etch_requirement {
    const etch_dim *dim;
    etch_expr size, divisor;
    uint32_t axes;  /* bits of the axes in the divisor */
    bool micro;     /* the number of microbatches is in the divisor */
    bool paired;    /* so is a 2: causal queries are shared in pairs of chunks */
    etch_span span; /* the line of the plan that asks for it */
} etch_requirement;

typedef struct etch_placed {
    const etch_training *training;
    const etch_plan *plan;
    etch_arena *arena;
    etch_placed_region *forward, *backward; /* backward may be NULL */
    const struct etch_parts *parts;         /* of the model, as the scopes of the plan see it */
    etch_stages *stages;                    /* NULL: the plan has one stage */
    etch_value **weight_of;                 /* by tensor id: the placed weight, or NULL */
    /* By tensor id of a weight: axes over which its gradient is partial, and axes among whose ranks its
     * optimizer states are divided. */
    uint32_t *sync_axes, *zero_axes;
    etch_gatherings
        gatherings; /* of weights that ranks hold in parts; in the order of forward, then backward */
    ETCH_VEC(etch_unit *)
    units;                         /* those of the training graph, apart where their weights are in different
                                    stages */
    etch_buckets buckets;          /* reductions; order of units: last used first */
    ETCH_VEC(etch_update) updates; /* order of units: first used first */
    etch_buckets gathers;          /* of weights that were updated in shards; order of updates */
    etch_buckets ties;             /* sums over the stages that use the same weights, after `buckets` */
    ETCH_VEC(etch_update) norms;   /* clipping: sums of squares, by units; none without it */
    ETCH_VEC(etch_requirement) requirements;
    uint32_t uneven_axes; /* the coordinates on these say how much work a rank has: see etch_at_part */
    uint32_t value_count, step_count;
    etch_diags *diags;
} etch_placed;

/* For a dim of fewer parts than its axis has ranks: lines that let another dim take what is left over, "mesh [.., kv = ..";
 * NULL where they would not help. `size` and `divisor`: what the demand's are bound to. */
const char *etch_two_axes_text(const etch_placed *placed, const etch_requirement *requirement, int64_t size,
                               int64_t divisor);

/* Which steps run as one node. Collectives are nodes of their own in each of them, and FLOP are the same. */
typedef enum etch_granularity {
    ETCH_GRANULARITY_KERNEL, /* a product, norm, ... with the elementwise steps beside it */
    ETCH_GRANULARITY_OP,     /* each op that does anything */
    ETCH_GRANULARITY_BLOCK,  /* all steps of a phase from one collective, or end of a loop, to the next */
    ETCH_GRANULARITY_COUNT
} etch_granularity;
/* "kernel"; NULL for ETCH_GRANULARITY_COUNT and above. */
const char *etch_granularity_name(etch_granularity granularity);

/* Applies a plan by the rules R1-R9 (docs/placement.md): collectives appear where placements differ. NULL
 * after an error. */
etch_placed *etch_place(const etch_training *training, const etch_plan *plan, etch_granularity granularity);

/* Is it the home of a loop whose iterations are units? */
bool etch_home_is_loop(const etch_stages *stages, etch_home home);
/* The home of a loop of the chain. */
etch_home etch_stage_home_of(const etch_placed *placed, const etch_loop *loop);
/* Where the weights of a unit are used: NULL where there are no stages; empty for a loop of the chain, where
 * each iteration has its own. */
const etch_homes *etch_unit_uses(const etch_placed *placed, const etch_unit *unit);

/* The size of a dim as the ranks hold it, all together: padded where the plan says so (etch_training_size otherwise). */
etch_expr etch_placed_size(const etch_placed *placed, const etch_dim *dim);
/* An etch_size_fn; the data is the etch_placed. */
etch_expr etch_size_in_placement(const void *placed, const etch_dim *dim);
/* Elements of a value on one rank, one microbatch. */
etch_expr etch_value_elements(const etch_placed *placed, const etch_value *value);
etch_expr etch_value_bytes(const etch_placed *placed, const etch_value *value);
/* The dtype in which a collective sends an operand; and its payload, where a rank has so many elements of one copy. */
etch_dtype etch_travels_as(const etch_placed *placed, const etch_step *move, uint32_t operand);
etch_expr etch_payload_by(const etch_placed *placed, const etch_step *move, uint32_t operand,
                          etch_expr elements);
/* Ranks whose coordinates on the uneven axes differ do unequal work: formulas of it have etch_coordinate of these
 * axes in them. Puts in those of one of `etch_part_count` parts: `number` counts them from 0, in the order in which
 * ranks are numbered; NULL: of the last one, which has most. */
etch_expr etch_coordinate(etch_sym *sym, uint32_t axis);
etch_expr etch_at_part(const etch_placed *placed, etch_expr expr, etch_expr number);
etch_expr etch_part_count(const etch_placed *placed);
/* The value behind renames and identities: what is in memory. */
etch_value *etch_value_root(etch_value *value);
/* What a value shows or was moved from: the operand of the view or move that makes it. */
etch_value *etch_value_before(const etch_value *value);
/* The axes of a bit set as a user writes them: "tp", "(dp,tp)", or the name that the plan gives to this product. */
const char *etch_axes_label(const etch_placed *placed, uint32_t axes);

/* How placements and causes are told. */
typedef struct etch_telling {
    etch_arena *arena;
    uint32_t axes;            /* of those that are not bound to 1: nothing is told of others */
    const char *const *names; /* of tensors, by id, in place of their own; may be NULL */
} etch_telling;
/* "[B@dp,S@(cp,tp),H]", with " partial over tp" behind it where it is a partial sum. */
const char *etch_place_text(const etch_placed *placed, const etch_telling *how, const etch_tensor *tensor,
                            const etch_state *place);
/* The same of a value, with " in parts over dp" behind it where ranks hold flat parts. */
const char *etch_value_text(const etch_placed *placed, const etch_telling *how, const etch_value *value);
/* The longest product of the plan that the list of axes begins with; NULL: none. */
const etch_product *etch_product_at(const etch_plan *plan, const uint32_t *axes, uint32_t count);
/* The line of the plan that puts `dim` on `axis` in `scope` (NULL: the model's); nowhere when there is none. */
etch_span etch_place_line(const etch_placed *placed, const etch_scope *scope, const etch_dim *dim,
                          uint32_t axis);
/* Those axes that divide `dim` in a placement, outermost first; returns how many. */
uint32_t etch_place_axes(const etch_placed *placed, const etch_telling *how, const etch_state *place,
                         const etch_dim *dim, uint32_t axes[ETCH_MAX_AXES]);
/* The pin of a tensor of the forward pass, or of one that is computed again; nowhere when it has none. */
etch_span etch_place_pin(const etch_placed *placed, const etch_tensor *tensor);
/* Why a collective is there, as parts of a sentence: all texts about causes are made here. */
void etch_step_explain(const etch_placed *placed, const etch_telling *how, const etch_step *step,
                       etch_phrases *out);
/* The same of one that is no step: of the end of a step, or between stages, over `axes`. */
void etch_cause_explain(const etch_placed *placed, const etch_telling *how, const etch_cause *cause,
                        uint32_t axes, etch_phrases *out);

/* One line a step: phase, results with their placement, op, operands, why a move is there, kernel. For tests
 * and for people. */
void etch_placed_dump(const etch_placed *placed, etch_buf *out);

/* ---- one stage ---------------------------------------------------------------------------------------- */

/* Units that a stage holds of an entry, counted from its first one. */
typedef struct etch_stretch {
    etch_expr low, high; /* to before it */
    uint32_t chunk;      /* of the stage: whose they are */
} etch_stretch;

typedef ETCH_VEC(etch_stretch) etch_stretches;

/* What one stage holds of the chain, as numbers or as formulas. */
typedef struct etch_stage_view {
    const etch_stages *stages;
    etch_expr (*shares)[ETCH_SIDES]; /* by entry and side: units */
    etch_stretches *ranges;          /* by entry: where the units are, for a loop that has classes */
    bool *held;                      /* by entry: is there any of it? */
    bool *whole;                     /* by entry: is that all of it? */
    etch_expr *forward, *backward;   /* by cut: messages of a microbatch that the stage sends there */
} etch_stage_view;

/* Sizes of a bound chain. */
typedef struct etch_stage_numbers {
    uint32_t stages, chunks;
    uint64_t units;
    const uint64_t *entries; /* units of each entry */
    const uint64_t *counts;  /* units of each link, or NULL: spread evenly */
} etch_stage_numbers;

/* Do they make a chain? Otherwise reports why not. */
bool etch_stage_numbers_fit(const etch_placed *placed, const etch_stage_numbers *numbers);
/* Units of a link: as they are counted, or spread evenly, when the first links take what is left over. */
uint64_t etch_link_units(const etch_stage_numbers *numbers, uint64_t link);
const etch_stage_view *etch_stage_view_of(const etch_placed *placed, const etch_stage_numbers *numbers,
                                          uint32_t stage);

/* Stages that differ in kind. Formulas hold from two stages on, where the first one holds what comes before
 * the loop of the chain and some of its iterations, and the last one what comes behind it and some. */
typedef enum etch_stage_class { ETCH_STAGE_FIRST, ETCH_STAGE_MIDDLE, ETCH_STAGE_LAST } etch_stage_class;
/* `number`: of a middle stage. NULL when the chain has not exactly one loop, or the plan counts units. */
const etch_stage_view *etch_stage_view_class(const etch_placed *placed, etch_stage_class class,
                                             etch_expr stages, uint32_t chunks, etch_expr number);

/* Units of a home that the stage holds. */
etch_expr etch_stage_share(const etch_stage_view *view, etch_home home);
/* Those of them, at the home of a loop, that are iterations of the class of `body`. */
etch_expr etch_stage_iterations(etch_sym *sym, const etch_stage_view *view, etch_home home,
                                const etch_region *body);
/* 1 when the stage uses a weight with these uses, else 0; 1 when it is the first stage that does; and 1 when other
 * stages use it as well. */
etch_expr etch_stage_presence(etch_sym *sym, const etch_stage_view *view, const etch_homes *uses);
etch_expr etch_stage_begins(etch_sym *sym, const etch_stage_view *view, const etch_homes *uses);
etch_expr etch_stage_ties(etch_sym *sym, const etch_stage_view *view, const etch_homes *uses);

/* ---- costs ------------------------------------------------------------------------------------------ */

/* What a cost item counts. */
typedef enum etch_measure {
    ETCH_PARAMS,      /* elements */
    ETCH_ACTIVE,      /* of them, those that one token uses */
    ETCH_FLOPS,       /* FLOP, whole job, undivided */
    ETCH_RANK_FLOPS,  /* FLOP of one rank */
    ETCH_TRAFFIC,     /* bytes of one rank */
    ETCH_COMM,        /* bytes of one rank, as comm_size counts them */
    ETCH_WIRE,        /* bytes of one rank that a ring sends */
    ETCH_CACHED,      /* bytes that the caches of one rank hold when the run has ended */
    ETCH_SAVED,       /* bytes that one microbatch keeps for backward, whole job */
    ETCH_RANK_SAVED,  /* the same of one rank */
    ETCH_RANK_PARAMS, /* elements of weights that one rank holds */
    ETCH_HELD         /* bytes that one rank holds, see etch_memory */
} etch_measure;

/* What bytes that a rank holds are of. */
typedef enum etch_memory {
    ETCH_MEMORY_WEIGHTS,
    ETCH_MEMORY_GRADS,
    ETCH_MEMORY_MASTER,      /* copies of the weights that the optimizer works on */
    ETCH_MEMORY_MOMENTS,     /* what else it keeps of each weight */
    ETCH_MEMORY_ACTIVATIONS, /* kept for backward, of all microbatches that are under way */
    ETCH_MEMORY_WORKING,     /* the most that is there beside that while a layer is worked on */
    ETCH_MEMORY_COUNT
} etch_memory;
/* "weights", ...; NULL past the last. */
const char *etch_memory_name(etch_memory memory);

/* One contribution: `each` happens `times` times in a step; what is saved, in a microbatch. */
typedef struct etch_cost {
    etch_measure measure;
    etch_expr each, times;
    etch_expr read; /* traffic: of `each`, what is read; the rest is written */
    etch_phase phase;
    const etch_row *row; /* op; NULL for params; saved: what it is kept for */
    etch_memory memory;  /* held: what */
    bool matmul;         /* counts as a product */
    bool trainable;      /* params: has a gradient */
    bool of_weights;     /* of backward: makes gradients of weights and nothing else */
    etch_move move;      /* comm, wire */
    uint32_t axes;       /* comm, wire */
    etch_scope *scope;
    const etch_op *op;       /* flops; NULL: of the step's end */
    const etch_step *step;   /* rank_flops: of an op; comm, wire: the collective, NULL at the end of a step */
    etch_cause cause;        /* comm, wire: why; the same for all weights of a unit that take part */
    const etch_loop *loop;   /* innermost forward loop that it runs in, or NULL */
    const etch_region *body; /* the body of that loop */
    const etch_tensor *tensor; /* the tensor it computes, or keeps, for tags and names */
    etch_span span;
} etch_cost;

typedef ETCH_VEC(etch_cost) etch_cost_list;

/* All items of the graph itself (ETCH_PARAMS, ETCH_FLOPS, ETCH_SAVED). `training` without a backward pass: forward only.
 */
void etch_graph_costs(const etch_training *training, etch_cost_list *out);
/* All items of one rank (ETCH_RANK_FLOPS, ETCH_TRAFFIC, ETCH_COMM, ETCH_WIRE, ETCH_CACHED) of a stage; NULL: of the only
 * one. */
void etch_placed_costs(const etch_placed *placed, const etch_stage_view *stage, etch_cost_list *out);

/* ---- conventions (graph/count.h) ----------------------------------------------------------------------- */

/* What ops are to conventions: which give the logits, choose experts, ... */
typedef struct etch_marks etch_marks;
const etch_marks *etch_marks_of(const etch_training *training, etch_arena *arena);
/* Is known what the convention needs: which dim is the tokens of a sequence, when only the last one is to count? */
bool etch_count_fits(const etch_count *count, const etch_marks *marks);

/* An item of FLOP as the convention has it; others stay as they are. `placed`: where the item is of one rank. False:
 * it does not count. */
bool etch_count_apply(const etch_count *count, const etch_marks *marks, const etch_training *training,
                      const etch_placed *placed, etch_cost *item);

#include "graph/memory.h"

#endif
