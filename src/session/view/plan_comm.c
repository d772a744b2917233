/* The collectives of a plan: the items of comm(step) and wire(step), each with its reason, and what they add
 * up to. */
#include "session/view/plan_int.h"

#include <string.h>

/* ---- finding ------------------------------------------------------------------------------------------- */

static bool is_of_end(const etch_cost *cost)
{
    return cost->provenance.rule == ETCH_RULE_REDUCE || cost->provenance.rule == ETCH_RULE_UPDATE;
}

/* Does one collective take what several weight groups have? In how many collectives whole tensors go is for
 * numbers to say: those are listed by what each group brings. */
static bool spans_groups(const etch_plan_viewing *v, const etch_cost *cost)
{
    const etch_bucketing by = v->placed->plan->bucketing;
    return (by == ETCH_BUCKET_BY_STEP || by == ETCH_BUCKET_BY_SIZE) && !cost->provenance.every_microbatch &&
           is_of_end(cost);
}

/* Does it take one weight, and no other of its group? */
static bool is_alone(const etch_plan_viewing *v, const etch_cost *cost)
{
    return is_of_end(cost) && etch_zero_of(v->placed, cost->tensor)->by_weight;
}

/* Items of one collective: of one step, of the weights of one weight group or of all, of one cut. */
static bool same_collective(const etch_plan_viewing *v, const etch_cost *a, const etch_cost *b)
{
    if (spans_groups(v, a))
        return a->collective == b->collective && a->axes == b->axes &&
               a->provenance.rule == b->provenance.rule;
    return a->step == b->step && a->phase == b->phase && a->collective == b->collective &&
           a->axes == b->axes && a->provenance.rule == b->provenance.rule &&
           a->provenance.weight_group == b->provenance.weight_group &&
           a->provenance.line.start == b->provenance.line.start && a->provenance.cut == b->provenance.cut &&
           (a->step || a->provenance.weight_group || a->body == b->body) &&
           (!is_alone(v, a) || a->tensor == b->tensor);
}

static etch_shown_collective *collective_for(etch_plan_viewing *v, const etch_cost *cost)
{
    for (uint32_t i = v->collectives.count; i-- > 0;)
        if (same_collective(v, v->collectives.at[i].cost, cost))
            return &v->collectives.at[i];
    return NULL;
}

static etch_expr *zeros(const etch_plan_viewing *v)
{
    etch_expr *list = ETCH_NEW_ARRAY(v->view.arena, v->stages.count, etch_expr);
    for (uint32_t i = 0; i < v->stages.count; i++)
        list[i] = etch_int(v->view.sym, 0);
    return list;
}

static etch_shown_collective *add_collective(etch_plan_viewing *v, const etch_cost *cost, uint32_t stage)
{
    etch_shown_collective row = {.cost = cost,
                                 .stage = stage,
                                 .each = etch_int(v->view.sym, 0),
                                 .times = zeros(v),
                                 .bytes = zeros(v),
                                 .wire = zeros(v)};
    ETCH_PUSH(v->view.arena, &v->collectives, row);
    return &v->collectives.at[v->collectives.count - 1];
}

/* How often one weight group has the weight of an item. */
static etch_expr copies_of(const etch_plan_viewing *v, const etch_cost *cost)
{
    const etch_weight_group *weight_group = cost->provenance.weight_group;
    for (uint32_t i = 0; weight_group && i < weight_group->weights.count; i++)
        if (weight_group->weights.at[i] == cost->tensor)
            return weight_group->copies.at[i];
    return etch_int(v->view.sym, 1);
}

typedef ETCH_VEC(etch_value *) value_list;

/* What a message between stages takes: what is alive where the chain is cut, or its gradients. */
static value_list alive_at(const etch_plan_viewing *v, const etch_cost *cost)
{
    const etch_cut *cut = cost->provenance.cut;
    const etch_crossings none = {0};
    const etch_crossings *all = !cut ? &none : cost->phase == ETCH_FORWARD ? &cut->forward : &cut->backward;
    value_list list = {0};
    for (uint32_t i = 0; i < all->count; i++)
        if (etch_crossing_may_be_sent(&all->at[i]))
            ETCH_PUSH(v->view.arena, &list, all->at[i].value);
    return list;
}

