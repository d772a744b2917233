/* libetch: models that a program builds, instead of writing them in a spec.
 *
 * A spec gives names to sizes, and says how the model is trained and placed; the program builds the forward
 * pass between them, op by op, with the functions that specs are read with. Everything else is derived as
 * ever.
 *
 *     static void build(etch_network *net, void *data)
 *     {
 *         etch_dim *b = etch_network_dim(net, "B"), *h = etch_network_dim(net, "H");
 *         etch_dim *f = etch_network_dim(net, "F");
 *         etch_tensor *x = etch_network_input(net, "x", NULL, 2, (etch_dim *[]){b, h});
 *         etch_tensor *w = etch_network_weight(net, "w", NULL, 2, (etch_dim *[]){h, f});
 *         etch_network_multiply(net, x, w, 2, (etch_dim *[]){b, f});
 *         (void)data;
 *     }
 *     ...
 *     etch_network_model model = {.name = "layer", .build = build};
 *     etch_session_options options = {.struct_size = sizeof options,
 *                                     .text = "etch 1\nparam batch, hidden, ffn\n"
 *                                             "dim B = batch, H = hidden, F = ffn\n",
 *                                     .models = &model,
 *                                     .model_count = 1};
 *     etch_session_open(&options, &session);
 *     etch_session_query(session, "flops(forward)", NULL, &answer);   // 2*batch*hidden*ffn
 *
 * `build` is called whenever the model is needed with other values of params that may decide its structure,
 * and again after a release, and must build the same each time. Inside it only the functions of this header
 * may be called, with this network; dims, tensors and the network itself end with the call.
 *
 * Dims are named, and each dim has a size over the whole job; a tensor has each dim once, in no order. Ops
 * work by dim, as in a spec (docs/language.md).
 *
 * Errors. A function that fails reports a message to the session (etch/etch.h) and returns NULL; functions
 * take NULL tensors and dims silently and then return NULL. So a whole network can be built without looking;
 * the call of the session that needed it then returns ETCH_EINPUT. When memory or a limit is out, all that
 * follows returns NULL. */
#ifndef ETCH_BUILDER_H
#define ETCH_BUILDER_H

#include <stdbool.h>
#include <stddef.h>

#include "etch/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct etch_network etch_network;
typedef struct etch_dim etch_dim;
typedef struct etch_tensor etch_tensor;

typedef struct etch_network_model {
    /* as queries, train blocks and plans call it */
    const char *name;
    void (*build)(etch_network *network, void *data);
    /* carried on to `build` */
    void *data;
} etch_network_model;

/* ---- dims ------------------------------------------------------------------------------------------- */

/* The dim that the session's spec declares as `name`; "H'" is a second dim of the size of H. The same for
 * each call. */
ETCH_API etch_dim *etch_network_dim(etch_network *network, const char *name);

/* A new dim. `size`: elements over the whole job, an expression of the spec's language over its params and
 * dims ("4*hidden"). `average`: it is a size on average, which divisors need not divide. */
ETCH_API etch_dim *etch_network_new_dim(etch_network *network, const char *name, const char *size,
                                        bool average);

/* ---- inputs and weights ----------------------------------------------------------------------------- */

/* `dtype`: "f32", "bf16", "i32", ...; NULL: that of activations, or of weights, of the spec. */
ETCH_API etch_tensor *etch_network_input(etch_network *network, const char *name, const char *dtype,
                                         size_t rank, etch_dim *const *dims);
ETCH_API etch_tensor *etch_network_weight(etch_network *network, const char *name, const char *dtype,
                                          size_t rank, etch_dim *const *dims);
/* A weight that is counted and not trained. */
ETCH_API etch_tensor *etch_network_frozen_weight(etch_network *network, const char *name, const char *dtype,
                                                 size_t rank, etch_dim *const *dims);

/* ---- ops -------------------------------------------------------------------------------------------- */

