/* Routing: tokens to the experts that they choose, and back.
 *
 * An index tensor has the dims of tokens and, when a token chooses several, a dim of choices. `dispatch`
 * gives every expert a row of slots: all tokens and choices together fill the slots of all experts, so
 * that on an axis that divides tokens or choices it divides slots (the op's map, tokens -> slots).
 * `collect` is the way back. */
#include "graph/ir/families/family.h"

/* The one declared dim that is none of `known`; NULL when there is none or several. */
static etch_dim *declared_beside(const etch_call *call, const etch_dim_list *known)
{
    etch_dim *found = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; call->want && i < call->want_count; i++)
        if (call->want[i] && !etch_dim_among(known->at, known->count, call->want[i]))
            found = call->want[i], count++;
    return count == 1 ? found : NULL;
}

/* ---- topk ---------------------------------------------------------------------------------------- */

/* With the values in force. */
static etch_expr in_force(const etch_graph *graph, etch_expr number)
{
    return etch_subst(graph->sym, number, graph->default_count, graph->default_vars, graph->default_values);
}

/* Groups are kept only where there are groups, and no more than there are. */
static bool groups_fit(const etch_call *call)
{
    etch_graph *graph = call->graph;
    etch_expr groups = call->attrs.groups, keep = call->attrs.keep;
    if (!keep)
        return true;
    if (groups) {
        groups = in_force(graph, groups);
        keep = in_force(graph, keep);
        bool known = etch_is_constant(groups) && etch_is_constant(keep);
        if (!known || etch_at_least(graph->sym, groups, keep, NULL) == ETCH_YES)
            return true;
    }
    etch_diag *diag = etch_call_error(call, ETCH_E_CALL_ARGUMENTS, "keep = %s, but there %s %s",
                                      etch_expr_text(graph->sym, keep), groups ? "are groups =" : "are no",
                                      groups ? etch_expr_text(graph->sym, groups) : "groups");
    etch_help(diag, "write groups = G, keep = N: experts of the N best of G groups are chosen");
    return false;
}

/* Nothing is chosen twice, as far as sizes are known. */
static bool choices_are_distinct(const etch_call *call, const etch_dim *choices)
{
    etch_graph *graph = call->graph;
    const etch_dim *from = call->attrs.over[0];
    etch_expr most = in_force(graph, from->size), count = in_force(graph, choices->size);
    bool known = etch_is_constant(most) && etch_is_constant(count);
    if (!known || etch_at_least(graph->sym, most, count, NULL) == ETCH_YES)
        return true;
    return etch_call_refuse(call, ETCH_E_UNEQUAL_SIZES, "%s = %s is more than the %s = %s of %s",
                            choices->name, etch_expr_text(graph->sym, count), from->name,
                            etch_expr_text(graph->sym, most),
                            etch_tensor_text(call->graph->arena, call->ins[0]));
}

static bool chosen(etch_call *call, etch_dim_list *out)
{
    etch_graph *graph = call->graph;
    const etch_tensor *scores = call->ins[0];
    if (!etch_shape_has(call, scores, call->attrs.over, 1, "over") || !groups_fit(call))
        return false;
    etch_dims_add_beside(call, out, scores, call->attrs.over, 1);
    etch_dim_list known = {0};
    etch_dims_add_beside(call, &known, scores, NULL, 0);
    etch_dim *choices = declared_beside(call, &known);
    if (!choices) {
        etch_diag *diag =
            etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, call->span,
                       "%s of %s needs declared result dims with one new dim in place of %s", call->row->name,
                       etch_tensor_text(call->graph->arena, scores), call->attrs.over[0]->name);
        etch_help(diag, "write idx[B,S,Q]: i32 = %s(p, over = %s)", call->row->name,
                  call->attrs.over[0]->name);
        return false;
    }
    etch_dim_add(graph, out, choices);
    return choices_are_distinct(call, choices);
}

/* ---- indices ------------------------------------------------------------------------------------- */

