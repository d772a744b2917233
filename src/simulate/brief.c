/* A step slot by slot. Each class goes through its slots as long as what it needs is known; where it has to
 * wait for another class, that one goes on. What is known never changes: the order does not matter. */
#include "simulate/brief_int.h"

/* Of a stream: the slot, and in that the mark, of a node; UINT32_MAX: none. */
struct last_mark {
    uint32_t slot, mark;
};

/* A class on its way. */
typedef struct runner {
    const etch_brief_program *program;
    const etch_sim_slots *slots;
    /* by content */
    etch_sim_weave *weaves;
    /* marks of all slots, one after the other; and by slot its first one */
    etch_sim_span *marks;
    uint32_t *first_mark;
    /* by slot and stream: the last node before it */
    struct last_mark *last;
    /* by slot: nodes before it */
    uint64_t *nodes;
    /* by the tag of a message: when it may be sent, and received, from here */
    etch_sim_span *sends, *receives;
    /* by family: meetings so far */
    uint32_t *met;
    /* at work: the slot, its mark, and whether that has told others that it is there */
    uint32_t slot, mark;
    bool is_told;
    /* all receives of slots before this one are posted; and how many are */
    uint32_t posted, posts;
} runner;

/* A collective of several classes. */
typedef struct meeting {
    etch_sim_span begins;
    uint32_t arrived;
} meeting;

typedef ETCH_VEC(meeting) meeting_list;

typedef struct brief_run {
    etch_sim *sim;
    runner *runners;
    /* by group: one after the other */
    meeting_list *meetings;
    uint32_t streams;
    /* the end of the last of all, so far */
    etch_sim_span step;
} brief_run;

static const etch_sim_span never = {ETCH_SIM_NEVER, 0};

static const etch_sim_weave *weave_at(const runner *r, uint32_t slot)
{
    return &r->weaves[r->slots->content[slot]];
}

static void raise(etch_sim_span *at, etch_sim_span to)
{
    at->count = at->count > to.count ? at->count : to.count;
    at->error = at->error > to.error ? at->error : to.error;
}

static etch_sim_span plus(etch_sim_span a, etch_sim_span b)
{
    return (etch_sim_span){a.count + b.count, a.error + b.error};
}

/* The mark of a receive; UINT32_MAX: there are not so many. */
static uint32_t receive_of(const etch_sim_weave *weave, uint32_t number)
{
    for (uint32_t i = 0; i < weave->mark_count; i++)
        if (weave->marks[i].kind == ETCH_MARK_RECEIVES && number-- == 0)
            return i;
    return UINT32_MAX;
}

/* ---- marks --------------------------------------------------------------------------------------------- */

static etch_sim_span *message_at(const runner *r, etch_sim_span *all, uint32_t slot,
                                 const etch_sim_mark *mark)
{
    const etch_action *action = &r->slots->actions[r->slots->first[slot] + mark->action];
    return &all[(action->microbatch * r->slots->chunks + mark->row) * 2 + mark->back];
}

/* When the mark of a slot ends. A message that is sent ends once the other side may receive it. */
static etch_sim_span end_of(brief_run *run, runner *r, uint32_t slot, uint32_t number)
{
    etch_sim_span *at = &r->marks[r->first_mark[slot] + number];
    const etch_sim_mark *mark = &weave_at(r, slot)->marks[number];
    if (at->count != ETCH_SIM_NEVER || mark->kind != ETCH_MARK_SENDS)
        return *at;
    const runner *other = &run->runners[mark->other];
    const etch_sim_span sends = *message_at(r, r->sends, slot, mark);
    const etch_sim_span receives = *message_at(r, other->receives, slot, mark);
    if (sends.count == ETCH_SIM_NEVER || receives.count == ETCH_SIM_NEVER)
        return never;
    *at = sends;
    raise(at, receives);
    *at = plus(*at, mark->lasts);
    raise(&run->step, *at);
    return *at;
}

/* By stream. */
static struct last_mark *last_before(const brief_run *run, const runner *r, uint32_t slot)
{
    return r->last + (size_t)slot * run->streams;
}

/* Of the stream, when the slot of an action has ended; NULL: there is no such action before. */
static const struct last_mark *last_since(brief_run *run, const runner *r, uint32_t slot,
                                          const etch_wait *wait)
{
    uint32_t since;
    const bool found = etch_slot_of_wait(r->slots, slot, wait, &since) && since < slot;
    return found ? last_before(run, r, since + 1) + wait->what : NULL;
}