static void add_moved(etch_plan_viewing *v, etch_shown_collective *row, const etch_tensor *tensor)
{
    ETCH_PUSH(v->view.arena, &row->tensors, tensor);
    etch_view_mention(&v->view, tensor);
}

/* All items of a collective happen equally often, but those of a message, of which some have not all. */
static void add_item(etch_plan_viewing *v, const etch_cost *cost, uint32_t stage)
{
    etch_sym *sym = v->view.sym;
    etch_session *session = v->view.session;
    etch_shown_collective *row = collective_for(v, cost);
    const bool first = !row;
    if (first)
        row = add_collective(v, cost, stage);
    const etch_expr total = etch_cost_total(session, v->view.p, cost, etch_mul(sym, cost->each, cost->times));
    const etch_expr copies = copies_of(v, cost);
    if (cost->measure == ETCH_WIRE) {
        row->wire[stage] = etch_add(sym, row->wire[stage], total);
        return;
    }
    row->bytes[stage] = etch_add(sym, row->bytes[stage], total);
    const etch_expr times = etch_div(sym, cost->times, copies);
    row->times[stage] = etch_is_zero(row->times[stage]) ? times : etch_larger(sym, row->times[stage], times);
    if (row->stage != stage)
        return;
    row->each = etch_add(sym, row->each, etch_mul(sym, cost->each, copies));
    if (cost->tensor)
        add_moved(v, row, cost->tensor);
    const value_list alive = first ? alive_at(v, cost) : (value_list){0};
    for (uint32_t i = 0; i < alive.count; i++)
        add_moved(v, row, alive.at[i]->tensor);
    etch_view_mention_scope(&v->view, etch_view_scope(&v->view, cost->scope));
}

static bool is_wanted(const etch_plan_viewing *v, const etch_cost *cost)
{
    return etch_cost_communicates(v->view.session, v->view.p, cost) &&
           (!v->view.selector || etch_view_selected_of(&v->view, cost->scope, cost->body, cost->tensor));
}

/* Optimizers begin when all gradients are there; weights are gathered when all have been updated. */
static int turn_at_end(const etch_cost *cost)
{
    const etch_rule rule = cost->provenance.rule;
    return rule == ETCH_RULE_UPDATE ? 2 : rule == ETCH_RULE_OPTIMIZER;
}

/* By phase, in the order of the program; those that are no step come behind, as they are. */
static bool comes_before(const etch_plan_viewing *v, const etch_shown_collective *a,
                         const etch_shown_collective *b)
{
    if (a->cost->phase != b->cost->phase)
        return a->cost->phase < b->cost->phase;
    if (!a->cost->step && !b->cost->step)
        return turn_at_end(a->cost) < turn_at_end(b->cost);
    const size_t at = a->cost->step ? v->step_at[a->cost->step->id] : ETCH_VIEW_NONE;
    return at < (b->cost->step ? v->step_at[b->cost->step->id] : ETCH_VIEW_NONE);
}

static void sort_collectives(etch_plan_viewing *v)
{
    for (uint32_t i = 1; i < v->collectives.count; i++) {
        const etch_shown_collective row = v->collectives.at[i];
        uint32_t at = i;
        for (; at > 0 && comes_before(v, &row, &v->collectives.at[at - 1]); at--)
            v->collectives.at[at] = v->collectives.at[at - 1];
        v->collectives.at[at] = row;
    }
    for (uint32_t i = 0; i < v->collectives.count; i++)
        if (v->collectives.at[i].cost->step)
            v->collective_at[v->collectives.at[i].cost->step->id] = i;
}

static etch_expr ranks_of(const etch_plan_viewing *v, uint32_t axes)
{
    etch_expr ranks = etch_int(v->view.sym, 1);
    for (uint32_t a = 0; a < v->placed->plan->mesh.count; a++)
        if (axes >> a & 1)
            ranks = etch_mul(v->view.sym, ranks, v->placed->plan->mesh.at[a].size);
    return ranks;
}

