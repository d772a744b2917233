/* `recompute = ...` of plans. */
#include "lang/plan/plan_int.h"

static void add_selector(etch_plan_builder *b, etch_recomputed what, uint32_t place)
{
    what.place = place;
    ETCH_PUSH(b->spec->arena, &b->plan->recompute.selectors, what);
}

/* A scope that is recomputed as a whole: all that it speaks of. */
static void add_scope(etch_plan_builder *b, uint32_t place, etch_span span)
{
    const etch_override *scope = &b->plan->overrides.at[place - 1];
    for (uint32_t i = 0; i < scope->selector_count; i++)
        add_selector(b, (etch_recomputed){.selector = scope->selectors[i], .span = span}, scope->outer);
}

static void refuse_none(etch_plan_builder *b, etch_span span)
{
    etch_diag *diag =
        etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, span,
                   "a scope cannot keep what is run again: what is around it is run again as a whole");
    etch_help(diag, "name outside of the scope what is to be run again, without this part");
}

static void refuse_fit(etch_plan_builder *b, etch_span span)
{
    etch_diag *diag =
        etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, span,
                   "what fits is counted in layers of the whole model: a scope has none of its own");
    etch_help(diag, "write recompute = fit(..) outside of the scope");
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
    const etch_lookup lookup = etch_plan_lookup(b->spec, b->symbol->home, b->plan);
    etch_recompute *all = &b->plan->recompute, own;
    if (!etch_recompute_of(b->spec, def, &lookup, &own))
        return;
    if (place && own.fit) {
        refuse_fit(b, own.fit_span);
        return;
    }
    if (place && !own.all && own.selectors.count == 0) {
        refuse_none(b, def->span);
        return;
    }
    const bool is_first = all->span.end == 0;
    if (!is_first && own.needed != all->needed && (own.all || own.fit || own.selectors.count) &&
        (all->all || all->fit || all->selectors.count)) {
        refuse_mixed(b, def->span, all->span);
        return;
    }
    all->needed = all->needed || own.needed;
    all->all = all->all || (own.all && !place);
    if (own.fit)
        all->fit = own.fit, all->fit_span = own.fit_span;
    if (is_first || !place)
        all->span = def->span;
    if (place)
        b->scope_recompute = def->span;
    else
        b->plan_recompute = def->span;
    for (uint32_t i = 0; i < own.selectors.count; i++)
        add_selector(b, own.selectors.at[i], place);
    if (place && own.all)
        add_scope(b, place, def->span);
}
