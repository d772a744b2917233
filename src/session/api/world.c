/* The end of what several processes do together. */
#include "session/api/api.h"

typedef struct ending {
    etch_world *world;
    etch_session *session;
    etch_status status;
} ending;

static etch_status gather(void *data)
{
    const ending *e = data;
    return etch_world_gather(e->world, e->session->diags, e->status);
}

etch_status etch_world_end(etch_world *world, etch_session *session, etch_status status)
{
    ending e = {world, session, status};
    if (!world)
        return status;
    if (etch_world_rank(world) > 0)
        return etch_world_gather(world, session ? session->diags : NULL, status); /* it says nothing more */
    if (session && session->broken == ETCH_OK)
        status = etch_session_run_plain(session, gather, &e);
    return session && session->broken == ETCH_OK ? status : etch_world_gather(world, NULL, status);
}
