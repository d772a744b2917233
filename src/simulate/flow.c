/* How the slots of all classes wait for each other: events, each of which ends so much after others. What is
 * in the middle of a step repeats itself, microbatch by microbatch: it is looked for, and proved event by
 * event. */
#include "simulate/shape_int.h"

#include <string.h>

/* Of a stream: the slot, and in that the mark, of a node; UINT32_MAX: none. */
struct last_mark {
    uint32_t slot, mark;
};

/* A class and its slots. */
typedef struct flowing_class {
    etch_sim_slots slots;
    /* by slot: the event of its first mark */
    uint32_t *first;
    /* by slot and stream: the last node before it */
    struct last_mark *last;
    /* by the tag of a message: the event of its receive */
    uint32_t *receives;
    /* the first slot of the middle, how many a repeat has, and how many events */
    uint32_t begins, period, step;
} flowing_class;

typedef struct meeting {
    uint32_t event, count;
} meeting;
typedef ETCH_VEC(meeting) meeting_list;

typedef struct flowing {
    const etch_step_shape *shape;
    etch_shape_flow *flow;
    /* as marks are numbered, class by class and slot by slot */
    etch_flow_event *events;
    uint32_t event_count;
    etch_arena *arena, *scratch;
    flowing_class *classes;
    uint32_t class_count;
    ETCH_VEC(etch_flow_source) sources;
    /* by event: its class, slot, mark; and the event that stands for it */
    uint32_t *class_of, *slot_of, *mark_of, *home;
    /* by event that another stands for: the next one it stands for */
    uint32_t *next;
    /* by event: what it lasts itself, as long as events have no numbers of durations; of which each is kept
     * once */
    etch_flow_duration *duration_of;
    etch_sim_words durations;
    /* by event: how many wait for it; does neither a wait nor the end of the step depend on it? */
    uint32_t *uses;
    bool *is_idle;
    /* each event after all that it waits for; by event: is it there? */
    uint32_t *order, order_count;
    bool *is_listed;
    ETCH_VEC(uint32_t) stack;
} flowing;

static const etch_shape_content *content_at(const flowing *f, uint32_t class, uint32_t slot)
{
    return &f->shape->contents[class][f->classes[class].slots.content[slot]];
}

static struct last_mark *last_before(const flowing *f, const flowing_class *c, uint32_t slot)
{
    return c->last + (size_t)slot * f->shape->streams;
}

/* ---- events -------------------------------------------------------------------------------------------- */

/* Of one class: its slots, and numbers for its marks. */
static bool list_class(flowing *f, uint32_t class, const etch_pipe *pipe, uint64_t *events)
{
    enum { MOST_EVENTS = 1 << 18 };
    flowing_class *c = &f->classes[class];
    const uint32_t streams = f->shape->streams;
    if (!etch_brief_whole(f->scratch, &f->shape->programs[class], pipe, class, &c->slots))
        return false;
    const uint32_t slots = c->slots.count + 1;
    c->first = ETCH_NEW_ARRAY(f->scratch, slots + 1, uint32_t);
    c->last = ETCH_NEW_ARRAY(f->scratch, ((size_t)slots + 1) * streams, struct last_mark);
    c->receives = ETCH_NEW_ARRAY(f->scratch, (size_t)c->slots.microbatches * c->slots.chunks * 2, uint32_t);
    memset(c->last, 0xff, streams * sizeof *c->last);
    for (uint32_t i = 0; i < slots; i++) {
        const etch_shape_content *content = content_at(f, class, i);
        struct last_mark *last = last_before(f, c, i);
        c->first[i] = (uint32_t)*events;
        *events += content->mark_count;
        f->flow->nodes += content->node_count;
        if (*events > MOST_EVENTS)
            return false;
        for (uint32_t s = 0; s < streams; s++)
            last[streams + s] =
                content->last[s] == UINT32_MAX ? last[s] : (struct last_mark){i, content->last[s]};
    }
    c->first[slots] = (uint32_t)*events;
    return true;
}

