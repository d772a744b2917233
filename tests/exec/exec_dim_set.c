#include "exec_dim_set.h"

void exec_dim_set_add(exec_dim_set *set, etch_dim *dim)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->at[i] == dim)
            return;
    set->at[set->count++] = dim;
}

exec_dim_set exec_dims_of(const etch_tensor *x, const etch_tensor *y)
{
    exec_dim_set set = {.count = 0};
    for (uint32_t i = 0; i < x->rank; i++)
        exec_dim_set_add(&set, x->dims[i]);
    for (uint32_t i = 0; y && i < y->rank; i++)
        exec_dim_set_add(&set, y->dims[i]);
    return set;
}

exec_dim_set exec_dims_without(exec_dim_set set, const etch_dim *dim)
{
    exec_dim_set less = {.count = 0};
    for (uint32_t i = 0; i < set.count; i++)
        if (set.at[i] != dim)
            less.at[less.count++] = set.at[i];
    return less;
}
