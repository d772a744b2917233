/* What the files of a frame share while it is made. */
#ifndef ETCH_SESSION_SWEEP_FRAME_INT_H
#define ETCH_SESSION_SWEEP_FRAME_INT_H

#include "session/sweep/sweep_int.h"

/* A frame while it is made, in a session of its own. */
typedef struct etch_framing {
    etch_sweep *sweep;
    etch_sweep_frame *frame;
    etch_session *session;
    const etch_plan *plan;
    const etch_settings *settings;
    /* by axis */
    ETCH_VEC(etch_expr) vars;
    ETCH_VEC(etch_sweep_axis) axes;
    ETCH_VEC(etch_values_list) lists;
    /* of statements */
    etch_claim *claims;
    etch_where_kind *kinds;
    /* some expression asks for quantities: at all, of ranks, under a plan or run that it names */
    bool asks, asks_rank, names_other;
    /* the one that is read does; it asks for a run */
    bool asked, times;
} etch_framing;

/* Is a variable the size of a mesh axis? */
bool etch_framing_is_size(const etch_framing *framing, etch_expr var);
/* Finds the axes that decide structure, or that all do. */
void etch_framing_structure(etch_framing *framing);
/* Finds what statements say of all rows behind some values; the axes and statements are compiled. */
void etch_framing_cuts(etch_framing *framing);

#endif
