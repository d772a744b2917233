/* Exact numbers of rows: fractions of words, or texts of any length, which may be decimals. */
#include "session/sweep/sweep_int.h"

#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 wide;

enum { LIMB_DIGITS = 9, LIMB = 1000000000 };

/* ---- of any length ------------------------------------------------------------------------------------- */

/* |value|, the low limbs first, without zeros at the end. */
typedef struct natural {
    uint32_t *limbs;
    uint32_t count;
} natural;

/* A fraction in lowest terms, or at least with a denominator above 0. */
typedef struct fraction {
    bool negative;
    natural number, denominator;
} fraction;

static natural trimmed(natural a)
{
    while (a.count > 0 && a.limbs[a.count - 1] == 0)
        a.count--;
    return a;
}

static natural natural_of(etch_arena *arena, const char *digits, size_t length)
{
    natural a = {ETCH_NEW_ARRAY(arena, length / LIMB_DIGITS + 1, uint32_t), 0};
    for (size_t end = length; end > 0;) {
        const size_t start = end > LIMB_DIGITS ? end - LIMB_DIGITS : 0;
        uint32_t limb = 0;
        for (size_t i = start; i < end; i++)
            limb = limb * 10 + (uint32_t)(digits[i] - '0');
        a.limbs[a.count++] = limb;
        end = start;
    }
    return trimmed(a);
}

static int order(natural a, natural b)
{
    if (a.count != b.count)
        return a.count < b.count ? -1 : 1;
    for (uint32_t i = a.count; i-- > 0;)
        if (a.limbs[i] != b.limbs[i])
            return a.limbs[i] < b.limbs[i] ? -1 : 1;
    return 0;
}

static natural product(etch_arena *arena, natural a, natural b)
{
    natural c = {ETCH_NEW_ARRAY(arena, (size_t)a.count + b.count + 1, uint32_t), a.count + b.count};
    for (uint32_t i = 0; i < a.count; i++) {
        uint64_t carry = 0;
        for (uint32_t k = 0; k < b.count || carry; k++) {
            carry += c.limbs[i + k] + (k < b.count ? (uint64_t)a.limbs[i] * b.limbs[k] : 0);
            c.limbs[i + k] = (uint32_t)(carry % LIMB);
            carry /= LIMB;
        }
    }
    return trimmed(c);
}

/* a -= b, which is not more */
static natural difference(natural a, natural b)
{
    int64_t borrow = 0;
    for (uint32_t i = 0; i < a.count; i++) {
        int64_t rest = (int64_t)a.limbs[i] - borrow - (i < b.count ? b.limbs[i] : 0);
        borrow = rest < 0;
        a.limbs[i] = (uint32_t)(rest + borrow * LIMB);
    }
    return trimmed(a);
}

/* Is the rest of a by b, which is not 0, none? Digit by digit: for the few numbers that are so long. */
static bool is_multiple(etch_arena *arena, natural a, natural b)
{
    natural rest = {ETCH_NEW_ARRAY(arena, (size_t)b.count + 2, uint32_t), 0};
    for (uint32_t i = a.count; i-- > 0;)
        for (uint32_t unit = LIMB / 10; unit > 0; unit /= 10) {
            uint64_t carry = a.limbs[i] / unit % 10;
            for (uint32_t k = 0; k < rest.count || carry; k++) {
                carry += k < rest.count ? 10 * (uint64_t)rest.limbs[k] : 0;
                rest.limbs[k] = (uint32_t)(carry % LIMB);
                carry /= LIMB;
                rest.count = k >= rest.count ? k + 1 : rest.count;
            }
            while (order(rest, b) >= 0)
                rest = difference(rest, b);
        }
    return rest.count == 0;
}

/* "12.5", "4.06e9": above 0, and of some ten digits, as times are. */
static fraction decimal_of(etch_arena *arena, bool negative, const char *text)
{
    const size_t length = strcspn(text, "e"), whole = strcspn(text, ".e");
    const size_t places = whole < length ? length - whole - 1 : 0;
    const long exponent = text[length] ? strtol(text + length + 1, NULL, 10) : 0;
    const size_t zeros = exponent > 0 ? (size_t)exponent : 0;
    const size_t below = places + (exponent < 0 ? (size_t)-exponent : 0);
    etch_buf digits = {.arena = arena}, unit = {.arena = arena};
    etch_buf_add(&digits, text, whole);
    if (places)
        etch_buf_add(&digits, text + whole + 1, places);
    for (size_t i = 0; i < zeros; i++)
        etch_buf_puts(&digits, "0");
    etch_buf_puts(&unit, "1");
    for (size_t i = 0; i < below; i++)
        etch_buf_puts(&unit, "0");
    return (fraction){negative, natural_of(arena, digits.text, digits.length),
                      natural_of(arena, unit.text, unit.length)};
}

