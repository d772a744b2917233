/* Routing: tokens to the experts that they choose, and back.
 *
 * An index tensor has the dims of tokens and, when a token chooses several, a dim of choices. `dispatch`
 * gives every expert a row of slots: all tokens and choices together fill the slots of all experts, so
 * that on an axis that divides tokens or choices it divides slots (the op's map, tokens -> slots).
 * `collect` is the way back. */
#include "graph/ir/families/family.h"

/* ---- topk ---------------------------------------------------------------------------------------- */

static bool is_surely_less(const etch_graph *graph, etch_expr a, etch_expr b)
{
    return etch_is_constant(a) && etch_is_constant(b) && etch_at_least(graph->sym, a, b, NULL) != ETCH_YES;
}

/* Is `a` not at least `b`, as far as both are known? They become what they are with the values in force.
 * Defaults are held against each other, but not against a value: what is left open may still get one. */
static bool is_less(const etch_call *call, etch_expr *a, etch_expr *b)
{
    etch_graph *graph = call->graph;
    const etch_expr low = *a, high = *b;
    *a = etch_graph_with_values(graph, low);
    *b = etch_graph_with_values(graph, high);
    if (is_surely_less(graph, *a, *b))
        return true;
    if (*a != low || *b != high)
        return false;
    *a = etch_graph_with_defaults(graph, low);
    *b = etch_graph_with_defaults(graph, high);
    return is_surely_less(graph, *a, *b);
}

/* Groups are kept only where there are groups, and no more than there are. */
static bool groups_fit(const etch_call *call)
{
    etch_expr groups = call->attrs.groups, keep = call->attrs.keep;
    if (!keep)
        return true;
    if (groups && !is_less(call, &groups, &keep))
        return true;
    etch_diag *diag = etch_call_error(call, ETCH_E_CALL_ARGUMENTS, "keep = %s, but there %s %s",
                                      etch_call_number(call, keep), groups ? "are groups =" : "are no",
                                      groups ? etch_call_number(call, groups) : "groups");
    return etch_help(diag, "write groups = G, keep = N: experts of the N best of G groups are chosen");
}

/* Nothing is chosen twice, as far as sizes are known. */
static bool choices_are_distinct(const etch_call *call, const etch_dim *choices)
{
    const etch_dim *from = call->attrs.over.at[0];
    etch_expr most = from->size, count = choices->size;
    if (!is_less(call, &most, &count))
        return true;
    return etch_call_refuse(call, ETCH_E_UNEQUAL_SIZES, "%s = %s is more than the %s = %s of %s",
                            choices->name, etch_call_number(call, count), from->name,
                            etch_call_number(call, most), etch_call_tensor(call, call->ins[0]));
}

static bool chosen(etch_call *call, etch_dim_list *out)
{
    etch_graph *graph = call->graph;
    const etch_tensor *scores = call->ins[0];
    if (!etch_shape_has(call, scores, call->attrs.over, "over") || !groups_fit(call))
        return false;
    etch_dims_add_beside(call, out, scores, call->attrs.over);
    etch_dim *choices = etch_call_new_dim(call, NULL);
    if (!choices) {
        etch_diag *diag =
            etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, call->span,
                       "%s of %s needs declared result dims with one new dim in place of %s", call->row->name,
                       etch_call_tensor(call, scores), call->attrs.over.at[0]->name);
        return etch_help(diag, "write idx[B,S,Q]: i32 = %s(p, over = %s)", call->row->name,
                         call->attrs.over.at[0]->name);
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
    return is_choice ? root->producer->attrs.over.at[0] : NULL;
}

bool etch_route_fits(const etch_call *call, const etch_tensor *idx, const etch_dim *dim)
{
    const etch_dim *indexed = indexed_dim(idx);
    if (!indexed || indexed == dim)
        return true;
    return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH, "the indices %s choose from %s, but `over` says %s",
                            etch_call_tensor(call, idx), indexed->name, dim->name);
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
    etch_dim_list to = {0};
    for (uint32_t i = 0; i < tokens->count; i++) {
        ETCH_PUSH(call->graph->arena, &to, slots);
        hold(call->graph, slots, tokens->at[i]);
    }
    call->attrs.from = ETCH_DIMS(*tokens);
    call->attrs.to = ETCH_DIMS(to);
}

