#include "exec_ops_route.h"

#include <string.h>

/* ---- who goes where ------------------------------------------------------------------------------------ */

/* The dim along which indices have the choices of a token: what scores have in its place are experts. */
static uint32_t choices_at(const etch_tensor *idx)
{
    for (uint32_t i = 0; idx->producer && i < idx->rank; i++)
        if (!etch_has_dim(idx->producer->ins[0], idx->dims[i]))
            return i;
    return idx->rank - 1;
}

/* The expert of a choice: cyclic in tokens and choices, so that every block of enough tokens, whatever dims
 * it extends along, chooses all experts equally often, and a token never the same twice. `index` is by dim of
 * the indices, in the whole batch. Each time that all have been chosen the next begin with another one, so
 * that one choice of all tokens is as even. */
static uint32_t expert_of(const exec_env *env, const etch_tensor *idx, const uint32_t *index,
                          uint32_t experts)
{
    const uint32_t choices = choices_at(idx), each = exec_size(env, idx->dims[choices]);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < idx->rank; i++)
        sum += i == choices ? index[i] : index[i] * each + index[i] * each / experts;
    return sum % experts;
}

static uint32_t in_job(const exec_env *env, const etch_dim *dim, uint32_t index)
{
    return dim == env->training->train.batch ? index + env->microbatch * exec_size(env, dim) : index;
}

const etch_tensor *exec_route_indices(const etch_op *op)
{
    const etch_tensor *idx = op->ins[1];
    while (idx->producer && strcmp(etch_row_name(idx->producer->row), "identity") == 0)
        idx = idx->producer->ins[0];
    while (idx->of)
        idx = idx->of;
    return idx;
}

bool exec_is_route(const etch_op *op)
{
    const char *name = etch_row_name(op->row);
    return strcmp(name, "dispatch") == 0 || strcmp(name, "collect") == 0;
}

/* All choices of a microbatch: the expert and the slot of each. */
typedef struct routing {
    const etch_tensor *idx;
    const etch_dim *experts, *slots;
    uint32_t *expert, *slot;
} routing;

/* Which of the ranks that a lane tells apart has the token; EXEC_NOWHERE where the lane is one of slots
 * alone. */
static uint32_t place_on(const exec_call *call, const exec_lane *lane, const etch_tensor *idx,
                         const uint32_t *index)
{
    for (uint32_t d = 0; d < idx->rank; d++)
        if (idx->dims[d] == lane->dim)
            return index[d] / (exec_size(call->env, lane->dim) / lane->parts) / lane->inside % lane->count;
    return EXEC_NOWHERE;
}

/* On which ranks' part of the slots a choice goes, as a number. */
static uint32_t cell_of(const exec_call *call, const exec_route *route, const etch_tensor *idx,
                        const uint32_t *index)
{
    uint32_t cell = 0;
    for (uint32_t l = 0; route && l < route->lane_count; l++) {
        uint32_t at = place_on(call, &route->lanes[l], idx, index);
        if (at != EXEC_NOWHERE)
            cell = cell * route->lanes[l].count + at;
    }
    return cell;
}

/* The n-th slot of the part that a choice goes to: lanes of slots alone spread those of a part. */
static uint32_t slot_of(const exec_call *call, const exec_route *route, const etch_tensor *idx,
                        const uint32_t *index, uint32_t n, uint32_t in_cell)
{
    uint32_t slot = 0, left = in_cell;
    for (uint32_t l = 0; route && l < route->lane_count; l++) {
        uint32_t at = place_on(call, &route->lanes[l], idx, index);
        if (at == EXEC_NOWHERE) {
            left /= route->lanes[l].count;
            at = n / left;
            n %= left;
        }
        slot = slot * route->lanes[l].count + at;
    }
    return slot * left + n;
}

static bool is_token(const etch_op *op, const etch_dim *dim)
{
    for (uint32_t i = 0; i < op->attrs.to.count; i++)
        if (op->attrs.from.at[i] == dim)
            return true;
    return false;
}

static const exec_route *route_in(const exec_call *call)
{
    const etch_tensor *idx = exec_route_indices(call->op);
    for (uint32_t i = 0; call->env->routes && i < call->env->routes->count; i++)
        if (call->env->routes->at[i].indices == idx &&
            call->env->routes->at[i].slots == call->op->attrs.to.at[0])
            return &call->env->routes->at[i];
    return NULL;
}

/* The dim of the slots' side that the tokens' side lacks, beside the slots. */
static const etch_dim *experts_dim(const etch_tensor *of_slots, const etch_tensor *of_tokens,
                                   const etch_dim *slots)
{
    for (uint32_t i = 0; i < of_slots->rank; i++)
        if (of_slots->dims[i] != slots && !etch_has_dim(of_tokens, of_slots->dims[i]))
            return of_slots->dims[i];
    return NULL;
}

