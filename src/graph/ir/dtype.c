/* Dtypes, and classes of tensors. */
#include "graph/ir/dtype.h"

#include <stddef.h>
#include <string.h>

/* ---- dtypes -------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t bytes;
} dtypes[ETCH_DTYPE_COUNT] = {
    [ETCH_F64] = {"f64", 8}, [ETCH_F32] = {"f32", 4}, [ETCH_BF16] = {"bf16", 2},
    [ETCH_F16] = {"f16", 2}, [ETCH_F8] = {"f8", 1},   [ETCH_I64] = {"i64", 8},
    [ETCH_I32] = {"i32", 4}, [ETCH_I8] = {"i8", 1},   [ETCH_BOOL] = {"bool", 1},
};

const char *etch_dtype_name(etch_dtype dtype)
{
    return (unsigned)dtype < ETCH_DTYPE_COUNT ? dtypes[dtype].name : NULL;
}
uint32_t etch_dtype_bytes(etch_dtype dtype)
{
    return dtypes[dtype].bytes;
}

etch_dtype etch_dtype_of(const char *name)
{
    for (int i = 0; i < ETCH_DTYPE_COUNT; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return (etch_dtype)i;
    return ETCH_DTYPE_COUNT;
}

bool etch_dtype_is_real(etch_dtype dtype)
{
    return dtype <= ETCH_F8;
}

etch_dtype etch_dtype_promoted(etch_dtype a, etch_dtype b)
{
    if (etch_dtype_is_real(a) != etch_dtype_is_real(b))
        return etch_dtype_is_real(a) ? a : b;
    if (etch_dtype_bytes(a) != etch_dtype_bytes(b))
        return etch_dtype_bytes(a) > etch_dtype_bytes(b) ? a : b;
    return a == b ? a : ETCH_F32; /* bf16 and f16 */
}

/* ---- classes ------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool real;
} classes[ETCH_DTYPE_CLASSES] = {
    {"act", false},    {"weights", false},   {"grads", true},         {"optim", true},     {"master", true},
    {"moments", true}, {"grads_comm", true}, {"weights_comm", false}, {"dispatch", false}, {"combine", false},
};

enum { FIRST_COMM_DTYPE = ETCH_DTYPE_CLASSES - 2 };

const char *etch_dtype_class_name(uint32_t class)
{
    return classes[class].name;
}

uint32_t etch_dtype_class_of(const char *name)
{
    uint32_t class = 0;
    while (class < ETCH_DTYPE_CLASSES && strcmp(classes[class].name, name) != 0)
        class ++;
    return class;
}

bool etch_dtype_class_is_real(uint32_t class)
{
    return classes[class].real;
}

bool etch_dtype_class_has_blocks(uint32_t class)
{
    return class >= FIRST_COMM_DTYPE;
}

void etch_dtypes_set(etch_dtypes *all, uint32_t class, etch_dtype dtype, uint32_t block)
{
    etch_dtype *const own[] = {&all->act, &all->weights, &all->grads, &all->optim};
    etch_dtype_said *const following[] = {&all->master, &all->moments, &all->grads_comm, &all->weights_comm};
    etch_comm_dtype *const comm_dtypes[] = {&all->dispatch, &all->combine};
    if (class < ETCH_CLASS_MASTER)
        *own[class] = dtype;
    else if (class >= FIRST_COMM_DTYPE)
        *comm_dtypes[class - FIRST_COMM_DTYPE] = (etch_comm_dtype){(etch_dtype_said)dtype + 1, block};
    else
        *following[class - ETCH_CLASS_MASTER] = (etch_dtype_said)dtype + 1;
}

etch_dtypes etch_dtypes_changed(etch_dtypes all, const etch_precision *precision)
{
    for (uint32_t c = 0; precision && c < ETCH_DTYPE_CLASSES; c++)
        if (precision->at[c])
            etch_dtypes_set(&all, c, (etch_dtype)(precision->at[c] - 1), precision->blocks[c]);
    return all;
}

bool etch_precision_is_same(const etch_precision *a, const etch_precision *b)
{
    for (uint32_t c = 0; c < ETCH_DTYPE_CLASSES; c++)
        if ((a ? a->at[c] : 0) != (b ? b->at[c] : 0) || (a ? a->blocks[c] : 0) != (b ? b->blocks[c] : 0))
            return false;
    return true;
}

etch_dtype etch_dtype_or(etch_dtype_said said, etch_dtype usual)
{
    return said ? (etch_dtype)(said - 1) : usual;
}
