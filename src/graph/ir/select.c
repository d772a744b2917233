/* Selection by names in a graph: calls of modules by a path (attention, block.attention), loops, tags, and
 * tensors as module.tensor. */
#include <string.h>

#include "graph/ir/cursor.h"
#include "graph/ir/ir_int.h"

ETCH_CURSOR_NEXT(etch_cursor, etch_region);

bool etch_scope_is_called(const etch_scope *scope, const char *path, size_t length)
{
    for (; scope; scope = scope->parent) {
        const size_t name = strlen(scope->module);
        if (name > length || memcmp(path + length - name, scope->module, name) != 0)
            return false;
        if (name == length)
            return true;
        length -= name;
        if (path[--length] != '.')
            return false;
    }
    return false;
}

bool etch_scope_is_inside(const etch_scope *scope, const etch_scope *outer)
{
    while (scope && scope != outer)
        scope = scope->parent;
    return scope != NULL;
}

bool etch_tensor_is_selected(const etch_tensor *tensor, const char *path)
{
    const char *dot = strrchr(path, '.');
    if (!dot)
        return etch_has_tag(tensor, path);
    return strcmp(dot + 1, tensor->name) == 0 &&
           etch_scope_is_called(tensor->scope, path, (size_t)(dot - path));
}

static bool is_stated(const etch_tensor *tensor)
{
    return tensor->kind == ETCH_WEIGHT ||
           (tensor->producer && !tensor->of && tensor->producer->phase == ETCH_FORWARD);
}

/* All loops of the name in a region. */
static void choose_loops(const etch_graph *graph, const etch_region *region, const char *name,
                         etch_choices *out)
{
    for (etch_cursor at = {.root = region}; etch_cursor_next(&at);)
        if (at.item->loop && strcmp(at.item->loop->name, name) == 0)
            ETCH_PUSH(graph->arena, out, (etch_choice){.loop = at.item->loop});
}

/* Those without iterations, too: a plan may speak of them. */
static void choose_idle_loops(const etch_graph *graph, const char *name, etch_choices *out)
{
    for (uint32_t i = 0; i < graph->idle_loops.count; i++) {
        etch_loop *loop = graph->idle_loops.at[i];
        if (strcmp(loop->name, name) == 0)
            ETCH_PUSH(graph->arena, out, (etch_choice){.loop = loop});
        for (uint32_t k = 0; k < loop->bodies.count; k++)
            choose_loops(graph, loop->bodies.at[k], name, out);
    }
}

etch_choices etch_choose(const etch_graph *graph, const char *name)
{
    etch_choices out = {0};
    for (uint32_t i = 0; i < graph->scopes.count; i++)
        if (etch_scope_is_called(graph->scopes.at[i], name, strlen(name)))
            ETCH_PUSH(graph->arena, &out, (etch_choice){.call = graph->scopes.at[i]});
    choose_loops(graph, graph->forward, name, &out);
    choose_idle_loops(graph, name, &out);
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        if (is_stated(graph->tensors.at[i]) && etch_tensor_is_selected(graph->tensors.at[i], name))
            ETCH_PUSH(graph->arena, &out, (etch_choice){.result = graph->tensors.at[i]});
    return out;
}

bool etch_region_is_in_loop(const etch_region *region, const etch_loop *loop)
{
    while (region && region->loop != loop)
        region = region->parent;
    return region != NULL;
}

bool etch_choice_has(const etch_choice *selected, const etch_op *op, const etch_region *in)
{
    if (selected->call)
        return etch_scope_is_inside(op->scope, selected->call);
    if (selected->loop)
        return etch_region_is_in_loop(in, selected->loop);
    const etch_tensor *result = selected->result;
    return op == result->producer || (op->id >= result->first_op && op->id < result->end_op);
}

bool etch_choice_has_weight(const etch_choice *selected, const etch_tensor *weight)
{
    if (selected->call)
        return etch_scope_is_inside(weight->scope, selected->call);
    return selected->loop ? etch_region_is_in_loop(weight->region, selected->loop)
                          : selected->result == weight;
}

void etch_help_selector(const etch_graph *graph, etch_diag *diag, const char *name, const char *otherwise)
{
    ETCH_VEC(const char *) names = {0};
    for (etch_cursor at = {.root = graph->forward}; etch_cursor_next(&at);)
        if (at.item->loop)
            ETCH_PUSH(graph->arena, &names, at.item->loop->name);
    for (uint32_t i = 0; i < graph->scopes.count; i++)
        ETCH_PUSH(graph->arena, &names, graph->scopes.at[i]->module);
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        for (uint32_t k = 0; k < graph->tensors.at[i]->tag_count; k++)
            ETCH_PUSH(graph->arena, &names, graph->tensors.at[i]->tags[k]);
    const char *near = etch_nearest(name, names.at, names.count);
    if (near && strcmp(near, name) != 0)
        etch_help(diag, "did you mean '%s'?", near);
    else
        etch_help(diag, "%s", otherwise);
}
