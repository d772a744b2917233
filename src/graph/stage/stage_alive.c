/* What is alive where the chain may be cut, and where weights are used.
 *
 * Both are uses: a place in the chain, the class of the iterations there that read, and how often they do. A
 * pass is gone through from its end, so that what a loop hands out has been looked at before the loop. What a
 * loop only carries, and nobody reads, is used by nothing. */
#include "graph/stage/stage_int.h"

typedef struct finding {
    etch_staging *s;
    etch_sym *sym;
    etch_arena *arena;
    etch_stages *stages;
    etch_expr zero, one;
    /* by id of a value that is no view: what reads it */
    etch_stage_uses *reads;
    /* what makes it other than zeros; NULL: it is made whatever runs */
    etch_stage_uses **makes;
    /* by id of a loop-carried value, as the first class has it */
    const etch_carrying **carrying;
} finding;

/* ---- uses ---------------------------------------------------------------------------------------------- */

static bool is_sure(const finding *f, etch_expr amount)
{
    return etch_at_least(f->sym, amount, f->one, NULL) == ETCH_YES;
}

/* Is there one, whatever the sizes are? */
static bool is_sure_use(const finding *f, const etch_stage_use *use)
{
    return is_sure(f, etch_stage_use_total(f->sym, use));
}

static const etch_loop *loop_at(const finding *f, etch_position position)
{
    return etch_position_is_loop(f->stages, position)
               ? f->stages->segments.at[etch_position_segment(position)].loop
               : NULL;
}

/* Uses that every class makes in each iteration are one. */
static void join_classes(const finding *f, etch_stage_uses *uses, const etch_loop *loop,
                         etch_position position)
{
    uint32_t first = UINT32_MAX, sure = 0, left = 0;
    for (uint32_t i = 0; i < uses->count; i++)
        if (uses->at[i].position == position) {
            first = first < i ? first : i;
            sure += uses->at[i].body && uses->at[i].runs == f->one;
        }
    if (!loop || sure < loop->bodies.count)
        return;
    uses->at[first] = (etch_stage_use){position, NULL, f->one};
    for (uint32_t i = 0; i < uses->count; i++)
        if (uses->at[i].position != position || i == first)
            uses->at[left++] = uses->at[i];
    uses->count = left;
}

static bool comes_before(const etch_stage_use *a, const etch_stage_use *b)
{
    if (a->position != b->position)
        return a->position < b->position;
    return b->body && (!a->body || a->body->index < b->body->index);
}

static void add_use(const finding *f, etch_stage_uses *uses, etch_stage_use use)
{
    const etch_loop *loop = loop_at(f, use.position);
    uint32_t i = 0;
    use.body = loop && use.body && loop->bodies.count > 1 ? loop->bodies.at[use.body->index] : NULL;
    if (etch_is_zero(use.runs))
        return;
    if (is_sure(f, use.runs))
        use.runs = f->one;
    while (i < uses->count && comes_before(&uses->at[i], &use))
        i++;
    if (i > 0 && use.body && uses->at[i - 1].position == use.position && !uses->at[i - 1].body)
        return;
    if (i < uses->count && uses->at[i].position == use.position && uses->at[i].body == use.body) {
        etch_expr *runs = &uses->at[i].runs;
        *runs = *runs == f->one || use.runs == f->one ? f->one : etch_add(f->sym, *runs, use.runs);
        return;
    }
    ETCH_PUSH(f->arena, uses, use);
    for (uint32_t k = uses->count - 1; k > i; k--)
        uses->at[k] = uses->at[k - 1];
    uses->at[i] = use;
    join_classes(f, uses, loop, use.position);
}

static void add_uses(const finding *f, etch_stage_uses *to, const etch_stage_uses *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        add_use(f, to, from->at[i]);
}

static etch_expr total_of(const finding *f, const etch_stage_uses *uses)
{
    etch_expr sum = f->zero;
    for (uint32_t i = 0; i < uses->count; i++) {
        if (is_sure_use(f, &uses->at[i]))
            return f->one;
        sum = etch_add(f->sym, sum, etch_stage_use_total(f->sym, &uses->at[i]));
    }
    return sum;
}

