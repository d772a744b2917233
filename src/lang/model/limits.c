/* Loops of which only some iterations are recomputed: `recompute = layer(first = 8)`.
 *
 * requires: what a train block or a plan says, before the model is elaborated. provides: for each loop of
 * the top level the iteration before which all are recomputed, so that these have bodies of their own. */
#include <string.h>

#include "lang/model/model_int.h"

void etch_env_limits(etch_builder *b, const etch_symbol *block, const etch_plan *plan)
{
    const etch_ast_def *def = etch_run_option(block, "recompute");
    const etch_lookup lookup = etch_global_lookup(b->spec, block->home);
    etch_recompute recompute = {0};
    if (plan && plan->recompute.span.end) {
        recompute = plan->recompute;
        b->limits_plan = plan;
    } else if (!def || !etch_recompute_of(b->spec, def, &lookup, &recompute)) {
        return; /* a mistake in it has been reported */
    }
    for (uint32_t i = 0; i < recompute.selectors.count; i++)
        if (recompute.selectors.at[i].first)
            ETCH_PUSH(b->spec->arena, &b->limits,
                      (etch_limit){recompute.selectors.at[i], etch_int(b->spec->sym, 0)});
}

/* Is the loop, or a call that it stands in, what the selector means? */
static bool is_inside(const etch_graph *graph, const etch_loop *loop, const char *selector)
{
    for (const etch_scope *scope = graph->scope; scope; scope = scope->parent)
        if (etch_scope_is_called(scope, selector, strlen(selector)))
            return true;
    return strcmp(loop->name, selector) == 0;
}

/* Does the scope of the plan at this place, counted from 1, speak of the loop? 0: the plan itself, which
 * does. */
static bool is_spoken_of(const etch_builder *b, const etch_loop *loop, uint32_t place)
{
    while (place) {
        const etch_override *scope = &b->limits_plan->overrides.at[place - 1];
        bool found = false;
        for (uint32_t i = 0; i < scope->selector_count && !found; i++)
            found = is_inside(b->graph, loop, scope->selectors[i]);
        if (!found)
            return false;
        place = scope->outer;
    }
    return true;
}

void etch_env_loop_limits(const etch_builder *b, etch_loop *loop, etch_loop_limits *out)
{
    etch_sym *sym = b->spec->sym;
    *out = (etch_loop_limits){0};
    if (b->graph->region->parent != b->graph->forward)
        return;
    for (uint32_t i = 0; i < b->limits.count; i++) {
        etch_limit *limit = &b->limits.at[i];
        if ((limit->what.selector && strcmp(limit->what.selector, loop->name) != 0) ||
            !is_spoken_of(b, loop, limit->what.place))
            continue;
        loop->partly_recomputed = true;
        ETCH_PUSH(b->spec->arena, out,
                  ((etch_loop_limit){etch_sub(sym, limit->what.first, limit->passed), limit->what.span}));
        limit->passed = etch_add(sym, limit->passed, loop->count);
    }
}
