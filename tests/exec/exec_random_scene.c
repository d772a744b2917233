#include "exec_random_scene.h"

#include "exec_env.h"

#include <string.h>

enum { MAX_ELEMENTS = 1024 };

void exec_mark(exec_scene *s, exec_kind kind)
{
    s->m->kinds |= 1u << kind;
}

const char *exec_fresh(exec_scene *s, const char *prefix)
{
    return etch_text(s->m->arena, "%s%u", prefix, s->names++);
}

etch_tensor *exec_any_value(exec_scene *s)
{
    uint32_t back = exec_roll(s->dice, 3) ? 3 : s->value_count;
    return s->values[s->value_count - 1 - exec_roll(s->dice, back < s->value_count ? back : s->value_count)];
}

etch_dim *exec_any_dim(exec_scene *s, const etch_tensor *x)
{
    uint32_t start = exec_roll(s->dice, x->rank);
    for (uint32_t i = 0; i < x->rank; i++) {
        etch_dim *dim = x->dims[(start + i) % x->rank];
        if (strcmp(dim->name, "B") != 0)
            return dim;
    }
    return NULL;
}

etch_dim *exec_new_dim(exec_scene *s, const etch_tensor *x)
{
    for (int tries = 0; tries < 8; tries++) {
        etch_dim *dim = exec_model_dim(s->m, exec_inner_dims[exec_roll(s->dice, EXEC_INNER_DIMS)]);
        if (!etch_has_dim(x, dim))
            return dim;
    }
    return NULL;
}

const char *exec_dims_text(exec_scene *s, exec_dim_set set)
{
    etch_buf text = {.arena = s->m->arena};
    etch_buf_puts(&text, "");
    for (uint32_t i = 0; i < set.count; i++)
        etch_buf_printf(&text, "%s ", set.at[i]->name);
    return text.text;
}

bool exec_is_small(exec_dim_set set)
{
    uint32_t elements = 1;
    for (uint32_t i = 0; i < set.count; i++)
        elements *= exec_integer(set.at[i]->size);
    return set.count <= 4 && elements <= MAX_ELEMENTS;
}

etch_tensor *exec_weight_with(exec_scene *s, exec_dim_set set)
{
    for (uint32_t i = 0; i < s->weight_count && exec_roll(s->dice, 3) == 0; i++) {
        if (s->weights[i]->scope != s->m->graph->scope)
            continue;
        exec_dim_set both = exec_dims_of(s->weights[i], NULL);
        for (uint32_t k = 0; k < set.count; k++)
            exec_dim_set_add(&both, set.at[k]);
        if (both.count == set.count && s->weights[i]->rank == set.count)
            return s->weights[i];
    }
    etch_tensor *weight = exec_weight(s->m, exec_fresh(s, "w"), exec_dims_text(s, set));
    if (s->weight_count < EXEC_MOST_VALUES)
        s->weights[s->weight_count++] = weight;
    return weight;
}

void exec_keep_value(exec_scene *s, etch_tensor *value)
{
    if (exec_roll(s->dice, 4) == 0 && value->producer)
        exec_tag(s->m, value, etch_text(s->m->arena, "t%u", exec_roll(s->dice, 4)));
    if (s->value_count < EXEC_MOST_VALUES)
        s->values[s->value_count++] = value;
}

etch_tensor *exec_squashed(exec_scene *s, etch_tensor *x)
{
    static const char *const functions[] = {"tanh", "sigmoid"};
    return exec_call_row(s->m, exec_fresh(s, "u"), functions[exec_roll(s->dice, 2)], "", x, NULL, NULL);
}

etch_tensor *exec_left(exec_scene *s, const char *prefix, etch_tensor *value, uint32_t op_count)
{
    etch_tensor *left = exec_leave(s->m, exec_fresh(s, prefix), value);
    etch_graph_state(s->m->graph, left, op_count);
    return left;
}
