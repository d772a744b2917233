/* Declarations that the files that elaborate models share: the environment of a module body. */
#ifndef ETCH_LANG_MODEL_MODEL_INT_H
#define ETCH_LANG_MODEL_MODEL_INT_H

#include "lang/model/blocks.h"

enum {
    ETCH_CALL_DEPTH = 64,
    /* and weights, and bodies of loops */
    ETCH_MODEL_OPS = 50000,
    ETCH_MODEL_STATEMENTS = 400000
};

/* What a name inside a module stands for. */
typedef enum etch_bound_kind {
    ETCH_BOUND_TENSOR,
    ETCH_BOUND_DIM,
    ETCH_BOUND_NUMBER,
    /* row: an op that was passed as an argument */
    ETCH_BOUND_FUNCTION,
    /* module */
    ETCH_BOUND_MODULE,
    /* `none`: an optional operand that was left out */
    ETCH_BOUND_NOTHING,
    /* of a loop */
    ETCH_BOUND_INDEX,
    /* instance, module: one set of weights of the module */
    ETCH_BOUND_INSTANCE
} etch_bound_kind;

typedef struct etch_bound_name {
    const char *name;
    etch_bound_kind kind;
    /* NULL after an error: whatever uses it stays silent */
    etch_tensor *tensor;
    etch_dim *dim;
    etch_expr number;
    const etch_row *row;
    const etch_symbol *module;
    const struct etch_instance *instance;
    /* of the loop whose index it is */
    struct etch_turn *turn;
    /* where it was declared, or assigned first; nowhere in a model that a program builds */
    etch_span span;
} etch_bound_name;

typedef ETCH_VEC(etch_bound_name) etch_bound_names;
typedef ETCH_VEC(const char *) etch_name_list;

typedef struct etch_dims {
    etch_dim **at;
    uint32_t count;
    /* declared at all */
    bool known;
    /* a dim of it was not found, which has been reported */
    bool broken;
} etch_dims;

/* A dim and its prime. */
typedef struct etch_prime {
    etch_dim *base, *prime;
} etch_prime;

/* What is said of the first iterations of loops, and how many of those it selects there have been. */
typedef struct etch_limit {
    etch_recomputed what;
    etch_expr passed;
} etch_limit;

/* The elaboration of one model. */
typedef struct etch_builder {
    etch_spec *spec;
    etch_graph *graph;
    const etch_settings *settings;
    const struct etch_inside *inside;
    /* by symbol id; made on first use */
    etch_dim **global_dims;
    ETCH_VEC(etch_prime) primes;
    /* of module calls */
    uint32_t depth;
    /* of loops */
    uint32_t bodies;
    /* that were elaborated */
    uint32_t statements;
    /* that are open, those of callers included */
    uint32_t loops;
    /* in the order of their statements, each time that one is read */
    ETCH_VEC(const struct etch_instance *) instances;
    /* modules that are being called, the outermost first */
    ETCH_VEC(const etch_symbol *) calls;
    /* tensors that were cast or declared to be wider than their class: that has been remarked on */
    ETCH_VEC(const etch_tensor *) told;
    /* of which iterations only the first are recomputed; `limits_plan` has the scopes that they stand in */
    ETCH_VEC(etch_limit) limits;
    const etch_plan *limits_plan;
    /* a limit was reached: nothing more is elaborated */
    bool stopped;
    /* it is a module that no model calls, read by itself */
    bool alone;
    /* there were when elaboration began */
    uint32_t errors;
} etch_builder;

/* The body of one module call or model. */
typedef struct etch_env {
    etch_builder *builder;
    /* of the module's file */
    const etch_namespace *home;
    /* later ones hide earlier ones */
    etch_bound_names names;
    /* those before are of the loops around, and of the module */
    uint32_t loop_names;
    /* what `..` stands for */
    etch_dims rest;
    /* of the signature: declares dims of names in the body */
    const etch_ast_tensors *results;
    /* It is part of the call of an instance, whose weights these are; NULL: of none. */
    struct etch_shared *shared;
    /* which part, a number of `shared`, and where the call of the instance stands */
    uint32_t shared_place;
    const etch_region *shared_call;
} etch_env;

/* What calls and loops come back to: expressions and statements inside of them. */
typedef struct etch_inside {
    etch_tensor *(*tensor)(etch_env *env, const etch_ast_expr *expr, const etch_dims *want, bool *fresh);
    void (*body)(etch_env *env, const etch_ast_body *body);
    bool (*results)(etch_env *env, const etch_ast_item *item, etch_tensor **out);
    /* one.c: the value of at(..) or len(..) */
    etch_expr (*one)(etch_env *env, const etch_ast_expr *call);
} etch_inside;

/* ---- names.c: names and dims ---- */

etch_bound_name *etch_env_find(const etch_env *env, const char *name);
void etch_env_bind(etch_env *env, etch_bound_name bound);
/* The same for a name that is declared (a parameter, an argument, a weight, a dim, the index of a loop): it
 * must be a new one. `span`: where. */
