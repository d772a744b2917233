/* Sums, products and powers. Expressions with an atom 1/(sum) go through fractions: see fraction.c. */
#include "symbolic/symbolic_int.h"

static etch_expr recall(etch_sym *sym, sym_operation operation, etch_expr a, etch_expr b);

static bool has_recip(etch_expr a)
{
    return a->flags & ETCH_SYM_HAS_RECIP;
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

/* a + coef * b for fractions: over a common denominator. */
static etch_expr add_fractions(etch_sym *sym, etch_expr a, etch_expr b, sym_coef coef)
{
    sym_fraction x = sym_split(sym, a), y = sym_split(sym, sym_scale(sym, b, sym->unit, coef));
    if (x.den == y.den)
        return sym_join(sym, sym_add(sym, x.num, y.num), x.den);
    etch_expr num = sym_add(sym, sym_mul_plain(sym, x.num, y.den), sym_mul_plain(sym, y.num, x.den));
    return sym_join(sym, num, sym_mul_plain(sym, x.den, y.den));
}

/* a + coef * b */
static etch_expr add_scaled(etch_sym *sym, etch_expr a, etch_expr b, sym_coef coef)
{
    if (b->count == 0)
        return a;
    if (a->count == 0)
        return sym_scale(sym, b, sym->unit, coef);
    if (has_recip(a) || has_recip(b))
        return add_fractions(sym, a, b, coef);
    sym_terms *out = sym_terms_new(sym);
    sym_terms_add_scaled(sym, out, a->terms, a->count, b->terms, b->count, sym->unit, coef);
    return sym_terms_finish(sym, out);
}

etch_expr sym_add(etch_sym *sym, etch_expr a, etch_expr b)
{
    if (a->count == 0 || b->count == 0)
        return a->count == 0 ? b : a;
    return a->id < b->id ? recall(sym, ETCH_SYM_OP_ADD, a, b) : recall(sym, ETCH_SYM_OP_ADD, b, a);
}

etch_expr sym_sub(etch_sym *sym, etch_expr a, etch_expr b)
{
    return a == b ? sym->zero : recall(sym, ETCH_SYM_OP_SUB, a, b);
}

etch_expr sym_add_int(etch_sym *sym, etch_expr a, int64_t b)
{
    return sym_add(sym, a, sym_constant(sym, sym_coef_of(sym, b, 1)));
}

etch_expr sym_scale(etch_sym *sym, etch_expr a, const sym_mono *mono, sym_coef coef)
{
    if (sym_coef_is_zero(coef))
        return sym->zero;
    if (mono->count == 0 && sym_coef_is_one(coef))
        return a;
    if (a->count == 1)
        return sym_monomial(sym, sym_mono_mul(sym, a->terms[0].mono, mono),
                            sym_coef_mul(sym, a->terms[0].coef, coef));
    sym_terms *out = sym_terms_new(sym);
    sym_terms_add_scaled(sym, out, NULL, 0, a->terms, a->count, mono, coef);
    return sym_terms_finish(sym, out);
}

etch_expr sym_neg(etch_sym *sym, etch_expr a)
{
    return sym_scale(sym, a, sym->unit, ETCH_SYM_MINUS_ONE);
}

/* ---- products ------------------------------------------------------------------------------------------ */

etch_expr sym_mul_plain(etch_sym *sym, etch_expr a, etch_expr b)
{
    if (a->count == 0 || b->count == 0)
        return sym->zero;
    if (a->count == 1)
        return sym_scale(sym, b, a->terms[0].mono, a->terms[0].coef);
    if (b->count == 1)
        return sym_scale(sym, a, b->terms[0].mono, b->terms[0].coef);
    return sym_mul_sums(sym, a, b);
}

static etch_expr multiply(etch_sym *sym, etch_expr a, etch_expr b)
{
    if (!has_recip(a) && !has_recip(b))
        return sym_mul_plain(sym, a, b);
    if (sym_is_constant(a))
        return sym_scale(sym, b, sym->unit, sym_constant_of(a));
    if (sym_is_constant(b))
        return sym_scale(sym, a, sym->unit, sym_constant_of(b));
    sym_fraction x = sym_split(sym, a), y = sym_split(sym, b);
    return sym_join(sym, sym_mul_plain(sym, x.num, y.num), sym_mul_plain(sym, x.den, y.den));
}

/* operation(a, b), looked up or done. */
static etch_expr recall(etch_sym *sym, sym_operation operation, etch_expr a, etch_expr b)
{
    etch_expr result = sym_recent_get(sym, operation, a, b);
    if (!result) {
        result = operation == ETCH_SYM_OP_MUL   ? multiply(sym, a, b)
                 : operation == ETCH_SYM_OP_DIV ? sym_div(sym, a, b)
                 : operation == ETCH_SYM_OP_ADD ? add_scaled(sym, a, b, ETCH_SYM_ONE)
                                                : add_scaled(sym, a, b, ETCH_SYM_MINUS_ONE);
        sym_recent_put(sym, operation, a, b, result);
    }
    return result;
}

etch_expr sym_mul(etch_sym *sym, etch_expr a, etch_expr b)
{
    if (a == sym->one || b == sym->one) /* every third product that is asked for */
        return a == sym->one ? b : a;
    return a->id < b->id ? recall(sym, ETCH_SYM_OP_MUL, a, b) : recall(sym, ETCH_SYM_OP_MUL, b, a);
}

/* ---- powers -------------------------------------------------------------------------------------------- */

static etch_expr positive_power(etch_sym *sym, etch_expr a, uint64_t exponent)
{
    etch_expr result = sym->one;
    while (exponent) {
        if (exponent & 1)
            result = sym_mul(sym, result, a);
        exponent >>= 1;
        if (exponent)
            a = sym_mul(sym, a, a);
    }
    return result;
}

etch_expr sym_pow(etch_sym *sym, etch_expr a, int64_t exponent)
{
    if (exponent == 0)
        return sym->one;
    if (a->count == 0)
        return exponent < 0 ? NULL : a;
    if (a->count == 1 && !has_recip(a)) {
        const sym_term *term = &a->terms[0];
        return sym_monomial(sym, sym_mono_pow(sym, term->mono, exponent),
                            sym_coef_pow(sym, term->coef, exponent));
    }
    (void)sym_checked_exponent(sym, exponent);
    if (exponent < 0)
        return sym_div(sym, sym->one, positive_power(sym, a, (uint64_t)-exponent));
    return positive_power(sym, a, (uint64_t)exponent);
}

/* ---- contents ------------------------------------------------------------------------------------------ */

sym_coef sym_content(etch_sym *sym, etch_expr a)
{
    sym_coef content = ETCH_SYM_ZERO;
    for (uint32_t i = 0; i < a->count; i++)
        content = sym_coef_gcd(sym, content, a->terms[i].coef);
    return content;
}

const sym_mono *sym_mono_content(etch_sym *sym, etch_expr a)
{
    if (a->count == 0)
        return sym->unit;
    const sym_mono *content = a->terms[0].mono;
    for (uint32_t i = 1; i < a->count; i++)
        content = sym_mono_meet(sym, content, a->terms[i].mono, -1);
    return content;
}

const sym_mono *sym_mono_below(etch_sym *sym, etch_expr a)
{
    const sym_mono *below = sym->unit;
    for (uint32_t i = 0; (a->flags & ETCH_SYM_HAS_NEGATIVE) && i < a->count; i++)
        below = sym_mono_meet(sym, below, sym_mono_part(sym, a->terms[i].mono, -1), -1);
    return below;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

/* Brings two operands into canonical form; false when one is undefined. */
static bool ready(etch_sym *sym, etch_expr *a, etch_expr *b)
{
    *a = sym_refresh(sym, *a);
    *b = sym_refresh(sym, *b);
    return *a && *b;
}

etch_expr etch_add(etch_sym *sym, etch_expr a, etch_expr b)
{
    return ready(sym, &a, &b) ? sym_add(sym, a, b) : NULL;
}

etch_expr etch_sub(etch_sym *sym, etch_expr a, etch_expr b)
{
    return ready(sym, &a, &b) ? sym_sub(sym, a, b) : NULL;
}

etch_expr etch_mul(etch_sym *sym, etch_expr a, etch_expr b)
{
    return ready(sym, &a, &b) ? sym_mul(sym, a, b) : NULL;
}

etch_expr etch_div(etch_sym *sym, etch_expr a, etch_expr b)
{
    return ready(sym, &a, &b) && b->count ? recall(sym, ETCH_SYM_OP_DIV, a, b) : NULL;
}

etch_expr etch_neg(etch_sym *sym, etch_expr a)
{
    a = sym_refresh(sym, a);
    return a ? sym_neg(sym, a) : NULL;
}

etch_expr etch_pow(etch_sym *sym, etch_expr a, int64_t exponent)
{
    a = sym_refresh(sym, a);
    return a ? sym_pow(sym, a, exponent) : NULL;
}

etch_expr etch_sum(etch_sym *sym, uint32_t count, const etch_expr *terms)
{
    sym_terms *out = sym_terms_new(sym);
    etch_expr fractions = sym->zero;
    for (uint32_t i = 0; i < count; i++) {
        etch_expr term = sym_refresh(sym, terms[i]);
        if (!term) {
            sym_terms_free(sym, out);
            return NULL;
        }
        if (has_recip(term))
            fractions = sym_add(sym, fractions, term);
        else
            sym_terms_push_all(sym, out, term);
    }
    return sym_add(sym, sym_terms_collect(sym, out), fractions);
}
