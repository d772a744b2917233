#include "exec_tensor.h"

#include <math.h>
#include <string.h>

/* ---- arrays -------------------------------------------------------------------------------------------- */

void exec_array_add_dim(exec_array *array, const etch_dim *dim, uint32_t first, uint32_t count)
{
    EXEC_REQUIRE(array->rank < EXEC_MAX_RANK);
    array->dims[array->rank] = dim;
    array->first[array->rank] = first;
    array->count[array->rank] = array->held[array->rank] = count;
    array->apart[array->rank] = NULL;
    array->rank++;
}

void exec_array_add_apart(exec_array *array, const etch_dim *dim, const uint32_t *indices, uint32_t count)
{
    EXEC_REQUIRE(count > 0);
    exec_array_add_dim(array, dim, indices[0], count);
    if (indices[count - 1] - indices[0] != count - 1)
        array->apart[array->rank - 1] = indices;
}

void exec_array_add_dim_of(exec_array *array, const exec_array *from, uint32_t i)
{
    exec_array_add_dim(array, from->dims[i], from->first[i], from->count[i]);
    array->held[array->rank - 1] = from->held[i];
    array->apart[array->rank - 1] = from->apart[i];
}

void exec_array_pad(exec_array *array, uint32_t held)
{
    EXEC_REQUIRE(held >= array->count[array->rank - 1]);
    array->held[array->rank - 1] = held;
}

static size_t product(const uint32_t *counts, uint32_t rank)
{
    size_t size = 1;
    for (uint32_t i = 0; i < rank; i++)
        size *= counts[i];
    return size;
}

size_t exec_array_size(const exec_array *array)
{
    return product(array->held, array->rank);
}

size_t exec_array_elements(const exec_array *array)
{
    return product(array->count, array->rank);
}

void exec_array_fill(etch_arena *arena, exec_array *array)
{
    array->size = exec_array_size(array);
    array->at = ETCH_NEW_ARRAY(arena, array->size, double);
}

exec_array *exec_array_less(etch_arena *arena, const exec_array *like, etch_dim *const *less, uint32_t count)
{
    exec_array *array = ETCH_NEW(arena, exec_array);
    for (uint32_t i = 0; i < like->rank; i++) {
        bool gone = false;
        for (uint32_t k = 0; k < count; k++)
            gone = gone || less[k] == like->dims[i];
        if (!gone)
            exec_array_add_dim_of(array, like, i);
    }
    exec_array_fill(arena, array);
    return array;
}

exec_array *exec_array_like(etch_arena *arena, const exec_array *like)
{
    return exec_array_less(arena, like, NULL, 0);
}

int exec_array_find(const exec_array *array, const etch_dim *dim)
{
    for (uint32_t i = 0; i < array->rank; i++)
        if (array->dims[i] == dim)
            return (int)i;
    return -1;
}

uint32_t exec_array_place(const exec_array *array, uint32_t i, uint32_t index)
{
    uint32_t place = index - array->first[i];
    if (index < array->first[i])
        return EXEC_NOWHERE;
    if (array->apart[i])
        for (place = 0; place < array->count[i] && array->apart[i][place] != index;)
            place++;
    return place < array->count[i] ? place : EXEC_NOWHERE;
}

static bool same_indices(const exec_array *a, uint32_t i, const exec_array *b, uint32_t k)
{
    if (a->first[i] != b->first[k] || a->count[i] != b->count[k] || a->held[i] != b->held[k] ||
        !a->apart[i] != !b->apart[k])
        return false;
    return !a->apart[i] || memcmp(a->apart[i], b->apart[k], a->count[i] * sizeof *a->apart[i]) == 0;
}

bool exec_arrays_agree(const exec_array *a, const exec_array *b)
{
    for (uint32_t i = 0; i < a->rank; i++) {
        int k = exec_array_find(b, a->dims[i]);
        if (k >= 0 && !same_indices(a, i, b, (uint32_t)k))
            return false;
    }
    return true;
}

