/* The run: every node begins as soon as all that it waits for has ended. What a node waits for never depends
 * on times, so that the order in which nodes are looked at does not matter. Where kernels are slower beside
 * collectives it does: there a run goes through its moments in the order of time. */
#include <string.h>

#include "simulate/simulate_int.h"

typedef etch_simulated_place place;

/* A collective of a group that not all of its classes have come to. */
typedef struct meeting {
    uint64_t begins, error, launched;
    /* what the class waited for that has come last */
    place cause;
    uint32_t arrived;
} meeting;

/* Of a transfer. */
typedef struct timing {
    uint64_t begins, ends, error;
    place cause;
} timing;

typedef struct engine {
    etch_sim *sim;
    etch_sim_run *run;
    /* wants the events */
    bool events;
    /* nodes that wait for nothing any more */
    ETCH_VEC(place) ready;
    /* by group: its meetings, one for each collective */
    meeting **meetings;
    uint64_t left;
    bool overflows;
    /* NULL where kernels take as long as they do alone */
    etch_sim_pace *pace;
} engine;

#define UNKNOWN UINT64_MAX

/* ---- times --------------------------------------------------------------------------------------------- */

static void raise(uint64_t *at, uint64_t to)
{
    *at = *at > to ? *at : to;
}

/* The node has its times: those that wait for it wait for one thing less. */
static void settle(engine *e, place at, uint64_t begins, uint64_t ends, uint64_t error)
{
    etch_sim_agent *agent = &e->run->agents[at.class];
    const etch_sim_program *p = agent->program;
    agent->begins[at.node] = begins;
    agent->ends[at.node] = ends;
    agent->error[at.node] = error;
    raise(&e->run->step, ends);
    raise(&e->run->error, error);
    e->left--;
    for (uint32_t i = p->first_follower[at.node]; i < p->first_follower[at.node + 1]; i++) {
        const uint32_t next = p->follows[i];
        if (ends > agent->begins[next]) {
            agent->begins[next] = ends;
            agent->cause[next] = at;
        }
        raise(&agent->error[next], error);
        if (--agent->waits[next] == 0)
            ETCH_PUSH(e->sim->arena, &e->ready, (place){at.class, next});
    }
}

/* A collective, or a message, of the node begins. */
static void transfer(engine *e, place at, const timing *t)
{
    etch_sim_agent *agent = &e->run->agents[at.class];
    const bool collective = agent->program->of->nodes[at.node].type == ETCH_NODE_COLL;
    agent->cause[at.node] = t->cause;
    if (!e->pace) {
        settle(e, at, t->begins, t->ends, t->error);
        return;
    }
    agent->begins[at.node] = t->begins;
    agent->error[at.node] = t->error;
    etch_sim_pace_transfer(e->pace, t->begins, t->ends, at.class, at.node, collective);
}

static uint64_t end_of(engine *e, uint64_t begins, const etch_picoseconds *time)
{
    uint64_t ends;
    if (__builtin_add_overflow(begins, time->count, &ends) || ends > INT64_MAX) {
        e->overflows = true;
        ends = INT64_MAX;
    }
    return ends;
}

static void note_event(engine *e, const etch_sim_event *event)
{
    if (e->events)
        ETCH_PUSH(e->sim->arena, &e->run->events, *event);
}

