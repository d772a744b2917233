/* The nodes of an attention whose blocks go round. While a rank computes with one block it sends that on and
 * receives the next one. Forward begins with the rank's own block. Backward ends with it: a gradient begins
 * with the rank after that whose block it is of, each rank adds what it makes of it, and the last one sends
 * it home. It is sent beside the run for the next block.
 *
 * A receive is posted as soon as the memory is free that it writes to: that of the block before the one at
 * work, when it has been computed with and sent. */
#include "lower/unroll_int.h"

#include <inttypes.h>
#include <stdio.h>

/* One run through a ring. Blocks are numbered by how far back in the ring they are at home. */
typedef struct going {
    etch_unroller *u;
    const etch_task *task;
    const etch_ring_task *ring;
    /* the node that the first receives wait for; NO_NODE: there is none */
    uint32_t before;
    /* the last run; what it has left to add up, or its sum; NO_NODE: none yet */
    uint32_t last, sum;
    /* by block: what sends it on, what receives it; by sums made: the same of gradients */
    uint32_t *sent, *received, *sum_sent;
    /* of the first message */
    uint32_t tags;
} going;

enum { NAME_BYTES = ETCH_TASK_NAME + ETCH_TASK_NAME + ETCH_RING_NAME + 24 };

static etch_word name_of(char text[NAME_BYTES], const etch_task *task, const char *what, uint64_t number)
{
    snprintf(text, NAME_BYTES, "%.*s.%s%" PRIu64, (int)task->name.length, task->name.text, what, number);
    return etch_word_of(text);
}

static uint32_t message(going *g, const etch_task *of, bool sends, uint32_t number, uint64_t bytes,
                        uint32_t first_dep)
{
    etch_unroller *u = g->u;
    char text[NAME_BYTES];
    const etch_task task = {.type = sends ? ETCH_NODE_SEND : ETCH_NODE_RECV,
                            .bytes = bytes,
                            .phase = of->phase,
                            .op_type = sends ? "send" : "recv",
                            .module = of->module,
                            .ring_place = g->ring->axis + 1,
                            .name = name_of(text, of, sends ? "send" : "recv", number)};
    uint32_t id;
    if (sends) {
        id = etch_unroll_issue(u, &task, first_dep);
    } else {
        u->dep_count = first_dep + etch_sort_ids(u->deps + first_dep, u->dep_count - first_dep);
        id = etch_unroll_append(u, &task, first_dep);
    }
    u->nodes[id].peer = etch_unroll_peer(u, (etch_peer){.axis = g->ring->axis, .shift = sends ? 1 : -1});
    return id;
}

/* A computation that what comes next waits for, so that it is not posted long before. */
static uint32_t latest(const going *g)
{
    return g->sum != ETCH_NO_NODE ? g->sum : g->last != ETCH_NO_NODE ? g->last : g->before;
}

/* Sends block `block` on, and receives the one behind it. */
static void pass_block(going *g, uint32_t block)
{
    etch_unroller *u = g->u;
    const etch_task *out = g->ring->out;
    uint32_t first_dep = u->dep_count;
    if (block == 0)
        etch_unroll_wait_for_reads(u, out);
    else
        etch_unroll_wait(u, g->received[block]);
    g->sent[block] = message(g, out, true, block, g->ring->out_bytes, first_dep);
    u->nodes[g->sent[block]].tag = g->tags + block;
    first_dep = u->dep_count;
    etch_unroll_wait(u, latest(g));
    if (block > 1)
        etch_unroll_wait(u, g->sent[block - 1]);
    g->received[block + 1] = message(g, out, false, block + 1, g->ring->out_bytes, first_dep);
    u->nodes[g->received[block + 1]].tag = g->tags + block;
}

/* Receives what others have made of the gradient that this rank adds to next. `step`: from 1 on. */
static uint32_t receive_sum(going *g, uint32_t step)
{
    etch_unroller *u = g->u;
    const uint32_t first_dep = u->dep_count;
    etch_unroll_wait(u, latest(g));
    if (step > 1)
        etch_unroll_wait(u, g->sum_sent[step - 2]);
    const uint32_t id = message(g, g->ring->back, false, step, g->ring->back_bytes, first_dep);
    u->nodes[id].tag = g->tags + (uint32_t)g->ring->size - 1 + step - 1;
    return id;
}

