/* What the files that write expressions share.
 *
 *     views.c          other ways to write a floor or max: what construction rewrote
 *     recover.c        the summands of an expression, each in the way that needs the fewest symbols
 *     symbols.c        how many symbols a text takes
 *     factor.c         summands put together into products
 *     notation.c       how each notation writes numbers, names, powers and functions
 *     print.c          expressions in these notations
 *     temporaries.c    several expressions as assignments
 *     json.c           the canonical form as JSON
 *
 * Everything handed out lives in scratch memory. */
#ifndef ETCH_SYMBOLIC_TEXT_TEXT_INT_H
#define ETCH_SYMBOLIC_TEXT_TEXT_INT_H

#include "symbolic/symbolic_int.h"

enum { ETCH_SYM_LONGEST_TEXT = 64 << 20 };

/* A summand: coef * mono * the product of its groups. */
typedef struct sym_item {
    int64_t degree;
    /* among items of one degree: the smaller first */
    uint32_t rank;
    sym_coef coef;
    const sym_mono *mono;
    uint32_t group_count;
    struct sym_items *groups;
} sym_item;

/* A sum. */
typedef struct sym_items {
    sym_item *at;
    uint32_t count;
} sym_items;

/* etch_buf_puts for the short texts that expressions are made of. */
static inline void sym_put_text(etch_buf *out, const char *text)
{
    size_t room = out->capacity - out->length, length = 0;
    for (; length < room && text[length]; length++)
        out->text[out->length + length] = text[length];
    if (length == room) {
        etch_buf_puts(out, text);
        return;
    }
    out->length += length;
    out->text[out->length] = '\0';
}

/* ---- what is recovered --------------------------------------------------------------------------------- */

/* What is recovered in a notation, beside what always is. */
typedef enum sym_mods { ETCH_SYM_ALL_MODS, ETCH_SYM_MODS_BY_NUMBERS, ETCH_SYM_NO_MODS } sym_mods;

typedef struct sym_rules {
    sym_mods mods;
    bool brackets;
} sym_rules;

/* How a text is to be. */
typedef struct sym_style {
    etch_form form;
    sym_rules rules;
    /* atoms and sums that have names, which are left as they are; may be NULL */
    const sym_memo *names;
    /* sums and atoms -> their symbols + 1 */
    sym_memo symbols;
} sym_style;

/* ---- views.c ------------------------------------------------------------------------------------------- */

/* Another way to write an atom: it is scale * shown + rest, wherever it has a value. */
typedef struct sym_view {
    sym_atom *shown;
    sym_term scale;
    etch_expr rest;
    /* the sum of the two */
    etch_expr value;
} sym_view;

enum { ETCH_SYM_MAX_VIEWS = 16 };

/* The views of a floor or max that may be worth it in the sum `around`, into `views`; returns how many, at
 * most ETCH_SYM_MAX_VIEWS. `in` are the terms of the sum with the atom. */
uint32_t sym_views_of(etch_sym *sym, const sym_rules *rules, etch_expr around, const uint32_t *in,
                      uint32_t in_count, sym_atom *atom, sym_view *views);
/* Is what a view says of the atom the same expression? A view is not to be used before that is known. */
bool sym_view_holds(etch_sym *sym, const sym_atom *atom, const sym_view *view);

/* ---- recover.c ----------------------------------------------------------------------------------------- */

/* The summands of an expression without atoms 1/(sum), in order of printing. */
sym_items sym_items_of(etch_sym *sym, etch_expr a, sym_style *style);
/* The same without recovering anything; of any expression. */
sym_items sym_terms_in_order(etch_sym *sym, etch_expr a);
/* The order of items in a text, for qsort: by decreasing degree, then by rank. */
int sym_by_degree(const void *a, const void *b);

/* ---- denominator.c ------------------------------------------------------------------------------------- */