static uint32_t tag_of(const flowing_class *c, uint32_t slot, const etch_shape_mark *mark)
{
    const etch_action *action = &c->slots.actions[c->slots.first[slot] + mark->action];
    return (uint32_t)((action->microbatch * c->slots.chunks + mark->row) * 2 + mark->back);
}

/* The mark of a receive; UINT32_MAX: there are not so many. */
static uint32_t receive_of(const etch_shape_content *content, uint32_t number)
{
    for (uint32_t i = 0; i < content->mark_count; i++)
        if (content->marks[i].kind == ETCH_MARK_RECEIVES && number-- == 0)
            return i;
    return UINT32_MAX;
}

/* What a thread begins with. False: it is not made. */
static bool source_of(const flowing *f, uint32_t class, uint32_t slot, const etch_shape_thread *thread,
                      uint32_t *event)
{
    const flowing_class *c = &f->classes[class];
    const etch_wait *wait = &thread->wait;
    struct last_mark at = {slot, wait->what};
    uint32_t since;
    *event = ETCH_FLOW_START;
    switch (wait->form) {
    case ETCH_WAIT_LAUNCH:
        return true;
    case ETCH_WAIT_HERE:
        break;
    case ETCH_WAIT_LAST:
        if (wait->what > slot)
            return false;
        at = last_before(f, c, slot - wait->what)[wait->where];
        break;
    case ETCH_WAIT_SINCE:
        if (!etch_slot_of_wait(&c->slots, slot, wait, &since) || since >= slot)
            return false;
        at = last_before(f, c, since + 1)[wait->what];
        break;
    case ETCH_WAIT_SAME:
    case ETCH_WAIT_BACK:
        if (!etch_slot_of_wait(&c->slots, slot, wait, &at.slot))
            return false;
        if (wait->what >= ETCH_WAIT_RECEIVE)
            at.mark = receive_of(content_at(f, class, at.slot), wait->what - ETCH_WAIT_RECEIVE);
        else if (c->slots.content[at.slot] != thread->content)
            return false;
        break;
    case ETCH_WAIT_UNKNOWN:
        return false;
    }
    if (at.slot == UINT32_MAX || at.mark == UINT32_MAX)
        return false;
    *event = f->home[c->first[at.slot] + at.mark];
    return true;
}

/* `event` stands for another one as well. */
static void join(flowing *f, uint32_t event, uint32_t other)
{
    f->home[other] = event;
    while (f->next[event] != UINT32_MAX)
        event = f->next[event];
    f->next[event] = other;
}

/* Both sides of a message are one event. False: a side is missing. */
static bool join_messages(flowing *f)
{
    uint32_t sends = 0, receives = 0;
    for (uint32_t e = 1; e < f->event_count; e++) {
        const uint32_t class = f->class_of[e], slot = f->slot_of[e];
        const etch_shape_mark *mark = &content_at(f, class, slot)->marks[f->mark_of[e]];
        if (mark->kind != ETCH_MARK_RECEIVES)
            continue;
        uint32_t *at = &f->classes[class].receives[tag_of(&f->classes[class], slot, mark)];
        if (*at != 0)
            return false;
        *at = e;
        receives++;
    }
    for (uint32_t e = 1; e < f->event_count; e++) {
        const uint32_t class = f->class_of[e], slot = f->slot_of[e];
        const etch_shape_mark *mark = &content_at(f, class, slot)->marks[f->mark_of[e]];
        if (mark->kind != ETCH_MARK_SENDS)
            continue;
        const uint32_t other = f->classes[mark->other].receives[tag_of(&f->classes[class], slot, mark)];
        const etch_shape_mark *back =
            other ? &content_at(f, mark->other, f->slot_of[other])->marks[f->mark_of[other]] : NULL;
        if (!back || back->other != class || back->entry != mark->entry || f->home[other] != other)
            return false;
        f->duration_of[e].sends = class;
        f->duration_of[e].receives = mark->other;
        join(f, e, other);
        sends++;
    }
    return sends == receives;
}

