/* The public questions: yes by proof, no by witness, else unknown. */
#include <string.h>

#include "symbolic/symbolic_int.h"

enum { FEW_POINTS = 5, ALL_POINTS = 96 };

/* Statements about two expressions. */
typedef enum relation { EQUAL, DIFFERENT, AT_LEAST, ABOVE, DIVIDES } relation;

typedef struct question {
    relation relation;
    /* as they were given */
    etch_expr asked[2];
    /* canonical */
    etch_expr a, b;
    etch_witness *witness;
} question;

/* ---- no, with a witness -------------------------------------------------------------------------------- */

/* Is the statement false at this point? Where a side is undefined it says nothing. */
static bool false_at(etch_sym *sym, const question *q, const sym_coef *point)
{
    sym_coef a, b;
    if (!sym_eval(sym, q->a, point, &a) || !sym_eval(sym, q->b, point, &b))
        return false;
    switch (q->relation) {
    case EQUAL:
        return !sym_coef_equal(a, b);
    case DIFFERENT:
        return sym_coef_equal(a, b);
    case AT_LEAST:
        return sym_coef_compare(a, b) < 0;
    case ABOVE:
        return sym_coef_compare(a, b) <= 0;
    case DIVIDES:
        return !sym_coef_is_zero(a) && !sym_coef_is_integer(sym_coef_div(sym, b, a));
    }
    return false;
}

/* Adds the variables of facts that share one with those seen, until nothing is added. */
static void add_connected(etch_sym *sym, bool *seen, bool *scratch)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t f = 0; f < sym->facts.count; f++) {
            bool shares = false;
            memset(scratch, 0, sym->vars.count);
            sym_mark_vars(sym, sym->facts.at[f].a, scratch);
            sym_mark_vars(sym, sym->facts.at[f].b, scratch);
            for (uint32_t i = 0; i < sym->vars.count; i++)
                shares = shares || (scratch[i] && seen[i]);
            for (uint32_t i = 0; shares && i < sym->vars.count; i++) {
                changed = changed || (scratch[i] && !seen[i]);
                seen[i] = seen[i] || scratch[i];
            }
        }
    }
}

/* A variable that an equality makes a number: it is in no expression any more. */
static bool is_fixed(const sym_atom *var)
{
    return var->definition && sym_is_constant(var->definition);
}

/* Writes down the point: variables of the question, those that facts tie to them, and those that are
 * fixed. */
static void tell(etch_sym *sym, const question *q, const sym_coef *point)
{
    if (!q->witness)
        return;
    sym_scratch_mark mark = sym_scratch_top(sym);
    bool *seen = sym_scratch_take(sym, sym->vars.count + 1, sizeof *seen);
    bool *scratch = sym_scratch_take(sym, sym->vars.count + 1, sizeof *scratch);
    sym_mark_vars(sym, q->asked[0], seen);
    sym_mark_vars(sym, q->asked[1], seen);
    add_connected(sym, seen, scratch);
    ETCH_VEC(etch_expr) vars = {0}, values = {0};
    for (uint32_t i = 0; i < sym->vars.count; i++)
        if (sym->vars.at[i]->name && (seen[i] || is_fixed(sym->vars.at[i]))) {
            ETCH_PUSH(sym->arena, &vars, sym->vars.at[i]->self);
            ETCH_PUSH(sym->arena, &values, sym_constant(sym, point[i]));
        }
    *q->witness = (etch_witness){vars.count, vars.at, values.at};
    sym_scratch_release(sym, mark);
}

static bool refuted(etch_sym *sym, const question *q, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const sym_coef *point = sym_point(sym, i);
        if (!point)
            return false;
        if (false_at(sym, q, point)) {
            tell(sym, q, point);
            return true;
        }
    }
    return false;
}

/* Far out along one variable, where small values say nothing. */
static bool refuted_far_out(etch_sym *sym, const question *q)
{
    static const int64_t far[] = {10007, 1 << 20, 1000000007, INT64_C(1) << 53};
    enum { FAR = sizeof far / sizeof *far, MOST_VARS = 16 };
    sym_scratch_mark mark = sym_scratch_top(sym);
    const sym_coef *start = sym_point(sym, 0);
    bool *seen = sym_scratch_take(sym, sym->vars.count + 1, sizeof *seen);
    uint32_t asked = 0;
    bool found = false;
    sym_mark_vars(sym, q->asked[0], seen);
    sym_mark_vars(sym, q->asked[1], seen);
    for (uint32_t i = 0; start && !found && i < sym->vars.count && asked < MOST_VARS; i++) {
        if (!seen[i] || !sym->vars.at[i]->name)
            continue;
        asked++;
        for (int k = 0; !found && k < FAR; k++) {
            sym_scratch_mark here = sym_scratch_top(sym);
            const sym_coef *point = sym_point_moved(sym, start, sym->vars.at[i], far[k]);
            found = point && false_at(sym, q, point);
            if (found)
                tell(sym, q, point);
            sym_scratch_release(sym, here);
        }
    }
    sym_scratch_release(sym, mark);
    return found;
}

