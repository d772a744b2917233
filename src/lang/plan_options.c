/* What plans say beside placement: options with a value. */
#include "lang/plan_int.h"

#include <string.h>

static bool is_word(const etch_ast_expr *value, const char *word)
{
    return value->kind == ETCH_AST_NAME && strcmp(value->name.text, word) == 0;
}

/* ---- buckets ------------------------------------------------------------------------------------------- */

void etch_plan_read_bucket(etch_plan_builder *b, const etch_ast_def *def)
{
    etch_plan *plan = b->plan;
    etch_sym *sym = b->spec->sym;
    plan->bucket_span = def->span;
    plan->bucketing = ETCH_BUCKET_BY_LAYER;
    if (is_word(def->value, "layer"))
        return;
    if (is_word(def->value, "step")) {
        plan->bucketing = ETCH_BUCKET_BY_STEP;
        return;
    }
    const etch_lookup lookup = etch_plan_lookup(b->spec, b->symbol->home, plan);
    plan->bucket = etch_value_of(b->spec, def->value, &lookup);
    if (!plan->bucket)
        return;
    plan->bucketing = ETCH_BUCKET_BY_SIZE;
    if (!etch_is_constant(plan->bucket) || etch_constant_compare(sym, plan->bucket, etch_int(sym, 1)) >= 0)
        return;
    etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->value->span,
                                 "a bucket is layer, step, or at least 1 byte");
    etch_help(diag, "write bucket = 25*2^20 for 25 MiB");
}

/* ---- balance ------------------------------------------------------------------------------------------- */

void etch_plan_read_balance(etch_plan_builder *b, const etch_ast_def *def)
{
    b->plan->balance_span = def->span;
    if (def->value->kind == ETCH_AST_TRUTH)
        b->plan->contiguous = !def->value->truth;
    else if (def->value->kind != ETCH_AST_BROKEN)
        etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->value->span,
                   "balance is true, early and late queries together, or false, contiguous parts of them");
}
