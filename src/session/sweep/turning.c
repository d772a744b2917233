/* Where a statement begins, or ends, to hold, as its formula says it: in closed form, or by bisection of what
 * is proved to rise or to fall. */
#include "session/sweep/solve_int.h"

/* Values above are not looked at. */
#define LARGEST (INT64_C(1) << 60)

typedef struct finding {
    etch_turning *out;
    etch_sym *sym;
    etch_expr var;
    /* left, right; left - right */
    const etch_expr *sides;
    etch_expr gap;
} finding;

/* ---- structure ----------------------------------------------------------------------------------------- */

typedef struct deciding {
    etch_sym *sym;
    const etch_settings *settings;
    etch_expr var;
    bool found;
} deciding;

static void look_for(void *data, etch_expr value)
{
    deciding *d = data;
    const etch_expr *vars;
    value = etch_settings_apply(d->sym, d->settings, value);
    const uint32_t count = value ? etch_vars_of(d->sym, value, &vars) : 0;
    for (uint32_t i = 0; i < count; i++)
        d->found = d->found || vars[i] == d->var;
}

/* Of all models that the statement asked. */
static bool decides_structure(const etch_case_look *look, etch_expr var)
{
    etch_session *session = look->session;
    deciding d = {session->sym, look->settings, var, false};
    for (uint32_t i = 0; i < session->compiled_models.count; i++) {
        const etch_compiled *p = session->compiled_models.at[i];
        d.settings = p->settings ? p->settings : look->settings;
        if (p->training)
            etch_structure_each(p, look_for, &d);
        etch_structure_of_mesh(session->sym, d.settings, p->plan, look_for, &d);
    }
    return d.found;
}

/* ---- signs --------------------------------------------------------------------------------------------- */

/* Is the statement true where the difference of its sides has this sign? */
static bool holds_for(etch_relation relation, int sign)
{
    switch (relation) {
    case ETCH_REL_LT:
        return sign < 0;
    case ETCH_REL_GE:
        return sign >= 0;
    case ETCH_REL_GT:
        return sign > 0;
    default:
        return sign <= 0;
    }
}

/* False: it is undefined there. */
static bool sign_at(const finding *f, etch_expr at, int *sign)
{
    etch_expr value = etch_subst(f->sym, f->gap, 1, &f->var, &at);
    if (!value || !etch_is_constant(value))
        return false;
    *sign = etch_constant_compare(f->sym, value, etch_int(f->sym, 0));
    return true;
}

/* ---- closed form --------------------------------------------------------------------------------------- */

/* The index of the first value of the lattice that is at least, or more than, the root. */
static int64_t index_behind(const finding *f, etch_expr root, bool more)
{
    const etch_lattice *l = &f->out->lattice;
    etch_expr steps =
        etch_div(f->sym, etch_sub(f->sym, root, etch_int(f->sym, l->first)), etch_int(f->sym, l->step));
    etch_expr index =
        more ? etch_add(f->sym, etch_floor(f->sym, steps), etch_int(f->sym, 1)) : etch_ceil(f->sym, steps);
    int64_t value;
    if (etch_constant_compare(f->sym, index, etch_int(f->sym, 0)) <= 0)
        return 0;
    return etch_to_i64(index, &value) ? value : INT64_MAX;
}

/* On the lattice, roundings may vanish: batch/8 is an integer where batch is 8*i. */
static etch_expr on_lattice(const finding *f, etch_expr *index)
{
    const etch_lattice *l = &f->out->lattice;
    *index = etch_var(f->sym, "(index)");
    etch_var_at_least(f->sym, *index, 0);
    etch_expr value =
        etch_add(f->sym, etch_int(f->sym, l->first), etch_mul(f->sym, etch_int(f->sym, l->step), *index));
    return etch_subst(f->sym, f->gap, 1, &f->var, &value);
}

/* The root of the difference, in the variable. */
static etch_trend find_root(const finding *f, etch_expr *root)
{
    etch_expr index;
    const etch_trend trend = etch_linear_root(f->sym, f->gap, f->var, root);
    if (trend != ETCH_TREND_UNKNOWN || f->out->is_real)
        return trend;
    const etch_expr gap = on_lattice(f, &index);
    const etch_trend found = etch_linear_root(f->sym, gap, index, root);
    if (*root)
        *root = etch_add(f->sym, etch_int(f->sym, f->out->lattice.first),
                         etch_mul(f->sym, etch_int(f->sym, f->out->lattice.step), *root));
    return found;
}

