/* A run of all ranks: one compute slot and one communication slot each, ready nodes in the order of their
 * ids, receives beside the slots. What has not been touched yet costs nothing: a rank holds its ready
 * nodes and those some of whose parents are finished. */
#include "trace/verify_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The network of nominal durations: a microsecond, and 50 GB/s. */
enum { LATENCY = 1000, NETWORK_BYTES_PER_NANOSECOND = 50, CANCEL_EVERY = 1 << 16 };

typedef struct etch_event {
    uint64_t time, order;
    uint32_t rank, node;
} etch_event;

uint32_t etch_program_id(const etch_rank_program *program, uint32_t node)
{
    return program->ids ? program->ids[node] : node;
}

etch_mail_key etch_message_key(const etch_rank *rank, uint32_t number, const etch_comm *comm)
{
    const uint32_t peer = rank->peers[comm->local];
    const bool sends = comm->work == ETCH_WORK_SEND;
    return (etch_mail_key){.size = comm->size,
                           .source = sends ? number : peer,
                           .target = sends ? peer : number,
                           .tag = rank->tags[comm->message]};
}

static const etch_comm *comm_of(const etch_run *r, uint32_t rank, uint32_t node)
{
    const etch_rank_program *p = r->ranks[rank].program;
    return &p->comms[p->values[node]];
}

/* ---- time ---------------------------------------------------------------------------------------------- */

/* xorshift64*; spread over three orders of magnitude, so that ranks drift far apart. */
static uint64_t random_time(etch_run *r)
{
    r->seed ^= r->seed >> 12;
    r->seed ^= r->seed << 25;
    r->seed ^= r->seed >> 27;
    const uint64_t number = r->seed * UINT64_C(0x2545f4914f6cdd1d) >> 16;
    return 1 + number % 100 * (number >> 20 & 15 ? 1 : 100);
}

static uint64_t time_of_compute(etch_run *r, uint32_t rank, uint32_t node)
{
    if (r->timing == ETCH_TIMING_RANDOM)
        return random_time(r);
    return r->timing == ETCH_TIMING_NONE ? 0 : r->ranks[rank].program->values[node];
}

static uint64_t time_of_comm(etch_run *r, const etch_comm *comm)
{
    if (r->timing == ETCH_TIMING_RANDOM)
        return random_time(r);
    return r->timing == ETCH_TIMING_NONE ? 0 : LATENCY + comm->size / NETWORK_BYTES_PER_NANOSECOND;
}

/* ---- events -------------------------------------------------------------------------------------------- */

