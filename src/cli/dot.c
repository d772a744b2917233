/* What drawings of graphs for Graphviz have in common: text, a cluster for each module and loop, and clusters
 * around the forward and the backward pass. */
#include "dot.h"

#include <stdio.h>

enum { INDENT = 2 };

void cli_dot_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
}

void cli_dot_indent(size_t depth)
{
    printf("%*s", INDENT * (int)(depth + 2), "");
}

static void open_cluster(const cli_way *way, size_t depth, char section)
{
    const cli_step *at = &way->steps[depth];
    cli_dot_indent(depth);
    printf("subgraph cluster_%c%c%zu", section, at->is_loop ? 'r' : 'm', at->module);
    if (at->loop != ETCH_VIEW_NONE)
        printf("_%zu", at->loop);
    fputs(" { label=\"", stdout);
    if (at->is_loop) {
        const etch_view_loop *loop = &way->report->loops[at->loop];
        fputs("repeat ", stdout);
        cli_dot_text(loop->total);
        fputs(" as ", stdout);
        cli_dot_text(loop->name);
        fputs(loop->iterations ? ", " : "", stdout);
        cli_dot_text(loop->iterations ? loop->iterations : "");
    } else {
        cli_dot_text(way->report->modules[at->module].name);
    }
    fputs("\"\n", stdout);
}

static void close_clusters(size_t from, size_t to)
{
    while (from-- > to) {
        cli_dot_indent(from);
        fputs("}\n", stdout);
    }
}

static void go_to(const cli_dot_drawing *d, const cli_dot_item *item, char section)
{
    const size_t before = d->way->depth;
    cli_way_to(d->way, item->module, item->loop);
    close_clusters(before, d->way->common);
    for (size_t i = d->way->common; i < d->way->depth; i++) {
        open_cluster(d->way, i, section);
        d->begin(d->data, i, section);
    }
}

void cli_dot_pass(const cli_dot_drawing *d, bool forward)
{
    const char section = forward ? 'f' : 'b';
    bool any = false;
    for (size_t i = 0; i < d->count; i++) {
        const cli_dot_item item = d->item(d->data, i);
        if (cli_is_forward(item.phase) != forward || item.passes)
            continue;
        if (!any)
            printf("  subgraph cluster_%c { label=\"%s\"\n", section, forward ? "forward" : "backward");
        any = true;
        go_to(d, &item, section);
        d->draw(d->data, i);
    }
    close_clusters(d->way->depth, 0);
    d->way->depth = 0;
    if (any)
        fputs("  }\n", stdout);
}

void cli_dot_begin(const char *model, const char *plan)
{
    fputs("digraph \"", stdout);
    cli_dot_text(model);
    if (plan) {
        putchar(' ');
        cli_dot_text(plan);
    }
    fputs("\" {\n  rankdir=TB\n  node [shape=box]\n", stdout);
}
