/* Reads expressions in the plain notation, and what the printer writes as C and Python.
 *
 *     sum     = product { ("+" | "-") product }
 *     product = unary { ("*" | "/" | "//" | "%") unary }
 *     unary   = { "-" | "+" } power
 *     power   = primary [ "^" unary ]                          the exponent is an integer constant
 *     primary = number | name | function "(" sum { "," sum } ")" | "(" sum ")"
 *             | "sum" "(" name "," sum "," sum "," sum ")"     index, low, high, body
 *
 * Python: "**" for "^", Sum(body, (index, low, high)). C: pow(base, exponent), SUM for sum, neither "//"
 * nor "%".
 * */
#include <string.h>

#include "symbolic/text/text_int.h"

/* The index of a sum whose body is being read. */
typedef struct scope {
    const char *name;
    size_t length;
} scope;

typedef struct parser {
    etch_sym *sym;
    const struct dialect *dialect;
    const char *text;
    size_t length, at;
    uint32_t depth;
    /* a syntax error, at `at` */
    bool failed;
    ETCH_VEC(scope) scopes;
} parser;

static etch_expr parse_sum(parser *p);
static etch_expr parse_unary(parser *p);

/* ---- characters ---------------------------------------------------------------------------------------- */

static char peek(const parser *p)
{
    return p->at < p->length ? p->text[p->at] : '\0';
}