/* Slots are a dim of their own: they are not what indices choose from, and operands from `first` on have
 * others. */
static bool slots_are_new(const etch_call *call, uint32_t first, const etch_dim *slots)
{
    if (indexed_dim(call->ins[1]) == slots) {
        return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH,
                                "the indices %s choose from %s, which is to be that of the slots",
                                etch_call_tensor(call, call->ins[1]), slots->name);
    }
    for (uint32_t i = first; i < call->in_count; i++)
        if (etch_has_dim(call->ins[i], slots))
            return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH,
                                    "%s has the dim %s, which is to be that of the slots",
                                    etch_call_tensor(call, call->ins[i]), slots->name);
    return true;
}

static etch_dim *experts_of(const etch_call *call, const etch_tensor *idx, const etch_dim *slots)
{
    etch_dim *experts = indexed_dim(idx);
    if (!experts)
        experts = etch_call_new_dim(call, slots);
    if (experts && experts != slots && !etch_call_has(call, experts))
        return experts;
    etch_diag *diag = etch_call_error(call, ETCH_E_SHAPE_MISMATCH, "which dim do the indices %s choose from?",
                                      etch_call_tensor(call, idx));
    etch_help(diag, "declare the dims of the result, with one new dim: xe[E,C,H] = %s(..)", call->row->name);
    return NULL;
}

static bool routed(etch_call *call, etch_dim_list *out)
{
    const etch_tensor *x = call->ins[0], *idx = call->ins[1];
    const etch_attrs *attrs = &call->attrs;
    etch_dim *slots = attrs->slots.at[0];
    if (!etch_shape_has(call, x, attrs->over, "over") || !etch_shape_has(call, idx, attrs->over, "over") ||
        !slots_are_new(call, 0, slots))
        return false;
    etch_dim_list tokens = {0};
    etch_dims_add(call, &tokens, attrs->over);
    etch_dims_add_beside(call, &tokens, idx, (etch_dim_view){x->dims, x->rank}); /* choices */
    etch_dim *experts = experts_of(call, idx, slots);
    if (!experts)
        return false;
    etch_dim_add(call->graph, out, experts);
    etch_dim_add(call->graph, out, slots);
    etch_dims_add_beside(call, out, x, ETCH_DIMS(tokens));
    slots->experts = experts;
    set_links(call, &tokens, slots);
    return true;
}

/* ---- collect ------------------------------------------------------------------------------------- */

static bool returned(etch_call *call, etch_dim_list *out)
{
    const etch_tensor *y = call->ins[0], *idx = call->ins[1];
    const etch_attrs *attrs = &call->attrs;
    if (attrs->over.count != 2) {
        return etch_call_refuse(call, ETCH_E_CALL_ARGUMENTS,
                                "`over` is the dims of experts and of slots, but it is %s",
                                etch_call_dims(call, attrs->over));
    }
    if (!etch_shape_has(call, y, attrs->over, "over") || !etch_route_fits(call, idx, attrs->over.at[0]) ||
        !slots_are_new(call, 1, attrs->over.at[1]))
        return false;
    etch_dim_list tokens = {0};
    etch_dims_add_beside(call, &tokens, idx, (etch_dim_view){y->dims, y->rank});
    etch_dims_add_beside(call, out, idx, (etch_dim_view){0});
    etch_dims_add_beside(call, out, y, attrs->over);
    set_links(call, &tokens, attrs->over.at[1]);
    return true;
}

/* ---- load ---------------------------------------------------------------------------------------- */

/* `over`: what the indices choose among. */
static bool indexed(etch_call *call, etch_dim_list *out)
{
    etch_dims_add(call, out, call->attrs.over);
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
    const etch_dim_view over = call->attrs.over;
    if (!etch_shape_has(call, p, over, "over") || !etch_route_fits(call, idx, over.at[0]))
        return NULL;
    etch_dim_list tokens = {0};
    etch_dims_add_beside(call, &tokens, p, over);
    const etch_dim *lacks = etch_dim_beside(p, idx, NULL, over);
    if (lacks)
        etch_call_error(call, ETCH_E_MISSING_DIM, "the scores are %s, and %s has no dim %s",
                        etch_call_tensor(call, p), etch_call_tensor(call, idx), lacks->name);
    if (lacks || !etch_dims_have_elements(graph, ETCH_DIMS(tokens)))
        return NULL;
    const etch_expr count = etch_dims_size(sym, ETCH_DIMS(tokens), NULL, NULL);
    const etch_attrs along = {.over = over};
    etch_tensor *load = etch_graph_use(graph, ETCH_USE_LOAD, &idx, 1, &along, call->span);
    etch_tensor *scores = etch_graph_reduce(graph, p, over, call->span);
    etch_tensor *both = etch_graph_product(graph, load, scores, (etch_dim_view){over.at, 0}, call->span);
    return etch_graph_scale(graph, both, etch_div(sym, over.at[0]->size, count), call->span);
}

