/* What the files that print a graph share: where its ops stand, and names as seen from there. */
#ifndef ETCH_CLI_GRAPH_INT_H
#define ETCH_CLI_GRAPH_INT_H

#include "cli_int.h"
#include "etch/placement.h"

/* One step of the way from the model to an op: into a call of a module, or into a loop of one. */
typedef struct cli_step {
    bool is_loop;
    size_t module, loop; /* the module, in that loop; the loop, in that module */
} cli_step;

/* The ways to the op before and to this one. */
typedef struct cli_way {
    const etch_graph_report *report;
    cli_step *steps, *next;
    size_t depth, next_depth;
    size_t common; /* steps that both begin with */
} cli_way;

/* False: memory is out. To be ended with `cli_way_end`, also then. */
bool cli_way_begin(cli_way *way, const etch_graph_report *report);
void cli_way_end(cli_way *way);
/* Goes to what stands in the module and loop: `steps` and `depth` say how, `common` is what stays. */
void cli_way_to(cli_way *way, size_t module, size_t loop);

/* Is it an input or a weight that is declared there: in the module, or in a loop of it? */
bool cli_is_declared_at(const etch_graph_report *report, const etch_view_tensor *tensor,
                        const cli_step *step);
static inline bool cli_is_forward(const etch_view_op *op)
{
    return *op->phase == 'f';
}

/* An index, null for NONE; a list of them. */
json_t *cli_json_index(size_t index);
json_t *cli_json_indices(const size_t *indices, size_t count, bool *failed);
/* Adds dims and tensors, or loops and modules, of a graph to an object. */
void cli_json_tensors(json_t *object, const etch_graph_report *report, bool *failed);
void cli_json_modules(json_t *object, const etch_graph_report *report, bool *failed);

/* They print the whole report. False: memory is out. */
bool cli_print_graph_text(const etch_graph_report *report);
bool cli_print_graph_dot(const etch_graph_report *report);
bool cli_print_graph_json(const etch_graph_report *report);
/* The same of a placement. */
bool cli_print_plan_text(const etch_placement_report *report);
bool cli_print_plan_dot(const etch_placement_report *report);
bool cli_print_plan_json(const etch_placement_report *report);

#endif
