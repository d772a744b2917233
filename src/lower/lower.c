/* One binding of a placed graph becomes a job. */
#include "lower/lower_int.h"

#include <string.h>

typedef struct lowering {
    etch_arena *arena;
    const etch_lower_options *options;
    etch_job *job;
    /* of the job */
    etch_class_program *programs;
    etch_stage_total *totals;
    /* those of the job, where they are asked for */
    etch_workloads workloads;
    /* of one rank, at most, once they are counted */
    uint64_t nodes;
    etch_total all_cells;
} lowering;

static void set_mesh(const lowering *l, const etch_extent *extent)
{
    const etch_plan *plan = l->options->values.placed->plan;
    etch_mesh_axis *mesh = ETCH_NEW_ARRAY(l->arena, extent->axis_count, etch_mesh_axis);
    uint32_t place_of[ETCH_MAX_AXES] = {0};
    for (uint32_t i = 0; i < extent->axis_count; i++) {
        const uint32_t axis = etch_plan_axis_at(plan, i);
        mesh[i] =
            (etch_mesh_axis){etch_copy_string(l->arena, plan->mesh.at[axis].name), extent->axis_size[axis]};
        place_of[axis] = i;
    }
    l->job->mesh = mesh;
    l->job->mesh_count = extent->axis_count;
    l->job->rank_count = extent->rank_count;
    l->job->stage_axis_count = extent->pipe.stages > 1 ? plan->stage->axis_count : 0;
    uint32_t *axes = ETCH_NEW_ARRAY(l->arena, l->job->stage_axis_count, uint32_t);
    for (uint32_t i = 0; i < l->job->stage_axis_count; i++)
        axes[i] = place_of[plan->stage->axes[i]];
    l->job->stage_axes = axes;
}

/* Rows of sums of communication: collectives by kind, then family; messages between stages, and along rings,
 * by axis, what is sent and what is received of each. */
static uint32_t row_count(const etch_job *job)
{
    return ETCH_COMM_KINDS * job->family_count + 2 * (1 + job->mesh_count);
}

static const char *label_of_row(const lowering *l, uint32_t row)
{
    const etch_placed *placed = l->options->values.placed;
    const etch_stage_line *line = placed->plan->stage;
    const uint32_t families = l->job->family_count, collectives = ETCH_COMM_KINDS * families;
    if (row < collectives)
        return l->job->families[row % families].label;
    const uint32_t ring = (row - collectives) / 2;
    if (ring > 0)
        return etch_axes_label(placed, 1u << etch_plan_axis_at(placed->plan, ring - 1));
    return line ? etch_axes_label(placed, etch_axes_of(line->axes, line->axis_count)) : NULL;
}

/* Of the sums of communication those that the stage has. Groups of one set of axes may be of two families:
 * they are one row. */
static void set_comm(const lowering *l, const etch_comm_total *sums, etch_stage_total *total)
{
    const uint32_t families = l->job->family_count, collectives = ETCH_COMM_KINDS * families;
    etch_comm_total *rows = ETCH_NEW_ARRAY(l->arena, row_count(l->job), etch_comm_total), *last = NULL;
    for (uint32_t i = 0; i < row_count(l->job); i++) {
        const bool is_message = i >= collectives;
        etch_comm_total row = sums[i];
        row.type = !is_message                  ? ETCH_NODE_COLL
                   : (i - collectives) % 2 == 0 ? ETCH_NODE_SEND
                                                : ETCH_NODE_RECV;
        row.collective = (uint8_t)(is_message ? 0 : i / families);
        row.is_ring = is_message && i - collectives >= 2;
        if (row.count == 0)
            continue;
        row.axes = label_of_row(l, i);
        if (last && last->type == row.type && last->collective == row.collective &&
            last->is_ring == row.is_ring && strcmp(last->axes, row.axes) == 0) {
            last->bytes += row.bytes;
            last->padded += row.padded;
            last->count += row.count;
            continue;
        }
        last = &rows[total->comm_count++];
        *last = row;
        last->axes = etch_copy_string(l->arena, row.axes);
    }
    total->comm = rows;
}

/* All ranks of a class run the same program. */
static void set_class(const lowering *l, const etch_outline *outline, uint32_t stage, uint32_t work_share)
{
    etch_job *job = l->job;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(l->arena));
    etch_comm_total *comm = ETCH_NEW_ARRAY(scratch, row_count(job), etch_comm_total);
    etch_class_program *program = &l->programs[stage * job->work_share_count + work_share];
    etch_stage_total *total = &l->totals[stage * job->work_share_count + work_share];
    *total = (etch_stage_total){
        .ranks = job->rank_count / job->program_count, .stage = stage, .work_share = work_share};
    etch_unroll(l->arena, job, outline, program, total, comm);
    set_comm(l, comm, total);
    etch_arena_free(scratch);
}

