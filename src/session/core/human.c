/* Exact numbers as people say them: three significant digits, an SI prefix, the unit. */
#include "session/core/core.h"

#include <string.h>

/* floor(value * 10^shift + 1/2), as digits. */
static const char *rounded_digits(etch_sym *sym, etch_expr value, int64_t shift)
{
    etch_expr scaled = etch_mul(sym, value, etch_pow(sym, etch_int(sym, 10), shift));
    return etch_expr_text(sym, etch_floor(sym, etch_add(sym, scaled, etch_ratio(sym, 1, 2))));
}

/* The power of ten of a positive value's first digit: 0 for 1..9.99, -1 for 0.1. */
static int64_t magnitude(etch_sym *sym, etch_expr value)
{
    enum { SMALLEST = 30 };
    for (int64_t shift = 0; shift <= SMALLEST; shift++) {
        etch_expr scaled = etch_mul(sym, value, etch_pow(sym, etch_int(sym, 10), shift));
        etch_expr whole = etch_floor(sym, scaled);
        if (!etch_is_zero(whole))
            return (int64_t)strlen(etch_expr_text(sym, whole)) - 1 - shift;
    }
    return -SMALLEST;
}

/* Three digits as a decimal number whose first `whole` digits stand before the point. */
static const char *place_point(etch_arena *arena, const char *digits, int64_t whole)
{
    const int before = (int)whole;
    return whole >= 3 ? digits : etch_text(arena, "%.*s.%s", before, digits, digits + before);
}

static const char *with_unit(etch_arena *arena, const char *sign, const char *number, const char *prefix,
                             const char *symbol)
{
    const char *gap = *prefix || *symbol ? " " : "";
    return etch_text(arena, "%s%s%s%s%s", sign, number, gap, prefix, symbol);
}

const char *etch_human_text(etch_session *session, etch_expr constant, etch_unit unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q"};
    /* a fraction with more zeros, that before the point among them, has an exponent */
    enum { PREFIXES = sizeof prefixes / sizeof *prefixes, ZEROS = 4 };
    etch_sym *sym = session->sym;
    etch_arena *arena = session->arena;
    const char *sign = etch_constant_compare(sym, constant, etch_int(sym, 0)) < 0 ? "-" : "";
    static const char *const symbols[ETCH_UNIT_COUNT] = {
        [ETCH_UNIT_NONE] = "",   [ETCH_UNIT_ELEMENTS] = "", [ETCH_UNIT_FLOP] = "FLOP",
        [ETCH_UNIT_BYTES] = "B", [ETCH_UNIT_SECONDS] = "s", [ETCH_UNIT_TOKENS_A_SECOND] = "tokens/s",
        [ETCH_UNIT_HOURS] = "h", [ETCH_UNIT_DAYS] = "d",    [ETCH_UNIT_JOULES] = "J"};
    static const char *const parts[] = {"m", "u", "n", "p"};
    const char *symbol = symbols[unit];
    etch_expr value = etch_abs(sym, constant);
    if (etch_is_zero(value))
        return with_unit(arena, "", "0", "", symbol);

    int64_t first = magnitude(sym, value);
    if (first < 3 && etch_is_integer_constant(value)) /* small numbers are exact */
        return with_unit(arena, sign, etch_expr_text(sym, value), "", symbol);
    const char *digits = rounded_digits(sym, value, 2 - first);
    if (strlen(digits) > 3) { /* 9.996 became 10.00 */
        first++;
        digits = rounded_digits(sym, value, 2 - first);
    }
    if (unit == ETCH_UNIT_SECONDS && first < 0 && first >= -3 * (int64_t)(sizeof parts / sizeof *parts)) {
        const int64_t part = (-first + 2) / 3;
        return with_unit(arena, sign, place_point(arena, digits, first + 3 * part + 1), parts[part - 1],
                         symbol);
    }
    if (first < 0 && first >= -ZEROS) {
        const char *number = etch_text(arena, "0.%.*s%s", (int)(-1 - first), "0000", digits);
        return with_unit(arena, sign, number, "", symbol);
    }
    if (first < 0 || first >= 3 * PREFIXES) {
        const char *number = etch_text(arena, "%se%lld", place_point(arena, digits, 1), (long long)first);
        return with_unit(arena, sign, number, "", symbol);
    }
    return with_unit(arena, sign, place_point(arena, digits, first % 3 + 1), prefixes[first / 3], symbol);
}

static const char *written(etch_session *session, etch_expr expr, etch_notation notation, etch_form form)
{
    etch_buf text = {.arena = session->arena};
    etch_expr_write(session->sym, expr, notation, form, &text);
    return text.text;
}

etch_amount etch_amount_of(etch_session *session, etch_expr expr, etch_unit unit, etch_notation notation,
                           etch_form form)
{
    etch_amount amount = {.is_number = etch_is_constant(expr)};
    if (amount.is_number) {
        amount.text = etch_expr_text(session->sym, expr);
        amount.human = etch_human_text(session, expr, unit);
        return amount;
    }
    amount.text = written(session, expr, notation == ETCH_JSON ? ETCH_PLAIN : notation, form);
    if (notation == ETCH_JSON)
        amount.json = written(session, expr, ETCH_JSON, ETCH_EXPANDED);
    return amount;
}

