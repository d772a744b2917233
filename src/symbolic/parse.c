/* Parses the plain form.
 *
 *     sum     = product { ("+" | "-") product }
 *     product = unary { ("*" | "/" | "//" | "%") unary }
 *     unary   = { "-" | "+" } power
 *     power   = primary [ "^" unary ]                          the exponent is an integer constant
 *     primary = number | name | function "(" sum { "," sum } ")" | "(" sum ")"
 */
#include <string.h>

#include "symbolic/symbolic_int.h"

typedef struct parser {
    etch_sym *sym;
    const char *text;
    size_t length, at;
    uint32_t depth;
    bool failed; /* a syntax error, at `at` */
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
    if (++p->depth > SYM_MAX_NESTING)
        sym_limit(p->sym);
}

/* ---- functions ----------------------------------------------------------------------------------------- */

typedef ETCH_VEC(etch_expr) exprs;

typedef struct function {
    const char *name;
    etch_expr (*unary)(etch_sym *sym, etch_expr a);
    etch_expr (*binary)(etch_sym *sym, etch_expr a, etch_expr b);
    etch_expr (*list)(etch_sym *sym, uint32_t count, const etch_expr *args); /* two or more */
} function;

static etch_expr ceil_div(etch_sym *sym, etch_expr a, etch_expr b)
{
    return etch_ceil(sym, etch_div(sym, a, b));
}

static const function functions[] = {
    {.name = "max", .list = sym_max},        {.name = "min", .list = sym_min},
    {.name = "abs", .unary = etch_abs},      {.name = "floor", .unary = etch_floor},
    {.name = "ceil", .unary = etch_ceil},    {.name = "mod", .binary = etch_mod},
    {.name = "ceildiv", .binary = ceil_div}, {.name = "floordiv", .binary = etch_floor_div},
};

static const function *function_called(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strlen(functions[i].name) == length && memcmp(functions[i].name, name, length) == 0)
            return &functions[i];
    return NULL;
}

static etch_expr apply(parser *p, const function *f, exprs *args, size_t start)
{
    if (f->unary ? args->count != 1 : f->binary ? args->count != 2 : args->count < 2)
        return fail_at(p, start);
    for (uint32_t i = 0; i < args->count; i++)
        if (!(args->at[i] = sym_refresh(p->sym, args->at[i])))
            return NULL;
    if (f->unary)
        return f->unary(p->sym, args->at[0]);
    return f->binary ? f->binary(p->sym, args->at[0], args->at[1]) : f->list(p->sym, args->count, args->at);
}

/* The rest of a call whose name is at `start` and whose bracket was taken. */
static etch_expr parse_call(parser *p, size_t start, size_t length)
{
    const function *f = function_called(p->text + start, length);
    if (!f)
        return fail_at(p, start);
    exprs args = {0};
    do {
        etch_expr argument = parse_sum(p);
        ETCH_PUSH(p->sym->arena, &args, argument);
    } while (accept(p, ","));
    expect(p, ")");
    return p->failed ? NULL : apply(p, f, &args, start);
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

static etch_expr parse_name(parser *p)
{
    size_t start = p->at;
    while (continues_name(peek(p)))
        p->at++;
    size_t length = p->at - start;
    if (accept(p, "("))
        return parse_call(p, start, length);
    sym_scratch_mark mark = sym_scratch_top(p->sym);
    char *name = sym_scratch_take(p->sym, length + 1, 1);
    memcpy(name, p->text + start, length);
    etch_expr value = etch_var(p->sym, name);
    sym_scratch_release(p->sym, mark);
    return value;
}

static etch_expr parse_primary(parser *p)
{
    skip_space(p);
    if (p->failed)
        return NULL;
    enter(p);
    etch_expr value = NULL;
    if (is_digit(peek(p))) {
        value = parse_number(p);
    } else if (begins_name(peek(p))) {
        value = parse_name(p);
    } else if (accept(p, "(")) {
        value = parse_sum(p);
        expect(p, ")");
    } else {
        fail_at(p, p->at);
    }
    p->depth--;
    return value;
}

static etch_expr parse_power(parser *p)
{
    etch_expr base = parse_primary(p);
    if (!accept(p, "^"))
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
        else if (accept(p, "//"))
            operation = etch_floor_div;
        else if (accept(p, "/"))
            operation = etch_div;
        else if (accept(p, "%"))
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

etch_expr etch_expr_parse(etch_sym *sym, const char *text, size_t length, size_t *error_at)
{
    parser p = {.sym = sym, .text = text, .length = length};
    size_t unused;
    error_at = error_at ? error_at : &unused;
    etch_expr value = parse_sum(&p);
    skip_space(&p);
    if (!p.failed && p.at < length)
        fail_at(&p, p.at);
    *error_at = p.failed ? p.at : length;
    return p.failed ? NULL : sym_refresh(sym, value);
}