/* Stages that are alike share their costs. */
static void copy_stage(etch_plan_viewing *v, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < v->collectives.count; i++) {
        etch_shown_collective *row = &v->collectives.at[i];
        row->times[to] = row->times[from];
        row->bytes[to] = row->bytes[from];
        row->wire[to] = row->wire[from];
    }
}

/* Of what several weight groups have together: how many collectives take it, and how much each. */
static void count_buckets(etch_plan_viewing *v, etch_shown_collective *row)
{
    etch_sym *sym = v->view.sym;
    const etch_plan *plan = v->placed->plan;
    const etch_cost *cost = row->cost;
    const bool is_whole =
        cost->collective == ETCH_REDUCE_SCATTER; /* others are of the parts of a divided update */
    const etch_expr ranks = ranks_of(v, is_whole ? 0 : v->placed->zero_axes[cost->tensor->id]);
    row->each = row->bytes[row->stage];
    if (plan->bucketing == ETCH_BUCKET_BY_SIZE) /* or less, where that is all */
        row->each = etch_smaller(sym, row->each, etch_div(sym, plan->bucket, ranks));
    for (uint32_t s = 0; s < v->stages.count; s++) {
        if (etch_is_zero(row->bytes[s]))
            continue;
        row->times[s] = etch_int(sym, 1);
        if (plan->bucketing == ETCH_BUCKET_BY_SIZE)
            row->times[s] = etch_ceil(sym, etch_div(sym, etch_mul(sym, row->bytes[s], ranks), plan->bucket));
    }
}

