/* The verifier of forward and backward: every kernel is one task, and what a task reads has been made where
 * it can see it.
 *
 * The walk goes over both passes in issue order. A value is ready in the body that makes it, from its task to
 * the end of the body, and in the bodies of loops that stand there; in a body of backward, so is what a body
 * of the same iterations has made in forward, or in a recomputation of it. */
#include "verify_int.h"

typedef ETCH_VEC(const etch_value *) value_list;

/* A body that has run: what it has made itself, for bodies of the same iterations. */
typedef struct made_body {
    const etch_region *forward; /* of which iterations */
    value_list values;
} made_body;

typedef struct walk {
    verifying *v;
    uint32_t *ready;           /* by value id: in how many of the bodies at work it is */
    const etch_step_task **by; /* by value id: the task that makes it; NULL: none does */
    etch_position *since;      /* by value id: the stage position of what the top level makes */
    bool *of_backward;         /* by value id */
    uint32_t *runs;            /* by step id: in how many tasks it is */
    ETCH_VEC(made_body) made;
    bool backward;
    bool idle;                 /* in a body of which no iteration runs: it reads nothing */
    etch_position position;    /* of the task or loop of the top level at work */
    etch_position reads_since; /* where that begins to read */
} walk;

/* ---- tasks and kernels --------------------------------------------------------------------------------- */

static bool has_step(const etch_kernel *kernel, const etch_step *step)
{
    for (uint32_t i = 0; i < kernel->steps.count; i++)
        if (kernel->steps.at[i] == step)
            return true;
    return false;
}

static bool check_kernel(const walk *w, const etch_step_task *task, const etch_placed_region *region)
{
    verifying *v = w->v;
    const etch_kernel *kernel = task->kernel;
    const etch_step *anchor = kernel->anchor;
    if (kernel->item >= region->items.count || region->items.at[kernel->item].step != anchor ||
        !has_step(kernel, anchor))
        return verify_wrong(v, "%s does not stand where its anchor does", verify_task_name(v, task));
    for (uint32_t i = 0; i < kernel->steps.count; i++) {
        const etch_step *step = kernel->steps.at[i];
        if (step->phase != task->phase || (!region->loop && step->position != task->position))
            return verify_wrong(v, "%s: step %s is of another phase or stage position",
                                verify_task_name(v, task), etch_row_name(step->row));
        if (w->runs[step->id]++)
            return verify_wrong(v, "%s: step %s is in two tasks", verify_task_name(v, task),
                                etch_row_name(step->row));
    }
    return true;
}

static bool check_fields(const walk *w, const etch_step_task *task)
{
    verifying *v = w->v;
    const etch_step *anchor = task->kernel->anchor;
    const bool collective = etch_step_role(anchor) == ETCH_ROLE_RESHARD;
    if (task->kind != (collective ? ETCH_TASK_COLLECTIVE : ETCH_TASK_COMPUTE))
        return verify_wrong(v, "%s is not of the kind of its kernel", verify_task_name(v, task));
    if (task->end != ETCH_END_NONE || task->group || task->cut)
        return verify_wrong(v, "%s is of the end, or a message", verify_task_name(v, task));
    if (task->axes != anchor->axes || task->collective != anchor->collective)
        return verify_wrong(v, "%s is not over the axes of its kernel", verify_task_name(v, task));
    if (task->when != (anchor->lasts == ETCH_KEEP_STEP ? ETCH_FIRST_MICROBATCH : ETCH_EACH_MICROBATCH))
        return verify_wrong(v, "%s does not run in the microbatches of its kernel",
                            verify_task_name(v, task));
    if (!verify_same(v, task->flop, task->kernel->flop) || !verify_same(v, task->bytes, task->kernel->bytes))
        return verify_wrong(v, "%s has not the numbers of its kernel", verify_task_name(v, task));
    const bool forward = task->phase == ETCH_FORWARD;
    const bool fits = w->backward ? task->phase == ETCH_BACKWARD || task->phase == ETCH_RECOMPUTE : forward;
    return fits || verify_wrong(v, "%s is in the wrong pass", verify_task_name(v, task));
}

