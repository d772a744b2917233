/* Which values are there, and whether they may stand together. */
#include "lower/lower_int.h"

/* ---- what needs a value -------------------------------------------------------------------------------- */

static bool is_known_missing(const etch_bound *b, etch_expr var)
{
    for (uint32_t i = 0; i < b->missing.count; i++)
        if (b->missing.at[i].var == var)
            return true;
    return false;
}

/* `what` is a format for `name`. */
static void need(etch_bound *b, etch_expr expr, etch_span span, const char *kind, const char *name)
{
    etch_expr value = etch_bound_value(b, expr);
    if (!value || etch_is_constant(value))
        return;
    const etch_expr *vars;
    uint32_t count = etch_vars_of(b->sym, value, &vars);
    for (uint32_t i = 0; i < count; i++) {
        if (is_known_missing(b, vars[i]))
            continue;
        const char *what = etch_text(b->arena, "%s%s%s", kind, name ? " " : "", name ? name : "");
        ETCH_PUSH(b->arena, &b->missing, (etch_missing_value){vars[i], span, what});
    }
}

static void need_task(etch_bound *b, const etch_step_task *task, etch_span span, const char *what)
{
    need(b, task->flop, span, what, NULL);
    need(b, task->bytes, span, what, NULL);
}

static void need_body(etch_bound *b, const etch_step_body *body, uint32_t depth)
{
    if (depth > ETCH_LOOP_DEPTH)
        return; /* the outline refuses it */
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_step_task *task = body->items.at[i].task;
        const etch_op *op = task ? task->kernel->anchor->op : NULL;
        if (task)
            need_task(b, task, op ? op->span : (etch_span){0, 0}, "this op");
    }
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_step_repeat *repeat = body->items.at[i].repeat;
        const etch_loop *loop = repeat ? repeat->loop->loop : NULL;
        if (!repeat)
            continue;
        need(b, loop->count, loop->span, "loop", loop->name);
        for (uint32_t k = 0; k < repeat->bodies.count; k++) {
            need(b, loop->bodies.at[k]->count, loop->span, "loop", loop->name);
            need_body(b, repeat->bodies.at[k], depth + 1);
        }
    }
}

static void need_end(etch_bound *b, const etch_step_program *program, etch_span train)
{
    static const char *const what[] = {
        [ETCH_END_REDUCE] = "the sum of gradients", [ETCH_END_REDUCE_SHARED] = "the sum of gradients",
        [ETCH_END_NORM] = "the norm of gradients",  [ETCH_END_NORM_REDUCE] = "the norm of gradients",
        [ETCH_END_UPDATE] = "the optimizer",        [ETCH_END_GATHER] = "the gathering of weights"};
    for (uint32_t i = 0; i < program->end.count; i++)
        need_task(b, program->end.at[i], train, what[program->end.at[i]->end]);
}

static void need_all(etch_bound *b)
{
    const etch_placed *placed = b->from->placed;
    const etch_train *train = &placed->training->train;
    const etch_dim **dims;
    uint32_t dim_count = etch_bound_dims(b, &dims);
    for (uint32_t i = 0; i < dim_count; i++)
        need(b, dims[i]->size, dims[i]->span, "dim", dims[i]->name);
    for (uint32_t i = 0; i < placed->plan->mesh.count; i++) {
        const etch_axis *axis = &placed->plan->mesh.at[i];
        need(b, axis->size, axis->span, "mesh axis", axis->name);
    }
    if (placed->plan->ranks.count)
        need(b, placed->plan->ranks.count, placed->plan->ranks.span, "the number of ranks", NULL);
    for (uint32_t i = 0; i < placed->plan->pads.count; i++)
        need(b, placed->plan->pads.at[i].multiple, placed->plan->pads.at[i].span, "the padding of dim",
             placed->plan->pads.at[i].dim);
    need(b, train->micro, train->span, "the number of microbatches", NULL);
    for (uint32_t i = 0; i < placed->requirements.count; i++) {
        const etch_requirement *r = &placed->requirements.at[i];
        need(b, r->size, r->span, "the division of dim", r->dim->name);
        need(b, r->divisor, r->span, "the division of dim", r->dim->name);
    }
    need_body(b, placed->program->forward, 0);
    if (placed->program->backward)
        need_body(b, placed->program->backward, 0);
    need_end(b, placed->program, train->span);
}