static etch_stage_uses *uses_of(const finding *f, etch_value *value)
{
    return &f->reads[etch_value_root(value)->id];
}

/* So many uses by a class of a loop, or by a step, at this position. */
static etch_stage_use use_at(const finding *f, etch_position at, const etch_region *body, etch_expr runs)
{
    if (body && !loop_at(f, at))
        runs = etch_mul(f->sym, runs, body->count);
    return (etch_stage_use){at, body, runs};
}

/* ---- what loops carry ---------------------------------------------------------------------------------- */

/* What the iterations of a class do with a value that enters them. */
static void treat(const finding *f, etch_carrying *c, const etch_placed_region *body,
                  const etch_stage_reads *reads, uint32_t k)
{
    const etch_value *in = body->carries.at[k].in;
    const uint32_t at = body->of->index * c->carries + k;
    c->reads[at] = f->zero;
    for (uint32_t i = 0; i < reads->count && c->reads[at] != f->one; i++) {
        const etch_stage_read *r = &reads->at[i];
        if (r->how != ETCH_READ || r->body != body->of || etch_value_root(r->value) != in)
            continue;
        c->reads[at] = etch_add(f->sym, c->reads[at], etch_runs_in(f->sym, r->in, body->of));
        if (is_sure(f, c->reads[at]))
            c->reads[at] = f->one;
    }
    for (uint32_t i = 0; i < c->carries; i++)
        if (body->carries.at[i].out && etch_value_root(body->carries.at[i].out) == in)
            c->next[at] |= etch_carried_bit(i);
}

/* What leaves the loop is known. */
static const etch_carrying *carrying_of(const finding *f, const etch_placed_loop *loop,
                                        const etch_stage_reads *reads)
{
    const uint32_t carries = etch_loop_carries(loop)->count, classes = loop->bodies.count;
    etch_carrying *c = ETCH_NEW(f->arena, etch_carrying);
    *c = (etch_carrying){.arena = f->arena,
                         .loop = loop->loop,
                         .carries = carries,
                         .reads = ETCH_NEW_ARRAY(f->arena, classes * carries, etch_expr),
                         .next = ETCH_NEW_ARRAY(f->arena, classes * carries, uint64_t),
                         .leaving = ETCH_NEW_ARRAY(f->arena, carries, etch_expr)};
    for (uint32_t k = 0; k < carries; k++) {
        const etch_value *result = etch_loop_carries(loop)->at[k].result;
        c->leaving[k] = result ? total_of(f, &f->reads[result->id]) : f->zero;
        for (uint32_t i = 0; i < classes; i++)
            treat(f, c, loop->bodies.at[i], reads, k);
    }
    return c;
}

static void look_at_item(const finding *f, const etch_placed_item *item, const etch_stage_reads *reads)
{
    const etch_position at = *etch_stage_item_position(item);
    const etch_carrying *c = item->loop ? carrying_of(f, item->loop, reads) : NULL;
    const etch_expr begin = c && f->s->backward ? c->loop->count : f->zero;
    for (uint32_t k = 0; item->loop && k < c->carries; k++) {
        const etch_placed_carry *carry = &etch_loop_carries(item->loop)->at[k];
        const etch_stage_use use = {etch_stage_loop_begin(f->s, at), NULL,
                                    carry->init ? etch_carried_read(f->sym, c, k, f->s->backward, begin)
                                                : NULL};
        f->carrying[carry->in->id] = c;
        if (carry->init)
            add_use(f, uses_of(f, carry->init), use);
    }
    for (uint32_t k = 0; k < reads->count; k++) {
        const etch_stage_read *r = &reads->at[k];
        if (r->how != ETCH_READ_BEGINS)
            add_use(f, uses_of(f, r->value), use_at(f, at, r->body, etch_runs_in(f->sym, r->in, r->body)));
    }
}

static void look_at_pass(const finding *f, const etch_stage_pass *of, bool backward)
{
    f->s->backward = backward;
    for (uint32_t i = of->count; i-- > 0;)
        if (*etch_stage_item_position(&of->items[i]) != ETCH_NO_POSITION)
            look_at_item(f, &of->items[i], &of->reads[i]);
}

