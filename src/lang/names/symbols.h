/* Symbols of the files of a spec, the spec itself, and values of expressions: what elaboration works with.
 *
 * names.c finds names, facts.c what the spec declares and knows; value.c evaluates numbers, given.c what
 * params are given; settings.c puts values into them; run.c chooses train and infer blocks. */
#ifndef ETCH_LANG_NAMES_SYMBOLS_H
#define ETCH_LANG_NAMES_SYMBOLS_H

#include "lang/names/names.h"
#include "lang/syntax/syntax.h"

/* ---- names of a file ----------------------------------------------------------------------------------- */

typedef enum etch_symbol_kind {
    /* def, param */
    ETCH_SYMBOL_PARAM,
    /* def */
    ETCH_SYMBOL_DIM,
    /* item */
    ETCH_SYMBOL_MODULE,
    /* item */
    ETCH_SYMBOL_MODEL,
    /* item */
    ETCH_SYMBOL_CONFIG,
    /* item; unnamed blocks are called "train" */
    ETCH_SYMBOL_TRAIN,
    /* item */
    ETCH_SYMBOL_INFER,
    /* item */
    ETCH_SYMBOL_PLAN,
    /* item */
    ETCH_SYMBOL_SWEEP,
    /* item */
    ETCH_SYMBOL_DEVICE,
    /* item */
    ETCH_SYMBOL_CLUSTER
} etch_symbol_kind;

typedef struct etch_symbol {
    etch_symbol_kind kind;
    /* over all files, in order of declaration */
    uint32_t id;
    /* interned */
    const char *name;
    const etch_ast_item *item;
    const etch_ast_def *def;
    /* the file that declares it: its own names resolve there */
    const struct etch_namespace *home;
    /* ETCH_SYMBOL_PARAM */
    const etch_param *param;
} etch_symbol;

/* What a file, or else what it imports, says of a class of tensors: `dtype act = bf16`. */
typedef struct etch_dtype_line {
    bool given;
    etch_dtype dtype;
    /* elements that share a scale; 0: there are no scales */
    uint32_t block;
    etch_span span;
} etch_dtype_line;

/* The names that one file sees: its own and what it imports. */
typedef struct etch_namespace {
    const etch_ast *ast;
    /* by order of declaration, imports first */
    ETCH_VEC(const etch_symbol *) symbols;
    /* of each: "x.B" after `import .. as x` */
    ETCH_VEC(const char *) names;
    etch_dtype_line dtypes[ETCH_DTYPE_CLASSES];
    /* the symbols by name: names are interned, so the address is the name */
    etch_map by_name;
} etch_namespace;

/* The symbol `name` (interned) that the file sees, or NULL. */
const etch_symbol *etch_namespace_find(const etch_namespace *space, const char *name);
const char *etch_symbol_kind_name(etch_symbol_kind kind); /* "param", "dim", ... */

typedef enum etch_param_type {
    ETCH_PARAM_INTEGER,
    /* any number above 0 */
    ETCH_PARAM_REAL,
    /* series.h */
    ETCH_PARAM_TEXT,
    ETCH_PARAM_LIST
} etch_param_type;

/* What values a param may have. */
typedef struct etch_range {
    etch_param_type type;
    /* of an integer */
    int64_t least;
} etch_range;

typedef ETCH_VEC(etch_expr) etch_divisors;

/* A model that a program builds, by its interned name. */
typedef struct etch_native_model {
    const char *name;
    etch_native native;
} etch_native_model;