/* The dim that the elements of `indices` choose among, when an op of the graph has chosen them; else NULL. */
static etch_dim *indexed_dim(const etch_tensor *indices)
{
    const etch_tensor *root = etch_route_root(indices);
    bool is_choice = root->producer && root->producer->row->shape == chosen;
    return is_choice ? root->producer->attrs.over[0] : NULL;
}

bool etch_route_fits(const etch_call *call, const etch_tensor *idx, const etch_dim *dim)
{
    const etch_dim *indexed = indexed_dim(idx);
    if (!indexed || indexed == dim)
        return true;
    return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH, "the indices %s choose from %s, but `over` says %s",
                            etch_tensor_text(call->graph->arena, idx), indexed->name, dim->name);
}

/* ---- dispatch ------------------------------------------------------------------------------------ */

/* And what is held already, when slots are routed once more. */
static void hold(etch_graph *graph, etch_dim *slots, const etch_dim *token)
{
    if (!etch_dim_is_packed_from(slots, token))
        ETCH_PUSH(graph->arena, &slots->packed_from, token);
    for (const etch_dim *d = token; d; d = d->alias)
        for (uint32_t i = 0; i < d->packed_from.count; i++)
            if (!etch_dim_is_packed_from(slots, d->packed_from.at[i]))
                ETCH_PUSH(graph->arena, &slots->packed_from, d->packed_from.at[i]);
}

static void set_links(etch_call *call, const etch_dim_list *tokens, etch_dim *slots)
{
    etch_attrs_map(call->graph->arena, &call->attrs, tokens->count);
    for (uint32_t i = 0; i < tokens->count; i++) {
        call->attrs.from[i] = tokens->at[i];
        call->attrs.to[i] = slots;
        hold(call->graph, slots, tokens->at[i]);
    }
}

/* Slots are a dim of their own: they are not what indices choose from, and operands from `first` on have
 * others. */
static bool slots_are_new(const etch_call *call, uint32_t first, const etch_dim *slots)
{
    if (indexed_dim(call->ins[1]) == slots) {
        return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH,
                                "the indices %s choose from %s, which is to be that of the slots",
                                etch_tensor_text(call->graph->arena, call->ins[1]), slots->name);
    }
    for (uint32_t i = first; i < call->in_count; i++) {
        if (!etch_has_dim(call->ins[i], slots))
            continue;
        return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH,
                                "%s has the dim %s, which is to be that of the slots",
                                etch_tensor_text(call->graph->arena, call->ins[i]), slots->name);
    }
    return true;
}

static etch_dim *experts_of(const etch_call *call, const etch_tensor *idx, const etch_dim_list *known)
{
    etch_dim *experts = indexed_dim(idx);
    if (!experts)
        experts = declared_beside(call, known);
    if (experts && !etch_dim_among(known->at, known->count, experts))
        return experts;
    etch_diag *diag = etch_call_error(call, ETCH_E_SHAPE_MISMATCH, "which dim do the indices %s choose from?",
                                      etch_tensor_text(call->graph->arena, idx));
    etch_help(diag, "declare the dims of the result, with one new dim: xe[E,C,H] = %s(..)", call->row->name);
    return NULL;
}

static bool routed(etch_call *call, etch_dim_list *out)
{
    const etch_tensor *x = call->ins[0], *idx = call->ins[1];
    const etch_attrs *attrs = &call->attrs;
    etch_dim *slots = attrs->slots[0];
    if (!etch_shape_has(call, x, attrs->over, attrs->over_count, "over") ||
        !etch_shape_has(call, idx, attrs->over, attrs->over_count, "over") || !slots_are_new(call, 0, slots))
        return false;
    etch_dim_list tokens = {0}, known = {0};
    for (uint32_t i = 0; i < attrs->over_count; i++)
        etch_dim_add(call->graph, &tokens, attrs->over[i]);
    etch_dims_add_beside(call, &tokens, idx, x->dims, x->rank); /* choices */
    etch_dims_add_beside(call, &known, x, NULL, 0);
    etch_dims_add_beside(call, &known, idx, NULL, 0);
    etch_dim_add(call->graph, &known, slots);
    etch_dim *experts = experts_of(call, idx, &known);
    if (!experts)
        return false;
    etch_dim_add(call->graph, out, experts);
    etch_dim_add(call->graph, out, slots);
    etch_dims_add_beside(call, out, x, tokens.at, tokens.count);
    slots->experts = experts;
    set_links(call, &tokens, slots);
    return true;
}

