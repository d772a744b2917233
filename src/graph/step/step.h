/* The contents of a step: kernels, the weights that are gathered for them, and what its end reduces and
 * updates. Part of what other modules see of graph. */
#ifndef ETCH_GRAPH_STEP_STEP_H
#define ETCH_GRAPH_STEP_STEP_H

#include "graph/place/place.h"

/* What a rank does of an attention whose blocks go round, run by run: bytes of one run. */
typedef struct etch_ring_io {
    /* its operands, of what goes round one block */
    etch_expr read;
    /* results; of these such as later runs go on from, which read them; gradients of what goes round, which
     * are added to those that have come, read and written once more */
    etch_expr written, carried, returned;
    /* gradients of weights, which the run for a rank's own block reads, and writes */
    etch_expr added;
} etch_ring_io;

/* Several steps that run as one node, or one collective; those of a ring as one in each run. */
typedef struct etch_kernel {
    /* program order */
    ETCH_VEC(etch_step *) steps;
    /* the product, norm, ... that names it; the collective; else the first step */
    etch_step *anchor;
    /* place in the order of the region: index among its items */
    uint32_t item;

    /* What follows is there once kernels are counted (etch_kernels_count). */

    /* values that enter: roots, each once */
    ETCH_VEC(etch_value *) reads;
    /* values that leave */
    ETCH_VEC(etch_value *) writes;
    /* of one rank, one execution */
    etch_expr flop;
    /* read plus written; of a collective: its payload */
    etch_expr bytes;
    /* of them, those that are read, of a collective none; and the others */
    etch_expr read, written;
    /* of a ring; all NULL else */
    etch_ring_io ring;
} etch_kernel;

/* How an attention runs whose blocks go round (etch_step.ring), on one rank. */
typedef struct etch_ring {
    /* the ranks of the ring: a rank's own block, and those of the ranks before it */
    etch_expr size;
    /* blocks that it computes with: all, or its own and those before it */
    etch_expr runs;
    /* how often it adds what it has made for a block to what others have, if they are gradients */
    etch_expr sums;
    /* work for its own block, and for any other that it computes with: the FLOP are in this proportion */
    etch_expr own, other;
} etch_ring;
etch_ring etch_ring_of(const struct etch_placed *placed, const etch_step *step);
/* Bytes of one message of a move to the next rank. */
etch_expr etch_ring_message(const struct etch_placed *placed, const etch_kernel *kernel);

/* The dtype in which a collective sends an operand; and its payload, where a rank has so many elements of one
 * copy. */
etch_dtype etch_comm_dtype_of(const etch_placed *placed, const etch_step *collective, uint32_t operand);
etch_expr etch_payload_by(const etch_placed *placed, const etch_step *collective, uint32_t operand,
                          etch_expr elements);

/* ---- weights that ranks hold in shards ----------------------------------------------------------------- */

/* The memory that a rank holds for a weight from step to step. */
typedef enum etch_holding {
    /* the optimizer's, master weights among them */
    ETCH_HOLDS_STATES,
    /* the sum over the microbatches so far */
    ETCH_HOLDS_GRADIENT,
    ETCH_HOLDS_WEIGHT
} etch_holding;

/* The zero line that is about the weight: of the innermost scope that has one, or the plan's. */
const etch_zero *etch_zero_of(const struct etch_placed *placed, const struct etch_tensor *weight);
/* Is the weight of the root of that line: of no iteration? */
bool etch_zero_roots(const etch_zero *zero, const struct etch_tensor *weight);
/* The axes among whose ranks it is divided, beside those of the plan's shards. */
uint32_t etch_zero_divides(const struct etch_placed *placed, const struct etch_tensor *weight,
                           etch_holding what);
/* Elements of one copy of the weight (a loop has one for each iteration) that a rank holds, padding
 * included. */
etch_expr etch_held_elements(const struct etch_placed *placed, const struct etch_tensor *weight,
                             etch_holding what);
/* Bytes of what the optimizer keeps of one copy of the weight in the memory of the host; a copy of a
 * gradient is made anew in each step, and stays on the device. */
etch_expr etch_offloaded_bytes(const struct etch_placed *placed, const struct etch_tensor *weight);
/* Does the plan put states into the memory of the host that the training does not have? And a remark on
 * it. */
bool etch_offload_is_idle(const struct etch_placed *placed);
void etch_remark_idle_offload(const struct etch_placed *placed);

#endif
