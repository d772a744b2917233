/* Shapes of steps: rows of a case whose steps differ in numbers alone are lowered once, for all of them. A
 * shape is made of the first row that has it, with the formulas of the case; other rows have it as long as
 * all values are alike that lowering has read. What cannot be told so is run row by row: timed.c. */
#include "session/sweep/shapes_int.h"

#include <string.h>

/* A shape costs as much as some rows that are lowered each by itself. Of a case: */
enum { FEWEST_ROWS = 4, MOST_SHAPES = 32, MOST_PLACES = 4096, MOST_FLOWS = 64 };

typedef ETCH_VEC(etch_expr) expr_list;

/* Rows of a block that are of one case. */
typedef struct sorting {
    etch_sweep_block *block;
    etch_sweep_case *of;
    etch_row_shape *rows;
    uint32_t count;
    const etch_cluster *cluster;
    etch_workspace *workspace;
    /* while it is open */
    etch_session *session;
    etch_compiled *compiled;
    bool is_open, is_over;
    etch_arena *scratch;
} sorting;

/* ---- the session --------------------------------------------------------------------------------------- */

/* Is a time of the step all that is asked of runs? */
static bool asks_time(const sorting *s)
{
    const etch_sweep_frame *frame = s->of->key.frame;
    const etch_sweep_request *r = &s->of->sweep->request;
    for (uint32_t i = 0; i < r->exprs.count; i++) {
        etch_quantity q;
        if (!frame->timed[i])
            continue;
        if (!frame->measured[i] || !etch_spec_quantity(s->session->spec, frame->exprs[i], "expression", &q) ||
            q.plan || q.run || etch_quantity_row_of(q.name)->timing != ETCH_TIMED_SECONDS)
            return false;
    }
    return true;
}

static etch_status open_session(void *data)
{
    sorting *s = data;
    const etch_plan *plan;
    if (!asks_time(s) || !etch_session_plan(s->session, &plan))
        return ETCH_EINPUT;
    s->compiled = etch_compiled_get(s->session, NULL, NULL, true, (etch_span){0, 0});
    if (!s->compiled || s->compiled->model->graph->steps || !etch_compiled_place(s->session, s->compiled))
        return ETCH_EINPUT;
    if (s->compiled->placed->plan->rings) /* the nodes of a ring depend on its size */
        return ETCH_EINPUT;
    etch_kernels_count(s->compiled->placed);
    return ETCH_OK;
}

/* False: there is none. */
static bool has_session(sorting *s)
{
    etch_status status;
    if (s->is_open || s->is_over)
        return s->is_open;
    s->session = etch_frame_open(s->of->sweep, s->scratch, s->of->key.frame, s->of->key.values, &status);
    if (status == ETCH_OK)
        status = etch_session_run(s->session, open_session, s);
    s->is_open = status == ETCH_OK;
    s->is_over = !s->is_open;
    return s->is_open;
}

/* ---- making a shape ------------------------------------------------------------------------------------ */

/* Lowering, with the values of a row. */
typedef struct making {
    sorting *sort;
    etch_case_shape *shape;
    uint32_t row;
    etch_arena *arena;
    etch_step_form *form;
    /* can it be lowered? */
    bool only_checks;
    /* with nodes, while the shape is made */
    const etch_job *job;
    etch_arena *scratch;
} making;

static etch_expr value_of(const sorting *s, uint32_t axis, uint32_t row)
{
    const etch_sweep_block *b = s->block;
    const int64_t below = b->denominators[axis] ? b->denominators[axis][row] : 1;
    return etch_ratio(s->session->sym, b->numbers[axis][row], below);
}

