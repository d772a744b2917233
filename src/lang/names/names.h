/* The names of a spec: params, their settings, lists of names. Part of what other modules see of lang. */
#ifndef ETCH_LANG_NAMES_NAMES_H
#define ETCH_LANG_NAMES_NAMES_H

#include "graph/graph.h"

typedef struct etch_spec etch_spec;
/* Where a model is being built by a program: the graph, and the names of the spec. */
typedef struct etch_site etch_site;

/* A model that a function builds. It may be called several times. */
typedef struct etch_native {
    const char *name;
    void (*build)(void *data, etch_site *site);
    void *data;
} etch_native;

typedef struct etch_param {
    const char *name;
    etch_expr var;
    /* default, or NULL */
    etch_expr value;
    /* of a text or list: how many it has; else NULL */
    etch_expr length;
    etch_span span;
} etch_param;

/* Names, in order of declaration, for listings and "did you mean". */
typedef enum etch_listing {
    ETCH_LIST_MODELS,
    ETCH_LIST_CONFIGS,
    ETCH_LIST_PLANS,
    ETCH_LIST_RUNS,
    ETCH_LIST_MODULES
} etch_listing;

uint32_t etch_spec_list(const etch_spec *spec, etch_listing what, const char *const **names);

/* ---- settings ------------------------------------------------------------------------------------------ */

typedef struct etch_setting {
    /* of a param or a mesh axis */
    etch_expr var;
    const char *name;
    /* a constant, or an expression over params */
    etch_expr value;
    etch_given_by from;
    /* where the value is written */
    etch_span span;
    /* as written: it may speak of others that have values */
    etch_expr written;
    /* a text or list: no number */
    bool several;
    /* how many the text or list before it has: no value that anyone gives */
    bool derived;
} etch_setting;

/* A value of `sets` that has no effect, because the run binds the param itself. */
typedef struct etch_hidden {
    const char *name, *run;
    /* where both are written */
    etch_span set, bound;
} etch_hidden;

typedef struct etch_settings {
    const etch_setting *at;
    uint32_t count;
    const etch_hidden *hidden;
    uint32_t hidden_count;
    /* Where a config leaves out params, which take their defaults: by setting, was it needed? Set by
     * etch_settings_apply. NULL otherwise. */
    bool *needed;
    /* of that config */
    etch_span config_span;
} etch_settings;

/* Notes which settings the expression needs: those of what it speaks of, and of what their values do. */
void etch_settings_need(etch_sym *sym, const etch_settings *settings, etch_expr expr);
/* Substitutes settings (the value of one may speak of others) until nothing changes. */
etch_expr etch_settings_apply(etch_sym *sym, const etch_settings *settings, etch_expr expr);

/* ---- claims -------------------------------------------------------------------------------------------- */

/* Does a claim hold under the facts? `witness` (may be NULL) is filled where one value of each variable
 * refutes it. */
etch_truth etch_claim_holds(etch_spec *spec, const etch_claim *claim, etch_witness *witness);

#endif
