/* Goes over the contributions of a step program: how often each is made on a stage. */
#include "graph/step/step_int.h"

typedef struct walk {
    const etch_step_program *program;
    const etch_stages *stages;
    /* NULL: everything is on one stage */
    const etch_stage_view *view;
    etch_sym *sym;
    etch_arena *scratch;
    etch_step_visitor *visit;
    void *data;
} walk;

/* ---- forward and backward ------------------------------------------------------------------------------ */

static void visit_task(const walk *w, const etch_step_task *task, etch_task_place place)
{
    if (task->when == ETCH_EACH_MICROBATCH)
        place.runs = etch_mul(w->sym, w->program->micro, place.runs);
    for (uint32_t i = 0; i < task->contributions.count; i++)
        w->visit(w->data, task, &task->contributions.at[i], &place);
}

/* How often a body of a loop of the top level runs in a microbatch. */
static etch_expr iterations(const walk *w, const etch_step_repeat *repeat, const etch_region *of)
{
    if (!w->view)
        return of->count;
    if (etch_position_is_loop(w->stages, repeat->position))
        return etch_stage_iterations(w->sym, w->view, repeat->position, of);
    return etch_mul(w->sym, of->count, etch_stage_share(w->view, repeat->position));
}

/* `place.runs` is that in a microbatch; NULL: at the top level. Goes as deep as loops are nested. */
static void visit_body(const walk *w, const etch_step_body *body, etch_task_place place)
{
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_step_task *task = body->items.at[i].task;
        etch_task_place here = place;
        if (task && !here.runs)
            here.runs = w->view ? etch_stage_share(w->view, task->position) : etch_int(w->sym, 1);
        if (task)
            visit_task(w, task, here);
    }
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_step_repeat *repeat = body->items.at[i].repeat;
        for (uint32_t k = 0; repeat && k < repeat->bodies.count; k++) {
            const etch_region *of = repeat->bodies.at[k]->region->of;
            const etch_expr runs =
                place.runs ? etch_mul(w->sym, place.runs, of->count) : iterations(w, repeat, of);
            visit_body(w, repeat->bodies.at[k], (etch_task_place){runs, etch_forward_body(of)});
        }
    }
}

static void visit_messages(const walk *w)
{
    const etch_step_tasks *messages = &w->program->messages;
    for (uint32_t i = 0; w->view && i < messages->count; i++) {
        const uint32_t cut = (uint32_t)(messages->at[i]->cut - w->stages->cuts.at);
        const bool forward = messages->at[i]->phase == ETCH_FORWARD;
        visit_task(w, messages->at[i],
                   (etch_task_place){forward ? w->view->forward[cut] : w->view->backward[cut], NULL});
    }
}

/* ---- the end of a step --------------------------------------------------------------------------------- */

/* How many iterations of its loop, 1 without one, the stage does something for. */
static etch_expr groups_of(const walk *w, etch_doers doers, const etch_weight_group *group)
{
    const etch_expr count = group && group->body ? group->body->count : etch_int(w->sym, 1);
    const etch_positions *uses = group && w->view ? etch_weight_group_uses(w->program->placed, group) : NULL;
    if (doers == ETCH_SHARED_USERS && (!uses || uses->count == 0))
        return etch_int(w->sym, 0);
    if (!uses)
        return count;
    if (uses->count == 0) /* with the iterations of a loop whose iterations are positions */
        return etch_stage_iterations(w->sym, w->view, etch_stage_position_of(w->program->placed, group->loop),
                                     group->body);
    return etch_mul(w->sym, count,
                    doers == ETCH_SHARED_USERS ? etch_stage_shares_weight(w->sym, w->view, uses)
                    : doers == ETCH_FIRST_USER ? etch_stage_begins(w->sym, w->view, uses)
                                               : etch_stage_presence(w->sym, w->view, uses));
}

/* The body of the loop around a weight. */
static const etch_region *body_around(const etch_tensor *weight)
{
    const etch_region *body = weight ? weight->region : NULL;
    while (body && !body->loop)
        body = body->parent;
    return body;
}

static void visit_ending(const walk *w, const etch_step_task *task, const etch_step_contribution *c)
{
    etch_task_place place = {groups_of(w, task->doers, c->group), body_around(c->tensor)};
    if (c->copies)
        place.runs = etch_mul(w->sym, place.runs, c->copies);
    if (task->when == ETCH_EACH_MICROBATCH)
        place.runs = etch_mul(w->sym, place.runs, w->program->micro);
    w->visit(w->data, task, c, &place);
}

/* Tasks, and how many of the contributions of each have been visited. */
typedef struct cursors {
    etch_step_tasks tasks;
    uint32_t *next;
} cursors;

static cursors cursors_of(const walk *w, const etch_step_tasks *tasks)
{
    return (cursors){*tasks, ETCH_NEW_ARRAY(w->scratch, tasks->count, uint32_t)};
}

/* Of each task what it does with the weight (NULL: what is of none), if that comes next. */
static void visit_next(const walk *w, cursors *at, const etch_tensor *weight)
{
    for (uint32_t i = 0; i < at->tasks.count; i++) {
        const etch_step_task *task = at->tasks.at[i];
        const etch_step_contribution *c = &task->contributions.at[at->next[i]];
        if (at->next[i] == task->contributions.count || c->tensor != weight)
            continue;
        visit_ending(w, task, c);
        at->next[i]++;
    }
}

/* Tasks name weights in the order of the groups. */
static void visit_end(const walk *w)
{
    const etch_step_program *program = w->program;
    etch_step_tasks of_all = {0};
    for (uint32_t i = 0; i < program->end.count; i++)
        if (!program->end.at[i]->group)
            ETCH_PUSH(w->scratch, &of_all, program->end.at[i]);
    cursors all = cursors_of(w, &of_all);
    for (uint32_t g = 0; g < program->groups.count; g++) {
        const etch_weight_group *weights = program->groups.at[g].weights;
        cursors own = cursors_of(w, &program->groups.at[g].end);
        for (uint32_t i = 0; i < weights->weights.count; i++) {
            visit_next(w, &own, weights->weights.at[i]);
            visit_next(w, &all, weights->weights.at[i]);
        }
    }
    visit_next(w, &all, NULL);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

void etch_step_each(const etch_step_program *program, const etch_stage_view *view, etch_step_visitor *visit,
                    void *data)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(program->placed->arena));
    const walk w = {.program = program,
                    .stages = program->placed->stages,
                    .view = program->placed->stages ? view : NULL,
                    .sym = program->placed->training->graph->sym,
                    .scratch = scratch,
                    .visit = visit,
                    .data = data};
    visit_body(&w, program->forward, (etch_task_place){NULL, NULL});
    if (program->backward)
        visit_body(&w, program->backward, (etch_task_place){NULL, NULL});
    visit_messages(&w);
    visit_end(&w);
    etch_arena_free(scratch);
}
