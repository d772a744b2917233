/* The order of a pipeline, for other views. */
#ifndef ETCH_SESSION_VIEW_PIPELINE_INT_H
#define ETCH_SESSION_VIEW_PIPELINE_INT_H

#include "session/query/query.h"

/* The order of the plan's stages, with values for its sizes. False after a reported error. */
bool etch_view_pipe(etch_session *session, etch_compiled *p, etch_pipe *pipe);

#endif