static void skip_space(parser *p)
{
    while (peek(p) == ' ' || peek(p) == '\t' || peek(p) == '\n' || peek(p) == '\r')
        p->at++;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool begins_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool continues_name(char c)
{
    return begins_name(c) || is_digit(c) || c == '\'' || c == '.';
}

/* Takes the next token if it is `token`. */
static bool accept(parser *p, const char *token)
{
    size_t length = strlen(token);
    skip_space(p);
    if (p->failed || p->length - p->at < length || memcmp(p->text + p->at, token, length) != 0)
        return false;
    p->at += length;
    return true;
}

static etch_expr fail_at(parser *p, size_t at)
{
    if (!p->failed)
        p->at = at;
    p->failed = true;
    return NULL;
}

static void expect(parser *p, const char *token)
{
    if (!accept(p, token))
        fail_at(p, p->at);
}

static void enter(parser *p)
{
    if (++p->depth > p->sym->limits.nesting)
        sym_limit_of(p->sym, "nesting of brackets and operators", p->sym->limits.nesting);
}

/* ---- functions ----------------------------------------------------------------------------------------- */

typedef ETCH_VEC(etch_expr) exprs;

/* `args` are `least` to `most` canonical expressions. NULL: undefined. */
typedef struct function {
    const char *name;
    uint32_t least, most;
    etch_expr (*apply)(etch_sym *sym, uint32_t count, const etch_expr *args);
    /* more than two arguments are written f(x, f(y, z)) */
    bool nested;
} function;

static etch_expr apply_abs(etch_sym *sym, uint32_t count, const etch_expr *args)
{
    (void)count;
    return etch_abs(sym, args[0]);
}

static etch_expr apply_pow2(etch_sym *sym, uint32_t count, const etch_expr *args)
{
    (void)count;
    return etch_pow2(sym, args[0]);
}

static etch_expr apply_floor(etch_sym *sym, uint32_t count, const etch_expr *args)
{
    etch_expr a = count == 1 ? args[0] : etch_div(sym, args[0], args[1]);
    return etch_floor(sym, a);
}

static etch_expr apply_ceil(etch_sym *sym, uint32_t count, const etch_expr *args)
{
    etch_expr a = count == 1 ? args[0] : etch_div(sym, args[0], args[1]);
    return etch_ceil(sym, a);
}

static etch_expr apply_mod(etch_sym *sym, uint32_t count, const etch_expr *args)
{
    (void)count;
    return etch_mod(sym, args[0], args[1]);
}

static etch_expr apply_ratio(etch_sym *sym, uint32_t count, const etch_expr *args)
{
    return count == 1 ? args[0] : etch_div(sym, args[0], args[1]);
}

static etch_expr apply_pow(etch_sym *sym, uint32_t count, const etch_expr *args)
{
    (void)count;
    int64_t exponent;
    return etch_to_i64(args[1], &exponent) ? etch_pow(sym, args[0], exponent) : NULL;
}

enum { ANY = INT32_MAX };

static const function plain_functions[] = {
    {"max", 2, ANY, sym_max, false},      {"min", 2, ANY, sym_min, false},
    {"abs", 1, 1, apply_abs, false},      {"floor", 1, 1, apply_floor, false},
    {"ceil", 1, 1, apply_ceil, false},    {"mod", 2, 2, apply_mod, false},
    {"ceildiv", 2, 2, apply_ceil, false}, {"floordiv", 2, 2, apply_floor, false},
    {"pow2", 1, 1, apply_pow2, false},    {NULL, 0, 0, NULL, false},
};
static const function c_functions[] = {
    {"fmax", 2, ANY, sym_max, true},     {"fmin", 2, ANY, sym_min, true},   {"fabs", 1, 1, apply_abs, false},
    {"floor", 1, 1, apply_floor, false}, {"ceil", 1, 1, apply_ceil, false}, {"pow", 2, 2, apply_pow, false},
    {"pow2", 1, 1, apply_pow2, false},   {NULL, 0, 0, NULL, false},
};
/* Also what SymPy's own printer writes. */
static const function python_functions[] = {
    {"max", 2, ANY, sym_max, false},     {"min", 2, ANY, sym_min, false},
    {"abs", 1, 1, apply_abs, false},     {"Max", 2, ANY, sym_max, false},
    {"Min", 2, ANY, sym_min, false},     {"Abs", 1, 1, apply_abs, false},
    {"floor", 1, 1, apply_floor, false}, {"ceiling", 1, 1, apply_ceil, false},
    {"Mod", 2, 2, apply_mod, false},     {"Rational", 1, 2, apply_ratio, false},
    {"pow2", 1, 1, apply_pow2, false},   {NULL, 0, 0, NULL, false},
};

typedef struct dialect {
    const function *functions;
    /* operator */
    const char *power;
    /* function */
    const char *sum;
    /* in it */
    bool body_first;
    /* has the operators // and % */
    bool rounds;
    /* in names */
    bool escapes;
} dialect;

static const dialect dialects[] = {
    [ETCH_PLAIN] = {plain_functions, "^", "sum", false, true, false},
    [ETCH_C] = {c_functions, NULL, "SUM", false, false, true},
    [ETCH_PYTHON] = {python_functions, "**", "Sum", true, true, true},
};

static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

static etch_expr apply(parser *p, const function *f, exprs *args, size_t start)
{
    if (args->count < f->least || args->count > f->most)
        return fail_at(p, start);
    for (uint32_t i = 0; i < args->count; i++)
        if (!(args->at[i] = sym_refresh(p->sym, args->at[i])))
            return NULL;
    return f->apply(p->sym, args->count, args->at);
}

/* Moves behind the bracket that closes an open one, or to the end. */
static void skip_call(parser *p)
{
    uint32_t open = 1;
    for (; p->at < p->length && open > 0; p->at++) {
        open += peek(p) == '(';
        open -= peek(p) == ')';
    }
}

/* Takes `name(` if that call is all of an argument. */
static bool accept_call(parser *p, const char *name)
{
    size_t start = p->at, inside;
    if (!accept(p, name) || !accept(p, "(")) {
        p->at = p->failed ? p->at : start;
        return false;
    }
    inside = p->at;
    skip_call(p);
    skip_space(p);
    bool whole = peek(p) == ')';
    p->at = whole ? inside : start;
    return whole;
}

/* The arguments of f(x, f(y, z)) for a function of two arguments: x, y, z. */
static void parse_nested(parser *p, const char *name, exprs *args)
{
    uint32_t open = 0;
    do {
        open++;
        etch_expr argument = parse_sum(p);
        ETCH_PUSH(p->sym->arena, args, argument);
        expect(p, ",");
    } while (!p->failed && accept_call(p, name));
    etch_expr last = parse_sum(p);
    ETCH_PUSH(p->sym->arena, args, last);
    while (!p->failed && --open > 0)
        expect(p, ")");
}

/* The rest of a call whose name is at `start` and whose bracket was taken. */
static etch_expr parse_call(parser *p, size_t start, size_t length)
{
    const function *f = p->dialect->functions;
    exprs args = {0};
    while (f->name && !is_name(f->name, p->text + start, length))
        f++;
    if (!f->name)
        return fail_at(p, start);
    if (f->nested) {
        parse_nested(p, f->name, &args);
    } else {
        do {
            etch_expr argument = parse_sum(p);
            ETCH_PUSH(p->sym->arena, &args, argument);
        } while (accept(p, ","));
    }
    expect(p, ")");
    return p->failed ? NULL : apply(p, f, &args, start);
}

/* ---- sums over an index -------------------------------------------------------------------------------- */

static scope parse_index(parser *p)
{
    skip_space(p);
    size_t start = p->at;
    if (!begins_name(peek(p)))
        fail_at(p, p->at);
    while (!p->failed && continues_name(peek(p)))
        p->at++;
    return (scope){p->text + start, p->at - start};
}

static etch_expr parse_body(parser *p, scope index)
{
    ETCH_PUSH(p->sym->arena, &p->scopes, index);
    etch_expr body = parse_sum(p);
    p->scopes.count--;
    return body;
}

/* Moves to the next comma that is in no bracket of its own. */
static void skip_argument(parser *p)
{
    uint32_t open = 0;
    for (; p->at < p->length && !(open == 0 && peek(p) == ','); p->at++) {
        if (peek(p) == ')' && open == 0)
            break;
        open += peek(p) == '(';
        open -= peek(p) == ')';
    }
}

/* The rest of a sum whose bracket was taken. Where the body stands first, the index behind it is read
 * before. */
static etch_expr parse_sum_over(parser *p)
{
    size_t body_at = p->at, body_end = 0;
    if (p->dialect->body_first) {
        skip_argument(p);
        body_end = p->at;
        expect(p, ",");
        expect(p, "(");
    }
    scope index = parse_index(p);
    expect(p, ",");
    etch_expr low = parse_sum(p);
    expect(p, ",");
    etch_expr high = parse_sum(p), body;
    if (p->dialect->body_first) {
        expect(p, ")");
        size_t end = p->at;
        if (p->failed)
            return NULL;
        p->at = body_at;
        body = parse_body(p, index);
        skip_space(p);
        if (!p->failed && p->at != body_end)
            fail_at(p, p->at);
        p->at = p->failed ? p->at : end;
    } else {
        expect(p, ",");
        body = parse_body(p, index);
    }
    expect(p, ")");
    return p->failed ? NULL : etch_sum_over(p->sym, etch_index(p->sym, p->scopes.count), low, high, body);
}

/* ---- expressions --------------------------------------------------------------------------------------- */

static etch_expr parse_number(parser *p)
{
    size_t start = p->at;
    while (is_digit(peek(p)))
        p->at++;
    if (peek(p) == '.' && p->at + 1 < p->length && is_digit(p->text[p->at + 1])) {
        p->at++;
        while (is_digit(peek(p)))
            p->at++;
    }
    if (continues_name(peek(p)))
        return fail_at(p, p->at);
    return etch_number(p->sym, p->text + start, p->at - start);
}

/* The innermost index of this name, else a variable. */
static etch_expr named(parser *p, const char *name, size_t length)
{
    for (uint32_t i = p->scopes.count; i-- > 0;)
        if (p->scopes.at[i].length == length && memcmp(p->scopes.at[i].name, name, length) == 0)
            return etch_index(p->sym, i);
    sym_scratch_mark mark = sym_scratch_top(p->sym);
    char *copy = sym_scratch_take(p->sym, length + 1, 1);
    if (p->dialect->escapes)
        copy[sym_unescape(name, length, copy)] = '\0';
    else
        memcpy(copy, name, length);
    etch_expr value = etch_var(p->sym, copy);
    sym_scratch_release(p->sym, mark);
    return value;
}

static etch_expr parse_name(parser *p)
{
    size_t start = p->at;
    while (continues_name(peek(p)))
        p->at++;
    size_t length = p->at - start;
    if (!accept(p, "("))
        return named(p, p->text + start, length);
    enter(p);
    etch_expr value =
        is_name(p->dialect->sum, p->text + start, length) ? parse_sum_over(p) : parse_call(p, start, length);
    p->depth--;
    return value;
}

static etch_expr parse_primary(parser *p)
{
    skip_space(p);
    if (p->failed)
        return NULL;
    etch_expr value = NULL;
    if (is_digit(peek(p))) {
        value = parse_number(p);
    } else if (begins_name(peek(p))) {
        value = parse_name(p);
    } else if (accept(p, "(")) {
        enter(p);
        value = parse_sum(p);
        expect(p, ")");
        p->depth--;
    } else {
        fail_at(p, p->at);
    }
    return value;
}

static etch_expr parse_power(parser *p)
{
    etch_expr base = parse_primary(p);
    if (!p->dialect->power || !accept(p, p->dialect->power))
        return base;
    skip_space(p);
    size_t start = p->at;
    int64_t exponent;
    enter(p);
    etch_expr power = parse_unary(p);
    p->depth--;
    if (p->failed || !power)
        return NULL;
    if (!etch_to_i64(power, &exponent))
        return fail_at(p, start);
    return etch_pow(p->sym, base, exponent);
}

static etch_expr parse_unary(parser *p)
{
    bool negative = false;
    for (;;) {
        if (accept(p, "-"))
            negative = !negative;
        else if (!accept(p, "+"))
            break;
    }
    etch_expr value = parse_power(p);
    return negative && !p->failed ? etch_neg(p->sym, value) : value;
}

static etch_expr parse_product(parser *p)
{
    etch_expr value = parse_unary(p);
    while (!p->failed) {
        etch_expr (*operation)(etch_sym *, etch_expr, etch_expr) = NULL;
        if (accept(p, "*"))
            operation = etch_mul;
        else if (p->dialect->rounds && accept(p, "//"))
            operation = etch_floor_div;
        else if (accept(p, "/"))
            operation = etch_div;
        else if (p->dialect->rounds && accept(p, "%"))
            operation = etch_mod;
        if (!operation)
            break;
        etch_expr next = parse_unary(p);
        if (!p->failed)
            value = operation(p->sym, value, next);
    }
    return value;
}

static etch_expr parse_sum(parser *p)
{
    exprs terms = {0};
    etch_expr first = parse_product(p), next = NULL;
    for (;;) {
        bool minus = accept(p, "-");
        if (!minus && !accept(p, "+"))
            break;
        if (!terms.count)
            ETCH_PUSH(p->sym->arena, &terms, first);
        next = parse_product(p);
        if (p->failed)
            return NULL;
        ETCH_PUSH(p->sym->arena, &terms, minus ? etch_neg(p->sym, next) : next);
    }
    if (p->failed)
        return NULL;
    return terms.count ? etch_sum(p->sym, terms.count, terms.at) : first;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

etch_expr etch_expr_read(etch_sym *sym, const char *text, size_t length, etch_notation notation,
                         size_t *error_at)
{
    size_t unused;
    error_at = error_at ? error_at : &unused;
    *error_at = 0;
    if (notation == ETCH_JSON)
        return sym_parse_json(sym, text, length, error_at);
    if ((size_t)notation >= sizeof dialects / sizeof *dialects || !dialects[notation].functions)
        return NULL;
    parser p = {.sym = sym, .dialect = &dialects[notation], .text = text, .length = length};
    etch_expr value = parse_sum(&p);
    skip_space(&p);
    if (!p.failed && p.at < length)
        fail_at(&p, p.at);
    *error_at = p.failed ? p.at : length;
    return p.failed ? NULL : sym_refresh(sym, value);
}

etch_expr etch_expr_parse(etch_sym *sym, const char *text, size_t length, size_t *error_at)
{
    return etch_expr_read(sym, text, length, ETCH_PLAIN, error_at);
}
