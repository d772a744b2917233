/* Parts of a sweep as files: what one of several processes has computed, or one that may go on later.
 *
 *     a header, which says what the sweep is, and which share of its rows this is: lines up to "end"
 *     record CHUNK ROWS UNMET WRITTEN BYTES SUM, and BYTES of what came of these rows; any number of times
 *     done CHUNKS ROWS SUM, once nothing is missing
 *
 * CHUNK numbers consecutive rows of a plan and config; every process numbers all of them, and computes those
 * of its share. A record that is cut short has another sum, and ends what is read.
 *
 *     part.c       header and records, written
 *     part_read.c  the same, read
 *     merge.c      a sweep's output from its parts */
#ifndef ETCH_SESSION_SWEEP_PART_INT_H
#define ETCH_SESSION_SWEEP_PART_INT_H

#include "session/sweep/sweep_int.h"

#define ETCH_PART_MAGIC "etch sweep part 2"
/* Behind the name of a part that misses chunks. */
#define ETCH_PART_UNFINISHED ".part"

/* Rows of a chunk, where the sweep has one process, or several. */
enum { ETCH_PART_ALONE = ETCH_SWEEP_BLOCK, ETCH_PART_SHARED = 256 };

typedef struct etch_part {
    etch_sweep *sweep;
    /* of 1..shards */
    uint32_t shard, shards;
    /* all of a sweep, which becomes its output */
    bool alone;
    /* -1: not open */
    int folder, file;
    /* the file when it is finished, its name in its folder, and the name before */
    const char *path, *name, *unfinished;
    /* what the header says of the sweep, without which share it is */
    const char *head;
    /* chunks of its own that are recorded */
    uint64_t done;
    /* nothing is missing */
    bool finished;
} etch_part;

typedef struct etch_part_record {
    uint64_t chunk, rows, unmet, written, length;
    /* `length` bytes, with a NUL behind; of the arena of the reader */
    char *bytes;
} etch_part_record;

typedef enum etch_part_next { ETCH_PART_RECORD, ETCH_PART_DONE, ETCH_PART_TORN } etch_part_next;

/* A part that is read from its beginning, or records of one. */
typedef struct etch_part_reader {
    int file;
    const char *path;
    /* begins with something else */
    bool is_other;
    /* bytes before what was read last: up to there all is whole */
    uint64_t whole;
    uint32_t shard, shards;
    /* of the header: text, without the line of the share */
    const char *head;
    /* of `done` */
    uint64_t chunks, rows;
    /* where bytes come from instead of the file: sets `bytes`, `at` and `end`. False: there are no more */
    bool (*more)(struct etch_part_reader *reader);
    void *data;
    /* those at hand: at..end of `bytes` */
    const char *bytes;
    size_t at, end;
    char buffer[16384];
} etch_part_reader;

/* ---- part.c -------------------------------------------------------------------------------------------- */

/* Text that stands in one field of a line; NULL has one of its own. */
void etch_part_put(etch_buf *out, const char *text);
#define ETCH_PART_NOTHING "\\-"
/* Of the sweep's request and frames. */
const char *etch_part_head(const etch_sweep *sweep);
/* What came of a block, `kept` the rows that are kept of it, as a record; and the last line of a part. */
void etch_part_put_record(etch_buf *out, const etch_sweep_block *block, const etch_buf *kept);
void etch_part_put_done(etch_buf *out, const etch_sweep *sweep);
/* Adds a record that another process has made. */
etch_status etch_part_add_record(etch_part *part, const etch_part_record *record) ETCH_MUST_CHECK;

/* ---- part_read.c --------------------------------------------------------------------------------------- */

/* What a field says, in place. */
const char *etch_part_text(char *field);
/* Of a line and what follows. */
uint64_t etch_part_sum(const char *line, size_t line_length, const void *bytes, size_t length);
/* Reads the header. False: it is none, or cannot be read: `*why`. */
bool etch_part_open(etch_part_reader *reader, etch_arena *arena, const char **why);
etch_part_next etch_part_read(etch_part_reader *reader, etch_arena *arena, etch_part_record *record);
/* Its rows as text, up to the end of its bytes; NULL: it has none. */
const char *etch_part_rows(const etch_part_record *record);
/* Adds what a record says to what the sweep knows: counts, reasons, rows that are kept. Its rows as text:
 * `*text`. False: it is not what a record of this sweep is. */
bool etch_part_apply(etch_sweep *sweep, etch_part_record *record, const char **text, size_t *length);
#endif