/* ---- what is zeros ------------------------------------------------------------------------------------- */

/* What makes two values, one of them or both: NULL where one is made whatever runs. */
static etch_stage_uses *either(const finding *f, const etch_stage_uses *a, const etch_stage_uses *b)
{
    etch_stage_uses *both = ETCH_NEW(f->arena, etch_stage_uses);
    if (!a || !b)
        return NULL;
    add_uses(f, both, a);
    add_uses(f, both, b);
    return both;
}

/* A loop that begins with zeros hands them on until an iteration makes something else. */
static void find_made_by_loop(const finding *f, const etch_placed_loop *loop)
{
    const etch_stage_uses none = {0};
    for (uint32_t k = 0; k < etch_loop_carries(loop)->count; k++) {
        const etch_placed_carry *carry = &etch_loop_carries(loop)->at[k];
        const etch_stage_uses *init = carry->init ? f->makes[etch_value_root(carry->init)->id] : &none;
        etch_stage_uses own = {0};
        for (uint32_t i = 0; i < loop->bodies.count; i++) {
            const etch_placed_region *body = loop->bodies.at[i];
            if (etch_value_root(body->carries.at[k].out) != body->carries.at[k].in)
                add_use(f, &own, use_at(f, loop->position, body->of, f->one));
        }
        f->makes[carry->in->id] = either(f, init, &own);
        if (carry->result)
            f->makes[carry->result->id] = f->makes[carry->in->id];
    }
}

/* A sum is zeros where all its terms are; a move makes what it moves. */
static void find_made_by_step(const finding *f, const etch_step *step)
{
    const bool is_move = step->collective != ETCH_NO_COLLECTIVE;
    etch_stage_uses *makes = step->in_count ? f->makes[etch_value_root(step->ins[0])->id] : NULL;
    if (!is_move && step->row->linear != ETCH_LINEAR_JOINT)
        return;
    for (uint32_t i = 1; i < step->in_count; i++)
        makes = either(f, makes, f->makes[etch_value_root(step->ins[i])->id]);
    for (uint32_t i = 0; i < step->out_count; i++)
        f->makes[step->outs[i]->id] = makes;
}

static void find_made(const finding *f, const etch_stage_pass *of)
{
    for (uint32_t i = 0; i < of->count; i++) {
        if (of->items[i].loop)
            find_made_by_loop(f, of->items[i].loop);
        else if (etch_stage_result_count(&of->items[i]) > 0)
            find_made_by_step(f, of->items[i].step);
    }
}

/* ---- what crosses cuts --------------------------------------------------------------------------------- */

/* Is a use on that side of the cut, for all iterations of it or some of them? */
static bool is_on_side(const etch_cut *cut, const etch_stage_use *use, bool later)
{
    const etch_position all = etch_position_at(cut->segment, ETCH_ALL_OF);
    if (cut->inside)
        return later ? use->position >= all : use->position <= all;
    return later == (etch_position_segment(use->position) >= cut->segment);
}

/* Adds the uses on that side of the cut to `out`. Is one of them there whatever the sizes are? */
static bool keep_side(const finding *f, const etch_cut *cut, const etch_stage_uses *uses, bool later,
                      etch_stage_uses *out)
{
    bool is_sure_one = false;
    for (uint32_t i = 0; i < uses->count; i++) {
        const etch_stage_use *use = &uses->at[i];
        if (!is_on_side(cut, use, later))
            continue;
        ETCH_PUSH(f->arena, out, *use);
        is_sure_one = is_sure_one || (!etch_stage_use_is_split(cut, use) && is_sure_use(f, use));
    }
    return is_sure_one;
}

/* Adds a crossing, with what makes the value before the cut. */
static void push_crossing(const finding *f, const etch_cut *cut, etch_crossing *c, etch_crossings *out)
{
    const etch_stage_uses *makes = f->makes[c->value->id];
    c->is_made = !makes || keep_side(f, cut, makes, f->s->backward, &c->makes);
    ETCH_PUSH(f->arena, out, *c);
}

