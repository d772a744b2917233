/* Facts: what follows from them, what contradicts them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"
#include "symbolic/symbolic.h"

static etch_expr parse_part(etch_sym *sym, const char *text, size_t length)
{
    size_t at;
    etch_expr e = etch_expr_parse(sym, text, length, &at);
    ck_assert_msg(e != NULL, "%.*s: error at %zu", (int)length, text, at);
    return e;
}

static etch_expr parse(etch_sym *sym, const char *text)
{
    return parse_part(sym, text, strlen(text));
}

/* The two sides of "x == y", "x >= y", "x <= y" (as y >= x) or "x | y", and '=', '>' or '|'. */
static char sides(etch_sym *sym, const char *text, etch_expr *a, etch_expr *b)
{
    static const char *const relations[] = {"==", ">=", "<=", "|"};
    for (size_t i = 0; i < 4; i++) {
        const char *found = strstr(text, relations[i]);
        if (!found)
            continue;
        etch_expr left = parse_part(sym, text, (size_t)(found - text));
        etch_expr right = parse(sym, found + strlen(relations[i]));
        *a = i == 2 ? right : left;
        *b = i == 2 ? left : right;
        return "=>>|"[i];
    }
    ck_abort_msg("no relation in %s", text);
}

static etch_status assume(etch_sym *sym, const char *text, int64_t origin, int64_t *other)
{
    etch_expr a, b;
    switch (sides(sym, text, &a, &b)) {
    case '=':
        return etch_assume_equal(sym, a, b, origin, other);
    case '>':
        return etch_assume_at_least(sym, a, b, origin, other);
    default:
        return etch_assume_divides(sym, a, b, origin, other);
    }
}

static etch_truth ask(etch_sym *sym, const char *text, etch_witness *witness)
{
    etch_expr a, b;
    switch (sides(sym, text, &a, &b)) {
    case '=':
        return etch_equal(sym, a, b, witness);
    case '>':
        return etch_at_least(sym, a, b, witness);
    default:
        return etch_divides(sym, a, b, witness);
    }
}

/* Declares a..z and takes facts that are separated by ';', origins from 0. */
static etch_sym *under(etch_arena *arena, const char *facts)
{
    etch_sym *sym = etch_sym_new(arena);
    char *copy = etch_copy_text(arena, facts, strlen(facts)), *rest = copy;
    for (int64_t origin = 0; *rest; origin++) {
        char *fact = rest;
        rest += strcspn(rest, ";");
        if (*rest)
            *rest++ = '\0';
        int64_t other;
        etch_status status = assume(sym, fact, origin, &other);
        ck_assert_msg(status == ETCH_OK, "%s under %s: status %d", fact, facts, (int)status);
    }
    return sym;
}

/* ---- the acceptance list ------------------------------------------------------------------------------- */

static char *field(char **line)
{
    char *start = *line;
    *line += strcspn(start, "\t\n");
    if (**line)
        *(*line)++ = '\0';
    return start;
}

/* "mod(h,t)==0" as "t | h". */
static const char *as_fact(etch_arena *arena, const char *text)
{
    char n[16], d[16];
    if (sscanf(text, "mod(%15[a-z],%15[a-z0-9])==0", n, d) == 2)
        return etch_text(arena, "%s | %s", d, n);
    return text;
}

static void all_listed_facts_are_proved(etch_arena *arena)
{
    const char *root = getenv("ETCH_SOURCE_DIR");
    FILE *file = fopen(etch_text(arena, "%s/tests/symbolic/facts.tsv", root ? root : "."), "r");
    ck_assert_ptr_nonnull(file);
    char line[512];
    int proved = 0, listed = 0;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        char *at = line;
        const char *id = field(&at);
        char *assumptions = field(&at);
        const char *left = field(&at), *relation = field(&at), *right = field(&at);
        etch_buf facts = {.arena = arena};
        etch_buf_puts(&facts, "");
        for (char *fact = strtok(assumptions, ";"); fact; fact = strtok(NULL, ";"))
            etch_buf_printf(&facts, "%s%s", facts.length ? ";" : "", as_fact(arena, fact));
        etch_sym *sym = under(arena, facts.text);
        listed++;
        if (ask(sym, etch_text(arena, "%s %s %s", left, relation, right), NULL) == ETCH_YES)
            proved++;
        else
            printf("fact %s is not proved\n", id);
    }
    fclose(file);
    ck_assert_int_eq(listed, 40);
    ck_assert_int_eq(proved, listed);
}

