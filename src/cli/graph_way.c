/* Where ops stand: the modules and loops around them. */
#include "graph_int.h"

#include <stdlib.h>
#include <string.h>

bool cli_way_begin(cli_way *way, const etch_graph_report *report)
{
    const size_t most = report->module_count + report->loop_count;
    *way = (cli_way){
        .report = report, .steps = calloc(most, sizeof *way->steps), .next = calloc(most, sizeof *way->next)};
    return way->steps && way->next;
}

void cli_way_end(cli_way *way)
{
    free(way->steps);
    free(way->next);
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
    if (tensor->module != step->module ||
        (strcmp(tensor->kind, "weight") != 0 && strcmp(tensor->kind, "input") != 0))
        return false;
    if (step->is_loop)
        return tensor->loop == step->loop;
    return tensor->loop == ETCH_VIEW_NONE || report->loops[tensor->loop].module != step->module;
}