/* Adds a value where something reads it after the cut. */
static void add_crossing(const finding *f, const etch_cut *cut, etch_value *value, etch_crossings *out)
{
    etch_crossing c = {.value = value};
    c.is_read = keep_side(f, cut, &f->reads[value->id], !f->s->backward, &c.reads);
    if (c.reads.count > 0)
        push_crossing(f, cut, &c, out);
}

/* Adds what a loop carries over a cut inside of it: some iteration comes after it. */
static void add_carried(const finding *f, const etch_cut *cut, etch_value *in, uint32_t k,
                        etch_crossings *out)
{
    const etch_carrying *carrying = f->carrying[in->id];
    etch_crossing c = {.value = in, .is_read = true, .carrying = carrying, .carried = k};
    bool is_dropped = true;
    for (uint32_t i = 0; i < carrying->loop->bodies.count; i++) {
        const uint32_t at = i * carrying->carries + k;
        c.is_read = c.is_read && carrying->reads[at] == f->one;
        is_dropped = is_dropped && etch_is_zero(carrying->reads[at]) && !carrying->next[at];
    }
    if (!is_dropped)
        push_crossing(f, cut, &c, out);
}

/* Is what is made there on its way over the cut, if something reads it? */
static bool is_made_before(const finding *f, const etch_cut *cut, etch_position made)
{
    const etch_stage_use at = {.position = made};
    return made != ETCH_NO_POSITION && is_on_side(cut, &at, f->s->backward) &&
           !(cut->inside && made == etch_position_at(cut->segment, ETCH_ALL_OF));
}

static etch_crossings crossings_at(const finding *f, const etch_stage_pass *of, const etch_cut *cut)
{
    const etch_position all = etch_position_at(cut->segment, ETCH_ALL_OF);
    etch_crossings list = {0};
    for (uint32_t i = 0; i < of->count; i++)
        for (uint32_t k = 0; k < etch_stage_result_count(&of->items[i]); k++) {
            etch_value *value = etch_stage_result_at(&of->items[i], k);
            if (value && is_made_before(f, cut, f->s->made_at[value->id]))
                add_crossing(f, cut, value, &list);
        }
    for (uint32_t i = 0; cut->inside && i < of->count; i++) {
        const etch_placed_loop *loop = of->items[i].loop;
        for (uint32_t k = 0; loop && loop->position == all && k < etch_loop_carries(loop)->count; k++)
            add_carried(f, cut, etch_loop_carries(loop)->at[k].in, k, &list);
    }
    return list;
}

static etch_expr bytes_of(const finding *f, const etch_crossings *list)
{
    etch_expr bytes = f->zero;
    for (uint32_t i = 0; i < list->count; i++)
        if (etch_crossing_may_be_sent(&list->at[i]))
            bytes = etch_add(f->sym, bytes, etch_value_bytes(f->s->placed, list->at[i].value));
    return bytes;
}

static void add_cut(const finding *f, uint32_t segment, bool inside)
{
    etch_cut cut = {.segment = segment, .inside = inside};
    f->s->backward = false;
    cut.forward = crossings_at(f, &f->s->forward_pass, &cut);
    f->s->backward = true;
    cut.backward = crossings_at(f, &f->s->backward_pass, &cut);
    cut.forward_bytes = bytes_of(f, &cut.forward);
    cut.backward_bytes = bytes_of(f, &cut.backward);
    ETCH_PUSH(f->arena, &f->stages->cuts, cut);
}

static void find_cuts(const finding *f)
{
    look_at_pass(f, &f->s->backward_pass, true);
    look_at_pass(f, &f->s->forward_pass, false);
    find_made(f, &f->s->forward_pass);
    find_made(f, &f->s->backward_pass);
    for (uint32_t i = 0; i < f->stages->segments.count; i++) {
        if (i > 0)
            add_cut(f, i, false);
        if (f->stages->segments.at[i].loop)
            add_cut(f, i, true);
    }
}

/* ---- weights ------------------------------------------------------------------------------------------- */

