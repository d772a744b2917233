/* Structs of options that a program filled in which knows a newer or an older version of them. */
#include "session/core/core.h"

#include <string.h>

/* More than any version will have: what is not a size is not followed into memory. */
enum { MOST_BYTES = 4096 };

const char *etch_options_read(const void *given, void *own, size_t size)
{
    size_t theirs = size;
    memset(own, 0, size);
    if (given) {
        const unsigned char *bytes = given;
        memcpy(&theirs, bytes, sizeof theirs);
        if (theirs < sizeof theirs || theirs > MOST_BYTES)
            return "the options do not say how large they are: set struct_size to the sizeof of their type";
        for (size_t i = size; i < theirs; i++)
            if (bytes[i])
                return "the options set what this version of the library, " ETCH_VERSION ", does not know";
        memcpy(own, bytes, theirs < size ? theirs : size);
    }
    memcpy(own, &size, sizeof size);
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
