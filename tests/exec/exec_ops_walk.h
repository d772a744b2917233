/* Walks over the operands and results of an op, shared by the files of its oracle. */
#ifndef ETCH_TEST_EXEC_OPS_WALK_H
#define ETCH_TEST_EXEC_OPS_WALK_H

#include "exec_ops.h"

exec_walk exec_walk_call(exec_call *call, const exec_array *const *arrays, size_t count);
bool exec_agree(exec_call *call, const exec_array *a, const exec_array *b);
/* The element of `array` at the walk's indices, `special` (may be NULL) at `index`. */
double exec_element(exec_call *call, const exec_walk *walk, const exec_array *array, const etch_dim *special,
                    uint32_t index);
/* Does the op see all of these dims in `array`? The number of their combinations, 0 if not. */
uint32_t exec_whole_dims(exec_call *call, const exec_array *array, etch_dim *const *dims, uint32_t count);
/* What the run before has left of a state: at the walk's indices, `special` (may be NULL) at `index`; and all
 * of it. */
double exec_left_before(exec_call *call, const exec_walk *walk, const exec_array *state,
                        const etch_dim *special, uint32_t index);
void exec_fill_left(exec_call *call, exec_array *state);
/* The logarithm of the sum of exponentials of each row. */
void exec_log_sums(exec_call *call, const exec_array *x, exec_array *rows);

/* A walk over all indices of the arrays named, which must agree. */
#define WALK(...)                                             \
    exec_walk_call(call, (const exec_array *[]){__VA_ARGS__}, \
                   sizeof((const exec_array *[]){__VA_ARGS__}) / sizeof(const exec_array *))

#endif
