/* Rational numbers: machine words while they fit, GMP after.
 *
 * Limbs of large numbers live in the arena and are shown to GMP as read-only views. GMP works in
 * temporaries of its own, blocks of the account (gmp_memory.c); room for a result is reserved before they are
 * made. */
#include <string.h>

#include "symbolic/symbolic_int.h"

_Static_assert(sizeof(mp_limb_t) == 8 && GMP_NAIL_BITS == 0, "limbs are words of 64 bits");

typedef sym_wide wide;
__extension__ typedef unsigned __int128 unsigned_wide;

static uint64_t magnitude(int64_t a)
{
    return a < 0 ? -(uint64_t)a : (uint64_t)a;
}

static uint64_t gcd_words(uint64_t a, uint64_t b)
{
    if (a <= 1 || b <= 1) /* often: gcd(0, b) = b */
        return a == 0 || b == 0 ? a | b : 1;
    int shift = __builtin_ctzll(a | b);
    a >>= __builtin_ctzll(a);
    while (b) {
        b >>= __builtin_ctzll(b);
        if (a > b) {
            uint64_t swap = a;
            a = b;
            b = swap;
        }
        b -= a;
    }
    return a << shift;
}

static bool fits(wide a)
{
    return a <= INT64_MAX && a >= -INT64_MAX;
}

/* Division of two words is a library call, and most numbers are one. */
static wide quotient(wide a, int64_t by)
{
    return by == 1 ? a : fits(a) ? (int64_t)a / by : a / by;
}

static uint64_t rest_of(wide a, int64_t by)
{
    return fits(a) ? magnitude((int64_t)a) % (uint64_t)by : (uint64_t)((a < 0 ? -a : a) % by);
}

/* ---- large numbers ------------------------------------------------------------------------------------- */

/* A number as GMP sees it. */
typedef struct view {
    mpz_t num, den;
    mp_limb_t num_limb, den_limb;
} view;

static void view_of(view *v, sym_coef a)
{
    if (sym_coef_is_small(a)) {
        v->num_limb = magnitude(a.num);
        v->den_limb = (mp_limb_t)a.den;
        mpz_roinit_n(v->num, &v->num_limb, a.num > 0 ? 1 : a.num < 0 ? -1 : 0);
        mpz_roinit_n(v->den, &v->den_limb, 1);
    } else {
        mpz_roinit_n(v->num, a.big->num, a.big->num_size);
        mpz_roinit_n(v->den, a.big->den, a.big->den_size);
    }
}

static void begin_gmp(etch_sym *sym)
{
    sym_gmp_begin(etch_arena_mem(sym->arena));
}

static size_t num_limbs(sym_coef a)
{
    return !sym_coef_is_small(a) ? (size_t)(a.big->num_size < 0 ? -a.big->num_size : a.big->num_size)
                                 : a.num != 0;
}

static size_t den_limbs(sym_coef a)
{
    return sym_coef_is_small(a) ? 1 : (size_t)a.big->den_size;
}

bool sym_coef_is_power_of_two(sym_coef a)
{
    if (!sym_coef_is_integer(a) || sym_coef_sign(a) <= 0)
        return false;
    return sym_coef_is_small(a) ? (a.num & (a.num - 1)) == 0
                                : mpn_popcount(a.big->num, (mp_size_t)num_limbs(a)) == 1;
}

uint32_t sym_coef_twos(sym_coef a)
{
    return sym_coef_is_small(a) ? (uint32_t)__builtin_ctzll((unsigned long long)a.num)
                                : (uint32_t)mpn_scan1(a.big->num, 0);
}

uint32_t sym_coef_limbs(sym_coef a)
{
    return sym_coef_is_small(a) ? 1 : (uint32_t)(num_limbs(a) + den_limbs(a));
}

static void too_many_digits(etch_sym *sym) ETCH_NORETURN;
static void too_many_digits(etch_sym *sym)
{
    sym_limit_of(sym, "digits of one number", sym->limits.digits);
}

/* Makes sure that a number of `limbs` limbs, numerator and denominator together, can be stored without a
 * trap. */