/* What is open is what the row says. */
static etch_values values_of(const making *m)
{
    const sorting *s = m->sort;
    const etch_sweep_frame *frame = s->block->frame;
    etch_values values = etch_compiled_values(s->session, s->compiled, s->compiled->placed);
    etch_given *given = ETCH_NEW_ARRAY(s->session->arena, values.given_count + frame->axis_count, etch_given);
    for (uint32_t i = 0; i < values.given_count; i++)
        given[i] = values.given[i];
    for (uint32_t axis = 0; axis < frame->axis_count; axis++) {
        const etch_expr var = etch_var(s->session->sym, frame->axes[axis].name);
        uint32_t i = 0;
        while (i < values.given_count && given[i].var != var)
            i++;
        if (i == values.given_count)
            given[values.given_count++] =
                (etch_given){.var = var, .name = frame->axes[axis].name, .from = "run"};
        given[i].value = value_of(s, axis, m->row);
    }
    values.given = given;
    return values;
}

static etch_status lower(void *data)
{
    making *m = data;
    const etch_lower_options options = {.values = values_of(m),
                                        .workloads = true,
                                        .brief = 1,
                                        .form = m->form,
                                        .only_checks = m->only_checks};
    return etch_lower(m->scratch, &options, &m->job);
}

/* The number of a formula, of what the values of the case make of it. UINT32_MAX: it is undefined. */
static uint32_t add_formula(const sorting *s, expr_list *all, etch_expr expr)
{
    const etch_expr value = etch_settings_apply(s->session->sym, s->compiled->settings, expr);
    if (!value)
        return UINT32_MAX;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->at[i] == value)
            return i;
    ETCH_PUSH(s->scratch, all, value);
    return all->count - 1;
}

static bool compile(const sorting *s, const expr_list *formulas, etch_case_program *out)
{
    if (etch_compile(s->session->sym, formulas->count, formulas->at, &out->program) != ETCH_OK)
        return false;
    out->inputs = etch_frame_inputs(s->of->shape_arena, s->of->key.frame, out->program);
    bool fine = true;
    for (size_t i = 0; i < etch_program_variables(out->program); i++)
        fine = fine && out->inputs[i] != UINT32_MAX;
    return fine;
}

/* What rows of the shape have in common, and what tells them apart. */
static bool compile_keys(const making *m)
{
    etch_case_shape *shape = m->shape;
    const etch_step_form *form = m->form;
    expr_list formulas = {0};
    bool fine = true;
    shape->guards = ETCH_NEW_ARRAY(m->arena, form->guards.count, uint32_t);
    shape->mesh = ETCH_NEW_ARRAY(m->arena, m->job->mesh_count, uint32_t);
    for (uint32_t i = 0; fine && i < form->guards.count; i++) {
        shape->guards[i] = add_formula(m->sort, &formulas, form->guards.at[i].expr);
        fine = shape->guards[i] != UINT32_MAX;
    }
    for (uint32_t i = 0; fine && i < m->job->mesh_count; i++) {
        shape->mesh[i] = add_formula(m->sort, &formulas, form->mesh[i]);
        fine = shape->mesh[i] != UINT32_MAX;
    }
    shape->microbatches = add_formula(m->sort, &formulas, form->microbatches);
    return fine && shape->microbatches != UINT32_MAX && compile(m->sort, &formulas, &shape->keys);
}

static bool compile_numbers(const making *m)
{
    const etch_step_form *form = m->form;
    expr_list formulas = {0};
    m->shape->numbers = ETCH_NEW_ARRAY(m->arena, form->tasks.count, etch_shape_numbers);
    for (uint32_t i = 0; i < form->tasks.count; i++) {
        const etch_task_form *task = &form->tasks.at[i];
        const etch_expr exprs[ETCH_SHAPE_NUMBERS] = {
            task->bytes, task->flop, task->product_flop, task->keys, task->m, task->n, task->k, task->batch};
        for (uint32_t k = 0; k < ETCH_SHAPE_NUMBERS; k++) {
            uint32_t *at = &m->shape->numbers[i].at[k];
            *at = UINT32_MAX;
            if (exprs[k] && (*at = add_formula(m->sort, &formulas, exprs[k])) == UINT32_MAX)
                return false;
        }
        m->shape->kinds |= task->type == ETCH_NODE_COMP ? 1u << task->kind : 0;
    }
    return compile(m->sort, &formulas, &m->shape->values);
}

