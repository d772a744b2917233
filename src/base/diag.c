/* The record of what was found. */
#include "base/base_int.h"

#include <stdio.h>
#include <string.h>

etch_diags *etch_diags_new(etch_arena *arena)
{
    etch_diags *diags = ETCH_NEW(arena, etch_diags);
    diags->arena = arena;
    diags->end = &diags->first;
    return diags;
}

uint32_t etch_error_count(const etch_diags *diags)
{
    return diags->counts[ETCH_ERROR];
}

const etch_diag *etch_diags_first(const etch_diags *diags)
{
    return diags->first;
}

const etch_diag *etch_first_error(const etch_diag *diag)
{
    while (diag && diag->severity != ETCH_ERROR)
        diag = diag->next;
    return diag;
}

void etch_diags_forget(etch_diags *diags)
{
    diags->first = NULL;
    diags->end = &diags->first;
    memset(diags->counts, 0, sizeof diags->counts);
    memset(diags->repeats, 0, sizeof diags->repeats);
}

etch_diags_mark etch_diags_now(const etch_diags *diags)
{
    etch_diags_mark mark = {.end = diags->end};
    memcpy(mark.counts, diags->counts, sizeof mark.counts);
    memcpy(mark.repeats, diags->repeats, sizeof mark.repeats);
    return mark;
}

etch_diag *etch_diags_since(const etch_diags *diags, const etch_diags_mark *mark)
{
    return diags->end == mark->end ? NULL : *mark->end;
}

const etch_diag *etch_diags_retract(etch_diags *diags, const etch_diags_mark *mark)
{
    const etch_diag *taken = etch_diags_since(diags, mark);
    diags->end = mark->end;
    *diags->end = NULL;
    memcpy(diags->counts, mark->counts, sizeof mark->counts);
    memcpy(diags->repeats, mark->repeats, sizeof mark->repeats);
    return taken;
}

void etch_diags_note_all(etch_diags *diags, const char *note)
{
    diags->note = note;
}

/* One line of text in the arena. */
ETCH_PRINTF(2, 0) static const char *format_text(etch_arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0)
        etch_trap(etch_arena_mem(arena), ETCH_ELIMIT);
    char *text = etch_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

/* Was this said before, word for word and of the same place? A module with a mistake may be called many
 * times. */
static etch_diag *find_known(const etch_diags *diags, etch_code code, etch_span span, const char *message)
{
    for (etch_diag *d = diags->first; d; d = d->next)
        if (d->code == code && d->span.start == span.start && d->span.end == span.end && span.end > 0 &&
            strcmp(d->message, message) == 0)
            return d;
    return NULL;
}

/* Adds the note that all diagnostics have at present; `again`: it was said before. */
static void add_note(const etch_diags *diags, etch_diag *diag, bool again)
{
    const etch_label *label = diag->notes;
    if (!diags->note || (again && diag->severity != ETCH_ERROR))
        return;
    while (label && strcmp(label->message, diags->note) != 0)
        label = label->next;
    if (!label)
        etch_note(diag, (etch_span){0, 0}, "%s", diags->note);
}

/* Notes and helps given to it go nowhere, because it has no owner. */
static etch_diag *spare(etch_diags *diags, etch_severity severity, etch_code code, etch_span span)
{
    diags->spare = (etch_diag){.severity = severity, .code = code, .span = span, .message = ""};
    return &diags->spare;
}

ETCH_PRINTF(5, 0)
static etch_diag *record(etch_diags *diags, etch_severity severity, etch_code code, etch_span span,
                         const char *format, va_list args)
{
    const char *message = format_text(diags->arena, format, args);
    etch_diag *known = find_known(diags, code, span, message);
    if (diags->counts[severity] < UINT32_MAX)
        diags->counts[severity]++;
    if (known && diags->repeats[severity] < UINT32_MAX)
        diags->repeats[severity]++;
    if (known)
        add_note(diags, known, true);
    if (known || diags->counts[severity] - diags->repeats[severity] > ETCH_KEPT_DIAGS)
        return spare(diags, severity, code, span);
    etch_diag *diag = ETCH_NEW(diags->arena, etch_diag);
    diag->severity = severity;
    diag->code = code;
    diag->span = span;
    diag->message = message;
    diag->owner = diags;
    *diags->end = diag;
    diags->end = &diag->next;
    add_note(diags, diag, false);
    return diag;
}

etch_diag *etch_error(etch_diags *diags, etch_code code, etch_span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    etch_diag *diag = record(diags, ETCH_ERROR, code, span, format, args);
    va_end(args);
    return diag;
}

etch_diag *etch_warning(etch_diags *diags, etch_code code, etch_span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    etch_diag *diag = record(diags, ETCH_WARNING, code, span, format, args);
    va_end(args);
    return diag;
}

etch_diag *etch_remark(etch_diags *diags, etch_code code, etch_span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    etch_diag *diag = record(diags, ETCH_REMARK, code, span, format, args);
    va_end(args);
    return diag;
}

ETCH_PRINTF(4, 0)
static void append_label(etch_diag *diag, etch_label **list, etch_span span, const char *format, va_list args)
{
    etch_label *label = ETCH_NEW(diag->owner->arena, etch_label);
    label->span = span;
    label->message = format_text(diag->owner->arena, format, args);
    while (*list)
        list = &(*list)->next;
    *list = label;
}

bool etch_note(etch_diag *diag, etch_span span, const char *format, ...)
{
    if (!diag->owner)
        return false;
    va_list args;
    va_start(args, format);
    append_label(diag, &diag->notes, span, format, args);
    va_end(args);
    return false;
}

bool etch_help(etch_diag *diag, const char *format, ...)
{
    if (!diag->owner)
        return false;
    va_list args;
    va_start(args, format);
    append_label(diag, &diag->helps, (etch_span){0, 0}, format, args);
    va_end(args);
    return false;
}

const char *etch_code_title(etch_code code)
{
    switch (code) {
    case ETCH_NO_CODE:
        break;
#define ETCH_DIAG(name, number, title) \
    case ETCH_##name:                  \
        return title;
#include "diag.def"
#undef ETCH_DIAG
    }
    return NULL;
}