/* A side of the statement where both are equal. */
static const char *side_at(const finding *f, int side, etch_expr root)
{
    etch_expr value = etch_subst(f->sym, f->sides[side], 1, &f->var, &root);
    return value ? etch_copy_string(f->out->sweep->arena, etch_expr_text(f->sym, value)) : NULL;
}

static bool find_closed(finding *f)
{
    etch_turning *out = f->out;
    etch_expr root;
    const etch_trend trend = find_root(f, &root);
    int sign;
    if (trend == ETCH_TREND_UNKNOWN || (root && !etch_is_constant(root)))
        return false;
    if (trend == ETCH_TREND_CONSTANT) {
        if (!sign_at(f, etch_int(f->sym, out->is_real ? 1 : out->lattice.first), &sign))
            return false;
        out->begins = holds_for(out->relation, sign);
        out->turn = INT64_MAX;
        return true;
    }
    const int before = trend == ETCH_TREND_RISING ? -1 : 1;
    const bool positive = etch_constant_compare(f->sym, root, etch_int(f->sym, 0)) > 0;
    out->holds_at_root = holds_for(out->relation, 0);
    out->begins = holds_for(out->relation, before);
    if (out->is_real) {
        out->begins = holds_for(out->relation, positive ? before : -before);
        out->root = positive ? etch_copy_string(out->sweep->arena, etch_expr_text(f->sym, root)) : NULL;
        out->left = positive ? side_at(f, 0, root) : NULL;
        out->right = positive ? side_at(f, 1, root) : NULL;
        out->turn = positive ? 0 : INT64_MAX;
        return true;
    }
    out->turn = index_behind(f, root, out->holds_at_root == out->begins);
    return true;
}

/* ---- bisection ----------------------------------------------------------------------------------------- */

static bool holds_at(const finding *f, int64_t index, bool *holds)
{
    int sign;
    if (!sign_at(f, etch_int(f->sym, etch_lattice_at(&f->out->lattice, index)), &sign))
        return false;
    *holds = holds_for(f->out->relation, sign);
    return true;
}

static bool find_by_bisection(finding *f)
{
    etch_turning *out = f->out;
    const int64_t most = (LARGEST - out->lattice.first) / out->lattice.step;
    int64_t count = etch_lattice_count(&out->lattice), low = 0, high = 1;
    bool holds;
    count = count < most ? count : most;
    etch_expr index, gap = on_lattice(f, &index);
    if (etch_trend_of(f->sym, gap, index) == ETCH_TREND_UNKNOWN || !holds_at(f, 0, &out->begins))
        return false;
    out->turn = INT64_MAX;
    while (high < count) {
        if (!holds_at(f, high, &holds))
            return false;
        if (holds != out->begins)
            break;
        low = high;
        high = high < count - 1 && 2 * high > count - 1 ? count - 1 : 2 * high;
    }
    if (high >= count)
        return true;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (!holds_at(f, middle, &holds))
            return false;
        *(holds == out->begins ? &low : &high) = middle;
    }
    out->turn = high;
    return true;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static etch_turning_trouble find(finding *f)
{
    etch_turning *out = f->out;
    const bool any = out->wanted == ETCH_SOLVE_AUTO;
    if (out->lattice.empty && !out->is_real) {
        out->turn = INT64_MAX;
        return ETCH_TURNING_FINE;
    }
    if ((any || out->wanted == ETCH_SOLVE_CLOSED) && find_closed(f)) {
        out->method = ETCH_SOLVE_CLOSED;
        return ETCH_TURNING_FINE;
    }
    if (out->wanted == ETCH_SOLVE_CLOSED || out->is_real)
        return ETCH_TURNING_NOT_LINEAR;
    if ((any || out->wanted == ETCH_SOLVE_BISECTION) && find_by_bisection(f)) {
        out->method = ETCH_SOLVE_BISECTION;
        return ETCH_TURNING_FINE;
    }
    return ETCH_TURNING_NOT_MONOTONE;
}

void etch_turning_look(void *data, const etch_case_look *look)
{
    etch_turning *out = data;
    etch_sym *sym = look->session->sym;
    etch_expr var = etch_var(sym, out->name);
    finding f = {out, sym, var, look->exprs, etch_sub(sym, look->exprs[0], look->exprs[1])};
    if (decides_structure(look, var)) {
        out->trouble = ETCH_TURNING_DECIDES;
        return;
    }
    out->lattice = etch_lattice_of(look, var, out->is_size && out->least < 2 ? 2 : out->least);
    out->trouble = f.gap ? find(&f) : ETCH_TURNING_NO_FORMULA;
}
