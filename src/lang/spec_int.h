/* Declarations that the files beside this header share. */
#ifndef ETCH_LANG_SPEC_INT_H
#define ETCH_LANG_SPEC_INT_H

#include "lang/lang.h"
#include "lang/syntax/syntax.h"

/* Defaults that need themselves; configs that bind twice, or what is nowhere declared. */
void etch_bindings_check(etch_spec *spec);

/* The variable that a value may be given to by this name. False after an error, or where it is an axis that
 * the plan (may be NULL) does not have and others do: `*absent`. */
bool etch_spec_settable(etch_spec *spec, const etch_plan *plan, etch_ast_name name, etch_expr *var,
                        bool *absent);

/* `tokens = VALUE`: what is given of a step as a whole. */
typedef struct etch_token_goal {
    /* as asked; NULL: the spec's choice */
    const char *run;
    etch_expr value;
    etch_span span;
    /* the other values: those that somebody gave, and these with the defaults in force */
    etch_settings given, all;
} etch_token_goal;

/* What makes a step of the run's model as large as the goal. */
typedef struct etch_token_answer {
    /* a param or axis; NULL: the values do so as they are, or no run is in force */
    etch_expr var, value;
    /* in which defaults were needed; NULL: none was */
    etch_expr needed;
} etch_token_answer;

/* The one name without a value whose value makes the tokens of a step as many as the goal says: exactly.
 * False after an error: there is no such value, or more than one name has none. */
bool etch_tokens_solve(etch_spec *spec, const etch_token_goal *goal, etch_token_answer *out);

#endif
