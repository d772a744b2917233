/* Graphs: dims, tensors, ops, loops, and simple questions about them. Part of what other modules see of
 * graph.
 *
 * A graph is symbolic and knows no loop count: a loop is a count, and one body for each class of iterations
 * that are alike. */
#ifndef ETCH_GRAPH_IR_IR_H
#define ETCH_GRAPH_IR_IR_H

#include "graph/ir/dtype.h"
#include "graph/ir/table.h"
#include "symbolic/symbolic.h"

/* ---- dims, tensors, ops -------------------------------------------------------------------------------- */

typedef struct etch_dim {
    const char *name;
    /* elements, over the whole job */
    etch_expr size;
    /* declared with ~: a size on average */
    bool average_sized;
    /* of what is kept between runs: it may be none */
    bool may_be_empty;
    /* what a cache holds, where a served model runs in several steps */
    bool grows;
    /* of what a rolling cache shows a run: the dim of all elements that there have been, and how many of them
     * are kept; NULL otherwise */
    const struct etch_dim *window_of;
    etch_expr window;
    /* order of creation within the graph */
    uint32_t id;
    /* the dim that this one was first renamed from (keys of a sequence: its queries); NULL otherwise */
    const struct etch_dim *alias;
    /* the batch, where microbatches have a part of this dim as they have of that; NULL for most */
    const struct etch_dim *part_of;
    /* of slots: whose they are; NULL for most */
    const struct etch_dim *experts;
    /* of slots: the dims of the tokens and choices that fill them, and those that they hold; none for most */
    ETCH_VEC(const struct etch_dim *)
    packed_from;
    /* where it is declared */
    etch_span span;
} etch_dim;

/* Does a declared dim mean this one: itself, or what a rolling cache shows of it? */
bool etch_dim_is_meant(const etch_dim *dim, const etch_dim *declared);
/* Is it `other`, or does it hold its elements? Then a microbatch of `other` is one of both. */
bool etch_dim_is_packed_from(const etch_dim *dim, const etch_dim *other);

typedef etch_tensor_kind etch_kind;

/* One call of a module: where an op belongs, and what a plan's `for MODULE` speaks of. */
typedef struct etch_scope {
    /* name of the module or model */
    const char *module;
    /* the caller's; NULL for the model */
    struct etch_scope *parent;
    /* where the call stands */
    struct etch_region *region;
    uint32_t id;
    /* the call */
    etch_span span;
} etch_scope;

/* "llama.block.attention". `labels`, by scope id, take the place of the modules' names; NULL: none do. */
const char *etch_scope_path(etch_arena *arena, const etch_scope *scope, const char *const *labels);

/* A constant of a model: its elements are a number, or, where that is NULL, their indices along its one
 * dim. */
typedef struct etch_constant {
    etch_expr number;
} etch_constant;

typedef struct etch_tensor {
    uint32_t id;
    /* as the spec says; derived ones: of the tensor that they derive from */
    const char *name;
    etch_kind kind;
    etch_dtype dtype;
    /* the tensor, itself or one before it, that was cast or declared to be so; NULL: as its class says */
    const struct etch_tensor *dtype_of;
    /* each once; their order has no meaning */
    etch_dim *const *dims;
    uint32_t rank;
    /* NULL for inputs, weights, arguments of loop bodies, constants */
    struct etch_op *producer;
    /* which result of the producer */
    uint32_t output;
    /* where it is made (weights: where they are declared) */
    struct etch_region *region;
    etch_scope *scope;
    const char **tags;
    uint32_t tag_count;
    /* ids of the ops that its statement made; both 0: only the producer */
    uint32_t first_op, end_op;
    /* weight without a gradient */
    bool frozen;
    /* such a weight that is no parameter: a table that no training changes, which every rank holds as the map
     * says, whatever is divided of weights */
    bool buffer;
    /* of a weight of an instance: the calls that read it, its scope first; none for other weights */
    ETCH_VEC(struct etch_scope *) calls;
    /* of a constant that the model has; NULL for those of the backward pass: zeros, and the one of a loss */
    const etch_constant *constant;
    /* of a weight: no result depends on it */
    bool is_unused;
    /* the model gives it, whether or not anything reads it */
    bool is_result;
    /* an infer run asks for it */
    bool wanted;
    /* a result that exists for backward only, not written when nobody reads it (dropout mask) */
    bool optional_result;
    /* derived: the forward tensor (cotangent, recomputed copy, what a cotangent needs to know of it) or
     * weight (gradient) */
    struct etch_tensor *of;
    /* of a sum that was made one with the sum that it is a term of: that one's result; no op makes it */
    struct etch_tensor *part_of;
    /* its producer adds it into this gradient in place; NULL otherwise */
    struct etch_tensor *adds_to;
    /* of a cotangent: 1 where an iteration has made it, 0 where it is zeros, because loops run none; NULL:
     * it is made always */
    etch_expr made;
    etch_span span;
} etch_tensor;

