/* One plan and config of a sweep: its axes, the statements about them, and which of them decide structure. */
#include "session/sweep/frame_int.h"

#include <string.h>

/* ---- sessions ------------------------------------------------------------------------------------------ */

static const char *set_text(etch_arena *arena, const etch_sweep_axis *axis, const etch_exact *value)
{
    if (!value || value->denominator == 0)
        return etch_text(arena, "%s=%s", axis->name, axis->name);
    if (value->denominator == 1)
        return etch_text(arena, "%s=%lld", axis->name, (long long)value->number);
    return etch_text(arena, "%s=%lld/%lld", axis->name, (long long)value->number,
                     (long long)value->denominator);
}

/* Those of the user, then the axes. */
static const char **sets_of(const etch_sweep *sweep, etch_arena *arena, const etch_sweep_axis *axes,
                            uint32_t count, const etch_exact *values)
{
    const etch_session_options *given = &sweep->session->options;
    const char **sets = ETCH_NEW_ARRAY(arena, given->set_count + count, const char *);
    for (size_t i = 0; i < given->set_count; i++)
        sets[i] = given->sets[i];
    for (uint32_t i = 0; i < count; i++)
        sets[given->set_count + i] = set_text(arena, &axes[i], values ? &values[i] : NULL);
    return sets;
}

/* The same of options of plans. */
static const char *const *plan_sets_of(const etch_sweep *sweep, etch_arena *arena,
                                       const etch_sweep_frame *frame, size_t *count)
{
    const etch_session_options *given = &sweep->session->options;
    const uint32_t choices = sweep->request.choices.count;
    const char **sets = ETCH_NEW_ARRAY(arena, given->plan_set_count + choices, const char *);
    *count = 0;
    for (size_t i = 0; i < given->plan_set_count; i++)
        sets[(*count)++] = given->plan_sets[i];
    for (uint32_t i = 0; i < choices; i++)
        if (sweep->request.choices.at[i].kind == ETCH_CHOICE_OPTION)
            sets[(*count)++] =
                etch_text(arena, "%s=%s", sweep->request.choices.at[i].name, frame->choices[i]);
    return sets;
}

etch_session *etch_frame_open(const etch_sweep *sweep, etch_arena *arena, const etch_sweep_frame *frame,
                              const etch_exact *values, etch_status *status)
{
    etch_session_options options = sweep->session->options;
    etch_session *session;
    options.struct_size = sizeof options;
    options.plan = frame->plan;
    options.config = frame->config;
    options.run = frame->run;
    options.defaults = true;
    options.plan_sets = plan_sets_of(sweep, arena, frame, &options.plan_set_count);
    options.sets = sets_of(sweep, arena, frame->axes, frame->axis_count, values);
    options.set_count += frame->axis_count;
    *status = etch_session_open(&options, &session);
    if (session)
        session->of_one_case = true;
    return session;
}

/* ---- texts --------------------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '\'' || c == '.';
}

/* "(pp*dp*tp)" */
static const char *mesh_product(etch_arena *arena, const etch_plan *plan)
{
    etch_buf text = {.arena = arena};
    etch_buf_puts(&text, "(1");
    for (uint32_t i = 0; i < plan->mesh.count; i++)
        etch_buf_printf(&text, "*%s", plan->mesh.at[i].name);
    etch_buf_puts(&text, ")");
    return text.text;
}

const char *etch_frame_ranks(etch_session *session, const etch_plan *plan, const char *text)
{
    static const char name[] = "ranks";
    const size_t length = sizeof name - 1;
    etch_buf out = {.arena = session->arena};
    if (!plan || etch_spec_names(session->spec, name))
        return text;
    for (const char *at = text; *at;) {
        size_t used = 0;
        while (is_word(at[used]))
            used++;
        if (used == length && strncmp(at, name, length) == 0)
            etch_buf_puts(&out, mesh_product(session->arena, plan));
        else
            etch_buf_add(&out, at, used ? used : 1);
        at += used ? used : 1;
    }
    return out.text ? out.text : "";
}

