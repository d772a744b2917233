/* The summands of an expression. What construction rewrote is recovered where that needs fewer symbols: first
 * an atom in all terms that have it, so that one sum does not have it in two ways; a floor then also in
 * single terms. */
#include <stdlib.h>
#include <string.h>

#include "symbolic/text/text_int.h"

/* A view that was taken. */
typedef struct taken {
    const sym_atom *atom;
    sym_view view;
    struct taken *next;
} taken;

/* A sum under way. */
typedef struct summands {
    etch_sym *sym;
    sym_style *style;
    /* atoms of texts among its factors */
    etch_expr sum;
    /* terms of it that are added */
    uint32_t added;
    /* in all terms, in this order */
    taken *first, **last;
    /* terms with the atom at hand */
    uint32_t *in, in_count;
    /* and there may be others with it */
    bool is_single;
} summands;

/* ---- functions of a sum -------------------------------------------------------------------------------- */

static bool is_function(const sym_atom *atom)
{
    return atom->kind == ETCH_SYM_FLOOR || atom->kind == ETCH_SYM_MAX;
}

static int32_t exponent_of(const sym_mono *mono, const sym_atom *atom)
{
    for (uint32_t i = mono->count; i-- > 0 && mono->at[i].atom->kind != ETCH_SYM_VAR;)
        if (mono->at[i].atom == atom)
            return mono->at[i].exp;
    return 0;
}

/* Notes the terms with the atom; false where one has another than a small power of it. */
static bool find_terms(summands *s, const sym_atom *atom)
{
    enum { HIGHEST = 3 };
    s->in_count = 0;
    for (uint32_t i = 0; i < s->sum->count; i++) {
        int32_t exp = exponent_of(s->sum->terms[i].mono, atom);
        if (exp < 0 || exp > HIGHEST)
            return false;
        if (exp > 0)
            s->in[s->in_count++] = i;
    }
    return s->in_count > 0;
}

static int by_label(const void *a, const void *b)
{
    const sym_atom *const *x = a, *const *y = b;
    return (*x)->label < (*y)->label ? 1 : (*x)->label > (*y)->label ? -1 : 0;
}

/* The functions of the sum, each once, in decreasing order: a max before the floors in it. */
static sym_atom **functions_of(const summands *s, uint32_t *count)
{
    uint32_t most = 0, found = 0;
    for (uint32_t i = 0; i < s->sum->count; i++)
        most += s->sum->terms[i].mono->count;
    sym_atom **atoms = sym_scratch_take(s->sym, most + 1, sizeof *atoms);
    for (uint32_t i = 0; i < s->sum->count; i++) {
        const sym_mono *mono = s->sum->terms[i].mono;
        for (uint32_t j = mono->count; j-- > 0 && mono->at[j].atom->kind != ETCH_SYM_VAR;)
            if (is_function(mono->at[j].atom) &&
                !(s->style->names && sym_memo_get(s->style->names, mono->at[j].atom)))
                atoms[found++] = mono->at[j].atom;
    }
    qsort(atoms, found, sizeof *atoms, by_label);
    *count = 0;
    for (uint32_t i = 0; i < found; i++)
        if (i == 0 || atoms[i] != atoms[*count - 1])
            atoms[(*count)++] = atoms[i];
    return atoms;
}

/* ---- rewriting ----------------------------------------------------------------------------------------- */

/* What a view changes in term `i`: `out` are terms to be added. */
static void add_changes(const summands *s, uint32_t i, const sym_atom *atom, const sym_view *view,
                        sym_terms *out)
{
    etch_sym *sym = s->sym;
    const sym_term *term = &s->sum->terms[i];
    const int32_t exp = exponent_of(term->mono, atom);
    const sym_mono *power = sym_mono_pow(sym, atom->self->terms[0].mono, exp);
    const sym_mono *factor = sym_mono_div(sym, term->mono, power);
    etch_expr value = view->value;
    for (int32_t k = 1; k < exp; k++)
        value = sym_mul_plain(sym, value, view->value);
    sym_terms_push(sym, out, term->mono, sym_coef_neg(sym, term->coef));
    for (uint32_t k = 0; k < value->count; k++)
        sym_terms_push(sym, out, sym_mono_mul(sym, factor, value->terms[k].mono),
                       sym_coef_mul(sym, term->coef, value->terms[k].coef));
}

static int by_id(const void *a, const void *b)
{
    const sym_term *x = a, *y = b;
    return x->mono->id < y->mono->id ? -1 : x->mono->id > y->mono->id;
}