/* Which part of uneven work a rank has. */
static uint32_t part_of(const lowering *l, uint32_t rank)
{
    const etch_job *job = l->job;
    const etch_plan *plan = l->options->values.placed->plan;
    uint32_t work_share = 0;
    for (uint32_t i = 0; i < job->mesh_count; i++)
        if (l->options->values.placed->uneven_axes >> etch_plan_axis_at(plan, i) & 1)
            work_share = work_share * job->mesh[i].size + etch_rank_coordinate(job, rank, i);
    return work_share;
}

static void set_classes(lowering *l, const etch_extent *extent)
{
    etch_job *job = l->job;
    job->stage_count = extent->pipe.stages;
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
static uint64_t in_flight(const lowering *l, const etch_pipe *pipe, uint32_t stage)
{
    etch_sym *sym = l->options->values.placed->training->graph->sym;
    const etch_pipe_sizes sizes = {etch_int(sym, pipe->stages), etch_int(sym, pipe->chunks),
                                   etch_int(sym, (int64_t)pipe->microbatches)};
    const etch_expr most = etch_in_flight_formula(sym, pipe->schedule, &sizes, ETCH_HOLD_FORWARD_TO_WEIGHTS,
                                                  etch_int(sym, stage));
    uint64_t count = 1;
    etch_lower_require(l->arena, !pipe->trains || etch_to_u64(most, &count));
    return count;
}

/* Every microbatch under way on a stage has its own registers of the whole chain. */
static etch_status check_cells(lowering *l, const etch_outline *outline)
{
    const uint32_t stages = outline->pipe->stages;
    for (uint32_t stage = 0; stage < stages; stage++)
        l->all_cells += (etch_total)outline->register_count * in_flight(l, outline->pipe, stage);
    if (l->all_cells <= ETCH_MOST_JOB_CELLS)
        return ETCH_OK;
    etch_diag *diag = etch_error(
        l->options->values.placed->diags, ETCH_E_TOO_MANY_NODES, (etch_span){0, 0},
        "the programs of %u stages have %llu values of microbatches under way, and a job has at most %u",
        (unsigned)stages, (unsigned long long)l->all_cells, (unsigned)ETCH_MOST_JOB_CELLS);
    etch_help(diag, "have fewer stages or microbatches: the pattern is the same");
    return ETCH_ELIMIT;
}

/* Pieces of a size run over microbatches, and do not repeat with them; tags of rings count messages. */
static bool repeats(const etch_outline *outline)
{
    bool fine = !etch_schedule_order(outline->pipe->schedule) && !outline->has_rings;
    for (uint32_t i = 0; i < outline->weight_tasks.count; i++)
        fine =
            fine && !(outline->weight_tasks.at[i]->stream && outline->weight_tasks.at[i]->every_microbatch);
    return fine;
}

/* Microbatches of a brief program: the stages are filled, some come and go, and they are emptied. Chunks are
 * gone through by as many microbatches as there are stages. */
static uint64_t brief_microbatches(const etch_pipe *pipe, uint32_t brief)
{
    enum { SOME = 6 };
    const uint64_t stages = pipe->stages;
    if (pipe->chunks == 1)
        return brief * stages + SOME;
    return (brief + UINT64_C(4)) * stages + pipe->microbatches % stages;
}

/* Those of a brief job; all that there are, where it would leave out few. */
static uint64_t microbatches_shown(const etch_pipe *pipe, uint32_t brief)
{
    const uint64_t some = brief_microbatches(pipe, brief);
    return some + some / 4 >= pipe->microbatches ? pipe->microbatches : some;
}

bool etch_form_shows(const etch_step_form *form, const etch_job *job, uint64_t microbatches)
{
    etch_pipe pipe = *job->pipe;
    pipe.microbatches = microbatches;
    return microbatches_shown(&pipe, form->brief) == job->microbatches;
}

/* Leaves out microbatches where that is asked for, and worth it. */
static etch_status shorten(lowering *l, etch_arena *scratch, etch_extent *extent, etch_outline *outline)
{
    etch_pipe brief = extent->pipe;
    if (l->options->brief == 0 || !repeats(outline))
        return ETCH_OK;
    brief.microbatches = microbatches_shown(&extent->pipe, l->options->brief);
    if ((brief.microbatches == extent->pipe.microbatches && !l->options->form) ||
        !etch_pipe_fits(etch_diags_new(scratch), (etch_span){0, 0}, &brief))
        return ETCH_OK;
    etch_pipe *pipe = ETCH_NEW(l->arena, etch_pipe);
    *pipe = extent->pipe;
    l->job->pipe = pipe;
    l->job->microbatches = brief.microbatches;
    extent->pipe = brief;
    outline->marks_slots = true;
    outline->naming = ETCH_NAMES_NONE;
    return etch_outline_shorten(scratch, l->options->values.placed, extent, outline);
}

/* What the form says beside tasks and guards. */
static void note_form(const lowering *l, const etch_extent *extent, const etch_outline *outline)
{
    const etch_placed *placed = l->options->values.placed;
    etch_step_form *form = outline->form;
    etch_form_extent(l->arena, placed, extent, form);
    form->brief = l->options->brief;
    form->is_partial = placed->uneven_axes || outline->norm || outline->streams.count > 0 ||
                       outline->has_rings || outline->moves_states;
}

/* The programs of all stages for one part. The first part says all that they have in common. */
static etch_status lower_work_share(lowering *l, etch_arena *scratch, uint32_t work_share)
{
    etch_bound *bound;
    etch_extent extent = {0};
    etch_outline outline = {.naming = l->options->naming,
                            .annotations = l->options->annotations,
                            .texts = l->arena,
                            .workloads = l->options->workloads ? &l->workloads : NULL,
                            .form = l->options->form};
    const etch_values values = values_of(l, scratch, work_share);
    etch_status status = etch_bind(scratch, &values, &bound, &extent);
    if (status != ETCH_OK)
        return status;
    status = etch_outline_make(scratch, values.placed, bound, &extent, &outline);
    if (status == ETCH_OK)
        status = check_cells(l, &outline);
    if (status == ETCH_OK && outline.form)
        note_form(l, &extent, &outline);
    if (status == ETCH_OK)
        status = shorten(l, scratch, &extent, &outline);
    if (status != ETCH_OK)
        return status;
    for (uint32_t stage = 0; stage < extent.pipe.stages; stage++)
        if (outline.sizes[stage].nodes > l->nodes)
            l->nodes = outline.sizes[stage].nodes;
    if (work_share == 0) {
        set_mesh(l, &extent);
        set_classes(l, &extent);
        l->job->bindings = etch_bound_list(bound, l->arena);
        l->job->binding_count = l->options->values.given_count;
    }
    l->job->uses_host = outline.moves_states;
    if (l->options->only_checks)
        return ETCH_OK;
    etch_families_make(l->arena, values.placed, &outline.collectives, l->job);
    for (uint32_t stage = 0; stage < l->job->stage_count; stage++)
        set_class(l, &outline, stage, work_share);
    return ETCH_OK;
}

static etch_status lower(void *data)
{
    lowering *l = data;
    const etch_placed *placed = l->options->values.placed;
    etch_job *job = l->job;
    etch_status status = ETCH_OK;
    job->work_share_count = 1;
    if (l->options->workloads)
        ETCH_PUSH(l->arena, &l->workloads, (etch_workload){.kind = ETCH_PRODUCT_NONE});
    for (uint32_t work_share = 0; status == ETCH_OK && work_share < job->work_share_count; work_share++) {
        etch_arena *scratch = etch_arena_new(etch_arena_mem(l->arena));
        status = lower_work_share(l, scratch, work_share);
        etch_arena_free(scratch);
    }
    if (status != ETCH_OK || l->options->only_checks)
        return status;
    etch_families_number(l->arena, job);
    job->workloads = l->workloads.at;
    job->workload_count = l->workloads.count;
    job->model = etch_copy_string(l->arena, placed->training->graph->model);
    job->plan = etch_copy_string(l->arena, placed->plan->name);
    job->config = etch_copy_string(l->arena, l->options->config);
    job->run = etch_copy_string(l->arena, l->options->run);
    return ETCH_OK;
}

etch_status etch_lower(etch_arena *arena, const etch_lower_options *options, const etch_job **job)
{
    lowering l = {.arena = arena, .options = options, .job = ETCH_NEW(arena, etch_job)};
    uint32_t errors = etch_error_count(options->values.placed->diags);
    etch_status status = etch_guard(etch_arena_mem(arena), lower, &l);
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
