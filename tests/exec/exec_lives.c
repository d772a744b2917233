/* How long arrays of the first rank live: from the step that makes one to the last that reads it, or to the
 * end of what it is part of. */
#include "exec_ranks.h"

#include "graph/step/kernel.h"

void exec_ranks_birth(exec_ranks *ranks, const etch_tensor *tensor, exec_array *array, uint32_t rank)
{
    if (rank != 0 || array->bytes > 0)
        return;
    array->born = array->read = ranks->now;
    array->microbatch = ranks->env.microbatch;
    array->bytes = (uint32_t)array->size * etch_dtype_bytes(tensor->dtype);
    ETCH_PUSH(ranks->env.arena, &ranks->made, array);
}

void exec_ranks_begin(exec_ranks *ranks, const etch_step *step, uint32_t output, exec_array *made,
                      uint32_t rank)
{
    if (step->accumulate_into[output] || step->row->stays & ETCH_EXTRA_OF(output))
        return;
    exec_ranks_birth(ranks, step->outs[output]->tensor, made, rank);
    if (step->ring && step->outs[output]->blocks)
        made->bytes *= exec_blocks_back(ranks, step->ring);
}

uint32_t exec_array_end(const exec_array *array)
{
    return array->together && *array->together > array->read ? *array->together : array->read;
}

uint64_t exec_ranks_most(const exec_ranks *ranks)
{
    uint64_t most = 0, now = 0;
    uint64_t *change = ETCH_NEW_ARRAY(ranks->env.arena, 2 * ((size_t)ranks->now + 2), uint64_t);
    uint64_t *gone = change + ranks->now + 2;
    for (uint32_t i = 0; i < ranks->made.count; i++) {
        const exec_array *array = ranks->made.at[i];
        if (array->is_kept)
            continue;
        change[array->born] += array->bytes;
        gone[exec_array_end(array)] += array->bytes;
    }
    for (uint32_t t = 0; t <= ranks->now; t++) {
        now += change[t];
        most = now > most ? now : most;
        now -= gone[t];
    }
    return most;
}

void exec_ranks_whole(exec_ranks *ranks, const etch_step *step, uint32_t output, exec_array *sum)
{
    const etch_tensor *weight = step->accumulate_into[output]->of;
    if (!etch_zero_divides(ranks->placed, weight, ETCH_HOLDS_GRADIENT))
        return;
    exec_ranks_birth(ranks, step->outs[output]->tensor, sum, 0);
    sum->read = ranks->now;
    for (uint32_t i = 0; i < ranks->placed->weight_groups.count; i++)
        for (uint32_t k = 0; k < ranks->placed->weight_groups.at[i]->weights.count; k++)
            if (ranks->placed->weight_groups.at[i]->weights.at[k] == weight && !weight->region->loop &&
                !etch_zero_of(ranks->placed, weight)->by_weight)
                sum->together = &ranks->group_read[i];
    if (sum->together)
        *sum->together = ranks->now;
    if (weight->region->loop)
        ETCH_PUSH(ranks->values.arena, &ranks->of_iteration, sum);
}

/* What forward has made for backward, or the first half of backward for the second, is not read by who only
 * hands it on. */
void exec_ranks_hand_on(const exec_ranks *ranks, const etch_placed_region *body, exec_array *array)
{
    const bool is_derived = body->of->loop->forward || body->of->loop->repeats;
    const bool is_of_first_half = ranks->skips[0] && array->born < ranks->pass_began;
    if (!(array->made_as && is_derived) && !is_of_first_half)
        array->read = ranks->now;
}

void exec_ranks_end_iteration(exec_ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->of_iteration.count; i++)
        ranks->of_iteration.at[i]->read = ranks->now;
    ranks->of_iteration.count = 0;
}
