/* What steps run on: clusters, each in a session of its own, which all threads read. */
#include "session/sweep/sweep_int.h"

#include <string.h>

/* Finds the cluster, under the guard of its session. */
typedef struct looking {
    etch_session *session;
    const char *stack;
    const etch_cluster *cluster;
} looking;

static etch_status look(void *data)
{
    looking *l = data;
    l->cluster = etch_session_cluster(l->session, l->session);
    if (l->cluster && l->stack && !etch_session_stack(l->session, l->cluster, l->stack))
        l->cluster = NULL;
    return l->cluster ? ETCH_OK : ETCH_EINPUT;
}

/* A message without places: they are of files that the spec does not have. */
static const etch_diag *without_places(etch_arena *arena, const etch_diag *diag)
{
    etch_diag *own = ETCH_NEW(arena, etch_diag);
    *own = *etch_sweep_copy(arena, diag);
    own->span = (etch_span){0, 0};
    own->notes = NULL;
    return own;
}

/* The spec of a machine; that of the sweep, where the machine has no name. */
static etch_session_options options_of(const etch_sweep *sweep, const etch_sweep_machine_of *machine)
{
    const etch_sweep_options *o = sweep->options;
    const etch_session_options *own = &sweep->session->options;
    etch_session_options options = {.struct_size = sizeof options, .machine_sets = machine->sets.at};
    options.machine_set_count = machine->sets.count;
    options.spec = machine->name ? machine->name : own->spec;
    options.text = machine->name ? NULL : own->text;
    options.folders = machine->name ? o->machine_folders : own->folders;
    for (size_t i = 0; machine->name && i < o->machine_count; i++)
        if (strcmp(o->machines[i].name, machine->name) == 0)
            options.spec = o->machines[i].spec;
    return options;
}

static void open_machine(etch_sweep *sweep, etch_sweep_machine_of *machine)
{
    const etch_session_options options = options_of(sweep, machine);
    etch_status status = etch_session_open(&options, &machine->session);
    looking l = {.session = machine->session, .stack = sweep->options->stack};
    if (status == ETCH_OK)
        status = etch_session_run(machine->session, look, &l);
    machine->cluster = l.cluster;
    const etch_diag *why =
        status != ETCH_OK && machine->session ? etch_sweep_first_error(machine->session) : NULL;
    machine->why = why ? without_places(sweep->arena, why) : NULL;
}

static bool same_texts(const etch_texts *a, const etch_texts *b)
{
    for (uint32_t i = 0; a->count == b->count && i < a->count; i++)
        if (strcmp(a->at[i], b->at[i]) != 0)
            return false;
    return a->count == b->count;
}

/* The numbers that are set for a frame: those of the request, then its own. */
static etch_texts sets_of(const etch_sweep *sweep, const etch_sweep_frame *frame)
{
    etch_texts sets = {0};
    for (size_t i = 0; i < sweep->options->machine_set_count; i++)
        ETCH_PUSH(sweep->arena, &sets, sweep->options->machine_sets[i]);
    for (uint32_t i = 0; i < sweep->request.choices.count; i++)
        if (sweep->request.choices.at[i].kind == ETCH_CHOICE_NUMBER)
            ETCH_PUSH(
                sweep->arena, &sets,
                etch_text(sweep->arena, "%s = %s", sweep->request.choices.at[i].name, frame->choices[i]));
    return sets;
}

bool etch_frame_find_machine(etch_sweep *sweep, etch_sweep_frame *frame)
{
    const bool named = sweep->request.choices.count > ETCH_CHOICE_MACHINE;
    const char *name = named ? frame->choices[ETCH_CHOICE_MACHINE] : NULL;
    const etch_texts sets = sets_of(sweep, frame);
    etch_sweep_machine_of *machine = NULL;
    frame->machine = sweep->machine;
    if (frame->machine || (!name && sets.count == 0))
        return true;
    for (uint32_t i = 0; i < sweep->machines.count && !machine; i++) {
        etch_sweep_machine_of *known = sweep->machines.at[i];
        if (known->name == name && same_texts(&known->sets, &sets))
            machine = known;
    }
    if (!machine) {
        machine = ETCH_NEW(sweep->arena, etch_sweep_machine_of);
        *machine = (etch_sweep_machine_of){.name = name, .sets = sets};
        ETCH_PUSH(sweep->arena, &sweep->machines, machine);
        open_machine(sweep, machine);
    }
    frame->machine = machine;
    if (!machine->cluster)
        etch_frame_refuse(sweep, frame, machine->why);
    return machine->cluster != NULL;
}

void etch_machines_close(etch_sweep *sweep)
{
    for (uint32_t i = 0; i < sweep->machines.count; i++)
        etch_session_close(sweep->machines.at[i]->session);
}