/* ---- questions under facts ----------------------------------------------------------------------------- */

typedef struct question {
    const char *facts, *statement;
    etch_truth answer;
} question;

/* clang-format off */
static const question questions[] = {
    /* sizes of a model on a mesh */
    {"dp*micro | batch", "dp | batch", ETCH_YES},
    {"dp*micro | batch", "micro | batch/dp", ETCH_YES},
    {"dp*micro | batch", "dp*micro | batch*seq", ETCH_YES},
    {"dp*micro | batch", "dp^2 | batch", ETCH_NO},
    {"dp*micro | batch", "batch >= dp*micro", ETCH_YES},
    {"kv | heads", "heads/kv*kv == heads", ETCH_YES},
    {"kv | heads; tp | kv", "tp | heads", ETCH_YES},
    {"kv | heads; tp | kv", "heads/tp >= heads/kv", ETCH_YES},
    {"heads | hidden; tp | heads", "tp | hidden", ETCH_YES},
    {"heads | hidden; tp | hidden/heads", "tp | hidden", ETCH_YES},
    {"heads | hidden; tp | hidden/heads", "tp*heads | hidden", ETCH_YES},
    {"heads | hidden; tp | hidden/heads", "tp | heads", ETCH_NO},
    {"tp | heads; tp | kv; cp | seq", "tp*cp | heads*seq", ETCH_YES},
    {"a | h; b | h", "a*b | h", ETCH_NO},
    {"a | h; b | k", "a*b | h*k", ETCH_YES},
    {"2 | h; 3 | h", "6 | h", ETCH_YES},
    {"4 | h; 6 | h", "12 | h", ETCH_YES},
    {"4 | h; 6 | h", "24 | h", ETCH_NO},
    {"8 | 3*h", "8 | h", ETCH_YES},
    {"128 | v", "v % 64 == 0", ETCH_YES},
    {"128 | v", "ceil(v/128)*128 == v", ETCH_YES},
    {"128*tp | v", "ceil(v/tp)*tp == v", ETCH_YES},
    {"tp | 8", "tp <= 8", ETCH_YES},
    {"tp | 8", "tp | 16", ETCH_YES},
    {"tp | 8", "tp | 4", ETCH_NO},
    {"a | b; b | c; c | d; d | e; e | f", "a | f", ETCH_YES},
    {"a | b; b | c; c | d; d | e; e | f", "f >= a", ETCH_YES},
    {"pp | l", "floor((l + pp - 1 - 0)/pp) == l/pp", ETCH_YES},
    /* inequalities */
    {"s >= w", "s*h >= w*h", ETCH_YES},
    {"s >= w; w >= 128", "s >= 128", ETCH_YES},
    {"s >= w; w >= 128", "s >= 129", ETCH_NO},
    {"s >= w", "max(s, w) == s", ETCH_YES},
    {"s >= w", "min(s, w) == w", ETCH_YES},
    {"a >= b; b >= c; c >= d; d >= e; e >= f; f >= g", "a >= g", ETCH_YES},
    {"f >= g; e >= f; d >= e; c >= d; b >= c; a >= b", "a >= g", ETCH_YES},
    {"8 >= tp", "8*a >= tp*a", ETCH_YES},
    {"8 >= tp", "7 >= tp", ETCH_NO},
    {"a >= b; b >= a", "a == b", ETCH_YES},
    {"x >= 3", "x^2 >= 9", ETCH_YES},
    {"x >= 3", "x^2 - 5*x + 6 >= 0", ETCH_YES},
    {"x >= 3", "x^2 - 5*x + 5 >= 0", ETCH_NO},
    /* equalities */
    {"h == a*d", "h*h == a^2*d^2", ETCH_YES},
    {"h == a*d", "a | h", ETCH_YES},
    {"h == a*d", "h/a == d", ETCH_YES},
    {"h == a*d; tp | a", "tp | h", ETCH_YES},
    {"h == a*d; tp | a", "(a/tp)*d*tp == h", ETCH_YES},
    {"a == b; b == c; c == d", "a == d", ETCH_YES},
    {"a == b; b == c; c == a", "a == c", ETCH_YES},
    {"t == i*p + x", "t >= x + 1", ETCH_YES},
    {"t == i*p + x", "t - x == p*i", ETCH_YES},
    {"x == 2*y", "x % 2 == 0", ETCH_YES},
    {"2*x == 3*y", "2 | y", ETCH_YES},
    {"2*x == 3*y", "3 | x", ETCH_YES},
    {"x == 5", "x^2 == 25", ETCH_YES},
    {"a*b == 12", "b | 12", ETCH_YES},
    /* none */
    {"", "max(a, b) >= min(a, b)", ETCH_YES},
    {"", "abs(a - b) >= 0", ETCH_YES},
    {"", "a % 8 <= 7", ETCH_YES},
    {"", "a % b <= b - 1", ETCH_YES},
    {"", "ceil(a/b) >= floor(a/b)", ETCH_YES},
    {"", "ceil(a/b) <= floor(a/b) + 1", ETCH_YES},
    {"", "ceil(a/b)*b >= a", ETCH_YES},
    {"", "ceil(a/b)*b <= a + b - 1", ETCH_YES},
    {"", "(a + b - 1)//b >= 1", ETCH_YES},
    {"", "(p - 1)/(m + p - 1) <= 1", ETCH_YES},
    {"", "a/(a + b) + b/(a + b) == 1", ETCH_YES},
    {"", "min(max(a, b), c) <= max(a, b)", ETCH_YES},
    {"", "min(max(a, b), c) >= min(a, c)", ETCH_YES},
    {"a >= b", "min(max(c, b), a) >= b", ETCH_YES},
    {"a >= b", "min(max(c, b), a) <= a", ETCH_YES},
    {"", "max(a, b)*min(a, b) == a*b", ETCH_YES},
    {"", "a >= b", ETCH_NO},
    {"", "a == b", ETCH_NO},
    {"", "a*b >= a + b", ETCH_NO},
    {"", "2 | a*(a + 1)", ETCH_YES},
    {"", "3 | a*(a + 1)", ETCH_NO},
    {"", "6 | a*(a + 1)*(a + 2)", ETCH_YES},
    {"", "s*(s + 1)/2 == floor(s*(s + 1)/2)", ETCH_YES},
    {"", "a/2 >= floor(a/2)", ETCH_YES},
    {"", "floor(3*a/2) == a + floor(a/2)", ETCH_YES},
    {"", "floor(29/(8*a)) == floor(3/a)", ETCH_YES},
    {"", "floor((29 + 8*b)/(8*a)) == floor((3 + b)/a)", ETCH_YES},
    {"", "floor((29 + 3*b)/(8*a)) == floor((3 + b)/a)", ETCH_NO},
    {"", "ceil(64/(8*a)) == floor(63/(8*a)) + 1", ETCH_YES},
    {"", "floor((a + 2*b)/3) == floor((a - b)/3) + b", ETCH_YES},
    {"", "a^2 + b^2 >= 2*a*b", ETCH_YES},
    {"", "a^2 + b^2 + c^2 >= a*b + b*c + c*a", ETCH_YES},
    {"", "a^2 + b^2 >= 2*a*b + 1", ETCH_NO},
    {"", "a <= 10^9", ETCH_NO},
    /* functions in facts */
    {"h % t == 0", "t | h", ETCH_YES},
    {"t*floor(h/t) == h", "t | h", ETCH_YES},
    {"h/t == floor(h/t)", "t | 2*h", ETCH_YES},
    {"ceil(v/tp) == v/tp", "tp | v", ETCH_YES},
    {"tp*ceil(v/tp) == v", "tp | v", ETCH_YES},
    {"floor(l/p) >= 2", "l >= 2*p", ETCH_YES},
    {"floor(l/p) >= 2", "l >= 2*p + 1", ETCH_NO},
    {"3 >= floor(l/p)", "4*p >= l + 1", ETCH_YES},
    {"3 >= floor(l/p)", "3*p >= l", ETCH_NO},
    {"min(a, b) >= c", "a >= c", ETCH_YES},
    {"min(a, b) >= c", "a + b >= 2*c", ETCH_YES},
    {"c >= max(a, b)", "c >= b", ETCH_YES},
    {"c >= max(a, b)", "b >= a", ETCH_NO},
};
/* clang-format on */

