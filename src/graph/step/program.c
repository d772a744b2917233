/* The step program of a placed graph: its kernels and loops in issue order, the messages between stages, and
 * the end of the step.
 *
 * requires: kernels, weight groups. provides: placed->program; once kernels are counted, what its tasks
 * compute and move. */
#include "graph/step/step_int.h"

typedef struct builder {
    etch_placed *placed;
    etch_sym *sym;
    etch_arena *arena;
} builder;

static etch_step_contribution of_step(const etch_step *step)
{
    const etch_op *op = step->op;
    const etch_tensor *tensor = step->outs[0]->tensor;
    return (etch_step_contribution){.step = step,
                                    .tensor = tensor,
                                    .row = step->row,
                                    .scope = op ? etch_first_op(op)->scope : step->scope,
                                    .span = op ? op->span : tensor->span};
}

static void add_ops(const builder *b, etch_step_task *task)
{
    const etch_kernel *kernel = task->kernel;
    task->contributions.capacity = kernel->steps.count;
    task->contributions.at = ETCH_NEW_ARRAY(b->arena, kernel->steps.count, etch_step_contribution);
    for (uint32_t i = 0; i < kernel->steps.count; i++) {
        const etch_step *step = kernel->steps.at[i];
        etch_step_contribution c = of_step(step);
        for (uint32_t n = 0; n < step->out_count; n++)
            if (etch_value_stays(step->outs[n]))
                c.cached = etch_value_kept_bytes(b->placed, step->outs[n]);
        ETCH_PUSH(b->arena, &task->contributions, c);
    }
}

/* Weights that are gathered together count weight by weight, so that modules can be told apart. */
static void add_operands(const builder *b, etch_step_task *task)
{
    const etch_step *collective = task->kernel->anchor;
    for (uint32_t i = 0; i < task->kernel->steps.count && !collective->copies; i++) {
        etch_step_contribution c = of_step(task->kernel->steps.at[i]);
        c.payload = etch_payload(b->placed, c.step);
        ETCH_PUSH(b->arena, &task->contributions, c);
    }
    for (uint32_t i = 0; i < collective->in_count && collective->copies; i++) {
        const etch_tensor *weight = collective->ins[i]->tensor;
        etch_step_contribution c = of_step(collective);
        c.tensor = weight;
        c.scope = weight->scope;
        c.span = weight->span;
        c.payload = etch_payload_of(b->placed, collective, i);
        ETCH_PUSH(b->arena, &task->contributions, c);
    }
}

static etch_step_task *task_of(const builder *b, const etch_kernel *kernel)
{
    const etch_step *anchor = kernel->anchor;
    const bool collective = etch_step_role(anchor) == ETCH_ROLE_RESHARD;
    etch_step_task *task = ETCH_NEW(b->arena, etch_step_task);
    *task = (etch_step_task){.kind = collective ? ETCH_TASK_COLLECTIVE : ETCH_TASK_COMPUTE,
                             .phase = anchor->phase,
                             .when = anchor->lasts == ETCH_KEEP_STEP ? ETCH_FIRST_MICROBATCH
                                                                     : ETCH_EACH_MICROBATCH,
                             .weight_half = anchor->weight_half,
                             .collective = anchor->collective,
                             .axes = anchor->axes,
                             .provenance = anchor->provenance,
                             .flop = etch_int(b->sym, 0),
                             .bytes = collective ? etch_kernel_payload(b->placed, kernel) : NULL,
                             .kernel = kernel,
                             .position = anchor->position};
    if (collective)
        add_operands(b, task);
    else
        add_ops(b, task);
    return task;
}

static etch_step_body *body_of(const builder *b, const etch_placed_region *region);

static etch_step_repeat *repeat_of(const builder *b, const etch_placed_loop *loop)
{
    etch_step_repeat *repeat = ETCH_NEW(b->arena, etch_step_repeat);
    repeat->loop = loop;
    repeat->position = loop->position;
    for (uint32_t i = 0; i < loop->bodies.count; i++)
        ETCH_PUSH(b->arena, &repeat->bodies, body_of(b, loop->bodies.at[i]));
    return repeat;
}

/* Kernels stand among the items of their region. Goes as deep as loops are nested. */
static etch_step_body *body_of(const builder *b, const etch_placed_region *region)
{
    etch_step_body *body = ETCH_NEW(b->arena, etch_step_body);
    uint32_t kernel = 0;
    body->region = region;
    for (uint32_t item = 0; item < region->items.count; item++) {
        const etch_placed_loop *loop = region->items.at[item].loop;
        for (; kernel < region->kernels.count && region->kernels.at[kernel]->item <= item; kernel++)
            ETCH_PUSH(b->arena, &body->items,
                      (etch_step_item){.task = task_of(b, region->kernels.at[kernel])});
        if (loop)
            ETCH_PUSH(b->arena, &body->items, (etch_step_item){.repeat = repeat_of(b, loop)});
    }
    return body;
}

