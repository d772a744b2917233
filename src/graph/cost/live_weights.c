/* Weights that ranks hold in parts: gathered copies of them, and gradients that are whole until they are
 * reduced. */
#include "graph/cost/live_run_int.h"
#include "graph/place/steps.h"

/* ---- weight groups ------------------------------------------------------------------------------------- */

void etch_live_find_groups(etch_live_run *r)
{
    const etch_placed *placed = r->program->placed;
    for (etch_placed_cursor at = {.root = placed->forward, .then = placed->backward};
         etch_placed_cursor_next(&at);)
        if (at.item->step && at.item->step->copies)
            r->ahead = placed->plan->zero.ahead;
    r->group_of = ETCH_NEW_ARRAY(r->arena, placed->training->graph->tensors.count, const etch_weight_group *);
    for (uint32_t i = 0; i < placed->weight_groups.count; i++)
        for (uint32_t k = 0; k < placed->weight_groups.at[i]->weights.count; k++)
            r->group_of[placed->weight_groups.at[i]->weights.at[k]->id] = placed->weight_groups.at[i];
}

void etch_live_begin_pass(etch_live_run *r)
{
    r->groupings.count = 0;
}

static etch_live_grouping *grouping_of(etch_live_run *r, uint32_t chunk)
{
    uint32_t i = 0;
    while (i < r->groupings.count && r->groupings.at[i].chunk != chunk)
        i++;
    if (i == r->groupings.count)
        ETCH_PUSH(r->arena, &r->groupings, (etch_live_grouping){.chunk = chunk, .begins = true});
    return &r->groupings.at[i];
}

static void begin_group(etch_live_run *r, uint32_t chunk)
{
    etch_live_grouping *grouping = grouping_of(r, chunk);
    grouping->begins = grouping->computes = false;
    ETCH_PUSH(r->arena, &r->groups, (etch_live_group){r->pass, chunk, ETCH_NO_EVENT});
}

/* Traces leave out a loop without any node, and without values that it carries. */
void etch_live_begin_iteration(etch_live_run *r, const etch_live_loop *loop, uint32_t chunk)
{
    bool works = loop->loop->bodies.at[0]->carries.count > 0;
    for (uint32_t b = 0; b < loop->loop->bodies.count; b++)
        for (uint32_t i = 0; i < loop->loop->bodies.at[b]->items.count; i++) {
            const etch_item *item = &loop->loop->bodies.at[b]->items.at[i];
            works = works || item->loop || item->op->row->role != ETCH_ROLE_FREE;
        }
    if (works)
        begin_group(r, chunk);
}

void etch_live_end_loop(etch_live_run *r, uint32_t chunk)
{
    grouping_of(r, chunk)->begins = true;
}

/* Is the weight group of the same action: of a stage those of one chunk of a pass, of one stage all? */
static bool is_of_action(const etch_live_run *r, const etch_live_group *group, uint32_t chunk)
{
    return !r->program->view || (group->pass == r->pass && group->chunk == chunk);
}

void etch_live_count_group(etch_live_run *r, const etch_step *step, uint32_t chunk)
{
    etch_live_grouping *grouping = grouping_of(r, chunk);
    if (etch_step_role(step) == ETCH_ROLE_FREE)
        return;
    if (r->open.count == 1 && (grouping->begins || (step->copies && grouping->computes)))
        begin_group(r, chunk);
    if (step->copies)
        return;
    grouping->computes = true;
    uint32_t i = r->groups.count - 1;
    while (r->groups.at[i].pass != r->pass || r->groups.at[i].chunk != chunk)
        i--;
    if (r->groups.at[i].event == ETCH_NO_EVENT)
        r->groups.at[i].event = r->events.count - 1;
}

/* When weights of the group at work are gathered: with the first node of the group that is so many before, or
 * of the first behind that; of what an action of a stage runs first, with its first node. */
static uint32_t gathered_at(const etch_live_run *r, uint32_t chunk)
{
    uint32_t at = r->events.count - 1;
    uint64_t before = 0;
    for (uint32_t i = r->groups.count; i-- > 0 && r->ahead > 0 && before <= r->ahead;) {
        const etch_live_group *group = &r->groups.at[i];
        if (!is_of_action(r, group, chunk))
            continue;
        at = group->event == ETCH_NO_EVENT ? at : group->event;
        before++;
    }
    return at;
}

