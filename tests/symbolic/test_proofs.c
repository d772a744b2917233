/* Answers about random statements under random assumptions: each yes is checked at many points that
 * satisfy the assumptions, each no at its witness. */
#include "oracle.h"

#include <stdio.h>

enum { MAX_FACTS = 3, CHECKED_POINTS = 100 };

/* A fact or statement between trees: '|' a divides b, '=' equal, '>' at least, '!' different, 'G' above. */
typedef struct fact {
    char kind;
    tree *a, *b;
} fact;

typedef struct facts {
    fact at[MAX_FACTS];
    uint32_t count;
} facts;

static bool value_holds(char kind, const mpq_t a, const mpq_t b)
{
    if (kind == '=')
        return mpq_equal(a, b);
    if (kind == '!')
        return !mpq_equal(a, b);
    if (kind == '>')
        return mpq_cmp(a, b) >= 0;
    if (kind == 'G')
        return mpq_cmp(a, b) > 0;
    if (mpq_sgn(a) == 0)
        return false;
    mpq_t ratio;
    mpq_init(ratio);
    mpq_div(ratio, b, a);
    bool whole = mpz_cmp_ui(mpq_denref(ratio), 1) == 0;
    mpq_clear(ratio);
    return whole;
}

/* -1 undefined, 0 false, 1 true */
static int fact_at(const fact *f, const point *p)
{
    mpq_t a, b;
    mpq_inits(a, b, NULL);
    int result = -1;
    if (tree_value(f->a, p, a) && tree_value(f->b, p, b) && !(f->kind == '|' && mpq_sgn(a) == 0))
        result = value_holds(f->kind, a, b);
    mpq_clears(a, b, NULL);
    return result;
}

static bool all_hold(const facts *assumed, const point *p)
{
    for (uint32_t i = 0; i < assumed->count; i++)
        if (fact_at(&assumed->at[i], p) != 1)
            return false;
    return true;
}

/* A random point that satisfies the facts, by trying; false when none was found. */
static bool satisfying(const facts *assumed, chance *c, point *p)
{
    for (int i = 0; i < 150; i++) {
        point_random(p, c, i % 3 == 0 ? 4 : i % 3 == 1 ? 12 : 60);
        if (all_hold(assumed, p))
            return true;
        /* products of small numbers divide more often */
        for (uint32_t v = 0; v < 5; v++)
            mpq_set_si(p->at[v], 1 << chance_below(c, 6), 1);
        if (all_hold(assumed, p))
            return true;
    }
    return false;
}

/* Points that satisfy the facts of the moment, found when they are first asked for. */
typedef struct pool {
    point at[CHECKED_POINTS];
    uint32_t count;
    bool filled;
} pool;

static void pool_fill(pool *points, const facts *assumed, chance *c)
{
    if (points->filled)
        return;
    points->filled = true;
    points->count = 0;
    while (points->count < CHECKED_POINTS && satisfying(assumed, c, &points->at[points->count]))
        points->count++;
}

/* pow2(product) == 1, or == 0. */
static fact random_power(etch_arena *arena, chance *c)
{
    static const tree_shape product = {"**/", "abcde", 6, 2, 4};
    tree *power = ETCH_NEW(arena, tree), *number = ETCH_NEW(arena, tree);
    *power = (tree){.op = 'P', .a = tree_random(arena, c, &product), .den = 1};
    *number = (tree){.op = '#', .num = chance_below(c, 4) > 0, .den = 1};
    return (fact){'=', power, number};
}