void etch_env_declare(etch_env *env, etch_bound_name bound, etch_span span);
const char *etch_bound_kind_name(etch_bound_kind kind); /* "tensor", "dim", ... */
/* The dim called `name`: local, a prime, or global. NULL after an error. */
etch_dim *etch_env_dim(etch_env *env, etch_ast_name name);
/* The graph's dim of a global one, made on first use. NULL after an error. */
etch_dim *etch_builder_dim(etch_builder *builder, const etch_symbol *symbol);
/* The dims of [X, .., Y]. */
etch_dims etch_env_shape(etch_env *env, const etch_ast_axes *axes);
/* The dims declared for a name in the module's signature. */
etch_dims etch_env_result(etch_env *env, const char *name);
/* Numbers of the body: module parameters, params, sizes of dims. */
etch_lookup etch_env_lookup(etch_env *env);
/* A value that decides structure: it must be a number under settings, or defaults. NULL after an error. */
etch_expr etch_env_number(etch_env *env, const etch_ast_expr *expr);
/* Reports the index of a loop where its value would be needed. */
void etch_report_index(etch_env *env, etch_span span, const etch_bound_name *bound);
/* Adds to a message about a name of the body what it hides of the file, if anything, and where both are. */
void etch_note_hidden(const etch_env *env, etch_diag *diag, const etch_bound_name *bound);
/* Something came to nothing. That has been reported; else it is a bug, and ends as one: nothing is left out
 * without a word. */
void etch_builder_lost(const etch_builder *builder);
/* Reports syntax that has no meaning yet. */
void etch_later(etch_spec *spec, etch_span span, const char *what);

/* ---- branch.c: branches ---- */

/* Decides a branch by facts, settings, defaults. ETCH_UNKNOWN after an error. */
etch_truth etch_env_decide(etch_env *env, const etch_ast_expr *test);
/* Adds to what is known at the builder's place that the test, which has been decided, holds or does not. */
void etch_env_know(etch_env *env, const etch_ast_expr *test, bool holds);

/* ---- one.c: one of a text or list ---- */

/* `at(kinds, layer)`: the one of a text or list at a position. */
typedef struct etch_one {
    const etch_ast_expr *call;
    const struct etch_series *series;
    /* which of them, from 0 on: a number, or the index of a loop or its remainder */
    const etch_ast_expr *position;
} etch_one;

/* What the call reads, under settings or defaults. False after an error. */
bool etch_env_one(etch_env *env, const etch_ast_expr *call, etch_one *out);
/* A test that one side of is such a call: `at(kinds, layer) == "M"`, `at(widths, layer) in [64, 128]`. */
bool etch_is_test_of_one(const etch_ast_expr *test);
/* Its call, read. False after an error. */
bool etch_env_tested_one(etch_env *env, const etch_ast_expr *test, etch_one *out);
/* By position: does the test hold there? NULL after an error. */
const bool *etch_env_test_each(etch_env *env, const etch_ast_expr *test, const etch_one *one);
/* Which of its values the position is, a number. False after an error. */
bool etch_env_place(etch_env *env, const etch_one *one, uint32_t *at);
/* `at(widths, ..)`: the number, for a position that is an index that of the class of iterations in work.
 * `len(kinds)`: how many there are, a number where a value or a default says which. NULL after an error. */
etch_expr etch_env_one_value(etch_env *env, const etch_ast_expr *call);

/* ---- loop.c: loops ---- */

/* The elaboration of one loop. */
typedef struct etch_turn etch_turn;

/* Names of the loop-carried values. */
typedef ETCH_VEC(const char *) etch_carried;

/* Does the test of a branch speak of the index of a loop? Then this decides it, for the class of iterations
 * in work. ETCH_UNKNOWN after an error. */
bool etch_env_has_index(const etch_env *env, const etch_ast_expr *test);
etch_truth etch_env_decide_index(etch_env *env, const etch_ast_expr *test);
/* The same for a test by position (`one`, of whose text or list each position says whether it holds). */
etch_truth etch_env_decide_position(etch_env *env, const etch_one *one, const bool *holds);
/* Elaborates the bodies of the loop that has been begun, ends it, and binds what leaves it. */
void etch_env_iterate(etch_env *env, const etch_ast_stmt *stmt, etch_expr count, const etch_carried *carried);

/* ---- limits.c: loops that are recomputed in part ---- */

/* The iterations of a loop before `end`, as a line of a plan or train block says. */
typedef struct etch_loop_limit {
    etch_expr end;
    etch_span span;
} etch_loop_limit;
typedef ETCH_VEC(etch_loop_limit) etch_loop_limits;

/* Reads which iterations the plan, or else the train block, recomputes. */
void etch_env_limits(etch_builder *b, const etch_symbol *block, const etch_plan *plan);
/* The limits of the loop that has been begun. */
void etch_env_loop_limits(const etch_builder *b, etch_loop *loop, etch_loop_limits *out);

/* ---- expr.c: expressions ---- */

/* The tensor that a statement's right side gives; `want`: declared dims of the result. `*fresh`: it was made
 * here, so that the statement may name it. NULL after an error. */
