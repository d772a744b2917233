/* Writes expressions in the notations of notation.c, all but JSON. */
#include <stdio.h>
#include <string.h>

#include "symbolic/text/text_int.h"

/* Powers up to this are written as products where there is no operator for powers. */
enum { MAX_PRODUCT = 8 };

/* Bytes of a text that is kept to be written again, and functions inside functions from which on it is. */
enum { LONGEST_KEPT = 4096, KEPT_FROM = 2 };

static void put(sym_printer *p, const char *text)
{
    sym_put_text(p->out, text);
}

/* Separates what comes from what is there already. */
static void separate(sym_printer *p, bool *first)
{
    if (!*first)
        put(p, p->n->times);
    *first = false;
}

/* Writes the name of an atom or a sum; false: it has none. */
static bool put_name(sym_printer *p, const void *key)
{
    /* the memo gives what temporaries.c put there, which may be changed */
    const sym_memo *names = p->style.names;
    sym_name *name = names ? (sym_name *)(uintptr_t)sym_memo_get(names, key) : NULL;
    if (!name || name->hidden)
        return false;
    put(p, name->text);
    name->used = true;
    return true;
}

/* Writes what was written for the key before; false: nothing was. */
static bool put_again(sym_printer *p, const void *key)
{
    const char *text = sym_memo_get(&p->texts, key);
    if (text)
        etch_buf_puts(p->out, text);
    return text;
}

/* Keeps what is written since `start`. Names are noted when they are used, and may be hidden later; long
 * texts are made of short ones. */
static void keep_text(sym_printer *p, const void *key, size_t start)
{
    if (!p->style.names && p->out->length - start <= LONGEST_KEPT)
        sym_memo_put(p->sym, &p->texts, key,
                     etch_copy_text(p->sym->arena, p->out->text + start, p->out->length - start));
}

static void print_inner(sym_printer *p, etch_expr a);
static void print_items(sym_printer *p, sym_items items, bool first);

/* ---- variables ----------------------------------------------------------------------------------------- */

static bool is_declared(const etch_sym *sym, const char *name)
{
    for (uint32_t i = 0; i < sym->vars.count; i++)
        if (sym->vars.at[i]->name && strcmp(sym->vars.at[i]->name, name) == 0)
            return true;
    return false;
}

/* What is bound by a sum has no name of its own: i, j, k, i4.. by how many sums are inside, or i_.. when
 * variables have these names. */
static void print_index(sym_printer *p, uint32_t level)
{
    char name[32];
    int length = level <= 3 ? snprintf(name, sizeof name, "%c", (int)('h' + level))
                            : snprintf(name, sizeof name, "i%u", (unsigned)level);
    while (is_declared(p->sym, name) && length + 1 < (int)sizeof name) {
        name[length++] = '_';
        name[length] = '\0';
    }
    p->n->name(name, p->out);
}

static void print_variable(sym_printer *p, const sym_atom *atom)
{
    if (atom->name)
        p->n->name(atom->name, p->out);
    else
        print_index(p, atom->bound_level);
}

/* ---- numbers and functions ----------------------------------------------------------------------------- */

static void print_number(sym_printer *p, sym_coef integer)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    if (sym_coef_is_small(integer) && integer.num >= 0) {
        uint64_t rest = (uint64_t)integer.num;
        digits[at] = '\0';
        do
            digits[--at] = (char)('0' + rest % 10);
        while ((rest /= 10) > 0);
        put(p, digits + at);
    } else {
        sym_coef_print(p->sym, integer, p->out);
    }
    put(p, p->n->number_end);
}

/* f(x, f(y, z)) for a function of two arguments. So that this is not what a last argument looks like that
 * is itself such a call, that one gets brackets. */
static void print_nested(sym_printer *p, sym_call call, const etch_expr *args, uint32_t count)
{
    for (uint32_t i = 0; i + 1 < count; i++) {
        put(p, call.open);
        print_inner(p, args[i]);
        put(p, ", ");
    }
    size_t start = p->out->length;
    print_inner(p, args[count - 1]);
    if (strncmp(p->out->text + start, call.open, strlen(call.open)) == 0) {
        size_t length = p->out->length - start;
        put(p, "()");
        memmove(p->out->text + start + 1, p->out->text + start, length);
        p->out->text[start] = '(';
        p->out->text[start + length + 1] = ')';
    }
    for (uint32_t i = 0; i + 1 < count; i++)
        put(p, call.close);
}

