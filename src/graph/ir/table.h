/* The op table as other modules see it: rows, and the keywords of calls. Part of what other modules see of
 * graph; what a row says is in row.h. */
#ifndef ETCH_GRAPH_IR_TABLE_H
#define ETCH_GRAPH_IR_TABLE_H

#include <stddef.h>

#include "base/base.h"

typedef struct etch_row etch_row;

/* The rows of one family of ops. */
typedef struct etch_rows {
    const etch_row *at;
    uint32_t count;
} etch_rows;

/* Rows that a graph is made of, by family. The passes look rows up here and nowhere else, so that a table
 * with other rows makes another compiler. */
typedef struct etch_table {
    const etch_rows *const *families;
    /* of families */
    uint32_t count;
} etch_table;

/* The table of the product. */
const etch_table *etch_table_builtin(void);

/* Keywords of a call beside the operands: `over = X`. Optional operands are given by their names,
 * too (`sink = s`). */
typedef enum etch_keyword {
    /* dims that the op works along */
    ETCH_KW_OVER = 1 << 0,
    /* dims that the scores of an attention sum */
    ETCH_KW_DOT = 1 << 1,
    /* the dim that replaces `over` */
    ETCH_KW_TO = 1 << 2,
    /* true or false */
    ETCH_KW_CAUSAL = 1 << 3,
    /* a number as the last positional argument: scale(x, 2), dropout(x, 1/10) */
    ETCH_KW_NUMBER = 1 << 4,
    /* how many keys a query sees at most, itself included; 0: all */
    ETCH_KW_WINDOW = 1 << 5,
    /* bound of the scores: cap tanh(x/cap); 0: none */
    ETCH_KW_CAP = 1 << 6,
    /* pairs of query and key per sequence, where only the user knows (packing) */
    ETCH_KW_PAIRS = 1 << 7,
    /* dims of the window that slides along `over` */
    ETCH_KW_KERNEL = 1 << 8,
    /* steps of that window along every dim of `over` */
    ETCH_KW_STRIDE = 1 << 9,
    /* elements of that window along every dim of `over`, where no tensor has it */
    ETCH_KW_SIZE = 1 << 10,
    /* dims of the state that a scan carries on */
    ETCH_KW_STATE = 1 << 11,
    /* positions that a scan computes at once */
    ETCH_KW_CHUNK = 1 << 12,
    /* the dim of an expert's tokens */
    ETCH_KW_SLOTS = 1 << 13,
    /* groups of experts that routing chooses among first; 0: none */
    ETCH_KW_GROUPS = 1 << 14,
    /* how many of those groups it keeps */
    ETCH_KW_KEEP = 1 << 15,
    /* how many groups of ranks a token is sent to at most; 0: any */
    ETCH_KW_LIMIT = 1 << 16,
    /* of the result; also as the last positional argument: cast(x, f8) */
    ETCH_KW_DTYPE = 1 << 17,
    /* dims that statistics are kept apart for: all others are `over` */
    ETCH_KW_KEPT = 1 << 18,
    /* true or false: statistics of all ranks */
    ETCH_KW_SYNC = 1 << 19,
    /* a dim as the only positional argument: iota(S) */
    ETCH_KW_DIM = 1 << 20
} etch_keyword;

typedef enum etch_keyword_kind {
    /* a dim, or several: over = (A, B) */
    ETCH_KIND_DIMS,
    /* true or false */
    ETCH_KIND_FLAG,
    /* an expression over params */
    ETCH_KIND_NUMBER,
    /* the name of a dtype */
    ETCH_KIND_DTYPE
} etch_keyword_kind;

/* The values that a number of a call may have. */
typedef enum etch_number_range {
    ETCH_ANY_NUMBER,
    /* a whole number, 1 or more */
    ETCH_COUNT,
    /* a whole number, 0 or more */
    ETCH_COUNT_OR_NONE,
    /* above 0 */
    ETCH_POSITIVE,
    /* 0 or more */
    ETCH_NOT_NEGATIVE,
    /* from 0 to 1 */
    ETCH_SHARE
} etch_number_range;

typedef struct etch_keyword_info {
    /* NULL: positional */
    const char *name;
    etch_keyword bit;
    etch_keyword_kind kind;
    /* offset in etch_attrs of the list of dims, the bool, the expression or the dtype */
    size_t field;
    /* of a number; that of a positional one is the row's */
    etch_number_range range;
} etch_keyword_info;

/* Keywords by index, for reading calls and listing them; NULL past the end. */
const etch_keyword_info *etch_keyword_at(uint32_t index);

/* Its name, or what a positional one is: "a number". */
const char *etch_keyword_text(const etch_keyword_info *info);

/* The row with this name that a spec may call, or NULL. */
const etch_row *etch_row_called(const etch_table *table, const char *name);
/* The row of this name, also one that only operators and derivations make. */
const etch_row *etch_row_named(const etch_table *table, const char *name);
const char *etch_row_name(const etch_row *row);
/* Keywords that a call takes, and those that it cannot do without: bits of etch_keyword. */
unsigned etch_row_takes(const etch_row *row);
/* Does the operand at `slot` hold indices? These are integers. */
bool etch_row_is_index(const etch_row *row, uint32_t slot);
/* The values that the positional number of a call may have. */
etch_number_range etch_row_number(const etch_row *row);
unsigned etch_row_needs(const etch_row *row);
/* Row by index for listings (help, "did you mean"); NULL past the end. Rows that a spec may not call are
 * listed too. */
const etch_row *etch_row_at(const etch_table *table, uint32_t index);
bool etch_row_is_called(const etch_row *row);
/* The optimizer that a train block calls so, or NULL; what it is when it keeps a momentum, NULL when it never
 * does. */
const etch_row *etch_optimizer_called(const etch_table *table, const char *name);
const etch_row *etch_optimizer_with_momentum(const etch_table *table, const etch_row *optimizer);
const etch_row *etch_optimizer_with_8_bits(const etch_table *table, const etch_row *optimizer);
/* Do its states have 8 bits, whatever the dtype of their class? */
bool etch_optimizer_has_8_bits(const etch_row *optimizer);
/* Is it of matrices alone, so that other weights need another one? */
bool etch_optimizer_is_of_matrices(const etch_row *optimizer);
/* One line for `help ops`: operands, FLOP per element of what, meaning. */
void etch_row_describe(const etch_row *row, etch_buf *out);

#endif
