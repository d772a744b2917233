/* Cases: the formulas of all rows that share what decides structure, and which axes are 1. Each is compiled
 * in a session of its own, where what does not decide stays open. */
#include "session/sweep/sweep_int.h"

#include <stdlib.h>
#include <string.h>

/* Of cases that wait for what is asked of them; each has a model of some megabytes. */
enum { MOST_SESSIONS = 64 };

/* ---- keys ---------------------------------------------------------------------------------------------- */

static void make_slots(etch_sweep *sweep)
{
    enum { FIRST_SLOTS = 256 };
    etch_sweep_case **before = sweep->cases;
    const uint32_t count = sweep->case_slots;
    sweep->case_slots = count ? 4 * count : FIRST_SLOTS;
    sweep->cases = ETCH_NEW_ARRAY(sweep->arena, sweep->case_slots, etch_sweep_case *);
    for (uint32_t i = 0; i < count; i++)
        for (etch_sweep_case *at = before[i], *next; at; at = next) {
            etch_sweep_case **slot = &sweep->cases[at->key.hash & (sweep->case_slots - 1)];
            next = at->next;
            at->next = *slot;
            *slot = at;
        }
}

void etch_case_add(etch_sweep *sweep, const etch_case_key *key)
{
    if (etch_case_find(sweep, key))
        return;
    if (sweep->case_count >= sweep->case_slots)
        make_slots(sweep);
    etch_arena *arena = sweep->arena;
    const size_t bytes = key->frame->axis_count * sizeof(etch_exact);
    etch_exact *values = ETCH_NEW_ARRAY(arena, key->frame->axis_count, etch_exact);
    etch_sweep_case *made = ETCH_NEW(arena, etch_sweep_case);
    if (bytes)
        memcpy(values, key->values, bytes);
    *made = (etch_sweep_case){.sweep = sweep, .key = *key};
    made->key.values = values;
    etch_sweep_case **slot = &sweep->cases[key->hash & (sweep->case_slots - 1)];
    made->next = *slot;
    *slot = made;
    sweep->case_count++;
    ETCH_PUSH(arena, &sweep->new_cases, made);
}

static void end_work(etch_sweep_case *self);

void etch_case_free(etch_sweep_case *self)
{
    end_work(self);
    etch_case_free_shapes(self);
    etch_program_free(self->musts.program);
    etch_program_free(self->claims.program);
    etch_program_free(self->exprs.program);
    for (uint32_t i = 0; self->cuts && i < self->key.frame->axis_count; i++)
        etch_program_free(self->cuts[i].program);
    self->cuts = NULL;
    self->musts.program = self->claims.program = self->exprs.program = NULL;
    if (self->mem)
        etch_mem_free(self->mem);
    self->mem = NULL;
}

/* ---- compiling ----------------------------------------------------------------------------------------- */

typedef ETCH_VEC(etch_expr) expr_list;

typedef struct etch_case_work compiling;
struct etch_case_work {
    etch_sweep_case *self;
    etch_session *session;
    const etch_plan *plan;
    etch_quantities inner;
    /* models whose quantities were asked for: of a job, of ranks */
    etch_compiled *of_job, *of_rank;
    /* of the expressions, of the conditions, of the statements */
    expr_list exprs, musts, statements;
    /* what the values do not allow has been reported */
    bool refused;
    /* only what the values must be is looked at */
    bool only_fits;
};

/* As a query does it: first whether the values mean something. */
static etch_expr quantity_value(void *data, const etch_quantity *q)
{
    compiling *c = data;
    const etch_quantity_row *row = etch_quantity_row_of(q->name);
    const bool of_rank = row && etch_quantity_of_rank(row);
    etch_compiled *p = row ? etch_compiled_get(c->session, q->run, q->plan, of_rank, q->span) : NULL;
    if (row && (!p || !(of_rank ? etch_compiled_fit : etch_compiled_allow)(c->session, p))) {
        c->refused = true;
        return NULL;
    }
    if (of_rank)
        c->of_rank = p;
    else
        c->of_job = p;
    /* Runs are of each row by itself: timed.c. */
    if (c->only_fits || (row && row->timing))
        return etch_var(c->session->sym, "(quantity)");
    return c->inner.value(c->inner.data, q);
}

/* `only_fits`: their values are not wanted yet. */
static etch_quantities quantities_of(compiling *c, bool only_fits)
{
    c->inner = etch_session_quantities(c->session);
    c->only_fits = only_fits;
    etch_quantities own = c->inner;
    own.value = quantity_value;
    own.data = c;
    return own;
}

static etch_expr apply(const compiling *c, etch_expr value)
{
    const etch_settings *settings = etch_session_settings(c->session, c->plan);
    return settings && value ? etch_settings_apply(c->session->sym, settings, value) : NULL;
}

