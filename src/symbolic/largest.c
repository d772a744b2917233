/* The largest of many expressions. Most pairs are neither way round for all values; a table of values at a
 * few points says so for each, where a proof would have to be looked for in vain. */
#include "symbolic/symbolic_int.h"

enum { POINTS = 96 };

/* More arguments than that are many: those that need no long proof are looked for. What is beyond the other
 * is added to the max one by one. */
enum { MANY = 64, MOST_AT_ONCE = 256 };

/* An argument that is never larger than one of so many others is left out. */
enum { MOST_COVERING = 8 };

/* What it takes to add and compare values. */
enum { WORK_OF_MEAN = 3 };

/* What an expression is at points. */
typedef struct row {
    etch_expr expr;
    /* for which points: see `table` */
    uint32_t made;
    enum { NOT_YET, DEFINED, UNDEFINED } state[POINTS];
    sym_coef value[POINTS];
} row;

typedef ETCH_VEC(row *) row_list;

typedef struct table {
    etch_sym *sym;
    /* for which there are points */
    uint32_t vars, epoch;
    /* how often others were made: proofs make variables, and points have values of all */
    uint32_t made;
} table;

/* NULL: there are no more. */
static const sym_coef *point_at(table *t, uint32_t i)
{
    etch_sym *sym = t->sym;
    if (t->vars != sym->vars.count || t->epoch != sym->epoch) {
        t->vars = sym->vars.count;
        t->epoch = sym->epoch;
        t->made++;
    }
    return i < POINTS ? sym_point(sym, i) : NULL;
}

/* The value at the i-th point; NULL: it has none. */
static const sym_coef *value_at(const table *t, row *r, uint32_t i, const sym_coef *point)
{
    if (r->made != t->made)
        for (uint32_t k = 0; k < POINTS; k++)
            r->state[k] = NOT_YET;
    r->made = t->made;
    if (r->state[i] == NOT_YET)
        r->state[i] = sym_eval(t->sym, r->expr, point, &r->value[i]) ? DEFINED : UNDEFINED;
    return r->state[i] == DEFINED ? &r->value[i] : NULL;
}

/* Is r, at one of the points, larger than all of the others? */
static bool exceeds_somewhere(table *t, row *r, row *const *others, uint32_t count)
{
    const sym_coef *point;
    for (uint32_t i = 0; (point = point_at(t, i)); i++) {
        const sym_coef *value = value_at(t, r, i, point);
        bool exceeds = value != NULL;
        for (uint32_t k = 0; exceeds && k < count; k++) {
            const sym_coef *other = value_at(t, others[k], i, point);
            sym_count_work(t->sym, 1);
            exceeds = other && sym_coef_compare(*value, *other) > 0;
        }
        if (exceeds)
            return true;
    }
    return false;
}

static bool at_least(table *t, row *a, row *b)
{
    if (exceeds_somewhere(t, b, &a, 1))
        return false;
    const etch_expr above = sym_sub(t->sym, a->expr, b->expr);
    return sym_is_nonnegative(t->sym, above) || sym_holds_by_remainders(t->sym, above, sym_is_nonnegative);
}

/* Adds a row to those of which none is known to be at most another. */
static void add_candidate(table *t, row_list *list, row *r)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i]->expr == r->expr || at_least(t, list->at[i], r))
            return;
    for (uint32_t i = 0; i < list->count; i++)
        if (!at_least(t, r, list->at[i]))
            list->at[left++] = list->at[i];
    list->count = left;
    ETCH_PUSH(t->sym->arena, list, r);
}

static etch_expr max_of_rows(etch_sym *sym, row *const *rows, uint32_t count)
{
    sym_scratch_mark mark = sym_scratch_top(sym);
    etch_expr *args = sym_scratch_take(sym, count, sizeof *args);
    for (uint32_t i = 0; i < count; i++)
        args[i] = rows[i]->expr;
    const etch_expr max = sym_max(sym, count, args);
    sym_scratch_release(sym, mark);
    return max;
}

/* Is r never larger than the largest of the others? A proof takes as many cases as there are others, and is
 * looked for among few. */
static bool is_covered(table *t, row *r, row *const *others, uint32_t count)
{
    if (count < 2 || count > MOST_COVERING || exceeds_somewhere(t, r, others, count))
        return false;
    const etch_expr max = max_of_rows(t->sym, others, count);
    return sym_is_nonnegative(t->sym, sym_sub(t->sym, max, r->expr));
}

/* Is 2*r <= a + b, so that r is at most the larger of them? Points say no of most. */
static bool is_below_mean(table *t, row *r, row *a, row *b)
{
    etch_sym *sym = t->sym;
    const sym_coef *point;
    for (uint32_t i = 0; (point = point_at(t, i)); i++) {
        const sym_coef *middle = value_at(t, r, i, point), *one = value_at(t, a, i, point);
        const sym_coef *other = value_at(t, b, i, point);
        sym_count_work(sym, WORK_OF_MEAN);
        if (middle && one && other &&
            sym_coef_compare(sym_coef_add(sym, *one, *other), sym_coef_add(sym, *middle, *middle)) < 0)
            return false;
    }
    const etch_expr both = sym_add(sym, a->expr, b->expr);
    return sym_is_nonnegative(sym, sym_sub(sym, both, sym_add(sym, r->expr, r->expr)));
}

/* Of the list: is r below the mean of two others? */
static bool is_below_some_mean(table *t, row *r, const row_list *list)
{
    for (uint32_t i = 1; i < list->count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (list->at[i] != r && list->at[k] != r && is_below_mean(t, r, list->at[i], list->at[k]))
                return true;
    return false;
}

/* Drops rows that are never larger than the largest of others: of few those before them, of many any two. */
static void drop_covered(table *t, row_list *list, bool many)
{
    for (uint32_t i = 0; i < list->count;) {
        if (many ? !is_below_some_mean(t, list->at[i], list) : !is_covered(t, list->at[i], list->at, i)) {
            i++;
            continue;
        }
        for (uint32_t k = i + 1; k < list->count; k++)
            list->at[k - 1] = list->at[k];
        list->count--;
    }
}

/* False: one is undefined. */
static bool list_candidates(table *t, uint32_t count, const etch_expr *args, row_list *list)
{
    for (uint32_t i = 0; i < count; i++) {
        row *r = ETCH_NEW(t->sym->arena, row);
        r->expr = sym_refresh(t->sym, args[i]);
        if (!r->expr)
            return false;
        add_candidate(t, list, r);
    }
    return true;
}

static etch_expr covered_max(etch_sym *sym, uint32_t count, const etch_expr *args)
{
    table t = {.sym = sym};
    row_list list = {0};
    if (count > MANY || !list_candidates(&t, count, args, &list))
        return sym_max(sym, count, args);
    drop_covered(&t, &list, true);
    return max_of_rows(sym, list.at, list.count);
}

etch_expr etch_remade(etch_sym *sym, etch_expr a)
{
    return sym_rebuild(sym, a, covered_max);
}

etch_expr etch_max_of(etch_sym *sym, uint32_t count, const etch_expr *args)
{
    table t = {.sym = sym};
    row_list list = {0};
    if (!list_candidates(&t, count, args, &list))
        return NULL;
    drop_covered(&t, &list, list.count > MANY);
    uint32_t at = list.count < MOST_AT_ONCE ? list.count : MOST_AT_ONCE;
    etch_expr max = max_of_rows(sym, list.at, at);
    for (; at < list.count; at++)
        max = sym_max(sym, 2, (etch_expr[]){max, list.at[at]->expr});
    return max;
}