static void reserve(etch_sym *sym, size_t limbs)
{
    if (limbs > 4 * (size_t)sym->most_limbs + 8)
        too_many_digits(sym);
    if (sym->limbs_left >= limbs + 8)
        return;
    size_t room = limbs + 8 < 256 ? 256 : limbs + 8;
    sym->limbs = sym->limbs_in_scratch ? sym_scratch_take(sym, room, sizeof(mp_limb_t))
                                       : ETCH_NEW_ARRAY(sym->arena, room, mp_limb_t);
    sym->limbs_left = room;
}

sym_limb_mark sym_limbs_begin(etch_sym *sym)
{
    sym_limb_mark mark = {sym_scratch_top(sym), sym->limbs, sym->limbs_left, sym->limbs_in_scratch};
    sym->limbs_in_scratch = true;
    sym->limbs_left = 0;
    return mark;
}

static void *take_limbs(etch_sym *sym, size_t count)
{
    mp_limb_t *at = sym->limbs;
    sym->limbs += count;
    sym->limbs_left -= count;
    return at;
}

static mp_limb_t *copy_limbs(etch_sym *sym, const mp_limb_t *limbs, size_t count)
{
    mp_limb_t *at = take_limbs(sym, count);
    memcpy(at, limbs, count * sizeof *at);
    return at;
}

sym_coef sym_limbs_end(etch_sym *sym, sym_limb_mark mark, sym_coef result)
{
    sym->limbs = mark.limbs;
    sym->limbs_left = mark.limbs_left;
    sym->limbs_in_scratch = mark.in_scratch;
    if (!sym_coef_is_small(result)) {
        size_t num = num_limbs(result), den = den_limbs(result);
        reserve(sym, num + den);
        sym_big *big = take_limbs(sym, 4);
        *big = *result.big;
        big->num = copy_limbs(sym, result.big->num, num);
        big->den = copy_limbs(sym, result.big->den, den);
        result.big = big;
    }
    /* what an enclosing evaluation took there just now stays */
    if (!mark.in_scratch)
        sym_scratch_release(sym, mark.scratch);
    return result;
}

static mp_limb_t *store_limbs(etch_sym *sym, mpz_srcptr a)
{
    size_t size = mpz_size(a);
    mp_limb_t *at = take_limbs(sym, size);
    memcpy(at, mpz_limbs_read(a), size * sizeof *at);
    return at;
}

static bool word_of(mpz_srcptr a, int64_t *value)
{
    if (mpz_size(a) > 1 || mpz_getlimbn(a, 0) > INT64_MAX)
        return false;
    int64_t word = (int64_t)mpz_getlimbn(a, 0);
    *value = mpz_sgn(a) < 0 ? -word : word;
    return true;
}

/* What was begun ends: the temporaries that hold a result. */
static void end_gmp(mpz_ptr num, mpz_ptr den)
{
    mpz_clears(num, den, NULL);
    sym_gmp_end();
}

/* num/den in lowest terms, den > 0, within what was reserved. Ends what begin_gmp began. */
static sym_coef store(etch_sym *sym, mpz_ptr num, mpz_ptr den)
{
    sym_coef result;
    if (word_of(num, &result.num) && word_of(den, &result.den)) {
        end_gmp(num, den);
        return result;
    }
    bool too_long = mpz_size(num) > sym->most_limbs || mpz_size(den) > sym->most_limbs;
    const uint64_t limbs = mpz_size(num) + mpz_size(den);
    if (!too_long) {
        _Static_assert(sizeof(sym_big) <= 4 * sizeof(mp_limb_t), "`reserve` leaves room for the header");
        sym_big *big = take_limbs(sym, 4);
        big->num_size = (int32_t)mpz_size(num) * mpz_sgn(num);
        big->den_size = (int32_t)mpz_size(den);
        big->num = store_limbs(sym, num);
        big->den = store_limbs(sym, den);
        result.big = big;
        result.den = 0;
    }
    end_gmp(num, den);
    if (too_long)
        too_many_digits(sym);
    sym_count_work(sym, ETCH_SYM_WORK_OF_LIMB * limbs);
    return result;
}

