/* Statements about formulas, and answers. The numbers are stable. */
#ifndef ETCH_RELATION_H
#define ETCH_RELATION_H

#include "etch/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An answer to a question about formulas: never a silent "no" for "cannot tell". */
typedef enum etch_truth { ETCH_NO, ETCH_YES, ETCH_UNKNOWN } etch_truth;
/* Of a statement: "refuted", "proved", "unknown"; NULL for other numbers. */
ETCH_API const char *etch_truth_name(etch_truth truth);

typedef enum etch_relation {
    ETCH_REL_EQ,
    ETCH_REL_NE,
    ETCH_REL_LE,
    ETCH_REL_GE,
    ETCH_REL_LT,
    ETCH_REL_GT,
    /* left divides right: right/left is an integer */
    ETCH_REL_DIVIDES,
    /* left is not 0 */
    ETCH_REL_TRUE
} etch_relation;

#ifdef __cplusplus
}
#endif

#endif
