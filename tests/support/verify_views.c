/* The verifier of stages: together they do what the chain does, and what crosses a cut is sent once. */
#include "verify_int.h"

/* One visit of a contribution: how often it is made. */
typedef struct visit {
    const etch_step_task *task;
    const etch_step_contribution *contribution;
    etch_expr runs;
} visit;

typedef ETCH_VEC(visit) visits;

typedef struct viewing {
    verifying v;
    const etch_stage_numbers *numbers;
    const verify_binding *bound;
    visits all;      /* without stages */
    visits messages; /* in the order of the program */
    etch_expr *sums; /* by visit of `all`: over the stages so far, */
    etch_expr *most; /* and how many of them make it at all */
    etch_expr *sent; /* by message */
    bool *reads;     /* by tensor id: a stage computes with the weight */
    bool *read;      /* and any stage does */
} viewing;

typedef struct collecting {
    viewing *x;
    visits *tasks, *messages;
} collecting;

static etch_expr bind(const verifying *v, const verify_binding *bound, etch_expr expr)
{
    return bound && expr ? etch_subst(v->sym, expr, bound->count, bound->vars, bound->values) : expr;
}

/* Of constants. */
static bool is_below(const verifying *v, etch_expr a, etch_expr b)
{
    return etch_is_constant(a) && etch_is_constant(b) && etch_constant_compare(v->sym, a, b) < 0;
}

static void collect(void *data, const etch_step_task *task, const etch_step_contribution *contribution,
                    const etch_task_place *place)
{
    const collecting *c = data;
    const visit one = {task, contribution, bind(&c->x->v, c->x->bound, place->runs)};
    visits *into = task->kind == ETCH_TASK_MESSAGE ? c->messages : c->tasks;
    ETCH_PUSH(c->x->v.scratch, into, one);
}

static const char *name_of(const viewing *x, const visit *one)
{
    const etch_step_contribution *c = one->contribution;
    return etch_text(x->v.scratch, "%s (%s)", verify_task_name(&x->v, one->task),
                     c->tensor ? c->tensor->name : "no weight");
}

static uint32_t contributions_in(const etch_step_body *body)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_step_repeat *repeat = body->items.at[i].repeat;
        if (!repeat)
            count += body->items.at[i].task->contributions.count;
        for (uint32_t k = 0; repeat && k < repeat->bodies.count; k++)
            count += contributions_in(repeat->bodies.at[k]);
    }
    return count;
}

/* A fold over the program misses nothing, and counts nothing twice. */
static bool check_complete(viewing *x)
{
    const etch_step_program *program = x->v.program;
    uint32_t count = contributions_in(program->forward);
    if (program->backward)
        count += contributions_in(program->backward);
    for (uint32_t i = 0; i < program->end.count; i++)
        count += program->end.at[i]->contributions.count;
    if (count != x->all.count)
        return verify_wrong(&x->v, "a fold visits %u contributions of %u", (unsigned)x->all.count,
                            (unsigned)count);
    return x->messages.count == 0 || verify_wrong(&x->v, "messages are sent without stages");
}

/* ---- one stage ----------------------------------------------------------------------------------------- */

/* Weights that a task of forward reads. */
static void note_weights(const etch_step_task *task, bool *noted)
{
    for (uint32_t i = 0; i < task->kernel->steps.count; i++)
        for (uint32_t k = 0; k < task->kernel->steps.at[i]->in_count; k++) {
            const etch_tensor *tensor = etch_value_memory(task->kernel->steps.at[i]->ins[k], NULL)->tensor;
            if (tensor->kind == ETCH_WEIGHT)
                noted[tensor->id] = true;
        }
}

