/* From expressions to numbers: what has a value, and whether the values may stand together. */
#include "lower/lower_int.h"

#include <string.h>

/* ---- values -------------------------------------------------------------------------------------------- */

static etch_bound_entry *find_entry(etch_bound_entry *entries, size_t capacity, etch_expr expr)
{
    uint64_t hash = (uint64_t)(uintptr_t)expr * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash >> 32) & (capacity - 1);
    while (entries[at].expr && entries[at].expr != expr)
        at = (at + 1) & (capacity - 1);
    return &entries[at];
}

static void grow_entries(etch_bound *b)
{
    size_t capacity = b->capacity == 0 ? 256 : b->capacity * 2;
    etch_bound_entry *entries = ETCH_NEW_ARRAY(b->arena, capacity, etch_bound_entry);
    for (size_t i = 0; i < b->capacity; i++)
        if (b->entries[i].expr)
            *find_entry(entries, capacity, b->entries[i].expr) = b->entries[i];
    b->entries = entries;
    b->capacity = capacity;
}

etch_expr etch_bound_value(etch_bound *b, etch_expr expr)
{
    if (!expr || etch_is_constant(expr))
        return expr;
    if (b->entry_count >= b->capacity / 2)
        grow_entries(b);
    etch_bound_entry *entry = find_entry(b->entries, b->capacity, expr);
    if (!entry->expr) {
        entry->expr = expr;
        entry->value = etch_subst(b->sym, expr, b->from->given_count, b->vars, b->values);
        b->entry_count++;
    }
    return entry->value;
}

/* Puts values into values until they are numbers, or stay as they are. */
static void settle_given(etch_bound *b)
{
    const etch_values *o = b->from;
    b->vars = ETCH_NEW_ARRAY(b->arena, o->given_count, etch_expr);
    b->values = ETCH_NEW_ARRAY(b->arena, o->given_count, etch_expr);
    for (uint32_t i = 0; i < o->given_count; i++) {
        b->vars[i] = o->given[i].var;
        b->values[i] = o->given[i].value;
    }
    bool changed = true;
    for (uint32_t round = 0; changed && round < o->given_count; round++) {
        changed = false;
        for (uint32_t i = 0; i < o->given_count; i++) {
            if (!b->values[i] || etch_is_constant(b->values[i]))
                continue;
            etch_expr value = etch_subst(b->sym, b->values[i], o->given_count, b->vars, b->values);
            changed = changed || value != b->values[i];
            b->values[i] = value;
        }
    }
}

/* ---- messages ------------------------------------------------------------------------------------------ */

const char *etch_bound_text(etch_bound *b, etch_expr expr)
{
    return expr ? etch_expr_text(b->sym, expr) : "undefined";
}

const char *etch_bound_named(etch_bound *b, const char *name, etch_expr expr)
{
    const char *text = etch_bound_text(b, expr), *value = etch_bound_text(b, etch_bound_value(b, expr));
    const char *var = expr ? etch_var_name(expr) : NULL;
    if (!expr || etch_is_constant(expr) || etch_bound_value(b, expr) == expr ||
        (var && strcmp(var, name) == 0))
        return etch_text(b->arena, "%s = %s", name, value);
    return etch_text(b->arena, "%s = %s = %s", name, text, value);
}

static const etch_given *given_to(const etch_bound *b, etch_expr var)
{
    for (uint32_t i = 0; i < b->from->given_count; i++)
        if (b->from->given[i].var == var)
            return &b->from->given[i];
    return NULL;
}

void etch_bound_note(etch_bound *b, etch_diag *diag, etch_expr expr)
{
    const etch_expr *vars = NULL;
    uint32_t count = expr ? etch_vars_of(b->sym, expr, &vars) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const etch_given *given = given_to(b, vars[i]);
        if (given)
            etch_note(diag, given->span, "%s = %s (%s)", given->name,
                      etch_bound_text(b, etch_bound_value(b, vars[i])), given->from);
    }
}

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