/* Compiles a list of formulas. False: it cannot be, which is reported where something has no value. */
static bool compile(compiling *c, const expr_list *formulas, etch_case_program *out)
{
    if (formulas->count == 0)
        return true;
    if (out->program)
        return true; /* a session that was closed is open again */
    if (etch_compile(c->session->sym, formulas->count, formulas->at, &out->program) != ETCH_OK)
        return false;
    out->inputs = etch_frame_inputs(c->self->arena, c->self->key.frame, out->program);
    for (size_t i = 0; i < etch_program_variables(out->program); i++)
        if (out->inputs[i] == UINT32_MAX) {
            etch_error(c->session->diags, ETCH_E_UNBOUND, (etch_span){0, 0}, "no value for %s",
                       etch_program_variable(out->program, i));
            c->refused = true;
            return false;
        }
    return true;
}

/* ---- conditions ---------------------------------------------------------------------------------------- */

/* The integers and bounds that params and axes must be, also where their values follow from others. */
static void add_given(const compiling *c, const etch_settings *settings, etch_musts *out)
{
    for (uint32_t i = 0; i < settings->count; i++) {
        const etch_setting *s = &settings->at[i];
        etch_must must = {.kind = ETCH_MUST_BE_NUMBER, .left = s->value, .code = ETCH_E_BELOW_BOUND};
        bool real;
        etch_spec_range(c->session->spec, s->var, &real, &must.least);
        must.fraction = must.above = real;
        must.least = real ? 0 : must.least;
        must.subject = etch_text(c->self->arena, "%s", s->name);
        if (!etch_is_constant(s->value) && !s->several)
            ETCH_PUSH(c->session->arena, out, must);
    }
}

/* Those of the axes that stay open. */
static void add_axes(const compiling *c, etch_musts *out)
{
    const etch_case_key *key = &c->self->key;
    for (uint32_t i = 0; i < key->frame->axis_count; i++) {
        const etch_sweep_axis *axis = &key->frame->axes[i];
        const etch_must must = {.kind = ETCH_MUST_BE_NUMBER,
                                .left = etch_var(c->session->sym, axis->name),
                                .least = axis->real ? 0 : axis->least,
                                .above = axis->real,
                                .fraction = axis->real,
                                .code = ETCH_E_BELOW_BOUND,
                                .subject = axis->name};
        if (key->values[i].denominator == 0)
            ETCH_PUSH(c->session->arena, out, must);
    }
}

typedef enum vars_of { VARS_NONE, VARS_AXES = 1, VARS_OTHER = 2, VARS_BOTH = 3 } vars_of;

/* Speaks a value of open axes, of what has no value at all? */
static vars_of vars_in(const compiling *c, etch_expr value)
{
    const etch_sweep_frame *frame = c->self->key.frame;
    const etch_expr *vars;
    const uint32_t count = value ? etch_vars_of(c->session->sym, value, &vars) : 0;
    unsigned found = VARS_NONE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = 0;
        while (k < frame->axis_count && strcmp(frame->axes[k].name, etch_var_name(vars[i])) != 0)
            k++;
        found |= k < frame->axis_count ? VARS_AXES : VARS_OTHER;
    }
    return (vars_of)found;
}

/* A condition that holds for all rows is none. What has no value, and no axis in it, is asked for by nobody:
 * it has been looked at with the values of the case. False: the row decides whether a value would do. */
static bool add_must(const compiling *c, const etch_must *must, expr_list *formulas, etch_case_must *list,
                     uint32_t *count)
{
    etch_sym *sym = c->session->sym;
    const bool unary = must->kind == ETCH_MUST_BE_NUMBER;
    etch_expr left = apply(c, must->left), right = unary ? left : apply(c, must->right);
    const unsigned vars = vars_in(c, left) | vars_in(c, right);
    const bool constant = (!left || etch_is_constant(left)) && (!right || etch_is_constant(right));
    if (vars & VARS_OTHER)
        return vars == VARS_OTHER;
    if (constant && etch_must_holds(sym, must, left, right))
        return true;
    if ((!left || !right) && must->kind >= ETCH_MUST_DIVIDE)
        return true;
    etch_case_must *own = &list[(*count)++];
    own->must = *must;
    own->must.subject = etch_copy_string(c->self->arena, must->subject);
    own->left = formulas->count;
    /* What is undefined for all rows divides by 0 for each. */
    ETCH_PUSH(c->session->arena, formulas, left ? left : etch_int(sym, 0));
    own->right = unary ? own->left : formulas->count;
    if (!unary)
        ETCH_PUSH(c->session->arena, formulas, right ? right : etch_int(sym, 0));
    if (!left || !right) { /* a condition that no value meets */
        own->must = (etch_must){
            .kind = ETCH_MUST_BE_NUMBER, .least = 1, .code = must->code, .subject = own->must.subject};
        formulas->at[own->left] = etch_int(sym, 0);
    }
    return true;
}

