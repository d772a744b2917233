/* Structs of options that a program filled in which knows a newer or an older version of them. */
#include "session/core/core.h"

#include <string.h>

const char *etch_options_read(const void *given, void *own, size_t size)
{
    size_t theirs = size;
    memset(own, 0, size);
    if (given)
        memcpy(&theirs, given, sizeof theirs);
    memcpy(own, &size, sizeof size);
    if (!given)
        return NULL;
    if (theirs < sizeof theirs)
        return "the options do not say how large they are: set struct_size to the sizeof of their type";
    const unsigned char *bytes = given;
    for (size_t i = size; i < theirs; i++)
        if (bytes[i])
            return "the options set what this version of the library, " ETCH_VERSION ", does not know";
    memcpy((unsigned char *)own + sizeof size, bytes + sizeof size,
           (theirs < size ? theirs : size) - sizeof size);
    return NULL;
}

static etch_status refuse(void *data)
{
    const etch_refusal *r = data;
    etch_error(r->session->diags, ETCH_NO_CODE, (etch_span){0, 0}, "%s", r->why);
    return ETCH_EINPUT;
}

etch_status etch_session_refuse(etch_session *session, const char *why)
{
    etch_refusal r = {session, why};
    return etch_session_run_plain(session, refuse, &r);
}