/* Dims in a row: of a keyword, of a declaration. */
typedef struct etch_dim_view {
    etch_dim *const *at;
    uint32_t count;
} etch_dim_view;

/* Dims in the making, and as they are then. */
typedef ETCH_VEC(etch_dim *) etch_dim_list;
#define ETCH_DIMS(list) ((etch_dim_view){(list).at, (list).count})
/* Those of a tensor. */
static inline etch_dim_view etch_dims_of(const etch_tensor *tensor)
{
    return (etch_dim_view){tensor->dims, tensor->rank};
}

/* The attributes of an op beside its operands. Unused fields are zero. */
typedef struct etch_attrs {
    etch_dim_view over, dot, kernel, state, slots, kept;
    /* renaming, pairwise, see regroup.c; slice: over -> to[0]; routing: tokens -> slots; concat and split:
     * the dim of each part (NULL: a part of size 1 that has none) -> the whole */
    etch_dim_view from, to;
    bool sync;
    bool causal;
    etch_expr number;
    /* NULL: not said */
    etch_expr window, cap, pairs, stride, size, chunk, groups, keep, limit;
    /* an etch_dtype plus one; 0: not said */
    uint32_t dtype;
    /* a sum: bits of the operands that are taken away */
    uint32_t taken;
    /* bits of the optional operands that are left out before one that is given */
    uint32_t absent;
} etch_attrs;

/* Where a keyword is kept: one of the pointers is set. */
typedef struct etch_keyword_field {
    etch_dim_view *dims;
    bool *flag;
    /* NULL when it is not said; a keyword that says 0 is not said */
    etch_expr *number;
    /* 0 when it is not said, else an etch_dtype plus one */
    uint32_t *dtype;
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
    /* NULL after the last name of a row that takes any number */
    const char *names[ETCH_MAX_OPERANDS];
    /* Operands that must be given, and all: ETCH_MAX_OPERANDS where the last one is called `x...`, which
     * stands for any number of them. */
    uint32_t least, most;
} etch_operands;

etch_operands etch_operands_of(etch_arena *arena, const etch_row *row);
/* The place of an optional operand; UINT32_MAX: there is none of this name. */
uint32_t etch_operands_index(const etch_operands *operands, const char *name);

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
    /* of an identity that passes a value into or out of `scope` */
    etch_edge edge;
    /* derived op: the op whose gradient it computes; recomputed copy: the op it repeats */
    struct etch_op *forward;
    /* a sum of cotangents, of the result of an op that has gradients for several operands */
    bool is_shared;
    /* of backward: 1 where it computes anything, 0 where that would be zeros; of a sum of cotangents how
     * often it adds two. NULL: it always does, a sum all its terms */
    etch_expr runs;
    etch_span span;
    uint32_t id;
} etch_op;

/* ---- loops --------------------------------------------------------------------------------------------- */

/* A loop-carried value: body(in) -> out; `init` enters the first iteration, `result` leaves the
 * last. These two are the loop's, the same in all of its bodies; each body has its own `in` and `out`. */
typedef struct etch_carry {
    /* NULL: starts as zeros */
    etch_tensor *init;
    etch_tensor *in, *out, *result;
} etch_carry;

/* Iterations from `first` to before `end`; none where end <= first. Both are integers from 0 to the count of
 * the loop. */
typedef struct etch_segment {
    etch_expr first, end;
    /* by residue: the iteration modulo the period */
    uint32_t *class_of;
} etch_segment;

#define ETCH_NO_CLASS UINT32_MAX /* of residues that no iteration of the segment has */

/* Which iteration is of which class. The segments are disjoint and hold every iteration. */
typedef struct etch_pattern {
    /* at least 1 */
    uint32_t period;
    ETCH_VEC(etch_segment) segments;
} etch_pattern;