/* What a stage computes with in forward it updates, and nothing else; what none reads is somewhere. */
static bool check_updates(viewing *x, const visits *here, uint32_t stage)
{
    for (uint32_t i = 0; i < here->count; i++) {
        const visit *one = &here->at[i];
        if (one->task->end != ETCH_END_UPDATE)
            continue;
        const etch_tensor *weight = one->contribution->tensor;
        const bool updates = !etch_is_zero(one->runs);
        if (updates != x->reads[weight->id] && x->read[weight->id])
            return verify_wrong(&x->v, "stage %u %s weight %s and %s it", (unsigned)stage,
                                x->reads[weight->id] ? "reads" : "does not read", weight->name,
                                updates ? "updates" : "does not update");
    }
    return true;
}

/* A message has what always crosses the cut, and of all else what does cross it there. */
static bool add_messages(viewing *x, const visits *messages, uint32_t stage)
{
    verifying *v = &x->v;
    etch_expr sent = NULL;
    for (uint32_t i = 0, task = 0; i < messages->count; i++) {
        const visit *one = &messages->at[i];
        while (v->program->messages.at[task] != one->task)
            task++;
        if (!one->contribution->crossing)
            x->sent[task] = etch_add(v->sym, x->sent[task], sent = one->runs);
        else if (!sent || is_below(v, sent, one->runs))
            return verify_wrong(v, "stage %u sends %s too often", (unsigned)stage, name_of(x, one));
    }
    return true;
}

static bool add_stage(viewing *x, const visits *here, const visits *messages, uint32_t stage)
{
    verifying *v = &x->v;
    if (here->count != x->all.count)
        return verify_wrong(v, "stage %u has another number of contributions", (unsigned)stage);
    for (uint32_t i = 0; i < here->count; i++) {
        const visit *one = &here->at[i];
        if (one->contribution != x->all.at[i].contribution)
            return verify_wrong(v, "stage %u visits %s out of order", (unsigned)stage, name_of(x, one));
        if (!one->runs || is_below(v, one->runs, etch_int(v->sym, 0)))
            return verify_wrong(v, "stage %u does %s less than never", (unsigned)stage, name_of(x, one));
        x->sums[i] = etch_add(v->sym, x->sums[i], one->runs);
        if (!etch_is_zero(one->runs))
            x->most[i] = etch_add(v->sym, x->most[i], etch_int(v->sym, 1));
        if (!one->task->kernel || one->task->phase != ETCH_FORWARD)
            continue;
        if (!etch_is_zero(one->runs)) {
            note_weights(one->task, x->reads);
            note_weights(one->task, x->read);
        }
    }
    return add_messages(x, messages, stage);
}

/* ---- all of them --------------------------------------------------------------------------------------- */

static bool check_sum(viewing *x, uint32_t i)
{
    verifying *v = &x->v;
    const visit *one = &x->all.at[i];
    const etch_end_role end = one->task->end;
    const etch_expr stages = etch_int(v->sym, x->numbers->stages);
    const bool of_none = end != ETCH_END_NONE && !one->contribution->group;
    if (end == ETCH_END_NONE || (end == ETCH_END_NORM && !of_none))
        return verify_same(v, x->sums[i], one->runs) ||
               verify_wrong(v, "the stages do %s %s times, the chain %s times", name_of(x, one),
                            etch_expr_text(v->sym, x->sums[i]), etch_expr_text(v->sym, one->runs));
    if (of_none) /* each stage takes the norm of what it has */
        return verify_same(v, x->sums[i], etch_mul(v->sym, stages, one->runs)) ||
               verify_wrong(v, "not every stage does %s", name_of(x, one));
    return end == ETCH_END_REDUCE_SHARED || !is_below(v, x->sums[i], one->runs) ||
           verify_wrong(v, "too few stages do %s", name_of(x, one));
}

/* The visit of the update of the same weight; NULL: there is none. */
static uint32_t update_of(const viewing *x, const etch_tensor *weight)
{
    for (uint32_t i = 0; i < x->all.count; i++)
        if (x->all.at[i].task->end == ETCH_END_UPDATE && x->all.at[i].contribution->tensor == weight)
            return i;
    return UINT32_MAX;
}