/* The same when num/den may have common factors or den < 0. */
static sym_coef store_reduced(etch_sym *sym, mpz_ptr num, mpz_ptr den)
{
    mpz_t common;
    mpz_init(common);
    mpz_gcd(common, num, den);
    if (mpz_sgn(den) < 0)
        mpz_neg(common, common);
    mpz_divexact(num, num, common);
    mpz_divexact(den, den, common);
    mpz_clear(common);
    return store(sym, num, den);
}

static sym_coef big_add(etch_sym *sym, sym_coef a, sym_coef b)
{
    reserve(sym, num_limbs(a) + num_limbs(b) + 2 * (den_limbs(a) + den_limbs(b)) + 2);
    view x, y;
    view_of(&x, a);
    view_of(&y, b);
    mpz_t num, den;
    begin_gmp(sym);
    mpz_inits(num, den, NULL);
    mpz_mul(num, x.num, y.den);
    mpz_addmul(num, y.num, x.den);
    mpz_mul(den, x.den, y.den);
    return store_reduced(sym, num, den);
}

static sym_coef big_mul(etch_sym *sym, sym_coef a, sym_coef b)
{
    reserve(sym, num_limbs(a) + num_limbs(b) + den_limbs(a) + den_limbs(b));
    sym_count_work(sym, (num_limbs(a) + den_limbs(a)) * (num_limbs(b) + den_limbs(b)));
    view x, y;
    view_of(&x, a);
    view_of(&y, b);
    mpz_t num, den;
    begin_gmp(sym);
    mpz_inits(num, den, NULL);
    mpz_mul(num, x.num, y.num);
    mpz_mul(den, x.den, y.den);
    return store_reduced(sym, num, den);
}

/* ---- arithmetic ---------------------------------------------------------------------------------------- */

static sym_coef wide_coef(etch_sym *sym, wide num, int64_t den)
{
    if (fits(num))
        return (sym_coef){.num = (int64_t)num, .den = den};
    reserve(sym, 4);
    unsigned_wide size = num < 0 ? -(unsigned_wide)num : (unsigned_wide)num;
    mp_limb_t limbs[2] = {(mp_limb_t)size, (mp_limb_t)(size >> 64)};
    mpz_t whole, n, d;
    begin_gmp(sym);
    mpz_init_set(n, mpz_roinit_n(whole, limbs, num < 0 ? -2 : 2));
    mpz_init_set_si(d, den);
    return store(sym, n, d);
}

sym_coef sym_coef_of_wide(etch_sym *sym, sym_wide value)
{
    return wide_coef(sym, value, 1);
}

sym_coef sym_coef_of(etch_sym *sym, int64_t num, int64_t den)
{
    if (den == 1 && num != INT64_MIN)
        return (sym_coef){.num = num, .den = 1};
    uint64_t common = gcd_words(magnitude(num), magnitude(den));
    wide n = num, d = den;
    if (d < 0) {
        n = -n;
        d = -d;
    }
    if (common > 1) {
        n /= common;
        d /= common;
    }
    if (d <= INT64_MAX)
        return wide_coef(sym, n, (int64_t)d);
    return sym_coef_inv(sym, wide_coef(sym, n < 0 ? -d : d, (int64_t)(n < 0 ? -n : n)));
}

sym_coef sym_coef_add(etch_sym *sym, sym_coef a, sym_coef b)
{
    if (!sym_coef_is_small(a) || !sym_coef_is_small(b))
        return big_add(sym, a, b);
    int64_t word;
    if (a.den == 1 && b.den == 1 && !__builtin_add_overflow(a.num, b.num, &word) && word != INT64_MIN)
        return (sym_coef){.num = word, .den = 1};
    /* over the least common denominator; what can still be cancelled divides gcd(a.den, b.den) */
    int64_t common = (int64_t)gcd_words((uint64_t)a.den, (uint64_t)b.den);
    wide num = (wide)a.num * (b.den / common) + (wide)b.num * (a.den / common);
    int64_t cancelled = common == 1 ? 1 : (int64_t)gcd_words(rest_of(num, common), (uint64_t)common);
    wide den = (wide)(a.den / common) * (b.den / cancelled);
    if (!fits(den))
        return big_add(sym, a, b);
    return wide_coef(sym, quotient(num, cancelled), (int64_t)den);
}

