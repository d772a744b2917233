/* Nodes of a rank's program: their names, what they wait for, when they are issued. */
#include "lower/unroll_int.h"

#include <assert.h>
#include <string.h>

/* Adds to a text of so many bytes, without the NUL at its end. */
static void add_word(char *text, uint32_t *length, etch_word word)
{
    memcpy(text + *length, word.text, word.length);
    *length += word.length;
}

static void add_number(char *text, uint32_t *length, uint64_t number)
{
    char digits[20];
    uint32_t count = 0;
    do {
        digits[sizeof digits - ++count] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    add_word(text, length, (etch_word){digits + sizeof digits - count, count});
}

/* As the timeline tool of Chakra tells types of nodes apart: by these words in a name. */
static const char *type_word(uint8_t type)
{
    static const char *const words[] = {
        [ETCH_NODE_LOAD] = "MEM_LOAD_NODE",  [ETCH_NODE_STORE] = "MEM_STORE_NODE",
        [ETCH_NODE_COMP] = "COMP_NODE",      [ETCH_NODE_SEND] = "COMM_SEND_NODE",
        [ETCH_NODE_RECV] = "COMM_RECV_NODE", [ETCH_NODE_COLL] = "COMM_COLL_NODE"};
    return words[type];
}

void etch_prefix_begin(etch_unroller *u, bool in_microbatch, uint64_t microbatch)
{
    const bool full = u->outline->naming == ETCH_NAMES_FULL;
    etch_prefix *p = &u->at->prefix;
    p->length = 0;
    p->in_microbatch = in_microbatch;
    p->in_layer = false;
    p->microbatch = microbatch;
    if (full && in_microbatch)
        add_word(p->text, &p->length, etch_word_of(".mb"));
    if (in_microbatch)
        add_number(p->text, &p->length, microbatch);
    if (full) {
        add_word(p->text, &p->length, etch_word_of(".stage"));
        add_number(p->text, &p->length, u->stage);
    }
    p->text[p->length++] = '.';
}

void etch_prefix_extend(etch_prefix *p, etch_word loop, uint64_t iteration)
{
    if (!p->in_layer)
        p->layer = iteration;
    p->in_layer = true;
    add_word(p->text, &p->length, loop);
    add_number(p->text, &p->length, iteration);
    p->text[p->length++] = '.';
}

static uint32_t add_name(etch_unroller *u, const etch_task *task)
{
    const uint32_t start = u->name_bytes;
    const char *phase = etch_phase_name(task->phase);
    if (u->outline->naming == ETCH_NAMES_NONE)
        return 0; /* where an empty one stands */
    if (u->outline->naming == ETCH_NAMES_FULL) {
        add_word(u->names, &u->name_bytes, etch_word_of(type_word(task->type)));
        u->names[u->name_bytes++] = '.';
        add_word(u->names, &u->name_bytes, etch_word_of(phase));
    } else { /* F of forward, R, B, S, O */
        u->names[u->name_bytes++] = (char)(phase[0] - 'a' + 'A');
    }
    add_word(u->names, &u->name_bytes, (etch_word){u->at->prefix.text, u->at->prefix.length});
    add_word(u->names, &u->name_bytes, task->name);
    u->names[u->name_bytes++] = '\0';
    return start;
}

void etch_unroll_wait(etch_unroller *u, uint32_t maker)
{
    etch_lower_require(u->arena, maker != ETCH_UNMADE);
    if (maker != ETCH_NO_NODE)
        u->deps[u->dep_count++] = maker;
}

static void add_sums(etch_unroller *u, const etch_task *task, const etch_node *node)
{
    const uint32_t families = u->job->family_count, collectives = ETCH_COMM_KINDS * families;
    if (task->type == ETCH_NODE_COMP) {
        u->total->flop += task->flop;
        u->total->padded_flop += node->flop - task->flop;
        u->total->bytes += task->bytes;
        u->total->padded_bytes += node->bytes - task->bytes;
        return;
    }
    if (etch_node_moves(task->type)) {
        etch_host_total *moved = task->type == ETCH_NODE_LOAD ? &u->total->loads : &u->total->stores;
        moved->bytes += node->bytes;
        moved->count++;
        return;
    }
    const uint32_t messages = collectives + 2 * task->ring_place;
    etch_comm_total *row = &u->comm[task->type == ETCH_NODE_COLL ? task->collective * families + task->family
                                    : task->type == ETCH_NODE_SEND ? messages
                                                                   : messages + 1];
    row->bytes += task->bytes;
    row->padded += node->bytes - task->bytes;
    row->count++;
}

/* Says what is asked for and means something of the node. */
static void annotate(const etch_unroller *u, uint32_t id, const etch_task *task)
{
    const etch_prefix *at = &u->at->prefix;
    if (!u->annotated)
        return;
    const unsigned means = 1u << ETCH_ANNOTATION_PHASE | 1u << ETCH_ANNOTATION_OP_TYPE |
                           (unsigned)at->in_layer << ETCH_ANNOTATION_LAYER |
                           (unsigned)at->in_microbatch << ETCH_ANNOTATION_MICROBATCH |
                           (unsigned)(task->module != NULL) << ETCH_ANNOTATION_MODULE;
    u->annotated[id] =
        (etch_annotated){.given = means & u->outline->annotations,
                         .value = {[ETCH_ANNOTATION_PHASE] = {.text = etch_phase_name(task->phase)},
                                   [ETCH_ANNOTATION_LAYER] = {.number = at->layer},
                                   [ETCH_ANNOTATION_MICROBATCH] = {.number = at->microbatch},
                                   [ETCH_ANNOTATION_OP_TYPE] = {.text = task->op_type},
                                   [ETCH_ANNOTATION_MODULE] = {.text = task->module}}};
}

/* Fills the node of a task, with a name, and counts it. */
static void fill(etch_unroller *u, uint32_t id, const etch_task *task, uint32_t first_dep)
{
    const bool computes = task->type == ETCH_NODE_COMP;
    etch_node *node = &u->nodes[id];
    node->type = task->type;
    if (computes)
        node->workload = task->workload;
    node->collective = task->collective;
    node->family = task->family;
    node->flop = computes && task->flop == 0 ? 1 : task->flop;
    node->bytes = etch_node_bytes(task->type, task->flop, task->bytes, false);
    if (u->tasks)
        u->tasks[id] = task->number;
    node->name = add_name(u, task);
    node->first_dep = first_dep;
    node->dep_count = u->dep_count - first_dep;
    annotate(u, id, task);
    add_sums(u, task, node);
}

/* Notes what the node waits for. */
static void note_reach(etch_unroller *u, uint32_t id, const etch_node *node)
{
    etch_reach most = {0};
    for (uint32_t i = 0; i < node->dep_count; i++) {
        const etch_reach *parent = &u->reaches[u->deps[node->first_dep + i]];
        most.comm = parent->comm > most.comm ? parent->comm : most.comm;
        most.receive = parent->receive > most.receive ? parent->receive : most.receive;
        most.comp = parent->comp > most.comp ? parent->comp : most.comp;
    }
    if (node->type == ETCH_NODE_COMP) {
        u->window_comps[u->comp_count % ETCH_COMP_WINDOW] = id;
        most.comp = ++u->comp_count;
    }
    if (node->type == ETCH_NODE_RECV)
        most.receive = id + 1;
    else if (etch_node_communicates(node->type))
        most.comm = id + 1;
    u->reaches[id] = most;
    if (node->type != ETCH_NODE_COMP)
        return;
    if (u->late_comm == ETCH_NO_NODE || most.comm >= u->reaches[u->late_comm].comm)
        u->late_comm = id;
    if (u->late_recv == ETCH_NO_NODE || most.receive >= u->reaches[u->late_recv].receive)
        u->late_recv = id;
}

uint32_t etch_unroll_append(etch_unroller *u, const etch_task *task, uint32_t first_dep)
{
    const uint32_t id = u->node_count++;
    fill(u, id, task, first_dep);
    note_reach(u, id, &u->nodes[id]);
    return id;
}

/* A computation that waits for none of the last few waits for the earliest of them. */
static void keep_in_window(etch_unroller *u, uint32_t first_dep)
{
    uint32_t latest = 0;
    for (uint32_t i = first_dep; i < u->dep_count; i++) {
        const uint32_t comp = u->reaches[u->deps[i]].comp;
        latest = comp > latest ? comp : latest;
    }
    if (u->comp_count >= latest + ETCH_COMP_WINDOW)
        etch_unroll_wait(u, u->window_comps[u->comp_count % ETCH_COMP_WINDOW]);
}

uint32_t etch_unroll_issue(etch_unroller *u, const etch_task *task, uint32_t first_dep)
{
    const bool communicates = etch_node_communicates(task->type), computes = task->type == ETCH_NODE_COMP;
    bool inside = false; /* waits for a node of its interval */
    bool reads = false;  /* what the communication before it has brought */
    for (uint32_t i = first_dep; i < u->dep_count; i++)
        reads = reads || u->deps[i] == u->last_comm;
    if (communicates)
        etch_unroll_wait(u, u->last_comm);
    const uint32_t first_inside = communicates ? u->comm_interval_first : u->interval_first;
    for (uint32_t i = first_dep; i < u->dep_count; i++)
        inside = inside || u->deps[i] >= first_inside;
    if (!inside) {
        etch_unroll_wait(u, u->before_interval);
        etch_unroll_wait(u, u->ahead_comm);
        etch_unroll_wait(u, u->ahead_recv);
    }
    if (computes)
        keep_in_window(u, first_dep);
    u->dep_count = first_dep + etch_sort_ids(u->deps + first_dep, u->dep_count - first_dep);
    assert(u->dep_count == first_dep || u->deps[u->dep_count - 1] < u->node_count);
    const uint32_t id = etch_unroll_append(u, task, first_dep);
    if (communicates) {
        u->nodes[id].only_ordered = !reads && u->last_comm != ETCH_NO_NODE;
        u->last_comm = id;
    }
    if (computes)
        u->last_comp = id;
    return id;
}

void etch_unroll_begin_interval(etch_unroller *u)
{
    u->comm_interval_first = u->node_count;
    etch_unroll_begin_turn(u);
}

void etch_unroll_begin_turn(etch_unroller *u)
{
    u->interval_first = u->node_count;
    u->before_interval = u->last_comp;
    u->ahead_comm = u->ahead_recv = ETCH_NO_NODE;
    if (u->last_comp == ETCH_NO_NODE)
        return;
    const etch_reach *last = &u->reaches[u->last_comp];
    if (u->reaches[u->late_comm].comm > last->comm)
        u->ahead_comm = u->late_comm;
    if (u->reaches[u->late_recv].receive > last->receive)
        u->ahead_recv = u->late_recv;
}