static bool compile_musts(compiling *c)
{
    etch_sweep_case *self = c->self;
    etch_session *session = c->session;
    etch_compiled *p = c->of_rank ? c->of_rank : c->of_job;
    const etch_settings *settings = etch_session_settings(session, c->plan);
    etch_musts all = {0};
    etch_values values = {0};
    if (p)
        values = etch_compiled_values(session, p, c->of_rank ? p->placed : NULL);
    else
        values.fact_count = etch_spec_assumptions(session->spec, &values.facts);
    add_given(c, settings, &all);
    add_axes(c, &all);
    etch_values_musts(session->arena, session->sym, &values, &all);
    etch_case_must *list = ETCH_NEW_ARRAY(self->arena, all.count, etch_case_must);
    bool fine = true;
    for (uint32_t i = 0; fine && i < all.count; i++)
        fine = add_must(c, &all.at[i], &c->musts, list, &self->must_count);
    self->must = list;
    return fine && compile(c, &c->musts, &self->musts);
}

/* ---- expressions --------------------------------------------------------------------------------------- */

static bool compile_claims(compiling *c, const etch_quantities *quantities)
{
    const etch_sweep_frame *frame = c->self->key.frame;
    const uint32_t count = c->self->sweep->request.where.count;
    etch_sweep_claim *claims = ETCH_NEW_ARRAY(c->self->arena, count, etch_sweep_claim);
    uint32_t *claim_of = ETCH_NEW_ARRAY(c->self->arena, count, uint32_t);
    expr_list formulas = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (frame->kinds[i] != ETCH_WHERE_QUANTITY && frame->kinds[i] != ETCH_WHERE_TIMED)
            continue;
        const etch_claim claim =
            etch_spec_claim(c->session->spec, frame->where[i], "statement", c->plan, quantities);
        if (frame->kinds[i] == ETCH_WHERE_TIMED && claim.left)
            continue;
        const etch_expr left = apply(c, claim.left), right = apply(c, claim.right);
        if (!left || !right)
            return false;
        claim_of[c->self->claim_count] = i;
        claims[c->self->claim_count++] =
            (etch_sweep_claim){claim.relation, formulas.count, formulas.count + 1};
        ETCH_PUSH(c->session->arena, &formulas, left);
        ETCH_PUSH(c->session->arena, &formulas, right);
    }
    c->self->claim = claims;
    c->self->claim_of = claim_of;
    c->statements = formulas;
    return compile(c, &formulas, &c->self->claims);
}

static bool compile_exprs(compiling *c, const etch_quantities *quantities)
{
    const etch_sweep_frame *frame = c->self->key.frame;
    for (uint32_t i = 0; i < c->self->sweep->request.exprs.count; i++) {
        const etch_expr value =
            apply(c, etch_spec_value(c->session->spec, frame->exprs[i], "expression", c->plan, quantities));
        if (!value)
            return false;
        ETCH_PUSH(c->session->arena, &c->exprs, frame->timed[i] ? etch_int(c->session->sym, 0) : value);
    }
    return compile(c, &c->exprs, &c->self->exprs);
}

/* Asks for all quantities, but not what they are: the models are built, and the values are found to fit. */
static bool fit_all(compiling *c)
{
    const etch_sweep_frame *frame = c->self->key.frame;
    const etch_sweep_request *r = &c->self->sweep->request;
    const etch_quantities quantities = quantities_of(c, true);
    const uint32_t errors = etch_error_count(c->session->diags);
    for (uint32_t i = 0; i < r->where.count; i++)
        if (frame->kinds[i] == ETCH_WHERE_QUANTITY || frame->kinds[i] == ETCH_WHERE_TIMED)
            (void)etch_spec_claim(c->session->spec, frame->where[i], "statement", c->plan, &quantities);
    for (uint32_t i = 0; i < r->exprs.count; i++)
        (void)etch_spec_value(c->session->spec, frame->exprs[i], "expression", c->plan, &quantities);
    return etch_error_count(c->session->diags) == errors;
}

/* What the values of rows must be. */
static etch_status compile_fit(void *data)
{
    compiling *c = data;
    etch_session *session = c->session;
    const etch_settings *settings =
        etch_session_plan(session, &c->plan) ? etch_session_settings(session, c->plan) : NULL;
    if (!settings || !etch_check_assumptions(session, settings)) {
        c->refused = true;
        return ETCH_EINPUT;
    }
    return fit_all(c) && compile_musts(c) ? ETCH_OK : ETCH_EINPUT;
}