static fact random_fact(etch_arena *arena, chance *c)
{
    static const tree_shape monomial = {"**", "", 5, 1, 4}, ratio = {"**/", "abcde", 5, 2, 4},
                            plain = {"++-*", "", 8, 2, 4}, functions = {"+-qq%mMP", "abc23", 8, 2, 4};
    fact f = {.kind = "|=>"[chance_below(c, 3)]};
    if (chance_below(c, 6) == 0)
        return random_power(arena, c);
    const tree_shape sum = chance_below(c, 3) ? plain : functions;
    f.a = tree_random(arena, c,
                      f.kind == '|'                         ? &monomial
                      : f.kind == '=' && chance_below(c, 2) ? &ratio
                                                            : &sum);
    f.b = tree_random(arena, c, f.kind == '|' ? &ratio : &sum);
    return f;
}

static etch_status assume(etch_sym *sym, const fact *f, int64_t origin)
{
    int64_t other;
    etch_expr a = tree_build(sym, f->a), b = tree_build(sym, f->b);
    if (f->kind == '|')
        return etch_assume_divides(sym, a, b, origin, &other);
    return f->kind == '=' ? etch_assume_equal(sym, a, b, origin, &other)
                          : etch_assume_at_least(sym, a, b, origin, &other);
}

/* A statement and its sides as expressions. */
typedef struct statement {
    fact says;
    etch_expr a, b;
} statement;

static etch_truth ask(etch_sym *sym, const statement *s, etch_witness *witness)
{
    switch (s->says.kind) {
    case '|':
        return etch_divides(sym, s->a, s->b, witness);
    case '=':
        return etch_equal(sym, s->a, s->b, witness);
    case '!':
        return etch_different(sym, s->a, s->b, witness);
    case 'G':
        return etch_above(sym, s->a, s->b, witness);
    default:
        return etch_at_least(sym, s->a, s->b, witness);
    }
}

static const char *facts_str(etch_arena *arena, const facts *assumed)
{
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    for (uint32_t i = 0; i < assumed->count; i++)
        etch_buf_printf(&out, "%s %c %s; ", tree_str(arena, assumed->at[i].a), assumed->at[i].kind,
                        tree_str(arena, assumed->at[i].b));
    return out.text;
}

typedef struct tally {
    uint32_t asked, yes, no, unknown, contradictory;
} tally;

static bool names_var(etch_sym *sym, const etch_witness *witness, uint32_t v)
{
    for (uint32_t i = 0; i < witness->count; i++)
        if (witness->vars[i] == etch_var(sym, var_names[v]))
            return true;
    return false;
}

static void mark_vars(const tree *t, bool *seen)
{
    if (t->op == 'v')
        seen[t->num] = true;
    if (t->a)
        mark_vars(t->a, seen);
    if (t->b)
        mark_vars(t->b, seen);
}

/* Does the witness give all variables of the fact? */
static bool covers(etch_sym *sym, const etch_witness *witness, const fact *f)
{
    bool seen[VARS] = {false}, all = true;
    mark_vars(f->a, seen);
    mark_vars(f->b, seen);
    for (uint32_t v = 0; v < VARS; v++)
        all = all && (!seen[v] || names_var(sym, witness, v));
    return all;
}

/* The witness as a point; variables that it leaves out keep what they are. */
static void read_witness(etch_sym *sym, const etch_witness *witness, point *p)
{
    for (uint32_t v = 0; v < VARS; v++)
        for (uint32_t i = 0; i < witness->count; i++)
            if (witness->vars[i] == etch_var(sym, var_names[v]))
                constant_value(sym, witness->values[i], p->at[v]);
}

static void check_no(etch_arena *arena, etch_sym *sym, chance *c, const facts *assumed, const statement *s,
                     const etch_witness *witness)
{
    point p;
    point_init(&p);
    read_witness(sym, witness, &p);
    /* where a side was undefined, simplification may have given it a value */
    CHANCE_ASSERT(c, !covers(sym, witness, &s->says) || fact_at(&s->says, &p) != 1,
                  "under %s no to %s %c %s, which holds at %s", facts_str(arena, assumed),
                  tree_str(arena, s->says.a), s->says.kind, tree_str(arena, s->says.b), point_str(arena, &p));
    for (uint32_t i = 0; i < assumed->count; i++) {
        const fact *f = &assumed->at[i];
        CHANCE_ASSERT(c, !covers(sym, witness, f) || fact_at(f, &p) == 1,
                      "under %s the witness %s breaks %s %c %s", facts_str(arena, assumed),
                      point_str(arena, &p), tree_str(arena, f->a), f->kind, tree_str(arena, f->b));
    }
    point_clear(&p);
}