/* ---- copies -------------------------------------------------------------------------------------------- */

/* Has an earlier iteration of this loop gathered it? */
static bool is_gathered_again(const etch_live_run *r, uint32_t name)
{
    const etch_region *body = r->program->names[name].region;
    const etch_live_turns *turns = body->loop ? etch_live_turns_of(r, body->loop) : NULL;
    for (uint32_t t = 0; turns && r->memory_of[name] && t < turns->at.count; t++)
        if (t != turns->now && r->memory_of[name][t] != 0)
            return true;
    return false;
}

/* A part that is made later than its weight is gathered is gone at once. */
static void read_part(etch_live_run *r, uint32_t name, uint32_t since)
{
    const uint32_t id = etch_live_memory_of(r, name);
    r->reads_at = r->memories.at[id].made > since ? r->memories.at[id].made : since;
    if (id)
        etch_live_read_name(r, name);
    r->reads_at = ETCH_NO_EVENT;
}

/* Copies are there to the end of their weight group. */
void etch_live_gather(etch_live_run *r, const etch_live_item *item, uint32_t chunk)
{
    const uint32_t first = r->memories.count;
    const etch_region *body = r->open.at[r->open.count - 1];
    const etch_keep lasts = item->step->lasts;
    const uint32_t since = gathered_at(r, chunk);
    const bool is_always = lasts == ETCH_KEEP_STEP || (lasts == ETCH_KEEP_MICROBATCH && r->program->view);
    for (uint32_t k = 0; k < item->step->in_count; k++)
        read_part(r, item->step->ins[k]->id, since);
    for (uint32_t k = 0; k < item->outs.count; k++) {
        const bool again = is_gathered_again(r, item->outs.at[k]);
        etch_live_memory *m = etch_live_make(r, item->outs.at[k]);
        m->is_gathered = true;
        m->chunk = chunk;
        m->interval = r->interval;
        m->first = first;
        m->together = item->outs.count;
        m->lasts = lasts;
        if (!again)
            ETCH_PUSH(r->arena, &r->copies, (etch_live_copy){item->step->outs[k]->tensor, item->outs.at[k]});
        m->since = since;
        m->group = r->groups.count - 1;
        m->each = m->instances = item->step->copies[k];
        m->copies = etch_live_copies_of(r, body, is_always);
        m->lasting = etch_live_copies_of(r, body, lasts != ETCH_KEEP_GROUP);
        if (lasts == ETCH_KEEP_GROUP && body->loop)
            ETCH_PUSH(r->arena, &r->to_turn_end, r->memories.count - 1);
    }
}

/* On a stage it stays, whether something reads it or not, and there is one of each weight, wherever that is
 * gathered; else a part of each copy. */
void etch_live_make_part(etch_live_run *r, const etch_live_item *item, uint32_t k, uint32_t chunk)
{
    const uint32_t name = item->outs.at[k], of = etch_live_memory_of(r, item->ins.at[0]);
    const etch_region *home = item->step->outs[k]->tensor->region, *body = r->open.at[r->open.count - 1];
    const bool stays = r->program->view && of;
    const etch_region *around = etch_region_is_in_loop(home, body->loop) ? body : home;
    uint32_t size;
    const etch_live_part part = {name, etch_live_turns_at(r, around, &size), r->memories.count};
    for (uint32_t i = 0; stays && i < r->parts.count; i++)
        if (r->parts.at[i].name == name && r->parts.at[i].turns == part.turns) {
            etch_live_put(r, name, r->parts.at[i].memory);
            return;
        }
    etch_live_memory *m = etch_live_make(r, name);
    if (!of)
        return;
    m->each = m->instances = r->memories.at[of].instances;
    if (stays)
        m->copies = etch_live_copies_of(r, around, true);
    if (stays && chunk != ETCH_NO_CHUNK)
        ETCH_PUSH(r->arena, &r->parts, part);
}

/* `times` copies that later microbatches gather with the first node of the group, or of the first behind it,
 * which are there to the end. */
