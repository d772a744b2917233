/* The plain form. Terms by decreasing degree, then by order of declaration.
 *
 * What construction rewrote is recovered where it can be seen: with k terms of the sum around it,
 *
 *     k*N - k*n*floor(N/n)      is  k*(N % n)            c*max{0, d} + c*T    is  c*max(T + d, T)
 *     floor((N + n - 1)/n)      is  ceil(N/n)            -c*max{0, d} + c*T   is  c*min(T - d, T)
 *                                                        2*c*max{0, d} - c*d  is  c*abs(d)
 */
#include <stdlib.h>
#include <string.h>

#include "symbolic/symbolic_int.h"

enum { LONGEST_TEXT = 64 << 20 };

typedef enum item_form { FORM_PLAIN, FORM_MOD, FORM_CEIL, FORM_MAX, FORM_MIN, FORM_ABS } item_form;

/* A summand: coef * mono * form(args). */
typedef struct item {
    int64_t degree;
    const sym_mono *key; /* of the term that it stands for */
    sym_coef coef;
    const sym_mono *mono;
    item_form form;
    uint32_t count;
    const etch_expr *args;
} item;

typedef struct printer {
    etch_sym *sym;
    etch_buf *out;
} printer;

/* The sum under way: what is left of its terms, by decreasing monomial, and what was recovered. */
typedef struct summands {
    etch_sym *sym;
    sym_term *left; /* coefficients become 0 when used up */
    uint32_t count;
    item *items;
    uint32_t item_count;
} summands;

static void print_sum(printer *p, etch_expr a);

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

static item *add_item(summands *s, const sym_mono *key, const sym_mono *mono, sym_coef coef, item_form form)
{
    item *it = &s->items[s->item_count++];
    *it = (item){mono->degree + (form != FORM_PLAIN), key, coef, mono, form, 0, NULL};
    return it;
}

static void set_args(summands *s, item *it, const etch_expr *args, uint32_t count)
{
    etch_expr *kept = sym_scratch_take(s->sym, count, sizeof *kept);
    memcpy(kept, args, count * sizeof *kept);
    it->args = kept;
    it->count = count;
}

/* ---- recovering ---------------------------------------------------------------------------------------- */

/* The least common denominator of all terms, as one term. */
static sym_term denominator(etch_sym *sym, etch_expr a)
{
    sym_coef unit_fraction = SYM_ONE;
    for (uint32_t i = 0; i < a->count; i++)
        unit_fraction =
            sym_coef_gcd(sym, unit_fraction, sym_coef_inv(sym, sym_coef_denominator(sym, a->terms[i].coef)));
    return (sym_term){sym_mono_pow(sym, sym_mono_below(sym, a), -1), sym_coef_inv(sym, unit_fraction)};
}

static bool recover_mod(summands *s, const sym_term *term, const sym_mono *factor, const sym_atom *atom)
{
    etch_sym *sym = s->sym;
    if (atom->args[0]->flags & SYM_HAS_RECIP)
        return false;
    sym_term n = denominator(sym, atom->args[0]);
    const sym_mono *mono = sym_mono_div(sym, factor, n.mono);
    sym_coef k = sym_coef_neg(sym, sym_coef_div(sym, term->coef, n.coef));
    etch_expr args[] = {sym_scale(sym, atom->args[0], n.mono, n.coef), sym_monomial(sym, n.mono, n.coef)};
    if (sym_is_constant(args[1]) && args[1] == sym->one)
        return false;
    if (!includes_all(s, args[0], mono, k))
        return false;
    take_all(s, args[0], mono, k);
    set_args(s, add_item(s, term->mono, mono, k, FORM_MOD), args, 2);
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
    sym_coef constant = SYM_ZERO;
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
    set_args(s, add_item(s, term->mono, factor, term->coef, FORM_CEIL), &G, 1);
    return true;
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
    set_args(s, add_item(s, term->mono, factor, half, FORM_ABS), &atom->args[1], 1);
    return true;
}

