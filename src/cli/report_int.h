/* The page about a run: what its parts share. All positions are whole numbers, CLI_PAGE_WIDTH across; there
 * is no script in the page and nothing is fetched. */
#ifndef ETCH_CLI_REPORT_INT_H
#define ETCH_CLI_REPORT_INT_H

#include "timeline_int.h"

enum {
    CLI_PAGE_WIDTH = 100000,
    /* colours of the page that charts have in turn: of classes .c0, .c1, .. */
    CLI_PAGE_COLORS = 8,
    /* classes of ranks, and slots of all of them, that are drawn */
    CLI_PAGE_CLASSES = 32,
    CLI_PAGE_SLOTS = 8192
};

/* Text with what HTML would read marked. */
void cli_page_text(FILE *out, const char *text);
/* Picoseconds with three decimals, those behind them left out: "510.664 ms". */
void cli_page_time(uint64_t ps, char text[CLI_TIME_TEXT]);
/* Where a moment of the step is, from 0 to CLI_PAGE_WIDTH. */
uint64_t cli_page_x(uint64_t part, uint64_t whole);
/* "12.3 %" of the whole. */
void cli_page_percent(FILE *out, uint64_t part, uint64_t whole);
/* The moments 0, half and all of the step, below a chart. */
void cli_page_axis(FILE *out, uint64_t step);
void cli_page_key(FILE *out, unsigned color, const char *name);

/* ---- report_charts.c ----------------------------------------------------------------------------------- */

/* They write a section. False: memory is out. */
void cli_page_bars(FILE *out, const etch_simulation *s);
bool cli_page_pipeline(FILE *out, const etch_simulation *s, const etch_memory_report *memory);
bool cli_page_memory(FILE *out, const etch_simulation *s, const etch_memory_report *memory);

/* ---- report_tables.c ----------------------------------------------------------------------------------- */

bool cli_page_work(FILE *out, const etch_simulation *s);

#endif