void etch_plan_find_collectives(etch_plan_viewing *v)
{
    for (uint32_t s = 0; s < v->stages.count; s++) {
        uint32_t same = 0;
        while (v->stages.at[same].view != v->stages.at[s].view)
            same++;
        if (same < s) {
            copy_stage(v, same, s);
            continue;
        }
        const etch_cost_list *costs = etch_compiled_stage_costs(
            v->view.session, v->view.p, v->stages.at[s].view, 1u << ETCH_COMM | 1u << ETCH_WIRE);
        for (uint32_t i = 0; i < costs->count; i++)
            if (is_wanted(v, &costs->at[i]))
                add_item(v, &costs->at[i], s);
    }
    for (uint32_t i = 0; i < v->collectives.count; i++)
        if (spans_groups(v, v->collectives.at[i].cost))
            count_buckets(v, &v->collectives.at[i]);
    sort_collectives(v);
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static const char *human(const etch_plan_viewing *v, etch_expr bytes)
{
    return bytes && etch_is_constant(bytes) ? etch_human_text(v->view.session, bytes, ETCH_UNIT_BYTES) : NULL;
}

static const etch_view_share *shares_of(const etch_plan_viewing *v, const etch_expr *times,
                                        const etch_expr *bytes, const etch_expr *wire)
{
    etch_view_share *rows = ETCH_NEW_ARRAY(v->view.arena, v->stages.count, etch_view_share);
    for (uint32_t i = 0; i < v->stages.count; i++)
        rows[i] = (etch_view_share){etch_plan_text(v, times[i]), etch_plan_text(v, bytes[i]),
                                    etch_plan_text(v, wire[i]), human(v, bytes[i]), human(v, wire[i])};
    return rows;
}

static void add_tensors(const etch_plan_viewing *v, const etch_shown_collective *shown,
                        etch_view_collective *row)
{
    size_t *tensors = ETCH_NEW_ARRAY(v->view.arena, shown->tensors.count, size_t);
    for (uint32_t i = 0; i < shown->tensors.count; i++)
        tensors[i] = v->view.tensor_at[shown->tensors.at[i]->id];
    row->tensors = tensors;
    row->tensor_count = shown->tensors.count;
}

/* The loop of what is no step: of the weights of a group that around all of them. */
static size_t loop_of(const etch_plan_viewing *v, const etch_cost *cost)
{
    const etch_region *body = cost->body;
    while (cost->provenance.weight_group && body && body->parent && body->parent->loop)
        body = body->parent;
    return body ? etch_view_loop_at(&v->view, body) : ETCH_VIEW_NONE;
}

static etch_view_collective view_of(const etch_plan_viewing *v, const etch_shown_collective *shown)
{
    const etch_cost *cost = shown->cost;
    const etch_step *step = cost->step;
    const uint32_t axes = cost->axes & v->how.axes;
    etch_view_collective row = {.collective = cost->collective,
                                .phase = cost->phase,
                                .group = etch_axes_label(v->placed, axes),
                                .ranks = etch_plan_text(v, cost->ranks),
                                .step = ETCH_VIEW_NONE,
                                .module = v->view.scope_at[etch_view_scope(&v->view, cost->scope)->id],
                                .loop = ETCH_VIEW_NONE,
                                .bytes = etch_plan_text(v, shown->each),
                                .dtype = ETCH_DTYPE_COUNT,
                                .shares = shares_of(v, shown->times, shown->bytes, shown->wire),
                                .rule = cost->provenance.rule};
    row.axes = etch_plan_axis_list(v, axes, &row.axis_count);
    row.why = etch_cost_explain(v->view.session, v->view.p, cost, v->view.names.tensors, &row.why_count);
    add_tensors(v, shown, &row);
    row.loop = loop_of(v, cost);
    const value_list alive = alive_at(v, cost);
    if (alive.count)
        row.bytes_by_dims = etch_plan_bytes_by_dims(v, alive.at, alive.count);
    if (!step)
        return row;
    row.before = etch_value_text(&v->how, step->ins[0]);
    row.after = etch_value_text(&v->how, step->outs[0]);
    row.bytes_by_dims = etch_plan_payload_by_dims(v, step);
    row.dtype = etch_comm_dtype_of(v->placed, step, 0);
    row.step = v->step_at[step->id];
    row.loop = row.step == ETCH_VIEW_NONE ? row.loop : v->steps.at[row.step].loop;
    return row;
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

typedef struct comm_sum {
    etch_collective collective;
    const char *group;
    etch_expr *times, *bytes, *wire;
} comm_sum;

static void add_to(const etch_plan_viewing *v, const comm_sum *sum, const etch_shown_collective *shown)
{
    for (uint32_t i = 0; i < v->stages.count; i++) {
        sum->times[i] = etch_add(v->view.sym, sum->times[i], shown->times[i]);
        sum->bytes[i] = etch_add(v->view.sym, sum->bytes[i], shown->bytes[i]);
        sum->wire[i] = etch_add(v->view.sym, sum->wire[i], shown->wire[i]);
    }
}

static void add_totals(etch_plan_viewing *v)
{
    etch_placement_report *r = v->report;
    ETCH_VEC(comm_sum) sums = {0};
    const comm_sum all = {.times = zeros(v), .bytes = zeros(v), .wire = zeros(v)};
    for (uint32_t i = 0; i < r->collective_count; i++) {
        const etch_view_collective *row = &r->collectives[i];
        uint32_t at = 0;
        while (at < sums.count &&
               (sums.at[at].collective != row->collective || strcmp(sums.at[at].group, row->group) != 0))
            at++;
        if (at == sums.count)
            ETCH_PUSH(v->view.arena, &sums,
                      (comm_sum){row->collective, row->group, zeros(v), zeros(v), zeros(v)});
        add_to(v, &sums.at[at], &v->collectives.at[i]);
        add_to(v, &all, &v->collectives.at[i]);
    }
    etch_view_comm *rows = ETCH_NEW_ARRAY(v->view.arena, sums.count, etch_view_comm);
    for (uint32_t i = 0; i < sums.count; i++)
        rows[i] = (etch_view_comm){sums.at[i].collective, sums.at[i].group,
                                   shares_of(v, sums.at[i].times, sums.at[i].bytes, sums.at[i].wire)};
    r->totals = rows;
    r->total_count = sums.count;
    r->sums = shares_of(v, all.times, all.bytes, all.wire);
}

void etch_plan_add_collectives(etch_plan_viewing *v)
{
    etch_view_collective *rows = ETCH_NEW_ARRAY(v->view.arena, v->collectives.count, etch_view_collective);
    for (uint32_t i = 0; i < v->collectives.count; i++)
        rows[i] = view_of(v, &v->collectives.at[i]);
    v->report->collectives = rows;
    v->report->collective_count = v->collectives.count;
    add_totals(v);
}
