/* A walk over names: which value each stands for, inside a loop and where it begins and ends. */
#include "graph/cost/live_int.h"

/* ---- values -------------------------------------------------------------------------------------------- */

bool etch_live_is_forward(uint32_t value)
{
    return value & ETCH_LIVE_FORWARD;
}

static bool is_settled(const etch_live_walk *w, uint32_t value)
{
    return !etch_live_is_forward(value) && w->values.at[value].is_settled;
}

uint32_t etch_live_value_new(etch_live_walk *w, uint32_t made_as)
{
    ETCH_PUSH(w->arena, &w->values, (etch_live_value){.made_as = made_as});
    return w->values.count - 1;
}

/* What the name stands for now. */
uint32_t etch_live_value_of(const etch_live_walk *w, uint32_t name)
{
    if (name == ETCH_NO_NAME)
        return ETCH_LIVE_SETTLED;
    const uint32_t under = etch_live_under(w->program, name);
    const etch_live_name *n = &w->program->names[under];
    if (w->is_derived && !n->derived)
        return n->counts || n->is_carried ? ETCH_LIVE_FORWARD | under : ETCH_LIVE_SETTLED;
    return w->now[under];
}

void etch_live_bind(etch_live_walk *w, uint32_t name, uint32_t value, bool is_here, etch_live_counts *out)
{
    const etch_live_program *p = w->program;
    if (name == ETCH_NO_NAME || p->names[name].shows != name)
        return;
    w->now[name] = value;
    if (w->is_derived || !is_here || !p->names[name].read || is_settled(w, value))
        return;
    const uint32_t made_as = w->values.at[value].made_as;
    const bool is_part = etch_live_bytes(p, made_as) != etch_live_bytes(p, name);
    if (is_part && !p->names[made_as].reader)
        p->names[made_as].reader = p->names[name].reader;
    etch_live_add(w->sym, w->arena, out, is_part ? made_as : name, etch_int(w->sym, 1));
    w->values.at[value].is_settled = true;
    ETCH_PUSH(w->arena, &w->settled, value);
}

/* Of the names of the iteration's own body it is known now that each iteration reads them. */
void etch_live_settle_reads(etch_live_walk *w, const etch_region *body, etch_live_counts *counts)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < counts->count; i++) {
        etch_live_name *name = &w->program->names[counts->at[i].name];
        if (body ? name->region != etch_forward_body(body) : false)
            counts->at[left++] = counts->at[i];
        else if (!name->read)
            name->read = etch_live_is_least(w->answers, counts->at[i].times, 1);
    }
    counts->count = left;
}

/* ---- iterations ---------------------------------------------------------------------------------------- */

/* `values[k]` as it enters an iteration; those from `outer` on are gone when this one ends. */
static etch_live_entry entry_of(const etch_live_walk *w, const uint32_t *values, uint32_t k, uint32_t outer,
                                uint32_t in)
{
    const uint32_t value = values[k];
    uint32_t first = 0;
    if (!etch_live_is_forward(value) && is_settled(w, value))
        return (etch_live_entry){.made_as = ETCH_NO_NAME};
    if (etch_live_is_forward(value) || value < outer)
        return (etch_live_entry){.value = value, .made_as = ETCH_NO_NAME};
    while (values[first] != value)
        first++;
    const uint32_t made_as = w->values.at[value].made_as;
    const bool is_part = etch_live_bytes(w->program, made_as) != etch_live_bytes(w->program, in);
    return (etch_live_entry){.value = first, .is_own = true, .made_as = is_part ? made_as : ETCH_NO_NAME};
}

etch_live_entry etch_live_enter(etch_live_walk *w, const etch_live_carry *carry)
{
    const bool is_zeros = carry->init == ETCH_NO_NAME && !w->is_derived;
    const uint32_t value = is_zeros ? etch_live_value_new(w, carry->in) : etch_live_value_of(w, carry->init);
    return (etch_live_entry){.value = is_settled(w, value) ? ETCH_LIVE_SETTLED : value,
                             .made_as = ETCH_NO_NAME};
}

/* Goes as deep as loops are nested. NULL: it is not in the region. */
static const etch_live_loop *find_loop(const etch_live_region *region, const etch_loop *loop)
{
    const etch_live_loop *found = NULL;
    for (uint32_t i = 0; i < region->items.count && !found; i++) {
        const etch_live_loop *here = region->items.at[i].loop;
        if (here && here->loop == loop)
            return here;
        for (uint32_t b = 0; here && b < here->bodies.count && !found; b++)
            found = find_loop(here->bodies.at[b], loop);
    }
    return found;
}

