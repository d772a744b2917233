/* Rows of the op table, and the questions that passes ask of ops. The passes read rows; they know no op
 * by name. */
#ifndef ETCH_GRAPH_IR_ROW_H
#define ETCH_GRAPH_IR_ROW_H

#include "graph/ir/builder.h"

/* How an op becomes nodes of a trace. */
typedef enum etch_role {
    /* a node of its own, which pointwise neighbours join */
    ETCH_ROLE_KERNEL,
    /* a kernel when it sums a dim, pointwise otherwise */
    ETCH_ROLE_PRODUCT,
    /* joins the kernel before it, else the one after it */
    ETCH_ROLE_POINTWISE,
    /* no node: another view of the same memory */
    ETCH_ROLE_FREE,
    /* a collective, or a free slice */
    ETCH_ROLE_RESHARD
} etch_role;

/* The use that an op makes of a dim: decides along which dims an axis may divide the work. */
typedef enum etch_factor {
    /* independent: results are sharded on it, or partial where they lack it, as `reduction` says */
    ETCH_FACTOR_PASS,
    /* needed as a whole: its shards are gathered */
    ETCH_FACTOR_WHOLE,
    /* may be sharded at the price of `stat_reductions` small all-reduces */
    ETCH_FACTOR_STAT
} etch_factor;

/* How what ranks have is put together where each has worked on its part of a dim that the result lacks. */
typedef enum etch_reduction { ETCH_REDUCTION_SUM, ETCH_REDUCTION_MAX } etch_reduction;

/* May an operand pass through of which ranks have parts that are put together as those of the result are: of
 * most ops a partial sum? */
typedef enum etch_linear {
    ETCH_LINEAR_NO,
    /* in each operand alone: one partial operand passes, if it has the result's dims */
    ETCH_LINEAR_EACH,
    /* the same in operand 0, and in no other */
    ETCH_LINEAR_FIRST,
    /* in all together: passes when every operand is partial */
    ETCH_LINEAR_JOINT
} etch_linear;

/* The family of an op, where conventions of counting FLOP differ. */
typedef enum etch_op_family {
    ETCH_FAMILY_NONE,
    /* normalises operand 0 */
    ETCH_FAMILY_NORM,
    /* reads or adds to rows of a table: the product with a matrix of one-hot rows */
    ETCH_FAMILY_LOOKUP,
    /* judges operand 0 */
    ETCH_FAMILY_LOSS,
    /* chooses by operand 0 */
    ETCH_FAMILY_CHOICE
} etch_op_family;

/* What an op does with the capacity slots of experts. */
typedef enum etch_routing {
    ETCH_ROUTING_NONE,
    /* with tokens */
    ETCH_ROUTING_FILLS,
    /* tokens are taken out */
    ETCH_ROUTING_EMPTIES
} etch_routing;

/* How much of an operand or result an op touches. */
typedef enum etch_touch {
    ETCH_TOUCH_ALL,
    /* operand 0: as many elements as the result has (rows that were looked up) */
    ETCH_TOUCH_ROWS_READ,
    /* result 0: as many elements as operand 0 has (rows that are added to) */
    ETCH_TOUCH_ROWS_WRITTEN
} etch_touch;

/* Ops that the builder, the derivation and the placement make by themselves: each use has one row. */
typedef enum etch_use {
    ETCH_USE_NONE,
    /* a * b */
    ETCH_USE_PRODUCT,
    /* a + b */
    ETCH_USE_SUM,
    /* a - b */
    ETCH_USE_DIFFERENCE,
    /* sum over dims */
    ETCH_USE_REDUCTION,
    /* times a number */
    ETCH_USE_SCALE,
    /* plus a number */
    ETCH_USE_SHIFT,
    /* the value under another name */
    ETCH_USE_COPY,
    /* x[S->S'] */
    ETCH_USE_RENAMING,
    /* kr[B,G,D] = k: copies along new dims */
    ETCH_USE_BROADCAST,
    /* called by its name, and made of others: mean */
    ETCH_USE_AVERAGE,
    /* a / b */
    ETCH_USE_QUOTIENT,
    /* a number / b */
    ETCH_USE_RECIPROCAL,
    /* the cotangents of one value, added */
    ETCH_USE_TOTAL,
    /* a gradient added into its accumulator by a node of its own */
    ETCH_USE_ACCUMULATION,
    /* sum of squares of the gradients */
    ETCH_USE_NORM,
    /* an average of the weights over steps */
    ETCH_USE_EMA,
    /* how choices are spread over what they choose among */
    ETCH_USE_LOAD,
    /* moves */
    ETCH_USE_SLICE_SHARD,
    ETCH_USE_REDUCE_SCATTER,
    ETCH_USE_ALL_TO_ALL,
    ETCH_USE_ALL_REDUCE,
    ETCH_USE_ALL_GATHER,
    ETCH_USE_PERMUTE,
    ETCH_USE_COUNT
} etch_use;