static void need_buckets(etch_bound *b)
{
    const etch_plan *plan = b->from->placed->plan;
    if (plan->bucketing == ETCH_BUCKET_BY_SIZE)
        need(b, plan->bucket, plan->bucket_span, "the size of buckets", NULL);
}

static void need_stages(etch_bound *b)
{
    const etch_stages *stages = b->from->placed->stages;
    if (!stages)
        return;
    need(b, stages->layers, stages->line->span, "the chain of stages", NULL);
    need(b, stages->line->chunks, stages->line->span, "the schedule", NULL);
    for (uint32_t i = 0; i < stages->line->count_count; i++)
        need(b, stages->line->counts[i], stages->line->span, "the count of units", NULL);
    for (uint32_t i = 0; i < stages->cuts.count; i++) {
        need(b, stages->cuts.at[i].forward_bytes, stages->line->span, "the message between stages", NULL);
        need(b, stages->cuts.at[i].backward_bytes, stages->line->span, "the message between stages", NULL);
    }
}

static void report_missing(etch_bound *b)
{
    if (b->missing.count == 0)
        return;
    etch_buf names = {.arena = b->arena}, set = {.arena = b->arena};
    for (uint32_t i = 0; i < b->missing.count; i++) {
        const char *name = etch_var_name(b->missing.at[i].var);
        etch_buf_printf(&names, "%s%s", i > 0 ? ", " : "", name);
        etch_buf_printf(&set, "%s%s=...", i > 0 ? "," : "", name);
    }
    const etch_missing_value *first = &b->missing.at[0];
    etch_diag *diag = etch_error(b->diags, ETCH_E_UNBOUND, first->span, "no value for %s", names.text);
    for (uint32_t i = 0; i < b->missing.count; i++) {
        const etch_missing_value *m = &b->missing.at[i];
        etch_note(diag, m->span, "%s needs %s", m->what, etch_var_name(m->var));
    }
    etch_help(diag, "give %s: --set %s", b->missing.count > 1 ? "them" : "it", set.text);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* Each step would say again what the one before has found. */
static bool check_values(etch_bound *b, etch_extent *extent)
{
    const uint32_t errors = etch_error_count(b->diags);
    etch_check_given(b);
    etch_check_facts(b);
    if (b->from->training && etch_error_count(b->diags) == errors) {
        etch_check_model(b, extent);
        if (b->from->placed)
            etch_check_plan(b, extent);
    }
    if (b->from->placed && etch_error_count(b->diags) == errors)
        etch_check_requirements(b);
    return etch_error_count(b->diags) == errors;
}

bool etch_values_check(etch_arena *scratch, etch_sym *sym, etch_diags *diags, const etch_values *values)
{
    etch_extent extent = {0};
    return check_values(etch_bound_new(scratch, sym, diags, values), &extent);
}

etch_status etch_bind(etch_arena *scratch, const etch_values *values, etch_bound **bound, etch_extent *extent)
{
    const etch_graph *graph = values->training->graph;
    const uint32_t errors = etch_error_count(graph->diags);
    etch_bound *b = *bound = etch_bound_new(scratch, graph->sym, graph->diags, values);
    need_all(b);
    need_stages(b);
    need_buckets(b);
    report_missing(b);
    if (!check_values(b, extent) || etch_error_count(graph->diags) != errors)
        return ETCH_EINPUT;
    if (extent->rank_count <= ETCH_MAX_RANKS)
        return ETCH_OK;
    etch_error(b->diags, ETCH_E_TOO_MANY_RANKS, values->placed->plan->span,
               "the mesh has more than the %d ranks that can be lowered", (int)ETCH_MAX_RANKS);
    return ETCH_ELIMIT;
}
