/* Reads the canonical form from JSON: see `etch_notation`. Members may stand in any order. */
#include <string.h>

#include "symbolic/text/text_int.h"

typedef struct reader {
    etch_sym *sym;
    const char *text;
    size_t length, at;
    uint32_t depth;
    /* a syntax error, at `at` */
    bool failed;
} reader;

typedef ETCH_VEC(etch_expr) exprs;

static etch_expr read_sum(reader *r);

/* ---- tokens -------------------------------------------------------------------------------------------- */

static char peek(reader *r)
{
    while (r->at < r->length && strchr(" \t\n\r", r->text[r->at]) && r->text[r->at])
        r->at++;
    return r->at < r->length ? r->text[r->at] : '\0';
}

static void fail(reader *r)
{
    r->failed = true;
}

static bool accept(reader *r, char c)
{
    if (r->failed || peek(r) != c)
        return false;
    r->at++;
    return true;
}

static void expect(reader *r, char c)
{
    if (!accept(r, c))
        fail(r);
}

/* One character behind a backslash. */
static void read_escape(reader *r, etch_buf *out)
{
    const char *names = "\"\\/bfnrt", *meant = "\"\\/\b\f\n\r\t";
    char c = r->at < r->length ? r->text[r->at] : '\0';
    const char *found = c ? strchr(names, c) : NULL;
    unsigned code = 0;
    if (found) {
        etch_buf_add(out, meant + (found - names), 1);
        r->at++;
        return;
    }
    for (int i = 1; i <= 4; i++) {
        char digit = c == 'u' && r->length - r->at > 4 ? r->text[r->at + (size_t)i] : '\0';
        const char *hex = "0123456789abcdef0123456789ABCDEF", *place = digit ? strchr(hex, digit) : NULL;
        if (!place) {
            fail(r);
            return;
        }
        code = code * 16 + (unsigned)((place - hex) % 16);
    }
    if (code == 0 || code >= 0x80) { /* what we write escaped are control characters only */
        fail(r);
        return;
    }
    etch_buf_add(out, &(char){(char)code}, 1);
    r->at += 5;
}

/* A string, into the arena. */
static const char *read_string(reader *r, size_t *length)
{
    etch_buf out = {.arena = r->sym->arena};
    etch_buf_add(&out, "", 0);
    expect(r, '"');
    while (!r->failed && !(r->at < r->length && r->text[r->at] == '"')) {
        if (r->at == r->length || (unsigned char)r->text[r->at] < 0x20) {
            fail(r);
        } else if (r->text[r->at] == '\\') {
            r->at++;
            read_escape(r, &out);
        } else {
            etch_buf_add(&out, r->text + r->at++, 1);
        }
    }
    r->at += !r->failed;
    *length = out.length;
    return out.text;
}

static int64_t read_integer(reader *r)
{
    int64_t value = 0;
    bool negative = accept(r, '-');
    size_t start = r->at;
    while (r->at < r->length && r->text[r->at] >= '0' && r->text[r->at] <= '9' && value < INT64_MAX / 100)
        value = value * 10 + (r->text[r->at++] - '0');
    if (r->at == start || peek(r) == '.')
        fail(r);
    return negative ? -value : value;
}

/* Takes the name of the next member of an object; false: it ends. `first` as it was set before the first. */
static bool next_member(reader *r, bool *first, const char **name)
{
    size_t length;
    if (r->failed || accept(r, '}'))
        return false;
    if (!*first)
        expect(r, ',');
    *first = false;
    *name = read_string(r, &length);
    expect(r, ':');
    return !r->failed;
}

/* The same for the items of an array. */
static bool next_item(reader *r, bool *first)
{
    if (r->failed || accept(r, ']'))
        return false;
    if (!*first)
        expect(r, ',');
    *first = false;
    return !r->failed;
}

/* ---- factors and terms --------------------------------------------------------------------------------- */

