/* What graphs and placements are printed with: lines that know their column. */
#include "graph_int.h"

#include <stdarg.h>
#include <stdio.h>

enum { INDENT = 2 };

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