struct etch_spec {
    etch_arena *arena;
    etch_sym *sym;
    etch_diags *diags;
    etch_names *names;
    etch_ast_context context;
    /* the spec itself is the last */
    etch_ast_files files;
    /* by file */
    ETCH_VEC(etch_namespace *) spaces;
    /* of the spec itself */
    etch_namespace *main;
    /* all, by id */
    ETCH_VEC(const etch_symbol *) symbols;
    ETCH_VEC(etch_param) params;
    /* by param */
    etch_range *ranges;
    /* texts and lists that have been read */
    ETCH_VEC(const struct etch_series *) series;
    /* by symbol id: models and modules whose body was read; NULL: none was */
    bool *read;
    /* by symbol id, as far as dim_states says that they are known */
    etch_expr *dim_sizes;
    uint8_t *dim_states;
    uint32_t dim_depth;
    /* while a claim is read: what it divides by */
    etch_divisors *divisors;
    ETCH_VEC(etch_claim) assumptions;
    ETCH_VEC(etch_native_model) natives;
    etch_dtypes dtypes;
    /* NULL without a `use` line */
    const char *use_config, *use_plan;
    /* built when first asked for */
    ETCH_VEC(etch_plan *) plans;
    /* options that stand in place of those of plans, each once */
    etch_ast_defs plan_sets;
    /* by the expression that is being read: `plan = NAME` */
    ETCH_VEC(const char *) named_plans;
    /* the plan that is being built, when it comes from an imported file; else NULL */
    etch_plan *shared_plan;
    /* those with errors, which have been reported */
    ETCH_VEC(const etch_symbol *) broken_plans;
    /* by symbol id; NULL for what is none */
    struct etch_device **devices;
    struct etch_cluster **clusters;
};

/* The body of the model or module is being read. */
void etch_symbol_read(etch_spec *spec, const etch_symbol *symbol);
/* A piece of text as it stands in its source. */
const char *etch_written(etch_spec *spec, etch_span span);
/* The only symbol of a kind that the spec itself declares or, when it declares none, imports. `*count`:
 * how many there are; NULL unless 1. */
const etch_symbol *etch_only_symbol(const etch_spec *spec, etch_symbol_kind kind, uint32_t *count);
/* "a, b, c": what the spec calls them; "none". */
const char *etch_listing_text(etch_spec *spec, etch_listing what);
/* Adds "did you mean ..?" when one of the names is near. */
void etch_suggest_name(etch_diag *diag, const char *text, const char *const *names, uint32_t count);
/* Adds where an option of that name stands: in plans, train blocks, or a line of its own. False: nowhere. */
bool etch_help_place_of_option(etch_diag *diag, const char *option);
/* "a, b, c" */
const char *etch_names_listed(etch_arena *arena, const char *const *names, uint32_t count);
/* Where a dim was to be named and a param of a file was: adds the dims of its size, `dim H = hidden`. */
void etch_help_dims_of(etch_spec *spec, etch_diag *diag, const char *param);
/* Reports an unknown name, with the nearest of the names that the file sees (and of `more`, which may be
 * empty). Never NULL; the result takes helps at once. */
etch_diag *etch_unknown_name(etch_spec *spec, const etch_namespace *space, const char *what,
                             etch_ast_name name, const char *const *more, uint32_t more_count);

/* ---- steps of loading, in this order ------------------------------------------------------------------- */

/* The declarations of all files of a spec. Each plan is placed where a spec is checked. */
enum { ETCH_SPEC_NAMES = 100000, ETCH_SPEC_PLANS = 500, ETCH_SPEC_ASSUMPTIONS = 1000 };
/* Fills spaces and symbols. Nothing, after a reported error, when there are too many. */
void etch_names_collect(etch_spec *spec);
/* Declares the variables of params. */
void etch_params_declare(etch_spec *spec);
/* Gives the assumptions of all files to the symbolic core. */
void etch_facts_collect(etch_spec *spec);
/* Sizes of dims, defaults of params. */
void etch_params_evaluate(etch_spec *spec);
/* The dtypes that the spec itself ends with. */
void etch_dtypes_collect(etch_spec *spec);
/* A `dtype` line of a plan, added to what its lines say. */
void etch_precision_read(etch_spec *spec, const etch_ast_defs *defs, etch_precision *precision);

/* ---- values -------------------------------------------------------------------------------------------- */

/* How names and calls of an expression are looked up. Both return NULL after having reported why; `call`
 * may be NULL: only functions of the language (max min abs floor ceil ceildiv floordiv mod pow2 integer
 * len) are known then. */
