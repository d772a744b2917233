/* The door: one binding of a placed graph becomes a job. */
#include "lower/lower_int.h"

#include <string.h>

void etch_lower_require(etch_arena *arena, bool holds)
{
    if (!holds)
        etch_trap(etch_arena_mem(arena), ETCH_EINTERNAL);
}

typedef struct lowering {
    etch_arena *arena;
    const etch_lower_options *options;
    etch_job *job;
    uint64_t nodes; /* of one rank, once they are counted */
} lowering;

static const char *copy_name(etch_arena *arena, const char *name)
{
    return name ? etch_copy_text(arena, name, strlen(name)) : NULL;
}

static void set_mesh(const lowering *l, const etch_extent *extent)
{
    const etch_plan *plan = l->options->placed->plan;
    etch_mesh_axis *mesh = ETCH_NEW_ARRAY(l->arena, extent->axis_count, etch_mesh_axis);
    for (uint32_t i = 0; i < extent->axis_count; i++)
        mesh[i] = (etch_mesh_axis){copy_name(l->arena, plan->mesh.at[i].name), extent->axis_size[i]};
    l->job->mesh = mesh;
    l->job->mesh_count = extent->axis_count;
    l->job->rank_count = extent->rank_count;
}

typedef struct sets {
    etch_arena *arena;
    ETCH_VEC(uint32_t) axes;
    uint16_t *family_of;
    uint32_t next;
} sets;

static void collect_set(void *data, etch_task *task)
{
    sets *s = data;
    if (task->type == ETCH_NODE_COLL)
        ETCH_PUSH(s->arena, &s->axes, task->axes);
}

static void set_family(void *data, etch_task *task)
{
    sets *s = data;
    if (task->type == ETCH_NODE_COLL)
        task->family = s->family_of[s->next++];
}

static void set_families(const lowering *l, etch_arena *scratch, const etch_outline *outline)
{
    sets s = {.arena = scratch};
    etch_outline_each(outline, collect_set, &s);
    s.family_of = ETCH_NEW_ARRAY(scratch, s.axes.count, uint16_t);
    etch_families_make(l->arena, l->options->placed, s.axes.at, s.axes.count, l->job, s.family_of);
    etch_outline_each(outline, set_family, &s);
}

/* All ranks of a stage run the same program. */
static void set_stage(const lowering *l, const etch_outline *outline)
{
    etch_job *job = l->job;
    etch_program *program = ETCH_NEW(l->arena, etch_program);
    etch_stage_total *stage = ETCH_NEW(l->arena, etch_stage_total);
    etch_sums sums = {.comm = ETCH_NEW_ARRAY(l->arena, outline->tallies.count, etch_comm_total)};
    etch_unroll(l->arena, outline, program, &sums);
    for (uint32_t i = 0; i < outline->tallies.count; i++) {
        sums.comm[i].collective = outline->tallies.at[i].collective;
        sums.comm[i].axes =
            copy_name(l->arena, etch_axes_label(l->options->placed, outline->tallies.at[i].axes));
    }
    *stage = (etch_stage_total){
        .ranks = job->rank_count,
        .nodes = program->node_count,
        .flop = sums.flop,
        .padded_flop = sums.padded_flop,
        .bytes = sums.bytes,
        .padded_bytes = sums.padded_bytes,
        .comm = sums.comm,
        .comm_count = outline->tallies.count,
    };
    job->programs = program;
    job->program_count = 1;
    job->class_of = ETCH_NEW_ARRAY(l->arena, job->rank_count, uint32_t);
    job->stages = stage;
    job->stage_count = 1;
}

static etch_status lower(lowering *l, etch_arena *scratch)
{
    const etch_placed *placed = l->options->placed;
    etch_bound *bound;
    etch_extent extent = {0};
    etch_outline outline;
    etch_status status = etch_bind(scratch, l->options, &bound, &extent);
    if (status != ETCH_OK)
        return status;
    status = etch_outline_make(scratch, placed, bound, &extent, &outline);
    if (status != ETCH_OK)
        return status;
    l->nodes = outline.node_count;
    set_mesh(l, &extent);
    set_families(l, scratch, &outline);
    set_stage(l, &outline);
    l->job->bindings = etch_bound_list(bound, l->arena);
    l->job->binding_count = l->options->given_count;
    l->job->model = copy_name(l->arena, placed->training->graph->model);
    l->job->plan = copy_name(l->arena, placed->plan->name);
    l->job->config = copy_name(l->arena, l->options->config);
    return ETCH_OK;
}

static etch_status lower_guarded(void *data)
{
    lowering *l = data;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(l->arena));
    etch_status status = lower(l, scratch);
    etch_arena_free(scratch);
    return status;
}

etch_status etch_lower(etch_arena *arena, const etch_lower_options *options, const etch_job **job)
{
    lowering l = {.arena = arena, .options = options, .job = ETCH_NEW(arena, etch_job)};
    uint32_t errors = etch_error_count(options->placed->diags);
    etch_status status = etch_guard(etch_arena_mem(arena), lower_guarded, &l);
    if (status == ETCH_OK)
        *job = l.job;
    if (status == ETCH_ELIMIT && etch_error_count(options->placed->diags) == errors) {
        etch_diag *diag =
            etch_error(options->placed->diags, ETCH_E_PROGRAM_MEMORY, (etch_span){0, 0},
                       "lowering passed a limit of the session: memory, or the size of an expression");
        if (l.nodes > 0)
            etch_note(diag, (etch_span){0, 0}, "each rank would run %llu nodes", (unsigned long long)l.nodes);
        etch_help(diag, "fewer microbatches make fewer nodes");
    }
    return status;
}