/* Are there fewer iterations of the one class than of the other? */
static bool is_rarer(const etch_live_walk *w, const etch_region *class, const etch_region *than)
{
    int64_t more;
    return etch_to_i64(etch_sub(w->sym, than->count, class->count), &more) && more > 0;
}

/* Which of the values that the loop carries is the k-th one: a half of backward may carry some of them. */
static uint32_t carry_of(const etch_live_program *p, const etch_live_region *body, uint32_t k)
{
    const etch_tensor *in = p->names[body->carries.at[k].in].tensor;
    uint32_t at = 0;
    while (body->of->carries.at[at].in != in)
        at++;
    return at;
}

/* What iterations of forward made, and carry as the k-th value, a loop that repeats them carries likewise:
 * an iteration that reads it, of `body`, reads what entered the iteration of forward, and what is after the
 * loop what left that one. Others may read none of it. Reads are known by class: of the one that makes it and
 * the one that it enters it is a read of the rarer. */
static uint32_t carried_entry(const etch_live_walk *w, const etch_live_region *body, uint32_t k, bool leaves,
                              uint32_t value)
{
    const etch_live_program *p = w->program;
    const uint32_t name = value & ~ETCH_LIVE_FORWARD;
    if (!w->is_derived || !etch_live_is_forward(value) || !body->of->loop->repeats)
        return value;
    const etch_loop *made_in = etch_forward_body(body->of)->loop;
    if (!p->names[name].region || p->names[name].region->loop != made_in)
        return value;
    const etch_live_loop *forward = find_loop(p->forward, made_in);
    const uint32_t at = carry_of(p, body, k);
    for (uint32_t b = 0; forward && b < forward->bodies.count; b++) {
        const etch_live_region *maker = forward->bodies.at[b];
        if (maker->of != p->names[name].region || etch_live_under(p, maker->carries.at[at].out) != name)
            continue;
        const etch_live_region *class = forward->bodies.at[body->of->index];
        const uint32_t as = leaves ? class->carries.at[at].result : class->carries.at[at].in;
        if (as == ETCH_NO_NAME || (!leaves && is_rarer(w, maker->of, class->of)))
            return value;
        return ETCH_LIVE_FORWARD | etch_live_under(p, as);
    }
    return value;
}

/* What enters an iteration, and what it carries in its place. */
void etch_live_run_iteration(etch_live_walk *w, const etch_live_region *body, bool is_here,
                             etch_live_entry *entries, etch_live_counts *out)
{
    const uint32_t count = body->carries.count, outer = w->values.count, settled = w->settled.count;
    uint32_t *values = ETCH_NEW_ARRAY(w->arena, count, uint32_t);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t in = body->carries.at[k].in;
        values[k] = carried_entry(w, body, k, false, entries[k].value);
        if (entries[k].is_own)
            values[k] = entries[k].value == k ? etch_live_value_new(w, in) : values[entries[k].value];
        if (entries[k].is_own && entries[k].value == k && entries[k].made_as != ETCH_NO_NAME)
            w->values.at[values[k]].made_as = entries[k].made_as;
        etch_live_bind(w, in, values[k], is_here, out);
    }
    w->run_region(w, body, is_here, out);
    if (w->is_derived)
        etch_live_settle_reads(w, body->of, out);
    for (uint32_t k = 0; k < count; k++)
        values[k] = etch_live_value_of(w, body->carries.at[k].out);
    for (uint32_t k = 0; k < count; k++)
        entries[k] = entry_of(w, values, k, outer, body->carries.at[k].in);
    w->values.count = outer;
    uint32_t left = settled;
    for (uint32_t i = settled; i < w->settled.count; i++)
        if (w->settled.at[i] < outer)
            w->settled.at[left++] = w->settled.at[i];
    w->settled.count = left;
}

/* What has left the loop, by the names of its results. */
void etch_live_leave(etch_live_walk *w, const etch_live_loop *loop, const etch_live_entry *entries,
                     bool is_here, etch_live_counts *out)
{
    const etch_live_region *body = loop->bodies.at[0];
    uint32_t *values = ETCH_NEW_ARRAY(w->arena, body->carries.count, uint32_t);
    for (uint32_t k = 0; k < body->carries.count; k++) {
        const etch_live_entry *e = &entries[k];
        values[k] = carried_entry(w, body, k, true, e->value);
        if (e->is_own)
            values[k] =
                e->value == k
                    ? etch_live_value_new(w, e->made_as == ETCH_NO_NAME ? body->carries.at[k].in : e->made_as)
                    : values[e->value];
        etch_live_bind(w, body->carries.at[k].result, values[k], is_here, out);
    }
}
