/* Where ops stand: the modules and loops around them. */
#include "graph_int.h"

#include <stdlib.h>
#include <string.h>

static bool is_declared(const etch_view_tensor *tensor)
{
    return tensor->kind == ETCH_WEIGHT || tensor->kind == ETCH_INPUT || tensor->constant;
}

/* The place where the tensor stands, among modules and after them loops. */
static size_t home_of(const etch_graph_report *report, const etch_view_tensor *tensor)
{
    const size_t loop = tensor->loop;
    return loop != ETCH_VIEW_NONE && report->loops[loop].module == tensor->module
               ? report->module_count + loop
               : tensor->module;
}

static void list_declared(cli_way *way)
{
    const etch_graph_report *r = way->report;
    for (size_t i = 0; i < r->module_count + r->loop_count; i++)
        way->first[i] = ETCH_VIEW_NONE;
    for (size_t i = r->tensor_count; i-- > 0;) {
        if (!is_declared(&r->tensors[i]))
            continue;
        size_t *first = &way->first[home_of(r, &r->tensors[i])];
        way->later[i] = *first;
        *first = i;
    }
}

bool cli_way_begin(cli_way *way, const etch_graph_report *report)
{
    const size_t most = report->module_count + report->loop_count;
    *way = (cli_way){.report = report,
                     .steps = calloc(most, sizeof *way->steps),
                     .next = calloc(most, sizeof *way->next),
                     .first = calloc(most, sizeof *way->first),
                     .later = calloc(report->tensor_count + 1, sizeof *way->later)};
    if (!way->steps || !way->next || !way->first || !way->later)
        return false;
    list_declared(way);
    return true;
}

void cli_way_end(cli_way *way)
{
    free(way->steps);
    free(way->next);
    free(way->first);
    free(way->later);
}

size_t cli_first_declared(const cli_way *way, const cli_step *step)
{
    return way->first[step->is_loop ? way->report->module_count + step->loop : step->module];
}

size_t cli_next_declared(const cli_way *way, size_t tensor)
{
    return way->later[tensor];
}

/* From the op outwards. */
static void find_way(cli_way *way, size_t module, size_t loop)
{
    const etch_graph_report *r = way->report;
    way->next_depth = 0;
    while (module != ETCH_VIEW_NONE) {
        const bool is_loop = loop != ETCH_VIEW_NONE && r->loops[loop].module == module;
        way->next[way->next_depth++] = (cli_step){is_loop, module, loop};
        if (is_loop)
            loop = r->loops[loop].parent;
        else
            module = r->modules[module].parent;
    }
}

void cli_way_to(cli_way *way, size_t module, size_t loop)
{
    find_way(way, module, loop);
    way->common = 0;
    for (size_t i = 0; i < way->next_depth / 2; i++) {
        const cli_step swap = way->next[i];
        way->next[i] = way->next[way->next_depth - 1 - i];
        way->next[way->next_depth - 1 - i] = swap;
    }
    while (way->common < way->depth && way->common < way->next_depth) {
        const cli_step *a = &way->steps[way->common], *b = &way->next[way->common];
        if (a->is_loop != b->is_loop || a->module != b->module || a->loop != b->loop)
            break;
        way->common++;
    }
    cli_step *swap = way->steps;
    way->steps = way->next;
    way->next = swap;
    way->depth = way->next_depth;
}

bool cli_is_declared_at(const etch_graph_report *report, const etch_view_tensor *tensor, const cli_step *step)
{
    const size_t place = step->is_loop ? report->module_count + step->loop : step->module;
    return home_of(report, tensor) == place && is_declared(tensor);
}