static void gather_later(etch_live_run *r, uint32_t id, uint64_t group, etch_expr times)
{
    uint32_t i = (uint32_t)group;
    while (i < r->groups.count && r->groups.at[i].event == ETCH_NO_EVENT)
        i++;
    if (i == r->groups.count || etch_is_zero(times))
        return;
    etch_live_memory later = r->memories.at[id];
    later.since = r->groups.at[i].event;
    later.copies = etch_mul(r->sym, later.copies, times);
    ETCH_PUSH(r->arena, &etch_live_event_now(r)->makes, r->memories.count);
    ETCH_PUSH(r->arena, &r->memories, later);
}

/* Of one stage, where the microbatches follow each other: what is gathered further ahead than the microbatch
 * goes on, and so from the first one on as far as there are as many. */
void etch_live_gather_next(etch_live_run *r)
{
    etch_sym *sym = r->sym;
    const uint64_t groups = r->groups.count;
    const etch_expr one = etch_int(sym, 1), zero = etch_int(sym, 0),
                    others = etch_sub(sym, r->program->training->train.micro, one);
    const uint32_t count = r->program->view || r->ahead == 0 ? 0 : r->memories.count;
    for (uint32_t id = 1; id < count; id++) {
        const etch_live_memory *m = &r->memories.at[id];
        if (!m->is_gathered || m->lasts == ETCH_KEEP_STEP)
            continue;
        const uint64_t whole = r->ahead > m->group ? (r->ahead - m->group) / groups : 0;
        const uint64_t next = (whole + 1) * groups + m->group;
        const etch_expr before = etch_int(sym, (int64_t)whole);
        if (whole > 0)
            gather_later(r, id, 0, etch_smaller(sym, before, others));
        if (next - r->ahead < groups)
            gather_later(r, id, next - r->ahead,
                         etch_smaller(sym, one, etch_larger(sym, zero, etch_sub(sym, others, before))));
    }
}

void etch_live_reach_copies(etch_live_run *r, const etch_tensor *weight, uint32_t chunk)
{
    for (uint32_t i = 0; i < r->copies.count; i++) {
        const etch_live_copy *copy = &r->copies.at[i];
        const uint32_t id = copy->weight == weight ? etch_live_memory_of(r, copy->name) : 0;
        const etch_live_memory *m = &r->memories.at[id];
        if (id && m->chunk == chunk && (m->lasts != ETCH_KEEP_GROUP || m->interval == r->interval))
            etch_live_read_memory(r, id);
    }
}

/* ---- whole gradients ----------------------------------------------------------------------------------- */

/* Is it made with the iteration of a loop, or reduced by itself? */
static bool is_apart(const etch_live_run *r, const etch_tensor *weight)
{
    return weight->region->loop || etch_zero_of(r->program->placed, weight)->by_weight;
}

void etch_live_add_to_whole(etch_live_run *r, const etch_live_item *item, uint32_t k, uint32_t chunk)
{
    const etch_tensor *gradient = item->step->accumulate_into[k], *weight = gradient->of;
    uint32_t size;
    etch_live_gradient now = {
        .gradient = gradient, .turns = etch_live_turns_at(r, weight->region, &size), .chunk = chunk};
    for (uint32_t i = 0; i < r->gradients.count; i++) {
        const etch_live_gradient *made = &r->gradients.at[i];
        const bool is_here = made->chunk == chunk;
        const bool is_same = is_here && made->gradient == gradient && made->turns == now.turns;
        const bool is_together = is_here && !is_apart(r, weight) && !is_apart(r, made->gradient->of) &&
                                 r->group_of[made->gradient->of->id] == r->group_of[weight->id];
        now.memory = is_same ? made->memory : now.memory;
        if (is_same || is_together)
            ETCH_PUSH(r->arena, &etch_live_event_now(r)->reads, made->memory);
    }
    if (now.memory)
        return;
    now.memory = r->memories.count;
    etch_live_make(r, item->outs.at[k])->copies = etch_live_copies_of(r, weight->region, false);
    ETCH_PUSH(r->arena, &r->gradients, now);
    if (weight->region->loop)
        ETCH_PUSH(r->arena, &r->to_turn_end, now.memory);
}
