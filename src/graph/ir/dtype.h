/* Dtypes of elements, and the classes of tensors that `dtype` lines of specs and plans give one. */
#ifndef ETCH_GRAPH_IR_DTYPE_H
#define ETCH_GRAPH_IR_DTYPE_H

#include "base/base.h"

uint32_t etch_dtype_bytes(etch_dtype dtype);
/* The dtype called `name`, or ETCH_DTYPE_COUNT. */
etch_dtype etch_dtype_of(const char *name);
/* Of floating-point numbers: to others there is no gradient. */
bool etch_dtype_is_real(etch_dtype dtype);

/* The dtype of what is computed of both: the wider one, real numbers before integers; f32 of bf16 and f16. */
etch_dtype etch_dtype_promoted(etch_dtype a, etch_dtype b);

/* An etch_dtype plus one; 0: not said. */
typedef uint32_t etch_dtype_said;

/* The dtype of communication: numbers, and where blocks of them share a scale, an f32 for each block. */
typedef struct etch_comm_dtype {
    etch_dtype_said dtype;
    /* elements; 0: there are no scales */
    uint32_t block;
} etch_comm_dtype;

/* The dtypes of the classes of tensors. Classes after the first four follow another one unless they are
 * said. */
typedef struct etch_dtypes {
    etch_dtype act, weights, grads, optim;
    /* the optimizer's own copy of the weights; follows `optim` */
    etch_dtype_said master;
    /* what else the optimizer keeps; follows `optim` */
    etch_dtype_said moments;
    /* The dtype that a collective sends; it follows the tensor's unless it is said. */
    /* gradients and weights among the ranks that share them */
    etch_dtype_said grads_comm, weights_comm;
    /* slots of tokens on the way to their experts, and back */
    etch_comm_dtype dispatch, combine;
} etch_dtypes;

/* The classes in the order in which messages list them. */
enum { ETCH_DTYPE_CLASSES = 10, ETCH_CLASS_MASTER = 4 };
const char *etch_dtype_class_name(uint32_t class);
/* ETCH_DTYPE_CLASSES when there is none of this name. */
uint32_t etch_dtype_class_of(const char *name);
/* Must its tensors be of real numbers, because there are sums of them that are not of whole ones? */
bool etch_dtype_class_is_real(uint32_t class);

/* May blocks of what travels have scales? */
bool etch_dtype_class_has_blocks(uint32_t class);

/* Changes to some classes, as the dtype lines of a plan say them. */
typedef struct etch_precision {
    etch_dtype_said at[ETCH_DTYPE_CLASSES];
    /* as in etch_comm_dtype */
    uint32_t blocks[ETCH_DTYPE_CLASSES];
    /* `master = none`: the optimizer keeps no copy of the weights */
    bool no_master;
    /* where each is said */
    etch_span spans[ETCH_DTYPE_CLASSES];
} etch_precision;
void etch_dtypes_set(etch_dtypes *dtypes, uint32_t class, etch_dtype dtype, uint32_t block);
/* `precision` NULL: nothing is changed. */
etch_dtypes etch_dtypes_changed(etch_dtypes dtypes, const etch_precision *precision);
/* Do both change the dtypes of tensors alike? Either may be NULL. */
bool etch_precision_is_same(const etch_precision *a, const etch_precision *b);

/* The dtype that is said, or else `usual`. */
etch_dtype etch_dtype_or(etch_dtype_said said, etch_dtype usual);

#endif