/* Collectives of several classes, the n-th of each family with the n-th. */
static bool join_meetings(flowing *f)
{
    const uint32_t families = f->shape->job->family_count;
    meeting_list *meetings = ETCH_NEW_ARRAY(f->scratch, f->shape->group_count, meeting_list);
    uint32_t *met = ETCH_NEW_ARRAY(f->scratch, (size_t)f->class_count * families, uint32_t);
    for (uint32_t e = 1; e < f->event_count; e++) {
        const etch_shape_mark *mark = &content_at(f, f->class_of[e], f->slot_of[e])->marks[f->mark_of[e]];
        if (mark->kind != ETCH_MARK_MEETS)
            continue;
        const uint32_t family = f->shape->groups[mark->group].family;
        const uint32_t number = met[(size_t)f->class_of[e] * families + family]++;
        meeting_list *all = &meetings[mark->group];
        if (number > all->count)
            return false;
        if (number == all->count)
            ETCH_PUSH(f->scratch, all, (meeting){e, 0});
        else
            join(f, all->at[number].event, e);
        all->at[number].count++;
    }
    for (uint32_t g = 0; g < f->shape->group_count; g++)
        for (uint32_t i = 0; i < meetings[g].count; i++)
            if (meetings[g].at[i].count != f->shape->groups[g].class_count)
                return false;
    return true;
}

static uint32_t number_of(flowing *f, const etch_flow_duration *duration)
{
    const uint32_t words[] = {duration->entry, duration->sends, duration->receives};
    return etch_sim_number(&f->durations, words, sizeof words / sizeof *words);
}

static bool add_sources(flowing *f, uint32_t event)
{
    etch_flow_event *out = &f->events[event];
    etch_flow_duration *lasts = &f->duration_of[event];
    out->first_source = f->sources.count;
    for (uint32_t e = event; e != UINT32_MAX; e = f->next[e]) {
        const etch_shape_content *content = content_at(f, f->class_of[e], f->slot_of[e]);
        const etch_shape_mark *mark = &content->marks[f->mark_of[e]];
        lasts->entry = mark->entry;
        for (uint32_t k = mark->first_thread; k < mark->first_thread + mark->thread_count; k++) {
            const etch_shape_thread *thread = &content->threads.at[k];
            etch_flow_source source = {.cell = thread->cell};
            if (!source_of(f, f->class_of[e], f->slot_of[e], thread, &source.event))
                return false;
            ETCH_PUSH(f->scratch, &f->sources, source);
        }
    }
    out->source_count = f->sources.count - out->first_source;
    if (lasts->entry != UINT32_MAX)
        out->duration = number_of(f, lasts);
    return true;
}

static void name_events(flowing *f)
{
    const uint32_t count = f->event_count;
    f->class_of = ETCH_NEW_ARRAY(f->scratch, count, uint32_t);
    f->slot_of = ETCH_NEW_ARRAY(f->scratch, count, uint32_t);
    f->mark_of = ETCH_NEW_ARRAY(f->scratch, count, uint32_t);
    f->home = ETCH_NEW_ARRAY(f->scratch, count, uint32_t);
    f->next = ETCH_NEW_ARRAY(f->scratch, count, uint32_t);
    f->is_listed = ETCH_NEW_ARRAY(f->scratch, count, bool);
    f->duration_of = ETCH_NEW_ARRAY(f->scratch, count, etch_flow_duration);
    f->events = ETCH_NEW_ARRAY(f->scratch, count, etch_flow_event);
    for (uint32_t e = 0; e < count; e++) {
        f->home[e] = e;
        f->next[e] = UINT32_MAX;
        f->events[e] = (etch_flow_event){.duration = UINT32_MAX, .repeat = UINT32_MAX};
        f->duration_of[e] = (etch_flow_duration){UINT32_MAX, UINT32_MAX, UINT32_MAX};
    }
    for (uint32_t c = 0; c < f->class_count; c++)
        for (uint32_t slot = 0; slot <= f->classes[c].slots.count; slot++)
            for (uint32_t e = f->classes[c].first[slot]; e < f->classes[c].first[slot + 1]; e++) {
                f->class_of[e] = c;
                f->slot_of[e] = slot;
                f->mark_of[e] = e - f->classes[c].first[slot];
            }
}