static void questions_are_answered(etch_arena *arena)
{
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        const question *q = &questions[i];
        etch_truth answer = ask(under(arena, q->facts), q->statement, NULL);
        ck_assert_msg(answer == q->answer, "under \"%s\": \"%s\" is %d, not %d", q->facts, q->statement,
                      (int)answer, (int)q->answer);
    }
}

/* ---- simplification under facts ------------------------------------------------------------------------ */

typedef struct form {
    const char *facts, *text, *prints;
} form;

static const form forms[] = {
    {"t | h", "floor(h/t)", "h/t"},
    {"t | h", "(h*s) % t", "0"},
    {"t | h", "(h + t) // t", "h/t + 1"},
    {"t | h", "(h + a) // t", "floor(a/t) + h/t"},
    {"t | h; g | t", "ceil(h/g)", "h/g"},
    {"t | h", "floor(max(h/t, 1))", "h/t"},
    {"t | h", "floor(max(h/t, a))", "max(t*a, h)/t"},
    {"h % t == 0", "floor(h/t)", "h/t"},
    {"a >= b", "max(a, b)", "a"},
    {"a >= b", "abs(b - a)", "a - b"},
    {"a >= b + 1", "b // a", "0"},
    {"b == a*c", "b*b", "b^2"}, /* c, declared last, is replaced by b/a */
    {"b == a*c", "a*c^2*a", "b^2"},
    {"b == a*c", "c", "b/a"},

};

