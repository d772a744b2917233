/* `recompute = ...` of train blocks and plans. */
#include "lang/plan_int.h"

#include <string.h>

static void report(etch_spec *spec, etch_span span)
{
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_TRAIN_OPTION, span,
                   "recompute is a loop, a module, a tag, a list of them, full, needed or none");
    etch_help(diag, "write recompute = layer, (attention.core, mlp.h), full, needed(layer)");
}

static bool is_word(const etch_ast_expr *value, const char *word)
{
    return value->kind == ETCH_AST_NAME && strcmp(value->name.text, word) == 0;
}

/* Adds a selector, or those of a list. False after an error. */
static bool add_selectors(etch_spec *spec, const etch_ast_expr *value, etch_recompute *out)
{
    if (value->kind == ETCH_AST_TUPLE) {
        bool fine = true;
        for (uint32_t i = 0; i < value->items.count; i++)
            fine = add_selectors(spec, value->items.at[i], out) && fine;
        return fine;
    }
    if (value->kind != ETCH_AST_NAME || is_word(value, "none") || is_word(value, "full") ||
        is_word(value, "needed")) {
        if (value->kind != ETCH_AST_BROKEN)
            report(spec, value->span);
        return false;
    }
    ETCH_PUSH(spec->arena, &out->selectors, value->name.text);
    ETCH_PUSH(spec->arena, &out->spans, value->span);
    return true;
}

bool etch_recompute_of(etch_spec *spec, const etch_ast_def *def, etch_recompute *out)
{
    const etch_ast_expr *value = def->value;
    *out = (etch_recompute){.span = def->span};
    if (is_word(value, "none"))
        return true;
    out->all = is_word(value, "full") || is_word(value, "needed");
    out->needed = is_word(value, "needed");
    if (out->all)
        return true;
    if (value->kind != ETCH_AST_CALL || strcmp(value->name.text, "needed") != 0)
        return add_selectors(spec, value, out);
    out->needed = true;
    bool fine = value->args.count > 0;
    if (!fine)
        report(spec, value->span);
    for (uint32_t i = 0; i < value->args.count; i++) {
        if (value->args.at[i].name.text)
            report(spec, value->args.at[i].name.span);
        fine = !value->args.at[i].name.text && add_selectors(spec, value->args.at[i].value, out) && fine;
    }
    return fine;
}

/* ---- plans ---------------------------------------------------------------------------------------------- */

static void add_selector(etch_plan_builder *b, const char *selector, etch_span span, uint32_t place)
{
    etch_recompute *all = &b->plan->recompute;
    ETCH_PUSH(b->spec->arena, &all->selectors, selector);
    ETCH_PUSH(b->spec->arena, &all->spans, span);
    ETCH_PUSH(b->spec->arena, &all->places, place);
}

/* A scope that is run again as a whole: all that it speaks of. */
static void add_scope(etch_plan_builder *b, uint32_t place, etch_span span)
{
    const etch_override *scope = &b->plan->overrides.at[place - 1];
    for (uint32_t i = 0; i < scope->selector_count; i++)
        add_selector(b, scope->selectors[i], span, scope->outer);
}

static void refuse_none(etch_plan_builder *b, etch_span span)
{
    etch_diag *diag =
        etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, span,
                   "a scope cannot keep what is run again: what is around it is run again as a whole");
    etch_help(diag, "name outside of the scope what is to be run again, without this part");
}

static void refuse_mixed(etch_plan_builder *b, etch_span span, etch_span earlier)
{
    etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, span,
                                 "what nobody reads is left out of all that is run again, or of nothing");
    etch_note(diag, earlier, "here it is said otherwise");
    etch_help(diag, "write needed(..) in both lines, or in none");
}

void etch_plan_read_recompute(etch_plan_builder *b, const etch_ast_def *def, uint32_t place)
{
    etch_recompute *all = &b->plan->recompute, own;
    if (!etch_recompute_of(b->spec, def, &own))
        return;
    if (place && !own.all && own.selectors.count == 0) {
        refuse_none(b, def->span);
        return;
    }
    const bool is_first = all->span.end == 0;
    if (!is_first && own.needed != all->needed && (own.all || own.selectors.count) &&
        (all->all || all->selectors.count)) {
        refuse_mixed(b, def->span, all->span);
        return;
    }
    all->needed = all->needed || own.needed;
    all->all = all->all || (own.all && !place);
    if (is_first || !place)
        all->span = def->span;
    if (place)
        b->scope_recompute = def->span;
    else
        b->plan_recompute = def->span;
    for (uint32_t i = 0; i < own.selectors.count; i++)
        add_selector(b, own.selectors.at[i], own.spans.at[i], place);
    if (place && own.all)
        add_scope(b, place, def->span);
}