static bool is_before(const etch_event *a, const etch_event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void push_later(etch_run *r, etch_event event)
{
    r->later = etch_reserve(r->later, r->later_count, &r->later_capacity, sizeof *r->later, &r->failed);
    if (r->failed)
        return;
    uint32_t at = r->later_count++;
    for (; at > 0 && is_before(&event, &r->later[(at - 1) / 2]); at = (at - 1) / 2)
        r->later[at] = r->later[(at - 1) / 2];
    r->later[at] = event;
}

static etch_event pop_later(etch_run *r)
{
    const etch_event first = r->later[0], last = r->later[--r->later_count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < r->later_count; at = child) {
        if (child + 1 < r->later_count && is_before(&r->later[child + 1], &r->later[child]))
            child++;
        if (!is_before(&r->later[child], &last))
            break;
        r->later[at] = r->later[child];
    }
    r->later[at] = last;
    return first;
}

static bool enlarge_now(etch_run *r)
{
    const uint32_t larger = r->now_capacity ? 2 * r->now_capacity : 256;
    uint64_t *ring = larger > r->now_capacity ? malloc(larger * sizeof *ring) : NULL;
    if (!ring)
        return false;
    for (uint32_t i = 0; i < r->now_count; i++)
        ring[i] = r->now[(r->now_first + i) & (r->now_capacity - 1)];
    free(r->now);
    r->now = ring;
    r->now_first = 0;
    r->now_capacity = larger;
    return true;
}

/* The node finishes in `time`. */
static void schedule(etch_run *r, uint32_t rank, uint32_t node, uint64_t time)
{
    if (time > 0) {
        const uint64_t at = time > UINT64_MAX - r->time ? UINT64_MAX : r->time + time;
        push_later(r, (etch_event){at, r->order++, rank, node});
    } else if (r->now_count < r->now_capacity || enlarge_now(r)) {
        r->now[(r->now_first + r->now_count++) & (r->now_capacity - 1)] = (uint64_t)rank << 32 | node;
    } else {
        r->failed = true;
    }
}

static bool next_event(etch_run *r, uint32_t *rank, uint32_t *node)
{
    if (r->now_count > 0) {
        *rank = (uint32_t)(r->now[r->now_first] >> 32);
        *node = (uint32_t)r->now[r->now_first];
        r->now_first = (r->now_first + 1) & (r->now_capacity - 1);
        r->now_count--;
        return true;
    }
    if (r->later_count == 0)
        return false;
    const etch_event event = pop_later(r);
    r->time = event.time;
    *rank = event.rank;
    *node = event.node;
    return true;
}

/* ---- ready nodes --------------------------------------------------------------------------------------- */

static void push_node(etch_run *r, uint32_t **heap, uint32_t *count, uint32_t *capacity, uint32_t node)
{
    *heap = etch_reserve(*heap, *count, capacity, sizeof **heap, &r->failed);
    if (r->failed)
        return;
    uint32_t at = (*count)++;
    for (; at > 0 && node < (*heap)[(at - 1) / 2]; at = (at - 1) / 2)
        (*heap)[at] = (*heap)[(at - 1) / 2];
    (*heap)[at] = node;
}

static uint32_t pop_node(uint32_t *heap, uint32_t *count)
{
    const uint32_t first = heap[0], last = heap[--*count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < *count; at = child) {
        child += child + 1 < *count && heap[child + 1] < heap[child];
        if (last <= heap[child])
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return first;
}

static bool keeps(const etch_run *r, uint32_t rank, etch_severity severity, etch_code code)
{
    return r->findings && etch_findings_keep(&r->findings[rank], severity, code);
}

static etch_node_ref name_node(const etch_run *r, uint32_t rank, uint32_t node, etch_named_node *named)
{
    return etch_rank_node(r->set, rank, etch_program_id(r->ranks[rank].program, node), named);
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static void let_wait(etch_run *r, const etch_mail_key *key, etch_mail_end end, uint32_t rank, uint32_t node)
{
    bool alone;
    etch_named_node named;
    if (!etch_mail_put(&r->mail, key, end, node, &alone))
        r->failed = true;
    else if (!alone && end == ETCH_MAIL_SEND && keeps(r, rank, ETCH_WARNING, ETCH_E_VERIFY_TAG_REUSED))
        etch_find(&r->findings[rank], ETCH_WARNING, ETCH_E_VERIFY_TAG_REUSED,
                  name_node(r, rank, node, &named),
                  "give messages that may be in flight at once different tags",
                  "its message to rank %u may be in flight with another one of tag %d and size %" PRIu64,
                  (unsigned)key->target, (int)key->tag, key->size);
}

static void post_receive(etch_run *r, uint32_t rank, uint32_t node)
{
    const etch_comm *comm = comm_of(r, rank, node);
    const etch_mail_key key = etch_message_key(&r->ranks[rank], rank, comm);
    uint32_t sender;
    if (!etch_mail_take(&r->mail, &key, ETCH_MAIL_SEND, &sender)) {
        let_wait(r, &key, ETCH_MAIL_RECEIVE, rank, node);
        return;
    }
    const uint64_t time = r->rendezvous ? time_of_comm(r, comm) : 0;
    if (r->rendezvous)
        schedule(r, key.source, sender, time);
    schedule(r, rank, node, time);
}

static void push_late(etch_run *r, uint32_t rank, uint32_t node)
{
    r->late = etch_reserve(r->late, r->late_count, &r->late_capacity, sizeof *r->late, &r->failed);
    if (!r->failed)
        r->late[r->late_count++] = (uint64_t)rank << 32 | node;
}

static bool post_late(etch_run *r)
{
    if (r->late_count == 0)
        return false;
    const uint64_t receive = r->late[--r->late_count];
    post_receive(r, (uint32_t)(receive >> 32), (uint32_t)receive);
    return true;
}

/* A send under rendezvous takes its time together with its receive. */
static void meet_receive(etch_run *r, uint32_t rank, uint32_t node)
{
    const etch_comm *comm = comm_of(r, rank, node);
    const etch_mail_key key = etch_message_key(&r->ranks[rank], rank, comm);
    uint32_t receiver;
    if (!etch_mail_take(&r->mail, &key, ETCH_MAIL_RECEIVE, &receiver)) {
        let_wait(r, &key, ETCH_MAIL_SEND, rank, node);
        return;
    }
    const uint64_t time = time_of_comm(r, comm);
    schedule(r, rank, node, time);
    schedule(r, key.target, receiver, time);
}

/* An eager message has arrived. */
static void deliver(etch_run *r, uint32_t rank, uint32_t node)
{
    const etch_mail_key key = etch_message_key(&r->ranks[rank], rank, comm_of(r, rank, node));
    uint32_t receiver;
    if (etch_mail_take(&r->mail, &key, ETCH_MAIL_RECEIVE, &receiver))
        schedule(r, key.target, receiver, 0);
    else
        let_wait(r, &key, ETCH_MAIL_SEND, rank, node);
}

/* ---- collectives --------------------------------------------------------------------------------------- */

static const char *collective_name(const etch_comm *comm)
{
    const char *name = comm->collective == UINT8_MAX ? NULL : etch_chakra_collective_name(comm->collective);
    return name ? name : "another collective";
}

static void compare(etch_run *r, uint32_t rank, const etch_meeting *meeting, uint32_t group,
                    const etch_comm *comm)
{
    const etch_comm *other = meeting->comm;
    const uint32_t other_id = etch_program_id(r->ranks[meeting->first].program, other->node);
    char text[ETCH_GROUP_TEXT];
    const char *where = etch_trace_group_text(&r->groups->at[group], text);
    etch_named_node named;
    if (comm->collective != other->collective && keeps(r, rank, ETCH_ERROR, ETCH_E_VERIFY_COLL_TYPE))
        etch_find(&r->findings[rank], ETCH_ERROR, ETCH_E_VERIFY_COLL_TYPE,
                  name_node(r, rank, comm->node, &named), NULL,
                  "%s: it issues %s where rank %u issues %s, node %u", where, collective_name(comm),
                  (unsigned)meeting->first, collective_name(other), (unsigned)other_id);
    else if (comm->size != other->size && keeps(r, rank, ETCH_ERROR, ETCH_E_VERIFY_COLL_SIZE))
        etch_find(&r->findings[rank], ETCH_ERROR, ETCH_E_VERIFY_COLL_SIZE,
                  name_node(r, rank, comm->node, &named), NULL,
                  "%s: its comm_size is %" PRIu64 " where rank %u has %" PRIu64 ", node %u", where,
                  comm->size, (unsigned)meeting->first, other->size, (unsigned)other_id);
    else if (comm->message != other->message && keeps(r, rank, ETCH_ERROR, ETCH_E_VERIFY_COLL_STEP))
        etch_find(&r->findings[rank], ETCH_ERROR, ETCH_E_VERIFY_COLL_STEP,
                  name_node(r, rank, comm->node, &named),
                  "ASTRA-sim counts collectives of no group together, and lets equal numbers meet",
                  "%s: it is number %u of the rank's collectives of no group where rank %u has number %u, "
                  "node %u",
                  where, (unsigned)comm->message, (unsigned)meeting->first, (unsigned)other->message,
                  (unsigned)other_id);
}

static void join(etch_run *r, uint32_t rank, uint32_t node)
{
    const etch_comm *comm = comm_of(r, rank, node);
    const uint32_t group = r->ranks[rank].groups[comm->local];
    etch_meeting *meeting = &r->meetings[group];
    const uint32_t members = r->groups->at[group].count;
    if (meeting->count == 0) {
        meeting->first = rank;
        meeting->comm = comm;
        meeting->last = ETCH_NONE;
    } else {
        compare(r, rank, meeting, group, comm);
    }
    r->lanes[rank].next_member = meeting->last;
    meeting->last = rank;
    meeting->count++;
    if (meeting->count < members)
        return;
    const uint64_t time = time_of_comm(r, comm);
    for (uint32_t member = meeting->last; member != ETCH_NONE; member = r->lanes[member].next_member)
        schedule(r, member, r->lanes[member].held, time);
    meeting->count = 0;
}

/* ---- slots --------------------------------------------------------------------------------------------- */

static void mark_begin(const etch_run *r, uint32_t rank, uint32_t node)
{
    etch_lane *lane = &r->lanes[rank];
    const uint32_t *labels = r->ranks[rank].program->labels;
    if (!lane->labels_begun || labels[node] == ETCH_NONE || lane->labels_begun[labels[node]])
        return;
    lane->labels_begun[labels[node]] = 1;
    if (++lane->in_flight > lane->marks.in_flight)
        lane->marks.in_flight = lane->in_flight;
}

static void mark_end(const etch_run *r, uint32_t rank, uint32_t node)
{
    etch_lane *lane = &r->lanes[rank];
    const uint32_t *labels = r->ranks[rank].program->labels;
    if (lane->labels_left && labels[node] != ETCH_NONE && --lane->labels_left[labels[node]] == 0)
        lane->in_flight--;
}

static void begin_comm(etch_run *r, uint32_t rank, uint32_t node)
{
    const etch_rank_program *p = r->ranks[rank].program;
    r->lanes[rank].held = node;
    switch (p->work[node]) {
    case ETCH_WORK_COLLECTIVE:
        join(r, rank, node);
        break;
    case ETCH_WORK_SEND:
        if (r->rendezvous)
            meet_receive(r, rank, node);
        else
            schedule(r, rank, node, time_of_comm(r, comm_of(r, rank, node)));
        break;
    default:
        schedule(r, rank, node, time_of_compute(r, rank, node));
    }
}

static void make_ready(etch_run *r, uint32_t rank, uint32_t node)
{
    etch_lane *lane = &r->lanes[rank];
    if (++lane->ready > lane->marks.ready)
        lane->marks.ready = lane->ready;
    switch (r->ranks[rank].program->work[node]) {
    case ETCH_WORK_COMPUTE:
        push_node(r, &lane->compute, &lane->compute_count, &lane->compute_capacity, node);
        break;
    case ETCH_WORK_RECEIVE:
        if (r->timing == ETCH_TIMING_NONE)
            push_late(r, rank, node);
        else
            post_receive(r, rank, node);
        break;
    default:
        push_node(r, &lane->comm, &lane->comm_count, &lane->comm_capacity, node);
    }
}

/* One parent of `node` is finished. */
static void release(etch_run *r, uint32_t rank, uint32_t node, bool seen)
{
    etch_lane *lane = &r->lanes[rank];
    const uint32_t parents = r->ranks[rank].program->waits[node];
    uint32_t *left = parents == 1 ? NULL : etch_table_get(&lane->waits, node);
    if (parents > 1 && !left) {
        if (!etch_table_add(&lane->waits, node, parents - 1))
            r->failed = true;
        return;
    }
    if (left && --*left > 0)
        return;
    if (left)
        etch_table_remove(&lane->waits, left);
    if (seen) {
        make_ready(r, rank, node);
        return;
    }
    lane->unseen = etch_reserve(lane->unseen, lane->unseen_count, &lane->unseen_capacity,
                                sizeof *lane->unseen, &r->failed);
    if (!r->failed)
        lane->unseen[lane->unseen_count++] = node;
}

static void release_children(etch_run *r, uint32_t rank, uint32_t node, bool seen)
{
    const etch_rank_program *p = r->ranks[rank].program;
    for (uint32_t i = p->first_child[node]; i < p->first_child[node + 1]; i++)
        release(r, rank, p->children[i], seen);
}

/* Simulators finish the node while they look at those that are ready, and do not look again. */
static void pass_over(etch_run *r, uint32_t rank, uint32_t node)
{
    r->lanes[rank].finished++;
    r->lanes[rank].ready--;
    release_children(r, rank, node, false);
}

static void issue(etch_run *r, uint32_t rank)
{
    etch_lane *lane = &r->lanes[rank];
    while (lane->unseen_count > 0)
        make_ready(r, rank, lane->unseen[--lane->unseen_count]);
    if (!lane->computing && lane->compute_count > 0) {
        const uint32_t node = pop_node(lane->compute, &lane->compute_count);
        lane->computing = true;
        mark_begin(r, rank, node);
        schedule(r, rank, node, time_of_compute(r, rank, node));
    }
    while (lane->held == ETCH_NONE && lane->comm_count > 0) {
        const uint32_t node = pop_node(lane->comm, &lane->comm_count);
        if (r->ranks[rank].program->work[node] == ETCH_WORK_NOTHING)
            pass_over(r, rank, node);
        else
            begin_comm(r, rank, node);
    }
}

static void finish(etch_run *r, uint32_t rank, uint32_t node)
{
    etch_lane *lane = &r->lanes[rank];
    const etch_rank_program *p = r->ranks[rank].program;
    const uint8_t work = p->work[node];
    lane->finished++;
    lane->ready--;
    if (work == ETCH_WORK_COMPUTE) {
        lane->computing = false;
        mark_end(r, rank, node);
    } else if (node == lane->held) {
        lane->held = ETCH_NONE;
    }
    if (work == ETCH_WORK_SEND && !r->rendezvous)
        deliver(r, rank, node);
    release_children(r, rank, node, true);
}

/* ---- the run ------------------------------------------------------------------------------------------- */

static bool prepare_labels(etch_lane *lane, const etch_rank_program *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->labels[i] != ETCH_NONE && p->labels[i] >= count)
            count = p->labels[i] + 1;
    if (count > p->node_count)
        return true; /* no labels of ours */
    lane->labels_left = calloc((size_t)count + 1, sizeof *lane->labels_left);
    lane->labels_begun = calloc((size_t)count + 1, sizeof *lane->labels_begun);
    for (uint32_t i = 0; i < p->node_count && lane->labels_left; i++)
        if (p->labels[i] != ETCH_NONE)
            lane->labels_left[p->labels[i]]++;
    return lane->labels_left && lane->labels_begun;
}

static bool prepare(etch_run *r)
{
    r->lanes = calloc(r->rank_count, sizeof *r->lanes);
    r->meetings = calloc(r->groups->count, sizeof *r->meetings);
    if (!r->lanes || !r->meetings)
        return false;
    r->seed = (r->seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t rank = 0; rank < r->rank_count; rank++) {
        const etch_rank_program *p = r->ranks[rank].program;
        r->lanes[rank].held = ETCH_NONE;
        if (r->timing == ETCH_TIMING_RANDOM && p->labels && !prepare_labels(&r->lanes[rank], p))
            return false;
    }
    return true;
}

static void begin(etch_run *r)
{
    for (uint32_t rank = 0; rank < r->rank_count && !r->failed; rank++) {
        const etch_rank_program *p = r->ranks[rank].program;
        for (uint32_t node = 0; node < p->node_count; node++)
            if (p->waits[node] == 0)
                make_ready(r, rank, node);
        issue(r, rank);
    }
}

etch_status etch_run_go(etch_run *run)
{
    uint32_t rank, node;
    uint64_t events = 0;
    if (!prepare(run))
        return ETCH_ENOMEM;
    begin(run);
    while (!run->failed) {
        if (!next_event(run, &rank, &node)) {
            if (!post_late(run))
                break;
            continue;
        }
        finish(run, rank, node);
        issue(run, rank);
        if (++events % CANCEL_EVERY == 0 && run->cancel && atomic_load(run->cancel) != 0)
            return ETCH_ELIMIT;
    }
    if (run->failed)
        return ETCH_ENOMEM;
    for (rank = 0; rank < run->rank_count; rank++)
        run->stalled += run->lanes[rank].finished < run->ranks[rank].program->node_count;
    return ETCH_OK;
}

void etch_run_free(etch_run *run)
{
    for (uint32_t rank = 0; run->lanes && rank < run->rank_count; rank++) {
        etch_lane *lane = &run->lanes[rank];
        etch_table_free(&lane->waits);
        free(lane->compute);
        free(lane->comm);
        free(lane->unseen);
        free(lane->labels_left);
        free(lane->labels_begun);
    }
    free(run->lanes);
    free(run->meetings);
    etch_mail_free(&run->mail);
    free(run->late);
    free(run->later);
    free(run->now);
    run->lanes = NULL;
    run->meetings = NULL;
    run->late = NULL;
    run->later = NULL;
    run->now = NULL;
}