static void forms_under_facts(etch_arena *arena)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        etch_sym *sym = under(arena, forms[i].facts);
        etch_expr e = parse(sym, forms[i].text);
        ck_assert_msg(strcmp(etch_expr_text(sym, e), forms[i].prints) == 0, "under \"%s\" %s prints as %s",
                      forms[i].facts, forms[i].text, etch_expr_text(sym, e));
        ck_assert_ptr_eq(parse(sym, etch_expr_text(sym, e)), e);
    }
}

/* Expressions from before a fact are brought up to date by whatever uses them. */
static void old_expressions_learn_facts(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    int64_t other;
    etch_expr floor = parse(sym, "floor(h/t)"), product = parse(sym, "x*y"), larger = parse(sym, "max(a, b)");
    ck_assert_int_eq(assume(sym, "t | h", 0, &other), ETCH_OK);
    ck_assert_int_eq(assume(sym, "x == 2*t", 1, &other), ETCH_OK);
    ck_assert_int_eq(assume(sym, "a >= b", 2, &other), ETCH_OK);
    ck_assert_ptr_eq(etch_mul(sym, floor, etch_var(sym, "t")), etch_var(sym, "h"));
    ck_assert_ptr_eq(etch_add(sym, product, etch_int(sym, 0)), parse(sym, "2*t*y"));
    ck_assert_int_eq(etch_equal(sym, product, parse(sym, "2*y*t"), NULL), ETCH_YES);
    ck_assert_int_eq(etch_equal(sym, larger, etch_var(sym, "a"), NULL), ETCH_YES);
    ck_assert_ptr_eq(etch_sum(sym, 1, &larger), etch_var(sym, "a"));
}