/* Sends on what has been made of it by now; `sum` NO_NODE: nothing, zeros. */
static void send_sum(going *g, uint32_t step, uint32_t sum)
{
    etch_unroller *u = g->u;
    const uint32_t first_dep = u->dep_count;
    etch_unroll_wait(u, sum);
    g->sum_sent[step] = message(g, g->ring->back, true, step + 1, g->ring->back_bytes, first_dep);
    u->nodes[g->sum_sent[step]].tag = g->tags + (uint32_t)g->ring->size - 1 + step;
}

/* Computes with a block. The first run reads all that the op reads, the others what that has left. */
static void run_block(going *g, uint32_t block)
{
    etch_unroller *u = g->u;
    char text[NAME_BYTES];
    etch_task run = block == 0 ? g->ring->own : g->ring->other;
    const uint32_t first_dep = u->dep_count;
    run.name = name_of(text, g->task, "block", block);
    if (g->last == ETCH_NO_NODE) {
        etch_unroll_wait_for_reads(u, g->task);
        etch_unroll_wait_for_gradients(u, g->task);
    } else {
        run.bytes += g->ring->carried;
    }
    etch_unroll_wait(u, g->last);
    etch_unroll_wait(u, g->sum);
    if (block == 0)
        etch_unroll_wait_for_reads(u, g->ring->out);
    else
        etch_unroll_wait(u, g->received[block]);
    g->last = etch_unroll_issue(u, &run, first_dep);
}

static void add_up(going *g, uint32_t received, uint32_t step)
{
    etch_unroller *u = g->u;
    char text[NAME_BYTES];
    etch_task sum = g->ring->sum;
    const uint32_t first_dep = u->dep_count;
    sum.name = name_of(text, g->task, "sum", step);
    etch_unroll_wait(u, g->last);
    etch_unroll_wait(u, received);
    g->sum = etch_unroll_issue(u, &sum, first_dep);
}

static bool computes_with(const going *g, uint32_t block)
{
    return block < g->ring->runs;
}

static void go_forward(going *g)
{
    for (uint32_t block = 0; block < g->ring->size; block++) {
        if (block + 1 < g->ring->size)
            pass_block(g, block);
        if (computes_with(g, block))
            run_block(g, block);
    }
}

/* At step s a rank has the block s + 1, and at last its own. */
static void go_back(going *g)
{
    const uint32_t others = (uint32_t)g->ring->size - 1;
    uint32_t received = ETCH_NO_NODE;
    pass_block(g, 0);
    for (uint32_t step = 0; step < others; step++) {
        const uint32_t block = step + 1;
        uint32_t made = ETCH_NO_NODE;
        if (step + 1 < others)
            pass_block(g, block);
        if (step > 0)
            made = received = receive_sum(g, step);
        if (computes_with(g, block)) {
            run_block(g, block);
            made = g->last;
        }
        if (computes_with(g, block) && step > 0) {
            add_up(g, received, step);
            made = g->sum;
        }
        send_sum(g, step, made);
    }
    received = receive_sum(g, others);
    run_block(g, 0);
    add_up(g, received, others);
}

static uint32_t *nodes_new(const going *g)
{
    uint32_t *nodes = ETCH_NEW_ARRAY(g->u->arena, (size_t)g->ring->size + 1, uint32_t);
    for (uint32_t i = 0; i <= g->ring->size; i++)
        nodes[i] = ETCH_NO_NODE;
    return nodes;
}

uint32_t etch_unroll_ring(etch_unroller *u, const etch_task *task, const etch_body *body)
{
    const etch_ring_task *ring = task->ring;
    const uint32_t first_node = u->node_count;
    going g = {.u = u,
               .task = task,
               .ring = ring,
               .before = u->last_comp,
               .last = ETCH_NO_NODE,
               .sum = ETCH_NO_NODE,
               .tags = u->ring_messages};
    g.sent = nodes_new(&g);
    g.received = nodes_new(&g);
    g.sum_sent = nodes_new(&g);
    if (ring->back)
        go_back(&g);
    else
        go_forward(&g);
    u->ring_messages += (uint32_t)(ring->back ? 2 : 1) * ((uint32_t)ring->size - 1);
    etch_unroll_made(u, task, body, g.last);
    if (ring->back)
        etch_unroll_made(u, ring->back, body, g.sum);
    return first_node;
}