static void print_list(sym_printer *p, sym_call call, const etch_expr *args, uint32_t count)
{
    if (p->n->two_arguments && count > 1) {
        print_nested(p, call, args, count);
        return;
    }
    put(p, call.open);
    for (uint32_t i = 0; i < count; i++) {
        put(p, i ? ", " : "");
        print_inner(p, args[i]);
    }
    put(p, call.close);
}

static void print_one(sym_printer *p, sym_call call, etch_expr a)
{
    print_list(p, call, &a, 1);
}

static void print_atom(sym_printer *p, const sym_atom *atom, bool alone);

static bool is_positive_integer(etch_expr a)
{
    return a->count == 1 && sym_is_constant(a) && sym_coef_is_integer(a->terms[0].coef) &&
           sym_coef_sign(a->terms[0].coef) > 0;
}

/* Arguments of functions, and what is divided by, are in the shortest form if the whole is; else expanded. */
static etch_form inner_form(const sym_printer *p)
{
    return p->style.form == ETCH_SHORTEST ? ETCH_SHORTEST : ETCH_EXPANDED;
}

static sym_items inner_items(sym_printer *p, etch_expr a)
{
    const etch_form form = p->style.form;
    p->style.form = inner_form(p);
    sym_items items = sym_arrange(p->sym, &p->style, a);
    p->style.form = form;
    return items;
}

/* The function that the sum is alone, or NULL. */
static const sym_atom *call_of(sym_items items)
{
    const sym_item *it = items.at;
    const bool single = items.count == 1 && it->group_count == 0 && it->mono->count == 1 &&
                        it->mono->at[0].exp == 1 && sym_coef_is_one(it->coef);
    return single ? it->mono->at[0].atom : NULL;
}

/* As one factor: in brackets unless it is a number, a variable or a call. */
static void print_factor(sym_printer *p, etch_expr a)
{
    const sym_atom *atom = sym_atom_of(a);
    if (put_name(p, a))
        return;
    if (is_positive_integer(a)) {
        print_number(p, a->terms[0].coef);
    } else if (atom && atom->kind == ETCH_SYM_VAR) {
        print_variable(p, atom);
    } else {
        sym_scratch_mark mark = sym_scratch_top(p->sym);
        const sym_atom *call = atom && atom->kind != ETCH_SYM_RECIP ? atom : NULL;
        if (!(a->flags & ETCH_SYM_HAS_RECIP))
            call = call_of(inner_items(p, a));
        if (call)
            print_atom(p, call, false);
        else
            print_one(p, p->n->bracket, a);
        sym_scratch_release(p->sym, mark);
    }
}

/* N/n for a sum of fractions. */
static void print_ratio(sym_printer *p, etch_expr a)
{
    sym_fraction x = sym_over_denominator(p->sym, a);
    if (x.den == p->sym->one || (a->count < 2 && !(a->flags & ETCH_SYM_HAS_RECIP))) {
        print_inner(p, a);
        return;
    }
    put(p, p->n->fraction);
    sym_scratch_mark mark = sym_scratch_top(p->sym);
    const bool product = !(x.num->flags & ETCH_SYM_HAS_RECIP) && inner_items(p, x.num).count == 1;
    sym_scratch_release(p->sym, mark);
    if (p->n->brackets_in_fraction && !product)
        print_factor(p, x.num);
    else
        print_inner(p, x.num);
    put(p, p->n->over);
    if (p->n->brackets_in_fraction)
        print_factor(p, x.den);
    else
        print_inner(p, x.den);
    put(p, p->n->fraction_end);
}

/* N operator n, in brackets unless it stands alone. A single product needs none of its own on the left. */
static void print_division(sym_printer *p, const char *before, etch_expr num, const char *operator,
                           etch_expr den, bool alone)
{
    put(p, alone ? "" : p->n->bracket.open);
    put(p, before);
    if (num->count == 1 && sym_coef_sign(num->terms[0].coef) > 0 && !(num->flags & ETCH_SYM_HAS_OPAQUE))
        print_inner(p, num);
    else
        print_factor(p, num);
    put(p, operator);
    print_factor(p, den);
    put(p, alone ? "" : p->n->bracket.close);
}

