/* Declarations that the files that print a graph share: where its ops stand, and names as seen from there. */
#ifndef ETCH_CLI_GRAPH_INT_H
#define ETCH_CLI_GRAPH_INT_H

#include "cli_int.h"
#include "etch/placement.h"

/* One step of the way from the model to an op: into a call of a module, or into a loop of one. */
typedef struct cli_step {
    bool is_loop;
    /* the module, in that loop; the loop, in that module */
    size_t module, loop;
} cli_step;

/* The ways to the op before and to this one. */
typedef struct cli_way {
    const etch_graph_report *report;
    cli_step *steps, *next;
    size_t depth, next_depth;
    /* steps that both begin with */
    size_t common;
    /* by module, and after them by loop: the first tensor that is declared there */
    size_t *first;
    /* by tensor: the next one of the same place */
    size_t *later;
} cli_way;

/* False: memory is out. To be ended with `cli_way_end`, also then. */
bool cli_way_begin(cli_way *way, const etch_graph_report *report);
void cli_way_end(cli_way *way);
/* Goes to what stands in the module and loop: `steps` and `depth` say how, `common` is what stays. */
void cli_way_to(cli_way *way, size_t module, size_t loop);

/* The inputs and weights that are declared in a module, or in a loop of it, in their order: the first of
 * them, and the one behind `tensor`. ETCH_VIEW_NONE: there are no more. */
size_t cli_first_declared(const cli_way *way, const cli_step *step);
size_t cli_next_declared(const cli_way *way, size_t tensor);
/* Is it an input or a weight that is declared there: in the module, or in a loop of it? */
bool cli_is_declared_at(const etch_graph_report *report, const etch_view_tensor *tensor,
                        const cli_step *step);
static inline bool cli_is_forward(etch_phase phase)
{
    return phase == ETCH_FORWARD;
}

/* ---- graph_print.c ---- */

/* The line that is being printed. */
typedef struct cli_line {
    /* characters that stand in it */
    int column;
    /* nothing is printed, only counted */
    bool measures;
} cli_line;

void cli_put(cli_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_begin_line(cli_line *line, size_t depth);
/* At least two spaces, and up to the column. */
void cli_put_to(cli_line *line, int column);

/* An index, null for NONE; a list of them. */
json_t *cli_json_index(size_t index);
json_t *cli_json_indices(const size_t *indices, size_t count, bool *failed);
/* Adds dims and tensors, or loops and modules, of a graph to an object. */
void cli_json_tensors(json_t *object, const etch_graph_report *report, bool *failed);
void cli_json_modules(json_t *object, const etch_graph_report *report, bool *failed);

/* ---- trees ---- */

/* The JSON trees of views: what text and DOT show is read out of them. NULL: memory is out. */
json_t *cli_graph_tree(const etch_graph_report *report);
json_t *cli_plan_tree(const etch_placement_report *report);
json_t *cli_pipeline_tree(const etch_pipeline_report *report);
json_t *cli_memory_tree(const etch_memory_report *report);
/* Adds to the totals of a placement what people say of their numbers, "1.05 GB", as `--human` does elsewhere.
 * False: memory is out. */
bool cli_plan_tree_say(json_t *tree, const etch_placement_report *report);
/* The tree, or NULL when something is missing in it. */
json_t *cli_tree_end(json_t *root, bool failed);

/* They print rows that were read from a tree. False: memory is out. */
bool cli_print_graph_text(const etch_graph_report *report);
bool cli_print_graph_dot(const etch_graph_report *report);
bool cli_print_plan_text(const etch_placement_report *report);
bool cli_print_plan_dot(const etch_placement_report *report);
void cli_print_pipeline_text(const etch_pipeline_report *report);
/* They read the tree itself. */
void cli_print_memory_text(const json_t *tree);
void cli_print_memory_csv(const json_t *tree);

#endif