/* The form, without what ends with the session and the job. */
static const etch_step_form *keep_form(const making *m)
{
    etch_step_form *form = ETCH_NEW(m->arena, etch_step_form);
    form->brief = m->form->brief;
    form->is_partial = m->form->is_partial;
    for (uint32_t i = 0; i < m->form->tasks.count; i++)
        ETCH_PUSH(m->arena, &form->tasks, m->form->tasks.at[i]);
    for (uint32_t i = 0; i < m->form->guards.count; i++)
        ETCH_PUSH(m->arena, &form->guards, m->form->guards.at[i]);
    return form;
}

static etch_status make(void *data)
{
    making *m = data;
    etch_case_shape *shape = m->shape;
    m->form = ETCH_NEW(m->arena, etch_step_form);
    m->scratch = etch_arena_new(m->sort->of->mem);
    etch_status status = lower(m);
    if (status == ETCH_OK && (!m->job->pipe || !compile_keys(m)))
        status = ETCH_EINPUT;
    if (status == ETCH_OK) {
        shape->is_known = true;
        shape->form = keep_form(m);
        shape->job = etch_job_without_nodes(m->arena, m->job);
        shape->most_microbatches = m->job->pipe->microbatches;
        shape->kinds = 1u << ETCH_PRODUCT_NONE;
        if (!m->form->is_partial && compile_numbers(m))
            shape->shape = etch_step_shape_make(m->arena, m->job, shape->form, m->sort->cluster);
    }
    etch_arena_free(m->scratch);
    return status;
}

/* The shape of a row. NULL: it cannot be found out. */
static etch_case_shape *add_shape(sorting *s, uint32_t row)
{
    etch_case_shape *shape = ETCH_NEW(s->of->shape_arena, etch_case_shape);
    making m = {.sort = s, .shape = shape, .row = row, .arena = s->of->shape_arena};
    ETCH_PUSH(s->of->shape_arena, &s->of->shapes,
              shape); /* its programs have an owner before they are there */
    return etch_session_run(s->session, make, &m) == ETCH_OK ? shape : NULL;
}

static etch_status try_lower(void *data)
{
    making *m = data;
    return lower(m);
}

/* More microbatches make more nodes, of which there may be too many. */
static void allow_microbatches(sorting *s, etch_case_shape *shape, uint32_t row, uint64_t microbatches)
{
    making m = {.sort = s, .row = row, .only_checks = true, .scratch = etch_arena_new(s->of->mem)};
    if (has_session(s) && etch_session_run(s->session, try_lower, &m) == ETCH_OK)
        shape->most_microbatches = microbatches;
    etch_arena_free(m.scratch);
}

/* ---- rows of a shape ----------------------------------------------------------------------------------- */

static bool number_at(const etch_sweep_values *values, uint32_t formula, uint32_t i, uint64_t *out)
{
    const size_t at = (size_t)formula * values->count + i;
    if (values->kinds[at] != ETCH_VALUE_INTEGER || values->values[at] < 0)
        return false;
    *out = (uint64_t)values->values[at];
    return true;
}

static bool fits(const etch_case_shape *shape, const etch_sweep_values *values, uint32_t i)
{
    for (uint32_t g = 0; g < shape->form->guards.count; g++) {
        const etch_value_guard *guard = &shape->form->guards.at[g];
        uint64_t value;
        if (!number_at(values, shape->guards[g], i, &value) ||
            (guard->kind == ETCH_GUARD_EQUAL ? value != guard->value : value <= guard->value))
            return false;
    }
    uint64_t microbatches;
    return number_at(values, shape->microbatches, i, &microbatches) &&
           etch_form_shows(shape->form, shape->job, microbatches);
}

