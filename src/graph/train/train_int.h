/* Declarations that the derivation of the backward pass and recomputation share. */
#ifndef ETCH_GRAPH_TRAIN_TRAIN_INT_H
#define ETCH_GRAPH_TRAIN_TRAIN_INT_H

#include "graph/ir/row.h"
#include "graph/plan/plan_regions.h"
#include "graph/train/train.h"

typedef ETCH_VEC(etch_tensor *) etch_tensor_list;

/* Consecutive items of a forward region that are recomputed together: one call of a module. */
typedef struct etch_recompute_block {
    const etch_scope *scope;
    const etch_region *region;
    /* its items */
    uint32_t first, end;
    /* has been recomputed */
    bool recomputed;
} etch_recompute_block;

typedef struct etch_recomputing {
    /* by forward loop: its iterations are recomputed */
    bool *loops;
    /* outer ones before those inside them */
    ETCH_VEC(etch_recompute_block) blocks;
    /* by forward tensor id: not kept, but made again when it is first read */
    bool *dropped;
    /* by forward op id: it has been recomputed for that */
    bool *wanted;
    /* by forward tensor id: the copy in force, or NULL */
    etch_tensor **version;
} etch_recomputing;

/* An operand of a derived op for which another value serves as well. */
typedef struct etch_either {
    /* NULL: not made yet */
    etch_op *op;
    /* among its operands */
    uint32_t slot;
    etch_tensor *other;
} etch_either;

/* Contributions to the cotangents of forward values, in one region. */
typedef struct etch_cotangent_terms {
    /* by forward id */
    etch_tensor_list *to;
    /* to which something was contributed */
    ETCH_VEC(uint32_t) ids;
} etch_cotangent_terms;

typedef struct etch_deriver {
    etch_graph *graph;
    etch_training *training;
    /* tensors of the forward graph: ids below it */
    uint32_t forward_count;
    /* by forward id: does a trainable weight stand after it? */
    bool *needs;
    /* of the region in work */
    etch_cotangent_terms *terms;
    /* Empty ones: there is one for every region that is open, not for all. */
    ETCH_VEC(etch_cotangent_terms *) idle;
    /* by forward loop: its recomputed copy, or NULL */
    etch_loop **loop_version;
    /* by forward loop: the body in work that undoes it */
    etch_region **reverse_of;
    etch_recomputing recomputed;
    /* in the order of backward */
    ETCH_VEC(etch_either) either;
    bool failed, found_integer;
} etch_deriver;

/* Finds what the train block names. */
void etch_recompute_begin(etch_deriver *d);
/* The tensor that stands for a forward one in backward: its copy where there is one. */
etch_tensor *etch_recompute_version(const etch_deriver *d, etch_tensor *tensor);
/* The same for reading it: a value that was not kept is made again first. */
etch_tensor *etch_recompute_read(etch_deriver *d, etch_tensor *tensor);
/* Was the value not kept, nor made again yet? */
bool etch_recompute_is_missing(const etch_deriver *d, const etch_tensor *tensor);
/* Recomputes a body of a loop at the begin of `into`, which undoes it, where that is asked for. */
void etch_recompute_body(etch_deriver *d, const etch_region *body, etch_region *into);
/* The same at the end of `into` for blocks that hold item `item` of a region, before it is undone. */
void etch_recompute_blocks(etch_deriver *d, const etch_region *region, uint32_t item, etch_region *into);
/* Leaves out what nobody reads, where that is asked for. */
void etch_recompute_end(etch_deriver *d);
/* Which of two forward values an op reads that is to be made with it as operand `slot`: `first` until all
 * reads are known (either.c). */
etch_tensor *etch_either_read(etch_deriver *d, etch_tensor *first, etch_tensor *second, uint32_t slot);
/* This is the op. */
void etch_either_add(etch_deriver *d, etch_op *op);
/* Makes ops read what is kept anyway. */
void etch_either_end(etch_deriver *d);
/* Finds what is zeros where loops run no iteration, and what is not computed then. */
void etch_made_find(etch_training *training);
/* Finds which weights are matrices, where the optimizer asks. */
void etch_matrices_find(etch_training *training);
/* Marks the weights that the train block does not train. False after an error. */
bool etch_freeze(etch_graph *graph, const etch_train *train);

#endif