typedef struct etch_loop {
    /* index name, or "loop" */
    const char *name;
    etch_expr count;
    /* by class of iterations; at least one */
    ETCH_VEC(struct etch_region *) bodies;
    /* NULL: one class */
    const etch_pattern *pattern;
    /* backward loop: the forward loop that it undoes, in reverse order of iterations */
    struct etch_loop *forward;
    /* copy made by recomputation: the forward loop that it recomputes */
    struct etch_loop *repeats;
    /* only some of its iterations are asked to be recomputed: they have bodies of their own */
    bool partly_recomputed;
    uint32_t id;
    etch_span span;
} etch_loop;

typedef struct etch_item {
    /* one of the two */
    etch_op *op;
    etch_loop *loop;
} etch_item;

typedef struct etch_region {
    /* program order */
    ETCH_VEC(etch_item) items;
    struct etch_region *parent;
    /* whose body it is; NULL at top level */
    etch_loop *loop;
    /* of a body: */
    /* its class of iterations */
    uint32_t index;
    /* how many iterations of one run of the loop are of the class */
    etch_expr count;
    /* these iterations of a forward loop are recomputed, others of it need not be */
    bool recomputed;
    ETCH_VEC(etch_carry) carries;
} etch_region;

/* The loop-carried values of a loop: the carries of its first body, as `init` and `result` are those of
 * all. */
#define etch_loop_carries(loop) (&(loop)->bodies.at[0]->carries)

/* What holds in the branch that is being built, as in `if window == 0 { .. } else { .. }`: more >= less. */
typedef struct etch_known {
    etch_expr more, less;
} etch_known;

typedef struct etch_graph {
    etch_arena *arena;
    /* the builtin one, unless etch_graph_use_table replaced it before the first op */
    const etch_table *table;
    /* its rows by etch_use */
    const etch_row **row_of;
    etch_sym *sym;
    etch_diags *diags;
    etch_dtypes dtypes;
    const char *model;
    etch_region *forward;
    ETCH_VEC(etch_dim *) dims;
    /* by id */
    ETCH_VEC(etch_tensor *) tensors;
    /* in program order of their declaration */
    ETCH_VEC(etch_tensor *) weights;
    /* by id; 0 is the model */
    ETCH_VEC(etch_scope *) scopes;
    /* loops without iterations: no part of forward, they can be named all the same */
    ETCH_VEC(etch_loop *) idle_loops;
    uint32_t op_count, loop_count;
    /* the model is served, not trained: caches hold what runs before it have left there */
    bool serves;
    /* A served model that runs several times, one run after the other: how often, and the number of the run
     * (an index, from 0), which sizes of caches and costs have in them. NULL: one run. */
    etch_expr steps, step;
    /* Defaults of params, for questions that only they decide (is the cache empty when training?). */
    const etch_expr *default_vars, *default_values;
    uint32_t default_count;
    /* The first of them have a value; the others may still get any. */
    uint32_t given_count;
    /* variables whose values, or defaults, such questions have asked for: with others, it is another graph */
    ETCH_VEC(etch_expr) decisive;
    /* the builder's place */
    etch_region *region;
    etch_scope *scope;
    /* there */
    ETCH_VEC(etch_known) known;
} etch_graph;

/* ---- questions ----------------------------------------------------------------------------------------- */

bool etch_has_dim(const etch_tensor *tensor, const etch_dim *dim);
/* Has `a` all dims of `b`? */
bool etch_covers(const etch_tensor *a, const etch_tensor *b);
/* "[B,S,H]", for messages; "?" for a NULL dim. */
const char *etch_dims_text(etch_arena *arena, etch_dim_view dims);
/* "q[B,S,H]", for messages. */
const char *etch_tensor_text(etch_arena *arena, const etch_tensor *tensor);
/* Is it known at the builder's place, by facts or by the branch, that a >= b, or a > b? */
bool etch_graph_at_least(const etch_graph *graph, etch_expr a, etch_expr b);
bool etch_graph_above(const etch_graph *graph, etch_expr a, etch_expr b);
/* The tensor under views: ops that route alike have the same one as indices. */
const etch_tensor *etch_route_root(const etch_tensor *indices);
/* Has it this tag? */
bool etch_has_tag(const etch_tensor *tensor, const char *tag);
/* A renaming as text, as a spec writes it: "S->S', (N,P)->M". */
const char *etch_renaming_text(etch_arena *arena, const etch_attrs *attrs);
/* Selection by names. Is the scope a call of the module at the end of `path` (`length` characters:
 * "block.attention"), and are its callers those before? */