/* Where a loop stands among the items of its region; as many as there are where it does not. */
static uint32_t item_of_loop(const etch_placed_region *region, const etch_placed_loop *loop)
{
    uint32_t i = 0;
    while (i < region->items.count && region->items.at[i].loop != loop)
        i++;
    return i;
}

static const char *body_name(const walk *w, const etch_placed_region *region)
{
    if (!region->loop)
        return w->backward ? "the top level of backward" : "the top level of forward";
    return etch_text(w->v->scratch, "body %u of loop %s", (unsigned)region->of->index,
                     region->loop->loop->name);
}

/* Tasks and loops stand as the kernels and loops of the region do, each once. */
static bool check_items(const walk *w, const etch_step_body *body, const etch_placed_region *region)
{
    uint32_t kernels = 0, loops = 0, all_loops = 0, next = 0;
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_step_item *item = &body->items.at[i];
        if ((item->task != NULL) == (item->repeat != NULL))
            return verify_wrong(w->v, "an item of %s is not one task or one loop", body_name(w, region));
        uint32_t at = item->repeat ? item_of_loop(region, item->repeat->loop) : 0;
        if (item->task) {
            if (kernels == region->kernels.count || item->task->kernel != region->kernels.at[kernels])
                return verify_wrong(w->v, "%s is not kernel %u of %s", verify_task_name(w->v, item->task),
                                    (unsigned)kernels, body_name(w, region));
            at = region->kernels.at[kernels++]->item;
        } else if (at == region->items.count) {
            return verify_wrong(w->v, "loop %s is not in %s", item->repeat->loop->loop->name,
                                body_name(w, region));
        } else {
            loops++;
        }
        if (at < next)
            return verify_wrong(w->v, "item %u of %s comes after what it stands before", (unsigned)i,
                                body_name(w, region));
        next = at + 1;
    }
    for (uint32_t i = 0; i < region->items.count; i++)
        all_loops += region->items.at[i].loop != NULL;
    if (kernels != region->kernels.count)
        return verify_wrong(w->v, "kernel %u of %s is no task", (unsigned)kernels, body_name(w, region));
    return loops == all_loops || verify_wrong(w->v, "a loop of %s is missing", body_name(w, region));
}

/* Every step that does something is in one task. */
static bool check_steps(const walk *w, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        if (step && w->runs[step->id] != (etch_step_role(step) != ETCH_ROLE_FREE))
            return verify_wrong(w->v, "step %s of %s is in %u tasks", etch_row_name(step->row),
                                body_name(w, region), (unsigned)w->runs[step->id]);
    }
    return true;
}

/* ---- stage positions ----------------------------------------------------------------------------------- */

/* The sides of a block are one stage position. */
static etch_position one_position(const walk *w, etch_position home)
{
    const uint32_t entry = etch_position_segment(home);
    return w->v->placed->stages->segments.at[entry].loop ? home : etch_position_at(entry, ETCH_ALL_OF);
}

static bool is_position(const walk *w, etch_position home)
{
    return home != ETCH_NO_POSITION && etch_position_segment(home) < w->v->placed->stages->segments.count;
}

/* The first (or last) iteration of a loop in the order of the pass. */
static etch_position end_of_loop(const walk *w, etch_position home, bool first)
{
    const etch_stages *stages = w->v->placed->stages;
    if (!stages || !is_position(w, home) || !etch_position_is_loop(stages, home))
        return home;
    return etch_position_at(etch_position_segment(home), first != w->backward ? ETCH_FIRST_OF : ETCH_LAST_OF);
}

/* May what is made at one position be read at the other? Along backward positions fall; what it reads of
 * forward was made at its position or before. */
static bool is_reached(const walk *w, const etch_value *made, etch_position reader)
{
    const etch_position since = w->since[made->id];
    if (!w->v->placed->stages || since == ETCH_NO_POSITION)
        return true;
    return w->of_backward[made->id] ? one_position(w, since) >= one_position(w, reader)
                                    : one_position(w, since) <= one_position(w, reader);
}

