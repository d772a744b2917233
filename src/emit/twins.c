/* Ranks of equal bytes: those of one variant whose blanks have equal values. */
#include "emit/emit_int.h"

#include <stdlib.h>
#include <string.h>

typedef struct filled {
    /* by blank, those that the program does not use are 0 */
    const uint32_t *values;
    uint32_t blanks, rank;
} filled;

static int by_values(const void *a, const void *b)
{
    const filled *x = a, *y = b;
    for (uint32_t i = 0; i < x->blanks; i++)
        if (x->values[i] != y->values[i])
            return x->values[i] < y->values[i] ? -1 : 1;
    return 0;
}

static int by_values_and_rank(const void *a, const void *b)
{
    const int order = by_values(a, b);
    return order ? order : etch_order(((const filled *)a)->rank, ((const filled *)b)->rank);
}

static int by_rank(const void *a, const void *b)
{
    return etch_order(*(const uint32_t *)a, *(const uint32_t *)b);
}

static int by_first_and_rank(const void *a, const void *b)
{
    const etch_twin *x = a, *y = b;
    const int order = etch_order(x->of, y->of);
    return order ? order : etch_order(x->rank, y->rank);
}

/* The variant's ranks with their values, equal ones beside each other, the smallest rank first. */
static filled *sort_ranks(etch_arena *arena, const etch_job *job, const etch_variant *variant)
{
    const uint32_t blanks = etch_blank_count(job);
    uint32_t *values = ETCH_NEW_ARRAY(arena, (size_t)variant->count * blanks, uint32_t);
    filled *ranks = ETCH_NEW_ARRAY(arena, variant->count, filled);
    for (uint32_t i = 0; i < variant->count; i++, values += blanks) {
        etch_blanks_fill(job, variant->ranks[i], values);
        for (uint32_t k = 0; k < blanks; k++)
            if (variant->widths[k] == 0)
                values[k] = 0;
        ranks[i] = (filled){values, blanks, variant->ranks[i]};
    }
    qsort(ranks, variant->count, sizeof *ranks, by_values_and_rank);
    return ranks;
}

void etch_twins_find(etch_arena *arena, const etch_job *job, etch_variant *variant)
{
    const filled *ranks = sort_ranks(arena, job, variant);
    etch_twin *twins = ETCH_NEW_ARRAY(arena, variant->count, etch_twin);
    uint32_t first = 0, distinct = 0;
    for (uint32_t i = 0; i < variant->count; i++) {
        if (i > 0 && by_values(&ranks[first], &ranks[i]) == 0) {
            twins[variant->twin_count++] = (etch_twin){ranks[i].rank, ranks[first].rank};
            continue;
        }
        first = i;
        variant->ranks[distinct++] = ranks[i].rank;
    }
    variant->count = distinct;
    variant->twins = twins;
    qsort(variant->ranks, distinct, sizeof *variant->ranks, by_rank);
    if (variant->twin_count > 1)
        qsort(twins, variant->twin_count, sizeof *twins, by_first_and_rank);
}