/* N//n. SymPy 1.11 fails where N is a number and n is none: that is written Rational(N)/n//1. */
static void print_floor_division(sym_printer *p, const char *before, sym_fraction x, bool alone)
{
    bool number = sym_is_constant(x.num);
    if (!number) {
        print_division(p, before, x.num, "//", x.den, alone);
        return;
    }
    put(p, alone ? "" : p->n->bracket.open);
    put(p, before);
    put(p, p->n->rational);
    print_inner(p, x.num);
    put(p, ")/");
    print_factor(p, x.den);
    put(p, "//1");
    put(p, alone ? "" : p->n->bracket.close);
}

/* floor or ceil of a quotient. -(-N//n) rounds up. */
static void print_rounded(sym_printer *p, sym_call call, etch_expr a, bool up, bool alone)
{
    if (call.open) {
        put(p, call.open);
        print_ratio(p, a);
        put(p, call.close);
        return;
    }
    sym_fraction x = sym_over_denominator(p->sym, a);
    bool bracket = up && !alone;
    put(p, bracket ? "(" : "");
    if (up) {
        put(p, "-");
        print_floor_division(p, "-", x, false);
    } else {
        print_floor_division(p, "", x, alone);
    }
    put(p, bracket ? ")" : "");
}

/* max of all arguments, 0 among them. */
static void print_max(sym_printer *p, const sym_atom *atom)
{
    sym_scratch_mark mark = sym_scratch_top(p->sym);
    etch_expr *args = sym_scratch_take(p->sym, atom->count, sizeof *args);
    for (uint32_t i = 0; i < atom->count; i++)
        args[i] = atom->args[atom->count - 1 - i];
    print_list(p, p->n->max, args, atom->count);
    sym_scratch_release(p->sym, mark);
}

/* sum(i, 0, count - 1, term) */
static void print_sum_over(sym_printer *p, const sym_atom *atom, bool alone)
{
    bool bracket = !alone && p->n->sum.close[0] == '\0', body_first = p->n->sum.body_first;
    put(p, bracket ? p->n->bracket.open : "");
    for (int part = 0; part < 2; part++) {
        if ((part == 0) == body_first) {
            put(p, p->n->sum.body);
            print_inner(p, atom->args[1]);
            continue;
        }
        put(p, p->n->sum.open);
        print_variable(p, atom->bound);
        put(p, p->n->sum.low);
        print_number(p, ETCH_SYM_ZERO);
        put(p, p->n->sum.high);
        print_inner(p, sym_add_int(p->sym, atom->args[0], -1));
    }
    put(p, p->n->sum.close);
    put(p, bracket ? p->n->bracket.close : "");
}

static void print_opaque(sym_printer *p, const sym_atom *atom, bool alone)
{
    switch (atom->kind) {
    case ETCH_SYM_FLOOR:
        print_rounded(p, p->n->floor, atom->args[0], false, alone);
        break;
    case ETCH_SYM_SUM:
        print_sum_over(p, atom, alone);
        break;
    case ETCH_SYM_POW2:
        print_rounded(p, p->n->pow2, atom->args[0], false, alone);
        break;
    case ETCH_SYM_SHOWN_MOD:
        print_division(p, "", atom->args[0], p->n->mod, atom->args[1], alone);
        break;
    case ETCH_SYM_SHOWN_CEIL:
        print_rounded(p, p->n->ceil, atom->args[0], true, alone);
        break;
    case ETCH_SYM_SHOWN_MAX:
        print_list(p, p->n->max, atom->args, atom->count);
        break;
    case ETCH_SYM_SHOWN_MIN:
        print_list(p, p->n->min, atom->args, atom->count);
        break;
    case ETCH_SYM_SHOWN_ABS:
        print_list(p, p->n->abs, atom->args, atom->count);
        break;
    case ETCH_SYM_SHOWN_BRACKET:
        print_list(p, p->n->at_least_zero, atom->args, atom->count);
        break;
    case ETCH_SYM_MAX:
    case ETCH_SYM_VAR:
    case ETCH_SYM_RECIP:
        print_max(p, atom);
        break;
    }
}