/* The coefficient of `mono` that all arguments but the 0 share; 0 for none. */
static sym_coef shared_coefficient(const sym_atom *atom, const sym_mono *mono)
{
    sym_coef shared = SYM_ZERO;
    for (uint32_t i = 1; i < atom->count; i++) {
        sym_coef coef = SYM_ZERO;
        for (uint32_t j = 0; j < atom->args[i]->count; j++)
            if (atom->args[i]->terms[j].mono == mono)
                coef = atom->args[i]->terms[j].coef;
        if (i > 1 && !sym_coef_equal(coef, shared))
            return SYM_ZERO;
        shared = coef;
    }
    return shared;
}

/* The terms T that can move into c*max{0, d..}: as c*max(T + d.., T) those of -d that the sum has as c*T;
 * as -c*min(T - d.., T) those of d that it has as -c*T. */
static etch_expr movable_terms(summands *s, const sym_term *term, const sym_mono *factor,
                               const sym_atom *atom, item_form form)
{
    etch_sym *sym = s->sym;
    sym_coef scale = form == FORM_MAX ? term->coef : sym_coef_neg(sym, term->coef);
    sym_terms *moved = sym_terms_new(sym);
    for (uint32_t i = 0; i < atom->args[1]->count; i++) {
        const sym_mono *mono = atom->args[1]->terms[i].mono;
        sym_coef coef = shared_coefficient(atom, mono);
        if (form == FORM_MAX)
            coef = sym_coef_neg(sym, coef);
        const sym_mono *around = sym_mono_mul(sym, mono, factor);
        if (sym_coef_sign(coef) > 0 && includes(s, around, sym_coef_mul(sym, coef, scale)))
            sym_terms_push(sym, moved, mono, coef);
    }
    return sym_terms_finish(sym, moved);
}

/* Moves T. What construction would not bring back to the same form is left alone. */
static bool move_terms(summands *s, const sym_term *term, const sym_mono *factor, const sym_atom *atom,
                       item_form form, etch_expr T)
{
    etch_sym *sym = s->sym;
    bool is_min = form == FORM_MIN;
    etch_expr *args = sym_scratch_take(sym, atom->count, sizeof *args);
    for (uint32_t i = 0; i < atom->count; i++)
        args[i] = is_min ? sym_sub(sym, T, atom->args[i]) : sym_add(sym, T, atom->args[atom->count - 1 - i]);
    etch_expr expected = is_min ? sym_sub(sym, T, atom->self) : sym_add(sym, T, atom->self);
    if ((is_min ? sym_min(sym, atom->count, args) : sym_max(sym, atom->count, args)) != expected)
        return false;
    sym_coef coef = is_min ? sym_coef_neg(sym, term->coef) : term->coef;
    take_all(s, T, factor, coef);
    item *it = add_item(s, term->mono, factor, coef, form);
    it->args = args;
    it->count = atom->count;
    return true;
}

static bool recover_max(summands *s, const sym_term *term, const sym_mono *factor, const sym_atom *atom)
{
    etch_expr in_max = movable_terms(s, term, factor, atom, FORM_MAX);
    etch_expr in_min = movable_terms(s, term, factor, atom, FORM_MIN);
    if (in_min->count > in_max->count && move_terms(s, term, factor, atom, FORM_MIN, in_min))
        return true;
    return move_terms(s, term, factor, atom, FORM_MAX, in_max) ||
           move_terms(s, term, factor, atom, FORM_MAX, s->sym->zero);
}

/* The floor or max of a term, when it has one only and to the power 1; else NULL. */
static sym_atom *function_of(const sym_mono *mono)
{
    sym_atom *found = NULL;
    for (uint32_t i = 0; i < mono->count; i++) {
        sym_kind kind = mono->at[i].atom->kind;
        if (kind != SYM_FLOOR && kind != SYM_MAX)
            continue;
        if (found || mono->at[i].exp != 1)
            return NULL;
        found = mono->at[i].atom;
    }
    return found;
}