/* ---- contradictions ------------------------------------------------------------------------------------ */

typedef struct contradiction {
    const char *facts, *fact;
    int64_t other;
} contradiction;

static const contradiction contradictions[] = {
    {"", "a == a + 1", -1},
    {"", "a == 0", -1},
    {"", "a == -b", -1},
    {"", "2*a == 1", -1},
    {"", "3 | 8", -1},
    {"", "0 | a", -1},
    {"", "0 >= a", -1},
    {"", "a >= a + 1", -1},
    {"", "a + b | a", -1},
    {"a == b + 1", "b == a + 1", 0},
    {"a == b; b == c", "a == c + 1", 1},
    {"a >= 8", "7 >= a", 0},
    {"7 >= a", "a >= 8", 0},
    {"a >= b; b >= c", "c >= a + 1", 1},
    {"a >= 8", "a == 5", 0},
    {"a == 12", "8 | a", -1}, /* its sides are the numbers 8 and 12 */
    {"8 | a", "a == 12", 0},
    {"x >= 1; 8 | a; b >= 2", "a == 12", 1},
    {"t | h", "t >= h + 1", 0},
    {"b >= 2; t | h", "t == 2*h", 1},
    {"tp | 8", "tp >= 9", 0},
    {"h == a*d; a == 3", "h == 7", 0},
};

static void contradictions_are_found(etch_arena *arena)
{
    for (size_t i = 0; i < sizeof contradictions / sizeof *contradictions; i++) {
        const contradiction *c = &contradictions[i];
        etch_sym *sym = under(arena, c->facts);
        const char *before = etch_expr_text(sym, parse(sym, "a*d + h + t + max(a, 7) + floor(a/8)"));
        int64_t other = 77;
        etch_status status = assume(sym, c->fact, 99, &other);
        ck_assert_msg(status == ETCH_EINPUT, "%s under %s: status %d", c->fact, c->facts, (int)status);
        ck_assert_msg(other == c->other, "%s under %s: contradicts %lld", c->fact, c->facts,
                      (long long)other);
        /* it was not taken */
        ck_assert_str_eq(etch_expr_text(sym, parse(sym, "a*d + h + t + max(a, 7) + floor(a/8)")), before);
    }
}

/* What the core cannot use yet is true for witnesses. */
static void odd_facts_hold_for_witnesses(etch_arena *arena)
{
    static const char *const facts[] = {"a % 8 == 3", "x + 1 | y", "a*b == a + b + c*c", "floor(l/p) >= 2"};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        etch_sym *sym = etch_sym_new(arena);
        int64_t other;
        etch_status status = assume(sym, facts[i], 0, &other);
        ck_assert_msg(status == ETCH_EUNKNOWN || status == ETCH_OK, "%s: status %d", facts[i], (int)status);
        etch_witness witness;
        if (ask(sym, "a + x + l >= b + y*p", &witness) != ETCH_NO)
            continue;
        etch_expr a, b;
        char relation = sides(sym, facts[i], &a, &b);
        a = etch_subst(sym, a, witness.count, witness.vars, witness.values);
        b = etch_subst(sym, b, witness.count, witness.vars, witness.values);
        int order = etch_constant_compare(sym, a, b);
        ck_assert(relation == '='   ? order == 0
                  : relation == '>' ? order >= 0
                                    : etch_is_integer_constant(etch_div(sym, b, a)));
    }
    etch_sym *sym = etch_sym_new(arena);
    int64_t other;
    ck_assert_int_eq(assume(sym, "a % 8 == 3", 0, &other), ETCH_EUNKNOWN);
    ck_assert_int_eq(ask(sym, "a == 3", NULL), ETCH_NO);
}