static void print_atom(sym_printer *p, const sym_atom *atom, bool alone)
{
    const bool again = atom->depth >= KEPT_FROM;
    const char *key = (const char *)atom + alone;
    const size_t start = p->out->length;
    if (atom->kind == ETCH_SYM_VAR) {
        print_variable(p, atom);
    } else if (!put_name(p, atom) && !(again && put_again(p, key))) {
        print_opaque(p, atom, alone);
        if (again)
            keep_text(p, key, start);
    }
}

/* ---- factors and summands ------------------------------------------------------------------------------ */

/* A power of a variable as a product, where there is no operator for powers. */
static void print_product(sym_printer *p, const sym_power *power, int32_t exp, bool bracket)
{
    put(p, bracket ? p->n->bracket.open : "");
    for (int32_t i = 0; i < exp; i++) {
        put(p, i ? p->n->times : "");
        print_atom(p, power->atom, false);
    }
    put(p, bracket ? p->n->bracket.close : "");
}

/* The power of an atom without the sign of the exponent. `alone`: nothing stands around it; `divides`:
 * nothing but a division before it. */
static void print_power(sym_printer *p, const sym_power *power, bool alone, bool divides)
{
    int32_t exp = power->exp < 0 ? -power->exp : power->exp;
    sym_coef number = {.num = exp, .den = 1};
    if (exp == 1) {
        print_atom(p, power->atom, alone);
    } else if (p->n->power.open) {
        print_atom(p, power->atom, false);
        put(p, p->n->power.open);
        print_number(p, number);
        put(p, p->n->power.close);
    } else if (power->atom->kind == ETCH_SYM_VAR && exp <= MAX_PRODUCT) {
        print_product(p, power, exp, divides);
    } else {
        put(p, "pow(");
        print_atom(p, power->atom, true);
        put(p, ", ");
        print_number(p, number);
        put(p, ")");
    }
}

/* Does dividing the item give a fraction in Python, where all variables are fractions and other factors
 * may be int? */
static bool has_variable(const sym_item *it);

static bool any_has_variable(sym_items items)
{
    bool found = false;
    for (uint32_t i = 0; i < items.count && !found; i++)
        found = has_variable(&items.at[i]);
    return found;
}

static bool has_variable(const sym_item *it)
{
    for (uint32_t i = 0; i < it->mono->count; i++)
        if (it->mono->at[i].atom->kind == ETCH_SYM_VAR)
            return true;
    for (uint32_t i = 0; i < it->group_count; i++)
        if (any_has_variable(it->groups[i]))
            return true;
    return false;
}

static bool sum_has_variable(sym_printer *p, etch_expr a)
{
    sym_scratch_mark mark = sym_scratch_top(p->sym);
    bool found = any_has_variable(inner_items(p, a));
    sym_scratch_release(p->sym, mark);
    return found;
}

/* A summand taken apart: num * mono's powers / (den * mono's negative powers * below). */
typedef struct quotient {
    const sym_item *it;
    /* > 0 */
    sym_coef num, den;
    /* one more factor of the denominator; or NULL */
    etch_expr below;
    uint32_t above_count, below_count;
    /* the number is written first, as a fraction */
    bool rational;
    /* nothing stands around the summand that would bind closer */
    bool alone;
} quotient;

static void take_apart(sym_printer *p, const sym_item *it, etch_expr below, bool first_of_sum, quotient *q)
{
    sym_coef coef = sym_coef_abs(p->sym, it->coef);
    q->it = it;
    q->below = below;
    q->num = sym_coef_numerator(p->sym, coef);
    q->den = sym_coef_denominator(p->sym, coef);
    q->below_count = (uint32_t)(below != NULL) + !sym_coef_is_one(q->den);
    q->above_count = it->group_count + !sym_coef_is_one(q->num);
    for (uint32_t i = 0; i < it->mono->count; i++)
        if (it->mono->at[i].exp < 0)
            q->below_count++;
        else
            q->above_count++;
    q->rational =
        p->n->rational && q->below_count > 0 && !has_variable(it) && !(below && sum_has_variable(p, below));
    if (q->rational)
        q->below_count -= !sym_coef_is_one(q->den);
    bool negative = sym_coef_sign(it->coef) < 0;
    bool ceil = it->mono->count == 1 && it->mono->at[0].atom->kind == ETCH_SYM_SHOWN_CEIL;
    q->alone =
        q->above_count == 1 && q->below_count == 0 && !q->rational && !(negative && (first_of_sum || ceil));
}