/* ---- what kernels compute and move --------------------------------------------------------------------- */

/* The numbers of memory are the kernel's as a whole: they count for its anchor. */
static void count_task(etch_step_task *task)
{
    const etch_kernel *kernel = task->kernel;
    if (task->kind != ETCH_TASK_COMPUTE)
        return;
    task->flop = kernel->flop;
    task->bytes = kernel->bytes;
    for (uint32_t i = 0; i < task->contributions.count; i++) {
        etch_step_contribution *c = &task->contributions.at[i];
        c->flop = c->step->flop;
        if (c->step != kernel->anchor)
            continue;
        c->read = kernel->read;
        c->written = kernel->written;
    }
}

/* Goes as deep as loops are nested. */
static void count_body(const etch_step_body *body)
{
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_step_item item = body->items.at[i];
        if (item.task)
            count_task(item.task);
        for (uint32_t k = 0; item.repeat && k < item.repeat->bodies.count; k++)
            count_body(item.repeat->bodies.at[k]);
    }
}

void etch_kernels_count(etch_placed *placed)
{
    if (placed->counted)
        return;
    etch_kernel_io(placed);
    count_body(placed->program->forward);
    if (placed->program->backward)
        count_body(placed->program->backward);
    placed->counted = true; /* not before: memory may run out, and who asks again is to get all of it */
}

/* ---- messages ------------------------------------------------------------------------------------------ */

/* What crosses in every message is one contribution, all else is one each. */
static void add_crossings(const builder *b, etch_step_task *task, const etch_crossings *crossings)
{
    etch_step_contribution c = {.scope = b->placed->training->graph->scopes.at[0],
                                .span = b->placed->stages->line->span,
                                .payload = etch_int(b->sym, 0)};
    for (uint32_t i = 0; i < crossings->count; i++)
        if (crossings->at[i].is_read && crossings->at[i].is_made)
            c.payload = etch_add(b->sym, c.payload, etch_value_bytes(b->placed, crossings->at[i].value));
    ETCH_PUSH(b->arena, &task->contributions, c);
    for (uint32_t i = 0; i < crossings->count; i++) {
        if ((crossings->at[i].is_read && crossings->at[i].is_made) ||
            !etch_crossing_may_be_sent(&crossings->at[i]))
            continue;
        c.crossing = &crossings->at[i];
        c.payload = etch_value_bytes(b->placed, crossings->at[i].value);
        ETCH_PUSH(b->arena, &task->contributions, c);
    }
}

static etch_step_task *message_of(const builder *b, etch_phase phase, const etch_cut *cut, etch_expr bytes)
{
    const etch_span line = b->placed->stages->line->span;
    etch_step_task *task = ETCH_NEW(b->arena, etch_step_task);
    *task = (etch_step_task){.kind = ETCH_TASK_MESSAGE,
                             .phase = phase,
                             .collective = ETCH_SEND,
                             .axes = etch_stage_axes(b->placed),
                             .provenance = {ETCH_RULE_STAGE, .cut = cut, .line = line},
                             .flop = etch_int(b->sym, 0),
                             .bytes = bytes,
                             .cut = cut};
    add_crossings(b, task, phase == ETCH_BACKWARD ? &cut->backward : &cut->forward);
    return task;
}

static void add_messages(const builder *b, etch_step_program *program)
{
    const etch_stages *stages = b->placed->stages;
    for (int back = 0; stages && back <= (program->backward != NULL); back++)
        for (uint32_t i = 0; i < stages->cuts.count; i++) {
            const etch_cut *cut = &stages->cuts.at[i];
            ETCH_PUSH(b->arena, &program->messages,
                      message_of(b, back ? ETCH_BACKWARD : ETCH_FORWARD, cut,
                                 back ? cut->backward_bytes : cut->forward_bytes));
        }
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

void etch_step_program_make(etch_placed *placed)
{
    const etch_training *training = placed->training;
    const builder b = {.placed = placed, .sym = training->graph->sym, .arena = placed->arena};
    etch_step_program *program = ETCH_NEW(b.arena, etch_step_program);
    program->placed = placed;
    program->micro = training->train.micro ? training->train.micro : etch_int(b.sym, 1);
    etch_halves_find(placed);
    program->forward = body_of(&b, placed->forward);
    if (placed->backward)
        program->backward = body_of(&b, placed->backward);
    add_messages(&b, program);
    if (placed->backward)
        etch_step_end(placed, &program->end);
    placed->program = program;
}
