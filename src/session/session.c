/* Sessions: memory, guards, reading the spec, and reading it again. */
#include "session/api/api.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* bytes kept for the message that memory is out, and for rendering it */
    ROOM = 16 << 10,
    /* bytes that a session may hold after a release: thousands of answers, each of some kilobytes */
    BUDGET = 16 << 20
};

/* ---- opening ------------------------------------------------------------------------------------------- */

static etch_status make_reports(void *data)
{
    etch_session *session = data;
    etch_arena *reports = etch_arena_new(session->mem);
    session->diags = etch_diags_new(reports);
    session->reports = reports;
    return ETCH_OK;
}

static etch_status make_room(void *data)
{
    etch_session *session = data;
    session->room = etch_arena_new(session->mem);
    etch_alloc(session->room, ROOM);
    return ETCH_OK;
}

static const char *copy(etch_arena *arena, const char *text)
{
    return text ? etch_copy_text(arena, text, strlen(text)) : NULL;
}

static const char *const *copy_all(etch_arena *arena, const char *const *texts, size_t count)
{
    const char **own = ETCH_NEW_ARRAY(arena, count, const char *);
    for (size_t i = 0; i < count; i++)
        own[i] = copy(arena, texts[i]);
    return own;
}

static const etch_network_model *copy_models(etch_arena *arena, const etch_session_options *options)
{
    etch_network_model *models = ETCH_NEW_ARRAY(arena, options->model_count, etch_network_model);
    for (size_t i = 0; i < options->model_count; i++) {
        models[i] = options->models[i];
        models[i].name = copy(arena, models[i].name);
    }
    return models;
}

static void copy_options(etch_session *session, const etch_session_options *options)
{
    etch_arena *arena = session->kept;
    session->options = *options;
    session->options.spec = copy(arena, options->spec ? options->spec : options->text ? "spec" : NULL);
    session->options.text = copy(arena, options->text);
    session->options.folders = copy(arena, options->folders);
    session->options.machine_sets = copy_all(arena, options->machine_sets, options->machine_set_count);
    session->options.models = copy_models(arena, options);
    session->options.config = copy(arena, options->config);
    session->options.plan = copy(arena, options->plan);
    session->options.run = copy(arena, options->run);
    session->options.stage = copy(arena, options->stage);
    session->options.count = copy(arena, options->count);
    etch_session_divide_sets(arena, options, &session->options);
}

typedef struct opening {
    etch_session *session;
    const etch_session_options *options;
} opening;

static etch_status keep(void *data)
{
    const opening *o = data;
    etch_session *session = o->session;
    session->kept = etch_arena_new(session->mem);
    session->shelf = (etch_shelf){.arena = session->kept};
    copy_options(session, o->options);
    if (etch_granularity_name(o->options->granularity))
        return ETCH_OK;
    etch_error(session->diags, ETCH_E_OUTPUT_STYLE, (etch_span){0, 0}, "there is no granularity %d",
               (int)o->options->granularity);
    return ETCH_EINPUT;
}

/* Its arena outlives what fails later, which can then say which limit it met. */
static etch_status begin(void *data)
{
    etch_session *session = data;
    session->arena = etch_arena_new(session->mem);
    if (!etch_session_read_count(session, session->options.count, &session->count))
        return ETCH_EINPUT;
    session->sym = etch_sym_new(session->arena);
    return ETCH_OK;
}

static etch_status load(void *data)
{
    etch_session *session = data;
    const etch_session_options *o = &session->options;
    if (!o->spec)
        return ETCH_OK;
    const etch_status taken = etch_session_take_config(session);
    if (taken != ETCH_OK)
        return taken;
    const etch_spec_source source = {.path = o->spec,
                                     .text = o->text,
                                     .folders = o->folders,
                                     .machine_sets = o->machine_sets,
                                     .machine_set_count = o->machine_set_count,
                                     .plan_sets = o->plan_sets,
                                     .plan_set_count = o->plan_set_count,
                                     .natives = etch_session_natives(session, o->models, o->model_count),
                                     .native_count = o->model_count,
                                     .shelf = &session->shelf};
    etch_status status = ETCH_OK;
    session->spec = etch_spec_load(session->arena, session->sym, session->diags, &source, &status);
    return session->spec ? ETCH_OK : status;
}