/* The stages that use a weight are those where it is read, unless each iteration has its own. */
static bool is_noted_use(const walk *w, const etch_tensor *weight)
{
    const etch_stages *stages = w->v->placed->stages;
    if (!stages || w->idle || (weight->region->loop && etch_position_is_loop(stages, w->position)))
        return true;
    const etch_stage_uses *uses = &stages->uses[weight->id];
    for (uint32_t i = 0; i < uses->count; i++)
        if (one_position(w, uses->at[i].position) == one_position(w, w->position))
            return true;
    return false;
}

/* ---- what is read -------------------------------------------------------------------------------------- */

static bool lists(const value_list *list, const etch_value *value)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i] == value)
            return true;
    return false;
}

static bool writes(const etch_step_task *task, const etch_value *value)
{
    for (uint32_t i = 0; i < task->kernel->writes.count; i++)
        if (task->kernel->writes.at[i] == value)
            return true;
    return false;
}

static bool is_given(const etch_value *value)
{
    const etch_kind kind = value->tensor->kind;
    return !value->step && (kind == ETCH_INPUT || kind == ETCH_WEIGHT || kind == ETCH_CONSTANT);
}

/* `reader`: a task, or NULL: the loop-carried values of `loop`. */
static const char *reader_name(const walk *w, const etch_step_task *reader, const char *loop)
{
    return reader ? verify_task_name(w->v, reader) : etch_text(w->v->scratch, "loop %s", loop);
}

/* What is in memory when `operand` is read must be made, whole, at no later stage position, and written. */
static bool check_read(const walk *w, etch_value *operand, const etch_step_task *reader, const char *loop)
{
    verifying *v = w->v;
    const etch_value *memory = etch_value_memory(operand, NULL);
    const char *name = memory->tensor->name;
    if (!is_given(memory) && !w->ready[memory->id])
        return verify_wrong(v, "%s reads %s, which nothing before it has made there",
                            reader_name(w, reader, loop), name);
    if (memory->sharded_flat && reader && reader->kind == ETCH_TASK_COMPUTE)
        return verify_wrong(v, "%s reads weight %s, of which a rank has a part", reader_name(w, reader, loop),
                            name);
    if (!is_given(memory) && !is_reached(w, memory, w->reads_since))
        return verify_wrong(v, "%s reads %s, which is made at a later stage position",
                            reader_name(w, reader, loop), name);
    if (memory->tensor->kind == ETCH_WEIGHT && !is_noted_use(w, memory->tensor))
        return verify_wrong(v, "%s reads weight %s where the stages do not use it",
                            reader_name(w, reader, loop), name);
    const etch_step_task *maker = w->by[memory->id];
    if (maker && maker != reader && !writes(maker, memory))
        return verify_wrong(v, "%s reads %s, which %s does not write", reader_name(w, reader, loop), name,
                            verify_task_name(v, maker));
    return true;
}

/* The kernel lists what its task reads: each value that another made, or that nothing makes, once. */
static bool check_reads(const walk *w, const etch_step_task *task)
{
    const etch_kernel *kernel = task->kernel;
    value_list found = {0};
    for (uint32_t i = 0; i < kernel->steps.count; i++)
        for (uint32_t k = 0; k < kernel->steps.at[i]->in_count; k++) {
            etch_value *operand = kernel->steps.at[i]->ins[k];
            const etch_value *memory = etch_value_memory(operand, NULL), *root = etch_value_root(operand);
            if (w->by[memory->id] != task && !lists(&found, root))
                ETCH_PUSH(w->v->scratch, &found, root);
        }
    for (uint32_t i = 0; i < kernel->reads.count; i++)
        if (!lists(&found, kernel->reads.at[i]))
            return verify_wrong(w->v, "%s lists %s, which it does not read", verify_task_name(w->v, task),
                                kernel->reads.at[i]->tensor->name);
    return found.count == kernel->reads.count ||
           verify_wrong(w->v, "%s lists %u values of %u that it reads", verify_task_name(w->v, task),
                        (unsigned)kernel->reads.count, (unsigned)found.count);
}

/* ---- what is made -------------------------------------------------------------------------------------- */

static void make(const walk *w, value_list *made, const etch_value *value, const etch_step_task *by,
                 etch_position since)
{
    w->ready[value->id]++;
    w->by[value->id] = by;
    w->since[value->id] = since;
    w->of_backward[value->id] = w->backward;
    ETCH_PUSH(w->v->scratch, made, value);
}

