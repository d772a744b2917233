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

/* ---- offload ------------------------------------------------------------------------------------------- */

/* What a rank holds, by the names of memory(C). */
static const struct held {
    const char *name;
    /* 0: the passes need it all the time */
    uint32_t bits;
} held[] = {{"master", ETCH_OFFLOAD_MASTER},
            {"moments", ETCH_OFFLOAD_MOMENTS},
            {"optimizer", ETCH_OFFLOAD_MASTER | ETCH_OFFLOAD_MOMENTS},
            {"weights", 0},
            {"grads", 0},
            {"activations", 0},
            {"cache", 0}};
enum { HELD_COUNT = sizeof held / sizeof *held };

static void refuse_offload(etch_plan_builder *b, const etch_ast_expr *value, bool known)
{
    const char *names[HELD_COUNT];
    for (uint32_t i = 0; i < HELD_COUNT; i++)
        names[i] = held[i].name;
    etch_diag *diag;
    if (known)
        diag = etch_error(b->spec->diags, ETCH_E_PLAN_LATER, value->span,
                          "offloading '%s' is part of the language but is not given meaning yet",
                          value->name.text);
    else
        diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, value->span,
                          "offload lists what the optimizer keeps in the memory of the host");
    if (!known && value->kind == ETCH_AST_NAME)
        etch_suggest_name(diag, value->name.text, names, HELD_COUNT);
    etch_help(diag, "write offload = optimizer, or master or moments, which are parts of it");
}

static uint32_t bits_of(etch_plan_builder *b, const etch_ast_expr *value)
{
    for (uint32_t i = 0; i < HELD_COUNT; i++)
        if (is_word(value, held[i].name)) {
            if (!held[i].bits)
                refuse_offload(b, value, true);
            return held[i].bits;
        }
    if (value->kind != ETCH_AST_BROKEN && !is_word(value, "none"))
        refuse_offload(b, value, false);
    return 0;
}

void etch_plan_read_offload(etch_plan_builder *b, const etch_ast_def *def)
{
    const etch_ast_expr *value = def->value;
    b->plan->offload_span = def->span;
    b->plan->offloaded = 0;
    if (value->kind != ETCH_AST_TUPLE) {
        b->plan->offloaded = bits_of(b, value);
        return;
    }
    for (uint32_t i = 0; i < value->items.count; i++)
        b->plan->offloaded |= bits_of(b, value->items.at[i]);
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