/* What a thread begins with. False: it is not known yet. */
static bool begin_of(brief_run *run, runner *r, uint32_t slot, const etch_sim_thread *thread,
                     etch_sim_span *out)
{
    const etch_wait *wait = &thread->wait;
    uint32_t other = slot, mark = wait->what;
    if (wait->form == ETCH_WAIT_LAUNCH) {
        const etch_stack *stack = run->sim->options->stack;
        *out = (etch_sim_span){stack ? stack->launch * r->nodes[slot] : 0, 0};
        return true;
    }
    if (wait->form == ETCH_WAIT_LAST) {
        const struct last_mark *last = last_before(run, r, slot - wait->what) + wait->where;
        other = last->slot;
        mark = last->mark;
    } else if (wait->form == ETCH_WAIT_SINCE) {
        const struct last_mark *last = last_since(run, r, slot, wait);
        other = last->slot;
        mark = last->mark;
    } else if (wait->form != ETCH_WAIT_HERE) {
        (void)etch_slot_of_wait(r->slots, slot, wait, &other); /* there is one: see is_made */
        if (mark >= ETCH_WAIT_RECEIVE)
            mark = receive_of(weave_at(r, other), mark - ETCH_WAIT_RECEIVE);
    }
    *out = end_of(run, r, other, mark);
    return out->count != ETCH_SIM_NEVER;
}

/* The most of all threads of a mark. False: something is not known yet. */
static bool pull(brief_run *run, runner *r, uint32_t slot, const etch_sim_mark *mark, etch_sim_span *out)
{
    const etch_sim_thread *threads = weave_at(r, slot)->threads.at + mark->first_thread;
    *out = (etch_sim_span){0, 0};
    for (uint32_t i = 0; i < mark->thread_count; i++) {
        etch_sim_span begins;
        if (!begin_of(run, r, slot, &threads[i], &begins))
            return false;
        raise(out, plus(begins, threads[i].lasts));
    }
    return true;
}

/* ---- slots --------------------------------------------------------------------------------------------- */

/* Posts what a slot receives, as far as it is known when that may be: that is said in slots before it. Is all
 * of it posted? */
static bool post_slot(brief_run *run, runner *r, uint32_t slot)
{
    const etch_sim_weave *weave = weave_at(r, slot);
    bool all = true;
    for (uint32_t i = 0; i < weave->mark_count; i++) {
        const etch_sim_mark *mark = &weave->marks[i];
        if (mark->kind != ETCH_MARK_RECEIVES)
            continue;
        etch_sim_span *at = message_at(r, r->receives, slot, mark), begins;
        const bool is_posted = at->count != ETCH_SIM_NEVER;
        if (!is_posted && pull(run, r, slot, mark, &begins)) {
            *at = begins;
            r->posts++;
        }
        all = all && at->count != ETCH_SIM_NEVER;
    }
    return all;
}

/* Others may wait for what slots ahead receive: mostly the next ones. */
static void post_ahead(brief_run *run, runner *r)
{
    enum { NEXT = 2 };
    while (r->posted < r->slots->count && r->posted <= r->slot + NEXT && post_slot(run, r, r->posted))
        r->posted++;
}

/* Where the chain comes back, what is received next is not posted next. Is anything? */
static bool post_far(brief_run *run, runner *r)
{
    enum { FAR = 64 };
    const uint32_t posts = r->posts;
    for (uint32_t slot = r->posted; slot < r->slots->count && slot <= r->slot + FAR; slot++)
        (void)post_slot(run, r, slot);
    return r->posts != posts;
}

/* Takes part in a collective of several classes. False: not all of them are there. */
static bool meet(brief_run *run, runner *r, const etch_sim_mark *mark, etch_sim_span *at)
{
    const etch_sim_group *group = &run->sim->groups.at[mark->group];
    meeting_list *meetings = &run->meetings[mark->group];
    const uint32_t number = r->met[group->family];
    if (!r->is_told) {
        etch_sim_span begins;
        if (!pull(run, r, r->slot, mark, &begins))
            return false;
        while (meetings->count <= number)
            ETCH_PUSH(run->sim->arena, meetings, (meeting){.arrived = 0});
        raise(&meetings->at[number].begins, begins);
        meetings->at[number].arrived++;
        r->is_told = true;
    }
    if (meetings->at[number].arrived < group->class_count)
        return false;
    *at = plus(meetings->at[number].begins, mark->lasts);
    r->met[group->family]++;
    return true;
}

