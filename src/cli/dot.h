/* What the drawings of a graph and of a placement for Graphviz share (dot.c). */
#ifndef ETCH_CLI_DOT_H
#define ETCH_CLI_DOT_H

#include "graph_int.h"

/* Text inside of quotes; spaces before a node that stands in so many clusters. */
void cli_dot_text(const char *text);
void cli_dot_indent(size_t depth);

/* An op of a graph, or a step of a placement. */
typedef struct cli_dot_item {
    etch_phase phase;
    size_t module, loop;
    /* it is what it reads, and has no node */
    bool passes;
} cli_dot_item;

/* A drawing, whose items stand one behind the other. */
typedef struct cli_dot_drawing {
    cli_way *way;
    void *data;
    size_t count;
    cli_dot_item (*item)(const void *data, size_t index);
    /* draws the node of an item */
    void (*draw)(void *data, size_t index);
    /* draws what stands at the beginning of the cluster of step `depth` of the way; `section`: f or b */
    void (*begin)(void *data, size_t depth, char section);
} cli_dot_drawing;

/* The head of the file, to which "}" is the end. `plan` may be NULL. */
void cli_dot_begin(const char *model, const char *plan);
/* The items of the forward pass, or of the backward pass, in a cluster of their own. */
void cli_dot_pass(const cli_dot_drawing *drawing, bool forward);

#endif