typedef enum etch_result {
    /* the dtype of activations */
    ETCH_RESULT_ACT,
    ETCH_RESULT_F32,
    ETCH_RESULT_I32,
    /* the call says it */
    ETCH_RESULT_SAID,
    /* of operand 0 */
    ETCH_RESULT_AS_OPERAND
} etch_result;

/* A result beside the first: with the dims of result 0, or of an operand less `over` and `dot`; what stays
 * has those of `state` as well. */
typedef struct etch_extra {
    /* NULL: none */
    const char *name;
    etch_dtype dtype;
    /* ETCH_EXTRA_AS_RESULT or ETCH_EXTRA_OF(operand) */
    unsigned like;
    /* the dtype of the first result, in place of `dtype` */
    bool dtype_as_result;
} etch_extra;

enum { ETCH_EXTRA_AS_RESULT = 0 };

#define ETCH_EXTRA_OF(operand) (1u << (operand))

/* A gradient: the call of another row. `args`: d0 (cotangent of result 0), xN (operand N), yN (result N),
 * `others` (every operand but the target), separated by blanks; an optional operand that is not given is left
 * out; `d`: the cotangents of all results; `y0|x0`: either serves, and backward reads the one that is kept
 * anyway, the first where neither or both are; `@row` at the end: what that row makes of the arguments
 * before it but cotangents, with the dims of result 0. `into`: operands whose cotangents the results are,
 * `all` operands, or `each`: one call for every operand that needs one; `added`, `taken`: for each of a sum
 * that is. N counts all operands that the row names. */
typedef struct etch_grad {
    const char *row, *args, *into;
} etch_grad;

#define ETCH_GRADS(...) ((const etch_grad[]){__VA_ARGS__, {NULL, NULL, NULL}})

/* How a convention counts an op. All zero: as its row says. */
typedef struct etch_flop_rule {
    /* of causal attention */
    enum { ETCH_PAIRS_EXACT, ETCH_PAIRS_HALF, ETCH_PAIRS_FULL } pairs;
    /* of whatever it is */
    bool half;
    /* not what the row says is done again */
    bool once;
    /* 2 for each combination of all dims, whatever the row says */
    bool product;
    /* not 0: so many for each element of operand 0, whatever the row says */
    uint32_t element;
    /* by dim id: these have one element; NULL: none has */
    const bool *single;
} etch_flop_rule;

/* How the work of an op is divided along a dim whose elements do not all have an equal part of it. */
typedef struct etch_division {
    /* the dim; NULL: none, or it cannot be told */
    const etch_dim *queries;
    /* the work is counted for all of its elements together */
    bool counted;
    /* later elements have more: an early chunk and a late one make an equal part */
    bool grows;
    /* not even those are equal parts */
    bool uneven;
} etch_division;

/* The FLOP of one op, asked of its row. `size`: of a dim, where they are counted. */
typedef struct etch_flop_call {
    etch_sym *sym;
    const etch_op *op;
    /* a function minds `pairs` and `once`; the rest is seen to */
    const etch_flop_rule *rule;
    etch_size_fn size;
    /* of `size` */
    const void *data;
} etch_flop_call;

/* How FLOP are counted, and how `help ops` says it: each # is the next constant of the row. */
typedef struct etch_flop {
    etch_expr (*count)(const etch_flop_call *call);
    const char *help;
} etch_flop;

/* What a rank works on in a part of the update of a weight. */
typedef struct etch_update_call {
    etch_sym *sym;
    const struct etch_row *row;
    /* elements that it updates, padding included */
    etch_expr elements;
    /* how many matrices they are of; 1 of what is none */
    etch_expr matrices;
    /* of a matrix: all of its rows and columns; NULL: it is none */
    etch_expr rows, columns;
    /* how often the optimizer multiplies */
    etch_expr steps;
} etch_update_call;

