/* Planted mistakes: the verifier finds each, and says where it is. */
#include "suite.h"
#include "verify.h"
#include "victim.h"

#include <string.h>

enum { MOST_STAGES = 4 };

/* ---- how mistakes are made ----------------------------------------------------------------------------- */

/* The task's numbers as its contributions now say: mistakes of other kinds stay. */
static void add_up(const victim *x, etch_step_task *task)
{
    task->flop = task->bytes = etch_int(x->sym, 0);
    for (uint32_t i = 0; i < task->contributions.count; i++) {
        const etch_step_contribution *c = &task->contributions.at[i];
        etch_expr often = c->copies ? c->copies : etch_int(x->sym, 1);
        if (!task->group && c->group && c->group->body)
            often = etch_mul(x->sym, often, c->group->body->count);
        const etch_expr amounts[] = {c->read, c->written, c->payload};
        if (c->flop)
            task->flop = etch_add(x->sym, task->flop, etch_mul(x->sym, often, c->flop));
        for (int k = 0; k < 3; k++)
            if (amounts[k])
                task->bytes = etch_add(x->sym, task->bytes, etch_mul(x->sym, often, amounts[k]));
    }
}

/* The first tasks of two roles. */
static void swap_in_end(const victim *x, etch_end_role a, etch_end_role b)
{
    etch_step_task **of_a = &x->program->end.at[victim_place(x, a, 0)];
    etch_step_task **of_b = &x->program->end.at[victim_place(x, b, 0)];
    SWAP(etch_step_task *, *of_a, *of_b);
}

static void forget_task(const victim *x, uint32_t place)
{
    TAKE_OUT(x->program->end, place);
}

/* ---- tasks and loops ----------------------------------------------------------------------------------- */

static void swap_tasks(const victim *x)
{
    SWAP(etch_step_item, x->layer->items.at[0], x->layer->items.at[1]);
}

static void drop_task(const victim *x)
{
    x->layer->items.count--;
}

static void repeat_task(const victim *x)
{
    x->layer->items.at[1] = x->layer->items.at[0];
}

static void task_after_loop(const victim *x)
{
    SWAP(etch_step_item, x->forward->items.at[0], x->forward->items.at[1]);
}

static void drop_loop(const victim *x)
{
    uint32_t i = 0;
    while (!x->forward->items.at[i].repeat)
        i++;
    TAKE_OUT(x->forward->items, i);
}

static void drop_body(const victim *x)
{
    x->loop->bodies.count = 0;
}

static void other_body(const victim *x)
{
    x->loop->bodies.at[0] = x->layer_back;
}

static void wrong_kind(const victim *x)
{
    victim_task(x->layer, "rms_norm")->kind = ETCH_TASK_COLLECTIVE;
}

static void wrong_phase(const victim *x)
{
    victim_task(x->layer, "rms_norm")->phase = ETCH_BACKWARD;
}

static void wrong_when(const victim *x)
{
    victim_task(x->layer, "all_reduce")->when = ETCH_FIRST_MICROBATCH;
}

static void step_twice(const victim *x)
{
    etch_kernel *kernel = victim_kernel(x, x->layer, victim_task(x->layer, "rms_norm"));
    ETCH_PUSH(x->placed->arena, &kernel->steps, kernel->steps.at[0]);
}

static void step_in_none(const victim *x)
{
    etch_step *copy = ETCH_NEW(x->placed->arena, etch_step);
    *copy = *victim_task(x->layer, "rms_norm")->kernel->anchor;
    copy->id = x->placed->step_count++;
    ETCH_PUSH(x->placed->arena, &x->loop->loop->bodies.at[0]->items, (etch_placed_item){.step = copy});
}

/* ---- what is read -------------------------------------------------------------------------------------- */

/* The first product of a layer reads what the last one makes. */
static void read_later(const victim *x)
{
    const etch_step_task *last = x->layer->items.at[x->layer->items.count - 1].task;
    victim_task(x->layer, "einsum")->kernel->anchor->ins[0] = last->kernel->anchor->outs[0];
}

/* After the loop, what an iteration has made. */
static void read_inside(const victim *x)
{
    victim_task(x->forward, "rms_norm")->kernel->anchor->ins[0] =
        victim_task(x->layer, "rms_norm")->kernel->anchor->outs[0];
}