sym_coef sym_coef_neg(etch_sym *sym, sym_coef a)
{
    if (sym_coef_is_small(a)) {
        a.num = -a.num;
        return a;
    }
    reserve(sym, 0);
    sym_big *big = take_limbs(sym, 4);
    *big = *a.big;
    big->num_size = -big->num_size;
    return (sym_coef){.big = big, .den = 0};
}

sym_coef sym_coef_sub(etch_sym *sym, sym_coef a, sym_coef b)
{
    return sym_coef_add(sym, a, sym_coef_neg(sym, b));
}

sym_coef sym_coef_mul(etch_sym *sym, sym_coef a, sym_coef b)
{
    if (!sym_coef_is_small(a) || !sym_coef_is_small(b))
        return big_mul(sym, a, b);
    int64_t word;
    if (a.den == 1 && b.den == 1 && !__builtin_mul_overflow(a.num, b.num, &word) && word != INT64_MIN)
        return (sym_coef){.num = word, .den = 1};
    int64_t left = (int64_t)gcd_words(magnitude(a.num), (uint64_t)b.den);
    int64_t right = (int64_t)gcd_words(magnitude(b.num), (uint64_t)a.den);
    wide num = (wide)(a.num / left) * (b.num / right);
    wide den = (wide)(a.den / right) * (b.den / left);
    if (!fits(den))
        return big_mul(sym, a, b);
    return wide_coef(sym, num, (int64_t)den);
}

sym_coef sym_coef_inv(etch_sym *sym, sym_coef a)
{
    if (sym_coef_is_small(a)) {
        sym_coef inverse = {.num = a.num < 0 ? -a.den : a.den, .den = a.num < 0 ? -a.num : a.num};
        return inverse;
    }
    reserve(sym, 0);
    sym_big *big = take_limbs(sym, 4);
    bool negative = a.big->num_size < 0;
    big->num = a.big->den;
    big->num_size = negative ? -a.big->den_size : a.big->den_size;
    big->den = a.big->num;
    big->den_size = negative ? -a.big->num_size : a.big->num_size;
    return (sym_coef){.big = big, .den = 0};
}

sym_coef sym_coef_div(etch_sym *sym, sym_coef a, sym_coef b)
{
    return sym_coef_mul(sym, a, sym_coef_inv(sym, b));
}

sym_coef sym_coef_pow(etch_sym *sym, sym_coef a, int64_t exponent)
{
    if (exponent < 0)
        a = sym_coef_inv(sym, a);
    uint64_t left = magnitude(exponent);
    sym_coef result = ETCH_SYM_ONE;
    while (left) {
        if (left & 1)
            result = sym_coef_mul(sym, result, a);
        left >>= 1;
        if (left)
            a = sym_coef_mul(sym, a, a);
    }
    return result;
}

sym_coef sym_coef_abs(etch_sym *sym, sym_coef a)
{
    return sym_coef_sign(a) < 0 ? sym_coef_neg(sym, a) : a;
}

sym_coef sym_coef_floor(etch_sym *sym, sym_coef a)
{
    if (sym_coef_is_small(a)) {
        int64_t quotient = a.num / a.den;
        return (sym_coef){.num = quotient - (a.num % a.den < 0), .den = 1};
    }
    reserve(sym, num_limbs(a) + 2);
    view x;
    view_of(&x, a);
    mpz_t quotient, one;
    begin_gmp(sym);
    mpz_init(quotient);
    mpz_fdiv_q(quotient, x.num, x.den);
    mpz_init_set_ui(one, 1);
    return store(sym, quotient, one);
}

