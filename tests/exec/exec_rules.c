/* What numbers cannot show: a graph that computes the right thing, and does or keeps more than it says. */
#include "exec_check.h"

#include "graph/ir/row.h"

#include <string.h>

/* ---- partial sums ----------------------------------------------------------------------------------- */

static bool is_row(const etch_step *step, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(etch_row_name(step->row), *names) == 0)
            return true;
    return false;
}

static const char *const views[] = {"identity",     "stop_gradient", "transpose", "rename",
                                    "renamed_back", "cache",         "slice",     "slice_dx",
                                    "split",        "pad",           "pad_dx",    NULL};

/* Does the dim stand for another of the operand, because a window stops less often? */
static bool replaces(const etch_step *step, const etch_dim *dim)
{
    static const char *const windows[] = {"conv", "conv_dx", "avg_pool", "avg_pool_dx", NULL};
    const etch_attrs *attrs = &step->op->attrs;
    return is_row(step, windows) && (etch_dim_among(attrs->from, dim) || etch_dim_among(attrs->to, dim));
}

/* Does a collective move the value over the axis, under whatever name, before anything is added to it? */
static bool is_moved(const etch_placed *placed, const etch_value *value, uint32_t axis)
{
    for (etch_placed_cursor at = {.root = placed->backward}; etch_placed_cursor_next(&at);) {
        const etch_step *step = at.item->step;
        const bool reads = step && step->in_count == 1 && step->ins[0] == value;
        if (reads && (step->axes >> axis & 1 ||
                      (step->op && is_row(step, views) && is_moved(placed, step->outs[0], axis))))
            return true;
    }
    return false;
}

/* Has the result no dims that operand `i` lacks? */
static bool has_no_more_dims(const etch_step *step, uint32_t i)
{
    for (uint32_t d = 0; d < step->op->outs[0]->rank; d++)
        if (!etch_has_dim(step->op->ins[i], etch_op_dim_linked(step->op, step->op->outs[0]->dims[d])) &&
            !etch_has_dim(step->op->ins[i], step->op->outs[0]->dims[d]) &&
            !replaces(step, step->op->outs[0]->dims[d]))
            return false;
    return true;
}

/* May a partial sum that the step is given as operand `i` come out as one? A cotangent may where a product
 * makes more of it, if that has no reduction of its own. */
static bool may_pass(const etch_placed *placed, const etch_step *step, uint32_t i, uint32_t axis)
{
    static const char *const joint[] = {"add", "sub", "add_cotangents", "concat", NULL};
    static const char *const each[] = {
        "cast",       "cast_dx", "einsum",      "sum",  "negated_sum", "scale",    "rope",        "rope_dx",
        "accumulate", "collect", "dispatch_dx", "conv", "conv_dx",     "avg_pool", "avg_pool_dx", NULL};
    static const char *const first[] = {"div", "div_db", NULL}, *const products[] = {"einsum", NULL};
    const bool is_each = is_row(step, each) || (i == 0 && is_row(step, first));
    for (uint32_t k = 0; k < step->in_count; k++) {
        bool partial = step->ins[k]->place[axis] == ETCH_PARTIAL;
        if (k != i && partial != is_row(step, joint))
            return false;
    }
    const bool is_cotangent = step->phase == ETCH_BACKWARD && is_row(step, products);
    if (is_each && !has_no_more_dims(step, i) && !(is_cotangent && !is_moved(placed, step->outs[0], axis)))
        return false;
    return is_row(step, joint) || is_each || is_row(step, views);
}

/* May a partial maximum? Only the largest of what ranks have as the largest is the largest of all. */
static bool may_pass_maximum(const etch_step *step)
{
    static const char *const maxima[] = {"max", NULL};
    return is_row(step, maxima) || is_row(step, views);
}

static const char *check_step(const etch_placed *placed, const etch_step *step)
{
    if (strcmp(etch_row_name(step->row), "accumulate") == 0 && !step->accumulate_into[0])
        return etch_text(placed->arena, "%s is added into nothing", step->outs[0]->tensor->name);
    for (uint32_t a = 0; a < placed->plan->mesh.count; a++)
        for (uint32_t i = 0; i < step->in_count; i++)
            if (step->ins[i]->place[a] == ETCH_PARTIAL && !may_pass(placed, step, i, a))
                return etch_text(placed->arena, "%s is given %s as a partial sum", etch_row_name(step->row),
                                 step->ins[i]->tensor->name);
            else if (step->ins[i]->place[a] == ETCH_PARTIAL_MAX && !may_pass_maximum(step))
                return etch_text(placed->arena, "%s is given %s as a partial maximum",
                                 etch_row_name(step->row), step->ins[i]->tensor->name);
    return NULL;
}

