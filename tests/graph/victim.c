/* A step program to make mistakes in. */
#include "victim.h"

#include <check.h>
#include <string.h>

static const etch_span nowhere = {0, 0};

/* ---- the placement that mistakes are made in ----------------------------------------------------------- */

/* The embedding is the head as well; x = x + mlp(x) in a loop of three iterations; clipped. */
static sample *model_of(etch_arena *arena)
{
    sample *x = sample_new(arena);
    etch_tensor *table = sample_weight(x, "emb", "vh");
    etch_tensor *e = sample_call(x, "e", "gather", table, sample_input(x, "ids", "bs", ETCH_I32), 'v', NULL);
    sample_tag(x, e, "embed");
    etch_tensor *out;
    etch_graph_begin(x->graph, "layer", etch_int(x->sym, 3), nowhere);
    etch_tensor *in = etch_graph_carry(x->graph, e, nowhere);
    etch_tensor *sum = sample_sum(x, "x", in, sample_mlp(x, in));
    etch_graph_end(x->graph, &sum, &out, 1);
    const uint32_t before = x->graph->op_count;
    etch_tensor *n = sample_call(x, "n", "rms_norm", out, sample_weight(x, "gain", "h"), 'h', NULL);
    etch_tensor *z = sample_product(x, "z", n, table, "bsv");
    sample_tag(x, z, "head");
    etch_graph_state(x->graph, z, before);
    etch_tensor *labels = sample_input(x, "labels", "bs", ETCH_I32);
    sample_tag(x, sample_call(x, "l", "cross_entropy", z, labels, 'v', NULL), "loss");
    sample_shard(x, "B", DP);
    sample_shard(x, "F", TP);
    x->train.clip = true;
    return x;
}

/* Units embed, layer 0 to 2, and head, over pp; `level`: of ZeRO, over dp. */
static etch_placed *place(etch_arena *arena, uint32_t level)
{
    static const char *const names[] = {"embed", "layer", "head"};
    sample *x = model_of(arena);
    etch_stage_line *line = ETCH_NEW(arena, etch_stage_line);
    ETCH_PUSH(arena, &x->plan.mesh, (etch_axis){.name = "pp", .size = etch_int(x->sym, 2)});
    *line = (etch_stage_line){.selectors = names,
                              .selector_spans = ETCH_NEW_ARRAY(arena, 3, etch_span),
                              .selector_count = 3,
                              .axes = {PP},
                              .axis_count = 1,
                              .schedule = etch_schedule_default(),
                              .chunks = etch_int(x->sym, 1)};
    x->plan.stage = line;
    if (level)
        x->plan.zero = (etch_zero){.level = level, .axes = 1u << DP};
    return sample_place(x);
}

/* ---- where mistakes are made --------------------------------------------------------------------------- */

static etch_step_repeat *loop_of(const etch_step_body *body)
{
    uint32_t i = 0;
    while (!body->items.at[i].repeat)
        i++;
    return body->items.at[i].repeat;
}

/* A placement, with a program of its own to make mistakes in. */
victim victim_new(etch_arena *arena, uint32_t level)
{
    etch_placed *placed = place(arena, level);
    etch_step_program *program = ETCH_NEW(arena, etch_step_program);
    *program = *placed->program;
    placed->program = program;
    return (victim){.placed = placed,
                    .program = program,
                    .forward = program->forward,
                    .loop = loop_of(program->forward),
                    .layer = loop_of(program->forward)->bodies.at[0],
                    .backward = program->backward,
                    .layer_back = loop_of(program->backward)->bodies.at[0],
                    .sym = placed->training->graph->sym};
}

/* The first task of the body whose anchor is of the row. */
etch_step_task *victim_task(const etch_step_body *body, const char *row)
{
    for (uint32_t i = 0; i < body->items.count; i++) {
        etch_step_task *task = body->items.at[i].task;
        if (task && strcmp(etch_row_name(task->kernel->anchor->row), row) == 0)
            return task;
    }
    ck_abort_msg("no task is of %s", row);
}

uint32_t victim_place(const victim *x, etch_end_role role, uint32_t number)
{
    for (uint32_t i = 0; i < x->program->end.count; i++)
        if (x->program->end.at[i]->end == role && number-- == 0)
            return i;
    ck_abort_msg("the end has too few tasks");
}

etch_step_task *victim_end(const victim *x, etch_end_role role)
{
    return x->program->end.at[victim_place(x, role, 0)];
}

etch_kernel *victim_kernel(const victim *x, const etch_step_body *body, const etch_step_task *task)
{
    etch_placed_region *region = body == x->forward ? x->placed->forward : x->loop->loop->bodies.at[0];
    for (uint32_t i = 0; i < region->kernels.count; i++)
        if (region->kernels.at[i] == task->kernel)
            return region->kernels.at[i];
    ck_abort_msg("the kernel is elsewhere");
}