/* The text as this plan understands it. */
static const char *text_of(const etch_framing *f, const char *text)
{
    return etch_frame_ranks(f->session, f->plan, etch_units_expand(f->session->arena, text));
}

/* ---- what expressions ask for -------------------------------------------------------------------------- */

/* Is there a machine, for what is asked of a run? */
static bool may_run(etch_framing *f, const etch_quantity *q, const etch_quantity_row *row)
{
    etch_session *session = f->session;
    const etch_sweep_machine_of *machine = f->frame->machine;
    const etch_cluster *cluster = machine ? machine->cluster : etch_session_cluster(session, NULL);
    const char *stack = f->sweep->options->stack;
    return cluster && (!stack || etch_session_stack(session, cluster, stack)) &&
           etch_timed_allow(session, q, row);
}

static etch_expr note_quantity(void *data, const etch_quantity *q)
{
    etch_framing *f = data;
    const etch_quantity_row *row = etch_quantity_row_of(q->name);
    f->asks = f->asked = true;
    f->asks_rank = f->asks_rank || (row && etch_quantity_of_rank(row));
    if (row && row->timing && !may_run(f, q, row))
        return NULL;
    f->times = f->times || (row && row->timing);
    f->names_other = f->names_other || q->plan || q->run;
    return etch_var(f->session->sym, "(quantity)");
}

static etch_quantities noting(etch_framing *f)
{
    etch_quantities all = etch_session_quantities(f->session);
    all.value = note_quantity;
    all.data = f;
    return all;
}

static bool read_expressions(etch_framing *f)
{
    const etch_sweep_request *r = &f->sweep->request;
    etch_arena *arena = f->sweep->arena;
    const etch_quantities quantities = noting(f);
    const char **texts = ETCH_NEW_ARRAY(arena, r->exprs.count, const char *);
    bool *timed = ETCH_NEW_ARRAY(arena, r->exprs.count, bool);
    bool *measured = ETCH_NEW_ARRAY(arena, r->exprs.count, bool);
    etch_quantity single;
    for (uint32_t i = 0; i < r->exprs.count; i++) {
        texts[i] = etch_copy_string(arena, text_of(f, r->exprs.at[i]));
        f->times = false;
        if (!etch_spec_value(f->session->spec, texts[i], "expression", f->plan, &quantities))
            return false;
        timed[i] = f->times;
        measured[i] = f->times && etch_spec_quantity(f->session->spec, texts[i], "expression", &single);
        f->frame->times = f->frame->times || f->times;
    }
    f->frame->timed = timed;
    f->frame->measured = measured;
    f->frame->exprs = texts;
    return true;
}

static bool read_statements(etch_framing *f)
{
    const etch_sweep_request *r = &f->sweep->request;
    etch_arena *arena = f->sweep->arena;
    const etch_quantities quantities = noting(f);
    const char **texts = ETCH_NEW_ARRAY(arena, r->where.count, const char *);
    etch_where_kind *kinds = ETCH_NEW_ARRAY(arena, r->where.count, etch_where_kind);
    f->claims = ETCH_NEW_ARRAY(f->session->arena, r->where.count, etch_claim);
    for (uint32_t i = 0; i < r->where.count; i++) {
        texts[i] = etch_copy_string(arena, text_of(f, r->where.at[i]));
        f->asked = f->times = false;
        f->claims[i] = etch_spec_claim(f->session->spec, texts[i], "statement", f->plan, &quantities);
        if (!f->claims[i].left)
            return false;
        kinds[i] = f->times ? ETCH_WHERE_TIMED : f->asked ? ETCH_WHERE_QUANTITY : ETCH_WHERE_PLAIN;
        f->frame->times = f->frame->times || f->times;
    }
    f->frame->where = texts;
    f->frame->kinds = f->kinds = kinds;
    return true;
}

