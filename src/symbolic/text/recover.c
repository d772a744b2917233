/* The summands of an expression. What construction rewrote is recovered where it can be seen: with k terms
 * of the sum around it,
 *
 *     k*N - k*n*floor(N/n)      is  k*(N % n)            c*max{0, d} + c*T    is  c*max(T + d, T)
 *     floor((N + n - 1)/n)      is  ceil(N/n)            -c*max{0, d} + c*T   is  c*min(T - d, T)
 *     c*max{0, x + 1} - c*max{0, x}  is  c*[x >= 0]      2*c*max{0, d} - c*d  is  c*abs(d)
 */
#include <stdlib.h>
#include <string.h>

#include "symbolic/text/text_int.h"

/* The sum under way: what is left of its terms, by decreasing monomial, and what was recovered. */
typedef struct summands {
    etch_sym *sym;
    /* coefficients become 0 when used up */
    sym_term *left;
    uint32_t count;
    sym_items items;
    const sym_memo *names;
    const sym_rules *rules;
} summands;

/* ---- finding terms of the sum -------------------------------------------------------------------------- */

static sym_term *find(const summands *s, const sym_mono *mono)
{
    uint32_t low = 0, high = s->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = sym_mono_compare(s->left[middle].mono, mono);
        if (order == 0)
            return &s->left[middle];
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Does what is left include coef * mono, of the same sign and no smaller? */
static bool includes(const summands *s, const sym_mono *mono, sym_coef coef)
{
    const sym_term *term = find(s, mono);
    int sign = sym_coef_sign(coef);
    if (!term || sym_coef_sign(term->coef) != sign)
        return false;
    return sym_coef_compare(term->coef, coef) * sign >= 0;
}

static bool includes_all(const summands *s, etch_expr a, const sym_mono *mono, sym_coef coef)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (!includes(s, sym_mono_mul(s->sym, a->terms[i].mono, mono),
                      sym_coef_mul(s->sym, a->terms[i].coef, coef)))
            return false;
    return true;
}

static void take_all(summands *s, etch_expr a, const sym_mono *mono, sym_coef coef)
{
    for (uint32_t i = 0; i < a->count; i++) {
        sym_term *term = find(s, sym_mono_mul(s->sym, a->terms[i].mono, mono));
        term->coef = sym_coef_sub(s->sym, term->coef, sym_coef_mul(s->sym, a->terms[i].coef, coef));
    }
}

static sym_item *add_item(summands *s, const sym_mono *mono, sym_coef coef, sym_form form)
{
    sym_item *it = &s->items.at[s->items.count++];
    *it = (sym_item){
        .degree = mono->degree + (form != ETCH_SYM_PLAIN), .form = form, .coef = coef, .mono = mono};
    return it;
}

static void set_args(summands *s, sym_item *it, const etch_expr *args, uint32_t count)
{
    etch_expr *kept = sym_scratch_take(s->sym, count, sizeof *kept);
    memcpy(kept, args, count * sizeof *kept);
    it->args = kept;
    it->count = count;
}

/* ---- recovering ---------------------------------------------------------------------------------------- */

sym_term sym_denominator(etch_sym *sym, etch_expr a)
{
    sym_coef unit_fraction = ETCH_SYM_ONE;
    for (uint32_t i = 0; i < a->count; i++)
        unit_fraction =
            sym_coef_gcd(sym, unit_fraction, sym_coef_inv(sym, sym_coef_denominator(sym, a->terms[i].coef)));
    return (sym_term){sym_mono_pow(sym, sym_mono_below(sym, a), -1), sym_coef_inv(sym, unit_fraction)};
}

static bool recover_mod(summands *s, const sym_term *term, const sym_mono *factor, const sym_atom *atom)
{
    etch_sym *sym = s->sym;
    sym_term n = sym_denominator(sym, atom->args[0]);
    if ((atom->args[0]->flags & ETCH_SYM_HAS_RECIP) || s->rules->mods == ETCH_SYM_NO_MODS ||
        (s->rules->mods == ETCH_SYM_MODS_BY_NUMBERS && n.mono->count > 0))
        return false;
    const sym_mono *mono = sym_mono_div(sym, factor, n.mono);
    sym_coef k = sym_coef_neg(sym, sym_coef_div(sym, term->coef, n.coef));
    etch_expr args[] = {sym_scale(sym, atom->args[0], n.mono, n.coef), sym_monomial(sym, n.mono, n.coef)};
    if (sym_is_constant(args[1]) && args[1] == sym->one)
        return false;
    if (!includes_all(s, args[0], mono, k))
        return false;
    take_all(s, args[0], mono, k);
    set_args(s, add_item(s, mono, k, ETCH_SYM_MOD), args, 2);
    return true;
}