/* ---- yes, by proof ------------------------------------------------------------------------------------- */

static bool proves_integer(etch_sym *sym, etch_expr a)
{
    if (sym_is_integer(sym, a))
        return true;
    /* a - 1 < floor(a) <= a */
    etch_expr above = sym_sub(sym, sym_floor(sym, a), a);
    return above->count == 0 || sym_is_nonnegative(sym, above);
}

static bool proves_zero(etch_sym *sym, etch_expr a)
{
    return sym_is_nonnegative(sym, a) && sym_is_nonnegative(sym, sym_neg(sym, a));
}

static bool proves_apart(etch_sym *sym, etch_expr a)
{
    return sym_is_positive(sym, a) || sym_is_positive(sym, sym_neg(sym, a));
}

/* Is it what a fact says, that the two are different? */
static bool is_assumed_apart(etch_sym *sym, const question *q)
{
    etch_expr asked = sym_sub(sym, q->a, q->b);
    for (uint32_t i = 0; i < sym->facts.count; i++) {
        const sym_fact *fact = &sym->facts.at[i];
        etch_expr a = fact->kind == ETCH_SYM_FACT_DIFFERENT ? sym_refresh(sym, fact->a) : NULL;
        etch_expr b = a ? sym_refresh(sym, fact->b) : NULL;
        if (b && (sym_sub(sym, a, b) == asked || sym_sub(sym, b, a) == asked))
            return true;
    }
    return false;
}

static bool holds(etch_sym *sym, const question *q)
{
    static sym_claim *const claims[] = {[EQUAL] = proves_zero,
                                        [DIFFERENT] = proves_apart,
                                        [AT_LEAST] = sym_is_nonnegative,
                                        [ABOVE] = sym_is_positive,
                                        [DIVIDES] = proves_integer};
    etch_expr a = q->relation == DIVIDES ? sym_div(sym, q->b, q->a) : sym_sub(sym, q->a, q->b);
    sym_claim *claim = claims[q->relation];
    if (q->relation == DIFFERENT && is_assumed_apart(sym, q))
        return true;
    return a && (claim(sym, a) || sym_holds_by_remainders(sym, a, claim));
}

static etch_truth decide(etch_sym *sym, relation kind, etch_expr a, etch_expr b, etch_witness *witness)
{
    question q = {kind, {a, b}, sym_refresh(sym, a), sym_refresh(sym, b), witness};
    if (q.witness)
        *q.witness = (etch_witness){0};
    if (!q.a || !q.b)
        return ETCH_UNKNOWN;
    if (q.a == q.b && (q.relation == EQUAL || q.relation == AT_LEAST))
        return ETCH_YES;
    if (refuted(sym, &q, 0, FEW_POINTS))
        return ETCH_NO;
    if (holds(sym, &q))
        return ETCH_YES;
    return refuted(sym, &q, FEW_POINTS, ALL_POINTS) || refuted_far_out(sym, &q) ? ETCH_NO : ETCH_UNKNOWN;
}

etch_truth etch_equal(etch_sym *sym, etch_expr a, etch_expr b, etch_witness *witness)
{
    return decide(sym, EQUAL, a, b, witness);
}

etch_truth etch_at_least(etch_sym *sym, etch_expr a, etch_expr b, etch_witness *witness)
{
    return decide(sym, AT_LEAST, a, b, witness);
}

etch_truth etch_different(etch_sym *sym, etch_expr a, etch_expr b, etch_witness *witness)
{
    return decide(sym, DIFFERENT, a, b, witness);
}

etch_truth etch_above(etch_sym *sym, etch_expr a, etch_expr b, etch_witness *witness)
{
    return decide(sym, ABOVE, a, b, witness);
}

etch_truth etch_divides(etch_sym *sym, etch_expr d, etch_expr n, etch_witness *witness)
{
    return decide(sym, DIVIDES, d, n, witness);
}

etch_truth etch_is_integer(etch_sym *sym, etch_expr a, etch_witness *witness)
{
    return decide(sym, DIVIDES, sym->one, a, witness);
}
