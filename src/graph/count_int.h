/* What the files of graph share about counting conventions. */
#ifndef ETCH_GRAPH_COUNT_INT_H
#define ETCH_GRAPH_COUNT_INT_H

#include "graph/kernel_int.h"

/* What an op is to a convention beside what its row says. */
typedef enum etch_mark {
    MARK_ROUTER = 1 << 0,      /* a product that chooses experts */
    MARK_LOGITS = 1 << 1,      /* a product whose result, element by element, the loss or the caller reads */
    MARK_LATENT_NORM = 1 << 2, /* a norm of what a weight has projected and the next weights project again */
    MARK_EMBEDDING = 1 << 3,   /* looks up rows of a weight */
    MARK_MASKED = 1 << 4,      /* a product of scores, some of which a mask hides, with all pairs of tokens */
    MARK_MTP_NORM = 1 << 5     /* a norm in a statement tagged `mtp`: around a prediction of further tokens */
} etch_mark;

struct etch_marks {
    unsigned char *of; /* by id of a forward op: bits of etch_mark */
    uint32_t op_count; /* placements add ops, which have no marks */
    bool *sequence;    /* by dim id: tokens of a sequence, which attend to each other */
    bool has_sequence; /* is there such a dim? */
};

#endif