/* floor(F) = ceil(G) + k with G = F + 1/n less its integer part: worth it when G is shorter than F. */
static bool recover_ceil(summands *s, const sym_term *term, const sym_mono *factor, const sym_atom *atom)
{
    etch_sym *sym = s->sym;
    etch_expr grid, F = atom->args[0];
    if (!sym_grid(sym, F, &grid))
        return false;
    etch_expr G = sym_add(sym, F, sym_div(sym, sym->one, grid));
    sym_coef constant = ETCH_SYM_ZERO;
    for (uint32_t i = 0; i < G->count; i++)
        if (G->terms[i].mono->count == 0)
            constant = sym_coef_floor(sym, G->terms[i].coef);
    G = sym_sub(sym, G, sym_constant(sym, constant));
    if (G->count >= F->count)
        return false;
    etch_expr ceiling = sym_neg(sym, sym_floor(sym, sym_neg(sym, G)));
    etch_expr rest = sym_sub(sym, ceiling, atom->self); /* to be taken from the sum */
    if (!sym_is_constant(rest) || !includes_all(s, rest, factor, term->coef))
        return false;
    take_all(s, rest, factor, term->coef);
    set_args(s, add_item(s, factor, term->coef, ETCH_SYM_CEIL), &G, 1);
    return true;
}

/* [x >= 0] is made of max{0, x + 1} and max{0, x}, or of max{0, -x} and max{0, -x - 1}: `atom` is one of
 * these. */
static bool recover_bracket(summands *s, const sym_term *term, const sym_mono *factor, const sym_atom *atom)
{
    etch_sym *sym = s->sym;
    if (atom->count != 2 || !sym_is_integer(sym, atom->args[1]))
        return false;
    etch_expr d = atom->args[1], opposite = sym_neg(sym, d);
    etch_expr candidates[] = {sym_add_int(sym, d, -1), d, opposite, sym_add_int(sym, opposite, -1)};
    for (uint32_t i = 0; i < 4; i++) {
        etch_expr bracket = etch_iverson(sym, candidates[i]);
        for (uint32_t j = 0; bracket && j < bracket->count; j++) {
            if (bracket->terms[j].mono != atom->self->terms[0].mono)
                continue;
            sym_coef coef = sym_coef_div(sym, term->coef, bracket->terms[j].coef);
            if (!includes_all(s, bracket, factor, coef))
                continue;
            take_all(s, bracket, factor, coef);
            set_args(s, add_item(s, factor, coef, ETCH_SYM_BRACKET), &candidates[i], 1);
            return true;
        }
    }
    return false;
}

static bool recover_abs(summands *s, const sym_term *term, const sym_mono *factor, const sym_atom *atom)
{
    etch_sym *sym = s->sym;
    sym_coef half = sym_coef_div(sym, term->coef, (sym_coef){.num = 2, .den = 1});
    if (atom->count != 2 || !includes_all(s, atom->args[1], factor, sym_coef_neg(sym, half)))
        return false;
    etch_expr both[] = {atom->args[1], sym_neg(sym, atom->args[1])};
    if (sym_add(sym, sym_max(sym, 2, both), atom->args[1]) !=
        sym_scale(sym, atom->self, sym->unit, sym_coef_of(sym, 2, 1)))
        return false;
    take_all(s, atom->args[1], factor, sym_coef_neg(sym, half));
    set_args(s, add_item(s, factor, half, ETCH_SYM_ABSOLUTE), &atom->args[1], 1);
    return true;
}

/* The coefficient of `mono` that all arguments but the 0 share; 0 for none. */
static sym_coef shared_coefficient(const sym_atom *atom, const sym_mono *mono)
{
    sym_coef shared = ETCH_SYM_ZERO;
    for (uint32_t i = 1; i < atom->count; i++) {
        sym_coef coef = sym_coefficient(atom->args[i], mono);
        if (i > 1 && !sym_coef_equal(coef, shared))
            return ETCH_SYM_ZERO;
        shared = coef;
    }
    return shared;
}

