/* Statements about formulas, and answers. The numbers are stable. */
#ifndef ETCH_RELATION_H
#define ETCH_RELATION_H

/* An answer to a question about formulas: never a silent "no" for "cannot tell". */
typedef enum etch_truth { ETCH_NO, ETCH_YES, ETCH_UNKNOWN } etch_truth;

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

#endif
