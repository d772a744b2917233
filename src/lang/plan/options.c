/* Lines of plans beside placement: options with a value. */
#include "lang/plan/plan_int.h"

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
    if (is_word(def->value, "step") || is_word(def->value, "ddp")) {
        plan->bucketing = is_word(def->value, "step") ? ETCH_BUCKET_BY_STEP : ETCH_BUCKET_BY_TENSOR;
        return;
    }
    const etch_lookup lookup = etch_plan_lookup(b->spec, b->symbol->home, plan);
    plan->bucket = etch_number_of(b->spec, def->value, &lookup);
    if (!plan->bucket)
        return;
    plan->bucketing = ETCH_BUCKET_BY_SIZE;
    if (!etch_is_constant(plan->bucket) || etch_constant_compare(sym, plan->bucket, etch_int(sym, 1)) >= 0)
        return;
    etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->value->span,
                                 "a bucket is layer, step, ddp, or at least 1 byte");
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

/* ---- attend -------------------------------------------------------------------------------------------- */

void etch_plan_read_attend(etch_plan_builder *b, const etch_ast_def *def)
{
    b->plan->attend_span = def->span;
    b->plan->rings = is_word(def->value, "ring");
    if (b->plan->rings || is_word(def->value, "gather") || def->value->kind == ETCH_AST_BROKEN)
        return;
    static const char *const words[] = {"ring", "gather"};
    etch_diag *diag =
        etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->value->span,
                   "ranks that share a sequence attend = gather, to all keys and values at once, or attend = "
                   "ring, to one block after the other");
    if (def->value->kind == ETCH_AST_NAME)
        etch_suggest_name(diag, def->value->name.text, words, sizeof words / sizeof *words);
    etch_help(diag, "heads that are divided in their place are a scope: for core { shard S @ (), K @ cp }");
}

bool etch_plan_is_first(etch_plan_builder *b, const etch_ast_def *def, etch_span earlier)
{
    if (earlier.end == 0)
        return true;
    etch_diag *diag =
        etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->span, "'%s' is given twice", def->name.text);
    etch_note(diag, earlier, "it is given here already");
    return false;
}

bool etch_plan_given_before(etch_plan_builder *b, const etch_ast_line *line, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (line->defs.at[i].name.text == line->defs.at[index].name.text)
            return !etch_plan_is_first(b, &line->defs.at[index], line->defs.at[i].span);
    return false;
}

const etch_ast_def *etch_plan_set_of(const etch_spec *spec, const char *option)
{
    for (uint32_t i = 0; i < spec->plan_sets.count; i++)
        if (strcmp(spec->plan_sets.at[i].name.text, option) == 0)
            return &spec->plan_sets.at[i];
    return NULL;
}