/* What that takes: FLOP, those of them that are of products of matrices, and bytes beside those that the row
 * says. NULL: none. */
typedef struct etch_update_work {
    etch_expr flop, product_flop, read, written;
} etch_update_work;

/* What a part of an update reads and writes of each element. */
typedef enum etch_update_use {
    ETCH_UPDATE_GRADIENT = 1 << 0,
    /* what the weight is to be changed by, which has taken the place of the gradient */
    ETCH_UPDATE_CHANGE = 1 << 1,
    /* the weight, or its master copy instead; both are written */
    ETCH_UPDATE_WEIGHT = 1 << 2,
    /* what the optimizer keeps */
    ETCH_UPDATE_STATES = 1 << 3,
    /* what products read and make, a bf16 */
    ETCH_UPDATE_FACTOR = 1 << 4
} etch_update_use;

/* What ranks that have parts of a matrix tell each other after a part of its update. */
typedef enum etch_update_share {
    ETCH_SHARE_NOTHING,
    /* sums over all of its elements, an f32 each */
    ETCH_SHARE_SUMS,
    /* the matrix */
    ETCH_SHARE_MATRIX
} etch_update_share;

/* What a row says of its FLOP. */
typedef struct etch_flop_cost {
    /* NULL: none */
    const etch_flop *by;
    /* of an optimizer, the first is per element of a weight */
    uint32_t constants[4];
    /* of the first constant, what backward recomputes because forward has not kept it */
    uint32_t again;
} etch_flop_cost;

struct etch_call;

enum { ETCH_MOST_PARTS_BEFORE = 2 };

struct etch_row {
    const char *name;
    /* names, for messages and help; those after `|` are optional */
    const char *operands;
    /* ETCH_EXTRA_OF(..) of the operands that hold indices, which are integers */
    unsigned indices;
    /* etch_keyword bits: those that a call says, and those that it may say */
    unsigned needs, options;
    /* of these, keywords of dims that are one dim */
    unsigned one;
    /* keywords of dims that name one for each operand, the same one for several, too */
    unsigned each;
    /* of the positional number */
    etch_number_range number;
    /* only operators and other rows make it: no spec calls it by name, though it has a shape */
    bool uncalled;
    /* Adds the dims of the result of a call, whose attrs it may complete. False after an error. NULL: a
     * derived row, where result i has the dims of the operand that it is the gradient of, or one that is
     * not called. */
    bool (*shape)(struct etch_call *call, etch_dim_list *out);
    /* In its place, of a row with several results, any of which may have a cotangent: completes the attrs
     * from the declared dims of `count` results. NULL: one result. False after an error. */
    bool (*several)(struct etch_call *call, const etch_dim_view *want, uint32_t count);
    etch_role role;
    /* what these dims are to the op; all others pass */
    etch_factor over, dot, state;
    etch_linear linear;
    etch_reduction reduction;
    etch_flop_cost flop;
    /* for conventions of counting */
    etch_op_family family;
    /* counts in matmul_flops (a product also needs dims of all three kinds) */
    bool matmul;
    etch_touch touch;
    /* index of the first operand of forward; cotangents precede it in a derived row */
    uint32_t scores_first;
    /* Of an op whose elements of some dim do not all have equal parts of the work; NULL for all others. */
    etch_division (*divide)(const etch_op *op);
    /* Of such an op: how many of `*keys` a rank sees that has part `share`, counted from 0, of `parts`
     * contiguous ones of the dim. NULL: all ranks do equal parts of what is counted. */
    etch_expr (*seen)(const etch_flop_call *call, etch_expr share, etch_expr parts, const etch_dim **keys);
    /* ETCH_EXTRA_OF(..) of the operands whose blocks may come one after the other, from rank to rank, where
     * the results go on from those of the blocks before: what lies along `over` */
    unsigned rotates;
    /* Does it hide scores that other ops compute? NULL: no. */
    bool (*hides)(const etch_op *op);
    /* the operand whose shards decide before those of the others */
    uint32_t lead;
    /* operands and results that lack a dim `from` may be sharded on its `to` */
    bool links;
    etch_routing routing;
    /* all-reduces of result 1 when `over` is sharded */
    uint32_t stat_reductions;
    /* of result 0 */
    etch_result dtype;
    etch_extra extra;
    /* ETCH_EXTRA_OF(..) of the operands that the extra result is made of; 0: all */
    unsigned extra_reads;
    etch_use use;
    /* the result is operand 0's memory, under the same or other dims */
    bool view;
    /* ETCH_EXTRA_OF(result): memory that outlives the run, written and read by all that name it. The first
     * result is written behind what is there; the extra one is a state, which the op reads and replaces. */
    unsigned stays;
    /* the row that takes its place when a model is served; NULL: itself */
    const char *serving;
    /* of a call with one of these keywords; 0: of every call */
    unsigned serving_if;
    /* an optimizer */
    bool updates;
    /* an optimizer: tensors of the weight's size that it keeps, read and written */
    uint32_t states;
    /* an optimizer whose states have 8 bits: so many elements of one share a scale, an f32; 0: states have
     * the dtype of their class */
    uint32_t state_block;
    /* an optimizer: the row that takes its place when it keeps a momentum, and with states of 8 bits */
    const char *with_momentum, *with_8_bits;
    /* an optimizer: the parts that an update has before its last, which is this row */
    const char *before[ETCH_MOST_PARTS_BEFORE];
    /* an optimizer: it asks which weights are matrices; it is not for others, nor for tables and heads */
    bool of_matrices, matrices_alone;
    /* an optimizer, or a part before: what it takes. NULL: a part of none */
    etch_update_work (*work)(const etch_update_call *call);
    /* etch_update_use bits */
    unsigned update_reads, update_writes;
    /* a part before: what ranks share after it, and how many sums */
    etch_update_share share;
    uint32_t sums;
    /* is nothing when the result has the dims of operand 0 */
    bool elide_same;
    /* derived from a row with a map: from and to trade places */
    bool inverts_map;
    /* ends with {NULL}; NULL: no gradient */
    const etch_grad *grads;
    /* A call is made of calls of other rows: no op has this row. NULL for most. */
    etch_tensor *(*compose)(const struct etch_call *call);
    const char *help;
};