bool exec_arrays_alike(const exec_array *a, const exec_array *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (exec_array_find(b, a->dims[i]) < 0)
            return false;
    return exec_arrays_agree(a, b);
}

double exec_array_largest(const exec_array *array)
{
    double largest = 0;
    for (size_t i = 0; i < array->size; i++)
        largest = fabs(array->at[i]) > largest ? fabs(array->at[i]) : largest;
    return largest;
}

const char *exec_array_text(etch_arena *arena, const exec_array *array)
{
    etch_buf text = {.arena = arena};
    for (uint32_t i = 0; i < array->rank; i++) {
        etch_buf_printf(&text, "%s%s", i ? " " : "", array->dims[i]->name);
        if (!array->apart[i])
            etch_buf_printf(&text, "[%u..%u)", array->first[i], array->first[i] + array->count[i]);
        for (uint32_t k = 0; array->apart[i] && k < array->count[i]; k++)
            etch_buf_printf(&text, "%c%u%s", k ? ' ' : '{', array->apart[i][k],
                            k + 1 < array->count[i] ? "" : "}");
        if (array->held[i] > array->count[i])
            etch_buf_printf(&text, "+%u", array->held[i] - array->count[i]);
    }
    return array->rank ? text.text : "scalar";
}

/* ---- walks --------------------------------------------------------------------------------------------- */

static uint32_t walk_dim(exec_walk *walk, const exec_array *array, uint32_t i)
{
    uint32_t d = 0;
    while (d < walk->rank && walk->dims[d] != array->dims[i])
        d++;
    if (d == walk->rank) {
        EXEC_REQUIRE(walk->rank < EXEC_WALK_DIMS);
        walk->dims[d] = array->dims[i];
        walk->first[d] = array->first[i];
        walk->count[d] = array->count[i];
        walk->apart[d] = array->apart[i];
        walk->rank++;
    }
    return d;
}

exec_walk exec_walk_over(uint32_t count, const exec_array *const *arrays)
{
    EXEC_REQUIRE(count <= EXEC_WALK_ARRAYS);
    exec_walk walk = {.arrays = count};
    for (uint32_t k = 0; k < count; k++) {
        size_t stride = 1;
        for (uint32_t i = arrays[k]->rank; i-- > 0;) {
            walk.stride[walk_dim(&walk, arrays[k], i)][k] = stride;
            stride *= arrays[k]->held[i];
        }
        walk.ended = walk.ended || exec_array_elements(arrays[k]) == 0; /* nothing but padding */
    }
    return walk;
}

bool exec_walk_carry(exec_walk *walk)
{
    if (!walk->begun) {
        walk->begun = true;
        return !walk->ended;
    }
    for (uint32_t d = 0; d < walk->rank && !walk->ended; d++) {
        bool carry = ++walk->index[d] == walk->count[d];
        for (uint32_t k = 0; k < walk->arrays; k++)
            if (carry)
                walk->at[k] -= walk->stride[d][k] * (walk->count[d] - 1);
            else
                walk->at[k] += walk->stride[d][k];
        if (!carry)
            return true;
        walk->index[d] = 0;
    }
    walk->ended = true;
    return false;
}

uint32_t exec_walk_index(const exec_walk *walk, const etch_dim *dim)
{
    for (uint32_t d = 0; d < walk->rank; d++)
        if (walk->dims[d] == dim)
            return walk->apart[d] ? walk->apart[d][walk->index[d]] : walk->first[d] + walk->index[d];
    return 0;
}

double *exec_walk_lookup(const exec_walk *walk, const exec_array *array, const etch_dim *special,
                         uint32_t index)
{
    size_t at = 0;
    for (uint32_t i = 0; i < array->rank; i++) {
        uint32_t here = array->dims[i] == special ? index : exec_walk_index(walk, array->dims[i]);
        uint32_t place = exec_array_place(array, i, here);
        if (place == EXEC_NOWHERE)
            return NULL;
        at = at * array->held[i] + place;
    }
    return &array->at[at];
}