/* Twice how many symbols fewer the sum has with these changes, and 1 more where it begins with a minus no
 * more; not above 0 where it has more terms, or, if it is to be `whole`, where a term with variables stays
 * with another number. */
static int64_t saved_by(const summands *s, sym_terms *changes, bool whole)
{
    etch_sym *sym = s->sym;
    int64_t saved = 0, terms = 0, added = s->added;
    bool stays = false;
    qsort(changes->at, changes->count, sizeof *changes->at, by_id);
    for (uint32_t i = 0, next; i < changes->count; i = next) {
        const sym_mono *mono = changes->at[i].mono;
        sym_coef old = sym_coefficient(s->sum, mono), new = old;
        for (next = i; next < changes->count && changes->at[next].mono == mono; next++)
            new = sym_coef_add(sym, new, changes->at[next].coef);
        terms += !sym_coef_is_zero(new) - !sym_coef_is_zero(old);
        added += (sym_coef_sign(new) > 0) - (sym_coef_sign(old) > 0);
        stays = stays || (mono->count > 0 && !sym_coef_is_zero(new) && !sym_coef_is_zero(old));
        saved += (int64_t)sym_symbols_of_term(sym, s->style, mono, old);
        saved -= (int64_t)sym_symbols_of_term(sym, s->style, mono, new);
    }
    saved = 2 * saved + (s->added == 0) - (added == 0);
    return terms <= 0 && !(whole && stays) ? saved : 0;
}

static sym_terms *changes_by(const summands *s, const sym_atom *atom, const sym_view *view)
{
    sym_terms *changes = sym_terms_new(s->sym);
    for (uint32_t i = 0; i < s->in_count; i++)
        add_changes(s, s->in[i], atom, view, changes);
    return changes;
}

/* The terms of a view, with those that earlier ones have replaced. */
static etch_expr with_taken(const summands *s, etch_expr rest)
{
    etch_sym *sym = s->sym;
    for (const taken *t = s->first; t && (rest->flags & ETCH_SYM_HAS_OPAQUE); t = t->next) {
        summands inner = {.sym = sym, .sum = rest};
        inner.in = sym_scratch_take(sym, rest->count, sizeof *inner.in);
        if (!find_terms(&inner, t->atom))
            continue;
        sym_terms *all = changes_by(&inner, t->atom, &t->view);
        sym_terms_push_all(sym, all, rest);
        rest = sym_terms_collect(sym, all);
    }
    return rest;
}

/* Can a view be worth it: are terms that it brings there already, for one of the first? */
static bool may_save(const summands *s, const sym_atom *atom, const sym_view *view)
{
    enum { LOOKED_AT = 4 };
    const sym_mono *own = atom->self->terms[0].mono;
    bool found = view->rest->count == 0;
    for (uint32_t i = 0; i < s->in_count && i < LOOKED_AT && !found; i++) {
        const sym_mono *factor = sym_mono_div(s->sym, s->sum->terms[s->in[i]].mono, own);
        const sym_mono *mono = sym_mono_mul(s->sym, view->rest->terms[0].mono, factor);
        found = !sym_coef_is_zero(sym_coefficient(s->sum, mono));
    }
    return found;
}

/* ceil(4096/dp) for floor(4095/dp) + 1 is no shorter where more than 1 is added, and still what was meant:
 * does the sum have enough of it? */
static bool rounds_up_a_number(const summands *s, const sym_atom *atom, const sym_view *view)
{
    etch_sym *sym = s->sym;
    bool enough =
        view->shown->kind == ETCH_SYM_SHOWN_CEIL && atom->args[0]->count == 1 && view->rest->count == 1;
    for (uint32_t i = 0; i < s->in_count && enough; i++) {
        const sym_term *term = &s->sum->terms[s->in[i]];
        sym_coef there = sym_coefficient(s->sum, sym_mono_div(sym, term->mono, atom->self->terms[0].mono));
        int sign = sym_coef_sign(term->coef);
        enough = sym_coef_sign(there) == sign && sym_coef_compare(there, term->coef) * sign >= 0;
    }
    return enough;
}

/* Does a view of one more term take that term away wherever it is put in? */
static bool cancels(const summands *s, const sym_atom *atom, const sym_view *view)
{
    etch_sym *sym = s->sym;
    bool all = view->rest->count == 1;
    for (uint32_t i = 0; i < s->in_count && all; i++) {
        const sym_term *term = &s->sum->terms[s->in[i]];
        const sym_mono *factor = sym_mono_div(sym, term->mono, atom->self->terms[0].mono);
        sym_coef there = sym_coefficient(s->sum, sym_mono_mul(sym, factor, view->rest->terms[0].mono));
        sym_coef brought = sym_coef_mul(sym, term->coef, view->rest->terms[0].coef);
        all = sym_coef_is_zero(sym_coef_add(sym, there, brought));
    }
    return all;
}

