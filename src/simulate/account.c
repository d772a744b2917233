/* Where time goes: what a class does at each moment of the run; the critical path; bounds of the step. */
#include <stdlib.h>

#include "simulate/simulate_int.h"

/* ---- one class ----------------------------------------------------------------------------------------- */

/* A collective or a message of the class. */
typedef struct transfer {
    uint64_t begins, ends;
    uint32_t node, label;
} transfer;

typedef ETCH_VEC(transfer) transfers;

static int by_begin(const void *a, const void *b)
{
    const transfer *x = a, *y = b;
    const int order = etch_order(x->begins, y->begins);
    return order ? order : etch_order(x->node, y->node);
}

static transfers transfers_of(const etch_sim *sim, const etch_sim_agent *agent, etch_arena *arena)
{
    const etch_class_program *p = agent->program->of;
    transfers all = {0};
    for (uint32_t i = 0; i < p->node_count; i++) {
        const etch_node *node = &p->nodes[i];
        if (node->type == ETCH_NODE_COMP)
            continue;
        const uint32_t label = etch_sim_label_of(sim, p, node);
        ETCH_PUSH(arena, &all, (transfer){agent->begins[i], agent->ends[i], i, label});
    }
    if (all.count > 1)
        qsort(all.at, all.count, sizeof *all.at, by_begin);
    return all;
}

/* Shares out the time in which the class does not compute: each moment to the transfer that began first of
 * those that run then, or to waiting. `*next`: transfers before it have ended. */
static void share_gap(const transfers *all, uint32_t *next, uint64_t from, uint64_t to, uint64_t *exposed,
                      uint64_t *waiting)
{
    while (from < to) {
        while (*next < all->count && all->at[*next].ends <= from)
            ++*next;
        const transfer *t = *next < all->count ? &all->at[*next] : NULL;
        const bool runs = t && t->begins <= from;
        uint64_t until = !t ? to : runs ? t->ends : t->begins;
        until = until < to ? until : to;
        *(runs ? &exposed[t->label] : waiting) += until - from;
        from = until;
    }
}

static void copy_times(const etch_sim *sim, const etch_sim_agent *agent, etch_simulated_class *out)
{
    const uint32_t count = agent->program->of->node_count;
    uint64_t *begins = ETCH_NEW_ARRAY(sim->results, count, uint64_t);
    uint64_t *lasts = ETCH_NEW_ARRAY(sim->results, count, uint64_t);
    for (uint32_t i = 0; i < count; i++) {
        begins[i] = agent->begins[i];
        lasts[i] = agent->ends[i] - agent->begins[i];
    }
    out->begins = begins;
    out->lasts = lasts;
}

void etch_sim_account(const etch_sim *sim, const etch_sim_run *run, uint32_t class, etch_simulated_class *out)
{
    const etch_sim_agent *agent = &run->agents[class];
    const etch_class_program *p = agent->program->of;
    etch_arena *arena = etch_arena_new(etch_arena_mem(sim->arena));
    const transfers all = transfers_of(sim, agent, arena);
    uint64_t *exposed = ETCH_NEW_ARRAY(sim->results, sim->label_count, uint64_t);
    uint64_t last = 0, end = 0;
    uint32_t next = 0;
    *out = (etch_simulated_class){.program = sim->job->class_of[sim->first_rank[class]],
                                  .first_rank = sim->first_rank[class],
                                  .rank_count = sim->rank_count[class],
                                  .exposed = exposed};
    for (uint32_t i = 0; i < p->node_count; i++) {
        end = agent->ends[i] > end ? agent->ends[i] : end;
        if (p->nodes[i].type != ETCH_NODE_COMP)
            continue;
        share_gap(&all, &next, last, agent->begins[i], exposed, &out->waiting);
        out->computing += agent->ends[i] - agent->begins[i];
        last = agent->ends[i];
    }
    share_gap(&all, &next, last, end, exposed, &out->waiting);
    out->idle = run->step - end;
    if (sim->options->times)
        copy_times(sim, agent, out);
    etch_arena_free(arena);
}

/* ---- the critical path --------------------------------------------------------------------------------- */

