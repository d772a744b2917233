/* Finds what `of = M` names: calls of modules, loops, tensors. */
#include "session/core/core.h"

#include <string.h>

/* What a walk over the forward pass finds, in program order. */
typedef struct survey {
    etch_arena *arena;
    ETCH_VEC(const etch_loop *) loops;
    /* by scope id: where the call stands, or NULL */
    const etch_region **region_of_scope;
    /* by scope id */
    bool *seen_scope;
    /* by scope id: does anything run in it? An infer block leaves out what it does not need */
    bool *runs;
} survey;

static void walk(survey *s, const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item *item = &region->items.at[i];
        if (item->loop) {
            ETCH_PUSH(s->arena, &s->loops, item->loop);
            for (uint32_t k = 0; k < item->loop->bodies.count; k++)
                walk(s, item->loop->bodies.at[k]);
            continue;
        }
        for (const etch_scope *scope = item->op->scope; scope; scope = scope->parent)
            s->runs[scope->id] = true;
        if (item->op->edge != ETCH_NO_EDGE && item->op->scope && !s->seen_scope[item->op->scope->id]) {
            /* Arguments enter where the call stands, whatever loops the module has inside. */
            s->seen_scope[item->op->scope->id] = true;
            s->region_of_scope[item->op->scope->id] = region;
        }
    }
}

/* Nothing runs in it; its parts have their names. */
static void walk_idle(survey *s, const etch_loop *loop)
{
    ETCH_PUSH(s->arena, &s->loops, loop);
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        walk(s, loop->bodies.at[k]);
}

static survey survey_graph(etch_arena *arena, const etch_graph *graph)
{
    survey s = {.arena = arena,
                .region_of_scope = ETCH_NEW_ARRAY(arena, graph->scopes.count, const etch_region *),
                .seen_scope = ETCH_NEW_ARRAY(arena, graph->scopes.count, bool),
                .runs = ETCH_NEW_ARRAY(arena, graph->scopes.count, bool)};
    walk(&s, graph->forward);
    for (uint32_t i = 0; i < graph->idle_loops.count; i++)
        walk_idle(&s, graph->idle_loops.at[i]);
    return s;
}

/* How often a region runs in a microbatch; NULL: once. */
static etch_expr runs_of(etch_sym *sym, const etch_region *region)
{
    etch_expr product = etch_int(sym, 1);
    for (; region && region->loop; region = region->parent)
        product = etch_mul(sym, product, region->count);
    return product;
}

/* `all`: also calls in which nothing runs. */
static void find_scopes(etch_session *session, const etch_graph *graph, const survey *s, const char *selector,
                        bool all, etch_selection *out)
{
    for (uint32_t i = 0; i < graph->scopes.count; i++) {
        etch_scope *scope = graph->scopes.at[i];
        if (etch_scope_is_called(scope, selector, strlen(selector)) && (all || s->runs[scope->id])) {
            etch_expr around = runs_of(session->sym, s->region_of_scope[scope->id]);
            const etch_region *region = s->region_of_scope[scope->id];
            ETCH_PUSH(session->arena, out,
                      (etch_selected){.scope = scope, .region = region, .around = around});
        }
    }
}

static void find_loops(etch_session *session, const survey *s, const char *selector, etch_selection *out)
{
    for (uint32_t i = 0; i < s->loops.count; i++) {
        const etch_loop *loop = s->loops.at[i];
        if (strcmp(loop->name, selector) == 0) {
            for (uint32_t k = 0; k < loop->bodies.count; k++) {
                etch_expr around = runs_of(session->sym, loop->bodies.at[k]);
                ETCH_PUSH(session->arena, out, (etch_selected){.body = loop->bodies.at[k], .around = around});
            }
        }
    }
}

static bool is_found(const etch_selection *found, const etch_tensor *tensor)
{
    for (uint32_t i = 0; i < found->count; i++)
        if (found->at[i].tensor == tensor)
            return true;
    return false;
}

