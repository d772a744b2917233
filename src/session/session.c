/* Sessions: memory, guards, reading the spec. */
#define _POSIX_C_SOURCE 200809L

#include "session/api/api.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROOM = 16 << 10 }; /* bytes kept for the message that memory is out, and for rendering it */

static etch_status make_reports(void *data)
{
    etch_session *session = data;
    session->reports = etch_arena_new(session->mem);
    session->diags = etch_diags_new(session->reports);
    session->room = etch_arena_new(session->mem);
    etch_alloc(session->room, ROOM);
    return ETCH_OK;
}

static const char *copy(etch_arena *arena, const char *text)
{
    return text ? etch_copy_text(arena, text, strlen(text)) : NULL;
}

static void copy_options(etch_session *session, const etch_session_options *options)
{
    etch_arena *arena = session->arena;
    const char **sets = ETCH_NEW_ARRAY(arena, options->set_count, const char *);
    for (size_t i = 0; i < options->set_count; i++)
        sets[i] = copy(arena, options->sets[i]);
    session->options = (etch_session_options){.spec = copy(arena, options->spec   ? options->spec
                                                                  : options->text ? "spec"
                                                                                  : NULL),
                                              .config = copy(arena, options->config),
                                              .plan = copy(arena, options->plan),
                                              .run = copy(arena, options->run),
                                              .stage = copy(arena, options->stage),
                                              .granularity = copy(arena, options->granularity),
                                              .count = copy(arena, options->count),
                                              .sets = sets,
                                              .set_count = options->set_count,
                                              .defaults = options->defaults};
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

const char *etch_granularity_at(size_t i)
{
    return i < ETCH_GRANULARITY_COUNT ? etch_granularity_name((etch_granularity)i) : NULL;
}

/* Reads the granularity of the options. False after a reported error. */
static bool set_granularity(etch_session *session)
{
    const char *wanted = session->options.granularity;
    size_t i = 0;
    while (wanted && etch_granularity_at(i) && strcmp(etch_granularity_at(i), wanted) != 0)
        i++;
    if (i < ETCH_GRANULARITY_COUNT) {
        session->granularity = (etch_granularity)i;
        return true;
    }
    etch_error(session->diags, ETCH_E_OUTPUT_STYLE, (etch_span){0, 0}, "there is no granularity '%.80s'",
               wanted);
    return false;
}

typedef struct opening {
    etch_session *session;
    const etch_session_options *options;
} opening;

/* Its arena outlives what fails later, which can then say which limit it met. */
static etch_status begin(void *data)
{
    const opening *o = data;
    etch_session *session = o->session;
    session->arena = etch_arena_new(session->mem);
    copy_options(session, o->options);
    if (!set_granularity(session) ||
        !etch_session_read_count(session, session->options.count, &session->count))
        return ETCH_EINPUT;
    session->sym = etch_sym_new(session->arena);
    return ETCH_OK;
}

static etch_status load(void *data)
{
    const opening *o = data;
    etch_session *session = o->session;
    if (!session->options.spec)
        return ETCH_OK;
    const etch_spec_source source = {
        .path = session->options.spec,
        .text = o->options->text,
        .natives = etch_session_natives(session, o->options->models, o->options->model_count),
        .native_count = o->options->model_count};
    etch_status status = ETCH_OK;
    session->spec = etch_spec_load(session->arena, session->sym, session->diags, &source, &status);
    if (session->spec)
        return ETCH_OK;
    /* A folder can be read, only not as a spec: the fault is the user's and not the disk's. */
    return status == ETCH_EIO && is_folder(session->options.spec) ? ETCH_EINPUT : status;
}

etch_status etch_session_open(const etch_session_options *options, etch_session **result)
{
    etch_session *session = calloc(1, sizeof *session);
    *result = session;
    if (!session)
        return ETCH_ENOMEM;
    session->mem = etch_mem_new(options->memory_limit ? options->memory_limit : ETCH_MEMORY_LIMIT);
    if (!session->mem || etch_guard(session->mem, make_reports, session) != ETCH_OK) {
        etch_session_close(session);
        *result = NULL;
        return ETCH_ENOMEM;
    }
    opening o = {session, options};
    session->broken = etch_session_run_plain(session, begin, &o);
    session->loaded = session->broken == ETCH_OK;
    if (session->loaded)
        session->broken = etch_session_run_plain(session, load, &o);
    return session->broken;
}

void etch_session_close(etch_session *session)
{
    if (!session)
        return;
    etch_mem_free(session->mem);
    free(session);
}

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