/* The row of a use, and of a move, or NULL; a call of the row of a use, with no dims declared. */
const etch_row *etch_row_for(const etch_graph *graph, etch_use use);
const etch_row *etch_row_of_collective(const etch_graph *graph, etch_collective collective);
etch_tensor *etch_graph_use(etch_graph *graph, etch_use use, etch_tensor *const *ins, uint32_t in_count,
                            const etch_attrs *attrs, etch_span span);

/* ---- questions about one op ---------------------------------------------------------------------------- */

/* Place among `ins` of the operand that the row names at `slot`; UINT32_MAX when it is not given. */
uint32_t etch_op_index(const etch_op *op, uint32_t slot);
/* Does the op's row let `dim` be `ETCH_FACTOR_PASS`, ...? */
etch_factor etch_op_factor(const etch_op *op, const etch_dim *dim);
/* The role of an op: ETCH_ROLE_PRODUCT decided. */
etch_role etch_op_role(const etch_op *op);
/* The dim of a view's operand that a dim of its result is, and the other way round. */
const etch_dim *etch_op_dim_before(const etch_op *op, const etch_dim *dim);
const etch_dim *etch_op_dim_after(const etch_op *op, const etch_dim *dim);
/* Where the op links dims: the dim that those of operands and results that lack `dim` have in its place; else
 * `dim` itself. */
const etch_dim *etch_op_dim_linked(const etch_op *op, const etch_dim *dim);
/* Of a derived op that reads the result or an operand of the op that it derives from, as `at`: is it the
 * result? */
bool etch_op_reads_result(const etch_op *op, uint32_t at);
/* Does it make each element of one of each operand: a view, or an elementwise op? */
bool etch_op_is_elementwise(const etch_op *op);
/* Is it a product with dims of all three kinds (only in the first operand, only in the second, summed), or a
 * row that always counts? */
