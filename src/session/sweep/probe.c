/* Values of the last axis, as rows of a sweep: which are refused, and for which the statement holds. */
#include "session/sweep/solve_int.h"

typedef struct taking {
    const etch_solver *solver;
    const etch_sweep_block *block;
    etch_probe *probes;
} taking;

static etch_exact kept(etch_arena *arena, etch_exact value)
{
    value.text = etch_copy_string(arena, value.text);
    return value;
}

static void take(const taking *t)
{
    etch_arena *arena = t->solver->sweep->arena;
    for (uint32_t i = 0; i < t->block->count; i++) {
        const etch_exact *results = t->block->results[i];
        t->probes[i].state = ETCH_PROBE_REFUSED;
        if (!results)
            continue;
        const bool holds = etch_exact_holds(arena, t->solver->relation, results[0], results[1]);
        t->probes[i].state = holds ? ETCH_PROBE_HOLDS : ETCH_PROBE_FAILS;
        t->probes[i].left = kept(arena, results[0]);
        t->probes[i].right = kept(arena, results[1]);
    }
}

static etch_status probe_block(const etch_solver *s, etch_probe *probes, uint32_t count)
{
    etch_sweep *sweep = s->sweep;
    etch_sweep_block *block = NULL;
    etch_status status = etch_blocks_next(sweep, s->frame, &block);
    for (uint32_t i = 0; status == ETCH_OK && i < count; i++) {
        s->row[s->frame->axis_count - 1] = probes[i].value;
        status = etch_block_add(block, s->row);
    }
    if (status == ETCH_OK)
        status = etch_blocks_compute(sweep, s->threads);
    const taking t = {s, block, probes};
    if (status == ETCH_OK)
        take(&t);
    etch_blocks_free(sweep);
    return status;
}

etch_status etch_probe_all(const etch_solver *s, etch_probe *probes, uint32_t count)
{
    etch_status status = ETCH_OK;
    for (uint32_t at = 0; status == ETCH_OK && at < count; at += ETCH_SWEEP_BLOCK) {
        const uint32_t rest = count - at;
        status = probe_block(s, probes + at, rest < ETCH_SWEEP_BLOCK ? rest : ETCH_SWEEP_BLOCK);
    }
    return status;
}