/* At the top level of backward, too. */
static void read_inside_backward(const victim *x)
{
    x->backward->items.at[0].task->kernel->anchor->ins[0] =
        victim_task(x->layer, "rms_norm")->kernel->anchor->outs[0];
}

static void write_nothing(const victim *x)
{
    victim_kernel(x, x->layer, victim_task(x->layer, "rms_norm"))->writes.count = 0;
}

static void list_nothing(const victim *x)
{
    victim_kernel(x, x->layer, victim_task(x->layer, "rms_norm"))->reads.count--;
}

static void list_other(const victim *x)
{
    victim_kernel(x, x->layer, victim_task(x->layer, "rms_norm"))->reads.at[0] =
        victim_task(x->layer, "einsum")->kernel->anchor->outs[0];
}

static void read_part(const victim *x)
{
    const etch_step *gather = victim_task(x->layer, "all_gather")->kernel->anchor;
    const etch_step *product = victim_task(x->layer, "einsum")->kernel->anchor;
    for (uint32_t i = 0; i < gather->in_count; i++)
        if (gather->outs[i] == product->ins[1])
            product->ins[1] = gather->ins[i];
}

/* ---- stage positions ----------------------------------------------------------------------------------- */

static void set_position(etch_step_task *task, etch_position home)
{
    task->position = home;
    for (uint32_t i = 0; i < task->kernel->steps.count; i++)
        task->kernel->steps.at[i]->position = home;
}

static void make_late(const victim *x)
{
    set_position(victim_task(x->forward, "gather"), etch_position_at(2, ETCH_ALL_OF));
    etch_stage_uses *uses = &x->placed->stages->uses[x->placed->training->graph->weights.at[0]->id];
    uses->at[0].position = etch_position_at(2, ETCH_ALL_OF);
}

static void make_nowhere(const victim *x)
{
    victim_task(x->forward, "gather")->position = etch_position_at(7, ETCH_ALL_OF);
}

static void make_in_all(const victim *x)
{
    set_position(victim_task(x->forward, "rms_norm"), etch_position_at(1, ETCH_ALL_OF));
}

static void other_position(const victim *x)
{
    victim_task(x->forward, "gather")->position = etch_position_at(0, ETCH_FIRST_OF);
}

static void other_use(const victim *x)
{
    x->placed->stages->uses[x->placed->training->graph->weights.at[0]->id].count = 1;
}

/* ---- axes and collectives ------------------------------------------------------------------------------ */

static void axes_of(const victim *x, etch_step_task *task, uint32_t axes)
{
    (void)x;
    task->axes = axes;
    if (task->kernel)
        task->kernel->anchor->axes = axes;
}

static void no_axes(const victim *x)
{
    axes_of(x, victim_task(x->layer, "all_reduce"), 0);
}

static void strange_axes(const victim *x)
{
    axes_of(x, victim_task(x->layer, "all_reduce"), 1u << 7);
}

static void stage_axes(const victim *x)
{
    axes_of(x, victim_task(x->layer, "all_reduce"), 1u << PP);
}

static void other_axes(const victim *x)
{
    victim_task(x->layer, "all_reduce")->axes = 1u << DP;
}

static void computed_axes(const victim *x)
{
    axes_of(x, victim_end(x, ETCH_END_UPDATE), 1u << DP);
}

static void message_axes(const victim *x)
{
    axes_of(x, x->program->messages.at[1], 1u << DP);
}

static void shared_axes(const victim *x)
{
    axes_of(x, victim_end(x, ETCH_END_REDUCE_SHARED), 1u << DP | 1u << PP);
}

static void norm_axes(const victim *x)
{
    axes_of(x, victim_end(x, ETCH_END_NORM_REDUCE), 1u << DP);
}

