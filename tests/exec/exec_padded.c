/* What is padded, and what a rank computes of padding: as much as if it were elements. An op is run once more
 * where sizes are what the plan pads them to, with zeros for the padding. */
#include "exec_ranks.h"

#include <string.h>

bool exec_is_padded(const etch_placed *placed, const char *dim)
{
    const etch_graph *graph = placed->training->graph;
    const exec_mesh mesh = exec_mesh_of(graph, placed->plan);
    for (uint32_t t = 0; t < graph->tensors.count; t++)
        for (uint32_t i = 0; i < graph->tensors.at[t]->rank; i++) {
            const etch_dim *has = graph->tensors.at[t]->dims[i];
            const uint32_t size = exec_integer(etch_training_size(placed->training, has));
            if ((!dim || strcmp(has->name, dim) == 0) && exec_mesh_padded(&mesh, has, size) != size)
                return true;
        }
    return false;
}

static bool is_padded(const exec_ranks *ranks, const etch_value *value)
{
    for (uint32_t i = 0; i < value->tensor->rank; i++) {
        const uint32_t size = exec_size(&ranks->env, value->tensor->dims[i]);
        if (exec_mesh_padded(&ranks->mesh, value->tensor->dims[i], size) != size)
            return true;
    }
    return false;
}

static bool has_padding(const exec_ranks *ranks, const etch_step *step)
{
    for (uint32_t i = 0; i < step->in_count; i++)
        if (is_padded(ranks, step->ins[i]))
            return true;
    for (uint32_t i = 0; i < step->out_count; i++)
        if (is_padded(ranks, step->outs[i]))
            return true;
    return false;
}

static exec_env padded_env(const exec_ranks *ranks)
{
    const etch_graph *graph = ranks->placed->training->graph;
    exec_env env = ranks->env;
    env.size = ETCH_NEW_ARRAY(ranks->values.arena, graph->dims.count, uint32_t);
    for (uint32_t i = 0; i < graph->dims.count; i++)
        env.size[i] = exec_mesh_padded(&ranks->mesh, graph->dims.at[i], ranks->env.size[i]);
    return env;
}

/* What the rank holds of the value, or its group together over `axes`: nothing of it is padding. */
static exec_array *all_elements(exec_ranks *ranks, const exec_env *env, const etch_value *value,
                                uint32_t axes, uint32_t rank)
{
    etch_state place[ETCH_MAX_AXES] = {NULL};
    for (uint32_t a = 0; a < ranks->mesh.axes; a++)
        place[a] = axes & (1u << a) ? NULL : value->place[a];
    exec_array *array = ETCH_NEW(ranks->values.arena, exec_array);
    *array = exec_mesh_part(&ranks->mesh, env, value->tensor, place, rank);
    exec_array_fill(ranks->values.arena, array);
    return array;
}

/* Routes are chosen along dims that are not padded, where indices are the same. */
static exec_array *with_zeros(exec_array *array, const exec_array *elements)
{
    exec_walk w = exec_walk_over(1, (const exec_array *[]){elements});
    while (exec_walk_next(&w)) {
        double *element = exec_walk_lookup(&w, array, NULL, 0);
        if (element)
            *element = elements->at[w.at[0]];
    }
    return array;
}

int64_t exec_ranks_flop(exec_ranks *ranks, const etch_step *step, const exec_call *run, uint32_t gathered,
                        uint32_t rank)
{
    if (exec_rule_of(etch_row_name(step->row))->flop == 0 || !has_padding(ranks, step))
        return run->flop;
    exec_env env = padded_env(ranks);
    exec_call call = {.env = &env, .arena = run->arena, .op = run->op, .salt = run->salt};
    for (uint32_t i = 0; i < step->in_count; i++)
        call.ins[i] = with_zeros(all_elements(ranks, &env, step->ins[i],
                                              gathered | (exec_goes_round(step, i) ? step->ring : 0), rank),
                                 run->ins[i]);
    for (uint32_t i = 0; i < step->out_count; i++)
        call.outs[i] = all_elements(ranks, &env, step->outs[i], step->outs[i]->blocks ? step->ring : 0, rank);
    exec_op(&call);
    if (env.failure)
        exec_fail(&ranks->env, "with padding: %s", env.failure);
    return call.flop;
}
