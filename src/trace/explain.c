/* Why ranks do not finish. What no timing could bring about comes first: messages with one end, members
 * that never come. What is left is ranks that wait for each other. */
#include "trace/verify_int.h"

#include <inttypes.h>
#include <stdio.h>

enum { STEPS_SHOWN = 8, MESSAGES_LOOKED_AT = 64, MEETINGS_LOOKED_AT = 64 };

typedef struct explaining {
    const etch_run *run;
    etch_arena *arena;
    etch_diags *diags;
    /* as in `etch_run_explain` */
    bool adds;
    /* the ends of some message; said already */
    bool sizes_differ;
    /* by rank: a receive that is posted and waits, or ETCH_NONE */
    uint32_t *receives;
} explaining;

static const etch_span nowhere = {0, 0};

static const char *node_text(const explaining *e, uint32_t rank, uint32_t node)
{
    char text[ETCH_NODE_TEXT];
    etch_named_node named;
    const uint32_t id = etch_program_id(e->run->ranks[rank].program, node);
    return etch_text(e->arena, "rank %u, %s", (unsigned)rank,
                     etch_node_text(etch_rank_node(e->run->set, rank, id, &named), text));
}

static const char *group_text(const explaining *e, uint32_t group)
{
    char text[ETCH_GROUP_TEXT];
    return etch_text(e->arena, "%s", etch_trace_group_text(&e->run->groups->at[group], text));
}

static const etch_comm *comm_of(const explaining *e, uint32_t rank, uint32_t node)
{
    const etch_rank_program *p = e->run->ranks[rank].program;
    return &p->comms[p->values[node]];
}

static bool has_finished(const explaining *e, uint32_t rank)
{
    return e->run->lanes[rank].finished == e->run->ranks[rank].program->node_count;
}

/* ---- messages with one end ----------------------------------------------------------------------------- */

/* How often a rank sends or receives a message of `key`, of its size or of any other. */
typedef struct tally {
    uint32_t equal, other;
    /* of one of them */
    uint64_t other_size;
} tally;

static tally count_messages(const explaining *e, const etch_mail_key *key, etch_work work)
{
    const uint32_t number = work == ETCH_WORK_SEND ? key->source : key->target;
    const etch_rank *rank = &e->run->ranks[number];
    tally t = {0};
    for (uint32_t i = 0; i < rank->program->comm_count; i++) {
        const etch_comm *comm = &rank->program->comms[i];
        if (comm->work != work)
            continue;
        const etch_mail_key other = etch_message_key(rank, number, comm);
        if (other.source != key->source || other.target != key->target || other.tag != key->tag)
            continue;
        t.equal += other.size == key->size;
        t.other += other.size != key->size;
        if (other.size != key->size)
            t.other_size = other.size;
    }
    return t;
}

static void complain_size(const explaining *e, const etch_mail_key *key, const char *where, uint64_t size,
                          bool sends)
{
    etch_diag *diag =
        etch_error(e->diags, ETCH_E_VERIFY_MESSAGE_SIZE, nowhere,
                   "%s: it %s size %" PRIu64 ", and rank %u %s size %" PRIu64 ", with tag %d", where,
                   sends ? "sends" : "receives", key->size, (unsigned)(sends ? key->target : key->source),
                   sends ? "receives" : "sends", size, (int)key->tag);
    etch_help(diag, "a send and its receive have equal tag, source, destination and size");
}

/* A receive, or a send, that can have no other end: there are more of them than of the others. */
static void explain_message(explaining *e, const etch_mail_key *key, etch_mail_end end, uint32_t node)
{
    const bool sends = end == ETCH_MAIL_SEND;
    const tally here = count_messages(e, key, sends ? ETCH_WORK_SEND : ETCH_WORK_RECEIVE);
    const tally there = count_messages(e, key, sends ? ETCH_WORK_RECEIVE : ETCH_WORK_SEND);
    const char *where = node_text(e, sends ? key->source : key->target, node);
    if (here.equal <= there.equal)
        return;
    if (there.other > here.other) {
        if (!sends || !e->sizes_differ)
            complain_size(e, key, where, there.other_size, sends);
        e->sizes_differ = true;
    } else if (sends) {
        /* An eager send ends by itself: nobody waits. */
        (e->run->rendezvous ? etch_error : etch_warning)(
            e->diags, ETCH_E_VERIFY_SEND_ALONE, nowhere,
            "%s: rank %u has no receive for this message of tag %d and size %" PRIu64, where,
            (unsigned)key->target, (int)key->tag, key->size);
    } else {
        etch_error(e->diags, ETCH_E_VERIFY_RECV_ALONE, nowhere,
                   "%s: rank %u has no send for this message of tag %d and size %" PRIu64, where,
                   (unsigned)key->source, (int)key->tag, key->size);
    }
}