static void need_region(etch_bound *b, const etch_placed_region *region, uint32_t depth)
{
    if (depth > ETCH_LOOP_DEPTH)
        return; /* the outline refuses it */
    for (uint32_t i = 0; i < region->kernels.count; i++) {
        const etch_kernel *kernel = region->kernels.at[i];
        const etch_op *op = kernel->anchor->op;
        etch_span span = op ? op->span : (etch_span){0, 0};
        need(b, kernel->flop, span, "this op", NULL);
        need(b, kernel->bytes, span, "this op", NULL);
    }
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (!loop)
            continue;
        need(b, loop->loop->count, loop->loop->span, "loop", loop->loop->name);
        for (uint32_t k = 0; k < loop->bodies.count; k++) {
            need(b, loop->loop->bodies.at[k]->count, loop->loop->span, "loop", loop->loop->name);
            need_region(b, loop->bodies.at[k], depth + 1);
        }
    }
}

uint32_t etch_bound_dims(etch_bound *b, const etch_dim ***dims)
{
    const etch_graph *graph = b->from->training->graph;
    uint32_t count = 0, id_end = 0;
    for (uint32_t i = 0; i < graph->dims.count; i++)
        if (graph->dims.at[i]->id >= id_end)
            id_end = graph->dims.at[i]->id + 1;
    bool *marks = ETCH_NEW_ARRAY(b->arena, id_end, bool);
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        for (uint32_t d = 0; d < graph->tensors.at[i]->rank; d++)
            marks[graph->tensors.at[i]->dims[d]->id] = true;
    *dims = ETCH_NEW_ARRAY(b->arena, graph->dims.count, const etch_dim *);
    for (uint32_t i = 0; i < graph->dims.count; i++)
        if (marks[graph->dims.at[i]->id])
            (*dims)[count++] = graph->dims.at[i];
    return count;
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
    need_region(b, placed->forward, 0);
    if (placed->backward)
        need_region(b, placed->backward, 0);
    for (uint32_t i = 0; i < placed->buckets.count; i++)
        need(b, placed->buckets.at[i].bytes, train->span, "the sum of gradients", NULL);
    for (uint32_t i = 0; i < placed->ties.count; i++)
        need(b, placed->ties.at[i].bytes, train->span, "the sum of gradients", NULL);
    for (uint32_t i = 0; i < placed->gathers.count; i++)
        need(b, placed->gathers.at[i].bytes, train->span, "the gathering of weights", NULL);
    for (uint32_t i = 0; i < placed->updates.count; i++) {
        need(b, placed->updates.at[i].flop, train->span, "the optimizer", NULL);
        need(b, placed->updates.at[i].bytes, train->span, "the optimizer", NULL);
    }
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
    need(b, stages->units, stages->line->span, "the chain of stages", NULL);
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

etch_bound *etch_bound_new(etch_arena *scratch, etch_sym *sym, etch_diags *diags, const etch_values *values)
{
    etch_bound *b = ETCH_NEW(scratch, etch_bound);
    *b = (etch_bound){.arena = scratch, .sym = sym, .diags = diags, .from = values};
    settle_given(b);
    return b;
}

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

const etch_binding *etch_bound_list(etch_bound *b, etch_arena *arena)
{
    uint32_t count = b->from->given_count;
    etch_binding *list = ETCH_NEW_ARRAY(arena, count, etch_binding);
    for (uint32_t i = 0; i < count; i++) {
        const etch_given *given = &b->from->given[i];
        const char *value = etch_bound_text(b, b->values[i]);
        list[i].name = etch_copy_text(arena, given->name, strlen(given->name));
        list[i].value = etch_copy_text(arena, value, strlen(value));
        list[i].from = etch_copy_text(arena, given->from, strlen(given->from));
    }
    return list;
}
