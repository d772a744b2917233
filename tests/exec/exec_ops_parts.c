#include "exec_ops_parts.h"

static exec_walk walk_of(const exec_array *array)
{
    return exec_walk_over(1, (const exec_array *[]){array});
}

static void missing(exec_call *call, const exec_array *array)
{
    exec_fail(call->env, "%s reads what is not there: only %s", etch_row_name(call->op->row),
              exec_array_text(call->arena, array));
}

/* ---- views --------------------------------------------------------------------------------------------- */

static bool begins_group(const etch_attrs *attrs, uint32_t pair)
{
    return attrs->from.at[pair] && attrs->to.at[pair];
}

/* The place that the dims on the result's side of a group have together: the last one runs fastest. */
static uint32_t place_together(const exec_call *call, const exec_walk *w, uint32_t first)
{
    const etch_attrs *attrs = &call->op->attrs;
    uint32_t index = 0;
    for (uint32_t m = first; m < attrs->to.count && (m == first || !begins_group(attrs, m)); m++)
        if (attrs->to.at[m])
            index = index * exec_size(call->env, attrs->to.at[m]) +
                    exec_position(call->env, attrs->to.at[m], exec_walk_index(w, attrs->to.at[m]));
    return index;
}

/* The index of the operand's dim of pair `pair`. */
static uint32_t index_before(const exec_call *call, const exec_walk *w, uint32_t pair)
{
    const etch_attrs *attrs = &call->op->attrs;
    uint32_t first = pair, inside = 1;
    while (!begins_group(attrs, first))
        first--;
    for (uint32_t m = pair + 1; m < attrs->to.count && !begins_group(attrs, m); m++)
        if (attrs->from.at[m])
            inside *= exec_size(call->env, attrs->from.at[m]);
    const etch_dim *dim = attrs->from.at[pair];
    return exec_index(call->env, dim, place_together(call, w, first) / inside % exec_size(call->env, dim));
}

static uint32_t index_in_operand(const exec_call *call, const exec_walk *w, const etch_dim *dim)
{
    const etch_attrs *attrs = &call->op->attrs;
    for (uint32_t m = 0; m < attrs->to.count; m++)
        if (attrs->from.at[m] == dim)
            return index_before(call, w, m);
    return exec_walk_index(w, dim);
}

/* The whole of what the result shows must be there, and nothing else. */
void exec_run_view(exec_call *call)
{
    const exec_array *x = call->ins[0];
    exec_array *y = call->outs[0];
    if (x->size != y->size)
        exec_fail(call->env, "%s: %s shows %s", etch_row_name(call->op->row), exec_array_text(call->arena, y),
                  exec_array_text(call->arena, x));
    exec_walk w = walk_of(y);
    while (!call->env->failure && exec_walk_next(&w)) {
        size_t at = 0;
        bool there = true;
        for (uint32_t i = 0; i < x->rank; i++) {
            uint32_t index = index_in_operand(call, &w, x->dims[i]);
            uint32_t place = exec_array_place(x, i, index);
            there = there && place != EXEC_NOWHERE;
            at = at * x->held[i] + place;
        }
        if (there)
            y->at[w.at[0]] = x->at[at];
        else
            missing(call, x);
    }
}

/* ---- parts --------------------------------------------------------------------------------------------- */

/* Which part holds the index `*index` of the whole; `*index` becomes that within the part. */
static uint32_t part_at(const exec_call *call, uint32_t *index)
{
    const etch_attrs *attrs = &call->op->attrs;
    for (uint32_t i = 0; i < attrs->to.count; i++) {
        uint32_t size = attrs->from.at[i] ? exec_size(call->env, attrs->from.at[i]) : 1;
        if (*index < size)
            return i;
        *index -= size;
    }
    exec_fail(call->env, "%s: the parts are smaller than the whole", etch_row_name(call->op->row));
    return 0;
}

void exec_run_concat(exec_call *call)
{
    const etch_attrs *attrs = &call->op->attrs;
    exec_walk w = walk_of(call->outs[0]);
    while (exec_walk_next(&w)) {
        uint32_t index = exec_walk_index(&w, attrs->to.at[0]), part = part_at(call, &index);
        const double *found = exec_walk_lookup(&w, call->ins[part], attrs->from.at[part], index);
        if (!found)
            missing(call, call->ins[part]);
        call->outs[0]->at[w.at[0]] = found ? *found : 0;
    }
}

void exec_run_split(exec_call *call)
{
    const etch_attrs *attrs = &call->op->attrs;
    uint32_t first = 0;
    for (uint32_t i = 0; i < attrs->to.count; i++) {
        exec_walk w = walk_of(call->outs[i]);
        while (exec_walk_next(&w)) {
            uint32_t index = attrs->from.at[i] ? exec_walk_index(&w, attrs->from.at[i]) : 0;
            const double *found = exec_walk_lookup(&w, call->ins[0], attrs->to.at[i], first + index);
            if (!found)
                missing(call, call->ins[0]);
            call->outs[i]->at[w.at[0]] = found ? *found : 0;
        }
        first += attrs->from.at[i] ? exec_size(call->env, attrs->from.at[i]) : 1;
    }
}

/* ---- zeros behind a dim -------------------------------------------------------------------------------- */

void exec_run_pad(exec_call *call)
{
    const etch_dim *from = call->op->attrs.from.at[0], *to = call->op->attrs.to.at[0];
    exec_walk w = walk_of(call->outs[0]);
    while (exec_walk_next(&w)) {
        uint32_t index = exec_walk_index(&w, to);
        const double *found = exec_walk_lookup(&w, call->ins[0], from, index);
        if (!found && index < exec_size(call->env, from))
            missing(call, call->ins[0]);
        call->outs[0]->at[w.at[0]] = found ? *found : 0;
    }
}

/* Elements that a rank does not hold are zero: another rank has them. */
void exec_run_pad_dx(exec_call *call)
{
    const etch_dim *from = call->op->attrs.from.at[0], *to = call->op->attrs.to.at[0];
    exec_walk w = walk_of(call->outs[0]);
    while (exec_walk_next(&w)) {
        const double *found = exec_walk_lookup(&w, call->ins[0], to, exec_walk_index(&w, from));
        call->outs[0]->at[w.at[0]] = found ? *found : 0;
    }
}