/* Between one choice and the other, decided where the facts decide. */
static void choices_are_decided(etch_arena *arena)
{
    etch_sym *sym = under(arena, "a >= b");
    etch_expr a = etch_var(sym, "a"), b = etch_var(sym, "b"), c = etch_var(sym, "c"), one = etch_int(sym, 1);
    ck_assert_ptr_eq(etch_iverson(sym, etch_sub(sym, a, b)), one);
    ck_assert_ptr_eq(etch_iverson(sym, etch_sub(sym, etch_sub(sym, b, a), one)), etch_int(sym, 0));
    ck_assert_ptr_eq(etch_select(sym, etch_sub(sym, a, b), a, c), a);
    etch_expr undecided = etch_iverson(sym, etch_sub(sym, c, a));
    ck_assert_int_eq(etch_at_least(sym, undecided, etch_int(sym, 0), NULL), ETCH_YES);
    ck_assert_int_eq(etch_at_least(sym, one, undecided, NULL), ETCH_YES);
    ck_assert_int_eq(etch_is_integer(sym, undecided, NULL), ETCH_YES);
}

/* ---- kinds of variables -------------------------------------------------------------------------------- */

static void declarations_count(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_var_at_least(sym, etch_var(sym, "z"), 0);
    etch_var_at_least(sym, etch_var(sym, "n"), -4);
    etch_var_at_least(sym, etch_var(sym, "big"), 100);
    etch_var_real(sym, etch_var(sym, "r"));
    ck_assert_int_eq(ask(sym, "z >= 0", NULL), ETCH_YES);
    ck_assert_int_eq(ask(sym, "z >= 1", NULL), ETCH_NO);
    ck_assert_int_eq(ask(sym, "n >= -4", NULL), ETCH_YES);
    ck_assert_int_eq(ask(sym, "n^2 >= n", NULL), ETCH_UNKNOWN);
    ck_assert_int_eq(ask(sym, "n*n >= 0", NULL), ETCH_YES);
    ck_assert_int_eq(ask(sym, "big*b >= 100", NULL), ETCH_YES);
    ck_assert_int_eq(ask(sym, "r >= 0", NULL), ETCH_YES);
    ck_assert_int_eq(ask(sym, "r*r >= r", NULL), ETCH_NO);
    ck_assert_int_eq(etch_is_integer(sym, parse(sym, "n*z + big"), NULL), ETCH_YES);
    ck_assert_int_eq(etch_is_integer(sym, parse(sym, "2*r"), NULL), ETCH_NO);
    ck_assert_int_eq(etch_is_integer(sym, parse(sym, "floor(r) + max(z, n)"), NULL), ETCH_YES);
    ck_assert_int_eq(etch_is_integer(sym, parse(sym, "max(r, n)"), NULL), ETCH_NO);
    ck_assert_str_eq(etch_expr_text(sym, parse(sym, "abs(n)")), "abs(n)");
    ck_assert_str_eq(etch_expr_text(sym, parse(sym, "max(z, 0)")), "z");
    ck_assert_str_eq(etch_expr_text(sym, parse(sym, "floor(r + z)")), "z + floor(r)");
}

#define CASE(name, function)       \
    START_TEST(name)               \
    {                              \
        etch_with_arena(function); \
    }                              \
    END_TEST

CASE(test_list, all_listed_facts_are_proved)
CASE(test_questions, questions_are_answered)
CASE(test_forms, forms_under_facts)
CASE(test_old_expressions, old_expressions_learn_facts)
CASE(test_contradictions, contradictions_are_found)
CASE(test_odd_facts, odd_facts_hold_for_witnesses)
CASE(test_choices, choices_are_decided)
CASE(test_declarations, declarations_count)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("facts");
    ETCH_ADD_TESTS(suite, test_list, test_questions, test_forms, test_old_expressions, test_contradictions,
                   test_odd_facts, test_choices, test_declarations);
    return suite;
}