/* Stages add up the gradients of a weight if there are at least two of them. */
static bool check_shared(viewing *x, uint32_t i)
{
    verifying *v = &x->v;
    const visit *one = &x->all.at[i];
    const uint32_t update = update_of(x, one->contribution->tensor);
    int64_t users = 0;
    if (one->task->end != ETCH_END_REDUCE_SHARED || update == UINT32_MAX)
        return true;
    const etch_expr expected =
        etch_to_i64(x->most[update], &users) && users > 1 ? x->sums[update] : etch_int(v->sym, 0);
    return verify_same(v, x->sums[i], expected) ||
           verify_wrong(v, "%s: %s runs for %s stages that use the weight", name_of(x, one),
                        etch_expr_text(v->sym, x->sums[i]), etch_expr_text(v->sym, x->most[update]));
}

/* Model chunks: a chain that is there twice has each of them twice. */
static uint64_t links_of(const viewing *x)
{
    const bool is_twice = x->numbers->map == ETCH_MAP_DUPLICATED;
    return (uint64_t)x->numbers->stages * x->numbers->chunks / (is_twice ? 2 : 1);
}

/* Is a model chunk on the stage of the one before it? The chain goes along the stages, and then again, or
 * back. */
static bool turns_before(const viewing *x, uint64_t chunk)
{
    const bool returns = x->numbers->map == ETCH_MAP_MIRRORED || x->numbers->stages == 1;
    return returns && chunk % x->numbers->stages == 0;
}

/* How many boundaries of chunks on different stages are at the cut. */
static uint64_t boundaries_at(const viewing *x, const etch_cut *cut)
{
    const etch_stage_numbers *n = x->numbers;
    uint64_t first = 0, unit = 0, found = 0;
    for (uint32_t i = 0; i < cut->segment; i++)
        first += n->segments[i];
    const uint64_t end = first + n->segments[cut->segment];
    for (uint64_t chunk = 0; chunk + 1 < links_of(x); chunk++) {
        if (turns_before(x, chunk + 1))
            continue;
        unit = etch_layers_of_chunk(n, chunk).end;
        found += cut->inside ? first < unit && unit < end : unit == first;
    }
    return found;
}

static bool check_sent(viewing *x, uint64_t *total)
{
    verifying *v = &x->v;
    for (uint32_t i = 0; i < v->program->messages.count; i++) {
        const etch_step_task *message = v->program->messages.at[i];
        const uint64_t boundaries = boundaries_at(x, message->cut);
        const etch_expr runs =
            etch_mul(v->sym, bind(v, x->bound, v->program->micro), etch_int(v->sym, (int64_t)boundaries));
        if (!verify_same(v, x->sent[i], runs))
            return verify_wrong(v, "message %u (%s) is sent %s times, not %s", (unsigned)i,
                                etch_phase_name(message->phase), etch_expr_text(v->sym, x->sent[i]),
                                etch_expr_text(v->sym, runs));
        *total += message->phase == ETCH_FORWARD ? boundaries : 0;
    }
    return true;
}

static bool check_all(viewing *x)
{
    const uint64_t chunks = links_of(x);
    uint64_t boundaries = 0, others = 0;
    for (uint64_t chunk = 1; chunk < chunks; chunk++)
        others += !turns_before(x, chunk);
    for (uint32_t i = 0; i < x->all.count; i++)
        if (!check_sum(x, i) || !check_shared(x, i))
            return false;
    if (!check_sent(x, &boundaries))
        return false;
    return boundaries == others ||
           verify_wrong(&x->v, "%u messages between %u chunks", (unsigned)boundaries, (unsigned)chunks);
}

static etch_expr *zeros(const viewing *x, uint32_t count)
{
    etch_expr *list = ETCH_NEW_ARRAY(x->v.scratch, count, etch_expr);
    for (uint32_t i = 0; i < count; i++)
        list[i] = etch_int(x->v.sym, 0);
    return list;
}

