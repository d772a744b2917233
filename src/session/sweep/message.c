/* Messages of one session, said by another on the same spec. */
#include "session/sweep/sweep_int.h"

static etch_label *copy_labels(etch_arena *arena, const etch_label *labels)
{
    etch_label *first = NULL, **end = &first;
    for (; labels; labels = labels->next) {
        etch_label *own = ETCH_NEW(arena, etch_label);
        *own = (etch_label){labels->span, etch_copy_string(arena, labels->message), NULL};
        *end = own;
        end = &own->next;
    }
    return first;
}

const etch_diag *etch_sweep_copy(etch_arena *arena, const etch_diag *diag)
{
    etch_diag *own = ETCH_NEW(arena, etch_diag);
    *own = (etch_diag){.severity = diag->severity, .code = diag->code, .span = diag->span};
    own->message = etch_copy_string(arena, diag->message);
    own->notes = copy_labels(arena, diag->notes);
    own->helps = copy_labels(arena, diag->helps);
    return own;
}

/* Files are read in the same order by every session on a spec, before all else: their places are the same. */
etch_span etch_sweep_span(const etch_session *session, etch_span span)
{
    const etch_source *source = etch_source_at(session->diags, span, NULL, NULL);
    const bool fits = source && span.end <= source->base + source->length;
    return fits ? span : (etch_span){0, 0};
}

void etch_sweep_repeat(etch_session *session, const etch_diag *diag)
{
    etch_diag *own =
        etch_error(session->diags, diag->code, etch_sweep_span(session, diag->span), "%s", diag->message);
    for (const etch_label *note = diag->notes; note; note = note->next)
        etch_note(own, etch_sweep_span(session, note->span), "%s", note->message);
    for (const etch_label *help = diag->helps; help; help = help->next)
        etch_help(own, "%s", help->message);
}

const etch_diag *etch_sweep_first_error(const etch_session *session)
{
    return etch_first_error(etch_diags_first(session->diags));
}

void etch_frame_refuse(etch_sweep *sweep, etch_sweep_frame *frame, const etch_diag *why)
{
    etch_arena *arena = sweep->arena;
    frame->axis_count = 0;
    frame->axes = NULL;
    frame->refused = true;
    frame->reason =
        (etch_reason_text){why ? why->code : ETCH_NO_CODE, why ? etch_copy_string(arena, why->message) : "?"};
    frame->why = why ? etch_sweep_copy(arena, why) : NULL;
}
