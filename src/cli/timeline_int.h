/* Pictures of a simulated step: what the files that write timelines and reports share. */
#ifndef ETCH_CLI_TIMELINE_INT_H
#define ETCH_CLI_TIMELINE_INT_H

#include "cli_int.h"

#include <stdio.h>

/* ---- out_file.c: a file that appears when all of it is there ------------------------------------------- */

typedef struct cli_out_file {
    FILE *stream;
    const char *path;
    /* from malloc; what it is called until then */
    char *hidden;
} cli_out_file;

/* False: it cannot be made, which has been said. */
bool cli_out_begin(cli_out_file *file, const char *path);
/* Gives the file its name if `whole`, else takes it away. What was not said yet is said. */
cli_exit cli_out_end(cli_out_file *file, bool whole);

/* ---- timeline_memory.c --------------------------------------------------------------------------------- */

/* From `begins` on, picoseconds, so much is there: the bytes of a row. */
typedef struct cli_memory_point {
    uint64_t begins;
    const etch_memory_row *row;
} cli_memory_point;

/* The rows of a stage that have a computation in the run of a class, in the order of time. From malloc; NULL
 * when memory is out. */
cli_memory_point *cli_memory_points(const etch_simulation_class *class, const etch_memory_stage *stage,
                                    size_t *count);
/* The stage of the class; NULL: it is not in the report. */
const etch_memory_stage *cli_memory_stage(const etch_memory_report *memory,
                                          const etch_simulation_class *class);

/* ---- timeline.c, report_html.c ------------------------------------------------------------------------- */

enum { CLI_MOST_EVENTS = 1 << 20 };

/* A rank that is drawn, by the run of its class. */
typedef struct cli_drawn {
    uint32_t rank;
    const etch_simulation_class *class;
} cli_drawn;

/* They write the file, or say why they cannot. */
cli_exit cli_write_timeline(const char *path, const etch_simulation *s, const etch_memory_report *memory,
                            const cli_drawn *drawn, size_t count);
cli_exit cli_write_report(const char *path, const etch_simulation *s, const etch_memory_report *memory);
/* Those that the command line asks for. */
cli_exit cli_write_pictures(const cli_arguments *arguments, const etch_simulation *s,
                            const etch_memory_report *memory);
/* Three significant digits, rounded to the nearest: "12.3 GB". */
enum { CLI_BYTES_TEXT = 96, CLI_TIME_TEXT = 48 };
const char *cli_bytes_text(uint64_t bytes, char text[CLI_BYTES_TEXT]);

#endif