static bool view_stages(viewing *x)
{
    const etch_step_program *program = x->v.program;
    const uint32_t stages = x->numbers->stages, tensors = x->v.placed->training->graph->tensors.count;
    collecting whole = {x, &x->all, &x->messages};
    visits *here = ETCH_NEW_ARRAY(x->v.scratch, stages, visits);
    bool **reads = ETCH_NEW_ARRAY(x->v.scratch, stages, bool *);
    etch_step_each(program, NULL, collect, &whole);
    if (!check_complete(x))
        return false;
    x->sums = zeros(x, x->all.count);
    x->most = zeros(x, x->all.count);
    x->sent = zeros(x, program->messages.count);
    x->read = ETCH_NEW_ARRAY(x->v.scratch, tensors, bool);
    for (uint32_t stage = 0; stage < stages; stage++) {
        visits messages = {0};
        collecting one = {x, &here[stage], &messages};
        etch_step_each(program, etch_stage_view_of(x->v.placed, x->numbers, stage), collect, &one);
        x->reads = reads[stage] = ETCH_NEW_ARRAY(x->v.scratch, tensors, bool);
        if (!add_stage(x, &here[stage], &messages, stage))
            return false;
    }
    for (uint32_t stage = 0; stage < stages; stage++) {
        x->reads = reads[stage];
        if (!check_updates(x, &here[stage], stage))
            return false;
    }
    return check_all(x);
}

const char *verify_views(const etch_placed *placed, const etch_stage_numbers *numbers,
                         const verify_binding *bound)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    viewing x = {.v = {.placed = placed,
                       .program = placed->program,
                       .sym = placed->training->graph->sym,
                       .scratch = scratch},
                 .numbers = numbers,
                 .bound = bound};
    view_stages(&x);
    etch_arena_free(scratch);
    return x.v.wrong;
}

/* ---- chains with values -------------------------------------------------------------------------------- */

static uint64_t number_of(const verifying *v, const verify_binding *bound, etch_expr expr)
{
    uint64_t number = 0;
    const etch_expr value = bind(v, bound, expr);
    return value && etch_to_u64(value, &number) ? number : 0;
}

const char *verify_chains(const etch_placed *placed, const verify_binding *bound, uint32_t most,
                          uint32_t *views)
{
    const etch_stages *stages = placed->stages;
    const verifying v = {.placed = placed, .sym = placed->training->graph->sym};
    const etch_stage_line *line = stages->line;
    uint64_t *entries = ETCH_NEW_ARRAY(placed->arena, stages->segments.count, uint64_t), least = UINT64_MAX;
    uint64_t *counts = ETCH_NEW_ARRAY(placed->arena, line->count_count, uint64_t), counted = 0;
    etch_stage_numbers n = {.map = etch_schedule_map(line->schedule),
                            .segments = entries,
                            .counts = line->counts ? counts : NULL};
    const uint32_t copies = n.map == ETCH_MAP_DUPLICATED ? 2 : 1;
    for (uint32_t i = 0; i < stages->segments.count; i++) {
        n.layers += entries[i] = number_of(&v, bound, stages->segments.at[i].count);
        least = entries[i] < least ? entries[i] : least;
    }
    for (uint32_t i = 0; i < line->count_count; i++)
        counted += counts[i] = number_of(&v, bound, line->counts[i]);
    n.chunks = (uint32_t)number_of(&v, bound, line->chunks);
    for (n.stages = 1; n.stages <= most && least > 0 && n.chunks > 0; n.stages++) {
        const uint64_t chunks = (uint64_t)n.stages * n.chunks / copies;
        if (n.stages % copies != 0 || chunks > n.layers ||
            (line->counts && (chunks != line->count_count || counted != n.layers)))
            continue;
        const char *wrong = verify_views(placed, &n, bound);
        if (wrong)
            return etch_text(placed->arena, "%u stages: %s", (unsigned)n.stages, wrong);
        if (views)
            ++*views;
    }
    return NULL;
}
