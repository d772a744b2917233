/* Which edges of a program say something: a node that waits for one need not wait for what that waited for.
 * What is in a stream is in one order, so that of each stream it is enough to know how far a node waits. */
#include "simulate/simulate_int.h"

#include <string.h>

typedef struct reducing {
    const etch_sim *sim;
    const etch_class_program *program;
    etch_sim_edges *out;
    uint32_t streams;
    /* by node: its stream, or UINT32_MAX, and its place in it, from 1 on */
    uint32_t *stream, *place;
    uint32_t *placed; /* by stream */
    /* by node and stream: the last place that has ended when the node ends; itself counts */
    uint32_t *reach;
    /* by node: the place of the first computation that waits for it; 0: none yet */
    uint32_t *first_comp;
    /* the node at hand, and all that it waits for */
    uint32_t node;
    ETCH_VEC(uint32_t) found;
    /* by stream: the furthest that one of these reaches, which one, and the furthest of the others */
    uint32_t *most, *whose, *second;
} reducing;

static void find_reach(reducing *r)
{
    memset(r->most, 0, r->streams * sizeof *r->most);
    memset(r->second, 0, r->streams * sizeof *r->second);
    for (uint32_t i = 0; i < r->found.count; i++)
        for (uint32_t s = 0; s < r->streams; s++) {
            const uint32_t at = r->reach[(size_t)r->found.at[i] * r->streams + s];
            if (at > r->most[s]) {
                r->second[s] = r->most[s];
                r->most[s] = at;
                r->whose[s] = r->found.at[i];
            } else if (at > r->second[s]) {
                r->second[s] = at;
            }
        }
}

/* Does another one that the node waits for wait for it? */
static bool is_implied(const reducing *r, uint32_t before)
{
    const uint32_t s = r->stream[before];
    if (s != UINT32_MAX && (r->whose[s] == before ? r->second[s] : r->most[s]) >= r->place[before])
        return true;
    const uint32_t others = r->whose[0] == before ? r->second[0] : r->most[0];
    return r->first_comp[before] != 0 && others >= r->first_comp[before];
}

/* All that the node waits for has been found. */
static void end_node(reducing *r)
{
    const uint32_t node = r->node, s = etch_sim_stream(r->sim, r->program, &r->program->nodes[node]);
    uint32_t *reach = r->reach + (size_t)node * r->streams;
    r->found.count = r->found.count > 1 ? etch_sort_ids(r->found.at, r->found.count) : r->found.count;
    find_reach(r);
    memcpy(reach, r->most, r->streams * sizeof *reach);
    r->stream[node] = s;
    if (s != UINT32_MAX)
        reach[s] = r->place[node] = ++r->placed[s];
    for (uint32_t i = 0; i < r->found.count; i++) {
        const uint32_t before = r->found.at[i];
        if (!is_implied(r, before))
            ETCH_PUSH(r->sim->arena, &r->out->deps, before);
    }
    for (uint32_t i = 0; s == 0 && i < r->found.count; i++)
        if (r->first_comp[r->found.at[i]] == 0)
            r->first_comp[r->found.at[i]] = r->place[node];
    r->found.count = 0;
    r->out->first[++r->node] = r->out->deps.count;
}

static void find_edge(void *data, uint32_t before, uint32_t after)
{
    reducing *r = data;
    while (r->node < after)
        end_node(r);
    ETCH_PUSH(r->sim->arena, &r->found, before);
}

etch_sim_edges etch_sim_fewest_edges(const etch_sim *sim, const etch_class_program *program)
{
    const uint32_t count = program->node_count, streams = etch_sim_streams(sim);
    etch_arena *arena = sim->arena;
    etch_sim_edges out = {.first = ETCH_NEW_ARRAY(arena, (size_t)count + 1, uint32_t)};
    reducing r = {.sim = sim,
                  .program = program,
                  .out = &out,
                  .streams = streams,
                  .stream = ETCH_NEW_ARRAY(arena, count, uint32_t),
                  .place = ETCH_NEW_ARRAY(arena, count, uint32_t),
                  .placed = ETCH_NEW_ARRAY(arena, streams, uint32_t),
                  .reach = ETCH_NEW_ARRAY(arena, (size_t)count * streams, uint32_t),
                  .first_comp = ETCH_NEW_ARRAY(arena, count, uint32_t),
                  .most = ETCH_NEW_ARRAY(arena, streams, uint32_t),
                  .whose = ETCH_NEW_ARRAY(arena, streams, uint32_t),
                  .second = ETCH_NEW_ARRAY(arena, streams, uint32_t)};
    etch_sim_each_edge(sim, program, true, find_edge, &r);
    while (r.node < count)
        end_node(&r);
    return out;
}