typedef struct etch_lookup {
    etch_expr (*name)(void *data, const etch_ast_expr *expr);
    /* Sets `*known` when the name is one that it answers for; unknown names are reported by the
     * evaluation. */
    etch_expr (*call)(void *data, const etch_ast_expr *expr, bool *known);
    void *data;
} etch_lookup;

/* Names of the functions of the language; ends with NULL. */
extern const char *const etch_value_functions[];
bool etch_is_value_function(const char *name);
/* The exact value of an expression. NULL after an error. */
etch_expr etch_value_of(etch_spec *spec, const etch_ast_expr *expr, const etch_lookup *lookup);
/* The same of what a param is given: for one that is a text or a list, what stands for that. */
etch_expr etch_param_value(etch_spec *spec, const etch_param *param, const etch_ast_expr *expr,
                           const etch_lookup *lookup);
/* The same where `true` and `false` are no numbers: a size, or how many there are. */
etch_expr etch_number_of(etch_spec *spec, const etch_ast_expr *expr, const etch_lookup *lookup);
/* Is every argument of the call that has a name given once? Reports one that is not, with `code`. */
bool etch_args_are_distinct(etch_spec *spec, const etch_ast_expr *call, etch_code code);
/* Is it `left in [..]`? */
bool etch_is_membership(const etch_ast_expr *expr);
/* What the operator of an ETCH_AST_COMPARE says; of a membership that a product is 0. */
etch_relation etch_relation_of(char op);
/* b RELATION a, told as what holds between a and b. */
etch_relation etch_mirrored(etch_relation relation);
/* A predicate: a comparison, or an expression (ETCH_REL_TRUE: holds when it is not 0; right is 0). left ==
 * NULL after an error. */
etch_claim etch_claim_of(etch_spec *spec, const etch_ast_expr *expr, const etch_lookup *lookup);
/* Does the file see something called `name`, or `name` as the prime of a dim? */
bool etch_namespace_knows(etch_spec *spec, const etch_namespace *space, const char *name);
/* Params, and dims by their size, as the file sees them. */
etch_lookup etch_global_lookup(etch_spec *spec, const etch_namespace *space);
/* The same for one name; `more` are further names for "did you mean". */
etch_expr etch_global_value(etch_spec *spec, const etch_namespace *space, const etch_ast_expr *expr,
                            const char *const *more, uint32_t more_count);
/* The size of a global dim, evaluated where it is declared; a dim whose size needs itself is an error.
 * NULL after an error. */
etch_expr etch_dim_size(etch_spec *spec, const etch_symbol *symbol);

/* ---- runs: train and infer blocks ---------------------------------------------------------------------- */

/* The block called `run`; without a name the only train block or, when there is none, the only infer block
 * among the candidates. NULL when there is none, or after an error. */
const etch_symbol *etch_run_symbol(etch_spec *spec, const char *run, etch_span asked);
/* The same without a word when it is not clear. */
const etch_symbol *etch_run_in_force(const etch_spec *spec, const char *run);
/* The model that a block names; the only model when it names none. NULL after an error. */
const etch_symbol *etch_run_model(etch_spec *spec, const etch_symbol *run);
/* The blocks to choose from when none is named: the spec's own; without any, and without models of its own,
 * those of imports whose model the spec sees. */
uint32_t etch_run_candidates(const etch_spec *spec, const etch_symbol *const **list);
/* The line of a block that begins with `name`, or NULL. */
const etch_ast_def *etch_run_option(const etch_symbol *run, const char *name);
/* Does a line of the block that is no option bind a param for this run alone, as in
 * `infer decode { seq = 1 }`? */
bool etch_run_names_param(const etch_symbol *run, const etch_ast_def *def);
/* False, after an error, when an earlier line of the block begins with the same name. */
bool etch_run_says_once(etch_spec *spec, const etch_symbol *run, uint32_t index);

/* ---- recomputation, of train blocks and plans ---------------------------------------------------------- */

/* What a `recompute` option of a train block or a plan says, whose numbers `lookup` knows. False after an
 * error. */
bool etch_recompute_of(etch_spec *spec, const etch_ast_def *def, const etch_lookup *lookup,
                       etch_recompute *out);

#endif
