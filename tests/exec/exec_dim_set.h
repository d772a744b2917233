/* Sets of dims, as random models choose them. */
#ifndef ETCH_TEST_EXEC_DIM_SET_H
#define ETCH_TEST_EXEC_DIM_SET_H

#include "exec_model.h"

typedef struct exec_dim_set {
    etch_dim *at[16];
    uint32_t count;
} exec_dim_set;

void exec_dim_set_add(exec_dim_set *set, etch_dim *dim);
/* Of one tensor or two; `y` may be NULL. */
exec_dim_set exec_dims_of(const etch_tensor *x, const etch_tensor *y);
exec_dim_set exec_dims_without(exec_dim_set set, const etch_dim *dim);

#endif
