/* Texts and lists: the values of `param kinds text` and `param widths list`, several in one. A text is of
 * letters and signs, a list of numbers. Such a value is held as a variable that is called as it is written,
 * so that it goes wherever a value goes, from configs to manifests. How many there are is a number,
 * `len(kinds)`; each of them is read by `at(kinds, layer)`. */
#ifndef ETCH_LANG_NAMES_SERIES_H
#define ETCH_LANG_NAMES_SERIES_H

#include "lang/names/symbols.h"

/* Those of a text or list, at most. */
enum { ETCH_SERIES_MOST = 100000 };

typedef struct etch_series {
    /* stands for all of them */
    etch_expr value;
    /* of a list, its numbers; NULL: a text */
    const etch_expr *numbers;
    /* of a text */
    const char *letters;
    /* at least 1 */
    uint32_t count;
} etch_series;

/* That which `value` stands for, or NULL. */
const etch_series *etch_series_of(const etch_spec *spec, etch_expr value);
/* The param whose values are texts or lists and whose variable this is, or NULL. */
const etch_param *etch_series_param(const etch_spec *spec, etch_expr var);
/* Declares how many a param has: the variable `len(NAME)`. */
void etch_series_declare(etch_spec *spec, etch_param *param);

/* `at(NAME, ..)`, a call. */
bool etch_is_at(const etch_ast_expr *expr);
/* `len(NAME)`, a call. */
bool etch_is_len(const etch_ast_expr *expr);
/* Is it the name of one of these two functions? */
bool etch_reads_series(const char *function);
/* The param of `at(NAME, ..)` or `len(NAME)`: a text or list. NULL after an error. */
const etch_param *etch_series_named(etch_spec *spec, const etch_ast_expr *call, uint32_t arguments,
                                    const etch_lookup *lookup);

#endif
