/* Selection by names in a graph: calls of modules by a path (attention, block.attention), loops, tags, and
 * tensors as module.tensor. */
#include <string.h>

#include "graph/ir/ir_int.h"

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

/* Goes as deep as loops are nested. */
static void list_loops(etch_arena *arena, const etch_region *region, etch_name_list *names)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        if (!loop)
            continue;
        ETCH_PUSH(arena, names, loop->name);
        for (uint32_t b = 0; b < loop->bodies.count; b++)
            list_loops(arena, loop->bodies.at[b], names);
    }
}

etch_name_list etch_graph_selectors(const etch_graph *graph)
{
    etch_name_list names = {0};
    list_loops(graph->arena, graph->forward, &names);
    for (uint32_t i = 0; i < graph->scopes.count; i++)
        ETCH_PUSH(graph->arena, &names, graph->scopes.at[i]->module);
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        for (uint32_t k = 0; k < graph->tensors.at[i]->tag_count; k++)
            ETCH_PUSH(graph->arena, &names, graph->tensors.at[i]->tags[k]);
    return names;
}
