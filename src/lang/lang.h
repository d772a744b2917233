/* The header of lang: the only module that knows syntax. Reads a spec and what it imports, and turns models,
 * train blocks and plans into what graph works on; evaluates expressions of the language over params,
 * dims, mesh axes and quantities. */
#ifndef ETCH_LANG_H
#define ETCH_LANG_H

#include "graph/graph.h"
#include "lang/machine/machine.h"
#include "lang/model/model.h"
#include "lang/names/names.h"
#include "lang/plan/plan.h"
#include "lang/syntax/shelf.h"

/* An expression over params and sizes of dims. NULL after an error. */
etch_expr etch_site_value(etch_site *site, const char *text);

/* The files to be read. */
typedef struct etch_spec_source {
    const char *path;
    /* NULL: that of the file at `path`; else `path` is its name in messages */
    const char *text;
    const etch_native *natives;
    size_t native_count;
    /* may be NULL */
    etch_shelf *shelf;
    /* where imports are looked for that are not beside their file, a colon between folders; may be NULL */
    const char *folders;
    /* numbers of machines: "PART.NAME = NUMBER UNIT" */
    const char *const *machine_sets;
    size_t machine_set_count;
    /* options of plans: "plan.NAME = VALUE" */
    const char *const *plan_sets;
    size_t plan_set_count;
} etch_spec_source;

/* Reads a spec and its imports, declares params and facts in `sym`. Every mistake found goes to `diags`. NULL
 * after an error of the spec; `*status` is ETCH_EIO when `path` itself cannot be read as a file (a diagnostic
 * says why), ETCH_EINPUT otherwise. */
etch_spec *etch_spec_load(etch_arena *arena, etch_sym *sym, etch_diags *diags, const etch_spec_source *source,
                          etch_status *status);

/* Paths and texts of the files of the spec, the spec itself first, then imports in order of first import:
 * what its hash is made of. */
uint32_t etch_spec_files(const etch_spec *spec, const etch_source ***files);
/* Params in order of declaration (imports first). */
uint32_t etch_spec_params(const etch_spec *spec, const etch_param **params);

/* ---- bindings ------------------------------------------------------------------------------------------ */

/* Which params, and axes of the plan, take their defaults where nothing else gives them a value. */
typedef enum etch_defaults {
    ETCH_DEFAULTS_NONE,
    /* params those of the spec, axes without a size 1 */
    ETCH_DEFAULTS_ALL,
    /* params alone, and where a config is in force: what it leaves out */
    ETCH_DEFAULTS_OF_CONFIG
} etch_defaults;

/* Values by precedence: what the run itself binds (the train or infer block called `run`, or the one that is
 * taken when no run is named), then `sets` (texts "NAME=EXPR", several may be joined by commas; "NAME=NAME"
 * leaves a name without a value), then the config (`config` or the spec's `use config`), then `defaults`;
 * `plan` may be NULL. One setting per name, in order of declaration of the params, then axes. Errors: unknown
 * config (with the list), unknown name (did you mean; an axis that the plan lacks says so), a value that is
 * no number, a param below its bound. `tokens`, in sets and configs, gives the one name of which a step is
 * made and that has no other value its own. False after an error. */
bool etch_spec_bind(etch_spec *spec, const char *run, const char *config, const char *const *sets,
                    uint32_t set_count, etch_defaults defaults, const etch_plan *plan, etch_settings *out);

/* The config in force: `config`, or the one that `use config` names, or NULL. */
const char *etch_spec_config(const etch_spec *spec, const char *config);

/* ---- expressions --------------------------------------------------------------------------------------- */

/* A quantity in an expression, as written: comm(step, op = all_reduce, axis = (dp,tp), of = block). */
/* The counting convention of a quantity: `count = megatron`, or an item as `causal = full`. */
typedef struct etch_count_word {
    /* NULL: a preset */
    const char *item;
    const char *value;
    /* of the value */
    etch_span span;
} etch_count_word;

/* A number that a quantity is given by a name: `tokens = 10^12`. */
typedef struct etch_quantity_number {
    const char *name;
    /* over params and dims */
    etch_expr value;
    etch_span span;
} etch_quantity_number;

typedef struct etch_quantity {
    const char *name;
    /* phase, model, module or class; NULL when there is none */
    const char *first;
    /* NULL when not given; selectors with dots as written */
    const char *of, *op, *run, *plan, *stage, *part;
    /* of `axis =` */
    const char *const *axes;
    /* a preset first */
    const etch_count_word *counts;
    uint32_t axis_count, count_words;
    const etch_quantity_number *numbers;
    uint32_t number_count;
    /* `buffers = true` */
    bool buffers;
    /* that of the last one lies nowhere where it is not given */
    etch_span span, first_span, of_span, op_span, axis_span, plan_span, stage_span, part_span, buffers_span;
} etch_quantity;