/* The terms T that can move into c*max{0, d..}: as c*max(T + d.., T) those of -d that the sum has as c*T;
 * as -c*min(T - d.., T) those of d that it has as -c*T. */
static etch_expr movable_terms(summands *s, const sym_term *term, const sym_mono *factor,
                               const sym_atom *atom, sym_form form)
{
    etch_sym *sym = s->sym;
    sym_coef scale = form == ETCH_SYM_MAXIMUM ? term->coef : sym_coef_neg(sym, term->coef);
    sym_terms *moved = sym_terms_new(sym);
    for (uint32_t i = 0; i < atom->args[1]->count; i++) {
        const sym_mono *mono = atom->args[1]->terms[i].mono;
        sym_coef coef = shared_coefficient(atom, mono);
        if (form == ETCH_SYM_MAXIMUM)
            coef = sym_coef_neg(sym, coef);
        const sym_mono *around = sym_mono_mul(sym, mono, factor);
        if (sym_coef_sign(coef) > 0 && includes(s, around, sym_coef_mul(sym, coef, scale)))
            sym_terms_push(sym, moved, mono, coef);
    }
    return sym_terms_finish(sym, moved);
}

/* Moves T. What construction would not bring back to the same form is left alone. */
static bool move_terms(summands *s, const sym_term *term, const sym_mono *factor, const sym_atom *atom,
                       sym_form form, etch_expr T)
{
    etch_sym *sym = s->sym;
    bool is_min = form == ETCH_SYM_MINIMUM;
    etch_expr *args = sym_scratch_take(sym, atom->count, sizeof *args);
    for (uint32_t i = 0; i < atom->count; i++)
        args[i] = is_min ? sym_sub(sym, T, atom->args[i]) : sym_add(sym, T, atom->args[atom->count - 1 - i]);
    etch_expr expected = is_min ? sym_sub(sym, T, atom->self) : sym_add(sym, T, atom->self);
    if ((is_min ? sym_min(sym, atom->count, args) : sym_max(sym, atom->count, args)) != expected)
        return false;
    sym_coef coef = is_min ? sym_coef_neg(sym, term->coef) : term->coef;
    take_all(s, T, factor, coef);
    sym_item *it = add_item(s, factor, coef, form);
    it->args = args;
    it->count = atom->count;
    return true;
}

static bool recover_max(summands *s, const sym_term *term, const sym_mono *factor, const sym_atom *atom)
{
    etch_expr in_max = movable_terms(s, term, factor, atom, ETCH_SYM_MAXIMUM);
    etch_expr in_min = movable_terms(s, term, factor, atom, ETCH_SYM_MINIMUM);
    if (in_min->count > in_max->count && move_terms(s, term, factor, atom, ETCH_SYM_MINIMUM, in_min))
        return true;
    return move_terms(s, term, factor, atom, ETCH_SYM_MAXIMUM, in_max) ||
           move_terms(s, term, factor, atom, ETCH_SYM_MAXIMUM, s->sym->zero);
}

/* The floor or max of a term, when it has one only and to the power 1; else NULL. */
static sym_atom *function_of(const sym_mono *mono)
{
    sym_atom *found = NULL;
    for (uint32_t i = 0; i < mono->count; i++) {
        sym_kind kind = mono->at[i].atom->kind;
        if (kind != ETCH_SYM_FLOOR && kind != ETCH_SYM_MAX)
            continue;
        if (found || mono->at[i].exp != 1)
            return NULL;
        found = mono->at[i].atom;
    }
    return found;
}

