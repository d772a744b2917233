/* What the readers of tables of measurements share: lines, and the cells of a line. */
#ifndef ETCH_MACHINE_SHEET_INT_H
#define ETCH_MACHINE_SHEET_INT_H

#include "machine/machine.h"

enum { ETCH_SHEET_COLUMNS = 64 };

/* A piece of the text of the table. */
typedef struct etch_cell {
    const char *text;
    uint32_t length;
} etch_cell;

/* Its first line names the columns; tabs between them, or commas where it has no tab. Lines that begin with
 * #, or are empty, are none. */
typedef struct etch_sheet {
    etch_arena *arena;
    etch_diags *diags;
    const etch_source *source;
    char mark;
    etch_cell names[ETCH_SHEET_COLUMNS];
    etch_cell cells[ETCH_SHEET_COLUMNS];
    uint32_t column_count, cell_count;
    /* the line that is read, and its number from 1 */
    etch_cell line;
    uint32_t number, at;
} etch_sheet;

/* Reads the names of columns. False after a reported error. */
bool etch_sheet_begin(etch_sheet *t, etch_arena *arena, const etch_source *source, etch_diags *diags);
/* The next row that is one; false: there is none. `*fits`: it has as many cells as there are columns, else it
 * is reported. */
bool etch_sheet_next(etch_sheet *t, bool *fits);
bool etch_sheet_has(const etch_sheet *t, const char *name);
bool etch_sheet_has_all(const etch_sheet *t, const char *const *names);
/* The cell of the row in a column; empty where there is no such column. A cell may stand between quotation
 * marks, which are no part of it: "dp=8,tp=8". */
etch_cell etch_sheet_cell(const etch_sheet *t, const char *name);
bool etch_cell_is(etch_cell at, const char *text);
etch_span etch_sheet_span(const etch_sheet *t, etch_cell at);
/* Reports "the column 'us' has ..." at the cell, and is false. */
bool etch_sheet_refuse(const etch_sheet *t, etch_cell at, const char *name, const char *what);
/* A decimal number above 0 with or without an exponent, times 10^power; of `unit`, "microseconds". */
bool etch_sheet_time(const etch_sheet *t, const char *name, int32_t power, const char *unit, double *out);
/* Is the row not for fitting? There is a column `split`, and it does not say calibration. */
bool etch_sheet_given(const etch_sheet *t);

#endif
