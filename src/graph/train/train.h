/* Training graphs: the backward pass, recomputation, gradients. Part of what other modules see of graph. */
#ifndef ETCH_GRAPH_TRAIN_TRAIN_H
#define ETCH_GRAPH_TRAIN_TRAIN_H

#include "graph/plan/plan.h"

typedef struct etch_optimizer {
    /* adamw, sgd, ... */
    const etch_row *row;
    /* of one that is for matrices alone: the optimizer of all other weights, and of tables and heads */
    const etch_row *rest;
    /* of one that multiplies: how often it does so in an update */
    etch_expr steps;
    /* keeps a master copy of the weights */
    bool master;
    /* works on a copy of the gradients, which it makes and keeps */
    bool main_grads;
    /* keeps an average of the weights over steps */
    bool ema;
} etch_optimizer;

typedef struct etch_train {
    /* the dim that `accumulate` names; NULL: one microbatch */
    etch_dim *batch;
    /* number of microbatches of a step */
    etch_expr micro;
    etch_optimizer optimizer;
    /* a selector without a span of its own is at `span` */
    etch_recompute recompute;
    /* whose scopes the selectors stand in; NULL: in none */
    const etch_plan *recompute_plan;
    const etch_span *freeze_spans;
    /* modules, loops, tags, module.tensor: their weights are not trained */
    const char *const *freeze;
    uint32_t freeze_count;
    /* a global norm of the gradients before the optimizer */
    bool clip;
    etch_span span;
} etch_train;

/* Weights that are synchronised and updated together: one iteration of an outermost loop, or what lies
 * between loops. Each class of iterations has its own. */
typedef struct etch_weight_group {
    /* forward loop, or NULL */
    etch_loop *loop;
    /* of its iterations: the class; NULL without a loop */
    etch_region *body;
    /* order of first use at top level */
    uint32_t segment;
    /* index in the list that it is of: of the training graph, or of a placement */
    uint32_t id;
    ETCH_VEC(etch_tensor *) weights;
    /* how often each weight exists in one weight group: 1, or the count of inner loops */
    ETCH_VEC(etch_expr) copies;
} etch_weight_group;

/* What a weight is to an optimizer: a matrix, several of the same shape (those of experts), or no matrix. */
typedef struct etch_matrix {
    /* bits of its dims in their order: products sum over these, and have those in their results, or the other
     * way round; all other dims count matrices. Both 0: it is none */
    uint32_t rows, columns;
    /* rows of it are looked up, or it gives the logits */
    bool is_outer;
} etch_matrix;

/* A training graph: the forward region of `graph` and what was derived from it. */
typedef struct etch_training {
    etch_graph *graph;
    etch_train train;
    /* NULL when the model has no loss */
    etch_region *backward;
    /* by order of weights; NULL where a weight has none */
    ETCH_VEC(etch_tensor *) gradients;
    ETCH_VEC(etch_weight_group *) weight_groups;
    /* by tensor id of a weight; NULL: the optimizer does not ask */
    const etch_matrix *matrices;
} etch_training;

/* Derives backward, recomputation and the weight groups. A graph may be trained in several ways, one after
 * the other. NULL after an error (no loss, an op that has no gradient). */
etch_training *etch_train_derive(etch_graph *graph, const etch_train *train);
/* Finds the dims of which microbatches have parts, as of the batch: those that are made of it. False after an
 * error. Derivation does it; a model that is served needs it, too. */
bool etch_train_follow_batch(const etch_graph *graph, const etch_train *train);
/* Size of a dim inside the graph: of one microbatch for the batch dim. */
etch_expr etch_training_size(const etch_training *training, const etch_dim *dim);
/* An etch_size_fn: the data is the etch_training. */
etch_expr etch_size_in_training(const void *training, const etch_dim *dim);
/* By tensor id, for what backward computes: is it the gradient of a weight, or of what is computed from
 * weights alone? */
const bool *etch_weight_gradients(const etch_training *training);
/* Does the op compute nothing else? */
bool etch_is_weight_gradient(const bool *weight_gradients, const etch_op *op);

#endif