/* ---- the middle ---------------------------------------------------------------------------------------- */

/* Microbatches that repeat together. */
static uint64_t together(const etch_pipe *pipe)
{
    return pipe->chunks == 1 ? 1 : pipe->stages;
}

/* The slot that does a microbatch, or the first after it that goes there, forward in the first chunk of a
 * stage. */
static uint32_t slot_forward(const flowing_class *c, uint64_t microbatch)
{
    microbatch += c->slots.actions[0].microbatch % c->slots.step;
    return c->slots
        .slot_of[(size_t)ETCH_ACTION_FORWARD * c->slots.chunks * c->slots.microbatches + microbatch];
}

/* The event that is to it what the one a repeat later is. False: there is none. */
static bool shift(const flowing *f, uint32_t event, uint32_t *out)
{
    const flowing_class *c = &f->classes[f->class_of[event]];
    const uint32_t slot = f->slot_of[event], to = slot + c->period;
    if (event == ETCH_FLOW_START || to >= c->slots.count || c->slots.content[to] != c->slots.content[slot])
        return false;
    *out = c->first[to] + f->mark_of[event];
    return true;
}

/* Waits the event a repeat later alike, for what is a repeat later? */
static bool is_repeated(const flowing *f, uint32_t event)
{
    uint32_t later;
    if (!shift(f, event, &later) || f->home[later] != later)
        return false;
    const etch_flow_event *a = &f->events[event], *b = &f->events[later];
    if (a->source_count != b->source_count || a->duration != b->duration)
        return false;
    for (uint32_t i = 0; i < a->source_count; i++) {
        const etch_flow_source *x = &f->sources.at[a->first_source + i],
                               *y = &f->sources.at[b->first_source + i];
        uint32_t source = ETCH_FLOW_START;
        if (x->cell != y->cell || (x->event != ETCH_FLOW_START && !shift(f, x->event, &source)) ||
            source != y->event)
            return false;
    }
    return true;
}

/* The events of a class in a repeat, counted from the first one of the middle. */
static void bounds_of(const flowing_class *c, int64_t repeat, int64_t *first, int64_t *end)
{
    *first = (int64_t)c->begins + repeat * c->period;
    *end = *first + c->period;
}

/* Is a repeat followed by one that is like it? */
static bool repeats(const flowing *f, int64_t repeat)
{
    for (uint32_t k = 0; k < f->class_count; k++) {
        const flowing_class *c = &f->classes[k];
        int64_t first, end;
        bounds_of(c, repeat, &first, &end);
        if (first < 0 || end + c->period > c->slots.count)
            return false;
        for (uint32_t e = c->first[first], later; e < c->first[end]; e++)
            if (!shift(f, e, &later) || (f->home[e] == e) != (f->home[later] == later) ||
                (f->home[e] == e && !is_repeated(f, e)))
                return false;
    }
    return true;
}

/* How far events of the middle look back. False: some look ahead. */
static bool find_reach(flowing *f)
{
    etch_shape_flow *flow = f->flow;
    flow->reach = 1;
    for (uint32_t e = 1; e < f->event_count; e++) {
        const etch_flow_event *event = &f->events[e];
        if (f->home[e] != e || event->repeat == UINT32_MAX)
            continue;
        for (uint32_t i = 0; i < event->source_count; i++) {
            const uint32_t source = f->sources.at[event->first_source + i].event;
            const flowing_class *c = &f->classes[f->class_of[source]];
            if (source == ETCH_FLOW_START)
                continue;
            const int64_t before = (int64_t)c->begins - f->slot_of[source];
            const int64_t repeat = before > 0 ? -((before + c->period - 1) / c->period) : -before / c->period;
            const int64_t back = (int64_t)event->repeat - repeat;
            if (back < 0)
                return false;
            if (back > (int64_t)flow->reach)
                flow->reach = (uint32_t)back;
        }
    }
    return true;
}