static void print_rational(sym_printer *p, const quotient *q)
{
    put(p, p->n->rational);
    print_number(p, q->num);
    if (!sym_coef_is_one(q->den)) {
        put(p, ", ");
        print_number(p, q->den);
    }
    put(p, ")");
}

static void print_numerator(sym_printer *p, const quotient *q)
{
    bool first = true;
    if (q->rational) {
        separate(p, &first);
        print_rational(p, q);
    } else if (q->above_count == 0 || !sym_coef_is_one(q->num)) {
        separate(p, &first);
        print_number(p, q->num);
    }
    for (uint32_t i = 0; i < q->it->mono->count; i++)
        if (q->it->mono->at[i].exp > 0) {
            separate(p, &first);
            print_power(p, &q->it->mono->at[i], q->alone, false);
        }
    const bool bare =
        q->it->group_count == 1 && q->above_count == 1 && q->below_count > 0 && !p->n->brackets_in_fraction;
    for (uint32_t i = 0; i < q->it->group_count; i++) {
        separate(p, &first);
        put(p, bare ? "" : p->n->bracket.open);
        print_items(p, q->it->groups[i], true);
        put(p, bare ? "" : p->n->bracket.close);
    }
}

static void print_denominator(sym_printer *p, const quotient *q)
{
    bool first = true, single = q->below_count == 1;
    if (!q->rational && !sym_coef_is_one(q->den)) {
        separate(p, &first);
        print_number(p, q->den);
    }
    for (uint32_t i = 0; i < q->it->mono->count; i++)
        if (q->it->mono->at[i].exp < 0) {
            separate(p, &first);
            print_power(p, &q->it->mono->at[i], false, single);
        }
    if (!q->below)
        return;
    separate(p, &first);
    if (single && !p->n->brackets_in_fraction)
        print_inner(p, q->below);
    else
        print_factor(p, q->below);
}