etch_tensor *etch_env_tensor(etch_env *env, const etch_ast_expr *expr, const etch_dims *want, bool *fresh);

/* ---- parameter.c: parameters of modules ---- */

/* How many arguments of a call come by position. */
uint32_t etch_positional_count(const etch_ast_expr *call);
/* The value of a module parameter, evaluated in `from`: the caller, or the module itself for a default. */
etch_bound_name etch_parameter_value(etch_env *from, const etch_ast_expr *expr);
/* Gives a parameter of a module its default. False after an error. */
bool etch_env_default(etch_env *callee, const etch_ast_def *def);
/* Adds to `out` the parameters that the call gives, evaluated in `caller`. False after an error: one that
 * `out` has already, or that the module does not have. */
bool etch_parameters_given(etch_env *caller, const etch_ast_item *item, const etch_ast_expr *call,
                           etch_bound_names *out);
/* Declares all parameters in the callee: those that are given, defaults of the others. False after an
 * error. */
bool etch_parameters_bind(etch_env *callee, const etch_ast_item *item, const etch_ast_expr *call,
                          const etch_bound_names *given);
/* Adds to a message what may be said by name to `called`. */
void etch_help_arguments(etch_spec *spec, etch_diag *diag, const char *called, const etch_name_list *known);

/* ---- instance.c: one set of weights, several calls ---- */

/* `instance enc = encoder(..)`: a module with parameters, and the weights that its calls read. */
typedef struct etch_instance etch_instance;

/* Declares what the statement says. */
void etch_env_instance(etch_env *env, const etch_ast_stmt *stmt);
/* Parameters that the statement gives. */
etch_bound_names etch_instance_given(const etch_instance *instance);
/* Says in the callee's environment whose weights it declares: those of `instance`; where that is NULL, those
 * of the instance in whose call the caller is, if any. */
void etch_instance_enter(const etch_env *caller, etch_env *callee, const etch_instance *instance,
                         const etch_ast_expr *call);
/* The weight that `declared` declares: a new one, or that of the first call. `*known`: it is such a one. NULL
 * after an error. */
etch_tensor *etch_env_weight(etch_env *env, const etch_ast_tensor *declared, etch_dtype dtype, bool frozen,
                             bool *known);
/* The dim that `def` declares, or, in a call of an instance, that of an earlier call if it is as large. NULL
 * without a size. */
etch_dim *etch_env_new_dim(etch_env *env, const etch_ast_def *def, etch_expr size);
/* Warns of statements none of whose instances is called. */
void etch_warn_uncalled(const etch_builder *builder);

/* ---- call.c: calls ---- */

/* Adds what to write for a word of other libraries (`matmul`, `x.view`), if `name` is one. */
void etch_help_word(etch_diag *diag, const char *name);

/* A call of a module or an op. `results`: how many the statement takes; they are stored into `out`. `want`:
 * the declared dims of each; NULL: none. False after an error. */
bool etch_env_call(etch_env *env, const etch_ast_expr *call, const etch_dims *want, etch_tensor **out,
                   uint32_t results);

/* ---- spoken.c: tensors that plans speak of ---- */

/* "module.tensor", of all plans of a spec: pins, scopes, stages. */
typedef ETCH_VEC(const char *) etch_spoken;
etch_spoken etch_spoken_of(const etch_spec *spec);

/* ---- homonyms.c: dims of one name ---- */

/* Says of mistakes about dims, found since then, where dims of one name are declared. */
void etch_note_homonyms(const etch_builder *builder, const etch_diags_mark *since);

/* ---- elaborate.c: models ---- */

/* What is the same in all elaborations. `errors`: there were when this one began. */
etch_builder etch_builder_new(etch_spec *spec, const etch_settings *settings, const etch_symbol *symbol,
                              const etch_dtypes *dtypes, uint32_t errors);
/* Declares the inputs of a model, or of a module that is read by itself. */
void etch_env_inputs(etch_env *env, const etch_ast_item *item);

/* ---- native.c: models that programs build ---- */

void etch_native_build(etch_env *env, const etch_native *native);

/* ---- signature.c: what calls look like ---- */

/* "mlp(x[B,S,H]) -> y[B,S,H]"; "gelu(x)" */
const char *etch_module_signature(etch_spec *spec, const etch_ast_item *item);
const char *etch_row_signature(etch_spec *spec, const etch_row *row);
/* The way from a module that is being called to the call of it: "a -> b -> a". NULL: it is not being
 * called. */
const char *etch_calls_itself(const etch_builder *b, const etch_symbol *module);

/* ---- model.c: statements ---- */

void etch_env_body(etch_env *env, const etch_ast_body *body);
/* The dtype that a tensor is declared with; `usual` when it says none, or after an error. */
etch_dtype etch_declared_dtype(etch_spec *spec, const etch_ast_tensor *tensor, etch_dtype usual);
/* Checks the results of a body against the signature and collects them. */
bool etch_env_results(etch_env *env, const etch_ast_item *item, etch_tensor **out);

#endif
