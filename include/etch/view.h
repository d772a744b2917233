/* The graph of a model: its ops, tensors, loops and modules, and what the backward pass keeps. Part of
 * etch/etch.h. */
#ifndef ETCH_VIEW_H
#define ETCH_VIEW_H

#include "etch/session.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    etch_tensor_kind kind;
    etch_dtype dtype;
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
    /* what the elements of a constant of the model are: a number, or "iota"; NULL for all others */
    const char *constant;
    /* a frozen weight that is no parameter */
    bool buffer;
} etch_view_tensor;

typedef struct etch_view_op {
    /* of the op table: "einsum" */
    const char *name;
    /* beside operands, as a spec says them: "over = S, causal = true"; "" for none */
    const char *arguments;
    /* forward, recompute or backward */
    etch_phase phase;
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
    /* recompute or backward, */
    etch_phase reader_phase;
    /* and the name of the one that it derives from */
    const char *reader_derives;
    etch_location reader_location;
} etch_view_saved;

typedef struct etch_view_total {
    etch_phase phase;
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

/* What is shown. Everything but `struct_size` may be zero. */
typedef struct etch_view_options {
    /* sizeof(etch_view_options) */
    size_t struct_size;
    /* a module, loop, tag or module.tensor, as `of =` in queries names it; NULL: everything */
    const char *part;
} etch_view_options;

/* The graph of the model, and what is derived from it: which gradients are computed how, and which values are
 * kept for them. `options` NULL: all zero. ETCH_EINPUT: the model has errors, or no such part. */
ETCH_API etch_status etch_session_graph(etch_session *session, const etch_view_options *options,
                                        const etch_graph_report **report);

#ifdef __cplusplus
}
#endif

#endif