/* The size of a summand; `below` is one more factor of the denominator, or NULL. */
static void print_item(sym_printer *p, const sym_item *it, etch_expr below, bool first_of_sum)
{
    quotient q;
    take_apart(p, it, below, first_of_sum, &q);
    if (q.below_count == 0) {
        print_numerator(p, &q);
        return;
    }
    bool bracket = q.below_count > 1 && p->n->brackets_in_fraction;
    put(p, p->n->fraction);
    print_numerator(p, &q);
    put(p, p->n->over);
    put(p, bracket ? p->n->bracket.open : "");
    print_denominator(p, &q);
    put(p, bracket ? p->n->bracket.close : "");
    put(p, p->n->fraction_end);
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

/* Only the very first summand has its sign without spaces. */
static void print_sign(sym_printer *p, bool negative, bool first)
{
    if (first)
        put(p, negative ? "-" : "");
    else
        put(p, negative ? " - " : " + ");
}

/* `first`: nothing of the sum is written yet. */
static void print_items(sym_printer *p, sym_items items, bool first)
{
    for (uint32_t i = 0; i < items.count; i++, first = false) {
        print_sign(p, sym_coef_sign(items.at[i].coef) < 0, first);
        print_item(p, &items.at[i], NULL, first);
    }
}

static void print_summands(sym_printer *p, etch_expr a)
{
    sym_scratch_mark mark = sym_scratch_top(p->sym);
    print_items(p, sym_arrange(p->sym, &p->style, a), true);
    sym_scratch_release(p->sym, mark);
}

static bool all_negative(const sym_items *items)
{
    for (uint32_t i = 0; i < items->count; i++)
        if (sym_coef_sign(items->at[i].coef) >= 0)
            return false;
    return true;
}

/* (num)/den as a summand, or -(-num)/den. */
static void print_fraction(sym_printer *p, etch_expr num, etch_expr den, bool first)
{
    etch_sym *sym = p->sym;
    sym_scratch_mark mark = sym_scratch_top(sym);
    sym_items items = sym_arrange(p->sym, &p->style, num);
    bool negative = all_negative(&items);
    print_sign(p, negative, first);
    if (items.count > 1) {
        if (negative)
            num = sym_neg(sym, num);
        /* as one factor, so that `print_item` decides about brackets */
        items = sym_arrange(p->sym, &p->style, num);
        sym_item *whole = sym_scratch_take(sym, 1, sizeof *whole);
        sym_items *sum = sym_scratch_take(sym, 1, sizeof *sum);
        *sum = items;
        *whole = (sym_item){.coef = ETCH_SYM_ONE, .mono = sym->unit, .group_count = 1, .groups = sum};
        items = (sym_items){whole, 1};
    }
    print_item(p, items.at, den, first);
    sym_scratch_release(sym, mark);
}

/* Whole + rest/den, or all of it over den when that is no longer. */
static void print_with_fraction(sym_printer *p, etch_expr a)
{
    etch_sym *sym = p->sym;
    sym_fraction x = sym_split(sym, a);
    if (x.num->count <= a->count) {
        print_fraction(p, x.num, x.den, true);
        return;
    }
    sym_terms *whole = sym_terms_new(sym);
    for (uint32_t i = 0; i < a->count; i++)
        if (!(a->terms[i].mono->flags & ETCH_SYM_HAS_RECIP))
            sym_terms_push(sym, whole, a->terms[i].mono, a->terms[i].coef);
    etch_expr Q = sym_terms_finish(sym, whole);
    print_summands(p, Q);
    print_fraction(p, sym_split(sym, sym_sub(sym, a, Q)).num, x.den, Q->count == 0);
}

void sym_print_sum(sym_printer *p, etch_expr a)
{
    if (p->out->length > ETCH_SYM_LONGEST_TEXT)
        sym_limit(p->sym);
    if (put_name(p, a))
        return;
    if (a->count == 0)
        print_number(p, ETCH_SYM_ZERO);
    else if (a->flags & ETCH_SYM_HAS_RECIP)
        print_with_fraction(p, a);
    else
        print_summands(p, a);
}

static void print_inner(sym_printer *p, etch_expr a)
{
    const etch_form form = p->style.form;
    const size_t start = p->out->length;
    if (a->depth >= KEPT_FROM && put_again(p, a))
        return;
    p->style.form = inner_form(p);
    sym_print_sum(p, a);
    p->style.form = form;
    if (a->depth >= KEPT_FROM)
        keep_text(p, a, start);
}

void sym_print_definition(sym_printer *p, const sym_atom *atom)
{
    if (atom->kind == ETCH_SYM_RECIP)
        print_inner(p, atom->args[0]);
    else
        print_opaque(p, atom, true);
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

/* Gives an empty buffer about the room that the text will take: growing copies. */
static void reserve(etch_expr a, etch_buf *out)
{
    enum { TERM = 10, POWER = 4 };
    if (out->capacity || !a)
        return;
    size_t length = TERM;
    for (uint32_t i = 0; i < a->count; i++)
        length += TERM + POWER * (size_t)a->terms[i].mono->count;
    out->text = etch_alloc(out->arena, length);
    out->capacity = length;
}

void etch_expr_write(etch_sym *sym, etch_expr a, etch_notation notation, etch_form form, etch_buf *out)
{
    sym_printer p = {.sym = sym, .n = sym_notation_of(notation), .style = {.form = form}, .out = out};
    reserve(a, out);
    if (p.n)
        p.style.rules = p.n->rules;
    if (!p.n)
        sym_print_json(sym, a, out);
    else if (a)
        sym_print_sum(&p, a);
    else
        etch_buf_puts(out, p.n->undefined);
}

void etch_expr_print(etch_sym *sym, etch_expr a, etch_buf *out)
{
    etch_expr_write(sym, a, ETCH_PLAIN, ETCH_SHORTEST, out);
}

const char *etch_expr_text(etch_sym *sym, etch_expr a)
{
    etch_buf out = {.arena = sym->arena};
    etch_expr_print(sym, a, &out);
    return out.text;
}