/* A gradient is added to in backward only, as its weight is held but for partial sums. */
static bool check_addition(const walk *w, const etch_step_task *task, const etch_value *part,
                           const etch_tensor *gradient)
{
    verifying *v = w->v;
    const etch_value *weight = v->placed->weight_of[gradient->of->id];
    if (task->phase != ETCH_BACKWARD)
        return verify_wrong(v, "%s adds to gradient %s and is not of backward", verify_task_name(v, task),
                            gradient->name);
    for (uint32_t a = 0; a < v->placed->plan->mesh.count; a++) {
        if (part->place[a] == weight->place[a])
            continue;
        if (part->place[a] != ETCH_PARTIAL || weight->place[a])
            return verify_wrong(v, "%s adds to gradient %s what is not held as the weight",
                                verify_task_name(v, task), gradient->name);
        v->partial[gradient->id] |= 1u << a;
    }
    v->adds[gradient->id]++;
    return true;
}

static bool walk_task(const walk *w, value_list *made, const etch_step_task *task, bool top)
{
    const etch_kernel *kernel = task->kernel;
    for (uint32_t i = 0; i < kernel->steps.count; i++) {
        const etch_step *step = kernel->steps.at[i];
        for (uint32_t k = 0; k < step->in_count; k++)
            if (!check_read(w, step->ins[k], task, NULL))
                return false;
        for (uint32_t k = 0; k < step->out_count; k++) {
            if (w->ready[step->outs[k]->id])
                return verify_wrong(w->v, "%s makes %s a second time", verify_task_name(w->v, task),
                                    step->outs[k]->tensor->name);
            if (step->accumulate_into[k] && !check_addition(w, task, step->outs[k], step->accumulate_into[k]))
                return false;
            make(w, made, step->outs[k], task, top ? task->position : ETCH_NO_POSITION);
        }
    }
    return check_reads(w, task);
}

/* ---- bodies -------------------------------------------------------------------------------------------- */

static bool walk_body(walk *w, const etch_step_body *body, const etch_placed_region *region);

/* Values of bodies of the same iterations that have run become ready, or are ready no more. */
static void see_made(const walk *w, const etch_region *forward, bool begins)
{
    for (uint32_t i = 0; i < w->made.count; i++) {
        const made_body *other = &w->made.at[i];
        for (uint32_t k = 0; other->forward == forward && k < other->values.count; k++) {
            uint32_t *ready = &w->ready[other->values.at[k]->id];
            *ready = begins ? *ready + 1 : *ready - 1;
        }
    }
}

static bool walk_loop_body(walk *w, const etch_step_repeat *repeat, uint32_t k)
{
    const etch_placed_region *region = repeat->loop->bodies.at[k];
    const etch_region *forward = etch_forward_body(region->of);
    const uint32_t others = w->made.count;
    const bool idle = w->idle;
    if (repeat->bodies.at[k]->region != region)
        return verify_wrong(w->v, "%s is of another loop, or another class", body_name(w, region));
    if (w->backward)
        see_made(w, forward, true);
    w->idle = idle || etch_is_zero(region->of->count);
    if (!walk_body(w, repeat->bodies.at[k], region))
        return false;
    w->idle = idle;
    /* bodies inside of it have come behind those that were seen */
    const uint32_t all = w->made.count;
    w->made.count = others;
    if (w->backward)
        see_made(w, forward, false);
    w->made.count = all;
    return true;
}

static bool check_repeat(const walk *w, const etch_step_repeat *repeat)
{
    const etch_placed_loop *loop = repeat->loop;
    if (repeat->bodies.count != loop->bodies.count || loop->bodies.count != loop->loop->bodies.count)
        return verify_wrong(w->v, "loop %s has %u bodies for %u classes of iterations", loop->loop->name,
                            (unsigned)repeat->bodies.count, (unsigned)loop->loop->bodies.count);
    const bool derived = loop->loop->forward || loop->loop->repeats;
    return derived == w->backward || verify_wrong(w->v, "loop %s is in the wrong pass", loop->loop->name);
}

