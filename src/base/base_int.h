/* Declarations that the files of base share about sources and diagnostics. */
#ifndef ETCH_BASE_INT_H
#define ETCH_BASE_INT_H

#include "base/base.h"

enum { ETCH_KEPT_DIAGS = 20 }; /* of each severity */

typedef struct etch_source_entry {
    etch_source source;
    /* offset of each line's first byte within the source */
    uint32_t *lines;
    uint32_t line_count;
} etch_source_entry;

struct etch_diags {
    etch_arena *arena;
    /* by rising base */
    ETCH_VEC(etch_source_entry *) sources;
    /* of all of them */
    uint32_t source_bytes;
    /* `end` is where the next kept diagnostic is linked */
    etch_diag *first, **end;
    /* by severity, also those that were not kept */
    uint32_t counts[ETCH_SEVERITY_COUNT];
    /* those among them that had been said before */
    uint32_t repeats[ETCH_SEVERITY_COUNT];
    /* of all that is recorded; NULL: none */
    const char *note;
    /* handed out when no more are kept */
    etch_diag spare;
};

/* A place in a source: the entry, the line (from 0) and the offset of the byte within the source. */
typedef struct etch_source_point {
    const etch_source_entry *entry;
    uint32_t line, offset;
} etch_source_point;

/* Finds byte `at` of the common line of offsets; `entry` is NULL for nowhere. */
etch_source_point etch_source_place(const etch_diags *diags, uint32_t at);
/* The first byte of a line and its end without the line break, as offsets within the source. */
etch_span etch_source_line(const etch_source_entry *entry, uint32_t line);
/* Characters of UTF-8 in `length` bytes. */
uint32_t etch_count_characters(const char *text, size_t length);

/* Removes from `place` the hidden folders of runs that were killed, and says so. What holds the only copy of
 * an earlier run stays, and is named. */
void etch_leftovers_clear(const etch_target *target, const char *place);

#endif