static const etch_shape_flow *flow_of(sorting *s, etch_case_shape *shape, uint64_t microbatches)
{
    for (uint32_t i = 0; i < shape->flows.count; i++)
        if (shape->flows.at[i].microbatches == microbatches)
            return shape->flows.at[i].flow;
    if (shape->flows.count == MOST_FLOWS)
        return NULL;
    const etch_shape_flow *flow = etch_step_shape_flow(s->of->shape_arena, shape->shape, microbatches);
    ETCH_PUSH(s->of->shape_arena, &shape->flows, ((etch_flow_known){microbatches, flow}));
    return flow;
}

static const etch_shape_place *place_of(sorting *s, etch_case_shape *shape, const uint32_t *sizes)
{
    const uint32_t axes = shape->job->mesh_count;
    for (uint32_t i = 0; i < shape->places.count; i++) {
        const etch_place_known *known = &shape->places.at[i];
        bool same = known->cluster == s->cluster;
        for (uint32_t a = 0; same && a < axes; a++)
            same = known->sizes[a] == sizes[a];
        if (same)
            return known->place;
    }
    if (shape->places.count == MOST_PLACES)
        return NULL;
    uint32_t *own = ETCH_NEW_ARRAY(s->of->shape_arena, axes, uint32_t);
    for (uint32_t a = 0; a < axes; a++)
        own[a] = sizes[a];
    const etch_shape_place *place = etch_step_shape_place(s->of->shape_arena, shape->shape, s->cluster, own);
    ETCH_PUSH(s->of->shape_arena, &shape->places, ((etch_place_known){s->cluster, own, place}));
    return place;
}

/* The mesh and the microbatches of a row that has the shape. */
static void place_row(sorting *s, etch_case_shape *shape, const etch_sweep_values *values, uint32_t i,
                      etch_row_shape *row)
{
    const uint32_t axes = shape->job->mesh_count;
    uint32_t sizes[ETCH_MAX_AXES];
    uint64_t size, ranks = 1, microbatches = 0;
    bool fine = shape->shape && number_at(values, shape->microbatches, i, &microbatches);
    for (uint32_t a = 0; fine && a < axes; a++) {
        fine = number_at(values, shape->mesh[a], i, &size) && size >= 1 && size <= ETCH_MAX_RANKS &&
               (ranks *= size) <= ETCH_MAX_RANKS;
        sizes[a] = (uint32_t)size;
    }
    if (!fine || microbatches > shape->most_microbatches)
        return;
    row->flow = flow_of(s, shape, microbatches);
    row->place = row->flow ? place_of(s, shape, sizes) : NULL;
}

/* The most microbatches of rows that have the shape: if these can be lowered, fewer can. */
static void allow_most(sorting *s, etch_case_shape *shape, const etch_sweep_values *values,
                       const uint32_t *rows)
{
    uint64_t most = shape->most_microbatches, own;
    uint32_t row = UINT32_MAX;
    for (uint32_t i = 0; i < values->count; i++)
        if (fits(shape, values, i) && number_at(values, shape->microbatches, i, &own) && own > most) {
            most = own;
            row = rows[i];
        }
    if (row != UINT32_MAX)
        allow_microbatches(s, shape, row, most);
}

/* Finds the rows that have the shape, of those that have none yet. */
static etch_status take_rows(sorting *s, etch_case_shape *shape)
{
    uint32_t *rows = ETCH_NEW_ARRAY(s->scratch, s->count, uint32_t);
    uint32_t *which = ETCH_NEW_ARRAY(s->scratch, s->count, uint32_t), count = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->rows[i].shape && !s->rows[i].is_left) {
            which[count] = i;
            rows[count++] = s->rows[i].row;
        }
    if (!shape->is_known || count == 0)
        return ETCH_OK;
    etch_sweep_values values = {.workspace = s->workspace};
    const etch_status status = etch_block_evaluate(s->block, s->scratch, shape->keys.program,
                                                   shape->keys.inputs, rows, count, &values);
    if (status == ETCH_OK && shape->shape)
        allow_most(s, shape, &values, rows);
    for (uint32_t i = 0; status == ETCH_OK && i < count; i++) {
        etch_row_shape *row = &s->rows[which[i]];
        if (!fits(shape, &values, i))
            continue;
        row->shape = shape;
        place_row(s, shape, &values, i, row);
        row->is_left = !row->place;
    }
    return status;
}