static bool walk_repeat(walk *w, value_list *made, const etch_step_repeat *repeat, bool top)
{
    const etch_placed_loop *loop = repeat->loop;
    if (!check_repeat(w, repeat))
        return false;
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        for (uint32_t i = 0; i < loop->bodies.at[k]->carries.count; i++) {
            etch_value *init = loop->bodies.at[k]->carries.at[i].init;
            if (init && !check_read(w, init, NULL, loop->loop->name))
                return false;
        }
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        if (!walk_loop_body(w, repeat, k))
            return false;
    const etch_position since = top ? end_of_loop(w, repeat->position, false) : ETCH_NO_POSITION;
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        if (etch_loop_carries(loop)->at[i].result)
            make(w, made, etch_loop_carries(loop)->at[i].result, NULL, since);
    return true;
}

/* What stands at the top level has a place in the chain; only a loop can have all iterations of one. */
static bool check_position(walk *w, const etch_step_item *item)
{
    const etch_stages *stages = w->v->placed->stages;
    w->position = item->task ? item->task->position : item->repeat->position;
    w->reads_since = end_of_loop(w, w->position, true);
    if (!stages)
        return true;
    const char *name = item->task ? verify_task_name(w->v, item->task) : item->repeat->loop->loop->name;
    if (!is_position(w, w->position))
        return verify_wrong(w->v, "%s has no stage position", name);
    if (item->task && etch_position_is_loop(stages, w->position))
        return verify_wrong(w->v, "%s is at every iteration of a loop", name);
    const etch_position placed =
        item->task ? item->task->kernel->anchor->position : item->repeat->loop->position;
    return w->position == placed ||
           verify_wrong(w->v, "%s is not at the stage position of its placement", name);
}

static bool walk_item(walk *w, value_list *made, const etch_step_item *item, const etch_placed_region *region)
{
    const bool top = !region->loop;
    if (top && !check_position(w, item))
        return false;
    if (item->repeat)
        return walk_repeat(w, made, item->repeat, top);
    return check_kernel(w, item->task, region) && check_fields(w, item->task) &&
           verify_task(w->v, item->task) && walk_task(w, made, item->task, top);
}

/* Goes as deep as loops are nested. */
static bool walk_body(walk *w, const etch_step_body *body, const etch_placed_region *region)
{
    value_list made = {0};
    if (!check_items(w, body, region))
        return false;
    for (uint32_t i = 0; i < region->carries.count; i++)
        make(w, &made, region->carries.at[i].in, NULL, ETCH_NO_POSITION);
    for (uint32_t i = 0; i < body->items.count; i++)
        if (!walk_item(w, &made, &body->items.at[i], region))
            return false;
    for (uint32_t i = 0; i < region->carries.count; i++)
        if (!check_read(w, region->carries.at[i].out, NULL, region->loop->loop->name))
            return false;
    if (!check_steps(w, region))
        return false;
    if (!region->loop) /* what the top level makes stays ready */
        return true;
    for (uint32_t i = 0; i < made.count; i++)
        w->ready[made.at[i]->id]--;
    ETCH_PUSH(w->v->scratch, &w->made, (made_body){etch_forward_body(region->of), made});
    return true;
}

bool verify_bodies(verifying *v)
{
    const etch_placed *placed = v->placed;
    walk w = {
        .v = v,
        .ready = ETCH_NEW_ARRAY(v->scratch, placed->value_count, uint32_t),
        .by = ETCH_NEW_ARRAY(v->scratch, placed->value_count, const etch_step_task *),
        .since = ETCH_NEW_ARRAY(v->scratch, placed->value_count, etch_position),
        .of_backward = ETCH_NEW_ARRAY(v->scratch, placed->value_count, bool),
        .runs = ETCH_NEW_ARRAY(v->scratch, placed->step_count, uint32_t),
    };
    for (uint32_t i = 0; i < placed->value_count; i++)
        w.since[i] = ETCH_NO_POSITION;
    const etch_step_body *forward = v->program->forward, *backward = v->program->backward;
    if (forward->region != placed->forward || (backward ? backward->region : NULL) != placed->backward)
        return verify_wrong(v, "forward or backward is not that of the placement");
    if (!walk_body(&w, forward, placed->forward))
        return false;
    w.backward = true;
    return !backward || walk_body(&w, backward, placed->backward);
}