sym_coef sym_coef_gcd(etch_sym *sym, sym_coef a, sym_coef b)
{
    if (sym_coef_is_zero(a) || sym_coef_is_zero(b))
        return sym_coef_abs(sym, sym_coef_is_zero(a) ? b : a);
    if (sym_coef_is_small(a) && sym_coef_is_small(b)) {
        int64_t num = (int64_t)gcd_words(magnitude(a.num), magnitude(b.num));
        wide den = (wide)(a.den / (int64_t)gcd_words((uint64_t)a.den, (uint64_t)b.den)) * b.den;
        if (fits(den))
            return (sym_coef){.num = num, .den = (int64_t)den};
    }
    reserve(sym, num_limbs(a) + num_limbs(b) + den_limbs(a) + den_limbs(b));
    view x, y;
    view_of(&x, a);
    view_of(&y, b);
    mpz_t num, den;
    begin_gmp(sym);
    mpz_inits(num, den, NULL);
    mpz_gcd(num, x.num, y.num);
    mpz_lcm(den, x.den, y.den);
    return store(sym, num, den);
}

static sym_coef part(etch_sym *sym, const mp_limb_t *limbs, int32_t size)
{
    reserve(sym, (size_t)(size < 0 ? -size : size) + 1);
    mpz_t source, num, den;
    begin_gmp(sym);
    mpz_init_set(num, mpz_roinit_n(source, limbs, size));
    mpz_init_set_ui(den, 1);
    return store(sym, num, den);
}

sym_coef sym_coef_numerator(etch_sym *sym, sym_coef a)
{
    return sym_coef_is_small(a) ? (sym_coef){.num = a.num, .den = 1} : part(sym, a.big->num, a.big->num_size);
}

sym_coef sym_coef_denominator(etch_sym *sym, sym_coef a)
{
    return sym_coef_is_small(a) ? (sym_coef){.num = a.den, .den = 1} : part(sym, a.big->den, a.big->den_size);
}

/* ---- questions ----------------------------------------------------------------------------------------- */

int sym_coef_sign(sym_coef a)
{
    if (sym_coef_is_small(a))
        return (a.num > 0) - (a.num < 0);
    return a.big->num_size > 0 ? 1 : -1;
}

/* A column of a product as it is written out by hand: what is to be added to its digits. */
typedef struct column {
    unsigned_wide low;
    uint64_t high;
} column;

/* The next limb of x*y, the k-th; `column` has what the ones before carried over. */
static mp_limb_t next_limb(column *c, mpz_srcptr x, mpz_srcptr y, size_t k)
{
    const size_t x_size = mpz_size(x), y_size = mpz_size(y);
    const mp_limb_t *x_at = mpz_limbs_read(x), *y_at = mpz_limbs_read(y);
    for (size_t i = k < y_size ? 0 : k - y_size + 1; i <= k && i < x_size; i++) {
        const unsigned_wide product = (unsigned_wide)x_at[i] * y_at[k - i];
        c->low += product;
        c->high += c->low < product;
    }
    const mp_limb_t limb = (mp_limb_t)c->low;
    *c = (column){.low = c->low >> 64 | (unsigned_wide)c->high << 64};
    return limb;
}

/* The order of |a*d| and |c*b|, limb by limb from the lowest one: the products need no memory. */
static int compare_products(mpz_srcptr a, mpz_srcptr d, mpz_srcptr c, mpz_srcptr b)
{
    const size_t left_size = mpz_size(a) + mpz_size(d), right_size = mpz_size(c) + mpz_size(b);
    const size_t size = left_size > right_size ? left_size : right_size;
    column left = {0}, right = {0};
    int order = 0;
    for (size_t k = 0; k < size; k++) {
        const mp_limb_t x = next_limb(&left, a, d, k), y = next_limb(&right, c, b, k);
        if (x != y)
            order = x > y ? 1 : -1;
    }
    return order;
}

/* The same by their lengths: a product of x and y bits has x + y of them, or one less. 0: cannot tell. */
static int compare_lengths(mpz_srcptr a, mpz_srcptr d, mpz_srcptr c, mpz_srcptr b)
{
    const size_t left = mpz_sizeinbase(a, 2) + mpz_sizeinbase(d, 2);
    const size_t right = mpz_sizeinbase(c, 2) + mpz_sizeinbase(b, 2);
    return left > right + 1 ? 1 : right > left + 1 ? -1 : 0;
}

