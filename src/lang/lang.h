/* The door of lang: the only room that knows syntax. Reads a spec and what it imports, and turns models,
 * train blocks and plans into what graph works on; evaluates expressions of the language over params,
 * dims, mesh axes and quantities. */
#ifndef ETCH_LANG_H
#define ETCH_LANG_H

#include "graph/graph.h"

#define ETCH_LANGUAGE_MAJOR 1 /* `etch 1` */

typedef struct etch_spec etch_spec;

/* Where a model is being built by a program: the graph, and the names of the spec. */
typedef struct etch_site etch_site;
etch_graph *etch_site_graph(etch_site *site);
etch_names *etch_site_names(etch_site *site);
/* The dim that the spec calls `name`, or its prime. NULL after an error. */
etch_dim *etch_site_dim(etch_site *site, const char *name);
/* An expression over params and sizes of dims. NULL after an error. */
etch_expr etch_site_value(etch_site *site, const char *text);

/* A model that a function builds. It may be called several times. */
typedef struct etch_native {
    const char *name;
    void (*build)(void *data, etch_site *site);
    void *data;
} etch_native;

/* What is to be read. */
typedef struct etch_spec_source {
    const char *path;
    const char *text; /* NULL: that of the file at `path`; else `path` is its name in messages */
    const etch_native *natives;
    size_t native_count;
} etch_spec_source;

/* Reads a spec and its imports, declares params and facts in `sym`. Every mistake found goes to `diags`. NULL after an
 * error of the spec; `*status` is ETCH_EIO when `path` itself cannot be read as a file (a diagnostic says why),
 * ETCH_EINPUT otherwise. */
etch_spec *etch_spec_load(etch_arena *arena, etch_sym *sym, etch_diags *diags, const etch_spec_source *source,
                          etch_status *status);

/* Paths and texts of the files of the spec, the spec itself first, then imports in order of first import:
 * what its hash is made of. */
uint32_t etch_spec_files(const etch_spec *spec, const etch_source ***files);

typedef struct etch_param {
    const char *name;
    etch_expr var;
    etch_expr value; /* default, or NULL */
    etch_span span;
} etch_param;

/* Params in order of declaration (imports first). */
uint32_t etch_spec_params(const etch_spec *spec, const etch_param **params);
/* Names, in order of declaration, for listings and "did you mean". */
typedef enum etch_listing {
    ETCH_LIST_MODELS,
    ETCH_LIST_CONFIGS,
    ETCH_LIST_PLANS,
    ETCH_LIST_RUNS,
    ETCH_LIST_MODULES
} etch_listing;
uint32_t etch_spec_list(const etch_spec *spec, etch_listing what, const char *const **names);

/* ---- bindings ------------------------------------------------------------------------------------------ */

typedef struct etch_setting {
    etch_expr var; /* of a param or a mesh axis */
    const char *name;
    etch_expr value;  /* a constant, or an expression over params */
    const char *from; /* "run", "set", "config", "default" */
    etch_span span;   /* where the value is written */
} etch_setting;

/* A value of `sets` that has no effect, because the run binds the param itself. */
typedef struct etch_hidden {
    const char *name, *run;
    etch_span set, bound; /* where both are written */
} etch_hidden;

typedef struct etch_settings {
    const etch_setting *at;
    uint32_t count;
    const etch_hidden *hidden;
    uint32_t hidden_count;
} etch_settings;

/* Values by precedence: what the run itself binds (the train or infer block called `run`, or the one that is
 * taken when no run is named), then `sets` (texts "NAME=EXPR", several may be joined by commas), then the
 * config (`config` or the spec's `use config`), then, with `defaults`, the params' defaults and 1 for axes of
 * `plan` (may be NULL) without a size. One setting per name, in order of declaration of the params, then
 * axes. Errors: unknown config (with the list), unknown name (did you mean; an axis that the plan lacks
 * says so), a value that is no number, a param below its bound. False after an error. */
bool etch_spec_bind(etch_spec *spec, const char *run, const char *config, const char *const *sets,
                    uint32_t set_count, bool defaults, const etch_plan *plan, etch_settings *out);
/* The config in force: `config`, or the one that `use config` names, or NULL. */
const char *etch_spec_config(const etch_spec *spec, const char *config);
/* Substitutes settings (the value of one may speak of others) until nothing changes. */
etch_expr etch_settings_apply(etch_sym *sym, const etch_settings *settings, etch_expr expr);