/* ---- numbers that are known to lie between two --------------------------------------------------------- */

/* A constant above 0 times 10^places, rounded to an integer: to the nearest, or down, or up. */
static etch_expr scaled(etch_sym *sym, etch_expr value, int64_t places, int direction)
{
    const etch_expr at = etch_mul(sym, value, etch_pow(sym, etch_int(sym, 10), places));
    if (direction > 0)
        return etch_neg(sym, etch_floor(sym, etch_neg(sym, at)));
    return etch_floor(sym, direction < 0 ? at : etch_add(sym, at, etch_ratio(sym, 1, 2)));
}

/* The integer over 10^places, as a decimal; where that is no fraction, with an exponent: "4.06e9". */
static const char *decimal_text(etch_arena *arena, const char *digits, int64_t places)
{
    int64_t length = (int64_t)strlen(digits);
    if (places == 0)
        return digits;
    if (places < 0)
        return etch_text(arena, "%c%s%se%lld", *digits, length > 1 ? "." : "", digits + 1,
                         (long long)(length - 1 - places));
    for (; length <= places; length++)
        digits = etch_text(arena, "0%s", digits);
    return etch_text(arena, "%.*s.%s", (int)(length - places), digits, digits + length - places);
}

static const char *decimal_of(etch_session *session, etch_expr integer, int64_t places)
{
    return decimal_text(session->arena, etch_expr_text(session->sym, integer), places);
}

/* Without the zeros that end it, of a decimal that is the number itself. */
static const char *shortened(etch_arena *arena, const char *decimal)
{
    size_t length = strlen(decimal);
    if (!strchr(decimal, '.'))
        return decimal;
    while (decimal[length - 1] == '0')
        length--;
    return etch_copy_text(arena, decimal, length - (decimal[length - 1] == '.'));
}

etch_amount etch_amount_within(etch_session *session, etch_expr low, etch_expr high, etch_unit unit)
{
    enum { MOST_DIGITS = 15 };
    etch_sym *sym = session->sym;
    etch_amount amount = {.is_number = true};
    if (etch_is_zero(high))
        return etch_amount_of(session, high, unit, ETCH_PLAIN, ETCH_SHORTEST);
    int64_t places = MOST_DIGITS - 1 - magnitude(sym, high);
    while (places > -magnitude(sym, low) && scaled(sym, low, places, 0) != scaled(sym, high, places, 0))
        places--;
    const etch_expr nearest =
        scaled(sym, etch_div(sym, etch_add(sym, low, high), etch_int(sym, 2)), places, 0);
    amount.text = decimal_of(session, nearest, places);
    if (low == high && etch_is_integer_constant(etch_mul(sym, low, etch_pow(sym, etch_int(sym, 10), places))))
        amount.text = shortened(session->arena, amount.text);
    amount.human =
        etch_human_text(session, etch_div(sym, nearest, etch_pow(sym, etch_int(sym, 10), places)), unit);
    places = MOST_DIGITS + 2 - magnitude(sym, high);
    amount.low = shortened(session->arena, decimal_of(session, scaled(sym, low, places, -1), places));
    amount.high = shortened(session->arena, decimal_of(session, scaled(sym, high, places, 1), places));
    return amount;
}

/* ---- seconds ------------------------------------------------------------------------------------------- */

enum { PICO = 12, MOST_SECOND_DIGITS = 15 };
__extension__ typedef unsigned __int128 wide;

/* Of a second: the exponent of its first digit. */
static int magnitude_of(uint64_t picoseconds)
{
    int digits = 0;
    for (; picoseconds; picoseconds /= 10)
        digits++;
    return digits - 1 - PICO;
}

static wide power_of_ten(int exponent)
{
    wide power = 1;
    while (exponent-- > 0)
        power *= 10;
    return power;
}

/* `twice`/2 picoseconds in units of 10^-places seconds, to the nearest. */
static wide rounded(wide twice, int places)
{
    return places >= PICO ? (twice * power_of_ten(places - PICO) + 1) / 2
                          : (twice + power_of_ten(PICO - places)) / (2 * power_of_ten(PICO - places));
}

static const char *digits_of(etch_arena *arena, wide number)
{
    char text[40];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + (int)(number % 10));
        number /= 10;
    } while (number > 0);
    return etch_copy_text(arena, text + at, sizeof text - at);
}

const char *etch_seconds_text(etch_arena *arena, uint64_t low, uint64_t high)
{
    int places = MOST_SECOND_DIGITS - 1 - magnitude_of(high);
    while (places > -magnitude_of(low) && rounded(2 * (wide)low, places) != rounded(2 * (wide)high, places))
        places--;
    const wide nearest = rounded((wide)low + high, places);
    const char *text = decimal_text(arena, digits_of(arena, nearest), places);
    const bool is_whole = places >= PICO || low % (uint64_t)power_of_ten(PICO - places) == 0;
    return low == high && is_whole ? shortened(arena, text) : text;
}