/* ---- axes ---------------------------------------------------------------------------------------------- */

static uint32_t column_of(etch_sweep *sweep, const char *name)
{
    for (uint32_t i = 0; i < sweep->columns.count; i++)
        if (strcmp(sweep->columns.at[i], name) == 0)
            return i;
    ETCH_PUSH(sweep->arena, &sweep->columns, etch_copy_string(sweep->arena, name));
    return sweep->columns.count - 1;
}

static void add_axis(etch_framing *f, const char *name, etch_expr var, const etch_values_list *list)
{
    etch_sweep_axis axis = {.name = etch_copy_string(f->sweep->arena, name), .least = 1};
    axis.column = column_of(f->sweep, name);
    axis.is_free = !list;
    if (list) {
        axis.real = list->real;
        axis.least = list->least;
    }
    ETCH_PUSH(f->session->arena, &f->axes, axis);
    ETCH_PUSH(f->session->arena, &f->vars, var);
    ETCH_PUSH(f->session->arena, &f->lists, list ? *list : (etch_values_list){0});
}

/* The values in force with all axes open. */
static bool apply_axes(etch_framing *f)
{
    etch_session *session = f->session;
    session->options.sets = sets_of(f->sweep, session->arena, f->axes.at, f->axes.count, NULL);
    session->options.set_count = f->sweep->session->options.set_count + f->axes.count;
    session->in_force.count = 0;
    f->settings = etch_session_settings(session, f->plan);
    return f->settings != NULL;
}

static bool read_axes(etch_framing *f)
{
    const etch_sweep_request *r = &f->sweep->request;
    for (uint32_t i = 0; i < r->over.count; i++) {
        etch_values_list list;
        const char *text = text_of(f, r->over.at[i]);
        if (!etch_spec_values_list(f->session->spec, text, "axis", f->plan, &list))
            return false;
        if (!list.var) {
            column_of(f->sweep, list.name); /* an axis of other plans */
            continue;
        }
        for (uint32_t k = 0; k < f->axes.count; k++)
            if (strcmp(f->axes.at[k].name, list.name) == 0) {
                etch_error(f->session->diags, ETCH_E_SWEEP_VALUES, (etch_span){0, 0},
                           "the values of '%s' are given twice", list.name);
                return false;
            }
        add_axis(f, list.name, list.var, &list);
    }
    return apply_axes(f);
}

/* ---- the equation -------------------------------------------------------------------------------------- */

/* The axis that a variable is; a new one where it is of the mesh and has no value. UINT32_MAX: neither. */
static uint32_t factor_of(etch_framing *f, etch_expr var, bool *has_value)
{
    *has_value = false;
    for (uint32_t i = 0; i < f->vars.count; i++)
        if (f->vars.at[i] == var)
            return i;
    for (uint32_t i = 0; i < f->settings->count; i++)
        if (f->settings->at[i].var == var)
            *has_value = f->settings->at[i].from != ETCH_GIVEN_BY_DEFAULT;
    if (!etch_framing_is_size(f, var) || *has_value)
        return UINT32_MAX;
    add_axis(f, etch_var_name(var), var, NULL);
    return f->vars.count - 1;
}

