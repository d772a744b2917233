/* The verifier: what holds of every task, and all checks in their order. */
#include "verify_int.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>

enum { MOST_TEXT = 600, MOST_STAGES = 4 };

bool verify_wrong(verifying *v, const char *format, ...)
{
    char text[MOST_TEXT];
    va_list arguments;
    if (v->wrong)
        return false;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    v->wrong = etch_text(v->placed->arena, "%s", text);
    return false;
}

static const char *const end_roles[] = {[ETCH_END_NONE] = "step",
                                        [ETCH_END_REDUCE] = "reduction",
                                        [ETCH_END_NORM] = "norm",
                                        [ETCH_END_REDUCE_SHARED] = "shared-weight reduction",
                                        [ETCH_END_UPDATE] = "update",
                                        [ETCH_END_NORM_REDUCE] = "reduction of the norm",
                                        [ETCH_END_PREPARE] = "first part of the update",
                                        [ETCH_END_SHARE_PREPARED] = "share of the update",
                                        [ETCH_END_REFINE] = "second part of the update",
                                        [ETCH_END_SHARE_REFINED] = "second share of the update",
                                        [ETCH_END_LOAD] = "load",
                                        [ETCH_END_STORE] = "store",
                                        [ETCH_END_GATHER] = "end's gather"};

const char *verify_task_name(const verifying *v, const etch_step_task *task)
{
    etch_arena *arena = v->scratch;
    const char *phase = etch_phase_name(task->phase);
    const etch_tensor *tensor = task->kernel ? task->kernel->anchor->outs[0]->tensor : NULL;
    if (task->kind == ETCH_TASK_MESSAGE)
        return etch_text(arena, "%s message", phase);
    if (!tensor && task->contributions.count > 0)
        tensor = task->contributions.at[0].tensor;
    const char *name = tensor ? tensor->name : "all weights";
    if (!task->kernel)
        return etch_text(arena, "%s of %s", end_roles[task->end], name);
    const char *row = etch_row_name(task->kernel->anchor->row);
    if (task->kind == ETCH_TASK_COLLECTIVE)
        return etch_text(arena, "%s %s of %s over %s", phase, row, name,
                         etch_axes_label(v->placed, task->axes));
    return etch_text(arena, "%s %s of %s", phase, row, name);
}

bool verify_same(const verifying *v, etch_expr a, etch_expr b)
{
    return a == b || (a && b && etch_is_zero(etch_sub(v->sym, a, b)));
}

uint32_t verify_mesh_axes(const verifying *v)
{
    return (1u << v->placed->plan->mesh.count) - 1;
}

/* ---- one task ------------------------------------------------------------------------------------------ */

/* What is wrong with the axes; NULL: nothing. */
static const char *wrong_axes(const verifying *v, const etch_step_task *task)
{
    const uint32_t mesh = verify_mesh_axes(v), stages = etch_stage_axes(v->placed);
    if (task->kind == ETCH_TASK_COMPUTE)
        return task->axes ? "computes over axes" : NULL;
    if (task->kind == ETCH_TASK_LOAD || task->kind == ETCH_TASK_STORE)
        return task->axes ? "is over axes" : NULL;
    if (task->axes == 0)
        return "is over no axes";
    if (task->axes & ~mesh)
        return "is over axes that the mesh lacks";
    if (task->kind == ETCH_TASK_MESSAGE || task->end == ETCH_END_REDUCE_SHARED)
        return task->axes == stages ? NULL : "is not over the axes of the stages";
    if (task->end == ETCH_END_NORM_REDUCE)
        return task->axes == mesh ? NULL : "is not over all axes";
    return task->axes & stages ? "is over an axis of the stages" : NULL;
}

static bool check_axes(verifying *v, const etch_step_task *task)
{
    const char *wrong = wrong_axes(v, task);
    return !wrong || verify_wrong(v, "%s %s", verify_task_name(v, task), wrong);
}