/* a * b: keeps exactly the dims `keep` of both and sums the others. */
ETCH_API etch_tensor *etch_network_multiply(etch_network *network, etch_tensor *a, etch_tensor *b,
                                            size_t rank, etch_dim *const *keep);
/* The same with nothing summed: the dims of one must contain those of the other. */
ETCH_API etch_tensor *etch_network_weigh(etch_network *network, etch_tensor *a, etch_tensor *b);
/* a + b and a - b; what one lacks is broadcast. */
ETCH_API etch_tensor *etch_network_add(etch_network *network, etch_tensor *a, etch_tensor *b);
ETCH_API etch_tensor *etch_network_subtract(etch_network *network, etch_tensor *a, etch_tensor *b);
/* x times, and plus, a number: an expression over params, "1/hidden". */
ETCH_API etch_tensor *etch_network_scale(etch_network *network, etch_tensor *x, const char *number);
ETCH_API etch_tensor *etch_network_shift(etch_network *network, etch_tensor *x, const char *number);
/* x summed over all dims but `keep`. */
ETCH_API etch_tensor *etch_network_reduce(etch_network *network, etch_tensor *x, size_t rank,
                                          etch_dim *const *keep);
/* x[from->to]: the same elements, `from[i]` under the name of `to[i]`, which is of the same size. */
ETCH_API etch_tensor *etch_network_rename(etch_network *network, etch_tensor *x, size_t count,
                                          etch_dim *const *from, etch_dim *const *to);

/* What a call says beside its operands; set what the keyword is. */
typedef struct etch_network_argument {
    /* a keyword ("over", "dot", "causal"), or the name of an optional operand; NULL: the number that stands
     * after the operands (scale, dropout) */
    const char *name;
    /* over, dot, ... */
    etch_dim *const *dims;
    size_t dim_count;
    /* causal ("1"), window, ...: an expression over params; dtype: its name */
    const char *number;
    /* an optional operand */
    etch_tensor *tensor;
} etch_network_argument;

/* Any op of the table (`etch help ops`): softmax(x, over = H) is
 *     etch_network_call(net, "softmax", 1, &x, 1, &(etch_network_argument){"over", .dims = &h, .dim_count =
 *     1}) */
ETCH_API etch_tensor *etch_network_call(etch_network *network, const char *op, size_t operand_count,
                                        etch_tensor *const *operands, size_t argument_count,
                                        const etch_network_argument *arguments);

/* Says how queries, pins and traces call a result. */
ETCH_API void etch_network_name(etch_network *network, etch_tensor *tensor, const char *name);
/* Adds a tag. "loss" makes a scalar part of the objective. */
ETCH_API void etch_network_tag(etch_network *network, etch_tensor *tensor, const char *tag);

/* ---- modules and loops ------------------------------------------------------------------------------ */

/* What is built between the two belongs to one call of a module of this name. Values from outside go in, and
 * results out, through `etch_network_pass_in` (after enter) and `etch_network_pass_out` (before leave). */
ETCH_API void etch_network_enter(etch_network *network, const char *module);
ETCH_API etch_tensor *etch_network_pass_in(etch_network *network, etch_tensor *value, const char *name);
ETCH_API etch_tensor *etch_network_pass_out(etch_network *network, etch_tensor *value, const char *name);
ETCH_API void etch_network_leave(etch_network *network);

/* A loop: `count` iterations ("layers") of what is built until `etch_network_end`. `carry`, right after it
 * begins, makes the iteration's version of a value that iterations change; `end` gets the changed versions in
 * the same order, which have the same dims, and stores what the last iteration leaves into `results`. `name`
 * is that of the loop. */
ETCH_API void etch_network_repeat(etch_network *network, const char *name, const char *count);
ETCH_API etch_tensor *etch_network_carry(etch_network *network, etch_tensor *value);
ETCH_API void etch_network_end(etch_network *network, size_t count, etch_tensor *const *changed,
                               etch_tensor **results);

#ifdef __cplusplus
}
#endif

#endif
