/* Programs are run: one compute slot, one communication slot, the smallest id first among what is ready,
 * nodes that take any time. */
#include "suite.h"

#include "models.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS = 10, LONGEST = 50 };

typedef enum state { WAITING, RUNNING, DONE } state;

typedef struct machine {
    const etch_class_program *program;
    state *states;
    uint64_t *ends;
    uint64_t now;
    uint32_t done;
    bool busy[2]; /* computing, communicating */
} machine;

static bool is_ready(const machine *m, uint32_t id)
{
    const etch_node *node = &m->program->nodes[id];
    for (uint32_t i = 0; i < node->dep_count; i++)
        if (m->states[m->program->deps[node->first_dep + i]] != DONE)
            return false;
    return m->states[id] == WAITING;
}

static void start_ready(machine *m)
{
    for (uint32_t id = 0; id < m->program->node_count; id++) {
        bool communicates = m->program->nodes[id].type == ETCH_NODE_COLL;
        if (m->busy[communicates] || !is_ready(m, id))
            continue;
        m->busy[communicates] = true;
        m->states[id] = RUNNING;
        m->ends[id] = m->now + (uint64_t)(rand() % LONGEST) + 1;
    }
}

/* Ends what ends next; false when nothing runs. */
static bool advance(machine *m)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t id = 0; id < m->program->node_count; id++)
        if (m->states[id] == RUNNING && m->ends[id] < next)
            next = m->ends[id];
    if (next == UINT64_MAX)
        return false;
    m->now = next;
    for (uint32_t id = 0; id < m->program->node_count; id++)
        if (m->states[id] == RUNNING && m->ends[id] == next) {
            m->states[id] = DONE;
            m->busy[m->program->nodes[id].type == ETCH_NODE_COLL] = false;
            m->done++;
        }
    return true;
}

/* Microbatches of which something of the forward pass has been started, and not everything that computes
 * has been done. */
static uint32_t count_in_flight(const machine *m, int64_t micro)
{
    uint32_t in_flight = 0;
    for (int64_t batch = 0; batch < micro; batch++) {
        bool started = false, complete = true;
        for (uint32_t id = 0; id < m->program->node_count; id++) {
            const char *name = m->program->names + m->program->nodes[id].name;
            if (!strchr("FRB", name[0]) || atoi(name + 1) != batch ||
                m->program->nodes[id].type == ETCH_NODE_COLL)
                continue;
            started = started || m->states[id] != WAITING;
            complete = complete && m->states[id] == DONE;
        }
        in_flight += started && !complete;
    }
    return in_flight;
}

static void replay(etch_arena *arena, const etch_class_program *program, const shape *s)
{
    machine m = {.program = program};
    m.states = ETCH_NEW_ARRAY(arena, program->node_count, state);
    m.ends = ETCH_NEW_ARRAY(arena, program->node_count, uint64_t);
    do {
        start_ready(&m);
        ck_assert_uint_le(count_in_flight(&m, s->micro), 1);
    } while (advance(&m));
    ck_assert_msg(m.done == program->node_count, "%u of %u nodes end", (unsigned)m.done,
                  (unsigned)program->node_count);
}

static void every_program_ends(etch_arena *arena)
{
    srand(7);
    for (const shape *s = all_shapes; s->build; s++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        const etch_job *job = lower_built(build(own, s));
        for (int i = 0; i < RUNS; i++)
            replay(own, &job->programs[0], s);
        etch_arena_free(own);
    }
}

START_TEST(test_replay)
{
    etch_with_arena(every_program_ends);
}
END_TEST

/* Communication begins in the order of ids whatever takes how long: ranks of one program cannot wait for
 * each other. */
static void collectives_are_in_one_chain(etch_arena *arena)
{
    for (const shape *s = all_shapes; s->build; s++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        const etch_class_program *program = &lower_built(build(own, s))->programs[0];
        uint32_t before = UINT32_MAX;
        for (uint32_t id = 0; id < program->node_count; id++) {
            const etch_node *node = &program->nodes[id];
            bool waits = before == UINT32_MAX;
            if (node->type != ETCH_NODE_COLL)
                continue;
            for (uint32_t i = 0; i < node->dep_count; i++)
                waits = waits || program->deps[node->first_dep + i] == before;
            ck_assert(waits);
            before = id;
        }
        etch_arena_free(own);
    }
}

START_TEST(test_chain)
{
    etch_with_arena(collectives_are_in_one_chain);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("replay");
    ETCH_ADD_TESTS(suite, test_replay, test_chain);
    return suite;
}
