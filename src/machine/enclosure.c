/* Intervals: every operation rounds its low end down and its high end up, so that the value stays inside. */
#include "machine/machine_int.h"

#include <float.h>
#include <math.h>

/* bits; results are handed out as doubles, of 53 */
enum { PRECISION = 128 };

void etch_enclosure_start(etch_enclosure *range, bool is_quick)
{
    range->is_quick = is_quick;
    range->below = range->above = 0;
    if (is_quick)
        return;
    mpfr_init2(range->low, PRECISION);
    mpfr_init2(range->high, PRECISION);
}

void etch_enclosure_end(etch_enclosure *range)
{
    if (range->is_quick)
        return;
    mpfr_clear(range->low);
    mpfr_clear(range->high);
}

/* ---- doubles ------------------------------------------------------------------------------------------- */

/* Ends that were rounded to the nearest double, by 2^-53 of them at most, and the product that moves them
 * out by as much again; or, of powers, by what the C library may be off. Those of glibc and musl are off by
 * less than 2^-52. */
#define ROUNDED 0x1p-51
#define POWER 0x1p-49

static void set_ends(etch_enclosure *out, double below, double above, double by)
{
    /* DBL_MIN: of ends that are so small that they have fewer bits */
    below = below * (1 - by) - DBL_MIN;
    out->below = below > 0 ? below : 0;
    out->above = above * (1 + by) + DBL_MIN;
}

static void set_decimal(etch_enclosure *out, etch_decimal value)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const uint32_t places = (uint32_t)(value.power < 0 ? -(int64_t)value.power : value.power);
    const bool is_exact = places < sizeof powers / sizeof *powers;
    const double power = is_exact ? powers[places] : pow(10, places), digits = (double)value.digits;
    const double number = value.power < 0 ? digits / power : digits * power;
    set_ends(out, number, number, is_exact ? 2 * ROUNDED : POWER);
    if (places > DBL_MAX_10_EXP) {
        out->below = 0;
        out->above = HUGE_VAL;
    }
}

/* ---- what is written into the interval ----------------------------------------------------------------- */

void etch_enclosure_count(etch_enclosure *out, uint64_t value)
{
    if (out->is_quick) {
        set_ends(out, (double)value, (double)value, ROUNDED);
        return;
    }
    mpfr_set_uj(out->low, value, MPFR_RNDD);
    mpfr_set_uj(out->high, value, MPFR_RNDU);
}

void etch_enclosure_decimal(etch_enclosure *out, etch_decimal value)
{
    etch_enclosure power;
    if (out->is_quick) {
        set_decimal(out, value);
        return;
    }
    etch_enclosure_start(&power, false);
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

/* ---- operations ---------------------------------------------------------------------------------------- */

void etch_enclosure_add(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b)
{
    if (out->is_quick) {
        set_ends(out, a->below + b->below, a->above + b->above, ROUNDED);
        return;
    }
    mpfr_add(out->low, a->low, b->low, MPFR_RNDD);
    mpfr_add(out->high, a->high, b->high, MPFR_RNDU);
}

void etch_enclosure_mul(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b)
{
    if (out->is_quick) {
        set_ends(out, a->below * b->below, a->above * b->above, ROUNDED);
        return;
    }
    mpfr_mul(out->low, a->low, b->low, MPFR_RNDD);
    mpfr_mul(out->high, a->high, b->high, MPFR_RNDU);
}

void etch_enclosure_div(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b)
{
    etch_enclosure result;
    if (out->is_quick) {
        set_ends(out, a->below / b->above, a->above / b->below, ROUNDED);
        return;
    }
    etch_enclosure_start(&result, false);
    mpfr_div(result.low, a->low, b->high, MPFR_RNDD);
    mpfr_div(result.high, a->high, b->low, MPFR_RNDU);
    mpfr_swap(out->low, result.low);
    mpfr_swap(out->high, result.high);
    etch_enclosure_end(&result);
}

void etch_enclosure_scale(etch_enclosure *out, uint64_t by)
{
    etch_enclosure factor;
    etch_enclosure_start(&factor, out->is_quick);
    etch_enclosure_count(&factor, by);
    etch_enclosure_mul(out, out, &factor);
    etch_enclosure_end(&factor);
}

/* base^exponent, both above 0: below 1 a larger exponent makes it smaller. */
static void power(etch_enclosure *out, const etch_enclosure *base, const etch_enclosure *exponent)
{
    if (out->is_quick) {
        set_ends(out, pow(base->below, base->below < 1 ? exponent->above : exponent->below),
                 pow(base->above, base->above < 1 ? exponent->below : exponent->above), POWER);
        return;
    }
    const bool low_shrinks = mpfr_cmp_ui(base->low, 1) < 0, high_shrinks = mpfr_cmp_ui(base->high, 1) < 0;
    mpfr_pow(out->low, base->low, low_shrinks ? exponent->high : exponent->low, MPFR_RNDD);
    mpfr_pow(out->high, base->high, high_shrinks ? exponent->low : exponent->high, MPFR_RNDU);
}

static bool is_less(const etch_enclosure *a, const etch_enclosure *b)
{
    return a->is_quick ? a->below < b->below : mpfr_less_p(a->low, b->low) != 0;
}

void etch_enclosure_norm(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b,
                         const etch_enclosure *p)
{
    /* large * (1 + (small/large)^p)^(1/p): no power overflows, whatever p is. The formula is the same
     * whichever of the two is called large, so that one end of the intervals may decide that. */
    const bool swapped = is_less(a, b), is_quick = out->is_quick;
    const etch_enclosure *large = swapped ? b : a, *small = swapped ? a : b;
    if (!is_quick && mpfr_zero_p(small->high)) {
        mpfr_set(out->low, large->low, MPFR_RNDD);
        mpfr_set(out->high, large->high, MPFR_RNDU);
        return;
    }
    etch_enclosure one, part, root;
    etch_enclosure_start(&one, is_quick);
    etch_enclosure_start(&part, is_quick);
    etch_enclosure_start(&root, is_quick);
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
    if (out->is_quick) {
        out->below = a->below > b->below ? a->below : b->below;
        out->above = a->above > b->above ? a->above : b->above;
        return;
    }
    mpfr_max(out->low, a->low, b->low, MPFR_RNDD);
    mpfr_max(out->high, a->high, b->high, MPFR_RNDU);
}

void etch_enclosure_min(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b)
{
    if (out->is_quick) {
        out->below = a->below < b->below ? a->below : b->below;
        out->above = a->above < b->above ? a->above : b->above;
        return;
    }
    mpfr_min(out->low, a->low, b->low, MPFR_RNDD);
    mpfr_min(out->high, a->high, b->high, MPFR_RNDU);
}

etch_seconds etch_enclosure_seconds(const etch_enclosure *range)
{
    return (etch_seconds){mpfr_get_d(range->low, MPFR_RNDD), mpfr_get_d(range->high, MPFR_RNDU)};
}
