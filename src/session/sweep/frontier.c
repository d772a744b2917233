/* The frontier of several variables: answers that no other is better than. */
#include "session/sweep/solve_int.h"

#include <stdlib.h>
#include <string.h>

/* What is better of a variable. */
typedef enum wish { WISH_EQUAL, WISH_LARGE, WISH_SMALL, WISH_UNKNOWN } wish;

static wish turned(wish w)
{
    return w == WISH_LARGE ? WISH_SMALL : w == WISH_SMALL ? WISH_LARGE : w;
}

/* ---- order --------------------------------------------------------------------------------------------- */

/* Rows by number, and the variables that they are compared by, one after the other. */
typedef struct sorting {
    /* for numbers that are no words */
    etch_arena *arena;
    const etch_frontier_row *rows;
    uint32_t *variables, count;
    /* by variable of the list: the large ones first */
    bool *falls;
} sorting;

static int compare_in(const sorting *s, uint32_t a, uint32_t b, uint32_t variable)
{
    return etch_exact_compare(s->arena, s->rows[a].values[variable], s->rows[b].values[variable]);
}

static int compare(const sorting *s, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const int order = compare_in(s, a, b, s->variables[i]);
        if (order != 0)
            return s->falls[i] ? -order : order;
    }
    return a < b ? -1 : a > b;
}

/* Merges two halves of `at` that are in order. */
static void merge(const sorting *s, uint32_t *at, uint32_t *spare, uint32_t count)
{
    const uint32_t middle = count / 2;
    uint32_t left = 0, right = middle;
    for (uint32_t i = 0; i < count; i++) {
        const bool from_left = right == count || (left < middle && compare(s, at[left], at[right]) < 0);
        spare[i] = at[from_left ? left++ : right++];
    }
    memcpy(at, spare, count * sizeof *at);
}

/* As deep as the count has bits. */
static void sort(const sorting *s, uint32_t *at, uint32_t *spare, uint32_t count)
{
    if (count < 2)
        return;
    sort(s, at, spare, count / 2);
    sort(s, at + count / 2, spare, count - count / 2);
    merge(s, at, spare, count);
}

static uint32_t *numbers_up_to(etch_arena *arena, uint32_t count)
{
    uint32_t *all = ETCH_NEW_ARRAY(arena, count, uint32_t);
    for (uint32_t i = 0; i < count; i++)
        all[i] = i;
    return all;
}

/* ---- wishes -------------------------------------------------------------------------------------------- */

/* Where the answers fall as a variable grows, one pays for the other, and as much of it as there is to have
 * is wanted; where they rise, as little. Of rows that differ in this variable alone, in its order, neighbours
 * say it for all. */
static wish wish_of(etch_arena *arena, const etch_frontier_row *rows, uint32_t count, uint32_t variable,
                    uint32_t names, wish last)
{
    bool rises = false, falls = false;
    sorting s = {arena, rows, ETCH_NEW_ARRAY(arena, names, uint32_t), 0, ETCH_NEW_ARRAY(arena, names, bool)};
    for (uint32_t i = 0; i + 1 < names; i++)
        if (i != variable)
            s.variables[s.count++] = i;
    const uint32_t others = s.count;
    s.variables[s.count++] = variable;
    uint32_t *at = numbers_up_to(arena, count);
    sort(&s, at, ETCH_NEW_ARRAY(arena, count, uint32_t), count);
    for (uint32_t i = 1; i < count; i++) {
        bool same = true;
        for (uint32_t k = 0; same && k < others; k++)
            same = compare_in(&s, at[i - 1], at[i], s.variables[k]) == 0;
        const int to = same ? compare_in(&s, at[i], at[i - 1], names - 1) : 0;
        rises = rises || to > 0;
        falls = falls || to < 0;
    }
    return rises && falls ? WISH_UNKNOWN : falls ? last : rises ? turned(last) : WISH_EQUAL;
}

/* ---- the frontier -------------------------------------------------------------------------------------- */