bool etch_scope_is_called(const etch_scope *scope, const char *path, size_t length);
/* Is it `outer`, or a call inside of it? */
bool etch_scope_is_inside(const etch_scope *scope, const etch_scope *outer);
/* Has the tensor this tag, or does `path` call it module.tensor? */
bool etch_tensor_is_selected(const etch_tensor *tensor, const char *path);
/* What a name selects in the forward pass: a call of a module, a loop, or a statement (or a weight). */
typedef struct etch_choice {
    /* one of the three */
    const etch_scope *call;
    const etch_loop *loop;
    /* of the statement, or the weight */
    const etch_tensor *result;
} etch_choice;
typedef ETCH_VEC(etch_choice) etch_choices;

/* All calls of a module by a path (block.attention), all loops of the name, and the statements and weights
 * that have the tag or that it calls module.tensor: in this order. */
etch_choices etch_choose(const etch_graph *graph, const char *name);
/* Is an op, which stands in this region, or a weight in what is selected? Weights of a statement are those
 * that it is. */
bool etch_choice_has(const etch_choice *selected, const etch_op *op, const etch_region *in);
bool etch_choice_has_weight(const etch_choice *selected, const etch_tensor *weight);
/* As etch_max and etch_min, simpler where facts tell which of the two it is. */
etch_expr etch_larger(etch_sym *sym, etch_expr a, etch_expr b);
etch_expr etch_smaller(etch_sym *sym, etch_expr a, etch_expr b);
/* 1 where the amount, an integer and not below 0, is not 0, else 0. */
etch_expr etch_some(etch_sym *sym, etch_expr amount);
/* Of terms of a sum, by term whether it is made (etch_tensor.made): how often two are added, and whether
 * their sum is made. NULL where all of them, or one of them, surely are. */
etch_expr etch_additions(etch_sym *sym, const etch_expr *made, uint32_t count);
etch_expr etch_any_made(etch_sym *sym, const etch_expr *made, uint32_t count);
/* How many of the iterations from `low` to before `high` of a loop are of the class of `body`. */
etch_expr etch_class_count(etch_sym *sym, const etch_region *body, etch_expr low, etch_expr high);
/* The same of `size` iterations from `low`, all of which the loop has: the counts of its classes add up to
 * `size`, as formulas. */
etch_expr etch_class_share(etch_sym *sym, const etch_region *body, etch_expr low, etch_expr size);
/* How often a region runs in one run of `around`, which is around it; NULL: in a microbatch. */
etch_expr etch_runs_in(etch_sym *sym, const etch_region *region, const etch_region *around);
/* The body of the innermost loop that a tensor is made in; NULL: in none. */
const etch_region *etch_body_around(const etch_tensor *tensor);
/* The body of the forward graph that a derived loop's undoes or repeats; a forward one itself. */
const etch_region *etch_forward_body(const etch_region *body);
/* Is the region, or one around it, a body of the loop? NULL is in none. */
bool etch_region_is_in_loop(const etch_region *region, const etch_loop *loop);
/* FLOP of one execution of an op; `size(data, dim)` says the size of a dim. */
typedef etch_expr (*etch_size_fn)(const void *data, const etch_dim *dim);
etch_expr etch_op_flop(etch_sym *sym, const etch_op *op, etch_size_fn size, const void *data);
/* Elements of a tensor. */
etch_expr etch_elements(etch_sym *sym, const etch_tensor *tensor, etch_size_fn size, const void *data);
/* The tokens of a step: the elements of the labels that losses compare with; of a model without such a loss,
 * of the inputs by which it looks up weights. Each different number once, with the first tensor that has so
 * many elements. */
typedef struct etch_token_count {
    etch_expr count;
    const etch_tensor *tensor;
} etch_token_count;
typedef ETCH_VEC(etch_token_count) etch_token_counts;
etch_token_counts etch_graph_tokens(const etch_graph *graph);
/* Is the result the operand's memory under the same or other dims (renames, identities)? */
bool etch_op_is_view(const etch_op *op);

#endif