/* -floor((stage - 34)/pp) takes as many symbols as ceil((34 - stage)/pp), and one minus more, and
 * a - max(-b, -c) as many as a + min(b, c): do most terms lose a minus? Of all terms with the atom, so that a
 * sum has it in one way. What is above 0 is a maximum in any case; functions other than ceil have to save
 * symbols as well. */
static bool takes_minus_away(const summands *s, const sym_view *view, int64_t saved)
{
    const sym_atom *shown = view->shown;
    uint32_t negative = 0;
    for (uint32_t i = 0; i < s->in_count; i++)
        negative += sym_coef_sign(s->sum->terms[s->in[i]].coef) < 0;
    const bool may = shown->kind == ETCH_SYM_SHOWN_CEIL
                         ? !s->is_single
                         : saved > 0 && shown->args[shown->count - 1]->count > 0;
    return may && sym_coef_sign(view->scale.coef) < 0 && negative > s->in_count - negative;
}

/* What a view saves in the terms at hand, as `saved_by`. */
static int64_t saved_by_view(const summands *s, const sym_atom *atom, const sym_view *view)
{
    enum { MOST_CHANGES = 1 << 20 };
    /* the sum at hand has no quotients by sums: see print_with_fraction */
    if ((view->rest->flags & ETCH_SYM_HAS_RECIP) ||
        (uint64_t)s->in_count * view->rest->count > MOST_CHANGES || !may_save(s, atom, view))
        return 0;
    sym_terms *changes = changes_by(s, atom, view);
    /* |x - y| is what people mean where neither x nor y stands beside it; else a max or min says more */
    int64_t saved = saved_by(s, changes, view->shown->kind == ETCH_SYM_SHOWN_ABS);
    sym_terms_free(s->sym, changes);
    return saved;
}

/* The view that saves the most symbols in the terms at hand, the first of several; false where none does. */
static bool best_view(summands *s, sym_atom *atom, sym_view *best)
{
    sym_view views[ETCH_SYM_MAX_VIEWS], plain[ETCH_SYM_MAX_VIEWS];
    int64_t saved[ETCH_SYM_MAX_VIEWS];
    bool rounds_up = false;
    const uint32_t count = sym_views_of(s->sym, &s->style->rules, s->sum, s->in, s->in_count, atom, plain);
    for (uint32_t i = 0; i < count; i++) {
        views[i] = plain[i];
        views[i].rest = with_taken(s, plain[i].rest);
        views[i].value = sym_add(s->sym, sym_sub(s->sym, plain[i].value, plain[i].rest), views[i].rest);
        const bool rounds = rounds_up_a_number(s, atom, &views[i]);
        saved[i] = saved_by_view(s, atom, &views[i]);
        saved[i] += rounds ? 2 : takes_minus_away(s, &views[i], saved[i]);
        rounds_up = rounds_up || rounds;
    }
    /* what is rounded up has no rest that anybody asked for, though 4095 % dp may be shorter */
    for (uint32_t i = 0; i < count; i++)
        if (rounds_up && views[i].shown->kind == ETCH_SYM_SHOWN_MOD && !cancels(s, atom, &views[i]))
            saved[i] = 0;
    for (;;) {
        uint32_t most = 0;
        for (uint32_t i = 1; i < count; i++)
            if (saved[i] > saved[most])
                most = i;
        if (count == 0 || saved[most] <= 0)
            return false;
        *best = views[most];
        if (sym_view_holds(s->sym, atom, &plain[most]))
            return true;
        saved[most] = 0;
    }
}

static void count_added(summands *s)
{
    s->added = 0;
    for (uint32_t i = 0; i < s->sum->count; i++)
        s->added += sym_coef_sign(s->sum->terms[i].coef) > 0;
}

static void replace(summands *s, const sym_atom *atom, const sym_view *view)
{
    etch_expr changes = sym_terms_collect(s->sym, changes_by(s, atom, view));
    sym_terms *all = sym_terms_new(s->sym);
    sym_terms_add_scaled(s->sym, all, s->sum->terms, s->sum->count, changes->terms, changes->count,
                         s->sym->unit, ETCH_SYM_ONE);
    s->sum = sym_terms_finish(s->sym, all);
    count_added(s);
}