/* Is the statement a product of mesh axes that is a number? Then its axes are the factors. */
static bool solve(etch_framing *f, const etch_claim *claim)
{
    etch_sym *sym = f->session->sym;
    const uint32_t before = f->axes.count;
    const etch_expr *vars;
    if (claim->relation != ETCH_REL_EQ)
        return false;
    etch_expr quotient = etch_div(sym, claim->left, claim->right);
    const uint32_t count = quotient ? etch_vars_of(sym, quotient, &vars) : 0;
    etch_expr factors = etch_int(sym, 1);
    uint32_t *axes = ETCH_NEW_ARRAY(f->session->arena, count, uint32_t), found = 0;
    bool fine = count > 0, has_value;
    for (uint32_t i = 0; fine && i < count; i++) {
        const uint32_t axis = factor_of(f, vars[i], &has_value);
        fine = axis != UINT32_MAX ? etch_framing_is_size(f, vars[i]) : has_value;
        if (fine && axis != UINT32_MAX) {
            axes[found++] = axis;
            factors = etch_mul(sym, factors, vars[i]);
        }
    }
    fine = fine && found > 0 && apply_axes(f);
    quotient = fine ? etch_settings_apply(sym, f->settings, quotient) : NULL;
    etch_expr number = quotient ? etch_div(sym, factors, quotient) : NULL;
    if (number && !etch_is_constant(number))
        number = etch_mul(sym, factors, quotient);
    int64_t product = 0;
    if (!number || !etch_is_constant(number) || !etch_to_i64(number, &product) || product < 1) {
        /* Not a number of ranks, or none that is an integer: a statement like others. */
        f->axes.count = f->vars.count = f->lists.count = before;
        return apply_axes(f) && false;
    }
    f->frame->product = (uint64_t)product;
    for (uint32_t i = 0; i < found; i++) {
        f->axes.at[axes[i]].is_factor = true;
        f->frame->last_factor = axes[i] > f->frame->last_factor ? axes[i] : f->frame->last_factor;
    }
    return true;
}

static void solve_one(etch_framing *f)
{
    etch_where_kind *kinds = f->kinds;
    for (uint32_t i = 0; i < f->sweep->request.where.count && f->frame->product == 0; i++)
        if (kinds[i] == ETCH_WHERE_PLAIN && solve(f, &f->claims[i]))
            kinds[i] = ETCH_WHERE_SOLVED;
}

/* ---- programs ------------------------------------------------------------------------------------------ */

/* Compiles formulas over the axes before `limit`. False after an error: one speaks of what has no value. */
static bool compile(etch_framing *f, const etch_expr *formulas, uint32_t count, uint32_t limit,
                    const char *what, etch_program **program, const uint32_t **inputs)
{
    etch_session *session = f->session;
    f->frame->axes = f->axes.at;
    f->frame->axis_count = f->axes.count;
    ETCH_PUSH(f->sweep->arena, &f->sweep->programs, NULL); /* it has an owner before it is there */
    const etch_status status = etch_compile(session->sym, count, formulas, program);
    f->sweep->programs.at[f->sweep->programs.count - 1] = *program;
    if (status != ETCH_OK) {
        etch_error(session->diags, ETCH_E_SWEEP_VALUES, (etch_span){0, 0},
                   "'%.80s' is undefined, or too large", what);
        return false;
    }
    *inputs = etch_frame_inputs(f->sweep->arena, f->frame, *program);
    for (size_t i = 0; i < etch_program_variables(*program); i++) {
        if ((*inputs)[i] < limit)
            continue;
        const char *name = etch_program_variable(*program, i);
        etch_diag *diag = etch_error(session->diags, ETCH_E_SWEEP_VALUES, (etch_span){0, 0},
                                     "'%.80s' speaks of '%s', which has no value there", what, name);
        etch_help(diag,
                  (*inputs)[i] == UINT32_MAX ? "give it one: --set %s=..." : "name the axis '%s' before it",
                  name);
        return false;
    }
    return true;
}