/* What is asked of rows. */
static etch_status compile_values(void *data)
{
    compiling *c = data;
    etch_session *session = c->session;
    const uint32_t errors = etch_error_count(session->diags);
    etch_forget_open(session);
    const etch_quantities quantities = quantities_of(c, false);
    const bool fine = compile_claims(c, &quantities) && compile_exprs(c, &quantities);
    if (fine && session->open_stages.count == 0 && etch_error_count(session->diags) == errors) {
        const etch_case_look look = {session,
                                     etch_session_settings(session, c->plan),
                                     c->exprs.at,
                                     c->self->must,
                                     c->self->must_count,
                                     c->musts.at};
        const etch_case_formulas formulas = {session->sym, session->arena, c->musts.at, c->statements.at};
        if (c->self->look)
            c->self->look(c->self->look_data, &look);
        etch_case_find_cuts(c->self, &formulas);
        return ETCH_OK;
    }
    if (etch_error_count(session->diags) == errors)
        etch_error(session->diags, ETCH_E_QUERY_UNDEFINED, (etch_span){0, 0},
                   "an expression is undefined: a divisor is 0");
    return ETCH_EINPUT;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* Nothing is left open: what a query refuses then is refused. */
static bool is_one_row(const etch_case_key *key)
{
    for (uint32_t i = 0; i < key->frame->axis_count; i++)
        if (key->values[i].denominator == 0)
            return false;
    return true;
}

etch_reason_text etch_sweep_reason_of(etch_arena *arena, const etch_session *session)
{
    const etch_diag *diag = session ? etch_sweep_first_error(session) : NULL;
    const etch_code code = diag ? diag->code : ETCH_NO_CODE;
    return (etch_reason_text){code, code == ETCH_NO_CODE     ? "it cannot be computed"
                                    : code == ETCH_E_UNBOUND ? etch_copy_string(arena, diag->message)
                                                             : etch_code_title(code)};
}

static void refuse(etch_sweep_case *self, const etch_session *session)
{
    self->reason = etch_sweep_reason_of(self->arena, session);
    self->state = ETCH_CASE_REFUSED;
}

static void end_work(etch_sweep_case *self)
{
    if (!self->work)
        return;
    etch_session_close(self->work->session);
    self->work = NULL;
    atomic_fetch_sub(&self->sweep->sessions, 1);
}

/* What has come of a step. */
static etch_status end_step(etch_sweep_case *self, etch_status status, etch_case_state state)
{
    self->state = state;
    if (status != ETCH_OK && (self->work->refused || is_one_row(&self->key)))
        refuse(self, self->work->session);
    else if (status != ETCH_OK)
        self->state = ETCH_CASE_BY_ROW;
    return status == ETCH_ENOMEM ? ETCH_ENOMEM : ETCH_OK;
}

static etch_status begin(etch_sweep_case *self)
{
    etch_status status;
    compiling *c = ETCH_NEW(self->arena, compiling);
    *c = (compiling){.self = self};
    self->must_count = 0;
    self->work = c;
    atomic_fetch_add(&self->sweep->sessions, 1);
    c->session = etch_frame_open(self->sweep, self->arena, self->key.frame, self->key.values, &status);
    if (status == ETCH_OK)
        status = etch_session_run(c->session, compile_fit, c);
    return end_step(self, status, ETCH_CASE_FITS);
}

static etch_status begin_guarded(void *data)
{
    etch_sweep_case *self = data;
    self->arena = etch_arena_new(self->mem);
    return begin(self);
}

etch_status etch_case_begin(etch_sweep_case *self)
{
    self->mem = etch_mem_new(ETCH_MEMORY_LIMIT);
    const etch_status status = self->mem ? etch_guard(self->mem, begin_guarded, self) : ETCH_ENOMEM;
    /* Sessions wait for the rows that are left, as long as they are few. */
    if (self->state != ETCH_CASE_FITS || atomic_load(&self->sweep->sessions) > MOST_SESSIONS)
        end_work(self);
    return status;
}

static etch_status complete_guarded(void *data)
{
    etch_sweep_case *self = data;
    etch_status status = self->work ? ETCH_OK : begin(self);
    if (status != ETCH_OK || self->state != ETCH_CASE_FITS)
        return status;
    status = etch_session_run(self->work->session, compile_values, self->work);
    return end_step(self, status, ETCH_CASE_READY);
}

etch_status etch_case_complete(etch_sweep_case *self)
{
    const etch_status status = etch_guard(self->mem, complete_guarded, self);
    end_work(self);
    return status;
}