/* ---- collect ------------------------------------------------------------------------------------- */

static bool returned(etch_call *call, etch_dim_list *out)
{
    const etch_tensor *y = call->ins[0], *idx = call->ins[1];
    const etch_attrs *attrs = &call->attrs;
    if (attrs->over_count != 2) {
        return etch_call_refuse(call, ETCH_E_CALL_ARGUMENTS,
                                "`over` is the dims of experts and of slots, but it is %s",
                                etch_dims_text(call->graph->arena, attrs->over, attrs->over_count));
    }
    if (!etch_shape_has(call, y, attrs->over, 2, "over"))
        return false;
    if (!etch_route_fits(call, idx, attrs->over[0]) || !slots_are_new(call, 1, attrs->over[1]))
        return false;
    etch_dim_list tokens = {0};
    etch_dims_add_beside(call, &tokens, idx, y->dims, y->rank);
    etch_dims_add_beside(call, out, idx, NULL, 0);
    etch_dims_add_beside(call, out, y, attrs->over, 2);
    set_links(call, &tokens, attrs->over[1]);
    return true;
}

/* ---- load ---------------------------------------------------------------------------------------- */

/* `over`: what the indices choose among. */
static bool indexed(etch_call *call, etch_dim_list *out)
{
    for (uint32_t i = 0; i < call->attrs.over_count; i++)
        etch_dim_add(call->graph, out, call->attrs.over[i]);
    return true;
}

/* The load of experts is a loss, made of calls of other rows: experts times the sum over experts of (the
 * share of the choices that fall on one) times (its mean score), which is 1 when both are even. The mean
 * is over the tokens of the whole step, as in other losses, and the shares are those of a microbatch, so
 * that the sum over microbatches is the mean of their losses. */
static etch_tensor *load_balance(const etch_call *call)
{
    etch_graph *graph = call->graph;
    etch_sym *sym = graph->sym;
    etch_tensor *p = call->ins[0], *idx = call->ins[1];
    etch_dim *const *over = call->attrs.over;
    if (!etch_shape_has(call, p, over, 1, "over") || !etch_route_fits(call, idx, over[0]))
        return NULL;
    etch_dim_list tokens = {0};
    etch_dims_add_beside(call, &tokens, p, over, 1);
    for (uint32_t i = 0; i < tokens.count; i++) {
        if (etch_has_dim(idx, tokens.at[i]))
            continue;
        etch_call_error(call, ETCH_E_MISSING_DIM, "the scores are %s, and %s has no dim %s",
                        etch_tensor_text(call->graph->arena, p), etch_tensor_text(call->graph->arena, idx),
                        tokens.at[i]->name);
        return NULL;
    }
    if (!etch_dims_have_elements(graph, tokens.at, tokens.count))
        return NULL;
    const etch_expr count = etch_dims_size(sym, tokens.at, tokens.count, NULL, NULL);
    const etch_attrs along = {.over = call->attrs.over, .over_count = 1};
    etch_tensor *load =
        etch_graph_call(graph, etch_row_for(graph, ETCH_USE_LOAD), &idx, 1, &along, NULL, 0, call->span);
    etch_tensor *scores = etch_graph_reduce(graph, p, over, 1, call->span);
    etch_tensor *both = etch_graph_product(graph, load, scores, over, 0, call->span);
    return etch_graph_scale(graph, both, etch_div(sym, over[0]->size, count), call->span);
}

/* ---- FLOP ---------------------------------------------------------------------------------------- */

