/* Graphs: dims, tensors, ops, loops, and simple questions about them. Part of what other modules see of graph.
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
    etch_expr size;                 /* elements, over the whole job */
    bool average_sized;             /* declared with ~: a size on average */
    bool grows;                     /* what a cache holds, where a served model runs in several steps */
    uint32_t id;                    /* order of creation within the graph */
    const struct etch_dim *alias;   /* the dim that this one was first renamed from (keys of a sequence: its
                                    queries); NULL otherwise */
    const struct etch_dim *experts; /* of slots: whose they are; NULL for most */
    ETCH_VEC(const struct etch_dim *)
    packed_from; /* of slots: the dims of the tokens and choices that fill them, and those that they hold; none for
              most */
    etch_span span; /* where it is declared */
} etch_dim;

/* Is it `other`, or does it hold its elements? Then a microbatch of `other` is one of both. */
bool etch_dim_is_packed_from(const etch_dim *dim, const etch_dim *other);

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

typedef enum etch_collective {
    ETCH_NO_COLLECTIVE,
    ETCH_SLICE,
    ETCH_REDUCE_SCATTER,
    ETCH_ALL_TO_ALL,
    ETCH_ALL_REDUCE,
    ETCH_ALL_GATHER,
    ETCH_SEND, /* to the stage that comes next or before: never between placements */
    ETCH_COLLECTIVE_COUNT
} etch_collective;

const char *etch_collective_name(etch_collective collective); /* "all_reduce" as in queries */

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

/* The attributes of an op beside its operands. Unused fields are zero. */
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
    const char *names[ETCH_MAX_OPERANDS]; /* NULL after the last name of a row that takes any number */
    uint32_t least, most;                 /* operands that must be given, and all */
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
    etch_edge edge; /* of an identity that passes a value into or out of `scope` */
    struct etch_op
        *forward; /* derived op: the op whose gradient it computes; recomputed copy: the op it repeats */
    etch_span span;
    uint32_t id;
} etch_op;

/* ---- loops --------------------------------------------------------------------------------------------- */

/* A loop-carried value: body(in) -> out; `init` enters the first iteration, `result` leaves the
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
    struct etch_loop *repeats; /* copy made by recomputation: the forward loop that it recomputes */
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

/* The loop-carried values of a loop: the carries of its first body, as `init` and `result` are those of all. */
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

/* ---- questions ----------------------------------------------------------------------------------------- */

bool etch_has_dim(const etch_tensor *tensor, const etch_dim *dim);
/* Has `a` all dims of `b`? */
bool etch_covers(const etch_tensor *a, const etch_tensor *b);
/* "[B,S,H]", for messages; "?" for a NULL dim. */
const char *etch_dims_text(etch_arena *arena, etch_dim *const *dims, uint32_t count);
/* Has it this tag? */
bool etch_has_tag(const etch_tensor *tensor, const char *tag);
/* A renaming as text, as a spec writes it: "S->S', (N,P)->M". */
const char *etch_renaming_text(etch_arena *arena, const etch_attrs *attrs);
/* Selection by names. Is the scope a call of the module at the end of `path` (`length` characters: "block.attention"), and
 * are its callers those before? */
bool etch_scope_is_called(const etch_scope *scope, const char *path, size_t length);
/* Is it `outer`, or a call inside of it? */
bool etch_scope_is_inside(const etch_scope *scope, const etch_scope *outer);
/* Has the tensor this tag, or does `path` call it module.tensor? */
bool etch_tensor_is_selected(const etch_tensor *tensor, const char *path);
/* As etch_max and etch_min, simpler where facts tell which of the two it is. */
etch_expr etch_larger(etch_sym *sym, etch_expr a, etch_expr b);
etch_expr etch_smaller(etch_sym *sym, etch_expr a, etch_expr b);
/* How many of the iterations from `low` to before `high` of a loop are of the class of `body`. */
etch_expr etch_class_count(etch_sym *sym, const etch_region *body, etch_expr low, etch_expr high);
/* The body of the forward graph that a derived loop's undoes or repeats; a forward one itself. */
const etch_region *etch_forward_body(const etch_region *body);
/* FLOP of one execution of an op; `size(data, dim)` says the size of a dim. */
typedef etch_expr (*etch_size_fn)(const void *data, const etch_dim *dim);
etch_expr etch_op_flop(etch_sym *sym, const etch_op *op, etch_size_fn size, const void *data);
/* Elements of a tensor. */
etch_expr etch_elements(etch_sym *sym, const etch_tensor *tensor, etch_size_fn size, const void *data);
/* Is the result the operand's memory under the same or other dims (renames, identities)? */
bool etch_op_is_view(const etch_op *op);

#endif