/* Counts the choices in order, part by part. */
static routing route_all(exec_call *call, const etch_tensor *of_slots, const etch_tensor *of_tokens)
{
    const etch_op *op = call->op;
    const etch_tensor *indices = exec_route_indices(op);
    routing r = {.idx = op->ins[1], .slots = op->attrs.to.at[0]};
    r.experts = experts_dim(of_slots, of_tokens, r.slots);
    const exec_route *route = route_in(call);
    uint32_t cells = 1, groups = 1, index[EXEC_MAX_RANK] = {0};
    size_t count = 1;
    for (uint32_t l = 0; route && l < route->lane_count; l++)
        cells *= place_on(call, &route->lanes[l], r.idx, index) == EXEC_NOWHERE ? 1 : route->lanes[l].count;
    for (uint32_t i = 0; i < r.idx->rank; i++) {
        count *= exec_size(call->env, r.idx->dims[i]);
        groups *= is_token(op, r.idx->dims[i]) ? 1 : exec_size(call->env, r.idx->dims[i]);
    }
    const uint32_t experts = exec_size(call->env, r.experts), each = exec_size(call->env, r.slots) / cells;
    uint32_t *filled = ETCH_NEW_ARRAY(call->arena, (size_t)groups * cells * experts, uint32_t);
    r.expert = ETCH_NEW_ARRAY(call->arena, count, uint32_t);
    r.slot = ETCH_NEW_ARRAY(call->arena, count, uint32_t);
    for (size_t k = 0; k < count; k++) {
        uint32_t global[EXEC_MAX_RANK], group = 0;
        size_t rest = k;
        for (uint32_t i = r.idx->rank; i-- > 0; rest /= exec_size(call->env, r.idx->dims[i]))
            index[i] = (uint32_t)(rest % exec_size(call->env, r.idx->dims[i]));
        for (uint32_t i = 0; i < r.idx->rank; i++) {
            global[i] = in_job(call->env, r.idx->dims[i], index[i]);
            if (!is_token(op, r.idx->dims[i]))
                group = group * exec_size(call->env, r.idx->dims[i]) + index[i];
        }
        uint32_t cell = cell_of(call, route, r.idx, index);
        r.expert[k] = expert_of(call->env, indices, global, experts);
        uint32_t *n = &filled[(group * cells + cell) * experts + r.expert[k]];
        r.slot[k] = *n < each ? slot_of(call, route, r.idx, index, *n, each) : 0;
        ++*n;
    }
    for (size_t i = 0; i < (size_t)groups * cells * experts; i++)
        if (filled[i] != each)
            exec_fail(call->env, "%s: an expert has %u tokens of one rank, and %u slots for them",
                      etch_row_name(op->row), filled[i], each);
    return r;
}

/* ---- between tokens and slots -------------------------------------------------------------------------- */

/* The element of the slots' side for the choice that a walk is at; NULL when the rank does not hold it. */
static double *slot_at(exec_call *call, const routing *r, const exec_walk *w, const exec_array *of_slots,
                       double chosen)
{
    size_t k = 0, at = 0;
    for (uint32_t i = 0; i < r->idx->rank; i++)
        k = k * exec_size(call->env, r->idx->dims[i]) + exec_walk_index(w, r->idx->dims[i]);
    if (chosen != (double)r->expert[k])
        exec_fail(call->env, "%s: the indices say expert %g, not %u", etch_row_name(call->op->row), chosen,
                  r->expert[k]);
    for (uint32_t i = 0; i < of_slots->rank; i++) {
        const etch_dim *dim = of_slots->dims[i];
        uint32_t here = dim == r->experts ? r->expert[k]
                        : dim == r->slots ? r->slot[k]
                                          : exec_walk_index(w, dim);
        uint32_t place = exec_array_place(of_slots, i, here);
        if (place == EXEC_NOWHERE)
            return NULL;
        at = at * of_slots->held[i] + place;
    }
    return &of_slots->at[at];
}

typedef struct sides {
    exec_array *tokens, *slots;
    const etch_tensor *of_tokens, *of_slots;
    bool to_slots;
} sides;

/* Carries every choice over; what is there already is added to. */
static void carry(exec_call *call, sides s)
{
    const exec_array *idx = call->ins[1];
    routing r = route_all(call, s.of_slots, s.of_tokens);
    size_t carried = 0;
    if (!exec_arrays_agree(s.tokens, idx)) {
        exec_fail(call->env, "%s: %s meets %s", etch_row_name(call->op->row),
                  exec_array_text(call->arena, s.tokens), exec_array_text(call->arena, idx));
        return;
    }
    exec_walk w = exec_walk_over(2, (const exec_array *[]){s.tokens, idx});
    while (!call->env->failure && exec_walk_next(&w)) {
        double *slot = slot_at(call, &r, &w, s.slots, idx->at[w.at[1]]);
        if (slot && s.to_slots)
            *slot += s.tokens->at[w.at[0]];
        else if (slot)
            s.tokens->at[w.at[0]] += *slot;
        carried += slot != NULL;
    }
    if (s.to_slots && carried != exec_array_elements(s.slots))
        exec_fail(call->env, "%s fills %zu of the %zu slots of %s", etch_row_name(call->op->row), carried,
                  exec_array_elements(s.slots), exec_array_text(call->arena, s.slots));
}