/* ---- models and plans ---------------------------------------------------------------------------------- */

typedef struct etch_model {
    etch_graph *graph;
    etch_train train; /* meaningful when `trains`; when `serves`, the microbatches */
    bool trains;      /* its run is a train block */
    bool serves;      /* its run is an infer block: only what the run asks for is left of the graph */
    const char *name;
    const char *run;    /* the block's name; NULL when it has none */
    etch_span run_span; /* of the block's name; nowhere without a block */
} etch_model;

/* Elaborates the model that `run` (the name of a train or infer block), the run that is taken when none is
 * named, or the spec's only model names. `settings` decide `if` and other structure; where they do not, defaults do (a remark says so when
 * a param has neither). `precision` (may be NULL) changes the dtypes of the spec. NULL after an error. */
etch_model *etch_spec_elaborate(etch_spec *spec, const char *run, const etch_settings *settings,
                                const etch_precision *precision);

/* The plan called `name`; with NULL, the one that `use plan` names or the only one. NULL: error reported
 * when `needed`, else there is none. Declares its mesh axes as variables. */
const etch_plan *etch_spec_plan(etch_spec *spec, const char *name, bool needed, etch_span asked);

/* May quantities of one rank be asked? False after an error: a line of the plan that has no meaning yet would
 * have an effect, because its mesh axis has no value, or one larger than 1. */
bool etch_spec_pending_ready(etch_spec *spec, const etch_plan *plan, const etch_settings *settings);

/* ---- expressions --------------------------------------------------------------------------------------- */

/* A quantity in an expression, as written: comm(step, op = all_reduce, axis = (dp,tp), of = block). */
/* What a quantity says of its counting convention: `count = megatron`, or an item as `causal = full`. */
typedef struct etch_count_word {
    const char *item; /* NULL: a preset */
    const char *value;
    etch_span span; /* of the value */
} etch_count_word;

typedef struct etch_quantity {
    const char *name;
    const char *first; /* phase, model, module or class; NULL when there is none */
    const char *of, *op, *run, *plan, *stage, *part; /* NULL when not given; selectors with dots as written */
    const char *const *axes;                         /* of `axis =` */
    const etch_count_word *counts;                   /* a preset first */
    uint32_t axis_count, count_words;
    etch_span span, first_span, of_span, op_span, axis_span, plan_span, stage_span, part_span;
} etch_quantity;

/* What a quantity is. NULL after having reported why not. */
typedef etch_expr (*etch_quantity_fn)(void *data, const etch_quantity *quantity);
/* Is there a quantity of this name? (`did you mean` uses the names.) Set by the caller of the functions
 * below. */
typedef struct etch_quantities {
    etch_quantity_fn value;
    void *data;
    const char *const *names; /* ends with NULL */
} etch_quantities;

/* The value of an expression over params, dims (their size over the whole job), the axes of `plan` (may be
 * NULL) and quantities. NULL after an error. */
etch_expr etch_spec_value(etch_spec *spec, const char *text, const char *source_name, const etch_plan *plan,
                          const etch_quantities *quantities);

/* A statement over the same: "A == B", "d | n", "integer(x)". `left` is NULL after an error. */
etch_claim etch_spec_claim(etch_spec *spec, const char *text, const char *source_name, const etch_plan *plan,
                           const etch_quantities *quantities);

/* While quantities are asked for: the plans that the expression names, "a, b"; NULL unless there are several. An axis that
 * one of them has may have a value with all of them. */
const char *etch_spec_named_plans(etch_spec *spec);

/* A text that is one quantity call and nothing else: for tables. False: it is something else (no error is
 * reported unless it does not parse). */
bool etch_spec_quantity(etch_spec *spec, const char *text, const char *source_name, etch_quantity *out);

/* The `check` lines of the spec itself (not of imports), `assume` lines of all files. Claims that could
 * not be evaluated have been reported and have left == NULL. */
uint32_t etch_spec_checks(etch_spec *spec, const etch_quantities *quantities, const etch_claim **claims);
uint32_t etch_spec_assumptions(etch_spec *spec, const etch_claim **claims);
/* Does a claim hold under the facts? `witness` (may be NULL) is filled where one value of each variable refutes it. */
etch_truth etch_claim_holds(etch_spec *spec, const etch_claim *claim, etch_witness *witness);

#endif