static etch_status start(etch_session *session)
{
    session->loaded = false;
    session->broken = etch_session_run_plain(session, begin, session);
    session->loaded = session->broken == ETCH_OK;
    if (session->loaded)
        session->broken = etch_session_run_plain(session, load, session);
    return session->broken;
}

etch_status etch_session_open(const etch_session_options *options, etch_session **result)
{
    etch_session_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    etch_session *session = calloc(1, sizeof *session);
    *result = session;
    if (!session)
        return ETCH_ENOMEM;
    const size_t limit = own.memory_limit ? own.memory_limit : ETCH_MEMORY_LIMIT;
    session->mem = etch_mem_new(limit);
    if (!session->mem || etch_guard(session->mem, make_reports, session) != ETCH_OK ||
        etch_guard(session->mem, make_room, session) != ETCH_OK) {
        etch_session_close(session);
        *result = NULL;
        return ETCH_ENOMEM;
    }
    session->budget = limit / 2 < BUDGET ? limit / 2 : BUDGET;
    opening o = {session, &own};
    session->broken = unfit ? etch_session_refuse(session, unfit) : etch_session_run_plain(session, keep, &o);
    return session->broken == ETCH_OK ? start(session) : session->broken;
}

void etch_session_close(etch_session *session)
{
    if (!session)
        return;
    etch_mem_free(session->mem);
    free(session);
}

/* ---- releasing ----------------------------------------------------------------------------------------- */

/* Is it time to begin anew? An error may have been the last word on what is not asked for again: a plan that
 * cannot be placed. Otherwise it is for memory; where one answer alone takes more than the budget, that is
 * raised instead every other time, so that models are not compiled for each answer. */
static bool needs_renewal(etch_session *session)
{
    const size_t held = etch_mem_used(session->mem);
    if (etch_error_count(session->diags) > 0)
        return true;
    if (held <= session->budget)
        return false;
    if (!session->renewed || held > etch_mem_limit(session->mem) / 2)
        return true;
    session->budget = held * 2;
    return false;
}

/* Reads the spec again, as it was. What is kept for that is all that stays. */
static etch_status renew(etch_session *session)
{
    etch_arena *old = session->reports;
    if (etch_guard(session->mem, make_reports, session) != ETCH_OK)
        return ETCH_ENOMEM; /* nothing has ended */
    etch_arena_free(old);
    etch_arena_free(session->arena);
    session->arena = NULL;
    session->sym = NULL;
    session->spec = NULL;
    memset(&session->in_force, 0, sizeof session->in_force);
    memset(&session->compiled_models, 0, sizeof session->compiled_models);
    memset(&session->open_axes, 0, sizeof session->open_axes);
    memset(&session->open_stages, 0, sizeof session->open_stages);
    session->latest = NULL;
    return start(session);
}

etch_status etch_session_release(etch_session *session)
{
    if (session->broken != ETCH_OK)
        return session->broken;
    const bool renews = needs_renewal(session);
    const etch_status status = renews ? renew(session) : ETCH_OK;
    session->renewed = renews;
    if (status != ETCH_OK)
        return status;
    etch_diags_forget(session->diags); /* those of the spec have been read once */
    session->warned_of_hidden = false;
    return ETCH_OK;
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

void etch_session_cancel(etch_session *session)
{
    atomic_store(&session->cancel, 1);
}

const char *etch_status_text(etch_status status)
{
    switch (status) {
    case ETCH_OK:
        return "done";
    case ETCH_EINPUT:
        return "the input has errors";
    case ETCH_EUNKNOWN:
        return "it could not be decided";
    case ETCH_EIO:
        return "a file or folder could not be read or written";
    case ETCH_ENOMEM:
        return "memory is out";
    case ETCH_ELIMIT:
        return "a limit was reached: the input is too large";
    case ETCH_EINTERNAL:
        break;
    }
    return "a bug of etch: please report it with the input";
}

const char *etch_suggest(const char *text, const char *const *names, size_t count)
{
    return etch_nearest(text, names, count);
}