static fraction fraction_of(etch_arena *arena, etch_exact a)
{
    const char *text = a.text;
    if (!text)
        text = etch_text(arena, "%lld/%lld", (long long)a.number, (long long)a.denominator);
    const bool negative = *text == '-';
    text += negative;
    if (text[strcspn(text, ".e")])
        return decimal_of(arena, negative, text);
    const size_t length = strcspn(text, "/");
    const char *below = text[length] ? text + length + 1 : "1";
    return (fraction){negative, natural_of(arena, text, length), natural_of(arena, below, strlen(below))};
}

static int compare_long(etch_arena *arena, etch_exact a, etch_exact b)
{
    const fraction x = fraction_of(arena, a), y = fraction_of(arena, b);
    const bool x_negative = x.negative && x.number.count, y_negative = y.negative && y.number.count;
    if (x_negative != y_negative)
        return x_negative ? -1 : 1;
    const int size = order(product(arena, x.number, y.denominator), product(arena, y.number, x.denominator));
    return x_negative ? -size : size;
}

/* ---- all ----------------------------------------------------------------------------------------------- */

int etch_exact_compare(etch_arena *arena, etch_exact a, etch_exact b)
{
    if (a.text || b.text)
        return compare_long(arena, a, b);
    const wide left = (wide)a.number * b.denominator, right = (wide)b.number * a.denominator;
    return left < right ? -1 : left > right;
}

bool etch_exact_is_integer(etch_exact a)
{
    return a.text ? !a.text[strcspn(a.text, "/.e")] : a.number % a.denominator == 0;
}

bool etch_exact_divides(etch_arena *arena, etch_exact divisor, etch_exact number)
{
    if (!divisor.text && !number.text) {
        const wide below = (wide)divisor.number * number.denominator;
        return below != 0 && (wide)number.number * divisor.denominator % below == 0;
    }
    const fraction d = fraction_of(arena, divisor), n = fraction_of(arena, number);
    return d.number.count > 0 && is_multiple(arena, product(arena, n.number, d.denominator),
                                             product(arena, d.number, n.denominator));
}

bool etch_exact_holds(etch_arena *arena, etch_relation relation, etch_exact left, etch_exact right)
{
    if (relation == ETCH_REL_DIVIDES)
        return etch_exact_divides(arena, left, right);
    if (relation == ETCH_REL_TRUE)
        return left.text || left.number != 0;
    const int compared = etch_exact_compare(arena, left, right);
    switch (relation) {
    case ETCH_REL_EQ:
        return compared == 0;
    case ETCH_REL_NE:
        return compared != 0;
    case ETCH_REL_LE:
        return compared <= 0;
    case ETCH_REL_GE:
        return compared >= 0;
    case ETCH_REL_LT:
        return compared < 0;
    default:
        return compared > 0;
    }
}

bool etch_exact_of(etch_sym *sym, etch_expr constant, etch_exact *out)
{
    etch_program *program = NULL;
    etch_workspace *workspace = NULL;
    int64_t value = 0;
    unsigned char kind = ETCH_VALUE_UNDEFINED;
    bool fine = constant && etch_is_constant(constant) &&
                etch_compile(sym, 1, &constant, &program) == ETCH_OK &&
                etch_workspace_new(&workspace) == ETCH_OK &&
                etch_program_evaluate(program, 1, NULL, &value, &kind, workspace) == ETCH_OK;
    *out = (etch_exact){value, 1, NULL};
    if (fine && kind == ETCH_VALUE_RATIONAL)
        fine = etch_workspace_fraction(workspace, value, &out->number, &out->denominator);
    else
        fine = fine && kind == ETCH_VALUE_INTEGER;
    etch_workspace_free(workspace);
    etch_program_free(program);
    return fine;
}

etch_exact etch_exact_read(etch_arena *arena, const char *text)
{
    enum { WORD_DIGITS = 18 };
    const char *slash = strchr(text, '/');
    const size_t above = slash ? (size_t)(slash - text) : strlen(text);
    if (above > WORD_DIGITS || text[strcspn(text, ".e")] || (slash && strlen(slash + 1) > WORD_DIGITS))
        return (etch_exact){0, 1, etch_copy_string(arena, text)};
    return (etch_exact){strtoll(text, NULL, 10), slash ? strtoll(slash + 1, NULL, 10) : 1, NULL};
}
