/* What a job is made of: the formulas of its tasks, and the values that decide which nodes there are. All
 * that the outline reads of values is noted where it is read, so that with other values it would be made
 * alike as long as these stay as they are. */
#include "lower/lower_int.h"

#include <string.h>

/* ---- what is noted ------------------------------------------------------------------------------------- */

void etch_form_guard(etch_outliner *o, etch_expr expr, uint64_t value)
{
    etch_step_form *form = o->outline->form;
    if (etch_is_constant(expr))
        return;
    for (uint32_t i = 0; i < form->guards.count; i++)
        if (form->guards.at[i].expr == expr && form->guards.at[i].kind == ETCH_GUARD_EQUAL)
            return;
    ETCH_PUSH(o->outline->texts, &form->guards, ((etch_value_guard){expr, ETCH_GUARD_EQUAL, value}));
}

uint32_t etch_form_task(etch_outliner *o, uint8_t type, uint8_t collective, bool is_average, etch_expr flop,
                        etch_expr bytes)
{
    etch_step_form *form = o->outline->form;
    const etch_task_form task = {
        .type = type, .collective = collective, .flop = flop, .bytes = bytes, .is_average = is_average};
    ETCH_PUSH(o->outline->texts, &form->tasks, task);
    return form->tasks.count - 1;
}

void etch_form_workload(etch_outliner *o, const etch_task *task, const etch_kernel_product *product)
{
    etch_task_form *form = &o->outline->form->tasks.at[task->number];
    form->kind = (uint8_t)product->kind;
    form->backward = product->backward;
    form->dtype = etch_dtype_name(product->dtype);
    form->product_flop = product->flop;
    form->keys = product->keys;
    if (!product->m)
        return;
    form->m = product->m;
    form->n = product->n;
    form->k = product->k;
    form->batch = product->batch;
}

void etch_form_extent(etch_arena *arena, const etch_placed *placed, const etch_extent *whole,
                      etch_step_form *form)
{
    const etch_plan *plan = placed->plan;
    const etch_stage_line *line = plan->stage;
    uint32_t cut = 0;
    for (uint32_t i = 0; line && i < line->axis_count; i++)
        cut |= UINT32_C(1) << line->axes[i];
    etch_expr *mesh = ETCH_NEW_ARRAY(arena, whole->axis_count, etch_expr);
    for (uint32_t i = 0; i < whole->axis_count; i++) {
        const uint32_t axis = etch_plan_axis_at(plan, i), size = whole->axis_size[axis];
        mesh[i] = plan->mesh.at[axis].size;
        const bool equal = size == 1 || (cut >> axis & 1);
        ETCH_PUSH(
            arena, &form->guards,
            ((etch_value_guard){mesh[i], equal ? ETCH_GUARD_EQUAL : ETCH_GUARD_ABOVE, equal ? size : 1}));
    }
    form->mesh = mesh;
    form->microbatches = placed->training->train.micro;
    if (line && line->chunks)
        ETCH_PUSH(arena, &form->guards,
                  ((etch_value_guard){line->chunks, ETCH_GUARD_EQUAL, whole->pipe.chunks}));
}

/* ---- other values -------------------------------------------------------------------------------------- */

uint64_t etch_node_bytes(uint8_t type, uint64_t flop, uint64_t bytes, bool starts)
{
    const uint64_t least = etch_node_communicates(type) ? ETCH_LEAST_PAYLOAD : 1;
    const uint64_t own = bytes < least ? least : bytes;
    return starts && own < ETCH_LEAST_FIRST_BYTES && flop < ETCH_LEAST_FIRST_FLOP ? ETCH_LEAST_FIRST_BYTES
                                                                                  : own;
}

/* What messages of a stage come from, or go to, on the other mesh. */
static const etch_peer *move_peers(etch_arena *arena, const etch_job *from, const etch_job *to,
                                   uint32_t stage)
{
    const etch_class_program *program = &from->programs[stage];
    etch_peer *peers = ETCH_NEW_ARRAY(arena, program->peer_count, etch_peer);
    const uint32_t before = etch_stage_rank(from, stage);
    const int64_t after = etch_stage_rank(to, stage);
    for (uint32_t i = 0; i < program->peer_count; i++) {
        const uint32_t other = etch_stage_of(from, etch_peer_rank(from, program->peers[i], before));
        peers[i] = program->peers[i];
        if (!peers[i].shift)
            peers[i].offset = etch_stage_rank(to, other) - after;
    }
    return peers;
}