/* The least common denominator of all terms, as one term; 1 for atoms 1/(sum). */
sym_term sym_denominator(etch_sym *sym, etch_expr a);
/* a = num/den with den as small as it goes: without denominators inside either. */
sym_fraction sym_over_denominator(etch_sym *sym, etch_expr a);

/* ---- symbols.c ----------------------------------------------------------------------------------------- */

/* How many names, numbers, operators and brackets a plain text of it takes, about, and at most 2^30; of a
 * summand with its sign, 0 where it is 0. */
uint64_t sym_symbols_of_term(etch_sym *sym, sym_style *style, const sym_mono *mono, sym_coef coef);
uint64_t sym_symbols_of_item(etch_sym *sym, sym_style *style, const sym_item *it);
uint64_t sym_symbols_of_items(etch_sym *sym, sym_style *style, sym_items items);
uint64_t sym_symbols_of_atom(etch_sym *sym, sym_style *style, const sym_atom *atom);

/* ---- factor.c ------------------------------------------------------------------------------------------ */

/* The same sum with common factors taken out. */
sym_items sym_factor_items(etch_sym *sym, sym_style *style, sym_items items);
/* The first item times what the others are measured by it. */
sym_items sym_relate_items(etch_sym *sym, sym_style *style, sym_items items);
/* The sum in the form of the style. */
sym_items sym_arrange(etch_sym *sym, sym_style *style, etch_expr a);

/* ---- notation.c ---------------------------------------------------------------------------------------- */

typedef struct sym_call {
    const char *open, *close;
} sym_call;

typedef struct sym_notation {
    /* fraction num over den fraction_end */
    const char *times, *fraction, *over, *fraction_end;
    sym_call bracket;
    /* around sums and products of several factors */
    bool brackets_in_fraction;
    /* around an exponent; open NULL: by products */
    sym_call power;
    const char *number_end;
    /* function for p/q where there is no variable to divide; or NULL */
    const char *rational;
    sym_rules rules;
    /* operator */
    const char *mod;
    /* open NULL: by the operator `//` */
    sym_call floor, ceil;
    sym_call max, min, abs, pow2;
    /* around the left side */
    sym_call at_least_zero;
    /* max and min take two */
    bool two_arguments;
    struct {
        /* before index, low, high, body, and behind */
        const char *open, *low, *high, *body, *close;
        /* body, index, low, high */
        bool body_first;
    } sum;
    const char *undefined;
    void (*name)(const char *name, etch_buf *out);
    /* around a name in an assignment, NULL: it has none */
    const char *assign, *assigned;
    /* of an assignment */
    const char *end;
} sym_notation;

/* NULL for JSON. */
const sym_notation *sym_notation_of(etch_notation notation);
/* The name that an identifier of C or Python stands for, `length` bytes into `out`; returns its length, at
 * most `length`. */
size_t sym_unescape(const char *identifier, size_t length, char *out);

/* ---- print.c ------------------------------------------------------------------------------------------- */

/* What an opaque atom or a sum is called. */
typedef struct sym_name {
    const char *text;
    /* it was written */
    bool used;
    /* it is not to be written now */
    bool hidden;
} sym_name;

typedef struct sym_printer {
    etch_sym *sym;
    const sym_notation *n;
    /* its names: atom or sum -> sym_name */
    sym_style style;
    etch_buf *out;
    /* without names: what stands in functions of others, often in many of them -> its text */
    sym_memo texts;
} sym_printer;

void sym_print_sum(sym_printer *p, etch_expr a);
/* An opaque atom, or the denominator of 1/(sum), without using its own name. */
void sym_print_definition(sym_printer *p, const sym_atom *atom);

/* ---- json.c, parse_json.c ------------------------------------------------------------------------------ */

void sym_print_json(etch_sym *sym, etch_expr a, etch_buf *out);
etch_expr sym_parse_json(etch_sym *sym, const char *text, size_t length, size_t *error_at);

#endif
