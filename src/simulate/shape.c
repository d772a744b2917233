/* What steps of one shape have in common, and where the groups of one of them lie. */
#include "simulate/shape_int.h"

#include <string.h>

static etch_sim new_sim(etch_arena *arena, const etch_job *job, const etch_simulate_options *options)
{
    etch_sim sim = {.arena = arena,
                    .results = arena,
                    .diags = etch_diags_new(arena),
                    .job = job,
                    .options = options,
                    .free = UINT32_MAX,
                    .cluster = options->cluster};
    sim.spreads.arena = sim.timed.arena = arena;
    etch_sim_label(&sim);
    return sim;
}

/* Are the ranks of each program one class? */
static bool places(etch_sim *sim)
{
    etch_simulated unused = {0};
    bool fine =
        etch_sim_place(sim, &unused) && etch_sim_classes(sim) && sim->class_count == sim->job->program_count;
    for (uint32_t c = 0; fine && c < sim->class_count; c++)
        fine = sim->job->class_of[sim->first_rank[c]] == c;
    return fine;
}

/* ---- the shape ----------------------------------------------------------------------------------------- */

/* What slots are described by, beside tasks. */
static etch_sim_program prepare(etch_arena *arena, const etch_class_program *of)
{
    etch_sim_program p = {.of = of, .detail = ETCH_NEW_ARRAY(arena, of->node_count, uint32_t)};
    uint32_t first = 0;
    while (first < of->node_count &&
           (of->nodes[first].type != ETCH_NODE_COMP || of->nodes[first].dep_count > 0))
        first++;
    if (first < of->node_count)
        p.detail[first] = true;
    return p;
}

static bool fill(etch_step_shape *shape, etch_sim *sim)
{
    const etch_job *job = sim->job;
    etch_tape_maker maker = {
        .sim = sim, .shape = shape, .known = {.arena = sim->arena}, .known_sums = {.arena = sim->arena}};
    etch_sim_program *prepared = ETCH_NEW_ARRAY(sim->arena, job->program_count, etch_sim_program);
    shape->programs = ETCH_NEW_ARRAY(shape->arena, job->program_count, etch_brief_program);
    shape->contents = ETCH_NEW_ARRAY(shape->arena, job->program_count, etch_shape_content *);
    for (uint32_t c = 0; c < job->program_count; c++) {
        etch_brief_program *p = &shape->programs[c];
        prepared[c] = prepare(sim->arena, &job->programs[c]);
        if (!etch_brief_read(sim, &prepared[c], c, p))
            return false;
        shape->contents[c] = ETCH_NEW_ARRAY(shape->arena, p->contents.count, etch_shape_content);
        for (uint32_t i = 0; i < p->contents.count; i++)
            etch_tape_make(&maker, p, c, i, &shape->contents[c][i]);
    }
    return true;
}

/* The groups that classes are in, which have to be the same on any mesh. */
static void keep_groups(etch_step_shape *shape, const etch_sim *sim)
{
    const uint32_t count = sim->class_count * sim->job->family_count;
    etch_sim_group *groups = ETCH_NEW_ARRAY(shape->arena, sim->groups.count, etch_sim_group);
    uint32_t *groups_of = ETCH_NEW_ARRAY(shape->arena, count, uint32_t);
    for (uint32_t i = 0; i < sim->groups.count; i++) {
        const etch_sim_group *from = &sim->groups.at[i];
        uint32_t *classes = ETCH_NEW_ARRAY(shape->arena, from->class_count, uint32_t);
        memcpy(classes, from->classes, from->class_count * sizeof *classes);
        groups[i] = *from;
        groups[i].classes = classes;
    }
    for (uint32_t i = 0; i < count; i++)
        groups_of[i] = sim->groups_of[i];
    shape->groups = groups;
    shape->group_count = sim->groups.count;
    shape->groups_of = groups_of;
}

