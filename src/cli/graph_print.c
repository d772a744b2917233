/* What graphs and placements are printed with: lines that know their column, and the clusters of Graphviz. */
#include "graph_int.h"

#include <stdarg.h>
#include <stdio.h>

enum { INDENT = 2 };

/* ---- lines --------------------------------------------------------------------------------------------- */

void cli_put(cli_line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line->column += line->measures ? vsnprintf(NULL, 0, format, args) : vprintf(format, args);
    va_end(args);
}

void cli_begin_line(cli_line *line, size_t depth)
{
    line->column = 0;
    cli_put(line, "%*s", (int)depth * INDENT, "");
}

void cli_put_to(cli_line *line, int column)
{
    cli_put(line, "%*s", column - line->column > 2 ? column - line->column : 2, "");
}

/* ---- Graphviz ------------------------------------------------------------------------------------------ */

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

void cli_dot_open(const cli_way *way, size_t depth, char section)
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

void cli_dot_close(size_t from, size_t to)
{
    while (from-- > to) {
        cli_dot_indent(from);
        fputs("}\n", stdout);
    }
}
