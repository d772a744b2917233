/* Diagnostics as the public structs, and as text. They are made anew by each call: messages may have come
 * in. */
#include "session/core/core.h"

#include <string.h>

static etch_location locate(const etch_diags *diags, etch_span span)
{
    etch_location location = {0};
    const etch_source *source = etch_source_at(diags, span, &location.line, &location.column);
    if (!source)
        return (etch_location){0};
    location.path = source->path;
    const etch_span end = {span.end, span.end};
    if (span.end <= span.start ||
        etch_source_at(diags, end, &location.end_line, &location.end_column) != source) {
        location.end_line = location.line;
        location.end_column = location.column;
    }
    return location;
}

etch_location etch_locate(etch_session *session, etch_span span)
{
    return locate(session->diags, span);
}

static const etch_comment *convert_labels(etch_session *session, const etch_label *first, size_t *count)
{
    size_t n = 0;
    for (const etch_label *label = first; label; label = label->next)
        n++;
    etch_comment *comments = ETCH_NEW_ARRAY(session->reports, n, etch_comment);
    for (size_t i = 0; i < n; i++, first = first->next)
        comments[i] = (etch_comment){locate(session->diags, first->span), first->message};
    *count = n;
    return comments;
}

static etch_message convert(etch_session *session, const etch_diag *diag)
{
    etch_message message = {.severity = diag->severity,
                            .code = "",
                            .location = locate(session->diags, diag->span),
                            .text = diag->message};
    if (diag->code != ETCH_NO_CODE)
        message.code = etch_text(session->reports, "E%04u", (unsigned)diag->code);
    message.notes = convert_labels(session, diag->notes, &message.note_count);
    message.helps = convert_labels(session, diag->helps, &message.help_count);
    return message;
}

typedef struct listing {
    etch_session *session;
    const etch_message *messages;
    size_t count;
    const char *text;
} listing;

static etch_status list_messages(void *data)
{
    listing *l = data;
    size_t count = 0;
    for (const etch_diag *diag = etch_diags_first(l->session->diags); diag; diag = diag->next)
        count++;
    etch_message *messages = ETCH_NEW_ARRAY(l->session->reports, count, etch_message);
    size_t i = 0;
    for (const etch_diag *diag = etch_diags_first(l->session->diags); diag; diag = diag->next)
        messages[i++] = convert(l->session, diag);
    l->messages = messages;
    l->count = count;
    return ETCH_OK;
}

static etch_status render_messages(void *data)
{
    listing *l = data;
    etch_buf out = {.arena = l->session->reports};
    etch_diags_render(l->session->diags, &out);
    l->text = out.text;
    return ETCH_OK;
}

const etch_message *etch_session_messages(etch_session *session, size_t *count)
{
    listing l = {.session = session};
    bool listed = etch_guard(session->mem, list_messages, &l) == ETCH_OK;
    *count = listed ? l.count : 0;
    return listed ? l.messages : NULL;
}

const char *etch_session_message_text(etch_session *session)
{
    listing l = {.session = session};
    bool rendered = etch_guard(session->mem, render_messages, &l) == ETCH_OK;
    return rendered && l.text ? l.text : "";
}
