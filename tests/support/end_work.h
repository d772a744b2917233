/* The end of a step as tests ask for it: what is done with one weight group. */
#ifndef END_WORK_H
#define END_WORK_H

#include "graph/graph.h"

typedef struct end_work {
    const etch_weight_group *weight_group;
    const etch_row *row; /* of the first weight */
    etch_collective collective;
    uint32_t axes;
    bool every_microbatch;
    etch_expr flop, bytes; /* of one group */
    ETCH_VEC(etch_tensor *) gradients;
} end_work;

typedef ETCH_VEC(end_work) end_works;

static inline etch_expr end_work_plus(etch_sym *sym, etch_expr sum, const etch_step_contribution *c,
                                      etch_expr amount)
{
    return amount ? etch_add(sym, sum, etch_mul(sym, c->copies, amount)) : sum;
}

static inline void end_work_add(const etch_placed *placed, end_work *work, const etch_step_contribution *c)
{
    etch_sym *sym = placed->training->graph->sym;
    ETCH_PUSH(placed->arena, &work->gradients, c->gradient);
    work->flop = end_work_plus(sym, work->flop, c, c->flop);
    work->bytes = end_work_plus(sym, work->bytes, c, c->read);
    work->bytes = end_work_plus(sym, work->bytes, c, c->written);
    work->bytes = end_work_plus(sym, work->bytes, c, c->payload);
    work->bytes = end_work_plus(sym, work->bytes, c, c->moved);
}

/* In the order of the end; of the norm one for each group. */
static inline end_works end_works_of(const etch_placed *placed, etch_end_role role)
{
    const etch_expr zero = etch_int(placed->training->graph->sym, 0);
    end_works found = {0};
    for (uint32_t t = 0; t < placed->program->end.count; t++) {
        const etch_step_task *task = placed->program->end.at[t];
        const etch_weight_group *group = NULL;
        for (uint32_t i = 0; task->end == role && i < task->contributions.count; i++) {
            const etch_step_contribution *c = &task->contributions.at[i];
            if (!c->group)
                continue;
            if (c->group != group) {
                const end_work work = {.weight_group = group = c->group,
                                       .row = c->row,
                                       .collective = task->collective,
                                       .axes = task->axes,
                                       .every_microbatch = task->when == ETCH_EACH_MICROBATCH,
                                       .flop = zero,
                                       .bytes = zero};
                ETCH_PUSH(placed->arena, &found, work);
            }
            end_work_add(placed, &found.at[found.count - 1], c);
        }
    }
    return found;
}

static inline end_works end_reductions(const etch_placed *placed)
{
    return end_works_of(placed, ETCH_END_REDUCE);
}

static inline end_works end_shared_reductions(const etch_placed *placed)
{
    return end_works_of(placed, ETCH_END_REDUCE_SHARED);
}

static inline end_works end_norms(const etch_placed *placed)
{
    return end_works_of(placed, ETCH_END_NORM);
}

static inline end_works end_updates(const etch_placed *placed)
{
    return end_works_of(placed, ETCH_END_UPDATE);
}

static inline end_works end_loads(const etch_placed *placed)
{
    return end_works_of(placed, ETCH_END_LOAD);
}

static inline end_works end_stores(const etch_placed *placed)
{
    return end_works_of(placed, ETCH_END_STORE);
}

static inline end_works end_gathers(const etch_placed *placed)
{
    return end_works_of(placed, ETCH_END_GATHER);
}

#endif