static bool compile_statements(etch_framing *f)
{
    etch_sym *sym = f->session->sym;
    const uint32_t count = f->sweep->request.where.count;
    ETCH_VEC(etch_expr) formulas = {0};
    f->frame->claims = ETCH_NEW_ARRAY(f->sweep->arena, count, etch_sweep_claim);
    for (uint32_t i = 0; i < count; i++) {
        if (f->frame->kinds[i] != ETCH_WHERE_PLAIN)
            continue;
        const etch_claim *claim = &f->claims[i];
        const bool unary = claim->relation == ETCH_REL_TRUE;
        f->frame->claims[i] = (etch_sweep_claim){claim->relation, formulas.count, formulas.count + !unary};
        ETCH_PUSH(f->session->arena, &formulas, etch_settings_apply(sym, f->settings, claim->left));
        if (!unary)
            ETCH_PUSH(f->session->arena, &formulas, etch_settings_apply(sym, f->settings, claim->right));
    }
    return formulas.count == 0 || compile(f, formulas.at, formulas.count, f->axes.count, "where",
                                          &f->frame->program, &f->frame->inputs);
}

/* Values that depend on nothing, all at once. */
static bool constant_values(etch_framing *f, const etch_values_list *list, const etch_expr *formulas,
                            etch_sweep_axis *axis)
{
    etch_arena *arena = f->sweep->arena;
    ETCH_VEC(etch_exact) all = {0};
    uint32_t at = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        etch_exact arguments[ETCH_VALUES_ARGUMENTS], *values;
        uint32_t count = 0;
        bool fine = true;
        for (uint32_t k = 0; k < list->pieces[i].count; k++)
            fine = etch_exact_of(f->session->sym, formulas[at++], &arguments[k]) && fine;
        if (!fine || !etch_piece_values(arena, list->pieces[i].kind, arguments, list->pieces[i].count,
                                        &values, &count)) {
            etch_diag *diag =
                etch_error(f->session->diags, ETCH_E_SWEEP_VALUES, list->pieces[i].span,
                           "'%s' has no such values: they are numbers of 64 bits, and at most %d", axis->name,
                           (int)ETCH_SWEEP_VALUES);
            return etch_help(diag, "%s", etch_piece_needs(list->pieces[i].kind));
        }
        for (uint32_t k = 0; k < count; k++)
            ETCH_PUSH(arena, &all, values[k]);
    }
    axis->values = all.at;
    axis->value_count = all.count;
    if (all.count > 0)
        return true;
    etch_diag *diag = etch_error(f->session->diags, ETCH_E_SWEEP_VALUES, list->span,
                                 "the axis '%s' has no values", axis->name);
    return etch_help(diag, "a range that falls needs its step: range(4, 1, -1)");
}