/* Is the first at least as good in what is wanted of the listed variables from `from` on? */
static bool is_as_good(const sorting *s, uint32_t a, uint32_t b, uint32_t from)
{
    for (uint32_t i = from; i < s->count; i++) {
        const int order = compare_in(s, a, b, s->variables[i]);
        if (s->falls[i] ? order < 0 : order > 0)
            return false;
    }
    return true;
}

/* Do two rows agree in the variables of which nothing is wanted, and in all? */
static bool agree(const sorting *s, uint32_t a, uint32_t b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (compare_in(s, a, b, s->variables[i]) != 0)
            return false;
    return true;
}

/* Rows in order, the better ones first: a row can be worse only than one before it, and than one of those
 * that are kept. Of two wanted variables the latest of these is the one to ask. */
static void mark_worse(const sorting *s, const uint32_t *at, uint32_t count, uint32_t equal, bool *worse)
{
    uint32_t *kept = ETCH_NEW_ARRAY(s->arena, count, uint32_t), first = 0, found = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (found > first && !agree(s, kept[found - 1], at[i], equal))
            first = found; /* another group */
        if (s->count - equal <= 2 && found > first)
            worse[at[i]] =
                is_as_good(s, kept[found - 1], at[i], equal) && !agree(s, kept[found - 1], at[i], s->count);
        for (uint32_t k = first; s->count - equal > 2 && k < found && !worse[at[i]]; k++)
            worse[at[i]] = is_as_good(s, kept[k], at[i], equal) && !agree(s, kept[k], at[i], s->count);
        if (!worse[at[i]])
            kept[found++] = at[i];
    }
}

/* Variables of which nothing is wanted first, then the others. */
static uint32_t order_variables(sorting *s, const wish *wishes, uint32_t names)
{
    for (uint32_t i = 0; i < names; i++)
        if (wishes[i] != WISH_LARGE && wishes[i] != WISH_SMALL)
            s->variables[s->count++] = i;
    const uint32_t equal = s->count;
    for (uint32_t i = 0; i < names; i++)
        if (wishes[i] == WISH_LARGE || wishes[i] == WISH_SMALL) {
            s->falls[s->count] = wishes[i] == WISH_LARGE;
            s->variables[s->count++] = i;
        }
    return equal;
}

static void find(etch_arena *arena, etch_frontier_row *rows, uint32_t *count, uint32_t names)
{
    wish *wishes = ETCH_NEW_ARRAY(arena, names, wish);
    bool *worse = ETCH_NEW_ARRAY(arena, *count, bool);
    uint32_t *at = numbers_up_to(arena, *count);
    sorting s = {arena, rows, ETCH_NEW_ARRAY(arena, names, uint32_t), 0, ETCH_NEW_ARRAY(arena, names, bool)};
    wishes[names - 1] = rows[0].row.kind == ETCH_SOLUTION_LARGEST ? WISH_LARGE : WISH_SMALL;
    for (uint32_t i = 0; i + 1 < names; i++)
        wishes[i] = wish_of(arena, rows, *count, i, names, wishes[names - 1]);
    const uint32_t equal = order_variables(&s, wishes, names);
    sort(&s, at, ETCH_NEW_ARRAY(arena, *count, uint32_t), *count);
    mark_worse(&s, at, *count, equal, worse);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (!worse[i])
            rows[kept++] = rows[i];
    *count = kept;
}

void etch_frontier(etch_arena *arena, etch_frontier_row *rows, uint32_t *count, uint32_t names)
{
    for (uint32_t i = 0; i < *count; i++)
        if (rows[i].row.kind != rows[0].row.kind || !rows[i].row.answer ||
            (rows[i].row.kind != ETCH_SOLUTION_LARGEST && rows[i].row.kind != ETCH_SOLUTION_LEAST))
            return;
    if (*count == 0)
        return;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(arena));
    find(scratch, rows, count, names);
    etch_arena_free(scratch);
}