static const etch_loop *outermost_loop(const etch_region *region)
{
    const etch_loop *loop = NULL;
    for (; region; region = region->parent)
        loop = region->loop ? region->loop : loop;
    return loop;
}

/* The stage position of what nothing reads: of its loop, or where the chain begins. */
static etch_position unread_position(const finding *f, const etch_tensor *weight)
{
    const etch_loop *loop = outermost_loop(weight->region);
    const etch_stage_pass *of = &f->s->forward_pass;
    for (uint32_t i = 0; loop && i < of->count; i++)
        if (of->items[i].loop && of->items[i].loop->loop == loop)
            return of->items[i].loop->position;
    return ETCH_CHAIN_BEGIN;
}

/* Is the weight of the iterations of a loop of the chain, each of which has its own? */
static bool is_by_iteration(const finding *f, const etch_tensor *weight)
{
    return weight->region->loop && loop_at(f, unread_position(f, weight));
}

/* Loops around the weight do not count: each of their iterations has its own. */
static void note_use(const finding *f, const etch_placed_item *item, const etch_stage_read *r)
{
    const etch_tensor *weight = etch_value_memory(r->value, NULL)->tensor;
    etch_position at = *etch_stage_item_position(item);
    const etch_region *body = r->body;
    if (weight->kind != ETCH_WEIGHT || is_by_iteration(f, weight))
        return;
    if (r->how == ETCH_READ_BEGINS)
        at = etch_stage_loop_begin(f->s, at);
    if (weight->region->loop)
        body = NULL;
    add_use(f, &f->stages->uses[weight->id],
            use_at(f, at, body, etch_runs_in(f->sym, r->in, body ? body : weight->region)));
}

/* The forward pass says where weights are: backward runs where forward does. A weight that nothing reads is
 * somewhere as well. */
static void find_uses(const finding *f)
{
    const etch_stage_pass *of = &f->s->forward_pass;
    const etch_graph *graph = f->s->p->graph;
    f->s->backward = false;
    for (uint32_t i = 0; i < of->count; i++)
        for (uint32_t k = 0; k < of->reads[i].count; k++)
            note_use(f, &of->items[i], &of->reads[i].at[k]);
    for (uint32_t i = 0; i < graph->weights.count; i++) {
        const etch_tensor *weight = graph->weights.at[i];
        etch_stage_uses *uses = &f->stages->uses[weight->id];
        if (!is_by_iteration(f, weight))
            add_use(f, uses,
                    (etch_stage_use){unread_position(f, weight), NULL,
                                     etch_sub(f->sym, f->one, etch_some(f->sym, total_of(f, uses)))});
    }
}

etch_position etch_stage_position_of(const etch_placed *placed, const etch_loop *loop)
{
    for (uint32_t i = 0; i < placed->stages->segments.count; i++)
        if (placed->stages->segments.at[i].loop == loop)
            return etch_position_at(i, ETCH_ALL_OF);
    return ETCH_NO_POSITION;
}

const etch_stage_uses *etch_weight_group_uses(const etch_placed *placed,
                                              const etch_weight_group *weight_group)
{
    return placed->stages ? &placed->stages->uses[weight_group->weights.at[0]->id] : NULL;
}

/* ---- the entry point ----------------------------------------------------------------------------------- */

void etch_stage_find_alive(etch_staging *s)
{
    const uint32_t values = s->placed->value_count, tensors = s->p->graph->tensors.count;
    const finding f = {
        .s = s,
        .sym = s->p->sym,
        .arena = s->p->arena,
        .stages = s->stages,
        .zero = etch_int(s->p->sym, 0),
        .one = etch_int(s->p->sym, 1),
        .reads = ETCH_NEW_ARRAY(s->p->arena, values, etch_stage_uses),
        .makes = ETCH_NEW_ARRAY(s->p->arena, values, etch_stage_uses *),
        .carrying = ETCH_NEW_ARRAY(s->p->arena, values, const etch_carrying *),
    };
    s->stages->uses = ETCH_NEW_ARRAY(s->p->arena, tensors, etch_stage_uses);
    find_cuts(&f);
    find_uses(&f);
}
