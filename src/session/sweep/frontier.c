/* The frontier of several variables: answers that no other is better than. */
#include "session/sweep/solve_int.h"

/* What is better of a variable. */
typedef enum wish { WISH_EQUAL, WISH_LARGE, WISH_SMALL, WISH_UNKNOWN } wish;

static wish turned(wish w)
{
    return w == WISH_LARGE ? WISH_SMALL : w == WISH_SMALL ? WISH_LARGE : w;
}

/* Do two rows differ in this variable alone, but for the last one? */
static bool differ_in(etch_arena *arena, const etch_frontier_row *a, const etch_frontier_row *b,
                      uint32_t variable, uint32_t names)
{
    for (uint32_t i = 0; i + 1 < names; i++)
        if ((etch_exact_compare(arena, a->values[i], b->values[i]) != 0) != (i == variable))
            return false;
    return true;
}

/* Where the answers fall as a variable grows, one pays for the other, and as much of it as there is to have
 * is wanted; where they rise, as little. */
static wish wish_of(etch_arena *arena, const etch_frontier_row *rows, uint32_t count, uint32_t variable,
                    uint32_t names, wish last)
{
    bool rises = false, falls = false;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++) {
            if (!differ_in(arena, &rows[i], &rows[k], variable, names))
                continue;
            const int by = etch_exact_compare(arena, rows[i].values[variable], rows[k].values[variable]);
            const int to = etch_exact_compare(arena, rows[i].values[names - 1], rows[k].values[names - 1]);
            rises = rises || by * to > 0;
            falls = falls || by * to < 0;
        }
    return rises && falls ? WISH_UNKNOWN : falls ? last : rises ? turned(last) : WISH_EQUAL;
}

static bool is_better(etch_arena *arena, const etch_frontier_row *a, const etch_frontier_row *b,
                      const wish *wishes, uint32_t names)
{
    bool better = false;
    for (uint32_t i = 0; i < names; i++) {
        const int order = etch_exact_compare(arena, a->values[i], b->values[i]);
        if (order == 0)
            continue;
        if (wishes[i] != WISH_LARGE && wishes[i] != WISH_SMALL)
            return false;
        if ((order > 0) != (wishes[i] == WISH_LARGE))
            return false;
        better = true;
    }
    return better;
}

void etch_frontier(etch_arena *arena, etch_frontier_row *rows, uint32_t *count, uint32_t names)
{
    wish *wishes = ETCH_NEW_ARRAY(arena, names, wish);
    bool *worse = ETCH_NEW_ARRAY(arena, *count, bool);
    for (uint32_t i = 0; i < *count; i++)
        if (rows[i].row.kind != rows[0].row.kind || !rows[i].row.answer ||
            (rows[i].row.kind != ETCH_SOLUTION_LARGEST && rows[i].row.kind != ETCH_SOLUTION_LEAST))
            return;
    if (*count == 0)
        return;
    wishes[names - 1] = rows[0].row.kind == ETCH_SOLUTION_LARGEST ? WISH_LARGE : WISH_SMALL;
    for (uint32_t i = 0; i + 1 < names; i++)
        wishes[i] = wish_of(arena, rows, *count, i, names, wishes[names - 1]);
    for (uint32_t i = 0; i < *count; i++)
        for (uint32_t k = 0; k < *count && !worse[i]; k++)
            worse[i] = is_better(arena, &rows[k], &rows[i], wishes, names);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (!worse[i])
            rows[kept++] = rows[i];
    *count = kept;
}
