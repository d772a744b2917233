/* Intervals: every operation rounds its low end down and its high end up, so that the value stays inside. */
#include "machine/machine_int.h"

/* bits; results are handed out as doubles, of 53 */
enum { PRECISION = 128 };

void etch_enclosure_start(etch_enclosure *range)
{
    mpfr_init2(range->low, PRECISION);
    mpfr_init2(range->high, PRECISION);
}

void etch_enclosure_end(etch_enclosure *range)
{
    mpfr_clear(range->low);
    mpfr_clear(range->high);
}

void etch_enclosure_count(etch_enclosure *out, uint64_t value)
{
    mpfr_set_uj(out->low, value, MPFR_RNDD);
    mpfr_set_uj(out->high, value, MPFR_RNDU);
}

void etch_enclosure_decimal(etch_enclosure *out, etch_decimal value)
{
    etch_enclosure power;
    etch_enclosure_start(&power);
    const unsigned long places = (unsigned long)(value.power < 0 ? -value.power : value.power);
    mpfr_ui_pow_ui(power.low, 10, places, MPFR_RNDD);
    mpfr_ui_pow_ui(power.high, 10, places, MPFR_RNDU);
    mpfr_set_sj(out->low, value.digits, MPFR_RNDD);
    mpfr_set_sj(out->high, value.digits, MPFR_RNDU);
    if (value.power < 0)
        etch_enclosure_div(out, out, &power);
    else
        etch_enclosure_mul(out, out, &power);
    etch_enclosure_end(&power);
}

void etch_enclosure_add(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b)
{
    mpfr_add(out->low, a->low, b->low, MPFR_RNDD);
    mpfr_add(out->high, a->high, b->high, MPFR_RNDU);
}

void etch_enclosure_mul(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b)
{
    mpfr_mul(out->low, a->low, b->low, MPFR_RNDD);
    mpfr_mul(out->high, a->high, b->high, MPFR_RNDU);
}

void etch_enclosure_div(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b)
{
    etch_enclosure result;
    etch_enclosure_start(&result);
    mpfr_div(result.low, a->low, b->high, MPFR_RNDD);
    mpfr_div(result.high, a->high, b->low, MPFR_RNDU);
    mpfr_swap(out->low, result.low);
    mpfr_swap(out->high, result.high);
    etch_enclosure_end(&result);
}

void etch_enclosure_scale(etch_enclosure *out, uint64_t by)
{
    etch_enclosure factor;
    etch_enclosure_start(&factor);
    etch_enclosure_count(&factor, by);
    etch_enclosure_mul(out, out, &factor);
    etch_enclosure_end(&factor);
}

/* base^exponent, both above 0: below 1 a larger exponent makes it smaller. */
static void power(etch_enclosure *out, const etch_enclosure *base, const etch_enclosure *exponent)
{
    const bool low_shrinks = mpfr_cmp_ui(base->low, 1) < 0, high_shrinks = mpfr_cmp_ui(base->high, 1) < 0;
    mpfr_pow(out->low, base->low, low_shrinks ? exponent->high : exponent->low, MPFR_RNDD);
    mpfr_pow(out->high, base->high, high_shrinks ? exponent->low : exponent->high, MPFR_RNDU);
}

void etch_enclosure_norm(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b,
                         const etch_enclosure *p)
{
    /* large * (1 + (small/large)^p)^(1/p): no power overflows, whatever p is. The formula is the same
     * whichever of the two is called large, so that one end of the intervals may decide that. */
    const bool swapped = mpfr_less_p(a->low, b->low);
    const etch_enclosure *large = swapped ? b : a, *small = swapped ? a : b;
    if (mpfr_zero_p(small->high)) {
        mpfr_set(out->low, large->low, MPFR_RNDD);
        mpfr_set(out->high, large->high, MPFR_RNDU);
        return;
    }
    etch_enclosure one, part, root;
    etch_enclosure_start(&one);
    etch_enclosure_start(&part);
    etch_enclosure_start(&root);
    etch_enclosure_count(&one, 1);
    etch_enclosure_div(&part, small, large);
    power(&part, &part, p);
    etch_enclosure_add(&part, &part, &one);
    etch_enclosure_div(&root, &one, p);
    power(&part, &part, &root);
    etch_enclosure_mul(out, &part, large);
    etch_enclosure_end(&one);
    etch_enclosure_end(&part);
    etch_enclosure_end(&root);
}

void etch_enclosure_max(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b)
{
    mpfr_max(out->low, a->low, b->low, MPFR_RNDD);
    mpfr_max(out->high, a->high, b->high, MPFR_RNDU);
}

void etch_enclosure_min(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b)
{
    mpfr_min(out->low, a->low, b->low, MPFR_RNDD);
    mpfr_min(out->high, a->high, b->high, MPFR_RNDU);
}

etch_seconds etch_enclosure_seconds(const etch_enclosure *range)
{
    return (etch_seconds){mpfr_get_d(range->low, MPFR_RNDD), mpfr_get_d(range->high, MPFR_RNDU)};
}