/* Receives first: where sizes differ, both ends are left over, and one complaint is enough. */
static void explain_messages(explaining *e)
{
    etch_mail_key key;
    etch_mail_end end;
    uint32_t node, looked_at = 0;
    for (uint32_t at = 0; etch_mail_next(&e->run->mail, &at, &key, &end, &node);)
        if (end == ETCH_MAIL_RECEIVE) {
            e->receives[key.target] = node;
            if (!e->adds && looked_at++ < MESSAGES_LOOKED_AT)
                explain_message(e, &key, end, node);
        }
    for (uint32_t at = 0; etch_mail_next(&e->run->mail, &at, &key, &end, &node);)
        if (end == ETCH_MAIL_SEND && !e->adds && looked_at++ < MESSAGES_LOOKED_AT)
            explain_message(e, &key, end, node);
}

/* ---- members that never come --------------------------------------------------------------------------- */

static uint32_t count_collectives(const explaining *e, uint32_t number, uint32_t group)
{
    const etch_rank *rank = &e->run->ranks[number];
    uint32_t count = 0;
    for (uint32_t i = 0; i < rank->program->comm_count; i++) {
        const etch_comm *comm = &rank->program->comms[i];
        count += comm->work == ETCH_WORK_COLLECTIVE && rank->groups[comm->local] == group;
    }
    return count;
}

static uint32_t member_at(const etch_trace_group *group, uint32_t i)
{
    return group->ranks ? group->ranks[i] : i;
}

/* Has the rank come to the meeting of the group? */
static bool has_come(const explaining *e, uint32_t number, uint32_t group)
{
    const etch_rank *rank = &e->run->ranks[number];
    const uint32_t held = e->run->lanes[number].held;
    if (held == ETCH_NONE || rank->program->work[held] != ETCH_WORK_COLLECTIVE)
        return false;
    return rank->groups[comm_of(e, number, held)->local] == group;
}

static void explain_meeting(const explaining *e, uint32_t group)
{
    const etch_meeting *meeting = &e->run->meetings[group];
    const etch_trace_group *members = &e->run->groups->at[group];
    const uint32_t wanted = count_collectives(e, meeting->first, group);
    for (uint32_t i = 0; i < members->count; i++) {
        const uint32_t rank = member_at(members, i);
        const uint32_t count = count_collectives(e, rank, group);
        if (count >= wanted)
            continue;
        etch_diag *diag = etch_error(
            e->diags, ETCH_E_VERIFY_COLL_MEMBER, nowhere, "%s: rank %u never comes to this collective of %s",
            node_text(e, meeting->first, meeting->comm->node), (unsigned)rank, group_text(e, group));
        etch_note(diag, nowhere, "collectives of the group: rank %u has %u, rank %u has %u",
                  (unsigned)meeting->first, (unsigned)wanted, (unsigned)rank, (unsigned)count);
        return;
    }
}

/* ---- ranks that wait for each other -------------------------------------------------------------------- */

/* What a rank waits with, and for whom. */
typedef struct wait {
    uint32_t rank, node, target;
    enum { WAIT_NOTHING, WAIT_COLLECTIVE, WAIT_SEND, WAIT_RECEIVE } kind;
    uint32_t group;
} wait;

/* A member that has not come: one that the way here has passed, when there is one. */
static uint32_t missing_member(const explaining *e, uint32_t group, const uint32_t *step_of)
{
    const etch_trace_group *members = &e->run->groups->at[group];
    uint32_t missing = ETCH_NONE;
    for (uint32_t i = 0; i < members->count; i++) {
        const uint32_t rank = member_at(members, i);
        if (has_come(e, rank, group))
            continue;
        if (step_of[rank] != 0)
            return rank;
        if (missing == ETCH_NONE)
            missing = rank;
    }
    return missing;
}

