/* Questions about formulas, their parts, their text, programs. */
#include "session/api/algebra_int.h"

#include <string.h>

/* ---- questions ----------------------------------------------------------------------------------------- */

/* The witness as text, in the arena of the algebra. */
static void tell(etch_sym *sym, etch_algebra_request *r)
{
    if (r->truth != ETCH_NO || !r->flag)
        return;
    etch_arena *arena = r->algebra->arena;
    etch_counterexample *told = ETCH_NEW(arena, etch_counterexample);
    const char **names = ETCH_NEW_ARRAY(arena, r->witness.count, const char *);
    const char **values = ETCH_NEW_ARRAY(arena, r->witness.count, const char *);
    for (uint32_t i = 0; i < r->witness.count; i++) {
        names[i] = etch_var_name(r->witness.vars[i]);
        values[i] = etch_expr_text(sym, r->witness.values[i]);
    }
    *told = (etch_counterexample){r->witness.count, names, values};
    r->found = told;
}

static etch_status decide(etch_sym *sym, etch_algebra_request *r)
{
    etch_expr a = r->a, b = r->relation == ETCH_REL_TRUE ? etch_int(sym, 0) : r->b;
    if (!a || !b)
        return etch_algebra_fail(r->algebra, ETCH_EINPUT, "an operand without a value");
    switch (r->relation) {
    case ETCH_REL_EQ:
        r->truth = etch_equal(sym, a, b, &r->witness);
        break;
    case ETCH_REL_NE:
    case ETCH_REL_TRUE:
        r->truth = etch_different(sym, a, b, &r->witness);
        break;
    case ETCH_REL_GE:
        r->truth = etch_at_least(sym, a, b, &r->witness);
        break;
    case ETCH_REL_LE:
        r->truth = etch_at_least(sym, b, a, &r->witness);
        break;
    case ETCH_REL_GT:
        r->truth = etch_above(sym, a, b, &r->witness);
        break;
    case ETCH_REL_LT:
        r->truth = etch_above(sym, b, a, &r->witness);
        break;
    case ETCH_REL_DIVIDES:
        r->truth = etch_divides(sym, a, b, &r->witness);
        break;
    }
    tell(sym, r);
    return ETCH_OK;
}

static etch_status decide_integer(etch_sym *sym, etch_algebra_request *r)
{
    if (!r->a)
        return etch_algebra_fail(r->algebra, ETCH_EINPUT, "an operand without a value");
    r->truth = etch_is_integer(sym, r->a, &r->witness);
    tell(sym, r);
    return ETCH_OK;
}

static etch_status ask(etch_algebra *al, etch_algebra_request *r, etch_truth *truth,
                       etch_counterexample *counterexample)
{
    static const etch_counterexample none = {0};
    r->truth = ETCH_UNKNOWN;
    r->flag = counterexample;
    etch_status status = etch_algebra_run(al, r);
    *truth = status == ETCH_OK ? r->truth : ETCH_UNKNOWN;
    if (counterexample)
        *counterexample = status == ETCH_OK && r->found ? *(const etch_counterexample *)r->found : none;
    return status;
}

etch_status etch_algebra_decide(etch_algebra *al, etch_relation relation, etch_formula left,
                                etch_formula right, etch_truth *truth, etch_counterexample *counterexample)
{
    etch_algebra_request r = {.body = decide, .relation = relation, .a = left, .b = right};
    return ask(al, &r, truth, counterexample);
}

etch_status etch_algebra_is_integer(etch_algebra *al, etch_formula a, etch_truth *truth,
                                    etch_counterexample *counterexample)
{
    etch_algebra_request r = {.body = decide_integer, .a = a};
    return ask(al, &r, truth, counterexample);
}

/* ---- taking apart -------------------------------------------------------------------------------------- */

static etch_status compare(etch_sym *sym, etch_algebra_request *r)
{
    (void)sym;
    r->flag = r->a && r->a == r->b;
    return ETCH_OK;
}

bool etch_formula_same(etch_algebra *al, etch_formula a, etch_formula b)
{
    etch_algebra_request r = {.body = compare, .a = a, .b = b};
    return etch_algebra_run(al, &r) == ETCH_OK && r.flag;
}

bool etch_formula_integer(etch_formula a, int64_t *value)
{
    return etch_to_i64(a, value);
}

const char *etch_formula_name(etch_formula a)
{
    return etch_var_name(a);
}

static etch_status list_variables(etch_sym *sym, etch_algebra_request *r)
{
    const etch_expr *found;
    if (!r->a)
        return etch_algebra_fail(r->algebra, ETCH_EINPUT, "an operand without a value");
    r->found_count = etch_vars_of(sym, r->a, &found);
    r->found = found;
    return ETCH_OK;
}