static bool set_sizes(etch_arena *arena, const etch_job *from, const uint32_t *sizes, etch_job *to)
{
    etch_mesh_axis *mesh = ETCH_NEW_ARRAY(arena, from->mesh_count, etch_mesh_axis);
    uint64_t ranks = 1;
    for (uint32_t i = 0; i < from->mesh_count; i++) {
        mesh[i] = (etch_mesh_axis){from->mesh[i].name, sizes[i]};
        ranks *= sizes[i];
        if (ranks > ETCH_MAX_RANKS)
            return false;
    }
    to->mesh = mesh;
    to->rank_count = (uint32_t)ranks;
    uint32_t *class_of = ETCH_NEW_ARRAY(arena, to->rank_count, uint32_t);
    for (uint32_t rank = 0; rank < to->rank_count; rank++)
        class_of[rank] = etch_stage_of(to, rank);
    to->class_of = class_of;
    return true;
}

const etch_job *etch_job_resize(etch_arena *arena, const etch_job *job, const uint32_t *sizes)
{
    etch_job *out = ETCH_NEW(arena, etch_job);
    *out = *job;
    if (!set_sizes(arena, job, sizes, out))
        return NULL;
    etch_class_program *programs = ETCH_NEW_ARRAY(arena, job->program_count, etch_class_program);
    for (uint32_t i = 0; i < job->program_count; i++) {
        programs[i] = job->programs[i];
        programs[i].peers = move_peers(arena, job, out, i);
    }
    out->programs = programs;
    etch_families_resize(arena, out);
    return out;
}

/* ---- what is left of a job ----------------------------------------------------------------------------- */

static const void *copy_of(etch_arena *arena, const void *from, size_t count, size_t size)
{
    void *copy = etch_alloc_array(arena, count, size);
    if (count > 0)
        memcpy(copy, from, count * size);
    return copy;
}

const etch_job *etch_job_without_nodes(etch_arena *arena, const etch_job *job)
{
    etch_job *out = ETCH_NEW(arena, etch_job);
    etch_class_program *programs = ETCH_NEW_ARRAY(arena, job->program_count, etch_class_program);
    etch_group_family *families = ETCH_NEW_ARRAY(arena, job->family_count, etch_group_family);
    etch_mesh_axis *mesh = ETCH_NEW_ARRAY(arena, job->mesh_count, etch_mesh_axis);
    for (uint32_t i = 0; i < job->program_count; i++)
        programs[i] = (etch_class_program){
            .peers = copy_of(arena, job->programs[i].peers, job->programs[i].peer_count, sizeof(etch_peer)),
            .peer_count = job->programs[i].peer_count};
    for (uint32_t i = 0; i < job->family_count; i++) {
        const etch_group_family *from = &job->families[i];
        families[i] = *from;
        families[i].label = etch_copy_string(arena, from->label);
        families[i].stages =
            from->stages ? copy_of(arena, from->stages, from->stage_count, sizeof(uint32_t)) : NULL;
    }
    for (uint32_t i = 0; i < job->mesh_count; i++)
        mesh[i] = (etch_mesh_axis){etch_copy_string(arena, job->mesh[i].name), job->mesh[i].size};
    *out = (etch_job){.rank_count = job->rank_count,
                      .mesh = mesh,
                      .mesh_count = job->mesh_count,
                      .stage_axes = copy_of(arena, job->stage_axes, job->stage_axis_count, sizeof(uint32_t)),
                      .stage_axis_count = job->stage_axis_count,
                      .programs = programs,
                      .program_count = job->program_count,
                      .class_of = copy_of(arena, job->class_of, job->rank_count, sizeof(uint32_t)),
                      .families = families,
                      .family_count = job->family_count,
                      .stage_count = job->stage_count,
                      .work_share_count = job->work_share_count,
                      .uses_host = job->uses_host,
                      .pipe = job->pipe ? copy_of(arena, job->pipe, 1, sizeof *job->pipe) : NULL,
                      .microbatches = job->microbatches};
    return out;
}
