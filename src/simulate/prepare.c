/* Programs as the engine wants them: who waits for a node, the order of streams, and the other ends of
 * messages. */
#include <stdlib.h>

#include "simulate/simulate_int.h"

uint32_t etch_sim_label_of(const etch_sim *sim, const etch_class_program *program, const etch_node *node)
{
    if (node->type == ETCH_NODE_COLL)
        return sim->family_label[node->family];
    if (etch_node_moves(node->type))
        return node->type == ETCH_NODE_LOAD ? sim->load_label : sim->store_label;
    const etch_peer peer = program->peers[node->peer];
    return peer.shift ? sim->ring_label[peer.axis] : sim->message_label;
}

uint32_t etch_sim_stream(const etch_sim *sim, const etch_class_program *program, const etch_node *node)
{
    if (node->type == ETCH_NODE_COMP)
        return 0;
    if (node->type == ETCH_NODE_RECV)
        return UINT32_MAX;
    if (sim->options->one_stream)
        return 1;
    return 1 + etch_sim_label_of(sim, program, node);
}

uint32_t etch_sim_streams(const etch_sim *sim)
{
    return 1 + (sim->label_count ? sim->label_count : 1);
}

uint64_t etch_sim_launched(const etch_sim *sim, uint32_t node)
{
    return sim->options->stack ? sim->options->stack->launch * (node + UINT64_C(1)) : 0;
}

static int by_key(const void *a, const void *b)
{
    const etch_sim_message_key *x = a, *y = b;
    const int order = etch_peer_order(x->peer, y->peer);
    if (order)
        return order;
    return x->tag != y->tag ? etch_order(x->tag, y->tag) : x->receives - y->receives;
}

uint32_t etch_sim_partner(const etch_sim_program *other, etch_peer peer, uint32_t tag, bool receives)
{
    const etch_sim_message_key key = {.peer = peer, .tag = tag, .receives = receives};
    const etch_sim_message_key *found =
        other->message_count ? bsearch(&key, other->messages, other->message_count, sizeof key, by_key)
                             : NULL;
    return found ? found->node : UINT32_MAX;
}

static bool is_message(const etch_node *node)
{
    return node->type == ETCH_NODE_SEND || node->type == ETCH_NODE_RECV;
}

static void list_messages(const etch_sim *sim, etch_sim_program *p)
{
    for (uint32_t i = 0; i < p->of->node_count; i++)
        p->message_count += is_message(&p->of->nodes[i]);
    p->messages = ETCH_NEW_ARRAY(sim->arena, p->message_count, etch_sim_message_key);
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->of->node_count; i++) {
        const etch_node *node = &p->of->nodes[i];
        if (is_message(node))
            p->messages[count++] = (etch_sim_message_key){.peer = p->of->peers[node->peer],
                                                          .tag = node->tag,
                                                          .receives = node->type == ETCH_NODE_RECV,
                                                          .node = i};
    }
    if (count > 1)
        qsort(p->messages, count, sizeof *p->messages, by_key);
}

static void list_collectives(const etch_sim *sim, etch_sim_program *p)
{
    const uint32_t families = sim->job->family_count;
    p->collectives = ETCH_NEW_ARRAY(sim->arena, families, uint32_t *);
    p->collective_count = ETCH_NEW_ARRAY(sim->arena, families, uint32_t);
    for (uint32_t i = 0; i < p->of->node_count; i++)
        if (p->of->nodes[i].type == ETCH_NODE_COLL)
            p->detail[i] = p->collective_count[p->of->nodes[i].family]++;
    for (uint32_t f = 0; f < families; f++)
        p->collectives[f] = ETCH_NEW_ARRAY(sim->arena, p->collective_count[f], uint32_t);
    for (uint32_t i = 0; i < p->of->node_count; i++)
        if (p->of->nodes[i].type == ETCH_NODE_COLL)
            p->collectives[p->of->nodes[i].family][p->detail[i]] = i;
}

void etch_sim_each_edge(const etch_sim *sim, const etch_class_program *p, bool streams, etch_sim_edge_fn edge,
                        void *data)
{
    const uint32_t stream_count = etch_sim_streams(sim);
    uint32_t *last = ETCH_NEW_ARRAY(sim->arena, stream_count, uint32_t), last_comm = UINT32_MAX;
    for (uint32_t s = 0; s < stream_count; s++)
        last[s] = UINT32_MAX;
    for (uint32_t i = 0; i < p->node_count; i++) {
        const etch_node *node = &p->nodes[i];
        const uint32_t stream = etch_sim_stream(sim, p, node);
        const bool free = node->only_ordered && (!sim->options->one_stream || !streams);
        for (uint32_t k = 0; k < node->dep_count; k++)
            if (!free || p->deps[node->first_dep + k] != last_comm)
                edge(data, p->deps[node->first_dep + k], i);
        if (stream == UINT32_MAX)
            continue;
        if ((streams || stream == 0) && last[stream] != UINT32_MAX)
            edge(data, last[stream], i);
        last[stream] = i;
        last_comm = etch_node_communicates(node->type) ? i : last_comm;
    }
}

static void count_edge(void *data, uint32_t before, uint32_t after)
{
    etch_sim_program *p = data;
    p->first_follower[before]++;
    p->waits[after]++;
}

/* From the end of each list to its beginning. */
static void put_edge(void *data, uint32_t before, uint32_t after)
{
    etch_sim_program *p = data;
    p->follows[--p->first_follower[before]] = after;
}

static void prepare(etch_sim *sim, const etch_class_program *of, bool streams, etch_sim_program *p)
{
    const uint32_t count = of->node_count;
    p->of = of;
    p->first_follower = ETCH_NEW_ARRAY(sim->arena, (size_t)count + 1, uint32_t);
    p->waits = ETCH_NEW_ARRAY(sim->arena, count, uint32_t);
    p->detail = ETCH_NEW_ARRAY(sim->arena, count, uint32_t);
    etch_sim_each_edge(sim, of, streams, count_edge, p);
    for (uint32_t i = 1; i <= count; i++)
        p->first_follower[i] += p->first_follower[i - 1];
    p->follows = ETCH_NEW_ARRAY(sim->arena, p->first_follower[count], uint32_t);
    etch_sim_each_edge(sim, of, streams, put_edge, p);
    for (uint32_t i = 0; i < count; i++)
        if (of->nodes[i].type == ETCH_NODE_COMP)
            p->detail[i] = etch_sim_compute(sim, &of->nodes[i], false);
        else if (etch_node_moves(of->nodes[i].type))
            p->detail[i] = etch_sim_move(sim, of->nodes[i].bytes);
    list_collectives(sim, p);
    list_messages(sim, p);
}

etch_sim_program *etch_sim_prepare(etch_sim *sim, bool streams)
{
    etch_sim_program *all = ETCH_NEW_ARRAY(sim->arena, sim->job->program_count, etch_sim_program);
    for (uint32_t i = 0; i < sim->job->program_count; i++)
        prepare(sim, &sim->job->programs[i], streams, &all[i]);
    return all;
}
