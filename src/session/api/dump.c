/* Traces for people: what is in them, and traces made from text. */
#include "session/query/query.h"

#include "trace/trace.h"

typedef struct dumping {
    etch_session *session;
    etch_dump_options options;
} dumping;

static etch_status dump(void *data)
{
    const dumping *d = data;
    etch_arena *arena = etch_arena_new(d->session->mem);
    etch_status status = etch_trace_dump(arena, &d->options, d->session->diags);
    etch_arena_free(arena);
    return status;
}

etch_status etch_session_dump(etch_session *session, const char *path, const etch_dumping_options *options,
                              etch_write write, void *data)
{
    static const etch_dump_form forms[] = {[ETCH_DUMP_AS_SUMMARY] = ETCH_DUMP_SUMMARY,
                                           [ETCH_DUMP_AS_JSON] = ETCH_DUMP_JSON,
                                           [ETCH_DUMP_AS_TEXT] = ETCH_DUMP_TEXT};
    etch_dumping_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    if (!unfit && (unsigned)own.as >= sizeof forms / sizeof *forms)
        unfit = "the options ask for a form of dumps that there is not";
    if (unfit)
        return etch_session_refuse(session, unfit);
    dumping d = {session,
                 {.path = path,
                  .form = forms[own.as],
                  .ranks = own.ranks,
                  .out = {write, data},
                  .cancel = &session->cancel}};
    return etch_session_run_plain(session, dump, &d);
}

typedef struct assembling {
    etch_session *session;
    const char *name, *text;
    size_t length;
    etch_assemble_options options;
    const etch_assembled *result;
} assembling;

static etch_status assemble(void *data)
{
    assembling *a = data;
    etch_session *session = a->session;
    const etch_source *source = etch_source_add(session->diags, a->name, a->text, a->length);
    etch_assembly assembly;
    if (!source) {
        etch_error(session->diags, ETCH_E_SOURCES_TOO_LARGE, (etch_span){0, 0},
                   "'%s' is larger than the %d bytes that a text may have", a->name, ETCH_TOTAL_LIMIT);
        return ETCH_ELIMIT;
    }
    etch_arena *arena = etch_arena_new(session->mem);
    etch_status status = etch_trace_assemble(arena, source, &a->options, session->diags, &assembly);
    etch_arena_free(arena);
    if (status != ETCH_OK)
        return status;
    etch_assembled *result = ETCH_NEW(session->arena, etch_assembled);
    *result = (etch_assembled){.folder = etch_copy_string(session->arena, a->options.folder),
                               .files = assembly.files,
                               .bytes = assembly.bytes};
    a->result = result;
    return ETCH_OK;
}

etch_status etch_session_assemble(etch_session *session, const char *name, const char *text, size_t length,
                                  const etch_assembling_options *options, const etch_assembled **result)
{
    etch_assembling_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    *result = NULL;
    if (!unfit && !own.folder)
        unfit = "the options name no folder to write to";
    if (unfit)
        return etch_session_refuse(session, unfit);
    assembling a = {
        .session = session,
        .name = name,
        .text = text,
        .length = length,
        .options = {
            .folder = own.folder, .force = own.force, .syncs = !own.no_sync, .cancel = &session->cancel}};
    etch_status status = etch_session_run_plain(session, assemble, &a);
    *result = status == ETCH_OK ? a.result : NULL;
    return status;
}