bool etch_op_is_matmul(const etch_op *op);
/* Has an operand or a result the dim? */
bool etch_op_has_dim(const etch_op *op, const etch_dim *dim);
/* Has an operand a dim that the first result lacks? */
bool etch_op_sums(const etch_op *op);
/* How the op divides its work. All zero: every element of a dim has an equal part. */
etch_division etch_op_division(const etch_op *op);
/* Do ranks that share `dim` do equal parts of the op, be it in early and late chunks? */
bool etch_op_is_even(const etch_op *op, const etch_dim *dim);
/* The dim whose elements are counted all together; NULL: none. */
const etch_dim *etch_op_counted_queries(const etch_op *op);
/* The tensor under other names for it: arguments and results of modules. */
etch_tensor *etch_named_root(etch_tensor *tensor);

/* The product of the sizes of dims; `size` NULL: of those that they are declared with. */
etch_expr etch_dims_size(etch_sym *sym, etch_dim_view dims, etch_size_fn size, const void *data);
/* FLOP of an op under a rule. */
etch_expr etch_op_flop_by(etch_sym *sym, const etch_op *op, const etch_flop_rule *rule, etch_size_fn size,
                          const void *data);

/* ---- dims, names, derived tensors ---------------------------------------------------------------------- */

bool etch_dim_among(etch_dim_view dims, const etch_dim *dim);
/* The first dim of `t` that neither `a` nor `b` (may be NULL) has, nor `less`; NULL: there is none. */
const etch_dim *etch_dim_beside(const etch_tensor *t, const etch_tensor *a, const etch_tensor *b,
                                etch_dim_view less);
bool etch_dims_same(etch_dim_view a, etch_dim_view b);
/* Dims of a part of `x`, by the op's map: `x` has the dim of the whole. */
void etch_part_dims(const etch_op *op, const etch_tensor *x, uint32_t part, etch_graph *graph,
                    etch_dim_list *out);
/* Helps with a name that selects nothing: "did you mean", of loops, modules and tags, or else `otherwise`. */
void etch_help_selector(const etch_graph *graph, etch_diag *diag, const char *name, const char *otherwise);
/* The forward tensor of a recomputed copy or a cotangent. */
const etch_tensor *etch_origin(const etch_tensor *tensor);
/* The op of the forward graph that an op derives from, or repeats; a forward one itself. */
const etch_op *etch_first_op(const etch_op *op);
/* How often a weight exists in one run of its weight group: once for each iteration of the loops around its
 * declaration inside the outermost one. */
etch_expr etch_copies_in_group(etch_sym *sym, const etch_tensor *weight);
/* The phase of what a loop does: what it runs again is recomputed, also inside of a loop that undoes
 * another. */
etch_phase etch_loop_phase(const etch_loop *loop);

/* ---- building, shared by the builder and the derivations ----------------------------------------------- */

/* Building, shared by the builder and the derivations. New tensors and ops go to the given region. */
etch_tensor *etch_tensor_new(etch_graph *graph, const char *name, etch_kind kind, etch_dtype dtype,
                             etch_dim_view dims, etch_span span);
etch_op *etch_op_new(etch_graph *graph, const etch_row *row, etch_tensor *const *ins, uint32_t in_count,
                     uint32_t out_count, const etch_attrs *attrs, etch_phase phase, etch_span span);
/* A further body of a loop, which stands in `parent`. */
etch_region *etch_loop_add_body(etch_graph *graph, etch_loop *loop, etch_region *parent);
void etch_region_add_op(etch_graph *graph, etch_region *region, etch_op *op);
/* Puts the last item of a region before the one that was the last. */
void etch_region_swap_last(etch_region *region);
/* The value of the i-th loop-carried value after the loop. */
void etch_loop_set_result(const etch_loop *loop, uint32_t i, etch_tensor *result);

/* What nobody needs of a region (keep.c). */
typedef struct etch_sift {
    etch_arena *arena;
    /* Is the op needed, whoever reads its results? */
    bool (*acts)(const etch_op *op);
    /* so do loop-carried values that nothing needs; else a loop that stays stays with all of them, but one
     * that is recomputed */
    bool carries;
    /* by tensor id; what is asked for is set */
    bool *needed;
} etch_sift;
/* Of the forward pass of a graph, where nothing is asked for yet. */
etch_sift etch_sift_of(const etch_graph *graph);
/* Marks what is needed by what is; leaves out all else. */
void etch_region_mark(const etch_sift *sift, const etch_region *region);
void etch_region_sift(const etch_sift *sift, etch_region *region);

#endif