int sym_coef_compare(sym_coef a, sym_coef b)
{
    if (sym_coef_is_small(a) && sym_coef_is_small(b)) {
        wide left = (wide)a.num * b.den, right = (wide)b.num * a.den;
        return (left > right) - (left < right);
    }
    const int sign = sym_coef_sign(a);
    if (sign != sym_coef_sign(b))
        return sign > sym_coef_sign(b) ? 1 : -1;
    view x, y;
    view_of(&x, a);
    view_of(&y, b);
    int order = compare_lengths(x.num, y.den, y.num, x.den);
    if (order == 0)
        order = compare_products(x.num, y.den, y.num, x.den);
    return sign * order;
}

bool sym_big_equal(const sym_big *a, const sym_big *b)
{
    if (a->num_size != b->num_size || a->den_size != b->den_size)
        return false;
    const size_t num = (size_t)(a->num_size < 0 ? -a->num_size : a->num_size);
    return memcmp(a->num, b->num, num * sizeof(mp_limb_t)) == 0 &&
           memcmp(a->den, b->den, (size_t)a->den_size * sizeof(mp_limb_t)) == 0;
}

bool sym_coef_is_integer(sym_coef a)
{
    return sym_coef_is_small(a) ? a.den == 1 : a.big->den_size == 1 && a.big->den[0] == 1;
}

uint64_t sym_big_hash(const sym_big *a)
{
    uint64_t hash = (uint64_t)a->num_size;
    for (int32_t i = 0; i < (a->num_size < 0 ? -a->num_size : a->num_size); i++)
        hash = sym_mix(hash, a->num[i]);
    for (int32_t i = 0; i < a->den_size; i++)
        hash = sym_mix(hash, a->den[i]);
    return hash;
}

/* ---- text ---------------------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* 10^exponent */
static sym_coef power_of_ten(etch_sym *sym, size_t exponent)
{
    return sym_coef_pow(sym, (sym_coef){.num = 10, .den = 1}, (int64_t)exponent);
}

/* The integer that `count` digits spell; a point among them is passed over. */
static sym_coef integer_of(etch_sym *sym, const char *text, size_t length, size_t count)
{
    reserve(sym, count / 19 + 2);
    sym_scratch_mark mark = sym_scratch_top(sym);
    char *digits = sym_scratch_take(sym, count + 1, 1);
    size_t n = 0;
    for (size_t i = 0; i < length; i++)
        if (is_digit(text[i]))
            digits[n++] = text[i];
    mpz_t num, den;
    begin_gmp(sym);
    mpz_init_set_str(num, digits, 10);
    mpz_init_set_ui(den, 1);
    sym_coef value = store(sym, num, den);
    sym_scratch_release(sym, mark);
    return value;
}

bool sym_coef_parse(etch_sym *sym, const char *text, size_t length, sym_coef *value)
{
    size_t digits = 0, point = length;
    for (size_t i = 0; i < length; i++) {
        if (is_digit(text[i]))
            digits++;
        else if (text[i] == '.' && point == length)
            point = i;
        else
            return false;
    }
    if (length == 0 || !is_digit(text[0]) || !is_digit(text[length - 1]))
        return false;
    if (digits > sym->limits.digits)
        too_many_digits(sym);
    *value = integer_of(sym, text, length, digits);
    if (point < length)
        *value = sym_coef_div(sym, *value, power_of_ten(sym, length - point - 1));
    return true;
}

void sym_coef_print(etch_sym *sym, sym_coef a, etch_buf *out)
{
    if (sym_coef_is_small(a)) {
        etch_buf_printf(out, "%lld", (long long)a.num);
        return;
    }
    view x;
    view_of(&x, a);
    char *text = etch_alloc(out->arena, mpz_sizeinbase(x.num, 10) + 2);
    begin_gmp(sym);
    mpz_get_str(text, 10, x.num);
    sym_gmp_end();
    etch_buf_puts(out, text);
}
