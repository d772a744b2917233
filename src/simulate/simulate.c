/* A job on a machine becomes times. */
#include "simulate/simulate.h"

#include <string.h>

#include "simulate/brief_int.h"

/* ---- labels -------------------------------------------------------------------------------------------- */

static uint32_t label_of(etch_sim *sim, const char *text)
{
    for (uint32_t i = 0; i < sim->label_count; i++)
        if (strcmp(sim->labels[i], text) == 0)
            return i;
    sim->labels[sim->label_count] = text;
    return sim->label_count++;
}

/* The axes that stages lie on: "pp", "(a,b)". */
static const char *stage_label(const etch_sim *sim)
{
    const etch_job *job = sim->job;
    etch_buf text = {.arena = sim->results};
    if (job->stage_axis_count == 1)
        return job->mesh[job->stage_axes[0]].name;
    for (uint32_t i = 0; i < job->stage_axis_count; i++)
        etch_buf_printf(&text, "%s%s", i ? "," : "(", job->mesh[job->stage_axes[i]].name);
    etch_buf_puts(&text, ")");
    return text.text;
}

void etch_sim_label(etch_sim *sim)
{
    const uint32_t families = sim->job->family_count;
    enum { OF_STAGES_AND_HOST = 3 };
    sim->labels =
        ETCH_NEW_ARRAY(sim->results, families + OF_STAGES_AND_HOST + sim->job->mesh_count, const char *);
    sim->family_label = ETCH_NEW_ARRAY(sim->results, families, uint32_t);
    for (uint32_t f = 0; f < families; f++)
        sim->family_label[f] = label_of(sim, sim->job->families[f].label);
    if (sim->job->message_label)
        sim->message_label = label_of(sim, sim->job->message_label);
    else if (sim->job->stage_count > 1)
        sim->message_label = label_of(sim, stage_label(sim));
    sim->ring_label = ETCH_NEW_ARRAY(sim->results, sim->job->mesh_count, uint32_t);
    for (uint32_t i = 0; i < sim->job->program_count; i++)
        for (uint32_t k = 0; k < sim->job->programs[i].peer_count; k++) {
            const etch_peer peer = sim->job->programs[i].peers[k];
            if (peer.shift)
                sim->ring_label[peer.axis] = label_of(sim, sim->job->mesh[peer.axis].name);
        }
    if (sim->job->uses_host) {
        sim->load_label = label_of(sim, "from host");
        sim->store_label = label_of(sim, "to host");
    }
}

/* ---- the result ---------------------------------------------------------------------------------------- */

static bool set_bounds(etch_sim *sim, const etch_sim_run *run, etch_simulated *out)
{
    etch_sim_run loose;
    if (!etch_sim_go(sim, false, &loose))
        return false;
    const uint64_t busiest = etch_sim_busiest(sim, run);
    out->lower = loose.step > busiest ? loose.step : busiest;
    if (etch_sim_upper(sim, run, &out->upper))
        return true;
    etch_error(sim->diags, ETCH_E_MACHINE_UNFIT, (etch_span){0, 0},
               "the upper bound of the step is longer than can be counted in picoseconds");
    return false;
}

/* The run once for each thing that could take no time. */
static bool set_free(etch_sim *sim, etch_simulated *out)
{
    uint64_t *free = ETCH_NEW_ARRAY(sim->results, sim->label_count + 1, uint64_t);
    bool fine = true;
    for (sim->free = 0; fine && sim->free <= sim->label_count; sim->free++) {
        etch_sim_run run;
        fine = etch_sim_go(sim, true, &run);
        free[sim->free] = run.step;
    }
    sim->free = UINT32_MAX;
    out->free = free;
    return fine;
}

static bool simulate(etch_sim *sim, etch_simulated *out)
{
    etch_sim_run run;
    etch_sim_label(sim);
    if (!etch_sim_place(sim, out) || !etch_sim_classes(sim) || !etch_sim_go(sim, true, &run) ||
        !set_bounds(sim, &run, out))
        return false;
    etch_simulated_class *classes = ETCH_NEW_ARRAY(sim->results, sim->class_count, etch_simulated_class);
    for (uint32_t c = 0; c < sim->class_count; c++)
        etch_sim_account(sim, &run, c, &classes[c]);
    if (sim->options->times) {
        etch_sim_critical(sim, &run, out);
        if (!set_free(sim, out))
            return false;
    }
    out->step = run.step;
    out->error = run.error;
    out->labels = sim->labels;
    out->label_count = sim->label_count;
    out->family_label = sim->family_label;
    out->message_label = sim->message_label;
    out->ring_label = sim->ring_label;
    out->load_label = sim->load_label;
    out->store_label = sim->store_label;
    out->classes = classes;
    out->class_count = sim->class_count;
    out->class_of = sim->class_of;
    return true;
}

static etch_sim new_sim(etch_arena *scratch, etch_arena *results, etch_diags *diags, const etch_job *job,
                        const etch_simulate_options *options)
{
    etch_sim sim = {.arena = scratch,
                    .results = results,
                    .diags = diags,
                    .job = job,
                    .options = options,
                    .free = UINT32_MAX,
                    .cluster = options->cluster};
    sim.spreads.arena = sim.timed.arena = scratch;
    return sim;
}

etch_status etch_simulate(etch_arena *arena, etch_diags *diags, const etch_job *job,
                          const etch_simulate_options *options, const etch_simulated **out)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(arena));
    etch_simulated *result = ETCH_NEW(arena, etch_simulated);
    etch_sim sim = new_sim(scratch, arena, diags, job, options);
    const bool fine = simulate(&sim, result);
    const bool refused = sim.class_count > ETCH_MOST_CLASSES;
    etch_arena_free(scratch);
    *out = fine ? result : NULL;
    return fine ? ETCH_OK : refused ? ETCH_ELIMIT : ETCH_EINPUT;
}

bool etch_simulate_brief(etch_arena *arena, const etch_job *job, const etch_simulate_options *options,
                         etch_step_time *out)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(arena));
    etch_simulated *placed = ETCH_NEW(scratch, etch_simulated);
    etch_sim sim = new_sim(scratch, scratch, etch_diags_new(scratch), job, options);
    const bool may = job->pipe && options->slow.digits == 0 &&
                     options->cluster->device->slowdown.digits == 0 &&
                     !options->cluster->eager; /* what they change is no matter of slots */
    etch_sim_label(&sim);
    const bool fine =
        may && etch_sim_place(&sim, placed) && etch_sim_classes(&sim) && etch_sim_brief(&sim, out);
    out->uneven = placed->uneven;
    etch_arena_free(scratch);
    return fine;
}
