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

/* "stage 1, 4 ranks, first 4". */
void cli_page_class_name(FILE *out, const etch_simulation_class *c);
/* Says it where there are more classes than are drawn. */
void cli_page_left_out(FILE *out, const etch_simulation *s);
/* The beginning of a chart, CLI_PAGE_WIDTH across; `kind`: its class, `says`: what it shows. */
void cli_page_chart(FILE *out, unsigned height, const char *kind, const char *says);

/* ---- report_charts.c ----------------------------------------------------------------------------------- */

/* They write a section. False: memory is out. */
void cli_page_bars(FILE *out, const etch_simulation *s);
bool cli_page_pipeline(FILE *out, const etch_simulation *s, const etch_memory_report *memory);
bool cli_page_memory(FILE *out, const etch_simulation *s, const etch_memory_report *memory);

/* ---- report_tables.c ----------------------------------------------------------------------------------- */

/* What nodes that are alike add up to. */
typedef struct cli_page_sum {
    /* `what`: the module, or the axes */
    const char *op, *what, *phase;
    /* the first of its class */
    uint32_t rank;
    uint64_t count, bytes, flop, time;
} cli_page_sum;

/* Of one node. */
cli_page_sum cli_page_sum_of(const etch_simulation *s, const etch_simulation_class *class, uint32_t node);
/* Adds up what is alike, the longest first; how many are left. */
size_t cli_page_add_up(cli_page_sum *all, size_t count);
/* The first ones as a table; `ranks`: says of which rank they are. */
void cli_page_sums(FILE *out, const etch_simulation *s, const cli_page_sum *all, size_t count,
                   const char *what, bool ranks);
/* The class that computes the longest. */
const etch_simulation_class *cli_page_busiest(const etch_simulation *s);
/* The sums over nodes of a class that compute, or that communicate. From malloc; NULL: memory is out. */
cli_page_sum *cli_page_sums_of(const etch_simulation *s, const etch_simulation_class *class, bool computes,
                               size_t *count);
bool cli_page_work(FILE *out, const etch_simulation *s);

/* ---- report_path.c, report_roofline.c ------------------------------------------------------------------ */

bool cli_page_path(FILE *out, const etch_simulation *s);
void cli_page_free(FILE *out, const etch_simulation *s);
bool cli_page_roofline(FILE *out, const etch_simulation *s);

#endif