/* "24/11" */
static etch_expr read_coefficient(reader *r)
{
    size_t length;
    const char *text = read_string(r, &length);
    bool negative = text[0] == '-';
    const char *slash = strchr(text, '/'), *digits = text + negative;
    size_t count = slash ? (size_t)(slash - digits) : length - negative;
    etch_expr num = r->failed ? NULL : etch_number(r->sym, digits, count);
    etch_expr den = r->failed ? NULL
                    : slash   ? etch_number(r->sym, slash + 1, strlen(slash + 1))
                              : r->sym->one;
    if (!num || !den) {
        fail(r);
        return NULL;
    }
    etch_expr value = etch_div(r->sym, num, den);
    return negative ? etch_neg(r->sym, value) : value;
}

/* "#1" is the index of the sum of that level. NULL: a variable. */
static etch_expr index_named(etch_sym *sym, const char *name)
{
    uint32_t level = 0;
    if (name[0] != '#' || !name[1] || strspn(name + 1, "0123456789") != strlen(name + 1))
        return NULL;
    for (const char *c = name + 1; *c && level < UINT32_MAX / 20; c++)
        level = level * 10 + (uint32_t)(*c - '0');
    return etch_index(sym, level);
}

/* {"b": 1, "tp": -1} */
static etch_expr read_variables(reader *r)
{
    etch_expr product = r->sym->one;
    const char *name;
    expect(r, '{');
    for (bool first = true; next_member(r, &first, &name);) {
        etch_expr base = r->failed ? NULL : index_named(r->sym, name);
        int64_t power = read_integer(r);
        base = base ? base : etch_var(r->sym, name);
        product = r->failed ? NULL : etch_mul(r->sym, product, etch_pow(r->sym, base, power));
    }
    return product;
}

static exprs read_arguments(reader *r)
{
    exprs args = {0};
    expect(r, '[');
    for (bool first = true; next_item(r, &first);) {
        etch_expr argument = read_sum(r);
        ETCH_PUSH(r->sym->arena, &args, argument);
    }
    return args;
}

/* The value of an op; NULL: undefined, or not such an op (then the reader has failed). */
static etch_expr apply(reader *r, const char *op, int64_t level, exprs *args)
{
    etch_sym *sym = r->sym;
    bool is_floor = strcmp(op, "floor") == 0, is_max = strcmp(op, "max") == 0,
         is_sum = strcmp(op, "sum") == 0, is_pow2 = strcmp(op, "pow2") == 0;
    bool known = is_floor || is_max || is_sum || is_pow2 || strcmp(op, "recip") == 0;
    if (!known || (is_max ? args->count < 2 : args->count != (is_sum ? 2 : 1)) ||
        (is_sum && (level < 1 || level > UINT32_MAX)))
        fail(r);
    for (uint32_t i = 0; !r->failed && i < args->count; i++)
        if (!(args->at[i] = sym_refresh(sym, args->at[i])))
            return NULL;
    if (r->failed)
        return NULL;
    if (is_floor)
        return sym_floor(sym, args->at[0]);
    if (is_pow2)
        return sym_pow2(sym, args->at[0]);
    if (is_max)
        return sym_max(sym, args->count, args->at);
    if (is_sum)
        return etch_sum_over(sym, etch_index(sym, (uint32_t)level), sym->zero,
                             etch_sub(sym, args->at[0], sym->one), args->at[1]);
    return sym_div(sym, sym->one, args->at[0]);
}

/* {"op": "floor", "args": [..], "power": 1} */
static etch_expr read_opaque(reader *r)
{
    const char *member, *op = "";
    int64_t power = 1, level = 0;
    exprs args = {0};
    expect(r, '{');
    for (bool first = true; next_member(r, &first, &member);) {
        size_t length;
        if (strcmp(member, "op") == 0)
            op = read_string(r, &length);
        else if (strcmp(member, "args") == 0)
            args = read_arguments(r);
        else if (strcmp(member, "power") == 0)
            power = read_integer(r);
        else if (strcmp(member, "level") == 0)
            level = read_integer(r);
        else
            fail(r);
    }
    etch_expr base = r->failed ? NULL : apply(r, op, level, &args);
    return etch_pow(r->sym, base, power);
}

