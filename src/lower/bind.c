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

/* `kind` and `name` are what needs it. */
static void need(etch_bound *b, etch_expr expr, etch_span span, const char *kind, const char *name)
{
    etch_expr value = etch_bound_value(b, expr);
    if (!value || etch_is_constant(value))
        return;
    const etch_expr *vars;
    const uint32_t count = etch_vars_of(b->sym, value, &vars);
    for (uint32_t i = 0; i < count; i++)
        if (!is_known_missing(b, vars[i]))
            ETCH_PUSH(b->arena, &b->missing,
                      (etch_missing_value){vars[i], span, etch_text(b->arena, "%s%s", kind, name)});
}

static void need_region(etch_bound *b, const etch_placed_region *region)
{
    const etch_loop *loop = region->of->loop;
    if (loop)
        need(b, region->of->count, loop->span, "loop ", loop->name);
    for (uint32_t i = 0; i < region->kernels.count; i++) {
        const etch_kernel *kernel = region->kernels.at[i];
        const etch_op *op = kernel->anchor->op;
        need(b, kernel->flop, op ? op->span : (etch_span){0, 0}, "this op", "");
        need(b, kernel->bytes, op ? op->span : (etch_span){0, 0}, "this op", "");
    }
}

static void need_end(etch_bound *b, const etch_step_task *task)
{
    static const char *const what[] = {
        [ETCH_END_REDUCE] = "the sum of gradients", [ETCH_END_REDUCE_SHARED] = "the sum of gradients",
        [ETCH_END_NORM] = "the norm of gradients",  [ETCH_END_NORM_REDUCE] = "the norm of gradients",
        [ETCH_END_PREPARE] = "the optimizer",       [ETCH_END_SHARE_PREPARED] = "the optimizer",
        [ETCH_END_REFINE] = "the optimizer",        [ETCH_END_SHARE_REFINED] = "the optimizer",
        [ETCH_END_UPDATE] = "the optimizer",        [ETCH_END_GATHER] = "the gathering of weights",
        [ETCH_END_LOAD] = "the load of states",     [ETCH_END_STORE] = "the store of states"};
    const etch_span train = b->from->training->train.span;
    need(b, task->flop, train, what[task->end], "");
    need(b, task->bytes, train, what[task->end], "");
}

static void need_stages(etch_bound *b, const etch_stages *stages)
{
    const etch_span line = stages->line->span;
    need(b, stages->layers, line, "the chain of stages", "");
    for (uint32_t i = 0; i < stages->cuts.count; i++) {
        need(b, stages->cuts.at[i].forward_bytes, line, "the message between stages", "");
        need(b, stages->cuts.at[i].backward_bytes, line, "the message between stages", "");
    }
}

static void need_all(etch_bound *b)
{
    const etch_placed *placed = b->from->placed;
    const etch_step_tasks *end = &placed->program->end;
    for (uint32_t i = 0; i < b->asked.count; i++)
        if (!b->asked.at[i].optional)
            need(b, b->asked.at[i].expr, b->asked.at[i].span, b->asked.at[i].kind, b->asked.at[i].name);
    for (uint32_t i = 0; i < placed->requirements.count; i++) {
        const etch_requirement *r = &placed->requirements.at[i];
        need(b, r->size, r->span, "the division of dim ", r->dim->name);
        need(b, r->divisor, r->span, "the division of dim ", r->dim->name);
    }
    for (uint32_t i = 0; i < placed->regions.count; i++)
        need_region(b, placed->regions.at[i]);
    for (uint32_t i = 0; i < end->count; i++)
        need_end(b, end->at[i]);
    if (placed->stages)
        need_stages(b, placed->stages);
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

bool etch_values_check(etch_arena *scratch, etch_sym *sym, etch_diags *diags, const etch_values *values)
{
    etch_extent extent = {0};
    etch_bound *b = etch_bound_new(scratch, sym, diags, values);
    etch_bound_ask(b);
    return etch_check_values(b, &extent);
}

etch_status etch_bind(etch_arena *scratch, const etch_values *values, etch_bound **bound, etch_extent *extent)
{
    const etch_graph *graph = values->training->graph;
    const uint32_t errors = etch_error_count(graph->diags);
    etch_bound *b = *bound = etch_bound_new(scratch, graph->sym, graph->diags, values);
    etch_bound_ask(b);
    need_all(b);
    report_missing(b);
    if (!etch_check_values(b, extent) || etch_error_count(graph->diags) != errors)
        return ETCH_EINPUT;
    if (extent->rank_count <= ETCH_MAX_RANKS)
        return ETCH_OK;
    etch_error(b->diags, ETCH_E_TOO_MANY_RANKS, values->placed->plan->span,
               "the mesh has more than the %d ranks that can be lowered", (int)ETCH_MAX_RANKS);
    return ETCH_ELIMIT;
}
