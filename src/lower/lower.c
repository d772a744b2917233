/* The door: one binding of a placed graph becomes a job. */
#include "lower/lower_int.h"

#include <string.h>

typedef struct lowering {
    etch_arena *arena;
    const etch_lower_options *options;
    etch_job *job;
    /* of the job */
    etch_class_program *programs;
    etch_stage_total *totals;
    /* of one rank, at most, once they are counted */
    uint64_t nodes;
    etch_total all_cells;
} lowering;

static const char *copy_name(etch_arena *arena, const char *name)
{
    return name ? etch_copy_text(arena, name, strlen(name)) : NULL;
}

static void set_mesh(const lowering *l, const etch_extent *extent)
{
    const etch_plan *plan = l->options->values.placed->plan;
    etch_mesh_axis *mesh = ETCH_NEW_ARRAY(l->arena, extent->axis_count, etch_mesh_axis);
    uint32_t place_of[ETCH_MAX_AXES] = {0};
    for (uint32_t i = 0; i < extent->axis_count; i++) {
        const uint32_t axis = etch_plan_axis_at(plan, i);
        mesh[i] = (etch_mesh_axis){copy_name(l->arena, plan->mesh.at[axis].name), extent->axis_size[axis]};
        place_of[axis] = i;
    }
    l->job->mesh = mesh;
    l->job->mesh_count = extent->axis_count;
    l->job->rank_count = extent->rank_count;
    if (extent->stage_count == 1)
        return;
    uint32_t *axes = ETCH_NEW_ARRAY(l->arena, plan->stage->axis_count, uint32_t);
    for (uint32_t i = 0; i < plan->stage->axis_count; i++)
        axes[i] = place_of[plan->stage->axes[i]];
    l->job->stage_axes = axes;
    l->job->stage_axis_count = plan->stage->axis_count;
}

typedef struct sets {
    etch_arena *arena;
    ETCH_VEC(etch_group_set) groups;
    uint16_t *family_of;
    uint32_t next;
} sets;

static void collect_set(void *data, const etch_task_run *run)
{
    sets *s = data;
    if (run->task->type == ETCH_NODE_COLL)
        ETCH_PUSH(s->arena, &s->groups, run->task->group);
}

static void set_family(void *data, const etch_task_run *run)
{
    sets *s = data;
    if (run->task->type == ETCH_NODE_COLL)
        run->task->family = s->family_of[s->next++];
}

static void set_families(const lowering *l, etch_arena *scratch, const etch_outline *outline)
{
    sets s = {.arena = scratch};
    etch_outline_each(outline, ETCH_EVERY_STAGE, collect_set, &s);
    s.family_of = ETCH_NEW_ARRAY(scratch, s.groups.count, uint16_t);
    etch_families_make(l->arena, l->options->values.placed, s.groups.at, s.groups.count, l->job, s.family_of);
    etch_outline_each(outline, ETCH_EVERY_STAGE, set_family, &s);
}

/* Only what the stage has: collectives in the order of the tallies, then messages. */
static void set_comm(const lowering *l, const etch_outline *outline, const etch_sums *sums,
                     etch_stage_total *total)
{
    const etch_placed *placed = l->options->values.placed;
    uint32_t tallies = outline->tallies.count, stage_axes = 0;
    etch_comm_total *rows = ETCH_NEW_ARRAY(l->arena, tallies + 2, etch_comm_total);
    for (uint32_t i = 0; i < l->job->stage_axis_count; i++)
        stage_axes |= UINT32_C(1) << placed->plan->stage->axes[i];
    for (uint32_t i = 0; i < tallies + 2; i++) {
        const bool message = i >= tallies;
        const uint32_t axes = message ? stage_axes : outline->tallies.at[i].axes;
        etch_comm_total row = i < tallies ? sums->comm[i] : i == tallies ? sums->send : sums->recv;
        if (row.count == 0)
            continue;
        row.type = i < tallies ? ETCH_NODE_COLL : i == tallies ? ETCH_NODE_SEND : ETCH_NODE_RECV;
        row.collective = message ? 0 : outline->tallies.at[i].collective;
        row.axes = copy_name(l->arena, etch_axes_label(placed, axes));
        rows[total->comm_count++] = row;
    }
    total->comm = rows;
}