void etch_sim_critical(const etch_sim *sim, const etch_sim_run *run, etch_simulated *out)
{
    etch_simulated_place at = {UINT32_MAX, UINT32_MAX};
    ETCH_VEC(etch_simulated_place) path = {0};
    for (uint32_t c = 0; c < sim->class_count && at.class == UINT32_MAX; c++)
        for (uint32_t i = 0; i < run->agents[c].program->of->node_count && at.class == UINT32_MAX; i++)
            if (run->agents[c].ends[i] == run->step)
                at = (etch_simulated_place){c, i};
    for (; at.class != UINT32_MAX; at = run->agents[at.class].cause[at.node])
        ETCH_PUSH(sim->results, &path, at);
    for (uint32_t i = 0; i < path.count / 2; i++) {
        const etch_simulated_place first = path.at[i];
        path.at[i] = path.at[path.count - 1 - i];
        path.at[path.count - 1 - i] = first;
    }
    out->path = path.at;
    out->path_count = path.count;
}

/* ---- bounds -------------------------------------------------------------------------------------------- */

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Sorts by begin; what begins at once stays in its order. */
static void sort_events(etch_arena *arena, etch_sim_events *events, uint64_t most)
{
    etch_sim_event *from = events->at, *to = ETCH_NEW_ARRAY(arena, events->count, etch_sim_event);
    uint32_t *first = ETCH_NEW_ARRAY(arena, DIGITS + 1, uint32_t);
    for (unsigned shift = 0; shift < 64 && most >> shift != 0; shift += DIGIT_BITS) {
        for (uint32_t d = 0; d <= DIGITS; d++)
            first[d] = 0;
        for (uint32_t i = 0; i < events->count; i++)
            first[1 + (from[i].begins >> shift & (DIGITS - 1))]++;
        for (uint32_t d = 0; d < DIGITS; d++)
            first[d + 1] += first[d];
        for (uint32_t i = 0; i < events->count; i++)
            to[first[from[i].begins >> shift & (DIGITS - 1)]++] = from[i];
        etch_sim_event *other = from;
        from = to;
        to = other;
    }
    events->at = from;
}

bool etch_sim_upper(const etch_sim *sim, const etch_sim_run *run, uint64_t *upper)
{
    etch_sim_events events = run->events;
    uint64_t *free_from = ETCH_NEW_ARRAY(sim->arena, sim->class_count, uint64_t);
    *upper = 0;
    sort_events(sim->arena, &events, run->step);
    for (uint32_t i = 0; i < events.count; i++) {
        const etch_sim_event *event = &events.at[i];
        const bool meets = event->group != UINT32_MAX;
        const uint32_t pair[2] = {event->class, event->other};
        const uint32_t *classes = meets ? sim->groups.at[event->group].classes : pair;
        const uint32_t count = meets                        ? sim->groups.at[event->group].class_count
                               : event->other == UINT32_MAX ? 1
                                                            : 2;
        uint64_t at = event->launched;
        for (uint32_t k = 0; k < count; k++)
            at = free_from[classes[k]] > at ? free_from[classes[k]] : at;
        if (__builtin_add_overflow(at, event->lasts, &at) || at > INT64_MAX)
            return false;
        for (uint32_t k = 0; k < count; k++)
            free_from[classes[k]] = at;
        *upper = at > *upper ? at : *upper;
    }
    return true;
}

uint64_t etch_sim_busiest(const etch_sim *sim, const etch_sim_run *run)
{
    const uint32_t streams = etch_sim_streams(sim);
    uint64_t *busy = ETCH_NEW_ARRAY(sim->arena, streams, uint64_t), most = 0;
    for (uint32_t c = 0; c < sim->class_count; c++) {
        const etch_sim_agent *agent = &run->agents[c];
        for (uint32_t s = 0; s < streams; s++)
            busy[s] = 0;
        for (uint32_t i = 0; i < agent->program->of->node_count; i++) {
            const uint32_t stream = etch_sim_stream(sim, agent->program->of, &agent->program->of->nodes[i]);
            if (stream == UINT32_MAX || stream == 0)
                continue;
            busy[stream] += agent->ends[i] - agent->begins[i];
            most = busy[stream] > most ? busy[stream] : most;
        }
    }
    return most;
}
