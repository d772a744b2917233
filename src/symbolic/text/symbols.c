/* How many symbols a text takes: names, numbers, operators and brackets, as in the plain notation; so a sum
 * is arranged in the same way in all notations. */
#include "symbolic/text/text_int.h"

/* Counts stop here: what a DAG says in full may be longer than any number. The longest sum of such counts is
 * within int64_t, and a count within a pointer of 32 bits. */
#define MOST_SYMBOLS (UINT64_C(1) << 30)

static uint64_t symbols_of_sum(etch_sym *sym, sym_style *style, etch_expr a);

static uint64_t at_most(uint64_t symbols)
{
    return symbols < MOST_SYMBOLS ? symbols : MOST_SYMBOLS;
}

/* As one factor: in brackets unless it is a number, a variable or a call. */
static uint64_t symbols_of_factor(etch_sym *sym, sym_style *style, etch_expr a)
{
    const sym_atom *atom = sym_atom_of(a);
    if (atom && atom->kind != ETCH_SYM_RECIP)
        return sym_symbols_of_atom(sym, style, atom);
    return symbols_of_sum(sym, style, a) + (sym_is_constant(a) ? 0 : 2);
}

/* N/n for a sum of fractions. */
static uint64_t symbols_of_ratio(etch_sym *sym, sym_style *style, etch_expr a)
{
    sym_fraction x = sym_over_denominator(sym, a);
    if (x.den == sym->one || (a->count < 2 && !(a->flags & ETCH_SYM_HAS_RECIP)))
        return symbols_of_sum(sym, style, a);
    return symbols_of_factor(sym, style, x.num) + 1 + symbols_of_factor(sym, style, x.den);
}

static uint64_t symbols_of_call(etch_sym *sym, sym_style *style, const sym_atom *atom)
{
    uint64_t symbols = 2; /* name, brackets and commas */
    for (uint32_t i = 0; i < atom->count; i++)
        symbols += 1 + symbols_of_sum(sym, style, atom->args[i]);
    return symbols;
}

static uint64_t symbols_of_opaque(etch_sym *sym, sym_style *style, const sym_atom *atom)
{
    switch (atom->kind) {
    case ETCH_SYM_VAR:
        return 1;
    case ETCH_SYM_FLOOR:
    case ETCH_SYM_POW2:
    case ETCH_SYM_SHOWN_CEIL:
        return 3 + symbols_of_ratio(sym, style, atom->args[0]);
    case ETCH_SYM_SHOWN_MOD:
        return 3 + symbols_of_factor(sym, style, atom->args[0]) +
               symbols_of_factor(sym, style, atom->args[1]);
    case ETCH_SYM_RECIP:
        return 2 + symbols_of_factor(sym, style, atom->args[0]);
    case ETCH_SYM_SUM:
        return 8 + symbols_of_sum(sym, style, atom->args[0]) + symbols_of_sum(sym, style, atom->args[1]);
    case ETCH_SYM_MAX:
    case ETCH_SYM_SHOWN_MAX:
    case ETCH_SYM_SHOWN_MIN:
    case ETCH_SYM_SHOWN_ABS:
    case ETCH_SYM_SHOWN_BRACKET:
        break;
    }
    return symbols_of_call(sym, style, atom);
}

/* What the memo has of a key, less 1; or counts. */
static bool known_symbols(const sym_style *style, const void *key, uint64_t *symbols)
{
    const void *known = sym_memo_get(&style->symbols, key);
    *symbols = known ? (uint64_t)(uintptr_t)known - 1 : 0;
    return known;
}

uint64_t sym_symbols_of_atom(etch_sym *sym, sym_style *style, const sym_atom *atom)
{
    uint64_t symbols;
    if (atom->kind == ETCH_SYM_VAR || (style->names && sym_memo_get(style->names, atom)))
        return 1;
    if (known_symbols(style, atom, &symbols))
        return symbols;
    symbols = at_most(symbols_of_opaque(sym, style, atom));
    sym_memo_put(sym, &style->symbols, atom, (const void *)(uintptr_t)(symbols + 1));
    return symbols;
}

/* Of a sum inside a function, as if nothing in it were recovered or factored: the same for all that are
 * compared, and arranging what is not written in the end would take most of the time. */
static uint64_t symbols_of_sum(etch_sym *sym, sym_style *style, etch_expr a)
{
    uint64_t symbols;
    if (a->count == 0 || known_symbols(style, a, &symbols))
        return a->count == 0 ? 1 : symbols;
    bool starts_with_minus = true;
    symbols = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        starts_with_minus = starts_with_minus && sym_coef_sign(a->terms[i].coef) < 0;
        symbols += sym_symbols_of_term(sym, style, a->terms[i].mono, a->terms[i].coef);
    }
    symbols = at_most(symbols + starts_with_minus - 1);
    sym_memo_put(sym, &style->symbols, a, (const void *)(uintptr_t)(symbols + 1));
    return symbols;
}

/* ---- summands ------------------------------------------------------------------------------------------ */

/* Of coef * mono * `groups` more factors, which take `inside` symbols. */
static uint64_t symbols_of_product(etch_sym *sym, sym_style *style, const sym_mono *mono, sym_coef coef,
                                   uint32_t groups, uint64_t inside)
{
    uint64_t symbols = 1 + inside;
    uint32_t above = groups, below = 0;
    sym_coef num = sym_coef_abs(sym, sym_coef_numerator(sym, coef));
    bool divided = !sym_coef_is_integer(coef);
    symbols += (uint64_t)divided + !sym_coef_is_one(num);
    above += !sym_coef_is_one(num);
    below += divided;
    for (uint32_t i = 0; i < mono->count; i++) {
        int32_t exp = mono->at[i].exp;
        symbols += sym_symbols_of_atom(sym, style, mono->at[i].atom) + (exp == 1 || exp == -1 ? 0 : 2);
        above += exp > 0;
        below += exp < 0;
    }
    symbols += above == 0;
    above += above == 0;
    return at_most(symbols + above + below - 1 + (below > 1 ? 2 : 0));
}

uint64_t sym_symbols_of_term(etch_sym *sym, sym_style *style, const sym_mono *mono, sym_coef coef)
{
    return sym_coef_is_zero(coef) ? 0 : symbols_of_product(sym, style, mono, coef, 0, 0);
}

uint64_t sym_symbols_of_item(etch_sym *sym, sym_style *style, const sym_item *it)
{
    uint64_t inside = 0;
    for (uint32_t i = 0; i < it->group_count; i++)
        inside += 2 + sym_symbols_of_items(sym, style, it->groups[i]);
    return symbols_of_product(sym, style, it->mono, it->coef, it->group_count, inside);
}

uint64_t sym_symbols_of_items(etch_sym *sym, sym_style *style, sym_items items)
{
    uint64_t symbols = 0;
    for (uint32_t i = 0; i < items.count; i++)
        symbols += sym_symbols_of_item(sym, style, &items.at[i]);
    /* the first has a sign only if that is a minus */
    return symbols - (items.count > 0 && sym_coef_sign(items.at[0].coef) > 0);
}