/* Writes each function in the way that saves the most in all of its terms. */
static void replace_functions(summands *s)
{
    enum { ROUNDS = 2 };
    bool changed = true;
    for (uint32_t round = 0; changed && round < ROUNDS; round++) {
        uint32_t count;
        sym_atom **atoms = functions_of(s, &count);
        changed = false;
        for (uint32_t i = 0; i < count; i++) {
            s->in = sym_scratch_take(s->sym, s->sum->count + 1, sizeof *s->in);
            sym_view view;
            if (!find_terms(s, atoms[i]) || !best_view(s, atoms[i], &view))
                continue;
            replace(s, atoms[i], &view);
            *s->last = sym_scratch_take(s->sym, 1, sizeof **s->last);
            **s->last = (taken){atoms[i], view, NULL};
            s->last = &(*s->last)->next;
            changed = true;
        }
    }
}

/* Where the monomial is in the sum; its count where it is not. */
static uint32_t place_of(etch_expr sum, const sym_mono *mono)
{
    uint32_t low = 0, high = sum->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = sym_mono_compare(sum->terms[middle].mono, mono);
        if (order == 0)
            return middle;
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return sum->count;
}

/* Writes a floor in another way in single terms: where what belongs to it is there for some. */
static void replace_in_terms(summands *s, sym_atom *atom)
{
    const uint32_t count = s->in_count;
    s->is_single = true;
    const sym_mono **with = sym_scratch_take(s->sym, count, sizeof *with);
    for (uint32_t i = 0; i < count; i++)
        with[i] = s->sum->terms[s->in[i]].mono;
    for (uint32_t i = 0; i < count; i++) {
        s->in[0] = place_of(s->sum, with[i]);
        s->in_count = s->in[0] < s->sum->count;
        sym_view view;
        if (s->in_count && best_view(s, atom, &view))
            replace(s, atom, &view);
    }
}

static void replace_single_floors(summands *s)
{
    enum { MOST_TERMS = 2048 }; /* each replacement goes through all of them */
    uint32_t count;
    sym_atom **atoms = functions_of(s, &count);
    for (uint32_t i = 0; i < count && s->sum->count <= MOST_TERMS; i++) {
        s->in = sym_scratch_take(s->sym, s->sum->count + 1, sizeof *s->in);
        if (atoms[i]->kind == ETCH_SYM_FLOOR && find_terms(s, atoms[i]) && s->in_count > 1)
            replace_in_terms(s, atoms[i]);
    }
}

static bool has_function(etch_expr a)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        for (uint32_t j = mono->count; j-- > 0 && mono->at[j].atom->kind != ETCH_SYM_VAR;)
            if (is_function(mono->at[j].atom))
                return true;
    }
    return false;
}

/* ---- order --------------------------------------------------------------------------------------------- */

int sym_by_degree(const void *a, const void *b)
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

/* By decreasing degree, then by monomial; the constant is the last of its degree. */
sym_items sym_terms_in_order(etch_sym *sym, etch_expr a)
{
    sym_items items = {sym_scratch_take(sym, a->count + 1, sizeof *items.at), 0};
    sym_item *sorted = sym_scratch_take(sym, a->count + 1, sizeof *sorted), last = {0};
    bool constant = false;
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        sym_item it = {.degree = mono->degree, .rank = i, .coef = a->terms[i].coef, .mono = mono};
        if (mono->count) {
            items.at[items.count++] = it;
            continue;
        }
        constant = true;
        last = it;
        last.rank = UINT32_MAX;
    }
    if (constant)
        items.at[items.count++] = last;
    if (distribute(&items, sorted))
        return (sym_items){sorted, items.count};
    qsort(items.at, items.count, sizeof *items.at, sym_by_degree);
    return items;
}

sym_items sym_items_of(etch_sym *sym, etch_expr a, sym_style *style)
{
    enum { WORK_OF_PLAIN = 4, WORK_OF_OPAQUE = 16 }; /* what is looked for in a term, besides what is made */
    sym_count_work(sym,
                   (uint64_t)(a->flags & ETCH_SYM_HAS_OPAQUE ? WORK_OF_OPAQUE : WORK_OF_PLAIN) * a->count);
    summands s = {.sym = sym, .style = style, .sum = a};
    s.last = &s.first;
    if ((a->flags & ETCH_SYM_HAS_OPAQUE) && has_function(a)) {
        count_added(&s);
        replace_functions(&s);
        replace_single_floors(&s);
    }
    return sym_terms_in_order(sym, s.sum);
}
