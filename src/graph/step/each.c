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

/* Those that go through a chunk. */
static etch_expr microbatches(const walk *w)
{
    const uint32_t copies = w->view ? etch_stage_copies(w->stages) : 1;
    return etch_div(w->sym, w->program->micro, etch_int(w->sym, copies));
}

static void visit_one(const walk *w, const etch_step_task *task, const etch_step_contribution *c,
                      etch_task_place place)
{
    if (task->when == ETCH_EACH_MICROBATCH)
        place.runs = etch_mul(w->sym, microbatches(w), place.runs);
    w->visit(w->data, task, c, &place);
}

static void visit_task(const walk *w, const etch_step_task *task, etch_task_place place)
{
    for (uint32_t i = 0; i < task->contributions.count; i++)
        visit_one(w, task, &task->contributions.at[i], place);
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

/* Not all messages at a cut have all that crosses it. */
static void visit_messages(const walk *w)
{
    const etch_step_tasks *messages = &w->program->messages;
    for (uint32_t i = 0; w->view && i < messages->count; i++) {
        const etch_step_task *task = messages->at[i];
        const uint32_t cut = (uint32_t)(task->cut - w->stages->cuts.at);
        for (uint32_t k = 0; k < task->contributions.count; k++) {
            const etch_step_contribution *c = &task->contributions.at[k];
            const etch_expr runs =
                etch_stage_sends(w->sym, w->view, cut, c->crossing, task->phase == ETCH_BACKWARD);
            visit_one(w, task, c, (etch_task_place){runs, NULL});
        }
    }
}

/* ---- the end of a step --------------------------------------------------------------------------------- */

/* How many iterations of its loop, 1 without one, the stage does something for: every stage that uses the
 * weights; of the norm the first of them, in the first copy of the chain; of a shared reduction those that
 * are not alone. */
static etch_expr groups_of(const walk *w, etch_end_role role, const etch_weight_group *group)
{
    const bool shared = role == ETCH_END_REDUCE_SHARED;
    const etch_expr count = group && group->body ? group->body->count : etch_int(w->sym, 1);
    const etch_stage_uses *uses = group && w->view ? etch_weight_group_uses(w->program->placed, group) : NULL;
    const bool counts_once = role == ETCH_END_NORM && w->view && w->view->of_first_copy;
    const etch_stage_view *view = counts_once ? w->view->of_first_copy : w->view;
    if (shared && (!uses || (uses->count == 0 && etch_stage_copies(w->stages) == 1)))
        return etch_int(w->sym, 0);
    if (!uses)
        return count;
    if (uses->count == 0) /* with the iterations of a loop whose iterations are positions */
        return etch_stage_iterations(w->sym, view, etch_stage_position_of(w->program->placed, group->loop),
                                     group->body);
    return etch_mul(w->sym, count,
                    shared                  ? etch_stage_shares_weight(w->sym, view, uses)
                    : role == ETCH_END_NORM ? etch_stage_begins(w->sym, view, uses)
                                            : etch_stage_presence(w->sym, view, uses));
}

static void visit_ending(const walk *w, const etch_step_task *task, const etch_step_contribution *c)
{
    etch_task_place place = {groups_of(w, task->end, c->group),
                             c->tensor ? etch_body_around(c->tensor) : NULL};
    if (c->copies)
        place.runs = etch_mul(w->sym, place.runs, c->copies);
    visit_one(w, task, c, place);
}

/* Of a weight comes first what is done for its group alone, then what stages do together, and last what is
 * done for all groups. */
static int turn_of(const etch_step_task *task)
{
    return !task->group ? 2 : task->end == ETCH_END_REDUCE_SHARED;
}

/* Of each task what it does with the weight (NULL: what is of none), if that comes next. `next`: by task, how
 * many of its contributions have been visited. */
static void visit_weight(const walk *w, uint32_t *next, const etch_tensor *weight)
{
    const etch_step_tasks *end = &w->program->end;
    for (int turn = 0; turn < 3; turn++)
        for (uint32_t i = 0; i < end->count; i++) {
            const etch_step_task *task = end->at[i];
            if (turn_of(task) == turn && next[i] < task->contributions.count &&
                task->contributions.at[next[i]].tensor == weight)
                visit_ending(w, task, &task->contributions.at[next[i]++]);
        }
}

/* Tasks name weights in the order of the groups. */
static void visit_end(const walk *w)
{
    const etch_placed *placed = w->program->placed;
    uint32_t *next = ETCH_NEW_ARRAY(w->scratch, w->program->end.count, uint32_t);
    for (uint32_t g = 0; g < placed->weight_groups.count; g++)
        for (uint32_t i = 0; i < placed->weight_groups.at[g]->weights.count; i++)
            visit_weight(w, next, placed->weight_groups.at[g]->weights.at[i]);
    visit_weight(w, next, NULL);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

etch_expr etch_step_group_runs(const etch_step_program *program, const etch_stage_view *view,
                               const etch_step_task *task)
{
    const etch_placed *placed = program->placed;
    const walk w = {.program = program,
                    .stages = placed->stages,
                    .view = placed->stages ? view : NULL,
                    .sym = placed->training->graph->sym};
    return groups_of(&w, task->end, task->group);
}

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