static void check_answer(etch_arena *arena, etch_sym *sym, chance *c, const facts *assumed,
                         const statement *s, pool *points, tally *t)
{
    etch_witness witness;
    etch_truth answer = ask(sym, s, &witness);
    t->asked++;
    t->yes += answer == ETCH_YES;
    t->no += answer == ETCH_NO;
    t->unknown += answer == ETCH_UNKNOWN;
    if (answer == ETCH_NO)
        check_no(arena, sym, c, assumed, s, &witness);
    if (answer == ETCH_YES)
        pool_fill(points, assumed, c);
    for (uint32_t i = 0; answer == ETCH_YES && i < points->count; i++)
        CHANCE_ASSERT(c, fact_at(&s->says, &points->at[i]) != 0,
                      "under %s yes to %s %c %s, which is false at %s", facts_str(arena, assumed),
                      tree_str(arena, s->says.a), s->says.kind, tree_str(arena, s->says.b),
                      point_str(arena, &points->at[i]));
}

/* A copy in which one operand, or the whole, is another one: what differs little is decided with most
 * care. */
static tree *changed(etch_arena *arena, chance *c, const tree *t, const tree_shape *shape)
{
    tree *copy = ETCH_NEW(arena, tree);
    *copy = *t;
    uint64_t pick = chance_below(c, 8);
    if (t->a && (pick < 4 || (pick < 7 && !t->b)))
        copy->a = changed(arena, c, t->a, shape);
    else if (t->b && pick < 7)
        copy->b = changed(arena, c, t->b, shape);
    else if (t->op == '#')
        copy->num += (int64_t)chance_below(c, 3) - 1;
    else
        return tree_random(arena, c, shape);
    return copy;
}

static fact random_statement(etch_arena *arena, chance *c)
{
    static const tree_shape small = {"+-*", "", 5, 2, 4}, integers = {"+-*q%c/", "abc234", 5, 3, 5},
                            all = {"+-*/fcq%MmAPP", "abc234(", 8, 3, 5}, extrema = {"+-MmA", "", 8, 3, 5};
    const tree_shape *shape =
        (const tree_shape *const[]){&small, &integers, &all, &extrema}[chance_below(c, 4)];
    fact f = {.kind = "|=>>>!G"[chance_below(c, 7)]};
    f.b = tree_random(arena, c, shape);
    f.a = f.kind == '|' && chance_below(c, 2) ? tree_random(arena, c, &(tree_shape){"*", "", 5, 1, 4})
          : chance_below(c, 3)                ? tree_random(arena, c, shape)
                                              : changed(arena, c, f.b, &small);
    return f;
}

/* Takes facts as they come; those that are said to contradict the others must do so. */
static void random_facts(etch_arena *arena, etch_sym *sym, chance *c, facts *assumed, tally *t)
{
    uint32_t wanted = (uint32_t)chance_below(c, MAX_FACTS + 1);
    for (uint32_t k = 0; k < wanted; k++) {
        fact f = random_fact(arena, c);
        if (assume(sym, &f, k) != ETCH_EINPUT) {
            assumed->at[assumed->count++] = f;
            continue;
        }
        facts tried = *assumed;
        tried.at[tried.count++] = f;
        point p;
        point_init(&p);
        CHANCE_ASSERT(c, !satisfying(&tried, c, &p), "%s were said to contradict, but hold at %s",
                      facts_str(arena, &tried), point_str(arena, &p));
        point_clear(&p);
        t->contradictory++;
    }
}

