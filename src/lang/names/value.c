/* Numbers: exact values of expressions, predicates, sizes of dims. */
#include "lang/names/series.h"

#include <string.h>

enum { ETCH_DIM_DEPTH = 200 };
enum { DIM_NEW, DIM_OPEN, DIM_DONE };

/* ---- functions of the language ------------------------------------------------------------------------- */

enum { ANY_COUNT = 1000 };

typedef struct function {
    const char *name;
    /* arguments */
    uint32_t least, most;
    etch_expr (*one)(etch_sym *sym, etch_expr a);
    /* of more: from the left */
    etch_expr (*two)(etch_sym *sym, etch_expr a, etch_expr b);
    /* by the second */
    bool divides;
} function;

static etch_expr ceil_div(etch_sym *sym, etch_expr a, etch_expr b)
{
    return etch_ceil(sym, etch_div(sym, a, b));
}

/* 1 where `a` is an integer, else 0. */
static etch_expr is_integer(etch_sym *sym, etch_expr a)
{
    etch_expr gap = etch_sub(sym, etch_ceil(sym, a), etch_floor(sym, a));
    return etch_sub(sym, etch_int(sym, 1), gap);
}

static const function functions[] = {
    {"max", 1, ANY_COUNT, NULL, etch_max, false},   {"min", 1, ANY_COUNT, NULL, etch_min, false},
    {"abs", 1, 1, etch_abs, NULL, false},           {"floor", 1, 1, etch_floor, NULL, false},
    {"ceil", 1, 1, etch_ceil, NULL, false},         {"ceildiv", 2, 2, NULL, ceil_div, true},
    {"floordiv", 2, 2, NULL, etch_floor_div, true}, {"mod", 2, 2, NULL, etch_mod, true},
    {"pow2", 1, 1, etch_pow2, NULL, false},         {"integer", 1, 1, is_integer, NULL, false},
};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

const char *const etch_value_functions[] = {"max",      "min", "abs",  "floor",   "ceil", "ceildiv",
                                            "floordiv", "mod", "pow2", "integer", "len",  NULL};