static etch_expr read_factors(reader *r)
{
    etch_expr product = r->sym->one;
    expect(r, '[');
    for (bool first = true; next_item(r, &first);)
        product = etch_mul(r->sym, product, read_opaque(r));
    return product;
}

static etch_expr read_term(reader *r)
{
    etch_expr product = r->sym->one;
    const char *member;
    expect(r, '{');
    for (bool first = true; next_member(r, &first, &member);) {
        if (strcmp(member, "c") == 0)
            product = etch_mul(r->sym, product, read_coefficient(r));
        else if (strcmp(member, "m") == 0)
            product = etch_mul(r->sym, product, read_variables(r));
        else if (strcmp(member, "f") == 0)
            product = etch_mul(r->sym, product, read_factors(r));
        else
            fail(r);
    }
    return product;
}

/* The sum of terms; those over one denominator are added before they are reduced. NULL: undefined. */
static etch_expr sum_of(etch_sym *sym, const exprs *terms)
{
    exprs whole = {0}, fractions = {0};
    sym_fraction under_way = {sym->zero, NULL};
    for (uint32_t i = 0; i < terms->count; i++) {
        etch_expr term = sym_refresh(sym, terms->at[i]);
        if (!term)
            return NULL;
        if (!(term->flags & ETCH_SYM_HAS_RECIP)) {
            ETCH_PUSH(sym->arena, &whole, term);
            continue;
        }
        sym_fraction x = sym_split(sym, term);
        if (x.den != under_way.den && under_way.den)
            ETCH_PUSH(sym->arena, &fractions, sym_div(sym, under_way.num, under_way.den));
        under_way.num = x.den == under_way.den ? sym_add(sym, under_way.num, x.num) : x.num;
        under_way.den = x.den;
    }
    if (under_way.den)
        ETCH_PUSH(sym->arena, &fractions, sym_div(sym, under_way.num, under_way.den));
    etch_expr rest = etch_sum(sym, fractions.count, fractions.at);
    return etch_add(sym, etch_sum(sym, whole.count, whole.at), rest);
}

static etch_expr read_sum(reader *r)
{
    exprs terms = {0};
    const char *member;
    if (++r->depth > r->sym->limits.nesting)
        sym_limit_of(r->sym, "nesting of brackets and operators", r->sym->limits.nesting);
    expect(r, '{');
    for (bool first = true; next_member(r, &first, &member);) {
        if (strcmp(member, "terms") != 0)
            fail(r);
        expect(r, '[');
        for (bool first_term = true; next_item(r, &first_term);) {
            etch_expr term = read_term(r);
            ETCH_PUSH(r->sym->arena, &terms, term);
        }
    }
    r->depth--;
    return r->failed ? NULL : sum_of(r->sym, &terms);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* Does the index of a sum occur outside of one? */
static bool has_free_index(etch_sym *sym, etch_expr a)
{
    bool found = false;
    for (uint32_t i = 0; !found && i < sym->index_vars.count; i++)
        found = sym_depends_on(sym, a, sym->index_vars.at[i]);
    return found;
}

etch_expr sym_parse_json(etch_sym *sym, const char *text, size_t length, size_t *error_at)
{
    reader r = {.sym = sym, .text = text, .length = length};
    etch_expr value = sym_refresh(sym, read_sum(&r));
    if (!r.failed && (peek(&r) || r.at < length))
        fail(&r);
    if (!r.failed && value && has_free_index(sym, value)) {
        r.at = 0;
        fail(&r);
    }
    *error_at = r.failed ? r.at : length;
    return r.failed ? NULL : value;
}