/* What a quantity is. NULL after having reported why not. */
typedef etch_expr (*etch_quantity_fn)(void *data, const etch_quantity *quantity);

/* Is there a quantity of this name? (`did you mean` uses the names.) Set by the caller of the functions
 * below. */
typedef struct etch_quantities {
    etch_quantity_fn value;
    void *data;
    /* ends with NULL */
    const char *const *names;
    /* of each, a call for example: "flops(step)" */
    const char *const *examples;
} etch_quantities;

/* The value of an expression over params, dims (their size over the whole job), the axes of `plan` (may be
 * NULL) and quantities. NULL after an error. */
etch_expr etch_spec_value(etch_spec *spec, const char *text, const char *source_name, const etch_plan *plan,
                          const etch_quantities *quantities);
/* A statement over the same: "A == B", "d | n", "integer(x)". `left` is NULL after an error. */
etch_claim etch_spec_claim(etch_spec *spec, const char *text, const char *source_name, const etch_plan *plan,
                           const etch_quantities *quantities);
/* A text that is one quantity call and nothing else: for tables. False: it is something else (no error is
 * reported unless it does not parse). */
bool etch_spec_quantity(etch_spec *spec, const char *text, const char *source_name, etch_quantity *out);
/* The `check` lines of the spec itself (not of imports), `assume` lines of all files. Claims that could
 * not be evaluated have been reported and have left == NULL. */
uint32_t etch_spec_checks(etch_spec *spec, const etch_quantities *quantities, const etch_claim **claims);
uint32_t etch_spec_assumptions(etch_spec *spec, const etch_claim **claims);

/* ---- sweeps -------------------------------------------------------------------------------------------- */

/* A piece of a list of values: one number, or several. */
typedef enum etch_values_kind {
    /* one */
    ETCH_VALUES_NUMBER,
    /* first, last, step: both ends included */
    ETCH_VALUES_RANGE,
    /* base, from, to: base^from, ..., base^to */
    ETCH_VALUES_POWERS,
    /* all of one number, rising */
    ETCH_VALUES_DIVISORS
} etch_values_kind;

enum { ETCH_VALUES_ARGUMENTS = 3 };

typedef struct etch_values_piece {
    etch_values_kind kind;
    /* over params, and what the mesh is made of */
    etch_expr at[ETCH_VALUES_ARGUMENTS];
    uint32_t count;
    etch_span span;
} etch_values_piece;

/* NAME = VALUES of a sweep. */
typedef struct etch_values_list {
    const char *name;
    /* a param, or a variable of the mesh; NULL: an axis that this plan does not have, and others do */
    etch_expr var;
    /* any number above 0, or an integer from `least` on */
    bool real;
    int64_t least;
    const etch_values_piece *pieces;
    uint32_t count;
    etch_span span;
} etch_values_list;

/* Reports an axis without a name or values: false. */
bool etch_spec_report_empty_axis(etch_spec *spec, const char *text);
/* Reads "NAME = 1, 2, range(4, 16, 4)", with or without [ ] around the values, with a plan (may be NULL).
 * False after an error. */
bool etch_spec_values_list(etch_spec *spec, const char *text, const char *source_name, const etch_plan *plan,
                           etch_values_list *out);
/* Does the spec itself see a param or a dim of this name? */
bool etch_spec_names(const etch_spec *spec, const char *name);
/* What values the param or the variable of a mesh may have; false: it is neither. */
bool etch_spec_range(const etch_spec *spec, etch_expr var, bool *real, int64_t *least);

/* The text with numbers that have a unit, as "80 GB", written out: "(80*1*10^9)". */
const char *etch_units_expand(etch_arena *arena, const char *text);

/* A block `sweep NAME { .. }`: its lines as they are written, each value as text of an option. */
typedef ETCH_VEC(const char *) etch_sweep_names;

typedef struct etch_sweep_block_text {
    const char *name;
    etch_span span;
    /* "tp = [1, 2, 4]" */
    ETCH_VEC(const char *) over;
    /* names; none: not said */
    etch_sweep_names plans, configs, runs;
    ETCH_VEC(const char *) where;
    ETCH_VEC(const char *) select;
    ETCH_VEC(const char *) pareto;
    /* NULL: none; `top`: NULL, or how many */
    const char *best, *top;
} etch_sweep_block_text;

/* The block called `name` of the spec itself. NULL after an error. */
const etch_sweep_block_text *etch_spec_sweep(etch_spec *spec, const char *name);

#endif
