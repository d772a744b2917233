/* What nodes of a rank's program read and make: where the makers of values are kept, and its peers. */
#include "lower/unroll_int.h"

uint64_t etch_register_index(const etch_unroller *u, const etch_body *body, uint32_t index)
{
    return body->first_register + u->at->run[body->depth] * body->register_count + index;
}

uint32_t *etch_register_at(const etch_unroller *u, const etch_body *body, uint32_t index)
{
    return &u->at->registers[etch_register_index(u, body, index)];
}

uint32_t etch_maker_of(const etch_unroller *u, etch_register reg)
{
    return reg.body ? *etch_register_at(u, reg.body, reg.index) : ETCH_NO_NODE;
}

void etch_unroll_wait_for_reads(etch_unroller *u, const etch_task *task)
{
    for (uint32_t i = 0; i < task->read_count; i++)
        etch_unroll_wait(u, etch_maker_of(u, task->reads[i]));
}

void etch_unroll_wait_for_gradients(etch_unroller *u, const etch_task *task)
{
    for (uint32_t i = 0; i < task->gradients.count; i++) {
        const etch_gradient *g = &u->outline->gradients.at[task->gradients.at[i]];
        etch_unroll_wait(u, u->gradients[g->first_register + u->at->run[g->depth]]);
    }
}

void etch_unroll_made(etch_unroller *u, const etch_task *task, const etch_body *body, uint32_t node)
{
    *etch_register_at(u, body, task->index) = node;
    for (uint32_t i = 0; i < task->gradients.count; i++) {
        const etch_gradient *g = &u->outline->gradients.at[task->gradients.at[i]];
        u->gradients[g->first_register + u->at->run[g->depth]] = node;
    }
}

uint16_t etch_unroll_peer(etch_unroller *u, etch_peer peer)
{
    uint32_t i = 0;
    while (i < u->peer_count && etch_peer_order(u->peers[i], peer) != 0)
        i++;
    if (i == u->peer_count)
        u->peers[u->peer_count++] = peer;
    return (uint16_t)i;
}
