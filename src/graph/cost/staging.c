/* Room on the device for states of the optimizer that are in the memory of the host. */
#include "graph/cost/cost_int.h"

/* Weight groups that are updated one after the other, and are alike. */
typedef struct run {
    /* how many, and the bytes of one */
    etch_expr count, bytes;
} run;

typedef struct runs {
    etch_sym *sym;
    run *at;
    uint32_t count;
    /* how many groups are on the device at a time */
    etch_expr room;
} runs;

/* Groups from one end of a run on, and of the runs after it, or before it (`step` -1), as many as there is
 * room for. */
static etch_expr bytes_from(const runs *r, uint32_t first, int step)
{
    etch_expr left = r->room, sum = etch_int(r->sym, 0);
    for (uint32_t i = first; i < r->count && !etch_is_zero(left); i += (uint32_t)step) {
        const etch_expr taken = etch_min(r->sym, r->at[i].count, left);
        sum = etch_add(r->sym, sum, etch_mul(r->sym, taken, r->at[i].bytes));
        left = etch_sub(r->sym, left, taken);
    }
    return sum;
}

/* As groups come and go one by one, their bytes change evenly but where a run begins or ends: they are the
 * most with a run at its beginning as the first of them, or with one at its end as the last. */
static etch_expr most_bytes(const runs *r, etch_arena *arena)
{
    etch_expr *all = ETCH_NEW_ARRAY(arena, 2 * (size_t)r->count, etch_expr);
    for (uint32_t i = 0; i < r->count; i++) {
        all[2 * i] = bytes_from(r, i, 1);
        all[2 * i + 1] = bytes_from(r, i, -1);
    }
    return etch_max_of(r->sym, 2 * r->count, all);
}

etch_expr etch_staging_bytes(const etch_placed *placed, const etch_stage_view *view)
{
    enum { UPDATED_AND_STORED = 2 };
    etch_sym *sym = placed->training->graph->sym;
    const etch_step_tasks *end = &placed->program->end;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    runs r = {.sym = sym,
              .at = ETCH_NEW_ARRAY(scratch, end->count, run),
              .room = etch_int(sym, (int64_t)placed->plan->offload.ahead + UPDATED_AND_STORED)};
    for (uint32_t i = 0; i < end->count; i++)
        if (end->at[i]->end == ETCH_END_LOAD)
            r.at[r.count++] =
                (run){etch_step_group_runs(placed->program, view, end->at[i]), end->at[i]->bytes};
    const etch_expr most = r.count > 0 ? most_bytes(&r, scratch) : etch_int(sym, 0);
    etch_arena_free(scratch);
    return most;
}