static void set_repeats(flowing *f, int64_t first, int64_t last)
{
    for (uint32_t k = 0; k < f->class_count; k++) {
        flowing_class *c = &f->classes[k];
        c->begins = (uint32_t)((int64_t)c->begins + first * c->period);
        c->step = c->first[c->begins + c->period] - c->first[c->begins];
        for (uint32_t i = 0; i <= last - first; i++) {
            const uint32_t slot = c->begins + i * c->period;
            for (uint32_t e = c->first[slot]; e < c->first[slot + c->period]; e++) {
                f->events[e].repeat = i;
            }
        }
    }
    f->flow->repeats = (uint32_t)(last - first) + 1;
    if (!find_reach(f))
        f->flow->repeats = 0;
}

static void find_middle(flowing *f, const etch_pipe *pipe)
{
    const uint64_t step = together(pipe), middle = pipe->microbatches / 2 / step * step;
    if (middle + 2 * step > pipe->microbatches)
        return;
    for (uint32_t k = 0; k < f->class_count; k++) {
        flowing_class *c = &f->classes[k];
        const uint32_t at = slot_forward(c, middle), next = slot_forward(c, middle + step);
        if (next <= at)
            return;
        c->begins = at;
        c->period = next - at;
    }
    int64_t first = 0, last = 0;
    if (!repeats(f, 0))
        return;
    while (repeats(f, first - 1))
        first--;
    while (repeats(f, last))
        last++;
    set_repeats(f, first, last);
}

/* ---- what is needed ------------------------------------------------------------------------------------ */

static void count_uses(flowing *f)
{
    f->uses = ETCH_NEW_ARRAY(f->scratch, f->event_count, uint32_t);
    f->is_idle = ETCH_NEW_ARRAY(f->scratch, f->event_count, bool);
    for (uint32_t e = 1; e < f->event_count; e++)
        for (uint32_t i = 0; f->home[e] == e && i < f->events[e].source_count; i++)
            f->uses[f->sources.at[f->events[e].first_source + i].event]++;
}

/* Ends of which nothing but the end of the step could come, and that something in their slots ends after.
 * Those of the middle are needed, or not, in all of its repeats. */
static void find_idle(flowing *f)
{
    for (uint32_t e = 1; e < f->event_count; e++) {
        const flowing_class *c = &f->classes[f->class_of[e]];
        const etch_shape_mark *mark = &content_at(f, f->class_of[e], f->slot_of[e])->marks[f->mark_of[e]];
        f->is_idle[e] = mark->kind == ETCH_MARK_ENDS && mark->is_followed && f->uses[e] == 0;
        const uint32_t repeat = f->events[e].repeat;
        if (repeat == UINT32_MAX || repeat == 0)
            continue;
        bool *first = &f->is_idle[e - repeat * c->step];
        *first = *first && f->is_idle[e];
    }
    for (uint32_t e = 1; e < f->event_count; e++) {
        const uint32_t repeat = f->events[e].repeat;
        if (repeat != UINT32_MAX)
            f->is_idle[e] = f->is_idle[e - repeat * f->classes[f->class_of[e]].step];
    }
}

/* Does the event stand for itself, and is needed? */
static bool counts(const flowing *f, uint32_t event)
{
    return f->home[event] == event && !f->is_idle[event];
}

/* ---- the order ----------------------------------------------------------------------------------------- */

