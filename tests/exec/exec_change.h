/* Updates that have parts, as they are computed: what ranks make of their elements of a weight, what they
 * tell each other, and what one rank makes of the whole. */
#ifndef EXEC_CHANGE_H
#define EXEC_CHANGE_H

#include "exec_tensor.h"

/* The update of one instance of a weight, on all ranks; numbers of ranks are those of the mesh. */
typedef struct exec_change exec_change;

/* NULL: the optimizer changes each element of the weight by itself. `old`: the whole weight; `steps`: how
 * often an optimizer multiplies that does. */
exec_change *exec_change_new(etch_arena *arena, const char *optimizer, uint32_t steps,
                             const etch_tensor *weight, const exec_array *old);
/* What a rank makes of its first elements: their places in the whole weight, and slopes. */
void exec_change_prepare(exec_change *c, uint32_t rank, size_t count, const double *places,
                         const double *slopes);
/* Ranks tell each other what they know, once for each pair; then, bytes of that which each has told that has
 * memory for `held` elements: in f32 two sums of each matrix that one of them had anything of, or in bf16 its
 * elements. */
void exec_change_share_begin(exec_change *c);
void exec_change_share(exec_change *c, uint32_t rank, uint32_t other);
size_t exec_change_share_bytes(const exec_change *c, uint32_t rank, size_t held);
/* What is taken off the rank's elements, in their order; off all elements, as one rank computes it. */
const double *exec_change_of_part(const exec_change *c, uint32_t rank);
const double *exec_change_of_whole(const exec_change *c, const exec_array *slope);
/* FLOP that a rank does beyond what it does with each element, and bytes that kernels move then. */
size_t exec_change_flop(const exec_change *c, uint32_t rank, size_t *bytes);

#endif