static bool check_move(verifying *v, const etch_step_task *task)
{
    const bool reduces = task->end == ETCH_END_REDUCE_SHARED || task->end == ETCH_END_NORM_REDUCE;
    bool fits = task->collective == ETCH_NO_COLLECTIVE;
    if (task->kind == ETCH_TASK_MESSAGE)
        fits = task->collective == ETCH_SEND;
    else if (task->kind == ETCH_TASK_COLLECTIVE && reduces)
        fits = task->collective == ETCH_ALL_REDUCE;
    else if (task->kind == ETCH_TASK_COLLECTIVE && task->end == ETCH_END_REDUCE)
        fits = task->collective == ETCH_ALL_REDUCE || task->collective == ETCH_REDUCE_SCATTER;
    else if (task->kind == ETCH_TASK_COLLECTIVE && task->end == ETCH_END_GATHER)
        fits = task->collective == ETCH_ALL_GATHER;
    else if (task->kind == ETCH_TASK_COLLECTIVE)
        fits = task->collective == ETCH_ALL_REDUCE || task->collective == ETCH_REDUCE_SCATTER ||
               task->collective == ETCH_ALL_GATHER || task->collective == ETCH_ALL_TO_ALL ||
               task->collective == ETCH_PERMUTE;
    return fits || verify_wrong(v, "%s: its collective is %s", verify_task_name(v, task),
                                etch_collective_name(task->collective));
}

/* How often one run of the task does what the contribution says: a task of all groups for each of them. */
static etch_expr times_in(const verifying *v, const etch_step_task *task, const etch_step_contribution *c)
{
    const etch_expr copies = c->copies ? c->copies : etch_int(v->sym, 1);
    const bool of_all = !task->group && c->group && c->group->body;
    return of_all ? etch_mul(v->sym, copies, c->group->body->count) : copies;
}

typedef ETCH_VEC(etch_expr) terms;

static void add_term(const verifying *v, terms *list, etch_expr often, etch_expr amount)
{
    if (amount)
        ETCH_PUSH(v->scratch, list, etch_mul(v->sym, often, amount));
}

static bool check_sums(verifying *v, const etch_step_task *task)
{
    terms flop = {0}, bytes = {0};
    for (uint32_t i = 0; i < task->contributions.count; i++) {
        const etch_step_contribution *c = &task->contributions.at[i];
        const etch_expr often = times_in(v, task, c);
        add_term(v, &flop, often, c->flop);
        add_term(v, &bytes, often, c->read);
        add_term(v, &bytes, often, c->written);
        add_term(v, &bytes, often, c->payload);
        add_term(v, &bytes, often, c->moved);
        if ((c->moved != NULL) != (task->kind == ETCH_TASK_LOAD || task->kind == ETCH_TASK_STORE))
            return verify_wrong(v, "%s %s", verify_task_name(v, task),
                                c->moved ? "moves bytes" : "moves nothing");
        if (c->payload && task->kind == ETCH_TASK_COMPUTE)
            return verify_wrong(v, "%s computes and has a payload", verify_task_name(v, task));
    }
    if (!verify_same(v, task->flop, etch_sum(v->sym, flop.count, flop.at)))
        return verify_wrong(v, "%s: its FLOP are not those of its contributions", verify_task_name(v, task));
    if (!verify_same(v, task->bytes, etch_sum(v->sym, bytes.count, bytes.at)))
        return verify_wrong(v, "%s: its bytes are not those of its contributions", verify_task_name(v, task));
    return true;
}