/* ---- reductions ------------------------------------------------------------------------------------- */

typedef struct reductions {
    const etch_placed *placed;
    const etch_placed_region **home; /* by value id: where it is made */
    bool *resolved; /* by value id: forward has a copy without partial sums in the same place */
    bool *viewed;   /* by value id: it has another name, and a copy of that may be the one that was reduced */
} reductions;

static bool is_partial(const reductions *r, const etch_value *value)
{
    for (uint32_t a = 0; a < r->placed->plan->mesh.count; a++)
        if (value->place[a] == ETCH_PARTIAL || value->place[a] == ETCH_PARTIAL_MAX)
            return true;
    return false;
}

/* Backward takes what forward has reduced. */
static const char *check_move(const reductions *r, const etch_placed_region *here, const etch_step *step)
{
    const etch_value *from = step->ins[0];
    if (step->phase == ETCH_BACKWARD)
        return r->resolved[from->id] && !r->viewed[from->id]
                   ? etch_text(r->placed->arena, "%s is reduced again", from->tensor->name)
                   : NULL;
    if (is_partial(r, from) && !is_partial(r, step->outs[0]) && r->home[from->id] == here)
        r->resolved[from->id] = true;
    return NULL;
}

/* ---- recomputation ---------------------------------------------------------------------------------- */

/* Does the region run the item of a forward region again: the op, or the loop by a loop of its own? */
static bool repeats_item(const etch_region *region, const etch_item *item)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_op *op = region->items.at[i].op;
        const etch_loop *loop = region->items.at[i].loop;
        if (op && op->phase == ETCH_RECOMPUTE && op->forward == item->op)
            return true;
        if (loop && loop->repeats && loop->repeats == item->loop)
            return true;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            if (repeats_item(loop->bodies.at[k], item))
                return true;
    }
    return false;
}

/* Does the region run all that is in the loop's bodies again? */
static bool repeats(const etch_region *region, const etch_loop *loop)
{
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        for (uint32_t i = 0; i < loop->bodies.at[k]->items.count; i++)
            if (!repeats_item(region, &loop->bodies.at[k]->items.at[i]))
                return false;
    return true;
}

static bool enters(const etch_region *body, const etch_tensor *tensor)
{
    for (uint32_t i = 0; i < body->carries.count; i++)
        if (body->carries.at[i].in == tensor)
            return true;
    return false;
}

/* Of a loop that is run again nothing is saved but what enters its iterations, and those of no loop in it. */
static const char *check_saved(const etch_placed *placed, const etch_tensor *tensor)
{
    const etch_loop *loop = tensor->region->loop, *outer = loop ? exec_outer(loop) : NULL;
    const etch_region *backward = placed->training->backward;
    bool given = tensor->kind == ETCH_WEIGHT || tensor->kind == ETCH_INPUT || tensor->constant;
    if (!loop || given || !repeats(backward, loop))
        return NULL;
    bool is_forward = !tensor->producer || tensor->producer->phase == ETCH_FORWARD;
    if (!is_forward || tensor->of || (enters(tensor->region, tensor) && !(outer && repeats(backward, outer))))
        return NULL;
    return etch_text(placed->arena, "backward reads %s of a loop that is run again", tensor->name);
}

/* ---- all steps -------------------------------------------------------------------------------------- */

static const char *check_region(const reductions *r, const etch_placed_region *region)
{
    const char *failure = NULL;
    for (uint32_t i = 0; i < region->items.count && !failure; i++) {
        const etch_step *step = region->items.at[i].step;
        for (uint32_t k = 0; step && k < step->out_count; k++)
            r->home[step->outs[k]->id] = region;
        if (step && is_row(step, views))
            r->viewed[step->ins[0]->id] = true;
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count && !failure; k++)
            failure = check_region(r, loop->bodies.at[k]);
        if (!step)
            continue;
        if (step->collective != ETCH_NO_COLLECTIVE)
            failure = check_move(r, region, step);
        else
            failure = check_step(r->placed, step);
        for (uint32_t k = 0; step && !failure && step->phase != ETCH_FORWARD && k < step->in_count; k++)
            failure = check_saved(r->placed, step->ins[k]->tensor);
    }
    return failure;
}

const char *exec_check_rules(const etch_placed *placed)
{
    const reductions r = {
        .placed = placed,
        .home = ETCH_NEW_ARRAY(placed->arena, placed->value_count, const etch_placed_region *),
        .resolved = ETCH_NEW_ARRAY(placed->arena, placed->value_count, bool),
        .viewed = ETCH_NEW_ARRAY(placed->arena, placed->value_count, bool),
    };
    const char *failure = check_region(&r, placed->forward);
    return failure || !placed->backward ? failure : check_region(&r, placed->backward);
}