static void wrong_move(const victim *x)
{
    victim_end(x, ETCH_END_REDUCE)->collective = ETCH_ALL_GATHER;
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

static void drop_contribution(const victim *x)
{
    etch_step_task *task = victim_task(x->forward, "einsum");
    TAKE_OUT(task->contributions, 0);
    ETCH_PUSH(x->placed->arena, &task->contributions, (etch_step_contribution){.row = NULL});
}

static void drop_all_contributions(const victim *x)
{
    victim_task(x->forward, "einsum")->contributions.count = 0;
}

static void change_bytes(const victim *x)
{
    victim_end(x, ETCH_END_UPDATE)->contributions.at[0].read = etch_int(x->sym, 1);
}

static void change_kernel(const victim *x)
{
    victim_kernel(x, x->forward, victim_task(x->forward, "einsum"))->flop = etch_int(x->sym, 1);
}

static void pay_for_work(const victim *x)
{
    victim_end(x, ETCH_END_UPDATE)->contributions.at[0].payload = etch_int(x->sym, 4);
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static void drop_message(const victim *x)
{
    x->program->messages.count--;
}

static void other_message(const victim *x)
{
    x->program->messages.at[1]->cut = x->program->messages.at[0]->cut;
}

static void message_once(const victim *x)
{
    x->program->messages.at[1]->when = ETCH_ONCE_A_STEP;
}

static void message_bytes(const victim *x)
{
    x->program->messages.at[1]->bytes = etch_int(x->sym, 1);
    x->program->messages.at[1]->contributions.at[0].payload = etch_int(x->sym, 1);
}

static void send_partial(const victim *x)
{
    x->placed->stages->cuts.at[1].forward.at[0].value->place[DP] = ETCH_PARTIAL;
}

/* ---- weight groups ------------------------------------------------------------------------------------- */

/* The first group that has several weights, and another that has one. */
static etch_weight_group *layer_group(const victim *x)
{
    for (uint32_t i = 0; i < x->placed->weight_groups.count; i++)
        if (x->placed->weight_groups.at[i]->body)
            return x->placed->weight_groups.at[i];
    ck_abort_msg("no weights are in a loop");
}

static void weight_in_two_groups(const victim *x)
{
    etch_weight_group *to = x->placed->weight_groups.at[0], *layer = layer_group(x);
    ck_assert_ptr_ne(to, layer);
    ETCH_PUSH(x->placed->arena, &layer->weights, to->weights.at[0]);
    ETCH_PUSH(x->placed->arena, &layer->copies, etch_int(x->sym, 1));
}

static void weight_in_no_group(const victim *x)
{
    layer_group(x)->weights.count--;
}

static void weight_of_other_loop(const victim *x)
{
    etch_weight_group *from = x->placed->weight_groups.at[0], *layer = layer_group(x);
    SWAP(etch_tensor *, from->weights.at[0], layer->weights.at[0]);
}

static void wrong_copies(const victim *x)
{
    layer_group(x)->copies.at[0] = etch_int(x->sym, 2);
}

/* ---- gradients ----------------------------------------------------------------------------------------- */

static void add_in_forward(const victim *x)
{
    victim_task(x->layer, "rms_norm")->kernel->anchor->accumulate_into[0] =
        x->placed->training->gradients.at[0];
}

static void add_nothing(const victim *x)
{
    for (uint32_t i = 0; i < x->layer_back->items.count; i++) {
        const etch_kernel *kernel = x->layer_back->items.at[i].task->kernel;
        for (uint32_t k = 0; k < kernel->steps.count; k++)
            if (kernel->steps.at[k]->accumulate_into[0]) {
                kernel->steps.at[k]->accumulate_into[0] = NULL;
                return;
            }
    }
}

static void partial_elsewhere(const victim *x)
{
    x->placed->sync_axes[layer_group(x)->weights.at[0]->id] = 1u << TP;
}

static void drop_reduction(const victim *x)
{
    forget_task(x, victim_place(x, ETCH_END_REDUCE, 0));
}

static void reduce_twice(const victim *x)
{
    const uint32_t at = victim_place(x, ETCH_END_REDUCE, 0);
    etch_step_task *copy = ETCH_NEW(x->placed->arena, etch_step_task);
    *copy = *x->program->end.at[at];
    x->program->end.at[victim_place(x, ETCH_END_REDUCE, 1)] = copy;
}

static void reduce_too_much(const victim *x)
{
    victim_end(x, ETCH_END_REDUCE)->axes |= 1u << TP;
}

static void reduce_each(const victim *x)
{
    victim_end(x, ETCH_END_REDUCE)->when = ETCH_EACH_MICROBATCH;
}

static void reduce_after_update(const victim *x)
{
    swap_in_end(x, ETCH_END_REDUCE, ETCH_END_UPDATE);
}

static void norm_after_update(const victim *x)
{
    swap_in_end(x, ETCH_END_NORM, ETCH_END_UPDATE);
}

static void gather_before_update(const victim *x)
{
    swap_in_end(x, ETCH_END_GATHER, ETCH_END_UPDATE);
}

static void scatter_late(const victim *x)
{
    const etch_step_task *scatter = victim_end(x, ETCH_END_REDUCE);
    etch_step_task *before = ETCH_NEW(x->placed->arena, etch_step_task);
    *before = *scatter;
    before->collective = ETCH_ALL_REDUCE;
    before->axes = 1u << TP;
    x->program->end.at[victim_place(x, ETCH_END_REDUCE, 1)] = victim_end(x, ETCH_END_REDUCE);
    x->program->end.at[victim_place(x, ETCH_END_REDUCE, 0)] = before;
}

static void reduce_whole(const victim *x)
{
    victim_end(x, ETCH_END_REDUCE)->collective = ETCH_ALL_REDUCE;
}

static void drop_shared(const victim *x)
{
    forget_task(x, victim_place(x, ETCH_END_REDUCE_SHARED, 0));
}

/* ---- the rest of the end ------------------------------------------------------------------------------- */

static void drop_update(const victim *x)
{
    forget_task(x, victim_place(x, ETCH_END_UPDATE, 0));
}

static void forget_in_norm(const victim *x)
{
    etch_step_task *norm = victim_end(x, ETCH_END_NORM);
    TAKE_OUT(norm->contributions, 0);
    add_up(x, norm);
}

static void result_first(const victim *x)
{
    etch_step_task *norm = victim_end(x, ETCH_END_NORM);
    const uint32_t last = norm->contributions.count - 1;
    SWAP(etch_step_contribution, norm->contributions.at[0], norm->contributions.at[last]);
}

static void drop_gather(const victim *x)
{
    forget_task(x, victim_place(x, ETCH_END_GATHER, 0));
}

static void name_in_norm_reduce(const victim *x)
{
    etch_step_task *task = victim_end(x, ETCH_END_NORM_REDUCE);
    task->contributions.at[0].tensor = x->placed->training->graph->weights.at[0];
}

static void drop_norm_reduce(const victim *x)
{
    forget_task(x, victim_place(x, ETCH_END_NORM_REDUCE, 0));
}

static etch_step_task *layer_update(const victim *x)
{
    for (uint32_t i = 0; i < x->program->end.count; i++)
        if (x->program->end.at[i]->end == ETCH_END_UPDATE && x->program->end.at[i]->contributions.count > 1)
            return x->program->end.at[i];
    ck_abort_msg("no update is of several weights");
}

static void update_out_of_order(const victim *x)
{
    etch_step_task *update = layer_update(x);
    SWAP(etch_step_contribution, update->contributions.at[0], update->contributions.at[1]);
}

static void update_other_group(const victim *x)
{
    layer_update(x)->contributions.at[0].group = x->placed->weight_groups.at[0];
}

static void update_other_gradient(const victim *x)
{
    etch_step_task *update = layer_update(x);
    update->contributions.at[0].gradient = update->contributions.at[1].gradient;
}

static void update_each(const victim *x)
{
    layer_update(x)->when = ETCH_EACH_MICROBATCH;
}

static void update_copies(const victim *x)
{
    etch_step_task *update = layer_update(x);
    update->contributions.at[0].copies = etch_int(x->sym, 3);
    add_up(x, update);
}

static void end_of_none(const victim *x)
{
    victim_end(x, ETCH_END_REDUCE)->end = ETCH_END_NONE;
}

static void wrong_end_phase(const victim *x)
{
    layer_update(x)->phase = ETCH_SYNC;
}

/* ---- all of them --------------------------------------------------------------------------------------- */

typedef struct mistake {
    void (*make)(const victim *x);
    const char *found; /* in the message */
    uint32_t level;    /* of ZeRO */
} mistake;

static const mistake mistakes[] = {
    {swap_tasks, "forward einsum of gate is not kernel 0 of body 0 of loop layer", 0},
    {drop_task, "of body 0 of loop layer is no task", 0},
    {repeat_task, "is not kernel 1 of body 0 of loop layer", 0},
    {task_after_loop, "comes after what it stands before", 0},
    {drop_loop, "a loop of the top level of forward is missing", 0},
    {drop_body, "loop layer has 0 bodies for 1 classes", 0},
    {other_body, "body 0 of loop layer is of another loop", 0},
    {wrong_kind, "rms_norm of h over  is not of the kind of its kernel", 0},
    {wrong_phase, "backward rms_norm of h: step rms_norm is of another phase", 0},
    {wrong_when, "does not run in the microbatches of its kernel", 0},
    {step_twice, "step rms_norm is in two tasks", 0},
    {step_in_none, "step rms_norm of body 0 of loop layer is in 0 tasks", 0},
    {read_later, "which nothing before it has made there", 0},
    {read_inside, "forward rms_norm of n reads h, which nothing before it has made there", 0},
    {read_inside_backward, "reads h, which nothing before it has made there", 0},
    {write_nothing, "reads h, which forward rms_norm of h does not write", 0},
    {list_nothing, "forward rms_norm of h lists", 0},
    {list_other, "forward rms_norm of h lists gate, which it does not read", 0},
    {read_part, "of which a rank has a part", 3},
    {make_late, "which is made at a later stage position", 0},
    {make_nowhere, "forward gather of e has no stage position", 0},
    {make_in_all, "forward rms_norm of n is at every iteration of a loop", 0},
    {other_position, "forward gather of e is not at the stage position of its placement", 0},
    {other_use, "reads weight emb where the stages do not use it", 0},
    {no_axes, "is over no axes", 0},
    {strange_axes, "is over axes that the mesh lacks", 0},
    {stage_axes, "is over an axis of the stages", 0},
    {other_axes, "is not over the axes of its kernel", 0},
    {computed_axes, "update of emb computes over axes", 0},
    {message_axes, "forward message is not over the axes of the stages", 0},
    {shared_axes, "shared-weight reduction of emb is not over the axes of the stages", 0},
    {norm_axes, "reduction of the norm of all weights is not over all axes", 0},
    {wrong_move, "its collective is all_gather", 0},
    {drop_contribution, "forward einsum of z: its FLOP are not those of its contributions", 0},
    {drop_all_contributions, "forward einsum of z has no contributions", 0},
    {change_bytes, "update of emb: its bytes are not those of its contributions", 0},
    {change_kernel, "forward einsum of z has not the numbers of its kernel", 0},
    {pay_for_work, "update of emb computes and has a payload", 0},
    {drop_message, "messages for 3 places", 0},
    {other_message, "message 1 is not the forward one", 0},
    {message_bytes, "message 1 has not the bytes of what is alive there", 0},
    {message_once, "message 1 is not sent in each microbatch", 0},
    {weight_in_two_groups, "weight emb is in weight groups", 0},
    {weight_in_no_group, "is in no weight group", 0},
    {weight_of_other_loop, "is in weight group", 0},
    {wrong_copies, "is not as often in its weight group as in its loops", 0},
    {add_in_forward, "adds to gradient demb and is not of backward", 0},
    {add_nothing, "in the training graph", 0},
    {partial_elsewhere, "is partial over dp, not tp", 0},
    {drop_reduction, "is partial over dp and reduced over ", 0},
    {reduce_twice, "is reduced twice over dp", 0},
    {reduce_too_much, "is partial over dp and reduced over (dp,tp)", 0},
    {reduce_each, "is in each microbatch", 0},
    {reduce_after_update, "update of emb comes before reduction of", 0},
    {norm_after_update, "update of emb comes before reduction of the norm", 0},
    {gather_before_update, "end's gather of emb comes before update of", 1},
    {scatter_late, "is scattered after it was reduced", 1},
    {reduce_whole, "is reduced whole over dp", 1},
    {drop_shared, "stages add up the gradient of emb 0 times", 0},
    {drop_update, "weight emb has 0 updates", 0},
    {forget_in_norm, "the gradient of emb is 0 times in the norm", 0},
    {result_first, "has a contribution out of place", 0},
    {drop_gather, "is gathered over  and updated in parts over dp", 1},
    {name_in_norm_reduce, "reduction of the norm of emb names emb, which has another gradient or none", 0},
    {drop_norm_reduce, "the norm is reduced 0 times", 0},
    {update_out_of_order, "out of the order of its weight group", 0},
    {update_other_group, "which is of another weight group", 0},
    {update_other_gradient, "which has another gradient or none", 0},
    {update_each, "does not wait for the last microbatch", 0},
    {update_copies, "does not count the copies of", 0},
    {end_of_none, "is among the tasks of the end", 0},
    {wrong_end_phase, "is of the wrong kind or phase", 0},
};

/* What the verifier says of a placement with this mistake, unless it is what it should say. */
static void check_mistake(etch_arena *arena, const mistake *planted, bool of_views, etch_buf *wrong)
{
    const victim x = victim_new(arena, planted->level);
    planted->make(&x);
    const char *found =
        of_views ? verify_chains(x.placed, NULL, MOST_STAGES, NULL) : verify_program(x.placed);
    if (!found || !strstr(found, planted->found))
        etch_buf_printf(wrong, "\n'%s' is found as '%s'", planted->found, found ? found : "nothing");
}

static void check_mistakes(etch_arena *arena, const mistake *list, size_t count, bool of_views)
{
    etch_buf wrong = {.arena = arena};
    for (size_t i = 0; i < count; i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        check_mistake(own, &list[i], of_views, &wrong);
        etch_arena_free(own);
    }
    ck_assert_msg(!wrong.length, "%s", wrong.text);
}

static void find_mistakes(etch_arena *arena)
{
    check_mistakes(arena, mistakes, sizeof mistakes / sizeof *mistakes, false);
}

START_TEST(every_planted_mistake_is_found)
{
    etch_with_arena(find_mistakes);
}
END_TEST

/* ---- views --------------------------------------------------------------------------------------------- */

static void skip_in_fold(const victim *x)
{
    etch_step_task *update = layer_update(x);
    SWAP(etch_step_contribution, update->contributions.at[0], update->contributions.at[1]);
}

static void same_cut_twice(const victim *x)
{
    x->program->messages.at[2]->cut = x->program->messages.at[1]->cut;
}

static void loop_in_a_block(const victim *x)
{
    x->loop->position = etch_position_at(1, ETCH_FIRST_OF);
}

/* The norm's weight, which the head reads. */
static void used_everywhere(const victim *x)
{
    for (uint32_t i = 0; i < x->placed->training->graph->weights.count; i++) {
        const etch_tensor *weight = x->placed->training->graph->weights.at[i];
        if (strcmp(weight->name, "gain") == 0)
            x->placed->stages->uses[weight->id].at[0].position = etch_position_at(1, ETCH_ALL_OF);
    }
}

static const mistake of_views[] = {
    {skip_in_fold, "a fold visits", 0},
    {same_cut_twice, "2 messages between 2 chunks", 0},
    {message_once, "message 1 (forward) is sent 1 times, not 2", 0},
    {loop_in_a_block, "stage 1 does not read weight g and updates it", 0},
    {make_in_all, "the stages do forward rms_norm of n (n) 6 times, the chain 2 times", 0},
    {other_use, "stage 1 reads weight emb and does not update it", 0},
    {used_everywhere, "stage 0 does not read weight gain and updates it", 0},
};

static void find_in_views(etch_arena *arena)
{
    check_mistakes(arena, of_views, sizeof of_views / sizeof *of_views, true);
}

START_TEST(every_mistake_of_views_is_found)
{
    etch_with_arena(find_in_views);
}
END_TEST

static void find_partial_sum(etch_arena *arena)
{
    const victim x = victim_new(arena, 0);
    ck_assert_ptr_null(verify_messages(x.placed));
    send_partial(&x);
    ck_assert_str_eq(verify_messages(x.placed), "the message at unit layer sends e as a partial sum over dp");
}

START_TEST(a_partial_sum_in_a_message_is_found)
{
    etch_with_arena(find_partial_sum);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("graph.verify");
    ETCH_ADD_TESTS(suite, every_planted_mistake_is_found, every_mistake_of_views_is_found,
                   a_partial_sum_in_a_message_is_found);
    return suite;
}