/* All ranks of a class run the same program. */
static void set_class(const lowering *l, const etch_outline *outline, uint32_t stage, uint32_t work_share)
{
    etch_job *job = l->job;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(l->arena));
    etch_sums sums = {.comm = ETCH_NEW_ARRAY(scratch, outline->tallies.count, etch_comm_total)};
    etch_class_program *program = &l->programs[stage * job->work_share_count + work_share];
    etch_stage_total *total = &l->totals[stage * job->work_share_count + work_share];
    etch_unroll(l->arena, outline, stage, &outline->sizes[stage], program, &sums);
    *total = (etch_stage_total){
        .ranks = job->rank_count / job->program_count,
        .stage = stage,
        .work_share = work_share,
        .nodes = program->node_count,
        .flop = sums.flop,
        .padded_flop = sums.padded_flop,
        .bytes = sums.bytes,
        .padded_bytes = sums.padded_bytes,
    };
    set_comm(l, outline, &sums, total);
    etch_arena_free(scratch);
}

/* Which part of uneven work a rank has. */
static uint32_t part_of(const lowering *l, uint32_t rank)
{
    const etch_job *job = l->job;
    const etch_plan *plan = l->options->values.placed->plan;
    uint32_t work_share = 0, stride = job->rank_count;
    for (uint32_t i = 0; i < job->mesh_count; i++) {
        stride /= job->mesh[i].size;
        if (l->options->values.placed->uneven_axes >> etch_plan_axis_at(plan, i) & 1)
            work_share = work_share * job->mesh[i].size + rank / stride % job->mesh[i].size;
    }
    return work_share;
}

static void set_classes(lowering *l, const etch_outline *outline, const etch_extent *extent)
{
    etch_job *job = l->job;
    job->stage_count = outline->model_chunks.stage_count;
    job->work_share_count = 1;
    for (uint32_t a = 0; a < extent->axis_count; a++)
        job->work_share_count *= l->options->values.placed->uneven_axes >> a & 1 ? extent->axis_size[a] : 1;
    job->program_count = job->stage_count * job->work_share_count;
    job->programs = l->programs = ETCH_NEW_ARRAY(l->arena, job->program_count, etch_class_program);
    job->stages = l->totals = ETCH_NEW_ARRAY(l->arena, job->program_count, etch_stage_total);
    uint32_t *class_of = ETCH_NEW_ARRAY(l->arena, job->rank_count, uint32_t);
    for (uint32_t rank = 0; rank < job->rank_count; rank++)
        class_of[rank] = etch_stage_of(job, rank) * job->work_share_count + part_of(l, rank);
    job->class_of = class_of;
}

/* The values, and those of the coordinates of a part: what all ranks of it have in common. */
static etch_values values_of(const lowering *l, etch_arena *scratch, uint32_t work_share)
{
    const etch_placed *placed = l->options->values.placed;
    etch_sym *sym = placed->training->graph->sym;
    etch_values values = l->options->values;
    etch_given *given = ETCH_NEW_ARRAY(scratch, values.given_count + placed->plan->mesh.count, etch_given);
    for (uint32_t i = 0; i < values.given_count; i++)
        given[i] = values.given[i];
    for (uint32_t a = 0; a < placed->plan->mesh.count; a++)
        if (placed->uneven_axes >> a & 1)
            given[values.given_count++] = (etch_given){
                .var = etch_coordinate(sym, a),
                .name = placed->plan->mesh.at[a].name,
                .value = etch_at_work_share(placed, etch_coordinate(sym, a), etch_int(sym, work_share)),
                .from = "part",
            };
    values.given = given;
    return values;
}

/* Microbatches under way on a stage, at most. */
static uint64_t in_flight(const lowering *l, const etch_outline *outline, uint32_t stage)
{
    const etch_model_chunks *model_chunks = &outline->model_chunks;
    etch_sym *sym = l->options->values.placed->training->graph->sym;
    const etch_pipe_sizes sizes = {etch_int(sym, model_chunks->stage_count),
                                   etch_int(sym, model_chunks->chunk_count),
                                   etch_int(sym, (int64_t)outline->micro)};
    uint64_t count = 1;
    if (outline->backward)
        etch_lower_require(
            l->arena, etch_to_u64(etch_in_flight_formula(sym, model_chunks->schedule, &sizes,
                                                         ETCH_HOLD_FORWARD_TO_WEIGHTS, etch_int(sym, stage)),
                                  &count));
    return count;
}