static sides between(exec_call *call, bool from_tokens)
{
    exec_array *in = (exec_array *)(uintptr_t)call->ins[0], *out = call->outs[0];
    const etch_tensor *of_in = call->op->ins[0], *of_out = call->op->outs[0];
    return from_tokens ? (sides){in, out, of_in, of_out, true} : (sides){out, in, of_out, of_in, false};
}

void exec_run_dispatch(exec_call *call)
{
    carry(call, between(call, true));
}

void exec_run_collect_dx(exec_call *call)
{
    carry(call, between(call, true));
}

void exec_run_collect(exec_call *call)
{
    carry(call, between(call, false));
}

void exec_run_dispatch_dx(exec_call *call)
{
    carry(call, between(call, false));
}

/* ---- indices ------------------------------------------------------------------------------------------- */

/* Not what the scores say: routing is given, and even. */
void exec_run_topk(exec_call *call)
{
    const etch_tensor *idx = call->op->outs[0];
    const etch_dim *over = call->op->attrs.over.at[0];
    const exec_array *scores = call->ins[0];
    int at = exec_array_find(scores, over);
    if (at < 0 || scores->count[at] != exec_size(call->env, over))
        exec_fail(call->env, "topk sees %s only", exec_array_text(call->arena, scores));
    exec_walk w = exec_walk_over(1, (const exec_array *[]){call->outs[0]});
    while (exec_walk_next(&w)) {
        uint32_t index[EXEC_MAX_RANK];
        for (uint32_t i = 0; i < idx->rank; i++)
            index[i] = in_job(call->env, idx->dims[i], exec_walk_index(&w, idx->dims[i]));
        call->outs[0]->at[w.at[0]] = expert_of(call->env, idx, index, exec_size(call->env, over));
        call->flop += exec_size(call->env, over); /* one comparison with each score */
    }
}

void exec_run_load(exec_call *call)
{
    const exec_array *idx = call->ins[0];
    const etch_dim *over = call->op->attrs.over.at[0];
    double choices = 1;
    for (uint32_t i = 0; i < idx->rank; i++)
        choices *= exec_size(call->env, idx->dims[i]);
    exec_walk w = exec_walk_over(2, (const exec_array *[]){call->outs[0], idx});
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] += (idx->at[w.at[1]] == exec_walk_index(&w, over)) / choices;
}

/* ---- normalize ----------------------------------------------------------------------------------------- */

/* Sums along `over` of x, or of x times d. */
static exec_array *sums(exec_call *call, const exec_array *x, const exec_array *d)
{
    const etch_attrs *attrs = &call->op->attrs;
    exec_array *rows = exec_array_less(call->arena, x, attrs->over.at, attrs->over.count);
    exec_walk w = exec_walk_over(3, (const exec_array *[]){rows, x, d ? d : x});
    while (exec_walk_next(&w))
        rows->at[w.at[0]] += x->at[w.at[1]] * (d ? d->at[w.at[2]] : 1);
    int at = exec_array_find(x, attrs->over.at[0]);
    if (at < 0 || x->count[at] != exec_size(call->env, attrs->over.at[0]))
        exec_fail(call->env, "%s sees %s only", etch_row_name(call->op->row),
                  exec_array_text(call->arena, x));
    return rows;
}

void exec_run_normalize(exec_call *call)
{
    const exec_array *x = call->ins[0], *total = sums(call, x, NULL);
    exec_walk w = exec_walk_over(3, (const exec_array *[]){call->outs[0], x, total});
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] = x->at[w.at[1]] / total->at[w.at[2]];
}

void exec_run_normalize_dx(exec_call *call)
{
    const exec_array *d = call->ins[0], *x = call->ins[1];
    if (!exec_arrays_alike(d, x)) {
        exec_fail(call->env, "normalize_dx: %s meets %s", exec_array_text(call->arena, d),
                  exec_array_text(call->arena, x));
        return;
    }
    const exec_array *total = sums(call, x, NULL), *product = sums(call, x, d);
    exec_walk w = exec_walk_over(4, (const exec_array *[]){call->outs[0], d, total, product});
    while (exec_walk_next(&w)) {
        double s = total->at[w.at[2]];
        call->outs[0]->at[w.at[0]] = (d->at[w.at[1]] - product->at[w.at[3]] / s) / s;
    }
}
