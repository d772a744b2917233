/* What a sum of fractions is divided by. */
#include "symbolic/text/text_int.h"

sym_term sym_denominator(etch_sym *sym, etch_expr a)
{
    sym_coef unit_fraction = ETCH_SYM_ONE;
    for (uint32_t i = 0; i < a->count; i++)
        unit_fraction =
            sym_coef_gcd(sym, unit_fraction, sym_coef_inv(sym, sym_coef_denominator(sym, a->terms[i].coef)));
    return (sym_term){sym_mono_pow(sym, sym_mono_below(sym, a), -1), sym_coef_inv(sym, unit_fraction)};
}

sym_fraction sym_over_denominator(etch_sym *sym, etch_expr a)
{
    sym_fraction x = sym_split(sym, a);
    sym_term n = sym_denominator(sym, x.num);
    x.num = sym_scale(sym, x.num, n.mono, n.coef);
    x.den = sym_scale(sym, x.den, n.mono, n.coef);
    return x;
}