static void build(etch_sym *sym, statement *s)
{
    s->a = tree_build(sym, s->says.a);
    s->b = tree_build(sym, s->says.b);
}

/* Statements in a context of their own, some built before the facts are known, some after. */
static void ask_in_one_context(etch_arena *arena, chance *c, pool *points, tally *t)
{
    enum { STATEMENTS = 10 };
    etch_arena *own = etch_arena_new(etch_arena_mem(arena));
    etch_sym *sym = etch_sym_new(own);
    declare_vars(sym, c);
    statement statements[STATEMENTS];
    facts assumed = {.count = 0};
    for (uint32_t k = 0; k < STATEMENTS; k++) {
        statements[k].says = random_statement(own, c);
        if (k % 2)
            build(sym, &statements[k]);
    }
    random_facts(own, sym, c, &assumed, t);
    points->filled = false;
    for (uint32_t k = 0; k < STATEMENTS; k++) {
        if (k % 2 == 0)
            build(sym, &statements[k]);
        check_answer(own, sym, c, &assumed, &statements[k], points, t);
    }
    etch_arena_free(own);
}

static void no_answer_is_wrong(etch_arena *arena)
{
    chance c = chance_new(31);
    tally t = {0};
    pool points;
    for (uint32_t i = 0; i < CHECKED_POINTS; i++)
        point_init(&points.at[i]);
    for (uint32_t i = 0; i < chance_runs(2500); i++)
        ask_in_one_context(arena, &c, &points, &t);
    /* cases by remainders of quotients of long sums took all memory here */
    chance long_sums = {UINT64_C(17391030724409250796), UINT64_C(17391030724409250796)};
    ask_in_one_context(arena, &long_sums, &points, &t);
    for (uint32_t i = 0; i < CHECKED_POINTS; i++)
        point_clear(&points.at[i]);
    printf("%u statements: %u yes, %u no, %u unknown; %u contradictory facts\n", t.asked, t.yes, t.no,
           t.unknown, t.contradictory);
    /* the test means something */
    ck_assert_uint_gt(t.yes, t.asked / 20);
    ck_assert_uint_gt(t.no, t.asked / 5);
}

/* What is built under facts has the tree's value wherever the facts hold. */
static void facts_keep_values(etch_arena *arena)
{
    enum { TREES = 10, POINTS = 8 };
    chance c = chance_new(32);
    tally t = {0};
    point p;
    mpq_t expected, found;
    point_init(&p);
    mpq_inits(expected, found, NULL);
    for (uint32_t i = 0; i < chance_runs(500); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        declare_vars(sym, &c);
        facts assumed = {.count = 0};
        random_facts(own, sym, &c, &assumed, &t);
        for (uint32_t k = 0; k < TREES; k++) {
            statement s = {.says = random_statement(own, &c)};
            build(sym, &s);
            for (uint32_t n = 0; n < POINTS && satisfying(&assumed, &c, &p); n++) {
                if (!tree_value(s.says.b, &p, expected))
                    continue;
                bool defined = s.b && expr_value(sym, s.b, &p, found);
                CHANCE_ASSERT(&c, defined && mpq_equal(expected, found), "under %s %s became %s, at %s",
                              facts_str(own, &assumed), tree_str(own, s.says.b), etch_expr_text(sym, s.b),
                              point_str(own, &p));
                t.asked++;
            }
        }
        etch_arena_free(own);
    }
    printf("%u values under facts\n", t.asked);
    mpq_clears(expected, found, NULL);
    point_clear(&p);
}

START_TEST(test_facts_keep_values)
{
    etch_with_arena(facts_keep_values);
}
END_TEST

START_TEST(test_no_answer_is_wrong)
{
    etch_with_arena(no_answer_is_wrong);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("proofs");
    ETCH_ADD_TESTS(suite, test_no_answer_is_wrong, test_facts_keep_values);
    return suite;
}