/* ---- FLOP ---------------------------------------------------------------------------------------- */

static etch_expr choice_flop(const etch_flop_call *call)
{
    return etch_flop_each(call, etch_flop_dims(call));
}

static const etch_flop per_score_and_choice = {choice_flop, "# FLOP per combination of dims"};

/* ---- rows ---------------------------------------------------------------------------------------- */

static const etch_row rows[] = {
    ETCH_ROW("topk", "scores",
             "indices of the best along a dim: as many as the new dim of the result has; no gradient",
             .options = ETCH_KW_GROUPS | ETCH_KW_KEEP, .needs = ETCH_KW_OVER, .one = ETCH_KW_OVER,
             .shape = chosen, .family = ETCH_FAMILY_CHOICE, .over = ETCH_FACTOR_WHOLE,
             .flop = {.by = &per_score_and_choice, .constants = {1}}, .dtype = ETCH_RESULT_I32),
    ETCH_ROW("dispatch", "x idx", "tokens to the slots of the experts that they choose",
             .indices = ETCH_EXTRA_OF(1), .options = ETCH_KW_LIMIT, .needs = ETCH_KW_OVER | ETCH_KW_SLOTS,
             .one = ETCH_KW_SLOTS, .shape = routed, .lead = 1, .links = true, .routing = ETCH_ROUTING_FILLS,
             .grads = ETCH_GRADS({"dispatch_dx", "d0 x1", "0"}), .dtype = ETCH_RESULT_AS_OPERAND),
    ETCH_ROW("dispatch_dx", "d idx",
             "gradient of dispatch: slots back to their tokens, the choices of a token added",
             .linear = ETCH_LINEAR_EACH, .flop = ETCH_PER_OPERAND(1), .lead = 1, .links = true,
             .routing = ETCH_ROUTING_EMPTIES),
    ETCH_ROW("collect", "y idx", "slots of experts back to their tokens, one for each choice",
             .indices = ETCH_EXTRA_OF(1), .needs = ETCH_KW_OVER, .shape = returned,
             .linear = ETCH_LINEAR_EACH, .lead = 1, .links = true, .routing = ETCH_ROUTING_EMPTIES,
             .grads = ETCH_GRADS({"collect_dx", "d0 x1", "0"}), .dtype = ETCH_RESULT_AS_OPERAND),
    ETCH_ROW("collect_dx", "d idx", "gradient of collect: every choice of a token to its slot", .lead = 1,
             .links = true, .routing = ETCH_ROUTING_FILLS),
    ETCH_ROW("normalize", "x", "x over its sum", .needs = ETCH_KW_OVER, .shape = etch_shape_first,
             .over = ETCH_FACTOR_WHOLE, .flop = ETCH_PER_RESULT(2),
             .grads = ETCH_GRADS({"normalize_dx", "d0 x0", "0"})),
    ETCH_ROW("normalize_dx", "d x", "(d - sum(d x)/sum(x)) over the sum of x", .over = ETCH_FACTOR_WHOLE,
             .flop = ETCH_PER_RESULT(5)),
    ETCH_ROW("load", "idx", "share of the choices that fall on each expert", .shape = indexed,
             .uncalled = true, .flop = ETCH_PER_OPERAND(1), .use = ETCH_USE_LOAD, .dtype = ETCH_RESULT_F32),
    ETCH_ROW("load_balance", "p idx",
             "E sum(load mean(p)): load, sum, a product and scale; the loss that keeps experts even",
             .indices = ETCH_EXTRA_OF(1), .needs = ETCH_KW_OVER, .one = ETCH_KW_OVER,
             .compose = load_balance),
};

ETCH_FAMILY(routing);