static bool receive(brief_run *run, runner *r, const etch_sim_mark *mark, etch_sim_span *at)
{
    const runner *other = &run->runners[mark->other];
    etch_sim_span *mine = message_at(r, r->receives, r->slot, mark), begins;
    if (mine->count == ETCH_SIM_NEVER) {
        if (!pull(run, r, r->slot, mark, &begins))
            return false;
        *mine = begins;
        r->posts++;
    }
    const etch_sim_span theirs = *message_at(r, other->sends, r->slot, mark);
    if (theirs.count == ETCH_SIM_NEVER)
        return false;
    *at = *mine;
    raise(at, theirs);
    *at = plus(*at, mark->lasts);
    return true;
}

/* Finds when the mark at work ends; of what is sent, from when on it may be. False: it has to wait for
 * another class. */
static bool pass_mark(brief_run *run, runner *r)
{
    const etch_sim_mark *mark = &weave_at(r, r->slot)->marks[r->mark];
    etch_sim_span *at = &r->marks[r->first_mark[r->slot] + r->mark], ends;
    bool known = false;
    if (mark->kind == ETCH_MARK_SENDS) {
        known = pull(run, r, r->slot, mark, &ends);
        if (known)
            *message_at(r, r->sends, r->slot, mark) = ends;
    } else {
        known = mark->kind == ETCH_MARK_MEETS      ? meet(run, r, mark, &ends)
                : mark->kind == ETCH_MARK_RECEIVES ? receive(run, r, mark, &ends)
                                                   : pull(run, r, r->slot, mark, &ends);
        if (known) {
            *at = ends;
            raise(&run->step, ends);
        }
    }
    r->is_told = r->is_told && !known;
    return known;
}

/* Goes as far as it can. Has it got anywhere? */
static bool advance(brief_run *run, runner *r)
{
    const uint32_t slot = r->slot, mark = r->mark, posts = r->posts;
    const bool told = r->is_told;
    for (; r->slot <= r->slots->count; r->slot++) {
        const etch_sim_weave *weave = weave_at(r, r->slot);
        post_ahead(run, r);
        while (r->mark < weave->mark_count && pass_mark(run, r))
            r->mark++;
        if (r->mark < weave->mark_count)
            break;
        r->mark = 0;
    }
    return r->slot != slot || r->mark != mark || r->posts != posts || r->is_told != told;
}

/* ---- the run ------------------------------------------------------------------------------------------- */

static etch_sim_span *unknown_spans(const etch_sim *sim, size_t count)
{
    etch_sim_span *spans = ETCH_NEW_ARRAY(sim->arena, count, etch_sim_span);
    for (size_t i = 0; i < count; i++)
        spans[i] = never;
    return spans;
}

/* Is there what the thread begins with? */
static bool is_made(brief_run *run, const runner *r, uint32_t slot, const etch_sim_thread *thread)
{
    const etch_wait *wait = &thread->wait;
    uint32_t other;
    if (wait->form == ETCH_WAIT_SAME || wait->form == ETCH_WAIT_BACK)
        return etch_slot_of_wait(r->slots, slot, wait, &other) &&
               (wait->what < ETCH_WAIT_RECEIVE
                    ? r->slots->content[other] == thread->content
                    : receive_of(weave_at(r, other), wait->what - ETCH_WAIT_RECEIVE) != UINT32_MAX);
    const struct last_mark *last = wait->form == ETCH_WAIT_SINCE ? last_since(run, r, slot, wait) : NULL;
    if (wait->form == ETCH_WAIT_SINCE)
        return last && last->slot != UINT32_MAX;
    if (wait->form == ETCH_WAIT_LAST)
        return wait->what <= slot && last_before(run, r, slot - wait->what)[wait->where].slot != UINT32_MAX;
    return true;
}