etch_status etch_formula_variables(etch_algebra *al, etch_formula a, const etch_formula **variables,
                                   size_t *count)
{
    etch_algebra_request r = {.body = list_variables, .a = a};
    etch_status status = etch_algebra_run(al, &r);
    *variables = r.found;
    *count = r.found_count;
    return status;
}

static etch_status find_degree(etch_sym *sym, etch_algebra_request *r)
{
    if (etch_degree(sym, r->a, r->b, &r->number, &r->other))
        return ETCH_OK;
    return etch_algebra_fail(r->algebra, ETCH_EINPUT, "a formula without a degree in the variable");
}

etch_status etch_formula_degree(etch_algebra *al, etch_formula a, etch_formula variable, int64_t *low,
                                int64_t *high)
{
    etch_algebra_request r = {.body = find_degree, .a = a, .b = variable};
    etch_status status = etch_algebra_run(al, &r);
    *low = r.number;
    *high = r.other;
    return status;
}

static etch_status collect(etch_sym *sym, etch_algebra_request *r)
{
    etch_collected *found;
    if (!r->a)
        return etch_algebra_fail(r->algebra, ETCH_EINPUT, "an operand without a value");
    r->found_count = etch_collect(sym, r->a, (uint32_t)r->count, r->list, &found);
    etch_formula_part *parts = ETCH_NEW_ARRAY(r->algebra->arena, r->found_count, etch_formula_part);
    for (size_t i = 0; i < r->found_count; i++)
        parts[i] = (etch_formula_part){.product = found[i].mono, .coefficient = found[i].coef};
    r->found = parts;
    return ETCH_OK;
}

etch_status etch_formula_collect(etch_algebra *al, etch_formula a, size_t count,
                                 const etch_formula *variables, const etch_formula_part **parts,
                                 size_t *part_count)
{
    etch_algebra_request r = {.body = collect, .a = a, .count = count, .list = variables};
    etch_status status = etch_algebra_run(al, &r);
    *parts = status == ETCH_OK ? r.found : NULL;
    *part_count = status == ETCH_OK ? r.found_count : 0;
    return status;
}

/* ---- text ---------------------------------------------------------------------------------------------- */

static etch_status write_formula(etch_sym *sym, etch_algebra_request *r)
{
    etch_buf out = {.arena = r->arena};
    etch_expr_write(sym, r->a, r->notation, r->form, &out);
    r->written = etch_copy_text(r->algebra->arena, out.text, out.length);
    return ETCH_OK;
}

const char *etch_formula_text(etch_algebra *al, etch_formula a, etch_notation notation, etch_form form)
{
    etch_algebra_request r = {.body = write_formula, .a = a, .notation = notation, .form = form};
    return etch_algebra_run(al, &r) == ETCH_OK ? r.written : NULL;
}

static etch_status write_assignments(etch_sym *sym, etch_algebra_request *r)
{
    etch_buf out = {.arena = r->arena};
    if (r->notation == ETCH_LATEX || r->notation == ETCH_JSON)
        return etch_algebra_fail(r->algebra, ETCH_EINPUT, "a notation without assignments");
    etch_buf_puts(&out, "");
    etch_exprs_write(sym, (uint32_t)r->count, r->list, r->names, r->notation, r->form, &out);
    r->written = etch_copy_text(r->algebra->arena, out.text, out.length);
    return ETCH_OK;
}

const char *etch_formula_assignments(etch_algebra *al, size_t count, const etch_formula *formulas,
                                     const char *const *names, etch_notation notation, etch_form form)
{
    etch_algebra_request r = {.body = write_assignments,
                              .count = count,
                              .list = formulas,
                              .names = names,
                              .notation = notation,
                              .form = form};
    return etch_algebra_run(al, &r) == ETCH_OK ? r.written : NULL;
}

/* ---- programs ------------------------------------------------------------------------------------------ */

static etch_status compile(etch_sym *sym, etch_algebra_request *r)
{
    etch_status status = etch_compile(sym, (uint32_t)r->count, r->list, &r->program);
    return status == ETCH_OK ? status : etch_algebra_fail(r->algebra, status, "formulas cannot be compiled");
}

etch_status etch_formula_compile(etch_algebra *al, size_t count, const etch_formula *formulas,
                                 etch_program **program)
{
    etch_algebra_request r = {.body = compile, .count = count, .list = formulas};
    *program = NULL;
    if (count > UINT32_MAX / 8)
        return ETCH_ELIMIT;
    if (etch_sym_is_frozen(al->sym)) /* shared: nothing may be written */
        return etch_compile(al->sym, (uint32_t)count, formulas, program);
    etch_status status = etch_algebra_run(al, &r);
    *program = r.program;
    return status;
}
