#include "exec_chain.h"
#include "exec_env.h"

#include "graph/place/steps.h"

#include <string.h>

/* Chunks along the chain: as many layers as are counted for each, or dealt out one by one from the first
 * chunk on. */
static void deal(exec_chain *chain)
{
    const etch_stage_line *line = chain->placed->plan->stage;
    const uint32_t links = chain->chunk_count / chain->copies;
    uint32_t low = 0;
    for (uint32_t c = 0; c < links; c++) {
        uint32_t layers = 0;
        for (uint32_t p = c; p < chain->positions && !line->counts; p += links)
            layers++;
        if (line->counts)
            layers = c < line->count_count ? exec_integer(line->counts[c]) : 0;
        chain->chunks[c] = (exec_interval){low, low + layers};
        low += layers;
    }
    for (uint32_t c = links; c < chain->chunk_count; c++)
        chain->chunks[c] = chain->chunks[c - links];
}

/* From stage to stage; behind the last one from the first again, or back as it came, as a second copy of the
 * chain does. */
static void walk(exec_chain *chain)
{
    const bool returns = etch_schedule_map(chain->placed->plan->stage->schedule) != ETCH_MAP_LOOPED;
    uint32_t stage = 0;
    bool back = false;
    for (uint32_t c = 0; c < chain->chunk_count; c++) {
        chain->stage_of[c] = stage;
        const bool at_end = back ? stage == 0 : stage + 1 == chain->stages;
        if (!at_end)
            stage = back ? stage - 1 : stage + 1;
        else if (returns)
            back = !back;
        else
            stage = 0;
    }
}

uint32_t exec_chain_link(const exec_chain *chain, uint32_t stage, uint32_t chunk)
{
    for (uint32_t c = 0; c < chain->chunk_count; c++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < chain->chunk_count; k++)
            before += chain->stage_of[k] == stage && chain->chunks[k].low < chain->chunks[c].low;
        if (chain->stage_of[c] == stage && before == chunk)
            return c;
    }
    return UINT32_MAX;
}

bool exec_chain_begins(const exec_chain *chain, uint32_t link)
{
    return link % (chain->chunk_count / chain->copies) == 0;
}

bool exec_chain_ends(const exec_chain *chain, uint32_t link)
{
    return exec_chain_begins(chain, link + 1);
}

exec_chain exec_chain_new(etch_arena *arena, const etch_placed *placed)
{
    const etch_stage_line *line = placed->plan->stage;
    const etch_stages *stages = placed->stages;
    exec_chain chain = {.placed = placed, .stages = 1, .chunk_count = 1, .copies = 1};
    if (!stages) {
        chain.chunks = ETCH_NEW(arena, exec_interval);
        chain.stage_of = ETCH_NEW(arena, uint32_t);
        return chain;
    }
    for (uint32_t i = 0; i < line->axis_count; i++)
        chain.stages *= exec_integer(placed->plan->mesh.at[line->axes[i]].size);
    chain.first = ETCH_NEW_ARRAY(arena, stages->segments.count, uint32_t);
    chain.count = ETCH_NEW_ARRAY(arena, stages->segments.count, uint32_t);
    for (uint32_t i = 0; i < stages->segments.count; i++) {
        const etch_loop *loop = stages->segments.at[i].loop;
        chain.first[i] = chain.positions;
        chain.count[i] = loop ? exec_integer(loop->count) : 1;
        chain.positions += chain.count[i];
    }
    chain.chunk_count = chain.stages * exec_integer(line->chunks);
    chain.copies = strcmp(etch_schedule_name(line->schedule), "dualpipe") == 0 ? 2 : 1;
    chain.chunks = ETCH_NEW_ARRAY(arena, chain.chunk_count, exec_interval);
    chain.stage_of = ETCH_NEW_ARRAY(arena, chain.chunk_count, uint32_t);
    deal(&chain);
    walk(&chain);
    return chain;
}

etch_pipe exec_chain_pipe(const exec_chain *chain)
{
    const etch_stage_line *line = chain->placed->plan->stage;
    return (etch_pipe){.schedule = line ? line->schedule : etch_schedule_default(),
                       .stages = chain->stages,
                       .chunks = chain->chunk_count / chain->stages,
                       .microbatches = exec_integer(chain->placed->training->train.micro),
                       .trains = chain->placed->backward != NULL};
}

bool exec_chain_fits(const exec_chain *chain)
{
    if (!chain->placed->stages)
        return true;
    const etch_pipe pipe = exec_chain_pipe(chain);
    if (!etch_pipe_fits(etch_diags_new(chain->placed->arena), (etch_span){0, 0}, &pipe))
        return false;
    for (uint32_t c = 0; c < chain->chunk_count; c++)
        if (chain->chunks[c].low == chain->chunks[c].high)
            return false;
    for (uint32_t i = 0; i < chain->placed->stages->segments.count; i++)
        if (chain->count[i] == 0)
            return false;
    return chain->chunks[chain->chunk_count - 1].high == chain->positions;
}

uint32_t exec_chain_layers(const exec_chain *chain, etch_position home)
{
    const uint32_t entry = etch_position_segment(home);
    const bool is_loop = chain->placed->stages->segments.at[entry].loop != NULL;
    return is_loop && etch_position_side(home) == ETCH_ALL_OF ? entry : UINT32_MAX;
}

uint32_t exec_chain_position(const exec_chain *chain, etch_position home)
{
    const uint32_t entry = etch_position_segment(home);
    return chain->first[entry] + (etch_position_side(home) == ETCH_LAST_OF ? chain->count[entry] - 1 : 0);
}

bool exec_chain_has(exec_interval interval, uint32_t position)
{
    return interval.low <= position && position < interval.high;
}

const etch_cut *exec_chain_cut(const exec_chain *chain, uint32_t position)
{
    const etch_stages *stages = chain->placed->stages;
    for (uint32_t i = 0; i < stages->cuts.count; i++) {
        const etch_cut *cut = &stages->cuts.at[i];
        const uint32_t first = chain->first[cut->segment], end = first + chain->count[cut->segment];
        if (cut->inside ? first < position && position < end : first == position)
            return cut;
    }
    return NULL;
}

static bool is_idle(const etch_placed *placed, const etch_step *step);

/* Does a step other than one that is a name or a part, or a loop, read the value, or a part of it? */
static bool is_read(const etch_placed *placed, const etch_value *value)
{
    for (etch_placed_cursor at = {.root = placed->forward, .then = placed->backward};
         etch_placed_cursor_next(&at);) {
        const etch_step *step = at.item->step;
        const etch_placed_loop *loop = at.item->loop;
        for (uint32_t i = 0; step && i < step->in_count; i++)
            if (step->ins[i] == value && (!etch_step_shows(step) || !is_idle(placed, step)))
                return true;
        for (uint32_t b = 0; loop && b < loop->bodies.count; b++)
            for (uint32_t k = 0; k < loop->bodies.at[b]->carries.count; k++)
                if (loop->bodies.at[b]->carries.at[k].init == value ||
                    loop->bodies.at[b]->carries.at[k].out == value)
                    return true;
    }
    return false;
}

static bool is_idle(const etch_placed *placed, const etch_step *step)
{
    for (uint32_t i = 0; i < step->out_count; i++)
        if (is_read(placed, step->outs[i]))
            return false;
    return true;
}

bool exec_is_nowhere(const etch_placed *placed, const etch_step *step)
{
    return etch_step_shows(step) &&
           (etch_op_is_view(step->op) || step->outs[0]->tensor->region->loop || is_idle(placed, step));
}