static wait find_wait(const explaining *e, uint32_t rank, const uint32_t *step_of)
{
    wait w = {.rank = rank, .node = e->run->lanes[rank].held, .target = ETCH_NONE};
    const etch_rank *it = &e->run->ranks[rank];
    if (w.node != ETCH_NONE && it->program->work[w.node] == ETCH_WORK_COLLECTIVE) {
        w.kind = WAIT_COLLECTIVE;
        w.group = it->groups[comm_of(e, rank, w.node)->local];
        w.target = missing_member(e, w.group, step_of);
    } else if (w.node != ETCH_NONE) {
        w.kind = WAIT_SEND;
        w.target = it->peers[comm_of(e, rank, w.node)->local];
    } else if (e->receives[rank] != ETCH_NONE) {
        w.kind = WAIT_RECEIVE;
        w.node = e->receives[rank];
        w.target = it->peers[comm_of(e, rank, w.node)->local];
    }
    return w;
}

static void note_wait(const explaining *e, etch_diag *diag, const wait *w)
{
    const char *where = w->node == ETCH_NONE ? "" : node_text(e, w->rank, w->node);
    switch (w->kind) {
    case WAIT_COLLECTIVE:
        if (w->target == ETCH_NONE)
            etch_note(diag, nowhere, "%s holds the communication slot: %s has no other rank", where,
                      group_text(e, w->group));
        else
            etch_note(diag, nowhere, "%s holds the communication slot until rank %u comes to %s", where,
                      (unsigned)w->target, group_text(e, w->group));
        break;
    case WAIT_SEND:
        etch_note(diag, nowhere, "%s holds the communication slot until rank %u posts the receive", where,
                  (unsigned)w->target);
        break;
    case WAIT_RECEIVE:
        etch_note(diag, nowhere, "%s receives from rank %u, which does not send", where, (unsigned)w->target);
        break;
    case WAIT_NOTHING:
        etch_note(diag, nowhere, "rank %u has nodes that nothing makes ready", (unsigned)w->rank);
        break;
    }
}

/* Follows who waits for whom from a rank until it comes to one that was passed, or to an end; keeps the
 * circle. */
static uint32_t follow(const explaining *e, uint32_t rank, wait *steps, uint32_t most, uint32_t *first)
{
    uint32_t count = 0;
    uint32_t *step_of = ETCH_NEW_ARRAY(e->arena, e->run->rank_count, uint32_t); /* plus 1 */
    *first = 0;
    while (rank != ETCH_NONE && count < most && !has_finished(e, rank)) {
        if (step_of[rank] != 0) {
            *first = step_of[rank] - 1;
            break;
        }
        step_of[rank] = count + 1;
        steps[count] = find_wait(e, rank, step_of);
        rank = steps[count++].target;
    }
    return count;
}

static void explain_stall(const explaining *e)
{
    const uint32_t most = e->run->rank_count < 4096 ? e->run->rank_count + 1 : 4096;
    uint32_t stuck = 0, first;
    wait *steps = ETCH_NEW_ARRAY(e->arena, most, wait);
    while (has_finished(e, stuck))
        stuck++;
    const uint32_t count = follow(e, stuck, steps, most, &first);
    etch_diag *diag = (e->adds ? etch_warning : etch_error)(
        e->diags, ETCH_E_VERIFY_STALL, nowhere, "%s%u of %u ranks never finish%s",
        e->adds ? "under rendezvous " : "", (unsigned)e->run->stalled, (unsigned)e->run->rank_count,
        first + 1 < count ? ": they wait for each other" : "");
    for (uint32_t i = first; i < count && i < first + STEPS_SHOWN; i++)
        note_wait(e, diag, &steps[i]);
    if (count > first + STEPS_SHOWN)
        etch_note(diag, nowhere, "and so on, %u ranks in all", (unsigned)(count - first));
    const uint32_t last = count > 0 ? steps[count - 1].target : ETCH_NONE;
    if (last != ETCH_NONE && has_finished(e, last))
        etch_note(diag, nowhere, "rank %u has finished", (unsigned)last);
}

void etch_run_explain(const etch_run *run, bool adds, etch_arena *arena, etch_diags *diags)
{
    explaining e = {.run = run,
                    .adds = adds,
                    .arena = arena,
                    .diags = diags,
                    .receives = ETCH_NEW_ARRAY(arena, run->rank_count, uint32_t)};
    for (uint32_t rank = 0; rank < run->rank_count; rank++)
        e.receives[rank] = ETCH_NONE;
    explain_messages(&e);
    uint32_t looked_at = 0;
    for (uint32_t group = 0; group < run->groups->count && looked_at < MEETINGS_LOOKED_AT; group++)
        if (!adds && run->meetings[group].count > 0) {
            explain_meeting(&e, group);
            looked_at++;
        }
    if (run->stalled > 0)
        explain_stall(&e);
}
