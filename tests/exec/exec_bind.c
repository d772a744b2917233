#include "exec_bind.h"

#include "lang/lang.h"

typedef struct binding {
    etch_sym *sym;
    const etch_settings *settings;
} binding;

static void put(const binding *b, etch_expr *expr)
{
    if (*expr)
        *expr = etch_settings_apply(b->sym, b->settings, *expr);
}

static void put_attrs(const binding *b, etch_attrs *attrs)
{
    etch_expr *numbers[] = {&attrs->number, &attrs->window, &attrs->cap,    &attrs->pairs, &attrs->stride,
                            &attrs->size,   &attrs->chunk,  &attrs->groups, &attrs->keep,  &attrs->limit};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put(b, numbers[i]);
}

static void put_region(const binding *b, etch_region *region);

static void put_loop(const binding *b, etch_loop *loop)
{
    put(b, &loop->count);
    for (uint32_t i = 0; loop->pattern && i < loop->pattern->segments.count; i++) {
        put(b, &loop->pattern->segments.at[i].first);
        put(b, &loop->pattern->segments.at[i].end);
    }
    for (uint32_t i = 0; i < loop->bodies.count; i++)
        put_region(b, loop->bodies.at[i]);
}

static void put_region(const binding *b, etch_region *region)
{
    put(b, &region->count);
    for (uint32_t i = 0; i < region->items.count; i++) {
        if (region->items.at[i].op)
            put_attrs(b, &region->items.at[i].op->attrs);
        else
            put_loop(b, region->items.at[i].loop);
    }
}

static const etch_plan *bound_plan(etch_arena *arena, const binding *b, const etch_plan *plan)
{
    etch_plan *copy = ETCH_NEW(arena, etch_plan);
    *copy = *plan;
    copy->mesh.at = ETCH_NEW_ARRAY(arena, plan->mesh.count, etch_axis);
    for (uint32_t a = 0; a < plan->mesh.count; a++) {
        copy->mesh.at[a] = plan->mesh.at[a];
        put(b, &copy->mesh.at[a].size);
    }
    copy->pads.at = ETCH_NEW_ARRAY(arena, plan->pads.count, etch_pad);
    for (uint32_t i = 0; i < plan->pads.count; i++) {
        copy->pads.at[i] = plan->pads.at[i];
        put(b, &copy->pads.at[i].multiple);
    }
    return copy;
}

static etch_training *derive(const binding *b, etch_model *model, const etch_plan *plan)
{
    for (uint32_t i = 0; i < model->graph->dims.count; i++)
        put(b, &model->graph->dims.at[i]->size);
    put_region(b, model->graph->forward);
    put(b, &model->train.micro);
    etch_train train = model->train;
    if (plan->recompute.span.end)
        train.recompute = plan->recompute, train.recompute_plan = plan;
    return etch_train_derive(model->graph, &train);
}

exec_bound exec_bind(etch_arena *arena, const char *path, const char *text, const char *run, const char *plan,
                     const char *sets)
{
    etch_sym *sym = etch_sym_new(arena);
    exec_bound bound = {.diags = etch_diags_new(arena)};
    etch_status status;
    const etch_spec_source source = {.path = path, .text = text};
    etch_spec *spec = etch_spec_load(arena, sym, bound.diags, &source, &status);
    const etch_plan *found = spec ? etch_spec_plan(spec, plan, true, (etch_span){0, 0}) : NULL;
    etch_settings settings;
    if (!found || !etch_spec_bind(spec, run, NULL, &sets, sets ? 1 : 0, true, found, &settings))
        return bound;
    const binding b = {sym, &settings};
    etch_model *model = etch_spec_elaborate(spec, run, &settings, found);
    bound.plan = bound_plan(arena, &b, found);
    bound.training = model ? derive(&b, model, bound.plan) : NULL;
    return bound;
}

const char *exec_messages(etch_arena *arena, const etch_diags *diags)
{
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    etch_diags_render(diags, &out);
    return out.text;
}

const char *const *exec_plan_names(etch_arena *arena, const char *path, uint32_t *count)
{
    etch_status status;
    const char *const *names = NULL;
    etch_spec *spec = etch_spec_load(arena, etch_sym_new(arena), etch_diags_new(arena),
                                     &(etch_spec_source){.path = path}, &status);
    const bool trains = spec && etch_spec_list(spec, ETCH_LIST_MODELS, &names) &&
                        etch_spec_list(spec, ETCH_LIST_RUNS, &names) <= 1;
    *count = trains ? etch_spec_list(spec, ETCH_LIST_PLANS, &names) : 0;
    return names;
}