/* Items stand where the term stood that they were recovered from. */
static void recover(summands *s, uint32_t i)
{
    sym_term term = s->left[i];
    sym_atom *atom = function_of(term.mono);
    if (!atom || sym_coef_is_zero(term.coef) || (s->names && sym_memo_get(s->names, atom)))
        return;
    const sym_mono *factor = sym_mono_div(s->sym, term.mono, sym_mono_of(s->sym, atom, 1));
    bool done = true;
    if (atom->kind == ETCH_SYM_FLOOR)
        done = (recover_mod(s, &term, factor, atom)) || recover_ceil(s, &term, factor, atom);
    else
        done = (s->rules->brackets && recover_bracket(s, &term, factor, atom)) ||
               recover_abs(s, &term, factor, atom) || recover_max(s, &term, factor, atom);
    if (!done)
        return;
    s->left[i].coef = ETCH_SYM_ZERO;
    s->items.at[s->items.count - 1].rank = i;
}

/* ---- order --------------------------------------------------------------------------------------------- */

static int by_degree(const void *a, const void *b)
{
    const sym_item *x = a, *y = b;
    if (x->degree != y->degree)
        return x->degree > y->degree ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Distributes items, already in order of rank, by decreasing degree. False: degrees are too far apart. */
static bool distribute(const sym_items *items, sym_item *sorted)
{
    enum { RANGE = 128 };
    uint32_t start[RANGE + 1] = {0};
    int64_t most = INT64_MIN, least = INT64_MAX;
    for (uint32_t i = 0; i < items->count; i++) {
        most = items->at[i].degree > most ? items->at[i].degree : most;
        least = items->at[i].degree < least ? items->at[i].degree : least;
    }
    if (items->count == 0 || most - least >= RANGE)
        return false;
    for (uint32_t i = 0; i < items->count; i++)
        start[most - items->at[i].degree + 1]++;
    for (int64_t d = 0; d < most - least; d++)
        start[d + 1] += start[d];
    for (uint32_t i = 0; i < items->count; i++)
        sorted[start[most - items->at[i].degree]++] = items->at[i];
    return true;
}

/* By decreasing degree, then by rank. There are ranks below `ranks`, each once, and the constant's. */
static sym_items in_order(etch_sym *sym, const sym_items *items, uint32_t ranks)
{
    sym_items ranked = {sym_scratch_take(sym, items->count + 1, sizeof *ranked.at), 0};
    uint32_t *place = sym_scratch_take(sym, ranks + 1, sizeof *place); /* in `items`, from 1 */
    for (uint32_t i = 0; i < items->count; i++)
        place[items->at[i].rank < ranks ? items->at[i].rank : ranks] = i + 1;
    for (uint32_t rank = 0; rank <= ranks; rank++)
        if (place[rank])
            ranked.at[ranked.count++] = items->at[place[rank] - 1];
    if (distribute(&ranked, items->at))
        return *items;
    qsort(ranked.at, ranked.count, sizeof *ranked.at, by_degree);
    return ranked;
}

static summands summands_of(etch_sym *sym, etch_expr a)
{
    summands s = {.sym = sym, .count = a->count};
    s.left = sym_scratch_take(sym, a->count + 1, sizeof *s.left);
    s.items.at = sym_scratch_take(sym, a->count + 1, sizeof *s.items.at);
    if (a->count)
        memcpy(s.left, a->terms, a->count * sizeof *s.left);
    return s;
}

/* Adds what was not used up, and sorts. */
static sym_items finish(summands *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (sym_coef_is_zero(s->left[i].coef))
            continue;
        sym_item *it = add_item(s, s->left[i].mono, s->left[i].coef, ETCH_SYM_PLAIN);
        it->rank = it->mono->count ? i : UINT32_MAX;
    }
    return in_order(s->sym, &s->items, s->count);
}

sym_items sym_items_of(etch_sym *sym, etch_expr a, const sym_memo *names, const sym_rules *rules)
{
    enum { WORK_OF_PLAIN = 4, WORK_OF_OPAQUE = 16 }; /* what is looked for in a term, besides what is made */
    sym_count_work(sym,
                   (uint64_t)(a->flags & ETCH_SYM_HAS_OPAQUE ? WORK_OF_OPAQUE : WORK_OF_PLAIN) * a->count);
    summands s = summands_of(sym, a);
    s.names = names;
    s.rules = rules;
    for (uint32_t i = 0; (a->flags & ETCH_SYM_HAS_OPAQUE) && i < a->count; i++)
        recover(&s, i);
    return finish(&s);
}

sym_items sym_terms_in_order(etch_sym *sym, etch_expr a)
{
    summands s = summands_of(sym, a);
    return finish(&s);
}