etch_step_shape *etch_step_shape_make(etch_arena *arena, const etch_job *job, const etch_step_form *form,
                                      const etch_cluster *cluster)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(arena));
    const etch_simulate_options options = {.cluster = cluster};
    etch_step_shape *shape = ETCH_NEW(arena, etch_step_shape);
    etch_sim sim = new_sim(scratch, job, &options);
    bool fine = job->pipe && !form->is_partial && places(&sim);
    sim.results = arena;
    if (fine) {
        *shape = (etch_step_shape){.arena = arena,
                                   .job = etch_job_without_nodes(arena, job),
                                   .form = form,
                                   .streams = etch_sim_streams(&sim)};
        keep_groups(shape, &sim);
        ETCH_PUSH(arena, &shape->cells, (etch_shape_cell){0}); /* the 0 of all paths */
        fine = fill(shape, &sim);
    }
    etch_arena_free(scratch);
    return fine ? shape : NULL;
}

/* ---- a mesh -------------------------------------------------------------------------------------------- */

static bool same_group(const etch_sim_group *a, const etch_sim_group *b)
{
    return a->family == b->family && a->class_count == b->class_count &&
           memcmp(a->classes, b->classes, a->class_count * sizeof *a->classes) == 0;
}

/* The groups of classes are those of the shape, and those of a family lie alike. */
static bool set_spreads(const etch_step_shape *shape, const etch_sim *sim, etch_arena *arena,
                        etch_shape_place *place)
{
    const uint32_t families = sim->job->family_count;
    uint32_t *sizes = ETCH_NEW_ARRAY(arena, families, uint32_t);
    place->spreads = ETCH_NEW_ARRAY(arena, families, const uint32_t *);
    for (uint32_t f = 0; f < families; f++)
        sizes[f] = sim->job->families[f].size;
    place->sizes = sizes;
    for (uint32_t i = 0; i < shape->job->program_count * families; i++) {
        const uint32_t own = sim->groups_of[i], known = shape->groups_of[i];
        if (own == UINT32_MAX || known == UINT32_MAX) {
            if (own != known)
                return false;
            continue;
        }
        const etch_sim_group *group = &sim->groups.at[own];
        uint32_t levels;
        const uint32_t *spread = etch_sim_list_at(&sim->spreads, group->spread, &levels);
        const uint32_t **at = &place->spreads[group->family];
        if (!same_group(group, &shape->groups[known]) ||
            (*at && memcmp(*at, spread, levels * sizeof *spread) != 0))
            return false;
        if (*at)
            continue;
        uint32_t *copy = ETCH_NEW_ARRAY(arena, levels, uint32_t);
        memcpy(copy, spread, levels * sizeof *spread);
        *at = copy;
    }
    return true;
}

static void set_levels(const etch_step_shape *shape, const etch_sim *sim, etch_arena *arena,
                       etch_shape_place *place)
{
    const uint32_t classes = shape->job->program_count;
    place->levels = ETCH_NEW_ARRAY(arena, (size_t)classes * classes, uint32_t);
    for (uint32_t c = 0; c < classes; c++) {
        const etch_class_program *program = &sim->job->programs[c];
        for (uint32_t i = 0; i < program->peer_count; i++) {
            const uint32_t rank = sim->first_rank[c],
                           other = etch_peer_rank(sim->job, program->peers[i], rank);
            place->levels[(size_t)c * classes + sim->class_of[other]] = etch_sim_path(sim, rank, other);
        }
    }
}

const etch_shape_place *etch_step_shape_place(etch_arena *arena, const etch_step_shape *shape,
                                              const etch_cluster *cluster, const uint32_t *sizes)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(arena));
    const etch_simulate_options options = {.cluster = cluster};
    const etch_job *job = etch_job_resize(scratch, shape->job, sizes);
    etch_shape_place *place = ETCH_NEW(arena, etch_shape_place);
    bool fine = job && cluster->device->slowdown.digits == 0 && !cluster->eager;
    place->cluster = cluster;
    if (fine) {
        etch_sim sim = new_sim(scratch, job, &options);
        fine = places(&sim) && set_spreads(shape, &sim, arena, place);
        if (fine)
            set_levels(shape, &sim, arena, place);
    }
    etch_arena_free(scratch);
    return fine ? place : NULL;
}