static void recover(summands *s, uint32_t i)
{
    sym_term term = s->left[i];
    sym_atom *atom = function_of(term.mono);
    if (!atom || sym_coef_is_zero(term.coef))
        return;
    const sym_mono *factor = sym_mono_div(s->sym, term.mono, sym_mono_of(s->sym, atom, 1));
    bool done = true;
    if (atom->kind == SYM_FLOOR)
        done = recover_mod(s, &term, factor, atom) || recover_ceil(s, &term, factor, atom);
    else
        done = recover_abs(s, &term, factor, atom) || recover_max(s, &term, factor, atom);
    if (done)
        s->left[i].coef = SYM_ZERO;
}

/* ---- factors and summands ------------------------------------------------------------------------------ */

static void print_list(printer *p, const char *name, const etch_expr *args, uint32_t count)
{
    etch_buf_puts(p->out, name);
    for (uint32_t i = 0; i < count; i++) {
        etch_buf_puts(p->out, i ? ", " : "(");
        print_sum(p, args[i]);
    }
    etch_buf_puts(p->out, ")");
}

static void print_bracketed(printer *p, etch_expr a)
{
    print_list(p, "", &a, 1);
}

static summands summands_of(etch_sym *sym, etch_expr a);

/* As one factor: in brackets unless it is a number, a variable or a call. */
static void print_factor(printer *p, etch_expr a)
{
    sym_scratch_mark mark = sym_scratch_top(p->sym);
    summands s = summands_of(p->sym, a);
    const item *it = s.items;
    bool one_item = s.item_count == 1 && !(a->flags & SYM_HAS_RECIP);
    bool number =
        one_item && sym_is_constant(a) && sym_coef_is_integer(it->coef) && sym_coef_sign(it->coef) > 0;
    bool call = one_item && it->form != FORM_PLAIN && it->form != FORM_MOD && it->mono->count == 0;
    if (number || sym_atom_of(a) || (call && sym_coef_is_one(it->coef)))
        print_sum(p, a);
    else
        print_bracketed(p, a);
    sym_scratch_release(p->sym, mark);
}

/* N/n for a sum of fractions with a common denominator; else the sum. */
static void print_over_denominator(printer *p, etch_expr a)
{
    etch_sym *sym = p->sym;
    sym_term n = denominator(sym, a);
    if (a->count < 2 || (a->flags & SYM_HAS_RECIP) || (n.mono->count == 0 && sym_coef_is_one(n.coef))) {
        print_sum(p, a);
        return;
    }
    print_factor(p, sym_scale(sym, a, n.mono, n.coef));
    etch_buf_puts(p->out, "/");
    print_factor(p, sym_monomial(sym, n.mono, n.coef));
}

static void print_atom(printer *p, const sym_atom *atom)
{
    if (atom->kind == SYM_VAR) {
        etch_buf_puts(p->out, atom->name ? atom->name : "?");
    } else if (atom->kind == SYM_FLOOR) {
        etch_buf_puts(p->out, "floor(");
        print_over_denominator(p, atom->args[0]);
        etch_buf_puts(p->out, ")");
    } else {
        sym_scratch_mark mark = sym_scratch_top(p->sym);
        etch_expr *args = sym_scratch_take(p->sym, atom->count, sizeof *args);
        for (uint32_t i = 0; i < atom->count; i++)
            args[i] = atom->args[atom->count - 1 - i];
        print_list(p, "max", args, atom->count);
        sym_scratch_release(p->sym, mark);
    }
}

/* N % n, in brackets unless it stands alone. */
static void print_mod(printer *p, const item *it, bool alone)
{
    etch_expr N = it->args[0];
    etch_buf_puts(p->out, alone ? "" : "(");
    if (N->count == 1 && sym_coef_sign(N->terms[0].coef) > 0)
        print_sum(p, N);
    else
        print_factor(p, N);
    etch_buf_puts(p->out, " % ");
    print_factor(p, it->args[1]);
    etch_buf_puts(p->out, alone ? "" : ")");
}