/* The first row that has no shape; how many have none. */
static uint32_t count_left(const sorting *s, uint32_t *first)
{
    uint32_t count = 0;
    for (uint32_t i = s->count; i-- > 0;)
        if (!s->rows[i].shape && !s->rows[i].is_left) {
            *first = i;
            count++;
        }
    return count;
}

/* Rows of a shape follow each other. */
static void put_together(sorting *s)
{
    etch_row_shape *sorted = ETCH_NEW_ARRAY(s->scratch, s->count, etch_row_shape);
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->rows[i].place)
            sorted[count++] = s->rows[i];
    for (uint32_t k = 0; k < s->of->shapes.count; k++)
        for (uint32_t i = 0; i < s->count; i++)
            if (s->rows[i].place && s->rows[i].shape == s->of->shapes.at[k])
                sorted[count++] = s->rows[i];
    memcpy(s->rows, sorted, s->count * sizeof *sorted);
}

/* Then it begins anew. */
static bool is_full(const etch_sweep_case *of)
{
    bool full = of->shapes.count >= MOST_SHAPES;
    for (uint32_t i = 0; i < of->shapes.count; i++)
        full = full || of->shapes.at[i]->flows.count >= MOST_FLOWS ||
               of->shapes.at[i]->places.count >= MOST_PLACES;
    return full;
}

static etch_status sort(void *data)
{
    sorting *s = data;
    uint32_t first;
    etch_status status = ETCH_OK;
    s->scratch = etch_arena_new(s->of->mem);
    if (is_full(s->of))
        etch_case_free_shapes(s->of);
    if (!s->of->shape_arena)
        s->of->shape_arena = etch_arena_new(s->of->mem);
    for (uint32_t i = 0; status == ETCH_OK && i < s->of->shapes.count; i++)
        status = take_rows(s, s->of->shapes.at[i]);
    while (status == ETCH_OK && s->of->shapes.count < MOST_SHAPES && !s->of->has_no_shapes &&
           count_left(s, &first) >= FEWEST_ROWS) {
        etch_case_shape *shape = has_session(s) ? add_shape(s, s->rows[first].row) : NULL;
        s->of->has_no_shapes = !s->is_open;
        if (shape)
            status = take_rows(s, shape);
        s->rows[first].is_left = s->rows[first].is_left || !s->rows[first].shape;
    }
    put_together(s);
    etch_arena_free(s->scratch);
    return status;
}

etch_status etch_case_sort_shapes(etch_sweep_block *block, etch_sweep_case *of, const etch_cluster *cluster,
                                  etch_row_shape *rows, uint32_t count)
{
    sorting s = {.block = block, .of = of, .rows = rows, .count = count, .cluster = cluster};
    if (of->key.by_row || count < FEWEST_ROWS)
        return ETCH_OK;
    etch_status status = etch_workspace_new(&s.workspace);
    if (status == ETCH_OK)
        status = etch_guard(of->mem, sort, &s);
    etch_session_close(s.session);
    etch_workspace_free(s.workspace);
    return status;
}

void etch_case_free_shapes(etch_sweep_case *of)
{
    for (uint32_t i = 0; i < of->shapes.count; i++) {
        etch_program_free(of->shapes.at[i]->keys.program);
        etch_program_free(of->shapes.at[i]->values.program);
    }
    if (of->shape_arena)
        etch_arena_free(of->shape_arena);
    of->shape_arena = NULL;
    of->shapes.at = NULL;
    of->shapes.count = of->shapes.capacity = 0;
}