/* The time of a number, of what communicates over the label or, as `label_count`, computes. */
static etch_picoseconds time_at(const etch_sim *sim, uint32_t timed, uint32_t label)
{
    return label == sim->free ? (etch_picoseconds){0} : sim->times.at[timed];
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

/* What may become of a time that kernels of the class take. */
static uint64_t longest(const engine *e, const etch_sim_agent *agent, uint64_t lasts)
{
    for (uint32_t f = 0; e->pace && f < e->sim->job->family_count; f++)
        if (agent->program->collective_count[f] > 0)
            return etch_sim_pace_longest(e->pace, lasts);
    return lasts;
}

static void compute(engine *e, place at)
{
    const etch_sim_agent *agent = &e->run->agents[at.class];
    const uint32_t timed = at.class == e->sim->slow_class
                               ? etch_sim_compute(e->sim, &agent->program->of->nodes[at.node], true)
                               : agent->program->detail[at.node];
    const etch_picoseconds found = time_at(e->sim, timed, e->sim->label_count), *time = &found;
    const uint64_t begins = agent->begins[at.node];
    note_event(e, &(etch_sim_event){.begins = begins,
                                    .lasts = longest(e, agent, time->count),
                                    .launched = etch_sim_launched(e->sim, at.node),
                                    .class = at.class,
                                    .other = UINT32_MAX,
                                    .group = UINT32_MAX});
    if (!e->pace) {
        settle(e, at, begins, end_of(e, begins, time), agent->error[at.node] + time->error);
        return;
    }
    agent->error[at.node] += longest(e, agent, time->error);
    etch_sim_pace_compute(e->pace, begins, time->count, at.class, at.node);
}

/* To or from the memory of the host, which no other rank takes part in. */
static void move(engine *e, place at)
{
    const etch_sim_agent *agent = &e->run->agents[at.class];
    const etch_class_program *p = agent->program->of;
    const uint32_t label = etch_sim_label_of(e->sim, p, &p->nodes[at.node]);
    const etch_picoseconds time = time_at(e->sim, agent->program->detail[at.node], label);
    const timing t = {agent->begins[at.node], end_of(e, agent->begins[at.node], &time),
                      agent->error[at.node] + time.error, agent->cause[at.node]};
    note_event(e, &(etch_sim_event){.begins = t.begins,
                                    .lasts = time.count,
                                    .launched = etch_sim_launched(e->sim, at.node),
                                    .class = at.class,
                                    .other = UINT32_MAX,
                                    .group = UINT32_MAX});
    transfer(e, at, &t);
}

/* Waits for the other classes of the group. All of them have as many collectives of the family. */
static void meet(engine *e, place at)
{
    etch_sim *sim = e->sim;
    const etch_sim_agent *agent = &e->run->agents[at.class];
    const etch_node *node = &agent->program->of->nodes[at.node];
    const uint32_t index = agent->program->detail[at.node];
    const uint32_t number = sim->groups_of[(size_t)at.class * sim->job->family_count + node->family];
    const etch_sim_group *group = &sim->groups.at[number];
    meeting *m = &e->meetings[number][index];
    raise(&m->launched, etch_sim_launched(sim, at.node));
    if (m->arrived == 0 || agent->begins[at.node] > m->begins) {
        m->begins = agent->begins[at.node];
        m->cause = agent->cause[at.node];
    }
    raise(&m->error, agent->error[at.node]);
    if (++m->arrived < group->class_count)
        return;
    const uint32_t timed = etch_sim_collective(sim, node, group->spread);
    const etch_picoseconds time = time_at(sim, timed, sim->family_label[node->family]);
    const timing t = {m->begins, end_of(e, m->begins, &time), m->error + time.error, m->cause};
    note_event(e, &(etch_sim_event){.begins = m->begins,
                                    .lasts = time.count,
                                    .launched = m->launched,
                                    .class = UINT32_MAX,
                                    .other = UINT32_MAX,
                                    .group = number});
    for (uint32_t i = 0; i < group->class_count; i++) {
        const etch_sim_program *p = e->run->agents[group->classes[i]].program;
        transfer(e, (place){group->classes[i], p->collectives[node->family][index]}, &t);
    }
}

/* The other end of a message. UINT32_MAX as its node: there is none. */
static place partner_of(const etch_sim *sim, const etch_sim_run *run, place at)
{
    const etch_class_program *p = run->agents[at.class].program->of;
    const etch_node *node = &p->nodes[at.node];
    const etch_peer peer = p->peers[node->peer];
    const uint32_t class = sim->class_of[etch_peer_rank(sim->job, peer, sim->first_rank[at.class])];
    return (place){class, etch_sim_partner(run->agents[class].program, etch_peer_back(peer), node->tag,
                                           node->type == ETCH_NODE_SEND)};
}

static etch_picoseconds message_time(etch_sim *sim, const etch_sim_agent *agent, place at)
{
    const uint32_t rank = sim->first_rank[at.class];
    const etch_node *node = &agent->program->of->nodes[at.node];
    const uint32_t peer = etch_peer_rank(sim->job, agent->program->of->peers[node->peer], rank);
    const uint32_t timed = etch_sim_message(sim, node->bytes, etch_sim_path(sim, rank, peer));
    return time_at(sim, timed, etch_sim_label_of(sim, agent->program->of, node));
}

/* A receive that is posted, of what has been sent. */
static void receive(engine *e, place at, place sent)
{
    const etch_sim_agent *mine = &e->run->agents[at.class], *theirs = &e->run->agents[sent.class];
    const bool last = mine->begins[at.node] > theirs->begins[sent.node];
    timing t = {.begins = last ? mine->begins[at.node] : theirs->begins[sent.node],
                .ends = theirs->arrives[sent.node],
                .error = mine->error[at.node],
                .cause = last ? mine->cause[at.node] : theirs->cause[sent.node]};
    raise(&t.ends, t.begins);
    raise(&t.error, theirs->error[sent.node]);
    transfer(e, at, &t);
}

/* A send waits for nobody, and a receive for what is sent. */
static void pass_eagerly(engine *e, place at)
{
    etch_sim *sim = e->sim;
    const place other = partner_of(sim, e->run, at);
    const etch_sim_agent *mine = &e->run->agents[at.class], *theirs = &e->run->agents[other.class];
    const bool both = other.node != UINT32_MAX && theirs->is_posted[other.node];
    mine->is_posted[at.node] = true;
    if (mine->program->of->nodes[at.node].type == ETCH_NODE_RECV) {
        if (both)
            receive(e, at, other);
        return;
    }
    const etch_picoseconds time = message_time(sim, mine, at);
    const timing t = {mine->begins[at.node], end_of(e, mine->begins[at.node], &time),
                      mine->error[at.node] + time.error, mine->cause[at.node]};
    note_event(e, &(etch_sim_event){.begins = t.begins,
                                    .lasts = time.count,
                                    .launched = etch_sim_launched(sim, at.node),
                                    .class = at.class,
                                    .other = other.class,
                                    .group = UINT32_MAX});
    mine->arrives[at.node] = t.ends;
    transfer(e, at, &t);
    if (both)
        receive(e, other, at);
}

/* Waits for the other side. */
static void pass(engine *e, place at)
{
    etch_sim *sim = e->sim;
    const place other = partner_of(sim, e->run, at);
    const etch_sim_agent *mine = &e->run->agents[at.class], *theirs = &e->run->agents[other.class];
    mine->is_posted[at.node] = true;
    if (other.node == UINT32_MAX || !theirs->is_posted[other.node])
        return;
    const etch_picoseconds time = message_time(sim, mine, at);
    const bool last = mine->begins[at.node] > theirs->begins[other.node];
    timing t = {.begins = last ? mine->begins[at.node] : theirs->begins[other.node],
                .error = mine->error[at.node],
                .cause = last ? mine->cause[at.node] : theirs->cause[other.node]};
    raise(&t.error, theirs->error[other.node]);
    t.error += time.error;
    t.ends = end_of(e, t.begins, &time);
    uint64_t launched = etch_sim_launched(sim, at.node);
    raise(&launched, etch_sim_launched(sim, other.node));
    note_event(e, &(etch_sim_event){.begins = t.begins,
                                    .lasts = time.count,
                                    .launched = launched,
                                    .class = at.class,
                                    .other = other.class,
                                    .group = UINT32_MAX});
    transfer(e, at, &t);
    transfer(e, other, &t);
}

static void begin(engine *e, place at)
{
    const etch_sim_agent *agent = &e->run->agents[at.class];
    const etch_node *node = &agent->program->of->nodes[at.node];
    if (node->type == ETCH_NODE_COMP)
        compute(e, at);
    else if (node->type == ETCH_NODE_COLL)
        meet(e, at);
    else if (etch_node_moves(node->type))
        move(e, at);
    else if (e->sim->cluster->eager)
        pass_eagerly(e, at);
    else
        pass(e, at);
}

/* ---- the run ------------------------------------------------------------------------------------------- */

static void set_agents(engine *e, const etch_sim_program *programs)
{
    etch_sim *sim = e->sim;
    e->run->agents = ETCH_NEW_ARRAY(sim->arena, sim->class_count, etch_sim_agent);
    for (uint32_t c = 0; c < sim->class_count; c++) {
        etch_sim_agent *agent = &e->run->agents[c];
        agent->program = &programs[sim->job->class_of[sim->first_rank[c]]];
        const uint32_t count = agent->program->of->node_count;
        agent->waits = ETCH_NEW_ARRAY(sim->arena, count, uint32_t);
        agent->begins = ETCH_NEW_ARRAY(sim->arena, count, uint64_t);
        agent->ends = ETCH_NEW_ARRAY(sim->arena, count, uint64_t);
        agent->cause = ETCH_NEW_ARRAY(sim->arena, count, place);
        agent->is_posted = ETCH_NEW_ARRAY(sim->arena, count, bool);
        agent->arrives = sim->cluster->eager ? ETCH_NEW_ARRAY(sim->arena, count, uint64_t) : NULL;
        agent->error = ETCH_NEW_ARRAY(sim->arena, count, uint64_t);
        e->left += count;
        for (uint32_t i = 0; i < count; i++) {
            agent->waits[i] = agent->program->waits[i];
            agent->begins[i] = etch_sim_launched(sim, i);
            agent->cause[i] = (place){UINT32_MAX, UINT32_MAX};
            agent->ends[i] = UNKNOWN;
            if (agent->waits[i] == 0)
                ETCH_PUSH(sim->arena, &e->ready, (place){c, i});
        }
    }
}

static void set_meetings(engine *e)
{
    etch_sim *sim = e->sim;
    e->meetings = ETCH_NEW_ARRAY(sim->arena, sim->groups.count, meeting *);
    for (uint32_t g = 0; g < sim->groups.count; g++) {
        const etch_sim_group *group = &sim->groups.at[g];
        uint32_t most = 0;
        for (uint32_t i = 0; i < group->class_count; i++) {
            const uint32_t count = e->run->agents[group->classes[i]].program->collective_count[group->family];
            most = count > most ? count : most;
        }
        e->meetings[g] = ETCH_NEW_ARRAY(sim->arena, most, meeting);
    }
}

/* The first node, of the first class, that never begins, or that begins and never ends. */
static void report_stall(const engine *e)
{
    const etch_sim *sim = e->sim;
    for (uint32_t c = 0; c < sim->class_count; c++) {
        const etch_sim_agent *agent = &e->run->agents[c];
        const etch_class_program *p = agent->program->of;
        for (uint32_t i = 0; i < p->node_count; i++) {
            if (agent->ends[i] != UNKNOWN || agent->waits[i] > 0)
                continue;
            etch_diag *diag = etch_error(sim->diags, ETCH_E_VERIFY_STALL, (etch_span){0, 0},
                                         "the ranks wait for each other for ever: rank %u in node %u, '%s'",
                                         sim->first_rank[c], i, p->names + p->nodes[i].name);
            if (!sim->cluster->eager)
                etch_note(diag, (etch_span){0, 0}, "a send waits until its receive is posted");
            etch_help(diag, "`etch verify DIR --%s` says of written traces who waits for whom",
                      sim->cluster->eager ? "eager" : "rendezvous");
            return;
        }
    }
}

/* Begins what waits for nothing any more; what its host has not launched yet waits for that. */
static void begin_ready(engine *e, uint64_t now)
{
    while (e->ready.count > 0 && !e->sim->lacks) {
        const place at = e->ready.at[--e->ready.count];
        const uint64_t launched = e->pace ? e->run->agents[at.class].begins[at.node] : now;
        if (launched > now)
            etch_sim_pace_wait(e->pace, launched, at.class, at.node);
        else
            begin(e, at);
    }
}

/* The rest of the run, in the order of time. */
static void go_on(engine *e)
{
    etch_sim_moment m;
    while (!e->sim->lacks && !e->overflows && etch_sim_pace_next(e->pace, &m)) {
        const place at = {m.class, m.node};
        const etch_sim_agent *agent = &e->run->agents[m.class];
        e->overflows = e->overflows || m.at >= INT64_MAX;
        if (m.begins)
            begin(e, at);
        else
            settle(e, at, agent->begins[m.node], m.at, agent->error[m.node]);
        begin_ready(e, m.at);
    }
}

bool etch_sim_go(etch_sim *sim, bool streams, etch_sim_run *run)
{
    *run = (etch_sim_run){0};
    engine e = {.sim = sim, .run = run, .events = streams};
    if (streams && sim->cluster->device->slowdown.digits != 0)
        e.pace = etch_sim_pace_new(sim->arena, sim->cluster->device->slowdown, sim->class_count);
    set_agents(&e, etch_sim_prepare(sim, streams));
    set_meetings(&e);
    begin_ready(&e, 0);
    if (e.pace)
        go_on(&e);
    if (e.overflows && !sim->lacks)
        sim->lacks = "the step takes longer than can be counted in picoseconds";
    if (sim->lacks)
        etch_error(sim->diags, ETCH_E_MACHINE_UNFIT, (etch_span){0, 0}, "%s", sim->lacks);
    else if (e.left > 0)
        report_stall(&e);
    return !sim->lacks && e.left == 0;
}
