#include "effort.h"
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- random numbers ------------------------------------------------------------------------------------ */

chance chance_new(uint64_t seed)
{
    const uint64_t first = etch_test_seed(seed);
    return (chance){first, first};
}

uint64_t chance_below(chance *c, uint64_t below)
{
    uint64_t x = c->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % below;
}

uint32_t chance_runs(uint32_t count)
{
    return (uint32_t)etch_effort(count);
}

/* ---- variables ----------------------------------------------------------------------------------------- */

const char *const var_names[VARS] = {"a", "b", "c", "d", "e", "z", "n", "r"};
const var_kind var_kinds[VARS] = {VAR_POSITIVE, VAR_POSITIVE,  VAR_POSITIVE,        VAR_POSITIVE,
                                  VAR_POSITIVE, VAR_FROM_ZERO, VAR_FROM_MINUS_FIVE, VAR_REAL};

void declare_vars(etch_sym *sym, chance *shuffle)
{
    uint32_t order[VARS];
    for (uint32_t i = 0; i < VARS; i++)
        order[i] = i;
    for (uint32_t i = VARS; shuffle && i > 1; i--) {
        uint32_t j = (uint32_t)chance_below(shuffle, i), swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
    for (uint32_t i = 0; i < VARS; i++) {
        etch_expr var = etch_var(sym, var_names[order[i]]);
        if (var_kinds[order[i]] == VAR_FROM_ZERO)
            etch_var_at_least(sym, var, 0);
        if (var_kinds[order[i]] == VAR_FROM_MINUS_FIVE)
            etch_var_at_least(sym, var, -5);
        if (var_kinds[order[i]] == VAR_REAL)
            etch_var_real(sym, var);
    }
}

void point_init(point *p)
{
    for (uint32_t i = 0; i < VARS; i++)
        mpq_init(p->at[i]);
}

void point_clear(point *p)
{
    for (uint32_t i = 0; i < VARS; i++)
        mpq_clear(p->at[i]);
}

void point_random(point *p, chance *c, uint64_t range)
{
    for (uint32_t i = 0; i < VARS; i++) {
        long value = (long)chance_below(c, range);
        switch (var_kinds[i]) {
        case VAR_POSITIVE:
            mpq_set_si(p->at[i], value + 1, 1);
            break;
        case VAR_FROM_ZERO:
            mpq_set_si(p->at[i], value, 1);
            break;
        case VAR_FROM_MINUS_FIVE:
            mpq_set_si(p->at[i], value - 5, 1);
            break;
        case VAR_REAL:
            mpq_set_si(p->at[i], value + 1, 1 + chance_below(c, 7));
            mpq_canonicalize(p->at[i]);
            break;
        }
    }
}

const char *point_str(etch_arena *arena, const point *p)
{
    etch_buf out = {.arena = arena};
    for (uint32_t i = 0; i < VARS; i++) {
        char *text = mpq_get_str(NULL, 10, p->at[i]);
        etch_buf_printf(&out, "%s%s=%s", i ? " " : "", var_names[i], text);
        free(text);
    }
    return out.text;
}

/* ---- trees --------------------------------------------------------------------------------------------- */

static tree *leaf(etch_arena *arena, char op, int64_t num, int64_t den)
{
    tree *t = ETCH_NEW(arena, tree);
    *t = (tree){.op = op, .num = num, .den = den};
    return t;
}

static tree *random_leaf(etch_arena *arena, chance *c, const tree_shape *shape)
{
    if (chance_below(c, 4))
        return leaf(arena, 'v', (int64_t)chance_below(c, shape->vars), 1);
    int64_t num = (int64_t)chance_below(c, 2 * (uint64_t)shape->largest + 1) - shape->largest;
    return leaf(arena, '#', num, chance_below(c, 5) ? 1 : 1 + (int64_t)chance_below(c, 6));
}

static tree *random_node(etch_arena *arena, chance *c, const tree_shape *shape, uint32_t depth);

static tree *random_divisor(etch_arena *arena, chance *c, const tree_shape *shape, uint32_t depth)
{
    char pick = shape->divisors[chance_below(c, strlen(shape->divisors))];
    if (pick == '(')
        return random_node(arena, c, shape, depth);
    if (pick >= '0' && pick <= '9')
        return leaf(arena, '#', pick - '0', 1);
    int64_t var = 0;
    while (var_names[var][0] != pick)
        var++;
    return leaf(arena, 'v', var, 1);
}

static tree *random_node(etch_arena *arena, chance *c, const tree_shape *shape, uint32_t depth)
{
    if (depth == 0 || chance_below(c, 4) == 0)
        return random_leaf(arena, c, shape);
    tree *t = leaf(arena, shape->ops[chance_below(c, strlen(shape->ops))], 0, 1);
    t->a = random_node(arena, c, shape, depth - 1);
    if (t->op == '^')
        t->num = strchr(shape->ops, '/') ? (int64_t)chance_below(c, 6) - 2 : (int64_t)chance_below(c, 4);
    else if (strchr("/q%", t->op))
        t->b = random_divisor(arena, c, shape, depth - 1);
    else if (!strchr("fcANP", t->op))
        t->b = random_node(arena, c, shape, depth - 1);
    return t;
}

tree *tree_random(etch_arena *arena, chance *c, const tree_shape *shape)
{
    return random_node(arena, c, shape, shape->depth);
}

etch_expr tree_build_with(etch_sym *sym, const tree *t, const etch_expr *vars)
{
    etch_expr a = t->a ? tree_build_with(sym, t->a, vars) : NULL;
    etch_expr b = t->b ? tree_build_with(sym, t->b, vars) : NULL;
    switch (t->op) {
    case 'v':
        return vars[t->num];
    case '#':
        return etch_ratio(sym, t->num, t->den);
    case '+':
        return etch_add(sym, a, b);
    case '-':
        return etch_sub(sym, a, b);
    case '*':
        return etch_mul(sym, a, b);
    case '/':
        return etch_div(sym, a, b);
    case '^':
        return etch_pow(sym, a, t->num);
    case 'f':
        return etch_floor(sym, a);
    case 'c':
        return etch_ceil(sym, a);
    case 'q':
        return etch_floor_div(sym, a, b);
    case '%':
        return etch_mod(sym, a, b);
    case 'M':
        return etch_max(sym, a, b);
    case 'm':
        return etch_min(sym, a, b);
    case 'A':
        return etch_abs(sym, a);
    case 'P':
        return etch_pow2(sym, a);
    default:
        return etch_neg(sym, a);
    }
}

etch_expr tree_build(etch_sym *sym, const tree *t)
{
    etch_expr vars[VARS];
    for (uint32_t i = 0; i < VARS; i++)
        vars[i] = etch_var(sym, var_names[i]);
    return tree_build_with(sym, t, vars);
}

static void floor_to(mpq_t value)
{
    mpz_fdiv_q(mpq_numref(value), mpq_numref(value), mpq_denref(value));
    mpz_set_ui(mpq_denref(value), 1);
}

/* 1 or 0: halves until something odd is left. */
static void power_of_two_to(mpq_t value)
{
    bool integer = mpz_cmp_ui(mpq_denref(value), 1) == 0 && mpq_sgn(value) > 0;
    while (integer && mpz_even_p(mpq_numref(value)))
        mpz_divexact_ui(mpq_numref(value), mpq_numref(value), 2);
    mpq_set_ui(value, integer && mpz_cmp_ui(mpq_numref(value), 1) == 0, 1);
}

static bool power_to(mpq_t value, int64_t exponent)
{
    if (exponent < 0) {
        if (mpq_sgn(value) == 0)
            return false;
        mpq_inv(value, value);
        exponent = -exponent;
    }
    mpz_pow_ui(mpq_numref(value), mpq_numref(value), (unsigned long)exponent);
    mpz_pow_ui(mpq_denref(value), mpq_denref(value), (unsigned long)exponent);
    return true;
}

static bool binary_value(char op, mpq_t a, const mpq_t b)
{
    if (strchr("/q%", op) && mpq_sgn(b) == 0)
        return false;
    mpq_t quotient;
    switch (op) {
    case '+':
        mpq_add(a, a, b);
        break;
    case '-':
        mpq_sub(a, a, b);
        break;
    case '*':
        mpq_mul(a, a, b);
        break;
    case '/':
        mpq_div(a, a, b);
        break;
    case 'M':
        if (mpq_cmp(a, b) < 0)
            mpq_set(a, b);
        break;
    case 'm':
        if (mpq_cmp(a, b) > 0)
            mpq_set(a, b);
        break;
    default:
        mpq_init(quotient);
        mpq_div(quotient, a, b);
        floor_to(quotient);
        if (op == 'q') {
            mpq_set(a, quotient);
        } else {
            mpq_mul(quotient, quotient, b);
            mpq_sub(a, a, quotient);
        }
        mpq_clear(quotient);
    }
    return true;
}

bool tree_value(const tree *t, const point *p, mpq_t value)
{
    if (t->op == 'v') {
        mpq_set(value, p->at[t->num]);
        return true;
    }
    if (t->op == '#') {
        mpq_set_si(value, t->num, (unsigned long)t->den);
        mpq_canonicalize(value);
        return true;
    }
    if (!tree_value(t->a, p, value))
        return false;
    switch (t->op) {
    case '^':
        return power_to(value, t->num);
    case 'f':
        floor_to(value);
        return true;
    case 'c':
        mpq_neg(value, value);
        floor_to(value);
        mpq_neg(value, value);
        return true;
    case 'A':
        mpq_abs(value, value);
        return true;
    case 'N':
        mpq_neg(value, value);
        return true;
    case 'P':
        power_of_two_to(value);
        return true;
    default:
        break;
    }
    mpq_t right;
    mpq_init(right);
    bool defined = tree_value(t->b, p, right) && binary_value(t->op, value, right);
    mpq_clear(right);
    return defined;
}

void tree_text(const tree *t, etch_buf *out)
{
    const char *call = NULL;
    switch (t->op) {
    case 'v':
        etch_buf_puts(out, var_names[t->num]);
        return;
    case '#':
        etch_buf_printf(out, t->den == 1 && t->num >= 0 ? "%lld" : "(%lld/%lld)", (long long)t->num,
                        (long long)t->den);
        return;
    case 'f':
        call = "floor(";
        break;
    case 'c':
        call = "ceil(";
        break;
    case 'A':
        call = "abs(";
        break;
    case 'P':
        call = "pow2(";
        break;
    case 'N':
        call = "(-";
        break;
    case 'M':
        call = "max(";
        break;
    case 'm':
        call = "min(";
        break;
    default:
        call = "(";
        break;
    }
    etch_buf_puts(out, call);
    tree_text(t->a, out);
    if (t->op == '^')
        etch_buf_printf(out, "^(%lld)", (long long)t->num);
    if (t->b) {
        char plain[] = {' ', t->op, ' ', 0};
        etch_buf_puts(out, t->op == 'q' ? " // " : strchr("Mm", t->op) ? ", " : plain);
        tree_text(t->b, out);
    }
    etch_buf_puts(out, ")");
}

const char *tree_str(etch_arena *arena, const tree *t)
{
    etch_buf out = {.arena = arena};
    tree_text(t, &out);
    return out.text;
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

void constant_value(etch_sym *sym, etch_expr e, mpq_t value)
{
    ck_assert_int_eq(mpq_set_str(value, etch_expr_text(sym, e), 10), 0);
}

bool expr_value(etch_sym *sym, etch_expr e, const point *p, mpq_t value)
{
    etch_expr vars[VARS], values[VARS];
    for (uint32_t i = 0; i < VARS; i++) {
        vars[i] = etch_var(sym, var_names[i]);
        char *text = mpq_get_str(NULL, 10, p->at[i]);
        size_t unused;
        values[i] = etch_expr_parse(sym, text, strlen(text), &unused);
        free(text);
    }
    etch_expr result = etch_subst(sym, e, VARS, vars, values);
    if (!result || !etch_is_constant(result))
        return false;
    constant_value(sym, result, value);
    return true;
}
