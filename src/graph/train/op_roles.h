/* The roles of ops that follow from how they are connected: which products give the logits, which choose
 * experts, and which dims are tokens. */
#ifndef ETCH_GRAPH_TRAIN_OP_ROLES_H
#define ETCH_GRAPH_TRAIN_OP_ROLES_H

#include "graph/train/train.h"

/* The roles of an op for a counting convention, beside its row. */
typedef enum etch_op_role_bit {
    /* a product that chooses experts */
    ETCH_OP_ROUTER = 1 << 0,
    /* a product whose result, element by element, the loss or the caller reads */
    ETCH_OP_LOGITS = 1 << 1,
    /* a norm of what a weight has projected and the next weights project again */
    ETCH_OP_LATENT_NORM = 1 << 2,
    /* looks up rows of a weight */
    ETCH_OP_EMBEDDING = 1 << 3,
    /* a product of scores, some of which a mask hides, with all pairs of tokens */
    ETCH_OP_MASKED = 1 << 4,
    /* a norm in a statement tagged `mtp`: around a prediction of further tokens */
    ETCH_OP_MTP_NORM = 1 << 5
} etch_op_role_bit;

typedef struct etch_op_roles {
    /* by id of a forward op: bits of etch_op_role_bit */
    unsigned char *of;
    /* placements add ops, which have no marks */
    uint32_t op_count;
    /* by dim id: tokens of a sequence, which attend to each other */
    bool *sequence;
    /* is there such a dim? */
    bool has_sequence;
} etch_op_roles;

const etch_op_roles *etch_op_roles_of(const etch_training *training, etch_arena *arena);

#endif