/* Adds an event behind all that it waits for. False: it waits for itself. */
static bool list_event(flowing *f, uint32_t event)
{
    f->stack.count = 0;
    ETCH_PUSH(f->scratch, &f->stack, event);
    while (f->stack.count > 0) {
        const uint32_t at = f->stack.at[f->stack.count - 1];
        const etch_flow_event *e = &f->events[at];
        bool ready = true;
        for (uint32_t i = 0; !f->is_listed[at] && i < e->source_count; i++) {
            const uint32_t source = f->sources.at[e->first_source + i].event;
            if (source == ETCH_FLOW_START || f->is_listed[source])
                continue;
            ready = false;
            ETCH_PUSH(f->scratch, &f->stack, source);
            if (f->stack.count > 2 * f->event_count)
                return false;
        }
        if (!ready)
            continue;
        f->stack.count--;
        if (!f->is_listed[at])
            f->order[f->order_count++] = at;
        f->is_listed[at] = true;
    }
    return true;
}

/* Those before the middle, repeat by repeat, and those after it. */
static bool list_events(flowing *f)
{
    etch_shape_flow *flow = f->flow;
    bool fine = true;
    f->order = ETCH_NEW_ARRAY(f->scratch, f->event_count, uint32_t);
    flow->ends = ETCH_NEW_ARRAY(f->arena, flow->repeats + 1, uint32_t);
    for (uint32_t c = 0; c < f->class_count; c++)
        for (uint32_t e = f->classes[c].first[0];
             flow->repeats && fine && e < f->classes[c].first[f->classes[c].begins]; e++)
            fine = !counts(f, e) || list_event(f, e);
    for (uint32_t i = 0; fine && i < flow->repeats; i++) {
        for (uint32_t c = 0; fine && c < f->class_count; c++) {
            const flowing_class *own = &f->classes[c];
            const uint32_t slot = own->begins + i * own->period;
            for (uint32_t e = own->first[slot]; fine && e < own->first[slot + own->period]; e++)
                fine = !counts(f, e) || list_event(f, e);
        }
        flow->ends[i] = f->order_count + 1;
    }
    for (uint32_t e = 1; fine && e < f->event_count; e++)
        fine = !counts(f, e) || list_event(f, e);
    return fine;
}

/* By repeat and event of it: where that stands. */
static void list_repeats(flowing *f, const uint32_t *number)
{
    etch_shape_flow *flow = f->flow;
    ETCH_VEC(uint32_t) first = {0};
    for (uint32_t e = 1; e < f->event_count; e++)
        if (counts(f, e) && f->events[e].repeat == 0)
            ETCH_PUSH(f->scratch, &first, e);
    flow->each_count = first.count;
    flow->repeated = ETCH_NEW_ARRAY(f->arena, (size_t)flow->repeats * first.count, uint32_t);
    for (uint32_t i = 0; i < flow->repeats; i++)
        for (uint32_t k = 0; k < first.count; k++) {
            const uint32_t event = number[first.at[k] + i * f->classes[f->class_of[first.at[k]]].step];
            flow->repeated[(size_t)i * first.count + k] = event;
            flow->events[event].which = k;
        }
}

/* Events in their order, and what they wait for: next to each other, they are quickly gone through. */
static void lay_out(flowing *f)
{
    etch_shape_flow *flow = f->flow;
    uint32_t *number = ETCH_NEW_ARRAY(f->scratch, f->event_count, uint32_t), sources = 0;
    flow->event_count = f->order_count + 1;
    flow->events = ETCH_NEW_ARRAY(f->arena, flow->event_count, etch_flow_event);
    flow->sources = ETCH_NEW_ARRAY(f->arena, f->sources.count, etch_flow_source);
    flow->events[ETCH_FLOW_START] = f->events[ETCH_FLOW_START];
    for (uint32_t i = 0; i < f->order_count; i++)
        number[f->order[i]] = i + 1;
    for (uint32_t i = 0; i < f->order_count; i++) {
        etch_flow_event *event = &flow->events[i + 1];
        *event = f->events[f->order[i]];
        event->is_last = f->uses[f->order[i]] == 0;
        event->first_source = sources;
        for (uint32_t k = 0; k < event->source_count; k++) {
            const etch_flow_source *from = &f->sources.at[f->events[f->order[i]].first_source + k];
            flow->sources[sources++] = (etch_flow_source){number[from->event], from->cell};
        }
    }
    list_repeats(f, number);
}