static bool compile_axis(etch_framing *f, uint32_t index)
{
    const etch_values_list *list = &f->lists.at[index];
    etch_sweep_axis *axis = &f->axes.at[index];
    etch_arena *arena = f->sweep->arena;
    ETCH_VEC(etch_expr) formulas = {0};
    bool constant = true;
    if (axis->is_free)
        return true;
    etch_sweep_piece *pieces = ETCH_NEW_ARRAY(arena, list->count, etch_sweep_piece);
    for (uint32_t i = 0; i < list->count; i++) {
        pieces[i] = (etch_sweep_piece){list->pieces[i].kind, list->pieces[i].count, formulas.count};
        for (uint32_t k = 0; k < list->pieces[i].count; k++) {
            etch_expr value = etch_settings_apply(f->session->sym, f->settings, list->pieces[i].at[k]);
            constant = constant && value && etch_is_constant(value);
            ETCH_PUSH(f->session->arena, &formulas, value);
        }
    }
    if (constant)
        return constant_values(f, list, formulas.at, axis);
    axis->pieces = pieces;
    axis->piece_count = list->count;
    return compile(f, formulas.at, formulas.count, index, axis->name, &axis->program, &axis->inputs);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static etch_status read_frame(void *data)
{
    etch_framing *f = data;
    etch_session *session = f->session;
    const uint32_t errors = etch_error_count(session->diags);
    bool fine = etch_session_plan(session, &f->plan) && read_axes(f) && read_statements(f);
    if (fine)
        solve_one(f);
    fine = fine && read_expressions(f) && compile_statements(f);
    for (uint32_t i = 0; fine && i < f->axes.count; i++)
        fine = compile_axis(f, i);
    if (!fine && etch_error_count(session->diags) == errors)
        etch_error(session->diags, ETCH_E_QUERY_UNDEFINED, (etch_span){0, 0},
                   "an expression is undefined: a divisor is 0");
    if (!fine || etch_error_count(session->diags) > errors)
        return ETCH_EINPUT;
    etch_framing_structure(f);
    etch_framing_cuts(f);
    f->frame->axis_count = f->axes.count;
    return ETCH_OK;
}

/* ---- choices ------------------------------------------------------------------------------------------- */

static void choose(const etch_sweep *sweep, etch_sweep_frame *frame)
{
    const etch_session_options *o = &sweep->session->options;
    frame->plan = o->plan;
    frame->config = o->config;
    frame->run = o->run;
    for (uint32_t i = 0; i < sweep->request.choices.count; i++) {
        const etch_choice_kind kind = sweep->request.choices.at[i].kind;
        if (kind == ETCH_CHOICE_PLAN)
            frame->plan = frame->choices[i];
        else if (kind == ETCH_CHOICE_CONFIG)
            frame->config = frame->choices[i];
        else if (kind == ETCH_CHOICE_RUN)
            frame->run = frame->choices[i];
    }
}

/* An earlier frame with the same formulas; NULL: there is none. */
static const etch_sweep_frame *twin_of(const etch_sweep *sweep, const etch_sweep_frame *frame)
{
    for (uint32_t f = 0; f < sweep->frames.count; f++) {
        const etch_sweep_frame *other = sweep->frames.at[f];
        bool same = other->formulas && !other->refused;
        for (uint32_t i = 0; same && i < sweep->request.choices.count; i++) {
            const etch_choice_kind kind = sweep->request.choices.at[i].kind;
            same = kind == ETCH_CHOICE_MACHINE || kind == ETCH_CHOICE_NUMBER ||
                   frame->choices[i] == other->choices[i];
        }
        if (same)
            return other->formulas;
    }
    return NULL;
}

static void read_new(etch_sweep *sweep, etch_sweep_frame *frame)
{
    etch_arena *arena = sweep->arena;
    etch_status status;
    etch_framing f = {.sweep = sweep, .frame = frame};
    f.session = etch_frame_open(sweep, arena, frame, NULL, &status);
    if (status == ETCH_OK)
        status = etch_session_run(f.session, read_frame, &f);
    if (status == ETCH_OK) {
        etch_sweep_axis *axes = ETCH_NEW_ARRAY(arena, f.axes.count, etch_sweep_axis);
        if (f.axes.count)
            memcpy(axes, f.axes.at, f.axes.count * sizeof *axes);
        frame->axes = axes;
        frame->formulas = frame;
    } else {
        etch_frame_refuse(sweep, frame, f.session ? etch_sweep_first_error(f.session) : NULL);
    }
    etch_session_close(f.session);
}

etch_sweep_frame *etch_frame_new(etch_sweep *sweep, const char *const *choices)
{
    etch_arena *arena = sweep->arena;
    const uint32_t count = sweep->request.choices.count;
    etch_sweep_frame *frame = ETCH_NEW(arena, etch_sweep_frame);
    *frame = (etch_sweep_frame){.number = sweep->frames.count};
    frame->choices = ETCH_NEW_ARRAY(arena, count, const char *);
    for (uint32_t i = 0; i < count; i++)
        frame->choices[i] = choices[i];
    choose(sweep, frame);
    const etch_sweep_frame *twin = twin_of(sweep, frame);
    ETCH_PUSH(arena, &sweep->frames, frame);
    if (!etch_frame_find_machine(sweep, frame))
        return frame;
    if (!twin) {
        read_new(sweep, frame);
        return frame;
    }
    const etch_sweep_frame own = *frame;
    *frame = *twin;
    frame->number = own.number;
    frame->choices = own.choices;
    frame->machine = own.machine;
    return frame;
}