/* Every microbatch under way on a stage has its own registers of the whole chain. */
static etch_status check_cells(lowering *l, const etch_outline *outline)
{
    for (uint32_t stage = 0; stage < outline->model_chunks.stage_count; stage++)
        l->all_cells += (etch_total)outline->register_count * in_flight(l, outline, stage);
    if (l->all_cells <= ETCH_MOST_JOB_CELLS)
        return ETCH_OK;
    etch_diag *diag = etch_error(
        l->options->values.placed->diags, ETCH_E_TOO_MANY_NODES, (etch_span){0, 0},
        "the programs of %u stages have %llu values of microbatches under way, and a job has at most %u",
        (unsigned)outline->model_chunks.stage_count, (unsigned long long)l->all_cells,
        (unsigned)ETCH_MOST_JOB_CELLS);
    etch_help(diag, "have fewer stages or microbatches: the pattern is the same");
    return ETCH_ELIMIT;
}

/* The programs of all stages for one part. The first part says all that they have in common. */
static etch_status lower_work_share(lowering *l, etch_arena *scratch, uint32_t work_share)
{
    etch_bound *bound;
    etch_extent extent = {0};
    etch_outline outline = {
        .naming = l->options->naming, .annotations = l->options->annotations, .texts = l->arena};
    const etch_values values = values_of(l, scratch, work_share);
    etch_status status = etch_bind(scratch, &values, &bound, &extent);
    if (status != ETCH_OK)
        return status;
    status = etch_outline_make(scratch, values.placed, bound, &extent, &outline);
    if (status == ETCH_OK)
        status = check_cells(l, &outline);
    if (status != ETCH_OK)
        return status;
    for (uint32_t stage = 0; stage < outline.model_chunks.stage_count; stage++)
        if (outline.sizes[stage].nodes > l->nodes)
            l->nodes = outline.sizes[stage].nodes;
    if (work_share == 0) {
        set_mesh(l, &extent);
        set_classes(l, &outline, &extent);
        l->job->bindings = etch_bound_list(bound, l->arena);
        l->job->binding_count = l->options->values.given_count;
    }
    set_families(l, scratch, &outline);
    for (uint32_t stage = 0; stage < l->job->stage_count; stage++)
        set_class(l, &outline, stage, work_share);
    return ETCH_OK;
}

static etch_status lower(lowering *l)
{
    const etch_placed *placed = l->options->values.placed;
    etch_job *job = l->job;
    etch_status status = ETCH_OK;
    job->work_share_count = 1;
    for (uint32_t work_share = 0; status == ETCH_OK && work_share < job->work_share_count; work_share++) {
        etch_arena *scratch = etch_arena_new(etch_arena_mem(l->arena));
        status = lower_work_share(l, scratch, work_share);
        etch_arena_free(scratch);
    }
    if (status != ETCH_OK)
        return status;
    etch_families_number(l->arena, job);
    job->model = copy_name(l->arena, placed->training->graph->model);
    job->plan = copy_name(l->arena, placed->plan->name);
    job->config = copy_name(l->arena, l->options->config);
    job->run = copy_name(l->arena, l->options->run);
    return ETCH_OK;
}

static etch_status lower_guarded(void *data)
{
    return lower(data);
}

etch_status etch_lower(etch_arena *arena, const etch_lower_options *options, const etch_job **job)
{
    lowering l = {.arena = arena, .options = options, .job = ETCH_NEW(arena, etch_job)};
    uint32_t errors = etch_error_count(options->values.placed->diags);
    etch_status status = etch_guard(etch_arena_mem(arena), lower_guarded, &l);
    if (status == ETCH_OK)
        *job = l.job;
    if (status == ETCH_ELIMIT && etch_error_count(options->values.placed->diags) == errors) {
        etch_diag *diag =
            etch_error(options->values.placed->diags, ETCH_E_PROGRAM_MEMORY, (etch_span){0, 0},
                       "lowering passed a limit of the session: memory, or the size of an expression");
        if (l.nodes > 0)
            etch_note(diag, (etch_span){0, 0}, "a rank would run %llu nodes", (unsigned long long)l.nodes);
        etch_help(diag, "fewer microbatches make fewer nodes");
    }
    return status;
}