/* ---- more microbatches --------------------------------------------------------------------------------- */

/* Where an event stands: before the middle, in it, after it. */
static int zone_of(const flowing *f, uint32_t event)
{
    const flowing_class *c = &f->classes[f->class_of[event]];
    return f->slot_of[event] < c->begins ? -1 : f->events[event].repeat == UINT32_MAX;
}

static void find_growth(flowing *f)
{
    etch_shape_flow *flow = f->flow;
    flow->may_grow = flow->repeats > 0;
    for (uint32_t e = 1; flow->may_grow && e < f->event_count; e++) {
        const etch_flow_event *event = &f->events[e];
        if (f->home[e] != e)
            continue;
        const int zone = zone_of(f, e);
        const bool meets =
            content_at(f, f->class_of[e], f->slot_of[e])->marks[f->mark_of[e]].kind == ETCH_MARK_MEETS;
        flow->may_grow = !(meets && zone == 0);
        for (uint32_t i = 0; i < event->source_count; i++) {
            const uint32_t source = f->sources.at[event->first_source + i].event;
            if (source != ETCH_FLOW_START && zone * zone_of(f, source) < 0)
                flow->may_grow = false;
        }
    }
    flow->actions_before = ETCH_NEW_ARRAY(f->arena, f->class_count, uint32_t);
    flow->actions_each = ETCH_NEW_ARRAY(f->arena, f->class_count, uint32_t);
    flow->actions_until = ETCH_NEW_ARRAY(f->arena, f->class_count, uint32_t);
    for (uint32_t k = 0; flow->may_grow && k < f->class_count; k++) {
        const flowing_class *c = &f->classes[k];
        const uint32_t *first = c->slots.first;
        flow->actions_before[k] = first[c->begins];
        flow->actions_each[k] = first[c->begins + c->period] - first[c->begins];
        flow->actions_until[k] = first[c->begins + flow->repeats * c->period];
    }
}

/* Is an action another one, so many microbatches later? */
static bool is_later(const etch_action *action, const etch_action *of, uint64_t microbatches)
{
    return action->kind == of->kind && action->chunk == of->chunk && action->overlaps == of->overlaps &&
           action->microbatch == of->microbatch + microbatches;
}

/* Are the actions of a class, of more microbatches, those of the flow, but for repeats between them? What
 * slots do, and what they wait for, follows from actions around them, and from those of the same
 * microbatches. */