static void print_form(printer *p, const item *it, bool alone)
{
    switch (it->form) {
    case FORM_PLAIN:
        break;
    case FORM_MOD:
        print_mod(p, it, alone);
        break;
    case FORM_CEIL:
        etch_buf_puts(p->out, "ceil(");
        print_over_denominator(p, it->args[0]);
        etch_buf_puts(p->out, ")");
        break;
    case FORM_MAX:
        print_list(p, "max", it->args, it->count);
        break;
    case FORM_MIN:
        print_list(p, "min", it->args, it->count);
        break;
    case FORM_ABS:
        print_list(p, "abs", it->args, it->count);
        break;
    }
}

static void print_power(printer *p, const sym_power *power)
{
    int32_t exp = power->exp < 0 ? -power->exp : power->exp;
    print_atom(p, power->atom);
    if (exp != 1)
        etch_buf_printf(p->out, "^%d", (int)exp);
}

/* Writes a separator before all factors but the first. */
static void separate(printer *p, const char *separator, bool *first)
{
    if (!*first)
        etch_buf_puts(p->out, separator);
    *first = false;
}

static void print_numerator(printer *p, const item *it, sym_coef num, bool alone)
{
    bool first = true, bare = it->form == FORM_PLAIN && sym_mono_part(p->sym, it->mono, 1)->count == 0;
    if (bare || !sym_coef_is_one(num)) {
        separate(p, "*", &first);
        sym_coef_print(num, p->out);
    }
    for (uint32_t i = 0; i < it->mono->count; i++)
        if (it->mono->at[i].exp > 0) {
            separate(p, "*", &first);
            print_power(p, &it->mono->at[i]);
        }
    if (it->form != FORM_PLAIN) {
        separate(p, "*", &first);
        print_form(p, it, alone);
    }
}

/* coef > 0. `below` is one more factor of the denominator, or NULL. */
static void print_item(printer *p, const item *it, sym_coef coef, etch_expr below, bool first_of_sum)
{
    etch_sym *sym = p->sym;
    sym_coef den = sym_coef_denominator(sym, coef);
    uint32_t factors = !sym_coef_is_one(den);
    for (uint32_t i = 0; i < it->mono->count; i++)
        factors += it->mono->at[i].exp < 0;
    bool negative = sym_coef_sign(it->coef) < 0;
    bool alone = !below && it->mono->count == 0 && sym_coef_is_one(coef) && !(negative && first_of_sum);
    print_numerator(p, it, sym_coef_numerator(sym, coef), alone);
    if (factors == 0 && !below)
        return;
    bool bracket = factors + (below != NULL) > 1, first = true;
    etch_buf_puts(p->out, bracket ? "/(" : "/");
    if (!sym_coef_is_one(den)) {
        separate(p, "*", &first);
        sym_coef_print(den, p->out);
    }
    for (uint32_t i = 0; i < it->mono->count; i++)
        if (it->mono->at[i].exp < 0) {
            separate(p, "*", &first);
            print_power(p, &it->mono->at[i]);
        }
    if (below) {
        separate(p, "*", &first);
        print_factor(p, below);
    }
    if (bracket)
        etch_buf_puts(p->out, ")");
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

static int by_degree(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->degree != y->degree)
        return x->degree > y->degree ? -1 : 1;
    if ((x->key->count == 0) != (y->key->count == 0))
        return x->key->count == 0 ? 1 : -1; /* the constant after quotients like a/b */
    return sym_mono_compare(y->key, x->key);
}