static etch_expr choice_flop(const etch_flop_call *call)
{
    return etch_flop_times(call, call->op->row->flop.constants[0], etch_flop_dims(call));
}

static const etch_flop per_score_and_choice = {choice_flop, "# FLOP per combination of dims"};

/* ---- rows ---------------------------------------------------------------------------------------- */

static const etch_row rows[] = {
    {.name = "topk",
     .operands = "scores",
     .options = ETCH_KW_GROUPS | ETCH_KW_KEEP,
     .needs = ETCH_KW_OVER,
     .one = ETCH_KW_OVER,
     .shape = chosen,
     .family = ETCH_FAMILY_CHOICE,
     .over = ETCH_FACTOR_WHOLE,
     .flop = {.by = &per_score_and_choice, .constants = {1}},
     .dtype = ETCH_RESULT_I32,
     .help = "indices of the best along a dim: as many as the new dim of the result has; no gradient"},
    {.name = "dispatch",
     .operands = "x idx",
     .indices = ETCH_EXTRA_OF(1),
     .options = ETCH_KW_LIMIT,
     .needs = ETCH_KW_OVER | ETCH_KW_SLOTS,
     .one = ETCH_KW_SLOTS,
     .shape = routed,
     .lead = 1,
     .links = true,
     .routing = ETCH_ROUTING_FILLS,
     .grads = ETCH_GRADS({"dispatch_dx", "d0 x1", "0"}),
     .dtype = ETCH_RESULT_AS_OPERAND,
     .help = "tokens to the slots of the experts that they choose"},
    {.name = "dispatch_dx",
     .operands = "d idx",
     .linear = ETCH_LINEAR_EACH,
     .flop = {.by = &etch_flop_per_operand, .constants = {1}},
     .lead = 1,
     .links = true,
     .routing = ETCH_ROUTING_EMPTIES,
     .help = "gradient of dispatch: slots back to their tokens, the choices of a token added"},
    {.name = "collect",
     .operands = "y idx",
     .indices = ETCH_EXTRA_OF(1),
     .needs = ETCH_KW_OVER,
     .shape = returned,
     .linear = ETCH_LINEAR_EACH,
     .lead = 1,
     .links = true,
     .routing = ETCH_ROUTING_EMPTIES,
     .grads = ETCH_GRADS({"collect_dx", "d0 x1", "0"}),
     .dtype = ETCH_RESULT_AS_OPERAND,
     .help = "slots of experts back to their tokens, one for each choice"},
    {.name = "collect_dx",
     .operands = "d idx",
     .lead = 1,
     .links = true,
     .routing = ETCH_ROUTING_FILLS,
     .help = "gradient of collect: every choice of a token to its slot"},
    {.name = "normalize",
     .operands = "x",
     .needs = ETCH_KW_OVER,
     .shape = etch_shape_first,
     .over = ETCH_FACTOR_WHOLE,
     .flop = {.by = &etch_flop_per_result, .constants = {2}},
     .grads = ETCH_GRADS({"normalize_dx", "d0 x0", "0"}),
     .help = "x over its sum"},
    {.name = "normalize_dx",
     .operands = "d x",
     .over = ETCH_FACTOR_WHOLE,
     .flop = {.by = &etch_flop_per_result, .constants = {5}},
     .help = "(d - sum(d x)/sum(x)) over the sum of x"},
    {.name = "load",
     .operands = "idx",
     .shape = indexed,
     .uncalled = true,
     .flop = {.by = &etch_flop_per_operand, .constants = {1}},
     .use = ETCH_USE_LOAD,
     .dtype = ETCH_RESULT_F32,
     .help = "share of the choices that fall on each expert"},
    {.name = "load_balance",
     .operands = "p idx",
     .indices = ETCH_EXTRA_OF(1),
     .needs = ETCH_KW_OVER,
     .one = ETCH_KW_OVER,
     .compose = load_balance,
     .help = "E sum(load mean(p)): load, sum, a product and scale; the loss that keeps experts even"},
};

ETCH_FAMILY(routing);