/* Tensors with a tag, or called module.tensor; of a part of a sum the sum. */
static void find_tensors(etch_session *session, const etch_graph *graph, const char *selector,
                         etch_selection *out)
{
    for (uint32_t i = 0; i < graph->tensors.count; i++) {
        const etch_tensor *tensor = graph->tensors.at[i];
        if (tensor && !tensor->of && etch_tensor_is_selected(tensor, selector)) {
            tensor = tensor->part_of ? tensor->part_of : tensor;
            if (is_found(out, tensor))
                continue;
            etch_expr around = runs_of(session->sym, tensor->region);
            ETCH_PUSH(session->arena, out, (etch_selected){.tensor = tensor, .around = around});
        }
    }
}

static void report_unknown(etch_session *session, const etch_graph *graph, const survey *s,
                           const char *selector, etch_span span)
{
    ETCH_VEC(const char *) names = {0};
    for (uint32_t i = 0; i < graph->scopes.count; i++)
        ETCH_PUSH(session->arena, &names, graph->scopes.at[i]->module);
    for (uint32_t i = 0; i < s->loops.count; i++)
        ETCH_PUSH(session->arena, &names, s->loops.at[i]->name);
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        for (uint32_t k = 0; graph->tensors.at[i] && k < graph->tensors.at[i]->tag_count; k++)
            ETCH_PUSH(session->arena, &names, graph->tensors.at[i]->tags[k]);
    etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_PART, span,
                                 "model '%s' has no module, loop, tag or module.tensor called '%s'",
                                 graph->model, selector);
    const char *near = etch_nearest(selector, names.at, names.count);
    if (near)
        etch_help(diag, "did you mean '%s'?", near);
    else
        etch_help(diag, "a query with `--by module` shows the modules that are called");
}

bool etch_selection_find(etch_session *session, const etch_compiled *compiled, const char *selector,
                         etch_span span, etch_selection *out)
{
    const etch_graph *graph = compiled->training->graph;
    const survey s = survey_graph(session->arena, graph);
    find_scopes(session, graph, &s, selector, !graph->serves, out);
    if (out->count == 0 && graph->serves)
        find_scopes(session, graph, &s, selector, true, out);
    if (out->count == 0)
        find_loops(session, &s, selector, out);
    if (out->count == 0)
        find_tensors(session, graph, selector, out);
    if (out->count == 0)
        report_unknown(session, graph, &s, selector, span);
    return out->count > 0;
}

static bool in_body(const etch_region *body, const etch_region *wanted)
{
    while (body && body != wanted)
        body = body->parent;
    return body != NULL;
}

/* Is it what the op that makes `wanted` keeps of its work besides, as the statistics of a loss? */
static bool comes_with(const etch_tensor *tensor, const etch_tensor *wanted)
{
    return tensor->producer && tensor->producer == wanted->producer && tensor->output > 0 &&
           !etch_row_is_several(tensor->producer->row);
}

static bool derives_from(const etch_tensor *tensor, const etch_tensor *wanted)
{
    while (tensor && tensor != wanted && !comes_with(tensor, wanted))
        tensor = tensor->of;
    return tensor != NULL;
}

/* Is it of a weight that several calls may read? */
static bool is_of_shared(const etch_cost *cost)
{
    return cost->tensor && cost->tensor->calls.count > 0 && cost->scope == cost->tensor->scope;
}

etch_expr etch_selected_times(etch_sym *sym, const etch_selected *part, const etch_cost *cost)
{
    const bool is_shared = part->scope && is_of_shared(cost) && in_body(part->region, cost->tensor->region);
    return is_shared ? runs_of(sym, cost->tensor->region) : part->around;
}

bool etch_selected_holds(const etch_selected *part, const etch_cost *cost)
{
    if (part->scope && !part->scope->parent)
        return true; /* the model holds everything */
    for (uint32_t i = 0; part->scope && is_of_shared(cost) && i < cost->tensor->calls.count; i++)
        if (etch_scope_is_inside(cost->tensor->calls.at[i], part->scope))
            return true;
    if (part->scope)
        return etch_scope_is_inside(cost->scope, part->scope);
    if (part->body)
        return in_body(cost->body, part->body);
    return derives_from(cost->tensor, part->tensor);
}

etch_span etch_selected_span(const etch_selected *part)
{
    return part->scope ? part->scope->span : part->body ? part->body->loop->span : part->tensor->span;
}