/* The summands of an expression without atoms 1/(sum), in order of printing. They live in scratch memory. */
static summands summands_of(etch_sym *sym, etch_expr a)
{
    summands s = {.sym = sym, .count = a->count};
    s.left = sym_scratch_take(sym, a->count + 1, sizeof *s.left);
    s.items = sym_scratch_take(sym, a->count + 1, sizeof *s.items);
    if (a->count)
        memcpy(s.left, a->terms, a->count * sizeof *s.left);
    for (uint32_t i = 0; i < a->count; i++)
        recover(&s, i);
    for (uint32_t i = 0; i < a->count; i++)
        if (!sym_coef_is_zero(s.left[i].coef))
            add_item(&s, s.left[i].mono, s.left[i].mono, s.left[i].coef, FORM_PLAIN);
    qsort(s.items, s.item_count, sizeof *s.items, by_degree);
    return s;
}

/* Appends `coef * ...` to a sum; only the very first summand has its sign without spaces. */
static void print_sign(printer *p, bool negative, bool first)
{
    if (first)
        etch_buf_puts(p->out, negative ? "-" : "");
    else
        etch_buf_puts(p->out, negative ? " - " : " + ");
}

static void print_summands(printer *p, etch_expr a, bool *first)
{
    sym_scratch_mark mark = sym_scratch_top(p->sym);
    summands s = summands_of(p->sym, a);
    for (uint32_t i = 0; i < s.item_count; i++) {
        print_sign(p, sym_coef_sign(s.items[i].coef) < 0, *first);
        print_item(p, &s.items[i], sym_coef_abs(p->sym, s.items[i].coef), NULL, *first);
        *first = false;
    }
    sym_scratch_release(p->sym, mark);
}

/* num/(den) as a summand. */
static void print_fraction(printer *p, etch_expr num, etch_expr den, bool first)
{
    etch_sym *sym = p->sym;
    sym_scratch_mark mark = sym_scratch_top(sym);
    summands s = summands_of(sym, num);
    bool negative = true;
    for (uint32_t i = 0; i < s.item_count; i++)
        negative = negative && sym_coef_sign(s.items[i].coef) < 0;
    print_sign(p, negative, first);
    if (s.item_count == 1) {
        print_item(p, &s.items[0], sym_coef_abs(sym, s.items[0].coef), den, first);
    } else {
        print_bracketed(p, negative ? sym_neg(sym, num) : num);
        etch_buf_puts(p->out, "/");
        print_factor(p, den);
    }
    sym_scratch_release(sym, mark);
}

/* Whole + rest/den, or all of it over den when that is no longer. */
static void print_with_fraction(printer *p, etch_expr a)
{
    etch_sym *sym = p->sym;
    sym_fraction x = sym_split(sym, a);
    bool first = true;
    if (x.num->count <= a->count) {
        print_fraction(p, x.num, x.den, first);
        return;
    }
    sym_terms *whole = sym_terms_new(sym);
    for (uint32_t i = 0; i < a->count; i++)
        if (!(a->terms[i].mono->flags & SYM_HAS_RECIP))
            sym_terms_push(sym, whole, a->terms[i].mono, a->terms[i].coef);
    etch_expr Q = sym_terms_finish(sym, whole);
    print_summands(p, Q, &first);
    print_fraction(p, sym_split(sym, sym_sub(sym, a, Q)).num, x.den, first);
}

static void print_sum(printer *p, etch_expr a)
{
    if (p->out->length > LONGEST_TEXT)
        sym_limit(p->sym);
    bool first = true;
    if (a->count == 0)
        etch_buf_puts(p->out, "0");
    else if (a->flags & SYM_HAS_RECIP)
        print_with_fraction(p, a);
    else
        print_summands(p, a, &first);
}

/* ---- the door ------------------------------------------------------------------------------------------ */

void etch_expr_print(etch_sym *sym, etch_expr a, etch_buf *out)
{
    printer p = {sym, out};
    if (a)
        print_sum(&p, a);
    else
        etch_buf_puts(out, "undefined");
}

const char *etch_expr_text(etch_sym *sym, etch_expr a)
{
    etch_buf out = {.arena = sym->arena};
    etch_expr_print(sym, a, &out);
    return out.text;
}
