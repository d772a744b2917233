/* Values of a config: finding them, and what their texts mean. */
#include "import/import_int.h"

#include <string.h>

const etch_config_field *etch_config_find(const etch_config_value *object, const char *path, size_t length)
{
    const etch_config_field *found = NULL;
    while (object && object->kind == ETCH_CONFIG_OBJECT) {
        const char *dot = memchr(path, '.', length);
        const size_t part = dot ? (size_t)(dot - path) : length;
        found = NULL;
        for (uint32_t i = 0; i < object->members.count && !found; i++)
            if (strlen(object->members.at[i]->name) == part &&
                memcmp(object->members.at[i]->name, path, part) == 0)
                found = object->members.at[i];
        if (!found || !dot)
            return found;
        object = &found->value;
        path = dot + 1;
        length -= part + 1;
    }
    return NULL;
}

const char *etch_config_shown(etch_arena *arena, const etch_config_value *value)
{
    switch (value->kind) {
    case ETCH_CONFIG_TEXT:
        return strlen(value->text) > 60 ? "another text" : etch_text(arena, "\"%s\"", value->text);
    case ETCH_CONFIG_LIST:
        return value->members.count ? "a list with elements" : "[]";
    case ETCH_CONFIG_OBJECT:
        return value->members.count ? "an object with fields" : "{}";
    case ETCH_CONFIG_NULL:
    case ETCH_CONFIG_FLAG:
        return value->text;
    case ETCH_CONFIG_NUMBER:
        break;
    }
    return strlen(value->text) > 60 ? "another number" : value->text;
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

/* A number as digits without zeros at their ends, and how often ten multiplies them. */
typedef struct decimal {
    bool negative;
    const char *first;
    /* digits, and the point among them */
    size_t length;
    long power;
} decimal;

/* False: NaN, Infinity, or an exponent beyond any use. */
static bool read_decimal(const char *text, decimal *d)
{
    enum { MOST_DIGITS = 6 };
    *d = (decimal){.negative = *text == '-'};
    text += d->negative;
    const size_t mantissa = strspn(text, "0123456789.");
    const char *exponent = text + mantissa, *point = memchr(text, '.', mantissa);
    if (mantissa == 0)
        return false;
    if (*exponent) {
        const bool down = exponent[1] == '-';
        exponent += 1 + (down || exponent[1] == '+');
        if (strlen(exponent) > MOST_DIGITS)
            return false;
        for (; *exponent; exponent++)
            d->power = 10 * d->power + (down ? -(*exponent - '0') : *exponent - '0');
    }
    const char *last = text + mantissa;
    if (point)
        d->power -= (long)(last - point - 1);
    while (text < last && (*text == '0' || *text == '.'))
        text++;
    while (last > text && (last[-1] == '0' || last[-1] == '.')) {
        d->power += last[-1] == '0';
        last--;
    }
    d->first = text;
    d->length = (size_t)(last - text);
    return true;
}

static bool next_digit(const char **at, const char *end, char *digit)
{
    while (*at < end && **at == '.')
        (*at)++;
    if (*at == end)
        return false;
    *digit = *(*at)++;
    return true;
}

bool etch_config_same_number(const char *a, const char *b)
{
    decimal x, y;
    if (!read_decimal(a, &x) || !read_decimal(b, &y))
        return strcmp(a, b) == 0;
    if (x.length == 0 || y.length == 0)
        return x.length == y.length; /* zeros */
    if (x.negative != y.negative || x.power != y.power)
        return false;
    char p = 0, q = 0;
    const char *at = x.first, *other = y.first;
    for (;;) {
        const bool more = next_digit(&at, x.first + x.length, &p);
        if (more != next_digit(&other, y.first + y.length, &q))
            return false;
        if (!more)
            return true;
        if (p != q)
            return false;
    }
}

bool etch_config_is_positive(const char *number)
{
    decimal d;
    if (strcmp(number, "Infinity") == 0)
        return true;
    return read_decimal(number, &d) && !d.negative && d.length > 0;
}

bool etch_config_integer(const char *number, uint64_t most, uint64_t *value)
{
    *value = 0;
    if (!*number || strspn(number, "0123456789") != strlen(number))
        return false;
    for (; *number; number++) {
        *value = 10 * *value + (uint64_t)(*number - '0');
        if (*value > most)
            return false;
    }
    return true;
}

bool etch_config_fraction(const char *number, uint64_t *above, uint64_t *below)
{
    enum { MOST_DIGITS = 9 };
    decimal d;
    if (!read_decimal(number, &d) || d.negative || d.length == 0 || d.power > 0 || d.power < -MOST_DIGITS)
        return false;
    *above = 0;
    *below = 1;
    char digit;
    for (const char *at = d.first; next_digit(&at, d.first + d.length, &digit);) {
        *above = 10 * *above + (uint64_t)(digit - '0');
        if (*above > ETCH_CONFIG_MOST_SIZE)
            return false;
    }
    for (long i = d.power; i < 0; i++)
        *below *= 10;
    return *above <= *below;
}

/* ---- words --------------------------------------------------------------------------------------------- */

const char *etch_next_word(const char **list, size_t *length)
{
    const char *word = *list ? *list + strspn(*list, " ") : NULL;
    if (!word || !*word)
        return NULL;
    *length = strcspn(word, " ");
    *list = word + *length;
    return word;
}

bool etch_has_word(const char *list, const char *word)
{
    size_t length;
    for (const char *at; (at = etch_next_word(&list, &length)) != NULL;)
        if (strlen(word) == length && memcmp(at, word, length) == 0)
            return true;
    return false;
}