bool verify_task(verifying *v, const etch_step_task *task)
{
    if (task->contributions.count == 0)
        return verify_wrong(v, "%s has no contributions", verify_task_name(v, task));
    return check_axes(v, task) && check_move(v, task) && check_sums(v, task);
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static bool check_message(verifying *v, uint32_t i, etch_phase phase, const etch_cut *cut)
{
    const etch_step_task *task = v->program->messages.at[i];
    if (task->kind != ETCH_TASK_MESSAGE || task->phase != phase || task->cut != cut)
        return verify_wrong(v, "message %u is not the %s one of its place in the chain", (unsigned)i,
                            etch_phase_name(phase));
    if (task->when != ETCH_EACH_MICROBATCH)
        return verify_wrong(v, "message %u is not sent in each microbatch", (unsigned)i);
    terms bytes = {0};
    for (uint32_t k = 0; k < (phase == ETCH_FORWARD ? cut->forward.count : cut->backward.count); k++) {
        const etch_value *value = (phase == ETCH_FORWARD ? &cut->forward : &cut->backward)->at[k].value;
        if (etch_crossing_may_be_sent(&(phase == ETCH_FORWARD ? &cut->forward : &cut->backward)->at[k]))
            ETCH_PUSH(v->scratch, &bytes, etch_value_bytes(v->placed, value));
    }
    if (!verify_same(v, task->bytes, etch_sum(v->sym, bytes.count, bytes.at)))
        return verify_wrong(v, "message %u has not the bytes of what is alive there", (unsigned)i);
    return verify_task(v, task);
}

/* One for each place where the chain may be cut, in each direction that there is. */
static bool check_messages(verifying *v)
{
    const etch_stages *stages = v->placed->stages;
    const uint32_t cuts = stages ? stages->cuts.count : 0, directions = v->program->backward ? 2 : 1;
    if (v->program->messages.count != directions * cuts)
        return verify_wrong(v, "%u messages for %u places where the chain may be cut",
                            (unsigned)v->program->messages.count, (unsigned)cuts);
    for (uint32_t i = 0; i < directions * cuts; i++)
        if (!check_message(v, i, i < cuts ? ETCH_FORWARD : ETCH_BACKWARD, &stages->cuts.at[i % cuts]))
            return false;
    return true;
}

static const char *partial_sum(const etch_placed *placed, const etch_cut *cut, const etch_value *value)
{
    for (uint32_t a = 0; a < placed->plan->mesh.count; a++)
        if (etch_is_partial(value->place[a]))
            return etch_text(placed->arena, "the message at unit %s sends %s as a partial sum over %s",
                             placed->stages->segments.at[cut->segment].name, value->tensor->name,
                             placed->plan->mesh.at[a].name);
    return NULL;
}

const char *verify_messages(const etch_placed *placed)
{
    const char *wrong = NULL;
    for (uint32_t i = 0; placed->stages && i < placed->stages->cuts.count; i++) {
        const etch_cut *cut = &placed->stages->cuts.at[i];
        for (uint32_t k = 0; k < cut->forward.count && !wrong; k++)
            wrong = partial_sum(placed, cut, cut->forward.at[k].value);
        for (uint32_t k = 0; k < cut->backward.count && !wrong; k++)
            wrong = partial_sum(placed, cut, cut->backward.at[k].value);
    }
    return wrong;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

const char *verify_program(const etch_placed *placed)
{
    const etch_graph *graph = placed->training->graph;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    verifying v = {
        .placed = placed,
        .program = placed->program,
        .sym = graph->sym,
        .scratch = scratch,
        .partial = ETCH_NEW_ARRAY(scratch, graph->tensors.count, uint32_t),
        .adds = ETCH_NEW_ARRAY(scratch, graph->tensors.count, uint32_t),
    };
    if (!v.program || v.program->placed != placed)
        verify_wrong(&v, "the placement has no program of its own");
    else if (verify_bodies(&v) && check_messages(&v))
        verify_end(&v);
    etch_arena_free(scratch);
    return v.wrong;
}

static bool has_numbers(const etch_placed *placed)
{
    for (uint32_t i = 0; i < placed->stages->segments.count; i++)
        if (!etch_is_constant(placed->stages->segments.at[i].count))
            return false;
    for (uint32_t i = 0; i < placed->stages->line->count_count; i++)
        if (!etch_is_constant(placed->stages->line->counts[i]))
            return false;
    return etch_is_constant(placed->stages->line->chunks);
}

etch_placed *verified(etch_placed *placed)
{
    const char *wrong = placed ? verify_program(placed) : NULL;
    if (placed && !wrong)
        wrong = verify_messages(placed);
    ck_assert_msg(!wrong, "the step program is wrong: %s", wrong);
    if (placed && placed->stages && has_numbers(placed)) {
        wrong = verify_chains(placed, NULL, MOST_STAGES, NULL);
        ck_assert_msg(!wrong, "the views of stages are wrong: %s", wrong);
    }
    return placed;
}
