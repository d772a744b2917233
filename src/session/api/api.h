/* Adapters of public headers that opening a session needs: models that a program builds, and configs. */
#ifndef ETCH_SESSION_API_API_H
#define ETCH_SESSION_API_API_H

#include "etch/builder.h"
#include "session/core/core.h"

/* A model of the options, and whose it is. */
typedef struct etch_session_network {
    etch_session *session;
    etch_network_model model;
} etch_session_network;

/* The models of the options as lang takes them. */
etch_native *etch_session_natives(etch_session *session, const etch_network_model *models, size_t count);

/* Where the spec of the options is a config, makes a spec of it, which takes its place. An error has been
 * reported. */
etch_status etch_session_take_config(etch_session *session);

#endif