static bool grows(etch_arena *arena, const etch_shape_flow *flow, const etch_pipe *pipe, uint32_t class,
                  uint64_t extra)
{
    etch_pipe fewer = *pipe;
    fewer.microbatches = flow->microbatches;
    const uint64_t before = flow->actions_before[class], each = flow->actions_each[class],
                   until = flow->actions_until[class], count = etch_action_count(&fewer), more = extra * each,
                   step = together(pipe);
    if (etch_action_count(pipe) != count + more)
        return false;
    const etch_action *a = etch_actions(arena, &fewer, class), *b = etch_actions(arena, pipe, class);
    bool fine = true;
    for (uint64_t i = 0; fine && i < until; i++)
        fine = is_later(&b[i], &a[i], 0) && (i < before + each || is_later(&a[i], &a[i - each], step));
    for (uint64_t i = 0; fine && i < more; i++)
        fine = is_later(&b[until + i], &a[until - each + i % each], step * (1 + i / each));
    for (uint64_t i = until; fine && i < count; i++)
        fine = is_later(&b[more + i], &a[i], step * extra);
    return fine;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void keep_durations(const flowing *f)
{
    f->flow->duration_count = f->durations.lists.count;
    f->flow->durations = ETCH_NEW_ARRAY(f->arena, f->durations.lists.count, etch_flow_duration);
    for (uint32_t i = 0; i < f->durations.lists.count; i++) {
        uint32_t count;
        const uint32_t *words = etch_sim_list_at(&f->durations, i, &count);
        f->flow->durations[i] = (etch_flow_duration){words[0], words[1], words[2]};
    }
}

static bool make(flowing *f, const etch_pipe *pipe)
{
    uint64_t events = 1;
    f->classes = ETCH_NEW_ARRAY(f->scratch, f->class_count, flowing_class);
    for (uint32_t c = 0; c < f->class_count; c++)
        if (!list_class(f, c, pipe, &events))
            return false;
    f->event_count = (uint32_t)events;
    name_events(f);
    if (!join_messages(f) || !join_meetings(f))
        return false;
    for (uint32_t e = 1; e < events; e++)
        if (f->home[e] == e && !add_sources(f, e))
            return false;
    find_middle(f, pipe);
    find_growth(f);
    count_uses(f);
    find_idle(f);
    keep_durations(f);
    if (!list_events(f))
        return false;
    lay_out(f);
    return true;
}

static const etch_shape_flow *make_flow(etch_arena *arena, const etch_step_shape *shape,
                                        const etch_pipe *pipe)
{
    flowing f = {.shape = shape,
                 .flow = ETCH_NEW(arena, etch_shape_flow),
                 .arena = arena,
                 .scratch = etch_arena_new(etch_arena_mem(arena)),
                 .class_count = shape->job->program_count};
    f.durations.arena = f.scratch;
    f.flow->microbatches = pipe->microbatches;
    const bool fine = etch_pipe_fits(etch_diags_new(f.scratch), (etch_span){0, 0}, pipe) && make(&f, pipe);
    etch_arena_free(f.scratch);
    return fine ? f.flow : NULL;
}

/* Few microbatches, of which there are as many more than whole repeats; all, where there are not more. */
static uint64_t few_of(const etch_pipe *pipe)
{
    enum { REPEATS = 48, EMPTY = 4 };
    const uint64_t step = together(pipe), few = EMPTY * (uint64_t)pipe->stages + REPEATS;
    const uint64_t rounded = (few + step - 1) / step * step + pipe->microbatches % step;
    return rounded < pipe->microbatches ? rounded : pipe->microbatches;
}

static const etch_shape_flow *base_of(etch_step_shape *shape, const etch_pipe *pipe)
{
    etch_pipe few = *pipe;
    few.microbatches = few_of(pipe);
    for (uint32_t i = 0; i < shape->bases.count; i++)
        if (shape->bases.at[i].microbatches == few.microbatches)
            return shape->bases.at[i].flow;
    const etch_shape_flow *flow = make_flow(shape->arena, shape, &few);
    ETCH_PUSH(shape->arena, &shape->bases, ((etch_shape_base){few.microbatches, flow}));
    return flow;
}

const etch_shape_flow *etch_step_shape_flow(etch_arena *arena, etch_step_shape *shape, uint64_t microbatches)
{
    etch_pipe pipe = *shape->job->pipe;
    pipe.microbatches = microbatches;
    if (few_of(&pipe) == microbatches)
        return make_flow(arena, shape, &pipe);
    const etch_shape_flow *base = base_of(shape, &pipe);
    if (!base || !base->may_grow)
        return make_flow(arena, shape, &pipe);
    etch_arena *scratch = etch_arena_new(etch_arena_mem(arena));
    const uint64_t extra = (microbatches - base->microbatches) / together(&pipe);
    bool fine = etch_pipe_fits(etch_diags_new(scratch), (etch_span){0, 0}, &pipe);
    for (uint32_t c = 0; fine && c < shape->job->program_count; c++)
        fine = grows(scratch, base, &pipe, c, extra);
    etch_arena_free(scratch);
    if (!fine)
        return make_flow(arena, shape, &pipe);
    etch_shape_flow *flow = ETCH_NEW(arena, etch_shape_flow);
    *flow = *base;
    flow->microbatches = microbatches;
    flow->extra = extra;
    flow->nodes = base->nodes * (microbatches / base->microbatches + 1);
    return flow;
}