/* Lays out the marks of a class. False: what is read in another slot is not made there. */
static bool lay_out(brief_run *run, runner *r)
{
    const etch_sim *sim = run->sim;
    const uint32_t slots = r->slots->count + 1, streams = run->streams;
    r->first_mark = ETCH_NEW_ARRAY(sim->arena, slots + 1, uint32_t);
    r->nodes = ETCH_NEW_ARRAY(sim->arena, slots + 1, uint64_t);
    r->last = ETCH_NEW_ARRAY(sim->arena, ((size_t)slots + 1) * streams, struct last_mark);
    for (uint32_t s = 0; s < streams; s++)
        r->last[s] = (struct last_mark){UINT32_MAX, UINT32_MAX};
    for (uint32_t i = 0; i < slots; i++) {
        const etch_sim_weave *weave = weave_at(r, i);
        struct last_mark *last = last_before(run, r, i);
        r->first_mark[i + 1] = r->first_mark[i] + weave->mark_count;
        r->nodes[i + 1] = r->nodes[i] + weave->node_count;
        for (uint32_t s = 0; s < streams; s++)
            last[streams + s] =
                weave->last[s] == UINT32_MAX ? last[s] : (struct last_mark){i, weave->last[s]};
        for (uint32_t k = 0; k < weave->threads.count; k++)
            if (!is_made(run, r, i, &weave->threads.at[k]))
                return false;
    }
    r->marks = unknown_spans(sim, r->first_mark[slots]);
    return true;
}

/* What a class does. False: it is not shown, or takes too long for sums that are not checked. */
static bool begin_class(brief_run *run, const etch_brief_program *programs, uint32_t class, uint64_t *work)
{
    etch_sim *sim = run->sim;
    runner *r = &run->runners[class];
    r->program = &programs[sim->job->class_of[sim->first_rank[class]]];
    r->slots = &r->program->whole;
    r->weaves = ETCH_NEW_ARRAY(sim->arena, r->program->contents.count, etch_sim_weave);
    for (uint32_t i = 0; i < r->program->contents.count; i++)
        etch_sim_weave_make(sim, r->program, class, i, &r->weaves[i]);
    if (sim->lacks || !lay_out(run, r))
        return false;
    const size_t tags = (size_t)r->slots->microbatches * r->slots->chunks * 2;
    r->sends = unknown_spans(sim, tags);
    r->receives = unknown_spans(sim, tags);
    r->met = ETCH_NEW_ARRAY(sim->arena, sim->job->family_count, uint32_t);
    const uint64_t launch = sim->options->stack ? sim->options->stack->launch : 0;
    for (uint32_t i = 0; i <= r->slots->count; i++) {
        const etch_sim_weave *weave = weave_at(r, i);
        uint64_t all;
        if (__builtin_mul_overflow(launch, weave->node_count, &all) ||
            __builtin_add_overflow(all, weave->work, &all) || __builtin_add_overflow(*work, all, work) ||
            *work > INT64_MAX)
            return false;
    }
    return true;
}

static bool advance_all(brief_run *run)
{
    bool moves = false;
    for (uint32_t c = 0; c < run->sim->class_count; c++)
        moves = advance(run, &run->runners[c]) || moves;
    return moves;
}

static bool post_all(brief_run *run)
{
    bool moves = false;
    for (uint32_t c = 0; c < run->sim->class_count; c++)
        moves = post_far(run, &run->runners[c]) || moves;
    return moves;
}

bool etch_sim_brief(etch_sim *sim, etch_step_time *out)
{
    const etch_job *job = sim->job;
    const etch_sim_program *prepared = etch_sim_prepare(sim, true);
    etch_brief_program *programs = ETCH_NEW_ARRAY(sim->arena, job->program_count, etch_brief_program);
    brief_run run = {.sim = sim, .streams = etch_sim_streams(sim)};
    uint64_t work = 0;
    bool fine = !sim->lacks;
    for (uint32_t i = 0; fine && i < job->program_count; i++)
        fine = etch_brief_read(sim, &prepared[i], i / job->work_share_count, &programs[i]);
    run.runners = ETCH_NEW_ARRAY(sim->arena, sim->class_count, runner);
    run.meetings = ETCH_NEW_ARRAY(sim->arena, sim->groups.count, meeting_list);
    for (uint32_t c = 0; fine && c < sim->class_count; c++)
        fine = begin_class(&run, programs, c, &work);
    while (fine && (advance_all(&run) || post_all(&run)))
        continue;
    for (uint32_t c = 0; fine && c < sim->class_count; c++)
        fine = run.runners[c].slot > run.runners[c].slots->count;
    *out = (etch_step_time){.step = run.step.count, .error = run.step.error};
    return fine;
}