static const function *find_function(const char *name)
{
    for (size_t i = 0; i < FUNCTION_COUNT; i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

bool etch_is_value_function(const char *name)
{
    return find_function(name) || etch_reads_series(name);
}

/* ---- expressions --------------------------------------------------------------------------------------- */

/* Operations are undefined for one reason only: a divisor is zero. */
static etch_expr defined(etch_spec *spec, const etch_ast_expr *expr, etch_expr value)
{
    if (!value)
        etch_error(spec->diags, ETCH_E_DIVISION_BY_ZERO, expr->span, "'%s' divides by zero",
                   etch_written(spec, expr->span));
    return value;
}

/* What a claim divides by: where that is 0 the claim says nothing. */
static void note_divisor(etch_spec *spec, etch_expr divisor)
{
    etch_divisors *seen = spec->divisors;
    if (!seen || etch_is_constant(divisor))
        return;
    for (uint32_t i = 0; i < seen->count; i++)
        if (seen->at[i] == divisor)
            return;
    ETCH_PUSH(spec->arena, seen, divisor);
}

static etch_expr power(etch_spec *spec, const etch_ast_expr *expr, etch_expr base, etch_expr exponent)
{
    int64_t number;
    if (etch_to_i64(exponent, &number) && number < 0)
        note_divisor(spec, base);
    if (etch_to_i64(exponent, &number))
        return defined(spec, expr, etch_pow(spec->sym, base, number));
    etch_error(spec->diags, ETCH_E_EXPONENT, expr->right->span, "an exponent is a whole number, not '%s'",
               etch_written(spec, expr->right->span));
    return NULL;
}

static etch_expr binary(etch_spec *spec, const etch_ast_expr *expr, const etch_lookup *lookup)
{
    etch_sym *sym = spec->sym;
    etch_expr a = etch_value_of(spec, expr->left, lookup);
    etch_expr b = etch_value_of(spec, expr->right, lookup);
    if (!a || !b)
        return NULL;
    if (strchr("/f%", expr->op))
        note_divisor(spec, b);
    switch (expr->op) {
    case '+':
        return etch_add(sym, a, b);
    case '-':
        return etch_sub(sym, a, b);
    case '*':
        return etch_mul(sym, a, b);
    case '/':
        return defined(spec, expr, etch_div(sym, a, b));
    case 'f':
        return defined(spec, expr, etch_floor_div(sym, a, b));
    case '%':
        return defined(spec, expr, etch_mod(sym, a, b));
    default:
        return power(spec, expr, a, b);
    }
}

static bool check_arguments(etch_spec *spec, const etch_ast_expr *call, const function *f)
{
    for (uint32_t i = 0; i < call->args.count; i++) {
        etch_ast_name name = call->args.at[i].name;
        if (name.text) {
            etch_error(spec->diags, ETCH_E_FUNCTION_ARGUMENTS, name.span, "%s has no argument '%s'", f->name,
                       name.text);
            return false;
        }
    }
    if (call->args.count >= f->least && call->args.count <= f->most)
        return true;
    etch_error(spec->diags, ETCH_E_FUNCTION_ARGUMENTS, call->span, "%s takes %s%u argument%s, not %u",
               f->name, f->most == ANY_COUNT ? "at least " : "", f->least, f->least == 1 ? "" : "s",
               call->args.count);
    return false;
}

static etch_expr apply(etch_spec *spec, const etch_ast_expr *call, const function *f,
                       const etch_lookup *lookup)
{
    if (!check_arguments(spec, call, f))
        return NULL;
    etch_expr value = etch_value_of(spec, call->args.at[0].value, lookup);
    bool failed = !value;
    for (uint32_t i = 1; i < call->args.count; i++) {
        etch_expr next = etch_value_of(spec, call->args.at[i].value, lookup);
        failed = failed || !next;
        if (!failed && f->divides)
            note_divisor(spec, next);
        value = failed ? NULL : f->two(spec->sym, value, next);
        failed = failed || !defined(spec, call, value);
    }
    if (failed || !f->one)
        return value;
    return f->one(spec->sym, value);
}

static etch_expr evaluate_call(etch_spec *spec, const etch_ast_expr *call, const etch_lookup *lookup)
{
    bool known = false;
    etch_expr value = lookup->call ? lookup->call(lookup->data, call, &known) : NULL;
    if (known)
        return value;
    const function *f = find_function(call->name.text);
    if (f)
        return apply(spec, call, f, lookup);
    if (etch_is_len(call)) {
        const etch_param *param = etch_series_named(spec, call, 1, lookup);
        return param ? param->length : NULL;
    }
    if (etch_is_at(call)) {
        etch_diag *diag =
            etch_error(spec->diags, ETCH_E_SERIES, call->span,
                       "at(..) is read in modules and models, where it is known which layer is meant");
        etch_help(diag, "how many there are is len(..)");
        return NULL;
    }
    etch_diag *diag = etch_error(spec->diags, ETCH_E_UNKNOWN_FUNCTION, call->name.span,
                                 "'%s' is no function of numbers", call->name.text);
    etch_suggest_name(diag, call->name.text, etch_value_functions,
                      sizeof etch_value_functions / sizeof *etch_value_functions - 1);
    return NULL;
}

static etch_expr not_a_number(etch_spec *spec, const etch_ast_expr *expr, const char *what)
{
    etch_error(spec->diags, ETCH_E_NOT_A_NUMBER, expr->span, "%s stands where a number is needed", what);
    return NULL;
}

static etch_expr number_named(etch_spec *spec, const etch_ast_expr *expr, const etch_lookup *lookup)
{
    etch_expr value = lookup->name(lookup->data, expr);
    const etch_param *series = value ? etch_series_param(spec, value) : NULL;
    if (!series)
        return value;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_NOT_A_NUMBER, expr->span,
                                 "'%s' stands for several, where a number is needed", expr->name.text);
    etch_note(diag, series->span, "it is declared here");
    etch_help(diag, "at(%s, layer) is one of them, len(%s) how many there are", expr->name.text,
              expr->name.text);
    return NULL;
}

etch_expr etch_value_of(etch_spec *spec, const etch_ast_expr *expr, const etch_lookup *lookup)
{
    switch (expr->kind) {
    case ETCH_AST_BROKEN:
        return NULL;
    case ETCH_AST_INTEGER:
    case ETCH_AST_REAL:
        return etch_number(spec->sym, expr->name.text, strlen(expr->name.text));
    case ETCH_AST_TRUTH:
        return etch_int(spec->sym, expr->truth);
    case ETCH_AST_NAME:
        return number_named(spec, expr, lookup);
    case ETCH_AST_CALL:
        return evaluate_call(spec, expr, lookup);
    case ETCH_AST_NEGATE:
        return etch_neg(spec->sym, etch_value_of(spec, expr->left, lookup));
    case ETCH_AST_BINARY:
        return binary(spec, expr, lookup);
    case ETCH_AST_COMPARE: {
        etch_diag *diag = etch_error(spec->diags, ETCH_E_NOT_A_VALUE, expr->span,
                                     "a comparison stands where a value is needed");
        etch_help(diag, "claims are written in the spec: check %s", etch_written(spec, expr->span));
        return NULL;
    }
    case ETCH_AST_STRING:
        return not_a_number(spec, expr, "a text");
    case ETCH_AST_RENAME:
        return not_a_number(spec, expr, "a tensor");
    case ETCH_AST_TUPLE:
    case ETCH_AST_LIST:
        break;
    }
    return not_a_number(spec, expr, "a list");
}

etch_expr etch_number_of(etch_spec *spec, const etch_ast_expr *expr, const etch_lookup *lookup)
{
    if (expr->kind == ETCH_AST_TRUTH)
        return not_a_number(spec, expr, expr->truth ? "'true'" : "'false'");
    return etch_value_of(spec, expr, lookup);
}

bool etch_args_are_distinct(etch_spec *spec, const etch_ast_expr *call, etch_code code)
{
    for (uint32_t i = 0; i < call->args.count; i++) {
        const etch_ast_name name = call->args.at[i].name;
        for (uint32_t k = 0; name.text && k < i; k++) {
            if (call->args.at[k].name.text != name.text)
                continue;
            etch_diag *diag = etch_error(spec->diags, code, name.span, "'%s' is given twice", name.text);
            etch_note(diag, call->args.at[k].name.span, "it is given here already");
            return false;
        }
    }
    return true;
}

/* ---- predicates ---------------------------------------------------------------------------------------- */

etch_relation etch_relation_of(char op)
{
    switch (op) {
    case '=':
    case 'i':
        return ETCH_REL_EQ;
    case 'n':
        return ETCH_REL_NE;
    case 'l':
        return ETCH_REL_LE;
    case 'g':
        return ETCH_REL_GE;
    case '<':
        return ETCH_REL_LT;
    case '>':
        return ETCH_REL_GT;
    default:
        return ETCH_REL_DIVIDES;
    }
}

bool etch_is_membership(const etch_ast_expr *expr)
{
    return expr->kind == ETCH_AST_COMPARE && expr->op == 'i';
}

/* What is 0 where the left side is one of the list: the product of the differences. */
static etch_expr membership(etch_spec *spec, const etch_ast_expr *expr, const etch_lookup *lookup)
{
    etch_expr left = etch_value_of(spec, expr->left, lookup), product = etch_int(spec->sym, 1);
    for (uint32_t i = 0; i < expr->right->items.count; i++) {
        etch_expr value = etch_value_of(spec, expr->right->items.at[i], lookup);
        product =
            left && product && value ? etch_mul(spec->sym, product, etch_sub(spec->sym, left, value)) : NULL;
    }
    return product;
}

etch_relation etch_mirrored(etch_relation relation)
{
    switch (relation) {
    case ETCH_REL_LE:
        return ETCH_REL_GE;
    case ETCH_REL_GE:
        return ETCH_REL_LE;
    case ETCH_REL_LT:
        return ETCH_REL_GT;
    case ETCH_REL_GT:
        return ETCH_REL_LT;
    case ETCH_REL_EQ:
    case ETCH_REL_NE:
    case ETCH_REL_DIVIDES:
    case ETCH_REL_TRUE:
        break;
    }
    return relation;
}

static bool is_call_of(const etch_ast_expr *expr, const char *name)
{
    return expr->kind == ETCH_AST_CALL && strcmp(expr->name.text, name) == 0 && expr->args.count == 1 &&
           !expr->args.at[0].name.text;
}

etch_claim etch_claim_of(etch_spec *spec, const etch_ast_expr *expr, const etch_lookup *lookup)
{
    etch_claim claim = {
        .relation = ETCH_REL_TRUE, .text = etch_written(spec, expr->span), .span = expr->span};
    etch_divisors divisors = {0};
    spec->divisors = &divisors;
    if (etch_is_membership(expr)) {
        claim.relation = ETCH_REL_EQ;
        claim.left = membership(spec, expr, lookup);
        claim.right = etch_int(spec->sym, 0);
    } else if (expr->kind == ETCH_AST_COMPARE) {
        claim.relation = etch_relation_of(expr->op);
        claim.left = etch_value_of(spec, expr->left, lookup);
        claim.right = etch_value_of(spec, expr->right, lookup);
    } else if (is_call_of(expr, "integer")) {
        claim.relation = ETCH_REL_DIVIDES;
        claim.left = etch_int(spec->sym, 1);
        claim.right = etch_value_of(spec, expr->args.at[0].value, lookup);
    } else if (is_call_of(expr, "pow2")) {
        claim.relation = ETCH_REL_EQ;
        claim.left = etch_value_of(spec, expr, lookup);
        claim.right = etch_int(spec->sym, 1);
    } else {
        claim.left = etch_value_of(spec, expr, lookup);
        claim.right = etch_int(spec->sym, 0);
    }
    spec->divisors = NULL;
    claim.divisors = divisors.at;
    claim.divisor_count = divisors.count;
    if (!claim.right)
        claim.left = NULL;
    return claim;
}

etch_truth etch_claim_holds(etch_spec *spec, const etch_claim *claim, etch_witness *witness)
{
    etch_sym *sym = spec->sym;
    switch (claim->relation) {
    case ETCH_REL_EQ:
        return etch_equal(sym, claim->left, claim->right, witness);
    case ETCH_REL_NE:
    case ETCH_REL_TRUE: /* right is 0 */
        return etch_different(sym, claim->left, claim->right, witness);
    case ETCH_REL_GE:
        return etch_at_least(sym, claim->left, claim->right, witness);
    case ETCH_REL_LE:
        return etch_at_least(sym, claim->right, claim->left, witness);
    case ETCH_REL_GT:
        return etch_above(sym, claim->left, claim->right, witness);
    case ETCH_REL_LT:
        return etch_above(sym, claim->right, claim->left, witness);
    case ETCH_REL_DIVIDES:
        break;
    }
    return etch_divides(sym, claim->left, claim->right, witness);
}

/* ---- names that stand for numbers ---------------------------------------------------------------------- */

static void report_dim_cycle(etch_spec *spec, const etch_symbol *symbol)
{
    etch_error(spec->diags, ETCH_E_DIM_CYCLE, symbol->def->name.span, "the size of dim '%s' needs itself",
               symbol->name);
}

static void report_dim_depth(etch_spec *spec, const etch_symbol *symbol)
{
    etch_error(spec->diags, ETCH_E_TOO_DEEP, symbol->def->name.span,
               "sizes of dims need one another in a chain of more than %d", ETCH_DIM_DEPTH);
}

etch_expr etch_dim_size(etch_spec *spec, const etch_symbol *symbol)
{
    uint8_t *state = &spec->dim_states[symbol->id];
    if (*state == DIM_DONE)
        return spec->dim_sizes[symbol->id];
    if (*state == DIM_OPEN) {
        report_dim_cycle(spec, symbol);
        return NULL;
    }
    if (spec->dim_depth >= ETCH_DIM_DEPTH) {
        report_dim_depth(spec, symbol);
        return NULL;
    }
    *state = DIM_OPEN;
    spec->dim_depth++;
    const etch_lookup lookup = etch_global_lookup(spec, symbol->home);
    spec->dim_sizes[symbol->id] = etch_value_of(spec, symbol->def->value, &lookup);
    spec->dim_depth--;
    *state = DIM_DONE;
    return spec->dim_sizes[symbol->id];
}

/* X' has the size of X. */
static const etch_symbol *find_base(etch_spec *spec, const etch_namespace *space, const char *name)
{
    size_t length = strlen(name);
    while (length > 1 && name[length - 1] == '\'')
        length--;
    const etch_symbol *symbol = etch_namespace_find(space, etch_name(spec->names, name, length));
    return symbol && symbol->kind == ETCH_SYMBOL_DIM ? symbol : NULL;
}

bool etch_namespace_knows(etch_spec *spec, const etch_namespace *space, const char *name)
{
    return etch_namespace_find(space, name) || find_base(spec, space, name);
}

etch_expr etch_global_value(etch_spec *spec, const etch_namespace *space, const etch_ast_expr *expr,
                            const char *const *more, uint32_t more_count)
{
    const etch_symbol *symbol = etch_namespace_find(space, expr->name.text);
    if (!symbol)
        symbol = find_base(spec, space, expr->name.text);
    if (!symbol) {
        etch_unknown_name(spec, space, "name", expr->name, more, more_count);
        return NULL;
    }
    if (symbol->kind == ETCH_SYMBOL_PARAM)
        return symbol->param->var;
    if (symbol->kind == ETCH_SYMBOL_DIM)
        return etch_dim_size(spec, symbol);
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_NOT_A_NUMBER, expr->name.span, "'%s' is a %s, not a number",
                   expr->name.text, etch_symbol_kind_name(symbol->kind));
    etch_note(diag, symbol->item->name.span, "it is declared here");
    return NULL;
}

typedef struct global_names {
    etch_spec *spec;
    const etch_namespace *space;
} global_names;

static etch_expr global_name(void *data, const etch_ast_expr *expr)
{
    const global_names *g = data;
    return etch_global_value(g->spec, g->space, expr, NULL, 0);
}

etch_lookup etch_global_lookup(etch_spec *spec, const etch_namespace *space)
{
    global_names *g = ETCH_NEW(spec->arena, global_names);
    *g = (global_names){spec, space};
    return (etch_lookup){.name = global_name, .data = g};
}
